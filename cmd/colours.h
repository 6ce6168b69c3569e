// What the user's environment says about terminals.
#pragma once

namespace lookout::cmd {

/// False with $NO_COLOR (no-color.org).
bool use_colours();

/// Whether a terminal can move its cursor: $TERM is set, and not "dumb".
bool has_cursor();

}  // namespace lookout::cmd
