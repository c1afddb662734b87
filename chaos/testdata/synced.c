/* Loaded into a program by LD_PRELOAD, it notes which part of each file is on the disk. Beside each
   synced file it writes a file with the suffix ".synced". That has the file's size when its last
   sync that succeeded began, and when that sync began and ended, in ns since 1970. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void note(int fd, long long size, long long began) {
  char link[64], path[PATH_MAX], text[96];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 8);
  if (n <= 0) {
    return;
  }
  snprintf(path + n, 8, ".synced");
  int to = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (to < 0) {
    return;
  }
  int len = snprintf(text, sizeof text, "%20lld %20lld %20lld\n", size, began, now());
  if (pwrite(to, text, len, 0) != len) {
    unlink(path);
  }
  close(to);
}

static int synced(long call, int fd) {
  struct stat st;
  int regular = !fstat(fd, &st) && S_ISREG(st.st_mode);
  long long began = now();
  int failed = syscall(call, fd);
  if (!failed && regular) {
    note(fd, st.st_size, began);
  }
  return failed;
}

int fsync(int fd) { return synced(SYS_fsync, fd); }

int fdatasync(int fd) { return synced(SYS_fdatasync, fd); }
