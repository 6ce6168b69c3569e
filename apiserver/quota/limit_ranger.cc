#include "apiserver/quota/limit_ranger.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/quota/resource_list.h"
#include "lookout/api/quantity.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::quota {
namespace {

using api::Quantity;
using json::Value;

constexpr const char* kAnnotation = "kubernetes.io/limit-ranger";

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

/// Adds the amounts that a container does not set. Returns their names, in order.
std::string fill(Value& container, const char* part, const ResourceList& defaults,
                 Allocator& allocator) {
  std::vector<std::string> names;
  for (const auto& [name, amount] : defaults) {
    Value& resources = json::child(container, "resources", allocator);
    Value& amounts = json::child(resources, part, allocator);
    if (json::find(amounts, name) != nullptr) continue;
    json::set(amounts, name, amount.to_string(), allocator);
    names.push_back(name);
  }
  return joined(names, ", ");
}

/// The defaults of one LimitRange; as in Kubernetes, the last item wins.
ResourceList defaults_of(const Object& range, std::string_view field) {
  ResourceList out;
  for (const api::Value item : range["spec"]["limits"].elements()) {
    if (item["type"].as_string() != "Container") continue;
    for (auto& [name, amount] : resource_list(item[field])) out.insert_or_assign(name, amount);
  }
  return out;
}

/// The requests and limits of a container, a pod or a claim.
struct Asked {
  ResourceList requests;
  ResourceList limits;
};

const Quantity* amount_of(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second;
}

/// One bound of a LimitRange's item, and the list of its violations.
struct Bound {
  std::string_view type;
  std::string_view name;
  const Quantity& amount;
  std::vector<std::string>& errors;

  void refuse(std::string_view bound, std::string_view what, const Quantity* value) const {
    std::string text =
        fmt::format("{} {} usage per {} is {}", bound, name, type, amount.to_string());
    if (value == nullptr) {
      text += fmt::format(".  No {} is specified", what);
    } else {
      text += fmt::format(", but {} is {}", what, value->to_string());
    }
    errors.push_back(std::move(text));
  }
};

void check_min(const Bound& bound, const Asked& asked) {
  const Quantity* request = amount_of(asked.requests, bound.name);
  const Quantity* limit = amount_of(asked.limits, bound.name);
  if (request == nullptr || *request < bound.amount) {
    bound.refuse("minimum", "request", request);
  } else if (limit != nullptr && *limit < bound.amount) {
    bound.refuse("minimum", "limit", limit);
  }
}

void check_max(const Bound& bound, const Asked& asked) {
  const Quantity* request = amount_of(asked.requests, bound.name);
  const Quantity* limit = amount_of(asked.limits, bound.name);
  if (limit == nullptr || *limit > bound.amount) {
    bound.refuse("maximum", "limit", limit);
  } else if (request != nullptr && *request > bound.amount) {
    bound.refuse("maximum", "request", request);
  }
}

/// For objects with only requests.
void check_max_request(const Bound& bound, const Asked& asked) {
  const Quantity* request = amount_of(asked.requests, bound.name);
  if (request == nullptr || *request > bound.amount) bound.refuse("maximum", "request", request);
}

void check_ratio(const Bound& bound, const Asked& asked) {
  const Quantity* request = amount_of(asked.requests, bound.name);
  const Quantity* limit = amount_of(asked.limits, bound.name);
  const std::string begin = fmt::format("{} max limit to request ratio per {} is {}", bound.name,
                                        bound.type, bound.amount.to_string());
  if (request == nullptr || request->is_zero()) {
    bound.errors.push_back(begin + ", but no request is specified or request is 0");
    return;
  }
  if (limit == nullptr || limit->is_zero()) {
    bound.errors.push_back(begin + ", but no limit is specified or limit is 0");
    return;
  }
  __extension__ using Int128 = __int128;
  const Int128 allowed = Int128{request->milli_value()} * bound.amount.milli_value();
  if (Int128{limit->milli_value()} * 1000 <= allowed) return;
  bound.errors.push_back(begin + fmt::format(", but provided ratio is {:.6f}",
                                             limit->as_double() / request->as_double()));
}

template <class Check>
void check_each(api::Value item, const char* field, const Asked& asked,
                std::vector<std::string>& errors, Check check) {
  const std::string type(item["type"].as_string());
  for (const auto& [name, amount] : resource_list(item[field]))
    check(Bound{type, name, amount, errors}, asked);
}

void check_item(api::Value item, const Asked& asked, std::vector<std::string>& errors) {
  check_each(item, "min", asked, errors, check_min);
  check_each(item, "max", asked, errors, check_max);
  check_each(item, "maxLimitRequestRatio", asked, errors, check_ratio);
}

void check_pod(api::Value item, const Object& pod, std::vector<std::string>& errors) {
  const api::Value spec = pod["spec"];
  const std::string_view type = item["type"].as_string();
  if (type == "Pod") {
    check_item(item, {pod_resources(spec, "requests"), pod_resources(spec, "limits")}, errors);
    return;
  }
  if (type != "Container") return;
  for (const char* list : {"containers", "initContainers"}) {
    for (const api::Value container : spec[list].elements()) {
      const api::Value resources = container["resources"];
      check_item(item, {resource_list(resources["requests"]), resource_list(resources["limits"])},
                 errors);
    }
  }
}

void check_claim(api::Value item, const Object& claim, std::vector<std::string>& errors) {
  if (item["type"].as_string() != "PersistentVolumeClaim") return;
  const Asked asked{resource_list(claim["spec"]["resources"]["requests"]), {}};
  check_each(item, "min", asked, errors, check_min);
  check_each(item, "max", asked, errors, check_max_request);
}

/// Several errors in the format of Go's aggregate: without duplicates, in brackets.
std::string aggregate(const std::vector<std::string>& errors) {
  std::vector<std::string> once;
  for (const std::string& error : errors) {
    if (std::find(once.begin(), once.end(), error) == once.end()) once.push_back(error);
  }
  return once.size() == 1 ? once.front() : "[" + joined(once, ", ") + "]";
}

}  // namespace

Object with_default_resources(const std::vector<Object>& ranges, const Object& pod) {
  json::Document document;
  bool changed = false;
  for (const Object& range : ranges) {
    const ResourceList requests = defaults_of(range, "defaultRequest");
    const ResourceList limits = defaults_of(range, "default");
    if (requests.empty() && limits.empty()) continue;
    if (document.IsNull()) document = pod.to_document();
    Allocator& allocator = document.GetAllocator();
    Value* const spec = json::find(document, "spec");
    if (spec == nullptr) return pod;  // validation rejects it
    std::vector<std::string> said;
    for (const auto& [list, name] :
         {std::pair("containers", "container"), std::pair("initContainers", "init container")}) {
      json::for_each(*spec, list, [&, word = name](Value& container) {
        if (!container.IsObject()) return;
        const std::string limited = fill(container, "limits", limits, allocator);
        const std::string requested = fill(container, "requests", requests, allocator);
        const std::string where = fmt::format("{} {}", word, json::text(container, "name"));
        if (!requested.empty()) said.push_back(fmt::format("{} request for {}", requested, where));
        if (!limited.empty()) said.push_back(fmt::format("{} limit for {}", limited, where));
      });
    }
    if (said.empty()) continue;
    Value& annotations =
        json::child(json::child(document, "metadata", allocator), "annotations", allocator);
    json::set(annotations, kAnnotation, "LimitRanger plugin set: " + joined(said, "; "), allocator);
    changed = true;
  }
  return changed ? Object::from(document) : pod;
}

void check_limit_ranges(const std::vector<Object>& ranges, const api::Resource& type,
                        const Object& object, const Object& old) {
  if (!type.group.empty()) return;
  // The only updates of pods here are resizes.
  const bool is_pod = type.plural == "pods";
  const bool is_claim = type.plural == "persistentvolumeclaims";
  if (!is_pod && !is_claim) return;
  if (old && old["metadata"]["deletionTimestamp"].is_string()) return;
  // An unchanged request of a claim is not checked again.
  if (is_claim && old && object["spec"]["resources"] == old["spec"]["resources"]) return;
  for (const Object& range : ranges) {
    std::vector<std::string> errors;
    for (const api::Value item : range["spec"]["limits"].elements()) {
      if (is_pod) check_pod(item, object, errors);
      if (is_claim) check_claim(item, object, errors);
    }
    if (!errors.empty())
      throw api::StatusError::forbidden("", type.plural, object.name(), aggregate(errors));
  }
}

}  // namespace lookout::apiserver::quota
