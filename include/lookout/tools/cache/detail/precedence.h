// Precedence: lets a slow change finish while other threads keep changing the same store.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lookout/base/pinned.h"

namespace lookout::cache::detail {

/// A change is prepared without a lock, and prepared again if another writer came first. Small
/// changes could overtake a large one for ever. So an overtaken change takes precedence: other
/// writers wait before their turn.
///
/// They wait for a limited time only, because user code of the change (index functions) may wait for
/// them. If they overtake the change nevertheless, they wait longer the next time. Thread-safe.
class Precedence : public base::Pinned {
 public:
  /// Repeats `round` until it returns true, which means that no other writer came first. Takes
  /// precedence after `patience` rounds.
  template <class Round>
  void repeat(int patience, Round round) {
    for (; patience > 0; --patience) {
      if (round()) return;
    }
    const End end{*this};
    for (std::chrono::nanoseconds time{0};;) {
      const auto begun = std::chrono::steady_clock::now();
      if (round()) return;
      time = std::max<std::chrono::nanoseconds>(
          2 * time, kRounds * (std::chrono::steady_clock::now() - begun));
      time = std::min<std::chrono::nanoseconds>(time, kLongest);
      take(time);
    }
  }

  /// Waits while another thread has precedence. Before a writer's turn.
  void respect() {
    if (!is_taken_.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(mutex_);
    const auto until = until_;
    changed_.wait_until(lock, until, [&] { return !is_taken_ || is_mine(); });
  }

 private:
  /// How many rounds as long as the last one others wait.
  static constexpr int kRounds = 4;
  static constexpr std::chrono::minutes kLongest{1};

  struct End {
    ~End() { precedence.end(); }
    Precedence& precedence;
  };

  bool is_mine() const { return is_taken_ && holder_ == std::this_thread::get_id(); }

  /// Does nothing if another thread has it.
  void take(std::chrono::nanoseconds time) {
    const std::lock_guard lock(mutex_);
    if (is_taken_ && !is_mine()) return;
    is_taken_ = true;
    holder_ = std::this_thread::get_id();
    until_ = std::chrono::steady_clock::now() + time;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (!is_mine()) return;
    is_taken_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_taken_{false};  // changed with mutex_ locked
  std::thread::id holder_;             // guarded by mutex_, as is until_
  std::chrono::steady_clock::time_point until_;
};

}  // namespace lookout::cache::detail
