#include "lookout/testing/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/base/detail/log.h"
#include "testing/sim/draw.h"
#include "testing/sim/kernel.h"
#include "testing/sim/network.h"
#include "testing/sim/noted_storage.h"
#include "testing/sim/snapshot.h"
#include "testing/sim/story.h"
#include "testing/sim/world_impl.h"

namespace lookout::sim {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// The time limit for a process to end after its stop was requested.
constexpr std::chrono::minutes kPatience{10};

Nanos nanos(std::chrono::nanoseconds time) { return time.count(); }
double seconds_of(milliseconds time) { return std::chrono::duration<double>(time).count(); }

constexpr apiserver::storage::Revision kFirstRevision = 1000;

/// An etcd with three members. The seed determines its version and its configuration.
EtcdModelOptions etcd_options(std::uint64_t seed) {
  Random random(mix(seed ^ hash_of(kEtcd)));
  EtcdModelOptions out;
  out.data.version = random.below(2) == 0 ? "3.4.23" : "3.5.16";
  out.data.revision = kFirstRevision;
  out.members = 3;
  out.seed = random.next();
  out.shortest_latency = std::chrono::microseconds(50);
  out.longest_latency = std::chrono::microseconds(1000);
  if (random.below(2) == 0) out.progress_interval = std::chrono::seconds(5);
  if (random.below(2) == 0) out.max_answer_bytes = 1000;
  return out;
}

}  // namespace

// ---------------------------------------------------------------------------------------- Life

Life::Life(World::Impl& world, std::string name, int number, std::shared_ptr<Link> link)
    : world_(world),
      name_(std::move(name)),
      number_(number),
      link_(std::move(link)),
      network_(std::make_shared<NetworkOf>(name_, link_, world)) {
  group.name = name_;
}

rest::Config Life::config() const {
  rest::Config out;
  out.server = "http://apiserver";
  out.transport = network_;
  return out;
}

rest::Client Life::client() {
  const std::lock_guard lock(mutex_);
  if (!client_) client_.emplace(config(), std::make_shared<EventLoop>(1));
  return *client_;
}

void Life::run(const std::function<void(Process&)>& body) {
  std::string why = "its function has returned";
  try {
    body(*this);
  } catch (const Violation& e) {
    world_.fail(e.what());
  } catch (const std::exception& e) {
    why = fmt::format("its function threw: {}", e.what());
    threw_ = true;
  } catch (...) {
    why = "its function threw something that is not a std::exception";
    threw_ = true;
  }
  {
    const std::lock_guard lock(mutex_);
    client_.reset();
  }
  world_.on_end(*this, why);
}

// ---------------------------------------------------------------------------------------- Impl

World::Impl::Impl(std::uint64_t seed, WorldOptions options)
    : seed_(seed), options_(options), kernel_(seed) {
  kernel_.on_deadlock = [this](const std::string& text) {
    std::fprintf(stderr, "sim: seed %llu: %s%s", static_cast<unsigned long long>(seed_),
                 text.c_str(), story_.print(60).c_str());
  };
  if (options_.etcd) {
    etcd_ = EtcdModel::make(etcd_options(seed), this);
  } else if (options_.servers != 1) {
    throw InvalidArgument("several API servers have to share an etcd (WorldOptions::etcd)");
  }
  admin_link_ = std::make_shared<Link>(mix(seed), Link::Latency{});
  servers_.resize(std::max(options_.servers, 1U));
  for (unsigned i = 0; i < servers_.size(); ++i) begin_server(servers_[i], i);
}

void World::Impl::begin_server(ApiServer& server, unsigned number) {
  server.group.name = number == 0 ? "apiserver" : fmt::format("apiserver-{}", number + 1);
  kernel_.enter(server.group);
  server.server = std::make_unique<apiserver::Server>(server_options(number));
  kernel_.enter(kernel_.world());
  rest::Config config;
  config.server = "http://apiserver";
  config.transport = std::make_shared<NetworkOf>("", admin_link_, *this, number);
  config.on_warning = [](const auto&...) {};  // snapshots list deprecated resources, too
  server.admin.emplace(config, std::make_shared<EventLoop>(1));
}

apiserver::ServerOptions World::Impl::server_options(unsigned number) {
  apiserver::ServerOptions out;
  out.listens = false;
  out.threads = 1;
  if (etcd_ == nullptr) {
    out.storage = std::make_shared<NotedStorage>(kFirstRevision, [this] { on_stored(); });
    return out;
  }
  apiserver::storage::EtcdOptions etcd;
  etcd.endpoints = etcd_->endpoints();
  // Each begins with another member.
  std::rotate(etcd.endpoints.begin(),
              etcd.endpoints.begin() + static_cast<int>(number % etcd.endpoints.size()),
              etcd.endpoints.end());
  etcd.network = etcd_;
  etcd.compaction_interval = std::chrono::seconds(40);
  out.storage = std::make_shared<apiserver::storage::EtcdBackend>(std::move(etcd));
  return out;
}

World::Impl::~Impl() {
  end_processes();
  slots_.clear();
  if (etcd_ != nullptr) etcd_->heal();
  for (ApiServer& server : servers_) server.admin.reset();
  for (ApiServer& server : servers_) {
    server.server->stop(milliseconds(0));
    server.server.reset();
  }
}

void World::Impl::end_processes() {
  if (std::exchange(over_, true)) return;
  for (auto& [name, slot] : slots_) {
    for (auto& life : slot.lives) end(*life, "the world ends");
  }
  for (auto& [name, slot] : slots_) {
    for (auto& life : slot.lives) await_end(*life);
  }
}

void World::Impl::start(std::string name, std::function<void(Process&)> body) {
  if (name.empty() || slots_.contains(name))
    throw InvalidArgument(fmt::format("there is a process '{}' already", name));
  if (etcd_ != nullptr && name == kEtcd)
    throw InvalidArgument("'etcd' names the etcd of this world (WorldOptions::etcd)");
  Slot& slot = slots_[name];
  slot.name = std::move(name);
  slot.body = std::move(body);
  begin_life(slot);
}

void World::Impl::begin_life(Slot& slot) {
  const int number = static_cast<int>(slot.lives.size()) + 1;
  auto link =
      std::make_shared<Link>(mix(seed_ ^ hash_of(slot.name)) + static_cast<std::uint64_t>(number),
                             Link::Latency{options_.shortest_latency, options_.longest_latency});
  Life& life =
      *slot.lives.emplace_back(std::make_unique<Life>(*this, slot.name, number, std::move(link)));
  note(slot.name, fmt::format("(begins life {})", number));
  kernel_.enter(life.group);
  life.thread = std::thread([&life, body = slot.body] { life.run(body); });
  kernel_.enter(kernel_.world());
}

World::Impl::Slot& World::Impl::slot(std::string_view name) {
  const auto it = slots_.find(name);
  if (it == slots_.end()) throw InvalidArgument(fmt::format("there is no process '{}'", name));
  return it->second;
}

void World::Impl::end(Life& life, const char* why) {
  if (!life.ended()) note(life.name(), fmt::format("({})", why));
  life.link().end();
  kernel_.freeze(life.group, 0);
  leave_all(life);
  life.request_stop();
}

void World::Impl::await_end(Life& life) {
  const Time last = now() + kPatience;
  bool ended = false;
  {
    std::unique_lock lock(mutex_);
    ended = poked_.wait_for(lock, kPatience, [&] { return life.ended(); });
  }
  if (ended && life.thread.joinable()) life.thread.join();
  // An event loop that is destroyed on its own thread detaches that thread. (The sleep is virtual.)
  while (ended && kernel_.has_threads_of(life.group) && now() < last)
    std::this_thread::sleep_for(milliseconds(1));
  if (!ended || kernel_.has_threads_of(life.group)) {
    std::fprintf(stderr,
                 "sim: seed %llu: process %s has not ended %d minutes after its stop was "
                 "requested; its threads:\n%s",
                 static_cast<unsigned long long>(seed_), life.name().c_str(),
                 static_cast<int>(kPatience.count()), kernel_.describe_threads().c_str());
    std::abort();
  }
}

void World::Impl::on_end(Life& life, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    life.set_ended();
    const bool alone = !life.stop().stop_requested();
    if (alone) life.why_ended = why;
    ended_.push_back(&life);
  }
  poked_.notify_all();
}

void World::Impl::crash(std::string_view name, bool for_good, const char* why) {
  Slot& slot = this->slot(name);
  slot.for_good = slot.for_good || for_good;
  Life& life = *slot.lives.back();
  if (life.link().ended()) return;
  end(life, why);
  begin_again_later(slot);
}

void World::Impl::begin_again_later(Slot& slot) {
  if (slot.for_good || over_) return;
  at(now() + options_.restart_after, [this, name = slot.name] {
    Slot& again = this->slot(name);
    if (!again.for_good && again.lives.back()->link().ended()) begin_life(again);
  });
}

void World::Impl::stop(std::string_view name, milliseconds grace) {
  Slot& slot = this->slot(name);
  slot.for_good = true;
  Life& life = *slot.lives.back();
  note(slot.name, "(is asked to end)");
  life.request_stop();
  const auto until = now() + grace;
  while (!life.ended() && now() < until) sleep_until(std::min(until, now() + milliseconds(100)));
  end(life, "has ended, or is ended");
}

void World::Impl::freeze(std::string_view name, milliseconds duration) {
  Life& life = *slot(name).lives.back();
  note(life.name(), fmt::format("(is frozen for {:.3f} s)", seconds_of(duration)));
  kernel_.freeze(life.group, kernel_.now() + nanos(duration));
}

void World::Impl::partition(std::string_view name, milliseconds duration) {
  Life& life = *slot(name).lives.back();
  note(life.name(), fmt::format("(is cut off for {:.3f} s)", seconds_of(duration)));
  life.link().cut_until(steady_clock::now() + duration);
}

/// Draws durations that the fault does not specify, seeded with its time.
void World::Impl::strike_etcd(const Fault& fault) {
  note_struck(fault);
  Random random(mix(fault.at));
  const auto drawn_member = [&] {
    return static_cast<int>(random.below(etcd_->endpoints().size()));
  };
  switch (fault.kind) {
    case FaultKind::kCrash: {
      const int member = drawn_member();
      const milliseconds down(random.between(100, 4'000));
      note(kEtcd,
           fmt::format("(member {} restarts, which takes {:.3f} s)", member, seconds_of(down)));
      etcd_->restart(member, down);
      return;
    }
    case FaultKind::kFreeze: {
      const int member = drawn_member();
      const bool for_good = random.below(2) == 0;
      note(kEtcd, fmt::format("(member {} does not respond for {:.3f} s{})", member,
                              seconds_of(fault.duration),
                              for_good ? "; its existing connections stay silent" : ""));
      etcd_->freeze(member, fault.duration, for_good);
      return;
    }
    case FaultKind::kPartition: {
      const int member = drawn_member();
      note(kEtcd, fmt::format("(member {} cannot reach the others for {:.3f} s)", member,
                              seconds_of(fault.duration)));
      etcd_->cut_off(member, fault.duration);
      return;
    }
    case FaultKind::kLag: {
      const int member = drawn_member();
      const milliseconds late(random.between(50, 10'000));
      note(kEtcd, fmt::format("(member {} lags by {:.3f} s for {:.3f} s)", member, seconds_of(late),
                              seconds_of(fault.duration)));
      etcd_->delay(member, late, fault.duration);
      return;
    }
    case FaultKind::kNoLeader:
      note(kEtcd, fmt::format("(has no leader for {:.3f} s)", seconds_of(fault.duration)));
      etcd_->lose_leader(fault.duration);
      return;
    case FaultKind::kCompact: {
      const auto revision = etcd_->revision() - (random.below(2) == 0 ? 0 : random.below(4));
      if (revision <= etcd_->compacted()) return;
      note(kEtcd, fmt::format("(compacts the history before revision {})", revision));
      etcd_->compact(revision);
      return;
    }
    default:
      return;
  }
}

void World::Impl::note_struck(const Fault& fault) {
  struck_.push_back(fault);
  if (on_struck) on_struck(fault);
}

void World::Impl::strike(const Fault& fault) {
  if (fault.process == kEtcd && etcd_ != nullptr) return strike_etcd(fault);
  const auto found = slots_.find(fault.process);
  if (found == slots_.end()) return;
  note_struck(fault);
  Slot& slot = found->second;
  switch (fault.kind) {
    case FaultKind::kCrash:
      crash(fault.process, false, "crashes");
      break;
    case FaultKind::kFreeze:
      freeze(fault.process, fault.duration);
      break;
    case FaultKind::kPartition:
      partition(fault.process, fault.duration);
      break;
    case FaultKind::kClockJump:
      note(fault.process,
           fmt::format("(its wall clock jumps by {:.3f} s)", seconds_of(fault.duration)));
      slot.lives.back()->group.clock_error += nanos(fault.duration);
      break;
    default:
      break;
  }
}

// --- requests

template <class Request>
std::optional<Fault> World::Impl::fault_of(const Moment& moment, const Request& request) const {
  const auto planned = plan_.find(moment);
  if (planned == plan_.end()) return drawing_ ? draw(faults_, seed_, request) : std::nullopt;
  return fits(planned->second.kind, request) ? std::optional(planned->second) : std::nullopt;
}

void World::Impl::on_request(RequestNote& request) {
  if (request.process.empty()) return tell_user(request);  // of the test itself
  {
    const std::lock_guard lock(mutex_);
    request.number = ++requests_of_[request.process];
    ++requests_;
    trace_.push_back({request.process, request.number, request.method, request.target, now()});
    if (request.writes() && request.target.find("/leases") == std::string::npos &&
        request.target.find("/events") == std::string::npos)
      ++writes_of_[request.process];
    if (request.watches() && expired_.erase(request.process + " " + request.path()) > 0) {
      Fault gone;
      gone.kind = FaultKind::kRefuse;
      gone.status = 410;
      gone.process = request.process;
      gone.at = request.number;
      request.fault = gone;
    } else {
      request.fault = fault_of({request.process, "", request.number}, request);
      // With etcd, other servers lag already.
      if (etcd_ != nullptr && request.fault && request.fault->kind == FaultKind::kStaleRead)
        request.fault.reset();
    }
    if (request.fault && request.fault->kind == FaultKind::kEdit && edits_.empty())
      request.fault.reset();
    if (request.fault) note_struck(*request.fault);
  }
  if (request.fault && request.fault->kind == FaultKind::kEdit) let_user_edit(request);
  ask_a_replica(request);
  request.server = choose_server(request);
  Story::Entry entry;
  entry.time = kernel_.now();
  entry.process = request.process;
  entry.what = request.method + " " + request.target;
  if (servers_.size() > 1) entry.what += " at " + servers_[request.server].group.name;
  entry.writes = request.writes();
  if (request.fault) {
    Fault shown = *request.fault;
    entry.fault = describe(shown);
    entry.fault.erase(0, entry.fault.find(": ") + 2);
  }
  request.entry = story_.add(std::move(entry));
}

/// Adds the user's writes to the story.
void World::Impl::tell_user(RequestNote& request) {
  if (!request.writes()) return;
  Story::Entry entry;
  entry.time = kernel_.now();
  entry.process = "user";
  entry.what = request.method + " " + request.target;
  entry.writes = true;
  request.entry = story_.add(std::move(entry));
}

/// Runs on the process's thread; the request waits for it.
void World::Impl::let_user_edit(const RequestNote& request) {
  Random random(mix(seed_ ^ hash_of(request.process)) ^ mix(request.number));
  const auto& [what, function] = edits_[random.below(edits_.size())];
  note("user", "(" + what + ")");
  try {
    function();
  } catch (const Violation& e) {
    fail(e.what());
  } catch (const std::exception&) {
    // Exceptions are expected: the object may not exist.
  }
}

void World::Impl::on_answer(const RequestNote& request, int status, const std::string& why) {
  if (!request.process.empty() || request.writes())
    story_.answer(request.entry, status != 0 ? std::to_string(status) : why);
  if (request.writes()) note_written();
}

void World::Impl::note_written() {
  {
    const std::lock_guard lock(mutex_);
    written_ = true;
  }
  poked_.notify_all();
}

void World::Impl::on_stored() {
  if (!always_.empty()) note_written();
}

void World::Impl::on_crash(const std::string& process) {
  Life& life = *slots_.find(process)->second.lives.back();
  life.link().end();
  {
    const std::lock_guard lock(mutex_);
    crashed_.push_back(&life);
  }
  poked_.notify_all();
}

/// A process stays with a server for some requests.
unsigned World::Impl::choose_server(const RequestNote& request) const {
  constexpr std::uint64_t kRequests = 4;
  const std::uint64_t drawn =
      mix(seed_ ^ hash_of(request.process)) ^ mix(request.number / kRequests + 1);
  return static_cast<unsigned>(mix(drawn) % servers_.size());
}

void World::Impl::connect(
    const RequestNote& request,
    std::function<std::unique_ptr<http::Transport>(boost::asio::any_io_executor)> make) {
  servers_[request.server].server->connect(std::move(make));
}

// --- calls to etcd

std::optional<Fault> World::Impl::on_call(EtcdCall& call) {
  std::optional<Fault> out;
  {
    const std::lock_guard lock(mutex_);
    out = fault_of({kEtcd, call.who(), call.number}, call);
    if (out) note_struck(*out);
  }
  Story::Entry entry;
  entry.time = kernel_.now();
  entry.process = kEtcd;
  entry.what = call.method + " " + call.key;
  entry.writes = call.writes();
  if (out) {
    entry.fault = describe(*out);
    entry.fault.erase(0, entry.fault.find(": ") + 2);
  }
  call.entry = story_.add(std::move(entry));
  return out;
}

void World::Impl::on_answer(const EtcdCall& call, const std::string& how) {
  story_.answer(call.entry, how);
  if (call.writes()) on_stored();
}

void World::Impl::expire(const RequestNote& request) {
  const std::lock_guard lock(mutex_);
  expired_.insert(request.process + " " + request.path());
}

/// Lets a lagging replica answer, or continue a watch: see FaultKind::kStaleRead.
void World::Impl::ask_a_replica(RequestNote& request) {
  const std::string key = request.process + " " + request.path();
  std::optional<Fault> lagging;
  {
    const std::lock_guard lock(mutex_);
    if (request.fault && request.fault->kind == FaultKind::kStaleRead)
      lagging_[key] = *request.fault;
    const auto found = lagging_.find(key);
    if (found == lagging_.end()) return;
    lagging = found->second;
    const bool follows = request.watches() && !request.asks_first_state();
    if (follows) lagging_.erase(found);
    if (follows && !request.fault) request.held = lagging->duration;
  }
  if (request.asks_any_version()) request.asked = stale_target(request.target, *lagging);
}

/// Turns a list with resourceVersion=0 into one of an older version, as a server with a lagging cache
/// would answer.
std::string World::Impl::stale_target(const std::string& target, const Fault& fault) {
  const std::size_t at = target.find("resourceVersion=0");
  const apiserver::storage::Revision newest = revision();
  // Independent of other faults, so that a reduced plan gives the same result.
  Random random(mix(seed_ ^ hash_of(fault.process)) ^ fault.at);
  const std::uint64_t lag = random.below(options_.longest_lag) + 1;
  constexpr apiserver::storage::Revision kFirst = 1001;
  const auto old = std::max<std::uint64_t>(kFirst, newest > lag ? newest - lag : 0);
  std::string out = target;
  constexpr std::string_view kAny = "resourceVersion=0";
  out.replace(at, kAny.size(), fmt::format("resourceVersion={}&resourceVersionMatch=Exact", old));
  return out;
}

apiserver::storage::Revision World::Impl::revision() {
  return admin().loop().run(server().storage().current_revision());
}

// --- time

void World::Impl::at(Time time, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  actions_.emplace(time, std::move(function));
}

void World::Impl::sleep_until(Time until) {
  for (;;) {
    handle_news();
    std::function<void()> action;
    {
      std::unique_lock lock(mutex_);
      if (violation_) throw Violation(*violation_);
      if (!actions_.empty() && actions_.begin()->first <= now()) {
        action = std::move(actions_.begin()->second);
        actions_.erase(actions_.begin());
      } else {
        if (now() >= until) return;
        const Time next = actions_.empty() ? until : std::min(until, actions_.begin()->first);
        const auto wake = steady_clock::now() + (next - now());
        poked_.wait_until(lock, wake, [&] {
          return violation_ || written_ || !ended_.empty() || !crashed_.empty();
        });
        continue;
      }
    }
    action();
  }
}

/// Handles reports of the processes' threads, on the world's own thread.
void World::Impl::handle_news() {
  std::vector<Life*> ended;
  std::vector<Life*> crashed;
  bool written = false;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
    crashed.swap(crashed_);
    written = std::exchange(written_, false);
  }
  for (Life* life : crashed) {
    Slot& slot = this->slot(life->name());
    if (slot.lives.back().get() != life) continue;
    end(*life, "has crashed");
    begin_again_later(slot);
  }
  for (Life* life : ended) {
    if (life->thread.joinable()) life->thread.join();
    if (life->why_ended.empty() || over_) continue;
    note(life->name(), "(ends: " + life->why_ended + ")");
    if (rests_ && life->threw() && !options_.may_throw_at_rest)
      fail(fmt::format("{} does not stay up, though nothing has happened for {} s: {}",
                       life->name(), options_.settle.count() / 1000, life->why_ended));
    Slot& slot = this->slot(life->name());
    end(*life, "has ended");
    begin_again_later(slot);
  }
  if (written) check_always();
}

void World::Impl::check_always() {
  for (const auto& [what, check] : always_) check_now("must always hold: ", what, check);
}

void World::Impl::check_now(const char* kind, const std::string& what,
                            const std::function<bool()>& check) {
  std::string why;
  try {
    if (check()) return;
    why = "it does not";
  } catch (const Violation&) {
    throw;
  } catch (const std::exception& e) {
    why = e.what();
  }
  fail(fmt::format("{}{}: {}", kind, what, why));
  throw_violation();
}

void World::Impl::throw_violation() const {
  if (const auto found = violation()) throw Violation(*found);
}

void World::Impl::conclude() {
  throw_violation();
  if (eventually_checked_ == eventually_.size()) return;
  throw Violation(
      fmt::format("an eventual check has not run: {}: the scenario does not call run() "
                  "after eventually()",
                  eventually_[eventually_checked_].first));
}

void World::Impl::demand_own_faults() const {
  if (fixed_)
    throw InvalidArgument(
        "World::faults() has no effect here: explore(), explore_each() and replay() say which "
        "faults strike (ExploreOptions::faults)");
}

void World::Impl::faults(const Plan& plan) {
  demand_own_faults();
  for (const Fault& fault : plan) {
    if (is_of_time(fault.kind)) {
      at(milliseconds(fault.at), [this, fault] { strike(fault); });
    } else {
      plan_.emplace(Moment(fault.process, fault.call, fault.at), fault);
    }
  }
}

/// Locks the mutex only once, for any number of faults: an unlock is a preemption point, and replaying
/// the drawn faults as a plan must give the same run.
void World::Impl::begin_faults(Time from, Time to) {
  Plan all = std::exchange(timed_, {});
  const auto add_drawn = [&](const std::string& process) {
    std::ranges::copy(draw(faults_, seed_, process, std::chrono::ceil<milliseconds>(from),
                           std::chrono::floor<milliseconds>(to)),
                      std::back_inserter(all));
  };
  for (const auto& [name, slot] : slots_) add_drawn(name);
  if (etcd_ != nullptr) add_drawn(kEtcd);
  const std::lock_guard lock(mutex_);
  for (const Fault& fault : all)
    actions_.emplace(milliseconds(fault.at), [this, fault] { strike(fault); });
  drawing_ = true;
}

void World::Impl::run(milliseconds duration) {
  const Time begin = now();
  const Time over = begin + duration;
  begin_faults(begin, over);
  sleep_until(over);
  end_faults();
  note("world", "(no more faults)");
  for (auto& [name, slot] : slots_) {
    Life& life = *slot.lives.back();
    kernel_.freeze(life.group, 0);
    life.link().cut_until(steady_clock::now());
  }
  if (etcd_ != nullptr) etcd_->heal();
  sleep_until(now() + options_.settle);
  const auto before = writes();
  const std::uint64_t calls = etcd_ != nullptr ? etcd_->calls() : 0;
  rests_ = true;
  sleep_until(now() + options_.rest);
  rests_ = false;
  if (etcd_ != nullptr) check_calls_at_rest(etcd_->calls() - calls);
  check_writes_at_rest(before);
  check_always();
  for (const auto& [what, check] : eventually_) check_now("must hold in the end: ", what, check);
  eventually_checked_ = eventually_.size();
  throw_violation();
  if (!keeps_end_) return;
  final_state_ = snapshot_of(admin());
  if (expected_ != nullptr) {
    const std::string differs = difference(*expected_, final_state_);
    if (!differs.empty())
      throw Violation("the final state differs from that of the run without faults:\n" + differs);
  }
  throw_violation();
}

void World::Impl::check_writes_at_rest(const std::map<std::string, std::uint64_t>& before) const {
  const double minutes = std::chrono::duration<double, std::ratio<60>>(options_.rest).count();
  for (const auto& [process, count] : writes()) {
    const auto earlier = before.find(process);
    const auto more = count - (earlier == before.end() ? 0 : earlier->second);
    if (static_cast<double>(more) > options_.hot_loop * minutes)
      throw Violation(fmt::format(
          "hot loop: {} has written {} times within {} s, though nothing has happened for {} s",
          process, more, options_.rest.count() / 1000, options_.settle.count() / 1000));
  }
}

/// Allows the periodic requests of the watch caches.
void World::Impl::check_calls_at_rest(std::uint64_t calls) const {
  constexpr double kPerMinute = 1500;
  const double minutes = std::chrono::duration<double, std::ratio<60>>(options_.rest).count();
  if (static_cast<double>(calls) <= kPerMinute * minutes * static_cast<double>(servers_.size()))
    return;
  throw Violation(
      fmt::format("hot loop: etcd has received {} requests within {} s, though nothing "
                  "has happened for {} s",
                  calls, options_.rest.count() / 1000, options_.settle.count() / 1000));
}

void World::Impl::enter(std::string_view name, const Process& process) {
  std::string other;
  {
    const std::lock_guard lock(mutex_);
    auto& inside = inside_[std::string(name)];
    const bool dead = static_cast<const Life&>(process).link().ended();
    if (dead) return;
    for (const Process* one : inside) {
      if (one != &process) other = fmt::format("{} (life {})", one->name(), one->life());
    }
    inside.insert(&process);
  }
  if (!other.empty())
    fail(fmt::format("two processes are '{}' at once: {} and {} (life {})", name, other,
                     process.name(), process.life()));
}

void World::Impl::leave(std::string_view name, const Process& process) {
  const std::lock_guard lock(mutex_);
  inside_[std::string(name)].erase(&process);
}

void World::Impl::leave_all(const Process& process) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, inside] : inside_) inside.erase(&process);
}

void World::Impl::fail(std::string what) {
  {
    const std::lock_guard lock(mutex_);
    if (!violation_) violation_ = std::move(what);
  }
  poked_.notify_all();
}

void World::Impl::note(const std::string& process, std::string what) {
  Story::Entry entry;
  entry.time = kernel_.now();
  entry.process = process;
  entry.what = std::move(what);
  entry.is_note = true;
  story_.add(std::move(entry));
}

// ---------------------------------------------------------------------------------------- World

World::World(std::uint64_t seed, WorldOptions options)
    : impl_(std::make_unique<Impl>(seed, options)) {}
World::~World() = default;

std::uint64_t World::seed() const { return impl_->seed(); }
Time World::now() const { return impl_->now(); }
rest::Client& World::admin(unsigned server) { return impl_->admin(server); }
apiserver::Server& World::server(unsigned server) { return impl_->server(server); }
void World::start(std::string name, std::function<void(Process&)> body) {
  impl_->start(std::move(name), std::move(body));
}
void World::crash(std::string_view name, bool for_good) { impl_->crash(name, for_good, "crashes"); }
void World::stop(std::string_view name, milliseconds grace) { impl_->stop(name, grace); }
void World::freeze(std::string_view name, milliseconds duration) { impl_->freeze(name, duration); }
void World::partition(std::string_view name, milliseconds duration) {
  impl_->partition(name, duration);
}
void World::faults(FaultOptions options) { impl_->set_faults(std::move(options)); }
void World::faults(Plan plan) { impl_->faults(plan); }
Plan World::struck() const { return impl_->struck(); }
void World::at(milliseconds time, std::function<void()> function) {
  impl_->at(time, std::move(function));
}
void World::edit(std::string what, std::function<void()> function) {
  impl_->edit(std::move(what), std::move(function));
}
void World::always(std::string what, std::function<bool()> check) {
  impl_->always(std::move(what), std::move(check));
}
void World::eventually(std::string what, std::function<bool()> check) {
  impl_->eventually(std::move(what), std::move(check));
}
void World::enter(std::string_view name, const Process& process) { impl_->enter(name, process); }
void World::leave(std::string_view name, const Process& process) { impl_->leave(name, process); }
void World::fail(std::string what) { impl_->fail(std::move(what)); }
void World::run(milliseconds duration) { impl_->run(duration); }
void World::sleep(milliseconds duration) { impl_->sleep_until(impl_->now() + duration); }
std::map<std::string, std::string> World::snapshot() { return snapshot_of(impl_->admin()); }
std::string World::story(std::size_t lines) const { return impl_->story().print(lines); }
std::uint64_t World::digest() const { return impl_->digest(); }
std::uint64_t World::requests() const { return impl_->requests(); }

World::Impl& World::impl() { return *impl_; }

}  // namespace lookout::sim
