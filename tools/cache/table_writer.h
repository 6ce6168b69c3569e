// TableWriter: the writer's side of NewestTable.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tools/cache/newest_table.h"
#include "tools/cache/prepared_change.h"
#include "tools/cache/store_state.h"
#include "tools/cache/trie.h"

namespace lookout::cache::detail {

/// Keeps StoreCore::newest up to date. Used in a writer's turn.
class TableWriter {
 public:
  explicit TableWriter(StoreCore& core) : core_(core) {}

  /// The table, if a new version of one of its objects can be stored in it directly.
  NewestTable* ready(std::size_t objects, const api::detail::ObjectHeader* object) const {
    NewestTable* const table = core_.newest.load(std::memory_order_relaxed);
    if (table == nullptr || growing_ != nullptr || !holds_all_) return nullptr;
    return table->suits(objects) && NewestTable::can_hold(object) ? table : nullptr;
  }

  /// Calls `change`, which changes the table and publishes the version; readers see both as one step.
  template <class Change>
  void in_one_step(Change change) {
    const std::uint64_t before = core_.changes.load(std::memory_order_relaxed);
    core_.changes.store(before + 1, std::memory_order_relaxed);
    change();
    core_.changes.store(before + 2, std::memory_order_seq_cst);
  }

  /// Stores the new root and updates the table.
  void publish(std::unique_ptr<State> next, Edit& edit, std::span<const PreparedChange> changes) {
    holds_all_ &= std::ranges::all_of(changes, [](const PreparedChange& change) {
      return NewestTable::can_hold(change.after());
    });
    NewestTable* const table = core_.newest.load(std::memory_order_relaxed);
    const std::size_t most = most_objects(changes);
    const bool usable = table != nullptr && holds_all_ && table->has_room_for(most);
    auto other = usable       ? next_table(*table, *next, changes, most)
                 : holds_all_ ? table_of(*next)
                              : nullptr;
    if (!usable) growing_.reset();
    in_one_step([&] {
      if (usable && other == nullptr) {
        for (const auto& change : changes) update(*table, change);
      } else {
        // (No snapshot sees it: it belongs only to the version that ends.)
        if (table != nullptr) {
          edit.retire(
              table, [](void* memory) { delete static_cast<NewestTable*>(memory); }, edit.version);
        }
        core_.newest.store(other.release(), std::memory_order_release);
      }
      core_.current.store(next.release(), std::memory_order_seq_cst);
    });
  }

 private:
  /// The greatest number of objects while a table takes the changes one by one. A batch may add many
  /// objects and remove them again.
  std::size_t most_objects(std::span<const PreparedChange> changes) const {
    std::size_t objects = core_.current.load(std::memory_order_relaxed)->size;
    std::size_t most = objects;
    for (const auto& change : changes) {
      if (change.after() != nullptr) {
        if (!change.before) most = std::max(most, ++objects);
      } else if (change.before) {
        --objects;
      }
    }
    return most;
  }

  /// A table of another size, if `table` no longer suits. Filling it at once would take milliseconds, so
  /// each change copies a few slots. Null until it is complete. `most`: see most_objects().
  std::unique_ptr<NewestTable> next_table(const NewestTable& table, const State& next,
                                          std::span<const PreparedChange> changes,
                                          std::size_t most) {
    constexpr std::size_t kSlotsEach = 32;
    if (growing_ != nullptr && !growing_->has_room_for(most)) growing_.reset();
    if (growing_ == nullptr) {
      if (table.suits(next.size)) return nullptr;
      growing_ = std::make_unique<NewestTable>(next.size + next.size / 2);
      moved_ = 0;
    }
    for (const auto& change : changes) {
      const bool comes = change.after() != nullptr && !change.before;
      if (!comes || change.slot < moved_) update(*growing_, change);
    }
    moved_ = next.slots.skip_missing(moved_);
    const std::size_t end =
        std::min<std::size_t>(next.slots.size(), moved_ + kSlotsEach * changes.size());
    for (std::size_t at = moved_; at < end; ++at) {
      if (const auto* header = next.slots[static_cast<Slots::Number>(at)].header)
        __builtin_prefetch(header);
    }
    for (; moved_ < end; ++moved_) {
      if (const auto* header = next.slots[moved_].header) growing_->insert(header);
    }
    return moved_ == next.slots.size() ? std::move(growing_) : nullptr;
  }

  static void update(NewestTable& table, const PreparedChange& change) {
    if (change.changes_nothing()) return;
    if (change.after() == nullptr) {
      if (change.before) table.erase(change.before.header());
    } else if (change.before) {
      table.replace(change.before.header(), change.after());
    } else {
      table.insert(change.after());
    }
  }

  static std::unique_ptr<NewestTable> table_of(const State& state) {
    std::vector<const api::detail::ObjectHeader*> objects;
    objects.reserve(state.size);
    for (Slots::Cursor cursor(state.slots); cursor.get() != nullptr; cursor.next())
      objects.push_back(cursor.get()->header);
    return std::make_unique<NewestTable>(objects);
  }

  StoreCore& core_;
  bool holds_all_ = true;                 // false once an address did not fit
  std::unique_ptr<NewestTable> growing_;  // contains the slots below moved_
  Slots::Number moved_ = 0;
};

}  // namespace lookout::cache::detail
