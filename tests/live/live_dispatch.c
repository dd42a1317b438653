// SPDX-License-Identifier: Apache-2.0
//
// live: dispatches on a real driver: every kind of binding, prepared runs,
// batches, traps, grid barriers, graphs, eight threads, a time limit; each in a
// process of its own, with the device's context current and with none.
//
//   live_dispatch             everything on cuda:0; exit 77 without a GPU
//   live_dispatch soft        the same on the software device
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device_inside.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

extern char** environ;

enum { N = 100003, LANES = 16, THREADS = 8, ROUNDS = 20 };

static atomic_int failures;

static bool is(bool good, const char* what, int line) {
  if (good) return true;
  printf("live_dispatch.c:%d: %s\n", line, what);
  atomic_fetch_add(&failures, 1);
  return false;
}

static bool ok(kiln_status_t status, const char* what, int line) {
  if (kiln_status_is_ok(status)) return true;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("live_dispatch.c:%d: %s: %s\n", line, what, text);
  kiln_status_free(status);
  atomic_fetch_add(&failures, 1);
  return false;
}

static bool refused(kiln_status_t status, kiln_status_code_t code, int line) {
  char text[2048];
  if (kiln_status_code(status) == code) {
    kiln_status_free(status);
    return true;
  }
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("live_dispatch.c:%d: not %s: %s\n", line, kiln_status_code_name(code),
         text);
  kiln_status_free(status);
  atomic_fetch_add(&failures, 1);
  return false;
}

#define IS(condition)       is((condition), #condition, __LINE__)
#define OK(call)            ok((call), #call, __LINE__)
#define REFUSED(call, code) refused((call), KILN_STATUS_##code, __LINE__)

static const char kFour[] =
    "program four(x: in u32[], y: in u32[length(x)], k: uniform u32[1],\n"
    "             z: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; if i % 3u32 != 0u32 {\n"
    "  z[i] = x[i] + y[i] * k[0]; } }\n";
static const char kStep[] =
    "program step(x: inout u32[]) work length(x)\n"
    "{ let i = global_id.x; x[i] = x[i] * 2u32 + 1u32; }\n";
static const char kTrapping[] =
    "program trapping(x: in u32[], y: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; if x[i] == 7u32 { trap(3, u64(i)); }\n"
    "  y[i] = x[i]; }\n";
static const char kMeeting[] =
    "program meeting(x: inout u32[], y: out u32[length(x)])\n"
    "  work length(x) block 64\n"
    "{ let i = global_id.x; x[i] = i; grid_barrier;\n"
    "  y[i] = x[length(x) - 1u32 - i]; }\n";
static const char kTurn[] =
    "program turn(x: in u32[], y: out u32[length(x)]) work length(x) block 64\n"
    "{ let i = global_id.x; y[i] = x[length(x) - 1u32 - i] * 3u32 + i; }\n";
// Nearly all of its threads return at once.
static const char kFirst[] =
    "program first(x: inout u32[]) work length(x) block 64\n"
    "{ let i = global_id.x; if i > 3u32 { return; } x[i] = x[i] + 1u32; }\n";
static const char kEndless[] =
    "program endless(x: inout u32[]) work 1\n"
    "{ var a = 0u32; while a < 4000000000u32 {\n"
    "  a = atomic_add(x[0], 1u32); if a > 3000000000u32 { x[0] = 0u32; } } }\n";

// One device and what is made on it. thread-safe once it is filled
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_cuda_table_t cu;
  bool soft;
} live_t;

static kiln_pipeline_t* pipeline_of(live_t* live, const char* text) {
  kiln_program_t* program = NULL;
  kiln_pipeline_t* pipeline = NULL;
  kiln_string_view_t view = {text, strlen(text)};
  if (!OK(kiln_program_parse(view, NULL, NULL, &program))) return NULL;
  OK(kiln_pipeline_create(live->dispatcher, program, NULL, &pipeline));
  kiln_program_release(program);
  return pipeline;
}

static uint32_t* words(uint32_t first) {
  uint32_t* out = malloc(N * sizeof(*out));
  for (uint32_t i = 0; i < N; i++) out[i] = first + i;
  return out;
}

static uint32_t wrong_four(const uint32_t* z) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < N; i++) {
    uint32_t want = i % 3 != 0 ? i + (1000 + i) * 3 : 0;
    wrong += z[i] != want;
  }
  return wrong;
}

// ---- Stages ----

static void host_bindings(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kFour);
  uint32_t* x = words(0);
  uint32_t* y = words(1000);
  uint32_t* z = words(77);
  uint32_t k = 3;
  if (pipeline == NULL) return;
  kiln_binding_t bindings[] = {
      kiln_bind_host_in(x, N * 4), kiln_bind_host_in(y, N * 4),
      kiln_bind_host_in(&k, 4), kiln_bind_host_out(z, N * 4)};
  kiln_stream_t* mine = NULL;
  OK(kiln_stream_create(live->device, NULL, &mine));
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.timed = KILN_SWITCH_ON;
  for (int round = 0; round < 6; round++) {
    kiln_pending_t* pending = NULL;
    kiln_pending_times_t times = {0, 0, 0};
    memset(z, 0xcd, N * 4);
    OK(kiln_pipeline_dispatch(pipeline, round % 2 == 0 ? NULL : mine, bindings,
                              4, &options, &pending));
    OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    OK(kiln_pending_times(pending, &times));
    IS(times.device_ns > 0);
    kiln_pending_release(pending);
    IS(wrong_four(z) == 0);
  }
  kiln_stream_release(mine);
  kiln_pipeline_release(pipeline);
  free(x);
  free(y);
  free(z);
}

static void device_bindings(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kFour);
  uint32_t* x = words(0);
  uint32_t* y = words(1000);
  uint32_t* z = words(0);
  uint32_t k = 3;
  uint64_t address = 0;
  kiln_resident_t r[3];
  kiln_buffer_t* buffer = NULL;
  kiln_prepared_t* prepared = NULL;
  if (pipeline == NULL) return;
  for (int i = 0; i < 3; i++) {
    OK(kiln_resident_allocate(live->dispatcher, N * 4, &r[i]));
  }
  OK(kiln_resident_upload(live->dispatcher, NULL, r[0], 0, N * 4, x));
  OK(kiln_buffer_create(live->device, N * 4, NULL, &buffer));
  OK(kiln_buffer_write(buffer, 0, N * 4, y));
  OK(kiln_resident_address(live->dispatcher, r[2], &address));
  kiln_binding_t bindings[] = {
      kiln_bind_resident(r[0]), kiln_bind_buffer(buffer),
      kiln_bind_host_in(&k, 4), kiln_bind_pointer(address, N * 4)};
  OK(kiln_pipeline_dispatch(pipeline, NULL, bindings, 4, NULL, NULL));
  OK(kiln_resident_download(live->dispatcher, NULL, r[2], 0, N * 4, z));
  IS(wrong_four(z) == 0);
  bindings[2] = kiln_bind_static(&k, 4);
  bindings[3] = kiln_bind_resident(r[1]);
  OK(kiln_pipeline_prepare(pipeline, bindings, 4, NULL, &prepared));
  for (int i = 0; i < ROUNDS; i++) OK(kiln_prepared_run(prepared, NULL));
  OK(kiln_resident_download(live->dispatcher, NULL, r[1], 0, N * 4, z));
  IS(wrong_four(z) == 0);
  OK(kiln_resident_free(live->dispatcher, r[1]));
  REFUSED(kiln_prepared_run(prepared, NULL), INVALID_STATE);
  kiln_prepared_release(prepared);
  OK(kiln_resident_free(live->dispatcher, r[0]));
  OK(kiln_resident_free(live->dispatcher, r[2]));
  REFUSED(kiln_pipeline_dispatch(pipeline, NULL, bindings, 4, NULL, NULL),
          INVALID_ARGUMENT);
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  kiln_buffer_release(buffer);
  kiln_pipeline_release(pipeline);
  free(x);
  free(y);
  free(z);
}

static void batches(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kStep);
  uint32_t* x[LANES];
  kiln_binding_t bindings[LANES];
  if (pipeline == NULL) return;
  for (uint32_t i = 0; i < LANES; i++) {
    x[i] = words(i * 7);
    bindings[i] = kiln_bind_host_inout(x[i], N * 4);
  }
  kiln_dispatch_batch_t batch = kiln_dispatch_batch_default();
  batch.binding_count = 1;
  batch.bindings = bindings;
  batch.count = LANES;
  for (int round = 0; round < 3; round++) {
    kiln_pending_t* pending = NULL;
    OK(kiln_pipeline_dispatch_batch(pipeline, NULL, &batch, NULL, &pending));
    OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
  }
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < LANES; i++) {
    for (uint32_t k = 0; k < N; k++) wrong += x[i][k] != (i * 7 + k) * 8 + 7;
    free(x[i]);
  }
  IS(wrong == 0);
  kiln_pipeline_release(pipeline);
}

static void traps(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kTrapping);
  uint32_t* x = words(100);
  uint32_t* y = words(0);
  if (pipeline == NULL) return;
  kiln_binding_t bindings[] = {kiln_bind_host_in(x, N * 4),
                               kiln_bind_host_out(y, N * 4)};
  for (int round = 0; round < ROUNDS; round++) {
    kiln_pending_t* pending = NULL;
    kiln_trap_t trap;
    bool traps_now = round % 2 == 0;
    x[4321] = traps_now ? 7 : 8;
    OK(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
    if (traps_now) {
      REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), LAUNCH_FAILED);
    } else {
      OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
      IS(memcmp(x, y, N * 4) == 0);
    }
    IS(kiln_pending_trap(pending, &trap) == traps_now);
    IS(trap.address == (traps_now ? 4321 : 0));
    IS(trap.tag == (traps_now ? 3 : 0));
    kiln_pending_release(pending);
  }
  // Nobody asks: the record goes back when the work is done.
  for (int i = 0; i < 200; i++) {
    OK(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
  }
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  kiln_pipeline_release(pipeline);
  free(x);
  free(y);
}

static void grid_barriers(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kMeeting);
  enum { M = 64 * 100 };
  static uint32_t y[M];
  kiln_resident_t x, out;
  kiln_prepared_t* prepared = NULL;
  kiln_stream_t* mine = NULL;
  kiln_stream_t* own = NULL;
  if (pipeline == NULL) return;
  IS(kiln_dispatcher_has_grid_barrier(live->dispatcher));
  IS(kiln_pipeline_info(pipeline)->grid_barrier == 1);
  OK(kiln_stream_create(live->device, NULL, &mine));
  OK(kiln_dispatcher_stream(live->dispatcher, 0, &own));
  OK(kiln_resident_allocate(live->dispatcher, sizeof(y), &x));
  OK(kiln_resident_allocate(live->dispatcher, sizeof(y), &out));
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(out)};
  OK(kiln_pipeline_prepare(pipeline, bindings, 2, NULL, &prepared));
  for (int i = 0; i < ROUNDS; i++) {
    kiln_stream_t* stream = i % 3 == 0 ? mine : NULL;
    OK(kiln_prepared_run(prepared, stream));
    if (stream != NULL) OK(kiln_stream_wait_stream(own, mine));
    OK(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
    OK(kiln_stream_wait_stream(mine, own));
  }
  OK(kiln_resident_download(live->dispatcher, NULL, out, 0, sizeof(y), y));
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < M; i++) wrong += y[i] != M - 1 - i;
  IS(wrong == 0);
  kiln_prepared_release(prepared);
  OK(kiln_resident_free(live->dispatcher, x));
  OK(kiln_resident_free(live->dispatcher, out));
  kiln_stream_release(mine);
  kiln_pipeline_release(pipeline);
}

static void graphs(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kStep);
  uint32_t* x = words(0);
  kiln_resident_t r;
  kiln_stream_t* stream = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_builder_options_t how = kiln_graph_builder_options_default();
  if (pipeline == NULL) return;
  OK(kiln_resident_allocate(live->dispatcher, N * 4, &r));
  OK(kiln_resident_upload(live->dispatcher, NULL, r, 0, N * 4, x));
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  OK(kiln_stream_create(live->device, NULL, &stream));
  how.stream = stream;
  kiln_binding_t binding = kiln_bind_resident(r);
  OK(kiln_graph_builder_create(live->device, &how, &builder));
  OK(kiln_graph_builder_begin(builder, 0));
  OK(kiln_pipeline_dispatch(pipeline, stream, &binding, 1, NULL, NULL));
  OK(kiln_pipeline_dispatch(pipeline, stream, &binding, 1, NULL, NULL));
  OK(kiln_graph_builder_end(builder));
  OK(kiln_graph_builder_exec(builder, NULL, &exec));
  OK(kiln_graph_exec_launch(exec, stream));
  OK(kiln_stream_synchronize(stream));
  OK(kiln_resident_download(live->dispatcher, NULL, r, 0, N * 4, x));
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < N; i++) wrong += x[i] != i * 4 + 3;
  IS(wrong == 0);
  kiln_graph_exec_release(exec);
  kiln_graph_builder_release(builder);
  kiln_stream_release(stream);
  OK(kiln_resident_free(live->dispatcher, r));
  kiln_pipeline_release(pipeline);
  free(x);
}

// One of eight threads, none of which has a context. one-thread
typedef struct worker_t {
  live_t* live;
  kiln_pipeline_t* step;
  uint32_t number;
  pthread_t thread;
} worker_t;

static void* work(void* user) {
  worker_t* w = user;
  live_t* live = w->live;
  kiln_stream_t* mine = NULL;
  uint32_t* x = words(w->number);
  OK(kiln_stream_create(live->device, NULL, &mine));
  uint32_t scale = 1;
  for (int round = 0; round < 10; round++) {
    kiln_stream_t* stream = (round + (int)w->number) % 2 == 0 ? NULL : mine;
    kiln_resident_t r;
    OK(kiln_resident_allocate(live->dispatcher, N * 4, &r));
    OK(kiln_resident_upload(live->dispatcher, stream, r, 0, N * 4, x));
    kiln_binding_t binding = kiln_bind_resident(r);
    OK(kiln_pipeline_dispatch(w->step, stream, &binding, 1, NULL, NULL));
    OK(kiln_resident_download(live->dispatcher, stream, r, 0, N * 4, x));
    OK(kiln_resident_free(live->dispatcher, r));
    scale *= 2;
  }
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < N; i++) {
    wrong += x[i] != (w->number + i) * scale + scale - 1;
  }
  IS(wrong == 0);
  kiln_stream_release(mine);
  free(x);
  return NULL;
}

static void threads(live_t* live) {
  worker_t workers[THREADS];
  kiln_pipeline_t* pipeline = pipeline_of(live, kStep);
  if (pipeline == NULL) return;
  OK(kiln_dispatcher_warm(live->dispatcher));
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i].live = live;
    workers[i].step = pipeline;
    workers[i].number = i;
    IS(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
  OK(kiln_dispatcher_clean(live->dispatcher));
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(live->dispatcher, &counts);
  IS(counts.residents == 0 && counts.staging_bytes == 0);
  kiln_pipeline_release(pipeline);
}

// Long chains of launches that may start before what is in front of them has
// ended: exact all the same. Each reads what all blocks of the one before have
// written; prepared and checked anew in turns; what is no launch between them.
static void chain(live_t* live, uint32_t count, uint32_t steps) {
  kiln_pipeline_t* turn = pipeline_of(live, kTurn);
  kiln_resident_t r[2];
  kiln_prepared_t* prepared[2] = {NULL, NULL};
  uint32_t* want[2] = {calloc(count, 4), calloc(count, 4)};
  uint32_t* got = calloc(count, 4);
  // Out of memory ends the program; what it holds goes with it.
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
  if (turn == NULL || want[0] == NULL || want[1] == NULL || got == NULL) return;
  kiln_device_info_t const* info = kiln_device_info(live->device);
  IS((kiln_pipeline_info(turn)->waits != 0) == (info->compute_major >= 9));
  for (int k = 0; k < 2; k++) {
    OK(kiln_resident_allocate(live->dispatcher, count * 4, &r[k]));
    OK(kiln_resident_upload(live->dispatcher, NULL, r[k], 0, count * 4, got));
  }
  kiln_binding_t bindings[2][2];
  for (int k = 0; k < 2; k++) {
    bindings[k][0] = kiln_bind_resident(r[k]);
    bindings[k][1] = kiln_bind_resident(r[1 - k]);
    OK(kiln_pipeline_prepare(turn, bindings[k], 2, NULL, &prepared[k]));
  }
  for (uint32_t step = 0; step < steps; step++) {
    uint32_t k = step % 2;
    OK(step % 5 == 4
           ? kiln_pipeline_dispatch(turn, NULL, bindings[k], 2, NULL, NULL)
           : kiln_prepared_run(prepared[k], NULL));
    for (uint32_t i = 0; i < count; i++) {
      want[1 - k][i] = want[k][count - 1 - i] * 3 + i;
    }
    if (step % 97 == 50) {
      kiln_resident_range_t some = {4 * (uint64_t)(step % count), 4};
      OK(kiln_resident_fill(live->dispatcher, NULL, r[1 - k], some, step, 4));
      want[1 - k][step % count] = step;
    } else if (step % 101 == 50) {
      OK(kiln_resident_upload(live->dispatcher, NULL, r[1 - k],
                              4 * (uint64_t)(step % count), 4, &step));
      want[1 - k][step % count] = step;
    }
  }
  OK(kiln_resident_download(live->dispatcher, NULL, r[steps % 2], 0, count * 4,
                            got));
  IS(memcmp(got, want[steps % 2], count * 4) == 0);
  for (int k = 0; k < 2; k++) {
    kiln_prepared_release(prepared[k]);
    OK(kiln_resident_free(live->dispatcher, r[k]));
    free(want[k]);
  }
  free(got);
  kiln_pipeline_release(turn);
}

// A short launch that touches other memory stands between two long ones: the
// second of those waits for the short one alone, which must have waited itself,
// in the threads that return at once as well.
static void short_between(live_t* live, uint32_t count, uint32_t steps) {
  kiln_pipeline_t* turn = pipeline_of(live, kTurn);
  kiln_pipeline_t* first = pipeline_of(live, kFirst);
  kiln_resident_t r[3];
  uint32_t* want[2] = {calloc(count, 4), calloc(count, 4)};
  uint32_t* got = calloc(count, 4);
  if (turn == NULL || first == NULL || want[0] == NULL || want[1] == NULL ||
      got == NULL) {
    // Out of memory ends the program; what it holds goes with it.
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
    return;
  }
  for (int k = 0; k < 3; k++) {
    OK(kiln_resident_allocate(live->dispatcher, count * 4, &r[k]));
    OK(kiln_resident_upload(live->dispatcher, NULL, r[k], 0, count * 4, got));
  }
  kiln_binding_t other = kiln_bind_resident_range(r[2], 0, 4096);
  for (uint32_t step = 0; step < steps; step++) {
    uint32_t k = step % 2;
    kiln_binding_t bindings[2] = {kiln_bind_resident(r[k]),
                                  kiln_bind_resident(r[1 - k])};
    OK(kiln_pipeline_dispatch(turn, NULL, bindings, 2, NULL, NULL));
    OK(kiln_pipeline_dispatch(first, NULL, &other, 1, NULL, NULL));
    for (uint32_t i = 0; i < count; i++) {
      want[1 - k][i] = want[k][count - 1 - i] * 3 + i;
    }
  }
  OK(kiln_resident_download(live->dispatcher, NULL, r[steps % 2], 0, count * 4,
                            got));
  IS(memcmp(got, want[steps % 2], count * 4) == 0);
  OK(kiln_resident_download(live->dispatcher, NULL, r[2], 0, 32, got));
  IS(got[0] == steps && got[3] == steps && got[4] == 0);
  for (int k = 0; k < 3; k++) OK(kiln_resident_free(live->dispatcher, r[k]));
  for (int k = 0; k < 2; k++) free(want[k]);
  free(got);
  kiln_pipeline_release(first);
  kiln_pipeline_release(turn);
}

static void overlap(live_t* live) {
  chain(live, live->soft ? 1000 : 4096, live->soft ? 200 : 10000);
  short_between(live, live->soft ? 2000 : 1 << 20, live->soft ? 20 : 100);
}

// The kernel never ends: the process does, by itself.
static void time_limit(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kEndless);
  if (live->soft) {
    kiln_pipeline_release(pipeline);
    return;
  }
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  kiln_resident_t r;
  kiln_pending_t* pending = NULL;
  bool ready = false;
  if (pipeline == NULL) return;
  options.timeout_ns = 300000000;
  OK(kiln_resident_allocate(live->dispatcher, 16, &r));
  kiln_resident_range_t all = {0, 0};
  OK(kiln_resident_fill(live->dispatcher, NULL, r, all, 0, 4));
  kiln_binding_t binding = kiln_bind_resident(r);
  OK(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &options, &pending));
  REFUSED(kiln_pending_wait(pending, 10000000), TIMED_OUT);
  REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), DEVICE_LOST);
  REFUSED(kiln_pending_query(pending, &ready), DEVICE_LOST);
  REFUSED(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL),
          DEVICE_LOST);
  REFUSED(kiln_dispatcher_synchronize(live->dispatcher), DEVICE_LOST);
  kiln_status_free(kiln_resident_free(live->dispatcher, r));
  kiln_pending_release(pending);
  kiln_pipeline_release(pipeline);
  printf("time_limit: %d failures\n", atomic_load(&failures));
  (void)fflush(stdout);
  _exit(atomic_load(&failures) == 0 ? 0 : 1);
}

static const struct {
  const char* name;
  void (*run)(live_t* live);
} kStages[] = {
    {"host bindings", host_bindings},
    {"device bindings", device_bindings},
    {"batches", batches},
    {"traps", traps},
    {"grid barriers", grid_barriers},
    {"graphs", graphs},
    {"threads", threads},
    {"overlap", overlap},
    {"time limit", time_limit},
};
enum { STAGES = sizeof(kStages) / sizeof(kStages[0]) };

static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  ((live_t*)user)->cu = *inout_table;
  return kiln_ok();
}

static int run_stage(const char* device, int stage, bool current) {
  static live_t live;
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = keep_table;
  hooks.user = &live;
  if (!OK(kilni_runtime_create_with(NULL, &hooks, &live.runtime))) return 1;
  kiln_status_t status =
      kiln_runtime_open_device(live.runtime, device, &live.device);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  live.soft = kiln_device_info(live.device)->kind == KILN_DEVICE_KIND_SOFT;
  if (current) {
    IS(live.cu.cuCtxSetCurrent(kiln_device_context(live.device)) == 0);
  }
  kiln_cu_context_t before = NULL;
  kiln_cu_context_t behind = NULL;
  IS(live.cu.cuCtxGetCurrent(&before) == 0);
  if (OK(kiln_dispatcher_create(live.device, NULL, &live.dispatcher))) {
    kStages[stage].run(&live);
  }
  kiln_dispatcher_release(live.dispatcher);
  IS(live.cu.cuCtxGetCurrent(&behind) == 0);
  IS(before == behind);
  if (current) (void)live.cu.cuCtxSetCurrent(NULL);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  printf("%s on %s: %d failures\n", kStages[stage].name, device,
         atomic_load(&failures));
  return atomic_load(&failures) == 0 ? 0 : 1;
}

// The exit code of another process, or 128 and the signal that ended it.
static int spawn_stage(const char* program, const char* device, int stage,
                       bool current) {
  char number[16];
  char* own = NULL;
  char* where = NULL;
  memcpy(&own, &program, sizeof(own));
  memcpy(&where, &device, sizeof(where));
  (void)snprintf(number, sizeof(number), "%d", stage);
  char word[] = "current";
  char* arguments[] = {own, where, number, current ? word : NULL, NULL};
  pid_t child = 0;
  int ended = 0;
  if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0 ||
      waitpid(child, &ended, 0) != child) {
    return 1;
  }
  return WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  if (argc > 2) return run_stage(device, argv[2][0] - '0', argc > 3);
  int bad = 0;
  // A host program may have the context current, or none.
  for (int i = 0; i < 2 * STAGES; i++) {
    int code = spawn_stage(argv[0], device, i / 2, i % 2 != 0);
    if (code == 77) return 77;
    if (code != 0) {
      printf("%s %s a current context ended with %d\n", kStages[i / 2].name,
             i % 2 != 0 ? "with" : "without", code);
      bad++;
    }
  }
  printf("%d of %d stages failed\n", bad, 2 * (int)STAGES);
  return bad == 0 ? 0 : 1;
}
