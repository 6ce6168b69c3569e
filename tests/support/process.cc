#include "tests/support/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace lookout::test {
namespace {

/// The longest time for a program under test. Shorter than ctest's own limit, so that the test
/// reports the timeout.
constexpr std::chrono::seconds kLongestRun{240};

std::vector<char*> arguments(const std::vector<std::string>& command) {
  std::vector<char*> out;
  for (const auto& word : command) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

pid_t spawn(const std::vector<std::string>& command, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  pid_t pid = -1;
  const auto argv = arguments(command);
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("cannot run " + command[0] + ": " + std::strerror(error));
  return pid;
}

bool is_free(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const std::filesystem::path& log) {
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw std::runtime_error("cannot open " + log.string());
  // If the test crashes, the kernel kills its children.
  std::vector<std::string> bound{"setpriv", "--pdeathsig", "KILL", "--"};
  bound.insert(bound.end(), command.begin(), command.end());
  pid_ = spawn(bound, fd, fd);
  close(fd);
}

Process::~Process() {
  if (running()) signal(SIGKILL);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

bool Process::running() {
  if (pid_ < 0) return false;
  if (waitpid(pid_, &status_, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

void Process::signal(int number) {
  if (!running()) return;
  kill(pid_, number);
  if (number == SIGKILL || number == SIGTERM) wait();
}

int Process::wait() {
  if (pid_ >= 0) {
    const auto deadline = std::chrono::steady_clock::now() + kLongestRun;
    while (waitpid(pid_, &status_, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        std::fprintf(stderr, "process %d does not end, and is killed\n", pid_);
        kill(pid_, SIGKILL);
        while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
        }
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

CommandResult run_command(const std::vector<std::string>& command, bool with_errors) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  const pid_t pid = spawn(command, ends[1], with_errors ? ends[1] : STDERR_FILENO);
  close(ends[1]);
  CommandResult result;
  char buffer[65536];
  const auto deadline = std::chrono::steady_clock::now() + kLongestRun;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd output{ends[0], POLLIN, 0};
    if (left.count() <= 0 || poll(&output, 1, static_cast<int>(left.count())) == 0) {
      kill(pid, SIGKILL);
      result.output += "\n*** " + command[0] + " does not end, and is killed ***\n";
      break;
    }
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.output.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::filesystem::path candidate = std::filesystem::path(rest.substr(0, colon)) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

int free_port() {
  // Below the ports that the kernel assigns to clients, and to servers that listen on port 0.
  constexpr int kFirst = 10000;
  constexpr int kLast = 32000;
  const std::filesystem::path taken = "/tmp/lookout-test-ports";
  std::filesystem::create_directories(taken);
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> ports(kFirst, kLast);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = ports(random);
    const int lock =
        open((taken / std::to_string(port)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0) throw std::runtime_error("cannot write to " + taken.string());
    // The lock ends with the process.
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 && is_free(port)) return port;
    close(lock);
  }
  throw std::runtime_error("no free port");
}

}  // namespace lookout::test
