#include "lookout/api/detail/unset_fields.h"

#include <algorithm>

#include "api/wire_table.h"
#include "lookout/api/detail/json_values.h"
#include "lookout/api/detail/symbol_table.h"

namespace lookout::api::detail {
namespace {

JsonValue* find(JsonValue& object, std::string_view name) {
  for (auto& member : object.GetObject()) {
    if (text_of(member.name) == name) return &member.value;
  }
  return nullptr;
}

enum class EmptyLists { kStay, kBecomeNull };

void complete(JsonValue& object, std::uint16_t message, EmptyLists lists, Allocator& allocator);

/// Go's JSON for an unset field.
JsonValue unset(const WireSlot& slot, Allocator& allocator) {
  JsonValue out;
  if (slot.has(wire_flag::kItems)) return std::move(out.SetArray());
  if (slot.has(wire_flag::kPointer | wire_flag::kList | wire_flag::kMap)) return out;
  switch (slot.kind) {
    case WireKind::kString:
      return copy_text("", allocator);
    case WireKind::kQuantity:
      return copy_text("0", allocator);
    case WireKind::kInt:
    case WireKind::kDouble:
    case WireKind::kIntOrString:
      return std::move(out.SetInt(0));
    case WireKind::kBool:
      return std::move(out.SetBool(false));
    case WireKind::kMessage:
      out.SetObject();
      complete(out, slot.message, EmptyLists::kStay, allocator);
      return out;
    default:
      return out;
  }
}

void complete(JsonValue& object, std::uint16_t message, EmptyLists lists, Allocator& allocator) {
  if (!object.IsObject()) return;
  for (const WireSlot& slot : wire_slots(message)) {
    const bool always = slot.has(wire_flag::kAlways);
    const bool structure = slot.kind == WireKind::kMessage;
    if (!always && !structure) continue;
    const std::string_view name = symbol_text(slot.symbol);
    JsonValue* value = find(object, name);
    if (value == nullptr) {
      if (always) object.AddMember(copy_text(name, allocator), unset(slot, allocator), allocator);
      continue;
    }
    if (always && lists == EmptyLists::kBecomeNull && value->IsArray() && value->Empty()) {
      *value = unset(slot, allocator);
      continue;
    }
    if (!structure) continue;
    if (slot.has(wire_flag::kList)) {
      if (!value->IsArray()) continue;
      for (JsonValue& element : value->GetArray())
        complete(element, slot.message, lists, allocator);
    } else if (slot.has(wire_flag::kMap)) {
      if (!value->IsObject()) continue;
      for (auto& member : value->GetObject())
        complete(member.value, slot.message, lists, allocator);
    } else {
      complete(*value, slot.message, lists, allocator);
    }
  }
}

/// Whether Go treats the value as unset.
bool is_unset(const JsonValue& value, const WireSlot& slot) {
  if (slot.has(wire_flag::kList)) return value.IsArray() && value.Empty();
  if (slot.has(wire_flag::kMap)) return value.IsObject() && value.ObjectEmpty();
  if (slot.has(wire_flag::kPointer)) return false;
  switch (slot.kind) {
    case WireKind::kString:
    case WireKind::kBytes:
      return value.IsString() && value.GetStringLength() == 0;
    case WireKind::kInt:
    case WireKind::kDouble:
      return value.IsNumber() && value.GetDouble() == 0;
    case WireKind::kBool:
      return value.IsFalse();
    default:
      return false;
  }
}

/// (The unions hold schemas, or something that is not a message.)
bool holds_messages(WireKind kind) {
  return kind == WireKind::kMessage || kind == WireKind::kSchemaOrArray ||
         kind == WireKind::kSchemaOrBool || kind == WireKind::kSchemaOrStrings;
}

void reduce(JsonValue& object, std::uint16_t message) {
  if (!object.IsObject()) return;
  const auto slots = wire_slots(message);
  for (auto member = object.MemberBegin(); member != object.MemberEnd();) {
    const std::uint16_t symbol = find_symbol(text_of(member->name));
    const auto slot = std::find_if(slots.begin(), slots.end(),
                                   [&](const WireSlot& one) { return one.symbol == symbol; });
    JsonValue& value = member->value;
    if (slot != slots.end() && !slot->has(wire_flag::kAlways) && is_unset(value, *slot)) {
      member = object.EraseMember(member);
      continue;
    }
    ++member;
    if (slot == slots.end() || !holds_messages(slot->kind)) continue;
    if (value.IsArray()) {
      for (JsonValue& element : value.GetArray()) reduce(element, slot->message);
    } else if (slot->has(wire_flag::kMap) && value.IsObject()) {
      for (auto& entry : value.GetObject()) reduce(entry.value, slot->message);
    } else {
      reduce(value, slot->message);
    }
  }
}

}  // namespace

void drop_unset_fields(JsonValue& object, std::string_view api_version, std::string_view kind) {
  if (const auto message = wire_message_of_type(api_version, kind)) reduce(object, *message);
}

void add_unset_fields(JsonValue& object, std::string_view api_version, std::string_view kind,
                      Allocator& allocator) {
  if (const auto message = wire_message_of_type(api_version, kind))
    complete(object, *message, EmptyLists::kStay, allocator);
}

void settle_unset_fields(JsonValue& object, std::string_view api_version, std::string_view kind,
                         Allocator& allocator) {
  if (const auto message = wire_message_of_type(api_version, kind))
    complete(object, *message, EmptyLists::kBecomeNull, allocator);
}

}  // namespace lookout::api::detail
