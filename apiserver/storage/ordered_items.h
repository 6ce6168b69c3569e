// OrderedItems: the objects of a resource in the order of their keys, with cheap snapshots.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/storage/shared_block.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage {

/// A stored object. Immutable.
struct Item {
  std::string key;
  api::Object object;
  Revision revision = 0;
};
using ItemPtr = std::shared_ptr<const Item>;

/// A sorted sequence of items in short runs. Runs and the list of runs are shared with snapshots
/// (copy-on-write): a snapshot is one counter increment, and a change copies at most one run and one
/// list of runs.
///
/// Not thread-safe; snapshots are independent of it and of each other.
class OrderedItems {
  struct Run : SharedBlock {
    std::vector<ItemPtr> items;
  };
  struct Runs : SharedBlock {
    std::vector<BlockPtr<Run>> runs;
    std::size_t size = 0;
  };

 public:
  /// The items at one moment. May be read by many threads.
  class Snapshot {
   public:
    /// A place in the snapshot.
    struct Position {
      std::size_t run = 0;
      std::size_t item = 0;
    };

    std::size_t size() const { return runs_->size; }
    /// The first item whose key is not before `key`.
    Position lower_bound(std::string_view key) const;
    /// After the last item.
    Position end() const { return {runs_->runs.size(), 0}; }
    /// The item at a position, which moves on; null at the end.
    const Item* next(Position& position) const;
    /// The number of items between two positions.
    std::size_t distance(Position from, Position to) const;

   private:
    friend class OrderedItems;
    explicit Snapshot(BlockPtr<Runs> runs) : runs_(std::move(runs)) {}
    BlockPtr<Runs> runs_;
  };

  OrderedItems() : runs_(make_block<Runs>()) {}

  std::size_t size() const { return runs_->size; }
  /// Null if there is none.
  const ItemPtr* find(std::string_view key) const;
  /// Adds or replaces.
  void put(ItemPtr item);
  void erase(std::string_view key);

  Snapshot snapshot() const { return Snapshot(runs_); }

 private:
  static std::size_t run_of(const Runs& runs, std::string_view key);
  Runs& writable();
  Run& writable(BlockPtr<Run>& run);

  BlockPtr<Runs> runs_;
};

}  // namespace lookout::apiserver::storage
