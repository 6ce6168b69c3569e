// DeletionQueue: completes deletions.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lookout/base/async_event.h"

namespace lookout::apiserver::controllers {

/// A queue of objects that are being deleted, for several workers. Unfinished objects are requeued at
/// the end after a delay. Used on one executor.
class DeletionQueue {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DeletionQueue(Clock::duration retry) : retry_(retry) {}

  void add(const std::string& name) {
    if (!deleting_.insert(name).second || active_.contains(name)) return;
    waiting_.push_front({Clock::time_point::min(), name});
    ring();
  }
  /// The object was deleted, or is not being deleted.
  void remove(const std::string& name) { deleting_.erase(name); }
  void clear() { deleting_.clear(); }

  /// A worker. Its next step or its end returns the taken object to the queue.
  class Worker {
   public:
    Worker(DeletionQueue& queue, boost::asio::any_io_executor executor)
        : queue_(queue), bell_(std::move(executor)) {
      queue_.workers_.push_back(this);
    }
    ~Worker() {
      give_back();
      std::erase(queue_.workers_, this);
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Waits for the next name.
    Awaitable<std::string> take() {
      give_back();
      for (;;) {
        taken_ = queue_.take();
        if (taken_) co_return *taken_;
        co_await bell_.wait(queue_.next());
      }
    }

   private:
    friend class DeletionQueue;
    void give_back() {
      if (taken_) queue_.give_back(*std::exchange(taken_, std::nullopt));
    }

    DeletionQueue& queue_;
    AsyncEvent bell_;
    std::optional<std::string> taken_;
  };

 private:
  struct Waiting {
    Clock::time_point until;
    std::string name;
  };

  Clock::time_point next() const {
    return waiting_.empty() ? Clock::time_point::max() : waiting_.front().until;
  }
  std::optional<std::string> take() {
    while (!waiting_.empty() && waiting_.front().until <= Clock::now()) {
      std::string name = std::move(waiting_.front().name);
      waiting_.pop_front();
      // A recreated object may have two entries.
      if (deleting_.contains(name) && active_.insert(name).second) return name;
    }
    return std::nullopt;
  }
  void give_back(const std::string& name) {
    active_.erase(name);
    if (!deleting_.contains(name)) return;
    waiting_.push_back({Clock::now() + retry_, name});
    ring();
  }
  void ring() {
    for (Worker* worker : workers_) worker->bell_.ring_here();
  }

  const Clock::duration retry_;
  std::set<std::string> deleting_;
  std::set<std::string> active_;
  std::deque<Waiting> waiting_;
  std::vector<Worker*> workers_;
};

}  // namespace lookout::apiserver::controllers
