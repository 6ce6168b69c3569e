#include "apiserver/storage/ordered_items.h"

#include <algorithm>
#include <iterator>

namespace lookout::apiserver::storage {
namespace {

/// The maximum length of a run. Short runs are cheap to copy; long runs keep the list of runs short.
constexpr std::size_t kMaxRun = 256;

constexpr auto kBefore = [](const ItemPtr& item, std::string_view key) { return item->key < key; };

}  // namespace

/// The only run that may contain `key`: the last one that does not start after it. 0 if there is none.
std::size_t OrderedItems::run_of(const Runs& runs, std::string_view key) {
  const auto behind = std::upper_bound(
      runs.runs.begin(), runs.runs.end(), key,
      [](std::string_view k, const BlockPtr<Run>& run) { return k < run->items.front()->key; });
  const auto index = static_cast<std::size_t>(behind - runs.runs.begin());
  return index == 0 ? 0 : index - 1;
}

OrderedItems::Runs& OrderedItems::writable() {
  if (!runs_.unique()) runs_ = make_block<Runs>(*runs_);
  return *runs_;
}

OrderedItems::Run& OrderedItems::writable(BlockPtr<Run>& run) {
  if (!run.unique()) run = make_block<Run>(*run);
  return *run;
}

const ItemPtr* OrderedItems::find(std::string_view key) const {
  if (runs_->size == 0) return nullptr;
  const auto& items = runs_->runs[run_of(*runs_, key)]->items;
  const auto at = std::lower_bound(items.begin(), items.end(), key, kBefore);
  return at != items.end() && (*at)->key == key ? &*at : nullptr;
}

void OrderedItems::put(ItemPtr item) {
  Runs& runs = writable();
  if (runs.runs.empty()) runs.runs.push_back(make_block<Run>());
  const std::size_t index = runs.size == 0 ? 0 : run_of(runs, item->key);
  auto& items = writable(runs.runs[index]).items;
  const auto at = std::lower_bound(items.begin(), items.end(), item->key, kBefore);
  if (at != items.end() && (*at)->key == item->key) {
    *at = std::move(item);
    return;
  }
  // Keys are often inserted in order; then full runs stay full.
  const bool at_the_end = at == items.end() && index + 1 == runs.runs.size();
  items.insert(at, std::move(item));
  ++runs.size;
  if (items.size() <= kMaxRun) return;
  auto upper = make_block<Run>();
  const auto middle =
      at_the_end ? items.end() - 1 : items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  upper->items.assign(std::make_move_iterator(middle), std::make_move_iterator(items.end()));
  items.erase(middle, items.end());
  runs.runs.insert(runs.runs.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(upper));
}

void OrderedItems::erase(std::string_view key) {
  if (find(key) == nullptr) return;
  Runs& runs = writable();
  const std::size_t index = run_of(runs, key);
  auto& items = writable(runs.runs[index]).items;
  items.erase(std::lower_bound(items.begin(), items.end(), key, kBefore));
  --runs.size;
  const auto run = runs.runs.begin() + static_cast<std::ptrdiff_t>(index);
  if (items.empty()) {
    runs.runs.erase(run);
  } else if (run + 1 != runs.runs.end() &&
             items.size() + (*(run + 1))->items.size() <= kMaxRun / 2) {
    const auto& next = (*(run + 1))->items;
    items.insert(items.end(), next.begin(), next.end());
    runs.runs.erase(run + 1);
  }
}

OrderedItems::Snapshot::Position OrderedItems::Snapshot::lower_bound(std::string_view key) const {
  if (runs_->size == 0) return {};
  Position position{run_of(*runs_, key), 0};
  const auto& items = runs_->runs[position.run]->items;
  position.item = static_cast<std::size_t>(
      std::lower_bound(items.begin(), items.end(), key, kBefore) - items.begin());
  if (position.item == items.size()) position = {position.run + 1, 0};
  return position;
}

const Item* OrderedItems::Snapshot::next(Position& position) const {
  if (position.run >= runs_->runs.size()) return nullptr;
  const auto& items = runs_->runs[position.run]->items;
  const Item* item = items[position.item].get();
  if (++position.item == items.size()) position = {position.run + 1, 0};
  return item;
}

std::size_t OrderedItems::Snapshot::distance(Position from, Position to) const {
  std::size_t count = 0;
  for (std::size_t run = from.run; run < to.run; ++run) count += runs_->runs[run]->items.size();
  return count + to.item - from.item;
}

}  // namespace lookout::apiserver::storage
