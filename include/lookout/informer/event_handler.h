// What a program wants to be told.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "lookout/api/object.h"

namespace lookout::informer {

/// The functions of one handler (client-go's ResourceEventHandlerFuncs, with the filter of its
/// FilteringResourceEventHandler). Any of them may be empty.
///
/// They are called one at a time, in the order of events, on a thread of the handler pool; they may
/// block. Objects are immutable and may be kept. An exception is logged with the handler's name and
/// counted, and the handler goes on with the next event.
///
/// With a filter, an object that begins to pass it is added and one that ceases to is deleted.
template <class T>
struct EventHandler {
  std::function<bool(const T& object)> filter = {};
  /// `initial`: the object was there when the handler was added or when the informer began.
  std::function<void(const T& object, bool initial)> on_add = {};
  std::function<void(const T& before, const T& after)> on_update = {};
  /// `final_state_unknown`: the deletion itself was missed; `last` may not be the last version.
  std::function<void(const T& last, bool final_state_unknown)> on_delete = {};
  /// Called once, when all that was there at first has been told.
  std::function<void()> on_synced = {};
  /// For logs and metrics; by default made of the informer's.
  std::string name = {};
};

/// How a handler is told.
struct HandlerOptions {
  /// How often it is told of everything again (an update from each object to itself); 0: never. By
  /// default what the informer says. An informer that runs looks after this in steps of its own
  /// (SharedIndexInformer::resync_check_period()), and never if it was made without a resync
  /// period.
  std::optional<std::chrono::milliseconds> resync_period = {};
  /// Whether it is told of the latest state only of what has changed again before it came to it. A
  /// slow handler then has no more to do than there are objects: an object that came and went
  /// meanwhile is not told of at all, one that went and came again is an update.
  bool coalesce = false;
};

/// The same handler for objects of any type.
template <class T>
EventHandler<api::Object> untyped(EventHandler<T> handler) {
  if constexpr (std::is_same_v<T, api::Object>) {
    return handler;
  } else {
    EventHandler<api::Object> out;
    out.name = std::move(handler.name);
    out.on_synced = std::move(handler.on_synced);
    if (handler.filter) {
      out.filter = [f = std::move(handler.filter)](const api::Object& object) {
        return f(T(object));
      };
    }
    if (handler.on_add) {
      out.on_add = [f = std::move(handler.on_add)](const api::Object& object, bool initial) {
        f(T(object), initial);
      };
    }
    if (handler.on_update) {
      out.on_update = [f = std::move(handler.on_update)](const api::Object& before,
                                                         const api::Object& after) {
        f(T(before), T(after));
      };
    }
    if (handler.on_delete) {
      out.on_delete = [f = std::move(handler.on_delete)](const api::Object& last, bool unknown) {
        f(T(last), unknown);
      };
    }
    return out;
  }
}

}  // namespace lookout::informer
