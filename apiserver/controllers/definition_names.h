// DefinitionNames: decides which names of a CustomResourceDefinition are accepted.
#pragma once

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::controllers {

/// Of the definitions of one group, each name (plural, singular, short name, kind, list kind) belongs
/// to the definition that asked for it first. Another definition that asks for it keeps its present
/// names, and gets the new one when that is free. A definition is established, and served, once all of its names are accepted
/// (k8s.io/apiextensions-apiserver/pkg/controller/status.NamingConditionController).
/// Safe to use from many threads.
class DefinitionNames {
 public:
  /// `context` as for controllers.
  explicit DefinitionNames(Context context);

  /// Brings the status of all definitions up to date. Call it after each change of a definition.
  Awaitable<void> settle() const;

 private:
  /// Whether a definition was out of date.
  Awaitable<bool> settle_once() const;
  /// False if somebody else has written it meanwhile.
  Awaitable<bool> write(api::Object definition) const;

  const Context context_;
  const resources::ServedResourcePtr definitions_;
};

}  // namespace lookout::apiserver::controllers
