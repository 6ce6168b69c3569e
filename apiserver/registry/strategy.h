// What is particular about the objects of a resource.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/json.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::registry {

using Causes = std::vector<api::StatusCause>;

/// How the objects of a resource are created and changed (k8s.io/apiserver's RESTCreateStrategy and
/// RESTUpdateStrategy). Functions may be null: nothing to do.
struct Strategy {
  api::validation::Messages (*check_name)(std::string_view name) =
      api::validation::check_dns1123_subdomain;
  /// metadata.generation counts changes of what is neither metadata nor status.
  bool has_generation = false;
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

/// Whether anything besides metadata and status (and the type) differs.
bool spec_differs(const api::Object& a, const api::Object& b);

}  // namespace lookout::apiserver::registry
