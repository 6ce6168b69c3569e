// JSON in pieces: tokens as soon as their last byte is there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::apiserver::storage::etcd3 {

/// Cuts a sequence of JSON values into tokens, however the bytes come in. Holds one string or
/// number at most, and the nesting. Not thread-safe.
///
/// It is for answers of etcd, which are deep by a handful: what is nested deeper, has a string that
/// is too long or is no JSON is an error.
class JsonTokens {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void begin_object() = 0;
    virtual void end_object() = 0;
    virtual void begin_array() = 0;
    virtual void end_array() = 0;
    virtual void key(std::string_view name) = 0;
    /// The handler may take the text.
    virtual void string(std::string& text) = 0;
    /// A number, true, false or null, as it is written.
    virtual void literal(std::string_view text) = 0;
    /// A value at the outermost level has ended.
    virtual void end_value() = 0;
  };

  JsonTokens(Handler& handler, std::size_t max_string_bytes)
      : handler_(handler), max_string_bytes_(max_string_bytes) {}

  /// False when the text is no JSON; error() says why, and further input is ignored.
  bool feed(std::string_view bytes);
  /// Whether the input so far ends between two values.
  bool complete() const { return error_.empty() && nesting_.empty() && state_ == State::kBetween; }
  const std::string& error() const { return error_; }

 private:
  enum class State { kBetween, kString, kEscape, kUnicode, kLiteral };

  bool fail(std::string_view why);
  bool between(char c);
  bool escape(char c);
  bool unicode(char c);
  void append_code_point(unsigned code);
  bool end_string();
  bool end_literal();
  bool begin(char bracket);
  bool end(char bracket);
  void after_value();

  Handler& handler_;
  const std::size_t max_string_bytes_;
  State state_ = State::kBetween;
  std::string nesting_;  // '{' and '['
  bool wants_key_ = false;
  bool wants_colon_ = false;
  bool wants_value_ = true;
  std::string token_;
  unsigned code_ = 0;
  int code_digits_ = 0;
  unsigned high_surrogate_ = 0;
  std::size_t offset_ = 0;
  std::string error_;
};

}  // namespace lookout::apiserver::storage::etcd3
