#include "registry/string_map.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <utility>

#include "lookout/base/json_text.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::registry::detail {
namespace {

class StringMapHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, StringMapHandler> {
 public:
  explicit StringMapHandler(StringMap& out) : out_(out) {}

  bool Default() { return refuse(not_a_string()); }
  bool Null() {
    if (!inside_) return ended_ = true;
    out_[key_].clear();
    return true;
  }
  bool StartObject() {
    if (inside_) return refuse(not_a_string());
    return inside_ = true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_.assign(text, size);
    return check(key_);
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (!inside_) return refuse(not_a_string());
    std::string& value = out_[key_];
    value.assign(text, size);
    return check(value);
  }
  bool EndObject(rapidjson::SizeType) { return ended_ = true; }

  /// Why the text was rejected; empty if it was not.
  const std::string& reason() const { return reason_; }

 private:
  std::string not_a_string() const {
    return inside_ ? fmt::format("the value of {:?} is not a string", key_)
                   : "it is not a JSON object";
  }
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  /// RapidJSON 1.1 decodes "\udc00", a lone surrogate, to invalid UTF-8.
  bool check(std::string_view text) {
    if (find_invalid_utf8(text) == std::string_view::npos) return true;
    return refuse(rapidjson::GetParseError_En(rapidjson::kParseErrorStringUnicodeSurrogateInvalid));
  }

  StringMap& out_;
  std::string key_;
  bool inside_ = false;
  bool ended_ = false;
  std::string reason_;
};

}  // namespace

bool parse_string_map(std::string_view json, StringMap& out, std::string& error) {
  out.clear();
  rapidjson::MemoryStream memory(json.data(), json.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(memory);
  StringMapHandler handler(out);
  rapidjson::Reader reader;
  // Iterative: nested values are rejected at the second level.
  const auto result =
      reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(stream,
                                                                                           handler);
  if (!result.IsError()) return true;
  out.clear();
  error = !handler.reason().empty()
              ? handler.reason()
              : fmt::format("{} (at byte {})", rapidjson::GetParseError_En(result.Code()),
                            result.Offset());
  return false;
}

std::string encode_string_map(const StringMap& map) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  for (const auto& [key, value] : map) base::write_text(writer, key, value);
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace lookout::registry::detail
