// Where the API server keeps objects.
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

/// An operation is carried out only if the object still has these.
struct Preconditions {
  LOOKOUT_OPTION std::optional<std::string> uid = {};
  LOOKOUT_OPTION std::optional<std::string> resource_version = {};

  /// Throws StorageError (kInvalidObject) if they do not hold.
  void check(const std::string& whole_key, const api::Object& object) const;
};

/// How a list chooses its moment (metav1.ResourceVersionMatch).
enum class VersionMatch {
  kLatest,        ///< the newest state
  kNotOlderThan,  ///< any state from `revision` on; 0: any
  kExact          ///< the state at `revision`
};

struct ListOptions {
  VersionMatch match = VersionMatch::kLatest;
  Revision revision = 0;
  LOOKOUT_OPTION Predicate predicate = {};
  /// Objects a page; 0: all.
  std::size_t limit = 0;
  /// Where the page begins: the `continue_key` of the page before. Keys before it are left out.
  LOOKOUT_OPTION std::string start_key = {};
};

/// Objects in the order of their keys, handed over some at a time so that a long list need not be
/// in memory twice. Used by one caller at a time.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  /// Puts up to `max` objects into `objects` in place of what was there; false if there are none
  /// left. Objects that do not match the predicate are left out already.
  virtual Awaitable<bool> next(std::vector<api::Object>& objects, std::size_t max) = 0;
};

struct ListResult {
  /// The moment that the list shows.
  Revision revision = 0;
  /// Where the next page begins; empty if there is none. Only with a limit.
  std::string continue_key = {};
  /// How many objects come after this page; unknown if objects were selected.
  std::optional<std::int64_t> remaining = {};
  std::unique_ptr<ObjectSource> objects = {};
};

struct WatchOptions {
  enum class Start {
    kState,     ///< present objects as kAdded in key order, then every later change
    kRevision,  ///< the changes after `revision`
    kNow        ///< the changes from now on
  };
  Start start = Start::kState;
  /// For kState: the state must not be older than this.
  Revision revision = 0;
  LOOKOUT_OPTION Predicate predicate = {};
  /// With kState: a bookmark (initial_events_end) follows the present objects.
  bool initial_events_end = false;
};

/// One watch. Letting go of it ends it. Except for cancel() it belongs to the executor of the
/// coroutine that opened it.
///
/// Events of one object come in the order of their revisions, and all changes in the order of
/// theirs; nothing is lost or repeated. Where old and new state differ in whether they are
/// selected, a modification becomes kAdded or kDeleted. A watch that cannot go on delivers exactly
/// one kError event (410 Expired if it has fallen behind the history) and ends.
class Watch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Watch() = default;

  /// Waits for events and puts some into `events`, in place of what was there; none if `until`
  /// comes first. False when the watch has ended (`events` may hold the last ones).
  virtual Awaitable<bool> next(std::vector<Event>& events, TimePoint until) = 0;

  /// Asks for a bookmark: next() hands it out after everything that came before.
  virtual void request_bookmark() = 0;

  /// Ends the watch without an error event. From any thread.
  virtual void cancel() = 0;

  /// Called once, from any thread and with locks held, when the watch falls behind the history
  /// while nobody waits in next(): its reader is stuck. To be set before the first next().
  std::function<void()> on_stuck;
};

/// The objects of one resource (k8s.io/apiserver/pkg/storage.Interface). Keys are relative to the
/// resource's prefix: "namespace/name", or "name" for what lives in no namespace. A prefix of keys
/// is empty (everything) or ends with '/'.
///
/// Safe to use from many threads; coroutines run on their caller's executor. Objects that go in may
/// have any resourceVersion; those that come out have that of their last change.
class Interface {
 public:
  virtual ~Interface() = default;

  /// "/registry/pods": what keys are relative to.
  virtual const std::string& prefix() const = 0;

  /// Adds an object. Throws StorageError (kKeyExists).
  virtual Awaitable<api::Object> create(std::string key, api::Object object) = 0;

  /// The object; empty if there is none. `not_older_than` as in list().
  virtual Awaitable<api::Object> get(std::string key, Revision not_older_than = 0) = 0;

  /// The object `key` (with `recursive` false), or all whose key begins with `key`, all of one
  /// moment. Throws api::StatusError: 410 for an exact revision that is no longer known, 504 for
  /// one that does not come about in time.
  virtual Awaitable<ListResult> list(std::string key, bool recursive, ListOptions options) = 0;

  /// From the present object to the new one; may be called again when somebody else was faster.
  /// An exception that it throws ends the update.
  using Update = std::function<api::Object(const api::Object& present)>;
  /// Replaces an object by what `update` makes of it: compare and swap, until it works. An object
  /// that comes out unchanged is not written. Throws StorageError: kKeyNotFound unless
  /// `create_if_absent` (then `update` is called with an empty object), kInvalidObject.
  virtual Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                                   Preconditions preconditions, Update update) = 0;

  /// Looks at the object that is about to be deleted; throws to keep it.
  using Validate = std::function<void(const api::Object& present)>;
  /// The last state, with the resourceVersion of the deletion. Throws StorageError: kKeyNotFound,
  /// kInvalidObject.
  virtual Awaitable<api::Object> remove(std::string key, Preconditions preconditions,
                                        Validate validate) = 0;

  /// Watches the object `key`, or all whose key begins with `key`. An error in the options (a
  /// revision that is too old) comes as the first event.
  virtual Awaitable<std::unique_ptr<Watch>> watch(std::string key, bool recursive,
                                                  WatchOptions options) = 0;

  /// The newest revision of the whole storage.
  virtual Awaitable<Revision> current_revision() = 0;

  /// How many objects there are.
  virtual Awaitable<std::size_t> count() = 0;
  /// The same as far as it is known without asking anybody; nothing if it is not.
  virtual std::optional<std::size_t> known_count() const { return std::nullopt; }
};

/// A whole storage: the resources in it share one sequence of revisions.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The storage of one resource, by its place below the root: "pods",
  /// "stable.example.com/crontabs". Made when first asked for; lives as long as the backend. With a
  /// `ttl`, objects vanish that long after their last change. In metrics it is called
  /// `group_resource` ("deployments.apps"), or else as the place. Both count when the resource is
  /// made.
  virtual Interface& resource(std::string_view place, std::chrono::seconds ttl = {},
                              std::string_view group_resource = {}) = 0;

  /// The resource at this place is no longer served: its cache is freed and its watches end. An
  /// Interface that resource() returned before stays valid and reads from the storage; the next
  /// call of resource() returns a new one.
  virtual void release(std::string_view /*place*/) {}

  virtual Awaitable<Revision> current_revision() = 0;

  /// The name that health checks use.
  virtual std::string_view name() const { return "storage"; }
  /// Throws if it cannot be read at the moment, and does not take long to find out.
  virtual Awaitable<void> check();
  /// Its metrics, in the text format of Prometheus.
  virtual std::string metrics() const { return {}; }

  /// Ends all watches, without an error event.
  virtual void close() = 0;

  /// Called by the server every few seconds: what has to be done now and then.
  virtual void maintain() {}
};

}  // namespace lookout::apiserver::storage
