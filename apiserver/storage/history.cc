#include "apiserver/storage/history.h"

#include <algorithm>

namespace lookout::apiserver::storage {
namespace {

/// The number of changes whose encoded events are kept; only lagging watchers need older ones.
constexpr std::size_t kYoung = 64;

/// The memory that only this change keeps alive: the previous object, and the last state of a
/// deleted one.
std::size_t bytes_of(const Change& change) {
  const bool gone = change.type() == api::EventType::kDeleted;
  return sizeof(Change) + change.key().size() + change.previous().memory_size() +
         (gone ? change.object().memory_size() : 0);
}

}  // namespace

History::History(HistoryLimits limits, Revision start) : limits_(limits), start_(start) {}

void History::add(ChangePtr change, TimePoint now) {
  trim(now);
  const std::size_t bytes = bytes_of(*change);
  while (!changes_.empty() && (changes_.size() >= limits_.count || bytes_ + bytes > limits_.bytes))
    drop_oldest();
  bytes_ += bytes;
  changes_.push_back({std::move(change), now});
  if (changes_.size() > kYoung) changes_[changes_.size() - 1 - kYoung].change->forget_encodings();
}

void History::trim(TimePoint now) {
  while (changes_.size() > 1 && now - changes_.front().when > limits_.age) drop_oldest();
}

void History::drop_oldest() {
  start_ = changes_.front().change->revision();
  bytes_ -= bytes_of(*changes_.front().change);
  changes_.pop_front();
}

void History::read(Revision revision, std::size_t max, std::vector<ChangePtr>& out) const {
  auto change = std::upper_bound(
      changes_.begin(), changes_.end(), revision,
      [](Revision r, const Entry& candidate) { return r < candidate.change->revision(); });
  for (; change != changes_.end(); ++change) {
    // A revision is always delivered completely.
    if (max == 0 && (out.empty() || change->change->revision() != out.back()->revision())) break;
    out.push_back(change->change);
    if (max > 0) --max;
  }
}

void History::reset(Revision start) {
  changes_.clear();
  bytes_ = 0;
  start_ = start;
}

}  // namespace lookout::apiserver::storage
