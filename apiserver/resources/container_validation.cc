// Validation of the containers of a pod.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "apiserver/quota/resource_list.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/quantity.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

rules::Messages check_variable_name(std::string_view name) {
  if (std::all_of(name.begin(), name.end(),
                  [](char c) { return c >= ' ' && c <= '~' && c != '='; }))
    return {};
  return {
      "a valid environment variable name must consist only of printable ASCII characters other "
      "than '='"};
}

void check_ports(const Field& ports) {
  std::set<std::string_view> names;
  ports.each([&](const Field& port) {
    const Field name = port["name"];
    if (!name.empty() && name.check_form(check_port_name) && !names.insert(name.text()).second)
      name.duplicate();
    const Field number = port["containerPort"];
    if (number.number() == 0) {
      number.required();
    } else {
      number.check_port();
    }
    if (port["hostPort"].number() != 0) port["hostPort"].check_port();
    port["protocol"].check_required_word({"SCTP", "TCP", "UDP"});
  });
}

void check_key_reference(const Field& reference) {
  reference["name"].check_form(rules::check_dns1123_subdomain);
  reference["key"].check_required_form(rules::check_config_map_key);
}

void check_value_source(const Field& source, bool has_value) {
  if (!source.exists()) return;
  int kinds = 0;
  const auto check = [&](const char* name, auto rule) {
    const Field reference = source[name];
    if (!reference.exists()) return;
    ++kinds;
    rule(reference);
  };
  check("fieldRef", [](const Field& reference) {
    check_field_reference(reference, {"metadata.name", "metadata.namespace", "metadata.uid",
                                      "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
                                      "status.hostIPs", "status.podIP", "status.podIPs"});
  });
  check("resourceFieldRef",
        [](const Field& reference) { check_resource_reference(reference, false); });
  check("configMapKeyRef", check_key_reference);
  check("secretKeyRef", check_key_reference);
  check("fileKeyRef", [](const Field& reference) {
    reference["key"].check_required_form(check_variable_name);
    reference["volumeName"].check_required_form(rules::check_dns1123_label);
    if (reference["path"].check_present()) reference["path"].check_no_backsteps();
  });
  const auto refuse = [&](const char* why) {
    source.causes().push_back(rules::invalid(source.path(), "", why));
  };
  if (kinds == 0) {
    refuse(
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
        "`fileKeyRef`");
  } else if (has_value) {
    refuse("may not be specified when `value` is not empty");
  } else if (kinds > 1) {
    refuse("may not have more than one field specified at a time");
  }
}

void check_environment(const Field& container) {
  container["env"].each([](const Field& variable) {
    variable["name"].check_required_form(check_variable_name);
    check_value_source(variable["valueFrom"], !variable["value"].empty());
  });
  const Field from = container["envFrom"];
  from.each([&](const Field& source) {
    source["prefix"].check_form(check_variable_name);
    int kinds = 0;
    for (const char* name : {"configMapRef", "secretRef"}) {
      if (!source[name].exists()) continue;
      ++kinds;
      source[name]["name"].check_required_form(rules::check_dns1123_subdomain);
    }
    const auto refuse = [&](const char* why) {
      from.causes().push_back(rules::invalid(from.path(), "", why));
    };
    if (kinds == 0) refuse("must specify one of: `configMapRef` or `secretRef`");
    if (kinds > 1) refuse("may not have more than one field specified at a time");
  });
}

/// Whether an element of a list has this text at `name`.
bool has(Value list, const char* name, std::string_view text) {
  const auto elements = list.elements();
  return std::any_of(elements.begin(), elements.end(),
                     [&](Value one) { return one[name].as_string() == text; });
}

void check_mounts(const Field& container, const Volumes& volumes) {
  const Value devices = *container["volumeDevices"];
  const bool is_privileged = container["securityContext"]["privileged"].is_true();
  std::set<std::string_view> paths;
  const Field mounts = container["volumeMounts"];
  mounts.each([&](const Field& mount) {
    const Field name = mount["name"];
    const Field path = mount["mountPath"];
    name.check_present();
    if (!volumes.contains(name.text())) name.not_found();
    path.check_present();
    if (!paths.insert(path.text()).second) path.invalid_text("must be unique");
    if (has(devices, "name", name.text()))
      name.invalid_text("must not already exist in volumeDevices");
    if (has(devices, "devicePath", path.text()))
      path.invalid_text("must not already exist as a path in volumeDevices");
    // The following errors name the list.
    const auto at_list = [&](const char* field) {
      return mount[field].named(fmt::format("{}.{}", mounts.path(), field));
    };
    at_list("subPath").check_descending_path();
    if (const Field expression = at_list("subPathExpr"); !expression.empty()) {
      if (!mount["subPath"].empty()) {
        mount["subPathExpr"].invalid_text("subPathExpr and subPath are mutually exclusive");
      }
      expression.check_descending_path();
    }
    const Field propagation = at_list("mountPropagation");
    propagation.check_word_if_present({"Bidirectional", "HostToContainer", "None"});
    if (propagation.text() == "Bidirectional" && !is_privileged) {
      propagation.forbidden(
          "Bidirectional mount propagation is available only to privileged containers");
    }
    const Field read_only = at_list("recursiveReadOnly");
    if (!read_only.check_word_if_present({"Disabled", "Enabled", "IfPossible"}) ||
        !read_only.exists() || read_only.text() == "Disabled")
      return;
    if (!mount["readOnly"].is_true())
      read_only.forbidden("may only be specified when readOnly is true");
    if (propagation.exists() && propagation.text() != "None")
      read_only.forbidden("may only be specified when mountPropagation is None or not specified");
  });
}

void check_devices(const Field& container, const Volumes& volumes) {
  const Value mounts = *container["volumeMounts"];
  std::set<std::string_view> names;
  std::set<std::string_view> paths;
  container["volumeDevices"].each([&](const Field& device) {
    const Field name = device["name"];
    const Field path = device["devicePath"];
    name.check_present();
    if (names.contains(name.text())) name.invalid_text("must be unique");
    const auto volume = volumes.find(name.text());
    if (volume == volumes.end()) {
      name.not_found();
    } else if (!volume->second) {
      name.invalid_text(
          "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    }
    path.check_present();
    if (paths.contains(path.text())) path.invalid_text("must be unique");
    if (fmt::format("/{}/", path.text()).find("/../") != std::string::npos) {
      path.invalid_text("can not contain backsteps ('..')");
    } else {
      paths.insert(path.text());
    }
    if (has(mounts, "name", name.text()))
      name.invalid_text("must not already exist in volumeMounts");
    if (has(mounts, "mountPath", path.text()))
      path.invalid_text("must not already exist as a path in volumeMounts");
    if (!name.empty()) names.insert(name.text());
  });
}

void check_resize_policies(const Field& policies, bool never_restarts) {
  std::set<std::string_view> names;
  policies.each([&](const Field& policy) {
    const Field name = policy["resourceName"].named(policies.path());
    const Field restart = policy["restartPolicy"].named(policies.path());
    if (!names.insert(name.text()).second) name.named(policy.path()).duplicate();
    name.check_required_word({"cpu", "memory"});
    restart.check_required_word({"NotRequired", "RestartContainer"});
    if (never_restarts && restart.text() != "NotRequired")
      restart.invalid_text("must be 'NotRequired' when pod `restartPolicy` is 'Never'");
  });
}

rules::Messages check_header_name(std::string_view name) {
  const auto fits = [](char c) { return base::is_alnum(c) || c == '-'; };
  if (!name.empty() && std::all_of(name.begin(), name.end(), fits)) return {};
  return {
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
      "regex used for validation is '[-A-Za-z0-9]+')"};
}

struct Handler {
  const char* name;
  void (*check)(const Field& action, Value grace_period);
};

constexpr std::array<Handler, 5> kHandlers = {{
    {"exec", [](const Field& action, Value) { action["command"].check_present(); }},
    {"httpGet",
     [](const Field& action, Value) {
       action["path"].check_present();
       action["port"].check_port_or_name();
       action["scheme"].check_word({"HTTP", "HTTPS"});
       action["httpHeaders"].each([&](const Field& header) {
         header["name"].named(action.path() + ".httpHeaders").check_form(check_header_name);
       });
     }},
    {"tcpSocket", [](const Field& action, Value) { action["port"].check_port_or_name(); }},
    {"grpc", [](const Field& action, Value) { action["port"].check_port(); }},
    {"sleep",
     [](const Field& action, Value grace_period) {
       const std::int64_t most = grace_period.as_int();
       const Field seconds = action["seconds"].named(action.path());
       if (seconds.number() < 0 || seconds.number() > most) {
         seconds.invalid_number(fmt::format(
             "must be non-negative and less than terminationGracePeriodSeconds ({})", most));
       }
     }},
}};

void check_handler(const Field& handler, Value grace_period) {
  const auto check = [&](const Handler& kind, const Field& action) {
    kind.check(action, grace_period);
  };
  if (!check_one_of(handler, kHandlers, "may not specify more than 1 handler type", check))
    handler.required("must specify a handler type");
}

void check_probe(const Field& probe, Value grace_period) {
  if (!probe.exists()) return;
  check_handler(probe, grace_period);
  for (const char* field : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                            "successThreshold", "failureThreshold"})
    probe[field].check_not_negative();
  probe["terminationGracePeriodSeconds"].check_positive();
}

/// Validates hooks and probes, for containers that run concurrently with others.
void check_life(const Field& container, Value grace_period, bool has_os) {
  const Field lifecycle = container["lifecycle"];
  for (const char* hook : {"postStart", "preStop"}) {
    if (lifecycle[hook].exists()) check_handler(lifecycle[hook], grace_period);
  }
  if (const Field signal = lifecycle["stopSignal"]; signal.exists() && !has_os)
    signal.forbidden("may not be set for containers with empty `spec.os.name`");
  const auto check_success = [](const Field& probe) {
    const Field successes = probe["successThreshold"];
    if (probe.exists() && successes.number() != 1) successes.invalid_number("must be 1");
  };
  check_probe(container["livenessProbe"], grace_period);
  check_success(container["livenessProbe"]);
  const Field readiness = container["readinessProbe"];
  check_probe(readiness, grace_period);
  if (const Field seconds = readiness["terminationGracePeriodSeconds"]; seconds.exists())
    seconds.invalid_number("must not be set for readinessProbes");
  check_probe(container["startupProbe"], grace_period);
  check_success(container["startupProbe"]);
}

void check_restart_policy(const Field& container) {
  const Field policy = container["restartPolicy"];
  const Field list = container["restartPolicyRules"];
  if (policy.exists()) {
    policy.check_word({"Always", "Never", "OnFailure"});
  } else if (!list.empty()) {
    policy.required("must specify restartPolicy when restart rules are used");
  }
  constexpr std::size_t kMostRules = 20;
  constexpr std::size_t kMostCodes = 255;
  if ((*list).size() > kMostRules) list.too_many(kMostRules);
  list.each([](const Field& rule) {
    rule["action"].check_word({"Restart", "RestartAllContainers"});
    if (!rule["exitCodes"].exists()) return rule["exitCodes"].required("must be specified");
    rule["exitCodes"]["operator"].check_word({"In", "NotIn"});
    const Field codes = rule["exitCodes"]["values"];
    if ((*codes).size() > kMostCodes) codes.too_many(kMostCodes);
  });
}

/// The claims of a container must be claims of the pod, each once, as a whole or by its requests.
void check_claims(const Field& claims, Value of_pod) {
  std::set<std::string, std::less<>> known;
  for (const Value claim : of_pod.elements()) {
    if (!claim["name"].as_string().empty()) known.emplace(claim["name"].as_string());
  }
  std::set<std::string, std::less<>> seen;
  claims.each([&](const Field& claim) {
    const std::string_view name = claim["name"].text();
    const Field request = claim["request"];
    if (name.empty()) return claim.required();
    const auto duplicate = [&](std::string_view what) {
      claim.causes().push_back(rules::duplicate(claim.path(), what));
    };
    if (seen.contains(name)) {
      duplicate(name);
    } else {
      std::string key(name);
      if (!request.empty()) {
        request.check_form(rules::check_dns1123_label);
        key.append("/").append(request.text());
      }
      const std::string part = std::string(name) + "/";
      if (seen.contains(key)) {
        duplicate(key);
      } else if (request.empty()) {
        for (auto it = seen.lower_bound(part); it != seen.end() && it->starts_with(part); ++it)
          duplicate(name);
      }
      seen.insert(std::move(key));
    }
    if (known.contains(name)) return;
    claim.causes().push_back(
        {"FieldValueNotFound",
         fmt::format(
             "Not found: {}: must be one of the names in pod.spec.resourceClaims{}",
             api::detail::quote(name),
             known.empty() ? " which is empty" : fmt::format(": {}", fmt::join(known, ", "))),
         claim.path()});
  });
}

void check_common(const Field& container, const ContainerContext& context) {
  container["name"].check_required_form(rules::check_dns1123_label);
  container["image"].check_present();
  container["terminationMessagePolicy"].check_required_word({"File", "FallbackToLogsOnError"});
  check_ports(container["ports"]);
  check_environment(container);
  check_mounts(container, context.volumes);
  check_devices(container, context.volumes);
  check_pull_policy(container["imagePullPolicy"]);
  check_resources(container["resources"], false);
  check_claims(container["resources"]["claims"], context.spec["resourceClaims"]);
  check_resize_policies(container["resizePolicy"],
                        context.spec["restartPolicy"].as_string() == "Never");
  check_container_security(container["securityContext"], context.spec["hostUsers"].as_bool(true));
}

/// Huge pages are integers, and require CPU or memory.
class HugePages {
 public:
  void check(const Field& amounts) {
    constexpr std::string_view kPrefix = "hugepages-";
    amounts.each_entry([&](std::string_view name, const Field& amount) {
      if (name == "cpu" || name == "memory") has_others_ = true;
      if (!name.starts_with(kPrefix)) return;
      has_pages_ = true;
      const auto wanted = Quantity::parse(amount.text());
      const auto page = Quantity::parse(name.substr(kPrefix.size()));
      if (!wanted) return;
      const bool is_whole = page && page->value() > 0 && page->milli_value() % 1000 == 0 &&
                            wanted->value() % page->value() == 0;
      if (!is_whole) {
        amount.causes().push_back(rules::invalid(
            amount.path(), wanted->to_string(),
            fmt::format("{} is not positive integer multiple of {}", wanted->to_string(), name)));
      }
    });
  }
  /// After all amounts.
  void check_others(const Field& resources) const {
    if (has_pages_ && !has_others_) resources.forbidden("HugePages require cpu or memory");
  }

 private:
  bool has_pages_ = false;
  bool has_others_ = false;
};

/// Host ports must be unique among containers that run at the same time. `said_of` names the
/// container in errors.
void check_host_ports(const Field& container, const Field& said_of, std::set<std::string>& taken) {
  container["ports"].named(said_of.path() + ".ports").each([&](const Field& port) {
    const Field number = port["hostPort"];
    if (number.number() == 0) return;
    std::string text =
        fmt::format("{}/{}/{}", port["protocol"].text(), port["hostIP"].text(), number.number());
    if (!taken.insert(text).second)
      number.causes().push_back(rules::duplicate(number.path(), text));
  });
}

bool is_native(std::string_view resource) {
  return resource.find('/') == std::string_view::npos ||
         resource.find("kubernetes.io/") != std::string_view::npos;
}

constexpr std::array<std::string_view, 20> kStandardResources = {
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
    "storage", "requests.storage",
    // From here on: object counts.
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"};
constexpr std::size_t kCounted = 11;

bool is_standard(std::string_view resource) {
  return std::find(kStandardResources.begin(), kStandardResources.end(), resource) !=
             kStandardResources.end() ||
         resource.starts_with("hugepages-") || resource.starts_with("requests.hugepages-");
}

bool is_counted(std::string_view resource) {
  return std::find(kStandardResources.begin() + kCounted, kStandardResources.end(), resource) !=
             kStandardResources.end() ||
         is_extended_resource(resource);
}

}  // namespace

void check_pull_policy(const Field& policy) {
  policy.check_required_word({"Always", "IfNotPresent", "Never"});
}

void check_field_reference(const Field& reference, Field::Words fields) {
  constexpr std::array<std::string_view, 11> kKnown = {
      "metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
      "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
      "spec.schedulerName",   "status.phase",    "status.hostIP"};
  constexpr std::array<std::string_view, 3> kAddresses = {"status.hostIPs", "status.podIP",
                                                          "status.podIPs"};
  const Field version = reference["apiVersion"];
  const Field path = reference["fieldPath"];
  if (!version.check_present() || !path.check_present()) return;
  const std::string_view text = path.text();
  const auto refuse = [&](const std::string& why) {
    path.invalid_text("error converting fieldPath: " + why);
  };
  if (version.text() != "v1") {
    return refuse(fmt::format("unsupported pod version: {}", version.text()));
  }
  const std::size_t bracket = text.find("['");
  const bool has_key = bracket != std::string_view::npos && text.ends_with("']");
  const std::string_view base = has_key ? text.substr(0, bracket) : text;
  if (has_key) {
    std::string key(text.substr(bracket + 2, text.size() - bracket - 4));
    if (base != "metadata.annotations" && base != "metadata.labels")
      return refuse(fmt::format("field label does not support subscript: {}", text));
    if (base == "metadata.annotations") key = base::lower_case(key);
    for (const auto& message : rules::check_qualified_name(key))
      reference.causes().push_back(rules::invalid(reference.path(), key, message));
    return;
  }
  const auto in = [&](const auto& list) {
    return std::find(list.begin(), list.end(), text) != list.end();
  };
  if (!in(kKnown) && !in(kAddresses))
    return refuse(fmt::format("field label not supported: {}", text));
  path.check_word(fields);
}

void check_resource_reference(const Field& reference, bool in_volume) {
  const Field resource = reference["resource"];
  const std::string_view name = resource.text();
  if (in_volume && reference["containerName"].empty()) {
    reference["containerName"].required();
  } else if (!resource.check_present()) {
    // The resource is required.
  } else if (!name.starts_with("limits.hugepages-") && !name.starts_with("requests.hugepages-")) {
    resource.check_word({"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                         "requests.ephemeral-storage", "requests.memory"});
  }
  const Field divisor = reference["divisor"];
  const auto amount = api::Quantity::parse(divisor.text());
  if (!amount || amount->is_zero()) return;
  constexpr std::array<std::string_view, 13> kSizes = {
      "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  const std::string text = amount->to_string();
  const auto refuse = [&](std::string_view why) {
    reference.causes().push_back(rules::invalid(divisor.path(), name, why));
  };
  const bool is_size = std::find(kSizes.begin(), kSizes.end(), text) != kSizes.end();
  const auto kind = name.substr(std::min(name.find('.') + 1, name.size()));
  const auto refuse_size = [&](const char* what) {
    refuse(
        fmt::format("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, "
                    "1Ei are supported with the {} resource",
                    what));
  };
  if (kind == "cpu") {
    if (text != "1m" && text != "1")
      refuse("only divisor's values 1m and 1 are supported with the cpu resource");
  } else if (is_size) {
    return;
  } else if (kind == "memory") {
    refuse_size("memory");
  } else if (kind == "ephemeral-storage") {
    refuse_size("local ephemeral storage");
  } else if (kind.starts_with("hugepages-")) {
    refuse_size("hugepages");
  }
}

bool check_resource_name(const Field& amount, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    amount.causes().push_back(rules::invalid(amount.path(), name, why));
    return false;
  };
  const rules::Messages messages = rules::check_qualified_name(name);
  for (const auto& message : messages) refuse(message);
  if (!messages.empty()) return false;
  if (name.find('/') != std::string_view::npos || is_standard(name)) return true;
  return refuse("must be a standard resource type or fully qualified");
}

bool is_extended_resource(std::string_view resource) {
  return !is_native(resource) && !resource.starts_with("requests.") &&
         rules::check_qualified_name("requests." + std::string(resource)).empty();
}

bool may_be_overcommitted(std::string_view resource) {
  return is_native(resource) && !resource.starts_with("hugepages-");
}

void check_container_resource_name(const Field& amount, std::string_view name) {
  check_resource_name(amount, name);
  const auto refuse = [&](std::string_view why) {
    amount.causes().push_back(rules::invalid(amount.path(), name, why));
  };
  if (name.find('/') == std::string_view::npos) {
    if (name != "cpu" && name != "memory" && name != "ephemeral-storage" &&
        !name.starts_with("hugepages-"))
      refuse("must be a standard resource for containers");
  } else if (!is_native(name) && !is_extended_resource(name)) {
    refuse("doesn't follow extended resource name standard");
  }
}

bool is_quota_resource(std::string_view name) { return name != "storage" && is_standard(name); }

void check_amount(const Field& amount, std::string_view name) {
  const auto quantity = Quantity::parse(amount.text());
  if (!quantity) return;
  if (*quantity < Quantity()) amount.invalid_text("must be greater than or equal to 0");
  if (is_counted(name) && quantity->milli_value() % 1000 != 0)
    amount.invalid_text("must be an integer");
}

void check_resources(const Field& resources, bool of_pod) {
  const Field limits = resources["limits"];
  const Field requests = resources["requests"];
  const auto check_name = [&](std::string_view name, const Field& amount) {
    if (!of_pod) {
      check_container_resource_name(amount, name);
    } else if (check_resource_name(amount, name) && name != "cpu" && name != "memory" &&
               !name.starts_with("hugepages-")) {
      constexpr std::array<std::string_view, 3> kSupported = {"cpu", "hugepages-", "memory"};
      amount.causes().push_back(rules::not_supported(amount.path(), name, kSupported));
    }
    check_amount(amount, name);
  };
  limits.each_entry(check_name);
  requests.each_entry([&](std::string_view name, const Field& amount) {
    check_name(name, amount);
    const bool may_exceed = may_be_overcommitted(name);
    const Value limit = (*limits)[name];
    if (!limit.exists()) {
      if (!may_exceed) limits.required("Limit must be set for non overcommitable resources");
      return;
    }
    const auto wanted = Quantity::parse(amount.text());
    const auto most = Quantity::parse(limit.as_string());
    if (!wanted || !most) return;
    const auto refuse = [&](std::string_view what) {
      requests.causes().push_back(rules::invalid(
          requests.path(), amount.text(),
          fmt::format("must be {} to {} limit of {}", what, name, limit.as_string())));
    };
    if (*wanted != *most && !may_exceed) {
      refuse("equal");
    } else if (*most < *wanted) {
      refuse("less than or equal");
    }
  });
  HugePages pages;
  pages.check(limits);
  pages.check(requests);
  pages.check_others(resources);
}

void check_overhead(const Field& overhead) {
  const Field limits = overhead.named(overhead.path() + ".limits");
  limits.each_entry([](std::string_view name, const Field& amount) {
    check_container_resource_name(amount, name);
    check_amount(amount, name);
  });
  HugePages pages;
  pages.check(limits);
  pages.check_others(overhead);
}

void check_pod_resources(const Field& spec) {
  const Field resources = spec["resources"];
  if (!resources.exists()) return;
  if (spec["os"]["name"].text() == "windows")
    return resources.forbidden("may not be set for a windows pod");
  if (resources["claims"].exists())
    resources["claims"].forbidden("claims may not be set for Resources at pod-level");
  check_resources(resources, true);
  const auto check_covers = [&](const Field& whole, std::string_view part,
                                bool (*is_meant)(std::string_view)) {
    for (const auto& [name, needed] : quota::resources_of_containers(*spec, part)) {
      const Field amount = whole.key(name);
      const auto said = Quantity::parse(amount.text());
      if (!is_meant(name) || !said || !(*said < needed)) continue;
      amount.invalid_text(
          fmt::format("must be greater than or equal to aggregate container {} of {}", part,
                      needed.to_string()));
    }
  };
  check_covers(resources["requests"], "requests", [](std::string_view) { return true; });
  check_covers(resources["limits"], "limits",
               [](std::string_view name) { return name.starts_with("hugepages-"); });
  std::size_t index = 0;
  spec["containers"].each([&](const Field& container) {
    const std::string path = fmt::format("{}.containers[{}]", resources.path(), index++);
    container["resources"]["limits"].each_entry([&](std::string_view name, const Field& limit) {
      const auto most = Quantity::parse((*resources["limits"])[name].as_string());
      const auto own = Quantity::parse(limit.text());
      if (!most || !own || !(*most < *own)) return;
      limit.named(fmt::format("{}[{}].limits", path, name))
          .invalid_text(
              fmt::format("must be less than or equal to pod limits of {}", most->to_string()));
    });
  });
}

void validate_containers(const Field& containers, const ContainerContext& context) {
  if (!containers.check_present()) return;
  const Value grace_period = context.spec["terminationGracePeriodSeconds"];
  std::set<std::string_view> names;
  containers.each([&](const Field& container) {
    check_common(container, context);
    if (!names.insert(container["name"].text()).second) container["name"].duplicate();
    check_life(container, grace_period, context.spec["os"].exists());
    check_restart_policy(container);
  });
  std::set<std::string> ports;
  containers.each([&](const Field& container) { check_host_ports(container, container, ports); });
}

void validate_init_containers(const Field& containers, const ContainerContext& context) {
  const Value grace_period = context.spec["terminationGracePeriodSeconds"];
  std::set<std::string_view> names;
  for (const Value container : context.spec["containers"].elements())
    names.insert(container["name"].as_string());
  containers.each([&](const Field& container) {
    check_common(container, context);
    check_restart_policy(container);
    const Field name = container["name"];
    if (names.contains(name.text())) {
      name.duplicate();
    } else if (!name.empty()) {
      names.insert(name.text());
    }
    // Init containers run one after another, so each has its own set of host ports.
    std::set<std::string> ports;
    check_host_ports(container, container.named(containers.path() + "[0]"), ports);
    if (container["restartPolicy"].text() == "Always")
      return check_life(container, grace_period, context.spec["os"].exists());
    for (const char* field : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (container[field].exists()) {
        container[field].forbidden(
            "may not be set for init containers without restartPolicy=Always");
      }
    }
    container["resizePolicy"].each([](const Field& policy) {
      if (policy["restartPolicy"].text() == "RestartContainer") {
        policy["restartPolicy"].invalid_text(
            "must not be set to 'RestartContainer' for non-sidecar initContainers");
      }
    });
  });
}

void check_image_padding(const Field& container) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const std::string_view image = container["image"].text();
  if (!image.empty() && (kSpaces.find(image.front()) != std::string_view::npos ||
                         kSpaces.find(image.back()) != std::string_view::npos))
    container["image"].invalid_text("must not have leading or trailing whitespace");
}

void validate_ephemeral_containers(const Field& containers, const ContainerContext& context) {
  constexpr const char* kNotAllowed = "cannot be set for an Ephemeral Container";
  std::set<std::string_view> others;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value container : context.spec[list].elements())
      others.insert(container["name"].as_string());
  }
  std::set<std::string_view> names = others;
  containers.each([&](const Field& container) {
    check_common(container, context);
    check_image_padding(container);
    if (!names.insert(container["name"].text()).second) container["name"].duplicate();
    const Field target = container["targetContainerName"];
    if (!target.empty() && !others.contains(target.text())) target.not_found();
    for (const char* field :
         {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
          "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      if (!container[field].empty()) container[field].forbidden(kNotAllowed);
    }
    container["volumeMounts"].each([&](const Field& mount) {
      for (const char* field : {"subPath", "subPathExpr"}) {
        if (!mount[field].empty()) mount[field].forbidden(kNotAllowed);
      }
    });
  });
}

}  // namespace lookout::apiserver::resources
