#include "apiserver/storage/cacher/cacher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "apiserver/doorbell.h"
#include "apiserver/storage/cacher/revision_waiters.h"
#include "apiserver/storage/memory/memory_watch.h"
#include "apiserver/storage/memory/object_source.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::storage::cacher {
namespace {

using memory::Moment;
using memory::Table;
using std::chrono::steady_clock;
using TimePoint = steady_clock::time_point;

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
// A change that has been written is here within a few milliseconds; if not, there is none, perhaps.
constexpr std::chrono::milliseconds kFirstLook{20};
constexpr std::chrono::milliseconds kLongestLook{300};
constexpr std::chrono::milliseconds kPoll{5};

Revision revision_of(const api::Object& object) {
  const std::string_view text = object.resource_version();
  Revision revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

}  // namespace

/// What the cache and the coroutine that fills it share.
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
  /// The table shows etcd as it is, or as it was a moment ago.
  bool usable() const { return usable_.load(std::memory_order_acquire) && !is_of_another_etcd(); }
  /// It shows what was once in an etcd that is no more.
  bool is_of_another_etcd() const {
    const std::uint64_t lineage = lineage_.load(std::memory_order_acquire);
    return lineage != 0 && lineage != client_->lineage_number();
  }
  /// Whether a watch may begin behind a revision: not with one that lies in the future of this
  /// history, but was in the past of the one before.
  bool is_known(Revision revision) const {
    return revision <= table_->current_revision() || revision > lost_.load();
  }

  void start() {
    const auto strand = boost::asio::make_strand(client_->context());
    client_->spawn(strand, follow(shared_from_this()));
  }

  void close() {
    stop_.request_stop();
    store_->close();
    table_->close();
    waiters_.close();
  }

  TimePoint deadline() const { return steady_clock::now() + options_.future_wait; }

  /// Whether there is a state at all, or comes in time.
  Awaitable<bool> filled(TimePoint until) {
    const bool there = co_await waiters_.reached(1, until);
    co_return there&& usable();
  }
  Awaitable<bool> reached(Revision revision, TimePoint until) {
    return waiters_.reached(revision, until);
  }

  /// A state that is not older than `revision`; nothing if it does not come in time.
  Awaitable<std::optional<Moment>> moment(Revision revision, TimePoint until) {
    if (!co_await filled(until)) co_return std::nullopt;
    for (auto look = kFirstLook; usable(); look = std::min(look * 2, kLongestLook)) {
      if (co_await reached(revision, std::min(until, steady_clock::now() + look)))
        co_return table_->now();
      if (stop_.stop_requested()) break;
      auto verified = co_await verified_moment(revision);
      if (verified) co_return verified;
      if (steady_clock::now() >= until) break;
    }
    co_return std::nullopt;
  }

  /// After a write: what is read here next is not older.
  void wrote(const api::Object& object) {
    const Revision revision = revision_of(object);
    Revision known = written_.load(std::memory_order_relaxed);
    while (known < revision && !written_.compare_exchange_weak(known, revision)) continue;
  }
  /// What is there, perhaps; or nothing.
  api::Object suggestion(const std::string& key) const {
    const ItemPtr item = is_of_another_etcd() ? nullptr : table_->find(key);
    return item == nullptr ? api::Object() : item->object;
  }
  Revision written() const { return written_.load(std::memory_order_relaxed); }

 private:
  /// The table as it is, if the storage says that nothing has changed up to `revision` at least.
  Awaitable<std::optional<Moment>> verified_moment(Revision revision) {
    Doorbell bell(co_await boost::asio::this_coro::executor);
    for (;;) {
      Moment moment = table_->now();
      {
        const std::lock_guard lock(mutex_);
        // Many ask at once: one goes and looks for all.
        if (verified_of_ == moment.revision && verified_ >= revision) {
          moment.revision = verified_;
          co_return moment;
        }
        if (!verifying_) {
          verifying_ = true;
          break;
        }
      }
      co_await bell.wait(steady_clock::now() + kPoll);
      if (stop_.stop_requested()) co_return std::nullopt;
    }
    const Verifying end(*this);
    Moment moment = table_->now();
    const std::optional<Revision> verified =
        co_await store_->unchanged_since(moment.revision, moment.items.size());
    if (!verified) co_return std::nullopt;
    const std::lock_guard lock(mutex_);
    verified_of_ = moment.revision;
    verified_ = *verified;
    if (*verified < revision) co_return std::nullopt;
    moment.revision = *verified;
    co_return moment;
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
      } catch (const StorageError& e) {
        why = e.what();
        // Who would list now, gets the error.
        if (e.code() == StorageError::Code::kCorruptObject) self->give_up();
      } catch (const std::exception& e) {
        why = e.what();
      }
      if (self->stop_.stop_requested()) co_return;
      if (!why.empty()) spdlog::warn("watch cache: {}: {}", self->table_->prefix(), why);
      Doorbell bell(co_await boost::asio::this_coro::executor);
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
    const etcd3::Lineage lineage = client_->lineage();
    const Revision revision = co_await store_->read_all(std::move(take));
    if (!client_->is_now(lineage)) throw Error("another etcd came while it was read");
    if (lineage_ == 0 || lineage_ == lineage.number) {
      table_->replace(items, revision);
    } else {
      begin_again(items, revision);
    }
    filled_ = lineage;
    lineage_.store(lineage.number, std::memory_order_release);
    usable_ = true;
    if (auto* metrics = store_->metrics()) metrics->cache_filled(revision, options_.history);
    waiters_.notify();
    spdlog::debug("watch cache: {}: {} objects at revision {}", table_->prefix(), items.size(),
                  revision);
  }

  /// With what has no past in common with what was there.
  void begin_again(const std::vector<ItemPtr>& items, Revision revision) {
    lost_ = std::max(lost_.load(), table_->current_revision());
    table_->restart(items, revision);
    if (written_ > revision) written_ = revision;
    const std::lock_guard lock(mutex_);
    verified_of_ = 0;
    verified_ = 0;
  }

  /// Follows the changes until the watch ends. False if the table has to be filled again.
  Awaitable<bool> watch() {
    const auto executor = co_await boost::asio::this_coro::executor;
    const std::unique_ptr<Watch> watch =
        store_->watch_all(table_->current_revision(), filled_, executor);
    etcd3::ResourceMetrics* const metrics = store_->metrics();
    std::vector<Event> events;
    std::vector<Table::Change> changes;
    for (;;) {
      if (!co_await watch->next(events, steady_clock::now() + options_.silence)) break;
      if (events.empty() && !co_await is_right_to_be_silent()) {
        // It is late, and comes in the meantime, or it does not come at all.
        if (!co_await watch->next(events, deadline())) break;
        if (events.empty()) {
          spdlog::warn("watch cache: {}: the watch hangs", table_->prefix());
          break;
        }
      }
      for (Event& event : events) {
        if (event.type == api::EventType::kError) co_return take_error(event);
        if (event.type == api::EventType::kBookmark) {
          table_->advance(event.revision);
          if (metrics != nullptr) metrics->cache_at(event.revision);
          continue;
        }
        if (metrics != nullptr) metrics->cache_event(event.revision);
        changes.push_back(
            {event.change->key(), std::move(event.object), event.type == api::EventType::kDeleted});
        if (event.revision_continues) continue;
        table_->apply(std::exchange(changes, {}), event.revision);
      }
      waiters_.notify();
    }
    co_return true;
  }

  Awaitable<bool> is_right_to_be_silent() {
    const Moment moment = table_->now();
    const auto unchanged = co_await store_->unchanged_since(moment.revision, moment.items.size());
    co_return unchanged.has_value();
  }

  bool take_error(const Event& event) {
    const auto status = api::Status::from(event.object);
    const std::string message = status ? status->message : std::string("the watch failed");
    spdlog::warn("watch cache: {}: {}", table_->prefix(), message);
    // A member without a leader, say: another one goes on from here. Anything else needs the state.
    return message.find("etcdserver: no leader") != std::string::npos;
  }

  void give_up() {
    usable_ = false;
    table_->forget();
  }

  const std::shared_ptr<etcd3::Client> client_;
  const std::shared_ptr<etcd3::Store> store_;
  const Options options_;
  const std::shared_ptr<Table> table_;
  RevisionWaiters waiters_;
  std::stop_source stop_;
  std::atomic<bool> usable_{false};
  std::atomic<Revision> written_{0};
  std::atomic<std::uint64_t> lineage_{0};  // of the table; 0: it has not been filled yet
  std::atomic<Revision> lost_{0};          // how far those before it had come
  etcd3::Lineage filled_;                  // of the coroutine that fills it

  std::mutex mutex_;
  bool verifying_ = false;    // guarded by mutex_, as are those below
  Revision verified_of_ = 0;  // the table's state at this revision
  Revision verified_ = 0;     // was still so at this one
};

Cacher::Cacher(std::shared_ptr<etcd3::Client> client, std::shared_ptr<etcd3::Store> store,
               Options options)
    : core_(std::make_shared<Core>(std::move(client), std::move(store), options)) {
  core_->start();
}

Cacher::~Cacher() { close(); }

void Cacher::close() { core_->close(); }

const std::string& Cacher::prefix() const { return core_->store().prefix(); }
Awaitable<Revision> Cacher::current_revision() { return core_->store().current_revision(); }
Awaitable<std::size_t> Cacher::count() { return core_->store().count(); }

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
    const ItemPtr item = core_->table()->find(key);
    co_return item == nullptr ? api::Object() : item->object;
  }
  co_return co_await core_->store().get(std::move(key), not_older_than);
}

Awaitable<ListResult> Cacher::list(std::string key, bool recursive, ListOptions options) {
  std::optional<Moment> moment;
  if (options.match == VersionMatch::kExact) {
    // The past is known to the table, or else to the storage.
    const bool there = co_await core_->reached(options.revision, steady_clock::now() + kFirstLook);
    if (there && core_->usable()) moment = core_->table()->at(options.revision);
  } else {
    const bool latest = options.match == VersionMatch::kLatest;
    const Revision revision = latest ? co_await core_->store().current_revision()
                                     : std::max(options.revision, core_->written());
    moment = co_await core_->moment(revision, core_->deadline());
  }
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
    if (revision == 0) revision = co_await core_->store().current_revision();
    start = co_await core_->moment(revision, core_->deadline());
  } else {
    Revision revision = options.revision;
    if (options.start == WatchOptions::Start::kNow)
      revision = co_await core_->store().current_revision();
    const bool there = co_await core_->filled(core_->deadline());
    if (there || core_->is_of_another_etcd()) {
      start = core_->table()->now();
      start->revision = revision;
      // Nothing would come for a long time, and then not what comes next.
      const bool lost =
          options.start == WatchOptions::Start::kRevision && (!there || !core_->is_known(revision));
      if (lost) start->epoch = 0;
    }
  }
  if (!start) {
    // It may be that the revision lies in the future; that is for the storage to say.
    co_return co_await core_->store().watch(std::move(key), recursive, std::move(options));
  }
  const auto executor = co_await boost::asio::this_coro::executor;
  co_return std::make_unique<memory::MemoryWatch>(core_->table(), executor, std::move(key),
                                                  recursive, std::move(options), std::move(*start));
}

}  // namespace lookout::apiserver::storage::cacher
