// Compares a value with its type, with the messages of structured-merge-diff.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "apiserver/fields/typed_value.h"
#include "apiserver/fields/walk.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;
using Form = FieldSchema::Form;

/// A value as Go prints it with "%v", or with "%#v".
std::string go_value(const Value& value, bool as_source) {
  if (value.IsNull()) return as_source ? "interface {}(nil)" : "<nil>";
  if (value.IsString()) {
    return as_source ? api::detail::quote(json::text_of(value)) : std::string(json::text_of(value));
  }
  if (value.IsArray()) {
    std::vector<std::string> parts;
    for (const Value& element : value.GetArray()) parts.push_back(go_value(element, as_source));
    return as_source ? fmt::format("[]interface {{}}{{{}}}", fmt::join(parts, ", "))
                     : fmt::format("[{}]", fmt::join(parts, " "));
  }
  if (value.IsObject()) {
    std::vector<std::string> parts;
    for (const auto& member : value.GetObject()) {
      const std::string_view name = json::text_of(member.name);
      parts.push_back(fmt::format("{}:{}", as_source ? api::detail::quote(name) : std::string(name),
                                  go_value(member.value, as_source)));
    }
    std::sort(parts.begin(), parts.end());
    return as_source ? fmt::format("map[string]interface {{}}{{{}}}", fmt::join(parts, ", "))
                     : fmt::format("map[{}]", fmt::join(parts, " "));
  }
  return json::to_json(value);
}

std::string_view go_type(const Value& value) {
  return value.IsString()   ? "string"
         : value.IsBool()   ? "bool"
         : value.IsObject() ? "map[string]interface {}"
         : value.IsArray()  ? "[]interface {}"
                            : "<nil>";
}

bool scalar_fits(const Value& value, FieldSchema::Scalar scalar) {
  switch (scalar) {
    case FieldSchema::Scalar::kNumeric:
      return value.IsNumber();
    case FieldSchema::Scalar::kString:
      return value.IsString();
    case FieldSchema::Scalar::kBoolean:
      return value.IsBool();
    case FieldSchema::Scalar::kUntyped:
      break;
  }
  return !value.IsObject() && !value.IsArray();
}

/// Whether the items of a list have the type of its elements, and paths if they are owned one by one.
bool items_fit(const Value& list, const FieldSchema& schema) {
  const bool by_element = !schema.is_atomic(Form::kList);
  const bool is_set = by_element && schema.keys().empty();
  const FieldSchema type = schema.element();
  return std::all_of(list.Begin(), list.End(), [&](const Value& item) {
    if (is_set && (item.IsObject() || item.IsArray() || item.IsNull())) return false;
    if (by_element && !is_set && !element_of(schema, item)) return false;
    return fits(item, type);
  });
}

/// The problems that a check reports.
enum class Problems {
  kAll,
  /// All that structured-merge-diff does not tolerate in stored objects: not repeated elements. (Unknown
  /// fields are pruned before.)
  kOfStored
};

class Checker {
 public:
  explicit Checker(Problems wanted) : all_(wanted == Problems::kAll) {}

  void look(const Value& value, const FieldSchema& schema) {
    switch (schema.form_of(value)) {
      case Form::kMap:
        if (value.IsNull()) return;
        if (!value.IsObject()) return fail("expected map, got &{{{}}}", go_value(value, false));
        return look_at_members(value, schema);
      case Form::kList:
        if (value.IsNull()) return;
        if (!value.IsArray()) return fail("expected list, got &{{{}}}", go_value(value, false));
        return look_at_items(value, schema);
      case Form::kScalar:
        return look_at_scalar(value, schema.scalar());
    }
  }

  std::vector<std::string> messages;

 private:
  template <class... Arguments>
  void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    report(fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  void report(const std::string& message) {
    messages.push_back(path_.empty() ? message : fmt::format("{}: {}", path_, message));
  }

  void look_at_members(const Value& object, const FieldSchema& schema) {
    const std::size_t here = path_.size();
    for (const auto& member : object.GetObject()) {
      const std::string_view name = json::text_of(member.name);
      path_ += '.';
      path_ += name;
      const auto type = schema.member(name);
      if (type) {
        look(member.value, type->schema);
      } else if (all_) {
        fail("field not declared in schema");
      }
      path_.resize(here);
      if (!type && all_) return;
    }
  }

  void look_at_items(const Value& list, const FieldSchema& schema) {
    const bool by_element = !schema.is_atomic(Form::kList);
    const FieldSchema type = schema.element();
    const std::size_t here = path_.size();
    std::unordered_set<std::string> seen;
    for (rapidjson::SizeType i = 0; i < list.Size(); ++i) {
      if (by_element) {
        std::string why;
        const auto element = element_of(schema, list[i], &why);
        if (!element) return report(fmt::format("element {}: {}", i, why));
        if (!seen.insert(element->text).second && all_)
          fail("duplicate entries for key {}", element->to_string());
        path_ += element->to_string();
      } else {
        path_ += fmt::format("[{}]", i);
      }
      look(list[i], type);
      path_.resize(here);
    }
  }

  void look_at_scalar(const Value& value, FieldSchema::Scalar scalar) {
    if (value.IsNull() || scalar_fits(value, scalar)) return;
    switch (scalar) {
      case FieldSchema::Scalar::kNumeric:
        return fail("expected numeric (int or float), got {}", go_type(value));
      case FieldSchema::Scalar::kString:
        return fail("expected string, got &value.valueUnstructured{{Value:{}}}",
                    go_value(value, true));
      case FieldSchema::Scalar::kBoolean:
        return fail("expected boolean, got &{{{}}}", go_value(value, false));
      case FieldSchema::Scalar::kUntyped:
        return fail("expected any scalar, got &{{{}}}", go_value(value, false));
    }
  }

  const bool all_;
  std::string path_;
};

std::vector<std::string> problems_of(const Value& value, const FieldSchema& schema,
                                     Problems wanted) {
  Checker checker(wanted);
  checker.look(value, schema);
  return std::move(checker.messages);
}

}  // namespace

std::vector<std::string> check(const Value& value, const FieldSchema& schema) {
  return problems_of(value, schema, Problems::kAll);
}

bool fits(const Value& value, const FieldSchema& schema) {
  if (value.IsNull()) return true;
  switch (schema.form_of(value)) {
    case Form::kMap:
      return value.IsObject() &&
             std::all_of(value.MemberBegin(), value.MemberEnd(), [&](const auto& member) {
               const auto type = schema.member(json::text_of(member.name));
               return !type || fits(member.value, type->schema);
             });
    case Form::kList:
      return value.IsArray() && items_fit(value, schema);
    case Form::kScalar:
      break;
  }
  return scalar_fits(value, schema.scalar());
}

std::vector<std::string> check_stored(const Value& value, const FieldSchema& schema) {
  return problems_of(value, schema, Problems::kOfStored);
}

}  // namespace lookout::apiserver::fields
