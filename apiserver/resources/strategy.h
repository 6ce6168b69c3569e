// Strategy: how the objects of a resource are created, changed and deleted.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/json.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::resources {

using Causes = std::vector<api::StatusCause>;

/// The changes that metadata.generation counts.
enum class Generation {
  kNone,               ///< no generation
  kOnce,               ///< always 1
  kSpec,               ///< starts at 1; counts changes outside metadata and status
  kSpecOrAnnotations,  ///< also counts changes of the annotations
  kSpecOrLabels,       ///< also counts changes of the labels
  kContent,            ///< starts at 1; counts changes outside metadata
  kChangesOfSpec       ///< starts at 0; counts changes of the spec
};

/// How the objects of a resource are created and changed (k8s.io/apiserver's RESTCreateStrategy and
/// RESTUpdateStrategy). A null function does nothing.
struct Strategy {
  api::validation::Messages (*check_name)(std::string_view name) =
      api::validation::check_dns1123_subdomain;
  Generation generation = Generation::kNone;
  /// A PUT may create an object.
  bool create_on_update = false;
  /// A PUT may have no resourceVersion.
  bool unconditional_update = true;
  /// The response to a deletion is the object instead of a Status.
  bool returns_deleted_object = false;
  /// A deletion without a propagation policy orphans the dependents.
  bool orphans_dependents = false;
  /// The creator may set the status (a node's kubelet).
  bool keeps_status_on_create = false;
  /// An update of the object changes the status, too.
  bool changes_status = false;
  /// A status update changes the status only, not the metadata, or not the labels.
  bool status_update_keeps_metadata = false;
  bool status_update_keeps_labels = false;
  /// A status update reports each error in metadata one time less.
  bool status_validates_metadata_once = false;
  /// A changed object is also validated as a new one, which reports errors in its metadata twice.
  bool validates_metadata_again = false;
  /// Finalizers without a domain may have any name, not only built-in ones.
  bool takes_any_finalizer = false;
  /// The change is validated before the changed object.
  bool validates_change_first = false;

  /// Sets defaults; called for every object that a client sends.
  void (*set_defaults)(json::Value& object, json::Allocator& allocator) = nullptr;
  /// Called after the status has been removed.
  void (*prepare_for_create)(json::Value& object, json::Allocator& allocator) = nullptr;
  /// Called after the status of `old` has been inserted.
  void (*prepare_for_update)(json::Value& object, const json::Value& old,
                             json::Allocator& allocator) = nullptr;
  /// Set defaults in a client's status, and revert changes of it.
  void (*set_status_defaults)(json::Value& object, json::Allocator& allocator) = nullptr;
  void (*prepare_for_status_update)(json::Value& object, const json::Value& old,
                                    json::Allocator& allocator) = nullptr;
  /// Called with the final object: applies the consequences of the change.
  api::Object (*finish_update)(const api::Object& object, const api::Object& old) = nullptr;
  /// Validate everything except metadata, for a new object and for a changed one.
  void (*validate)(const api::Object& object, Causes& causes) = nullptr;
  /// Validates a new object only.
  void (*validate_new)(const api::Object& object, Causes& causes) = nullptr;
  void (*validate_update)(const api::Object& object, const api::Object& old,
                          Causes& causes) = nullptr;
  /// Validates a changed status.
  void (*validate_status)(const api::Object& object, const api::Object& old,
                          Causes& causes) = nullptr;
};

/// The strategy of a built-in resource, and the strategy of custom resources.
const Strategy& strategy_for(std::string_view group, std::string_view plural);
const Strategy& custom_resource_strategy();

/// True if an update (not only of the status) increases the generation. Both objects must be in their
/// stored form, so that equal content compares equal.
bool is_new_generation(Generation generation, const api::Object& object, const api::Object& old);

}  // namespace lookout::apiserver::resources
