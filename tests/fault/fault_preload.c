// SPDX-License-Identifier: Apache-2.0
//
// tests: stands before the C library in a whole process and fails its calls.
//
// FAULT_KIND is `alloc`, `file`, `map` or `thread`; the calls of that kind are
// counted, and the FAULT_NTH fails (with FAULT_FROM=1 all from there on). At
// the end the count is written to the file FAULT_COUNT. Read by run_faults.py.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// What malloc is called inside glibc, so that none of it is asked of dlsym.
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void* __libc_memalign(size_t align, size_t bytes);

enum { NO_KIND, ALLOC, FILES, MAP, THREAD };

static struct {
  int kind;
  bool from_on;
  unsigned long nth;
  atomic_ulong count;
} fault;

static bool fails(int kind) {
  if (fault.kind != kind) return false;
  unsigned long n = atomic_fetch_add(&fault.count, 1) + 1;
  return fault.nth != 0 && (fault.from_on ? n >= fault.nth : n == fault.nth);
}

__attribute__((constructor)) static void begin(void) {
  static const char* const kinds[] = {"", "alloc", "file", "map", "thread"};
  const char* kind = getenv("FAULT_KIND");
  const char* nth = getenv("FAULT_NTH");
  const char* from = getenv("FAULT_FROM");
  fault.nth = nth ? strtoul(nth, NULL, 10) : 0;
  fault.from_on = from && from[0] == '1';
  for (int i = ALLOC; kind && i <= THREAD; i++) {
    if (strcmp(kind, kinds[i]) == 0) fault.kind = i;
  }
}

__attribute__((destructor)) static void end(void) {
  fault.kind = NO_KIND;
  const char* path = getenv("FAULT_COUNT");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%lu\n", atomic_load(&fault.count));
  fclose(file);
}

// The next definition of a function, as a pointer to one.
static void next_of(const char* name, void* out_function) {
  void* found = dlsym(RTLD_NEXT, name);
  memcpy(out_function, &found, sizeof(found));
}

// ---- Memory ----

void* malloc(size_t bytes) {
  if (!fails(ALLOC)) return __libc_malloc(bytes);
  errno = ENOMEM;
  return NULL;
}

void* calloc(size_t count, size_t bytes) {
  if (!fails(ALLOC)) return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return NULL;
}

void* realloc(void* memory, size_t bytes) {
  if (!fails(ALLOC)) return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return NULL;
}

int posix_memalign(void** out_memory, size_t align, size_t bytes) {
  if (fails(ALLOC)) return ENOMEM;
  *out_memory = __libc_memalign(align, bytes);
  return *out_memory ? 0 : ENOMEM;
}

void* aligned_alloc(size_t align, size_t bytes) {
  if (!fails(ALLOC)) return __libc_memalign(align, bytes);
  errno = ENOMEM;
  return NULL;
}

void* mmap(void* at, size_t bytes, int rights, int flags, int file,
           off_t offset) {
  static void* (*next)(void*, size_t, int, int, int, off_t);
  if (next == NULL) next_of("mmap", &next);
  if (!fails(MAP)) return next(at, bytes, rights, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

int mprotect(void* at, size_t bytes, int rights) {
  static int (*next)(void*, size_t, int);
  if (next == NULL) next_of("mprotect", &next);
  if (!fails(MAP)) return next(at, bytes, rights);
  errno = ENOMEM;
  return -1;
}

// ---- Files ----

static int refuse(void) {
  errno = EIO;
  return -1;
}

#define OPENS(name, at_param, at_name)                                      \
  int name(at_param const char* path, int flags, ...) {                     \
    static int (*next)(at_param const char*, int, ...);                     \
    if (next == NULL) next_of(#name, &next);                                \
    va_list list;                                                           \
    va_start(list, flags);                                                  \
    mode_t mode =                                                           \
        flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(list, unsigned) : 0; \
    va_end(list);                                                           \
    return fails(FILES) ? refuse() : next(at_name path, flags, mode);       \
  }
#define COMMA ,
OPENS(open, , )
OPENS(open64, , )
OPENS(openat, int folder COMMA, folder COMMA)
OPENS(openat64, int folder COMMA, folder COMMA)

#define WRAP(type, name, params, args)          \
  type name params {                            \
    static type(*next) params;                  \
    if (next == NULL) next_of(#name, &next);    \
    return fails(FILES) ? refuse() : next args; \
  }
WRAP(ssize_t, read, (int file, void* to, size_t bytes), (file, to, bytes))
WRAP(ssize_t, pread, (int file, void* to, size_t bytes, off_t at),
     (file, to, bytes, at))
WRAP(ssize_t, write, (int file, const void* from, size_t bytes),
     (file, from, bytes))
WRAP(int, fsync, (int file), (file))
WRAP(int, fstat, (int file, struct stat* out), (file, out))
WRAP(int, stat, (const char* path, struct stat* out), (path, out))
WRAP(int, ftruncate, (int file, off_t bytes), (file, bytes))
WRAP(int, rename, (const char* from, const char* to), (from, to))
WRAP(int, link, (const char* from, const char* to), (from, to))
WRAP(int, linkat, (int a, const char* from, int b, const char* to, int flags),
     (a, from, b, to, flags))
WRAP(int, mkdir, (const char* path, mode_t mode), (path, mode))

FILE* fopen(const char* path, const char* mode) {
  static FILE* (*next)(const char*, const char*);
  if (next == NULL) next_of("fopen", &next);
  if (!fails(FILES)) return next(path, mode);
  errno = EIO;
  return NULL;
}

DIR* opendir(const char* path) {
  static DIR* (*next)(const char*);
  if (next == NULL) next_of("opendir", &next);
  if (!fails(FILES)) return next(path);
  errno = EIO;
  return NULL;
}

// ---- Threads ----

int pthread_create(pthread_t* out_thread, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* user) {
  static int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                     void*);
  if (next == NULL) next_of("pthread_create", &next);
  return fails(THREAD) ? EAGAIN : next(out_thread, attributes, start, user);
}
