#include "apiserver/endpoints/json_syntax.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::size_t kMaxJsonDepth = 10000;

bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// A byte in quotes, which Go shows as the character with that number.
std::string quoted_byte(char c) {
  if (c == '\'') return R"('\'')";
  if (c == '"') return R"('"')";
  const auto byte = static_cast<unsigned char>(c);
  std::string text;
  if (byte < 0x80) {
    text = c;
  } else {
    text = {static_cast<char>(0xC0 | (byte >> 6)), static_cast<char>(0x80 | (byte & 0x3F))};
  }
  const std::string quoted = api::detail::quote(text);
  return "'" + quoted.substr(1, quoted.size() - 2) + "'";
}

/// Scans the text once. Each function moves `at_` past the part that it has read, and returns false
/// after an error.
class SyntaxCheck {
 public:
  explicit SyntaxCheck(std::string_view text) : text_(text) {}

  std::string run() {
    if (!read_value()) return error_;
    while (!open_.empty()) {
      if (!read_rest()) return error_;
    }
    skip_space();
    if (at_ < text_.size()) refuse("after top-level value");
    return error_;
  }

 private:
  /// The current character. At the end of the text it is a space, as in Go.
  char here() const { return at_ < text_.size() ? text_[at_] : ' '; }
  bool is_at_end() const { return at_ >= text_.size(); }
  void skip_space() {
    while (!is_at_end() && is_json_space(text_[at_])) ++at_;
  }

  bool refuse(std::string_view where) {
    error_ = fmt::format("invalid character {} {}", quoted_byte(here()), where);
    return false;
  }
  bool ends() {
    error_ = "unexpected end of JSON input";
    return false;
  }

  /// A scalar, or the beginning of an object or array.
  bool read_value() {
    skip_space();
    if (is_at_end()) return ends();
    const char c = here();
    if (c == '{' || c == '[') return open(c);
    if (c == '"') return read_string();
    if (c == 't') return read_literal("true");
    if (c == 'f') return read_literal("false");
    if (c == 'n') return read_literal("null");
    if (c == '-' || base::is_digit(c)) return read_number();
    return refuse("looking for beginning of value");
  }

  bool open(char bracket) {
    if (open_.size() == kMaxJsonDepth) {
      error_ = "exceeded max depth";
      return false;
    }
    ++at_;
    open_.push_back(bracket);
    empty_ = true;
    return true;
  }
  bool close() {
    ++at_;
    open_.pop_back();
    return true;
  }

  bool read_member() {
    skip_space();
    if (is_at_end()) return ends();
    if (here() != '"') return refuse("looking for beginning of object key string");
    if (!read_string()) return false;
    skip_space();
    if (is_at_end()) return ends();
    if (here() != ':') return refuse("after object key");
    ++at_;
    return read_value();
  }

  /// The next member, element or closing bracket of the innermost object or array.
  bool read_rest() {
    skip_space();
    if (is_at_end()) return ends();
    const bool in_object = open_.back() == '{';
    const bool first = std::exchange(empty_, false);
    if (here() == (in_object ? '}' : ']')) return close();
    if (first || here() == ',') {
      if (!first) ++at_;
      return in_object ? read_member() : read_value();
    }
    return refuse(in_object ? "after object key:value pair" : "after array element");
  }

  bool read_string() {
    for (++at_; !is_at_end(); ++at_) {
      const char c = here();
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\' && !read_escape()) return false;
      if (static_cast<unsigned char>(c) < 0x20) return refuse("in string literal");
    }
    return ends();
  }
  /// Leaves `at_` at the last character of the escape.
  bool read_escape() {
    ++at_;
    const char c = here();
    if (c != 'u') {
      if (std::string_view(R"("\/bfnrt)").find(c) == std::string_view::npos)
        return refuse("in string escape code");
      return true;
    }
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (!base::is_hex_digit(here())) return refuse("in \\u hexadecimal character escape");
    }
    return true;
  }

  bool read_literal(std::string_view word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      ++at_;
      if (here() != word[i])
        return refuse(fmt::format("in literal {} (expecting '{}')", word, word[i]));
    }
    ++at_;
    return true;
  }

  void skip_digits() {
    while (!is_at_end() && base::is_digit(here())) ++at_;
  }
  bool read_number() {
    if (here() == '-') {
      ++at_;
      if (!base::is_digit(here())) return refuse("in numeric literal");
    }
    if (here() == '0') {
      ++at_;
    } else {
      skip_digits();
    }
    if (here() == '.') {
      ++at_;
      if (!base::is_digit(here())) return refuse("after decimal point in numeric literal");
      skip_digits();
    }
    if (here() != 'e' && here() != 'E') return true;
    ++at_;
    if (here() == '+' || here() == '-') ++at_;
    if (!base::is_digit(here())) return refuse("in exponent of numeric literal");
    skip_digits();
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::vector<char> open_;
  /// True after an opening bracket.
  bool empty_ = false;
  std::string error_;
};

}  // namespace

std::string json_syntax_error(std::string_view text) { return SyntaxCheck(text).run(); }

}  // namespace lookout::apiserver::endpoints
