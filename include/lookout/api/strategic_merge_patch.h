// Strategic merge patches: application/strategic-merge-patch+json.
#pragma once

#include <rapidjson/document.h>

#include "lookout/api/resource.h"

/// A strategic merge patch is a JSON merge patch that takes the type of the object into account. It
/// merges the lists that Kubernetes marks for merging (patchStrategy "merge"): lists of objects by
/// a key (patchMergeKey: a pod's containers by name), lists of scalars as sets. It replaces all
/// other lists. Members that begin with '$' are directives:
///
///     {"$patch": "delete", "name": "x"}        in a merged list: removes the element
///     {"$patch": "replace", ...}               replaces the object, in a merged list all of it
///     "$deleteFromPrimitiveList/FIELD": [...]  removes scalars from a list
///     "$setElementOrder/FIELD": [...]          the order of a merged list
///     "$retainKeys": [...]                     the only members that the object may keep
///
/// The semantics and messages are those of k8s.io/apimachinery/pkg/util/strategicpatch and of the
/// API server's patch handler.
namespace lookout::api {

/// True if objects of this type support strategic merge patches. Only built-in types do, because
/// the lists of custom resources carry no merge keys. For other types, an API server answers 415.
bool supports_strategic_merge_patch(const GroupVersionKind& type);

/// Applies `patch` to `target`, an object of the given type. `target` must belong to the document
/// of `allocator`. It keeps no references to `patch`.
///
/// For fields that the type does not have, objects are merged and lists are replaced. Directives
/// and nulls never end up in `target`, except where the schema allows any JSON or any member name.
///
/// The time grows linearly with the size of both.
///
/// Throws StatusError with the code, the reason and the message of the API server: 400 for a patch
/// that is not an object, a malformed directive or an unsupported type; 422 for lists of lists; 500
/// with a message such as "map: map[image:x] does not contain declared merge key: name" for most
/// errors in list elements. A patch or target that exceeds the nesting limit of objects is a 400,
/// too. `target` is then partly changed.
void apply_strategic_merge_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                                 const GroupVersionKind& type,
                                 rapidjson::Document::AllocatorType& allocator);

}  // namespace lookout::api
