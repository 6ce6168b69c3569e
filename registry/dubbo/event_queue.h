// EventQueue: the queued events of a watcher.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "lookout/registry/dubbo/client.h"
#include "registry/wait_point.h"

namespace lookout::registry::dubbo::detail {

class EventQueue : public registry::detail::WaitPoint<NextEvent> {
 public:
  EventQueue(std::string key, bool prefix, std::size_t max_pending)
      : key_(std::move(key)), prefix_(prefix), max_pending_(max_pending) {}

  bool wants(std::string_view key) const { return prefix_ ? key.starts_with(key_) : key == key_; }
  const std::string& key() const { return key_; }
  bool prefix() const { return prefix_; }

  /// Does not block.
  void push(Event event);
  /// Ends the queue; only the first reason counts. Drops queued events.
  void end(NextOutcome reason);
  std::size_t pending() const;

 private:
  std::optional<NextEvent> take_locked() override;
  bool ready_locked() const override { return end_ || !events_.empty(); }
  /// Merges each key's events into one, at the position of the last.
  void compact();

  const std::string key_;
  const bool prefix_;
  const std::size_t max_pending_;
  // Guarded by mutex_.
  std::deque<Event> events_;
  std::size_t compact_at_ = max_pending_;
  std::optional<NextOutcome> end_;
};

}  // namespace lookout::registry::dubbo::detail
