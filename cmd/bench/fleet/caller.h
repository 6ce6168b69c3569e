// The callers of the service, and the results of their calls.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>

#include "cmd/bench/fleet/socket.h"
#include "cmd/bench/lag_histogram.h"
#include "lookout/base/pinned.h"
#include "lookout/registry/endpoint.h"
#include "lookout/registry/registry.h"

namespace lookout::cmd::bench::fleet {

/// The behaviour of callers and of leaving instances.
enum class Policies {
  kLookout,  ///< p2c_ewma().eject_after(3), three attempts; instances give notice
  /// A port of kratos' behaviour: p2c with nodes that lose their statistics when the set changes; one
  /// attempt; instances end right after they have deregistered.
  kKratos
};
/// "Lookout", "kratos (port)"
const char* to_string(Policies policies);

/// The calls by port, from all callers.
class Traffic : public base::Pinned {
 public:
  struct Calls {
    std::atomic<std::uint64_t> in_flight = 0;
    std::atomic<std::uint64_t> failed = 0;
  };
  Calls& on(std::uint16_t port) { return calls_[port]; }

 private:
  std::array<Calls, 65536> calls_{};
};

/// Counts the calls of one or more callers.
struct Tally {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t attempts = 0;
  std::map<std::uint16_t, std::uint64_t> timeouts = {};  // of attempts, by the instance's port
  std::map<std::uint16_t, std::uint64_t> worst = {};     // the maximum of a single caller
  LagHistogram times = {};

  void add(const Tally& other);
};

/// Sends requests and reuses connections, like an HTTP client. For one thread.
class Connections : public base::Pinned {
 public:
  /// The maximum number of idle connections, one per instance; the least recently used one is closed
  /// first. (Go's http.DefaultTransport: MaxIdleConns.)
  static constexpr std::size_t kMostKept = 100;

  Connections(Traffic& traffic, Tally& tally) : traffic_(traffic), tally_(tally) {}

  /// Throws lookout::Error if there is no response in time.
  void request(const registry::Endpoint& endpoint, std::chrono::milliseconds time);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Kept {
    Socket socket;
    std::uint64_t used = 0;  // the number of the attempt
  };

  void ask(Socket& socket, TimePoint until);
  void keep(std::uint16_t port, Socket socket);

  Traffic& traffic_;
  Tally& tally_;
  std::map<std::uint16_t, Kept> kept_;
};

/// A client with one of the policies: picks an instance, calls it, and counts the result.
class CallerClient {
 public:
  virtual ~CallerClient() = default;
  /// Throws lookout::Error if the call fails.
  virtual void call(Connections& connections) = 0;
};

/// A client for calls of "web" with `per_try` as the limit of an attempt. The discovery must outlive it.
std::unique_ptr<CallerClient> make_client(Policies policies, registry::Discovery& discovery,
                                          std::chrono::milliseconds per_try);

/// Calls once per `period` until a stop. Late calls are not made up for.
void call_until(const std::stop_token& stop, CallerClient& client, Traffic& traffic, Tally& tally,
                std::chrono::nanoseconds period, std::chrono::nanoseconds first);

}  // namespace lookout::cmd::bench::fleet
