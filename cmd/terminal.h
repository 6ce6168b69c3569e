// The terminal on standard output.
#pragma once

#include <cstddef>
#include <string>

#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// Whether standard output is a terminal that supports escape sequences.
bool stdout_is_terminal();
std::size_t terminal_rows();
std::size_t terminal_columns();

/// Shows a text that can be replaced, on the terminal's alternate screen. The destructor restores
/// the normal screen.
class LiveScreen : public base::Pinned {
 public:
  LiveScreen();
  ~LiveScreen();

  /// Omits lines that do not fit; the last line then shows how many.
  void show(const std::string& text) const;
};

/// Cuts lines at `columns`, and keeps at most `rows` lines. Colours have no width.
std::string fitted(const std::string& text, std::size_t rows, std::size_t columns);

}  // namespace lookout::cmd
