#include "registry/chooser.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "lookout/base/detail/log.h"
#include "registry/mixing.h"

namespace lookout::registry::detail {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

bool was_tried(const ServiceInstance& instance, std::span<const Pick> tried) {
  return std::ranges::any_of(
      tried, [&](const Pick& pick) { return pick && pick->key() == instance.key(); });
}

/// A random one of the wanted candidates, each with the same probability.
const Candidate* random_of(const Candidates& candidates, std::uint64_t random, const Want& want) {
  const std::size_t size = candidates.size();
  for (int tries = 0; tries < 16; ++tries) {
    random = mixed(random + kGolden);
    const Candidate& drawn = candidates[(random >> 32) * size >> 32];
    if (want.accepts(drawn, mixed(random))) return &drawn;
  }
  // Few are wanted.
  const Candidate* found = nullptr;
  std::uint64_t count = 0;
  for (const Candidate& candidate : candidates) {
    random = mixed(random + kGolden);
    if (want.accepts(candidate, mixed(random)) && random % ++count == 0) found = &candidate;
  }
  return found;
}

/// The candidate at `first`, if it is wanted, or any other wanted one: the successor of unwanted
/// candidates must not get all of their calls.
const Candidate* next_of(const Candidates& candidates, std::uint64_t first, const Want& want) {
  if (candidates.empty()) return nullptr;
  const Candidate* const here = &candidates[first % candidates.size()];
  if (want.plain()) return here;
  if (!want.excludes() && want.accepts(*here, mixed(first))) return here;
  return random_of(candidates, mixed(first), want);
}

class RoundRobin : public Chooser {
 public:
  RoundRobin(Candidates candidates, Counter counter)
      : candidates_(std::move(candidates)), counter_(std::move(counter)) {}

  const Candidate* choose(const Want& want) const override {
    return next_of(candidates_, advance(counter_), want);
  }

 private:
  const Candidates candidates_;
  const Counter counter_;
};

class Weighted : public Chooser {
 public:
  Weighted(const Candidates& candidates, Counter counter) : counter_(std::move(counter)) {
    for (const Candidate& candidate : candidates) {
      const std::uint32_t weight = candidate.weight;
      if (weight == 0 || total_ > std::numeric_limits<std::uint32_t>::max() - weight) continue;
      total_ += weight;
      candidates_.push_back(candidate);
      ends_.push_back(total_);
    }
    // Steps of about the golden ratio spread evenly. If the step and the total are coprime, each place
    // is visited once per round.
    step_ = std::max<std::uint64_t>(1, total_ * 618 / 1000);
    while (total_ > 0 && std::gcd(step_, total_) != 1) ++step_;
  }

  const Candidate* choose(const Want& want) const override {
    if (candidates_.empty()) return nullptr;
    const std::uint64_t number = advance(counter_);
    const std::uint64_t place = number % total_ * step_ % total_;
    const auto at = std::ranges::upper_bound(ends_, place);
    const Candidate& here = candidates_[static_cast<std::size_t>(at - ends_.begin())];
    // (The successor of a failing instance must not get all of its calls.)
    const bool good = !want.excludes() && want.accepts(here, mixed(number));
    return good ? &here : choose_other(mixed(number), want);
  }

 private:
  const Candidate* choose_other(std::uint64_t number, const Want& want) const {
    std::uint64_t left = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (want.accepts(candidates_[i], mixed(number + i))) left += candidates_[i].weight;
    }
    if (left == 0) return nullptr;
    std::uint64_t place = number % left;
    const Candidate* last = nullptr;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!want.accepts(candidates_[i], mixed(number + i))) continue;
      last = &candidates_[i];
      if (place < last->weight) return last;
      place -= last->weight;
    }
    // (An instance that was ejected or came back in between moves the places.)
    return last;
  }

  Candidates candidates_;
  std::vector<std::uint64_t> ends_;  // the end of each candidate's places
  std::uint64_t total_ = 0;
  std::uint64_t step_ = 1;
  const Counter counter_;
};

class Zones : public Chooser {
 public:
  Zones(const Candidates& candidates, Counter clock, Memory& memory, const std::string& local)
      : clock_(std::move(clock)) {
    std::map<std::string, Candidates> by_zone;
    for (const Candidate& candidate : candidates) {
      by_zone[candidate.instance->zone].push_back(candidate);
    }
    const bool local_only = !local.empty() && by_zone.contains(local);
    for (auto& [name, members] : by_zone) {
      auto& use = memory.zone_uses[name];
      if (!use)
        use = std::make_shared<ZoneUse>(mixed(memory.seed + std::hash<std::string>()(name)));
      auto& zones = local_only && name != local ? elsewhere_ : zones_;
      zones.push_back({std::move(members), use});
    }
    // The order of zones that have never been used.
    for (auto* zones : {&zones_, &elsewhere_}) {
      if (zones->empty()) continue;
      const auto first = static_cast<std::ptrdiff_t>(memory.seed % zones->size());
      std::rotate(zones->begin(), zones->begin() + first, zones->end());
    }
  }

  const Candidate* choose(const Want& want) const override {
    const Candidate* found = choose_of(zones_, want);
    return found == nullptr ? choose_of(elsewhere_, want) : found;
  }

 private:
  struct Zone {
    Candidates candidates;
    std::shared_ptr<ZoneUse> use;

    bool has_wanted(const Want& want) const {
      // (An instance in slow start counts, but may not be accepted this time.)
      return want.plain() || std::ranges::any_of(candidates, [&](const Candidate& candidate) {
               return want.accepts(candidate, 0);
             });
    }
  };

  const Candidate* choose_of(const std::vector<Zone>& zones, const Want& want) const {
    if (zones.empty()) return nullptr;
    const std::uint64_t now = advance(clock_) + 1;
    const Zone* zone = nullptr;
    for (;;) {
      std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
      for (const Zone& candidate : zones) {
        const auto last = candidate.use->last.load(std::memory_order_relaxed);
        if (last < oldest && candidate.has_wanted(want)) {
          oldest = last;
          zone = &candidate;
        }
      }
      if (zone == nullptr) return nullptr;
      // A thread that loses the race checks again: then another zone is the oldest.
      if (zone->use->last.compare_exchange_weak(oldest, now, std::memory_order_relaxed)) break;
      zone = nullptr;
    }
    return next_of(zone->candidates, zone->use->picks.fetch_add(1, std::memory_order_relaxed),
                   want);
  }

  std::vector<Zone> zones_;
  std::vector<Zone> elsewhere_;  // used if no instance of the local zone is wanted
  const Counter clock_;
};

/// The best of several random candidates.
template <class Better>
class BestOf : public Chooser {
 public:
  BestOf(Candidates candidates, Counter counter, std::size_t draws, std::size_t all_up_to)
      : candidates_(std::move(candidates)),
        counter_(std::move(counter)),
        draws_(draws),
        all_up_to_(all_up_to) {}

  const Candidate* choose(const Want& want) const override {
    const std::size_t size = candidates_.size();
    if (size == 0) return nullptr;
    const std::uint64_t number = advance(counter_);
    if (size == 1) {
      const Candidate& only = candidates_.front();
      return want.accepts(only, mixed(number)) ? &only : nullptr;
    }
    if (size <= all_up_to_) return best_from(number, want);
    std::uint64_t random = mixed(number * kGolden + 1);
    const Candidate* best = nullptr;
    const Candidate* other = nullptr;  // the last one drawn that is not the best
    std::size_t drawn = 0;
    for (int tries = 0; tries < 16 && drawn < draws_; ++tries) {
      const Candidate& candidate = candidates_[(random >> 32) * size >> 32];
      random = mixed(random + kGolden);
      if (&candidate == best || !want.accepts(candidate, random)) continue;
      ++drawn;
      if (best == nullptr || Better::better(candidate, *best, want)) {
        other = std::exchange(best, &candidate);
      } else {
        other = &candidate;
      }
    }
    // If few are wanted, drawing may miss all of them, or find the same one each time.
    if (drawn < draws_ && (best == nullptr || !want.plain())) best = best_from(random, want);
    if (other != nullptr && Better::overdue(*other, want)) best = other;
    if (best != nullptr) Better::chosen(*best, want);
    return best;
  }

 private:
  /// The best of all wanted candidates. Among equals, the first from `first` on; but a random one if not
  /// all candidates are wanted, because the first would often be the one after the unwanted ones.
  const Candidate* best_from(std::uint64_t first, const Want& want) const {
    const Candidate* best = nullptr;
    std::uint64_t equals = 0;
    const std::size_t size = candidates_.size();
    std::size_t at = first % size;
    for (std::size_t i = 0; i < size; ++i, at = at + 1 == size ? 0 : at + 1) {
      const Candidate& candidate = candidates_[at];
      if (!want.accepts(candidate, mixed(first + i))) continue;
      if (best == nullptr || Better::better(candidate, *best, want)) {
        best = &candidate;
        equals = 1;
      } else if (!want.plain() && !Better::better(*best, candidate, want) &&
                 mixed(first * kGolden + i) % ++equals == 0) {
        best = &candidate;
      }
    }
    return best;
  }

  const Candidates candidates_;
  const Counter counter_;
  const std::size_t draws_;
  const std::size_t all_up_to_;
};

struct LessLoaded {
  static bool better(const Candidate& a, const Candidate& b, const Want&) {
    // (in flight + 1) / weight, without a division.
    return static_cast<double>(a.node->in_flight() + 1) * b.weight <
           static_cast<double>(b.node->in_flight() + 1) * a.weight;
  }
  static bool overdue(const Candidate&, const Want&) { return false; }
  static void chosen(const Candidate&, const Want&) {}
};

struct HeavierByEwma {
  static bool better(const Candidate& a, const Candidate& b, const Want&) {
    return a.node->p2c_weight() > b.node->p2c_weight();
  }
  static bool overdue(const Candidate& candidate, const Want& want) {
    return candidate.node->overdue(want.now());
  }
  static void chosen(const Candidate& candidate, const Want& want) {
    candidate.node->picked(want.now());
  }
};

class HashRing : public Chooser {
 public:
  HashRing(Candidates candidates, Counter counter, double bound)
      : candidates_(std::move(candidates)), counter_(std::move(counter)), bound_(bound) {
    constexpr std::uint32_t kPoints = 100;
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
      const std::uint32_t points =
          std::clamp<std::uint32_t>(candidates_[i].weight * kPoints / 100, 1, 10 * kPoints);
      const std::uint64_t hash = hashed(candidates_[i].instance->key());
      for (std::uint32_t p = 0; p < points; ++p) {
        ring_.push_back({mixed(hash + p * kGolden), i});
      }
    }
    std::ranges::sort(ring_);
  }

  const Candidate* choose(const Want& want) const override {
    if (ring_.empty()) return nullptr;
    const std::uint64_t number = advance(counter_);
    const std::uint64_t hash = want.options().hash ? mixed(*want.options().hash) : mixed(number);
    const auto begin = static_cast<std::size_t>(
        std::ranges::lower_bound(ring_, hash, {}, &Point::hash) - ring_.begin());
    const auto all = static_cast<double>(
        std::max<std::int64_t>(0, want.health().in_flight.load(std::memory_order_relaxed)) + 1);
    const double limit = std::ceil(bound_ * all / static_cast<double>(candidates_.size()));
    const Candidate* full = nullptr;
    for (std::size_t i = 0; i < ring_.size(); ++i) {
      const Candidate& candidate = candidates_[ring_[(begin + i) % ring_.size()].candidate];
      if (!want.accepts(candidate, hash)) continue;
      if (static_cast<double>(candidate.node->in_flight() + 1) <= limit) return &candidate;
      if (full == nullptr) full = &candidate;
    }
    return full;
  }

 private:
  struct Point {
    std::uint64_t hash;
    std::uint32_t candidate;
    friend auto operator<=>(const Point&, const Point&) = default;
  };
  const Candidates candidates_;
  const Counter counter_;
  const double bound_;
  std::vector<Point> ring_;
};

/// How a Split draws.
struct Draw {
  Counter counter;
  /// If set, the pick's hash decides, so that it leads to the same candidate each time. It differs
  /// between splits.
  std::optional<std::uint64_t> salt = {};
};

/// Gives some candidates a share of the picks, and the others the rest. Each is the other's fallback.
class Split : public Chooser {
 public:
  Split(std::unique_ptr<const Chooser> some, std::unique_ptr<const Chooser> others, double share,
        Draw draw)
      : some_(std::move(some)),
        others_(std::move(others)),
        share_(std::clamp(share, 0.0, 1.0)),
        draw_(std::move(draw)) {}

  const Candidate* choose(const Want& want) const override {
    const auto& hash = want.options().hash;
    // Steps of the golden ratio: any sequence of picks has about this share.
    const std::uint64_t drawn =
        draw_.salt && hash ? mixed(*hash + *draw_.salt) : advance(draw_.counter) * kGolden;
    const bool first = fraction(drawn) < share_now(want);
    const Chooser& one = first ? *some_ : *others_;
    const Candidate* found = one.choose(want);
    return found != nullptr ? found : (first ? *others_ : *some_).choose(want);
  }

 protected:
  virtual double share_now(const Want&) const { return share_; }
  double share() const { return share_; }

 private:
  const std::unique_ptr<const Chooser> some_;
  const std::unique_ptr<const Chooser> others_;
  const double share_;
  const Draw draw_;
};

/// The local zone and the others. The local zone's share depends on its capacity for its callers.
class ZoneSplit : public Split {
 public:
  ZoneSplit(std::unique_ptr<const Chooser> local, std::unique_ptr<const Chooser> others,
            std::size_t local_size, std::size_t size, double callers,
            std::shared_ptr<ZoneHealth> zone, Draw draw)
      : Split(std::move(local), std::move(others), share_of(local_size, size, callers),
              std::move(draw)),
        local_size_(local_size),
        size_(size),
        callers_(callers),
        zone_(std::move(zone)) {}

 private:
  static double share_of(std::size_t local, std::size_t all, double callers) {
    if (all == 0 || callers <= 0) return 1;
    return static_cast<double>(local) / static_cast<double>(all) / callers;
  }
  double share_now(const Want& want) const override {
    if (!want.heeds_ejections()) return share();
    const std::size_t out_here = zone_->ejected.load(std::memory_order_relaxed);
    const std::size_t out = want.health().ejected.load(std::memory_order_relaxed);
    return share_of(local_size_ - std::min(local_size_, out_here), size_ - std::min(size_, out),
                    callers_);
  }

  const std::size_t local_size_;
  const std::size_t size_;
  const double callers_;
  const std::shared_ptr<ZoneHealth> zone_;
};

class ChooserMaker {
 public:
  ChooserMaker(const BalancerPolicy& policy, Memory& memory) : policy_(policy), memory_(memory) {}

  std::unique_ptr<const Chooser> canaries(Candidates candidates) {
    if (!policy_.canary || policy_.canary_share <= 0) return zones(std::move(candidates), "");
    Candidates some;
    Candidates others;
    for (const auto& candidate : candidates) {
      const bool is_canary = accepts(policy_.canary, "canary", *candidate.instance);
      (is_canary ? some : others).push_back(candidate);
    }
    if (some.empty() || others.empty()) return zones(std::move(candidates), "");
    return std::make_unique<Split>(zones(std::move(some), "canary"), zones(std::move(others), ""),
                                   policy_.canary_share, draw("canaries"));
  }

 private:
  std::unique_ptr<const Chooser> zones(Candidates candidates, const std::string& place) {
    if (policy_.preferred_zone.empty()) return leaf(std::move(candidates), place);
    Candidates local;
    Candidates others;
    std::map<std::string_view, int> names;
    for (const auto& candidate : candidates) {
      ++names[candidate.instance->zone];
      const bool here = candidate.instance->zone == policy_.preferred_zone;
      (here ? local : others).push_back(candidate);
    }
    if (local.empty() || others.empty()) return leaf(std::move(candidates), place);
    const double callers =
        policy_.caller_share > 0 ? policy_.caller_share : 1.0 / static_cast<double>(names.size());
    const auto zone = local.front().node->zone();
    const std::size_t local_size = local.size();
    return std::make_unique<ZoneSplit>(leaf(std::move(local), place + "/local"),
                                       leaf(std::move(others), place + "/others"), local_size,
                                       candidates.size(), callers, zone, draw(place + "/zones"));
  }

  std::unique_ptr<const Chooser> leaf(Candidates candidates, const std::string& place) {
    using Kind = BalancerPolicy::Kind;
    switch (policy_.kind) {
      case Kind::kWeighted:
        return std::make_unique<Weighted>(candidates, counter(place));
      case Kind::kZones:
        // (The clock of zones starts at 0: it is compared with the zones' remembered use.)
        return std::make_unique<Zones>(candidates, memory_.counter("zones", 0), memory_,
                                       policy_.local_zone);
      case Kind::kLeastLoaded:
        std::erase_if(candidates, [](const auto& candidate) { return candidate.weight == 0; });
        return std::make_unique<BestOf<LessLoaded>>(std::move(candidates), counter(place), 4, 16);
      case Kind::kP2cEwma:
        return std::make_unique<BestOf<HeavierByEwma>>(std::move(candidates), counter(place), 2, 0);
      case Kind::kConsistentHash:
        std::erase_if(candidates, [](const auto& candidate) { return candidate.weight == 0; });
        return std::make_unique<HashRing>(std::move(candidates), counter(place),
                                          std::max(1.0, policy_.bounded_load));
      case Kind::kRoundRobin:
        break;
    }
    return std::make_unique<RoundRobin>(std::move(candidates), counter(place));
  }

  Counter counter(const std::string& place) { return memory_.counter(place, memory_.seed); }
  Draw draw(const std::string& place) {
    Draw out{counter(place)};
    if (policy_.kind == BalancerPolicy::Kind::kConsistentHash) out.salt = hashed(place);
    return out;
  }

  const BalancerPolicy& policy_;
  Memory& memory_;
};

}  // namespace

bool accepts(const std::function<bool(const ServiceInstance&)>& function, const char* name,
             const ServiceInstance& instance) {
  std::string why = "something that is not a std::exception";
  try {
    return function(instance);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  log::error("registry: {} of a balancer threw for {}: {}", name, instance.key(), why);
  return false;
}

Want::Want(const PickOptions& options, Health& health, std::size_t candidates, bool needs_time)
    : options_(options), health_(health) {
  const std::size_t ejected = health.ejected.load(std::memory_order_relaxed);
  const Nanos ramp_until =
      health.slow_start > 0 ? health.ramp_until.load(std::memory_order_relaxed) : 0;
  if (needs_time || ejected > 0 || ramp_until > 0) now_ = health.now();
  heeds_ejections_ = ejected > 0;
  if (heeds_ejections_ && (candidates - std::min(candidates, ejected)) * 100 <
                              health.outliers.panic_percent * candidates) {
    heeds_ejections_ = false;
    health.panics.fetch_add(1, std::memory_order_relaxed);
  }
  heeds_ramps_ = ramp_until > now_;
  if (ramp_until > 0 && !heeds_ramps_) {
    // The slow start is over: later picks need not read the clock for it.
    Nanos expected = ramp_until;
    health.ramp_until.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }
  plain_ = !heeds_ejections_ && !heeds_ramps_ && options.exclude.empty() && options.scheme.empty();
}

bool Want::relax() {
  if (level_ == Level::kAll && heeds_ramps_) {
    level_ = Level::kNoRamp;
    heeds_ramps_ = false;
  } else if (level_ != Level::kTriedOnly && heeds_ejections_) {
    level_ = Level::kTriedOnly;
    heeds_ejections_ = false;
  } else {
    return false;
  }
  plain_ =
      !heeds_ejections_ && !heeds_ramps_ && options_.exclude.empty() && options_.scheme.empty();
  return true;
}

bool Want::accepts_slowly(const Candidate& candidate, std::uint64_t random) const {
  if (!options_.scheme.empty() && candidate.instance->endpoint(options_.scheme) == nullptr) {
    return false;
  }
  if (!options_.exclude.empty() && was_tried(*candidate.instance, options_.exclude)) return false;
  if (heeds_ejections_ && candidate.node->ejected(now_, health_)) return false;
  return !heeds_ramps_ || fraction(random) < candidate.node->ramp(now_, health_);
}

Counter Memory::counter(const std::string& place, std::uint64_t first) {
  auto& found = counters[place];
  if (!found) found = std::make_shared<std::atomic<std::uint64_t>>(first);
  return found;
}

std::unique_ptr<const Chooser> make_chooser(const BalancerPolicy& policy, Candidates candidates,
                                            Memory& memory) {
  return ChooserMaker(policy, memory).canaries(std::move(candidates));
}

}  // namespace lookout::registry::detail
