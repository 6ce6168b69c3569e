// What is to be discovered, and how.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/informer/handler_pool.h"
#include "lookout/registry/pod_identity.h"
#include "lookout/tools/backoff.h"

namespace lookout::registry {

/// An object that announces something that cannot be read. It is left out; the others are served.
struct Malformed {
  std::string ns;
  std::string name;
  std::string reason;  ///< which annotation, and what is wrong with it
};

/// What backends for pods and services understand; all of it has defaults.
struct Options {
  /// Where to look: in this namespace, in these, or, with neither, in all.
  std::string ns = {};
  std::vector<std::string> namespaces = {};
  /// Only objects with these labels, too: "env=prod,tier in (a,b)". The server does the selecting.
  std::string label_selector = {};
  /// Instances that are not ready, or on their way out, are found as well; `ready` tells.
  bool include_unready = false;
  /// Told once of every version of an object that is malformed, on a thread that may be blocked.
  /// The default logs a warning.
  std::function<void(const Malformed&)> on_malformed = {};
  /// How long the first call waits for the first data.
  std::chrono::milliseconds sync_timeout{30'000};
  informer::HandlerPoolOptions handlers = {};
  /// Between attempts to reach the server.
  BackoffOptions backoff = {};

  /// The pod that register_instance() announces on; what is empty is found when it is needed
  /// (PodIdentity::find), with the client's default namespace as the last resort. Only registrars
  /// look at it.
  PodIdentity pod = {};
  PodIdentitySources pod_sources = {};

  /// `ns` and `namespaces` together; one empty name if that means all.
  std::vector<std::string> all_namespaces() const;
};

/// Counts since the beginning, and what is there now.
struct DiscoveryStats {
  std::size_t objects = 0;      ///< that are kept
  std::size_t followed = 0;     ///< services that have watchers
  std::size_t watchers = 0;     ///< and subscriptions
  std::uint64_t malformed = 0;  ///< versions of objects that could not be read
  std::uint64_t computed = 0;   ///< how often the set of a service was computed
  std::uint64_t announced = 0;  ///< and how often it was another one
};

}  // namespace lookout::registry
