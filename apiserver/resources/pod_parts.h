// Parts of a pod that are validated in several places.
#pragma once

#include <string_view>
#include <utility>

#include "apiserver/resources/field.h"
#include "apiserver/resources/volume_validation.h"

namespace lookout::apiserver::resources {

/// The object that has a pod spec: a pod, or a template.
struct PodContext {
  /// Its name; empty in a template.
  std::string_view name = {};
  bool is_pod = false;
  /// Claim templates, whose names are also names of volumes.
  api::Value claims = {};
};

/// Calls `visit(container)` for all containers of a pod, in Kubernetes' order.
template <class Visit>
void each_container(const Field& spec, Visit visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"})
    spec[list].each(visit);
}

// pod_validation.cc
void validate_pod_spec(const Field& spec, const PodContext& context);
/// Labels, annotations and spec of a template.
void validate_pod_template(const Field& pod, api::Value claims = {});
void check_toleration(const Field& toleration);
/// A v1.NodeSelector.
void check_node_selector(const Field& selector);

// security_validation.cc
/// The prefixes of the annotations for a container, followed by its name, and the annotation for a whole
/// pod.
inline constexpr std::string_view kAppArmorAnnotation =
    "container.apparmor.security.beta.kubernetes.io/";
inline constexpr std::string_view kContainerSeccompAnnotation =
    "container.seccomp.security.alpha.kubernetes.io/";
inline constexpr std::string_view kSeccompAnnotation = "seccomp.security.alpha.kubernetes.io/pod";
/// The type and the path of the AppArmor profile that an annotation names; empty if it names none.
std::pair<std::string_view, std::string_view> profile_of_annotation(std::string_view annotation);
void check_pod_security(const Field& spec);
void check_container_security(const Field& context, bool is_host_user);
/// Windows HostProcess containers.
void check_host_process(const Field& spec);
/// A pod with its own user namespace must not use the node's other namespaces.
void check_host_users(const Field& spec);
/// Fields that may not be set for the pod's operating system.
void check_os(const Field& spec);
/// Checks that a new pod's annotations and fields name the same seccomp and AppArmor profiles.
void check_annotated_profiles(const api::Object& pod, Causes& causes);

// pod_status.cc
/// Checks the well-known annotations of a pod or a template. `before` are those of the old object.
void check_pod_annotations(const Field& annotations, api::Value spec, api::Value before = {});
void check_pod_annotations_update(const api::Object& pod, const api::Object& old, Causes& causes);
/// Whether the name is an extended resource: example.com/gpu.
bool is_extended_resource(std::string_view resource);
/// Whether the limit of this resource may exceed the request.
bool may_be_overcommitted(std::string_view resource);

// container_validation.cc
/// The parts of a pod that the validation of its containers needs.
struct ContainerContext {
  const PodContext& pod;
  const Volumes& volumes;
  api::Value spec;
};
void validate_containers(const Field& containers, const ContainerContext& context);
void validate_init_containers(const Field& containers, const ContainerContext& context);
void validate_ephemeral_containers(const Field& containers, const ContainerContext& context);
void check_image_padding(const Field& container);
void check_pull_policy(const Field& policy);
/// A fieldRef such as metadata.name, one of `fields`.
void check_field_reference(const Field& reference, Field::Words fields);
/// A resourceFieldRef such as limits.cpu; `in_volume`: it needs a container name.
void check_resource_reference(const Field& reference, bool in_volume);
/// Requests and limits of a container or a pod.
void check_resources(const Field& resources, bool of_pod);
/// The pod's overhead.
void check_overhead(const Field& overhead);
/// Pod-level resources.
void check_pod_resources(const Field& spec);
/// The name of a resource: cpu, example.com/gpu.
bool check_resource_name(const Field& amount, std::string_view name);
/// The name of a resource that containers can have.
void check_container_resource_name(const Field& amount, std::string_view name);
/// Whether the resource is valid in a quota.
bool is_quota_resource(std::string_view name);
/// An amount must not be negative, and must be an integer for resources that have only integers.
void check_amount(const Field& amount, std::string_view name);

// device_validation.cc
/// The name of a pool of devices.
void check_pool_name(const Field& name);

// storage_validation.cc
void validate_claim_spec(const Field& spec);

}  // namespace lookout::apiserver::resources
