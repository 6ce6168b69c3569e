// A port of kratos' selector, for comparison.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>
#include <utility>

namespace lookout::cmd::bench::fleet {

/// The statistics of an instance in kratos' selector/node/ewma: averages of latency and success that
/// decay in 600 ms, calls in flight, and a latency that is predicted from calls that have not ended.
class KratosNode {
 public:
  using Nanos = std::int64_t;
  /// A call in flight.
  using Call = std::list<Nanos>::iterator;

  static Nanos now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  Call begin() {
    const Nanos begun = now();
    last_pick_ = begun;
    in_flight_.fetch_add(1);
    const std::lock_guard lock(mutex_);
    return calls_.insert(calls_.end(), begun);
  }
  void end(Call call, bool ok) {
    const Nanos ended = now();
    const Nanos took = ended - *call;
    {
      const std::lock_guard lock(mutex_);
      calls_.erase(call);
    }
    in_flight_.fetch_sub(1);
    const Nanos passed = ended - stamp_.exchange(ended);
    const Nanos before = lag_.load();
    const double keep = before == 0 ? 0 : std::exp(-static_cast<double>(passed) / 600e6);
    const auto average = [keep](double old, double fresh) {
      return old * keep + fresh * (1 - keep);
    };
    lag_ = static_cast<Nanos>(average(static_cast<double>(before), static_cast<double>(took)));
    success_ =
        static_cast<std::uint64_t>(average(static_cast<double>(success_.load()), ok ? 1000 : 0));
  }
  double weight() { return static_cast<double>(success_.load()) * 1e9 / load(); }
  Nanos since_last_pick(Nanos at) const { return at - last_pick_.load(); }

 private:
  double load() {
    const auto calls = static_cast<double>(in_flight_.load());
    Nanos lag = lag_.load();
    // Without data: a penalty.
    if (lag == 0) return 100e3 * calls;
    lag = std::max(lag, predict(lag));
    return std::sqrt(static_cast<double>(lag) + 5e6) * calls;
  }
  /// If most calls in flight have taken longer than the average by now, their mean.
  Nanos predict(Nanos lag) {
    const Nanos at = now();
    const Nanos interval = std::clamp<Nanos>(lag / 5, 5'000'000, 200'000'000);
    Nanos before = predicted_at_.load();
    if (at - before > interval && predicted_at_.compare_exchange_strong(before, at)) {
      Nanos total = 0;
      std::size_t slow = 0;
      const std::lock_guard lock(mutex_);
      for (const Nanos begun : calls_) {
        if (at - begun <= lag) continue;
        ++slow;
        total += at - begun;
      }
      predicted_ = slow > calls_.size() / 2 + 1 ? total / static_cast<Nanos>(slow) : 0;
    }
    return predicted_.load();
  }

  std::mutex mutex_;
  std::list<Nanos> calls_;  // start times
  std::atomic<Nanos> lag_{0};
  std::atomic<std::uint64_t> success_{1000};  // of 1000
  std::atomic<std::int64_t> in_flight_{1};
  std::atomic<Nanos> stamp_{0};
  std::atomic<Nanos> predicted_at_{0};
  std::atomic<Nanos> predicted_{0};
  std::atomic<Nanos> last_pick_{0};
};

/// kratos' selector/p2c: picks the heavier of two random nodes; a node that was not picked for three
/// seconds is picked when it is drawn. Thread-safe.
class KratosSelector {
 public:
  /// `nodes` must not be empty and must outlive the picked node.
  template <class NodeList>
  std::size_t pick(const NodeList& nodes) {
    const std::size_t size = nodes.size();
    if (size == 1) return 0;
    std::size_t chosen = 0;
    std::size_t other = 0;
    {
      const std::lock_guard lock(mutex_);
      chosen = random_() % size;
      other = random_() % (size - 1);
    }
    if (other >= chosen) ++other;
    if (nodes[other]->weight() > nodes[chosen]->weight()) std::swap(chosen, other);
    constexpr KratosNode::Nanos kForced = 3'000'000'000;
    if (nodes[other]->since_last_pick(KratosNode::now()) > kForced) chosen = other;
    return chosen;
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace lookout::cmd::bench::fleet
