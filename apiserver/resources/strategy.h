// What is particular about the objects of a resource.
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
  kNone,               ///< there is none
  kOnce,               ///< one, whatever changes
  kSpec,               ///< one, and changes of what is neither metadata nor status
  kSpecOrAnnotations,  ///< and of the annotations
  kSpecOrLabels,       ///< and of the labels
  kContent,            ///< one, and changes of what is no metadata
  kChangesOfSpec       ///< none to begin with, and changes of the spec
};

/// How the objects of a resource are created and changed (k8s.io/apiserver's RESTCreateStrategy and
/// RESTUpdateStrategy). Functions may be null: nothing to do.
struct Strategy {
  api::validation::Messages (*check_name)(std::string_view name) =
      api::validation::check_dns1123_subdomain;
  Generation generation = Generation::kNone;
  /// PUT of what does not exist creates it.
  bool create_on_update = false;
  /// A PUT may come without a resourceVersion.
  bool unconditional_update = true;
  /// A deletion is answered with the object instead of a Status.
  bool returns_deleted_object = false;
  /// The creator says what the status is (a node's kubelet).
  bool keeps_status_on_create = false;
  /// A status update changes the status alone, and no metadata.
  bool status_update_keeps_metadata = false;

  /// A changed object is validated as a new one once more: what is wrong with its metadata is told
  /// again.
  bool validates_metadata_again = false;

  /// Fills in what a client may leave out; called for every object that comes in.
  void (*set_defaults)(json::Value& object, json::Allocator& allocator) = nullptr;
  /// After the status has been taken out.
  void (*prepare_for_create)(json::Value& object, json::Allocator& allocator) = nullptr;
  /// After the status of `old` has been put in.
  void (*prepare_for_update)(json::Value& object, const json::Value& old,
                             json::Allocator& allocator) = nullptr;
  /// Runs when the object has its final state: applies the consequences of the change.
  api::Object (*finish_update)(const api::Object& object, const api::Object& old) = nullptr;
  /// Beyond metadata, for a new object and for a changed one.
  void (*validate)(const api::Object& object, Causes& causes) = nullptr;
  void (*validate_update)(const api::Object& object, const api::Object& old,
                          Causes& causes) = nullptr;
  /// For a changed status.
  void (*validate_status)(const api::Object& object, Causes& causes) = nullptr;
};

/// The strategy of a built-in resource, and that of custom resources.
const Strategy& strategy_for(std::string_view group, std::string_view plural);
const Strategy& custom_resource_strategy();

/// Whether an update, which is none of the status alone, is a new generation. Both objects are as
/// they are kept, so that what means the same is the same.
bool is_new_generation(Generation generation, const api::Object& object, const api::Object& old);

}  // namespace lookout::apiserver::resources
