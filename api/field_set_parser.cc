#include "api/field_set_parser.h"

#include <algorithm>
#include <bit>

#include "api/repeated_values.h"
#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/flat_writer.h"

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
    // (As signed numbers, all bytes from 0x80 on are negative.)
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

FieldSetParser::Taken FieldSetParser::parse(std::string_view text, std::size_t max_levels) {
  const FlatWriter::Mark before = writer_.mark();
  const char* p = text.data();
  open_.clear();
  if (read(p, p + text.size(), max_levels))
    return {static_cast<std::size_t>(p - text.data()), levels_};
  writer_.rewind(before);
  return {};
}

bool FieldSetParser::read(const char*& p, const char* const end, std::size_t max_levels) {
  for (;;) {
    // At the start of a non-empty set.
    if (p == end || *p != '{' || open_.size() >= max_levels) return false;
    open_.push_back({p, 1});
    writer_.begin_field_set();
    ++p;
    for (bool nested = false; !nested;) {
      if (!entry(p, end) || end - p < 2 || *p != '{') return false;
      if (p[1] == '}') {
        // The most frequent case.
        p += 2;
      } else {
        writer_.nest_in_entry();
        nested = !recall(p, end, max_levels);
        if (nested) break;
      }
      while (p != end && *p == '}') {
        ++p;
        writer_.end_field_set();
        if (writer_.overworked()) return false;
        const Open closed = open_.back();
        open_.pop_back();
        levels_ = closed.levels;
        if (repeated_ != nullptr) {
          repeated_->keep({closed.begin, static_cast<std::size_t>(p - closed.begin)},
                          writer_.closed_container(), closed.levels);
        }
        if (open_.empty()) return true;
        open_.back().levels = std::max(open_.back().levels, closed.levels + 1);
      }
      if (p == end || *p != ',') return false;
      ++p;
    }
  }
}

bool FieldSetParser::recall(const char*& p, const char* const end, std::size_t max_levels) {
  if (repeated_ == nullptr) return false;
  const RepeatedValues::Found found = repeated_->find({p, static_cast<std::size_t>(end - p)});
  if (found.text_size == 0 || !is_field_set(found.value.data()) ||
      open_.size() + found.levels > max_levels)
    return false;
  writer_.container(found.value);
  p += found.text_size;
  open_.back().levels = std::max(open_.back().levels, found.levels + 1);
  return true;
}

bool FieldSetParser::entry(const char*& p, const char* const end) {
  if (p == end || *p != '"') return false;
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
  return writer_.field_set_entry(name);
}

}  // namespace lookout::api::detail
