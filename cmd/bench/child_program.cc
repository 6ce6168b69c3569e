#include "cmd/bench/child_program.h"

#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string_view>

#include "cmd/bench/processor_time.h"
#include "cmd/bench/usage.h"
#include "cmd/start_program.h"

namespace lookout::cmd::bench {

ChildProgram::ChildProgram(const std::vector<std::string>& command, const std::string& log)
    : log_(log), child_(start_program(command, log)) {}

ChildProgram::~ChildProgram() {
  if (!running()) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

bool ChildProgram::running() {
  if (child_ > 0 && waitpid(child_, nullptr, WNOHANG) != 0) child_ = -1;
  return child_ > 0;
}

std::string ChildProgram::output() const {
  std::ifstream in(log_);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::int64_t ChildProgram::status(const char* name) const { return process_status(name, child_); }

std::chrono::duration<double> ChildProgram::cpu() const { return processor_time_of(child_); }

std::string served_url(const std::string& output) {
  constexpr std::string_view kBefore = "Serving the Kubernetes API at ";
  const std::size_t found = output.find(kBefore);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + kBefore.size();
  const std::size_t end = output.find_first_of(" \n", begin);
  return end == std::string::npos ? std::string() : output.substr(begin, end - begin);
}

std::uint16_t free_port() {
  boost::asio::io_context context;
  const boost::asio::ip::tcp::acceptor acceptor(context,
                                                {boost::asio::ip::make_address("127.0.0.1"), 0});
  return acceptor.local_endpoint().port();
}

}  // namespace lookout::cmd::bench
