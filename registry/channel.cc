#include "registry/channel.h"

#include <algorithm>
#include <utility>

namespace lookout::registry::detail {

Channel::Channel(std::weak_ptr<Hub> hub, std::string service, Informers informers,
                 std::shared_ptr<const InstanceReader> reader,
                 std::shared_ptr<const FreshnessSource> freshness)
    : hub_(std::move(hub)),
      service_(std::move(service)),
      reader_(std::move(reader)),
      freshness_(std::move(freshness)),
      informers_(std::move(informers)),
      published_(std::make_shared<Published>(InstanceSet::make(service_, 0, {}, freshness_))) {}

Channel::~Channel() {
  if (const auto hub = hub_.lock()) hub->forget_channel(service_);
}

std::shared_ptr<WatcherCore> Channel::add() {
  auto watcher = std::make_shared<WatcherCore>(published_);
  const std::lock_guard lock(mutex_);
  watchers_.insert(watcher);
  return watcher;
}

void Channel::remove(const std::shared_ptr<WatcherCore>& watcher) {
  const std::lock_guard lock(mutex_);
  watchers_.erase(watcher);
}

std::size_t Channel::watchers() const {
  const std::lock_guard lock(mutex_);
  return watchers_.size();
}

void Channel::put_together(std::vector<InstancePtr>& instances, const InstanceSet& before) const {
  std::ranges::stable_sort(instances, {}, [](const InstancePtr& p) -> auto& { return p->key(); });
  // Several objects may describe one instance.
  std::size_t kept = 0;
  for (auto& instance : instances) {
    if (kept > 0 && instances[kept - 1]->key() == instance->key()) {
      instances[kept - 1] = reader_->merged(instances[kept - 1], instance);
    } else {
      instances[kept++] = std::move(instance);
    }
  }
  instances.resize(kept);
  reader_->choose(instances);
  // An object changes more often than its instances.
  auto known = before.instances().begin();
  for (auto& instance : instances) {
    while (known != before.instances().end() && (*known)->key() < instance->key()) ++known;
    if (known != before.instances().end() && identical(**known, *instance)) instance = *known;
  }
}

void Channel::close() {
  {
    const std::lock_guard computing(computing_);
    informers_.clear();
    read_.clear();
  }
  InOrder<std::shared_ptr<WatcherCore>> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers.swap(watchers_);
  }
  for (const auto& watcher : watchers) watcher->end(NextOutcome::kClosed);
}

Channel::Read Channel::read(const api::Object& object, const Replaced& replaced) const {
  Read out;
  out.object = object;
  out.readable = reader_->read(object, service_, out.instances);
  if (out.readable) return out;
  const auto before = replaced.find(object.key());
  if (before != replaced.end() && before->second->object.uid() == object.uid()) {
    const Read& version = *before->second;
    out.last = version.readable ? version.instances : version.last;
  }
  reader_->keep(object, out.last, out.instances);
  return out;
}

InstanceSetPtr Channel::refresh(Hub& hub) {
  const std::lock_guard computing(computing_);
  // Before the initial sync, the set is incomplete. After the registry is closed, it does not change.
  if (informers_.empty() || !hub.group_.synced()) return current();
  std::vector<cache::Snapshot> snapshots;
  std::vector<std::uint64_t> versions;
  for (const auto& informer : informers_) {
    snapshots.push_back(informer->store().snapshot());
    versions.push_back(snapshots.back().version());
  }
  if (versions == seen_) return current();
  seen_ = std::move(versions);
  hub.computed_.fetch_add(1, std::memory_order_relaxed);

  std::vector<api::Object> objects;
  ReadObjects now;
  for (const auto& snapshot : snapshots) {
    for (const std::string_view name : {std::string_view(service_), kUnreadable}) {
      for (const auto& object : snapshot.by_index(kServiceIndex, name)) {
        objects.push_back(object);
        if (auto known = read_.extract(object.header())) now.insert(std::move(known));
      }
    }
  }
  // The remaining versions have been replaced or deleted.
  Replaced replaced;
  for (const auto& [address, version] : read_) replaced.emplace(version.object.key(), &version);
  std::vector<InstancePtr> instances;
  bool keeps = false;
  for (const auto& object : objects) {
    const auto [entry, unread] = now.try_emplace(object.header());
    if (unread) entry->second = read(object, replaced);
    const Read& version = entry->second;
    instances.insert(instances.end(), version.instances.begin(), version.instances.end());
    keeps = keeps || !version.last.empty();
  }
  keeps_.store(keeps, std::memory_order_relaxed);
  read_ = std::move(now);

  auto before = current();
  put_together(instances, *before);
  auto set = InstanceSet::make(service_, hub.next_version(), std::move(instances), freshness_);
  const bool same = set->same_instances(*before);
  // Publish the first set even if it is empty.
  if (same && before->version() > 0) return before;
  if (!same) hub.announced_.fetch_add(1, std::memory_order_relaxed);

  published_->store(set);
  std::vector<std::shared_ptr<WatcherCore>> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers.assign(watchers_.begin(), watchers_.end());
  }
  for (const auto& watcher : watchers) watcher->ring();
  return set;
}

}  // namespace lookout::registry::detail
