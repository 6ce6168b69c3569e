// World: a simulated cluster with a network and processes, on virtual time, from one seed.
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
#include "lookout/base/pinned.h"
#include "lookout/rest/client.h"
#include "lookout/testing/sim/faults.h"

namespace lookout::apiserver {
class Server;
}

namespace lookout::sim {

/// Time since the start of the world.
using Time = std::chrono::nanoseconds;

/// An oracle has found a violation; the message describes it.
class Violation : public Error {
 public:
  using Error::Error;
};

/// One life of a simulated process: the interface for the code that runs in it. Everything that the code
/// starts (threads, event loops, clients) belongs to the process: it is frozen and crashes with it.
class Process {
 public:
  virtual ~Process() = default;

  virtual const std::string& name() const = 0;
  /// 1 for the first life, 2 after the first crash ...
  virtual int life() const = 0;
  /// Requested when the process must end: the world ends, or the process has crashed. (A crashed
  /// process has no network; its code only needs to return.)
  virtual std::stop_token stop() const = 0;
  /// The configuration of a client that reaches the API server over this process's network.
  virtual rest::Config config() const = 0;
  /// The client of this process; every call returns the same one.
  virtual rest::Client client() = 0;
};

struct WorldOptions {
  /// The API servers keep objects in a model of etcd, with watch caches in front of it, as
  /// kube-apiserver does. Otherwise there is one server, with objects in its memory.
  bool etcd = false;
  /// With etcd: the number of API servers. A process switches between them now and then, and so sees
  /// caches that lag by different amounts. (Replaces FaultKind::kStaleRead.)
  unsigned servers = 1;
  /// FaultKind::kStaleRead: the maximum number of writes that the other replica of the API server lags.
  unsigned longest_lag = 20;
  /// The range of the delay of a message, drawn for each one.
  std::chrono::microseconds shortest_latency{200};
  std::chrono::microseconds longest_latency{3'000};
  /// The time until a process restarts after a crash, or after its function has returned or thrown.
  std::chrono::milliseconds restart_after{1'000};
  /// After the faults: the time limit for the world to come to rest, and the time for which it is then
  /// observed.
  std::chrono::milliseconds settle{120'000};
  std::chrono::milliseconds rest{30'000};
  /// At rest: the maximum writes of a process per minute, not counting Leases and Events. More are a
  /// violation.
  double hot_loop = 6;
  /// True: the function of a process may throw even at rest. False: that is a violation, because the
  /// next life would end in the same way.
  bool may_throw_at_rest = false;
};

/// A simulated cluster: an API server with its storage, a network, and processes. All of them run on
/// threads of this world, one at a time, on virtual time. The thread that creates the world belongs
/// to it until the world is destroyed. A program has at most one world at a time. Everything that uses
/// threads, clocks or random numbers must be created inside the world and destroyed before it.
///
///     sim::World world{seed};
///     world.start("website", [](sim::Process& p) { run_controller(p.client(), p.stop()); });
///     world.faults(sim::all_faults());
///     world.run(10min);
///
/// Usually, sim::explore() creates the worlds (lookout/testing/sim/explore.h).
class World : public base::Pinned {
 public:
  explicit World(std::uint64_t seed, WorldOptions options = {});
  /// Ends all processes and the server.
  ~World();

  std::uint64_t seed() const;
  Time now() const;

  /// A client that bypasses the network: it has no latency and no faults except those of etcd. For
  /// the test's own objects and checks. `server`: the index of the API server.
  rest::Client& admin(unsigned server = 0);
  apiserver::Server& server(unsigned server = 0);

  /// Starts `body` as a process, on a thread of the world. When it returns or throws, the process
  /// restarts after WorldOptions::restart_after. Throws InvalidArgument if there is a process with this
  /// name. Objects that `body` refers to must outlive the world.
  void start(std::string name, std::function<void(Process&)> body);
  /// Ends the life of a process. The process restarts later, unless `for_good` is true.
  void crash(std::string_view name, bool for_good = false);
  /// Asks a process to end, as SIGTERM does, waits up to `grace`, and then crashes it. It does not
  /// restart.
  void stop(std::string_view name, std::chrono::milliseconds grace = std::chrono::seconds(30));
  void freeze(std::string_view name, std::chrono::milliseconds duration);
  void partition(std::string_view name, std::chrono::milliseconds duration);

  /// Draws faults from the seed during the first phase of run(). Throws InvalidArgument in explore(),
  /// explore_each() and replay(), whose options and plans determine the faults.
  void faults(FaultOptions options);
  /// Sets exactly these faults. Throws like the function above.
  void faults(Plan plan);
  /// The faults that have struck so far.
  Plan struck() const;

  /// Calls a function at a time after the start of the world, for example a user who edits objects with
  /// admin(). It runs on the thread that calls run() or sleep(), which rethrows its exceptions.
  void at(std::chrono::milliseconds time, std::function<void()> function);

  /// Declares an edit that a user may make at any time: FaultKind::kEdit calls `function` right before
  /// a request of a process, on a thread of that process. Its exceptions are ignored, because an
  /// object may not exist at that time.
  void edit(std::string what, std::function<void()> function);

  /// Must hold after every write of a process, a user or the server itself, and at the end of run().
  /// If it does not hold, `check` returns false or throws.
  void always(std::string what, std::function<bool()> check);
  /// Must hold when the world has come to rest.
  void eventually(std::string what, std::function<bool()> check);
  /// At most one process may be between enter() and leave() for a name, for example as the leader.
  /// A second one is a violation.
  void enter(std::string_view name, const Process& process);
  void leave(std::string_view name, const Process& process);
  /// Reports a violation, which ends the run. explore() also notices violations after run() and while
  /// the processes end.
  void fail(std::string what);

  /// Runs the world for this long with faults, then without faults until it has come to rest, and
  /// checks it. Throws Violation if a check fails.
  void run(std::chrono::milliseconds duration);
  /// Lets time pass. No faults are drawn, and only the checks of always() run.
  void sleep(std::chrono::milliseconds duration);

  /// All objects except Events, Leases and IPAddresses, by "resource.group/namespace/name", as JSON
  /// without the fields that differ between runs (UIDs, resourceVersions, generations, addresses, times).
  std::map<std::string, std::string> snapshot();

  /// The story, a log of the run as a table: time, process, request, response, fault. Contains at most
  /// `lines` lines: those with faults, the writes around them, and the last ones.
  std::string story(std::size_t lines = 80) const;
  /// A hash of the whole run, for comparing two runs.
  std::uint64_t digest() const;
  /// The number of requests of processes so far.
  std::uint64_t requests() const;

  class Impl;
  /// For explore().
  Impl& impl();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::sim
