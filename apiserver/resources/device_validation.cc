// Validation of device classes, resource claims and their templates. CEL expressions are not
// validated, except for their length.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/device_parts.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

void check_selectors(const Field& selectors, bool stored) {
  constexpr std::size_t kMost = 32;
  constexpr int kLongest = 10 * 1024;
  check_list(selectors, kMost, [&](const Field& selector) {
    const Field cel = selector["cel"];
    if (!cel.exists()) return cel.required();
    if (!stored) check_length(cel["expression"], kLongest);
  });
}

/// A request for devices of one class.
void check_exact(const Field& request) {
  const Field mode = request["allocationMode"];
  const Field count = request["count"];
  request["deviceClassName"].check_required_form(rules::check_dns1123_subdomain);
  check_selectors(request["selectors"], false);
  if (mode.text() == "All") {
    if (count.number() != 0)
      count.invalid_number("must not be specified when allocationMode is 'All'");
  } else if (mode.text() != "ExactCount") {
    mode.check_word({"All", "ExactCount"});
  } else if (count.number() <= 0) {
    count.invalid_number("must be greater than zero");
  }
  request["tolerations"].each(check_device_toleration);
}

void check_request(const Field& request) {
  constexpr std::size_t kMostAlternatives = 8;
  constexpr const char* kOne = "exactly one of `exactly` or `firstAvailable` is required";
  const Field exactly = request["exactly"];
  const Field alternatives = request["firstAvailable"];
  request["name"].check_form(rules::check_dns1123_label);
  if (exactly.exists() && !alternatives.empty()) {
    request.invalid_as("null", fmt::format("{}, but multiple fields are set", kOne));
  } else if (exactly.exists()) {
    check_exact(exactly);
  } else if (alternatives.empty()) {
    request.required(kOne);
  } else {
    const auto check_alternative = [](const Field& alternative) {
      alternative["name"].check_form(rules::check_dns1123_label);
      check_exact(alternative);
    };
    check_set(alternatives, kMostAlternatives, check_alternative, name_of);
  }
}

void check_constraint(const Field& constraint, const std::set<std::string>& names) {
  check_device_request_names(constraint["requests"], names);
  const Field same = constraint["matchAttribute"];
  const Field attribute = same.exists() ? same : constraint["distinctAttribute"];
  if (!attribute.exists()) {
    return constraint.required(
        "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple "
        "fields are set");
  }
  check_attribute_name(attribute, attribute.text());
  if (attribute.text().find('/') == std::string_view::npos) {
    attribute.invalid_text(
        "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void check_devices(const Field& devices) {
  constexpr std::size_t kMostConstraints = 32;
  const std::set<std::string> names = device_request_names(*devices);
  check_set(devices["requests"], kMostDeviceRequests, check_request, name_of);
  check_list(devices["constraints"], kMostConstraints,
             [&](const Field& constraint) { check_constraint(constraint, names); });
  check_list(devices["config"], kMostDeviceConfigs, [&](const Field& config) {
    check_device_request_names(config["requests"], names);
    check_device_config(config, false);
  });
}

/// Checks a C identifier.
void check_identifier(const Field& field, std::string_view name) {
  constexpr int kLongest = 32;
  if (name.size() > kLongest) field.causes().push_back(rules::too_long(field.path(), kLongest));
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_part = [&](char c) {
    const char lower = base::lower_case(c);
    return (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '_';
  };
  if (!name.empty() && !is_digit(name.front()) && std::all_of(name.begin(), name.end(), is_part))
    return;
  field.causes().push_back(rules::invalid(
      field.path(), name,
      "a valid C identifier must start with alphabetic character or '_', followed by a string of "
      "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
      "validation is '[A-Za-z_][A-Za-z0-9_]*')"));
}

/// Unchanged values follow the rules for stored ones.
void check_class(const Object& object, Value before, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  const Field configs = spec["config"];
  const auto is_stored = [&](const Field& part, const char* name) {
    return before.exists() && part.is(before[name]);
  };
  check_selectors(spec["selectors"], is_stored(spec["selectors"], "selectors"));
  const bool stored = is_stored(configs, "config");
  check_list(configs, kMostDeviceConfigs,
             [&](const Field& config) { check_device_config(config, stored); });
  const Field name = spec["extendedResourceName"];
  if (name.exists() && !is_extended_resource(name.text()))
    name.invalid_text("must be a valid extended resource name");
}

}  // namespace

void check_pool_name(const Field& name) {
  constexpr int kLongest = 253;
  if (!name.check_present()) return;
  check_length(name, kLongest);
  for (std::string_view rest = name.text();;) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    for (const auto& message : rules::check_dns1123_subdomain(part))
      name.causes().push_back(rules::invalid(name.path(), part, message));
    if (end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

void check_length(const Field& text, int most) {
  if (text.text().size() > static_cast<std::size_t>(most))
    text.causes().push_back(rules::too_long(text.path(), most));
}

std::set<std::string> device_request_names(Value devices) {
  std::set<std::string> names;
  for (const Value request : devices["requests"].elements()) {
    const std::string name(request["name"].as_string());
    names.insert(name);
    for (const Value one : request["firstAvailable"].elements())
      names.insert(fmt::format("{}/{}", name, one["name"].as_string()));
  }
  return names;
}

void check_device_request_name(const Field& reference, const std::set<std::string>& names) {
  constexpr const char* kName =
      "must be the name of a request in the claim or the name of a request and a subrequest "
      "separated by '/'";
  const std::string_view text = reference.text();
  const std::size_t slash = text.find('/');
  const std::string_view rest =
      slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  if (rest.find('/') != std::string_view::npos) return reference.invalid_text(kName);
  const auto check_name = [&](std::string_view name) {
    for (const auto& message : rules::check_dns1123_label(name))
      reference.causes().push_back(rules::invalid(reference.path(), name, message));
  };
  check_name(text.substr(0, slash));
  if (slash != std::string_view::npos) check_name(rest);
  if (!names.contains(std::string(text))) reference.invalid_text(kName);
}

void check_device_request_names(const Field& references, const std::set<std::string>& names) {
  const auto check = [&](const Field& one) { check_device_request_name(one, names); };
  check_set(references, kMostDeviceRequests, check, text_of);
}

void check_device_config(const Field& config, bool stored) {
  const Field opaque = config["opaque"];
  if (!opaque.exists()) return opaque.required();
  check_driver_name(opaque["driver"]);
  check_raw_object(opaque["parameters"], stored);
}

void check_raw_object(const Field& object, bool stored) {
  constexpr std::size_t kLongest = 10 * 1024;
  if (!object.exists()) {
    object.required();
  } else if (!stored && (*object).to_json().size() > kLongest) {
    object.causes().push_back(rules::too_long(object.path(), kLongest));
  } else if (!(*object).is_object()) {
    object.causes().push_back(
        rules::invalid(object.path(), "<value omitted>", "must be a valid JSON object"));
  }
}

void check_device_toleration(const Field& toleration) {
  const Field relation = toleration["operator"];
  const Field value = toleration["value"];
  const Field effect = toleration["effect"];
  toleration["key"].check_form_if_present(rules::check_qualified_name);
  if (relation.text() == "Exists") {
    if (!value.empty()) value.invalid_text("must be empty for operator `Exists`");
  } else if (relation.empty() || relation.check_word({"Equal", "Exists"})) {
    value.check_form(rules::check_label_value);
  }
  if (!effect.empty()) effect.check_word({"NoExecute", "NoSchedule", "None"});
}

void check_attribute_name(const Field& field, std::string_view name) {
  constexpr int kLongestDomain = 63;
  const auto refuse = [&](std::string_view part, std::string_view why) {
    field.causes().push_back(rules::invalid(field.path(), part, why));
  };
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return check_identifier(field, name);
  const std::string_view domain = name.substr(0, slash);
  const std::string_view rest = name.substr(slash + 1);
  // Kubernetes 1.36 accepts any name with several slashes.
  if (rest.find('/') != std::string_view::npos) return;
  if (domain.empty()) {
    refuse("", "the domain must not be empty");
  } else {
    if (domain.size() > kLongestDomain)
      field.causes().push_back(rules::too_long(field.path(), kLongestDomain));
    for (const auto& message : rules::check_dns1123_subdomain(base::lower_case(domain)))
      refuse(domain, message);
  }
  if (rest.empty()) {
    refuse("", "the name must not be empty");
  } else {
    check_identifier(field, rest);
  }
}

void check_binding_conditions(const Field& device) {
  constexpr std::size_t kMost = 4;
  const Field conditions = device["bindingConditions"];
  const Field failures = device["bindingFailureConditions"];
  const auto check_name = [](const Field& name) { name.check_form(rules::check_qualified_name); };
  check_list(conditions, kMost, check_name);
  check_list(failures, kMost, check_name);
  std::set<std::string_view> required;
  conditions.each([&](const Field& name) {
    if (!required.insert(name.text()).second) name.duplicate();
  });
  std::set<std::string_view> seen;
  failures.each([&](const Field& name) {
    if (!seen.insert(name.text()).second) name.duplicate();
    if (required.contains(name.text()))
      name.invalid_text("bindingFailureConditions must not overlap with bindingConditions");
  });
  if (conditions.empty() && !failures.empty())
    conditions.invalid("bindingConditions are required to use bindingFailureConditions");
  if (failures.empty() && !conditions.empty())
    failures.invalid("bindingFailureConditions are required to use bindingConditions");
}

void validate_new_device_class(const Object& object, Causes& causes) {
  check_class(object, Value(), causes);
}

void validate_device_class_update(const Object& object, const Object& old, Causes& causes) {
  check_class(object, old["spec"], causes);
}

void validate_new_resource_claim(const Object& claim, Causes& causes) {
  check_devices(Field(claim["spec"]["devices"], "spec.devices", causes));
}

void validate_resource_claim_update(const Object& claim, const Object& old, Causes& causes) {
  const Field spec(claim["spec"], "spec", causes);
  if (!spec.is(old["spec"])) spec.invalid(kImmutable);
}

void validate_resource_claim_template(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["metadata"].check_template_metadata();
  check_devices(spec["spec"]["devices"]);
}

}  // namespace lookout::apiserver::resources
