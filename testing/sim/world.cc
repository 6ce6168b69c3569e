#include "lookout/testing/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "testing/sim/kernel.h"
#include "testing/sim/network.h"
#include "testing/sim/noted_storage.h"
#include "testing/sim/random.h"
#include "testing/sim/snapshot.h"
#include "testing/sim/story.h"
#include "testing/sim/world_impl.h"

namespace lookout::sim {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// The time limit for a process to end after its stop was requested.
constexpr std::chrono::minutes kPatience{10};

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
  // Each server starts with a different member.
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
    throw InvalidArgument(fmt::format("process '{}' already exists", name));
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
