#include "lookout/base/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
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
constinit std::atomic_flag received;

extern "C" void on_signal(int) {
  // Here, because the program's stop callbacks may block the thread that requests the stop.
  if (received.test_and_set()) ::_exit(1);
  const int saved = errno;
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(signal_pipe, &byte, 1);
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
      char byte = 0;
      ssize_t got = 0;
      do {
        got = ::read(from, &byte, 1);
      } while (got < 0 && errno == EINTR);
      if (got == 1) stop.request_stop();
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
