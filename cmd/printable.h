// Text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lookout::cmd {

/// Replaces control characters, which untrusted text could use to manipulate the terminal.
std::string printable(std::string text);

/// The first character of a text in UTF-8, which must not be empty.
struct Character {
  std::size_t bytes = 1;
  /// Its width on a terminal: 2 if it is wide (East Asian, emoji), 0 if it combines with
  /// the previous one.
  std::size_t columns = 1;
};
Character first_character(std::string_view text);

/// The width of a text on a terminal, in columns.
std::size_t width_of(std::string_view text);

}  // namespace lookout::cmd
