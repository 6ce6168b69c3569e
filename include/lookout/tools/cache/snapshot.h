// Snapshot: the state of a store at one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

namespace lookout::cache {

namespace detail {
struct Pin;
class CursorImpl;
}  // namespace detail

/// A range of objects of one snapshot, in no particular order. Lazy: it copies nothing. It keeps
/// its snapshot alive.
class ObjectRange {
 public:
  class iterator {
   public:
    using value_type = api::Object;
    using difference_type = std::ptrdiff_t;
    using reference = const api::Object&;
    using iterator_concept = std::input_iterator_tag;

    iterator();
    iterator(iterator&&) noexcept;
    iterator& operator=(iterator&&) noexcept;
    ~iterator();
    const api::Object& operator*() const LOOKOUT_LIFETIME_BOUND;
    const api::Object* operator->() const LOOKOUT_LIFETIME_BOUND { return &**this; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.at_end(); }

   private:
    friend class ObjectRange;
    explicit iterator(std::unique_ptr<detail::CursorImpl> cursor);
    bool at_end() const;
    std::unique_ptr<detail::CursorImpl> cursor_;
  };

  ObjectRange() = default;
  /// For the library: all objects, or those of one bucket of an index.
  ObjectRange(std::shared_ptr<const detail::Pin> pin, const void* bucket, std::size_t size);

  iterator begin() const;
  std::default_sentinel_t end() const { return {}; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::shared_ptr<const detail::Pin> pin_;
  const void* bucket_ = nullptr;
  std::size_t size_ = 0;
};

/// The state of a store at one moment: consistent objects and indexes. Taking a snapshot is O(1);
/// it never changes and never blocks a writer. While it is kept, the memory of its objects stays
/// allocated. Cheap to copy; safe to use from many threads.
class Snapshot {
 public:
  /// An empty snapshot.
  Snapshot() = default;
  explicit Snapshot(std::shared_ptr<const detail::Pin> pin);

  std::size_t size() const;
  bool empty() const { return size() == 0; }

  /// The object, or an empty handle.
  api::Object get(std::string_view ns, std::string_view name) const;
  api::Object get_by_key(std::string_view key) const;
  bool contains(std::string_view key) const { return static_cast<bool>(get_by_key(key)); }

  /// All objects.
  ObjectRange objects() const;
  ObjectRange::iterator begin() const { return objects().begin(); }
  std::default_sentinel_t end() const { return {}; }

  /// The objects with this index value. Throws InvalidArgument if there is no such index.
  ObjectRange by_index(std::string_view index, std::string_view value) const;
  /// All values of an index that have objects, in no particular order. Throws InvalidArgument if
  /// there is no such index.
  std::vector<std::string> index_values(std::string_view index) const;
  bool has_index(std::string_view index) const;

  /// The resourceVersion that the store had reached; empty if it does not follow a server.
  const std::string& resource_version() const& LOOKOUT_LIFETIME_BOUND;
  std::string resource_version() const&& { return resource_version(); }
  /// The number of changes of the store: equal numbers (of one store) mean equal content.
  std::uint64_t version() const;

  /// For the library.
  const std::shared_ptr<const detail::Pin>& pin() const LOOKOUT_LIFETIME_BOUND { return pin_; }

 private:
  std::shared_ptr<const detail::Pin> pin_;
};

}  // namespace lookout::cache
