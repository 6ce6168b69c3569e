// The flat form of a decoded object, byte for byte. docs/object-format.md describes it; this file
// is the only one that knows it (FlatWriter writes it, Value reads it).
//
// A value is a tag byte, followed by the data that the tag calls for:
//
//   0x00         null
//   0x01         false
//   0x02         true
//   0x03         {}
//   0x04         []
//   0x05         object: varint length, members
//   0x06         array: varint length, elements
//   0x07         integer: zigzag varint
//   0x08         integer above INT64_MAX: 8 bytes
//   0x09         double: 8 bytes
//   0x0A         number kept as text (more digits than a double has): varint length, text
//   0x0B         string: varint length, bytes
//   0x10-0x3F    the integers 0 to 47
//   0x40-0x7F    string of 0 to 63 bytes: the bytes
//   0x80-0xFF    string that is a symbol: 15 bits, high byte first
//
// A member is a key and a value. A key is
//
//   0x00-0xBF    a common schema field (short code; these are in the order of members)
//   0xC0-0xDF    13 bits, high byte first: symbol * 2 + 1 if the name is "f:" and the symbol's text
//   0xE0-0xFE    name of 0 to 30 bytes: the bytes
//   0xFF         name: varint length, bytes
//
// There is one encoding for each content: every value takes its shortest form, symbols are used
// wherever the text has one, and members are sorted: first the schema fields by rank, then all
// others by the bytes of their names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lookout/api/detail/symbol_table.h"

namespace lookout::api::detail {

enum Tag : std::uint8_t {
  kTagNull = 0x00,
  kTagFalse = 0x01,
  kTagTrue = 0x02,
  kTagEmptyObject = 0x03,
  kTagEmptyArray = 0x04,
  kTagObject = 0x05,
  kTagArray = 0x06,
  kTagInt = 0x07,
  kTagBigUint = 0x08,
  kTagDouble = 0x09,
  kTagRawNumber = 0x0A,
  kTagString = 0x0B,
  kTagSmallInt = 0x10,
  kTagShortString = 0x40,
  kTagSymbol = 0x80,
};

inline constexpr std::uint64_t kSmallInts = 0x30;
inline constexpr std::size_t kMaxShortString = 0x3F;
inline constexpr std::uint8_t kKeySymbol = 0xC0;
inline constexpr std::uint8_t kKeyInline = 0xE0;
inline constexpr std::uint8_t kKeyLong = 0xFF;
inline constexpr std::size_t kMaxShortKey = 30;

inline std::uint64_t read_varint(const std::uint8_t*& p) {
  std::uint64_t value = *p++;
  if (value < 0x80) return value;
  value &= 0x7F;
  for (unsigned shift = 7;; shift += 7) {
    const std::uint64_t byte = *p++;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

/// Writes at most 10 bytes and returns how many.
inline std::size_t write_varint(std::uint8_t* out, std::uint64_t value) {
  std::size_t n = 0;
  while (value >= 0x80) {
    out[n++] = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  out[n++] = static_cast<std::uint8_t>(value);
  return n;
}

inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^
         (value < 0 ? ~std::uint64_t{0} : std::uint64_t{0});
}
inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

template <class T>
T read_fixed(const std::uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// The size of a value, including its tag, by the tag; 0 if the size depends on the bytes after the
/// tag. Tags come in no predictable order, so a table lookup costs less than a mispredicted branch.
inline constexpr std::array<std::uint8_t, 256> kValueSizes = [] {
  std::array<std::uint8_t, 256> sizes{};
  for (std::size_t tag = 0; tag < sizes.size(); ++tag) {
    sizes[tag] = static_cast<std::uint8_t>(tag >= kTagSymbol        ? 2
                                           : tag >= kTagShortString ? 1 + (tag & kMaxShortString)
                                                                    : 1);
  }
  for (const Tag tag : {kTagObject, kTagArray, kTagInt, kTagRawNumber, kTagString}) sizes[tag] = 0;
  for (const Tag tag : {kTagBigUint, kTagDouble}) sizes[tag] = 9;
  return sizes;
}();

/// The byte after a value.
inline const std::uint8_t* skip_value(const std::uint8_t* p) {
  const std::uint8_t tag = *p;
  if (const std::size_t size = kValueSizes[tag]; size != 0) return p + size;
  const std::uint64_t length_or_number = read_varint(++p);
  return tag == kTagInt ? p : p + length_or_number;
}

/// The byte after a key.
inline const std::uint8_t* skip_key(const std::uint8_t* p) {
  const std::uint8_t code = *p++;
  if (code < kKeyInline) return p + (code >= kKeySymbol ? 1 : 0);
  if (code != kKeyLong) return p + (code - kKeyInline);
  const std::uint64_t length = read_varint(p);
  return p + length;
}

/// A decoded key.
struct Key {
  std::uint16_t symbol = kNoSymbol;  // set unless the name is stored inline
  bool managed = false;              // the name is "f:" and the symbol's text
  std::string_view inline_name;
  const std::uint8_t* end = nullptr;

  std::string_view text() const {
    if (symbol == kNoSymbol) return inline_name;
    return managed ? managed_symbol_text(symbol) : symbol_text(symbol);
  }
};

inline Key read_key(const std::uint8_t* p) {
  Key key;
  const std::uint8_t code = *p++;
  if (code < kKeySymbol) {
    key.symbol = short_code_symbol(code);
    key.end = p;
  } else if (code < kKeyInline) {
    const auto bits = static_cast<std::uint16_t>((code & 0x1F) << 8 | *p++);
    key.symbol = bits >> 1;
    key.managed = (bits & 1) != 0;
    key.end = p;
  } else {
    const std::uint64_t length =
        code == kKeyLong ? read_varint(p) : std::uint64_t{code} - kKeyInline;
    key.inline_name = {reinterpret_cast<const char*>(p), length};
    key.end = p + length;
  }
  return key;
}

/// The encoded form of a key, for comparison with stored keys. It exists for symbols only: other
/// names are compared as text.
struct EncodedKey {
  std::uint8_t bytes[2] = {};
  std::uint8_t size = 0;  // 0: not a symbol
};

inline EncodedKey encode_symbol_key(std::uint16_t symbol, bool managed) {
  const std::uint8_t code = managed ? kNoShortCode : symbol_short_code(symbol);
  if (code != kNoShortCode) return {{code, 0}, 1};
  const auto bits = static_cast<std::uint16_t>(symbol << 1 | (managed ? 1 : 0));
  return {{static_cast<std::uint8_t>(kKeySymbol | bits >> 8), static_cast<std::uint8_t>(bits)}, 2};
}

inline EncodedKey encode_key(std::string_view name) {
  const bool managed = name.size() > 2 && name[0] == 'f' && name[1] == ':';
  const std::uint16_t symbol = find_symbol(managed ? name.substr(2) : name);
  return symbol == kNoSymbol ? EncodedKey{} : encode_symbol_key(symbol, managed);
}

/// The complete encoded form of a key or a string value: equal bytes mean equal text.
inline std::string encode_inline(std::uint8_t short_tag, std::size_t max_short,
                                 std::uint8_t long_tag, std::string_view text) {
  std::uint8_t head[11] = {static_cast<std::uint8_t>(short_tag + text.size())};
  std::size_t n = 1;
  if (text.size() > max_short) {
    head[0] = long_tag;
    n += write_varint(head + 1, text.size());
  }
  return std::string(reinterpret_cast<const char*>(head), n).append(text);
}

inline std::string encode_whole_key(std::string_view name) {
  const EncodedKey key = encode_key(name);
  if (key.size != 0) return {reinterpret_cast<const char*>(key.bytes), key.size};
  return encode_inline(kKeyInline, kMaxShortKey, kKeyLong, name);
}

inline std::string encode_whole_string(std::string_view text) {
  const std::uint16_t symbol = find_symbol(text);
  if (symbol == kNoSymbol) return encode_inline(kTagShortString, kMaxShortString, kTagString, text);
  return {static_cast<char>(kTagSymbol | symbol >> 8), static_cast<char>(symbol & 0xFF)};
}

struct Range {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* end = nullptr;
};

/// The contents of an object or array value; empty for every other value.
inline Range contents(const std::uint8_t* value, Tag tag) {
  if (value == nullptr || *value != tag) return {};
  ++value;
  const std::uint64_t length = read_varint(value);
  return {value, value + length};
}

/// The value of the member with this short code at or after the member `p`; null if there is none.
/// Members are ordered by short code, so the search ends at the first greater one.
inline const std::uint8_t* find_common(const std::uint8_t* p, const std::uint8_t* end,
                                       std::uint8_t code) {
  while (p < end) {
    const std::uint8_t key = *p++;
    if (key >= code) {
      if (key == code) return p;
      if (key < kKeySymbol || key >= kKeyInline) return nullptr;
      ++p;  // a symbol of two bytes stands anywhere
    }
    p = skip_value(p);
  }
  return nullptr;
}

/// The value of the member whose key has this complete encoded form; null if there is none.
inline const std::uint8_t* find_member(const std::uint8_t* object, std::string_view encoded_key) {
  const Range range = contents(object, kTagObject);
  const std::size_t size = encoded_key.size();
  const auto first = static_cast<std::uint8_t>(encoded_key[0]);
  const auto last = static_cast<std::uint8_t>(encoded_key[size - 1]);
  for (const std::uint8_t* p = range.begin; p < range.end;) {
    const std::uint8_t* value = skip_key(p);
    // Symbols take one or two bytes, and these two bytes distinguish most other keys: a call of
    // memcmp for each key would cost more than the walk.
    if (p[0] == first && static_cast<std::size_t>(value - p) == size && value[-1] == last &&
        (size <= 2 || std::memcmp(p, encoded_key.data(), size) == 0))
      return value;
    p = skip_value(value);
  }
  return nullptr;
}

}  // namespace lookout::api::detail
