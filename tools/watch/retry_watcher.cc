#include "lookout/tools/watch/retry_watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/rest/error.h"
#include "lookout/tools/cache/detail/repeated_error.h"
#include "tools/cache/retry_after.h"

namespace lookout::watch {
namespace {

bool hopeless(const std::exception& e) {
  return api::is_gone(e) || api::is_resource_expired(e) || api::is_forbidden(e) ||
         api::is_unauthorized(e);
}

api::WatchEvent error_event(const api::StatusError& error) {
  return {api::EventType::kError, error.status().to_object()};
}

rest::TransportError cancelled() {
  return {rest::TransportError::Kind::kCancelled, "the watch was stopped"};
}

}  // namespace

RetryWatcher::RetryWatcher(std::shared_ptr<cache::ListerWatcher> source,
                           std::string resource_version, std::stop_token stop,
                           RetryWatcherOptions options)
    : source_(std::move(source)),
      stop_(std::move(stop)),
      min_restart_delay_(Clock::limited(options.min_restart_delay)),
      clock_(options.clock ? std::move(options.clock) : Clock::real()),
      resource_version_(std::move(resource_version)),
      logged_(std::make_unique<cache::RepeatedError>(clock_)) {
  if (resource_version_.empty() || resource_version_ == "0") {
    throw InvalidArgument(
        fmt::format(R"(a watch cannot begin at the resourceVersion "{}": it would begin at any)",
                    resource_version_));
  }
}

RetryWatcher::~RetryWatcher() = default;

std::string RetryWatcher::last_resource_version() const {
  const std::lock_guard lock(mutex_);
  return resource_version_;
}

void RetryWatcher::set_resource_version(std::string version) {
  const std::lock_guard lock(mutex_);
  resource_version_ = std::move(version);
}

Awaitable<bool> RetryWatcher::next(std::vector<api::WatchEvent>& events) {
  events.clear();
  while (events.empty()) {
    if (done_) co_return false;
    if (stop_.stop_requested()) throw cancelled();
    if (!watcher_) {
      co_await open(events);
      continue;
    }
    bool more = false;
    try {
      more = co_await watcher_->next(batch_);
    } catch (const api::DecodeError&) {
      // The change is unknown, and the same event would arrive again.
      done_ = true;
      throw;
    } catch (const std::exception& e) {
      if (stop_.stop_requested()) throw cancelled();
      log::debug("a watch from {} ended: {}", last_resource_version(), e.what());
    }
    if (more) {
      take(batch_, events);
    } else {
      watcher_.reset();
    }
  }
  co_return true;
}

Awaitable<void> RetryWatcher::open(std::vector<api::WatchEvent>& events) {
  const auto now = clock_->now();
  if (now < next_attempt_) {
    const bool slept = co_await clock_->sleep(next_attempt_ - now, stop_);
    if (!slept) throw cancelled();
  }
  next_attempt_ = clock_->now() + min_restart_delay_;
  rest::ListOptions options;
  options.resource_version = last_resource_version();
  options.allow_watch_bookmarks = true;
  try {
    watcher_ = co_await source_->watch(std::move(options), stop_);
  } catch (const api::StatusError& e) {
    if (stop_.stop_requested()) throw cancelled();
    if (hopeless(e)) co_return end_with(error_event(e), events);
    wait_if_asked(e);
    log::debug("a watch from {} was refused: {}", last_resource_version(), e.what());
  } catch (const rest::TransportError& e) {
    if (stop_.stop_requested()) throw cancelled();
    log::debug("a watch from {} failed: {}", last_resource_version(), e.what());
  } catch (const std::exception& e) {
    if (stop_.stop_requested()) throw cancelled();
    // A credential plugin failed, or a proxy answered instead of the server. Retry, but log it, because
    // it may be permanent.
    const auto level = logged_->repeats(e) ? log::Level::kDebug : log::Level::kWarn;
    log::at(level, "a watch from {} failed: {}", last_resource_version(), e.what());
  }
}

void RetryWatcher::wait_if_asked(const api::StatusError& error) {
  next_attempt_ = std::max(next_attempt_, clock_->now() + cache::wait_asked_for(error));
}

void RetryWatcher::take(std::vector<api::WatchEvent>& from, std::vector<api::WatchEvent>& events) {
  for (auto& event : from) {
    if (event.type == api::EventType::kError) {
      // Retry everything that is not permanent.
      watcher_.reset();
      if (const auto status = api::Status::from(event.object)) {
        const api::StatusError error(*status);
        if (hopeless(error)) return end_with(event, events);
        wait_if_asked(error);
      }
      return;
    }
    std::string version(event.object.resource_version());
    if (version.empty()) {
      return end_with(error_event(api::StatusError::internal_error(
                          fmt::format("a watch brought {} {} without a resourceVersion",
                                      api::to_string(event.type), event.object.kind()))),
                      events);
    }
    if (event.type != api::EventType::kBookmark) events.push_back(std::move(event));
    set_resource_version(std::move(version));
  }
}

void RetryWatcher::end_with(const api::WatchEvent& event, std::vector<api::WatchEvent>& events) {
  events.push_back(event);
  watcher_.reset();
  done_ = true;
}

}  // namespace lookout::watch
