// Random: a small generator whose sequence is the same on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace lookout::sim {

/// Mixes a number so that consecutive numbers differ in all bits (SplitMix64's finalizer).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Unlike the standard library's distributions, these do not differ between implementations.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    const std::uint64_t out = mix(state_);
    state_ += 0x9e3779b97f4a7c15;
    return out;
  }
  /// In [0, n); 0 if n is 0.
  constexpr std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  /// In [low, high].
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  /// True with probability p.
  constexpr bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }

 private:
  std::uint64_t state_;
};

/// A hash of a text that is the same on every machine (FNV-1a).
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t out = 0xcbf29ce484222325;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return out;
}

}  // namespace lookout::sim
