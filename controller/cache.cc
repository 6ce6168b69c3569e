#include "lookout/controller/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "controller/cache_core.h"
#include "controller/waiting.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"

namespace lookout::controller {
namespace {

/// The period, longer or shorter by up to a tenth, so that many processes do not resync at once.
std::chrono::milliseconds spread(std::chrono::milliseconds period) {
  std::minstd_rand random(std::random_device{}());
  const double factor = 0.9 + 0.2 * std::uniform_real_distribution<>()(random);
  return std::chrono::duration_cast<std::chrono::milliseconds>(period * factor);
}

informer::FactoryOptions factory_options(const CacheOptions& options) {
  informer::FactoryOptions out;
  out.resync_period = spread(options.resync_period);
  out.newest_first_list = options.newest_first_list;
  out.content_type = options.content_type;
  out.backoff = options.backoff;
  out.clock = options.clock;
  return out;
}

/// Replaces the type PartialObjectMetadata with the object's own type, as controller-runtime's cache
/// does, because owner references and Events contain that type.
cache::TransformFunc with_type_of(const api::Resource& resource) {
  return [version = resource.api_version(), kind = resource.kind](const api::Object& object) {
    return api::with_type(object, version, kind);
  };
}

/// The single namespace that a field selector selects, if any. As in controller-runtime, only that
/// namespace is listed, so a Role in it is sufficient.
std::string only_namespace(const api::fields::Selector& selector) {
  for (const auto& each : selector.requirements()) {
    if (each.field == "metadata.namespace" && each.equal) return each.value;
  }
  return {};
}

/// How often to check whether a namespace was refused, which is not reported by an event.
constexpr std::chrono::milliseconds kLookEvery{100};

/// ": " with the reason why an informer does not follow the server, if known, and advice.
std::string reason(const api::Resource& resource, const informer::SharedIndexInformer& informer) {
  const auto failure = informer.last_failure();
  if (!failure) return "";
  std::string hint;
  if (failure->status == 404) {
    hint = fmt::format("; is its CustomResourceDefinition installed, and does it serve {}?",
                       resource.version);
  } else if (failure->status == 403) {
    hint = "; does the role of this program allow it to list and watch?";
  }
  return fmt::format(": {}{}", failure->message, hint);
}

}  // namespace

namespace detail {

namespace {

/// An empty list means all namespaces.
bool watches_all_of(const CachedKind& kind, const std::vector<std::string>& namespaces) {
  if (namespaces.empty()) return kind.parts.front().ns.empty();
  return std::all_of(namespaces.begin(), namespaces.end(),
                     [&](const std::string& ns) { return kind.part_for(ns) != nullptr; });
}

}  // namespace

bool CachedKind::refused(const Part& part) const {
  if (parts.size() == 1 || part.informer->has_synced()) return false;
  const auto failure = part.informer->last_failure();
  // (401 concerns all namespaces: the caches are not complete.)
  return failure && failure->status == 403;
}

const CachedKind::Part* CachedKind::part_for(std::string_view ns) const {
  if (parts.size() == 1 && parts.front().ns.empty()) return &parts.front();
  for (const Part& part : parts) {
    if (part.ns == ns) return &part;
  }
  return nullptr;
}

CacheCore::CacheCore(rest::Client client, CacheOptions options)
    : client_(std::move(client)),
      options_(std::move(options)),
      barrier_(std::make_shared<WriteBarrier>(client_.shared_loop(),
                                              options_.clock ? options_.clock : Clock::real())),
      factory_(client_, factory_options(options_)) {}

std::shared_ptr<CachedKind> CacheCore::make(const api::Resource& resource, bool metadata_only,
                                            const KindOptions& options) {
  auto kind = std::make_shared<CachedKind>();
  kind->resource = resource;
  kind->metadata_only = metadata_only;
  std::vector<std::string> namespaces = options.namespaces.value_or(options_.namespaces);
  if (!resource.namespaced) {
    if (options.namespaces) {
      throw InvalidArgument(fmt::format(
          "cache of {}: cluster-scoped objects cannot be watched by namespace", kind->name()));
    }
    namespaces.clear();
  }
  if (namespaces.empty()) namespaces.emplace_back();
  std::sort(namespaces.begin(), namespaces.end());
  namespaces.erase(std::unique(namespaces.begin(), namespaces.end()), namespaces.end());
  if (namespaces.size() > 1 && namespaces.front().empty()) {
    throw InvalidArgument(fmt::format(
        "cache of {}: an empty namespace means all namespaces and cannot be combined with others",
        kind->name()));
  }
  kind->scope.label_selector = options.label_selector.value_or(options_.label_selector);
  kind->scope.field_selector = options.field_selector.value_or(options_.field_selector);
  kind->scope.projection = options.projection;
  if (!options.projection && !metadata_only) kind->scope.projection = options_.projection;
  kind->scope.metadata_only = metadata_only;
  kind->labels = api::labels::parse(*kind->scope.label_selector);
  kind->fields = api::fields::parse(*kind->scope.field_selector);
  kind->parts.reserve(namespaces.size());
  for (std::string& ns : namespaces) {
    informer::Scope scope = kind->scope;
    std::string listed = ns.empty() && resource.namespaced ? only_namespace(kind->fields) : ns;
    scope.ns = listed;
    CachedKind::Part part{std::move(ns), std::move(listed), factory_.for_resource(resource, scope),
                          std::make_shared<std::stop_source>()};
    if (metadata_only) part.informer->set_transform(with_type_of(resource));
    // The first handler of the informer, so that writes are released before other handlers run.
    informer::EventHandler<api::Object> handler;
    handler.name = "writes of " + part.informer->name();
    const std::weak_ptr<WriteBarrier> barrier = barrier_;
    const CachedKind* const key = kind.get();
    const auto changed = [barrier, key](const api::Object& object) {
      if (const auto to = barrier.lock()) to->on_change(key, object);
    };
    handler.on_add = [changed](const api::Object& object) { changed(object); };
    handler.on_update = [changed](const api::Object&, const api::Object& after) { changed(after); };
    handler.on_delete = [changed](const api::Object& last) { changed(last); };
    handler.on_synced = [synced = part.synced] { synced->request_stop(); };
    informer::HandlerOptions handler_options;
    handler_options.resync_period = std::chrono::milliseconds(0);
    part.informer->add_handler(std::move(handler), handler_options).release();
    kind->parts.push_back(std::move(part));
  }
  return kind;
}

std::shared_ptr<const CachedKind> CacheCore::declare(const api::Resource& resource,
                                                     bool metadata_only,
                                                     std::optional<KindOptions> options) {
  return obtain(resource, metadata_only, options, Reason::kDeclared);
}

std::shared_ptr<const CachedKind> CacheCore::use(const api::Resource& resource,
                                                 bool metadata_only) {
  return obtain(resource, metadata_only, std::nullopt, Reason::kUsed);
}

std::shared_ptr<const CachedKind> CacheCore::obtain(const api::Resource& resource,
                                                    bool metadata_only,
                                                    const std::optional<KindOptions>& options,
                                                    Reason reason) {
  const auto note = [reason](CachedKind& kind) {
    if (reason == Reason::kUsed) {
      ++kind.uses;
    } else {
      kind.declared = true;
    }
  };
  std::shared_ptr<CachedKind> kind;
  bool running = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : kinds_) {
      if (each->resource != resource || each->metadata_only != metadata_only) continue;
      if (!options) {
        note(*each);
        return each;
      }
      const auto same = [](const auto& given, const auto& has) { return !given || given == has; };
      const bool equal = same(options->label_selector, each->scope.label_selector) &&
                         same(options->field_selector, each->scope.field_selector) &&
                         same(options->projection, each->scope.projection) &&
                         (!options->namespaces || watches_all_of(*each, *options->namespaces));
      if (!equal) {
        throw InvalidArgument(fmt::format(
            "cache of {}: it has been declared with other options; declare a kind with its options "
            "before the builder that uses it",
            each->name()));
      }
      note(*each);
      return each;
    }
    kind = make(resource, metadata_only, options.value_or(KindOptions()));
    note(*kind);
    kinds_.push_back(kind);
    running = running_;
  }
  if (running) {
    for (const auto& part : kind->parts) part.informer->start();
  }
  return kind;
}

bool CacheCore::undeclare(const api::Resource& resource, bool metadata_only) {
  std::shared_ptr<CachedKind> retired;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& each) {
      return each->resource == resource && each->metadata_only == metadata_only;
    });
    if (at == kinds_.end() || !std::exchange((*at)->declared, false)) return false;
    retired = retire(at);
  }
  finish(retired);
  return true;
}

void CacheCore::unuse(const std::shared_ptr<const CachedKind>& kind) {
  std::shared_ptr<CachedKind> retired;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find(kinds_.begin(), kinds_.end(), kind);
    if (at == kinds_.end()) return;
    --(*at)->uses;
    retired = retire(at);
  }
  finish(retired);
}

std::shared_ptr<CachedKind> CacheCore::retire(
    std::vector<std::shared_ptr<CachedKind>>::iterator at) {
  if ((*at)->declared || (*at)->uses > 0) return nullptr;
  auto out = std::move(*at);
  kinds_.erase(at);
  out->retired = true;
  // Declaring the kind again creates new informers.
  for (const auto& part : out->parts) factory_.forget(part.informer);
  return out;
}

void CacheCore::finish(const std::shared_ptr<CachedKind>& retired) {
  if (!retired) return;
  for (const auto& part : retired->parts) {
    // A start that waits for all caches stops waiting for this one.
    part.synced->request_stop();
    if (!client_.loop().running_in_this_thread()) part.informer->shutdown();
  }
}

void CacheCore::add_index(const api::Resource& resource, std::string name,
                          cache::IndexFunc function) {
  const auto kind = declare(resource, false, std::nullopt);
  for (const auto& part : kind->parts) part.informer->add_indexers({{name, function}});
}

std::shared_ptr<const CachedKind> CacheCore::find(const api::Resource& resource,
                                                  bool metadata_only) const {
  const std::lock_guard lock(mutex_);
  for (const auto& each : kinds_) {
    if (each->resource == resource && each->metadata_only == metadata_only) return each;
  }
  return nullptr;
}

std::shared_ptr<const CachedKind> CacheCore::find_any(const api::Resource& resource) const {
  auto kind = find(resource, false);
  return kind ? kind : find(resource, true);
}

std::shared_ptr<const CachedKind> CacheCore::require(const api::Resource& resource,
                                                     bool metadata_only) {
  auto kind = find(resource, metadata_only);
  if (!kind && !options_.lazy) {
    const std::string other = find(resource, !metadata_only) == nullptr ? ""
                              : metadata_only
                                  ? "; its objects are cached whole: use find() and list()"
                                  : "; only its metadata is cached: use find_metadata()";
    throw NotCachedError(
        fmt::format("{} are not cached{}; declare them with the builder's owns() or watches() or "
                    "with Cache::declare(), or read them with Context::uncached()",
                    resource.qualified_name(), other));
  }
  if (!kind) kind = declare(resource, metadata_only, std::nullopt);
  return kind;
}

void CacheCore::wait_for(const CachedKind& kind, const CachedKind::Part& part,
                         const std::stop_token& stop) const {
  if (!expected_ && !part.informer->has_synced()) {
    throw NotCachedError(
        fmt::format("the cache of {} has no complete list yet: it is read before Manager::run(), "
                    "which fills it",
                    part.informer->name()));
  }
  const auto clock = this->clock();
  const auto end = end_of(sync_limit(options_.sync_timeout), clock->now());
  while (!part.informer->has_synced()) {
    const auto now = clock->now();
    const bool hopeless =
        now >= end || stop.stop_requested() || part.informer->stopped() || kind.refused(part);
    if (hopeless || client_.loop().running_in_this_thread()) {
      throw NotCachedError(fmt::format("the cache of {} has no complete list yet{}",
                                       part.informer->name(),
                                       reason(kind.resource, *part.informer)));
    }
    // Requested by the stop of the reconcile or by the timeout.
    std::stop_source give_up;
    const std::stop_callback on_stop(stop, [&] { give_up.request_stop(); });
    Alarm alarm(client_.shared_loop(), clock, [give_up]() mutable { give_up.request_stop(); });
    alarm.set(kind.parts.size() == 1 ? end : std::min(end, now + kLookEvery));
    part.informer->wait_for_sync(give_up.get_token());
  }
}

std::vector<std::shared_ptr<const CachedKind>> CacheCore::kinds_of(
    const api::Resource& resource) const {
  std::vector<std::shared_ptr<const CachedKind>> out;
  const std::lock_guard lock(mutex_);
  for (const auto& each : kinds_) {
    if (each->resource == resource) out.push_back(each);
  }
  return out;
}

api::Resource CacheCore::resource_of(const api::GroupVersionKind& gvk) const {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : kinds_) {
      if (each->resource.gvk() == gvk) return each->resource;
    }
  }
  if (const auto* info = api::find_builtin(gvk.group, gvk.version, gvk.kind)) return info->type();
  throw InvalidArgument(
      fmt::format("{}: unknown kind: declare it with Cache::declare()", gvk.to_string()));
}

std::vector<std::shared_ptr<const CachedKind>> CacheCore::kinds() const {
  const std::lock_guard lock(mutex_);
  return {kinds_.begin(), kinds_.end()};
}

void CacheCore::start() {
  expect_start();
  // Not all informers of the factory: a kind that is being created starts itself.
  std::vector<std::shared_ptr<CachedKind>> kinds;
  {
    const std::lock_guard lock(mutex_);
    running_ = true;
    kinds = kinds_;
  }
  for (const auto& kind : kinds) {
    for (const auto& part : kind->parts) part.informer->start();
  }
}

Awaitable<void> CacheCore::wait_for_sync(std::vector<std::shared_ptr<const CachedKind>> kinds,
                                         std::stop_token stop) {
  const auto clock = this->clock();
  const auto deadline = end_of(sync_limit(options_.sync_timeout), clock->now());
  for (const auto& kind : kinds) {
    for (const auto& part : kind->parts) {
      // A stop ends the sleep just as the sync does.
      std::stop_source wake;
      const std::stop_callback on_stop(stop, [&] { wake.request_stop(); });
      const std::stop_callback on_sync(part.synced->get_token(), [&] { wake.request_stop(); });
      while (!wake.stop_requested() && !kind->refused(part)) {
        const auto now = clock->now();
        if (now >= deadline) throw Error("failed to sync all caches: " + missing(kinds));
        const auto until =
            kind->parts.size() == 1 ? deadline : std::min(deadline, now + kLookEvery);
        co_await clock->sleep(until - now, wake.get_token());
      }
      if (stop.stop_requested()) co_return;
      if (kind->refused(part) && !part.reported->exchange(true)) {
        log::warn("the cache of {} continues without this namespace{}", part.informer->name(),
                  reason(kind->resource, *part.informer));
      }
    }
  }
}

void CacheCore::shutdown() { factory_.shutdown(); }

std::vector<std::string> CacheCore::unsynced() const {
  std::vector<std::string> out;
  for (const auto& kind : kinds()) {
    for (const auto& part : kind->parts) {
      if (!part.informer->has_synced()) out.push_back(part.informer->name());
    }
  }
  return out;
}

std::string CacheCore::missing(const std::vector<std::shared_ptr<const CachedKind>>& kinds) {
  std::vector<std::string> out;
  for (const auto& kind : kinds) {
    for (const auto& part : kind->parts) {
      if (part.informer->has_synced()) continue;
      out.push_back(part.informer->name() + reason(kind->resource, *part.informer));
    }
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::optional<std::string> CacheCore::check(std::chrono::milliseconds within) const {
  const auto all = kinds();
  const std::string unsynced = missing(all);
  if (!unsynced.empty()) return "caches without a complete list: " + unsynced;
  std::vector<std::string> stale;
  for (const auto& kind : all) {
    for (const auto& part : kind->parts) {
      if (part.informer->live(within)) continue;
      const auto silence =
          std::chrono::duration_cast<std::chrono::seconds>(part.informer->staleness());
      stale.push_back(fmt::format("{}: last contact {} s ago{}", part.informer->name(),
                                  silence.count(), reason(kind->resource, *part.informer)));
    }
  }
  if (stale.empty()) return std::nullopt;
  return fmt::format("caches that may be out of date: {}", fmt::join(stale, ", "));
}

void CacheCore::collect(std::vector<metrics::Sample>& out) const {
  for (const auto& kind : kinds()) {
    for (const auto& part : kind->parts) part.informer->collect(out);
  }
  barrier_->collect(out);
}

}  // namespace detail

// --------------------------------------------------------------------------------------- view

struct CacheView::Pinned {
  std::shared_ptr<const detail::CachedKind> kind;
  // In the same order as the parts of the kind.
  std::vector<cache::Snapshot> parts;
  std::vector<bool> synced;  // true if the part was complete when the snapshot was taken

  explicit Pinned(std::shared_ptr<const detail::CachedKind> of) : kind(std::move(of)) {
    synced.reserve(kind->parts.size());
    for (const auto& part : kind->parts) synced.push_back(part.informer->has_synced());
    parts.reserve(kind->parts.size());
    for (const auto& part : kind->parts) parts.push_back(part.informer->store().snapshot());
  }
};

CacheView::CacheView(std::shared_ptr<detail::CacheCore> core, std::stop_token stop)
    : core_(std::move(core)), stop_(std::move(stop)) {}
CacheView::~CacheView() = default;
CacheView::CacheView(CacheView&&) noexcept = default;

CacheView::Pinned& CacheView::pinned(const api::Resource& resource, bool metadata_only) {
  if (pinned_.empty()) {
    const auto kinds = core_->kinds();
    pinned_.reserve(kinds.size());
    for (const auto& kind : kinds) pinned_.push_back(std::make_unique<Pinned>(kind));
  }
  for (const auto& each : pinned_) {
    if (each->kind->resource == resource && each->kind->metadata_only == metadata_only)
      return *each;
  }
  pinned_.push_back(std::make_unique<Pinned>(core_->require(resource, metadata_only)));
  return *pinned_.back();
}

std::vector<const cache::Snapshot*> CacheView::snapshots(const api::Resource& resource,
                                                         bool metadata_only,
                                                         std::optional<std::string_view> ns) {
  Pinned& pin = pinned(resource, metadata_only);
  const detail::CachedKind& kind = *pin.kind;
  const auto* const wanted = ns ? kind.part_for(*ns) : nullptr;
  if (ns && wanted == nullptr) {
    throw NotCachedError(fmt::format("{}: the namespace \"{}\" is not watched", kind.name(), *ns));
  }
  std::vector<const cache::Snapshot*> out;
  out.reserve(pin.parts.size());
  for (std::size_t i = 0; i < pin.parts.size(); ++i) {
    const auto& part = kind.parts[i];
    if (wanted != nullptr && wanted != &part) continue;
    if (!pin.synced[i]) {
      // Without a complete first list, no snapshot has been used yet.
      core_->wait_for(kind, part, stop_);
      pin.parts[i] = part.informer->store().snapshot();
      pin.synced[i] = true;
    }
    out.push_back(&pin.parts[i]);
  }
  return out;
}

namespace {

std::optional<std::string_view> one_or_all(std::string_view ns) {
  return ns.empty() ? std::nullopt : std::optional(ns);
}

}  // namespace

api::Object CacheView::find(const api::Resource& resource, bool metadata_only,
                            const Request& request) {
  for (const auto* const part : snapshots(resource, metadata_only, request.ns)) {
    api::Object found = part->get(request.ns, request.name);
    if (found) return found;
  }
  return {};
}

std::vector<api::Object> CacheView::list(const api::Resource& resource, bool metadata_only,
                                         std::string_view ns,
                                         const api::labels::Selector& selector) {
  std::vector<api::Object> out;
  for (const auto* const part : snapshots(resource, metadata_only, one_or_all(ns))) {
    auto found = lister::detail::candidates(*part, selector, ns);
    out.reserve(out.size() + found.objects.size());
    for (const api::Object& object : found.objects) {
      if ((ns.empty() || object.ns() == ns) && selector.matches(object)) out.push_back(object);
    }
  }
  return out;
}

std::vector<api::Object> CacheView::by_index(const api::Resource& resource, std::string_view index,
                                             std::string_view value, std::string_view ns) {
  std::vector<api::Object> out;
  for (const auto* const part : snapshots(resource, false, one_or_all(ns))) {
    const auto found = part->by_index(index, value);
    out.reserve(out.size() + found.size());
    for (const api::Object& object : found) {
      if (ns.empty() || object.ns() == ns) out.push_back(object);
    }
  }
  return out;
}

// -------------------------------------------------------------------------------------- cache

Cache::Cache(rest::Client client, CacheOptions options)
    : core_(std::make_shared<detail::CacheCore>(std::move(client), std::move(options))) {
  core_->begin();
}
Cache::~Cache() = default;

void Cache::declare(const api::Resource& resource, bool metadata_only, KindOptions options) {
  core_->declare(resource, metadata_only, std::move(options));
}
void Cache::add_index(const api::Resource& resource, std::string name, cache::IndexFunc function) {
  core_->add_index(resource, std::move(name), std::move(function));
}
bool Cache::undeclare(const api::Resource& resource, bool metadata_only) {
  return core_->undeclare(resource, metadata_only);
}
CacheView Cache::view() const { return CacheView(core_); }
std::vector<std::string> Cache::unsynced() const { return core_->unsynced(); }
std::optional<std::string> Cache::check(std::chrono::milliseconds within) const {
  return core_->check(within);
}
void Cache::collect(std::vector<metrics::Sample>& out) const { core_->collect(out); }

}  // namespace lookout::controller
