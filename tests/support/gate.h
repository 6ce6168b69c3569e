// Waiting for another thread, without sleeping.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace lookout::test {

/// Shut at first; opened once, by anybody.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }

  /// Waits until it is open; false if that takes longer than any test should.
  [[nodiscard]] bool wait(std::chrono::milliseconds time = std::chrono::seconds(60)) {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, time, [this] { return open_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace lookout::test
