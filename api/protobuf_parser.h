// The Kubernetes protobuf encoding, driven straight into the flat form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_set_parser.h"
#include "api/json_parser.h"
#include "api/wire_reader.h"
#include "api/wire_table.h"
#include "lookout/api/stream_decoder.h"

namespace lookout::api::detail {

class FlatWriter;
struct ProjectionNode;

/// Parses one object of a built-in kind into a FlatWriter, leaving out what a projection does not
/// keep. Reusable, not thread-safe.
class ProtobufParser {
 public:
  /// Both must outlive the parser; a null projection keeps everything.
  ProtobufParser(FlatWriter& writer, const ProjectionNode* projection);

  /// Writes the object in its envelope (magic bytes and runtime.Unknown), or says in error() why
  /// there is none. The caller finishes or clears the writer.
  bool parse_object(std::string_view bytes);

  /// The same for the object inside a watch event; event_type() gives the text of the event's type.
  bool parse_event(std::string_view bytes);
  const std::string& event_type() const { return event_type_; }

  /// The same for an object without an envelope, as the items of a list are.
  bool parse_item(std::string_view api_version, std::string_view kind, std::string_view bytes);

  const std::string& error() const { return error_; }
  /// What the last object had that the schema does not know, but for what the projection would not
  /// have kept.
  const UnknownFields& unknown() const { return unknown_; }

 private:
  /// Where the fields are that make up a member.
  struct Slot {
    const std::uint8_t* first = nullptr;  // the tag; null if there are none
    const std::uint8_t* last = nullptr;
    const std::uint8_t* end = nullptr;  // of the message that they are in
    WireContent content;                // of the last one
  };
  using Content = WireContent;
  /// What is being read, for messages of errors: names, or what has them in the tables.
  struct Place {
    static constexpr std::uint16_t kNone = 0xFFFF;

    constexpr Place(const char* of, const char* what) : message_name(of), field_name(what) {}
    constexpr explicit Place(std::uint16_t message_id, std::uint16_t symbol_id = kNone)
        : message(message_id), symbol(symbol_id) {}

    bool is_field() const { return symbol != kNone || *field_name != '\0'; }

    std::uint16_t message = kNone;
    std::uint16_t symbol = kNone;
    const char* message_name = "";
    const char* field_name = "";
  };

  bool fail(const Place& place, std::string_view why);
  void clear();
  void note_unknown(std::uint16_t message, std::uint32_t number, const Content& content);
  bool envelope(std::string_view bytes, const ProjectionNode* projection);
  bool root(std::string_view api_version, std::string_view kind, std::string_view bytes,
            const ProjectionNode* projection);
  bool message(std::uint16_t id, std::string_view bytes, const ProjectionNode* node, bool typed);
  /// `loses`: whether fields that the schema does not know would have been kept.
  bool scan(std::uint16_t id, std::uint16_t numbers_of, std::string_view bytes, std::size_t base,
            bool loses);
  bool member(std::uint16_t id, const WireSlot& slot, const Slot& found,
              const ProjectionNode* node);
  bool absent(const Place& place, const WireSlot& slot, const ProjectionNode* node);
  bool list(const Place& place, const WireSlot& slot, const Slot& found,
            const ProjectionNode* node);
  bool map(const Place& place, const WireSlot& slot, const Slot& found, const ProjectionNode* node);
  bool value(const Place& place, const WireSlot& slot, const Content& content,
             const ProjectionNode* node);
  bool time(const Place& place, const WireSlot& slot, std::string_view bytes);
  bool int_or_string(const Place& place, std::string_view bytes);
  bool json(const Place& place, std::string_view bytes, const ProjectionNode* node);
  bool strings(const Place& place, std::string_view bytes, unsigned number);
  bool schema_union(const Place& place, const WireSlot& slot, std::string_view bytes,
                    const ProjectionNode* node);
  void text(std::string_view bytes);
  void key_text(std::string_view bytes);
  bool opens(const Place& place);
  bool closed(const Place& place);

  /// Calls `visit(number, content)` with the fields of a message; false if it does or they are
  /// malformed.
  template <class Visit>
  bool each_field(const Place& place, std::string_view bytes, Visit visit);
  /// Calls `visit(content)` with the fields of a slot.
  template <class Visit>
  bool each_occurrence(const Slot& found, Visit visit);

  FlatWriter& writer_;
  const ProjectionNode* projection_;
  JsonParser json_;
  FieldSetParser field_set_;
  std::vector<Slot> slots_;  // of the messages that are open, the first top_ of these
  std::size_t top_ = 0;
  std::string scratch_;
  std::string event_type_;
  std::string error_;
  UnknownFields unknown_;
};

}  // namespace lookout::api::detail
