// In which order a work queue gives its items out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

namespace lookout::workqueue {

/// The items that wait in a queue, each once (client-go's workqueue.Queue). The queue calls it
/// under its lock.
template <class T>
class Order {
 public:
  virtual ~Order() = default;
  virtual void push(T item, int priority) = 0;
  /// An item that waits has been added again.
  virtual void touch(const T& item, int priority) = 0;
  /// Only if there is one.
  virtual T pop() = 0;
  virtual std::size_t size() const = 0;
};

/// First come, first served, whatever the priority.
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

/// The highest priority first; among equals, first come, first served. An item that is added again
/// with a higher priority moves forward, never back.
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
  using Place = std::pair<std::int64_t, std::uint64_t>;  // priority, downwards; arrival
  std::map<Place, T> items_;
  std::unordered_map<T, Place, Hash> places_;
  std::uint64_t next_ = 0;
};

}  // namespace lookout::workqueue
