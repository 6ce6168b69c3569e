// A cluster, a network and processes on one clock and one seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/base/error.h"
#include "lookout/rest/client.h"
#include "lookout/testing/sim/faults.h"

namespace lookout::apiserver {
class Server;
}

namespace lookout::sim {

/// Time since the world began.
using Time = std::chrono::nanoseconds;

/// An oracle has found a violation; the message describes it.
class Violation : public Error {
 public:
  using Error::Error;
};

/// One life of a simulated process, as the code that runs in it sees it. Everything that the code
/// starts (threads, event loops, clients) belongs to the process: it is frozen and crashes with it.
class Process {
 public:
  virtual ~Process() = default;

  virtual const std::string& name() const = 0;
  /// 1 for the first life, 2 after the first crash ...
  virtual int life() const = 0;
  /// Requested when the process has to end: the world ends, or the process has crashed. (A crashed
  /// process has no network any more; its code only has to return.)
  virtual std::stop_token stop() const = 0;
  /// For a client: the API server at the other end of this process's network.
  virtual rest::Config config() const = 0;
  /// A client of this process, the same at every call.
  virtual rest::Client client() = 0;
};

struct WorldOptions {
  /// The API servers keep objects in a model of etcd, with watch caches in front of it, as
  /// kube-apiserver does. Otherwise there is one server, with objects in its memory.
  bool etcd = false;
  /// With etcd: the number of API servers. A process switches between them now and then, and so sees
  /// caches that lag by different amounts. (Replaces FaultKind::kStaleRead.)
  unsigned servers = 1;
  /// FaultKind::kStaleRead: how many writes the other replica of the API server may be behind.
  unsigned longest_lag = 20;
  /// The range of the delay of a message, drawn for each one.
  std::chrono::microseconds shortest_latency{200};
  std::chrono::microseconds longest_latency{3'000};
  /// The time until a process begins again after a crash, or after its function has returned or
  /// thrown.
  std::chrono::milliseconds restart_after{1'000};
  /// After the faults: how long the world has to come to rest, and how long it is observed after
  /// that.
  std::chrono::milliseconds settle{120'000};
  std::chrono::milliseconds rest{30'000};
  /// At rest: the most writes of a process per minute, not counting Leases and Events. More are a
  /// violation.
  double hot_loop = 6;
  /// The function of a process may throw even at rest. Otherwise that is a violation, because its
  /// next life would end in the same way.
  bool may_throw_at_rest = false;
};

/// A simulated cluster: an API server with its storage, a network, and processes, all on the
/// threads of this world, one at a time, on virtual time. The thread that makes the world belongs
/// to it until the world is gone; there is one world at a time in a program. Everything that uses
/// threads, clocks or random numbers must be made inside the world and be gone before it.
///
///     sim::World world{seed};
///     world.start("website", [](sim::Process& p) { run_controller(p.client(), p.stop()); });
///     world.faults(sim::all_faults());
///     world.run(10min);
///
/// Usually sim::explore() makes the worlds (lookout/testing/sim/explore.h).
class World {
 public:
  explicit World(std::uint64_t seed, WorldOptions options = {});
  /// Ends all processes and the server.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::uint64_t seed() const;
  Time now() const;

  /// A client that bypasses the network: it has no latency and no faults except those of etcd. For
  /// the test's own objects and checks. `server`: the index of the API server.
  rest::Client& admin(unsigned server = 0);
  apiserver::Server& server(unsigned server = 0);

  /// Runs `body` as a process, from now on, on a thread of the world. When it returns or throws, the
  /// process begins a new life after a while (WorldOptions::restart_after). Throws InvalidArgument if
  /// there is a process of this name. What `body` refers to must outlive the world.
  void start(std::string name, std::function<void(Process&)> body);
  /// Ends the life of a process; the next one begins after a while, unless `for_good` is true.
  void crash(std::string_view name, bool for_good = false);
  /// Asks a process to end, as SIGTERM does, and waits up to `grace`; then it crashes. No other
  /// life begins.
  void stop(std::string_view name, std::chrono::milliseconds grace = std::chrono::seconds(30));
  void freeze(std::string_view name, std::chrono::milliseconds duration);
  void partition(std::string_view name, std::chrono::milliseconds duration);

  /// Draws faults from the seed while run() is in its first phase. Throws InvalidArgument in
  /// explore(), explore_each() and replay(): their options and plans say which faults strike.
  void faults(FaultOptions options);
  /// Exactly these faults strike. Throws like the function above.
  void faults(Plan plan);
  /// The faults that have struck so far.
  Plan struck() const;

  /// Calls a function at a time after the world began, to play a user who edits objects with
  /// admin(). It runs on the thread that calls run() or sleep(), which rethrows its exceptions.
  void at(std::chrono::milliseconds time, std::function<void()> function);

  /// Declares something that a user may do at any time: FaultKind::kEdit calls `function` right before
  /// a request of a process, on a thread of that process. Its exceptions are ignored, because an
  /// object may not exist at that time.
  void edit(std::string what, std::function<void()> function);

  /// Must hold after every write of a process, a user or the server itself, and at the end of run().
  /// If it does not hold, `check` returns false or throws.
  void always(std::string what, std::function<bool()> check);
  /// Must hold when the world has come to rest.
  void eventually(std::string what, std::function<bool()> check);
  /// At most one process may be between enter() and leave() of a name: leaders. Reports a
  /// violation at once.
  void enter(std::string_view name, const Process& process);
  void leave(std::string_view name, const Process& process);
  /// Reports a violation, which ends the run. explore() also notices violations after run() and while
  /// the processes end.
  void fail(std::string what);

  /// Runs the world for this long with faults, then without faults until it has come to rest, and
  /// checks it. Throws Violation.
  void run(std::chrono::milliseconds duration);
  /// Lets time pass. No faults are drawn, and only the checks of always() run.
  void sleep(std::chrono::milliseconds duration);

  /// All objects but Events, Leases and IPAddresses by "resource.group/namespace/name", as JSON
  /// without what differs between two runs (UIDs, resourceVersions, generations, addresses, times).
  std::map<std::string, std::string> snapshot();

  /// The story as a table: time, process, request, answer, fault. At most this many lines: those with
  /// faults, the writes around them, and the last ones.
  std::string story(std::size_t lines = 80) const;
  /// A hash of everything that happened, to compare two runs.
  std::uint64_t digest() const;
  /// Requests of processes so far.
  std::uint64_t requests() const;

  class Impl;
  /// For explore().
  Impl& impl();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::sim
