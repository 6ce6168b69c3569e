#include "informer/listener.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace lookout::informer::detail {

using cache::Notification;

Listener::Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool)
    : handler_(std::move(handler)), pool_(std::move(pool)) {}

template <class Fill>
void Listener::enqueue(std::size_t count, Fill fill) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    waiting_.fetch_add(count, std::memory_order_relaxed);
    fill(queue_);
    if (queue_.empty() || scheduled_) return;
    scheduled_ = true;
  }
  pool_->post([self = shared_from_this()] { self->drain(); });
}

void Listener::push(const std::vector<Notification>& notifications) {
  enqueue(notifications.size(), [&](std::vector<Item>& queue) {
    for (const auto& notification : notifications)
      queue.push_back({Item::Kind::kNotification, notification, {}});
  });
}

void Listener::push_all(cache::Snapshot snapshot) {
  enqueue(snapshot.size(), [&](std::vector<Item>& queue) {
    queue.push_back({Item::Kind::kSnapshot, {}, std::move(snapshot)});
  });
}

void Listener::push_synced() {
  enqueue(0, [](std::vector<Item>& queue) { queue.push_back({Item::Kind::kSynced, {}, {}}); });
}

void Listener::drain() {
  // The memory of one batch serves the queue after the next, unless a backlog made it large.
  constexpr std::size_t kKept = 1024;
  std::vector<Item> batch;
  for (;;) {
    batch.clear();
    if (batch.capacity() > kKept) std::vector<Item>().swap(batch);
    {
      const std::lock_guard lock(mutex_);
      running_ = {};
      if (queue_.empty() || closed_) {
        scheduled_ = false;
        changed_.notify_all();
        return;
      }
      std::swap(batch, queue_);
      running_ = std::this_thread::get_id();
    }
    for (const Item& item : batch) {
      if (closed_.load(std::memory_order_relaxed)) break;
      deliver(item);
    }
  }
}

void Listener::deliver(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kNotification:
      deliver(item.notification);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      break;
    case Item::Kind::kSnapshot:
      for (const auto& object : item.snapshot) {
        if (closed_.load(std::memory_order_relaxed)) break;
        Notification addition;
        addition.object = object;
        addition.initial = true;
        deliver(addition);
        waiting_.fetch_sub(1, std::memory_order_relaxed);
      }
      break;
    case Item::Kind::kSynced: {
      if (handler_.on_synced) guarded("on_synced", [&] { handler_.on_synced(); });
      const std::lock_guard lock(mutex_);
      synced_.store(true, std::memory_order_release);
      changed_.notify_all();
      break;
    }
  }
}

template <class Call>
void Listener::guarded(const char* what, Call call) {
  try {
    call();
  } catch (const std::exception& e) {
    exceptions_.fetch_add(1, std::memory_order_relaxed);
    spdlog::error("handler {}: {} threw: {}", handler_.name, what, e.what());
  } catch (...) {
    exceptions_.fetch_add(1, std::memory_order_relaxed);
    spdlog::error("handler {}: {} threw something that is no std::exception", handler_.name, what);
  }
}

void Listener::deliver(const Notification& notification) {
  const auto passes = [&](const api::Object& object) {
    bool result = true;
    if (handler_.filter) {
      result = false;
      guarded("filter", [&] { result = handler_.filter(object); });
    }
    return result;
  };
  const auto add = [&](bool initial) {
    if (handler_.on_add) guarded("on_add", [&] { handler_.on_add(notification.object, initial); });
  };
  const auto remove = [&](const api::Object& last, bool unknown) {
    if (handler_.on_delete) guarded("on_delete", [&] { handler_.on_delete(last, unknown); });
  };
  switch (notification.type) {
    case Notification::Type::kAdd:
      if (passes(notification.object)) add(notification.initial);
      break;
    case Notification::Type::kUpdate: {
      const bool before = passes(notification.before);
      const bool after = passes(notification.object);
      if (before && after) {
        if (handler_.on_update) {
          guarded("on_update",
                  [&] { handler_.on_update(notification.before, notification.object); });
        }
      } else if (after) {
        add(false);
      } else if (before) {
        remove(notification.before, false);
      }
      break;
    }
    case Notification::Type::kDelete:
      // What the handler has been told of is the object as it was before: so each addition has its
      // deletion, whatever the last state looks like.
      if (passes(notification.before))
        remove(notification.object, notification.final_state_unknown);
      break;
  }
}

void Listener::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  queue_.clear();
  changed_.notify_all();
}

void Listener::wait_closed() {
  std::unique_lock lock(mutex_);
  if (running_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return running_ == std::thread::id{}; });
}

bool Listener::wait_for_sync(std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return synced_ || closed_; });
  return synced_;
}

}  // namespace lookout::informer::detail
