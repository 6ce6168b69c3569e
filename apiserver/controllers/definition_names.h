// DefinitionNames: decides which names of a CustomResourceDefinition are accepted.
#pragma once

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::controllers {

/// Within a group, each name (plural, singular, short name, kind, list kind) belongs to the first
/// definition that requests it. Other definitions keep their current names until the name is
/// released. A definition is established, and served, once all its names are accepted
/// (k8s.io/apiextensions-apiserver/pkg/controller/status.NamingConditionController).
/// Safe to use from many threads.
class DefinitionNames {
 public:
  /// `context`: see controllers::Context.
  explicit DefinitionNames(Context context);

  /// Updates the status of all definitions. Call it after each change of a definition.
  Awaitable<void> settle() const;

 private:
  /// Whether a definition was out of date.
  Awaitable<bool> settle_once() const;
  /// False if there was a concurrent write.
  Awaitable<bool> write(api::Object definition) const;

  const Context context_;
  const resources::ServedResourcePtr definitions_;
};

}  // namespace lookout::apiserver::controllers
