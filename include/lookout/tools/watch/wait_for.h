// wait_for(): waits for a state of one object.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/rest/typed_client.h"
#include "lookout/tools/watch/until.h"

namespace lookout::watch {

/// Returns true if the object is in the awaited state; called with an empty handle if there is no
/// object. It is called on the event loop and must not block; its exceptions are rethrown by the
/// wait.
using ObjectCondition = std::function<bool(const api::Object& object)>;

/// Waits until the condition holds for the object with this name: kube-rs' await_condition. Returns
/// the object in that state; empty if the condition accepts its absence.
///
///     const auto pod = watch::wait_for(pods, "web-1", watch::is_pod_running(), {.timeout = 1min});
///     watch::wait_for(pods, "web-1", watch::is_deleted(pod.uid()));
///     watch::wait_for(pods, "web-1", [](const Pod& p) { return p && p.status().host_ip() != "";
///     });
///
/// The wait sees states: it may skip some, but never the last one. It lists first, then watches,
/// and recovers from a broken watch, a busy or unreachable server, 410 Gone, a failing credential
/// plugin, and a response that is not from an API server (a proxy's page). Throws WaitError on
/// timeout (its message says whether the object exists, or the last failure) or if a stop is
/// requested, api::StatusError if the server refuses, and api::DecodeError if the object cannot be
/// decoded, because the condition is then unknown. The blocking form throws InvalidArgument on the
/// event loop; await the coroutine on a strand.
Awaitable<api::Object> async_wait_for(std::shared_ptr<cache::ListerWatcher> source,
                                      std::string name, ObjectCondition condition,
                                      WaitOptions options = WaitOptions());
Awaitable<api::Object> async_wait_for(const rest::ResourceClient& client, std::string_view name,
                                      ObjectCondition condition,
                                      WaitOptions options = WaitOptions());
api::Object wait_for(const rest::ResourceClient& client, std::string_view name,
                     ObjectCondition condition, WaitOptions options = {});

namespace detail {
/// Adapts a condition on T for objects of any type.
template <class T, class F>
ObjectCondition untyped(F condition) {
  if constexpr (std::is_same_v<F, ObjectCondition>) {
    return condition;
  } else {
    return [f = std::move(condition)](const api::Object& object) { return f(T(object)); };
  }
}
template <class T>
Awaitable<T> typed(Awaitable<api::Object> task) {
  co_return T(co_await std::move(task));
}
}  // namespace detail

template <api::ResourceObject T, std::predicate<const T&> F>
T wait_for(const rest::TypedClient<T>& client, std::string_view name, F condition,
           WaitOptions options = {}) {
  return T(wait_for(client.dynamic(), name, detail::untyped<T>(std::move(condition)),
                    std::move(options)));
}
template <api::ResourceObject T, std::predicate<const T&> F>
Awaitable<T> async_wait_for(const rest::TypedClient<T>& client, std::string_view name, F condition,
                            WaitOptions options = WaitOptions()) {
  return detail::typed<T>(async_wait_for(
      client.dynamic(), name, detail::untyped<T>(std::move(condition)), std::move(options)));
}

// --- Conditions (those of kube-rs, and their building blocks)

/// The object is gone, or another object has its name.
ObjectCondition is_deleted(std::string_view uid);
/// The object exists.
ObjectCondition exists();
/// status.conditions has this type with this status and, if given, this reason.
ObjectCondition has_condition(std::string_view type, std::string_view status = "True",
                              std::string_view reason = {});

ObjectCondition is_pod_running();
ObjectCondition is_pod_ready();
/// The server serves the definition's objects. (Discovery may list them a moment later.)
ObjectCondition is_crd_established();
/// The Job has succeeded. For one that may fail:
/// any_of(is_job_completed(), has_condition("Failed")).
ObjectCondition is_job_completed();
/// The newest replica set is available, and the controller has seen the newest spec.
ObjectCondition is_deployment_completed();
/// The load balancer has addresses. Always true for services of other types.
ObjectCondition is_service_load_balancer_provisioned();
ObjectCondition is_ingress_provisioned();

ObjectCondition all_of(ObjectCondition a, ObjectCondition b);
ObjectCondition any_of(ObjectCondition a, ObjectCondition b);
ObjectCondition negated(ObjectCondition condition);

}  // namespace lookout::watch
