#include "lookout/rest/client.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <exception>
#include <mutex>
#include <utility>

#include "lookout/api/detail/limits.h"
#include "lookout/api/protobuf.h"
#include "lookout/base/ascii.h"
#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"
#include "rest/client_impl.h"
#include "rest/server_address.h"

namespace lookout::rest {
namespace {

using detail::CallControl;
using detail::describe;
using detail::RateLimiter;
using detail::Request;

// As in client-go (rest.Request, maxRetries).
constexpr int kMaxRetries = 10;
// The maximum size of an error response that is read.
constexpr std::size_t kMaxErrorBody = 1u << 20;
// The maximum size of a response in memory, after decompression.
constexpr std::size_t kMaxBody = 256u << 20;
// How much of a response is kept for error messages.
constexpr std::size_t kQuoted = 200;

detail::HttpServer server_of(const Config& config) {
  detail::HttpServer server;
  server.url = config.server;
  server.server_name = config.server_name;
  server.insecure = config.insecure;
  server.only_tls13 = config.min_tls_version == TlsVersion::k13;
  server.proxy =
      config.proxy_url.empty() ? detail::environment_proxy(config.server) : config.proxy_url;
  // The proxy resolves the server's name, as in client-go. libcurl's scheme for this is socks5h.
  constexpr std::string_view kSocks = "socks5://";
  if (base::starts_with_ignoring_case(server.proxy, kSocks))
    server.proxy.replace(0, kSocks.size(), "socks5h://");
  server.compression = !config.disable_compression;
  server.user_agent = config.user_agent;
  server.keepalive = config.keepalive;
  return server;
}

Awaitable<std::string> read_all(detail::HttpExchange& exchange, std::size_t limit) {
  std::string body = co_await exchange.read();
  std::string piece;
  while (body.size() <= limit) {
    piece = co_await exchange.read(std::move(piece));
    if (piece.empty()) break;
    body += piece;
  }
  co_return body;
}

api::DecodeError too_long(const Request& request, std::size_t limit) {
  return api::DecodeError(
      fmt::format("{}: the answer is longer than {} bytes", detail::describe(request), limit));
}

/// An object, or why there is none.
struct Decoded {
  api::Object object;
  std::string error;
  api::UnknownFields unknown = {};
};

/// Decodes a body, which this may modify. The decoders of a thread know the values that its
/// responses repeat.
Decoded decode(const detail::HttpHead& head, std::string& body) {
  if (detail::is_protobuf(head)) {
    thread_local api::ProtobufDecoder decoder;
    api::Object object = decoder.decode(body);
    return {std::move(object), decoder.error(), decoder.unknown_fields()};
  }
  thread_local api::JsonDecoder decoder;
  decoder.set_max_depth(api::kMaxServedDepth);
  api::Object object = decoder.decode(body);
  return {std::move(object), decoder.error()};
}

/// A credential requested from the helper thread.
struct AskedCredential {
  explicit AskedCredential(boost::asio::any_io_executor executor) : event(std::move(executor)) {}

  void answer(std::shared_ptr<const Credential> got, std::exception_ptr why) {
    {
      const std::lock_guard lock(mutex);
      credential = std::move(got);
      error = std::move(why);
    }
    event.ring();
  }
  /// Null if there is no result yet. Rethrows an error.
  std::shared_ptr<const Credential> take() {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
    return std::move(credential);
  }

  AsyncEvent event;
  std::mutex mutex;
  std::shared_ptr<const Credential> credential;  // guarded by mutex, as is error
  std::exception_ptr error;
};

/// Whether there may be newer credentials than those that the server has just rejected.
bool renewable(const Config& config) { return config.exec || !config.token_file.empty(); }

/// Whether a failed request may be sent again, and after how long (client-go: rest.withRetry).
std::optional<std::chrono::seconds> retry_delay(const detail::HttpHead& head) {
  if (head.status != 429 && head.status < 500) return std::nullopt;
  return head.retry_after;
}

}  // namespace

Client::Impl::Impl(Config config, std::shared_ptr<EventLoop> loop)
    : config_(config.normalized()),
      loop_(loop ? std::move(loop) : std::make_shared<EventLoop>()),
      ca_(config_),
      credentials_(std::make_shared<Credentials>(config_)),
      transport_(config_.transport
                     ? config_.transport->create(loop_->context(), server_of(config_))
                     : detail::HttpTransport::create(loop_->context(), server_of(config_))),
      warnings_(config_.on_warning),
      metrics_(std::make_shared<detail::RequestMetrics>(config_.server)) {
  if (config_.qps > 0) limiter_.emplace(config_.qps, config_.burst);
}

Client::Impl::~Impl() {
  close();
  if (helper_) helper_->join();
}

void Client::Impl::close() {
  closing_.request_stop();
  transport_->shutdown();
}

Awaitable<std::shared_ptr<const Credential>> Client::Impl::credential(CallControl& control) {
  if (auto ready = credentials_->try_current()) co_return ready;
  // A plugin may run for seconds or prompt its user, so it does not run on a thread of the loop.
  // There is one helper thread; a stopped call does not wait for it.
  std::call_once(helper_once_, [&] { helper_ = std::make_unique<boost::asio::thread_pool>(1); });
  const auto asked = std::make_shared<AskedCredential>(control.executor());
  const std::stop_token stop = control.interruption();
  const std::stop_callback wake(stop, [asked] { asked->event.ring(); });
  // The credential is for all calls: the plugin continues when this call is stopped.
  boost::asio::post(*helper_, [asked, stop, closing = closing(), source = credentials_] {
    if (stop.stop_requested()) return;
    std::shared_ptr<const Credential> got;
    std::exception_ptr error;
    try {
      got = source->current(closing);
    } catch (...) {
      error = std::current_exception();
    }
    asked->answer(std::move(got), std::move(error));
  });
  const std::string plugin = config_.exec ? config_.exec->command : std::string();
  for (;;) {
    control.check(plugin);
    if (auto got = asked->take()) co_return got;
    co_await asked->event.wait();
  }
}

detail::HttpRequest Client::Impl::prepare(const Request& request, const Credential& credential,
                                          CallControl& control) {
  detail::HttpRequest out;
  out.method = request.method;
  out.target = request.target();
  out.headers.push_back("Accept: " + request.accept);
  if (!request.content_type.empty()) out.headers.push_back("Content-Type: " + request.content_type);
  if (!credential.authorization.empty())
    out.headers.push_back("Authorization: " + credential.authorization);
  for (const auto& [name, value] : config_.as.headers()) out.headers.push_back(name + ": " + value);
  out.body = request.body;
  out.ca = ca_.current();
  out.certificate = {credential.client_certificate, credential.client_key};
  out.timeout = control.remaining();
  if (request.method != "GET") out.may_send = control.send_guard();
  if (request.lasts.count() > 0) {
    const auto most =
        request.lasts + config_.keepalive.probe_after + config_.keepalive.probe_timeout;
    if (out.timeout.count() == 0 || out.timeout > most) out.timeout = most;
  }
  out.streaming = request.streaming;
  out.watch = request.watch;
  out.list = request.list;
  out.may_be_compressed = request.may_be_compressed;
  return out;
}

Awaitable<void> Client::Impl::wait_for_turn(const Request& request, CallControl& control) {
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      limiter_->reserve(std::chrono::steady_clock::now()));
  if (wait.count() <= 0) co_return;
  // A caller that stops waiting gives its place back.
  struct Place {
    RateLimiter& limiter;
    bool taken = false;
    ~Place() {
      if (!taken) limiter.give_back();
    }
  } place{*limiter_};
  if (!control.has_time_for(wait)) {
    throw TransportError(TransportError::Kind::kTimeout,
                         fmt::format("{}: the limit of {} requests a second leaves no room for it "
                                     "before its deadline",
                                     describe(request), config_.qps));
  }
  co_await control.sleep(wait);
  place.taken = true;
}

Awaitable<Client::Impl::Answer> Client::Impl::open(const Request& request, CallControl& control) {
  bool credentials_renewed = false;
  for (int attempt = 0;; ++attempt) {
    control.check();
    std::optional<std::chrono::seconds> delay;
    // (client-go does not limit watches either.)
    if (limiter_ && !request.streaming) co_await wait_for_turn(request, control);
    {
      const auto shown = co_await credential(control);
      Answer answer;
      const auto began = std::chrono::steady_clock::now();
      answer.exchange = transport_->start(prepare(request, *shown, control), control.executor());
      control.watch(answer.exchange);
      try {
        answer.head = co_await answer.exchange->head();
        metrics_->count(request.method, answer.head.status,
                        std::chrono::steady_clock::now() - began);
      } catch (const TransportError& e) {
        metrics_->count(request.method, detail::RequestMetrics::kNoResponse,
                        std::chrono::steady_clock::now() - began);
        // The server may have closed an idle connection. Reads can be sent again.
        delay = std::chrono::seconds(attempt == 0 ? 0 : 1);
        if (request.method != "GET" || request.streaming ||
            e.kind() != TransportError::Kind::kBroken || attempt >= kMaxRetries ||
            !control.has_time_for(*delay))
          throw;
      }
      if (!delay) {
        if (!answer.head.warnings.empty()) warnings_.tell(answer.head.warnings, describe(request));
        if (answer.head.status >= 200 && answer.head.status < 300) co_return answer;
        std::string body = co_await read_all(*answer.exchange, kMaxErrorBody);
        if (answer.head.status == 401 && !credentials_renewed && renewable(config_)) {
          credentials_->invalidate(shown);
          credentials_renewed = true;
          delay = std::chrono::seconds(0);
        } else {
          delay = retry_delay(answer.head);
          auto error = detail::error_from_answer(request, answer.head, std::move(body));
          // A watch has no deadline: its caller waits, and knows that it is not up to date. (A
          // resource version that the server has not reached after waiting does not signal overload.)
          const bool again = delay && !request.watch && attempt < kMaxRetries &&
                             control.has_time_for(*delay) &&
                             !api::is_too_large_resource_version(error);
          if (!again) throw api::StatusError(std::move(error));
          log::debug("{}: HTTP {}, retrying in {} s", describe(request), answer.head.status,
                     delay->count());
        }
      }
    }
    if (delay->count() > 0) co_await control.sleep(*delay);
  }
}

Awaitable<std::string> Client::Impl::fetch(const Request& request, CallControl& control) {
  Answer answer = co_await open(request, control);
  std::string body = co_await read_all(*answer.exchange, kMaxBody);
  if (body.size() > kMaxBody) throw too_long(request, kMaxBody);
  co_return body;
}

Awaitable<Client::Impl::ObjectsAnswer> Client::Impl::open_objects(Request& request,
                                                                  const api::Resource& resource,
                                                                  ContentType type,
                                                                  std::string_view metadata_kind,
                                                                  CallControl& control) {
  for (;;) {
    const bool metadata_only = !metadata_kind.empty();
    detail::Encoding encoding = encodings_.wanted(type, resource, metadata_only);
    request.accept = detail::accept_header(encoding.protobuf, metadata_kind);
    try {
      Answer answer = co_await open(request, control);
      co_await detail::expect_objects(request, encoding.protobuf, answer.head, *answer.exchange);
      encoding.protobuf = detail::is_protobuf(answer.head);
      co_return ObjectsAnswer{std::move(answer), encoding};
    } catch (const api::StatusError& e) {
      const bool unknown_type = e.code() == 406 || e.code() == 415;
      if (!encoding.protobuf || !unknown_type) throw;
      encodings_.give_up_protobuf(resource,
                                  fmt::format("the server refuses protobuf (HTTP {})", e.code()));
    }
  }
}

Awaitable<api::Object> Client::Impl::read_object(const Request& request, Answer answer,
                                                 api::UnknownFields& unknown) {
  std::string body = co_await read_all(*answer.exchange, api::kDefaultMaxObjectBytes);
  if (body.size() > api::kDefaultMaxObjectBytes)
    throw too_long(request, api::kDefaultMaxObjectBytes);
  // Decoding modifies the body.
  const std::string beginning = body.substr(0, kQuoted + 1);
  Decoded decoded = decode(answer.head, body);
  unknown = std::move(decoded.unknown);
  if (!decoded.object) {
    throw api::DecodeError(fmt::format("{}: the answer{} is not an object: {}; {}",
                                       describe(request), detail::type_of(answer.head),
                                       decoded.error,
                                       detail::beginning_of_answer(beginning, kQuoted)));
  }
  detail::throw_if_failure(decoded.object);
  co_return std::move(decoded.object);
}

Awaitable<api::Object> Client::Impl::fetch_object(const Request& request, CallControl& control) {
  Answer answer = co_await open(request, control);
  api::UnknownFields unknown;
  co_return co_await read_object(request, std::move(answer), unknown);
}

Awaitable<api::Object> Client::Impl::get_object(Request request, const api::Resource& resource,
                                                CallControl& control, bool metadata_only) {
  const char* const as = metadata_only ? "PartialObjectMetadata" : "";
  for (;;) {
    ObjectsAnswer answer =
        co_await open_objects(request, resource, config_.content_type, as, control);
    const bool protobuf = answer.encoding.protobuf;
    api::UnknownFields unknown;
    try {
      api::Object object = co_await read_object(request, std::move(answer.answer), unknown);
      if (unknown.count == 0) co_return object;
      encodings_.give_up_protobuf(resource,
                                  fmt::format("the schema does not know {}", unknown.first));
    } catch (const api::DecodeError& e) {
      if (!protobuf) throw;
      encodings_.avoid_protobuf(resource, e.what());
    }
  }
}

Client::Client(Config config, std::shared_ptr<EventLoop> loop) {
  auto impl = std::make_shared<Impl>(std::move(config), std::move(loop));
  Impl* const raw = impl.get();
  impl_ = std::shared_ptr<Impl>(raw, [owner = std::move(impl)](Impl*) mutable {
    owner->close();
    owner.reset();
  });
}

ResourceClient Client::resource(api::Resource resource, std::string_view ns) const {
  return {impl_, std::move(resource), std::string(ns), binding_};
}

Client Client::with(const CallOptions& call) const {
  Client out(*this);
  out.binding_ = detail::bind(binding_, call);
  return out;
}

Client Client::with_write_defaults(const WriteDefaults& defaults) const {
  Client out(*this);
  out.binding_ = detail::bind(binding_, defaults);
  return out;
}

const Config& Client::config() const { return impl_->config(); }
EventLoop& Client::loop() const { return impl_->loop(); }
const std::shared_ptr<EventLoop>& Client::shared_loop() const { return impl_->shared_loop(); }
std::shared_ptr<const metrics::Source> Client::metrics() const { return impl_->metrics(); }

}  // namespace lookout::rest
