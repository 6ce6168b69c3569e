#include "api/object_key.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lookout/api/detail/fast_json.h"
#include "lookout/api/detail/wire_reader.h"

namespace lookout::api::detail {
namespace {

/// FastJson's handler: enters only the containers on the path to the name.
class KeyHandler {
 public:
  explicit KeyHandler(bool event) : metadata_depth_(event ? 3 : 2) {}

  bool Null() { return scalar(); }
  bool Bool(bool) { return scalar(); }
  bool RawNumber(const char*, unsigned, bool) { return scalar(); }
  bool String(const char* text, unsigned size, bool) {
    if (wanted_ != nullptr) wanted_->assign(text, size);
    return scalar();
  }
  bool StartObject() {
    if (wanted_ != nullptr) return false;
    // (The last one of duplicate members wins.)
    if (++depth_ == metadata_depth_) name_.clear(), ns_.clear();
    return true;
  }
  // There is no array on the path.
  bool StartArray() { return false; }
  bool EndObject(unsigned) {
    --depth_;
    return true;
  }
  bool EndArray(unsigned) { return true; }
  bool empty_object() { return StartObject() && EndObject(0); }
  bool Key(const char* text, unsigned size, bool) {
    const std::string_view name(text, size);
    wanted_ = nullptr;
    if (depth_ == metadata_depth_) {
      if (name == "name") wanted_ = &name_;
      if (name == "namespace") wanted_ = &ns_;
      skipping_ = wanted_ == nullptr;
    } else {
      skipping_ = name != (depth_ + 1 == metadata_depth_ ? "metadata" : "object");
    }
    return true;
  }
  bool skipping() const { return skipping_; }
  void skipped() { skipping_ = false; }
  std::size_t recall(std::string_view, std::size_t&) { return 0; }
  void remember(std::string_view, std::size_t) {}

  const std::string& ns() const { return ns_; }
  const std::string& name() const { return name_; }

 private:
  bool scalar() {
    wanted_ = nullptr;
    skipping_ = false;
    return true;
  }

  const std::size_t metadata_depth_;
  std::size_t depth_ = 0;
  bool skipping_ = false;
  std::string* wanted_ = nullptr;
  std::string ns_;
  std::string name_;
};

/// Valid names are ASCII (validation.IsDNS1123Subdomain and others).
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

std::string key_of(const std::string& ns, const std::string& name) {
  if (name.empty() || !is_plain(name) || !is_plain(ns)) return {};
  return ns.empty() ? name : ns + "/" + name;
}

}  // namespace

std::string key_in_json(std::string_view text, bool event) {
  constexpr std::size_t kPadding = 16;  // FastJson reads beyond the end
  if (text.empty()) return {};
  std::string padded;
  padded.reserve(text.size() + kPadding);
  padded.append(text).append(kPadding, '\0');
  KeyHandler handler(event);
  FastJson<KeyHandler> parser(handler);
  if (!parser.parse({padded.data(), text.size()})) return {};
  return key_of(handler.ns(), handler.name());
}

std::string key_in_protobuf(std::string_view bytes) {
  // Every kind has its metadata in field 1, with the name in field 1 and the namespace in field 3.
  std::string_view metadata;
  std::string ns;
  std::string name;
  const bool fine = for_each_field(bytes, [&](std::uint64_t number, const WireContent& content) {
    if (number == 1) metadata = content.bytes;
  });
  if (!fine) return {};
  const bool readable =
      for_each_field(metadata, [&](std::uint64_t number, const WireContent& content) {
        if (number == 1) name = content.bytes;
        if (number == 3) ns = content.bytes;
      });
  return readable ? key_of(ns, name) : std::string();
}

}  // namespace lookout::api::detail
