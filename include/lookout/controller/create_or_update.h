// create_or_update(): creates an object, or updates an existing one to the wanted state.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/draft.h"
#include "lookout/api/object.h"
#include "lookout/controller/owner_references.h"
#include "lookout/rest/client.h"

namespace lookout::controller {

/// The result of a write.
enum class Written {
  kUnchanged,          ///< the object was already in the wanted state
  kCreated,            ///< the object did not exist
  kUpdated,            ///< the object was changed
  kUpdatedStatus,      ///< the object and its status were changed
  kUpdatedStatusOnly,  ///< only the status was changed
};

/// "unchanged", "created" ...: controllerutil's OperationResult.
std::string_view to_string(Written written);

template <class T>
struct WriteResult {
  T object;  ///< the server's current version
  Written written = Written::kUnchanged;
};

namespace detail {

enum class WriteMode { kUpdate, kPatch };

/// The result of one call of `mutate`.
struct PlannedWrite {
  api::Object object;
  std::string patch;         ///< the differences outside the status
  std::string status_patch;  ///< "{}" if the status is unchanged
  bool changed = false;
};
/// `existing` is empty if there is no such object.
using PlanWrite = std::function<PlannedWrite(const api::Object& existing)>;

WriteResult<api::Object> write(const rest::ResourceClient& client, const std::string& name,
                               const PlanWrite& plan, const rest::CallOptions& call,
                               WriteMode mode);
Awaitable<WriteResult<api::Object>> async_write(rest::ResourceClient client, std::string name,
                                                PlanWrite plan, rest::CallOptions call,
                                                WriteMode mode);

template <class T, class Mutate>
PlanWrite plan_of(const rest::TypedClient<T>& client, std::string_view name, Mutate mutate,
                  Ownership ownership = Ownership()) {
  return [ns = client.dynamic().ns(), name = std::string(name), mutate = std::move(mutate),
          ownership = std::move(ownership)](const api::Object& existing) {
    require_ownership(existing, ownership);
    auto draft = [&] {
      if (existing) return T(existing).edit();
      if constexpr (T::kResource.namespaced) {
        return T::draft(name, ns);
      } else {
        return T::draft(name);
      }
    }();
    mutate(draft);
    if (ownership.owner) set_controller_reference(ownership.owner, draft);
    return PlannedWrite{draft.build(), draft.diff_except("status"), draft.diff("status"),
                        draft.changed()};
  };
}

template <class T>
WriteResult<T> typed(WriteResult<api::Object> result) {
  return {T(std::move(result.object)), result.written};
}

template <class T, class Mutate>
WriteResult<T> write(const rest::TypedClient<T>& client, std::string_view name, Ownership ownership,
                     Mutate mutate, const rest::CallOptions& call, WriteMode mode) {
  return typed<T>(write(client.dynamic(), std::string(name),
                        plan_of(client, name, std::move(mutate), std::move(ownership)), call,
                        mode));
}
template <class T>
Awaitable<WriteResult<T>> typed(Awaitable<WriteResult<api::Object>> task) {
  co_return typed<T>(co_await std::move(task));
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_write(const rest::TypedClient<T>& client, std::string_view name,
                                      Ownership ownership, Mutate mutate, rest::CallOptions call,
                                      WriteMode mode) {
  return typed<T>(async_write(client.dynamic(), std::string(name),
                              plan_of(client, name, std::move(mutate), std::move(ownership)),
                              std::move(call), mode));
}

}  // namespace detail

/// Reads the object, lets `mutate` write the wanted state into a draft of it, and creates or
/// updates the object if that changes anything. Include the header of T's drafts.
///
///     controller::create_or_update(deployments, "web", controller::owned_by(site),
///                                  [&](k8s::apps::v1::DeploymentDraft& web) {
///                                    web.spec().set_replicas(3);
///                                  });
///
/// With owned_by(), the object gets the controller reference; AlreadyOwnedError is thrown, and
/// nothing written, if another object controls it. Without owned_by(), the owners of an existing
/// object are not checked, and `mutate` may set owner references itself.
///
/// `mutate` runs on the calling thread; async_create_or_update() runs it on the event loop. It
/// should set only the fields that it manages and leave fields of the server and of others alone;
/// the server's defaults then do not count as changes. After a conflict it is called again, at most
/// five times in total. Throws InvalidArgument if it changes the name or the namespace, and what
/// the client throws. controllerutil.CreateOrUpdate, which does not retry.
template <class T, class Mutate>
WriteResult<T> create_or_update(const rest::TypedClient<T>& client, std::string_view name,
                                Mutate mutate, const rest::CallOptions& call = {}) {
  return create_or_update(client, name, Ownership(), std::move(mutate), call);
}
template <class T, class Mutate>
WriteResult<T> create_or_update(const rest::TypedClient<T>& client, std::string_view name,
                                Ownership ownership, Mutate mutate,
                                const rest::CallOptions& call = {}) {
  return detail::write(client, name, std::move(ownership), std::move(mutate), call,
                       detail::WriteMode::kUpdate);
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_create_or_update(const rest::TypedClient<T>& client,
                                                 std::string_view name, Mutate mutate,
                                                 rest::CallOptions call = rest::CallOptions()) {
  return async_create_or_update(client, name, Ownership(), std::move(mutate), std::move(call));
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_create_or_update(const rest::TypedClient<T>& client,
                                                 std::string_view name, Ownership ownership,
                                                 Mutate mutate,
                                                 rest::CallOptions call = rest::CallOptions()) {
  return detail::async_write(client, name, std::move(ownership), std::move(mutate), std::move(call),
                             detail::WriteMode::kUpdate);
}

/// Like create_or_update(), with merge patches instead of whole objects: one for the object and one
/// for its status subresource, even if the object is new. controllerutil.CreateOrPatch, which does
/// not write the status of a new object.
template <class T, class Mutate>
WriteResult<T> create_or_patch(const rest::TypedClient<T>& client, std::string_view name,
                               Mutate mutate, const rest::CallOptions& call = {}) {
  return create_or_patch(client, name, Ownership(), std::move(mutate), call);
}
template <class T, class Mutate>
WriteResult<T> create_or_patch(const rest::TypedClient<T>& client, std::string_view name,
                               Ownership ownership, Mutate mutate,
                               const rest::CallOptions& call = {}) {
  return detail::write(client, name, std::move(ownership), std::move(mutate), call,
                       detail::WriteMode::kPatch);
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_create_or_patch(const rest::TypedClient<T>& client,
                                                std::string_view name, Mutate mutate,
                                                rest::CallOptions call = rest::CallOptions()) {
  return async_create_or_patch(client, name, Ownership(), std::move(mutate), std::move(call));
}
template <class T, class Mutate>
Awaitable<WriteResult<T>> async_create_or_patch(const rest::TypedClient<T>& client,
                                                std::string_view name, Ownership ownership,
                                                Mutate mutate,
                                                rest::CallOptions call = rest::CallOptions()) {
  return detail::async_write(client, name, std::move(ownership), std::move(mutate), std::move(call),
                             detail::WriteMode::kPatch);
}

}  // namespace lookout::controller
