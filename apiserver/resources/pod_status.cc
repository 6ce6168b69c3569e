// The status of pods: preserved fields in updates, and validation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::int64_t kMostOfId = 2147483647;
constexpr const char* kContainerStatuses[] = {"containerStatuses", "initContainerStatuses",
                                              "ephemeralContainerStatuses"};

// --- annotations

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

void check_seccomp_annotation(const Field& profile) {
  constexpr std::string_view kLocal = "localhost/";
  const std::string_view text = profile.text();
  if (text == "runtime/default" || text == "docker/default" || text == "unconfined") return;
  if (!text.starts_with(kLocal)) return profile.invalid_text("must be a valid seccomp profile");
  const std::string_view path = text.substr(kLocal.size());
  if (path.starts_with('/'))
    profile.causes().push_back(rules::invalid(profile.path(), path, "must be a relative path"));
  if (fmt::format("/{}/", path).find("/../") != std::string::npos)
    profile.causes().push_back(rules::invalid(profile.path(), path, "must not contain '..'"));
}

void check_app_armor_annotation(const Field& profile, std::string_view name, Value spec) {
  const std::string_view container = name.substr(kAppArmorAnnotation.size());
  const auto has = [&](const char* list) {
    const auto elements = spec[list].elements();
    return std::any_of(elements.begin(), elements.end(),
                       [&](Value one) { return one["name"].as_string() == container; });
  };
  if (!has("containers") && !has("initContainers") && !has("ephemeralContainers"))
    profile.causes().push_back(rules::invalid(profile.path(), container, "container not found"));
  const std::string_view text = profile.text();
  if (!text.empty() && text != "runtime/default" && text != "unconfined" &&
      !text.starts_with("localhost/"))
    profile.invalid_text(
        fmt::format("invalid AppArmor profile name: {}", api::detail::quote(text)));
}

bool is_deletion_cost(std::string_view text) {
  if (text.empty() || text[0] == '+' || (text[0] == '0' && text != "0")) return false;
  std::int32_t cost = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cost);
  return error == std::errc() && end == text.data() + text.size();
}

// --- containers

Value find_named(Value list, std::string_view name) {
  for (const Value one : list.elements()) {
    if (one["name"].as_string() == name) return one;
  }
  return {};
}

bool is_terminated(Value status) { return status["state"]["terminated"].exists(); }

/// Whether a rule of a container restarts the whole pod.
bool restarts_all(Value spec) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const Value container : spec[list].elements()) {
      for (const Value rule : container["restartPolicyRules"].elements()) {
        if (rule["action"].as_string() == "RestartAllContainers") return true;
      }
    }
  }
  return false;
}

bool is_met(Value rule, std::int64_t code) {
  const Value codes = rule["exitCodes"];
  if (!codes.exists()) return false;
  const auto values = codes["values"].elements();
  const bool listed =
      std::any_of(values.begin(), values.end(), [&](Value one) { return one.as_int() == code; });
  const std::string_view relation = codes["operator"].as_string();
  return relation == "In" ? listed : relation == "NotIn" && !listed;
}

/// Whether a container that ended with this code restarts, according to its rules, its policy, or
/// the pod's policy.
bool should_restart(Value container, Value spec, std::int64_t code) {
  const std::string_view own = container["restartPolicy"].as_string();
  if (!own.empty()) {
    for (const Value rule : container["restartPolicyRules"].elements()) {
      if (is_met(rule, code)) return true;
    }
  }
  const std::string_view policy = own.empty() ? spec["restartPolicy"].as_string() : own;
  return policy == "Never" ? false : policy != "OnFailure" || code != 0;
}

void check_transitions(const Field& statuses, Value before, Value containers, Value spec) {
  std::size_t index = 0;
  for (const Value old : before.elements()) {
    const std::size_t at = index++;
    if (!is_terminated(old)) continue;
    const std::string_view name = old["name"].as_string();
    const std::int64_t code = old["state"]["terminated"]["exitCode"].as_int();
    for (const Value now : (*statuses).elements()) {
      if (now["name"].as_string() != name || is_terminated(now)) continue;
      const Value container = find_named(containers, name);
      if (container.exists() && should_restart(container, spec, code)) break;
      statuses.causes().push_back(
          rules::forbidden(fmt::format("{}[{}].state", statuses.path(), at),
                           "may not be transitioned to non-terminated state"));
      // For ephemeral containers, every transition is reported.
      if (spec.exists()) break;
    }
  }
}

void check_user(const Field& user, std::string_view os) {
  const Field linux_user = user["linux"];
  if (!linux_user.exists()) return;
  if (os == "windows") return linux_user.forbidden("cannot be set for a windows pod");
  linux_user["uid"].check_range(0, kMostOfId);
  linux_user["gid"].check_range(0, kMostOfId);
  linux_user["supplementalGroups"].each(
      [](const Field& group) { group.check_range(0, kMostOfId); });
}

/// Whether the container requests this resource or claim ("claim:name/request").
bool asks_for(Value container, std::string_view name, bool is_claim) {
  if (!is_claim) return container["resources"]["requests"][name].exists();
  const auto claims = container["resources"]["claims"].elements();
  return std::any_of(claims.begin(), claims.end(), [&](Value claim) {
    std::string text = "claim:" + std::string(claim["name"].as_string());
    if (const auto request = claim["request"].as_string(); !request.empty())
      text.append("/").append(request);
    return text == name;
  });
}

void check_health(const Field& resource) {
  constexpr std::size_t kLongestMessage = 1024;
  std::set<std::string_view> ids;
  resource["resources"].each([&](const Field& one) {
    one["health"].check_word({"Healthy", "Unhealthy", "Unknown"});
    if (const Field message = one["message"];
        message.exists() && message.check_present("must be non-empty if specified") &&
        message.text().size() > kLongestMessage)
      message.causes().push_back(rules::too_long(message.path(), kLongestMessage));
    if (!ids.insert(one["resourceID"].text()).second) one["resourceID"].duplicate();
  });
}

void check_allocated(const Field& statuses, Value containers) {
  statuses.each([&](const Field& status) {
    const Value container = find_named(containers, status["name"].text());
    status["allocatedResourcesStatus"].each([&](const Field& resource) {
      const Field name = resource["name"];
      const bool is_claim = name.text().starts_with("claim:");
      if (container.exists() && !asks_for(container, name.text(), is_claim)) {
        name.invalid_text(is_claim
                              ? "must match one of the container's resource claims in a format "
                                "'claim:<claimName>/<request>' or 'claim:<claimName>' if request "
                                "is empty"
                              : "must match one of the container's resource requests");
      }
      check_health(resource);
    });
  });
}

// --- the rest

void check_pod_conditions(const Field& conditions) {
  conditions.each([](const Field& condition) {
    condition["observedGeneration"].check_range(0, INT64_MAX, "must be a non-negative integer");
    const Field type = condition["type"];
    const std::string_view name = type.text();
    if (name == "PodScheduled" || name == "Ready" || name == "Initialized") return;
    for (const auto& message : rules::check_qualified_name(name))
      type.causes().push_back(rules::invalid(condition.path() + ".Type", name, message));
  });
}

void check_claim_statuses(const Field& statuses, Value claims) {
  std::set<std::string_view> names;
  statuses.each([&](const Field& status) {
    const Field name = status["name"];
    if (!find_named(claims, name.text()).exists())
      name.invalid_text("must match the name of an entry in `spec.resourceClaims`");
    if (!names.insert(name.text()).second) name.duplicate();
    if (const Field claim = status["resourceClaimName"]; claim.exists())
      claim.check_form(rules::check_dns1123_subdomain);
  });
}

void check_extended_claim(const Field& status, Value spec) {
  if (!status.exists()) return;
  const Field mappings = status["requestMappings"];
  mappings.check_present("at least one request mapping is required");
  std::set<std::array<std::string_view, 3>> seen;
  mappings.each([&](const Field& mapping) {
    const Field name = mapping["containerName"];
    const Field resource = mapping["resourceName"];
    const Field request = mapping["requestName"];
    Value container = find_named(spec["containers"], name.text());
    if (!container.exists()) container = find_named(spec["initContainers"], name.text());
    if (!container.exists()) {
      name.invalid_text(
          "must match the name of an entry in spec.initContainers.name or spec.containers.name");
    } else if (!container["resources"]["requests"][resource.text()].exists()) {
      resource.invalid_text(
          "must match the extended resource name of an entry in "
          "spec.initContainers.resources.requests or spec.containers.resources.requests");
    }
    request.named(status.path() + ".requestName").check_form(rules::check_dns1123_label);
    if (seen.insert({name.text(), resource.text(), request.text()}).second) return;
    for (const Field& part : {name, resource, request}) part.duplicate();
  });
  const Field claim = status["resourceClaimName"];
  claim.check_required_form(rules::check_dns1123_subdomain);
}

/// At most one address per family. Unchanged addresses are not checked.
void check_addresses(const Field& addresses, Value before) {
  std::vector<std::string> shown;
  std::set<int> families;
  std::string unknown;
  std::size_t index = 0;
  addresses.each([&](const Field& one) {
    const std::string_view text = one["ip"].text();
    const auto old = before.elements();
    if (std::none_of(old.begin(), old.end(),
                     [&](Value other) { return other["ip"].as_string() == text; })) {
      Field((*one)["ip"], one.path(), one.causes()).check_ip();
    }
    const auto parsed = IpAddress::parse(without_leading_zeros(text));
    if (!parsed && unknown.empty()) unknown = fmt::format("invalid IP[{}]: {}", index, text);
    if (parsed) families.insert(parsed->family);
    shown.push_back(fmt::format(R"({{"IP":{}}})", api::detail::quote(text)));
    ++index;
  });
  if (shown.size() < 2) return;
  if (!unknown.empty()) {
    addresses.causes().push_back(
        {"InternalError",
         fmt::format("Internal error: failed to check for dual stack with error:{}", unknown),
         addresses.path()});
  }
  if (!unknown.empty() || shown.size() > 2 || families.size() < 2) {
    std::string list;
    for (const std::string& one : shown) list += (list.empty() ? "" : ",") + one;
    addresses.invalid_as("[" + list + "]", "may specify no more than one IP for each IP family");
  }
}

// --- preserved fields

/// Preserves each observedGeneration that the client omits.
void keep_generations(json::Value& status, const json::Value& before, Allocator& allocator) {
  if (json::integer(status, "observedGeneration", 0) == 0)
    json::take(status, before, "observedGeneration", allocator);
  // Conditions may have the same type, so there is a list for each.
  std::map<std::string_view, std::vector<std::int64_t>> generations;
  json::for_each(before, "conditions", [&](const json::Value& condition) {
    generations[json::text(condition, "type")].push_back(
        json::integer(condition, "observedGeneration", 0));
  });
  json::for_each(status, "conditions", [&](json::Value& condition) {
    if (!condition.IsObject()) return;
    const auto found = generations.find(json::text(condition, "type"));
    if (found == generations.end() || found->second.empty()) return;
    const std::int64_t old = found->second.front();
    found->second.erase(found->second.begin());
    if (old != 0 && json::integer(condition, "observedGeneration", 0) == 0)
      json::set(condition, "observedGeneration", json::Value(old), allocator);
  });
}

}  // namespace

void check_pod_annotations(const Field& annotations, Value spec, Value before) {
  annotations.each_entry([&](std::string_view name, const Field& value) {
    const auto as_member = [&] {
      return value.named(fmt::format("{}.{}", annotations.path(), name));
    };
    if (name == kMirror && spec["nodeName"].as_string().empty()) {
      value.invalid_text("must set spec.nodeName if mirror pod annotation is set");
    } else if (name == kDeletionCost && !is_deletion_cost(value.text())) {
      const Value old = before[name];
      if (!old.exists() || is_deletion_cost(old.as_string()))
        value.invalid_text("must be a 32bit integer");
    } else if (name == kSeccompAnnotation || name.starts_with(kContainerSeccompAnnotation)) {
      check_seccomp_annotation(as_member());
    } else if (name.starts_with(kAppArmorAnnotation)) {
      check_app_armor_annotation(value, name, spec);
    }
  });
}

void check_pod_annotations_update(const Object& pod, const Object& old, Causes& causes) {
  const Field annotations(pod["metadata"]["annotations"], "metadata.annotations", causes);
  const Value before = old["metadata"]["annotations"];
  const auto refuse = [&](std::string_view name, std::string_view why) {
    causes.push_back(rules::forbidden(fmt::format("{}[{}]", annotations.path(), name), why));
  };
  for (const auto& [name, value] : before.members()) {
    if ((*annotations)[name] == value) continue;
    if (name.starts_with(kAppArmorAnnotation))
      refuse(name, "may not remove or update AppArmor annotations");
    if (name == kMirror) refuse(name, "may not remove or update mirror pod annotation");
  }
  for (const auto& [name, value] : (*annotations).members()) {
    if (before[name].exists()) continue;
    if (name.starts_with(kAppArmorAnnotation)) refuse(name, "may not add AppArmor annotations");
    if (name == kMirror) refuse(name, "may not add mirror pod annotation");
  }
  check_pod_annotations(annotations, pod["spec"], before);
}

/// Synchronizes podIP and podIPs.
void default_pod_status(json::Value& pod, Allocator& allocator) {
  json::Value* status = json::find(pod, "status");
  if (status == nullptr || !status->IsObject()) return;
  const std::string first(json::text(*status, "podIP"));
  json::Value* all = json::find(*status, "podIPs");
  const bool several = all != nullptr && all->IsArray() && !all->Empty();
  const std::string_view listed =
      several && (*all)[0].IsObject() ? json::text((*all)[0], "ip") : std::string_view();
  if (!first.empty() && (!several || listed != first)) {
    json::Value one(rapidjson::kObjectType);
    json::set(one, "ip", first, allocator);
    json::Value addresses(rapidjson::kArrayType);
    addresses.PushBack(one, allocator);
    json::set(*status, "podIPs", std::move(addresses), allocator);
  } else if (several && first.empty() && !listed.empty()) {
    json::set(*status, "podIP", std::string(listed), allocator);
  }
}

void prepare_pod_status(json::Value& pod, const json::Value& old, Allocator& allocator) {
  json::take(*json::find(pod, "metadata"), *json::find(old, "metadata"), "ownerReferences",
             allocator);
  json::Value& status = json::child(pod, "status", allocator);
  const json::Value none(rapidjson::kObjectType);
  const json::Value* found = json::find(old, "status");
  const json::Value& before = found == nullptr ? none : *found;
  if (json::text(status, "qosClass").empty()) json::take(status, before, "qosClass", allocator);
  keep_generations(status, before, allocator);
  // Fields of disabled features.
  if (json::find(before, "nodeAllocatableResourceClaimStatuses") == nullptr)
    json::erase(status, "nodeAllocatableResourceClaimStatuses");
  for (const char* list : kContainerStatuses) {
    json::for_each(status, list, [&](json::Value& container) {
      if (!container.IsObject()) return;
      json::for_each(container, "volumeMounts", [&](json::Value& mount) {
        if (mount.IsObject()) json::erase(mount, "volumeStatus");
      });
    });
  }
}

void validate_pod_status(const Object& pod, const Object& old, Causes& causes) {
  check_pod_annotations_update(pod, old, causes);
  const Field status(pod["status"], "status", causes);
  const Value before = old["status"];
  const Value spec = pod["spec"];
  check_pod_conditions(status["conditions"]);
  const Field nominated = status["nominatedNodeName"];
  if (!nominated.empty() && nominated.text() != before["nominatedNodeName"].as_string()) {
    nominated.check_form(rules::check_dns1123_subdomain);
    if (!spec["nodeName"].as_string().empty())
      nominated.forbidden("may not be set on pods that are already bound to a node");
  }
  status["observedGeneration"].check_range(0, INT64_MAX, "must be a non-negative integer");
  if (status["qosClass"].text() != before["qosClass"].as_string())
    status["qosClass"].invalid_text("field is immutable");
  if (!restarts_all(spec)) {
    check_transitions(status["containerStatuses"], before["containerStatuses"], spec["containers"],
                      spec);
    check_transitions(status["initContainerStatuses"], before["initContainerStatuses"],
                      spec["initContainers"], spec);
  }
  check_transitions(status["ephemeralContainerStatuses"], before["ephemeralContainerStatuses"], {},
                    {});
  check_claim_statuses(status["resourceClaimStatuses"], spec["resourceClaims"]);
  check_extended_claim(status["extendedResourceClaimStatus"], spec);
  check_addresses(status["podIPs"], before["podIPs"]);
  if (const Field hosts = status["hostIPs"]; !hosts.empty()) {
    const Value first = (*hosts)[0]["ip"];
    if (first.as_string() != status["hostIP"].text()) {
      causes.push_back(
          rules::invalid("status.hostIPs[0].ip", first.as_string(), "must be equal to `hostIP`"));
    }
    check_addresses(hosts, before["hostIPs"]);
  }
  const std::string_view os = spec["os"]["name"].as_string();
  for (const char* list : kContainerStatuses)
    status[list].each([&](const Field& container) { check_user(container["user"], os); });
  check_allocated(status["containerStatuses"], spec["containers"]);
  check_allocated(status["initContainerStatuses"], spec["initContainers"]);
  status["ephemeralContainerStatuses"].each([](const Field& container) {
    if (const Field allocated = container["allocatedResourcesStatus"]; !allocated.empty())
      allocated.forbidden("must not be specified in container status");
  });
}

}  // namespace lookout::apiserver::resources
