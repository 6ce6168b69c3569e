#include "tools/cache/initial_events.h"

#include <fmt/format.h>

namespace lookout::cache {

std::string initial_events_warning(std::string_view reflector, Clock::TimePoint begin,
                                   std::optional<Clock::TimePoint> last_event,
                                   Clock::TimePoint now) {
  const auto seconds = [&](Clock::TimePoint since) {
    return std::chrono::duration_cast<std::chrono::seconds>(now - since).count();
  };
  if (!last_event) {
    return fmt::format("{}: waits for the initial events of a stream, nothing has come for {} s",
                       reflector, seconds(begin));
  }
  return fmt::format(
      "{}: waits for the end of the initial events of a stream, the last event came {} s ago",
      reflector, seconds(*last_event));
}

}  // namespace lookout::cache
