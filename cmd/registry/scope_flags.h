// The flags that select services.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// --style, one of `styles`.
void add_style(CLI::App& command, Flags& flags, std::vector<std::string> styles);

/// --style, --namespace, --all-namespaces and --selector.
void add_scope(CLI::App& command, Flags& flags);

/// Throws CLI::ValidationError if the flags of add_scope() contradict each other.
void check_scope(const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
