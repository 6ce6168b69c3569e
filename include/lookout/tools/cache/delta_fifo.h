// DeltaFifo: the queue between a reflector and its store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::cache {

/// The kinds of changes that a reflector delivers.
enum class DeltaType {
  kAdded,
  kUpdated,
  kDeleted,
  kReplaced,  ///< from a list: new, changed or unchanged
  kSync       ///< from a resync: the stored object, delivered again
};

struct Delta {
  DeltaType type = DeltaType::kAdded;
  api::Object object;
  /// Set for a deletion that was detected because a list lacks the object. `object` is the last
  /// known version, which may not be the final one (client-go's DeletedFinalStateUnknown).
  bool final_state_unknown = false;
};

/// Changes a newly received object before it is stored, for example to drop fields. A pure
/// function; returns the object to keep. If it throws, returns an empty object, or changes the key,
/// the change is dropped, logged and counted, and the last known state stays: an untransformed
/// object is never stored or delivered (client-go's rule). A deletion is still delivered, with the
/// last known state.
using TransformFunc = std::function<api::Object(const api::Object&)>;

/// Delivers changes in order of arrival, across objects (client-go's RealFIFO). Objects that are
/// missing from a list are deleted.
///
/// Not thread-safe, except prepare() and transform_failures(): it is used on the strand of its
/// informer.
class DeltaFifo {
 public:
  /// `known` is the store of this queue's consumer; it must outlive the queue.
  explicit DeltaFifo(const Indexer& known, TransformFunc transform = {});

  void set_transform(TransformFunc transform) { transform_ = std::move(transform); }

  /// Each function throws what the key function of the store throws. A deletion is queued even if
  /// the object is unknown.
  void add(const api::Object& object);
  void update(const api::Object& object);
  void remove(const api::Object& object);
  /// Queues a deletion with only the last known state (Delta::final_state_unknown).
  void remove_missed(const api::Object& last);

  /// Queues a list: first deletions of everything that the store or the queue knows and the list
  /// lacks, then kReplaced for its items.
  void replace(const std::vector<api::Object>& objects);
  /// The same in two steps, so that the parts that a transform drops never exist all at once: each
  /// item is prepared as it arrives (on any thread), and the list is queued when it is complete. A
  /// prepared item has been transformed; it is the stored handle if the store has the same object
  /// already or if the transform failed. It is empty if the transform failed for an object that is
  /// not in the store; replace_prepared() skips it.
  api::Object prepare(const api::Object& object) const;
  void replace_prepared(const std::vector<api::Object>& objects);

  /// True once the first change or list has been queued.
  bool populated() const { return populated_; }
  /// Marks the first list as delivered although it bypassed this queue.
  void skip_first_list() { populated_ = true; }

  /// Queues kSync for every object of the store that has no queued change.
  void resync();

  /// Removes the next change. Returns false if the queue is empty. Sets `initial` if the change
  /// came with the first list.
  bool pop(Delta& delta, bool& initial);

  /// True if all changes of the first list have been removed.
  bool has_synced() const { return populated_ && initial_count_ == 0; }

  /// The number of queued changes.
  std::size_t size() const { return deltas_.size() - next_; }

  /// The number of failed transforms; from any thread.
  std::uint64_t transform_failures() const {
    return transform_failures_.load(std::memory_order_relaxed);
  }

 private:
  void receive(DeltaType type, const api::Object& object);
  std::span<const Delta> queued() const LOOKOUT_LIFETIME_BOUND {
    return std::span(deltas_).subspan(next_);
  }
  /// The last queued state, else the stored one; empty if the object is unknown.
  api::Object last_known(const api::Object& object);
  void forget_places();
  /// Empty if the transform fails.
  api::Object transformed(const api::Object& object) const;

  const Indexer& known_;
  TransformFunc transform_;
  std::vector<Delta> deltas_;
  std::size_t next_ = 0;  // the changes before it have been removed
  // Where each object was queued last, for last_known(), which is rarely needed: includes the changes
  // before placed_, also removed ones.
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t placed_ = 0;
  bool populated_ = false;         // the first change or list has been queued
  std::size_t initial_count_ = 0;  // changes of the first list that are still in the queue
  mutable std::atomic<std::uint64_t> transform_failures_{0};
};

}  // namespace lookout::cache
