// Subresources that change a part of an object.
#pragma once

#include "apiserver/json.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The rules for a subresource that changes one part of an object.
struct PartRules {
  /// Reverts every other change.
  void (*keep_rest)(json::Value& object, const json::Value& old, json::Allocator& allocator);
  /// Called with the stored forms, after the object has been validated.
  void (*validate_change)(const api::Object& object, const api::Object& old, Causes& causes);
};

/// signing_request_status.cc: the approval of a certificate signing request.
extern const PartRules approval_rules;

/// The rules for a part; null for the main part, the status and the whole.
const PartRules* part_rules(Part part);

}  // namespace lookout::apiserver::resources
