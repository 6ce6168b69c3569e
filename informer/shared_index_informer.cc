#include "lookout/informer/shared_index_informer.h"

#include <utility>

#include "informer/informer_core.h"
#include "informer/listener.h"

namespace lookout::informer {

HandlerRegistration::HandlerRegistration(std::weak_ptr<detail::InformerCore> informer,
                                         std::shared_ptr<detail::Listener> listener)
    : informer_(std::move(informer)), listener_(std::move(listener)) {}

bool HandlerRegistration::has_synced() const { return listener_ && listener_->has_synced(); }
bool HandlerRegistration::wait_for_sync(std::stop_token stop) const {
  return listener_ && listener_->wait_for_sync(std::move(stop));
}
std::size_t HandlerRegistration::backlog() const { return listener_ ? listener_->backlog() : 0; }
std::uint64_t HandlerRegistration::exceptions() const {
  return listener_ ? listener_->exceptions() : 0;
}

void HandlerRegistration::remove() {
  if (!listener_) return;
  if (const auto informer = informer_.lock()) {
    informer->remove(listener_);
  } else {
    listener_->close();
    listener_->wait_closed();
  }
}

SharedIndexInformer::SharedIndexInformer(std::shared_ptr<cache::ListerWatcher> source,
                                         InformerOptions options,
                                         std::shared_ptr<rest::EventLoop> loop,
                                         std::shared_ptr<HandlerPool> pool)
    : core_(std::make_shared<detail::InformerCore>(std::move(source), std::move(options),
                                                   std::move(loop), std::move(pool))),
      store_(core_->store()) {}

SharedIndexInformer::~SharedIndexInformer() { core_->end(); }

HandlerRegistration SharedIndexInformer::add_handler(EventHandler<api::Object> handler) {
  return {core_, core_->add(std::move(handler))};
}

void SharedIndexInformer::add_indexers(cache::Indexers indexers) {
  core_->store()->add_indexers(std::move(indexers));
}

void SharedIndexInformer::start() { core_->start(); }
bool SharedIndexInformer::started() const { return core_->started(); }
void SharedIndexInformer::stop() { core_->stop(); }
bool SharedIndexInformer::stopped() const { return core_->stopped(); }
void SharedIndexInformer::shutdown() { core_->shutdown(); }
bool SharedIndexInformer::has_synced() const { return core_->has_synced(); }
bool SharedIndexInformer::wait_for_sync(std::stop_token stop) const {
  return core_->wait_for_sync(std::move(stop));
}
const cache::Indexer& SharedIndexInformer::store() const { return *store_; }
const std::shared_ptr<const cache::Indexer>& SharedIndexInformer::shared_store() const {
  return store_;
}
std::optional<Clock::TimePoint> SharedIndexInformer::live_since() const {
  return core_->reflector().live_since();
}
Clock::TimePoint SharedIndexInformer::last_activity() const {
  return core_->reflector().last_activity();
}
std::string SharedIndexInformer::last_sync_resource_version() const {
  return core_->reflector().last_sync_resource_version();
}
const cache::ReflectorStats& SharedIndexInformer::stats() const {
  return core_->reflector().stats();
}
const std::string& SharedIndexInformer::name() const { return core_->reflector().name(); }

}  // namespace lookout::informer
