#include "cmd/registry/page/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "cmd/registry/catalog.h"
#include "cmd/registry/instance_json.h"
#include "cmd/registry/page/document.h"
#include "cmd/registry/page/update.h"
#include "lookout/base/async_event.h"
#include "lookout/base/http/server.h"
#include "lookout/base/http/web_guard.h"

namespace lookout::cmd::registry_cmd {
namespace {

/// The maximum size of one write. The write timeout applies to each write.
constexpr std::size_t kPieceSize = 64 * 1024;
/// How long a browser waits before it reconnects.
constexpr int kRetryMs = 1000;

/// The event stream of one browser.
class EventStream final : public http::BodyStream {
 public:
  EventStream(Catalog& catalog, UpdateEncoder& encoder, std::string greeting,
              std::chrono::milliseconds heartbeat, AsyncEvent bell)
      : catalog_(catalog),
        encoder_(encoder),
        heartbeat_(heartbeat),
        bell_(std::move(bell)),
        text_(share(std::move(greeting))),
        listener_(catalog_.add_listener([ring = bell_] { ring.ring(); })) {}
  ~EventStream() override { catalog_.remove_listener(listener_); }

  bool is_open_ended() const override { return true; }
  void end() override {
    ended_ = true;
    bell_.ring_here();
  }

  Awaitable<bool> next(std::vector<http::Piece>& pieces) override {
    pieces.clear();
    while (!ended_) {
      if (text_) {
        pieces.push_back(next_piece());
        co_return true;
      }
      const auto now = catalog_.state();
      if (now->revision != 0 && now != known_) {
        text_ = encoder_.encode(known_, now);
        known_ = now;
        continue;
      }
      const auto until = std::chrono::steady_clock::now() + heartbeat_;
      co_await bell_.wait(until);
      if (std::chrono::steady_clock::now() >= until) text_ = share(encode_event("alive", "{}"));
    }
    co_return false;
  }

 private:
  static UpdateEncoder::Text share(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
  }

  http::Piece next_piece() {
    auto piece = share(text_->substr(sent_, kPieceSize));
    sent_ += piece->size();
    if (sent_ == text_->size()) {
      text_.reset();
      sent_ = 0;
    }
    return piece;
  }

  Catalog& catalog_;
  UpdateEncoder& encoder_;
  const std::chrono::milliseconds heartbeat_;
  AsyncEvent bell_;
  CatalogStatePtr known_;     // the browser's state after `text_` has been sent
  UpdateEncoder::Text text_;  // being sent; null if nothing is
  std::size_t sent_ = 0;      // bytes of text_ sent so far
  bool ended_ = false;
  const std::uint64_t listener_;
};

http::Response refusal(int status, const std::string& why) {
  return http::Response::text(status, why + "\n");
}

}  // namespace

class PageServer::Impl {
 public:
  Impl(std::shared_ptr<registry::Discovery> discovery, PageOptions options)
      : options_(std::move(options)),
        policy_(content_security_policy(page_html())),
        notes_(options_.notes),
        catalog_(std::move(discovery), options_.interval,
                 [this](const CatalogState& before, const CatalogState& next) {
                   return notes_.take(before, next);
                 }),
        server_(
            server_options(options_),
            [this](http::Request request) { return answer(std::move(request)); }, refusal) {}
  ~Impl() { stop(std::chrono::milliseconds(0)); }

  void start() { server_.start(); }
  std::uint16_t port() const { return server_.port(); }
  std::size_t connections() const { return server_.connections(); }
  std::string url() const {
    return fmt::format("http://{}:{}/", http::host_for_clients(options_.listen.address), port());
  }

  void stop(std::chrono::milliseconds grace) {
    // First, so that no notification arrives while the server is destroyed.
    catalog_.stop();
    server_.stop(grace);
  }

 private:
  static http::ServerOptions server_options(const PageOptions& options) {
    http::ServerOptions out;
    out.address = options.listen.address;
    out.port = options.listen.port;
    out.threads = 1;
    out.max_connections = options.max_connections;
    out.limits.max_header_bytes = 16u << 10;
    out.limits.max_body_bytes = 1u << 10;
    out.limits.write_timeout = options.write_timeout;
    return out;
  }

  Awaitable<http::Response> answer(http::Request request) {
    const auto executor = co_await boost::asio::this_coro::executor;
    http::Response response = answer_on(executor, request);
    const std::pair<std::string, std::string> headers[] = {
        {"Content-Security-Policy", policy_},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    response.headers.insert(response.headers.end(), std::begin(headers), std::end(headers));
    co_return response;
  }

  http::Response answer_on(const boost::asio::any_io_executor& executor,
                           const http::Request& request) {
    const auto host = request.header("host");
    if (!http::host_is_allowed(host, options_.allowed_hosts)) {
      return refusal(403, fmt::format("This page is not served under the name \"{}\". Use an "
                                      "address, localhost, or start it with --allow-host.",
                                      host));
    }
    if (request.method != "GET" && request.method != "HEAD") {
      http::Response response = refusal(405, "This server is read-only.");
      response.headers.emplace_back("Allow", "GET, HEAD");
      return response;
    }
    static constexpr std::string_view kServices = "/api/services";
    static constexpr std::string_view kHistory = "/api/history/";
    if (request.path == "/") return page();
    if (request.path == "/api/events") return events(executor);
    if (request.path == "/healthz") return http::Response::text(200, "ok\n");
    if (request.path == kServices) return services();
    if (request.path.starts_with(kServices) && request.path[kServices.size()] == '/') {
      return service(request.path.substr(kServices.size() + 1));
    }
    if (request.path.starts_with(kHistory)) return history(request.path.substr(kHistory.size()));
    return refusal(404, "There is no such page.");
  }

  http::Response page() const {
    http::Response response;
    response.content_type = "text/html; charset=utf-8";
    response.body = page_html();
    return response;
  }

  http::Response events(const boost::asio::any_io_executor& executor) {
    http::Response response;
    response.content_type = "text/event-stream";
    const std::string about = json_text([&](JsonWriter& writer) {
      writer.StartObject();
      write_text(writer, "source", options_.source);
      writer.EndObject();
    });
    response.stream = std::make_unique<EventStream>(
        catalog_, encoder_, fmt::format("retry: {}\n{}", kRetryMs, encode_event("about", about)),
        options_.heartbeat, AsyncEvent(executor));
    return response;
  }

  static http::Response json(const std::string& text) {
    http::Response response;
    response.body = text + "\n";
    return response;
  }

  http::Response services() const {
    const auto state = catalog_.state();
    if (!state->synced) return refusal(503, "There is no data yet.");
    return json(json_text([&](JsonWriter& writer) {
      writer.StartArray();
      for (const auto& set : state->services) write_set(writer, *set);
      writer.EndArray();
    }));
  }

  http::Response service(const std::string& name) const {
    const auto state = catalog_.state();
    if (!state->synced) return refusal(503, "There is no data yet.");
    const auto set = state->find(name);
    if (!set) return refusal(404, fmt::format("There is no service \"{}\".", name));
    return json(json_text([&](JsonWriter& writer) { write_set(writer, *set); }));
  }

  http::Response history(const std::string& name) const {
    return json(encode_history(name, notes_.history().of(name)));
  }

  const PageOptions options_;
  const std::string policy_;
  UpdateEncoder encoder_;
  NoteTaker notes_;
  Catalog catalog_;
  http::Server server_;  // last: its open streams refer to the other members
};

PageServer::PageServer(std::shared_ptr<registry::Discovery> discovery, PageOptions options)
    : impl_(std::make_unique<Impl>(std::move(discovery), std::move(options))) {}
PageServer::~PageServer() = default;
void PageServer::start() { impl_->start(); }
std::uint16_t PageServer::port() const { return impl_->port(); }
std::string PageServer::url() const { return impl_->url(); }
std::size_t PageServer::connections() const { return impl_->connections(); }
void PageServer::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

}  // namespace lookout::cmd::registry_cmd
