// JSON values as the API server's Go code handles them: dynamic types, equality and printing.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lookout/api/detail/type_table.h"
#include "lookout/api/value.h"

namespace lookout::api::detail {

/// The dynamic type of an interface{} after decoding JSON with whole numbers preserved.
enum class GoType : std::uint8_t { kNil, kBool, kInt64, kFloat64, kString, kMap, kSlice };

GoType go_type(const rapidjson::Value& value);
/// "map[string]interface {}", as "%s" prints the reflect.Type.
std::string_view go_type_name(GoType type);

/// The Go type of a field that is a scalar in the schema: "int32", "[]uint8".
std::string_view go_scalar_name(Scalar scalar);

/// The Go type of a field: "v1.Container", "[]string", "map[string]int32".
std::string go_type_name(Type type);
/// The name that Go's decoder has for a JSON value that does not fit: "bool", "number", "string" ...
std::string_view go_json_name(Value value);

/// Text that is equal for equal scalars and different for different ones: 1, 1.5, "1" and true all
/// differ. Empty for objects and arrays, which Go cannot compare.
std::optional<std::string> scalar_key(const rapidjson::Value& value);

/// True if both are equal as decoded JSON, in any order of members.
bool deep_equal(const rapidjson::Value& a, const rapidjson::Value& b);

/// Prints as fmt does: print_value() with "%v" (map[a:1 b:[x y]]), print_as_text() with "%s", which
/// marks values that are not text (%!s(int64=1)).
std::string print_value(const rapidjson::Value& value);
std::string print_as_text(const rapidjson::Value& value);

/// The members of an object as a Go map holds them: of members with the same name, the last one
/// counts. A lookup takes constant time even in a large object.
class UniqueMembers {
 public:
  struct Member {
    std::string_view name;
    const rapidjson::Value* value;
  };

  explicit UniqueMembers(const rapidjson::Value& object);

  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }
  std::size_t size() const { return members_.size(); }
  /// Null if there is none.
  const rapidjson::Value* find(std::string_view name) const;

 private:
  std::optional<std::size_t> position(std::string_view name) const;

  std::vector<Member> members_;
  std::unordered_map<std::string_view, std::size_t> index_;  // large objects only
};

}  // namespace lookout::api::detail
