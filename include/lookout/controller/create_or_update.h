// Creating an object, or bringing an existing one to the wanted state.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/draft.h"
#include "lookout/api/object.h"
#include "lookout/rest/client.h"

namespace lookout::controller {

/// The outcome of a write.
enum class Written {
  kUnchanged,          ///< the object is as it should be
  kCreated,            ///< it was not there
  kUpdated,            ///< it was different
  kUpdatedStatus,      ///< it and its status were different
  kUpdatedStatusOnly,  ///< only its status was different
};

/// "unchanged", "created" ...: controllerutil's OperationResult.
std::string_view to_string(Written written);

template <class T>
struct WriteResult {
  T object;  ///< as the server has it now
  Written written = Written::kUnchanged;
};

namespace detail {

enum class WriteMode { kUpdate, kPatch };

/// The outcome of one call of `mutate`.
struct PlannedWrite {
  api::Object object;
  std::string patch;         ///< the differences outside the status
  std::string status_patch;  ///< "{}" if the status stays
  bool changed = false;
};
/// `existing` is empty if the server has no such object.
using PlanWrite = std::function<PlannedWrite(const api::Object& existing)>;

WriteResult<api::Object> write(const rest::ResourceClient& client, const std::string& name,
                               const PlanWrite& plan, const rest::CallOptions& call,
                               WriteMode mode);
Awaitable<WriteResult<api::Object>> async_write(rest::ResourceClient client, std::string name,
                                                PlanWrite plan, rest::CallOptions call,
                                                WriteMode mode);

template <class T, class Mutate>
PlanWrite plan_of(const rest::TypedClient<T>& client, const std::string& name, Mutate mutate) {
  return [ns = client.dynamic().ns(), name, mutate](const api::Object& existing) {
    auto draft = [&] {
      if (existing) return T(existing).edit();
      if constexpr (T::kResource.namespaced) {
        return T::draft(name, ns);
      } else {
        return T::draft(name);
      }
    }();
    mutate(draft);
    return PlannedWrite{draft.build(), draft.diff_except("status"), draft.diff("status"),
                        draft.changed()};
  };
}

template <class T>
WriteResult<T> typed(WriteResult<api::Object> result) {
  return {T(std::move(result.object)), result.written};
}
template <class T>
Awaitable<WriteResult<T>> typed(Awaitable<WriteResult<api::Object>> task) {
  co_return typed<T>(co_await std::move(task));
}

}  // namespace detail

/// Reads the object, has `mutate` write into a draft of it what it should have, and creates or
/// updates it if that makes a difference. Include the header of T's drafts.
///
///     controller::create_or_update(deployments, "web", [&](k8s::apps::v1::DeploymentDraft& web) {
///       web.spec().set_replicas(3);
///       controller::set_controller_reference(site, web);
///     });
///
/// `mutate` runs on the calling thread; that of async_create_or_update() on the event loop. It sets
/// the fields that it means and leaves alone what the server or others have set, so defaults of the
/// server are no difference. It is called again when another writer was faster, at most five times.
/// Throws InvalidArgument if it changes the name or the namespace, and what the client throws.
/// controllerutil.CreateOrUpdate, which does not try again.
template <class T, class Mutate>
WriteResult<T> create_or_update(const rest::TypedClient<T>& client, const std::string& name,
                                Mutate mutate, const rest::CallOptions& call = {}) {
  return detail::typed<T>(detail::write(client.dynamic(), name,
                                        detail::plan_of(client, name, std::move(mutate)), call,
                                        detail::WriteMode::kUpdate));
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_create_or_update(const rest::TypedClient<T>& client,
                                                 const std::string& name, Mutate mutate,
                                                 rest::CallOptions call = rest::CallOptions()) {
  return detail::typed<T>(detail::async_write(client.dynamic(), name,
                                              detail::plan_of(client, name, std::move(mutate)),
                                              std::move(call), detail::WriteMode::kUpdate));
}

/// The same with merge patches instead of whole objects: one of the object, then one of its status
/// by the subresource, for new objects too. controllerutil.CreateOrPatch, which does not write the
/// status of a new object.
template <class T, class Mutate>
WriteResult<T> create_or_patch(const rest::TypedClient<T>& client, const std::string& name,
                               Mutate mutate, const rest::CallOptions& call = {}) {
  return detail::typed<T>(detail::write(client.dynamic(), name,
                                        detail::plan_of(client, name, std::move(mutate)), call,
                                        detail::WriteMode::kPatch));
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_create_or_patch(const rest::TypedClient<T>& client,
                                                const std::string& name, Mutate mutate,
                                                rest::CallOptions call = rest::CallOptions()) {
  return detail::typed<T>(detail::async_write(client.dynamic(), name,
                                              detail::plan_of(client, name, std::move(mutate)),
                                              std::move(call), detail::WriteMode::kPatch));
}

}  // namespace lookout::controller
