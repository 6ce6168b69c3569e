#include "informer/informer_core.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "lookout/api/error.h"

namespace lookout::informer::detail {
namespace {

cache::Indexers with_namespace_index(cache::Indexers indexers) {
  indexers.try_emplace(std::string(cache::kNamespaceIndex), cache::index_by_namespace);
  return indexers;
}

}  // namespace

InformerCore::InformerCore(std::shared_ptr<cache::ListerWatcher> source, InformerOptions options,
                           std::shared_ptr<rest::EventLoop> loop, std::shared_ptr<HandlerPool> pool)
    : loop_(std::move(loop)),
      pool_(std::move(pool)),
      strand_(boost::asio::make_strand(loop_->context())),
      store_(std::make_shared<cache::Indexer>(with_namespace_index(std::move(options.indexers)))),
      controller_(*store_, std::move(options.transform),
                  [this](std::vector<cache::Notification> notifications) {
                    distribute(std::move(notifications));
                  }),
      reflector_(
          cache::Reflector::create(std::move(source), controller_, std::move(options.reflector))) {}

std::shared_ptr<Listener> InformerCore::add(EventHandler<api::Object> handler) {
  if (stopped()) {
    throw InvalidArgument("the informer has been stopped: it takes no more handlers");
  }
  auto listener = std::make_shared<Listener>(std::move(handler), pool_);
  // On the strand nothing can come between the snapshot and what follows it.
  boost::asio::post(strand_, [self = shared_from_this(), listener] {
    if (self->closed_) return listener->close();
    if (self->store_->size() > 0) listener->push_all(self->store_->snapshot());
    if (self->has_synced()) listener->push_synced();
    self->listeners_.push_back(listener);
  });
  return listener;
}

void InformerCore::remove(const std::shared_ptr<Listener>& listener) {
  listener->close();
  boost::asio::post(
      strand_, [self = shared_from_this(), listener] { std::erase(self->listeners_, listener); });
  listener->wait_closed();
}

void InformerCore::start() {
  if (stopped() || started_.exchange(true)) return;
  boost::asio::co_spawn(strand_, run(shared_from_this()), boost::asio::detached);
}

rest::Awaitable<void> InformerCore::run(std::shared_ptr<InformerCore> self) {
  try {
    co_await self->reflector_->run(self->stop_.get_token());
  } catch (const std::exception& e) {
    spdlog::error("{}: the reflector ended: {}", self->reflector_->name(), e.what());
  }
  const std::lock_guard lock(self->mutex_);
  self->finished_ = true;
  self->changed_.notify_all();
}

void InformerCore::distribute(std::vector<cache::Notification> notifications) {
  if (!notifications.empty()) {
    for (const auto& listener : listeners_) listener->push(notifications);
  }
  if (has_synced() || !controller_.has_synced()) return;
  for (const auto& listener : listeners_) listener->push_synced();
  const std::lock_guard lock(mutex_);
  synced_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void InformerCore::stop() {
  stop_.request_stop();
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void InformerCore::shutdown() {
  if (loop_->running_in_this_thread()) {
    throw InvalidArgument("shutdown() on the event loop would wait for itself: use stop()");
  }
  stop();
  if (started_) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_; });
  }
  // Nothing distributes any more; take the listeners over from the strand.
  std::promise<std::vector<std::shared_ptr<Listener>>> taken;
  boost::asio::post(strand_, [&] { taken.set_value(close_listeners()); });
  for (const auto& listener : taken.get_future().get()) listener->wait_closed();
}

void InformerCore::end() {
  if (!loop_->running_in_this_thread()) return shutdown();
  stop();
  boost::asio::post(strand_, [self = shared_from_this()] { self->close_listeners(); });
}

std::vector<std::shared_ptr<Listener>> InformerCore::close_listeners() {
  closed_ = true;
  for (const auto& listener : listeners_) listener->close();
  return std::exchange(listeners_, {});
}

bool InformerCore::wait_for_sync(std::stop_token stop) const {
  if (!has_synced() && !stopped() && loop_->running_in_this_thread()) {
    throw InvalidArgument("wait_for_sync() on the event loop would wait for itself");
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return synced_ || stopped(); });
  return synced_;
}

}  // namespace lookout::informer::detail
