// Typed access to the common subresources.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/draft.h"
#include "lookout/base/attributes.h"
#include "lookout/k8s/authentication/v1.h"
#include "lookout/k8s/autoscaling/v1.h"
#include "lookout/k8s/certificates/v1.h"
#include "lookout/rest/client.h"

namespace lookout::rest {

/// "scale": the current and the desired number of replicas, for anything that can be scaled
/// (Deployment, StatefulSet, custom resources with a scale subresource).
k8s::autoscaling::v1::Scale get_scale(const ResourceClient& client, std::string_view name,
                                      CallOptions call = {});
Awaitable<k8s::autoscaling::v1::Scale> async_get_scale(const ResourceClient& client,
                                                       std::string_view name,
                                                       CallOptions call = CallOptions());
/// Returns the scale after the change.
k8s::autoscaling::v1::Scale set_scale(const ResourceClient& client, std::string_view name,
                                      std::int32_t replicas, CallOptions call = {});
Awaitable<k8s::autoscaling::v1::Scale> async_set_scale(const ResourceClient& client,
                                                       std::string_view name, std::int32_t replicas,
                                                       CallOptions call = CallOptions());

/// "status": server-side apply of the fields of the status, as ResourceClient::apply() does it for all
/// others; client-go's ApplyStatus(). The client needs the namespace of the object.
api::Object apply_status(const ResourceClient& client, const api::ObjectDraft& draft,
                         ApplyOptions options, CallOptions call = {});
Awaitable<api::Object> async_apply_status(const ResourceClient& client,
                                          const api::ObjectDraft& draft, ApplyOptions options,
                                          CallOptions call = CallOptions());
template <api::ResourceObject T>
T apply_status(const TypedClient<T>& client, const api::ObjectDraft& draft, ApplyOptions options,
               CallOptions call = {}) {
  return T(apply_status(client.dynamic(), draft, std::move(options), std::move(call)));
}

/// "eviction": deletes a pod, unless a PodDisruptionBudget forbids it; then throws api::StatusError
/// with 429.
void evict(const ResourceClient& pods, std::string_view name, DeleteOptions options = {},
           CallOptions call = {});
Awaitable<void> async_evict(const ResourceClient& pods, std::string_view name,
                            DeleteOptions options = DeleteOptions(),
                            CallOptions call = CallOptions());

/// "binding": assigns a pod to a node, as schedulers do. Throws api::StatusError (a conflict) if the
/// pod has a node already, or is being deleted.
void bind(const ResourceClient& pods, std::string_view name, std::string_view node,
          CallOptions call = {});
Awaitable<void> async_bind(const ResourceClient& pods, std::string_view name, std::string_view node,
                           CallOptions call = CallOptions());
/// The same for this pod only, as kube-scheduler does: a conflict, too, if another pod has its name
/// (another uid).
void bind(const ResourceClient& pods, const api::Object& pod, std::string_view node,
          CallOptions call = {});
Awaitable<void> async_bind(const ResourceClient& pods, const api::Object& pod,
                           std::string_view node, CallOptions call = CallOptions());

/// The decision on a CertificateSigningRequest.
struct Approval {
  bool approved = true;  ///< else denied
  LOOKOUT_OPTION std::string reason = {};
  LOOKOUT_OPTION std::string message = {};
};
/// "approval": adds the condition Approved or Denied, as kubectl certificate approve and deny do. A
/// decision is final: the server rejects a second one (api::StatusError with 422). Throws a conflict
/// (409) if the CertificateSigningRequest has changed since this function read it.
k8s::certificates::v1::CertificateSigningRequest set_approval(const ResourceClient& requests,
                                                              std::string_view name,
                                                              Approval answer,
                                                              CallOptions call = {});
Awaitable<k8s::certificates::v1::CertificateSigningRequest> async_set_approval(
    const ResourceClient& requests, std::string_view name, Approval answer,
    CallOptions call = CallOptions());

struct TokenOptions {
  LOOKOUT_OPTION std::vector<std::string> audiences = {};  ///< empty: the API server's
  std::chrono::seconds lifetime{0};                        ///< 0: the server decides
};
/// "token": creates a token for a service account. The status of the result has the token and its
/// expiry.
k8s::authentication::v1::TokenRequest create_token(const ResourceClient& service_accounts,
                                                   std::string_view name, TokenOptions options = {},
                                                   CallOptions call = {});
Awaitable<k8s::authentication::v1::TokenRequest> async_create_token(
    const ResourceClient& service_accounts, std::string_view name,
    TokenOptions options = TokenOptions(), CallOptions call = CallOptions());

}  // namespace lookout::rest
