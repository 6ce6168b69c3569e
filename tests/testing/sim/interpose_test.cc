// The C library's functions in a world, and virtual time.
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>

#include "lookout/testing/sim/world.h"

namespace lookout::sim {
namespace {

using namespace std::chrono_literals;

/// This duration from now, on that clock.
timespec in(clockid_t clock, std::chrono::seconds duration) {
  timespec out{};
  clock_gettime(clock, &out);
  out.tv_sec += duration.count();
  return out;
}

// Nothing else is scheduled for an hour.
TEST(InterposeTest, ATimedWaitThatYieldsFirstIsNotLate) {
  World world(1);
  std::counting_semaphore<> semaphore(0);
  Time begin = world.now();
  EXPECT_FALSE(semaphore.try_acquire_for(50ms));
  EXPECT_GE(world.now() - begin, 50ms);
  EXPECT_LT(world.now() - begin, 60ms);
  begin = world.now();
  for (int i = 0; i < 3; ++i) std::this_thread::yield();
  EXPECT_LT(world.now() - begin, 1ms);
}

TEST(InterposeTest, ALoopOfYieldsEnds) {
  World world(1);
  std::atomic<bool> done{false};
  std::thread other([&] {
    std::this_thread::sleep_for(1h);
    done = true;
  });
  while (!done) std::this_thread::yield();
  EXPECT_EQ(world.now(), 1h);
  other.join();
  // Two threads that yield to each other.
  done = false;
  std::thread third([&] {
    std::this_thread::sleep_for(1h);
    done = true;
  });
  std::thread fourth([&] {
    while (!done) std::this_thread::yield();
  });
  while (!done) std::this_thread::yield();
  EXPECT_EQ(world.now(), 2h);
  third.join();
  fourth.join();
}

TEST(InterposeTest, AConditionHasItsOwnClock) {
  World world(1);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, clock);
    pthread_cond_t condition;
    pthread_cond_init(&condition, &attributes);
    const timespec until = in(clock, 10s);
    const Time begin = world.now();
    pthread_mutex_lock(&mutex);
    EXPECT_EQ(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    EXPECT_EQ(world.now() - begin, 10s);
    pthread_cond_destroy(&condition);
    pthread_condattr_destroy(&attributes);
  }
}

TEST(InterposeTest, ASharedMutexSupportsTimedLocks) {
  World world(1);
  std::shared_timed_mutex mutex;
  mutex.lock();
  std::thread other([&] {
    EXPECT_FALSE(mutex.try_lock_for(1s));
    EXPECT_FALSE(mutex.try_lock_shared_for(1s));
    EXPECT_EQ(world.now(), 2s);
    EXPECT_TRUE(mutex.try_lock_for(10s));
    mutex.unlock();
  });
  world.sleep(5s);
  mutex.unlock();
  other.join();
  EXPECT_EQ(world.now(), 5s);
}

TEST(InterposeTest, SemaphoresWait) {
  World world(1);
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  std::thread other([&] {
    std::this_thread::sleep_for(2s);
    sem_post(&semaphore);
  });
  EXPECT_EQ(sem_wait(&semaphore), 0);
  EXPECT_EQ(world.now(), 2s);
  const timespec until = in(CLOCK_REALTIME, 3s);
  EXPECT_EQ(sem_timedwait(&semaphore, &until), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  EXPECT_EQ(world.now(), 5s);
  other.join();
  sem_destroy(&semaphore);
}

TEST(InterposeTest, BarriersWait) {
  World world(1);
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 2);
  int last = 0;
  const auto wait = [&] {
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++last;
  };
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(2s);
      wait();
    }
  });
  for (int i = 0; i < 3; ++i) {
    wait();
    EXPECT_EQ(world.now(), 2s * (i + 1));
  }
  other.join();
  EXPECT_EQ(last, 3) << "one each time";
  pthread_barrier_destroy(&barrier);
}

TEST(InterposeTest, TimersHaveTheirClockAndTheirInterval) {
  World world(1);
  const int timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  itimerspec value{};
  value.it_value = in(CLOCK_REALTIME, 10s);
  value.it_interval.tv_sec = 1;
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &value, nullptr);
  const auto times = [&] {
    std::uint64_t out = 0;
    return read(timer, &out, sizeof out) == sizeof out ? out : 0;
  };
  world.sleep(9s);
  EXPECT_EQ(times(), 0u);
  world.sleep(1s);
  EXPECT_EQ(times(), 1u);
  world.sleep(3s);
  EXPECT_EQ(times(), 3u);
  close(timer);
}

TEST(InterposeTest, EveryTimeFunctionReturnsVirtualTime) {
  const World world(1);
  timespec one{};
  timespec other{};
  EXPECT_EQ(timespec_get(&one, TIME_UTC), TIME_UTC);
  clock_gettime(CLOCK_REALTIME, &other);
  EXPECT_EQ(one.tv_sec, other.tv_sec);
}

TEST(InterposeTest, EveryRandomFunctionDrawsFromTheSeed) {
  const auto drawn = [](std::uint64_t seed) {
    const World world(seed);
    std::array<std::uint32_t, 2> out{};
    syscall(SYS_getrandom, &out[0], sizeof out[0], 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 36)
    EXPECT_LT(arc4random_uniform(10), 10u);
    out[1] = arc4random();
#endif
    return out;
  };
  EXPECT_EQ(drawn(7), drawn(7));
  EXPECT_NE(drawn(7), drawn(8));
}

}  // namespace
}  // namespace lookout::sim
