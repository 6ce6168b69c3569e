#include "apiserver/resources/structural_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/resources/embedded_resource.h"
#include "apiserver/resources/field.h"
#include "apiserver/resources/formats.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/patterns.h"
#include "apiserver/resources/schema_rules.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/go_values.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::resources {
namespace {

/// The value of an integer. 3.0 is an integer, but not a double that may have lost digits.
std::optional<std::int64_t> integer_of(Value value) {
  const auto whole = value.to_int();
  if (!whole || is_exact_integer(static_cast<double>(*whole))) return whole;
  const bool is_double = value.to_json().find_first_of(".eE") != std::string::npos;
  return is_double ? std::nullopt : whole;
}

/// The JSON Schema type of a value: "object", "integer" ...
std::string_view type_of(Value value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return "boolean";
    case Value::Kind::kNumber:
      return integer_of(value) ? "integer" : "number";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kArray:
      return "array";
    default:
      return "object";
  }
}

bool is_of_type(Value value, std::string_view wanted) {
  const std::string_view actual = type_of(value);
  return actual == wanted || (wanted == "number" && actual == "integer");
}

/// In Go, 1 and 1.0 are equal here.
bool is_allowed(Value value, Value allowed) {
  return value == allowed ||
         (value.is_number() && allowed.is_number() && value.as_double() == allowed.as_double());
}

bool is_multiple(Value value, double step) {
  constexpr double kNearlyWhole = 1e-9;
  if (const auto whole = integer_of(value); whole && is_exact_integer(step))
    return *whole % static_cast<std::int64_t>(step) == 0;
  const double times = value.as_double() / step;
  return std::abs(times - std::round(times)) <= kNearlyWhole;
}

std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// The element of the old list with the same keys. Only lists of type map have keys.
Value old_element(Value element, Value old, Value schema) {
  if (!old.is_array() || schema["x-kubernetes-list-type"].as_string() != "map") return {};
  const Value keys = schema["x-kubernetes-list-map-keys"];
  for (const Value one : old.elements()) {
    const auto names = keys.elements();
    if (std::all_of(names.begin(), names.end(),
                    [&](Value key) { return one[key.as_string()] == element[key.as_string()]; }))
      return one;
  }
  return {};
}

/// Whether a part of an object is unchanged. As in Kubernetes, unknown parts count as changed, and the
/// order of a list with type map is ignored.
bool is_same(Value value, Value old, Value schema) {
  if (value.is_array() && old.is_array()) {
    if (value.size() != old.size()) return false;
    if (schema["x-kubernetes-list-type"].as_string() != "map") return value == old;
    const auto elements = value.elements();
    return std::all_of(elements.begin(), elements.end(), [&](Value one) {
      const Value other = old_element(one, old, schema);
      return other.exists() && is_same(one, other, schema["items"]);
    });
  }
  if (!value.is_object() || !old.is_object()) return value == old;
  if (value.size() != old.size()) return false;
  const auto members = value.members();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    const Value property = schema["properties"][member.name];
    const Value of_member = property.exists() ? property : schema["additionalProperties"];
    return of_member.is_object() && old[member.name].exists() &&
           is_same(member.value, old[member.name], of_member);
  });
}

class Validator {
 public:
  /// `base` is the path of the validated value; messages have paths relative to it.
  explicit Validator(Causes& causes, std::string base = "")
      : causes_(causes), base_(std::move(base)) {}

  /// Defaults and parts of combinations may repeat elements of a list with type set or map; only
  /// objects may not.
  void allow_repetition() { may_repeat_ = true; }

  /// Errors of values that are unchanged from the old object, if there is one, are ignored (ratcheting,
  /// KEP-4008).
  void check(Value value, Value schema, const std::string& path, bool is_object, Value old = {}) {
    const std::size_t errors = causes_.size();
    check_all(value, schema, path, is_object, old);
    if (causes_.size() > errors && !is_object && old.exists() && is_same(value, old, schema))
      causes_.resize(errors);
  }

  /// Errors in lists with type set or map, and in embedded objects, come last.
  const Causes& repetitions() const { return repetitions_; }
  const Causes& embedded() const { return embedded_; }

 private:
  void check_all(Value value, Value schema, const std::string& path, bool is_object, Value old) {
    if (value.is_null() && schema["nullable"].as_bool()) return;
    if (schema["x-kubernetes-int-or-string"].as_bool() && !value.is_string() &&
        !is_of_type(value, "integer")) {
      wrong_type(value, "integer,string", path);
      return;
    }
    const auto wanted = schema["type"].as_string();
    if (!wanted.empty() && !is_of_type(value, wanted)) {
      wrong_type(value, wanted, path);
      return;
    }
    check_enumeration(value, schema, path);
    if (value.is_object()) check_object(value, schema, path, old);
    if (value.is_array()) check_array(value, schema, path, old);
    if (value.is_string()) check_string(value.as_string(), schema, path);
    if (value.is_number()) check_number(value, schema, path);
    check_combinations(value, schema, path, is_object);
  }

  static std::string here(const std::string& path) { return path.empty() ? "<nil>" : path; }
  std::string below_base(const std::string& path) const {
    if (base_.empty()) return path;
    return path.size() == base_.size() ? "" : path.substr(base_.size() + 1);
  }

  /// The errors of a value under a schema in a combination. Ratcheting does not apply to them.
  Causes find_causes(Value value, Value schema, const std::string& path, bool is_object) const {
    Causes causes;
    Validator validator(causes, base_);
    validator.allow_repetition();
    validator.check_all(value, schema, path, is_object, {});
    return causes;
  }

  void check_combinations(Value value, Value schema, const std::string& path, bool is_object) {
    const auto refuse_all = [&](const std::string& why) {
      causes_.push_back({"FieldValueInvalid",
                         fmt::format("Invalid value: \"\": {} {}", api::detail::quote(path), why),
                         here("")});
    };
    const auto append = [&](const Causes& more) {
      causes_.insert(causes_.end(), more.begin(), more.end());
    };
    for (const char* combination : {"anyOf", "oneOf"}) {
      const Value alternatives = schema[combination];
      if (alternatives.empty()) continue;
      std::size_t valid = 0;
      Causes best;
      for (const Value one : alternatives.elements()) {
        Causes causes = find_causes(value, one, path, is_object);
        if (causes.empty()) ++valid;
        if (best.empty() || causes.size() < best.size()) best = std::move(causes);
      }
      if (combination == std::string_view("anyOf") && valid == 0) {
        refuse_all("must validate at least one schema (anyOf)");
        append(best);
      } else if (combination == std::string_view("oneOf") && valid != 1) {
        refuse_all(fmt::format("must validate one and only one schema (oneOf). {}",
                               valid == 0 ? std::string("Found none valid")
                                          : fmt::format("Found {} valid alternatives", valid)));
        append(best);
      }
    }
    if (const Value all = schema["allOf"]; !all.empty()) {
      std::size_t valid = 0;
      for (const Value one : all.elements()) {
        const Causes causes = find_causes(value, one, path, is_object);
        if (causes.empty()) ++valid;
        append(causes);
      }
      if (valid < all.size()) {
        refuse_all(fmt::format("must validate all the schemas (allOf){}",
                               valid == 0 ? ". None validated" : ""));
      }
    }
    if (const Value unwanted = schema["not"];
        unwanted.is_object() && find_causes(value, unwanted, path, is_object).empty())
      refuse_all("must not validate the schema (not)");
  }

  /// Checks that a list with type set or map has no repeated elements or keys.
  void check_list_type(Value value, Value schema, const std::string& path) {
    const std::string_view type = schema["x-kubernetes-list-type"].as_string();
    if (may_repeat_ || (type != "set" && type != "map")) return;
    std::set<std::string> seen;
    std::size_t index = 0;
    for (const Value element : value.elements()) {
      std::string text;
      if (type == "set") {
        text = element.to_json();
      } else {
        for (const Value key : schema["x-kubernetes-list-map-keys"].elements()) {
          const std::string_view name = key.as_string();
          const Value part = element[name];
          text += fmt::format("{}{}:{}", text.empty() ? "{" : ",", api::detail::quote(name),
                              part.exists() ? part.to_json() : "null");
        }
        text += '}';
      }
      const std::size_t at = index++;
      if (seen.insert(text).second) continue;
      repetitions_.push_back(
          {"FieldValueDuplicate", "Duplicate value: " + text, fmt::format("{}[{}]", path, at)});
    }
  }

  void check_format(std::string_view text, Value schema, const std::string& path) {
    const std::string_view format = schema["format"].as_string();
    if (format.empty() || has_format(text, format)) return;
    causes_.push_back({"FieldValueTypeInvalid",
                       fmt::format("Invalid value: {0}: {1} in body must be of type {2}: {0}",
                                   api::detail::quote(text), below_base(path), format),
                       here(path)});
  }

  void wrong_type(Value value, std::string_view wanted, const std::string& path) {
    const std::string actual = api::detail::quote(type_of(value));
    causes_.push_back({"FieldValueTypeInvalid",
                       fmt::format("Invalid value: {0}: {1} in body must be of type {2}: {0}",
                                   actual, below_base(path), wanted),
                       here(path)});
  }

  /// An invalid value in Kubernetes' format.
  void refuse(Value value, const std::string& path, const std::string& why) {
    causes_.push_back(
        {"FieldValueInvalid",
         fmt::format("Invalid value: {}: {} in body {}", value.to_json(), below_base(path), why),
         here(path)});
  }

  void check_enumeration(Value value, Value schema, const std::string& path) {
    const Value allowed = schema["enum"];
    if (allowed.empty()) return;
    std::vector<std::string> texts;
    for (const Value one : allowed.elements()) {
      if (is_allowed(value, one)) return;
      texts.push_back(one.is_string() ? std::string(one.as_string()) : one.to_json());
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::string text = value.is_string() ? std::string(value.as_string()) : value.to_json();
    causes_.push_back(rules::not_supported(path, text, views));
  }

  void check_object(Value value, Value schema, const std::string& path, Value old) {
    const auto member_path = [&](std::string_view name) {
      return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
    };
    for (const Value required : schema["required"].elements()) {
      const auto name = required.as_string();
      if (!value.contains(name)) causes_.push_back(rules::required(member_path(name), ""));
    }
    if (schema["x-kubernetes-embedded-resource"].as_bool()) check_embedded(value, path, embedded_);
    const Value properties = schema["properties"];
    const Value others = schema["additionalProperties"];
    for (const auto& [name, member] : value.members()) {
      if (const Value property = properties[name]; property.exists()) {
        check(member, property, member_path(name), false, old[name]);
      } else if (others.is_object()) {
        check(member, others, member_path(name), false, old[name]);
      } else if (others.is_bool() && !others.as_bool()) {
        causes_.push_back(rules::invalid(
            here(path), name,
            fmt::format("{}.{} in body is a forbidden property", below_base(path), name)));
      }
    }
    const auto size = static_cast<std::int64_t>(value.size());
    if (const auto least = schema["minProperties"].to_int(); least && size < *least)
      refuse(value, path, fmt::format("should have at least {} properties", *least));
    if (const auto most = schema["maxProperties"].to_int(); most && size > *most)
      too_many(size, *most, path);
  }

  void check_array(Value value, Value schema, const std::string& path, Value old) {
    const auto size = static_cast<std::int64_t>(value.size());
    if (const auto least = schema["minItems"].to_int(); least && size < *least) {
      causes_.push_back(rules::invalid(
          here(path), size,
          fmt::format("{} in body should have at least {} items", below_base(path), *least)));
    }
    if (const auto most = schema["maxItems"].to_int(); most && size > *most)
      too_many(size, *most, path);
    check_list_type(value, schema, path);
    const Value items = schema["items"];
    if (!items.is_object()) return;
    std::size_t index = 0;
    for (const Value element : value.elements())
      check(element, items, fmt::format("{}[{}]", path, index++), false,
            old_element(element, old, schema));
  }

  void too_many(std::int64_t size, std::int64_t most, const std::string& path) {
    causes_.push_back(
        {"FieldValueTooMany",
         fmt::format("Too many: {}: must have at most {} item{}", size, most, most == 1 ? "" : "s"),
         here(path)});
  }

  void check_string(std::string_view text, Value schema, const std::string& path) {
    const auto length = static_cast<std::int64_t>(count_characters(text));
    if (const auto most = schema["maxLength"].to_int(); most && length > *most)
      causes_.push_back(rules::too_long(here(path), static_cast<int>(*most)));
    const auto refuse_text = [&](const std::string& why) {
      causes_.push_back(
          rules::invalid(here(path), text, fmt::format("{} in body {}", below_base(path), why)));
    };
    if (const auto least = schema["minLength"].to_int(); least && length < *least)
      refuse_text(fmt::format("should be at least {} chars long", *least));
    if (const auto pattern = schema["pattern"].to_string_view();
        pattern && !matches_pattern(*pattern, text))
      refuse_text(fmt::format("should match '{}'", *pattern));
    check_format(text, schema, path);
  }

  void check_number(Value value, Value schema, const std::string& path) {
    check_number_format(value, schema, path);
    if (const auto step = schema["multipleOf"].to_double();
        step && *step > 0 && !is_multiple(value, *step))
      refuse(value, path, fmt::format("should be a multiple of {}", number_text(*step)));
    // long double has the digits of 64 bits.
    const auto whole = integer_of(value);
    const long double number =
        whole ? static_cast<long double>(*whole) : static_cast<long double>(value.as_double());
    if (const auto most = schema["maximum"].to_double()) {
      const bool exclusive = schema["exclusiveMaximum"].as_bool();
      if (exclusive ? number >= *most : number > *most) {
        refuse(value, path,
               fmt::format("should be less than {}{}", exclusive ? "" : "or equal to ",
                           number_text(*most)));
      }
    }
    if (const auto least = schema["minimum"].to_double()) {
      const bool exclusive = schema["exclusiveMinimum"].as_bool();
      if (exclusive ? number <= *least : number < *least) {
        refuse(value, path,
               fmt::format("should be greater than {}{}", exclusive ? "" : "or equal to ",
                           number_text(*least)));
      }
    }
  }

  /// The formats of numbers are bounds.
  void check_number_format(Value value, Value schema, const std::string& path) {
    // From this value on, a float32 would be rounded to infinity.
    constexpr double kBeyondFloat = 0x1.ffffffp127;
    const std::string_view type = schema["type"].as_string();
    const std::string_view format = schema["format"].as_string();
    bool fits = true;
    if (type == "integer" && format == "int32") {
      const auto whole = integer_of(value);
      fits = whole && std::in_range<std::int32_t>(*whole);
    } else if (type == "number" && format == "float") {
      fits = std::abs(value.as_double()) < kBeyondFloat;
    }
    if (fits) return;
    causes_.push_back(
        {"FieldValueInvalid",
         fmt::format("Invalid value: \"\": Checked value must be of type {} with format {} in {}",
                     type, format, path),
         here(path)});
  }

  Causes& causes_;
  Causes repetitions_;
  Causes embedded_;
  const std::string base_;
  bool may_repeat_ = false;
};

constexpr std::int64_t kMostReplicas = std::numeric_limits<std::int32_t>::max();

/// In the words of k8s.io/apimachinery's unstructured.NestedInt64.
std::string not_of_type(std::string_view path, Value value, std::string_view type) {
  json::Document document;
  const std::string text = value.to_json();
  document.Parse(text.data(), text.size());
  return fmt::format("{} accessor error: {} is of the type {}, expected {}", path,
                     api::detail::print_value(document),
                     api::detail::go_type_name(api::detail::go_type(document)), type);
}

}  // namespace

namespace {

void append(const Causes& from, Causes& to) { to.insert(to.end(), from.begin(), from.end()); }

/// Whether a list of the object repeats elements.
bool repeats(const Object& object, Value schema) {
  Causes causes;
  Validator validator(causes);
  validator.check(object.body(), schema, "", true);
  return !validator.repetitions().empty();
}

/// Validates the value at a path. `repeated()`: whether elements may be repeated, because the old
/// object repeats them.
void validate_part(Value value, Value old, Value schema, const std::string& path,
                   const std::function<bool()>& repeated, Causes& causes) {
  const bool is_object = path.empty();
  const auto find = [&](Value before, Causes& found) {
    Validator validator(found, path);
    validator.check(value, schema, path, is_object, before);
    // Embedded objects in the status are not checked.
    if (is_object) append(validator.embedded(), found);
    if (!validator.repetitions().empty() && !repeated()) append(validator.repetitions(), found);
  };
  Causes found;
  find({}, found);
  if (!found.empty() && old.exists()) {
    found.clear();
    find(old, found);
  }
  append(found, causes);
}

}  // namespace

void validate_schema(const Object& object, const Object& old, Value schema, Causes& causes) {
  validate_part(
      object.body(), old ? old.body() : Value(), schema, "",
      [&] { return old && repeats(old, schema); }, causes);
}

void validate_status(const Object& object, const Object& old, Value schema, Causes& causes) {
  const Value status = object["status"];
  const Value wanted = schema["properties"]["status"];
  if (!status.exists() || !wanted.exists()) return;
  validate_part(
      status, old["status"], wanted, "status", [&] { return repeats(old, schema); }, causes);
}

void validate_scale(const Object& object, const ScalePaths& paths, bool spec, Causes& causes) {
  const auto check_replicas = [&](const std::vector<std::string>& path) {
    const Value value = value_at(object, path);
    if (!value.exists() || value.is_null()) return;
    const std::string name = fmt::format(".{}", fmt::join(path, "."));
    const auto replicas = value.to_int();
    if (!replicas) {
      causes.push_back(api::validation::invalid(name, 0, not_of_type(name, value, "int64")));
    } else if (*replicas < 0) {
      causes.push_back(
          api::validation::invalid(name, *replicas, "should be a non-negative integer"));
    } else if (*replicas > kMostReplicas) {
      causes.push_back(api::validation::invalid(
          name, *replicas, fmt::format("should be less than or equal to {}", kMostReplicas)));
    }
  };
  if (spec) check_replicas(paths.spec_replicas);
  check_replicas(paths.status_replicas);
  if (paths.selector.empty()) return;
  const Value selector = value_at(object, paths.selector);
  if (!selector.exists() || selector.is_null() || selector.is_string()) return;
  const std::string name = fmt::format(".{}", fmt::join(paths.selector, "."));
  causes.push_back(api::validation::invalid(name, "", not_of_type(name, selector, "string")));
}

void add_unchecked_rules(Value schema, Causes& causes) {
  constexpr std::array<std::string_view, 5> kBlocking = {
      "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
      "FieldValueTypeInvalid"};
  const bool is_blocked = std::any_of(causes.begin(), causes.end(), [&](const auto& one) {
    return is_one_of(one.reason, kBlocking);
  });
  if (!is_blocked || !has_cel_rules(schema)) return;
  causes.push_back(
      {"FieldValueInvalid",
       "Invalid value: null: some validation rules were not checked because the object "
       "was invalid; correct the existing errors to complete validation",
       "<nil>"});
}

void validate_default(Value value, Value schema, Causes& causes) {
  Validator validator(causes);
  validator.allow_repetition();
  validator.check(value, schema, "", false);
  append(validator.embedded(), causes);
}

}  // namespace lookout::apiserver::resources
