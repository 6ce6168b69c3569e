#include "lookout/base/structural_scanner.h"

#include <bit>
#include <cstring>

#include "lookout/base/popcount.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lookout {
namespace {

/// One bit for each byte of a 64-byte block.
struct BlockMasks {
  std::uint64_t backslash = 0;
  std::uint64_t quote = 0;
  std::uint64_t open = 0;
  std::uint64_t close = 0;
};

#if defined(__SSE2__)
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
  for (unsigned i = 0; i < 64; ++i) {
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

/// The bytes that a backslash escapes. `carry` says whether the first byte is one, and afterwards
/// the same of the next block.
std::uint64_t find_escaped(std::uint64_t backslash, bool& carry) {
  if (backslash == 0) {
    const std::uint64_t escaped = carry ? 1 : 0;
    carry = false;
    return escaped;
  }
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

}  // namespace

std::size_t StructuralScanner::scan(std::string_view text) {
  std::size_t at = 0;
  for (; text.size() - at >= 64; at += 64) {
    const BlockMasks masks = classify(text.data() + at);
    const std::uint64_t escaped = find_escaped(masks.backslash, escaped_);
    const std::uint64_t quotes = masks.quote & ~escaped;
    const std::uint64_t strings = prefix_xor(quotes) ^ (in_string_ ? ~std::uint64_t{0} : 0);
    in_string_ = (strings >> 63) != 0;
    const std::uint64_t open = masks.open & ~strings;
    std::uint64_t close = masks.close & ~strings;
    const auto closes = static_cast<std::size_t>(popcount(close));
    if (closes < depth_) {
      depth_ += static_cast<std::size_t>(popcount(open)) - closes;
      continue;
    }
    // The value may end in this block: look at its closing brackets one by one.
    for (std::size_t closed = 0; close != 0; close &= close - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(close));
      const std::uint64_t before = (std::uint64_t{1} << i) - 1;
      ++closed;
      if (depth_ + static_cast<std::size_t>(popcount(open & before)) == closed) return at + i + 1;
    }
    depth_ += static_cast<std::size_t>(popcount(open)) - closes;
  }
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool escaped = escaped_;
    escaped_ = false;
    if (c == '\\') {
      escaped_ = !escaped;
    } else if (c == '"') {
      if (!escaped) in_string_ = !in_string_;
    } else if (!in_string_) {
      if (c == '{' || c == '[') ++depth_;
      if ((c == '}' || c == ']') && --depth_ == 0) return at + 1;
    }
  }
  return npos;
}

std::size_t find_invalid_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t n = text.size();
  std::size_t i = 0;
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
