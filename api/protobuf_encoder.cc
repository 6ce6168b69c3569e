#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <span>
#include <vector>

#include "api/wire_table.h"
#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/symbol_table.h"
#include "lookout/api/detail/wire_reader.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/symbols.h"
#include "lookout/api/time.h"
#include "lookout/base/base64.h"

namespace lookout::api {
namespace {

using namespace detail;

/// JSON of untyped values, in Go's form: members sorted by name.
void write_sorted_json(Value value, std::string& out) {
  if (value.is_array()) {
    out += '[';
    for (const Value element : value.elements()) {
      if (out.back() != '[') out += ',';
      write_sorted_json(element, out);
    }
    out += ']';
    return;
  }
  if (!value.is_object()) return write_json(value, out);
  if (is_field_set(value.data())) {
    // They are already sorted by name.
    const Range range = field_set_contents(value.data());
    out += '{';
    for (const std::uint8_t* p = range.begin; p < range.end;) {
      const FieldSetEntry entry = read_field_set_entry(p);
      if (out.back() != '{') out += ',';
      write_json_string(entry.name, out);
      out += ':';
      if (*entry.value == kTagEmptyObject) {
        out += "{}";
      } else {
        write_sorted_json(Value(entry.value), out);
      }
      p = entry.end;
    }
    out += '}';
    return;
  }
  std::vector<Members::Member> members;
  for (const auto& member : value.members()) members.push_back(member);
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  out += '{';
  for (const auto& [name, member] : members) {
    if (out.back() != '{') out += ',';
    write_json_string(name, out);
    out += ':';
    write_sorted_json(member, out);
  }
  out += '}';
}

}  // namespace

class ProtobufEncoder::Impl {
 public:
  bool encode(const Object& object, std::string& out) {
    const auto id = wire_message_of_type(object.api_version(), object.kind());
    if (!id) return false;
    out_ = &out;
    enveloped(*id, object);
    return true;
  }

  bool encode_event(EventType type, const Object& object, std::string& out) {
    const auto id = wire_message_of_type(object.api_version(), object.kind());
    if (!id) return false;
    out_ = &out;
    const std::size_t frame = out.size();
    out.append(4, '\0');
    text(1, to_string(type));
    nested(2, size_of(object.body()),
           [&] { nested(1, size_of(object.body()), [&] { enveloped(*id, object); }); });
    const std::size_t size = out.size() - frame - 4;
    for (unsigned i = 0; i < 4; ++i) out[frame + i] = static_cast<char>(size >> (24 - 8 * i));
    return true;
  }

  bool encode_list_head(std::string_view api_version, std::string_view list_kind,
                        const ProtobufListMeta& meta, std::size_t items_size, std::string& out) {
    if (!wire_message_of_type(api_version, list_kind)) return false;
    std::string head;
    out_ = &head;
    nested(1, 0, [&] {
      text(1, "");  // selfLink, which was removed but keeps its number
      text(2, meta.resource_version);
      text(3, meta.continue_token);
      if (meta.remaining_item_count)
        number(4, static_cast<std::uint64_t>(*meta.remaining_item_count));
    });
    out_ = &out;
    type_meta(api_version, list_kind);
    tag(2, kBytes);
    varint(head.size() + items_size);
    out += head;
    return true;
  }

  void encode_list_item(std::string_view api_version, std::string_view kind, const Object& object,
                        std::string& out) {
    const auto id = wire_message_of_type(api_version, kind);
    if (!id) return;
    out_ = &out;
    nested(2, size_of(object.body()), [&] { whole(*id, object); });
  }

  std::size_t left_out() const { return left_out_; }

 private:
  static constexpr std::string_view kZeroQuantity = "0";

  // ---- bytes

  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *out_ += static_cast<char>(value | 0x80);
    *out_ += static_cast<char>(value);
  }
  void tag(std::uint64_t field, WireType type) { varint(field << 3 | type); }
  void number(std::uint64_t field, std::uint64_t value) {
    tag(field, kVarint);
    varint(value);
  }
  void text(unsigned field, std::string_view bytes) {
    tag(field, kBytes);
    varint(bytes.size());
    *out_ += bytes;
  }

  static std::size_t varint_size(std::uint64_t value) {
    return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
  }

  /// The approximate size of the value in protobuf, to reserve bytes for its length.
  static std::size_t size_of(Value value) {
    return value.exists() ? static_cast<std::size_t>(skip_value(value.data()) - value.data()) : 0;
  }

  /// A field whose bytes `write` appends.
  template <class Write>
  void nested(unsigned field, std::size_t estimate, Write write) {
    tag(field, kBytes);
    const std::size_t reserved = varint_size(estimate);
    const std::size_t begin = out_->size();
    out_->append(reserved, '\0');
    write();
    const std::size_t size = out_->size() - begin - reserved;
    const std::size_t needed = varint_size(size);
    if (needed > reserved) {
      out_->insert(begin, needed - reserved, '\0');
    } else if (needed < reserved) {
      out_->erase(begin, reserved - needed);
    }
    auto* p = reinterpret_cast<std::uint8_t*>(out_->data() + begin);
    write_varint(p, size);
  }

  // ---- objects

  void type_meta(std::string_view api_version, std::string_view kind) {
    *out_ += kProtobufMagic;
    nested(1, 0, [&] {
      text(1, api_version);
      text(2, kind);
    });
  }

  void enveloped(std::uint16_t id, const Object& object) {
    type_meta(object.api_version(), object.kind());
    nested(2, size_of(object.body()), [&] { whole(id, object); });
    encode_list_tail(*out_);
  }

  void whole(std::uint16_t id, const Object& object) {
    const std::size_t before = left_out_;
    message(id, object.body(), true);
    if (left_out_ != before) number(kMaxFieldNumber, 1);
  }

  /// `typed`: whether the object has apiVersion and kind, which are not in the message.
  void message(std::uint16_t id, Value object, bool typed) {
    const std::span<const WireSlot> slots = wire_slots(id);
    const std::size_t base = values_.size();
    values_.resize(base + slots.size());
    // Slots are in member order.
    std::size_t at = 0;
    const Range range = object_contents(object.data());
    for (const std::uint8_t* p = range.begin; p < range.end;) {
      const Key key = read_key(p);
      const Value value(key.end);
      p = skip_value(key.end);
      const std::size_t slot =
          key.symbol != kNoSymbol ? find_slot(slots, at, key.symbol) : slots.size();
      if (slot < slots.size()) {
        at = slot + 1;
        if (!value.is_null()) values_[base + slot] = value;
      } else if (!typed || (key.symbol != sym::kApiVersion.id && key.symbol != sym::kKind.id)) {
        ++left_out_;
      }
    }
    if (object.exists() && !object.is_object()) ++left_out_;
    if (object.exists() && is_field_set(object.data())) left_out_ += object.size();
    fields(id, wire_numbers(id), base);
    values_.resize(base);
  }

  static std::size_t find_slot(std::span<const WireSlot> slots, std::size_t from,
                               std::uint16_t symbol) {
    for (std::size_t i = from; i < slots.size(); ++i) {
      if (slots[i].symbol == symbol) return i;
      if (symbol_rank(slots[i].symbol) > symbol_rank(symbol)) break;
    }
    return slots.size();
  }

  void fields(std::uint16_t id, std::span<const WireNumber> numbers, std::size_t base) {
    for (const WireNumber& field : numbers) {
      if ((field.target & WireNumber::kInlined) != 0) {
        const std::uint16_t inlined = field.target & (WireNumber::kInlined - 1);
        nested(field.number, 0, [&] { fields(id, wire_numbers(inlined), base); });
        continue;
      }
      const WireSlot& slot = wire_slots(id)[field.target];
      const Value value = values_[base + field.target];
      if (slot.has(wire_flag::kMap)) {
        map(field.number, slot, value);
      } else if (slot.has(wire_flag::kList)) {
        list(field.number, slot, value);
      } else if (value.exists() || is_written_as_zero(slot)) {
        one(field.number, slot, value);
      }
    }
  }

  /// Fields without nil in Go.
  static bool is_written_as_zero(const WireSlot& slot) {
    return !slot.has(wire_flag::kPointer) && slot.kind != WireKind::kBytes &&
           slot.kind != WireKind::kStrings;
  }

  void list(unsigned field, const WireSlot& slot, Value value) {
    if (value.exists() && !value.is_array()) ++left_out_;
    for (const Value element : value.elements()) one(field, slot, element);
  }

  void map(unsigned field, const WireSlot& slot, Value value) {
    if (value.exists() && !value.is_object()) ++left_out_;
    // Nested values may contain maps.
    const std::size_t base = members_.size();
    for (const auto& member : value.members()) members_.push_back(member);
    std::sort(members_.begin() + static_cast<std::ptrdiff_t>(base), members_.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    const std::size_t end = members_.size();
    for (std::size_t i = base; i < end; ++i) {
      const Members::Member member = members_[i];
      nested(field, member.name.size() + size_of(member.value), [&] {
        text(1, member.name);
        if (slot.kind != WireKind::kBytes || !member.value.is_null()) one(2, slot, member.value);
      });
    }
    members_.resize(base);
  }

  /// Writes a value. Absent values, null and other types become the type's zero.
  void one(unsigned field, const WireSlot& slot, Value value) {
    if (value.is_null()) value = {};
    switch (slot.kind) {
      case WireKind::kString:
        text(field, of_kind(value, value.to_string_view()));
        break;
      case WireKind::kBytes: {
        const auto bytes = decode_base64(of_kind(value, value.to_string_view()));
        if (!bytes) ++left_out_;
        text(field, bytes.value_or(std::string()));
        break;
      }
      case WireKind::kInt:
        number(field, static_cast<std::uint64_t>(of_kind(value, value.to_int())));
        break;
      case WireKind::kBool:
        number(field, of_kind(value, value.to_bool()) ? 1 : 0);
        break;
      case WireKind::kDouble: {
        const auto bits = std::bit_cast<std::uint64_t>(of_kind(value, value.to_double()));
        tag(field, kFixed64);
        for (unsigned i = 0; i < 8; ++i) *out_ += static_cast<char>(bits >> (8 * i));
        break;
      }
      case WireKind::kMessage:
        nested(field, size_of(value),
               [&] { message(slot.message, value, slot.has(wire_flag::kTyped)); });
        break;
      case WireKind::kTime:
      case WireKind::kMicroTime:
        nested(field, 0, [&] { time(slot, value); });
        break;
      case WireKind::kQuantity:
        nested(field, 0, [&] {
          text(1, value.exists() ? of_kind(value, value.to_string_view()) : kZeroQuantity);
        });
        break;
      case WireKind::kIntOrString:
        nested(field, 0, [&] { int_or_string(value); });
        break;
      case WireKind::kJson:
        nested(field, size_of(value), [&] {
          if (!value.exists()) return;
          json_.clear();
          write_sorted_json(value, json_);
          text(1, json_);
        });
        break;
      case WireKind::kStrings:
        nested(field, size_of(value), [&] { strings(1, value); });
        break;
      case WireKind::kSchemaOrArray:
      case WireKind::kSchemaOrBool:
      case WireKind::kSchemaOrStrings:
        nested(field, size_of(value), [&] { schema_union(slot, value); });
        break;
    }
  }

  template <class T>
  T of_kind(Value value, const std::optional<T>& content) {
    if (value.exists() && !content) ++left_out_;
    return content.value_or(T{});
  }

  void time(const WireSlot& slot, Value value) {
    if (!value.exists()) return;
    const auto moment = parse_time(of_kind(value, value.to_string_view()));
    if (!moment) {
      ++left_out_;
      return;
    }
    const auto seconds = std::chrono::floor<std::chrono::seconds>(*moment);
    const std::chrono::nanoseconds rest = *moment - seconds;
    number(1, static_cast<std::uint64_t>(seconds.time_since_epoch().count()));
    number(2, slot.kind == WireKind::kMicroTime ? static_cast<std::uint64_t>(rest.count()) : 0);
  }

  void int_or_string(Value value) {
    const bool is_text = value.is_string();
    number(1, is_text ? 1 : 0);
    number(2, is_text ? 0 : static_cast<std::uint64_t>(of_kind(value, value.to_int())));
    text(3, is_text ? value.as_string() : std::string_view());
  }

  void strings(unsigned field, Value value) {
    if (value.exists() && !value.is_array()) ++left_out_;
    for (const Value element : value.elements())
      text(field, of_kind(element, element.to_string_view()));
  }

  void schema_union(const WireSlot& slot, Value value) {
    const bool or_bool = slot.kind == WireKind::kSchemaOrBool;
    const auto schema = [&](unsigned field, Value one) {
      nested(field, size_of(one), [&] { message(slot.message, one, false); });
    };
    if (or_bool) number(1, value.is_object() || value.as_bool() ? 1 : 0);
    if (value.is_object()) {
      schema(or_bool ? 2 : 1, value);
    } else if (slot.kind == WireKind::kSchemaOrStrings) {
      strings(2, value);
    } else if (slot.kind == WireKind::kSchemaOrArray) {
      for (const Value element : value.elements()) schema(2, element);
    }
  }

  std::string* out_ = nullptr;
  std::vector<Value> values_;             // of the open messages' slots
  std::vector<Members::Member> members_;  // of the open maps
  std::string json_;
  std::size_t left_out_ = 0;
};

ProtobufEncoder::ProtobufEncoder() : impl_(std::make_unique<Impl>()) {}
ProtobufEncoder::~ProtobufEncoder() = default;
bool ProtobufEncoder::encode(const Object& object, std::string& out) {
  return impl_->encode(object, out);
}
bool ProtobufEncoder::encode_event(EventType type, const Object& object, std::string& out) {
  return impl_->encode_event(type, object, out);
}
bool ProtobufEncoder::encode_list_head(std::string_view api_version, std::string_view list_kind,
                                       const ProtobufListMeta& meta, std::size_t items_size,
                                       std::string& out) {
  return impl_->encode_list_head(api_version, list_kind, meta, items_size, out);
}
void ProtobufEncoder::encode_list_item(std::string_view api_version, std::string_view kind,
                                       const Object& object, std::string& out) {
  impl_->encode_list_item(api_version, kind, object, out);
}
void ProtobufEncoder::encode_list_tail(std::string& out) {
  // contentEncoding and contentType, which are empty.
  out.append("\x1a\0\x22\0", 4);
}
std::size_t ProtobufEncoder::left_out() const { return impl_->left_out(); }

}  // namespace lookout::api
