#include "apiserver/storage/etcd3/json_tokens.h"

#include <fmt/format.h>

namespace lookout::apiserver::storage::etcd3 {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxLiteral = 64;
constexpr unsigned kReplacement = 0xfffd;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool is_literal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
         c == 'E';
}

bool is_valid_literal(std::string_view text) {
  if (text == "true" || text == "false" || text == "null") return true;
  return text.find_first_not_of("0123456789+-.eE") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace

bool JsonTokens::fail(std::string_view why) {
  error_ = fmt::format("no JSON at byte {}: {}", offset_, why);
  return false;
}

bool JsonTokens::feed(std::string_view bytes) {
  if (!error_.empty()) return false;
  for (std::size_t i = 0; i < bytes.size();) {
    if (state_ == State::kString) {
      // Values are long and have no escapes: in one go up to the end or the next one.
      std::size_t end = bytes.find_first_of(std::string_view("\"\\", 2), i);
      if (end == std::string_view::npos) end = bytes.size();
      if (token_.size() + (end - i) > max_string_bytes_)
        return fail(fmt::format("a string of more than {} bytes", max_string_bytes_));
      if (end > i && high_surrogate_ != 0) {
        append_code_point(kReplacement);
        high_surrogate_ = 0;
      }
      token_.append(bytes.substr(i, end - i));
      offset_ += end - i;
      i = end;
      if (i == bytes.size()) break;
      if (bytes[i] == '\\') {
        state_ = State::kEscape;
      } else if (!end_string()) {
        return false;
      }
    } else if (state_ == State::kLiteral && !is_literal(bytes[i])) {
      // The character behind it is looked at again.
      if (!end_literal()) return false;
      continue;
    } else {
      const char c = bytes[i];
      const bool good = state_ == State::kBetween  ? between(c)
                        : state_ == State::kEscape ? escape(c)
                        : state_ == State::kUnicode
                            ? unicode(c)
                            : (token_ += c, token_.size() <= kMaxLiteral || fail("a long word"));
      if (!good) return false;
    }
    ++i;
    ++offset_;
  }
  return true;
}

bool JsonTokens::between(char c) {
  if (is_blank(c)) return true;
  if (wants_colon_ != (c == ':')) return fail(wants_colon_ ? "a key without a colon" : "a colon");
  switch (c) {
    case '{':
    case '[':
      return begin(c);
    case '}':
    case ']':
      return end(c);
    case ',':
      if (nesting_.empty() || wants_value_ || wants_key_) return fail("a comma");
      wants_key_ = nesting_.back() == '{';
      wants_value_ = !wants_key_;
      return true;
    case ':':
      wants_colon_ = false;
      return true;
    case '"':
      if (!wants_key_ && !wants_value_) return fail("a string");
      token_.clear();
      state_ = State::kString;
      return true;
    default:
      if (!is_literal(c))
        return fail(fmt::format("the byte {:#04x}", static_cast<unsigned>(c) & 0xffu));
      if (!wants_value_) return fail("a word");
      token_.assign(1, c);
      state_ = State::kLiteral;
      return true;
  }
}

bool JsonTokens::begin(char bracket) {
  if (!wants_value_) return fail("a bracket");
  if (nesting_.size() >= kMaxDepth) return fail("nested too deeply");
  nesting_ += bracket;
  wants_key_ = bracket == '{';
  wants_value_ = !wants_key_;
  if (bracket == '{') {
    handler_.begin_object();
  } else {
    handler_.begin_array();
  }
  return true;
}

bool JsonTokens::end(char bracket) {
  if (nesting_.empty() || nesting_.back() != (bracket == '}' ? '{' : '['))
    return fail("a closing bracket");
  if (bracket == '}' && wants_value_) return fail("a key without a value");
  nesting_.pop_back();
  if (bracket == '}') {
    handler_.end_object();
  } else {
    handler_.end_array();
  }
  after_value();
  return true;
}

void JsonTokens::after_value() {
  wants_key_ = false;
  wants_value_ = false;
  if (!nesting_.empty()) return;
  wants_value_ = true;
  handler_.end_value();
}

bool JsonTokens::end_string() {
  if (high_surrogate_ != 0) append_code_point(kReplacement);
  high_surrogate_ = 0;
  state_ = State::kBetween;
  if (wants_key_) {
    wants_key_ = false;
    wants_value_ = true;
    wants_colon_ = true;
    handler_.key(token_);
    return true;
  }
  handler_.string(token_);
  after_value();
  return true;
}

bool JsonTokens::end_literal() {
  state_ = State::kBetween;
  if (!is_valid_literal(token_)) return fail(fmt::format("the word {}", token_));
  handler_.literal(token_);
  after_value();
  return true;
}

bool JsonTokens::escape(char c) {
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  if (c == 'u') {
    code_ = 0;
    code_digits_ = 0;
    state_ = State::kUnicode;
    return true;
  }
  const std::size_t known = kFrom.find(c);
  if (known == std::string_view::npos) return fail("an unknown escape");
  if (high_surrogate_ != 0) append_code_point(kReplacement);
  high_surrogate_ = 0;
  token_ += kTo[known];
  state_ = State::kString;
  return true;
}

bool JsonTokens::unicode(char c) {
  const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                         : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                                                : 16;
  if (digit == 16) return fail("an escape that is not hexadecimal");
  code_ = code_ * 16 + digit;
  if (++code_digits_ < 4) return true;
  state_ = State::kString;
  const bool low = code_ >= 0xdc00 && code_ < 0xe000;
  if (high_surrogate_ != 0) {
    const unsigned high = high_surrogate_;
    high_surrogate_ = 0;
    if (low) {
      append_code_point(0x10000 + ((high - 0xd800) << 10) + (code_ - 0xdc00));
      return true;
    }
    append_code_point(kReplacement);
  }
  if (code_ >= 0xd800 && code_ < 0xdc00) {
    high_surrogate_ = code_;
  } else {
    append_code_point(low ? kReplacement : code_);
  }
  return true;
}

void JsonTokens::append_code_point(unsigned code) {
  const auto byte = [&](unsigned b) { token_ += static_cast<char>(b); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | (code >> 6));
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3f));
    byte(0x80 | ((code >> 6) & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

}  // namespace lookout::apiserver::storage::etcd3
