// ManagedFields: the field owners of an object, from metadata.managedFields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/fields/field_set.h"
#include "apiserver/json.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::fields {

enum class Operation : std::uint8_t { kApply, kUpdate };

/// An owner of fields. Appliers are the same in all versions, updaters are not.
struct Owner {
  std::string manager;
  Operation operation = Operation::kUpdate;
  std::string subresource;  // empty for the object itself
  std::string api_version;  // of the paths

  bool is_same_as(const Owner& other) const {
    return manager == other.manager && operation == other.operation &&
           subresource == other.subresource &&
           (operation == Operation::kApply || api_version == other.api_version);
  }
  /// For conflicts: `"web" with subresource "scale" using apps/v1`.
  std::string to_string() const;
};

struct Entry {
  Owner owner;
  std::optional<api::Time> time;  // of the last change, in seconds
  FieldSet set;
};

/// The entries of an object, which are few.
class ManagedFields {
 public:
  /// Reads metadata.managedFields. Empty if it is malformed.
  static std::optional<ManagedFields> parse(const json::Value& entries);

  bool empty() const { return entries_.empty(); }
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }

  Entry* find(const Owner& owner);
  void remove(const Owner& owner);
  /// Removes entries without fields.
  void drop_empty();
  /// Merges the oldest updaters of a version into one, "ancient-changes", until there are at most
  /// `limit` updaters or nothing more can be merged.
  void cap_updaters(std::size_t limit);

  /// The value of metadata.managedFields, in Kubernetes' order.
  json::Value to_json(json::Allocator& allocator);

 private:
  std::vector<Entry> entries_;
};

/// The effect of an update on the owners of fields.
struct Update {
  Owner self;
  api::Time time;
  FieldSet gained;   // belongs to `self` afterwards
  FieldSet lost;     // without an owner afterwards
  FieldSet touched;  // both
};

/// Fast path for updates that change only the time in metadata.managedFields: most updates change
/// fields that their manager already owns. Returns false, without changes, in all other cases:
/// entries must be in the form of to_json(), at most `limit`, and in the version of the update.
bool renew_time(json::Value& entries, const Update& update, std::size_t limit,
                json::Allocator& allocator);

/// Whether a client resets managedFields with this value: with an empty list, or with one empty
/// entry.
bool is_reset(const json::Value& entries);

/// The value of metadata.managedFields; null if there is none.
json::Value* managed_fields_of(json::Value& object);
const json::Value* managed_fields_of(const json::Value& object);
/// Sets it, or removes it if `managed` is null.
void set_managed_fields(json::Value& object, json::Value managed, json::Allocator& allocator);

/// Whether two values of metadata.managedFields differ only in times.
bool equal_but_for_times(const json::Value* a, const json::Value* b);

}  // namespace lookout::apiserver::fields
