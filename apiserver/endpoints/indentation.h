// JSON for people: one member a line, as Go's json.MarshalIndent writes it.
#pragma once

#include <string>
#include <string_view>

#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Whether the client is known to be a person's, or asks for such JSON.
bool wants_indentation(const http::Request& request);

/// Indents one JSON value that comes in parts.
class JsonIndenter {
 public:
  /// Appends to `out`.
  void add(std::string_view json, std::string& out);

 private:
  void begin_line(std::string& out) const;

  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  /// After a bracket: nothing is in it yet.
  bool opened_ = false;
};

/// Indents a body of JSON. Leaves other bodies and the events of a watch as they are.
void indent(http::Response& response);

}  // namespace lookout::apiserver::endpoints
