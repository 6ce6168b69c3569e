#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "tests/support/http_server.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;

TEST(ListWatchTest, AListMayTakeLongerThanOtherRequests) {
  const test::HttpServer server([](test::HttpConnection& connection) {
    while (connection.read_request()) {
      std::this_thread::sleep_for(100ms);
      connection.respond({.body = R"({"kind":"PodList","apiVersion":"v1",)"
                                  R"("metadata":{"resourceVersion":"7"},)"
                                  R"("items":[{"metadata":{"name":"a","namespace":"shop"}}]})"});
    }
  });
  rest::Config config;
  config.server = server.url();
  config.timeout = 20ms;
  const rest::Client client(config);
  ListWatch source(client.resource<k8s::core::v1::Pod>("shop").dynamic());
  std::vector<std::string> names;
  const auto on_item = [&](const api::Object& object) { names.emplace_back(object.name()); };
  const auto meta = client.loop().run(source.list(on_item, {}, {}));
  EXPECT_EQ(meta.resource_version, "7");
  EXPECT_EQ(names, std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace lookout::cache
