// How far a group of informers is.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
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

/// Where the first data has to be.
enum class Synced {
  kStores,   ///< in the stores of the informers
  kHandlers  ///< their handlers have been told of it, too
};

/// The state of the informers of a group. Sets take their freshness from it, and may outlive the
/// informers. Safe to use from any thread.
class GroupState : public FreshnessSource {
 public:
  struct Source {
    std::string ns;
    std::weak_ptr<informer::SharedIndexInformer> informer;
  };
  /// Once, before the informers start.
  void set(std::vector<Source> sources);
  /// From now on nothing is followed.
  void close();

  /// The handler of this one has been told of everything that was there.
  void told(std::size_t index);
  /// A list or a watch of this one failed. True if that changes what is waited for.
  bool failed(std::size_t index, WatchFailure failure, bool refused);

  bool closed() const;
  bool synced() const;

  /// The data that has not come yet, to wait for.
  struct Missing {
    bool none = false;
    bool all_refused = false;  ///< nothing is there, and nothing can be expected
    InformerPtr informer;      ///< one of them, if there is one whose store can be waited for
    std::stop_token changed;   ///< stopped when it is worth looking again
  };
  Missing missing(Synced what) const;
  /// The informers that have brought nothing, each with the reason.
  std::vector<std::string> missing_names() const;

  std::vector<WatchFailure> failures() const;
  Freshness freshness() const override;

 private:
  struct Member {
    Source source;
    bool told = false;
    bool refused = false;  // the last failure is an answer that will not change by itself
    std::optional<WatchFailure> failure = {};
  };
  /// A member with its informer, which lives at least as long as this.
  struct Seen {
    Member member;
    InformerPtr informer;

    bool synced() const { return member.told || (informer && informer->has_synced()); }
  };
  /// (Not under the mutex: whoever is the last to let go of an informer waits for its handlers.)
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
