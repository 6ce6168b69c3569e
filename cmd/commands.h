// The commands of the program.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cmd/connection.h"

namespace lookout::cmd {

/// The chosen command: runs it and returns the exit status.
using Action = std::function<int()>;

/// Each adds its command to `app`; when it is chosen, `action` is set. The flags in `connection`
/// are filled in by then.
void add_serve(CLI::App& app, Action& action);
void add_get(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_watch(CLI::App& app, const ConnectionFlags& connection, const std::string& metrics_listen,
               Action& action);
void add_registry(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_bench(CLI::App& app, const ConnectionFlags& connection, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_new(CLI::App& app, Action& action);
void add_sim(CLI::App& app, Action& action);

}  // namespace lookout::cmd
