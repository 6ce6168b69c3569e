// The rules of the pod security standards (k8s.io/pod-security-admission/policy).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/admission/pod_security.h"
#include "apiserver/resources/pod_parts.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::admission {
namespace {

using api::Value;
using api::detail::quote;

struct Pod {
  Value metadata;
  Value spec;
};
using Result = std::optional<Violation>;
using Check = Result (*)(const Pod& pod);
/// Names in the order of a list, and values in order.
using Names = std::vector<std::string>;
using Values = std::set<std::string>;

template <class Visit>
void each_container(const Pod& pod, Visit visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : pod.spec[list].elements()) visit(container);
  }
}

template <class Texts>
std::string joined(const Texts& texts, std::string_view separator) {
  return fmt::format("{}", fmt::join(texts, separator));
}

/// "\"a\", \"b\"", without escapes.
template <class Texts>
std::string quoted(const Texts& texts) {
  return texts.empty() ? std::string() : "\"" + joined(texts, "\", \"") + "\"";
}

/// The noun in singular or plural.
std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{}{}", noun, count == 1 ? "" : "s");
}

/// "containers \"a\", \"b\"".
std::string list_of(std::string_view noun, const Names& names) {
  return fmt::format("{} {}", counted(names.size(), noun), quoted(names));
}

std::string_view use(const Names& users) { return users.size() == 1 ? "uses" : "use"; }

std::string name_in(Value container) { return std::string(container["name"].as_string()); }

/// The containers that satisfy `is_bad(container)`.
template <class IsBad>
Names containers_that(const Pod& pod, IsBad is_bad) {
  Names out;
  each_container(pod, [&](const Value container) {
    if (is_bad(container)) out.push_back(name_in(container));
  });
  return out;
}

/// The pod and its containers whose security context violates a rule: "pod and container \"a\"".
struct Setters {
  bool pod = false;
  Names containers = {};

  bool empty() const { return !pod && containers.empty(); }
  std::string to_string() const {
    if (containers.empty()) return pod ? "pod" : "";
    return (pod ? "pod and " : "") + list_of("container", containers);
  }
};

/// The pod and the containers whose security context satisfies `is_bad(context)`.
template <class IsBad>
Setters setters_of(const Pod& pod, IsBad is_bad) {
  Setters out;
  out.pod = is_bad(pod.spec["securityContext"]);
  out.containers = containers_that(
      pod, [&](const Value container) { return is_bad(container["securityContext"]); });
  return out;
}

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// Baseline.

bool is_allowed_profile(std::string_view type) {
  return type == "RuntimeDefault" || type == "Localhost";
}

Result check_app_armor(const Pod& pod) {
  Values bad;
  Setters setters = setters_of(pod, [&](const Value context) {
    const Value profile = context["appArmorProfile"];
    const std::string_view type = profile["type"].as_string();
    if (!profile.exists() || is_allowed_profile(type)) return false;
    bad.emplace(type);
    return true;
  });
  Values annotations;
  for (const auto& [name, value] : pod.metadata["annotations"].members()) {
    const std::string_view profile = value.as_string();
    if (!name.starts_with(resources::kAppArmorAnnotation) || profile.empty() ||
        profile == "runtime/default" || profile.starts_with("localhost/"))
      continue;
    annotations.insert(fmt::format("{}={}", name, quote(profile)));
  }
  if (setters.empty() && annotations.empty()) return std::nullopt;
  Names values(bad.begin(), bad.end());
  values.insert(values.end(), annotations.begin(), annotations.end());
  std::string who = setters.to_string();
  if (!annotations.empty()) {
    if (!who.empty()) who += " and ";
    who += counted(annotations.size(), "annotation");
  }
  return Violation{counted(values.size(), "forbidden AppArmor profile"),
                   fmt::format("{} must not set AppArmor profile type to {}", who, quoted(values))};
}

constexpr std::array<std::string_view, 13> kCapabilities = {
    "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};

/// The containers that add a capability without `is_allowed(capability)`.
template <class IsAllowed>
Names containers_that_add(const Pod& pod, IsAllowed is_allowed, Values& bad) {
  return containers_that(pod, [&](const Value container) {
    bool valid = true;
    for (const Value one : container["securityContext"]["capabilities"]["add"].elements()) {
      if (is_allowed(one.as_string())) continue;
      valid = false;
      bad.emplace(one.as_string());
    }
    return !valid;
  });
}

std::string added_capabilities(const Names& containers, const Values& bad) {
  return fmt::format("{} must not include {} in securityContext.capabilities.add",
                     list_of("container", containers), quoted(bad));
}

Result check_capabilities(const Pod& pod) {
  Values bad;
  const Names containers = containers_that_add(
      pod, [](std::string_view name) { return is_one_of(name, kCapabilities); }, bad);
  if (containers.empty()) return std::nullopt;
  return Violation{"non-default capabilities", added_capabilities(containers, bad)};
}

Result check_host_namespaces(const Pod& pod) {
  Names out;
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod.spec[field].as_bool()) out.push_back(fmt::format("{}=true", field));
  }
  if (out.empty()) return std::nullopt;
  return Violation{"host namespaces", joined(out, ", ")};
}

Result check_host_paths(const Pod& pod) {
  Names out;
  for (const Value volume : pod.spec["volumes"].elements()) {
    if (volume["hostPath"].exists()) out.push_back(name_in(volume));
  }
  if (out.empty()) return std::nullopt;
  return Violation{"hostPath volumes", list_of("volume", out)};
}

Result check_host_ports(const Pod& pod) {
  Values ports;
  const Names containers = containers_that(pod, [&](const Value container) {
    bool valid = true;
    for (const Value port : container["ports"].elements()) {
      const std::int64_t number = port["hostPort"].as_int();
      if (number == 0) continue;
      valid = false;
      ports.insert(std::to_string(number));
    }
    return !valid;
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"hostPort",
                   fmt::format("{} {} {} {}", list_of("container", containers), use(containers),
                               counted(ports.size(), "hostPort"), joined(ports, ", "))};
}

Result check_hosts_of_handlers(const Pod& pod) {
  Values containers;
  Values hosts;
  each_container(pod, [&](const Value container) {
    const Value lifecycle = container["lifecycle"];
    for (const Value handler :
         {container["livenessProbe"], container["readinessProbe"], container["startupProbe"],
          lifecycle["postStart"], lifecycle["preStop"]}) {
      for (const char* kind : {"httpGet", "tcpSocket"}) {
        const std::string_view host = handler[kind]["host"].as_string();
        if (host.empty()) continue;
        containers.insert(name_in(container));
        hosts.emplace(host);
      }
    }
  });
  if (containers.empty()) return std::nullopt;
  const Names names(containers.begin(), containers.end());
  return Violation{"probe or lifecycle host",
                   fmt::format("{} {} {} {}", list_of("container", names), use(names),
                               counted(hosts.size(), "probe or lifecycle host"), quoted(hosts))};
}

Result check_privileged(const Pod& pod) {
  const Names containers = containers_that(pod, [](const Value container) {
    return container["securityContext"]["privileged"].as_bool();
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"privileged", fmt::format("{} must not set securityContext.privileged=true",
                                             list_of("container", containers))};
}

Result check_proc_mount(const Pod& pod) {
  Values bad;
  const Names containers = containers_that(pod, [&](const Value container) {
    const Value mount = container["securityContext"]["procMount"];
    if (!mount.exists() || mount.as_string() == "Default") return false;
    bad.emplace(mount.as_string());
    return true;
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"procMount", fmt::format("{} must not set securityContext.procMount to {}",
                                            list_of("container", containers), quoted(bad))};
}

constexpr std::array<std::string_view, 5> kSelinuxTypes = {"", "container_t", "container_init_t",
                                                           "container_kvm_t", "container_engine_t"};

/// Allows the first kCount types, which is the number that a version supports.
template <std::size_t kCount>
Result check_selinux(const Pod& pod) {
  constexpr auto kEnd = kSelinuxTypes.begin() + kCount;
  Values types;
  bool has_user = false;
  bool has_role = false;
  const Setters setters = setters_of(pod, [&](const Value context) {
    const Value options = context["seLinuxOptions"];
    const std::string_view type = options["type"].as_string();
    const bool bad_type = std::find(kSelinuxTypes.begin(), kEnd, type) == kEnd;
    const bool user = !options["user"].as_string().empty();
    const bool role = !options["role"].as_string().empty();
    if (bad_type) types.emplace(type);
    has_user |= user;
    has_role |= role;
    return bad_type || user || role;
  });
  if (setters.empty()) return std::nullopt;
  Names what;
  if (!types.empty())
    what.push_back(fmt::format("{} {}", counted(types.size(), "type"), quoted(types)));
  if (has_user) what.emplace_back("user may not be set");
  if (has_role) what.emplace_back("role may not be set");
  return Violation{"seLinuxOptions",
                   fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                               setters.to_string(), joined(what, "; "))};
}

Result check_seccomp_annotations(const Pod& pod) {
  Values bad;
  const Value annotations = pod.metadata["annotations"];
  const auto check = [&](const std::string& name) {
    const Value annotation = annotations[name];
    const std::string_view profile = annotation.as_string();
    if (!annotation.exists() || profile == "runtime/default" || profile == "docker/default" ||
        profile.starts_with("localhost/"))
      return;
    bad.insert(fmt::format("{}={}", name, quote(profile)));
  };
  check(std::string(resources::kSeccompAnnotation));
  each_container(pod, [&](const Value container) {
    check(std::string(resources::kContainerSeccompAnnotation) + name_in(container));
  });
  if (bad.empty()) return std::nullopt;
  return Violation{
      "seccompProfile",
      fmt::format("forbidden {} {}", counted(bad.size(), "annotation"), joined(bad, ", "))};
}

Result check_seccomp(const Pod& pod) {
  Values bad;
  const Setters setters = setters_of(pod, [&](const Value context) {
    const Value profile = context["seccompProfile"];
    const std::string_view type = profile["type"].as_string();
    if (!profile.exists() || is_allowed_profile(type)) return false;
    bad.emplace(type);
    return true;
  });
  if (setters.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                               setters.to_string(), quoted(bad))};
}

constexpr std::array<std::string_view, 12> kSysctls = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",  // since 1.27
    "net.ipv4.tcp_keepalive_time",       // since 1.29
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",  // since 1.32
    "net.ipv4.tcp_wmem"};

/// Allows the first kCount sysctls, which is the number that a version supports.
template <std::size_t kCount>
Result check_sysctls(const Pod& pod) {
  constexpr auto kEnd = kSysctls.begin() + kCount;
  Names bad;
  for (const Value sysctl : pod.spec["securityContext"]["sysctls"].elements()) {
    const std::string_view name = sysctl["name"].as_string();
    if (std::find(kSysctls.begin(), kEnd, name) == kEnd) bad.emplace_back(name);
  }
  if (bad.empty()) return std::nullopt;
  return Violation{"forbidden sysctls", joined(bad, ", ")};
}

Result check_host_process(const Pod& pod) {
  const Setters setters = setters_of(
      pod, [](const Value context) { return context["windowsOptions"]["hostProcess"].as_bool(); });
  if (setters.empty()) return std::nullopt;
  return Violation{"hostProcess",
                   fmt::format("{} must not set securityContext.windowsOptions.hostProcess=true",
                               setters.to_string())};
}

// Restricted.

Result check_escalation(const Pod& pod) {
  const Names containers = containers_that(pod, [](const Value container) {
    return container["securityContext"]["allowPrivilegeEscalation"].as_bool(true);
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"allowPrivilegeEscalation != false",
                   fmt::format("{} must set securityContext.allowPrivilegeEscalation=false",
                               list_of("container", containers))};
}

Result check_dropped_capabilities(const Pod& pod) {
  const Names keeping = containers_that(pod, [](const Value container) {
    const auto dropped = container["securityContext"]["capabilities"]["drop"].elements();
    return std::none_of(dropped.begin(), dropped.end(),
                        [](const Value one) { return one.as_string() == "ALL"; });
  });
  Values bad;
  const Names adding = containers_that_add(
      pod, [](std::string_view name) { return name == "NET_BIND_SERVICE"; }, bad);
  Names details;
  if (!keeping.empty()) {
    details.push_back(fmt::format(R"({} must set securityContext.capabilities.drop=["ALL"])",
                                  list_of("container", keeping)));
  }
  if (!adding.empty()) details.push_back(added_capabilities(adding, bad));
  if (details.empty()) return std::nullopt;
  return Violation{"unrestricted capabilities", joined(details, "; ")};
}

constexpr std::array<std::string_view, 9> kAllowedVolumes = {
    "configMap", "csi",   "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim",
    "projected", "secret"};
constexpr std::array<std::string_view, 21> kOtherVolumes = {"hostPath",
                                                            "gcePersistentDisk",
                                                            "awsElasticBlockStore",
                                                            "gitRepo",
                                                            "nfs",
                                                            "iscsi",
                                                            "glusterfs",
                                                            "rbd",
                                                            "flexVolume",
                                                            "cinder",
                                                            "cephfs",
                                                            "flocker",
                                                            "fc",
                                                            "azureFile",
                                                            "vsphereVolume",
                                                            "quobyte",
                                                            "azureDisk",
                                                            "photonPersistentDisk",
                                                            "portworxVolume",
                                                            "scaleIO",
                                                            "storageos"};

Result check_volumes(const Pod& pod) {
  Names bad;
  Values types;
  for (const Value volume : pod.spec["volumes"].elements()) {
    const auto has = [&](std::string_view source) { return volume[source].exists(); };
    if (std::any_of(kAllowedVolumes.begin(), kAllowedVolumes.end(), has)) continue;
    bad.push_back(name_in(volume));
    const auto type = std::find_if(kOtherVolumes.begin(), kOtherVolumes.end(), has);
    types.emplace(type == kOtherVolumes.end() ? std::string_view("unknown") : *type);
  }
  if (bad.empty()) return std::nullopt;
  return Violation{"restricted volume types",
                   fmt::format("{} {} {} {}", list_of("volume", bad), use(bad),
                               counted(types.size(), "restricted volume type"), quoted(types))};
}

Result check_runs_as_root(const Pod& pod) {
  constexpr const char* kReason = "runAsNonRoot != true";
  const Setters setters =
      setters_of(pod, [](const Value context) { return !context["runAsNonRoot"].as_bool(true); });
  if (!setters.empty()) {
    return Violation{kReason, fmt::format("{} must not set securityContext.runAsNonRoot=false",
                                          setters.to_string())};
  }
  if (pod.spec["securityContext"]["runAsNonRoot"].exists()) return std::nullopt;
  const Names silent = containers_that(pod, [](const Value container) {
    return !container["securityContext"]["runAsNonRoot"].exists();
  });
  if (silent.empty()) return std::nullopt;
  return Violation{kReason, fmt::format("pod or {} must set securityContext.runAsNonRoot=true",
                                        list_of("container", silent))};
}

Result check_user(const Pod& pod) {
  const Setters setters =
      setters_of(pod, [](const Value context) { return context["runAsUser"].as_int(1) == 0; });
  if (setters.empty()) return std::nullopt;
  return Violation{"runAsUser=0", fmt::format("{} must not set runAsUser=0", setters.to_string())};
}

Result check_has_seccomp(const Pod& pod) {
  if (Result bad = check_seccomp(pod)) return bad;
  if (pod.spec["securityContext"]["seccompProfile"].exists()) return std::nullopt;
  const Names silent = containers_that(pod, [](const Value container) {
    return !container["securityContext"]["seccompProfile"].exists();
  });
  if (silent.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   fmt::format(R"(pod or {} must set securityContext.seccompProfile.type to )"
                               R"("RuntimeDefault" or "Localhost")",
                               list_of("container", silent))};
}

template <Check kCheck>
Result unless_windows(const Pod& pod) {
  if (pod.spec["os"]["name"].as_string() == "windows") return std::nullopt;
  return kCheck(pod);
}

/// Skips the check for pods with their own user namespace, whose root is not the node's.
template <Check kCheck>
Result with_users_of_host(const Pod& pod) {
  if (!pod.spec["hostUsers"].as_bool(true)) return std::nullopt;
  return kCheck(pod);
}

/// A check of the versions from `since` to before `until`.
struct StandardRule {
  SecurityLevel level;
  std::int64_t since;
  std::int64_t until;
  /// From this version on, "restricted" has a stricter check instead.
  std::int64_t replaced;
  Check check;
};

constexpr SecurityLevel kBase = SecurityLevel::kBaseline;
constexpr SecurityLevel kStrict = SecurityLevel::kRestricted;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Sorted by upstream's names, which determine the order in the message.
constexpr std::array<StandardRule, 30> kRules = {{
    {kBase, 0, kNever, kNever, check_app_armor},
    {kBase, 0, kNever, 22, check_capabilities},
    {kBase, 0, kNever, kNever, check_host_namespaces},
    {kBase, 0, kNever, 0, check_host_paths},
    {kBase, 0, kNever, kNever, check_host_ports},
    {kBase, 34, kNever, kNever, check_hosts_of_handlers},
    {kBase, 0, kNever, kNever, check_privileged},
    {kBase, 0, 35, kNever, check_proc_mount},
    {kBase, 35, kNever, 35, with_users_of_host<check_proc_mount>},
    {kBase, 0, 31, kNever, check_selinux<4>},
    {kBase, 31, kNever, kNever, check_selinux<5>},
    {kBase, 0, 19, kNever, check_seccomp_annotations},
    {kBase, 19, kNever, 19, check_seccomp},
    {kBase, 0, 27, kNever, check_sysctls<5>},
    {kBase, 27, 29, kNever, check_sysctls<6>},
    {kBase, 29, 32, kNever, check_sysctls<10>},
    {kBase, 32, kNever, kNever, check_sysctls<12>},
    {kBase, 0, kNever, kNever, check_host_process},
    {kStrict, 8, 25, kNever, check_escalation},
    {kStrict, 25, kNever, kNever, unless_windows<check_escalation>},
    {kStrict, 22, 25, kNever, check_dropped_capabilities},
    {kStrict, 25, kNever, kNever, unless_windows<check_dropped_capabilities>},
    {kStrict, 35, kNever, kNever, check_proc_mount},
    {kStrict, 0, kNever, kNever, check_volumes},
    {kStrict, 0, 35, kNever, check_runs_as_root},
    {kStrict, 35, kNever, kNever, with_users_of_host<check_runs_as_root>},
    {kStrict, 23, 35, kNever, check_user},
    {kStrict, 35, kNever, kNever, with_users_of_host<check_user>},
    {kStrict, 19, 25, kNever, check_has_seccomp},
    {kStrict, 25, kNever, kNever, unless_windows<check_has_seccomp>},
}};

bool holds(const StandardRule& rule, const SecurityStandard& standard) {
  const std::int64_t minor = standard.minor.value_or(kNever - 1);
  if (minor < rule.since || minor >= rule.until) return false;
  if (standard.level == SecurityLevel::kRestricted) return minor < rule.replaced;
  return rule.level == standard.level;
}

}  // namespace

std::vector<Violation> violations_of(const SecurityStandard& standard, Value metadata, Value spec) {
  std::vector<Violation> out;
  if (standard.allows_everything()) return out;
  const Pod pod{metadata, spec};
  for (const StandardRule& rule : kRules) {
    if (!holds(rule, standard)) continue;
    if (Result violation = rule.check(pod)) out.push_back(std::move(*violation));
  }
  return out;
}

}  // namespace lookout::apiserver::admission
