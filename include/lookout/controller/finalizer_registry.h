// Several finalizers of one kind of objects.
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

/// The outcome of FinalizerRegistry::finalize().
struct FinalizeResult {
  struct Failure {
    std::string finalizer;
    std::exception_ptr error;
  };

  /// Whether the draft differs from its original outside the status, and in the status: what is to
  /// be written with patch() and patch_status(), failures or not.
  bool updated = false;
  bool status_updated = false;
  std::vector<Failure> failures = {};

  /// Throws FinalizerError that names every finalizer that failed, with its error; nothing happens
  /// if none did. Call it after the draft was written.
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
///     if (result.updated) sites.patch(change);
///     result.throw_if_failed();
///
/// finalize() may be called from many threads at a time, with drafts of their own; add() may not be
/// called beside it.
class FinalizerRegistry {
 public:
  /// Does what is to be done before the object goes. It may be called again for an object for which
  /// it has succeeded, so it must be repeatable. It may change the draft, such as a condition in
  /// the status, also when it throws then.
  using Finalizer = std::function<void(const api::ObjectDraft& object)>;

  /// Throws InvalidArgument if there is a finalizer of that name, if the name is not a qualified
  /// name such as "example.com/dns", which the API server would refuse, or if the function is
  /// empty.
  void add(std::string name, Finalizer finalizer);

  /// Adds all finalizers that are missing to an object that is not being deleted. For one that is,
  /// runs those that it has in the order in which they were registered, and removes each that
  /// succeeds; one that throws stays and keeps the object, and the others run all the same. Changes
  /// only the draft. An object that has been deleted gets no new finalizers: the API server would
  /// refuse them.
  FinalizeResult finalize(const api::ObjectDraft& object) const;

 private:
  std::vector<std::pair<std::string, Finalizer>> finalizers_;
};

}  // namespace lookout::controller
