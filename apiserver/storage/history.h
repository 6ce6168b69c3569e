// The latest changes of a resource.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

#include "lookout/apiserver/storage/event.h"

namespace lookout::apiserver::storage {

/// How much of the past is kept. The latest change always is.
struct HistoryLimits {
  std::size_t count = 10000;
  /// Bytes of the object states that only the history keeps.
  std::size_t bytes = 64u << 20;
  std::chrono::milliseconds age = std::chrono::minutes(10);
};

/// A window of changes in the order of their revisions. When it is full, or they get old, the
/// oldest go. A revision of which one change has gone is not in the window any more: nobody reads a
/// part of it. Not thread-safe.
class History {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Nothing is known of what came up to `start`.
  explicit History(HistoryLimits limits, Revision start = 0);

  void add(ChangePtr change, TimePoint now = std::chrono::steady_clock::now());
  /// Lets go of what is too old.
  void trim(TimePoint now);
  /// Everything has gone; the window begins after this revision.
  void reset(Revision start);

  /// The window holds all changes after this revision: where a watch may begin.
  Revision start() const { return start_; }

  /// Appends to `out` the changes after `revision`, at most `max`, and those that share the last
  /// one's revision. It must not lie before start().
  void read(Revision revision, std::size_t max, std::vector<ChangePtr>& out) const;

  /// Newest first, the changes after `revision`.
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
