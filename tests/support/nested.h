// Deeply nested JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lookout::test {

/// A number inside `depth` pairs of `open` and `close`.
inline std::string nested_json(std::size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

}  // namespace lookout::test
