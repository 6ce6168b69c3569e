// Access to the generated table of the schema's types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lookout::api::detail {

enum class Shape : std::uint8_t { kScalar, kStruct, kList, kMap };

/// The JSON type of a scalar. The schema says nothing more about values of type kObject and kAny.
enum class Scalar : std::uint8_t {
  kNone,
  kString,
  kBytes,     // a string in base64
  kDateTime,  // a string: RFC 3339
  kIntOrString,
  kInt32,
  kInt64,
  kDouble,
  kBoolean,
  kObject,
  kAny,
};

/// How server-side apply merges a list: x-kubernetes-list-type.
enum class ListType : std::uint8_t { kNone, kAtomic, kSet, kMap };
/// x-kubernetes-map-type.
enum class MapType : std::uint8_t { kNone, kAtomic, kGranular };

/// The values of patchStrategy; a field may have several.
namespace patch_strategy {
inline constexpr unsigned kMerge = 1;
inline constexpr unsigned kReplace = 2;
inline constexpr unsigned kRetainKeys = 4;
}  // namespace patch_strategy

/// The rows of the table, as the generator writes them.
struct TypeEntry {
  std::uint16_t first_field;
  std::uint16_t element;  // lists and maps only
  Shape shape;
  Scalar scalar;
};
struct FieldEntry {
  std::uint16_t symbol;
  std::uint16_t type;
  std::uint16_t merge_key;  // a symbol, or kNoSymbol
  std::uint8_t flags;
  std::uint8_t list_map_keys;  // index into the sets of keys
};

class Field;

/// A type of the schema: a structure, a list, a map or a scalar. Takes two bytes and refers to the
/// static table.
class Type {
 public:
  /// The type of a built-in kind: a resource, or another type that is sent as an object (Status,
  /// PodList).
  static std::optional<Type> of_kind(std::string_view group, std::string_view version,
                                     std::string_view kind);

  Shape shape() const;
  /// kNone for types that are not scalars.
  Scalar scalar() const;
  /// The element type of a list or map.
  Type element() const;

  /// A name such as "io.k8s.api.core.v1.PodSpec". Structures have one, and so do scalars such as
  /// Quantity. Empty for lists, maps and plain scalars.
  std::string_view name() const;
  /// A name such as "PodSpec".
  std::string_view short_name() const;

  /// The fields of a structure, ordered by name.
  class Fields;
  Fields fields() const;
  std::optional<Field> field(std::string_view name) const;
  std::optional<Field> field(std::uint16_t symbol) const;

  friend bool operator==(Type, Type) = default;

 private:
  friend class Field;
  explicit Type(std::uint16_t id) : id_(id) {}
  const TypeEntry& entry() const;

  std::uint16_t id_;
};

class Field {
 public:
  explicit Field(const FieldEntry& entry) : entry_(&entry) {}

  std::uint16_t symbol() const { return entry_->symbol; }
  std::string_view name() const;
  Type type() const { return Type(entry_->type); }
  bool required() const { return (entry_->flags & 1) != 0; }
  /// A bit set of patch_strategy constants.
  unsigned patch_strategies() const { return entry_->flags >> 1 & 7; }
  /// Empty if there is none.
  std::string_view patch_merge_key() const;
  ListType list_type() const { return static_cast<ListType>(entry_->flags >> 4 & 3); }
  MapType map_type() const { return static_cast<MapType>(entry_->flags >> 6); }
  /// The symbols of x-kubernetes-list-map-keys.
  std::span<const std::uint16_t> list_map_keys() const;

 private:
  const FieldEntry* entry_;
};

class Type::Fields {
 public:
  class Iterator {
   public:
    explicit Iterator(const FieldEntry* at) : at_(at) {}
    Field operator*() const { return Field(*at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const FieldEntry* at_;
  };

  explicit Fields(std::span<const FieldEntry> entries) : entries_(entries) {}
  Iterator begin() const { return Iterator(entries_.data()); }
  Iterator end() const { return Iterator(entries_.data() + entries_.size()); }
  std::size_t size() const { return entries_.size(); }

 private:
  std::span<const FieldEntry> entries_;
};

}  // namespace lookout::api::detail
