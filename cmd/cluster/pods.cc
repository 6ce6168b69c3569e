#include "cmd/cluster/pods.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "cmd/cluster/names.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"

namespace lookout::cmd::cluster {
namespace {

using api::Value;
using k8s::core::v1::PodDraft;

/// The characters of Kubernetes' generated names, which form no words.
constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";

/// Appends the content as text, with object members sorted by name.
// NOLINTNEXTLINE(misc-no-recursion): an object is at most as deep as the server lets it be.
void append_canonical(Value value, std::string_view left_out, std::string& out) {
  if (value.is_object()) {
    std::map<std::string_view, Value> members;
    for (const auto& [name, member] : value.members()) {
      if (name != left_out) members.emplace(name, member);
    }
    out += '{';
    for (const auto& [name, member] : members) {
      out.append(name).push_back('\0');
      append_canonical(member, left_out, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const Value element : value.elements()) append_canonical(element, left_out, out);
    out += ']';
  } else {
    out += value.to_json();
  }
  out += '\0';
}

std::string canonical(Value pod_template) {
  std::string out;
  append_canonical(pod_template, kTemplateHash, out);
  return out;
}

void copy_map(Value from, const auto& to) {
  for (const auto& [name, value] : from.members()) to.set(name, value.as_string());
}

}  // namespace

bool is_ready(const Pod& pod) {
  const auto conditions = pod.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [](const auto& condition) {
    return condition.type() == "Ready" && condition.status() == "True";
  });
}

bool is_available(const Pod& pod, std::int32_t min_ready_seconds) {
  if (!is_ready(pod)) return false;
  if (min_ready_seconds <= 0) return true;
  for (const auto condition : pod.status().conditions()) {
    if (condition.type() != "Ready") continue;
    const auto since = condition.last_transition_time();
    return since &&
           *since + std::chrono::seconds(min_ready_seconds) <= std::chrono::system_clock::now();
  }
  return false;
}

bool is_active(const Pod& pod) {
  const std::string_view phase = pod.status().phase();
  return phase != "Succeeded" && phase != "Failed" && !controller::is_being_deleted(pod);
}

std::vector<Pod> pods_of(const api::Object& owner, controller::Context& context) {
  auto pods = context.list<Pod>(owner.ns());
  std::erase_if(pods, [&](const Pod& pod) {
    const auto of = controller::controller_of(pod);
    return !of || of->uid() != owner.uid() || controller::is_being_deleted(pod);
  });
  return pods;
}

PodDraft pod_from(Value pod_template, std::string_view ns) {
  auto pod = Pod::draft("", ns);
  const Value metadata = pod_template["metadata"];
  copy_map(metadata["labels"], pod.metadata().labels());
  copy_map(metadata["annotations"], pod.metadata().annotations());
  if (metadata["finalizers"].exists()) pod["metadata"]["finalizers"].set(metadata["finalizers"]);
  pod["spec"].set(pod_template["spec"]);
  return pod;
}

std::string hash_of(Value pod_template) {
  std::uint64_t sum = 14695981039346656037U;  // FNV-1a
  for (const char c : canonical(pod_template)) {
    sum ^= static_cast<unsigned char>(c);
    sum *= 1099511628211U;
  }
  std::string out(10, ' ');
  for (char& c : out) {
    c = kLetters[sum % kLetters.size()];
    sum /= kLetters.size();
  }
  return out;
}

bool are_equal(Value pod_template, Value other) {
  return canonical(pod_template) == canonical(other);
}

bool is_in_ending_namespace(const api::StatusError& error) {
  return api::has_status_cause(error, "NamespaceTerminating");
}

void create_pod(const api::Object& owner, const PodDraft& pod, controller::Context& context) {
  try {
    const Pod made = context.create(pod);
    context.event(owner, "SuccessfulCreate", "Created pod: {}", made.name());
  } catch (const api::StatusError& e) {
    if (is_in_ending_namespace(e)) return;
    context.warning(owner, "FailedCreate", "Error creating: {}", e.status().message);
    throw;
  }
}

void remove_pod(const api::Object& owner, const Pod& pod, controller::Context& context) {
  if (context.remove(pod)) context.event(owner, "SuccessfulDelete", "Deleted pod: {}", pod.name());
}

void remove_pods(const api::Object& owner, std::vector<Pod> pods, std::size_t count,
                 controller::Context& context) {
  std::sort(pods.begin(), pods.end(), [](const Pod& a, const Pod& b) {
    return std::tuple(is_ready(a), b.metadata().creation_timestamp()) <
           std::tuple(is_ready(b), a.metadata().creation_timestamp());
  });
  pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(std::min(count, pods.size())), pods.end());
  for (const Pod& pod : pods) remove_pod(owner, pod, context);
}

PodCounts count(const std::vector<Pod>& pods, std::int32_t min_ready_seconds) {
  PodCounts out;
  for (const Pod& pod : pods) {
    ++out.all;
    if (is_ready(pod)) ++out.ready;
    if (is_available(pod, min_ready_seconds)) ++out.available;
  }
  return out;
}

controller::Result after_min_ready(const PodCounts& counts, std::int32_t min_ready_seconds) {
  if (counts.available == counts.ready) return {};
  return controller::requeue_after(std::chrono::seconds(std::max(1, min_ready_seconds)));
}

}  // namespace lookout::cmd::cluster
