// A frozen `lookout serve` behind a balancer with a second server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "tests/cmd/program.h"
#include "tests/support/eventually.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout {
namespace {

using k8s::core::v1::ConfigMap;
using test::eventually;
using namespace std::chrono_literals;

rest::Config config_of(const std::string& url) {
  rest::Config config;
  config.server = url;
  config.keepalive.probe_after = 1s;
  config.keepalive.probe_timeout = 2s;
  // The balancer sends the probe to another server: only the silence indicates the failure.
  config.keepalive.stream_silence = 5s;
  return config;
}

void put(const test::ServeProcess& serve, const std::string& name) {
  const rest::Client client{config_of(serve.url())};
  client.resource<ConfigMap>("default").dynamic().create(api::Object::parse(
      fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}}}})", name)));
}

int port_of(const test::ServeProcess& serve) {
  return std::stoi(serve.url().substr(serve.url().rfind(':') + 1));
}

/// The process keeps its connections, and the kernel acknowledges data for it.
TEST(SilentServerTest, TheInformerFailsOverToTheNextServer) {
  const test::ProgramEnvironment environment;
  test::ServeProcess one(environment);
  const test::ServeProcess two(environment);
  put(one, "of-one");
  put(two, "of-two");
  std::atomic<int> port{port_of(one)};
  const test::HttpServer balancer([&](test::HttpConnection& c) { c.tunnel_to(port); });

  std::mutex mutex;
  std::vector<std::string> errors;
  informer::SharedInformerFactory factory{rest::Client{config_of(balancer.url())}};
  const auto maps = factory.informer<ConfigMap>();
  maps.untyped_informer().set_watch_error_handler([&](std::string_view, const std::exception& e) {
    const std::lock_guard lock(mutex);
    errors.emplace_back(e.what());
  });
  const auto has = [&maps](const char* name) {
    return static_cast<bool>(maps.lister().ns("default").find(name));
  };
  factory.start();
  ASSERT_TRUE(eventually([&] { return has("of-one"); }));

  one.signal(SIGSTOP);
  port = port_of(two);
  EXPECT_TRUE(eventually([&] { return has("of-two") && !has("of-one"); }))
      << "the other server's state is the state";
  {
    const std::lock_guard lock(mutex);
    EXPECT_THAT(errors, Contains(HasSubstr("the connection was lost")));
  }
  put(two, "later");
  EXPECT_TRUE(eventually([&] { return has("later"); }));
  one.signal(SIGCONT);
}

}  // namespace
}  // namespace lookout
