// SPDX-License-Identifier: Apache-2.0
//
// live: what graphs are made of, each kind by itself: attributes of kernel
// nodes, programmatic edges by hand and by capture, other work for each kind of
// node in its graph and in its executable, uploads, launches within a capture,
// executables for device code, memory in numbers, names and clones, pictures.
//
//   live_graph_kinds            everything on cuda:0; exit 77 without a GPU
//   live_graph_kinds soft       the same on the software device
//
// Each stage is a process of its own, without a current context, with it, and
// with another device's, where there is one.
#define _POSIX_C_SOURCE 200809L
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "kiln/kiln.h"
#include "live_check.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

extern char** environ;

enum { CELLS = 64, NONE = 0, OWN = 1, FOREIGN = 2, WAYS = 3, SKIP = 77 };

static const char kPtx[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    // x[to] = x[to] * 3 + a
    ".visible .entry step(.param .u64 x, .param .u32 to, .param .u32 a) {\n"
    ".reg .b64 %d<5>;\n.reg .b32 %r<5>;\n"
    "ld.param.u64 %d1, [x];\ncvta.to.global.u64 %d2, %d1;\n"
    "ld.param.u32 %r1, [to];\nld.param.u32 %r2, [a];\n"
    "mul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d2, %d3;\n"
    "ld.volatile.global.u32 %r3, [%d4];\nmad.lo.u32 %r4, %r3, 3, %r2;\n"
    "st.volatile.global.u32 [%d4], %r4;\nret;\n}\n";

// A device and what the work is made of. one-thread
typedef struct live_t {
  kiln_cuda_table_t cu;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_device_t* other;  // NULL: there is none
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_buffer_t* cells;
  kiln_graph_t* graph;
} live_t;

// ---- Pieces ----

// `attributes` may be NULL; NULL, told, where the device does not have them.
static kiln_launch_t* launch_of(live_t* live, uint32_t blocks, uint32_t to,
                                uint32_t a,
                                const kiln_launch_attributes_t* attributes) {
  kiln_launch_t* launch = NULL;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = blocks;
  config.attributes = attributes;
  kiln_status_t status = kiln_launch_create(live->kernel, &config, &launch);
  if (lacks(status, "an attribute of a launch") || !OK(status)) return NULL;
  const kiln_argument_t arguments[] = {kiln_arg_buffer(live->cells),
                                       kiln_arg_u32(to), kiln_arg_u32(a)};
  OK(kiln_launch_set_all(launch, arguments, 3));
  return launch;
}

static kiln_graph_node_t* add(kiln_graph_t* graph, kiln_graph_node_t* after,
                              kiln_graph_work_t work) {
  kiln_graph_node_t* node = NULL;
  OK(kiln_graph_add(graph, &after, after == NULL ? 0 : 1, &work, &node));
  return node;
}

static kiln_graph_node_t* add_step(live_t* live, kiln_graph_t* graph,
                                   kiln_graph_node_t* after, uint32_t to,
                                   uint32_t a) {
  kiln_launch_t* launch = launch_of(live, 1, to, a, NULL);
  kiln_graph_node_t* node = add(graph, after, kiln_graph_work_launch(launch));
  kiln_launch_release(launch);
  return node;
}

static void clear(live_t* live) {
  uint32_t zero[CELLS] = {0};
  OK(kiln_buffer_write(live->cells, 0, sizeof(zero), zero));
}

static uint32_t cell(live_t* live, uint32_t index) {
  uint32_t value = 0;
  OK(kiln_buffer_read(live->cells, 4 * index, 4, &value));
  return value;
}

static void run_exec(live_t* live, kiln_graph_exec_t* exec) {
  clear(live);
  OK(kiln_graph_exec_launch(exec, live->stream));
  OK(kiln_stream_synchronize(live->stream));
}

static kiln_graph_exec_t* run_graph(live_t* live, kiln_graph_t* graph) {
  kiln_graph_exec_t* exec = NULL;
  if (OK(kiln_graph_exec_create(graph, NULL, &exec))) run_exec(live, exec);
  return exec;
}

// ---- Attributes of kernel nodes ----

static void test_attributes(live_t* live) {
  kiln_launch_attributes_t all[4];
  for (int i = 0; i < 4; i++) all[i] = kiln_launch_attributes_default();
  int32_t least = 0;
  int32_t greatest = 0;
  OK(kiln_device_priorities(live->device, &least, &greatest));
  all[0].priority = greatest;
  all[0].given = KILN_LAUNCH_GIVEN_PRIORITY;
  all[1].cooperative = KILN_SWITCH_ON;
  all[2].cluster[0] = 1;
  all[3].cluster[0] = 2;
  uint32_t wanted[4] = {0};
  for (uint32_t i = 0; i < 4; i++) {
    kiln_launch_t* launch = launch_of(live, i == 3 ? 2 : 1, i, 5, &all[i]);
    if (launch == NULL) continue;
    kiln_graph_work_t work = kiln_graph_work_launch(launch);
    kiln_status_t status = kiln_graph_add(live->graph, NULL, 0, &work, NULL);
    if (!lacks(status, "an attribute of a node") && OK(status)) wanted[i] = 5;
    kiln_launch_release(launch);
  }
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.use_priority = KILN_SWITCH_ON;
  options.upload = live->stream;
  OK(kiln_graph_exec_create(live->graph, &options, &exec));
  OK(kiln_graph_exec_upload(exec, live->stream));
  run_exec(live, exec);
  for (uint32_t i = 0; i < 3; i++) IS(cell(live, i) == wanted[i]);
  // Two blocks of one cluster add to the same cell, in some order.
  if (wanted[3] != 0) IS(cell(live, 3) == 5 || cell(live, 3) == 20);
  kiln_graph_exec_release(exec);
}

// ---- Programmatic edges ----

static void test_programmatic(live_t* live) {
  kiln_launch_attributes_t early = kiln_launch_attributes_default();
  early.overlap = KILN_SWITCH_ON;
  kiln_launch_t* first = launch_of(live, 1, 0, 5, NULL);
  kiln_launch_t* second = launch_of(live, 1, 1, 6, &early);
  kiln_graph_edge_t edges[4];
  uint32_t count = 0;
  if (second == NULL) {
    kiln_launch_release(first);
    return;
  }
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_t* captured = NULL;
  kiln_stream_t* stream = NULL;
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  OK(kiln_graph_builder_begin(builder, KILN_GRAPH_CAPTURE_RELAXED));
  OK(kiln_graph_builder_stream(builder, &stream));
  OK(kiln_launch_run(first, stream));
  OK(kiln_launch_run(second, stream));
  OK(kiln_graph_builder_end(builder));
  OK(kiln_graph_builder_graph(builder, &captured));
  OK(kiln_graph_edges(captured, 4, edges, &count));
  if (IS(count == 1)) {
    IS(edges[0].type == KILN_GRAPH_EDGE_PROGRAMMATIC);
    IS(edges[0].from_port == KILN_GRAPH_PORT_TRIGGER && edges[0].to_port == 0);
  }
  kiln_graph_exec_release(run_graph(live, captured));
  IS(cell(live, 0) == 5 && cell(live, 1) == 6);
  // The same by hand: an edge, not an attribute.
  kiln_graph_work_t work = kiln_graph_work_launch(second);
  REFUSED(kiln_graph_add(live->graph, NULL, 0, &work, NULL), INVALID_ARGUMENT,
          "overlap");
  kiln_graph_node_t* a = add(live->graph, NULL, kiln_graph_work_launch(first));
  kiln_graph_node_t* b = add_step(live, live->graph, NULL, 1, 6);
  kiln_graph_edge_t edge = kiln_graph_edge(a, b);
  edge.from_port = KILN_GRAPH_PORT_TRIGGER;
  edge.type = KILN_GRAPH_EDGE_PROGRAMMATIC;
  OK(kiln_graph_connect(live->graph, &edge, 1));
  OK(kiln_graph_edges(live->graph, 4, edges, &count));
  if (IS(count == 1)) {
    IS(edges[0].type == KILN_GRAPH_EDGE_PROGRAMMATIC && edges[0].from == a);
  }
  kiln_graph_exec_release(run_graph(live, live->graph));
  IS(cell(live, 0) == 5 && cell(live, 1) == 6);
  OK(kiln_graph_disconnect(live->graph, &edge, 1));
  kiln_graph_release(captured);
  kiln_graph_builder_release(builder);
  kiln_launch_release(second);
  kiln_launch_release(first);
}

// ---- Other work ----

static void bump(void* user) {
  *(uint32_t*)user += 1;
}

enum { KERNEL, FILL, COPY, HOST, CHILD, RECORD, WAIT, OPS, KINDS };

// The work of each kind in its first (`round` 0) and in other forms.
static kiln_graph_work_t work_of(live_t* live, int kind, uint32_t round,
                                 kiln_launch_t* launches[3],
                                 kiln_graph_t* children[3],
                                 kiln_event_t* events[3], uint32_t* calls) {
  static uint32_t numbers[3] = {40, 41, 42};
  static kiln_graph_memory_op_t ops[3];
  switch (kind) {
    case KERNEL:
      return kiln_graph_work_launch(launches[round]);
    case FILL:
      return kiln_graph_work_fill(live->cells, 4, 1, 20 + round, 4);
    case COPY:
      return kiln_graph_work_move(kiln_graph_place_buffer(live->cells, 8),
                                  kiln_graph_place_host_read(&numbers[round]),
                                  4);
    case HOST:
      return kiln_graph_work_host(bump, &calls[round]);
    case CHILD:
      return kiln_graph_work_child(children[round]);
    case RECORD:
      return kiln_graph_work_record(events[round]);
    case WAIT:
      return kiln_graph_work_wait(events[round]);
    default:
      memset(&ops[round], 0, sizeof(ops[round]));
      ops[round].buffer = live->cells;
      ops[round].offset = 16;
      ops[round].value = 50 + round;
      ops[round].word_bytes = 4;
      return kiln_graph_work_memory_ops(&ops[round], 1);
  }
}

static void is_round(live_t* live, const uint32_t* calls, uint32_t round,
                     uint32_t host_calls, const bool* has) {
  IS(cell(live, 0) == 10 + round);
  IS(cell(live, 1) == 20 + round);
  IS(cell(live, 2) == 40 + round);
  IS(calls[round] == host_calls);
  if (has[CHILD]) IS(cell(live, 3) == 30 + round);
  if (has[OPS]) IS(cell(live, 4) == 50 + round);
}

// Each node is given other work in the executable, then in its graph: the one
// changes the executable alone, the other what is made of the graph later.
static void test_other_work(live_t* live) {
  kiln_launch_t* launches[3];
  kiln_graph_t* children[3];
  kiln_event_t* events[3];
  kiln_graph_node_t* nodes[KINDS] = {NULL};
  bool has[KINDS];
  bool in_place[KINDS];
  uint32_t calls[3] = {0};
  for (uint32_t i = 0; i < 3; i++) {
    launches[i] = launch_of(live, 1, 0, 10 + i, NULL);
    OK(kiln_graph_create(live->device, &children[i]));
    (void)add_step(live, children[i], NULL, 3, 30 + i);
    OK(kiln_event_create(live->device, NULL, &events[i]));
  }
  for (int k = 0; k < KINDS; k++) {
    kiln_graph_work_t work =
        work_of(live, k, 0, launches, children, events, calls);
    kiln_status_t status =
        kiln_graph_add(live->graph, NULL, 0, &work, &nodes[k]);
    has[k] = !lacks(status, "a kind of node") && OK(status);
    in_place[k] = has[k];
  }
  kiln_graph_exec_t* exec = run_graph(live, live->graph);
  is_round(live, calls, 0, 1, has);
  for (int k = 0; k < KINDS; k++) {
    if (!has[k]) continue;
    kiln_graph_work_t work =
        work_of(live, k, 1, launches, children, events, calls);
    OK(kiln_graph_exec_set(exec, nodes[k], &work));
    kiln_graph_work_t wrong = kiln_graph_work_empty();
    REFUSED(kiln_graph_exec_set(exec, nodes[k], &wrong), INVALID_ARGUMENT,
            "cannot become");
  }
  run_exec(live, exec);
  is_round(live, calls, 1, 1, has);
  for (int k = 0; k < KINDS; k++) {
    if (!has[k]) continue;
    kiln_graph_work_t work =
        work_of(live, k, 2, launches, children, events, calls);
    kiln_status_t status = kiln_graph_node_set(nodes[k], &work);
    in_place[k] = !lacks(status, "other work of a node") && OK(status);
  }
  run_exec(live, exec);
  is_round(live, calls, 1, 2, has);
  kiln_graph_exec_release(exec);
  if (!in_place[CHILD]) has[CHILD] = false;
  exec = run_graph(live, live->graph);
  is_round(live, calls, 2, 1, has);
  kiln_graph_exec_release(exec);
  for (uint32_t i = 0; i < 3; i++) {
    kiln_launch_release(launches[i]);
    kiln_graph_release(children[i]);
    kiln_event_release(events[i]);
  }
}

// ---- Executables as work ----

static void test_captured_launch(live_t* live) {
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_exec_t* outer = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_t* captured = NULL;
  kiln_stream_t* stream = NULL;
  (void)add_step(live, live->graph, NULL, 0, 2);
  OK(kiln_graph_exec_create(live->graph, NULL, &exec));
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  OK(kiln_graph_builder_begin(builder, KILN_GRAPH_CAPTURE_THREAD_LOCAL));
  OK(kiln_graph_builder_stream(builder, &stream));
  REFUSED(kiln_graph_exec_launch(exec, stream), INVALID_STATE, "captur");
  REFUSED(kiln_graph_builder_end(builder), INVALID_STATE,
          "discarded its graph");
  kiln_graph_builder_release(builder);
  run_exec(live, exec);
  IS(cell(live, 0) == 2);
  // What is embedded is a node.
  kiln_launch_t* launch = launch_of(live, 1, 0, 1, NULL);
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  OK(kiln_graph_builder_begin(builder, KILN_GRAPH_CAPTURE_THREAD_LOCAL));
  OK(kiln_graph_builder_stream(builder, &stream));
  OK(kiln_launch_run(launch, stream));
  OK(kiln_graph_builder_embed(builder, live->graph));
  OK(kiln_graph_builder_end(builder));
  OK(kiln_graph_builder_graph(builder, &captured));
  outer = run_graph(live, captured);
  IS(cell(live, 0) == 1 * 3 + 2);
  kiln_graph_exec_release(outer);
  kiln_graph_release(captured);
  kiln_graph_builder_release(builder);
  kiln_launch_release(launch);
  kiln_graph_exec_release(exec);
}

static void test_device_launch(live_t* live) {
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.device_launch = KILN_SWITCH_ON;
  (void)add_step(live, live->graph, NULL, 0, 5);
  kiln_status_t status = kiln_graph_exec_create(live->graph, &options, &exec);
  if (lacks(status, "an executable for device code")) return;
  if (!OK(status)) return;
  OK(kiln_graph_exec_upload(exec, live->stream));
  run_exec(live, exec);
  IS(cell(live, 0) == 5);
  kiln_graph_exec_release(exec);
  uint32_t number = 0;
  (void)add(live->graph, NULL, kiln_graph_work_host(bump, &number));
  REFUSED(kiln_graph_exec_create(live->graph, &options, &exec),
          INVALID_ARGUMENT,
          "what a graph that is launched from the device cannot do");
  IS(exec == NULL);
}

// ---- Memory in numbers ----

static void test_memory(live_t* live) {
  enum { BYTES = 1 << 20 };
  kiln_graph_memory_t before;
  kiln_graph_memory_t now;
  OK(kiln_graph_memory_trim(live->device));
  OK(kiln_graph_memory_describe(live->device, &before));
  OK(kiln_graph_memory_reset_peaks(live->device));
  kiln_graph_node_t* node =
      add(live->graph, NULL, kiln_graph_work_allocate(BYTES));
  (void)add(live->graph, node,
            kiln_graph_work_free(kiln_graph_node_address(node)));
  kiln_graph_exec_t* exec = run_graph(live, live->graph);
  OK(kiln_graph_memory_describe(live->device, &now));
  IS(now.used_peak >= before.used + BYTES && now.used <= now.used_peak);
  IS(now.reserved_peak >= BYTES && now.reserved >= before.reserved);
  printf("memory of graphs: %llu used, %llu at most, %llu reserved\n",
         (unsigned long long)now.used, (unsigned long long)now.used_peak,
         (unsigned long long)now.reserved);
  uint64_t peak = now.used_peak;
  OK(kiln_graph_memory_reset_peaks(live->device));
  OK(kiln_graph_memory_describe(live->device, &now));
  IS(now.used_peak <= peak);
  kiln_graph_exec_release(exec);
  OK(kiln_graph_memory_trim(live->device));
  OK(kiln_graph_memory_describe(live->device, &now));
  IS(now.reserved <= now.reserved_peak);
}

// ---- Names, clones ----

static void test_names(live_t* live) {
  kiln_graph_t* clone = NULL;
  kiln_graph_node_t* found = NULL;
  kiln_graph_node_t* nodes[4];
  uint32_t count = 0;
  kiln_graph_node_t* first = add_step(live, live->graph, NULL, 0, 1);
  kiln_graph_node_t* second = add_step(live, live->graph, first, 0, 2);
  OK(kiln_graph_node_set_name(second, "second"));
  OK(kiln_graph_find(live->graph, "second", &found));
  IS(found == second);
  REFUSED(kiln_graph_find(live->graph, "third", &found), NOT_FOUND, "third");
  OK(kiln_graph_clone(live->graph, &clone));
  OK(kiln_graph_find(clone, "second", &found));
  IS(found != NULL && found != second && kiln_graph_node_graph(found) == clone);
  OK(kiln_graph_node_before(found, 4, nodes, &count));
  IS(count == 1);
  OK(kiln_graph_node_remove(first));
  IS(!kiln_graph_node_is_valid(first) && kiln_graph_node_is_valid(second));
  kiln_graph_exec_release(run_graph(live, live->graph));
  IS(cell(live, 0) == 2);
  kiln_graph_exec_release(run_graph(live, clone));
  IS(cell(live, 0) == 1 * 3 + 2);
  kiln_graph_release(clone);
}

// ---- Pictures ----

// Text that was written. one-thread
typedef struct text_t {
  char bytes[1 << 16];
  size_t size;
} text_t;

static bool take(const char* text, size_t size, void* user_data) {
  text_t* out = user_data;
  if (size >= sizeof(out->bytes) - out->size) return false;
  memcpy(out->bytes + out->size, text, size);
  out->size += size;
  out->bytes[out->size] = 0;
  return true;
}

static void test_pictures(live_t* live) {
  static const char path[] = "live_graph_kinds.dot";
  static text_t text;
  kiln_graph_trace_t* trace = NULL;
  kiln_graph_slice_t slice;
  kiln_graph_node_t* first = add_step(live, live->graph, NULL, 0, 1);
  kiln_graph_node_t* second =
      add(live->graph, first, kiln_graph_work_fill(live->cells, 4, 1, 7, 4));
  OK(kiln_graph_node_set_name(first, "step it"));
  OK(kiln_graph_node_set_name(second, "fill it"));
  OK(kiln_graph_draw(live->graph, NULL, take, &text));
  IS(strstr(text.bytes, "digraph") != NULL);
  IS(strstr(text.bytes, "step it") != NULL && strstr(text.bytes, "->") != NULL);
  OK(kiln_graph_dump_file(live->graph, KILN_GRAPH_DUMP_VERBOSE, path));
  FILE* file = fopen(path, "rb");
  if (IS(file != NULL)) {
    char start[16] = {0};
    IS(fread(start, 1, 7, file) == 7 && strcmp(start, "digraph") == 0);
    fclose(file);
  }
  remove(path);
  OK(kiln_graph_trace_create(live->graph, NULL, &trace));
  OK(kiln_graph_trace_launch(trace, live->stream));
  OK(kiln_stream_synchronize(live->stream));
  OK(kiln_graph_trace_read(trace));
  IS(kiln_graph_trace_count(trace) == 2);
  OK(kiln_graph_trace_slice(trace, 1, &slice));
  IS(slice.is_start_known != 0 && strcmp(slice.name, "fill it") == 0);
  uint64_t begin = slice.start_ns;
  OK(kiln_graph_trace_slice(trace, 0, &slice));
  IS(slice.start_ns + slice.elapsed_ns <= begin + 2000);
  text.size = 0;
  OK(kiln_graph_trace_write(trace, take, &text));
  IS(strstr(text.bytes, "traceEvents") != NULL);
  kiln_graph_trace_release(trace);
}

// ---- Everything ----

static const struct {
  const char* name;
  void (*run)(live_t* live);
} kStages[] = {
    {"attributes", test_attributes},
    {"programmatic", test_programmatic},
    {"other_work", test_other_work},
    {"captured_launch", test_captured_launch},
    {"device_launch", test_device_launch},
    {"memory", test_memory},
    {"names", test_names},
    {"pictures", test_pictures},
};
enum { STAGES = sizeof(kStages) / sizeof(kStages[0]) };

static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  ((live_t*)user)->cu = *inout_table;
  return kiln_ok();
}

static void run_on(live_t* live, int stage, int way) {
  kiln_bytes_view_t ptx = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_cu_context_t current = way == OWN ? kiln_device_context(live->device)
                              : way == FOREIGN
                                  ? kiln_device_context(live->other)
                                  : NULL;
  kiln_cu_context_t seen = NULL;
  IS(live->cu.cuCtxSetCurrent(current) == 0);
  OK(kiln_stream_create(live->device, NULL, &live->stream));
  OK(kiln_module_load(live->device, ptx, NULL, NULL, &live->module));
  OK(kiln_kernel_create(live->module, "step", &live->kernel));
  OK(kiln_buffer_create(live->device, 4 * CELLS, NULL, &live->cells));
  OK(kiln_graph_create(live->device, &live->graph));
  clear(live);
  if (failures == 0) kStages[stage].run(live);
  kiln_graph_release(live->graph);
  kiln_buffer_release(live->cells);
  kiln_kernel_release(live->kernel);
  kiln_module_release(live->module);
  kiln_stream_release(live->stream);
  IS(live->cu.cuCtxGetCurrent(&seen) == 0 && seen == current);
  (void)live->cu.cuCtxSetCurrent(NULL);
}

static int run_stage(const char* device, int stage, int way) {
  static live_t live;
  bool soft = strcmp(device, "soft") == 0;
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.soft_devices = 2;
  hooks.wrap = keep_table;
  hooks.user = &live;
  if (!OK(kilni_runtime_create_with(&options, &hooks, &live.runtime))) return 1;
  kiln_status_t status =
      kiln_runtime_open_device(live.runtime, device, &live.device);
  if (kiln_status_is_ok(status) && way == FOREIGN) {
    status = kiln_runtime_open_device(live.runtime, soft ? "soft:1" : "cuda:1",
                                      &live.other);
  }
  int code = SKIP;
  if (kiln_status_is_ok(status)) {
    run_on(&live, stage, way);
    code = failures == 0 ? 0 : 1;
  } else {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
  }
  kiln_device_release(live.other);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  return code;
}

// The exit code of another process, or 128 and the signal that ended it.
static int spawn_stage(const char* program, const char* device, int stage,
                       int way) {
  char numbers[2][16];
  char* own = NULL;
  char* where = NULL;
  memcpy(&own, &program, sizeof(own));
  memcpy(&where, &device, sizeof(where));
  snprintf(numbers[0], sizeof(numbers[0]), "%d", stage);
  snprintf(numbers[1], sizeof(numbers[1]), "%d", way);
  char* arguments[] = {own, where, numbers[0], numbers[1], NULL};
  pid_t child = 0;
  int ended = 0;
  if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0 ||
      waitpid(child, &ended, 0) != child) {
    return 1;
  }
  return WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
}

int main(int argc, char** argv) {
  static const char* const kWays[] = {"without a context", "with its context",
                                      "with another device's context"};
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  if (argc > 3) return run_stage(device, argv[2][0] - '0', argv[3][0] - '0');
  int bad = 0;
  int done = 0;
  for (int i = 0; i < WAYS * STAGES; i++) {
    int code = spawn_stage(argv[0], device, i / WAYS, i % WAYS);
    if (code == SKIP && i == 0) return SKIP;
    if (code == SKIP) continue;
    done++;
    if (code == 0) continue;
    printf("%s %s ended with %d\n", kStages[i / WAYS].name, kWays[i % WAYS],
           code);
    bad++;
  }
  printf("%d of %d stages failed on %s\n", bad, done, device);
  return bad == 0 ? 0 : 1;
}
