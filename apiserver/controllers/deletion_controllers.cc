
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/controllers/beside.h"
#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/deletion_queue.h"
#include "apiserver/controllers/finalizers.h"
#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using resources::is_deleting;
using resources::ServedResourcePtr;
using resources::Store;
using resources::Target;

/// How soon it is tried again to empty what is not empty yet.
constexpr std::chrono::milliseconds kRetry{100};
/// How many namespaces (or definitions) are emptied beside each other, and how many resources of
/// each: as many as kube-controller-manager works on at once.
constexpr std::size_t kAtOnce = 10;
constexpr std::size_t kResourcesAtOnce = 4;
constexpr std::size_t kPage = 100;

Awaitable<bool> is_empty(Target contents) {
  storage::ListOptions one;
  one.limit = 1;
  storage::ListResult left =
      co_await contents.resource->storage->list(contents.key(), true, std::move(one));
  std::vector<Object> some;
  const bool any = co_await left.objects->next(some, 1);
  co_return !any;
}

/// A namespace, or a definition, that is being deleted.
struct Doomed {
  Target target;
  std::string uid;
};

/// False if it has gone. There may be another one of that name, then.
Awaitable<bool> is_there(Doomed doomed) {
  const Object present = co_await doomed.target.resource->objects().get(doomed.target.key());
  co_return present.uid() == doomed.uid;
}

/// Deletes what is in it: everything in a namespace, or everything of a resource. True if nothing is
/// left.
Awaitable<bool> empty(const Store& store, Doomed doomed, Target contents) {
  // Most resources have nothing in most namespaces.
  Target same = contents;
  const bool already = co_await is_empty(std::move(same));
  if (already) co_return true;
  storage::ListOptions everything;
  storage::ListResult list =
      co_await contents.resource->storage->list(contents.key(), true, std::move(everything));
  std::vector<Object> some;
  bool more = co_await list.objects->next(some, kPage);
  // If the namespace, or the definition, is the same after the list, all listed objects belong to it.
  const bool there = co_await is_there(std::move(doomed));
  if (!there) co_return false;
  while (more) {
    for (const Object& object : some) {
      resources::DeleteOptions options;
      options.propagation = resources::Propagation::kBackground;
      co_await store.remove_listed(contents, object, std::move(options));
    }
    more = co_await list.objects->next(some, kPage);
  }
  co_return co_await is_empty(std::move(contents));
}

/// Removes the finalizer that has kept the object.
Awaitable<void> let_go(const Store& store, Doomed doomed, Store::Change remove_finalizer) {
  storage::Preconditions same;
  same.uid = std::move(doomed.uid);
  co_await store.update(std::move(doomed.target), std::move(remove_finalizer),
                        resources::Part::kWhole, std::move(same));
}

Awaitable<void> finalize_namespace(Context context, Doomed doomed) {
  bool nothing_left = true;
  std::vector<Target> targets;
  std::set<storage::Interface*> seen;
  const auto table = context.resources.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->type.namespaced || resource->storage == nullptr) continue;
    if (seen.insert(resource->storage).second) targets.push_back({resource, doomed.target.name});
  }
  // (They end before this function does.)
  const auto empty_one = [&](std::size_t index) -> Awaitable<void> {
    Doomed same = doomed;
    Target contents = targets[index];
    const bool emptied = co_await empty(context.store, std::move(same), std::move(contents));
    nothing_left = nothing_left && emptied;
  };
  std::function<Awaitable<void>(std::size_t)> make = empty_one;
  co_await run_beside(targets.size(), kResourcesAtOnce, std::move(make));
  if (!nothing_left) co_return;
  Store::Change change = [](const Object& present) {
    return without_finalizer(present, "kubernetes", "spec");
  };
  co_await let_go(context.store, std::move(doomed), std::move(change));
}

Awaitable<void> finalize_definition(Context context, Doomed doomed) {
  const auto table = context.resources.table();
  // The version that they are stored in needs no conversion.
  ServedResourcePtr served;
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->custom || resource->type.qualified_name() != doomed.target.name) continue;
    if (served == nullptr || resource->type.api_version() == resource->storage_version)
      served = resource;
  }
  if (served != nullptr) {
    Doomed same = doomed;
    Target instances{served};
    const bool emptied = co_await empty(context.store, std::move(same), std::move(instances));
    if (!emptied) co_return;
  }
  Store::Change change = [](const Object& present) {
    return without_finalizer(present, resources::kInstanceCleanup);
  };
  co_await let_go(context.store, std::move(doomed), std::move(change));
  co_await context.resources.refresh();
}

using Finalize = Awaitable<void> (*)(Context, Doomed);
using Queue = std::shared_ptr<DeletionQueue>;

/// Looks for what is being deleted, until the watch ends.
Awaitable<void> look_for_deletions(ServedResourcePtr resource, Queue queue) {
  storage::WatchOptions from_state;
  const auto watch = co_await resource->storage->watch("", true, std::move(from_state));
  // Some may have gone unseen.
  queue->clear();
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, storage::Watch::TimePoint::max());
    for (const storage::Event& event : events) {
      if (event.type == api::EventType::kError || event.type == api::EventType::kBookmark) continue;
      const std::string name(event.object.name());
      if (event.type == api::EventType::kDeleted || !is_deleting(event.object)) {
        queue->remove(name);
      } else {
        queue->add(name);
      }
    }
  }
}

Awaitable<void> finish_deletions(Context context, ServedResourcePtr resource, Finalize finalize,
                                 Queue queue) {
  DeletionQueue::Worker worker(*queue, co_await boost::asio::this_coro::executor);
  for (;;) {
    const std::string name = co_await worker.take();
    try {
      Target target{resource, "", name};
      const Object present = co_await context.store.get(target);
      if (!is_deleting(present)) continue;  // another one of that name
      Doomed doomed{std::move(target), std::string(present.uid())};
      co_await finalize(context, std::move(doomed));
    } catch (const boost::system::system_error&) {
      throw;  // told to end
    } catch (const std::exception& e) {
      // It has gone, or something in it changed meanwhile: the next round will show.
      if (!api::is_not_found(e) && !api::is_conflict(e))
        log::warn("cannot finish the deletion of {} {}: {}", resource->type.plural, name, e.what());
    }
  }
}

void begin(const Context& context, const ServedResourcePtr& resource, Finalize finalize) {
  const auto queue = std::make_shared<DeletionQueue>(kRetry);
  context.spawn("deleted " + resource->type.plural,
                [=] { return look_for_deletions(resource, queue); });
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    context.spawn("deletions of " + resource->type.plural,
                  [=] { return finish_deletions(context, resource, finalize, queue); });
  }
}

}  // namespace

void begin_namespace_controller(const Context& context) {
  begin(context, context.resources.table()->find("", "v1", "namespaces"), finalize_namespace);
}

void begin_definition_controller(const Context& context) {
  begin(context,
        context.resources.table()->find("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        finalize_definition);
}

}  // namespace lookout::apiserver::controllers
