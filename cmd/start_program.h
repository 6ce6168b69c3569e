// Starting a program beside this one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lookout::cmd {

/// Starts a program that is killed when this process ends. Its output goes to the file `log`, which
/// is overwritten. Without `environment` ("NAME=value") it has this process's, and is looked for on
/// the PATH. The caller waits for its end (waitpid). Throws lookout::Error if it cannot be started;
/// a program that is not there ends with 127.
pid_t start_program(std::vector<std::string> command, const std::string& log,
                    std::optional<std::vector<std::string>> environment = {});

}  // namespace lookout::cmd
