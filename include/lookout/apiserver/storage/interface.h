// Interface: the storage of the API server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/storage/error.h"
#include "lookout/apiserver/storage/event.h"
#include "lookout/apiserver/storage/predicate.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"

namespace lookout::apiserver::storage {

/// The values that an object must still have when an operation is executed.
struct Preconditions {
  LOOKOUT_OPTION std::optional<std::string> uid = {};
  LOOKOUT_OPTION std::optional<std::string> resource_version = {};

  bool empty() const { return !uid && !resource_version; }

  /// Throws StorageError (kInvalidObject) if they do not match.
  void check(const std::string& whole_key, const api::Object& object) const;
};

/// As a minimum revision: any state is acceptable, such as that of a cache. (Every state is at this
/// revision or later.)
inline constexpr Revision kAnyRevision = 1;

/// The version of the state that a list shows (metav1.ResourceVersionMatch).
enum class VersionMatch {
  kLatest,        ///< the newest state
  kNotOlderThan,  ///< any state at `revision` or later; 0: any
  kExact          ///< the state at `revision`
};

struct ListOptions {
  VersionMatch match = VersionMatch::kLatest;
  Revision revision = 0;
  LOOKOUT_OPTION Predicate predicate = {};
  /// Objects per page; 0: all.
  std::size_t limit = 0;
  /// The first key of the page: the `continue_key` of the previous page.
  LOOKOUT_OPTION std::string start_key = {};
};

/// Objects in key order, delivered in batches so that a long list is not in memory twice. For one
/// caller at a time.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  /// Replaces the content of `objects` with up to `max` objects; returns false if none are left.
  /// Skips objects that do not match the predicate.
  virtual Awaitable<bool> next(std::vector<api::Object>& objects, std::size_t max) = 0;
};

struct ListResult {
  /// The revision that the list shows.
  Revision revision = 0;
  /// The start of the next page; empty if there is none. Only with a limit.
  std::string continue_key = {};
  /// The number of objects after this page; unknown if objects were selected.
  std::optional<std::int64_t> remaining = {};
  std::unique_ptr<ObjectSource> objects = {};
};

/// The objects of a list that fits into memory.
Awaitable<std::vector<api::Object>> read_all(ListResult list);

struct WatchOptions {
  enum class Start {
    kState,     ///< existing objects as kAdded in key order, then every later change
    kRevision,  ///< the changes after `revision`
    kNow        ///< the changes from now on
  };
  Start start = Start::kState;
  /// For kState: the minimum revision of the state; 0: the newest state. For kNow: kAnyRevision, if
  /// the current state of a cache is acceptable.
  Revision revision = 0;
  LOOKOUT_OPTION Predicate predicate = {};
  /// With kState: sends a bookmark (initial_events_end) after the existing objects.
  bool initial_events_end = false;
  /// Modifications carry the previous state (Change::previous()), even if no predicate needs it.
  bool with_previous = false;
};

/// One watch; its destructor ends it. All functions except cancel() must be called on the executor
/// of the coroutine that opened the watch.
///
/// Events arrive in the order of their revisions, without loss or repetition. If only one of the
/// old and the new state matches the selector, a modification becomes kAdded or kDeleted. A watch
/// that cannot continue delivers exactly one kError event (410 Expired if it has fallen behind the
/// history) and ends.
class Watch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Watch() = default;

  /// Waits for events and replaces the content of `events` with them; `events` is empty if `until`
  /// comes first. Returns false when the watch has ended (`events` may hold the last events).
  virtual Awaitable<bool> next(std::vector<Event>& events, TimePoint until) = 0;

  /// Requests a bookmark: next() returns it after all earlier events.
  virtual void request_bookmark() = 0;

  /// Ends the watch without an error event. From any thread.
  virtual void cancel() = 0;

  /// Called once, from any thread and with locks held, if the watch falls behind the history while
  /// no coroutine waits in next(): its reader is stuck. Set it before the first next().
  std::function<void()> on_stuck;
};

/// The objects of one resource (k8s.io/apiserver/pkg/storage.Interface). Keys are relative to the
/// resource's prefix: "namespace/name", or "name" for cluster-scoped objects. A key prefix is empty
/// (everything) or ends with '/'.
///
/// Safe to use from many threads; coroutines run on their caller's executor. The resourceVersion of
/// input objects is ignored; returned objects have that of their last change.
class Interface {
 public:
  virtual ~Interface() = default;

  /// "/registry/pods": the prefix of all keys.
  virtual const std::string& prefix() const = 0;

  /// Adds an object. Throws StorageError (kKeyExists).
  virtual Awaitable<api::Object> create(std::string key, api::Object object) = 0;

  /// Returns the object; empty if there is none. `not_older_than` is the minimum revision of the
  /// state; 0: the newest state.
  virtual Awaitable<api::Object> get(std::string key, Revision not_older_than = 0) = 0;

  /// Lists the object `key` (if `recursive` is false), or all objects whose keys begin with `key`,
  /// at one revision. Throws api::StatusError: 410 for an exact revision that has expired, 504 for
  /// a future one that is not reached in time.
  virtual Awaitable<ListResult> list(std::string key, bool recursive, ListOptions options) = 0;

  /// Computes the new object from the current one; called again after a conflict. An exception ends
  /// the update.
  using Update = std::function<api::Object(const api::Object& present)>;
  /// Replaces an object with the result of `update`, with compare-and-swap retries. An unchanged
  /// object is not written. Throws StorageError: kKeyNotFound unless `create_if_absent` (then
  /// `update` is called with an empty object), kInvalidObject.
  virtual Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                                   Preconditions preconditions, Update update) = 0;

  /// Checks the object before its deletion; throws to keep it.
  using Validate = std::function<void(const api::Object& present)>;
  /// Deletes an object and returns its last state, with the resourceVersion of the deletion. Throws
  /// StorageError: kKeyNotFound, kInvalidObject.
  virtual Awaitable<api::Object> remove(std::string key, Preconditions preconditions,
                                        Validate validate) = 0;

  /// Watches the object `key`, or all objects whose keys begin with `key`. Errors in the options (a
  /// revision that is too old) arrive as the first event.
  virtual Awaitable<std::unique_ptr<Watch>> watch(std::string key, bool recursive,
                                                  WatchOptions options) = 0;

  /// The newest revision of the whole storage.
  virtual Awaitable<Revision> current_revision() = 0;

  /// The number of objects.
  virtual Awaitable<std::size_t> count() = 0;
  /// The number of objects if it is known without a request; otherwise empty.
  virtual std::optional<std::size_t> known_count() const { return std::nullopt; }
};

/// A complete storage: its resources share one sequence of revisions.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The storage of one resource, by its place below the root: "pods",
  /// "stable.example.com/crontabs". Created on first use; lives as long as the backend. With a
  /// `ttl`, objects expire that long after their last change. Metrics use the name `group_resource`
  /// ("deployments.apps"), or else the place. Later calls ignore both.
  virtual Interface& resource(std::string_view place, std::chrono::seconds ttl = {},
                              std::string_view group_resource = {}) = 0;

  /// Releases a resource that is no longer served: frees its cache and ends its watches. An
  /// Interface that resource() returned earlier stays valid and reads from the storage; the next
  /// call of resource() returns a new one.
  virtual void release(std::string_view /*place*/) {}

  virtual Awaitable<Revision> current_revision() = 0;

  /// The name in health checks.
  virtual std::string_view name() const { return "storage"; }
  /// Throws if the storage is not readable at the moment. Must return quickly.
  virtual Awaitable<void> check();
  /// The backend's metrics, in Prometheus' text format.
  virtual std::string metrics() const { return {}; }

  /// Ends all watches, without an error event.
  virtual void close() = 0;

  /// Periodic maintenance; the server calls it every few seconds.
  virtual void maintain() {}
};

}  // namespace lookout::apiserver::storage
