#include "apiserver/storage/etcd3/recent_writes.h"

#include <utility>

#include "apiserver/storage/etcd3/codec.h"

namespace lookout::apiserver::storage::etcd3 {

std::uint64_t RecentWrites::begin(const std::string& value, api::Object object) {
  if (value.size() > kLongest) return 0;
  Slot slot{0, 0, value, std::move(object)};
  const std::lock_guard lock(mutex_);
  if (slots_.empty()) slots_.resize(kSlots);
  slot.write = ++last_;
  // The slot's old content is destroyed after the lock is released.
  std::swap(place_of(last_), slot);
  return last_;
}

api::Object RecentWrites::written(std::uint64_t write, Revision revision,
                                  const api::Object& object) {
  return write == 0 ? at_revision(object, revision) : settle(write, revision, object);
}

api::Object RecentWrites::find(std::string_view value, Revision revision) {
  std::uint64_t write = 0;
  api::Object object;
  {
    const std::lock_guard lock(mutex_);
    for (const Slot& slot : slots_) {
      const bool fits = slot.write != 0 && (slot.revision == 0 || slot.revision == revision);
      if (!fits || slot.value != value) continue;
      write = slot.write;
      object = slot.object;
      break;
    }
  }
  return write == 0 ? api::Object() : settle(write, revision, object);
}

/// The first of two calls stores the object, the second takes it.
api::Object RecentWrites::settle(std::uint64_t write, Revision revision,
                                 const api::Object& object) {
  Slot done;
  const auto take = [&] {
    Slot& slot = place_of(write);
    if (slot.write != write || slot.revision != revision) return false;
    std::swap(slot, done);
    return true;
  };
  {
    const std::lock_guard lock(mutex_);
    if (take()) return std::move(done.object);
  }
  api::Object out = at_revision(object, revision);
  const std::lock_guard lock(mutex_);
  // The other call may have occurred in between.
  if (take()) return std::move(done.object);
  if (Slot& slot = place_of(write); slot.write == write) {
    slot.revision = revision;
    slot.object = out;
  }
  return out;
}

}  // namespace lookout::apiserver::storage::etcd3
