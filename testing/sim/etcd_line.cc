#include "testing/sim/etcd_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace lookout::sim {

namespace asio = boost::asio;
using etcd3::EtcdError;
using std::chrono::milliseconds;

namespace {

/// etcd's request timeout: 5 s plus twice the election timeout.
constexpr milliseconds kRequestTimeout{7000};
constexpr std::string_view kPrefix = "/etcdserverpb.";
constexpr const char* kNoLeader = "etcdserver: no leader";
constexpr const char* kTimedOut = "etcdserver: request timed out";

namespace watch_field {
constexpr std::uint64_t kCreate = 1, kCancel = 2, kProgress = 3;  // the kinds of requests
constexpr std::uint64_t kKey = 1, kEnd = 2, kStart = 3, kNotify = 4, kPrevious = 6, kId = 7,
                        kFragment = 8;
}  // namespace watch_field

/// The error of a member that cannot serve a request at the moment.
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

}  // namespace

std::string header_of(const grpc::CallRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.metadata) {
    if (key == name) return value;
  }
  return {};
}

EtcdModel::Line::Line(std::shared_ptr<EtcdModel> model, asio::io_context& context,
                      const grpc::Server& server, int member, unsigned client)
    : Carrier(context),
      model_(std::move(model)),
      context_(&context),
      connect_timeout_(server.connect_timeout),
      silence_(server.ping_after + server.ping_timeout),
      member_(member),
      client_(client),
      ticker_(std::in_place, strand()) {}

void EtcdModel::Line::begin(std::shared_ptr<grpc::CallState> call) {
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

void EtcdModel::Line::send(const std::shared_ptr<grpc::CallState>& call,
                           const std::string& message) {
  const std::uint32_t id = call->stream;
  arrive([this, id, message] {
    if (const StreamPtr stream = find(id)) take(*stream, message);
  });
}

void EtcdModel::Line::cancel(const std::shared_ptr<grpc::CallState>& call) {
  std::erase_if(connecting_, [&](const Begun& begun) { return begun.call == call; });
  running_.erase(call->stream);
  streams_.erase(call->stream);
  unheard_.erase(call->stream);
}

void EtcdModel::Line::close() {
  closed_ = true;
  // The timer belongs to the loop, which may be destroyed before the last holder of a call.
  ticker_.reset();
  held_.clear();
  end_all(Kind::kCancelled, "the client was closed");
}

// --- for the model

void EtcdModel::Line::freeze(milliseconds duration, bool for_good) {
  if (for_good && connected_) {
    deaf_ = true;
    for (auto& [id, call] : std::exchange(running_, {})) unheard_.emplace(id, std::move(call));
    for (auto& [id, stream] : std::exchange(streams_, {})) unheard_.emplace(id, stream->call);
    held_.clear();
  }
  watch_silence();
  later(duration, [this] { thaw(); });
}

void EtcdModel::Line::cut_off(milliseconds duration) {
  const milliseconds election(1000 + model_->draw(1000));
  serve(election, [this] {
    if (no_leader_until() > Clock::now()) lose_leader();
  });
  serve(duration, [this] { pump_all(); });
}

void EtcdModel::Line::lose_leader() {
  const auto all = streams_;
  for (const auto& [id, stream] : all) {
    if (stream->wants_leader) end(stream, EtcdError(EtcdError::kUnavailable, kNoLeader));
  }
}

void EtcdModel::Line::heal() {
  for (auto& [id, stream] : streams_) stream->silent_until = {};
  thaw();
  pump_all();
}

void EtcdModel::Line::pump_all() {
  for (auto& [id, stream] : streams_) pump_soon(stream);
  const auto then = model_->applies_next(member_);
  if (!then || streams_.empty() || std::exchange(pump_later_, true)) return;
  serve(until_then(*then), [this] {
    pump_later_ = false;
    pump_all();
  });
}

template <class F>
void EtcdModel::Line::later(std::chrono::microseconds time, F f) {
  if (time.count() == 0) {
    post([f = std::move(f)](Carrier& line) mutable {
      if (!static_cast<Line&>(line).closed_) f();
    });
    return;
  }
  const auto timer = std::make_shared<asio::steady_timer>(strand(), time);
  timer->async_wait([timer, weak = weak_from_this(), f = std::move(f)](const auto& error) mutable {
    const auto self = weak.lock();
    if (!error && self != nullptr && !static_cast<Line&>(*self).closed_) f();
  });
}

EtcdModel::Line::StreamPtr EtcdModel::Line::find(std::uint32_t id) const {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

bool EtcdModel::Line::is_down() const {
  const std::lock_guard lock(model_->mutex_);
  return Clock::now() < model_->member(member_).down_until;
}

bool EtcdModel::Line::is_apart() const {
  const std::lock_guard lock(model_->mutex_);
  return Clock::now() < model_->member(member_).apart_until;
}

bool EtcdModel::Line::is_frozen() const {
  const std::lock_guard lock(model_->mutex_);
  return Clock::now() < model_->member(member_).frozen_until;
}

EtcdModel::Clock::time_point EtcdModel::Line::no_leader_until() const {
  const std::lock_guard lock(model_->mutex_);
  return std::max(model_->no_leader_until(), model_->member(member_).apart_until);
}

Revision EtcdModel::Line::revision() const {
  const std::lock_guard lock(model_->mutex_);
  return model_->data_of(member_).revision();
}

template <class F>
void EtcdModel::Line::serve(std::chrono::microseconds time, F f) {
  later(time, [this, f = std::move(f)]() mutable {
    if (is_frozen()) {
      held_.emplace_back(std::move(f));
    } else {
      f();
    }
  });
}

template <class F>
void EtcdModel::Line::arrive(F f) {
  serve(model_->latency(), std::move(f));
}

// --- silent connections

void EtcdModel::Line::wait_for_connection(Begun call) {
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

void EtcdModel::Line::thaw() {
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

void EtcdModel::Line::watch_silence() {
  const bool has_calls = !running_.empty() || !streams_.empty() || !unheard_.empty();
  if (watching_silence_ || !has_calls || !(deaf_ || is_frozen())) return;
  watching_silence_ = true;
  later(silence_, [this, heard = heard_] {
    watching_silence_ = false;
    if (!deaf_ && (heard != heard_ || !is_frozen())) return watch_silence();
    // A request in flight may still reach the member when it resumes; chance decides.
    std::erase_if(held_, [this](const auto&) { return model_->draw(2) == 0; });
    end_all(Kind::kBroken, "the server is silent");
  });
}

void EtcdModel::Line::open(Call call, EtcdCall note, std::optional<Fault> fault) {
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

std::string EtcdModel::Line::key_of(const std::string& method, std::string_view message) {
  if (method == "Watch/Watch") message = bytes_in(message, watch_field::kCreate);
  // The key of its comparison.
  if (method == "KV/Txn") return std::string(bytes_in(bytes_in(message, 1), 3));
  const bool has_key = method.starts_with("KV/") || method.starts_with("Watch/");
  return has_key && method != "KV/Compact" ? std::string(bytes_in(message, 1)) : std::string();
}

void EtcdModel::Line::told(const EtcdCall& note, const std::string& how) const {
  if (model_->events_ != nullptr) model_->events_->on_answer(note, how);
}

void EtcdModel::Line::end_all(Kind kind, const std::string& why) {
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
  // Calls that were never sent.
  const Kind not_begun = kind == Kind::kBroken ? Kind::kUnreachable : kind;
  for (const Begun& begun : connecting) begun.call->fail(not_begun, why);
}

void EtcdModel::Line::break_off(const Call& call, const EtcdCall& note) {
  if (running_.erase(call->stream) == 0) return;
  told(note, "the connection broke");
  call->fail(Kind::kBroken, "the connection broke");
}

// --- unary calls

void EtcdModel::Line::begin_unary(Call call, EtcdCall note, std::optional<Fault> fault) {
  running_.emplace(call->stream, call);
  const auto struck_by = [&](FaultKind kind) { return fault && fault->kind == kind; };
  if (struck_by(FaultKind::kHang)) return;
  if (struck_by(FaultKind::kRefuse)) {
    arrive([this, call, note, which = fault->status] { answer(call, note, {}, refusal(which)); });
    return;
  }
  arrive([this, call, note, fault] { wait_for_leader(call, note, fault, Clock::now()); });
}

void EtcdModel::Line::wait_for_leader(const Call& call, const EtcdCall& note,
                                      const std::optional<Fault>& fault, Clock::time_point since) {
  const auto until = no_leader_until();
  const auto now = Clock::now();
  if (now >= until || is_local(note, *call)) return carry_out(call, note, fault, since);
  if (until <= since + kRequestTimeout) {
    // The new leader executes writes. Some reads fail with "leader changed", as with etcd.
    serve(until_then(until), [this, call, note, fault, since] {
      if (note.writes() || model_->draw(2) == 0) return carry_out(call, note, fault, since);
      answer(call, note, {}, refusal(1));
    });
    return;
  }
  // The next leader may still execute a proposal after its response.
  const bool zombie = note.writes() && !is_apart() && model_->draw(3) == 0;
  if (zombie) serve(until_then(until), [this, call, note] { execute(call, note); });
  serve(until_then(since + kRequestTimeout),
        [this, call, note] { answer(call, note, {}, refusal(2)); });
}

bool EtcdModel::Line::is_local(const EtcdCall& note, const grpc::CallState& call) {
  constexpr std::uint64_t kSerializable = 7;
  return note.method.starts_with("Maintenance/") || note.method == "Auth/Authenticate" ||
         (note.method == "KV/Range" && number_in(call.request.message, kSerializable) != 0);
}

std::chrono::microseconds EtcdModel::Line::until_then(Clock::time_point then) {
  return std::max(std::chrono::ceil<std::chrono::microseconds>(then - Clock::now()),
                  std::chrono::microseconds(0));
}

EtcdModel::Line::Result EtcdModel::Line::execute(const Call& call, const EtcdCall& note) {
  try {
    model_->check_token(call->request, false);
    return {model_->execute(note.method, call->request.message, member_)};
  } catch (const EtcdError& e) {
    return {{}, e};
  }
}

void EtcdModel::Line::carry_out(const Call& call, const EtcdCall& note,
                                const std::optional<Fault>& fault, Clock::time_point since) {
  const bool reads = note.method == "KV/Range";
  Result result;
  if (!reads) {
    result = execute(call, note);
    tick_soon();  // the call may have granted a lease
  }
  if (is_local(note, *call)) return reply(call, note, fault, reads ? execute(call, note) : result);
  wait_until_applied(model_->written(), since,
                     [this, call, note, fault, reads, result](bool in_time) {
                       if (!in_time) return answer(call, note, {}, refusal(2));
                       reply(call, note, fault, reads ? execute(call, note) : result);
                     });
}

template <class F>
void EtcdModel::Line::wait_until_applied(std::uint64_t written, Clock::time_point since, F done) {
  const auto then = model_->applied_at(member_, written);
  if (!then) return done(true);
  if (Clock::now() >= since + kRequestTimeout) return done(false);
  serve(until_then(std::min(*then, since + kRequestTimeout)),
        [this, written, since, done = std::move(done)]() mutable {
          wait_until_applied(written, since, std::move(done));
        });
}

void EtcdModel::Line::reply(const Call& call, const EtcdCall& note,
                            const std::optional<Fault>& fault, Result result) {
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

void EtcdModel::Line::answer(const Call& call, const EtcdCall& note, const std::string& message,
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

void EtcdModel::Line::give(grpc::CallState& call, const std::string& message) {
  const std::string bytes = grpc::framed(message);
  const std::size_t cut = model_->draw(bytes.size() + 1);
  if (cut > 0) call.receive(std::string_view(bytes).substr(0, cut));
  if (cut < bytes.size()) call.receive(std::string_view(bytes).substr(cut));
}

// --- watches

void EtcdModel::Line::begin_stream(Call call, EtcdCall note, const std::optional<Fault>& fault) {
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

void EtcdModel::Line::expire(const StreamPtr& stream) {
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

void EtcdModel::Line::compact_to(Revision revision) const {
  try {
    model_->compact(revision);
  } catch (const EtcdError&) {
    // The revision is compacted already.
  }
}

void EtcdModel::Line::end(const StreamPtr& stream, const EtcdError& why) {
  if (!forget(stream)) return;
  told(stream->note, why.what());
  stream->call->finish({why.code(), why.what()});
}

void EtcdModel::Line::cut(const StreamPtr& stream) {
  if (find(stream->call->stream) == nullptr) return;
  stream->silent_until = {};
  pump(*stream, true);
  break_stream(stream);
}

void EtcdModel::Line::break_stream(const StreamPtr& stream) {
  forget(stream);
  told(stream->note, "the connection broke");
  stream->call->fail(Kind::kBroken, "the connection broke");
}

void EtcdModel::Line::take(Stream& stream, const std::string& message) {
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

void EtcdModel::Line::begin_watch(Stream& stream, std::string_view create) {
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

void EtcdModel::Line::tell_progress(Stream& stream) {
  if (model_->tells_progress_) {
    // After all events; dropped if events are still pending.
    if (is_silent(stream)) return;
    pump(stream, false);
  }
  Revision revision = this->revision();
  if (model_->tells_progress_) {
    for (const auto& [id, watch] : stream.watches) revision = std::min(revision, watch.next - 1);
  }
  tell(stream, -1, revision, Proto());
}

void EtcdModel::Line::tell(Stream& stream, std::int64_t id, Revision revision, const Proto& rest) {
  Proto message;
  message.message(1, model_->data_.header(revision, model_->member_id(member_)));
  message.number(2, static_cast<std::uint64_t>(id));
  give(*stream.call, message.text() + rest.text());
}

bool EtcdModel::Line::is_silent(const Stream& stream) const {
  return Clock::now() < stream.silent_until || is_frozen();
}

void EtcdModel::Line::pump_soon(const StreamPtr& stream) {
  if (std::exchange(stream->pumping, true)) return;
  serve(model_->latency(), [this, stream] {
    stream->pumping = false;
    if (streams_.contains(stream->call->stream)) pump(*stream, false);
  });
}

void EtcdModel::Line::pump(Stream& stream, bool partly) {
  if (is_silent(stream)) return;
  std::vector<std::int64_t> over;
  for (auto& [id, watch] : stream.watches) {
    if (!pump(stream, id, watch, partly)) over.push_back(id);
  }
  for (const std::int64_t id : over) stream.watches.erase(id);
}

bool EtcdModel::Line::pump(Stream& stream, std::int64_t id, EtcdWatchState& watch, bool partly) {
  std::vector<Proto> events;
  Revision revision = 0;
  Revision compacted = 0;
  {
    const std::lock_guard lock(model_->mutex_);
    const EtcdData& data = model_->data_of(member_);
    revision = data.revision();
    if (watch.next > revision) return true;
    // A new watch may start at the compacted revision itself. An existing watch could miss a
    // deletion without noticing (a bug of etcd); the model cancels it instead.
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

void EtcdModel::Line::tell_events(Stream& stream, std::int64_t id, Revision revision,
                                  bool fragments, const std::vector<Proto>& events, bool partly) {
  std::size_t next = 0;
  if (partly) {
    // A connection may break between two fragments.
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

void EtcdModel::Line::tick_soon() {
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

void EtcdModel::Line::tick() {
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

void EtcdModel::Line::notify_progress(Stream& stream) {
  if (is_silent(stream)) return;
  const Revision revision = this->revision();
  for (auto& [id, watch] : stream.watches) {
    const bool quiet = !std::exchange(watch.told, false);
    if (watch.notify && quiet && watch.next > revision) tell(stream, id, revision, Proto());
  }
}

}  // namespace lookout::sim
