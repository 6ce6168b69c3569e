#include "cmd/go_json.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/limits.h"

namespace lookout::cmd {
namespace {

/// Appends JSON. These characters occur only in its strings.
void append_escaped(std::string_view json, std::string& out) {
  for (std::size_t at = 0; at < json.size(); ++at) {
    const std::string_view rest = json.substr(at);
    if (rest.front() == '<') {
      out += "\\u003c";
    } else if (rest.front() == '>') {
      out += "\\u003e";
    } else if (rest.front() == '&') {
      out += "\\u0026";
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      out += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      out += rest.front();
    }
  }
}

class GoJsonWriter {
 public:
  GoJsonWriter(unsigned indent, std::string& out) : indent_(indent), out_(out) {}

  void write(api::Value value, std::size_t depth) {
    // (The writer is recursive, and a server may send deeply nested objects.)
    const bool is_container = value.is_object() || value.is_array();
    if (!is_container || value.empty() || depth >= api::kMaxDepth) {
      std::string json;
      api::detail::write_json(value, json);
      append_escaped(json, out_);
    } else if (value.is_object()) {
      write_object(value, depth);
    } else {
      write_array(value, depth);
    }
  }

 private:
  void write_object(api::Value object, std::size_t depth) {
    std::vector<std::pair<std::string, api::Value>> members;
    for (const auto& [name, member] : object.members()) members.emplace_back(name, member);
    std::ranges::stable_sort(members,
                             [](const auto& a, const auto& b) { return a.first < b.first; });
    out_ += '{';
    bool is_first = true;
    for (const auto& [name, member] : members) {
      begin_line(std::exchange(is_first, false), depth + 1);
      std::string json;
      api::detail::write_json_string(name, json);
      append_escaped(json, out_);
      out_ += indent_ == 0 ? ":" : ": ";
      write(member, depth + 1);
    }
    begin_line(true, depth);
    out_ += '}';
  }

  void write_array(api::Value array, std::size_t depth) {
    out_ += '[';
    bool is_first = true;
    for (const api::Value element : array.elements()) {
      begin_line(std::exchange(is_first, false), depth + 1);
      write(element, depth + 1);
    }
    begin_line(true, depth);
    out_ += ']';
  }

  void begin_line(bool is_first, std::size_t depth) {
    if (!is_first) out_ += ',';
    if (indent_ > 0) out_.append(1, '\n').append(depth * indent_, ' ');
  }

  unsigned indent_;
  std::string& out_;
};

std::string written(api::Value value, unsigned indent) {
  std::string out;
  GoJsonWriter(indent, out).write(value, 0);
  return out;
}

}  // namespace

std::string go_json(api::Value value) { return written(value, 0); }

std::string go_pretty_json(api::Value value) { return written(value, 4); }

}  // namespace lookout::cmd
