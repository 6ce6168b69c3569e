#include "registry/watcher_core.h"

#include <utility>

#include "lookout/base/enum_names.h"

namespace lookout::registry {

const char* to_string(NextOutcome outcome) {
  static constexpr auto kNames =
      base::enum_names<NextOutcome>({{NextOutcome::kInstances, "instances"},
                                     {NextOutcome::kTimedOut, "timed out"},
                                     {NextOutcome::kCancelled, "cancelled"},
                                     {NextOutcome::kStopped, "stopped"},
                                     {NextOutcome::kClosed, "closed"}});
  return kNames.name_of(outcome, "?").data();
}

namespace detail {

void WatcherCore::ring() {
  std::unique_lock lock(mutex_);
  if (end_) return;
  rung_ = true;
  changed(std::move(lock));
}

void WatcherCore::end(NextOutcome reason) {
  // Destroyed after the lock: these may be the last references.
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
  if (set->version() == 0) return std::nullopt;
  const bool news = !last_ || !set->same_instances(*last_);
  // Even if nothing has changed, keep the newer set.
  last_ = set;
  if (!news) return std::nullopt;
  return NextResult(std::move(set));
}

}  // namespace detail
}  // namespace lookout::registry
