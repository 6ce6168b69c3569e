// Deletion: immediate, after a grace period, or after the last finalizer is removed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/service_allocator.h"
#include "apiserver/resources/store.h"
#include "apiserver/storage/unknown_outcome.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/symbols.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::resources {
namespace {

bool is(const Target& target, std::string_view group, std::string_view plural) {
  return target.resource->type.group == group && target.resource->type.plural == plural;
}

/// Events have no dependents, so there is no garbage collection (rest.Unsupported).
bool is_event(const Target& target) {
  return is(target, "", "events") || is(target, "events.k8s.io", "events");
}

bool is_namespace(const Target& target) { return is(target, "", "namespaces"); }

bool is_definition(const Target& target) {
  return is(target, "apiextensions.k8s.io", "customresourcedefinitions");
}

}  // namespace

void check_preconditions(const Target& target, const storage::Preconditions& preconditions,
                         const Object& present) {
  const auto demand = [&](std::string_view what, const std::optional<std::string>& wanted,
                          std::string_view actual, std::string_view perhaps) {
    if (!wanted || *wanted == actual) return;
    // Namespaces and definitions have a different message.
    if (is_namespace(target) || is_definition(target)) {
      throw StatusError::conflict(
          target.resource->type.group, target.resource->type.plural, present.name(),
          fmt::format("Precondition failed: {0} in precondition: {1}, {0} in object meta: {2}",
                      what, *wanted, actual));
    }
    // kube-apiserver has the kind here, where other messages have the resource.
    throw StatusError::conflict(
        target.resource->type.group, target.resource->type.kind, present.name(),
        fmt::format("the {0} in the precondition ({1}) does not match the {0} in record ({2}). The "
                    "object might have been {3}",
                    what, *wanted, actual, perhaps));
  };
  demand("UID", preconditions.uid, present.uid(), "deleted and then recreated");
  demand("ResourceVersion", preconditions.resource_version, present.resource_version(), "modified");
}

namespace {

using storage::StorageError;

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

/// The object with deletionTimestamp and deletionGracePeriodSeconds.
Object mark(const Object& object, std::chrono::sys_seconds when, std::int64_t grace) {
  const std::string time = api::format_time(when);
  const std::int64_t generation = object["metadata"]["generation"].as_int();
  // The first time, this increases the generation, so that controllers notice it.
  const std::int64_t next = is_deleting(object) || generation == 0 ? generation : generation + 1;
  Object marked =
      api::with_metadata(object, {{api::sym::kDeletionTimestamp, std::string_view(time)},
                                  {api::sym::kDeletionGracePeriodSeconds, grace}});
  return next == 0 ? marked : api::with_metadata(marked, {{api::sym::kGeneration, next}});
}

/// The grace period of a pod: the client's, or else the pod's; 0 for pods that are unscheduled or
/// have ended.
std::int64_t grace_of(const Object& pod, const DeleteOptions& options) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  if (pod["spec"]["nodeName"].as_string().empty() || phase == "Failed" || phase == "Succeeded")
    return 0;
  const std::int64_t grace =
      options.grace_period_seconds.value_or(pod["spec"]["terminationGracePeriodSeconds"].as_int());
  return grace < 0 ? 1 : grace;
}

/// The grace period of a pod that is already being deleted, if the client requests a shorter one.
std::optional<std::int64_t> shorter_grace(const DeleteOptions& options, std::int64_t before) {
  if (!options.grace_period_seconds) return std::nullopt;
  const std::int64_t wanted = *options.grace_period_seconds;
  const std::int64_t grace = wanted < 0 ? 1 : wanted;
  return grace < before ? std::optional(grace) : std::nullopt;
}

/// The pod with its grace period shortened to `grace` seconds from the first deletion.
Object mark_shorter(const Object& pod, std::int64_t before, std::int64_t grace) {
  const auto end = api::parse_time(pod["metadata"]["deletionTimestamp"].as_string());
  const auto shorter = std::chrono::floor<std::chrono::seconds>(end.value_or(now())) -
                       std::chrono::seconds(before - grace);
  if (shorter >= now()) return mark(pod, shorter, grace);
  // The grace period is over; the kubelet still gets up to a second to end the pod.
  return mark(pod, now(), std::min<std::int64_t>(grace, 1));
}

/// The object with the finalizers for the propagation policy
/// (deletionFinalizersForGarbageCollection).
Object with_propagation(const Object& object, Propagation propagation, const Strategy& strategy) {
  bool orphan = propagation == Propagation::kOrphan;
  bool foreground = propagation == Propagation::kForeground;
  std::vector<std::string_view> before;
  std::vector<std::string_view> wanted;
  for (const api::Value finalizer : object["metadata"]["finalizers"].elements()) {
    const std::string_view name = finalizer.as_string();
    before.push_back(name);
    if (name != kOrphanDependents && name != kForegroundDeletion) {
      wanted.push_back(name);
    } else if (propagation == Propagation::kDefault) {
      (name == kOrphanDependents ? orphan : foreground) = true;
    }
  }
  if (propagation == Propagation::kDefault && !foreground) orphan |= strategy.orphans_dependents;
  if (orphan) wanted.push_back(kOrphanDependents);
  if (foreground && !orphan) wanted.push_back(kForegroundDeletion);
  if (std::is_permutation(before.begin(), before.end(), wanted.begin(), wanted.end()))
    return object;
  Document document = object.to_document();
  Allocator& allocator = document.GetAllocator();
  json::Value list(rapidjson::kArrayType);
  for (const std::string_view name : wanted)
    list.PushBack(json::copy_text(name, allocator), allocator);
  json::Value& metadata = json::child(document, "metadata", allocator);
  if (wanted.empty()) {
    json::erase(metadata, "finalizers");
  } else {
    json::set(metadata, "finalizers", std::move(list), allocator);
  }
  return Object::from(document);
}

/// Thrown in an update to cancel it without a change.
struct Unchanged {};

/// Thrown in a removal: the object has received a finalizer since it was read.
struct HasFinalizer {};

}  // namespace

Awaitable<Object> Store::remove_stored(Target target, storage::Preconditions preconditions,
                                       storage::Interface::Validate validate) const {
  Object last;
  storage::Interface::Validate keep_last = [&](const Object& present) {
    validate(present);
    last = present;
  };
  std::exception_ptr failure;
  try {
    co_return co_await target.resource->objects().remove(target.key(), std::move(preconditions),
                                                         std::move(keep_last));
  } catch (const StorageError& e) {
    if (!storage::may_be_written(e)) throw;
    failure = std::current_exception();
  } catch (const StatusError& e) {
    if (!storage::may_be_written(e)) throw;
    failure = std::current_exception();
  }
  if (last) {
    std::string uid(last.uid());
    const std::optional<Object> left = co_await look_again(target, std::move(uid));
    if (left && !*left) co_return last;
  }
  std::rethrow_exception(failure);
}

Awaitable<Store::Deleted> Store::remove_now(const Target& target,
                                            storage::Preconditions preconditions,
                                            bool dry_run) const {
  const ServedResource& resource = *target.resource;
  if (dry_run) {
    Object present = co_await get(target);
    co_return Deleted{std::move(present), true};
  }
  try {
    storage::Interface::Validate unhindered = [](const Object& present) {
      if (!present["metadata"]["finalizers"].empty()) throw HasFinalizer{};
    };
    const Object last =
        co_await remove_stored(target, std::move(preconditions), std::move(unhindered));
    co_return Deleted{resource.from_storage(last), true};
  } catch (const StorageError& e) {
    throw_as_status(e, target, "delete");
  }
}

/// Sets deletionTimestamp first. For pods, and for objects with finalizers.
Awaitable<Store::Deleted> Store::remove_gracefully(const Target& target,
                                                   const DeleteOptions& options) const {
  const ServedResource& resource = *target.resource;
  const bool is_pod = is(target, "", "pods");
  bool gone = false;
  const auto change = [&](const Object& before_deletion) -> Object {
    check_preconditions(target, options.preconditions, before_deletion);
    gone = false;
    Object present = with_propagation(before_deletion, options.propagation, *resource.strategy);
    const bool same = present.same(before_deletion);
    const bool finalizers = !present["metadata"]["finalizers"].empty();
    if (!is_pod) {
      if (!finalizers) {
        gone = true;
        if (same) throw Unchanged{};
        return mark(present, now(), 0);
      }
      if (is_deleting(present)) {
        if (same) throw Unchanged{};
        return present;
      }
      return mark(present, now(), 0);
    }
    if (!is_deleting(present)) {
      const std::int64_t grace = grace_of(present, options);
      gone = grace == 0 && !finalizers;
      return mark(present, now() + std::chrono::seconds(grace), grace);
    }
    const std::int64_t before = present["metadata"]["deletionGracePeriodSeconds"].as_int();
    if (before == 0) {
      gone = !finalizers;
      if (same) throw Unchanged{};
      return present;
    }
    // While the grace period runs, a request can only shorten it.
    const auto grace = shorter_grace(options, before);
    if (!grace) throw Unchanged{};
    gone = *grace == 0 && !finalizers;
    return mark_shorter(present, before, *grace);
  };
  Object marked;
  bool unchanged = false;
  try {
    if (options.dry_run) {
      const Object present = co_await resource.objects().get(target.key());
      if (!present) throw StorageError(StorageError::Code::kKeyNotFound, target.key());
      marked = change(present);
    } else {
      storage::Preconditions none;
      storage::Interface::Update update = change;
      marked = co_await resource.objects().guaranteed_update(target.key(), false, std::move(none),
                                                             std::move(update));
    }
  } catch (const Unchanged&) {
    unchanged = true;
  } catch (const StorageError& e) {
    throw_as_status(e, target, "delete");
  }
  if (unchanged && !gone) {
    Object present = co_await get(target);
    co_return Deleted{std::move(present), false};
  }
  if (!gone || options.dry_run) co_return Deleted{resource.from_storage(marked), gone};
  storage::Preconditions same = options.preconditions;
  if (!unchanged) {
    // The update that set deletionTimestamp has created a new version.
    same.uid = std::string(marked.uid());
    same.resource_version.reset();
  }
  bool gone_already = false;
  try {
    Deleted deleted = co_await remove_now(target, std::move(same), false);
    co_return deleted;
  } catch (const StatusError& e) {
    // Another client has already removed it.
    if (!api::is_not_found(e) || unchanged) throw;
    gone_already = true;
  }
  co_return Deleted{resource.from_storage(marked), gone_already};
}

namespace {

void check_not_permanent(const Target& target) {
  constexpr std::array<std::string_view, 3> kPermanent = {"default", "kube-system", "kube-public"};
  if (std::find(kPermanent.begin(), kPermanent.end(), target.name) != kPermanent.end())
    throw StatusError::forbidden("", "namespaces", target.name,
                                 "this namespace may not be deleted");
}

/// Whether the deletion of a namespace or definition continues like that of other objects.
bool goes_on_as_usual(const Target& target, const Object& present) {
  if (!is_deleting(present)) return false;
  return is_definition(target) || present["spec"]["finalizers"].empty();
}

/// Updates an object that remains until a controller has deleted its content.
Awaitable<Store::Deleted> begin_deletion(const Store& store, Target target, bool dry_run,
                                         storage::Interface::Update change) {
  try {
    storage::Preconditions none;
    Object object;
    if (dry_run) {
      const Object present = co_await store.get(target);
      object = change(present);
    } else {
      object = co_await target.resource->objects().guaranteed_update(
          target.key(), false, std::move(none), std::move(change));
    }
    co_return Store::Deleted{std::move(object), false};
  } catch (const StorageError& e) {
    throw_as_status(e, target, "delete");
  }
}

}  // namespace

/// A namespace is terminating until it is empty.
Awaitable<Store::Deleted> Store::remove_namespace(const Target& target,
                                                  const DeleteOptions& options) const {
  const auto change = [&](const Object& present) -> Object {
    check_preconditions(target, options.preconditions, present);
    if (is_deleting(present)) return present;
    const Object object =
        with_propagation(present, options.propagation, *target.resource->strategy);
    Document document = mark(object, now(), 0).to_document();
    Allocator& allocator = document.GetAllocator();
    json::erase(*json::find(document, "metadata"), "deletionGracePeriodSeconds");
    json::set(json::child(document, "status", allocator), "phase", "Terminating", allocator);
    return Object::from(document);
  };
  co_return co_await begin_deletion(*this, target, options.dry_run, change);
}

/// A definition is deleted after its instances. As in kube-apiserver, the request's propagation policy
/// is ignored.
Awaitable<Store::Deleted> Store::remove_definition(const Target& target,
                                                   const DeleteOptions& options) const {
  const auto change = [&](const Object& present) -> Object {
    check_preconditions(target, options.preconditions, present);
    if (is_deleting(present)) return present;
    Document document = mark(present, now(), 0).to_document();
    Allocator& allocator = document.GetAllocator();
    json::Value& metadata = *json::find(document, "metadata");
    // The deletion does not increase the generation, and has no grace period (REST.Delete of definitions
    // in kube-apiserver).
    json::erase(metadata, "deletionGracePeriodSeconds");
    json::set(metadata, "generation", json::Value(present["metadata"]["generation"].as_int()),
              allocator);
    if (json::find(metadata, "finalizers") == nullptr)
      json::set(metadata, "finalizers", json::Value(rapidjson::kArrayType), allocator);
    json::find(metadata, "finalizers")
        ->PushBack(json::copy_text(kInstanceCleanup, allocator), allocator);
    set_condition(json::child(document, "status", allocator),
                  {"Terminating", true, "InstanceDeletionPending",
                   "CustomResourceDefinition marked for deletion; CustomResource deletion will "
                   "begin soon"},
                  allocator);
    return Object::from(document);
  };
  co_return co_await begin_deletion(*this, target, options.dry_run, change);
}

Awaitable<Store::Deleted> Store::remove(Target target, DeleteOptions options) const {
  if (target.admission != nullptr && target.admission->concerns(Write::Operation::kDelete))
    return remove_admitted(std::move(target), std::move(options));
  return remove_unasked(std::move(target), std::move(options));
}

/// As for updates: deletes only the version that admission has seen.
Awaitable<Store::Deleted> Store::remove_admitted(Target target, DeleteOptions options) const {
  Admission& admission = *target.admission;
  for (;;) {
    const Object present = co_await get(target);
    check_preconditions(target, options.preconditions, present);
    Write write{Write::Operation::kDelete, Object(), present};
    Write again = write;
    Admission::Normalize nothing = [](const Object& object) { return object; };
    co_await admission.mutate(std::move(write), std::move(nothing));
    co_await admission.validate(std::move(again));
    DeleteOptions same = options;
    same.preconditions.resource_version = std::string(present.resource_version());
    std::exception_ptr conflict;
    try {
      co_return co_await remove_unasked(target, std::move(same));
    } catch (const StatusError& e) {
      if (!api::is_conflict(e)) throw;
      conflict = std::current_exception();
    }
    const bool moved = co_await has_moved(target, present);
    if (!moved) std::rethrow_exception(conflict);
  }
}

Awaitable<Store::Deleted> Store::remove_unasked(Target target, DeleteOptions options) const {
  const bool service = allocates(target) && !options.dry_run;
  Deleted deleted = co_await remove_object(std::move(target), std::move(options));
  if (service && deleted.gone) co_await services_->release(claims_of(deleted.object));
  co_return deleted;
}

Awaitable<Store::Deleted> Store::remove_object(Target target, DeleteOptions options) const {
  if (is_namespace(target)) check_not_permanent(target);
  if (is_event(target)) options.propagation = Propagation::kBackground;
  for (;;) {
    const Object present = co_await get(target);
    check_preconditions(target, options.preconditions, present);
    if (is_namespace(target) && !goes_on_as_usual(target, present))
      co_return co_await remove_namespace(target, options);
    if (is_definition(target) && !goes_on_as_usual(target, present))
      co_return co_await remove_definition(target, options);
    const bool waits = options.propagation == Propagation::kForeground ||
                       options.propagation == Propagation::kOrphan ||
                       (options.propagation == Propagation::kDefault &&
                        target.resource->strategy->orphans_dependents);
    try {
      if (waits || is(target, "", "pods") || !present["metadata"]["finalizers"].empty())
        co_return co_await remove_gracefully(target, options);
      co_return co_await remove_now(target, options.preconditions, options.dry_run);
    } catch (const HasFinalizer&) {
      // The object has received a finalizer: delete it gracefully.
    }
  }
}

Awaitable<void> Store::remove_listed(Target collection, Object listed,
                                     DeleteOptions options) const {
  collection.ns = listed.ns();
  collection.name = listed.name();
  // The client's preconditions may contradict the listed object, which is an error.
  const bool only_ours = options.preconditions.empty();
  if (!options.preconditions.uid) options.preconditions.uid = std::string(listed.uid());
  try {
    co_await remove(std::move(collection), std::move(options));
  } catch (const StatusError& e) {
    if (!api::is_not_found(e) && !(only_ours && api::is_conflict(e))) throw;
  }
}

}  // namespace lookout::apiserver::resources
