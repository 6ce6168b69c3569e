// A parser for the JSON that API servers write.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/structural_scanner.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lookout::api::detail {

/// Parses the JSON that API servers usually write, several times as fast as a general parser. Gives
/// up on everything else: malformed text, and numbers other than integers of at most 18 digits.
/// Accepted text produces the same events as with RapidJSON. After a failure, parse the text with
/// RapidJSON from the beginning, so that errors are always RapidJSON's.
///
/// Handler is a RapidJSON handler with additional functions:
/// * `bool skipping()` is called after Key(). If it returns true and the next value is an object or
///   array, the parser skips that value and calls skipped(). Scalars are delivered in any case.
/// * `bool empty_object()` is called for `{}` instead of StartObject() and EndObject(). A third of
///   all values that an API server writes are empty objects (managedFields).
/// * `std::size_t recall(rest, levels)` is called at the start of any other object and array. A
///   handler that knows the value at the start of `rest` takes it, sets `levels` to the number of
///   nested containers in it (including itself, not counting `{}`), and returns the size of its
///   text; otherwise it returns 0.
/// * `void remember(text, levels)` is called after EndObject() and EndArray() with the container's
///   text.
template <class Handler>
class FastJson {
 public:
  explicit FastJson(Handler& handler) : handler_(handler) {}

  /// `text` must be followed by a NUL and 15 more readable bytes. It is not changed.
  bool parse(std::string_view text) {
    p_ = text.data();
    end_ = p_ + text.size();
    open_.clear();
    const bool good = run() && p_ == end_;
    // Do not keep the memory of a huge string.
    if (unescaped_.capacity() > kKept) unescaped_ = {};
    return good;
  }

 private:
  static constexpr std::size_t kKept = 1u << 20;

  struct Open {
    char bracket;        // the one that closes it
    std::size_t levels;  // of nested containers, including itself, not counting `{}`
    const char* begin;
  };

  enum class At { kValue, kMember, kBehindValue, kEnd, kFailure };

  bool run() {
    skip_space();
    for (At at = At::kValue;;) {
      switch (at) {
        case At::kValue:
          at = value();
          break;
        case At::kMember:
          at = member();
          break;
        case At::kBehindValue:
          at = behind_value();
          break;
        case At::kEnd:
          return true;
        case At::kFailure:
          return false;
      }
    }
  }

  static At behind(bool good) { return good ? At::kBehindValue : At::kFailure; }

  At value() {
    switch (*p_) {
      case '"': {
        std::string_view text;
        return behind(string(text) && handler_.String(text.data(), size_of(text), true));
      }
      case '{':
        ++p_;
        if (*p_ == '}') {
          ++p_;
          return behind(handler_.empty_object());
        }
        if (recall()) return At::kBehindValue;
        open_.push_back({'}', 1, p_ - 1});
        if (!handler_.StartObject()) return At::kFailure;
        skip_space();
        return *p_ == '}' ? At::kBehindValue : At::kMember;
      case '[':
        ++p_;
        if (recall()) return At::kBehindValue;
        open_.push_back({']', 1, p_ - 1});
        if (!handler_.StartArray()) return At::kFailure;
        skip_space();
        return *p_ == ']' ? At::kBehindValue : At::kValue;
      case 't':
        return behind(literal("true") && handler_.Bool(true));
      case 'f':
        return behind(literal("false") && handler_.Bool(false));
      case 'n':
        return behind(literal("null") && handler_.Null());
      default:
        return behind(number());
    }
  }

  At member() {
    std::string_view name;
    if (*p_ != '"' || !string(name)) return At::kFailure;
    skip_space();
    if (*p_ != ':' || !handler_.Key(name.data(), size_of(name), true)) return At::kFailure;
    ++p_;
    skip_space();
    if (!handler_.skipping() || (*p_ != '{' && *p_ != '[')) return At::kValue;
    StructuralScanner scanner;
    const std::size_t size = scanner.scan({p_, static_cast<std::size_t>(end_ - p_)});
    if (size == StructuralScanner::npos) return At::kFailure;
    p_ += size;
    handler_.skipped();
    return At::kBehindValue;
  }

  /// The end of the container, or a comma and the next member or element.
  At behind_value() {
    skip_space();
    if (open_.empty()) return At::kEnd;
    const char c = *p_;
    if (c == open_.back().bracket) {
      ++p_;
      const Open closed = open_.back();
      open_.pop_back();
      contains(closed.levels);
      if (!(c == '}' ? handler_.EndObject(0) : handler_.EndArray(0))) return At::kFailure;
      handler_.remember({closed.begin, static_cast<std::size_t>(p_ - closed.begin)}, closed.levels);
      return At::kBehindValue;
    }
    if (c != ',') return At::kFailure;
    ++p_;
    skip_space();
    return open_.back().bracket == '}' ? At::kMember : At::kValue;
  }

  /// After an opening bracket: skips the value if the handler knows it.
  bool recall() {
    std::size_t levels = 0;
    const char* const begin = p_ - 1;
    const std::size_t size =
        handler_.recall({begin, static_cast<std::size_t>(end_ - begin)}, levels);
    if (size == 0) return false;
    p_ = begin + size;
    contains(levels);
    return true;
  }

  /// Records that the innermost open container contains one with this many levels.
  void contains(std::size_t levels) {
    if (!open_.empty()) open_.back().levels = std::max(open_.back().levels, levels + 1);
  }

  static unsigned size_of(std::string_view text) { return static_cast<unsigned>(text.size()); }

  void skip_space() {
    while (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t') ++p_;
  }

  bool literal(std::string_view text) {
    // (Reads beyond the end are safe, see parse().)
    if (std::memcmp(p_, text.data(), text.size()) != 0) return false;
    p_ += text.size();
    return true;
  }

  bool number() {
    constexpr std::ptrdiff_t kMostDigits = 18;
    const char* const begin = p_;
    if (*p_ == '-') ++p_;
    const char* const digits = p_;
    while (*p_ >= '0' && *p_ <= '9') ++p_;
    const auto count = p_ - digits;
    if (count == 0 || count > kMostDigits || (*digits == '0' && count > 1)) return false;
    if (*p_ == '.' || *p_ == 'e' || *p_ == 'E') return false;
    return handler_.RawNumber(p_, static_cast<unsigned>(p_ - begin), true);
  }

  /// The next byte that ends a run of plain characters: a quote, a backslash, a control character.
  static const char* find_special(const char* p) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i control = _mm_set1_epi8(0x1F);
    for (;; p += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const __m128i special =
          _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                       _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
      const auto mask = static_cast<unsigned>(_mm_movemask_epi8(special));
      if (mask != 0) return p + std::countr_zero(mask);
    }
#else
    while (*p != '"' && *p != '\\' && static_cast<unsigned char>(*p) >= 0x20) ++p;
    return p;
#endif
  }

  /// Reads a string, including both quotes. `out` stays valid until the next string.
  bool string(std::string_view& out) {
    const char* const begin = ++p_;
    p_ = find_special(p_);
    if (*p_ == '"') {
      out = {begin, static_cast<std::size_t>(p_ - begin)};
      ++p_;
      return true;
    }
    return *p_ == '\\' && escaped_string(begin, out);
  }

  // Rare, and too large to be inlined together with string().
  [[gnu::noinline]] bool escaped_string(const char* begin, std::string_view& out) {
    unescaped_.clear();
    for (;;) {
      unescaped_.append(begin, p_);
      if (*p_ == '"') break;
      if (*p_ != '\\') return false;
      if (p_[1] == 'u') {
        if (!unicode_escape()) return false;
      } else {
        const char plain = unescape(p_[1]);
        if (plain == '\0') return false;
        unescaped_ += plain;
        p_ += 2;
      }
      begin = p_;
      p_ = find_special(p_);
    }
    ++p_;
    out = unescaped_;
    return true;
  }

  /// "\u0026", or a surrogate pair (RFC 8259, section 7). Go escapes <, > and & in this way.
  bool unicode_escape() {
    std::uint32_t code = 0;
    if (!code_unit(code)) return false;
    if (code >= 0xD800 && code < 0xE000) code = whole_character(code);
    append_utf8(code);
    return true;
  }

  /// The character that begins with this half of a surrogate pair; U+FFFD if the other half does not
  /// follow, as in Go (and in repair_surrogates()).
  std::uint32_t whole_character(std::uint32_t half) {
    constexpr std::uint32_t kReplacement = 0xFFFD;
    const char* const behind = p_;
    std::uint32_t low = 0;
    if (half < 0xDC00 && p_[0] == '\\' && p_[1] == 'u' && code_unit(low) && low >= 0xDC00 &&
        low < 0xE000)
      return 0x10000 + ((half - 0xD800) << 10) + (low - 0xDC00);
    p_ = behind;
    return kReplacement;
  }

  /// Decodes a \u escape with its four hexadecimal digits.
  bool code_unit(std::uint32_t& out) {
    for (int i = 2; i < 6; ++i) {
      const char c = p_[i];
      const char letter = static_cast<char>(c | 0x20);
      std::uint32_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<std::uint32_t>(c - '0');
      } else if (letter >= 'a' && letter <= 'f') {
        digit = static_cast<std::uint32_t>(letter - 'a') + 10;
      } else {
        return false;
      }
      out = out * 16 + digit;
    }
    p_ += 6;
    return true;
  }

  void append_utf8(std::uint32_t code) {
    const auto tail = [this](std::uint32_t bits) {
      unescaped_ += static_cast<char>(0x80 | (bits & 0x3F));
    };
    if (code < 0x80) {
      unescaped_ += static_cast<char>(code);
    } else if (code < 0x800) {
      unescaped_ += static_cast<char>(0xC0 | (code >> 6));
      tail(code);
    } else if (code < 0x10000) {
      unescaped_ += static_cast<char>(0xE0 | (code >> 12));
      tail(code >> 6);
      tail(code);
    } else {
      unescaped_ += static_cast<char>(0xF0 | (code >> 18));
      tail(code >> 12);
      tail(code >> 6);
      tail(code);
    }
  }

  static char unescape(char c) {
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      default:
        return '\0';
    }
  }

  Handler& handler_;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  std::vector<Open> open_;
  std::string unescaped_;
};

}  // namespace lookout::api::detail
