#include "lookout/base/http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/system_error.hpp>
#include <cstdint>
#include <ctime>
#include <utility>

#include "lookout/base/ascii.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/http/web_guard.h"
#include "lookout/base/numbers.h"
#include "lookout/base/pinned.h"

namespace lookout::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using Parser = beast_http::request_parser<beast_http::string_body>;

/// The maximum size of buffered input. More input stays in the socket.
constexpr std::size_t kMaxInput = 256 * 1024;
/// The time limit for the peer's close_notify.
constexpr std::chrono::seconds kShutdownTimeout{2};

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return {text, n};
}

/// Points to a stream while it is being sent.
class StreamInUse : public base::Pinned {
 public:
  StreamInUse(BodyStream*& pointer, BodyStream& stream) : pointer_(pointer) { pointer_ = &stream; }
  ~StreamInUse() { pointer_ = nullptr; }

 private:
  BodyStream*& pointer_;
};

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

/// Call before reading the body, so that trailers do not become headers. False if the target is
/// invalid.
bool take_head(const Parser& parser, Request& request) {
  const auto& message = parser.get();
  request.method = std::string(view(message.method_string()));
  for (const auto& field : message) {
    const std::string name = base::lower_case(view(field.name_string()));
    const std::string value(view(field.value()));
    const auto [known, is_new] = request.headers.try_emplace(name, value);
    if (is_new) continue;
    auto& all = request.repeated[name];
    if (all.empty()) all.push_back(known->second);
    all.push_back(value);
    if (!known->second.empty()) known->second += ", ";
    known->second += value;
  }
  return parse_target(std::string(view(message.target())), request);
}

/// Whether the input after a head contains its body. False if the size is not known yet.
bool has_body(std::string_view input, const Request& head) {
  const auto size = base::parse_number<std::uint64_t>(head.header("content-length"));
  return size && *size <= input.size();
}

}  // namespace

Connection::Connection(asio::any_io_executor executor, std::unique_ptr<Transport> transport,
                       const Limits& limits, const Handler& handler, const ErrorBody& error_body,
                       const HeadCheck& check_head)
    : transport_(std::move(transport)),
      limits_(limits),
      handler_(handler),
      error_body_(error_body),
      check_head_(check_head),
      bell_(executor),
      reader_bell_(executor),
      executor_(std::move(executor)) {}

void Connection::start(std::function<void()> done) {
  done_ = std::move(done);
  ++coroutines_;
  asio::co_spawn(executor_, run(), [self = shared_from_this()](const std::exception_ptr&) {
    self->close();
    if (--self->coroutines_ == 0) self->done_();
  });
}

void Connection::check(Clock::time_point now) {
  if (now < deadline_) return;
  if (writing_ && stream_ != nullptr) stream_->on_slow_client();
  close();
}

void Connection::drain() {
  draining_ = true;
  if (stream_ != nullptr && stream_->is_open_ended()) stream_->end();
  if (idle_) bell_.ring_here();
  if (has_head_) return;
  const auto before = deadline_;
  deadline_in(limits_.drain_header_timeout);
  deadline_ = std::min(deadline_, before);
}

void Connection::header_deadline() {
  deadline_in(draining_ ? std::min(limits_.header_timeout, limits_.drain_header_timeout)
                        : limits_.header_timeout);
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  transport_->close();
  gone_.request_stop();
  if (stream_ != nullptr) stream_->end();
  bell_.ring_here();
  reader_bell_.ring_here();
}

Awaitable<void> Connection::run() {
  try {
    header_deadline();
    co_await transport_->handshake();
    ++coroutines_;
    asio::co_spawn(executor_, read_input(), [self = shared_from_this()](const std::exception_ptr&) {
      if (--self->coroutines_ == 0) self->done_();
    });
    co_await serve();
    deadline_in(kShutdownTimeout);
    co_await transport_->shutdown();
    if (!draining_) co_await linger();
  } catch (const boost::system::system_error& e) {
    // The peer closed the connection.
    log::trace("connection from {}: {}", transport_->client_address(), e.code().message());
  } catch (const std::exception& e) {
    log::error("connection from {}: {}", transport_->client_address(), e.what());
  }
}

/// Reads continuously, also during a request, to notice when the client disconnects.
Awaitable<void> Connection::read_input() {
  try {
    while (!closed_) {
      if (input_.size() >= kMaxInput) {
        co_await reader_bell_.wait();
        continue;
      }
      const bool more = co_await transport_->read(input_);
      if (!more) break;
      bell_.ring_here();
    }
  } catch (const boost::system::system_error&) {
    // Treated as the end of the input.
  }
  input_ended_ = true;
  gone_.request_stop();
  if (stream_ != nullptr && stream_->is_open_ended()) stream_->end();
  bell_.ring_here();
}

/// Reads the client's remaining input: closing immediately could discard the response.
Awaitable<void> Connection::linger() {
  while (!input_ended_ && !closed_) {
    input_.clear();
    reader_bell_.ring_here();
    co_await bell_.wait(deadline_);
    if (Clock::now() >= deadline_) co_return;
  }
}

/// False at the end of the input.
Awaitable<bool> Connection::wait_for_input() {
  const std::size_t before = input_.size();
  while (input_.size() == before) {
    if (input_ended_ || closed_ || (idle_ && draining_)) co_return false;
    co_await bell_.wait();
  }
  co_return true;
}

Awaitable<void> Connection::serve() {
  while (keep_alive_ && !draining_ && !closed_) {
    Incoming incoming = co_await read_request();
    if (incoming.kind == Incoming::Kind::kNothing) co_return;
    has_head_ = true;
    no_deadline();
    keep_alive_ = incoming.keep_alive;
    const bool head_only = incoming.request.method == "HEAD";
    if (incoming.kind == Incoming::Kind::kBroken) {
      co_await answer(std::move(incoming.failure), false, true);
      co_return;
    }
    Response response;
    try {
      response = co_await handler_(std::move(incoming.request));
    } catch (const std::exception& e) {
      // A closed connection cancels its handlers.
      if (closed_) throw;
      log::error("a request has failed: {}", e.what());
      response = error_body_(500, "internal server error");
    } catch (...) {
      if (closed_) throw;
      log::error("a request has failed: its handler threw something that is not a std::exception");
      response = error_body_(500, "internal server error");
    }
    co_await answer(std::move(response), head_only, incoming.chunked);
  }
}

Awaitable<Connection::Incoming> Connection::read_request() {
  Incoming incoming;
  has_head_ = false;
  idle_ = input_.empty();
  if (idle_) {
    deadline_in(limits_.idle_timeout);
  } else {
    header_deadline();
  }
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(limits_.max_header_bytes));
  parser.body_limit(limits_.max_body_bytes);
  bool told_to_continue = false;
  bool in_body = false;
  while (!parser.is_done()) {
    boost::system::error_code error;
    const std::size_t used = input_.empty() ? 0 : parser.put(asio::buffer(input_), error);
    const bool progress = used > 0;
    input_.erase(0, used);
    if (input_.capacity() > kMaxInput / 4 && input_.empty()) std::string().swap(input_);
    if (progress) reader_bell_.ring_here();
    if (error && error != beast_http::error::need_more) {
      const bool header = error == beast_http::error::header_limit;
      const bool body = error == beast_http::error::body_limit;
      incoming.failure = error_body_(header ? 431 : body ? 413 : 400, error.message());
      incoming.kind = Incoming::Kind::kBroken;
      co_return incoming;
    }
    if (parser.is_header_done() && !in_body) {
      in_body = has_head_ = true;
      deadline_in(limits_.body_timeout);
      incoming.request.client_address = transport_->client_address();
      incoming.request.peer = transport_->peer();
      const bool makes_sense = take_head(parser, incoming.request);
      auto failure = makes_sense ? check_head(incoming.request, parser.get().version())
                                 : error_body_(400, "malformed target");
      if (failure) {
        incoming.failure = std::move(*failure);
        incoming.kind = Incoming::Kind::kBroken;
        co_return incoming;
      }
    }
    if (in_body && !parser.is_done() && !told_to_continue && parser.get().version() >= 11 &&
        boost::beast::iequals(parser.get()[beast_http::field::expect], "100-continue")) {
      told_to_continue = true;
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      std::vector<asio::const_buffer> buffers{asio::buffer(kContinue)};
      if (!write_now(buffers)) co_await write_rest(buffers);
      deadline_in(limits_.body_timeout);
    }
    if (parser.is_done() || (progress && !input_.empty())) continue;
    const bool more = co_await wait_for_input();
    if (!more) {
      // No response to an incomplete request.
      co_return incoming;
    }
    if (std::exchange(idle_, false)) header_deadline();
  }
  idle_ = false;
  incoming.keep_alive = parser.get().keep_alive();
  incoming.chunked = parser.get().version() >= 11;
  incoming.kind = Incoming::Kind::kRequest;
  incoming.request.body = std::move(parser.get().body());
  incoming.request.gone = gone_.get_token();
  co_return incoming;
}

/// Rejects requests that Go's net/http server rejects because servers could interpret them
/// differently, and those that the application rejects.
std::optional<Response> Connection::check_head(const Request& head, unsigned version) const {
  constexpr unsigned kHttp11 = 11;
  if (version >= kHttp11 && !head.headers.contains("host"))
    return error_body_(400, "missing required Host header");
  if (head.repeated.contains("host")) return error_body_(400, "too many Host headers");
  if (const auto encoding = head.headers.find("transfer-encoding");
      encoding != head.headers.end()) {
    if (version < kHttp11) return error_body_(400, "HTTP/1.0 has no Transfer-Encoding");
    if (base::lower_case(encoding->second) != "chunked")
      return error_body_(501, "unsupported transfer encoding");
  }
  // If the body has arrived with the head, the handler's checks suffice.
  if (check_head_ && announces_body(head) && !has_body(input_, head)) return check_head_(head);
  return std::nullopt;
}

/// Usually the socket accepts everything immediately, without a coroutine and a deadline. Returns
/// false if data is left in `buffers`.
bool Connection::write_now(std::vector<asio::const_buffer>& buffers) {
  std::size_t written = transport_->write_now(buffers);
  auto rest = buffers.begin();
  while (rest != buffers.end() && written >= rest->size()) written -= (rest++)->size();
  buffers.erase(buffers.begin(), rest);
  if (buffers.empty()) return true;
  buffers.front() += written;
  return false;
}

Awaitable<void> Connection::write_rest(std::span<const asio::const_buffer> buffers) {
  writing_ = true;
  deadline_in(limits_.write_timeout);
  co_await transport_->write(buffers);
  writing_ = false;
  no_deadline();
}

Awaitable<void> Connection::answer(Response response, bool head_only, bool chunked) {
  // Without chunks, the end of the connection ends the body.
  if (draining_ || (response.stream && !chunked)) keep_alive_ = false;
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status,
      view(beast_http::obsolete_reason(static_cast<beast_http::status>(response.status))),
      http_date());
  // A response without a body has no content type, nor has one whose type is empty.
  constexpr int kNoContent = 204;
  constexpr int kNotModified = 304;
  const bool nothing = response.status == kNoContent || response.status == kNotModified;
  if (!nothing && !response.content_type.empty())
    head += fmt::format("Content-Type: {}\r\n", response.content_type);
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!keep_alive_) {
    head += "Connection: close\r\n";
  } else if (!chunked) {
    // HTTP/1.0: without this header, clients wait for the end of the connection.
    head += "Connection: keep-alive\r\n";
  }
  if (response.stream) {
    head += chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
    if (!head_only) {
      co_await answer_with_stream(response, std::move(head), chunked);
      co_return;
    }
    response.body.clear();
  } else {
    if (!nothing) head += fmt::format("Content-Length: {}\r\n", response.body.size());
    head += "\r\n";
  }
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  if (!head_only && !response.body.empty()) buffers.push_back(asio::buffer(response.body));
  if (!write_now(buffers)) co_await write_rest(buffers);
}

Awaitable<void> Connection::answer_with_stream(Response& response, std::string head, bool chunked) {
  BodyStream& stream = *response.stream;
  // Resets the pointer on every exit.
  const StreamInUse in_use(stream_, stream);
  stream.cut_off = [executor = executor_, weak = weak_from_this(), which = &stream] {
    asio::post(executor, [weak, which] {
      const auto self = weak.lock();
      if (self == nullptr || self->stream_ != which || !self->writing_) return;
      self->stream_->on_slow_client();
      self->close();
    });
  };
  if (stream.is_open_ended()) {
    std::vector<asio::const_buffer> first{asio::buffer(head)};
    if (!write_now(first)) co_await write_rest(first);
    head.clear();
    if (input_ended_ || draining_) stream.end();
  }
  std::vector<Piece> pieces;
  std::vector<asio::const_buffer> buffers;
  for (bool more = true; more;) {
    more = co_await stream.next(pieces);
    if (closed_) throw boost::system::system_error(asio::error::operation_aborted);
    buffers.clear();
    std::size_t size = 0;
    for (const Piece& piece : pieces) size += piece->size();
    std::string chunk_head = std::exchange(head, {});
    if (chunked && size > 0) chunk_head += fmt::format("{:x}\r\n", size);
    buffers.push_back(asio::buffer(chunk_head));
    for (const Piece& piece : pieces) buffers.push_back(asio::buffer(*piece));
    std::string_view tail = chunked && size > 0 ? "\r\n" : "";
    if (chunked && !more) tail = size > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n";
    buffers.push_back(asio::buffer(tail));
    if (!write_now(buffers)) co_await write_rest(buffers);
    pieces.clear();
  }
}

}  // namespace lookout::http
