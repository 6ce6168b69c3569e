// The C library's functions that interpose.cc replaces.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

#include <cstddef>
#include <cstdio>

namespace lookout::sim {

/// Looked up once, when first needed.
struct LibC {
  int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*pthread_join)(pthread_t, void**);
  int (*pthread_detach)(pthread_t);
  int (*pthread_mutex_lock)(pthread_mutex_t*);
  int (*pthread_mutex_trylock)(pthread_mutex_t*);
  int (*pthread_mutex_unlock)(pthread_mutex_t*);
  int (*pthread_mutex_timedlock)(pthread_mutex_t*, const timespec*);
  int (*pthread_mutex_clocklock)(pthread_mutex_t*, clockid_t, const timespec*);
  int (*pthread_rwlock_rdlock)(pthread_rwlock_t*);
  int (*pthread_rwlock_tryrdlock)(pthread_rwlock_t*);
  int (*pthread_rwlock_wrlock)(pthread_rwlock_t*);
  int (*pthread_rwlock_trywrlock)(pthread_rwlock_t*);
  int (*pthread_rwlock_unlock)(pthread_rwlock_t*);
  int (*pthread_rwlock_timedrdlock)(pthread_rwlock_t*, const timespec*);
  int (*pthread_rwlock_timedwrlock)(pthread_rwlock_t*, const timespec*);
  int (*pthread_rwlock_clockrdlock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*pthread_rwlock_clockwrlock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*pthread_barrier_init)(pthread_barrier_t*, const pthread_barrierattr_t*, unsigned);
  int (*pthread_barrier_destroy)(pthread_barrier_t*);
  int (*pthread_barrier_wait)(pthread_barrier_t*);
  int (*sem_wait)(sem_t*);
  int (*sem_trywait)(sem_t*);
  int (*sem_timedwait)(sem_t*, const timespec*);
  int (*sem_clockwait)(sem_t*, clockid_t, const timespec*);
  int (*sem_post)(sem_t*);
  int (*pthread_cond_wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*pthread_cond_timedwait)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  int (*pthread_cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  int (*pthread_cond_signal)(pthread_cond_t*);
  int (*pthread_cond_broadcast)(pthread_cond_t*);
  int (*pthread_once)(pthread_once_t*, void (*)());
  int (*clock_gettime)(clockid_t, timespec*);
  int (*gettimeofday)(timeval*, void*);
  int (*timespec_get)(timespec*, int);
  time_t (*time)(time_t*);
  int (*nanosleep)(const timespec*, timespec*);
  int (*clock_nanosleep)(clockid_t, int, const timespec*, timespec*);
  int (*sched_yield)();
  int (*epoll_wait)(int, epoll_event*, int, int);
  int (*epoll_pwait)(int, epoll_event*, int, int, const sigset_t*);
  int (*epoll_ctl)(int, int, int, epoll_event*);
  int (*poll)(pollfd*, nfds_t, int);
  int (*timerfd_create)(int, int);
  int (*timerfd_settime)(int, int, const itimerspec*, itimerspec*);
  int (*close)(int);
  long (*syscall)(long, ...);
  long (*getrandom)(void*, std::size_t, unsigned);
  int (*getentropy)(void*, std::size_t);
  int (*get_nprocs)();
  int (*gethostname)(char*, std::size_t);
  FILE* (*fopen64)(const char*, const char*);
};

const LibC& libc();

/// Makes OpenSSL read random bytes from getrandom() instead of its own generator, which is seeded only
/// once per process.
void let_openssl_draw();

}  // namespace lookout::sim
