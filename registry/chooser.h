// The policies: which of some candidates.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// The demands of one pick, and the instances it looks at.
class Want {
 public:
  /// How much is heeded: less of it when nothing was found.
  enum class Level { kAll, kNoRamp, kTriedOnly };

  Want(const PickOptions& options, Health& health, std::size_t candidates, bool needs_time);

  const PickOptions& options() const { return options_; }
  Health& health() const { return health_; }
  Nanos now() const { return now_; }
  Level level() const { return level_; }
  /// False if there was nothing that a lower level would not heed.
  bool relax();

  /// Whether this is one that may be chosen. `random` is for what may be chosen at times.
  bool accepts(const Candidate& candidate, std::uint64_t random) const {
    return plain_ || accepts_slowly(candidate, random);
  }
  /// Whether any candidate is as good as another as far as this goes.
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

/// Goes through the candidates of one set. Functions are from any thread, take no lock and allocate
/// nothing.
class Chooser {
 public:
  virtual ~Chooser() = default;
  /// Null if there is none that is wanted.
  virtual const Candidate* choose(const Want& want) const = 0;
};

/// A counter that threads share.
using Counter = std::shared_ptr<std::atomic<std::uint64_t>>;

inline std::uint64_t advance(const Counter& counter) {
  return counter->fetch_add(1, std::memory_order_relaxed);
}

/// The use of a zone by the policy of zones.
struct ZoneUse {
  explicit ZoneUse(std::uint64_t first) : picks(first) {}
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> picks;
};

/// What choosers leave to those of the next set, so that a change does not begin anew. For one
/// thread at a time.
struct Memory {
  std::uint64_t seed = 0;
  /// By the place of the chooser in the tree.
  std::map<std::string, Counter> counters = {};
  std::map<std::string, std::shared_ptr<ZoneUse>> zone_uses = {};

  Counter counter(const std::string& place, std::uint64_t first);
};

/// The chooser of a policy: canaries and zones are told apart first.
std::unique_ptr<const Chooser> make_chooser(const BalancerPolicy& policy, Candidates candidates,
                                            Memory& memory);

}  // namespace lookout::registry::detail
