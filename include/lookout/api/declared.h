// Forward declarations of the most used types, so that using one without its header gives a clear
// error message.
//
// <lookout/lookout.h> only declares them. Headers such as <lookout/k8s/core/v1.h> define them.
#pragma once

namespace lookout {

namespace k8s::core::v1 {
class ConfigMap;
class Endpoints;
class Event;
class Namespace;
class Node;
class PersistentVolume;
class PersistentVolumeClaim;
class Pod;
class Secret;
class Service;
class ServiceAccount;
}  // namespace k8s::core::v1

namespace k8s::apps::v1 {
class DaemonSet;
class Deployment;
class ReplicaSet;
class StatefulSet;
}  // namespace k8s::apps::v1

namespace k8s::batch::v1 {
class CronJob;
class Job;
}  // namespace k8s::batch::v1

namespace k8s::coordination::v1 {
class Lease;
}

namespace k8s::discovery::v1 {
class EndpointSlice;
}

namespace k8s::networking::v1 {
class Ingress;
class NetworkPolicy;
}  // namespace k8s::networking::v1

namespace api {

/// Fails to compile with a message that says why T is not a type that clients and informers accept.
template <class T>
constexpr bool explain_resource_object() {
  if constexpr (!requires { sizeof(T); }) {
    static_assert(
        requires { sizeof(T); },
        "lookout: this type is only declared here: include the header of its group and "
        "version, such as <lookout/k8s/core/v1.h> for k8s::core::v1::Pod");
  } else {
    static_assert(
        requires { T::kResource; },
        "lookout: this is not an object type: it needs `static constexpr "
        "api::ResourceType kResource`, and to derive from api::TypedObject");
  }
  return false;
}

}  // namespace api
}  // namespace lookout
