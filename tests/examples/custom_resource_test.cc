// The example custom_resource, run as a program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/base/yaml_tree.h"
#include "lookout/k8s/apiextensions/v1.h"
#include "lookout/rest/client.h"
#include "lookout/rest/kubeconfig.h"
#include "tests/cmd/program.h"

namespace lookout {
namespace {

TEST(CustomResourceExampleTest, WritesAndReadsItsObjectInEveryRun) {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  client.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(
      api::Object::parse(to_json(YamlTree(test::read_file(CRD_FILE)).root())));

  test::ProgramEnvironment environment;
  const std::string kubeconfig = (environment.home() / "config").string();
  rest::write_kubeconfig(kubeconfig, server.client_config());
  environment.set("KUBECONFIG", kubeconfig);
  for (int run = 0; run < 2; ++run) {
    const auto result = environment.run(LOOKOUT_EXAMPLE_CUSTOM_RESOURCE, {});
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(result.output, "default/backup runs backup:1.0 at \"0 3 * * *\", 2 at a time\n");
  }

  const api::Object backup =
      client.resource({"stable.example.com", "v1", "CronTab", "crontabs", true}, "default")
          .get("backup");
  EXPECT_EQ(backup["spec"]["env"][0]["value"].as_string(), "/mnt/backups");
  const api::Value ready = backup["status"]["conditions"][0];
  EXPECT_EQ(ready["type"].as_string(), "Ready");
  EXPECT_EQ(ready["reason"].as_string(), "Scheduled");
  EXPECT_NE(ready["lastTransitionTime"].as_string(), "");
}

}  // namespace
}  // namespace lookout
