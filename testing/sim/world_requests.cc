// The requests of a world's processes, and the calls of its servers to etcd.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/apiserver/server.h"
#include "lookout/testing/sim/world.h"
#include "testing/sim/draw.h"
#include "testing/sim/network.h"
#include "testing/sim/random.h"
#include "testing/sim/story.h"
#include "testing/sim/world_impl.h"

namespace lookout::sim {

template <class Request>
std::optional<Fault> World::Impl::fault_of(const Moment& moment, const Request& request) const {
  const auto planned = plan_.find(moment);
  if (planned == plan_.end()) return drawing_ ? draw(faults_, seed_, request) : std::nullopt;
  return fits(planned->second.kind, request) ? std::optional(planned->second) : std::nullopt;
}

void World::Impl::on_request(RequestNote& request) {
  if (request.process.empty()) return tell_user(request);  // a request of the test itself
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
      // With etcd, the caches of other servers lag anyway.
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

}  // namespace lookout::sim
