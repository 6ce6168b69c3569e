#include "lookout/testing/fake_controller_source.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <tuple>
#include <utility>

#include "lookout/api/status.h"
#include "lookout/base/async_event.h"
#include "lookout/base/pinned.h"

namespace lookout::test {
namespace {

// A limit for waits that fail; longer than any successful wait.
constexpr std::chrono::seconds kPatience{60};

rest::TransportError transport_error(rest::TransportError::Kind kind, const char* message) {
  return {kind, message};
}

api::Object with_version(const api::Object& object, std::uint64_t version) {
  rapidjson::Document document = object.to_document();
  auto& allocator = document.GetAllocator();
  if (!document.HasMember("metadata"))
    document.AddMember("metadata", rapidjson::Value(rapidjson::kObjectType), allocator);
  auto& metadata = document["metadata"];
  metadata.RemoveMember("resourceVersion");
  rapidjson::Value text;
  text.SetString(std::to_string(version).c_str(), allocator);
  metadata.AddMember("resourceVersion", text, allocator);
  return api::Object::from(document);
}

}  // namespace

/// A request that waits.
class FakeControllerSource::Waiter : public base::Pinned {
 public:
  Waiter(FakeControllerSource& owner, boost::asio::any_io_executor executor)
      : event(std::move(executor)), source_(owner) {
    const std::lock_guard lock(source_.mutex_);
    source_.waiters_.push_back(this);
  }
  ~Waiter() {
    const std::lock_guard lock(source_.mutex_);
    source_.waiters_.remove(this);
  }

  AsyncEvent event;

 private:
  FakeControllerSource& source_;
};

/// A request that waits for the end of a pause.
class FakeControllerSource::HeldUp : public base::Pinned {
 public:
  explicit HeldUp(FakeControllerSource& source) : source_(source) {}
  ~HeldUp() {
    const std::lock_guard lock(source_.mutex_);
    if (held_) --source_.held_up_;
  }

  /// Under the mutex.
  void note() {
    if (std::exchange(held_, true)) return;
    ++source_.held_up_;
    source_.changed_.notify_all();
  }

 private:
  FakeControllerSource& source_;
  bool held_ = false;
};

class FakeControllerSource::FakeWatcher : public cache::Watcher {
 public:
  /// Requires the mutex. Starts after a version, or with all existing objects.
  FakeWatcher(FakeControllerSource& source, std::optional<std::uint64_t> from, bool mark_end,
              std::stop_token stop)
      : source_(source), stop_(std::move(stop)), connection_(source.connection_) {
    if (!from) {
      for (const auto& [key, object] : source_.objects_)
        initial_.push_back({api::EventType::kAdded, object});
      if (mark_end)
        initial_.push_back({api::EventType::kBookmark, source_.mark(source_.version_, true)});
      from = source_.version_;
    }
    const auto first = std::find_if(source_.history_.begin(), source_.history_.end(),
                                    [&](const Change& change) { return change.version > *from; });
    position_ = static_cast<std::size_t>(first - source_.history_.begin());
    source_.watchers_.push_back(this);
  }
  ~FakeWatcher() override {
    const std::lock_guard lock(source_.mutex_);
    source_.watchers_.remove(this);
    source_.changed_.notify_all();
  }

  Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
    const auto ready = [this] {
      idle_ = !ended() && nothing_left();
      if (idle_) source_.changed_.notify_all();
      return !idle_;
    };
    co_await source_.wait(ready, stop_);
    const std::lock_guard lock(source_.mutex_);
    idle_ = false;
    events.clear();
    if (ended()) {
      if (source_.last_words_ && connection_ + 1 == source_.connection_ && !said_) {
        said_ = true;
        events.push_back(*source_.last_words_);
        co_return true;
      }
      if (source_.end_ == End::kBroken)
        throw transport_error(rest::TransportError::Kind::kBroken, "the connection broke");
      co_return false;
    }
    while (events.size() < source_.at_once_ && !nothing_left()) {
      if (!initial_.empty()) {
        events.push_back(std::move(initial_.front()));
        initial_.pop_front();
      } else {
        events.push_back(source_.history_[position_++].event);
      }
    }
    co_return true;
  }

  /// Requires the mutex. True if the watch waits and has delivered everything.
  bool idle() const { return idle_ && !ended() && nothing_left(); }

 private:
  bool nothing_left() const { return initial_.empty() && position_ == source_.history_.size(); }
  bool ended() const { return connection_ != source_.connection_; }

  FakeControllerSource& source_;
  const std::stop_token stop_;
  const std::uint64_t connection_;
  std::deque<api::WatchEvent> initial_;  // delivered before the history
  std::size_t position_ = 0;
  bool idle_ = false;
  bool said_ = false;
};

void FakeControllerSource::ring() {
  for (Waiter* waiter : waiters_) waiter->event.ring();
}

template <class Ready>
Awaitable<void> FakeControllerSource::wait(const Ready& ready, std::stop_token stop) {
  Waiter waiter(*this, co_await boost::asio::this_coro::executor);
  // Captures a copy, because a stop may be requested while the request ends.
  const std::stop_callback on_stop(stop, [event = waiter.event] { event.ring(); });
  for (;;) {
    if (stop.stop_requested())
      throw transport_error(rest::TransportError::Kind::kCancelled, "stopped");
    {
      const std::lock_guard lock(mutex_);
      if (ready()) co_return;
    }
    co_await waiter.event.wait();
  }
}

FakeControllerSource::FakeControllerSource(api::GroupVersionKind type) : type_(std::move(type)) {}
FakeControllerSource::~FakeControllerSource() = default;

// ------------------------------------------------------------------------------- the objects

void FakeControllerSource::change(api::EventType type, api::Object object) {
  history_.push_back({{type, std::move(object)}, version_});
  ring();
}

api::Object FakeControllerSource::put(const api::Object& object) {
  const std::lock_guard lock(mutex_);
  api::Object now = with_version(object, ++version_);
  const auto [it, inserted] = objects_.insert_or_assign(now.key(), now);
  change(inserted ? api::EventType::kAdded : api::EventType::kModified, now);
  return now;
}

void FakeControllerSource::remove(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto at = objects_.find(std::string(key));
  if (at == objects_.end()) return;
  // A deletion event has the last content with a new resourceVersion.
  change(api::EventType::kDeleted, with_version(at->second, ++version_));
  objects_.erase(at);
}

std::string FakeControllerSource::resource_version() const {
  const std::lock_guard lock(mutex_);
  return std::to_string(version_);
}

api::Object FakeControllerSource::mark(std::uint64_t version, bool end_of_initial_events) const {
  std::string metadata = fmt::format(R"("resourceVersion":"{}")", version);
  if (end_of_initial_events)
    metadata += fmt::format(R"(,"annotations":{{"{}":"true"}})", api::kInitialEventsEndAnnotation);
  return api::Object::parse(fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{{}}}}})",
                                        type_.api_version(), type_.kind, metadata));
}

void FakeControllerSource::repeat() {
  const std::lock_guard lock(mutex_);
  if (history_.empty() || history_.back().version != version_) return;
  const auto type = history_.back().event.type;
  if (type == api::EventType::kAdded || type == api::EventType::kModified)
    change(api::EventType::kAdded, api::Object(history_.back().event.object));
}

std::map<std::string, api::Object> FakeControllerSource::contents() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

// ----------------------------------------------------------------------------------- failures

void FakeControllerSource::end_watches(End end) {
  ++connection_;
  end_ = end;
  ring();
}
void FakeControllerSource::disconnect() {
  const std::lock_guard lock(mutex_);
  last_words_.reset();
  end_watches(End::kGoodOrder);
}
void FakeControllerSource::break_connections() {
  const std::lock_guard lock(mutex_);
  last_words_.reset();
  end_watches(End::kBroken);
}
void FakeControllerSource::send_error(const api::StatusError& error) {
  const std::lock_guard lock(mutex_);
  last_words_ = api::WatchEvent{api::EventType::kError, error.status().to_object()};
  end_watches(End::kGoodOrder);
}
void FakeControllerSource::bookmark() {
  const std::lock_guard lock(mutex_);
  ++version_;
  change(api::EventType::kBookmark, mark(version_, false));
}
void FakeControllerSource::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = version_++;
  pages_.clear();
}
void FakeControllerSource::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}
void FakeControllerSource::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  ring();
}

void FakeControllerSource::stream_state(bool yes) {
  const std::lock_guard lock(mutex_);
  streams_ = yes;
}
void FakeControllerSource::deliver_at_once(std::size_t events) {
  const std::lock_guard lock(mutex_);
  at_once_ = std::max<std::size_t>(events, 1);
}

// -------------------------------------------------------------------------------- observation

std::size_t FakeControllerSource::lists() const {
  const std::lock_guard lock(mutex_);
  return lists_;
}
std::size_t FakeControllerSource::watches() const {
  const std::lock_guard lock(mutex_);
  return watches_;
}
bool FakeControllerSource::wait_until_watched(std::size_t watches) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] {
    return static_cast<std::size_t>(std::count_if(
               watchers_.begin(), watchers_.end(),
               [](const FakeWatcher* watcher) { return watcher->idle(); })) >= watches;
  });
}
bool FakeControllerSource::wait_until_held_up(std::size_t requests) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return held_up_ >= requests; });
}

// -------------------------------------------------------------------------------- the requests

Awaitable<void> FakeControllerSource::begin(std::deque<std::exception_ptr>& errors,
                                            std::size_t& count, std::stop_token stop) {
  HeldUp held_up(*this);
  const auto ready = [&] {
    if (paused_) held_up.note();
    return !paused_;
  };
  co_await wait(ready, stop);
  const std::lock_guard lock(mutex_);
  ++count;
  if (errors.empty()) co_return;
  const auto error = errors.front();
  errors.pop_front();
  std::rethrow_exception(error);
}

Awaitable<rest::ListMeta> FakeControllerSource::list(OnItem on_item, rest::ListOptions options,
                                                     std::stop_token stop) {
  co_await begin(list_errors_, lists_, stop);
  std::vector<api::Object> items;
  rest::ListMeta meta;
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t version = version_;
    if (options.continue_token.empty()) {
      for (const auto& [key, object] : objects_) items.push_back(object);
    } else {
      // A page may be requested again, as from a server.
      const auto page = pages_.find(options.continue_token);
      if (page == pages_.end()) throw api::StatusError::expired("the continue token is too old");
      std::tie(version, items) = page->second;
    }
    const auto limit = static_cast<std::size_t>(options.limit);
    if (limit > 0 && items.size() > limit) {
      meta.continue_token = "page-" + std::to_string(++next_token_);
      const auto rest = items.begin() + static_cast<std::ptrdiff_t>(limit);
      pages_[meta.continue_token] = {version, std::vector<api::Object>(rest, items.end())};
      items.resize(limit);
    }
    meta.resource_version = std::to_string(version);
    meta.api_version = type_.api_version();
    meta.kind = type_.kind + "List";
  }
  for (auto& item : items) on_item(std::move(item));
  co_return meta;
}

Awaitable<std::unique_ptr<cache::Watcher>> FakeControllerSource::watch(rest::ListOptions options,
                                                                       std::stop_token stop) {
  co_await begin(watch_errors_, watches_, stop);
  const std::lock_guard lock(mutex_);
  const bool stream = options.send_initial_events.value_or(false);
  if (stream && !streams_) {
    throw api::StatusError::invalid(
        "meta.k8s.io", "ListOptions", "",
        {{"FieldValueForbidden", "sendInitialEvents is forbidden for watch", "sendInitialEvents"}});
  }
  const std::uint64_t version =
      options.resource_version.empty() ? 0 : std::stoull(options.resource_version);
  if (version > version_) throw api::StatusError::too_large_resource_version(version, version_, 1);
  std::optional<std::uint64_t> from;
  if (!stream && version > 0) {
    if (version <= forgotten_) throw api::StatusError::expired("too old");
    from = version;
  }
  co_return std::make_unique<FakeWatcher>(*this, from, stream, std::move(stop));
}

}  // namespace lookout::test
