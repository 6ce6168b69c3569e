// clip(): truncates untrusted text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lookout::cmd::registry_cmd {

/// At most `most` bytes of the text, with an ellipsis if it was truncated. Does not split UTF-8
/// characters.
inline std::string clip(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
  return std::string(text.substr(0, most)) + "…";
}

}  // namespace lookout::cmd::registry_cmd
