// The hash function of the symbol table, used by the generator and the library.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lookout::api::detail {

/// Hashes the length and up to 24 bytes (the first, the middle and the last eight). `text` must not
/// be empty.
inline std::uint64_t symbol_hash(std::string_view text) {
  const char* p = text.data();
  const std::size_t n = text.size();
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (n >= 8) {
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + n - 8, 8);
    if (n > 16) {
      std::uint64_t middle = 0;
      std::memcpy(&middle, p + n / 2 - 4, 8);
      b += middle * 0x9E3779B97F4A7C15u;
    }
  } else if (n >= 4) {
    std::uint32_t lo = 0;
    std::uint32_t hi = 0;
    std::memcpy(&lo, p, 4);
    std::memcpy(&hi, p + n - 4, 4);
    a = lo;
    b = hi;
  } else {
    a = static_cast<unsigned char>(p[0]);
    b = static_cast<std::uint64_t>(static_cast<unsigned char>(p[n / 2])) << 8 |
        static_cast<unsigned char>(p[n - 1]);
  }
  std::uint64_t h = (a ^ 0x2545F4914F6CDD1Du) * 0xA24BAED4963EE407u;
  h ^= std::rotl((b + n) * 0x9FB21C651E98DF25u, 32);
  return h ^ h >> 32;
}

/// A perfect hash: bucket -> displacement -> slot, with one probe and one comparison. A displacement
/// selects bits of the hash, and is added to them.
inline std::size_t symbol_bucket(std::uint64_t hash, std::size_t buckets) {
  return hash >> 23 & (buckets - 1);
}
inline std::size_t symbol_slot(std::uint64_t hash, std::uint32_t displacement, std::size_t slots) {
  return ((hash >> (displacement & 7)) + (displacement >> 3)) & (slots - 1);
}
/// Distinguishes most other texts from a slot's text without a comparison.
inline std::uint8_t symbol_tag(std::uint64_t hash) { return static_cast<std::uint8_t>(hash >> 56); }

/// Whether n bytes are equal. Compares up to 16 bytes, the usual case, in two words.
inline bool equal_bytes(const char* a, const char* b, std::size_t n) {
  const auto words = [&](auto first_a) {
    auto first_b = first_a;
    auto last_a = first_a;
    auto last_b = first_a;
    constexpr std::size_t kSize = sizeof first_a;
    std::memcpy(&first_a, a, kSize);
    std::memcpy(&first_b, b, kSize);
    std::memcpy(&last_a, a + n - kSize, kSize);
    std::memcpy(&last_b, b + n - kSize, kSize);
    return ((first_a ^ first_b) | (last_a ^ last_b)) == 0;
  };
  if (n > 16) return std::memcmp(a, b, n) == 0;
  if (n >= 8) return words(std::uint64_t{});
  if (n >= 4) return words(std::uint32_t{});
  for (std::size_t i = 0; i < n; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

}  // namespace lookout::api::detail
