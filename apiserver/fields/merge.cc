// Merges values with an applied configuration, and removes fields.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "apiserver/fields/typed_value.h"
#include "apiserver/fields/walk.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;
using Form = FieldSchema::Form;

class Merger {
 public:
  explicit Merger(json::Allocator& allocator) : allocator_(allocator) {}

  /// One of the two may be null. Empty if nothing is left.
  std::optional<Value> merged(const Value* left, const Value* right, const FieldSchema& schema) {
    const Form form = schema.form_of(right != nullptr ? *right : *left);
    const Value* l = form == Form::kMap ? if_object(left) : if_list(left);
    const Value* r = form == Form::kMap ? if_object(right) : if_list(right);
    if (schema.is_atomic(form) || (!has_content(l) && !has_content(r)))
      return json::deep_copy(right != nullptr ? *right : *left, allocator_);
    Value out = form == Form::kMap ? members(l, r, schema) : items(l, r, schema);
    if (!has_content(&out)) return std::nullopt;
    return out;
  }

 private:
  Value members(const Value* left, const Value* right, const FieldSchema& schema) {
    Value out(rapidjson::kObjectType);
    for_each_member(left, right, [&](std::string_view name, const Value* l, const Value* r) {
      const auto type = schema.member(name);
      auto value = type ? merged(l, r, type->schema)
                        : std::optional(json::deep_copy(r != nullptr ? *r : *l, allocator_));
      if (value) out.AddMember(json::copy_text(name, allocator_), *value, allocator_);
    });
    return out;
  }

  struct Place {
    std::optional<PathElement> element;  // empty for items without a key, which are not merged
    const Value* value;
  };

  static std::vector<Place> places_of(const Value* list, const FieldSchema& schema) {
    std::vector<Place> out;
    if (list == nullptr) return out;
    for (const Value& item : list->GetArray()) out.push_back({element_of(schema, item), &item});
    return out;
  }

  static bool same(const Place& a, const Place& b) {
    return a.element && b.element && a.element->text == b.element->text;
  }

  /// Merges the items of both lists: shared items are in the order of the right list, and items of only
  /// the left list follow their predecessors there.
  Value items(const Value* left, const Value* right, const FieldSchema& schema) {
    const std::vector<Place> ls = places_of(left, schema);
    const std::vector<Place> rs = places_of(right, schema);
    const Items in_left(schema, left);
    const Items in_right(schema, right);
    const auto is_right = [&](const Place& place) {
      return place.element && in_right.find(*place.element) != nullptr;
    };
    std::vector<const Place*> shared;
    for (const Place& place : rs) {
      if (place.element && in_left.find(*place.element) != nullptr) shared.push_back(&place);
    }
    auto next_shared = shared.begin();
    std::unordered_set<std::string_view> done;
    Value out(rapidjson::kArrayType);
    const FieldSchema type = schema.element();
    const auto put = [&](const Value* l, const Value* r) {
      if (auto value = merged(l, r, type)) out.PushBack(*value, allocator_);
    };
    const auto put_right = [&](const Place& place) {
      const Item* match = place.element ? in_left.find(*place.element) : nullptr;
      if (place.element) done.insert(place.element->text);
      // If several items have the same key, none of them is merged with the new one.
      const bool one = match != nullptr && match->values.size() == 1;
      put(one ? match->values.front() : nullptr, place.value);
    };
    std::size_t l = 0;
    std::size_t r = 0;
    while (l < ls.size() || r < rs.size()) {
      if (l < ls.size() && r < rs.size()) {
        if (same(ls[l], rs[r])) {
          put_right(rs[r]);
          ++l;
          ++r;
          if (next_shared != shared.end()) ++next_shared;
          continue;
        }
        if (is_right(ls[l]) && next_shared != shared.end() && !same(**next_shared, ls[l])) {
          ++l;  // shared, added later
          continue;
        }
      }
      if (l < ls.size()) {
        if (!is_right(ls[l])) {
          put(ls[l++].value, nullptr);
          continue;
        }
        if (done.contains(ls[l].element->text)) ++l;
      }
      if (r < rs.size()) {
        put_right(rs[r]);
        if (next_shared != shared.end() && same(**next_shared, rs[r])) ++next_shared;
        ++r;
      }
    }
    return out;
  }

  json::Allocator& allocator_;
};

class Remover {
 public:
  explicit Remover(json::Allocator& allocator) : allocator_(allocator) {}

  /// The value without the members of a set. A map without remaining members and a list without
  /// remaining items are empty, not null.
  Value without(const Value& value, const FieldSet& set, const FieldSchema& schema) {
    const Form form = schema.form_of(value);
    if (form == Form::kScalar) return json::deep_copy(value, allocator_);
    const bool fits = form == Form::kMap ? value.IsObject() : value.IsArray();
    if (!fits) return {};
    if (schema.is_atomic(form))
      return Value(form == Form::kMap ? rapidjson::kObjectType : rapidjson::kArrayType);
    return form == Form::kMap ? members(value, set, schema) : items(value, set, schema);
  }

 private:
  Value members(const Value& object, const FieldSet& set, const FieldSchema& schema) {
    Value out(rapidjson::kObjectType);
    for (const auto& member : object.GetObject()) {
      const std::string_view name = json::text_of(member.name);
      const auto type = schema.member(name);
      const FieldSet::Node* node = type ? set.find(PathElement::field(name)) : nullptr;
      if (node != nullptr && node->member) continue;
      out.AddMember(json::copy_text(name, allocator_),
                    node == nullptr ? json::deep_copy(member.value, allocator_)
                                    : without(member.value, node->below, type->schema),
                    allocator_);
    }
    return out;
  }

  Value items(const Value& list, const FieldSet& set, const FieldSchema& schema) {
    Value out(rapidjson::kArrayType);
    const FieldSchema type = schema.element();
    for (const Value& item : list.GetArray()) {
      const auto element = element_of(schema, item);
      const FieldSet::Node* node = element ? set.find(*element) : nullptr;
      if (node != nullptr && node->member) continue;
      out.PushBack(
          node == nullptr ? json::deep_copy(item, allocator_) : without(item, node->below, type),
          allocator_);
    }
    return out;
  }

  json::Allocator& allocator_;
};

}  // namespace

Value merge(const Value& live, const Value& config, const FieldSchema& schema,
            json::Allocator& allocator) {
  auto out = Merger(allocator).merged(&live, &config, schema);
  return out ? std::move(*out) : Value(rapidjson::kObjectType);
}

Value remove(const Value& value, const FieldSet& set, const FieldSchema& schema,
             json::Allocator& allocator) {
  if (set.empty()) return json::deep_copy(value, allocator);
  return Remover(allocator).without(value, set, schema);
}

}  // namespace lookout::apiserver::fields
