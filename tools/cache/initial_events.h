// InitialEvents: the state at the beginning of a watch list.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/clock.h"

namespace lookout::cache {

/// Collects the initial events of a watch list until the state is complete. Nearly always there are
/// only additions; the index by key is created on the first event of another type.
class InitialEvents {
 public:
  /// An addition or a change. An empty handle (a failed transform) is ignored.
  void put(api::Object object, bool added) {
    if (!object) return;
    if (!added) index();
    if (indexed_) {
      const auto [at, inserted] = positions_.try_emplace(object.key(), objects_.size());
      if (!inserted) {
        objects_[at->second] = std::move(object);
        return;
      }
    }
    objects_.push_back(std::move(object));
  }

  void remove(const api::Object& object) {
    index();
    const auto at = positions_.find(object.key());
    if (at == positions_.end()) return;
    objects_[at->second] = {};
    positions_.erase(at);
  }

  /// Returns all objects, in order of arrival.
  std::vector<api::Object> take() {
    std::erase_if(objects_, [](const api::Object& object) { return !object; });
    positions_.clear();
    return std::move(objects_);
  }

 private:
  void index() {
    if (std::exchange(indexed_, true)) return;
    for (std::size_t i = 0; i < objects_.size(); ++i)
      positions_.insert_or_assign(objects_[i].key(), i);
  }

  std::vector<api::Object> objects_;
  std::unordered_map<std::string, std::size_t> positions_;
  bool indexed_ = false;
};

/// How long a watch list may be silent before the end of its initial events, without a warning.
inline constexpr std::chrono::seconds kInitialEventsPatience{10};

/// The text of the warning. `last_event` is empty if no event has come.
std::string initial_events_warning(std::string_view reflector, Clock::TimePoint begin,
                                   std::optional<Clock::TimePoint> last_event,
                                   Clock::TimePoint now);

}  // namespace lookout::cache
