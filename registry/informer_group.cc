#include "registry/informer_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <stop_token>
#include <utility>

namespace lookout::registry::detail {

/// Asks the informers how they are. Sets refer to it, and may outlive the informers.
class InformerGroup::LiveSource : public FreshnessSource {
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

InformerGroup::InformerGroup(rest::Client client, InformerGroupOptions options,
                             std::shared_ptr<informer::HandlerPool> pool)
    : client_(std::move(client)),
      options_(std::move(options)),
      pool_(std::move(pool)),
      live_(std::make_shared<LiveSource>()),
      freshness_(live_) {}

InformerGroup::~InformerGroup() { close(); }

void InformerGroup::check_open() const {
  const std::lock_guard lock(mutex_);
  if (closed_) throw InvalidArgument("the registry is closed");
}

void InformerGroup::start(const MakeHandler& make_handler) {
  std::vector<InformerPtr> informers;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw InvalidArgument("the registry is closed");
    if (std::exchange(started_, true)) return;
    LiveSource::Informers weak;
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
      informer.indexers = options_.indexers;
      informers_.push_back(std::make_shared<informer::SharedIndexInformer>(
          std::make_shared<cache::ListWatch>(client_.resource(options_.resource, ns),
                                             std::move(list_watch)),
          std::move(informer), client_.shared_loop(), pool_));
      weak.push_back(informers_.back());
    }
    live_->set(std::move(weak));
    informers = informers_;
  }
  for (const auto& informer : informers) {
    // One that was closed meanwhile takes no handler.
    if (informer->stopped()) continue;
    informer->add_handler(make_handler());
    informer->start();
  }
}

std::vector<InformerPtr> InformerGroup::informers() const {
  const std::lock_guard lock(mutex_);
  return informers_;
}

bool InformerGroup::synced() const {
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

void InformerGroup::wait_for_sync(const WaitOptions& wait) const {
  check_open();
  if (synced_.load(std::memory_order_acquire)) return;
  if (client_.loop().running_in_this_thread()) {
    throw InvalidArgument("waiting for the registry's data on the event loop would block it");
  }
  const auto timeout = wait.timeout.count() > 0 ? wait.timeout : options_.sync_timeout;
  std::stop_source expired;
  const std::stop_callback forward(wait.stop, [&] { expired.request_stop(); });
  boost::asio::steady_timer timer(client_.loop().context(), timeout);
  timer.async_wait([expired](const boost::system::error_code& error) mutable {
    if (!error) expired.request_stop();
  });
  const auto informers = this->informers();
  std::vector<std::string> missing;
  for (const auto& informer : informers) {
    if (!informer->wait_for_sync(expired.get_token())) missing.push_back(informer->name());
  }
  if (missing.empty() && !informers.empty()) return;
  check_open();
  throw NotSynced(fmt::format("the registry has no data yet: {} {}", fmt::join(missing, ", "),
                              wait.stop.stop_requested()
                                  ? "did not come before the stop"
                                  : fmt::format("did not come within {} ms", timeout.count())));
}

std::vector<InformerPtr> InformerGroup::close() {
  std::vector<InformerPtr> informers;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    informers.swap(informers_);
  }
  live_->close();
  for (const auto& informer : informers) informer->stop();
  return informers;
}

}  // namespace lookout::registry::detail
