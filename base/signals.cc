#include "lookout/base/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "lookout/base/error.h"

namespace lookout {
namespace {

// Global, for the signal handler. Written once, before the handler is installed.
int signal_pipe = -1;

extern "C" void on_signal(int) {
  const int saved = errno;
  const char byte = 1;
  // If the pipe is full, enough signals are queued.
  if (::write(signal_pipe, &byte, 1) < 0) errno = saved;
  errno = saved;
}

/// Lives as long as the process, as signals may arrive until its end.
class Signals {
 public:
  Signals() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error(std::string("signals: no pipe: ") + std::strerror(errno));
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    signal_pipe = ends[1];
    std::thread([from = ends[0], stop = stop_]() mutable {
      for (;;) {
        char byte = 0;
        const auto got = ::read(from, &byte, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got != 1) return;
        if (!stop.request_stop()) ::_exit(1);
      }
    }).detach();
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGINT, &action, nullptr);
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
};

}  // namespace

std::stop_token stop_on_signals() {
  static const Signals& signals = *new Signals;
  return signals.token();
}

}  // namespace lookout
