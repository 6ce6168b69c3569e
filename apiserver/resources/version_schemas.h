// The schemas of a custom resource's versions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The schemas of all versions of a definition, and what they make of objects that are read or
/// converted, as k8s.io/apiextensions-apiserver does. Immutable.
class VersionSchemas {
 public:
  /// Of a CustomResourceDefinition.
  explicit VersionSchemas(const api::Object& definition);

  /// The schema of an apiVersion; an empty object if it has none.
  const api::Object& find(std::string_view api_version) const;

  /// An object as it is stored, as its version shows it: without fields that the version's schema does
  /// not know, and with its defaults. (It may have been written with an older schema, or in another
  /// version.)
  api::Object read(const api::Object& stored) const;

  /// An object in another version where only apiVersion differs, without fields that the schema of
  /// that version does not know.
  api::Object convert(const api::Object& object, const std::string& api_version) const;

 private:
  /// Only these objects were written: of one version, with the present schema.
  bool all_are_current_ = false;
  std::map<std::string, api::Object, std::less<>> schemas_;
};

}  // namespace lookout::apiserver::resources
