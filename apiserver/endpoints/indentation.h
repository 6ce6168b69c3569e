// Indented JSON, one member per line, as Go's json.MarshalIndent writes it.
#pragma once

#include <string>
#include <string_view>

#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Whether the request asks for indented JSON, or comes from curl, wget or a browser.
bool wants_indentation(const http::Request& request);

/// Indents a JSON value that arrives in parts.
class JsonIndenter {
 public:
  /// Appends to `out`.
  void add(std::string_view json, std::string& out);

 private:
  void begin_line(std::string& out) const;

  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  /// True after an opening bracket.
  bool opened_ = false;
};

/// Indents a JSON body. Leaves other bodies and the events of a watch unchanged.
void indent(http::Response& response);

}  // namespace lookout::apiserver::endpoints
