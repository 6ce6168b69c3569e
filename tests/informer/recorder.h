// A handler that writes down what it is told.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lookout/informer/event_handler.h"

namespace lookout::informer::test {

/// Notes "+a/x@1" for an addition ("i": initial), "~a/x@1>2" for an update, "-a/x@2" for a deletion
/// ("?": final state unknown). Safe to use from any thread; must outlive the handler.
class Recorder {
 public:
  using Events = std::vector<std::string>;

  /// May be completed (with a filter, say) before it is used.
  EventHandler<api::Object> handler(std::string name = "recorder") {
    EventHandler<api::Object> out;
    out.name = std::move(name);
    out.on_add = [this](const api::Object& object, bool initial) {
      note("+" + text(object) + (initial ? "i" : ""));
    };
    out.on_update = [this](const api::Object& before, const api::Object& after) {
      note("~" + text(before) + ">" + std::string(after.resource_version()));
    };
    out.on_delete = [this](const api::Object& last, bool unknown) {
      note("-" + text(last) + (unknown ? "?" : ""));
    };
    return out;
  }

  void note(std::string event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }

  Events events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  /// Waits until there are so many; gives up, with what there is, after longer than anything takes
  /// that works.
  Events wait(std::size_t count) const {
    return wait_until([count](const Events& events) { return events.size() >= count; });
  }
  Events wait_for(const std::string& event) const {
    return wait_until(
        [&](const Events& events) { return !events.empty() && events.back() == event; });
  }

 private:
  static std::string text(const api::Object& object) {
    return object.key() + "@" + std::string(object.resource_version());
  }
  Events wait_until(const std::function<bool(const Events&)>& enough) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return enough(events_); });
    return events_;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Events events_;  // guarded by mutex_
};

}  // namespace lookout::informer::test
