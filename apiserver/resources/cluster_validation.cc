// Validation of nodes, namespaces, leases, priority and runtime classes, signing requests and events.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

void check_preemption(const Field& policy) {
  if (policy.exists()) policy.check_required_word({"PreemptLowerPriority", "Never"});
}

/// Reports an error if the text has more than `most` bytes.
void check_length(const Field& text, std::size_t most) {
  if (text.text().size() > most) {
    text.causes().push_back(
        rules::invalid(text.path(), "", fmt::format("can have at most {} characters", most)));
  }
}

/// The rules of both groups of events. `controller` is the name of the field reportingComponent in
/// the group of the request.
void check_event(const Field& event, std::string_view ns, const char* controller) {
  constexpr std::size_t kMost = 128;
  constexpr std::size_t kMostOfNote = 1024;
  const Field about = event["involvedObject"]["namespace"];
  const auto refuse = [&] { about.invalid_text("does not match event.namespace"); };
  if (!event["eventTime"].exists()) {
    if (about.empty() ? ns != "default" : ns != about.text()) refuse();
    return;
  }
  if (about.empty() && ns != "default" && ns != "kube-system") refuse();
  const Field reporter = event["reportingComponent"].named(controller);
  reporter.check_present();
  reporter.check_form(rules::check_qualified_name);
  for (const char* name : {"reportingInstance", "action", "reason"}) {
    event[name].check_present();
    check_length(event[name], kMost);
  }
  check_length(event["message"], kMostOfNote);
}

void check_series(const Field& series) {
  if (!series.exists()) return;
  if (series["count"].number() < 2) {
    series.causes().push_back(rules::invalid(series["count"].path(), "", "should be at least 2"));
  }
  series["lastObservedTime"].check_present();
}

void check_taints(const Field& taints) {
  std::set<std::string> seen;
  taints.each([&](const Field& taint) {
    taint["key"].check_form(rules::check_qualified_name);
    const rules::Messages wrong = rules::check_label_value(taint["value"].text());
    if (!wrong.empty()) taint["value"].invalid_text(fmt::format("{}", fmt::join(wrong, ";")));
    taint["effect"].check_required_word({"NoSchedule", "PreferNoSchedule", "NoExecute"});
    if (seen.insert(fmt::format("{}/{}", taint["effect"].text(), taint["key"].text())).second)
      return;
    // Shows the taint in Go's syntax.
    taint.causes().push_back(
        {"FieldValueDuplicate",
         fmt::format(R"(Duplicate value: {{"Key":"{}","Value":"{}","Effect":"{}",)"
                     R"("TimeAdded":null}}: taints must be unique by key and effect pair)",
                     taint["key"].text(), taint["value"].text(), taint["effect"].text()),
         taint.path()});
  });
}

/// Legacy node annotations, which preceded the fields.
void check_node_annotations(const Object& node, Causes& causes) {
  constexpr const char* kTaints = "scheduler.alpha.kubernetes.io/taints";
  constexpr const char* kAvoided = "scheduler.alpha.kubernetes.io/preferAvoidPods";
  constexpr const char* kNoJson = "it is not JSON of the annotation's type";
  const Field annotations(node.annotations(), "metadata.annotations", causes);
  // The content is a member, because a list alone is not an object.
  const auto content_of = [&](const char* name) {
    return Object::parse(fmt::format(R"({{"content":{}}})", annotations.key(name).text()));
  };
  const auto check = [&](const char* name, Value::Kind kind, const char* path, auto visit) {
    if (annotations.key(name).text().empty()) return;
    Object content;
    try {
      content = content_of(name);
    } catch (const api::DecodeError&) {
    }
    if (!content || content.body().size() != 1 ||
        (content["content"].kind() != kind && !content["content"].is_null())) {
      causes.push_back(rules::invalid(path, name, kNoJson));
      return;
    }
    visit(Field(content["content"], fmt::format("metadata.annotations.{}", name), causes));
  };
  check(kTaints, Value::Kind::kArray, "metadata.annotations", check_taints);
  check(kAvoided, Value::Kind::kObject, "metadata.annotations.AvoidPods", [](const Field& avoided) {
    avoided["preferAvoidPods"].named(avoided.path()).each([](const Field& entry) {
      const Field signature = entry["podSignature"].named(entry.path() + ".PodSignature");
      const Field controller = signature["podController"];
      if (!controller.exists()) return signature.required();
      if (controller["controller"].is_true()) return;
      controller["controller"]
          .named(signature.path() + ".PodController")
          .invalid("must point to a controller");
    });
  });
}

void check_node_amounts(const Field& status) {
  for (const char* list : {"capacity", "allocatable"}) {
    status[list].each_entry([&](std::string_view name, const Field& amount) {
      check_amount(amount.named(fmt::format("status.{}.{}", list, name)), name);
    });
  }
}

/// Names of features, in order: "Feature", or "Feature/part".
void check_declared_features(const Field& features) {
  constexpr std::size_t kLongest = 253;
  const auto is_name = [](std::string_view text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    char before = '\0';
    for (const char c : text) {
      const bool begins = before == '\0' || before == '/';
      if (c == '/' ? begins : begins ? !is_letter(c) : !is_letter(c) && (c < '0' || c > '9'))
        return false;
      before = c;
    }
    return !text.empty() && text[0] >= 'A' && text[0] <= 'Z' && before != '/';
  };
  std::string_view last;
  bool is_first = true;
  features.each([&](const Field& feature) {
    const std::string_view name = feature.text();
    if (!is_first && name == last) {
      feature.duplicate();
    } else if (!is_first && name < last) {
      feature.invalid_text("list must be sorted alphabetically");
    }
    if (name.size() > kLongest) {
      feature.invalid_text(
          fmt::format("invalid feature name {}: must be no more than {} characters",
                      api::detail::quote(name), kLongest));
    } else if (!is_name(name)) {
      feature.invalid_text(fmt::format(
          "invalid feature name {}: must start with an UpperCamelCase segment, with subsequent "
          "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only "
          "alphanumeric characters and slashes",
          api::detail::quote(name)));
    }
    last = name;
    is_first = false;
  });
}

/// Reports the first malformed part between dots. The error shows the whole name.
void check_parts(const Field& field, std::string_view whole,
                 rules::Messages (*check)(std::string_view)) {
  for (std::string_view rest = whole;;) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    const rules::Messages messages = check(part);
    for (const auto& message : messages) {
      field.causes().push_back(rules::invalid(
          field.path(), whole,
          fmt::format("validating label {}: {}", api::detail::quote(part), message)));
    }
    if (!messages.empty() || end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

/// The name of a signer: example.com/name.
void check_signer(const Field& signer) {
  if (!signer.check_present()) return;
  const std::string_view text = signer.text();
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || text.find('/', slash + 1) != std::string_view::npos) {
    return signer.invalid_text(
        "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  }
  const std::string_view domain = text.substr(0, slash);
  check_parts(signer, domain, rules::check_dns1123_label);
  if (domain.find('.') == std::string_view::npos) {
    signer.causes().push_back(rules::invalid(
        signer.path(), domain, "should be a domain with at least two segments separated by dots"));
  }
  check_parts(signer, text.substr(slash + 1), rules::check_dns1123_subdomain);
}

void check_finalizer(const Field& finalizer) {
  const std::string_view name = finalizer.text();
  finalizer.check_form(rules::check_qualified_name);
  if (name.find('/') == std::string_view::npos && !is_standard_finalizer(name)) {
    finalizer.invalid_text("name is neither a standard finalizer name nor is it fully qualified");
  }
}

}  // namespace

void validate_new_namespace(const Object& ns, Causes& causes) {
  const Field finalizers(ns["spec"]["finalizers"], "spec.finalizers", causes);
  // For a new namespace, kube-apiserver's errors name the list, not the element.
  finalizers.each(
      [&](const Field& finalizer) { check_finalizer(finalizer.named(finalizers.path())); });
}

void validate_finalized_namespace(const Object& ns, Causes& causes) {
  const Field finalizers(ns["spec"]["finalizers"], "spec.finalizers", causes);
  finalizers.each(check_finalizer);
}

void validate_namespace_status(const Object& ns, const Object& /*old*/, Causes& causes) {
  const Field phase(ns["status"]["phase"], "status.Phase", causes);
  const bool ends = ns["metadata"]["deletionTimestamp"].is_string();
  if (phase.text() == (ends ? "Terminating" : "Active")) return;
  phase.invalid_text(ends ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                          : "may only be 'Active' if `deletionTimestamp` is empty");
}

void validate_new_priority_class(const Object& object, Causes& causes) {
  constexpr std::int64_t kMost = 1000000000;
  const Field root(object.body(), "", causes);
  if (object.name().starts_with("system-")) {
    if (object.name() != "system-cluster-critical" && object.name() != "system-node-critical") {
      causes.push_back(rules::forbidden(
          "metadata.name",
          fmt::format("priority class names with 'system-' prefix are reserved for system use "
                      "only. error: {} is not a known system priority class",
                      object.name())));
    }
  } else if (root["value"].number() > kMost) {
    root["value"].forbidden(
        fmt::format("maximum allowed value of a user defined priority is {}", kMost));
  }
  check_preemption(root["preemptionPolicy"]);
}

void validate_priority_class_update(const Object& object, const Object& old, Causes& causes) {
  const Field root(object.body(), "", causes);
  if (root["value"].number() != old["value"].as_int())
    root["value"].forbidden("may not be changed in an update.");
  if (!root["preemptionPolicy"].is(old["preemptionPolicy"]))
    root["preemptionPolicy"].invalid(kImmutable);
}

void validate_lease(const Object& lease, Causes& causes) {
  const Field spec(lease["spec"], "spec", causes);
  spec["leaseDurationSeconds"].check_positive();
  spec["leaseTransitions"].check_not_negative();
}

void validate_runtime_class(const Object& object, Causes& causes) {
  const Field root(object.body(), "", causes);
  root["handler"].check_required_form(rules::check_dns1123_label);
  check_overhead(root["overhead"]["podFixed"].named("overhead"));
  const Field scheduling = root["scheduling"];
  scheduling["nodeSelector"].check_labels();
  scheduling["tolerations"].each(check_toleration);
  std::set<std::string> seen;
  scheduling["tolerations"].each([&](const Field& toleration) {
    const Value seconds = *toleration["tolerationSeconds"];
    // Shows the toleration in Go's syntax.
    const std::string shown = fmt::format(
        R"({{"Key":"{}","Operator":"{}","Value":"{}","Effect":"{}","TolerationSeconds":)",
        toleration["key"].text(), toleration["operator"].text(), toleration["value"].text(),
        toleration["effect"].text());
    if (seen.insert(shown).second) return;
    causes.push_back({"FieldValueDuplicate",
                      fmt::format("Duplicate value: {}{}}}", shown,
                                  seconds.exists() ? seconds.to_json() : "null"),
                      toleration.path()});
  });
}

void validate_runtime_class_update(const Object& object, const Object& old, Causes& causes) {
  const Field handler(object["handler"], "handler", causes);
  if (!handler.is(old["handler"])) handler.invalid_text(kImmutable);
}

void validate_node(const Object& node, Causes& causes) {
  const Field root(node.body(), "", causes);
  check_node_annotations(node, causes);
  check_taints(root["spec"]["taints"].named("metadata.taints"));
  check_node_amounts(root["status"]);
  check_declared_features(root["status"]["declaredFeatures"]);
  const Field ranges = root["spec"]["podCIDRs"];
  ranges.each([](const Field& range) { range.check_cidr(); });
  const auto is_new = [&](std::size_t index) {
    return (*ranges)[index].as_string().find(':') != std::string_view::npos;
  };
  if ((*ranges).size() > 2 || ((*ranges).size() == 2 && is_new(0) == is_new(1)))
    ranges.invalid("may specify no more than one CIDR for each IP family");
}

void validate_node_update(const Object& node, const Object& old, Causes& causes) {
  const Field root(node.body(), "", causes);
  const Field ranges = root["spec"]["podCIDRs"];
  const Value before = old["spec"]["podCIDRs"];
  check_node_amounts(root["status"]);
  check_declared_features(root["status"]["declaredFeatures"]);
  std::set<std::string> addresses;
  root["status"]["addresses"].each([&](const Field& address) {
    const std::string text = fmt::format(R"({{"Type":"{}","Address":"{}"}})",
                                         address["type"].text(), address["address"].text());
    if (addresses.insert(text).second) return;
    causes.push_back({"FieldValueDuplicate", "Duplicate value: " + text, address.path()});
  });
  if (!before.empty() && !ranges.is(before))
    ranges.forbidden("node updates may not change podCIDR except from \"\" to valid");
  const std::string_view provider = old["spec"]["providerID"].as_string();
  if (!provider.empty() && root["spec"]["providerID"].text() != provider) {
    root["spec"]["providerID"].forbidden(
        "node updates may not change providerID except from \"\" to valid");
  }
  check_taints(root["spec"]["taints"].named("metadata.taints"));
  check_node_annotations(node, causes);
  if (root["spec"]["externalID"].text() != old["spec"]["externalID"].as_string())
    root["spec"]["externalID"].forbidden("may not be updated");
}

void validate_signing_request(const Object& request, Causes& causes) {
  constexpr std::int64_t kShortest = 600;
  const Field spec(request["spec"], "spec", causes);
  const auto pem = decode_base64(spec["request"].text()).value_or(std::string());
  if (pem.find("-----BEGIN CERTIFICATE REQUEST-----") == std::string::npos)
    spec["request"].invalid("PEM block type must be CERTIFICATE REQUEST");
  spec["usages"].check_present();
  spec["usages"].each([](const Field& usage) {
    usage.check_word({"any",
                      "cert sign",
                      "client auth",
                      "code signing",
                      "content commitment",
                      "crl sign",
                      "data encipherment",
                      "decipher only",
                      "digital signature",
                      "email protection",
                      "encipher only",
                      "ipsec end system",
                      "ipsec tunnel",
                      "ipsec user",
                      "key agreement",
                      "key encipherment",
                      "microsoft sgc",
                      "netscape sgc",
                      "ocsp signing",
                      "s/mime",
                      "server auth",
                      "signing",
                      "timestamping"});
  });
  std::set<std::string_view> seen;
  spec["usages"].each([&](const Field& usage) {
    if (!seen.insert(usage.text()).second) usage.duplicate();
  });
  if (spec["signerName"].text() == "kubernetes.io/legacy-unknown") {
    spec["signerName"].invalid_text("the legacy signerName is not allowed via this API version");
  } else {
    check_signer(spec["signerName"]);
  }
  spec["expirationSeconds"].check_range(
      kShortest, INT64_MAX, "may not specify a duration less than 600 seconds (10 minutes)");
}

void validate_api_service_status(const Object& service, const Object& /*old*/, Causes& causes) {
  Field(service["status"]["conditions"], "status.conditions", causes)
      .each([](const Field& condition) {
        condition["status"].check_word({"True", "False", "Unknown"});
      });
}

void validate_api_service(const Object& service, Causes& causes) {
  constexpr std::int64_t kMostOfGroup = 20000;
  constexpr std::int64_t kMostOfVersion = 1000;
  const Field spec(service["spec"], "spec", causes);
  const Field group = spec["group"];
  const std::string name = fmt::format("{}.{}", spec["version"].text(), group.text());
  if (!service.name().empty() && service.name() != name &&
      rules::check_path_segment_name(service.name()).empty()) {
    causes.push_back(rules::invalid(
        "metadata.name", service.name(),
        fmt::format("must be `spec.version+\".\"+spec.group`: {}", api::detail::quote(name))));
  }
  if (group.empty() && spec["version"].text() != "v1")
    group.required("only v1 may have an empty group and it better be legacy kube");
  group.check_form_if_present(rules::check_dns1123_subdomain);
  spec["version"].check_form(rules::check_dns1035_label);
  const auto check_priority = [](const Field& priority, std::int64_t most) {
    if (priority.number() < 1 || priority.number() > most)
      priority.invalid_number(fmt::format("must be positive and less than {}", most));
  };
  check_priority(spec["groupPriorityMinimum"], kMostOfGroup);
  check_priority(spec["versionPriority"], kMostOfVersion);
  const Field by = spec["service"];
  const Field insecure = spec["insecureSkipTLSVerify"];
  const Field bundle = spec["caBundle"];
  if (!by.exists()) {
    if (!bundle.empty()) {
      const auto bytes = decode_base64(bundle.text()).value_or(std::string()).size();
      causes.push_back(rules::invalid(bundle.path(), fmt::format("{} bytes", bytes),
                                      "local APIServices may not have a caBundle"));
    }
    if (insecure.is_true())
      insecure.invalid("local APIServices may not have insecureSkipTLSVerify");
    return;
  }
  by["namespace"].check_present();
  by["name"].check_present();
  constexpr std::int64_t kMostPorts = 65535;
  by["port"].check_range(1, kMostPorts,
                         "port is not valid: must be between 1 and 65535, inclusive");
  if (insecure.is_true() && !bundle.empty())
    insecure.invalid("may not be true if caBundle is present");
}

void validate_event(const Object& event, Causes& causes) {
  check_event(Field(event.body(), "", causes), event.ns(), "reportingComponent");
}

/// The stricter rules of events.k8s.io. Events are stored as those of the core group.
void validate_strict_event(const Object& event, Causes& causes) {
  check_event(Field(event.body(), "", causes), event.ns(), "reportingController");
}

void validate_new_strict_event(const Object& event, Causes& causes) {
  const Field root(event.body(), "", causes);
  const auto refuse = [&](const char* field, const std::string& why) {
    causes.push_back(rules::invalid(field, "", why));
  };
  check_series(root["series"]);
  root["eventTime"].check_present();
  const std::string_view type = root["type"].text();
  if (type != "Normal" && type != "Warning")
    refuse("type", fmt::format("has invalid value: {}", type));
  for (const char* field : {"firstTimestamp", "lastTimestamp", "count"}) {
    if (root[field].exists() && !(*root[field]).is_null()) refuse(field, "needs to be unset");
  }
  if (!root["source"]["component"].empty() || !root["source"]["host"].empty())
    refuse("source", "needs to be unset");
}

void validate_strict_event_update(const Object& event, const Object& old, Causes& causes) {
  const Field root(event.body(), "", causes);
  if (!root["series"].is(old["series"])) check_series(root["series"]);
  for (const char* field : {"involvedObject", "reason", "message", "source", "firstTimestamp",
                            "lastTimestamp", "count", "reason", "type", "eventTime", "action",
                            "related", "reportingComponent", "reportingInstance"}) {
    if (root[field].is(old[field])) continue;
    const std::string_view name = field;
    if (name == "source" && root[field].empty() && old[field].empty()) continue;  // {}: absent
    root[field]
        .named(name == "reportingComponent" ? "reportingController" : field)
        .invalid(kImmutable);
  }
}

}  // namespace lookout::apiserver::resources
