// Finds where a JSON value ends without parsing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lookout {

/// Follows brackets and strings through text that may be cut anywhere. It looks at every byte once,
/// 64 at a time, and checks nothing else: whether the text is valid JSON is for the parser to say.
class StructuralScanner {
 public:
  /// Starts at the opening bracket of an object or array.
  void start() { *this = {}; }

  /// Continues with `text` and returns the offset behind the closing bracket that ends the value,
  /// or npos if it ends later.
  std::size_t scan(std::string_view text);

  static constexpr std::size_t npos = std::string_view::npos;

 private:
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;  // the last byte was a backslash that escapes the next one
};

/// Whether `text` is well-formed UTF-8, and if not, where it stops being so.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace lookout
