// StructuralScanner: finds the end of a JSON value without parsing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lookout {

/// Follows brackets and strings through text that may be split anywhere. It looks at every byte
/// once, 64 at a time, and validates nothing else; that is the parser's job.
class StructuralScanner {
 public:
  /// Starts at the opening bracket of an object or array.
  void start() { *this = {}; }

  /// Continues with `text`. Returns the offset after the closing bracket of the value, or npos if
  /// the value continues.
  std::size_t scan(std::string_view text);
  /// The same without AVX2, which scan() uses if the processor has it.
  std::size_t scan_portably(std::string_view text);

  static constexpr std::size_t npos = std::string_view::npos;

  /// For the implementation.
  struct State {
    std::size_t depth = 0;
    bool in_string = false;
    bool escaped = false;  // the last byte was a backslash that escapes the next one
  };

 private:
  std::size_t scan_bytes(std::string_view text, std::size_t at);

  State state_;
};

/// The offset of the first byte that is not valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace lookout
