// The rows of nodes, namespaces, events and cluster administration.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apiserver/tables/rows.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::tables {
namespace {

using api::Object;
using api::Value;

std::string node_status(const Object& node) {
  std::string status = "Unknown";
  // If several conditions have this type, the last one counts.
  for (const Value condition : node["status"]["conditions"].elements()) {
    if (condition["type"].as_string() == "Ready")
      status = condition["status"].as_string() == "True" ? "Ready" : "NotReady";
  }
  return node["spec"]["unschedulable"].as_bool() ? status + ",SchedulingDisabled" : status;
}

std::string node_roles(const Object& node) {
  constexpr std::string_view kRole = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const auto& [key, value] : node.labels().members()) {
    if (key.starts_with(kRole)) {
      if (key.size() > kRole.size()) roles.emplace(key.substr(kRole.size()));
    } else if (key == "kubernetes.io/role" && !value.as_string().empty()) {
      roles.emplace(value.as_string());
    }
  }
  return roles.empty() ? "<none>" : join({roles.begin(), roles.end()}, ",");
}

std::string_view node_address(const Object& node, std::string_view type) {
  for (const Value address : node["status"]["addresses"].elements()) {
    if (address["type"].as_string() == type) return address["address"].as_string();
  }
  return "<none>";
}

}  // namespace

void name_and_age_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.age(created(object));
}

void namespace_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(object["status"]["phase"].as_string());
  cells.age(created(object));
}

void node_row(const Object& node, Cells& cells) {
  const Value info = node["status"]["nodeInfo"];
  cells.text(node.name());
  cells.text(node_status(node));
  cells.text(node_roles(node));
  cells.age(created(node));
  cells.text(info["kubeletVersion"].as_string());
  cells.text(node_address(node, "InternalIP"));
  cells.text(node_address(node, "ExternalIP"));
  for (const char* field : {"osImage", "kernelVersion", "containerRuntimeVersion"})
    cells.text(or_else(info[field], "<unknown>"));
}

void event_row(const Object& event, Cells& cells) {
  const Value about = event["involvedObject"];
  const Value series = event["series"];
  const auto age_or = [&](Value timestamp, std::string otherwise) {
    return timestamp.is_string() ? cells.age_text(timestamp) : otherwise;
  };
  const std::string first = age_or(event["firstTimestamp"], cells.age_text(event["eventTime"]));
  std::string last = age_or(event["lastTimestamp"], first);
  std::int64_t count = event["count"].as_int();
  if (series.is_object()) {
    last = cells.age_text(series["lastObservedTime"]);
    count = series["count"].as_int();
  } else if (count == 0) {
    count = 1;
  }
  std::string target(about["kind"].as_string());
  std::transform(target.begin(), target.end(), target.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (const auto name = about["name"].as_string(); !name.empty())
    target += fmt::format("/{}", name);
  const auto component =
      or_else(event["source"]["component"], event["reportingComponent"].as_string());
  const auto instance = or_else(event["source"]["host"], event["reportingInstance"].as_string());
  cells.text(last);
  cells.text(event["type"].as_string());
  cells.text(event["reason"].as_string());
  cells.text(target);
  cells.text(about["fieldPath"].as_string());
  cells.text(instance.empty() ? std::string(component)
                              : fmt::format("{}, {}", component, instance));
  cells.text(base::trim(event["message"].as_string()));
  cells.text(first);
  cells.number(count);
  cells.text(event.name());
}

void component_status_row(const Object& object, Cells& cells) {
  const Value healthy = find_condition(object["conditions"], "Healthy");
  cells.text(object.name());
  cells.text(!healthy.exists()                         ? "Unknown"
             : healthy["status"].as_string() == "True" ? "Healthy"
                                                       : "Unhealthy");
  cells.text(healthy["message"].as_string());
  cells.text(healthy["error"].as_string());
}

void quota_row(const Object& quota, Cells& cells) {
  std::vector<std::string> requests;
  std::vector<std::string> limits;
  const Value used = quota["status"]["used"];
  std::vector<std::pair<std::string, Value>> hard;
  for (const auto& [name, amount] : quota["status"]["hard"].members())
    hard.emplace_back(name, amount);
  std::sort(hard.begin(), hard.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [name, amount] : hard) {
    auto& column = name.starts_with("limits.") ? limits : requests;
    column.push_back(
        fmt::format("{}: {}/{}", name, quantity_text(used[name]), quantity_text(amount)));
  }
  cells.text(quota.name());
  cells.text(join(requests, ", "));
  cells.text(join(limits, ", "));
  cells.age(created(quota));
}

void binding_row(const Object& binding, Cells& cells) {
  const Value role = binding["roleRef"];
  cells.text(binding.name());
  cells.text(fmt::format("{}/{}", role["kind"].as_string(), role["name"].as_string()));
  cells.age(created(binding));
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> accounts;
  for (const Value subject : binding["subjects"].elements()) {
    const auto kind = subject["kind"].as_string();
    const auto name = subject["name"].as_string();
    if (kind == "User") users.emplace_back(name);
    if (kind == "Group") groups.emplace_back(name);
    if (kind == "ServiceAccount")
      accounts.push_back(fmt::format("{}/{}", subject["namespace"].as_string(), name));
  }
  for (const auto* names : {&users, &groups, &accounts}) cells.text(join(*names, ", "));
}

void signing_request_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  const Value conditions = object["status"]["conditions"];
  cells.text(object.name());
  cells.age(created(object));
  cells.text(or_else(spec["signerName"], "<none>"));
  cells.text(spec["username"].as_string());
  const auto duration = spec["expirationSeconds"].to_int();
  cells.text(duration ? api::format_age(std::chrono::seconds(*duration)) : "<none>");
  std::string status = find_condition(conditions, "Denied").exists()     ? "Denied"
                       : find_condition(conditions, "Approved").exists() ? "Approved"
                                                                         : "Pending";
  if (find_condition(conditions, "Failed").exists()) status += ",Failed";
  if (!object["status"]["certificate"].as_string().empty()) status += ",Issued";
  cells.text(status);
}

void lease_row(const Object& lease, Cells& cells) {
  cells.text(lease.name());
  cells.text(lease["spec"]["holderIdentity"].as_string());
  cells.age(created(lease));
}

void priority_class_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.number(object["value"].as_int());
  cells.boolean(object["globalDefault"].as_bool());
  cells.age(created(object));
  cells.text(object["preemptionPolicy"].as_string());
}

void runtime_class_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(object["handler"].as_string());
  cells.age(created(object));
}

void webhooks_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.number(static_cast<std::int64_t>(object["webhooks"].size()));
  cells.age(created(object));
}

void policy_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  const Value kind = spec["paramKind"];
  cells.text(object.name());
  cells.number(static_cast<std::int64_t>(spec["validations"].size() + spec["mutations"].size()));
  cells.text(kind.is_object()
                 ? fmt::format("{}/{}", kind["apiVersion"].as_string(), kind["kind"].as_string())
                 : "<unset>");
  cells.age(created(object));
}

void policy_binding_row(const Object& object, Cells& cells) {
  const Value reference = object["spec"]["paramRef"];
  std::string parameter = "<unset>";
  if (const auto name = reference["name"].as_string(); !name.empty()) {
    // It is unknown here whether the parameter kind is namespaced.
    parameter = fmt::format("{}/{}", or_else(reference["namespace"], "*"), name);
  } else if (reference["selector"].is_object()) {
    parameter = selector_text(reference["selector"]);
  }
  cells.text(object.name());
  cells.text(object["spec"]["policyName"].as_string());
  cells.text(parameter);
  cells.age(created(object));
}

void flow_schema_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  cells.text(object.name());
  cells.text(spec["priorityLevelConfiguration"]["name"].as_string());
  cells.number(spec["matchingPrecedence"].as_int());
  cells.text(spec["distinguisherMethod"]["type"].as_string("<none>"));
  cells.age(created(object));
  const Value dangling = find_condition(object["status"]["conditions"], "Dangling");
  cells.text(dangling["status"].as_string("?"));
}

void priority_level_row(const Object& object, Cells& cells) {
  const Value limited = object["spec"]["limited"];
  const Value queuing = limited["limitResponse"]["queuing"];
  const auto number_or_none = [&](Value value) {
    if (value.is_number()) {
      cells.number(value.as_int());
    } else {
      cells.text("<none>");
    }
  };
  cells.text(object.name());
  cells.text(object["spec"]["type"].as_string());
  number_or_none(limited["nominalConcurrencyShares"]);
  for (const char* field : {"queues", "handSize", "queueLengthLimit"})
    number_or_none(queuing[field]);
  cells.age(created(object));
}

void resource_claim_row(const Object& object, Cells& cells) {
  const bool deleted = object["metadata"]["deletionTimestamp"].exists();
  std::vector<std::string> states;
  if (deleted) states.emplace_back("deleted");
  if (!object["status"]["allocation"].is_object()) {
    if (!deleted) states.emplace_back("pending");
  } else {
    states.emplace_back("allocated");
    if (!object["status"]["reservedFor"].empty()) states.emplace_back("reserved");
  }
  cells.text(object.name());
  cells.text(join(states, ","));
  cells.age(created(object));
}

void resource_slice_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  cells.text(object.name());
  cells.text(spec["nodeName"].as_string());
  cells.text(spec["driver"].as_string());
  cells.text(spec["pool"]["name"].as_string());
  cells.age(created(object));
}

void api_service_row(const Object& object, Cells& cells) {
  const Value service = object["spec"]["service"];
  const Value available = find_condition(object["status"]["conditions"], "Available");
  cells.text(object.name());
  cells.text(service.is_object() ? fmt::format("{}/{}", service["namespace"].as_string(),
                                               service["name"].as_string())
                                 : "Local");
  std::string status(available["status"].as_string("Unknown"));
  if (const auto reason = available["reason"].as_string();
      available.exists() && status != "True" && !reason.empty())
    status += fmt::format(" ({})", reason);
  cells.text(status);
  cells.age(created(object));
}

}  // namespace lookout::apiserver::tables
