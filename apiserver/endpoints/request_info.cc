#include "apiserver/endpoints/request_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/fields.h"
#include "lookout/api/status.h"
#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::endpoints {
namespace {

std::string verb_of(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "GET" || method == "HEAD") return "get";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return "";
}

}  // namespace

bool is_true(std::string_view parameter) {
  return parameter != "0" && base::lower_case(parameter) != "false";
}

std::int64_t parse_number(std::string_view parameter) {
  std::int64_t number = 0;
  const bool has_plus = parameter.starts_with('+') && !parameter.starts_with("+-");
  const std::string_view digits = parameter.substr(has_plus ? 1 : 0);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const auto refuse = [&](std::string_view why) {
    return api::StatusError::bad_request(
        fmt::format("strconv.ParseInt: parsing {}: {}", api::detail::quote(parameter), why));
  };
  if (error == std::errc::result_out_of_range) throw refuse("value out of range");
  if (error != std::errc{} || end != digits.data() + digits.size()) throw refuse("invalid syntax");
  return number;
}

RequestInfo parse_request_info(const http::Request& request) {
  RequestInfo info;
  info.path = request.path;
  info.verb = base::lower_case(request.method);
  std::vector<std::string> parts = request.segments;
  const auto drop = [&](std::size_t count) {
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (parts.size() < 3) return info;
  if (parts[0] == "api") {
    info.version = parts[1];
    drop(2);
  } else if (parts[0] == "apis" && parts.size() >= 4) {
    info.group = parts[1];
    info.version = parts[2];
    drop(3);
  } else {
    return info;
  }
  info.is_resource_request = true;
  info.verb = verb_of(request.method);
  if (parts[0] == "watch" && parts.size() >= 2) {
    info.watch_by_path = true;
    drop(1);
  }
  if (parts[0] == "namespaces" && parts.size() > 1) {
    info.ns = parts[1];
    // After a namespace: a namespaced resource, or a subresource of the namespace.
    if (parts.size() > 2 && parts[2] != "status" && parts[2] != "finalize") {
      info.in_namespace = true;
      drop(2);
    }
  }
  info.resource = parts[0];
  if (parts.size() > 1) info.name = parts[1];
  if (parts.size() > 2) info.subresource = parts[2];
  info.has_more_parts = parts.size() > 3;
  if (info.name.empty() && info.verb == "get") {
    const auto watch = request.parameter("watch");
    info.verb = watch && is_true(*watch) ? "watch" : "list";
  }
  if (info.watch_by_path && (info.verb == "get" || info.verb == "list")) info.verb = "watch";
  if (info.name.empty() && info.verb == "delete") info.verb = "deletecollection";
  return info;
}

auth::Attributes attributes_of(const http::Request& request, const RequestInfo& info) {
  auth::Attributes action{info.verb};
  if (!info.is_resource_request) {
    action.is_resource_request = false;
    action.path = info.path;
    return action;
  }
  action.group = info.group;
  action.resource = info.resource;
  action.subresource = info.subresource;
  action.ns = info.ns;
  action.name = info.name;
  const bool reads_many = info.verb == "list" || info.verb == "watch";
  const auto fields = request.parameter("fieldSelector");
  if (!action.name.empty() || !reads_many || !fields) return action;
  try {
    const api::fields::Selector selector = api::fields::parse(*fields);
    for (const auto& requirement : selector.requirements()) {
      if (requirement.equal && requirement.field == "metadata.name" &&
          api::validation::check_path_segment_name(requirement.value).empty())
        action.name = requirement.value;
    }
  } catch (const api::SelectorError&) {
    // The request fails later, for this reason.
  }
  return action;
}

}  // namespace lookout::apiserver::endpoints
