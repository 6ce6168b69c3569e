#include "apiserver/endpoints/go_json.h"

#include <vector>

#include "api/go_text.h"

namespace lookout::apiserver::endpoints {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// One byte in single quotes, as Go shows it.
std::string quote_char(char c) {
  if (c == '\'') return R"('\'')";
  if (c == '"') return R"('"')";
  // The byte as the code point of that number.
  const auto code = static_cast<unsigned char>(c);
  std::string text;
  if (code < 0x80) {
    text = c;
  } else {
    text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  }
  const std::string quoted = api::detail::quote(text);
  return "'" + quoted.substr(1, quoted.size() - 2) + "'";
}

/// The scanner of Go's encoding/json: what it expects next decides what it says.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<std::string> error() {
    if (!value() && !failed_) return "unexpected end of JSON input";
    if (failed_) return message_;
    skip_space();
    if (at_ < text_.size()) fail("after top-level value");
    if (failed_) return message_;
    return std::nullopt;
  }

 private:
  bool fail(std::string_view context) {
    failed_ = true;
    message_ = "invalid character " + quote_char(text_[at_]) + " " + std::string(context);
    return false;
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  void skip_space() {
    while (!at_end() && is_space(peek())) ++at_;
  }

  /// False at the end of the text or at an error. Containers are on a stack: the text may be deep.
  bool value() {
    std::vector<char> open;
    for (;;) {
      skip_space();
      if (at_end()) return false;
      const char c = peek();
      bool closed_empty = false;
      if (c == '{' || c == '[') {
        ++at_;
        skip_space();
        if (at_end()) return false;
        const char close = c == '{' ? '}' : ']';
        if (peek() == close) {
          ++at_;
          closed_empty = true;
        } else {
          open.push_back(c);
          if (c == '{' && !key()) return false;
          continue;
        }
      }
      if (!closed_empty && !scalar()) return false;
      // Behind a value: go on in the container, or leave it.
      for (;;) {
        if (open.empty()) return true;
        skip_space();
        if (at_end()) return false;
        const bool object = open.back() == '{';
        if (peek() == ',') {
          ++at_;
          if (object) {
            skip_space();
            if (at_end() || !key()) return false;
          }
          break;
        }
        if (peek() != (object ? '}' : ']'))
          return fail(object ? "after object key:value pair" : "after array element");
        ++at_;
        open.pop_back();
      }
    }
  }

  bool key() {
    if (peek() != '"') return fail("looking for beginning of object key string");
    if (!string()) return false;
    skip_space();
    if (at_end()) return false;
    if (peek() != ':') return fail("after object key");
    ++at_;
    return true;
  }

  bool scalar() {
    const char c = peek();
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    if (c == 't') return literal("true");
    if (c == 'f') return literal("false");
    if (c == 'n') return literal("null");
    return fail("looking for beginning of value");
  }

  bool literal(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i, ++at_) {
      if (at_end()) return false;
      if (peek() != word[i]) {
        return fail("in literal " + std::string(word) + " (expecting " + quote_char(word[i]) + ")");
      }
    }
    return true;
  }

  bool string() {
    ++at_;
    for (;; ++at_) {
      if (at_end()) return false;
      const char c = peek();
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return fail("in string literal");
      if (c != '\\') continue;
      ++at_;
      if (at_end()) return false;
      if (peek() == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          if (at_end()) return false;
          if (!is_hex(peek())) return fail("in \\u hexadecimal character escape");
        }
      } else if (std::string_view("bfnrt\\/\"").find(peek()) == std::string_view::npos) {
        return fail("in string escape code");
      }
    }
  }

  bool digits(std::string_view context) {
    if (at_end()) return false;
    if (!is_digit(peek())) return fail(context);
    while (!at_end() && is_digit(peek())) ++at_;
    return true;
  }

  bool number() {
    if (peek() == '-') ++at_;
    if (at_end()) return false;
    if (peek() == '0') {
      ++at_;
    } else if (!digits("in numeric literal")) {
      return false;
    }
    if (!at_end() && peek() == '.') {
      ++at_;
      if (!digits("after decimal point in numeric literal")) return false;
    }
    if (!at_end() && (peek() == 'e' || peek() == 'E')) {
      ++at_;
      if (!at_end() && (peek() == '+' || peek() == '-')) ++at_;
      if (!digits("in exponent of numeric literal")) return false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
  std::string message_;
};

}  // namespace

std::optional<std::string> go_json_error(std::string_view text) { return Scanner(text).error(); }

}  // namespace lookout::apiserver::endpoints
