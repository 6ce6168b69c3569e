#include "lookout/api/detail/json_values.h"

#include <rapidjson/reader.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include "lookout/api/detail/walk_json.h"

namespace lookout::api::detail {
namespace {

using rapidjson::SizeType;

/// Passes all events to a document; converts numbers exactly.
struct ExactNumbers {
  rapidjson::Document& document;

  bool RawNumber(const char* text, SizeType size, bool) {
    const char* end = text + size;
    const std::string_view digits(text, size);
    if (digits.find_first_of(".eE") == std::string_view::npos) {
      std::int64_t whole = 0;
      if (std::from_chars(text, end, whole).ec == std::errc{}) return document.Int64(whole);
      std::uint64_t large = 0;
      if (std::from_chars(text, end, large).ec == std::errc{}) return document.Uint64(large);
    }
    double real = 0;
    if (std::from_chars(text, end, real).ec == std::errc{}) return document.Double(real);
    // Out of range: too small becomes 0, too large is an error.
    const std::size_t exponent = digits.find_first_of("eE");
    const bool is_tiny = exponent == std::string_view::npos
                             ? digits.starts_with("0.") || digits.starts_with("-0.")
                             : digits[exponent + 1] == '-';
    return is_tiny && document.Double(0);
  }
  bool Null() { return document.Null(); }
  bool Bool(bool value) { return document.Bool(value); }
  bool String(const char* text, SizeType size, bool copy) {
    return document.String(text, size, copy);
  }
  bool Key(const char* text, SizeType size, bool copy) { return document.Key(text, size, copy); }
  bool StartObject() { return document.StartObject(); }
  bool EndObject(SizeType members) { return document.EndObject(members); }
  bool StartArray() { return document.StartArray(); }
  bool EndArray(SizeType elements) { return document.EndArray(elements); }
  // The parser passes all numbers as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
};

}  // namespace

bool parse_json(std::string_view json, rapidjson::Document& out) {
  bool good = false;
  const auto fill = [&](rapidjson::Document& document) {
    ExactNumbers numbers{document};
    good = walk_json(json, numbers);
    return good;
  };
  out.Populate(fill);
  return good;
}

}  // namespace lookout::api::detail
