#include "apiserver/endpoints/api_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "apiserver/auth/forbidden.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/endpoints/compression.h"
#include "apiserver/endpoints/discovery.h"
#include "apiserver/endpoints/indentation.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/openapi.h"
#include "apiserver/endpoints/output.h"
#include "apiserver/endpoints/request_timeout.h"
#include "apiserver/endpoints/token_discovery.h"
#include "apiserver/endpoints/warning_headers.h"
#include "apiserver/endpoints/yaml.h"
#include "apiserver/metrics.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/http/server.h"
#include "lookout/base/http/web_guard.h"
#include "lookout/version.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::StatusError;
using http::Request;
using http::Response;

/// True for paths that need no authentication.
bool is_public(const Request& request) {
  return Health::is_check(request) || request.path == "/version" || request.path == "/version/";
}

constexpr int kOk = 200;
constexpr int kFailures = 400;  // and above

/// The Audit-Id of the request, or a new one.
std::string audit_id(const Request& request) {
  const std::string_view given = request.header("audit-id");
  return given.empty() ? resources::new_uid() : std::string(given);
}

api::Time now() {
  return std::chrono::time_point_cast<api::Time::duration>(std::chrono::system_clock::now());
}

bool is_of_api(const Request& request) {
  return !request.segments.empty() &&
         (request.segments[0] == "api" || request.segments[0] == "apis");
}

/// The response with the paths of all endpoints.
Response paths_response(const Health& health, const resources::ResourceTable& table) {
  std::set<std::string> paths = {"/.well-known/openid-configuration",
                                 "/api",
                                 "/apis",
                                 "/apis/",
                                 "/metrics",
                                 "/openapi/v2",
                                 "/openapi/v3",
                                 "/openapi/v3/",
                                 "/openid/v1/jwks",
                                 "/version"};
  for (const resources::ServedGroup& group : table.groups()) {
    const std::string path = group.name.empty() ? "/api" : "/apis/" + group.name;
    paths.insert(path);
    for (const std::string& version : group.versions) paths.insert(path + "/" + version);
  }
  for (std::string& path : health.paths()) paths.insert(std::move(path));
  Response response;
  response.body = R"({"paths":[)";
  for (const std::string& path : paths) {
    if (response.body.back() != '[') response.body += ',';
    append_json_string(path, response.body);
  }
  response.body += "]}";
  indent(response);
  return response;
}

Response version_response() {
  Response response;
  const std::string_view schema = api::schema_version();
  const std::size_t dot = schema.find('.');
  const std::string_view major = schema.substr(0, dot);
  const std::string_view minor = schema.substr(dot + 1);
  response.body = fmt::format(
      R"({{
  "major": "{0}",
  "minor": "{1}",
  "emulationMajor": "{0}",
  "emulationMinor": "{1}",
  "minCompatibilityMajor": "{0}",
  "minCompatibilityMinor": "{1}",
  "gitVersion": "v{0}.{1}.0-lookout.{2}",
  "gitCommit": "",
  "gitTreeState": "",
  "buildDate": "1970-01-01T00:00:00Z",
  "goVersion": "",
  "compiler": "c++",
  "platform": "linux/amd64"
}})",
      major, minor, kVersion);
  return response;
}

/// A request that counts as running.
struct Running {
  Running(Metrics& metrics, const Request& request) : measured(metrics, request) {}

  Metrics::Request measured;
  std::optional<InFlight::Slot> of_user;
  std::optional<InFlight::Slot> of_address;
};

/// A body whose request counts as running until the body has been sent.
class RunningStream final : public http::BodyStream {
 public:
  RunningStream(std::unique_ptr<http::BodyStream> source, std::unique_ptr<Running> running)
      : source_(std::move(source)), running_(std::move(running)) {}

  Awaitable<bool> next(std::vector<http::Piece>& pieces) override {
    if (!source_->cut_off) source_->cut_off = cut_off;
    return source_->next(pieces);
  }
  void end() override { source_->end(); }
  bool is_open_ended() const override { return source_->is_open_ended(); }
  void on_slow_client() override { source_->on_slow_client(); }

 private:
  const std::unique_ptr<http::BodyStream> source_;
  const std::unique_ptr<Running> running_;
};

void call(const RequestFunction& function, const RequestInfo& info, const auth::User& user) {
  if (!function || !info.is_resource_request) return;
  function({info.verb, info.group, info.resource, info.subresource, info.ns, info.name, user.name});
}

Response not_found() {
  Response response = Response::text(404, "404 page not found\n");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

/// The response to "OPTIONS *", which Go's net/http server sends before any handler.
Response about_server() {
  Response response;
  response.content_type.clear();
  return response;
}

/// Responses are not cacheable unless they set the header themselves.
void forbid_caching(Response& response) {
  const auto is_said = [](const auto& header) { return header.first == "Cache-Control"; };
  if (std::ranges::none_of(response.headers, is_said))
    response.headers.emplace_back("Cache-Control", "no-cache, private");
}

/// Whether the path names a namespace if the resource requires one. Lists and watches may cover all
/// namespaces.
bool is_in_scope(const resources::ServedResource& resource, const RequestInfo& info) {
  if (!resource.type.namespaced) return info.ns.empty();
  return !info.ns.empty() || info.verb == "list" || info.verb == "watch";
}

/// The response for an unknown version: a Status for built-in groups, else plain text.
Response unknown_version(const resources::ResourceTable& table, const std::string& group) {
  for (const auto& resource : table.resources()) {
    if (resource->type.group == group && !resource->custom)
      throw StatusError::generic(404, "", "", "", "", "", 0, false);
  }
  return not_found();
}

}  // namespace

Awaitable<Response> ApiHandler::handle(Request request) const {
  if (request.method == "OPTIONS" && request.target == "*") co_return about_server();
  ++counters_->requests;
  auto running = std::make_unique<Running>(*counters_->metrics, request);
  const RequestInfo info = parse_request_info(request);
  const auto resource = info.is_resource_request
                            ? resources_.table()->find(info.group, info.version, info.resource)
                            : nullptr;
  // All API responses except watches are available in YAML, and all failures.
  const bool fails_in_yaml = prefers_yaml(request);
  const bool in_yaml = fails_in_yaml && is_of_api(request) && info.verb != "watch";
  if (in_yaml) request.headers.insert_or_assign("accept", "application/json");
  Response response;
  bool failed = false;
  std::vector<std::string> warnings;
  Caller caller;
  const Receipt receipt{now(), audit_id(request)};
  try {
    check_timeout(request, info);
    auth::Identity identity = identify(request);
    if (identity.claims) {
      const bool exists = co_await authenticator_.confirm(*identity.claims);
      if (!exists) throw StatusError::unauthorized();
    }
    caller.user = std::move(identity.user);
    authorize(request, info, caller);
    const auth::User& user = caller.acting();
    running->of_user.emplace(
        users_in_flight_->enter(user.name, user, info, policy_.max_requests_per_user));
    running->of_address.emplace(addresses_in_flight_->enter(
        policy_.max_requests_per_address == 0 ? std::string()
                                              : http::counted_address(request.client_address),
        user, info, policy_.max_requests_per_address));
    call(policy_.before_request, info, user);
    response = co_await answer(request, info, user, warnings);
    if (response.status < kFailures) call(policy_.after_request, info, user);
    if (in_yaml) {
      co_await turn_into_yaml(response);
    } else if (is_of_api(request) && wants_indentation(request)) {
      indent(response);
    }
    if (response.status == kOk) co_await compress(request, response);
  } catch (const std::exception&) {
    response = failure(request);
    failed = true;
  }
  if (failed && fails_in_yaml) co_await turn_into_yaml(response);
  for (std::string& warning : warning_headers(warnings))
    response.headers.emplace_back("Warning", std::move(warning));
  forbid_caching(response);
  response.headers.emplace_back("Audit-Id", receipt.id);
  running->measured.finish(info, resource.get(), response.status);
  log_request(request, info, caller, receipt, response.status);
  // An open watch does not count as a running request.
  if (response.stream != nullptr && !response.stream->is_open_ended()) {
    response.stream =
        std::make_unique<RunningStream>(std::move(response.stream), std::move(running));
  }
  co_return response;
}

Response ApiHandler::failure(const Request& request) const {
  api::Status status;
  try {
    throw;
  } catch (const StatusError& e) {
    status = e.status();
  } catch (const storage::StorageError& e) {
    // The storage is unavailable or has unreadable data.
    log::error("{} {}: {}", request.method, request.target, e.what());
    const bool away = e.code() == storage::StorageError::Code::kUnreachable ||
                      e.code() == storage::StorageError::Code::kTimeout;
    status = away ? StatusError::timeout(e.what(), 1).status()
                  : StatusError::internal_error(e.what()).status();
  } catch (const std::exception& e) {
    log::error("{} {}: {}", request.method, request.target, e.what());
    status = StatusError::internal_error(e.what()).status();
  }
  ++counters_->failures;
  log::debug("{} {}: {} {}", request.method, request.target, status.code, status.message);
  const FailureForm form = negotiate_failure(request);
  Response response = status_response(status, form == FailureForm::kProtobuf);
  if (form == FailureForm::kIndented) indent(response);
  return response;
}

std::optional<Response> ApiHandler::refuse(const Request& head) const {
  const RequestInfo info = parse_request_info(head);
  Caller caller;
  try {
    check_timeout(head, info);
    caller.user = identify(head).user;
    authorize(head, info, caller);
    return std::nullopt;
  } catch (const std::exception&) {
    ++counters_->requests;
    Metrics::Request measured(*counters_->metrics, head);
    Response response = failure(head);
    const auto resource = info.is_resource_request
                              ? resources_.table()->find(info.group, info.version, info.resource)
                              : nullptr;
    measured.finish(info, resource.get(), response.status);
    const Receipt receipt{now(), audit_id(head)};
    response.headers.emplace_back("Audit-Id", receipt.id);
    log_request(head, info, caller, receipt, response.status);
    forbid_caching(response);
    return response;
  }
}

auth::Identity ApiHandler::identify(const Request& request) const {
  if (!authenticator_.demands_credentials() && !is_public(request)) {
    // Protects the server from web pages: rejects requests that only they send.
    const std::string why = http::why_foreign(request, policy_.allowed_hosts);
    if (!why.empty()) throw StatusError::forbidden("", "", "", why);
    // `kubectl create --raw` sends no type; web pages cannot use this user agent without a preflight.
    const bool is_kubectl = request.header("user-agent").starts_with("kubectl/");
    if (http::announces_body(request) && request.header("content-type").empty() && !is_kubectl) {
      api::Status status;
      status.code = 415;
      status.reason = api::reason::kUnsupportedMediaType;
      status.message =
          "this server requires no credentials, so it rejects bodies without a Content-Type";
      throw StatusError(std::move(status));
    }
  }
  std::optional<auth::Identity> identity = authenticator_.authenticate(request);
  if (!identity) throw StatusError::unauthorized();
  return *std::move(identity);
}

void ApiHandler::authorize(const Request& request, const RequestInfo& info, Caller& caller) const {
  const auth::Attributes action = attributes_of(request, info);
  caller.impersonated = impersonator_->impersonate(*caller.user, action, request);
  caller.decision = authorizer_.authorize(caller.acting(), action);
  if (!caller.decision.allowed)
    throw auth::forbidden(caller.acting(), action, caller.decision.reason);
}

void ApiHandler::log_request(const Request& request, const RequestInfo& info, const Caller& caller,
                             const Receipt& receipt, int code) const {
  if (policy_.audit_log == nullptr) return;
  policy_.audit_log->write({request, info, receipt.time, receipt.id,
                            caller.user ? &*caller.user : nullptr,
                            caller.impersonated ? &*caller.impersonated : nullptr, code,
                            caller.decision.allowed, caller.decision.reason});
}

Awaitable<void> ApiHandler::count_objects() const {
  const auto table = resources_.table();
  std::set<storage::Interface*> counted;
  for (const auto& resource : table->resources()) {
    if (resource->storage == nullptr || !counted.insert(resource->storage).second) continue;
    if (resource->storage->known_count()) continue;
    const std::size_t count = co_await resource->storage->count();
    counters_->metrics->set_objects(resource->type.group, resource->type.plural, count);
  }
}

Response ApiHandler::metrics() const {
  const auto table = resources_.table();
  std::set<storage::Interface*> counted;
  for (const auto& resource : table->resources()) {
    if (resource->storage == nullptr || !counted.insert(resource->storage).second) continue;
    const std::optional<std::size_t> count = resource->storage->known_count();
    if (count) counters_->metrics->set_objects(resource->type.group, resource->type.plural, *count);
  }
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = counters_->metrics->text() + resources_.backend().metrics();
  return response;
}

Awaitable<Response> ApiHandler::answer(const Request& request, const RequestInfo& info,
                                       const auth::User& user,
                                       std::vector<std::string>& warnings) const {
  if (Health::is_check(request)) co_return co_await health_.answer(request);
  if (request.path == "/metrics" && request.method == "GET") co_return metrics();
  if (!info.is_resource_request) co_return answer_other(request);
  if (info.resource.empty()) co_return not_found();
  const auto table = resources_.table();
  // For unknown groups, and for unknown resources of custom groups, kube-apiserver responds in
  // plain text.
  if (!table->has_version(info.group, info.version)) co_return unknown_version(*table, info.group);
  const auto wanted = table->find(info.group, info.version, info.resource);
  if (wanted != nullptr && wanted->custom && !is_in_scope(*wanted, info)) co_return not_found();
  if (wanted == nullptr) {
    for (const auto& resource : table->resources()) {
      if (resource->type.group == info.group && resource->custom) co_return not_found();
    }
  }
  co_return co_await handler_.handle(request, info, user, warnings);
}

Response ApiHandler::answer_other(const Request& request) const {
  const auto table = resources_.table();
  if (auto found = describe_tokens(request, authenticator_.signer(), server_url_))
    return std::move(*found);
  // Paths without a route of go-restful accept any method.
  if (request.segments.empty() || request.path == "/index.html")
    return paths_response(health_, *table);
  if (request.path == "/version" || request.path == "/version/") {
    if (request.method != "GET") throw StatusError::generic(405, "", "", "", "", "", 0, false);
    check_accepts_type(request, "application/json");
    return version_response();
  }
  if (request.path.starts_with("/openapi/")) {
    const auto documents = documents_->of(table);
    if (auto description = describe(request, *documents)) return std::move(*description);
  }
  if (auto found = discover(request, *table, server_address_)) return std::move(*found);
  if (!is_of_api(request) || request.segments.size() < 2) return not_found();
  const bool core = request.segments[0] == "api";
  const bool names_version = request.segments.size() == (core ? 2 : 3);
  return names_version ? unknown_version(*table, core ? "" : request.segments[1]) : not_found();
}

Response ApiHandler::broken_request(int status, const std::string& message) const {
  ++counters_->requests;
  ++counters_->failures;
  if (status == 413) {
    const std::string limit = fmt::format("limit is {}", policy_.max_body_bytes);
    return status_response(StatusError::request_entity_too_large(limit).status());
  }
  if (status == 501) return Response::text(501, "501 Not Implemented: " + message);
  if (status == 431) return Response::text(431, "431 Request Header Fields Too Large");
  return Response::text(400, "400 Bad Request: " + message);
}

}  // namespace lookout::apiserver::endpoints
