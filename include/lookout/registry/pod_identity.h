// PodIdentity: the pod that the program runs in.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lookout/base/attributes.h"

namespace lookout::registry {

/// The places where the identity of the pod is looked up.
struct PodIdentitySources {
  /// Reads an environment variable; the default reads the process's own.
  LOOKOUT_OPTION std::function<std::optional<std::string>(const std::string& name)> environment =
      {};
  /// A downward API volume with the files "name", "namespace" and, optionally, "uid".
  LOOKOUT_OPTION std::string downward_api_dir = "/etc/podinfo";
  /// A directory whose file "namespace" contains the pod's namespace.
  LOOKOUT_OPTION std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// The pod that a registrar announces on.
struct PodIdentity {
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::string name = {};
  /// May be empty. A patch with a uid applies only to this pod, and never to a new one of the same
  /// name (as pods of a StatefulSet have).
  LOOKOUT_OPTION std::string uid = {};

  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;

  /// Keeps the fields that are set in `given`. The name is the first of: $POD_NAME, the downward
  /// API's file, $HOSTNAME (which the kubelet sets to the pod's name, unless the pod sets a
  /// hostname or uses the node's network). The namespace is the first of: $POD_NAMESPACE, the
  /// downward API's file, the service account's file, $NAMESPACE, `fallback_ns`. The uid, if any:
  /// $POD_UID, the downward API's file. Throws Error, which lists the places, if the name or the
  /// namespace is not found.
  static PodIdentity find(const PodIdentity& given, const std::string& fallback_ns = {},
                          const PodIdentitySources& sources = {});
};

}  // namespace lookout::registry
