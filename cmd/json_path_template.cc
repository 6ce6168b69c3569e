#include "cmd/json_path_template.h"

#include <fmt/format.h>

#include <utility>

#include "cmd/go_json.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

bool is_quote(char c) { return c == '"' || c == '\''; }

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The length of a text in quotes at the beginning of `text`, with the quotes; npos if it does not end.
std::size_t quoted_length(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text.front()) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::string unquoted(std::string_view text) {
  std::string out;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
  }
  return out;
}

}  // namespace

class JsonPathTemplate::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  /// Reads to the end of the text, or of the loop that contains it.
  std::vector<Part> parts(bool in_loop) {
    std::vector<Part> out;
    while (!text_.empty()) {
      const std::size_t brace = text_.find('{');
      if (brace != 0) {
        out.push_back({.text = std::string(text_.substr(0, brace))});
        text_.remove_prefix(brace == std::string_view::npos ? text_.size() : brace);
        continue;
      }
      const std::string_view action = next_action();
      if (action == "end") {
        if (!in_loop) throw Error("{end} without {range}");
        return out;
      }
      out.push_back(part(action));
    }
    // As in kubectl, a loop without {end} has the rest of the text.
    return out;
  }

 private:
  /// The text between braces.
  std::string_view next_action() {
    for (std::size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '}') {
        const std::string_view action = trimmed(text_.substr(1, i - 1));
        text_.remove_prefix(i + 1);
        return action;
      }
      if (!is_quote(text_[i])) continue;
      const std::size_t length = quoted_length(text_.substr(i));
      if (length == std::string_view::npos) throw Error("a quote is not closed");
      i += length - 1;
    }
    throw Error("a brace is not closed");
  }

  Part part(std::string_view action) {
    constexpr std::string_view kRange = "range ";
    if (action.starts_with(kRange)) {
      if (++depth_ > kMaxDepth) throw Error("too many loops in one another");
      Part loop{.path = path(trimmed(action.substr(kRange.size()))), .is_loop = true};
      loop.body = parts(true);
      --depth_;
      return loop;
    }
    if (!action.empty() && is_quote(action.front()) && quoted_length(action) == action.size())
      return {.text = unquoted(action)};
    return {.path = path(action)};
  }

  static api::detail::JsonPath path(std::string_view text) {
    // (The paths of printer columns may omit the dot.)
    const bool begins =
        !text.empty() && std::string_view(".[$@").find(text.front()) != std::string_view::npos;
    auto out = begins ? api::detail::JsonPath::parse(text) : std::nullopt;
    if (!out) throw Error(fmt::format("\"{}\" is not a path such as .metadata.name", text));
    return *std::move(out);
  }

  static constexpr int kMaxDepth = 100;

  std::string_view text_;
  int depth_ = 0;
};

JsonPathTemplate::JsonPathTemplate(std::string_view text) : parts_(Parser(text).parts(false)) {
  // kubectl prints it.
  if (text.find('{') == std::string_view::npos)
    throw Error("paths belong in braces: jsonpath={.metadata.name}");
}

std::string JsonPathTemplate::render(api::Value root) const {
  std::string out;
  render(parts_, root, out);
  return out;
}

void JsonPathTemplate::render(const std::vector<Part>& parts, api::Value root, std::string& out) {
  for (const Part& part : parts) {
    out += part.text;
    if (!part.path) continue;
    bool first = true;
    for (const api::Value value : part.path->find_in_bounds(root)) {
      if (part.is_loop) {
        render(part.body, value, out);
        continue;
      }
      if (!std::exchange(first, false)) out += ' ';
      out += value.is_string() ? std::string(value.as_string()) : go_json(value);
    }
  }
}

}  // namespace lookout::cmd
