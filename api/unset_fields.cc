#include "lookout/api/detail/unset_fields.h"

#include "api/wire_table.h"
#include "lookout/api/detail/json_values.h"
#include "lookout/api/detail/symbol_table.h"

namespace lookout::api::detail {
namespace {

using Allocator = rapidjson::Document::AllocatorType;
using JsonValue = rapidjson::Value;

JsonValue* find(JsonValue& object, std::string_view name) {
  for (auto& member : object.GetObject()) {
    if (text_of(member.name) == name) return &member.value;
  }
  return nullptr;
}

void complete(JsonValue& object, std::uint16_t message, Allocator& allocator);

/// What Go writes of a field that is unset.
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
      complete(out, slot.message, allocator);
      return out;
    default:
      return out;
  }
}

void complete(JsonValue& object, std::uint16_t message, Allocator& allocator) {
  if (!object.IsObject()) return;
  for (const WireSlot& slot : wire_slots(message)) {
    const bool always = slot.has(wire_flag::kAlways);
    const bool structure = slot.kind == WireKind::kMessage;
    if (!always && !structure) continue;
    const std::string_view name = symbol_text(slot.symbol);
    JsonValue* value = find(object, name);
    if (value == nullptr) {
      if (always) object.AddMember(copy_text(name, allocator), unset(slot, allocator), allocator);
    } else if (!structure) {
      continue;
    } else if (slot.has(wire_flag::kList)) {
      if (!value->IsArray()) continue;
      for (JsonValue& element : value->GetArray()) complete(element, slot.message, allocator);
    } else if (slot.has(wire_flag::kMap)) {
      if (!value->IsObject()) continue;
      for (auto& member : value->GetObject()) complete(member.value, slot.message, allocator);
    } else {
      complete(*value, slot.message, allocator);
    }
  }
}

}  // namespace

void add_unset_fields(JsonValue& object, std::string_view api_version, std::string_view kind,
                      Allocator& allocator) {
  if (const auto message = wire_message_of_type(api_version, kind))
    complete(object, *message, allocator);
}

}  // namespace lookout::api::detail
