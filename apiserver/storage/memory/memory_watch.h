// A watch of a table.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/storage/memory/object_source.h"
#include "apiserver/storage/memory/table.h"
#include "lookout/base/async_event.h"

namespace lookout::apiserver::storage::memory {

/// How long a watch waits for its start revision.
struct Patience {
  std::chrono::milliseconds wait{3000};
  /// Returns the newest revision of the followed storage, or any that is at least `asked`. Null: use the
  /// table's counter.
  std::function<Awaitable<Revision>(Revision asked)> newest = {};
};

/// Reads a table's history from a cursor on, and waits at the end. A watch from a future revision ends
/// with an error (504, "Too large resource version") if the revision is not reached in time: it comes
/// from a server with another history.
class MemoryWatch final : public Watch {
 public:
  /// `start` is the initial state for watches that deliver it; others start after its revision, unless
  /// the options have another one.
  MemoryWatch(std::shared_ptr<Table> table, boost::asio::any_io_executor executor, std::string key,
              bool recursive, WatchOptions options, Moment start, Patience patience);
  ~MemoryWatch() override;

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override;
  void request_bookmark() override { bookmark_requested_ = true; }
  void cancel() override;

 private:
  bool read_state(std::vector<Event>& events);
  /// False if there are no events yet.
  bool read_changes(std::vector<Event>& events);
  static Event event_of(ChangePtr change, api::EventType type);
  /// After the timeout: whether the watch continues.
  Awaitable<bool> has_begun(std::vector<Event>& events);

  const std::shared_ptr<Table> table_;
  AsyncEvent doorbell_;
  Watcher watcher_;
  std::optional<MomentCursor> state_;
  bool initial_events_end_ = false;
  bool bookmark_requested_ = false;
  bool added_ = false;
  bool ended_ = false;
  const Revision asked_;
  const Patience patience_;
  /// The deadline for reaching the start revision.
  std::optional<TimePoint> begins_until_;
  std::vector<ChangePtr> changes_;
};

}  // namespace lookout::apiserver::storage::memory
