// A manager that runs on another thread, and its server.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/controller/context.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/request.h"
#include "lookout/controller/result.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"
#include "lookout/testing/fake_clock.h"
#include "tests/controller/running.h"
#include "tests/support/eventually.h"

namespace lookout::controller {

// Names that most of the tests use.
using namespace std::chrono_literals;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Secret;
using test::eventually;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Running = RunningOf<Manager>;

/// A runnable that ignores the stop until the manager reports that the shutdown takes too long.
class DeafRunnable {
 public:
  void operator()(const std::stop_token&) {
    begun_ = true;
    EXPECT_TRUE(eventually([&] { return overrun_.load(); }));
  }
  /// For ManagerOptions::on_shutdown_overrun.
  auto on_overrun() {
    return [this] { overrun_ = true; };
  }
  /// Options with this graceful_shutdown_timeout.
  ManagerOptions options(std::chrono::milliseconds timeout) {
    ManagerOptions out;
    out.graceful_shutdown_timeout = timeout;
    out.on_shutdown_overrun = on_overrun();
    return out;
  }
  bool has_begun() const {
    return eventually([&] { return begun_.load(); });
  }
  bool overrun() const { return overrun_; }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<bool> overrun_{false};
};

/// A reconciler that only counts its runs.
inline auto counting(std::atomic<int>& runs) {
  return [&runs](const Request&, Context&) -> Result {
    ++runs;
    return {};
  };
}

/// A server that grants only what roles and bindings allow.
class RbacFixture : public testing::Test {
 protected:
  static apiserver::ServerOptions with_rbac() {
    apiserver::ServerOptions out;
    out.authorization = apiserver::Authorization::kRbac;
    return out;
  }

  const apiserver::Server server_{with_rbac()};
  const rest::Client admin_{server_.client_config()};
};

class ManagerFixture : public testing::Test {
 protected:
  ConfigMap put(const std::string& name, const std::string& value,
                const std::string& ns = "default") const {
    const auto draft = ConfigMap::draft(name, ns);
    draft.data().set("value", value);
    return client_.resource<ConfigMap>(ns).create(draft);
  }
  void change(const std::string& name, const std::string& value) const {
    maps_.patch(name, rest::PatchType::kMerge, R"({"data":{"value":")" + value + R"("}})");
  }

  /// The value of the sample of a metric with this label; -1 if there is none.
  static double metric(const Manager& manager, const std::string& name,
                       const std::string& label = {}) {
    std::vector<metrics::Sample> samples;
    manager.collect(samples);
    for (const auto& sample : samples) {
      if (sample.name != name) continue;
      bool fits = label.empty();
      for (const auto& [key, value] : sample.labels) fits = fits || value == label;
      if (!fits) continue;
      return sample.type == metrics::Sample::Type::kHistogram ? static_cast<double>(sample.count)
                                                              : sample.value;
    }
    return -1;
  }

  /// Options with leader election, for the lease of "website".
  static ManagerOptions elected(const std::string& identity) {
    LeaderElection election;
    election.name = "website";
    election.ns = "default";
    election.identity = identity;
    election.lease_duration = 60s;
    election.renew_deadline = 40s;
    election.retry_period = 20ms;
    ManagerOptions out;
    out.leader_election = election;
    return out;
  }
  /// How often a candidate with these options and this clock has tried to lead, and then paused.
  static long failed_candidacies(const test::FakeClock& clock) {
    const auto all = clock.slept();
    return std::count_if(all.begin(), all.end(), is_pause);
  }
  /// Ends the pause of such a candidate, if it waits.
  static void end_pause(test::FakeClock& clock) {
    const auto next = clock.next_wake();
    if (next && is_pause(*next)) clock.advance(*next);
  }

  /// Options with both listeners, on free ports.
  static ManagerOptions listening() {
    ManagerOptions out;
    out.health_listen = "127.0.0.1:0";
    out.metrics_listen = "127.0.0.1:0";
    return out;
  }
  /// The body of a response, "STATUS: message" for an error, or "no answer".
  std::string get(std::uint16_t port, const std::string& path) const {
    rest::Config config;
    config.server = "http://127.0.0.1:" + std::to_string(port);
    const rest::Client client(config, client_.shared_loop());
    rest::CallOptions call;
    call.timeout = 20s;
    try {
      return client.get_raw(path, call);
    } catch (const api::StatusError& e) {
      return std::to_string(e.code()) + ": " + e.what();
    } catch (const Error&) {
      return "no answer";
    }
  }
  /// Waits until run() ends, and returns the message of its exception.
  static std::string error_of(Running& running) {
    try {
      running.end();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "no error";
  }

  /// Between retry_period and 2.2 times as long.
  static bool is_pause(Clock::Duration time) { return time >= 20ms && time <= 44ms; }

  apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
};

}  // namespace lookout::controller
