// Admission: decides whether a request may write.
#pragma once

#include <functional>

#include "apiserver/resources/store.h"
#include "lookout/api/object.h"
#include "lookout/base/event_loop.h"

namespace lookout::apiserver::resources {

/// The change of a write. Objects have the version of the request.
struct Write {
  enum class Operation { kCreate, kUpdate, kDelete };
  Operation operation = Operation::kCreate;
  /// The new object; empty for a deletion.
  api::Object object = {};
  /// The current object; empty for a creation.
  api::Object old = {};
  /// Runs the earlier plugins again on an object that a webhook has changed, before webhooks are
  /// invoked again; may be empty.
  std::function<Awaitable<api::Object>(api::Object object)> again = nullptr;
};

/// Admission of a request (k8s.io/apiserver/pkg/admission): may change the written object, or reject
/// the request by throwing api::StatusError. Used by one coroutine at a time.
class Admission {
 public:
  /// Converts an object to the form that Go's decoder would produce: with its type, its namespace
  /// and its defaults.
  using Normalize = std::function<api::Object(const api::Object&)>;

  virtual ~Admission() = default;

  /// Whether any plugin may apply. If not, the request's writes take the fast path.
  virtual bool concerns(Write::Operation operation) const = 0;
  /// Returns the object to write; the same handle if it is unchanged. Called again with the new state
  /// if the object was changed concurrently.
  virtual Awaitable<api::Object> mutate(Write write, Normalize normalize) = 0;
  /// Called with the object as it will be stored.
  virtual Awaitable<void> validate(Write write) = 0;
};

}  // namespace lookout::apiserver::resources
