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

  Scope default_scope() const {
    return {options_.ns, options_.label_selector, options_.field_selector, options_.projection,
            options_.metadata_only};
  }

  std::shared_ptr<SharedIndexInformer> get(const api::Resource& resource, Scope scope) {
    if (!resource.namespaced) scope.ns.clear();
    const std::lock_guard lock(mutex_);
    if (shut_down_) throw InvalidArgument("the informer factory has been shut down");
    for (const auto& entry : entries_) {
      if (entry.resource == resource && entry.scope == scope) return entry.informer;
    }
    entries_.push_back({resource, scope, make(resource, scope)});
    return entries_.back().informer;
  }

  std::vector<std::shared_ptr<SharedIndexInformer>> informers() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<SharedIndexInformer>> out;
    out.reserve(entries_.size());
    for (const auto& entry : entries_) out.push_back(entry.informer);
    return out;
  }

  void start() {
    const std::lock_guard lock(mutex_);
    if (shut_down_) return;
    for (const auto& entry : entries_) entry.informer->start();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      shut_down_ = true;
    }
    for (const auto& informer : informers()) informer->stop();
  }

  void shutdown() {
    stop();
    for (const auto& informer : informers()) informer->shutdown();
  }

  void end() {
    if (client_.loop().running_in_this_thread()) {
      stop();
    } else {
      shutdown();
    }
  }

 private:
  struct Entry {
    api::Resource resource;
    Scope scope;
    std::shared_ptr<SharedIndexInformer> informer;
  };

  /// Tells the informer from all others. Under the mutex.
  std::string name_of(const api::Resource& resource, const Scope& scope) const {
    std::string name = resource.qualified_name();
    if (!scope.ns.empty()) name += " in " + scope.ns;
    if (scope.metadata_only) name += ", metadata";
    if (!scope.label_selector.empty()) name += ", " + scope.label_selector;
    if (!scope.field_selector.empty()) name += ", " + scope.field_selector;
    const auto taken = [this](const std::string& candidate) {
      return std::any_of(entries_.begin(), entries_.end(),
                         [&](const Entry& entry) { return entry.informer->name() == candidate; });
    };
    // Scopes may differ in what is not part of the name: projections, versions.
    std::string unique = name;
    for (int n = 2; taken(unique); ++n) unique = fmt::format("{}, {}", name, n);
    return unique;
  }

  std::shared_ptr<SharedIndexInformer> make(const api::Resource& resource,
                                            const Scope& scope) const {
    cache::ListWatchOptions list_watch;
    list_watch.label_selector = scope.label_selector;
    list_watch.field_selector = scope.field_selector;
    list_watch.decode.projection = scope.projection;
    list_watch.decode.metadata_only = scope.metadata_only;
    list_watch.decode.content_type = options_.content_type;
    if (scope.metadata_only && scope.projection.keeps_everything())
      list_watch.decode.projection = api::Projection::keep({"metadata"});
    list_watch.tweak = options_.tweak_list_options;

    InformerOptions informer;
    informer.reflector.name = name_of(resource, scope);
    informer.resource = {resource.group, resource.version, resource.plural};
    if (scope.metadata_only) {
      // A server that cannot leave things out sends the objects themselves.
      informer.reflector.type_description = resource.qualified_name() + ", metadata";
    } else {
      informer.reflector.expected_api_version = resource.api_version();
      informer.reflector.expected_kind = resource.kind;
    }
    informer.reflector.use_watch_list = options_.use_watch_list;
    informer.reflector.resync_period = resync_period(resource);
    informer.reflector.backoff = options_.backoff;
    informer.reflector.watch_error_handler = options_.watch_error_handler;
    informer.reflector.clock = options_.clock;
    informer.transform = options_.transform;

    auto source = std::make_shared<cache::ListWatch>(client_.resource(resource, scope.ns),
                                                     std::move(list_watch));
    return std::make_shared<SharedIndexInformer>(std::move(source), std::move(informer),
                                                 client_.shared_loop(), pool_);
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
  std::vector<Entry> entries_;  // guarded by mutex_
  bool shut_down_ = false;      // guarded by mutex_
};

SharedInformerFactory::SharedInformerFactory(rest::Client client, FactoryOptions options)
    : impl_(std::make_unique<Impl>(std::move(client), std::move(options))) {}
SharedInformerFactory::~SharedInformerFactory() { impl_->end(); }

std::shared_ptr<SharedIndexInformer> SharedInformerFactory::for_resource(
    const api::Resource& resource) {
  return impl_->get(resource, impl_->default_scope());
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

void SharedInformerFactory::start() { impl_->start(); }

SyncResult SharedInformerFactory::wait_for_cache_sync(std::stop_token stop) {
  SyncResult result;
  // All at once in effect: whoever is waited for later has synced meanwhile or not.
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
