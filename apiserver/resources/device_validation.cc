// Validation of the kinds of resource.k8s.io: devices and claims to them. Expressions in CEL are not
// looked at.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

void check_selector(const Field& selector) {
  if (!selector["cel"].exists()) selector["cel"].required();
}

void check_opaque(const Field& config) {
  const Field opaque = config["opaque"];
  if (!opaque.exists()) return opaque.required();
  check_driver_name(opaque["driver"]);
  if (!opaque["parameters"].exists()) opaque["parameters"].required();
}

/// A request for devices of one class.
void check_exact(const Field& request) {
  const Field mode = request["allocationMode"];
  const Field count = request["count"];
  request["deviceClassName"].check_required_form(rules::check_dns1123_subdomain);
  request["selectors"].each(check_selector);
  if (mode.text() == "All") {
    if (count.number() != 0)
      count.invalid_number("must not be specified when allocationMode is 'All'");
  } else if (mode.text() != "ExactCount") {
    mode.check_word({"All", "ExactCount"});
  } else if (count.number() <= 0) {
    count.invalid_number("must be greater than zero");
  }
  request["tolerations"].each(check_toleration);
}

void check_devices(const Field& devices) {
  constexpr const char* kOne = "exactly one of `exactly` or `firstAvailable` is required";
  // Requests, and the alternatives in firstAvailable.
  std::set<std::string> names;
  std::set<std::string_view> requests;
  devices["requests"].each([&](const Field& request) {
    const Field name = request["name"];
    const Field exactly = request["exactly"];
    const Field alternatives = request["firstAvailable"];
    name.check_form(rules::check_dns1123_label);
    if (exactly.exists() && !alternatives.empty()) request.invalid(kOne);
    if (!exactly.exists() && alternatives.empty()) request.required(kOne);
    if (exactly.exists()) check_exact(exactly);
    alternatives.each([&](const Field& alternative) {
      alternative["name"].check_form(rules::check_dns1123_label);
      check_exact(alternative);
      names.insert(fmt::format("{}/{}", name.text(), alternative["name"].text()));
    });
    if (!requests.insert(name.text()).second) name.named(request.path()).duplicate();
    names.emplace(name.text());
  });
  const auto check_references = [&](const Field& references) {
    std::set<std::string_view> seen;
    references.each([&](const Field& reference) {
      if (!names.contains(std::string(reference.text()))) {
        reference.invalid_text(
            "must be the name of a request in the claim or the name of a request and a subrequest "
            "separated by '/'");
      }
      if (!seen.insert(reference.text()).second) reference.duplicate();
    });
  };
  devices["constraints"].each([&](const Field& constraint) {
    check_references(constraint["requests"]);
    if (!constraint["matchAttribute"].exists() && !constraint["distinctAttribute"].exists())
      constraint.required(
          "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple "
          "fields are set");
  });
  devices["config"].each([&](const Field& config) {
    check_references(config["requests"]);
    check_opaque(config);
  });
}

void check_taint(const Field& taint) {
  taint["key"].check_form(rules::check_qualified_name);
  taint["value"].check_form(rules::check_label_value);
  taint["effect"].check_required_word({"NoExecute", "NoSchedule", "None"});
}

/// Parts between slashes.
void check_device(const Field& device) {
  constexpr int kLongestText = 64;
  device["name"].check_form(rules::check_dns1123_label);
  device["attributes"].each_entry([](std::string_view, const Field& attribute) {
    int values = 0;
    for (const char* kind : {"bool", "int", "string", "version"})
      values += attribute[kind].exists() ? 1 : 0;
    const Field text = attribute["string"];
    if (text.text().size() > kLongestText)
      text.causes().push_back(rules::too_long(text.path(), kLongestText));
    if (values != 1) {
      attribute.causes().push_back(
          rules::invalid(attribute.path(), "", "exactly one value must be specified"));
    }
  });
  device["taints"].each(check_taint);
}

void stays(const Object& object, const Object& old, Causes& causes) {
  if (!(object["spec"] == old["spec"]))
    Field(object["spec"], "spec", causes).invalid("field is immutable");
}

}  // namespace

void check_pool_name(const Field& name) {
  constexpr int kLongest = 253;
  if (!name.check_present()) return;
  if (name.text().size() > kLongest)
    name.causes().push_back(rules::too_long(name.path(), kLongest));
  for (std::string_view rest = name.text();;) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    for (const auto& message : rules::check_dns1123_subdomain(part))
      name.causes().push_back(rules::invalid(name.path(), part, message));
    if (end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

void validate_device_class(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["selectors"].each(check_selector);
  spec["config"].each(check_opaque);
  const Field name = spec["extendedResourceName"];
  if (name.exists() && (name.text().find('/') == std::string_view::npos ||
                        !rules::check_qualified_name(name.text()).empty()))
    name.invalid_text("must be a valid extended resource name");
}

void validate_resource_claim(const Object& claim, Causes& causes) {
  check_devices(Field(claim["spec"]["devices"], "spec.devices", causes));
}

void validate_resource_claim_update(const Object& claim, const Object& old, Causes& causes) {
  stays(claim, old, causes);
}

void validate_resource_claim_template(const Object& object, Causes& causes) {
  const Field spec(object["spec"], "spec", causes);
  spec["metadata"].check_template_metadata();
  check_devices(spec["spec"]["devices"]);
}

void validate_resource_slice(const Object& slice, Causes& causes) {
  constexpr const char* kNodes =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  const Field spec(slice["spec"], "spec", causes);
  const Field pool = spec["pool"];
  check_driver_name(spec["driver"]);
  check_pool_name(pool["name"]);
  if (pool["resourceSliceCount"].number() <= 0)
    pool["resourceSliceCount"].invalid_number("must be greater than zero");
  pool["generation"].check_range(0, INT64_MAX, "must be greater than or equal to zero");
  int places = 0;
  if (const Field name = spec["nodeName"]; name.exists()) {
    if (name.empty()) {
      name.invalid_text("must be either unset or set to a non-empty string");
    } else {
      ++places;
      name.check_form(rules::check_dns1123_subdomain);
    }
  }
  if (spec["nodeSelector"].exists()) {
    ++places;
    check_node_selector(spec["nodeSelector"]);
  }
  for (const char* field : {"allNodes", "perDeviceNodeSelection"})
    places += spec[field].is_true() ? 1 : 0;
  if (places == 0) {
    spec.required(kNodes);
  } else if (places > 1) {
    spec.invalid(kNodes);
  }
  std::set<std::string_view> names;
  spec["devices"].each([&](const Field& device) {
    check_device(device);
    const Field name = device["name"];
    if (!names.insert(name.text()).second) name.named(device.path()).duplicate();
  });
}

}  // namespace lookout::apiserver::resources
