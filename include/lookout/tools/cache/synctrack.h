// Knowing when what came first has been dealt with.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_set>
#include <utility>

namespace lookout::cache {

/// Says when all that a handler was told at first has been dealt with, by whomever: for handlers
/// that only put keys into a work queue (client-go's synctrack.AsyncTracker). The handler starts a
/// key when it is told of an initial addition, the worker finishes it.
///
///     .on_add = [&](const auto& p, bool initial) { if (initial) tracker.start(p.key()); ... },
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
  /// Of no effect for a key that has not been started.
  void finished(const T& key) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(key);
    look();
  }
  /// Nothing more will be started that came first.
  void upstream_has_synced() {
    const std::lock_guard lock(mutex_);
    upstream_ = true;
    look();
  }

  /// Once true it stays so.
  bool has_synced() const {
    const std::lock_guard lock(mutex_);
    return synced_;
  }
  /// False if a stop was requested before.
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

/// A value that is worked out when it is asked for, and again after it has been said that something
/// changed (client-go's synctrack.Lazy). Whoever asks after a notify() gets what was worked out
/// after it; those who ask meanwhile share the work. Safe to use from any thread.
template <class T>
class Lazy {
 public:
  explicit Lazy(std::function<T()> evaluate) : evaluate_(std::move(evaluate)) {}

  void notify() {
    const std::lock_guard lock(mutex_);
    current_ = std::make_shared<Entry>();
  }

  /// Throws what `evaluate` throws; the next call tries again.
  T get() {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex_);
      entry = current_;
    }
    const std::lock_guard lock(entry->mutex);
    if (!entry->value) entry->value = evaluate_();
    return *entry->value;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<T> value;  // guarded by mutex
  };
  const std::function<T()> evaluate_;
  std::mutex mutex_;
  std::shared_ptr<Entry> current_ = std::make_shared<Entry>();  // guarded by mutex_
};

}  // namespace lookout::cache
