#include "cmd/say.h"

#include <cstdio>
#include <string>

#include "cmd/printable.h"

namespace lookout::cmd {

void say_text(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t end = text.find('\n');
    out += printable(std::string(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  std::fwrite(out.data(), 1, out.size(), stderr);
}

}  // namespace lookout::cmd
