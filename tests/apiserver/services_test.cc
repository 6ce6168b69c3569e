// Cluster IPs and node ports: allocated, kept, rejected and released.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apiserver/resources/node_port_map.h"
#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/service_allocator.h"
#include "apiserver/resources/store.h"
#include "lookout/api/time.h"
#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/storage/storage_client.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

const api::Resource kAddresses{"networking.k8s.io", "v1", "IPAddress", "ipaddresses", false};

ServerOptions small_range() {
  ServerOptions options;
  options.service_cluster_ip_range = "10.9.0.0/28";  // 14 addresses
  return options;
}

Object service(const std::string& name, const std::string& spec = "") {
  return from_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"selector":{"a":"b"},)" +
                   R"("ports":[{"port":80}])" + spec + "}}");
}

Object with_ports(const std::string& name, const std::string& ports,
                  const std::string& spec = R"(,"type":"NodePort")") {
  return from_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"ports":[)" + ports + "]" +
                   spec + "}}");
}

/// A service with a health check port; by default, any port.
Object balancer(const std::string& name, int health_check_port = 0,
                const std::string& ports = R"({"port":80})") {
  const std::string wanted = health_check_port == 0
                                 ? ""
                                 : R"(,"healthCheckNodePort":)" + std::to_string(health_check_port);
  return with_ports(name, ports,
                    R"(,"type":"LoadBalancer","externalTrafficPolicy":"Local")" + wanted);
}

std::vector<std::int64_t> node_ports_of(const Object& object) {
  std::vector<std::int64_t> out;
  for (const api::Value port : object["spec"]["ports"].elements())
    out.push_back(port["nodePort"].as_int());
  return out;
}

std::int64_t health_check_port_of(const Object& object) {
  return object["spec"]["healthCheckNodePort"].as_int();
}

std::string address_of(const Object& object) {
  return std::string(object["spec"]["clusterIP"].as_string());
}

class Services : public ClientTest {
 protected:
  Services() : ClientTest(small_range()) {}

  rest::ResourceClient services() const { return in(kServices); }
  std::set<std::string> taken() const {
    std::set<std::string> out;
    for (const Object& address : all(kAddresses).list().items) out.emplace(address.name());
    return out;
  }
  api::Status refused(const Object& object) const {
    return status_of([&] { services().create(object); });
  }
  api::Status refused_change(const std::string& patch) const {
    return status_of([&] { services().patch("a", rest::PatchType::kMerge, patch); });
  }
  /// Whether no service has the node port.
  bool is_free(std::int64_t port) const {
    const auto object =
        with_ports("probe", R"({"port":80,"nodePort":)" + std::to_string(port) + "}");
    rest::CreateOptions dry;
    dry.dry_run = true;
    return status_of([&] { services().create(object, dry); }).code == 0;
  }
};

/// The error for a node port that is already allocated.
void expect_allocated(const api::Status& status, int port, const char* field) {
  EXPECT_EQ(status.code, 422);
  const std::string message =
      "Invalid value: " + std::to_string(port) + ": provided port is already allocated";
  EXPECT_THAT(status.causes, ElementsAre(api::StatusCause{"FieldValueInvalid", message, field}));
}

TEST_F(Services, GetADistinctAddress) {
  const Object created = services().create(service("a"));
  const api::Value spec = created["spec"];
  EXPECT_THAT(address_of(created), testing::StartsWith("10.9.0."));
  EXPECT_EQ(spec["clusterIPs"].to_json(), "[\"" + address_of(created) + "\"]");
  EXPECT_EQ(spec["ipFamilies"].to_json(), R"(["IPv4"])");
  EXPECT_EQ(spec["ipFamilyPolicy"].as_string(), "SingleStack");
  EXPECT_EQ(taken(), (std::set<std::string>{address_of(created)}));
  const Object address = all(kAddresses).get(address_of(created));
  EXPECT_EQ(address["spec"]["parentRef"].to_json(),
            R"({"name":"a","namespace":"default","resource":"services"})");
}

TEST_F(Services, MayBeHeadless) {
  const Object headless = services().create(service("h", R"(,"clusterIP":"None")"));
  EXPECT_EQ(headless["spec"]["clusterIPs"].to_json(), R"(["None"])");
  const Object external =
      services().create(from_json(R"({"metadata":{"name":"e"},"spec":{"type":"ExternalName",)"
                                  R"("externalName":"example.com"}})"));
  EXPECT_FALSE(external["spec"]["clusterIP"].exists());
  // The endpoints of a service without a selector are unknown.
  const Object any = services().create(
      from_json(R"({"metadata":{"name":"any"},"spec":{"clusterIP":"None","ports":[{"port":1}]}})"));
  EXPECT_EQ(any["spec"]["ipFamilies"].to_json(), R"(["IPv4","IPv6"])");
  EXPECT_EQ(any["spec"]["ipFamilyPolicy"].as_string(), "RequireDualStack");
  EXPECT_THAT(taken(), IsEmpty());
}

TEST_F(Services, HaveAddressesOfOneFamily) {
  const auto message = [&](const char* spec) {
    const std::string text = refused(service("a", spec)).message;
    return text.substr(text.find(": ") + 2);
  };
  const std::string unknown = "Invalid value: \"IPv6\": not configured on this cluster";
  EXPECT_EQ(message(R"(,"ipFamilies":["IPv6"])"), "spec.ipFamilies[0]: " + unknown);
  EXPECT_EQ(message(R"(,"clusterIP":"None","ipFamilies":["IPv6"])"),
            "spec.ipFamilies[0]: " + unknown);
  EXPECT_EQ(message(R"(,"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"])"),
            "[spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not "
            "configured for dual-stack services, spec.ipFamilies[1]: " +
                unknown + "]");
  EXPECT_EQ(message(R"(,"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4","IPv6"])"),
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
            "'PreferDualStack' when multiple IP families are specified");
}

TEST_F(Services, GetTheRequestedAddressIfFree) {
  EXPECT_EQ(address_of(services().create(service("a", R"(,"clusterIP":"10.9.0.5")"))), "10.9.0.5");
  EXPECT_THAT(refused(service("b", R"(,"clusterIP":"10.9.0.5")")).message,
              HasSubstr("failed to allocate IP 10.9.0.5: provided IP is already allocated"));
  EXPECT_THAT(refused(service("b", R"(,"clusterIP":"10.8.0.5")")).message,
              HasSubstr("the provided network does not match the current range"));
  EXPECT_THAT(refused(service("b", R"(,"clusterIP":"five")")).message,
              HasSubstr("must be a valid IP address"));
  services().remove("a");
  EXPECT_EQ(address_of(services().create(service("b", R"(,"clusterIP":"10.9.0.5")"))), "10.9.0.5");
}

TEST_F(Services, KeepTheirAddress) {
  const std::string address = address_of(services().create(service("a")));
  // A PUT without the address, and a change of the address.
  EXPECT_EQ(address_of(services().update(service("a"))), address);
  const std::string other = address == "10.9.0.14" ? "10.9.0.13" : "10.9.0.14";
  const api::Status status = status_of([&] {
    services().patch("a", rest::PatchType::kMerge, R"({"spec":{"clusterIP":")" + other + R"("}})");
  });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("may not change once set"));
  EXPECT_EQ(taken(), (std::set<std::string>{address}));
}

TEST_F(Services, AllocateNothingIfRejected) {
  services().create(service("a"));
  const auto before = taken();
  EXPECT_EQ(refused(service("a")).code, 409);
  EXPECT_EQ(refused(from_json(R"({"metadata":{"name":"b"},"spec":{"type":"NodePort",)"
                              R"("ports":[{"port":80,"nodePort":1}]}})"))
                .code,
            422);
  rest::CreateOptions dry;
  dry.dry_run = true;
  EXPECT_NE(address_of(services().create(service("b"), dry)), "");
  EXPECT_EQ(taken(), before);
}

TEST_F(Services, ReleaseTheirAddressWithTheirType) {
  services().create(service("a"));
  const Object external =
      services().patch("a", rest::PatchType::kMerge,
                       R"({"spec":{"type":"ExternalName","externalName":"example.com"}})");
  EXPECT_FALSE(external["spec"]["clusterIP"].exists());
  EXPECT_THAT(taken(), IsEmpty());
  const Object back = services().patch("a", rest::PatchType::kMerge,
                                       R"({"spec":{"type":"ClusterIP","externalName":null}})");
  EXPECT_EQ(taken(), (std::set<std::string>{address_of(back)}));
}

TEST_F(Services, RunOutOfAddresses) {
  // 14, and the first one is the API server's own.
  for (int i = 0; i < 13; ++i) services().create(service("s" + std::to_string(i)));
  EXPECT_EQ(taken().size(), 13u);
  const api::Status status = refused(service("more"));
  EXPECT_EQ(status.code, 500);
  EXPECT_THAT(status.message, HasSubstr("range is full"));
  services().remove_collection();
  EXPECT_THAT(taken(), IsEmpty());
}

// The random search misses it nearly always: it is one of 239.
TEST(ServicesOfALargeRange, GetTheLastFreeAddress) {
  ServerOptions options;
  options.service_cluster_ip_range = "10.9.0.0/24";
  const Server server(options);
  const rest::Client client(server.client_config());
  const rest::ResourceClient services = client.resource(kServices, "default");
  constexpr int kFirstDynamic = 16;
  for (int last = 2; last < 255; ++last) {
    if (last == kFirstDynamic) continue;
    const std::string number = std::to_string(last);
    services.create(service("s" + number, R"(,"clusterIP":"10.9.0.)" + number + "\""));
  }
  EXPECT_EQ(address_of(services.create(service("any"))), "10.9.0.16");
}

TEST_F(Services, GetNodePorts) {
  const Object any = services().create(service("any", R"(,"type":"NodePort")"));
  const std::int64_t port = any["spec"]["ports"][0]["nodePort"].as_int();
  EXPECT_GE(port, 30000);
  EXPECT_LE(port, 32767);
  const auto with_port = [](const std::string& name, int number) {
    return from_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"type":"NodePort",)" +
                     R"("ports":[{"port":80,"nodePort":)" + std::to_string(number) + "}]}}");
  };
  EXPECT_THAT(refused(with_port("b", static_cast<int>(port))).message,
              HasSubstr("provided port is already allocated"));
  EXPECT_THAT(refused(with_port("b", 80)).message,
              HasSubstr("The range of valid ports is 30000-32767"));
  const Object plain =
      services().patch("any", rest::PatchType::kMerge, R"({"spec":{"type":"ClusterIP"}})");
  EXPECT_FALSE(plain["spec"]["ports"][0]["nodePort"].exists());
  const Object again = services().create(with_port("b", static_cast<int>(port)));
  EXPECT_EQ(again["spec"]["ports"][0]["nodePort"].as_int(), port);
}

constexpr const char* kNotInRange =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";

TEST_F(Services, DoNotGetHealthCheckPortsOutsideOfTheRange) {
  for (const int port : {-1, 1, 29999, 32768, 33500, 70000}) {
    const api::Status status = refused(balancer("b", port));
    EXPECT_EQ(status.code, 500) << port;
    EXPECT_EQ(status.reason, "InternalError") << port;
    EXPECT_EQ(status.message,
              "Internal error occurred: failed to allocate requested HealthCheck NodePort " +
                  std::to_string(port) + ": " + kNotInRange);
  }
  services().create(with_ports("a", R"({"port":80})", R"(,"type":"LoadBalancer")"));
  EXPECT_EQ(
      refused_change(R"({"spec":{"externalTrafficPolicy":"Local","healthCheckNodePort":33500}})")
          .code,
      500);
  EXPECT_EQ(held(services().get("a"))["spec"]["externalTrafficPolicy"].as_string(), "Cluster");
  EXPECT_EQ(taken().size(), 1u);
}

TEST_F(Services, DoNotShareHealthCheckPorts) {
  services().create(balancer("a", 30123, R"({"port":80,"nodePort":30120})"));
  const std::string why =
      "Internal error occurred: failed to allocate requested HealthCheck NodePort ";
  const api::Status status = refused(balancer("b", 30123, R"({"port":80,"nodePort":30124})"));
  EXPECT_EQ(status.code, 500);
  EXPECT_EQ(status.message, why + "30123: provided port is already allocated");
  // The earlier allocated port is free again.
  EXPECT_TRUE(is_free(30124));
  // A port of the same service is a conflict as well.
  const api::Status own = refused(balancer("b", 30124, R"({"port":80,"nodePort":30124})"));
  EXPECT_EQ(own.message, why + "30124: provided port is already allocated");
  EXPECT_TRUE(is_free(30124));
  const api::Status swapped =
      refused_change(R"({"spec":{"externalTrafficPolicy":"Cluster","healthCheckNodePort":null,)"
                     R"("ports":[{"port":80,"nodePort":30123}]}})");
  expect_allocated(swapped, 30123, "spec.ports[0].nodePort");
  services().create(with_ports("n", R"({"port":80,"nodePort":30125})"));
  const api::Status mine = status_of([&] {
    services().patch("n", rest::PatchType::kMerge,
                     R"({"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local",)"
                     R"("healthCheckNodePort":30125}})");
  });
  EXPECT_EQ(mine.code, 500);
  EXPECT_EQ(mine.message, why + "30125: provided port is already allocated");
}

TEST_F(Services, KeepTheirHealthCheckPortWhileTheyNeedIt) {
  const std::int64_t port = health_check_port_of(services().create(balancer("a")));
  EXPECT_GE(port, 30000);
  EXPECT_EQ(health_check_port_of(services().update(balancer("a"))), port);
  const api::Status status = refused_change(R"({"spec":{"healthCheckNodePort":70000}})");
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("field is immutable"));
  EXPECT_THAT(status.message, HasSubstr("must be between 1 and 65535, inclusive"));
  EXPECT_FALSE(is_free(port));
  const Object everywhere = services().patch("a", rest::PatchType::kMerge,
                                             R"({"spec":{"externalTrafficPolicy":"Cluster"}})");
  EXPECT_FALSE(everywhere["spec"]["healthCheckNodePort"].exists());
  EXPECT_TRUE(is_free(port));
}

TEST_F(Services, WithTwoProtocolsOnOnePortHaveOneNodePort) {
  const auto both = [](const std::string& first, const std::string& second) {
    return with_ports("a", R"({"name":"a","port":53)" + first +
                               R"(},{"name":"b","port":53,"protocol":"UDP")" + second + "}");
  };
  const std::vector<std::int64_t> any = node_ports_of(services().create(both("", "")));
  EXPECT_GE(any[0], 30000);
  EXPECT_EQ(any[0], any[1]);
  for (const bool on_first : {true, false}) {
    services().remove("a");
    const std::string wanted = R"(,"nodePort":30053)";
    const Object created = services().create(both(on_first ? wanted : "", on_first ? "" : wanted));
    EXPECT_THAT(node_ports_of(created), ElementsAre(30053, 30053));
  }
}

TEST_F(Services, RejectASharedNodePortAtCreation) {
  const Object shared =
      with_ports("a", R"({"name":"a","port":80,"nodePort":30080},)"
                      R"({"name":"b","port":81,"protocol":"UDP","nodePort":30080})");
  const api::Status status = refused(shared);
  expect_allocated(status, 30080, "spec.ports[1].nodePort");
  rest::CreateOptions dry;
  dry.dry_run = true;
  EXPECT_EQ(status_of([&] { services().create(shared, dry); }).code, 422);
  EXPECT_TRUE(is_free(30080));
  // An update may share it.
  services().create(with_ports("a", R"({"name":"a","port":80,"nodePort":30080})"));
  EXPECT_THAT(node_ports_of(services().update(shared)), ElementsAre(30080, 30080));
}

TEST_F(Services, GetANodePortForEachPortThatIsAdded) {
  services().create(with_ports("a", R"({"name":"a","port":53,"nodePort":30053})"));
  const std::vector<std::int64_t> ports = node_ports_of(services().update(
      with_ports("a", R"({"name":"a","port":53},{"name":"b","port":53,"protocol":"UDP"})")));
  EXPECT_EQ(ports[0], 30053);
  EXPECT_GE(ports[1], 30000);
  EXPECT_NE(ports[1], 30053);
}

TEST_F(Services, KeepNodePortsByTheNamesOfTheirPorts) {
  services().create(with_ports("a", R"({"name":"http","port":80,"nodePort":30111})"));
  EXPECT_THAT(node_ports_of(services().update(with_ports("a", R"({"name":"http","port":8080})"))),
              ElementsAre(30111));
  const std::vector<std::int64_t> renamed =
      node_ports_of(services().update(with_ports("a", R"({"name":"web","port":8080})")));
  EXPECT_GE(renamed[0], 30000);
  EXPECT_NE(renamed[0], 30111);
  EXPECT_TRUE(is_free(30111));
  // Another port requests the one that it would keep.
  const std::vector<std::int64_t> moved = node_ports_of(services().update(
      with_ports("a", R"({"name":"b","port":81,"nodePort":)" + std::to_string(renamed[0]) +
                          R"(},{"name":"web","port":8080})")));
  EXPECT_EQ(moved[0], renamed[0]);
  EXPECT_NE(moved[1], renamed[0]);
}

TEST_F(Services, LoseFieldsOfTheirOldType) {
  const Object created = services().create(balancer("a"));
  const std::int64_t health = health_check_port_of(created);
  const Object running = services().update_status(
      changed(created, R"({"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}})"));
  EXPECT_EQ(running["status"]["loadBalancer"]["ingress"][0]["ip"].as_string(), "1.2.3.4");
  const Object same =
      services().patch("a", rest::PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_TRUE(same["status"]["loadBalancer"]["ingress"][0].exists());
  const Object plain =
      services().patch("a", rest::PatchType::kMerge, R"({"spec":{"type":"ClusterIP"}})");
  EXPECT_EQ(plain["status"]["loadBalancer"].to_json(), "{}");
  for (const char* field :
       {"allocateLoadBalancerNodePorts", "healthCheckNodePort", "externalTrafficPolicy"})
    EXPECT_FALSE(plain["spec"][field].exists()) << field;
  EXPECT_TRUE(is_free(health));
}

TEST_F(Services, LoseNodePortsThatAreNotNew) {
  services().create(with_ports("a", R"({"name":"a","port":80,"nodePort":30111},)"
                                    R"({"name":"b","port":81,"nodePort":30112})"));
  const auto to_internal = [](int first, int second) {
    return with_ports("a",
                      R"({"name":"a","port":80,"nodePort":)" + std::to_string(first) +
                          R"(},{"name":"b","port":81,"nodePort":)" + std::to_string(second) + "}",
                      R"(,"type":"ClusterIP")");
  };
  const api::Status status = status_of([&] { services().update(to_internal(30111, 30113)); });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("may not be used when `type` is 'ClusterIP'"));
  EXPECT_FALSE(is_free(30111));
  const Object changed = services().update(to_internal(30112, 30111));
  EXPECT_THAT(node_ports_of(changed), ElementsAre(0, 0));
  EXPECT_TRUE(is_free(30111));
  EXPECT_TRUE(is_free(30112));
}

TEST_F(Services, OmitTheInternalPolicyWithAnExternalName) {
  const std::string external = R"({"spec":{"type":"ExternalName","externalName":"a.b",)"
                               R"("internalTrafficPolicy":)";
  const Object created =
      services().create(with_ports("e", "",
                                   R"(,"type":"ExternalName","externalName":"a.b",)"
                                   R"("internalTrafficPolicy":"Local")"));
  EXPECT_FALSE(created["spec"]["internalTrafficPolicy"].exists());
  services().create(service("a"));
  const api::Status status = refused_change(external + R"("Bad"}})");
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("spec.internalTrafficPolicy: Unsupported value: \"Bad\""));
  const Object changed = services().patch("a", rest::PatchType::kMerge, external + R"("Local"}})");
  EXPECT_FALSE(changed["spec"]["internalTrafficPolicy"].exists());
}

TEST_F(Services, DoNotExposeThePortOfTheKubelet) {
  const auto create = [&](const std::string& type) {
    return http(
        server_.port(), "POST", "/api/v1/namespaces/default/services?dryRun=All",
        R"({"metadata":{"name":"s"},"spec":{"type":")" + type + R"(","ports":[{"port":10250}]}})");
  };
  EXPECT_EQ(create("NodePort").code, 201);
  EXPECT_EQ(causes_of(create("LoadBalancer")),
            std::vector<std::string>{"spec.ports[0]: Invalid value: 10250: may not expose port "
                                     "10250 externally since it is used by kubelet"});
}

TEST_F(Services, AcceptWhiteSpaceAroundSourceRanges) {
  const std::string list = R"(,"type":"LoadBalancer","loadBalancerSourceRanges":)";
  const Object created = services().create(service("a", list + R"([" 10.0.0.0/8 "])"));
  EXPECT_EQ(created["spec"]["loadBalancerSourceRanges"].to_json(), R"([" 10.0.0.0/8 "])");
  const api::Status status = refused(service("b", list + R"(["10.0.0.0/8"," 10.0.0.1/8 "])"));
  ASSERT_EQ(status.causes.size(), 1u);
  EXPECT_EQ(status.causes[0].field, "spec.LoadBalancerSourceRanges[1]");
  EXPECT_THAT(status.causes[0].message, StartsWith("Invalid value: \"10.0.0.1/8\": "));
}

TEST_F(Services, RejectContradictingTopologyAnnotations) {
  const auto annotated = [](const std::string& mode, const std::string& hints) {
    return from_json(R"({"metadata":{"name":"a","annotations":{)"
                     R"("service.kubernetes.io/topology-mode":")" +
                     mode + R"(","service.kubernetes.io/topology-aware-hints":")" + hints +
                     R"("}},"spec":{"ports":[{"port":80}]}})");
  };
  const api::Status status = refused(annotated("Auto", "Disabled"));
  ASSERT_EQ(status.causes.size(), 1u);
  EXPECT_EQ(status.causes[0],
            (api::StatusCause{"FieldValueInvalid",
                              "Invalid value: \"Auto\": must match "
                              "annotations[service.kubernetes.io/topology-aware-hints] when both "
                              "are specified",
                              "metadata.annotations[service.kubernetes.io/topology-mode]"}));
  services().create(annotated("Auto", "Auto"));
}

TEST_F(Services, MayHaveExternalNamesThatEndWithADot) {
  const auto named = [](const std::string& name) {
    return with_ports("a", "", R"(,"type":"ExternalName","externalName":")" + name + "\"");
  };
  for (const char* name : {"", "."}) {
    const api::Status status = refused(named(name));
    ASSERT_EQ(status.causes.size(), 1u) << name;
    EXPECT_EQ(status.causes[0],
              (api::StatusCause{"FieldValueRequired", "Required value", "spec.externalName"}));
  }
  EXPECT_THAT(refused(named("a_b.")).message,
              HasSubstr("spec.externalName: Invalid value: \"a_b\": "));
  EXPECT_EQ(held(services().create(named("a.b.")))["spec"]["externalName"].as_string(), "a.b.");
}

TEST_F(Services, KeepTheirFirstAddress) {
  const std::string address = address_of(services().create(service("a")));
  const std::string other = address == "10.9.0.14" ? "10.9.0.13" : "10.9.0.14";
  const api::Status status = refused_change(R"({"spec":{"clusterIPs":[")" + other + R"("]}})");
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("first value must match `clusterIP`"));
  EXPECT_THAT(status.message, HasSubstr("may not change once set"));
  EXPECT_EQ(taken(), (std::set<std::string>{address}));
}

TEST_F(Services, GetDistinctAddressesConcurrently) {
  std::vector<std::future<std::string>> all_of_them;
  for (int i = 0; i < 12; ++i) {
    all_of_them.push_back(std::async(std::launch::async, [this, i] {
      return address_of(services().create(service("s" + std::to_string(i))));
    }));
  }
  std::set<std::string> addresses;
  for (auto& one : all_of_them) addresses.insert(test::get(one));
  EXPECT_EQ(addresses.size(), 12u);
}

TEST(ServicesOfTwoServers, ShareTheRange) {
  ServerOptions options = small_range();
  options.storage = std::make_shared<storage::MemoryBackend>();
  Server one(options);
  Server other(options);
  const rest::Client first{one.client_config()};
  const rest::Client second{other.client_config()};
  std::set<std::string> addresses;
  for (int i = 0; i < 6; ++i) {
    const auto name = "s" + std::to_string(i);
    addresses.insert(address_of(first.resource(kServices, "default").create(service("a" + name))));
    addresses.insert(address_of(second.resource(kServices, "default").create(service("b" + name))));
  }
  EXPECT_EQ(addresses.size(), 12u);
}

/// Other servers may have used other ranges. Their services were written before `clusterIPs`.
TEST(ServicesOfOtherServers, MayHaveAnyAddressesAndPorts) {
  ServerOptions options = small_range();
  options.storage = std::make_shared<storage::MemoryBackend>();
  storage::TestThread thread;
  thread.run(options.storage->resource("services/specs").create("default/old", Object::parse(R"({
      "apiVersion": "v1", "kind": "Service",
      "metadata": {"name": "old", "namespace": "default", "uid": "1"},
      "spec": {"type": "LoadBalancer", "clusterIP": "192.168.7.7", "sessionAffinity": "None",
               "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
               "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Local",
               "allocateLoadBalancerNodePorts": true, "healthCheckNodePort": 20,
               "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 40000}]},
      "status": {"loadBalancer": {}}})")));
  thread.run(options.storage->resource("ranges").create("servicenodeports", Object::parse(R"({
      "apiVersion": "v1", "kind": "RangeAllocation", "metadata": {"name": "servicenodeports"},
      "range": "1-65535", "data": "AQ=="})")));
  for (const char* label : {"first", "after a restart"}) {
    const Server server(options);
    const rest::Client client{server.client_config()};
    const Object changed =
        client.resource(kServices, "default")
            .patch("old", rest::PatchType::kMerge,
                   R"({"metadata":{"annotations":{"a":")" + std::string(label) + R"("}}})");
    const api::Value spec = changed["spec"];
    EXPECT_EQ(spec["clusterIPs"].to_json(), R"(["192.168.7.7"])");
    EXPECT_THAT(node_ports_of(changed), ElementsAre(40000));
    EXPECT_EQ(health_check_port_of(changed), 20);
  }
  const Server server(options);
  const rest::Client client{server.client_config()};
  const rest::ResourceClient services = client.resource(kServices, "default");
  const Object plain = services.patch("old", rest::PatchType::kMerge,
                                      R"({"spec":{"externalTrafficPolicy":"Cluster"}})");
  EXPECT_FALSE(plain["spec"]["healthCheckNodePort"].exists());
  services.remove("old");
  EXPECT_GE(node_ports_of(services.create(with_ports("new", R"({"port":80})")))[0], 30000);
}

/// For example after the deletion of an IPAddress, or in an etcd that another server has filled.
TEST(ServicesOfAnEarlierServer, KeepWhatIsNotAllocated) {
  ServerOptions options = small_range();
  options.storage = std::make_shared<storage::MemoryBackend>();
  storage::TestThread thread;
  {
    const Server server(options);
    const rest::Client client{server.client_config()};
    const rest::ResourceClient services = client.resource(kServices, "default");
    services.create(service("a", R"(,"clusterIP":"10.9.0.5")"));
    services.create(balancer("b", 30099, R"({"port":80,"nodePort":30080})"));
    services.create(service("gone", R"(,"clusterIP":"10.9.0.6")"));
    services.remove("gone");
    client.resource(kAddresses).remove("10.9.0.5");
    storage::Preconditions none;
    storage::Interface::Validate anything;
    thread.run(options.storage->resource("ranges").remove("servicenodeports", none, anything));
  }
  const Server server(options);
  const rest::Client client{server.client_config()};
  const rest::ResourceClient services = client.resource(kServices, "default");
  const Object address = client.resource(kAddresses).get("10.9.0.5");
  EXPECT_EQ(address["spec"]["parentRef"].to_json(),
            R"({"name":"a","namespace":"default","resource":"services"})");
  const auto code = [&](const Object& wanted) {
    return status_of([&] { services.create(wanted); }).code;
  };
  EXPECT_EQ(code(service("c", R"(,"clusterIP":"10.9.0.5")")), 422);
  EXPECT_EQ(code(with_ports("c", R"({"port":80,"nodePort":30080})")), 422);
  EXPECT_EQ(code(with_ports("c", R"({"port":80,"nodePort":30099})")), 422);
  EXPECT_EQ(code(service("d", R"(,"clusterIP":"10.9.0.6")")), 0);
  EXPECT_EQ(code(with_ports("e", R"({"port":80,"nodePort":30081})")), 0);
  // They are released with their services.
  services.remove("a");
  services.remove("b");
  EXPECT_EQ(code(service("f", R"(,"clusterIP":"10.9.0.5")")), 0);
  EXPECT_EQ(code(with_ports("g", R"({"name":"a","port":80,"nodePort":30080},)"
                                 R"({"name":"b","port":81,"nodePort":30099})")),
            0);
}

// Lookout's allocator without a server.
class ServiceRepair : public testing::Test {
 protected:
  static Object allocated(const std::string& address, const std::string& service,
                          const char* created) {
    return Object::parse(
        R"({"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{"name":")" +
        address + R"(","uid":"u","creationTimestamp":")" + created +
        R"(","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},)" +
        R"("spec":{"parentRef":{"resource":"services","namespace":"default","name":")" + service +
        "\"}}}");
  }
  /// Stores a service and nothing else.
  void store(const std::string& name, const std::string& spec) {
    thread_.run(services_->storage->create(
        "default/" + name,
        Object::parse(
            R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":")" +
            name + R"("},"spec":)" + spec + "}")));
  }
  void store(const Object& address) {
    thread_.run(addresses_->storage->create(std::string(address.name()), address));
  }
  void repair() { thread_.run(allocator_.repair(services_, leaked_)); }
  /// The service that has the address.
  std::string owner(const std::string& address) {
    const Object found = thread_.run(addresses_->storage->get(address));
    return found ? std::string(found["spec"]["parentRef"]["name"].as_string()) : "";
  }
  std::set<std::int64_t> ports() {
    return resources::NodePortMap(thread_.run(ranges_.get("servicenodeports"))).taken();
  }

  storage::MemoryBackend backend_;
  storage::TestThread thread_;
  resources::ResourceRegistry registry_{backend_};
  const resources::Store store_{registry_.table()->find("", "v1", "namespaces")};
  const resources::ServedResourcePtr services_ = registry_.table()->find("", "v1", "services");
  const resources::ServedResourcePtr addresses_ =
      registry_.table()->find("networking.k8s.io", "v1", "ipaddresses");
  storage::Interface& ranges_ = backend_.resource("ranges");
  const resources::ServiceAllocator allocator_{store_, addresses_, ranges_, "10.9.0.0/28", false};
  resources::ServiceAllocator::LeakedPorts leaked_;
};

constexpr const char* kLongAgo = "2020-01-01T00:00:00Z";

TEST_F(ServiceRepair, ReleasesAddressesThatNoServiceHas) {
  store("a", R"({"clusterIP":"10.9.0.5","clusterIPs":["10.9.0.5"]})");
  store(allocated("10.9.0.5", "a", kLongAgo));
  store(allocated("10.9.0.6", "a", kLongAgo));
  store(allocated("10.9.0.7", "gone", kLongAgo));
  const std::string now = api::format_time(
      std::chrono::time_point_cast<api::Time::duration>(std::chrono::system_clock::now()));
  store(allocated("10.9.0.8", "coming", now.c_str()));
  // Somebody else's.
  store(allocated("10.10.0.9", "gone", kLongAgo));
  repair();
  EXPECT_EQ(owner("10.9.0.5"), "a");
  EXPECT_EQ(owner("10.9.0.6"), "");
  EXPECT_EQ(owner("10.9.0.7"), "");
  EXPECT_EQ(owner("10.9.0.8"), "coming");
  EXPECT_EQ(owner("10.10.0.9"), "gone");
}

TEST_F(ServiceRepair, GivesAnAddressToTheServiceThatHasIt) {
  store("a", R"({"clusterIP":"10.9.0.5","clusterIPs":["10.9.0.5"]})");
  store("b", R"({"clusterIP":"10.9.0.6","clusterIPs":["10.9.0.6"]})");
  store("twin", R"({"clusterIP":"10.9.0.6","clusterIPs":["10.9.0.6"]})");
  store("c", R"({"clusterIP":"10.9.0.7","clusterIPs":["10.9.0.7"]})");
  store("d", R"({"clusterIP":"192.168.7.7","clusterIPs":["192.168.7.7"]})");
  store(allocated("10.9.0.5", "gone", kLongAgo));
  store(allocated("10.9.0.6", "twin", kLongAgo));
  repair();
  EXPECT_EQ(owner("10.9.0.5"), "a");
  EXPECT_EQ(owner("10.9.0.6"), "twin");
  EXPECT_EQ(owner("10.9.0.7"), "c");
  EXPECT_EQ(owner("192.168.7.7"), "");
}

TEST_F(ServiceRepair, ReleasesPortsThatNoServiceHasAfterThreeRepairs) {
  store("a",
        R"({"type":"NodePort","clusterIP":"10.9.0.5","ports":[{"port":80,"nodePort":30001}]})");
  // 30000, 30001 and 30080.
  thread_.run(ranges_.create("servicenodeports", Object::parse(R"({"apiVersion":"v1",
      "kind":"RangeAllocation","metadata":{},"range":"30000-32767","data":"AQAAAAAAAAAAAAM="})")));
  for (int i = 0; i < 2; ++i) {
    repair();
    EXPECT_EQ(ports(), (std::set<std::int64_t>{30000, 30001, 30080}));
  }
  // Its service has been created meanwhile.
  store("b",
        R"({"type":"NodePort","clusterIP":"10.9.0.6","ports":[{"port":80,"nodePort":30080}]})");
  repair();
  EXPECT_EQ(ports(), (std::set<std::int64_t>{30001, 30080}));
}

/// The bytes are those of a Go big.Int.
TEST(NodePorts, AreStoredAsByKubeApiserver) {
  ServerOptions options;
  options.storage = std::make_shared<storage::MemoryBackend>();
  storage::TestThread thread;
  storage::Interface& ranges = options.storage->resource("ranges");
  const auto data = [&] {
    return std::string(held(thread.run(ranges.get("servicenodeports")))["data"].as_string());
  };
  {
    const Server server(options);
    const rest::Client client{server.client_config()};
    const rest::ResourceClient services = client.resource(kServices, "default");
    services.create(with_ports("a", R"({"port":80,"nodePort":30080})"));
    EXPECT_EQ(data(), "AQAAAAAAAAAAAAA=");
    services.create(with_ports("b", R"({"port":80,"nodePort":30000})"));
    EXPECT_EQ(data(), "AQAAAAAAAAAAAAE=");
    services.remove("a");
    EXPECT_EQ(data(), "AQ==");
    services.remove("b");
    EXPECT_EQ(data(), "");
  }
  // The last port, in another range: 30100-30107.
  storage::Preconditions none;
  thread.run(ranges.guaranteed_update("servicenodeports", true, none, [](const Object&) {
    return Object::parse(
        R"({"apiVersion":"v1","kind":"RangeAllocation","metadata":{},"range":"30100-30107",
        "data":"gA=="})");
  }));
  const Server server(options);
  const rest::Client client{server.client_config()};
  const rest::ResourceClient services = client.resource(kServices, "default");
  EXPECT_EQ(
      status_of([&] { services.create(with_ports("c", R"({"port":80,"nodePort":30107})")); }).code,
      422);
  services.create(with_ports("d", R"({"port":80,"nodePort":30007})"));
}

TEST(ServiceRange, MustBeValid) {
  for (const char* range : {"", "10.0.0.0", "10.0.0.0/8", "10.0.0.0/31", "x/24", "10.0.0.0/x"}) {
    ServerOptions options;
    options.service_cluster_ip_range = range;
    EXPECT_THROW(Server{options}, Error) << range;
  }
}

}  // namespace
}  // namespace lookout::apiserver
