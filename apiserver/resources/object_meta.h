// Metadata of incoming objects.
#pragma once

#include <initializer_list>
#include <string_view>

#include "apiserver/json.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/resources/strategy.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The type of the metadata of all objects.
api::detail::Type metadata_type();

/// Validates a new object's metadata (k8s.io/apimachinery/pkg/api/validation).
void validate_metadata(const ServedResource& resource, const api::Object& object, Causes& causes);
/// The part of validate_metadata() for labels, annotations, owners and finalizers.
void validate_metadata_details(const api::Object& object, Causes& causes);
/// Whether it is a built-in finalizer, which has no domain.
bool is_standard_finalizer(std::string_view name);
/// In most kinds, a finalizer without a domain must be a built-in one.
void validate_finalizer_names(const ServedResource& resource, const api::Object& object,
                              Causes& causes);
/// Validates a change of the metadata.
void validate_metadata_update(const api::Object& object, const api::Object& old, Causes& causes);

/// Whether the object is being deleted: it exists only until its finalizers are removed or its grace
/// period ends.
bool is_deleting(const api::Object& object);

/// Whether two objects differ only in the named members.
bool equal_but_for(std::initializer_list<std::string_view> names, api::Value a, api::Value b);

/// Removes fields that only the server sets, and sets uid and creationTimestamp.
void initialize_metadata(json::Value& metadata, json::Allocator& allocator);

/// Removes empty labels, annotations and so on, as Go's encoder does.
void drop_empty_metadata(json::Value& metadata);

/// "web-" and five random characters, which cannot form words.
std::string generate_name(std::string_view prefix);

/// A random UUID.
std::string new_uid();

/// Sets the object's namespace to that of the request. Throws api::StatusError (400) if the object has
/// another one. `ns` is empty for cluster-scoped objects.
void ensure_namespace(json::Value& metadata, std::string_view ns, json::Allocator& allocator);
/// Throws api::StatusError (400) if an object names another namespace than the request.
void check_same_namespace(std::string_view ns, std::string_view requested);

}  // namespace lookout::apiserver::resources
