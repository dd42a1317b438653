// SPDX-License-Identifier: Apache-2.0
//
// live: two copies of Kiln in one process and on one device: this program's
// own, linked into it, and the shared library, opened beside it. Both launch
// kernels in turn, on a GPU on each other's stream and memory too, and are
// released in every order; a host program's current context stays.
//
//   live_two_copies [DEVICE [LIBRARY]]    cuda:0, and libkiln.so of the build
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

enum { WORDS = 1000, ROUNDS = 20, PATH_BYTES = 4096 };

// p[i] += v
static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 v) {\n"
    ".reg .pred %p1;\n.reg .b32 %r<7>;\n.reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\n"
    "ld.param.u32 %r2, [v];\nmov.u32 %r3, %ctaid.x;\n"
    "mov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\n"
    "mad.lo.s32 %r5, %r3, %r4, %r5;\nsetp.ge.u32 %p1, %r5, %r1;\n"
    "@%p1 ret;\ncvta.to.global.u64 %d2, %d1;\n"
    "mul.wide.u32 %d3, %r5, 4;\nadd.s64 %d4, %d2, %d3;\n"
    "ld.global.u32 %r6, [%d4];\nadd.u32 %r6, %r6, %r2;\n"
    "st.global.u32 [%d4], %r6;\nret;\n}\n";

static int failures;

// What a copy is asked for: functions of include/kiln/.
#define FUNCTIONS(X)     \
  X(status_message)      \
  X(status_free)         \
  X(runtime_create)      \
  X(runtime_release)     \
  X(runtime_open_device) \
  X(device_release)      \
  X(device_context)      \
  X(stream_create)       \
  X(stream_adopt)        \
  X(stream_handle)       \
  X(stream_synchronize)  \
  X(stream_wait_stream)  \
  X(stream_release)      \
  X(buffer_create)       \
  X(buffer_adopt)        \
  X(buffer_address)      \
  X(buffer_read)         \
  X(buffer_fill_async)   \
  X(buffer_release)      \
  X(module_load)         \
  X(module_release)      \
  X(kernel_create)       \
  X(kernel_launch)       \
  X(kernel_release)

// One copy, and what it has on the device. one-thread
typedef struct copy_t {
#define FIELD(name) __typeof__(&kiln_##name) name;
  FUNCTIONS(FIELD)
#undef FIELD
  void* library;  // NULL: linked
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  kiln_buffer_t* buffer;
  uint32_t expected;  // in each word of the buffer
} copy_t;

static bool is(bool good, const char* what, int line) {
  if (good) return true;
  printf("live_two_copies.c:%d: %s\n", line, what);
  failures++;
  return false;
}

static bool ok(const copy_t* copy, kiln_status_t status, const char* what,
               int line) {
  if (kiln_status_is_ok(status)) return true;
  printf("live_two_copies.c:%d: %s: %s\n", line, what,
         copy->status_message(status));
  copy->status_free(status);
  failures++;
  return false;
}

#define IS(condition)  is((condition), #condition, __LINE__)
#define OK(copy, call) ok((copy), (copy)->call, #call, __LINE__)

// ---- The host program ----

// Keeps the driver running, and has a way of its own to it. one-thread
typedef struct host_t {
  const char* device_name;
  char library[PATH_BYTES];
  bool soft;
  kiln_cuda_table_t cu;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
} host_t;

static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  ((host_t*)user)->cu = *inout_table;
  return kiln_ok();
}

static kiln_cu_context_t current(const host_t* host) {
  kiln_cu_context_t context = NULL;
  IS(host->cu.cuCtxGetCurrent(&context) == KILN_CU_SUCCESS);
  return context;
}

static bool host_begin(host_t* host) {
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = keep_table;
  hooks.user = host;
  kiln_status_t status =
      kilni_runtime_create_with(NULL, &hooks, &host->runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(host->runtime, host->device_name,
                                      &host->device);
  }
  if (kiln_status_is_ok(status)) return true;
  printf("skipped: %s\n", kiln_status_message(status));
  kiln_status_free(status);
  kiln_runtime_release(host->runtime);
  return false;
}

// ---- The copies ----

static void fill_linked(copy_t* copy) {
  memset(copy, 0, sizeof(*copy));
#define SET(name) copy->name = kiln_##name;
  FUNCTIONS(SET)
#undef SET
}

static bool fill_opened(copy_t* copy, const char* path) {
  memset(copy, 0, sizeof(*copy));
  copy->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (copy->library == NULL) printf("%s\n", dlerror());
  if (!IS(copy->library != NULL)) return false;
  void* found = NULL;
  bool apart = true;
#define SET(name)                                  \
  found = dlsym(copy->library, "kiln_" #name);     \
  memcpy(&copy->name, &found, sizeof(copy->name)); \
  apart = apart && found != NULL && copy->name != kiln_##name;
  FUNCTIONS(SET)
#undef SET
  return IS(apart);
}

static bool open_copy(copy_t* copy, const host_t* host) {
  kiln_bytes_view_t image = {(const uint8_t*)kPtx, strlen(kPtx)};
  copy->expected = 0;
  return OK(copy, runtime_create(NULL, &copy->runtime)) &&
         OK(copy, runtime_open_device(copy->runtime, host->device_name,
                                      &copy->device)) &&
         OK(copy,
            module_load(copy->device, image, NULL, NULL, &copy->module)) &&
         OK(copy, kernel_create(copy->module, "add", &copy->kernel)) &&
         OK(copy, stream_create(copy->device, NULL, &copy->stream)) &&
         OK(copy,
            buffer_create(copy->device, WORDS * 4, NULL, &copy->buffer)) &&
         OK(copy,
            buffer_fill_async(copy->buffer, copy->stream, 0, WORDS * 4, 0, 4));
}

static void launch(copy_t* copy, kiln_stream_t* stream, kiln_buffer_t* buffer,
                   uint32_t value) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 128;
  config.grid[0] = (WORDS + 127) / 128;
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer), kiln_arg_u32(WORDS),
                                 kiln_arg_u32(value)};
  OK(copy, kernel_launch(copy->kernel, stream, &config, arguments, 3));
}

static void check_words(copy_t* copy) {
  static uint32_t words[WORDS];
  OK(copy, stream_synchronize(copy->stream));
  OK(copy, buffer_read(copy->buffer, 0, sizeof(words), words));
  int wrong = 0;
  for (int i = 0; i < WORDS; i++) wrong += words[i] != copy->expected;
  IS(wrong == 0);
}

static void use(copy_t* copy, uint32_t value) {
  launch(copy, copy->stream, copy->buffer, value);
  copy->expected += value;
}

// One copy works on the other's stream and memory, as on a host program's.
static void use_others(copy_t* copy, copy_t* other) {
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* buffer = NULL;
  if (OK(copy, stream_adopt(copy->device, other->stream_handle(other->stream),
                            NULL, &stream)) &&
      OK(copy, buffer_adopt(copy->device, other->buffer_address(other->buffer),
                            WORDS * 4, NULL, &buffer))) {
    launch(copy, stream, buffer, 100);
    OK(copy, stream_wait_stream(copy->stream, stream));
    OK(copy, stream_wait_stream(stream, copy->stream));
    other->expected += 100;
  }
  copy->buffer_release(buffer);
  copy->stream_release(stream);
}

// Each takes one thing away; every order of the five is right.
static void release_one(copy_t* copy, int which) {
  switch (which) {
    case 0:
      copy->runtime_release(copy->runtime);
      break;
    case 1:
      copy->device_release(copy->device);
      break;
    case 2:
      copy->buffer_release(copy->buffer);
      break;
    case 3:
      copy->stream_release(copy->stream);
      break;
    case 4:
      copy->kernel_release(copy->kernel);
      break;
    default:
      copy->module_release(copy->module);
      break;
  }
}

enum { THINGS = 6, ORDERS = 4 };

static void release_copy(copy_t* copy, int first) {
  for (int i = 0; i < THINGS; i++) release_one(copy, (first + i) % THINGS);
}

static void release_both(copy_t copies[2], int order) {
  if (order < 2) {  // one, while the other works on
    copy_t* left = &copies[1 - order];
    use(left, 7);
    release_copy(&copies[order], order);
    use(left, 8);
    check_words(left);
    release_copy(left, 3);
    return;
  }
  for (int i = 0; i < THINGS; i++) {  // in turn
    release_one(&copies[order % 2], i);
    release_one(&copies[1 - order % 2], THINGS - 1 - i);
  }
}

static void both(const host_t* host, int order) {
  copy_t copies[2];
  fill_linked(&copies[0]);
  if (!fill_opened(&copies[1], host->library)) return;
  kiln_cu_context_t before = current(host);
  bool good = open_copy(&copies[order % 2], host) &&
              open_copy(&copies[1 - order % 2], host);
  if (good && !host->soft) {
    IS(copies[0].device_context(copies[0].device) ==
       copies[1].device_context(copies[1].device));
  }
  for (uint32_t round = 0; good && round < ROUNDS; round++) {
    use(&copies[round % 2], round);
    use(&copies[1 - round % 2], 2 * round);
    if (host->soft || round % 5 != 0) continue;
    use_others(&copies[0], &copies[1]);
    use_others(&copies[1], &copies[0]);
  }
  if (good) {
    check_words(&copies[0]);
    check_words(&copies[1]);
    IS(current(host) == before);
    release_both(copies, order);
  }
  IS(current(host) == before);
  IS(dlclose(copies[1].library) == 0);
}

// The library beside this program, in the folder of the build.
static bool find_library(host_t* host, const char* given) {
  if (given != NULL) {
    return snprintf(host->library, PATH_BYTES, "%s", given) < PATH_BYTES;
  }
  char path[PATH_BYTES];
  ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (size < 0) return false;
  path[size] = 0;
  for (int up = 0; up < 3; up++) {  // tests/live/live_two_copies
    char* slash = strrchr(path, '/');
    if (slash == NULL) return false;
    *slash = 0;
  }
  int made =
      snprintf(host->library, PATH_BYTES, "%.4000s/src/libkiln.so.0", path);
  return made > 0 && made < PATH_BYTES;
}

int main(int argc, char** argv) {
  static host_t host;
  host.device_name = argc > 1 ? argv[1] : "cuda:0";
  host.soft = strcmp(host.device_name, "soft") == 0;
  if (!IS(find_library(&host, argc > 2 ? argv[2] : NULL))) return 1;
  if (!host_begin(&host)) return 77;
  kiln_cu_context_t own = kiln_device_context(host.device);
  for (int i = 0; i < 2 * ORDERS; i++) {
    // Without a current context, and with one.
    IS(host.cu.cuCtxSetCurrent(i < ORDERS ? NULL : own) == KILN_CU_SUCCESS);
    both(&host, i % ORDERS);
    IS(current(&host) == (i < ORDERS ? NULL : own));
  }
  IS(host.cu.cuCtxSetCurrent(NULL) == KILN_CU_SUCCESS);
  kiln_device_release(host.device);
  kiln_runtime_release(host.runtime);
  printf("%s: %d runs of two copies, %d failures\n", host.device_name,
         2 * ORDERS, failures);
  return failures == 0 ? 0 : 1;
}
