#include "testing/sim/forked_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace lookout::sim {
namespace {

/// The last character of the child's result; without it, the result is truncated.
constexpr char kReturned = 'r';
constexpr char kThrew = 't';

/// The child runs for some milliseconds, one thread at a time. With malloc's defaults, page faults take
/// half of its time. Therefore it uses one heap of huge pages that returns no memory.
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

/// Close-on-exec, because the parent would otherwise wait for processes that the child starts.
void make_pipe(std::array<int, 2>& ends) {
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
}

/// Ends the child when its parent is killed; otherwise it might run forever.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

[[noreturn]] void run_child(const std::function<std::string()>& function, int out) {
  prepare_memory();
  std::string result;
  try {
    result = function();
    result += kReturned;
  } catch (const std::exception& e) {
    result = e.what();
    result += kThrew;
  }
  for (std::size_t written = 0; written < result.size();) {
    const ssize_t n = ::write(out, result.data() + written, result.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    written += static_cast<std::size_t>(n);
  }
  std::fflush(nullptr);
  _exit(0);
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
  make_pipe(ends);
  // Otherwise both processes would write the buffered output.
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    close(ends[0]);
    end_with(parent);
    run_child(function, ends[1]);
  }
  close(ends[1]);
  result_ = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const char last = result_.empty() ? '\0' : result_.back();
  if (WIFSIGNALED(status)) {
    why_ = fmt::format("the world was ended by signal {} ({}); its last output is above",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0 || (last != kReturned && last != kThrew)) {
    why_ = fmt::format("the world has ended its process with status {}; its last output is above",
                       WEXITSTATUS(status));
  } else {
    result_.pop_back();
    if (last == kThrew) why_ = "the world could not be created: " + result_;
  }
}

SharedText::SharedText()
    : memory_([] {
        void* const memory = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
        return new (memory) Memory;
      }()) {}

SharedText::~SharedText() { munmap(memory_, sizeof(Memory)); }

void SharedText::add(std::string_view text) {
  const std::size_t size = memory_->size.load(std::memory_order_relaxed);
  if (text.size() > sizeof memory_->bytes - size) return;
  std::memcpy(memory_->bytes + size, text.data(), text.size());
  memory_->size.store(size + text.size(), std::memory_order_release);
}

std::string_view SharedText::text() const {
  return {memory_->bytes, memory_->size.load(std::memory_order_acquire)};
}

}  // namespace lookout::sim
