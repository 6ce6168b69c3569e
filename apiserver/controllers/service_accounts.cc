// Keeps in each namespace the objects that the admission plugin ServiceAccount needs, as
// kube-controller-manager does (pkg/controller/serviceaccount,
// pkg/controller/certificates/rootcacertpublisher).
#include <fmt/format.h>

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/own_writes.h"
#include "apiserver/controllers/watch_events.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::controllers {
namespace {

using resources::ServedResourcePtr;
using resources::Target;

constexpr std::string_view kControllerManager = "kube-controller-manager";
/// The delay before another attempt to create an object, for example because of a quota.
constexpr std::chrono::seconds kNextAttempt{5};

constexpr const char* kAccount = R"({"metadata":{"name":"default"}})";
constexpr const char* kRootCertificates = R"({"metadata":{"name":"kube-root-ca.crt","annotations":{
  "kubernetes.io/description":"Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}},
  "data":{"ca.crt":""}})";
constexpr const char* kDescription = "kubernetes.io/description";

/// An object in each namespace.
struct InEachNamespace {
  ServedResourcePtr resource;
  Object wanted;
  /// Returns `present` with the content of `wanted`; `present` itself if nothing is missing.
  Object (*revise)(const Object& present, const Object& wanted) = nullptr;
};

Object as_it_is(const Object& present, const Object& /*wanted*/) { return present; }

Object with_certificates(const Object& present, const Object& wanted) {
  if (present["data"] == wanted["data"] &&
      !present["metadata"]["annotations"][kDescription].as_string().empty())
    return present;
  json::Document document = present.to_document();
  auto& allocator = document.GetAllocator();
  json::take(document, wanted.to_document(), "data", allocator);
  json::Value& metadata = json::child(document, "metadata", allocator);
  json::set(json::child(metadata, "annotations", allocator), kDescription,
            wanted["metadata"]["annotations"][kDescription].as_string(), allocator);
  return Object::from(document);
}

/// False if it has to be tried again.
Awaitable<bool> settle(const Context& context, const InEachNamespace& kept, std::string ns) {
  Target target{kept.resource, ns, std::string(kept.wanted.name())};
  Object wanted = kept.wanted;
  resources::Store::Change change = [wanted, revise = kept.revise](const Object& present) {
    return present ? revise(present, wanted) : present;
  };
  try {
    co_await create_or_update(context, std::move(target), std::move(wanted), std::move(change),
                              kControllerManager);
  } catch (const StatusError& e) {
    const bool is_gone = api::is_not_found(e) || api::has_status_cause(e, "NamespaceTerminating");
    if (!is_gone) {
      log::warn("cannot write {} {}/{}: {}", kept.resource->type.kind, ns, kept.wanted.name(),
                e.what());
    }
    co_return is_gone;
  }
  co_return true;
}

/// Removes the namespaces that are done.
Awaitable<void> settle_all(const Context& context, const InEachNamespace& kept,
                           std::set<std::string>& due) {
  const std::set<std::string> now = due;
  for (const std::string& ns : now) {
    std::string name = ns;
    const bool done = co_await settle(context, kept, std::move(name));
    if (done) due.erase(ns);
  }
}

storage::Watch::TimePoint next_attempt(const std::set<std::string>& due) {
  return due.empty() ? storage::Watch::TimePoint::max()
                     : std::chrono::steady_clock::now() + kNextAttempt;
}

/// Adds the namespaces that an event makes due, or removes one.
using Note = void (*)(const storage::Event& event, std::set<std::string>& due);

/// Follows a watch. True if it has expired and a new one must continue.
Awaitable<bool> follow_events(const Context& context, const InEachNamespace& kept,
                              storage::Watch& watch, std::set<std::string> due, Note note) {
  std::vector<storage::Event> events;
  for (;;) {
    const bool more = co_await watch.next(events, next_attempt(due));
    if (!events.empty() && fell_behind(events.back())) co_return true;
    if (!more) co_return false;
    for (const storage::Event& event : events) note(event, due);
    co_await settle_all(context, kept, due);
  }
}

void note_namespace(const storage::Event& event, std::set<std::string>& due) {
  if (event.type == api::EventType::kDeleted || resources::is_deleting(event.object)) {
    due.erase(std::string(event.object.name()));
  } else {
    due.emplace(event.object.name());
  }
}

void note_deletion(const storage::Event& event, std::set<std::string>& due) {
  if (event.type == api::EventType::kDeleted) due.emplace(event.object.ns());
}

/// For new namespaces. True if the watch has expired and a new one must continue.
Awaitable<bool> follow_namespaces(Context context, InEachNamespace kept) {
  const auto namespaces = context.resources.table()->find("", "v1", "namespaces");
  storage::WatchOptions options;
  const auto watch = co_await namespaces->storage->watch("", true, std::move(options));
  std::set<std::string> due;
  co_return co_await follow_events(context, kept, *watch, std::move(due), note_namespace);
}

/// For deleted objects. True if the watch has expired and a new one must continue.
Awaitable<bool> follow_deletions(Context context, InEachNamespace kept) {
  storage::FieldRequirement requirement;
  requirement.read = [](const Object& object, std::string& /*scratch*/) -> std::string_view {
    return object.name();
  };
  requirement.value = std::string(kept.wanted.name());
  storage::WatchOptions options;
  options.start = storage::WatchOptions::Start::kNow;
  options.predicate.fields.push_back(std::move(requirement));
  const auto watch = co_await kept.resource->storage->watch("", true, std::move(options));
  // Before this watch, objects may have been deleted.
  std::set<std::string> due;
  ServedResourcePtr namespaces = context.resources.table()->find("", "v1", "namespaces");
  const std::vector<Object> all = co_await list_all(std::move(namespaces));
  for (const Object& ns : all) due.emplace(ns.name());
  co_await settle_all(context, kept, due);
  co_return co_await follow_events(context, kept, *watch, std::move(due), note_deletion);
}

using Follow = Awaitable<bool> (*)(Context context, InEachNamespace kept);

Awaitable<void> keep_following(Context context, InEachNamespace kept, Follow follow) {
  for (bool again = true; again;) {
    InEachNamespace same = kept;
    again = co_await follow(context, std::move(same));
  }
}

}  // namespace

void begin_service_account_controllers(const Context& context, const std::string& certificates) {
  const auto table = context.resources.table();
  json::Document with_data = Object::parse(kRootCertificates).to_document();
  json::set(*json::find(with_data, "data"), "ca.crt", certificates, with_data.GetAllocator());
  const InEachNamespace accounts{table->find("", "v1", "serviceaccounts"), Object::parse(kAccount),
                                 as_it_is};
  const InEachNamespace maps{table->find("", "v1", "configmaps"), Object::from(with_data),
                             with_certificates};
  for (const auto& [name, kept] :
       {std::pair("service accounts", accounts), std::pair("root certificates", maps)}) {
    context.spawn(
        name, [context, kept = kept] { return keep_following(context, kept, follow_namespaces); });
    context.spawn(fmt::format("deleted {}", name), [context, kept = kept] {
      return keep_following(context, kept, follow_deletions);
    });
  }
}

}  // namespace lookout::apiserver::controllers
