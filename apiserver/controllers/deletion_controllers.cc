
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
#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using json::Value;
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

/// Takes one string out of a list of them.
void remove_string(Value& object, std::string_view list, std::string_view text) {
  Value* array = json::find(object, list);
  if (array == nullptr || !array->IsArray()) return;
  for (auto element = array->Begin(); element != array->End(); ++element) {
    if (element->IsString() && json::text_of(*element) == text) {
      array->Erase(element);
      return;
    }
  }
}

Awaitable<bool> is_empty(Target target) {
  storage::ListOptions one;
  one.limit = 1;
  storage::ListResult left =
      co_await target.resource->storage->list(target.key(), true, std::move(one));
  std::vector<Object> some;
  const bool any = co_await left.objects->next(some, 1);
  co_return !any;
}

/// Deletes everything in a namespace, or everything of a resource; true if nothing is left.
Awaitable<bool> empty(const Store& store, Target target) {
  // Most resources have nothing in most namespaces.
  Target same = target;
  const bool already = co_await is_empty(std::move(same));
  if (already) co_return true;
  storage::Predicate everything;
  resources::DeleteOptions options;
  co_await store.remove_collection(target, std::move(everything), std::move(options));
  co_return co_await is_empty(std::move(target));
}

/// True if the namespace has gone.
Awaitable<bool> finalize_namespace(Context context, ServedResourcePtr namespaces,
                                   std::string name) {
  bool nothing_left = true;
  std::vector<Target> targets;
  std::set<storage::Interface*> seen;
  const auto table = context.resources.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->type.namespaced || resource->storage == nullptr) continue;
    if (seen.insert(resource->storage).second) targets.push_back({resource, name});
  }
  // (They end before this function does.)
  const auto empty_one = [&](std::size_t index) -> Awaitable<void> {
    Target target = targets[index];
    const bool emptied = co_await empty(context.store, std::move(target));
    nothing_left = nothing_left && emptied;
  };
  std::function<Awaitable<void>(std::size_t)> make = empty_one;
  co_await run_beside(targets.size(), kResourcesAtOnce, std::move(make));
  if (!nothing_left) co_return false;
  Target target{namespaces, "", name};
  const auto without_finalizer = [](const Object& present) {
    Document document = present.to_document();
    if (Value* spec = json::find(document, "spec"))
      remove_string(*spec, "finalizers", "kubernetes");
    return Object::from(document);
  };
  Store::Change change = without_finalizer;
  storage::Preconditions none;
  const auto updated = co_await context.store.update(std::move(target), std::move(change),
                                                     resources::Part::kWhole, std::move(none));
  co_return updated.object["spec"]["finalizers"].empty() &&
      updated.object["metadata"]["finalizers"].empty();
}

/// True if the definition has gone.
Awaitable<bool> finalize_definition(Context context, ServedResourcePtr definitions,
                                    std::string name) {
  Target target{definitions, "", name};
  const Object definition = co_await context.store.get(target);
  const auto table = context.resources.table();
  // The version that they are stored in needs no conversion.
  ServedResourcePtr served;
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->custom || resource->type.qualified_name() != name) continue;
    if (served == nullptr || resource->type.api_version() == resource->storage_version)
      served = resource;
  }
  if (served != nullptr) {
    Target instances{served};
    const bool emptied = co_await empty(context.store, std::move(instances));
    if (!emptied) co_return false;
  }
  const auto without_finalizer = [](const Object& present) {
    Document document = present.to_document();
    if (Value* metadata = json::find(document, "metadata"))
      remove_string(*metadata, "finalizers", resources::kInstanceCleanup);
    return Object::from(document);
  };
  Store::Change change = without_finalizer;
  storage::Preconditions none;
  co_await context.store.update(std::move(target), std::move(change), resources::Part::kWhole,
                                std::move(none));
  co_await context.resources.refresh();
  co_return true;
}

using Finalize = Awaitable<bool> (*)(Context, ServedResourcePtr, std::string);
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
      co_await finalize(context, resource, name);
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
