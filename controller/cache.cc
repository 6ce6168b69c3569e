#include "lookout/controller/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

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

/// Sets the options that `to` does not set.
void inherit(NamespaceOptions& to, const auto& from, bool projection = true) {
  const auto unset = [](auto& member, const auto& value) {
    if (!member) member = value;
  };
  unset(to.label_selector, from.label_selector);
  unset(to.field_selector, from.field_selector);
  if (projection) unset(to.projection, from.projection);
}

/// The options of a namespace, from those of its kind.
NamespaceOptions given_for(const KindOptions& options, const std::string& ns) {
  NamespaceOptions out;
  if (const auto single = options.by_namespace.find(ns); single != options.by_namespace.end())
    out = single->second;
  inherit(out, options);
  return out;
}

/// The field selector, without the objects of these namespaces.
std::string without(std::string selector, const std::vector<std::string>& namespaces) {
  for (const std::string& ns : namespaces) {
    if (ns.empty()) continue;
    if (!selector.empty()) selector += ',';
    selector += "metadata.namespace!=" + api::fields::escape_value(ns);
  }
  return selector;
}

/// An empty list means all namespaces.
bool watches_all_of(const CachedKind& kind, const std::vector<std::string>& namespaces) {
  if (namespaces.empty()) return kind.parts.front().ns.empty();
  return std::all_of(namespaces.begin(), namespaces.end(),
                     [&](const std::string& ns) { return kind.part_for(ns) != nullptr; });
}

/// True if the set options are those with which the kind is cached.
bool agrees(const CachedKind& kind, const KindOptions& options) {
  const auto same = [](const auto& given, const auto& has) { return !given || given == has; };
  for (const auto& [ns, single] : options.by_namespace) {
    const auto* const part = kind.part_for(ns);
    if (part == nullptr || part->ns != ns) return false;
  }
  for (const auto& part : kind.parts) {
    const NamespaceOptions given = given_for(options, part.ns);
    if (!same(given.label_selector, part.scope.label_selector) ||
        !same(given.field_selector, part.field_selector) ||
        !same(given.projection, part.scope.projection))
      return false;
  }
  return !options.namespaces || watches_all_of(kind, *options.namespaces);
}

}  // namespace

bool CachedKind::forbidden(const Part& part) {
  if (part.informer->has_synced()) return false;
  const auto failure = part.informer->last_failure();
  // (401 concerns all namespaces: the caches are not complete.)
  return failure && failure->status == 403;
}

const CachedKind::Part* CachedKind::part_for(std::string_view ns) const {
  for (const Part& part : parts) {
    if (part.ns == ns) return &part;
  }
  return parts.front().ns.empty() ? &parts.front() : nullptr;
}

bool CachedKind::complete_in(std::string_view ns) const {
  const Part* const part = part_for(ns);
  const auto& projection = (part != nullptr ? *part : parts.front()).scope.projection;
  return !metadata_only && (!projection || projection->keeps_everything());
}

CacheCore::CacheCore(rest::Client client, CacheOptions options, std::string cluster)
    : client_(std::move(client)),
      options_(std::move(options)),
      cluster_(std::move(cluster)),
      barrier_(std::make_shared<WriteBarrier>(client_.shared_loop(),
                                              options_.clock ? options_.clock : Clock::real())),
      factory_(client_, factory_options(options_)) {}

std::vector<std::string> CacheCore::namespaces_of(const CachedKind& kind,
                                                  const KindOptions& options) const {
  const bool own = options.namespaces || !options.by_namespace.empty();
  if (!kind.resource.namespaced) {
    if (own) {
      throw InvalidArgument(fmt::format(
          "cache of {}: cluster-scoped objects cannot be watched by namespace", kind.name()));
    }
    return {""};
  }
  const std::vector<std::string> given =
      own ? options.namespaces.value_or(std::vector<std::string>()) : options_.namespaces;
  std::set<std::string> out(given.begin(), given.end());
  if (out.size() > 1 && out.contains("")) {
    throw InvalidArgument(fmt::format(
        "cache of {}: an empty namespace means all namespaces and cannot be combined with others",
        kind.name()));
  }
  for (const auto& [ns, single] : own ? options.by_namespace : options_.by_namespace)
    out.insert(ns);
  const bool all = options.namespaces && options.namespaces->empty();
  if (all || out.empty()) out.insert("");
  return {out.begin(), out.end()};
}

NamespaceOptions CacheCore::resolve(const CachedKind& kind, const KindOptions& options,
                                    const std::string& ns) const {
  NamespaceOptions out = given_for(options, ns);
  const auto single = options_.by_namespace.find(ns);
  if (kind.resource.namespaced && single != options_.by_namespace.end())
    inherit(out, single->second, !kind.metadata_only);
  inherit(out, options_, !kind.metadata_only);
  return out;
}

std::shared_ptr<CachedKind> CacheCore::make(const api::Resource& resource, bool metadata_only,
                                            const KindOptions& options) {
  auto kind = std::make_shared<CachedKind>();
  kind->resource = resource;
  kind->metadata_only = metadata_only;
  kind->cluster = cluster_;
  const std::vector<std::string> namespaces = namespaces_of(*kind, options);
  kind->parts.reserve(namespaces.size());
  for (const std::string& ns : namespaces) {
    const NamespaceOptions resolved = resolve(*kind, options, ns);
    CachedKind::Part part;
    part.ns = ns;
    part.field_selector = *resolved.field_selector;
    part.scope.label_selector = resolved.label_selector;
    part.scope.field_selector =
        ns.empty() ? without(part.field_selector, namespaces) : part.field_selector;
    part.scope.projection = resolved.projection;
    part.scope.metadata_only = metadata_only;
    part.labels = api::labels::parse(*part.scope.label_selector);
    part.fields = api::fields::parse(*part.scope.field_selector);
    part.listed = ns.empty() && resource.namespaced ? only_namespace(part.fields) : ns;
    part.scope.ns = part.listed;
    part.informer = factory_.for_resource(resource, part.scope);
    part.synced = std::make_shared<std::stop_source>();
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
      if (!agrees(*each, *options)) {
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

void CacheCore::add_index(const api::Resource& resource, bool metadata_only,
                          const std::string& name, const cache::IndexFunc& function) {
  if (!function) {
    throw InvalidArgument(
        fmt::format("{}: the function of the index \"{}\" is empty", resource.plural, name));
  }
  const auto kind = declare(resource, metadata_only, std::nullopt);
  // A reader that sees the index needs its function, so note the function first.
  const bool noted = note_index(*kind, name, function);
  try {
    for (const auto& part : kind->parts) part.informer->add_indexers({{name, function}});
  } catch (...) {
    if (noted) forget_index(*kind, name);
    throw;
  }
}

bool CacheCore::note_index(const CachedKind& kind, const std::string& name,
                           const cache::IndexFunc& function) {
  const std::lock_guard lock(mutex_);
  for (const auto& each : kinds_) {
    if (each.get() != &kind) continue;
    cache::Indexers indexers = each->indexers ? *each->indexers : cache::Indexers();
    if (!indexers.emplace(name, function).second) return false;
    each->indexers = std::make_shared<const cache::Indexers>(std::move(indexers));
    return true;
  }
  return false;
}

void CacheCore::forget_index(const CachedKind& kind, const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (const auto& each : kinds_) {
    if (each.get() != &kind || !each->indexers) continue;
    cache::Indexers indexers = *each->indexers;
    indexers.erase(name);
    each->indexers = std::make_shared<const cache::Indexers>(std::move(indexers));
  }
}

std::shared_ptr<const cache::Indexers> CacheCore::indexers_of(const CachedKind& kind) const {
  const std::lock_guard lock(mutex_);
  return kind.indexers;
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
        fmt::format("{}{} are not cached{}; declare them with the builder's owns() or watches() or "
                    "with Cache::declare(), or read them with Context::uncached()",
                    resource.qualified_name(),
                    cluster_.empty() ? std::string() : " of cluster " + cluster_, other));
  }
  if (!kind) kind = declare(resource, metadata_only, std::nullopt);
  return kind;
}

void CacheCore::wait_for(const CachedKind& kind, const CachedKind::Part& part,
                         const std::stop_token& stop) const {
  if (!expected_ && !part.informer->has_synced()) {
    throw NotCachedError(
        fmt::format("the cache of {}{} has no complete list yet: it is read before Manager::run(), "
                    "which fills it",
                    part.informer->name(), kind.of_cluster()));
  }
  const auto clock = this->clock();
  const auto end = end_of(sync_limit(options_.sync_timeout), clock->now());
  while (!part.informer->has_synced()) {
    const auto now = clock->now();
    const bool hopeless =
        now >= end || stop.stop_requested() || part.informer->stopped() || kind.refused(part);
    if (hopeless || client_.loop().running_in_this_thread()) {
      throw NotCachedError(fmt::format("the cache of {}{} has no complete list yet{}",
                                       part.informer->name(), kind.of_cluster(),
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
        log::warn("the cache of {}{} continues without this namespace{}", part.informer->name(),
                  kind->of_cluster(), reason(kind->resource, *part.informer));
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
      out.push_back(part.informer->name() + kind->of_cluster() +
                    reason(kind->resource, *part.informer));
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
      stale.push_back(fmt::format("{}{}: last contact {} s ago{}", part.informer->name(),
                                  kind->of_cluster(), silence.count(),
                                  reason(kind->resource, *part.informer)));
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
  // The keys of objects that may exist although the snapshots lack them. (Usually there are none.)
  std::vector<std::shared_ptr<const std::unordered_set<std::string>>> unreadable;

  explicit Pinned(std::shared_ptr<const detail::CachedKind> of) : kind(std::move(of)) {
    synced.reserve(kind->parts.size());
    for (const auto& part : kind->parts) synced.push_back(part.informer->has_synced());
    parts.reserve(kind->parts.size());
    for (std::size_t i = 0; i < kind->parts.size(); ++i) {
      note_unreadable(i);
      parts.push_back(kind->parts[i].informer->store().snapshot());
    }
  }

  /// Before the snapshot of the part.
  void note_unreadable(std::size_t part) {
    auto keys = kind->parts[part].informer->unreadable_keys();
    if (!keys && unreadable.empty()) return;
    unreadable.resize(kind->parts.size());
    unreadable[part] = std::move(keys);
  }

  /// Throws NotCachedError if an object that is not in the snapshots may exist.
  void require_readable(const Request& request) const {
    const auto* const part = kind->part_for(request.ns);
    if (part == nullptr || unreadable.empty()) return;
    const auto& keys = unreadable[static_cast<std::size_t>(part - kind->parts.data())];
    if (!keys) return;
    if (keys->contains(request.key())) {
      throw NotCachedError(fmt::format("{}: {} cannot be read, so the cache does not have it",
                                       kind->name(), request.key()));
    }
    if (keys->contains("")) {
      throw NotCachedError(
          fmt::format("{}: an object cannot be read, not even its name; it may be {}", kind->name(),
                      request.key()));
    }
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
      pin.note_unreadable(i);
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
  pinned(resource, metadata_only).require_readable(request);
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

namespace {

/// The objects of the value that has the fewest. Throws InvalidArgument if an index does not exist.
cache::ObjectRange fewest(const cache::Snapshot& part, const MatchingFields& fields) {
  std::optional<cache::ObjectRange> out;
  for (const auto& [index, value] : fields) {
    auto found = part.by_index(index, value);
    if (!out || found.size() < out->size()) out = std::move(found);
  }
  return std::move(*out);
}

/// True if an index has this value for the object. As in a store, a function that throws has none.
bool has_value(const api::Object& object, const cache::IndexFunc& function, std::string_view value,
               cache::IndexValues& values) {
  values.clear();
  try {
    function(object, values);
  } catch (...) {
    return false;
  }
  const auto all = values.values();
  return std::find(all.begin(), all.end(), value) != all.end();
}

/// The functions of the indexes of these fields, and the values.
using Conditions = std::vector<std::pair<cache::IndexFunc, std::string_view>>;
Conditions conditions_of(const MatchingFields& fields, const cache::Indexers* indexers) {
  Conditions out;
  if (fields.size() < 2) return out;
  for (const auto& [index, value] : fields) {
    if (index == cache::kNamespaceIndex) {
      out.emplace_back(cache::index_by_namespace, value);
    } else if (indexers != nullptr) {
      const auto found = indexers->find(index);
      if (found != indexers->end()) out.emplace_back(found->second, value);
    }
  }
  return out;
}

}  // namespace

std::vector<api::Object> CacheView::matching_fields(const api::Resource& resource,
                                                    bool metadata_only,
                                                    const MatchingFields& fields,
                                                    std::string_view ns,
                                                    const api::labels::Selector& selector) {
  if (fields.empty()) return list(resource, metadata_only, ns, selector);
  const auto parts = snapshots(resource, metadata_only, one_or_all(ns));
  const auto indexers = core_->indexers_of(*pinned(resource, metadata_only).kind);
  const Conditions conditions = conditions_of(fields, indexers.get());
  cache::IndexValues values;
  std::vector<api::Object> out;
  for (const auto* const part : parts) {
    for (const api::Object& object : fewest(*part, fields)) {
      if ((!ns.empty() && object.ns() != ns) || !selector.matches(object)) continue;
      const bool all =
          std::all_of(conditions.begin(), conditions.end(), [&](const auto& condition) {
            return has_value(object, condition.first, condition.second, values);
          });
      if (all) out.push_back(object);
    }
  }
  return out;
}

// -------------------------------------------------------------------------------------- cache

Cache::Cache(rest::Client client, CacheOptions options, std::string cluster)
    : core_(std::make_shared<detail::CacheCore>(std::move(client), std::move(options),
                                                std::move(cluster))) {
  core_->begin();
}
Cache::~Cache() = default;

void Cache::declare(const api::Resource& resource, bool metadata_only, KindOptions options) {
  core_->declare(resource, metadata_only, std::move(options));
}
void Cache::add_index(const api::Resource& resource, std::string name, cache::IndexFunc function) {
  core_->add_index(resource, false, name, function);
}
void Cache::add_index(const api::Resource& resource, bool metadata_only, std::string name,
                      cache::IndexFunc function) {
  core_->add_index(resource, metadata_only, name, function);
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
