#include "lookout/tools/cache/delta_fifo.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lookout/base/detail/log.h"

namespace lookout::cache {
namespace {

constexpr std::size_t kRoomToKeep = 1024;

}  // namespace

DeltaFifo::DeltaFifo(const Indexer& known, TransformFunc transform)
    : known_(known), transform_(std::move(transform)) {}

void DeltaFifo::add(const api::Object& object) { receive(DeltaType::kAdded, object); }
void DeltaFifo::update(const api::Object& object) { receive(DeltaType::kUpdated, object); }
void DeltaFifo::remove(const api::Object& object) { receive(DeltaType::kDeleted, object); }

void DeltaFifo::remove_missed(const api::Object& last) {
  const std::size_t before = deltas_.size();
  receive(DeltaType::kDeleted, last);
  if (deltas_.size() > before) deltas_.back().final_state_unknown = true;
}

void DeltaFifo::receive(DeltaType type, const api::Object& object) {
  known_.require_key(object);
  populated_ = true;
  if (!transform_) {
    deltas_.push_back({type, object});
  } else if (api::Object kept = transformed(object)) {
    deltas_.push_back({type, std::move(kept)});
  } else if (type == DeltaType::kDeleted) {
    // The object is deleted, even if the transform of its last state fails.
    if (api::Object last = last_known(object)) deltas_.push_back({type, std::move(last), true});
  }
}

api::Object DeltaFifo::prepare(const api::Object& object) const {
  known_.require_key(object);
  api::Object kept = transform_ ? transformed(object) : object;
  // Many items of a list are in the store already.
  api::Object known = known_.get(object);
  return !kept || known == kept ? known : kept;
}

void DeltaFifo::replace(const std::vector<api::Object>& objects) {
  std::vector<api::Object> prepared;
  prepared.reserve(objects.size());
  for (const auto& object : objects) {
    api::Object kept = prepare(object);
    prepared.push_back(kept ? std::move(kept) : last_known(object));
  }
  replace_prepared(prepared);
}

void DeltaFifo::replace_prepared(const std::vector<api::Object>& objects) {
  const std::size_t before = size();
  if (before > 0 || known_.size() > 0) {
    std::unordered_set<std::string> keys;
    keys.reserve(objects.size());
    for (const auto& object : objects) {
      if (object) keys.insert(known_.key_of(object));
    }
    // The last queued change of each object that the list lacks.
    std::unordered_map<std::string, Delta> missing;
    for (const auto& delta : queued()) {
      std::string key = known_.key_of(delta.object);
      if (!keys.contains(key)) missing.insert_or_assign(std::move(key), delta);
    }
    // Deletions come before additions.
    for (auto& [key, last] : missing) {
      if (last.type == DeltaType::kDeleted) continue;
      deltas_.push_back({DeltaType::kDeleted, std::move(last.object), true});
    }
    for (const auto& object : known_.snapshot().objects()) {
      const std::string key = known_.key_of(object);
      if (!keys.contains(key) && !missing.contains(key))
        deltas_.push_back({DeltaType::kDeleted, object, true});
    }
  }
  for (const auto& object : objects) {
    if (object) deltas_.push_back({DeltaType::kReplaced, object});
  }
  if (!populated_) initial_count_ = size() - before;
  populated_ = true;
}

void DeltaFifo::resync() {
  std::unordered_set<std::string> keys;
  for (const auto& delta : queued()) keys.insert(known_.key_of(delta.object));
  for (const auto& object : known_.snapshot().objects()) {
    if (keys.empty() || !keys.contains(known_.key_of(object)))
      deltas_.push_back({DeltaType::kSync, object});
  }
}

bool DeltaFifo::pop(Delta& delta, bool& initial) {
  if (size() == 0) return false;
  delta = std::move(deltas_[next_++]);
  initial = initial_count_ > 0;
  if (initial) --initial_count_;
  if (size() > 0) {
    // (The controller empties the queue each time.)
    if (next_ >= kRoomToKeep && next_ >= size()) {
      deltas_.erase(deltas_.begin(), deltas_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
      forget_places();
    }
    return true;
  }
  next_ = 0;
  deltas_.clear();
  forget_places();
  // Free the large buffer that a list leaves.
  if (deltas_.capacity() > kRoomToKeep) std::vector<Delta>().swap(deltas_);
  return true;
}

api::Object DeltaFifo::last_known(const api::Object& object) {
  // Many transforms may fail in a row, so the queue is not searched each time.
  for (placed_ = std::max(placed_, next_); placed_ < deltas_.size(); ++placed_)
    places_.insert_or_assign(known_.key_of(deltas_[placed_].object), placed_);
  const std::string key = known_.key_of(object);
  const auto place = places_.find(key);
  if (place == places_.end() || place->second < next_) return known_.get_by_key(key);
  const Delta& delta = deltas_[place->second];
  return delta.type == DeltaType::kDeleted ? api::Object{} : delta.object;
}

void DeltaFifo::forget_places() {
  if (placed_ == 0) return;
  placed_ = 0;
  std::unordered_map<std::string, std::size_t>().swap(places_);
}

api::Object DeltaFifo::transformed(const api::Object& object) const {
  const std::string key = known_.key_of(object);
  std::string why;
  try {
    api::Object out = transform_(object);
    if (out && known_.key_of(out) == key) return out;
    why = out ? "it changed the key" : "it returned no object";
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
    why = "it threw something that is not a std::exception";
  }
  transform_failures_.fetch_add(1, std::memory_order_relaxed);
  log::error("transform of {} failed, the change is dropped: {}", key, why);
  return {};
}

}  // namespace lookout::cache
