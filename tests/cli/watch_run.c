// SPDX-License-Identifier: Apache-2.0
//
// test: runs a command and writes down what it cost.
//
//   watch_run [--calls] REPORT COMMAND [ARGUMENT...]
//
// The report has lines `exit CODE`, `wall_ns N`, `cpu_ns N` (of all threads, in
// the kernel too) and `rss_kib N` (the most that was resident at once); with
// --calls, which slows the command, also `calls N`, the system calls from the
// end of its own exec on, and `open PATH` for each file that it or its children
// opened. Its output goes nowhere. A process as small as this one starts it,
// since Linux counts the memory of whoever calls exec. Exit code 77, with the
// reason, where nothing may be traced.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKIP = 77, PATH_BYTES = 4096, THREADS_MOST = 512 };

// A thread that is inside an open. one-thread
typedef struct opening_t {
  pid_t thread;
  char path[PATH_BYTES];
} opening_t;

static opening_t openings[THREADS_MOST];
static FILE* report;
static uint64_t calls;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t time_ns(const struct timeval* time) {
  return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static void skip(const char* why) {
  printf("skip: %s: %s\n", why, strerror(errno));
  exit(SKIP);
}

static void run_child(bool traced, char** command) {
  int nowhere = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; fd++) dup2(nowhere, fd);
  if (traced) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(SKIP);
    raise(SIGSTOP);
  }
  execvp(command[0], command);
  _exit(127);
}

// The text at `address` of a thread, as far as it can be read.
static void read_path(pid_t thread, uint64_t address, char* path) {
  size_t done = 0;
  while (done < PATH_BYTES - 1) {
    // Not over the end of a page, behind which there may be nothing.
    size_t part = 256 - (address + done) % 256;
    if (part > PATH_BYTES - 1 - done) part = PATH_BYTES - 1 - done;
    struct iovec to = {path + done, part};
    struct iovec from = {(void*)(uintptr_t)(address + done), part};
    if (process_vm_readv(thread, &to, 1, &from, 1, 0) != (ssize_t)part) break;
    if (memchr(path + done, 0, part)) return;
    done += part;
  }
  path[done] = 0;
}

static opening_t* opening_of(pid_t thread) {
  for (int i = 0; i < THREADS_MOST; i++) {
    if (openings[i].thread == thread) return &openings[i];
  }
  return NULL;
}

static uint64_t path_of(const struct __ptrace_syscall_info* info) {
  switch (info->entry.nr) {
#ifdef SYS_open
    case SYS_open:
      return info->entry.args[0];
#endif
    case SYS_openat:
      return info->entry.args[1];
    default:
      return 0;
  }
}

static void note_call(pid_t thread) {
  struct __ptrace_syscall_info info;
  memset(&info, 0, sizeof(info));
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0) return;
  opening_t* opening = opening_of(thread);
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    calls++;
    uint64_t address = path_of(&info);
    if (address && !opening) opening = opening_of(0);
    if (!address || !opening) return;
    opening->thread = thread;
    read_path(thread, address, opening->path);
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && opening) {
    if (info.exit.rval >= 0) fprintf(report, "open %s\n", opening->path);
    opening->thread = 0;
  }
}

// Until the child has ended; its status.
static int follow(pid_t child, struct rusage* usage) {
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL |
                       PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                       PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
    skip("a process may not be traced here");
  }
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) {
    skip("a process may not be traced here");
  }
  ptrace(PTRACE_SYSCALL, child, NULL, NULL);
  for (;;) {
    pid_t thread = wait4(-1, &status, __WALL, usage);
    if (thread < 0) return -1;
    if (!WIFSTOPPED(status)) {
      if (thread == child) return status;
      continue;
    }
    int why = WSTOPSIG(status);
    long pass_on = 0;
    if (why == (SIGTRAP | 0x80)) {
      note_call(thread);
    } else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
      if (thread == child) calls = 0;
    } else if (why != SIGTRAP && why != SIGSTOP) {
      pass_on = why;
    }
    ptrace(PTRACE_SYSCALL, thread, NULL, pass_on);
  }
}

int main(int argc, char** argv) {
  bool traced = argc > 1 && strcmp(argv[1], "--calls") == 0;
  if (argc < 3 + traced) {
    fprintf(stderr, "usage: watch_run [--calls] REPORT COMMAND...\n");
    return 2;
  }
  report = fopen(argv[1 + traced], "w");
  if (!report) return 2;
  fflush(NULL);
  struct rusage usage;
  uint64_t start = now_ns();
  pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) run_child(traced, argv + 2 + traced);
  int status;
  if (traced) {
    status = follow(child, &usage);
  } else if (wait4(child, &status, 0, &usage) != child) {
    return 2;
  }
  uint64_t wall = now_ns() - start;
  uint64_t cpu = time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime);
  fprintf(report, "exit %d\nwall_ns %llu\ncpu_ns %llu\nrss_kib %ld\n",
          WIFEXITED(status) ? WEXITSTATUS(status) : 128,
          (unsigned long long)wall, (unsigned long long)cpu, usage.ru_maxrss);
  if (traced) fprintf(report, "calls %llu\n", (unsigned long long)calls);
  return fclose(report) == 0 ? 0 : 2;
}
