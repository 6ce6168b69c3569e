// The events of a watch, as they come in.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "lookout/api/watch.h"
#include "lookout/base/event_loop.h"

namespace lookout::rest {

/// One watch request. Letting go of it ends the watch, as cancel() does, and so does letting go of
/// the last copy of the Client (or ResourceClient) that it came from. Not thread-safe, except for
/// cancel(); a stream may be moved, or let go of, while a coroutine waits in async_next().
///
/// A watch ends in four ways: the server closes it in good order (no more events; servers do so
/// every few minutes), it sends an ERROR event (such as 410 Gone) and closes, the connection breaks
/// (TransportError), or an event cannot be decoded (api::DecodeError): what it would have changed
/// is not known then. One continues with a new watch from the last resourceVersion seen, or, after
/// 410 and what cannot be decoded, with a new list: what cache::Reflector does.
class WatchStream {
 public:
  class Impl;
  /// No watch: good for nothing but being assigned to.
  WatchStream();
  explicit WatchStream(std::shared_ptr<Impl> impl);
  WatchStream(WatchStream&&) noexcept;
  WatchStream& operator=(WatchStream&&) noexcept;
  ~WatchStream();

  /// Waits for events and puts them into `events`, in order, in place of what was there; false at
  /// the end of the watch. An event that cannot be decoded is reported
  /// (DecodeOptions::on_malformed) and ends the watch: what came before it is handed out, then this
  /// throws api::DecodeError. Throws TransportError.
  Awaitable<bool> async_next(std::vector<api::WatchEvent>& events);

  /// The blocking twin, one event at a time; nothing at the end of the watch. A stop ends the watch
  /// as cancel() does.
  std::optional<api::WatchEvent> next(std::stop_token stop = {});

  /// Ends the watch from any thread: a waiting or later next() throws TransportError of kind
  /// kCancelled, whatever events there still are.
  void cancel();

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::rest
