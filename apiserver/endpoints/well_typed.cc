#include "apiserver/endpoints/well_typed.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/quantity.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Value;
using api::detail::Scalar;
using api::detail::Shape;
using api::detail::Type;

/// Whether a type accepts any value.
bool is_open(Scalar scalar) { return scalar == Scalar::kAny || scalar == Scalar::kObject; }

/// Checks an object, and counts the members of all objects in it.
class Walk {
 public:
  std::size_t members() const { return members_; }

  bool fits(Value value, Type type) {
    switch (value.kind()) {
      case Value::Kind::kAbsent:
      case Value::Kind::kNull:
        return true;
      case Value::Kind::kBool:
        return type.scalar() == Scalar::kBoolean || is_open(type.scalar());
      case Value::Kind::kNumber:
        return fits_number(value, type);
      case Value::Kind::kString:
        return fits_text(value.as_string(), type);
      case Value::Kind::kObject:
        return fits_object(value, type);
      case Value::Kind::kArray:
        return fits_array(value, type);
    }
    return false;
  }

 private:
  static bool fits_number(Value value, Type type) {
    switch (type.scalar()) {
      case Scalar::kDouble:
      case Scalar::kAny:
      case Scalar::kObject:
        return true;
      case Scalar::kString:
        return type.short_name() == "Quantity";
      case Scalar::kInt32:
      case Scalar::kIntOrString:
      case Scalar::kInt64: {
        // Go rejects 1.0 for an integer.
        const auto number =
            *value.data() == api::detail::kTagDouble ? std::nullopt : value.to_int();
        return number && (type.scalar() == Scalar::kInt64 || std::in_range<std::int32_t>(*number));
      }
      default:
        return false;
    }
  }

  static bool fits_text(std::string_view text, Type type) {
    switch (type.scalar()) {
      case Scalar::kString:
        return type.short_name() != "Quantity" || api::Quantity::parse(text);
      case Scalar::kIntOrString:
      case Scalar::kAny:
      case Scalar::kObject:
        return true;
      case Scalar::kDateTime:
        return text.empty() || (type.short_name() == "Time" && api::parse_time(text));
      default:
        return false;
    }
  }

  bool fits_object(Value object, Type type) {
    const auto each_fits = [&](Type of_members) {
      return std::ranges::all_of(object.members(), [&](const api::Members::Member& member) {
        ++members_;
        return fits(member.value, of_members);
      });
    };
    if (type.shape() == Shape::kMap) return each_fits(type.element());
    if (type.shape() == Shape::kStruct) return fits_structure(object, type);
    // All its content has the same type.
    return is_open(type.scalar()) && each_fits(type);
  }

  bool fits_structure(Value object, Type type) {
    const api::detail::Range range = api::detail::object_contents(object.data());
    for (const std::uint8_t* at = range.begin; at != range.end;) {
      const api::detail::Key key = api::detail::read_key(at);
      const auto field = type.field(key.symbol);
      ++members_;
      if (!field || !fits(Value(key.end), field->type())) return false;
      at = api::detail::skip_value(key.end);
    }
    return range.begin != range.end || object.empty();
  }

  bool fits_array(Value array, Type type) {
    if (type.shape() != Shape::kList && !is_open(type.scalar())) return false;
    const Type of_elements = type.shape() == Shape::kList ? type.element() : type;
    return std::ranges::all_of(array.elements(),
                               [&](Value element) { return fits(element, of_elements); });
  }

  std::size_t members_ = 0;
};

/// The number of keys, or a larger number if a text begins with a colon. nullopt for JSON with a space
/// before a colon, and if a key may end with a backslash.
std::optional<std::size_t> count_keys(std::string_view json) {
  // In an object, no colon comes before the fourth byte.
  constexpr std::size_t kFirst = 3;
  std::size_t keys = 0;
  for (std::size_t at = json.find(':'); at != std::string_view::npos; at = json.find(':', at + 1)) {
    if (at < kFirst) return std::nullopt;
    const char before = json[at - 1];
    if (before == ' ' || before == '\t' || before == '\n' || before == '\r') return std::nullopt;
    if (before != '"') continue;
    if (json[at - 2] != '\\') {
      ++keys;
    } else if (json[at - 3] == '\\') {
      return std::nullopt;
    }
  }
  return keys;
}

}  // namespace

bool is_well_typed(const api::Object& object, Type type) {
  return Walk().fits(object.body(), type);
}

bool is_well_typed(const api::Object& object, std::string_view json, Type type) {
  Walk walk;
  if (!walk.fits(object.body(), type)) return false;
  // If several members have the same name, the object has only one.
  return count_keys(json) == walk.members();
}

}  // namespace lookout::apiserver::endpoints
