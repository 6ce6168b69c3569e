// Helpers for the fuzzers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>

namespace lookout::fuzz {

/// Aborts unless the condition holds, for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Random numbers that depend on the input only, so that a finding can be replayed.
inline std::minstd_rand random_for(std::string_view input) {
  std::uint32_t hash = 2166136261u;
  for (const char c : input) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return std::minstd_rand(hash);
}

/// Passes `input` to `feed` in pieces of all sizes, including empty ones.
template <class Feed>
void feed_in_pieces(std::string_view input, Feed&& feed) {
  auto random = random_for(input);
  const std::size_t longest = 1 + random() % 200;
  while (!input.empty()) {
    const std::size_t size = std::min<std::size_t>(random() % (longest + 1), input.size());
    feed(input.substr(0, size));
    input.remove_prefix(size);
  }
}

}  // namespace lookout::fuzz
