// Objects as YAML.
#pragma once

#include <string>

#include "lookout/api/value.h"

namespace lookout::cmd {

/// Block style, as kubectl prints it; reading it gives the same values again.
std::string to_yaml(api::Value value);

}  // namespace lookout::cmd
