#include "controller/hot_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lookout::controller::detail {
namespace {

constexpr std::chrono::seconds kWindow{1};
/// A hot loop after this time without one is reported again.
constexpr std::chrono::minutes kQuiet{1};

}  // namespace

void HotLoopDetector::Count::begin(Clock::TimePoint now) {
  if (said && now - window >= kQuiet) said = false;
  window = now;
  looked_at = false;
  runs = 0;
}

bool HotLoopDetector::note(const Request& request, const Generation& generation,
                           Clock::TimePoint now) {
  const std::size_t hash = std::hash<Request>()(request);
  const std::lock_guard lock(mutex_);
  if (counts_.size() >= prune_at_) prune(now);
  Count& count = counts_[hash];
  if (count.runs == 0 || now - count.window >= kWindow) count.begin(now);
  ++count.runs;
  if (count.said || count.runs < std::max(1u, limit_ / 2)) return false;
  const auto found = generation();
  if (std::exchange(count.looked_at, true) && count.generation != found) {
    count.begin(now);
    ++count.runs;
    return false;
  }
  count.generation = found;
  if (count.runs < limit_) return false;
  count.said = true;
  return true;
}

void HotLoopDetector::prune(Clock::TimePoint now) {
  std::erase_if(counts_, [&](const auto& entry) {
    const auto age = now - entry.second.window;
    return entry.second.said ? age >= kQuiet : age >= kWindow;
  });
  prune_at_ = std::max<std::size_t>(1024, 2 * counts_.size());
}

}  // namespace lookout::controller::detail
