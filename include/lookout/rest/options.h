// Request options: metav1.GetOptions, ListOptions ... and options of the call itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "lookout/base/attributes.h"

namespace lookout::rest {

/// For CallOptions::timeout: no deadline, regardless of the Config.
inline constexpr std::chrono::milliseconds kNoTimeout = std::chrono::milliseconds::max();

/// Options of a call, independent of the request.
struct CallOptions {
  /// A stop ends the call with a TransportError of kind kCancelled.
  LOOKOUT_OPTION std::stop_token stop = {};
  /// The deadline of the whole call, including retries; 0: the client's (Client::with(),
  /// Config::timeout), or none for a watch.
  std::chrono::milliseconds timeout{0};
  /// Called right before a request other than a GET is sent, and again before its body is sent, on
  /// a thread of the event loop; it must not block. If it returns false or throws, the server does
  /// not get the request, and the call ends with a TransportError of kind kCancelled. For writes
  /// that a former leader must not send (Leadership::valid()): the process may have been frozen
  /// since it decided to write.
  LOOKOUT_OPTION std::function<bool()> may_send = {};
};

struct GetOptions {
  LOOKOUT_OPTION std::string resource_version = {};
  /// Requests metadata only: the object is a PartialObjectMetadata of meta.k8s.io/v1. Do not write
  /// it back as a whole: patch it.
  bool metadata_only = false;
};

/// metav1.ListOptions, for list and for watch.
struct ListOptions {
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  LOOKOUT_OPTION std::string resource_version = {};
  LOOKOUT_OPTION std::string resource_version_match = {};  ///< "", "Exact" or "NotOlderThan"
  std::int64_t limit = 0;                                  ///< items per page; 0: all at once
  LOOKOUT_OPTION std::string continue_token = {};
  /// The time limit of a list, or the duration of a watch; 0: the server decides.
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

/// For Client::with_write_defaults(): options of all writes.
struct WriteDefaults {
  /// The field manager of writes that name none. Empty: the server derives one from the user agent.
  LOOKOUT_OPTION std::string field_manager = {};
  /// For writes that set none.
  LOOKOUT_OPTION std::string field_validation = {};
  /// Makes every write a dry run: the server validates it and stores nothing. Unsuitable for leader
  /// election, and for controllers that read their own writes.
  bool dry_run = false;
};

struct PatchOptions {
  bool dry_run = false;
  LOOKOUT_OPTION std::string field_manager = {};
  LOOKOUT_OPTION std::string field_validation = {};
  bool force = false;  ///< server-side apply only: take fields over from other managers
  /// For drafts: the write fails with a conflict if the object has changed since the draft's
  /// original was read.
  bool if_unchanged = false;
};

struct ApplyOptions {
  /// The owner of the applied fields; empty: that of Client::with_write_defaults().
  LOOKOUT_OPTION std::string field_manager = {};
  bool force = false;  ///< take fields over from other managers
  bool dry_run = false;
  LOOKOUT_OPTION std::string field_validation = {};
};

/// The kinds of patch documents.
enum class PatchType {
  kJson,            ///< RFC 6902, a list of operations
  kMerge,           ///< RFC 7396
  kStrategicMerge,  ///< Kubernetes' own format, for built-in types
  kApply            ///< server-side apply
};

enum class PropagationPolicy { kDefault, kOrphan, kBackground, kForeground };

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds = {};
  /// Preconditions: the server refuses the deletion if the object has other values.
  LOOKOUT_OPTION std::string precondition_uid = {};
  LOOKOUT_OPTION std::string precondition_resource_version = {};
  PropagationPolicy propagation_policy = PropagationPolicy::kDefault;
  bool dry_run = false;
};

}  // namespace lookout::rest
