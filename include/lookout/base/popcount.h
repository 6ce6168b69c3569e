// Bit counting without the popcnt instruction.
#pragma once

#include <bit>
#include <cstdint>

namespace lookout {

/// The number of set bits. Without -mpopcnt, which not every x86-64 processor supports,
/// std::popcount calls a function with a lookup table; this code is a dozen inline instructions.
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
