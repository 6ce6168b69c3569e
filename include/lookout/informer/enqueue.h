// enqueue(): an event handler that feeds a work queue.
#pragma once

#include <string>
#include <utility>

#include "lookout/informer/event_handler.h"
#include "lookout/tools/workqueue/queue.h"

namespace lookout::informer {

/// A handler that adds the key ("namespace/name") of each added, changed or deleted object to a
/// work queue, as most controllers do.
///
///     handler_ = pods.add_handler(informer::enqueue<Pod>(queue_));
///
/// The handler does not keep the queue alive; after the queue is destroyed, it does nothing.
template <class T, class Hash>
EventHandler<T> enqueue(const workqueue::Queue<std::string, Hash>& queue, std::string name = {}) {
  EventHandler<T> out;
  out.name = std::move(name);
  out.on_add = [add = queue.adder()](const T& object) { add(object.key()); };
  out.on_update = [add = queue.adder()](const T&, const T& after) { add(after.key()); };
  out.on_delete = [add = queue.adder()](const T& last) { add(last.key()); };
  return out;
}

}  // namespace lookout::informer
