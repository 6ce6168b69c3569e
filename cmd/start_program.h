// Starts child processes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lookout::cmd {

/// Starts a program that is killed when this process ends. Its output goes to the file `log`, which
/// is overwritten. Without `environment` ("NAME=value"), it inherits this process's environment and
/// is searched for in the PATH. The caller must wait for its end (waitpid). Throws lookout::Error if
/// it cannot be started; if the program does not exist, the process ends with status 127.
pid_t start_program(std::vector<std::string> command, const std::string& log,
                    std::optional<std::vector<std::string>> environment = {});

}  // namespace lookout::cmd
