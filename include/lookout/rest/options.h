// The options of requests: metav1.GetOptions, ListOptions ... and what concerns the call itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace lookout::rest {

/// How a call is made, whatever it asks for.
struct CallOptions {
  /// A stop ends the call with a TransportError of kind kCancelled.
  std::stop_token stop = {};
  /// For the whole call including retries; 0: the timeout of the Config.
  std::chrono::milliseconds timeout{0};
};

struct GetOptions {
  std::string resource_version = {};
};

/// metav1.ListOptions, for list and for watch.
struct ListOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  std::string resource_version_match = {};  ///< "", "Exact" or "NotOlderThan"
  std::int64_t limit = 0;                   ///< items a page; 0: all at once
  std::string continue_token = {};
  /// How long the server may take for a list, or goes on with a watch; 0: the server decides.
  std::chrono::seconds timeout{0};
  bool allow_watch_bookmarks = false;
  std::optional<bool> send_initial_events = {};
};

struct CreateOptions {
  bool dry_run = false;
  std::string field_manager = {};
  std::string field_validation = {};  ///< "", "Ignore", "Warn" or "Strict"
};

using UpdateOptions = CreateOptions;

struct PatchOptions {
  bool dry_run = false;
  std::string field_manager = {};
  std::string field_validation = {};
  bool force = false;  ///< server-side apply only: take fields over from other managers
};

/// What kind of document a patch is.
enum class PatchType {
  kJson,            ///< RFC 6902, a list of operations
  kMerge,           ///< RFC 7396
  kStrategicMerge,  ///< Kubernetes' own, for built-in types
  kApply            ///< server-side apply
};

enum class PropagationPolicy { kDefault, kOrphan, kBackground, kForeground };

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds = {};
  /// The deletion is refused unless the object still has these.
  std::string precondition_uid = {};
  std::string precondition_resource_version = {};
  PropagationPolicy propagation_policy = PropagationPolicy::kDefault;
  bool dry_run = false;
};

}  // namespace lookout::rest
