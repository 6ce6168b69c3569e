// ReadView: many look-ups at the price of less than one each.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

namespace lookout::cache {

namespace detail {
struct StoreCore;
}

/// An object that a ReadView has lent: like a handle, but without a count of its own. Copy the
/// handle (`api::Object kept = *borrowed;`) to keep the object for longer than the view.
class BorrowedObject {
 public:
  /// For the library.
  explicit BorrowedObject(const api::detail::ObjectHeader* header)
      : object_(api::Object::adopt(header)) {}
  ~BorrowedObject() { object_.detach(); }
  BorrowedObject(const BorrowedObject&) = delete;
  BorrowedObject& operator=(const BorrowedObject&) = delete;

  /// False if the store has no such object; the handle is then an empty one.
  explicit operator bool() const { return static_cast<bool>(object_); }
  const api::Object& operator*() const LOOKOUT_LIFETIME_BOUND { return object_; }
  const api::Object* operator->() const LOOKOUT_LIFETIME_BOUND { return &object_; }

 private:
  api::Object object_;
};

/// Look-ups in the newest version of a store, for moments in which there are many: the reader
/// announces itself once, and objects are lent.
///
///     const auto view = store.read();
///     for (const auto& key : keys) {
///       if (const auto pod = view.get(key.ns, key.name)) use(*pod);
///     }
///
/// Each look-up sees the newest version, so two of them may see different ones (a Snapshot always
/// shows the same). While a view lives, the store frees nothing: keep it for a moment only, never
/// across a wait. The store must outlive it. To be used by one thread; any number of views may
/// exist at once.
class ReadView {
 public:
  /// For the library; see Indexer::read().
  explicit ReadView(const detail::StoreCore& core);
  ~ReadView();
  ReadView(const ReadView&) = delete;
  ReadView& operator=(const ReadView&) = delete;

  BorrowedObject get(std::string_view ns, std::string_view name) const LOOKOUT_LIFETIME_BOUND;
  BorrowedObject get_by_key(std::string_view key) const LOOKOUT_LIFETIME_BOUND;

 private:
  const detail::StoreCore& core_;
  std::atomic<std::uint64_t>* const place_;
};

}  // namespace lookout::cache
