// The status of claims to devices: what is allocated, and for whom.
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/field.h"
#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;
using json::Allocator;

/// A device, as Kubernetes shows it.
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

void check_request(const Field& request, const std::set<std::string>& names) {
  constexpr const char* kName =
      "must be the name of a request in the claim or the name of a request and a subrequest "
      "separated by '/'";
  const std::string_view text = request.text();
  const std::size_t slash = text.find('/');
  const std::string_view rest =
      slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  if (rest.find('/') != std::string_view::npos) return request.invalid_text(kName);
  const auto check_name = [&](std::string_view name) {
    for (const auto& message : rules::check_dns1123_label(name))
      request.causes().push_back(rules::invalid(request.path(), name, message));
  };
  check_name(text.substr(0, slash));
  if (slash != std::string_view::npos) check_name(rest);
  if (!names.contains(std::string(text))) request.invalid_text(kName);
}

std::set<std::string> request_names(Value claim) {
  std::set<std::string> names;
  for (const Value request : claim["devices"]["requests"].elements()) {
    const std::string name(request["name"].as_string());
    names.insert(name);
    for (const Value one : request["firstAvailable"].elements())
      names.insert(fmt::format("{}/{}", name, one["name"].as_string()));
  }
  return names;
}

void check_device_of(const Field& result) {
  check_driver_name(result["driver"]);
  check_pool_name(result["pool"]);
  result["device"].check_form(rules::check_dns1123_label);
}

void check_allocation(const Field& allocation, Value claim) {
  constexpr std::size_t kMostResults = 32;
  const Field results = allocation["devices"]["results"];
  const std::set<std::string> names = request_names(claim);
  if ((*results).size() > kMostResults) {
    results.too_many(kMostResults);
  } else {
    results.each([&](const Field& result) {
      check_request(result["request"], names);
      check_device_of(result);
    });
  }
  allocation["devices"]["config"].each([&](const Field& config) {
    config["source"].check_required_word({"FromClaim", "FromClass"});
    config["requests"].each([&](const Field& request) { check_request(request, names); });
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
  const auto check_length = [](const Field& text, int most) {
    if (text.text().size() > static_cast<std::size_t>(most))
      text.causes().push_back(rules::too_long(text.path(), most));
  };
  check_length(network["interfaceName"], kLongestName);
  check_length(network["hardwareAddress"], kLongestAddress);
  const Field addresses = network["ips"];
  if ((*addresses).size() > kMostAddresses) return addresses.too_many(kMostAddresses);
  addresses.each(check_interface_address);
  std::set<std::string_view> seen;
  addresses.each([&](const Field& address) {
    if (!seen.insert(address.text()).second) address.duplicate();
  });
}

void check_device_status(const Field& device, const std::set<std::string>& allocated) {
  constexpr std::size_t kMostConditions = 8;
  constexpr int kLongestData = 10 * 1024;
  check_device_of(device);
  if (const std::string name = identity(*device); !allocated.contains(name)) {
    device.invalid_as(name, "must be an allocated device in the claim");
  }
  const Field conditions = device["conditions"];
  if ((*conditions).size() > kMostConditions) conditions.too_many(kMostConditions);
  check_conditions(conditions);
  if (const Field data = device["data"]; data.exists()) {
    if ((*data).to_json().size() > static_cast<std::size_t>(kLongestData)) {
      data.causes().push_back(rules::too_long(data.path(), kLongestData));
    } else if (!(*data).is_object()) {
      data.causes().push_back(
          rules::invalid(data.path(), "<value omitted>", "must be a valid JSON object"));
    }
  }
  check_network(device["networkData"]);
}

}  // namespace

/// Drops what is said of devices that are not allocated any more.
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
  if ((*users).size() > kMostUsers) {
    users.too_many(kMostUsers);
  } else {
    users.each([](const Field& user) {
      for (const char* name : {"resource", "name", "uid"}) user[name].check_present();
    });
    std::set<std::string_view> seen;
    users.each([&](const Field& user) {
      if (!seen.insert(user["uid"].text()).second) user["uid"].named(user.path()).duplicate();
    });
  }
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
    // (The API server shows the value in Go's syntax.)
    allocation.invalid("field is immutable");
  }
}

}  // namespace lookout::apiserver::resources
