// Services in the manner of kratos: instances are labels and annotations of pods.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/projection.h"
#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/options.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"

/// The wire format of github.com/go-kratos/kratos/contrib/registry/kubernetes: programs with either
/// find each other.
namespace lookout::registry::kratos {

/// The names of kratos' labels and annotations.
inline constexpr std::string_view kServiceIdLabel = "kratos-service-id";
inline constexpr std::string_view kServiceNameLabel = "kratos-service-app";
inline constexpr std::string_view kServiceVersionLabel = "kratos-service-version";
/// A JSON object of strings.
inline constexpr std::string_view kMetadataAnnotation = "kratos-service-metadata";
/// From port to protocol: {"80":"http","9000":"grpc"}.
inline constexpr std::string_view kProtocolsAnnotation = "kratos-service-protocols";

/// From port to protocol, as the endpoints have them. Throws RegistrationError for an endpoint
/// that is no "protocol://host:port", and for two protocols on one port.
std::map<std::string, std::string> protocols_of(const std::vector<std::string>& endpoints);

/// The strategic merge patch (for a pod) that announces the instance. Throws RegistrationError if
/// it cannot be announced: id, name and version are label values, the name is not empty.
std::string registration_patch(const ServiceInstance& instance);
/// The one that takes it back, as kratos does: empty labels, empty maps.
std::string deregistration_patch();

/// The fields of a pod that a registry reads; its cache holds nothing else.
const api::Projection& pod_projection();

/// Announces this pod as an instance, and finds instances among the pods of the cluster.
///
/// A program that only registers watches nothing. Watched are only pods with a service name.
///
/// An instance is a pod that runs, is ready (its Ready condition) and is not being deleted. Its
/// endpoints are the ports of its containers at its IP address; the protocol is what the annotation
/// says, else the port's name up to the first dash, else TCP or UDP. A pod whose annotations cannot
/// be read is reported and left out.
class Registry : public Registrar, public InformerDiscovery {
 public:
  explicit Registry(rest::Client client, Options options = {});

  using Registrar::deregister_instance;
  using Registrar::register_instance;

  /// One patch of the pod; what was registered before is replaced. Throws RegistrationError, Error
  /// if it is not known which pod this is, and what rest::Client throws.
  void register_instance(const ServiceInstance& instance, rest::CallOptions call) override;
  /// The twin for coroutines. RegistrationError is thrown at once.
  Awaitable<void> async_register_instance(ServiceInstance instance, rest::CallOptions call = {});
  /// Ends any registration; the instance does not matter, as in kratos.
  void deregister_instance(const ServiceInstance& instance, rest::CallOptions call) override;
  Awaitable<void> async_deregister_instance(rest::CallOptions call = {});

 private:
  PodIdentity pod() const;
  Awaitable<void> patch_pod(std::string patch, rest::CallOptions call);

  const rest::Client client_;
  const Options options_;
};

}  // namespace lookout::registry::kratos
