// A watch of a table.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/doorbell.h"
#include "apiserver/storage/memory/object_source.h"
#include "apiserver/storage/memory/table.h"

namespace lookout::apiserver::storage::memory {

/// Reads a table's history from a cursor on, and waits when there is nothing left.
class MemoryWatch final : public Watch {
 public:
  /// `start` is the state that a watch from the state begins with; others begin after its revision,
  /// unless the options name another one.
  MemoryWatch(std::shared_ptr<Table> table, boost::asio::any_io_executor executor, std::string key,
              bool recursive, WatchOptions options, Moment start);
  ~MemoryWatch() override;

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override;
  void request_bookmark() override { bookmark_requested_ = true; }
  void cancel() override;

 private:
  bool read_state(std::vector<Event>& events);
  /// False if there is nothing to hand out yet.
  bool read_changes(std::vector<Event>& events);
  Event event_of(const ChangePtr& change, api::EventType type) const;

  const std::shared_ptr<Table> table_;
  Doorbell doorbell_;
  Watcher watcher_;
  std::optional<MomentCursor> state_;
  bool initial_events_end_ = false;
  bool bookmark_requested_ = false;
  bool added_ = false;
  bool ended_ = false;
  std::vector<ChangePtr> changes_;
};

}  // namespace lookout::apiserver::storage::memory
