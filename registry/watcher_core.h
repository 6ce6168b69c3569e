// The state of a watcher of a service. Pending waits keep it alive.
#pragma once

#include <memory>
#include <optional>

#include "registry/atomic_ref.h"
#include "registry/wait_point.h"

namespace lookout::registry::detail {

/// Where the newest set of a service is published. A version of 0 stands for "no data yet".
using Published = AtomicRef<InstanceSet>;

/// Wakes when there is a new set, and remembers the one that was taken last. A publisher rings and
/// goes on; a watcher takes the set that is newest when it looks.
class WatcherCore : public WaitPoint<NextResult> {
 public:
  explicit WatcherCore(std::shared_ptr<const Published> published)
      : published_(std::move(published)) {}

  /// Never waits for the watcher.
  void ring();
  /// Ends it; the first reason counts.
  void end(NextOutcome reason);

 private:
  std::optional<NextResult> take_locked() override;
  bool ready_locked() const override { return end_ || rung_; }

  // All guarded by mutex_.
  std::shared_ptr<const Published> published_;
  bool rung_ = true;     // nobody has looked since there was something new
  InstanceSetPtr last_;  // what was taken last
  std::optional<NextOutcome> end_;
};

}  // namespace lookout::registry::detail
