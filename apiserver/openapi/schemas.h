// The types of the API as JSON schemas.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "apiserver/json.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::openapi {

/// OpenAPI v2 (Swagger) and v3 differ in references and in some types.
enum class Dialect { kV2, kV3 };

/// The prefix of references to schemas.
std::string_view reference_prefix(Dialect dialect);

/// A set of named schemas: all referenced ones, transitively.
class Schemas {
 public:
  Schemas(Dialect dialect, json::Allocator& allocator)
      : dialect_(dialect), allocator_(allocator), all_(rapidjson::kObjectType) {}

  Dialect dialect() const { return dialect_; }

  /// A reference to the schema of a kind, which is added. Null for a kind without a schema.
  json::Value of_kind(const api::GroupVersionKind& gvk);
  /// Describes the items of a list of built-in objects, which was added before.
  void describe_items(const api::GroupVersionKind& list, std::string_view text);
  json::Value reference(std::string_view name);
  /// ObjectMeta, or ListMeta.
  json::Value metadata(bool of_list);

  bool contains(std::string_view name) const { return names_.contains(std::string(name)); }
  void add(std::string_view name, json::Value schema);

  /// All schemas, by name.
  json::Value take() { return std::move(all_); }

 private:
  json::Value schema_of(api::detail::Type type);
  json::Value property(const api::detail::Field& field);
  void define(api::detail::Type type);
  json::Value scalar(api::detail::Scalar scalar, std::string_view name);

  const Dialect dialect_;
  json::Allocator& allocator_;
  json::Value all_;
  std::set<std::string> names_;
};

/// [{"group": ..., "version": ..., "kind": ...}], or without the list.
json::Value group_version_kinds(const api::GroupVersionKind& gvk, json::Allocator& allocator);
json::Value group_version_kind(const api::GroupVersionKind& gvk, json::Allocator& allocator);

/// The names of the extensions.
inline constexpr std::string_view kGroupVersionKind = "x-kubernetes-group-version-kind";
inline constexpr std::string_view kAction = "x-kubernetes-action";

}  // namespace lookout::apiserver::openapi
