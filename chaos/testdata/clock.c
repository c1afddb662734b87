/* Makes a program that is started with it in LD_PRELOAD see a wall clock that is SKEW seconds ahead.
   It asks the kernel directly: allocators read the clock before the C library can be looked up. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *ts) {
  int failed = syscall(SYS_clock_gettime, id, ts);
  if (!failed && id == CLOCK_REALTIME) {
    ts->tv_sec += SKEW;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  struct timespec ts;
  (void)tz;
  int failed = clock_gettime(CLOCK_REALTIME, &ts);
  if (!failed) {
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
  }
  return failed;
}

time_t time(time_t *t) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (t) {
    *t = ts.tv_sec;
  }
  return ts.tv_sec;
}
