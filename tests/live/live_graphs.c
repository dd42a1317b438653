// SPDX-License-Identifier: Apache-2.0
//
// live: graphs on a real driver: random work by hand, by capture and on the
// host must give equal numbers; executables that are updated at random do the
// new work or say why not, and then do the old; what kernels do not need
// (copies, fills, host functions, allocations, graphs in graphs, choices); a
// capture that is spoiled; owners that are told.
//
//   live_graphs             everything on cuda:0; exit 77 without a GPU
//   live_graphs soft        the same on the software device
#define _POSIX_C_SOURCE 200809L
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "device/device_inside.h"
#include "kiln/kiln.h"
#include "live_check.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

extern char** environ;

enum { CELLS = 8, OPS = 24, BRANCHES = 3, GRAPHS = 12, CHANGES = 6 };

// True for a refusal of this code; a provider that lacks it is skipped.
static const char kPtx[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    // x[to] = x[to] * a + x[from] + 1
    ".visible .entry mix(.param .u64 x, .param .u32 to, .param .u32 from,\n"
    ".param .u32 a) {\n.reg .b64 %d<8>;\n.reg .b32 %r<9>;\n"
    "ld.param.u64 %d1, [x];\ncvta.to.global.u64 %d2, %d1;\n"
    "ld.param.u32 %r1, [to];\nld.param.u32 %r2, [from];\n"
    "ld.param.u32 %r3, [a];\n"
    "mul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d2, %d3;\n"
    "mul.wide.u32 %d5, %r2, 4;\nadd.s64 %d6, %d2, %d5;\n"
    "ld.global.u32 %r4, [%d4];\nld.global.u32 %r5, [%d6];\n"
    "mad.lo.u32 %r6, %r4, %r3, %r5;\nadd.u32 %r7, %r6, 1;\n"
    "st.global.u32 [%d4], %r7;\nret;\n}\n"
    // *through = a; *to = *through
    ".visible .entry carry(.param .u64 through, .param .u64 to,\n"
    "  .param .u32 a) {\n"
    "  .reg .b64 %t<5>;\n  .reg .b32 %v<3>;\n"
    "  ld.param.u64 %t1, [through];\n  ld.param.u64 %t2, [to];\n"
    "  cvta.to.global.u64 %t3, %t1;\n  cvta.to.global.u64 %t4, %t2;\n"
    "  ld.param.u32 %v1, [a];\n  st.volatile.global.u32 [%t3], %v1;\n"
    "  ld.volatile.global.u32 %v2, [%t3];\n  st.global.u32 [%t4], %v2;\n"
    "  ret;\n}\n";

// A device and what the work is made of. one-thread
typedef struct live_t {
  kiln_cuda_table_t cu;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* mix;
  kiln_kernel_t* carry;
  kiln_launch_t* launch;
  kiln_launch_t* carrying;
  kiln_buffer_t* cells;
} live_t;

// One step on a cell: a kernel, a fill or a copy; the kernel inside of a graph
// that is a node (CHILD), or where `a` is odd (CONDITIONAL); a fill by way of
// memory that the graph allocates (ALLOCATE). thread-compatible
typedef struct op_t {
  uint32_t kind;  // KILN_GRAPH_*
  uint32_t to;
  uint32_t from;
  uint32_t a;
} op_t;

static uint64_t seed_now;

static uint32_t random_below(uint32_t bound) {
  seed_now = seed_now * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(seed_now >> 33) % bound;
}

// ---- The same work three times ----

static op_t random_op(void) {
  static const uint32_t kinds[] = {KILN_GRAPH_KERNEL, KILN_GRAPH_KERNEL,
                                   KILN_GRAPH_FILL, KILN_GRAPH_COPY};
  op_t op = {kinds[random_below(4)], random_below(CELLS), random_below(CELLS),
             random_below(1000)};
  if (op.from == op.to) op.from = (op.to + 1) % CELLS;
  return op;
}

// Of all kinds, where the device has them.
static op_t random_mixed_op(bool with_conditions) {
  static const uint32_t kinds[] = {KILN_GRAPH_CHILD, KILN_GRAPH_ALLOCATE,
                                   KILN_GRAPH_CONDITIONAL};
  op_t op = random_op();
  uint32_t kind = random_below(6);
  if (kind < (with_conditions ? 3u : 2u)) op.kind = kinds[kind];
  return op;
}

static bool is_plain(const op_t* op) {
  return op->kind <= KILN_GRAPH_FILL;
}

static bool is_fill(const op_t* op) {
  return op->kind == KILN_GRAPH_FILL || op->kind == KILN_GRAPH_ALLOCATE;
}

static bool is_mix(const op_t* op) {
  return op->kind == KILN_GRAPH_KERNEL || op->kind == KILN_GRAPH_CHILD ||
         (op->kind == KILN_GRAPH_CONDITIONAL && op->a % 2 != 0);
}

static void on_host(const op_t* ops, const bool* off, uint32_t* cells) {
  for (uint32_t i = 0; i < CELLS; i++) cells[i] = i;
  for (int i = 0; i < OPS; i++) {
    const op_t* op = &ops[i];
    if (off != NULL && off[i]) continue;
    if (is_fill(op)) cells[op->to] = op->a;
    if (op->kind == KILN_GRAPH_COPY) cells[op->to] = cells[op->from];
    if (is_mix(op)) {
      cells[op->to] = cells[op->to] * op->a + cells[op->from] + 1;
    }
  }
}

static kiln_graph_work_t work_of(live_t* live, const op_t* op) {
  if (op->kind == KILN_GRAPH_FILL) {
    return kiln_graph_work_fill(live->cells, 4 * op->to, 1, op->a, 4);
  }
  if (op->kind == KILN_GRAPH_COPY) {
    return kiln_graph_work_move(
        kiln_graph_place_buffer(live->cells, 4 * op->to),
        kiln_graph_place_buffer(live->cells, 4 * op->from), 4);
  }
  const kiln_argument_t arguments[] = {
      kiln_arg_buffer(live->cells), kiln_arg_u32(op->to),
      kiln_arg_u32(op->from), kiln_arg_u32(op->a)};
  OK(kiln_launch_set_all(live->launch, arguments, 4));
  return kiln_graph_work_launch(live->launch);
}

// Whether one must run before the other.
static bool conflict(const op_t* a, const op_t* b) {
  bool a_reads = !is_fill(a);
  bool b_reads = !is_fill(b);
  return a->to == b->to || (b_reads && a->to == b->from) ||
         (a_reads && a->from == b->to);
}

// A kernel in a graph of its own.
static kiln_graph_t* mix_in_graph(live_t* live, const op_t* op) {
  kiln_graph_t* graph = NULL;
  kiln_graph_work_t work = work_of(live, op);
  OK(kiln_graph_create(live->device, &graph));
  OK(kiln_graph_add(graph, NULL, 0, &work, NULL));
  return graph;
}

static bool add_choice(live_t* live, kiln_graph_t* graph,
                       kiln_graph_node_t* const* after, uint32_t count,
                       const op_t* op, kiln_graph_node_t** out_node) {
  kiln_graph_condition_t condition;
  kiln_graph_t* body = NULL;
  uint32_t first = op->a % 2;
  if (!OK(kiln_graph_add_condition(graph, &first, &condition))) return false;
  kiln_graph_work_t work =
      kiln_graph_work_conditional(condition, KILN_GRAPH_IF, 1);
  if (!OK(kiln_graph_add(graph, after, count, &work, out_node)) ||
      !OK(kiln_graph_node_inner(*out_node, 0, &body))) {
    return false;
  }
  work = work_of(live, op);
  bool good = OK(kiln_graph_add(body, NULL, 0, &work, NULL));
  kiln_graph_release(body);
  return good;
}

// A kernel writes into memory of the graph's own, which is then freed, and from
// there to the cell.
static bool add_store(live_t* live, kiln_graph_t* graph,
                      kiln_graph_node_t* const* after, uint32_t count,
                      const op_t* op, kiln_graph_node_t** out_node) {
  kiln_graph_node_t* node = NULL;
  kiln_graph_work_t work = kiln_graph_work_allocate(4096);
  if (!OK(kiln_graph_add(graph, after, count, &work, &node))) return false;
  uint64_t address = kiln_graph_node_address(node);
  const kiln_argument_t arguments[] = {
      kiln_arg_pointer(address),
      kiln_arg_pointer(kiln_buffer_address(live->cells) + 4 * op->to),
      kiln_arg_u32(op->a)};
  OK(kiln_launch_set_all(live->carrying, arguments, 3));
  work = kiln_graph_work_launch(live->carrying);
  if (!OK(kiln_graph_add(graph, &node, 1, &work, out_node))) return false;
  work = kiln_graph_work_free(address);
  return OK(kiln_graph_add(graph, out_node, 1, &work, NULL));
}

static bool add_op(live_t* live, kiln_graph_t* graph,
                   kiln_graph_node_t* const* after, uint32_t count,
                   const op_t* op, kiln_graph_node_t** out_node) {
  kiln_graph_t* child = NULL;
  kiln_graph_work_t work;
  *out_node = NULL;
  switch (op->kind) {
    case KILN_GRAPH_CONDITIONAL:
      return add_choice(live, graph, after, count, op, out_node);
    case KILN_GRAPH_ALLOCATE:
      return add_store(live, graph, after, count, op, out_node);
    case KILN_GRAPH_CHILD:
      child = mix_in_graph(live, op);
      work = kiln_graph_work_child(child);
      break;
    default:
      work = work_of(live, op);
      break;
  }
  bool good = OK(kiln_graph_add(graph, after, count, &work, out_node));
  kiln_graph_release(child);
  return good;
}

static bool by_hand(live_t* live, const op_t* ops, kiln_graph_t** out_graph,
                    kiln_graph_node_t** nodes) {
  if (!OK(kiln_graph_create(live->device, out_graph))) return false;
  for (int i = 0; i < OPS; i++) {
    kiln_graph_node_t* after[OPS];
    uint32_t count = 0;
    for (int k = 0; k < i; k++) {
      if (conflict(&ops[k], &ops[i])) after[count++] = nodes[k];
    }
    if (!add_op(live, *out_graph, after, count, &ops[i], &nodes[i])) {
      return false;
    }
  }
  return true;
}

static void put_choice(live_t* live, const op_t* op,
                       kiln_graph_builder_t* builder) {
  kiln_graph_conditional_t choice;
  kiln_graph_builder_t* body = NULL;
  kiln_stream_t* stream = NULL;
  uint32_t first = op->a % 2;
  memset(&choice, 0, sizeof(choice));
  choice.kind = KILN_GRAPH_IF;
  choice.bodies = 1;
  if (!OK(kiln_graph_builder_add_condition(builder, &first,
                                           &choice.condition)) ||
      !OK(kiln_graph_builder_add_conditional(builder, &choice, &body))) {
    return;
  }
  OK(kiln_graph_builder_begin(body, KILN_GRAPH_CAPTURE_RELAXED));
  OK(kiln_graph_builder_stream(body, &stream));
  (void)work_of(live, op);
  OK(kiln_launch_run(live->launch, stream));
  OK(kiln_graph_builder_end(body));
  kiln_graph_builder_release(body);
}

// What a builder has to add itself; false: a stream can.
static bool put_whole(live_t* live, const op_t* op,
                      kiln_graph_builder_t* builder) {
  if (op->kind == KILN_GRAPH_CONDITIONAL) {
    put_choice(live, op, builder);
    return true;
  }
  if (op->kind != KILN_GRAPH_CHILD) return false;
  kiln_graph_t* child = mix_in_graph(live, op);
  OK(kiln_graph_builder_embed(builder, child));
  kiln_graph_release(child);
  return true;
}

static kiln_status_t put(live_t* live, const op_t* op, kiln_stream_t* stream) {
  if (is_fill(op)) {
    return kiln_buffer_fill_async(live->cells, stream, 4 * op->to, 4, op->a, 4);
  }
  if (op->kind == KILN_GRAPH_COPY) {
    return kiln_buffer_copy_async(live->cells, stream, 4 * op->to, live->cells,
                                  4 * op->from, 4);
  }
  (void)work_of(live, op);
  return kiln_launch_run(live->launch, stream);
}

static bool by_capture(live_t* live, const op_t* ops, uint32_t mode,
                       kiln_graph_builder_t* builder) {
  kiln_graph_builder_t* all[BRANCHES] = {builder};
  kiln_stream_t* streams[BRANCHES];
  int branch[OPS];
  if (!OK(kiln_graph_builder_begin(builder, mode))) return false;
  if (!OK(kiln_graph_builder_split(builder, BRANCHES, all + 1))) return false;
  for (int b = 0; b < BRANCHES; b++) {
    OK(kiln_graph_builder_stream(all[b], &streams[b]));
  }
  for (int i = 0; i < OPS; i++) {
    branch[i] = (int)random_below(BRANCHES);
    bool waits[BRANCHES] = {false};
    for (int k = 0; k < i; k++) {
      if (branch[k] != branch[i] && conflict(&ops[k], &ops[i])) {
        waits[branch[k]] = true;
      }
    }
    for (int b = 0; b < BRANCHES; b++) {
      if (!waits[b]) continue;
      OK(kiln_stream_wait_stream(streams[branch[i]], streams[b]));
    }
    if (put_whole(live, &ops[i], all[branch[i]])) continue;
    OK(put(live, &ops[i], streams[branch[i]]));
  }
  OK(kiln_graph_builder_join(all, BRANCHES, NULL));
  for (int b = 1; b < BRANCHES; b++) kiln_graph_builder_release(all[b]);
  return OK(kiln_graph_builder_end(builder));
}

static void gives(live_t* live, kiln_graph_exec_t* exec, const op_t* ops,
                  const bool* off, const char* what) {
  uint32_t want[CELLS];
  uint32_t have[CELLS];
  for (uint32_t i = 0; i < CELLS; i++) have[i] = i;
  on_host(ops, off, want);
  OK(kiln_buffer_write(live->cells, 0, sizeof(have), have));
  OK(kiln_graph_exec_launch(exec, live->stream));
  OK(kiln_stream_synchronize(live->stream));
  OK(kiln_buffer_read(live->cells, 0, sizeof(have), have));
  live_check_is(memcmp(want, have, sizeof(want)) == 0, what, __FILE__,
                __LINE__);
}

// ---- Updates ----

static void change_nodes(live_t* live, kiln_graph_exec_t* exec, op_t* ops,
                         kiln_graph_node_t** nodes) {
  for (int i = 0; i < CHANGES; i++) {
    uint32_t at = random_below(OPS);
    op_t other = ops[at];
    other.a = random_below(1000);
    if (random_below(4) == 0) {
      // Another kind: refused, with the node.
      kiln_graph_work_t empty = kiln_graph_work_empty();
      REFUSED(kiln_graph_exec_set(exec, nodes[at], &empty), INVALID_ARGUMENT,
              "cannot become");
      continue;
    }
    kiln_graph_work_t work = work_of(live, &other);
    kiln_status_t status = kiln_graph_exec_set(exec, nodes[at], &work);
    if (lacks(status, "a node of an executable")) return;
    if (OK(status)) ops[at] = other;
  }
  gives(live, exec, ops, NULL, "changed nodes do other work than was said");
}

static void change_all(live_t* live, kiln_graph_exec_t* exec, op_t* ops) {
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[OPS];
  kiln_graph_update_t update;
  op_t others[OPS];
  memcpy(others, ops, sizeof(others));
  for (int i = 0; i < OPS; i++) others[i].a = random_below(1000);
  if (!by_hand(live, others, &graph, nodes)) return;
  kiln_status_t status = kiln_graph_exec_update(exec, graph, &update);
  if (!lacks(status, "an update of an executable")) {
    if (OK(status)) memcpy(ops, others, sizeof(others));
    gives(live, exec, ops, NULL, "an updated executable does other work");
    // One node more is another graph.
    kiln_graph_work_t work = kiln_graph_work_empty();
    OK(kiln_graph_add(graph, &nodes[0], 1, &work, NULL));
    REFUSED(kiln_graph_exec_update(exec, graph, &update), INVALID_ARGUMENT,
            "cannot be updated from this graph");
    IS(update.reason == KILN_GRAPH_UPDATE_TOPOLOGY);
    gives(live, exec, ops, NULL, "a refused update changed something");
  }
  kiln_graph_release(graph);
}

static void switch_off(live_t* live, kiln_graph_exec_t* exec, const op_t* ops,
                       kiln_graph_node_t** nodes) {
  bool off[OPS] = {false};
  bool enabled = true;
  for (int i = 0; i < CHANGES; i++) {
    uint32_t at = random_below(OPS);
    off[at] = true;
    OK(kiln_graph_exec_enable(exec, nodes[at], false));
    OK(kiln_graph_exec_is_enabled(exec, nodes[at], &enabled));
    IS(!enabled);
  }
  gives(live, exec, ops, off, "nodes that are off run, or others do not");
  for (int i = 0; i < OPS; i++) {
    OK(kiln_graph_exec_enable(exec, nodes[i], true));
  }
  gives(live, exec, ops, NULL, "nodes that are on again do not run");
}

static void one_graph(live_t* live, uint64_t seed) {
  op_t ops[OPS];
  kiln_graph_node_t* nodes[OPS];
  kiln_graph_t* graph = NULL;
  kiln_graph_t* clone = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_builder_t* builder = NULL;
  seed_now = seed;
  for (int i = 0; i < OPS; i++) ops[i] = random_op();
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  if (by_capture(live, ops, (uint32_t)(seed % 3), builder) &&
      OK(kiln_graph_builder_exec(builder, NULL, &exec))) {
    gives(live, exec, ops, NULL, "captured work gives other numbers");
  }
  kiln_graph_builder_release(builder);
  kiln_graph_exec_release(exec);
  exec = NULL;
  if (by_hand(live, ops, &graph, nodes) &&
      OK(kiln_graph_exec_create(graph, NULL, &exec))) {
    gives(live, exec, ops, NULL, "work by hand gives other numbers");
    gives(live, exec, ops, NULL, "the second launch gives other numbers");
    switch_off(live, exec, ops, nodes);
    change_nodes(live, exec, ops, nodes);
    change_all(live, exec, ops);
  }
  kiln_graph_exec_release(exec);
  exec = NULL;
  if (OK(kiln_graph_clone(graph, &clone)) &&
      OK(kiln_graph_exec_create(clone, NULL, &exec))) {
    kiln_graph_release(graph);
    graph = NULL;
    seed_now = seed;
    for (int i = 0; i < OPS; i++) ops[i] = random_op();
    gives(live, exec, ops, NULL, "a clone gives other numbers");
  }
  kiln_graph_exec_release(exec);
  kiln_graph_release(clone);
  kiln_graph_release(graph);
}

// ---- The same with nodes of every kind ----

// An executable with memory of its own may refuse a whole update; then it does
// what it did, and says which node it was.
static void try_change_all(live_t* live, kiln_graph_exec_t* exec, op_t* ops) {
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[OPS];
  kiln_graph_update_t update;
  op_t others[OPS];
  memcpy(others, ops, sizeof(others));
  for (int i = 0; i < OPS; i++) {
    if (others[i].kind != KILN_GRAPH_CONDITIONAL) {
      others[i].a = random_below(1000);
    }
  }
  if (!by_hand(live, others, &graph, nodes)) return;
  kiln_status_t status = kiln_graph_exec_update(exec, graph, &update);
  if (kiln_status_is_ok(status)) {
    memcpy(ops, others, sizeof(others));
  } else if (!lacks(status, "an update of an executable")) {
    printf("refused: %s\n", kiln_status_message(status));
    IS(kiln_status_code(status) == KILN_STATUS_INVALID_ARGUMENT);
    IS(update.reason != KILN_GRAPH_UPDATE_DONE);
    kiln_status_free(status);
  }
  gives(live, exec, ops, NULL, "an update did a part of what it was to do");
  kiln_graph_release(graph);
}

static void change_some(live_t* live, kiln_graph_exec_t* exec, op_t* ops,
                        kiln_graph_node_t** nodes) {
  for (int i = 0; i < OPS; i++) {
    op_t other = ops[i];
    other.a = random_below(1000);
    if (is_plain(&other)) {
      kiln_graph_work_t work = work_of(live, &other);
      if (OK(kiln_graph_exec_set(exec, nodes[i], &work))) ops[i] = other;
    } else if (other.kind == KILN_GRAPH_CONDITIONAL) {
      kiln_graph_work_t empty = kiln_graph_work_empty();
      REFUSED(kiln_graph_exec_set(exec, nodes[i], &empty), INVALID_ARGUMENT,
              "cannot become");
    } else if (other.kind == KILN_GRAPH_CHILD) {
      kiln_graph_t* child = mix_in_graph(live, &other);
      kiln_graph_work_t work = kiln_graph_work_child(child);
      if (OK(kiln_graph_exec_set(exec, nodes[i], &work))) ops[i] = other;
      kiln_graph_release(child);
    }
  }
  gives(live, exec, ops, NULL, "changed nodes of many kinds do other work");
}

static void one_mixed_graph(live_t* live, uint64_t seed, bool conditions) {
  op_t ops[OPS];
  kiln_graph_node_t* nodes[OPS];
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_builder_t* builder = NULL;
  seed_now = seed;
  for (int i = 0; i < OPS; i++) ops[i] = random_mixed_op(conditions);
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  if (by_capture(live, ops, KILN_GRAPH_CAPTURE_RELAXED, builder) &&
      OK(kiln_graph_builder_exec(builder, NULL, &exec))) {
    gives(live, exec, ops, NULL, "captured work gives other numbers");
  }
  kiln_graph_builder_release(builder);
  kiln_graph_exec_release(exec);
  exec = NULL;
  if (by_hand(live, ops, &graph, nodes) &&
      OK(kiln_graph_exec_create(graph, NULL, &exec))) {
    gives(live, exec, ops, NULL, "work by hand gives other numbers");
    gives(live, exec, ops, NULL, "the second launch gives other numbers");
    change_some(live, exec, ops, nodes);
    try_change_all(live, exec, ops);
  }
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

static void test_mixed(live_t* live) {
  kiln_graph_t* graph = NULL;
  kiln_graph_condition_t condition;
  OK(kiln_graph_create(live->device, &graph));
  kiln_status_t status = kiln_graph_add_condition(graph, NULL, &condition);
  bool conditions = !lacks(status, "conditional nodes") && OK(status);
  kiln_graph_release(graph);
  for (uint64_t i = 0; i < GRAPHS; i++) {
    int before = failures;
    one_mixed_graph(live, 5000 + i, conditions);
    if (failures != before) printf("seed %d\n", 5000 + (int)i);
  }
}

// ---- What random work has not ----

// What a host function got, and who told of its data. one-thread
typedef struct told_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  int told;
  uint32_t got;
} told_t;

static told_t told;

static void tell(void* user) {
  told_t* t = user;
  kilni_base_mutex_lock(&t->lock);
  t->told++;
  kilni_base_cond_broadcast(&t->changed);
  kilni_base_mutex_unlock(&t->lock);
}

static void get(void* user) {
  told.got += *(const uint32_t*)user;
}

static bool were_told(int count) {
  uint64_t deadline = kilni_base_time_ns() + UINT64_C(20000000000);
  kilni_base_mutex_lock(&told.lock);
  bool in_time = true;
  while (told.told < count && in_time) {
    in_time = kilni_base_cond_wait_until(&told.changed, &told.lock, deadline);
  }
  bool good = told.told == count;
  kilni_base_mutex_unlock(&told.lock);
  return good;
}

static void test_host_functions(live_t* live) {
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_builder_t* builder = NULL;
  uint32_t number = 5;
  kiln_graph_work_t work = kiln_graph_work_host(get, &number);
  work.as.host.copied_bytes = sizeof(number);
  work.as.host.owner.release = tell;
  work.as.host.owner.user_data = &told;
  OK(kiln_graph_create(live->device, &graph));
  OK(kiln_graph_add(graph, NULL, 0, &work, NULL));
  number = 70;
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  OK(kiln_graph_builder_begin(builder, 0));
  OK(kiln_graph_builder_call_host(builder, &work.as.host));
  OK(kiln_graph_builder_embed(builder, graph));
  number = 900;
  OK(kiln_graph_builder_end(builder));
  OK(kiln_graph_builder_exec(builder, NULL, &exec));
  kiln_graph_builder_release(builder);
  kiln_graph_release(graph);
  OK(kiln_graph_exec_launch(exec, live->stream));
  OK(kiln_graph_exec_launch(exec, live->stream));
  OK(kiln_stream_synchronize(live->stream));
  IS(told.got == 150);
  IS(told.told == 0);
  kiln_graph_exec_release(exec);
  IS(were_told(2));
}

// ---- Releases while launches run ----

// A host function that stands at a gate. thread-safe
typedef struct gate_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  bool open;
  bool late;  // nobody opened it
  int inside;
} gate_t;

static gate_t gate;

static void stand(void* user) {
  (void)user;
  // A release that waits for it must not wait for ever.
  uint64_t deadline = kilni_base_time_ns() + UINT64_C(10000000000);
  kilni_base_mutex_lock(&gate.lock);
  gate.inside++;
  kilni_base_cond_broadcast(&gate.changed);
  while (!gate.open && !gate.late) {
    gate.late =
        !kilni_base_cond_wait_until(&gate.changed, &gate.lock, deadline);
  }
  kilni_base_mutex_unlock(&gate.lock);
}

static void set_gate(bool open) {
  kilni_base_mutex_lock(&gate.lock);
  gate.open = open;
  if (!open) gate.inside = 0;
  if (!open) gate.late = false;
  kilni_base_cond_broadcast(&gate.changed);
  kilni_base_mutex_unlock(&gate.lock);
}

static bool is_inside(void) {
  uint64_t deadline = kilni_base_time_ns() + UINT64_C(20000000000);
  kilni_base_mutex_lock(&gate.lock);
  bool in_time = true;
  while (gate.inside == 0 && in_time) {
    in_time = kilni_base_cond_wait_until(&gate.changed, &gate.lock, deadline);
  }
  kilni_base_mutex_unlock(&gate.lock);
  return in_time;
}

// Ways in which an executable may be launched before it is let go.
enum {
  ON_ONE,       // stream
  ON_SEVERAL,   // streams
  ON_GONE,      // a stream whose last reference goes first
  ON_CAPTURED,  // a stream that is captured when the executable goes
  BY_HANDLE,    // by the driver's own call
  WAYS_OF_RELEASE,
};

static kiln_graph_exec_t* make_standing(live_t* live) {
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_work_t work = kiln_graph_work_host(stand, NULL);
  work.as.host.owner.release = tell;
  work.as.host.owner.user_data = &told;
  OK(kiln_graph_create(live->device, &graph));
  OK(kiln_graph_add(graph, NULL, 0, &work, NULL));
  OK(kiln_graph_exec_create(graph, NULL, &exec));
  kiln_graph_release(graph);
  return exec;
}

static void launch_standing(live_t* live, kiln_graph_exec_t* exec, int way,
                            kiln_stream_t* stream) {
  if (way == BY_HANDLE) {
    IS(live->cu.cuGraphLaunch(kiln_graph_exec_handle(exec),
                              kiln_stream_handle(stream)) == KILN_CU_SUCCESS);
    return;
  }
  if (way == ON_SEVERAL) OK(kiln_graph_exec_launch(exec, live->stream));
  OK(kiln_graph_exec_launch(exec, stream));
}

static bool waited_for_gate(void) {
  kilni_base_mutex_lock(&gate.lock);
  bool late = gate.late;
  kilni_base_mutex_unlock(&gate.lock);
  return late;
}

static void release_while_it_runs(live_t* live, int way) {
  kiln_stream_t* stream = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  set_gate(false);
  told.told = 0;
  kiln_graph_exec_t* exec = make_standing(live);
  OK(kiln_stream_create(live->device, NULL, &stream));
  launch_standing(live, exec, way, stream);
  IS(is_inside());
  if (way == ON_CAPTURED) {
    options.stream = stream;
    OK(kiln_graph_builder_create(live->device, &options, &builder));
    OK(kiln_graph_builder_begin(builder, KILN_GRAPH_CAPTURE_RELAXED));
  }
  if (way == ON_GONE) kiln_stream_release(stream);
  kiln_graph_exec_release(exec);
  IS(told.told == 0);
  IS(!waited_for_gate());
  if (builder != NULL) {
    OK(kiln_graph_builder_end(builder));
    kiln_graph_builder_release(builder);
  }
  set_gate(true);
  OK(kiln_device_synchronize(live->device));
  if (!IS(were_told(1))) printf("release %d\n", way);
  if (way != ON_GONE) kiln_stream_release(stream);
}

static void test_releases(live_t* live) {
  if (getenv("KILN_TEST_CALLS_WAIT") != NULL) {
    printf("skipped: under this tool the driver's calls wait for the work\n");
    skips++;
    return;
  }
  if (!OK(kilni_base_mutex_init(&gate.lock)) ||
      !OK(kilni_base_cond_init(&gate.changed))) {
    return;
  }
  for (int way = 0; way < WAYS_OF_RELEASE; way++) {
    release_while_it_runs(live, way);
  }
}

static void test_allocation(live_t* live) {
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_node_t* node = NULL;
  kiln_graph_work_t work = kiln_graph_work_allocate(1 << 16);
  OK(kiln_graph_create(live->device, &graph));
  kiln_status_t status = kiln_graph_add(graph, NULL, 0, &work, &node);
  if (!lacks(status, "memory of graphs") && OK(status)) {
    uint64_t address = kiln_graph_node_address(node);
    const kiln_argument_t arguments[] = {kiln_arg_pointer(address),
                                         kiln_arg_u32(0), kiln_arg_u32(1),
                                         kiln_arg_u32(3)};
    OK(kiln_launch_set_all(live->launch, arguments, 4));
    work = kiln_graph_work_launch(live->launch);
    OK(kiln_graph_add(graph, &node, 1, &work, &node));
    work = kiln_graph_work_free(address);
    OK(kiln_graph_add(graph, &node, 1, &work, &node));
    OK(kiln_graph_exec_create(graph, NULL, &exec));
    OK(kiln_graph_exec_launch(exec, live->stream));
    OK(kiln_graph_exec_launch(exec, live->stream));
    OK(kiln_stream_synchronize(live->stream));
    kiln_graph_exec_release(exec);
  }
  kiln_graph_release(graph);
}

// A box inside of a larger one, there and back.
static void test_boxes(live_t* live) {
  static uint8_t in[4][6][8];
  static uint8_t out[4][6][8];
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_node_t* node = NULL;
  kiln_graph_copy_t copy;
  for (int i = 0; i < 4 * 6 * 8; i++) ((uint8_t*)in)[i] = (uint8_t)i;
  memset(&copy, 0, sizeof(copy));
  copy.bytes = 5;
  copy.rows = 3;
  copy.slices = 2;
  copy.to = kiln_graph_place_buffer(live->cells, 16);
  copy.to.row_bytes = 16;
  copy.to.rows = 4;
  copy.from = kiln_graph_place_host_read(&in[1][2][3]);
  copy.from.row_bytes = 8;
  copy.from.rows = 6;
  OK(kiln_graph_create(live->device, &graph));
  kiln_graph_work_t work = kiln_graph_work_copy(copy);
  OK(kiln_graph_add(graph, NULL, 0, &work, &node));
  kiln_graph_place_t back = kiln_graph_place_host(&out[1][2][3]);
  back.row_bytes = 8;
  back.rows = 6;
  copy.from = copy.to;
  copy.to = back;
  work = kiln_graph_work_copy(copy);
  OK(kiln_graph_add(graph, &node, 1, &work, NULL));
  OK(kiln_graph_exec_create(graph, NULL, &exec));
  OK(kiln_graph_exec_launch(exec, live->stream));
  OK(kiln_stream_synchronize(live->stream));
  for (int z = 0; z < 4; z++) {
    for (int y = 0; y < 6; y++) {
      for (int x = 0; x < 8; x++) {
        bool copied = z >= 1 && z < 3 && y >= 2 && y < 5 && x >= 3;
        IS(out[z][y][x] == (copied ? in[z][y][x] : 0));
      }
    }
  }
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

// The first value alone decides: no kernel sets it.
static uint32_t choose(live_t* live, uint32_t kind, uint32_t bodies,
                       uint32_t first) {
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_node_t* node = NULL;
  kiln_graph_condition_t condition;
  uint32_t cell = 99;
  OK(kiln_graph_create(live->device, &graph));
  kiln_status_t status = kiln_graph_add_condition(graph, &first, &condition);
  if (lacks(status, "conditional nodes") || !OK(status)) {
    kiln_graph_release(graph);
    return UINT32_MAX;
  }
  kiln_graph_work_t work = kiln_graph_work_conditional(condition, kind, bodies);
  OK(kiln_graph_add(graph, NULL, 0, &work, &node));
  for (uint32_t i = 0; i < bodies && node != NULL; i++) {
    kiln_graph_t* body = NULL;
    work = kiln_graph_work_fill(live->cells, 0, 1, i, 4);
    OK(kiln_graph_node_inner(node, i, &body));
    OK(kiln_graph_add(body, NULL, 0, &work, NULL));
    kiln_graph_release(body);
  }
  OK(kiln_buffer_write(live->cells, 0, 4, &cell));
  if (OK(kiln_graph_exec_create(graph, NULL, &exec))) {
    OK(kiln_graph_exec_launch(exec, live->stream));
    OK(kiln_stream_synchronize(live->stream));
    OK(kiln_buffer_read(live->cells, 0, 4, &cell));
  }
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  return cell;
}

static void test_choices(live_t* live) {
  if (choose(live, KILN_GRAPH_IF, 1, 1) == UINT32_MAX) return;
  IS(choose(live, KILN_GRAPH_IF, 1, 1) == 0);
  IS(choose(live, KILN_GRAPH_IF, 1, 0) == 99);
  IS(choose(live, KILN_GRAPH_WHILE, 1, 0) == 99);
  if (kiln_device_info(live->device)->driver_version < 12080) return;
  IS(choose(live, KILN_GRAPH_IF, 2, 0) == 1);
  IS(choose(live, KILN_GRAPH_SWITCH, 3, 2) == 2);
  IS(choose(live, KILN_GRAPH_SWITCH, 3, 3) == 99);
}

// A capture that a call spoils, in each mode, and its stream afterwards.
static void test_spoiled(live_t* live) {
  for (uint32_t mode = 0; mode < 3; mode++) {
    kiln_graph_builder_t* builder = NULL;
    kiln_stream_t* stream = NULL;
    bool building = true;
    OK(kiln_graph_builder_create(live->device, NULL, &builder));
    OK(kiln_graph_builder_begin(builder, mode));
    OK(kiln_graph_builder_is_building(builder, &building));
    IS(building);
    OK(kiln_graph_builder_stream(builder, &stream));
    (void)live->cu.cuCtxSetCurrent(kiln_device_context(live->device));
    IS(live->cu.cuStreamSynchronize(kiln_stream_handle(stream)) != 0);
    (void)live->cu.cuCtxSetCurrent(NULL);
    REFUSED(kiln_graph_builder_is_building(builder, &building), INVALID_STATE,
            "invalidated");
    REFUSED(kiln_graph_builder_end(builder), INVALID_STATE,
            "discarded its graph");
    IS(kiln_graph_builder_state(builder) == KILN_GRAPH_BUILDER_INVALIDATED);
    kiln_graph_builder_release(builder);
    OK(kiln_graph_builder_create(live->device, NULL, &builder));
    OK(kiln_graph_builder_begin(builder, mode));
    OK(kiln_graph_builder_end(builder));
    kiln_graph_builder_release(builder);
  }
}

static void test_unjoined(live_t* live) {
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_builder_t* forks[2] = {NULL, NULL};
  kiln_stream_t* stream = NULL;
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  OK(kiln_graph_builder_begin(builder, 0));
  OK(kiln_graph_builder_split(builder, 3, forks));
  OK(kiln_graph_builder_stream(forks[0], &stream));
  OK(kiln_launch_run(live->launch, stream));
  kiln_graph_builder_t* two[] = {builder, forks[1]};
  OK(kiln_graph_builder_join(two, 2, NULL));
  REFUSED(kiln_graph_builder_end(builder), INVALID_STATE,
          "1 forked builder was not joined");
  for (int i = 0; i < 2; i++) kiln_graph_builder_release(forks[i]);
  kiln_graph_builder_release(builder);
}

static void test_captured_nodes(live_t* live) {
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_t* graph = NULL;
  kiln_stream_t* stream = NULL;
  kiln_graph_node_t* nodes[8];
  kiln_graph_edge_t edges[8];
  kiln_graph_node_info_t info;
  uint32_t count = 0;
  const kiln_argument_t arguments[] = {kiln_arg_buffer(live->cells),
                                       kiln_arg_u32(0), kiln_arg_u32(1),
                                       kiln_arg_u32(3)};
  OK(kiln_launch_set_all(live->launch, arguments, 4));
  OK(kiln_graph_builder_create(live->device, NULL, &builder));
  OK(kiln_graph_builder_begin(builder, 0));
  OK(kiln_graph_builder_stream(builder, &stream));
  OK(kiln_launch_run(live->launch, stream));
  OK(kiln_buffer_fill_async(live->cells, stream, 0, 4, 7, 4));
  OK(kiln_graph_builder_end(builder));
  OK(kiln_graph_builder_graph(builder, &graph));
  OK(kiln_graph_nodes(graph, 8, nodes, &count));
  if (IS(count == 2)) {
    for (uint32_t i = 0; i < count; i++) {
      OK(kiln_graph_node_describe(nodes[i], &info));
      if (info.kind == KILN_GRAPH_FILL) {
        IS(info.to == kiln_buffer_address(live->cells) && info.value == 7);
      } else {
        IS(info.kind == KILN_GRAPH_KERNEL && info.block[0] == 1);
      }
    }
  }
  OK(kiln_graph_edges(graph, 8, edges, &count));
  if (IS(count == 1)) {
    IS(kiln_graph_node_kind(edges[0].from) == KILN_GRAPH_KERNEL);
    OK(kiln_graph_node_before(edges[0].to, 8, nodes, &count));
    IS(count == 1 && nodes[0] == edges[0].from);
    OK(kiln_graph_disconnect(graph, edges, 1));
    OK(kiln_graph_edges(graph, 8, edges, &count));
    IS(count == 0);
  }
  kiln_graph_release(graph);
  kiln_graph_builder_release(builder);
}

// ---- Everything ----

static void test_random(live_t* live) {
  for (uint64_t i = 0; i < GRAPHS; i++) one_graph(live, 1000 + i);
}

// Each in a process of its own, so that the end of one hides no other.
static const struct {
  const char* name;
  void (*run)(live_t* live);
} kStages[] = {
    {"random", test_random},         {"host", test_host_functions},
    {"allocation", test_allocation}, {"boxes", test_boxes},
    {"choices", test_choices},       {"captured", test_captured_nodes},
    {"spoiled", test_spoiled},       {"unjoined", test_unjoined},
    {"releases", test_releases},     {"mixed", test_mixed},
};
enum { STAGES = sizeof(kStages) / sizeof(kStages[0]) };

static void run(live_t* live, int stage) {
  kiln_bytes_view_t ptx = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  OK(kiln_stream_create(live->device, NULL, &live->stream));
  OK(kiln_module_load(live->device, ptx, NULL, NULL, &live->module));
  OK(kiln_kernel_create(live->module, "mix", &live->mix));
  OK(kiln_kernel_create(live->module, "carry", &live->carry));
  OK(kiln_launch_create(live->mix, NULL, &live->launch));
  OK(kiln_launch_create(live->carry, NULL, &live->carrying));
  OK(kiln_buffer_create(live->device, 4096, NULL, &live->cells));
  const kiln_argument_t arguments[] = {kiln_arg_buffer(live->cells),
                                       kiln_arg_u32(0), kiln_arg_u32(1),
                                       kiln_arg_u32(3)};
  OK(kiln_launch_set_all(live->launch, arguments, 4));
  kStages[stage].run(live);
  kiln_launch_release(live->carrying);
  kiln_launch_release(live->launch);
  kiln_buffer_release(live->cells);
  kiln_kernel_release(live->carry);
  kiln_kernel_release(live->mix);
  kiln_module_release(live->module);
  kiln_stream_release(live->stream);
}

static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  ((live_t*)user)->cu = *inout_table;
  return kiln_ok();
}

static int run_stage(const char* device, int stage, bool current) {
  static live_t live;
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = keep_table;
  hooks.user = &live;
  if (!OK(kilni_base_mutex_init(&told.lock)) ||
      !OK(kilni_base_cond_init(&told.changed)) ||
      !OK(kilni_runtime_create_with(NULL, &hooks, &live.runtime))) {
    return 1;
  }
  kiln_status_t status =
      kiln_runtime_open_device(live.runtime, device, &live.device);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  if (current) {
    IS(live.cu.cuCtxSetCurrent(kiln_device_context(live.device)) == 0);
  }
  run(&live, stage);
  printf("%s: work is done\n", kStages[stage].name);
  if (current) (void)live.cu.cuCtxSetCurrent(NULL);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  printf("%s on %s: %d failures, %d skips\n", kStages[stage].name, device,
         failures, skips);
  return failures == 0 ? 0 : 1;
}

// The exit code of another process, or 128 and the signal that ended it.
static int spawn_stage(const char* program, const char* device, int stage,
                       bool current) {
  char number[16];
  char* own = NULL;
  char* where = NULL;
  memcpy(&own, &program, sizeof(own));
  memcpy(&where, &device, sizeof(where));
  snprintf(number, sizeof(number), "%d", stage);
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
    int stage = i / 2;
    int code = spawn_stage(argv[0], device, stage, i % 2 != 0);
    if (code == 77) return 77;
    if (code != 0) {
      printf("%s %s a current context ended with %d\n", kStages[stage].name,
             i % 2 != 0 ? "with" : "without", code);
      bad++;
    }
  }
  printf("%d of %d stages failed\n", bad, 2 * (int)STAGES);
  return bad == 0 ? 0 : 1;
}
