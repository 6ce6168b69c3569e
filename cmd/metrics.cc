#include "cmd/metrics.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "cmd/listen_address.h"
#include "lookout/base/error.h"
#include "lookout/base/http/server.h"
#include "lookout/base/prometheus_text.h"

namespace lookout::cmd {
namespace {

using http::Response;
using Informers = std::vector<std::shared_ptr<informer::SharedIndexInformer>>;

http::ServerOptions listen_options(const std::string& address) {
  const ListenAddress where = parse_listen_address(address, "--metrics-listen");
  http::ServerOptions out;
  out.address = where.address;
  out.port = where.port;
  out.threads = 1;
  return out;
}

}  // namespace

class MetricsServer::Impl {
 public:
  Impl(const std::string& address, Informers informers) : informers_(std::move(informers)) {
    const auto answer = [this](http::Request request) -> Awaitable<Response> {
      co_return page(request);
    };
    const auto error = [](int status, const std::string& message) {
      return Response::text(status, message + "\n");
    };
    http::ServerOptions options = listen_options(address);
    try {
      server_ = std::make_unique<http::Server>(std::move(options), answer, error);
    } catch (const Error& e) {
      throw Error(fmt::format("cannot serve metrics: {}", e.what()));
    }
    server_->start();
  }
  ~Impl() {
    if (server_) server_->stop(std::chrono::seconds(1));
  }

 private:
  Response page(const http::Request& request) const {
    if (request.path != "/metrics") return Response::text(404, "404 page not found\n");
    if (request.method != "GET" && request.method != "HEAD")
      return Response::text(405, "405 method not allowed\n");
    std::vector<metrics::Sample> samples;
    for (const auto& informer : informers_) informer->collect(samples);
    Response response = Response::text(200, metrics::prometheus_text(samples));
    response.content_type = metrics::kPrometheusType;
    return response;
  }

  const Informers informers_;
  std::unique_ptr<http::Server> server_;
};

MetricsServer::MetricsServer(const std::string& address, Informers informers)
    : impl_(std::make_unique<Impl>(address, std::move(informers))) {}
MetricsServer::~MetricsServer() = default;

}  // namespace lookout::cmd
