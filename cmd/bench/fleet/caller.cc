#include "cmd/bench/fleet/caller.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "cmd/bench/fleet/instance_server.h"
#include "cmd/bench/fleet/kratos_selector.h"
#include "lookout/api/error.h"
#include "lookout/registry/balancer.h"

namespace lookout::cmd::bench::fleet {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

class TimedOut : public Error {
 public:
  TimedOut() : Error("no answer in time") {}
};

milliseconds left_until(Steady::time_point until) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(until - Steady::now()));
}

/// The instance answered with an error, as with a 500.
class ErrorAnswer : public Error {
 public:
  ErrorAnswer() : Error("an error came back") {}
};

class LookoutClient : public CallerClient {
 public:
  LookoutClient(registry::Discovery& discovery, milliseconds per_try)
      : balancer_(discovery, "web", registry::p2c_ewma().eject_after(3)) {
    policy_.attempts = 3;
    policy_.deadline = 10 * per_try;
    policy_.per_try = per_try;
    policy_.scheme = "http";
  }
  void call(Connections& connections) override {
    balancer_.call(policy_,
                   [&](const registry::Endpoint& endpoint, const registry::Attempt& attempt) {
                     connections.request(endpoint, attempt.time);
                   });
  }

 private:
  const registry::Balancer balancer_;
  registry::CallPolicy policy_;
};

class KratosClient : public CallerClient {
 public:
  KratosClient(registry::Discovery& discovery, milliseconds per_try)
      : per_try_(per_try),
        subscription_(discovery.follow(
            "web", [this](const registry::InstanceSetPtr& set) { follow(*set); })) {
    // Like kratos' resolver, waits for the first set.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return nodes_ != nullptr; });
  }

  void call(Connections& connections) override {
    const auto nodes = latest();
    if (!nodes || nodes->empty()) throw Error("there is no instance");
    const auto& node = (*nodes)[selector_.pick(*nodes)];
    const auto call = node->begin();
    try {
      connections.request(node->endpoint, per_try_);
    } catch (...) {
      node->end(call, false);
      throw;
    }
    node->end(call, true);
  }

 private:
  struct Node : KratosNode {
    explicit Node(registry::Endpoint where) : endpoint(std::move(where)) {}
    const registry::Endpoint endpoint;
  };
  using Nodes = std::vector<std::shared_ptr<Node>>;

  /// Like kratos' selector.Default: creates new nodes for each set.
  void follow(const registry::InstanceSet& set) {
    auto nodes = std::make_shared<Nodes>();
    for (const auto& instance : set) {
      const auto* endpoint = instance.endpoint("http");
      if (endpoint != nullptr) nodes->push_back(std::make_shared<Node>(*endpoint));
    }
    // kratos' resolver keeps the last instances when the set is empty.
    if (nodes->empty()) return;
    const std::lock_guard lock(mutex_);
    nodes_ = std::move(nodes);
    changed_.notify_all();
  }
  std::shared_ptr<const Nodes> latest() {
    const std::lock_guard lock(mutex_);
    return nodes_;
  }

  const milliseconds per_try_;
  KratosSelector selector_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Nodes> nodes_;   // guarded by mutex_
  registry::Subscription subscription_;  // destroyed first
};

}  // namespace

const char* to_string(Policies policies) {
  return policies == Policies::kLookout ? "Lookout" : "kratos (port)";
}

void Tally::add(const Tally& other) {
  calls += other.calls;
  failed += other.failed;
  attempts += other.attempts;
  for (const auto& [port, count] : other.timeouts) {
    timeouts[port] += count;
    worst[port] = std::max(worst[port], count);
  }
  times.add(other.times);
}

void Connections::request(const registry::Endpoint& endpoint, milliseconds time) {
  struct InFlight {
    Traffic::Calls& calls;
    bool answered = false;
    explicit InFlight(Traffic::Calls& on) : calls(on) { ++calls.in_flight; }
    ~InFlight() {
      if (!answered) ++calls.failed;
      --calls.in_flight;
    }
  };
  const std::uint16_t port = endpoint.port();
  InFlight in_flight(traffic_.on(port));
  const auto until = Steady::now() + std::min(time, milliseconds(std::chrono::hours(1)));
  ++tally_.attempts;
  try {
    if (const auto kept = kept_.find(port); kept != kept_.end()) {
      Socket socket = std::move(kept->second.socket);
      kept_.erase(kept);
      try {
        if (socket.closed_by_peer()) throw Error("closed");
        ask(socket, until);
        keep(port, std::move(socket));
        in_flight.answered = true;
        return;
      } catch (const TimedOut&) {
        throw;
      } catch (const ErrorAnswer&) {
        throw;
      } catch (const Error&) {
        // The server has closed an idle connection: open a new one.
      }
    }
    // Connections to removed instances would exhaust the descriptors.
    std::erase_if(kept_, [](const auto& kept) { return kept.second.socket.closed_by_peer(); });
    Socket socket = Socket::connect(port);
    if (!socket) throw Error("refused");
    if (!socket.wait(POLLOUT, left_until(until))) throw TimedOut();
    if (!socket.connected()) throw Error("refused");
    ask(socket, until);
    keep(port, std::move(socket));
    in_flight.answered = true;
  } catch (const TimedOut&) {
    ++tally_.timeouts[port];
    throw;
  }
}

void Connections::keep(std::uint16_t port, Socket socket) {
  if (kept_.size() >= kMostKept) {
    kept_.erase(
        std::ranges::min_element(kept_, {}, [](const auto& kept) { return kept.second.used; }));
  }
  kept_.insert_or_assign(port, Kept{std::move(socket), tally_.attempts});
}

void Connections::ask(Socket& socket, TimePoint until) {
  if (::send(socket.fd(), "x", 1, MSG_NOSIGNAL) != 1) throw Error("broken");
  if (!socket.wait(POLLIN, left_until(until))) throw TimedOut();
  char byte = 0;
  if (::recv(socket.fd(), &byte, 1, 0) != 1) throw Error("reset");
  if (byte != InstanceServer::kAnswer) throw ErrorAnswer();
}

std::unique_ptr<CallerClient> make_client(Policies policies, registry::Discovery& discovery,
                                          milliseconds per_try) {
  if (policies == Policies::kLookout) return std::make_unique<LookoutClient>(discovery, per_try);
  return std::make_unique<KratosClient>(discovery, per_try);
}

void call_until(const std::stop_token& stop, CallerClient& client, Traffic& traffic, Tally& tally,
                std::chrono::nanoseconds period, std::chrono::nanoseconds first) {
  Connections connections(traffic, tally);
  for (auto next = Steady::now() + first; !stop.stop_requested();
       next = std::max(next + period, Steady::now())) {
    std::this_thread::sleep_until(next);
    const auto begun = Steady::now();
    ++tally.calls;
    try {
      client.call(connections);
    } catch (const Error&) {
      ++tally.failed;
    }
    tally.times.add(
        std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - begun).count());
  }
}

}  // namespace lookout::cmd::bench::fleet
