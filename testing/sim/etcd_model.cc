#include "testing/sim/etcd_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "apiserver/storage/etcd3/client.h"

namespace lookout::sim {

namespace asio = boost::asio;
namespace grpc = apiserver::grpc;
using etcd3::EtcdError;
using rest::TransportError;
using Kind = TransportError::Kind;
using std::chrono::milliseconds;

namespace {

/// etcd's request timeout: 5 s, and twice that of an election.
constexpr milliseconds kRequestTimeout{7000};
constexpr std::string_view kPrefix = "/etcdserverpb.";
constexpr const char* kNoLeader = "etcdserver: no leader";
constexpr const char* kTimedOut = "etcdserver: request timed out";
constexpr const char* kToken = "simple.token";

namespace watch_field {
constexpr std::uint64_t kCreate = 1, kCancel = 2, kProgress = 3;  // what is asked
constexpr std::uint64_t kKey = 1, kEnd = 2, kStart = 3, kNotify = 4, kPrevious = 6, kId = 7,
                        kFragment = 8;
}  // namespace watch_field

/// What a member says that cannot do what it is asked for at the moment.
EtcdError refusal(int which) {
  switch (which) {
    case 0:
      return {EtcdError::kUnavailable, kNoLeader};
    case 1:
      return {EtcdError::kUnavailable, "etcdserver: leader changed"};
    case 2:
      return {EtcdError::kUnavailable, kTimedOut};
    default:
      return {EtcdError::kResourceExhausted, "etcdserver: too many requests"};
  }
}

std::string header_of(const grpc::CallRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.metadata) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace

std::string EtcdCall::who() const {
  return fmt::format("client {}, {}{}{}", client, method, key.empty() ? "" : " ", key);
}

/// A watch on a stream.
struct EtcdWatchState {
  EtcdRange range;
  /// Everything before it has been told.
  Revision next = 0;
  bool previous = false;
  bool notify = false;
  bool fragments = false;
  /// What had been compacted when it began.
  Revision compacted = 0;
  /// Something was told since the last notification of progress.
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

/// A client's connections to one member.
class EtcdModel::Line : public grpc::Carrier {
 public:
  Line(std::shared_ptr<EtcdModel> model, asio::io_context& context, const grpc::Server& server,
       int member, unsigned client)
      : Carrier(context),
        model_(std::move(model)),
        context_(&context),
        connect_timeout_(server.connect_timeout),
        silence_(server.ping_after + server.ping_timeout),
        member_(member),
        client_(client),
        ticker_(std::in_place, strand()) {}

  // --- grpc::Carrier

  void begin(std::shared_ptr<grpc::CallState> call) override {
    if (call->is_cancelled()) return;
    if (closed_) return call->fail(Kind::kCancelled, "the client was closed");
    EtcdCall note;
    note.client = client_;
    note.method = call->request.path;
    if (note.method.starts_with(kPrefix)) note.method.erase(0, kPrefix.size());
    note.key = key_of(note.method, call->request.message);
    {
      const std::lock_guard lock(model_->mutex_);
      ++model_->calls_;
      note.number = ++model_->calls_of_[note.who()];
    }
    std::optional<Fault> fault;
    if (model_->events_ != nullptr) fault = model_->events_->on_call(note);
    if (is_down()) {
      told(note, "connection refused");
      return call->fail(Kind::kRefused, "connection refused");
    }
    if (!connected_ && is_frozen()) return wait_for_connection({call, note, fault});
    connected_ = true;
    open(std::move(call), std::move(note), std::move(fault));
  }

  void send(const std::shared_ptr<grpc::CallState>& call, const std::string& message) override {
    const std::uint32_t id = call->stream;
    arrive([this, id, message] {
      if (const StreamPtr stream = find(id)) take(*stream, message);
    });
  }

  void consumed(const std::shared_ptr<grpc::CallState>&, std::size_t) override {}

  void cancel(const std::shared_ptr<grpc::CallState>& call) override {
    std::erase_if(connecting_, [&](const Begun& begun) { return begun.call == call; });
    running_.erase(call->stream);
    streams_.erase(call->stream);
    unheard_.erase(call->stream);
  }

  void close() override {
    closed_ = true;
    // It belongs to the loop, which may go before the last one who has a call.
    ticker_.reset();
    held_.clear();
    end_all(Kind::kCancelled, "the client was closed");
  }

  // --- for the model; on the strand

  int member() const { return member_; }
  unsigned client() const { return client_; }
  /// Whether a client with that event loop is the one that has this line.
  bool is_of(const asio::io_context& context) const { return !closed_ && context_ == &context; }

  void lose_connections() { end_all(Kind::kBroken, "the connection broke"); }

  /// The member does not run for so long. With `for_good`, what there is will never be heard of.
  void freeze(milliseconds duration, bool for_good) {
    if (for_good && connected_) {
      deaf_ = true;
      for (auto& [id, call] : std::exchange(running_, {})) unheard_.emplace(id, std::move(call));
      for (auto& [id, stream] : std::exchange(streams_, {})) unheard_.emplace(id, stream->call);
      held_.clear();
    }
    watch_silence();
    later(duration, [this] { thaw(); });
  }

  /// The member notices when it has not heard of a leader for the time of an election.
  void cut_off(milliseconds duration) {
    const milliseconds election(1000 + model_->draw(1000));
    serve(election, [this] {
      if (no_leader_until() > Clock::now()) lose_leader();
    });
    serve(duration, [this] { pump_all(); });
  }

  void lose_leader() {
    const auto all = streams_;
    for (const auto& [id, stream] : all) {
      if (stream->wants_leader) end(stream, EtcdError(EtcdError::kUnavailable, kNoLeader));
    }
  }

  void heal() {
    for (auto& [id, stream] : streams_) stream->silent_until = {};
    thaw();
    pump_all();
  }

  /// Something may be told: now, and when the member has applied more.
  void pump_all() {
    for (auto& [id, stream] : streams_) pump_soon(stream);
    const auto then = model_->applies_next(member_);
    if (!then || streams_.empty() || std::exchange(pump_later_, true)) return;
    serve(until_then(*then), [this] {
      pump_later_ = false;
      pump_all();
    });
  }

  std::atomic<bool> pump_posted{false};

 private:
  using Call = std::shared_ptr<grpc::CallState>;
  using StreamPtr = std::shared_ptr<Stream>;
  struct Begun {
    Call call;
    EtcdCall note;
    std::optional<Fault> fault;
  };

  /// Calls f on the strand after that time, unless the line has been closed.
  template <class F>
  void later(std::chrono::microseconds time, F f) {
    if (time.count() == 0) {
      post([f = std::move(f)](Carrier& line) mutable {
        if (!static_cast<Line&>(line).closed_) f();
      });
      return;
    }
    const auto timer = std::make_shared<asio::steady_timer>(strand(), time);
    timer->async_wait(
        [timer, weak = weak_from_this(), f = std::move(f)](const auto& error) mutable {
          const auto self = weak.lock();
          if (!error && self != nullptr && !static_cast<Line&>(*self).closed_) f();
        });
  }

  StreamPtr find(std::uint32_t id) const {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second;
  }

  bool is_down() const {
    const std::lock_guard lock(model_->mutex_);
    return Clock::now() < model_->member(member_).down_until;
  }
  bool is_apart() const {
    const std::lock_guard lock(model_->mutex_);
    return Clock::now() < model_->member(member_).apart_until;
  }
  bool is_frozen() const {
    const std::lock_guard lock(model_->mutex_);
    return Clock::now() < model_->member(member_).frozen_until;
  }
  Clock::time_point no_leader_until() const {
    const std::lock_guard lock(model_->mutex_);
    return std::max(model_->no_leader_until(), model_->member(member_).apart_until);
  }
  Revision revision() const {
    const std::lock_guard lock(model_->mutex_);
    return model_->data_of(member_).revision();
  }

  /// Calls f on the strand after that time, or as soon as the member runs.
  template <class F>
  void serve(std::chrono::microseconds time, F f) {
    later(time, [this, f = std::move(f)]() mutable {
      if (is_frozen()) {
        held_.emplace_back(std::move(f));
      } else {
        f();
      }
    });
  }
  /// When a message has come to the member.
  template <class F>
  void arrive(F f) {
    serve(model_->latency(), std::move(f));
  }

  // --- connections that say nothing

  void wait_for_connection(Begun call) {
    connecting_.push_back(std::move(call));
    if (connecting_.size() > 1) return;
    Clock::time_point runs;
    {
      const std::lock_guard lock(model_->mutex_);
      runs = model_->member(member_).frozen_until;
    }
    later(until_then(runs), [this] { thaw(); });
    later(connect_timeout_, [this, attempt = ++attempt_] {
      if (attempt != attempt_) return;
      const std::string why = fmt::format("no connection within {} ms", connect_timeout_.count());
      for (const Begun& begun : std::exchange(connecting_, {})) {
        told(begun.note, why);
        begun.call->fail(Kind::kUnreachable, why);
      }
    });
  }

  /// The member runs again, unless it was frozen once more.
  void thaw() {
    if (is_frozen()) return;
    ++heard_;
    for (auto& f : std::exchange(held_, {})) f();
    ++attempt_;
    for (Begun& begun : std::exchange(connecting_, {})) {
      connected_ = true;
      open(std::move(begun.call), std::move(begun.note), std::move(begun.fault));
    }
    pump_all();
  }

  /// The client pings a server that says nothing while calls run, and gives the connection up.
  void watch_silence() {
    const bool has_calls = !running_.empty() || !streams_.empty() || !unheard_.empty();
    if (watching_silence_ || !has_calls || !(deaf_ || is_frozen())) return;
    watching_silence_ = true;
    later(silence_, [this, heard = heard_] {
      watching_silence_ = false;
      if (!deaf_ && (heard != heard_ || !is_frozen())) return watch_silence();
      // What the member has been sent, it may find when it runs again.
      std::erase_if(held_, [this](const auto&) { return model_->draw(2) == 0; });
      end_all(Kind::kBroken, "the server is silent");
    });
  }

  void open(Call call, EtcdCall note, std::optional<Fault> fault) {
    call->opened();
    call->stream = ++last_;
    if (deaf_) {
      unheard_.emplace(call->stream, std::move(call));
    } else if (fault && fault->kind == FaultKind::kLoseRequest) {
      running_.emplace(call->stream, call);
      later(model_->latency(), [this, call, note] { break_off(call, note); });
    } else if (note.watches()) {
      begin_stream(std::move(call), std::move(note), fault);
    } else {
      begin_unary(std::move(call), std::move(note), std::move(fault));
    }
    watch_silence();
  }

  static std::string key_of(const std::string& method, std::string_view message) {
    if (method == "Watch/Watch") message = bytes_in(message, watch_field::kCreate);
    // The key of its comparison.
    if (method == "KV/Txn") return std::string(bytes_in(bytes_in(message, 1), 3));
    const bool has_key = method.starts_with("KV/") || method.starts_with("Watch/");
    return has_key && method != "KV/Compact" ? std::string(bytes_in(message, 1)) : std::string();
  }

  void told(const EtcdCall& note, const std::string& how) const {
    if (model_->events_ != nullptr) model_->events_->on_answer(note, how);
  }

  void end_all(Kind kind, const std::string& why) {
    connected_ = false;
    deaf_ = false;
    ++heard_;
    const auto running = std::exchange(running_, {});
    const auto streams = std::exchange(streams_, {});
    const auto unheard = std::exchange(unheard_, {});
    const auto connecting = std::exchange(connecting_, {});
    for (const auto& [id, call] : running) call->fail(kind, why);
    for (const auto& [id, stream] : streams) stream->call->fail(kind, why);
    for (const auto& [id, call] : unheard) call->fail(kind, why);
    // These were never sent.
    const Kind not_begun = kind == Kind::kBroken ? Kind::kUnreachable : kind;
    for (const Begun& begun : connecting) begun.call->fail(not_begun, why);
  }

  void break_off(const Call& call, const EtcdCall& note) {
    if (running_.erase(call->stream) == 0) return;
    told(note, "the connection broke");
    call->fail(Kind::kBroken, "the connection broke");
  }

  // --- calls with one answer

  void begin_unary(Call call, EtcdCall note, std::optional<Fault> fault) {
    running_.emplace(call->stream, call);
    const auto struck_by = [&](FaultKind kind) { return fault && fault->kind == kind; };
    if (struck_by(FaultKind::kHang)) return;
    if (struck_by(FaultKind::kRefuse)) {
      arrive([this, call, note, which = fault->status] { answer(call, note, {}, refusal(which)); });
      return;
    }
    arrive([this, call, note, fault] { wait_for_leader(call, note, fault, Clock::now()); });
  }

  void wait_for_leader(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
                       Clock::time_point since) {
    const auto until = no_leader_until();
    const auto now = Clock::now();
    if (now >= until || is_local(note, *call)) return carry_out(call, note, fault, since);
    if (until <= since + kRequestTimeout) {
      // Whoever waits for a read is told that the leader is another one; writes go on.
      serve(until_then(until), [this, call, note, fault, since] {
        if (note.writes() || model_->draw(2) == 0) return carry_out(call, note, fault, since);
        answer(call, note, {}, refusal(1));
      });
      return;
    }
    // A proposal may still be carried out by the next leader, behind its answer.
    const bool zombie = note.writes() && !is_apart() && model_->draw(3) == 0;
    if (zombie) serve(until_then(until), [this, call, note] { execute(call, note); });
    serve(until_then(since + kRequestTimeout),
          [this, call, note] { answer(call, note, {}, refusal(2)); });
  }

  /// What a member answers alone, as it sees it.
  static bool is_local(const EtcdCall& note, const grpc::CallState& call) {
    constexpr std::uint64_t kSerializable = 7;
    return note.method.starts_with("Maintenance/") || note.method == "Auth/Authenticate" ||
           (note.method == "KV/Range" && number_in(call.request.message, kSerializable) != 0);
  }

  static std::chrono::microseconds until_then(Clock::time_point then) {
    return std::max(std::chrono::ceil<std::chrono::microseconds>(then - Clock::now()),
                    std::chrono::microseconds(0));
  }

  struct Result {
    std::string message = {};
    std::optional<EtcdError> error = {};
  };
  Result execute(const Call& call, const EtcdCall& note) {
    try {
      model_->check_token(call->request, false);
      return {model_->execute(note.method, call->request.message, member_)};
    } catch (const EtcdError& e) {
      return {{}, e};
    }
  }

  /// Reads see at least what had been written when they came; whatever is written is answered when the
  /// member has applied it, too.
  void carry_out(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
                 Clock::time_point since) {
    const bool reads = note.method == "KV/Range";
    Result result;
    if (!reads) {
      result = execute(call, note);
      tick_soon();  // there may be a lease now
    }
    if (is_local(note, *call))
      return reply(call, note, fault, reads ? execute(call, note) : result);
    wait_until_applied(model_->written(), since,
                       [this, call, note, fault, reads, result](bool in_time) {
                         if (!in_time) return answer(call, note, {}, refusal(2));
                         reply(call, note, fault, reads ? execute(call, note) : result);
                       });
  }

  /// Calls done(true) when the member has applied so much; done(false) if that takes too long.
  template <class F>
  void wait_until_applied(std::uint64_t written, Clock::time_point since, F done) {
    const auto then = model_->applied_at(member_, written);
    if (!then) return done(true);
    if (Clock::now() >= since + kRequestTimeout) return done(false);
    serve(until_then(std::min(*then, since + kRequestTimeout)),
          [this, written, since, done = std::move(done)]() mutable {
            wait_until_applied(written, since, std::move(done));
          });
  }

  void reply(const Call& call, const EtcdCall& note, const std::optional<Fault>& fault,
             Result result) {
    const auto struck_by = [&](FaultKind kind) { return fault && fault->kind == kind; };
    std::chrono::microseconds delay = model_->latency();
    if (struck_by(FaultKind::kDelay)) delay += fault->duration;
    const bool lost = struck_by(FaultKind::kLoseAnswer);
    if (struck_by(FaultKind::kFailAfter)) result = {{}, refusal(2)};
    serve(delay, [this, call, note, lost, result = std::move(result)] {
      if (lost) return break_off(call, note);
      answer(call, note, result.message, result.error);
    });
  }

  void answer(const Call& call, const EtcdCall& note, const std::string& message,
              const std::optional<EtcdError>& error) {
    if (running_.erase(call->stream) == 0) return;
    if (error) {
      told(note, error->what());
      return call->finish({error->code(), error->what()});
    }
    told(note, "ok");
    give(*call, message);
    call->finish({});
  }

  /// In pieces, as they would come from a connection.
  void give(grpc::CallState& call, const std::string& message) {
    const std::string bytes = grpc::framed(message);
    const std::size_t cut = model_->draw(bytes.size() + 1);
    if (cut > 0) call.receive(std::string_view(bytes).substr(0, cut));
    if (cut < bytes.size()) call.receive(std::string_view(bytes).substr(cut));
  }

  // --- watches

  void begin_stream(Call call, EtcdCall note, const std::optional<Fault>& fault) {
    auto stream = std::make_shared<Stream>();
    stream->call = call;
    stream->note = std::move(note);
    stream->wants_leader = header_of(call->request, "hasleader") == "true";
    const std::uint32_t id = call->stream;
    streams_.emplace(id, stream);
    auto delay = model_->latency();
    if (fault) {
      switch (fault->kind) {
        case FaultKind::kRefuse:
          serve(delay, [this, stream, which = fault->status] { end(stream, refusal(which)); });
          return;
        case FaultKind::kDelay:
          delay += fault->duration;
          break;
        case FaultKind::kCutStream:
          later(fault->duration, [this, stream] { cut(stream); });
          break;
        case FaultKind::kStallStream:
          stream->silent_until = Clock::now() + fault->duration;
          later(fault->duration, [this, stream] { cut(stream); });
          break;
        case FaultKind::kExpireWatch:
          stream->silent_until = Clock::now() + fault->duration;
          later(fault->duration, [this, stream] { expire(stream); });
          break;
        default:
          break;
      }
    }
    serve(delay, [this, id] {
      if (const StreamPtr begun = find(id)) take(*begun, begun->call->request.message);
    });
  }

  /// What a watch has missed is forgotten: most of it, and the watch goes on; or as much as leaves it
  /// a place to go on, and it breaks.
  void expire(const StreamPtr& stream) {
    if (find(stream->call->stream) == nullptr) return;
    const Revision now = model_->revision();
    if (model_->draw(2) == 0) {
      compact_to(now);
      return pump_soon(stream);
    }
    Revision next = now;
    for (const auto& [id, watch] : stream->watches) next = std::min(next, watch.next);
    compact_to(next);
    break_stream(stream);
  }
  void compact_to(Revision revision) const {
    try {
      model_->compact(revision);
    } catch (const EtcdError&) {
      // It is already.
    }
  }

  void end(const StreamPtr& stream, const EtcdError& why) {
    if (!forget(stream)) return;
    told(stream->note, why.what());
    stream->call->finish({why.code(), why.what()});
  }
  /// In the middle of something, perhaps.
  void cut(const StreamPtr& stream) {
    if (find(stream->call->stream) == nullptr) return;
    stream->silent_until = {};
    pump(*stream, true);
    break_stream(stream);
  }
  void break_stream(const StreamPtr& stream) {
    forget(stream);
    told(stream->note, "the connection broke");
    stream->call->fail(Kind::kBroken, "the connection broke");
  }
  bool forget(const StreamPtr& stream) { return streams_.erase(stream->call->stream) > 0; }

  void take(Stream& stream, const std::string& message) {
    if (const auto create = bytes_in(message, watch_field::kCreate);
        has_field(message, watch_field::kCreate)) {
      return begin_watch(stream, create);
    }
    if (has_field(message, watch_field::kCancel)) {
      const auto id =
          static_cast<std::int64_t>(number_in(bytes_in(message, watch_field::kCancel), 1));
      if (stream.watches.erase(id) == 0) return;
      return tell(stream, id, 0, Proto().number(4, 1));
    }
    if (has_field(message, watch_field::kProgress)) tell_progress(stream);
  }

  void begin_watch(Stream& stream, std::string_view create) {
    const auto now = Clock::now();
    if (stream.wants_leader && no_leader_until() > now)
      return end(find(stream.call->stream), EtcdError(EtcdError::kUnavailable, kNoLeader));
    try {
      model_->check_token(stream.call->request, true);
    } catch (const EtcdError& e) {
      tell(stream, -1, revision(),
           Proto().number(3, 1).number(4, 1).bytes(
               6, "rpc error: code = PermissionDenied desc = " + std::string(e.what())));
      return;
    }
    EtcdWatchState watch;
    watch.range = {std::string(bytes_in(create, watch_field::kKey)),
                   std::string(bytes_in(create, watch_field::kEnd))};
    if (watch.range.key.empty()) watch.range.key = std::string(1, '\0');
    watch.previous = number_in(create, watch_field::kPrevious) != 0;
    watch.notify = number_in(create, watch_field::kNotify) != 0;
    watch.fragments = number_in(create, watch_field::kFragment) != 0;
    Revision revision = 0;
    {
      const std::lock_guard lock(model_->mutex_);
      revision = model_->data_of(member_).revision();
      watch.compacted = model_->data_of(member_).compacted();
    }
    watch.next = number_in(create, watch_field::kStart);
    if (watch.next == 0) watch.next = revision + 1;
    auto id = static_cast<std::int64_t>(number_in(create, watch_field::kId));
    if (id == 0) id = stream.next_id;
    stream.next_id = std::max(stream.next_id, id + 1);
    stream.watches.insert_or_assign(id, std::move(watch));
    tell(stream, id, revision, Proto().number(3, 1));
    pump(stream, false);
    tick_soon();
  }

  void tell_progress(Stream& stream) {
    if (model_->tells_progress_) {
      // Behind all events; if some are still to come, not at all.
      if (is_silent(stream)) return;
      pump(stream, false);
    }
    Revision revision = this->revision();
    if (model_->tells_progress_) {
      for (const auto& [id, watch] : stream.watches) revision = std::min(revision, watch.next - 1);
    }
    tell(stream, -1, revision, Proto());
  }

  /// One message: `rest` behind what all have.
  void tell(Stream& stream, std::int64_t id, Revision revision, const Proto& rest) {
    Proto message;
    message.message(1, model_->data_.header(revision, model_->member_id(member_)));
    message.number(2, static_cast<std::uint64_t>(id));
    give(*stream.call, message.text() + rest.text());
  }

  bool is_silent(const Stream& stream) const {
    return Clock::now() < stream.silent_until || is_frozen();
  }

  void pump_soon(const StreamPtr& stream) {
    if (std::exchange(stream->pumping, true)) return;
    serve(model_->latency(), [this, stream] {
      stream->pumping = false;
      if (streams_.contains(stream->call->stream)) pump(*stream, false);
    });
  }

  /// Tells all watches of a stream what they do not know yet. With `partly`, only some of it.
  void pump(Stream& stream, bool partly) {
    if (is_silent(stream)) return;
    std::vector<std::int64_t> over;
    for (auto& [id, watch] : stream.watches) {
      if (!pump(stream, id, watch, partly)) over.push_back(id);
    }
    for (const std::int64_t id : over) stream.watches.erase(id);
  }

  /// False if the watch has ended.
  bool pump(Stream& stream, std::int64_t id, EtcdWatchState& watch, bool partly) {
    std::vector<Proto> events;
    Revision revision = 0;
    Revision compacted = 0;
    {
      const std::lock_guard lock(model_->mutex_);
      const EtcdData& data = model_->data_of(member_);
      revision = data.revision();
      if (watch.next > revision) return true;
      // A watch may begin at that very revision. One that was there before might miss a deletion and
      // could not know; that bug of etcd's has no remedy, so it is refused here.
      const bool was_there = watch.compacted != data.compacted();
      if (watch.next < data.compacted() || (was_there && watch.next == data.compacted())) {
        compacted = data.compacted();
      } else {
        for (auto at = data.next_change(watch.next); at; at = data.next_change(*at + 1)) {
          for (const auto& change : *data.changes_at(*at)) {
            if (watch.range.contains(change.kv.key))
              events.push_back(data.event(change, watch.previous));
          }
        }
        watch.next = revision + 1;
      }
    }
    if (compacted != 0) {
      tell(stream, id, 0, Proto().number(4, 1).number(5, compacted));
      return false;
    }
    if (events.empty()) return true;
    watch.told = true;
    tell_events(stream, id, revision, watch.fragments, events, partly);
    return true;
  }

  void tell_events(Stream& stream, std::int64_t id, Revision revision, bool fragments,
                   const std::vector<Proto>& events, bool partly) {
    std::size_t next = 0;
    if (partly) {
      // A connection may break between two fragments, if there are two.
      if (!fragments || events.size() < 2) return;
      Proto some;
      some.number(7, 1);
      for (const std::size_t to = 1 + model_->draw(events.size() - 1); next < to; ++next)
        some.message(11, events[next]);
      return tell(stream, id, revision, some);
    }
    while (next < events.size()) {
      Proto all;
      const std::size_t first = next;
      std::size_t bytes = 0;
      for (; next < events.size(); ++next) {
        bytes += events[next].text().size();
        if (fragments && next > first && bytes > model_->options_.max_answer_bytes) break;
      }
      if (next < events.size()) all.number(7, 1);
      for (std::size_t i = first; i < next; ++i) all.message(11, events[i]);
      tell(stream, id, revision, all);
    }
  }

  // --- time

  /// When leases end, and when watches want to be told how far etcd has come.
  void tick_soon() {
    std::optional<Clock::time_point> next;
    {
      const std::lock_guard lock(model_->mutex_);
      next = model_->data_.next_expiry();
    }
    if (!streams_.empty()) {
      if (!next_notice_) next_notice_ = Clock::now() + model_->options_.progress_interval;
      next = std::min(next.value_or(*next_notice_), *next_notice_);
    }
    if (!next || closed_ || (tick_at_ && *tick_at_ <= *next)) return;
    tick_at_ = *next;
    ticker_->expires_at(*next);
    ticker_->async_wait([weak = weak_from_this()](const auto& error) {
      const auto self = weak.lock();
      if (!error && self != nullptr) static_cast<Line&>(*self).tick();
    });
  }

  void tick() {
    if (closed_) return;
    tick_at_.reset();
    const auto now = Clock::now();
    model_->expire_leases();
    if (next_notice_ && now >= *next_notice_) {
      next_notice_.reset();
      for (auto& [id, stream] : streams_) notify_progress(*stream);
    }
    tick_soon();
  }

  void notify_progress(Stream& stream) {
    if (is_silent(stream)) return;
    const Revision revision = this->revision();
    for (auto& [id, watch] : stream.watches) {
      const bool quiet = !std::exchange(watch.told, false);
      if (watch.notify && quiet && watch.next > revision) tell(stream, id, revision, Proto());
    }
  }

  const std::shared_ptr<EtcdModel> model_;
  const asio::io_context* const context_;  // to be compared only
  const milliseconds connect_timeout_;
  const milliseconds silence_;  // ends a connection
  const int member_;
  const unsigned client_;
  std::optional<asio::steady_timer> ticker_;
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

// -------------------------------------------------------------------------------------- EtcdModel

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
                              // It was refused, and so it is here.
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

/// A leader needs most members.
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

/// With the mutex locked, as those below.
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
