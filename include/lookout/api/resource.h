// Groups, versions, kinds and resources, and the table of built-in ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/attributes.h"

namespace lookout::api {

/// Names a type: {"apps", "v1", "Deployment"}. The core group is "".
struct GroupVersionKind {
  LOOKOUT_OPTION std::string group;
  LOOKOUT_OPTION std::string version;
  LOOKOUT_OPTION std::string kind;

  /// "apps/v1", or "v1" for the core group.
  std::string api_version() const;
  /// "apps/v1 Deployment".
  std::string to_string() const;
  friend bool operator==(const GroupVersionKind&, const GroupVersionKind&) = default;

  /// From an object's apiVersion and kind.
  static GroupVersionKind from(std::string_view api_version, std::string_view kind);
};

/// The constants that identify objects of one type to a client: every generated type T has a
/// T::kResource. For types known only at run time, use Resource, which owns its strings.
struct ResourceType {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  bool namespaced = true;
};

/// The resource of one type: its path and its names.
struct Resource {
  std::string group;
  std::string version;
  std::string kind;
  std::string plural;
  bool namespaced = true;

  Resource() = default;
  Resource(std::string group, std::string version, std::string kind, std::string plural,
           bool namespaced);
  Resource(const ResourceType& type);  // NOLINT(google-explicit-constructor): the owning form

  std::string api_version() const;
  GroupVersionKind gvk() const { return {group, version, kind}; }
  /// "pods", "deployments.apps": the name in kubectl and error messages.
  std::string qualified_name() const;
  /// "/api/v1" or "/apis/apps/v1".
  std::string root_path() const;
  friend bool operator==(const Resource&, const Resource&) = default;
};

/// A resource that every Kubernetes API server of schema_version() has.
struct ResourceInfo {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  std::string_view singular;
  bool namespaced = true;
  std::string_view verbs;  // separated by commas, like the next two
  std::string_view short_names;
  std::string_view subresources;

  ResourceType type() const { return {group, version, kind, plural, namespaced}; }
};

/// Splits a comma-separated list of a ResourceInfo: "po,pod".
std::vector<std::string_view> split_list(std::string_view comma_separated);

/// The Kubernetes version of the built-in types, such as "1.36".
std::string_view schema_version();

/// All built-in resources.
std::span<const ResourceInfo> builtin_resources();

/// The built-in resource of a kind; null if there is none.
const ResourceInfo* find_builtin(std::string_view group, std::string_view version,
                                 std::string_view kind);

/// The built-in resource for a name as users write it: "pods", "pod", "po", "Pod",
/// "deployments.apps" or "deployments.v1.apps". If several match, the first in the server's order
/// of preference. Null if none does.
const ResourceInfo* find_builtin_by_name(std::string_view name);

}  // namespace lookout::api
