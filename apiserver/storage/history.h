// The latest changes of a resource.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "lookout/apiserver/storage/event.h"

namespace lookout::apiserver::storage {

/// A window of changes in the order of their revisions. When it is full, the oldest go. Not
/// thread-safe.
class History {
 public:
  /// Nothing is known of what came up to `start`.
  explicit History(std::size_t capacity, Revision start = 0);

  void add(ChangePtr change);
  /// Everything has gone; the window begins after this revision.
  void reset(Revision start);

  /// The window holds all changes after this revision: where a watch may begin.
  Revision start() const { return start_; }

  /// Appends to `out` the changes after `revision`, at most `max`, and those that share the last
  /// one's revision. It must not lie before start().
  void read(Revision revision, std::size_t max, std::vector<ChangePtr>& out) const;

  bool has_after(Revision revision) const {
    return !changes_.empty() && changes_.back()->revision() > revision;
  }
  /// Newest first, the changes after `revision`.
  template <class Visit>
  void visit_back_to(Revision revision, Visit visit) const {
    for (auto change = changes_.rbegin();
         change != changes_.rend() && (*change)->revision() > revision; ++change)
      visit(**change);
  }

 private:
  const std::size_t capacity_;
  std::deque<ChangePtr> changes_;
  Revision start_ = 0;
};

}  // namespace lookout::apiserver::storage
