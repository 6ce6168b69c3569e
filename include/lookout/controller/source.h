// Where requests come from besides the caches.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/controller/request.h"

namespace lookout::controller {

/// Takes the requests that one event leads to. A request that is named twice counts once, one
/// without a name not at all.
class Enqueue {
 public:
  void operator()(Request request);
  const std::vector<Request>& requests() const { return requests_; }

 private:
  std::vector<Request> requests_;
};

/// The requests that an event about an object leads to: handler.MapFunc. Of an update it is called
/// with the version before and with the new one. It runs on a handler thread, and must be safe to
/// call from several.
using MapFunction = std::function<void(const api::Object& object, Enqueue& enqueue)>;

/// The environment of a source.
struct SourceContext {
  /// Adds a request to the controller's queue; from any thread, of no effect after stop().
  std::function<void(Request request, int priority)> add;
  std::shared_ptr<EventLoop> loop;
  std::shared_ptr<Clock> clock;
  /// Requested when the source is to end, before stop() is called. A source that ends itself, with
  /// WatchHandle::remove() in a function that it calls, so does not call that function again.
  std::stop_token end = {};
};

/// A raw source of requests; the builder's predicates do not apply to it. One source serves one
/// controller.
class Source {
 public:
  virtual ~Source() = default;
  /// Called once, when the controller starts. Calls `ready` when the controller may begin to work,
  /// at once or later, from any thread.
  virtual void start(const SourceContext& context, std::function<void()> ready) = 0;
  /// Called once, not on the event loop. After it returns, the source runs no code of the program.
  virtual void stop() = 0;
  /// For messages.
  virtual std::string name() const = 0;
};

/// Requests that the program sends itself; source.Channel. What is sent before the controller runs
/// waits, each request once, so that no sender is ever blocked.
class Channel : public Source {
 public:
  /// From any thread.
  void send(Request request, int priority = 0);

  void start(const SourceContext& context, std::function<void()> ready) override;
  void stop() override;
  std::string name() const override { return "channel"; }

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::function<void(Request, int)> add_;
  std::map<Request, int> early_;  // with their priorities
  bool stopped_ = false;
};

/// Calls `function` when the controller starts and then once each period, on a thread of its own.
std::shared_ptr<Source> timer(std::chrono::milliseconds period,
                              std::function<void(Enqueue& enqueue)> function);

}  // namespace lookout::controller
