// Tracking of the initial objects: when all of them have been processed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_set>
#include <utility>

#include "lookout/api/error.h"

namespace lookout::cache {

/// Reports when all initial additions of a handler have been processed: for handlers that only put
/// keys into a work queue (client-go's synctrack.AsyncTracker). The handler calls start() on an
/// initial addition, and the worker calls finished().
///
///     .on_add = [&](const auto& p, informer::Origin origin) {
///       if (origin == informer::Origin::kInitialList) tracker.start(p.key());
///       ...
///     },
///     .on_synced = [&] { tracker.upstream_has_synced(); },
///
/// Safe to use from any thread.
template <class T, class Hash = std::hash<T>>
class AsyncTracker {
 public:
  void start(const T& key) {
    const std::lock_guard lock(mutex_);
    waiting_.insert(key);
  }
  /// Does nothing for a key that has not been started.
  void finished(const T& key) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(key);
    look();
  }
  /// Call when all initial keys have been started.
  void upstream_has_synced() {
    const std::lock_guard lock(mutex_);
    upstream_ = true;
    look();
  }

  /// Once true, it stays true.
  bool has_synced() const {
    const std::lock_guard lock(mutex_);
    return synced_;
  }
  /// Waits for has_synced(). Returns false if a stop was requested first.
  bool wait_for_sync(std::stop_token stop = {}) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return synced_; });
    return synced_;
  }

 private:
  void look() {  // under the mutex
    if (!upstream_ || !waiting_.empty()) return;
    synced_ = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::unordered_set<T, Hash> waiting_;
  bool upstream_ = false;
  bool synced_ = false;
};

/// A value that is computed on demand, and again after notify() (client-go's synctrack.Lazy). get()
/// after notify() returns a value computed after that notify(); concurrent callers share the
/// computation. No lock is held during it. Safe to use from any thread.
template <class T>
class Lazy {
 public:
  explicit Lazy(std::function<T()> evaluate) : evaluate_(std::move(evaluate)) {}

  void notify() {
    auto next = std::make_shared<Entry>();
    const std::lock_guard lock(mutex_);
    current_.swap(next);  // the old entry is freed after the mutex is released
  }

  /// Throws what `evaluate` throws; the next call tries again. Throws InvalidArgument if `evaluate`
  /// calls get() itself.
  T get() {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex_);
      entry = current_;
    }
    std::unique_lock lock(entry->mutex);
    if (entry->worker == std::this_thread::get_id())
      throw InvalidArgument("the evaluation of a lazy value needs that value");
    entry->changed.wait(lock, [&] { return entry->value || entry->worker == std::thread::id{}; });
    if (!entry->value) {
      entry->worker = std::this_thread::get_id();
      lock.unlock();
      // Wakes other callers, whether `evaluate` succeeds or throws.
      struct AtEnd {
        ~AtEnd() {
          const std::lock_guard end(entry.mutex);
          entry.worker = {};
          entry.value = std::move(value);
          entry.changed.notify_all();
        }
        Entry& entry;
        std::shared_ptr<const T> value = nullptr;
      } at_end{*entry};
      at_end.value = std::make_shared<const T>(evaluate_());
      return *at_end.value;
    }
    const std::shared_ptr<const T> value = entry->value;
    lock.unlock();
    return *value;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::condition_variable changed;
    // Guarded by mutex.
    std::shared_ptr<const T> value;
    std::thread::id worker;  // the thread that runs `evaluate`
  };
  const std::function<T()> evaluate_;
  std::mutex mutex_;
  std::shared_ptr<Entry> current_ = std::make_shared<Entry>();  // guarded by mutex_
};

}  // namespace lookout::cache
