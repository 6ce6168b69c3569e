// A controller whose reconciler is a coroutine: it asks a web server about each ConfigMap, and waits
// on the event loop. docs/guide/controllers.md explains the code. The web server here is the API
// server in this program.
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "lookout/apiserver/server.h"
#include "lookout/controller/builder.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/registry/clients/beast.h"
#include "lookout/tools/watch/wait_for.h"

namespace controller = lookout::controller;
namespace registry = lookout::registry;
namespace watch = lookout::watch;
using lookout::Awaitable;
using lookout::k8s::core::v1::ConfigMap;
using namespace std::chrono_literals;

namespace {

constexpr auto kFinalizer = "example.com/checked";
constexpr auto kAnswer = "example.com/answer";

class Checker {
 public:
  explicit Checker(std::string url) : server_(std::move(url)) {}

  Awaitable<controller::Result> operator()(controller::Request request,
                                           controller::Context& context) {
    const auto site = context.find<ConfigMap>(request);
    if (!site) co_return controller::done();
    const auto forget = [&]() -> Awaitable<void> {
      co_await ask("/readyz", 1s);
      ++forgotten_;
    };
    const bool is_gone = co_await context.async_finalize(*site, kFinalizer, forget);
    if (is_gone) co_return controller::done();

    const auto answer = co_await ask(std::string(site->data()["path"]), 5s);
    const auto change = site->edit();
    change.metadata().annotations().set(kAnswer, std::to_string(answer.status));
    co_await context.async_patch(change);
    co_return controller::requeue_after(1min);
  }

  int forgotten() const { return forgotten_; }

 private:
  Awaitable<registry::HttpResponse> ask(std::string path, std::chrono::milliseconds time) const {
    registry::Attempt limits;
    limits.time = time;
    registry::HttpRequest request;
    request.path = std::move(path);
    return registry::beast_request(server_, std::move(request), limits);
  }

  const registry::Endpoint server_;
  std::atomic<int> forgotten_{0};
};

}  // namespace

int main() {
  const lookout::apiserver::Server server;
  const lookout::rest::Client client{server.client_config()};
  const auto maps = client.resource<ConfigMap>("default");
  Checker checker(server.url());
  controller::Manager manager{client};
  controller::Builder<ConfigMap>(manager).concurrency(10'000).reconcile(
      [&](controller::Request request, controller::Context& context) {
        return checker(std::move(request), context);
      });
  std::jthread running([&](std::stop_token stop) { manager.run(std::move(stop)); });

  const auto draft = ConfigMap::draft("version", "default");
  draft.data().set("path", "/version");
  maps.create(draft);
  const auto is_checked = [](const ConfigMap& map) {
    return map && map.annotations()[kAnswer].exists();
  };
  const auto checked = watch::wait_for(maps, "version", is_checked, {.timeout = 30s});
  fmt::print("{}: {}\n", checked.key(), checked.annotations()[kAnswer].as_string());
  maps.remove("version");
  watch::wait_for(maps, "version", watch::is_deleted(checked.uid()), {.timeout = 30s});
  fmt::print("forgotten: {}\n", checker.forgotten());
}
