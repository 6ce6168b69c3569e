// Replacements of the C library's functions that wait, read clocks or make random bytes, for programs
// that link the simulator. On threads outside of a world they forward to the C library.
#define OPENSSL_SUPPRESS_DEPRECATED  // RAND_METHOD; its successor is a provider
#include <dlfcn.h>
#include <linux/futex.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "lookout/api/detail/hash_seed.h"
#include "testing/sim/kernel.h"
#include "testing/sim/libc.h"

namespace lookout::sim {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
/// The clocks at the start of a world: the steady clock, and the wall clock (1 January 2026, 00:00
/// UTC).
constexpr Nanos kSteadyBase = 1'000'000 * kSecond;
constexpr Nanos kWallBase = 1'767'225'600 * kSecond;

template <class F>
void find(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

/// Finds the sanitizer's version of a function, if there is a sanitizer: it must track the threads.
template <class F>
void find_interceptor(F& function, const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) function = reinterpret_cast<F>(found);
}

/// For all of OpenSSL: tokens, keys, signatures, TLS.
int fill_for_openssl(unsigned char* out, int size) {
  auto left = static_cast<std::size_t>(size);
  while (left > 0) {
    const ssize_t got = ::getrandom(out, left, 0);
    if (got < 0 && errno != EINTR) return 0;
    if (got > 0) {
      out += got;
      left -= static_cast<std::size_t>(got);
    }
  }
  return 1;
}

int always_ready() { return 1; }

LibC look_up() {
  LibC out{};
#define FIND(name) find(out.name, #name)
  FIND(pthread_create);
  FIND(pthread_join);
  FIND(pthread_detach);
  FIND(pthread_mutex_lock);
  FIND(pthread_mutex_trylock);
  FIND(pthread_mutex_unlock);
  FIND(pthread_mutex_timedlock);
  FIND(pthread_mutex_clocklock);
  FIND(pthread_rwlock_rdlock);
  FIND(pthread_rwlock_tryrdlock);
  FIND(pthread_rwlock_wrlock);
  FIND(pthread_rwlock_trywrlock);
  FIND(pthread_rwlock_unlock);
  FIND(pthread_rwlock_timedrdlock);
  FIND(pthread_rwlock_timedwrlock);
  FIND(pthread_rwlock_clockrdlock);
  FIND(pthread_rwlock_clockwrlock);
  FIND(pthread_barrier_init);
  FIND(pthread_barrier_destroy);
  FIND(pthread_barrier_wait);
  FIND(sem_wait);
  FIND(sem_trywait);
  FIND(sem_timedwait);
  FIND(sem_clockwait);
  FIND(sem_post);
  FIND(pthread_cond_wait);
  FIND(pthread_cond_timedwait);
  FIND(pthread_cond_clockwait);
  FIND(pthread_cond_signal);
  FIND(pthread_cond_broadcast);
  FIND(pthread_once);
  FIND(clock_gettime);
  FIND(gettimeofday);
  FIND(timespec_get);
  FIND(time);
  FIND(nanosleep);
  FIND(clock_nanosleep);
  FIND(sched_yield);
  FIND(epoll_wait);
  FIND(epoll_pwait);
  FIND(epoll_ctl);
  FIND(poll);
  FIND(timerfd_create);
  FIND(timerfd_settime);
  FIND(close);
  FIND(syscall);
  FIND(getrandom);
  FIND(getentropy);
  FIND(get_nprocs);
  FIND(gethostname);
  FIND(fopen64);
#undef FIND
  find_interceptor(out.pthread_create, "__interceptor_pthread_create");
  find_interceptor(out.pthread_join, "__interceptor_pthread_join");
  find_interceptor(out.pthread_detach, "__interceptor_pthread_detach");
  return out;
}

/// The kernel, on a thread of a world.
Kernel* kernel() { return Kernel::current() == nullptr ? nullptr : Kernel::instance(); }

bool is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }
bool is_steady(clockid_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
         clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

/// The difference between a clock and the world's time.
Nanos offset(clockid_t clock) {
  return is_wall(clock) ? kWallBase + Kernel::current()->group->clock_error : kSteadyBase;
}

/// Clocks end in 292 years: a wait until shortly before that never ends.
constexpr Nanos kEndOfClocks = 9'000'000'000 * kSecond;

Nanos nanos(const timespec& time) {
  return time.tv_sec < kEndOfClocks / kSecond ? time.tv_sec * kSecond + time.tv_nsec : kNever;
}
timespec spec(Nanos time) { return {time / kSecond, time % kSecond}; }

Nanos deadline_of(clockid_t clock, const timespec* time) {
  const Nanos until = time == nullptr ? kNever : nanos(*time);
  return until == kNever ? kNever : until - offset(clock);
}
Nanos deadline_in(Nanos duration) {
  const Nanos now = Kernel::instance()->now();
  return duration < kNever - now ? now + duration : kNever;
}

int lock(Kernel& k, pthread_mutex_t* mutex, Nanos deadline = kNever) {
  for (;;) {
    const int error = libc().pthread_mutex_trylock(mutex);
    if (error != EBUSY) return error;
    if (!k.wait(mutex, deadline, "a mutex")) return ETIMEDOUT;
  }
}

int unlock(Kernel& k, pthread_mutex_t* mutex) {
  const int error = libc().pthread_mutex_unlock(mutex);
  if (k.anybody_waits()) k.wake(mutex, INT_MAX);
  return error;
}

int wait(Kernel& k, pthread_cond_t* condition, pthread_mutex_t* mutex, Nanos deadline) {
  unlock(k, mutex);
  const bool woken = k.wait(condition, deadline, "a condition variable");
  lock(k, mutex);
  return woken ? 0 : ETIMEDOUT;
}

template <class Try>
int lock_rw(Kernel& k, pthread_rwlock_t* rwlock, Try attempt, Nanos deadline = kNever) {
  for (;;) {
    const int error = attempt(rwlock);
    if (error != EBUSY) return error;
    if (!k.wait(rwlock, deadline, "a shared mutex")) return ETIMEDOUT;
  }
}

/// The clock that was set with pthread_condattr_setclock().
clockid_t clock_of(const pthread_cond_t& condition) {
  constexpr unsigned kMonotonic = 2;  // in glibc's internals
  return (condition.__data.__wrefs & kMonotonic) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

int wait_for_semaphore(Kernel& k, sem_t* semaphore, Nanos deadline) {
  for (;;) {
    if (libc().sem_trywait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return -1;
    if (k.wait(semaphore, deadline, "a semaphore")) continue;
    errno = ETIMEDOUT;
    return -1;
  }
}

/// A barrier that was created in a world.
struct Barrier {
  unsigned threads = 0;
  unsigned waiting = 0;
  std::uint64_t round = 0;
};
std::map<pthread_barrier_t*, std::shared_ptr<Barrier>>& barriers() {
  static std::map<pthread_barrier_t*, std::shared_ptr<Barrier>> out;
  return out;
}

int wait_for_all(Kernel& k, pthread_barrier_t* address, const std::shared_ptr<Barrier>& barrier) {
  if (++barrier->waiting == barrier->threads) {
    barrier->waiting = 0;
    ++barrier->round;
    k.wake(address, INT_MAX);
    k.preempt();
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  const std::uint64_t round = barrier->round;
  while (barrier->round == round) k.wait(address, kNever, "a barrier");
  return 0;
}

void fill(Kernel& k, void* out, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(out);
  while (size > 0) {
    const std::uint64_t word = k.content().next();
    const std::size_t now = std::min(size, sizeof word);
    std::memcpy(bytes, &word, now);
    bytes += now;
    size -= now;
  }
}

long futex(Kernel& k, int* word, int operation, int value, const timespec* timeout) {
  const int command = operation & FUTEX_CMD_MASK;
  const bool wall = (operation & FUTEX_CLOCK_REALTIME) != 0;
  switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
      }
      Nanos deadline = kNever;
      if (timeout != nullptr) {
        deadline = command == FUTEX_WAIT
                       ? deadline_in(nanos(*timeout))
                       : deadline_of(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout);
      }
      if (k.wait(word, deadline, "an atomic")) return 0;
      errno = ETIMEDOUT;
      return -1;
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      const int woken = k.wake(word, value);
      // The standard library may wake an address without waiters, because addresses of atomics share
      // buckets. That must not change the next draw.
      if (woken > 0) k.preempt();
      return woken;
    }
    default:
      errno = ENOSYS;
      return -1;
  }
}

/// Fixes the hash seed of objects. Otherwise stores would keep objects in an order that differs between
/// processes.
struct HashSeed {
  HashSeed() {
    constexpr std::uint64_t kSeed = 0x6c6f6f6b6f7574;
    api::detail::fix_hash_seed(kSeed);
  }
};
// Initialised before the program's static objects, which may contain API objects.
[[gnu::init_priority(101), maybe_unused]] const HashSeed hash_seed;

/// The running functions of pthread_once: a second caller would wait outside of the kernel's control.
std::set<pthread_once_t*>& in_progress() {
  static std::set<pthread_once_t*> out;
  return out;
}

}  // namespace

const LibC& libc() {
  // Not a static with a constructor: these functions are called before constructors run.
  static LibC found;
  static bool looked_up = false;
  if (!looked_up) {
    found = look_up();
    looked_up = true;
  }
  return found;
}

}  // namespace lookout::sim

using lookout::sim::kernel;
using lookout::sim::kNever;
using lookout::sim::libc;

extern "C" {

int pthread_create(pthread_t* out, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* arg) {
  if (auto* k = kernel()) return k->create(out, attributes, start, arg);
  return libc().pthread_create(out, attributes, start, arg);
}

int pthread_join(pthread_t thread, void** result) {
  if (auto* k = kernel()) return k->join(thread, result);
  return libc().pthread_join(thread, result);
}

int pthread_detach(pthread_t thread) {
  if (auto* k = kernel()) return k->detach(thread);
  return libc().pthread_detach(thread);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (auto* k = kernel()) return lookout::sim::lock(*k, mutex);
  return libc().pthread_mutex_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  auto* k = kernel();
  if (k == nullptr) return libc().pthread_mutex_unlock(mutex);
  const int error = lookout::sim::unlock(*k, mutex);
  k->preempt();
  return error;
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::lock(*k, mutex, lookout::sim::deadline_of(CLOCK_REALTIME, until));
  return libc().pthread_mutex_timedlock(mutex, until);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::lock(*k, mutex, lookout::sim::deadline_of(clock, until));
  return libc().pthread_mutex_clocklock(mutex, clock, until);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) {
  if (auto* k = kernel()) return lookout::sim::lock_rw(*k, rwlock, libc().pthread_rwlock_tryrdlock);
  return libc().pthread_rwlock_rdlock(rwlock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) {
  if (auto* k = kernel()) return lookout::sim::lock_rw(*k, rwlock, libc().pthread_rwlock_trywrlock);
  return libc().pthread_rwlock_wrlock(rwlock);
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* rwlock, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::lock_rw(*k, rwlock, libc().pthread_rwlock_tryrdlock,
                                 lookout::sim::deadline_of(CLOCK_REALTIME, until));
  return libc().pthread_rwlock_timedrdlock(rwlock, until);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* rwlock, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::lock_rw(*k, rwlock, libc().pthread_rwlock_trywrlock,
                                 lookout::sim::deadline_of(CLOCK_REALTIME, until));
  return libc().pthread_rwlock_timedwrlock(rwlock, until);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* rwlock, clockid_t clock, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::lock_rw(*k, rwlock, libc().pthread_rwlock_tryrdlock,
                                 lookout::sim::deadline_of(clock, until));
  return libc().pthread_rwlock_clockrdlock(rwlock, clock, until);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* rwlock, clockid_t clock, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::lock_rw(*k, rwlock, libc().pthread_rwlock_trywrlock,
                                 lookout::sim::deadline_of(clock, until));
  return libc().pthread_rwlock_clockwrlock(rwlock, clock, until);
}

int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) {
  const int error = libc().pthread_rwlock_unlock(rwlock);
  if (auto* k = kernel()) {
    if (k->anybody_waits()) k->wake(rwlock, INT_MAX);
    k->preempt();
  }
  return error;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (auto* k = kernel()) return lookout::sim::wait(*k, condition, mutex, kNever);
  return libc().pthread_cond_wait(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::wait(*k, condition, mutex,
                              lookout::sim::deadline_of(lookout::sim::clock_of(*condition), until));
  return libc().pthread_cond_timedwait(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::wait(*k, condition, mutex, lookout::sim::deadline_of(clock, until));
  return libc().pthread_cond_clockwait(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  auto* k = kernel();
  if (k == nullptr) return libc().pthread_cond_signal(condition);
  k->wake(condition, 1);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  auto* k = kernel();
  if (k == nullptr) return libc().pthread_cond_broadcast(condition);
  k->wake(condition, INT_MAX);
  return 0;
}

int sem_wait(sem_t* semaphore) {
  if (auto* k = kernel()) return lookout::sim::wait_for_semaphore(*k, semaphore, kNever);
  return libc().sem_wait(semaphore);
}

int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::wait_for_semaphore(*k, semaphore,
                                            lookout::sim::deadline_of(CLOCK_REALTIME, until));
  return libc().sem_timedwait(semaphore, until);
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (auto* k = kernel())
    return lookout::sim::wait_for_semaphore(*k, semaphore, lookout::sim::deadline_of(clock, until));
  return libc().sem_clockwait(semaphore, clock, until);
}

int sem_post(sem_t* semaphore) {
  const int error = libc().sem_post(semaphore);
  if (auto* k = kernel()) {
    if (k->anybody_waits()) k->wake(semaphore, 1);
    k->preempt();
  }
  return error;
}

int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                         unsigned threads) {
  const int error = libc().pthread_barrier_init(barrier, attributes, threads);
  if (error == 0 && kernel() != nullptr)
    lookout::sim::barriers()[barrier] =
        std::make_shared<lookout::sim::Barrier>(lookout::sim::Barrier{.threads = threads});
  return error;
}

int pthread_barrier_destroy(pthread_barrier_t* barrier) {
  if (kernel() != nullptr) lookout::sim::barriers().erase(barrier);
  return libc().pthread_barrier_destroy(barrier);
}

int pthread_barrier_wait(pthread_barrier_t* barrier) {
  auto* k = kernel();
  if (k == nullptr) return libc().pthread_barrier_wait(barrier);
  const auto found = lookout::sim::barriers().find(barrier);
  if (found == lookout::sim::barriers().end()) return libc().pthread_barrier_wait(barrier);
  return lookout::sim::wait_for_all(*k, barrier, std::shared_ptr(found->second));
}

int pthread_once(pthread_once_t* control, void (*function)()) {
  auto* k = kernel();
  if (k == nullptr) return libc().pthread_once(control, function);
  auto& running = lookout::sim::in_progress();
  while (running.contains(control)) k->wait(control, kNever, "a call_once");
  running.insert(control);
  struct Done {
    ~Done() {
      lookout::sim::in_progress().erase(control);
      k->wake(control, INT_MAX);
    }
    lookout::sim::Kernel* k;
    pthread_once_t* control;
  } const done{k, control};
  return libc().pthread_once(control, function);
}

int clock_gettime(clockid_t clock, timespec* out) {
  auto* k = kernel();
  if (k == nullptr || !(lookout::sim::is_wall(clock) || lookout::sim::is_steady(clock)))
    return libc().clock_gettime(clock, out);
  *out = lookout::sim::spec(k->read_clock() + lookout::sim::offset(clock));
  return 0;
}

int gettimeofday(timeval* out, void* zone) {
  auto* k = kernel();
  if (k == nullptr) return libc().gettimeofday(out, zone);
  const timespec now = lookout::sim::spec(k->read_clock() + lookout::sim::offset(CLOCK_REALTIME));
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) {
  auto* k = kernel();
  if (k == nullptr) return libc().time(out);
  const time_t now =
      lookout::sim::spec(k->read_clock() + lookout::sim::offset(CLOCK_REALTIME)).tv_sec;
  if (out != nullptr) *out = now;
  return now;
}

int timespec_get(timespec* out, int base) {
  if (kernel() == nullptr || base != TIME_UTC) return libc().timespec_get(out, base);
  return clock_gettime(CLOCK_REALTIME, out) == 0 ? base : 0;
}

int nanosleep(const timespec* duration, timespec* left) {
  auto* k = kernel();
  if (k == nullptr) return libc().nanosleep(duration, left);
  k->wait(nullptr, lookout::sim::deadline_in(lookout::sim::nanos(*duration)), "its sleep to end");
  return 0;
}

unsigned sleep(unsigned seconds) {
  const timespec duration{static_cast<time_t>(seconds), 0};
  nanosleep(&duration, nullptr);
  return 0;
}

int usleep(useconds_t micros) {
  constexpr useconds_t kMicros = 1'000'000;
  const timespec duration{static_cast<time_t>(micros / kMicros),
                          static_cast<long>(micros % kMicros) * 1000};
  return nanosleep(&duration, nullptr);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  auto* k = kernel();
  if (k == nullptr) return libc().clock_nanosleep(clock, flags, time, left);
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  k->wait(nullptr,
          absolute ? lookout::sim::deadline_of(clock, time)
                   : lookout::sim::deadline_in(lookout::sim::nanos(*time)),
          "its sleep to end");
  return 0;
}

int sched_yield() {
  auto* k = kernel();
  if (k == nullptr) return libc().sched_yield();
  k->yield();
  return 0;
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  auto* k = kernel();
  if (k == nullptr) return libc().epoll_wait(epoll, events, most, timeout);
  const auto deadline = timeout < 0 ? kNever : lookout::sim::deadline_in(timeout * 1'000'000LL);
  return k->wait_for_events(epoll, events, most, deadline);
}

int epoll_pwait(int epoll, epoll_event* events, int most, int timeout, const sigset_t* signals) {
  if (kernel() == nullptr) return libc().epoll_pwait(epoll, events, most, timeout, signals);
  return epoll_wait(epoll, events, most, timeout);
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  if (auto* k = kernel()) k->poll_soon();
  return libc().epoll_ctl(epoll, operation, fd, event);
}

int timerfd_create(int clock, int flags) {
  if (auto* k = kernel()) return k->create_timer(clock);
  return libc().timerfd_create(clock, flags);
}

int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) {
  auto* k = kernel();
  if (k == nullptr || !k->is_timer(fd)) return libc().timerfd_settime(fd, flags, value, old);
  if (old != nullptr) *old = {};
  const timespec& time = value->it_value;
  const auto interval = lookout::sim::nanos(value->it_interval);
  if (time.tv_sec == 0 && time.tv_nsec == 0) {
    k->set_timer(fd, kNever, 0);
  } else if ((flags & TFD_TIMER_ABSTIME) != 0) {
    const auto deadline = lookout::sim::deadline_of(k->clock_of_timer(fd), &time);
    k->set_timer(fd, std::max<lookout::sim::Nanos>(0, deadline), interval);
  } else {
    k->set_timer(fd, lookout::sim::deadline_in(lookout::sim::nanos(time)), interval);
  }
  return 0;
}

int close(int fd) {
  if (auto* k = lookout::sim::Kernel::instance()) k->closed(fd);
  return libc().close(fd);
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) {
    // NOLINTBEGIN(performance-no-int-to-ptr): syscall() passes pointers as integers
    if (auto* k = kernel())
      return lookout::sim::futex(*k, reinterpret_cast<int*>(a[0]), static_cast<int>(a[1]),
                                 static_cast<int>(a[2]), reinterpret_cast<timespec*>(a[3]));
    // NOLINTEND(performance-no-int-to-ptr)
  }
  if (number == SYS_getrandom) {
    if (auto* k = kernel()) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      lookout::sim::fill(*k, reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]));
      return a[1];
    }
  }
  return libc().syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t getrandom(void* out, size_t size, unsigned flags) {
  auto* k = kernel();
  if (k == nullptr) return libc().getrandom(out, size, flags);
  lookout::sim::fill(*k, out, size);
  return static_cast<ssize_t>(size);
}

int getentropy(void* out, size_t size) {
  auto* k = kernel();
  if (k == nullptr) return libc().getentropy(out, size);
  lookout::sim::fill(*k, out, size);
  return 0;
}

// Outside of worlds, they read the system's random bytes: older C libraries lack these functions.

void arc4random_buf(void* out, size_t size) {
  auto* bytes = static_cast<unsigned char*>(out);
  constexpr std::size_t kMost = 256;
  for (std::size_t done = 0; done < size; done += kMost)
    getentropy(bytes + done, std::min(kMost, size - done));
}

std::uint32_t arc4random() {
  std::uint32_t out = 0;
  arc4random_buf(&out, sizeof out);
  return out;
}

std::uint32_t arc4random_uniform(std::uint32_t bound) {
  if (bound < 2) return 0;
  // Rejects numbers below this, for an unbiased result.
  const std::uint32_t least = (0U - bound) % bound;
  for (;;) {
    const std::uint32_t out = arc4random();
    if (out >= least) return out % bound;
  }
}

// Worlds must not depend on the machine's number of processors.

int get_nprocs() {
  constexpr int kProcessors = 2;
  return kernel() != nullptr ? kProcessors : libc().get_nprocs();
}

/// Each process of a world has its own host name.
int gethostname(char* out, size_t size) {
  auto* k = kernel();
  if (k == nullptr) return libc().gethostname(out, size);
  const std::string& name = lookout::sim::Kernel::current()->group->name;
  if (name.size() >= size) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(out, name.c_str(), name.size() + 1);
  return 0;
}

/// Hides the system's processor limits, which base::usable_processors() reads; get_nprocs() counts.
FILE* fopen64(const char* path, const char* mode) {
  if (kernel() != nullptr && std::strcmp(path, "/proc/self/cgroup") == 0) {
    errno = ENOENT;
    return nullptr;
  }
  return libc().fopen64(path, mode);
}

}  // extern "C"

namespace lookout::sim {

void let_openssl_draw() {
  static const RAND_METHOD kMethod{nullptr, &fill_for_openssl, nullptr,
                                   nullptr, &fill_for_openssl, &always_ready};
  RAND_set_rand_method(&kMethod);
  // OpenSSL initialises itself with the first key and the first use of a hash, with locks. That must
  // not be part of the first world's trace.
  EVP_PKEY_free(EVP_EC_gen("P-256"));
  std::array<unsigned char, SHA512_DIGEST_LENGTH> hash{};
  SHA256(hash.data(), 0, hash.data());
  SHA512(hash.data(), 0, hash.data());
}

}  // namespace lookout::sim

namespace std {
random_device::result_type random_device::_M_getval() {
  if (auto* k = kernel()) return static_cast<result_type>(k->content().next());
  result_type out = 0;
  libc().getentropy(&out, sizeof out);
  return out;
}
}  // namespace std
