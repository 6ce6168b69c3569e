#include "apiserver/storage/cacher/cacher.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <cmath>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "apiserver/storage/cacher/revision_waiters.h"
#include "apiserver/storage/memory/memory_watch.h"
#include "apiserver/storage/memory/object_source.h"
#include "apiserver/storage/revision.h"
#include "lookout/api/status.h"
#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::cacher {
namespace {

using memory::Moment;
using memory::Table;
using std::chrono::steady_clock;
using TimePoint = steady_clock::time_point;

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
// Without progress requests: the time to wait for a change before the storage is queried for one
// (Core::first_look()), and between queries.
constexpr std::chrono::milliseconds kShortestLook{1};
constexpr std::chrono::milliseconds kFirstLook{20};
constexpr std::chrono::milliseconds kLongestLook{300};
constexpr std::chrono::milliseconds kPoll{5};
constexpr std::chrono::milliseconds kReadyPoll{10};
/// A query for changes reads all keys, which costs etcd as much as reading one in this many objects.
constexpr std::size_t kShare = 10;
/// The number of consecutive silent intervals before the watch is verified.
constexpr int kSilencesToLook = 10;
constexpr int kInternalError = 500;
/// After this time without another one, earlier rejections of the watch do not count (client-go's
/// RetryWithDeadline).
constexpr std::chrono::minutes kRejectionsForgotten{1};

/// The same message as from resource handlers.
api::Object unreadable_status(const char* why) {
  return api::StatusError::internal_error(why).status().to_object();
}

}  // namespace

/// The state that the cache shares with the coroutine that fills it.
class Cacher::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<etcd3::Client> client, std::shared_ptr<etcd3::Store> store, Options options)
      : client_(std::move(client)),
        store_(std::move(store)),
        options_(options),
        table_(std::make_shared<Table>(store_->prefix(), std::make_shared<std::atomic<Revision>>(0),
                                       options.history, std::chrono::seconds(0))),
        waiters_([table = table_] { return table->current_revision(); }) {}

  etcd3::Store& store() { return *store_; }
  const std::shared_ptr<Table>& table() const { return table_; }
  /// The table shows the current or a recent state of etcd.
  bool usable() const { return usable_.load(std::memory_order_acquire) && !is_of_another_etcd(); }
  /// The table shows the state of an etcd that no longer exists.
  bool is_of_another_etcd() const {
    const std::uint64_t lineage = lineage_.load(std::memory_order_acquire);
    return lineage != 0 && lineage != client_->lineage_number();
  }
  /// Whether a watch may start after a revision: not if it is in the future of this history, but was in
  /// the past of the previous one.
  bool is_known(Revision revision) const {
    return revision <= table_->current_revision() || revision > lost_.load();
  }

  void start() {
    const auto strand = boost::asio::make_strand(client_->context());
    client_->spawn(strand, follow(shared_from_this()));
  }

  void trim() { table_->trim(steady_clock::now()); }
  void close() {
    stop_.request_stop();
    store_->close();
    table_->close();
    waiters_.close();
  }

  bool closed() const { return stop_.stop_requested(); }
  /// Releases the state. (Changes are ignored after close().)
  void clear() {
    usable_ = false;
    table_->replace({}, table_->current_revision());
  }
  TimePoint deadline() const { return steady_clock::now() + options_.future_wait; }
  std::chrono::milliseconds future_wait() const { return options_.future_wait; }

  /// Waits briefly for the state. Throws 429 if there is none.
  Awaitable<void> expect_state() {
    if (usable()) co_return;
    const TimePoint since = missing_since();
    const TimePoint until = since + options_.future_wait;
    AsyncEvent bell(co_await boost::asio::this_coro::executor);
    while (!usable() && !closed()) {
      const TimePoint now = steady_clock::now();
      if (now >= until) {
        throw api::StatusError::too_many_requests("storage is (re)initializing",
                                                  retry_after(now - since));
      }
      co_await bell.wait(std::min(until, now + kReadyPoll));
    }
  }
  Awaitable<bool> reached(Revision revision, TimePoint until) {
    return waiters_.reached(revision, until);
  }
  /// etcd's current revision. If it is already known to be ahead of the table, concurrently requests
  /// progress from the watch, whose response the caller will probably wait for.
  Awaitable<Revision> latest() {
    const Revision known = client_->newest_known();
    if (!is_at(known)) request_progress(known);
    return store_->current_revision();
  }
  /// A recent revision of etcd, at least `asked`.
  Awaitable<Revision> newest(Revision asked) {
    const Revision known = client_->newest_known();
    if (known >= asked) co_return known;
    co_return co_await store_->current_revision();
  }

  /// Whether the table has the revision, or reaches it shortly.
  Awaitable<bool> soon_at(Revision revision) {
    if (!is_at(revision)) request_progress(revision);
    co_return co_await reached(revision, steady_clock::now() + kFirstLook);
  }

  /// A state that is not older than `revision`; nullopt on timeout.
  Awaitable<std::optional<Moment>> moment(Revision revision, TimePoint until) {
    for (steady_clock::duration look{0}; usable();) {
      const bool asked = !is_at(revision) && request_progress(revision);
      look = look.count() == 0 && !asked
                 ? first_look()
                 : std::clamp<steady_clock::duration>(look * 2, kFirstLook, kLongestLook);
      const bool there = co_await reached(revision, std::min(until, steady_clock::now() + look));
      if (there) co_return table_->now();
      if (closed()) break;
      if (!asked) co_await verify(revision);
      if (is_at(revision)) continue;
      if (steady_clock::now() >= until) break;
    }
    co_return std::nullopt;
  }

  /// Whether the table shows the state at a revision.
  bool is_at(Revision revision) const { return table_->current_revision() >= revision; }
  /// Whether a list is cheaper for the storage than a query for changes, which reads all keys. (Never, if
  /// it supports progress requests.)
  bool is_little(const std::string& key, bool recursive, const ListOptions& options) {
    if (tells_progress()) return false;
    Moment now = table_->now();
    const std::size_t all = now.count();
    std::size_t some = 1;
    if (recursive) {
      some = memory::MomentCursor(std::move(now), key, options.start_key).remaining();
      if (options.limit > 0 && options.predicate.accepts_everything())
        some = std::min(some, options.limit);
    }
    return some * kShare < all;
  }

  /// The number of objects, if there is a state.
  std::optional<std::size_t> count() const {
    if (!usable()) return std::nullopt;
    return table_->size();
  }

  /// Called after a write: later reads are not older. The current history may not have reached the revision
  /// of a write in an earlier one.
  void wrote(const api::Object& object) {
    const std::lock_guard lock(mutex_);
    written_ = std::max(written_.load(), std::min(revision_of(object), client_->newest_known()));
  }
  /// The cached object, if any; it may be outdated.
  api::Object suggestion(const std::string& key) const {
    const ItemPtr item = is_of_another_etcd() ? nullptr : table_->find(key);
    return item == nullptr ? api::Object() : item->object;
  }
  Revision written() const { return written_.load(std::memory_order_relaxed); }

 private:
  /// Queries the storage for changes since the table's state. If there are none, the table is current,
  /// and all waiting callers continue. Concurrent calls share one query.
  Awaitable<void> verify(Revision revision) {
    while (!begin_verifying()) {
      const bool there = co_await reached(revision, steady_clock::now() + kPoll);
      if (there || closed()) co_return;
    }
    const Verifying end(*this);
    co_await is_unchanged();
  }

  /// How long to wait: about as long as a query takes.
  steady_clock::duration first_look() const {
    return std::clamp<steady_clock::duration>(verification_time_.load(std::memory_order_relaxed),
                                              kShortestLook, kFirstLook);
  }

  Awaitable<bool> is_unchanged() {
    const Moment moment = table_->now();
    const TimePoint begin = steady_clock::now();
    const std::optional<Revision> verified =
        co_await store_->unchanged_since(moment.revision, moment.count());
    verification_time_.store(steady_clock::now() - begin, std::memory_order_relaxed);
    if (!verified) co_return false;
    table_->advance(*verified, moment.epoch);
    waiters_.notify();
    co_return true;
  }

  /// Requests progress from the watch, for callers that wait for a revision. False if that is not
  /// supported. There is at most one pending request; if its response is older than a revision that was
  /// requested in the meantime, another one follows.
  bool request_progress(Revision wanted) {
    const std::lock_guard lock(mutex_);
    if (feeding_ == nullptr) return false;
    const TimePoint now = steady_clock::now();
    if (progress_asked_ && now < *progress_asked_ + options_.progress_patience) {
      progress_wanted_ = std::max(progress_wanted_, wanted);
      return true;
    }
    tells_progress_ = send_progress_request(now);
    return tells_progress_;
  }
  /// Whether the last progress request could be sent.
  bool tells_progress() {
    const std::lock_guard lock(mutex_);
    return tells_progress_;
  }
  void progress_told() {
    const std::lock_guard lock(mutex_);
    progress_asked_.reset();
    if (feeding_ != nullptr && !is_at(progress_wanted_)) send_progress_request(steady_clock::now());
  }
  /// With the mutex locked.
  bool send_progress_request(TimePoint now) {
    progress_wanted_ = 0;
    if (!feeding_->request_progress()) return false;
    progress_asked_ = now;
    return true;
  }

  /// The watch that fills the table.
  class Feeding {
   public:
    Feeding(Core& core, etcd3::FeedingWatch& watch) : core_(core) { set(&watch); }
    ~Feeding() { set(nullptr); }
    Feeding(const Feeding&) = delete;
    Feeding& operator=(const Feeding&) = delete;

   private:
    void set(etcd3::FeedingWatch* watch) {
      const std::lock_guard lock(core_.mutex_);
      core_.feeding_ = watch;
      core_.progress_asked_.reset();
      core_.progress_wanted_ = 0;
      core_.tells_progress_ = false;
    }
    Core& core_;
  };

  /// The time since which there is no state.
  TimePoint missing_since() {
    const std::lock_guard lock(mutex_);
    if (!missing_since_) missing_since_ = steady_clock::now();
    return *missing_since_;
  }

  /// The Retry-After in seconds (cacher.go: calculateRetryAfterForUnreadyCache): 1 at first, 30
  /// after a minute.
  static int retry_after(steady_clock::duration missing) {
    const double seconds = std::chrono::duration<double>(missing).count();
    return static_cast<int>(std::clamp(std::exp(0.06 * seconds), 1.0, 30.0));
  }

  bool begin_verifying() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(verifying_, true);
  }
  struct Verifying {
    explicit Verifying(Core& core) : core_(core) {}
    ~Verifying() {
      const std::lock_guard lock(core_.mutex_);
      core_.verifying_ = false;
    }
    Core& core_;
  };

  // --- filling

  static Awaitable<void> follow(std::shared_ptr<Core> self) {
    auto pause = kFirstPause;
    bool filled = false;
    while (!self->stop_.stop_requested()) {
      std::string why;
      try {
        if (!filled) co_await self->fill();
        filled = true;
        const Revision before = self->table_->current_revision();
        filled = co_await self->watch();
        if (self->table_->current_revision() > before) pause = kFirstPause;
      } catch (const std::exception& e) {
        why = e.what();
      }
      if (self->stop_.stop_requested()) co_return;
      if (!why.empty()) log::warn("watch cache: {}: {}", self->table_->prefix(), why);
      AsyncEvent bell(co_await boost::asio::this_coro::executor);
      const std::stop_callback wake(self->stop_.get_token(), [bell] { bell.ring(); });
      if (!self->stop_.stop_requested()) co_await bell.wait(steady_clock::now() + pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }

  Awaitable<void> fill() {
    std::vector<ItemPtr> items;
    etcd3::Store::TakeItem take = [&](std::string key, api::Object object, Revision revision) {
      items.push_back(
          std::make_shared<const Item>(Item{std::move(key), std::move(object), revision}));
    };
    memory::Unreadable unreadable;
    etcd3::Store::TakeUnreadable note = [&](std::string key, const StorageError& why) {
      log::warn("watch cache: {}: {}", table_->prefix(), why.what());
      unreadable.insert_or_assign(std::move(key), unreadable_status(why.what()));
    };
    const etcd3::Lineage lineage = client_->lineage();
    const Revision revision = co_await store_->read_all(std::move(take), std::move(note));
    if (!client_->is_now(lineage)) throw Error("etcd was replaced during the read");
    if (closed()) co_return;
    if (lineage_ == 0 || lineage_ == lineage.number) {
      table_->replace(items, revision, std::move(unreadable));
    } else {
      begin_again(items, revision, std::move(unreadable));
    }
    filled_ = lineage;
    rejected_since_.reset();
    lineage_.store(lineage.number, std::memory_order_release);
    usable_ = true;
    {
      const std::lock_guard lock(mutex_);
      missing_since_.reset();
    }
    if (auto* metrics = store_->metrics()) metrics->cache_filled(revision, options_.history.count);
    waiters_.notify();
    log::debug("watch cache: {}: {} objects at revision {}", table_->prefix(), items.size(),
               revision);
  }

  /// Restarts the table with the state of a different history.
  void begin_again(const std::vector<ItemPtr>& items, Revision revision,
                   memory::Unreadable unreadable) {
    lost_ = std::max(lost_.load(), table_->current_revision());
    table_->restart(items, revision, std::move(unreadable));
    const std::lock_guard lock(mutex_);
    written_ = std::min(written_.load(), client_->newest_known());
  }

  /// Follows the changes until the watch ends. False if the table has to be filled again.
  Awaitable<bool> watch() {
    const auto executor = co_await boost::asio::this_coro::executor;
    const std::unique_ptr<etcd3::FeedingWatch> watch =
        store_->watch_all(table_->current_revision(), filled_, executor);
    const Feeding feeding(*this, *watch);
    etcd3::ResourceMetrics* const metrics = store_->metrics();
    std::vector<Event> events;
    std::vector<Table::Change> changes;
    for (int silences = 0;;) {
      bool open = co_await watch->next(events, steady_clock::now() + options_.silence);
      if (!open) break;
      silences = events.empty() ? silences + 1 : 0;
      bool late = false;
      if (events.empty()) late = !co_await is_right_to_be_silent(*watch, silences);
      if (late) {
        // The event arrives within future_wait, or the watch hangs.
        open = co_await watch->next(events, deadline());
        if (!open) break;
        if (events.empty()) {
          log::warn("watch cache: {}: the watch hangs", table_->prefix());
          break;
        }
      }
      for (Event& event : events) {
        const bool unreadable = event.type == api::EventType::kError && event.change != nullptr;
        if (event.type == api::EventType::kError && !unreadable) co_return take_error(event);
        if (event.type == api::EventType::kBookmark) {
          table_->advance(event.revision);
          progress_told();
          if (metrics != nullptr) metrics->cache_at(event.revision);
          continue;
        }
        if (metrics != nullptr) metrics->cache_event(event.revision);
        if (unreadable) warn(event.object);
        changes.push_back({event.change->key(), std::move(event.object),
                           event.change->type() == api::EventType::kDeleted, unreadable});
        if (event.revision_continues) continue;
        table_->apply(std::exchange(changes, {}), event.revision);
      }
      waiters_.notify();
    }
    co_return true;
  }

  Awaitable<bool> is_right_to_be_silent(etcd3::FeedingWatch& watch, int silences) {
    // Without writes, there is nothing to query.
    const Revision newest = co_await store_->current_revision();
    if (table_->current_revision() >= newest) co_return true;
    // The response arrives as an event if the watch works.
    if (request_progress(newest)) co_return false;
    // A responsive member should deliver events; this is verified less often, as etcd must read every
    // key for it.
    if (silences % kSilencesToLook != 0) co_return co_await watch.is_served();
    co_return co_await is_unchanged();
  }

  std::string warn(const api::Object& error) const {
    const auto status = api::Status::from(error);
    std::string message = status ? status->message : std::string("the watch failed");
    log::warn("watch cache: {}: {}", table_->prefix(), message);
    return message;
  }

  /// Whether the watch continues from here after an error. If etcd has rejected it, it has missed nothing,
  /// and may succeed at another member or a little later. A rejection that persists needs a relist, as do
  /// other errors (reflector.go: MaxInternalErrorRetryDuration).
  bool take_error(const Event& event) {
    const std::string message = warn(event.object);
    const auto status = api::Status::from(event.object);
    if (!status || status->code != kInternalError) return false;
    if (message.find("etcdserver: no leader") != std::string::npos) return true;
    if (message.find("etcdserver: ") == std::string::npos) return false;
    const TimePoint now = steady_clock::now();
    if (!rejected_since_ || now - last_rejection_ > kRejectionsForgotten) rejected_since_ = now;
    last_rejection_ = now;
    return now - *rejected_since_ < options_.rejection_patience;
  }

  const std::shared_ptr<etcd3::Client> client_;
  const std::shared_ptr<etcd3::Store> store_;
  const Options options_;
  const std::shared_ptr<Table> table_;
  RevisionWaiters waiters_;
  std::stop_source stop_;
  std::atomic<bool> usable_{false};
  std::atomic<Revision> written_{0};       // changed with mutex_ locked
  std::atomic<std::uint64_t> lineage_{0};  // of the table; 0: not filled yet
  std::atomic<Revision> lost_{0};          // the revision that the earlier ones had reached
  // How long the last verification took.
  std::atomic<steady_clock::duration> verification_time_{kShortestLook};
  // Used only by the coroutine that fills the table:
  etcd3::Lineage filled_;
  std::optional<TimePoint> rejected_since_;
  TimePoint last_rejection_;

  std::mutex mutex_;
  bool verifying_ = false;  // guarded by mutex_, as are those below
  etcd3::FeedingWatch* feeding_ = nullptr;
  std::optional<TimePoint> progress_asked_;  // the time of the pending request
  // The newest revision that was requested since then.
  Revision progress_wanted_ = 0;
  bool tells_progress_ = false;
  std::optional<TimePoint> missing_since_ = steady_clock::now();
};

namespace {

/// Throws if the response would omit unreadable objects.
void expect_readable(const Moment& moment, const std::string& key, bool recursive,
                     const std::string& start = {}) {
  const api::Object* const why = moment.unreadable_in(key, recursive, start);
  if (why == nullptr) return;
  throw api::StatusError(api::Status::from(*why).value());
}

}  // namespace

Cacher::Cacher(std::shared_ptr<etcd3::Client> client, std::shared_ptr<etcd3::Store> store,
               Options options)
    : core_(std::make_shared<Core>(std::move(client), std::move(store), options)) {
  core_->start();
}

Cacher::~Cacher() { close(); }

void Cacher::close() { core_->close(); }
void Cacher::trim() { core_->trim(); }
void Cacher::clear() { core_->clear(); }

const std::string& Cacher::prefix() const { return core_->store().prefix(); }
Awaitable<Revision> Cacher::current_revision() { return core_->store().current_revision(); }
Awaitable<std::size_t> Cacher::count() { return core_->store().count(); }
std::optional<std::size_t> Cacher::known_count() const { return core_->count(); }

Awaitable<api::Object> Cacher::create(std::string key, api::Object object) {
  api::Object stored = co_await core_->store().create(std::move(key), std::move(object));
  core_->wrote(stored);
  co_return stored;
}

Awaitable<api::Object> Cacher::guaranteed_update(std::string key, bool create_if_absent,
                                                 Preconditions preconditions, Update update) {
  api::Object cached = core_->suggestion(key);
  api::Object stored =
      co_await core_->store().update_from(std::move(cached), std::move(key), create_if_absent,
                                          std::move(preconditions), std::move(update));
  core_->wrote(stored);
  co_return stored;
}

Awaitable<api::Object> Cacher::remove(std::string key, Preconditions preconditions,
                                      Validate validate) {
  api::Object cached = core_->suggestion(key);
  api::Object last = co_await core_->store().remove_from(
      std::move(cached), std::move(key), std::move(preconditions), std::move(validate));
  core_->wrote(last);
  co_return last;
}

Awaitable<api::Object> Cacher::get(std::string key, Revision not_older_than) {
  if (not_older_than != 0 && core_->usable() &&
      core_->table()->current_revision() >= std::max(not_older_than, core_->written())) {
    const std::optional<ItemPtr> item = core_->table()->find_readable(key);
    if (item) co_return *item == nullptr ? api::Object() : (*item)->object;
  }
  co_return co_await core_->store().get(std::move(key), not_older_than);
}

Awaitable<ListResult> Cacher::list(std::string key, bool recursive, ListOptions options) {
  std::optional<Moment> moment;
  if (options.match == VersionMatch::kExact) {
    // A past state comes from the table's history or, if that is too short, from the storage.
    const bool there = co_await core_->soon_at(options.revision);
    if (there && core_->usable()) moment = core_->table()->at(options.revision);
  } else {
    // A page of everything is cheap for the storage (cacher.go:
    // shouldDelegateListOnNotReadyCache).
    const bool page = options.limit > 0 && options.predicate.accepts_everything();
    if (!page) co_await core_->expect_state();
    const bool latest = options.match == VersionMatch::kLatest;
    if (core_->usable()) {
      Revision revision = std::max(options.revision, core_->written());
      if (latest) revision = co_await core_->latest();
      const bool elsewhere =
          latest && !core_->is_at(revision) && core_->is_little(key, recursive, options);
      if (!elsewhere) moment = co_await core_->moment(revision, core_->deadline());
      if (!moment && !latest) {
        // moment() has waited for the revision.
        const Revision newest = co_await core_->newest(options.revision);
        if (newest < options.revision) throw too_large(options.revision, newest);
      }
    }
  }
  // etcd has the past state of an object that is currently unreadable.
  if (moment && options.match == VersionMatch::kExact &&
      moment->unreadable_in(key, recursive, options.start_key) != nullptr)
    moment.reset();
  if (moment) expect_readable(*moment, key, recursive, options.start_key);
  if (!moment) {
    co_return co_await core_->store().list(std::move(key), recursive, std::move(options));
  }
  if (auto* metrics = core_->store().metrics()) metrics->cache_list();
  co_return memory::list_of(std::move(*moment), key, recursive, std::move(options));
}

Awaitable<std::unique_ptr<Watch>> Cacher::watch(std::string key, bool recursive,
                                                WatchOptions options) {
  std::optional<Moment> start;
  if (options.start == WatchOptions::Start::kState) {
    Revision revision = options.revision;
    co_await core_->expect_state();
    if (revision == 0) revision = co_await core_->latest();
    start = co_await core_->moment(revision, core_->deadline());
    // The storage does not serve the watch, because the watch would stay there for its whole life.
    if (!start && !core_->closed()) throw too_large(revision, core_->table()->current_revision());
    if (start) expect_readable(*start, key, recursive);
  } else {
    Revision revision = options.revision;
    const bool now = options.start == WatchOptions::Start::kNow;
    const bool any = now && revision == kAnyRevision;
    if (now && !any) revision = co_await core_->store().current_revision();
    if (!core_->is_of_another_etcd()) co_await core_->expect_state();
    const bool there = core_->usable();
    if (there || core_->is_of_another_etcd()) {
      start = core_->table()->now();
      if (!any) start->revision = revision;
      // The revision may belong to another history. Such a watch must expire: it would receive
      // nothing for a long time and then skip events.
      const bool lost =
          options.start == WatchOptions::Start::kRevision && (!there || !core_->is_known(revision));
      if (lost) start->epoch = 0;
    }
  }
  if (!start) {
    // The cache is closed, and so is the store, which ends the watch.
    co_return co_await core_->store().watch(std::move(key), recursive, std::move(options));
  }
  const auto executor = co_await boost::asio::this_coro::executor;
  memory::Patience patience{core_->future_wait(),
                            [core = core_](Revision asked) { return core->newest(asked); }};
  co_return std::make_unique<memory::MemoryWatch>(core_->table(), executor, std::move(key),
                                                  recursive, std::move(options), std::move(*start),
                                                  std::move(patience));
}

}  // namespace lookout::apiserver::storage::cacher
