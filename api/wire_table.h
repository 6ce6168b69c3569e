// Access to the generated table of the built-in kinds' protobuf messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lookout::api::detail {

/// The type of a field's value, which determines its JSON form.
enum class WireKind : std::uint8_t {
  kString,
  kBytes,  // base64
  kInt,
  kBool,
  kDouble,
  kMessage,
  kTime,
  kMicroTime,
  kQuantity,
  kIntOrString,
  kJson,           // a message whose only field is JSON text
  kStrings,        // a message whose only field is a list of strings
  kSchemaOrArray,  // the unions of CustomResourceDefinitions
  kSchemaOrBool,
  kSchemaOrStrings,
};

namespace wire_flag {
inline constexpr unsigned kPointer = 1;  // Go distinguishes absent from zero
inline constexpr unsigned kAlways = 2;   // in JSON even if absent or zero
inline constexpr unsigned kList = 4;
inline constexpr unsigned kMap = 8;
inline constexpr unsigned kTyped = 16;  // its objects have apiVersion and kind
inline constexpr unsigned kItems = 32;  // of a list object: [] if empty
}  // namespace wire_flag

/// A message's member in JSON.
struct WireSlot {
  std::uint16_t symbol;
  std::uint16_t message;  // for messages, schemas, and lists and maps of these
  WireKind kind;
  std::uint8_t flags;

  bool has(unsigned flag) const { return (flags & flag) != 0; }
};

/// The meaning of a field number.
struct WireNumber {
  static constexpr std::uint16_t kInlined = 0x8000;

  std::uint8_t number;
  std::uint8_t wire_type;
  std::uint16_t target;  // a slot; or, with kInlined, a message whose numbers fill the same slots
};

struct WireMessage {
  std::uint16_t first_number;
  std::uint16_t first_slot;
  std::uint64_t always;  // a bit for each slot that has wire_flag::kAlways
};

// The tables. A message's entries end where those of the next message begin.
// NOLINTBEGIN(readability-identifier-naming): constants, which only their definitions show.
extern const WireMessage kWireMessages[];
extern const WireNumber kWireNumbers[];
extern const WireSlot kWireSlots[];
// NOLINTEND(readability-identifier-naming)

/// The slots of a message in the order of the members in an object, and its field numbers in
/// ascending order.
inline std::span<const WireSlot> wire_slots(std::uint16_t message) {
  const std::size_t begin = kWireMessages[message].first_slot;
  return {kWireSlots + begin, kWireMessages[message + 1].first_slot - begin};
}
inline std::span<const WireNumber> wire_numbers(std::uint16_t message) {
  const std::size_t begin = kWireMessages[message].first_number;
  return {kWireNumbers + begin, kWireMessages[message + 1].first_number - begin};
}
/// "PodSpec".
std::string_view wire_name(std::uint16_t message);
/// The message of a built-in kind.
std::optional<std::uint16_t> wire_message_of_kind(std::string_view group, std::string_view version,
                                                  std::string_view kind);
/// The same for "apps/v1" or "v1".
std::optional<std::uint16_t> wire_message_of_type(std::string_view api_version,
                                                  std::string_view kind);

/// The reverse.
struct WireTypeMeta {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};
std::optional<WireTypeMeta> wire_type_of_message(std::uint16_t message);

}  // namespace lookout::api::detail
