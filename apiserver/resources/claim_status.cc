// The status of ResourceClaims: allocated devices and their consumers.
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/device_parts.h"
#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

/// Identifies a device in Kubernetes' format.
std::string identity(std::string_view driver, std::string_view pool, std::string_view device,
                     std::string_view share) {
  using api::detail::quote;
  return fmt::format(R"({{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}})", quote(driver),
                     quote(pool), quote(device), quote(share));
}
std::string identity(Value one) {
  return identity(one["driver"].as_string(), one["pool"].as_string(), one["device"].as_string(),
                  one["shareID"].as_string());
}
std::string identity(const json::Value& one) {
  return identity(json::text(one, "driver"), json::text(one, "pool"), json::text(one, "device"),
                  json::text(one, "shareID"));
}

/// Why a text is not in one of the four forms of a UUID, in the words of github.com/google/uuid.
std::optional<std::string> fault_of_uuid(std::string_view text) {
  constexpr std::string_view kPrefix = "urn:uuid:";
  constexpr std::size_t kHyphenated = 36;
  constexpr std::size_t kPlain = 32;
  const std::size_t size = text.size();
  if (size == kHyphenated + kPrefix.size()) {
    const std::string_view prefix = text.substr(0, kPrefix.size());
    if (!base::equal_ignoring_case(prefix, kPrefix))
      return fmt::format("invalid urn prefix: {}", api::detail::quote(prefix));
    text.remove_prefix(kPrefix.size());
  } else if (size == kHyphenated + 2) {
    if (!text.starts_with('{') || !text.ends_with('}')) return "invalid bracketed UUID format";
    text = text.substr(1, kHyphenated);
  } else if (size != kHyphenated && size != kPlain) {
    return fmt::format("invalid UUID length: {}", size);
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_hyphen = text.size() == kHyphenated && (i == 8 || i == 13 || i == 18 || i == 23);
    const std::string_view allowed = is_hyphen ? "-" : "0123456789abcdefABCDEF";
    if (allowed.find(text[i]) == std::string_view::npos) return "invalid UUID format";
  }
  return std::nullopt;
}

void check_share(const Field& id) {
  constexpr std::size_t kNormalSize = 36;
  if (!id.exists()) return;
  if (const auto fault = fault_of_uuid(id.text())) {
    id.invalid_text("error validating uid: " + *fault);
  } else if (id.text().size() != kNormalSize || id.text() != base::lower_case(id.text())) {
    id.invalid_text(
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
        "lowercase hexadecimal characters");
  }
}

void check_device_of(const Field& result) {
  check_driver_name(result["driver"]);
  check_pool_name(result["pool"]);
  result["device"].check_form(rules::check_dns1123_label);
}

void check_allocation(const Field& allocation, Value claim) {
  constexpr std::size_t kMostResults = 32;
  const Field devices = allocation["devices"];
  const std::set<std::string> names = device_request_names(claim["devices"]);
  check_list(devices["results"], kMostResults, [&](const Field& result) {
    check_device_request_name(result["request"], names);
    check_device_of(result);
    check_binding_conditions(result);
    result["tolerations"].each(check_device_toleration);
    check_share(result["shareID"]);
  });
  // The configurations of the claim and of its class.
  check_list(devices["config"], 2 * kMostDeviceConfigs, [&](const Field& config) {
    config["source"].check_required_word({"FromClaim", "FromClass"});
    check_device_request_names(config["requests"], names);
    check_device_config(config, false);
  });
  if (allocation["nodeSelector"].exists()) check_node_selector(allocation["nodeSelector"]);
}

/// An address with the length of its network's prefix.
void check_interface_address(const Field& address) {
  const auto range = IpRange::parse(address.text());
  if (!range) {
    address.invalid_text(
        "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
  } else if (const std::string canonical = range->to_string(); canonical != address.text()) {
    address.invalid_text(fmt::format("must be in canonical form (\"{}\")", canonical));
  }
}

void check_network(const Field& network) {
  constexpr int kLongestName = 256;
  constexpr int kLongestAddress = 128;
  constexpr std::size_t kMostAddresses = 16;
  check_length(network["interfaceName"], kLongestName);
  check_length(network["hardwareAddress"], kLongestAddress);
  check_set(network["ips"], kMostAddresses, check_interface_address, text_of);
}

void check_device_status(const Field& device, const std::set<std::string>& allocated) {
  constexpr std::size_t kMostConditions = 8;
  check_device_of(device);
  check_share(device["shareID"]);
  if (const std::string name = identity(*device); !allocated.contains(name)) {
    device.invalid_as(name, "must be an allocated device in the claim");
  }
  const Field conditions = device["conditions"];
  if ((*conditions).size() > kMostConditions) conditions.too_many(kMostConditions);
  check_conditions(conditions);
  if (device["data"].exists()) check_raw_object(device["data"], false);
  check_network(device["networkData"]);
}

}  // namespace

/// Drops the status of devices that are not allocated.
void prepare_resource_claim_status(json::Value& claim, const json::Value& old,
                                   Allocator& /*allocator*/) {
  json::Value* status = json::find(claim, "status");
  if (status == nullptr || !status->IsObject()) return;
  json::Value* devices = json::find(*status, "devices");
  if (devices == nullptr || !devices->IsArray()) return;
  const auto each_result = [](const json::Value& of, auto visit) {
    const json::Value* part = &of;
    for (const char* name : {"status", "allocation", "devices"}) {
      part = json::find(*part, name);
      if (part == nullptr || !part->IsObject()) return;
    }
    json::for_each(*part, "results", visit);
  };
  std::set<std::string> gone;
  each_result(old, [&](const json::Value& one) { gone.insert(identity(one)); });
  each_result(claim, [&](const json::Value& one) {
    if (one.IsObject()) gone.erase(identity(one));
  });
  if (gone.empty()) return;
  for (auto one = devices->Begin(); one != devices->End();) {
    one = one->IsObject() && gone.contains(identity(*one)) ? devices->Erase(one) : one + 1;
  }
  if (devices->Empty()) json::erase(*status, "devices");
}

void validate_resource_claim_status(const Object& claim, const Object& old, Causes& causes) {
  constexpr std::size_t kMostUsers = 256;
  const Field status(claim["status"], "status", causes);
  const Value before = old["status"];
  const Field users = status["reservedFor"];
  const Field allocation = status["allocation"];
  check_set(
      users, kMostUsers,
      [](const Field& user) {
        for (const char* name : {"resource", "name", "uid"}) user[name].check_present();
      },
      [](const Field& user) { return user["uid"]; });
  std::set<std::string> allocated;
  for (const Value one : (*allocation)["devices"]["results"].elements())
    allocated.insert(identity(one));
  status["devices"].each([&](const Field& device) { check_device_status(device, allocated); });
  std::set<std::string> seen;
  status["devices"].each([&](const Field& device) {
    const std::string name = identity(*device);
    if (seen.insert(name).second) return;
    causes.push_back({"FieldValueDuplicate", "Duplicate value: " + name, device.path()});
  });
  if (!users.empty()) {
    const auto is_old = [&](Value user) {
      for (const Value one : before["reservedFor"].elements()) {
        if (one == user) return true;
      }
      return false;
    };
    if (!allocation.exists()) {
      users.forbidden("may not be specified when `allocated` is not set");
    } else if (claim["metadata"]["deletionTimestamp"].is_string()) {
      for (const Value user : (*users).elements()) {
        if (is_old(user)) continue;
        users.forbidden(
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are "
            "set");
        break;
      }
    }
  }
  if (!allocation.exists()) return;
  if (!before["allocation"].exists()) {
    check_allocation(allocation, claim["spec"]);
  } else if (!allocation.is(before["allocation"])) {
    // kube-apiserver shows the value in Go's syntax.
    allocation.invalid(kImmutable);
  }
}

}  // namespace lookout::apiserver::resources
