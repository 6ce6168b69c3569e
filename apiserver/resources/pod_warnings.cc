// The rules and messages are those of k8s.io/kubernetes/pkg/api/pod/warnings.go.
#include "apiserver/resources/pod_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/quantity.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::resources {
namespace {

/// A field or label and its warning.
using Deprecated = std::pair<std::string_view, std::string_view>;

constexpr std::array<Deprecated, 7> kLabels = {{
    {"beta.kubernetes.io/arch", R"(deprecated since v1.14; use "kubernetes.io/arch" instead)"},
    {"beta.kubernetes.io/os", R"(deprecated since v1.14; use "kubernetes.io/os" instead)"},
    {"failure-domain.beta.kubernetes.io/region",
     R"(deprecated since v1.17; use "topology.kubernetes.io/region" instead)"},
    {"failure-domain.beta.kubernetes.io/zone",
     R"(deprecated since v1.17; use "topology.kubernetes.io/zone" instead)"},
    {"beta.kubernetes.io/instance-type",
     R"(deprecated since v1.17; use "node.kubernetes.io/instance-type" instead)"},
    {"app.kubernetes.io/created-by", "deprecated since v1.9"},
    {"scheduler.alpha.kubernetes.io/preferAvoidPods",
     "deprecated since v1.22; use Taints and Tolerations instead"},
}};
constexpr std::array<Deprecated, 3> kAnnotations = {{
    {"scheduler.alpha.kubernetes.io/critical-pod",
     R"(non-functional in v1.16+; use the "priorityClassName" field instead)"},
    {"security.alpha.kubernetes.io/sysctls",
     R"(non-functional in v1.11+; use the "sysctls" field instead)"},
    {"security.alpha.kubernetes.io/unsafe-sysctls",
     R"(non-functional in v1.11+; use the "sysctls" field instead)"},
}};
constexpr const char* kNoStorageOs = "deprecated in v1.22, non-functional in v1.25+";
constexpr std::array<Deprecated, 8> kVolumes = {{
    {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
    {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
    {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    {"rbd", "deprecated in v1.28, non-functional in v1.31+"},
}};

constexpr const char* kSinceFields = "deprecated since v1.30";

/// Checks a pod or a template.
class Reviewer {
 public:
  Reviewer(Value pod, std::string path, std::vector<std::string>& out)
      : is_template_(!path.empty()),
        pod_(pod, std::move(path), causes_),
        spec_(pod_["spec"]),
        out_(out) {}

  void review() {
    check_placement();
    const Field annotations = pod_["metadata"]["annotations"];
    for (const auto& [name, message] : kAnnotations) {
      if (const Field annotation = annotations.key(name); (*annotations)[name].exists())
        warn(annotation, message);
    }
    spec_["volumes"].each([&](const Field& volume) {
      for (const auto& [source, message] : kVolumes) {
        if (volume[source].exists()) warn(volume[source], message);
      }
      if (const Field source = volume["storageos"]; source.exists())
        warn(source.named(volume.path() + ".storageOS"), kNoStorageOs);
      const Field claim = volume["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"];
      for (const char* kind : {"requests", "limits"}) check_bytes(claim[kind], {"storage"});
    });
    spec_["volumes"].each([&](const Field& volume) { check_paths(volume); });
    check_repeated(spec_["hostAliases"], "ip");
    check_repeated(spec_["imagePullSecrets"], "name");
    spec_["imagePullSecrets"].each([&](const Field& secret) {
      if (secret["name"].text().empty()) warn(secret["name"], R"(invalid empty name "")");
    });
    check_bytes(spec_["overhead"]);
    const Field context = spec_["securityContext"];
    if (!context["seccompProfile"].exists())
      check_annotation(kSeccompAnnotation, "non-functional in v1.27+", "seccompProfile");
    each_container(spec_, [&](const Field& container) {
      const std::string_view name = container["name"].text();
      const Field own = container["securityContext"];
      if (!own["seccompProfile"].exists()) {
        check_annotation(std::string(kContainerSeccompAnnotation).append(name),
                         "non-functional in v1.27+", "seccompProfile");
      }
      // Annotations of pods were converted to fields: profile_warnings().
      if (is_template_ && !own["appArmorProfile"].exists() && !context["appArmorProfile"].exists())
        check_annotation(std::string(kAppArmorAnnotation).append(name), kSinceFields,
                         "appArmorProfile");
      for (const char* kind : {"limits", "requests"}) check_bytes(container["resources"][kind]);
      check_variables(container["env"]);
    });
    check_ports();
    check_port_names();
    if (spec_["terminationGracePeriodSeconds"].number() < 0) {
      warn(spec_["terminationGracePeriodSeconds"],
           "must be >= 0; negative values are invalid and will be treated as 1");
    }
    for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
      const Field affinity = spec_["affinity"][kind];
      affinity["requiredDuringSchedulingIgnoredDuringExecution"].each(
          [&](const Field& term) { check_selects(term); });
      affinity["preferredDuringSchedulingIgnoredDuringExecution"].each(
          [&](const Field& term) { check_selects(term["podAffinityTerm"]); });
    }
  }

 private:
  void warn(const Field& field, std::string_view what) {
    out_.push_back(fmt::format("{}: {}", field.path(), what));
  }

  /// Warns of an annotation that a field has replaced.
  void check_annotation(std::string_view name, std::string_view since, std::string_view field) {
    const Field annotation = pod_["metadata"]["annotations"].key(name);
    if (annotation.exists())
      warn(annotation, fmt::format("{}; use the \"{}\" field instead", since, field));
  }

  /// Warns of files of a volume with the same path, or with one path below the other.
  void check_paths(const Field& volume) {
    const auto paths_of = [](const Field& items) {
      std::vector<std::string_view> paths;
      items.each([&](const Field& item) { paths.push_back(item["path"].text()); });
      return paths;
    };
    const auto prefix = [&](std::string_view kind) {
      return fmt::format("volume {} ({}): overlapping paths", quote(volume["name"].text()), kind);
    };
    const auto named = [](std::string_view kind, const Field& name) {
      return fmt::format("{} {}", kind, quote(name.text()));
    };
    const Field map = volume["configMap"];
    const Field secret = volume["secret"];
    check_overlap(paths_of(map["items"]), prefix(named("ConfigMap", map["name"])));
    check_overlap(paths_of(secret["items"]), prefix(named("Secret", secret["secretName"])));
    check_overlap(paths_of(volume["downwardAPI"]["items"]), prefix("DownwardAPI"));
    std::set<std::string_view> all;
    std::vector<std::string_view> paths;
    std::string before;
    volume["projected"]["sources"].each([&](const Field& source) {
      if (source.empty()) {
        out_.push_back(fmt::format("volume {} (Projected) has no sources provided",
                                   quote(volume["name"].text())));
        return;
      }
      const Field bundle = source["clusterTrustBundle"];
      if (const Field part = source["configMap"]; part["items"].exists()) {
        paths = paths_of(part["items"]);
        before = prefix(named("Projected ConfigMap", part["name"]));
      } else if (const Field keys = source["secret"]; keys["items"].exists()) {
        paths = paths_of(keys["items"]);
        before = prefix(named("Projected Secret", keys["name"]));
      } else if (const Field files = source["downwardAPI"]; files["items"].exists()) {
        paths = paths_of(files["items"]);
        before = prefix("Projected DownwardAPI");
      } else if (source["serviceAccountToken"].exists()) {
        paths = {source["serviceAccountToken"]["path"].text()};
        before = prefix("Projected ServiceAccountToken");
      } else if (bundle.exists()) {
        paths = {bundle["path"].text()};
        before = prefix(named("Projected ClusterTrustBundle",
                              bundle["name"].exists() ? bundle["name"] : bundle["signerName"]));
      }
      // As in Kubernetes, a source without paths uses those of the previous one.
      if (paths.empty()) return;
      check_overlap(paths, before);
      std::vector<std::string_view> together(all.begin(), all.end());
      const std::set<std::string_view> own(paths.begin(), paths.end());
      together.insert(together.end(), own.begin(), own.end());
      std::sort(together.begin(), together.end());
      check_overlap(together, before);
      all.insert(own.begin(), own.end());
    });
  }

  void check_overlap(const std::vector<std::string_view>& paths, std::string_view before) {
    const auto overlap = [](std::string_view a, std::string_view b) {
      return a == b || (std::string(a) + "/").starts_with(b) ||
             (std::string(b) + "/").starts_with(a);
    };
    std::set<std::string_view> seen;
    for (std::string_view path : paths) {
      path = path.substr(0, path.find_last_not_of('/') + 1);
      for (const std::string_view other : seen) {
        if (other.empty() || path.empty()) break;
        if (!overlap(other, path)) continue;
        out_.push_back(fmt::format("{}: {} with {}", before, quote(path), quote(other)));
        break;
      }
      seen.insert(path);
    }
  }

  void check_selects(const Field& term) {
    if (!term["labelSelector"].exists())
      warn(term["labelSelector"], "a null labelSelector results in matching no pod");
  }

  void check_placement() {
    const Field selector = spec_["nodeSelector"];
    for (const auto& [label, value] : (*selector).members()) {
      if (const auto message = deprecation_of_label(label)) warn(selector.key(label), *message);
    }
    const auto check_key = [&](const Field& key) {
      if (const auto message = deprecation_of_label(key.text()))
        warn(key, fmt::format("{} is {}", key.text(), *message));
    };
    const Field affinity = spec_["affinity"]["nodeAffinity"];
    affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].each(
        [&](const Field& term) {
          term["matchExpressions"].each(
              [&](const Field& expression) { check_key(expression["key"]); });
        });
    affinity["preferredDuringSchedulingIgnoredDuringExecution"].each([&](const Field& term) {
      term["preference"]["matchExpressions"].each([&](const Field& expression) {
        check_key(expression["key"]);
        expression["values"].each([&](const Field& value) {
          for (const auto& why : api::validation::check_label_value(value.text()))
            warn(value, fmt::format("{} is invalid, {}", value.text(), why));
        });
      });
    });
    spec_["topologySpreadConstraints"].each([&](const Field& constraint) {
      check_key(constraint["topologyKey"]);
      check_selects(constraint);
    });
  }

  /// Warns of elements with the same key.
  void check_repeated(const Field& list, std::string_view name) {
    std::set<std::string_view> seen;
    list.each([&](const Field& element) {
      const std::string_view text = element[name].text();
      if (!seen.insert(text).second)
        warn(element[name], fmt::format("duplicate {} {}", name, quote(text)));
    });
  }

  void check_bytes(const Field& amounts,
                   std::initializer_list<const char*> resources = {"memory", "ephemeral-storage"}) {
    constexpr std::int64_t kMilli = 1000;
    for (const char* resource : resources) {
      const std::string_view text = (*amounts)[resource].as_string();
      const auto amount = api::Quantity::parse(text);
      if (!amount || amount->milli_value() % kMilli == 0) continue;
      warn(amounts.key(resource),
           fmt::format("fractional byte value {} is invalid, must be an integer", quote(text)));
    }
  }

  /// Warns of a variable with the name of an earlier one, unless its value refers to that.
  void check_variables(const Field& variables) {
    std::set<std::string_view> seen;
    variables.each([&](const Field& variable) {
      const std::string_view name = variable["name"].text();
      if (seen.insert(name).second) return;
      const std::string_view value = variable["value"].text();
      const std::string reference = fmt::format("$({})", name);
      if (!variable["valueFrom"].exists() && value != reference &&
          value.find(reference) != std::string_view::npos)
        return;
      warn(variable, fmt::format("hides previous definition of {}, which may be dropped when "
                                 "using apply",
                                 quote(name)));
    });
  }

  void check_ports() {
    std::map<std::pair<std::int64_t, std::string_view>, std::vector<Field>> seen;
    each_container(spec_, [&](const Field& container) {
      container["ports"].each([&](const Field& port) {
        const std::string_view ip = port["hostIP"].text();
        const std::int64_t host = port["hostPort"].number();
        if (!ip.empty() && host == 0) {
          warn(port,
               fmt::format("hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} "
                           "Protocol:{} HostIP:{}}}",
                           port["name"].text(), port["containerPort"].number(),
                           port["protocol"].text(), ip));
        }
        auto& others = seen[{port["containerPort"].number(), port["protocol"].text()}];
        for (const Field& other : others) {
          const std::string_view other_ip = other["hostIP"].text();
          const std::int64_t other_host = other["hostPort"].number();
          std::string_view what;
          if (ip == other_ip && host == other_host) {
            what = "duplicate";
          } else if (host == 0 || other_host == 0) {
            what = "overlapping";
          } else if (host == other_host && ip.empty() != other_ip.empty()) {
            what = "dangerously ambiguous";
          } else {
            continue;
          }
          warn(port, fmt::format("{} port definition with {}", what, other.path()));
        }
        others.push_back(port);
      });
    });
  }

  void check_port_names() {
    std::map<std::string_view, std::string> seen;
    each_container(spec_, [&](const Field& container) {
      container["ports"].each([&](const Field& port) {
        const std::string_view name = port["name"].text();
        if (name.empty()) return;
        const auto [first, is_new] = seen.emplace(name, port.path());
        if (is_new) return;
        warn(port, fmt::format("duplicate port name {} with {}, services and probes that select "
                               "ports by name will use {}",
                               quote(name), first->second, first->second));
      });
    });
  }

  const bool is_template_;
  Causes causes_;  // of the fields; validation is elsewhere
  const Field pod_;
  const Field spec_;
  std::vector<std::string>& out_;
};

/// The location of the pod, or the pod template, in the objects of a resource.
struct Place {
  std::string_view group;
  std::string_view plural;
  std::string_view template_path;  // empty: the object is a pod
  bool name_is_of_pods = false;    // the name is also (the beginning of) the name of a pod
};
constexpr std::array<Place, 9> kPlaces = {{
    {"", "pods", "", true},
    {"", "podtemplates", "template"},
    {"", "replicationcontrollers", "spec.template", true},
    {"apps", "deployments", "spec.template", true},
    {"apps", "replicasets", "spec.template", true},
    {"apps", "statefulsets", "spec.template"},
    {"apps", "daemonsets", "spec.template"},
    {"batch", "jobs", "spec.template", true},
    {"batch", "cronjobs", "spec.jobTemplate.spec.template", true},
}};

/// Warns of a job with very many indexes.
void warn_of_many_indexes(Value spec, std::string_view path, std::vector<std::string>& out) {
  constexpr std::int64_t kManyIndexes = 100'000;
  constexpr std::int64_t kManyAtOnce = 10'000;
  if (spec["completionMode"].as_string() != "Indexed" ||
      spec["completions"].as_int() <= kManyIndexes || spec["parallelism"].as_int() <= kManyAtOnce)
    return;
  out.push_back(fmt::format(
      "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher "
      "than 10^4, Kubernetes might not be able to track completedIndexes when a big number of "
      "indexes fail",
      path));
}

const Place* find_place(const api::Resource& resource) {
  const auto* const place = std::find_if(kPlaces.begin(), kPlaces.end(), [&](const Place& one) {
    return one.group == resource.group && one.plural == resource.plural;
  });
  return place == kPlaces.end() ? nullptr : place;
}

Value at(Value value, std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    value = value[path.substr(0, dot)];
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return value;
}

}  // namespace

std::optional<std::string_view> pod_template_path(const api::Resource& resource) {
  const Place* const place = find_place(resource);
  return place == nullptr ? std::nullopt : std::optional(place->template_path);
}

std::optional<std::string_view> deprecation_of_label(std::string_view label) {
  for (const auto& [name, message] : kLabels) {
    if (name == label) return message;
  }
  return std::nullopt;
}

std::vector<std::string> profile_warnings(const ServedResource& resource, const Object& written) {
  std::vector<std::string> out;
  const Value spec = written["spec"];
  if (resource.custom || !resource.type.group.empty() || resource.type.plural != "pods" ||
      spec["os"]["name"].as_string() == "windows")
    return out;
  const Value of_pod = spec["securityContext"]["appArmorProfile"];
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : spec[list].elements()) {
      const std::string key =
          std::string(kAppArmorAnnotation).append(container["name"].as_string());
      const Value annotation = written["metadata"]["annotations"][key];
      if (!annotation.exists() || container["securityContext"]["appArmorProfile"].exists())
        continue;
      const auto [type, path] = profile_of_annotation(annotation.as_string());
      if (!type.empty() && of_pod["type"].as_string() == type &&
          of_pod["localhostProfile"].as_string() == path)
        continue;
      out.push_back(
          fmt::format("metadata.annotations[{}]: {}; use the \"appArmorProfile\" field instead",
                      key, kSinceFields));
    }
  }
  return out;
}

std::vector<std::string> pod_warnings(const ServedResource& resource, const Object& object,
                                      const Object& before) {
  std::vector<std::string> out;
  if (resource.custom || object.kind() != resource.type.kind) return out;
  const Place* const place = find_place(resource.type);
  if (place == nullptr) return out;
  const bool is_pod = place->template_path.empty();
  if (before && (is_pod || object["metadata"]["generation"] == before["metadata"]["generation"]))
    return out;
  const auto wrong = api::validation::check_dns1123_label(object.name());
  if (!before && place->name_is_of_pods && !wrong.empty()) {
    out.push_back(fmt::format(
        "metadata.name: this is used in {}, which can result in surprising behavior; a DNS label "
        "is recommended: [{}]",
        is_pod ? "the Pod's hostname" : "Pod names and hostnames", fmt::join(wrong, " ")));
  }
  if (place->group == "batch") {
    const std::string_view job = place->template_path.substr(0, place->template_path.rfind('.'));
    warn_of_many_indexes(at(object.body(), job), job, out);
  }
  Reviewer(at(object.body(), place->template_path), std::string(place->template_path), out)
      .review();
  return out;
}

}  // namespace lookout::apiserver::resources
