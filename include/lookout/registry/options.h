// Options of the registry's backends.
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

/// An object with an announcement that is unreadable, or partly so. While an object is unreadable,
/// watched services keep its last readable instances, as long as it is ready; if there are none, it
/// is left out. The others are served.
struct Malformed {
  std::string ns;
  std::string name;
  std::string reason;                 ///< the annotation, and what is wrong with it
  std::string resource_version = {};  ///< of the version that was read
  /// When it was read.
  std::chrono::system_clock::time_point since = {};
};

/// A namespace cannot be listed or watched. It is retried with back-off; its last known instances
/// are still served.
struct WatchFailure {
  std::string ns = {};      ///< empty: all namespaces
  std::string reason = {};  ///< the server's message, or why it could not be reached
  int code = 0;             ///< the HTTP status of the server's answer (403); 0 if there was none
};

/// The threads of callbacks. They are separate, so callbacks never delay informers, sets, watchers,
/// feeds and balancers. Each blocked callback occupies one thread, and the pool adds another
/// (HandlerPoolOptions::grow_after). When `max_threads` are blocked, further callbacks wait.
inline constexpr informer::HandlerPoolOptions kCallbackThreads{.max_threads = 1024};

/// For Options::ns: all namespaces. Requires a ClusterRole.
inline constexpr const char* kAllNamespaces = "*";

/// The options of the backends for pods and services. All have defaults.
struct Options {
  /// The namespaces to look in. Empty: the program's own namespace, which is that of `pod`, or else
  /// the client's default namespace; in a cluster that is the pod's namespace.
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};
  /// Only objects that also have these labels: "env=prod,tier in (a,b)". The server filters.
  LOOKOUT_OPTION std::string label_selector = {};
  /// Also finds instances that are not ready or are terminating; see ServiceInstance::ready.
  bool include_unready = false;
  /// Called once for each version of a malformed object, one call at a time, on a thread that may
  /// block. Meanwhile, only the newest report of each object is kept, for at most 10,000 objects.
  /// The default logs a warning.
  LOOKOUT_OPTION std::function<void(const Malformed&)> on_malformed = {};
  /// Called for each failed list or watch, in the same way; the newest failure of each namespace is
  /// kept. The default logs a warning, and repetitions within half a minute at debug level, as
  /// informers do. InformerDiscovery::failures() returns the current state.
  LOOKOUT_OPTION std::function<void(const WatchFailure&)> on_error = {};
  /// Called after a registration that will not be found, with the reason: no container of the pod
  /// declares the port. Called once for each reason, on the thread that registers (for coroutines:
  /// on the event loop, so it must not block). The default logs a warning.
  LOOKOUT_OPTION std::function<void(const std::string& reason)> on_warning = {};
  /// How long the first read waits for the first data.
  std::chrono::milliseconds sync_timeout{30'000};
  /// The threads for callbacks, on_malformed and on_error.
  informer::HandlerPoolOptions handlers = kCallbackThreads;
  /// The waits between attempts to reach the server.
  BackoffOptions backoff = {};

  /// The pod that register_instance() announces. Empty fields are filled in when needed
  /// (PodIdentity::find), with the client's default namespace as the last resort. Only registrars
  /// use it.
  LOOKOUT_OPTION PodIdentity pod = {};
  LOOKOUT_OPTION PodIdentitySources pod_sources = {};

  /// `ns` and `namespaces` together, each once, or `own` if both are empty; one empty name for all
  /// namespaces.
  std::vector<std::string> namespaces_or(const std::string& own) const;
};

/// Counters since the start, and current values.
struct DiscoveryStats {
  std::size_t objects = 0;      ///< cached objects
  std::size_t followed = 0;     ///< services with watchers or subscriptions
  std::size_t watchers = 0;     ///< watchers and subscriptions
  std::uint64_t malformed = 0;  ///< unreadable versions of objects
  std::uint64_t computed = 0;   ///< computations of sets
  std::uint64_t announced = 0;  ///< computations that led to a different set
};

}  // namespace lookout::registry
