// The xDS resources by which clients find a service.
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

/// The types that are served, in the order in which a change is sent: a resource comes after those
/// that it leads to.
enum class Type { kCluster, kEndpoints, kListener, kRoute };
inline constexpr std::array kTypes = {Type::kCluster, Type::kEndpoints, Type::kListener,
                                      Type::kRoute};
inline constexpr std::size_t index_of(Type type) { return static_cast<std::size_t>(type); }

/// "type.googleapis.com/envoy.config.cluster.v3.Cluster".
const std::string& type_url(Type type);
/// Nothing for a type that is not served.
std::optional<Type> type_of(std::string_view url);

/// A resource as it goes over the wire. Immutable.
struct Resource {
  std::string name;
  /// Depends on the content alone, so that it means the same in the next process.
  std::string version;
  /// The serialized message of the type.
  std::string value;
};
using ResourcePtr = std::shared_ptr<const Resource>;

/// The scheme of a service, as a cluster speaks one protocol: the first of the schemes in which
/// make_endpoints() serves an instance. If none can be served, the scheme that the service had
/// before, so that a pod that is not ready changes nothing; for a new service (`before` is empty),
/// the first that an instance announces, or else the first of all. `schemes` must not be empty.
std::string scheme_of(const registry::InstanceSet& set, const std::vector<std::string>& schemes,
                      const std::string& before = {});

/// A cluster whose endpoints come over the same stream. HTTP/2 for the schemes of gRPC.
ResourcePtr make_cluster(const std::string& service, std::string_view scheme);

/// The ready instances that have an endpoint of the scheme with an address and a port, by zone, with
/// their weights (metadata "weight", else 100). An instance of weight 0 is left out, as xDS has no
/// such weight; an address that occurs twice counts once.
ResourcePtr make_endpoints(const registry::InstanceSet& set, std::string_view scheme);
ResourcePtr make_no_endpoints(const std::string& service);

/// The listener that a gRPC client with the target "xds:///SERVICE" asks for first. It has its route
/// within: gRPC 1.51 does not find a route of its own again when a service has gone and come back.
ResourcePtr make_listener(const std::string& service);
/// The same route for others to name.
ResourcePtr make_route(const std::string& service);

}  // namespace lookout::cmd::registry_cmd::xds
