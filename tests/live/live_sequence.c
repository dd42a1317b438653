// SPDX-License-Identifier: Apache-2.0
//
// live: sequences and replays on a real driver: on streams and as graphs, again
// and again, bound anew between runs, with loops and fixpoints, from one thread
// and from eight, on own streams and on the caller's; each result compared with
// the host's, and outputs with what they must not keep.
//
//   live_sequence             on cuda:0; exit 77 without a GPU
//   live_sequence soft        the same on the software device
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>

#include "kiln/kiln.h"
#include "live_check.h"

enum { N = 10007, THREADS = 8, ROUNDS = 12, LANES = 24 };

// Every third element is left out: zero, and nothing older.
static const char kSome[] =
    "program some(a: u32, x: in u32[], y: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; if i % 3u32 != 0u32 { y[i] = x[i] * a + i; } }\n";
static const char kStep[] =
    "program step(a: u32, x: inout u32[]) work length(x)\n"
    "{ let i = global_id.x; x[i] = x[i] * a + 1u32; }\n";
static const char kAdd[] =
    "program add(x: in u32[], y: in u32[length(x)],\n"
    "            z: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; z[i] = x[i] + y[i]; }\n";
static const char kTrapping[] =
    "program trapping(x: in u32[], y: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; if x[i] == 7u32 { trap(3, u64(i)); }\n"
    "  y[i] = x[i]; }\n";
static const char kMeeting[] =
    "program meeting(x: inout u32[], y: out u32[length(x)])\n"
    "  work length(x) block 64\n"
    "{ let i = global_id.x; x[i] = i; grid_barrier;\n"
    "  y[i] = x[length(x) - 1u32 - i]; }\n";
// Counts down; says so as long as there is something left.
static const char kDown[] =
    "program down(x: inout u32[], flag: inout u32[1]) work length(x)\n"
    "{ let i = global_id.x; if x[i] > 0u32 { x[i] = x[i] - 1u32;\n"
    "  if x[i] > 0u32 { atomic_or(flag[0], 1u32); } } }\n";

// One device and what is made on it. thread-safe once it is filled
typedef struct live_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* some;
  kiln_pipeline_t* step;
  kiln_pipeline_t* add;
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

// ---- One list, run every way ----

// up(x); some(a, x, y); loop 5 { step(3, y) }; fill z; copy w <- y;
// add(y, w, z); down(z). one-thread
typedef struct list_t {
  live_t* live;
  kiln_sequence_t* sequence;
  kiln_resident_t x, y, z, w;
  uint32_t* in;
  uint32_t* out;
  uint32_t some;  // steps
  uint32_t inner;
} list_t;

static uint32_t expected(const uint32_t* in, uint32_t i, uint32_t a,
                         uint32_t b) {
  uint32_t y = i % 3 != 0 ? in[i] * a + i : 0;
  for (int k = 0; k < 5; k++) y = y * b + 1;
  return y + y;
}

static void list_make(list_t* list, live_t* live, uint32_t order) {
  memset(list, 0, sizeof(*list));
  list->live = live;
  list->in = malloc(N * 4);
  list->out = malloc(N * 4);
  for (uint32_t i = 0; i < N; i++) list->in[i] = i * 5 + 2;
  kiln_resident_t* all[] = {&list->x, &list->y, &list->z, &list->w};
  kiln_resident_range_t whole = {0, 0};
  for (int i = 0; i < 4; i++) {
    OK(kiln_resident_allocate(live->dispatcher, N * 4, all[i]));
    OK(kiln_resident_fill(live->dispatcher, NULL, *all[i], whole, 0xcdcdcdcd,
                          4));
  }
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  kiln_sequence_options_t options = kiln_sequence_options_default();
  options.order = order;
  options.label = "list";
  OK(kiln_sequence_create(live->dispatcher, &options, &list->sequence));
  kiln_sequence_t* s = list->sequence;
  kiln_binding_t x = kiln_bind_resident_range(list->x, 0, N * 4);
  kiln_binding_t y = kiln_bind_resident(list->y);
  kiln_binding_t z = kiln_bind_resident_range(list->z, 0, N * 4);
  kiln_binding_t w = kiln_bind_resident(list->w);
  kiln_binding_t some[] = {kiln_bind_u32(2), x, y};
  kiln_binding_t step[] = {kiln_bind_u32(3), y};
  kiln_binding_t add[] = {y, w, z};
  OK(kiln_sequence_add_upload(s, &x, list->in, KILN_SEQUENCE_READ_BY_RUN,
                              NULL));
  OK(kiln_sequence_add_dispatch(s, live->some, some, 3, NULL, &list->some));
  OK(kiln_sequence_begin_loop(s, 5, NULL));
  OK(kiln_sequence_add_dispatch(s, live->step, step, 2, NULL, &list->inner));
  OK(kiln_sequence_end_body(s));
  OK(kiln_sequence_add_fill(s, &z, 0xee, 1, NULL));
  OK(kiln_sequence_add_copy(s, &w, &y, NULL));
  OK(kiln_sequence_add_dispatch(s, live->add, add, 3, NULL, NULL));
  OK(kiln_sequence_add_download(s, &z, list->out, NULL));
  OK(kiln_sequence_finish(s));
}

static void list_end(list_t* list) {
  kiln_dispatcher_t* dispatcher = list->live->dispatcher;
  kiln_sequence_release(list->sequence);
  OK(kiln_resident_free(dispatcher, list->x));
  OK(kiln_resident_free(dispatcher, list->y));
  OK(kiln_resident_free(dispatcher, list->z));
  OK(kiln_resident_free(dispatcher, list->w));
  free(list->in);
  free(list->out);
}

static uint32_t wrong(const list_t* list, uint32_t a, uint32_t b) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < N; i++) {
    count += list->out[i] != expected(list->in, i, a, b);
  }
  return count;
}

// Waited for by its pending, or by its stream.
static void end_run(live_t* live, kiln_stream_t* stream,
                    kiln_pending_t* pending) {
  if (pending != NULL) {
    OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
  } else if (stream != NULL) {
    OK(kiln_stream_synchronize(stream));
  } else {
    OK(kiln_dispatcher_synchronize(live->dispatcher));
  }
}

static void run_list(live_t* live, uint32_t order, bool replays) {
  list_t list;
  kiln_replay_t* replay = NULL;
  kiln_stream_t* mine = NULL;
  list_make(&list, live, order);
  OK(kiln_stream_create(live->device, NULL, &mine));
  if (replays) OK(kiln_sequence_instantiate(list.sequence, NULL, &replay));
  for (uint32_t round = 0; round < ROUNDS; round++) {
    kiln_pending_t* pending = NULL;
    kiln_stream_t* stream = round % 2 == 0 ? NULL : mine;
    kiln_pending_t** wanted = round % 3 == 0 ? &pending : NULL;
    memset(list.out, 0xcd, N * 4);
    list.in[round] += round;
    OK(replays ? kiln_replay_run(replay, stream, wanted)
               : kiln_sequence_run(list.sequence, stream, wanted));
    end_run(live, stream, pending);
    IS(wrong(&list, 2, 3) == 0);
  }
  OK(replays ? kiln_replay_check(replay, NULL, NULL)
             : kiln_sequence_check(list.sequence, NULL, NULL));
  kiln_replay_release(replay);
  kiln_stream_release(mine);
  list_end(&list);
}

static void streams(live_t* live) {
  run_list(live, KILN_SEQUENCE_BY_ACCESS, false);
}

static void replays(live_t* live) {
  run_list(live, KILN_SEQUENCE_BY_ACCESS, true);
  run_list(live, KILN_SEQUENCE_IN_LINE, true);
}

// ---- Updates ----

static void updates(live_t* live) {
  list_t list;
  kiln_replay_t* replay = NULL;
  kiln_stream_t* mine = NULL;
  kiln_resident_t other;
  uint32_t* in = malloc(N * 4);
  list_make(&list, live, KILN_SEQUENCE_BY_ACCESS);
  OK(kiln_stream_create(live->device, NULL, &mine));
  OK(kiln_resident_allocate(live->dispatcher, N * 4, &other));
  for (uint32_t i = 0; i < N; i++) in[i] = i ^ 0x55;
  OK(kiln_resident_upload(live->dispatcher, NULL, other, 0, N * 4, in));
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  OK(kiln_sequence_instantiate(list.sequence, NULL, &replay));
  uint32_t* own = list.in;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    kiln_stream_t* stream = round % 2 == 0 ? NULL : mine;
    // A value alone; another buffer, which nothing uploads; and back.
    bool binds = round % 4 >= 2;
    kiln_binding_t x = kiln_bind_resident(binds ? other : list.x);
    OK(kiln_replay_set_scalar(replay, list.some, 0, 2 + round));
    OK(kiln_replay_set_scalar(replay, list.inner, 0, 3 + round));
    OK(kiln_replay_rebind(replay, list.some, 1, &x));
    memset(list.out, 0xcd, N * 4);
    OK(kiln_replay_run(replay, stream, NULL));
    end_run(live, stream, NULL);
    list.in = binds ? in : own;
    IS(wrong(&list, 2 + round, 3 + round) == 0);
    list.in = own;
  }
  // Runs on two streams at once are one behind the other; a change between
  // them is for those that come.
  for (uint32_t round = 0; round < ROUNDS; round++) {
    OK(kiln_replay_set_scalar(replay, list.some, 0, round));
    OK(kiln_replay_run(replay, round % 2 == 0 ? NULL : mine, NULL));
  }
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  OK(kiln_stream_synchronize(mine));
  list.in = in;
  IS(wrong(&list, ROUNDS - 1, 3 + ROUNDS - 1) == 0);
  list.in = own;
  REFUSED(kiln_replay_set_scalar(replay, 0, 0, 1), INVALID_ARGUMENT,
          "dispatch");
  kiln_replay_release(replay);
  OK(kiln_resident_free(live->dispatcher, other));
  kiln_stream_release(mine);
  list_end(&list);
  free(in);
}

// ---- Many buffers, one pipeline ----

// Independent steps side by side, then their sum one behind the other.
static void lanes(live_t* live) {
  kiln_resident_t x[LANES], sum[2];
  kiln_sequence_t* s = NULL;
  kiln_replay_t* replay = NULL;
  uint32_t* out = malloc(N * 4);
  OK(kiln_sequence_create(live->dispatcher, NULL, &s));
  for (int i = 0; i < 2; i++) {
    OK(kiln_resident_allocate(live->dispatcher, N * 4, &sum[i]));
  }
  kiln_binding_t first = kiln_bind_resident(sum[0]);
  OK(kiln_sequence_add_fill(s, &first, 0, 4, NULL));
  for (uint32_t i = 0; i < LANES; i++) {
    OK(kiln_resident_allocate(live->dispatcher, N * 4, &x[i]));
    kiln_binding_t bound = kiln_bind_resident(x[i]);
    kiln_binding_t step[] = {kiln_bind_u32(i + 1), bound};
    OK(kiln_sequence_add_fill(s, &bound, i, 4, NULL));
    OK(kiln_sequence_begin_loop(s, 3, NULL));
    OK(kiln_sequence_add_dispatch(s, live->step, step, 2, NULL, NULL));
    OK(kiln_sequence_end_body(s));
  }
  for (uint32_t i = 0; i < LANES; i++) {
    kiln_binding_t add[] = {kiln_bind_resident(sum[i % 2]),
                            kiln_bind_resident(x[i]),
                            kiln_bind_resident(sum[1 - i % 2])};
    OK(kiln_sequence_add_dispatch(s, live->add, add, 3, NULL, NULL));
  }
  OK(kiln_sequence_finish(s));
  OK(kiln_sequence_instantiate(s, NULL, &replay));
  uint32_t want = 0;
  for (uint32_t i = 0; i < LANES; i++) {
    uint32_t value = i;
    for (int k = 0; k < 3; k++) value = value * (i + 1) + 1;
    want += value;
  }
  for (int round = 0; round < ROUNDS; round++) {
    OK(round % 2 == 0 ? kiln_replay_run(replay, NULL, NULL)
                      : kiln_sequence_run(s, NULL, NULL));
    OK(kiln_resident_download(live->dispatcher, NULL, sum[LANES % 2], 0, N * 4,
                              out));
    uint32_t bad = 0;
    for (uint32_t i = 0; i < N; i++) bad += out[i] != want;
    IS(bad == 0);
  }
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  for (int i = 0; i < 2; i++) OK(kiln_resident_free(live->dispatcher, sum[i]));
  for (uint32_t i = 0; i < LANES; i++) {
    OK(kiln_resident_free(live->dispatcher, x[i]));
  }
  free(out);
}

// Launches of programs may overlap what is in front of them on own streams; of
// a replay they see the end. `overlap`: those of the replay overlap each other.
static void behind_each(live_t* live, uint32_t overlap) {
  kiln_resident_t x;
  kiln_sequence_t* s = NULL;
  kiln_replay_t* replay = NULL;
  kiln_prepared_t* prepared = NULL;
  kiln_dispatch_options_t how = kiln_dispatch_options_default();
  uint32_t* out = malloc(N * 4);
  how.overlap = overlap;
  OK(kiln_resident_allocate(live->dispatcher, N * 4, &x));
  kiln_binding_t step[] = {kiln_bind_u32(3), kiln_bind_resident(x)};
  OK(kiln_sequence_create(live->dispatcher, NULL, &s));
  OK(kiln_sequence_add_fill(s, &step[1], 1, 4, NULL));
  OK(kiln_sequence_begin_loop(s, 20, NULL));
  OK(kiln_sequence_add_dispatch(s, live->step, step, 2, &how, NULL));
  OK(kiln_sequence_end_body(s));
  OK(kiln_sequence_finish(s));
  OK(kiln_sequence_instantiate(s, NULL, &replay));
  kiln_graph_edge_t edges[20];
  uint32_t count = 0, early = 0;
  OK(kiln_graph_edges(kiln_replay_graph(replay), 20, edges, &count));
  IS(count == 20);
  for (uint32_t i = 0; i < count; i++) early += edges[i].type;
  IS(early == (overlap == KILN_SWITCH_ON ? 19 : 0));
  OK(kiln_pipeline_prepare(live->step, step, 2, NULL, &prepared));
  uint32_t want = 1;
  for (int k = 0; k < 23; k++) want = want * 3 + 1;
  for (int round = 0; round < ROUNDS; round++) {
    for (int again = 0; again < 10; again++) {
      OK(kiln_replay_run(replay, NULL, NULL));
      for (int k = 0; k < 3; k++) OK(kiln_prepared_run(prepared, NULL));
    }
    OK(kiln_resident_download(live->dispatcher, NULL, x, 0, N * 4, out));
    uint32_t bad = 0;
    for (uint32_t i = 0; i < N; i++) bad += out[i] != want;
    IS(bad == 0);
  }
  kiln_prepared_release(prepared);
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  OK(kiln_resident_free(live->dispatcher, x));
  free(out);
}

static void behind(live_t* live) {
  behind_each(live, KILN_SWITCH_DEFAULT);
  if (kiln_pipeline_info(live->step)->waits == 0) return;
  behind_each(live, KILN_SWITCH_ON);
}

// ---- Traps, grid barriers, fixpoints ----

static void traps(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kTrapping);
  kiln_resident_t x, y;
  kiln_sequence_t* s = NULL;
  kiln_replay_t* replay = NULL;
  uint32_t in[64];
  if (pipeline == NULL) return;
  for (uint32_t i = 0; i < 64; i++) in[i] = i + 100;
  OK(kiln_resident_allocate(live->dispatcher, sizeof(in), &x));
  OK(kiln_resident_allocate(live->dispatcher, sizeof(in), &y));
  OK(kiln_sequence_create(live->dispatcher, NULL, &s));
  kiln_binding_t to = kiln_bind_resident_range(x, 0, sizeof(in));
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
  OK(kiln_sequence_add_upload(s, &to, in, KILN_SEQUENCE_READ_BY_RUN, NULL));
  OK(kiln_sequence_add_dispatch(s, pipeline, bindings, 2, NULL, NULL));
  OK(kiln_sequence_finish(s));
  OK(kiln_sequence_instantiate(s, NULL, &replay));
  for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
    kiln_pending_t* pending = NULL;
    kiln_trap_t trap;
    uint32_t step = 0;
    bool by_replay = round % 2 != 0;
    bool now = round / 2 % 2 == 0;
    in[33] = now ? 7 : 8;
    OK(by_replay ? kiln_replay_run(replay, NULL, &pending)
                 : kiln_sequence_run(s, NULL, &pending));
    if (now) {
      REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), LAUNCH_FAILED,
              "trapping");
    } else {
      OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    }
    IS(kiln_pending_trap(pending, &trap) == now);
    IS(trap.address == (now ? 33 : 0));
    kiln_pending_release(pending);
    kiln_status_t status = by_replay ? kiln_replay_check(replay, &trap, &step)
                                     : kiln_sequence_check(s, &trap, &step);
    if (now) {
      REFUSED(status, LAUNCH_FAILED, "tag 3");
      IS(step == 1 && trap.tag == 3);
    } else {
      OK(status);
    }
  }
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  OK(kiln_resident_free(live->dispatcher, x));
  OK(kiln_resident_free(live->dispatcher, y));
  kiln_pipeline_release(pipeline);
}

static void grids(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kMeeting);
  enum { M = 64 * 40 };
  static uint32_t y[M];
  kiln_resident_t x, out;
  kiln_sequence_t* s = NULL;
  kiln_replay_t* replay = NULL;
  if (pipeline == NULL) return;
  OK(kiln_resident_allocate(live->dispatcher, sizeof(y), &x));
  OK(kiln_resident_allocate(live->dispatcher, sizeof(y), &out));
  OK(kiln_sequence_create(live->dispatcher, NULL, &s));
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(out)};
  OK(kiln_sequence_begin_loop(s, 4, NULL));
  OK(kiln_sequence_add_dispatch(s, pipeline, bindings, 2, NULL, NULL));
  OK(kiln_sequence_end_body(s));
  OK(kiln_sequence_finish(s));
  OK(kiln_sequence_instantiate(s, NULL, &replay));
  for (int round = 0; round < ROUNDS; round++) {
    OK(round % 2 == 0 ? kiln_replay_run(replay, NULL, NULL)
                      : kiln_sequence_run(s, NULL, NULL));
  }
  OK(kiln_resident_download(live->dispatcher, NULL, out, 0, sizeof(y), y));
  uint32_t bad = 0;
  for (uint32_t i = 0; i < M; i++) bad += y[i] != M - 1 - i;
  IS(bad == 0);
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  OK(kiln_resident_free(live->dispatcher, x));
  OK(kiln_resident_free(live->dispatcher, out));
  kiln_pipeline_release(pipeline);
}

static void fixpoints(live_t* live) {
  kiln_pipeline_t* pipeline = pipeline_of(live, kDown);
  kiln_resident_t x, flag;
  uint32_t out[1000];
  if (pipeline == NULL) return;
  OK(kiln_resident_allocate(live->dispatcher, sizeof(out), &x));
  OK(kiln_resident_allocate(live->dispatcher, 4, &flag));
  for (int round = 0; round < 4; round++) {
    kiln_sequence_t* s = NULL;
    kiln_pending_t* pending = NULL;
    kiln_fixpoint_options_t how = kiln_fixpoint_options_default();
    uint32_t step = 0;
    uint32_t rounds = 0;
    bool ends = round % 2 == 0;
    how.flag = kiln_bind_resident(flag);
    how.limit = ends ? 100 : 5;
    kiln_binding_t bound = kiln_bind_resident(x);
    kiln_binding_t bindings[] = {bound, kiln_bind_resident(flag)};
    OK(kiln_sequence_create(live->dispatcher, NULL, &s));
    OK(kiln_sequence_add_fill(s, &bound, 17, 4, NULL));
    OK(kiln_sequence_begin_fixpoint(s, &how, &step));
    OK(kiln_sequence_add_dispatch(s, pipeline, bindings, 2, NULL, NULL));
    OK(kiln_sequence_end_body(s));
    OK(kiln_sequence_finish(s));
    OK(kiln_sequence_run(s, NULL, &pending));
    if (ends) {
      OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    } else {
      REFUSED(kiln_pending_wait(pending, KILN_PENDING_FOREVER), NOT_CONVERGED,
              "5 rounds");
    }
    kiln_pending_release(pending);
    OK(kiln_sequence_rounds(s, step, &rounds));
    IS(rounds == (ends ? 17 : 5));
    OK(kiln_resident_download(live->dispatcher, NULL, x, 0, sizeof(out), out));
    IS(out[0] == 17 - rounds && out[999] == 17 - rounds);
    kiln_sequence_release(s);
  }
  OK(kiln_resident_free(live->dispatcher, x));
  OK(kiln_resident_free(live->dispatcher, flag));
  kiln_pipeline_release(pipeline);
}

// ---- Threads ----

// One of eight, none of which has a context. one-thread
typedef struct worker_t {
  live_t* live;
  uint32_t number;
  pthread_t thread;
} worker_t;

// Many dispatches of one pipeline over many bindings, spread over own streams.
static void batch(live_t* live, uint32_t seed) {
  kiln_resident_t x[LANES], y[LANES];
  kiln_binding_t bindings[LANES][3];
  kiln_stream_t* mine = NULL;
  uint32_t* in = malloc(N * 4);
  uint32_t* out = malloc(N * 4);
  OK(kiln_stream_create(live->device, NULL, &mine));
  for (uint32_t i = 0; i < N; i++) in[i] = i + seed;
  for (uint32_t k = 0; k < LANES; k++) {
    OK(kiln_resident_allocate(live->dispatcher, N * 4, &x[k]));
    OK(kiln_resident_allocate(live->dispatcher, N * 4, &y[k]));
    OK(kiln_resident_upload(live->dispatcher, mine, x[k], 0, N * 4, in));
    bindings[k][0] = kiln_bind_u32(k + seed);
    bindings[k][1] = kiln_bind_resident(x[k]);
    bindings[k][2] = kiln_bind_resident(y[k]);
  }
  kiln_dispatch_batch_t how = kiln_dispatch_batch_default();
  how.bindings = &bindings[0][0];
  how.binding_count = 3;
  how.count = LANES;
  for (uint32_t round = 0; round < 3; round++) {
    kiln_pending_t* pending = NULL;
    how.streams = round;
    OK(kiln_pipeline_dispatch_batch(live->some, mine, &how, NULL,
                                    round == 0 ? &pending : NULL));
    end_run(live, mine, pending);
    for (uint32_t k = 0; k < LANES; k++) {
      kiln_resident_range_t whole = {0, 0};
      OK(kiln_resident_download(live->dispatcher, mine, y[k], 0, N * 4, out));
      uint32_t bad = 0;
      for (uint32_t i = 0; i < N; i++) {
        bad += out[i] != (i % 3 != 0 ? in[i] * (k + seed) + i : 0);
      }
      IS(bad == 0);
      OK(kiln_resident_fill(live->dispatcher, mine, y[k], whole, 0xcd, 1));
    }
  }
  OK(kiln_stream_synchronize(mine));
  for (uint32_t k = 0; k < LANES; k++) {
    OK(kiln_resident_free(live->dispatcher, x[k]));
    OK(kiln_resident_free(live->dispatcher, y[k]));
  }
  kiln_stream_release(mine);
  free(in);
  free(out);
}

static void batches(live_t* live) {
  batch(live, 5);
}

static void* work(void* user) {
  worker_t* w = user;
  batch(w->live, w->number);
  run_list(w->live, w->number % 2, w->number % 4 >= 2);
  if (w->number % 4 == 3) updates(w->live);
  return NULL;
}

static void threads(live_t* live) {
  worker_t workers[THREADS];
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i].live = live;
    workers[i].number = i;
    IS(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
}

// One finished sequence, run by all of them, and their own replays of it.
typedef struct shared_t {
  kiln_sequence_t* sequence;
  kiln_device_t* device;
  pthread_t thread;
} shared_t;

static void* run_shared(void* user) {
  shared_t* shared = user;
  kiln_stream_t* mine = NULL;
  kiln_replay_t* replay = NULL;
  OK(kiln_stream_create(shared->device, NULL, &mine));
  OK(kiln_sequence_instantiate(shared->sequence, NULL, &replay));
  for (int round = 0; round < ROUNDS; round++) {
    OK(kiln_sequence_run(shared->sequence, mine, NULL));
    OK(kiln_replay_run(replay, mine, NULL));
  }
  OK(kiln_stream_synchronize(mine));
  kiln_replay_release(replay);
  kiln_stream_release(mine);
  return NULL;
}

static void one_of_all(live_t* live) {
  shared_t shared[THREADS];
  kiln_sequence_t* s = NULL;
  kiln_resident_t x, y;
  uint32_t* out = malloc(N * 4);
  kiln_resident_range_t whole = {0, 0};
  OK(kiln_resident_allocate(live->dispatcher, N * 4, &x));
  OK(kiln_resident_allocate(live->dispatcher, N * 4, &y));
  OK(kiln_resident_fill(live->dispatcher, NULL, x, whole, 9, 4));
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  OK(kiln_sequence_create(live->dispatcher, NULL, &s));
  // Writes what is there whichever of them comes first.
  kiln_binding_t add[] = {kiln_bind_resident(x), kiln_bind_resident(x),
                          kiln_bind_resident(y)};
  OK(kiln_sequence_add_dispatch(s, live->add, add, 3, NULL, NULL));
  OK(kiln_sequence_finish(s));
  for (int i = 0; i < THREADS; i++) {
    shared[i].sequence = s;
    shared[i].device = live->device;
    IS(pthread_create(&shared[i].thread, NULL, run_shared, &shared[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(shared[i].thread, NULL);
  OK(kiln_resident_download(live->dispatcher, NULL, y, 0, N * 4, out));
  uint32_t bad = 0;
  for (uint32_t i = 0; i < N; i++) bad += out[i] != 18;
  IS(bad == 0);
  kiln_sequence_release(s);
  OK(kiln_resident_free(live->dispatcher, x));
  OK(kiln_resident_free(live->dispatcher, y));
  free(out);
}

// ---- What ends while it runs ----

static void ends(live_t* live) {
  for (int round = 0; round < ROUNDS; round++) {
    list_t list;
    kiln_replay_t* replay = NULL;
    kiln_pending_t* pending = NULL;
    list_make(&list, live, KILN_SEQUENCE_BY_ACCESS);
    OK(kiln_sequence_instantiate(list.sequence, NULL, &replay));
    OK(kiln_replay_run(replay, NULL, &pending));
    kiln_replay_release(replay);
    kiln_sequence_release(list.sequence);
    list.sequence = NULL;
    OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    IS(wrong(&list, 2, 3) == 0);
    list_end(&list);
  }
}

static const struct {
  const char* name;
  void (*run)(live_t* live);
} kStages[] = {
    {"streams", streams},     {"replays", replays},       {"updates", updates},
    {"lanes", lanes},         {"behind replays", behind}, {"traps", traps},
    {"grid barriers", grids}, {"fixpoints", fixpoints},   {"batches", batches},
    {"threads", threads},     {"one of all", one_of_all}, {"ends", ends},
};

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  static live_t live;
  if (!OK(kiln_runtime_create(NULL, &live.runtime))) return 1;
  kiln_status_t status =
      kiln_runtime_open_device(live.runtime, device, &live.device);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  if (!OK(kiln_dispatcher_create(live.device, NULL, &live.dispatcher))) {
    return 1;
  }
  live.some = pipeline_of(&live, kSome);
  live.step = pipeline_of(&live, kStep);
  live.add = pipeline_of(&live, kAdd);
  if (live.some == NULL || live.step == NULL || live.add == NULL) return 1;
  for (size_t i = 0; i < sizeof(kStages) / sizeof(kStages[0]); i++) {
    int before = failures;
    kStages[i].run(&live);
    printf("%s on %s: %d failures\n", kStages[i].name, device,
           failures - before);
  }
  kiln_pipeline_release(live.some);
  kiln_pipeline_release(live.step);
  kiln_pipeline_release(live.add);
  kiln_dispatcher_release(live.dispatcher);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  return failures == 0 ? 0 : 1;
}
