// Several `lookout serve --storage etcd` on one etcd: each is a complete server, and all have the
// same state.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/cmd/program.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout {
namespace {

using k8s::core::v1::ConfigMap;
using test::eventually;

api::Object map(const std::string& name, int value) {
  return api::Object::parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"k":"{}"}}}})",
      name, value));
}

class EtcdServeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
  }

  static std::vector<std::string> flags(const test::EtcdCluster& etcd) {
    std::string endpoints;
    for (const std::string& one : etcd.endpoints())
      endpoints += (endpoints.empty() ? "" : ",") + one;
    return {"--storage", "etcd", "--etcd-endpoints", endpoints};
  }
  static rest::Client client_of(const test::ServeProcess& serve) {
    rest::Config config;
    config.server = serve.url();
    return rest::Client(config);
  }
  /// True if an informer has the objects of a server's list.
  static bool same(const rest::TypedClient<ConfigMap>& maps,
                   const informer::SharedInformer<ConfigMap>& informer) {
    const auto listed = maps.list();
    const auto now = informer.untyped_informer().store().snapshot();
    return now.size() == listed.items.size() &&
           std::all_of(listed.items.begin(), listed.items.end(),
                       [&](const ConfigMap& one) { return now.get(one.ns(), one.name()) == one; });
  }

  test::ProgramEnvironment environment_;
};

TEST_F(EtcdServeTest, AnInformerOfOneServerSeesWritesThroughAnother) {
  test::EtcdCluster etcd;
  const test::ServeProcess one(environment_, flags(etcd));
  const test::ServeProcess two(environment_, flags(etcd));
  EXPECT_THAT(one.output(), HasSubstr("Objects are kept in etcd at " + etcd.endpoint()));
  const rest::Client reader = client_of(one);
  const rest::Client writer = client_of(two);
  informer::SharedInformerFactory factory(reader, {.ns = "default"});
  const auto informer = factory.informer<ConfigMap>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const auto maps = writer.resource<ConfigMap>("default");
  for (int i = 0; i < 30; ++i) maps.create(map(fmt::format("m{}", i), i));
  for (int i = 0; i < 30; i += 3) maps.remove(fmt::format("m{}", i));
  for (int i = 1; i < 30; i += 3)
    maps.patch(fmt::format("m{}", i), rest::PatchType::kMerge, R"({"data":{"k":"new"}})");
  EXPECT_TRUE(eventually([&] { return same(maps, informer); }));
  // Each one immediately sees the newest state of either server.
  const auto there = reader.resource<ConfigMap>("default");
  EXPECT_EQ(there.list().items.size(), maps.list().items.size());
  EXPECT_EQ(informer.untyped_informer().stats().watches, 1u) << "one watch throughout";
  // A definition created on one server is also served by the other.
  writer
      .resource(api::Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                              "customresourcedefinitions", false))
      .create(api::Object::parse(
          R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
              "metadata":{"name":"tabs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
              "names":{"plural":"tabs","singular":"tab","kind":"Tab","listKind":"TabList"},
              "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
              {"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})"));
  const auto tabs =
      reader.resource(api::Resource("example.com", "v1", "Tab", "tabs", true), "default");
  EXPECT_TRUE(eventually([&] {
    try {
      tabs.create(api::Object::parse(
          R"({"apiVersion":"example.com/v1","kind":"Tab","metadata":{"name":"t"}})"));
      return true;
    } catch (const api::StatusError& e) {
      return api::is_already_exists(e);
    }
  }));
  // The keys equal those of a real API server.
  EXPECT_THAT(etcd.etcdctl({"get", "--prefix", "--keys-only", "/registry"}),
              testing::AllOf(HasSubstr("/registry/configmaps/default/m1\n"),
                             HasSubstr("/registry/namespaces/default\n"),
                             HasSubstr("/registry/example.com/tabs/default/t\n")));
}

/// The informer's version is in the future of the restored etcd. A server that was running knows which
/// versions are lost (410); one that has just started does not (504).
TEST_F(EtcdServeTest, AnInformerSeesTheStateOfARestoredEtcd) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts ? "the server restarts" : "the server keeps running");
    test::EtcdCluster etcd;
    const std::string listen = fmt::format("127.0.0.1:{}", test::free_port());
    const auto start = [&] {
      return std::make_unique<test::ServeProcess>(environment_, flags(etcd), listen);
    };
    std::unique_ptr<test::ServeProcess> serve = start();
    const rest::Client client = client_of(*serve);
    const auto maps = client.resource<ConfigMap>("default");
    maps.create(map("kept", 1));
    maps.create(map("changed", 1));
    const std::string snapshot = etcd.save_snapshot(0);
    informer::SharedInformerFactory factory(client, {.ns = "default"});
    const auto informer = factory.informer<ConfigMap>();
    factory.start();
    ASSERT_TRUE(factory.wait_for_cache_sync());
    for (int i = 0; i < 20; ++i) maps.create(map(fmt::format("lost-{}", i), i));
    maps.patch("changed", rest::PatchType::kMerge, R"({"data":{"k":"2"}})");
    maps.remove("kept");
    ASSERT_TRUE(eventually([&] { return same(maps, informer); }));
    if (restarts) serve.reset();
    etcd.restore(snapshot);
    if (restarts) serve = start();
    EXPECT_TRUE(eventually([&] {
      const auto now = informer.untyped_informer().store().snapshot();
      const auto changed = now.get("default", "changed");
      return now.size() == 2 && now.get("default", "kept") && changed &&
             changed["data"]["k"].as_string() == "1";
    }));
    EXPECT_TRUE(eventually([&] {
      try {
        maps.create(map("new", 1));
        return true;
      } catch (const api::StatusError& e) {
        return api::is_already_exists(e);
      } catch (const Error&) {
        return false;
      }
    }));
    EXPECT_TRUE(eventually([&] { return same(maps, informer); }));
  }
}

TEST_F(EtcdServeTest, ServersMayStartTogether) {
  for (int i = 0; i < 3; ++i) {
    test::EtcdCluster etcd;
    // Either server creates the initial objects.
    const auto serve = [&] {
      try {
        const test::ServeProcess one(environment_, flags(etcd));
        const auto services = client_of(one).resource<k8s::core::v1::Service>("default");
        EXPECT_EQ(services.get("kubernetes").name(), "kubernetes");
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    };
    std::thread beside(serve);
    serve();
    beside.join();
  }
}

TEST_F(EtcdServeTest, AnInformerContinuesWhileMembersAreKilled) {
  test::EtcdCluster etcd({.members = 3});
  const test::ServeProcess one(environment_, flags(etcd));
  const test::ServeProcess two(environment_, flags(etcd));
  const rest::Client reader = client_of(one);
  const auto maps = client_of(two).resource<ConfigMap>("default");
  informer::SharedInformerFactory factory(reader, {.ns = "default"});
  const auto informer = factory.informer<ConfigMap>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  int written = 0;
  const auto write = [&] {
    for (int i = 0; i < 10; ++i) {
      const std::string name = fmt::format("m{}", ++written);
      // Without a leader, writes are rejected.
      EXPECT_TRUE(eventually([&] {
        try {
          maps.create(map(name, i));
          return true;
        } catch (const std::exception& e) {
          return api::is_already_exists(e);
        }
      }));
    }
  };
  for (std::size_t member = 0; member < 3; ++member) {
    etcd.kill(member);
    write();
    etcd.restart(member);
    etcd.wait_until_ready();
    write();
  }
  EXPECT_TRUE(eventually([&] { return same(maps, informer); }));
  EXPECT_EQ(maps.list().items.size(), 60u);
  EXPECT_EQ(informer.untyped_informer().stats().watches, 1u) << "it did not notice anything";
}

TEST_F(EtcdServeTest, ObjectsOutliveTheServers) {
  test::EtcdCluster etcd;
  {
    test::ServeProcess serve(environment_, flags(etcd));
    client_of(serve).resource<ConfigMap>("default").create(map("kept", 1));
    EXPECT_EQ(serve.terminate(), 0);
  }
  const test::ServeProcess again(environment_, flags(etcd));
  EXPECT_EQ(client_of(again).resource<ConfigMap>("default").get("kept").name(), "kept");
}

TEST_F(EtcdServeTest, SecretsAreEncryptedIfConfigured) {
  test::EtcdCluster etcd;
  const test::TempDir dir;
  test::write_file(dir / "encryption.yaml", R"(
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: key1, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}
  - identity: {}
)");
  auto arguments = flags(etcd);
  arguments.insert(arguments.end(), {"--encryption-config", (dir / "encryption.yaml").string()});
  const test::ServeProcess serve(environment_, arguments);
  const rest::Client client = client_of(serve);
  const auto secrets =
      client.resource(api::Resource("", "v1", "Secret", "secrets", true), "default");
  secrets.create(api::Object::parse(
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"v"}})"));
  client.resource<ConfigMap>("default").create(map("plain", 1));
  EXPECT_EQ(secrets.get("s").name(), "s");
  EXPECT_THAT(etcd.etcdctl({"get", "/registry/secrets/default/s"}),
              testing::AllOf(HasSubstr("k8s:enc:aesgcm:v1:key1:"), Not(HasSubstr("\"kind\""))));
  EXPECT_THAT(etcd.etcdctl({"get", "/registry/configmaps/default/plain"}), HasSubstr("\"kind\""));
}

TEST_F(EtcdServeTest, HasAWatchCacheByDefault) {
  const std::string filled = "apiserver_watch_cache_initializations_total{";
  for (const bool cached : {true, false}) {
    auto arguments = flags(test::shared_etcd());
    arguments.insert(arguments.end(), {"--etcd-prefix", test::unique_etcd_prefix()});
    if (!cached) arguments.emplace_back("--watch-cache=false");
    test::ServeProcess serve(environment_, arguments);
    const rest::Client client = client_of(serve);
    const auto maps = client.resource<ConfigMap>("default");
    maps.create(map("a", 1));
    EXPECT_EQ(maps.list().items.size(), 1u);
    EXPECT_THAT(client.get_raw("/metrics"),
                testing::Conditional(cached, HasSubstr(filled), Not(HasSubstr(filled))));
    EXPECT_EQ(serve.terminate(), 0);
  }
}

TEST_F(EtcdServeTest, ReportsAnUnreachableEtcd) {
  const auto result =
      environment_.run(test::lookout_program(),
                       {"serve", "--listen", "127.0.0.1:0", "--storage", "etcd", "--etcd-endpoints",
                        fmt::format("http://127.0.0.1:{}", test::free_port())});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("/etcdserverpb.KV/Range"));
}

}  // namespace
}  // namespace lookout
