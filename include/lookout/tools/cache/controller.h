// From what the reflector learns to what handlers are told.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/delta_fifo.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/reflector.h"
#include "lookout/tools/metrics.h"

namespace lookout::cache {

/// A change of the store.
struct Notification {
  enum class Type { kAdd, kUpdate, kDelete };

  Type type = Type::kAdd;
  api::Object object;  ///< the new one; of a deletion, the last one
  api::Object before;  ///< of an update or a deletion: what the store had
  /// Of an addition: it came with the first list.
  bool initial = false;
  /// Of a deletion: `object` may not be the last version there was.
  bool final_state_unknown = false;
  /// Of an update: nothing but a resync or a new list delivers it, the resourceVersion is the same.
  bool sync = false;
};

/// Passes changes from a reflector through a DeltaFifo into a store, and says what has changed:
/// client-go's Controller and processDeltas. All changes that come together become one version of
/// the store, which readers can see before the first of them is told.
///
/// Lives on the strand of its informer.
class Controller : public ReflectorStore {
 public:
  using OnChanges = std::function<void(std::vector<Notification>)>;

  /// `store` must outlive it. `on_changes` is called on the strand, after the store has changed.
  Controller(Indexer& store, TransformFunc transform, OnChanges on_changes);

  /// Before anything has come in.
  void set_transform(TransformFunc transform) { queue_.set_transform(std::move(transform)); }

  /// Whether all of the first list is in the store.
  bool has_synced() const { return queue_.has_synced(); }

  /// For metrics, from any thread: the objects whose changes have not been applied,
  std::size_t queued() const { return queued_.load(std::memory_order_relaxed); }
  /// and how long it took to apply and tell what had come together, each time.
  const metrics::Histogram& processing() const { return processing_; }

  void add(const api::Object& object) override;
  void update(const api::Object& object) override;
  void remove(const api::Object& object) override;
  void replace(std::vector<api::Object> objects, const std::string& resource_version) override;
  void resync() override;
  void flush(const std::string& resource_version) override;
  api::Object prepare(api::Object object) const override { return queue_.prepare(object); }

 private:
  void queue_first_list();
  void apply_queued(const std::string& resource_version);
  std::size_t waiting() const { return first_list_.size() + queue_.size(); }
  void note_queued() { queued_.store(waiting(), std::memory_order_relaxed); }

  Indexer& store_;
  DeltaFifo queue_;
  // The first list, as long as nothing else has come: there is nothing to compare it with, so it
  // goes into the store without a queue, which for a large list would take more memory than small
  // objects do.
  std::vector<api::Object> first_list_;
  OnChanges on_changes_;
  std::atomic<std::size_t> queued_{0};
  metrics::Histogram processing_{metrics::kInformerBuckets};
};

}  // namespace lookout::cache
