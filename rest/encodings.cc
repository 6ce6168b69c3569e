#include "rest/encodings.h"

#include <fmt/format.h>

#include "lookout/api/protobuf.h"
#include "lookout/base/detail/log.h"
#include "rest/request.h"

namespace lookout::rest {
namespace detail {
namespace {

std::string key_of(const api::Resource& resource) {
  return fmt::format("{}/{}", resource.qualified_name(), resource.version);
}

}  // namespace

Encoding Encodings::wanted(ContentType type, const api::Resource& resource, bool metadata_only,
                           TimePoint now) const {
  if (type == ContentType::kJson) return {};
  if (!metadata_only && !api::has_protobuf(resource.api_version(), resource.kind)) return {};
  const std::lock_guard lock(mutex_);
  const std::string key = key_of(resource);
  const auto until = json_until_.find(key);
  const bool avoided = until != json_until_.end() && now < until->second;
  return {!avoided && !json_only_.contains(key), type == ContentType::kAuto};
}

void Encodings::give_up_protobuf(const api::Resource& resource, std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (json_only_.insert(key_of(resource)).second)
    log::info("{}: requesting JSON from now on: {}", resource.qualified_name(), why);
}

void Encodings::avoid_protobuf(const api::Resource& resource, std::string_view why, TimePoint now) {
  const std::lock_guard lock(mutex_);
  json_until_[key_of(resource)] = now + kAvoided;
  log::info("{}: requesting JSON for {} minutes: {}", resource.qualified_name(), kAvoided.count(),
            why);
}

void Encodings::note_loss(const api::Resource& resource, const api::UnknownFields& fields) {
  if (fields.count == 0) return;
  const std::lock_guard lock(mutex_);
  if (lossy_.insert(key_of(resource)).second) {
    log::warn("{}: fields that the schema of Kubernetes {} does not know are lost, such as {}",
              resource.qualified_name(), api::schema_version(), fields.first);
  }
}

std::string accept_header(bool protobuf, std::string_view metadata_kind) {
  // A server that cannot filter fields sends all of them.
  const std::string as =
      metadata_kind.empty() ? "" : fmt::format(";as={};v=v1;g=meta.k8s.io", metadata_kind);
  std::string out;
  if (protobuf) out = fmt::format("{}{},", api::kProtobufMediaType, as);
  out += "application/json" + as;
  if (!as.empty()) out += ",application/json";
  return out;
}

bool is_protobuf(const HttpHead& head) {
  return media_type(head.content_type) == api::kProtobufMediaType;
}

}  // namespace detail

std::optional<ContentType> parse_content_type(std::string_view text) {
  if (text == "auto") return ContentType::kAuto;
  if (text == "json") return ContentType::kJson;
  if (text == "protobuf") return ContentType::kProtobuf;
  return std::nullopt;
}

}  // namespace lookout::rest
