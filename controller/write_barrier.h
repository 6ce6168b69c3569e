// WriteBarrier: waits until caches have seen writes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/alarm.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/request.h"

namespace lookout::controller::detail {

class CachedKind;

/// A successful write, for one cache of its kind.
struct Write {
  std::shared_ptr<const CachedKind> kind;
  Request key;
  std::string uid;
  std::string resource_version;  ///< empty: the object was deleted, so `uid` must disappear
  /// True if the cache's selectors match the written object; otherwise there may be no event.
  bool selected = true;
  /// The cache's resourceVersion at the last call of seen(); 0 before the first, and if it is not a
  /// number.
  std::uint64_t cache_version = 0;
};

/// Reports when the caches have seen a set of writes, or after a deadline.
///
/// A cache has seen a write when it has this or a newer version of the object, when it has followed the
/// server beyond that version, or, after a deletion, when the object is gone. A kind or namespace that the
/// server refuses to list counts as not cached. If the server's history begins anew (empty storage, a
/// restored backup), the cache's version goes back; the write may be missing from the new history, so it
/// counts as seen.
class WriteBarrier : public std::enable_shared_from_this<WriteBarrier> {
 public:
  WriteBarrier(const std::shared_ptr<EventLoop>& loop, std::shared_ptr<Clock> clock);
  void begin();

  /// Calls `then(seen)` once, on any thread, possibly immediately: with true when all writes have been
  /// seen, with false after `timeout`.
  void wait(std::vector<Write> writes, std::chrono::milliseconds timeout,
            std::function<void(bool)> then);

  /// The object has changed in the cache.
  void on_change(const CachedKind* kind, const api::Object& object);

  std::size_t waiting() const;
  void collect(std::vector<metrics::Sample>& out) const;

 private:
  struct Waiter;
  /// By request, not by kind: kinds would be ordered by their addresses, which differ in each run.
  using Waiters = std::multimap<Request, std::shared_ptr<Waiter>>;

  /// Returns true if all writes of the waiter have been seen.
  static bool advance(Waiter& waiter);
  void sweep();
  void finish(const std::vector<std::shared_ptr<Waiter>>& waiters, bool seen_all);

  std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<Clock> clock_;
  std::unique_ptr<Alarm> alarm_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> timeouts_{0};
  metrics::Histogram wait_seconds_{metrics::kInformerBuckets};
  std::mutex mutex_;
  Waiters waiters_;  // guarded by mutex_; by the first write that has not been seen
};

/// True if the cache has seen this write. Call it repeatedly for the same `write`: it compares the cache's
/// version with that of the last call.
bool seen(Write& write);

}  // namespace lookout::controller::detail
