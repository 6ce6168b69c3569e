// Deterministic threads on virtual time.
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

#include "testing/sim/random.h"

struct epoll_event;

namespace lookout::sim {

/// Nanoseconds since the world began.
using Nanos = std::int64_t;
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

/// Threads that belong together: a simulated process. Frozen, none of them runs.
struct ThreadGroup {
  std::string name;
  Nanos frozen_until = 0;
  /// How far its clock on the wall is ahead of the world's.
  Nanos clock_error = 0;
};

/// A thread of the operating system that runs only when the kernel says so.
struct Thread {
  enum class State { kRunnable, kBlocked, kFinished };

  int id = 0;
  ThreadGroup* group = nullptr;
  State state = State::kRunnable;
  /// An address that a wake-up names; null: only the deadline ends the wait.
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

/// Runs the threads of a world one at a time and decides at every wait which one goes on. Time
/// passes only when all of them wait: then it jumps to the first deadline. Every choice is drawn
/// from the seed, so two runs with one seed make the same choices.
///
/// The threads are real ones, with stacks, thread-local storage and names that a debugger shows;
/// the functions of the C library that wait, ask for the time or for random bytes come here
/// (interpose.cc). There is at most one kernel in a process. Only the thread that runs touches it,
/// so it needs no lock.
class Kernel {
 public:
  /// The calling thread becomes the first thread of the world.
  explicit Kernel(std::uint64_t seed);
  /// All other threads must have ended.
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Null: the calling thread is none of a world's.
  static Thread* current();
  static Kernel* instance();
  /// Whether there is or was one in this process, or in one that it was forked from.
  static bool has_been();
  /// Sets up what a process needs once, which takes milliseconds. The first kernel calls it; a call
  /// before a fork saves the children that time.
  static void prepare();

  /// While it lives, what the calling thread does is no part of its world: the functions of the C
  /// library are the C library's. For what takes a short time, waits for no other thread and is not
  /// the same in each run.
  class Apart {
   public:
    Apart();
    ~Apart();
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

   private:
    Thread* const thread_;
  };

  std::uint64_t seed() const { return seed_; }
  const Thread* running() const { return running_; }
  Nanos now() const { return now_; }
  Random& random() { return random_; }
  /// For texts that are random but decide nothing: UIDs, tokens.
  Random& content() { return content_; }
  std::uint64_t switches() const { return switches_; }
  /// A hash of all choices so far. Two runs that did the same have the same one.
  std::uint64_t digest() const { return digest_; }

  ThreadGroup& world() { return world_; }
  /// For threads that the calling thread starts from now on, and for itself.
  void enter(ThreadGroup& group);
  void freeze(ThreadGroup& group, Nanos until);

  /// One waiting thread a line: its process, and what it waits for.
  std::string describe_threads() const;
  bool has_threads_of(const ThreadGroup& group) const;
  /// Called, on the last thread that waited, when every thread waits for ever. It does not return
  /// to the threads: the process ends after it.
  std::function<void(const std::string&)> on_deadlock;

  // --- for interpose.cc: what the C library's functions do in a world

  /// Waits until somebody wakes the address or the deadline passes; false: it passed.
  bool wait(const void* address, Nanos deadline, const char* reason);
  /// Makes up to `most` threads runnable that wait on an address, drawn if there are more; returns
  /// how many.
  int wake(const void* address, int most);
  bool anybody_waits() const { return waiting_ > 0; }
  /// Lets another thread go on, if one can; else some time passes, at most until the next deadline.
  void yield();
  /// A place where another thread may go on.
  void preempt();
  /// Code that reads the clock until it has changed must come to an end.
  Nanos read_clock();

  int create(pthread_t* out, const pthread_attr_t* attributes, void* (*start)(void*), void* arg);
  int join(pthread_t handle, void** result);
  int detach(pthread_t handle);

  int wait_for_events(int epoll, epoll_event* events, int most, Nanos deadline);
  /// An event may have come in on some descriptor.
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
    bool rung = false;   // and its descriptor not read since
  };

  static void* entry(void* thread);
  static void at_exit(void* thread);

  void block(Thread& self, Nanos deadline, const char* reason);
  /// Hands the baton on; returns when the calling thread has it again. At once if it is drawn
  /// itself.
  void reschedule(Thread& self);
  Thread& choose();
  void make_runnable(Thread& thread);
  /// Looks whether threads in epoll_wait have events.
  void poll_descriptors();
  /// Moves to the first deadline; false if there is none.
  bool advance();
  /// The time at which something happens if all threads wait; kNever: nothing does.
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
  cpu_set_t processors_{};  // on which the first thread could run before
  std::uint64_t digest_ = 0;
};

}  // namespace lookout::sim
