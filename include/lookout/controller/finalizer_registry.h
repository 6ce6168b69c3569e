// FinalizerRegistry: several finalizers for one kind.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"

namespace lookout::controller {

/// At least one finalizer failed.
class FinalizerError : public Error {
 public:
  using Error::Error;
};

/// The result of FinalizerRegistry::finalize().
struct FinalizeResult {
  struct Failure {
    std::string finalizer;
    std::exception_ptr error;
  };

  /// True if the draft has changed outside the status, and in the status: call patch() and
  /// patch_status() accordingly, even if there were failures. A patch replaces the list of
  /// finalizers, so set if_unchanged: otherwise it removes finalizers that another controller has
  /// added since the object was read.
  bool updated = false;
  bool status_updated = false;
  std::vector<Failure> failures = {};

  /// Throws FinalizerError with the name and the error of every failed finalizer; does nothing if
  /// none failed. Call it after writing the draft.
  void throw_if_failed() const;
};

/// Adds finalizers to live objects, and runs and removes them when an object is being deleted;
/// controller-runtime's finalizer.Finalizers.
///
///     controller::FinalizerRegistry finalizers;
///     finalizers.add("example.com/dns",
///                    [&](const api::ObjectDraft& site) { remove_names(site); });
///
///     const auto change = site.edit();                     // in the reconciler
///     const auto result = finalizers.finalize(change);
///     if (result.updated) sites.patch(change, {.if_unchanged = true});
///     result.throw_if_failed();
///
/// finalize() may be called from many threads at once, with different drafts; add() must not run at
/// the same time.
class FinalizerRegistry {
 public:
  /// Cleans up before the object is deleted. It may be called again after it has succeeded for an
  /// object, so it must be repeatable. It may change the draft, for example a condition in the
  /// status, even if it then throws.
  using Finalizer = std::function<void(const api::ObjectDraft& object)>;

  /// Throws InvalidArgument if there is a finalizer with this name, if the name is not a qualified
  /// name such as "example.com/dns", which the API server would refuse, or if the function is
  /// empty.
  void add(std::string name, Finalizer finalizer);

  /// For an object that is not being deleted, adds all missing finalizers. For an object that is
  /// being deleted, runs its finalizers in the order of their registration and removes each one
  /// that succeeds; one that throws stays and keeps the object, and the others still run. Changes
  /// only the draft. An object that is being deleted gets no new finalizers, because the API server
  /// would refuse them.
  FinalizeResult finalize(const api::ObjectDraft& object) const;

 private:
  std::vector<std::pair<std::string, Finalizer>> finalizers_;
};

}  // namespace lookout::controller
