#include "tests/support/fake_source.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <utility>

#include "lookout/api/status.h"
#include "rest/async_event.h"

namespace lookout::test {
namespace {

// Longer than anything takes that works.
constexpr std::chrono::seconds kPatience{60};

rest::TransportError transport_error(rest::TransportError::Kind kind, const char* message) {
  return {kind, message};
}

}  // namespace

/// A request that waits.
class FakeSource::Waiter {
 public:
  Waiter(FakeSource& owner, boost::asio::any_io_executor executor)
      : event(std::move(executor)), source_(owner) {
    const std::lock_guard lock(source_.mutex_);
    source_.waiters_.push_back(this);
  }
  ~Waiter() {
    const std::lock_guard lock(source_.mutex_);
    source_.waiters_.remove(this);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  rest::detail::AsyncEvent event;

 private:
  FakeSource& source_;
};

/// A request that a pause holds up.
class FakeSource::HeldUp {
 public:
  explicit HeldUp(FakeSource& source) : source_(source) {}
  ~HeldUp() {
    const std::lock_guard lock(source_.mutex_);
    if (held_) --source_.held_up_;
  }
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;

  /// Under the mutex.
  void note() {
    if (std::exchange(held_, true)) return;
    ++source_.held_up_;
    source_.changed_.notify_all();
  }

 private:
  FakeSource& source_;
  bool held_ = false;
};

class FakeSource::FakeWatcher : public cache::Watcher {
 public:
  /// Under the mutex.
  FakeWatcher(FakeSource& source, std::uint64_t version, std::stop_token stop)
      : source_(source), stop_(std::move(stop)), connection_(source.connection_) {
    const auto first = std::find_if(source_.history_.begin(), source_.history_.end(),
                                    [&](const Change& change) { return change.version > version; });
    position_ = static_cast<std::size_t>(first - source_.history_.begin());
    source_.watchers_.push_back(this);
  }
  ~FakeWatcher() override {
    const std::lock_guard lock(source_.mutex_);
    source_.watchers_.remove(this);
    source_.changed_.notify_all();
  }

  rest::Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
    const auto ready = [this] {
      idle_ = !ended() && position_ == source_.history_.size();
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
    for (; position_ < source_.history_.size(); ++position_)
      events.push_back(source_.history_[position_].event);
    co_return true;
  }

  /// Under the mutex: it waits, and there is nothing that it has not been told.
  bool idle() const { return idle_ && !ended() && position_ == source_.history_.size(); }

 private:
  bool ended() const { return connection_ != source_.connection_; }

  FakeSource& source_;
  const std::stop_token stop_;
  const std::uint64_t connection_;
  std::size_t position_ = 0;
  bool idle_ = false;
  bool said_ = false;
};

void FakeSource::ring() {
  for (Waiter* waiter : waiters_) waiter->event.ring();
}

template <class Ready>
rest::Awaitable<void> FakeSource::wait(const Ready& ready, std::stop_token stop) {
  Waiter waiter(*this, co_await boost::asio::this_coro::executor);
  // A copy: the stop may come while the request ends.
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

// ------------------------------------------------------------------------------- the objects

void FakeSource::change(api::EventType type, api::Object object) {
  history_.push_back({{type, std::move(object)}, version_});
  ring();
}

api::Object FakeSource::put(std::string_view key, const PodSpec& spec) {
  const std::lock_guard lock(mutex_);
  api::Object object = pod(key, ++version_, spec);
  specs_[std::string(key)] = spec;
  const auto [it, inserted] = objects_.insert_or_assign(std::string(key), object);
  change(inserted ? api::EventType::kAdded : api::EventType::kModified, object);
  return object;
}

void FakeSource::remove(std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (objects_.erase(std::string(key)) == 0) return;
  // A deletion shows the last content with a resourceVersion of its own.
  change(api::EventType::kDeleted, pod(key, ++version_, specs_.at(std::string(key))));
}

void FakeSource::repeat() {
  const std::lock_guard lock(mutex_);
  if (history_.empty() || history_.back().version != version_) return;
  const auto type = history_.back().event.type;
  if (type == api::EventType::kAdded || type == api::EventType::kModified)
    change(api::EventType::kAdded, api::Object(history_.back().event.object));
}

std::map<std::string, api::Object> FakeSource::contents() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

// -------------------------------------------------------------------------- what can go wrong

void FakeSource::end_watches(End end) {
  ++connection_;
  end_ = end;
  ring();
}
void FakeSource::disconnect() {
  const std::lock_guard lock(mutex_);
  last_words_.reset();
  end_watches(End::kGoodOrder);
}
void FakeSource::break_connections() {
  const std::lock_guard lock(mutex_);
  last_words_.reset();
  end_watches(End::kBroken);
}
void FakeSource::send_error(const api::StatusError& error) {
  const std::lock_guard lock(mutex_);
  last_words_ = api::WatchEvent{api::EventType::kError, error.status().to_object()};
  end_watches(End::kGoodOrder);
}
void FakeSource::bookmark() {
  const std::lock_guard lock(mutex_);
  ++version_;
  change(api::EventType::kBookmark, object_of_kind("v1", "Pod", "", std::to_string(version_)));
}
void FakeSource::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = version_++;
  pages_.clear();
}
void FakeSource::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}
void FakeSource::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  ring();
}

// ------------------------------------------------------------------------------ what is going on

std::size_t FakeSource::lists() const {
  const std::lock_guard lock(mutex_);
  return lists_;
}
std::size_t FakeSource::watches() const {
  const std::lock_guard lock(mutex_);
  return watches_;
}
bool FakeSource::wait_until_watched(std::size_t watches) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] {
    return static_cast<std::size_t>(std::count_if(
               watchers_.begin(), watchers_.end(),
               [](const FakeWatcher* watcher) { return watcher->idle(); })) >= watches;
  });
}
bool FakeSource::wait_until_held_up(std::size_t requests) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return held_up_ >= requests; });
}

// -------------------------------------------------------------------------------- the requests

rest::Awaitable<void> FakeSource::begin(std::deque<std::exception_ptr>& errors, std::size_t& count,
                                        std::stop_token stop) {
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

rest::Awaitable<rest::ListMeta> FakeSource::list(OnItem on_item, rest::ListOptions options,
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
      auto page = pages_.extract(options.continue_token);
      if (page.empty()) throw api::StatusError::expired("the continue token is too old");
      version = page.mapped().first;
      items = std::move(page.mapped().second);
    }
    const auto limit = static_cast<std::size_t>(options.limit);
    if (limit > 0 && items.size() > limit) {
      meta.continue_token = "page-" + std::to_string(++next_token_);
      const auto rest = items.begin() + static_cast<std::ptrdiff_t>(limit);
      pages_[meta.continue_token] = {version, std::vector<api::Object>(rest, items.end())};
      items.resize(limit);
    }
    meta.resource_version = std::to_string(version);
  }
  for (auto& item : items) on_item(std::move(item));
  co_return meta;
}

rest::Awaitable<std::unique_ptr<cache::Watcher>> FakeSource::watch(rest::ListOptions options,
                                                                   std::stop_token stop) {
  co_await begin(watch_errors_, watches_, stop);
  const std::lock_guard lock(mutex_);
  const std::uint64_t version = std::stoull(options.resource_version);
  if (version <= forgotten_) throw api::StatusError::expired("too old");
  co_return std::make_unique<FakeWatcher>(*this, version, std::move(stop));
}

}  // namespace lookout::test
