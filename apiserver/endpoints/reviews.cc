#include "apiserver/endpoints/reviews.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/auth/user_json.h"
#include "apiserver/json.h"
#include "apiserver/resources/field.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/texts.h"
#include "lookout/api/status.h"
#include "lookout/api/time.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::endpoints {
namespace {

using json::Allocator;
using resources::Field;

using Strings = std::vector<std::string>;

json::Value array_of(const Strings& texts, Allocator& allocator) {
  json::Value out(rapidjson::kArrayType);
  for (const std::string& text : texts) out.PushBack(json::copy_text(text, allocator), allocator);
  return out;
}

Awaitable<void> review_token(api::Object review, const auth::Authenticator& authenticator,
                             json::Value& status, Allocator& allocator) {
  std::string token(review["spec"]["token"].as_string());
  if (token.empty())
    throw api::StatusError::bad_request("token is required for TokenReview in authentication");
  Strings audiences = api::detail::texts_of(review["spec"]["audiences"]);
  const auto found = co_await authenticator.review(std::move(token), std::move(audiences));
  if (!found) {
    json::set(status, "user", json::Value(rapidjson::kObjectType), allocator);
    json::set(status, "error", "invalid bearer token", allocator);
    co_return;
  }
  json::set(status, "authenticated", json::Value(true), allocator);
  json::set(status, "user", auth::user_json(found->user, allocator), allocator);
  json::set(status, "audiences", array_of(found->audiences, allocator), allocator);
}

void review_rules(const auth::Authorizer::Rules& found, json::Value& status, Allocator& allocator) {
  json::Value of_resources(rapidjson::kArrayType);
  json::Value of_urls(rapidjson::kArrayType);
  for (const auth::PolicyRule& rule : found.rules) {
    const auto make = [&] {
      json::Value out(rapidjson::kObjectType);
      json::set(out, "verbs", array_of(rule.verbs, allocator), allocator);
      return out;
    };
    if (!rule.resources.empty()) {
      json::Value out = make();
      json::set(out, "apiGroups", array_of(rule.groups, allocator), allocator);
      json::set(out, "resources", array_of(rule.resources, allocator), allocator);
      if (!rule.names.empty())
        json::set(out, "resourceNames", array_of(rule.names, allocator), allocator);
      of_resources.PushBack(out, allocator);
    }
    if (!rule.urls.empty()) {
      json::Value out = make();
      json::set(out, "nonResourceURLs", array_of(rule.urls, allocator), allocator);
      of_urls.PushBack(out, allocator);
    }
  }
  json::set(status, "resourceRules", std::move(of_resources), allocator);
  json::set(status, "nonResourceRules", std::move(of_urls), allocator);
  json::set(status, "incomplete", json::Value(false), allocator);
  if (!found.error.empty()) json::set(status, "evaluationError", found.error, allocator);
}

/// A selector of a resource's attributes, whose requirements follow a rule.
void check_selector(const Field& selector, void (*check_requirement)(const Field&)) {
  if (!selector.exists()) return;
  const Field raw = selector["rawSelector"];
  const Field requirements = selector["requirements"];
  if (!raw.empty() && !requirements.empty())
    raw.invalid_text("may not specified at the same time as requirements");
  if (raw.empty()) {
    requirements.check_present(fmt::format(
        "when {} is specified, requirements or rawSelector is required", selector.path()));
  }
  // Newer clients may send other operators.
  requirements.each(check_requirement);
}

void check_label_requirement(const Field& requirement) {
  requirement.check_requirement_values();
  requirement["key"].check_form(api::validation::check_qualified_name);
  requirement["values"].each(
      [](const Field& value) { value.check_form(api::validation::check_label_value); });
}

void check_field_requirement(const Field& requirement) {
  requirement["key"].check_present("must be specified");
  requirement.check_requirement_values();
}

/// Throws 422 unless the review names exactly one action
/// (k8s.io/kubernetes/pkg/apis/authorization/validation).
void check_access_review(const resources::Target& target, const api::Object& review) {
  const std::string& plural = target.resource->type.plural;
  const bool local = plural == "localsubjectaccessreviews";
  std::vector<api::StatusCause> causes;
  const Field spec(review["spec"], "spec", causes);
  const Field resource = spec["resourceAttributes"];
  const Field path = spec["nonResourceAttributes"];
  if (resource.exists() && path.exists())
    path.invalid("cannot be specified in combination with resourceAttributes");
  if (!resource.exists() && !path.exists()) {
    resource.invalid(
        "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
  if (plural != "selfsubjectaccessreviews" && spec["user"].empty() && spec["groups"].empty())
    spec["user"].invalid_text("at least one of user or group must be specified");
  check_selector(resource["fieldSelector"], check_field_requirement);
  check_selector(resource["labelSelector"], check_label_requirement);
  const Field metadata(review["metadata"], "metadata", causes);
  bool is_empty = true;
  metadata.each_entry([&](std::string_view name, const Field& value) {
    const bool may_be = name == "managedFields" || (local && name == "namespace");
    if (!may_be && !value.empty()) is_empty = false;
  });
  if (!is_empty) metadata.invalid(local ? "must be empty except for namespace" : "must be empty");
  if (local && resource.exists() && resource["namespace"].text() != target.ns)
    resource["namespace"].invalid_text("must match metadata.namespace");
  if (local && path.exists()) path.invalid("disallowed on this kind of request");
  if (!causes.empty())
    throw api::StatusError::invalid("authorization.k8s.io", "", "", std::move(causes));
}

auth::Attributes action_of(api::Value spec) {
  const api::Value resource = spec["resourceAttributes"];
  const api::Value path = spec["nonResourceAttributes"];
  auth::Attributes action;
  if (!resource.is_object()) {
    action.is_resource_request = false;
    action.verb = path["verb"].as_string();
    action.path = path["path"].as_string();
    return action;
  }
  action.verb = resource["verb"].as_string();
  action.group = resource["group"].as_string();
  action.resource = resource["resource"].as_string();
  action.subresource = resource["subresource"].as_string();
  action.ns = resource["namespace"].as_string();
  action.name = resource["name"].as_string();
  return action;
}

auth::User subject_of(api::Value spec) {
  auth::User user{std::string(spec["user"].as_string()), std::string(spec["uid"].as_string()),
                  api::detail::texts_of(spec["groups"])};
  for (const auto& [key, values] : spec["extra"].members())
    user.extra.emplace(key, api::detail::texts_of(values));
  return user;
}

}  // namespace

Awaitable<api::Object> answer_review(resources::Target target, api::Object review, auth::User user,
                                     const auth::Authenticator& authenticator,
                                     const auth::Authorizer& authorizer) {
  json::Document document = review.to_document();
  auto& allocator = document.GetAllocator();
  json::child(document, "metadata", allocator);
  json::erase(document, "status");
  json::Value& status = json::child(document, "status", allocator);
  const std::string& plural = target.resource->type.plural;
  const api::Value spec = review["spec"];
  if (plural == "tokenreviews") {
    co_await review_token(review, authenticator, status, allocator);
  } else if (plural == "selfsubjectreviews") {
    json::set(status, "userInfo", auth::user_json(user, allocator), allocator);
    // The response is a new object without data from the request.
    json::Value metadata(rapidjson::kObjectType);
    json::set(metadata, "creationTimestamp",
              api::format_time(
                  std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())),
              allocator);
    json::set(document, "metadata", std::move(metadata), allocator);
  } else if (plural == "selfsubjectrulesreviews") {
    const std::string ns(spec["namespace"].as_string());
    if (ns.empty()) throw api::StatusError::bad_request("no namespace on request");
    review_rules(authorizer.rules_for(user, ns), status, allocator);
    // The response has no data from the request.
    for (const char* part : {"metadata", "spec"})
      json::set(document, part, json::Value(rapidjson::kObjectType), allocator);
  } else {
    check_access_review(target, review);
    const bool of_oneself = plural == "selfsubjectaccessreviews";
    const auth::User subject = of_oneself ? user : subject_of(spec);
    const auth::Decision decision = authorizer.authorize(subject, action_of(spec));
    json::set(status, "allowed", json::Value(decision.allowed), allocator);
    if (!decision.reason.empty()) json::set(status, "reason", decision.reason, allocator);
  }
  co_return api::Object::from(document);
}

}  // namespace lookout::apiserver::endpoints
