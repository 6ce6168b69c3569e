// An etcd in memory, with everything that goes wrong with one.
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

/// Whom faults of the model strike.
inline constexpr const char* kEtcd = "etcd";
/// FaultKind::kRefuse of a call: Fault::status is less.
inline constexpr unsigned kEtcdRefusals = 4;

/// A call that a client of the model makes.
struct EtcdCall {
  /// Of the calls that the same client makes with that method for that key, from 1: so what strikes
  /// one call moves only those that repeat it.
  std::uint64_t number = 0;
  /// Clients are counted from 1 as they appear. Those that share an event loop count as one.
  unsigned client = 0;
  /// "KV/Txn"
  std::string method;
  /// The key that it is about.
  std::string key;
  /// For EtcdEvents: where the call is in their story.
  std::uint64_t entry = 0;

  /// "client 1, KV/Txn /registry/pods/default/web"
  std::string who() const;
  bool watches() const { return method == "Watch/Watch"; }
  bool writes() const {
    return method == "KV/Put" || method == "KV/Txn" || method == "KV/DeleteRange" ||
           method == "KV/Compact" || method == "Lease/LeaseGrant" || method == "Lease/LeaseRevoke";
  }
};

/// Who draws the faults of calls, and tells their story. Called on the clients' threads, with no lock
/// held.
class EtcdEvents {
 public:
  virtual ~EtcdEvents() = default;
  /// A call begins. Returns what strikes it.
  virtual std::optional<Fault> on_call(EtcdCall& call) = 0;
  /// It has ended: "ok", a status, or why there is no answer.
  virtual void on_answer(const EtcdCall& call, const std::string& how) = 0;
};

struct EtcdModelOptions {
  EtcdData::Options data = {.version = "3.5.16"};
  int members = 1;
  std::uint64_t seed = 1;
  /// Of one way of a message.
  std::chrono::microseconds shortest_latency{0};
  std::chrono::microseconds longest_latency{0};
  /// --experimental-watch-progress-notify-interval
  std::chrono::milliseconds progress_interval{std::chrono::minutes(10)};
  /// An answer of a watch that is longer is sent in fragments.
  std::size_t max_answer_bytes = 2048u << 10;
  /// With a name, requests need a token of this user.
  std::string username = {};
  std::string password = {};
};

/// A cluster of etcds that speaks to the clients whose EtcdOptions::network it is, without sockets:
/// messages of gRPC are handed over in memory. What a member has not applied yet, its watches and its
/// serializable reads do not show, and other requests to it wait for that.
///
/// A connection breaks, is refused, or says nothing; then it ends as grpc::Connection would end it: when
/// no ping is answered, or when no settings have come within the limit for connecting.
///
/// Keys, revisions, compaction, leases and watches are etcd's, and so are the words of its refusals.
/// What it leaves out: sorted ranges, nested transactions, filters of watches, roles. Its answers to
/// requests with those are wrong, not refused: Lookout sends none.
///
/// Thread-safe. Clients keep it alive.
class EtcdModel : public apiserver::grpc::CarrierFactory,
                  public std::enable_shared_from_this<EtcdModel> {
 public:
  using Clock = std::chrono::steady_clock;

  /// `events` may be null, and otherwise outlives all calls.
  static std::shared_ptr<EtcdModel> make(EtcdModelOptions options, EtcdEvents* events = nullptr);
  ~EtcdModel() override;
  EtcdModel(const EtcdModel&) = delete;
  EtcdModel& operator=(const EtcdModel&) = delete;

  /// "http://etcd-0:2379" ...
  std::vector<std::string> endpoints() const;
  std::shared_ptr<apiserver::grpc::Carrier> create(boost::asio::io_context& context,
                                                   const apiserver::grpc::Server& server) override;

  // --- what happens to it; takes effect at once

  /// Throws EtcdError if it cannot be.
  void compact(Revision revision);
  /// All connections to a member break, and for so long it takes no other. Keys and leases stay.
  void restart(int member, std::chrono::milliseconds down);
  /// For so long there is no leader: watches that want one end, everything else waits, or fails in
  /// the end.
  void lose_leader(std::chrono::milliseconds duration);
  /// For so long a member applies what is written `by` later than it is written.
  void delay(int member, std::chrono::milliseconds by, std::chrono::milliseconds duration);
  /// For so long a member does not run: it accepts connections, and says nothing on any. With
  /// `for_good`, those that it has now never say anything again: its machine has gone.
  void freeze(int member, std::chrono::milliseconds duration, bool for_good);
  /// For so long a member does not reach the others: it has no leader, and nothing new.
  void cut_off(int member, std::chrono::milliseconds duration);
  /// From now on, there are no faults.
  void heal();

  // --- what there is

  /// As far as the cluster has come, whichever members have.
  Revision revision() const;
  Revision compacted() const;
  /// The pairs with this prefix, by key.
  std::map<std::string, etcd3::KeyValue> contents(std::string_view prefix) const;
  /// Calls so far, but for requests for progress.
  std::uint64_t calls() const;

 private:
  class Line;
  struct Stream;

  EtcdModel(EtcdModelOptions options, EtcdEvents* events);

  /// Something that was written, and when a member applies it.
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
    /// What it has applied; null: everything.
    std::unique_ptr<EtcdData> data = nullptr;

    /// When it applies what is written now.
    Clock::time_point applies_at(Clock::time_point now) const;
    Clock::time_point is_back_at() const {
      return std::max({down_until, frozen_until, apart_until});
    }
  };
  using Lines = std::vector<std::shared_ptr<Line>>;

  /// Runs a request. Throws EtcdError.
  std::string execute(const std::string& method, std::string_view message, int member);
  /// Writes: what `apply` does, each member does in its time.
  template <class F>
  auto commit(F apply);
  void expire_leases();
  /// What a member has applied by now. With the mutex locked.
  const EtcdData& data_of(int member);
  /// How much has been written; when a member has applied so much: now, or not before then.
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
  void check_token(const apiserver::grpc::CallRequest& request, bool watches) const;
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
