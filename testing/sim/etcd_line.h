// A client's connections to one member of a simulated etcd.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/grpc/carrier.h"
#include "apiserver/storage/etcd3/client.h"
#include "testing/sim/etcd_model.h"

namespace lookout::sim {

/// A watch on a stream.
struct EtcdWatchState {
  EtcdRange range;
  /// The client has all events before this revision.
  Revision next = 0;
  bool previous = false;
  bool notify = false;
  bool fragments = false;
  /// The compacted revision when the watch began.
  Revision compacted = 0;
  /// The client got an event since the last progress notification.
  bool told = false;
};

/// A call of the service Watch.
struct EtcdModel::Stream {
  std::shared_ptr<apiserver::grpc::CallState> call;
  EtcdCall note;
  std::map<std::int64_t, EtcdWatchState> watches = {};
  std::int64_t next_id = 0;
  bool wants_leader = false;
  bool pumping = false;  // soon
  Clock::time_point silent_until{};
};

/// The value of a header (gRPC metadata) of a request; empty if it is absent.
std::string header_of(const apiserver::grpc::CallRequest& request, std::string_view name);

/// A client's connections to one member. Any thread may use member(), client(), is_of() and pump_posted;
/// everything else is called on the strand.
class EtcdModel::Line : public apiserver::grpc::Carrier {
 public:
  Line(std::shared_ptr<EtcdModel> model, boost::asio::io_context& context,
       const apiserver::grpc::Server& server, int member, unsigned client);

  // --- grpc::Carrier

  void begin(std::shared_ptr<apiserver::grpc::CallState> call) override;
  void send(const std::shared_ptr<apiserver::grpc::CallState>& call,
            const std::string& message) override;
  void consumed(const std::shared_ptr<apiserver::grpc::CallState>&, std::size_t) override {}

  void cancel(const std::shared_ptr<apiserver::grpc::CallState>& call) override;
  void close() override;

  // --- for the model

  int member() const { return member_; }
  unsigned client() const { return client_; }
  /// Whether a client with that event loop is the one that has this line.
  bool is_of(const boost::asio::io_context& context) const {
    return !closed_ && context_ == &context;
  }

  void lose_connections() { end_all(Kind::kBroken, "the connection broke"); }

  /// The member does not run for this time. With `for_good`, the connections that it has stay silent for ever.
  void freeze(std::chrono::milliseconds duration, bool for_good);

  /// The member notices when it has not heard of a leader for the time of an election.
  void cut_off(std::chrono::milliseconds duration);
  void lose_leader();
  void heal();

  /// Sends new events to all watches: now, and again when the member has applied more.
  void pump_all();

  std::atomic<bool> pump_posted{false};

 private:
  using Kind = rest::TransportError::Kind;
  using Call = std::shared_ptr<apiserver::grpc::CallState>;
  using StreamPtr = std::shared_ptr<Stream>;
  struct Begun {
    Call call;
    EtcdCall note;
    std::optional<Fault> fault;
  };

  /// Calls f on the strand after that time, unless the line has been closed.
  template <class F>
  void later(std::chrono::microseconds time, F f);
  StreamPtr find(std::uint32_t id) const;
  bool is_down() const;
  bool is_apart() const;
  bool is_frozen() const;
  Clock::time_point no_leader_until() const;
  Revision revision() const;

  /// Calls f on the strand after that time, or as soon as the member runs.
  template <class F>
  void serve(std::chrono::microseconds time, F f);
  /// When a message has come to the member.
  template <class F>
  void arrive(F f);

  // --- connections that say nothing

  void wait_for_connection(Begun call);

  /// The member runs again, unless it was frozen once more.
  void thaw();

  /// The client pings a server that says nothing while calls run, and gives the connection up.
  void watch_silence();
  void open(Call call, EtcdCall note, std::optional<Fault> fault);
  static std::string key_of(const std::string& method, std::string_view message);
  void told(const EtcdCall& note, const std::string& how) const;
  void end_all(Kind kind, const std::string& why);
  void break_off(const Call& call, const EtcdCall& note);

  // --- calls with one answer

  void begin_unary(Call call, EtcdCall note, std::optional<Fault> fault);
  void wait_for_leader(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
                       Clock::time_point since);

  /// Whether the member answers from its own state, without the leader.
  static bool is_local(const EtcdCall& note, const apiserver::grpc::CallState& call);
  static std::chrono::microseconds until_then(Clock::time_point then);

  struct Result {
    std::string message = {};
    std::optional<etcd3::EtcdError> error = {};
  };
  Result execute(const Call& call, const EtcdCall& note);

  /// Reads see at least what had been written when they came; whatever is written is answered when the
  /// member has applied it, too.
  void carry_out(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
                 Clock::time_point since);

  /// Calls done(true) when the member has applied so much; done(false) if that takes too long.
  template <class F>
  void wait_until_applied(std::uint64_t written, Clock::time_point since, F done);
  void reply(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
             Result result);
  void answer(const Call& call, const EtcdCall& note, const std::string& message,
              const std::optional<etcd3::EtcdError>& error);

  /// In pieces, as they would come from a connection.
  void give(apiserver::grpc::CallState& call, const std::string& message);

  // --- watches

  void begin_stream(Call call, EtcdCall note, const std::optional<Fault>& fault);

  /// What a watch has missed is forgotten: most of it, and the watch goes on; or as much as leaves it
  /// a place to go on, and it breaks.
  void expire(const StreamPtr& stream);
  void compact_to(Revision revision) const;
  void end(const StreamPtr& stream, const etcd3::EtcdError& why);
  /// In the middle of something, perhaps.
  void cut(const StreamPtr& stream);
  void break_stream(const StreamPtr& stream);
  bool forget(const StreamPtr& stream) { return streams_.erase(stream->call->stream) > 0; }

  void take(Stream& stream, const std::string& message);
  void begin_watch(Stream& stream, std::string_view create);
  void tell_progress(Stream& stream);

  /// One message: `rest` behind what all have.
  void tell(Stream& stream, std::int64_t id, Revision revision, const Proto& rest);
  bool is_silent(const Stream& stream) const;
  void pump_soon(const StreamPtr& stream);

  /// Tells all watches of a stream what they do not know yet. With `partly`, only some of it.
  void pump(Stream& stream, bool partly);

  /// False if the watch has ended.
  bool pump(Stream& stream, std::int64_t id, EtcdWatchState& watch, bool partly);
  void tell_events(Stream& stream, std::int64_t id, Revision revision, bool fragments,
                   const std::vector<Proto>& events, bool partly);

  // --- time

  /// When leases end, and when watches want to be told how far etcd has come.
  void tick_soon();
  void tick();
  void notify_progress(Stream& stream);

  const std::shared_ptr<EtcdModel> model_;
  const boost::asio::io_context* const context_;  // to be compared only
  const std::chrono::milliseconds connect_timeout_;
  const std::chrono::milliseconds silence_;  // ends a connection
  const int member_;
  const unsigned client_;
  std::optional<boost::asio::steady_timer> ticker_;
  std::optional<Clock::time_point> tick_at_;
  std::optional<Clock::time_point> next_notice_;
  std::atomic<bool> closed_{false};
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, Call> running_;
  std::map<std::uint32_t, StreamPtr> streams_;
  bool pump_later_ = false;
  bool connected_ = false;
  // While the member does not run: calls that wait for a connection, and what it finds then.
  std::vector<Begun> connecting_;
  std::uint64_t attempt_ = 0;
  std::vector<std::function<void()>> held_;
  // The connection leads to a machine that is gone; its calls.
  bool deaf_ = false;
  std::map<std::uint32_t, Call> unheard_;
  bool watching_silence_ = false;
  std::uint64_t heard_ = 0;  // changes when the member is heard of again, or the connection ends
};

}  // namespace lookout::sim
