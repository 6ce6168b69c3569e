// TimeText: fast formatting of many times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lookout::api::detail {

/// Formats times like format_time() and format_micro_time(). An object has about ten times, mostly of
/// one day and many equal, so this reuses parts of the previous text. Not thread-safe.
class TimeText {
 public:
  /// The range of RFC 3339: the years 0 to 9999, in seconds since 1970.
  static constexpr std::int64_t kBegin = -62167219200;
  static constexpr std::int64_t kEnd = 253402300800;

  /// `time` must be within these limits. The result is valid until the next call.
  std::string_view seconds(std::int64_t time) {
    write(time);
    text_[kSize] = 'Z';
    return {text_, kSize + 1};
  }
  /// The same with `micros` (0 to 999999).
  std::string_view micros(std::int64_t time, std::int64_t micros) {
    constexpr std::size_t kDigits = 6;
    write(time);
    text_[kSize] = '.';
    for (std::size_t i = kDigits; i > 0; --i, micros /= 10)
      text_[kSize + i] = static_cast<char>('0' + micros % 10);
    text_[kSize + kDigits + 1] = 'Z';
    return {text_, kSize + kDigits + 2};
  }

 private:
  static constexpr std::size_t kSize = 19;  // 2006-01-02T15:04:05
  static constexpr std::int64_t kDay = 86400;

  void write(std::int64_t time);
  void two(std::size_t at, std::int64_t value) {
    text_[at] = static_cast<char>('0' + value / 10);
    text_[at + 1] = static_cast<char>('0' + value % 10);
  }

  // The time and the day at the start of text_.
  std::int64_t time_ = kEnd;
  std::int64_t day_ = kEnd;
  char text_[kSize + 8] = {};
};

}  // namespace lookout::api::detail
