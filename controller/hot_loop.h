// HotLoopDetector: detects reconcilers that trigger themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "lookout/base/clock.h"
#include "lookout/controller/request.h"

namespace lookout::controller::detail {

/// Counts how often requests are reconciled within a second. From any thread.
class HotLoopDetector {
 public:
  /// 0: detects nothing.
  explicit HotLoopDetector(unsigned limit) : limit_(limit) {}

  using Generation = std::function<std::optional<std::int64_t>()>;

  bool enabled() const { return limit_ > 0; }
  /// Counts a reconcile. Returns true if it makes the request a hot loop, once until the request has been
  /// quiet for a minute. `generation` returns the object's generation; it is called only when the request
  /// has run half as often as a hot loop, which is rare.
  bool note(const Request& request, const Generation& generation, Clock::TimePoint now);

 private:
  struct Count {
    Clock::TimePoint window{};
    std::optional<std::int64_t> generation = {};
    unsigned runs = 0;
    bool looked_at = false;  // true if the generation has been read
    bool said = false;

    void begin(Clock::TimePoint now);
  };

  void prune(Clock::TimePoint now);

  const unsigned limit_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<std::size_t, Count> counts_;  // by the hash of the request
  std::size_t prune_at_ = 1024;
};

}  // namespace lookout::controller::detail
