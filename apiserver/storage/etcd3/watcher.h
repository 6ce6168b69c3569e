// From a watch of etcd to events about objects: k8s.io/apiserver/pkg/storage/etcd3/watcher.go.
#pragma once

#include <atomic>
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
  /// The whole key, or with `recursive` what keys begin with, which then ends with '/': so that
  /// "/a/b/" is not taken for the beginning of "/a/bc".
  std::string key;
  bool recursive = true;
  /// Present objects first, as additions in the order of their keys: those of `revision`, or if it
  /// is 0 of the newest one. Then, or otherwise at once, the changes after the revision.
  bool initial_events = false;
  Revision revision = 0;
  /// A bookmark follows the present objects.
  bool initial_events_end = false;
  /// Progress notifications of etcd become bookmarks. It sends one now and then
  /// (--experimental-watch-progress-notify-interval, 10 minutes) while nothing else comes. Without
  /// this, they are told when a bookmark is asked for.
  bool progress_notify = false;
  Predicate predicate = {};
  /// The previous values are decoded, although the predicate does not need them.
  bool with_previous = false;
  /// A value that cannot be decoded does not end the watch: it is told as a kError whose `change`
  /// names the key (its type is kDeleted if the key is gone and its last value cannot be decoded).
  bool tell_unreadable = false;
  /// The history that `revision` belongs to, if that is known: etcd has come as far as that in it.
  /// Otherwise it is taken for one of the present history, and may lie in its future.
  std::optional<Lineage> lineage = {};
};

/// A watch of a key or a prefix, in two steps that run beside each other: reading etcd's events,
/// and making events about objects of them. Between and behind them are queues of 100 events (and
/// no more than 32 MiB each); who does not read makes the connection to etcd wait, and etcd keep
/// the rest.
///
/// A connection that breaks is replaced by another one, where need be to another member, which goes
/// on right behind what came last: nothing is lost or repeated. So it is with one whose token is no
/// longer good. The watch ends, with exactly one error event behind everything that came before it:
///   - etcd has forgotten the revision (410 Expired);
///   - it does not come as far within EtcdOptions::future_wait (504, "Too large resource version");
///   - another etcd is there, or the same one restored to an older state (410 Expired);
///   - the member has lost its leader ("etcdserver: no leader"): the watch would hear nothing;
///   - a value that cannot be decoded (500, which names the key);
///   - an event without the previous value, which would be needed.
/// A caller who has gone away gets none.
class EtcdWatch final : public Watch {
 public:
  /// `reader` is the executor of the coroutine that will call next().
  EtcdWatch(std::shared_ptr<const Context> context, WatchSpec spec,
            boost::asio::any_io_executor reader);
  ~EtcdWatch() override;

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override;
  /// It says what has come: etcd may be ahead.
  void request_bookmark() override { bookmark_requested_ = true; }
  void cancel() override;
  /// Whether the member that the events come from answers; true while there is no connection.
  Awaitable<bool> is_served();
  /// Asks etcd how far the watch has come: its answer is a notification of progress. False if it
  /// cannot be asked now, or not at all (Client::tells_progress()). From any thread.
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
