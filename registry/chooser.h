// The policies that choose a candidate.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lookout/registry/pick.h"
#include "lookout/registry/policy.h"
#include "registry/node.h"

namespace lookout::registry::detail {

struct Candidate {
  const ServiceInstance* instance = nullptr;
  const Node* node = nullptr;
  std::uint32_t weight = 0;
};
using Candidates = std::vector<Candidate>;

/// Calls a policy's function. If it throws, that is logged, and the instance is not accepted: one
/// instance must not prevent the use of the others.
bool accepts(const std::function<bool(const ServiceInstance&)>& function, const char* name,
             const ServiceInstance& instance);

/// The requirements of one pick.
class Want {
 public:
  /// Which requirements apply. Lower levels are used if nothing was found.
  enum class Level { kAll, kNoRamp, kTriedOnly };

  Want(const PickOptions& options, Health& health, std::size_t candidates, bool needs_time);

  const PickOptions& options() const { return options_; }
  Health& health() const { return health_; }
  Nanos now() const { return now_; }
  Level level() const { return level_; }
  /// Goes to the next level. False if it would not change the result.
  bool relax();

  /// Whether the candidate may be chosen. `random` decides for instances in slow start.
  bool accepts(const Candidate& candidate, std::uint64_t random) const {
    return plain_ || accepts_slowly(candidate, random);
  }
  /// Whether all candidates are accepted.
  bool plain() const { return plain_; }
  bool excludes() const { return !options_.exclude.empty(); }
  bool heeds_ejections() const { return heeds_ejections_; }

 private:
  bool accepts_slowly(const Candidate& candidate, std::uint64_t random) const;

  const PickOptions& options_;
  Health& health_;
  Nanos now_ = 0;
  Level level_ = Level::kAll;
  bool heeds_ejections_ = false;
  bool heeds_ramps_ = false;
  bool plain_ = false;
};

/// Chooses among the candidates of one set. Thread-safe; takes no lock and allocates nothing.
class Chooser {
 public:
  virtual ~Chooser() = default;
  /// Null if no candidate is wanted.
  virtual const Candidate* choose(const Want& want) const = 0;
};

/// Increments a counter that threads share.
using Counter = std::shared_ptr<std::atomic<std::uint64_t>>;

inline std::uint64_t advance(const Counter& counter) {
  return counter->fetch_add(1, std::memory_order_relaxed);
}

/// When the zone policy last used a zone.
struct ZoneUse {
  explicit ZoneUse(std::uint64_t first) : picks(first) {}
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> picks;
};

/// The state that choosers pass to those of the next set, so that a change does not reset them. Not
/// thread-safe.
struct Memory {
  std::uint64_t seed = 0;
  /// By the chooser's position in the tree.
  std::map<std::string, Counter> counters = {};
  std::map<std::string, std::shared_ptr<ZoneUse>> zone_uses = {};

  Counter counter(const std::string& place, std::uint64_t first);
};

/// The chooser of a policy. Canaries and zones are split first.
std::unique_ptr<const Chooser> make_chooser(const BalancerPolicy& policy, Candidates candidates,
                                            Memory& memory);

}  // namespace lookout::registry::detail
