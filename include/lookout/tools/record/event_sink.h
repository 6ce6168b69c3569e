// EventSink: the destination of events.
#pragma once

#include <memory>
#include <string>

#include "lookout/api/object.h"
#include "lookout/base/event_loop.h"
#include "lookout/rest/client.h"
#include "lookout/rest/options.h"

namespace lookout::record {

/// The two APIs of events. A server shows each event in both.
enum class EventsApi {
  kCore,    ///< v1: repetitions are counted, similar events are combined, spam is dropped
  kEvents,  ///< events.k8s.io/v1: repetitions become a series
};

/// Writes events; client-go's EventSink. Called on the event loop; must not block. Both calls throw
/// what rest::ResourceClient throws.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual Awaitable<void> create(api::Object event, rest::CallOptions call) = 0;
  /// `patch` is a strategic merge patch.
  virtual Awaitable<void> patch(std::string ns, std::string name, std::string patch,
                                rest::CallOptions call) = 0;
};

/// A sink that writes to an API server.
std::shared_ptr<EventSink> make_event_sink(rest::Client client, EventsApi api);

}  // namespace lookout::record
