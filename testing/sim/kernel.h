// Kernel: schedules threads deterministically on virtual time.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lookout/base/pinned.h"
#include "testing/sim/random.h"

struct epoll_event;

namespace lookout::sim {

/// Nanoseconds since the start of the world.
using Nanos = std::int64_t;
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

/// The threads of a simulated process. While the group is frozen, none of them runs.
struct ThreadGroup {
  std::string name;
  Nanos frozen_until = 0;
  /// The difference of its wall clock from the world's.
  Nanos clock_error = 0;
};

/// An operating system thread that runs only when the kernel schedules it.
struct Thread {
  enum class State { kRunnable, kBlocked, kFinished };

  int id = 0;
  ThreadGroup* group = nullptr;
  State state = State::kRunnable;
  /// The address that wakes it; null: only the deadline ends the wait.
  const void* waits_on = nullptr;
  const char* reason = "";
  Nanos deadline = kNever;
  bool timed_out = false;
  /// Waits in epoll_wait on this descriptor; -1: does not.
  int epoll = -1;

  std::atomic<int> baton{0};
  pthread_t handle{};
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  bool detached = false;
};

/// Runs the threads of a world one at a time and selects the next thread at every wait. Time passes
/// only when all threads wait: then it jumps to the first deadline. Every choice is drawn from the
/// seed, so two runs with the same seed make the same choices.
///
/// The threads are real, with stacks, thread-local storage and names that a debugger shows. C library
/// functions that wait, read clocks or make random bytes call the kernel (interpose.cc). A process has
/// at most one kernel. Only the running thread accesses it, so it needs no lock.
class Kernel : public base::Pinned {
 public:
  /// The calling thread becomes the first thread of the world.
  explicit Kernel(std::uint64_t seed);
  /// All other threads must have ended.
  ~Kernel();

  /// Null if the calling thread does not belong to a world.
  static Thread* current();
  static Kernel* instance();
  /// True if there is or was a kernel in this process or in the process that it was forked from.
  static bool has_been();
  /// One-time initialisation of a process, which takes milliseconds. The first kernel calls it; a call
  /// before a fork saves the children that time.
  static void prepare();

  /// While it exists, the calling thread is outside of its world and uses the C library's functions. For
  /// short operations that wait for no other thread of the world and may differ between runs.
  class Apart : public base::Pinned {
   public:
    Apart();
    ~Apart();

   private:
    Thread* const thread_;
  };

  std::uint64_t seed() const { return seed_; }
  const Thread* running() const { return running_; }
  Nanos now() const { return now_; }
  Random& random() { return random_; }
  /// For random texts that affect no decision: UIDs, tokens.
  Random& content() { return content_; }
  std::uint64_t switches() const { return switches_; }
  /// A hash of all choices so far; equal for equal runs.
  std::uint64_t digest() const { return digest_; }

  ThreadGroup& world() { return world_; }
  /// Moves the calling thread, and the threads that it will start, into a group.
  void enter(ThreadGroup& group);
  void freeze(ThreadGroup& group, Nanos until);

  /// One line per waiting thread: its process, and the reason for its wait.
  std::string describe_threads() const;
  bool has_threads_of(const ThreadGroup& group) const;
  /// Called on a deadlock, on the last thread that started to wait. The process ends afterwards.
  std::function<void(const std::string&)> on_deadlock;

  // --- for interpose.cc: the C library's functions in a world

  /// Waits until the address is woken or the deadline passes; returns false in the latter case.
  bool wait(const void* address, Nanos deadline, const char* reason);
  /// Wakes up to `most` threads that wait on the address, drawn if there are more; returns their
  /// number.
  int wake(const void* address, int most);
  bool anybody_waits() const { return waiting_ > 0; }
  /// Lets another thread run, if one can; otherwise some time passes, at most until the next deadline.
  void yield();
  /// A point where another thread may run.
  void preempt();
  /// Advances the time after many reads, so that code that polls the clock ends.
  Nanos read_clock();

  int create(pthread_t* out, const pthread_attr_t* attributes, void* (*start)(void*), void* arg);
  int join(pthread_t handle, void** result);
  int detach(pthread_t handle);

  int wait_for_events(int epoll, epoll_event* events, int most, Nanos deadline);
  /// Some descriptor may have an event.
  void poll_soon() { poll_ = true; }
  int create_timer(int clock);
  bool is_timer(int fd) const { return timers_.contains(fd); }
  int clock_of_timer(int fd) const { return timers_.at(fd).clock; }
  void set_timer(int fd, Nanos deadline, Nanos interval);
  void closed(int fd) { timers_.erase(fd); }

 private:
  struct Timer {
    int clock = 0;
    Nanos deadline = kNever;
    Nanos interval = 0;  // 0: it rings once
    bool rung = false;   // and its descriptor has not been read since
  };

  static void* entry(void* thread);
  static void at_exit(void* thread);

  void block(Thread& self, Nanos deadline, const char* reason);
  /// Passes the baton on; returns when the calling thread has it again, immediately if it is drawn
  /// itself.
  void reschedule(Thread& self);
  Thread& choose();
  void make_runnable(Thread& thread);
  /// Checks whether threads in epoll_wait have events.
  void poll_descriptors();
  /// Moves to the first deadline; false if there is none.
  bool advance();
  /// The time of the next event if all threads wait; kNever if there is none.
  Nanos first_deadline() const;
  void step();
  /// Moves to this time.
  void pass(Nanos time);
  bool may_run(const Thread& thread) const { return thread.group->frozen_until <= now_; }
  void hand_over(Thread& self, Thread& next);
  static void wait_for_baton(Thread& self);
  /// Ends the waits whose deadline has come.
  void expire();

  const std::uint64_t seed_;
  Random random_;
  Random content_;
  Nanos now_ = 0;
  ThreadGroup world_{"world"};
  std::vector<std::unique_ptr<Thread>> threads_;  // by id; null: ended and joined
  std::vector<Thread*> alive_;
  // Scratch:
  std::vector<Thread*> candidates_;
  std::vector<pollfd> polled_;
  Thread* running_ = nullptr;
  int waiting_ = 0;
  bool poll_ = false;
  std::map<int, Timer> timers_;
  std::uint64_t switches_ = 0;
  std::uint64_t clock_reads_ = 0;
  std::uint64_t yields_ = 0;
  cpu_set_t processors_{};  // the affinity of the first thread before
  std::uint64_t digest_ = 0;
};

}  // namespace lookout::sim
