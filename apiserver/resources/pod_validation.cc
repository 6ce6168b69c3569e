// Validation of pods and of pod templates.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

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

/// Preferred terms may have values that are not valid labels.
void check_node_term(const Field& term, bool is_required) {
  term["matchExpressions"].each([&](const Field& requirement) {
    check_node_requirement(requirement);
    if (!is_required) return;
    requirement["values"].each(
        [](const Field& value) { value.check_form(rules::check_label_value); });
  });
  term["matchFields"].each(check_node_field);
}

/// The server adds the keys of matchLabelKeys to the selector, so it must contain them.
void check_listed_keys(const Field& term) {
  const Value selector = *term["labelSelector"];
  std::set<std::string_view> seen;
  for (const auto& [key, value] : selector["matchLabels"].members()) seen.insert(key);
  for (const Value requirement : selector["matchExpressions"].elements()) {
    const std::string_view key = requirement["key"].as_string();
    if (seen.insert(key).second) continue;
    std::size_t index = 0;
    for (const Value listed : (*term["matchLabelKeys"]).elements()) {
      if (listed.as_string() == key) {
        term.causes().push_back(rules::invalid(fmt::format("{}[{}]", term.path(), index), key,
                                               "exists in both matchLabelKeys and labelSelector"));
      }
      ++index;
    }
  }
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
  if (has_selector) check_listed_keys(term);
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
  constexpr std::size_t kLongestSearch = 2048;
  if (is_all && !config.exists())
    return config.required("must provide `dnsConfig` when `dnsPolicy` is None");
  if (is_all && servers.empty()) {
    return servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if ((*servers).size() > kMostServers) servers.invalid("must not have more than 3 nameservers");
  servers.each([](const Field& server) { server.check_ip(); });
  if ((*config["searches"]).size() > kMostDomains)
    config["searches"].invalid("must not have more than 32 search paths");
  std::size_t size = 0;
  for (const Value search : (*config["searches"]).elements()) size += search.as_string().size() + 1;
  if (size > kLongestSearch + 1) {
    config["searches"].invalid(
        fmt::format("must not have more than {} characters (including spaces) in the search list",
                    kLongestSearch));
  }
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

void check_claims(const Field& claims) {
  const auto shown = [](Value value) { return value.exists() ? value.to_json() : "null"; };
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
    const bool is_named = claim["resourceClaimName"].exists();
    if (is_named == claim["resourceClaimTemplateName"].exists()) {
      claim.invalid_as(
          fmt::format(R"({{"Name":{},"ResourceClaimName":{},"ResourceClaimTemplateName":{}}})",
                      api::detail::quote(name.text()), shown(*claim["resourceClaimName"]),
                      shown(*claim["resourceClaimTemplateName"])),
          is_named
              ? "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
              : "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    }
    for (const char* source : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (claim[source].exists()) claim[source].check_form(rules::check_dns1123_subdomain);
    }
  });
}

/// With hostNetwork, host ports must equal the container ports.
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

/// hostnameOverride is independent of the pod's name.
void check_hostname_override(const Field& spec) {
  constexpr int kLongest = 64;  // as in the kernel
  const Field name = spec["hostnameOverride"];
  if (!name.exists()) return;
  if (name.text().size() > kLongest)
    name.causes().push_back(rules::too_long(name.path(), kLongest));
  name.check_form(rules::check_dns1123_subdomain);
  if (spec["setHostnameAsFQDN"].is_true())
    name.forbidden("may not be specified when setHostnameAsFQDN is true");
  if (spec["hostNetwork"].is_true())
    name.forbidden("may not be specified when hostNetwork is true");
}

/// Environment variables can come only from files in emptyDir volumes.
void check_environment_files(const Field& spec) {
  const auto check = [volumes = (*spec)["volumes"].elements()](const Field& variable) {
    if (!(*variable)["valueFrom"]["fileKeyRef"].exists()) return;
    const Field name = variable["valueFrom"]["fileKeyRef"]["volumeName"];
    if (name.empty()) return;
    for (const Value volume : volumes) {
      if (volume["name"].as_string() != name.text()) continue;
      if (!volume["emptyDir"].exists())
        name.invalid_text("referenced volume must be of type emptyDir");
      return;
    }
    name.not_found();
  };
  each_container(spec, [&](const Field& container) { container["env"].each(check); });
}

/// Errors in names are reported for the scheduling gate.
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
  if (!is_gated) return document;
  json::erase(*spec, "nodeSelector");
  // An affinity without other members equals an absent one.
  if (json::Value* affinity = json::find(*spec, "affinity"); affinity != nullptr) {
    json::erase(*affinity, "nodeAffinity");
    if (affinity->IsObject() && affinity->ObjectEmpty()) json::erase(*spec, "affinity");
  }
  return document;
}

/// Whether a list starts with all old elements.
bool keeps_beginning(Value now, Value before) {
  if (now.size() < before.size()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!(now[i] == before[i])) return false;
  }
  return true;
}

/// A term in Go's syntax.
std::string term_in_go(Value term) {
  const auto list = [&](const char* name) {
    std::string out;
    for (const Value one : term[name].elements()) {
      out.append(out.empty() ? "[" : ",")
          .append(fmt::format(R"({{"Key":{},"Operator":{},"Values":{}}})",
                              api::detail::quote(one["key"].as_string()),
                              api::detail::quote(one["operator"].as_string()),
                              one["values"].exists() ? one["values"].to_json() : "null"));
    }
    return out.empty() ? std::string("null") : out + "]";
  };
  return fmt::format(R"({{"MatchExpressions":{},"MatchFields":{}}})", list("matchExpressions"),
                     list("matchFields"));
}

/// An update may only restrict the node affinity of a gated pod further.
void check_new_node_affinity(const Field& affinity, Value before) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const Value old_terms = before[kRequired]["nodeSelectorTerms"];
  if (old_terms.empty()) return;
  const Field terms = affinity[kRequired]["nodeSelectorTerms"];
  if ((*terms).size() != old_terms.size()) {
    std::vector<std::string> shown;
    for (const Value term : (*terms).elements()) shown.push_back(term_in_go(term));
    return terms.invalid_as(
        shown.empty() ? "null" : fmt::format("[{}]", fmt::join(shown, ",")),
        "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  }
  std::size_t index = 0;
  terms.each([&](const Field& term) {
    const Value old = old_terms[index++];
    const bool was_empty = old["matchExpressions"].empty() && old["matchFields"].empty();
    const bool is_empty = term["matchExpressions"].empty() && term["matchFields"].empty();
    if ((was_empty && !is_empty) ||
        !keeps_beginning(*term["matchExpressions"], old["matchExpressions"]) ||
        !keeps_beginning(*term["matchFields"], old["matchFields"]))
      term.invalid_as(term_in_go(*term), "only additions are allowed (no mutations or deletions)");
  });
}

/// Tolerations may be added, and their durations may change.
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

/// A deadline may be shortened; false if further checks are pointless.
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
  // Volumes for claim templates come first.
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
  Volumes volumes = validate_volumes(spec["volumes"], context);
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
  check_pod_security(spec);
  check_affinity(spec["affinity"]);
  check_dns(spec["dnsConfig"], spec["dnsPolicy"].text() == "None");
  spec["readinessGates"].each(
      [](const Field& gate) { gate["conditionType"].check_form(rules::check_qualified_name); });
  check_gates(spec["schedulingGates"]);
  check_spread(spec["topologySpreadConstraints"]);
  check_host_process(spec);
  check_host_users(spec);
  spec["serviceAccountName"].check_form_if_present(rules::check_dns1123_subdomain);
  spec["nodeName"].check_form_if_present(rules::check_dns1123_subdomain);
  spec["activeDeadlineSeconds"].check_range(1, kMostSeconds);
  spec["hostname"].check_form_if_present(rules::check_dns1123_label);
  spec["subdomain"].check_form_if_present(rules::check_dns1123_label);
  check_hostname_override(spec);
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
  check_overhead(spec["overhead"]);
  check_environment_files(spec);
  check_os(spec);
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
  check_annotated_profiles(pod, causes);
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
    check_new_node_affinity(spec["affinity"]["nodeAffinity"], before["affinity"]["nodeAffinity"]);
  }
  // The API server adds a diff of the two specs in Go's syntax, which is not reproduced.
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
