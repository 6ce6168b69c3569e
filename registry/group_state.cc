#include "registry/group_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lookout::registry::detail {
namespace {

/// The status of an expired resourceVersion. A watch that was disconnected for long gets it, and
/// the informer lists again: not a failure.
constexpr int kGone = 410;

}  // namespace

std::optional<WatchFailure> GroupState::Seen::failure() const {
  if (!informer || informer->live_since()) return std::nullopt;
  auto last = informer->last_failure();
  if (!last || last->status == kGone) return std::nullopt;
  return WatchFailure{
      .ns = member.source.ns, .reason = std::move(last->message), .code = last->status};
}

void GroupState::set(std::vector<Source> sources) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  for (auto& source : sources) members_.push_back({std::move(source)});
}

void GroupState::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  members_.clear();
  changed_at_ = std::chrono::system_clock::now();
  changed(std::move(lock));
}

void GroupState::told(std::size_t index) {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  members_[index].told = true;
  changed(std::move(lock));
}

bool GroupState::failed(std::size_t index, bool refused) {
  std::unique_lock lock(mutex_);
  if (closed_) return false;
  const bool news = std::exchange(members_[index].refused, refused) != refused;
  if (news) changed(std::move(lock));
  return news;
}

void GroupState::changed(std::unique_lock<std::mutex> lock) {
  auto before = std::exchange(changed_, std::stop_source());
  lock.unlock();
  before.request_stop();
}

bool GroupState::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::vector<GroupState::Seen> GroupState::seen() const {
  std::vector<Seen> out;
  const std::lock_guard lock(mutex_);
  out.reserve(members_.size());
  for (const auto& member : members_) out.push_back({member, member.source.informer.lock()});
  return out;
}

bool GroupState::synced() const {
  return synced_.load(std::memory_order_acquire) || missing(Synced::kStores).none;
}

GroupState::Missing GroupState::missing(Synced what) const {
  Missing out;
  {
    // Taken before the check, so that no change is missed.
    const std::lock_guard lock(mutex_);
    out.changed = changed_.get_token();
  }
  bool complete = true;
  bool any = false;
  const std::vector<Seen> members = seen();
  for (const auto& member : members) {
    if (what == Synced::kStores ? member.synced() : member.member.told) {
      any = true;
    } else if (!member.member.refused || (what == Synced::kHandlers && member.synced())) {
      complete = false;
      if (what == Synced::kStores && !out.informer) out.informer = member.informer;
    }
  }
  out.none = any && complete;
  out.all_refused = !any && complete && !members.empty();
  // Once synced, the group stays synced.
  if (out.none) synced_.store(true, std::memory_order_release);
  return out;
}

std::vector<std::string> GroupState::missing_names() const {
  std::vector<std::string> out;
  for (const auto& member : seen()) {
    if (member.synced() || !member.informer) continue;
    const auto failure = member.failure();
    out.push_back(failure ? fmt::format("{} ({})", member.informer->name(), failure->reason)
                          : member.informer->name());
  }
  return out;
}

std::vector<WatchFailure> GroupState::failures() const {
  std::vector<WatchFailure> out;
  for (const auto& member : seen()) {
    if (auto failure = member.failure()) out.push_back(*std::move(failure));
  }
  return out;
}

Freshness GroupState::freshness() const {
  const auto members = seen();
  std::chrono::system_clock::time_point changed_at;
  {
    const std::lock_guard lock(mutex_);
    changed_at = changed_at_;
  }
  const bool any_synced = std::ranges::any_of(members, &Seen::synced);
  bool live = true;
  std::string error;
  std::optional<Clock::TimePoint> live_since;
  std::optional<Clock::TimePoint> heard;
  for (const auto& member : members) {
    if (!member.informer) return {false, changed_at, "the registry is closed"};
    if (const auto failure = member.failure()) {
      if (!error.empty()) error += "; ";
      error += failure->ns.empty() ? failure->reason
                                   : fmt::format("{}: {}", failure->ns, failure->reason);
    }
    // A forbidden namespace does not make the others stale.
    if (any_synced && member.member.refused && !member.synced()) continue;
    if (const auto since = member.informer->live_since()) {
      live_since = std::max(live_since.value_or(*since), *since);
    } else {
      live = false;
      const auto activity = member.informer->last_activity();
      heard = std::min(heard.value_or(activity), activity);
    }
  }
  const auto at = live ? live_since : heard;
  if (!at) return {false, changed_at, std::move(error)};
  // Convert the informers' steady clock to the time of day.
  return {live,
          std::chrono::system_clock::now() -
              std::chrono::duration_cast<std::chrono::system_clock::duration>(Clock::real()->now() -
                                                                              *at),
          std::move(error)};
}

}  // namespace lookout::registry::detail
