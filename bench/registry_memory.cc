// Measures the memory of a registry with many pods: a whole process that watches a server in another
// process.
//
//   registry_memory [PODS [SERVICES [WATCHERS]]]      100000 1000 0 unless given
//
// Pods are those of bench/objects.h, about 6 KB of JSON each, with the labels and annotations of
// kratos.
#include <fmt/format.h>
#include <malloc.h>
#include <rapidjson/document.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/objects.h"
#include "bench/run_main.h"
#include "lookout/api/merge_patch.h"
#include "lookout/apiserver/server.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::bench {
namespace {

std::string service_name(std::size_t n) { return fmt::format("service-{}", n); }

struct Sizes {
  std::size_t pods = 100'000;
  std::size_t services = 1'000;
  std::size_t watchers = 0;
};

/// A field of /proc/self/status, in bytes.
double memory(const std::string& field) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + field);
}

// ------------------------------------------------------------------------------------ the server

Awaitable<void> fill(apiserver::storage::Interface& storage, Sizes sizes) {
  for (std::size_t n = 0; n < sizes.pods; ++n) {
    rapidjson::Document pod;
    pod.Parse(pod_json(n).c_str());
    rapidjson::Document announced;
    // (The server's garbage collector would delete pods without existing owners.)
    announced.Parse(
        fmt::format(
            R"({{"metadata":{{"ownerReferences":null,"labels":{{"kratos-service-id":"{}-{:012x}","kratos-service-app":"{}","kratos-service-version":"v3.5.{}","topology.kubernetes.io/zone":"zone-{}"}},"annotations":{{"kratos-service-metadata":"{{\"region\":\"sh\",\"zone\":\"sh00{}\",\"cluster\":\"pd\"}}","kratos-service-protocols":"{{\"8080\":\"http\",\"9090\":\"http\",\"15001\":\"grpc\"}}"}}}}}})",
            "56991810-c77f-4a95-8190", n, service_name(n % sizes.services), n % 7, n % 3, n % 3)
            .c_str());
    api::apply_merge_patch(pod, announced, pod.GetAllocator());
    const auto object = api::Object::from(pod);
    co_await storage.create(object.key(), object);
  }
}

[[noreturn]] void serve(Sizes sizes, int told) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  apiserver::Server server;
  EventLoop loop(1);
  loop.run(fill(server.storage().resource("pods"), sizes));
  const std::string url = server.url() + "\n";
  if (write(told, url.data(), url.size()) < 0) std::exit(1);
  for (;;) pause();
}

// ---------------------------------------------------------------------------------- the registry

struct Reading {
  double anonymous = memory("RssAnon");
  double all = memory("VmRSS");
  double peak = memory("VmHWM");
  double in_use = static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd);
};

void print(const char* when, const Reading& now, const Reading& before, const Sizes& sizes) {
  const auto pods = static_cast<double>(sizes.pods);
  fmt::print(
      "{:<28} anonymous {:7.1f} MB  resident {:7.1f} MB  peak {:7.1f} MB  malloc {:7.1f} MB"
      "   a pod: {:5.0f} B (whole process {:5.0f}, peak {:5.0f}, malloc {:5.0f})\n",
      when, now.anonymous / 1e6, now.all / 1e6, now.peak / 1e6, now.in_use / 1e6,
      (now.anonymous - before.anonymous) / pods, now.all / pods, now.peak / pods,
      (now.in_use - before.in_use) / pods);
}

void measure(const std::string& url, const Sizes& sizes) {
  rest::Config config;
  config.server = url;
  const Reading before;
  const auto start = std::chrono::steady_clock::now();
  registry::kratos::Registry registry{rest::Client{config}, {.ns = registry::kAllNamespaces}};
  const auto set = registry.get_service(service_name(0), {.timeout = std::chrono::minutes(5)});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  // (The memory of the first list is returned shortly after the sync.)
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const Reading synced;
  fmt::print("{} pods, {} services, {} instances of the first; synced in {:.2f} s\n",
             registry.stats().objects, registry.services().size(), set->size(), took.count());
  print("before", before, before, sizes);
  print("synced", synced, before, sizes);
  std::vector<registry::Watcher> watchers;
  for (std::size_t w = 0; w < sizes.watchers; ++w) {
    watchers.push_back(registry.watch(service_name(w % sizes.services)));
    if (!watchers.back().next_for(std::chrono::minutes(1))) throw std::runtime_error("no set");
  }
  if (sizes.watchers > 0) {
    print(fmt::format("{} services watched", std::min(sizes.watchers, sizes.services)).c_str(),
          Reading(), before, sizes);
  }
  malloc_trim(0);
  print("after malloc_trim", Reading(), before, sizes);
}

int run(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.pods = std::stoul(argv[1]);
  if (argc > 2) sizes.services = std::stoul(argv[2]);
  if (argc > 3) sizes.watchers = std::stoul(argv[3]);
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw std::runtime_error("no pipe");
  const pid_t server = fork();
  if (server < 0) throw std::runtime_error("no process");
  if (server == 0) serve(sizes, pipe_ends[1]);
  close(pipe_ends[1]);
  std::string url(200, '\0');
  const ssize_t size = read(pipe_ends[0], url.data(), url.size());
  if (size <= 1) throw std::runtime_error("the server did not start");
  url.resize(static_cast<std::size_t>(size) - 1);
  measure(url, sizes);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace lookout::bench

int main(int argc, char** argv) {
  return lookout::bench::run_main("registry_memory",
                                  [&] { return lookout::bench::run(argc, argv); });
}
