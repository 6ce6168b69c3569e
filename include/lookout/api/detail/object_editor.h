// Small changes to an object without going through its mutable form.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "lookout/api/object.h"
#include "lookout/api/symbol.h"

namespace lookout::api {

/// What a member of metadata becomes: text, a number, or nothing (the member is taken out).
struct MetadataChange {
  Symbol field;
  std::variant<std::monostate, std::string_view, std::int64_t> value;
};

/// The object with these members of its metadata changed, each field named once. Costs about a copy
/// of the object's bytes; the rest of it is not looked at. An object without metadata gets one.
Object with_metadata(const Object& object, std::initializer_list<MetadataChange> changes);

/// The same object of another type: apiVersion and kind are replaced.
Object with_type(const Object& object, std::string_view api_version, std::string_view kind);

/// The type and the metadata of an object, as "PartialObjectMetadata" of meta.k8s.io/v1.
Object partial_metadata(const Object& object);

}  // namespace lookout::api
