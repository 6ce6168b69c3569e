#include "lookout/base/structural_scanner.h"

#include <bit>
#include <cstring>
#include <utility>

#include "lookout/base/popcount.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lookout {
namespace {

constexpr std::size_t kBlock = 64;
// How many bytes ahead to prefetch.
constexpr std::size_t kAhead = 1024;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

/// One bit for each byte of a 64-byte block.
struct BlockMasks {
  std::uint64_t backslash = 0;
  std::uint64_t quote = 0;
  std::uint64_t open = 0;
  std::uint64_t close = 0;
};

#if defined(__x86_64__)
BlockMasks classify(const char* block) {
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  const __m128i fold = _mm_set1_epi8(0x20);  // '[' | 0x20 == '{', ']' | 0x20 == '}'
  const auto mask = [](__m128i v) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(v)));
  };
  BlockMasks out;
  for (unsigned i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i * 16));
    const __m128i folded = _mm_or_si128(bytes, fold);
    out.backslash |= mask(_mm_cmpeq_epi8(bytes, backslash)) << (i * 16);
    out.quote |= mask(_mm_cmpeq_epi8(bytes, quote)) << (i * 16);
    out.open |= mask(_mm_cmpeq_epi8(folded, open)) << (i * 16);
    out.close |= mask(_mm_cmpeq_epi8(folded, close)) << (i * 16);
  }
  return out;
}
#else
BlockMasks classify(const char* block) {
  BlockMasks out;
  for (unsigned i = 0; i < kBlock; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    switch (block[i]) {
      case '\\':
        out.backslash |= bit;
        break;
      case '"':
        out.quote |= bit;
        break;
      case '{':
      case '[':
        out.open |= bit;
        break;
      case '}':
      case ']':
        out.close |= bit;
        break;
      default:
        break;
    }
  }
  return out;
}
#endif

/// Bit i of the result is the parity of the bits up to and including i.
std::uint64_t prefix_xor(std::uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift <<= 1) bits ^= bits << shift;
  return bits;
}

std::uint64_t find_escaped_by(std::uint64_t backslash, bool& carry) {
  std::uint64_t escaped = 0;
  std::uint64_t left = backslash;
  bool first_escaped = carry;
  carry = false;
  if (first_escaped) {
    escaped |= 1;
    left &= ~std::uint64_t{1};
  }
  while (left != 0) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    if (i == 63) {
      carry = true;
      break;
    }
    escaped |= std::uint64_t{2} << i;
    left &= ~(std::uint64_t{3} << i);
  }
  return escaped;
}

/// The bytes that are escaped by a backslash. `carry`: whether the first byte is; set for the next
/// block.
inline std::uint64_t find_escaped(std::uint64_t backslash, bool& carry) {
  // (Most blocks have no backslash.)
  if (backslash == 0) return std::exchange(carry, false) ? 1 : 0;
  return find_escaped_by(backslash, carry);
}

/// The offset after the bracket in the block that closes the last of `depth` containers, or 0.
std::size_t find_end(std::uint64_t open, std::uint64_t close, std::size_t depth) {
  for (std::size_t closed = 1; close != 0; close &= close - 1, ++closed) {
    const auto i = static_cast<unsigned>(std::countr_zero(close));
    const std::uint64_t before = (std::uint64_t{1} << i) - 1;
    if (depth + popcount(open & before) == closed) return i + 1;
  }
  return 0;
}

/// Scans all whole blocks, or up to the one in which the value ends: then `end` is the offset after
/// the value in that block. Returns the size of the blocks before it.
std::size_t scan_blocks(std::string_view text, StructuralScanner::State& state, std::size_t& end) {
  std::size_t at = 0;
  for (; text.size() - at >= kBlock; at += kBlock) {
    __builtin_prefetch(text.data() + at + kAhead);
    const BlockMasks masks = classify(text.data() + at);
    const std::uint64_t quotes = masks.quote & ~find_escaped(masks.backslash, state.escaped);
    const std::uint64_t strings = prefix_xor(quotes) ^ (state.in_string ? kAll : 0);
    state.in_string = strings >> 63 != 0;
    const std::uint64_t open = masks.open & ~strings;
    const std::uint64_t close = masks.close & ~strings;
    const std::size_t closes = popcount(close);
    if (closes >= state.depth) {
      end = find_end(open, close, state.depth);
      if (end != 0) break;
    }
    state.depth += popcount(open) - closes;
  }
  return at;
}

#if defined(__x86_64__)

// With AVX2 (2013 and later), a block takes half as many instructions.
#define LOOKOUT_WITH_AVX2 __attribute__((target("avx2,pclmul,popcnt")))

bool has_avx2() {
  static const bool kHasThem = __builtin_cpu_supports("avx2") != 0 &&
                               __builtin_cpu_supports("pclmul") != 0 &&
                               __builtin_cpu_supports("popcnt") != 0;
  return kHasThem;
}

LOOKOUT_WITH_AVX2 inline std::uint64_t equal_bytes(__m256i low, __m256i high, __m256i wanted) {
  const auto low_mask =
      static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)));
  const auto high_mask =
      static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)));
  return low_mask | std::uint64_t{high_mask} << 32;
}

/// scan_blocks() with AVX2.
LOOKOUT_WITH_AVX2 std::size_t scan_blocks_with_avx2(std::string_view text,
                                                    StructuralScanner::State& state,
                                                    std::size_t& end) {
  const __m256i backslash = _mm256_set1_epi8('\\');
  const __m256i quote = _mm256_set1_epi8('"');
  const __m256i open_bracket = _mm256_set1_epi8('{');
  const __m256i close_bracket = _mm256_set1_epi8('}');
  const __m256i fold = _mm256_set1_epi8(0x20);
  const __m128i ones = _mm_set1_epi8(-1);
  std::size_t at = 0;
  for (; text.size() - at >= kBlock; at += kBlock) {
    const auto* const block = reinterpret_cast<const __m256i*>(text.data() + at);
    __builtin_prefetch(text.data() + at + kAhead);
    const __m256i low = _mm256_loadu_si256(block);
    const __m256i high = _mm256_loadu_si256(block + 1);
    const __m256i folded_low = _mm256_or_si256(low, fold);
    const __m256i folded_high = _mm256_or_si256(high, fold);
    const std::uint64_t quotes = equal_bytes(low, high, quote) &
                                 ~find_escaped(equal_bytes(low, high, backslash), state.escaped);
    // (A carry-less product with all ones: each bit is the parity of the bits up to it.)
    const __m128i parities =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(quotes)), ones, 0);
    const std::uint64_t strings =
        static_cast<std::uint64_t>(_mm_cvtsi128_si64(parities)) ^ (state.in_string ? kAll : 0);
    state.in_string = strings >> 63 != 0;
    const std::uint64_t open = equal_bytes(folded_low, folded_high, open_bracket) & ~strings;
    const std::uint64_t close = equal_bytes(folded_low, folded_high, close_bracket) & ~strings;
    const auto closes = static_cast<std::size_t>(__builtin_popcountll(close));
    if (closes >= state.depth) {
      end = find_end(open, close, state.depth);
      if (end != 0) break;
    }
    state.depth += static_cast<std::size_t>(__builtin_popcountll(open)) - closes;
  }
  return at;
}

/// The size of the whole blocks at the beginning that are ASCII.
LOOKOUT_WITH_AVX2 std::size_t ascii_blocks_with_avx2(std::string_view text) {
  constexpr std::size_t kVectors = 4;
  std::size_t at = 0;
  for (; text.size() - at >= kVectors * sizeof(__m256i); at += kVectors * sizeof(__m256i)) {
    const auto* const block = reinterpret_cast<const __m256i*>(text.data() + at);
    const __m256i first = _mm256_or_si256(_mm256_loadu_si256(block), _mm256_loadu_si256(block + 1));
    const __m256i last =
        _mm256_or_si256(_mm256_loadu_si256(block + 2), _mm256_loadu_si256(block + 3));
    if (_mm256_movemask_epi8(_mm256_or_si256(first, last)) != 0) break;
  }
  return at;
}
#endif

/// A number of bytes at the beginning that are ASCII; 0 if that is not faster to find than UTF-8.
std::size_t find_ascii([[maybe_unused]] std::string_view text) {
#if defined(__x86_64__)
  if (has_avx2()) return ascii_blocks_with_avx2(text);
#endif
  return 0;
}

}  // namespace

std::size_t StructuralScanner::scan(std::string_view text) {
#if defined(__x86_64__)
  if (has_avx2()) {
    std::size_t end = 0;
    const std::size_t at = scan_blocks_with_avx2(text, state_, end);
    return end != 0 ? at + end : scan_bytes(text, at);
  }
#endif
  return scan_portably(text);
}

std::size_t StructuralScanner::scan_portably(std::string_view text) {
  std::size_t end = 0;
  const std::size_t at = scan_blocks(text, state_, end);
  return end != 0 ? at + end : scan_bytes(text, at);
}

std::size_t StructuralScanner::scan_bytes(std::string_view text, std::size_t at) {
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool escaped = std::exchange(state_.escaped, false);
    if (c == '\\') {
      state_.escaped = !escaped;
    } else if (c == '"') {
      if (!escaped) state_.in_string = !state_.in_string;
    } else if (!state_.in_string) {
      if (c == '{' || c == '[') ++state_.depth;
      if ((c == '}' || c == ']') && --state_.depth == 0) return at + 1;
    }
  }
  return npos;
}

std::size_t find_invalid_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t n = text.size();
  std::size_t i = find_ascii(text);
  const auto continuation = [&](std::size_t at) { return at < n && (p[at] & 0xC0) == 0x80; };
  while (i < n) {
    if (n - i >= 32) {
      std::uint64_t words[4];
      std::memcpy(words, p + i, 32);
      if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u) == 0) {
        i += 32;
        continue;
      }
    }
    if (n - i >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, p + i, 8);
      if ((word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const unsigned char c = p[i];
    if (c < 0x80) {
      ++i;
    } else if (c >= 0xC2 && c <= 0xDF && continuation(i + 1)) {
      i += 2;
    } else if (c >= 0xE0 && c <= 0xEF && continuation(i + 1) && continuation(i + 2) &&
               !(c == 0xE0 && p[i + 1] < 0xA0) && !(c == 0xED && p[i + 1] >= 0xA0)) {
      i += 3;
    } else if (c >= 0xF0 && c <= 0xF4 && continuation(i + 1) && continuation(i + 2) &&
               continuation(i + 3) && !(c == 0xF0 && p[i + 1] < 0x90) &&
               !(c == 0xF4 && p[i + 1] >= 0x90)) {
      i += 4;
    } else {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace lookout
