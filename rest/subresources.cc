#include "lookout/rest/subresources.h"

#include <utility>

#include "lookout/k8s/authentication/v1_draft.h"
#include "lookout/k8s/certificates/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/k8s/policy/v1_draft.h"
#include "rest/request.h"

namespace lookout::rest {
namespace {

template <class T>
Awaitable<T> typed(Awaitable<api::Object> task) {
  co_return T(co_await std::move(task));
}

Awaitable<void> done(Awaitable<api::Object> task) { co_await std::move(task); }

}  // namespace

Awaitable<k8s::autoscaling::v1::Scale> async_get_scale(const ResourceClient& client,
                                                       std::string_view name, CallOptions call) {
  return typed<k8s::autoscaling::v1::Scale>(
      client.async_get_subresource(name, "scale", std::move(call)));
}

k8s::autoscaling::v1::Scale get_scale(const ResourceClient& client, std::string_view name,
                                      CallOptions call) {
  return client.loop().run(async_get_scale(client, name, std::move(call)));
}

Awaitable<k8s::autoscaling::v1::Scale> async_set_scale(const ResourceClient& client,
                                                       std::string_view name, std::int32_t replicas,
                                                       CallOptions call) {
  api::ObjectDraft patch;
  patch["spec"]["replicas"].set(replicas);
  return typed<k8s::autoscaling::v1::Scale>(client.async_patch(
      name, PatchType::kMerge, patch.build().to_json(), PatchOptions(), "scale", std::move(call)));
}

k8s::autoscaling::v1::Scale set_scale(const ResourceClient& client, std::string_view name,
                                      std::int32_t replicas, CallOptions call) {
  return client.loop().run(async_set_scale(client, name, replicas, std::move(call)));
}

Awaitable<api::Object> async_apply_status(const ResourceClient& client,
                                          const api::ObjectDraft& draft, ApplyOptions options,
                                          CallOptions call) {
  PatchOptions patch;
  patch.dry_run = options.dry_run;
  patch.field_manager = std::move(options.field_manager);
  patch.field_validation = std::move(options.field_validation);
  patch.force = options.force;
  return client.async_patch(draft.name(), PatchType::kApply, draft.build().to_json(),
                            std::move(patch), "status", std::move(call));
}

api::Object apply_status(const ResourceClient& client, const api::ObjectDraft& draft,
                         ApplyOptions options, CallOptions call) {
  return client.loop().run(async_apply_status(client, draft, std::move(options), std::move(call)));
}

Awaitable<void> async_evict(const ResourceClient& pods, std::string_view name,
                            DeleteOptions options, CallOptions call) {
  const auto eviction = k8s::policy::v1::Eviction::draft(name, pods.ns());
  const auto how = eviction.delete_options();
  if (options.grace_period_seconds) how.set_grace_period_seconds(*options.grace_period_seconds);
  if (!options.precondition_uid.empty()) how.preconditions().set_uid(options.precondition_uid);
  if (!options.precondition_resource_version.empty())
    how.preconditions().set_resource_version(options.precondition_resource_version);
  if (options.propagation_policy != PropagationPolicy::kDefault)
    how.set_propagation_policy(detail::name_of(options.propagation_policy));
  CreateOptions create;
  create.dry_run = options.dry_run;
  return done(pods.async_create_subresource(name, "eviction", eviction.build(), std::move(create),
                                            std::move(call)));
}

void evict(const ResourceClient& pods, std::string_view name, DeleteOptions options,
           CallOptions call) {
  pods.loop().run(async_evict(pods, name, std::move(options), std::move(call)));
}

namespace {

/// `uid` may be empty.
Awaitable<void> bind_pod(const ResourceClient& pods, std::string_view name, std::string_view uid,
                         std::string_view node, CallOptions call) {
  const auto binding = k8s::core::v1::Binding::draft(name, pods.ns());
  if (!uid.empty()) binding.metadata().set_uid(uid);
  binding.target().set_kind("Node").set_name(node);
  return done(pods.async_create_subresource(name, "binding", binding.build(), CreateOptions(),
                                            std::move(call)));
}

}  // namespace

Awaitable<void> async_bind(const ResourceClient& pods, std::string_view name, std::string_view node,
                           CallOptions call) {
  return bind_pod(pods, name, {}, node, std::move(call));
}

Awaitable<void> async_bind(const ResourceClient& pods, const api::Object& pod,
                           std::string_view node, CallOptions call) {
  return bind_pod(pods, pod.name(), pod.uid(), node, std::move(call));
}

void bind(const ResourceClient& pods, const api::Object& pod, std::string_view node,
          CallOptions call) {
  pods.loop().run(async_bind(pods, pod, node, std::move(call)));
}

void bind(const ResourceClient& pods, std::string_view name, std::string_view node,
          CallOptions call) {
  pods.loop().run(async_bind(pods, name, node, std::move(call)));
}

namespace {

using k8s::certificates::v1::CertificateSigningRequest;

Awaitable<CertificateSigningRequest> decide(ResourceClient requests, std::string name,
                                            Approval answer, CallOptions call) {
  const CertificateSigningRequest present(co_await requests.async_get(name, GetOptions(), call));
  const auto change = present.edit();
  change.status()
      .conditions()
      .get_or_append(answer.approved ? "Approved" : "Denied")
      .set_status("True")
      .set_reason(answer.reason)
      .set_message(answer.message);
  co_return CertificateSigningRequest(
      co_await requests.async_update(change.build(), UpdateOptions(), "approval", call));
}

}  // namespace

Awaitable<CertificateSigningRequest> async_set_approval(const ResourceClient& requests,
                                                        std::string_view name, Approval answer,
                                                        CallOptions call) {
  return decide(requests, std::string(name), std::move(answer), std::move(call));
}

CertificateSigningRequest set_approval(const ResourceClient& requests, std::string_view name,
                                       Approval answer, CallOptions call) {
  return requests.loop().run(
      async_set_approval(requests, name, std::move(answer), std::move(call)));
}

Awaitable<k8s::authentication::v1::TokenRequest> async_create_token(
    const ResourceClient& service_accounts, std::string_view name, TokenOptions options,
    CallOptions call) {
  const auto request = k8s::authentication::v1::TokenRequest::draft(name, service_accounts.ns());
  request.spec().audiences().assign(options.audiences);
  if (options.lifetime.count() > 0) request.spec().set_expiration_seconds(options.lifetime.count());
  return typed<k8s::authentication::v1::TokenRequest>(service_accounts.async_create_subresource(
      name, "token", request.build(), CreateOptions(), std::move(call)));
}

k8s::authentication::v1::TokenRequest create_token(const ResourceClient& service_accounts,
                                                   std::string_view name, TokenOptions options,
                                                   CallOptions call) {
  return service_accounts.loop().run(
      async_create_token(service_accounts, name, std::move(options), std::move(call)));
}

}  // namespace lookout::rest
