#include "lookout/controller/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>
#include <variant>

#include "controller/cache_core.h"
#include "controller/catch_up.h"
#include "controller/certificate_watcher.h"
#include "controller/controller_core.h"
#include "controller/http_pages.h"
#include "controller/lease_events.h"
#include "controller/own_run.h"
#include "controller/stages.h"
#include "controller/waiting.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/detail/tolerant_clock.h"
#include "lookout/base/http/transport.h"
#include "lookout/base/prometheus_text.h"
#include "lookout/controller/cluster.h"
#include "lookout/tools/leaderelection/leader_elector.h"

namespace lookout::controller {
namespace {

using detail::ControllerCore;
using detail::Stage;
using detail::stage_of;
using detail::Stages;

/// The namespace of this process's pod, if it runs in one.
std::string own_namespace() {
  std::ifstream file("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
  std::string out;
  std::getline(file, out);
  return out;
}

leaderelection::Options election_options(const LeaderElection& given,
                                         const std::shared_ptr<EventSink>& events,
                                         const std::shared_ptr<Clock>& clock) {
  leaderelection::Options out;
  out.name = given.name;
  out.ns = given.ns.empty() ? own_namespace() : given.ns;
  if (out.ns.empty()) {
    throw InvalidArgument(
        "leader election: no namespace was given, and this process does not run in a pod");
  }
  out.identity = given.identity.empty() ? leaderelection::make_identity() : given.identity;
  out.lease_duration = given.lease_duration;
  out.renew_deadline = given.renew_deadline;
  out.retry_period = given.retry_period;
  out.release = given.release;
  out.labels = given.labels;
  out.clock = clock;
  if (events) out.recorder = std::make_shared<detail::LeaseEvents>(events, out.identity);
  return out;
}

void require_complete(const ControllerSpec& spec) {
  const std::string& name = spec.options.name;
  if (name.empty()) throw InvalidArgument("a controller without a kind needs a name: named()");
  if (spec.watches.empty() && spec.sources.empty()) {
    throw InvalidArgument(fmt::format(
        "controller {}: it watches nothing, so nothing would ever be reconciled", name));
  }
  for (const auto& watch : spec.watches) {
    if (!watch.map) {
      throw InvalidArgument(
          fmt::format("controller {}: the map function of its watch of {} is empty", name,
                      watch.resource.plural));
    }
  }
  for (const auto& source : spec.sources) {
    if (!source) throw InvalidArgument(fmt::format("controller {}: a source is null", name));
  }
  if (std::visit([](const auto& function) { return !function; }, spec.reconcile))
    throw InvalidArgument(fmt::format("controller {}: its reconciler is empty", name));
}

/// If a leader still works this long after its lease has expired, /healthz fails.
constexpr std::chrono::seconds kElectionTolerance{20};

/// The minimum time for the release of the lease, even after the stop's time limit.
constexpr std::chrono::seconds kLeastTimeToRelease{1};

}  // namespace

class Manager::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(rest::Client client, ManagerOptions options)
      : client_(std::move(client)),
        options_(std::move(options)),
        clock_(lookout::detail::tolerant(options_.clock)),
        cache_(client_, cache_options()),
        stages_(std::make_shared<Stages>(
            client_.shared_loop(), clock_, [this](std::exception_ptr error) { fail(error); },
            [this](const std::vector<std::string>& names) { overrun(names); })) {
    if (!options_.controllers.name.empty() || options_.controllers.rate_limiter) {
      throw InvalidArgument(
          "ManagerOptions::controllers: a name and a rate limiter belong to one controller: set "
          "them "
          "in its builder");
    }
    if (options_.leader_election) {
      elector_ = std::make_unique<leaderelection::LeaderElector>(
          client_, election_options(*options_.leader_election, options_.events, clock_));
    }
    if (elector_)
      health_.add("leaderElection", [this] { return elector_->check(kElectionTolerance); });
    if (options_.ready_when_caches_are_live)
      ready_.add("caches", [this] { return cache_.check(options_.max_cache_staleness); });
    if (!detail::is_off(options_.health_listen)) {
      health_server_ = std::make_unique<detail::HttpPages>(
          options_.health_listen, [this](const auto& request) { return answer_health(request); },
          detail::HttpPages::Calls::kConcurrent);
    }
    if (!detail::is_off(options_.metrics_listen)) {
      metrics_server_ = std::make_unique<detail::HttpPages>(
          options_.metrics_listen, [this](const auto& request) { return answer_metrics(request); },
          detail::HttpPages::Calls::kOneAtATime, metrics_access());
    }
    if (metrics_certificates_) {
      stages_->add(
          "certificate of /metrics",
          [this](std::stop_token stop) { return watch_certificates(std::move(stop)); },
          Stage::kServers);
    }
  }

  Controller add(ControllerSpec spec) {
    require_complete(spec);
    const bool leader_only = elector_ && spec.options.needs_leader_election;
    detail::Environment environment{
        client_,
        cache_.core(),
        options_.events,
        spec.options.name,
        spec.primary,
        spec.owned,
        spec.shared,
        [this, leader_only] {
          if (leader_only) require_leadership();
        },
        leader_only ? std::function<bool()>([term = term_] { return term->valid(); })
                    : std::function<bool()>(),
        spec.options.read_your_writes};
    std::shared_ptr<ControllerCore> core;
    {
      const std::lock_guard lock(adding_);
      {
        const std::lock_guard guard(mutex_);
        for (const auto& each : controllers_) {
          if (each->name() == spec.options.name) {
            throw InvalidArgument(
                fmt::format("a controller named {} already exists: name one of them with named()",
                            each->name()));
          }
        }
        if (stages_->stopping())
          throw InvalidArgument("the manager is stopping: no controller can be added");
      }
      core = ControllerCore::create(std::move(spec), std::move(environment), options_.concurrency,
                                    clock_);
      if (core->options().stuck_after.count() > 0) {
        health_.add("controller/" + core->name(),
                    [weak = std::weak_ptr(core)]() -> std::optional<std::string> {
                      const auto controller = weak.lock();
                      return controller ? controller->check_stuck() : std::nullopt;
                    });
      }
      const std::lock_guard guard(mutex_);
      controllers_.push_back(core);
    }
    const std::string name = "controller " + core->name();
    if (core->options().warm_up) {
      stages_->add(
          name + ", its sources",
          [core](std::stop_token stop) { return core->warm_up(std::move(stop)); }, Stage::kWarmUp);
    }
    stages_->add(
        name, [core](std::stop_token stop) { return core->run(std::move(stop)); },
        core->options().needs_leader_election ? Stage::kLeader : Stage::kOthers);
    return Controller(core);
  }

  void add(const std::shared_ptr<Cluster>& cluster) {
    if (!cluster) throw InvalidArgument("the cluster to add is null");
    const std::string& name = cluster->name();
    if (cluster->client().shared_loop() != client_.shared_loop()) {
      throw InvalidArgument(
          fmt::format("cluster {}: its client needs the event loop of the manager's client", name));
    }
    const auto core = cluster->cache().core();
    bool begun = false;
    {
      const std::lock_guard lock(mutex_);
      if (stages_->stopping())
        throw InvalidArgument("the manager is stopping: no cluster can be added");
      for (const auto& each : clusters_) {
        if (each->name() == name)
          throw InvalidArgument(fmt::format("a cluster named {} already exists", name));
      }
      if (!core->adopt(*cache_.core()))
        throw InvalidArgument(fmt::format("cluster {}: it has a manager already", name));
      clusters_.push_back(cluster);
      begun = caches_begun_;
    }
    if (options_.ready_when_caches_are_live) {
      ready_.add("caches/" + name,
                 [this, core] { return core->check(options_.max_cache_staleness); });
    }
    if (begun) core->start();
  }

  void add_metrics(std::shared_ptr<const metrics::Source> source) {
    if (!source) throw InvalidArgument("add_metrics(): the source is null");
    const std::lock_guard lock(mutex_);
    metrics_.push_back(std::move(source));
  }

  detail::HealthPage& health() { return health_; }
  detail::HealthPage& ready() { return ready_; }
  Cache& cache() { return cache_; }
  Stages& stages() { return *stages_; }
  const rest::Client& client() const { return client_; }
  EventLoop& loop() const { return client_.loop(); }
  const std::shared_ptr<detail::OwnRun>& own_run() const { return own_run_; }
  const ManagerOptions& options() const { return options_; }

  Awaitable<void> run(std::stop_token stop) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(begun_, true)) throw InvalidArgument("a manager can run only once");
    }
    const std::stop_callback on_stop(stop, [this] { wake_.request_stop(); });
    try {
      co_await start_all();
    } catch (...) {
      fail(std::current_exception());
    }
    co_await detail::wait_for(clock_, wake_.get_token());
    log::info("manager: stopping: {}", stop.stop_requested() ? "stop requested"
                                       : was_lost()          ? "leadership was lost"
                                                             : "a part of it failed");
    const auto began = clock_->now();
    co_await stop_all();
    log::info("manager: stopped in {}", seconds_since(began));
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  bool is_leader() const {
    if (!elector_) return stages_->started(Stage::kLeader) && !work_done_.stop_requested();
    const std::lock_guard lock(mutex_);
    return leadership_ && leadership_->valid();
  }
  std::optional<leaderelection::Leadership> leadership() const {
    const std::lock_guard lock(mutex_);
    if (!leadership_) return std::nullopt;
    return *leadership_;
  }
  std::optional<Clock::Duration> stop_time_left() const { return stages_->time_left(); }
  std::uint16_t health_port() const { return health_server_ ? health_server_->port() : 0; }
  std::uint16_t metrics_port() const { return metrics_server_ ? metrics_server_->port() : 0; }

  void collect(std::vector<metrics::Sample>& out) const {
    std::vector<std::shared_ptr<const metrics::Source>> sources;
    {
      const std::lock_guard lock(mutex_);
      sources.assign(controllers_.begin(), controllers_.end());
      sources.insert(sources.end(), metrics_.begin(), metrics_.end());
    }
    for (const auto& source : sources) source->collect(out);
    for (const auto& cluster : clusters()) {
      const std::size_t first = out.size();
      cluster->cache().collect(out);
      // A further cache of the own cluster may have the own client.
      if (cluster->client().metrics() != client_.metrics())
        cluster->client().metrics()->collect(out);
      for (std::size_t i = first; i < out.size(); ++i)
        out[i].labels.emplace_back("cluster", cluster->name());
    }
    cache_.collect(out);
    client_.metrics()->collect(out);
    if (metrics_certificates_) metrics_certificates_->collect(out);
    if (elector_) elector_->collect(out);
  }

 private:
  /// The leadership, for the check when a write is sent; it may outlive the manager.
  class Term {
   public:
    void begin(const leaderelection::Leadership& leadership) {
      const std::lock_guard lock(mutex_);
      leadership_ = leadership;
    }
    bool valid() const {
      const std::lock_guard lock(mutex_);
      return leadership_ && leadership_->valid();
    }

   private:
    mutable std::mutex mutex_;
    std::optional<leaderelection::Leadership> leadership_;
  };

  std::string seconds_since(Clock::TimePoint began) const {
    return fmt::format("{:.3f} s", std::chrono::duration<double>(clock_->now() - began).count());
  }
  static std::string names(const std::vector<std::shared_ptr<const detail::CachedKind>>& kinds) {
    std::vector<std::string> out;
    out.reserve(kinds.size());
    for (const auto& kind : kinds) out.push_back(kind->name());
    return fmt::format("{}", fmt::join(out, ", "));
  }

  /// The time limit of a stop; empty: none.
  std::optional<std::chrono::milliseconds> grace(bool lost) const {
    if (lost) return std::chrono::milliseconds(0);
    const auto given = options_.graceful_shutdown_timeout;
    return given.count() < 0 ? std::nullopt : std::optional(given);
  }

  std::vector<std::shared_ptr<ControllerCore>> controllers() const {
    const std::lock_guard lock(mutex_);
    return controllers_;
  }
  std::vector<std::shared_ptr<Cluster>> clusters() const {
    const std::lock_guard lock(mutex_);
    return clusters_;
  }
  /// The caches of the other clusters, and the own one.
  std::vector<std::shared_ptr<detail::CacheCore>> caches() const {
    const auto others = clusters();
    std::vector<std::shared_ptr<detail::CacheCore>> out;
    out.reserve(others.size() + 1);
    for (const auto& cluster : others) out.push_back(cluster->cache().core());
    out.push_back(cache_.core());
    return out;
  }

  CacheOptions cache_options() const {
    CacheOptions out = options_.cache;
    if (!out.clock && options_.clock) out.clock = clock_;
    return out;
  }

  detail::PageAccess metrics_access() {
    detail::PageAccess out;
    if (!options_.secure_metrics) return out;
    const SecureMetrics& secure = *options_.secure_metrics;
    if (secure.cert_dir.empty()) {
      if (!secure.client_ca_name.empty())
        throw InvalidArgument(
            "ManagerOptions::secure_metrics: client_ca_name is a file in cert_dir");
      out.tls = http::make_self_signed_context();
    } else {
      const std::filesystem::path folder = secure.cert_dir;
      metrics_certificates_ = std::make_unique<detail::CertificateWatcher>(
          "metrics server", (folder / secure.cert_name).string(),
          (folder / secure.key_name).string(),
          secure.client_ca_name.empty() ? "" : (folder / secure.client_ca_name).string());
      out.tls = metrics_certificates_->context();
    }
    if (secure.authorize) out.review = std::make_shared<detail::AccessReview>(client_, clock_);
    return out;
  }

  /// Looks for renewed files once a second.
  Awaitable<void> watch_certificates(std::stop_token stop) {
    const auto real = Clock::real();
    while (!stop.stop_requested()) {
      const std::function<void()> look = [this] { metrics_certificates_->poll(); };
      co_await detail::on_thread(real, look);
      co_await real->sleep(std::chrono::seconds(1), stop);
    }
  }

  void require_leadership() const {
    const std::lock_guard lock(mutex_);
    if (!leadership_ || !leadership_->valid())
      throw LeadershipLostError("this process does not lead: the write was not sent");
  }

  /// Keeps the first failure, and ends the run.
  void fail(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    wake_.request_stop();
  }

  // ------------------------------------------------------------------------------ start

  Awaitable<void> start_all() {
    const std::stop_token wake = wake_.get_token();
    for (const auto& cache : caches()) cache->expect_start();
    if (health_server_) {
      health_server_->start();
      log::info("manager: serves /healthz and /readyz on port {}", health_server_->port());
    }
    if (metrics_server_) {
      metrics_server_->start();
      log::info("manager: serves /metrics on port {}", metrics_server_->port());
    }
    stages_->start(Stage::kServers);
    stages_->start(Stage::kWebhooks);
    const auto began = clock_->now();
    const std::string synced = co_await start_caches(wake);
    if (wake.stop_requested()) co_return;
    if (!synced.empty())
      log::info("manager: caches synced in {}: {}", seconds_since(began), synced);
    stages_->start(Stage::kOthers);
    stages_->start(Stage::kWarmUp);
    co_await stages_->wait_for_end(Stage::kWarmUp, wake);
    if (wake.stop_requested()) co_return;
    if (elector_) {
      campaign();
    } else {
      stages_->start(Stage::kLeader);
    }
  }

  /// Returns the names of the kinds that were awaited.
  Awaitable<std::string> start_caches(std::stop_token wake) {
    {
      const std::lock_guard lock(mutex_);
      caches_begun_ = true;
    }
    // A cluster that is added from here on starts itself, too; the second start does nothing.
    const auto all = caches();
    std::vector<std::vector<std::shared_ptr<const detail::CachedKind>>> kinds;
    kinds.reserve(all.size());
    std::vector<std::string> synced;
    for (const auto& cache : all) {
      kinds.push_back(cache->kinds());
      if (!kinds.back().empty()) synced.push_back(names(kinds.back()));
      cache->start();
    }
    for (std::size_t i = 0; i < all.size(); ++i) co_await all[i]->wait_for_sync(kinds[i], wake);
    co_return fmt::format("{}", fmt::join(synced, ", "));
  }

  void campaign() {
    {
      const std::lock_guard lock(mutex_);
      campaigning_ = true;
    }
    const leaderelection::LeaderElector::AsyncWork work =
        [self = shared_from_this()](leaderelection::Leadership leadership) {
          return self->lead(std::move(leadership));
        };
    boost::asio::co_spawn(
        client_.loop().context(), elector_->async_run(work, elector_stop_.get_token()),
        [self = shared_from_this()](const std::exception_ptr& error, leaderelection::End end) {
          if (error) {
            self->fail(error);
          } else if (end == leaderelection::End::kLost && !self->stages_->stopping()) {
            self->lose();
          }
          self->elector_ended_.request_stop();
        });
  }

  Awaitable<void> lead(leaderelection::Leadership leadership) {
    if (stages_->stopping()) co_return;
    {
      const std::lock_guard lock(mutex_);
      leadership_ = std::make_unique<leaderelection::Leadership>(leadership);
      term_->begin(leadership);
    }
    const std::stop_token end = leadership.stop();
    co_await catch_up(end);
    if (!end.stop_requested()) stages_->start(Stage::kLeader);
    co_await detail::wait_for(clock_, end);
    if (!stages_->stopping()) lose();
    co_await detail::wait_for(clock_, work_done_.get_token());
  }

  Awaitable<void> catch_up(std::stop_token end) {
    using std::chrono::milliseconds;
    if (options_.catch_up_timeout <= milliseconds::zero()) co_return;
    const auto until = detail::end_of(options_.catch_up_timeout, clock_->now());
    auto all = caches();
    std::reverse(all.begin(), all.end());  // the own one first
    for (const auto& cache : all) {
      const auto left = std::chrono::ceil<milliseconds>(until - clock_->now());
      co_await detail::catch_up(cache, cache->kinds(), std::max(left, milliseconds(1)), end);
    }
  }

  void lose() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(lost_, true)) return;
    }
    fail(std::make_exception_ptr(
        LeaderElectionLostError("leadership was lost: this process must exit and start again")));
  }

  bool was_lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  // ------------------------------------------------------------------------------ stop

  Awaitable<void> stop_all() {
    const bool lost = was_lost();
    stages_->begin_stop(grace(lost));
    // While work ends, the elector keeps renewing; a waiting candidate ends.
    elector_stop_.request_stop();
    if (lost) stages_->request_stop();
    co_await stages_->stop(Stage::kOthers);
    co_await stages_->stop(Stage::kWarmUp);
    co_await stages_->stop(Stage::kLeader);
    const std::function<void()> end_controllers = [this] {
      for (const auto& controller : controllers()) controller->end();
    };
    co_await stages_->run_part("the sources of controllers", end_controllers);
    const std::function<void()> end_caches = [this] {
      for (const auto& cache : caches()) cache->shutdown();
    };
    co_await stages_->run_part("the caches", end_caches);
    co_await stages_->stop(Stage::kWebhooks);
    co_await stages_->stop(Stage::kServers);
    const std::function<void()> end_servers = [this] {
      if (health_server_) health_server_->stop();
      if (metrics_server_) metrics_server_->stop();
    };
    co_await stages_->run_part("the HTTP servers", end_servers);
    work_done_.request_stop();
    bool campaigning = false;
    {
      const std::lock_guard lock(mutex_);
      campaigning = campaigning_;
    }
    if (!campaigning) co_return;
    // An unresponsive server must not delay the stop: other candidates then wait for the lease to expire.
    const auto until = std::max(stages_->deadline(), clock_->now() + kLeastTimeToRelease);
    const bool released = co_await detail::wait_until(clock_, elector_ended_.get_token(), until);
    if (released) co_return;
    elector_->give_up_release();
    co_await detail::wait_for(clock_, elector_ended_.get_token());
  }

  /// The stop exceeds its time limit: reports the running parts.
  void overrun(const std::vector<std::string>& late) {
    std::vector<std::string> keys;
    for (const auto& controller : controllers()) {
      for (const std::string& key : controller->running())
        keys.push_back(controller->name() + " " + key);
    }
    const std::string message = fmt::format(
        "{}; still running: {}{}{}",
        was_lost() ? "leadership was lost" : "the shutdown takes too long", fmt::join(late, ", "),
        keys.empty() ? "" : "; reconciles: ", fmt::join(keys, ", "));
    log::error("manager: {}", message);
    fail(std::make_exception_ptr(ShutdownOverrunError(message)));
    if (!options_.on_shutdown_overrun) return;
    try {
      options_.on_shutdown_overrun();
    } catch (...) {
      log::error("manager: on_shutdown_overrun threw");
    }
  }

  // ------------------------------------------------------------------------------ pages

  http::Response answer_health(const http::Request& request) const {
    const std::string_view path = request.path;
    for (const auto& [prefix, page] :
         {std::pair<std::string_view, const detail::HealthPage*>("/healthz", &health_),
          std::pair<std::string_view, const detail::HealthPage*>("/readyz", &ready_)}) {
      if (path.substr(0, prefix.size()) != prefix) continue;
      const std::string_view rest = path.substr(prefix.size());
      if (rest.empty() || rest.front() == '/') return page->answer(request, rest);
    }
    return http::Response::text(404, "404 page not found\n");
  }

  http::Response answer_metrics(const http::Request& request) const {
    if (request.path != "/metrics") return http::Response::text(404, "404 page not found\n");
    std::vector<metrics::Sample> samples;
    collect(samples);
    auto response = http::Response::text(200, metrics::prometheus_text(samples));
    response.content_type = metrics::kPrometheusType;
    return response;
  }

  const rest::Client client_;
  const ManagerOptions options_;
  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<detail::OwnRun> own_run_ = std::make_shared<detail::OwnRun>();
  Cache cache_;
  const std::shared_ptr<Stages> stages_;
  std::unique_ptr<leaderelection::LeaderElector> elector_;
  detail::HealthPage health_{"healthz"};
  detail::HealthPage ready_{"readyz"};

  std::stop_source wake_;           // a stop was requested, or something failed
  std::stop_source elector_stop_;   // ends the candidacy
  std::stop_source elector_ended_;  // the candidacy has ended
  std::stop_source work_done_;      // everything has stopped: the lease may be released

  std::mutex adding_;  // one controller at a time
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool begun_ = false;
  bool lost_ = false;
  bool campaigning_ = false;
  std::exception_ptr error_;
  std::unique_ptr<leaderelection::Leadership> leadership_;
  const std::shared_ptr<Term> term_ = std::make_shared<Term>();
  std::vector<std::shared_ptr<ControllerCore>> controllers_;
  std::vector<std::shared_ptr<const metrics::Source>> metrics_;
  std::vector<std::shared_ptr<Cluster>> clusters_;
  bool caches_begun_ = false;  // a cluster that is added later starts at once

  std::unique_ptr<detail::CertificateWatcher> metrics_certificates_;  // null: not from files
  // Declared last, because their threads use the other members.
  std::unique_ptr<detail::HttpPages> health_server_;
  std::unique_ptr<detail::HttpPages> metrics_server_;
};

Manager::Manager(rest::Client client, ManagerOptions options)
    : impl_(std::make_shared<Impl>(std::move(client), std::move(options))) {}
Manager::~Manager() {
  const auto own = impl_->own_run();
  own->end(impl_->loop());
}

const rest::Client& Manager::client() const { return impl_->client(); }
Cache& Manager::cache() const { return impl_->cache(); }
const ControllerOptions& Manager::controller_defaults() const {
  return impl_->options().controllers;
}
void Manager::add(std::string name, Run run, RunnableGroup group) {
  impl_->stages().add_blocking(std::move(name), std::move(run), stage_of(group));
}
void Manager::add_async(std::string name, AsyncRun run, RunnableGroup group) {
  impl_->stages().add(std::move(name), std::move(run), stage_of(group));
}
void Manager::add(const std::shared_ptr<Cluster>& cluster) { impl_->add(cluster); }
Controller Manager::add(ControllerSpec spec) { return impl_->add(std::move(spec)); }
void Manager::add_health_check(std::string name, HealthCheck check) {
  impl_->health().add(std::move(name), std::move(check));
}
void Manager::add_ready_check(std::string name, HealthCheck check) {
  impl_->ready().add(std::move(name), std::move(check));
}
void Manager::add_metrics(std::shared_ptr<const metrics::Source> source) {
  impl_->add_metrics(std::move(source));
}
void Manager::run(std::stop_token stop) { detail::OwnRun::run(impl_, std::move(stop)); }
Awaitable<void> Manager::async_run(std::stop_token stop) {
  return detail::cancel_as_stop(
      [impl = impl_](std::stop_token either) { return impl->run(std::move(either)); },
      std::move(stop));
}
std::optional<Clock::Duration> Manager::stop_time_left() const { return impl_->stop_time_left(); }
bool Manager::is_leader() const { return impl_->is_leader(); }
std::optional<leaderelection::Leadership> Manager::leadership() const {
  return impl_->leadership();
}
std::uint16_t Manager::health_port() const { return impl_->health_port(); }
std::uint16_t Manager::metrics_port() const { return impl_->metrics_port(); }
void Manager::collect(std::vector<metrics::Sample>& out) const { impl_->collect(out); }

}  // namespace lookout::controller
