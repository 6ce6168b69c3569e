#include "apiserver/fields/field_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "apiserver/fields/last_applied.h"
#include "apiserver/fields/typed_value.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::fields {
namespace {

using api::StatusError;
using json::Value;

/// kube-apiserver's DefaultMaxUpdateManagers.
constexpr std::size_t kMaxUpdaters = 10;
constexpr std::size_t kMaxManagerName = 128;
/// The owner of fields that were set before ownership was recorded.
constexpr std::string_view kBeforeFirstApply = "before-first-apply";

/// A failure without a specific Status in the API server.
StatusError failure(std::string message) {
  api::Status status;
  status.code = 500;
  status.message = std::move(message);
  return StatusError(std::move(status));
}

/// schema.GroupVersionKind as Go prints it.
std::string type_text(std::string_view api_version, std::string_view kind) {
  const bool has_group = api_version.find('/') != std::string_view::npos;
  return fmt::format("{}{}, Kind={}", has_group ? "" : "/", api_version, kind);
}

/// "namespace/name; group/version, Kind=kind".
std::string described(const Value& object) {
  const Value* metadata = json::find(object, "metadata");
  const auto text = [&](std::string_view name) {
    return metadata == nullptr ? std::string_view() : json::text(*metadata, name);
  };
  return fmt::format("{}/{}; {}", text("namespace"), text("name"),
                     type_text(json::text(object, "apiVersion"), json::text(object, "kind")));
}

/// The problems as structured-merge-diff prints them.
std::string joined(const std::vector<std::string>& problems) {
  return problems.size() == 1 ? problems.front()
                              : fmt::format("errors:\n  {}", fmt::join(problems, "\n  "));
}

/// An object without set fields. Go writes some fields of built-in kinds anyway.
json::Document empty_object(const api::GroupVersionKind& kind) {
  const std::string version = kind.api_version();
  if (api::has_protobuf(version, kind.kind)) {
    if (const api::Object object = api::ProtobufDecoder().decode_item(version, kind.kind, ""))
      return object.to_document();
  }
  json::Document out(rapidjson::kObjectType);
  // A custom resource starts with its type.
  json::set(out, "apiVersion", version, out.GetAllocator());
  json::set(out, "kind", kind.kind, out.GetAllocator());
  return out;
}

/// "conflict with ..." as a cause and in the message of a conflict.
StatusError conflict_error(const std::vector<std::pair<std::string, std::string>>& conflicts) {
  api::Status status;
  status.code = 409;
  status.reason = api::reason::kConflict;
  status.has_details = true;
  for (const auto& [owner, path] : conflicts)
    status.causes.push_back({"FieldManagerConflict", "conflict with " + owner, path});
  if (conflicts.size() == 1) {
    status.message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                                 conflicts[0].first, conflicts[0].second);
  } else {
    status.message = fmt::format("Apply failed with {} conflicts: ", conflicts.size());
    const std::string* last = nullptr;
    for (const auto& [owner, path] : conflicts) {
      if (last == nullptr || *last != owner) {
        if (last != nullptr) status.message += '\n';
        status.message += fmt::format("conflicts with {}:", owner);
      }
      status.message += "\n- " + path;
      last = &owner;
    }
  }
  return StatusError(std::move(status));
}

}  // namespace

struct FieldManager::Applied {
  json::Document object;
  ManagedFields managed;
  std::vector<Conflict> conflicts;  // if there are any, the other members are ignored
};

FieldManager::FieldManager(ObjectType type, std::string manager, api::Time now)
    : type_(std::move(type)),
      manager_(std::move(manager)),
      now_(std::chrono::floor<std::chrono::seconds>(now)) {}

Owner FieldManager::owner(Operation operation) const {
  return {manager_.empty() ? "unknown" : manager_, operation, type_.subresource,
          type_.kind.api_version()};
}

std::vector<FieldManager::Conflict> FieldManager::take_away(const Comparison& changes,
                                                            const Owner* self,
                                                            ManagedFields& managed) const {
  std::vector<Conflict> out;
  const FieldSet set = changes.modified.united(changes.added);
  const FieldSet touched = set.united(changes.removed);
  const std::string version = type_.kind.api_version();
  std::erase_if(managed.entries(), [&](const Entry& entry) {
    return entry.owner.api_version != version && type_.serves != nullptr &&
           !type_.serves(entry.owner.api_version);
  });
  for (Entry& entry : managed.entries()) {
    if (self != nullptr && entry.owner.is_same_as(*self)) continue;
    FieldSet lost = entry.set.intersected(set);
    if (!lost.empty()) out.push_back({entry.owner, std::move(lost)});
    entry.set = entry.set.without(touched);
  }
  managed.drop_empty();
  return out;
}

Comparison FieldManager::changes_from(const Value* live, const Value& object) const {
  json::Document empty;
  if (live == nullptr) {
    empty = empty_object(type_.kind);
    live = &empty;
  }
  return type_.ownable.filtered(compare(*live, object, type_.schema));
}

FieldSet FieldManager::gained(const Comparison& changes) {
  return changes.modified.united(changes.added).without(unowned_metadata());
}

bool FieldManager::fit_schema(const Value* entries) const {
  if (!type_.schema.can_change() || entries == nullptr || !entries->IsArray()) return true;
  return std::none_of(entries->Begin(), entries->End(), [this](const Value& entry) {
    const Value* fields = json::find(entry, "fieldsV1");
    return fields != nullptr && has_parts_of_atomic_fields(*fields, type_.schema);
  });
}

void FieldManager::adapt_to_schema(ManagedFields& managed) const {
  if (!type_.schema.can_change()) return;
  for (Entry& entry : managed.entries()) entry.set = with_atomic_fields(entry.set, type_.schema);
}

bool FieldManager::renew_owners(const Comparison& changes, Value& object, const Value& live,
                                json::Allocator& allocator) const {
  Value* sent = type_.subresource.empty() ? managed_fields_of(object) : nullptr;
  const Value* had = managed_fields_of(live);
  if (!fit_schema(sent) || (sent == nullptr && !fit_schema(had))) return false;
  Update update;
  update.self = owner(Operation::kUpdate);
  update.time = now_;
  update.gained = gained(changes);
  update.touched = changes.modified.united(changes.added).united(changes.removed);
  update.lost = update.touched.without(update.gained);
  if (sent != nullptr) return renew_time(*sent, update, kMaxUpdaters, allocator);
  if (had == nullptr) return false;
  Value entries = json::deep_copy(*had, allocator);
  if (!renew_time(entries, update, kMaxUpdaters, allocator)) return false;
  set_managed_fields(object, std::move(entries), allocator);
  return true;
}

void FieldManager::track(const Comparison& changes, const std::string& manager,
                         ManagedFields& managed) const {
  take_away(changes, nullptr, managed);
  const FieldSet set = gained(changes);
  if (set.empty()) return;
  Owner self = owner(Operation::kUpdate);
  self.manager = manager;
  if (Entry* present = managed.find(self)) {
    present->set = present->set.united(set);
    present->time = now_;
  } else {
    managed.entries().push_back({std::move(self), now_, set});
  }
  managed.cap_updaters(kMaxUpdaters);
}

bool FieldManager::fits_schema(const Value& object) const {
  if (!type_.schema.can_change() || !object.IsObject()) return true;
  return std::all_of(object.MemberBegin(), object.MemberEnd(), [this](const auto& member) {
    const std::string_view name = json::text_of(member.name);
    // Metadata is typed, and has large managedFields.
    const auto type = name == "metadata" ? std::nullopt : type_.schema.member(name);
    return !type || fits(member.value, type->schema);
  });
}

void FieldManager::update(Value& object, const Value* live, json::Allocator& allocator) const {
  // kube-apiserver fails to record the owners, and drops all that were recorded before.
  if (!fits_schema(object) || (live != nullptr && !fits_schema(*live)))
    return set_managed_fields(object, Value(), allocator);
  const Comparison changes = changes_from(live, object);
  if (live != nullptr && renew_owners(changes, object, *live, allocator)) return;
  const Value* sent = type_.subresource.empty() ? managed_fields_of(object) : nullptr;
  const Value* had = live == nullptr ? nullptr : managed_fields_of(*live);
  std::optional<ManagedFields> managed;
  if (sent != nullptr && is_reset(*sent)) {
    managed.emplace();
  } else {
    if (sent != nullptr) managed = ManagedFields::parse(*sent);
    // A client that omits managedFields does not delete them.
    if ((!managed || managed->empty()) && had != nullptr) managed = ManagedFields::parse(*had);
    if (!managed) managed.emplace();
  }
  adapt_to_schema(*managed);
  // Without recorded ownership, recording starts with the first apply.
  if (live == nullptr || !managed->empty())
    track(changes, owner(Operation::kUpdate).manager, *managed);
  set_managed_fields(object, managed->to_json(allocator), allocator);
}

ManagedFields FieldManager::managed_before(const Value& live) const {
  const Value* had = managed_fields_of(live);
  if (had == nullptr) return {};
  auto managed = ManagedFields::parse(*had);
  if (!managed) throw failure("failed to decode managed fields");
  adapt_to_schema(*managed);
  return std::move(*managed);
}

void FieldManager::check_version(const Value& config) const {
  const std::string_view version = json::text(config, "apiVersion");
  const std::string_view kind = json::text(config, "kind");
  if (version != type_.kind.api_version() || kind != type_.kind.kind)
    throw StatusError::bad_request("invalid object type: " + type_text(version, kind));
}

void FieldManager::check_config(const Value& config) const {
  const Value* managed = managed_fields_of(config);
  if (managed != nullptr && managed->IsArray())
    throw StatusError::bad_request("metadata.managedFields must be nil");
  const auto problems = check(config, type_.schema);
  if (!problems.empty())
    throw failure(fmt::format("failed to create typed patch object ({}): {}", described(config),
                              joined(problems)));
}

/// Removes fields that this manager no longer applies, unless others own them.
Value FieldManager::pruned(Value merged, const FieldSet& last, const ManagedFields& managed,
                           json::Allocator& allocator) const {
  const FieldSchema& schema = type_.schema;
  FieldSet owned;
  for (const Entry& entry : managed.entries()) owned = owned.united(entry.set);
  const FieldSet applied = with_fields(last, schema);
  const FieldSet all = with_fields(field_set(merged, schema), schema);
  const auto fields_without = [&](const FieldSet& gone) {
    return with_fields(field_set(remove(merged, gone, schema, allocator), schema), schema);
  };
  // Removing a list element removes everything below it. Restore fields of other owners, and then
  // unowned fields that this manager had not applied.
  FieldSet kept = fields_without(applied).united(with_fields(owned, schema));
  kept = fields_without(all.without(kept));
  return remove(merged, all.without(kept).intersected(applied), schema, allocator);
}

FieldManager::Applied FieldManager::try_apply(const Value& live, const Value& config,
                                              bool force) const {
  Applied out;
  out.managed = managed_before(live);
  if (out.managed.empty() && !live.ObjectEmpty())
    track(changes_from(nullptr, live), std::string(kBeforeFirstApply), out.managed);
  json::Allocator& allocator = out.object.GetAllocator();
  const Owner self = owner(Operation::kApply);
  FieldSet last;
  if (Entry* entry = out.managed.find(self)) last = std::move(entry->set);
  const std::optional<api::Time> before =
      out.managed.find(self) == nullptr ? std::nullopt : out.managed.find(self)->time;
  out.managed.remove(self);
  const FieldSet set = type_.ownable.filtered(field_set(config, type_.schema));
  out.managed.entries().push_back({self, before, set});
  Value object = merge(live, config, type_.schema, allocator);
  if (!last.without(set).empty()) object = pruned(std::move(object), last, out.managed, allocator);
  const Comparison changes = type_.ownable.filtered(compare(live, object, type_.schema));
  auto conflicts = take_away(changes, &self, out.managed);
  if (!force && !conflicts.empty()) {
    out.conflicts = std::move(conflicts);
    return out;
  }
  if (Entry* entry = out.managed.find(self)) {
    if (!equal(live, object)) entry->time = now_;
    entry->set = entry->set.without(unowned_metadata());
  }
  out.managed.drop_empty();
  static_cast<Value&>(out.object) = std::move(object);
  return out;
}

json::Document FieldManager::apply(const Value* live, const Value& config, bool force) const {
  check_version(config);
  std::vector<std::string> problems;
  if (live != nullptr && !fits_schema(*live)) problems = check_stored(*live, type_.schema);
  // The first apply begins with an owner for the existing fields.
  if (!problems.empty() && managed_before(*live).empty()) {
    throw failure(
        fmt::format("failed to create manager for existing fields: failed to convert new "
                    "object ({}) to smd typed: {}",
                    described(*live), joined(problems)));
  }
  check_config(config);
  if (!problems.empty()) {
    throw failure(fmt::format("failed to create typed live object ({}): {}", described(*live),
                              joined(problems)));
  }
  static const Value kNothing(rapidjson::kObjectType);
  const Value& before = live == nullptr ? kNothing : *live;
  Applied applied = try_apply(before, config, force);
  if (!applied.conflicts.empty() && manager_ == kKubectl) {
    if (const auto free = client_side_fields(before, type_.schema)) {
      for (Conflict& conflict : applied.conflicts) conflict.set = conflict.set.without(*free);
      std::erase_if(applied.conflicts, [](const Conflict& c) { return c.set.empty(); });
      if (applied.conflicts.empty()) applied = try_apply(before, config, true);
    }
  }
  if (!applied.conflicts.empty()) {
    std::vector<std::pair<std::string, std::string>> found;
    for (const Conflict& conflict : applied.conflicts) {
      for (std::string& path : conflict.set.paths())
        found.emplace_back(conflict.owner.to_string(), std::move(path));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    throw conflict_error(found);
  }
  json::Allocator& allocator = applied.object.GetAllocator();
  if (manager_ == kKubectl) update_last_applied(applied.object, config, allocator);
  set_managed_fields(applied.object, applied.managed.to_json(allocator), allocator);
  return std::move(applied.object);
}

std::string manager_of(std::string_view field_manager, std::string_view user_agent) {
  if (!field_manager.empty()) return std::string(field_manager);
  std::string out;
  for (const char c : user_agent.substr(0, user_agent.find('/'))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) out += c;
  }
  if (out.size() <= kMaxManagerName) return out;
  // Do not cut a character.
  std::size_t end = kMaxManagerName;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  out.resize(end);
  return out;
}

}  // namespace lookout::apiserver::fields
