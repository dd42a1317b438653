// SPDX-License-Identifier: Apache-2.0
//
// graph: kinds of builders x states x methods: one table, each cell asked of a
// builder that was just brought there.
//
// Over the null provider, which is given conditional nodes and a way to
// invalidate a capture; with the argument "soft" over the software device.
#include <stdio.h>

#include "graph_kit.h"
#include "base/status_make.h"

enum { P = KILN_GRAPH_BUILDER_PRIMARY, F = KILN_GRAPH_BUILDER_FORKED };
enum { B = KILN_GRAPH_BUILDER_BODY, STATES = 5 };

static graph_kit_t kit;
static bool on_soft;

// ---- What the null provider lacks ----

static kiln_cuda_table_t below;
static bool invalid;
static uintptr_t made = 0x900000;

static kiln_cu_result_t add_node(kiln_cu_graph_node_t* node,
                                 kiln_cu_graph_t graph,
                                 const kiln_cu_graph_node_t* after,
                                 const kiln_cu_graph_edge_t* edges,
                                 size_t count,
                                 kiln_cu_graph_node_params_t* params) {
  static kiln_cu_graph_t bodies[2];
  if (params->type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return below.cuGraphAddNode(node, graph, after, edges, count, params);
  }
  *node = (kiln_cu_graph_node_t)(made += 16);
  for (int i = 0; i < 2; i++) bodies[i] = (kiln_cu_graph_t)(made += 16);
  params->of.conditional.graphs = bodies;
  return KILN_CU_SUCCESS;
}

// A stream that has waited for another one is captured with it.
static kiln_cu_stream_t waiting[64];
static uint32_t waiting_count;

static bool is_fork(kiln_cu_stream_t stream) {
  for (uint32_t i = 0; i < waiting_count; i++) {
    if (waiting[i] == stream) return true;
  }
  return false;
}

static kiln_cu_result_t wait_event(kiln_cu_stream_t stream,
                                   kiln_cu_event_t event, unsigned int flags) {
  waiting[waiting_count++ % 64] = stream;
  return below.cuStreamWaitEvent(stream, event, flags);
}

static kiln_cu_result_t info(kiln_cu_stream_t stream,
                             kiln_cu_capture_status_t* status, uint64_t* id,
                             kiln_cu_graph_t* graph,
                             const kiln_cu_graph_node_t** nodes,
                             const kiln_cu_graph_edge_t** edges,
                             size_t* count) {
  kiln_cu_result_t result = below.cuStreamGetCaptureInfo_v3(
      stream, status, id, graph, nodes, edges, count);
  if (is_fork(stream)) *status = KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return result;
}

static kiln_cu_result_t is_capturing(kiln_cu_stream_t stream,
                                     kiln_cu_capture_status_t* status) {
  kiln_cu_result_t result = below.cuStreamIsCapturing(stream, status);
  if (is_fork(stream)) *status = KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (invalid && *status == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    *status = KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  }
  return result;
}

static kiln_cu_result_t end_capture(kiln_cu_stream_t stream,
                                    kiln_cu_graph_t* graph) {
  kiln_cu_result_t result = below.cuStreamEndCapture(stream, graph);
  waiting_count = 0;
  if (!invalid || result != KILN_CU_SUCCESS) return result;
  (void)below.cuGraphDestroy(*graph);
  *graph = NULL;
  return KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static void tweak(kiln_cuda_table_t* table) {
  if (on_soft) return;
  below = *table;
  KILNI_CUDA_SET(table, cuGraphAddNode, add_node);
  KILNI_CUDA_SET(table, cuStreamIsCapturing, is_capturing);
  KILNI_CUDA_SET(table, cuStreamEndCapture, end_capture);
  KILNI_CUDA_SET(table, cuStreamGetCaptureInfo_v3, info);
  KILNI_CUDA_SET(table, cuStreamWaitEvent, wait_event);
}

static void invalidate(kiln_graph_builder_t* builder) {
  invalid = true;
  kiln_stream_t* stream = NULL;
  assert_null(kiln_graph_builder_stream(builder, &stream));
  // A call that is not allowed on a stream that is captured.
  if (on_soft) {
    (void)kit.table.cuStreamSynchronize(kiln_stream_handle(stream));
  }
}

static int setup(void** state) {
  (void)state;
  invalid = false;
  graph_kit_open_with(&kit, on_soft, tweak);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  graph_kit_close(&kit);
  return 0;
}

// ---- Builders in every state ----

// A builder, and those that it needs around it. one-thread
typedef struct subject_t {
  kiln_graph_builder_t* root;
  kiln_graph_builder_t* one;  // that is asked
} subject_t;

static void make_body(subject_t* s) {
  kiln_graph_conditional_t choice = {{0, NULL}, KILN_GRAPH_IF, 1};
  assert_null(
      kiln_graph_builder_add_condition(s->root, NULL, &choice.condition));
  assert_null(kiln_graph_builder_add_conditional(s->root, &choice, &s->one));
}

static void bring(subject_t* s, uint32_t kind, uint32_t state) {
  invalid = false;
  memset(s, 0, sizeof(*s));
  assert_null(kiln_graph_builder_create(kit.device, NULL, &s->root));
  s->one = s->root;
  if (kind != P) assert_null(kiln_graph_builder_begin(s->root, 0));
  if (kind == F) assert_null(kiln_graph_builder_split(s->root, 2, &s->one));
  if (kind == B) make_body(s);
  bool begins = kind != F && state != KILN_GRAPH_BUILDER_NOT_STARTED &&
                state != KILN_GRAPH_BUILDER_CLOSED;
  if (begins) assert_null(kiln_graph_builder_begin(s->one, 0));
  if (state == KILN_GRAPH_BUILDER_ENDED) {
    assert_null(kiln_graph_builder_end(s->one));
  }
  if (state == KILN_GRAPH_BUILDER_INVALIDATED) {
    invalidate(s->one);
    kit.abandoned += kind == B;
    kiln_status_t ended = kiln_graph_builder_end(s->one);
    assert_says(ended, KILN_STATUS_INVALID_STATE, "invalidated");
    invalid = false;
  }
  if (state == KILN_GRAPH_BUILDER_CLOSED) {
    assert_null(kiln_graph_builder_close(s->one));
  }
  assert_int_equal(kiln_graph_builder_kind(s->one), kind);
  assert_int_equal(kiln_graph_builder_state(s->one), state);
  assert_int_equal(kiln_graph_builder_must_join(s->one), kind == F);
}

static void take_away(subject_t* s) {
  if (s->one != s->root) kiln_graph_builder_release(s->one);
  kiln_graph_builder_release(s->root);
  // Whatever it was, the stream that it used can be captured again.
  kiln_graph_builder_t* next = NULL;
  assert_null(kiln_graph_builder_create(kit.device, NULL, &next));
  assert_null(kiln_graph_builder_begin(next, 0));
  assert_null(kiln_graph_builder_end(next));
  kiln_graph_builder_release(next);
}

// ---- Methods ----

static kiln_status_t ask_stream(kiln_graph_builder_t* b) {
  kiln_stream_t* stream = NULL;
  kiln_status_t status = kiln_graph_builder_stream(b, &stream);
  assert_int_equal(stream != NULL, kiln_status_is_ok(status));
  return status;
}

static kiln_status_t ask_building(kiln_graph_builder_t* b) {
  bool building = true;
  kiln_status_t status = kiln_graph_builder_is_building(b, &building);
  bool should = kiln_graph_builder_state(b) == KILN_GRAPH_BUILDER_CAPTURING;
  assert_int_equal(building, should && kiln_status_is_ok(status));
  return status;
}

static kiln_status_t begin(kiln_graph_builder_t* b) {
  return kiln_graph_builder_begin(b, KILN_GRAPH_CAPTURE_RELAXED);
}

static kiln_status_t end(kiln_graph_builder_t* b) {
  return kiln_graph_builder_end(b);
}

static kiln_status_t make_exec(kiln_graph_builder_t* b) {
  kiln_graph_exec_t* exec = NULL;
  kiln_status_t status = kiln_graph_builder_exec(b, NULL, &exec);
  if (!kiln_status_is_ok(status)) return status;
  kiln_graph_exec_release(exec);
  // As often as wanted.
  assert_null(kiln_graph_builder_exec(b, NULL, &exec));
  kiln_graph_exec_release(exec);
  return kiln_ok();
}

static kiln_status_t take_graph(kiln_graph_builder_t* b) {
  kiln_graph_t* graph = NULL;
  kiln_status_t status = kiln_graph_builder_graph(b, &graph);
  if (!kiln_status_is_ok(status)) return status;
  kiln_graph_work_t work = kiln_graph_work_empty();
  assert_null(kiln_graph_add(graph, NULL, 0, &work, NULL));
  // It survives the builder.
  assert_null(kiln_graph_builder_close(b));
  assert_null(kiln_graph_add(graph, NULL, 0, &work, NULL));
  kiln_graph_release(graph);
  return kiln_ok();
}

static kiln_status_t update_from(kiln_graph_builder_t* b) {
  kiln_graph_t* graph = NULL;
  kiln_graph_t* empty = NULL;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_create(kit.device, &empty));
  assert_null(kiln_graph_exec_create(empty, NULL, &exec));
  kiln_status_t status = kiln_graph_builder_graph(b, &graph);
  if (kiln_status_is_ok(status) && kiln_graph_builder_kind(b) == P) {
    status = kiln_graph_exec_update(exec, graph, NULL);
    bool lacks =
        !kilni_table_cuda_has(&kit.table, KILNI_CUDA_ROW_cuGraphExecUpdate);
    if (lacks && kiln_status_code(status) == KILN_STATUS_UNSUPPORTED) {
      kiln_status_free(status);
      status = kiln_ok();
    }
  }
  kiln_graph_release(graph);
  kiln_graph_exec_release(exec);
  kiln_graph_release(empty);
  return status;
}

static kiln_status_t split_and_join(kiln_graph_builder_t* b) {
  kiln_graph_builder_t* forks[2] = {NULL, NULL};
  kiln_status_t status = kiln_graph_builder_split(b, 3, forks);
  assert_int_equal(forks[1] != NULL, kiln_status_is_ok(status));
  if (!kiln_status_is_ok(status)) return status;
  kiln_graph_builder_t* all[] = {forks[0], b, forks[1]};
  kiln_graph_builder_t* root = NULL;
  // The one that is not forked, else the first.
  status = kiln_graph_builder_join(all, 3, &root);
  kiln_graph_builder_t* right = kiln_graph_builder_kind(b) == F ? forks[0] : b;
  assert_ptr_equal(root, kiln_status_is_ok(status) ? right : NULL);
  for (int i = 0; i < 2; i++) kiln_graph_builder_release(forks[i]);
  return status;
}

static kiln_status_t join_member(kiln_graph_builder_t* b) {
  kiln_graph_builder_t* both[] = {b, b};
  return kiln_graph_builder_join(both, 2, NULL);
}

static kiln_status_t condition(kiln_graph_builder_t* b) {
  kiln_graph_condition_t made_one = {1, NULL};
  uint32_t first = 1;
  kiln_status_t status = kiln_graph_builder_add_condition(b, &first, &made_one);
  if (!kiln_status_is_ok(status)) assert_null(made_one.graph);
  return status;
}

static kiln_status_t choice(kiln_graph_builder_t* b) {
  kiln_graph_conditional_t given = {{7, NULL}, KILN_GRAPH_WHILE, 1};
  kiln_graph_builder_t* body = NULL;
  if (kiln_graph_builder_state(b) == KILN_GRAPH_BUILDER_CAPTURING) {
    assert_null(kiln_graph_builder_add_condition(b, NULL, &given.condition));
  }
  kiln_status_t status = kiln_graph_builder_add_conditional(b, &given, &body);
  assert_int_equal(body != NULL, kiln_status_is_ok(status));
  kiln_graph_builder_release(body);
  return status;
}

static kiln_status_t embed(kiln_graph_builder_t* b) {
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &child));
  kiln_status_t status = kiln_graph_builder_embed(b, child);
  kiln_graph_release(child);
  return status;
}

static void nothing(void* user) {
  (void)user;
}

static kiln_status_t call_host(kiln_graph_builder_t* b) {
  int32_t data = 3;
  kiln_graph_host_t host = {nothing, &data, sizeof(data),
                            graph_kit_owner(&kit.told)};
  kit.told = 0;
  kiln_status_t status = kiln_graph_builder_call_host(b, &host);
  assert_int_equal(kit.told, 0);  // taken, or not
  return status;
}

static kiln_status_t put_work(kiln_graph_builder_t* b) {
  kiln_stream_t* stream = NULL;
  KILNI_RETURN_IF_ERROR(kiln_graph_builder_stream(b, &stream));
  kiln_status_t status = kiln_launch_run(kit.launch, stream);
  kiln_status_t fill = kiln_buffer_fill_async(kit.buffer, stream, 0, 4, 0, 4);
  assert_int_equal(kiln_status_code(status), kiln_status_code(fill));
  kiln_status_free(fill);
  return status;
}

static kiln_status_t close_it(kiln_graph_builder_t* b) {
  kiln_status_t status = kiln_graph_builder_close(b);
  assert_int_equal(kiln_graph_builder_state(b), KILN_GRAPH_BUILDER_CLOSED);
  assert_null(kiln_graph_builder_close(b));
  return status;
}

// ---- The table ----

// What each state says: NULL is OK, else what the refusal has in its text, all
// of them INVALID_STATE; SKIP is a state that the kind cannot be in.
#define SKIP ((const char*)1)
#define C    "is closed"
#define NS   "has not begun"
#define CAP  "is capturing"
#define END  "has ended"
#define INV  "was invalidated"
#define IDLE "takes no work"
#define FG   "no graph of its own"

// A method's row. thread-safe
typedef struct row_t {
  const char* name;
  kiln_status_t (*call)(kiln_graph_builder_t* b);
  // In the order NOT_STARTED, CAPTURING, ENDED, CLOSED, INVALIDATED.
  const char* primary[STATES];
  const char* body[STATES];
  const char* forked[2];  // CAPTURING, CLOSED
} row_t;

static const row_t kRows[] = {
    {"stream", ask_stream, {0, 0, 0, C, 0}, {0, 0, 0, C, 0}, {0, C}},
    {"is_building", ask_building, {0, 0, 0, C, 0}, {0, 0, 0, C, 0}, {0, C}},
    {"begin", begin, {0, CAP, END, C, INV}, {0, CAP, END, C, INV}, {CAP, C}},
    {"end",
     end,
     {NS, 0, END, C, INV},
     {NS, 0, END, C, INV},
     {"does not end: it is joined", C}},
    {"exec",
     make_exec,
     {NS, CAP, 0, C, INV},
     {NS, CAP, "runs as a part", C, INV},
     {FG, C}},
    {"graph", take_graph, {NS, CAP, 0, C, INV}, {0, CAP, 0, C, INV}, {FG, C}},
    {"update", update_from, {NS, CAP, 0, C, INV}, {0, CAP, 0, C, INV}, {FG, C}},
    {"split, join",
     split_and_join,
     {NS, 0, END, C, INV},
     {NS, 0, END, C, INV},
     {0, C}},
    {"join",
     join_member,
     {NS, SKIP, END, C, INV},
     {NS, SKIP, END, C, INV},
     {SKIP, C}},
    {"add_condition",
     condition,
     {NS, 0, END, C, INV},
     {NS, 0, END, C, INV},
     {0, C}},
    {"add_conditional",
     choice,
     {NS, 0, END, C, INV},
     {NS, 0, END, C, INV},
     {0, C}},
    {"embed", embed, {NS, 0, END, C, INV}, {NS, 0, END, C, INV}, {0, C}},
    {"call_host",
     call_host,
     {NS, 0, END, C, INV},
     {NS, 0, END, C, INV},
     {0, C}},
    {"work on its stream",
     put_work,
     {IDLE, 0, IDLE, C, IDLE},
     {IDLE, 0, IDLE, C, IDLE},
     {0, C}},
    {"close", close_it, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0}},
};

static void check_cell(const row_t* row, uint32_t kind, uint32_t state,
                       const char* text) {
  subject_t subject;
  if (text == SKIP) return;
  bring(&subject, kind, state);
  kiln_status_t status = row->call(subject.one);
  if (text == NULL && !kiln_status_is_ok(status)) {
    char said[1024];
    kiln_status_format(status, sizeof(said), said, NULL);
    fail_msg("%s, kind %u, state %u: %s", row->name, kind, state, said);
  }
  if (text != NULL) assert_says(status, KILN_STATUS_INVALID_STATE, text);
  take_away(&subject);
}

static void test_table(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    const row_t* row = &kRows[i];
    for (uint32_t s = 0; s < STATES; s++) {
      check_cell(row, P, s, row->primary[s]);
      check_cell(row, B, s, row->body[s]);
    }
    check_cell(row, F, KILN_GRAPH_BUILDER_CAPTURING, row->forked[0]);
    check_cell(row, F, KILN_GRAPH_BUILDER_CLOSED, row->forked[1]);
  }
}

// ---- Beside the table ----

static void test_arguments(void** state) {
  (void)state;
  subject_t s;
  kiln_graph_builder_t* forks[256];
  bring(&s, P, KILN_GRAPH_BUILDER_NOT_STARTED);
  kiln_status_t status = kiln_graph_builder_begin(s.one, 3);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  for (uint32_t mode = 0; mode < 3; mode++) {
    assert_null(kiln_graph_builder_begin(s.one, mode));
    take_away(&s);
    bring(&s, P, KILN_GRAPH_BUILDER_NOT_STARTED);
  }
  take_away(&s);
  bring(&s, P, KILN_GRAPH_BUILDER_CAPTURING);
  assert_says(kiln_graph_builder_split(s.one, 1, forks),
              KILN_STATUS_INVALID_ARGUMENT, "a split into 1 branches");
  assert_says(kiln_graph_builder_split(s.one, 257, forks),
              KILN_STATUS_INVALID_ARGUMENT, "257");
  assert_says(kiln_graph_builder_join(&s.one, 1, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "a join of 1 builders");
  kiln_graph_builder_t* twice[] = {s.one, s.one};
  assert_says(kiln_graph_builder_join(twice, 2, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "is given twice");
  subject_t other;
  bring(&other, P, KILN_GRAPH_BUILDER_CAPTURING);
  twice[1] = other.one;
  assert_says(kiln_graph_builder_join(twice, 2, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "of a different capture");
  take_away(&other);
  take_away(&s);
}

// The caller's stream runs work at once but while it is captured.
static void test_a_callers_stream(void** state) {
  (void)state;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  options.stream = kit.stream;
  kiln_graph_builder_t* builder = NULL;
  assert_null(kiln_graph_builder_create(kit.device, &options, &builder));
  assert_null(kiln_launch_run(kit.launch, kit.stream));
  assert_null(kiln_graph_builder_begin(builder, 0));
  assert_null(kiln_launch_run(kit.launch, kit.stream));
  assert_null(kiln_graph_builder_end(builder));
  assert_null(kiln_launch_run(kit.launch, kit.stream));
  assert_null(kiln_stream_synchronize(kit.stream));
  kiln_graph_builder_release(builder);
  kiln_stream_t* legacy = NULL;
  assert_null(kiln_stream_default(kit.device, KILN_STREAM_LEGACY, &legacy));
  options.stream = legacy;
  assert_says(kiln_graph_builder_create(kit.device, &options, &builder),
              KILN_STATUS_INVALID_ARGUMENT, "cannot be captured");
  kiln_stream_release(legacy);
}

// Somebody else's call spoils a capture; asking says so, and nothing else does
// before the end.
static void test_invalidated_meanwhile(void** state) {
  (void)state;
  for (uint32_t mode = 0; mode < 3; mode++) {
    subject_t s;
    bring(&s, P, KILN_GRAPH_BUILDER_NOT_STARTED);
    assert_null(kiln_graph_builder_begin(s.one, mode));
    invalidate(s.one);
    bool building = true;
    assert_says(kiln_graph_builder_is_building(s.one, &building),
                KILN_STATUS_INVALID_STATE, "capture was invalidated");
    assert_false(building);
    assert_int_equal(kiln_graph_builder_state(s.one),
                     KILN_GRAPH_BUILDER_CAPTURING);
    assert_says(kiln_graph_builder_end(s.one), KILN_STATUS_INVALID_STATE,
                "discarded its graph");
    assert_says(kiln_graph_builder_end(s.one), KILN_STATUS_INVALID_STATE, INV);
    invalid = false;
    take_away(&s);
  }
}

// A driver crashes over the end of such a body: it must never be asked for.
static void test_an_invalidated_body(void** state) {
  (void)state;
  subject_t s;
  bring(&s, B, KILN_GRAPH_BUILDER_CAPTURING);
  invalidate(s.one);
  kit.abandoned++;
  uint64_t nth = 0;
  kilni_table_cuda_fault_arm(&kit.table, nth, KILNI_FAULT_ONCE, 0);
  assert_says(kiln_graph_builder_end(s.one), KILN_STATUS_INVALID_STATE,
              "that crashes drivers");
  // It was asked for its status, and nothing was called behind that.
  assert_int_equal(kilni_table_cuda_fault_disarm(&kit.table), 1);
  assert_int_equal(kiln_graph_builder_state(s.one),
                   KILN_GRAPH_BUILDER_INVALIDATED);
  kiln_graph_t* graph = NULL;
  assert_says(kiln_graph_builder_graph(s.one, &graph),
              KILN_STATUS_INVALID_STATE, INV);
  invalid = false;
  kiln_graph_builder_release(s.one);
  kiln_graph_builder_release(s.root);
}

// A fork whose primary has ended can only be closed.
static void test_a_fork_too_late(void** state) {
  (void)state;
  subject_t s;
  bring(&s, F, KILN_GRAPH_BUILDER_CAPTURING);
  assert_null(kiln_graph_builder_close(s.root));
  kiln_graph_builder_t* fork = NULL;
  assert_says(kiln_graph_builder_split(s.one, 2, &fork),
              KILN_STATUS_INVALID_STATE, "forked from has ended");
  assert_null(kiln_graph_builder_close(s.one));
  take_away(&s);
}

int main(int argc, char** argv) {
  on_soft = argc > 1 && strcmp(argv[1], "soft") == 0;
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_table),
      T(test_arguments),
      T(test_a_callers_stream),
      T(test_invalidated_meanwhile),
      T(test_an_invalidated_body),
      T(test_a_fork_too_late),
#undef T
  };
  return cmocka_run_group_tests_name("graph_states", tests, NULL, NULL);
}
