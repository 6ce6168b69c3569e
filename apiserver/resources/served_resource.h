// ServedResource: the server's description of a resource.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/tables/printer.h"
#include "lookout/api/resource.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::resources {

struct Strategy;
class VersionSchemas;
class WebhookConverter;

/// A field that clients may select by.
struct SelectableField {
  std::string name;
  storage::FieldReader read;
};

/// The paths of a scale subresource: names from the root of the object.
struct ScalePaths {
  std::vector<std::string> spec_replicas;
  std::vector<std::string> status_replicas;
  /// The path of the label selector, which is text or a metav1.LabelSelector; empty if there is
  /// none.
  std::vector<std::string> selector;
};

/// The value at a path of an object.
api::Value value_at(const api::Object& object, const std::vector<std::string>& path);

struct Subresource {
  std::string name;
  /// The kind of the response, which may be in another group.
  api::GroupVersionKind kind;
  std::vector<std::string> verbs;
};

/// A resource in one version. Immutable and shared.
struct ServedResource {
  api::Resource type;
  std::string list_kind;
  std::string singular;
  std::vector<std::string> verbs;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  std::vector<Subresource> subresources;
  bool custom = false;
  /// The definition is being deleted, so no objects can be created.
  bool terminating = false;
  /// The text of the Warning header in responses; empty if the version is not deprecated.
  std::string deprecation = {};

  /// The apiVersion of stored objects: "apps/v1". All versions of a resource share their objects.
  std::string storage_version;
  /// Converts between this version and the storage version; null if only apiVersion differs.
  using Converter = api::Object (*)(const api::Object&);
  Converter convert_to_storage = nullptr;
  Converter convert_from_storage = nullptr;
  /// The same for all versions of a resource. Null for resources that are not stored (reviews).
  storage::Interface* storage = nullptr;
  /// A view of `storage` in this version, if a webhook converts.
  std::shared_ptr<storage::Interface> converting_storage;
  std::shared_ptr<const WebhookConverter> converter;
  /// Stopped when the resource is removed or changed, so that watches end.
  std::stop_token retired;

  std::vector<SelectableField> fields;
  /// The error for a selector with an unknown field; "{}" stands for its name.
  std::string unknown_field_message;
  std::optional<ScalePaths> scale;
  const Strategy* strategy = nullptr;
  /// The structural schema of a custom resource; empty if there is none.
  api::Object schema;
  /// The schemas of all versions of a custom resource; null for others.
  std::shared_ptr<const VersionSchemas> schemas;
  /// The printer for tables.
  std::shared_ptr<const tables::Printer> printer;

  bool has_verb(std::string_view verb) const;
  const Subresource* find_subresource(std::string_view name) const;
  bool has_status() const { return find_subresource("status") != nullptr; }
  /// The storage that requests use.
  storage::Interface& objects() const {
    return converting_storage != nullptr ? *converting_storage : *storage;
  }
  /// Convert an object of this version to the form of objects(), and back.
  api::Object to_storage(const api::Object& object) const;
  api::Object from_storage(const api::Object& stored) const;
};

using ServedResourcePtr = std::shared_ptr<const ServedResource>;

/// A group and its versions, in order of preference.
struct ServedGroup {
  std::string name;
  std::vector<std::string> versions;
};

/// All resources at one moment. Immutable.
class ResourceTable {
 public:
  explicit ResourceTable(std::vector<ServedResourcePtr> resources);

  /// Null if there is none.
  ServedResourcePtr find(std::string_view group, std::string_view version,
                         std::string_view plural) const;
  bool has_version(std::string_view group, std::string_view version) const;
  const ServedGroup* find_group(std::string_view name) const;

  /// In the order of discovery.
  const std::vector<ServedGroup>& groups() const { return groups_; }
  const std::vector<ServedResourcePtr>& resources() const { return resources_; }

 private:
  std::vector<ServedResourcePtr> resources_;
  std::vector<ServedGroup> groups_;
};

/// The built-in resources, stored in `backend`.
std::vector<ServedResourcePtr> builtin_resources(storage::Backend& backend);

}  // namespace lookout::apiserver::resources
