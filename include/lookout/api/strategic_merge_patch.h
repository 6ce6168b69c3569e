// Strategic merge patches: application/strategic-merge-patch+json.
#pragma once

#include <rapidjson/document.h>

#include "lookout/api/resource.h"

/// A strategic merge patch is a JSON merge patch that knows the type of what it changes: lists that
/// Kubernetes declares so (patchStrategy "merge") are merged, by the key of their elements
/// (patchMergeKey: a pod's containers by name) or, if they hold scalars, as sets; all others are
/// replaced. Members that begin with '$' say what plain values cannot:
///
///     {"$patch": "delete", "name": "x"}        in a merged list: removes the element
///     {"$patch": "replace", ...}               replaces the object, in a merged list all of it
///     "$deleteFromPrimitiveList/FIELD": [...]  removes scalars from a list
///     "$setElementOrder/FIELD": [...]          the order of a merged list
///     "$retainKeys": [...]                     the only members that the object may keep
///
/// The semantics, with its messages, is that of k8s.io/apimachinery/pkg/util/strategicpatch and of
/// the API server's patch handler.
namespace lookout::api {

/// Whether objects of this type can be patched so: only the built-in ones, since nothing is known
/// of the lists of custom resources. An API server answers 415 for these.
bool supports_strategic_merge_patch(const GroupVersionKind& type);

/// Changes `target`, an object of the given type, by `patch`. `target` is of the document that
/// `allocator` belongs to; nothing of `patch` is referred to afterwards.
///
/// Fields that the type does not have are merged as objects and replaced as lists. Directives and
/// nulls never end up in `target`, except where the schema allows any JSON or any member name.
///
/// The time it takes grows with the size of both, not with its square.
///
/// Throws StatusError with the code, the reason and the message that the API server answers: 400
/// for a patch that is no object, a malformed directive or a type that is not supported; 422 for
/// lists of lists; 500 with a message such as "map: map[image:x] does not contain declared merge
/// key: name" for most of what is wrong with elements of lists. A patch or target that is nested
/// deeper than an object may be is a 400, too. `target` is then partly changed.
void apply_strategic_merge_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                                 const GroupVersionKind& type,
                                 rapidjson::Document::AllocatorType& allocator);

}  // namespace lookout::api
