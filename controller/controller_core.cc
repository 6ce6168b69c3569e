#include "controller/controller_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <utility>

#include "controller/in_source.h"
#include "controller/waiting.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/controller/cluster.h"
#include "lookout/k8s/meta/v1.h"
#include "lookout/rest/error.h"

namespace lookout::controller {
namespace {

std::string_view group_of(std::string_view api_version) {
  const auto slash = api_version.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

}  // namespace

MapFunction enqueue_object() {
  return [](const api::Object& object, Enqueue& enqueue) {
    enqueue(Request(object.ns(), object.name()));
  };
}

MapFunction enqueue_owner(api::Resource owner, bool match_any_owner) {
  return [owner = std::move(owner), match_any_owner](const api::Object& object, Enqueue& enqueue) {
    for (const auto reference : object.metadata().owner_references()) {
      if (reference.kind() != owner.kind || group_of(reference.api_version()) != owner.group)
        continue;
      if (!match_any_owner && reference.controller() != true) continue;
      enqueue(Request(owner.namespaced ? object.ns() : std::string_view(), reference.name()));
    }
  };
}

// ---------------------------------------------------------------------------------- skins

WatchHandle::WatchHandle(std::shared_ptr<detail::Attachment> watch) : watch_(std::move(watch)) {}

WatchHandle::~WatchHandle() {
  if (!watch_) return;
  if (watch_->loop()->running_in_this_thread()) {
    detail::Attachment::begin_remove(watch_);
  } else {
    remove();
  }
}

WatchHandle::WatchHandle(WatchHandle&& other) noexcept = default;

WatchHandle& WatchHandle::operator=(WatchHandle&& other) noexcept {
  // The destructor of `before` removes the previous watch.
  const WatchHandle before(std::exchange(watch_, nullptr));
  watch_ = std::exchange(other.watch_, nullptr);
  return *this;
}

void WatchHandle::remove() {
  if (!watch_) return;
  if (watch_->loop()->running_in_this_thread()) {
    throw InvalidArgument(
        "WatchHandle::remove() on the event loop would wait for itself: use async_remove()");
  }
  const auto watch = std::exchange(watch_, nullptr);
  if (detail::InSource::here()) {
    detail::Attachment::begin_remove(watch);
  } else {
    watch->remove();
  }
}

Awaitable<void> WatchHandle::async_remove() {
  auto watch = std::exchange(watch_, nullptr);
  if (watch) co_await detail::Attachment::async_remove(std::move(watch));
}

bool WatchHandle::has_synced() const {
  return watch_ && watch_->open() && watch_->ready().stop_requested();
}

Controller::Controller(const std::shared_ptr<detail::ControllerCore>& core)
    : name_(core->name()), core_(core) {}

std::shared_ptr<detail::ControllerCore> Controller::core() const {
  auto out = core_.lock();
  if (!out) {
    throw InvalidArgument(name_.empty() ? std::string("a Controller without a controller")
                                        : fmt::format("controller {}: its manager is gone", name_));
  }
  return out;
}

WatchHandle Controller::watch(Watch watch) const {
  return WatchHandle(core()->watch(std::move(watch)));
}
WatchHandle Controller::watch(std::shared_ptr<Source> source) const {
  return WatchHandle(core()->watch(std::move(source)));
}

namespace detail {
namespace {

/// Some of controller-runtime's buckets for reconcile times.
constexpr std::array<double, 12> kReconcileBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                      0.5,   1,    2.5,   5,    10,  60};

/// After this many reconciles without a wait, a coroutine yields the thread.
constexpr unsigned kBurst = 32;

/// The longest Retry-After that a request respects.
constexpr std::chrono::minutes kLongestPause{2};

/// The delay of a retry if the rate limiter throws.
constexpr Clock::Duration kWithoutLimiter = std::chrono::seconds(5);

bool is_terminal(const std::exception& e) {
  if (dynamic_cast<const TerminalError*>(&e) != nullptr) return true;
  try {
    std::rethrow_if_nested(e);
  } catch (const std::exception& nested) {
    return is_terminal(nested);
  } catch (...) {
    return false;
  }
  return false;
}

/// The Retry-After of a failed request. The client has waited as long as the request's deadline allows;
/// without this delay, the request would be retried within milliseconds.
Clock::Duration asked_pause(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    if (const auto delay = api::suggests_client_delay(e))
      return std::min<Clock::Duration>(*delay, kLongestPause);
    if (const auto* const nested = dynamic_cast<const std::nested_exception*>(&e)) {
      if (nested->nested_ptr()) return asked_pause(nested->nested_ptr());
    }
  } catch (...) {
    // Other exceptions have no Retry-After.
  }
  return Clock::Duration::zero();
}

}  // namespace

// ---------------------------------------------------------------------------------- watches

/// The events of one kind of the cache.
class ControllerCore::KindSource : public controller::Source {
 public:
  /// Calls nothing once `open` is false. `number`: counts the controller's watches of this kind from 1, to
  /// distinguish their handlers in metrics.
  KindSource(std::string controller, std::shared_ptr<const CachedKind> kind, std::size_t number,
             Watch watch, Attachment::Flag open)
      : controller_(std::move(controller)),
        kind_(std::move(kind)),
        number_(number),
        watch_(std::make_shared<const Watch>(std::move(watch))),
        open_(std::move(open)) {}

  void start(const SourceContext& context, std::function<void()> ready) override {
    // Do not wait for refused namespaces.
    std::vector<bool> awaited;
    awaited.reserve(kind_->parts.size());
    for (const auto& part : kind_->parts) awaited.push_back(!kind_->refused(part));
    const auto left = std::make_shared<std::atomic<std::ptrdiff_t>>(
        std::count(awaited.begin(), awaited.end(), true));
    if (*left == 0) ready();
    for (std::size_t i = 0; i < awaited.size(); ++i) {
      const auto& part = kind_->parts[i];
      const auto handle = [watch = watch_, open = open_, add = context.add,
                           name = name()](const Event& event) {
        if (!*open) return;
        const InSource in_source;
        if (!passes(*watch, event, name)) return;
        Enqueue enqueue;
        std::exception_ptr error;
        if (event.type == Event::Type::kUpdate) error = map(*watch, event.before, enqueue);
        if (const auto other = map(*watch, event.object, enqueue)) error = other;
        // Objects of a first list or a resync have low priority.
        const bool old =
            event.initial || (event.type == Event::Type::kUpdate &&
                              event.before.resource_version() == event.object.resource_version());
        for (const Request& request : enqueue.requests()) add(request, old ? kLowPriority : 0);
        // For the log and the metrics of the informer.
        if (error) std::rethrow_exception(error);
      };
      informer::EventHandler<api::Object> handler;
      handler.name = fmt::format("controller {}, {}", controller_, part.informer->name());
      if (number_ > 1) handler.name += fmt::format(", {}", number_);
      handler.on_add = [handle](const api::Object& object, informer::Origin origin) {
        Event event;
        event.object = object;
        event.initial = origin == informer::Origin::kInitialList;
        handle(event);
      };
      handler.on_update = [handle](const api::Object& before, const api::Object& after) {
        Event event;
        event.type = Event::Type::kUpdate;
        event.before = before;
        event.object = after;
        handle(event);
      };
      handler.on_delete = [handle](const api::Object& last, informer::FinalState final_state) {
        Event event;
        event.type = Event::Type::kDelete;
        event.object = last;
        event.final_state_unknown = final_state == informer::FinalState::kUnknown;
        handle(event);
      };
      if (awaited[i]) {
        handler.on_synced = [left, ready] {
          if (left->fetch_sub(1) == 1) ready();
        };
      }
      registrations_.push_back(part.informer->add_handler(std::move(handler)));
    }
  }

  /// Waits for running calls, except on the event loop, where a coroutine may add and remove watches.
  void stop() override { registrations_.clear(); }

  std::string name() const override { return kind_->name(); }

 private:
  static bool passes(const Watch& watch, const Event& event, const std::string& name) {
    try {
      return watch.predicate(event);
    } catch (const std::exception& e) {
      log::error("a predicate on {} threw; the event passes: {}", name, e.what());
    } catch (...) {
      log::error("a predicate on {} threw; the event passes", name);
    }
    return true;
  }

  /// Requests that were enqueued before an exception count, because the event is not repeated.
  static std::exception_ptr map(const Watch& watch, const api::Object& object, Enqueue& enqueue) {
    try {
      watch.map(object, enqueue);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  const std::string controller_;
  const std::shared_ptr<const CachedKind> kind_;
  const std::size_t number_;
  const std::shared_ptr<const Watch> watch_;
  const Attachment::Flag open_;
  std::vector<informer::HandlerRegistration> registrations_;
};

/// The stop of one reconcile, requested by the controller's stop or by the timeout.
class ControllerCore::Deadline {
 public:
  /// Logs immediately at the timeout, because the reconciler may never return.
  Deadline(ControllerCore& core, const Request& request, std::uint64_t number,
           std::chrono::milliseconds timeout)
      : state_(std::make_shared<State>()),
        on_stop_(core.stop_.get_token(), [state = state_] { state->stop.request_stop(); }),
        alarm_(core.environment_->client.shared_loop(), core.clock_,
               [state = state_, weak = core.weak_from_this(), request, number, timeout] {
                 if (const auto self = weak.lock()) {
                   ++self->stats_.timeouts;
                   self->environment_->ids->logger(self->name(), request, number)
                       .warn("stopping the reconciler after {} ms (timeout)", timeout.count());
                 }
                 state->stop.request_stop();
               }) {
    alarm_.set(end_of(timeout, core.clock_->now()));
  }
  std::stop_token token() const { return state_->stop.get_token(); }

 private:
  struct State {
    std::stop_source stop;
  };
  const std::shared_ptr<State> state_;
  const std::stop_callback<std::function<void()>> on_stop_;
  Alarm alarm_;
};

/// One call of the reconciler.
struct ControllerCore::Reconcile {
  Reconcile(ControllerCore& core, const PriorityQueue::Item& item)
      : number(core.environment_->ids->next()),
        deadline(core.options_.reconcile_timeout.count() > 0
                     ? std::make_unique<Deadline>(core, item.request, number,
                                                  core.options_.reconcile_timeout)
                     : nullptr),
        context(core.environment_, item.request,
                deadline ? deadline->token() : core.stop_.get_token(), number) {
    core.look_for_hot_loop(item, context);
  }

  const std::uint64_t number;
  const std::unique_ptr<Deadline> deadline;
  Context context;
};

// ---------------------------------------------------------------------------------- life

ControllerCore::Stats::Stats() : seconds(kReconcileBuckets) {}

namespace {

std::shared_ptr<PriorityQueue> make_queue(const ControllerOptions& options,
                                          const Environment& environment,
                                          const std::shared_ptr<Clock>& clock) {
  PriorityQueueOptions out;
  out.name = options.name;
  out.loop = environment.client.shared_loop();
  out.clock = clock;
  out.rate_limiter = options.rate_limiter;
  out.debounce = options.debounce;
  return std::make_shared<PriorityQueue>(std::move(out));
}

}  // namespace

std::shared_ptr<ControllerCore> ControllerCore::create(ControllerSpec spec, Environment environment,
                                                       unsigned default_concurrency,
                                                       std::shared_ptr<Clock> clock) {
  std::shared_ptr<ControllerCore> core(new ControllerCore(std::move(spec), std::move(environment),
                                                          default_concurrency, std::move(clock)));
  if (!std::holds_alternative<ReconcileFunction>(core->reconcile_)) {
    // Sources add requests before run() begins.
    core->queue_->on_ready([weak = std::weak_ptr(core)] {
      if (const auto self = weak.lock()) self->pump_soon();
    });
  }
  return core;
}

ControllerCore::ControllerCore(ControllerSpec spec, Environment environment,
                               unsigned default_concurrency, std::shared_ptr<Clock> clock)
    : options_(std::move(spec.options)),
      concurrency_(std::max(1u, options_.concurrency.value_or(default_concurrency))),
      clock_(std::move(clock)),
      environment_(std::make_shared<const Environment>(std::move(environment))),
      reconcile_(std::move(spec.reconcile)),
      queue_(make_queue(options_, *environment_, clock_)),
      strand_(boost::asio::make_strand(environment_->client.loop().context())),
      hot_loops_(options_.hot_loop) {
  sources_.reserve(spec.sources.size() + spec.watches.size());
  for (auto& source : spec.sources) sources_.push_back(attachment(std::move(source)));
  kinds_.reserve(spec.watches.size());
  for (Watch& watch : spec.watches) {
    auto kind = cache_of(watch)->use(watch.resource, watch.metadata_only);
    kinds_.push_back(kind);
    const bool primary = !watch.cluster && watch.resource == environment_->primary;
    if (primary && (!primary_ || primary_->metadata_only)) primary_ = kind;
    sources_.push_back(attachment(std::move(kind), std::move(watch)));
  }
}

// ---------------------------------------------------------------------------------- sources

std::shared_ptr<Attachment> ControllerCore::attachment(
    std::shared_ptr<controller::Source> source) const {
  return std::make_shared<Attachment>(std::move(source), std::make_shared<std::atomic<bool>>(true),
                                      environment_->client.shared_loop(), clock_);
}

std::shared_ptr<Attachment> ControllerCore::attachment(std::shared_ptr<const CachedKind> kind,
                                                       Watch watch,
                                                       std::function<void()> detached) {
  auto open = std::make_shared<std::atomic<bool>>(true);
  std::shared_ptr<KindSource> source;
  {
    const std::lock_guard lock(mutex_);
    auto& watches = watches_[kind->name()];
    // Reuse the number of a removed watch.
    auto place = std::find_if(watches.begin(), watches.end(),
                              [](const auto& watched) { return watched.expired(); });
    if (place == watches.end()) place = watches.emplace(place);
    const auto number = static_cast<std::size_t>(place - watches.begin()) + 1;
    source = std::make_shared<KindSource>(options_.name, std::move(kind), number, std::move(watch),
                                          open);
    *place = source;
  }
  return std::make_shared<Attachment>(std::move(source), std::move(open),
                                      environment_->client.shared_loop(), clock_,
                                      std::move(detached));
}

std::shared_ptr<CacheCore> ControllerCore::cache_of(const Watch& watch) const {
  if (!watch.cluster) return environment_->cache;
  const auto& out = watch.cluster->cache().core();
  if (out->is_adopted_by(*environment_->cache)) return out;
  throw InvalidArgument(fmt::format("controller {}: add the cluster {} to the manager first",
                                    name(), watch.cluster->name()));
}

SourceContext ControllerCore::source_context() const {
  SourceContext context;
  context.loop = environment_->client.shared_loop();
  context.clock = clock_;
  context.add = [queue = queue_](const Request& request, int priority) {
    queue->add(request, priority);
  };
  return context;
}

std::shared_ptr<Attachment> ControllerCore::watch(Watch watch) {
  if (!watch.map) {
    throw InvalidArgument(fmt::format("controller {}: the map function of a watch of {} is empty",
                                      name(), watch.resource.plural));
  }
  const auto cache = cache_of(watch);
  auto kind = cache->use(watch.resource, watch.metadata_only);
  const auto give_back = [weak = std::weak_ptr(cache), kind] {
    if (const auto owner = weak.lock()) owner->unuse(kind);
  };
  try {
    return attach(attachment(kind, std::move(watch), give_back));
  } catch (...) {
    give_back();
    throw;
  }
}

std::shared_ptr<Attachment> ControllerCore::watch(std::shared_ptr<controller::Source> source) {
  if (!source) throw InvalidArgument(fmt::format("controller {}: a source is null", name()));
  return attach(attachment(std::move(source)));
}

std::shared_ptr<Attachment> ControllerCore::attach(std::shared_ptr<Attachment> source) {
  bool start = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) {
      throw InvalidArgument(
          fmt::format("controller {}: it has ended, nothing can be watched any more", name()));
    }
    // Removed sources are erased here; the order of the others is kept.
    const auto removed = [](const auto& one) { return one->stopped(); };
    const auto needed = sources_.begin() + static_cast<std::ptrdiff_t>(needed_);
    needed_ -= static_cast<std::size_t>(std::count_if(sources_.begin(), needed, removed));
    std::erase_if(sources_, removed);
    sources_.push_back(source);
    start = sources_started_;
  }
  if (start) source->start(source_context());
  return source;
}

Awaitable<void> ControllerCore::warm_up(std::stop_token stop) {
  bool start = false;
  std::vector<std::shared_ptr<Attachment>> sources;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) co_return;
    start = !std::exchange(sources_started_, true);
    // Do not wait for later watches: a kind that is discovered at run time must not fail the start.
    if (start) needed_ = sources_.size();
    sources.assign(sources_.begin(), sources_.begin() + static_cast<std::ptrdiff_t>(needed_));
  }
  if (start) {
    std::vector<std::string> watched;
    watched.reserve(sources.size());
    for (const auto& source : sources) watched.push_back(source->name());
    log::info("controller {}: watches {}", name(), fmt::join(watched, ", "));
    // For a controller that is added late. Afterwards, refused namespaces are known.
    co_await environment_->cache->wait_for_sync(kinds_, stop);
    if (stop.stop_requested()) co_return;
    const std::function<void()> start_sources = [this, &sources] {
      const SourceContext context = source_context();
      for (const auto& source : sources) source->start(context);
    };
    co_await on_thread(clock_, start_sources);
  }
  const auto deadline = end_of(sync_limit(options_.sync_timeout), clock_->now());
  for (const auto& source : sources) {
    std::stop_source wake;
    const std::stop_callback on_stop(stop, [&] { wake.request_stop(); });
    const std::stop_callback on_ready(source->ready(), [&] { wake.request_stop(); });
    const bool woken = co_await wait_until(clock_, wake.get_token(), deadline);
    if (!woken) {
      throw Error(fmt::format("controller {}: its source {} was not ready in time", name(),
                              source->name()));
    }
    if (stop.stop_requested()) co_return;
  }
}

Awaitable<void> ControllerCore::run(std::stop_token stop) {
  const std::stop_callback on_stop(stop, [this] { stop_.request_stop(); });
  co_await warm_up(stop);
  if (stop.stop_requested()) co_return;
  log::info("controller {}: started: reconciles {}, concurrency {}", name(),
            environment_->primary.plural.empty() ? std::string("requests of its sources")
                                                 : environment_->primary.qualified_name(),
            concurrency_);
  if (std::holds_alternative<ReconcileFunction>(reconcile_)) {
    // The workers end when the queue is shut down.
    const std::function<void()> work_all = [this] {
      run_on_threads(
          concurrency_, [this] { work(); },
          [this] {
            stop_.request_stop();
            queue_->shut_down();
          });
    };
    const std::stop_callback shut_down(stop, [this] { queue_->shut_down(); });
    co_await on_thread(clock_, work_all);
    co_return;
  }
  boost::asio::post(strand_, [self = shared_from_this()] {
    self->accepting_ = true;
    self->pump();
  });
  co_await wait_for(clock_, stop);
  queue_->shut_down();
  boost::asio::post(strand_, [self = shared_from_this()] {
    self->accepting_ = false;
    if (self->active_ == 0) self->idle_.request_stop();
  });
  co_await wait_for(clock_, idle_.get_token());
}

void ControllerCore::end() {
  std::vector<std::shared_ptr<Attachment>> sources;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    sources.swap(sources_);
  }
  stop_.request_stop();
  queue_->shut_down();
  for (const auto& source : sources) source->stop();
}

// ---------------------------------------------------------------------------------- work

std::optional<std::int64_t> ControllerCore::generation_of(const Request& request) const {
  const auto kind = primary_ ? primary_ : environment_->cache->find_any(environment_->primary);
  const auto* const part = kind ? kind->part_for(request.ns) : nullptr;
  if (part == nullptr) return std::nullopt;
  const api::Object object = part->informer->store().get(request.ns, request.name);
  return object ? object.metadata().generation() : std::nullopt;
}

void ControllerCore::look_for_hot_loop(const PriorityQueue::Item& item, const Context& context) {
  if (!hot_loops_.enabled()) return;
  const auto generation = [&] { return generation_of(item.request); };
  if (!hot_loops_.note(item.request, generation, item.since)) return;
  ++stats_.hot_loops;
  context.logger().warn(
      "reconciled {} times within a second, but its generation "
      "did not change: does each reconcile trigger the next one with a write?",
      options_.hot_loop);
}

void ControllerCore::work() {
  const auto& function = std::get<ReconcileFunction>(reconcile_);
  while (const auto item = queue_->get()) {
    Reconcile one(*this, *item);
    Result result;
    std::exception_ptr error;
    try {
      result = function(item->request, one.context);
    } catch (...) {
      error = std::current_exception();
    }
    finish(*item, one, result, error);
  }
}

void ControllerCore::pump_soon() {
  if (pump_posted_.exchange(true)) return;
  boost::asio::post(strand_, [self = shared_from_this()] {
    self->pump_posted_ = false;
    self->pump();
  });
}

void ControllerCore::pump() {
  while (accepting_ && active_ < concurrency_) {
    auto item = queue_->try_get();
    if (!item) return;
    ++active_;
    boost::asio::co_spawn(
        boost::asio::make_strand(environment_->client.loop().context()),
        reconcile_all(shared_from_this(), std::move(*item)),
        boost::asio::bind_executor(strand_, [self = shared_from_this()](std::exception_ptr) {
          --self->active_;
          if (!self->accepting_ && self->active_ == 0) self->idle_.request_stop();
          self->pump();
        }));
  }
}

Awaitable<void> ControllerCore::reconcile_all(std::shared_ptr<ControllerCore> self,
                                              PriorityQueue::Item item) {
  const auto& function = std::get<AsyncReconcileFunction>(self->reconcile_);
  // Starting a coroutine and waiting for its end costs more than a no-op reconcile.
  bool more = true;
  for (unsigned count = 1; more; ++count) {
    {
      Reconcile one(*self, item);
      Result result;
      std::exception_ptr error;
      try {
        result = co_await function(item.request, one.context);
      } catch (...) {
        error = std::current_exception();
      }
      self->finish(item, one, result, error);
    }
    if (count % kBurst == 0) co_await boost::asio::post(boost::asio::use_awaitable);
    auto next = self->queue_->try_get();
    more = next.has_value();
    if (more) item = std::move(*next);
  }
}

void ControllerCore::finish(const PriorityQueue::Item& item, Reconcile& one, const Result& result,
                            const std::exception_ptr& error) {
  const auto now = clock_->now();
  stats_.seconds.observe(std::chrono::duration<double>(now - item.since).count());
  if (!error) {
    settle(item, one.context, result);
  } else if (!stop_.stop_requested() && fail(one.context, error)) {
    retry(one.context, item.priority, asked_pause(error));
  }

  auto writes = one.context.take_writes();
  if (writes.empty() || stop_.stop_requested()) return queue_->done(item.request, now);
  queue_->done_and_hold(item.request);
  const auto release = [queue = queue_, request = item.request, controller = name(),
                        ids = environment_->ids, number = one.number,
                        timeout = options_.write_timeout](bool seen) {
    if (!seen) {
      ids->logger(controller, request, number)
          .warn("the caches have not seen its writes within {} ms; continuing", timeout.count());
    }
    queue->release(request);
  };
  environment_->cache->barrier().wait(std::move(writes), options_.write_timeout, release);
}

void ControllerCore::settle(const PriorityQueue::Item& item, const Context& context,
                            const Result& result) {
  const int priority = result.priority.value_or(item.priority);
  switch (result.next) {
    case Result::Next::kDone:
      ++stats_.success;
      forget(context);
      break;
    case Result::Next::kRequeueAfter:
      ++stats_.requeue_after;
      forget(context);
      queue_->add_after(item.request, result.after, priority);
      break;
    case Result::Next::kRequeue:
      ++stats_.requeue;
      retry(context, priority);
      break;
  }
}

bool ControllerCore::fail(const Context& context, const std::exception_ptr& error) {
  ++stats_.error;
  ++stats_.errors;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    if (is_terminal(e)) {
      ++stats_.terminal_errors;
      forget(context);
      context.logger().error("{}; it is not retried", e.what());
      return false;
    }
    context.logger().warn("{}", e.what());
  } catch (...) {
    ++stats_.panics;
    context.logger().error("it threw something that is not a std::exception");
  }
  return true;
}

void ControllerCore::retry(const Context& context, int priority, Clock::Duration at_least) {
  try {
    queue_->add_rate_limited(context.request(), priority, at_least);
  } catch (...) {
    log_limiter(context, std::current_exception());
    queue_->add_after(context.request(), std::max(at_least, kWithoutLimiter), priority);
  }
}

void ControllerCore::forget(const Context& context) {
  try {
    queue_->forget(context.request());
  } catch (...) {
    log_limiter(context, std::current_exception());
  }
}

void ControllerCore::log_limiter(const Context& context, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    context.logger().error("its rate limiter threw: {}", e.what());
  } catch (...) {
    context.logger().error("its rate limiter threw");
  }
}

// ---------------------------------------------------------------------------------- numbers

std::vector<std::string> ControllerCore::running() const {
  std::vector<std::string> out;
  for (const auto& one : queue_->working()) out.push_back(one.request.key());
  return out;
}

std::optional<std::string> ControllerCore::check_stuck() const {
  if (options_.stuck_after.count() <= 0) return std::nullopt;
  std::size_t stuck = 0;
  std::string oldest;
  Clock::Duration age{};
  const auto now = clock_->now();
  for (const auto& one : queue_->working()) {
    if (now <= end_of(options_.stuck_after, one.since)) continue;
    ++stuck;
    if (now - one.since <= age) continue;
    age = now - one.since;
    oldest = one.request.key();
  }
  if (stuck == 0) return std::nullopt;
  const auto seconds = std::chrono::duration_cast<std::chrono::duration<double>>(age).count();
  return fmt::format("the reconcile of {} has been running for {:.1f} s, longer than {} ms{}",
                     oldest, seconds, options_.stuck_after.count(),
                     stuck == 1 ? "" : fmt::format("; so have {} more", stuck - 1));
}

void ControllerCore::collect(std::vector<metrics::Sample>& out) const {
  queue_->collect(out);
  const auto result = [&](const char* label, const std::atomic<std::uint64_t>& value) {
    metrics::Collector(out, {{"controller", name()}, {"result", label}})
        .counter("controller_runtime_reconcile_total", "Reconciles, by their result.", value);
  };
  result("success", stats_.success);
  result("error", stats_.error);
  result("requeue", stats_.requeue);
  result("requeue_after", stats_.requeue_after);
  metrics::Collector collector(out, {{"controller", name()}});
  collector.counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.",
                    stats_.errors);
  collector.counter("controller_runtime_terminal_reconcile_errors_total",
                    "Reconciles that failed and are not retried.", stats_.terminal_errors);
  collector.counter("controller_runtime_reconcile_panics_total",
                    "Reconciles that threw something that is not a std::exception.", stats_.panics);
  collector.counter("controller_runtime_reconcile_timeouts_total",
                    "Reconciles that took longer than the reconcile timeout.", stats_.timeouts);
  collector.histogram("controller_runtime_reconcile_time_seconds", "How long reconciles took.",
                      stats_.seconds);
  collector.gauge("controller_runtime_max_concurrent_reconciles",
                  "Maximum number of concurrent reconciles.", static_cast<double>(concurrency_));
  collector.gauge("controller_runtime_active_workers", "Number of running reconciles.",
                  static_cast<double>(queue_->working().size()));
  collector.counter("controller_hot_loops_total",
                    "Requests that were reconciled repeatedly without a change.", stats_.hot_loops);
  collector.gauge("controller_held_requests",
                  "Requests that are held back until the caches have seen their writes.",
                  static_cast<double>(queue_->held()));
}

}  // namespace detail
}  // namespace lookout::controller
