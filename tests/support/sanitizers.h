// True if the tests run under a sanitizer, which makes them several times slower.
#pragma once

#include <cstddef>

namespace lookout::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// The step of tests that try every position of a text.
inline constexpr std::size_t kPlaceStep = kSanitized ? 7 : 1;

}  // namespace lookout::test
