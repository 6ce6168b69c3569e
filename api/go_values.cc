#include "lookout/api/detail/go_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>

#include "lookout/api/detail/json_values.h"
#include "lookout/base/enum_names.h"

namespace lookout::api::detail {
namespace {

/// For fewer members, a linear search is faster than hashing.
constexpr std::size_t kWide = 12;

/// strconv.FormatFloat(number, 'g', -1, 64).
std::string print_float(double number) {
  const auto shortest = [number](std::chars_format format) {
    char buffer[64];
    return std::string(buffer, std::to_chars(buffer, std::end(buffer), number, format).ptr);
  };
  std::string scientific = shortest(std::chars_format::scientific);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  return exponent < -4 || exponent >= 6 ? scientific : shortest(std::chars_format::fixed);
}

class Printer {
 public:
  explicit Printer(bool as_text) : as_text_(as_text) {}

  void print(const JsonValue& value) {
    switch (go_type(value)) {
      case GoType::kNil:
        out_ += as_text_ ? "%!s(<nil>)" : "<nil>";
        break;
      case GoType::kBool:
        scalar("bool", value.GetBool() ? "true" : "false");
        break;
      case GoType::kInt64:
        scalar("int64", std::to_string(value.GetInt64()));
        break;
      case GoType::kFloat64:
        scalar("float64", print_float(value.GetDouble()));
        break;
      case GoType::kString:
        out_ += text_of(value);
        break;
      case GoType::kSlice: {
        out_ += '[';
        std::string_view separator;
        for (const auto& element : value.GetArray()) {
          out_ += separator;
          separator = " ";
          print(element);
        }
        out_ += ']';
        break;
      }
      case GoType::kMap: {
        const UniqueMembers unique(value);
        std::vector<UniqueMembers::Member> members(unique.begin(), unique.end());
        std::sort(members.begin(), members.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        out_ += "map[";
        std::string_view separator;
        for (const auto& member : members) {
          out_ += separator;
          separator = " ";
          out_ += member.name;
          out_ += ':';
          print(*member.value);
        }
        out_ += ']';
        break;
      }
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void scalar(std::string_view type, std::string_view text) {
    if (as_text_) {
      out_ += fmt::format("%!s({}={})", type, text);
    } else {
      out_ += text;
    }
  }

  bool as_text_;
  std::string out_;
};

std::string print(const JsonValue& value, bool as_text) {
  Printer printer(as_text);
  printer.print(value);
  return printer.take();
}

}  // namespace

GoType go_type(const JsonValue& value) {
  if (value.IsNull()) return GoType::kNil;
  if (value.IsBool()) return GoType::kBool;
  if (value.IsString()) return GoType::kString;
  if (value.IsObject()) return GoType::kMap;
  if (value.IsArray()) return GoType::kSlice;
  return value.IsInt64() ? GoType::kInt64 : GoType::kFloat64;
}

std::string_view go_type_name(GoType type) {
  static constexpr auto kNames =
      base::enum_names<GoType>({{GoType::kNil, "%!s(<nil>)"},
                                {GoType::kBool, "bool"},
                                {GoType::kInt64, "int64"},
                                {GoType::kFloat64, "float64"},
                                {GoType::kString, "string"},
                                {GoType::kMap, "map[string]interface {}"},
                                {GoType::kSlice, "[]interface {}"}});
  return kNames.name_of(type);
}

std::string_view go_scalar_name(Scalar scalar) {
  static constexpr auto kNames = base::enum_names<Scalar>({{Scalar::kBytes, "[]uint8"},
                                                           {Scalar::kInt32, "int32"},
                                                           {Scalar::kInt64, "int64"},
                                                           {Scalar::kDouble, "float64"},
                                                           {Scalar::kBoolean, "bool"}});
  return kNames.name_of(scalar, "string");
}

namespace {

/// "v1.Container" for io.k8s.api.core.v1.Container.
std::string without_package(std::string_view full) {
  const std::size_t last = full.rfind('.');
  if (last == std::string_view::npos) return std::string(full);
  const std::size_t before = full.rfind('.', last - 1);
  return std::string(full.substr(before == std::string_view::npos ? 0 : before + 1));
}

}  // namespace

std::string go_type_name(Type type) {
  switch (type.shape()) {
    case Shape::kStruct:
      return without_package(type.name());
    case Shape::kList:
      return "[]" + go_type_name(type.element());
    case Shape::kMap:
      return "map[string]" + go_type_name(type.element());
    case Shape::kScalar:
      break;
  }
  if (!type.name().empty()) return without_package(type.name());
  return std::string(go_scalar_name(type.scalar()));
}

std::string_view go_json_name(Value value) {
  static constexpr auto kNames = base::enum_names<Value::Kind>({{Value::Kind::kBool, "bool"},
                                                                {Value::Kind::kNumber, "number"},
                                                                {Value::Kind::kString, "string"},
                                                                {Value::Kind::kObject, "object"},
                                                                {Value::Kind::kArray, "array"}});
  return kNames.name_of(value.kind(), "null");
}

std::optional<std::string> scalar_key(const JsonValue& value) {
  switch (go_type(value)) {
    case GoType::kNil:
      return "nil";
    case GoType::kBool:
      return value.GetBool() ? "true" : "false";
    case GoType::kInt64:
      return fmt::format("i{}", value.GetInt64());
    case GoType::kFloat64: {
      const double number = value.GetDouble();
      return fmt::format("d{}", std::bit_cast<std::uint64_t>(number == 0 ? 0.0 : number));
    }
    case GoType::kString:
      return fmt::format("s{}", text_of(value));
    case GoType::kMap:
    case GoType::kSlice:
      break;
  }
  return std::nullopt;
}

bool deep_equal(const JsonValue& a, const JsonValue& b) {
  const GoType type = go_type(a);
  if (type != go_type(b)) return false;
  if (type == GoType::kString) return text_of(a) == text_of(b);
  if (type == GoType::kSlice) {
    return std::equal(a.Begin(), a.End(), b.Begin(), b.End(),
                      [](const auto& x, const auto& y) { return deep_equal(x, y); });
  }
  if (type == GoType::kMap) {
    const UniqueMembers left(a);
    const UniqueMembers right(b);
    return left.size() == right.size() &&
           std::all_of(left.begin(), left.end(), [&](const UniqueMembers::Member& member) {
             const JsonValue* other = right.find(member.name);
             return other != nullptr && deep_equal(*member.value, *other);
           });
  }
  return scalar_key(a) == scalar_key(b);
}

std::string print_value(const JsonValue& value) { return print(value, false); }
std::string print_as_text(const JsonValue& value) { return print(value, true); }

UniqueMembers::UniqueMembers(const JsonValue& object) {
  members_.reserve(object.MemberCount());
  const bool wide = object.MemberCount() > kWide;
  for (const auto& [name_value, value] : object.GetObject()) {
    const std::string_view name = text_of(name_value);
    if (const auto known = position(name)) {
      members_[*known].value = &value;
    } else {
      if (wide) index_.emplace(name, members_.size());
      members_.push_back({name, &value});
    }
  }
}

const JsonValue* UniqueMembers::find(std::string_view name) const {
  const auto at = position(name);
  return at ? members_[*at].value : nullptr;
}

std::optional<std::size_t> UniqueMembers::position(std::string_view name) const {
  if (!index_.empty()) {
    const auto it = index_.find(name);
    return it == index_.end() ? std::nullopt : std::optional(it->second);
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace lookout::api::detail
