// The state of a cluster, put together from the events at the beginning of a stream.
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

/// Collects what a streamed list brings until its end is announced: nothing of it is seen by
/// anybody before. Nearly always there are additions only; an index by key is made when the first
/// event of another kind comes.
class InitialEvents {
 public:
  /// An addition or a change. An empty handle (a transform failed) leaves things as they are.
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

  /// Everything that is there now, in the order in which it came.
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

/// How long a stream may be silent before somebody should know that the end of its initial events
/// is missing.
inline constexpr std::chrono::seconds kInitialEventsPatience{10};

/// The text of the warning. `last_event` is empty if no event has come.
std::string initial_events_warning(std::string_view reflector, Clock::TimePoint begin,
                                   std::optional<Clock::TimePoint> last_event,
                                   Clock::TimePoint now);

}  // namespace lookout::cache
