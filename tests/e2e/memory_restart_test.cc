// A `lookout serve` with a memory storage is killed under load and restarts without objects: connected
// informers detect this.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "tests/cmd/program.h"
#include "tests/support/eventually.h"

namespace lookout {
namespace {

using k8s::core::v1::ConfigMap;
using test::eventually;

api::Object map(const std::string& name, const std::string& value) {
  return api::Object::parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"k":"{}"}}}})",
      name, value));
}

/// Makes many changes as fast as possible, to raise the resourceVersion.
void burst(const rest::TypedClient<ConfigMap>& maps, int changes) {
  constexpr int kWriters = 8;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      const std::string name = fmt::format("busy-{}", writer);
      maps.create(map(name, ""));
      for (int i = writer; i < changes; i += kWriters) {
        maps.patch(name, rest::PatchType::kMerge, fmt::format(R"({{"data":{{"k":"{}"}}}})", i));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
}

TEST(MemoryRestart, AnInformerSeesTheStateOfTheNextServer) {
  const test::ProgramEnvironment environment;
  const std::string listen = fmt::format("127.0.0.1:{}", test::free_port());
  const auto start = [&] {
    return std::make_unique<test::ServeProcess>(environment, test::ProgramEnvironment::Arguments{},
                                                listen);
  };
  std::unique_ptr<test::ServeProcess> serve = start();
  rest::Config config;
  config.server = serve->url();
  const rest::Client client(config);
  const auto maps = client.resource<ConfigMap>("default");
  informer::SharedInformerFactory factory(client, {.ns = "default"});
  const auto informer = factory.informer<ConfigMap>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const auto same = [&] {
    const auto listed = maps.list();
    const auto now = informer.untyped_informer().store().snapshot();
    return now.size() == listed.items.size() &&
           std::all_of(listed.items.begin(), listed.items.end(),
                       [&](const ConfigMap& one) { return now.get(one.ns(), one.name()) == one; });
  };
  std::uint64_t newest = 0;
  for (int round = 0; round < 2; ++round) {
    burst(maps, 3000);
    ASSERT_TRUE(eventually(same));
    const std::uint64_t reached = std::stoull(maps.list().resource_version);
    serve->kill();
    serve.reset();
    serve = start();
    newest = std::stoull(maps.list().resource_version);
    EXPECT_GT(newest, reached) << "what was given out before has expired";
    const std::string name = fmt::format("after-{}", round);
    maps.create(map(name, "x"));
    EXPECT_TRUE(eventually([&] {
      const auto now = informer.untyped_informer().store().snapshot();
      return now.get("default", name) && !now.get("default", "busy-0");
    }));
    EXPECT_TRUE(eventually(same));
    maps.remove(name);
  }
}

}  // namespace
}  // namespace lookout
