#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/claims.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "lookout/base/numbers.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/apps/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

constexpr const char* kRevision = "deployment.kubernetes.io/revision";
constexpr std::chrono::milliseconds kLookAgain{200};
constexpr const char* kDeadlineExceeded = "ProgressDeadlineExceeded";
constexpr const char* kDesired = "deployment.kubernetes.io/desired-replicas";

std::int32_t replicas_of(const ReplicaSet& set) { return set.spec().replicas().value_or(1); }

std::int64_t revision_of(const api::Object& object) {
  return base::parse_number<std::int64_t>(object.annotations()[kRevision].as_string()).value_or(0);
}

/// One reconcile of a Deployment and its ReplicaSets. Each step makes one change, which triggers the next
/// reconcile. The rules are those of k8s.io/kubernetes/pkg/controller/deployment.
class Rollout {
 public:
  Rollout(Deployment deployment, Context& context)
      : deployment_(std::move(deployment)), context_(context) {
    for (auto& set : context.list<ReplicaSet>(deployment_.ns())) {
      const auto owner = controller::controller_of(set);
      if (!owner || owner->uid() != deployment_.uid() || controller::is_being_deleted(set))
        continue;
      if (!current_ && are_equal(pod_template(), set["spec"]["template"])) {
        current_ = std::move(set);
      } else {
        old_.push_back(std::move(set));
      }
    }
    std::sort(old_.begin(), old_.end(), [](const ReplicaSet& a, const ReplicaSet& b) {
      return revision_of(a) < revision_of(b);
    });
  }

  Result step() {
    bool waits = false;
    if (deployment_.spec().paused().value_or(false)) {
      scale_when_paused();
    } else if (deployment_.spec().strategy().type() == "Recreate") {
      waits = !recreate();
    } else {
      roll();
    }
    if (is_complete()) forget_history();
    const Result later = report();
    return waits ? controller::requeue_after(kLookAgain) : later;
  }

 private:
  api::Value pod_template() const { return deployment_["spec"]["template"]; }
  std::int32_t desired() const { return std::max(0, deployment_.spec().replicas().value_or(1)); }

  /// The sum of a number over all ReplicaSets.
  template <class Number>
  std::int32_t sum(Number number) const {
    std::int32_t out = current_ ? number(*current_) : 0;
    for (const ReplicaSet& set : old_) out += number(set);
    return out;
  }

  void say_scaled(std::string_view name, std::int32_t from, std::int32_t to) {
    context_.event(deployment_, "ScalingReplicaSet", "Scaled {} replica set {} from {} to {}",
                   to > from ? "up" : "down", name, from, to);
  }

  void scale(const ReplicaSet& set, std::int32_t replicas) {
    const auto change = set.edit();
    change.spec().set_replicas(replicas);
    change.metadata().annotations().set(kDesired, std::to_string(desired()));
    context_.patch(change);
    say_scaled(set.name(), replicas_of(set), replicas);
  }

  /// Creates the ReplicaSet of the current template, or makes it the newest revision.
  void ensure_current(std::int32_t replicas) {
    const std::int64_t revision = (old_.empty() ? 0 : revision_of(old_.back())) + 1;
    if (!current_) {
      create(revision, replicas);
    } else if (revision_of(*current_) < revision) {
      const auto change = current_->edit();
      change.metadata().annotations().set(kRevision, std::to_string(revision));
      context_.patch(change);
    }
    const std::int64_t newest = current_ ? std::max(revision, revision_of(*current_)) : revision;
    const auto change = deployment_.edit();
    change.metadata().annotations().set(kRevision, std::to_string(newest));
    context_.patch(change);
  }

  void create(std::int64_t revision, std::int32_t replicas) {
    const std::string hash = hash_of(pod_template());
    const auto set =
        ReplicaSet::draft(fmt::format("{}-{}", deployment_.name(), hash), deployment_.ns());
    for (const auto& [name, value] : pod_template()["metadata"]["labels"].members())
      set.metadata().labels().set(name, value.as_string());
    set.metadata().labels().set(kTemplateHash, hash);
    constexpr std::array<std::string_view, 3> kOwn = {
        "kubectl.kubernetes.io/last-applied-configuration", kRevision, kDesired};
    for (const auto& [name, value] : deployment_.annotations().members()) {
      if (std::find(kOwn.begin(), kOwn.end(), name) == kOwn.end())
        set.metadata().annotations().set(name, value.as_string());
    }
    set.metadata().annotations().set(kRevision, std::to_string(revision));
    set.metadata().annotations().set(kDesired, std::to_string(desired()));
    const auto spec = set.spec();
    spec.set_replicas(replicas);
    spec.set_min_ready_seconds(deployment_.spec().min_ready_seconds().value_or(0));
    spec.set_selector(deployment_.spec().selector());
    spec.selector().match_labels().set(kTemplateHash, hash);
    spec["template"].set(pod_template());
    spec["template"]["metadata"]["labels"][kTemplateHash].set(hash);
    const ReplicaSet made = context_.create(set);
    if (replicas > 0) say_scaled(made.name(), 0, replicas);
  }

  /// A paused Deployment is only scaled: scales the ReplicaSet that has its pods.
  void scale_when_paused() {
    std::vector<ReplicaSet> active;
    for (const ReplicaSet& set : old_) {
      if (replicas_of(set) > 0) active.push_back(set);
    }
    if (current_ && (replicas_of(*current_) > 0 || active.empty())) active.push_back(*current_);
    if (active.size() == 1 && replicas_of(active[0]) != desired()) scale(active[0], desired());
  }

  /// Returns false while old pods exist: no event of a ReplicaSet reports the end of the last one.
  bool recreate() {
    bool gone = true;
    for (const ReplicaSet& set : old_) {
      if (replicas_of(set) > 0) scale(set, 0);
      gone = gone && replicas_of(set) == 0 && !has_pods(set);
    }
    if (!gone) return false;
    ensure_current(desired());
    if (current_ && replicas_of(*current_) != desired()) scale(*current_, desired());
    return true;
  }

  bool has_pods(const ReplicaSet& set) {
    const auto pods = context_.list<k8s::core::v1::Pod>(set.ns());
    return std::any_of(pods.begin(), pods.end(), [&](const auto& pod) {
      const auto owner = controller::controller_of(pod);
      return owner && owner->uid() == set.uid();
    });
  }

  void roll() {
    const auto rolling = deployment_.spec().strategy().rolling_update();
    const std::int32_t surge = rolling.max_surge().scaled(desired(), true).value_or(0);
    std::int32_t unavailable = rolling.max_unavailable().scaled(desired(), false).value_or(0);
    if (surge == 0 && unavailable == 0) unavailable = 1;
    const std::int32_t all = sum(replicas_of);
    const std::int32_t room = std::max(0, desired() + surge - all);
    ensure_current(std::min(desired(), room));
    if (!current_) return;
    const std::int32_t have = replicas_of(*current_);
    if (have > desired()) {
      scale(*current_, desired());
    } else if (have < desired() && room > 0) {
      scale(*current_, std::min(desired(), have + room));
    } else {
      shrink_old(all, desired() - unavailable);
    }
  }

  /// Scales down the old ReplicaSets as long as `least` pods stay available; unavailable pods first.
  void shrink_old(std::int32_t all, std::int32_t least) {
    const std::int32_t starting =
        replicas_of(*current_) - current_->status().available_replicas().value_or(0);
    std::int32_t most = all - least - std::max(0, starting);
    std::vector<std::int32_t> keep;
    for (const ReplicaSet& set : old_) {
      const std::int32_t idle = replicas_of(set) - set.status().available_replicas().value_or(0);
      const std::int32_t taken = std::clamp(idle, 0, std::max(0, most));
      most -= taken;
      keep.push_back(replicas_of(set) - taken);
    }
    const std::int32_t available =
        sum([](const ReplicaSet& set) { return set.status().available_replicas().value_or(0); });
    most = std::min(most, available - least);
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const std::int32_t taken = std::clamp(keep[i], 0, std::max(0, most));
      most -= taken;
      if (keep[i] - taken != replicas_of(old_[i])) scale(old_[i], keep[i] - taken);
    }
  }

  bool is_complete() const {
    return current_ && replicas_of(*current_) == desired() &&
           current_->status().replicas() == desired() &&
           current_->status().available_replicas().value_or(0) == desired() &&
           sum([](const ReplicaSet& set) { return set.status().replicas(); }) == desired();
  }

  void forget_history() {
    const auto limit = static_cast<std::size_t>(
        std::max(0, deployment_.spec().revision_history_limit().value_or(10)));
    for (std::size_t i = 0; i + limit < old_.size(); ++i) {
      if (old_[i].status().replicas() == 0) context_.remove(old_[i]);
    }
  }

  /// Writes the status; requeues at the progress deadline.
  Result report() {
    const std::int32_t available =
        sum([](const ReplicaSet& set) { return set.status().available_replicas().value_or(0); });
    const auto change = deployment_.edit();
    const auto status = change.status();
    status.set_observed_generation(deployment_.metadata().generation().value_or(0));
    status.set_replicas(sum([](const ReplicaSet& set) { return set.status().replicas(); }));
    status.set_updated_replicas(current_ ? current_->status().replicas() : 0);
    status.set_ready_replicas(
        sum([](const ReplicaSet& set) { return set.status().ready_replicas().value_or(0); }));
    status.set_available_replicas(available);
    status.set_unavailable_replicas(std::max(0, sum(replicas_of) - available));
    const auto rolling = deployment_.spec().strategy().rolling_update();
    const std::int32_t least =
        desired() - rolling.max_unavailable().scaled(desired(), false).value_or(0);
    if (available >= least) {
      set_condition(change, "Available", true, "MinimumReplicasAvailable",
                    "Deployment has minimum availability.");
    } else {
      set_condition(change, "Available", false, "MinimumReplicasUnavailable",
                    "Deployment does not have minimum availability.");
    }
    Result later;
    if (deployment_.spec().paused().value_or(false)) {
      set_condition(change, "Progressing", std::nullopt, "DeploymentPaused",
                    "Deployment is paused");
    } else if (current_) {
      later = report_progress(change);
    }
    report_failure(change);
    context_.patch_status(change);
    return later;
  }

  /// Copies the condition of a ReplicaSet whose pods cannot be created, first of all the current one's.
  void report_failure(const k8s::apps::v1::DeploymentDraft& change) const {
    std::optional<std::string> message;
    std::string reason;
    const auto consider = [&](const ReplicaSet& set) {
      for (const auto condition : set.status().conditions()) {
        if (message || condition.type() != kReplicaFailure) continue;
        message = condition.message();
        reason = condition.reason();
      }
    };
    if (current_) consider(*current_);
    for (const ReplicaSet& set : old_) consider(set);
    if (message) {
      set_condition(change, kReplicaFailure, true, reason, *message);
    } else {
      change.status().conditions().erase_key(kReplicaFailure);
    }
  }

  /// True if the new status shows progress compared with the previous one.
  bool has_progressed(const k8s::apps::v1::DeploymentDraft& change) const {
    const auto before = deployment_.status();
    const Deployment reported(change.build());
    const auto after = reported.status();
    const auto old = [](const auto& status) {
      return status.replicas().value_or(0) - status.updated_replicas().value_or(0);
    };
    return after.updated_replicas().value_or(0) > before.updated_replicas().value_or(0) ||
           after.ready_replicas().value_or(0) > before.ready_replicas().value_or(0) ||
           after.available_replicas().value_or(0) > before.available_replicas().value_or(0) ||
           old(after) < old(before);
  }

  Result report_progress(const k8s::apps::v1::DeploymentDraft& change) const {
    const auto say = [&](bool holds, std::string_view reason, std::string_view what,
                         bool again = false) {
      set_condition(change, "Progressing", holds, reason,
                    fmt::format("ReplicaSet \"{}\" {}", current_->name(), what), again);
    };
    const std::string done = "has successfully progressed.";
    if (is_complete()) {
      say(true, "NewReplicaSetAvailable", done);
      return {};
    }
    std::string reason;
    std::string message;
    api::Time since;
    for (const auto condition : deployment_.status().conditions()) {
      if (condition.type() != "Progressing") continue;
      reason = condition.reason();
      message = condition.message();
      since = condition.last_update_time().value_or(since);
    }
    // Later changes of pods, for example by scaling, do not start a new rollout.
    if (reason == "NewReplicaSetAvailable" && message.find(current_->name()) != std::string::npos)
      return {};
    const bool is_known = reason == "ReplicaSetUpdated" || reason == kDeadlineExceeded;
    if (!is_known || message.find(current_->name()) == std::string::npos ||
        has_progressed(change)) {
      say(true, "ReplicaSetUpdated", "is progressing.", true);
      return after_deadline(std::chrono::system_clock::now());
    }
    if (reason == kDeadlineExceeded) return {};
    const auto deadline = deployment_.spec().progress_deadline_seconds();
    if (!deadline || since + std::chrono::seconds(*deadline) > std::chrono::system_clock::now())
      return after_deadline(since);
    say(false, kDeadlineExceeded, "has timed out progressing.");
    return {};
  }

  Result after_deadline(std::chrono::system_clock::time_point since) const {
    const auto deadline = deployment_.spec().progress_deadline_seconds();
    if (!deadline) return {};
    const auto left = since + std::chrono::seconds(*deadline) - std::chrono::system_clock::now();
    // (Times are whole seconds.)
    return controller::requeue_after(std::chrono::ceil<std::chrono::seconds>(
        std::max(left, std::chrono::system_clock::duration::zero())));
  }

  /// `holds`: empty for "Unknown". An unchanged condition keeps its times, unless `again` is set.
  static void set_condition(const k8s::apps::v1::DeploymentDraft& change, std::string_view type,
                            std::optional<bool> holds, std::string_view reason,
                            const std::string& message, bool again = false) {
    const auto condition = change.status().conditions().get_or_append(type);
    const std::string_view status = !holds ? "Unknown" : *holds ? "True" : "False";
    const bool turned = condition.status() != status;
    if (!again && !turned && condition.reason() == reason && condition.message() == message) return;
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    if (turned) condition.set_last_transition_time(now);
    condition.set_last_update_time(now);
    condition.set_status(status).set_reason(reason).set_message(message);
  }

  const Deployment deployment_;
  Context& context_;
  std::optional<ReplicaSet> current_;  // with the current template
  std::vector<ReplicaSet> old_;        // by revision
};

}  // namespace

void add_deployment_controller(controller::Manager& manager) {
  controller::Builder<Deployment>(manager)
      .owns<ReplicaSet>()
      .watches<ReplicaSet>([&manager](const ReplicaSet& set, Enqueue& enqueue) {
        enqueue_adopters<Deployment>(manager, set, enqueue);
      })
      .options(expect_bursts)
      .reconcile([](const Request& request, Context& context) -> Result {
        auto deployment = context.find<Deployment>(request);
        if (!deployment || controller::is_being_deleted(*deployment)) return {};
        if (claim<ReplicaSet>(*deployment, context)) return {};
        return Rollout(*std::move(deployment), context).step();
      });
}

}  // namespace lookout::cmd::cluster
