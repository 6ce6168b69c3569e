// The state of a watcher of a service. Pending waits keep it alive.
#pragma once

#include <memory>
#include <optional>

#include "registry/atomic_ref.h"
#include "registry/wait_point.h"

namespace lookout::registry::detail {

/// Where the newest set of a service is published. A version of 0 stands for "no data yet".
using Published = AtomicRef<InstanceSet>;

/// Wakes when there is a new set, and keeps the last one taken. ring() does not block; a watcher
/// takes the newest set.
class WatcherCore : public WaitPoint<NextResult> {
 public:
  explicit WatcherCore(std::shared_ptr<const Published> published)
      : published_(std::move(published)) {}

  /// Does not block.
  void ring();
  /// Ends the watcher; only the first reason counts.
  void end(NextOutcome reason);

 private:
  std::optional<NextResult> take_locked() override;
  bool ready_locked() const override { return end_ || rung_; }

  // All guarded by mutex_.
  std::shared_ptr<const Published> published_;
  bool rung_ = true;     // there may be a new set
  InstanceSetPtr last_;  // the last set taken
  std::optional<NextOutcome> end_;
};

}  // namespace lookout::registry::detail
