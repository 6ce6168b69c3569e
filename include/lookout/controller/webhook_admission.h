// The requests and responses of admission webhooks.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lookout/api/draft.h"
#include "lookout/api/group_version_resource.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/status.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/empty_function.h"
#include "lookout/base/event_loop.h"

namespace lookout::controller {

/// admission.k8s.io/v1 Operation.
enum class Operation { kCreate, kUpdate, kDelete, kConnect };

/// "CREATE", "UPDATE" ...
std::string_view to_string(Operation operation);

/// authentication.k8s.io/v1 UserInfo: the user who made the request.
struct AdmissionUser {
  LOOKOUT_OPTION std::string username = {};
  LOOKOUT_OPTION std::string uid = {};
  LOOKOUT_OPTION std::vector<std::string> groups = {};
  LOOKOUT_OPTION std::map<std::string, std::vector<std::string>> extra = {};
};

/// admission.k8s.io/v1 AdmissionRequest without its objects. `kind`, `resource` and `subresource`
/// are those of the version that the webhook is called with; the `request_` fields are those of the
/// client's request (they differ with matchPolicy Equivalent).
struct AdmissionRequest {
  LOOKOUT_OPTION std::string uid = {};
  LOOKOUT_OPTION api::GroupVersionKind kind = {};
  LOOKOUT_OPTION api::GroupVersionResource resource = {};
  LOOKOUT_OPTION std::string subresource = {};
  LOOKOUT_OPTION api::GroupVersionKind request_kind = {};
  LOOKOUT_OPTION api::GroupVersionResource request_resource = {};
  LOOKOUT_OPTION std::string request_subresource = {};
  /// The object's name; empty for a creation with generateName.
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string ns = {};
  Operation operation = Operation::kCreate;
  LOOKOUT_OPTION AdmissionUser user = {};
  /// Nothing will be stored, so the webhook must have no side effects.
  bool dry_run = false;
  /// meta.k8s.io/v1 CreateOptions, UpdateOptions ...; empty if there are none.
  LOOKOUT_OPTION api::Object options = {};
  /// Requested when the API server no longer waits for the response, or when the server stops and
  /// its finish_timeout is over.
  LOOKOUT_OPTION std::stop_token stop = {};
};

/// The request with its objects. T is a typed object, or api::Object for a webhook of several
/// kinds.
template <class T>
struct Admission : AdmissionRequest {
  /// The object to be stored; empty for a deletion.
  LOOKOUT_OPTION T object = T();
  /// The stored object; empty for a creation.
  LOOKOUT_OPTION T old_object = T();
};

/// admission.k8s.io/v1 AdmissionResponse. Use allowed(), denied() and errored() to create one.
struct AdmissionResponse {
  bool allowed = true;
  /// `code` 0 means 200 or 403.
  LOOKOUT_OPTION api::Status status = {};
  /// Shown to the client; each at most 120 characters, without the prefix "Warning:".
  LOOKOUT_OPTION std::vector<std::string> warnings = {};
  /// Annotations for the audit log; keys without the webhook's name.
  LOOKOUT_OPTION std::map<std::string, std::string> audit_annotations = {};

  AdmissionResponse& warn(std::string warning) & {
    warnings.push_back(std::move(warning));
    return *this;
  }
  AdmissionResponse&& warn(std::string warning) && {
    warnings.push_back(std::move(warning));
    return std::move(*this);
  }
};

/// admission.Allowed, Denied (403 Forbidden by default) and Errored.
AdmissionResponse allowed(std::string message = std::string());
AdmissionResponse denied(std::string message, std::string_view reason = api::reason::kForbidden,
                         std::int32_t code = 403);
AdmissionResponse errored(std::int32_t code, std::string message);
/// Rejects with a complete status, such as that of api::StatusError::invalid(), which names the
/// fields.
AdmissionResponse denied(const api::StatusError& error);

/// admission.Validator: a function for each operation, for WebhookServer::validate(). An empty
/// function allows the request; CONNECT is always allowed.
template <class T>
struct Validator {
  using Function = std::function<AdmissionResponse(const Admission<T>& request)>;
  LOOKOUT_OPTION Function create = {};
  LOOKOUT_OPTION Function update = {};
  LOOKOUT_OPTION Function remove = {};

  AdmissionResponse operator()(const Admission<T>& request) const {
    const Function* function = nullptr;
    if (request.operation == Operation::kCreate) function = &create;
    if (request.operation == Operation::kUpdate) function = &update;
    if (request.operation == Operation::kDelete) function = &remove;
    if (function == nullptr || !*function) return allowed();
    return (*function)(request);
  }
};

namespace detail {

/// `changed` contains the object of the request, and afterwards the object to store.
using AdmissionFunction =
    std::function<AdmissionResponse(const Admission<api::Object>& request, api::Object& changed)>;
using AsyncAdmissionFunction = std::function<Awaitable<AdmissionResponse>(
    const Admission<api::Object>& request, api::Object& changed)>;

/// The handler of a path.
struct AdmissionHook {
  /// Without a kind, it accepts objects of any kind.
  api::Resource type;
  bool mutates = false;
  /// Empty if the program's function is.
  std::variant<AdmissionFunction, AsyncAdmissionFunction> function;
};

template <class T>
Admission<T> typed(const Admission<api::Object>& request) {
  Admission<T> out;
  static_cast<AdmissionRequest&>(out) = request;
  out.object = T(request.object);
  out.old_object = T(request.old_object);
  return out;
}

/// The result of T's edit(), or an ObjectDraft of any object.
template <class T>
auto draft_of(const T& object) {
  if constexpr (requires { object.edit(); }) {
    return object.edit();
  } else {
    return api::ObjectDraft(object);
  }
}

template <class T>
using DraftOf = decltype(draft_of(std::declval<const T&>()));

template <class T, class Function>
Awaitable<AdmissionResponse> async_validate(const Function& function,
                                            const Admission<api::Object>& request) {
  const Admission<T> given = typed<T>(request);
  AdmissionResponse out = co_await function(given);
  co_return out;
}

template <class T, class Function>
Awaitable<AdmissionResponse> async_mutate(const Function& function,
                                          const Admission<api::Object>& request,
                                          api::Object& changed) {
  using Returned = std::invoke_result_t<const Function&, const Admission<T>&, DraftOf<T>&>;
  const Admission<T> given = typed<T>(request);
  DraftOf<T> draft = draft_of(given.object);
  AdmissionResponse out;
  if constexpr (std::is_same_v<Returned, Awaitable<void>>) {
    co_await function(given, draft);
  } else {
    out = co_await function(given, draft);
  }
  changed = draft.build();
  co_return out;
}

template <class T>
api::Resource resource_of() {
  if constexpr (api::ResourceObject<T>) {
    return api::Resource(T::kResource);
  } else {
    return {};
  }
}

template <class T, class Function>
AdmissionHook validating_hook(Function function) {
  using Returned = std::invoke_result_t<const Function&, const Admission<T>&>;
  static_assert(std::is_same_v<Returned, Awaitable<AdmissionResponse>> ||
                    std::is_convertible_v<Returned, AdmissionResponse>,
                "lookout: a validating webhook returns controller::AdmissionResponse or "
                "Awaitable<controller::AdmissionResponse>");
  AdmissionHook hook{resource_of<T>(), false, {}};
  if (base::is_empty_function(function)) return hook;
  if constexpr (std::is_same_v<Returned, Awaitable<AdmissionResponse>>) {
    hook.function = AsyncAdmissionFunction(
        [function = std::move(function)](const Admission<api::Object>& request, api::Object&) {
          return async_validate<T>(function, request);
        });
  } else {
    hook.function =
        AdmissionFunction([function = std::move(function)](const Admission<api::Object>& request,
                                                           api::Object&) -> AdmissionResponse {
          return function(typed<T>(request));
        });
  }
  return hook;
}

template <class T, class Function>
AdmissionHook mutating_hook(Function function) {
  using Returned = std::invoke_result_t<const Function&, const Admission<T>&, DraftOf<T>&>;
  static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, Awaitable<void>> ||
                    std::is_same_v<Returned, Awaitable<AdmissionResponse>> ||
                    std::is_convertible_v<Returned, AdmissionResponse>,
                "lookout: a mutating webhook returns nothing or controller::AdmissionResponse, or "
                "an Awaitable of it");
  AdmissionHook hook{resource_of<T>(), true, {}};
  if (base::is_empty_function(function)) return hook;
  if constexpr (std::is_same_v<Returned, Awaitable<void>> ||
                std::is_same_v<Returned, Awaitable<AdmissionResponse>>) {
    hook.function =
        AsyncAdmissionFunction([function = std::move(function)](
                                   const Admission<api::Object>& request, api::Object& changed) {
          return async_mutate<T>(function, request, changed);
        });
  } else {
    hook.function = AdmissionFunction(
        [function = std::move(function)](const Admission<api::Object>& request,
                                         api::Object& changed) -> AdmissionResponse {
          const Admission<T> given = typed<T>(request);
          DraftOf<T> draft = draft_of(given.object);
          AdmissionResponse out;
          if constexpr (std::is_void_v<Returned>) {
            function(given, draft);
          } else {
            out = function(given, draft);
          }
          changed = draft.build();
          return out;
        });
  }
  return hook;
}

}  // namespace detail

}  // namespace lookout::controller
