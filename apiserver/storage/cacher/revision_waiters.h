// RevisionWaiters: coroutines that wait for a revision.
#pragma once

#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>

#include "lookout/apiserver/storage/error.h"
#include "lookout/base/async_event.h"

namespace lookout::apiserver::storage::cacher {

/// Coroutines that wait, on their own executors, until a counter reaches a value. Thread-safe.
class RevisionWaiters {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `current` reads the counter.
  explicit RevisionWaiters(std::function<Revision()> current) : current_(std::move(current)) {}

  /// Whether the counter reaches `revision` before `until`.
  Awaitable<bool> reached(Revision revision, TimePoint until) {
    if (current_() >= revision) co_return true;
    const Waiting waiting(*this, revision, co_await boost::asio::this_coro::executor);
    while (current_() < revision && !closed()) {
      if (std::chrono::steady_clock::now() >= until) co_return false;
      AsyncEvent bell = waiting.bell();
      co_await bell.wait(until);
    }
    co_return current_() >= revision;
  }

  /// The counter has changed.
  void notify() {
    const Revision current = current_();
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.revision <= current) entry.bell.ring();
    }
  }

  /// Ends all waits.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const Entry& entry : entries_) entry.bell.ring();
  }

 private:
  struct Entry {
    Revision revision;
    AsyncEvent bell;
  };

  class Waiting {
   public:
    Waiting(RevisionWaiters& all, Revision revision, boost::asio::any_io_executor executor)
        : all_(all) {
      const std::lock_guard lock(all_.mutex_);
      at_ = all_.entries_.insert(all_.entries_.end(), {revision, AsyncEvent(std::move(executor))});
    }
    ~Waiting() {
      const std::lock_guard lock(all_.mutex_);
      all_.entries_.erase(at_);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    const AsyncEvent& bell() const { return at_->bell; }

   private:
    RevisionWaiters& all_;
    std::list<Entry>::iterator at_;
  };

  bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

  const std::function<Revision()> current_;
  std::mutex mutex_;
  std::list<Entry> entries_;
  bool closed_ = false;
};

}  // namespace lookout::apiserver::storage::cacher
