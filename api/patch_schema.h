// PatchSchema: the type information that strategic merge patches need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/detail/type_table.h"

namespace lookout::api::detail {

enum class PatchStrategy : std::uint8_t { kNone, kMerge, kReplace };

struct PatchField;

/// The type of a value, if known. The types of fields outside the schema are unknown.
class PatchSchema {
 public:
  PatchSchema() = default;
  explicit PatchSchema(Type type) : type_(type) {}

  /// How to merge a member whose old and new values are objects, or lists. Fails with Kubernetes'
  /// message inside maps and fields that accept any JSON.
  PatchField object_field(std::string_view name) const;
  PatchField list_field(std::string_view name) const;

  /// Kubernetes' message for an unknown field.
  std::string no_field(std::string_view name) const;

  /// The type of a member, or of a list's elements, for copying.
  PatchSchema member(std::string_view name) const;
  PatchSchema element() const;

  /// Whether members are schema fields rather than data.
  bool has_fields() const { return !type_ || type_->shape() == Shape::kStruct; }
  /// Whether the value is any JSON.
  bool is_opaque() const { return type_ && type_->shape() == Shape::kScalar; }

 private:
  std::optional<Type> type_;
};

struct PatchField {
  PatchSchema schema;  // of the member; for lists, of its elements
  PatchStrategy strategy = PatchStrategy::kNone;
  bool retain_keys = false;
  std::string_view merge_key = {};
  bool in_schema = true;   // false for fields that the schema does not have
  std::string error = {};  // not empty: the lookup failed, and nothing else is set
};

}  // namespace lookout::api::detail
