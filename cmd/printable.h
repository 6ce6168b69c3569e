// Text that is fit for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lookout::cmd {

/// Without control characters, which others than us could use to play with the terminal.
std::string printable(std::string text);

/// The first character of a text in UTF-8, which must not be empty.
struct Character {
  std::size_t bytes = 1;
  /// What it takes on a terminal: two if it is wide (East Asian, emoji), none if it combines with
  /// the one before.
  std::size_t columns = 1;
};
Character first_character(std::string_view text);

/// The columns that a text takes on a terminal.
std::size_t width_of(std::string_view text);

}  // namespace lookout::cmd
