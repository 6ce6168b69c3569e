#include "lookout/informer/shared_index_informer.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "informer/informer_core.h"
#include "informer/listener.h"
#include "lookout/api/error.h"
#include "lookout/informer/shared_informer.h"

namespace lookout::informer {

void detail::throw_no_informer() {
  throw InvalidArgument("the informer is empty: assign one of a factory to it first");
}

namespace {

/// Also if there is nothing to wait for at the moment: the error must not depend on luck.
void require_another_thread(const detail::Listener& listener, const char* what) {
  if (!listener.on_event_loop()) return;
  throw InvalidArgument(fmt::format(
      "{} of the handler {} on the event loop could deadlock: use detach(), or call it on another "
      "thread",
      what, listener.name()));
}

}  // namespace

HandlerRegistration::HandlerRegistration(std::weak_ptr<detail::InformerCore> informer,
                                         std::shared_ptr<detail::Listener> listener)
    : informer_(std::move(informer)), listener_(std::move(listener)), owned_(true) {}

HandlerRegistration::HandlerRegistration(HandlerRegistration&& other) noexcept
    : informer_(std::move(other.informer_)),
      listener_(std::move(other.listener_)),
      owned_(std::exchange(other.owned_, false)) {}

HandlerRegistration& HandlerRegistration::operator=(HandlerRegistration&& other) noexcept {
  // (`old` removes the previous handler.)
  HandlerRegistration old(std::move(other));
  std::swap(informer_, old.informer_);
  std::swap(listener_, old.listener_);
  std::swap(owned_, old.owned_);
  return *this;
}

HandlerRegistration::~HandlerRegistration() {
  if (!owned_) return;
  listener_->close();
  if (const auto informer = informer_.lock()) informer->forget(listener_);
  // On the event loop, waiting could deadlock with a call that waits for the loop.
  if (!listener_->on_event_loop()) listener_->wait_closed();
}

bool HandlerRegistration::has_synced() const { return listener_ && listener_->has_synced(); }
bool HandlerRegistration::wait_for_sync(std::stop_token stop) const {
  return listener_ && listener_->wait_for_sync(std::move(stop));
}
std::size_t HandlerRegistration::backlog() const { return listener_ ? listener_->backlog() : 0; }
std::uint64_t HandlerRegistration::exceptions() const {
  return listener_ ? listener_->exceptions() : 0;
}

void HandlerRegistration::release() {
  // Several threads may end the same registration.
  std::atomic_ref<bool>(owned_).store(false, std::memory_order_relaxed);
}

void HandlerRegistration::remove() {
  if (!listener_) return;
  require_another_thread(*listener_, "remove()");
  release();
  listener_->close();
  if (const auto informer = informer_.lock()) informer->forget(listener_);
  listener_->wait_closed();
}

void HandlerRegistration::detach() {
  if (!listener_) return;
  release();
  listener_->seal();
  if (const auto informer = informer_.lock()) informer->forget(listener_);
}

void HandlerRegistration::drain() {
  if (!listener_) return;
  require_another_thread(*listener_, "drain()");
  detach();
  listener_->wait_delivered();
}

std::chrono::milliseconds HandlerRegistration::resync_period() const {
  const auto informer = informer_.lock();
  return informer && listener_ ? informer->resync_period(*listener_) : std::chrono::milliseconds(0);
}

const std::string& HandlerRegistration::name() const {
  static const std::string kNone;
  return listener_ ? listener_->name() : kNone;
}

SharedIndexInformer::SharedIndexInformer(std::shared_ptr<cache::ListerWatcher> source,
                                         InformerOptions options, std::shared_ptr<EventLoop> loop,
                                         std::shared_ptr<HandlerPool> pool)
    : core_(std::make_shared<detail::InformerCore>(std::move(source), std::move(options),
                                                   std::move(loop), std::move(pool))),
      store_(core_->store()) {}

SharedIndexInformer::~SharedIndexInformer() { core_->end(); }

HandlerRegistration SharedIndexInformer::add_handler(EventHandler<api::Object> handler,
                                                     HandlerOptions options) {
  return {core_, core_->add(std::move(handler), options)};
}

void SharedIndexInformer::add_indexers(cache::Indexers indexers) {
  if (stopped()) throw InvalidArgument("the informer has been stopped: it accepts no indexes");
  core_->store()->add_indexers(std::move(indexers));
}

lister::Index<api::Object> SharedIndexInformer::add_index(std::string name,
                                                          cache::IndexFunc function) {
  cache::Indexers one;
  one.emplace(name, std::move(function));
  add_indexers(std::move(one));
  return {store_, std::move(name)};
}

void SharedIndexInformer::set_transform(cache::TransformFunc transform) {
  core_->set_transform(std::move(transform));
}
void SharedIndexInformer::set_watch_error_handler(cache::WatchErrorHandler handler) {
  core_->set_watch_error_handler(std::move(handler));
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
std::optional<cache::ReflectorFailure> SharedIndexInformer::last_failure() const {
  return core_->reflector().last_failure();
}
Clock::TimePoint SharedIndexInformer::last_activity() const {
  return core_->reflector().last_activity();
}
Clock::Duration SharedIndexInformer::staleness() const { return core_->reflector().staleness(); }
bool SharedIndexInformer::live(Clock::Duration within) const {
  // An unreadable object exists but is not in the store.
  return has_synced() && !stopped() && staleness() <= within && stats().unreadable == 0;
}
std::chrono::milliseconds SharedIndexInformer::resync_check_period() const {
  return core_->resync_check_period();
}
void SharedIndexInformer::collect(std::vector<metrics::Sample>& out) const { core_->collect(out); }
std::string SharedIndexInformer::last_sync_resource_version() const {
  return core_->store()->resource_version();
}
const cache::ReflectorStats& SharedIndexInformer::stats() const {
  return core_->reflector().stats();
}
std::shared_ptr<const std::unordered_set<std::string>> SharedIndexInformer::unreadable_keys()
    const {
  return core_->reflector().unreadable_keys();
}
const std::string& SharedIndexInformer::name() const { return core_->reflector().name(); }

}  // namespace lookout::informer
