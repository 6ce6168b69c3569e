#include "apiserver/endpoints/reviews.h"

#include <utility>

#include "apiserver/json.h"
#include "lookout/api/status.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::endpoints {
namespace {

using json::Allocator;
using json::Value;

Value array_of(std::initializer_list<std::string_view> texts, Allocator& allocator) {
  Value out(rapidjson::kArrayType);
  for (const auto text : texts) out.PushBack(json::copy_text(text, allocator), allocator);
  return out;
}

Value user_info(const auth::User& user, Allocator& allocator) {
  Value out(rapidjson::kObjectType);
  json::set(out, "username", user.name, allocator);
  if (!user.uid.empty()) json::set(out, "uid", user.uid, allocator);
  Value groups(rapidjson::kArrayType);
  for (const auto& group : user.groups)
    groups.PushBack(json::copy_text(group, allocator), allocator);
  if (!groups.Empty()) json::set(out, "groups", std::move(groups), allocator);
  if (!user.extra.empty()) {
    Value& extra = json::child(out, "extra", allocator);
    for (const auto& [key, values] : user.extra) {
      Value list(rapidjson::kArrayType);
      for (const auto& value : values) list.PushBack(json::copy_text(value, allocator), allocator);
      json::set(extra, key, std::move(list), allocator);
    }
  }
  return out;
}

void review_token(const api::Object& review, const auth::Authenticator& authenticator,
                  Value& status, Allocator& allocator) {
  const std::string_view token = review["spec"]["token"].as_string();
  if (token.empty())
    throw api::StatusError::bad_request("token is required for TokenReview in authentication");
  const auto user = authenticator.review(token);
  if (!user) {
    json::set(status, "user", Value(rapidjson::kObjectType), allocator);
    json::set(status, "error", "invalid bearer token", allocator);
    return;
  }
  json::set(status, "authenticated", Value(true), allocator);
  json::set(status, "user", user_info(*user, allocator), allocator);
}

/// Everything is allowed, to put it as rules.
void review_rules(Value& status, Allocator& allocator) {
  const auto rules = [&](std::initializer_list<const char*> fields) {
    Value rule(rapidjson::kObjectType);
    for (const char* field : fields) json::set(rule, field, array_of({"*"}, allocator), allocator);
    Value list(rapidjson::kArrayType);
    list.PushBack(rule, allocator);
    return list;
  };
  json::set(status, "resourceRules", rules({"verbs", "apiGroups", "resources"}), allocator);
  json::set(status, "nonResourceRules", rules({"verbs", "nonResourceURLs"}), allocator);
  json::set(status, "incomplete", Value(false), allocator);
}

}  // namespace

api::Object answer_review(const resources::ServedResource& resource, const api::Object& review,
                          const auth::User& user, const auth::Authenticator& authenticator) {
  json::Document document = review.to_document();
  auto& allocator = document.GetAllocator();
  json::child(document, "metadata", allocator);
  json::erase(document, "status");
  Value& status = json::child(document, "status", allocator);
  const std::string& plural = resource.type.plural;
  if (plural == "tokenreviews") {
    review_token(review, authenticator, status, allocator);
  } else if (plural == "selfsubjectreviews") {
    json::set(status, "userInfo", user_info(user, allocator), allocator);
  } else if (plural == "selfsubjectrulesreviews") {
    review_rules(status, allocator);
  } else {
    const bool resource_named = review["spec"]["resourceAttributes"].is_object();
    const bool path_named = review["spec"]["nonResourceAttributes"].is_object();
    if (resource_named == path_named) {
      throw api::StatusError::invalid(
          "authorization.k8s.io", "", "",
          {{"FieldValueInvalid",
            resource_named
                ? "Invalid value: {}: cannot be specified in combination with resourceAttributes"
                : "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes "
                  "must be specified",
            resource_named ? "spec.nonResourceAttributes" : "spec.resourceAttributes"}});
    }
    json::set(status, "allowed", Value(true), allocator);
  }
  return api::Object::from(document);
}

}  // namespace lookout::apiserver::endpoints
