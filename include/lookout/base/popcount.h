// Counting bits where the processor may not be asked to.
#pragma once

#include <bit>
#include <cstdint>

namespace lookout {

/// How many bits are set. Without -mpopcnt, which not every x86-64 has, std::popcount is a call of
/// a function that looks things up in a table; this is a dozen instructions in place.
constexpr unsigned popcount(std::uint64_t bits) {
#if defined(__POPCNT__) || !defined(__x86_64__)
  return static_cast<unsigned>(std::popcount(bits));
#else
  bits -= bits >> 1 & 0x5555555555555555u;
  bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return static_cast<unsigned>(bits * 0x0101010101010101u >> 56);
#endif
}

}  // namespace lookout
