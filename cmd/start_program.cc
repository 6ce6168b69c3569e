#include "cmd/start_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

pid_t start_program(std::vector<std::string> command, const std::string& log,
                    std::optional<std::vector<std::string>> environment) {
  const auto arguments = pointers(command);
  const auto variables = environment ? pointers(*environment) : std::vector<char*>();
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) throw Error(fmt::format("{} cannot be written", log));
  const pid_t child = fork();
  if (child == 0) {
    // Until exec, only calls without locks: another thread may have held one at the fork.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    if (variables.empty()) {
      execvp(arguments[0], arguments.data());
    } else {
      execve(arguments[0], arguments.data(), variables.data());
    }
    constexpr int kNotFound = 127;
    _exit(kNotFound);
  }
  close(out);
  if (child < 0) throw Error(fmt::format("{} cannot be started", command[0]));
  return child;
}

}  // namespace lookout::cmd
