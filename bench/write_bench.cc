// Writes to the embedded API server, with and without managedFields: the CPU time of a request,
// including the client.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include <string>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"

// NOLINTBEGIN(readability-identifier-naming): benchmarks are named after their functions.

namespace lookout {
namespace {

const api::Resource kDeployments{"apps", "v1", "Deployment", "deployments", true};

api::Object deployment(const std::string& name, int replicas) {
  return api::Object::parse(fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{}","labels":{{"app":"web"}}}},
          "spec":{{"replicas":{},"selector":{{"matchLabels":{{"app":"web"}}}},
          "template":{{"metadata":{{"labels":{{"app":"web","tier":"front"}}}},
          "spec":{{"containers":[{{"name":"main","image":"web:1","ports":[{{"containerPort":80}}],
          "env":[{{"name":"A","value":"1"}},{{"name":"B","value":"2"}}],
          "resources":{{"requests":{{"cpu":"100m"}},"limits":{{"memory":"64Mi"}}}},
          "readinessProbe":{{"httpGet":{{"path":"/ready","port":80}}}}}},
          {{"name":"side","image":"side:1"}}]}}}}}}}})",
      name, replicas));
}

/// A server and a client for deployments.
struct World {
  explicit World(bool managed_fields) : server(options(managed_fields)) {}

  static apiserver::ServerOptions options(bool managed_fields) {
    apiserver::ServerOptions out;
    out.threads = 1;
    out.managed_fields = managed_fields;
    return out;
  }

  apiserver::Server server;
  rest::Client client{server.client_config()};
  rest::ResourceClient deployments = client.resource(kDeployments, "default");
};

void BM_Create(benchmark::State& state) {
  World world(state.range(0) != 0);
  int i = 0;
  for (auto _ : state) world.deployments.create(deployment(fmt::format("web-{}", i++), 1));
}
BENCHMARK(BM_Create)->ArgName("managed")->Arg(0)->Arg(1)->MeasureProcessCPUTime()->UseRealTime();

void BM_Update(benchmark::State& state) {
  World world(state.range(0) != 0);
  world.deployments.create(deployment("web", 1));
  int replicas = 1;
  for (auto _ : state) world.deployments.update(deployment("web", ++replicas));
}
BENCHMARK(BM_Update)->ArgName("managed")->Arg(0)->Arg(1)->MeasureProcessCPUTime()->UseRealTime();

void BM_MergePatch(benchmark::State& state) {
  World world(state.range(0) != 0);
  world.deployments.create(deployment("web", 1));
  int replicas = 1;
  for (auto _ : state) {
    world.deployments.patch("web", rest::PatchType::kMerge,
                            fmt::format(R"({{"spec":{{"replicas":{}}}}})", ++replicas));
  }
}
BENCHMARK(BM_MergePatch)
    ->ArgName("managed")
    ->Arg(0)
    ->Arg(1)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_Apply(benchmark::State& state) {
  World world(true);
  int replicas = 1;
  for (auto _ : state)
    world.deployments.apply(deployment("web", ++replicas), {.field_manager = "bench"});
}
BENCHMARK(BM_Apply)->MeasureProcessCPUTime()->UseRealTime();

/// The size of an object in the store, with and without managedFields.
void BM_ObjectBytes(benchmark::State& state) {
  World world(true);
  const api::Object object = world.deployments.create(deployment("web", 1));
  rapidjson::Document without = object.to_document();
  without["metadata"].RemoveMember("managedFields");
  const api::Object bare = api::Object::from(without);
  for (auto _ : state) benchmark::DoNotOptimize(object.to_json());
  state.counters["with"] = static_cast<double>(object.memory_size());
  state.counters["without"] = static_cast<double>(bare.memory_size());
}
BENCHMARK(BM_ObjectBytes);

}  // namespace
}  // namespace lookout

// NOLINTEND(readability-identifier-naming)
