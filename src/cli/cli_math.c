// SPDX-License-Identifier: Apache-2.0
//
// cli: functions of the system's libm, which is opened when one is called.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_math.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kLibrary[] = "libm.so.6";

// Resolves a function of libm. Threads may race to resolve it: all get the same
// address.
typedef _Atomic(void*) place_t;

// A program linked with libm would not have started either.
static _Noreturn void math_give_up(const char* name) {
  const char* why = dlerror();
  (void)fprintf(stderr, "kiln: %s of %s cannot be called: %s\n", name, kLibrary,
                why != NULL ? why : "the symbol is missing");
  _Exit(EXIT_FAILURE);
}

static void* open_place(place_t* place, const char* name) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  void* found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) math_give_up(name);
  atomic_store_explicit(place, found, memory_order_release);
  return found;
}

static inline void* math_at(place_t* place, const char* name) {
  void* found = atomic_load_explicit(place, memory_order_acquire);
  return found != NULL ? found : open_place(place, name);
}

// POSIX gives pointers to functions and to objects the same representation.
#define CALL(type, name, parameters, arguments) \
  type kilni_cli_math_##name parameters {       \
    static place_t place;                       \
    void* found = math_at(&place, #name);       \
    type(*call) parameters;                     \
    memcpy(&call, &found, sizeof(call));        \
    return call arguments;                      \
  }

CALL(double, ceil, (double x), (x))
CALL(double, cos, (double x), (x))
CALL(double, floor, (double x), (x))
CALL(double, fma, (double x, double y, double z), (x, y, z))
CALL(double, pow, (double x, double y), (x, y))
CALL(double, rint, (double x), (x))
CALL(double, sin, (double x), (x))
CALL(double, trunc, (double x), (x))
CALL(float, ceilf, (float x), (x))
CALL(float, floorf, (float x), (x))
CALL(float, fmaf, (float x, float y, float z), (x, y, z))
CALL(float, rintf, (float x), (x))
CALL(float, truncf, (float x), (x))
CALL(int, fegetround, (void), ())
