// JsonParser: converts JSON to the flat form, with FastJson or, if that rejects it, RapidJSON.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lookout/base/pinned.h"

namespace lookout::api::detail {

class FlatWriter;
struct ProjectionNode;

/// Parses a JSON object into a FlatWriter, without fields that the projection drops. Reusable, not
/// thread-safe.
class JsonParser : public base::Pinned {
 public:
  /// Both must outlive the parser; a null projection keeps everything.
  JsonParser(FlatWriter& writer, const ProjectionNode* projection);
  ~JsonParser();

  /// Rejects deeper nesting; kMaxDepth by default.
  void set_max_depth(std::size_t depth);

  /// Enables RepeatedValues, for many objects of one kind. Takes up to 150 KB. (Always enabled for
  /// events; the events of a thread share the memory.)
  void remember_values();

  /// Writes the object in `text`, which is consumed. On failure, sets error(). The caller finishes or
  /// clears the writer.
  bool parse_object(std::string& text);

  /// The same for the object in a watch event; event_type() returns the event's type.
  bool parse_event(std::string& text);

  /// Parses any value, inside `depth` open containers, with `projection`.
  bool parse_member(std::string& text, std::size_t depth, const ProjectionNode* projection);
  const std::string& event_type() const;

  const std::string& error() const;
  /// "namespace/name" of the object that was just rejected, if its metadata can be read, else empty.
  std::string refused_key() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::api::detail
