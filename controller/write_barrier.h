// Waiting until caches have seen what was written.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

/// One write that succeeded, as far as a cache of its kind is concerned.
struct Write {
  std::shared_ptr<const CachedKind> kind;
  Request key;
  std::string uid;
  std::string resource_version;  ///< empty: the object was deleted, and `uid` is to vanish
  /// Whether the cache selects the object as it was written. If it does not, no event may come.
  bool selected = true;
};

/// Tells when the caches have seen a set of writes. What a cache cannot see ends by a deadline.
///
/// A cache has seen a write when its object is that new, when it has followed the server that far
/// (so whatever it shows is newer), or, after a deletion, when the object is gone. A namespace that
/// the server refuses counts as one that no cache has.
class WriteBarrier : public std::enable_shared_from_this<WriteBarrier> {
 public:
  WriteBarrier(const std::shared_ptr<EventLoop>& loop, std::shared_ptr<Clock> clock);
  void begin();

  /// Calls `then(seen)` once, on any thread, maybe at once: with true when all writes have been
  /// seen, with false when `timeout` has passed before.
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

  /// Whether all its writes have been seen.
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

/// Whether the cache has seen this write.
bool seen(const Write& write);

}  // namespace lookout::controller::detail
