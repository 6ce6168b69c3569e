// A Go program on client-go (tests/interop/go) and this library find each other at one
// `lookout serve`. Needs the program: scripts/go-interop.sh builds it, $LOOKOUT_GO_INTEROP names
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "lookout/k8s/core/v1.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/cmd/program.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/go_program.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;

class GoInteropTest : public testing::Test {
 protected:
  void SetUp() override {
    program_ = lookout::test::go_program("LOOKOUT_GO_INTEROP", "go-interop");
    if (access(program_.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "there is no Go program: scripts/go-interop.sh builds it";
    }
    serve_.emplace(environment_);
    rest::Config config;
    config.server = serve_->url();
    client_.emplace(config);
  }

  /// The output of the Go program.
  std::string go(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"-server", serve_->url()});
    const auto result = environment_.run(program_, arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  }

  void create_pod(const std::string& name, const std::string& ip) const {
    const auto pods = client_->resource(k8s::core::v1::Pod::kResource, "default");
    pods.create(api::Object::parse(
        R"({"metadata":{"name":")" + name +
        R"("},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":8000},
             {"containerPort":9000,"name":"grpc-main"}]}]}})"));
    pods.patch(name, rest::PatchType::kMerge,
               R"({"status":{"phase":"Running","podIP":")" + ip +
                   R"(","conditions":[{"type":"Ready","status":"True"}]}})",
               {}, "status");
  }
  Options on_pod(const std::string& name) const {
    Options options;
    options.pod = {"default", name};
    return options;
  }

  std::string program_;
  lookout::test::ProgramEnvironment environment_;
  std::optional<lookout::test::ServeProcess> serve_;
  std::optional<rest::Client> client_;
};

TEST_F(GoInteropTest, AServiceInGoIsFoundHere) {
  create_pod("go", "10.0.0.1");
  const auto created = client_->resource(k8s::core::v1::Pod::kResource, "default").get("go");
  kratos::Registry registry(*client_);
  auto watcher = registry.watch("greeter");
  go({"kratos", "register", "default/go", "go-1", "greeter", "v1.2.3",
      R"({"zone":"sh001","note":"<a&b>"})", "http://0.0.0.0:8000", "grpc://0.0.0.0:9000"});
  const auto set = next_that(watcher, [](const auto& s) { return s.size() == 1; });
  ASSERT_TRUE(set);
  EXPECT_EQ((*set)[0],
            (ServiceInstance{.id = "go-1",
                             .name = "greeter",
                             .version = "v1.2.3",
                             .metadata = {{"zone", "sh001"}, {"note", "<a&b>"}},
                             .endpoints = {"http://10.0.0.1:8000", "grpc://10.0.0.1:9000"}}));
  const auto after = client_->resource(k8s::core::v1::Pod::kResource, "default").get("go");
  EXPECT_EQ(after["metadata"]["creationTimestamp"].as_string(),
            created["metadata"]["creationTimestamp"].as_string());
  go({"kratos", "deregister", "default/go"});
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.empty(); }));
}

TEST_F(GoInteropTest, AServiceHereIsFoundInGo) {
  create_pod("cpp", "fd00::1");
  kratos::Registry registry(*client_, on_pod("cpp"));
  registry.register_instance({.id = "cpp-1",
                              .name = "greeter",
                              .version = "v1.2.3",
                              .metadata = {{"zone", "sh001"}, {"note", "<a&b>"}},
                              .endpoints = {"http://0.0.0.0:8000", "grpc://0.0.0.0:9000"}});
  EXPECT_EQ(
      go({"kratos", "get", "greeter"}),
      R"([{"id":"cpp-1","name":"greeter","version":"v1.2.3","metadata":{"note":"\u003ca\u0026b\u003e","zone":"sh001"},"endpoints":["http://[fd00::1]:8000","grpc://[fd00::1]:9000"]}])"
      "\n");
  registry.deregister_instance({});
  EXPECT_EQ(go({"kratos", "get", "greeter"}), "[]\n");
}

TEST_F(GoInteropTest, BothSeeChangesOfTheOther) {
  for (int i = 0; i < 2; ++i) {
    create_pod(fmt::format("go-{}", i), fmt::format("10.0.0.{}", 1 + i));
    create_pod(fmt::format("cpp-{}", i), fmt::format("10.0.0.{}", 3 + i));
  }
  const auto log = environment_.home() / "watch";
  const auto go_watch =
      environment_.start(program_, {"-server", serve_->url(), "kratos", "watch", "greeter"}, log);
  // The last set that the Go program received.
  const auto told = [&] {
    const std::string text = lookout::test::read_file(log);
    const auto end = text.rfind('\n');
    if (end == std::string::npos) return std::string();
    const auto begin = text.rfind('\n', end - 1);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1));
  };
  const auto tells_of = [&](int instances, const std::string& id) {
    rapidjson::Document sets;
    sets.Parse(told().c_str());
    if (!sets.IsArray() || static_cast<int>(sets.Size()) != instances) return false;
    return std::ranges::any_of(sets.GetArray(),
                               [&](const auto& i) { return i["id"] == id.c_str(); });
  };

  kratos::Registry first(*client_, on_pod("cpp-0"));
  kratos::Registry second(*client_, on_pod("cpp-1"));
  auto watcher = first.watch("greeter");
  first.register_instance({.id = "cpp-0", .name = "greeter"});
  EXPECT_TRUE(eventually([&] { return tells_of(1, "cpp-0"); })) << told();
  go({"kratos", "register", "default/go-0", "go-0", "greeter", "v1", "{}"});
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  second.register_instance({.id = "cpp-1", .name = "greeter"});
  go({"kratos", "register", "default/go-1", "go-1", "greeter", "v1", "{}"});
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 4; }));
  EXPECT_TRUE(eventually([&] { return tells_of(4, "go-1"); })) << told();
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  client_->resource(k8s::core::v1::Pod::kResource, "default").remove("go-0", now);
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 3; }));
  EXPECT_TRUE(eventually([&] { return tells_of(3, "cpp-1"); })) << told();
}

TEST_F(GoInteropTest, RecordsOfDubboAreReadAndAddedByBoth) {
  create_pod("p", "10.0.0.1");
  go({"dubbo", "create", "default/p", "/dubbo/a/providers", ""});
  dubbo::ClientOptions options;
  options.pod = {"default", "p"};
  options.namespaces = {"default"};
  options.role = dubbo::Role::kProvider;
  dubbo::Client client(*client_, options);
  auto watcher = client.watch_with_prefix("/dubbo", dubbo::Begin::kWithWhatIsThere);
  ASSERT_TRUE(watcher.next_for(kLong));
  client.create("/dubbo/b/providers", "<b>");
  go({"dubbo", "create", "default/p", "/dubbo/c/providers", "c"});
  EXPECT_EQ(go({"dubbo", "get", "/dubbo/"}),
            R"([{"k":"/dubbo/a/providers","v":""},{"k":"/dubbo/b/providers","v":"\u003cb\u003e"},)"
            R"({"k":"/dubbo/c/providers","v":"c"}])"
            "\n");
  EXPECT_EQ(watcher.next_for(kLong)->key, "/dubbo/b/providers");
  EXPECT_EQ(watcher.next_for(kLong)->key, "/dubbo/c/providers");
}

}  // namespace
}  // namespace lookout::registry
