#include "cmd/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>

namespace lookout::cmd {
namespace {

/// True under nohup, for example.
bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR2);  // from the destructor: no signal came
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([stop = stop_, set]() mutable {
    for (;;) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0 || signal == SIGUSR2) return;
      if (!stop.request_stop()) _exit(128 + signal);
    }
  });
}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

void StopSignals::wait() const {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop_.get_token(), [] { return false; });
}

}  // namespace lookout::cmd
