// The options of requests: metav1.GetOptions, ListOptions ... and what concerns the call itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "lookout/base/attributes.h"

namespace lookout::rest {

/// For CallOptions::timeout: no deadline, whatever the Config says.
inline constexpr std::chrono::milliseconds kNoTimeout = std::chrono::milliseconds::max();

/// How a call is made, whatever it asks for.
struct CallOptions {
  /// A stop ends the call with a TransportError of kind kCancelled.
  LOOKOUT_OPTION std::stop_token stop = {};
  /// For the whole call including retries; 0: that of the client (Client::with(), Config::timeout),
  /// or none for a watch.
  std::chrono::milliseconds timeout{0};
};

struct GetOptions {
  LOOKOUT_OPTION std::string resource_version = {};
};

/// metav1.ListOptions, for list and for watch.
struct ListOptions {
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  LOOKOUT_OPTION std::string resource_version = {};
  LOOKOUT_OPTION std::string resource_version_match = {};  ///< "", "Exact" or "NotOlderThan"
  std::int64_t limit = 0;                                  ///< items a page; 0: all at once
  LOOKOUT_OPTION std::string continue_token = {};
  /// How long the server may take for a list, or goes on with a watch; 0: the server decides.
  std::chrono::seconds timeout{0};
  bool allow_watch_bookmarks = false;
  std::optional<bool> send_initial_events = {};
};

struct CreateOptions {
  bool dry_run = false;
  LOOKOUT_OPTION std::string field_manager = {};
  LOOKOUT_OPTION std::string field_validation = {};  ///< "", "Ignore", "Warn" or "Strict"
};

using UpdateOptions = CreateOptions;

struct PatchOptions {
  bool dry_run = false;
  LOOKOUT_OPTION std::string field_manager = {};
  LOOKOUT_OPTION std::string field_validation = {};
  bool force = false;  ///< server-side apply only: take fields over from other managers
  /// For drafts: the write fails with a conflict if somebody has written the object since the
  /// draft's original was read.
  bool if_unchanged = false;
};

struct ApplyOptions {
  LOOKOUT_OPTION std::string field_manager;  ///< whose fields these are
  bool force = false;                        ///< take fields over from other managers
  bool dry_run = false;
  LOOKOUT_OPTION std::string field_validation = {};
};

/// The kinds of patch documents.
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
  LOOKOUT_OPTION std::string precondition_uid = {};
  LOOKOUT_OPTION std::string precondition_resource_version = {};
  PropagationPolicy propagation_policy = PropagationPolicy::kDefault;
  bool dry_run = false;
};

}  // namespace lookout::rest
