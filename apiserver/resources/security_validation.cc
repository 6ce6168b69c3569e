// Validation of security contexts, and of fields that depend on the operating system.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::int64_t kMostOfId = 2147483647;
constexpr std::string_view kLocal = "localhost/";

// --- values of errors in Go's syntax

std::string in_go(Value value) { return value.exists() ? value.to_json() : "null"; }

std::string text_in_go(Value value) { return quote(value.as_string()); }

/// A type and a path.
std::string profile_in_go(Value profile) {
  if (!profile.exists()) return "null";
  return fmt::format(R"({{"Type":{},"LocalhostProfile":{}}})", text_in_go(profile["type"]),
                     in_go(profile["localhostProfile"]));
}

std::string context_in_go(Value context) {
  const Value capabilities = context["capabilities"];
  const Value labels = context["seLinuxOptions"];
  const Value windows = context["windowsOptions"];
  const auto if_there = [](Value value, std::string shown) {
    return value.exists() ? shown : std::string("null");
  };
  return fmt::format(
      R"({{"Capabilities":{},"Privileged":{},"SELinuxOptions":{},"WindowsOptions":{},)"
      R"("RunAsUser":{},"RunAsGroup":{},"RunAsNonRoot":{},"ReadOnlyRootFilesystem":{},)"
      R"("AllowPrivilegeEscalation":{},"ProcMount":{},"SeccompProfile":{},"AppArmorProfile":{}}})",
      if_there(capabilities, fmt::format(R"({{"Add":{},"Drop":{}}})", in_go(capabilities["add"]),
                                         in_go(capabilities["drop"]))),
      in_go(context["privileged"]),
      if_there(labels, fmt::format(R"({{"User":{},"Role":{},"Type":{},"Level":{}}})",
                                   text_in_go(labels["user"]), text_in_go(labels["role"]),
                                   text_in_go(labels["type"]), text_in_go(labels["level"]))),
      if_there(windows,
               fmt::format(R"({{"GMSACredentialSpecName":{},"GMSACredentialSpec":{},)"
                           R"("RunAsUserName":{},"HostProcess":{}}})",
                           in_go(windows["gmsaCredentialSpecName"]),
                           in_go(windows["gmsaCredentialSpec"]), in_go(windows["runAsUserName"]),
                           in_go(windows["hostProcess"]))),
      in_go(context["runAsUser"]), in_go(context["runAsGroup"]), in_go(context["runAsNonRoot"]),
      in_go(context["readOnlyRootFilesystem"]), in_go(context["allowPrivilegeEscalation"]),
      in_go(context["procMount"]), profile_in_go(context["seccompProfile"]),
      profile_in_go(context["appArmorProfile"]));
}

// --- profiles

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
    local.invalid_as(profile_in_go(*profile), "can only be set when seccomp type is Localhost");
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

// --- Windows

/// One to 15 characters of file names; the first one is not a dot.
bool is_net_bios_name(std::string_view name) {
  constexpr std::size_t kLongest = 15;
  return !name.empty() && name.size() <= kLongest && name.front() != '.' &&
         name.find_first_of(R"(\/:*?"<>|)") == std::string_view::npos;
}

/// Labels of letters, digits and dashes, with dots between them.
bool is_domain_name(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  for (;;) {
    const std::size_t end = std::min(name.find('.'), name.size());
    const std::string_view label = name.substr(0, end);
    if (label.empty() || label.size() > kLongest || label.front() == '-' || label.back() == '-' ||
        !std::all_of(label.begin(), label.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; }))
      return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

/// DOMAIN\USER, or USER.
void check_windows_user(const Field& name) {
  constexpr std::size_t kDomain = 256;
  constexpr std::size_t kUser = 104;
  const std::string_view text = name.text();
  if (text.empty()) return name.invalid_text("runAsUserName cannot be an empty string");
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }))
    return name.invalid_text("runAsUserName cannot contain control characters");
  if (std::count(text.begin(), text.end(), '\\') > 1)
    return name.invalid_text("runAsUserName cannot contain more than one backslash");
  const std::size_t slash = text.find('\\');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view domain = has_domain ? text.substr(0, slash) : "";
  const std::string_view user = has_domain ? text.substr(slash + 1) : text;
  if (domain.size() >= kDomain) {
    name.invalid_text(
        fmt::format("runAsUserName's Domain length must be under {} characters", kDomain));
  }
  if (has_domain && !is_net_bios_name(domain) && !is_domain_name(domain))
    name.invalid_text("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  if (user.empty()) {
    name.invalid_text("runAsUserName's User cannot be empty");
  } else if (user.size() > kUser) {
    name.invalid_text(
        fmt::format("runAsUserName's User length must not be longer than {} characters", kUser));
  }
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos)
    name.invalid_text("runAsUserName's User cannot contain only periods or spaces");
  if (user.find_first_of(R"("/\:;|=,+*?<>@[])") != std::string_view::npos) {
    name.invalid_text(
        R"(runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[])");
  }
}

void check_windows_options(const Field& options) {
  constexpr std::size_t kKibibytes = 64;
  if (const Field name = options["gmsaCredentialSpecName"]; name.exists())
    name.check_form(rules::check_dns1123_subdomain);
  if (const Field spec = options["gmsaCredentialSpec"]; spec.exists()) {
    if (spec.empty()) {
      spec.invalid_text("gmsaCredentialSpec cannot be an empty string");
    } else if (spec.text().size() > kKibibytes * 1024) {
      spec.invalid_text(fmt::format("gmsaCredentialSpec size must be under {} KiB", kKibibytes));
    }
  }
  if (options["runAsUserName"].exists()) check_windows_user(options["runAsUserName"]);
}

void check_linux_pod(const Field& spec) {
  const auto check = [](const Field& context) {
    if (context["windowsOptions"].exists())
      context["windowsOptions"].forbidden("windows options cannot be set for a linux pod");
  };
  check(spec["securityContext"]);
  each_container(spec, [&](const Field& container) { check(container["securityContext"]); });
}

void check_windows_pod(const Field& spec) {
  const auto check = [](const Field& field, bool is_set) {
    if (is_set) field.forbidden("cannot be set for a windows pod");
  };
  const auto check_members = [&](const Field& context, Field::Words names) {
    for (const std::string_view name : names) check(context[name], context[name].exists());
  };
  const Field context = spec["securityContext"];
  check_members(context, {"appArmorProfile", "seLinuxOptions"});
  check(spec["hostUsers"], spec["hostUsers"].exists());
  check(spec["hostPID"], spec["hostPID"].is_true());
  check(spec["hostIPC"], spec["hostIPC"].is_true());
  check_members(context, {"seccompProfile", "fsGroup", "fsGroupChangePolicy"});
  check(context["sysctls"], !context["sysctls"].empty());
  check(spec["shareProcessNamespace"], spec["shareProcessNamespace"].exists());
  check_members(context, {"runAsUser", "runAsGroup", "supplementalGroups",
                          "supplementalGroupsPolicy", "seLinuxChangePolicy"});
  each_container(spec, [&](const Field& container) {
    check_members(container["securityContext"],
                  {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
                   "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount",
                   "runAsUser", "runAsGroup"});
  });
}

// --- kernel parameters

/// Segments with dots or slashes between them.
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

/// The name with dots between the segments. If the first separator is a slash, dots are parts of names.
std::string with_dots(std::string_view name) {
  std::string out(name);
  if (const std::size_t first = name.find_first_of("./");
      first == std::string_view::npos || name[first] == '.')
    return out;
  for (char& c : out) {
    if (c == '.' || c == '/') c = c == '.' ? '/' : '.';
  }
  return out;
}

/// Network parameters may not be set with hostNetwork, and IPC parameters not with hostIPC.
void check_host_sysctl(const Field& name, const Field& spec) {
  constexpr std::array<std::string_view, 10> kIpc = {"kernel.sem",    "kernel.shm",
                                                     "kernel.shmall", "kernel.shmmax",
                                                     "kernel.shmmni", "kernel.shm_rmid_forced",
                                                     "kernel.msg",    "kernel.msgmax",
                                                     "kernel.msgmnb", "kernel.msgmni"};
  const std::string text = with_dots(name.text());
  if (text.starts_with("net.") && spec["hostNetwork"].is_true()) {
    name.invalid_text("may not be specified when 'hostNetwork' is true");
  } else if ((text.starts_with("fs.mqueue.") || is_one_of(text, kIpc)) &&
             spec["hostIPC"].is_true()) {
    name.invalid_text("may not be specified when 'hostIPC' is true");
  }
}

void check_sysctls(const Field& parameters, const Field& spec) {
  std::set<std::string_view> names;
  parameters.each([&](const Field& parameter) {
    const Field name = parameter["name"];
    if (!name.check_present()) return;
    if (!is_sysctl(name.text())) {
      name.invalid_text(
          "must have at most 253 characters and match regex "
          "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (!names.insert(name.text()).second) {
      name.duplicate();
    }
    check_host_sysctl(name, spec);
  });
}

// --- legacy annotations

/// The annotation must equal the field.
void check_same_profile(const Field& profile, Value annotation, std::string_view name) {
  if (!profile.exists() || !annotation.exists()) return;
  const std::string_view type = profile["type"].text();
  const std::string_view said = annotation.as_string();
  const bool is_seccomp = name == "seccomp";
  if (type == "Localhost" && said.starts_with(kLocal)) {
    if (said.substr(kLocal.size()) != profile["localhostProfile"].text())
      profile["localhostProfile"].forbidden(
          fmt::format("{} profile in annotation and field must match", name));
    return;
  }
  const bool same = type == "Unconfined" ? said == "unconfined"
                    : type == "RuntimeDefault"
                        ? said == "runtime/default" || (is_seccomp && said == "docker/default")
                        : type != "Localhost";
  if (!same)
    profile["type"].forbidden(fmt::format("{} type in annotation and field must match", name));
}

}  // namespace

std::pair<std::string_view, std::string_view> profile_of_annotation(std::string_view annotation) {
  if (annotation == "unconfined") return {"Unconfined", ""};
  if (annotation == "runtime/default") return {"RuntimeDefault", ""};
  if (annotation.starts_with(kLocal) && annotation.size() > kLocal.size())
    return {"Localhost", annotation.substr(kLocal.size())};
  return {};
}

void check_pod_security(const Field& spec) {
  const Field context = spec["securityContext"];
  context["fsGroup"].check_range(0, kMostOfId);
  context["runAsUser"].check_range(0, kMostOfId);
  context["runAsGroup"].check_range(0, kMostOfId);
  context["supplementalGroups"].each([](const Field& group) { group.check_range(0, kMostOfId); });
  if (spec["hostPID"].is_true() && spec["shareProcessNamespace"].is_true()) {
    spec["shareProcessNamespace"]
        .named(context.path() + ".shareProcessNamespace")
        .invalid("ShareProcessNamespace and HostPID cannot both be enabled");
  }
  check_sysctls(context["sysctls"], spec);
  context["fsGroupChangePolicy"].check_word_if_present({"Always", "OnRootMismatch"});
  check_seccomp_profile(context["seccompProfile"]);
  check_windows_options(context["windowsOptions"]);
  check_app_armor_profile(context["appArmorProfile"]);
  context["supplementalGroupsPolicy"].check_word_if_present({"Merge", "Strict"});
  context["seLinuxChangePolicy"].check_word_if_present({"MountOption", "Recursive"});
}

void check_container_security(const Field& context, bool is_host_user) {
  context["runAsUser"].check_range(0, kMostOfId);
  context["runAsGroup"].check_range(0, kMostOfId);
  const Field proc = context["procMount"];
  if (proc.check_word_if_present({"Default", "Unmasked"}) && is_host_user &&
      proc.text() == "Unmasked")
    proc.invalid_text("`hostUsers` must be false to use `Unmasked`");
  check_seccomp_profile(context["seccompProfile"]);
  if (const Field escalation = context["allowPrivilegeEscalation"];
      escalation.exists() && !escalation.is_true()) {
    const auto refuse_with = [&](std::string_view what) {
      context.invalid_as(
          context_in_go(*context),
          fmt::format("cannot set `allowPrivilegeEscalation` to false and {}", what));
    };
    if (context["privileged"].is_true()) refuse_with("`privileged` to true");
    context["capabilities"]["add"].each([&](const Field& capability) {
      if (capability.text() == "CAP_SYS_ADMIN") refuse_with("`capabilities.Add` CAP_SYS_ADMIN");
    });
  }
  check_windows_options(context["windowsOptions"]);
  check_app_armor_profile(context["appArmorProfile"]);
}

void check_host_process(const Field& spec) {
  const Field of_pod = spec["securityContext"]["windowsOptions"]["hostProcess"];
  std::size_t count = 0;
  std::size_t of_host = 0;
  each_container(spec, [&](const Field& container) {
    ++count;
    const Field own = container["securityContext"]["windowsOptions"]["hostProcess"];
    if (of_pod.exists() && own.exists() && of_pod.is_true() != own.is_true()) {
      own.invalid(
          fmt::format("pod hostProcess value must be identical if both are specified, was {}",
                      of_pod.is_true()));
    }
    if (own.exists() ? own.is_true() : of_pod.is_true()) ++of_host;
  });
  if (of_host == 0) return;
  if (of_host != count) {
    spec.invalid_as(
        R"("")",
        "If pod contains any hostProcess containers then all containers must be HostProcess "
        "containers");
  }
  if (!spec["hostNetwork"].is_true()) {
    spec["hostNetwork"].invalid_as(
        "false", "hostNetwork must be true if pod contains any hostProcess containers");
  }
}

void check_host_users(const Field& spec) {
  if ((*spec["hostUsers"]).as_bool(true)) return;
  for (const auto& [name, shown] :
       {std::pair{"hostNetwork", "hostNetwork"}, std::pair{"hostPID", "HostPID"},
        std::pair{"hostIPC", "HostIPC"}}) {
    if (spec[name].is_true())
      spec[name].named(spec.path() + "." + shown).forbidden("when `hostUsers` is false");
  }
}

void check_os(const Field& spec) {
  const Field os = spec["os"];
  if (!os.exists()) return;
  const Field name = os["name"];
  if (!name.check_present("cannot be empty") ||
      !name.named(os.path()).check_word({"linux", "windows"}))
    return;
  name.text() == "linux" ? check_linux_pod(spec) : check_windows_pod(spec);
}

void check_annotated_profiles(const Object& pod, Causes& causes) {
  const Field spec(pod["spec"], "spec", causes);
  const Value annotations = pod["metadata"]["annotations"];
  check_same_profile(spec["securityContext"]["seccompProfile"], annotations[kSeccompAnnotation],
                     "seccomp");
  each_container(spec, [&](const Field& container) {
    check_same_profile(
        container["securityContext"]["seccompProfile"],
        annotations[std::string(kContainerSeccompAnnotation).append(container["name"].text())],
        "seccomp");
  });
  if (spec["os"]["name"].text() == "windows") return;
  each_container(spec, [&](const Field& container) {
    const Field own = container["securityContext"]["appArmorProfile"];
    const std::string key = std::string(kAppArmorAnnotation).append(container["name"].text());
    const Field of_pod = spec["securityContext"]["appArmorProfile"];
    const Field meant =
        own.exists() ? own : of_pod.named(container.path() + ".securityContext.appArmorProfile");
    check_same_profile(meant, annotations[key], "apparmor");
  });
}

}  // namespace lookout::apiserver::resources
