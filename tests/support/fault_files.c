// SPDX-License-Identifier: Apache-2.0
//
// support: operations on files as points that can fail.
#define _GNU_SOURCE  // syscall
#include "fault_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// What is armed. The functions below have the system's own signatures.
static struct {
  bool armed;
  bool from_on;
  int error;
  pthread_t thread;
  uint64_t nth;
  uint64_t met;
  long open;  // files and folders
} g_state;

// Counts an operation; true if it is one to fail.
static bool is_due(void) {
  if (!g_state.armed || !pthread_equal(pthread_self(), g_state.thread)) {
    return false;
  }
  uint64_t at = ++g_state.met;
  if (g_state.nth == 0 || at < g_state.nth) return false;
  if (at > g_state.nth && !g_state.from_on) return false;
  errno = g_state.error;
  return true;
}

static void note_open(bool opened) {
  if (opened && g_state.armed) g_state.open++;
}

static void note_close(void) {
  if (g_state.armed) g_state.open--;
}

#define WRAPPED(result, name, params) \
  result __real_##name params;        \
  result __wrap_##name params;        \
  result __wrap_##name params

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, mode_t mode);
int __wrap_open(const char* path, int flags, mode_t mode) {
  if (is_due()) return -1;
  int file = __real_open(path, flags, mode);
  note_open(file >= 0);
  return file;
}

WRAPPED(int, close, (int file)) {
  note_close();
  return __real_close(file);
}

WRAPPED(ssize_t, read, (int file, void* data, size_t size)) {
  return is_due() ? -1 : __real_read(file, data, size);
}

WRAPPED(ssize_t, pread, (int file, void* data, size_t size, off_t at)) {
  return is_due() ? -1 : __real_pread(file, data, size, at);
}

WRAPPED(int, fstat, (int file, struct stat* info)) {
  return is_due() ? -1 : __real_fstat(file, info);
}

WRAPPED(int, stat, (const char* path, struct stat* info)) {
  return is_due() ? -1 : __real_stat(path, info);
}

WRAPPED(int, fstatat,
        (int folder, const char* path, struct stat* info, int flags)) {
  return is_due() ? -1 : __real_fstatat(folder, path, info, flags);
}

#if defined(SYS_openat2)
// The C library has no name for it.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d);
long __wrap_syscall(long number, long a, long b, long c, long d) {
  if (number == SYS_openat2 && is_due()) return -1;
  long result = __real_syscall(number, a, b, c, d);
  if (number == SYS_openat2) note_open(result >= 0);
  return result;
}
#endif

WRAPPED(int, access, (const char* path, int mode)) {
  return is_due() ? -1 : __real_access(path, mode);
}

WRAPPED(ssize_t, readlink, (const char* path, char* target, size_t size)) {
  return is_due() ? -1 : __real_readlink(path, target, size);
}

WRAPPED(char*, realpath, (const char* path, char* resolved)) {
  return is_due() ? NULL : __real_realpath(path, resolved);
}

WRAPPED(DIR*, opendir, (const char* path)) {
  if (is_due()) return NULL;
  DIR* folder = __real_opendir(path);
  note_open(folder != NULL);
  return folder;
}

WRAPPED(struct dirent*, readdir, (DIR * folder)) {
  return is_due() ? NULL : __real_readdir(folder);
}

WRAPPED(int, closedir, (DIR * folder)) {
  note_close();
  return __real_closedir(folder);
}

// ---- Points ----

static void arm(void* user, uint64_t nth, bool from_on) {
  const fault_files_t* files = user;
  memset(&g_state, 0, sizeof(g_state));
  g_state.error = files->error;
  g_state.thread = pthread_self();
  g_state.nth = nth;
  g_state.from_on = from_on;
  g_state.armed = true;
}

static uint64_t disarm(void* user) {
  (void)user;
  g_state.armed = false;
  return g_state.met;
}

static const char* problem(void* user) {
  fault_files_t* files = user;
  if (g_state.open == 0) return NULL;
  snprintf(files->message, sizeof(files->message),
           "%ld files or folders were opened and not closed", g_state.open);
  return files->message;
}

fault_points_t fault_files_points(fault_files_t* files) {
  return (fault_points_t){"operation on a file", arm, disarm, problem, files};
}
