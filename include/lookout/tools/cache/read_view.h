// ReadView: many lookups in a store, without reference counting.
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

/// Reinterprets pointers as handles: a handle consists only of the pointer.
template <class T = api::Object>
const T* handles_of(const api::detail::ObjectHeader* const* headers) {
  static_assert(std::derived_from<T, api::Object> && sizeof(T) == sizeof *headers);
  return reinterpret_cast<const T*>(headers);
}

}  // namespace detail

/// An object borrowed from a ReadView: like a handle, but without a reference count. Copy the handle
/// (`api::Object kept = *borrowed;`) to keep the object longer than the view.
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

/// Objects borrowed from a ReadView, one for each requested key, in the same order; an empty handle
/// for a key without an object.
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

/// Many lookups in the newest version of a store: registers the reader once and borrows objects
/// without counting references.
///
///     const auto view = store.read();
///     for (const auto& key : keys) {
///       if (const auto pod = view.get(key.ns, key.name)) use(*pod);
///     }
///     for (const Pod& pod : view.get_many<Pod>(keys)) {
///       if (pod) use(pod);
///     }
///
/// Each lookup, including each one in get_many(), sees the newest version, so two lookups may see
/// different versions (a Snapshot always shows the same one). While a view exists, the store frees no
/// memory: keep it only briefly, never across a wait. The store must outlive it. For one thread; any
/// number of views may exist at once.
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

  /// The objects with these keys. Faster than a get() for each key if the store has more objects than
  /// fit into the processor's cache, because memory accesses overlap.
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
