#include "apiserver/audit/audit_log.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "apiserver/auth/user_json.h"
#include "apiserver/json.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/error.h"

namespace lookout::apiserver::audit {
namespace {

using json::Allocator;
using json::Document;
using json::Value;

bool is_write(const std::string& verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete" ||
         verb == "deletecollection";
}

/// Resources whose objects may contain secrets: their bodies are never logged.
bool is_confidential(const endpoints::RequestInfo& info) {
  return info.resource == "secrets" || info.resource == "configmaps" ||
         info.resource == "tokenreviews" ||
         (info.resource == "serviceaccounts" && info.subresource == "token");
}

void add_object(const endpoints::RequestInfo& info, Value& event, Allocator& allocator) {
  if (!info.is_resource_request) return;
  Value& object = json::child(event, "objectRef", allocator);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) json::set(object, name, value, allocator);
  };
  add("resource", info.resource);
  add("namespace", info.ns);
  add("name", info.name);
  add("apiGroup", info.group);
  add("apiVersion", info.version);
  add("subresource", info.subresource);
}

void add_body(const Event& event, Value& out, Allocator& allocator) {
  if (!event.info.is_resource_request || !is_write(event.info.verb) ||
      is_confidential(event.info) || event.request.body.empty())
    return;
  Document body(&allocator);
  // Bodies that are not JSON (protobuf, for example) are not logged.
  if (!json::parse_json(event.request.body, body)) return;
  json::set(out, "requestObject", std::move(static_cast<Value&>(body)), allocator);
}

}  // namespace

AuditLog::AuditLog(const std::string& file, AuditLevel level)
    : level_(level), out_(file, std::ios::app) {
  if (!out_) throw Error(fmt::format("cannot write the audit log {}", file));
}

void AuditLog::write(const Event& event) {
  if (level_ == AuditLevel::kNone) return;
  const bool with_body = level_ == AuditLevel::kRequest;
  const auto now =
      std::chrono::time_point_cast<api::Time::duration>(std::chrono::system_clock::now());
  Document out(rapidjson::kObjectType);
  Allocator& allocator = out.GetAllocator();
  const auto set = [&](std::string_view name, std::string_view value) {
    json::set(out, name, value, allocator);
  };
  set("kind", "Event");
  set("apiVersion", "audit.k8s.io/v1");
  set("level", with_body ? "Request" : "Metadata");
  set("auditID", event.id);
  set("stage", event.info.verb == "watch" ? "ResponseStarted" : "ResponseComplete");
  set("requestURI", event.request.target);
  set("verb", event.info.verb);
  if (event.user != nullptr)
    json::set(out, "user", auth::user_json(*event.user, allocator), allocator);
  if (event.impersonated != nullptr) {
    const auth::Impersonated& other = *event.impersonated;
    json::set(out, "impersonatedUser", auth::user_json(other.user, allocator), allocator);
    if (!other.constraint.empty()) {
      json::set(json::child(out, "authenticationMetadata", allocator), "impersonationConstraint",
                other.constraint, allocator);
    }
  }
  Value addresses(rapidjson::kArrayType);
  addresses.PushBack(json::copy_text(event.request.client_address, allocator), allocator);
  json::set(out, "sourceIPs", std::move(addresses), allocator);
  set("userAgent", event.request.header("user-agent"));
  add_object(event.info, out, allocator);
  Value& status = json::child(out, "responseStatus", allocator);
  json::child(status, "metadata", allocator);
  json::set(status, "code", Value(event.code), allocator);
  if (with_body) add_body(event, out, allocator);
  set("requestReceivedTimestamp", api::format_micro_time(event.received));
  set("stageTimestamp", api::format_micro_time(now));
  Value& annotations = json::child(out, "annotations", allocator);
  json::set(annotations, "authorization.k8s.io/decision", event.allowed ? "allow" : "forbid",
            allocator);
  json::set(annotations, "authorization.k8s.io/reason", event.reason, allocator);
  const std::string line = json::to_json(out) + "\n";
  const std::lock_guard lock(mutex_);
  out_ << line << std::flush;
}

}  // namespace lookout::apiserver::audit
