// A handler that records its notifications.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lookout/informer/event_handler.h"

namespace lookout::informer::test {

/// Notes "+a/x@1" for an addition ("i": initial), "~a/x@1>2" for an update, "-a/x@2" for a deletion
/// ("?": final state unknown). Safe to use from any thread; the handler may outlive it.
class Recorder {
 public:
  using Events = std::vector<std::string>;

  /// May be extended (with a filter, for example) before it is used.
  EventHandler<api::Object> handler(std::string name = "recorder") {
    EventHandler<api::Object> out;
    out.name = std::move(name);
    out.on_add = [notes = notes_](const api::Object& object, Origin origin) {
      notes->add("+" + text(object) + (origin == Origin::kInitialList ? "i" : ""));
    };
    out.on_update = [notes = notes_](const api::Object& before, const api::Object& after) {
      notes->add("~" + text(before) + ">" + std::string(after.resource_version()));
    };
    out.on_delete = [notes = notes_](const api::Object& last, FinalState final_state) {
      notes->add("-" + text(last) + (final_state == FinalState::kUnknown ? "?" : ""));
    };
    return out;
  }

  void note(std::string event) { notes_->add(std::move(event)); }

  Events events() const {
    const std::lock_guard lock(notes_->mutex);
    return notes_->events;
  }
  /// Waits for this many events; returns the events so far after kLongestWait.
  Events wait(std::size_t count) const {
    return wait_until([count](const Events& events) { return events.size() >= count; });
  }
  Events wait_for(const std::string& event) const {
    return wait_until(
        [&](const Events& events) { return !events.empty() && events.back() == event; });
  }

 private:
  struct Notes {
    void add(std::string event) {
      const std::lock_guard lock(mutex);
      events.push_back(std::move(event));
      changed.notify_all();
    }

    std::mutex mutex;
    std::condition_variable changed;
    Events events;  // guarded by mutex
  };

  static std::string text(const api::Object& object) {
    return object.key() + "@" + std::string(object.resource_version());
  }
  Events wait_until(const std::function<bool(const Events&)>& enough) const {
    std::unique_lock lock(notes_->mutex);
    notes_->changed.wait_for(lock, std::chrono::seconds(60),
                             [&] { return enough(notes_->events); });
    return notes_->events;
  }

  const std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

}  // namespace lookout::informer::test
