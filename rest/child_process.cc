#include "rest/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

namespace lookout::rest::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How often to check for the program's end and for timeouts.
constexpr milliseconds kSlice{50};

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) error_ = errno;
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int error() const { return error_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close(1); }

 private:
  void close(std::size_t end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }

  std::array<int, 2> ends_{-1, -1};
  int error_ = 0;
};

/// The initial descriptors, signals and process group of the program.
class SpawnSettings {
 public:
  SpawnSettings(const Pipe& output, bool share_stdin, bool own_group) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    if (!share_stdin) {
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions_, output.write_end(), STDOUT_FILENO);
    // Close descriptors that some library opened without O_CLOEXEC.
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);

    // Blocked and ignored signals should not be inherited.
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGCHLD}) {
      sigaddset(&signals, signal);
    }
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (own_group) flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// Makes poll() return when a stop is requested.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop) { on_stop_.emplace(stop, Write{fd_}); }
  ~StopSignal() {
    on_stop_.reset();  // waits for a running callback
    if (fd_ >= 0) ::close(fd_);
  }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Negative if no descriptor was available; poll() ignores it.
  int fd() const { return fd_; }

 private:
  struct Write {
    int fd;
    void operator()() const {
      if (fd >= 0) ::eventfd_write(fd, 1);
    }
  };

  const int fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::optional<std::stop_callback<Write>> on_stop_;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

bool has_terminal() {
  const int fd = ::open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

/// A running program. The destructor kills it if necessary, and waits for it.
class Child {
 public:
  Child(pid_t pid, bool own_group) : pid_(pid), own_group_(own_group) {}
  ~Child() {
    // Check again: the process ID of a reaped child may have been reused.
    if (!ended()) kill_and_wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Whether the program has ended. Does not wait.
  bool ended() {
    if (!status_) wait(WNOHANG);
    return status_.has_value();
  }

  /// waitpid()'s status. Call only after the program has ended.
  int status() const { return *status_; }

 private:
  void kill_and_wait() {
    ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
    wait(0);
  }

  void wait(int flags) {
    int status = 0;
    pid_t done = 0;
    do {
      done = ::waitpid(pid_, &status, flags);
    } while (done < 0 && errno == EINTR);
    // The child was reaped elsewhere (SIGCHLD is ignored, for example): its output decides.
    if (done < 0) status_ = 0;
    if (done == pid_) status_ = status;
  }

  pid_t pid_;
  bool own_group_;
  std::optional<int> status_;
};

/// Where the shell would find the program. As in Go, relative folders in $PATH ("", ".", "bin") are
/// refused: anyone who can write to the current directory could otherwise choose the program.
struct Program {
  std::string path;
  int error = 0;
};

Program find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* const variable = std::getenv("PATH");
  std::string_view folders = variable == nullptr ? "" : variable;
  int error = ENOENT;
  for (bool more = true; more;) {
    const std::size_t colon = folders.find(':');
    const std::string folder(folders.substr(0, colon));
    more = colon != std::string_view::npos;
    if (more) folders.remove_prefix(colon + 1);
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (::access(path.c_str(), X_OK) != 0) {
      error = EACCES;
    } else {
      return folder.starts_with('/') ? Program{path} : Program{{}, kRelativeToHere};
    }
  }
  return {{}, error};
}

enum class Read { kSome, kNothingYet, kEnd };

Read read_some(int fd, std::string& output) {
  std::array<char, 16384> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Read::kNothingYet : Read::kEnd;
  if (n == 0) return Read::kEnd;
  output.append(buffer.data(), static_cast<std::size_t>(n));
  return Read::kSome;
}

}  // namespace

ChildResult run_child(const ChildRequest& request) {
  using End = ChildResult::End;
  ChildResult result;
  const auto not_started = [&](int code) {
    result.end = End::kNotStarted;
    result.status = code;
    return result;
  };
  if (request.command.empty()) return not_started(ENOENT);
  const Program program = find_program(request.command.front());
  if (program.error != 0) return not_started(program.error);
  Pipe pipe;
  if (pipe.error() != 0) return not_started(pipe.error());
  ::fcntl(pipe.read_end(), F_SETFL, O_NONBLOCK);

  const bool own_group = !request.share_stdin && !has_terminal();
  const std::vector<char*> arguments = pointers(request.command);
  const std::vector<char*> environment = pointers(request.environment);
  pid_t pid = 0;
  {
    const SpawnSettings settings(pipe, request.share_stdin, own_group);
    const int code = ::posix_spawn(&pid, program.path.c_str(), settings.actions(),
                                   settings.attributes(), arguments.data(), environment.data());
    if (code != 0) return not_started(code);
  }
  pipe.close_write_end();
  Child child(pid, own_group);

  const steady_clock::time_point deadline = steady_clock::now() + request.timeout;
  const StopSignal stop_signal(request.stop);
  bool open = true;
  while (open || !child.ended()) {
    if (request.stop.stop_requested()) {
      result.end = End::kStopped;
      return result;
    }
    if (steady_clock::now() >= deadline) {
      result.end = End::kTimedOut;
      return result;
    }
    // Do not wait for children that outlive the program: its own output is in the pipe by then.
    const bool ended = child.ended();
    if (open) {
      std::array<pollfd, 2> wait{{{.fd = pipe.read_end(), .events = POLLIN, .revents = 0},
                                  {.fd = stop_signal.fd(), .events = POLLIN, .revents = 0}}};
      ::poll(wait.data(), wait.size(), ended ? 0 : static_cast<int>(kSlice.count()));
      const Read read = read_some(pipe.read_end(), result.output);
      if (read == Read::kEnd || (read == Read::kNothingYet && ended)) open = false;
      if (result.output.size() > request.max_output) {
        result.end = End::kTooMuchOutput;
        return result;
      }
    } else if (!ended) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  if (WIFSIGNALED(child.status())) {
    result.end = End::kSignalled;
    result.status = WTERMSIG(child.status());
  } else {
    result.status = WEXITSTATUS(child.status());
  }
  return result;
}

}  // namespace lookout::rest::detail
