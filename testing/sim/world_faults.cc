// The faults of a world: draws them and applies them to processes and etcd.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/testing/sim/world.h"
#include "testing/sim/draw.h"
#include "testing/sim/kernel.h"
#include "testing/sim/random.h"
#include "testing/sim/world_impl.h"

namespace lookout::sim {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

Nanos nanos(std::chrono::nanoseconds time) { return time.count(); }
double seconds_of(milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void World::Impl::freeze(std::string_view name, milliseconds duration) {
  Life& life = *slot(name).lives.back();
  note(life.name(), fmt::format("(is frozen for {:.3f} s)", seconds_of(duration)));
  kernel_.freeze(life.group, kernel_.now() + nanos(duration));
}

void World::Impl::partition(std::string_view name, milliseconds duration) {
  Life& life = *slot(name).lives.back();
  note(life.name(), fmt::format("(is cut off for {:.3f} s)", seconds_of(duration)));
  life.link().cut_until(steady_clock::now() + duration);
}

/// Draws durations that the fault does not specify, seeded with its time.
void World::Impl::strike_etcd(const Fault& fault) {
  note_struck(fault);
  Random random(mix(fault.at));
  const auto drawn_member = [&] {
    return static_cast<int>(random.below(etcd_->endpoints().size()));
  };
  switch (fault.kind) {
    case FaultKind::kCrash: {
      const int member = drawn_member();
      const milliseconds down(random.between(100, 4'000));
      note(kEtcd,
           fmt::format("(member {} restarts, which takes {:.3f} s)", member, seconds_of(down)));
      etcd_->restart(member, down);
      return;
    }
    case FaultKind::kFreeze: {
      const int member = drawn_member();
      const bool for_good = random.below(2) == 0;
      note(kEtcd, fmt::format("(member {} does not respond for {:.3f} s{})", member,
                              seconds_of(fault.duration),
                              for_good ? "; its existing connections stay silent" : ""));
      etcd_->freeze(member, fault.duration, for_good);
      return;
    }
    case FaultKind::kPartition: {
      const int member = drawn_member();
      note(kEtcd, fmt::format("(member {} cannot reach the others for {:.3f} s)", member,
                              seconds_of(fault.duration)));
      etcd_->cut_off(member, fault.duration);
      return;
    }
    case FaultKind::kLag: {
      const int member = drawn_member();
      const milliseconds late(random.between(50, 10'000));
      note(kEtcd, fmt::format("(member {} lags by {:.3f} s for {:.3f} s)", member, seconds_of(late),
                              seconds_of(fault.duration)));
      etcd_->delay(member, late, fault.duration);
      return;
    }
    case FaultKind::kNoLeader:
      note(kEtcd, fmt::format("(has no leader for {:.3f} s)", seconds_of(fault.duration)));
      etcd_->lose_leader(fault.duration);
      return;
    case FaultKind::kCompact: {
      const auto revision = etcd_->revision() - (random.below(2) == 0 ? 0 : random.below(4));
      if (revision <= etcd_->compacted()) return;
      note(kEtcd, fmt::format("(compacts the history before revision {})", revision));
      etcd_->compact(revision);
      return;
    }
    default:
      return;
  }
}

void World::Impl::note_struck(const Fault& fault) {
  struck_.push_back(fault);
  if (on_struck) on_struck(fault);
}

void World::Impl::strike(const Fault& fault) {
  if (fault.process == kEtcd && etcd_ != nullptr) return strike_etcd(fault);
  const auto found = slots_.find(fault.process);
  if (found == slots_.end()) return;
  note_struck(fault);
  Slot& slot = found->second;
  switch (fault.kind) {
    case FaultKind::kCrash:
      crash(fault.process, false, "crashes");
      break;
    case FaultKind::kFreeze:
      freeze(fault.process, fault.duration);
      break;
    case FaultKind::kPartition:
      partition(fault.process, fault.duration);
      break;
    case FaultKind::kClockJump:
      note(fault.process,
           fmt::format("(its wall clock jumps by {:.3f} s)", seconds_of(fault.duration)));
      slot.lives.back()->group.clock_error += nanos(fault.duration);
      break;
    default:
      break;
  }
}

void World::Impl::demand_own_faults() const {
  if (fixed_)
    throw InvalidArgument(
        "World::faults() has no effect here: explore(), explore_each() and replay() say which "
        "faults strike (ExploreOptions::faults)");
}

void World::Impl::faults(const Plan& plan) {
  demand_own_faults();
  for (const Fault& fault : plan) {
    if (is_of_time(fault.kind)) {
      at(milliseconds(fault.at), [this, fault] { strike(fault); });
    } else {
      plan_.emplace(Moment(fault.process, fault.call, fault.at), fault);
    }
  }
}

/// Locks the mutex only once, for any number of faults: an unlock is a preemption point, and replaying
/// the drawn faults as a plan must give the same run.
void World::Impl::begin_faults(Time from, Time to) {
  Plan all = std::exchange(timed_, {});
  const auto add_drawn = [&](const std::string& process) {
    std::ranges::copy(draw(faults_, seed_, process, std::chrono::ceil<milliseconds>(from),
                           std::chrono::floor<milliseconds>(to)),
                      std::back_inserter(all));
  };
  for (const auto& [name, slot] : slots_) add_drawn(name);
  if (etcd_ != nullptr) add_drawn(kEtcd);
  const std::lock_guard lock(mutex_);
  for (const Fault& fault : all)
    actions_.emplace(milliseconds(fault.at), [this, fault] { strike(fault); });
  drawing_ = true;
}

}  // namespace lookout::sim
