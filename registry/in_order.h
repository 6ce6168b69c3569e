// InOrder: a set in insertion order.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace lookout::registry::detail {

/// A set of pointers that iterates in insertion order. (A hash set's order depends on addresses, but
/// two runs of one world must be equal.) Insertion and removal take constant time.
template <class T>
class InOrder {
 public:
  /// False if it is already a member; it keeps its position.
  bool insert(T member) {
    const auto [place, added] = places_.try_emplace(member);
    if (added) place->second = members_.insert(members_.end(), std::move(member));
    return added;
  }
  bool erase(const T& member) {
    const auto place = places_.find(member);
    if (place == places_.end()) return false;
    members_.erase(place->second);
    places_.erase(place);
    return true;
  }
  void swap(InOrder& other) noexcept {
    members_.swap(other.members_);
    places_.swap(other.places_);
  }

  std::size_t size() const { return members_.size(); }
  bool empty() const { return members_.empty(); }
  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }

 private:
  std::list<T> members_;
  std::unordered_map<T, typename std::list<T>::iterator> places_;
};

}  // namespace lookout::registry::detail
