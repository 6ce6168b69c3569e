// Checks of object names on the command line, for CLI::Option::check().
#pragma once

#include <string>

namespace lookout::cmd {

/// Each function returns the error; empty if the value is valid.

/// An empty namespace is valid: the default is used.
std::string check_namespace(const std::string& ns);
/// An empty name is most likely an unset shell variable.
std::string check_not_empty(const std::string& name);
/// Checks that an object can have this name.
std::string check_object_name(const std::string& name);

}  // namespace lookout::cmd
