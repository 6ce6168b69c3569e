#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "cmd/cluster/revisions.h"
#include "lookout/api/status.h"
#include "lookout/base/numbers.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/apps/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::apps::v1::ControllerRevision;
using k8s::core::v1::PersistentVolumeClaim;

/// The hash label of ControllerRevisions; pods have the revision's name instead.
constexpr const char* kHashLabel = "controller.kubernetes.io/hash";

/// The number after the last '-' of a pod's name.
std::optional<std::int32_t> ordinal_of(const Pod& pod) {
  const std::string_view name = pod.name();
  return base::parse_number<std::int32_t>(name.substr(name.rfind('-') + 1));
}

/// One reconcile of a StatefulSet and its pods.
class Replicas {
 public:
  Replicas(StatefulSet set, Context& context)
      : set_(std::move(set)),
        context_(context),
        hash_(hash_of(set_["spec"]["template"])),
        revision_(revision_name(set_, hash_)) {
    // Includes pods that are being deleted: their names are still in use.
    for (auto& pod : context.list<Pod>(set_.ns())) {
      const auto owner = controller::controller_of(pod);
      const auto ordinal = ordinal_of(pod);
      if (owner && owner->uid() == set_.uid() && ordinal) pods_.emplace(*ordinal, std::move(pod));
    }
  }

  void step() {
    std::set<std::string> used;
    for (const auto& [ordinal, pod] : pods_) used.emplace(pod.labels()[kRevisionHash].as_string());
    keep_revisions(set_, hash_, kHashLabel, used, set_.spec().revision_history_limit().value_or(10),
                   context_);
    if (create_missing() && remove_surplus()) renew();
    report();
  }

 private:
  std::int32_t wanted() const { return std::max(0, set_.spec().replicas().value_or(1)); }
  std::int32_t first() const { return set_.spec().ordinals().start().value_or(0); }
  bool in_order() const { return set_.spec().pod_management_policy() != "Parallel"; }
  bool has_template(const Pod& pod) const {
    return pod.labels()[kRevisionHash].as_string() == revision_;
  }

  /// Returns true if all pods exist and are ready, in order.
  bool create_missing() {
    bool complete = true;
    for (std::int32_t i = first(); i < first() + wanted(); ++i) {
      const auto pod = pods_.find(i);
      if (pod == pods_.end()) create(i);
      if (pod != pods_.end() && is_ready(pod->second) && is_active(pod->second)) continue;
      complete = false;
      if (in_order()) return false;
    }
    return complete || !in_order();
  }

  void create(std::int32_t ordinal) {
    const std::string name = fmt::format("{}-{}", set_.name(), ordinal);
    const auto pod = pod_from(set_["spec"]["template"], set_.ns());
    pod["metadata"]["name"].set(name);
    pod.metadata().labels().set("statefulset.kubernetes.io/pod-name", name);
    pod.metadata().labels().set("apps.kubernetes.io/pod-index", std::to_string(ordinal));
    pod.metadata().labels().set(kRevisionHash, revision_);
    pod.spec().set_hostname(name);
    pod.spec().set_subdomain(set_.spec().service_name());
    for (const api::Value claim : set_["spec"]["volumeClaimTemplates"].elements()) {
      const std::string volume(claim["metadata"]["name"].as_string());
      const std::string claim_name = fmt::format("{}-{}", volume, name);
      ensure_claim(claim, claim_name, name);
      pod.spec().volumes().get_or_append(volume).persistent_volume_claim().set_claim_name(
          claim_name);
    }
    try {
      context_.create(pod);
    } catch (const api::StatusError& e) {
      context_.warning(set_, "FailedCreate", "create Pod {} in StatefulSet {} failed error: {}",
                       name, set_.name(), e.status().message);
      throw;
    }
    context_.event(set_, "SuccessfulCreate", "create Pod {} in StatefulSet {} successful", name,
                   set_.name());
  }

  void remove(const Pod& pod) {
    if (!context_.remove(pod)) return;
    context_.event(set_, "SuccessfulDelete", "delete Pod {} in StatefulSet {} successful",
                   pod.name(), set_.name());
  }

  /// Claims outlive their pods.
  void ensure_claim(api::Value from, const std::string& name, const std::string& pod) {
    const auto claim = PersistentVolumeClaim::draft(name, set_.ns());
    for (const auto& [key, value] : from["metadata"]["labels"].members())
      claim.metadata().labels().set(key, value.as_string());
    claim["spec"].set(from["spec"]);
    try {
      context_.create(claim);
      context_.event(set_, "SuccessfulCreate", "create Claim {} Pod {} in StatefulSet {} success",
                     name, pod, set_.name());
    } catch (const api::StatusError& e) {
      if (!api::is_already_exists(e)) throw;
    }
  }

  /// Returns true if there are no surplus pods.
  bool remove_surplus() {
    bool none = true;
    for (auto pod = pods_.rbegin(); pod != pods_.rend(); ++pod) {
      if (pod->first >= first() && pod->first < first() + wanted()) continue;
      none = false;
      if (is_active(pod->second)) remove(pod->second);
      if (in_order()) return false;
    }
    return none;
  }

  /// Deletes one pod with an older template, from the last to the first of the partition.
  void renew() {
    if (set_.spec().update_strategy().type() == "OnDelete") return;
    const std::int32_t partition =
        set_.spec().update_strategy().rolling_update().partition().value_or(0);
    for (auto pod = pods_.rbegin(); pod != pods_.rend() && pod->first >= partition; ++pod) {
      if (!is_active(pod->second) || (has_template(pod->second) && !is_ready(pod->second))) return;
      if (has_template(pod->second)) continue;
      remove(pod->second);
      return;
    }
  }

  void report() {
    std::int32_t updated = 0;
    std::vector<Pod> active;
    std::string oldest = revision_;
    for (const auto& [ordinal, pod] : pods_) {
      if (!is_active(pod)) continue;
      active.push_back(pod);
      if (has_template(pod)) {
        ++updated;
      } else {
        oldest = pod.labels()[kRevisionHash].as_string();
      }
    }
    const PodCounts counts = count(active, set_.spec().min_ready_seconds().value_or(0));
    const auto change = set_.edit();
    const auto status = change.status();
    status.set_observed_generation(set_.metadata().generation().value_or(0));
    status.set_replicas(counts.all).set_ready_replicas(counts.ready);
    status.set_available_replicas(counts.available).set_updated_replicas(updated);
    status.set_current_replicas(oldest == revision_ ? updated : counts.all - updated);
    status.set_current_revision(oldest).set_update_revision(revision_);
    status.set_collision_count(0);
    context_.patch_status(change);
  }

  const StatefulSet set_;
  Context& context_;
  const std::string hash_;
  const std::string revision_;
  std::map<std::int32_t, Pod> pods_;  // by ordinal
};

}  // namespace

void add_stateful_set_controller(controller::Manager& manager) {
  controller::Builder<StatefulSet>(manager)
      .owns<Pod>()
      .owns<ControllerRevision>()
      .options(expect_bursts)
      .reconcile([](const Request& request, Context& context) -> Result {
        auto set = context.find<StatefulSet>(request);
        if (set && !controller::is_being_deleted(*set)) Replicas(*std::move(set), context).step();
        return {};
      });
}

}  // namespace lookout::cmd::cluster
