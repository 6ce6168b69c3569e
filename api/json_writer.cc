#include "api/json_writer.h"

#include <rapidjson/prettywriter.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "api/encoding.h"

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

// The depth of an object is bounded when it is decoded (kMaxDepth), so recursion is too.
template <class Writer>
void write(Value value, Writer& writer) {
  switch (value.kind()) {
    case Value::Kind::kAbsent:
    case Value::Kind::kNull:
      writer.Null();
      return;
    case Value::Kind::kBool:
      writer.Bool(value.as_bool());
      return;
    case Value::Kind::kNumber:
      write_number(value, writer);
      return;
    case Value::Kind::kString: {
      const std::string_view text = value.as_string();
      writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
      return;
    }
    case Value::Kind::kObject:
      writer.StartObject();
      for (const auto& [name, member] : value.members()) {
        writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
        write(member, writer);
      }
      writer.EndObject();
      return;
    case Value::Kind::kArray:
      writer.StartArray();
      for (const Value element : value.elements()) write(element, writer);
      writer.EndArray();
      return;
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
