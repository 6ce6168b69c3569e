// ReadView: many look-ups at the price of less than one each.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/tools/cache/key.h"

namespace lookout::cache {

namespace detail {

struct StoreCore;

/// A handle is nothing but the pointer, so pointers may be looked at as handles.
template <class T = api::Object>
const T* handles_of(const api::detail::ObjectHeader* const* headers) {
  static_assert(std::derived_from<T, api::Object> && sizeof(T) == sizeof *headers);
  return reinterpret_cast<const T*>(headers);
}

}  // namespace detail

/// An object that a ReadView has lent: like a handle, but without a count of its own. Copy the
/// handle (`api::Object kept = *borrowed;`) to keep the object for longer than the view.
template <class T = api::Object>
class Borrowed {
 public:
  /// For the library.
  explicit Borrowed(const api::detail::ObjectHeader* header) : header_(header) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  /// False if the store has no such object; the handle is then an empty one.
  explicit operator bool() const { return header_ != nullptr; }
  const T& operator*() const LOOKOUT_LIFETIME_BOUND { return *detail::handles_of<T>(&header_); }
  const T* operator->() const LOOKOUT_LIFETIME_BOUND { return &**this; }

 private:
  const api::detail::ObjectHeader* const header_;
};

/// Objects that a ReadView has lent, one for each key that it was asked for, in that order; an
/// empty handle where the store has none.
template <class T = api::Object>
class BorrowedList {
 public:
  /// For the library.
  explicit BorrowedList(std::vector<const api::detail::ObjectHeader*> headers)
      : headers_(std::move(headers)) {}
  BorrowedList(const BorrowedList&) = delete;
  BorrowedList& operator=(const BorrowedList&) = delete;

  std::size_t size() const { return headers_.size(); }
  const T& operator[](std::size_t at) const LOOKOUT_LIFETIME_BOUND { return begin()[at]; }
  const T* begin() const LOOKOUT_LIFETIME_BOUND { return detail::handles_of<T>(headers_.data()); }
  const T* end() const LOOKOUT_LIFETIME_BOUND { return begin() + size(); }

 private:
  const std::vector<const api::detail::ObjectHeader*> headers_;
};

/// Look-ups in the newest version of a store, for moments in which there are many: the reader
/// announces itself once, and objects are lent.
///
///     const auto view = store.read();
///     for (const auto& key : keys) {
///       if (const auto pod = view.get(key.ns, key.name)) use(*pod);
///     }
///     for (const Pod& pod : view.get_many<Pod>(keys)) {
///       if (pod) use(pod);
///     }
///
/// Each look-up, and each of those of get_many(), sees the newest version, so two of them may see
/// different ones (a Snapshot always shows the same). While a view lives, the store frees nothing:
/// keep it for a moment only, never across a wait. The store must outlive it. To be used by one
/// thread; any number of views may exist at once.
class ReadView {
 public:
  /// For the library; see Indexer::read().
  explicit ReadView(const detail::StoreCore& core);
  ~ReadView();
  ReadView(const ReadView&) = delete;
  ReadView& operator=(const ReadView&) = delete;

  template <class T = api::Object>
  Borrowed<T> get(std::string_view ns, std::string_view name) const LOOKOUT_LIFETIME_BOUND {
    return Borrowed<T>(find(ns, name));
  }
  template <class T = api::Object>
  Borrowed<T> get_by_key(std::string_view key) const LOOKOUT_LIFETIME_BOUND {
    return Borrowed<T>(find_key(key));
  }

  /// The objects of many keys. Faster than get() for each of them if the store has more objects
  /// than fit into the processor's cache: it waits for the memory of several at once.
  template <class T = api::Object>
  BorrowedList<T> get_many(std::span<const ObjectName> keys) const LOOKOUT_LIFETIME_BOUND {
    return BorrowedList<T>(find_many(keys));
  }

 private:
  const api::detail::ObjectHeader* find(std::string_view ns, std::string_view name) const;
  const api::detail::ObjectHeader* find_key(std::string_view key) const;
  std::vector<const api::detail::ObjectHeader*> find_many(std::span<const ObjectName> keys) const;

  const detail::StoreCore& core_;
  std::atomic<std::uint64_t>* const place_;
};

}  // namespace lookout::cache
