#include "tests/cmd/program.h"

#include <csignal>
#include <stdexcept>
#include <string_view>

#include "tests/support/eventually.h"

namespace lookout::test {

ProgramEnvironment::Arguments ProgramEnvironment::environment() const {
  Arguments out{"env"};
  for (const char* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
                           "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}) {
    out.insert(out.end(), {"-u", name});
  }
  out.push_back("HOME=" + home_.path().string());
  for (const auto& [name, value] : variables_) out.push_back(name + "=" + value);
  return out;
}

ProgramResult ProgramEnvironment::run(const std::string& program,
                                      const Arguments& arguments) const {
  const TempDir dir;
  const std::string errors = (dir / "errors").string();
  Arguments command = environment();
  // The shell is used only for the redirection.
  command.insert(command.end(),
                 {"sh", "-c", R"(errors=$1; shift; exec "$@" 2>"$errors")", "sh", errors, program});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const CommandResult result = run_command(command);
  return {result.status, result.output, read_file(errors)};
}

ProgramResult ProgramEnvironment::lookout(Arguments first, const Arguments& arguments) const {
  first.insert(first.end(), arguments.begin(), arguments.end());
  return run(lookout_program(), first);
}

Process ProgramEnvironment::start(const std::string& program, const Arguments& arguments,
                                  const std::filesystem::path& log) const {
  Arguments command = environment();
  command.push_back(program);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return {command, log};
}

std::string lookout_program() { return LOOKOUT_PROGRAM; }

ServeProcess::ServeProcess(const ProgramEnvironment& environment,
                           ProgramEnvironment::Arguments arguments, const std::string& listen)
    : log_(dir_ / "log") {
  arguments.insert(arguments.begin(), {"serve", "--listen", listen});
  process_.emplace(environment.start(lookout_program(), arguments, log_));
  const auto says_where = [&] {
    const std::string text = output();
    // Errors have the address of etcd.
    constexpr std::string_view kServing = " the Kubernetes API at ";
    const std::size_t at = text.find(kServing);
    if (at == std::string::npos) return false;
    const std::size_t begin = at + kServing.size();
    const std::size_t end = text.find_first_of(" \n", begin);
    if (end == std::string::npos) return false;
    url_ = text.substr(begin, end - begin);
    return true;
  };
  const bool serves = eventually([&] { return says_where() || !process_->running(); });
  if (!serves || url_.empty()) throw std::runtime_error("lookout serve: " + output());
}

void ServeProcess::kill() { process_->signal(SIGKILL); }

int ServeProcess::terminate() {
  process_->signal(SIGTERM);
  return process_->wait();
}

}  // namespace lookout::test
