// Options of discovery.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/base/backoff.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/registry/pod_identity.h"

namespace lookout::registry {

/// An object that announces something that cannot be read. It is left out; the others are served.
struct Malformed {
  std::string ns;
  std::string name;
  std::string reason;  ///< which annotation, and what is wrong with it
};

/// A namespace cannot be listed or watched. It is tried again, with back-off; what was known of it
/// last is still served.
struct WatchFailure {
  std::string ns = {};      ///< empty: all namespaces
  std::string reason = {};  ///< what the server said, or why it could not be reached
  int code = 0;             ///< of the server's answer (403); 0 if there was none
};

/// The threads that callbacks run on. They are their own: whatever callbacks do, informers, sets,
/// watchers, feeds and balancers go on. Each callback that is blocked holds one thread, and the
/// pool grows by another (HandlerPoolOptions::grow_after); when as many as `max_threads` are
/// blocked at a time, further callbacks wait.
inline constexpr informer::HandlerPoolOptions kCallbackThreads{.max_threads = 1024};

/// As Options::ns: look in all namespaces. Asks for a ClusterRole.
inline constexpr const char* kAllNamespaces = "*";

/// The options of the backends for pods and services. Each has a default.
struct Options {
  /// Where to look: in this namespace, in these, or, with neither, in the program's own: that of
  /// `pod`, else the client's default namespace, which within a cluster is that of its pod.
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};
  /// Only objects with these labels, too: "env=prod,tier in (a,b)". The server does the selecting.
  LOOKOUT_OPTION std::string label_selector = {};
  /// Instances that are not ready, or on their way out, are found as well; `ready` tells.
  bool include_unready = false;
  /// Told once of every version of an object that is malformed, one at a time, on a thread that may
  /// be blocked: meanwhile of each object only the newest report is kept, and of 10,000 objects at
  /// most. The default logs a warning.
  LOOKOUT_OPTION std::function<void(const Malformed&)> on_malformed = {};
  /// Told of every list or watch that fails, in the same way; of each namespace the newest failure
  /// is kept. The default logs a warning. InformerDiscovery::failures() says how things are now.
  LOOKOUT_OPTION std::function<void(const WatchFailure&)> on_error = {};
  /// Called after a registration that will not be found, with the reason: a port that no container
  /// of the pod declares. Once for each reason, on the thread that registers. The default logs a
  /// warning.
  LOOKOUT_OPTION std::function<void(const std::string& reason)> on_warning = {};
  /// How long the first call waits for the first data.
  std::chrono::milliseconds sync_timeout{30'000};
  /// The threads of callbacks, on_malformed and on_error.
  informer::HandlerPoolOptions handlers = kCallbackThreads;
  /// Between attempts to reach the server.
  BackoffOptions backoff = {};

  /// The pod that register_instance() announces on; what is empty is found when it is needed
  /// (PodIdentity::find), with the client's default namespace as the last resort. Only registrars
  /// look at it.
  LOOKOUT_OPTION PodIdentity pod = {};
  LOOKOUT_OPTION PodIdentitySources pod_sources = {};

  /// `ns` and `namespaces` together, each once, or `own` if there are none; one empty name if that
  /// means all.
  std::vector<std::string> namespaces_or(const std::string& own) const;
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
