// Which pod this program runs in.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lookout/base/attributes.h"

namespace lookout::registry {

/// Where the identity of the pod is looked for.
struct PodIdentitySources {
  /// Reads an environment variable; the default reads the process's own.
  LOOKOUT_OPTION std::function<std::optional<std::string>(const std::string& name)> environment =
      {};
  /// A downward API volume with files "name" and "namespace", and perhaps "uid".
  LOOKOUT_OPTION std::string downward_api_dir = "/etc/podinfo";
  /// The file "namespace" in it is the pod's.
  LOOKOUT_OPTION std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// The pod that a registrar announces on.
struct PodIdentity {
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::string name = {};
  /// May be empty. A patch that carries it changes this pod only, and never another one that has
  /// got its name (of a StatefulSet, for example).
  LOOKOUT_OPTION std::string uid = {};

  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;

  /// Fields that are set in `given` stay. The name is the first of: $POD_NAME, the downward API's
  /// file, $HOSTNAME (which kubelet sets to the pod's name, unless it has a hostname of its own or
  /// uses the node's network). The namespace: $POD_NAMESPACE, the downward API's file, the service
  /// account's file, $NAMESPACE, `fallback_ns`. The uid, if there is any: $POD_UID, the downward
  /// API's file. Throws Error that says what was looked for if one
  /// of them is not found.
  static PodIdentity find(const PodIdentity& given, const std::string& fallback_ns = {},
                          const PodIdentitySources& sources = {});
};

}  // namespace lookout::registry
