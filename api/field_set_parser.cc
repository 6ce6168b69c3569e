#include "api/field_set_parser.h"

#include <bit>

#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/limits.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lookout::api::detail {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

/// The first byte that is not plain, or the end.
const char* find_special(const char* p, const char* const end) {
#if defined(__SSE2__)
  const __m128i before_plain = _mm_set1_epi8(0x1F);
  const __m128i behind_plain = _mm_set1_epi8(0x7F);
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  for (; end - p >= 16; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    // (As signed numbers all bytes from 0x80 on are negative.)
    const __m128i plain = _mm_andnot_si128(
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                     _mm_cmpeq_epi8(bytes, behind_plain)),
        _mm_cmpgt_epi8(bytes, before_plain));
    const auto special = ~static_cast<unsigned>(_mm_movemask_epi8(plain)) & 0xFFFFu;
    if (special != 0) return p + std::countr_zero(special);
  }
#endif
  while (p != end && is_plain(*p)) ++p;
  return p;
}

}  // namespace

bool FieldSetParser::parse(std::string_view text) {
  const FlatWriter::Mark before = writer_.mark();
  if (read(text.data(), text.data() + text.size())) return true;
  writer_.rewind(before);
  return false;
}

bool FieldSetParser::read(const char* p, const char* const end) {
  const std::size_t outside = writer_.depth();
  for (;;) {
    // Before an object.
    if (end - p < 2 || *p != '{' || writer_.depth() >= kMaxServedDepth) return false;
    if (p[1] == '}') {
      // As most are.
      p += 2;
      writer_.empty_object();
    } else {
      ++p;
      writer_.begin_object();
    }
    // Before a member or behind an object.
    while (p[-1] == '}') {
      if (writer_.depth() == outside) return p == end;
      if (p == end) return false;
      if (*p == ',') {
        ++p;
        break;
      }
      if (*p != '}') return false;
      ++p;
      writer_.end_object();
      if (writer_.overworked()) return false;
    }
    if (p == end || *p != '"' || !member(p, end)) return false;
  }
}

bool FieldSetParser::member(const char*& p, const char* const end) {
  const char* const begin = ++p;
  p = find_special(p, end);
  std::string_view name(begin, static_cast<std::size_t>(p - begin));
  if (p != end && *p == '\\') {
    unescaped_ = name;
    while (p != end && *p == '\\') {
      if (++p == end || (*p != '"' && *p != '\\')) return false;
      const char* const escaped = p;
      p = find_special(p + 1, end);
      unescaped_.append(escaped, p);
    }
    name = unescaped_;
  }
  if (end - p < 2 || *p != '"' || p[1] != ':') return false;
  p += 2;
  writer_.key(name);
  return true;
}

}  // namespace lookout::api::detail
