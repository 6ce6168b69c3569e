#include "lookout/controller/context.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "controller/cache_core.h"
#include "controller/environment.h"
#include "lookout/controller/cluster.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/meta/v1.h"
#include "lookout/k8s/meta/v1_draft.h"
#include "lookout/rest/error.h"
#include "lookout/tools/retry.h"

namespace lookout::controller {

Context::Context(std::shared_ptr<const detail::Environment> environment, const Request& request,
                 std::stop_token stop, std::uint64_t number)
    : environment_(std::move(environment)),
      request_(request),
      stop_(std::move(stop)),
      number_(number) {}
Context::~Context() = default;

const std::string& Context::controller() const { return environment_->controller; }
std::string Context::reconcile_id() const { return environment_->ids->id(number_); }
const Logger& Context::logger() const {
  if (!logger_) {
    logger_ = std::make_unique<const Logger>(
        environment_->ids->logger(environment_->controller, request_, number_));
  }
  return *logger_;
}
EventLoop& Context::loop() const { return environment_->client.loop(); }

CacheView& Context::view() {
  if (!view_) view_ = std::make_unique<CacheView>(environment_->cache, stop_);
  return *view_;
}

const rest::Client& Context::uncached() const {
  if (!client_) client_ = std::make_unique<rest::Client>(bound(environment_->client));
  return *client_;
}

rest::Client Context::bound(const rest::Client& client) const {
  rest::CallOptions call;
  call.stop = stop_;
  call.may_send = environment_->may_write;
  return client.with(call);
}

struct Context::Elsewhere {
  const Cluster* cluster;
  CacheView view;
  rest::Client client;
};

Context::Elsewhere& Context::elsewhere(const Cluster& cluster) const {
  for (const auto& each : elsewhere_) {
    if (each->cluster == &cluster) return *each;
  }
  return *elsewhere_.emplace_back(std::make_unique<Elsewhere>(
      Elsewhere{&cluster, CacheView(cluster.cache().core(), stop_), bound(cluster.client())}));
}

CacheView& Context::view(const Cluster& cluster) { return elsewhere(cluster).view; }
const rest::Client& Context::uncached(const Cluster& cluster) const {
  return elsewhere(cluster).client;
}

rest::ResourceClient Context::client_for(const api::Resource& resource, std::string_view ns) const {
  return uncached().resource(resource, resource.namespaced ? ns : std::string_view());
}

api::Resource Context::resource_by_kind(const api::ObjectDraft& draft) const {
  return environment_->cache->resource_of(api::GroupVersionKind::from(
      draft["apiVersion"].as<std::string_view>(), draft["kind"].as<std::string_view>()));
}

void Context::throw_not_found(const api::Resource& resource, const Request& request) {
  throw api::StatusError::not_found(resource.group, resource.plural, request.name);
}

void Context::require_same_key(const api::Object& existing, const Request& request,
                               const api::ObjectDraft& draft) {
  const auto metadata = draft["metadata"];
  const auto ns = metadata["namespace"].as<std::string_view>();
  // A new object of a cluster-scoped kind has no namespace, even if the request has one.
  const bool moved = existing ? ns != existing.ns() : !ns.empty() && ns != request.ns;
  if (moved || metadata["name"].as<std::string_view>() != request.name) {
    throw InvalidArgument(
        fmt::format("{}: an object cannot change its name or namespace", request.key()));
  }
}

void Context::report(const api::Object& regarding, EventType type, std::string_view reason,
                     const std::string& message) const {
  if (!environment_->events) return;
  // A lost Event must not fail a reconcile.
  try {
    environment_->events->event(regarding, type, reason, message, environment_->controller);
  } catch (const std::exception& e) {
    logger().error("its EventSink threw: {}", e.what());
  } catch (...) {
    logger().error("its EventSink threw");
  }
}

namespace {

/// True if written objects of the kind belong to the object of the request: the builder owns() it, without
/// match_any_owner.
bool sets_controller(const api::Resource& resource, const detail::Environment& environment) {
  const auto is_in = [&](const std::vector<api::Resource>& kinds) {
    return std::find(kinds.begin(), kinds.end(), resource) != kinds.end();
  };
  return is_in(environment.owned) && !is_in(environment.shared);
}

}  // namespace

Ownership Context::ownership_of(const api::Resource& resource) {
  if (!sets_controller(resource, *environment_)) return owned_by_anyone();
  return owned_by(requested_object());
}

api::Object Context::requested_object() {
  const auto kind = environment_->cache->find_any(environment_->primary);
  return view().find(environment_->primary, kind && kind->metadata_only, request_);
}

void Context::own(const api::Resource& resource, const api::ObjectDraft& draft) {
  if (!sets_controller(resource, *environment_)) return;
  const auto references = k8s::meta::v1::ObjectMetaDraft(draft["metadata"]).owner_references();
  for (const auto& reference : references) {
    if (reference.controller() == true) return;
  }
  const api::Object owner = requested_object();
  if (!owner) return;
  const k8s::meta::v1::ObjectMetaDraft metadata(draft["metadata"]);
  if (!owner.ns().empty() && metadata.namespace_() != owner.ns()) {
    throw InvalidArgument(fmt::format(
        "{} {}: the controller owns {}, but {} {} cannot own it: {}. Write it through uncached(), "
        "and watch {} with watches() instead of owns(), or with match_any_owner",
        draft["kind"].as<std::string_view>(), Request(metadata.namespace_(), metadata.name()).key(),
        resource.plural, owner.kind(), owner.key(),
        !resource.namespaced ? "a cluster-scoped object cannot have a namespaced owner"
                             : "owner references cannot cross namespaces",
        resource.plural));
  }
  set_controller_reference(owner, draft);
}

// ------------------------------------------------------------------------------- tracked writes

namespace {

/// True if this write removed the object: a deleted object is removed with its last finalizer.
bool has_gone(const api::Object& written) {
  const auto metadata = written.metadata();
  if (!is_being_deleted(written) || !metadata.finalizers().empty()) return false;
  // A namespace stays until a controller has emptied it and removed these finalizers.
  const bool is_namespace = written.kind() == "Namespace" && written.api_version() == "v1";
  if (is_namespace && !written["spec"]["finalizers"].empty()) return false;
  return metadata.deletion_grace_period_seconds().value_or(0) == 0;
}

}  // namespace

void Context::note(const api::Resource& resource, const api::Object& written) {
  if (!environment_->read_your_writes || written.resource_version().empty()) return;
  if (has_gone(written))
    return note_removed(resource, Request(written.ns(), written.name()), written.uid());
  for (auto& kind : environment_->cache->kinds_of(resource)) {
    detail::Write write;
    write.selected = kind->selects(written);
    write.kind = std::move(kind);
    write.key = Request(written.ns(), written.name());
    write.uid = written.uid();
    write.resource_version = written.resource_version();
    detail::seen(write);  // notes the version of the cache
    writes_.push_back(std::move(write));
  }
}

void Context::note_removed(const api::Resource& resource, const Request& key,
                           std::string_view uid) {
  if (!environment_->read_your_writes) return;
  for (auto& kind : environment_->cache->kinds_of(resource)) {
    detail::Write write;
    write.kind = std::move(kind);
    write.key = key;
    write.uid = uid;
    detail::seen(write);
    writes_.push_back(std::move(write));
  }
}

std::vector<detail::Write> Context::take_writes() { return std::exchange(writes_, {}); }

// ------------------------------------------------------------------------------- verbs

Awaitable<api::Object> Context::tracked(api::Resource resource, Awaitable<api::Object> call,
                                        bool dry_run) {
  environment_->require_leadership();
  api::Object written = co_await std::move(call);
  // No cache will see a dry run.
  if (!dry_run) note(resource, written);
  co_return written;
}

namespace {

std::string namespace_of(const api::ObjectDraft& draft) {
  return std::string(k8s::meta::v1::ObjectMetaDraft(draft["metadata"]).namespace_());
}

}  // namespace

Awaitable<api::Object> Context::async_create_object(api::Resource resource,
                                                    const api::ObjectDraft& draft,
                                                    rest::CreateOptions options) {
  own(resource, draft);
  const bool dry_run = options.dry_run;
  auto call = client_for(resource, namespace_of(draft)).async_create(draft, std::move(options));
  return tracked(std::move(resource), std::move(call), dry_run);
}

Awaitable<api::Object> Context::async_update_object(api::Resource resource,
                                                    const api::ObjectDraft& draft, bool status,
                                                    rest::UpdateOptions options) {
  const bool dry_run = options.dry_run;
  auto call = client_for(resource, namespace_of(draft))
                  .async_update(draft, std::move(options), status ? "status" : "");
  return tracked(std::move(resource), std::move(call), dry_run);
}

Awaitable<api::Object> Context::async_patch_object(api::Resource resource,
                                                   const api::ObjectDraft& draft, bool status,
                                                   rest::PatchOptions options) {
  const bool dry_run = options.dry_run;
  const auto client = client_for(resource, namespace_of(draft));
  auto call = status ? client.async_patch_status(draft, std::move(options))
                     : client.async_patch(draft, std::move(options));
  return tracked(std::move(resource), std::move(call), dry_run);
}

Awaitable<api::Object> Context::async_apply_object(api::Resource resource,
                                                   const api::ObjectDraft& draft) {
  own(resource, draft);
  rest::ApplyOptions options;
  options.field_manager = environment_->controller;
  options.force = true;
  auto call = client_for(resource, namespace_of(draft)).async_apply(draft, std::move(options));
  return tracked(std::move(resource), std::move(call), false);
}

Awaitable<bool> Context::async_remove_object(api::Resource resource, api::Object object,
                                             rest::DeleteOptions options) {
  environment_->require_leadership();
  if (options.precondition_uid.empty()) options.precondition_uid = object.uid();
  const Request key(object.ns(), object.name());
  const bool dry_run = options.dry_run;
  api::Object answer;
  try {
    answer = co_await client_for(resource, key.ns).async_remove(key.name, std::move(options));
  } catch (const api::StatusError& e) {
    if (!rest::is_object_missing(e)) throw;
    co_return false;
  }
  if (dry_run) co_return true;
  // An object with finalizers or a grace period stays for a while, with a deletionTimestamp.
  if (answer.kind() != "Status" && is_being_deleted(answer)) {
    note(resource, answer);
  } else {
    const std::string_view deleted = answer["details"]["uid"].as_string();
    note_removed(resource, key, object.uid().empty() ? deleted : object.uid());
  }
  co_return true;
}

Awaitable<api::Object> Context::async_current(api::Resource resource, Request request) {
  // The object is created without the request's namespace, too.
  if (!resource.namespaced) request.ns.clear();
  const auto kind = environment_->cache->find(resource, false);
  if (kind && kind->complete_in(request.ns)) {
    api::Object found = view().find(resource, false, request);
    // An object outside the cache's selection may still exist.
    const auto* const part = kind->part_for(request.ns);
    const bool all = part != nullptr && part->labels.empty() && part->field_selector.empty();
    if (found || all) co_return found;
  }
  co_return co_await client_for(resource, request.ns).async_find(request.name);
}

Awaitable<api::Object> Context::async_write_draft(api::Resource resource, api::Object existing,
                                                  const api::ObjectDraft& draft) {
  if (!existing) {
    const rest::CreateOptions options;
    co_return co_await async_create_object(std::move(resource), draft, options);
  }
  if (!draft.changed()) co_return existing;
  const rest::UpdateOptions options;
  co_return co_await async_update_object(std::move(resource), draft, false, options);
}

// ------------------------------------------------------------------------------- finalizers

namespace {

/// Checked before the finalizer is added. Otherwise a deleted object would keep it forever.
template <class Function>
void require_clean_up(std::string_view finalizer, const Function& clean_up) {
  if (!clean_up)
    throw InvalidArgument(fmt::format("finalizer \"{}\": its clean-up is empty", finalizer));
}

}  // namespace

Awaitable<void> Context::async_add_finalizer(api::Resource resource, api::Object object,
                                             std::string finalizer) {
  const api::ObjectDraft draft(std::move(object));
  add_finalizer(draft, finalizer);
  // A merge patch replaces the whole list, so fail if the object has changed in the meantime.
  rest::PatchOptions options;
  options.if_unchanged = true;
  co_await async_patch_object(std::move(resource), draft, false, std::move(options));
}

Awaitable<void> Context::async_remove_finalizer(api::Resource resource, api::Object object,
                                                std::string finalizer) {
  // The clean-up is done: do not repeat it after a conflict.
  bool read = false;
  const auto attempt = [&]() -> Awaitable<void> {
    if (read) {
      const std::string uid(object.uid());
      object = co_await client_for(resource, object.ns()).async_find(object.name());
      if (!object || object.uid() != uid) co_return;
    }
    read = true;
    const api::ObjectDraft draft(object);
    if (!remove_finalizer(draft, finalizer)) co_return;
    rest::PatchOptions options;
    options.if_unchanged = true;
    try {
      co_await async_patch_object(resource, draft, false, std::move(options));
    } catch (const api::StatusError& e) {
      if (!rest::is_object_missing(e)) throw;
    }
  };
  co_await retry::async_on_conflict(attempt, retry::kDefaultRetry, stop_);
}

bool Context::finalize_object(const api::Resource& resource, const api::Object& object,
                              std::string_view finalizer, const std::function<void()>& clean_up) {
  require_clean_up(finalizer, clean_up);
  if (!is_being_deleted(object)) {
    if (!has_finalizer(object, finalizer))
      run(async_add_finalizer(resource, object, std::string(finalizer)));
    return false;
  }
  if (!has_finalizer(object, finalizer)) return true;
  clean_up();
  run(async_remove_finalizer(resource, object, std::string(finalizer)));
  return true;
}

Awaitable<bool> Context::async_finalize_object(api::Resource resource, api::Object object,
                                               std::string finalizer,
                                               std::function<Awaitable<void>()> clean_up) {
  require_clean_up(finalizer, clean_up);
  if (!is_being_deleted(object)) {
    if (!has_finalizer(object, finalizer))
      co_await async_add_finalizer(std::move(resource), std::move(object), std::move(finalizer));
    co_return false;
  }
  if (!has_finalizer(object, finalizer)) co_return true;
  co_await clean_up();
  co_await async_remove_finalizer(std::move(resource), std::move(object), std::move(finalizer));
  co_return true;
}

}  // namespace lookout::controller
