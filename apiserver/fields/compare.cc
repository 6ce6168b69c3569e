// Field sets of values: all fields of a value, and the differences of two values.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "apiserver/fields/typed_value.h"
#include "apiserver/fields/walk.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;
using Form = FieldSchema::Form;

/// The fields below a value, and whether the value itself is a field.
struct Extract {
  bool member = false;
  FieldSet below;
};

Extract extract(const Value& value, const FieldSchema& schema);

void extract_members(const Value& object, const FieldSchema& schema, FieldSet& out) {
  for (const auto& member : object.GetObject()) {
    const std::string_view name = json::text_of(member.name);
    const auto type = schema.member(name);
    if (!type) continue;
    Extract content = extract(member.value, type->schema);
    const bool nothing =
        member.value.IsNull() || (member.value.IsObject() && member.value.ObjectEmpty());
    out.append(PathElement::field(name), content.member || nothing || !type->declared,
               std::move(content.below));
  }
}

void extract_items(const Value& list, const FieldSchema& schema, FieldSet& out) {
  const Items items(schema, &list);
  const FieldSchema type = schema.element();
  for (const Item& item : items.all()) {
    // Duplicate items are owned together.
    FieldSet below;
    if (item.values.size() == 1) below = extract(*item.values.front(), type).below;
    out.append(item.element, true, std::move(below));
  }
}

Extract extract(const Value& value, const FieldSchema& schema) {
  Extract out;
  const Form form = schema.form_of(value);
  if (schema.is_atomic(form)) {
    out.member = true;
  } else if (form == Form::kMap && value.IsObject()) {
    extract_members(value, schema, out.below);
  } else if (form == Form::kList && value.IsArray()) {
    extract_items(value, schema, out.below);
  }
  out.below.finish();
  return out;
}

/// The field sets below a value, and the sets that contain the value itself.
struct Difference {
  bool removed = false;
  bool modified = false;
  bool added = false;
  Comparison below;
};

class Comparer {
 public:
  /// One of the two may be null.
  static Difference difference(const Value* left, const Value* right, const FieldSchema& schema) {
    Difference out;
    bool leaf = false;
    if (right == nullptr) {
      leaf = look(left, right, schema, schema.form_of(*left), out);
    } else if (left == nullptr || schema.form_of(*left) == schema.form_of(*right)) {
      leaf = look(left, right, schema, schema.form_of(*right), out);
    } else {
      look(left, right, schema, schema.form_of(*left), out);
      leaf = look(left, right, schema, schema.form_of(*right), out);
    }
    if (!leaf) {
      out.added = out.added || left == nullptr;
      out.removed = out.removed || right == nullptr;
    }
    out.below.removed.finish();
    out.below.modified.finish();
    out.below.added.finish();
    return out;
  }

 private:
  /// True if the value was compared as a whole.
  static bool look(const Value* left, const Value* right, const FieldSchema& schema, Form form,
                   Difference& out) {
    const Value* l = form == Form::kMap ? if_object(left) : if_list(left);
    const Value* r = form == Form::kMap ? if_object(right) : if_list(right);
    if (schema.is_atomic(form) || (!has_content(l) && !has_content(r))) {
      if (left == nullptr) {
        out.added = true;
      } else if (right == nullptr) {
        out.removed = true;
      } else if (!equal(*left, *right)) {
        out.modified = true;
      }
      return true;
    }
    if (form == Form::kMap) {
      for_each_member(l, r, [&](std::string_view name, const Value* before, const Value* after) {
        if (const auto type = schema.member(name); type && !is_same(before, after))
          put(PathElement::field(name), difference(before, after, type->schema), out.below);
      });
    } else {
      look_at_items(l, r, schema, out.below);
    }
    return false;
  }

  /// Fast path: most of an object is unchanged.
  static bool is_same(const Value* left, const Value* right) {
    return left != nullptr && right != nullptr && equal(*left, *right);
  }

  static void put(PathElement element, Difference found, Comparison& out) {
    out.removed.append(element, found.removed, std::move(found.below.removed));
    out.modified.append(element, found.modified, std::move(found.below.modified));
    out.added.append(std::move(element), found.added, std::move(found.below.added));
  }

  static void look_at_items(const Value* left, const Value* right, const FieldSchema& schema,
                            Comparison& out) {
    const Items before(schema, left);
    const Items after(schema, right);
    const FieldSchema type = schema.element();
    for (const Item& item : before.all()) {
      const Item* match = after.find(item.element);
      put(item.element, difference(&item, match, type), out);
    }
    for (const Item& item : after.all()) {
      if (before.find(item.element) == nullptr)
        put(item.element, difference(nullptr, &item, type), out);
    }
  }

  /// Duplicate items are compared as a whole.
  static Difference difference(const Item* left, const Item* right, const FieldSchema& type) {
    const std::size_t before = left == nullptr ? 0 : left->values.size();
    const std::size_t after = right == nullptr ? 0 : right->values.size();
    if (before <= 1 && after <= 1) {
      const Value* one = before == 0 ? nullptr : left->values.front();
      const Value* other = after == 0 ? nullptr : right->values.front();
      return is_same(one, other) ? Difference() : difference(one, other, type);
    }
    Difference out;
    if (before >= 2 && after >= 2) {
      out.modified = before != after ||
                     !std::equal(left->values.begin(), left->values.end(), right->values.begin(),
                                 [](const Value* a, const Value* b) { return equal(*a, *b); });
    } else if (before >= 2) {
      if (after == 1) out = difference(nullptr, right->values.front(), type);
      out.removed = true;
    } else {
      if (before == 1) out = difference(left->values.front(), nullptr, type);
      out.added = true;
    }
    return out;
  }
};

}  // namespace

FieldSet field_set(const Value& value, const FieldSchema& schema) {
  return extract(value, schema).below;
}

Comparison compare(const Value& before, const Value& after, const FieldSchema& schema) {
  return Comparer::difference(&before, &after, schema).below;
}

bool equal(const Value& a, const Value& b) {
  if (a.IsArray() && b.IsArray()) {
    return a.Size() == b.Size() &&
           std::equal(a.Begin(), a.End(), b.Begin(),
                      [](const Value& x, const Value& y) { return equal(x, y); });
  }
  if (a.IsObject() && b.IsObject()) {
    if (a.MemberCount() != b.MemberCount()) return false;
    MembersByName others(&b);
    return std::all_of(a.MemberBegin(), a.MemberEnd(), [&](const auto& member) {
      const Value* other = others.find(json::text_of(member.name));
      return other != nullptr && equal(member.value, *other);
    });
  }
  if (a.IsString() && b.IsString()) return json::text_of(a) == json::text_of(b);
  return a == b;
}

namespace {

std::optional<FieldSchema> type_below(const FieldSchema& schema, bool is_field,
                                      std::string_view name) {
  if (!is_field) return schema.element();
  const auto member = schema.member(name);
  if (!member) return std::nullopt;
  return member->schema;
}

bool is_owned_whole(const FieldSchema& schema) {
  const Form form = schema.form_of(Value());
  return form != Form::kScalar && schema.is_atomic(form);
}

}  // namespace

FieldSet with_atomic_fields(const FieldSet& set, const FieldSchema& schema) {
  FieldSet out;
  for (const FieldSet::Node& node : set.nodes()) {
    const auto type =
        node.below.empty()
            ? std::nullopt
            : type_below(schema, node.element.kind == PathElement::Kind::kField, node.element.text);
    if (!type) {
      out.append(node.element, node.member, node.below);
    } else if (is_owned_whole(*type)) {
      out.append(node.element, true, {});
    } else {
      out.append(node.element, node.member, with_atomic_fields(node.below, *type));
    }
  }
  out.finish();
  return out;
}

bool has_parts_of_atomic_fields(const Value& fields, const FieldSchema& schema) {
  constexpr std::string_view kField = "f:";
  if (!fields.IsObject()) return false;
  return std::any_of(fields.MemberBegin(), fields.MemberEnd(), [&](const auto& member) {
    const std::string_view name = json::text_of(member.name);
    if (name == "." || !member.value.IsObject() || member.value.ObjectEmpty()) return false;
    const bool is_field = name.starts_with(kField);
    const auto type = type_below(schema, is_field, is_field ? name.substr(kField.size()) : name);
    return type && (is_owned_whole(*type) || has_parts_of_atomic_fields(member.value, *type));
  });
}

FieldSet with_fields(const FieldSet& set, const FieldSchema& schema) {
  FieldSet out;
  for (const FieldSet::Node& node : set.nodes()) {
    bool member = node.member;
    FieldSchema below = FieldSchema();
    if (node.element.kind == PathElement::Kind::kField) {
      if (const auto type = schema.member(node.element.text)) {
        member = member || type->declared;
        below = type->schema;
      }
    } else if (node.element.kind == PathElement::Kind::kKey) {
      below = schema.element();
    }
    out.append(node.element, member, with_fields(node.below, below));
  }
  out.finish();
  return out;
}

}  // namespace lookout::apiserver::fields
