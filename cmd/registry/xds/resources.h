// The xDS resources of a service.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/registry/instance_set.h"

namespace lookout::cmd::registry_cmd::xds {

/// The served types, in the order in which changes are sent: a resource is sent after the resources
/// that it refers to.
enum class Type { kCluster, kEndpoints, kListener, kRoute };
inline constexpr std::array kTypes = {Type::kCluster, Type::kEndpoints, Type::kListener,
                                      Type::kRoute};
inline constexpr std::size_t index_of(Type type) { return static_cast<std::size_t>(type); }

/// "type.googleapis.com/envoy.config.cluster.v3.Cluster".
const std::string& type_url(Type type);
/// nullopt for a type that is not served.
std::optional<Type> type_of(std::string_view url);

/// A resource as it goes over the wire. Immutable.
struct Resource {
  std::string name;
  /// A hash of the content, so it stays the same after a restart.
  std::string version;
  /// The serialized message of the type.
  std::string value;
};
using ResourcePtr = std::shared_ptr<const Resource>;

/// The scheme of a service (a cluster has one protocol): the first of `schemes` for which
/// make_endpoints() has an endpoint. If there is none, the previous scheme, so that pods that become
/// unready change nothing; for a new service (`before` is empty), the first that an instance
/// announces, or else the first of `schemes`, which must not be empty.
std::string scheme_of(const registry::InstanceSet& set, const std::vector<std::string>& schemes,
                      const std::string& before = {});

/// A cluster whose endpoints are sent on the same stream. Uses HTTP/2 for gRPC's schemes.
ResourcePtr make_cluster(const std::string& service, std::string_view scheme);

/// The ready instances that have an endpoint of the scheme with an address and a port, by zone, with
/// their weights (metadata "weight", default 100). Instances of weight 0 are omitted, as xDS does
/// not have this weight. Duplicate addresses are merged.
ResourcePtr make_endpoints(const registry::InstanceSet& set, std::string_view scheme);
ResourcePtr make_no_endpoints(const std::string& service);

/// The listener that a gRPC client with the target "xds:///SERVICE" requests first. It contains its
/// route: gRPC 1.51 does not request a separate route again after a service was removed and added.
ResourcePtr make_listener(const std::string& service);
/// The same route as a resource of its own.
ResourcePtr make_route(const std::string& service);

}  // namespace lookout::cmd::registry_cmd::xds
