#include "lookout/informer/shared_informer_factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/tools/cache/lister_watcher.h"

namespace lookout::informer {

class SharedInformerFactory::Impl {
 public:
  Impl(rest::Client client, FactoryOptions options)
      : client_(std::move(client)),
        options_(std::move(options)),
        pool_(std::make_shared<HandlerPool>(client_.shared_loop(), options_.handlers)) {}

  std::shared_ptr<SharedIndexInformer> get(const api::Resource& resource, const Scope& asked) {
    const Wanted wanted = complete(resource, asked);
    std::shared_ptr<SharedIndexInformer>
        stopped;  // destroyed without the mutex, because it may wait
    const std::lock_guard lock(mutex_);
    if (shut_down_) throw InvalidArgument("the informer factory has been shut down");
    const auto at = find(wanted);
    if (at != entries_.end()) {
      if (!at->informer->stopped()) return at->informer;
      stopped = take(at);
    }
    entries_.push_back({wanted, make(wanted), true});
    return entries_.back().informer;
  }

  std::pair<std::shared_ptr<SharedIndexInformer>, std::shared_ptr<cache::MultiNamespaceSource>>
  for_namespaces(const api::Resource& resource, std::set<std::string> namespaces,
                 const Scope& asked) {
    if (!resource.namespaced)
      throw InvalidArgument(resource.qualified_name() + " are not namespaced");
    Wanted wanted = complete(resource, asked);
    wanted.ns = "several namespaces";
    const std::lock_guard lock(mutex_);
    if (shut_down_) throw InvalidArgument("the informer factory has been shut down");
    InformerOptions informer = options(wanted);
    cache::ReflectorOptions each = informer.reflector;
    each.name = resource.qualified_name();
    // (The source may outlive the factory, so it must not refer to it.)
    auto source = std::make_shared<cache::MultiNamespaceSource>(
        [client = client_, resource, list_watch = list_watch_options(wanted)](
            const std::string& ns) -> std::shared_ptr<cache::ListerWatcher> {
          return std::make_shared<cache::ListWatch>(client.resource(resource, ns), list_watch);
        },
        resource.gvk(), std::move(each), client_.shared_loop(), std::move(namespaces));
    // Namespaces may fail; each reports it.
    informer.reflector.use_watch_list = true;
    entries_.push_back({wanted,
                        std::make_shared<SharedIndexInformer>(source, std::move(informer),
                                                              client_.shared_loop(), pool_),
                        false});
    return {entries_.back().informer, std::move(source)};
  }

  bool stop(const api::Resource& resource, const Scope& asked) {
    const Wanted wanted = complete(resource, asked);
    require_not_on_loop();
    std::shared_ptr<SharedIndexInformer> informer;
    {
      const std::lock_guard lock(mutex_);
      const auto at = find(wanted);
      if (at == entries_.end()) return false;
      informer = take(at);
    }
    informer->shutdown();
    return true;
  }

  bool stop(const std::shared_ptr<SharedIndexInformer>& informer) {
    require_not_on_loop();
    if (!forget(informer)) return false;
    informer->shutdown();
    return true;
  }

  bool forget(const std::shared_ptr<SharedIndexInformer>& informer) {
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& entry) { return entry.informer == informer; });
      if (at == entries_.end()) return false;
      take(at);
    }
    informer->stop();
    return true;
  }

  std::vector<std::shared_ptr<SharedIndexInformer>> informers() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<SharedIndexInformer>> out;
    out.reserve(entries_.size());
    for (const auto& entry : entries_) out.push_back(entry.informer);
    return out;
  }

  void start() const {
    // On the event loop, a start may call functions of the program. After a shutdown it does nothing.
    for (const auto& informer : informers()) informer->start();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      shut_down_ = true;
    }
    for (const auto& informer : all()) informer->stop();
  }

  void shutdown() {
    stop();
    for (const auto& informer : all()) informer->shutdown();
  }

  void end() {
    if (client_.loop().running_in_this_thread()) {
      stop();
    } else {
      shutdown();
    }
  }

 private:
  /// A scope with all defaults applied.
  struct Wanted {
    api::Resource resource;
    std::string ns;
    std::string label_selector;
    std::string field_selector;
    api::Projection projection;
    bool metadata_only = false;

    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  struct Entry {
    Wanted wanted;
    std::shared_ptr<SharedIndexInformer> informer;
    bool shared = true;  // false for an informer of several namespaces
  };

  void require_not_on_loop() const {
    if (client_.loop().running_in_this_thread())
      throw InvalidArgument("stop_informer() on the event loop would deadlock: call forget()");
  }

  std::vector<Entry>::iterator find(const Wanted& wanted) {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Entry& entry) { return entry.shared && entry.wanted == wanted; });
  }

  /// Removes an informer, under the mutex. shutdown() still waits for it while others hold it.
  std::shared_ptr<SharedIndexInformer> take(std::vector<Entry>::iterator entry) {
    std::erase_if(stopped_, [](const auto& one) { return one.expired(); });
    auto informer = std::move(entry->informer);
    entries_.erase(entry);
    stopped_.push_back(informer);
    return informer;
  }

  /// The current informers, and the stopped ones that still exist.
  std::vector<std::shared_ptr<SharedIndexInformer>> all() const {
    auto out = informers();
    const std::lock_guard lock(mutex_);
    for (const auto& one : stopped_) {
      if (auto informer = one.lock()) out.push_back(std::move(informer));
    }
    return out;
  }

  Wanted complete(const api::Resource& resource, const Scope& scope) const {
    Wanted out{resource,
               scope.ns.value_or(options_.ns),
               scope.label_selector.value_or(options_.label_selector),
               scope.field_selector.value_or(options_.field_selector),
               scope.projection.value_or(options_.projection),
               scope.metadata_only.value_or(options_.metadata_only)};
    if (!resource.namespaced) out.ns.clear();
    if (out.metadata_only && out.projection.keeps_everything())
      out.projection = api::Projection::keep({"metadata"});
    return out;
  }

  /// A unique name for the informer. Requires the mutex.
  std::string name_of(const Wanted& wanted) const {
    std::string name = wanted.resource.qualified_name();
    if (!wanted.ns.empty()) name += " in " + wanted.ns;
    if (wanted.metadata_only) name += ", metadata";
    if (!wanted.label_selector.empty()) name += ", " + wanted.label_selector;
    if (!wanted.field_selector.empty()) name += ", " + wanted.field_selector;
    const auto taken = [this](const std::string& candidate) {
      return std::any_of(entries_.begin(), entries_.end(),
                         [&](const Entry& entry) { return entry.informer->name() == candidate; });
    };
    // Scopes may differ in projections or versions, which are not part of the name.
    std::string unique = name;
    for (int n = 2; taken(unique); ++n) unique = fmt::format("{}, {}", name, n);
    return unique;
  }

  std::shared_ptr<SharedIndexInformer> make(const Wanted& wanted) const {
    auto source = std::make_shared<cache::ListWatch>(client_.resource(wanted.resource, wanted.ns),
                                                     list_watch_options(wanted));
    return std::make_shared<SharedIndexInformer>(std::move(source), options(wanted),
                                                 client_.shared_loop(), pool_);
  }

  cache::ListWatchOptions list_watch_options(const Wanted& wanted) const {
    cache::ListWatchOptions list_watch;
    list_watch.label_selector = wanted.label_selector;
    list_watch.field_selector = wanted.field_selector;
    list_watch.decode.projection = wanted.projection;
    list_watch.decode.metadata_only = wanted.metadata_only;
    list_watch.decode.content_type = options_.content_type;
    list_watch.tweak = options_.tweak_list_options;
    return list_watch;
  }

  InformerOptions options(const Wanted& wanted) const {
    const api::Resource& resource = wanted.resource;
    InformerOptions informer;
    informer.reflector.name = name_of(wanted);
    informer.resource = {resource.group, resource.version, resource.plural};
    if (wanted.metadata_only) {
      // A server without PartialObjectMetadata sends whole objects.
      informer.reflector.type_description = resource.qualified_name() + ", metadata";
    } else {
      informer.reflector.expected_api_version = resource.api_version();
      informer.reflector.expected_kind = resource.kind;
    }
    informer.reflector.use_watch_list = options_.use_watch_list;
    informer.reflector.newest_first_list = options_.newest_first_list;
    informer.reflector.resync_period = resync_period(resource);
    informer.reflector.backoff = options_.backoff;
    informer.reflector.watch_error_handler = options_.watch_error_handler;
    informer.reflector.clock = options_.clock;
    informer.transform = options_.transform;
    return informer;
  }

  std::chrono::milliseconds resync_period(const api::Resource& resource) const {
    for (const auto& [type, period] : options_.custom_resync) {
      if (type == resource) return period;
    }
    return options_.resync_period;
  }

  const rest::Client client_;
  const FactoryOptions options_;
  const std::shared_ptr<HandlerPool> pool_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;                               // guarded by mutex_
  std::vector<std::weak_ptr<SharedIndexInformer>> stopped_;  // guarded by mutex_
  bool shut_down_ = false;                                   // guarded by mutex_
};

SharedInformerFactory::SharedInformerFactory(rest::Client client, FactoryOptions options)
    : impl_(std::make_unique<Impl>(std::move(client), std::move(options))) {}
SharedInformerFactory::~SharedInformerFactory() { impl_->end(); }

std::pair<std::shared_ptr<SharedIndexInformer>, std::shared_ptr<cache::MultiNamespaceSource>>
SharedInformerFactory::for_namespaces(const api::Resource& resource,
                                      std::set<std::string> namespaces, const Scope& scope) {
  return impl_->for_namespaces(resource, std::move(namespaces), scope);
}

std::shared_ptr<SharedIndexInformer> SharedInformerFactory::for_resource(
    const api::Resource& resource) {
  return impl_->get(resource, {});
}
std::shared_ptr<SharedIndexInformer> SharedInformerFactory::for_resource(
    const api::Resource& resource, const Scope& scope) {
  return impl_->get(resource, scope);
}

std::shared_ptr<SharedIndexInformer> SharedInformerFactory::for_resource(
    const api::GroupVersionResource& gvr) {
  return for_resource(api::resource_for(gvr));
}
std::shared_ptr<SharedIndexInformer> SharedInformerFactory::for_resource(
    const api::GroupVersionResource& gvr, const Scope& scope) {
  return for_resource(api::resource_for(gvr), scope);
}

bool SharedInformerFactory::stop_informer(const api::Resource& resource, const Scope& scope) {
  return impl_->stop(resource, scope);
}

bool SharedInformerFactory::stop_informer(const std::shared_ptr<SharedIndexInformer>& informer) {
  return impl_->stop(informer);
}

bool SharedInformerFactory::forget(const std::shared_ptr<SharedIndexInformer>& informer) {
  return impl_->forget(informer);
}

void SharedInformerFactory::start() { impl_->start(); }

SyncResult SharedInformerFactory::wait_for_cache_sync(std::stop_token stop) {
  SyncResult result;
  // Sequential waits take no longer than a common one.
  for (const auto& informer : impl_->informers()) {
    if (informer->started()) result.synced[informer->name()] = informer->wait_for_sync(stop);
  }
  return result;
}

std::vector<std::string> SyncResult::unsynced() const {
  std::vector<std::string> out;
  for (const auto& [name, done] : synced) {
    if (!done) out.push_back(name);
  }
  return out;
}

std::string SyncResult::message() const {
  const auto missing = unsynced();
  return missing.empty() ? ""
                         : fmt::format("failed to sync all caches: {}", fmt::join(missing, ", "));
}

std::vector<std::shared_ptr<SharedIndexInformer>> SharedInformerFactory::informers() const {
  return impl_->informers();
}

std::vector<std::string> SharedInformerFactory::unsynced() const {
  std::vector<std::string> out;
  for (const auto& informer : impl_->informers()) {
    if (informer->started() && !informer->has_synced()) out.push_back(informer->name());
  }
  return out;
}

void SharedInformerFactory::shutdown() { impl_->shutdown(); }

}  // namespace lookout::informer
