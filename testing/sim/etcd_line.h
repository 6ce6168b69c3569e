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
  /// The client has received an event since the last progress notification.
  bool told = false;
};

/// A call of the service Watch.
struct EtcdModel::Stream {
  std::shared_ptr<grpc::CallState> call;
  EtcdCall note;
  std::map<std::int64_t, EtcdWatchState> watches = {};
  std::int64_t next_id = 0;
  bool wants_leader = false;
  bool pumping = false;  // soon
  Clock::time_point silent_until{};
};

/// The value of a header (gRPC metadata) of a request; empty if it is absent.
std::string header_of(const grpc::CallRequest& request, std::string_view name);

/// A client's connections to one member. Any thread may use member(), client(), is_of() and pump_posted;
/// everything else is called on the strand.
class EtcdModel::Line : public grpc::Carrier {
 public:
  Line(std::shared_ptr<EtcdModel> model, boost::asio::io_context& context,
       const grpc::Server& server, int member, unsigned client);

  // --- grpc::Carrier

  void begin(std::shared_ptr<grpc::CallState> call) override;
  void send(const std::shared_ptr<grpc::CallState>& call, const std::string& message) override;
  void consumed(const std::shared_ptr<grpc::CallState>&, std::size_t) override {}

  void cancel(const std::shared_ptr<grpc::CallState>& call) override;
  void close() override;

  // --- for the model

  int member() const { return member_; }
  unsigned client() const { return client_; }
  /// True if this line belongs to the client with that event loop.
  bool is_of(const boost::asio::io_context& context) const {
    return !closed_ && context_ == &context;
  }

  void lose_connections() { end_all(Kind::kBroken, "the connection broke"); }

  /// The member does not run for this time. With `for_good`, its existing connections stay silent forever.
  void freeze(std::chrono::milliseconds duration, bool for_good);

  /// Cuts the member off; it notices after an election timeout without a leader.
  void cut_off(std::chrono::milliseconds duration);
  void lose_leader();
  void heal();

  /// Sends new events to all watches: now, and again when the member has applied more.
  void pump_all();

  std::atomic<bool> pump_posted{false};

 private:
  using Kind = rest::TransportError::Kind;
  using Call = std::shared_ptr<grpc::CallState>;
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
  /// The time at which a message sent now reaches the member.
  template <class F>
  void arrive(F f);

  // --- silent connections

  void wait_for_connection(Begun call);

  /// Resumes the member, unless it was frozen again.
  void thaw();

  /// The client's keep-alive: closes the connection if the server stays silent while calls run.
  void watch_silence();
  void open(Call call, EtcdCall note, std::optional<Fault> fault);
  static std::string key_of(const std::string& method, std::string_view message);
  void told(const EtcdCall& note, const std::string& how) const;
  void end_all(Kind kind, const std::string& why);
  void break_off(const Call& call, const EtcdCall& note);

  // --- unary calls

  void begin_unary(Call call, EtcdCall note, std::optional<Fault> fault);
  void wait_for_leader(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
                       Clock::time_point since);

  /// True if the member responds from its own state, without the leader.
  static bool is_local(const EtcdCall& note, const grpc::CallState& call);
  static std::chrono::microseconds until_then(Clock::time_point then);

  struct Result {
    std::string message = {};
    std::optional<etcd3::EtcdError> error = {};
  };
  Result execute(const Call& call, const EtcdCall& note);

  /// Executes a call. A read sees all writes before its arrival; a write completes when the member has
  /// applied it, too.
  void carry_out(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
                 Clock::time_point since);

  /// Calls done(true) when the member has applied that many entries, or done(false) after a timeout.
  template <class F>
  void wait_until_applied(std::uint64_t written, Clock::time_point since, F done);
  void reply(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
             Result result);
  void answer(const Call& call, const EtcdCall& note, const std::string& message,
              const std::optional<etcd3::EtcdError>& error);

  /// Delivers a message in pieces, as from a connection.
  void give(grpc::CallState& call, const std::string& message);

  // --- watches

  void begin_stream(Call call, EtcdCall note, const std::optional<Fault>& fault);

  /// Compacts the history that a watch has missed: either most of it, and the watch continues; or up to
  /// the point where the watch can still resume, and the watch breaks.
  void expire(const StreamPtr& stream);
  void compact_to(Revision revision) const;
  void end(const StreamPtr& stream, const etcd3::EtcdError& why);
  /// Breaks a stream, possibly in the middle of a message.
  void cut(const StreamPtr& stream);
  void break_stream(const StreamPtr& stream);
  bool forget(const StreamPtr& stream) { return streams_.erase(stream->call->stream) > 0; }

  void take(Stream& stream, const std::string& message);
  void begin_watch(Stream& stream, std::string_view create);
  void tell_progress(Stream& stream);

  /// Sends one message: the common fields, followed by `rest`.
  void tell(Stream& stream, std::int64_t id, Revision revision, const Proto& rest);
  bool is_silent(const Stream& stream) const;
  void pump_soon(const StreamPtr& stream);

  /// Sends pending events to all watches of a stream. With `partly`, only some of them.
  void pump(Stream& stream, bool partly);

  /// False if the watch has ended.
  bool pump(Stream& stream, std::int64_t id, EtcdWatchState& watch, bool partly);
  void tell_events(Stream& stream, std::int64_t id, Revision revision, bool fragments,
                   const std::vector<Proto>& events, bool partly);

  // --- time

  /// Schedules the expiry of leases and the progress notifications of watches.
  void tick_soon();
  void tick();
  void notify_progress(Stream& stream);

  const std::shared_ptr<EtcdModel> model_;
  const boost::asio::io_context* const context_;  // for comparison only
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
  // While the member is frozen: calls that wait for a connection, and requests that it handles when
  // it resumes.
  std::vector<Begun> connecting_;
  std::uint64_t attempt_ = 0;
  std::vector<std::function<void()>> held_;
  // True if the connection leads to a machine that has failed permanently; unheard_ holds the calls
  // on it.
  bool deaf_ = false;
  std::map<std::uint32_t, Call> unheard_;
  bool watching_silence_ = false;
  std::uint64_t heard_ = 0;  // changes when the member responds again or the connection ends
};

}  // namespace lookout::sim
