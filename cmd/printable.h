// Text that is fit for a terminal.
#pragma once

#include <string>

namespace lookout::cmd {

/// Without control characters, which others than us could use to play with the terminal.
std::string printable(std::string text);

}  // namespace lookout::cmd
