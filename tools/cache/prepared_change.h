// Changes of a store, prepared for a writer's turn.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "tools/cache/slots.h"
#include "tools/cache/store_state.h"
#include "tools/cache/value_table.h"

namespace lookout::cache::detail {

inline constexpr Slots::Number kNoSlot = std::numeric_limits<Slots::Number>::max();

/// A change with the results of user code.
struct PreparedChange {
  api::Object object;  // the object to put, or any object with the key to remove
  bool removes = false;
  std::uint32_t hash = 0;
  /// The last earlier change in the batch with the same key, or this change.
  std::uint32_t earlier = 0;
  /// The slot of the key after the earlier changes.
  Slots::Number slot = kNoSlot;
  api::Object before;
  IndexedValues before_values;
  IndexedValues after_values;

  /// Null after a removal.
  const api::detail::ObjectHeader* after() const { return removes ? nullptr : object.header(); }
  /// True if the change puts the handle that is stored already.
  bool changes_nothing() const { return !removes && before.same(object); }
  bool updates() const { return !removes && before && !before.same(object); }
};

/// Changes that become one version, with the results of preparing them before the writer's turn.
struct Batch {
  std::uint64_t version = 0;  // of the store at the lookup
  const IndexDefinitions* definitions = nullptr;
  std::vector<PreparedChange> changes;
  std::vector<std::string> keys;  // with a key function
  ValueTable values;

  void clear() {
    changes.clear();
    keys.clear();
    values.clear();
  }
};

}  // namespace lookout::cache::detail
