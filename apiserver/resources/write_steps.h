// Common steps of creating and changing an object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/store.h"

namespace lookout::apiserver::resources {

/// The maximum number of attempts, with other generated names or after conflicts.
inline constexpr int kWriteAttempts = 8;

/// The mutable form of an object of this resource, decoded into Go's types.
Document typed_document(const ServedResource& resource, const Object& object);

/// The same for the body of a subresource, which is of a built-in kind.
Document typed_document(const api::GroupVersionKind& kind, const Object& object);

/// Adds empty spec and status to built-in kinds that have them: in Go, these fields are not pointers.
void add_parts(const ServedResource& resource, Document& document, Allocator& allocator);

/// Built-in kinds: adds the unset fields that Go writes. Custom resources: prunes and sets defaults by
/// the schema.
void complete(const ServedResource& resource, Document& document, Allocator& allocator);

/// The last step of a write: converts unset fields to the form that they have when the object is read
/// from the storage.
void settle(const ServedResource& resource, Document& document, Allocator& allocator);

/// The object after Go's decoder. Removes server-side fields from a new object.
Object decoded(const Target& target, const Object& object, bool is_new);

/// The decoded object, with the client as the owner of the fields that differ from `present`, which
/// is empty for a new object.
Object owned(const Target& target, const Object& object, const Object& present);

/// Throws api::StatusError (400) if the name differs from that in the request's path.
void check_target_name(const Target& target, const Object& wanted);

/// The same for the name and the namespace.
void check_identity(const Target& target, const Object& wanted);

/// Whether this operation needs admission.
bool asks(const Target& target, Write::Operation operation);

void throw_if_invalid(const ServedResource& resource, std::string_view name, Causes causes);

/// A failure without a specific Status in the API server.
StatusError plain_failure(std::int32_t code, std::string message);

}  // namespace lookout::apiserver::resources
