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
/// The part of it that is about labels, annotations, owners and finalizers.
void validate_metadata_details(const api::Object& object, Causes& causes);
/// One of Kubernetes' own, which have no domain.
bool is_standard_finalizer(std::string_view name);
/// In most kinds, a finalizer without a domain must be one of Kubernetes' own.
void validate_finalizer_names(const ServedResource& resource, const api::Object& object,
                              Causes& causes);
/// ... and, beyond that, for a change.
void validate_metadata_update(const api::Object& object, const api::Object& old, Causes& causes);

/// Whether the object's deletion has begun: it is there only until its finalizers, dependents or
/// grace period let it go.
bool is_deleting(const api::Object& object);

/// Whether two objects differ in nothing but the named members.
bool equal_but_for(std::initializer_list<std::string_view> names, api::Value a, api::Value b);

/// Takes out what only the server sets, and gives the object a UID and its time of creation.
void initialize_metadata(json::Value& metadata, json::Allocator& allocator);

/// Takes out labels, annotations and so on that hold nothing, as Go does when it writes them.
void drop_empty_metadata(json::Value& metadata);

/// "web-" and five random characters that spell no words.
std::string generate_name(std::string_view prefix);

/// A random UUID.
std::string new_uid();

/// Puts the object into the namespace of the request. Throws api::StatusError (400) if it names
/// another one. `ns` is empty for what lives in no namespace.
void ensure_namespace(json::Value& metadata, std::string_view ns, json::Allocator& allocator);
/// Throws api::StatusError (400) if an object names another namespace than the request.
void check_same_namespace(std::string_view ns, std::string_view requested);

}  // namespace lookout::apiserver::resources
