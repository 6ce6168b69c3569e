// Controller: applies a reflector's changes to a store and reports them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/metrics.h"
#include "lookout/tools/cache/delta_fifo.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/reflector.h"

namespace lookout::cache {

/// A change of the store.
struct Notification {
  enum class Type { kAdd, kUpdate, kDelete };

  Type type = Type::kAdd;
  /// The kind of change that the reflector reported.
  DeltaType cause = DeltaType::kReplaced;
  api::Object object;  ///< the new object; for a deletion, the last one
  api::Object before;  ///< updates and deletions: the object in the store before
  /// Set for additions from the first list.
  bool initial = false;
  /// Set for a deletion whose `object` may not be the last version.
  bool final_state_unknown = false;
  /// Set for an update without a change: from a resync, or because a list or a server repeats a
  /// known version.
  bool sync = false;
};

/// Passes changes from a reflector through a DeltaFifo into a store and reports them: client-go's
/// Controller and processDeltas. Changes that arrive together become one version of the store,
/// which readers can see before the first of them is delivered. They are delivered in order of
/// arrival, across objects; a deletion of an object that the store does not have is dropped.
///
/// Runs on the strand of its informer.
class Controller : public ReflectorStore {
 public:
  using OnChanges = std::function<void(std::vector<Notification>)>;

  /// `store` must outlive the controller. `on_changes` is called on the strand, after the store has
  /// changed.
  Controller(Indexer& store, TransformFunc transform, OnChanges on_changes);

  /// Call before the first change arrives.
  void set_transform(TransformFunc transform) { queue_.set_transform(std::move(transform)); }

  /// True if the whole first list is in the store.
  bool has_synced() const { return queue_.has_synced(); }

  /// For metrics, from any thread: the number of changes that have not been applied yet.
  std::size_t queued() const { return queued_.load(std::memory_order_relaxed); }
  /// For metrics: the time that each batch of changes took to apply and deliver.
  const metrics::Histogram& processing() const LOOKOUT_LIFETIME_BOUND { return processing_; }
  /// The number of failed transforms.
  std::uint64_t transform_failures() const { return queue_.transform_failures(); }

  void add(const api::Object& object) override;
  void update(const api::Object& object) override;
  void remove(const api::Object& object) override;
  void remove_missed(const api::Object& last) override;
  void replace(std::vector<api::Object> objects, const std::string& resource_version) override;
  void resync() override;
  void flush(const std::string& resource_version) override;
  api::Object prepare(api::Object object) const override { return queue_.prepare(object); }
  std::vector<api::Object> objects() const override;

 private:
  void queue_first_list();
  void apply_queued(const std::string& resource_version);
  std::size_t waiting() const { return first_list_.size() + queue_.size(); }
  void note_queued() { queued_.store(waiting(), std::memory_order_relaxed); }

  Indexer& store_;
  DeltaFifo queue_;
  // The first list, until another change arrives. There is nothing to compare it with, so it bypasses
  // the queue, whose entries would take more memory than small objects.
  std::vector<api::Object> first_list_;
  OnChanges on_changes_;
  std::atomic<std::size_t> queued_{0};
  metrics::Histogram processing_{metrics::kInformerBuckets};
};

}  // namespace lookout::cache
