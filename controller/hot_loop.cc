#include "controller/hot_loop.h"

#include <algorithm>
#include <chrono>

namespace lookout::controller::detail {
namespace {

constexpr std::chrono::seconds kWindow{1};
/// So long after the last one a hot loop counts as a new one.
constexpr std::chrono::minutes kQuiet{1};

}  // namespace

bool HotLoopDetector::note(const Request& request, std::optional<std::int64_t> generation,
                           Clock::TimePoint now) {
  const std::size_t hash = std::hash<Request>()(request);
  const std::lock_guard lock(mutex_);
  if (counts_.size() >= prune_at_) prune(now);
  Count& count = counts_[hash];
  if (count.runs == 0 || now - count.window >= kWindow || count.generation != generation) {
    if (count.said && now - count.window >= kQuiet) count.said = false;
    count.window = now;
    count.generation = generation;
    count.runs = 0;
  }
  ++count.runs;
  if (count.runs < limit_ || count.said) return false;
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
