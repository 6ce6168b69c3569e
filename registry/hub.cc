#include "registry/hub.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <set>
#include <utility>

#include "registry/callback_subscription.h"
#include "registry/channel.h"

namespace lookout::registry {

std::vector<std::string> DiscoveryOptions::all_namespaces() const {
  std::vector<std::string> out = namespaces;
  if (!ns.empty() || out.empty()) out.push_back(ns);
  std::ranges::sort(out);
  const auto again = std::ranges::unique(out);
  out.erase(again.begin(), again.end());
  // All namespaces include each.
  if (out.front().empty()) out.resize(1);
  return out;
}

namespace detail {
namespace {

/// The names that an index function gives, for those who only want these.
std::vector<std::string> services_of(const InstanceReader& reader, const api::Object& object) {
  cache::IndexValues values;
  reader.services_of(object, values);
  return {values.values().begin(), values.values().end()};
}

}  // namespace

InstancePtr InstanceReader::merged(const InstancePtr&, const InstancePtr& b) const { return b; }

/// Asks the informers how they are. Sets refer to it, and may outlive the informers.
class Hub::LiveSource : public FreshnessSource {
 public:
  using Informers = std::vector<std::weak_ptr<informer::SharedIndexInformer>>;

  void set(Informers informers) {
    const std::lock_guard lock(mutex_);
    informers_ = std::move(informers);
  }
  /// From now on nothing is followed.
  void close() {
    const std::lock_guard lock(mutex_);
    informers_.clear();
    changed_ = std::chrono::system_clock::now();
  }

  Freshness freshness() const override {
    const std::lock_guard lock(mutex_);
    if (informers_.empty()) return {false, changed_};
    bool live = true;
    std::optional<Clock::TimePoint> live_since;
    std::optional<Clock::TimePoint> heard;
    for (const auto& weak : informers_) {
      const auto informer = weak.lock();
      if (!informer) return {false, changed_};
      if (const auto since = informer->live_since()) {
        live_since = std::max(live_since.value_or(*since), *since);
      } else {
        live = false;
        heard = std::min(heard.value_or(informer->last_activity()), informer->last_activity());
      }
    }
    // The steady clock is what informers have; people want the time of day.
    const auto ago = Clock::real()->now() - (live ? *live_since : *heard);
    return {live, std::chrono::system_clock::now() -
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(ago)};
  }

 private:
  mutable std::mutex mutex_;
  Informers informers_;  // guarded by mutex_, as is
  std::chrono::system_clock::time_point changed_ = std::chrono::system_clock::now();
};

/// A watcher for its user: gone when he lets go of it.
class HubWatcher : public WatcherBackend {
 public:
  HubWatcher(std::shared_ptr<Channel> channel, std::shared_ptr<WatcherCore> core,
             std::shared_ptr<rest::EventLoop> loop)
      : channel_(std::move(channel)), core_(std::move(core)), loop_(std::move(loop)) {}
  ~HubWatcher() override { HubWatcher::stop(); }

  NextResult next(std::stop_token stop, Deadline deadline) override {
    if (loop_->running_in_this_thread()) {
      throw InvalidArgument("next() on the event loop would block it: co_await async_next()");
    }
    return core_->wait(std::move(stop), deadline);
  }
  rest::Awaitable<NextResult> async_next(std::stop_token stop, Deadline deadline) override {
    return WatcherCore::async_wait(core_, std::move(stop), deadline);
  }
  InstanceSetPtr latest() const override { return channel_->current(); }
  void stop() override {
    core_->end(NextOutcome::kStopped);
    channel_->remove(core_);
  }

 private:
  const std::shared_ptr<Channel> channel_;
  const std::shared_ptr<WatcherCore> core_;
  const std::shared_ptr<rest::EventLoop> loop_;
};

class HubSubscription : public Subscription::Backend {
 public:
  HubSubscription(std::shared_ptr<Channel> channel, std::shared_ptr<WatcherCore> core,
                  std::shared_ptr<CallbackLoop> calls)
      : channel_(std::move(channel)), core_(std::move(core)), calls_(std::move(calls)) {}
  ~HubSubscription() override { HubSubscription::cancel(); }

  void cancel() override {
    channel_->remove(core_);
    calls_->cancel();
  }

 private:
  const std::shared_ptr<Channel> channel_;
  const std::shared_ptr<WatcherCore> core_;
  const std::shared_ptr<CallbackLoop> calls_;
};

Hub::Hub(rest::Client client, HubSource source, const DiscoveryOptions& options)
    : client_(std::move(client)),
      source_(std::move(source)),
      options_(options),
      pool_(std::make_shared<informer::HandlerPool>(client_.shared_loop(), options.handlers)),
      live_(std::make_shared<LiveSource>()) {}

Hub::~Hub() { close(); }

// ------------------------------------------------------------------------------------ informers

void Hub::start() {
  std::vector<std::shared_ptr<informer::SharedIndexInformer>> informers;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw InvalidArgument("the registry is closed");
    if (std::exchange(started_, true)) return;

    std::string selector = source_.label_selector;
    if (!options_.label_selector.empty()) {
      if (!selector.empty()) selector += ',';
      selector += options_.label_selector;
    }
    LiveSource::Informers weak;
    for (const auto& ns : options_.all_namespaces()) {
      cache::ListWatchOptions list_watch;
      list_watch.label_selector = selector;
      list_watch.decode.projection = source_.projection;
      informer::InformerOptions informer;
      informer.reflector.name =
          ns.empty() ? source_.resource.qualified_name()
                     : fmt::format("{} in {}", source_.resource.qualified_name(), ns);
      informer.reflector.expected_api_version = source_.resource.api_version();
      informer.reflector.expected_kind = source_.resource.kind;
      informer.reflector.backoff = options_.backoff;
      informer.indexers = {
          {std::string(kServiceIndex),
           [reader = source_.reader](const api::Object& object, cache::IndexValues& values) {
             reader->services_of(object, values);
           }}};
      informers_.push_back(std::make_shared<informer::SharedIndexInformer>(
          std::make_shared<cache::ListWatch>(client_.resource(source_.resource, ns),
                                             std::move(list_watch)),
          std::move(informer), client_.shared_loop(), pool_));
      weak.push_back(informers_.back());
    }
    live_->set(std::move(weak));
    informers = informers_;
  }
  for (const auto& informer : informers) {
    informer->add_handler(handler());
    informer->start();
  }
}

informer::EventHandler<api::Object> Hub::handler() {
  informer::EventHandler<api::Object> handler;
  handler.name = "registry";
  // The filter is asked about each version that comes and each that goes, also of deletions, where
  // on_delete is told the last version of the object and not the one that was served.
  handler.filter = [weak = weak_from_this()](const api::Object& object) {
    if (const auto self = weak.lock()) self->mark(object);
    return true;
  };
  handler.on_add = [weak = weak_from_this()](const api::Object& object, bool) {
    if (const auto self = weak.lock()) self->check(object, nullptr);
  };
  handler.on_update = [weak = weak_from_this()](const api::Object& before,
                                                const api::Object& after) {
    if (const auto self = weak.lock()) self->check(after, &before);
  };
  handler.on_synced = [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->handlers_synced_.fetch_add(1, std::memory_order_release);
    self->mark_all();
  };
  return handler;
}

void Hub::check(const api::Object& object, const api::Object* before) {
  const auto defect = source_.reader->defect(object);
  if (!defect) return;
  // Other parts of an object change more often than what is wrong with it.
  if (before && source_.reader->defect(*before) == defect) return;
  malformed_.fetch_add(1, std::memory_order_relaxed);
  const Malformed report{std::string(object.ns()), std::string(object.name()), *defect};
  if (options_.on_malformed) {
    options_.on_malformed(report);
  } else {
    spdlog::warn("registry: left out {}/{}: {}", report.ns, report.name, report.reason);
  }
}

bool Hub::synced() const {
  if (synced_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  if (informers_.empty()) return false;
  // (A handler may hear of it a moment before the informer says so, or much later.)
  if (handlers_synced_.load(std::memory_order_acquire) < informers_.size() &&
      !std::ranges::all_of(informers_, [](const auto& i) { return i->has_synced(); })) {
    return false;
  }
  synced_.store(true, std::memory_order_release);
  return true;
}

void Hub::wait_for_sync(const WaitOptions& wait) {
  start();
  if (synced_.load(std::memory_order_acquire)) return;
  if (client_.loop().running_in_this_thread()) {
    throw InvalidArgument("waiting for the registry's data on the event loop would block it");
  }
  const auto timeout = wait.timeout.count() > 0 ? wait.timeout : options_.sync_timeout;
  // Not tied to an informer: whichever is the last.
  std::stop_source expired;
  const std::stop_callback forward(wait.stop, [&] { expired.request_stop(); });
  boost::asio::steady_timer timer(client_.loop().context(), timeout);
  timer.async_wait([expired](const boost::system::error_code& error) mutable {
    if (!error) expired.request_stop();
  });
  std::vector<std::shared_ptr<informer::SharedIndexInformer>> informers;
  {
    const std::lock_guard lock(mutex_);
    informers = informers_;
  }
  std::vector<std::string> missing;
  for (const auto& informer : informers) {
    if (!informer->wait_for_sync(expired.get_token())) missing.push_back(informer->name());
  }
  if (missing.empty() && !informers.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw InvalidArgument("the registry is closed");
  }
  throw NotSynced(fmt::format("the registry has no data yet: {} {}", fmt::join(missing, ", "),
                              wait.stop.stop_requested()
                                  ? "did not come before the stop"
                                  : fmt::format("did not come within {} ms", timeout.count())));
}

// ------------------------------------------------------------------------------------- channels

std::shared_ptr<Channel> Hub::channel(const std::string& service) {
  start();
  const std::lock_guard lock(mutex_);
  if (closed_) throw InvalidArgument("the registry is closed");
  auto& entry = channels_[service];
  auto found = entry.lock();
  if (!found) {
    found = std::make_shared<Channel>(weak_from_this(), service, informers_, source_.reader, live_);
    entry = found;
  }
  return found;
}

void Hub::forget_channel(const std::string& service) {
  const std::lock_guard lock(mutex_);
  const auto it = channels_.find(service);
  // Somebody may have begun to follow the service again.
  if (it != channels_.end() && it->second.expired()) channels_.erase(it);
}

void Hub::mark(const api::Object& object) {
  const auto names = services_of(*source_.reader, object);
  // Outlives the lock: a channel that goes forgets itself, which needs the mutex.
  std::vector<std::shared_ptr<Channel>> touched;
  const std::lock_guard lock(mutex_);
  for (const auto& name : names) {
    const auto it = channels_.find(name);
    if (it != channels_.end()) touched.push_back(it->second.lock());
  }
  mark_locked(touched);
}

void Hub::mark_all() {
  std::vector<std::shared_ptr<Channel>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, weak] : channels_) all.push_back(weak.lock());
  mark_locked(all);
}

void Hub::mark_locked(const std::vector<std::shared_ptr<Channel>>& channels) {
  if (closed_) return;
  for (const auto& channel : channels) {
    if (channel) marked_.insert(channel);
  }
  if (marked_.empty() || std::exchange(flushing_, true)) return;
  pool_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

void Hub::flush() {
  for (;;) {
    std::unordered_set<std::shared_ptr<Channel>> marked;
    {
      const std::lock_guard lock(mutex_);
      marked.swap(marked_);
      if (marked.empty()) {
        flushing_ = false;
        return;
      }
    }
    for (const auto& channel : marked) channel->refresh(*this);
  }
}

// -------------------------------------------------------------------------------- for the user

InstanceSetPtr Hub::get(const std::string& service, const WaitOptions& wait) {
  wait_for_sync(wait);
  // One that is followed shares its instances and its version with the watchers.
  return channel(service)->refresh(*this);
}

std::vector<std::string> Hub::services(const WaitOptions& wait) {
  wait_for_sync(wait);
  std::vector<std::shared_ptr<informer::SharedIndexInformer>> informers;
  {
    const std::lock_guard lock(mutex_);
    informers = informers_;
  }
  std::set<std::string> names;
  for (const auto& informer : informers) {
    for (auto& name : informer->store().index_values(kServiceIndex)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

std::shared_ptr<WatcherCore> Hub::add_watcher(const std::shared_ptr<Channel>& channel) {
  auto core = channel->add();
  channel->refresh(*this);
  // A registry that was closed meanwhile has not seen it.
  const std::lock_guard lock(mutex_);
  if (closed_) core->end(NextOutcome::kClosed);
  return core;
}

Watcher Hub::watch(const std::string& service) {
  const auto followed = channel(service);
  return Watcher(
      std::make_unique<HubWatcher>(followed, add_watcher(followed), client_.shared_loop()));
}

Subscription Hub::subscribe(const std::string& service, SetCallback callback) {
  const auto followed = channel(service);
  const auto core = add_watcher(followed);
  auto calls = std::make_shared<CallbackLoop>(service, core, std::move(callback), pool_);
  calls->start();
  return Subscription(std::make_unique<HubSubscription>(followed, core, std::move(calls)));
}

Freshness Hub::freshness() const { return live_->freshness(); }

DiscoveryStats Hub::stats() const {
  DiscoveryStats out;
  std::vector<std::shared_ptr<Channel>> channels;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& informer : informers_) out.objects += informer->store().size();
    for (const auto& [name, weak] : channels_) {
      if (auto channel = weak.lock()) channels.push_back(std::move(channel));
    }
  }
  for (const auto& channel : channels) {
    const std::size_t watchers = channel->watchers();
    out.watchers += watchers;
    out.followed += watchers > 0 ? 1u : 0u;
  }
  out.malformed = malformed_.load(std::memory_order_relaxed);
  out.computed = computed_.load(std::memory_order_relaxed);
  out.announced = announced_.load(std::memory_order_relaxed);
  return out;
}

void Hub::close() {
  std::vector<std::shared_ptr<informer::SharedIndexInformer>> informers;
  std::vector<std::shared_ptr<Channel>> channels;
  std::unordered_set<std::shared_ptr<Channel>> marked;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    informers.swap(informers_);
    marked.swap(marked_);
    for (const auto& [name, weak] : channels_) {
      if (auto channel = weak.lock()) channels.push_back(std::move(channel));
    }
  }
  live_->close();
  for (const auto& informer : informers) informer->stop();
  for (const auto& channel : channels) channel->close();
}

}  // namespace detail
}  // namespace lookout::registry
