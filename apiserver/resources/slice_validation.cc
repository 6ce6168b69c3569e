// Validation of resource slices: the devices that a driver offers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/device_parts.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

// --- attributes

/// Calls `holds(part)` for the parts of a text between dots. Returns their number, or 0 if one call
/// returns false.
template <class Holds>
int count_parts(std::string_view text, Holds holds) {
  for (int parts = 1;; ++parts) {
    const std::size_t dot = text.find('.');
    if (!holds(text.substr(0, dot))) return 0;
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

/// 1.2.3-pre.release+build, as in semver.org.
bool is_semantic_version(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
  const auto has_only = [](std::string_view part, std::string_view characters) {
    return !part.empty() && part.find_first_not_of(characters) == std::string_view::npos;
  };
  const auto is_number = [&](std::string_view part) {
    return has_only(part, kDigits) && (part.size() == 1 || part.front() != '0');
  };
  const auto is_build = [&](std::string_view part) { return has_only(part, kLetters); };
  const auto is_release = [&](std::string_view part) {
    return is_build(part) && (!has_only(part, kDigits) || is_number(part));
  };
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (count_parts(text.substr(plus + 1), is_build) == 0) return false;
    text = text.substr(0, plus);
  }
  if (const std::size_t hyphen = text.find('-'); hyphen != std::string_view::npos) {
    if (count_parts(text.substr(hyphen + 1), is_release) == 0) return false;
    text = text.substr(0, hyphen);
  }
  return count_parts(text, is_number) == 3;
}

void check_attribute(const Field& attribute) {
  constexpr const char* kOne = "exactly one value must be specified";
  constexpr int kLongest = 64;
  const Field text = attribute["string"];
  const Field version = attribute["version"];
  check_length(text, kLongest);
  if (version.exists()) {
    if (!is_semantic_version(version.text()))
      version.invalid_text("must be a string compatible with semver.org spec 2.0.0");
    check_length(version, kLongest);
  }
  int values = 0;
  for (const char* kind : {"bool", "int", "string", "version"})
    values += attribute[kind].exists() ? 1 : 0;
  if (values == 0) {
    attribute.invalid_text(kOne);
  } else if (values > 1) {
    // kube-apiserver shows the value in Go's syntax.
    attribute.invalid(kOne);
  }
}

/// Checks attributes or capacities by name. Paths omit the middle of a name that is too long.
template <class Check>
void check_named(const Field& map, Check check) {
  constexpr std::string_view kDots = "...";
  constexpr std::size_t kLongest = 63 + 1 + 32;
  constexpr std::size_t kShown = kLongest - kDots.size();
  map.each_entry([&](std::string_view name, const Field& entry) {
    check_attribute_name(map, name);
    if (name.size() <= kLongest) return check(entry);
    check(entry.named(fmt::format("{}[{}{}{}]", map.path(), name.substr(0, (kShown + 1) / 2), kDots,
                                  name.substr(name.size() - kShown / 2))));
  });
}

// --- capacities

Quantity amount_of(Value amount) {
  return Quantity::parse(amount.as_string()).value_or(Quantity());
}

/// Checks the amounts that a request may have, which are in ascending order.
void check_valid_values(const Field& values, const Quantity& capacity, const Quantity& standard) {
  constexpr std::size_t kMost = 10;
  std::optional<Quantity> before;
  values.each([&](const Field& value) {
    const Quantity amount = amount_of(*value);
    if (before && amount < *before) value.invalid_text("values must be sorted in ascending order");
    before = amount;
  });
  bool has_standard = false;
  const auto check_value = [&](const Field& value) {
    const Quantity amount = amount_of(*value);
    if (amount > capacity) {
      value.invalid_text(
          fmt::format("option is larger than capacity value: {}", capacity.to_string()));
    }
    has_standard = has_standard || amount == standard;
  };
  if (check_list(values, kMost, check_value)) {
    std::set<std::int64_t> seen;
    values.each([&](const Field& value) {
      const std::int64_t amount = amount_of(*value).value();
      if (seen.insert(amount).second) return;
      value.causes().push_back(rules::duplicate(value.path(), std::to_string(amount)));
    });
  }
  if (!has_standard) {
    values.causes().push_back(
        rules::invalid(values.path(), standard.to_string(),
                       "default value is not valid according to the requestPolicy"));
  }
}

/// Whether an amount is a multiple of the step above the smallest one. The step is positive.
bool is_on_step(const Quantity& amount, const Quantity& least, const Quantity& step) {
  // Unsigned, because the difference may overflow. It wraps in Go.
  const std::uint64_t difference =
      static_cast<std::uint64_t>(amount.value()) - static_cast<std::uint64_t>(least.value());
  return static_cast<std::int64_t>(difference) % step.value() == 0;
}

/// Checks the range of amounts that a request may have.
void check_valid_range(const Field& range, const Quantity& capacity, const Quantity& standard) {
  const Field min = range["min"];
  const Field max = range["max"];
  const Field step = range["step"];
  if (!min.exists()) return min.required("required when validRange is defined");
  const Quantity least = amount_of(*min);
  const Quantity most = amount_of(*max);
  const auto refuse = [](const Field& field, const Quantity& amount, std::string_view why,
                         const Quantity& other) {
    field.causes().push_back(rules::invalid(field.path(), amount.to_string(),
                                            fmt::format("{}: {}", why, other.to_string())));
  };
  if (least > capacity) refuse(min, least, "min is larger than capacity value", capacity);
  if (standard < least) refuse(min, standard, "default is less than min", least);
  if (max.exists()) {
    if (least > most) refuse(max, least, "min is larger than max", most);
    if (most > capacity) refuse(max, most, "max is larger than capacity value", capacity);
    if (standard > most) refuse(max, standard, "default is more than max", most);
  }
  if (!step.exists()) return;
  const Quantity by = amount_of(*step);
  if (by <= Quantity()) return step.invalid_text("must be greater than zero");
  if (const Quantity next = least + by; next > capacity) {
    refuse(step, by, fmt::format("one step {} is larger than capacity value", next.to_string()),
           capacity);
  }
  const auto check_step = [&](const Quantity& amount) {
    if (is_on_step(amount, least, by)) return;
    step.causes().push_back(
        rules::invalid(step.path(), amount.to_string(),
                       fmt::format("value is not a multiple of a given step ({}) from ({})",
                                   by.to_string(), least.to_string())));
  };
  check_step(standard);
  if (max.exists()) check_step(most);
}

void check_request_policy(const Field& policy, const Quantity& capacity) {
  const Field standard = policy["default"];
  const Field values = policy["validValues"];
  const Field range = policy["validRange"];
  if (!values.empty() && range.exists()) {
    policy.forbidden(
        "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at "
        "the same time");
  } else if (!values.empty()) {
    if (!standard.exists()) return standard.required("required when validValues is defined");
    check_valid_values(values, capacity, amount_of(*standard));
  } else if (range.exists()) {
    if (!standard.exists()) return standard.required("required when validRange is defined");
    check_valid_range(range, capacity, amount_of(*standard));
  }
}

void check_capacities(const Field& device) {
  const bool is_shared = device["allowMultipleAllocations"].is_true();
  check_named(device["capacity"], [&](const Field& capacity) {
    const Field policy = capacity["requestPolicy"];
    if (!policy.exists()) return;
    if (!is_shared) return policy.forbidden("allowMultipleAllocations must be true");
    check_request_policy(policy, amount_of(*capacity["value"]));
  });
}

// --- counters

void check_counters(const Field& counters) {
  constexpr std::size_t kMost = 32;
  if (!counters.check_present()) return;
  if ((*counters).size() > kMost) return counters.too_many(kMost);
  counters.each_entry([&](std::string_view name, const Field& /*counter*/) {
    for (const auto& message : rules::check_dns1123_label(name))
      counters.causes().push_back(rules::invalid(counters.path(), name, message));
  });
}

void check_counter_set(const Field& set) {
  set["name"].check_required_form(rules::check_dns1123_label);
  check_counters(set["counters"]);
}

void check_consumed_counters(const Field& consumption) {
  consumption["counterSet"].check_required_form(rules::check_dns1123_label);
  check_counters(consumption["counters"]);
}

// --- nodes

/// The fields of a slice or a device that name the nodes with access to the devices. Returns those
/// that are set.
std::vector<std::string> check_nodes(const Field& of, bool is_slice) {
  std::vector<std::string> set;
  const auto note = [&](std::string_view name) { set.push_back(fmt::format("`{}`", name)); };
  if (const Field name = of["nodeName"]; name.exists()) {
    if (name.empty()) {
      name.invalid_text(is_slice ? "must be either unset or set to a non-empty string"
                                 : "must not be empty");
    } else {
      note("nodeName");
      name.check_form(rules::check_dns1123_subdomain);
    }
  }
  if (const Field selector = of["nodeSelector"]; selector.exists()) {
    note("nodeSelector");
    check_node_selector(selector);
    const Field terms = selector["nodeSelectorTerms"];
    // kube-apiserver shows the value in Go's syntax.
    if (is_slice && (*terms).size() != 1) terms.invalid("must have exactly one node selector term");
  }
  const auto check_flag = [&](const char* name) {
    const Field flag = of[name];
    if (flag.is_true()) {
      note(name);
    } else if (flag.exists()) {
      flag.invalid("must be either unset or set to true");
    }
  };
  check_flag("allNodes");
  if (is_slice) check_flag("perDeviceNodeSelection");
  return set;
}

void refuse_several(const Field& of, const std::vector<std::string>& set, std::string_view why) {
  of.causes().push_back(
      rules::invalid(of.path(), fmt::format("{{{}}}", fmt::join(set, ", ")), why));
}

void check_nodes_of_device(const Field& device, bool is_per_device) {
  constexpr const char* kOne =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
      "`perDeviceNodeSelection` is set to true in the ResourceSlice spec";
  if (!is_per_device) {
    if (device["nodeName"].exists() || device["nodeSelector"].exists() ||
        device["allNodes"].exists()) {
      device.invalid_as("null",
                        "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
    }
    return;
  }
  const std::vector<std::string> set = check_nodes(device, false);
  if (set.empty()) {
    device.required(kOne);
  } else if (set.size() > 1) {
    refuse_several(device, set, kOne);
  }
}

// --- devices

void check_taint(const Field& taint) {
  taint["key"].check_form(rules::check_qualified_name);
  taint["value"].check_form(rules::check_label_value);
  taint["effect"].check_required_word({"NoExecute", "NoSchedule", "None"});
}

/// `before` is the device of this name in the old slice. Its taints may stay unchanged.
void check_device(const Field& device, Value before, bool is_per_device) {
  constexpr std::size_t kMostNames = 32;
  constexpr std::size_t kMostTaints = 16;
  constexpr std::size_t kMostConsumptions = 2;
  device["name"].check_form(rules::check_dns1123_label);
  const std::size_t names = (*device["attributes"]).size() + (*device["capacity"]).size();
  if (names > kMostNames) {
    device.invalid_as(
        std::to_string(names),
        fmt::format("the total number of attributes and capacities must not exceed {}",
                    kMostNames));
  }
  check_named(device["attributes"], check_attribute);
  check_capacities(device);
  const Field taints = device["taints"];
  if (!before.exists() || !taints.is(before["taints"]))
    check_list(taints, kMostTaints, check_taint);
  check_set(device["consumesCounters"], kMostConsumptions, check_consumed_counters,
            [](const Field& consumption) { return consumption["counterSet"]; });
  check_nodes_of_device(device, is_per_device);
  check_binding_conditions(device);
}

Value device_named(std::string_view name, Value devices) {
  for (const Value device : devices.elements()) {
    if (device["name"].as_string() == name) return device;
  }
  return {};
}

void check_pool(const Field& pool) {
  check_pool_name(pool["name"]);
  if (pool["resourceSliceCount"].number() <= 0)
    pool["resourceSliceCount"].invalid_number("must be greater than zero");
  pool["generation"].check_range(0, INT64_MAX, "must be greater than or equal to zero");
}

/// `before` is the spec of the old slice, absent for a new slice.
void check_slice(const Field& spec, Value before) {
  constexpr std::size_t kMostDevices = 128;
  constexpr std::size_t kMostAdvancedDevices = 64;
  constexpr std::size_t kMostCounterSets = 8;
  constexpr const char* kOne =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  const Field driver = spec["driver"];
  const Field pool = spec["pool"];
  const Field devices = spec["devices"];
  check_driver_name(driver);
  check_pool(pool);
  if (before.exists()) {
    const auto check_stays = [](const Field& field, Value old) {
      if (!field.is(old)) field.invalid(kImmutable);
    };
    check_stays(pool["name"], before["pool"]["name"]);
    check_stays(driver, before["driver"]);
    check_stays(spec["nodeName"], before["nodeName"]);
  }
  const std::vector<std::string> set = check_nodes(spec, true);
  if (set.empty()) {
    spec.required(kOne);
  } else if (set.size() > 1) {
    refuse_several(spec, set, fmt::format("{}, but multiple fields are set", kOne));
  }
  if (spec["sharedCounters"].exists() && devices.exists())
    spec.invalid_text("only one of `sharedCounters` or `devices` is allowed");
  const auto elements = (*devices).elements();
  const bool is_advanced = std::any_of(elements.begin(), elements.end(), [](Value device) {
    return !device["taints"].empty() || !device["consumesCounters"].empty();
  });
  const bool is_per_device = spec["perDeviceNodeSelection"].is_true();
  check_set(
      devices, is_advanced ? kMostAdvancedDevices : kMostDevices,
      [&](const Field& device) {
        check_device(device, device_named(device["name"].text(), before["devices"]), is_per_device);
      },
      name_of);
  check_set(spec["sharedCounters"], kMostCounterSets, check_counter_set, name_of);
}

}  // namespace

void validate_new_resource_slice(const Object& slice, Causes& causes) {
  check_slice(Field(slice["spec"], "spec", causes), Value());
}

void validate_resource_slice_update(const Object& slice, const Object& old, Causes& causes) {
  check_slice(Field(slice["spec"], "spec", causes), old["spec"]);
}

}  // namespace lookout::apiserver::resources
