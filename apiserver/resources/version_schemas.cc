#include "apiserver/resources/version_schemas.h"

#include <fmt/format.h>

#include "apiserver/json.h"
#include "apiserver/resources/structural_schema.h"
#include "lookout/api/detail/object_editor.h"

namespace lookout::apiserver::resources {

using api::Object;

VersionSchemas::VersionSchemas(const Object& definition) {
  const api::Value spec = definition["spec"];
  std::size_t versions = 0;
  for (const api::Value version : spec["versions"].elements()) {
    ++versions;
    const api::Value schema = version["schema"]["openAPIV3Schema"];
    if (!schema.is_object()) continue;
    schemas_.emplace(fmt::format("{}/{}", spec["group"].as_string(), version["name"].as_string()),
                     Object::parse(schema.to_json()));
  }
  all_are_current_ = versions == 1 && definition["metadata"]["generation"].as_int() <= 1;
}

const Object& VersionSchemas::find(std::string_view api_version) const {
  static const Object kNone;
  const auto found = schemas_.find(api_version);
  return found == schemas_.end() ? kNone : found->second;
}

Object VersionSchemas::read(const Object& stored) const {
  if (all_are_current_ || !stored) return stored;
  const Object& schema = find(stored.api_version());
  if (!schema || is_settled(stored.body(), schema.body())) return stored;
  json::Document document = stored.to_document();
  prune(document, schema.body());
  set_schema_defaults(document, schema.body(), document.GetAllocator());
  return Object::from(document);
}

Object VersionSchemas::convert(const Object& object, const std::string& api_version) const {
  if (!object || object.api_version() == api_version) return object;
  const Object& schema = find(api_version);
  Object converted = api::with_type(object, api_version, object.kind());
  if (!schema || !has_unknown_fields(converted.body(), schema.body())) return converted;
  json::Document document = converted.to_document();
  prune(document, schema.body());
  return Object::from(document);
}

}  // namespace lookout::apiserver::resources
