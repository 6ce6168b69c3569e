// The functions of a program that an informer calls.
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
  kInitialList,  ///< it was there when the handler was added, or when the informer began
  kChange        ///< it came later, or a change of it made it pass the filter
};

/// Whether a deleted object is in its final state (client-go's DeletedFinalStateUnknown).
enum class FinalState {
  kKnown,   ///< the deletion was seen: the object is as it was at the end
  kUnknown  ///< the deletion was missed: the object is in its last known state
};

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
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kFilter, bool(const T& object)> filter = {};
  /// A function of the object alone will do: `[](const Pod& pod) { ... }`.
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kAdd, void(const T& object, Origin origin)> on_add =
      {};
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kUpdate, void(const T& before, const T& after)>
      on_update = {};
  /// A function of the object alone will do here, too.
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kDelete, void(const T& last, FinalState final_state)>
      on_delete = {};
  /// Called once, after the handler has got every initial object.
  LOOKOUT_OPTION HandlerFunction<HandlerPart::kSynced, void()> on_synced = {};
  /// For logs and metrics; by default made of the informer's.
  LOOKOUT_OPTION std::string name = {};
};

/// How notifications reach a handler.
struct HandlerOptions {
  /// The time between resyncs (an update from each object to itself); 0: never. The informer has
  /// the default. A running informer looks for due resyncs in steps of its own
  /// (SharedIndexInformer::resync_check_period()), and never if it was made without a resync
  /// period.
  std::optional<std::chrono::milliseconds> resync_period = {};
  /// Coalesces: delivers only an object's latest queued state. The queue of a slow handler is then
  /// never longer than the number of objects. An object that came and went meanwhile is not
  /// delivered at all; one that went and came again is an update.
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
