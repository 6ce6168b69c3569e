#include "lookout/api/strategic_merge_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "api/edited_members.h"
#include "api/patch_directives.h"
#include "api/patch_schema.h"
#include "lookout/api/detail/go_values.h"
#include "lookout/api/detail/json_values.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/status.h"

namespace lookout::api {
namespace {

using detail::copy_text;
using detail::deep_copy;
using detail::EditedMembers;
using detail::go_type;
using detail::GoType;
using detail::PatchField;
using detail::PatchSchema;
using detail::PatchStrategy;
using detail::print_value;
using detail::text_of;
using detail::UniqueMembers;
namespace directive = detail::directive;

/// More than any legitimate patch needs: 3 MB of JSON have less than two million values.
constexpr std::size_t kMaxWork = 20'000'000;

/// The API server's response to errors without a specific response.
[[noreturn]] void fail(std::string message) {
  Status status;
  status.code = 500;
  status.message = std::move(message);
  throw StatusError(std::move(status));
}

[[noreturn]] void fail_type(GoType expected, const JsonValue& actual) {
  fail(fmt::format("expected a {}, but received a {}", go_type_name(expected),
                   go_type_name(go_type(actual))));
}

[[noreturn]] void fail_merge_key(const JsonValue& element, std::string_view merge_key) {
  fail(fmt::format("map: {} does not contain declared merge key: {}", print_value(element),
                   merge_key));
}

[[noreturn]] void fail_directive(const JsonValue& value, const JsonValue& object) {
  fail(fmt::format("unknown patch type: {} in map: {}", detail::print_as_text(value),
                   print_value(object)));
}

[[noreturn]] void fail_primitive_list() {
  throw StatusError::bad_request("invalid patch format of primitive list");
}
[[noreturn]] void fail_retain_keys() {
  throw StatusError::bad_request("invalid patch format of retainKeys");
}
[[noreturn]] void fail_element_order() {
  throw StatusError::bad_request("invalid patch format of setElementOrder list");
}

/// Limits the depth, so that the functions below may recurse.
void check_depth(const JsonValue& value, std::size_t depth = 1) {
  if (!value.IsObject() && !value.IsArray()) return;
  if (depth > kMaxDepth) throw StatusError::bad_request("the patch is nested too deeply");
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) check_depth(element, depth + 1);
  } else {
    for (const auto& member : value.GetObject()) check_depth(member.value, depth + 1);
  }
}

bool is_text(const JsonValue& value, std::string_view text) {
  return value.IsString() && text_of(value) == text;
}

const JsonValue* find_member(const JsonValue& object, std::string_view name) {
  const JsonValue* found = nullptr;  // the last one of duplicates
  for (const auto& member : object.GetObject()) {
    if (text_of(member.name) == name) found = &member.value;
  }
  return found;
}

/// The key of an element of a merged list; nullopt if it is absent, an object or a list. A null is a
/// key like any other.
std::optional<std::string> key_of(const JsonValue& element, std::string_view merge_key) {
  const JsonValue* key = find_member(element, merge_key);
  return key == nullptr ? std::nullopt : detail::scalar_key(*key);
}

std::string required_key(const JsonValue& element, std::string_view merge_key) {
  if (!element.IsObject()) fail_type(GoType::kMap, element);
  auto key = key_of(element, merge_key);
  if (!key) fail_merge_key(element, merge_key);
  return *std::move(key);
}

/// The common element type of two lists; elements must not be lists.
GoType element_type(const JsonValue& a, const JsonValue& b) {
  if (a.Empty() && b.Empty()) fail("no elements in any of the given slices");
  const GoType type = go_type(a.Empty() ? b[0] : a[0]);
  if (type == GoType::kSlice)
    throw StatusError::generic(422, "", "", "", "", "lists of lists are not supported", 0, false);
  const auto fits = [type](const JsonValue& e) { return go_type(e) == type; };
  const bool same = type != GoType::kNil && std::all_of(a.Begin(), a.End(), fits) &&
                    std::all_of(b.Begin(), b.End(), fits);
  if (!same) {
    fail(fmt::format("list element types are not identical: [{} {}]", print_value(a),
                     print_value(b)));
  }
  return type;
}

/// The identity of an element: its merge key or, without `merge_key`, the scalar itself.
std::string known_by(const JsonValue& element, std::string_view merge_key) {
  if (!merge_key.empty()) return required_key(element, merge_key);
  auto key = detail::scalar_key(element);
  if (!key) fail_element_order();
  return *std::move(key);
}

bool has_marker(const JsonValue& value) {
  return value.IsObject() && find_member(value, directive::kPatch) != nullptr;
}

/// Rejects a patch whose elements are not in the order that it requests.
void check_order(const JsonValue& patch, const JsonValue& order, std::string_view merge_key) {
  if (patch.Empty() || order.Empty()) return;
  std::vector<const JsonValue*> elements;
  for (const auto& element : patch.GetArray()) {
    if (!merge_key.empty()) {
      if (!element.IsObject()) fail_type(GoType::kMap, element);
      const JsonValue* marker = find_member(element, directive::kPatch);
      if (marker != nullptr && is_text(*marker, directive::kDelete)) continue;
    }
    elements.push_back(&element);
  }
  auto next = elements.begin();
  const JsonValue* at = order.Begin();
  while (next != elements.end() && at != order.End()) {
    if (has_marker(**next)) {
      ++next;
    } else {
      const std::string key = known_by(**next, merge_key);
      if (key == known_by(*at++, merge_key)) ++next;
    }
  }
  if (next != elements.end()) {
    fail(fmt::format("The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                     print_value(patch), directive::kSetElementOrder, print_value(order)));
  }
}

/// A list element with its identity: its merge key or, for scalars, itself.
struct Keyed {
  std::string key;
  JsonValue value;
};

/// Keys with their first positions.
class Order {
 public:
  bool has_all(const std::vector<Keyed>& elements) const {
    return std::all_of(elements.begin(), elements.end(),
                       [this](const Keyed& element) { return find(element.key).has_value(); });
  }
  void add(std::string key) {
    positions_.emplace(std::move(key), size_);
    ++size_;
  }
  std::optional<std::size_t> find(const std::string& key) const {
    const auto it = positions_.find(key);
    return it == positions_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::unordered_map<std::string, std::size_t> positions_;
  std::size_t size_ = 0;
};

Order order_of(const std::vector<std::string>& keys) {
  Order out;
  for (const auto& key : keys) out.add(key);
  return out;
}

void sort_by(std::vector<Keyed>& elements, const Order& order) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t i = 0; i < elements.size(); ++i)
    places.emplace_back(order.find(elements[i].key).value_or(elements.size() + i), i);
  std::sort(places.begin(), places.end());
  std::vector<Keyed> sorted;
  sorted.reserve(places.size());
  for (const auto& place : places) sorted.push_back(std::move(elements[place.second]));
  elements = std::move(sorted);
}

/// Orders the elements in `wanted` like `wanted` and the others like the server, and merges them: an
/// element that only the server has comes before the first other element that follows it on the
/// server.
std::vector<Keyed> arrange(std::vector<Keyed> elements, const Order& wanted, const Order& server) {
  std::vector<Keyed> named;
  std::vector<Keyed> others;
  for (auto& element : elements)
    (wanted.find(element.key) ? named : others).push_back(std::move(element));
  sort_by(named, wanted);
  sort_by(others, server);
  std::vector<Keyed> out;
  auto next_named = named.begin();
  for (auto& other : others) {
    const auto place = server.find(other.key);
    for (; next_named != named.end(); ++next_named) {
      const auto named_place = server.find(next_named->key);
      if (place && named_place && *place < *named_place) break;
      out.push_back(std::move(*next_named));
    }
    out.push_back(std::move(other));
  }
  std::move(next_named, named.end(), std::back_inserter(out));
  return out;
}

/// The server's list during deletions, and its original order.
///
/// $setElementOrder places elements that only the server has by the order "on the server".
/// Kubernetes reads this order from the array in which it deletes and appends: after a deletion, the
/// rest has moved up, and the last elements are duplicated until appended elements overwrite them.
/// This affects the position of appended elements, so this class reproduces it.
class ServerList {
 public:
  ServerList(JsonValue& list, std::string_view merge_key) : list_(list) {
    for (const auto& element : list.GetArray()) {
      const auto key = key_of(element, merge_key);
      // "" is not a valid key, so it is never found.
      order_.push_back(key.value_or(""));
      if (key) places_[*key].push_back(order_.size() - 1);
    }
    deleted_.resize(order_.size());
    left_ = order_.size();
    last_ = order_.size();
    behind_.resize(order_.size());
  }

  void remove(const std::string& key) {
    const auto it = places_.find(key);
    if (it == places_.end()) return;
    for (const std::size_t place : it->second) {
      --left_;
      behind_[left_] = order_[last_ - 1];
      deleted_[place] = true;
      while (last_ > 0 && deleted_[last_ - 1]) --last_;
    }
    places_.erase(it);
  }

  /// An element is appended to a list of `size` elements.
  void append(std::size_t size, const std::string& key) {
    if (size < behind_.size()) behind_[size] = key;
  }

  std::vector<JsonValue> take_elements() {
    std::vector<JsonValue> out;
    for (std::size_t i = 0; i < deleted_.size(); ++i) {
      if (!deleted_[i]) out.push_back(std::move(list_[static_cast<rapidjson::SizeType>(i)]));
    }
    return out;
  }

  std::vector<std::string> take_order() {
    std::size_t next = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!deleted_[i]) behind_[next++] = std::move(order_[i]);
    }
    return std::move(behind_);
  }

 private:
  JsonValue& list_;
  std::vector<std::string> order_;
  std::vector<bool> deleted_;
  std::unordered_map<std::string, std::vector<std::size_t>> places_;
  std::size_t left_ = 0;             // elements that are not deleted
  std::size_t last_ = 0;             // the end of the last element that is not deleted
  std::vector<std::string> behind_;  // the keys after the remaining elements
};

/// The patch of one object. Directives remove the members that they have applied.
class Changes {
 public:
  explicit Changes(const JsonValue& patch) : members_(patch) {}

  const JsonValue* find(std::string_view name) const {
    return taken_.contains(name) ? nullptr : members_.find(name);
  }
  void take(std::string_view name) { taken_.insert(name); }

  template <class Function>
  void for_each(Function function) const {
    for (const auto& member : members_) {
      if (!taken_.contains(member.name)) function(member.name, *member.value);
    }
  }

 private:
  UniqueMembers members_;
  std::unordered_set<std::string_view> taken_;
};

/// The field of a directive such as "$setElementOrder/containers".
std::optional<std::string_view> field_of(std::string_view name, std::string_view prefix) {
  name.remove_prefix(prefix.size());
  if (!name.starts_with('/')) return std::nullopt;
  return name.substr(1);
}

PatchField checked(PatchField field) {
  if (!field.error.empty()) fail(std::move(field.error));
  return field;
}

class Merger {
 public:
  explicit Merger(Allocator& allocator) : allocator_(allocator) {}

  void merge_object(JsonValue& target, const JsonValue& patch, PatchSchema schema) {
    if (const JsonValue* marker = find_member(patch, directive::kPatch)) {
      if (is_text(*marker, directive::kReplace)) {
        target = copy_members(patch, schema, directive::kPatch);
      } else if (is_text(*marker, directive::kDelete)) {
        target.SetObject();
      } else {
        fail_directive(*marker, patch);
      }
      return;
    }
    count_work(target.MemberCount() + patch.MemberCount());
    EditedMembers members(target, allocator_);
    Changes changes(patch);
    retain_keys(members, changes);
    changes.for_each([&](std::string_view name, const JsonValue& value) {
      if (name.starts_with(directive::kSetElementOrder))
        merge_in_order(members, changes, name, value, schema);
    });
    changes.for_each([&](std::string_view name, const JsonValue& value) {
      merge_member(members, name, value, schema);
    });
    members.finish();
  }

 private:
  /// Each value of patch and target is visited only a few times, unless a patch names the same list
  /// element many times.
  void count_work(std::size_t values) {
    work_ += values;
    if (work_ > kMaxWork)
      throw StatusError::request_entity_too_large("the patch takes too much work to apply");
  }

  static void retain_keys(EditedMembers& members, Changes& changes) {
    const JsonValue* list = changes.find(directive::kRetainKeys);
    if (list == nullptr) return;
    changes.take(directive::kRetainKeys);
    if (!list->IsArray()) fail_retain_keys();
    std::unordered_set<std::string_view> names;
    for (const auto& name : list->GetArray()) {
      if (name.IsObject() || name.IsArray()) fail_retain_keys();
      if (name.IsString()) names.insert(text_of(name));
    }
    changes.for_each([&](std::string_view name, const JsonValue& value) {
      if (value.IsNull() || name.starts_with(directive::kDeleteFromPrimitiveList) ||
          name.starts_with(directive::kSetElementOrder)) {
        return;
      }
      if (!names.contains(name)) fail_retain_keys();
    });
    members.retain(names);
  }

  void merge_member(EditedMembers& members, std::string_view name, const JsonValue& value,
                    PatchSchema schema) {
    const bool deletes = name.starts_with(directive::kDeleteFromPrimitiveList);
    if (deletes) {
      const auto field = field_of(name, directive::kDeleteFromPrimitiveList);
      if (!field) fail_primitive_list();
      if (field->empty()) return;
      name = *field;
    }
    if (value.IsNull()) {
      members.remove(name);
      return;
    }
    JsonValue* present = members.find(name);
    if (present == nullptr || go_type(*present) != go_type(value)) {
      if (deletes) return;
      if (auto fresh = copy_new(value, schema.member(name))) {
        members.set(name, *std::move(fresh));
      } else {
        members.remove(name);
      }
    } else if (value.IsObject()) {
      const PatchField field = checked(schema.object_field(name));
      if (field.strategy == PatchStrategy::kReplace) {
        *present = copy(value, field.schema);
      } else {
        merge_object(*present, value, field.schema);
      }
    } else if (value.IsArray()) {
      const PatchField field = checked(schema.list_field(name));
      if (field.strategy == PatchStrategy::kMerge || deletes) {
        *present = to_list(merge_list(*present, value, field, deletes).elements);
      } else {
        *present = copy(value, schema.member(name));
      }
    } else {
      *present = deep_copy(value, allocator_);
    }
  }

  /// Applies "$setElementOrder/FIELD" and FIELD.
  void merge_in_order(EditedMembers& members, Changes& changes, std::string_view directive_name,
                      const JsonValue& order, PatchSchema schema) {
    changes.take(directive_name);
    if (!order.IsArray()) fail_type(GoType::kSlice, order);
    const auto name = field_of(directive_name, directive::kSetElementOrder);
    if (!name) fail_element_order();
    static const JsonValue kNoList(rapidjson::kArrayType);
    JsonValue* present = members.find(*name);
    const JsonValue* change = changes.find(*name);
    for (const JsonValue* list : {static_cast<const JsonValue*>(present), change}) {
      if (list != nullptr && !list->IsArray()) fail_type(GoType::kSlice, *list);
    }
    const PatchField field = checked(schema.list_field(*name));
    if (!field.in_schema) fail(schema.no_field(*name));
    if (change != nullptr) check_order(*change, order, field.merge_key);
    if (present == nullptr && change == nullptr) return;
    element_type(present ? *present : kNoList, change ? *change : kNoList);

    MergedList merged;
    if (change == nullptr) {
      merged.elements = take_elements(*present, field);
      for (const auto& element : merged.elements) merged.server_order.push_back(element.key);
    } else if (present == nullptr) {
      for (const auto& element : change->GetArray()) {
        if (has_marker(element)) continue;
        if (auto value = copy_new(element, field.schema))
          merged.elements.push_back({known_by(element, field.merge_key), *std::move(value)});
      }
    } else if (field.strategy == PatchStrategy::kMerge) {
      merged = merge_list(*present, *change, field, false);
    } else {
      for (const auto& element : change->GetArray())
        merged.elements.push_back(
            {known_by(element, field.merge_key), copy(element, field.schema)});
      for (const auto& element : take_elements(*present, field))
        merged.server_order.push_back(element.key);
    }
    Order wanted;
    for (const auto& element : order.GetArray()) {
      if (!field.merge_key.empty() && !element.IsObject() && !wanted.has_all(merged.elements))
        fail(fmt::format("value for key {} is not a map", &element - order.Begin()));
      wanted.add(known_by(element, field.merge_key));
    }
    members.set(
        *name, to_list(arrange(std::move(merged.elements), wanted, order_of(merged.server_order))));
    changes.take(*name);
  }

  struct MergedList {
    std::vector<Keyed> elements;
    std::vector<std::string> server_order;
  };

  /// The elements of a list with their identities. Empties the list.
  static std::vector<Keyed> take_elements(JsonValue& list, const PatchField& field) {
    std::vector<Keyed> out;
    for (auto& element : list.GetArray()) {
      std::string key = known_by(element, field.merge_key);
      out.push_back({std::move(key), std::move(element)});
    }
    return out;
  }

  /// Consumes `target`.
  MergedList merge_list(JsonValue& target, const JsonValue& patch, const PatchField& field,
                        bool deletes) {
    count_work(target.Size() + patch.Size());
    if (target.Empty() && patch.Empty()) return {};
    const GoType type = element_type(target, patch);
    if (type != GoType::kMap) {
      if (deletes) return delete_scalars(target, patch);
      if (!field.merge_key.empty()) fail_type(GoType::kMap, target.Empty() ? patch[0] : target[0]);
      return merge_scalars(target, patch);
    }
    if (field.merge_key.empty()) fail("cannot merge lists without merge key for struct");
    return merge_objects(target, patch, field);
  }

  static MergedList delete_scalars(JsonValue& target, const JsonValue& patch) {
    std::unordered_set<std::string> deleted;
    for (const auto& element : patch.GetArray()) deleted.insert(known_by(element, {}));
    MergedList out;
    for (auto& element : take_elements(target, {})) {
      if (!deleted.contains(element.key)) out.elements.push_back(std::move(element));
    }
    return out;
  }

  MergedList merge_scalars(JsonValue& target, const JsonValue& patch) {
    MergedList out;
    std::unordered_set<std::string> seen;
    for (auto& element : take_elements(target, {})) {
      out.server_order.push_back(element.key);
      if (seen.insert(element.key).second) out.elements.push_back(std::move(element));
    }
    Order wanted;
    for (const auto& element : patch.GetArray()) {
      std::string key = known_by(element, {});
      wanted.add(key);
      if (seen.insert(key).second)
        out.elements.push_back({std::move(key), deep_copy(element, allocator_)});
    }
    out.elements = arrange(std::move(out.elements), wanted, order_of(out.server_order));
    return out;
  }

  MergedList merge_objects(JsonValue& target, const JsonValue& patch, const PatchField& field) {
    bool replaces = false;
    std::vector<const JsonValue*> changes;
    ServerList server(target, field.merge_key);
    for (const auto& element : patch.GetArray()) {
      const JsonValue* marker = find_member(element, directive::kPatch);
      if (marker == nullptr) {
        changes.push_back(&element);
      } else if (is_text(*marker, directive::kDelete)) {
        if (find_member(element, field.merge_key) == nullptr)
          fail_merge_key(element, field.merge_key);
        if (const auto key = key_of(element, field.merge_key)) server.remove(*key);
      } else if (is_text(*marker, directive::kReplace)) {
        replaces = true;
      } else if (is_text(*marker, directive::kMerge)) {
        fail("merging lists cannot yet be specified in the patch");
      } else {
        fail_directive(*marker, element);
      }
    }

    MergedList out;
    Order wanted;
    Order before;
    if (replaces) {
      for (const auto* change : changes) {
        out.elements.push_back(
            {required_key(*change, field.merge_key), copy(*change, field.schema)});
        before.add(out.elements.back().key);
      }
    } else {
      std::vector<JsonValue> elements = server.take_elements();
      // The server's elements without a key are reported below.
      std::unordered_map<std::string, std::size_t> index;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        if (auto key = key_of(elements[i], field.merge_key)) {
          before.add(*key);
          index.emplace(*std::move(key), i);
        }
      }
      for (const auto* change : changes) {
        std::string key = required_key(*change, field.merge_key);
        wanted.add(key);
        if (const auto known = index.find(key); known != index.end()) {
          merge_object(elements[known->second], *change, field.schema);
        } else {
          server.append(elements.size(), key);
          index.emplace(std::move(key), elements.size());
          elements.push_back(copy_element(*change, field));
        }
      }
      for (auto& element : elements) {
        std::string key = required_key(element, field.merge_key);
        out.elements.push_back({std::move(key), std::move(element)});
      }
    }
    out.elements = arrange(std::move(out.elements), wanted, before);
    out.server_order = server.take_order();
    return out;
  }

  JsonValue to_list(std::vector<Keyed> elements) {
    JsonValue out(rapidjson::kArrayType);
    out.Reserve(static_cast<rapidjson::SizeType>(elements.size()), allocator_);
    for (auto& element : elements) out.PushBack(element.value, allocator_);
    return out;
  }

  /// Copies a value that replaces another one. Drops directives, as the API server's decoder
  /// drops unknown fields.
  JsonValue copy(const JsonValue& value, PatchSchema schema) {
    if (value.IsObject() && !schema.is_opaque()) return copy_members(value, schema, {});
    if (!value.IsArray()) return deep_copy(value, allocator_);
    JsonValue out(rapidjson::kArrayType);
    out.Reserve(value.Size(), allocator_);
    for (const auto& element : value.GetArray())
      out.PushBack(copy(element, schema.element()), allocator_);
    return out;
  }

  /// Copies an element of a merged list, with its merge key even if that is null.
  JsonValue copy_element(const JsonValue& element, const PatchField& field) {
    JsonValue out = copy(element, field.schema);
    if (find_member(out, field.merge_key) == nullptr)
      out.AddMember(copy_text(field.merge_key, allocator_), JsonValue(), allocator_);
    return out;
  }

  JsonValue copy_members(const JsonValue& object, PatchSchema schema, std::string_view without) {
    JsonValue out(rapidjson::kObjectType);
    for (const auto& [name, value] : UniqueMembers(object)) {
      if (name == without || (schema.has_fields() && directive::is_directive(name))) continue;
      if (value->IsNull() && !schema.is_opaque()) continue;
      out.AddMember(copy_text(name, allocator_), copy(*value, schema.member(name)), allocator_);
    }
    return out;
  }

  /// Copies a new value, without objects that contain "$patch" with any value.
  std::optional<JsonValue> copy_new(const JsonValue& value, PatchSchema schema) {
    if (value.IsArray()) {
      JsonValue out(rapidjson::kArrayType);
      for (const auto& element : value.GetArray()) {
        if (auto fresh = copy_new(element, schema.element())) out.PushBack(*fresh, allocator_);
      }
      return out;
    }
    if (!value.IsObject()) return deep_copy(value, allocator_);
    const JsonValue* marker = find_member(value, directive::kPatch);
    if (marker != nullptr && !marker->IsNull()) return std::nullopt;
    JsonValue out(rapidjson::kObjectType);
    for (const auto& [name, member] : UniqueMembers(value)) {
      if (member->IsNull() || (schema.has_fields() && directive::is_directive(name))) continue;
      if (auto fresh = copy_new(*member, schema.member(name)))
        out.AddMember(copy_text(name, allocator_), *fresh, allocator_);
    }
    return out;
  }

  Allocator& allocator_;
  std::size_t work_ = 0;
};

}  // namespace

bool supports_strategic_merge_patch(const GroupVersionKind& type) {
  return detail::Type::of_kind(type.group, type.version, type.kind).has_value();
}

void apply_strategic_merge_patch(JsonValue& target, const JsonValue& patch,
                                 const GroupVersionKind& type, Allocator& allocator) {
  const auto root = detail::Type::of_kind(type.group, type.version, type.kind);
  if (!root) throw StatusError::bad_request("strategic merge patch format is not supported");
  if (!target.IsObject()) throw InvalidArgument("the target of a patch is not an object");
  if (patch.IsNull()) return;
  if (!patch.IsObject()) {
    throw StatusError::bad_request(
        fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    patch.IsArray()    ? "array"
                    : patch.IsString() ? "string"
                    : patch.IsNumber() ? "number"
                                       : "bool"));
  }
  check_depth(target);
  check_depth(patch);
  Merger(allocator).merge_object(target, patch, PatchSchema(*root));
}

}  // namespace lookout::api
