// The latest changes of a resource.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

#include "lookout/apiserver/storage/event.h"

namespace lookout::apiserver::storage {

/// How much history is kept. The latest change is always kept.
struct HistoryLimits {
  std::size_t count = 10000;
  /// Bytes of the object states that only the history keeps.
  std::size_t bytes = 64u << 20;
  std::chrono::milliseconds age = std::chrono::minutes(10);
};

/// A window of changes, sorted by revision. When it is full, or changes are too old, the oldest are
/// dropped. A revision with a dropped change is no longer in the window: it is never read partially. Not
/// thread-safe.
class History {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The window starts after `start`.
  explicit History(HistoryLimits limits, Revision start = 0);

  void add(ChangePtr change, TimePoint now = std::chrono::steady_clock::now());
  /// Drops changes that are too old.
  void trim(TimePoint now);
  /// Drops everything; the window then starts after this revision.
  void reset(Revision start);

  /// The window has all changes after this revision, from which a watch may start.
  Revision start() const { return start_; }

  /// Appends the changes after `revision` to `out`: at most `max`, and the others of the last one's
  /// revision. `revision` must not be before start().
  void read(Revision revision, std::size_t max, std::vector<ChangePtr>& out) const;

  /// The changes after `revision`, newest first.
  template <class Visit>
  void visit_back_to(Revision revision, Visit visit) const {
    for (auto change = changes_.rbegin();
         change != changes_.rend() && change->change->revision() > revision; ++change)
      visit(*change->change);
  }

  std::size_t size() const { return changes_.size(); }

 private:
  struct Entry {
    ChangePtr change;
    TimePoint when;
  };

  void drop_oldest();

  const HistoryLimits limits_;
  std::deque<Entry> changes_;
  std::size_t bytes_ = 0;
  Revision start_ = 0;
};

}  // namespace lookout::apiserver::storage
