// The commands of `lookout` that are not separate programs (cmd/programs.h).
#pragma once

#include <string>

#include "cmd/cli.h"
#include "cmd/connection.h"
#include "cmd/program.h"

namespace lookout::cmd {

/// Each function adds its command to `app`. If the command is chosen, `action` is set; the common flags
/// have been parsed by then.
void add_serve(CLI::App& app, Action& action);
void add_get(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_watch(CLI::App& app, const ConnectionFlags& connection, const std::string& metrics_listen,
               Action& action);
void add_apply(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_delete(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_api_resources(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_logs(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_wait(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_new(CLI::App& app, Action& action);
void add_sim(CLI::App& app, Action& action);

}  // namespace lookout::cmd
