// Watcher: converts etcd watches to object events (k8s.io/apiserver/pkg/storage/etcd3/watcher.go).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/storage/etcd3/context.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage::etcd3 {

/// The keys to watch.
struct WatchSpec {
  /// The full key or, with `recursive`, a key prefix that ends with '/', so that "/a/b/" does not match
  /// "/a/bc".
  std::string key;
  bool recursive = true;
  /// Delivers the initial objects first, as additions sorted by key: those of `revision` or, if it is 0,
  /// of the newest one. Then, or otherwise immediately, the changes after the revision.
  bool initial_events = false;
  Revision revision = 0;
  /// A bookmark follows the initial objects.
  bool initial_events_end = false;
  /// etcd's progress notifications become bookmarks. etcd sends one periodically
  /// (--experimental-watch-progress-notify-interval, 10 minutes) if there are no events. Without this,
  /// they are delivered only when a bookmark is requested.
  bool progress_notify = false;
  Predicate predicate = {};
  /// The previous values are decoded, even if the predicate does not need them.
  bool with_previous = false;
  /// An undecodable value does not end the watch: it is delivered as a kError whose `change` names the
  /// key (its type is kDeleted if the key was deleted and its last value cannot be decoded).
  bool tell_unreadable = false;
  /// The history of `revision`, if known: etcd has reached the revision in it. Otherwise the current
  /// history is assumed, and the revision may be in its future.
  std::optional<Lineage> lineage = {};
};

/// A watch of a key or a prefix, in two concurrent steps: reading etcd's events, and converting them to
/// object events. Each step has an output queue of 100 events (and at most 32 MiB); a slow reader blocks
/// the connection, so that etcd keeps the rest.
///
/// After a connection error or with an expired token, the watch reconnects, if necessary to another
/// member, and resumes after the last event: nothing is lost or repeated. The watch ends with exactly
/// one error event, after all previous events, in these cases:
///   - etcd has compacted the revision (410 Expired);
///   - etcd does not reach the revision within EtcdOptions::future_wait (504, "Too large resource version");
///   - etcd was replaced, or restored to an older state (410 Expired);
///   - the member has lost its leader ("etcdserver: no leader"): the watch would receive nothing;
///   - a value cannot be decoded (500, which names the key);
///   - an event lacks the previous value, which is needed.
/// There is no error event if the caller has ended.
class EtcdWatch final : public Watch {
 public:
  /// `reader` is the executor of the coroutine that will call next().
  EtcdWatch(std::shared_ptr<const Context> context, WatchSpec spec,
            boost::asio::any_io_executor reader);
  ~EtcdWatch() override;

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override;
  /// The bookmark has the reached revision; etcd may be ahead.
  void request_bookmark() override { bookmark_requested_ = true; }
  void cancel() override;
  /// Whether the member of the events responds; true while there is no connection.
  Awaitable<bool> is_served();
  /// Requests a progress notification from etcd. False if that is not possible now, or not supported
  /// (Client::tells_progress()). Thread-safe.
  bool request_progress();

  class Channel;

 private:
  const std::shared_ptr<Channel> channel_;
  const bool progress_notify_;
  Revision seen_ = 0;
  bool bookmark_requested_ = false;
  bool on_stuck_set_ = false;
};

}  // namespace lookout::apiserver::storage::etcd3
