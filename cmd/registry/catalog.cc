#include "cmd/registry/catalog.h"

#include <algorithm>
#include <utility>

#include "cmd/pause.h"
#include "lookout/base/detail/log.h"

namespace lookout::cmd::registry_cmd {
namespace {

/// The maximum difference of two readings of the same time, which is computed from two clocks.
constexpr std::chrono::seconds kSameMoment{1};

bool same(const registry::Freshness& a, const registry::Freshness& b) {
  return a.live == b.live && a.error == b.error && a.since - b.since < kSameMoment &&
         b.since - a.since < kSameMoment;
}

}  // namespace

registry::InstanceSetPtr CatalogState::find(const std::string& service) const {
  const auto name = [](const registry::InstanceSetPtr& set) -> auto& { return set->service(); };
  const auto found = std::ranges::lower_bound(services, service, {}, name);
  return found != services.end() && name(*found) == service ? *found : nullptr;
}

Catalog::Catalog(std::shared_ptr<registry::Discovery> discovery, std::chrono::milliseconds interval,
                 TakeNotes take_notes)
    : discovery_(std::move(discovery)),
      interval_(interval),
      take_notes_(std::move(take_notes)),
      state_(std::make_shared<const CatalogState>()),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Catalog::~Catalog() { stop(); }

void Catalog::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

CatalogStatePtr Catalog::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::uint64_t Catalog::add_listener(std::function<void()> bell) {
  const std::lock_guard lock(mutex_);
  listeners_.emplace(++last_listener_, std::move(bell));
  return last_listener_;
}

void Catalog::remove_listener(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(id);
}

void Catalog::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      publish(look(stop));
    } catch (const registry::NotSynced&) {
      // Publish the partial state.
      CatalogState waiting;
      waiting.freshness = discovery_->freshness();
      publish(std::move(waiting));
    } catch (const std::exception& e) {
      log::error("registry: {}", e.what());
    }
    pause_until(stop, std::chrono::steady_clock::now() + interval_);
  }
}

CatalogState Catalog::look(const std::stop_token& stop) {
  CatalogState out;
  const auto names = discovery_->services({.stop = stop, .timeout = interval_});
  out.synced = true;
  out.freshness = discovery_->freshness();
  out.services.reserve(names.size());
  std::map<std::string, registry::Watcher> watchers;
  for (const auto& name : names) {
    auto known = watchers_.extract(name);
    auto& watcher = known.empty() ? watchers.emplace(name, discovery_->watch(name)).first->second
                                  : watchers.insert(std::move(known)).position->second;
    out.services.push_back(watcher.latest());
  }
  // Watchers that are left in the old map belong to removed services.
  watchers_ = std::move(watchers);
  return out;
}

void Catalog::publish(CatalogState next) {
  if (take_notes_) next.notes = take_notes_(*state(), next);
  const std::lock_guard lock(mutex_);
  if (next.synced == state_->synced && same(next.freshness, state_->freshness) &&
      next.services == state_->services && next.notes == state_->notes) {
    return;
  }
  next.revision = state_->revision + 1;
  state_ = std::make_shared<const CatalogState>(std::move(next));
  for (const auto& [id, bell] : listeners_) bell();
}

}  // namespace lookout::cmd::registry_cmd
