#include "cmd/registry/xds/snapshot.h"

#include <algorithm>
#include <utility>

namespace lookout::cmd::registry_cmd::xds {
namespace {

/// The old resource if the new one is equal.
ResourcePtr kept(const ResourcePtr& before, ResourcePtr now) {
  if (before->version == now->version) return before;
  return now;
}

}  // namespace

ResourcePtr Snapshot::find(Type type, std::string_view name) const {
  const auto found = std::ranges::lower_bound(services_, name, {}, &Service::name);
  if (found == services_.end() || found->name() != name) return nullptr;
  switch (type) {
    case Type::kCluster:
      return found->cluster;
    case Type::kEndpoints:
      return found->endpoints;
    case Type::kListener:
      return make_listener(found->name());
    case Type::kRoute:
      return make_route(found->name());
  }
  return nullptr;
}

Service SnapshotBuilder::make(const registry::InstanceSetPtr& set, const Service* before) const {
  Service out;
  out.set = set;
  out.scheme = scheme_of(*set, schemes_, before == nullptr ? std::string() : before->scheme);
  out.endpoints = make_endpoints(*set, out.scheme);
  out.cluster = make_cluster(set->service(), out.scheme);
  if (before != nullptr) {
    out.endpoints = kept(before->endpoints, std::move(out.endpoints));
    out.cluster = kept(before->cluster, std::move(out.cluster));
  }
  return out;
}

bool SnapshotBuilder::update(const std::vector<registry::InstanceSetPtr>& sets) {
  static const std::vector<Service> kNone;
  const auto& old = latest_ ? latest_->services() : kNone;
  auto next = std::make_shared<Snapshot>();
  next->services_.reserve(sets.size());
  bool names = old.size() != sets.size();
  bool clusters = false;
  bool endpoints = false;
  auto before = old.begin();
  for (const auto& set : sets) {
    while (before != old.end() && before->name() < set->service()) ++before;
    if (before == old.end() || before->name() != set->service()) {
      next->services_.push_back(make(set, nullptr));
      names = true;
      continue;
    }
    next->services_.push_back(before->set == set ? *before : make(set, &*before));
    clusters = clusters || next->services_.back().cluster != before->cluster;
    endpoints = endpoints || next->services_.back().endpoints != before->endpoints;
  }
  if (latest_) {
    next->revisions_ = latest_->revisions_;
    const std::array changed = {names || clusters, names || endpoints, names, names};
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (changed[i]) ++next->revisions_[i];
    }
    // Do not keep equal old sets alive in an old snapshot.
    const bool same = next->revisions_ == latest_->revisions_;
    latest_ = std::move(next);
    return !same;
  }
  latest_ = std::move(next);
  return true;
}

}  // namespace lookout::cmd::registry_cmd::xds
