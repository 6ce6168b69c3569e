#include "apiserver/admission/pod_security.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/validation.h"
#include "lookout/base/enum_names.h"

namespace lookout::apiserver::admission {
namespace {

using api::Object;
using api::Value;

constexpr std::string_view kPrefix = "pod-security.kubernetes.io/";
/// The maximum number of pods that are checked when a namespace's standard changes.
constexpr std::size_t kMostPods = 3000;

constexpr auto kLevels =
    base::enum_names<SecurityLevel>({{SecurityLevel::kPrivileged, "privileged"},
                                     {SecurityLevel::kBaseline, "baseline"},
                                     {SecurityLevel::kRestricted, "restricted"}});

/// The minor version of "v1.30".
std::optional<std::int64_t> parse_version(std::string_view text) {
  constexpr std::string_view kBegin = "v1.";
  if (!text.starts_with(kBegin)) return std::nullopt;
  const std::string_view digits = text.substr(kBegin.size());
  const bool valid =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
      (digits == "0" || !digits.starts_with('0'));
  return valid ? api::detail::parse_int(digits) : std::nullopt;
}

/// Reads the labels of one mode: "enforce" and "enforce-version".
class Mode {
 public:
  Mode(std::string_view name, Value labels, std::vector<api::StatusCause>& errors)
      : level_label_(std::string(kPrefix).append(name)),
        version_label_(level_label_ + "-version"),
        level_(labels[level_label_]),
        version_(labels[version_label_]),
        errors_(errors) {}

  bool has_level() const { return level_.exists(); }
  bool has_version() const { return version_.exists(); }

  /// False if the level is invalid.
  bool read(SecurityStandard& standard, SecurityLevel if_wrong) const {
    bool valid = true;
    if (has_level()) {
      const std::optional<SecurityLevel> level = kLevels.value_of(level_.as_string());
      valid = level.has_value();
      standard.level = level.value_or(if_wrong);
      if (!valid) refuse(level_label_, level_, "must be one of privileged, baseline, restricted");
    }
    if (has_version() && version_.as_string() != "latest") {
      standard.minor = parse_version(version_.as_string());
      if (!standard.minor) refuse(version_label_, version_, R"(must be "latest" or "v1.x")");
    }
    return valid;
  }

 private:
  void refuse(std::string_view label, Value value, std::string_view why) const {
    errors_.push_back(api::validation::invalid(fmt::format("metadata.labels[{}]", label),
                                               value.as_string(), why));
  }

  const std::string level_label_;
  const std::string version_label_;
  const Value level_;
  const Value version_;
  std::vector<api::StatusCause>& errors_;
};

template <class Text>
std::string joined(const std::vector<Violation>& violations, Text text) {
  std::string out;
  for (const Violation& one : violations) {
    if (!out.empty()) out += ", ";
    out += text(one);
  }
  return out;
}

bool has_other_images(Value containers, Value old) {
  if (containers.size() != old.size()) return true;
  auto before = old.elements().begin();
  for (const Value container : containers.elements()) {
    if (container["image"].as_string() != (*before)["image"].as_string()) return true;
    ++before;
  }
  return false;
}

Value named(Value containers, std::string_view name) {
  for (const Value container : containers.elements()) {
    if (container["name"].as_string() == name) return container;
  }
  return {};
}

std::string_view controller_of(const Object& pod) {
  for (const Value owner : pod["metadata"]["ownerReferences"].elements()) {
    if (owner["controller"].as_bool()) return owner["uid"].as_string();
  }
  return {};
}

/// The first pod of each controller comes before the others.
std::vector<Object> by_importance(const std::vector<Object>& pods) {
  std::vector<Object> out;
  std::vector<Object> others;
  std::set<std::string_view> seen;
  for (const Object& pod : pods) {
    const std::string_view controller = controller_of(pod);
    (controller.empty() || seen.insert(controller).second ? out : others).push_back(pod);
  }
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

}  // namespace

std::string SecurityStandard::to_string() const {
  const std::string_view name = kLevels.name_of(level);
  return minor ? fmt::format("{}:v1.{}", name, *minor) : fmt::format("{}:latest", name);
}

PodSecurity pod_security_of(Value labels) {
  PodSecurity out;
  if (labels.empty()) return out;
  const Mode enforce("enforce", labels, out.errors);
  const Mode audit("audit", labels, out.errors);
  const Mode warn("warn", labels, out.errors);
  const bool valid = enforce.read(out.enforce, SecurityLevel::kRestricted);
  // Audit annotations do not exist here: only the values are checked.
  SecurityStandard of_audit;
  audit.read(of_audit, SecurityLevel::kPrivileged);
  warn.read(out.warn, SecurityLevel::kPrivileged);
  if (!warn.has_level() && enforce.has_level() && valid && !out.enforce.allows_everything()) {
    out.warn.level = out.enforce.level;
    if (!warn.has_version()) out.warn.minor = out.enforce.minor;
  }
  return out;
}

std::string details_of(const std::vector<Violation>& violations) {
  return joined(violations, [](const Violation& one) {
    return one.detail.empty() ? one.reason : fmt::format("{} ({})", one.reason, one.detail);
  });
}

std::string reasons_of(const std::vector<Violation>& violations) {
  return joined(violations, [](const Violation& one) { return one.reason; });
}

bool changes_security(const Object& pod, const Object& old) {
  const Value spec = pod["spec"];
  const Value before = old["spec"];
  for (const char* list : {"containers", "initContainers"}) {
    if (has_other_images(spec[list], before[list])) return true;
  }
  for (const Value container : spec["ephemeralContainers"].elements()) {
    const Value same = named(before["ephemeralContainers"], container["name"].as_string());
    if (!same.exists() || container["image"].as_string() != same["image"].as_string()) return true;
  }
  return false;
}

std::vector<std::string> warnings_about_pods(std::string_view ns, const SecurityStandard& standard,
                                             const std::vector<Object>& pods) {
  const std::vector<Object> in_order = by_importance(pods);
  const std::size_t checked = std::min(in_order.size(), kMostPods);
  struct Offenders {
    std::string first;
    std::size_t count = 0;
  };
  std::map<std::string, Offenders> by_reason;
  for (std::size_t i = 0; i < checked; ++i) {
    const Object& pod = in_order[i];
    const std::vector<Violation> violations = violations_of(standard, pod["metadata"], pod["spec"]);
    if (violations.empty()) continue;
    Offenders& offenders = by_reason[reasons_of(violations)];
    if (offenders.count++ == 0 || pod.name() < offenders.first)
      offenders.first = std::string(pod.name());
  }
  std::vector<std::string> out;
  if (checked < in_order.size()) {
    out.push_back(fmt::format(
        "new PodSecurity enforce level only checked against the first {} of {} existing pods",
        checked, in_order.size()));
  }
  if (by_reason.empty()) return out;
  out.push_back(
      fmt::format("existing pods in namespace {} violate the new PodSecurity enforce level {}",
                  api::detail::quote(ns), api::detail::quote(standard.to_string())));
  const auto begin = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& [reason, offenders] : by_reason) {
    const std::size_t others = offenders.count - 1;
    out.push_back(others == 0 ? fmt::format("{}: {}", offenders.first, reason)
                              : fmt::format("{} (and {} other pod{}): {}", offenders.first, others,
                                            others == 1 ? "" : "s", reason));
  }
  std::sort(out.begin() + begin, out.end());
  return out;
}

}  // namespace lookout::apiserver::admission
