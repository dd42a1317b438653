// SPDX-License-Identifier: Apache-2.0
//
// dispatch: fixpoints as WHILE nodes: the device decides about rounds by
// itself.
//
//   begin -> WHILE { the body -> round }
//
// `begin` sets the flag and the count of rounds to zero and the node's number
// to one, each time: a fixpoint may be in the body of another one. `round`
// counts, and sets the number to zero after the last one.
#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/sequence_build.h"
#include "dispatch/sequence_fixpoint.h"

// What runs in a graph cannot be started by the host.
static kiln_status_t check_inner(const kilni_dispatch_fixpoint_t* fixpoint) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  for (uint32_t i = 1; i <= step->body; i++) {
    const kilni_dispatch_fixpoint_t* inner =
        fixpoint->instance->fixpoints[fixpoint->step + i];
    if (inner == NULL || inner->strategy != KILN_FIXPOINT_POLL) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "the host starts the rounds of a fixpoint inside"),
        "let KILN_FIXPOINT_AUTO choose for it");
  }
  return kiln_ok();
}

// Whether the driver has such nodes.
static kiln_status_t check_driver(const kilni_dispatch_fixpoint_t* fixpoint) {
  kiln_graph_t* graph = NULL;
  kiln_graph_condition_t condition;
  KILNI_RETURN_IF_ERROR(
      kiln_graph_create(fixpoint->dispatcher->device, &graph));
  kiln_status_t status = kiln_graph_add_condition(graph, NULL, &condition);
  kiln_graph_release(graph);
  return status;
}

static kiln_status_t make_state(kilni_dispatch_fixpoint_t* fixpoint) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  kiln_prepared_t** prepared =
      fixpoint->instance->prepared + fixpoint->step + 1;
  kiln_allocator_t allocator = fixpoint->dispatcher->allocator;
  uint32_t count = 0;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, step->body, sizeof(uint64_t), &block));
  uint64_t* traps = block;
  for (uint32_t i = 0; i < step->body; i++) {
    if (prepared[i] == NULL || prepared[i]->record == NULL) continue;
    traps[count++] = prepared[i]->record->address;
  }
  fixpoint->trap_count = count;
  kiln_status_t status =
      kilni_dispatch_fixpoint_state(fixpoint, traps, count * sizeof(uint64_t));
  kilni_base_free_array(allocator, traps, step->body, sizeof(uint64_t));
  return status;
}

static kiln_status_t fixpoint_while_make_kernel(
    const kilni_dispatch_fixpoint_t* fixpoint, uint32_t which,
    const kiln_launch_t* like, kiln_launch_t** out_launch) {
  kiln_launch_config_t config = kiln_launch_config_default();
  if (like == NULL) {
    return kilni_dispatch_fixpoint_kernel(fixpoint->dispatcher, which,
                                          out_launch);
  }
  return kiln_launch_create(kiln_launch_kernel(like), &config, out_launch);
}

kiln_status_t kilni_dispatch_fixpoint_make_while(
    kilni_dispatch_fixpoint_t* fixpoint) {
  const kilni_dispatch_fixpoint_t* first =
      kilni_dispatch_fixpoint_first(fixpoint);
  KILNI_RETURN_IF_ERROR(check_inner(fixpoint));
  KILNI_RETURN_IF_ERROR(check_driver(fixpoint));
  KILNI_RETURN_IF_ERROR(fixpoint_while_make_kernel(
      fixpoint, KILNI_FIXPOINT_BEGIN, first == NULL ? NULL : first->begin,
      &fixpoint->begin));
  KILNI_RETURN_IF_ERROR(fixpoint_while_make_kernel(
      fixpoint, KILNI_FIXPOINT_ROUND, first == NULL ? NULL : first->round,
      &fixpoint->round));
  return make_state(fixpoint);
}

static kiln_status_t set_kernels(kilni_dispatch_fixpoint_t* fixpoint,
                                 kiln_graph_condition_t condition) {
  uint64_t state = kiln_buffer_address(fixpoint->state);
  kiln_argument_t flag =
      kiln_arg_u64(kilni_dispatch_fixpoint_step(fixpoint)->to.address);
  kiln_argument_t handle = kiln_arg_u64(condition.handle);
  const kiln_argument_t begin[] = {handle, flag,
                                   kiln_arg_buffer(fixpoint->state)};
  const kiln_argument_t round[] = {
      handle,
      flag,
      kiln_arg_buffer(fixpoint->state),
      kiln_arg_u64(kilni_dispatch_fixpoint_told(fixpoint)),
      kiln_arg_u64(state + KILNI_FIXPOINT_STATE),
      kiln_arg_u32(fixpoint->trap_count),
      kiln_arg_u32(fixpoint->limit)};
  KILNI_RETURN_IF_ERROR(kiln_launch_set_all(fixpoint->begin, begin, 3));
  return kiln_launch_set_all(fixpoint->round, round, 7);
}

static kiln_status_t build_body(kilni_dispatch_fixpoint_t* fixpoint,
                                kilni_dispatch_build_t* build,
                                kiln_graph_t* body) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  uint32_t first = fixpoint->step + 1, count = 0;
  kiln_graph_node_t* end = NULL;
  kiln_graph_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_steps_build(
      build, body, first, first + step->body, &end, 1, &count));
  kiln_graph_work_t work = kiln_graph_work_launch(fixpoint->round);
  KILNI_RETURN_IF_ERROR(kiln_graph_add(body, &end, count, &work, &node));
  build->nodes++;
  return kiln_graph_node_set_name(node, "round");
}

kiln_status_t kilni_dispatch_fixpoint_build_while(
    kilni_dispatch_fixpoint_t* fixpoint, kilni_dispatch_build_t* build,
    kiln_graph_t* graph, kiln_graph_node_t* const* after, uint32_t after_count,
    kiln_graph_node_t** out_last) {
  kiln_graph_condition_t condition;
  kiln_graph_node_t* begin = NULL;
  kiln_graph_t* body = NULL;
  KILNI_RETURN_IF_ERROR(kiln_graph_add_condition(graph, NULL, &condition));
  KILNI_RETURN_IF_ERROR(set_kernels(fixpoint, condition));
  kiln_graph_work_t work = kiln_graph_work_launch(fixpoint->begin);
  KILNI_RETURN_IF_ERROR(
      kiln_graph_add(graph, after, after_count, &work, &begin));
  KILNI_RETURN_IF_ERROR(kiln_graph_node_set_name(begin, "begin"));
  work = kiln_graph_work_conditional(condition, KILN_GRAPH_WHILE, 1);
  KILNI_RETURN_IF_ERROR(kiln_graph_add(graph, &begin, 1, &work, out_last));
  KILNI_RETURN_IF_ERROR(kiln_graph_node_set_name(*out_last, "fixpoint"));
  build->nodes += 2;
  KILNI_RETURN_IF_ERROR(kiln_graph_node_inner(*out_last, 0, &body));
  kiln_status_t status = build_body(fixpoint, build, body);
  kiln_graph_release(body);
  return status;
}

// For runs on streams: a graph with nothing else.
static kiln_status_t fixpoint_while_make_exec(
    kilni_dispatch_fixpoint_t* fixpoint) {
  kilni_dispatch_build_t build;
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* last = NULL;
  memset(&build, 0, sizeof(build));
  build.instance = fixpoint->instance;
  build.allocator = fixpoint->dispatcher->allocator;
  KILNI_RETURN_IF_ERROR(
      kiln_graph_create(fixpoint->dispatcher->device, &graph));
  kiln_status_t status = kilni_dispatch_fixpoint_build_while(
      fixpoint, &build, graph, NULL, 0, &last);
  if (kiln_status_is_ok(status)) {
    status = kiln_graph_exec_create(graph, NULL, &fixpoint->exec);
  }
  kiln_graph_release(graph);
  return status;
}

kiln_status_t kilni_dispatch_fixpoint_put_while(
    kilni_dispatch_fixpoint_t* fixpoint, kiln_stream_t* stream) {
  if (fixpoint->exec == NULL) {
    KILNI_RETURN_IF_ERROR(fixpoint_while_make_exec(fixpoint));
  }
  KILNI_RETURN_IF_ERROR(kilni_dispatch_fixpoint_order(fixpoint, stream));
  return kiln_graph_exec_launch(fixpoint->exec, stream);
}
