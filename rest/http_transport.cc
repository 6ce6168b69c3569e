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
#include <functional>
#include <future>
#include <mutex>

#include "rest/buffer_pool.h"
#include "rest/connection_monitor.h"
#include "rest/curl_errors.h"
#include "rest/curl_multi.h"
#include "rest/curl_transfer.h"
#include "rest/http_flow.h"
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

using Kind = TransportError::Kind;

/// CallOptions::may_send has returned false.
constexpr const char* kNotSent = ": not sent: the sender may no longer send requests";

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

/// Idle connections to keep, as in client-go. The pool for lists over TLS keeps fewer.
constexpr long kIdleConnections = 25;
constexpr long kIdleListConnections = 4;

/// The part of the transport that runs on the strand.
class CurlTransfers {
 public:
  CurlTransfers(boost::asio::io_context& context, HttpServer server)
      : server_(std::move(server)),
        strand_(boost::asio::make_strand(context)),
        multi_(create_multi(kIdleConnections)),
        lists_(create_multi(kIdleListConnections)),
        monitor_(ConnectionMonitor::create(
            strand_,
            {server_.keepalive.probe_after, server_.keepalive.probe_timeout,
             server_.keepalive.stream_silence},
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
    if (const CURLMcode code = multi_of(easy).start(easy); code != CURLM_OK) {
      finish(*inserted->second,
             TransportError(Kind::kOther, fmt::format("{}: {}", inserted->second->flow->what,
                                                      curl_multi_strerror(code))));
      if (inserted->second->probe) monitor_->probe_ended(true);  // its result was not reported
      release(easy);
      news_.tell();
    }
  }

  void resume(const Flow& flow) {
    CURL* easy = flow.easy;
    if (easy == nullptr) return;
    Transfer& transfer = *transfers_.at(easy);
    transfer.takes_all = transfer.head.http2;
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
  /// The argument of the socket callbacks.
  struct Sockets {
    CurlTransfers* self;
    CurlMulti* multi;
  };

  std::shared_ptr<CurlMulti> create_multi(long idle_connections) {
    return CurlMulti::create(
        strand_,
        {[this](CURL* easy, CURLcode result) { done(easy, result); },
         [this](const std::string& why) { fail_all(Kind::kBroken, why); }, [this] { acted(); },
         [this](curl_socket_t fd) { monitor_->closed(fd); }, idle_connections});
  }

  bool has_tls() const { return server_.url.starts_with("https:"); }

  /// Whether a request does not share its connection. libcurl 7.88 may never report the end of a
  /// long HTTP/2 response, so lists use HTTP/1.1. They have their own connection pool, because
  /// libcurl stops using HTTP/2 with a host after it has seen HTTP/1.1.
  bool has_own_connection(const HttpRequest& request) const { return request.list && has_tls(); }
  CurlMulti& multi_of(CURL* easy) {
    return has_own_connection(transfers_.at(easy)->request) ? *lists_ : *multi_;
  }

  void acted() {
    if (news_.over_shared_connection() && !transfers_.empty()) multi_->look_for_held_input();
    news_.tell();
  }

  static ConnectionMonitor::Transfer seen(CURL* easy, const Transfer& transfer) {
    return {local_port_of(easy), transfer.begun, transfer.heard, transfer.request.watch};
  }

  void each_transfer(const std::function<void(const ConnectionMonitor::Transfer&)>& visit) {
    for (const auto& [easy, transfer] : transfers_) {
      // Paused transfers cannot receive data.
      if (transfer->held) transfer->heard = ConnectionMonitor::Clock::now();
      if (!transfer->held && !transfer->probe) visit(seen(easy, *transfer));
    }
  }

  bool send_probe() {
    const auto any = std::find_if(transfers_.begin(), transfers_.end(), [](const auto& entry) {
      return !entry.second->probe && local_port_of(entry.first) != 0;
    });
    if (any == transfers_.end()) return false;
    // With the same certificates as the waiting requests, it can use their connection.
    HttpRequest request;
    request.target = "/version";
    request.headers = any->second->request.headers;
    request.certificate = any->second->request.certificate;
    request.ca = any->second->request.ca;
    request.timeout = server_.keepalive.probe_timeout;
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
    // The connection ends when data or keep-alive probes are not acknowledged for this long.
    const auto* sockets = static_cast<const Sockets*>(impl);
    CurlTransfers* const self = sockets->self;
    const auto timeout = static_cast<unsigned>(self->server_.keepalive.user_timeout.count());
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

  static TransportError failure_of(CURL* easy, CURLcode result, const Transfer& transfer) {
    std::string text = transfer.error[0] != '\0' ? transfer.error : curl_easy_strerror(result);
    if (!transfer.failure.empty()) text = transfer.failure;
    Kind kind = kind_of(result, easy, text);
    if (transfer.upgraded) kind = Kind::kProtocol;
    if (transfer.would_repeat) kind = Kind::kBroken;
    // libcurl's error for a line of more than 100 kB.
    if (result == CURLE_OUT_OF_MEMORY && transfer.head.status != 0 && !transfer.head_done) {
      kind = Kind::kProtocol;
      text = "a header of the answer is too long";
    }
    return {kind, fmt::format("{}: {}", transfer.flow->what, text)};
  }

  void done(CURL* easy, CURLcode result) {
    const auto it = transfers_.find(easy);
    if (it == transfers_.end()) return;
    Transfer& transfer = *it->second;
    const ConnectionMonitor::Transfer was = seen(easy, transfer);
    monitor_->ended(was);
    if (transfer.probe) monitor_->probe_ended(transfer.head_done);
    // libcurl repeats a refused stream, but not if the whole connection ends.
    constexpr int kMostTries = 5;  // as in libcurl
    if (result != CURLE_OK && !transfer.head_done && transfer.stream.never_begun() &&
        kind_of(result, easy, transfer.error) == Kind::kBroken &&
        ++transfer.begun_again < kMostTries) {
      transfer.sent = 0;
      if (multi_of(easy).add(easy) == CURLM_OK) return;
    }
    // libcurl accepts an incomplete head.
    if (result == CURLE_OK && !transfer.head_done) result = CURLE_GOT_NOTHING;
    if (was.port != 0 && transfer.lost_port == was.port) {
      finish(transfer, TransportError(Kind::kBroken,
                                      fmt::format("{}: {}", transfer.flow->what, transfer.lost)));
    } else if (transfer.held_back) {
      finish(transfer, TransportError(Kind::kCancelled, transfer.flow->what + kNotSent));
    } else if (result == CURLE_OK) {
      finish(transfer, std::nullopt);
    } else {
      finish(transfer, failure_of(easy, result, transfer));
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
      // libcurl's notation for a header without a value. (A value may also end with ": ".)
      if (header.find(": ") == header.size() - 2) header.replace(header.size() - 2, 2, ";");
      add_header(transfer, header);
    }
    // Without it, libcurl waits for "100 Continue" before it sends a body of more than 1 MB (1 kB in
    // old versions).
    constexpr std::size_t kSmall = 1024;
    if (request.body.size() >= kSmall) add_header(transfer, "Expect:");
    // libcurl formats a header once, and twice if it makes it from an option. A proxy's CONNECT
    // request gets the option only.
    if (server_.proxy.empty() && !server_.user_agent.empty()) {
      add_header(transfer, "User-Agent: " + server_.user_agent);
    } else {
      set(CURLOPT_USERAGENT, server_.user_agent.c_str());
    }
    if (server_.compression && !request.streaming && request.may_be_compressed) {
      add_header(transfer, "Accept-Encoding: gzip");
      set(CURLOPT_ACCEPT_ENCODING, "gzip");
    }
    set(CURLOPT_HTTPHEADER, transfer.headers);
    if (request.method == "GET") {
      set(CURLOPT_HTTPGET, 1L);
    } else {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    set_callbacks(easy, transfer);
    if (has_tls()) {
      set(CURLOPT_VERBOSE, 1L);  // needed for StreamNotes
    } else if (request.method != "GET") {
      send_in_one_piece(easy, transfer);
    }
    set(CURLOPT_NOSIGNAL, 1L);
    // A cancelled transfer does not wait for name resolution.
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    // libcurl allocates buffers per transfer. Only lists are long, and a thousand idle watches should
    // not hold a thousand large buffers.
    constexpr long kSmallest = 16L * 1024;
    if (request.method != "GET") {
      set(CURLOPT_BUFFERSIZE, kSmallest);
      if (request.body.size() <= kSmallest) set(CURLOPT_UPLOAD_BUFFERSIZE, kSmallest);
    } else {
      set(CURLOPT_BUFFERSIZE, request.streaming ? 32L * 1024 : 256L * 1024);
    }

    const bool own = has_own_connection(request);
    set(CURLOPT_HTTP_VERSION,
        static_cast<long>(own ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    // Without TLS, connections use HTTP/1.1 and are not shared: waiting for one would mean waiting
    // for its first response.
    set(CURLOPT_PIPEWAIT, has_tls() ? 1L : 0L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(server_.connect_timeout.count()));
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_TCP_KEEPIDLE, static_cast<long>(server_.keepalive.idle.count()));
    set(CURLOPT_TCP_KEEPINTVL, static_cast<long>(server_.keepalive.interval.count()));
    set(CURLOPT_SOCKOPTFUNCTION, &CurlTransfers::on_socket_opened);
    Sockets* const sockets = own ? &list_sockets_ : &shared_sockets_;
    set(CURLOPT_SOCKOPTDATA, sockets);
    set(CURLOPT_CLOSESOCKETFUNCTION, &CurlTransfers::on_socket_closed);
    set(CURLOPT_CLOSESOCKETDATA, sockets);

    set_tls(easy, request);
    // libcurl must not read the environment: empty means no proxy.
    set(CURLOPT_PROXY, server_.proxy.c_str());
    set(CURLOPT_NOPROXY, "");
  }

  static void add_header(Transfer& transfer, const std::string& header) {
    transfer.headers = curl_slist_append(transfer.headers, header.c_str());
  }

  void set_address(CURL* easy, Transfer& transfer) {
    std::string url = server_.url + transfer.request.target;
    if (!server_.server_name.empty()) {
      // The certificate is for another name: request that name at the real server's address.
      const RenamedServer renamed = rename_server(server_.url, server_.server_name);
      url = renamed.url + transfer.request.target;
      transfer.connect_to = curl_slist_append(nullptr, renamed.route.c_str());
      curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to);
      add_header(transfer, "Host: " + renamed.host);
    }
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    // libcurl would parse the text, and write it again. It needs the text for retries.
    if (server_.server_name.empty()) transfer.url = url_with(transfer.request.target);
    if (transfer.url) curl_easy_setopt(easy, CURLOPT_CURLU, transfer.url.get());
  }

  /// The server's URL with this target; null if the result could differ from libcurl's own.
  UrlPtr url_with(const std::string& target) const {
    if (!parsed_url_ || target.find('%') != std::string::npos ||
        target.find("/.") != std::string::npos)
      return nullptr;
    UrlPtr out(curl_url_dup(parsed_url_.get()));
    if (!out) return nullptr;
    const std::size_t question = target.find('?');
    const std::string path = url_path_ + target.substr(0, question);
    if (curl_url_set(out.get(), CURLUPART_PATH, path.c_str(), 0) != CURLUE_OK) return nullptr;
    if (question != std::string::npos &&
        curl_url_set(out.get(), CURLUPART_QUERY, target.c_str() + question + 1, 0) != CURLUE_OK)
      return nullptr;
    return out;
  }

  /// Null if it has other parts than host, port and path.
  static UrlPtr parse(const std::string& url) {
    if (url.find_first_of("@?#%") != std::string::npos ||
        path_of(url).find("/.") != std::string::npos)
      return nullptr;
    UrlPtr out(curl_url());
    if (!out || curl_url_set(out.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return nullptr;
    return out;
  }

  /// The path of a URL without a query: "", or "/prefix".
  static std::string path_of(const std::string& url) {
    const std::size_t scheme = url.find("://");
    const std::size_t slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
    return slash == std::string::npos ? "" : url.substr(slash);
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
  const UrlPtr parsed_url_ = parse(server_.url);
  const std::string url_path_ = path_of(server_.url);
  TlsPolicy tls_policy_{server_.only_tls13, !server_.insecure};
  const std::shared_ptr<BufferPool> buffers_ = std::make_shared<BufferPool>();
  CurlMulti::Strand strand_;
  const std::shared_ptr<CurlMulti> multi_;
  const std::shared_ptr<CurlMulti> lists_;
  Sockets shared_sockets_{this, multi_.get()};
  Sockets list_sockets_{this, lists_.get()};
  const std::shared_ptr<ConnectionMonitor> monitor_;
  Transfers transfers_;
  News news_;
  std::vector<CURL*> idle_;
  bool closed_ = false;
};

}  // namespace

class CurlTransport : public HttpTransport, public std::enable_shared_from_this<CurlTransport> {
 public:
  CurlTransport(boost::asio::io_context& context, HttpServer server)
      : transfers_(std::make_shared<CurlTransfers>(context, std::move(server))) {}

  // The last reference may be released on any thread while the strand is active, so the transfers
  // end on the strand.
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

namespace {

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
        // The wait may be long, and a thousand idle watches should not keep large buffers.
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

std::shared_ptr<HttpExchange> CurlTransport::start(HttpRequest request,
                                                   boost::asio::any_io_executor executor) {
  auto flow =
      std::make_shared<Flow>(std::move(executor), weak_from_this(), transfers_->buffers(),
                             request.method + " " + transfers_->server().url + request.target);
  // Runs immediately on a thread of the loop: waking another thread takes longer.
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

std::shared_ptr<HttpTransport> HttpTransport::create(boost::asio::io_context& context,
                                                     HttpServer server) {
  return std::make_shared<CurlTransport>(context, std::move(server));
}

}  // namespace detail
}  // namespace lookout::rest
