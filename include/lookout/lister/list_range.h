// ListRange: the result of a lister.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::lister {

/// The objects of a snapshot that match a selector, as T; in no particular order. Lazy: it copies
/// nothing and applies the selector during iteration. Iterators must not outlive the range. The
/// range holds its snapshot, so later changes of the store do not affect it.
template <class T>
class ListRange {
 public:
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    iterator() = default;
    iterator(cache::ObjectRange::iterator at, const ListRange& range LOOKOUT_LIFETIME_BOUND)
        : at_(std::move(at)), range_(&range) {
      skip();
    }
    T operator*() const { return T(*at_); }
    iterator& operator++() {
      ++at_;
      skip();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t end) {
      return it.at_ == end;
    }

   private:
    void skip() {
      if (range_->takes_all()) return;
      while (at_ != std::default_sentinel && !range_->takes(*at_)) ++at_;
    }

    cache::ObjectRange::iterator at_;
    const ListRange* range_ = nullptr;
  };

  /// `ns`: objects of other namespaces are skipped; empty: all namespaces.
  ListRange(cache::ObjectRange objects, api::labels::Selector selector, std::string ns = {})
      : objects_(std::move(objects)), selector_(std::move(selector)), ns_(std::move(ns)) {}

  iterator begin() const& LOOKOUT_LIFETIME_BOUND { return iterator(objects_.begin(), *this); }
  iterator begin() const&& = delete;
  std::default_sentinel_t end() const { return {}; }
  bool empty() const { return begin() == end(); }
  /// Counts the objects: O(n) with a selector.
  std::size_t size() const {
    if (takes_all()) return objects_.size();
    std::size_t n = 0;
    for (auto it = begin(); it != end(); ++it) ++n;
    return n;
  }

 private:
  bool takes_all() const { return selector_.empty() && ns_.empty(); }
  bool takes(const api::Object& object) const {
    return (ns_.empty() || object.ns() == ns_) && selector_.matches(object);
  }

  cache::ObjectRange objects_;
  api::labels::Selector selector_;
  std::string ns_;
};

}  // namespace lookout::lister
