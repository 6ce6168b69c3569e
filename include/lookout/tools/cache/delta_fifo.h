// The queue between a reflector and its store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
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
  kReplaced,  ///< it was in a list: new, changed or the same as before
  kSync       ///< nothing new: the store's own object, delivered again
};

struct Delta {
  DeltaType type = DeltaType::kAdded;
  api::Object object;
  /// Set for a deletion that was noticed by the object's absence from a list. `object` is the last
  /// known version and may not be the last there was (client-go's DeletedFinalStateUnknown).
  bool final_state_unknown = false;
};

/// Changes a newly received object before anything else sees it, for example to drop fields. A pure
/// function; returns the object to keep. If it throws, or returns none or one with another key, the
/// change is dropped, logged and counted, and the last known state stays: nothing is ever stored or
/// delivered that has not been transformed (client-go's rule). A deletion is delivered all the
/// same, with the last known state.
using TransformFunc = std::function<api::Object(const api::Object&)>;

/// Delivers changes in order of arrival, across objects (client-go's RealFIFO). Objects that are
/// missing from a list are deleted.
///
/// Not thread-safe, except prepare() and transform_failures(): it lives on the strand of its
/// informer.
class DeltaFifo {
 public:
  /// `known` is the store that the consumer of this queue keeps; it must outlive the queue.
  explicit DeltaFifo(const Indexer& known, TransformFunc transform = {});

  void set_transform(TransformFunc transform) { transform_ = std::move(transform); }

  /// Each throws what the key function of the store throws. A deletion is queued whether the object
  /// is known or not.
  void add(const api::Object& object);
  void update(const api::Object& object);
  void remove(const api::Object& object);
  /// A deletion of which nothing but the last known state has come (Delta::final_state_unknown).
  void remove_missed(const api::Object& last);

  /// A list has come in: queues deletions for everything that the store or the queue knows and the
  /// list does not have, then kReplaced for its items.
  void replace(const std::vector<api::Object>& objects);
  /// The same in two steps, so that what a transform drops is never there all at once: each item is
  /// prepared as it comes in (on any thread), and the list is queued when it is complete. A
  /// prepared item has been transformed; it is the store's own, if that has the same already or
  /// the transform failed. Empty: the transform failed for an object that is not in the
  /// store; replace_prepared() steps over it.
  api::Object prepare(const api::Object& object) const;
  void replace_prepared(const std::vector<api::Object>& objects);

  /// Whether the first change or list has been queued.
  bool populated() const { return populated_; }
  /// The first list goes past this queue: as if it had been queued and taken out.
  void skip_first_list() { populated_ = true; }

  /// Queues kSync for every object of the store for which nothing is queued.
  void resync();

  /// Takes the next change out. False if the queue is empty. `initial` says whether it came with
  /// the first list.
  bool pop(Delta& delta, bool& initial);

  /// Whether everything that the first list brought has been taken out.
  bool has_synced() const { return populated_ && initial_count_ == 0; }

  /// How many changes are queued.
  std::size_t size() const { return deltas_.size() - next_; }

  /// How often the transform failed; from any thread.
  std::uint64_t transform_failures() const {
    return transform_failures_.load(std::memory_order_relaxed);
  }

 private:
  void receive(DeltaType type, const api::Object& object);
  std::span<const Delta> queued() const LOOKOUT_LIFETIME_BOUND {
    return std::span(deltas_).subspan(next_);
  }
  /// The last state of it that is queued, else the store's; empty if it is not known.
  api::Object last_known(const api::Object& object) const;
  /// Empty if the transform fails.
  api::Object transformed(const api::Object& object) const;

  const Indexer& known_;
  TransformFunc transform_;
  std::vector<Delta> deltas_;
  std::size_t next_ = 0;           // those before it have been taken out
  bool populated_ = false;         // the first change or list has been queued
  std::size_t initial_count_ = 0;  // changes of the first list that are still in the queue
  mutable std::atomic<std::uint64_t> transform_failures_{0};
};

}  // namespace lookout::cache
