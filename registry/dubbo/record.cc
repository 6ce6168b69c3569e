#include "lookout/registry/dubbo/record.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "lookout/api/error.h"
#include "lookout/base/base64.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::registry::dubbo {
namespace {

using rapidjson::Document;
using rapidjson::Value;

/// Records are much flatter; writing JSON is recursive.
constexpr int kMaxDepth = 64;

std::string encode_base64url(std::string_view bytes) {
  std::string text = encode_base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> decode_base64url(std::string_view text) {
  if (text.find_first_of("+/") != std::string_view::npos) return std::nullopt;
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  return decode_base64(standard);
}

bool too_deep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

/// Stops at a string that is not UTF-8. RapidJSON 1.1 decodes "\udc00", a lone surrogate, to one.
struct Utf8Check : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Utf8Check> {
  static bool String(const char* text, rapidjson::SizeType size, bool) {
    return find_invalid_utf8({text, size}) == std::string_view::npos;
  }
};

/// Parses the array; an empty annotation is an empty array. Returns an error text or "".
std::string parse(std::string_view annotation, Document& out) {
  out.SetArray();
  if (annotation.empty()) return {};
  const auto json = decode_base64url(annotation);
  if (!json) return "it is not base64url";
  if (too_deep(*json)) return "the JSON in it is nested too deeply";
  out.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(json->data(),
                                                                                    json->size());
  if (out.HasParseError()) {
    return fmt::format("the JSON in it: {} (at byte {})",
                       rapidjson::GetParseError_En(out.GetParseError()), out.GetErrorOffset());
  }
  if (Utf8Check check; !out.Accept(check)) {
    return fmt::format(
        "the JSON in it: {}",
        rapidjson::GetParseError_En(rapidjson::kParseErrorStringUnicodeSurrogateInvalid));
  }
  if (out.IsNull()) out.SetArray();
  return out.IsArray() ? "" : "the JSON in it is not an array";
}

std::string_view text_of(const Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

/// Finds the member like Go's decoder, which ignores the case of names.
const Value* member(const Value& object, char name) {
  const Value* found = nullptr;
  for (const auto& [key, value] : object.GetObject()) {
    const std::string_view text = text_of(key);
    if (text.size() == 1 && (text[0] == name || text[0] == name - 'a' + 'A')) found = &value;
  }
  return found;
}

/// Reads key and value. Returns an error text or "".
std::string read(const Value& element, Record& out) {
  if (!element.IsObject()) return "is not an object";
  const Value* key = member(element, 'k');
  if (key == nullptr || !key->IsString()) return "has no key \"k\"";
  if (key->GetStringLength() == 0) return "has an empty key \"k\"";
  out.key = text_of(*key);
  out.value.clear();
  const Value* value = member(element, 'v');
  if (value == nullptr || value->IsNull()) return {};
  if (!value->IsString()) return "has a value \"v\" that is not a string";
  out.value = text_of(*value);
  return {};
}

std::string encode(const Value& array) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  array.Accept(writer);
  return encode_base64url({buffer.GetString(), buffer.GetSize()});
}

Value text_value(std::string_view text, Document::AllocatorType& allocator) {
  return Value(text.data(), static_cast<rapidjson::SizeType>(text.size()), allocator);
}

/// Throws InvalidArgument: one such record would make the whole annotation unreadable.
void check_text(const char* what, std::string_view text) {
  if (find_invalid_utf8(text) == std::string_view::npos) return;
  throw InvalidArgument(fmt::format("the {} of a record must be UTF-8 text", what));
}

Value make_element(const Record& record, Document::AllocatorType& allocator) {
  check_text("key", record.key);
  check_text("value", record.value);
  Value element(rapidjson::kObjectType);
  element.AddMember("k", text_value(record.key, allocator), allocator);
  element.AddMember("v", text_value(record.value, allocator), allocator);
  return element;
}

void parse_to_change(std::string_view annotation, Document& out) {
  const std::string wrong = parse(annotation, out);
  if (!wrong.empty()) {
    throw Error(fmt::format("the records of this pod cannot be changed: {}", wrong));
  }
}

}  // namespace

Records decode_records(std::string_view annotation) {
  Records out;
  Document document;
  if (std::string wrong = parse(annotation, document); !wrong.empty()) {
    out.readable = false;
    out.defects.push_back(std::move(wrong));
    return out;
  }
  std::unordered_map<std::string, std::size_t> places;
  std::size_t index = 0;
  for (const auto& element : document.GetArray()) {
    Record record;
    if (const std::string wrong = read(element, record); !wrong.empty()) {
      out.defects.push_back(fmt::format("record {} {}", index, wrong));
    } else if (const auto [at, first] = places.emplace(record.key, out.records.size()); first) {
      out.records.push_back(std::move(record));
    } else {
      out.records[at->second].value = std::move(record.value);
    }
    ++index;
  }
  return out;
}

std::string encode_records(const std::vector<Record>& records) {
  Document document;
  document.SetArray();
  auto& allocator = document.GetAllocator();
  for (const auto& record : records) document.PushBack(make_element(record, allocator), allocator);
  return encode(document);
}

std::string with_record(std::string_view annotation, const Record& record) {
  Document document;
  parse_to_change(annotation, document);
  auto& allocator = document.GetAllocator();
  bool known = false;
  for (auto& element : document.GetArray()) {
    Record present;
    if (!read(element, present).empty() || present.key != record.key) continue;
    // Replace all duplicates: readers may use the first or the last.
    known = true;
    if (present.value != record.value) element = make_element(record, allocator);
  }
  if (!known) document.PushBack(make_element(record, allocator), allocator);
  return encode(document);
}

std::string without_record(std::string_view annotation, std::string_view key) {
  Document document;
  parse_to_change(annotation, document);
  for (auto it = document.Begin(); it != document.End();) {
    Record present;
    it = read(*it, present).empty() && present.key == key ? document.Erase(it) : it + 1;
  }
  return encode(document);
}

}  // namespace lookout::registry::dubbo
