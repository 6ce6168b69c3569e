// EtcdModel: an etcd cluster in memory, with faults.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/grpc/carrier.h"
#include "lookout/testing/sim/faults.h"
#include "testing/sim/etcd_data.h"
#include "testing/sim/random.h"

namespace lookout::sim {

namespace grpc = apiserver::grpc;

/// The process name in faults of the model.
inline constexpr const char* kEtcd = "etcd";
/// FaultKind::kRefuse of a call: the exclusive bound of Fault::status.
inline constexpr unsigned kEtcdRefusals = 4;

/// A call of a client of the model.
struct EtcdCall {
  /// Counted from 1 among the client's calls with the same method and key, so that a fault of one call
  /// changes only the numbers of its repetitions.
  std::uint64_t number = 0;
  /// Clients are numbered from 1 in order of appearance. Those that share an event loop count as one.
  unsigned client = 0;
  /// "KV/Txn"
  std::string method;
  /// The key of the request.
  std::string key;
  /// For EtcdEvents: the call's entry in the story.
  std::uint64_t entry = 0;

  /// "client 1, KV/Txn /registry/pods/default/web"
  std::string who() const;
  bool watches() const { return method == "Watch/Watch"; }
  bool writes() const {
    return method == "KV/Put" || method == "KV/Txn" || method == "KV/DeleteRange" ||
           method == "KV/Compact" || method == "Lease/LeaseGrant" || method == "Lease/LeaseRevoke";
  }
};

/// Draws the faults of calls and records the calls in the story. Called on the clients' threads, without
/// a lock.
class EtcdEvents {
 public:
  virtual ~EtcdEvents() = default;
  /// A call begins. Returns its fault, if any.
  virtual std::optional<Fault> on_call(EtcdCall& call) = 0;
  /// A call has ended: "ok", a status, or the reason for a missing response.
  virtual void on_answer(const EtcdCall& call, const std::string& how) = 0;
};

struct EtcdModelOptions {
  EtcdData::Options data = {.version = "3.5.16"};
  int members = 1;
  std::uint64_t seed = 1;
  /// The latency of a message in one direction.
  std::chrono::microseconds shortest_latency{0};
  std::chrono::microseconds longest_latency{0};
  /// --experimental-watch-progress-notify-interval
  std::chrono::milliseconds progress_interval{std::chrono::minutes(10)};
  /// Longer watch responses are sent in fragments.
  std::size_t max_answer_bytes = 2048u << 10;
  /// If set, requests need a token of this user.
  std::string username = {};
  std::string password = {};
};

/// A cluster of etcds for clients with this EtcdOptions::network. It has no sockets: gRPC messages are
/// passed in memory. Watches and serializable reads of a member do not show entries that the member has
/// not applied yet; other requests to the member wait for them.
///
/// A connection breaks, is refused, or stays silent; a silent one ends as in grpc::Connection: when a
/// ping is not answered, or when no SETTINGS frame arrives within the connect timeout.
///
/// Keys, revisions, compaction, leases, watches and error messages are etcd's. Not implemented: sorted
/// ranges, nested transactions, watch filters, roles. Requests with these get wrong responses instead of
/// errors; Lookout sends none.
///
/// Thread-safe. Clients keep it alive.
class EtcdModel : public grpc::CarrierFactory, public std::enable_shared_from_this<EtcdModel> {
 public:
  using Clock = std::chrono::steady_clock;

  /// `events` may be null; otherwise it must outlive all calls.
  static std::shared_ptr<EtcdModel> make(EtcdModelOptions options, EtcdEvents* events = nullptr);
  ~EtcdModel() override;
  EtcdModel(const EtcdModel&) = delete;
  EtcdModel& operator=(const EtcdModel&) = delete;

  /// "http://etcd-0:2379" ...
  std::vector<std::string> endpoints() const;
  std::shared_ptr<grpc::Carrier> create(boost::asio::io_context& context,
                                        const grpc::Server& server) override;

  // --- faults; they take effect immediately

  /// Throws EtcdError for an invalid revision.
  void compact(Revision revision);
  /// Breaks all connections to a member and accepts none for the time `down`. Keys and leases stay.
  void restart(int member, std::chrono::milliseconds down);
  /// There is no leader for this time: watches that require a leader end, other calls wait or time out.
  void lose_leader(std::chrono::milliseconds duration);
  /// A member applies writes with a delay of `by` for this time.
  void delay(int member, std::chrono::milliseconds by, std::chrono::milliseconds duration);
  /// A member does not run for this time: it accepts connections but sends nothing. With `for_good`, its
  /// existing connections stay silent forever, as if its machine was gone.
  void freeze(int member, std::chrono::milliseconds duration, bool for_good);
  /// A member cannot reach the others for this time: it has no leader and receives no new entries.
  void cut_off(int member, std::chrono::milliseconds duration);
  /// Ends all faults.
  void heal();

  // --- state

  /// The newest revision of the cluster; single members may lag.
  Revision revision() const;
  Revision compacted() const;
  /// The pairs with this prefix, by key.
  std::map<std::string, etcd3::KeyValue> contents(std::string_view prefix) const;
  /// The number of calls so far, not counting progress requests.
  std::uint64_t calls() const;

 private:
  class Line;
  struct Stream;

  EtcdModel(EtcdModelOptions options, EtcdEvents* events);

  /// A write, and the time at which a member applies it.
  struct Entry {
    Clock::time_point at;
    std::function<void(EtcdData&)> apply;
  };
  struct Member {
    Clock::time_point down_until{};
    Clock::time_point frozen_until{};
    Clock::time_point apart_until{};
    Clock::time_point late_until{};
    std::chrono::milliseconds late_by{0};
    std::deque<Entry> behind = {};
    /// The state that the member has applied; null: everything.
    std::unique_ptr<EtcdData> data = nullptr;

    /// The time at which the member applies a write made now.
    Clock::time_point applies_at(Clock::time_point now) const;
    Clock::time_point is_back_at() const {
      return std::max({down_until, frozen_until, apart_until});
    }
  };
  using Lines = std::vector<std::shared_ptr<Line>>;

  /// Runs a request. Throws EtcdError.
  std::string execute(const std::string& method, std::string_view message, int member);
  /// Performs a write; each member applies it in its own time.
  template <class F>
  auto commit(F apply);
  void expire_leases();
  /// The state that a member has applied by now. Requires the mutex.
  const EtcdData& data_of(int member);
  /// The number of writes; and the earliest time at which a member has applied that many.
  std::uint64_t written() const;
  std::optional<Clock::time_point> applied_at(int member, std::uint64_t written);
  std::optional<Clock::time_point> applies_next(int member);
  /// With the mutex locked.
  Clock::time_point no_leader_until() const;
  Lines lines(std::optional<int> member = std::nullopt) const;
  Member& member(int number) { return members_.at(static_cast<std::size_t>(number)); }
  const Member& member(int number) const { return members_.at(static_cast<std::size_t>(number)); }
  void notify_all();
  std::uint64_t member_id(int member) const { return 0xa0u + static_cast<std::uint64_t>(member); }
  std::string status(int member);
  std::string member_list(int member) const;
  std::string authenticate(std::string_view message, int member) const;
  void check_token(const grpc::CallRequest& request, bool watches) const;
  std::chrono::microseconds latency();
  std::uint64_t draw(std::uint64_t below);

  const EtcdModelOptions options_;
  EtcdEvents* const events_;
  const bool tells_progress_;
  mutable std::mutex mutex_;
  EtcdData data_;  // guarded by mutex_, as are all below
  std::uint64_t written_ = 0;
  Random random_;
  std::vector<std::weak_ptr<Line>> lines_;
  std::vector<Member> members_;
  Clock::time_point no_leader_until_{};
  std::uint64_t calls_ = 0;
  std::map<std::string, std::uint64_t> calls_of_;  // EtcdCall::who()
  unsigned clients_ = 0;
};

}  // namespace lookout::sim
