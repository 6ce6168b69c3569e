#include "apiserver/openapi/documents.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "apiserver/content_hash.h"
#include "apiserver/names.h"
#include "apiserver/openapi/gnostic.h"
#include "apiserver/openapi/paths.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::openapi {
namespace {

using json::Value;

WireDocumentPtr finished(std::string text) {
  std::string hash = content_hash(text);
  return std::make_shared<const WireDocument>(WireDocument{std::move(text), std::move(hash)});
}

/// "api/v1", "apis/apps/v1".
std::string document_name(const api::Resource& type) { return type.root_path().substr(1); }

}  // namespace

Document Documents::build(Dialect dialect, std::string_view root_path) const {
  Document document(rapidjson::kObjectType);
  Allocator& allocator = document.GetAllocator();
  const bool v3 = dialect == Dialect::kV3;
  json::set(document, v3 ? "openapi" : "swagger", v3 ? "3.0.0" : "2.0", allocator);
  Value info(rapidjson::kObjectType);
  json::set(info, "title", "Kubernetes", allocator);
  json::set(info, "version", fmt::format("v{}.0", api::schema_version()), allocator);
  json::set(document, "info", std::move(info), allocator);
  Schemas schemas(dialect, allocator);
  Value paths(rapidjson::kObjectType);
  for (const auto& resource : table_->resources()) {
    if (root_path.empty() || document_name(resource->type) == root_path)
      add_paths(*resource, schemas, paths, allocator);
  }
  json::set(document, "paths", std::move(paths), allocator);
  if (v3) {
    Value components(rapidjson::kObjectType);
    json::set(components, "schemas", schemas.take(), allocator);
    json::set(document, "components", std::move(components), allocator);
  } else {
    json::set(document, "definitions", schemas.take(), allocator);
  }
  return document;
}

WireDocumentPtr Documents::v2_json() {
  const std::lock_guard lock(mutex_);
  WireDocumentPtr& made = made_["v2"];
  if (!made) made = finished(json::to_json(build(Dialect::kV2, "")));
  return made;
}

WireDocumentPtr Documents::v2_protobuf() {
  const std::lock_guard lock(mutex_);
  WireDocumentPtr& made = made_["v2.pb"];
  if (!made) {
    const Document document = build(Dialect::kV2, "");
    made = finished(encode_gnostic(document));
  }
  return made;
}

WireDocumentPtr Documents::v3_locked(const std::string& group_version) {
  WireDocumentPtr& made = made_[group_version];
  if (!made) made = finished(json::to_json(build(Dialect::kV3, group_version)));
  return made;
}

WireDocumentPtr Documents::v3(const std::string& group_version) {
  bool served = false;
  for (const auto& resource : table_->resources())
    served = served || document_name(resource->type) == group_version;
  if (!served) return nullptr;
  const std::lock_guard lock(mutex_);
  return v3_locked(group_version);
}

WireDocumentPtr Documents::v3_index() {
  const std::lock_guard lock(mutex_);
  WireDocumentPtr& made = made_["v3"];
  if (made) return made;
  std::set<std::string> names;
  for (const auto& resource : table_->resources()) names.insert(document_name(resource->type));
  Document index(rapidjson::kObjectType);
  Allocator& allocator = index.GetAllocator();
  Value& paths = json::child(index, "paths", allocator);
  for (const std::string& name : names) {
    Value entry(rapidjson::kObjectType);
    // The hash makes the document cacheable.
    const std::string url = fmt::format("/openapi/v3/{}?hash={}", name, v3_locked(name)->hash);
    json::set(entry, "serverRelativeURL", url, allocator);
    json::set(paths, name, std::move(entry), allocator);
  }
  made = finished(json::to_json(index));
  return made;
}

std::shared_ptr<Documents> DocumentCache::of(
    const std::shared_ptr<const resources::ResourceTable>& table) {
  const std::lock_guard lock(mutex_);
  if (!last_ || last_->table() != table.get()) last_ = std::make_shared<Documents>(table);
  return last_;
}

}  // namespace lookout::apiserver::openapi
