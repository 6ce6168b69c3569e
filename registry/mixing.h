// Deterministic hash functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace lookout::registry::detail {

/// Mixes the bits of a number (the finalizer of splitmix64).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// FNV-1a, mixed. Unlike std::hash, it is the same in every program.
constexpr std::uint64_t hashed(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return mixed(hash);
}

/// A number in [0, 1).
constexpr double fraction(std::uint64_t random) {
  return static_cast<double>(random >> 11) * 0x1.0p-53;
}

}  // namespace lookout::registry::detail
