// The terminal that standard output is, if it is one.
#pragma once

#include <cstddef>
#include <string>

#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// Whether it is a terminal on which a text can be replaced.
bool stdout_is_terminal();
std::size_t terminal_rows();
std::size_t terminal_columns();

/// A text that is shown again and again in place of what was there, on a screen of its own that is
/// gone when this is.
class LiveScreen : public base::Pinned {
 public:
  LiveScreen();
  ~LiveScreen();

  /// Omits lines that do not fit; the last line then shows how many.
  void show(const std::string& text) const;
};

/// As it fits: the lines cut at `columns`, and no more than `rows` of them. Colours take no room.
std::string fitted(const std::string& text, std::size_t rows, std::size_t columns);

}  // namespace lookout::cmd
