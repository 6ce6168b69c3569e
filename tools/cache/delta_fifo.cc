#include "lookout/tools/cache/delta_fifo.h"

#include <spdlog/spdlog.h>

#include <unordered_set>
#include <utility>

namespace lookout::cache {
namespace {

constexpr std::size_t kBucketsToKeep = 1024;

}  // namespace

DeltaFifo::DeltaFifo(const Indexer& known, TransformFunc transform)
    : known_(known), transform_(std::move(transform)) {}

void DeltaFifo::add(const api::Object& object) {
  populated_ = true;
  queue(DeltaType::kAdded, object);
}

void DeltaFifo::update(const api::Object& object) {
  populated_ = true;
  queue(DeltaType::kUpdated, object);
}

void DeltaFifo::remove(const api::Object& object) {
  populated_ = true;
  const std::string key = known_.key_of(object);
  if (!items_.contains(key) && !known_.get_by_key(key)) return;
  queue(DeltaType::kDeleted, object);
}

api::Object DeltaFifo::prepare(const api::Object& object) const {
  const std::string key = known_.key_of(object);
  api::Object kept = transform_ ? transformed(object, key) : object;
  // A list brings much that the store has already.
  api::Object known = known_.get_by_key(key);
  return known == kept ? known : kept;
}

void DeltaFifo::replace(const std::vector<api::Object>& objects) {
  std::vector<api::Object> prepared;
  prepared.reserve(objects.size());
  for (const auto& object : objects) prepared.push_back(prepare(object));
  replace_prepared(prepared);
}

void DeltaFifo::replace_prepared(const std::vector<api::Object>& objects) {
  if (items_.empty() && known_.size() == 0) {
    // The first list: nothing can be missing in it.
    for (const auto& object : objects) queue(DeltaType::kReplaced, object);
    if (!populated_) initial_count_ = items_.size();
    populated_ = true;
    return;
  }
  std::unordered_set<std::string> keys;
  keys.reserve(objects.size());
  for (const auto& object : objects) keys.insert(known_.key_of(object));

  std::vector<api::Object> gone;
  for (const auto& [key, deltas] : items_) {
    if (!keys.contains(key)) gone.push_back(deltas.back().object);
  }
  for (const auto& object : known_.snapshot().objects()) {
    const std::string key = known_.key_of(object);
    if (!keys.contains(key) && !items_.contains(key)) gone.push_back(object);
  }
  // What is gone goes before what has come.
  for (const auto& object : gone) queue(DeltaType::kDeleted, object, true);
  for (const auto& object : objects) queue(DeltaType::kReplaced, object);

  if (!populated_) initial_count_ = keys.size() + gone.size();
  populated_ = true;
}

void DeltaFifo::resync() {
  for (const auto& object : known_.snapshot().objects()) {
    if (!items_.contains(known_.key_of(object))) queue(DeltaType::kSync, object);
  }
}

bool DeltaFifo::pop(Deltas& deltas, bool& initial) {
  if (queue_.empty()) return false;
  const auto item = items_.find(*queue_.front());
  queue_.pop_front();
  initial = !has_synced();
  if (initial_count_ > 0) --initial_count_;
  deltas = std::move(item->second);
  items_.erase(item);
  // A list leaves a large table behind.
  if (items_.empty() && items_.bucket_count() > kBucketsToKeep) items_ = {};
  return true;
}

void DeltaFifo::queue(DeltaType type, const api::Object& object, bool final_state_unknown) {
  std::string key = known_.key_of(object);
  // What comes out of the store has been transformed when it went in, and a list is prepared.
  const bool fresh = transform_ && type != DeltaType::kSync && type != DeltaType::kReplaced &&
                     !final_state_unknown;
  api::Object kept = fresh ? transformed(object, key) : object;
  const auto [item, inserted] = items_.try_emplace(std::move(key));
  if (inserted) queue_.push_back(&item->first);
  item->second.push_back({type, std::move(kept), final_state_unknown});
  merge_deletions(item->second);
}

api::Object DeltaFifo::transformed(const api::Object& object, std::string_view key) const {
  std::string why;
  try {
    api::Object out = transform_(object);
    if (out && known_.key_of(out) == key) return out;
    why = out ? "it changed the key to " + known_.key_of(out) : "it returned no object";
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
    why = "it threw something that is no std::exception";
  }
  spdlog::error("transform of {} failed, the object is taken as it came: {}", key, why);
  return object;
}

void DeltaFifo::merge_deletions(Deltas& deltas) {
  if (deltas.size() < 2) return;
  Delta& last = deltas.back();
  Delta& before = deltas[deltas.size() - 2];
  if (last.type != DeltaType::kDeleted || before.type != DeltaType::kDeleted) return;
  // The first was the deletion, unless it does not know the final state.
  if (before.final_state_unknown) before = std::move(last);
  deltas.pop_back();
}

}  // namespace lookout::cache
