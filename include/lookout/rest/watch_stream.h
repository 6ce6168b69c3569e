// WatchStream: the events of a watch.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "lookout/api/watch.h"
#include "lookout/base/event_loop.h"

namespace lookout::rest {

/// One watch request. The destructor ends the watch, as cancel() does, and so does destroying the
/// last copy of its Client (or ResourceClient). Not thread-safe, except for cancel(); a stream may
/// be moved or destroyed while a coroutine waits in async_next().
///
/// A watch ends in one of four ways: the server closes it normally (no more events; servers do so
/// every few minutes), it sends an ERROR event (such as 410 Gone) and closes, the connection breaks
/// (TransportError), or an event cannot be decoded (api::DecodeError), so that its change is
/// unknown. Continue with a new watch from the last resourceVersion or, after 410 and undecodable
/// events, with a new list. cache::Reflector does all of this.
class WatchStream {
 public:
  class Impl;
  /// No watch, for later assignment. Until then, reading throws InvalidArgument.
  WatchStream();
  explicit WatchStream(std::shared_ptr<Impl> impl);
  WatchStream(WatchStream&&) noexcept;
  WatchStream& operator=(WatchStream&&) noexcept;
  ~WatchStream();

  /// Waits for events and replaces the content of `events` with them, in order; returns false at
  /// the end of the watch. An undecodable event is reported (DecodeOptions::on_malformed) and ends
  /// the watch: first the events before it are delivered, then async_next() throws
  /// api::DecodeError. Throws TransportError.
  Awaitable<bool> async_next(std::vector<api::WatchEvent>& events);

  /// The blocking form, one event at a time; empty at the end of the watch. A stop ends the watch
  /// as cancel() does.
  std::optional<api::WatchEvent> next(std::stop_token stop = {});

  /// Ends the watch from any thread: a waiting or later next() throws TransportError of kind
  /// kCancelled, even if there are undelivered events.
  void cancel();

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::rest
