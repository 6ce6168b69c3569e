#include "lookout/apiserver/server.h"

#include <gtest/gtest.h>

#include "lookout/rest/client.h"

namespace lookout::apiserver {
namespace {

TEST(Server, ServesAPodInOneLine) {
  Server server;
  const rest::Client client(server.client_config());
  const auto pods = client.resource({"", "v1", "Pod", "pods", true}, "default");
  const auto created = pods.create(api::Object::parse(
      R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}})"));
  EXPECT_EQ(created.name(), "web");
  EXPECT_EQ(pods.get("web"), created);
}

}  // namespace
}  // namespace lookout::apiserver
