// Checks of what a command line says about objects, for CLI::Option::check().
#pragma once

#include <string>

namespace lookout::cmd {

/// Each returns what is wrong; empty if nothing is.

/// May be empty: then another namespace is used.
std::string check_namespace(const std::string& ns);
/// An empty one is most likely a variable of a shell that is not set.
std::string check_not_empty(const std::string& name);
/// Whether an object can have this name.
std::string check_object_name(const std::string& name);

}  // namespace lookout::cmd
