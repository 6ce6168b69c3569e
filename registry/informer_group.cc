#include "registry/informer_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <stop_token>
#include <string_view>
#include <utility>

#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/tools/cache/detail/repeated_error.h"

namespace lookout::registry::detail {
namespace {

/// An error response that is permanent until the configuration changes.
bool is_refusal(const std::exception& e) {
  return api::is_forbidden(e) || api::is_unauthorized(e) || api::is_not_found(e);
}

/// Not a failure: a watch that was disconnected for long must relist.
bool is_expired(const std::exception& e) { return api::is_resource_expired(e) || api::is_gone(e); }

WatchFailure failure_of(const std::string& ns, const std::exception& e) {
  const auto* status = dynamic_cast<const api::StatusError*>(&e);
  return {.ns = ns, .reason = e.what(), .code = status == nullptr ? 0 : status->code()};
}

/// Waits until a stop is requested.
void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
}

}  // namespace

std::vector<std::string> each_once(std::vector<std::string> namespaces) {
  // kAllNamespaces includes all others.
  const auto is_all = [](const std::string& ns) { return ns.empty() || ns == kAllNamespaces; };
  if (std::ranges::any_of(namespaces, is_all)) return {""};
  std::ranges::sort(namespaces);
  const auto again = std::ranges::unique(namespaces);
  namespaces.erase(again.begin(), again.end());
  return namespaces;
}

void log_failure(const api::Resource& resource, const WatchFailure& failure, bool repeated) {
  const std::string text =
      fmt::format("registry: {}{}{}: {}", resource.qualified_name(),
                  failure.ns.empty() ? "" : " in ", failure.ns, failure.reason);
  if (repeated) {
    log::debug("{}", text);
  } else {
    log::warn("{}", text);
  }
}

InformerGroup::InformerGroup(rest::Client client, InformerGroupOptions options,
                             std::shared_ptr<informer::HandlerPool> pool)
    : client_(std::move(client)),
      options_(std::move(options)),
      pool_(std::move(pool)),
      state_(std::make_shared<GroupState>()) {}

InformerGroup::~InformerGroup() { close(); }

void InformerGroup::start(const std::function<InformerGroupEvents()>& make_events) {
  std::vector<InformerPtr> informers;
  InformerGroupEvents events;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw InvalidArgument("the registry is closed");
    if (std::exchange(started_, true)) return;
    events = make_events();
    std::vector<GroupState::Source> sources;
    for (const auto& ns : options_.namespaces) {
      cache::ListWatchOptions list_watch;
      list_watch.label_selector = options_.label_selector;
      list_watch.decode.projection = options_.projection;
      informer::InformerOptions informer;
      informer.reflector.name =
          ns.empty() ? options_.resource.qualified_name()
                     : fmt::format("{} in {}", options_.resource.qualified_name(), ns);
      informer.reflector.expected_api_version = options_.resource.api_version();
      informer.reflector.expected_kind = options_.resource.kind;
      informer.reflector.backoff = options_.backoff;
      informer.reflector.watch_error_handler =
          [state = state_, failed = events.failed, synced = events.synced, ns,
           index = informers_.size(),
           known = std::make_shared<cache::RepeatedError>(Clock::real())](std::string_view name,
                                                                          const std::exception& e) {
            if (is_expired(e)) {
              log::info("{}: the watch ended, the resourceVersion has expired: {}", name, e.what());
              return;
            }
            const bool news = state->failed(index, is_refusal(e));
            failed(failure_of(ns, e), known->repeats(e));
            if (news) synced();
          };
      informer.indexers = options_.indexers;
      informers_.push_back(std::make_shared<informer::SharedIndexInformer>(
          std::make_shared<cache::ListWatch>(client_.resource(options_.resource, ns),
                                             std::move(list_watch)),
          std::move(informer), client_.shared_loop(), pool_));
      sources.push_back({ns, informers_.back()});
    }
    state_->set(std::move(sources));
    informers = informers_;
  }
  for (std::size_t i = 0; i < informers.size(); ++i) {
    // A stopped informer accepts no handler.
    if (informers[i]->stopped()) continue;
    auto handler = events.make_handler();
    handler.on_synced = [state = state_, i, synced = events.synced] {
      state->told(i);
      synced();
    };
    try {
      informers[i]->add_handler(std::move(handler)).release();
    } catch (const InvalidArgument&) {
      // It was stopped in between.
      if (informers[i]->stopped()) continue;
      throw;
    }
    informers[i]->start();
  }
}

std::vector<InformerPtr> InformerGroup::informers() const {
  const std::lock_guard lock(mutex_);
  return informers_;
}

void InformerGroup::wait_for_sync(const WaitOptions& wait, Synced what) const {
  const auto check_open = [&] {
    if (state_->closed()) throw InvalidArgument("the registry is closed");
  };
  check_open();
  if (what == Synced::kStores ? state_->synced() : state_->missing(what).none) return;
  if (client_.loop().running_in_this_thread()) {
    throw InvalidArgument("waiting for the registry's data would block the event loop");
  }
  const auto timeout = wait.timeout.count() > 0 ? wait.timeout : options_.sync_timeout;
  std::stop_source expired;
  const std::stop_callback forward(wait.stop, [&] { expired.request_stop(); });
  boost::asio::steady_timer timer(client_.loop().context(), Clock::limited(timeout));
  timer.async_wait([expired](const boost::system::error_code& error) mutable {
    if (!error) expired.request_stop();
  });
  for (;;) {
    const auto missing = state_->missing(what);
    check_open();
    if (missing.none) return;
    if (missing.all_refused) {
      throw NotSynced(fmt::format("the registry has no data: the server refuses {}",
                                  fmt::join(state_->missing_names(), ", ")));
    }
    if (expired.stop_requested()) break;
    std::stop_source look;
    const std::stop_callback on_expiry(expired.get_token(), [&] { look.request_stop(); });
    const std::stop_callback on_change(missing.changed, [&] { look.request_stop(); });
    if (missing.informer) {
      missing.informer->wait_for_sync(look.get_token());
    } else {
      wait_for(look.get_token());
    }
  }
  throw NotSynced(fmt::format("the registry has no data yet: {} did not arrive {}",
                              fmt::join(state_->missing_names(), ", "),
                              wait.stop.stop_requested()
                                  ? "before the stop"
                                  : fmt::format("within {} ms", timeout.count())));
}

std::vector<InformerPtr> InformerGroup::close() {
  std::vector<InformerPtr> informers;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    informers.swap(informers_);
  }
  state_->close();
  for (const auto& informer : informers) informer->stop();
  return informers;
}

}  // namespace lookout::registry::detail
