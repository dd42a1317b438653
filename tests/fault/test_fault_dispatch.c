// SPDX-License-Identifier: Apache-2.0
//
// fault: every public function of dispatchers, pipelines, resident buffers and
// sequences, and of the library of programs,
// with each allocation and each driver call on its path failing in turn, once
// and from then on, as test_fault_graphs.c does for graphs. The cases are in
// dispatch_cases.inc; a function of the headers that has none fails the test.
// At most a few points of a case, spread over all there are, unless
// KILN_FAULT_ALL=1: then four processes share them.
//
// The same cases without a fault, by a thread that has no current context: each
// driver call has around it what its row says it needs.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "driver_books.h"
#include "fault_alloc.h"
#include "fault_cases.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

enum {
  MAY_PASS = 2,   // what failed may be done without
  NO_CALLS = 4,   // nothing on its path can fail
  MAYBE_NOT = 8,  // it is refused
};
enum { BYTES = 256, FEW = 12, MANY = 2000 };
enum { SHARES = 4 };
// More than three chunks, each enough to be divided among threads.
enum { CHUNK = 64 << 10, LARGE = 3 * CHUNK + 100 };

// What fails in a run, and with what.
typedef enum fails_t { ALLOCATIONS, REFUSED, LOST, FAILS } fails_t;

static const kiln_cu_result_t kResults[FAILS] = {KILN_CU_SUCCESS,
                                                 KILN_CU_ERROR_OUT_OF_MEMORY,
                                                 KILN_CU_ERROR_ILLEGAL_ADDRESS};

// One object of each kind, and what the cases make. one-thread
typedef struct scene_t {
  bool soft;
  bool faults;  // there is a fault wrapper
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_allocator_t own;
  kiln_cuda_table_t null_table;
  kiln_cuda_table_t table;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_event_t* event;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* pipeline;
  kiln_prepared_t* prepared;
  kiln_pending_t* pending;  // timed
  kiln_resident_t a;
  kiln_resident_t b;
  kiln_binding_t bindings[2];
  // What a case makes.
  kiln_dispatcher_t* new_dispatcher;
  kiln_pipeline_t* new_pipeline;
  kiln_prepared_t* new_prepared;
  kiln_pending_t* new_pending;
  kiln_sequence_t* new_sequence;
  kiln_replay_t* new_replay;
  kiln_library_plan_t* new_plan;
  kiln_library_patterns_t* new_patterns;
  kiln_resident_t new_resident;
  kiln_program_t* new_program;
  bool pinned;
  kiln_program_t* program;  // of all scenes
  uint8_t host[BYTES];
} scene_t;

static const char kProgram[] =
    "program step(x: in u32[], y: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; if x[i] == 7u32 { trap(1, 2u64); }\n"
    "  y[i] = x[i] * 2u32; }\n";

static uint8_t g_large[LARGE];

static const char kMeeting[] =
    "program meeting(x: inout u32[], y: inout u32[length(x)])\n"
    "  work length(x) block 32\n"
    "{ let i = global_id.x; x[i] = i; grid_barrier;\n"
    "  y[i] = x[length(x) - 1u32 - i]; }\n";

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .u32 n) {\nret;\n}\n";

#define MUST(call) assert_null(call)
#define MADE(object) \
  assert_int_equal(s->object == NULL, !kiln_status_is_ok(status));

static void host_bindings(scene_t* s, kiln_binding_t* bindings) {
  bindings[0] = kiln_bind_host_in(s->host, BYTES / 2);
  bindings[1] = kiln_bind_host_out(s->host + BYTES / 2, BYTES / 2);
}

// Host memory is the caller's again.
static void settle(scene_t* s) {
  if (!kilni_device_is_lost(s->device)) {
    kiln_status_free(kiln_device_synchronize(s->device));
  }
}

static void dispatch(scene_t* s, kiln_stream_t* stream) {
  MUST(kiln_pipeline_dispatch(s->pipeline, stream, s->bindings, 2, NULL, NULL));
}

// A dispatcher with threads that copy.
static void open_crew(scene_t* s) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.streams = 1;
  options.copy_threads = 3;
  options.staging_bytes = 3 * CHUNK;
  options.staging_chunk_bytes = CHUNK;
  MUST(kiln_dispatcher_create(s->device, &options, &s->new_dispatcher));
  MUST(kiln_resident_allocate(s->new_dispatcher, LARGE, &s->new_resident));
}

// A program with a grid barrier, and its pipeline.
static void parse_meeting(scene_t* s) {
  kiln_string_view_t text = {kMeeting, sizeof(kMeeting) - 1};
  MUST(kiln_program_parse(text, NULL, NULL, &s->new_program));
}

static void make_meeting(scene_t* s) {
  parse_meeting(s);
  MUST(kiln_pipeline_create(s->dispatcher, s->new_program, NULL,
                            &s->new_pipeline));
}

// A dispatcher that has machine code from a cache.
static void open_cached(scene_t* s) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  kiln_cache_options_t memory = kiln_cache_options_default();
  kiln_linker_options_t how = kiln_linker_options_default();
  memory.disk = KILN_SWITCH_OFF;
  memory.allocator = &s->allocator;
  how.device = s->device;
  MUST(kiln_cache_create(&memory, &options.cache));
  MUST(kiln_runtime_open_linker(s->runtime, &how, &options.linker));
  MUST(kiln_dispatcher_create(s->device, &options, &s->new_dispatcher));
  kiln_linker_release(options.linker);
  kiln_cache_release(options.cache);
}

static kiln_status_t make_kernel(scene_t* s) {
  kiln_interface_parameter_t p[2];
  kiln_interface_t interface = kiln_interface_default();
  memset(p, 0, sizeof(p));
  p[0].name = "p";
  p[0].kind = KILN_INTERFACE_BUFFER;
  p[0].type = KILN_PROGRAM_TYPE_U32;
  p[0].role = KILN_PROGRAM_ROLE_INOUT;
  p[1].kind = KILN_INTERFACE_LENGTH;
  p[1].type = KILN_PROGRAM_TYPE_U32;
  interface.parameters = p;
  interface.parameter_count = 2;
  interface.work[0].from = KILN_INTERFACE_BY_BUFFER;
  return kiln_pipeline_create_kernel(s->dispatcher, s->kernel, &interface,
                                     &s->new_pipeline);
}

static void make_counting(scene_t* s) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.telemetry = KILN_SWITCH_ON;
  MUST(kiln_dispatcher_create(s->device, &options, &s->new_dispatcher));
}

static void begin_sequence(scene_t* s) {
  MUST(kiln_sequence_create(s->dispatcher, NULL, &s->new_sequence));
}

// An upload, dispatches, one of them in a loop, a fill and a copy; a download.
static void record_sequence(scene_t* s, bool reads_now) {
  kiln_binding_t a = kiln_bind_resident_range(s->a, 0, BYTES);
  kiln_binding_t b = kiln_bind_resident_range(s->b, 0, BYTES);
  begin_sequence(s);
  MUST(kiln_sequence_add_upload(
      s->new_sequence, &a, s->host,
      reads_now ? KILN_SEQUENCE_READ_NOW : KILN_SEQUENCE_READ_BY_RUN, NULL));
  MUST(kiln_sequence_add_dispatch(s->new_sequence, s->pipeline, s->bindings, 2,
                                  NULL, NULL));
  MUST(kiln_sequence_begin_loop(s->new_sequence, 2, NULL));
  MUST(kiln_sequence_add_prepared(s->new_sequence, s->prepared, NULL));
  MUST(kiln_sequence_add_copy(s->new_sequence, &a, &b, NULL));
  MUST(kiln_sequence_end_body(s->new_sequence));
  MUST(kiln_sequence_add_fill(s->new_sequence, &b, 1, 4, NULL));
  MUST(kiln_sequence_add_download(s->new_sequence, &b, s->host, NULL));
}

// A fixpoint whose flag nobody sets.
static void record_fixpoint(scene_t* s) {
  kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
  kiln_binding_t b = kiln_bind_resident_range(s->b, 0, 64);
  options.flag = kiln_bind_resident_range(s->a, 64, 4);
  options.limit = 2;
  options.strategy = KILN_FIXPOINT_POLL;
  begin_sequence(s);
  MUST(kiln_sequence_begin_fixpoint(s->new_sequence, &options, NULL));
  MUST(kiln_sequence_add_fill(s->new_sequence, &b, 1, 4, NULL));
  MUST(kiln_sequence_end_body(s->new_sequence));
}

// One of a program that has its flag bound.
static void record_rounds(scene_t* s, uint32_t strategy) {
  static const char kText[] =
      "program settle(x: inout u32[], changed: inout u32[1]) work length(x)\n"
      "{ let i = global_id.x; if x[i] == 9 { trap(1, 2u64); }\n"
      "  if x[i] > 0 { x[i] -= 1; changed[0] = 1; } }\n";
  kiln_string_view_t text = {kText, sizeof(kText) - 1};
  kiln_program_t* program = NULL;
  kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
  kiln_binding_t b[2] = {kiln_bind_resident_range(s->b, 0, 64),
                         kiln_bind_resident_range(s->a, 64, 4)};
  MUST(kiln_program_parse(text, NULL, NULL, &program));
  MUST(kiln_pipeline_create(s->dispatcher, program, NULL, &s->new_pipeline));
  kiln_program_release(program);
  options.flag = b[1];
  options.limit = 2;
  options.strategy = strategy;
  begin_sequence(s);
  MUST(kiln_sequence_begin_fixpoint(s->new_sequence, &options, NULL));
  MUST(kiln_sequence_add_dispatch(s->new_sequence, s->new_pipeline, b, 2, NULL,
                                  NULL));
  MUST(kiln_sequence_end_body(s->new_sequence));
}

static void finish_rounds(scene_t* s, uint32_t strategy) {
  record_rounds(s, strategy);
  MUST(kiln_sequence_finish(s->new_sequence));
}

static void make_sequence(scene_t* s) {
  record_sequence(s, false);
  MUST(kiln_sequence_finish(s->new_sequence));
}

// Two dispatches, which overlap where the code waits itself.
static void make_early(scene_t* s) {
  kiln_dispatch_options_t how = kiln_dispatch_options_default();
  how.clear_outputs = KILN_SWITCH_OFF;
  if (kiln_pipeline_info(s->pipeline)->waits) how.overlap = KILN_SWITCH_ON;
  begin_sequence(s);
  for (int i = 0; i < 2; i++) {
    MUST(kiln_sequence_add_dispatch(s->new_sequence, s->pipeline, s->bindings,
                                    2, &how, NULL));
  }
  MUST(kiln_sequence_finish(s->new_sequence));
}

static void make_replay(scene_t* s) {
  make_sequence(s);
  MUST(kiln_sequence_instantiate(s->new_sequence, NULL, &s->new_replay));
}

// Another part of the same buffer; or one that other steps are ordered by.
static void change_replay(scene_t* s, bool reorders) {
  kiln_binding_t x = kiln_bind_resident_range(s->a, 0, 128);
  kiln_binding_t y = kiln_bind_resident_range(reorders ? s->a : s->b, 128, 128);
  MUST(kiln_replay_rebind(s->new_replay, 1, 0, &x));
  MUST(kiln_replay_rebind(s->new_replay, 1, 1, &y));
}

// A plan for a few elements, and a run of one for runs of equal ones.
static kiln_status_t make_plan(scene_t* s, const char* name) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 16;
  return kiln_library_plan_create(s->dispatcher, name, &options, &s->new_plan);
}

// One in the other, so that there is something of everything.
static kiln_status_t make_patterns(scene_t* s) {
  static const kiln_string_view_t kPatterns[] = {{"she", 3}, {"he", 2}};
  return kiln_library_patterns_create(kPatterns, 2, &s->allocator,
                                      &s->new_patterns);
}

static kiln_status_t run_plan(scene_t* s) {
  const kiln_binding_t bindings[] = {kiln_bind_resident_range(s->a, 0, 64),
                                     kiln_bind_resident_range(s->b, 0, 64),
                                     kiln_bind_resident_range(s->b, 64, 64),
                                     kiln_bind_resident_range(s->b, 128, 4)};
  return kiln_library_plan_run(s->new_plan, NULL, bindings, 4);
}

static kiln_status_t begin_plan(scene_t* s) {
  const kiln_binding_t bindings[] = {kiln_bind_resident_range(s->a, 0, 64),
                                     kiln_bind_resident_range(s->b, 0, 64),
                                     kiln_bind_resident_range(s->b, 64, 64),
                                     kiln_bind_resident_range(s->b, 128, 4)};
  return kiln_library_plan_begin(s->new_plan, NULL, bindings, 4,
                                 &s->new_pending);
}

// A search in a graph of 15 vertices, whatever its edges are.
static void bind_rounds(const scene_t* s, kiln_binding_t* bindings) {
  bindings[0] = kiln_bind_resident_range(s->a, 0, 64);
  bindings[1] = kiln_bind_resident_range(s->a, 64, 64);
  bindings[2] = kiln_bind_resident_range(s->a, 128, 4);
  bindings[3] = kiln_bind_resident_range(s->b, 0, 60);
}

static kiln_status_t run_rounds(scene_t* s) {
  kiln_binding_t bindings[4];
  bind_rounds(s, bindings);
  return kiln_library_plan_run(s->new_plan, NULL, bindings, 4);
}

static kiln_status_t begin_rounds(scene_t* s) {
  kiln_binding_t bindings[4];
  bind_rounds(s, bindings);
  return kiln_library_plan_begin(s->new_plan, NULL, bindings, 4,
                                 &s->new_pending);
}

#define CASE FAULT_CASE_CALL
#define ENDS FAULT_ENDS_CALL
#include "dispatch_cases.inc"
#include "sequence_cases.inc"
#include "library_cases.inc"
#undef CASE
#undef ENDS

static const case_t kCases[] = {
#define FAULT_PREFIX "kiln_"
#define CASE         FAULT_CASE_ROW
#define ENDS         FAULT_ENDS_ROW
#include "dispatch_cases.inc"
#include "sequence_cases.inc"
#include "library_cases.inc"
#undef CASE
#undef ENDS
};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

// ---- A scene ----

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  scene_t* s = user;
  driver_books_open(inout_table);
  driver_books_forgive(s->faults);
  if (!s->faults) return kiln_ok();
  kiln_status_t status =
      kilni_table_cuda_fault_install(inout_table, inout_table);
  s->table = *inout_table;
  return status;
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  const scene_t* s = user;
  if (s->faults) kilni_table_cuda_fault_remove(table);
}

static void open_runtime(scene_t* s) {
  fault_alloc_init(&s->watch);
  s->allocator = fault_alloc_allocator(&s->watch);
  s->own = kiln_allocator_libc();
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&s->null_table);
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &s->null_table;
  hooks.wrap = wrap;
  hooks.unwrap = unwrap;
  hooks.user = s;
  hooks.soft_allocator = &s->own;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &s->allocator;
  options.soft_workers = 1;
  options.soft_lanes = "plain";
  MUST(kilni_runtime_create_with(&options, &hooks, &s->runtime));
  MUST(kiln_runtime_open_device(s->runtime, s->soft ? "soft" : "cuda:0",
                                &s->device));
}

static void open_dispatcher(scene_t* s) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  kiln_dispatch_options_t timed = kiln_dispatch_options_default();
  options.streams = 2;
  options.staging_bytes = 8192;
  options.staging_chunk_bytes = 4096;
  timed.timed = KILN_SWITCH_ON;
  MUST(kiln_dispatcher_create(s->device, &options, &s->dispatcher));
  MUST(kiln_pipeline_create(s->dispatcher, s->program, NULL, &s->pipeline));
  MUST(kiln_resident_allocate(s->dispatcher, BYTES, &s->a));
  MUST(kiln_resident_allocate(s->dispatcher, BYTES, &s->b));
  MUST(kiln_resident_upload(s->dispatcher, NULL, s->a, 0, BYTES, s->host));
  s->bindings[0] = kiln_bind_resident(s->a);
  s->bindings[1] = kiln_bind_resident(s->b);
  MUST(kiln_pipeline_prepare(s->pipeline, s->bindings, 2, NULL, &s->prepared));
  MUST(kiln_pipeline_dispatch(s->pipeline, NULL, s->bindings, 2, &timed,
                              &s->pending));
}

static void open_scene(scene_t* s, bool soft, bool faults,
                       kiln_program_t* program) {
  memset(s, 0, sizeof(*s));
  s->soft = soft;
  s->faults = faults;
  s->program = program;
  open_runtime(s);
  MUST(kiln_stream_create(s->device, NULL, &s->stream));
  MUST(kiln_event_create(s->device, NULL, &s->event));
  kiln_bytes_view_t ptx = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  MUST(kiln_module_load(s->device, ptx, NULL, NULL, &s->module));
  MUST(kiln_kernel_create(s->module, "k", &s->kernel));
  open_dispatcher(s);
}

static void drop_new(scene_t* s) {
  kiln_pending_release(s->new_pending);
  kiln_library_plan_release(s->new_plan);
  s->new_plan = NULL;
  kiln_library_patterns_release(s->new_patterns);
  s->new_patterns = NULL;
  kiln_replay_release(s->new_replay);
  kiln_sequence_release(s->new_sequence);
  s->new_replay = NULL;
  s->new_sequence = NULL;
  kiln_prepared_release(s->new_prepared);
  kiln_pipeline_release(s->new_pipeline);
  kiln_program_release(s->new_program);
  s->new_program = NULL;
  kiln_dispatcher_release(s->new_dispatcher);
  s->new_pending = NULL;
  s->new_prepared = NULL;
  s->new_pipeline = NULL;
  s->new_dispatcher = NULL;
}

// What graphs hold is let go by a thread, behind their launches.
static void settle_late(scene_t* s) {
  kilni_device_late_t* late = atomic_load(&s->device->late);
  settle(s);
  if (late != NULL) kilni_device_late_settle(late);
}

static const char* close_scene(scene_t* s, bool lost) {
  settle(s);
  drop_new(s);
  settle_late(s);
  if (s->pinned && !lost) {
    kiln_status_free(kiln_resident_unpin(s->dispatcher, s->host));
  }
  kiln_pending_release(s->pending);
  kiln_prepared_release(s->prepared);
  kiln_pipeline_release(s->pipeline);
  settle(s);
  kiln_dispatcher_release(s->dispatcher);
  kiln_kernel_release(s->kernel);
  kiln_module_release(s->module);
  kiln_event_release(s->event);
  kiln_stream_release(s->stream);
  kiln_device_release(s->device);
  kiln_runtime_release(s->runtime);
  return fault_left(&s->watch, s->soft, lost);
}

// ---- A run ----

static char said[512];

// This process fails the points whose number is its own, one in `shares`.
static int share = 0;
static int shares = 1;

static bool is_of_my_share(uint64_t nth) {
  return nth % (uint64_t)shares == (uint64_t)share;
}

static kiln_status_t call_with(scene_t* s, const case_t* c, fails_t fails,
                               uint64_t nth, bool from_on, uint64_t* out_met) {
  fault_arm(&s->watch, &s->table, kResults[fails], nth, from_on);
  kiln_status_t status = c->call(s);
  *out_met = fault_disarm(&s->watch, &s->table, kResults[fails]);
  return status;
}

// Returns NULL, or what is wrong.
static const char* judge(scene_t* s, const case_t* c, fails_t fails, bool hit,
                         kiln_status_t status) {
  bool ok = kiln_status_is_ok(status);
  bool may_refuse = (c->flags & MAYBE_NOT) != 0;
  const char* wrong = NULL;
  if (!ok) snprintf(said, sizeof(said), "%s", kiln_status_message(status));
  if (!hit && !ok && !may_refuse) wrong = "it fails though nothing did";
  kiln_status_free(status);
  bool tells = strstr(c->function, "_release") == NULL;
  if (hit && ok && tells && (c->flags & MAY_PASS) == 0) {
    wrong = "something failed, and it says OK";
  }
  // What failed once does not stay.
  if (wrong == NULL && hit && !ok && fails != LOST && c->prepare == NULL) {
    drop_new(s);
    status = c->call(s);
    if (!kiln_status_is_ok(status) && !may_refuse) {
      snprintf(said, sizeof(said), "%s", kiln_status_message(status));
      wrong = "it does not work any more";
    }
    kiln_status_free(status);
  }
  return wrong;
}

static const char* run(bool soft, kiln_program_t* program, const case_t* c,
                       fails_t fails, uint64_t nth, bool from_on,
                       uint64_t* out_met) {
  static scene_t scene;
  scene_t* s = &scene;
  said[0] = 0;
  open_scene(s, soft, true, program);
  if (c->prepare != NULL) c->prepare(s);
  kiln_status_t status = call_with(s, c, fails, nth, from_on, out_met);
  bool hit = nth != 0 && *out_met >= nth;
  const char* wrong = judge(s, c, fails, hit, status);
  const char* left = close_scene(s, fails == LOST && hit);
  return wrong != NULL ? wrong : left;
}

static void sweep_case(bool soft, kiln_program_t* program, const case_t* c,
                       fails_t fails, fault_sums_t* sums) {
  uint64_t points = 0;
  uint64_t met = 0;
  uint64_t limit = getenv("KILN_FAULT_ALL") != NULL ? MANY : FEW;
  const char* wrong = run(soft, program, c, fails, 0, false, &points);
  for (int from_on = 0; from_on < 2; from_on++) {
    uint64_t step = points / limit + 1;
    for (uint64_t nth = 1; wrong == NULL && nth <= points; nth += step) {
      if (!is_of_my_share(nth / step)) continue;
      wrong = run(soft, program, c, fails, nth, from_on != 0, &met);
      sums->runs++;
      if (wrong == NULL) continue;
      print_error("%s/%s on %s, point %llu of %llu%s, way %d: %s (%s)\n",
                  c->function, c->variant, soft ? "soft" : "null",
                  (unsigned long long)nth, (unsigned long long)points,
                  from_on ? " and later" : "", (int)fails, wrong, said);
      sums->wrong++;
      wrong = NULL;
    }
  }
  if (wrong != NULL) {
    sums->wrong++;
    print_error("%s/%s on %s, nothing failing: %s (%s)\n", c->function,
                c->variant, soft ? "soft" : "null", wrong, said);
  }
  if ((c->flags & NO_CALLS) != 0 && points != 0) {
    sums->wrong++;
    print_error("%s/%s has %llu points\n", c->function, c->variant,
                (unsigned long long)points);
  }
  sums->points += points;
}

static kiln_program_t* parse(void) {
  kiln_program_t* program = NULL;
  kiln_string_view_t text = {kProgram, sizeof(kProgram) - 1};
  MUST(kiln_program_parse(text, NULL, NULL, &program));
  return program;
}

static void sweep(bool soft, fails_t fails) {
  fault_sums_t sums = {0, 0, 0};
  kiln_program_t* program = parse();
  for (int i = 0; i < CASES; i++) {
    sweep_case(soft, program, &kCases[i], fails, &sums);
  }
  kiln_program_release(program);
  char what[128];
  snprintf(what, sizeof(what), "%s, %s", soft ? "soft" : "null",
           fails == ALLOCATIONS
               ? "allocations"
               : kilni_table_cuda_result_name(kResults[fails]));
  fault_judge(&sums, CASES, 20, what);
  kilni_table_cuda_null_reset();
}

static void test_null(void** state) {
  (void)state;
  for (int fails = 0; fails < FAILS; fails++) sweep(false, (fails_t)fails);
}

// A fault of the software device in one run would be the next one's, since it
// is one in a process: it is not lost here.
static void test_soft(void** state) {
  (void)state;
  for (int fails = 0; fails < LOST; fails++) sweep(true, (fails_t)fails);
}

// ---- Without a context ----

static void test_contexts(void** state) {
  (void)state;
  static scene_t scene;
  kiln_program_t* program = parse();
  uint32_t wrong_cases = 0;
  for (int i = 0; i < 2 * CASES; i++) {
    const case_t* c = &kCases[i / 2];
    scene_t* s = &scene;
    open_scene(s, i % 2 != 0, false, program);
    assert_null(driver_books_current());
    if (c->prepare != NULL) c->prepare(s);
    kiln_status_t status = c->call(s);
    bool fails = !kiln_status_is_ok(status) && (c->flags & MAYBE_NOT) == 0;
    kiln_status_free(status);
    if (driver_books_current() != NULL) fails = true;
    const char* wrong = close_scene(s, false);
    if (!fails && wrong == NULL) continue;
    wrong_cases++;
    print_error("%s/%s without a context: %s\n", c->function, c->variant,
                wrong != NULL ? wrong : "it fails, or leaves one current");
  }
  kiln_program_release(program);
  assert_int_equal(wrong_cases, 0);
}

// ---- Whether nothing is missing ----

static void test_every_function(void** state) {
  (void)state;
  int count = fault_check_header(FAULT_LIST(kCases), "dispatch");
  count += fault_check_header(FAULT_LIST(kCases), "pipeline");
  count += fault_check_header(FAULT_LIST(kCases), "resident");
  count += fault_check_header(FAULT_LIST(kCases), "sequence");
  count += fault_check_header(FAULT_LIST(kCases), "library");
  count += fault_check_header(FAULT_LIST(kCases), "telemetry");
  print_message("%d functions, %d cases\n", count, (int)CASES);
  assert_true(count > 40);
}

static int run_share(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_function),
      cmocka_unit_test(test_contexts),
      cmocka_unit_test(test_null),
      cmocka_unit_test(test_soft),
  };
  return cmocka_run_group_tests_name("fault_dispatch", tests, NULL, NULL);
}

// How many of the processes that each take a share failed.
static int run_in_shares(void) {
  pid_t processes[SHARES];
  int failed = 0;
  fflush(NULL);
  shares = SHARES;
  for (share = 0; share < SHARES; share++) {
    processes[share] = fork();
    if (processes[share] == 0) exit(run_share());
  }
  for (int i = 0; i < SHARES; i++) {
    int status = 0;
    bool ended =
        processes[i] > 0 && waitpid(processes[i], &status, 0) == processes[i];
    if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) failed++;
  }
  return failed;
}

int main(void) {
  return getenv("KILN_FAULT_ALL") != NULL ? run_in_shares() : run_share();
}
