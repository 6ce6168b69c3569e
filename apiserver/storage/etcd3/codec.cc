#include "apiserver/storage/etcd3/codec.h"

#include <fmt/format.h>

#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

/// A real kube-apiserver may have written what it reads.
struct Decoder : api::JsonDecoder {
  Decoder() { set_max_depth(api::kMaxServedDepth); }
};

/// Appends an object without its version, which etcd has as the revision of the key.
void write_without_version(const api::Object& object, std::string& out) {
  out += '{';
  for (const auto& [name, value] : object.body().members()) {
    if (out.back() != '{') out += ',';
    api::detail::write_json_string(name, out);
    out += ':';
    if (name == api::sym::kMetadata.text()) {
      api::detail::write_json_without({api::sym::kResourceVersion.text()}, value, out);
    } else {
      api::detail::write_json(value, out);
    }
  }
  out += '}';
}

/// Throws for a JSON object that is none of Kubernetes'. (kube-apiserver's RangeAllocations have no
/// name.)
void expect_named(const api::Object& object) {
  if (object.kind().empty()) throw api::DecodeError("it has no kind");
  if (object.name().empty() && object.kind() != "RangeAllocation")
    throw api::DecodeError("it has no name");
}

class JsonCodec final : public Codec {
 public:
  std::string encode(const api::Object& object) const override {
    std::string out;
    write_without_version(object, out);
    // As Go's encoder ends a value.
    out += '\n';
    return out;
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
