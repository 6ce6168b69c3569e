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

/// An oracle has found something: the message says what.
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
  /// Requested when the process is to end: the world ends, or the process has crashed. (A process
  /// that has crashed cannot reach anything any more; its code only has to come to an end.)
  virtual std::stop_token stop() const = 0;
  /// For a client: the API server at the other end of this process's network.
  virtual rest::Config config() const = 0;
  /// A client of this process, the same at every call.
  virtual rest::Client client() = 0;
};

struct WorldOptions {
  /// The API servers keep objects in an etcd, or rather a model of one, and have watch caches in front
  /// of it, as kube-apiserver does. Otherwise there is one server, with objects in its memory.
  bool etcd = false;
  /// With etcd: how many API servers there are. A process moves from one to the other now and then, and
  /// so meets caches that differ in how late they are. (Instead of FaultKind::kStaleRead.)
  unsigned servers = 1;
  /// FaultKind::kStaleRead: how many writes the other replica of the API server may be behind.
  unsigned longest_lag = 20;
  /// The delay of a message. Drawn for each one.
  std::chrono::microseconds shortest_latency{200};
  std::chrono::microseconds longest_latency{3'000};
  /// After a crash, or when its function has returned or thrown, until a process begins again.
  std::chrono::milliseconds restart_after{1'000};
  /// When the faults are over: how long the world has to come to rest, and for how long it is
  /// watched then.
  std::chrono::milliseconds settle{120'000};
  std::chrono::milliseconds rest{30'000};
  /// At rest: writes a minute of one process, leases and events aside, that are too many.
  double hot_loop = 6;
  /// At rest, too, the function of a process may throw. Otherwise that is a violation: its next life
  /// would end in the same way.
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

  /// A client past the network: no latency, no faults, but those of etcd. For the test's own objects
  /// and checks. `server`: to which of the API servers.
  rest::Client& admin(unsigned server = 0);
  apiserver::Server& server(unsigned server = 0);

  /// Runs `body` as a process, from now on. When it returns or throws, the process begins a new
  /// life after a while. Throws InvalidArgument if there is one of that name.
  void start(std::string name, std::function<void(Process&)> body);
  /// Ends the life of a process; the next one begins after a while. With `for_good`, none does.
  void crash(std::string_view name, bool for_good = false);
  /// Asks a process to end, as SIGTERM does, and waits up to `grace`; then it crashes. No other
  /// life begins.
  void stop(std::string_view name, std::chrono::milliseconds grace = std::chrono::seconds(30));
  void freeze(std::string_view name, std::chrono::milliseconds duration);
  void partition(std::string_view name, std::chrono::milliseconds duration);

  /// Draws faults from the seed while run() is in its first phase. Throws InvalidArgument in
  /// explore(), explore_each() and replay(): their options and plans say which faults strike.
  void faults(FaultOptions options);
  /// Has exactly these strike. Throws as above.
  void faults(Plan plan);
  /// Those that have struck so far.
  Plan struck() const;

  /// Calls a function at a time of run(), as a user who edits objects with admin() would. Faults
  /// of the function's own are failures of the test.
  void at(std::chrono::milliseconds time, std::function<void()> function);

  /// Something that a user may do at any time: FaultKind::kEdit has it happen right before a request of
  /// a process. Called on a thread of that process; what it throws is ignored, as an object may not be
  /// there.
  void edit(std::string what, std::function<void()> function);

  /// Must hold whenever something was written, by a process, a user or the server itself, and at the
  /// end of run(); `check` throws, or returns false, if it does not.
  void always(std::string what, std::function<bool()> check);
  /// Must hold when the world has come to rest.
  void eventually(std::string what, std::function<bool()> check);
  /// At most one process may be between enter() and leave() of a name: leaders. Reports a
  /// violation at once.
  void enter(std::string_view name, const Process& process);
  void leave(std::string_view name, const Process& process);
  /// Reports a violation; the run ends with it. explore() sees it whenever it comes: behind run(), too,
  /// and while the processes end.
  void fail(std::string what);

  /// Lets the world go on for that long with faults, then without until it has come to rest, and
  /// checks. Throws Violation.
  void run(std::chrono::milliseconds duration);
  /// Lets time pass. No faults but those of the network, no checks but always().
  void sleep(std::chrono::milliseconds duration);

  /// All objects but Events, Leases and IPAddresses by "resource.group/namespace/name", as JSON
  /// without what differs between two runs (UIDs, resourceVersions, generations, addresses, times).
  std::map<std::string, std::string> snapshot();

  /// The story as a table: time, process, request, answer, fault. At most so many lines: those with
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
