#include "cmd/printable.h"

namespace lookout::cmd {

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (c < 0x20 || c == 0x7f) text[i] = '?';
    // U+0080 to U+009F.
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) text.replace(i, 2, "?");
  }
  return text;
}

}  // namespace lookout::cmd
