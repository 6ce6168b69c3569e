// Services as xDS resources.
#include "cmd/registry/xds/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/registry/xds/proto/cluster.pb.h"
#include "cmd/registry/xds/proto/endpoint.pb.h"
#include "cmd/registry/xds/proto/route.pb.h"
#include "tests/xds/world.h"

namespace lookout::cmd::registry_cmd::xds::test {
namespace {

using envoy::config::endpoint::v3::ClusterLoadAssignment;
using registry::ServiceInstance;
using testing::ElementsAre;
using testing::IsEmpty;

/// "ZONE/SUM: ADDRESS:PORT*WEIGHT ..." for each zone.
std::vector<std::string> zones_of(const std::vector<ServiceInstance>& instances,
                                  const std::string& scheme = "grpc") {
  ClusterLoadAssignment load;
  EXPECT_TRUE(load.ParseFromString(make_endpoints(*make_set("web", instances), scheme)->value));
  EXPECT_EQ(load.cluster_name(), "web");
  std::vector<std::string> out;
  for (const auto& zone : load.endpoints()) {
    EXPECT_TRUE(zone.has_locality());
    std::string text =
        zone.locality().zone() + "/" + std::to_string(zone.load_balancing_weight().value()) + ":";
    for (const auto& one : zone.lb_endpoints()) {
      const auto& at = one.endpoint().address().socket_address();
      text += " " + at.address() + ":" + std::to_string(at.port_value()) + "*" +
              std::to_string(one.load_balancing_weight().value());
    }
    out.push_back(text);
  }
  return out;
}

TEST(XdsResources, EndpointsAreReadyInstancesByZoneWithTheirWeights) {
  auto one = instance(1);
  one.zone = "b";
  one.metadata = {{"weight", "300"}};
  auto two = instance(2);
  two.zone = "a";
  auto three = instance(3);
  three.zone = "b";
  three.metadata = {{"weight", "much"}};
  auto unready = instance(4);
  unready.ready = false;
  auto drained = instance(5);
  drained.metadata = {{"weight", "0"}};
  EXPECT_THAT(
      zones_of({one, two, three, unready, drained}),
      ElementsAre("a/100: 10.0.0.2:9000*100", "b/400: 10.0.0.1:9000*300 10.0.0.3:9000*100"));
  EXPECT_THAT(zones_of({unready}), IsEmpty());
}

TEST(XdsResources, EndpointsHaveAnAddressAndAPortAndOccurOnce) {
  auto twice = instance(1);
  twice.origin = "default/twin";
  auto v6 = instance(2);
  v6.endpoints = {"http://[fd00::1]:80", "grpc://[fd00::1]:9000"};
  auto name = instance(3);
  name.endpoints = {"grpc://web.example:9000"};
  auto no_port = instance(4);
  no_port.endpoints = {"grpc://10.0.0.4"};
  auto sidecar = instance(5);
  sidecar.endpoints[0].set_announced(false);
  const std::vector<ServiceInstance> all = {instance(1), twice, v6, name, no_port, sidecar};
  EXPECT_THAT(zones_of(all), ElementsAre("/200: 10.0.0.1:9000*100 fd00::1:9000*100"));
  EXPECT_THAT(zones_of(all, "http"), ElementsAre("/100: fd00::1:80*100"));
}

TEST(XdsResources, TheSchemeIsTheFirstOfTheService) {
  auto http = instance(1);
  http.endpoints = {"http://10.0.0.1:80"};
  auto both = instance(2);
  both.endpoints = {"http://10.0.0.2:80", "grpc://10.0.0.2:9000"};
  EXPECT_EQ(scheme_of(*make_set("web", {http}), {"grpc", "http"}), "http");
  EXPECT_EQ(scheme_of(*make_set("web", {http, both}), {"grpc", "http"}), "grpc");
  EXPECT_EQ(scheme_of(*make_set("web", {http, both}), {"grpc", "http"}, "http"), "grpc");
  EXPECT_EQ(scheme_of(*make_set("web", {http}), {"grpc"}), "grpc");
}

TEST(XdsResources, UnreadyInstancesChooseTheSchemeOnlyOfANewService) {
  auto http = instance(1);
  http.endpoints = {"http://10.0.0.1:80"};
  auto unready = instance(2);
  unready.endpoints = {"http://10.0.0.2:80", "grpc://10.0.0.2:9000"};
  unready.ready = false;
  auto drained = instance(3);
  drained.metadata = {{"weight", "0"}};
  auto name = instance(4);
  name.endpoints = {"grpc://web.example:9000"};
  const std::vector<std::string> schemes = {"tri", "grpc", "http"};
  EXPECT_EQ(scheme_of(*make_set("web", {http, unready, drained, name}), schemes), "http");
  EXPECT_EQ(scheme_of(*make_set("web", {http, unready}), schemes, "grpc"), "http");
  EXPECT_EQ(scheme_of(*make_set("web", {unready}), schemes, "http"), "http");
  EXPECT_EQ(scheme_of(*make_set("web", {unready}), schemes), "grpc");
  EXPECT_EQ(scheme_of(*make_set("web", {}), schemes), "tri");
}

TEST(XdsResources, GrpcClustersUseHttp2) {
  envoy::config::cluster::v3::Cluster grpc;
  envoy::config::cluster::v3::Cluster http;
  ASSERT_TRUE(grpc.ParseFromString(make_cluster("web", "grpc")->value));
  ASSERT_TRUE(http.ParseFromString(make_cluster("web", "http")->value));
  EXPECT_EQ(grpc.typed_extension_protocol_options().size(), 1u);
  EXPECT_EQ(make_cluster("web", "GRPC")->version, make_cluster("web", "grpc")->version)
      << "schemes are case-insensitive";
  EXPECT_EQ(http.typed_extension_protocol_options().size(), 0u);
  EXPECT_TRUE(http.eds_cluster_config().eds_config().has_ads());
}

TEST(XdsResources, RoutesHaveNoTimeout) {
  envoy::config::route::v3::RouteConfiguration route;
  ASSERT_TRUE(route.ParseFromString(make_route("web")->value));
  const auto& action = route.virtual_hosts(0).routes(0).route();
  EXPECT_EQ(action.cluster(), "web");
  EXPECT_TRUE(action.has_timeout());
  EXPECT_EQ(action.timeout().seconds(), 0);
}

TEST(XdsResources, VersionsDependOnlyOnTheContent) {
  const auto one = make_endpoints(*make_set("web", {instance(1)}), "grpc");
  EXPECT_EQ(one->version, make_endpoints(*make_set("web", {instance(1)}), "grpc")->version);
  EXPECT_NE(one->version, make_endpoints(*make_set("web", {instance(2)}), "grpc")->version);
  EXPECT_EQ(make_no_endpoints("web")->version,
            make_endpoints(*make_set("web", {}), "grpc")->version);
}

TEST(XdsResources, TypesAreFoundByTheirUrls) {
  for (const Type type : kTypes) EXPECT_EQ(type_of(type_url(type)), type);
  EXPECT_EQ(type_of("type.googleapis.com/envoy.config.cluster.v3.Cluster"), Type::kCluster);
  EXPECT_EQ(type_of("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"),
            std::nullopt);
}

TEST(XdsSnapshot, RevisionsGrowWithChanges) {
  World world;
  world.set("web", {instance(1)});
  world.set("cart", {instance(2)});
  const Snapshot before = world.now();
  world.set("web", {instance(1)});  // another set with the same content
  EXPECT_EQ(world.now().revision(Type::kEndpoints), before.revision(Type::kEndpoints));
  world.set("web", {instance(3)});
  EXPECT_GT(world.now().revision(Type::kEndpoints), before.revision(Type::kEndpoints));
  EXPECT_EQ(world.now().revision(Type::kCluster), before.revision(Type::kCluster));
  EXPECT_EQ(world.now().find(Type::kEndpoints, "cart"), before.find(Type::kEndpoints, "cart"));
  world.remove("cart");
  world.set("user", {instance(2)});
  for (const Type type : kTypes) EXPECT_GT(world.now().revision(type), before.revision(type));
  EXPECT_EQ(world.now().find(Type::kListener, "cart"), nullptr);
  EXPECT_NE(world.now().find(Type::kListener, "user"), nullptr);
}

TEST(XdsSnapshot, AnUnreadyPodDoesNotRemoveOtherEndpoints) {
  World world;
  auto old_version = instance(1);
  old_version.endpoints = {"http://10.0.0.1:80"};
  auto new_version = instance(2);
  new_version.endpoints = {"http://10.0.0.2:80", "grpc://10.0.0.2:9000"};
  new_version.ready = false;
  world.set("web", {old_version});
  const Snapshot before = world.now();
  world.set("web", {old_version, new_version});
  EXPECT_EQ(world.now().find(Type::kCluster, "web"), before.find(Type::kCluster, "web"));
  EXPECT_EQ(world.now().find(Type::kEndpoints, "web"), before.find(Type::kEndpoints, "web"));
  old_version.ready = false;
  world.set("web", {old_version, new_version});
  EXPECT_EQ(world.now().find(Type::kCluster, "web"), before.find(Type::kCluster, "web"));
  new_version.ready = true;
  world.set("web", {old_version, new_version});
  EXPECT_NE(world.now().find(Type::kCluster, "web"), before.find(Type::kCluster, "web"));
}

TEST(XdsSnapshot, AServiceWithoutInstancesKeepsItsScheme) {
  World world;
  auto http = instance(1);
  http.endpoints = {"http://10.0.0.1:80"};
  world.set("web", {http});
  const auto before = world.now().find(Type::kCluster, "web");
  world.set("web", {});
  EXPECT_EQ(world.now().find(Type::kCluster, "web"), before);
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd::xds::test
