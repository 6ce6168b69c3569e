// Deletes objects without owners, like kube-controller-manager's garbage collector.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/finalizers.h"
#include "apiserver/controllers/owner_graph.h"
#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Value;
using resources::is_deleting;
using resources::kForegroundDeletion;
using resources::kOrphanDependents;
using resources::Propagation;
using resources::ServedResourcePtr;
using resources::Store;
using resources::Target;
using std::chrono::steady_clock;

/// The delay before a failed attempt is repeated.
constexpr std::chrono::milliseconds kRetryLook{200};

/// Absent owners of custom kinds: their kind may no longer be served when their dependents are
/// processed (Kubernetes' absentOwnerCache). If there are many, the oldest ones without dependents
/// are evicted.
class AbsentOwners {
 public:
  explicit AbsentOwners(std::function<bool(std::string_view uid)> has_dependents)
      : has_dependents_(std::move(has_dependents)) {}

  /// The object with this uid has been deleted.
  void add(std::string uid) {
    if (!known_.insert(uid).second) return;
    oldest_first_.push_back(std::move(uid));
    // One is added, so remove up to two.
    for (int i = 0; i < 2 && oldest_first_.size() > kMost; ++i) {
      std::string oldest = std::move(oldest_first_.front());
      oldest_first_.pop_front();
      if (has_dependents_(oldest)) {
        oldest_first_.push_back(std::move(oldest));
      } else {
        known_.erase(oldest);
      }
    }
  }
  /// An object in `ns` refers to an owner that does not exist. (Another object may refer to an existing
  /// owner with this uid.)
  void add(std::string_view ns, Value owner) { add(place(ns, owner)); }
  bool contains(std::string_view ns, Value owner) const {
    return known_.contains(owner["uid"].as_string()) || known_.contains(place(ns, owner));
  }

 private:
  static constexpr std::size_t kMost = 10000;

  static std::string place(std::string_view ns, Value owner) {
    return fmt::format("{}/{}/{}/{}/{}", ns, owner["apiVersion"].as_string(),
                       owner["kind"].as_string(), owner["name"].as_string(),
                       owner["uid"].as_string());
  }

  const std::function<bool(std::string_view uid)> has_dependents_;
  std::set<std::string, std::less<>> known_;
  std::deque<std::string> oldest_first_;
};

class GarbageCollector : public std::enable_shared_from_this<GarbageCollector> {
 public:
  GarbageCollector(Context context, AsyncEvent bell) : context_(context), bell_(std::move(bell)) {}

  /// Processes the queue, which the watches fill.
  Awaitable<void> run() {
    const auto executor = co_await boost::asio::this_coro::executor;
    for (;;) {
      follow_new_resources();
      if (work_.empty()) {
        co_await bell_.wait();
        continue;
      }
      if (const auto until = work_.front().not_before; until > steady_clock::now()) {
        co_await bell_.wait(until);
        if (until > steady_clock::now()) continue;
      }
      Work work = std::move(work_.front());
      work_.pop_front();
      waiting_.erase(work.reference.uid);
      bool again = false;
      try {
        co_await process(work.reference);
      } catch (const boost::system::system_error&) {
        throw;  // cancelled
      } catch (const std::exception& e) {
        if (!api::is_not_found(e) && !api::is_conflict(e)) {
          log::warn("cannot garbage-collect {} {}: {}", work.reference.resource->type.plural,
                    work.reference.name, e.what());
        }
        again = !api::is_not_found(e);
        // The watch may have missed the object's deletion.
        if (!again) forget(work.reference.uid);
      }
      if (again) add(work.reference, steady_clock::now() + kRetryLook);
      // Yield to other coroutines, as the memory storage never suspends.
      co_await boost::asio::post(executor, boost::asio::use_awaitable);
    }
  }

 private:
  struct Work {
    Reference reference;
    steady_clock::time_point not_before;
  };
  /// An object that waits for its dependents.
  struct Waiting {
    Reference reference;
    /// Until they are deleted; otherwise until they are orphaned.
    bool foreground = false;
  };

  void add(const Reference& reference, steady_clock::time_point when = {}) {
    if (!waiting_.insert(reference.uid).second) return;
    Work work{reference, when};
    if (when == steady_clock::time_point{}) {
      work_.push_front(std::move(work));
    } else {
      work_.push_back(std::move(work));
    }
    bell_.ring_here();
  }

  void follow_new_resources() {
    const auto table = context_.resources.table();
    if (table == table_) return;
    table_ = table;
    for (const ServedResourcePtr& resource : table->resources()) {
      if (resource->storage == nullptr || !resource->has_verb("delete")) continue;
      if (!followed_.insert(resource->storage).second) continue;
      context_.spawn("owners of " + resource->type.plural,
                     [self = shared_from_this(), resource] { return follow(self, resource); });
    }
    // The kinds of their owners may have become served.
    for (const auto& [uid, reference] : std::exchange(strangers_, {})) add(reference);
  }

  /// Follows a resource from its current state until the watch ends.
  static Awaitable<void> follow(std::shared_ptr<GarbageCollector> self,
                                ServedResourcePtr resource) {
    self->expect_served(resource);
    if (!self->begun_.insert(resource->storage).second) {
      // The watch may have missed deletions of owners.
      for (const Reference& reference : self->graph_.all()) self->add(reference);
    }
    storage::WatchOptions from_state;
    const auto watch = co_await resource->storage->watch("", true, std::move(from_state));
    std::vector<storage::Event> events;
    for (bool more = true; more;) {
      more = co_await watch->next(events, storage::Watch::TimePoint::max());
      for (const storage::Event& event : events) self->take(resource, event);
      if (!is_definitions(resource)) continue;
      // There may be new resources to follow.
      co_await self->context_.resources.refresh();
      self->bell_.ring_here();
    }
    self->expect_served(resource);
  }

  static bool is_definitions(const ServedResourcePtr& resource) {
    return !resource->custom && resource->type.plural == "customresourcedefinitions";
  }

  /// Throws TaskIsOver if the definition of the resource was deleted.
  void expect_served(const ServedResourcePtr& resource) {
    const auto table = context_.resources.table();
    for (const ServedResourcePtr& one : table->resources()) {
      if (one->storage == resource->storage) return;
    }
    followed_.erase(resource->storage);
    begun_.erase(resource->storage);
    throw TaskIsOver();
  }

  void take(const ServedResourcePtr& resource, const storage::Event& event) {
    if (event.type == api::EventType::kError || event.type == api::EventType::kBookmark) return;
    const Object& object = event.object;
    const Reference reference{resource, std::string(object.ns()), std::string(object.name()),
                              std::string(object.uid())};
    if (event.type == api::EventType::kDeleted) {
      // Built-in kinds are always served, so the storage has their objects.
      if (resource->custom) absent_.add(reference.uid);
      forget(reference.uid);
      return;
    }
    // The object may no longer block the deletion of its previous owners.
    for (const std::string& owner : graph_.owners(reference.uid)) add_waiting_owner(owner);
    graph_.set(reference, object);
    if (!object["metadata"]["ownerReferences"].empty()) add(reference);
    const bool orphans = has_finalizer(object, kOrphanDependents);
    const bool foreground = !orphans && has_finalizer(object, kForegroundDeletion);
    if (!is_deleting(object) || !(orphans || foreground)) {
      deleting_.erase(reference.uid);
      return;
    }
    deleting_.insert_or_assign(reference.uid, Waiting{reference, foreground});
    add(reference);
  }

  /// An object was deleted: enqueues its owners, which may wait for it, and its dependents.
  void forget(const std::string& uid) {
    for (const std::string& owner : graph_.owners(uid)) add_waiting_owner(owner);
    graph_.erase(uid);
    deleting_.erase(uid);
    strangers_.erase(uid);
    for (const Reference& dependent : graph_.dependents(uid)) add(dependent);
  }

  /// If this owner is being deleted, it may wait for its dependents: enqueues it.
  void add_waiting_owner(const std::string& uid) {
    if (const auto owner = deleting_.find(uid); owner != deleting_.end())
      add(owner->second.reference);
  }

  bool waits_in_foreground(std::string_view uid) const {
    const auto found = deleting_.find(uid);
    return found != deleting_.end() && found->second.foreground;
  }

  Awaitable<void> process(const Reference& reference) {
    Target target = target_of(reference);
    const Object object = co_await context_.store.get(std::move(target));
    if (object.uid() != reference.uid) {
      forget(reference.uid);
    } else if (!is_deleting(object)) {
      co_await judge(reference, object);
    } else if (has_finalizer(object, kOrphanDependents)) {
      co_await orphan_dependents(reference);
    } else if (has_finalizer(object, kForegroundDeletion)) {
      co_await delete_dependents(reference);
    }
  }

  /// Orphans the dependents of an object.
  Awaitable<void> orphan_dependents(const Reference& owner) {
    const std::vector<Reference> dependents = graph_.dependents(owner.uid);
    for (const Reference& dependent : dependents) {
      std::set<std::string> gone{owner.uid};
      co_await remove_owners(dependent, std::move(gone));
    }
    std::string finalizer(kOrphanDependents);
    co_await remove_finalizer(owner, std::move(finalizer));
    deleting_.erase(owner.uid);
  }

  /// Removes the owner's finalizer if no dependent blocks it.
  Awaitable<void> delete_dependents(const Reference& owner) {
    if (!graph_.has_blocking_dependents(owner.uid)) {
      std::string finalizer(kForegroundDeletion);
      co_await remove_finalizer(owner, std::move(finalizer));
      deleting_.erase(owner.uid);
      co_return;
    }
    for (const Reference& dependent : graph_.dependents(owner.uid)) {
      // A dependent that waits for its own dependents enqueues its owners later. In a cycle of owners,
      // it may be this object.
      if (!waits_in_foreground(dependent.uid)) add(dependent);
    }
  }

  /// Deletes an object unless one of its owners remains; otherwise removes the references to the
  /// others.
  Awaitable<void> judge(const Reference& reference, const Object& object) {
    std::set<std::string> gone;
    bool any_solid = false;
    bool any_waiting = false;
    for (const Value owner : object["metadata"]["ownerReferences"].elements()) {
      const Owner found = co_await look_at(reference, owner);
      if (found == Owner::kUnknown) {
        strangers_.insert_or_assign(reference.uid, reference);
        co_return;
      }
      if (found == Owner::kSolid) any_solid = true;
      if (found == Owner::kWaiting) any_waiting = true;
      if (found != Owner::kSolid) gone.emplace(owner["uid"].as_string());
    }
    if (gone.empty()) co_return;
    if (any_solid) {
      co_await remove_owners(reference, std::move(gone));
      co_return;
    }
    resources::DeleteOptions options;
    options.preconditions.uid = reference.uid;
    // The object may be orphaned concurrently, so its version is a precondition.
    options.preconditions.resource_version = std::string(object.resource_version());
    // Foreground deletion, as for its owner: dependents first.
    if (any_waiting && graph_.has_dependents(reference.uid)) {
      options.propagation = Propagation::kForeground;
      const std::vector<Reference> dependents = graph_.dependents(reference.uid);
      if (std::any_of(dependents.begin(), dependents.end(), [this](const Reference& dependent) {
            return waits_in_foreground(dependent.uid);
          })) {
        // A dependent may also be an owner of this object; then each would wait for the other.
        std::string version = co_await unblock_owners(reference, object);
        options.preconditions.resource_version = std::move(version);
      }
    } else if (has_finalizer(object, kOrphanDependents)) {
      options.propagation = Propagation::kOrphan;
    } else if (has_finalizer(object, kForegroundDeletion)) {
      options.propagation = Propagation::kForeground;
    } else {
      options.propagation = Propagation::kBackground;
    }
    Target target = target_of(reference);
    co_await context_.store.remove(std::move(target), std::move(options));
  }

  /// The target as it is currently served, because definitions change. Prefers the storage version
  /// of a custom resource, which needs no conversion.
  Target target_of(const Reference& reference) const {
    Target target{reference.resource, reference.ns, reference.name};
    if (!reference.resource->custom) return target;
    const auto table = context_.resources.table();
    bool found = false;
    for (const ServedResourcePtr& one : table->resources()) {
      if (one->storage != reference.resource->storage) continue;
      if (found && one->type.api_version() != one->storage_version) continue;
      target.resource = one;
      found = true;
    }
    return target;
  }

  enum class Owner {
    kSolid,
    kDangling,  ///< it does not exist
    kWaiting,   ///< it is being deleted and waits for this dependent
    kUnknown    ///< of an unknown kind
  };

  Awaitable<Owner> look_at(const Reference& dependent, Value owner) {
    if (absent_.contains(dependent.ns, owner)) co_return Owner::kDangling;
    ServedResourcePtr resource;
    for (const ServedResourcePtr& one : context_.resources.table()->resources()) {
      if (one->storage != nullptr && one->type.kind == owner["kind"].as_string() &&
          one->type.api_version() == owner["apiVersion"].as_string())
        resource = one;
    }
    if (resource == nullptr) co_return Owner::kUnknown;
    Target target{resource, resource->type.namespaced ? dependent.ns : std::string(),
                  std::string(owner["name"].as_string())};
    // Namespaced objects cannot own cluster-scoped ones.
    if (resource->type.namespaced && target.ns.empty()) co_return Owner::kUnknown;
    const Object found = co_await resource->storage->get(target.key());
    if (!found || found.uid() != owner["uid"].as_string()) {
      if (resource->custom) absent_.add(dependent.ns, owner);
      co_return Owner::kDangling;
    }
    const bool waits = is_deleting(found) && has_finalizer(found, kForegroundDeletion);
    co_return waits ? Owner::kWaiting : Owner::kSolid;
  }

  /// Stops the object from blocking the deletion of its owners. Returns its new resourceVersion.
  /// Throws api::StatusError (409) if the object has changed.
  Awaitable<std::string> unblock_owners(const Reference& reference, const Object& object) {
    Store::Change change = [](const Object& present) {
      json::Document document = present.to_document();
      json::Value* owners = json::find(*json::find(document, "metadata"), "ownerReferences");
      for (json::Value& owner : owners->GetArray()) {
        if (json::find(owner, "blockOwnerDeletion") != nullptr)
          json::set(owner, "blockOwnerDeletion", json::Value(false), document.GetAllocator());
      }
      return Object::from(document);
    };
    storage::Preconditions same;
    same.uid = reference.uid;
    same.resource_version = std::string(object.resource_version());
    Target target = target_of(reference);
    const Store::Updated updated = co_await context_.store.update(
        std::move(target), std::move(change), resources::Part::kMain, std::move(same));
    co_return std::string(updated.object.resource_version());
  }

  Awaitable<void> remove_owners(const Reference& reference, std::set<std::string> uids) {
    Store::Change change = [uids = std::move(uids)](const Object& present) {
      return without(present, "metadata", "ownerReferences", [&](const json::Value& owner) {
        return uids.contains(std::string(json::text(owner, "uid")));
      });
    };
    co_await update(reference, std::move(change));
  }

  Awaitable<void> remove_finalizer(const Reference& reference, std::string name) {
    Store::Change change = [name = std::move(name)](const Object& present) {
      return without_finalizer(present, name);
    };
    co_await update(reference, std::move(change));
  }

  Awaitable<void> update(const Reference& reference, Store::Change change) {
    storage::Preconditions same;
    same.uid = reference.uid;
    bool gone = false;
    try {
      Target target = target_of(reference);
      co_await context_.store.update(std::move(target), std::move(change), resources::Part::kMain,
                                     std::move(same));
    } catch (const api::StatusError& e) {
      // There was a concurrent write.
      gone = api::is_not_found(e);
      if (!gone) throw;
    }
  }

  const Context context_;
  AsyncEvent bell_;
  OwnerGraph graph_;
  /// By uid.
  std::map<std::string, Waiting, std::less<>> deleting_;
  /// Objects with an owner of an unknown kind, by uid.
  std::map<std::string, Reference, std::less<>> strangers_;
  AbsentOwners absent_{[this](std::string_view uid) { return graph_.has_dependents(uid); }};
  std::deque<Work> work_;
  std::set<std::string> waiting_;
  std::set<storage::Interface*> followed_;
  /// The resources whose objects have been read.
  std::set<storage::Interface*> begun_;
  std::shared_ptr<const resources::ResourceTable> table_;
};

}  // namespace

Awaitable<void> run_garbage_collector(Context context) {
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  const auto collector = std::make_shared<GarbageCollector>(context, std::move(bell));
  co_await collector->run();
}

}  // namespace lookout::apiserver::controllers
