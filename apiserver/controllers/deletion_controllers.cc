#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/beside.h"
#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/deletion_queue.h"
#include "apiserver/controllers/finalizers.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/strategy.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using resources::Condition;
using resources::is_deleting;
using resources::ServedResourcePtr;
using resources::Store;
using resources::Target;

/// The delay before the next attempt.
constexpr std::chrono::milliseconds kRetry{100};
/// The number of concurrent namespaces (or definitions), and of resources of each, as in
/// kube-controller-manager.
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
  Object object;
};

/// False if the object was deleted. Another object may have its name.
Awaitable<bool> is_there(Doomed doomed) {
  const Object present = co_await doomed.target.resource->objects().get(doomed.target.key());
  co_return present.uid() == doomed.object.uid();
}

/// The objects that are left after a deletion, for instance because of their finalizers.
struct Leftovers {
  std::size_t objects = 0;
  /// The number of objects with each finalizer.
  std::map<std::string, std::size_t> finalizers = {};
};

Awaitable<Leftovers> count_leftovers(Target contents) {
  storage::ListOptions everything;
  storage::ListResult list =
      co_await contents.resource->storage->list(contents.key(), true, std::move(everything));
  Leftovers left;
  std::vector<Object> some;
  bool more = co_await list.objects->next(some, kPage);
  while (more) {
    left.objects += some.size();
    for (const Object& object : some) {
      for (const api::Value finalizer : object["metadata"]["finalizers"].elements())
        ++left.finalizers[std::string(finalizer.as_string())];
    }
    more = co_await list.objects->next(some, kPage);
  }
  co_return left;
}

/// Deletes the content: all objects in a namespace, or of a resource. Does nothing if the container
/// was deleted.
Awaitable<std::optional<Leftovers>> empty(const Store& store, Doomed doomed, Target contents) {
  // Most resources have nothing in most namespaces.
  Target same = contents;
  const bool already = co_await is_empty(std::move(same));
  if (already) co_return Leftovers();
  storage::ListOptions everything;
  storage::ListResult list =
      co_await contents.resource->storage->list(contents.key(), true, std::move(everything));
  std::vector<Object> some;
  bool more = co_await list.objects->next(some, kPage);
  // If the namespace, or the definition, is the same after the list, all listed objects belong to it.
  const bool there = co_await is_there(std::move(doomed));
  if (!there) co_return std::nullopt;
  while (more) {
    for (const Object& object : some) {
      resources::DeleteOptions options;
      options.propagation = resources::Propagation::kBackground;
      co_await store.remove_listed(contents, object, std::move(options));
    }
    more = co_await list.objects->next(some, kPage);
  }
  co_return co_await count_leftovers(std::move(contents));
}

/// Removes the object's finalizer.
Awaitable<void> let_go(const Store& store, Doomed doomed, Store::Change remove_finalizer) {
  storage::Preconditions same;
  same.uid = std::string(doomed.object.uid());
  co_await store.update(std::move(doomed.target), std::move(remove_finalizer),
                        resources::Part::kWhole, std::move(same));
}

/// The objects that remain in a terminating namespace.
struct Content {
  /// The namespace was deleted.
  bool gone = false;
  /// By "configmaps." or "deployments.apps".
  std::map<std::string, std::size_t> resources = {};
  std::map<std::string, std::size_t> finalizers = {};
  /// Why some objects could not be deleted.
  std::vector<std::string> errors = {};
  std::exception_ptr first_error = nullptr;

  void add(const api::Resource& type, const Leftovers& left) {
    if (left.objects == 0) return;
    resources[fmt::format("{}.{}", type.plural, type.group)] = left.objects;
    for (const auto& [finalizer, count] : left.finalizers) finalizers[finalizer] += count;
  }
  bool empty() const { return resources.empty() && errors.empty(); }
};

/// Deletes content of a namespace, and reports the rest.
Awaitable<void> empty_beside(const Store& store, const Doomed& doomed,
                             const std::vector<Target>& targets, Content& content) {
  // run_beside() returns after all of them have ended, so references are safe.
  const auto empty_one = [&](std::size_t index) -> Awaitable<void> {
    Doomed same = doomed;
    Target contents = targets[index];
    try {
      const std::optional<Leftovers> left =
          co_await empty(store, std::move(same), std::move(contents));
      if (left) {
        content.add(targets[index].resource->type, *left);
      } else {
        content.gone = true;
      }
    } catch (const boost::system::system_error&) {
      throw;  // cancelled
    } catch (const std::exception& e) {
      content.errors.emplace_back(e.what());
      if (content.first_error == nullptr) content.first_error = std::current_exception();
    }
  };
  std::function<Awaitable<void>(std::size_t)> make = empty_one;
  co_await run_beside(targets.size(), kResourcesAtOnce, std::move(make));
}

/// "configmaps. has 1 resource instances, ..."
std::string join_counts(std::string_view text, const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [name, count] : counts)
    parts.push_back(fmt::format(fmt::runtime(text), name, count));
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The conditions of kube-controller-manager (status_condition_utils.go). The remaining content is
/// reported only after an attempt to delete everything.
std::vector<Condition> namespace_conditions(Content content, bool tried_everything) {
  constexpr const char* kRemoved = "All content successfully removed";
  std::vector<Condition> out = {
      {"NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
       "All resources successfully discovered"},
      {"NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
       "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure", false, "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization"},
      {"NamespaceContentRemaining", false, "ContentRemoved", kRemoved},
      {"NamespaceFinalizersRemaining", false, "ContentRemoved", kRemoved}};
  const auto set = [&](std::size_t which, std::string reason, std::string message) {
    out[which] = {out[which].type, true, std::move(reason), std::move(message)};
  };
  if (!content.errors.empty()) {
    std::sort(content.errors.begin(), content.errors.end());
    set(2, "ContentDeletionFailed",
        fmt::format("Failed to delete all resource types, {} remaining: {}", content.errors.size(),
                    fmt::join(content.errors, ", ")));
  }
  if (tried_everything && !content.resources.empty()) {
    set(3, "SomeResourcesRemain",
        "Some resources are remaining: " +
            join_counts("{} has {} resource instances", content.resources));
  }
  if (tried_everything && !content.finalizers.empty()) {
    set(4, "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: " +
            join_counts("{} in {} resource instances", content.finalizers));
  }
  return out;
}

/// Writes the conditions of a namespace. Failures are only logged; the deletion continues.
Awaitable<void> report(const Store& store, Doomed doomed, std::vector<Condition> conditions) {
  Store::Change change = [conditions = std::move(conditions)](const Object& present) {
    json::Document document = present.to_document();
    auto& allocator = document.GetAllocator();
    json::Value& status = json::child(document, "status", allocator);
    for (const Condition& condition : conditions)
      resources::set_condition(status, condition, allocator);
    return Object::from(document);
  };
  storage::Preconditions same;
  same.uid = std::string(doomed.object.uid());
  const std::string name = doomed.target.name;
  try {
    co_await store.update(std::move(doomed.target), std::move(change), resources::Part::kStatus,
                          std::move(same));
  } catch (const boost::system::system_error&) {
    throw;  // cancelled
  } catch (const std::exception& e) {
    if (!api::is_not_found(e) && !api::is_conflict(e))
      log::warn("cannot set the conditions of {}: {}", name, e.what());
  }
}

Awaitable<void> finalize_namespace(Context context, Doomed doomed) {
  // The content is deleted; others remove the remaining finalizers.
  if (doomed.object["spec"]["finalizers"].empty() &&
      !doomed.object["metadata"]["finalizers"].empty())
    co_return;
  // Delete pods first: they may need the other objects (OrderedNamespaceDeletion).
  std::vector<Target> pods;
  std::vector<Target> others;
  std::set<storage::Interface*> seen;
  const auto table = context.resources.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    const api::Resource& type = resource->type;
    if (!type.namespaced || resource->storage == nullptr) continue;
    if (!seen.insert(resource->storage).second) continue;
    const bool is_pods = type.group.empty() && type.plural == "pods";
    (is_pods ? pods : others).push_back({resource, doomed.target.name});
  }
  Content content;
  co_await empty_beside(context.store, doomed, pods, content);
  const bool tries_everything = content.resources.empty();
  if (tries_everything) co_await empty_beside(context.store, doomed, others, content);
  if (content.gone) co_return;
  Doomed same = doomed;
  std::vector<Condition> conditions = namespace_conditions(content, tries_everything);
  co_await report(context.store, std::move(same), std::move(conditions));
  if (content.first_error != nullptr) std::rethrow_exception(content.first_error);
  if (!content.empty()) co_return;
  Store::Change change = [](const Object& present) {
    return without_finalizer(present, "kubernetes", "spec");
  };
  co_await let_go(context.store, std::move(doomed), std::move(change));
}

/// The resource of a definition's instances, in the storage version if that is served, because it
/// needs no conversion. Null if no version is served.
ServedResourcePtr served_instances(const Context& context, const Object& definition) {
  ServedResourcePtr served;
  const auto table = context.resources.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->custom || resource->type.qualified_name() != definition.name()) continue;
    if (served == nullptr || resource->type.api_version() == resource->storage_version)
      served = resource;
  }
  return served;
}

/// The instances of a definition without a served version.
ServedResourcePtr stored_instances(const Context& context, const Object& definition) {
  const api::Value spec = definition["spec"];
  const api::Value names = definition["status"]["acceptedNames"];
  const std::string group(spec["group"].as_string());
  const std::string plural(names["plural"].as_string());
  std::string version;
  for (const api::Value one : spec["versions"].elements()) {
    if (one["storage"].as_bool()) version = one["name"].as_string();
  }
  const auto stored = std::make_shared<resources::ServedResource>();
  stored->type = api::Resource(group, version, std::string(names["kind"].as_string()), plural,
                               spec["scope"].as_string() == "Namespaced");
  stored->custom = true;
  stored->terminating = true;
  stored->storage_version = stored->type.api_version();
  stored->storage =
      &context.resources.backend().resource(group + "/" + plural, {}, plural + "." + group);
  stored->strategy = &resources::custom_resource_strategy();
  return stored;
}

/// The definition without the finalizer for its instances, and with the final Terminating
/// condition.
Object emptied(const Object& definition, bool had_instances) {
  const Condition condition =
      had_instances
          ? Condition{"Terminating", false, "InstanceDeletionCompleted", "removed all instances"}
          : Condition{"Terminating", false, "NeverEstablished", "resource was never established"};
  json::Document document = definition.to_document();
  json::Allocator& allocator = document.GetAllocator();
  resources::set_condition(json::child(document, "status", allocator), condition, allocator);
  return without_finalizer(Object::from(document), resources::kInstanceCleanup);
}

Awaitable<void> finalize_definition(Context context, Doomed doomed) {
  // The instances are deleted; others remove the remaining finalizers.
  if (!has_finalizer(doomed.object, resources::kInstanceCleanup)) co_return;
  ServedResourcePtr resource = served_instances(context, doomed.object);
  const bool served = resource != nullptr;
  // A definition without accepted names never had instances.
  if (!served && resources::is_condition_true(doomed.object, "Established"))
    resource = stored_instances(context, doomed.object);
  Doomed reported = doomed;
  std::vector<Condition> progress = {{"Terminating", true, "InstanceDeletionInProgress",
                                      "CustomResource deletion is in progress"}};
  co_await report(context.store, std::move(reported), std::move(progress));
  const bool had_instances = resource != nullptr;
  if (had_instances) {
    Doomed same = doomed;
    Target instances{resource};
    const std::optional<Leftovers> left =
        co_await empty(context.store, std::move(same), std::move(instances));
    if (!left || left->objects > 0) co_return;
  }
  Store::Change change = [had_instances](const Object& present) {
    return emptied(present, had_instances);
  };
  co_await let_go(context.store, std::move(doomed), std::move(change));
  co_await context.resources.refresh();
  if (served || resource == nullptr) co_return;
  // The registry releases only served resources.
  const auto table = context.resources.table();
  const auto& all = table->resources();
  if (std::none_of(all.begin(), all.end(),
                   [&](const auto& one) { return one->storage == resource->storage; }))
    context.resources.backend().release(resource->type.group + "/" + resource->type.plural);
}

using Finalize = Awaitable<void> (*)(Context, Doomed);
using Queue = std::shared_ptr<DeletionQueue>;

/// Enqueues objects that are being deleted, until the watch ends.
Awaitable<void> look_for_deletions(ServedResourcePtr resource, Queue queue) {
  storage::WatchOptions from_state;
  const auto watch = co_await resource->storage->watch("", true, std::move(from_state));
  // An earlier watch may have missed that objects were deleted.
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
      if (!is_deleting(present)) continue;  // another object with the same name
      Doomed doomed{std::move(target), present};
      co_await finalize(context, std::move(doomed));
    } catch (const boost::system::system_error&) {
      throw;  // cancelled
    } catch (const std::exception& e) {
      // The object was deleted or has changed; the next round checks it again.
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
