#include "apiserver/storage/etcd3/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/strand.hpp>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <variant>

#include "apiserver/storage/etcd3/block_logger.h"
#include "apiserver/storage/etcd3/bounded_queue.h"
#include "apiserver/storage/etcd3/range_pages.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// As in watcher.go.
constexpr std::size_t kIncoming = 100;
constexpr std::size_t kOutgoing = 100;
// The additional limit, for large objects.
constexpr std::size_t kMaxWaitingBytes = 32u << 20;
constexpr std::size_t kBatch = 16;
constexpr std::size_t kInitialPage = 500;
constexpr std::chrono::milliseconds kFuturePoll{50};
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};

/// An etcd event.
struct Incoming {
  std::string key = {};
  std::string value = {};
  std::string previous = {};
  Revision revision = 0;
  bool deleted = false;
  bool created = false;
  bool initial = false;
  bool progress = false;
  bool initial_events_end = false;
  bool revision_continues = false;
  /// Why the watch has ended.
  std::exception_ptr failure = {};

  std::size_t weight() const { return key.size() + value.size() + previous.size(); }
};

/// The last state of a deleted object cannot be decoded.
struct CorruptDeletion : Error {
  using Error::Error;
};

/// The delivered revisions belong to another history.
struct OtherHistory : Error {
  OtherHistory() : OtherHistory("etcd was recreated, or restored to an older state") {}

 protected:
  explicit OtherHistory(const std::string& why) : Error("too old resource version: " + why) {}
};

/// An event arrived after progress beyond its revision was reported: kine may do that.
struct LateEvent : OtherHistory {
  LateEvent() : OtherHistory("etcd reported its progress too early") {}
};

Incoming progress(Revision revision, bool initial_events_end) {
  Incoming out;
  out.revision = revision;
  out.progress = true;
  out.initial_events_end = initial_events_end;
  return out;
}

Incoming incoming(KeyEvent event) {
  const bool created = !event.deleted && event.kv.create_revision == event.kv.mod_revision;
  if (!created && !event.previous) {
    // The previous value may already be compacted.
    throw Error(
        fmt::format("etcd event received with PrevKv=nil (key=\"{}\", modRevision={}, type={})",
                    event.kv.key, event.kv.mod_revision, event.deleted ? "DELETE" : "PUT"));
  }
  Incoming out;
  out.key = std::move(event.kv.key);
  out.value = std::move(event.kv.value);
  if (event.previous) out.previous = std::move(event.previous->value);
  out.revision = event.kv.mod_revision;
  out.deleted = event.deleted;
  out.created = created;
  return out;
}

api::Object status_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const EtcdError& e) {
    if (e.is_compacted()) {
      return api::StatusError::expired("The resourceVersion for the provided watch is too old.")
          .status()
          .to_object();
    }
    return api::StatusError::internal_error(e.what()).status().to_object();
  } catch (const OtherHistory& e) {
    return api::StatusError::expired(e.what()).status().to_object();
  } catch (const api::StatusError& e) {
    return e.status().to_object();
  } catch (const CorruptDeletion& e) {
    api::Status status = api::StatusError::internal_error(e.what()).status();
    status.reason = "StorageReadError";
    status.message = e.what();
    return status.to_object();
  } catch (const std::exception& e) {
    return api::StatusError::internal_error(e.what()).status().to_object();
  }
}

/// An unreadable value.
bool is_unreadable(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const StorageError& e) {
    return e.code() == StorageError::Code::kCorruptObject;
  } catch (const CorruptDeletion&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// True if a watch ended because its revision expired, which is normal.
bool is_expiry(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const OtherHistory&) {
    return true;
  } catch (const EtcdError& e) {
    return e.is_compacted();
  } catch (const api::StatusError& e) {
    return api::is_too_large_resource_version(e);
  } catch (...) {
    return false;
  }
}

void log_slow(const std::string& line) { log::info("etcd watch: {}", line); }

}  // namespace

/// The shared state of both steps and the caller. The steps keep it alive after the caller's end.
class EtcdWatch::Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(std::shared_ptr<const Context> context, WatchSpec spec, asio::any_io_executor reader)
      : context_(std::move(context)),
        spec_(std::move(spec)),
        range_end_(spec_.recursive ? prefix_end(spec_.key) : std::string()),
        reading_(asio::make_strand(context_->client->context())),
        processing_(asio::make_strand(context_->client->context())),
        incoming_(reading_, processing_, kIncoming, kMaxWaitingBytes),
        outgoing_(processing_, std::move(reader), kOutgoing, kMaxWaitingBytes),
        lineage_(spec_.lineage ? *spec_.lineage : context_->client->lineage()),
        cut_at_stop_(stop_.get_token(), [this] { cut_.request_stop(); }),
        cut_at_end_of_lineage_(lineage_.ends, [this] { cut_.request_stop(); }),
        slow_processing_("decoding is slow, or the events are not read", spec_.key,
                         steady_clock::now(), log_slow),
        slow_reader_("the events are not read", spec_.key, steady_clock::now(), log_slow),
        passed_(spec_.revision),
        proven_(spec_.lineage ? spec_.revision : 0) {}

  void start() {
    const auto self = shared_from_this();
    context_->client->spawn(reading_, read(self));
    context_->client->spawn(processing_, process(self));
  }

  void cancel() {
    // Closes the connection and ends all waits.
    stop_.request_stop();
    incoming_.cancel();
    outgoing_.cancel();
  }

  /// The caller has ended, and its executor may end, too.
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      on_stuck_ = {};
    }
    stop_.request_stop();
    incoming_.cancel();
    outgoing_.leave();
  }

  BoundedQueue<Event>& outgoing() { return outgoing_; }
  Awaitable<bool> is_served() const {
    const Member at = member();
    if (at == nullptr) co_return true;
    const bool answers = co_await context_->client->answers(at);
    // The client may have switched to another member.
    co_return answers || member() != at;
  }
  bool request_progress() {
    const std::lock_guard lock(mutex_);
    if (ask_progress_) ask_progress_();
    return ask_progress_ != nullptr;
  }
  void set_on_stuck(std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    on_stuck_ = std::move(callback);
  }

 private:
  // --- reading

  static Awaitable<void> read(std::shared_ptr<Channel> self) {
    std::exception_ptr failure;
    try {
      if (self->spec_.initial_events) {
        co_await self->read_state();
        // After the initial objects, so that no bookmark overtakes them.
        Incoming end = progress(self->passed_, self->spec_.initial_events_end);
        co_await self->queue(std::move(end));
      }
      co_await self->follow();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure && !self->stop_.stop_requested()) {
      self->log(failure);
      Incoming last;
      last.failure = failure;
      co_await self->queue(std::move(last));
    }
    self->incoming_.finish();
  }

  void log(const std::exception_ptr& failure) const {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      log::at(is_expiry(failure) ? log::Level::kInfo : log::Level::kError, "etcd watch: {}: {}",
              spec_.key, e.what());
    } catch (...) {
      log::error("etcd watch: {}: ended", spec_.key);
    }
  }

  Awaitable<void> queue(Incoming event) {
    const auto before = steady_clock::now();
    const std::size_t weight = event.weight();
    co_await incoming_.push(std::move(event), weight);
    const auto now = steady_clock::now();
    slow_processing_.record_wait(now - before, now);
  }

  /// Page by page at one revision.
  Awaitable<void> read_state() {
    const auto ask = [this](RangeRequest request) {
      return context_->client->range(std::move(request));
    };
    const auto open = [this](RangeRequest request, asio::any_io_executor reader) {
      return RangeStream::open(context_->client, std::move(request), std::move(reader), nullptr);
    };
    RangePages pages(ask, open, spec_.key, range_end_, spec_.revision);
    const std::size_t limit = spec_.recursive ? kInitialPage : 0;
    while (pages.more() && !stop_.stop_requested()) {
      RangeResponse page = co_await pages.next(limit);
      for (KeyValue& kv : page.kvs) {
        Incoming event;
        event.key = std::move(kv.key);
        event.value = std::move(kv.value);
        event.revision = kv.mod_revision;
        event.created = true;
        event.initial = true;
        co_await queue(std::move(event));
      }
    }
    passed_ = pages.revision();
    proven_ = pages.revision();
    expect_lineage();
  }

  void expect_lineage() const {
    if (!context_->client->is_now(lineage_)) throw OtherHistory();
  }

  /// A member behind this watch's revision may be lagging, or may belong to another history. A restored
  /// member may have kept its name and cluster ID. etcd does not report an error for a watch from a
  /// future revision.
  Awaitable<void> check_beginning(Revision revision) {
    expect_lineage();
    // kine does not report its revision, and may not know it.
    if (revision == 0) co_return;
    const auto until = steady_clock::now() + context_->client->options().future_wait;
    while (revision < std::max(proven_, passed_) && !stop_.stop_requested()) {
      RangeRequest request;
      request.key = spec_.key;
      request.count_only = true;
      const RangeResponse now = co_await context_->client->range(std::move(request));
      expect_lineage();
      if (now.revision < proven_) throw OtherHistory();
      if (now.revision >= passed_) co_return;
      if (steady_clock::now() >= until)
        throw api::StatusError::too_large_resource_version(passed_, now.revision, 1);
      co_await sleep(kFuturePoll);
    }
  }

  /// Throws if etcd has compacted this watch's revision: then later changes may be compacted, too.
  Awaitable<void> expect_remembered() {
    RangeRequest request;
    request.key = spec_.key;
    request.revision = passed_;
    request.count_only = true;
    co_await context_->client->range(std::move(request));
  }

  Awaitable<void> sleep(steady_clock::duration time) {
    AsyncEvent bell(reading_);
    const std::stop_callback wake(stop_.get_token(), [bell] { bell.ring(); });
    if (!stop_.stop_requested()) co_await bell.wait(steady_clock::now() + time);
  }

  /// Reads the changes; reconnects as needed.
  Awaitable<void> follow() {
    auto pause = kFirstPause;
    while (!stop_.stop_requested()) {
      const Revision before = passed_;
      std::string why = "the stream ended, or its token was rejected";
      bool opened = false;
      try {
        co_await follow_connection(opened);
      } catch (const std::exception& e) {
        const auto* etcd = dynamic_cast<const EtcdError*>(&e);
        const bool broken = is_unavailable(e) && (etcd == nullptr || !etcd->is_no_leader());
        if (!broken && !cut_.stop_requested()) throw;
        why = e.what();
      }
      if (stop_.stop_requested()) co_return;
      expect_lineage();
      // An incomplete revision is delivered again.
      pending_.reset();
      if (opened || passed_ > before) pause = kFirstPause;
      log::debug("etcd watch: {}: restarting at revision {}: {}", spec_.key, passed_ + 1, why);
      co_await sleep(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }

  Awaitable<void> follow_connection(bool& opened) {
    WatchRequest request;
    request.key = spec_.key;
    request.range_end = range_end_;
    // etcd rejects a watch from before a compaction's revision, but not one from that revision on, although
    // parts of it are compacted: previous values and, in some releases, deletions. So the last delivered
    // revision is requested again (and skipped) if that is cheap: a watch from the current revision on is
    // faster for etcd.
    const bool is_behind = context_->client->newest_known() > passed_;
    request.start_revision = is_behind ? std::max<Revision>(passed_, 1) : passed_ + 1;
    request.progress = true;
    opened_at_ = passed_;
    came_ = 0;
    const auto connection =
        co_await WatchConnection::open(context_->client, std::move(request), cut_.get_token());
    struct Here {
      Here(Channel& channel, const Member& member) : channel_(channel) {
        channel_.set_member(member);
      }
      ~Here() {
        channel_.set_member(nullptr);
        channel_.set_progress_asker({});
      }
      Channel& channel_;
    };
    const Here here(*this, connection->member());
    WatchConnection::Piece piece;
    for (;;) {
      const bool more = co_await connection->read(piece);
      if (!more) break;
      for (auto& item : piece) {
        if (auto* event = std::get_if<KeyEvent>(&item)) {
          co_await take_event(std::move(*event));
        } else {
          const Message& message = std::get<Message>(item);
          if (is_refusal(message) && again_with_a_new_token(*connection, message.failure()))
            co_return;
          if (message.created && !message.canceled) {
            opened = true;
            refusals_ = 0;
            co_await check_beginning(message.revision);
            if (!is_behind && message.revision > passed_) co_await expect_remembered();
            co_await prepare_progress(*connection);
          }
          co_await end_frame(message);
        }
        if (stop_.stop_requested()) co_return;
      }
    }
  }

  Member member() const {
    const std::lock_guard lock(mutex_);
    return member_;
  }
  void set_member(Member member) {
    const std::lock_guard lock(mutex_);
    member_ = std::move(member);
  }
  void set_progress_asker(std::function<void()> asker) {
    const std::lock_guard lock(mutex_);
    ask_progress_ = std::move(asker);
  }

  /// Only caches request progress.
  Awaitable<void> prepare_progress(WatchConnection& connection) {
    if (!spec_.progress_notify) co_return;
    const bool sound = co_await context_->client->tells_progress(connection.member());
    if (sound) set_progress_asker(connection.progress_asker());
  }

  /// Delays each event until it is known whether it is the last one of its revision: only then is the
  /// revision complete, so that the watch can resume from it.
  Awaitable<void> take_event(KeyEvent event) {
    const Revision revision = event.kv.mod_revision;
    if (revision <= passed_) {
      if (revision > opened_at_ && revision > came_) throw LateEvent();
      co_return;
    }
    came_ = revision;
    if (context_->metrics != nullptr) context_->metrics->event();
    if (revision == begun_ && begun_keys_.contains(event.kv.key)) co_return;
    co_await pass_pending(!pending_ || pending_->revision != revision);
    pending_ = incoming(std::move(event));
  }

  static bool is_refusal(const Message& message) {
    return message.failed || message.canceled || message.compact_revision != 0;
  }

  /// etcd checks the token after the start of the stream. If a new token does not help, the permission is
  /// missing.
  bool again_with_a_new_token(WatchConnection& connection, const EtcdError& refusal) {
    const int tries = refusal.is_bad_token() ? kTokenTries : 1;
    if (refusals_ >= tries || !connection.renew_token(refusal)) return false;
    ++refusals_;
    return true;
  }

  Awaitable<void> end_frame(const Message& message) {
    if (is_refusal(message)) throw message.failure();
    if (message.fragment) co_return;
    co_await pass_pending(true);
    const bool notification = message.events == 0 && !message.created;
    if (!notification || message.revision < passed_) co_return;
    if (context_->metrics != nullptr) context_->metrics->bookmark();
    passed_ = message.revision;
    proven_ = message.revision;
    Incoming bookmark = progress(message.revision, false);
    co_await queue(std::move(bookmark));
  }

  Awaitable<void> pass_pending(bool ends_revision) {
    if (!pending_) co_return;
    Incoming event = std::move(*pending_);
    pending_.reset();
    event.revision_continues = !ends_revision;
    if (ends_revision) {
      passed_ = event.revision;
      proven_ = event.revision;
      begun_keys_.clear();
    } else {
      begun_ = event.revision;
      begun_keys_.insert(event.key);
    }
    co_await queue(std::move(event));
  }

  // --- processing

  static Awaitable<void> process(std::shared_ptr<Channel> self) {
    std::vector<Incoming> batch;
    bool more = true;
    while (more) {
      more = co_await self->incoming_.pop(batch, kBatch, steady_clock::time_point::max());
      if (!more) break;
      for (Incoming& raw : batch) {
        const std::size_t weight = raw.weight();
        Event event;
        bool wanted = true;
        try {
          if (raw.failure) std::rethrow_exception(raw.failure);
          wanted = self->transform(raw, event);
        } catch (...) {
          const std::exception_ptr failure = std::current_exception();
          event = {};
          event.object = status_of(failure);
          if (self->spec_.tell_unreadable && !raw.failure && is_unreadable(failure)) {
            self->name_unreadable(raw, event);
          } else {
            more = false;
            self->tell_if_stuck();
          }
        }
        if (!wanted) continue;
        const auto before = steady_clock::now();
        const bool pushed = co_await self->outgoing_.push(std::move(event), weight);
        if (!pushed) more = false;
        const auto now = steady_clock::now();
        self->slow_reader_.record_wait(now - before, now);
        if (!more) break;
      }
    }
    self->outgoing_.finish();
    self->stop_.request_stop();
    self->incoming_.cancel();
  }

  void tell_if_stuck() {
    if (!outgoing_.full()) return;
    const std::lock_guard lock(mutex_);
    if (on_stuck_) on_stuck_();
  }

  void name_unreadable(const Incoming& raw, Event& event) const {
    event.revision = raw.revision;
    event.revision_continues = raw.revision_continues;
    const api::EventType type = raw.deleted ? api::EventType::kDeleted : api::EventType::kError;
    event.change = std::make_shared<const Change>(raw.revision, type, context_->relative(raw.key),
                                                  event.object, api::Object());
  }

  /// False if the watch does not deliver the event.
  bool transform(Incoming& raw, Event& event) const {
    event.revision = raw.revision;
    event.revision_continues = raw.revision_continues;
    if (raw.progress) {
      event.type = api::EventType::kBookmark;
      event.initial_events_end = raw.initial_events_end;
      return true;
    }
    const bool everything = spec_.predicate.accepts_everything();
    api::Object present;
    api::Object previous;
    if (!raw.deleted) present = context_->decode_event(raw.key, std::move(raw.value), raw.revision);
    // The previous state is decoded only if it is needed to determine or deliver the event.
    const bool compared = !everything || spec_.with_previous;
    if (raw.deleted || (!raw.created && compared)) previous = decode_previous(raw);
    const bool is_in = !raw.deleted && (everything || spec_.predicate.matches(present));
    const bool was_in = everything ? !raw.created : previous && spec_.predicate.matches(previous);
    if (!is_in && !was_in) {
      // The caller must still report the end of the revision.
      return false;
    }
    event.type = !is_in    ? api::EventType::kDeleted
                 : !was_in ? api::EventType::kAdded
                           : api::EventType::kModified;
    event.object = is_in ? present : previous;
    if (raw.initial) return true;
    const api::EventType change = raw.deleted   ? api::EventType::kDeleted
                                  : raw.created ? api::EventType::kAdded
                                                : api::EventType::kModified;
    event.change = std::make_shared<const Change>(raw.revision, change, context_->relative(raw.key),
                                                  raw.deleted ? previous : present, previous);
    return true;
  }

  /// The previous state, with the revision of the change.
  api::Object decode_previous(Incoming& raw) const {
    try {
      return context_->decode(raw.key, std::move(raw.previous), raw.revision).object;
    } catch (const StorageError& e) {
      if (!raw.deleted) throw;
      throw CorruptDeletion(
          fmt::format("saw a DELETED event, but object data is corrupt - {}", e.what()));
    }
  }

  const std::shared_ptr<const Context> context_;
  const WatchSpec spec_;
  const std::string range_end_;
  const asio::any_io_executor reading_;
  const asio::any_io_executor processing_;
  BoundedQueue<Incoming> incoming_;
  BoundedQueue<Event> outgoing_;
  std::stop_source stop_;
  const Lineage lineage_;
  // Cuts the connection: at the end of the watch, or of its history.
  std::stop_source cut_;
  const std::stop_callback<std::function<void()>> cut_at_stop_;
  const std::stop_callback<std::function<void()>> cut_at_end_of_lineage_;
  mutable std::mutex mutex_;
  Member member_;  // guarded by mutex_, as are those below; null: no connection
  std::function<void()> on_stuck_;
  std::function<void()> ask_progress_;

  // For the reading step.
  BlockLogger slow_processing_;
  // For the processing step.
  BlockLogger slow_reader_;
  // For the reading step: everything up to this revision was delivered, and some keys of the next one.
  Revision passed_;
  // etcd's highest known revision.
  Revision proven_;
  // Where this connection began, and its last event.
  Revision opened_at_ = 0;
  Revision came_ = 0;
  Revision begun_ = 0;
  std::set<std::string> begun_keys_;
  std::optional<Incoming> pending_;
  int refusals_ = 0;
};

EtcdWatch::EtcdWatch(std::shared_ptr<const Context> context, WatchSpec spec,
                     asio::any_io_executor reader)
    : channel_(std::make_shared<Channel>(std::move(context), spec, std::move(reader))),
      progress_notify_(spec.progress_notify) {
  channel_->start();
}

EtcdWatch::~EtcdWatch() { channel_->leave(); }

void EtcdWatch::cancel() { channel_->cancel(); }

Awaitable<bool> EtcdWatch::is_served() { return channel_->is_served(); }
bool EtcdWatch::request_progress() { return channel_->request_progress(); }

Awaitable<bool> EtcdWatch::next(std::vector<Event>& events, TimePoint until) {
  if (on_stuck && !std::exchange(on_stuck_set_, true)) {
    channel_->set_on_stuck([this] { on_stuck(); });
  }
  if (bookmark_requested_) until = std::min(until, steady_clock::now());
  bool more = true;
  do {
    more = co_await channel_->outgoing().pop(events, kOutgoing, until);
    for (const Event& event : events) {
      // Initial objects are sorted by key, not by revision.
      const bool past = event.change != nullptr || event.type == api::EventType::kBookmark;
      if (past && !event.revision_continues) seen_ = std::max(seen_, event.revision);
    }
    const bool had_some = !events.empty();
    if (!progress_notify_) {
      std::erase_if(events, [](const Event& event) {
        return event.type == api::EventType::kBookmark && !event.initial_events_end;
      });
    }
    if (!had_some || !events.empty()) break;
  } while (more);
  if (more && events.empty() && std::exchange(bookmark_requested_, false)) {
    if (seen_ != 0) {
      Event& bookmark = events.emplace_back();
      bookmark.type = api::EventType::kBookmark;
      bookmark.revision = seen_;
    }
  }
  co_return more;
}

}  // namespace lookout::apiserver::storage::etcd3
