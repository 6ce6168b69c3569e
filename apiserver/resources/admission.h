// Decides whether a request may write.
#pragma once

#include <functional>

#include "apiserver/resources/store.h"
#include "lookout/api/object.h"
#include "lookout/base/event_loop.h"

namespace lookout::apiserver::resources {

/// The change that a write makes. Objects are in the version of the request.
struct Write {
  enum class Operation { kCreate, kUpdate, kDelete };
  Operation operation = Operation::kCreate;
  /// The new object; empty for a deletion.
  api::Object object = {};
  /// The present one; empty for a creation.
  api::Object old = {};
};

/// Admission of one request (k8s.io/apiserver/pkg/admission): may change what the request writes,
/// and may refuse it. Used by one coroutine at a time. Throws api::StatusError, with which the
/// request then fails.
class Admission {
 public:
  /// An object as Go's decoder would leave it: with its type, its namespace and its defaults.
  using Normalize = std::function<api::Object(const api::Object&)>;

  virtual ~Admission() = default;

  /// Whether anybody might want to be asked. If not, the writes of the request take the short way.
  virtual bool concerns(Write::Operation operation) const = 0;
  /// The object that is to be written instead: the very one that came in if nobody changed it.
  /// Called again with the new state if somebody else changed the object meanwhile.
  virtual Awaitable<api::Object> mutate(Write write, Normalize normalize) = 0;
  /// Called with the object as it will be kept.
  virtual Awaitable<void> validate(Write write) = 0;
};

}  // namespace lookout::apiserver::resources
