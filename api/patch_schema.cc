#include "api/patch_schema.h"

#include <fmt/format.h>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/go_values.h"

namespace lookout::api::detail {
namespace {

/// The Go type's reflect.Kind, as far as known from the schema.
std::string_view go_kind(Type type) {
  switch (type.shape()) {
    case Shape::kStruct:
      return "struct";
    case Shape::kMap:
      return "map";
    case Shape::kList:
      return "slice";
    case Shape::kScalar:
      break;
  }
  return type.scalar() == Scalar::kBytes ? "slice" : go_scalar_name(type.scalar());
}

PatchField failure(std::string message) {
  PatchField out;
  out.error = std::move(message);
  return out;
}

}  // namespace

PatchField PatchSchema::object_field(std::string_view name) const {
  PatchField out;
  if (!type_) {
    out.in_schema = false;
    return out;
  }
  // Named scalars are Go structs without JSON fields.
  const bool is_struct = type_->shape() == Shape::kStruct || !type_->name().empty();
  if (!is_struct) {
    return failure(fmt::format(
        "merging an object in json but data type is not struct, instead is: {}", go_kind(*type_)));
  }
  const auto field = type_->field(name);
  if (!field) {
    out.in_schema = false;
    if (type_->shape() == Shape::kStruct) return out;
    return failure(no_field(name));
  }
  const unsigned strategies = field->patch_strategies();
  out.schema = PatchSchema(field->type());
  out.merge_key = field->patch_merge_key();
  out.retain_keys = (strategies & patch_strategy::kRetainKeys) != 0;
  if (strategies & patch_strategy::kMerge) out.strategy = PatchStrategy::kMerge;
  if (strategies & patch_strategy::kReplace) out.strategy = PatchStrategy::kReplace;
  return out;
}

PatchField PatchSchema::list_field(std::string_view name) const {
  PatchField out = object_field(name);
  if (!out.error.empty() || !out.schema.type_) return out;
  const Type type = *out.schema.type_;
  if (type.shape() != Shape::kList)
    return failure(fmt::format("expected slice or array type, but got: {}", go_kind(*type_)));
  if (type.element().shape() == Shape::kList) return failure("unexpected slice of slice");
  out.schema = PatchSchema(type.element());
  return out;
}

std::string PatchSchema::no_field(std::string_view name) const {
  return fmt::format("unable to find api field in struct {} for the json field {}",
                     type_ ? type_->short_name() : "", quote(name));
}

PatchSchema PatchSchema::member(std::string_view name) const {
  if (!type_ || is_opaque()) return *this;
  if (type_->shape() == Shape::kMap) return PatchSchema(type_->element());
  if (type_->shape() != Shape::kStruct) return {};
  const auto field = type_->field(name);
  return field ? PatchSchema(field->type()) : PatchSchema();
}

PatchSchema PatchSchema::element() const {
  if (!type_ || is_opaque()) return *this;
  return type_->shape() == Shape::kList ? PatchSchema(type_->element()) : PatchSchema();
}

}  // namespace lookout::api::detail
