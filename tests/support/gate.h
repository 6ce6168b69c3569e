// Waiting for another thread, without sleeping.
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace lookout::test {

/// Initially shut; opened once, by any thread.
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

  /// Waits until the gate opens; false after `time`.
  [[nodiscard]] bool wait(std::chrono::milliseconds time = std::chrono::seconds(60)) {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, time, [this] { return open_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

/// Runs `f` on a new thread. Returns its future once that thread runs, which may take long on a
/// busy machine. (A test that expects nothing to happen for a moment must not start that moment
/// earlier.)
template <class F>
auto start(F f) {
  const auto begun = std::make_shared<Gate>();
  auto result = std::async(std::launch::async, [begun, f = std::move(f)]() mutable {
    begun->open();
    return f();
  });
  if (!begun->wait()) throw std::runtime_error("the thread does not run");
  return result;
}

}  // namespace lookout::test
