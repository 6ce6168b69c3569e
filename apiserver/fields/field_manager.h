// FieldManager: keeps metadata.managedFields, and carries out server-side apply
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

/// The objects of a request, as far as the ownership of their fields goes.
struct ObjectType {
  api::GroupVersionKind kind;
  FieldSchema schema;
  OwnableFields ownable;
  /// Empty for the object itself.
  std::string subresource;
  /// Whether objects of this resource are also served in another version ("apps/v1"). Owners of
  /// fields in versions that are not served any more are forgotten.
  std::function<bool(std::string_view api_version)> serves;
};

/// Looks after the fields of one type of objects on behalf of one client. Objects are in their
/// mutable form, with apiVersion and kind, and without what Go's encoder leaves out of them.
///
/// Fields that an owner has in another version of the resource are taken to have the same path in
/// this one.
class FieldManager {
 public:
  /// `manager` owns what changes, from `now` on.
  FieldManager(ObjectType type, std::string manager, api::Time now);

  /// The client has made `object` from `live`, which is null for a new object. Sets the object's
  /// managedFields: those that the client has sent, or else those of `live`, with what has changed
  /// under the client's name.
  void update(json::Value& object, const json::Value* live, json::Allocator& allocator) const;

  /// Applies a configuration. Returns the object, with managedFields; `live` is null for a new
  /// object. Throws api::StatusError: 409 if others own fields that the configuration changes,
  /// unless `force` takes them away; 400 and 500 for a configuration that does not fit the type.
  json::Document apply(const json::Value* live, const json::Value& config, bool force) const;

 private:
  struct Conflict {
    Owner owner;
    FieldSet set;
  };
  struct Applied;

  Owner owner(Operation operation) const;
  /// Takes what has changed away from all owners but `self`. Returns who has lost what.
  std::vector<Conflict> take_away(const Comparison& changes, const Owner* self,
                                  ManagedFields& managed) const;
  /// The fields that an object has added, changed or removed. `live` is null for a new object.
  Comparison changes_from(const json::Value* live, const json::Value& object) const;
  /// The changed fields that the writer owns afterwards.
  static FieldSet gained(const Comparison& changes);
  /// Does an update that needs only a new time: see renew_time(). Returns false if it needs more.
  bool renew_owners(const Comparison& changes, json::Value& object, const json::Value& live,
                    json::Allocator& allocator) const;
  void track(const Comparison& changes, const std::string& manager, ManagedFields& managed) const;
  ManagedFields managed_before(const json::Value& live) const;
  void check_config(const json::Value& config) const;
  Applied try_apply(const json::Value& live, const json::Value& config, bool force) const;
  json::Value pruned(json::Value merged, const FieldSet& last, const ManagedFields& managed,
                     json::Allocator& allocator) const;

  ObjectType type_;
  std::string manager_;
  api::Time now_;
};

/// The manager of a request: the parameter fieldManager, or else what the client calls itself.
std::string manager_of(std::string_view field_manager, std::string_view user_agent);

}  // namespace lookout::apiserver::fields
