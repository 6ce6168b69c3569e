#include "testing/sim/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "testing/sim/libc.h"

namespace lookout::sim {
namespace {

/// Threads yield at one in this many preemption points.
constexpr std::uint64_t kPreemptOneIn = 64;
/// A thread that reads the clock this often without a wait polls the clock.
constexpr std::uint64_t kManyClockReads = 10'000;
constexpr Nanos kClockStep = 1000;
/// A thread that yields this often without a wait polls for time to pass; then the steps grow.
constexpr std::uint64_t kManyYields = 32;
constexpr Nanos kLongestStep = 1'000'000'000;
/// The same for threads that yield to each other.
constexpr std::uint64_t kManyYieldsOfSeveral = 10'000;
/// A thread that has not yielded for this long (in real time) is stuck in a function that the kernel
/// does not control.
constexpr int kStuckSeconds = 120;
/// Threads that run in turn for this long (in real time) and never all wait are in a livelock.
constexpr int kTimelessSeconds = 600;

constinit thread_local Thread* current_thread = nullptr;
constinit thread_local int exit_rounds = 0;
constinit Kernel* the_kernel = nullptr;

/// Compared by the watchdog between two checks.
constinit std::atomic<std::uint64_t> steps{0};
constinit std::atomic<Nanos> time_of_world{0};
constinit std::atomic<bool> in_world{false};

pthread_key_t exit_key;
bool has_exit_key = false;
bool has_made_one = false;
/// The process with the watchdog thread, which a fork does not copy.
pid_t watched = 0;
/// The thread that has passed on the baton for the last time and may not have ended yet; 0: none.
pid_t ending = 0;
/// A robust mutex that the thread holds until it has ended.
pthread_mutex_t end_mutex;

void prepare_end_mutex() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&end_mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

/// Called on an ending thread, before it passes on the baton.
void announce_end() {
  libc().pthread_mutex_lock(&end_mutex);
  ending = static_cast<pid_t>(libc().syscall(SYS_gettid));
}

/// Waits until the C library has cleaned up after a thread: if it returned the thread's memory to the
/// shared heap concurrently with the next thread, the heap would differ between runs.
void await_real_end() {
  const pid_t thread = std::exchange(ending, 0);
  if (thread == 0) return;
  if (libc().pthread_mutex_lock(&end_mutex) == EOWNERDEAD) pthread_mutex_consistent(&end_mutex);
  libc().pthread_mutex_unlock(&end_mutex);
  // The thread has ended, but its stack may not be free yet. (sched_yield() would let all other
  // programs of the machine run first.)
  const timespec moment{0, 1000};
  while (libc().syscall(SYS_tgkill, getpid(), thread, 0) == 0) libc().nanosleep(&moment, nullptr);
}

/// On the watchdog's thread, outside of the world. Must not allocate: the heap's lock may be held.
[[noreturn]] void give_up(int seconds, const char* why) {
  const Thread* const running = the_kernel == nullptr ? nullptr : the_kernel->running();
  std::fprintf(stderr, "sim: %s (thread %d) is running: for %d s %s\n",
               running == nullptr ? "?" : running->group->name.c_str(),
               running == nullptr ? 0 : running->id, seconds, why);
  std::abort();
}

void* watch_over(void*) {
  std::uint64_t last = 0;
  int still = 0;
  Nanos last_time = 0;
  int timeless = 0;
  for (;;) {
    const timespec second{1, 0};
    libc().nanosleep(&second, nullptr);
    const std::uint64_t now = steps.load(std::memory_order_relaxed);
    still = in_world.load(std::memory_order_relaxed) && now == last ? still + 1 : 0;
    last = now;
    const Nanos time = time_of_world.load(std::memory_order_relaxed);
    timeless = in_world.load(std::memory_order_relaxed) && time == last_time ? timeless + 1 : 0;
    last_time = time;
    if (still >= kStuckSeconds)
      give_up(kStuckSeconds,
              "it has not waited: it computes, or it is in a call that the simulator does not "
              "control (a socket, a pipe, a child process, a lock that it does not know)");
    if (timeless >= kTimelessSeconds)
      give_up(kTimelessSeconds,
              "no time has passed in the world: its threads run in turn and never all wait");
  }
}

void futex_wait(std::atomic<int>& word, int while_it_is) {
  libc().syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, while_it_is, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<int>& word) {
  libc().syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// Switching between threads on different processors takes several times as long.
void stay_on_this_processor(cpu_set_t& before) {
  CPU_ZERO(&before);
  sched_getaffinity(0, sizeof before, &before);
  const int here = sched_getcpu();
  if (here < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(here), &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// exit() in a world is a failure, even exit(0).
void on_exit_in_world(int status, void*) {
  if (Kernel::instance() == nullptr) return;
  std::fprintf(stderr, "sim: seed %llu: the world has called exit(%d)\n",
               static_cast<unsigned long long>(Kernel::instance()->seed()), status);
  std::fflush(nullptr);
  _exit(status == 0 ? 1 : status);
}

}  // namespace

Thread* Kernel::current() { return current_thread; }
Kernel* Kernel::instance() { return the_kernel; }
bool Kernel::has_been() { return has_made_one; }

void Kernel::prepare() {
  if (std::exchange(has_exit_key, true)) return;
  pthread_key_create(&exit_key, &Kernel::at_exit);
  prepare_end_mutex();
  on_exit(&on_exit_in_world, nullptr);
  let_openssl_draw();
}

Kernel::Apart::Apart() : thread_(std::exchange(current_thread, nullptr)) {}
Kernel::Apart::~Apart() { current_thread = thread_; }

Kernel::Kernel(std::uint64_t seed)
    : seed_(seed), random_(mix(seed)), content_(mix(seed ^ 0x636f6e74656e74)) {
  if (the_kernel != nullptr) {
    std::fprintf(stderr, "sim: there is another world in this process already\n");
    std::abort();
  }
  has_made_one = true;
  prepare();
  if (std::exchange(watched, getpid()) != getpid()) {
    pthread_t watchdog{};
    if (libc().pthread_create(&watchdog, nullptr, &watch_over, nullptr) == 0)
      libc().pthread_detach(watchdog);
  }
  stay_on_this_processor(processors_);
  auto first = std::make_unique<Thread>();
  first->group = &world_;
  first->handle = pthread_self();
  running_ = first.get();
  alive_.push_back(first.get());
  threads_.push_back(std::move(first));
  the_kernel = this;
  current_thread = running_;
  time_of_world = 0;
  in_world = true;
}

Kernel::~Kernel() {
  if (alive_.size() != 1) {
    std::fprintf(stderr, "sim: threads outlive their world:\n%s", describe_threads().c_str());
    std::abort();
  }
  in_world = false;
  current_thread = nullptr;
  the_kernel = nullptr;
  if (CPU_COUNT(&processors_) > 0) sched_setaffinity(0, sizeof processors_, &processors_);
}

void Kernel::enter(ThreadGroup& group) { current_thread->group = &group; }

void Kernel::freeze(ThreadGroup& group, Nanos until) {
  group.frozen_until = until;
  expire();
}

bool Kernel::has_threads_of(const ThreadGroup& group) const {
  return std::ranges::any_of(alive_, [&](const Thread* thread) { return thread->group == &group; });
}

std::string Kernel::describe_threads() const {
  std::string out;
  for (const Thread* thread : alive_) {
    out += fmt::format("  {:<12} thread {:<3} ", thread->group->name, thread->id);
    if (thread->state == Thread::State::kRunnable) {
      out += may_run(*thread) ? "can run\n" : "is frozen\n";
    } else if (thread->deadline == kNever) {
      out += fmt::format("waits for {}\n", thread->reason);
    } else {
      out += fmt::format("waits for {}, until {:.3f} s\n", thread->reason,
                         static_cast<double>(thread->deadline) / 1e9);
    }
  }
  return out;
}

// --- waiting and waking

bool Kernel::wait(const void* address, Nanos deadline, const char* reason) {
  Thread& self = *current_thread;
  self.waits_on = address;
  block(self, deadline, reason);
  return !self.timed_out;
}

void Kernel::block(Thread& self, Nanos deadline, const char* reason) {
  self.deadline = std::max(deadline, now_);
  self.reason = reason;
  self.timed_out = false;
  self.state = Thread::State::kBlocked;
  yields_ = 0;
  ++waiting_;
  if (deadline <= now_) expire();
  reschedule(self);
}

void Kernel::make_runnable(Thread& thread) {
  thread.state = Thread::State::kRunnable;
  thread.waits_on = nullptr;
  thread.epoll = -1;
  thread.deadline = kNever;
  --waiting_;
}

int Kernel::wake(const void* address, int most) {
  if (waiting_ == 0 || most <= 0) return 0;
  std::vector<Thread*> waiting;
  for (Thread* thread : alive_) {
    if (thread->state == Thread::State::kBlocked && thread->waits_on == address)
      waiting.push_back(thread);
  }
  int woken = 0;
  while (!waiting.empty() && woken < most) {
    const std::size_t index =
        static_cast<int>(waiting.size()) > most - woken ? random_.below(waiting.size()) : 0;
    make_runnable(*waiting[index]);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
    ++woken;
  }
  return woken;
}

void Kernel::yield() {
  const auto others = [this] {
    return std::any_of(alive_.begin(), alive_.end(), [&](const Thread* thread) {
      return thread != running_ && thread->state == Thread::State::kRunnable && may_run(*thread);
    });
  };
  ++yields_;
  if (!others()) {
    poll_descriptors();
    // No other thread can run before time has passed.
    if (!others()) step();
  } else if (yields_ > kManyYieldsOfSeveral) {
    step();
  }
  reschedule(*current_thread);
}

/// A few yields before a wait must not consume the time until the next deadline.
void Kernel::step() {
  constexpr std::uint64_t kDoublings = 20;
  const std::uint64_t doublings = yields_ < kManyYields ? 0 : yields_ - kManyYields;
  const Nanos step = std::min(kLongestStep, kClockStep << std::min(doublings, kDoublings));
  const Nanos deadline = std::max(now_, first_deadline());
  pass(std::min(now_ + step, deadline));
  // The threads that waited for it run before more time passes.
  if (now_ >= deadline) yields_ = 0;
}

void Kernel::pass(Nanos time) {
  now_ = time;
  time_of_world.store(time, std::memory_order_relaxed);
  expire();
}

void Kernel::preempt() {
  if (random_.below(kPreemptOneIn) == 0) reschedule(*current_thread);
}

Nanos Kernel::read_clock() {
  if (++clock_reads_ > kManyClockReads) pass(now_ + kClockStep);
  return now_;
}

void Kernel::reschedule(Thread& self) {
  Thread& next = choose();
  if (&next == &self) return;
  hand_over(self, next);
}

void Kernel::hand_over(Thread& self, Thread& next) {
  ++switches_;
  steps.fetch_add(1, std::memory_order_relaxed);
  running_ = &next;
  next.baton.store(1, std::memory_order_release);
  futex_wake(next.baton);
  wait_for_baton(self);
}

void Kernel::wait_for_baton(Thread& self) {
  while (self.baton.load(std::memory_order_acquire) == 0) futex_wait(self.baton, 0);
  self.baton.store(0, std::memory_order_relaxed);
  await_real_end();
}

Thread& Kernel::choose() {
  for (;;) {
    if (std::exchange(poll_, false)) poll_descriptors();
    candidates_.clear();
    for (Thread* thread : alive_) {
      if (thread->state == Thread::State::kRunnable && may_run(*thread))
        candidates_.push_back(thread);
    }
    if (!candidates_.empty()) {
      Thread& out = *candidates_[candidates_.size() == 1 ? 0 : random_.below(candidates_.size())];
      digest_ =
          mix(digest_ ^ static_cast<std::uint64_t>(out.id) ^ static_cast<std::uint64_t>(now_) << 8);
      return out;
    }
    poll_descriptors();
    const bool found = std::any_of(alive_.begin(), alive_.end(), [&](const Thread* thread) {
      return thread->state == Thread::State::kRunnable && may_run(*thread);
    });
    if (found || advance()) continue;
    const std::string text = "deadlock: every thread waits for another one:\n" + describe_threads();
    if (on_deadlock) {
      on_deadlock(text);
    } else {
      std::fprintf(stderr, "sim: %s", text.c_str());
    }
    std::abort();
  }
}

Nanos Kernel::first_deadline() const {
  Nanos next = kNever;
  for (const Thread* thread : alive_) {
    const Nanos frozen = thread->group->frozen_until;
    if (thread->state == Thread::State::kBlocked && thread->deadline != kNever) {
      next = std::min(next, std::max(thread->deadline, frozen));
    } else if (thread->state == Thread::State::kRunnable && frozen > now_) {
      next = std::min(next, frozen);
    }
  }
  for (const auto& [fd, timer] : timers_) next = std::min(next, timer.deadline);
  return next;
}

bool Kernel::advance() {
  const Nanos next = first_deadline();
  if (next == kNever) return false;
  clock_reads_ = 0;
  yields_ = 0;
  pass(std::max(now_, next));
  return true;
}

void Kernel::expire() {
  for (Thread* thread : alive_) {
    if (thread->state == Thread::State::kBlocked && thread->deadline <= now_ && may_run(*thread)) {
      make_runnable(*thread);
      thread->timed_out = true;
    }
  }
  for (auto& [fd, timer] : timers_) {
    if (timer.deadline > now_) continue;
    eventfd_t times = 1;
    if (timer.interval > 0)
      times += static_cast<eventfd_t>((now_ - timer.deadline) / timer.interval);
    timer.deadline =
        timer.interval > 0 ? timer.deadline + static_cast<Nanos>(times) * timer.interval : kNever;
    timer.rung = true;
    eventfd_write(fd, times);
    poll_ = true;
  }
}

// --- threads

int Kernel::create(pthread_t* out, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* arg) {
  auto made = std::make_unique<Thread>();
  Thread& thread = *made;
  thread.id = static_cast<int>(threads_.size());
  thread.group = current_thread->group;
  thread.start = start;
  thread.argument = arg;
  if (attributes != nullptr) {
    int state = PTHREAD_CREATE_JOINABLE;
    pthread_attr_getdetachstate(attributes, &state);
    thread.detached = state == PTHREAD_CREATE_DETACHED;
  }
  const int error = libc().pthread_create(&thread.handle, attributes, &Kernel::entry, &thread);
  if (error != 0) return error;
  *out = thread.handle;
  alive_.push_back(&thread);
  threads_.push_back(std::move(made));
  preempt();
  return 0;
}

void* Kernel::entry(void* pointer) {
  Thread& self = *static_cast<Thread*>(pointer);
  wait_for_baton(self);
  current_thread = &self;
  pthread_setspecific(exit_key, &self);
  self.result = self.start(self.argument);
  return self.result;
}

/// Runs after the destruction of the thread's thread-local objects, in one of the last rounds of key
/// destructors.
void Kernel::at_exit(void* pointer) {
  constexpr int kRounds = 3;
  if (++exit_rounds < kRounds) {
    pthread_setspecific(exit_key, pointer);
    return;
  }
  Thread& self = *static_cast<Thread*>(pointer);
  Kernel& kernel = *the_kernel;
  self.state = Thread::State::kFinished;
  std::erase(kernel.alive_, &self);
  kernel.wake(&self, std::numeric_limits<int>::max());
  Thread& next = kernel.choose();
  if (self.detached) kernel.threads_[static_cast<std::size_t>(self.id)].reset();
  kernel.running_ = &next;
  ++kernel.switches_;
  steps.fetch_add(1, std::memory_order_relaxed);
  current_thread = nullptr;
  announce_end();
  next.baton.store(1, std::memory_order_release);
  futex_wake(next.baton);
}

int Kernel::join(pthread_t handle, void** result) {
  const auto it = std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) {
    return thread != nullptr && !thread->detached && pthread_equal(thread->handle, handle) != 0;
  });
  if (it == threads_.end()) return libc().pthread_join(handle, result);
  Thread& thread = **it;
  while (thread.state != Thread::State::kFinished) wait(&thread, kNever, "the end of a thread");
  const int error = libc().pthread_join(handle, result);
  threads_[static_cast<std::size_t>(thread.id)].reset();
  return error;
}

int Kernel::detach(pthread_t handle) {
  for (auto& thread : threads_) {
    if (thread == nullptr || thread->detached || pthread_equal(thread->handle, handle) == 0)
      continue;
    thread->detached = true;
    if (thread->state == Thread::State::kFinished) thread.reset();
    break;
  }
  return libc().pthread_detach(handle);
}

// --- descriptors

int Kernel::wait_for_events(int epoll, epoll_event* events, int most, Nanos deadline) {
  Thread& self = *current_thread;
  for (;;) {
    const int found = libc().epoll_wait(epoll, events, most, 0);
    if (found != 0 || deadline <= now_) return found;
    self.epoll = epoll;
    block(self, deadline, "events on descriptors, or timers");
    if (self.timed_out) return libc().epoll_wait(epoll, events, most, 0);
  }
}

void Kernel::poll_descriptors() {
  candidates_.clear();
  polled_.clear();
  for (Thread* thread : alive_) {
    if (thread->state != Thread::State::kBlocked || thread->epoll < 0) continue;
    candidates_.push_back(thread);
    polled_.push_back({thread->epoll, POLLIN, 0});
  }
  if (polled_.empty() || libc().poll(polled_.data(), polled_.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) make_runnable(*candidates_[i]);
  }
}

int Kernel::create_timer(int clock) {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd >= 0) timers_[fd] = {.clock = clock};
  return fd;
}

void Kernel::set_timer(int fd, Nanos deadline, Nanos interval) {
  Timer& timer = timers_[fd];
  eventfd_t ignored = 0;
  if (std::exchange(timer.rung, false)) eventfd_read(fd, &ignored);
  timer.deadline = deadline;
  timer.interval = interval;
  if (deadline <= now_) expire();
}

}  // namespace lookout::sim
