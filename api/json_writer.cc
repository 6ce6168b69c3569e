#include "lookout/api/detail/json_writer.h"

#include <rapidjson/prettywriter.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lookout/api/detail/encoding.h"

namespace lookout::api::detail {
namespace {

/// RapidJSON's output stream over a std::string.
struct StringStream {
  using Ch = char;
  std::string& out;
  void Put(char c) { out.push_back(c); }
  void Flush() {}
};

template <class Writer>
void write_number(Value value, Writer& writer) {
  const std::uint8_t* p = value.data() + 1;
  switch (*value.data()) {
    case kTagBigUint:
      writer.Uint64(read_fixed<std::uint64_t>(p));
      return;
    case kTagDouble: {
      constexpr std::ptrdiff_t kMaxDigits = 16;  // and the '0' behind the point
      char text[32];
      char* const last = text + sizeof text - 2;
      const auto number = read_fixed<double>(p);
      char* end = std::to_chars(text, last, number).ptr;
      // A whole number must not come back as an integer, nor as one of more digits than a double
      // has, which would be kept as text.
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

/// Writes a scalar or an empty container. Returns false, and writes nothing, for other containers.
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

/// A container that has been begun.
struct Open {
  Open(Value value, bool is_object)
      : object(is_object),
        field_set(is_field_set(value.data())),
        range(field_set   ? field_set_contents(value.data())
              : is_object ? object_contents(value.data())
                          : array_contents(value.data())) {}
  bool object;
  bool field_set;
  Range range;  // what is still to be written
};

// An object may be nested more deeply than a stack is long: no recursion.
template <class Writer>
void write(Value value, Writer& writer) {
  std::vector<Open> open;
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
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  if (std::all_of(text.begin(), text.end(), plain)) {
    out.append(1, '"').append(text).append(1, '"');
    return;
  }
  StringStream stream{out};
  rapidjson::Writer<StringStream> writer(stream);
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write_json(Value value, std::string& out) {
  StringStream stream{out};
  rapidjson::Writer<StringStream> writer(stream);
  write(value, writer);
}

void write_pretty_json(Value value, unsigned indent, std::string& out) {
  StringStream stream{out};
  rapidjson::PrettyWriter<StringStream> writer(stream);
  writer.SetIndent(' ', indent);
  write(value, writer);
}

}  // namespace lookout::api::detail
