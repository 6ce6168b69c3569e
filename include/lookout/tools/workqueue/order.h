// Order: the order in which a work queue returns its items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

namespace lookout::workqueue {

/// The waiting items of a queue, without duplicates (client-go's workqueue.Queue). The queue calls
/// it under its lock.
template <class T>
class Order {
 public:
  virtual ~Order() = default;
  virtual void push(T item, int priority) = 0;
  /// Called when a waiting item is added again.
  virtual void touch(const T& item, int priority) = 0;
  /// Removes the next item. Requires size() > 0.
  virtual T pop() = 0;
  virtual std::size_t size() const = 0;
};

/// First in, first out; ignores the priority.
template <class T>
class FifoOrder : public Order<T> {
 public:
  void push(T item, int) override { items_.push_back(std::move(item)); }
  void touch(const T&, int) override {}
  T pop() override {
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }
  std::size_t size() const override { return items_.size(); }

 private:
  std::deque<T> items_;
};

/// The highest priority first; items of equal priority in order of arrival. Adding a waiting item
/// again with a higher priority moves it forward, never back.
template <class T, class Hash = std::hash<T>>
class PriorityOrder : public Order<T> {
 public:
  void push(T item, int priority) override {
    const Place place{-std::int64_t{priority}, next_++};
    places_.emplace(item, place);
    items_.emplace(place, std::move(item));
  }
  void touch(const T& item, int priority) override {
    const auto at = places_.find(item);
    if (at == places_.end() || at->second.first <= -std::int64_t{priority}) return;
    auto node = items_.extract(at->second);
    node.key() = at->second = {-std::int64_t{priority}, next_++};
    items_.insert(std::move(node));
  }
  T pop() override {
    auto node = items_.extract(items_.begin());
    places_.erase(node.mapped());
    return std::move(node.mapped());
  }
  std::size_t size() const override { return items_.size(); }

 private:
  using Place = std::pair<std::int64_t, std::uint64_t>;  // negated priority; arrival
  std::map<Place, T> items_;
  std::unordered_map<T, Place, Hash> places_;
  std::uint64_t next_ = 0;
};

}  // namespace lookout::workqueue
