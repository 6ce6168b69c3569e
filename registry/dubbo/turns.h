// Turns: one writer at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace lookout::registry::dubbo::detail {

/// A mutex that is held during requests, so that waiting for it can be stopped.
class Turns {
 public:
  /// False if the stop comes first.
  bool take(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!free_.wait(lock, std::move(stop), [this] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }
  void give_back() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    free_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any free_;
  bool taken_ = false;  // guarded by mutex_
};

}  // namespace lookout::registry::dubbo::detail
