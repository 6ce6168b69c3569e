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
  explicit History(std::size_t capacity);

  void add(ChangePtr change);

  /// The window holds all changes after this revision: where a watch may begin. 0 as long as
  /// nothing has gone.
  Revision start() const { return start_; }

  /// Appends to `out` the changes after `revision`, at most `max`. It must not lie before start().
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
