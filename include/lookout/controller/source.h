// Source: requests from outside the caches.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/controller/request.h"

namespace lookout::controller {

/// Collects the requests for one event. Duplicates count once; requests without a name are ignored.
class Enqueue {
 public:
  void operator()(Request request);
  const std::vector<Request>& requests() const { return requests_; }

 private:
  std::vector<Request> requests_;
  std::unordered_set<Request> known_;  // the same, once there are many
};

/// Maps an object of an event to requests: handler.MapFunc. For an update it is called with both
/// versions. It runs on a handler thread and must be safe to call from several threads. An exception
/// is logged; requests that were enqueued before it count.
using MapFunction = std::function<void(const api::Object& object, Enqueue& enqueue)>;

/// The environment of a source.
struct SourceContext {
  /// Adds a request to the controller's queue; from any thread; does nothing after stop().
  std::function<void(const Request& request, int priority)> add;
  std::shared_ptr<EventLoop> loop;
  std::shared_ptr<Clock> clock;
  /// Requested when the source must end, before stop() is called. A source that is ended by
  /// WatchHandle::remove() within one of its own functions uses it to avoid calling that function
  /// again.
  std::stop_token end = {};
};

/// A raw source of requests; the builder's predicates do not apply to it. Each source serves one
/// controller.
class Source {
 public:
  virtual ~Source() = default;
  /// Called once, when the controller starts. Calls `ready` when the controller may start to work,
  /// immediately or later, from any thread.
  virtual void start(const SourceContext& context, std::function<void()> ready) = 0;
  /// Called once, not on the event loop. After it returns, the source runs no user code. An exception
  /// is logged.
  virtual void stop() = 0;
  /// For messages.
  virtual std::string name() const = 0;
};

/// Requests from the program itself; source.Channel. Requests that are sent before the controller
/// runs are queued, each once, so that senders never block.
class Channel : public Source {
 public:
  /// Sends a request; from any thread.
  void send(Request request, int priority = 0);

  void start(const SourceContext& context, std::function<void()> ready) override;
  void stop() override;
  std::string name() const override { return "channel"; }

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<const std::function<void(const Request&, int)>> add_;
  std::map<Request, int> early_;  // requests and their priorities
  bool stopped_ = false;
};

/// Calls `function` when the controller starts and then once per period, on its own thread.
std::shared_ptr<Source> timer(std::chrono::milliseconds period,
                              std::function<void(Enqueue& enqueue)> function);

}  // namespace lookout::controller
