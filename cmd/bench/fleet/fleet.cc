#include "cmd/bench/fleet/fleet.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "lookout/api/error.h"

namespace lookout::cmd::bench::fleet {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

/// The time limit for steps that should always succeed.
constexpr auto kPatience = 1min;
/// The time without faults before and after a fault.
constexpr auto kQuiet = 200ms;

registry::Options registry_options() {
  registry::Options out;
  out.ns = kNamespace;
  out.on_error = [](const registry::WatchFailure&) {};  // outages of the API server are expected
  return out;
}

/// Each caller keeps connections to instances, including new ones of a wave, and has one in use; both
/// ends are in this process.
void raise_descriptor_limit(const FleetOptions& options) {
  const std::size_t instances = options.instances + options.instances / options.waves + 1;
  const std::size_t connections = std::min(instances, Connections::kMostKept + 1);
  const rlim_t needed = 2 * connections * options.callers + 16 * instances + 1000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed) {
    throw Error(fmt::format("the fleet needs {} file descriptors, the process may open {}", needed,
                            limit.rlim_max));
  }
  limit.rlim_cur = needed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::uint64_t Outcome::worst_timeouts() const {
  std::uint64_t out = 0;
  for (const auto& [port, count] : tally.worst) {
    if (faulty.contains(port)) out = std::max(out, count);
  }
  return out;
}

bool Outcome::holds() const { return tally.failed <= may_fail && worst_timeouts() <= may_time_out; }

Fleet::Fleet(const FleetOptions& options) : options_(options) {
  raise_descriptor_limit(options_);
  registry_ = std::make_unique<registry::kratos::Registry>(cluster_.client(), registry_options());
  start(options_.instances);
}

std::span<const std::unique_ptr<Instance>> Fleet::faulty() const {
  return std::span(instances_).first(std::min(options_.faulty, instances_.size()));
}

void Fleet::start(std::size_t count) {
  InstanceOptions instance;
  instance.answer_time = options_.answer_time;
  if (options_.policies == Policies::kKratos) {
    instance.notice = 0ms;
  } else {
    instance.notice = options_.notice;
  }
  const std::size_t before = instances_.size();
  for (std::size_t i = 0; i < count; ++i) {
    instances_.push_back(
        std::make_unique<Instance>(cluster_, fmt::format("web-{}", next_name_++), instance));
  }
  for (std::size_t i = before; i < instances_.size(); ++i) {
    if (!instances_[i]->wait_registered(kPatience)) throw Error("an instance did not register");
  }
}

void Fleet::terminate(std::size_t count) {
  count = std::min(count, instances_.size());
  for (std::size_t i = 0; i < count; ++i) instances_[i]->terminate();
  for (std::size_t i = 0; i < count; ++i) instances_[i]->ended();
  instances_.erase(instances_.begin(), instances_.begin() + static_cast<std::ptrdiff_t>(count));
}

void Fleet::remove(std::size_t count) {
  count = std::min(count, instances_.size());
  instances_.erase(instances_.begin(), instances_.begin() + static_cast<std::ptrdiff_t>(count));
}

Outcome Fleet::under_load(const std::function<void(Outcome&)>& fault) {
  Outcome out;
  std::vector<Tally> tallies(options_.callers);
  const auto begun = Steady::now();
  {
    std::vector<std::unique_ptr<CallerClient>> clients;
    for (std::size_t i = 0; i < options_.callers; ++i) {
      clients.push_back(make_client(options_.policies, *registry_, options_.per_try));
    }
    const auto deadline = Steady::now() + kPatience;
    while (registry_->latest("web")->size() < instances_.size()) {
      if (Steady::now() > deadline) throw Error("the instances were not found");
      std::this_thread::sleep_for(1ms);
    }
    std::stop_source stop;
    std::vector<std::jthread> threads;
    const auto callers = static_cast<std::int64_t>(options_.callers);
    const auto period =
        std::chrono::nanoseconds(1s) * callers / static_cast<std::int64_t>(options_.rate);
    for (std::size_t i = 0; i < options_.callers; ++i) {
      threads.emplace_back([&, i] {
        call_until(stop.get_token(), *clients[i], traffic_, tallies[i], period,
                   period * static_cast<std::int64_t>(i) / callers);
      });
    }
    struct Stop {
      std::stop_source& source;
      ~Stop() { source.request_stop(); }
    } const stop_callers{stop};  // stops the callers before they are joined
    std::this_thread::sleep_for(kQuiet);
    fault(out);
    std::this_thread::sleep_for(kQuiet);
  }
  out.took = Steady::now() - begun;
  for (const Tally& tally : tallies) out.tally.add(tally);
  if (instances_.size() < options_.instances) start(options_.instances - instances_.size());
  return out;
}

}  // namespace lookout::cmd::bench::fleet
