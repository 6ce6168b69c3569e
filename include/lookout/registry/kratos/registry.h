// Registry: services in the style of kratos. Instances are labels and annotations of pods.
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
/// library find each other.
namespace lookout::registry::kratos {

/// The names of kratos' labels and annotations.
inline constexpr std::string_view kServiceIdLabel = "kratos-service-id";
inline constexpr std::string_view kServiceNameLabel = "kratos-service-app";
inline constexpr std::string_view kServiceVersionLabel = "kratos-service-version";
/// A JSON object of strings.
inline constexpr std::string_view kMetadataAnnotation = "kratos-service-metadata";
/// Maps ports to protocols: {"80":"http","9000":"grpc"}.
inline constexpr std::string_view kProtocolsAnnotation = "kratos-service-protocols";

/// Maps ports to protocols, from the endpoints. Throws RegistrationError for an endpoint that is
/// not "protocol://host:port", and for two protocols on one port.
std::map<std::string, std::string> protocols_of(const std::vector<Endpoint>& endpoints);

/// The strategic merge patch for a pod that announces the instance. Throws RegistrationError if the
/// instance cannot be announced: id, name and version must be valid label values, and the name must
/// not be empty. With a uid, the patch applies only to the pod with this uid.
std::string registration_patch(const ServiceInstance& instance, const std::string& uid = {});
/// The patch that withdraws the announcement, as kratos does: empty labels, empty maps.
std::string deregistration_patch(const std::string& uid = {});

/// For each port of the endpoints that no container of the pod declares, a message that the
/// instance will not be found: discovery derives endpoints from declared ports.
std::vector<std::string> undeclared_ports(const ServiceInstance& instance, const api::Object& pod);

/// The fields of a pod that a registry reads; its cache contains nothing else.
const api::Projection& pod_projection();

/// Announces this pod as an instance, and finds instances among the pods of the cluster.
///
/// A program that only registers does not watch. Only pods with a service name are watched.
///
/// An instance is a pod that is running, is ready (its Ready condition) and is not being deleted.
/// Its endpoints are the ports of its containers at its IP address. The protocol comes from the
/// annotation, or else from the port's name up to the first dash, or else it is TCP or UDP. A pod
/// with unreadable annotations is reported (Malformed).
class Registry : public Registrar, public InformerDiscovery {
 public:
  explicit Registry(rest::Client client, Options options = {});
  /// Closes it first, so that running callbacks may still use it.
  ~Registry() override;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  using Registrar::deregister_instance;
  using Registrar::register_instance;

  /// Sends one patch of the pod, which replaces an earlier registration. It carries the pod's uid
  /// if the environment has it (PodIdentity) or an earlier response contained it; it then fails if
  /// another pod has the same name now. Ports that no container declares are reported
  /// (Options::on_warning). Throws RegistrationError, Error if the pod cannot be determined, and
  /// what rest::Client throws.
  void register_instance(const ServiceInstance& instance, rest::CallOptions call) override;
  /// The coroutine form. Throws RegistrationError immediately.
  Awaitable<void> async_register_instance(ServiceInstance instance, rest::CallOptions call = {});
  /// Ends any registration of the pod; ignores the instance, as kratos does.
  void deregister_instance(const ServiceInstance& instance, rest::CallOptions call) override;
  Awaitable<void> async_deregister_instance(rest::CallOptions call = {});
  /// Reads the pod with a patch that changes nothing (a program that registers may have no right to
  /// read), and deregisters it if it announces an instance of this name.
  void withdraw_earlier(const ServiceInstance& instance, rest::CallOptions call) override;
  std::shared_ptr<Registrar> shared() override;

 private:
  class Announcer;

  const std::shared_ptr<Announcer> announcer_;
};

}  // namespace lookout::registry::kratos
