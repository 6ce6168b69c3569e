// FieldManager: updates metadata.managedFields, and implements server-side apply
// (k8s.io/apimachinery/pkg/util/managedfields).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/fields/field_schema.h"
#include "apiserver/fields/managed_fields.h"
#include "apiserver/fields/reset_fields.h"
#include "apiserver/json.h"
#include "lookout/api/resource.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::fields {

/// The type of a request's objects, for field ownership.
struct ObjectType {
  api::GroupVersionKind kind;
  FieldSchema schema;
  OwnableFields ownable;
  /// Empty for the object itself.
  std::string subresource;
  /// Whether objects of this resource are also served in another version ("apps/v1"). Owners in
  /// versions that are no longer served are removed.
  std::function<bool(std::string_view api_version)> serves;
};

/// Manages the fields of one type of objects for one client. Objects are in their mutable form, with
/// apiVersion and kind, and without the fields that Go's encoder omits.
///
/// Assumes that fields have the same path in all versions of a resource.
class FieldManager {
 public:
  /// `manager` owns changed fields, as of `now`.
  FieldManager(ObjectType type, std::string manager, api::Time now);

  /// The client has changed `live` (null for a new object) to `object`. Sets the object's
  /// managedFields: those of the client, or else those of `live`, with the changed fields owned by the
  /// client.
  void update(json::Value& object, const json::Value* live, json::Allocator& allocator) const;

  /// Applies a configuration. Returns the object, with managedFields; `live` is null for a new
  /// object. Throws api::StatusError: 409 if the configuration changes fields of other owners,
  /// unless `force` is set; 400 and 500 for a configuration that does not match the type.
  json::Document apply(const json::Value* live, const json::Value& config, bool force) const;

 private:
  struct Conflict {
    Owner owner;
    FieldSet set;
  };
  struct Applied;

  Owner owner(Operation operation) const;
  /// Removes changed fields from all owners except `self`. Returns the removed fields by owner.
  std::vector<Conflict> take_away(const Comparison& changes, const Owner* self,
                                  ManagedFields& managed) const;
  /// The fields that an object has added, changed or removed. `live` is null for a new object.
  Comparison changes_from(const json::Value* live, const json::Value& object) const;
  /// The changed fields that the writer owns afterwards.
  static FieldSet gained(const Comparison& changes);
  /// Whether the entries fit a schema that may have changed, and the entries that fit it.
  bool fit_schema(const json::Value* entries) const;
  void adapt_to_schema(ManagedFields& managed) const;
  /// Performs an update that changes only the time; see renew_time(). False if it needs more.
  bool renew_owners(const Comparison& changes, json::Value& object, const json::Value& live,
                    json::Allocator& allocator) const;
  void track(const Comparison& changes, const std::string& manager, ManagedFields& managed) const;
  ManagedFields managed_before(const json::Value& live) const;
  void check_version(const json::Value& config) const;
  void check_config(const json::Value& config) const;
  /// Whether the values have the types of the schema, which may have changed, and paths identify the
  /// elements of sets. Objects of built-in types always fit.
  bool fits_schema(const json::Value& object) const;
  Applied try_apply(const json::Value& live, const json::Value& config, bool force) const;
  json::Value pruned(json::Value merged, const FieldSet& last, const ManagedFields& managed,
                     json::Allocator& allocator) const;

  ObjectType type_;
  std::string manager_;
  api::Time now_;
};

/// The manager of a request: the parameter fieldManager, or else derived from the user agent.
std::string manager_of(std::string_view field_manager, std::string_view user_agent);

}  // namespace lookout::apiserver::fields
