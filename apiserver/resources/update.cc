// Store::update(): the client's change, admission, quotas, and a write if the object is unchanged.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "apiserver/fields/field_manager.h"
#include "apiserver/quota/namespace_limits.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/gated_fields.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/part_rules.h"
#include "apiserver/resources/ratcheting.h"
#include "apiserver/resources/service_account_admission.h"
#include "apiserver/resources/service_allocator.h"
#include "apiserver/resources/structural_schema.h"
#include "apiserver/resources/write_steps.h"
#include "apiserver/storage/unknown_outcome.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::resources {
namespace {

using storage::StorageError;

/// Whether two objects of one resource differ only in the times in managedFields.
bool differ_in_times_only(const Object& object, const Object& present) {
  constexpr std::string_view kMetadata = "metadata";
  constexpr std::string_view kManagedFields = "managedFields";
  if (object[kMetadata][kManagedFields] == present[kMetadata][kManagedFields]) return false;
  if (!equal_but_for({kMetadata}, object.body(), present.body()) ||
      !equal_but_for({kManagedFields}, object[kMetadata], present[kMetadata]))
    return false;
  const Document now = object.to_document();
  const Document then = present.to_document();
  return fields::equal_but_for_times(fields::managed_fields_of(now),
                                     fields::managed_fields_of(then));
}

/// Thrown in an update that removes the last finalizer of an object that is being deleted.
struct LastFinalizerGone {
  Object object;
};
/// Thrown in the subsequent removal: the object has changed, and the update no longer removes its
/// last finalizer.
struct Stays {};

/// The claims that are not among the others.
ServiceClaims without(const ServiceClaims& claims, const ServiceClaims& others) {
  ServiceClaims out;
  std::set_difference(claims.addresses.begin(), claims.addresses.end(), others.addresses.begin(),
                      others.addresses.end(), std::inserter(out.addresses, out.addresses.end()));
  std::set_difference(claims.ports.begin(), claims.ports.end(), others.ports.begin(),
                      others.ports.end(), std::inserter(out.ports, out.ports.end()));
  return out;
}

}  // namespace

struct Store::ClaimsOfUpdate {
  ServiceClaims had = {};
  ServiceClaims taken = {};
  /// Set before the service is written.
  std::optional<ServiceClaims> wants = {};
};

/// The steps of a change between the request and the storage.
class Store::ChangeOfObject {
 public:
  ChangeOfObject(const Target& target, const Change& change, Part part)
      : target_(target), resource_(*target.resource), change_(change), part_(part) {}

  /// The client's object, if its preconditions match.
  Object wish(const Object& present) const {
    Object wanted = change_(present);
    check_identity(target_, wanted);
    check_version(wanted, present);
    return wanted;
  }

  /// Maps a stored object to the one to store.
  Object operator()(const Object& present_stored) const {
    const Object present = resource_.from_storage(present_stored);
    const Object wanted = wish(present);
    Document document = typed_document(resource_, wanted);
    Allocator& allocator = document.GetAllocator();
    keep_reset(wanted, document);
    const Document before = present.to_document();
    prepare(document, before, allocator);
    Object object = Object::from(document);
    Object stored = resource_.to_storage(object);
    // Compared in stored form: an omitted field equals an empty one.
    if (!resource_.custom) object = resource_.from_storage(stored);
    const Strategy& strategy = *resource_.strategy;
    if (strategy.finish_update != nullptr && part_ == Part::kMain) {
      object = strategy.finish_update(object, present);
      stored = resource_.to_storage(object);
    }
    if (!is_status() && part_ != Part::kWhole &&
        is_new_generation(strategy.generation, object, present)) {
      const std::int64_t next = present["metadata"]["generation"].as_int() + 1;
      object = api::with_metadata(object, {{api::sym::kGeneration, next}});
      stored = api::with_metadata(stored, {{api::sym::kGeneration, next}});
    }
    validate(object, stored, present, present_stored);
    if (is_deleting(present) && object["metadata"]["finalizers"].empty() &&
        present["metadata"]["deletionGracePeriodSeconds"].as_int() == 0 && may_go(object))
      throw LastFinalizerGone{object};
    if (!differ_in_times_only(object, present)) return stored;
    // An object that is stored in another version, or by an older schema, is written again.
    return resource_.custom ? resource_.to_storage(present) : present_stored;
  }

 private:
  bool is_status() const { return part_ == Part::kStatus || part_ == Part::kApproval; }

  void check_version(const Object& wanted, const Object& present) const {
    const std::string_view version = wanted.resource_version();
    if (version.empty() || version == "0") {
      if (resource_.strategy->unconditional_update) return;
      throw StatusError::invalid(
          resource_.type.group, resource_.type.plural, target_.name,
          {{"FieldValueInvalid", "Invalid value: 0: must be specified for an update",
            "metadata.resourceVersion"}});
    }
    if (version == present.resource_version()) return;
    if (!api::detail::parse_int(version)) {
      throw plain_failure(500, fmt::format("strconv.ParseUint: parsing {}: invalid syntax",
                                           api::detail::quote(version)));
    }
    throw StatusError::conflict(resource_.type.group, resource_.type.plural, target_.name,
                                "the object has been modified; please apply your changes to the "
                                "latest version and try again");
  }

  /// A client ends the tracking of owners with an empty list, which typed_document() drops.
  void keep_reset(const Object& wanted, Document& document) const {
    const api::Value sent = wanted["metadata"]["managedFields"];
    if (target_.fields == nullptr || part_ != Part::kMain || !sent.is_array() || !sent.empty())
      return;
    Allocator& allocator = document.GetAllocator();
    json::set(json::child(document, "metadata", allocator), "managedFields",
              json::Value(rapidjson::kArrayType), allocator);
  }

  void prepare(Document& document, const Document& before, Allocator& allocator) const {
    const Strategy& strategy = *resource_.strategy;
    if (is_status()) {
      // The new object's status, and everything else from the old object.
      json::Value status;
      if (json::Value* wanted = json::find(document, "status")) status = std::move(*wanted);
      json::Value metadata;
      if (json::Value* wanted = json::find(document, "metadata")) metadata = std::move(*wanted);
      static_cast<json::Value&>(document) = json::deep_copy(before, allocator);
      if (status.IsNull()) {
        json::erase(document, "status");
        if (!resource_.custom) add_parts(resource_, document, allocator);
      } else {
        json::set(document, "status", std::move(status), allocator);
      }
      if (strategy.status_update_keeps_metadata) {
        json::take(json::child(document, "metadata", allocator), metadata, "managedFields",
                   allocator);
      } else {
        json::set(document, "metadata", std::move(metadata), allocator);
        if (strategy.status_update_keeps_labels) {
          json::take(*json::find(document, "metadata"), *json::find(before, "metadata"), "labels",
                     allocator);
        }
      }
    } else if (part_ == Part::kMain && resource_.has_status() && !strategy.changes_status) {
      json::take(document, before, "status", allocator);
    }
    keep_metadata(document, before, allocator);
    if (!is_status() && !resource_.custom) add_parts(resource_, document, allocator);
    if (!is_status() && strategy.set_defaults != nullptr)
      strategy.set_defaults(document, allocator);
    if (part_ == Part::kStatus && strategy.set_status_defaults != nullptr)
      strategy.set_status_defaults(document, allocator);
    complete(resource_, document, allocator);
    if (const PartRules* rules = part_rules(part_); rules != nullptr)
      rules->keep_rest(document, before, allocator);
    if (target_.fields != nullptr) target_.fields->update(document, &before, allocator);
    if (part_ == Part::kMain) drop_gated_fields(resource_, document, &before);
    if (part_ == Part::kMain && strategy.prepare_for_update != nullptr)
      strategy.prepare_for_update(document, before, allocator);
    if (part_ == Part::kStatus && strategy.prepare_for_status_update != nullptr)
      strategy.prepare_for_status_update(document, before, allocator);
    settle(resource_, document, allocator);
  }

  /// Keeps metadata that an update cannot change.
  void keep_metadata(Document& document, const Document& before, Allocator& allocator) const {
    json::Value& metadata = json::child(document, "metadata", allocator);
    const json::Value& old = *json::find(before, "metadata");
    ensure_namespace(metadata, resource_.type.namespaced ? target_.ns : std::string(), allocator);
    for (const char* field : {"resourceVersion", "generation", "creationTimestamp", "selfLink"})
      json::take(metadata, old, field, allocator);
    // Once set, these are preserved. Validation rejects setting them in an update.
    for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
      if (is_status() || json::find(old, field) != nullptr)
        json::take(metadata, old, field, allocator);
    }
    if (json::text(metadata, "uid").empty()) json::take(metadata, old, "uid", allocator);
    drop_empty_metadata(metadata);
  }

  void validate(const Object& object, const Object& stored, const Object& present,
                const Object& present_stored) const {
    const Strategy& strategy = *resource_.strategy;
    Causes causes;
    // kube-apiserver validates metadata for all kinds, and most kinds validate it again. Each error is
    // repeated accordingly in the details, but not in the message.
    Causes details;
    validate_metadata_details(object, details);
    Causes of_metadata;
    validate_metadata_update(object, present, of_metadata);
    of_metadata.insert(of_metadata.end(), details.begin(), details.end());
    const auto append = [&](const Causes& more) {
      causes.insert(causes.end(), more.begin(), more.end());
    };
    validate_metadata(resource_, object, causes);
    append(of_metadata);
    if (part_ != Part::kStatus || (!resource_.custom && !strategy.status_validates_metadata_once)) {
      append(of_metadata);
      validate_finalizer_names(resource_, object, causes);
    }
    if (resource_.schema) {
      // Objects that a changed definition makes invalid must not prevent status updates.
      const auto rule = part_ == Part::kStatus ? validate_status : validate_schema;
      rule(object, present, resource_.schema.body(), causes);
    }
    if (resource_.custom && resource_.scale)
      validate_scale(object, *resource_.scale, part_ != Part::kStatus, causes);
    if (resource_.schema) add_unchecked_rules(resource_.schema.body(), causes);
    if (part_ == Part::kMain) {
      Causes of_change = change_causes(stored, present, present_stored);
      Causes of_object = object_causes(stored);
      tolerate(stored, present_stored, {&of_object, &of_change});
      if (strategy.validates_change_first) append(of_change);
      if (strategy.validates_metadata_again) {
        append(details);
        validate_finalizer_names(resource_, object, causes);
      }
      append(of_object);
      if (!strategy.validates_change_first) append(of_change);
    } else if (const PartRules* rules = part_rules(part_); rules != nullptr) {
      Causes of_object = object_causes(stored);
      tolerate(stored, present_stored, {&of_object});
      append(of_object);
      rules->validate_change(stored, present_stored, causes);
    } else if (part_ == Part::kStatus && strategy.validate_status != nullptr) {
      strategy.validate_status(stored, present_stored, causes);
    }
    throw_if_invalid(resource_, target_.name, std::move(causes));
  }

  Causes object_causes(const Object& stored) const {
    Causes causes;
    if (resource_.strategy->validate != nullptr) resource_.strategy->validate(stored, causes);
    return causes;
  }

  /// An object may have been stored before a default existed. Setting the default is not a change.
  Causes change_causes(const Object& stored, const Object& present,
                       const Object& present_stored) const {
    const Strategy& strategy = *resource_.strategy;
    Causes causes;
    if (strategy.validate_update == nullptr) return causes;
    strategy.validate_update(stored, present_stored, causes);
    if (causes.empty() || strategy.set_defaults == nullptr) return causes;
    Document document = typed_document(resource_, present);
    Allocator& allocator = document.GetAllocator();
    strategy.set_defaults(document, allocator);
    complete(resource_, document, allocator);
    settle(resource_, document, allocator);
    causes.clear();
    strategy.validate_update(stored, resource_.to_storage(Object::from(document)), causes);
    return causes;
  }

  /// Ratcheting: unchanged invalid values are allowed.
  void tolerate(const Object& stored, const Object& present_stored,
                std::initializer_list<Causes*> all) const {
    if (std::all_of(all.begin(), all.end(), [](const Causes* one) { return one->empty(); })) return;
    const Causes old = object_causes(present_stored);
    for (Causes* causes : all) {
      tolerate_old_values({resource_.type.plural, stored, present_stored}, old, *causes);
    }
  }

  /// Whether the object may be removed: a namespace must have no spec.finalizers.
  bool may_go(const Object& object) const {
    return resource_.type.plural != "namespaces" || !resource_.type.group.empty() ||
           object["spec"]["finalizers"].empty();
  }

  const Target& target_;
  const ServedResource& resource_;
  const Change& change_;
  const Part part_;
};

Awaitable<Store::Updated> Store::update(Target target, Change change, Part part,
                                        storage::Preconditions preconditions, bool dry_run) const {
  if (part == Part::kEphemeralContainers && service_accounts_ != nullptr)
    return update_ephemeral(std::move(target), std::move(change), std::move(preconditions),
                            dry_run);
  if (asks(target, Write::Operation::kUpdate)) {
    return update_admitted(std::move(target), std::move(change), part, std::move(preconditions),
                           dry_run);
  }
  return update_unasked(std::move(target), std::move(change), part, std::move(preconditions),
                        dry_run);
}

Awaitable<Store::Updated> Store::update_ephemeral(Target target, Change change,
                                                  storage::Preconditions preconditions,
                                                  bool dry_run) const {
  EphemeralSecrets admission(service_accounts_, target.ns, target.admission);
  target.admission = &admission;
  co_return co_await update_admitted(std::move(target), std::move(change),
                                     Part::kEphemeralContainers, std::move(preconditions), dry_run);
}

Awaitable<bool> Store::has_moved(Target target, Object present) const {
  const Object now = co_await target.resource->storage->get(target.key());
  co_return !now || now.resource_version() != present.resource_version();
}

/// Admission may take long. Therefore the object is read before admission and written only if it
/// has not changed. Otherwise admission runs again, as in kube-apiserver.
Awaitable<Store::Updated> Store::update_admitted(Target target, Change change, Part part,
                                                 storage::Preconditions preconditions,
                                                 bool dry_run) const {
  const ServedResource& resource = *target.resource;
  const std::string key = target.key();
  Admission& admission = *target.admission;
  for (;;) {
    const Object stored = co_await resource.objects().get(key);
    if (!stored) co_return co_await update_unasked(target, change, part, preconditions, dry_run);
    try {
      preconditions.check(key, stored);
    } catch (const StorageError& e) {
      throw_as_status(e, target, "update");
    }
    const Object present = resource.from_storage(stored);
    const ChangeOfObject change_of_object(target, change, part);
    Object wanted = change_of_object.wish(present);
    // LimitRanger precedes webhooks.
    if (part == Part::kResources) wanted = co_await complete_pod(target, std::move(wanted), false);
    const Object before = owned(target, wanted, present);
    Write first{Write::Operation::kUpdate, before, present};
    if (part == Part::kResources)
      first.again = [this, target](Object pod) {
        return complete_pod(target, std::move(pod), false);
      };
    Admission::Normalize normalize = [target](const Object& changed) {
      return decoded(target, changed, false);
    };
    Object after = co_await admission.mutate(std::move(first), std::move(normalize));
    Target rest = target;
    if (after.same(before)) {
      after = wanted;
    } else {
      // Admission's changes have no owner.
      rest.fields = nullptr;
    }
    Change settled = [after](const Object& /*present*/) { return after; };
    const ChangeOfObject outcome(rest, settled, part);
    Object kept;
    try {
      kept = resource.from_storage(outcome(stored));
    } catch (const LastFinalizerGone& e) {
      kept = e.object;
    }
    Write second{Write::Operation::kUpdate, kept, present};
    co_await admission.validate(std::move(second));
    storage::Preconditions same = preconditions;
    same.resource_version = std::string(present.resource_version());
    std::exception_ptr conflict;
    try {
      co_return co_await update_unasked(rest, std::move(settled), part, std::move(same), dry_run);
    } catch (const StatusError& e) {
      if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
      conflict = std::current_exception();
    }
    const bool moved = co_await has_moved(target, present);
    if (!moved) std::rethrow_exception(conflict);
  }
}

Awaitable<Store::Updated> Store::update_unasked(Target target, Change change, Part part,
                                                storage::Preconditions preconditions,
                                                bool dry_run) const {
  if (allocates(target) && part == Part::kMain) {
    return update_service(std::move(target), std::move(change), std::move(preconditions), dry_run);
  }
  return update_object(std::move(target), std::move(change), part, std::move(preconditions),
                       dry_run);
}

/// Allocates the new addresses and ports of a service before the change, and releases unused ones
/// afterwards.
Awaitable<Store::Updated> Store::update_service(Target target, Change change,
                                                storage::Preconditions preconditions,
                                                bool dry_run) const {
  for (int attempt = 1;; ++attempt) {
    const Object present = co_await target.resource->objects().get(target.key());
    if (!present) {
      co_return co_await update_object(target, change, Part::kMain, preconditions, dry_run);
    }
    std::optional<StatusError> failure;
    ClaimsOfUpdate claims;
    claims.had = claims_of(present);
    Updated updated;
    try {
      preconditions.check(target.key(), present);
      const ChangeOfObject change_of_object(target, change, Part::kMain);
      Object wanted;
      try {
        wanted = change_of_object(present);
      } catch (const LastFinalizerGone& e) {
        wanted = e.object;
      }
      ServiceClaims before = claims.had;
      wanted =
          co_await services_->complete(std::move(wanted), std::move(before), dry_run, claims.taken);
      claims.wants = claims_of(wanted);
      Change filled = [wanted](const Object&) { return wanted; };
      storage::Preconditions same = preconditions;
      same.resource_version = std::string(present.resource_version());
      // Allocated addresses and ports have no owner.
      Target rest = target;
      rest.fields = nullptr;
      updated =
          co_await update_object(rest, std::move(filled), Part::kMain, std::move(same), dry_run);
    } catch (const StatusError& e) {
      failure = e;
    } catch (const StorageError& e) {
      failure = as_status(e, target, "update");
    }
    if (!failure) {
      if (!dry_run) co_await services_->release(without(claims.had, claims_of(updated.object)));
      co_return updated;
    }
    if (claims.wants && !dry_run && storage::may_be_written(*failure)) {
      std::string uid(present.uid());
      co_await settle_claims(target, std::move(uid), std::move(claims));
      throw StatusError(*failure);
    }
    co_await services_->release(std::move(claims.taken));
    // There may have been a concurrent change.
    const Object now = co_await target.resource->storage->get(target.key());
    const bool moved = !now || now.resource_version() != present.resource_version();
    if (!api::is_conflict(*failure) || !moved || attempt == kWriteAttempts)
      throw StatusError(*failure);
  }
}

Awaitable<void> Store::settle_claims(Target target, std::string uid, ClaimsOfUpdate claims) const {
  const std::optional<Object> found = co_await look_again(std::move(target), std::move(uid));
  if (!found) co_return;
  const ServiceClaims has = *found ? claims_of(*found) : ServiceClaims();
  const bool updated =
      *found && has.addresses == claims.wants->addresses && has.ports == claims.wants->ports;
  ServiceClaims unused = without(updated ? claims.had : claims.taken, has);
  co_await services_->release(std::move(unused));
}

Awaitable<Store::Updated> Store::update_object(Target target, Change change, Part part,
                                               storage::Preconditions preconditions,
                                               bool dry_run) const {
  const bool concerned =
      part == Part::kResources ||
      (part == Part::kMain && quota::NamespaceLimits::concerns_updates(target.resource->type));
  if (concerned && is_limited(target)) {
    return update_limited(std::move(target), std::move(change), part, std::move(preconditions),
                          dry_run);
  }
  return write_change(std::move(target), std::move(change), part, std::move(preconditions),
                      dry_run);
}

/// As with admission, the object is read first and written if it has not changed.
Awaitable<Store::Updated> Store::update_limited(Target target, Change change, Part part,
                                                storage::Preconditions preconditions,
                                                bool dry_run) const {
  const ServedResource& resource = *target.resource;
  for (;;) {
    const Object stored = co_await resource.objects().get(target.key());
    if (!stored) {
      co_return co_await write_change(target, change, part, preconditions, dry_run);
    }
    const Object present = resource.from_storage(stored);
    Change settled = change;
    if (part == Part::kResources) {
      const ChangeOfObject asked(target, change, part);
      Object pod = asked.wish(present);
      pod = co_await complete_pod(target, std::move(pod), false);
      settled = [pod](const Object& /*present*/) { return pod; };
    }
    const ChangeOfObject change_of_object(target, settled, part);
    bool goes = false;
    Object wanted;
    try {
      preconditions.check(target.key(), stored);
      wanted = resource.from_storage(change_of_object(stored));
    } catch (const LastFinalizerGone&) {
      goes = true;
    } catch (const StorageError& e) {
      throw_as_status(e, target, "update");
    }
    storage::Preconditions same = preconditions;
    same.resource_version = std::string(present.resource_version());
    std::optional<quota::NamespaceLimits::Charge> charge;
    if (!goes) {
      co_await limits_->check(target.resource, target.ns, wanted, present);
      charge.emplace(
          co_await limits_->charge(target.resource, target.ns, wanted, present, dry_run));
    }
    std::exception_ptr failure;
    bool conflict = false;
    bool unknown = false;
    try {
      Updated updated = co_await write_change(target, settled, part, std::move(same), dry_run);
      if (charge) charge->keep();
      co_return updated;
    } catch (const StatusError& e) {
      failure = std::current_exception();
      conflict = api::is_conflict(e) || api::is_not_found(e);
      unknown = storage::may_be_written(e);
    }
    if (unknown && charge) {
      std::string uid(present.uid());
      const std::optional<Object> now = co_await look_again(target, std::move(uid));
      // If the object has changed, this may be the change. The destructor of the charge causes a
      // recount.
      if (!now || now->resource_version() != present.resource_version())
        std::rethrow_exception(failure);
    }
    if (charge) co_await limits_->refund(std::move(*charge));
    bool moved = false;
    if (conflict) moved = co_await has_moved(target, present);
    if (!moved) std::rethrow_exception(failure);
  }
}

Awaitable<Store::Updated> Store::write_change(Target target, Change change, Part part,
                                              storage::Preconditions preconditions,
                                              bool dry_run) const {
  const ServedResource& resource = *target.resource;
  const std::string key = target.key();
  const ChangeOfObject change_of_object(target, change, part);
  const bool may_create =
      target.creates || (resource.strategy->create_on_update && part == Part::kMain);
  std::optional<LastFinalizerGone> gone;
  std::optional<StorageError> failure;
  Object result;
  try {
    if (dry_run) {
      const Object present = co_await resource.objects().get(key);
      if (present) {
        preconditions.check(key, present);
        co_return Updated{resource.from_storage(change_of_object(present)), false, present};
      }
      throw StorageError(StorageError::Code::kKeyNotFound, key);
    }
    Object before;
    storage::Interface::Update wrapped = [&](const Object& present) {
      before = present;
      return change_of_object(present);
    };
    result = co_await resource.objects().guaranteed_update(key, false, preconditions,
                                                           std::move(wrapped));
    co_return Updated{resource.from_storage(result), false, std::move(before)};
  } catch (const LastFinalizerGone& e) {
    gone = e;
  } catch (const StorageError& e) {
    failure = e;
  }
  if (gone) {
    if (!dry_run) {
      bool stays = false;
      storage::Interface::Validate goes = [&](const Object& present) {
        try {
          change_of_object(present);
        } catch (const LastFinalizerGone&) {
          return;
        }
        throw Stays{};
      };
      try {
        co_await remove_stored(target, preconditions, std::move(goes));
      } catch (const Stays&) {
        stays = true;
      } catch (const StorageError& e) {
        // Another client may have removed the object.
        if (e.code() != StorageError::Code::kKeyNotFound) throw_as_status(e, target, "delete");
      }
      if (stays) co_return co_await write_change(target, change, part, preconditions, dry_run);
      if (allocates(target)) co_await services_->release(claims_of(gone->object));
    }
    co_return Updated{gone->object, false};
  }
  if (failure->code() != StorageError::Code::kKeyNotFound || !may_create)
    throw_as_status(*failure, target, "update");
  // PUT creates objects of some kinds, without a resourceVersion.
  Object fresh = change({});
  check_identity(target, fresh);
  storage::Preconditions same;
  same.uid = preconditions.uid;
  if (!fresh.uid().empty()) same.uid = std::string(fresh.uid());
  try {
    same.check(failure->key(), Object::parse("{}"));
  } catch (const StorageError& e) {
    throw_as_status(e, target, "update");
  }
  fresh = api::with_metadata(fresh, {{api::sym::kResourceVersion, std::monostate()}});
  Object created = co_await create(target, fresh, dry_run);
  co_return Updated{std::move(created), true};
}

}  // namespace lookout::apiserver::resources
