#include "apiserver/endpoints/resource_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "apiserver/endpoints/apply.h"
#include "apiserver/endpoints/body.h"
#include "apiserver/endpoints/enforcement.h"
#include "apiserver/endpoints/eviction.h"
#include "apiserver/endpoints/list_options.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/output.h"
#include "apiserver/endpoints/owner_references.h"
#include "apiserver/endpoints/patch.h"
#include "apiserver/endpoints/pod_subresources.h"
#include "apiserver/endpoints/protobuf_output.h"
#include "apiserver/endpoints/request_options.h"
#include "apiserver/endpoints/reviews.h"
#include "apiserver/endpoints/scale.h"
#include "apiserver/endpoints/token_request.h"
#include "apiserver/endpoints/watch_stream.h"
#include "apiserver/names.h"
#include "apiserver/resources/field_owners.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/pod_warnings.h"
#include "apiserver/resources/warnings.h"
#include "apiserver/resources/write_steps.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::endpoints {
namespace {

using http::Request;
using http::Response;
using resources::Part;
using resources::Store;
using resources::Target;

/// The responses of go-restful, kube-apiserver's request router.
StatusError no_such_route() { return StatusError::generic(404, "", "", "", "", "", 0, false); }
StatusError no_such_method() { return StatusError::generic(405, "", "", "", "", "", 0, false); }

/// Whether the resource has a verb for its objects, or for its collection. The API server has no
/// route for a path without verbs.
bool has_path(const resources::ServedResource& resource, bool of_object) {
  const auto& verbs = resource.verbs;
  return std::any_of(verbs.begin(), verbs.end(), [&](std::string_view verb) {
    if (verb == "get" || verb == "update" || verb == "patch" || verb == "delete") return of_object;
    return !of_object;
  });
}

bool is(const Target& target, std::string_view group, std::string_view plural) {
  return target.resource->type.group == group && target.resource->type.plural == plural;
}

/// The write has succeeded, so this failure is only logged. The tasks that watch the storage retry.
void warn_of_delay(const Target& target, const Error& why) {
  log::warn("a write of {} takes effect later: {}", target.resource->type.qualified_name(),
            why.what());
}

Object success(const Target& target, const Object& object) {
  api::Status status;
  status.status = "Success";
  status.name = target.name;
  status.group = target.resource->type.group;
  status.kind = target.resource->type.plural;
  status.uid = object.uid();
  status.has_details = true;
  return status.to_object();
}

/// The response to creations of non-objects.
Object created_status() {
  api::Status status;
  status.status = "Success";
  status.code = 201;
  return status.to_object();
}

/// Flow schemas in table order: the first match applies to a request.
std::vector<Object> in_order_of_trial(std::vector<Object> schemas) {
  const auto precedence = [](const Object& schema) {
    return schema["spec"]["matchingPrecedence"].as_int();
  };
  std::stable_sort(schemas.begin(), schemas.end(),
                   [&](const Object& a, const Object& b) { return precedence(a) < precedence(b); });
  return schemas;
}

/// The Go type of an object in the API server: "*core.Pod".
std::string go_name(const resources::ServedResource& resource) {
  const api::Resource& type = resource.type;
  if (resource.custom) return "*unstructured.Unstructured";
  const std::string_view package =
      type.group.empty() ? "core" : std::string_view(type.group).substr(0, type.group.find('.'));
  return fmt::format("*{}.{}", package, type.kind);
}

/// Throws api::StatusError (406) if the client requests the metadata of one object. The changes of
/// a request have been made already.
void check_fits_list(const resources::ServedResource& resource, const OutputFormat& format) {
  if (format.transform == Transform::kPartialMetadata && !format.as_list)
    throw wrong_conversion(true, go_name(resource));
}

/// The part of an object that a subresource changes.
Part part_of(std::string_view subresource) {
  if (subresource == "status") return Part::kStatus;
  if (subresource == "approval") return Part::kApproval;
  if (subresource == "finalize") return Part::kFinalizers;
  if (subresource == "ephemeralcontainers") return Part::kEphemeralContainers;
  if (subresource == "resize") return Part::kResources;
  return Part::kMain;
}

/// Warnings about the effect of a deletion.
std::vector<std::string> deletion_warnings(const Target& target,
                                           const resources::DeleteOptions& options) {
  if (!is(target, "batch", "jobs") || options.propagation != resources::Propagation::kDefault)
    return {};
  return {
      "child pods are preserved by default when jobs are deleted; set "
      "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
      "this warning"};
}

/// Rejects exec, attach and portforward for a pod that is not assigned to a node.
void check_has_host(const Target& target, std::string_view subresource, const Object& pod) {
  if (!is(target, "", "pods") || !pod["spec"]["nodeName"].as_string().empty()) return;
  if (subresource != "exec" && subresource != "attach" && subresource != "portforward") return;
  throw StatusError::bad_request(fmt::format("pod {} does not have a host assigned", target.name));
}

StatusError needs_a_node(const Target& target, std::string_view subresource) {
  return StatusError::bad_request(
      fmt::format("{}/{} needs a node that runs containers, and this server has none",
                  target.resource->type.plural, subresource));
}

void check_export(const Request& request) {
  const auto wanted = request.parameter("export");
  if (wanted && is_true(*wanted)) {
    throw StatusError::bad_request(
        "the export parameter, deprecated since v1.14, is no longer supported");
  }
}

storage::Revision revision_parameter(const Request& request) {
  const std::string_view text = request.parameter("resourceVersion").value_or("");
  try {
    return minimum_revision(text, parse_revision(text));
  } catch (const InvalidArgument& e) {
    api::Status status;
    status.code = 500;
    status.message = e.what();
    throw StatusError(std::move(status));
  }
}

/// The manager of a request in managedFields.
std::string manager_of(const Request& request) {
  const std::string_view name = request.parameter("fieldManager").value_or("");
  return fields::manager_of(name, request.header("user-agent"));
}

/// The selected objects of a list, and the head of the response.
struct Listed {
  storage::ListResult result;
  ListHead head;
};

Awaitable<Listed> read_list(const Target& target, const ListOptions& options) {
  const resources::KeyRange range = key_range(target, options);
  storage::ListOptions wanted = storage_list_options(options, range);
  std::optional<StatusError> expired;
  Listed out;
  try {
    out.result =
        co_await target.resource->objects().list(range.key, range.recursive, std::move(wanted));
  } catch (const StatusError& e) {
    if (options.continue_token.empty() || !api::is_resource_expired(e)) throw;
    expired = e;
  }
  if (expired)
    throw continue_expired(decode_continue(options.continue_token, range.key), range.key);
  const storage::Revision revision = out.result.revision;
  out.head.resource_version = std::to_string(revision);
  out.head.remaining = out.result.remaining;
  if (!out.result.continue_key.empty()) {
    out.head.continue_token =
        encode_continue(out.result.continue_key, range.key, static_cast<std::int64_t>(revision));
  }
  co_return out;
}

/// A random time between `least` and twice `least`, so that watches that started together do not end
/// together.
std::chrono::milliseconds spread(std::chrono::milliseconds least) {
  std::random_device random;
  std::uniform_int_distribution<std::int64_t> more(0, std::max<std::int64_t>(least.count(), 1));
  return least + std::chrono::milliseconds(more(random));
}

}  // namespace

struct ResourceHandler::Call {
  const Request& request;
  const RequestInfo& info;
  const auth::User& user;
  std::vector<std::string>& warnings;
  Target target;
  const resources::Subresource* subresource = nullptr;
};

void ResourceHandler::add_warnings(const std::vector<std::string>& warnings, const Call& call) {
  call.warnings.insert(call.warnings.end(), warnings.begin(), warnings.end());
}

resources::DeleteOptions ResourceHandler::deletion_options(const Call& call) {
  if (!call.request.body.empty()) negotiate_input(call.request, true);
  resources::DeleteOptions options = parse_delete_options(call.request);
  add_warnings(deletion_warnings(call.target, options), call);
  return options;
}

admission::WebhookAdmission ResourceHandler::admission_of(const Call& call,
                                                          admission::RequestOptions options) const {
  return {webhooks_, *resources_.table(), call.target,       call.subresource,
          call.user, std::move(options),  call.request.gone, call.warnings};
}

admission::DefaultAdmission ResourceHandler::default_admission_of(
    const Call& call, resources::Admission& next, Object wanted,
    admission::PodSecurity security) const {
  return {next,
          resources_.table(),
          call.target,
          call.info.subresource,
          std::move(wanted),
          std::move(security),
          call.warnings};
}

admission::UserAdmission ResourceHandler::user_admission_of(const Call& call,
                                                            resources::Admission& next) const {
  return {next, authorizer_, call.user, call.target, call.info.subresource, call.info.verb};
}

Target ResourceHandler::route(const Request& request, const RequestInfo& info) const {
  const auto table = resources_.table();
  Target target;
  target.resource = table->find(info.group, info.version, info.resource);
  if (target.resource == nullptr) throw no_such_route();
  const resources::ServedResource& resource = *target.resource;
  if (resource.custom) return route_custom(request, info, std::move(target));
  // Only lists and watches may cover all namespaces.
  const bool reading = info.verb == "list" || info.verb == "watch";
  // The rest of a proxy path is for the proxy's target.
  const bool too_long = info.has_more_parts && info.subresource != "proxy";
  if (too_long || !has_path(resource, !info.name.empty())) throw no_such_route();
  if (request.method == "HEAD") throw no_such_method();
  if (resource.type.namespaced) {
    if (!info.in_namespace && !info.name.empty()) throw no_such_route();
    if (!info.in_namespace && !reading) throw no_such_method();
    target.ns = info.ns;
  } else if (info.in_namespace) {
    throw no_such_route();
  }
  target.name = info.name;
  if (info.watch_by_path && info.verb != "watch") throw no_such_method();
  if (info.subresource.empty()) {
    const bool on_object = !info.name.empty() && !info.watch_by_path;
    const bool on_collection = reading || info.verb == "create" || info.verb == "deletecollection";
    if (on_object == on_collection || !resource.has_verb(info.verb)) throw no_such_method();
    if (info.verb == "patch") check_patch_type(request, false);
    return target;
  }
  const resources::Subresource* subresource = resource.find_subresource(info.subresource);
  if (subresource == nullptr) throw no_such_route();
  const auto& verbs = subresource->verbs;
  if (std::find(verbs.begin(), verbs.end(), info.verb) == verbs.end()) throw no_such_method();
  const bool patches = info.verb == "patch" && info.subresource != "proxy";
  if (patches) check_patch_type(request, false);
  return target;
}

Target ResourceHandler::route_custom(const Request& request, const RequestInfo& info,
                                     Target target) const {
  const api::Resource& type = target.resource->type;
  if (info.watch_by_path && info.verb != "watch") throw no_such_method();
  target.ns = info.ns;
  target.name = info.name;
  const auto demand = [&](const std::vector<std::string>& verbs) {
    if (std::find(verbs.begin(), verbs.end(), info.verb) == verbs.end())
      throw StatusError::method_not_allowed(type.group, type.plural, info.verb);
  };
  if (info.subresource.empty()) {
    demand(target.resource->verbs);
  } else {
    const auto* const subresource = target.resource->find_subresource(info.subresource);
    if (subresource == nullptr) throw StatusError::not_found(type.group, type.plural, info.name);
    demand(subresource->verbs);
  }
  if (info.verb == "patch") check_patch_type(request, true);
  if (info.name.empty() && (info.verb == "update" || info.verb == "patch"))
    throw StatusError::bad_request("name must be provided");
  return target;
}

Awaitable<Response> ResourceHandler::handle(const Request& request, const RequestInfo& info,
                                            const auth::User& user,
                                            std::vector<std::string>& warnings) const {
  Call call{request, info, user, warnings, route(request, info), nullptr};
  const resources::ServedResource& resource = *call.target.resource;
  if (!info.subresource.empty()) call.subresource = resource.find_subresource(info.subresource);
  if (!resource.deprecation.empty()) warnings.push_back(resource.deprecation);
  if (info.verb == "watch") co_return co_await watch(call);
  if (info.verb == "list") co_return co_await list(call);
  if (info.verb == "get") co_return co_await get(call);
  if (info.verb == "update" || info.verb == "patch") co_return co_await change(call);
  if (info.verb == "delete") co_return co_await remove(call);
  if (info.verb == "deletecollection") co_return co_await remove_collection(call);
  if (call.subresource != nullptr) co_return co_await create_subresource(call);
  co_return co_await create(call);
}

Awaitable<Response> ResourceHandler::get(const Call& call) const {
  const OutputFormat format = negotiate_output(call.request, false, call.target.resource->custom);
  const std::string& subresource = call.info.subresource;
  if (!subresource.empty() && subresource != "status" && subresource != "scale" &&
      subresource != "approval" && subresource != "ephemeralcontainers" &&
      subresource != "resize") {
    const Object pod = co_await store_.get(call.target);
    if (subresource == "log") {
      check_log_options(call.request, pod);
      // The container did not run, so there is no log.
      if (pod["spec"]["nodeName"].as_string().empty()) {
        Response nothing;
        nothing.status = 204;
        nothing.headers.emplace_back("Cache-Control", "no-cache, private");
        co_return nothing;
      }
    }
    check_has_host(call.target, subresource, pod);
    throw needs_a_node(call.target, subresource);
  }
  check_export(call.request);
  if (call.target.resource->storage == nullptr) {
    throw StatusError::not_found(call.target.resource->type.group,
                                 call.target.resource->type.plural, call.target.name);
  }
  const storage::Revision revision = revision_parameter(call.request);
  Object object = co_await store_.get(call.target, revision);
  if (subresource == "scale") object = read_scale(*call.target.resource, object);
  co_return respond(call, 200, object, format);
}

Awaitable<Response> ResourceHandler::list(const Call& call) const {
  const resources::ServedResource& resource = *call.target.resource;
  const OutputFormat format =
      negotiate_output(call.request, resource.has_verb("watch"), resource.custom);
  const ListOptions options = parse_list_options(call.request, resource, false, "");
  ++counters_->lists;
  if (resource.storage == nullptr) {
    check_fits_list(resource, format);
    // This server checks no components, so it has no ComponentStatuses.
    if (format.transform == Transform::kTable) {
      Response table;
      table.stream = list_stream(call.target.resource, {}, objects_source({}), format);
      co_return table;
    }
    Response nothing = object_response(
        200,
        Object::parse(fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{{}},"items":[]}})",
                                  resource.list_kind, resource.type.api_version())),
        format);
    co_return nothing;
  }
  auto [result, head] = co_await read_list(call.target, options);
  check_fits_list(resource, format);
  if (format.transform == Transform::kTable &&
      is(call.target, "flowcontrol.apiserver.k8s.io", "flowschemas")) {
    std::vector<Object> schemas = co_await storage::read_all(std::move(result));
    result = storage::ListResult();
    result.objects = objects_source(in_order_of_trial(std::move(schemas)));
  }
  Response response;
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  response.content_type = content_type_of(format, false);
  response.stream =
      list_stream(call.target.resource, std::move(head), std::move(result.objects), format);
  co_return response;
}

Awaitable<Response> ResourceHandler::watch(const Call& call) const {
  const resources::ServedResource& resource = *call.target.resource;
  const OutputFormat format = negotiate_output(call.request, true, resource.custom, true);
  const ListOptions options = parse_list_options(call.request, resource, true, call.target.name);
  const resources::KeyRange range = key_range(call.target, options);
  storage::WatchOptions wanted = storage_watch_options(options);
  WatchStreamOptions stream;
  const auto timeout = options.timeout_seconds.value_or(0) > 0
                           ? std::chrono::milliseconds(std::chrono::seconds(
                                 std::min<std::int64_t>(*options.timeout_seconds, 1 << 30)))
                           : spread(limits_.min_timeout);
  stream.deadline = std::chrono::steady_clock::now() + timeout;
  stream.bookmarks = options.allow_watch_bookmarks;
  stream.bookmark_interval = limits_.bookmark_interval;
  stream.format = format;
  stream.metrics = counters_->metrics->watcher(resource);
  stream.description = fmt::format("the watch of {} by {} from {}", call.request.target,
                                   call.user.name, call.request.client_address);
  auto watch = co_await resource.objects().watch(range.key, range.recursive, std::move(wanted));
  Response response;
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  response.content_type = content_type_of(format, true);
  response.stream = std::make_unique<WatchStream>(call.target.resource, std::move(watch),
                                                  std::move(stream), counters_);
  co_return response;
}

Object ResourceHandler::owned_review(const Call& call, const Object& review) const {
  const resources::ServedResource& resource = *call.target.resource;
  Document document = resources::typed_document(resource, review);
  Allocator& allocator = document.GetAllocator();
  resources::ensure_namespace(json::child(document, "metadata", allocator),
                              resource.type.namespaced ? call.target.ns : std::string(), allocator);
  if (managed_fields_) {
    resources::field_manager(manager_of(call.request), resources_.table(), call.target.resource, {})
        .update(document, nullptr, allocator);
  }
  return Object::from(document);
}

Awaitable<Response> ResourceHandler::create(const Call& call) const {
  const resources::ServedResource& resource = *call.target.resource;
  const OutputFormat format = negotiate_output(call.request, false, resource.custom);
  negotiate_input(call.request, !resource.custom);
  const WriteOptions options = parse_write_options(call.request, "CreateOptions");
  auto [object, warnings] = decode_object(call.request, resource, options.field_validation);
  object = with_distinct_owners(object, OwnersFrom::kBody, warnings);
  add_warnings(warnings, call);
  if (resource.type.namespaced) resources::check_same_namespace(object.ns(), call.target.ns);
  admission::WebhookAdmission admission =
      admission_of(call, admission_options(call.request, options));
  if (resource.storage == nullptr) {
    const bool binds = resource.type.plural == "bindings";
    // Reviews do not check whether a namespace exists.
    if (binds) co_await store_.check_namespace(call.target, object.name());
    object = owned_review(call, object);
    object = co_await admission.admit(std::move(object));
    if (binds) {
      Target pod = call.target;
      pod.resource = resources_.table()->find("", "v1", "pods");
      pod.name = object.name();
      co_await bind_pod(store_, std::move(pod), object, options.dry_run);
      co_return object_response(201, created_status(), format);
    }
    Target review = call.target;
    auth::User user = call.user;
    const Object answer = co_await answer_review(std::move(review), object, std::move(user),
                                                 authenticator_, authorizer_);
    co_return object_response(201, answer, format);
  }
  std::optional<fields::FieldManager> owner;
  if (managed_fields_)
    owner = resources::field_manager(manager_of(call.request), resources_.table(),
                                     call.target.resource, {});
  admission::PodSecurity security =
      co_await admission::read_pod_security(resources_.table(), call.target, call.info.subresource);
  admission::DefaultAdmission default_admission =
      default_admission_of(call, admission, object, std::move(security));
  admission::UserAdmission user_admission = user_admission_of(call, default_admission);
  Target target = call.target;
  target.admission = &user_admission;
  target.fields = owner ? &*owner : nullptr;
  Object created = co_await store_.create(std::move(target), object, options.dry_run);
  if (!options.dry_run) created = co_await after_write(call, created, false);
  add_warnings(resources::profile_warnings(resource, object), call);
  add_warnings(resources::warnings_about(resource, created, Object()), call);
  add_warnings(unenforced(resource, created), call);
  co_return respond(call, 201, created, format);
}

Awaitable<Response> ResourceHandler::create_subresource(const Call& call) const {
  const OutputFormat format = negotiate_output(call.request, false);
  negotiate_input(call.request, true);
  const std::string& name = call.info.subresource;
  if (name != "binding" && name != "eviction" && name != "token") {
    const Object present = co_await store_.get(call.target);
    check_has_host(call.target, name, present);
    throw needs_a_node(call.target, name);
  }
  const WriteOptions options = parse_write_options(call.request, "CreateOptions");
  ExpectedKind expected(call.subresource->kind);
  if (name == "eviction") expected.older_version = "v1beta1";
  auto [body, warnings] = decode_object(call.request, expected, options.field_validation);
  add_warnings(warnings, call);
  body = Object::from(resources::typed_document(expected.type, body));
  resources::check_same_namespace(body.ns(), call.target.ns);
  admission::WebhookAdmission admission =
      admission_of(call, admission_options(call.request, options));
  co_await store_.check_namespace(call.target, call.target.name);
  if (name == "token") {
    Target account = call.target;
    std::optional<fields::FieldManager> owner;
    if (managed_fields_)
      owner = resources::field_manager(manager_of(call.request), call.subresource->kind, name);
    const fields::FieldManager* fields = owner ? &*owner : nullptr;
    const Object answer = co_await request_token(store_, std::move(account), std::move(body),
                                                 authenticator_, fields, admission);
    co_return object_response(201, answer, format);
  }
  if (name == "binding" && body["target"]["kind"].as_string() == "Node") {
    std::string node(body["target"]["name"].as_string());
    body = co_await admission::with_topology_labels(resources_.table(), std::move(node),
                                                    std::move(body));
  }
  body = co_await admission.admit(std::move(body));
  if (name == "binding") {
    co_await bind_pod(store_, call.target, body, options.dry_run);
  } else {
    resources::ServedResourcePtr budgets =
        resources_.table()->find("policy", "v1", "poddisruptionbudgets");
    co_await evict_pod(store_, call.target, std::move(budgets), body, options.dry_run);
  }
  co_return object_response(201, created_status(), format);
}

Awaitable<Response> ResourceHandler::change(const Call& call) const {
  const bool patching = call.info.verb == "patch";
  const std::string& subresource = call.info.subresource;
  if (subresource == "proxy") throw needs_a_node(call.target, subresource);
  const bool scaling = subresource == "scale";
  const OutputFormat format =
      negotiate_output(call.request, false, call.target.resource->custom && !scaling);
  if (!patching) negotiate_input(call.request, scaling || !call.target.resource->custom);
  const WriteOptions options =
      parse_write_options(call.request, patching ? "PatchOptions" : "UpdateOptions");
  const auto warnings = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<const fields::FieldManager> owner;
  if (managed_fields_) {
    const std::string manager = manager_of(call.request);
    owner = std::make_shared<const fields::FieldManager>(
        scaling ? resources::field_manager(manager, call.subresource->kind, subresource)
                : resources::field_manager(manager, resources_.table(), call.target.resource,
                                           subresource));
  }
  const bool applying = owner != nullptr && patching &&
                        media_type(call.request.header("content-type")) == kApplyPatch;
  const ExpectedKind expected =
      scaling ? ExpectedKind(call.subresource->kind) : ExpectedKind(*call.target.resource);
  Store::Change wish;
  storage::Preconditions preconditions;
  if (applying) {
    wish = parse_apply(call.request, call.target, expected, owner, options, warnings);
  } else if (patching) {
    const auto patch = std::make_shared<std::optional<Store::Change>>();
    wish = [&call, expected, validation = options.field_validation, warnings,
            patch](const Object& present) {
      const Target& target = call.target;
      // A patch never creates an object, even if an update would, so its body does not matter.
      if (!present) {
        const api::Resource& type = target.resource->type;
        throw StatusError::not_found(type.group, type.plural, target.name);
      }
      if (!*patch)
        *patch = parse_patch(call.request, target.resource, expected, validation, warnings);
      return with_distinct_owners((**patch)(present), OwnersFrom::kPatch, *warnings);
    };
  } else {
    DecodedBody body = decode_object(call.request, expected, options.field_validation);
    body.object = with_distinct_owners(body.object, OwnersFrom::kBody, body.warnings);
    add_warnings(body.warnings, call);
    resources::check_identity(call.target, body.object);
    if (!body.object.uid().empty()) preconditions.uid = std::string(body.object.uid());
    wish = [object = std::move(body.object)](const Object& /*present*/) { return object; };
  }
  if (scaling) {
    wish = scale_change(resources_.table(), call.target.resource, std::move(wish), owner, applying);
  }
  const Part part = part_of(subresource);
  admission::WebhookAdmission admission =
      admission_of(call, admission_options(call.request, options));
  admission::PodSecurity security =
      co_await admission::read_pod_security(resources_.table(), call.target, subresource);
  admission::DefaultAdmission default_admission =
      default_admission_of(call, admission, Object(), std::move(security));
  admission::UserAdmission user_admission = user_admission_of(call, default_admission);
  Target target = call.target;
  target.admission = &user_admission;
  if (!applying && !scaling) target.fields = owner.get();
  target.creates = applying && subresource.empty();
  Store::Updated updated;
  try {
    updated = co_await store_.update(std::move(target), std::move(wish), part,
                                     std::move(preconditions), options.dry_run);
  } catch (...) {
    add_warnings(*warnings, call);
    throw;
  }
  add_warnings(*warnings, call);
  if (!options.dry_run) updated.object = co_await after_write(call, updated.object, false);
  const Object shown = scaling ? scale_of(*call.target.resource, updated.object) : updated.object;
  if (part == Part::kMain) {
    const resources::ServedResource& resource = *call.target.resource;
    add_warnings(resources::warnings_about(resource, shown, updated.before), call);
    add_warnings(unenforced(resource, shown), call);
  } else if (part == Part::kStatus) {
    add_warnings(resources::warnings_about_status(*call.target.resource, shown), call);
  }
  co_return respond(call, updated.created ? 201 : 200, shown, format);
}

Awaitable<Response> ResourceHandler::remove(const Call& call) const {
  const OutputFormat format = negotiate_output(call.request, false, call.target.resource->custom);
  if (call.subresource != nullptr) throw needs_a_node(call.target, call.info.subresource);
  resources::DeleteOptions options = deletion_options(call);
  admission::WebhookAdmission admission = admission_of(call, admission_options(options));
  Target target = call.target;
  target.admission = &admission;
  const bool dry_run = options.dry_run;
  const bool denies_orphans = options.denies_orphans;
  const Store::Deleted deleted = co_await store_.remove(std::move(target), std::move(options));
  if (!dry_run) co_await after_write(call, deleted.object, deleted.gone);
  const bool shows_object = !deleted.gone || call.target.resource->strategy->returns_deleted_object;
  const int code = !deleted.gone && denies_orphans ? 202 : 200;
  co_return respond(call, code,
                    shows_object ? deleted.object : success(call.target, deleted.object), format);
}

Awaitable<Response> ResourceHandler::remove_collection(const Call& call) const {
  const resources::ServedResource& resource = *call.target.resource;
  const OutputFormat format = negotiate_output(call.request, false, resource.custom);
  const ListOptions list = parse_list_options(call.request, resource, false, "");
  resources::DeleteOptions options = deletion_options(call);
  admission::WebhookAdmission admission = admission_of(call, admission_options(options));
  Target target = call.target;
  target.admission = &admission;
  // One page, if there is a limit.
  auto [result, head] = co_await read_list(call.target, list);
  std::vector<Object> removed = co_await storage::read_all(std::move(result));
  for (const Object& stored : removed) {
    resources::DeleteOptions same = options;
    co_await store_.remove_listed(target, stored, std::move(same));
    // Objects with finalizers remain.
    if (options.dry_run || !stored["metadata"]["finalizers"].empty()) continue;
    co_await note(call, resource.from_storage(stored), true);
  }
  co_await refresh_registries(call);
  check_fits_list(resource, format);
  Response response;
  response.content_type = content_type_of(format, false);
  response.stream = list_stream(call.target.resource, std::move(head),
                                objects_source(std::move(removed)), format);
  co_return response;
}

Response ResourceHandler::respond(const Call& call, int code, const Object& object,
                                  const OutputFormat& format) {
  const resources::ServedResource& resource = *call.target.resource;
  const bool is_status = object.kind() == "Status";
  if (format.as_list && !is_status) {
    throw wrong_conversion(
        false, call.info.subresource == "scale" ? "*autoscaling.Scale" : go_name(resource));
  }
  if (format.transform != Transform::kTable || is_status)
    return object_response(code, object, format);
  if (call.info.subresource == "scale") {
    const auto printer = tables::Printer::of_builtin("autoscaling", "scale");
    return table_response(code, *printer, object, object, format);
  }
  return table_response(code, *resource.printer, resource.to_storage(object), object, format);
}

Awaitable<Object> ResourceHandler::after_write(const Call& call, Object object, bool gone) const {
  co_await note(call, object, gone);
  co_await refresh_registries(call);
  if (gone || !is(call.target, "apiextensions.k8s.io", "customresourcedefinitions"))
    co_return object;
  // The response has the accepted names.
  Target target = call.target;
  target.name = object.name();
  try {
    co_return co_await store_.get(std::move(target));
  } catch (const StatusError&) {
    // The write has succeeded: respond with the object without later changes.
  }
  co_return object;
}

Awaitable<void> ResourceHandler::note(const Call& call, Object object, bool gone) const {
  if (consequences_.written == nullptr) co_return;
  try {
    co_await consequences_.written(call.target.resource, object, gone);
  } catch (const Error& e) {
    warn_of_delay(call.target, e);
  }
}

Awaitable<void> ResourceHandler::refresh_registries(const Call& call) const {
  try {
    if (is(call.target, "apiextensions.k8s.io", "customresourcedefinitions"))
      co_await resources_.refresh();
    if (is(call.target, "admissionregistration.k8s.io", "mutatingwebhookconfigurations") ||
        is(call.target, "admissionregistration.k8s.io", "validatingwebhookconfigurations"))
      co_await webhooks_.registry.refresh();
  } catch (const Error& e) {
    warn_of_delay(call.target, e);
  }
}

}  // namespace lookout::apiserver::endpoints
