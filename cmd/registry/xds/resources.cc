#include "cmd/registry/xds/resources.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "cmd/registry/xds/proto/cluster.pb.h"
#include "cmd/registry/xds/proto/core.pb.h"
#include "cmd/registry/xds/proto/endpoint.pb.h"
#include "cmd/registry/xds/proto/http_connection_manager.pb.h"
#include "cmd/registry/xds/proto/http_protocol_options.pb.h"
#include "cmd/registry/xds/proto/listener.pb.h"
#include "cmd/registry/xds/proto/route.pb.h"
#include "cmd/registry/xds/proto/router.pb.h"
#include "lookout/base/ascii.h"
#include "lookout/base/numbers.h"

namespace lookout::cmd::registry_cmd::xds {
namespace {

namespace cluster = envoy::config::cluster::v3;
namespace core = envoy::config::core::v3;
namespace endpoint = envoy::config::endpoint::v3;
namespace hcm = envoy::extensions::filters::network::http_connection_manager::v3;
namespace listener = envoy::config::listener::v3;
namespace route = envoy::config::route::v3;
using envoy::extensions::filters::http::router::v3::Router;
using envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
using registry::ServiceInstance;

constexpr std::string_view kTypePrefix = "type.googleapis.com/";
/// The default weight of the registry library.
constexpr std::uint32_t kDefaultWeight = 100;
constexpr std::uint32_t kMaxWeight = 65535;
constexpr std::size_t kVersionBytes = 16;

std::string url_of(const google::protobuf::MessageLite& message) {
  return std::string(kTypePrefix) + message.GetTypeName();
}

void pack(const google::protobuf::MessageLite& message, google::protobuf::Any& any) {
  any.set_type_url(url_of(message));
  message.SerializeToString(any.mutable_value());
}

std::string version_of(const std::string& content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  EVP_Digest(content.data(), content.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::string out;
  for (std::size_t i = 0; i < kVersionBytes; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

ResourcePtr make_resource(std::string name, const google::protobuf::MessageLite& message) {
  // No message has a map with more than one entry, so equal messages have equal bytes.
  std::string value = message.SerializeAsString();
  std::string version = version_of(value);
  return std::make_shared<const Resource>(
      Resource{std::move(name), std::move(version), std::move(value)});
}

void set_this_stream(core::ConfigSource& source) {
  source.mutable_ads();
  source.set_resource_api_version(core::V3);
}

bool is_grpc(std::string_view scheme) {
  constexpr std::array kSchemes = {"grpc", "grpcs", "tri", "h2c"};
  return std::ranges::any_of(
      kSchemes, [&](std::string_view known) { return base::equal_ignoring_case(scheme, known); });
}

std::uint32_t weight_of(const ServiceInstance& instance) {
  const auto found = instance.metadata.find("weight");
  if (found == instance.metadata.end()) return kDefaultWeight;
  const auto weight = base::parse_number<std::uint32_t>(found->second);
  return weight ? std::min(*weight, kMaxWeight) : kDefaultWeight;
}

/// Endpoints of EDS have IP addresses: clients do not resolve names in them.
bool is_address(std::string_view host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

/// The endpoint for clients of the instance; null if there is none.
const registry::Endpoint* served_endpoint(const ServiceInstance& instance,
                                          std::string_view scheme) {
  if (!instance.ready || weight_of(instance) == 0) return nullptr;
  const registry::Endpoint* const at = instance.endpoint(scheme);
  return at != nullptr && at->port() != 0 && is_address(at->host()) ? at : nullptr;
}

route::RouteConfiguration route_to(const std::string& service) {
  route::RouteConfiguration out;
  out.set_name(service);
  auto& host = *out.add_virtual_hosts();
  host.set_name(service);
  host.add_domains("*");
  auto& added = *host.add_routes();
  added.mutable_match()->set_prefix("");
  added.mutable_route()->set_cluster(service);
  // Without it, Envoy ends streams after 15 seconds.
  added.mutable_route()->mutable_timeout();
  return out;
}

}  // namespace

const std::string& type_url(Type type) {
  static const std::array<std::string, kTypes.size()> kUrls = {
      url_of(cluster::Cluster()), url_of(endpoint::ClusterLoadAssignment()),
      url_of(listener::Listener()), url_of(route::RouteConfiguration())};
  return kUrls[index_of(type)];
}

std::optional<Type> type_of(std::string_view url) {
  const auto found = std::ranges::find(kTypes, url, [](Type type) { return type_url(type); });
  return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

std::string scheme_of(const registry::InstanceSet& set, const std::vector<std::string>& schemes,
                      const std::string& before) {
  const auto first = [&](auto endpoint_of) {
    return std::ranges::find_if(schemes, [&](const std::string& scheme) {
      return std::any_of(set.begin(), set.end(), [&](const ServiceInstance& instance) {
        return endpoint_of(instance, scheme) != nullptr;
      });
    });
  };
  if (const auto served = first(served_endpoint); served != schemes.end()) return *served;
  if (!before.empty()) return before;
  const auto announced = first([](const ServiceInstance& instance, const std::string& scheme) {
    return instance.endpoint(scheme);
  });
  return announced == schemes.end() ? schemes.front() : *announced;
}

ResourcePtr make_cluster(const std::string& service, std::string_view scheme) {
  cluster::Cluster out;
  out.set_name(service);
  out.set_type(cluster::Cluster::EDS);
  out.set_lb_policy(cluster::Cluster::ROUND_ROBIN);
  set_this_stream(*out.mutable_eds_cluster_config()->mutable_eds_config());
  out.mutable_eds_cluster_config()->set_service_name(service);
  if (is_grpc(scheme)) {
    HttpProtocolOptions http;
    http.mutable_explicit_http_config()->mutable_http2_protocol_options();
    pack(http, (*out.mutable_typed_extension_protocol_options())[http.GetTypeName()]);
  }
  return make_resource(service, out);
}

ResourcePtr make_endpoints(const registry::InstanceSet& set, std::string_view scheme) {
  endpoint::ClusterLoadAssignment out;
  out.set_cluster_name(set.service());
  std::set<std::string_view> known;
  std::map<std::string_view, endpoint::LocalityLbEndpoints> zones;
  for (const ServiceInstance& instance : set) {
    const registry::Endpoint* const at = served_endpoint(instance, scheme);
    if (at == nullptr) continue;
    const std::uint32_t weight = weight_of(instance);
    if (!known.insert(at->authority()).second) continue;
    auto& zone = zones[instance.zone];
    auto& added = *zone.add_lb_endpoints();
    auto& socket = *added.mutable_endpoint()->mutable_address()->mutable_socket_address();
    socket.set_address(std::string(at->host()));
    socket.set_port_value(at->port());
    added.set_health_status(core::HEALTHY);
    added.mutable_load_balancing_weight()->set_value(weight);
    // gRPC clients distribute their calls over the zones by this weight.
    auto& sum = *zone.mutable_load_balancing_weight();
    sum.set_value(sum.value() + weight);
  }
  for (auto& [name, zone] : zones) {
    zone.mutable_locality()->set_zone(std::string(name));
    *out.add_endpoints() = std::move(zone);
  }
  return make_resource(set.service(), out);
}

ResourcePtr make_no_endpoints(const std::string& service) {
  endpoint::ClusterLoadAssignment out;
  out.set_cluster_name(service);
  return make_resource(service, out);
}

ResourcePtr make_listener(const std::string& service) {
  hcm::HttpConnectionManager manager;
  manager.set_stat_prefix(service);
  *manager.mutable_route_config() = route_to(service);
  auto& filter = *manager.add_http_filters();
  filter.set_name("envoy.filters.http.router");
  pack(Router(), *filter.mutable_typed_config());
  listener::Listener out;
  out.set_name(service);
  pack(manager, *out.mutable_api_listener()->mutable_api_listener());
  return make_resource(service, out);
}

ResourcePtr make_route(const std::string& service) {
  return make_resource(service, route_to(service));
}

}  // namespace lookout::cmd::registry_cmd::xds
