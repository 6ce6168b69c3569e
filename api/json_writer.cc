#include "lookout/api/detail/json_writer.h"

#include <rapidjson/prettywriter.h>

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lookout/api/detail/encoding.h"
#include "lookout/base/pinned.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lookout::api::detail {
namespace {

/// RapidJSON's output stream over a std::string.
struct StringStream {
  using Ch = char;
  std::string& out;
  void Put(char c) { out.push_back(c); }
  void Flush() {}
};

bool must_be_escaped(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

/// Whether any of eight bytes must be escaped.
bool any_must_be_escaped(std::uint64_t bytes) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  // Subtracting n sets the highest bit of a byte that is less than n and had its highest bit clear.
  // (The effect of the borrow on the following bytes does not matter.)
  const auto any_below = [](std::uint64_t of, std::uint64_t n) {
    return (of - n * kOnes) & ~of & (0x80 * kOnes);
  };
  return (any_below(bytes, 0x20) | any_below(bytes ^ '"' * kOnes, 1) |
          any_below(bytes ^ '\\' * kOnes, 1)) != 0;
}

#if defined(__SSE2__)
/// Whether any of sixteen bytes must be escaped.
bool any_of_sixteen_must_be_escaped(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
  const __m128i special = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
  return _mm_movemask_epi8(_mm_or_si128(control, special)) != 0;
}
#endif

/// Whether the text needs no escapes.
bool is_plain(std::string_view text) {
  const char* const p = text.data();
  const std::size_t n = text.size();
#if defined(__SSE2__)
  if (n >= 16) {
    for (std::size_t at = 0; at + 16 < n; at += 16) {
      if (any_of_sixteen_must_be_escaped(p + at)) return false;
    }
    // (As below: the last bytes may overlap checked ones.)
    return !any_of_sixteen_must_be_escaped(p + n - 16);
  }
#endif
  std::uint64_t word = 0;
  if (n >= sizeof word) {
    for (std::size_t at = 0; at + sizeof word < n; at += sizeof word) {
      std::memcpy(&word, p + at, sizeof word);
      if (any_must_be_escaped(word)) return false;
    }
    // The last eight bytes, which may overlap checked ones.
    std::memcpy(&word, p + n - sizeof word, sizeof word);
    return !any_must_be_escaped(word);
  }
  if (n >= 4) {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, p, sizeof first);
    std::memcpy(&last, p + n - sizeof last, sizeof last);
    return !any_must_be_escaped(std::uint64_t{first} << 32 | last);
  }
  return std::none_of(text.begin(), text.end(), must_be_escaped);
}

/// Writes compact JSON, with the interface of RapidJSON's writer. Call finish() at the end.
class CompactWriter : public base::Pinned {
 public:
  explicit CompactWriter(std::string& out) : out_(out) {}

  void Null() { RawValue("null", 4); }
  void Bool(bool value) { value ? RawValue("true", 4) : RawValue("false", 5); }
  void Int64(std::int64_t value) { integer(value); }
  void Uint64(std::uint64_t value) { integer(value); }
  void RawValue(const char* text, std::size_t size, rapidjson::Type = rapidjson::kNumberType) {
    begin_value();
    append({text, size});
  }
  void String(const char* text, rapidjson::SizeType size) {
    begin_value();
    // (An empty text may be null.)
    string(size == 0 ? std::string_view("") : std::string_view(text, size));
  }
  void Key(const char* text, rapidjson::SizeType size) {
    String(text, size);
    put(':');
    comma_ = false;
  }
  void StartObject() { open('{'); }
  void EndObject() { close('}'); }
  void StartArray() { open('['); }
  void EndArray() { close(']'); }
  void finish() { flush(); }

 private:
  void begin_value() {
    if (comma_) put(',');
    comma_ = true;
  }
  void open(char bracket) {
    begin_value();
    put(bracket);
    comma_ = false;
  }
  void close(char bracket) {
    put(bracket);
    comma_ = true;
  }
  template <class Integer>
  void integer(Integer value) {
    char text[32];
    const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
    RawValue(text, static_cast<std::size_t>(end - text));
  }
  void string(std::string_view text) {
    if (text.size() + 2 <= piece_.size() - size_ && is_plain(text)) {
      char* const out = piece_.data() + size_;
      out[0] = '"';
      std::memcpy(out + 1, text.data(), text.size());
      out[1 + text.size()] = '"';
      size_ += text.size() + 2;
      return;
    }
    put('"');
    while (!text.empty()) {
      const auto special = std::find_if(text.begin(), text.end(), must_be_escaped);
      const auto plain = static_cast<std::size_t>(special - text.begin());
      append(text.substr(0, plain));
      if (special == text.end()) break;
      escape(*special);
      text.remove_prefix(plain + 1);
    }
    put('"');
  }
  void escape(char c) {
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    put('\\');
    if (const std::size_t at = kShort.find(c); at != std::string_view::npos) {
      put(kLetters[at]);
    } else {
      append("u00");
      put(kDigits[static_cast<unsigned char>(c) >> 4]);
      put(kDigits[c & 0xF]);
    }
  }

  void put(char c) {
    if (size_ == piece_.size()) flush();
    piece_[size_++] = c;
  }
  void append(std::string_view text) {
    if (text.size() > piece_.size() - size_) {
      flush();
      if (text.size() > piece_.size()) {
        append_large(text);
        return;
      }
    }
    std::memcpy(piece_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  // If this is inlined, GCC 12 gives a false warning about an overread.
  [[gnu::noinline]] void append_large(std::string_view text) { out_.append(text); }
  void flush() {
    out_.append(piece_.data(), size_);
    size_ = 0;
  }

  std::string& out_;
  bool comma_ = false;  // before the next value
  std::size_t size_ = 0;
  std::array<char, 2048> piece_;  // NOLINT: written before it is read
};

template <class Writer>
void write_number(Value value, Writer& writer) {
  const std::uint8_t* p = value.data() + 1;
  switch (*value.data()) {
    case kTagBigUint:
      writer.Uint64(read_fixed<std::uint64_t>(p));
      return;
    case kTagDouble: {
      constexpr std::ptrdiff_t kMaxDigits = 16;  // and the '0' after the point
      char text[32];
      char* const last = text + sizeof text - 2;
      const auto number = read_fixed<double>(p);
      char* end = std::to_chars(text, last, number).ptr;
      // A whole number must not be read back as an integer, nor as text because it has more digits
      // than a double.
      if (std::find_if(text, end, [](char c) { return c == '.' || c == 'e'; }) == end) {
        if (end - text > kMaxDigits) {
          end = std::to_chars(text, last, number, std::chars_format::scientific).ptr;
        } else {
          *end++ = '.';
          *end++ = '0';
        }
      }
      writer.RawValue(text, static_cast<std::size_t>(end - text), rapidjson::kNumberType);
      return;
    }
    case kTagRawNumber: {
      const std::uint64_t length = read_varint(p);
      writer.RawValue(reinterpret_cast<const char*>(p), length, rapidjson::kNumberType);
      return;
    }
    default:
      writer.Int64(value.as_int());
  }
}

/// Writes a scalar or an empty container. For other containers, writes nothing and returns false.
template <class Writer>
bool write_simple(Value value, Writer& writer) {
  switch (value.kind()) {
    case Value::Kind::kAbsent:
    case Value::Kind::kNull:
      writer.Null();
      return true;
    case Value::Kind::kBool:
      writer.Bool(value.as_bool());
      return true;
    case Value::Kind::kNumber:
      write_number(value, writer);
      return true;
    case Value::Kind::kString: {
      const std::string_view text = value.as_string();
      writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
      return true;
    }
    case Value::Kind::kObject:
    case Value::Kind::kArray:
      return false;
  }
  return true;
}

/// A container that is being written.
struct Open {
  Open(Value value, bool is_object)
      : object(is_object),
        field_set(is_field_set(value.data())),
        range(field_set   ? field_set_contents(value.data())
              : is_object ? object_contents(value.data())
                          : array_contents(value.data())) {}
  bool object;
  bool field_set;
  Range range;  // the rest
};

// Not recursive: deeply nested objects would overflow the stack.
template <class Writer>
void write(Value value, Writer& writer) {
  boost::container::small_vector<Open, 16> open;
  for (;;) {
    if (!write_simple(value, writer)) {
      const bool object = value.kind() == Value::Kind::kObject;
      object ? writer.StartObject() : writer.StartArray();
      open.emplace_back(value, object);
    }
    while (!open.empty() && open.back().range.begin >= open.back().range.end) {
      open.back().object ? writer.EndObject() : writer.EndArray();
      open.pop_back();
    }
    if (open.empty()) return;
    Open& innermost = open.back();
    const std::uint8_t* p = innermost.range.begin;
    if (innermost.field_set) {
      const FieldSetEntry entry = read_field_set_entry(p);
      writer.Key(entry.name.data(), static_cast<rapidjson::SizeType>(entry.name.size()));
      value = Value(entry.value);
      innermost.range.begin = entry.end;
      continue;
    }
    if (innermost.object) {
      const Key key = read_key(p);
      const std::string_view name = key.text();
      writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
      p = key.end;
    }
    value = Value(p);
    innermost.range.begin = skip_value(p);
  }
}

}  // namespace

void write_json_string(std::string_view text, std::string& out) {
  CompactWriter writer(out);
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  writer.finish();
}

void write_json(Value value, std::string& out) {
  CompactWriter writer(out);
  write(value, writer);
  writer.finish();
}

void write_json_without(std::initializer_list<std::string_view> names, Value object,
                        std::string& out) {
  CompactWriter writer(out);
  writer.StartObject();
  for (const auto& [name, value] : object.members()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    write(value, writer);
  }
  writer.EndObject();
  writer.finish();
}

void write_pretty_json(Value value, unsigned indent, std::string& out) {
  StringStream stream{out};
  rapidjson::PrettyWriter<StringStream> writer(stream);
  writer.SetIndent(' ', indent);
  write(value, writer);
}

}  // namespace lookout::api::detail
