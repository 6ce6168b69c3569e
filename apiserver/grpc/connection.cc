#include "apiserver/grpc/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <utility>

#include "lookout/base/ascii.h"

namespace lookout::apiserver::grpc {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Kind = rest::TransportError::Kind;

/// The gRPC codes that HTTP statuses are mapped to.
enum Code {
  kUnknown = 2,
  kPermissionDenied = 7,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16
};

int code_of_http(std::string_view status) {
  if (status == "400") return kInternal;
  if (status == "401") return kUnauthenticated;
  if (status == "403") return kPermissionDenied;
  if (status == "404") return kUnimplemented;
  if (status == "429" || status == "502" || status == "503" || status == "504") return kUnavailable;
  return kUnknown;
}

/// Decodes "%41" to "A". Keeps a percent sign that is not followed by two hexadecimal digits.
std::string decode_percents(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? base::hex_value(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : base::hex_value(text[i + 2]);
    if (low < 0) {
      out.push_back(text[i]);
    } else {
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

/// The status in the trailers of a response.
Status status_of(const Headers& trailers) {
  const std::string_view code = find_header(trailers, "grpc-status");
  Status out;
  const auto parsed = std::from_chars(code.data(), code.data() + code.size(), out.code);
  if (parsed.ec != std::errc() || parsed.ptr != code.data() + code.size() || out.code < 0)
    return {kUnknown, "the response has no valid status"};
  out.message = decode_percents(find_header(trailers, "grpc-message"));
  return out;
}

std::string timeout_of(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  // gRPC allows eight digits.
  return std::to_string(std::clamp<std::int64_t>(left.count(), 1, 99'999'999)) + "m";
}

Kind kind_of(const error_code& error) {
  if (error == asio::error::connection_refused) return Kind::kRefused;
  // One side rejects the other one's certificate.
  if (error.category() == asio::error::get_ssl_category()) return Kind::kTls;
  return Kind::kBroken;
}

void set_options(asio::ip::tcp::socket& socket, std::chrono::milliseconds timeout) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  // The kernel closes the connection if sent bytes are not acknowledged for this long.
  const auto unacknowledged = static_cast<unsigned>(timeout.count());
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
             sizeof unacknowledged);
}

}  // namespace

Connection::Connection(Strand strand, const Server& server,
                       std::shared_ptr<const rest::Credential> certificate,
                       std::shared_ptr<const std::string> ca, GiveBack give_back,
                       std::function<void()> too_many_pings)
    : strand_(std::move(strand)),
      server_(server),
      certificate_(std::move(certificate)),
      ca_(std::move(ca)),
      give_back_(std::move(give_back)),
      too_many_pings_(std::move(too_many_pings)),
      resolver_(strand_),
      timer_(strand_),
      session_(Http2Session::Role::kClient, session_callbacks()) {
  const std::size_t scheme = server.url.find("://");
  tls_ = server.url.starts_with("https:");
  host_ = server.url.substr(scheme + 3);
  host_ = host_.substr(0, host_.find('/'));
  authority_ = host_;
  const std::size_t colon = host_.rfind(':');
  if (colon != std::string::npos && host_.find(']', colon) == std::string::npos) {
    port_ = host_.substr(colon + 1);
    host_.resize(colon);
  } else {
    port_ = tls_ ? "443" : "80";
  }
  if (host_.starts_with('[') && host_.ends_with(']')) host_ = host_.substr(1, host_.size() - 2);
}

template <class F>
void Connection::with_stream(F f) {
  if (secure_) {
    f(*secure_);
  } else {
    f(*plain_);
  }
}

// --- connecting

void Connection::connect() {
  wake_at(Clock::now() + server_.connect_timeout);
  try {
    if (tls_) {
      const bool known = certificate_ != nullptr;
      tls_context_.emplace(make_client_context(ca_ != nullptr ? *ca_ : "",
                                               known ? certificate_->client_certificate : "",
                                               known ? certificate_->client_key : ""));
      secure_.emplace(strand_, *tls_context_);
      expect_server(*secure_, host_);
    } else {
      plain_.emplace(strand_);
    }
  } catch (const std::exception& e) {
    close(Kind::kTls, e.what());
    return;
  }
  resolver_.async_resolve(
      host_, port_, [self = shared_from_this()](const error_code& error, const auto& addresses) {
        if (self->state_ == State::kClosed) return;
        if (error) return self->close(Kind::kUnreachable, error.message());
        Dialer::Addresses all;
        for (const auto& address : addresses) all.push_back(address.endpoint());
        self->dial(std::move(all));
      });
}

void Connection::dial(Dialer::Addresses addresses) {
  auto& socket = secure_ ? secure_->next_layer() : *plain_;
  const auto dialer = std::make_shared<Dialer>(socket, std::move(addresses), timer_.expiry(),
                                               [self = shared_from_this()](const error_code& why) {
                                                 if (why) return self->lose(why);
                                                 self->on_connected();
                                               });
  dialer_ = dialer;
  dialer->start();
}

void Connection::on_connected() {
  if (state_ == State::kClosed) return;
  set_options(secure_ ? secure_->next_layer() : *plain_, server_.ping_after + server_.ping_timeout);
  if (!secure_) return begin_session();
  secure_->async_handshake(
      asio::ssl::stream_base::client, [self = shared_from_this()](const error_code& error) {
        if (error) return self->lose(error);
        if (!speaks_http2(*self->secure_)) {
          return self->close(Kind::kProtocol, "the server does not speak HTTP/2");
        }
        self->begin_session();
      });
}

void Connection::begin_session() {
  if (state_ == State::kClosed) return;
  read();
  write();
}

/// Calls are sent only after the server's settings have arrived. A server that hangs before has not
/// started any of them, so they may be sent to another one.
void Connection::on_ready() {
  if (!session_.can_open()) return close(Kind::kUnreachable, "the server accepts no calls");
  state_ = State::kReady;
  heard_ = Clock::now();
  for (auto& call : std::exchange(waiting_, {})) {
    if (session_.can_open()) {
      open(std::move(call));
    } else {
      give_back_(std::move(call));
    }
  }
  watch_silence();
}

// --- transferring

void Connection::read() {
  with_stream([this](auto& stream) {
    stream.async_read_some(asio::buffer(input_),
                           [self = shared_from_this()](const error_code& error, std::size_t size) {
                             self->on_read(error, size);
                           });
  });
}

void Connection::on_read(const error_code& error, std::size_t size) {
  if (state_ == State::kClosed) return;
  if (error) return lose(error);
  heard_ = Clock::now();
  pinged_ = false;
  const bool good = session_.feed({input_.data(), size});
  if (state_ == State::kClosed) return;
  if (!good) return close(Kind::kProtocol, "the server violates HTTP/2: " + session_.error());
  write();
  close_if_done();
  if (state_ != State::kClosed) read();
}

void Connection::write() {
  if (writing_ || state_ == State::kClosed || !session_.has_output()) return;
  writing_ = true;
  output_ = session_.take_output();
  with_stream([this](auto& stream) {
    asio::async_write(stream, asio::buffer(output_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        self->writing_ = false;
                        if (self->state_ == State::kClosed) return;
                        // After an error, reading fails too, with a better reason.
                        if (!error) self->write();
                      });
  });
}

void Connection::lose(const error_code& error) {
  const bool ended = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
  // After the settings, TLS was established: the connection broke.
  const Kind kind = state_ == State::kReady ? Kind::kBroken : kind_of(error);
  close(kind, ended ? "the server has closed the connection" : error.message());
}

void Connection::close(Kind kind, std::string_view why) {
  if (state_ == State::kClosed) return;
  const bool was_ready = state_ == State::kReady;
  state_ = State::kClosed;
  end_.emplace(kind, std::string(why));
  resolver_.cancel();
  timer_.cancel();
  error_code ignored;
  if (plain_) plain_->close(ignored);
  if (secure_) secure_->lowest_layer().close(ignored);
  for (auto& [id, running] : std::exchange(running_, {})) {
    running.call->stream = 0;
    running.call->fail(kind, why);
  }
  // These calls were never sent.
  if (!was_ready && kind == Kind::kBroken) kind = Kind::kUnreachable;
  for (auto& call : std::exchange(waiting_, {})) call->fail(kind, why);
  if (const auto dialer = dialer_.lock()) dialer->stop();
}

void Connection::retire() {
  leaving_ = true;
  close_if_done();
}

void Connection::close_if_done() {
  if (leaving_ && running_.empty() && waiting_.empty())
    close(Kind::kBroken, "the connection has ended");
}

// --- calls

bool Connection::can_take() const {
  return !leaving_ &&
         (state_ == State::kConnecting || (state_ == State::kReady && session_.can_open()));
}

void Connection::begin(std::shared_ptr<CallState> call) {
  call->connection = weak_from_this();
  if (state_ == State::kClosed) return call->fail(end_->kind(), end_->what());
  if (state_ == State::kConnecting) {
    waiting_.push_back(std::move(call));
    return;
  }
  const bool was_idle = running_.empty();
  if (was_idle) heard_ = Clock::now();
  open(std::move(call));
  if (was_idle) watch_silence();
  write();
}

void Connection::open(std::shared_ptr<CallState> call) {
  const CallRequest& request = call->request;
  Headers headers = {
      {":method", "POST"},        {":scheme", tls_ ? "https" : "http"}, {":path", request.path},
      {":authority", authority_}, {"content-type", "application/grpc"}, {"te", "trailers"},
      {"user-agent", "lookout"}};
  if (request.deadline != Clock::time_point::max())
    headers.emplace_back("grpc-timeout", timeout_of(request.deadline));
  headers.insert(headers.end(), request.metadata.begin(), request.metadata.end());
  const StreamId id = session_.open(headers);
  session_.send(id, framed(request.message), !request.streaming);
  call->stream = id;
  call->opened();
  running_.emplace(id, Running{std::move(call)});
}

void Connection::send(const CallState& call, std::string_view message) {
  if (call.stream == 0) return;
  session_.send(call.stream, framed(message), false);
  write();
}

void Connection::consumed(const CallState& call, std::size_t bytes) {
  if (call.stream == 0) return;
  session_.consumed(call.stream, bytes);
  write();
}

void Connection::cancel(const CallState& call) {
  if (call.stream == 0) {
    std::erase_if(waiting_, [&](const auto& waiting) { return waiting.get() == &call; });
  } else {
    session_.reset(call.stream, Http2Error::kCancel);
    running_.erase(call.stream);
    write();
  }
  close_if_done();
}

void Connection::end(Calls::iterator at, Status status) {
  at->second.call->stream = 0;
  at->second.call->finish(std::move(status));
  running_.erase(at);
}

Http2Session::Callbacks Connection::session_callbacks() {
  Http2Session::Callbacks out;
  out.ready = [this] { on_ready(); };
  out.headers = [this](StreamId id, Headers headers, bool end) {
    on_headers(id, std::move(headers), end);
  };
  out.data = [this](StreamId id, std::string_view bytes, bool end) { on_data(id, bytes, end); };
  out.reset = [this](StreamId id, Http2Error why) { on_reset(id, why); };
  out.going_away = [this](StreamId last, Http2Error why, const std::string& text) {
    on_going_away(last, why, text);
  };
  return out;
}

void Connection::on_headers(StreamId id, Headers headers, bool ends) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  if (!at->second.has_head) {
    const std::string_view status = find_header(headers, ":status");
    if (status.starts_with('1')) return;
    at->second.has_head = true;
    const bool is_grpc = find_header(headers, "content-type").starts_with("application/grpc");
    if ((status != "200" || !is_grpc) && find_header(headers, "grpc-status").empty()) {
      if (!ends) session_.reset(id, Http2Error::kCancel);
      const std::string why = is_grpc || status != "200"
                                  ? fmt::format("the server answered with HTTP status {}", status)
                                  : "the server does not speak gRPC";
      return end(at, {code_of_http(status), why});
    }
    if (!ends) return;
  }
  if (!ends) session_.reset(id, Http2Error::kProtocol);
  end(at, status_of(headers));
}

void Connection::on_data(StreamId id, std::string_view bytes, bool ends) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  at->second.call->receive(bytes);
  if (ends) end(at, {kInternal, "the response ended without a status"});
}

void Connection::on_reset(StreamId id, Http2Error why) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  const auto call = std::move(at->second.call);
  running_.erase(at);
  call->stream = 0;
  if (why == Http2Error::kRefusedStream) {
    call->fail(Kind::kUnreachable, "the server did not start the call");
  } else {
    call->fail(Kind::kBroken, fmt::format("the server ended the stream with error {}",
                                          static_cast<unsigned>(why)));
  }
}

void Connection::on_going_away(StreamId last, Http2Error why, const std::string& text) {
  leaving_ = true;
  if (why == Http2Error::kEnhanceYourCalm && text == "too_many_pings") too_many_pings_();
  for (auto at = running_.begin(); at != running_.end();) {
    if (at->first <= last) {
      ++at;
      continue;
    }
    at->second.call->stream = 0;
    at->second.call->fail(Kind::kUnreachable,
                          "the server is shutting down and did not start the call: " + text);
    at = running_.erase(at);
  }
}

// --- silence

void Connection::wake_at(Clock::time_point when) {
  armed_ = true;
  timer_.expires_at(when);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->state_ == State::kClosed) return;
    self->armed_ = false;
    self->on_wake();
  });
}

void Connection::on_wake() {
  if (state_ == State::kConnecting) {
    close(Kind::kUnreachable,
          fmt::format("no connection within {} ms", server_.connect_timeout.count()));
    return;
  }
  watch_silence();
}

void Connection::watch_silence() {
  if (running_.empty() || (armed_ && timer_.expiry() <= heard_ + server_.ping_after)) return;
  const auto now = Clock::now();
  if (pinged_ && now >= heard_ + server_.ping_after + server_.ping_timeout) {
    close(Kind::kBroken, "the server is silent");
    return;
  }
  if (!pinged_ && now >= heard_ + server_.ping_after) {
    pinged_ = true;
    session_.ping();
    write();
  }
  wake_at(pinged_ ? now + server_.ping_timeout : heard_ + server_.ping_after);
}

}  // namespace lookout::apiserver::grpc
