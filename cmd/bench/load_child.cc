#include "cmd/bench/load_child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "cmd/say.h"
#include "lookout/api/error.h"

namespace lookout::cmd::bench {

LoadChild::LoadChild(lookout::bench::LoadServerOptions options) {
  const bool tls = !options.cert_file.empty();
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw Error("cannot create a pipe");
  child_ = fork();
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipe_ends[0]);
    try {
      lookout::bench::LoadServer server(std::move(options));
      const std::uint16_t port = server.port();
      if (write(pipe_ends[1], &port, sizeof port) == sizeof port) {
        close(pipe_ends[1]);
        server.run();
      }
    } catch (const std::exception& e) {
      say("lookout: {}\n", e.what());
    }
    _exit(1);
  }
  close(pipe_ends[1]);
  std::uint16_t port = 0;
  const bool started = child_ > 0 && read(pipe_ends[0], &port, sizeof port) == sizeof port;
  close(pipe_ends[0]);
  if (!started) {
    if (child_ > 0) waitpid(child_, nullptr, 0);
    throw Error("the load server did not start");
  }
  url_ = fmt::format("{}://127.0.0.1:{}", tls ? "https" : "http", port);
}

LoadChild::~LoadChild() {
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

}  // namespace lookout::cmd::bench
