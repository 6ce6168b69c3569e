// Informers against the embedded server.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lookout/api/core/v1.h"
#include "lookout/apiserver/server.h"
#include "lookout/informer/shared_informer_factory.h"
#include "tests/support/eventually.h"

namespace lookout {
namespace {

using core::v1::ConfigMap;
using test::eventually;

class EmbeddedServerTest : public testing::Test {
 protected:
  void create(const std::string& name, const std::string& value = "1") {
    maps_.create(api::Object::parse(fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","labels":{{"v":"{}"}}}},"data":{{"k":"{}"}}}})",
        name, value, value)));
  }
  void change(const std::string& name, const std::string& value) {
    maps_.patch(
        name, rest::PatchType::kMerge,
        fmt::format(R"({{"metadata":{{"labels":{{"v":"{0}"}}}},"data":{{"k":"{0}"}}}})", value));
  }

  apiserver::Server server_;
  rest::Client client_{server_.client_config()};
  rest::TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
};

TEST_F(EmbeddedServerTest, StreamsTheStateAndGoesOn) {
  for (int i = 0; i < 20; ++i) create(fmt::format("map-{}", i));
  informer::SharedInformerFactory factory(client_, {.ns = "default"});
  const auto informer = factory.informer<ConfigMap>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_EQ(informer.lister().list().size(), 20u);
  EXPECT_EQ(informer.untyped_informer().stats().streamed_lists, 1u);
  EXPECT_EQ(informer.untyped_informer().stats().watches, 1u);
  change("map-3", "2");
  maps_.remove("map-4");
  create("new");
  const auto listed = maps_.list();
  EXPECT_TRUE(eventually([&] {
    const auto now = informer.untyped_informer().store().snapshot();
    if (now.size() != listed.items.size()) return false;
    return std::all_of(listed.items.begin(), listed.items.end(),
                       [&](const ConfigMap& map) { return now.get(map.ns(), map.name()) == map; });
  }));
  EXPECT_EQ(informer.untyped_informer().stats().watches, 1u) << "the same watch goes on";
  EXPECT_TRUE(informer.live());
}

TEST_F(EmbeddedServerTest, WhatIsStreamedIsWhatAListHas) {
  for (int i = 0; i < 20; ++i) create(fmt::format("map-{}", i));
  cache::ReflectorOptions reflector;
  reflector.check_consistency = true;
  const auto pool = std::make_shared<informer::HandlerPool>(client_.shared_loop());
  informer::SharedIndexInformer informer(std::make_shared<cache::ListWatch>(maps_.dynamic()),
                                         {.reflector = reflector}, client_.shared_loop(), pool);
  informer.start();
  ASSERT_TRUE(informer.wait_for_sync());
  EXPECT_EQ(informer.store().size(), 20u);
  EXPECT_EQ(informer.stats().streamed_lists, 1u);
  EXPECT_EQ(informer.stats().inconsistencies, 0u);
  EXPECT_EQ(informer.stats().errors, 0u);
}

TEST_F(EmbeddedServerTest, KeepsMetadataOnly) {
  create("x", "1");
  informer::SharedInformerFactory factory(client_, {.ns = "default", .metadata_only = true});
  const auto informer = factory.for_resource(ConfigMap::kResource);
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const auto value = [&] {
    const auto object = informer->store().get("default", "x");
    EXPECT_EQ(object.kind(), "PartialObjectMetadata");
    EXPECT_FALSE(object["data"].exists());
    return std::string(object.labels()["v"].as_string());
  };
  EXPECT_EQ(value(), "1");
  change("x", "2");
  EXPECT_TRUE(eventually([&] { return value() == "2"; }));
}

TEST_F(EmbeddedServerTest, ATweakedInformerFollowsASelection) {
  create("in", "1");
  create("out", "2");
  informer::FactoryOptions options;
  options.tweak_list_options = [](rest::ListOptions& list) { list.label_selector = "v=1"; };
  informer::SharedInformerFactory factory(client_, std::move(options));
  const auto informer =
      factory.for_resource(api::GroupVersionResource{"", "v1", "configmaps"}, {.ns = "default"});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_EQ(informer->store().list_keys(), std::vector<std::string>{"default/in"});
  change("out", "1");
  change("in", "2");
  EXPECT_TRUE(eventually(
      [&] { return informer->store().list_keys() == std::vector<std::string>{"default/out"}; }));
}

}  // namespace
}  // namespace lookout
