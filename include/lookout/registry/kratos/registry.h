// Services in the manner of kratos: instances are labels and annotations of pods.
#pragma once

#include <map>
#include <memory>
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
std::map<std::string, std::string> protocols_of(const std::vector<Endpoint>& endpoints);

/// The strategic merge patch (for a pod) that announces the instance. Throws RegistrationError if
/// it cannot be announced: id, name and version are label values, the name is not empty.
/// With a uid, it changes a pod with this uid only.
std::string registration_patch(const ServiceInstance& instance, const std::string& uid = {});
/// The one that takes it back, as kratos does: empty labels, empty maps.
std::string deregistration_patch(const std::string& uid = {});

/// Why the instance will not be found on this pod, for each port of its endpoints that no container
/// declares: discovery makes endpoints of declared ports.
std::vector<std::string> undeclared_ports(const ServiceInstance& instance, const api::Object& pod);

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

  /// One patch of the pod; what was registered before is replaced. It carries the pod's uid, if the
  /// environment has it (PodIdentity) or an earlier patch brought it: then it fails if another pod
  /// has got the name. Ports that no container declares are reported (Options::on_warning). Throws
  /// RegistrationError, Error if it is not known which pod this is, and what rest::Client throws.
  void register_instance(const ServiceInstance& instance, rest::CallOptions call) override;
  /// The twin for coroutines. RegistrationError is thrown at once.
  Awaitable<void> async_register_instance(ServiceInstance instance, rest::CallOptions call = {});
  /// Ends any registration; the instance does not matter, as in kratos.
  void deregister_instance(const ServiceInstance& instance, rest::CallOptions call) override;
  Awaitable<void> async_deregister_instance(rest::CallOptions call = {});

 private:
  class Known;
  PodIdentity pod() const;
  Awaitable<api::Object> patch_pod(PodIdentity here, std::string patch, rest::CallOptions call);
  Awaitable<void> announce(ServiceInstance instance, PodIdentity here, std::string patch,
                           rest::CallOptions call);
  void warn_of(const ServiceInstance& instance, const api::Object& pod) const;

  const rest::Client client_;
  const Options options_;
  const std::shared_ptr<Known> known_;
};

}  // namespace lookout::registry::kratos
