// RecentWrites: the objects of a store's last writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// The last values that a store has sent to etcd, and their objects, so that its watchers need not decode them.
/// etcd's response to a write and its event arrive in any order: the first one creates the object with the new
/// revision, and the second one takes it. A value is found by all of its bytes, so it is never confused with
/// another client's write or with a value in a restored etcd. Thread-safe.
class RecentWrites {
 public:
  /// Before a write: `value` is the encoded `object`. The result is for written().
  std::uint64_t begin(const std::string& value, api::Object object);

  /// The object of that write, which happened at `revision`.
  api::Object written(std::uint64_t write, Revision revision, const api::Object& object);

  /// The object for `value` at `revision`; empty if unknown.
  api::Object find(std::string_view value, Revision revision);

 private:
  /// With the longest values, 4 MB for a resource.
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kLongest = 64 << 10;

  /// In use from the beginning of a write until both the response and the event have arrived, or until a later
  /// write needs the slot.
  struct Slot {
    std::uint64_t write = 0;  // 0: not used
    Revision revision = 0;    // 0: not known yet
    std::string value;
    api::Object object;
  };

  Slot& place_of(std::uint64_t write) { return slots_[static_cast<std::size_t>(write) % kSlots]; }
  api::Object settle(std::uint64_t write, Revision revision, const api::Object& object);

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::vector<Slot> slots_;  // none before the first write
};

}  // namespace lookout::apiserver::storage::etcd3
