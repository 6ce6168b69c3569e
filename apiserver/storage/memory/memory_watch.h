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

/// How long a watch waits for the revision that it begins at.
struct Patience {
  std::chrono::milliseconds wait{3000};
  /// The newest revision of the storage that the table follows, or any that is not older than
  /// `asked`. Null: the table's own counter says.
  std::function<Awaitable<Revision>(Revision asked)> newest = {};
};

/// Reads a table's history from a cursor on, and waits when there is nothing left. One that begins
/// in the future ends with an error (504, "Too large resource version") if that does not come
/// about: whoever knows such a revision has it from a server with another past, and would wait in
/// vain.
class MemoryWatch final : public Watch {
 public:
  /// `start` is the state that a watch from the state begins with; others begin after its revision,
  /// unless the options name another one.
  MemoryWatch(std::shared_ptr<Table> table, boost::asio::any_io_executor executor, std::string key,
              bool recursive, WatchOptions options, Moment start, Patience patience);
  ~MemoryWatch() override;

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override;
  void request_bookmark() override { bookmark_requested_ = true; }
  void cancel() override;

 private:
  bool read_state(std::vector<Event>& events);
  /// False if there is nothing to hand out yet.
  bool read_changes(std::vector<Event>& events);
  static Event event_of(ChangePtr change, api::EventType type);
  /// After the patience is over: whether the watch goes on.
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
  /// While it is not known whether the beginning has come about: when that has to be found out.
  std::optional<TimePoint> begins_until_;
  std::vector<ChangePtr> changes_;
};

}  // namespace lookout::apiserver::storage::memory
