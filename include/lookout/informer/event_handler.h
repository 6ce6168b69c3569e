// EventHandler: the functions of a program that an informer calls.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/informer/handler_function.h"

namespace lookout::informer {

/// Why an object is added (client-go's isInInitialList).
enum class Origin {
  kInitialList,  ///< it existed when the handler was added or the informer started
  kChange        ///< it was created later, or a change made it pass the filter
};

/// Whether the last state of a deleted object is known (client-go's DeletedFinalStateUnknown).
enum class FinalState {
  kKnown,   ///< the deletion was seen: the object is in its final state
  kUnknown  ///< the deletion was missed: the object is in its last known state
};

/// The functions of one handler (client-go's ResourceEventHandlerFuncs, with the filter of its
/// FilteringResourceEventHandler). Any of them may be left out, or
/// be an empty std::function.
///
/// An informer calls them one at a time, in the order of events, on a thread of the handler pool;
/// they may block. Objects are immutable and may be kept. If a function throws, the exception is
/// logged with the handler's name and counted, and the handler continues with the next event.
///
/// With a filter, an object that starts to match is added and one that stops matching is deleted. An
/// object for which the filter throws does not match.
template <class T>
struct EventHandler {
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kFilter, bool(const T& object)> filter = {};
  /// May also take the object only: `[](const Pod& pod) { ... }`.
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kAdd, void(const T& object, Origin origin)> on_add =
      {};
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kUpdate, void(const T& before, const T& after)>
      on_update = {};
  /// May also take the object only.
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kDelete, void(const T& last, FinalState final_state)>
      on_delete = {};
  /// Called once, after the handler has received every initial object.
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kSynced, void()> on_synced = {};
  /// For logs and metrics; by default derived from the informer's name.
  LOOKOUT_OPTION std::string name = {};
};

/// How a handler receives notifications.
struct HandlerOptions {
  /// The time between resyncs (an update from each object to itself); 0: never; empty: the
  /// informer's default. A running informer checks for due resyncs at its own interval
  /// (SharedIndexInformer::resync_check_period()), and never if it was created without a resync
  /// period.
  std::optional<std::chrono::milliseconds> resync_period = {};
  /// Coalesces: delivers only an object's latest queued state. The queue of a slow handler then
  /// never exceeds the number of objects. An object that was created and deleted in the meantime is
  /// not delivered at all; one that was deleted and recreated is delivered as an update.
  bool coalesce = false;
};

/// Converts a typed handler into one for objects of any type.
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
      out.on_add = [f = std::move(handler.on_add)](const api::Object& object, Origin origin) {
        f(T(object), origin);
      };
    }
    if (handler.on_update) {
      out.on_update = [f = std::move(handler.on_update)](const api::Object& before,
                                                         const api::Object& after) {
        f(T(before), T(after));
      };
    }
    if (handler.on_delete) {
      out.on_delete = [f = std::move(handler.on_delete)](const api::Object& last,
                                                         FinalState final_state) {
        f(T(last), final_state);
      };
    }
    return out;
  }
}

}  // namespace lookout::informer
