// Waiting for the state of one object.
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

/// Whether an object is in the state that was waited for; given an empty handle if there is none.
/// It is called on the event loop and must not block; what it throws comes out of the wait.
using ObjectCondition = std::function<bool(const api::Object& object)>;

/// Waits until the condition holds for the object of that name: kube-rs' await_condition. Returns
/// the object as it was then: empty if it was not there, and the condition was for that.
///
///     const auto pod = watch::wait_for(pods, "web-1", watch::is_pod_running(), {.timeout = 1min});
///     watch::wait_for(pods, "web-1", watch::is_deleted(pod.uid()));
///     watch::wait_for(pods, "web-1", [](const Pod& p) { return p && p.status().host_ip() != "";
///     });
///
/// It asks about states, of which some may be left out, but not the last one. It lists first, then
/// watches; a broken watch, a server that is busy or cannot be reached, and 410 Gone are overcome.
/// Throws WaitError when the time is over or a stop is requested, and api::StatusError if the
/// server refuses. The blocking one throws InvalidArgument on the event loop; the other is to be
/// awaited on a strand.
Awaitable<api::Object> async_wait_for(std::shared_ptr<cache::ListerWatcher> source,
                                      std::string name, ObjectCondition condition,
                                      WaitOptions options = WaitOptions());
Awaitable<api::Object> async_wait_for(const rest::ResourceClient& client, std::string name,
                                      ObjectCondition condition,
                                      WaitOptions options = WaitOptions());
api::Object wait_for(const rest::ResourceClient& client, std::string name,
                     ObjectCondition condition, WaitOptions options = {});

namespace detail {
/// A condition on objects of type T, for objects of any type.
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
T wait_for(const rest::TypedClient<T>& client, std::string name, F condition,
           WaitOptions options = {}) {
  return T(wait_for(client.dynamic(), std::move(name), detail::untyped<T>(std::move(condition)),
                    std::move(options)));
}
template <api::ResourceObject T, std::predicate<const T&> F>
Awaitable<T> async_wait_for(const rest::TypedClient<T>& client, std::string name, F condition,
                            WaitOptions options = WaitOptions()) {
  return detail::typed<T>(async_wait_for(client.dynamic(), std::move(name),
                                         detail::untyped<T>(std::move(condition)),
                                         std::move(options)));
}

// --- Conditions (those of kube-rs, and what they are made of)

/// There is no object, or another one has its name by now.
ObjectCondition is_deleted(std::string_view uid);
/// There is an object.
ObjectCondition exists();
/// status.conditions has one of this type with this status; `reason`: and this reason.
ObjectCondition has_condition(std::string_view type, std::string_view status = "True",
                              std::string_view reason = {});

ObjectCondition is_pod_running();
ObjectCondition is_pod_ready();
/// The definition's objects can be asked for. (Discovery may know them a moment later.)
ObjectCondition is_crd_established();
ObjectCondition is_job_completed();
/// The newest replica set is available, and the controller has seen the newest spec.
ObjectCondition is_deployment_completed();
/// The load balancer has addresses. True at once for services of other types.
ObjectCondition is_service_load_balancer_provisioned();
ObjectCondition is_ingress_provisioned();

ObjectCondition all_of(ObjectCondition a, ObjectCondition b);
ObjectCondition any_of(ObjectCondition a, ObjectCondition b);
ObjectCondition negated(ObjectCondition condition);

}  // namespace lookout::watch
