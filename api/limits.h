// Limits that the codecs share.
#pragma once

#include <cstddef>

namespace lookout::api {

/// Deeper nesting is refused, so that reading an object may recurse.
inline constexpr std::size_t kMaxDepth = 1000;

}  // namespace lookout::api
