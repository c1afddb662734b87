/* Loaded into a program by LD_PRELOAD, it shifts the program's wall clock by the nanoseconds in the
   file SKEW_FILE, which may change at any moment. It asks the kernel directly, since allocators read
   the clock before the C library can be looked up. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *volatile skew;

/* Two threads that find no map both make one. */
static int64_t ahead(void) {
  if (!skew) {
    int fd = syscall(SYS_openat, AT_FDCWD, SKEW_FILE, O_RDONLY | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : (void *)syscall(SYS_mmap, 0, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) {
      syscall(SYS_close, fd);
    }
    if (map == MAP_FAILED) {
      return 0;
    }
    skew = map;
  }
  return *skew;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  int failed = syscall(SYS_clock_gettime, id, ts);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    int64_t ns = ts->tv_nsec + ahead();
    int64_t rest = (ns % 1000000000 + 1000000000) % 1000000000;
    ts->tv_sec += (ns - rest) / 1000000000;
    ts->tv_nsec = rest;
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
