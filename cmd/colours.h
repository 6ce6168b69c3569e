// The terminal settings in the user's environment.
#pragma once

namespace lookout::cmd {

/// False with $NO_COLOR (no-color.org).
bool use_colours();

/// True if the terminal can move its cursor: $TERM is set and not "dumb".
bool has_cursor();

}  // namespace lookout::cmd
