// SPDX-License-Identifier: Apache-2.0
//
// bench: how long another program takes as a process, from its start to its
// end.
//
//   bench_spawn PROGRAM [ARGUMENT]...
//
// Prints nanoseconds; the program's own output goes nowhere. Ends as it did.
// Linked statically, so that it warms nothing up that is measured.
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char** argv) {
  posix_spawn_file_actions_t actions;
  if (argc < 2 || posix_spawn_file_actions_init(&actions) != 0) return 125;
  for (int stream = 1; stream <= 2; stream++) {
    if (posix_spawn_file_actions_addopen(&actions, stream, "/dev/null",
                                         O_WRONLY, 0) != 0) {
      return 125;
    }
  }
  pid_t child = 0;
  int status = 0;
  long long start = now_ns();
  if (posix_spawn(&child, argv[1], &actions, NULL, argv + 1, environ) != 0 ||
      waitpid(child, &status, 0) != child) {
    return 126;
  }
  long long took = now_ns() - start;
  printf("%lld\n", took);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}
