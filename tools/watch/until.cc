#include "lookout/tools/watch/until.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/enum_names.h"
#include "lookout/rest/error.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/reflector.h"
#include "lookout/tools/watch/retry_watcher.h"
#include "tools/watch/deadline.h"

namespace lookout::watch {

namespace {

const char* message(WaitError::Reason reason) {
  static constexpr auto kNames = base::enum_names<WaitError::Reason>(
      {{WaitError::Reason::kTimeout, "timed out waiting for the condition"},
       {WaitError::Reason::kStopped, "the wait for the condition was stopped"},
       {WaitError::Reason::kClosed, "the watch ended before the condition held"}});
  return kNames.name_of(reason, "").data();
}

}  // namespace

WaitError::WaitError(Reason reason, std::optional<api::WatchEvent> last_event)
    : Error(message(reason)), reason_(reason), last_event_(std::move(last_event)) {}

WaitError::WaitError(Reason reason, const std::string& state)
    : Error(message(reason) + (state.empty() ? "" : ": " + state)), reason_(reason) {}

namespace detail {
namespace {

/// Ends a wait after its timeout. Must not refer to the Deadline, which may be destroyed earlier.
Awaitable<void> expire(std::shared_ptr<Clock> clock, Clock::Duration timeout, std::stop_token done,
                       std::stop_source over, std::shared_ptr<std::atomic<bool>> expired) {
  const bool slept = co_await clock->sleep(timeout, done);
  if (!slept) co_return;
  // (The first stop determines the reason.)
  if (over.stop_requested()) co_return;
  *expired = true;
  over.request_stop();
}

}  // namespace

Deadline::Deadline(const boost::asio::any_io_executor& executor, const WaitOptions& options)
    : clock_(options.clock ? options.clock : Clock::real()),
      forward_(options.stop, Forward{over_}) {
  if (options.timeout.count() <= 0) return;
  boost::asio::co_spawn(
      executor, expire(clock_, Clock::limited(options.timeout), done_.get_token(), over_, expired_),
      boost::asio::detached);
}

Deadline::~Deadline() { done_.request_stop(); }

WaitError Deadline::error(std::optional<api::WatchEvent> last_event) const {
  return {*expired_ ? WaitError::Reason::kTimeout : WaitError::Reason::kStopped,
          std::move(last_event)};
}

WaitError Deadline::error(const std::string& state) const {
  if (!*expired_) return {WaitError::Reason::kStopped, std::string()};
  return {WaitError::Reason::kTimeout, state};
}

}  // namespace detail

namespace {

using detail::Deadline;

/// Passes `first`, then the watcher's events, to the conditions.
Awaitable<api::WatchEvent> fulfil(cache::Watcher& watcher, std::vector<api::WatchEvent> first,
                                  const std::vector<Condition>& conditions,
                                  const Deadline& deadline) {
  api::WatchEvent last;
  bool any = false;
  const auto last_event = [&] {
    return any ? std::optional<api::WatchEvent>(last) : std::optional<api::WatchEvent>();
  };
  std::vector<api::WatchEvent> events = std::move(first);
  std::size_t next = 0;
  for (const Condition& condition : conditions) {
    if (any && condition(last)) continue;
    for (bool held = false; !held;) {
      if (deadline.over()) throw deadline.error(last_event());
      if (next == events.size()) {
        next = 0;
        bool more = false;
        try {
          more = co_await watcher.next(events);
        } catch (const rest::TransportError&) {
          if (deadline.over()) throw deadline.error(last_event());
          throw WaitError(WaitError::Reason::kClosed, last_event());
        }
        if (!more) throw WaitError(WaitError::Reason::kClosed, last_event());
        continue;
      }
      const api::WatchEvent& event = events[next++];
      if (event.type == api::EventType::kBookmark) continue;
      if (event.type == api::EventType::kError) {
        auto status = api::Status::from(event.object);
        if (!status) throw Error("a watch ended with an error that is not a Status");
        throw api::StatusError(std::move(*status));
      }
      last = event;
      any = true;
      held = condition(event);
    }
  }
  co_return last;
}

RetryWatcherOptions retrying(const Deadline& deadline) {
  RetryWatcherOptions out;
  out.clock = deadline.clock();
  return out;
}

/// The informer of until_with_sync(): a reflector that fills a store and reports changes as events.
class InformerWatcher : public cache::Watcher,
                        public std::enable_shared_from_this<InformerWatcher> {
 public:
  InformerWatcher(std::shared_ptr<cache::ListerWatcher> source, const Deadline& deadline,
                  const boost::asio::any_io_executor& executor)
      : bell_(executor, boost::asio::steady_timer::time_point::max()),
        stop_(deadline.token()),
        controller_(store_, {},
                    [this](std::vector<cache::Notification> notifications) {
                      take(std::move(notifications));
                    }),
        reflector_(
            cache::Reflector::create(std::move(source), controller_, options(deadline.clock()))),
        on_stop_(stop_, [this] { stop(); }) {}

  /// Everything runs on the strand of the waiting coroutine.
  static void start(const std::shared_ptr<InformerWatcher>& self) {
    boost::asio::co_spawn(self->bell_.get_executor(), run(self), boost::asio::detached);
  }
  /// Asks the reflector to end.
  void stop() { end_.request_stop(); }
  Awaitable<void> wait_ended() {
    while (!ended_) co_await wait();
  }
  Awaitable<void> wait_synced() {
    while (!controller_.has_synced() && !ended_) co_await wait();
  }
  bool has_synced() const { return controller_.has_synced(); }
  const cache::Indexer& store() const { return store_; }

  Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
    while (events_.empty() && !ended_) co_await wait();
    events.assign(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
    events_.clear();
    co_return !events.empty();
  }

 private:
  static cache::ReflectorOptions options(std::shared_ptr<Clock> clock) {
    cache::ReflectorOptions out;
    out.name = "until";
    out.clock = std::move(clock);
    return out;
  }
  static Awaitable<void> run(std::shared_ptr<InformerWatcher> self) {
    try {
      co_await self->reflector_->run(self->end_.get_token());
    } catch (...) {
      // The error has been logged; the wait ends with kClosed.
    }
    self->ended_ = true;
    self->bell_.cancel();
  }
  void take(std::vector<cache::Notification> notifications) {
    using Type = cache::Notification::Type;
    for (auto& one : notifications) {
      if (one.sync) continue;
      const auto type = one.type == Type::kAdd      ? api::EventType::kAdded
                        : one.type == Type::kUpdate ? api::EventType::kModified
                                                    : api::EventType::kDeleted;
      events_.push_back({type, std::move(one.object)});
    }
    bell_.cancel();
  }
  Awaitable<void> wait() {
    boost::system::error_code ignored;
    co_await bell_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }

  boost::asio::steady_timer bell_;
  const std::stop_token stop_;
  std::stop_source end_;
  bool ended_ = false;
  std::deque<api::WatchEvent> events_;
  cache::Indexer store_{
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace}}};
  cache::Controller controller_;
  const std::shared_ptr<cache::Reflector> reflector_;
  const std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace

Awaitable<api::WatchEvent> async_until_without_retry(std::shared_ptr<cache::ListerWatcher> source,
                                                     std::string resource_version,
                                                     std::vector<Condition> conditions,
                                                     WaitOptions options) {
  const Deadline deadline(co_await boost::asio::this_coro::executor, options);
  rest::ListOptions list;
  list.resource_version = std::move(resource_version);
  std::unique_ptr<cache::Watcher> watcher;
  try {
    watcher = co_await source->watch(std::move(list), deadline.token());
  } catch (const rest::TransportError&) {
    if (deadline.over()) throw deadline.error(std::nullopt);
    throw;
  }
  co_return co_await fulfil(*watcher, {}, conditions, deadline);
}

Awaitable<api::WatchEvent> async_until(std::shared_ptr<cache::ListerWatcher> source,
                                       std::string resource_version,
                                       std::vector<Condition> conditions, WaitOptions options) {
  const Deadline deadline(co_await boost::asio::this_coro::executor, options);
  RetryWatcher watcher(std::move(source), std::move(resource_version), deadline.token(),
                       retrying(deadline));
  co_return co_await fulfil(watcher, {}, conditions, deadline);
}

Awaitable<api::WatchEvent> async_list_watch_until(std::shared_ptr<cache::ListerWatcher> source,
                                                  std::vector<Condition> conditions,
                                                  WaitOptions options) {
  const Deadline deadline(co_await boost::asio::this_coro::executor, options);
  std::vector<api::WatchEvent> items;
  rest::ListOptions page;
  rest::ListMeta meta;
  const cache::ListerWatcher::OnItem on_item = [&items](api::Object object) {
    items.push_back({api::EventType::kAdded, std::move(object)});
  };
  try {
    do {
      page.continue_token = meta.continue_token;
      meta = co_await source->list(on_item, page, deadline.token());
      if (meta.malformed_items > 0)
        throw api::DecodeError("the list to wait on has items that cannot be decoded");
    } while (!meta.continue_token.empty());
  } catch (const rest::TransportError&) {
    if (deadline.over()) throw deadline.error(std::nullopt);
    throw;
  }
  RetryWatcher watcher(std::move(source), meta.resource_version, deadline.token(),
                       retrying(deadline));
  co_return co_await fulfil(watcher, std::move(items), conditions, deadline);
}

Awaitable<std::optional<api::WatchEvent>> async_until_with_sync(
    std::shared_ptr<cache::ListerWatcher> source, Precondition precondition,
    std::vector<Condition> conditions, WaitOptions options) {
  const auto executor = co_await boost::asio::this_coro::executor;
  const Deadline deadline(executor, options);
  const auto watcher = std::make_shared<InformerWatcher>(std::move(source), deadline, executor);
  InformerWatcher::start(watcher);
  std::optional<api::WatchEvent> out;
  std::exception_ptr failed;
  try {
    bool settled = false;
    if (precondition) {
      co_await watcher->wait_synced();
      if (!watcher->has_synced()) throw deadline.error(std::nullopt);
      settled = precondition(watcher->store());
    }
    if (!settled) out = co_await fulfil(*watcher, {}, conditions, deadline);
  } catch (const WaitError& e) {
    // (The informer ends when the wait does.)
    failed = deadline.over() ? std::make_exception_ptr(deadline.error(e.last_event()))
                             : std::current_exception();
  } catch (...) {
    failed = std::current_exception();
  }
  watcher->stop();
  co_await watcher->wait_ended();
  if (failed) std::rethrow_exception(failed);
  co_return out;
}

api::WatchEvent until_without_retry(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                                    std::string resource_version, std::vector<Condition> conditions,
                                    WaitOptions options) {
  return loop.run(async_until_without_retry(std::move(source), std::move(resource_version),
                                            std::move(conditions), std::move(options)));
}

api::WatchEvent until(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                      std::string resource_version, std::vector<Condition> conditions,
                      WaitOptions options) {
  return loop.run(async_until(std::move(source), std::move(resource_version), std::move(conditions),
                              std::move(options)));
}

api::WatchEvent list_watch_until(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                                 std::vector<Condition> conditions, WaitOptions options) {
  return loop.run(
      async_list_watch_until(std::move(source), std::move(conditions), std::move(options)));
}

std::optional<api::WatchEvent> until_with_sync(EventLoop& loop,
                                               std::shared_ptr<cache::ListerWatcher> source,
                                               Precondition precondition,
                                               std::vector<Condition> conditions,
                                               WaitOptions options) {
  return loop.run(async_until_with_sync(std::move(source), std::move(precondition),
                                        std::move(conditions), std::move(options)));
}

}  // namespace lookout::watch
