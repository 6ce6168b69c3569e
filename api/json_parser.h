// JSON, driven straight into the flat form: by FastJson if it can, else by RapidJSON.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace lookout::api::detail {

class FlatWriter;
struct ProjectionNode;

/// Parses one JSON object into a FlatWriter, leaving out what a projection does not keep. Reusable,
/// not thread-safe.
class JsonParser {
 public:
  /// Both must outlive the parser; a null projection keeps everything.
  JsonParser(FlatWriter& writer, const ProjectionNode* projection);
  ~JsonParser();
  JsonParser(const JsonParser&) = delete;
  JsonParser& operator=(const JsonParser&) = delete;

  /// Refuses what is nested deeper; kMaxDepth by default.
  void set_max_depth(std::size_t depth);

  /// From now on, values of objects that come again are compared instead of parsed. For many objects
  /// of a kind: it takes up to 150 KB. (Those of events always are: the events of a thread share what
  /// it takes.)
  void remember_values();

  /// Writes the object in `text`, which is used up, or says in error() why there is none. The
  /// caller finishes or clears the writer.
  bool parse_object(std::string& text);

  /// The same for the object inside a watch event; event_type() gives the text of the event's type.
  bool parse_event(std::string& text);

  /// Any value, below `depth` containers that are open already; `projection` says what is kept of
  /// it.
  bool parse_member(std::string& text, std::size_t depth, const ProjectionNode* projection);
  const std::string& event_type() const;

  const std::string& error() const;
  /// "namespace/name" of the object that has just been refused, if its metadata can be read; else
  /// empty.
  std::string refused_key() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::api::detail
