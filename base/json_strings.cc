#include "lookout/base/json_strings.h"

namespace lookout {

std::size_t find_control_character(std::string_view json) {
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c == '\\') {
      ++i;
      if (i < json.size() && static_cast<unsigned char>(json[i]) < 0x20) return i;
    } else if (in_string && static_cast<unsigned char>(c) < 0x20) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace lookout
