// A fleet on one machine: programs that register, serve real sockets and leave in the ways programs
// leave, and callers that count the calls that fail.
//
// LOOKOUT_FLEET_INSTANCES, LOOKOUT_FLEET_CALLERS and LOOKOUT_FLEET_SECONDS (of each phase) make it
// larger.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/registry/app.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/sanitizers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using std::chrono::milliseconds;

int from_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoi(text);
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    if (fd_ < 0) throw std::runtime_error("no socket");
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool wait(short what, milliseconds time) const {
    pollfd waiting{fd_, what, 0};
    return ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(time.count(), 60'000))) > 0;
  }
  /// Whoever is at the other end gets a reset.
  void reset() const {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

 private:
  int fd_;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

/// Answers each connection with a byte, in a thread; may be frozen.
class Server {
 public:
  Server() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.fd(), 512) != 0 ||
        ::getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  void freeze() { frozen_ = true; }

  void serve(const std::stop_token& stop) {
    std::vector<Socket> held;
    while (!stop.stop_requested()) {
      if (!listener_.wait(POLLIN, 10ms)) continue;
      Socket connection(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (frozen_) {
        held.push_back(std::move(connection));
        continue;
      }
      char byte = 0;
      if (!connection.wait(POLLIN, 5s) || ::recv(connection.fd(), &byte, 1, 0) != 1) continue;
      static_cast<void>(::send(connection.fd(), "y", 1, MSG_NOSIGNAL));
    }
    for (const auto& connection : held) connection.reset();
  }

 private:
  Socket listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> frozen_{false};
};

void ask(const Endpoint& endpoint, const Attempt& attempt) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(endpoint.port());
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("refused");
  }
  if (::send(socket.fd(), "x", 1, MSG_NOSIGNAL) != 1) throw std::runtime_error("broken");
  if (!socket.wait(POLLIN, attempt.time)) throw std::runtime_error("timed out");
  char byte = 0;
  if (::recv(socket.fd(), &byte, 1, 0) != 1) throw std::runtime_error("reset");
}

/// A program in a thread: a pod, a server, and an App.
class Program {
 public:
  Program(Cluster& cluster, std::string name) : cluster_(cluster), name_(std::move(name)) {
    PodTemplate pod;
    pod.ip = "127.0.0.1";
    pod.ports = fmt::format(R"([{{"containerPort":{}}}])", server_.port());
    cluster.create_pod(name_, pod);
    AppOptions options;
    options.name = "web";
    options.endpoints = {Endpoint("http", "0.0.0.0", server_.port())};
    options.drain = 1s;
    options.notice = 1s;
    options.signals = false;
    options.pod = {.ns = "default", .name = name_};
    app_ = std::make_unique<App>(cluster.client(), options);
    thread_ = std::jthread(
        [this] { app_->run([this](const std::stop_token& stop) { server_.serve(stop); }); });
    EXPECT_TRUE(app_->wait_registered(kLong));
  }
  ~Program() { leave(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// As on SIGTERM; the pod goes when the program has ended.
  void leave() {
    if (!thread_.joinable()) return;
    app_->stop();
    thread_.join();
    cluster_.remove_pod(name_);
  }
  void freeze() { server_.freeze(); }

 private:
  Cluster& cluster_;
  const std::string name_;
  Server server_;
  std::unique_ptr<App> app_;
  std::jthread thread_;
};

/// A program that is killed: nobody deregisters it.
class Doomed {
 public:
  Doomed(Cluster& cluster, std::string name) : cluster_(cluster), name_(std::move(name)) {
    PodTemplate pod = kratos_pod("web", name_, "127.0.0.1");
    pod.ports = fmt::format(R"([{{"containerPort":{}}}])", server_->port());
    pod.annotations = {
        {"kratos-service-protocols", fmt::format(R"({{"{}":"http"}})", server_->port())}};
    cluster_.create_pod(name_, pod);
    thread_ = std::jthread([this](const std::stop_token& stop) { server_->serve(stop); });
  }
  void kill() {
    thread_ = {};
    server_.reset();
  }
  /// The kubelet notices.
  void remove() const { cluster_.remove_pod(name_); }

 private:
  Cluster& cluster_;
  const std::string name_;
  std::unique_ptr<Server> server_ = std::make_unique<Server>();
  std::jthread thread_;
};

class FleetTest : public testing::Test {
 protected:
  FleetTest() {
    for (int i = 0; i < instances_; ++i) start();
  }

  void start() {
    programs_.push_back(std::make_unique<Program>(cluster_, fmt::format("web-{}", next_++)));
  }

  /// Callers call as long as `body` runs, and a little before and after. Counts what fails.
  template <class Body>
  void under_load(const BalancerPolicy& policy, Body body) {
    Options options;
    options.ns = "default";
    kratos::Registry registry(cluster_.client(), options);
    const Balancer balancer(registry, "web", policy);
    ASSERT_TRUE(balancer.wait_for_instance(kLong));
    balancer_ = &balancer;
    std::atomic<bool> done{false};
    std::vector<std::jthread> callers;
    for (int i = 0; i < callers_; ++i) {
      callers.emplace_back([&] {
        while (!done) {
          try {
            balancer.call({.attempts = 3, .deadline = 60s, .per_try = per_try_, .scheme = "http"},
                          ask);
          } catch (const CallError& e) {
            if (failed_++ < 5) ADD_FAILURE() << e.what();
          }
          ++calls_;
          std::this_thread::sleep_for(1ms);
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return calls_ > 50; }));
    body();
    const int so_far = calls_;
    EXPECT_TRUE(eventually([&] { return calls_ > so_far + 50; }));
    done = true;
    callers.clear();
    std::vector<metrics::Sample> samples;
    balancer.collect(samples);
    for (const auto& sample : samples) {
      if (sample.name == "lookout_registry_retries_total") retries_ = sample.value;
    }
    RecordProperty("calls", calls_);
    fmt::print("{} calls, {} failed, {} further attempts\n", calls_.load(), failed_.load(),
               retries_);
  }

  const int instances_ = from_environment("LOOKOUT_FLEET_INSTANCES", 4);
  const int callers_ = from_environment("LOOKOUT_FLEET_CALLERS", 3);
  const milliseconds phase_{1000 * from_environment("LOOKOUT_FLEET_SECONDS", 1)};
  Cluster cluster_;
  std::vector<std::unique_ptr<Program>> programs_;
  int next_ = 0;
  std::atomic<int> calls_{0};
  std::atomic<int> failed_{0};
  double retries_ = 0;
  milliseconds per_try_{20'000};        // far longer than an answer takes on a busy machine
  const Balancer* balancer_ = nullptr;  // while there is load
};

TEST_F(FleetTest, ARollingUpdateCostsNoCall) {
  under_load(p2c_ewma().eject_after(3), [&] {
    // One comes, one goes.
    for (int i = 0; i < instances_; ++i) {
      start();
      programs_.front()->leave();
      programs_.erase(programs_.begin());
    }
  });
  EXPECT_EQ(failed_, 0);
  if (!lookout::test::kSanitized) {
    EXPECT_EQ(retries_, 0) << "nor a second attempt";
  }
}

TEST_F(FleetTest, AKilledInstanceCostsNoCall) {
  Doomed doomed(cluster_, "doomed");
  under_load(round_robin().eject_after(3), [&] {
    std::this_thread::sleep_for(phase_ / 4);
    doomed.kill();
    std::this_thread::sleep_for(phase_);
    doomed.remove();
  });
  EXPECT_EQ(failed_, 0);
  // Those that ran into it before it was ejected: three in a row, and what each caller had begun.
  EXPECT_GE(retries_, 1);
  EXPECT_LE(retries_, 3 + callers_);
}

TEST_F(FleetTest, AFrozenInstanceCostsEachCallerOneAttempt) {
  per_try_ = 2s;
  under_load(p2c_ewma().eject_after(1), [&] {
    programs_.front()->freeze();
    std::this_thread::sleep_for(per_try_ + 2 * phase_);
  });
  EXPECT_EQ(failed_, 0);
  EXPECT_LE(retries_, callers_);
}

TEST_F(FleetTest, TheServerMayBeAway) {
  under_load(p2c_ewma().eject_after(3), [&] {
    cluster_.stop_server();
    std::this_thread::sleep_for(phase_);
    EXPECT_TRUE(eventually([&] { return !balancer_->freshness().live; }));
    EXPECT_TRUE(eventually([&] { return !balancer_->freshness().error.empty(); }));
    cluster_.start_server();
    EXPECT_TRUE(eventually([&] { return balancer_->freshness().live; }));
    EXPECT_EQ(balancer_->freshness().error, "");
  });
  EXPECT_EQ(failed_, 0);
  EXPECT_EQ(retries_, 0);
}

}  // namespace
}  // namespace lookout::registry
