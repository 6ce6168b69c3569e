#include "apiserver/endpoints/yaml.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/endpoints/negotiation.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"
#include "rest/yaml_tree.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kYaml = "application/yaml";

std::string json_text(const json::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether a plain scalar of this text would be read as something else than text.
bool reads_as_other(std::string_view text) {
  constexpr std::string_view kWords[] = {"", "~", "null", "Null", "NULL", "=", "<<"};
  if (std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords)) return true;
  if (rest::detail::is_yaml_true(text) || rest::detail::is_yaml_false(text)) return true;
  // Numbers in all their forms, and times: what begins like a number and has no other characters.
  const std::size_t sign = text.front() == '+' || text.front() == '-' ? 1 : 0;
  const std::string_view rest = text.substr(sign);
  if (rest.starts_with('.')) return rest.size() > 1;
  if (rest.empty() || !is_digit(rest.front())) return false;
  // Addresses and versions are no numbers.
  if (std::count(rest.begin(), rest.end(), '.') > 1) return false;
  return rest.find_first_not_of("0123456789abcdefABCDEFxXoOT_+-:.Z ") == std::string_view::npos;
}

/// Whether the text can stand without quotes as far as the grammar goes.
bool can_be_plain(std::string_view text) {
  constexpr std::string_view kIndicators = ",[]{}#&*!|>'\"%@`";
  if (text.front() == ' ' || text.back() == ' ') return false;
  if (kIndicators.find(text.front()) != std::string_view::npos) return false;
  if (std::string_view("-?:").find(text.front()) != std::string_view::npos &&
      (text.size() == 1 || text[1] == ' '))
    return false;
  if (text.starts_with("---") || text.starts_with("...")) return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos &&
         text.back() != ':';
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F;
  });
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  /// On a line of its own, or behind "key:" or "-".
  void value(const json::Value& value, std::size_t indent, bool behind_dash) {
    if (value.IsObject() && !value.ObjectEmpty()) {
      object(value, indent, behind_dash);
    } else if (value.IsArray() && !value.Empty()) {
      array(value, indent, behind_dash);
    } else {
      scalar(value, indent);
      out_ += '\n';
    }
  }

 private:
  void line(std::size_t indent) { out_.append(indent, ' '); }

  void object(const json::Value& value, std::size_t indent, bool first_is_placed) {
    std::vector<std::pair<std::string_view, const json::Value*>> members;
    for (const auto& member : value.GetObject())
      members.emplace_back(json::text_of(member.name), &member.value);
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [name, member] : members) {
      if (!std::exchange(first_is_placed, false)) line(indent);
      text(name, indent, false);
      out_ += ':';
      if (member->IsObject() && !member->ObjectEmpty()) {
        out_ += '\n';
        object(*member, indent + 2, false);
      } else if (member->IsArray() && !member->Empty()) {
        out_ += '\n';
        array(*member, indent, false);
      } else {
        out_ += ' ';
        scalar(*member, indent + 2);
        out_ += '\n';
      }
    }
  }

  void array(const json::Value& value_, std::size_t indent, bool first_is_placed) {
    for (const json::Value& element : value_.GetArray()) {
      if (!std::exchange(first_is_placed, false)) line(indent);
      out_ += "- ";
      value(element, indent + 2, true);
    }
  }

  void scalar(const json::Value& value, std::size_t indent) {
    if (value.IsString()) {
      text(json::text_of(value), indent, true);
    } else {
      out_ += json_text(value);  // empty objects and arrays, too
    }
  }

  void text(std::string_view text, std::size_t indent, bool may_be_block) {
    const bool lines = text.find('\n') != std::string_view::npos;
    const bool in_block = lines && may_be_block;
    if (has_control_characters(text) || (!in_block && (lines || reads_as_other(text)))) {
      quoted(text);
    } else if (in_block) {
      block(text, indent);
    } else if (can_be_plain(text)) {
      out_ += text;
    } else {
      out_ += '\'';
      for (const char c : text) out_.append(c == '\'' ? 2 : 1, c);
      out_ += '\'';
    }
  }

  /// JSON's strings are YAML's in double quotes.
  void quoted(std::string_view text) {
    out_ += json_text(json::Value(
        rapidjson::StringRef(text.data(), static_cast<rapidjson::SizeType>(text.size()))));
  }

  /// A literal of several lines, if they are such that a reader gets the same ones.
  void block(std::string_view text, std::size_t indent) {
    const bool unclear = text.front() == ' ' || text.front() == '\n' || text.back() == ' ' ||
                         text.find(" \n") != std::string_view::npos;
    if (unclear) return quoted(text);
    out_ += '|';
    if (!text.ends_with('\n')) {
      out_ += '-';
    } else if (text.ends_with("\n\n")) {
      out_ += '+';
    }
    if (text.ends_with('\n')) text.remove_suffix(1);
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      out_ += '\n';
      if (end > begin) {
        line(indent);
        out_ += text.substr(begin, end - begin);
      }
      begin = end + 1;
    }
  }

  std::string& out_;
};

}  // namespace

void turn_body_into_json(http::Request& request) {
  if (request.body.empty() || request.method == "PATCH" ||
      media_type(request.header("content-type")) != kYaml)
    return;
  try {
    const rest::detail::YamlTree tree(request.body);
    request.body = rest::detail::to_json(tree.root());
  } catch (const rest::detail::YamlError& e) {
    throw api::StatusError::bad_request(
        fmt::format("error converting YAML to JSON: yaml: line {}: {}", e.line(), e.what()));
  }
  request.headers.insert_or_assign("content-type", "application/json");
}

bool prefers_yaml(const http::Request& request) {
  const auto watch = request.parameter("watch");
  for (const MediaRange& range : parse_accept(request.header("accept"))) {
    if (range.type == kYaml) return range.parameter("as").empty() && (!watch || watch->empty());
    if (range.type.starts_with("application/") || range.type == "*/*") return false;
  }
  return false;
}

http::Awaitable<void> turn_into_yaml(http::Response& response) {
  if (response.content_type != "application/json") co_return;
  if (response.stream != nullptr) {
    std::vector<http::Piece> pieces;
    for (bool more = true; more;) {
      more = co_await response.stream->next(pieces);
      for (const http::Piece& piece : pieces) response.body += *piece;
    }
    response.stream = nullptr;
  }
  json::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(response.body.data(), response.body.size());
  if (document.HasParseError()) co_return;
  response.body = to_yaml(document);
  response.content_type = kYaml;
}

std::string to_yaml(const json::Value& value) {
  std::string out;
  Writer(out).value(value, 0, false);
  return out;
}

}  // namespace lookout::apiserver::endpoints
