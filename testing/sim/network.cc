#include "testing/sim/network.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/system_error.hpp>
#include <deque>
#include <utility>

#include "lookout/base/ascii.h"
#include "lookout/base/numbers.h"

namespace lookout::sim {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using rest::TransportError;
using rest::detail::HttpExchange;
using rest::detail::HttpHead;
using rest::detail::HttpRequest;
using rest::detail::HttpServer;
using rest::detail::HttpTransport;
using std::chrono::steady_clock;
using Kind = TransportError::Kind;

/// A client closes a connection without responses after this time, as with rest::KeepAlive.
constexpr std::chrono::seconds kDeadConnection{45};

/// The server's end.
class ServerEnd : public http::Transport {
 public:
  ServerEnd(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  ~ServerEnd() override {
    out_->end();
    in_->leave();
  }
  ServerEnd(const ServerEnd&) = delete;
  ServerEnd& operator=(const ServerEnd&) = delete;

  Awaitable<void> handshake() override { co_return; }

  Awaitable<bool> read(std::string& input) override {
    for (;;) {
      if (closed_) throw boost::system::system_error(asio::error::operation_aborted);
      Pipe::Taken taken = in_->take();
      if (taken.broken) throw boost::system::system_error(asio::error::connection_reset);
      if (taken.ended) co_return false;
      if (!taken.bytes.empty()) {
        input += taken.bytes;
        co_return true;
      }
      co_await in_->wait(taken.again);
    }
  }

  Awaitable<void> write(std::span<const asio::const_buffer> buffers) override {
    if (closed_) throw boost::system::system_error(asio::error::operation_aborted);
    std::string bytes;
    for (const auto& buffer : buffers)
      bytes.append(static_cast<const char*>(buffer.data()), buffer.size());
    out_->write(std::move(bytes));
    co_return;
  }

  Awaitable<void> shutdown() override {
    out_->end();
    co_return;
  }

  void close() override {
    closed_ = true;
    out_->end();
    in_->ring();
  }

  std::string client_address() const override { return "simulated"; }

 private:
  const std::shared_ptr<Pipe> in_;
  const std::shared_ptr<Pipe> out_;
  bool closed_ = false;
};

/// Forwards bytes with a delay.
struct Late {
  std::chrono::milliseconds by{0};

  Pipe::Taken take(Pipe& pipe) {
    Pipe::Taken taken = pipe.take();
    if (by.count() == 0) return taken;
    const auto now = steady_clock::now();
    // Delays all pieces together, not one by one.
    for (; !taken.bytes.empty(); taken = pipe.take())
      held.push_back({std::move(taken.bytes), false, false, now + by});
    if (std::exchange(taken.ended, false) && (held.empty() || !held.back().ended))
      held.push_back({{}, true, false, now + by});
    if (held.empty()) return taken;
    taken.again = std::min(taken.again, held.front().again);
    if (taken.broken || held.front().again > now) return taken;
    taken = std::move(held.front());
    held.pop_front();
    taken.again = SteadyTime::max();
    return taken;
  }

  std::deque<Pipe::Taken> held = {};  // `again`: when to deliver
};

/// Repeats some events of a watch.
class Repeats {
 public:
  void begin(const RequestNote& note, std::string_view content_type) {
    random_ = Random(mix(hash_of(note.process)) ^ mix(note.number));
    is_binary_ = content_type.find("protobuf") != std::string_view::npos;
  }
  /// Returns the complete events.
  std::string feed(std::string bytes) {
    input_ += bytes;
    std::string out;
    for (std::size_t size = first(); size > 0; size = first()) {
      const std::string event = input_.substr(0, size);
      input_.erase(0, size);
      out += event;
      if (random_.below(3) == 0) out += event;
    }
    return out;
  }

 private:
  /// The size of the first event: a line, or a four-byte length and its content; 0: incomplete.
  std::size_t first() const {
    if (!is_binary_) return input_.find('\n') + 1;
    constexpr std::size_t kHead = 4;
    if (input_.size() < kHead) return 0;
    std::size_t size = kHead;
    std::size_t length = 0;
    for (std::size_t i = 0; i < kHead; ++i)
      length = length << 8 | static_cast<unsigned char>(input_[i]);
    size += length;
    return input_.size() < size ? 0 : size;
  }

  Random random_{0};
  bool is_binary_ = false;
  std::string input_;
};

std::string status_json(int code, std::string_view reason, std::string_view message) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}","reason":"{}","code":{}}})",
      message, reason, code);
}

std::string refusal(int code) {
  switch (code) {
    case 409:
      return status_json(code, "Conflict",
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again");
    case 410:
      return status_json(code, "Expired", "The resourceVersion is too old.");
    case 429:
      return status_json(code, "TooManyRequests", "too many requests, please try again later");
    case 503:
      return status_json(code, "ServiceUnavailable",
                         "the server is currently unable to handle the request");
    case 422:
      return status_json(code, "Invalid",
                         "sendInitialEvents is forbidden for watch unless the WatchList feature "
                         "gate is enabled");
    default:
      return status_json(code, "InternalError", "Internal error occurred: the storage is broken");
  }
}

/// The client's end of one exchange. Each exchange has its own connection.
class Exchange : public HttpExchange {
 public:
  Exchange(std::string what, std::shared_ptr<Link> link, NetworkEvents& events, RequestNote note,
           const HttpRequest& request, asio::any_io_executor executor)
      : what_(std::move(what)),
        link_(std::move(link)),
        events_(events),
        note_(std::move(note)),
        deadline_(request.timeout.count() > 0 ? steady_clock::now() + request.timeout
                                              : SteadyTime::max()),
        pipe_(link_->pipe(std::move(executor))),
        held_back_(request.held_back()) {
    parser_.eager(true);
    parser_.body_limit(boost::none);
  }

  ~Exchange() override {
    give_up();
    pipe_->leave();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void begin(std::string bytes) {
    if (link_->ended() || held_back_) return;
    if (struck_by(FaultKind::kCrashBefore)) {
      events_.on_crash(note_.process);
      return;
    }
    if (struck_by(FaultKind::kLoseRequest) || struck_by(FaultKind::kHang)) return;
    if (struck_by(FaultKind::kRefuse)) return refuse(note_.fault->status);
    if (struck_by(FaultKind::kStaleRead) && note_.asks_first_state()) return refuse(422);
    // The executor of the server's end exists only on the server's thread.
    events_.connect(note_, [link = link_, to_client = pipe_, shared = to_server_,
                            bytes = std::move(bytes)](asio::any_io_executor executor) mutable {
      auto to_server = link->pipe(std::move(executor));
      to_server->write(std::move(bytes));
      bool over = false;
      {
        const std::lock_guard lock(shared->mutex);
        shared->pipe = to_server;
        over = shared->over;
      }
      if (over) to_server->break_off();
      return std::make_unique<ServerEnd>(std::move(to_server), std::move(to_client));
    });
  }

  Awaitable<HttpHead> head() override {
    while (!parser_.is_header_done()) {
      const bool more = co_await feed();
      if (!more && !parser_.is_header_done())
        fail(Kind::kBroken, "the connection ended before the answer");
    }
    if (head_) co_return *head_;
    const auto& message = parser_.get();
    HttpHead head;
    head.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      const std::string name =
          base::lower_case({field.name_string().data(), field.name_string().size()});
      const std::string value(field.value().data(), field.value().size());
      if (name == "content-type") head.content_type = value;
      if (name == "warning") head.warnings.push_back(value);
      if (name == "retry-after") {
        head.retry_after =
            std::chrono::seconds(base::parse_number<std::int32_t>(value).value_or(0));
      }
    }
    if (struck_by(FaultKind::kCrashAfter)) events_.on_crash(note_.process);
    if (struck_by(FaultKind::kCrashAfter) || struck_by(FaultKind::kLoseAnswer))
      fail(Kind::kBroken, "the connection broke before the answer");
    if (struck_by(FaultKind::kDelay)) co_await pause(note_.fault->duration);
    if (note_.held.count() > 0) co_await pause(note_.held);
    if (struck_by(FaultKind::kFailAfter)) {
      head = {};
      head.status = 500;
      head.content_type = "application/json";
      replaced_ = refusal(head.status);
    }
    if (cut_by_fault()) cut_at_ = steady_clock::now() + note_.fault->duration;
    if (struck_by(FaultKind::kLateEvents)) late_.by = note_.fault->duration;
    if (struck_by(FaultKind::kRepeatEvents)) repeats_.begin(note_, head.content_type);
    head_ = head;
    events_.on_answer(note_, head.status, {});
    co_return head;
  }

  Awaitable<std::string> read(std::string) override {
    if (replaced_) co_return std::exchange(*replaced_, {});
    for (;;) {
      std::string& body = parser_.get().body();
      if (!body.empty() && struck_by(FaultKind::kRepeatEvents)) {
        std::string events = repeats_.feed(std::exchange(body, {}));
        if (!events.empty()) co_return events;
      }
      if (!body.empty()) co_return std::exchange(body, {});
      if (parser_.is_done()) co_return std::string();
      const bool more = co_await feed();
      if (!more && parser_.get().body().empty() && !parser_.is_done())
        fail(Kind::kBroken, "the connection ended in the middle of the answer");
    }
  }

  void cancel() override {
    {
      const std::lock_guard lock(to_server_->mutex);
      cancelled_ = true;
    }
    pipe_->ring();
  }

 private:
  /// The pipe to the server, created on the server's thread.
  struct ToServer {
    std::mutex mutex;
    std::shared_ptr<Pipe> pipe;
    bool over = false;
  };

  void refuse(int status) {
    const std::string body = refusal(status);
    const std::string wait = status == 429 ? "Retry-After: 2\r\n" : "";
    pipe_->write(fmt::format(
        "HTTP/1.1 {} Refused\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
        status, wait, body.size(), body));
  }

  bool struck_by(FaultKind kind) const { return note_.fault && note_.fault->kind == kind; }
  bool cut_by_fault() const {
    return struck_by(FaultKind::kCutStream) || struck_by(FaultKind::kStallStream) ||
           struck_by(FaultKind::kExpireWatch);
  }

  [[noreturn]] void fail(Kind kind, const std::string& why) {
    give_up();
    if (!std::exchange(told_, true)) events_.on_answer(note_, 0, why);
    throw TransportError(kind, what_ + ": " + why);
  }

  void give_up() {
    std::shared_ptr<Pipe> pipe;
    {
      const std::lock_guard lock(to_server_->mutex);
      to_server_->over = true;
      pipe = to_server_->pipe;
    }
    if (pipe) pipe->end();
    pipe_->break_off();
  }

  bool is_cancelled() {
    const std::lock_guard lock(to_server_->mutex);
    return cancelled_;
  }

  Awaitable<void> pause(std::chrono::milliseconds time) {
    const auto until = std::min(steady_clock::now() + time, deadline_);
    while (steady_clock::now() < until && !is_cancelled() && !link_->ended())
      co_await pipe_->wait(until);
    check();
  }

  /// Throws the error that has ended the exchange, if any.
  void check() {
    const auto now = steady_clock::now();
    if (is_cancelled()) fail(Kind::kCancelled, "cancelled");
    if (held_back_) fail(Kind::kCancelled, "not sent: CallOptions::may_send returned false");
    if (link_->ended()) fail(Kind::kBroken, "the network is gone");
    if (now >= deadline_) fail(Kind::kTimeout, "the deadline passed");
    if (struck_by(FaultKind::kCrashBefore) || struck_by(FaultKind::kLoseRequest))
      fail(Kind::kBroken, "the connection broke");
    if (now >= cut_at_) {
      if (struck_by(FaultKind::kExpireWatch)) events_.expire(note_);
      fail(Kind::kBroken, "the watch broke");
    }
    if (const auto since = link_->cut_since(); since && now >= *since + kDeadConnection)
      fail(Kind::kBroken, "the server has not answered for 45 s");
  }

  /// Waits for bytes and parses them; false at the end of the connection.
  Awaitable<bool> feed() {
    for (;;) {
      check();
      const bool silent =
          struck_by(FaultKind::kHang) ||
          (head_ && (struck_by(FaultKind::kStallStream) || struck_by(FaultKind::kExpireWatch)));
      Pipe::Taken taken;
      if (!silent) taken = late_.take(*pipe_);
      if (taken.broken) fail(Kind::kBroken, "the connection broke");
      if (taken.ended) co_return false;
      if (!taken.bytes.empty()) {
        input_ += taken.bytes;
        boost::system::error_code error;
        while (!input_.empty() && !parser_.is_done()) {
          const std::size_t used = parser_.put(asio::buffer(input_), error);
          input_.erase(0, used);
          if (error == beast_http::error::need_more) break;
          if (error) fail(Kind::kProtocol, "the answer is not HTTP: " + error.message());
        }
        co_return true;
      }
      SteadyTime until = std::min({taken.again, deadline_, cut_at_});
      // Wakes up in time to notice a partition, and its end.
      const auto now = steady_clock::now();
      if (const auto since = link_->cut_since())
        until = std::min(until, std::max(now + std::chrono::seconds(1), *since + kDeadConnection));
      co_await pipe_->wait(until);
    }
  }

  const std::string what_;
  const std::shared_ptr<Link> link_;
  NetworkEvents& events_;
  const RequestNote note_;
  const SteadyTime deadline_;
  const std::shared_ptr<Pipe> pipe_;  // to this side
  const std::shared_ptr<ToServer> to_server_ = std::make_shared<ToServer>();
  bool cancelled_ = false;  // guarded by to_server_->mutex
  // Used by the reading coroutine only:
  beast_http::response_parser<beast_http::string_body> parser_;
  std::string input_;
  std::optional<HttpHead> head_;
  std::optional<std::string> replaced_;
  SteadyTime cut_at_ = SteadyTime::max();
  Late late_;
  Repeats repeats_;
  bool told_ = false;
  const bool held_back_;
};

class Transport : public HttpTransport {
 public:
  Transport(std::string process, std::shared_ptr<Link> link, NetworkEvents& events,
            HttpServer server, unsigned server_number)
      : process_(std::move(process)),
        link_(std::move(link)),
        events_(events),
        server_(std::move(server)),
        server_number_(server_number) {}

  std::shared_ptr<HttpExchange> start(HttpRequest request,
                                      asio::any_io_executor executor) override {
    RequestNote note;
    note.process = process_;
    note.method = request.method;
    note.target = request.target;
    note.server = server_number_;
    events_.on_request(note);
    const std::string asked = note.asked.empty() ? note.target : note.asked;
    auto exchange =
        std::make_shared<Exchange>(request.method + " " + server_.url + request.target, link_,
                                   events_, std::move(note), request, std::move(executor));
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(exchanges_, [](const auto& weak) { return weak.expired(); });
      exchanges_.push_back(exchange);
      if (closed_) exchange->cancel();
    }
    exchange->begin(encode(request, asked));
    return exchange;
  }

  void shutdown() override {
    std::vector<std::weak_ptr<Exchange>> all;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      all.swap(exchanges_);
    }
    for (const auto& weak : all) {
      if (const auto exchange = weak.lock()) exchange->cancel();
    }
  }

  const HttpServer& server() const override { return server_; }

 private:
  std::string encode(const HttpRequest& request, const std::string& target) const {
    std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {}\r\n",
                                  request.method, target, server_.user_agent);
    for (const auto& header : request.headers) out += header + "\r\n";
    if (request.method != "GET") out += fmt::format("Content-Length: {}\r\n", request.body.size());
    out += "Connection: close\r\n\r\n";
    out += request.body;
    return out;
  }

  const std::string process_;
  const std::shared_ptr<Link> link_;
  NetworkEvents& events_;
  const HttpServer server_;
  const unsigned server_number_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Exchange>> exchanges_;  // guarded by mutex_, as is closed_
  bool closed_ = false;
};

}  // namespace

bool RequestNote::watches() const {
  return target.find("watch=true") != std::string::npos ||
         target.find("watch=1") != std::string::npos;
}

bool RequestNote::asks_any_version() const {
  return !writes() && !watches() && target.find("resourceVersion=0") != std::string::npos;
}

bool RequestNote::asks_first_state() const {
  return target.find("sendInitialEvents=true") != std::string::npos &&
         target.find("resourceVersion=") == std::string::npos;
}

std::shared_ptr<HttpTransport> NetworkOf::create(asio::io_context&, HttpServer server) {
  return std::make_shared<Transport>(process_, link_, events_, std::move(server), server_);
}

}  // namespace lookout::sim
