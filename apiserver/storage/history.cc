#include "apiserver/storage/history.h"

#include <algorithm>

namespace lookout::apiserver::storage {
namespace {

/// Encoded events of so many changes are kept; older ones are wanted by stragglers only.
constexpr std::size_t kYoung = 64;

}  // namespace

History::History(std::size_t capacity, Revision start)
    : capacity_(std::max<std::size_t>(capacity, 1)), start_(start) {}

void History::add(ChangePtr change) {
  if (changes_.size() == capacity_) {
    const Revision gone = changes_.front()->revision();
    changes_.pop_front();
    // As in the API server's watch cache: right before the oldest change that is left; unless one
    // of the same revision has gone.
    start_ = std::max(gone, (changes_.empty() ? change : changes_.front())->revision() - 1);
  }
  changes_.push_back(std::move(change));
  if (changes_.size() > kYoung) changes_[changes_.size() - 1 - kYoung]->forget_encodings();
}

void History::read(Revision revision, std::size_t max, std::vector<ChangePtr>& out) const {
  auto change = std::upper_bound(
      changes_.begin(), changes_.end(), revision,
      [](Revision r, const ChangePtr& candidate) { return r < candidate->revision(); });
  for (; change != changes_.end(); ++change) {
    // Who has seen a revision has seen all of it.
    if (max == 0 && (out.empty() || (*change)->revision() != out.back()->revision())) break;
    out.push_back(*change);
    if (max > 0) --max;
  }
}

void History::reset(Revision start) {
  changes_.clear();
  start_ = start;
}

}  // namespace lookout::apiserver::storage
