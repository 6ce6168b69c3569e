// The queue between a reflector and its store.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::cache {

/// What the reflector learned of an object.
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
  /// Of a deletion: it was noticed by the object's absence from a list. `object` is the last
  /// version that was known and may not be the last there was (client-go's
  /// DeletedFinalStateUnknown).
  bool final_state_unknown = false;
};

/// All that happened to one object since it was last taken from the queue, oldest first.
using Deltas = std::vector<Delta>;

/// Changes a newly received object before anything else sees it, for example to drop fields. A pure
/// function; returns the object to keep. If it throws, or returns none or one with another key, the
/// object is taken as it came.
using TransformFunc = std::function<api::Object(const api::Object&)>;

/// Collects changes by object and gives them out in the order in which the objects were first
/// touched: client-go's DeltaFIFO, with its rules. Two deletions in a row become one; a deletion of
/// what neither the queue nor the store knows is ignored; what a list lacks is deleted.
///
/// Not thread-safe: it lives on the strand of its informer.
class DeltaFifo {
 public:
  /// `known` is the store that the consumer of this queue keeps; it must outlive the queue.
  explicit DeltaFifo(const Indexer& known, TransformFunc transform = {});

  void set_transform(TransformFunc transform) { transform_ = std::move(transform); }

  /// Each throws what the key function of the store throws.
  void add(const api::Object& object);
  void update(const api::Object& object);
  void remove(const api::Object& object);

  /// A list has come in: queues deletions for everything that the store or the queue knows and the
  /// list does not have, then kReplaced for its items.
  void replace(const std::vector<api::Object>& objects);
  /// The same in two steps, so that what a transform drops is never there all at once: each item is
  /// prepared as it comes in (on any thread), and the list is queued when it is complete. What is
  /// prepared has been transformed; it is the store's own handle if the store has the same already.
  api::Object prepare(const api::Object& object) const;
  void replace_prepared(const std::vector<api::Object>& objects);

  /// Whether the first change or list has been queued.
  bool populated() const { return populated_; }
  /// The first list goes past this queue: as if it had been queued and taken out.
  void skip_first_list() { populated_ = true; }

  /// Queues kSync for every object of the store for which nothing is queued.
  void resync();

  /// Takes the changes of the next object out. False if the queue is empty. `initial` says whether
  /// the object belongs to the first list.
  bool pop(Deltas& deltas, bool& initial);

  /// Whether everything that the first list brought has been taken out.
  bool has_synced() const { return populated_ && initial_count_ == 0; }

  std::size_t size() const { return queue_.size(); }

 private:
  void queue(DeltaType type, const api::Object& object, bool final_state_unknown = false);
  api::Object transformed(const api::Object& object, std::string_view key) const;
  static void merge_deletions(Deltas& deltas);

  const Indexer& known_;
  TransformFunc transform_;
  std::unordered_map<std::string, Deltas> items_;
  std::deque<const std::string*> queue_;  // keys of items_
  bool populated_ = false;                // the first change or list has been queued
  std::size_t initial_count_ = 0;         // objects of the first list that are still in the queue
};

}  // namespace lookout::cache
