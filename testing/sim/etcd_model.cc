#include "testing/sim/etcd_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apiserver/storage/etcd3/client.h"
#include "testing/sim/etcd_line.h"

namespace lookout::sim {

namespace asio = boost::asio;
using etcd3::EtcdError;
using std::chrono::milliseconds;

namespace {

constexpr const char* kToken = "simple.token";

}  // namespace

std::string EtcdCall::who() const {
  return fmt::format("client {}, {}{}{}", client, method, key.empty() ? "" : " ", key);
}

std::shared_ptr<EtcdModel> EtcdModel::make(EtcdModelOptions options, EtcdEvents* events) {
  return std::shared_ptr<EtcdModel>(new EtcdModel(std::move(options), events));
}

EtcdModel::EtcdModel(EtcdModelOptions options, EtcdEvents* events)
    : options_(std::move(options)),
      events_(events),
      tells_progress_(etcd3::has_sound_progress(options_.data.version)),
      data_(options_.data),
      random_(options_.seed),
      members_(static_cast<std::size_t>(options_.members)) {}

EtcdModel::~EtcdModel() = default;

std::vector<std::string> EtcdModel::endpoints() const {
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(options_.members));
  for (int i = 0; i < options_.members; ++i) out.push_back(fmt::format("http://etcd-{}:2379", i));
  return out;
}

std::shared_ptr<grpc::Carrier> EtcdModel::create(asio::io_context& context,
                                                 const grpc::Server& server) {
  const auto all = endpoints();
  const auto found = std::find(all.begin(), all.end(), server.url);
  if (found == all.end())
    throw InvalidArgument(fmt::format("{} is not a member of the simulated etcd", server.url));
  const std::lock_guard lock(mutex_);
  std::erase_if(lines_, [](const auto& weak) { return weak.expired(); });
  unsigned client = 0;
  for (const auto& weak : lines_) {
    const auto other = weak.lock();
    if (other != nullptr && other->is_of(context)) client = other->client();
  }
  if (client == 0) client = ++clients_;
  auto line = std::make_shared<Line>(shared_from_this(), context, server,
                                     static_cast<int>(found - all.begin()), client);
  lines_.push_back(line);
  return line;
}

EtcdModel::Clock::time_point EtcdModel::Member::applies_at(Clock::time_point now) const {
  const auto late = now < late_until ? std::min(now + late_by, late_until) : now;
  const auto out = std::max({now, frozen_until, apart_until, late});
  return behind.empty() ? out : std::max(out, behind.back().at);
}

EtcdModel::Lines EtcdModel::lines(std::optional<int> member) const {
  const std::lock_guard lock(mutex_);
  Lines out;
  for (const auto& weak : lines_) {
    auto line = weak.lock();
    if (line != nullptr && (!member || line->member() == *member)) out.push_back(std::move(line));
  }
  return out;
}

void EtcdModel::notify_all() {
  for (const auto& line : lines()) {
    if (line->pump_posted.exchange(true)) continue;
    line->post([](grpc::Carrier& carrier) {
      auto& self = static_cast<Line&>(carrier);
      self.pump_posted = false;
      self.pump_all();
    });
  }
}

const EtcdData& EtcdModel::data_of(int number) {
  Member& one = member(number);
  if (one.data == nullptr) return data_;
  const auto now = Clock::now();
  if (now < one.frozen_until || now < one.apart_until) return *one.data;
  while (!one.behind.empty() && one.behind.front().at <= now) {
    one.behind.front().apply(*one.data);
    one.behind.pop_front();
  }
  if (one.behind.empty()) one.data.reset();
  return one.data != nullptr ? *one.data : data_;
}

template <class F>
auto EtcdModel::commit(F apply) {
  const auto now = Clock::now();
  for (int i = 0; i < options_.members; ++i) {
    data_of(i);
    Member& one = member(i);
    const auto at = one.applies_at(now);
    if (at <= now) continue;
    if (one.data == nullptr) one.data = std::make_unique<EtcdData>(data_);
    one.behind.push_back({at, [apply](EtcdData& data) {
                            try {
                              apply(data);
                            } catch (const EtcdError&) {
                              // The leader rejects this request, too.
                            }
                          }});
  }
  ++written_;
  return apply(data_);
}

std::uint64_t EtcdModel::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

std::optional<EtcdModel::Clock::time_point> EtcdModel::applied_at(int number,
                                                                  std::uint64_t written) {
  const std::lock_guard lock(mutex_);
  data_of(number);
  const Member& one = member(number);
  const std::uint64_t applied = written_ - one.behind.size();
  if (applied >= written) return std::nullopt;
  return std::max({one.behind[written - applied - 1].at, one.frozen_until, one.apart_until});
}

std::optional<EtcdModel::Clock::time_point> EtcdModel::applies_next(int number) {
  const std::lock_guard lock(mutex_);
  data_of(number);
  const Member& one = member(number);
  if (one.behind.empty()) return std::nullopt;
  return std::max({one.behind.front().at, one.frozen_until, one.apart_until});
}

/// A leader needs a majority of the members.
EtcdModel::Clock::time_point EtcdModel::no_leader_until() const {
  std::vector<Clock::time_point> back;
  back.reserve(members_.size());
  for (const Member& one : members_) back.push_back(one.is_back_at());
  std::sort(back.begin(), back.end());
  return std::max(no_leader_until_, back[back.size() / 2]);
}

void EtcdModel::expire_leases() {
  const auto now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (now < no_leader_until()) return;
    const std::vector<std::int64_t> over = data_.expired(now);
    if (over.empty()) return;
    commit([over](EtcdData& data) {
      for (const std::int64_t id : over) data.revoke(id);
    });
  }
  notify_all();
}

std::string EtcdModel::execute(const std::string& method, std::string_view message, int member) {
  const std::uint64_t id = member_id(member);
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    const Revision before = data_.revision();
    const auto now = Clock::now();
    const auto write = [&](auto function) {
      return commit([function, id, text = std::string(message)](EtcdData& data) {
        return function(data, text, id);
      });
    };
    if (method == "KV/Range") return data_of(member).range(message, id);
    if (method == "Lease/LeaseKeepAlive") return data_.keep_alive(message, id, now);
    if (method == "Maintenance/Status") return status(member);
    if (method == "Cluster/MemberList") return member_list(member);
    if (method == "Auth/Authenticate") return authenticate(message, member);
    if (method == "KV/Put") {
      out = write([](EtcdData& data, const auto& text, auto who) { return data.put(text, who); });
    } else if (method == "KV/DeleteRange") {
      out =
          write([](EtcdData& data, const auto& text, auto who) { return data.remove(text, who); });
    } else if (method == "KV/Txn") {
      out = write([](EtcdData& data, const auto& text, auto who) { return data.txn(text, who); });
    } else if (method == "KV/Compact") {
      return write(
          [](EtcdData& data, const auto& text, auto who) { return data.compact(text, who); });
    } else if (method == "Lease/LeaseGrant") {
      return write(
          [now](EtcdData& data, const auto& text, auto who) { return data.grant(text, who, now); });
    } else if (method == "Lease/LeaseRevoke") {
      out =
          write([](EtcdData& data, const auto& text, auto who) { return data.revoke(text, who); });
    } else {
      constexpr int kUnimplemented = 12;
      throw EtcdError(kUnimplemented, "unknown service etcdserverpb." + method);
    }
    if (data_.revision() == before) return out;
  }
  notify_all();
  return out;
}

/// Requires the mutex, like the functions below.
std::string EtcdModel::status(int member) {
  Proto out;
  out.message(1, data_.header(data_of(member).revision(), member_id(member)));
  out.bytes(2, options_.data.version).number(3, 20480).number(4, member_id(0));
  return out.text();
}

std::string EtcdModel::member_list(int member) const {
  Proto out;
  out.message(1, data_.header(data_.revision(), member_id(member)));
  const auto urls = endpoints();
  for (int i = 0; i < options_.members; ++i) {
    Proto one;
    one.number(1, member_id(i)).bytes(2, fmt::format("etcd-{}", i));
    one.bytes(3, fmt::format("http://etcd-{}:2380", i));
    out.message(2, one.bytes(4, urls[static_cast<std::size_t>(i)]));
  }
  return out.text();
}

std::string EtcdModel::authenticate(std::string_view message, int member) const {
  if (options_.username.empty()) {
    throw EtcdError(EtcdError::kFailedPrecondition, "etcdserver: authentication is not enabled");
  }
  if (bytes_in(message, 1) != options_.username || bytes_in(message, 2) != options_.password) {
    throw EtcdError(EtcdError::kInvalidArgument,
                    "etcdserver: authentication failed, invalid user ID or password");
  }
  Proto out;
  out.message(1, data_.header(data_.revision(), member_id(member)));
  return out.bytes(2, kToken).text();
}

void EtcdModel::check_token(const grpc::CallRequest& request, bool watches) const {
  if (options_.username.empty() || request.path.ends_with("/Authenticate")) return;
  const std::string token = header_of(request, "token");
  if (token == kToken) return;
  if (token.empty() && !watches)
    throw EtcdError(EtcdError::kInvalidArgument, "etcdserver: user name is empty");
  throw EtcdError(watches ? EtcdError::kPermissionDenied : EtcdError::kUnauthenticated,
                  watches ? "etcdserver: permission denied" : "etcdserver: invalid auth token");
}

std::chrono::microseconds EtcdModel::latency() {
  const std::lock_guard lock(mutex_);
  return std::chrono::microseconds(
      random_.between(options_.shortest_latency.count(), options_.longest_latency.count()));
}

std::uint64_t EtcdModel::draw(std::uint64_t below) {
  const std::lock_guard lock(mutex_);
  return random_.below(below);
}

void EtcdModel::compact(Revision revision) {
  const std::lock_guard lock(mutex_);
  commit([revision](EtcdData& data) { data.compact(revision); });
}

void EtcdModel::restart(int number, milliseconds down) {
  {
    const std::lock_guard lock(mutex_);
    member(number).down_until = Clock::now() + down;
    data_.renew_leases(Clock::now() + down);
  }
  for (const auto& line : lines(number)) {
    line->post([](grpc::Carrier& carrier) { static_cast<Line&>(carrier).lose_connections(); });
  }
}

void EtcdModel::lose_leader(milliseconds duration) {
  {
    const std::lock_guard lock(mutex_);
    no_leader_until_ = Clock::now() + duration;
    data_.renew_leases(no_leader_until_);
  }
  for (const auto& line : lines()) {
    line->post([](grpc::Carrier& carrier) { static_cast<Line&>(carrier).lose_leader(); });
  }
}

void EtcdModel::delay(int number, milliseconds by, milliseconds duration) {
  const std::lock_guard lock(mutex_);
  Member& one = member(number);
  one.late_by = by;
  one.late_until = std::max(one.late_until, Clock::now() + duration);
}

void EtcdModel::freeze(int number, milliseconds duration, bool for_good) {
  {
    const std::lock_guard lock(mutex_);
    auto& until = member(number).frozen_until;
    until = std::max(until, Clock::now() + duration);
  }
  for (const auto& line : lines(number)) {
    line->post([for_good, duration](grpc::Carrier& carrier) {
      static_cast<Line&>(carrier).freeze(duration, for_good);
    });
  }
}

void EtcdModel::cut_off(int number, milliseconds duration) {
  {
    const std::lock_guard lock(mutex_);
    auto& until = member(number).apart_until;
    until = std::max(until, Clock::now() + duration);
  }
  for (const auto& line : lines(number)) {
    line->post(
        [duration](grpc::Carrier& carrier) { static_cast<Line&>(carrier).cut_off(duration); });
  }
}

void EtcdModel::heal() {
  {
    const std::lock_guard lock(mutex_);
    for (Member& one : members_) {
      for (const Entry& entry : one.behind) entry.apply(*one.data);
      one = {};
    }
    no_leader_until_ = {};
  }
  for (const auto& line : lines()) {
    line->post([](grpc::Carrier& carrier) { static_cast<Line&>(carrier).heal(); });
  }
}

Revision EtcdModel::revision() const {
  const std::lock_guard lock(mutex_);
  return data_.revision();
}

Revision EtcdModel::compacted() const {
  const std::lock_guard lock(mutex_);
  return data_.compacted();
}

std::map<std::string, etcd3::KeyValue> EtcdModel::contents(std::string_view prefix) const {
  const std::lock_guard lock(mutex_);
  return data_.contents(prefix);
}

std::uint64_t EtcdModel::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

}  // namespace lookout::sim
