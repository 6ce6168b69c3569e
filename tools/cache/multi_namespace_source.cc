#include "lookout/tools/cache/multi_namespace_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/numbers.h"
#include "lookout/rest/error.h"

namespace lookout::cache {
namespace {

void require_names(const std::set<std::string>& namespaces) {
  if (namespaces.contains("")) {
    throw InvalidArgument("a set of namespaces has no empty name: that would be all namespaces");
  }
}

}  // namespace

/// The state that the parts and the watch share.
class MultiNamespaceSource::Hub : public std::enable_shared_from_this<Hub> {
 public:
  Hub(Make make, api::GroupVersionKind type, ReflectorOptions options,
      std::shared_ptr<EventLoop> loop, std::set<std::string> namespaces)
      : make_(std::move(make)),
        type_(std::move(type)),
        options_(std::move(options)),
        loop_(std::move(loop)),
        namespaces_(std::move(namespaces)) {
    require_names(namespaces_);
    options_.resync_period = std::chrono::milliseconds(0);
  }

  void set_namespaces(std::set<std::string> namespaces);
  std::set<std::string> namespaces() const {
    const std::lock_guard lock(mutex_);
    return namespaces_;
  }
  std::map<std::string, std::string> unsynced() const;
  SourceHealth health() const;

  /// Opens a watch and returns its number. Events cancel the timer `bell`.
  std::uint64_t open(std::shared_ptr<boost::asio::steady_timer> bell);
  /// Starts the parts of the watch. Throws what the program's Make throws.
  void start();
  /// Throws what the last start() has thrown, if it has.
  void rethrow_failed_start() const;
  /// Ends the watch and stops its parts.
  void close(std::uint64_t watch);
  bool all_parts_ended() const {
    const std::lock_guard lock(mutex_);
    return running_.empty();
  }
  /// Takes the events since the last call; false if there are none.
  bool take(std::vector<api::WatchEvent>& events, std::vector<api::Object>& missed);

  // Called by parts, on their strands.
  void changed(const Part& part, api::EventType type, const api::Object& object, bool was_missed);
  void listed(Part& part, const std::string& resource_version, bool told);
  void failed(Part& part, const std::exception& error);
  void ended(const std::shared_ptr<Part>& part);

  const ReflectorOptions& options() const { return options_; }
  const std::shared_ptr<EventLoop>& loop() const { return loop_; }

 private:
  using Parts = std::map<std::string, std::shared_ptr<Part>>;

  void start(const std::set<std::string>& namespaces);
  /// Stops parts that are no longer active, without the mutex: a stop may run the program's code.
  static void stop(const std::vector<std::shared_ptr<Part>>& parts);
  // The functions below require the mutex.
  void report_deleted(const Part& part);
  void complete_if_all_listed();
  void ring();
  /// Updates resource_version_. Returns true if the watch has not delivered it yet.
  bool update_version();
  void queue_mark(bool end_of_initial_events);

  const Make make_;
  const api::GroupVersionKind type_;
  ReflectorOptions options_;
  const std::shared_ptr<EventLoop> loop_;

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::set<std::string> namespaces_;
  Parts parts_;  // the active parts of the open watch
  std::vector<api::WatchEvent> events_;
  std::vector<api::Object> missed_;  // the missed deletions in events_
  std::shared_ptr<boost::asio::steady_timer> bell_;
  std::uint64_t watch_ = 0;  // the number of the open watch
  bool open_ = false;
  bool complete_ = false;  // the end of the initial events has been announced
  // The oldest version of the parts that have been listed: the watch has all changes up to it.
  std::string resource_version_ = "1";
  std::string marked_version_;               // that of the last queued mark
  std::set<std::shared_ptr<Part>> running_;  // those whose reflectors have not returned
  std::uint64_t past_errors_ = 0;            // of those that have
  std::exception_ptr failed_start_;          // why the open watch could not be started
};

/// One namespace: its reflector and its objects.
class MultiNamespaceSource::Part : public ReflectorStore,
                                   public std::enable_shared_from_this<Part> {
 public:
  Part(std::weak_ptr<Hub> hub, std::string ns, std::shared_ptr<ListerWatcher> source,
       ReflectorOptions options)
      : ns_(std::move(ns)),
        hub_(std::move(hub)),
        reflector_(Reflector::create(std::move(source), *this, named(std::move(options), ns_))) {}

  const std::string& ns() const { return ns_; }
  const Reflector& reflector() const { return *reflector_; }

  void start(EventLoop& loop) {
    boost::asio::co_spawn(boost::asio::make_strand(loop.context()), run(shared_from_this()),
                          boost::asio::detached);
  }
  void stop() { stop_.request_stop(); }

  // --- The reflector's side, on its strand

  void add(const api::Object& object) override { put(object); }
  void update(const api::Object& object) override { put(object); }
  void remove(const api::Object& object) override { forget(object, false); }
  void replace(std::vector<api::Object> objects, const std::string&) override {
    std::unordered_map<std::string, api::Object> gone;
    {
      const std::lock_guard lock(mutex_);
      gone = objects_;
    }
    for (const auto& object : objects) gone.erase(object.key());
    // Report deletions before additions.
    for (const auto& [key, object] : gone) forget(object, true);
    for (auto& object : objects) put(object);
  }
  void resync() override {}
  void flush(const std::string& resource_version) override {
    const bool told = std::exchange(told_, false);
    if (const auto hub = hub_.lock()) hub->listed(*this, resource_version, told);
  }
  api::Object prepare(api::Object object) const override {
    const std::lock_guard lock(mutex_);
    const auto known = objects_.find(object.key());
    return known != objects_.end() && known->second == object ? known->second : object;
  }
  std::vector<api::Object> objects() const override {
    const std::lock_guard lock(mutex_);
    std::vector<api::Object> out;
    out.reserve(objects_.size());
    for (const auto& [key, object] : objects_) out.push_back(object);
    return out;
  }
  void failed(const std::exception& error) override {
    if (const auto hub = hub_.lock()) hub->failed(*this, error);
  }

  // Guarded by the hub's mutex.
  bool listed = false;
  std::string version;  // its reflector has delivered everything up to it
  bool was_forbidden = false;
  std::string last_error;

 private:
  static ReflectorOptions named(ReflectorOptions options, const std::string& ns) {
    options.name += " in " + ns;
    return options;
  }
  void put(const api::Object& object) {
    bool added = false;
    {
      const std::lock_guard lock(mutex_);
      const auto [at, inserted] = objects_.try_emplace(object.key(), object);
      if (!inserted && at->second.same(object)) return;
      at->second = object;
      added = inserted;
    }
    tell(added ? api::EventType::kAdded : api::EventType::kModified, object, false);
  }
  void forget(const api::Object& object, bool was_missed) {
    {
      const std::lock_guard lock(mutex_);
      if (!objects_.contains(object.key())) return;
    }
    // Report the deletion first: if this part is removed now, the deletion is reported twice, which
    // is harmless, rather than never.
    tell(api::EventType::kDeleted, object, was_missed);
    const std::lock_guard lock(mutex_);
    objects_.erase(object.key());
  }
  void tell(api::EventType type, const api::Object& object, bool was_missed) {
    told_ = true;
    if (const auto hub = hub_.lock()) hub->changed(*this, type, object, was_missed);
  }
  static Awaitable<void> run(std::shared_ptr<Part> self) {
    try {
      // Do not run in the caller: an error handler may be slow.
      co_await boost::asio::post(boost::asio::use_awaitable);
      co_await self->reflector_->run(self->stop_.get_token());
    } catch (const std::exception& e) {
      log::error("{}: the reflector ended: {}", self->reflector_->name(), e.what());
    } catch (...) {
      log::error("{}: the reflector ended", self->reflector_->name());
    }
    if (const auto hub = self->hub_.lock()) hub->ended(self);
  }

  const std::string ns_;
  const std::weak_ptr<Hub> hub_;
  std::stop_source stop_;
  const std::shared_ptr<Reflector> reflector_;
  bool told_ = false;  // true if something was reported since the last flush; on the strand
  mutable std::mutex mutex_;
  std::unordered_map<std::string, api::Object> objects_;  // guarded by mutex_
};

void MultiNamespaceSource::Hub::set_namespaces(std::set<std::string> namespaces) {
  require_names(namespaces);
  std::set<std::string> added;
  std::vector<std::shared_ptr<Part>> removed;
  {
    const std::lock_guard lock(mutex_);
    if (open_) {
      // (Includes namespaces for which Make has failed before.)
      std::copy_if(namespaces.begin(), namespaces.end(), std::inserter(added, added.end()),
                   [&](const std::string& ns) { return !parts_.contains(ns); });
      for (auto it = parts_.begin(); it != parts_.end();) {
        if (namespaces.contains(it->first)) {
          ++it;
          continue;
        }
        removed.push_back(it->second);
        it = parts_.erase(it);
        report_deleted(*removed.back());
      }
    }
    namespaces_ = std::move(namespaces);
    complete_if_all_listed();
    if (open_ && complete_ && events_.empty() && update_version()) {
      queue_mark(false);
      ring();
    }
  }
  stop(removed);
  start(added);
}

std::map<std::string, std::string> MultiNamespaceSource::Hub::unsynced() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> out;
  for (const auto& ns : namespaces_) {
    const auto part = parts_.find(ns);
    if (part == parts_.end()) {
      out.emplace(ns, "");
    } else if (!part->second->listed) {
      out.emplace(ns, part->second->last_error);
    }
  }
  return out;
}

SourceHealth MultiNamespaceSource::Hub::health() const {
  const std::lock_guard lock(mutex_);
  SourceHealth out;
  out.errors = past_errors_;
  for (const auto& part : running_) out.errors += part->reflector().stats().errors;
  for (const auto& ns : namespaces_) {
    const auto at = parts_.find(ns);
    if (at == parts_.end()) {
      out.live = false;
      continue;
    }
    const Reflector& reflector = at->second->reflector();
    out.unreadable += reflector.stats().unreadable;
    if (const auto since = reflector.live_since()) {
      out.live_since = std::max(out.live_since, *since);
      continue;
    }
    out.live = false;
    auto failure = reflector.last_failure();
    if (failure && (!out.failure || failure->at > out.failure->at))
      out.failure = std::move(failure);
  }
  return out;
}

std::uint64_t MultiNamespaceSource::Hub::open(std::shared_ptr<boost::asio::steady_timer> bell) {
  const std::lock_guard lock(mutex_);
  bell_ = std::move(bell);
  open_ = true;
  complete_ = false;
  events_.clear();
  missed_.clear();
  return ++watch_;
}

void MultiNamespaceSource::Hub::start() {
  std::exception_ptr failed;
  try {
    start(namespaces());
  } catch (...) {
    failed = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    failed_start_ = failed;
    complete_if_all_listed();  // the set may be empty
  }
  if (failed) std::rethrow_exception(failed);
}

void MultiNamespaceSource::Hub::rethrow_failed_start() const {
  std::exception_ptr failed;
  {
    const std::lock_guard lock(mutex_);
    failed = failed_start_;
  }
  if (failed) std::rethrow_exception(failed);
}

void MultiNamespaceSource::Hub::close(std::uint64_t watch) {
  std::vector<std::shared_ptr<Part>> parts;
  {
    const std::lock_guard lock(mutex_);
    if (watch != watch_) return;
    open_ = false;
    for (const auto& [ns, part] : std::exchange(parts_, {})) parts.push_back(part);
  }
  stop(parts);
}

void MultiNamespaceSource::Hub::start(const std::set<std::string>& namespaces) {
  std::exception_ptr failed;
  for (const auto& ns : namespaces) {
    std::shared_ptr<Part> part;
    try {
      part = std::make_shared<Part>(weak_from_this(), ns, make_(ns), options_);
    } catch (...) {
      failed = std::current_exception();
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      // In the meantime, the watch may have ended or the set may have changed.
      if (!open_ || !namespaces_.contains(ns) || !parts_.emplace(ns, part).second) continue;
      running_.insert(part);
    }
    part->start(*loop_);
  }
  if (failed) std::rethrow_exception(failed);
}

void MultiNamespaceSource::Hub::stop(const std::vector<std::shared_ptr<Part>>& parts) {
  for (const auto& part : parts) part->stop();
}

void MultiNamespaceSource::Hub::report_deleted(const Part& part) {
  for (auto& object : part.objects())
    events_.push_back({api::EventType::kDeleted, std::move(object)});
  ring();
}

bool MultiNamespaceSource::Hub::take(std::vector<api::WatchEvent>& events,
                                     std::vector<api::Object>& missed) {
  const std::lock_guard lock(mutex_);
  events.clear();
  // The reflector takes the version of the last event, which is that of one namespace.
  if (complete_ && !events_.empty() &&
      (update_version() || events_.back().object.resource_version() != resource_version_))
    queue_mark(false);
  std::swap(events, events_);
  missed = std::exchange(missed_, {});
  return !events.empty();
}

void MultiNamespaceSource::Hub::changed(const Part& part, api::EventType type,
                                        const api::Object& object, bool was_missed) {
  const std::lock_guard lock(mutex_);
  const auto at = parts_.find(part.ns());
  // The objects of a removed part have been reported as deleted.
  if (at == parts_.end() || at->second.get() != &part) return;
  // Events of the initial state are delivered when it is complete.
  if (complete_ && events_.empty()) ring();
  events_.push_back({type, object});
  if (was_missed) missed_.push_back(object);
}

void MultiNamespaceSource::Hub::listed(Part& part, const std::string& resource_version, bool told) {
  const std::lock_guard lock(mutex_);
  const auto at = parts_.find(part.ns());
  if (at == parts_.end() || at->second.get() != &part) return;
  part.listed = true;
  part.last_error.clear();
  if (!resource_version.empty()) part.version = resource_version;
  if (!complete_) return complete_if_all_listed();
  // (Queued events get a mark when they are taken.)
  if (!events_.empty() || (told && !update_version())) return;
  // Passes on the sign of life, or the version of events that have been taken already.
  queue_mark(false);
  ring();
}

void MultiNamespaceSource::Hub::failed(Part& part, const std::exception& error) {
  const std::lock_guard lock(mutex_);
  const auto at = parts_.find(part.ns());
  if (at == parts_.end() || at->second.get() != &part) return;
  part.last_error = error.what();
  part.was_forbidden = api::is_forbidden(error);
  complete_if_all_listed();
}

void MultiNamespaceSource::Hub::ended(const std::shared_ptr<Part>& part) {
  const std::lock_guard lock(mutex_);
  past_errors_ += part->reflector().stats().errors;
  running_.erase(part);
  ring();
}

void MultiNamespaceSource::Hub::complete_if_all_listed() {
  if (!open_ || complete_) return;
  for (const auto& ns : namespaces_) {
    const auto part = parts_.find(ns);
    if (part == parts_.end() || !(part->second->listed || part->second->was_forbidden)) return;
  }
  complete_ = true;
  queue_mark(true);
  ring();
}

void MultiNamespaceSource::Hub::ring() {
  if (!bell_) return;
  boost::asio::post(bell_->get_executor(), [bell = bell_] { bell->cancel(); });
}

bool MultiNamespaceSource::Hub::update_version() {
  const Part* oldest = nullptr;
  std::uint64_t version = 0;
  for (const auto& [ns, part] : parts_) {
    // A namespace without a list contributes nothing to the state yet.
    if (!part->listed) continue;
    // (A version that is no number cannot be compared, and counts as the oldest.)
    const std::uint64_t of_part =
        base::parse_number<std::uint64_t>(part->version).value_or(std::uint64_t{0});
    if (oldest != nullptr && version <= of_part) continue;
    oldest = part.get();
    version = of_part;
  }
  if (oldest != nullptr && !oldest->version.empty()) resource_version_ = oldest->version;
  return resource_version_ != marked_version_;
}

void MultiNamespaceSource::Hub::queue_mark(bool end_of_initial_events) {
  update_version();
  marked_version_ = resource_version_;
  std::string metadata = fmt::format(R"("resourceVersion":"{}")", resource_version_);
  if (end_of_initial_events)
    metadata += fmt::format(R"(,"annotations":{{"{}":"true"}})", api::kInitialEventsEndAnnotation);
  events_.push_back(
      {api::EventType::kBookmark,
       api::Object::parse(fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{{}}}}})",
                                      type_.api_version(), type_.kind, metadata))});
}

/// Merges the events of all parts into one watch.
class MultiNamespaceSource::MergedWatcher : public Watcher {
 public:
  MergedWatcher(std::shared_ptr<Hub> hub, const boost::asio::any_io_executor& executor,
                std::stop_token stop)
      : hub_(std::move(hub)),
        bell_(std::make_shared<boost::asio::steady_timer>(
            executor, boost::asio::steady_timer::time_point::max())),
        stop_(std::move(stop)),
        number_(hub_->open(bell_)),
        on_stop_(stop_, Ring{bell_}) {}
  // A coroutine that Asio destroys does not await end().
  ~MergedWatcher() override { hub_->close(number_); }
  MergedWatcher(const MergedWatcher&) = delete;
  MergedWatcher& operator=(const MergedWatcher&) = delete;

  Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
    for (;;) {
      if (stop_.stop_requested())
        throw rest::TransportError(rest::TransportError::Kind::kCancelled, "the watch was stopped");
      const bool any = hub_->take(events, missed_);
      std::ranges::sort(missed_, {}, &api::Object::header);
      if (any) co_return true;
      co_await wait();
    }
  }
  bool missed(const api::Object& deleted) const override {
    return std::ranges::binary_search(missed_, deleted.header(), {}, &api::Object::header);
  }
  Awaitable<void> end() override {
    hub_->close(number_);
    while (!hub_->all_parts_ended()) co_await wait();
  }

 private:
  struct Ring {
    void operator()() const {
      boost::asio::post(bell->get_executor(), [b = bell] { b->cancel(); });
    }
    std::shared_ptr<boost::asio::steady_timer> bell;
  };

  Awaitable<void> wait() {
    boost::system::error_code ignored;
    co_await bell_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  }

  const std::shared_ptr<Hub> hub_;
  const std::shared_ptr<boost::asio::steady_timer> bell_;
  const std::stop_token stop_;
  const std::uint64_t number_;
  const std::stop_callback<Ring> on_stop_;
  std::vector<api::Object> missed_;  // sorted by their headers
};

MultiNamespaceSource::MultiNamespaceSource(Make make, api::GroupVersionKind type,
                                           ReflectorOptions options,
                                           std::shared_ptr<EventLoop> loop,
                                           std::set<std::string> namespaces)
    : hub_(std::make_shared<Hub>(std::move(make), std::move(type), std::move(options),
                                 std::move(loop), std::move(namespaces))) {}

MultiNamespaceSource::~MultiNamespaceSource() = default;

void MultiNamespaceSource::set_namespaces(std::set<std::string> namespaces) {
  hub_->set_namespaces(std::move(namespaces));
}
std::set<std::string> MultiNamespaceSource::namespaces() const { return hub_->namespaces(); }
std::map<std::string, std::string> MultiNamespaceSource::unsynced() const {
  return hub_->unsynced();
}
std::optional<SourceHealth> MultiNamespaceSource::health() const { return hub_->health(); }

Awaitable<rest::ListMeta> MultiNamespaceSource::list(OnItem, rest::ListOptions, std::stop_token) {
  // (The reflector lists when a watch list fails.)
  hub_->rethrow_failed_start();
  throw api::StatusError::bad_request("several namespaces are watched, not listed");
  co_return rest::ListMeta();
}

Awaitable<std::unique_ptr<Watcher>> MultiNamespaceSource::watch(rest::ListOptions options,
                                                                std::stop_token stop) {
  if (!options.send_initial_events.value_or(false))
    throw api::StatusError::expired("several namespaces have no common history");
  const auto executor = co_await boost::asio::this_coro::executor;
  auto watcher = std::make_unique<MergedWatcher>(hub_, executor, std::move(stop));
  std::exception_ptr failed;
  try {
    hub_->start();
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed) {
    // Some parts may have been started.
    co_await watcher->end();
    std::rethrow_exception(failed);
  }
  co_return std::move(watcher);
}

}  // namespace lookout::cache
