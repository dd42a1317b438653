// SPDX-License-Identifier: Apache-2.0
//
// cli: a graph file's nodes and edges, made on a device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_literal.h"
#include "cli/cli_report.h"
#include "cli/graph_job.h"
#include "cli/run_element.h"
#include "cli/run_entry.h"
#include "cli/run_facts.h"
#include "cli/run_template.h"
#include "kiln/graph.h"

#define MAX_KERNELS 4096

// A graph that is being built. one-thread
typedef struct building_t {
  kilni_cli_graph_job_t* job;
  kiln_graph_t** named;             // as the sketch's scopes; NULL: no graph
  kiln_graph_node_t** nodes;        // as its nodes
  kiln_graph_condition_t* handles;  // as its conditions
} building_t;

static bool graph_build_check_at(const building_t* b,
                                 const kilni_cli_name_t* name,
                                 kiln_status_t status,
                                 kilni_cli_error_t* error) {
  if (kilni_cli_check(error, status)) return true;
  kilni_cli_sketch_point(b->job->sketch, name, error);
  return false;
}

// ---- Kernels ----

static bool graph_build_open_kernel(const kilni_cli_graph_job_t* job,
                                    const kilni_cli_graph_node_t* node,
                                    kiln_kernel_t** out,
                                    kilni_cli_error_t* error) {
  const kilni_cli_graph_module_t* module = &job->modules[node->code];
  const char* names[MAX_KERNELS];
  uint32_t count = kiln_module_kernel_count(module->module);
  if (count > MAX_KERNELS) count = MAX_KERNELS;
  for (uint32_t i = 0; i < count; i++) {
    names[i] = kiln_module_kernel_name(module->module, i);
  }
  const char* name = node->entry.line == 0 ? NULL : node->entry.text;
  const char* lowered =
      name != NULL ? kiln_code_lowered_name(module->code.text, name) : NULL;
  if (lowered != NULL) name = lowered;
  if (count != 0 || module->code.kind != KILNI_CLI_CODE_CUBIN) {
    uint32_t index;
    if (!kilni_cli_entry_find(names, count, name, module->code.file,
                              "CODE.KERNEL(...)", &index, error)) {
      if (module->code.kind == KILNI_CLI_CODE_SOURCE) {
        kilni_cli_template_fix(module->code.file, name, "CODE.", '"', error);
      }
      return false;
    }
    name = names[index];
  } else if (name == NULL) {
    return kilni_cli_fail(
        error, KILN_STATUS_INVALID_ARGUMENT, "write CODE.KERNEL(...)",
        "\"%s\" does not name its kernels", module->code.file);
  }
  return kilni_cli_check(error, kiln_kernel_create(module->module, name, out));
}

// `inout_length` stores a length until the launch has it.
static bool graph_build_make_argument(const building_t* b,
                                      kiln_kernel_t* kernel, uint32_t index,
                                      const kilni_cli_graph_argument_t* given,
                                      kilni_cli_scalar_t* inout_length,
                                      kiln_argument_t* out,
                                      kilni_cli_error_t* error) {
  const kilni_cli_graph_job_t* job = b->job;
  const kiln_kernel_param_t* param = kiln_kernel_param(kernel, index);
  switch (given->kind) {
    case KILNI_CLI_ARGUMENT_BUFFER:
      *out = kiln_arg_buffer(job->data[given->index].buffer);
      return true;
    case KILNI_CLI_ARGUMENT_MEMORY:
      *out = kiln_arg_pointer(kiln_graph_node_address(b->nodes[given->index]));
      return true;
    case KILNI_CLI_ARGUMENT_CONDITION:
      *out = kiln_arg_u64(b->handles[given->index].handle);
      return true;
    case KILNI_CLI_ARGUMENT_LENGTH:
      if (!kilni_cli_scalar_length(job->data[given->index].shape.count,
                                   param != NULL && param->bytes != 0
                                       ? param->bytes
                                       : (uint32_t)sizeof(uint64_t),
                                   false, inout_length, error)) {
        kilni_cli_sketch_point(job->sketch, &given->name, error);
        return false;
      }
      *out = kilni_cli_scalar_argument(inout_length, false);
      return true;
    case KILNI_CLI_ARGUMENT_SCALAR:
      break;
  }
  *out = kilni_cli_scalar_argument(
      &given->scalar, param != NULL && param->kind == KILN_PARAM_KIND_POINTER);
  return true;
}

static const kilni_cli_graph_argument_t* graph_build_argument_of(
    const building_t* b, const kilni_cli_graph_node_t* node, uint32_t index) {
  return &b->job->sketch->arguments[node->argument + index];
}

// A program's arguments determine its work size, so all of them are passed.
static bool make_program(building_t* b, uint32_t index,
                         kilni_cli_error_t* error) {
  kilni_cli_graph_job_t* job = b->job;
  const kilni_cli_graph_node_t* node = &job->sketch->nodes[index];
  kilni_cli_graph_given_t given[KILNI_CLI_MAX_PARAMS];
  memset(given, 0, sizeof(given));
  for (uint32_t i = 0; i < node->argument_count; i++) {
    const kilni_cli_graph_argument_t* a = graph_build_argument_of(b, node, i);
    const kilni_cli_shape_t* shape = a->kind == KILNI_CLI_ARGUMENT_MEMORY
                                         ? &job->sketch->nodes[a->index].shape
                                     : a->kind == KILNI_CLI_ARGUMENT_BUFFER
                                         ? &job->data[a->index].shape
                                         : NULL;
    if (i == KILNI_CLI_MAX_PARAMS || a->kind == KILNI_CLI_ARGUMENT_CONDITION) {
      return kilni_cli_sketch_fail(
          job->sketch, a->name.line, a->name.column,
          KILN_STATUS_INVALID_ARGUMENT, "give buffers, memory and numbers",
          error, "a program cannot take \"%s\" here", a->name.text);
    }
    given[i].is_memory = shape != NULL;
    if (shape != NULL) {
      given[i].type = shape->type;
      given[i].count = shape->count;
      given[i].argument =
          a->kind == KILNI_CLI_ARGUMENT_BUFFER
              ? kiln_arg_buffer(job->data[a->index].buffer)
              : kiln_arg_pointer(kiln_graph_node_address(b->nodes[a->index]));
    } else if (a->kind == KILNI_CLI_ARGUMENT_LENGTH) {
      // A length is one of data that the text has declared.
      // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
      given[i].bits = job->data[a->index].shape.count;
    } else {
      given[i].type = a->scalar.type;
      given[i].bits = a->scalar.bits;
      given[i].argument = kilni_cli_scalar_argument(&a->scalar, false);
    }
  }
  if (kilni_cli_graph_program(job, index, given, node->argument_count, error)) {
    return true;
  }
  kilni_cli_sketch_point(job->sketch, &node->name, error);
  return false;
}

static bool set_arguments(const building_t* b,
                          const kilni_cli_graph_node_t* node,
                          kilni_cli_graph_launch_t* made,
                          kilni_cli_error_t* error) {
  uint32_t count = node->argument_count;
  if (count > KILNI_CLI_MAX_PARAMS) {
    return kilni_cli_sketch_fail(
        b->job->sketch, node->name.line, node->name.column,
        KILN_STATUS_LIMIT_EXCEEDED, "pass a buffer of them", error,
        "more than %d arguments", KILNI_CLI_MAX_PARAMS);
  }
  kiln_argument_t arguments[KILNI_CLI_MAX_PARAMS];
  kilni_cli_scalar_t lengths[KILNI_CLI_MAX_PARAMS];
  for (uint32_t i = 0; i < count; i++) {
    if (!graph_build_make_argument(b, made->kernel, i,
                                   graph_build_argument_of(b, node, i),
                                   &lengths[i], &arguments[i], error)) {
      return false;
    }
  }
  return graph_build_check_at(
      b, &node->name, kiln_launch_set_all(made->launch, arguments, count),
      error);
}

static const kilni_cli_shape_t* graph_build_shape_of(
    const building_t* b, const kilni_cli_graph_argument_t* given) {
  return given->kind == KILNI_CLI_ARGUMENT_BUFFER
             ? &b->job->data[given->index].shape
         : given->kind == KILNI_CLI_ARGUMENT_MEMORY
             ? &b->job->sketch->nodes[given->index].shape
             : NULL;
}

// What the driver cannot check: element types, and halves.
static bool check_argument(const building_t* b, const kilni_cli_kernel_t* facts,
                           uint32_t index,
                           const kilni_cli_graph_argument_t* given,
                           kilni_cli_error_t* error) {
  const kilni_cli_shape_t* shape = graph_build_shape_of(b, given);
  if (shape != NULL) {
    bool is_bytes = given->kind == KILNI_CLI_ARGUMENT_MEMORY ||
                    kilni_cli_graph_is_of_bytes(&b->job->data[given->index]);
    return kilni_cli_fit_data(facts, index, shape, is_bytes, error);
  }
  kilni_cli_type_t type = given->scalar.type;
  if (given->kind != KILNI_CLI_ARGUMENT_SCALAR || given->scalar.bytes != 2 ||
      kilni_cli_fit_half(facts, index, type)) {
    return true;
  }
  char what[256];
  kilni_cli_param_words(facts, index, what);
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "parameter %s cannot take a value of type %s", what,
                       kilni_cli_type_info(type)->text);
  kilni_cli_error_fix(
      error, "write the number with %s after it",
      kilni_cli_type_info(kilni_cli_value_type(facts->name, index))->text);
  return false;
}

// The shape of the launch, and whether `kiln run` would accept its arguments
// too.
static bool fit_launch(const building_t* b, const kilni_cli_graph_node_t* node,
                       kilni_cli_graph_launch_t* made,
                       kilni_cli_error_t* error) {
  kilni_cli_kernel_t facts;
  kiln_image_use_t* use = NULL;
  kilni_cli_asked_t asked = {node->has_grid ? node->grid : NULL,
                             node->has_block ? node->block : NULL, 0, ""};
  bool ok = kilni_cli_facts_make(
      made->kernel, &b->job->modules[node->code].code, &facts, &use, error);
  for (uint32_t i = 0; ok && i < node->argument_count; i++) {
    const kilni_cli_graph_argument_t* given =
        graph_build_argument_of(b, node, i);
    const kilni_cli_shape_t* shape = graph_build_shape_of(b, given);
    if (shape != NULL && shape->count > asked.longest) {
      asked.longest = shape->count;
    }
    ok = check_argument(b, &facts, i, given, error);
    if (!ok) kilni_cli_sketch_point(b->job->sketch, &given->name, error);
  }
  if (ok &&
      !kilni_cli_fit_launch(&facts, &asked, made->grid, made->block, error)) {
    kilni_cli_sketch_point(b->job->sketch, &node->name, error);
    ok = false;
  }
  kiln_image_use_release(use);
  return ok;
}

static bool graph_build_make_launch(building_t* b, uint32_t index,
                                    kilni_cli_error_t* error) {
  kilni_cli_graph_job_t* job = b->job;
  const kilni_cli_graph_node_t* node = &job->sketch->nodes[index];
  kilni_cli_graph_launch_t* made = &job->launches[index];
  if (job->modules[node->code].program != NULL) {
    return make_program(b, index, error);
  }
  if (made->launch == NULL) {
    if (!graph_build_open_kernel(job, node, &made->kernel, error)) {
      kilni_cli_sketch_point(job->sketch, &node->name, error);
      return false;
    }
    if (!fit_launch(b, node, made, error)) return false;
    kiln_launch_config_t config = kiln_launch_config_default();
    memcpy(config.grid, made->grid, sizeof(config.grid));
    memcpy(config.block, made->block, sizeof(config.block));
    config.shared_bytes = node->shared_bytes;
    kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
    attributes.cooperative = KILN_SWITCH_ON;
    if (node->cooperative) config.attributes = &attributes;
    if (!kilni_cli_shared_check(&job->session, made->kernel, "shared",
                                node->shared_bytes, error) ||
        !kilni_cli_check_launch(
            error, kiln_launch_create(made->kernel, &config, &made->launch))) {
      kilni_cli_sketch_point(job->sketch, &node->name, error);
      return false;
    }
  }
  return set_arguments(b, node, made, error);
}

// ---- Nodes ----

static uint64_t graph_build_offset_of(const building_t* b,
                                      const kilni_cli_graph_part_t* part,
                                      uint64_t* out_bytes) {
  const kilni_cli_shape_t* shape = &b->job->data[part->buffer].shape;
  uint64_t element = kilni_cli_type_info(shape->type)->bytes;
  uint64_t count = part->whole ? shape->count : part->end - part->first;
  *out_bytes = count * element;
  return part->whole ? 0 : part->first * element;
}

static kiln_graph_work_t copy_of(const building_t* b,
                                 const kilni_cli_graph_node_t* node) {
  uint64_t bytes;
  uint64_t from = graph_build_offset_of(b, &node->from, &bytes);
  uint64_t to = graph_build_offset_of(b, &node->to, &bytes);
  const kilni_cli_graph_data_t* data = b->job->data;
  return kiln_graph_work_move(
      kiln_graph_place_buffer(data[node->to.buffer].buffer, to),
      kiln_graph_place_buffer(data[node->from.buffer].buffer, from), bytes);
}

static kiln_graph_work_t graph_build_fill_of(
    const building_t* b, const kilni_cli_graph_node_t* node) {
  uint64_t bytes;
  uint64_t to = graph_build_offset_of(b, &node->to, &bytes);
  uint32_t width = node->value.bytes < 4 ? node->value.bytes : 4;
  return kiln_graph_work_fill(b->job->data[node->to.buffer].buffer, to,
                              bytes / width, (uint32_t)node->value.bits, width);
}

static kiln_graph_work_t choice_of(const building_t* b,
                                   const kilni_cli_graph_node_t* node) {
  uint32_t kind = node->kind == KILNI_CLI_GRAPH_IF      ? KILN_GRAPH_IF
                  : node->kind == KILNI_CLI_GRAPH_WHILE ? KILN_GRAPH_WHILE
                                                        : KILN_GRAPH_SWITCH;
  return kiln_graph_work_conditional(b->handles[node->other], kind,
                                     node->body_count);
}

// Runs on a thread of the driver.
static void graph_build_say(void* user) {
  const kilni_cli_graph_launch_t* host = user;
  if (*host->is_quiet) return;
  kilni_cli_print_text(stderr, host->text, strlen(host->text));
  (void)fputc('\n', stderr);
}

static kiln_graph_work_t graph_build_host_of(building_t* b, uint32_t index) {
  kilni_cli_graph_launch_t* host = &b->job->launches[index];
  host->text = b->job->sketch->nodes[index].text.text;
  host->is_quiet = &b->job->is_quiet;
  return kiln_graph_work_host(graph_build_say, host);
}

static bool make_work(building_t* b, uint32_t index, kiln_graph_work_t* out,
                      kilni_cli_error_t* error) {
  const kilni_cli_graph_node_t* node = &b->job->sketch->nodes[index];
  switch (node->kind) {
    case KILNI_CLI_GRAPH_KERNEL:
      if (!graph_build_make_launch(b, index, error)) return false;
      *out = kiln_graph_work_launch(b->job->launches[index].launch);
      return true;
    case KILNI_CLI_GRAPH_COPY:
      *out = copy_of(b, node);
      return true;
    case KILNI_CLI_GRAPH_FILL:
      *out = graph_build_fill_of(b, node);
      return true;
    case KILNI_CLI_GRAPH_ALLOCATE:
      *out = kiln_graph_work_allocate(node->shape.bytes);
      return true;
    case KILNI_CLI_GRAPH_FREE:
      *out =
          kiln_graph_work_free(kiln_graph_node_address(b->nodes[node->other]));
      return true;
    case KILNI_CLI_GRAPH_CHILD:
      *out = kiln_graph_work_child(b->named[node->body]);
      return true;
    case KILNI_CLI_GRAPH_HOST:
      *out = graph_build_host_of(b, index);
      return true;
    case KILNI_CLI_GRAPH_RECORD:
      *out = kiln_graph_work_record(b->job->events[node->other]);
      return true;
    case KILNI_CLI_GRAPH_WAIT:
      *out = kiln_graph_work_wait(b->job->events[node->other]);
      return true;
    case KILNI_CLI_GRAPH_IF:
    case KILNI_CLI_GRAPH_WHILE:
    case KILNI_CLI_GRAPH_SWITCH:
      *out = choice_of(b, node);
      return true;
    case KILNI_CLI_GRAPH_EMPTY:
    case KILNI_CLI_GRAPH_REPEAT:
    case KILNI_CLI_GRAPH_KINDS:
      break;
  }
  *out = kiln_graph_work_empty();
  return true;
}

// When a `free` is added, the driver must already see its allocation before it,
// so edges are added with their nodes where possible.
static bool graph_build_is_known(const building_t* b,
                                 const kilni_cli_graph_edge_t* edge) {
  return edge->from < edge->to && b->nodes[edge->from] != NULL;
}

static bool fill_scope(building_t* b, uint32_t scope, kiln_graph_t* graph,
                       kilni_cli_error_t* error);

static bool fill_bodies(building_t* b, uint32_t index,
                        kilni_cli_error_t* error) {
  const kilni_cli_graph_node_t* node = &b->job->sketch->nodes[index];
  uint32_t scope = node->body;
  for (uint32_t i = 0; i < node->body_count; i++) {
    kiln_graph_t* inner = NULL;
    bool ok = graph_build_check_at(
                  b, &node->name,
                  kiln_graph_node_inner(b->nodes[index], i, &inner), error) &&
              fill_scope(b, scope, inner, error);
    kiln_graph_release(inner);
    if (!ok) return false;
    scope = b->job->sketch->scopes[scope].next;
  }
  return true;
}

// A child is a clone, and its nodes have no names. They are in the order of the
// cloned graph; if a driver orders them differently they stay unnamed.
static bool name_child(const building_t* b, kiln_graph_node_t* child,
                       uint32_t scope, kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = b->job->sketch;
  uint32_t count = 0;
  uint32_t given = 0;
  kiln_graph_t* inner = NULL;
  kiln_graph_node_t** nodes = NULL;
  bool ok = kilni_cli_check(error, kiln_graph_node_inner(child, 0, &inner)) &&
            kilni_cli_check(error, kiln_graph_nodes(inner, 0, NULL, &count));
  if (ok && count != 0) {
    nodes = calloc(count, sizeof(*nodes));
    ok = nodes != NULL || kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                                         "no memory for the graph");
    ok = ok &&
         kilni_cli_check(error, kiln_graph_nodes(inner, count, nodes, &count));
  }
  for (uint32_t i = 0; ok && i < k->node_count && given < count; i++) {
    if (k->nodes[i].scope != scope) continue;
    kiln_graph_node_t* node = nodes[given++];
    if (kiln_graph_node_kind(node) != kiln_graph_node_kind(b->nodes[i])) break;
    ok = kilni_cli_check(
             error, kiln_graph_node_set_name(node, k->nodes[i].name.text)) &&
         (k->nodes[i].kind != KILNI_CLI_GRAPH_CHILD ||
          name_child(b, node, k->nodes[i].body, error));
  }
  free(nodes);
  kiln_graph_release(inner);
  return ok;
}

static bool graph_build_add_node(building_t* b, uint32_t index,
                                 kiln_graph_t* graph,
                                 kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = b->job->sketch;
  const kilni_cli_graph_node_t* node = &k->nodes[index];
  kiln_graph_work_t work;
  kiln_graph_node_t** after = NULL;
  uint32_t count = 0;
  if (!make_work(b, index, &work, error)) return false;
  for (uint32_t i = 0; i < k->edge_count; i++) {
    if (k->edges[i].to == index && graph_build_is_known(b, &k->edges[i])) {
      count++;
    }
  }
  if (count != 0) {
    after = calloc(count, sizeof(*after));
    if (after == NULL) {
      return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                            "no memory for the graph");
    }
    count = 0;
    for (uint32_t i = 0; i < k->edge_count; i++) {
      if (k->edges[i].to == index && graph_build_is_known(b, &k->edges[i])) {
        after[count++] = b->nodes[k->edges[i].from];
      }
    }
  }
  bool ok =
      graph_build_check_at(
          b, &node->name,
          kiln_graph_add(graph, after, count, &work, &b->nodes[index]),
          error) &&
      graph_build_check_at(
          b, &node->name,
          kiln_graph_node_set_name(b->nodes[index], node->name.text), error);
  free(after);
  if (ok && node->kind == KILNI_CLI_GRAPH_CHILD) {
    return name_child(b, b->nodes[index], node->body, error);
  }
  return ok &&
         (node->kind < KILNI_CLI_GRAPH_IF || fill_bodies(b, index, error));
}

static bool fill_scope(building_t* b, uint32_t scope, kiln_graph_t* graph,
                       kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = b->job->sketch;
  for (uint32_t i = 0; i < k->condition_count; i++) {
    const kilni_cli_graph_condition_t* condition = &k->conditions[i];
    if (condition->scope == scope &&
        !graph_build_check_at(
            b, &condition->name,
            kiln_graph_add_condition(
                graph, condition->has_first ? &condition->first : NULL,
                &b->handles[i]),
            error)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < k->node_count; i++) {
    if (k->nodes[i].scope == scope &&
        !graph_build_add_node(b, i, graph, error)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < k->edge_count; i++) {
    const kilni_cli_graph_edge_t* edge = &k->edges[i];
    if (k->nodes[edge->to].scope != scope || edge->from < edge->to) continue;
    kiln_graph_edge_t made =
        kiln_graph_edge(b->nodes[edge->from], b->nodes[edge->to]);
    if (!graph_build_check_at(b, &edge->at, kiln_graph_connect(graph, &made, 1),
                              error)) {
      return false;
    }
  }
  return true;
}

static bool build_named(building_t* b, kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = b->job->sketch;
  for (uint32_t i = 1; i < k->scope_count; i++) {
    if (!k->scopes[i].is_named) continue;
    if (!kilni_cli_check(
            error, kiln_graph_create(b->job->session.device, &b->named[i])) ||
        !fill_scope(b, i, b->named[i], error)) {
      return false;
    }
  }
  return true;
}

bool kilni_cli_graph_build(kilni_cli_graph_job_t* job, kiln_graph_t** out_graph,
                           kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  building_t b = {job, NULL, NULL, NULL};
  b.named = calloc((size_t)k->scope_count + 1, sizeof(*b.named));
  b.nodes = calloc((size_t)k->node_count + 1, sizeof(*b.nodes));
  b.handles = calloc((size_t)k->condition_count + 1, sizeof(*b.handles));
  kiln_graph_t* graph = NULL;
  bool ok = b.named != NULL && b.nodes != NULL && b.handles != NULL;
  if (!ok) {
    (void)kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                         "no memory for the graph");
  }
  ok = ok && build_named(&b, error) &&
       kilni_cli_check(error, kiln_graph_create(job->session.device, &graph)) &&
       fill_scope(&b, 0, graph, error);
  for (uint32_t i = 0; b.named != NULL && i < k->scope_count; i++) {
    kiln_graph_release(b.named[i]);
  }
  free(b.named);
  free(b.nodes);
  free(b.handles);
  if (ok) {
    *out_graph = graph;
  } else {
    kiln_graph_release(graph);
  }
  return ok;
}
