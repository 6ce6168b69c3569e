// The schemas of a custom resource's versions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The schemas of all versions of a definition. Prunes and defaults objects that are read or converted,
/// like k8s.io/apiextensions-apiserver. Immutable.
class VersionSchemas {
 public:
  /// The schemas of a CustomResourceDefinition.
  explicit VersionSchemas(const api::Object& definition);

  /// The schema of an apiVersion; an empty object if it has none.
  const api::Object& find(std::string_view api_version) const;

  /// Prunes a stored object, and sets defaults, by its version's schema. (The object may have been
  /// written with an older schema, or in another version.)
  api::Object read(const api::Object& stored) const;

  /// Converts an object by changing apiVersion, and prunes it with the schema of that version.
  api::Object convert(const api::Object& object, const std::string& api_version) const;

 private:
  /// All objects were written in one version, with the current schema.
  bool all_are_current_ = false;
  std::map<std::string, api::Object, std::less<>> schemas_;
};

}  // namespace lookout::apiserver::resources
