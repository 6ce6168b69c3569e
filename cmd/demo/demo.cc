#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <random>

#include "cmd/cluster/simulated_cluster.h"
#include "cmd/columns.h"
#include "cmd/commands.h"
#include "cmd/demo/board.h"
#include "cmd/demo/workload.h"
#include "cmd/duration.h"
#include "cmd/stop_signals.h"
#include "lookout/apiserver/server.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::cmd {
namespace {

struct DemoFlags {
  std::chrono::milliseconds duration{0};
};

/// Reports every change of one type to the board.
template <class T>
void show_on(Board& board, const informer::SharedInformer<T>& informer) {
  const api::Resource resource(T::kResource);
  const auto detail = [columns = Columns(resource)](const api::Object& object) {
    // Ready, status and so on: the columns between name and age.
    const Row row = columns.values(object, api::Time{});
    std::string out;
    for (std::size_t i = 1; i + 1 < row.size(); ++i) out += (i == 1 ? "" : "  ") + row[i];
    return out;
  };
  const std::string_view kind = T::kResource.kind;
  informer::EventHandler<T> handler;
  handler.name = "board";
  handler.on_add = [&board, kind, detail](const T& object) {
    board.event("ADDED", kind, object, detail(object));
  };
  handler.on_update = [&board, kind, detail](const T&, const T& object) {
    board.event("MODIFIED", kind, object, detail(object));
  };
  handler.on_delete = [&board, kind, detail](const T& object) {
    board.event("DELETED", kind, object, detail(object));
  };
  informer.add_handler(std::move(handler)).release();
}

struct Comparison {
  std::string plural;
  std::size_t cached = 0;
  std::size_t listed = 0;
  std::size_t different = 0;
};

/// Compares the cache with a fresh list, byte by byte, once the cache has caught up with the list.
template <class T>
Comparison compare(const rest::Client& client, const informer::SharedInformer<T>& informer) {
  Comparison out;
  out.plural = T::kResource.plural;
  const auto listed = client.resource<T>().list();
  // Listed objects reach the cache within a short time.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (;;) {
    const auto cache = informer.untyped_informer().store().snapshot();
    out.cached = cache.size();
    out.listed = listed.items.size();
    out.different = out.cached > out.listed ? out.cached - out.listed : out.listed - out.cached;
    for (const auto& object : listed.items) {
      if (cache.get(object.ns(), object.name()) != object) ++out.different;
    }
    if (out.different == 0 || std::chrono::steady_clock::now() > deadline) return out;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

cluster::Options a_busy_cluster() {
  cluster::Options out;
  out.nodes = 5;
  out.kubelet.starts_after_at_least = std::chrono::milliseconds(300);
  out.kubelet.starts_after_at_most = std::chrono::milliseconds(2000);
  out.kubelet.crashes = true;
  out.kubelet.seed = std::random_device{}();
  return out;
}

int run(const DemoFlags& flags) {
  StopSignals signals;
  apiserver::Server server{apiserver::ServerOptions{}};
  const rest::Client client{cluster::without_warnings(server.client_config())};
  informer::SharedInformerFactory factory(client);
  const auto pods = factory.informer<k8s::core::v1::Pod>();
  const auto deployments = factory.informer<k8s::apps::v1::Deployment>();
  const auto services = factory.informer<k8s::core::v1::Service>();

  const bool live = stdout_is_terminal();
  Board board(server.url(), live);
  show_on(board, pods);
  show_on(board, deployments);
  show_on(board, services);
  factory.start();
  if (!factory.wait_for_cache_sync(signals.token())) return 1;

  const auto begin = std::chrono::steady_clock::now();
  {
    cluster::SimulatedCluster cluster(client, a_busy_cluster());
    const Workload workload(client, std::random_device{}());
    const Columns pod_columns{api::Resource(k8s::core::v1::Pod::kResource)};
    const auto pace = std::chrono::milliseconds(live ? 250 : 2000);
    do {
      Board::Figures figures;
      figures.deployments = deployments.lister().list().size();
      figures.services = services.lister().list().size();
      for (const auto& pod : pods.lister().list()) {
        ++figures.pods;
        ++figures.pods_by_status[pod_columns.values(pod, {})[2]];
      }
      board.draw(figures);
      const auto elapsed = std::chrono::steady_clock::now() - begin;
      if (flags.duration.count() > 0 && elapsed >= flags.duration) break;
      if (!Board::good()) break;
    } while (wait_for_stop(signals.token(), pace));
    cluster.stop();
  }
  if (!Board::good()) {
    factory.shutdown();
    return 0;
  }
  const auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const Comparison results[] = {compare(client, pods), compare(client, deployments),
                                compare(client, services)};
  board.finish();
  fmt::print("\nThe workload ran for {:.1f} s; the informers saw {} events.\n", seconds,
             board.events());
  bool equal = true;
  for (const auto& result : results) {
    equal = equal && result.different == 0;
    fmt::print("  {:<12} {:>4} in the cache, {:>4} on the server: {}\n", result.plural,
               result.cached, result.listed,
               result.different == 0 ? "equal, byte by byte"
                                     : fmt::format("{} DIFFERENT", result.different));
  }
  factory.shutdown();
  return equal ? 0 : 1;
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "demo", "Show a simulated cluster on the embedded server, and an informer that follows it");
  const auto flags = std::make_shared<DemoFlags>();
  add_duration(*command, "--for", flags->duration,
               "End after this time, such as 30s; without it, on Ctrl-C");
  command->footer(
      "Simulated users create and scale deployments; controllers create their pods, which start, "
      "run\n"
      "and crash. A terminal shows a live view; other outputs get plain lines. At the end, the\n"
      "informer's cache is compared with the server; the exit status is 1 if they differ.\n\n"
      "Examples:\n"
      "  lookout demo\n"
      "  lookout demo --for 30s | grep Pod");
  on_chosen(*command, action, [flags] { return run(*flags); });
}

}  // namespace lookout::cmd
