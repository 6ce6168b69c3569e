#include <spdlog/spdlog.h>

#include <boost/system/system_error.hpp>
#include <utility>
#include <vector>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Object;
using json::Document;
using json::Value;
using registry::ServedResourcePtr;
using registry::Store;
using registry::Target;
using std::chrono::steady_clock;

/// How soon it is tried again to empty what is not empty yet.
constexpr std::chrono::milliseconds kRetry{100};

bool is_deleting(const Object& object) { return object["metadata"]["deletionTimestamp"].exists(); }

/// Keeps track of the objects of a resource that are being deleted.
class Deleting {
 public:
  void take(const std::vector<storage::Event>& events) {
    for (const storage::Event& event : events) {
      const std::string name(event.object.name());
      if (event.type == api::EventType::kDeleted || !is_deleting(event.object)) {
        names_.erase(name);
      } else {
        names_.insert(name);
      }
    }
  }
  bool empty() const { return names_.empty(); }
  std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }
  storage::Watch::TimePoint next_try() const {
    return empty() ? storage::Watch::TimePoint::max() : steady_clock::now() + kRetry;
  }

 private:
  std::set<std::string> names_;
};

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

/// Deletes everything in a namespace, or everything of a resource; true if nothing is left.
Awaitable<bool> empty(const Store& store, Target target) {
  storage::Predicate everything;
  registry::DeleteOptions options;
  co_await store.remove_collection(target, std::move(everything), std::move(options));
  storage::ListOptions one;
  one.limit = 1;
  storage::ListResult left =
      co_await target.resource->storage->list(target.key(), true, std::move(one));
  std::vector<Object> some;
  const bool any = co_await left.objects->next(some, 1);
  co_return !any;
}

/// True if the namespace has gone.
Awaitable<bool> finalize_namespace(Context context, ServedResourcePtr namespaces,
                                   std::string name) {
  bool nothing_left = true;
  std::set<storage::Interface*> seen;
  const auto table = context.resources.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->type.namespaced || resource->storage == nullptr) continue;
    if (!seen.insert(resource->storage).second) continue;
    Target target{resource, name};
    const bool is_empty = co_await empty(context.store, std::move(target));
    nothing_left = nothing_left && is_empty;
  }
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
                                                     registry::Part::kWhole, std::move(none));
  co_return updated.object["spec"]["finalizers"].empty() &&
      updated.object["metadata"]["finalizers"].empty();
}

/// True if the definition has gone.
Awaitable<bool> finalize_definition(Context context, ServedResourcePtr definitions,
                                    std::string name) {
  Target target{definitions, "", name};
  const Object definition = co_await context.store.get(target);
  const auto table = context.resources.table();
  for (const ServedResourcePtr& resource : table->resources()) {
    if (!resource->custom || resource->type.qualified_name() != name) continue;
    Target instances{resource};
    const bool is_empty = co_await empty(context.store, std::move(instances));
    if (!is_empty) co_return false;
    break;
  }
  const auto without_finalizer = [](const Object& present) {
    Document document = present.to_document();
    if (Value* metadata = json::find(document, "metadata"))
      remove_string(*metadata, "finalizers", registry::kInstanceCleanup);
    return Object::from(document);
  };
  Store::Change change = without_finalizer;
  storage::Preconditions none;
  co_await context.store.update(std::move(target), std::move(change), registry::Part::kWhole,
                                std::move(none));
  co_await context.resources.refresh();
  co_return true;
}

using Finalize = Awaitable<bool> (*)(Context, ServedResourcePtr, std::string);

/// True if the watch fell behind, and another one has to go on.
Awaitable<bool> run_once(Context context, ServedResourcePtr resource, Finalize finalize) {
  storage::WatchOptions from_state;
  const auto watch = co_await resource->storage->watch("", true, std::move(from_state));
  Deleting deleting;
  std::vector<storage::Event> events;
  while (co_await watch->next(events, deleting.next_try())) {
    if (!events.empty() && events.back().type == api::EventType::kError) co_return true;
    deleting.take(events);
    for (const std::string& name : deleting.names()) {
      try {
        co_await finalize(context, resource, name);
      } catch (const boost::system::system_error&) {
        throw;  // told to end
      } catch (const std::exception& e) {
        // It has gone, or something in it changed meanwhile: the next round will show.
        if (!api::is_not_found(e) && !api::is_conflict(e))
          spdlog::warn("cannot finish the deletion of {} {}: {}", resource->type.plural, name,
                       e.what());
      }
    }
  }
  co_return !events.empty() && events.back().type == api::EventType::kError;
}

Awaitable<void> run(Context context, ServedResourcePtr resource, Finalize finalize) {
  for (bool again = true; again;) {
    ServedResourcePtr same = resource;
    again = co_await run_once(context, std::move(same), finalize);
  }
}

}  // namespace

Awaitable<void> run_namespace_controller(Context context) {
  auto namespaces = context.resources.table()->find("", "v1", "namespaces");
  co_await run(context, std::move(namespaces), finalize_namespace);
}

Awaitable<void> run_definition_controller(Context context) {
  auto definitions =
      context.resources.table()->find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
  co_await run(context, std::move(definitions), finalize_definition);
}

}  // namespace lookout::apiserver::controllers
