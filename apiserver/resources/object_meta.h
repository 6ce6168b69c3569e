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

/// The rules of k8s.io/apimachinery/pkg/api/validation for a new object's metadata ...
void validate_metadata(const ServedResource& resource, const api::Object& object, Causes& causes);
/// The part for labels, annotations, owners and finalizers.
void validate_metadata_details(const api::Object& object, Causes& causes);
/// A built-in finalizer, which has no domain.
bool is_standard_finalizer(std::string_view name);
/// In most kinds, a finalizer without a domain must be a built-in one.
void validate_finalizer_names(const ServedResource& resource, const api::Object& object,
                              Causes& causes);
/// ... and, beyond that, for a change.
void validate_metadata_update(const api::Object& object, const api::Object& old, Causes& causes);

/// Whether the object is being deleted: it exists only until its finalizers are removed or its grace
/// period ends.
bool is_deleting(const api::Object& object);

/// Whether two objects differ in nothing but the named members.
bool equal_but_for(std::initializer_list<std::string_view> names, api::Value a, api::Value b);

/// Removes fields that only the server sets, and sets uid and creationTimestamp.
void initialize_metadata(json::Value& metadata, json::Allocator& allocator);

/// Removes empty labels, annotations and so on, as Go's encoder does.
void drop_empty_metadata(json::Value& metadata);

/// "web-" and five random characters that spell no words.
std::string generate_name(std::string_view prefix);

/// A random UUID.
std::string new_uid();

/// Sets the object's namespace to that of the request. Throws api::StatusError (400) if the object has
/// another one. `ns` is empty for cluster-scoped objects.
void ensure_namespace(json::Value& metadata, std::string_view ns, json::Allocator& allocator);
/// Throws api::StatusError (400) if an object names another namespace than the request.
void check_same_namespace(std::string_view ns, std::string_view requested);

}  // namespace lookout::apiserver::resources
