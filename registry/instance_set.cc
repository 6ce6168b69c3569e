#include "lookout/registry/instance_set.h"

#include <algorithm>

namespace lookout::registry {

InstanceSet::InstanceSet(std::string service, std::uint64_t version,
                         std::vector<InstancePtr> instances,
                         std::shared_ptr<const FreshnessSource> freshness)
    : service_(std::move(service)),
      version_(version),
      instances_(std::move(instances)),
      freshness_(std::move(freshness)) {}

InstanceSetPtr InstanceSet::make(std::string service, std::uint64_t version,
                                 std::vector<InstancePtr> instances,
                                 std::shared_ptr<const FreshnessSource> freshness) {
  std::ranges::stable_sort(instances, {}, [](const InstancePtr& p) -> auto& { return p->key(); });
  return InstanceSetPtr(
      new InstanceSet(std::move(service), version, std::move(instances), std::move(freshness)));
}

Freshness InstanceSet::freshness() const {
  return freshness_ ? freshness_->freshness() : Freshness{true, {}};
}

bool InstanceSet::same_instances(const InstanceSet& other) const {
  return this == &other || std::ranges::equal(instances_, other.instances_,
                                              [](const InstancePtr& a, const InstancePtr& b) {
                                                return a == b || identical(*a, *b);
                                              });
}

InstanceDiff diff(const InstanceSetPtr& before, const InstanceSet& after) {
  static const std::vector<InstancePtr> kNone;
  const auto& old = before ? before->instances() : kNone;
  InstanceDiff out;
  auto was = old.begin();
  auto is = after.instances().begin();
  while (was != old.end() || is != after.instances().end()) {
    if (is == after.instances().end() || (was != old.end() && (*was)->key() < (*is)->key())) {
      out.removed.push_back(*was++);
    } else if (was == old.end() || (*is)->key() < (*was)->key()) {
      out.added.push_back(*is++);
    } else {
      if (*was != *is && !identical(**was, **is)) out.changed.push_back({*was, *is});
      ++was;
      ++is;
    }
  }
  return out;
}

}  // namespace lookout::registry
