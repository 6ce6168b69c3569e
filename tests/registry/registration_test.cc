// Announcements that follow the health of a program, and graceful shutdown.
#include "lookout/registry/registration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/registry/app.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using State = Registration::State;

/// Records its calls, and fails as long as the test wants.
class NotingRegistrar : public Registrar {
 public:
  using Registrar::deregister_instance;
  using Registrar::register_instance;
  void register_instance(const ServiceInstance& instance, rest::CallOptions call) override {
    EXPECT_GT(call.timeout.count(), 0) << "each request has a limit";
    note("register " + instance.name);
    if (failing) throw Error("no API server");
  }
  void deregister_instance(const ServiceInstance& instance, rest::CallOptions call) override {
    EXPECT_GT(call.timeout.count(), 0);
    note("deregister " + instance.name);
    if (failing) throw Error("no API server");
  }
  std::vector<std::string> notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(std::ranges::count(notes(), what));
  }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
  }
  std::atomic<bool> failing{false};

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

RegistrationOptions quick(std::function<bool()> ready = {}) {
  RegistrationOptions out;
  out.instance.name = "web";
  out.ready = std::move(ready);
  out.check_every = 2ms;
  out.retry_after = 2ms;
  out.retry_after_max = 10ms;
  out.on_error = [](const std::string&) {};
  return out;
}

TEST(RegistrationTest, RegistersAndDeregisters) {
  NotingRegistrar registrar;
  {
    Registration registration(registrar, quick());
    EXPECT_TRUE(registration.wait_registered(kLong));
    EXPECT_EQ(registration.state(), State::kRegistered);
    EXPECT_EQ(registration.last_error(), "");
  }
  EXPECT_THAT(registrar.notes(), ElementsAre("register web", "deregister web"));
}

TEST(RegistrationTest, FollowsTheHealthOfTheProgram) {
  NotingRegistrar registrar;
  std::atomic<bool> ready{false};
  Registration registration(registrar, quick([&] { return ready.load(); }));
  EXPECT_FALSE(registration.wait_registered(20ms));
  EXPECT_EQ(registration.state(), State::kWaiting);
  EXPECT_THAT(registration.last_error(), HasSubstr("not ready"));
  ready = true;
  // (Without a limit.)
  EXPECT_TRUE(registration.wait_registered(std::chrono::milliseconds::max()));
  ready = false;
  EXPECT_TRUE(eventually([&] { return registration.state() == State::kOut; }));
  ready = true;
  EXPECT_TRUE(registration.wait_registered(kLong));
  EXPECT_TRUE(registration.leave());
  EXPECT_TRUE(registration.leave()) << "again changes nothing";
  EXPECT_EQ(registration.state(), State::kLeft);
  EXPECT_THAT(registrar.notes(),
              ElementsAre("register web", "deregister web", "register web", "deregister web"));
}

TEST(RegistrationTest, AHealthCheckThatThrowsIsNotReady) {
  NotingRegistrar registrar;
  Registration registration(registrar, quick([]() -> bool { throw Error("no database"); }));
  EXPECT_TRUE(eventually([&] { return !registration.last_error().empty(); }));
  EXPECT_THAT(registration.last_error(), HasSubstr("no database"));
  EXPECT_TRUE(registration.leave());
  EXPECT_THAT(registrar.notes(), IsEmpty()) << "there is nothing to take back";
}

/// An earlier run may have left an announcement.
class RestartedRegistrar : public NotingRegistrar {
 public:
  void withdraw_earlier(const ServiceInstance& instance, rest::CallOptions call) override {
    EXPECT_GT(call.timeout.count(), 0);
    note("withdraw earlier " + instance.name);
    if (refuses) throw api::StatusError::forbidden("", "pods", "web-1", "not for you");
    if (failing) throw Error("no API server");
  }
  std::atomic<bool> refuses{false};
};

TEST(RegistrationTest, AnEarlierAnnouncementIsWithdrawnUntilReady) {
  RestartedRegistrar registrar;
  registrar.failing = true;
  std::atomic<bool> ready{false};
  Registration registration(registrar, quick([&] { return ready.load(); }));
  EXPECT_TRUE(eventually([&] { return registrar.count("withdraw earlier web") > 1; }))
      << "a failure is repeated";
  EXPECT_EQ(registration.state(), State::kWaiting);
  registrar.failing = false;
  EXPECT_TRUE(
      eventually([&] { return registration.last_error().find("not ready") != std::string::npos; }));
  ready = true;
  EXPECT_TRUE(registration.wait_registered(kLong));
  const std::size_t before = registrar.count("withdraw earlier web");
  ready = false;
  EXPECT_TRUE(eventually([&] { return registration.state() == State::kOut; }));
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(registrar.count("withdraw earlier web"), before);
}

TEST(RegistrationTest, ARefusedWithdrawalOfAnEarlierAnnouncementIsNotRepeated) {
  RestartedRegistrar registrar;
  registrar.refuses = true;
  std::atomic<int> checks{0};
  const Registration registration(registrar, quick([&] {
                                    ++checks;
                                    return false;
                                  }));
  EXPECT_TRUE(eventually([&] { return checks > 5; }));
  EXPECT_THAT(registrar.notes(), ElementsAre("withdraw earlier web"));
}

TEST(RegistrationTest, RetriesAndReportsTheError) {
  NotingRegistrar registrar;
  registrar.failing = true;
  auto options = quick();
  std::atomic<int> errors{0};
  options.on_error = [&](const std::string& reason) {
    EXPECT_THAT(reason, HasSubstr("cannot register web: no API server"));
    ++errors;
  };
  Registration registration(registrar, options);
  EXPECT_TRUE(eventually([&] { return errors >= 3; }));
  EXPECT_EQ(registration.state(), State::kFailing);
  EXPECT_THAT(registration.last_error(), HasSubstr("no API server"));
  registrar.failing = false;
  EXPECT_TRUE(registration.wait_registered(kLong));
  EXPECT_EQ(registration.last_error(), "");
  std::vector<metrics::Sample> samples;
  registration.collect(samples);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].value, 1);
  EXPECT_GE(samples[2].value, 3);
}

TEST(RegistrationTest, AnUncertainAnnouncementIsWithdrawn) {
  NotingRegistrar registrar;
  registrar.failing = true;
  Registration registration(registrar, quick());
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") > 0; }));
  registrar.failing = false;
  // (The announcement may have succeeded just now.)
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(registrar.notes().back(), "deregister web");
}

/// Rejects every instance before it sends anything.
class RejectingRegistrar : public NotingRegistrar {
 public:
  void register_instance(const ServiceInstance& instance, rest::CallOptions) override {
    note("register " + instance.name);
    throw RegistrationError("the name is empty");
  }
};

TEST(RegistrationTest, ARejectedInstanceIsNotWithdrawn) {
  RejectingRegistrar registrar;
  Registration registration(registrar, quick());
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") > 1; }));
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(registrar.count("deregister web"), 0u)
      << "a withdrawal would end another registration of the pod";
}

TEST(RegistrationTest, ARejectedInstanceThatIsNotReadyWaits) {
  RejectingRegistrar registrar;
  std::atomic<bool> ready{true};
  const Registration registration(registrar, quick([&] { return ready.load(); }));
  EXPECT_TRUE(eventually([&] { return registration.state() == State::kFailing; }));
  ready = false;
  EXPECT_TRUE(eventually([&] { return registration.state() == State::kWaiting; }));
  EXPECT_THAT(registration.last_error(), HasSubstr("not ready"));
  ready = true;
  EXPECT_TRUE(eventually([&] { return registration.state() == State::kFailing; }));
}

/// Announces nothing: the server refuses.
class RefusedRegistrar : public NotingRegistrar {
 public:
  void register_instance(const ServiceInstance& instance, rest::CallOptions) override {
    note("register " + instance.name);
    if (refuses) throw api::StatusError::forbidden("", "pods", "web-1", "not for you");
  }
  std::atomic<bool> refuses{true};
};

TEST(RegistrationTest, ARefusedRegistrationIsNotWithdrawn) {
  RefusedRegistrar registrar;
  registrar.failing = true;
  Registration registration(registrar, quick());
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") > 1; }));
  EXPECT_EQ(registration.state(), State::kFailing);
  EXPECT_TRUE(registration.leave()) << "a SIGTERM must not wait for requests that are refused, too";
  EXPECT_EQ(registrar.count("deregister web"), 0u);
}

TEST(RegistrationTest, AnAnnouncementThatIsRefusedLaterIsWithdrawn) {
  RefusedRegistrar registrar;
  registrar.refuses = false;
  auto options = quick();
  options.refresh_every = 2ms;
  Registration registration(registrar, options);
  EXPECT_TRUE(registration.wait_registered(kLong));
  registrar.refuses = true;
  EXPECT_TRUE(eventually([&] { return registration.state() == State::kFailing; }));
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(registrar.notes().back(), "deregister web");
}

TEST(RegistrationTest, LeavingHasALimit) {
  NotingRegistrar registrar;
  auto options = quick();
  options.timeout = 50ms;
  Registration registration(registrar, options);
  EXPECT_TRUE(registration.wait_registered(kLong));
  registrar.failing = true;
  EXPECT_FALSE(registration.leave());
  EXPECT_GE(registrar.count("deregister web"), 2u) << "and is tried again until then";
  EXPECT_FALSE(registration.leave()) << "again changes nothing";
}

TEST(RegistrationTest, ARegistrationThatHasLeftIsNotAwaited) {
  NotingRegistrar registrar;
  Registration registration(registrar, quick([] { return false; }));
  registration.leave();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(registration.wait_registered(kLong));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
}

TEST(RegistrationTest, EachRetryWaitsLonger) {
  NotingRegistrar registrar;
  registrar.failing = true;
  auto options = quick();
  options.retry_after = 10ms;
  options.retry_after_max = kLong;
  const auto begin = std::chrono::steady_clock::now();
  const Registration registration(registrar, options);
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") >= 6; }));
  registrar.failing = false;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 310ms) << "10 ms, 20 ms, ... 160 ms";
}

TEST(RegistrationTest, RetriesMayWaitWithoutLimit) {
  NotingRegistrar registrar;
  registrar.failing = true;
  std::atomic<int> checks{0};
  auto options = quick([&] {
    ++checks;
    return true;
  });
  options.retry_after = options.retry_after_max = std::chrono::milliseconds::max();
  const Registration registration(registrar, options);
  EXPECT_TRUE(eventually([&] { return checks >= 20; }));
  EXPECT_EQ(registrar.count("register web"), 1u);
  registrar.failing = false;
}

TEST(RegistrationTest, ChecksPauseWithoutATime) {
  NotingRegistrar registrar;
  std::atomic<int> checks{0};
  auto options = quick([&] {
    ++checks;
    return false;
  });
  options.check_every = 0ms;
  const auto begin = std::chrono::steady_clock::now();
  const Registration registration(registrar, options);
  EXPECT_TRUE(eventually([&] { return checks >= 20; }));
  const int made = checks;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(made - 1))
      << "it must not occupy a processor";
}

TEST(RegistrationTest, RetriesResetAfterASuccess) {
  NotingRegistrar registrar;
  registrar.failing = true;
  auto options = quick();
  options.retry_after = 1ms;
  options.retry_after_max = std::chrono::hours(1);
  options.refresh_every = 1ms;
  Registration registration(registrar, options);
  // The last of these retries wait half a second.
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") >= 10; }));
  registrar.failing = false;
  EXPECT_TRUE(registration.wait_registered(kLong));
  registrar.failing = true;
  // With the last pause, these retries would take two minutes.
  const std::size_t before = registrar.count("register web");
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") >= before + 8; }));
  registrar.failing = false;
}

TEST(RegistrationTest, AFailedWithdrawalIsRetriedAfterAPause) {
  NotingRegistrar registrar;
  std::atomic<bool> ready{true};
  auto options = quick([&] { return ready.load(); });
  options.retry_after = options.retry_after_max = 50ms;
  const Registration registration(registrar, options);
  EXPECT_TRUE(registration.wait_registered(kLong));
  registrar.failing = true;
  const auto begin = std::chrono::steady_clock::now();
  ready = false;
  EXPECT_TRUE(eventually([&] { return registrar.count("deregister web") >= 4; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 150ms);
  registrar.failing = false;
}

/// Blocks each registration until a gate opens or the request is stopped.
class SlowRegistrar : public NotingRegistrar {
 public:
  void register_instance(const ServiceInstance& instance, rest::CallOptions call) override {
    asked.open();
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, call.stop, answers_after, [] { return false; });
    note(call.stop.stop_requested() ? "stopped" : "register " + instance.name);
    if (call.stop.stop_requested()) throw Error("stopped");
  }
  Gate asked;
  std::chrono::milliseconds answers_after{100};
};

TEST(RegistrationTest, LeavingWaitsForARunningRegistration) {
  SlowRegistrar registrar;
  Registration registration(registrar, quick());
  ASSERT_TRUE(registrar.asked.wait());
  EXPECT_TRUE(registration.leave());
  EXPECT_THAT(registrar.notes(), ElementsAre("register web", "deregister web"))
      << "one that was stopped may arrive after the deregistration";
}

TEST(RegistrationTest, LeavingWaitsForHalfOfItsTime) {
  SlowRegistrar registrar;
  registrar.answers_after = kLong;
  auto options = quick();
  options.timeout = 400ms;
  Registration registration(registrar, options);
  ASSERT_TRUE(registrar.asked.wait());
  EXPECT_TRUE(registration.leave());
  EXPECT_THAT(registrar.notes(), ElementsAre("stopped", "deregister web"));
}

TEST(RegistrationTest, AnnouncesAgain) {
  NotingRegistrar registrar;
  auto options = quick();
  options.refresh_every = 5ms;
  Registration registration(registrar, options);
  EXPECT_TRUE(eventually([&] { return registrar.count("register web") >= 4; }));
}

/// Registers, and fails to deregister with a given error.
class OneWayRegistrar : public Registrar {
 public:
  using Registrar::deregister_instance;
  using Registrar::register_instance;
  explicit OneWayRegistrar(api::StatusError error) : error_(std::move(error)) {}
  void register_instance(const ServiceInstance&, rest::CallOptions) override {}
  void deregister_instance(const ServiceInstance&, rest::CallOptions) override { throw error_; }

 private:
  const api::StatusError error_;
};

TEST(RegistrationTest, A404OfAProxyIsNotAnAbsentPod) {
  const auto leaves = [](const api::StatusError& error, std::chrono::milliseconds within) {
    OneWayRegistrar registrar(error);
    auto options = quick();
    options.timeout = within;
    Registration registration(registrar, options);
    EXPECT_TRUE(registration.wait_registered(kLong));
    return registration.leave();
  };
  EXPECT_TRUE(leaves(api::StatusError::not_found("", "pods", "web-1"), kLong));
  EXPECT_FALSE(leaves(
      api::StatusError::generic(404, "PATCH", "", "pods", "web-1", "<html>", 0, true), 20ms));
}

// ------------------------------------------------------------------------------ on a pod

class PodRegistrationTest : public testing::Test {
 protected:
  Options on(const std::string& pod) {
    Options out;
    out.ns = "default";
    out.pod = {.ns = "default", .name = pod};
    out.on_warning = [this](const std::string& reason) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(reason);
    };
    return out;
  }
  std::string app_of(const std::string& pod) const {
    const auto object = cluster_.pods().get(pod);
    return std::string(object.labels()["kratos-service-app"].as_string());
  }
  std::string version_of(const std::string& pod) const {
    const auto object = cluster_.pods().get(pod);
    return std::string(object.resource_version());
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  Cluster cluster_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(PodRegistrationTest, RemovedLabelsAreRestored) {
  cluster_.create_pod("web-1", {});
  kratos::Registry registry(cluster_.client(), on("web-1"));
  auto options = quick();
  options.refresh_every = 20ms;
  options.instance.endpoints = {"http://0.0.0.0:80"};
  Registration registration(registry, options);
  ASSERT_TRUE(registration.wait_registered(kLong));
  const std::string version = version_of("web-1");
  cluster_.label("web-1", "kratos-service-app", "");
  EXPECT_TRUE(eventually([&] { return app_of("web-1") == "web"; }));
  EXPECT_NE(version_of("web-1"), version);
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(PodRegistrationTest, MayOutliveItsRegistry) {
  cluster_.create_pod("web-1", {});
  auto registry = std::make_unique<kratos::Registry>(cluster_.client(), on("web-1"));
  auto options = quick();
  options.refresh_every = 20ms;
  options.instance.endpoints = {"http://0.0.0.0:80"};
  Registration registration(*registry, options);
  ASSERT_TRUE(registration.wait_registered(kLong));
  registry.reset();
  cluster_.label("web-1", "kratos-service-app", "");
  EXPECT_TRUE(eventually([&] { return app_of("web-1") == "web"; }));
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(app_of("web-1"), "");
}

TEST_F(PodRegistrationTest, ARestartedProgramIsNotFoundUntilItIsReady) {
  cluster_.create_pod("web-1", kratos_pod("web", "earlier"));
  kratos::Registry registry(cluster_.client(), on("web-1"));
  std::atomic<bool> ready{false};
  auto options = quick([&] { return ready.load(); });
  options.instance.endpoints = {"http://0.0.0.0:80"};
  Registration registration(registry, options);
  EXPECT_TRUE(eventually([&] { return app_of("web-1").empty(); }));
  EXPECT_EQ(registration.state(), State::kWaiting);
  ready = true;
  ASSERT_TRUE(registration.wait_registered(kLong));
  EXPECT_EQ(app_of("web-1"), "web");
}

TEST_F(PodRegistrationTest, OnlyAnEarlierAnnouncementOfTheNameIsWithdrawn) {
  cluster_.create_pod("web-1", kratos_pod("web", "earlier"));
  kratos::Registry registry(cluster_.client(), on("web-1"));
  const std::string version = version_of("web-1");
  registry.withdraw_earlier({.name = "cart"}, {});
  EXPECT_EQ(version_of("web-1"), version);
  registry.withdraw_earlier({.name = "web"}, {});
  EXPECT_EQ(app_of("web-1"), "");
}

TEST_F(PodRegistrationTest, RegisteringAgainWritesNothing) {
  cluster_.create_pod("web-1", {});
  kratos::Registry registry(cluster_.client(), on("web-1"));
  registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}});
  const std::string version = version_of("web-1");
  registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}});
  EXPECT_EQ(version_of("web-1"), version);
}

TEST_F(PodRegistrationTest, APodOfTheSameNameIsNotTouched) {
  cluster_.create_pod("web-0", {});
  kratos::Registry registry(cluster_.client(), on("web-0"));
  registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}});
  // The pod of a StatefulSet is replaced while the old program still runs.
  cluster_.remove_pod("web-0");
  cluster_.create_pod("web-0", {});
  kratos::Registry next(cluster_.client(), on("web-0"));
  next.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}});
  EXPECT_THAT(
      [&] { registry.deregister_instance({}); },
      testing::ThrowsMessage<api::StatusError>(HasSubstr("pod default/web-0 has been replaced")));
  EXPECT_EQ(app_of("web-0"), "web");
  next.deregister_instance({});
  EXPECT_EQ(app_of("web-0"), "");
}

TEST_F(PodRegistrationTest, ADeletedPodIsNotDeregistered) {
  cluster_.create_pod("web-1", {});
  kratos::Registry registry(cluster_.client(), on("web-1"));
  auto options = quick();
  std::atomic<int> errors{0};
  options.on_error = [&](const std::string&) { ++errors; };
  options.instance.endpoints = {"http://0.0.0.0:80"};
  Registration registration(registry, options);
  ASSERT_TRUE(registration.wait_registered(kLong));
  cluster_.remove_pod("web-1");
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(errors, 0);
  EXPECT_THROW(registry.deregister_instance({}), api::StatusError) << "by itself, it is an error";
}

TEST_F(PodRegistrationTest, AReplacedPodIsNotDeregistered) {
  cluster_.create_pod("web-0", {});
  kratos::Registry registry(cluster_.client(), on("web-0"));
  auto options = quick();
  options.instance.endpoints = {"http://0.0.0.0:80"};
  Registration registration(registry, options);
  ASSERT_TRUE(registration.wait_registered(kLong));
  cluster_.remove_pod("web-0");
  cluster_.create_pod("web-0", {});
  kratos::Registry next(cluster_.client(), on("web-0"));
  next.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}});
  EXPECT_TRUE(registration.leave());
  EXPECT_EQ(registration.last_error(), "");
  EXPECT_EQ(app_of("web-0"), "web");
}

TEST_F(PodRegistrationTest, TheUidOfTheEnvironmentIsSent) {
  cluster_.create_pod("web-0", {});
  Options options = on("web-0");
  options.pod = {.ns = "default"};
  options.pod_sources.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "POD_NAME") return "web-0";
    if (name == "POD_UID") return "00000000-0000-0000-0000-000000000000";
    return std::nullopt;
  };
  kratos::Registry registry(cluster_.client(), options);
  EXPECT_THROW(registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}}),
               api::StatusError);
  EXPECT_EQ(app_of("web-0"), "");
}

TEST_F(PodRegistrationTest, AnUndeclaredPortIsWarnedOfAndNeverPicked) {
  PodTemplate pod;
  pod.ports = "[]";
  cluster_.create_pod("web-1", pod);
  kratos::Registry registry(cluster_.client(), on("web-1"));
  for (int i = 0; i < 2; ++i) {
    registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:8080"}});
  }
  ASSERT_EQ(warnings().size(), 1u) << "once";
  EXPECT_THAT(warnings()[0], HasSubstr("no container of pod default/web-1 declares port 8080"));
  EXPECT_EQ(registry.get_service("web")->size(), 1u);
  const Balancer balancer(registry, "web");
  EXPECT_FALSE(balancer.pick());
}

TEST_F(PodRegistrationTest, WarningsComeOnTheThreadThatRegisters) {
  PodTemplate pod;
  pod.ports = "[]";
  cluster_.create_pod("web-1", pod);
  Options options = on("web-1");
  std::thread::id thread;
  options.on_warning = [&](const std::string&) { thread = std::this_thread::get_id(); };
  kratos::Registry registry(cluster_.client(), options);
  registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:8080"}});
  EXPECT_EQ(thread, std::this_thread::get_id()) << "on the event loop, it must not block";
}

// ---------------------------------------------------------------------------------- apps

AppOptions web_on(const std::string& pod) {
  AppOptions out;
  out.name = "web";
  out.version = "v1";
  out.endpoints = {"http://0.0.0.0:80"};
  out.drain = 20ms;
  out.notice = 10ms;
  out.check_every = 2ms;
  out.pod = {.ns = "default", .name = pod};
  out.signals = false;
  return out;
}

/// Serves until the stop.
void serve(const std::stop_token& stop) {
  EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
}

TEST_F(PodRegistrationTest, AnAppRegistersServesAndLeaves) {
  cluster_.create_pod("web-1", {});
  kratos::Registry finder(cluster_.client(), on("web-1"));
  App app{cluster_.client(), web_on("web-1")};
  EXPECT_EQ(app.state(), State::kWaiting);
  const int status = app.run([&](std::stop_token stop) {
    EXPECT_TRUE(app.wait_registered(kLong));
    const auto set = finder.get_service("web");
    EXPECT_EQ(set->size(), 1u);
    EXPECT_EQ((*set)[0].id, "web-1");
    app.stop();
    serve(stop);
    return 3;
  });
  EXPECT_EQ(status, 3);
  EXPECT_EQ(app.state(), State::kLeft);
  EXPECT_EQ(app_of("web-1"), "");
}

TEST_F(PodRegistrationTest, AnAppMayBeCreatedInBraces) {
  cluster_.create_pod("web-1", {});
  App app{cluster_.client(),
          {.name = "web",
           .version = "v1",
           .endpoints = {"http://0.0.0.0:80"},
           .drain = 0s,
           .notice = 0s,
           .pod = {.ns = "default", .name = "web-1"},
           .signals = false}};
  EXPECT_EQ(app.run([&](std::stop_token) { EXPECT_TRUE(app.wait_registered(kLong)); }), 0);
  EXPECT_EQ(app_of("web-1"), "");
}

TEST_F(PodRegistrationTest, AnAppThatReturnsIsDeregistered) {
  cluster_.create_pod("web-1", {});
  App app{cluster_.client(), web_on("web-1")};
  EXPECT_THROW(app.run([&](std::stop_token) {
    EXPECT_TRUE(app.wait_registered(kLong));
    throw std::runtime_error("the port is taken");
  }),
               std::runtime_error);
  EXPECT_EQ(app_of("web-1"), "");
}

TEST_F(PodRegistrationTest, AnAppServesUntilNothingIsInFlight) {
  cluster_.create_pod("web-1", {});
  AppOptions options = web_on("web-1");
  std::atomic<std::size_t> in_flight{0};
  std::atomic<int> looks{0};
  options.in_flight = [&] {
    ++looks;
    return in_flight.load();
  };
  for (const std::chrono::milliseconds drain : {60'000ms, std::chrono::milliseconds::max()}) {
    options.drain = drain;
    in_flight = 2;
    looks = 0;
    App app{cluster_.client(), options};
    app.run([&](std::stop_token stop) {
      EXPECT_TRUE(app.wait_registered(kLong));
      app.stop();
      EXPECT_TRUE(eventually([&] { return looks >= 3; }));
      EXPECT_EQ(app.state(), State::kLeft);
      EXPECT_FALSE(stop.stop_requested()) << "requests are in flight";
      in_flight = 0;
      serve(stop);
    });
  }
}

TEST_F(PodRegistrationTest, AnAppWhoseCountThrowsServesForTheDrainTime) {
  cluster_.create_pod("web-1", {});
  AppOptions options = web_on("web-1");
  std::atomic<int> calls{0};
  options.in_flight = [&]() -> std::size_t {
    ++calls;
    throw std::runtime_error("no count");
  };
  App app{cluster_.client(), options};
  std::chrono::steady_clock::time_point stopped;
  app.run([&](std::stop_token stop) {
    EXPECT_TRUE(app.wait_registered(kLong));
    stopped = std::chrono::steady_clock::now();
    app.stop();
    serve(stop);
  });
  EXPECT_GE(std::chrono::steady_clock::now() - stopped, options.drain);
  EXPECT_EQ(app.state(), State::kLeft);
  EXPECT_GE(calls, 1);
}

TEST_F(PodRegistrationTest, AnInvalidAnnouncementFailsAtOnce) {
  AppOptions options = web_on("web-1");
  options.endpoints = {"0.0.0.0"};
  EXPECT_THROW(App(cluster_.client(), options), RegistrationError);
}

TEST_F(PodRegistrationTest, SigtermEndsAnApp) {
  // In a separate process, because signal handlers stay installed.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  cluster_.create_pod("web-1", {});
  const auto until_sigterm = [this] {
    AppOptions options = web_on("web-1");
    options.signals = true;
    App app{cluster_.client(), options};
    const int status = app.run([&](std::stop_token stop) {
      if (!app.wait_registered(kLong)) return 4;
      ::raise(SIGTERM);
      return eventually([&] { return stop.stop_requested(); }) ? 7 : 5;
    });
    std::_Exit(app_of("web-1").empty() ? status : 6);
  };
  EXPECT_EXIT(until_sigterm(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace lookout::registry
