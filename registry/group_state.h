// GroupState: the sync state of a group of informers.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/informer/shared_index_informer.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/options.h"

namespace lookout::registry::detail {

using InformerPtr = std::shared_ptr<informer::SharedIndexInformer>;

/// Where the initial data must have arrived before a group is synced.
enum class Synced {
  kStores,   ///< the informers' stores
  kHandlers  ///< the informers' handlers
};

/// The state of a group's informers, from which sets take their freshness. Sets may outlive the
/// informers. Thread-safe.
class GroupState : public FreshnessSource {
 public:
  struct Source {
    std::string ns;
    std::weak_ptr<informer::SharedIndexInformer> informer;
  };
  /// Call once, before the informers start.
  void set(std::vector<Source> sources);
  /// The informers have stopped.
  void close();

  /// The handler of this informer has received all initial objects.
  void told(std::size_t index);
  /// A list or watch of this informer failed; `refused`: for good. True if that changes missing().
  bool failed(std::size_t index, bool refused);

  bool closed() const;
  bool synced() const;

  /// The data that is still missing.
  struct Missing {
    bool none = false;
    bool all_refused = false;  ///< the server refuses all informers
    InformerPtr informer;      ///< one to wait for, if any
    std::stop_token changed;   ///< stopped on the next change
  };
  Missing missing(Synced what) const;
  /// The informers without data, with the reasons.
  std::vector<std::string> missing_names() const;

  std::vector<WatchFailure> failures() const;
  Freshness freshness() const override;

 private:
  struct Member {
    Source source;
    bool told = false;
    bool refused = false;  // the last failure is permanent
  };
  /// A member and a reference to its informer.
  struct Seen {
    Member member;
    InformerPtr informer;

    bool synced() const { return member.told || (informer && informer->has_synced()); }
    /// Why the informer does not follow the server, if it failed since it last did.
    std::optional<WatchFailure> failure() const;
  };
  /// (Do not call with the mutex held: releasing the last reference to an informer waits for its
  /// handlers.)
  std::vector<Seen> seen() const;
  void changed(std::unique_lock<std::mutex> lock);

  mutable std::atomic<bool> synced_{false};
  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::vector<Member> members_;
  bool closed_ = false;
  std::stop_source changed_;
  std::chrono::system_clock::time_point changed_at_ = std::chrono::system_clock::now();
};

}  // namespace lookout::registry::detail
