// SPDX-License-Identifier: Apache-2.0
//
// fault: every public function of graphs and captures, with each allocation and
// each driver call on its path failing in turn, once and from then on, as
// test_fault_resources.c does for devices. The cases are in graph_cases.inc; a
// function of the headers that has none fails the test.
//
// The same cases, with nothing failing, by a thread without a current context
// and with a foreign one: each driver call has around it what its row says it
// needs, and the thread has behind it what it had before.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status_make.h"
#include "device/device_inside.h"
#include "driver_books.h"
#include "fault_alloc.h"
#include "fault_cases.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

enum {
  LACKS = 1,      // a provider may not have it, also unfaulted
  MAY_PASS = 2,   // what failed may be done without
  NO_CALLS = 4,   // nothing on its path can fail
  MAYBE_NOT = 8,  // a device may refuse it
};
enum { MANY = 20, RUNS_MAX = 400 };

// What fails in a run, and with what.
typedef enum fails_t { ALLOCATIONS, REFUSED, LOST, FAILS } fails_t;

static const kiln_cu_result_t kResults[FAILS] = {KILN_CU_SUCCESS,
                                                 KILN_CU_ERROR_OUT_OF_MEMORY,
                                                 KILN_CU_ERROR_ILLEGAL_ADDRESS};

// One object of each kind, and what the cases make. one-thread
typedef struct scene_t {
  bool soft;
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_allocator_t own;
  kiln_cuda_table_t null_table;
  kiln_cuda_table_t table;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_event_t* event;
  kiln_event_t* other;
  kiln_buffer_t* buffer;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_launch_t* launch;
  kiln_launch_t* cooperative;
  kiln_graph_t* graph;
  kiln_graph_t* child;
  kiln_graph_exec_t* exec;
  kiln_graph_trace_t* trace;
  kiln_graph_builder_t* capturing;
  kiln_graph_builder_t* ended;
  kiln_graph_node_t* node;
  kiln_graph_node_t* fill;
  kiln_graph_node_t* copy;
  kiln_graph_node_t* host;
  kiln_graph_node_t* record;
  kiln_graph_node_t* inside;
  kiln_graph_node_t* many[MANY];
  kiln_graph_condition_t condition;
  // What a case makes.
  kiln_graph_t* new_graph;
  kiln_graph_exec_t* new_exec;
  kiln_graph_trace_t* new_trace;
  kiln_graph_builder_t* new_builder;
  kiln_graph_builder_t* forks[2];
  uint32_t number;
  char bytes[16];
  int owned;  // owners that were taken
  int told;
  // Where contexts are looked at: the table under the trace, and the first row
  // that was called without what it needs.
  bool looks;
  kiln_cuda_table_t seen;
  kiln_device_t* foreign;
  atomic_uint bad_row;  // + 1
  atomic_uint asked;    // rows that need a context
} scene_t;

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 p) {\nret;\n}\n";

#define MUST(call) assert_null(call)
#define MADE(object) \
  assert_int_equal(s->object == NULL, !kiln_status_is_ok(status));

static void nothing(void* user) {
  (void)user;
}

static void told(void* user) {
  ((scene_t*)user)->told++;
}

static kiln_owner_t owner_of(scene_t* s) {
  kiln_owner_t owner = {told, s};
  return owner;
}

// ---- Work ----

static kiln_graph_work_t copy_of(scene_t* s) {
  return kiln_graph_work_move(kiln_graph_place_buffer(s->buffer, 0),
                              kiln_graph_place_host_read(s->bytes), 16);
}

static kiln_graph_work_t host_of(scene_t* s) {
  kiln_graph_work_t work = kiln_graph_work_host(nothing, &s->number);
  work.as.host.copied_bytes = sizeof(s->number);
  work.as.host.owner = owner_of(s);
  return work;
}

static kiln_graph_work_t semaphores_of(scene_t* s) {
  static const kiln_graph_semaphore_t one = {(void*)(uintptr_t)0x70, 1};
  kiln_graph_work_t work = kiln_graph_work_empty();
  work.kind = KILN_GRAPH_SIGNAL_SEMAPHORES;
  work.as.semaphores.list = &one;
  work.as.semaphores.count = 1;
  work.as.semaphores.owner = owner_of(s);
  return work;
}

static kiln_graph_work_t allocation_of(scene_t* s) {
  kiln_graph_work_t work = kiln_graph_work_allocate(256);
  work.as.allocation.peers = &s->device;
  work.as.allocation.peer_count = 1;
  return work;
}

static kiln_graph_work_t ops_of(scene_t* s) {
  static kiln_graph_memory_op_t op;
  memset(&op, 0, sizeof(op));
  op.buffer = s->buffer;
  op.word_bytes = 4;
  return kiln_graph_work_memory_ops(&op, 1);
}

static bool owns(const kiln_graph_work_t* work) {
  return work->kind == KILN_GRAPH_HOST ||
         work->kind == KILN_GRAPH_SIGNAL_SEMAPHORES;
}

static kiln_status_t add(scene_t* s, kiln_graph_work_t work) {
  kiln_graph_node_t* node = s->node;
  kiln_status_t status = kiln_graph_add(s->graph, &node, 1, &work, &node);
  assert_int_equal(node != NULL, kiln_status_is_ok(status));
  if (kiln_status_is_ok(status) && owns(&work)) s->owned++;
  return status;
}

static kiln_status_t set(scene_t* s, kiln_graph_node_t* node,
                         kiln_graph_work_t work) {
  kiln_status_t status = kiln_graph_node_set(node, &work);
  if (kiln_status_is_ok(status) && owns(&work)) s->owned++;
  return status;
}

static kiln_status_t exec_set(scene_t* s, kiln_graph_node_t* node,
                              kiln_graph_work_t work) {
  kiln_status_t status = kiln_graph_exec_set(s->exec, node, &work);
  if (kiln_status_is_ok(status) && owns(&work)) s->owned++;
  return status;
}

static void begin_new(scene_t* s) {
  MUST(kiln_graph_builder_create(s->device, NULL, &s->new_builder));
  MUST(kiln_graph_builder_begin(s->new_builder, 0));
}

static void new_condition(scene_t* s) {
  MUST(kiln_graph_builder_add_condition(s->new_builder, NULL, &s->condition));
}

static void add_condition(scene_t* s) {
  MUST(kiln_graph_add_condition(s->graph, NULL, &s->condition));
}

static bool take_text(const char* text, size_t size, void* user_data) {
  (void)text;
  (void)user_data;
  return size != 0;
}

static void run_trace(scene_t* s) {
  MUST(kiln_graph_trace_launch(s->trace, s->stream));
  MUST(kiln_stream_synchronize(s->stream));
}

#define ADD(...)            status = add(s, __VA_ARGS__);
#define SET(node, ...)      status = set(s, node, __VA_ARGS__);
#define EXEC_SET(node, ...) status = exec_set(s, node, __VA_ARGS__);

#define CASE FAULT_CASE_CALL
#define ENDS FAULT_ENDS_CALL
#include "graph_cases.inc"
#undef CASE
#undef ENDS

static const case_t kCases[] = {
#define FAULT_PREFIX "kiln_graph_"
#define CASE         FAULT_CASE_ROW
#define ENDS         FAULT_ENDS_ROW
#include "graph_cases.inc"
#undef CASE
#undef ENDS
};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

// ---- A scene ----

// Around a driver's call that has just been made, on its thread.
static void look(kiln_log_level_t level, const char* space, const char* line,
                 void* user) {
  scene_t* s = user;
  (void)level;
  (void)space;
  size_t length = strcspn(line, "(");
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_cuda_row((kilni_cuda_row_id_t)i);
    if (strncmp(row->name, line, length) != 0 || row->name[length] != 0) {
      continue;
    }
    bool fits = true;
    if (row->context == KILNI_CONTEXT_CURRENT && s->device != NULL) {
      kiln_cu_context_t current = NULL;
      (void)s->seen.cuCtxGetCurrent(&current);
      fits = current == kiln_device_context(s->device);
      atomic_fetch_add(&s->asked, 1);
    }
    unsigned none = 0;
    if (!fits) atomic_compare_exchange_strong(&s->bad_row, &none, i + 1);
  }
}

static kiln_status_t wrap_looking(scene_t* s, kiln_cuda_table_t* inout_table) {
  kiln_log_sink_t log = {look, s, KILN_LOG_TRACE, 0};
  s->seen = *inout_table;
  return kilni_table_cuda_trace_install(inout_table, log, inout_table);
}

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  scene_t* s = user;
  if (s->looks) driver_books_open(inout_table);
  if (s->looks) return wrap_looking(s, inout_table);
  driver_books_open(inout_table);
  driver_books_forgive(true);
  kiln_status_t status =
      kilni_table_cuda_fault_install(inout_table, inout_table);
  s->table = *inout_table;
  return status;
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  const scene_t* s = user;
  (s->looks ? kilni_table_cuda_trace_remove
            : kilni_table_cuda_fault_remove)(table);
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
  options.soft_devices = s->looks ? 2 : 1;
  MUST(kilni_runtime_create_with(&options, &hooks, &s->runtime));
  MUST(kiln_runtime_open_device(s->runtime, s->soft ? "soft" : "cuda:0",
                                &s->device));
  if (!s->looks) return;
  MUST(kiln_runtime_open_device(s->runtime, s->soft ? "soft:1" : "cuda:1",
                                &s->foreign));
}

static void open_nodes(scene_t* s) {
  MUST(kiln_graph_create(s->device, &s->graph));
  MUST(kiln_graph_create(s->device, &s->child));
  kiln_graph_work_t work = kiln_graph_work_launch(s->launch);
  MUST(kiln_graph_add(s->child, NULL, 0, &work, NULL));
  MUST(kiln_graph_add(s->graph, NULL, 0, &work, &s->node));
  MUST(kiln_graph_node_set_name(s->node, "named"));
  work = kiln_graph_work_fill(s->buffer, 0, 4, 7, 4);
  MUST(kiln_graph_add(s->graph, &s->node, 1, &work, &s->fill));
  work = copy_of(s);
  MUST(kiln_graph_add(s->graph, &s->fill, 1, &work, &s->copy));
  work = host_of(s);
  s->owned++;
  MUST(kiln_graph_add(s->graph, &s->copy, 1, &work, &s->host));
  work = kiln_graph_work_record(s->event);
  MUST(kiln_graph_add(s->graph, &s->host, 1, &work, &s->record));
  work = kiln_graph_work_child(s->child);
  MUST(kiln_graph_add(s->graph, &s->record, 1, &work, &s->inside));
  work = kiln_graph_work_empty();
  for (int i = 0; i < MANY; i++) {
    MUST(kiln_graph_add(s->graph, NULL, 0, &work, &s->many[i]));
  }
  MUST(kiln_graph_exec_create(s->graph, NULL, &s->exec));
  MUST(kiln_graph_trace_create(s->child, NULL, &s->trace));
  MUST(kiln_graph_builder_create(s->device, NULL, &s->capturing));
  MUST(kiln_graph_builder_begin(s->capturing, 0));
  MUST(kiln_graph_builder_create(s->device, NULL, &s->ended));
  MUST(kiln_graph_builder_begin(s->ended, 0));
  MUST(kiln_graph_builder_end(s->ended));
}

static void open_scene(scene_t* s, bool soft, bool looks) {
  memset(s, 0, sizeof(*s));
  s->soft = soft;
  s->looks = looks;
  open_runtime(s);
  MUST(kiln_stream_create(s->device, NULL, &s->stream));
  MUST(kiln_event_create(s->device, NULL, &s->event));
  MUST(kiln_event_create(s->device, NULL, &s->other));
  MUST(kiln_buffer_create(s->device, 256, NULL, &s->buffer));
  kiln_bytes_view_t ptx = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  MUST(kiln_module_load(s->device, ptx, NULL, NULL, &s->module));
  MUST(kiln_kernel_create(s->module, "k", &s->kernel));
  MUST(kiln_launch_create(s->kernel, NULL, &s->launch));
  MUST(kiln_launch_set(s->launch, 0, kiln_arg_buffer(s->buffer)));
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  attributes.cooperative = KILN_SWITCH_ON;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.attributes = &attributes;
  MUST(kiln_launch_create(s->kernel, &config, &s->cooperative));
  MUST(kiln_launch_set(s->cooperative, 0, kiln_arg_buffer(s->buffer)));
  open_nodes(s);
}

static void drop_new(scene_t* s) {
  for (int i = 0; i < 2; i++) {
    kiln_graph_builder_release(s->forks[i]);
    s->forks[i] = NULL;
  }
  kiln_graph_builder_release(s->new_builder);
  kiln_graph_trace_release(s->new_trace);
  kiln_graph_exec_release(s->new_exec);
  kiln_graph_release(s->new_graph);
  s->new_builder = NULL;
  s->new_trace = NULL;
  s->new_exec = NULL;
  s->new_graph = NULL;
}

static const char* close_scene(scene_t* s, bool lost) {
  drop_new(s);
  kiln_graph_builder_release(s->capturing);
  kiln_graph_builder_release(s->ended);
  if (!lost) kiln_status_free(kiln_device_synchronize(s->device));
  kiln_graph_trace_release(s->trace);
  kiln_graph_exec_release(s->exec);
  kiln_graph_release(s->child);
  kiln_graph_release(s->graph);
  // Whoever launched by a handle is waited for behind the release.
  if (!lost) kiln_status_free(kiln_device_synchronize(s->device));
  kilni_device_late_settle(atomic_load(&s->device->late));
  kiln_launch_release(s->cooperative);
  kiln_launch_release(s->launch);
  kiln_kernel_release(s->kernel);
  kiln_module_release(s->module);
  kiln_buffer_release(s->buffer);
  kiln_event_release(s->other);
  kiln_event_release(s->event);
  kiln_stream_release(s->stream);
  const char* wrong = s->told != s->owned ? "an owner was not told" : NULL;
  kiln_device_release(s->device);
  kiln_device_release(s->foreign);
  kiln_runtime_release(s->runtime);
  const char* left = fault_left(&s->watch, s->soft, lost);
  return wrong != NULL ? wrong : left;
}

// ---- A run ----

static kiln_status_t call_with(scene_t* s, const case_t* c, fails_t fails,
                               uint64_t nth, bool from_on, uint64_t* out_met) {
  fault_arm(&s->watch, &s->table, kResults[fails], nth, from_on);
  kiln_status_t status = c->call(s);
  *out_met = fault_disarm(&s->watch, &s->table, kResults[fails]);
  return status;
}

static char said[512];

// Returns NULL, or what is wrong.
static const char* judge(scene_t* s, const case_t* c, fails_t fails, bool hit,
                         kiln_status_t status) {
  bool ok = kiln_status_is_ok(status);
  bool may_lack = (c->flags & (LACKS | MAYBE_NOT)) != 0;
  const char* wrong = NULL;
  if (!ok) snprintf(said, sizeof(said), "%s", kiln_status_message(status));
  if (!hit && !ok && !may_lack) wrong = "it fails though nothing did";
  kiln_status_free(status);
  bool tells = strstr(c->function, "_release") == NULL;
  if (hit && ok && tells && (c->flags & MAY_PASS) == 0) {
    wrong = "something failed, and it says OK";
  }
  // What failed once does not stay.
  if (wrong == NULL && hit && !ok && fails != LOST && c->prepare == NULL) {
    drop_new(s);
    status = c->call(s);
    if (!kiln_status_is_ok(status) && !may_lack) {
      snprintf(said, sizeof(said), "%s", kiln_status_message(status));
      wrong = "it does not work any more";
    }
    kiln_status_free(status);
  }
  return wrong;
}

static const char* run(bool soft, const case_t* c, fails_t fails, uint64_t nth,
                       bool from_on, uint64_t* out_met) {
  static scene_t scene;
  scene_t* s = &scene;
  said[0] = 0;
  open_scene(s, soft, false);
  if (c->prepare != NULL) c->prepare(s);
  kiln_status_t status = call_with(s, c, fails, nth, from_on, out_met);
  bool hit = nth != 0 && *out_met >= nth;
  const char* wrong = judge(s, c, fails, hit, status);
  const char* left = close_scene(s, fails == LOST && hit);
  return wrong != NULL ? wrong : left;
}

static void sweep_case(bool soft, const case_t* c, fails_t fails,
                       fault_sums_t* sums) {
  uint64_t points = 0;
  uint64_t met = 0;
  for (int from_on = 0; from_on < 2; from_on++) {
    for (uint64_t nth = (uint64_t)from_on; nth < RUNS_MAX; nth++) {
      if (from_on && nth > points) break;
      const char* wrong = run(soft, c, fails, nth, from_on != 0, &met);
      sums->runs++;
      if (nth == 0) points = met;
      if (wrong != NULL) {
        sums->wrong++;
        print_error("%s/%s on %s, point %llu of %llu%s, way %d: %s (%s)\n",
                    c->function, c->variant, soft ? "soft" : "null",
                    (unsigned long long)nth, (unsigned long long)points,
                    from_on ? " and later" : "", (int)fails, wrong, said);
      }
      if (nth >= points && !from_on) break;
    }
  }
  if ((c->flags & NO_CALLS) != 0) assert_int_equal(points, 0);
  sums->points += points;
}

static void sweep(bool soft, fails_t fails) {
  fault_sums_t sums = {0, 0, 0};
  for (int i = 0; i < CASES; i++) sweep_case(soft, &kCases[i], fails, &sums);
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

// ---- Contexts ----

static void run_case_in(bool soft, const case_t* c, bool foreign,
                        fault_sums_t* sums) {
  static scene_t scene;
  scene_t* s = &scene;
  open_scene(s, soft, true);
  kiln_cu_context_t now = foreign ? kiln_device_context(s->foreign) : NULL;
  kiln_cu_context_t then = NULL;
  kiln_cu_capture_mode_t mode = driver_books_mode();
  assert_int_equal(s->seen.cuCtxSetCurrent(now), KILN_CU_SUCCESS);
  if (c->prepare != NULL) c->prepare(s);
  kiln_status_t status = c->call(s);
  const char* wrong = NULL;
  bool may_lack = (c->flags & (LACKS | MAYBE_NOT)) != 0;
  if (!kiln_status_is_ok(status) && !may_lack) wrong = "it fails";
  kiln_status_free(status);
  assert_int_equal(s->seen.cuCtxGetCurrent(&then), KILN_CU_SUCCESS);
  if (then != now) wrong = "another context is current behind it";
  if (driver_books_mode() != mode) wrong = "the capture mode is another one";
  const char* left = close_scene(s, false);
  if (wrong == NULL) wrong = left;
  (void)s->seen.cuCtxSetCurrent(NULL);  // what is there of the driver
  unsigned bad = atomic_load(&s->bad_row);
  if (bad != 0) {
    wrong = kilni_table_cuda_row((kilni_cuda_row_id_t)(bad - 1))->name;
  }
  sums->runs++;
  sums->points += atomic_load(&s->asked);
  if (wrong == NULL) return;
  sums->wrong++;
  print_error("%s/%s on %s with %s context: %s\n", c->function, c->variant,
              soft ? "soft" : "null", foreign ? "a foreign" : "no", wrong);
}

static void test_contexts(void** state) {
  (void)state;
  fault_sums_t sums = {0, 0, 0};
  for (int way = 0; way < 4; way++) {
    for (int i = 0; i < CASES; i++) {
      run_case_in(way % 2 != 0, &kCases[i], way >= 2, &sums);
    }
  }
  print_message(
      "%llu runs, %llu calls of rows that need a context, %llu wrong\n",
      (unsigned long long)sums.runs, (unsigned long long)sums.points,
      (unsigned long long)sums.wrong);
  assert_int_equal(sums.wrong, 0);
  assert_true(sums.points > 1000);
  kilni_table_cuda_null_reset();
}

// ---- Whether nothing is missing ----

static void test_every_function(void** state) {
  (void)state;
  int graphs = fault_check_header(FAULT_LIST(kCases), "graph");
  int captures = fault_check_header(FAULT_LIST(kCases), "capture");
  int pictures = fault_check_header(FAULT_LIST(kCases), "picture");
  print_message("%d functions, %d cases\n", graphs + captures + pictures,
                (int)CASES);
  assert_true(graphs > 30 && captures > 10 && pictures > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_function),
      cmocka_unit_test(test_contexts),
      cmocka_unit_test(test_null),
      cmocka_unit_test(test_soft),
  };
  return cmocka_run_group_tests_name("fault_graphs", tests, NULL, NULL);
}
