// Small changes to an object, made without its mutable form.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "lookout/api/object.h"
#include "lookout/api/symbol.h"

namespace lookout::api {

/// The new value of a member of metadata: text, a number, or nothing to remove the member.
struct MetadataChange {
  Symbol field;
  std::variant<std::monostate, std::string_view, std::int64_t> value;
};

/// Returns the object with these members of its metadata changed. Each field may occur once. The
/// cost is about one copy of the object's bytes. An object without metadata gets one.
Object with_metadata(const Object& object, std::initializer_list<MetadataChange> changes);

/// Returns the object with another apiVersion and kind.
Object with_type(const Object& object, std::string_view api_version, std::string_view kind);

/// Returns the metadata of the object as a "PartialObjectMetadata" of meta.k8s.io/v1.
Object partial_metadata(const Object& object);

}  // namespace lookout::api
