#include "apiserver/storage/etcd3/codec.h"

#include <fmt/format.h>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

/// Values may have been written by a kube-apiserver.
struct Decoder : api::JsonDecoder {
  Decoder() { set_max_depth(api::kMaxServedDepth); }
};

/// Appends metadata without the resourceVersion. Returns the position for it.
std::size_t write_metadata(api::Value metadata, std::string& out) {
  const std::uint16_t version = api::sym::kResourceVersion.id;
  const auto is_behind = [&](const api::detail::Key& key) {
    return key.symbol == api::detail::kNoSymbol ||
           api::detail::symbol_rank(key.symbol) > api::detail::symbol_rank(version);
  };
  std::size_t place = 0;
  out += '{';
  const api::detail::Range range = api::detail::object_contents(metadata.data());
  for (const std::uint8_t* at = range.begin; at != range.end;) {
    const api::detail::Key key = api::detail::read_key(at);
    at = api::detail::skip_value(key.end);
    if (key.symbol == version) continue;
    if (place == 0 && is_behind(key)) place = out.size();
    if (out.back() != '{') out += ',';
    api::detail::write_json_string(key.text(), out);
    out += ':';
    api::detail::write_json(api::Value(key.end), out);
  }
  if (place == 0) place = out.size();
  out += '}';
  return place;
}

/// An object without its version, which etcd has as the revision of the key.
Codec::Encoded without_version(const api::Object& object) {
  Codec::Encoded encoded;
  std::string& out = encoded.value;
  out += '{';
  for (const auto& [name, value] : object.body().members()) {
    if (out.back() != '{') out += ',';
    api::detail::write_json_string(name, out);
    out += ':';
    if (name == api::sym::kMetadata.text() && value.is_object()) {
      encoded.place = write_metadata(value, out);
    } else {
      api::detail::write_json(value, out);
    }
  }
  // Go's encoder ends a value with a line break.
  out += "}\n";
  return encoded;
}

/// Throws for a JSON object that is not a Kubernetes object. (kube-apiserver's RangeAllocations
/// have no name.)
void expect_named(const api::Object& object) {
  if (object.kind().empty()) throw api::DecodeError("it has no kind");
  if (object.name().empty() && object.kind() != "RangeAllocation")
    throw api::DecodeError("it has no name");
}

class JsonCodec final : public Codec {
 public:
  Encoded encode_for(const api::Object& object) const override { return without_version(object); }

  std::string json_of(const Encoded& encoded, Revision revision) const override {
    const auto& [value, place] = encoded;
    const std::string_view before = std::string_view(value).substr(0, place);
    const std::string_view after = std::string_view(value).substr(place);
    return fmt::format(R"({}{}"resourceVersion":"{}"{}{})", before,
                       before.ends_with('{') ? "" : ",", revision,
                       before.ends_with('{') && !after.starts_with('}') ? "," : "",
                       after.substr(0, after.size() - 1));
  }

  api::Object decode(std::string value, Revision revision) const override {
    if (value.starts_with(std::string_view("k8s\0", 4))) {
      throw api::DecodeError(
          "it is protobuf: start kube-apiserver with --storage-media-type=application/json");
    }
    thread_local Decoder decoder;
    const api::Object object = decoder.decode(value);
    if (!object) throw api::DecodeError(decoder.error());
    expect_named(object);
    return at_revision(object, revision);
  }
};

}  // namespace

std::shared_ptr<const Codec> json_codec() {
  static const auto kCodec = std::make_shared<const JsonCodec>();
  return kCodec;
}

api::Object at_revision(const api::Object& object, Revision revision) {
  const std::string text = std::to_string(revision);
  if (object.resource_version() == text) return object;
  return api::with_metadata(object, {{api::sym::kResourceVersion, std::string_view(text)}});
}

}  // namespace lookout::apiserver::storage::etcd3
