#include "testing/sim/forked_call.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace lookout::sim {
namespace {

constexpr int kThrew = 3;

/// The child lives for some milliseconds, and one of its threads runs at a time. With the defaults,
/// page faults take half of its time: it gets one heap of huge pages, which returns no memory.
void prepare_memory() {
  constexpr std::size_t kHeap = 32u << 20;
  constexpr int kMuch = 256 << 20;
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, kMuch);
  mallopt(M_MMAP_THRESHOLD, kMuch);
  void* const heap = std::malloc(kHeap);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(heap) + page - 1) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  madvise(reinterpret_cast<void*>(begin), kHeap - page, MADV_HUGEPAGE);
  std::free(heap);
}

[[noreturn]] void run_child(const std::function<std::string()>& function, int out) {
  prepare_memory();
  int status = 0;
  std::string result;
  try {
    result = function();
  } catch (const std::exception& e) {
    result = e.what();
    status = kThrew;
  }
  for (std::size_t written = 0; written < result.size();) {
    const ssize_t n = ::write(out, result.data() + written, result.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(kThrew);
    written += static_cast<std::size_t>(n);
  }
  std::fflush(nullptr);
  _exit(status);
}

std::string read_all(int fd) {
  std::string out;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

ForkedCall::ForkedCall(const std::function<std::string()>& function) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  // Otherwise both processes would write what is buffered.
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    close(ends[0]);
    run_child(function, ends[1]);
  }
  close(ends[1]);
  result_ = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    why_ = fmt::format("the world was ended by signal {} ({}); its last words are above",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == kThrew) {
    why_ = "the world could not be made: " + result_;
  } else if (WEXITSTATUS(status) != 0) {
    why_ = fmt::format("the world ended with exit status {}; its last words are above",
                       WEXITSTATUS(status));
  }
}

}  // namespace lookout::sim
