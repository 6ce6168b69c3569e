#include "registry/hub.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "lookout/base/detail/log.h"
#include "registry/callback_subscription.h"
#include "registry/channel.h"

namespace lookout::registry {

std::vector<std::string> Options::namespaces_or(const std::string& own) const {
  std::vector<std::string> out = namespaces;
  if (!ns.empty()) out.push_back(ns);
  if (out.empty()) out.push_back(pod.ns.empty() ? own : pod.ns);
  return detail::each_once(std::move(out));
}

namespace detail {

namespace {

/// From this number of objects on, trim the heap after the first list.
constexpr std::size_t kManyObjects = 20'000;
/// Of malformed objects, this many are listed.
constexpr std::size_t kMostMalformed = 1'000;

/// The values of the index function.
std::vector<std::string> services_of(const InstanceReader& reader, const api::Object& object) {
  cache::IndexValues values;
  reader.services_of(object, values);
  return {values.values().begin(), values.values().end()};
}

InformerGroupOptions group_options(const HubSource& source, const Options& options,
                                   const rest::Client& client) {
  InformerGroupOptions out;
  out.resource = source.resource;
  out.namespaces = options.namespaces_or(client.config().default_namespace);
  out.label_selector = source.label_selector;
  if (!options.label_selector.empty()) {
    if (!out.label_selector.empty()) out.label_selector += ',';
    out.label_selector += options.label_selector;
  }
  out.projection = source.projection;
  out.indexers = {{std::string(kServiceIndex),
                   [reader = source.reader](const api::Object& object, cache::IndexValues& values) {
                     reader->services_of(object, values);
                   }}};
  out.backoff = options.backoff;
  out.sync_timeout = options.sync_timeout;
  return out;
}

}  // namespace

bool InstanceReader::is_listed(std::string_view) const { return true; }

void InstanceReader::keep(const api::Object&, const std::vector<InstancePtr>&,
                          std::vector<InstancePtr>&) const {}

InstancePtr InstanceReader::merged(const InstancePtr&, const InstancePtr& b) const { return b; }

void InstanceReader::choose(std::vector<InstancePtr>&) const {}

/// The user's watcher. Its destructor ends the watch.
class HubWatcher : public WatcherBackend {
 public:
  HubWatcher(std::shared_ptr<Channel> channel, std::shared_ptr<WatcherCore> core,
             std::shared_ptr<EventLoop> loop)
      : channel_(std::move(channel)), core_(std::move(core)), loop_(std::move(loop)) {}
  ~HubWatcher() override { HubWatcher::stop(); }

  NextResult next(std::stop_token stop, Deadline deadline) override {
    if (loop_->running_in_this_thread()) {
      throw InvalidArgument("next() would block the event loop: use co_await async_next()");
    }
    return core_->wait(std::move(stop), deadline);
  }
  Awaitable<NextResult> async_next(std::stop_token stop, Deadline deadline) override {
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
  const std::shared_ptr<EventLoop> loop_;
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

Hub::Hub(rest::Client client, HubSource source, const Options& options)
    : client_(std::move(client)),
      source_(std::move(source)),
      options_(options),
      pool_(std::make_shared<informer::HandlerPool>(client_.shared_loop())),
      user_(client_.shared_loop(), options.handlers),
      group_(client_, group_options(source_, options_, client_), pool_) {}

Hub::~Hub() { close(); }

void Hub::start() {
  group_.start([this] { return events(); });
}

InformerGroupEvents Hub::events() {
  InformerGroupEvents out;
  const auto weak = weak_from_this();
  out.make_handler = [this] { return handler(); };
  out.failed = [weak](const WatchFailure& failure, bool repeated) {
    if (const auto self = weak.lock()) self->report(failure, repeated);
  };
  out.synced = [weak] {
    const auto self = weak.lock();
    if (!self) return;
    self->mark_all();
    self->pool_->post([weak] {
      if (const auto hub = weak.lock()) hub->give_memory_back();
    });
  };
  return out;
}

informer::EventHandler<api::Object> Hub::handler() {
  informer::EventHandler<api::Object> handler;
  handler.name = "registry";
  // The filter is called with each old and new version, also for deletions. on_delete would get only
  // the last version of the object, not the served one.
  handler.filter = [weak = weak_from_this()](const api::Object& object) {
    if (const auto self = weak.lock()) self->mark(object);
    return true;
  };
  handler.on_add = [weak = weak_from_this()](const api::Object& object) {
    if (const auto self = weak.lock()) self->check(object, nullptr);
  };
  handler.on_update = [weak = weak_from_this()](const api::Object& before,
                                                const api::Object& after) {
    if (const auto self = weak.lock()) self->check(after, &before);
  };
  handler.on_delete = [weak = weak_from_this()](const api::Object& object) {
    if (const auto self = weak.lock()) self->forget_malformed(object);
  };
  return handler;
}

void Hub::give_memory_back() const {
#ifdef __GLIBC__
  if (!group_.synced()) return;
  std::size_t objects = 0;
  for (const auto& informer : group_.informers()) objects += informer->store().size();
  if (objects >= kManyObjects) malloc_trim(0);
#endif
}

void Hub::check(const api::Object& object, const api::Object* before) {
  const auto defect = source_.reader->defect(object);
  if (!defect) return forget_malformed(object);
  // Report only changes of the defect.
  if (before && source_.reader->defect(*before) == defect) return;
  malformed_count_.fetch_add(1, std::memory_order_relaxed);
  const Malformed report{std::string(object.ns()), std::string(object.name()), *defect,
                         std::string(object.resource_version()), std::chrono::system_clock::now()};
  {
    const std::lock_guard lock(malformed_mutex_);
    if (malformed_.size() < kMostMalformed || malformed_.contains(object.key()))
      malformed_.insert_or_assign(object.key(), report);
  }
  if (!options_.on_malformed) {
    log::warn("registry: {}/{}: {}", report.ns, report.name, report.reason);
    return;
  }
  user_.malformed->post(object.key(), [call = options_.on_malformed, report] { call(report); });
}

void Hub::forget_malformed(const api::Object& object) {
  const std::lock_guard lock(malformed_mutex_);
  if (!malformed_.empty()) malformed_.erase(object.key());
}

std::vector<Malformed> Hub::malformed() const {
  std::vector<Malformed> out;
  const std::lock_guard lock(malformed_mutex_);
  out.reserve(malformed_.size());
  for (const auto& [key, report] : malformed_) out.push_back(report);
  return out;
}

void Hub::report(const WatchFailure& failure, bool repeated) {
  if (!options_.on_error) return log_failure(source_.resource, failure, repeated);
  user_.failures->post(failure.ns, [call = options_.on_error, failure] { call(failure); });
}

// ------------------------------------------------------------------------------------- channels

std::shared_ptr<Channel> Hub::channel(const std::string& service) {
  start();
  const std::lock_guard lock(mutex_);
  if (closed_) throw InvalidArgument("the registry is closed");
  auto& entry = channels_[service];
  auto found = entry.lock();
  if (!found) {
    found = std::make_shared<Channel>(weak_from_this(), service, group_.informers(), source_.reader,
                                      group_.freshness());
    entry = found;
  }
  return found;
}

std::vector<std::shared_ptr<Channel>> Hub::channels() const {
  std::vector<std::shared_ptr<Channel>> out;
  const std::lock_guard lock(mutex_);
  out.reserve(channels_.size());
  for (const auto& [name, weak] : channels_) {
    if (auto found = weak.lock()) out.push_back(std::move(found));
  }
  return out;
}

void Hub::forget_channel(const std::string& service) {
  const std::lock_guard lock(mutex_);
  const auto it = channels_.find(service);
  // The service may have a new watcher.
  if (it != channels_.end() && it->second.expired()) channels_.erase(it);
}

void Hub::mark(const api::Object& object) {
  const auto names = services_of(*source_.reader, object);
  if (std::ranges::find(names, kUnreadable) != names.end()) return mark_all();
  // Destroyed after the lock: a channel's destructor locks the mutex.
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
  all.reserve(channels_.size());
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
    InOrder<std::shared_ptr<Channel>> marked;
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
  start();
  group_.wait_for_sync(wait);
  // A watched service shares its instances and version with the watchers.
  return latest(service);
}

InstanceSetPtr Hub::latest(const std::string& service) { return channel(service)->refresh(*this); }

std::vector<std::string> Hub::services(const WaitOptions& wait) {
  start();
  // Wait for the handlers, so that stats() includes malformed objects.
  group_.wait_for_sync(wait, Synced::kHandlers);
  std::set<std::string> names;
  bool unreadable = false;
  for (const auto& informer : group_.informers()) {
    for (auto& name : informer->store().index_values(kServiceIndex)) {
      unreadable = unreadable || name == kUnreadable;
      if (source_.reader->is_listed(name)) names.insert(std::move(name));
    }
  }
  if (!unreadable) return {names.begin(), names.end()};
  // A watched service stays while its last pods are unreadable.
  for (const auto& followed : channels()) {
    const std::string& name = followed->service();
    if (names.contains(name) || !source_.reader->is_listed(name)) continue;
    followed->refresh(*this);
    if (followed->keeps()) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::shared_ptr<WatcherCore> Hub::add_watcher(const std::shared_ptr<Channel>& channel) {
  auto core = channel->add();
  channel->refresh(*this);
  // The registry may have been closed in the meantime.
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
  return subscribe(service, std::move(callback), user_.pool);
}
Subscription Hub::follow(const std::string& service, SetCallback callback) {
  return subscribe(service, std::move(callback), pool_);
}

Subscription Hub::subscribe(const std::string& service, SetCallback callback,
                            const std::shared_ptr<informer::HandlerPool>& pool) {
  const auto followed = channel(service);
  const auto core = add_watcher(followed);
  auto calls =
      std::make_shared<CallbackLoop>(service, core, std::move(callback), pool, user_.calls);
  calls->start();
  return Subscription(std::make_unique<HubSubscription>(followed, core, std::move(calls)));
}

Freshness Hub::freshness() const { return group_.freshness()->freshness(); }

DiscoveryStats Hub::stats() const {
  DiscoveryStats out;
  for (const auto& informer : group_.informers()) out.objects += informer->store().size();
  for (const auto& followed : channels()) {
    const std::size_t watchers = followed->watchers();
    out.watchers += watchers;
    out.followed += watchers > 0 ? 1u : 0u;
  }
  out.malformed = malformed_count_.load(std::memory_order_relaxed);
  out.computed = computed_.load(std::memory_order_relaxed);
  out.announced = announced_.load(std::memory_order_relaxed);
  return out;
}

void Hub::close() {
  user_.calls->forbid();
  end();
  // Every caller of close() waits for running user code.
  if (!client_.loop().running_in_this_thread()) user_.calls->wait();
}

void Hub::end() {
  std::vector<std::shared_ptr<Channel>> channels;
  InOrder<std::shared_ptr<Channel>> marked;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    marked.swap(marked_);
    for (const auto& [name, weak] : channels_) {
      if (auto channel = weak.lock()) channels.push_back(std::move(channel));
    }
  }
  const auto informers = group_.close();
  for (const auto& channel : channels) channel->close();
}

}  // namespace detail
}  // namespace lookout::registry
