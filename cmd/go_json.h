// JSON as kubectl prints it.
#pragma once

#include <string>

#include "lookout/api/value.h"

namespace lookout::cmd {

/// JSON as Go writes it: members in the order of their names; <, > and & escaped. The indented form has
/// four blanks for each level.
std::string go_json(api::Value value);
std::string go_pretty_json(api::Value value);

}  // namespace lookout::cmd
