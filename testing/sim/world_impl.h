// The parts of a world.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/testing/sim/world.h"
#include "testing/sim/ended.h"
#include "testing/sim/etcd_model.h"
#include "testing/sim/kernel.h"
#include "testing/sim/logs_apart.h"
#include "testing/sim/network.h"
#include "testing/sim/story.h"

namespace lookout::sim {

/// One life of a process.
class Life : public Process {
 public:
  Life(World::Impl& world, std::string name, int number, std::shared_ptr<Link> link);

  const std::string& name() const override { return name_; }
  int life() const override { return number_; }
  std::stop_token stop() const override { return stop_.get_token(); }
  rest::Config config() const override;
  rest::Client client() override;

  /// On the process's first thread: from its beginning to its end.
  void run(const std::function<void(Process&)>& body);

  Link& link() const { return *link_; }
  void request_stop() { stop_.request_stop(); }
  bool ended() const { return ended_; }
  bool threw() const { return threw_; }
  void set_ended() { ended_ = true; }

  ThreadGroup group;
  std::thread thread;
  /// Set if the process has ended by itself.
  std::string why_ended;

 private:
  World::Impl& world_;
  const std::string name_;
  const int number_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<NetworkOf> network_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::optional<rest::Client> client_;  // guarded by mutex_
  std::atomic<bool> ended_{false};
  std::atomic<bool> threw_{false};
};

/// All work happens on the world's first thread. The network and the processes leave their reports under
/// the mutex and wake that thread.
class World::Impl : public NetworkEvents, public EtcdEvents {
 public:
  Impl(std::uint64_t seed, WorldOptions options);
  ~Impl() override;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint64_t seed() const { return seed_; }
  Time now() const { return Time(kernel_.now()); }
  rest::Client& admin(unsigned server = 0) { return servers_.at(server).admin.value(); }
  apiserver::Server& server(unsigned server = 0) { return *servers_.at(server).server; }
  /// Null without WorldOptions::etcd.
  EtcdModel* etcd() { return etcd_.get(); }
  const Story& story() const { return story_; }
  std::uint64_t digest() const { return story_.digest() ^ kernel_.digest(); }

  void start(std::string name, std::function<void(Process&)> body);
  void crash(std::string_view name, bool for_good, const char* why);
  void stop(std::string_view name, std::chrono::milliseconds grace);
  void freeze(std::string_view name, std::chrono::milliseconds duration);
  void partition(std::string_view name, std::chrono::milliseconds duration);
  void at(Time time, std::function<void()> function);
  void sleep_until(Time until);
  void run(std::chrono::milliseconds duration);

  void set_faults(FaultOptions options) {
    demand_own_faults();
    faults_ = std::move(options);
  }
  void faults(const Plan& plan);
  /// Fixes the faults; the scenario must not set any.
  void have_only(FaultOptions options, const Plan& plan) {
    set_faults(std::move(options));
    Plan of_requests;
    for (const Fault& fault : plan)
      (is_of_time(fault.kind) ? timed_ : of_requests).push_back(fault);
    faults(of_requests);
    fixed_ = true;
  }
  Plan struck() const {
    const std::lock_guard lock(mutex_);
    return struck_;
  }
  std::uint64_t requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  void always(std::string what, std::function<bool()> check) {
    always_.emplace_back(std::move(what), std::move(check));
  }
  void eventually(std::string what, std::function<bool()> check) {
    eventually_.emplace_back(std::move(what), std::move(check));
  }
  void edit(std::string what, std::function<void()> function) {
    edits_.emplace_back(std::move(what), std::move(function));
  }
  void enter(std::string_view name, const Process& process);
  void leave(std::string_view name, const Process& process);
  void fail(std::string what);
  /// The violation that an oracle or fail() has reported, if any.
  std::optional<std::string> violation() const {
    const std::lock_guard lock(mutex_);
    return violation_;
  }
  /// Call after the scenario. Throws Violation if there is one, or if a check has not run.
  void conclude();
  /// Stops all lives and waits for their end; no new ones begin.
  void end_processes();

  /// The final state of the run without faults, to compare with; null: do not compare.
  void expect(const std::map<std::string, std::string>* state) { expected_ = state; }
  /// Skips reading the final state.
  void forget_end() { keeps_end_ = false; }
  /// Called at each fault that strikes.
  std::function<void(const Fault&)> on_struck;
  const std::map<std::string, std::string>& final_state() const { return final_state_; }
  /// All requests of processes.
  std::vector<Traced> trace() const {
    const std::lock_guard lock(mutex_);
    return trace_;
  }

  // NetworkEvents
  void on_request(RequestNote& request) override;
  void on_answer(const RequestNote& request, int status, const std::string& why) override;
  void on_crash(const std::string& process) override;
  void connect(
      const RequestNote& request,
      std::function<std::unique_ptr<http::Transport>(boost::asio::any_io_executor)> make) override;
  void expire(const RequestNote& request) override;

  // EtcdEvents
  std::optional<Fault> on_call(EtcdCall& call) override;
  void on_answer(const EtcdCall& call, const std::string& how) override;

  /// The server has written an object. Called on any thread.
  void on_stored();

  /// On the thread of the life.
  void on_end(Life& life, const std::string& why);

 private:
  struct Slot {
    std::string name;
    std::function<void(Process&)> body;
    std::vector<std::unique_ptr<Life>> lives;
    bool for_good = false;
  };
  /// An API server, and the world's own client of it.
  struct ApiServer {
    ThreadGroup group;
    std::unique_ptr<apiserver::Server> server;
    std::optional<rest::Client> admin;
  };
  using Check = std::pair<std::string, std::function<bool()>>;
  using Moment = std::tuple<std::string, std::string, std::uint64_t>;  // process, call, at

  void begin_server(ApiServer& server, unsigned number);
  apiserver::ServerOptions server_options(unsigned number);
  void strike_etcd(const Fault& fault);
  void tell_user(RequestNote& request);
  void let_user_edit(const RequestNote& request);
  /// The planned or drawn fault of a request or a call. Requires the mutex.
  template <class Request>
  std::optional<Fault> fault_of(const Moment& moment, const Request& request) const;
  unsigned choose_server(const RequestNote& request) const;
  void check_calls_at_rest(std::uint64_t calls) const;
  Slot& slot(std::string_view name);
  void begin_life(Slot& slot);
  void begin_again_later(Slot& slot);
  void end(Life& life, const char* why);
  void await_end(Life& life);
  void strike(const Fault& fault);
  /// With the mutex held.
  void note_struck(const Fault& fault);
  void demand_own_faults() const;
  /// Schedules the checks of always() after a write.
  void note_written();
  void check_always();
  void check_writes_at_rest(const std::map<std::string, std::uint64_t>& before) const;
  void throw_violation() const;
  void begin_faults(Time from, Time to);
  void handle_news();
  void check_now(const char* kind, const std::string& what, const std::function<bool()>& check);
  void leave_all(const Process& process);
  void note(const std::string& process, std::string what);
  void ask_a_replica(RequestNote& request);
  std::string stale_target(const std::string& target, const Fault& fault);
  apiserver::storage::Revision revision();
  /// Also ends planned faults: with fewer faults there are fewer requests, so some request numbers of a
  /// plan may only be reached after the faults have ended.
  void end_faults() {
    const std::lock_guard lock(mutex_);
    drawing_ = false;
    plan_.clear();
  }
  std::map<std::string, std::uint64_t> writes() const {
    const std::lock_guard lock(mutex_);
    return writes_of_;
  }

  const std::uint64_t seed_;
  const WorldOptions options_;
  // First, so that it is destroyed last: the world's threads must end before it.
  Kernel kernel_;
  LogsApart logs_apart_;
  Story story_;
  std::shared_ptr<EtcdModel> etcd_;
  std::shared_ptr<Link> admin_link_;
  std::vector<ApiServer> servers_;
  std::map<std::string, Slot, std::less<>> slots_;
  std::vector<Check> always_;
  std::vector<Check> eventually_;
  std::vector<std::pair<std::string, std::function<void()>>> edits_;
  FaultOptions faults_;
  Plan timed_;  // strikes during run(), like drawn faults
  std::map<Moment, Fault> plan_;
  const std::map<std::string, std::string>* expected_ = nullptr;
  std::map<std::string, std::string> final_state_;
  bool keeps_end_ = true;
  std::size_t eventually_checked_ = 0;
  bool fixed_ = false;
  bool rests_ = false;
  bool over_ = false;

  mutable std::mutex mutex_;
  std::condition_variable poked_;
  // Guarded by mutex_:
  std::multimap<Time, std::function<void()>> actions_;
  std::map<std::string, std::uint64_t> requests_of_;
  std::map<std::string, std::uint64_t> writes_of_;
  std::uint64_t requests_ = 0;
  std::set<std::string> expired_;         // "process path"
  std::map<std::string, Fault> lagging_;  // "process path": the replica that responds
  std::map<std::string, std::set<const Process*>> inside_;
  Plan struck_;
  std::vector<Traced> trace_;
  std::vector<Life*> ended_;
  std::vector<Life*> crashed_;
  std::optional<std::string> violation_;
  bool written_ = false;
  bool drawing_ = false;
};

}  // namespace lookout::sim
