// ProtobufParser: converts the Kubernetes protobuf encoding to the flat form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_set_parser.h"
#include "api/json_parser.h"
#include "api/repeated_values.h"
#include "api/time_text.h"
#include "api/wire_table.h"
#include "lookout/api/detail/wire_reader.h"
#include "lookout/api/stream_decoder.h"

namespace lookout::api::detail {

class FlatWriter;
struct ProjectionNode;

/// Parses an object of a built-in kind into a FlatWriter, without fields that the projection drops.
/// Reusable, not thread-safe.
class ProtobufParser {
 public:
  /// Both must outlive the parser; a null projection keeps everything.
  ProtobufParser(FlatWriter& writer, const ProjectionNode* projection);

  /// Writes the object in its envelope (magic bytes and runtime.Unknown). On failure, sets error().
  /// The caller finishes or clears the writer.
  bool parse_object(std::string_view bytes);

  /// The same for the object in a watch event; event_type() returns the event's type.
  bool parse_event(std::string_view bytes);
  const std::string& event_type() const { return event_type_; }

  /// The same for an object without an envelope, such as a list item.
  bool parse_item(std::string_view api_version, std::string_view kind, std::string_view bytes);

  /// See JsonParser.
  void remember_values();

  const std::string& error() const { return error_; }
  /// The last object's unknown fields, without those that the projection drops.
  const UnknownFields& unknown() const { return unknown_; }

 private:
  /// The position of a member's fields.
  struct Slot {
    const std::uint8_t* first;  // the first field's tag
    const std::uint8_t* last;
    const std::uint8_t* end;  // of the containing message
    WireContent content;      // of the last field
  };
  using Content = WireContent;
  /// The position in the input, for error messages: a name from the tables, ...
  struct Place {
    static constexpr std::uint16_t kNone = 0xFFFF;

    std::uint16_t message;
    std::uint16_t symbol = kNone;

    bool is_field() const { return symbol != kNone; }
  };
  /// ... or the names.
  struct NamedPlace {
    const char* message;
    const char* field = "";

    bool is_field() const { return *field != '\0'; }
  };

  bool fail(Place place, std::string_view why);
  bool fail(NamedPlace place, std::string_view why);
  template <class AnyPlace>
  bool fail(AnyPlace place, WireFault fault, std::uint64_t number, unsigned wire_type);
  /// Call before an object of this size.
  void start(std::size_t bytes, RepeatedValues* repeated);
  /// Writes a message or field set that has occurred before.
  bool recall(std::string_view bytes, RepeatedValues::Language language);
  void note_unknown(std::uint16_t message, std::uint32_t number, const Content& content);
  bool envelope(std::string_view bytes, const ProjectionNode* projection);
  bool root(std::string_view api_version, std::string_view kind, std::string_view bytes,
            const ProjectionNode* projection);
  bool message(std::uint16_t id, std::string_view bytes, const ProjectionNode* node, bool typed);
  bool parse_message(std::uint16_t id, std::string_view bytes, const ProjectionNode* node,
                     bool typed);
  /// `loses`: whether unknown fields would have been kept.
  /// Sets a bit in `found` for each slot with content.
  bool scan(std::uint16_t id, std::uint16_t numbers_of, std::string_view bytes, std::size_t base,
            bool loses, std::uint64_t& found);
  /// `found` is null for an absent member.
  bool member(std::uint16_t id, const WireSlot& slot, const Slot* found,
              const ProjectionNode* node);
  bool absent(Place place, const WireSlot& slot, const ProjectionNode* node);
  // Both take a copy, as nested calls may reallocate slots_.
  bool list(Place place, const WireSlot& slot, Slot found, const ProjectionNode* node);
  bool map(Place place, const WireSlot& slot, Slot found, const ProjectionNode* node);
  bool value(Place place, const WireSlot& slot, const Content& content, const ProjectionNode* node);
  /// Reads field 1, the only known one, into `out`, which stays as it is without that field.
  bool only_field(Place place, std::string_view bytes, std::string_view& out);
  bool time(Place place, const WireSlot& slot, std::string_view bytes);
  bool int_or_string(Place place, std::string_view bytes);
  bool json(Place place, std::string_view bytes, const ProjectionNode* node);
  bool strings(Place place, std::string_view bytes, unsigned number);
  bool schema_union(Place place, const WireSlot& slot, std::string_view bytes,
                    const ProjectionNode* node);
  void text(std::string_view bytes);
  void key_text(std::string_view bytes);
  bool opens(Place place);
  bool closed(Place place);

  /// Calls `visit(number, content)` for the fields of a message. False if a call returns false or a
  /// field is malformed.
  template <class AnyPlace, class Visit>
  bool each_field(AnyPlace place, std::string_view bytes, Visit visit);
  /// Calls `visit(content)` for the fields of a slot.
  template <class Visit>
  bool each_occurrence(const Slot& found, Visit visit);

  FlatWriter& writer_;
  const ProjectionNode* projection_;
  JsonParser json_;
  FieldSetParser field_set_;
  std::unique_ptr<RepeatedValues> own_repeated_;
  RepeatedValues* repeated_ = nullptr;  // null: not used for this object
  std::size_t deepest_ = 0;             // the maximum depth since it was last reset
  std::vector<Slot> slots_;             // of the open messages: the first top_ elements
  std::size_t top_ = 0;
  // The type of the last object; the objects of a stream usually have the same type.
  std::string api_version_;
  std::string kind_;
  std::uint16_t message_of_type_ = 0;
  TimeText time_text_;
  std::string scratch_;
  std::string event_type_;
  std::string error_;
  UnknownFields unknown_;
};

}  // namespace lookout::api::detail
