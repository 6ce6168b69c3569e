// lookout bench: measures the figures of docs/performance.md.
#include "cmd/bench/bench_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "bench/load/load.h"
#include "cmd/bench/fleet_command.h"
#include "cmd/bench/jobs.h"
#include "cmd/bench/load_child.h"
#include "cmd/duration.h"
#include "cmd/programs.h"
#include "cmd/stop_signals.h"

namespace lookout::cmd {
namespace {

struct BenchFlags {
  bench::JobOptions job;
  /// For the jobs "storage" and "controller", which have other defaults.
  bench::JobOptions storage;
  bench::JobOptions controller;
  lookout::bench::Load load;
  lookout::bench::LoadServerOptions server;
  std::string ca_file;
  std::string encoder;
  std::string output = "text";
};

constexpr std::int64_t kMostObjects = 100'000'000;
constexpr std::int64_t kMostBytes = 16 << 20;
constexpr std::int64_t kMostEvents = 1'000'000'000;
constexpr std::int64_t kMostInformers = 1'000'000;

using Job = bench::Result (*)(const bench::JobOptions&, std::stop_token);

template <class Number>
void add_number(CLI::App& command, const char* name, Number& number, const CLI::Range& range,
                const char* what) {
  command.add_option(name, number, what)->check(range)->capture_default_str();
}

/// The number of changes that the server sends.
std::uint64_t events_of(const BenchFlags& flags, Job job) {
  if (job == bench::events_job) return flags.job.events;
  if (job != bench::soak_job) return 0;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(flags.job.duration);
  return flags.load.rate * static_cast<std::uint64_t>(seconds.count());
}

int run(const ConnectionFlags& connection, BenchFlags flags, Job job, bool needs_server) {
  std::optional<bench::LoadChild> server;
  if (needs_server) {
    flags.load.events = events_of(flags, job);
    // Changes start well after the initial state has been received.
    flags.load.delay = 1000;
    if (connection.server.empty() && connection.kubeconfig.empty() && connection.context.empty()) {
      server.emplace(flags.server);
      flags.job.config.server = server->url() + flags.load.path();
    } else {
      flags.job.config = connection.config();
    }
    if (!flags.ca_file.empty()) flags.job.config.ca_file = flags.ca_file;
    if (!server) bench::check_server(flags.job);
  }
  StopSignals signals;
  const bench::Result result = job(job == bench::storage_job      ? flags.storage
                                   : job == bench::controller_job ? flags.controller
                                                                  : flags.job,
                                   signals.token());
  if (flags.output == "json") {
    fmt::print("{}\n", result.json());
  } else {
    fmt::print("{}", result.text());
  }
  return 0;
}

int serve(BenchFlags flags) {
  if (!flags.encoder.empty()) {
    flags.server.encoder = lookout::bench::encoder_program(flags.encoder);
  }
  lookout::bench::LoadServer server(flags.server);
  fmt::print("{}://127.0.0.1:{}\n", flags.server.cert_file.empty() ? "http" : "https",
             server.port());
  std::fflush(stdout);
  server.run();
}

}  // namespace

void add_bench(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* group = add_group(app, kBench);
  const auto flags = std::make_shared<BenchFlags>();
  flags->job.duration = std::chrono::hours(1);
  flags->job.events = 100'000;
  flags->storage.objects = 500;
  flags->controller.objects = 10'000;
  flags->controller.rate = 200;
  flags->controller.load_time = std::chrono::seconds(5);

  // Far more than a machine can hold, so that a typing error is detected.
  const auto up_to = [](std::int64_t most) { return CLI::Range(std::int64_t{0}, most); };
  const auto positive = [](std::int64_t most) { return CLI::Range(std::int64_t{1}, most); };
  const auto add = [&](const char* name, const char* what, Job job, const char* example,
                       bool needs_server = true) {
    CLI::App* command = group->add_subcommand(name, what);
    command->footer(fmt::format("Examples:\n  lookout bench {} {}", name, example));
    command->add_option("-o,--output", flags->output, "text or json (one line)")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    command->callback([&connection, &action, flags, job, needs_server] {
      action = [&connection, flags, job, needs_server] {
        return run(connection, *flags, job, needs_server);
      };
    });
    if (!needs_server) return command;
    command->add_option("--resource", flags->job.resource, "The resource of the objects")
        ->check(CLI::IsMember({"pods", "nodes", "endpointslices", "configmaps", "crontabs"}))
        ->capture_default_str();
    command->add_option("--mode", flags->job.mode, "How to request the state: list or watchlist")
        ->check(CLI::IsMember({"list", "watchlist"}))
        ->capture_default_str();
    command
        ->add_option("--keep", flags->job.keep,
                     "The fields to keep: all, unmanaged (no managedFields), registry")
        ->check(CLI::IsMember({"all", "unmanaged", "registry"}))
        ->capture_default_str();
    add_number(*command, "--objects", flags->load.count, positive(kMostObjects),
               "The number of objects");
    add_number(*command, "--bytes", flags->load.bytes, up_to(kMostBytes),
               "The JSON size of each pod or config map");
    command->add_option("--ca", flags->ca_file, "The CA of the server's certificate (PEM)")
        ->type_name("FILE");
    return command;
  };

  add("sync", "Initial sync: from the start to a complete store", bench::sync_job,
      "--objects 20000 --mode list -o json");
  CLI::App* events = add("events", "Watch events: throughput and latency", bench::events_job,
                         "--events 100000 --rate 5000");
  add_number(*events, "--events", flags->job.events, positive(kMostEvents),
             "The number of changes");
  add_number(*events, "--rate", flags->load.rate, up_to(kMostEvents),
             "Changes per second; 0: as fast as possible");
  CLI::App* informers =
      add("informers", "Many informers", bench::informers_job, "--informers 1000");
  add_number(*informers, "--informers", flags->job.informers, positive(kMostInformers),
             "The number of informers");
  CLI::App* soak =
      add("soak", "One informer for a long time", bench::soak_job, "--for 8h --rate 100");
  add_number(*soak, "--rate", flags->load.rate, up_to(kMostEvents), "Changes per second; 0: none");
  add_duration(*soak, "--for", flags->job.duration, "The duration: 1h");
  CLI::App* store = add("store", "The store alone", bench::store_job, "--objects 1000000", false);
  add_number(*store, "--objects", flags->job.objects,
             CLI::Range(bench::kFewestStored, kMostObjects), "The number of objects in the store");

  CLI::App* storage = add("storage", "A server on etcd: many watchers of one changing resource",
                          bench::storage_job, "--watchers 200 --rate 2000", false);
  add_number(*storage, "--watchers", flags->storage.watchers, CLI::Range(1, 10000),
             "The number of watchers, each over HTTP");
  add_number(*storage, "--rate", flags->storage.rate, up_to(kMostEvents),
             "Writes per second; 0: as fast as possible");
  add_duration(*storage, "--for", flags->storage.load_time, "The duration of the load: 20s");
  add_number(*storage, "--objects", flags->storage.objects, CLI::Range(1, 100000),
             "The number of objects");
  add_number(*storage, "--bytes", flags->storage.object_bytes, up_to(kMostBytes),
             "The JSON size of each object");
  add_number(*storage, "--writers", flags->storage.writers, CLI::Range(1, 1000),
             "The number of connections that write");
  storage->add_option("--resource", flags->storage.resource, "The resource of the objects")
      ->check(CLI::IsMember({"pods", "endpointslices", "configmaps"}))
      ->capture_default_str();
  storage
      ->add_option("--etcd-endpoints", flags->storage.etcd_endpoints,
                   "Use a running etcd; default: start one, if it is installed")
      ->delimiter(',')
      ->type_name("URL,...");

  CLI::App* controller =
      add("controller", "A controller: reconciles per second, and latency of changes",
          bench::controller_job, "--objects 10000 -o json", false);
  add_number(*controller, "--objects", flags->controller.objects, CLI::Range(1, 1'000'000),
             "The number of objects");
  add_number(*controller, "--bytes", flags->controller.object_bytes, up_to(kMostBytes),
             "The data size of each object");
  add_number(*controller, "--rate", flags->controller.rate, CLI::Range(1, 100'000),
             "Changes per second");
  add_duration(*controller, "--for", flags->controller.load_time,
               "The duration of the changes: 5s");

  bench::add_fleet(*group, action);

  CLI::App* server = group->add_subcommand("server", "Serve the objects for the other benchmarks");
  server->add_option("--port", flags->server.port, "The port on 127.0.0.1; 0: any free port")
      ->check(up_to(65535));
  server->add_option("--tls-cert", flags->server.cert_file, "Use TLS with this certificate")
      ->type_name("FILE");
  server->add_option("--tls-key", flags->server.key_file, "The key of the certificate")
      ->type_name("FILE");
  server
      ->add_option("--protobuf-encoder", flags->encoder,
                   "Serve protobuf, too: a program that encodes it, such as client-go-peer encode")
      ->type_name("COMMAND");
  server->footer("Examples:\n  lookout bench server --port 8003");
  server->callback([flags, &action] { action = [flags] { return serve(*flags); }; });

  group->footer(
      "Without --server and --kubeconfig, the objects come from a server that lookout starts in\n"
      "another process. bench/compare.sh runs the same benchmarks with other clients, too.\n\n"
      "Examples:\n"
      "  lookout bench sync --objects 20000 --mode list -o json\n"
      "  lookout bench events --events 100000 --rate 5000\n"
      "  lookout bench store --objects 1000000\n"
      "  lookout bench storage --watchers 200 --rate 2000\n"
      "  lookout bench controller --objects 10000 -o json\n"
      "  lookout bench fleet --instances 200 --callers 50 --rate 10000\n"
      "  lookout bench sync --kubeconfig ~/.kube/config      # the pods of a real cluster");
}

}  // namespace lookout::cmd
