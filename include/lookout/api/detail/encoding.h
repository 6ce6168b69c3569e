// The flat form of a decoded object, byte for byte. docs/object-format.md describes it; this file
// is the only one that defines it (FlatWriter writes it, Value reads it).
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
//   0x0C         field set: varint length, entries
//   0x0D         repeated string: 2 bytes, the distance back to the tag of the first occurrence
//   0x10-0x2F    the integers 0 to 31
//   0x30-0x3F    field set of 1 to 16 bytes: the entries
//   0x40-0x7F    string of 0 to 63 bytes: the bytes
//   0x80-0x8F    string that is a symbol: 12 bits, high byte first
//   0x90-0xBF    string that is one of the 48 most common symbols
//   0xC0-0xEF    object of 1 to 48 bytes: the members
//   0xF0-0xFF    array of 1 to 16 bytes: the elements
//
// A member is a key and a value. A key is
//
//   0x00-0xBF    a common schema field (short code; these are in the order of members)
//   0xC0-0xDF    symbol: 13 bits, high byte first
//   0xE0-0xFE    name of 0 to 30 bytes: the bytes
//   0xFF         name: varint length, bytes
//
// A field set is an object as in fieldsV1 of managed fields: all of its names are "." or begin
// with "f:", "k:", "v:" or "i:", and all of its values are {} or field sets. An entry is a name,
// and a value if bit 0 of its first byte is set; else the value is {}. A name is
//
//   0x00-0xBF    one of the 96 most common names; 0x00 is "."
//   0xC0-0xEF    24 * 256 numbers in two bytes, without bit 0 of the first: symbol * 2, plus 1 if
//                the name is "f:" and the symbol's text
//   0xF0-0xF1    name: varint length, bytes
//
// There is one encoding for each content: every value takes its shortest form, symbols are used
// wherever the text has one, and members are sorted: first the schema fields by rank, then all
// others by the bytes of their names. In a finished object, RepeatedStrings decides which strings
// are 0x0D; lengths take as many bytes as they do with these strings written out.
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
  kTagFieldSet = 0x0C,
  kTagAgain = 0x0D,
  kTagSmallInt = 0x10,
  kTagShortFieldSet = 0x30,
  kTagShortString = 0x40,
  kTagSymbol = 0x80,
  kTagCommonString = 0x90,
  kTagShortObject = 0xC0,
  kTagShortArray = 0xF0,
};

inline constexpr std::uint64_t kSmallInts = 0x20;
inline constexpr std::size_t kMaxShortFieldSet = 0x10;
inline constexpr std::size_t kMaxShortString = 0x3F;
inline constexpr std::size_t kMaxShortObject = 0x30;
inline constexpr std::size_t kMaxShortArray = 0x10;
inline constexpr std::uint8_t kKeySymbol = 0xC0;
inline constexpr std::uint8_t kKeyInline = 0xE0;
inline constexpr std::uint8_t kKeyLong = 0xFF;
inline constexpr std::size_t kMaxShortKey = 30;
inline constexpr std::uint8_t kSetSelf = 0x00;  // "."
inline constexpr std::uint8_t kSetNested = 0x01;
inline constexpr std::uint8_t kSetSymbol = 0xC0;
inline constexpr std::uint8_t kSetInline = 0xF0;

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
  sizes.fill(1);
  for (const Tag tag : {kTagObject, kTagArray, kTagInt, kTagRawNumber, kTagString, kTagFieldSet})
    sizes[tag] = 0;
  for (const Tag tag : {kTagBigUint, kTagDouble}) sizes[tag] = 9;
  sizes[kTagAgain] = 3;
  const auto sized = [&](std::size_t first, std::size_t shortest, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      sizes[first + i] = static_cast<std::uint8_t>(1 + shortest + i);
  };
  sized(kTagShortFieldSet, 1, kMaxShortFieldSet);
  sized(kTagShortString, 0, kMaxShortString + 1);
  for (std::size_t tag = kTagSymbol; tag < kTagCommonString; ++tag) sizes[tag] = 2;
  sized(kTagShortObject, 1, kMaxShortObject);
  sized(kTagShortArray, 1, kMaxShortArray);
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
  std::string_view inline_name;
  const std::uint8_t* end = nullptr;

  std::string_view text() const { return symbol == kNoSymbol ? inline_name : symbol_text(symbol); }
};

inline Key read_key(const std::uint8_t* p) {
  Key key;
  const std::uint8_t code = *p++;
  if (code < kKeySymbol) {
    key.symbol = short_code_symbol(code);
    key.end = p;
  } else if (code < kKeyInline) {
    key.symbol = static_cast<std::uint16_t>((code & 0x1F) << 8 | *p++);
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

inline EncodedKey encode_symbol_key(std::uint16_t symbol) {
  const std::uint8_t code = symbol_short_code(symbol);
  if (code != kNoShortCode) return {{code, 0}, 1};
  return {{static_cast<std::uint8_t>(kKeySymbol | symbol >> 8), static_cast<std::uint8_t>(symbol)},
          2};
}

inline EncodedKey encode_key(std::string_view name) {
  const std::uint16_t symbol = find_symbol(name);
  return symbol == kNoSymbol ? EncodedKey{} : encode_symbol_key(symbol);
}

/// The encoded form of a string that is a symbol: one or two bytes.
inline std::size_t write_symbol_string(std::uint8_t* out, std::uint16_t symbol) {
  const std::uint8_t code = symbol_string_code(symbol);
  const bool common = code != kNoShortCode;
  out[0] = static_cast<std::uint8_t>(common ? kTagCommonString + code : kTagSymbol | symbol >> 8);
  out[1] = static_cast<std::uint8_t>(symbol);
  return common ? 1 : 2;
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
  std::uint8_t bytes[2];
  const std::size_t size = write_symbol_string(bytes, symbol);
  return {reinterpret_cast<const char*>(bytes), size};
}

/// The first occurrence of the string that this kTagAgain repeats.
inline const std::uint8_t* first_string(const std::uint8_t* again) {
  return again - read_fixed<std::uint16_t>(again + 1);
}
/// False if the value contains no kTagAgain: values with equal bytes are then equal.
inline bool may_repeat(const std::uint8_t* value) {
  const auto size = static_cast<std::size_t>(skip_value(value) - value);
  return std::memchr(value, kTagAgain, size) != nullptr;
}

inline bool is_symbol_string(std::uint8_t tag) {
  return tag >= kTagSymbol && tag < kTagShortObject;
}
/// The text of a string that is a symbol.
inline std::string_view symbol_string_text(const std::uint8_t* value) {
  const std::uint8_t tag = *value;
  return symbol_text(tag >= kTagCommonString
                         ? string_code_symbol(tag - kTagCommonString)
                         : static_cast<std::uint16_t>((tag - kTagSymbol) << 8 | value[1]));
}

struct Range {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* end = nullptr;
};

/// The contents of a value whose tag is `tag`, or one of the `count` from `short_tag` on; empty for
/// every other value.
inline Range contents(const std::uint8_t* value, Tag tag, Tag short_tag, std::size_t count) {
  if (value == nullptr) return {};
  const std::size_t shortness = std::size_t{*value} - short_tag;
  ++value;
  if (shortness < count) return {value, value + shortness + 1};
  if (value[-1] != tag) return {};
  const std::uint64_t length = read_varint(value);
  return {value, value + length};
}

/// The members of an object that is not a field set.
inline Range object_contents(const std::uint8_t* value) {
  return contents(value, kTagObject, kTagShortObject, kMaxShortObject);
}
inline Range array_contents(const std::uint8_t* value) {
  return contents(value, kTagArray, kTagShortArray, kMaxShortArray);
}
inline Range field_set_contents(const std::uint8_t* value) {
  return contents(value, kTagFieldSet, kTagShortFieldSet, kMaxShortFieldSet);
}

inline bool is_field_set(const std::uint8_t* value) {
  return *value == kTagFieldSet || (*value >= kTagShortFieldSet && *value < kTagShortString);
}

/// Whether a field set may have a member of this name.
inline bool is_field_set_name(std::string_view name) {
  if (name.size() < 2 || name[1] != ':') return name == ".";
  return name[0] == 'f' || name[0] == 'k' || name[0] == 'v' || name[0] == 'i';
}

/// The value of a field set entry that has no value of its own.
inline constexpr std::uint8_t kEmptyObject = kTagEmptyObject;

/// A decoded entry of a field set.
struct FieldSetEntry {
  std::string_view name;
  const std::uint8_t* value = &kEmptyObject;
  const std::uint8_t* end = nullptr;
};

inline FieldSetEntry read_field_set_entry(const std::uint8_t* p) {
  FieldSetEntry entry;
  const std::uint8_t code = *p++;
  if (code < kSetInline) {
    const std::uint16_t number =
        code < kSetSymbol ? field_set_name(code >> 1)
                          : static_cast<std::uint16_t>((code - kSetSymbol) >> 1 << 8 | *p++);
    const auto symbol = static_cast<std::uint16_t>(number >> 1);
    entry.name = (number & 1) != 0 ? managed_symbol_text(symbol) : symbol_text(symbol);
  } else {
    const std::uint64_t length = read_varint(p);
    entry.name = {reinterpret_cast<const char*>(p), length};
    p += length;
  }
  if ((code & kSetNested) != 0) {
    entry.value = p;
    p = skip_value(p);
  }
  entry.end = p;
  return entry;
}

/// The number of a name in field sets that is made of a symbol, else kNoFieldSetNumber.
inline constexpr std::size_t kNoFieldSetNumber = ~std::size_t{0};
inline std::size_t field_set_number(std::string_view name) {
  const std::size_t is_field = name[0] == 'f' ? 1 : 0;
  const std::uint16_t symbol = find_symbol(name.substr(2 * is_field));
  return symbol == kNoSymbol ? kNoFieldSetNumber : std::size_t{symbol} * 2 + is_field;
}

/// Writes a name in at most name.size() + 11 bytes and returns how many.
inline std::size_t write_field_set_name(std::uint8_t* out, std::string_view name) {
  if (name.size() == 1) {
    out[0] = kSetSelf;
    return 1;
  }
  const std::size_t number = field_set_number(name);
  if (number == kNoFieldSetNumber) {
    out[0] = kSetInline;
    const std::size_t n = 1 + write_varint(out + 1, name.size());
    std::memcpy(out + n, name.data(), name.size());
    return n + name.size();
  }
  const std::uint8_t code = field_set_code(number);
  out[0] = static_cast<std::uint8_t>(code != kNoShortCode ? std::size_t{code} << 1
                                                          : kSetSymbol + (number >> 8 << 1));
  out[1] = static_cast<std::uint8_t>(number);
  return code != kNoShortCode ? 1 : 2;
}

/// The value of the entry with this name; null if there is none.
const std::uint8_t* find_in_field_set(const std::uint8_t* set, std::string_view name);

/// The value of the member with this short code at or after the member `p`; null if there is none.
/// Members are ordered by short code, so the search ends at the first greater one.
inline const std::uint8_t* find_common(const std::uint8_t* p, const std::uint8_t* end,
                                       std::uint8_t code) {
  while (p < end) {
    const std::uint8_t key = *p++;
    if (key >= code) {
      if (key == code) return p;
      if (key < kKeySymbol || key >= kKeyInline) return nullptr;
      ++p;  // a symbol of two bytes may come in any position
    }
    p = skip_value(p);
  }
  return nullptr;
}

/// The value of the member whose key has this complete encoded form; null if there is none.
inline const std::uint8_t* find_member(const std::uint8_t* object, std::string_view encoded_key) {
  const Range range = object_contents(object);
  const auto* const wanted = reinterpret_cast<const std::uint8_t*>(encoded_key.data());
  const std::size_t size = encoded_key.size();
  const std::uint8_t first = wanted[0];
  const std::uint8_t last = wanted[size - 1];
  for (const std::uint8_t* p = range.begin; p < range.end;) {
    const std::uint8_t* value = skip_key(p);
    // Symbols take one or two bytes, and these two bytes distinguish most other keys: a call of
    // memcmp for each key would cost more than the walk.
    if (p[0] == first && static_cast<std::size_t>(value - p) == size && value[-1] == last &&
        (size <= 2 || std::memcmp(p, wanted, size) == 0))
      return value;
    p = skip_value(value);
  }
  if (object == nullptr || !is_field_set(object)) return nullptr;
  return find_in_field_set(object, read_key(wanted).text());
}

}  // namespace lookout::api::detail
