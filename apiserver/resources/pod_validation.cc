// Validation of pods, and of their spec wherever it is part of something else.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

constexpr std::int64_t kMostSeconds = 2147483647;

void check_node_requirement(const Field& requirement) {
  const Field values = requirement["values"];
  const std::string_view relation = requirement["operator"].text();
  if (relation == "In" || relation == "NotIn") {
    values.check_present("must be specified when `operator` is 'In' or 'NotIn'");
  } else if (relation == "Exists" || relation == "DoesNotExist") {
    if (!values.empty())
      values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else if (relation == "Gt" || relation == "Lt") {
    if ((*values).size() != 1)
      values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
  } else {
    requirement["operator"].invalid_text("not a valid selector operator");
  }
  requirement["key"].check_form(rules::check_qualified_name);
}

void check_node_field(const Field& requirement) {
  const std::string_view relation = requirement["operator"].text();
  if (relation != "In" && relation != "NotIn") {
    requirement["operator"].invalid_text("not a valid selector operator");
  } else if ((*requirement["values"]).size() != 1) {
    requirement["values"].required(
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
  }
  if (requirement["key"].text() != "metadata.name")
    return requirement["key"].invalid_text("not a valid field selector key");
  requirement["values"].each(
      [](const Field& value) { value.check_form(rules::check_dns1123_subdomain); });
}

/// What is preferred may name labels that no node can have.
void check_node_term(const Field& term, bool is_required) {
  term["matchExpressions"].each([&](const Field& requirement) {
    check_node_requirement(requirement);
    if (!is_required) return;
    requirement["values"].each(
        [](const Field& value) { value.check_form(rules::check_label_value); });
  });
  term["matchFields"].each(check_node_field);
}

void check_label_keys(const Field& term) {
  const bool has_selector = term["labelSelector"].exists();
  for (const char* name : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const Field keys = term[name];
    if (keys.empty()) continue;
    if (!has_selector) {
      keys.forbidden("must not be specified when labelSelector is not set");
      continue;
    }
    keys.each([](const Field& key) { key.check_form(rules::check_qualified_name); });
  }
  term["matchLabelKeys"].each([&](const Field& key) {
    for (const Value other : (*term["mismatchLabelKeys"]).elements()) {
      if (other.as_string() == key.text())
        key.invalid_text("exists in both matchLabelKeys and mismatchLabelKeys");
    }
  });
}

void check_pod_term(const Field& term) {
  term["labelSelector"].check_label_selector();
  term["namespaceSelector"].check_label_selector();
  term["namespaces"].each([&](const Field& name) {
    name.named(term.path() + ".namespace").check_form(rules::check_dns1123_label);
  });
  check_label_keys(term);
  const Field topology = term["topologyKey"];
  topology.check_present("can not be empty");
  topology.check_form(rules::check_qualified_name);
}

void check_weight(const Field& weight) {
  constexpr std::int64_t kMost = 100;
  if (weight.number() < 1 || weight.number() > kMost)
    weight.invalid_number("must be in the range 1-100");
}

void check_affinity(const Field& affinity) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const Field node = affinity["nodeAffinity"];
  if (node[kRequired].exists()) check_node_selector(node[kRequired]);
  node[kPreferred].each([](const Field& term) {
    check_weight(term["weight"]);
    check_node_term(term["preference"], false);
  });
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    affinity[kind][kRequired].each(check_pod_term);
    affinity[kind][kPreferred].each([](const Field& term) {
      check_weight(term["weight"]);
      check_pod_term(term["podAffinityTerm"]);
    });
  }
}

/// A pod with users of its own has nothing else of its node's.
void check_host_users(const Field& spec) {
  if ((*spec["hostUsers"]).as_bool(true)) return;
  for (const auto& [name, shown] :
       {std::pair{"hostNetwork", "hostNetwork"}, std::pair{"hostPID", "HostPID"},
        std::pair{"hostIPC", "HostIPC"}}) {
    if (spec[name].is_true())
      spec[name].named(spec.path() + "." + shown).forbidden("when `hostUsers` is false");
  }
}

rules::Messages check_search_domain(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '_', 'x');
  rules::Messages messages = rules::check_dns1123_subdomain(plain);
  for (std::string& message : messages) {
    if (message.starts_with("a lowercase")) {
      message =
          "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
          "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
          "regex used for validation is "
          "'[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*')";
    }
  }
  return messages;
}

void check_dns(const Field& config, bool is_all) {
  const Field servers = config["nameservers"];
  constexpr std::size_t kMostServers = 3;
  constexpr std::size_t kMostDomains = 32;
  if (is_all && !config.exists())
    return config.required("must provide `dnsConfig` when `dnsPolicy` is None");
  if (is_all && servers.empty()) {
    return servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if ((*servers).size() > kMostServers) servers.invalid("must not have more than 3 nameservers");
  servers.each([](const Field& server) { server.check_ip(); });
  if ((*config["searches"]).size() > kMostDomains)
    config["searches"].invalid("must not have more than 32 search paths");
  config["searches"].each([](const Field& search) {
    std::string_view name = search.text();
    if (name == ".") return;
    if (name.ends_with('.')) name.remove_suffix(1);
    for (const auto& message : check_search_domain(name))
      search.causes().push_back(rules::invalid(search.path(), name, message));
  });
  config["options"].each([](const Field& option) {
    if (option["name"].empty()) option.required("must not be empty");
  });
}

void check_spread(const Field& constraints) {
  std::size_t index = 0;
  constraints.each([&](const Field& constraint) {
    ++index;
    const Field topology = constraint["topologyKey"];
    const Field action = constraint["whenUnsatisfiable"];
    const Field skew = constraint["maxSkew"];
    if (skew.number() < 1) skew.invalid_number("must be greater than zero");
    topology.check_present("can not be empty");
    action.check_word({"DoNotSchedule", "ScheduleAnyway"});
    for (std::size_t later = index; later < (*constraints).size(); ++later) {
      const Value other = (*constraints)[later];
      if (other["topologyKey"].as_string() != topology.text() ||
          other["whenUnsatisfiable"].as_string() != action.text())
        continue;
      constraint.causes().push_back(
          rules::duplicate(constraint.path() + ".{topologyKey, whenUnsatisfiable}",
                           fmt::format("{{{}, {}}}", topology.text(), action.text())));
      break;
    }
    const Field domains = constraint["minDomains"];
    domains.check_positive("must be greater than zero");
    if (domains.exists() && action.text() != "DoNotSchedule") {
      domains.invalid_number(fmt::format(
          "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action.text()));
    }
    for (const char* policy : {"nodeAffinityPolicy", "nodeTaintsPolicy"})
      constraint[policy].check_word_if_present({"Honor", "Ignore"});
    check_label_keys(constraint);
    constraint["labelSelector"].check_label_selector();
  });
}

/// Names of kernel parameters: segments between dots or slashes.
bool is_sysctl(std::string_view name) {
  constexpr std::size_t kLongest = 253;
  const auto is_alnum = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  if (name.size() > kLongest) return false;
  for (;;) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    const std::string_view segment = name.substr(0, end);
    if (segment.empty() || !is_alnum(segment.front()) || !is_alnum(segment.back()) ||
        !std::all_of(segment.begin(), segment.end(),
                     [&](char c) { return is_alnum(c) || c == '-' || c == '_'; }))
      return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

void check_security_context(const Field& context, const Field& spec) {
  context["fsGroup"].check_range(0, kMostSeconds);
  context["runAsUser"].check_range(0, kMostSeconds);
  context["runAsGroup"].check_range(0, kMostSeconds);
  context["supplementalGroups"].each(
      [](const Field& group) { group.check_range(0, kMostSeconds); });
  if (spec["hostPID"].is_true() && spec["shareProcessNamespace"].is_true()) {
    spec["shareProcessNamespace"]
        .named(context.path() + ".shareProcessNamespace")
        .invalid("ShareProcessNamespace and HostPID cannot both be enabled");
  }
  std::set<std::string_view> names;
  context["sysctls"].each([&](const Field& parameter) {
    const Field name = parameter["name"];
    if (!name.check_present()) return;
    if (!is_sysctl(name.text())) {
      name.invalid_text(
          "must have at most 253 characters and match regex "
          "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (!names.insert(name.text()).second) {
      name.duplicate();
    }
  });
  context["fsGroupChangePolicy"].check_word_if_present({"Always", "OnRootMismatch"});
  check_seccomp_profile(context["seccompProfile"]);
  check_app_armor_profile(context["appArmorProfile"]);
  context["supplementalGroupsPolicy"].check_word_if_present({"Merge", "Strict"});
  context["seLinuxChangePolicy"].check_word_if_present({"MountOption", "Recursive"});
}

void check_claims(const Field& claims) {
  std::set<std::string_view> names;
  claims.each([&](const Field& claim) {
    const Field name = claim["name"];
    if (name.check_present()) {
      if (names.insert(name.text()).second) {
        name.check_form(rules::check_dns1123_label);
      } else {
        name.duplicate();
      }
    }
    for (const char* source : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (claim[source].exists()) claim[source].check_form(rules::check_dns1123_subdomain);
    }
  });
}

/// Ports of a pod in the network of its node are those of the node.
void check_host_network(const Field& spec, bool is_pod) {
  if (!spec["hostNetwork"].is_true()) return;
  spec["containers"].each([&](const Field& container) {
    container["ports"].each([&](const Field& port) {
      const Field number = port["hostPort"];
      if ((is_pod || number.number() != 0) && number.number() != port["containerPort"].number())
        number.invalid_number("must match `containerPort` when `hostNetwork` is true");
    });
  });
}

/// Errors of names are reported at the scheduling gate.
void check_gates(const Field& gates) {
  std::set<std::string_view> names;
  gates.each([&](const Field& gate) {
    const Field name = gate["name"].named(gate.path());
    name.check_form(rules::check_qualified_name);
    if (!names.insert(name.text()).second) name.duplicate();
  });
}

/// The pod without the parts that an update may change.
json::Document without_changeable_parts(const Object& pod, bool is_gated) {
  json::Document document = pod.to_document();
  json::erase(document, "metadata");
  json::erase(document, "status");
  json::Value* spec = json::find(document, "spec");
  if (spec == nullptr) return document;
  const auto strip = [](json::Value& container) { json::erase(container, "image"); };
  json::for_each(*spec, "containers", strip);
  json::for_each(*spec, "initContainers", strip);
  for (const char* field :
       {"activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"})
    json::erase(*spec, field);
  if (is_gated) json::erase(*spec, "nodeSelector");
  return document;
}

/// Tolerations may be added, and may last longer or shorter.
bool keeps_tolerations(Value before, Value after) {
  const auto same = [](Value a, Value b) {
    return a["key"] == b["key"] && a["operator"] == b["operator"] && a["value"] == b["value"] &&
           a["effect"] == b["effect"];
  };
  const auto kept = after.elements();
  const auto old = before.elements();
  return std::all_of(old.begin(), old.end(), [&](Value one) {
    return std::any_of(kept.begin(), kept.end(), [&](Value other) { return same(one, other); });
  });
}

/// A deadline may come nearer; false if nothing else is worth looking at.
bool check_new_deadline(const Field& deadline, Value before) {
  if (!deadline.exists()) {
    if (before.exists()) deadline.invalid("must not update from a positive integer to nil value");
    return true;
  }
  if (!deadline.check_range(0, kMostSeconds)) return false;
  if (!before.exists() || deadline.number() <= before.as_int()) return true;
  deadline.invalid_number("must be less than or equal to previous value");
  return false;
}

bool same_grace_period(Value now, Value before) {
  return now == before || (before.as_int() < 0 && now.as_int() == 1);
}

}  // namespace

void check_seccomp_profile(const Field& profile) {
  if (!profile.exists()) return;
  const Field type = profile["type"];
  const Field local = profile["localhostProfile"];
  if (type.check_present("type is required when seccompProfile is set"))
    type.check_word({"Localhost", "RuntimeDefault", "Unconfined"});
  if (type.text() == "Localhost") {
    if (!local.exists()) return local.required("must be set when seccomp type is Localhost");
    local.check_descending_path();
  } else if (local.exists()) {
    // (What is shown is the profile as it is in Go.)
    local.causes().push_back(
        {"FieldValueInvalid",
         fmt::format(R"(Invalid value: {{"Type":{},"LocalhostProfile":{}}}: )"
                     "can only be set when seccomp type is Localhost",
                     api::detail::quote(type.text()), api::detail::quote(local.text())),
         local.path()});
  }
}

void check_app_armor_profile(const Field& profile) {
  if (!profile.exists()) return;
  const Field type = profile["type"];
  const Field local = profile["localhostProfile"];
  constexpr const char* kMissing = "must be set when AppArmor type is Localhost";
  constexpr int kLongest = 4095;
  if (!type.check_present("type is required when appArmorProfile is set") ||
      !type.check_word({"Localhost", "RuntimeDefault", "Unconfined"}))
    return;
  if (type.text() != "Localhost") {
    if (local.exists()) local.invalid_text("can only be set when AppArmor type is Localhost");
    return;
  }
  const std::string_view text = local.text();
  if (!text.empty() && (text.front() == ' ' || text.back() == ' ')) {
    local.invalid_text("must not be padded with whitespace");
  } else {
    local.check_present(kMissing);
  }
  if (text.size() > kLongest) local.causes().push_back(rules::too_long(local.path(), kLongest));
}

void check_toleration(const Field& toleration) {
  const Field key = toleration["key"];
  const Field relation = toleration["operator"];
  const Field effect = toleration["effect"];
  const std::string_view value = toleration["value"].text();
  key.check_form_if_present(rules::check_qualified_name);
  if (key.empty() && relation.text() != "Exists") {
    relation.invalid_text(
        "operator must be Exists when `key` is empty, which means \"match all values and all "
        "keys\"");
  }
  if (toleration["tolerationSeconds"].exists() && effect.text() != "NoExecute")
    effect.invalid_text("effect must be 'NoExecute' when `tolerationSeconds` is set");
  const auto refuse = [&](std::string_view why) {
    relation.causes().push_back(rules::invalid(relation.path(), value, why));
  };
  if (relation.text() == "Exists") {
    if (!value.empty()) refuse("value must be empty when `operator` is 'Exists'");
  } else if (relation.text() == "Lt" || relation.text() == "Gt") {
    relation.not_supported({"Equal", "Exists", "Lt", "Gt"});
  } else if (relation.text().empty() || relation.check_word({"Equal", "Exists"})) {
    const rules::Messages wrong = rules::check_label_value(value);
    if (!wrong.empty()) refuse(fmt::format("{}", fmt::join(wrong, ";")));
  }
  if (!effect.empty()) effect.check_word({"NoSchedule", "PreferNoSchedule", "NoExecute"});
}

void check_node_selector(const Field& selector) {
  const Field terms = selector["nodeSelectorTerms"];
  if (!terms.check_present("must have at least one node selector term")) return;
  terms.each([](const Field& term) { check_node_term(term, true); });
}

void validate_pod_spec(const Field& spec, const PodContext& context) {
  // Volumes for claims come first.
  std::size_t claims = 0;
  for (const Value claim : context.claims.elements()) {
    const Field name(claim["metadata"]["name"],
                     fmt::format("{}.volumes[{}].name", spec.path(), claims), spec.causes());
    if (name.empty()) {
      name.named(fmt::format("{}.volumes[{}].persistentVolumeClaim.claimName", spec.path(), claims))
          .required();
    }
    name.check_required_form(rules::check_dns1123_label);
    ++claims;
  }
  Volumes volumes = validate_volumes(spec["volumes"], context.name);
  for (const Value claim : context.claims.elements())
    volumes.emplace(claim["metadata"]["name"].as_string(), true);
  check_claims(spec["resourceClaims"]);
  const ContainerContext containers{context, volumes, *spec};
  validate_containers(spec["containers"], containers);
  validate_init_containers(spec["initContainers"], containers);
  validate_ephemeral_containers(spec["ephemeralContainers"], containers);
  check_pod_resources(spec);
  check_host_network(spec, context.is_pod);
  spec["restartPolicy"].check_required_word({"Always", "OnFailure", "Never"});
  spec["dnsPolicy"].check_required_word(
      {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"});
  spec["nodeSelector"].check_labels();
  check_security_context(spec["securityContext"], spec);
  check_affinity(spec["affinity"]);
  check_dns(spec["dnsConfig"], spec["dnsPolicy"].text() == "None");
  spec["readinessGates"].each(
      [](const Field& gate) { gate["conditionType"].check_form(rules::check_qualified_name); });
  check_gates(spec["schedulingGates"]);
  check_spread(spec["topologySpreadConstraints"]);
  check_host_users(spec);
  spec["serviceAccountName"].check_form_if_present(rules::check_dns1123_subdomain);
  spec["nodeName"].check_form_if_present(rules::check_dns1123_subdomain);
  spec["activeDeadlineSeconds"].check_range(1, kMostSeconds);
  spec["hostname"].check_form_if_present(rules::check_dns1123_label);
  spec["subdomain"].check_form_if_present(rules::check_dns1123_label);
  spec["tolerations"].each(check_toleration);
  spec["hostAliases"].each([](const Field& alias) {
    alias["ip"].check_ip();
    alias["hostnames"].each(
        [](const Field& name) { name.check_form(rules::check_dns1123_subdomain); });
  });
  spec["priorityClassName"].check_form_if_present(rules::check_dns1123_subdomain);
  if (spec["runtimeClassName"].exists())
    spec["runtimeClassName"].check_form(rules::check_dns1123_subdomain);
  if (spec["preemptionPolicy"].exists())
    spec["preemptionPolicy"].check_required_word({"PreemptLowerPriority", "Never"});
  if (spec["os"].exists()) spec["os"]["name"].check_required_word({"linux", "windows"});
}

void validate_pod_template(const Field& pod, Value claims) {
  pod["metadata"]["labels"].named(pod.path() + ".labels").check_labels();
  const Field annotations = pod["metadata"]["annotations"].named(pod.path() + ".annotations");
  annotations.check_annotations();
  check_pod_annotations(annotations, *pod["spec"]);
  validate_pod_spec(pod["spec"], {.claims = claims});
  const Field ephemeral = pod["spec"]["ephemeralContainers"];
  if (!ephemeral.empty()) ephemeral.forbidden("ephemeral containers not allowed in pod template");
}

void validate_pod(const Object& pod, Causes& causes) {
  const Field spec(pod["spec"], "spec", causes);
  check_pod_annotations(Field(pod["metadata"]["annotations"], "metadata.annotations", causes),
                        *spec);
  validate_pod_spec(spec, {.name = pod.name(), .is_pod = true});
  if (spec["serviceAccountName"].empty()) {
    spec["volumes"].each([](const Field& volume) {
      volume["projected"]["sources"].each([](const Field& source) {
        if (const Field token = source["serviceAccountToken"]; token.exists())
          token.forbidden("must not be specified when serviceAccountName is not set");
      });
    });
  }
  spec["containers"].each(check_image_padding);
  spec["initContainers"].each(check_image_padding);
}

void validate_new_pod(const Object& pod, Causes& causes) {
  const Field spec(pod["spec"], "spec", causes);
  if (!spec["ephemeralContainers"].empty())
    spec["ephemeralContainers"].forbidden("cannot be set on create");
  if (!spec["nodeName"].empty() && !spec["schedulingGates"].empty())
    spec["nodeName"].forbidden("cannot be set until all schedulingGates have been cleared");
}

void validate_pod_update(const Object& pod, const Object& old, Causes& causes) {
  check_pod_annotations_update(pod, old, causes);
  const Field spec(pod["spec"], "spec", causes);
  const Value before = old["spec"];
  for (const char* list : {"containers", "initContainers"}) {
    if ((*spec[list]).size() != before[list].size())
      return spec[list].forbidden("pod updates may not add or remove containers");
    spec[list].each([](const Field& container) { container["image"].check_present(); });
    spec[list].each(check_image_padding);
  }
  if (!check_new_deadline(spec["activeDeadlineSeconds"], before["activeDeadlineSeconds"])) return;
  if (keeps_tolerations(before["tolerations"], *spec["tolerations"])) {
    spec["tolerations"].each(check_toleration);
  } else {
    spec["tolerations"].forbidden(
        "existing toleration can not be modified except its tolerationSeconds");
  }
  const bool is_gated = !before["schedulingGates"].empty();
  spec["schedulingGates"].each([&](const Field& gate) {
    const auto old_gates = before["schedulingGates"].elements();
    if (std::any_of(old_gates.begin(), old_gates.end(),
                    [&](Value one) { return one["name"] == *gate["name"]; }))
      return;
    gate["name"].forbidden(fmt::format(
        "only deletion is allowed, but found new scheduling gate '{}'", gate["name"].text()));
  });
  if (is_gated) {
    for (const auto& [name, value] : before["nodeSelector"].members()) {
      if ((*spec["nodeSelector"])[name] == value) continue;
      spec["nodeSelector"].invalid(
          "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
      break;
    }
  }
  // The API server adds a comparison of the two specs in Go's syntax, which nobody could repeat.
  constexpr std::string_view kOnly =
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
      "`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
      "negative)";
  if (equal_but_for({"metadata", "status"}, pod.body(), old.body())) return;
  const bool same = Object::from(without_changeable_parts(pod, is_gated)) ==
                        Object::from(without_changeable_parts(old, is_gated)) &&
                    same_grace_period(*spec["terminationGracePeriodSeconds"],
                                      before["terminationGracePeriodSeconds"]);
  if (!same) spec.forbidden(kOnly);
}

}  // namespace lookout::apiserver::resources
