// Rules of controller-runtime's controllerutil that no other test covers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/controller/create_or_update.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"
#include "tests/controller/manager_fixture.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::ConfigMapDraft;

class ControllerUtilTest : public ManagerFixture {};

TEST_F(ControllerUtilTest, AReadErrorIsRethrown) {
  rest::Config config;
  config.server = "http://127.0.0.1:1";  // nothing listens there
  const rest::Client nobody(config);
  const auto maps = nobody.resource<ConfigMap>("default");
  int calls = 0;
  const auto mutate = [&](const ConfigMapDraft&) { ++calls; };
  EXPECT_THROW(create_or_update(maps, "m", mutate), Error);
  EXPECT_THROW(create_or_patch(maps, "m", mutate), Error);
  EXPECT_EQ(calls, 0);
}

TEST_F(ControllerUtilTest, AnExistingObjectKeepsItsNameAndNamespace) {
  maps_.create(ConfigMap::draft("m", "default"));
  const auto rename = [](const ConfigMapDraft& map) { map.metadata().set_name("n"); };
  const auto move = [](const ConfigMapDraft& map) { map.metadata().set_namespace("other"); };
  EXPECT_THROW(create_or_update(maps_, "m", rename), InvalidArgument);
  EXPECT_THROW(create_or_update(maps_, "m", move), InvalidArgument);
  EXPECT_THROW(create_or_patch(maps_, "m", rename), InvalidArgument);
  EXPECT_THROW(create_or_patch(maps_, "m", move), InvalidArgument);
  EXPECT_EQ(maps_.list().items.size(), 1U);
}

TEST_F(ControllerUtilTest, ANewObjectKeepsItsName) {
  const auto rename = [](const ConfigMapDraft& map) { map.metadata().set_name("n"); };
  EXPECT_THROW(create_or_update(maps_, "m", rename), InvalidArgument);
  EXPECT_THROW(create_or_patch(maps_, "m", rename), InvalidArgument);
  EXPECT_TRUE(maps_.list().items.empty());
}

TEST(FinalizerUtilTest, EveryInstanceIsRemoved) {
  const auto map = ConfigMap::draft("m", "default");
  const auto finalizers = map.metadata().finalizers();
  for (const char* each : {"example.com/a", "example.com/b", "example.com/a"})
    finalizers.append(each);
  EXPECT_TRUE(remove_finalizer(map, "example.com/a"));
  EXPECT_EQ(finalizers.size(), 1U);
  EXPECT_FALSE(has_finalizer(map.build(), "example.com/a"));
  EXPECT_FALSE(remove_finalizer(map, "example.com/a"));
}

}  // namespace
}  // namespace lookout::controller
