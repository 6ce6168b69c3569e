#include "registry/watcher_core.h"

#include <utility>

namespace lookout::registry {

const char* to_string(NextOutcome outcome) {
  switch (outcome) {
    case NextOutcome::kInstances:
      return "instances";
    case NextOutcome::kTimedOut:
      return "timed out";
    case NextOutcome::kCancelled:
      return "cancelled";
    case NextOutcome::kStopped:
      return "stopped";
    case NextOutcome::kClosed:
      return "closed";
  }
  return "?";
}

namespace detail {

void WatcherCore::ring() {
  std::unique_lock lock(mutex_);
  if (end_) return;
  rung_ = true;
  changed(std::move(lock));
}

void WatcherCore::end(NextOutcome reason) {
  // What is let go may be the last of it: after the lock.
  InstanceSetPtr last;
  std::shared_ptr<const Published> published;
  std::unique_lock lock(mutex_);
  if (end_) return;
  end_ = reason;
  last.swap(last_);
  published.swap(published_);
  changed(std::move(lock));
}

std::optional<NextResult> WatcherCore::take_locked() {
  if (end_) return NextResult(*end_);
  if (!std::exchange(rung_, false)) return std::nullopt;
  InstanceSetPtr set = published_->load();
  const bool news = last_ ? !set->same_instances(*last_) : !set->empty();
  // Also when it says nothing new: it may be the one to keep.
  if (last_ || news) last_ = set;
  if (!news) return std::nullopt;
  return NextResult(std::move(set));
}

}  // namespace detail
}  // namespace lookout::registry
