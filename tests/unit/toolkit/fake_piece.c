// SPDX-License-Identifier: Apache-2.0
//
// toolkit: a library that stands in for one of a toolkit when loading is
// tested. Built several times (CMakeLists.txt):
//
//   FAKE_RELEASE   the release text inside it, e.g. "13.0"
//   FAKE_CALL      the minor of 13 that nvrtcVersion answers
//   FAKE_IR        the major of NVVM IR that nvvmIRVersion answers, with 4
//   FAKE_BUILTINS  a library that it opens by name when it is used
//   FAKE_NEEDS     a function of another library that it calls
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define FAKE_EXPORT __attribute__((visibility("default"), used))

// Each piece's own: it is read from the file and exported by none.
static const char kiln_fake_release[] __attribute__((used)) =
    "Cuda compilation tools, release " FAKE_RELEASE ", V" FAKE_RELEASE ".88";

FAKE_EXPORT int FAKE_FUNCTION(void);

#if defined(FAKE_NEEDS)
int FAKE_NEEDS(void);
int FAKE_FUNCTION(void) {
  return 1 + FAKE_NEEDS();
}
#else
int FAKE_FUNCTION(void) {
  return 1;
}
#endif

#if defined(FAKE_CALL)
FAKE_EXPORT int nvrtcVersion(int* major, int* minor);
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = FAKE_CALL;
  return 0;
}
#endif

#if defined(FAKE_IR)
FAKE_EXPORT int nvvmIRVersion(int* major, int* minor, int* debug_major,
                              int* debug_minor);
int nvvmIRVersion(int* major, int* minor, int* debug_major, int* debug_minor) {
  *major = FAKE_IR;
  *minor = 4;
  *debug_major = 3;
  *debug_minor = 1;
  return 0;
}
#endif

#if defined(FAKE_BUILTINS)
FAKE_EXPORT int kiln_fake_compile(void);
int kiln_fake_compile(void) {
  return dlopen(FAKE_BUILTINS, RTLD_NOW) != NULL;
}
#endif
