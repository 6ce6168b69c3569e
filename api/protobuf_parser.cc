#include "api/protobuf_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "api/projection_node.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/detail/symbol_table.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/symbols.h"
#include "lookout/base/base64.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::api::detail {
namespace {

constexpr std::size_t kMaxBytesField = std::size_t{1} << 30;
constexpr std::string_view kTruncated = "the value goes beyond the end of its message";

/// Most texts are ASCII, which needs no UTF-8 check.
bool is_ascii(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  const char* p = text.data();
  const std::size_t n = text.size();
  const auto word = [](const char* at) {
    std::uint64_t out = 0;
    std::memcpy(&out, at, sizeof out);
    return out;
  };
  if (n >= 8) {
    std::uint64_t bits = word(p + n - 8);
    for (std::size_t i = 0; i + 8 < n; i += 8) bits |= word(p + i);
    return (bits & kHighBits) == 0;
  }
  return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
}

/// In the format of Go's encoding/json.
std::string go_number(double value) {
  const double size = std::fabs(value);
  const bool scientific = size != 0 && (size < 1e-6 || size >= 1e21);
  char buffer[64];
  const auto [end, error] =
      std::to_chars(std::begin(buffer), std::end(buffer), value,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string out(std::begin(buffer), end);
  // 1e-07 becomes 1e-7.
  if (const std::size_t at = out.find("e-0"); at != std::string::npos) out.erase(at + 2, 1);
  return out;
}

/// Replaces each byte of invalid UTF-8 by U+FFFD, as in JSON.
std::string repaired(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Rune rune = first_rune(bytes);
    out += rune.valid ? bytes.substr(0, rune.size) : std::string_view("\xEF\xBF\xBD");
    bytes.remove_prefix(rune.size);
  }
  return out;
}

}  // namespace

ProtobufParser::ProtobufParser(FlatWriter& writer, const ProjectionNode* projection)
    : writer_(writer), projection_(projection), json_(writer, nullptr), field_set_(writer) {
  // The server received the embedded object as JSON.
  json_.set_max_depth(kMaxServedDepth);
}

bool ProtobufParser::fail(NamedPlace place, std::string_view why) {
  error_ = place.is_field() ? fmt::format("{}.{}: {}", place.message, place.field, why)
                            : fmt::format("{}: {}", place.message, why);
  return false;
}

bool ProtobufParser::fail(Place place, std::string_view why) {
  const std::string message(wire_name(place.message));
  const std::string field(place.is_field() ? symbol_text(place.symbol) : std::string_view());
  return fail(NamedPlace{message.c_str(), field.c_str()}, why);
}

template <class AnyPlace>
bool ProtobufParser::fail(AnyPlace place, WireFault fault, std::uint64_t number,
                          unsigned wire_type) {
  switch (fault) {
    case WireFault::kNone:
      break;
    case WireFault::kBadTag:
      return fail(place, "a field's tag is cut off or too large");
    case WireFault::kBadNumber:
      return fail(place, fmt::format("{} is not a field number", number));
    case WireFault::kBadType:
      return fail(place, fmt::format("field {} has the unknown wire type {}", number, wire_type));
    case WireFault::kTruncated:
      return fail(place, place.is_field() ? std::string(kTruncated)
                                          : fmt::format("field {}: {}", number, kTruncated));
  }
  return false;
}

template <class AnyPlace, class Visit>
bool ProtobufParser::each_field(AnyPlace place, std::string_view bytes, Visit visit) {
  const std::uint8_t* p = begin_of(bytes);
  const std::uint8_t* const end = end_of(bytes);
  while (p < end) {
    const std::uint8_t* const at = p;
    std::uint64_t number = 0;
    Content content;
    if (const WireFault fault = read_field(p, end, number, content); fault != WireFault::kNone)
      return fail(place, fault, number, content.wire_type);
    if (!visit(static_cast<std::uint32_t>(number), content, at)) return false;
  }
  return true;
}

template <class Visit>
bool ProtobufParser::each_occurrence(const Slot& found, Visit visit) {
  if (found.first == found.last) return visit(found.content);
  const std::uint8_t* p = found.first;
  std::uint64_t wanted = 0;
  bool done = false;
  // Checked before, so nothing is malformed.
  const std::string_view rest(reinterpret_cast<const char*>(p),
                              static_cast<std::size_t>(found.end - p));
  bool fine = true;
  each_field(NamedPlace{""}, rest,
             [&](std::uint32_t number, const Content& content, const std::uint8_t* at) {
               if (wanted == 0) wanted = number;
               if (number != wanted) return true;
               fine = visit(content);
               done = at == found.last;
               return fine && !done;
             });
  return fine;
}

bool ProtobufParser::parse_object(std::string_view bytes) {
  start(bytes.size(), own_repeated_.get());
  return envelope(bytes, projection_);
}

bool ProtobufParser::parse_item(std::string_view api_version, std::string_view kind,
                                std::string_view bytes) {
  start(bytes.size(), own_repeated_.get());
  return root(api_version, kind, bytes, projection_);
}

bool ProtobufParser::parse_event(std::string_view bytes) {
  constexpr NamedPlace kPlace{"WatchEvent"};
  start(bytes.size(), &RepeatedValues::of_this_thread());
  event_type_.clear();
  std::string_view extension;
  bool has_object = false;
  const bool fine = each_field(
      kPlace, bytes, [&](std::uint32_t number, const Content& content, const std::uint8_t*) {
        if (number > 2) return true;
        if (content.wire_type != kBytes)
          return fail(NamedPlace{"WatchEvent", number == 1 ? "type" : "object"}, "wrong wire type");
        if (number == 1) {
          event_type_ = content.bytes.substr(0, 64);
        } else {
          extension = content.bytes;
          has_object = true;
        }
        return true;
      });
  if (!fine) return false;
  if (event_type_.empty()) return fail(kPlace, "the event has no type");
  if (!has_object) return fail(kPlace, "the event has no object");
  std::string_view raw;
  if (!each_field(NamedPlace{"WatchEvent", "object"}, extension,
                  [&](std::uint32_t number, const Content& content, const std::uint8_t*) {
                    if (number == 1) raw = content.bytes;
                    return true;
                  }))
    return false;
  // No projection for errors and bookmarks.
  const bool change =
      event_type_ == "ADDED" || event_type_ == "MODIFIED" || event_type_ == "DELETED";
  return envelope(raw, change ? projection_ : nullptr);
}

bool ProtobufParser::envelope(std::string_view bytes, const ProjectionNode* projection) {
  if (!is_protobuf(bytes)) {
    error_ = "the object does not begin with the magic bytes of the protobuf encoding";
    return false;
  }
  bytes.remove_prefix(kProtobufMagic.size());
  constexpr const char* kFields[] = {"", "typeMeta", "raw", "contentEncoding", "contentType"};
  std::string_view parts[std::size(kFields)];
  if (!each_field(NamedPlace{"Unknown"}, bytes,
                  [&](std::uint32_t number, const Content& content, const std::uint8_t*) {
                    if (number >= std::size(kFields)) return true;
                    if (content.wire_type != kBytes)
                      return fail(NamedPlace{"Unknown", kFields[number]}, "wrong wire type");
                    parts[number] = content.bytes;
                    return true;
                  }))
    return false;
  if (!parts[3].empty())
    return fail(NamedPlace{"Unknown", kFields[3]},
                fmt::format("{} is not supported", quote(parts[3])));
  if (!parts[4].empty() && parts[4] != kProtobufMediaType)
    return fail(NamedPlace{"Unknown", kFields[4]},
                fmt::format("{} is not supported", quote(parts[4])));
  std::string_view api_version;
  std::string_view kind;
  if (!each_field(NamedPlace{"Unknown", kFields[1]}, parts[1],
                  [&](std::uint32_t number, const Content& content, const std::uint8_t*) {
                    if (number == 1) api_version = content.bytes;
                    if (number == 2) kind = content.bytes;
                    return true;
                  }))
    return false;
  return root(api_version, kind, parts[2], projection);
}

bool ProtobufParser::root(std::string_view api_version, std::string_view kind,
                          std::string_view bytes, const ProjectionNode* projection) {
  if (kind != kind_ || api_version != api_version_ || kind.empty()) {
    const auto id = wire_message_of_type(api_version, kind);
    if (!id) {
      error_ = fmt::format("no built-in kind {} is known in version {}", quote(kind),
                           quote(api_version));
      return false;
    }
    api_version_ = api_version;
    kind_ = kind;
    message_of_type_ = *id;
  }
  top_ = 0;
  writer_.default_type(api_version, kind);
  writer_.projected_by(projection);
  return message(message_of_type_, bytes, projection, false);
}

void ProtobufParser::remember_values() {
  if (own_repeated_ == nullptr) own_repeated_ = std::make_unique<RepeatedValues>();
}

void ProtobufParser::start(std::size_t bytes, RepeatedValues* repeated) {
  error_.clear();
  unknown_ = {};
  deepest_ = 0;
  repeated_ = repeated != nullptr && repeated->pays(bytes) ? repeated : nullptr;
  field_set_.set_repeated(repeated_);
}

bool ProtobufParser::recall(std::string_view bytes, RepeatedValues::Language language) {
  const RepeatedValues::Found found = repeated_->find(bytes, language);
  // (In JSON, one more level is possible: `{}` is not counted.)
  const std::size_t levels = writer_.depth() + found.levels;
  if (found.text_size != bytes.size() || levels >= kMaxDepth) return false;
  writer_.container(found.value);
  deepest_ = std::max(deepest_, levels);
  return true;
}

bool ProtobufParser::opens(Place place) {
  deepest_ = std::max(deepest_, writer_.depth() + 1);
  return writer_.depth() < kMaxDepth || fail(place, "nested too deeply");
}

bool ProtobufParser::closed(Place place) {
  return !writer_.overworked() || fail(place, "too large for its nesting depth");
}

bool ProtobufParser::message(std::uint16_t id, std::string_view bytes, const ProjectionNode* node,
                             bool typed) {
  if (repeated_ == nullptr || node != nullptr || typed || writer_.depth() == 0 ||
      bytes.size() < RepeatedValues::kShortest)
    return parse_message(id, bytes, node, typed);
  const auto language = static_cast<RepeatedValues::Language>(id + 1);
  if (recall(bytes, language)) return true;
  const std::size_t unknown = unknown_.count;
  const std::size_t outside = writer_.depth();
  const std::size_t deepest_before = std::exchange(deepest_, outside);
  if (!parse_message(id, bytes, node, typed)) return false;
  if (unknown_.count == unknown)
    repeated_->keep(bytes, writer_.closed_container(), deepest_ - outside, language);
  deepest_ = std::max(deepest_, deepest_before);
  return true;
}

bool ProtobufParser::parse_message(std::uint16_t id, std::string_view bytes,
                                   const ProjectionNode* node, bool typed) {
  const Place place{id};
  if (!opens(place)) return false;
  const std::span<const WireSlot> slots = wire_slots(id);
  const std::size_t base = top_;
  top_ += slots.size();
  if (slots_.size() < top_) slots_.resize(2 * top_);
  const bool loses = node == nullptr || node->keep_others;
  std::uint64_t found = 0;
  if (!scan(id, id, bytes, base, loses, found)) return false;
  writer_.begin_object();
  if (typed) {
    if (const auto type = wire_type_of_message(id)) {
      writer_.key(sym::kKind);
      writer_.string(type->kind);
      writer_.key(sym::kApiVersion);
      writer_.string(type->group.empty() ? std::string(type->version)
                                         : fmt::format("{}/{}", type->group, type->version));
    }
  }
  for (std::uint64_t left = found | kWireMessages[id].always; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    const Slot* const slot = (found >> i & 1) != 0 ? &slots_[base + i] : nullptr;
    if (!member(id, slots[i], slot, node)) return false;
  }
  writer_.end_object();
  top_ = base;
  return closed(place);
}

bool ProtobufParser::scan(std::uint16_t id, std::uint16_t numbers_of, std::string_view bytes,
                          std::size_t base, bool loses, std::uint64_t& found) {
  const std::span<const WireNumber> numbers = wire_numbers(numbers_of);
  const std::span<const WireSlot> slots = wire_slots(id);
  auto at_number = numbers.begin();
  const WireNumber* inlined = nullptr;
  const auto visit = [&](std::uint32_t number, const Content& content, const std::uint8_t* at) {
    // Fields are usually in the order of their numbers.
    if (at_number != numbers.end() && at_number->number != number) ++at_number;
    if (at_number == numbers.end() || at_number->number != number) {
      at_number =
          std::lower_bound(numbers.begin(), numbers.end(), number,
                           [](const WireNumber& n, std::uint32_t w) { return n.number < w; });
      if (at_number == numbers.end() || at_number->number != number) {
        if (loses) note_unknown(numbers_of, number, content);
        return true;
      }
    }
    if ((at_number->target & WireNumber::kInlined) != 0) {
      const Place place{numbers_of};
      if (content.wire_type != kBytes)
        return fail(place, fmt::format("field {} has the wrong wire type", number));
      if (inlined == &*at_number)
        return fail(place, fmt::format("field {} is given twice", number));
      inlined = &*at_number;
      return scan(id, at_number->target & (WireNumber::kInlined - 1), content.bytes, base, loses,
                  found);
    }
    const WireSlot& slot = slots[at_number->target];
    const bool packed = slot.has(wire_flag::kList) && content.wire_type == kBytes;
    if (content.wire_type != at_number->wire_type && !packed)
      return fail(Place{id, slot.symbol}, "wrong wire type");
    Slot& place = slots_[base + at_number->target];
    const std::uint64_t bit = std::uint64_t{1} << at_number->target;
    if ((found & bit) == 0) {
      found |= bit;
      place.first = at;
      place.end = end_of(bytes);
    } else if (at_number->wire_type == kBytes && slot.kind != WireKind::kString &&
               slot.kind != WireKind::kBytes && !slot.has(wire_flag::kList | wire_flag::kMap)) {
      return fail(Place{id, slot.symbol}, "the message is given twice");
    }
    place.last = at;
    place.content = content;
    return true;
  };
  return each_field(Place{id}, bytes, visit);
}

void ProtobufParser::note_unknown(std::uint16_t message, std::uint32_t number,
                                  const Content& content) {
  // metadata.clusterName was removed. Older servers write it, always empty; JSON omits it.
  constexpr std::uint32_t kClusterName = 15;
  if (number == kClusterName && content.bytes.empty() && wire_name(message) == "ObjectMeta") return;
  if (unknown_.count++ == 0)
    unknown_.first = fmt::format("field {} of {}", number, wire_name(message));
}

bool ProtobufParser::member(std::uint16_t id, const WireSlot& slot, const Slot* found,
                            const ProjectionNode* node) {
  const Place place{id, slot.symbol};
  const ProjectionNode* below = nullptr;
  if (node != nullptr && !node->keeps(symbol_text(slot.symbol), below)) return true;
  if (found == nullptr) return absent(place, slot, below);
  const Symbol key{slot.symbol};
  if (slot.has(wire_flag::kMap)) {
    writer_.key(key);
    return map(place, slot, *found, below);
  }
  if (slot.has(wire_flag::kList)) {
    writer_.key(key);
    return list(place, slot, *found, below);
  }
  // If a scalar occurs several times, the last one wins.
  const Content& content = found->content;
  if (!slot.has(wire_flag::kPointer | wire_flag::kAlways)) {
    const bool zero = slot.kind == WireKind::kDouble ? std::bit_cast<double>(content.number) == 0
                                                     : content.number == 0 && content.bytes.empty();
    if (zero) return true;
  }
  writer_.key(key);
  return value(place, slot, content, below);
}

bool ProtobufParser::absent(Place place, const WireSlot& slot, const ProjectionNode* node) {
  writer_.key(Symbol{slot.symbol});
  if (slot.has(wire_flag::kItems)) {
    writer_.begin_array();
    writer_.end_array();
  } else if (slot.has(wire_flag::kPointer | wire_flag::kList | wire_flag::kMap) ||
             slot.kind == WireKind::kBytes || slot.kind == WireKind::kStrings) {
    writer_.null();
  } else {
    return value(place, slot, {}, node);
  }
  return true;
}

bool ProtobufParser::list(Place place, const WireSlot& slot, Slot found,
                          const ProjectionNode* node) {
  if (!opens(place)) return false;
  const unsigned expected = slot.kind == WireKind::kInt || slot.kind == WireKind::kBool ? kVarint
                            : slot.kind == WireKind::kDouble                            ? kFixed64
                                                                                        : kBytes;
  writer_.begin_array();
  const bool fine = each_occurrence(found, [&](const Content& content) {
    if (content.wire_type == expected) return value(place, slot, content, node);
    // Packed.
    const std::uint8_t* p = begin_of(content.bytes);
    const std::uint8_t* const end = end_of(content.bytes);
    while (p < end) {
      Content one;
      one.wire_type = expected;
      if (expected == kFixed64) {
        if (end - p < 8) return fail(place, kTruncated);
        for (unsigned i = 0; i < 8; ++i) one.number |= std::uint64_t{p[i]} << (8 * i);
        p += 8;
      } else if (!read_number(p, end, one.number)) {
        return fail(place, kTruncated);
      }
      if (!value(place, slot, one, node)) return false;
    }
    return true;
  });
  if (!fine) return false;
  writer_.end_array();
  return closed(place);
}

bool ProtobufParser::map(Place place, const WireSlot& slot, Slot found,
                         const ProjectionNode* node) {
  if (!opens(place)) return false;
  writer_.begin_object();
  const bool fine = each_occurrence(found, [&](const Content& entry) {
    std::string_view name;
    Content content;
    content.wire_type = kBytes;
    bool given = false;
    const auto visit = [&](std::uint32_t number, const Content& part, const std::uint8_t*) {
      if (number > 2) return true;
      if (part.wire_type != kBytes) return fail(place, "wrong wire type in an entry of the map");
      if (number == 1) {
        name = part.bytes;
      } else {
        content = part;
        given = true;
      }
      return true;
    };
    if (!each_field(place, entry.bytes, visit)) return false;
    const ProjectionNode* below = nullptr;
    if (node != nullptr && !node->keeps(name, below)) return true;
    key_text(name);
    if (!given && (slot.kind == WireKind::kBytes || slot.kind == WireKind::kStrings)) {
      writer_.null();
      return true;
    }
    return value(place, slot, content, below);
  });
  if (!fine) return false;
  writer_.end_object();
  return closed(place);
}

bool ProtobufParser::value(Place place, const WireSlot& slot, const Content& content,
                           const ProjectionNode* node) {
  switch (slot.kind) {
    case WireKind::kString:
      text(content.bytes);
      return true;
    case WireKind::kBytes:
      if (content.bytes.size() > kMaxBytesField) return fail(place, "too large");
      writer_.string(encode_base64(content.bytes));
      return true;
    case WireKind::kInt:
      writer_.integer(static_cast<std::int64_t>(content.number));
      return true;
    case WireKind::kBool:
      writer_.boolean(content.number != 0);
      return true;
    case WireKind::kDouble: {
      const auto number = std::bit_cast<double>(content.number);
      if (!std::isfinite(number)) return fail(place, "not a finite number");
      writer_.number(go_number(number));
      return true;
    }
    case WireKind::kMessage:
      return message(slot.message, content.bytes, node, slot.has(wire_flag::kTyped));
    case WireKind::kTime:
    case WireKind::kMicroTime:
      return time(place, slot, content.bytes);
    case WireKind::kQuantity: {
      std::string_view quantity;
      if (!only_field(place, content.bytes, quantity)) return false;
      text(quantity.empty() ? std::string_view("0") : quantity);
      return true;
    }
    case WireKind::kIntOrString:
      return int_or_string(place, content.bytes);
    case WireKind::kJson:
      return json(place, content.bytes, node);
    case WireKind::kStrings:
      return strings(place, content.bytes, 1);
    case WireKind::kSchemaOrArray:
    case WireKind::kSchemaOrBool:
    case WireKind::kSchemaOrStrings:
      return schema_union(place, slot, content.bytes, node);
  }
  return false;
}

bool ProtobufParser::only_field(Place place, std::string_view bytes, std::string_view& out) {
  return each_field(place, bytes,
                    [&](std::uint32_t number, const Content& part, const std::uint8_t*) {
                      if (number != 1) return true;
                      if (part.wire_type != kBytes) return fail(place, "wrong wire type");
                      out = part.bytes;
                      return true;
                    });
}

bool ProtobufParser::time(Place place, const WireSlot& slot, std::string_view bytes) {
  if (bytes.empty()) {
    writer_.null();
    return true;
  }
  std::int64_t seconds = 0;
  std::int64_t nanos = 0;
  if (!each_field(place, bytes,
                  [&](std::uint32_t number, const Content& part, const std::uint8_t*) {
                    if (number > 2) return true;
                    if (part.wire_type != kVarint) return fail(place, "wrong wire type");
                    (number == 1 ? seconds : nanos) = static_cast<std::int64_t>(part.number);
                    return true;
                  }))
    return false;
  if (seconds < TimeText::kBegin || seconds >= TimeText::kEnd || nanos < 0 || nanos > 999'999'999)
    return fail(place, "not a time between the years 0 and 9999");
  writer_.plain_string(slot.kind == WireKind::kTime ? time_text_.seconds(seconds)
                                                    : time_text_.micros(seconds, nanos / 1000));
  return true;
}

bool ProtobufParser::int_or_string(Place place, std::string_view bytes) {
  std::uint64_t type = 0;
  std::uint64_t number_value = 0;
  std::string_view text_value;
  if (!each_field(place, bytes,
                  [&](std::uint32_t number, const Content& part, const std::uint8_t*) {
                    if (number > 3) return true;
                    if (part.wire_type != (number == 3 ? kBytes : kVarint))
                      return fail(place, "wrong wire type");
                    if (number == 1) type = part.number;
                    if (number == 2) number_value = part.number;
                    if (number == 3) text_value = part.bytes;
                    return true;
                  }))
    return false;
  if (type > 1) return fail(place, "neither a number nor a string");
  if (type == 1) {
    text(text_value);
  } else {
    writer_.integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(number_value)));
  }
  return true;
}

bool ProtobufParser::json(Place place, std::string_view bytes, const ProjectionNode* node) {
  std::string_view raw;
  if (!only_field(place, bytes, raw)) return false;
  if (raw.empty()) {
    writer_.null();
    return true;
  }
  if (node == nullptr && writer_.depth() < kMaxServedDepth) {
    if (raw == "{}") {
      writer_.empty_object();
      return true;
    }
    if (repeated_ != nullptr && recall(raw, RepeatedValues::kJson)) return true;
    // (The innermost `{}` are one more level.)
    const FlatWriter::Mark before = writer_.mark();
    const std::size_t levels = kMaxServedDepth - writer_.depth() - 1;
    const FieldSetParser::Taken taken = field_set_.parse(raw, levels);
    deepest_ = std::max(deepest_, writer_.depth() + taken.levels);
    if (taken.text_size == raw.size()) return true;
    writer_.rewind(before);
  }
  // Its depth is not counted, as its containers are not kept.
  deepest_ = std::max(deepest_, writer_.depth() + RepeatedValues::kMostLevels + 1);
  scratch_.assign(raw);
  return json_.parse_member(scratch_, writer_.depth(), node) || fail(place, json_.error());
}

bool ProtobufParser::strings(Place place, std::string_view bytes, unsigned number) {
  if (!opens(place)) return false;
  writer_.begin_array();
  if (!each_field(place, bytes, [&](std::uint32_t one, const Content& part, const std::uint8_t*) {
        if (one != number) return true;
        if (part.wire_type != kBytes) return fail(place, "wrong wire type");
        text(part.bytes);
        return true;
      }))
    return false;
  writer_.end_array();
  return closed(place);
}

bool ProtobufParser::schema_union(Place place, const WireSlot& slot, std::string_view bytes,
                                  const ProjectionNode* node) {
  const bool or_bool = slot.kind == WireKind::kSchemaOrBool;
  const std::uint32_t schema_number = or_bool ? 2 : 1;
  std::string_view schema;
  bool has_schema = false;
  bool allows = false;
  bool many = false;
  if (!each_field(place, bytes,
                  [&](std::uint32_t number, const Content& part, const std::uint8_t*) {
                    if (number > 2) return true;
                    const bool boolean = or_bool && number == 1;
                    if (part.wire_type != (boolean ? kVarint : kBytes))
                      return fail(place, "wrong wire type");
                    if (boolean) {
                      allows = part.number != 0;
                    } else if (number == schema_number) {
                      if (has_schema) return fail(place, "the message is given twice");
                      schema = part.bytes;
                      has_schema = true;
                    } else {
                      many = true;
                    }
                    return true;
                  }))
    return false;
  if (many && slot.kind == WireKind::kSchemaOrStrings) return strings(place, bytes, 2);
  if (many) {
    if (!opens(place)) return false;
    writer_.begin_array();
    if (!each_field(place, bytes,
                    [&](std::uint32_t number, const Content& part, const std::uint8_t*) {
                      return number != 2 || message(slot.message, part.bytes, node, false);
                    }))
      return false;
    writer_.end_array();
    return closed(place);
  }
  if (has_schema) return message(slot.message, schema, node, false);
  or_bool ? writer_.boolean(allows) : writer_.null();
  return true;
}

void ProtobufParser::text(std::string_view bytes) {
  if (is_ascii(bytes) || find_invalid_utf8(bytes) == std::string_view::npos) {
    writer_.string(bytes);
  } else {
    writer_.string(repaired(bytes));
  }
}

void ProtobufParser::key_text(std::string_view bytes) {
  if (is_ascii(bytes) || find_invalid_utf8(bytes) == std::string_view::npos) {
    writer_.key(bytes);
  } else {
    writer_.key(repaired(bytes));
  }
}

}  // namespace lookout::api::detail
