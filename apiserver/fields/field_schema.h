// FieldSchema: how the fields of a value are owned, by the type of the value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/json.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/value.h"

namespace lookout::apiserver::fields {

/// The type of a value in structured-merge-diff: a scalar, a list or a map, whose content is owned as
/// a whole (atomic) or by element. It comes from the built-in types, from the structural schema of a
/// custom resource or, without these, from the value itself.
///
/// Cheap to copy. It refers to the custom resource's schema, which must outlive it.
class FieldSchema {
 public:
  enum class Form : std::uint8_t { kMap, kScalar, kList };
  enum class Scalar : std::uint8_t { kNumeric, kString, kBoolean, kUntyped };

  /// The unknown type: maps are owned by entry, lists as a whole.
  FieldSchema() = default;
  /// A built-in object.
  static FieldSchema of(api::detail::Type type);
  /// The objects of a custom resource, which may have no schema.
  static FieldSchema of_custom_resource(api::Value schema);

  /// The form of a value: its own, if the type allows it, else the type's.
  Form form_of(const json::Value& value) const;
  /// Whether content of this form is owned as a whole.
  bool is_atomic(Form form) const;
  Scalar scalar() const;

  /// The type of a member; empty if there is no such field. `declared`: the member is a field, not
  /// a map entry.
  struct Member;
  std::optional<Member> member(std::string_view name) const;
  FieldSchema element() const;

  /// Whether this is the schema of a custom resource, which can change.
  bool can_change() const { return source_ == Source::kCustom; }

  /// The names of the key fields of a list; empty for a set.
  std::vector<std::string_view> keys() const;
  /// The canonical JSON of a key field's default, for elements that omit it; empty if there is none.
  std::string key_default(std::string_view name) const;

 private:
  enum class Source : std::uint8_t {
    kDeduced,  // maps piece by piece, lists as a whole
    kAtomic,   // below such a list
    kBuiltin,  // type_, with the field's annotations
    kCustom,   // schema_
    kText      // apiVersion and kind
  };

  explicit FieldSchema(Source source) : source_(source) {}
  static FieldSchema of(api::detail::Field field);
  static FieldSchema custom(api::Value schema, bool keeps_unknown);
  static FieldSchema metadata();

  bool takes_any_form() const;
  Form own_form() const;
  std::optional<Member> custom_member(std::string_view name) const;

  Source source_ = Source::kDeduced;
  bool keeps_unknown_ = false;  // x-kubernetes-preserve-unknown-fields
  bool is_object_ = false;      // has apiVersion, kind and metadata
  api::detail::ListType list_ = api::detail::ListType::kNone;
  api::detail::MapType map_ = api::detail::MapType::kNone;
  std::optional<api::detail::Type> type_;
  std::span<const std::uint16_t> list_keys_;
  api::Value schema_;
};

struct FieldSchema::Member {
  FieldSchema schema;
  bool declared = false;
};

}  // namespace lookout::apiserver::fields
