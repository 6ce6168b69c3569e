#include "lookout/rest/detail/http_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <unordered_map>

#include "lookout/base/ascii.h"
#include "lookout/base/async_event.h"
#include "lookout/base/numbers.h"
#include "rest/buffer_pool.h"
#include "rest/call_from_c.h"
#include "rest/connection_monitor.h"
#include "rest/curl_multi.h"
#include "rest/refused_stream.h"
#include "rest/server_address.h"
#include "rest/tls_policy.h"

namespace lookout::rest {

bool is_connection_refused(const std::exception& e) {
  const auto* error = dynamic_cast<const TransportError*>(&e);
  return error != nullptr && error->kind() == TransportError::Kind::kRefused;
}

bool is_cancelled(const std::exception& e) {
  const auto* error = dynamic_cast<const TransportError*>(&e);
  return error != nullptr && error->kind() == TransportError::Kind::kCancelled;
}

bool is_transient(const std::exception& e) {
  const auto* error = dynamic_cast<const TransportError*>(&e);
  if (error == nullptr) return false;
  switch (error->kind()) {
    case TransportError::Kind::kRefused:
    case TransportError::Kind::kUnreachable:
    case TransportError::Kind::kTimeout:
    case TransportError::Kind::kBroken:
      return true;
    default:
      return false;
  }
}

namespace detail {
namespace {

class CurlTransport;

/// What the transport's strand and the reading coroutine share.
struct Flow {
  // How much of a body may lie unread before the server has to wait.
  static constexpr std::size_t kHighWater = 256u << 10;

  Flow(boost::asio::any_io_executor executor, std::weak_ptr<CurlTransport> owner,
       std::shared_ptr<BufferPool> pool, std::string description)
      : event(std::move(executor)),
        transport(std::move(owner)),
        buffers(std::move(pool)),
        what(std::move(description)) {}

  AsyncEvent event;
  const std::weak_ptr<CurlTransport> transport;
  const std::shared_ptr<BufferPool> buffers;
  const std::string what;  // "GET https://host/path", for messages

  std::mutex mutex;
  std::optional<HttpHead> head;  // guarded by mutex, as all below
  std::string buffer;
  bool paused = false;
  bool finished = false;
  std::optional<TransportError> error;
  bool cancelled = false;

  CURL* easy = nullptr;  // on the transport's strand only; null before and after the transfer

  /// With the mutex held.
  void throw_if_cancelled() const {
    if (!cancelled) return;
    // Why it could not go on says more, if it says that it was ended, too.
    if (error && error->kind() == TransportError::Kind::kCancelled) throw TransportError(*error);
    throw TransportError(TransportError::Kind::kCancelled, what + ": cancelled");
  }

  /// True if the reader has to be woken.
  void finish(std::optional<TransportError> why) {
    const std::lock_guard lock(mutex);
    finished = true;
    error = std::move(why);
  }
};

using Kind = TransportError::Kind;

/// CallOptions::may_send has said no.
constexpr const char* kNotSent = ": not sent: its sender may not send it any more";

/// What the other side says in TLS when it does not want to go on (RFC 8446, 6.2); with TLS 1.3 it
/// comes after what this side takes for the end of the handshake.
bool is_tls_alert(std::string_view text) {
  return text.find("SSL routines") != std::string_view::npos &&
         text.find(" alert ") != std::string_view::npos;
}

/// Whether the other side went away in the middle of the handshake: a server or a proxy that ends
/// or is only beginning, and not one that is somebody else.
bool broke_in_handshake(std::string_view text) {
  for (const char* sign : {"SSL_ERROR_SYSCALL", "reset by peer", "Broken pipe", "unexpected eof"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

Kind kind_of(CURLcode code, CURL* easy, std::string_view text) {
  long proxy_answer = 0;
  curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &proxy_answer);
  if (code == CURLE_RECV_ERROR && proxy_answer >= 300) return Kind::kUnreachable;
  if ((code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) && is_tls_alert(text))
    return Kind::kTls;
  switch (code) {
    case CURLE_COULDNT_CONNECT: {
      long os_error = 0;
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
      return os_error == ECONNREFUSED ? Kind::kRefused : Kind::kUnreachable;
    }
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Kind::kUnreachable;
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t connected = 0;
      curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &connected);
      curl_off_t connected_plain = 0;
      curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connected_plain);
      return connected == 0 && connected_plain == 0 ? Kind::kUnreachable : Kind::kTimeout;
    }
    case CURLE_SSL_CONNECT_ERROR:
      return broke_in_handshake(text) ? Kind::kBroken : Kind::kTls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return Kind::kTls;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return Kind::kBroken;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
      return Kind::kProtocol;
    default:
      return Kind::kOther;
  }
}

ConnectionMonitor::Port local_port_of(CURL* easy) {
  long port = 0;
  curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &port);
  return static_cast<ConnectionMonitor::Port>(std::max(port, 0L));
}

/// The flows whose readers have something to look at, until libcurl has done what it could do: a
/// reader that is woken then finds the head, the body and the end of a short answer at once. Used
/// on the strand only.
class News {
 public:
  void add(std::shared_ptr<Flow> flow) {
    // It is mostly the last one.
    if (flows_.empty() || flows_.back() != flow) flows_.push_back(std::move(flow));
  }

  /// Something has come over a connection that transfers may share.
  void came_over_shared_connection() { shared_ = true; }
  bool over_shared_connection() const { return shared_; }

  /// Wakes the readers, after the handler that runs now.
  void tell() {
    for (const auto& flow : flows_) flow->event.ring_next();
    flows_.clear();
    shared_ = false;
  }

 private:
  bool shared_ = false;
  std::vector<std::shared_ptr<Flow>> flows_;
};

struct Transfer;
using Transfers = std::unordered_map<CURL*, std::unique_ptr<Transfer>>;

/// One request on its way; lives on the strand from start to end.
struct Transfer {
  std::shared_ptr<Flow> flow;
  ConnectionMonitor* monitor = nullptr;
  const Transfers* all = nullptr;  // those of the transport
  News* news = nullptr;
  HttpRequest request;
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  HttpHead head;
  bool head_done = false;
  std::size_t sent = 0;  // of the body
  bool held_back = false;
  bool held = false;  // what arrived last was not taken; libcurl holds it
  // libcurl hands over what it has held. Over HTTP/2 it lets the server send more (up to 32 MB)
  // each time that a transfer goes on, and gives up one for which it would have to hold 64 MB.
  bool takes_all = false;
  bool probe = false;  // the monitor's question
  StreamNotes stream;
  int begun_again = 0;
  const ConnectionMonitor::TimePoint begun = ConnectionMonitor::Clock::now();
  ConnectionMonitor::TimePoint heard = ConnectionMonitor::TimePoint::min();
  ConnectionMonitor::Port lost_port = 0;  // of the connection that was given up
  std::string lost;                       // why
  char error[CURL_ERROR_SIZE] = {};
  std::string failure;  // what a callback threw

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
  }

  std::size_t on_header(std::string_view line) {
    heard = ConnectionMonitor::Clock::now();
    if (head.http2) news->came_over_shared_connection();
    if (line.starts_with("HTTP/")) {
      head = {};
      head.http2 = line.starts_with("HTTP/2");
      const std::size_t space = line.find(' ');
      if (space != std::string_view::npos)
        std::from_chars(line.data() + space + 1, line.data() + line.size(), head.status);
    } else if (base::starts_with_ignoring_case(line, "content-type:")) {
      head.content_type = base::trim(line.substr(13));
    } else if (base::starts_with_ignoring_case(line, "retry-after:")) {
      // A date is possible, too; like client-go, we take numbers only.
      const auto seconds = base::parse_number<std::int32_t>(base::trim(line.substr(12)));
      if (seconds && *seconds >= 0) head.retry_after = std::chrono::seconds(*seconds);
    } else if (base::starts_with_ignoring_case(line, "warning:")) {
      head.warnings.emplace_back(base::trim(line.substr(8)));
    } else if (base::trim(line).empty() && head.status >= 200 && !head_done) {
      head_done = true;
      {
        const std::lock_guard lock(flow->mutex);
        flow->head = head;
      }
      news->add(flow);
    }
    return line.size();
  }

  std::size_t on_send(char* out, std::size_t size) {
    if (sent == 0 && request.held_back()) {
      held_back = true;
      return CURL_READFUNC_ABORT;
    }
    size = std::min(size, request.body.size() - sent);
    std::memcpy(out, request.body.data() + sent, size);
    sent += size;
    return size;
  }

  std::size_t on_body(std::string_view bytes) {
    heard = ConnectionMonitor::Clock::now();
    if (head.http2) news->came_over_shared_connection();
    bool ring = false;
    {
      const std::lock_guard lock(flow->mutex);
      held = flow->buffer.size() >= Flow::kHighWater && !takes_all;
      if (held) {
        flow->paused = true;
        return CURL_WRITEFUNC_PAUSE;
      }
      // The reader that finds nothing waits for the first bytes; the rest it will find by itself.
      ring = flow->buffer.empty();
      if (flow->buffer.capacity() < bytes.size() && ring) flow->buffer = flow->buffers->take();
      flow->buffer.append(bytes);
    }
    if (ring) news->add(flow);
    return bytes.size();
  }
};

std::size_t header_callback(char* data, std::size_t size, std::size_t count, void* transfer) {
  auto* const self = static_cast<Transfer*>(transfer);
  return call_from_c(self->failure, std::size_t{0}, [&] {
    return self->on_header({data, size * count});
  });
}

std::size_t write_callback(char* data, std::size_t size, std::size_t count, void* transfer) {
  auto* const self = static_cast<Transfer*>(transfer);
  return call_from_c(self->failure, std::size_t{CURL_WRITEFUNC_ERROR}, [&] {
    return self->on_body({data, size * count});
  });
}

std::size_t read_callback(char* out, std::size_t size, std::size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->on_send(out, size * count);
}

/// libcurl sends a request again when a kept connection breaks before the answer: even one that
/// changes something, and even if the server may have done it. It must not, once it has begun to
/// send the body: it cannot have the body again. It may if the server has refused the stream.
int seek_callback(void* pointer, curl_off_t offset, int origin) {
  auto* transfer = static_cast<Transfer*>(pointer);
  CURL* easy = transfer->flow->easy;
  if (offset != 0 || origin != SEEK_SET ||
      (!transfer->stream.never_begun() &&
       !was_refused(easy, transfer->error, transfer->monitor->socket_of(local_port_of(easy)))))
    return CURL_SEEKFUNC_FAIL;
  transfer->sent = 0;
  return CURL_SEEKFUNC_OK;
}

int debug_callback(CURL* easy, curl_infotype type, char* data, std::size_t size, void* transfer) {
  if (type != CURLINFO_TEXT) return 0;
  auto* const self = static_cast<Transfer*>(transfer);
  const auto last_begun = self->stream.note({data, size});
  if (!last_begun) return 0;
  const ConnectionMonitor::Port port = local_port_of(easy);
  for (const auto& [other, its] : *self->all) {
    if (local_port_of(other) == port) its->stream.gone_away(*last_begun);
  }
  return 0;
}

/// libcurl 7.88 does not let go of what it holds for a paused transfer that ends while others use
/// its connection: the next transfer of the handle would be given it, and the handle's end does not
/// free it. The end of a transfer that has a connection to itself does.
void let_go_of_held_data(CURL* easy) {
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "file");
  curl_easy_setopt(easy, CURLOPT_URL, "file:///dev/null");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_perform(easy);
}

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

/// What the strand does.
class CurlTransfers {
 public:
  CurlTransfers(boost::asio::io_context& context, HttpServer server)
      : server_(std::move(server)),
        direct_(bypasses_environment_proxy(server_.url)),
        strand_(boost::asio::make_strand(context)),
        multi_(create_multi()),
        lists_(create_multi()),
        monitor_(ConnectionMonitor::create(
            strand_, {server_.probe_after, server_.probe_timeout, server_.stream_silence},
            {[this](const auto& visit) { each_transfer(visit); }, [this] { return send_probe(); },
             [this](ConnectionMonitor::Port port, std::string_view why) { lost(port, why); }})) {}

  ~CurlTransfers() { close("the client was closed"); }

  const HttpServer& server() const { return server_; }
  const CurlMulti::Strand& strand() const { return strand_; }
  const std::shared_ptr<BufferPool>& buffers() const { return buffers_; }

  void begin(std::shared_ptr<Flow> flow, HttpRequest request) {
    if (closed_ || is_cancelled(*flow) || request.held_back()) {
      flow->finish(closed_ || is_cancelled(*flow)
                       ? cancelled_error(*flow)
                       : TransportError(Kind::kCancelled, flow->what + kNotSent));
      flow->event.ring();
      return;
    }
    auto transfer = std::make_unique<Transfer>();
    transfer->flow = std::move(flow);
    transfer->request = std::move(request);
    begin(std::move(transfer));
  }

  void begin(std::unique_ptr<Transfer> transfer) {
    monitor_->begun();
    transfer->monitor = monitor_.get();
    transfer->all = &transfers_;
    transfer->news = &news_;
    CURL* easy = take_easy();
    set_options(easy, *transfer);
    transfer->flow->easy = easy;
    const auto inserted = transfers_.emplace(easy, std::move(transfer)).first;
    if (const CURLMcode code = multi_of(easy).add(easy); code != CURLM_OK) {
      finish(*inserted->second,
             TransportError(Kind::kOther, fmt::format("{}: {}", inserted->second->flow->what,
                                                      curl_multi_strerror(code))));
      if (inserted->second->probe) monitor_->probe_ended(true);  // it has told nothing
      release(easy);
      news_.tell();
    }
  }

  void resume(const Flow& flow) {
    CURL* easy = flow.easy;
    if (easy == nullptr) return;
    transfers_.at(easy)->takes_all = true;
    multi_of(easy).resume(easy);
    if (const auto left = transfers_.find(easy); left != transfers_.end())
      left->second->takes_all = false;
  }

  void cancel(Flow& flow) {
    if (flow.easy == nullptr) return;
    CURL* easy = flow.easy;
    multi_of(easy).remove(easy);
    finish(*transfers_.at(easy), cancelled_error(flow));
    release(easy);
    news_.tell();
  }

  void close(std::string_view why) {
    closed_ = true;
    monitor_->stop();
    fail_all(Kind::kCancelled, why);
    news_.tell();
    for (CURL* easy : idle_) curl_easy_cleanup(easy);
    idle_.clear();
    multi_->close();
    lists_->close();
  }

 private:
  /// What libcurl hands back with a socket.
  struct Sockets {
    CurlTransfers* self;
    CurlMulti* multi;
  };

  std::shared_ptr<CurlMulti> create_multi() {
    return CurlMulti::create(
        strand_,
        {[this](CURL* easy, CURLcode result) { done(easy, result); },
         [this](const std::string& why) { fail_all(Kind::kBroken, why); }, [this] { acted(); }});
  }

  /// Whether a request has a connection to itself while it lasts. libcurl 7.88 may never tell the end
  /// of a long answer that shares one, so lists do not use HTTP/2. Their connections are kept apart:
  /// where it has met HTTP/1.1, libcurl does not share connections either.
  bool is_alone(const HttpRequest& request) const {
    return request.list && server_.url.starts_with("https:");
  }
  CurlMulti& multi_of(CURL* easy) {
    return is_alone(transfers_.at(easy)->request) ? *lists_ : *multi_;
  }

  void acted() {
    if (news_.over_shared_connection() && !transfers_.empty()) multi_->look_for_held_input();
    news_.tell();
  }

  static ConnectionMonitor::Transfer seen(CURL* easy, const Transfer& transfer) {
    return {local_port_of(easy), transfer.begun, transfer.heard, transfer.request.streaming};
  }

  void each_transfer(const std::function<void(const ConnectionMonitor::Transfer&)>& visit) {
    for (const auto& [easy, transfer] : transfers_) {
      // Nothing can come for those that hold back what has come.
      if (transfer->held) transfer->heard = ConnectionMonitor::Clock::now();
      if (!transfer->held && !transfer->probe) visit(seen(easy, *transfer));
    }
  }

  bool send_probe() {
    const auto any = std::find_if(transfers_.begin(), transfers_.end(), [](const auto& entry) {
      return !entry.second->probe && local_port_of(entry.first) != 0;
    });
    if (any == transfers_.end()) return false;
    // As those that wait: with their certificates it can take their connection.
    HttpRequest request;
    request.target = "/version";
    request.headers = any->second->request.headers;
    request.certificate = any->second->request.certificate;
    request.ca = any->second->request.ca;
    request.timeout = server_.probe_timeout;
    auto probe = std::make_unique<Transfer>();
    probe->flow = std::make_shared<Flow>(strand_, std::weak_ptr<CurlTransport>(), buffers_,
                                         "GET " + server_.url + request.target);
    probe->request = std::move(request);
    probe->probe = true;
    begin(std::move(probe));
    return true;
  }

  void lost(ConnectionMonitor::Port port, std::string_view why) {
    for (const auto& [easy, transfer] : transfers_) {
      if (local_port_of(easy) != port) continue;
      transfer->lost_port = port;
      transfer->lost = why;
    }
  }

  static int on_socket_opened(void* impl, curl_socket_t fd, curlsocktype) {
    // Data that nobody acknowledges ends the connection after this time; so do unanswered
    // keep-alive probes.
    const auto* sockets = static_cast<const Sockets*>(impl);
    CurlTransfers* const self = sockets->self;
    const auto timeout = static_cast<unsigned>(self->server_.user_timeout.count());
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    sockets->multi->opened(fd);
    self->monitor_->opened(fd);
    return CURL_SOCKOPT_OK;
  }

  static int on_socket_closed(void* impl, curl_socket_t fd) {
    const auto* sockets = static_cast<const Sockets*>(impl);
    sockets->self->monitor_->closed(fd);
    sockets->multi->closed(fd);
    return ::close(fd);
  }

  static bool is_cancelled(Flow& flow) {
    const std::lock_guard lock(flow.mutex);
    return flow.cancelled;
  }

  TransportError cancelled_error(const Flow& flow) const {
    return {Kind::kCancelled,
            fmt::format("{}: {}", flow.what, closed_ ? "the client was closed" : "cancelled")};
  }

  CURL* take_easy() {
    if (idle_.empty()) {
      CURL* easy = curl_easy_init();
      if (easy == nullptr) throw std::bad_alloc();
      return easy;
    }
    CURL* easy = idle_.back();
    idle_.pop_back();
    return easy;
  }

  void release(CURL* easy) {
    constexpr std::size_t kKeptIdle = 8;
    const auto transfer = transfers_.find(easy);
    const bool held = transfer->second->held;
    transfers_.erase(transfer);
    if (held) let_go_of_held_data(easy);
    if (held || closed_ || idle_.size() >= kKeptIdle) {
      curl_easy_cleanup(easy);
    } else {
      curl_easy_reset(easy);
      idle_.push_back(easy);
    }
  }

  void finish(Transfer& transfer, std::optional<TransportError> error) {
    transfer.flow->easy = nullptr;
    transfer.flow->finish(std::move(error));
    news_.add(transfer.flow);
  }

  void fail_all(Kind kind, std::string_view why) {
    while (!transfers_.empty()) {
      const auto it = transfers_.begin();
      CURL* easy = it->first;
      multi_of(easy).remove(easy);
      finish(*it->second, TransportError(kind, fmt::format("{}: {}", it->second->flow->what, why)));
      release(easy);
    }
  }

  void done(CURL* easy, CURLcode result) {
    const auto it = transfers_.find(easy);
    if (it == transfers_.end()) return;
    Transfer& transfer = *it->second;
    const ConnectionMonitor::Transfer was = seen(easy, transfer);
    monitor_->ended(was);
    if (transfer.probe) monitor_->probe_ended(transfer.head_done);
    // libcurl knows that a refused stream may be sent again; not so if the whole connection goes.
    constexpr int kMostTries = 5;  // as libcurl's
    if (result != CURLE_OK && !transfer.head_done && transfer.stream.never_begun() &&
        kind_of(result, easy, transfer.error) == Kind::kBroken &&
        ++transfer.begun_again < kMostTries) {
      transfer.sent = 0;
      if (multi_of(easy).add(easy) == CURLM_OK) return;
    }
    // libcurl is content with half a head.
    if (result == CURLE_OK && !transfer.head_done) result = CURLE_GOT_NOTHING;
    if (was.port != 0 && transfer.lost_port == was.port) {
      finish(transfer, TransportError(Kind::kBroken,
                                      fmt::format("{}: {}", transfer.flow->what, transfer.lost)));
    } else if (transfer.held_back) {
      finish(transfer, TransportError(Kind::kCancelled, transfer.flow->what + kNotSent));
    } else if (result == CURLE_OK) {
      finish(transfer, std::nullopt);
    } else {
      const char* text = transfer.error[0] != '\0' ? transfer.error : curl_easy_strerror(result);
      if (!transfer.failure.empty()) text = transfer.failure.c_str();
      finish(transfer, TransportError(kind_of(result, easy, text),
                                      fmt::format("{}: {}", transfer.flow->what, text)));
    }
    release(easy);
  }

  void set_options(CURL* easy, Transfer& transfer) {
    const HttpRequest& request = transfer.request;
    const auto set = [easy](CURLoption option, auto value) {
      curl_easy_setopt(easy, option, value);
    };

    set_address(easy, transfer);
    for (std::string header : request.headers) {
      // How libcurl has a header without a value written. (A value may end so, too.)
      if (header.find(": ") == header.size() - 2) header.replace(header.size() - 2, 2, ";");
      transfer.headers = curl_slist_append(transfer.headers, header.c_str());
    }
    transfer.headers =
        curl_slist_append(transfer.headers, "Expect:");  // no round trip before large bodies
    set(CURLOPT_HTTPHEADER, transfer.headers);
    set(CURLOPT_USERAGENT, server_.user_agent.c_str());
    if (request.method == "GET") {
      set(CURLOPT_HTTPGET, 1L);
    } else {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_READFUNCTION, &read_callback);
      set(CURLOPT_READDATA, &transfer);
      set(CURLOPT_SEEKFUNCTION, &seek_callback);
      set(CURLOPT_SEEKDATA, &transfer);
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    if (server_.url.starts_with("https:")) {  // else there is no HTTP/2
      set(CURLOPT_VERBOSE, 1L);
      set(CURLOPT_DEBUGFUNCTION, &debug_callback);
      set(CURLOPT_DEBUGDATA, &transfer);
    }

    set(CURLOPT_NOSIGNAL, 1L);
    // A cancelled transfer does not wait until its host name has been looked up.
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_ERRORBUFFER, transfer.error);
    set(CURLOPT_HEADERFUNCTION, &header_callback);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &write_callback);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    // libcurl allocates them anew for each transfer. Only lists are long; and a thousand idle watches
    // should not hold a thousand large buffers.
    constexpr long kSmallest = 16L * 1024;
    if (request.method != "GET") {
      set(CURLOPT_BUFFERSIZE, kSmallest);
      if (request.body.size() <= kSmallest) set(CURLOPT_UPLOAD_BUFFERSIZE, kSmallest);
    } else {
      set(CURLOPT_BUFFERSIZE, request.streaming ? 32L * 1024 : 256L * 1024);
    }
    if (server_.compression && !request.streaming) set(CURLOPT_ACCEPT_ENCODING, "gzip");

    const bool alone = is_alone(request);
    set(CURLOPT_HTTP_VERSION,
        static_cast<long>(alone ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    // Without TLS it is HTTP/1.1: to wait for a connection that may be shared would be to wait for
    // the first answer.
    set(CURLOPT_PIPEWAIT, server_.url.starts_with("https:") ? 1L : 0L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(server_.connect_timeout.count()));
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_TCP_KEEPIDLE, static_cast<long>(server_.keepalive_idle.count()));
    set(CURLOPT_TCP_KEEPINTVL, static_cast<long>(server_.keepalive_interval.count()));
    set(CURLOPT_SOCKOPTFUNCTION, &CurlTransfers::on_socket_opened);
    Sockets* const sockets = alone ? &list_sockets_ : &shared_sockets_;
    set(CURLOPT_SOCKOPTDATA, sockets);
    set(CURLOPT_CLOSESOCKETFUNCTION, &CurlTransfers::on_socket_closed);
    set(CURLOPT_CLOSESOCKETDATA, sockets);

    set_tls(easy, request);
    if (!server_.proxy.empty()) {
      set(CURLOPT_PROXY, server_.proxy.c_str());
      set(CURLOPT_NOPROXY, "");  // $no_proxy is for proxies that the environment names
    } else if (direct_) {
      set(CURLOPT_PROXY, "");  // not even those that the environment names
    } else {
      set(CURLOPT_NOPROXY, "");  // decided above, for the real host
    }
  }

  void set_address(CURL* easy, Transfer& transfer) {
    std::string url = server_.url + transfer.request.target;
    if (!server_.server_name.empty()) {
      // The certificate must be for another name: ask for that name, at the address of the real
      // one.
      const RenamedServer renamed = rename_server(server_.url, server_.server_name);
      url = renamed.url + transfer.request.target;
      transfer.connect_to = curl_slist_append(nullptr, renamed.route.c_str());
      curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to);
      transfer.headers = curl_slist_append(transfer.headers, ("Host: " + renamed.host).c_str());
    }
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  }

  void set_tls(CURL* easy, const HttpRequest& request) {
    const ClientCertificate& certificate = request.certificate;
    const std::string& ca = request.ca ? *request.ca : server_.ca;
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, &apply_tls_policy);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, &tls_policy_);
    const auto set_blob = [easy](CURLoption option, const std::string& pem) {
      const curl_blob blob = blob_of(pem);
      curl_easy_setopt(easy, option, &blob);
    };
    if (server_.insecure) {
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (!ca.empty()) {
      set_blob(CURLOPT_CAINFO_BLOB, ca);
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
    if (!certificate.certificate.empty()) {
      set_blob(CURLOPT_SSLCERT_BLOB, certificate.certificate);
      set_blob(CURLOPT_SSLKEY_BLOB, certificate.key);
    }
  }

  const HttpServer server_;
  const bool direct_;
  TlsPolicy tls_policy_{server_.only_tls13, !server_.insecure};
  const std::shared_ptr<BufferPool> buffers_ = std::make_shared<BufferPool>();
  CurlMulti::Strand strand_;
  const std::shared_ptr<CurlMulti> multi_;
  const std::shared_ptr<CurlMulti> lists_;  // has those that are alone
  Sockets shared_sockets_{this, multi_.get()};
  Sockets list_sockets_{this, lists_.get()};
  const std::shared_ptr<ConnectionMonitor> monitor_;
  Transfers transfers_;
  News news_;
  std::vector<CURL*> idle_;
  bool closed_ = false;
};

class CurlTransport : public HttpTransport, public std::enable_shared_from_this<CurlTransport> {
 public:
  CurlTransport(boost::asio::io_context& context, HttpServer server)
      : transfers_(std::make_shared<CurlTransfers>(context, std::move(server))) {}

  // The last reference may be let go on any thread while the strand still works on something: the
  // end happens there, too.
  ~CurlTransport() override {
    const auto strand = transfers_->strand();
    boost::asio::post(strand, [transfers = std::move(transfers_)] {});
  }
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  const HttpServer& server() const override { return transfers_->server(); }
  std::shared_ptr<HttpExchange> start(HttpRequest request,
                                      boost::asio::any_io_executor executor) override;
  void shutdown() override;

  void post_resume(std::shared_ptr<Flow> flow) {
    boost::asio::post(transfers_->strand(), [self = shared_from_this(), flow = std::move(flow)] {
      self->transfers_->resume(*flow);
    });
  }
  void post_cancel(std::shared_ptr<Flow> flow) {
    boost::asio::post(transfers_->strand(), [self = shared_from_this(), flow = std::move(flow)] {
      self->transfers_->cancel(*flow);
    });
  }

 private:
  std::shared_ptr<CurlTransfers> transfers_;
};

class CurlExchange : public HttpExchange {
 public:
  explicit CurlExchange(std::shared_ptr<Flow> flow) : flow_(std::move(flow)) {}
  ~CurlExchange() override;
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  Awaitable<HttpHead> head() override;
  Awaitable<std::string> read(std::string reuse) override;
  void cancel() override { give_up(); }

 private:
  void give_up();

  std::shared_ptr<Flow> flow_;
};

std::shared_ptr<HttpExchange> CurlTransport::start(HttpRequest request,
                                                   boost::asio::any_io_executor executor) {
  auto flow =
      std::make_shared<Flow>(std::move(executor), weak_from_this(), transfers_->buffers(),
                             request.method + " " + transfers_->server().url + request.target);
  // On a thread of the loop it runs at once: waking another thread takes longer.
  boost::asio::dispatch(transfers_->strand(),
                        [self = shared_from_this(), flow, request = std::move(request)]() mutable {
                          self->transfers_->begin(std::move(flow), std::move(request));
                        });
  return std::make_shared<CurlExchange>(std::move(flow));
}

void CurlTransport::shutdown() {
  auto closed = std::make_shared<std::promise<void>>();
  boost::asio::post(transfers_->strand(), [self = shared_from_this(), closed] {
    self->transfers_->close("the client was closed");
    closed->set_value();
  });
  const auto executor = transfers_->strand().get_inner_executor();
  if (!executor.running_in_this_thread() && !executor.context().stopped())
    closed->get_future().wait();
}

CurlExchange::~CurlExchange() {
  bool finished = false;
  {
    const std::lock_guard lock(flow_->mutex);
    finished = flow_->finished;
  }
  if (!finished) give_up();
}

void CurlExchange::give_up() {
  {
    const std::lock_guard lock(flow_->mutex);
    if (std::exchange(flow_->cancelled, true)) return;
  }
  // The reader need not wait for the transport.
  flow_->event.ring();
  if (const auto transport = flow_->transport.lock()) transport->post_cancel(flow_);
}

Awaitable<HttpHead> CurlExchange::head() {
  for (;;) {
    {
      const std::lock_guard lock(flow_->mutex);
      flow_->throw_if_cancelled();
      if (flow_->head) co_return *flow_->head;
      if (flow_->error) throw TransportError(*flow_->error);
    }
    co_await flow_->event.wait();
  }
}

Awaitable<std::string> CurlExchange::read(std::string reuse) {
  constexpr std::size_t kIdleCapacity = 4096;
  reuse.clear();
  for (;;) {
    bool resume = false;
    {
      const std::lock_guard lock(flow_->mutex);
      flow_->throw_if_cancelled();
      if (!flow_->buffer.empty()) {
        std::swap(reuse, flow_->buffer);
        resume = std::exchange(flow_->paused, false);
      } else if (flow_->finished) {
        if (flow_->error) throw TransportError(*flow_->error);
        flow_->buffers->give(std::exchange(reuse, {}));
        flow_->buffers->give(std::exchange(flow_->buffer, {}));
        co_return std::string();
      } else {
        // Who has to wait may wait for long: a thousand watches that are idle keep no large
        // buffers.
        if (reuse.capacity() > kIdleCapacity) flow_->buffers->give(std::exchange(reuse, {}));
        if (flow_->buffer.capacity() > kIdleCapacity)
          flow_->buffers->give(std::exchange(flow_->buffer, {}));
      }
    }
    if (resume) {
      if (const auto transport = flow_->transport.lock()) transport->post_resume(flow_);
    }
    if (!reuse.empty()) co_return std::move(reuse);
    co_await flow_->event.wait();
  }
}

}  // namespace

std::shared_ptr<HttpTransport> HttpTransport::create(boost::asio::io_context& context,
                                                     HttpServer server) {
  return std::make_shared<CurlTransport>(context, std::move(server));
}

}  // namespace detail
}  // namespace lookout::rest
