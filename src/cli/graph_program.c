// SPDX-License-Identifier: Apache-2.0
//
// cli: a program (.kiln) as a node of a graph: its shape and its arguments.
//
// The program declares its parameters and computes, from the lengths of its
// arguments, its work size; its kernel takes more than that.
#include <inttypes.h>
#include <string.h>

#include "cli/cli_program.h"
#include "cli/graph_job.h"

enum { MEET_BYTES = 24 };

// A node's program and its arguments. one-thread
typedef struct filling_t {
  kilni_cli_graph_job_t* job;
  const kilni_cli_graph_node_t* node;
  const kiln_program_t* program;
  const kiln_program_code_t* code;
  kilni_cli_graph_launch_t* made;
  const kilni_cli_graph_given_t* given;
  uint32_t count;
  kiln_program_size_t sizes[KILNI_CLI_MAX_PARAMS];
  kilni_cli_scalar_t lengths[KILNI_CLI_MAX_PARAMS];  // while they are passed
} filling_t;

static bool graph_program_check_one(filling_t* f, uint32_t index,
                                    const kiln_program_parameter_info_t* p,
                                    kilni_cli_error_t* error) {
  const kilni_cli_graph_given_t* given = &f->given[index];
  bool is_memory = p->role != KILN_PROGRAM_ROLE_NONE;
  kilni_cli_type_t type = kilni_cli_program_type(p->type);
  f->sizes[index].count = given->count;
  f->sizes[index].bits = given->bits;
  // A length comes in the type that the program wants.
  bool fits = given->is_memory == is_memory &&
              (given->type == type || given->type == KILNI_CLI_TYPE_NONE);
  if (fits) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        is_memory ? "give a buffer or memory of that type"
                                  : "give a number of that type",
                        "the parameter \"%s\" of the program is %s%s", p->name,
                        kiln_program_type_name(p->type),
                        is_memory ? " in memory" : "");
}

static bool graph_program_check_given(filling_t* f, kilni_cli_error_t* error) {
  kiln_program_parameter_info_t p;
  uint32_t count = kiln_program_parameter_count(f->program);
  if (count != f->count || count > KILNI_CLI_MAX_PARAMS) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "give each parameter of the program, in order",
                          "%" PRIu32 " arguments for the %" PRIu32
                          " parameters of the program \"%s\"",
                          f->count, count, kiln_program_name(f->program));
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!kiln_program_parameter(f->program, i, &p) ||
        !graph_program_check_one(f, i, &p, error)) {
      return false;
    }
  }
  return true;
}

static uint64_t longest_of(const filling_t* f) {
  uint64_t longest = 1;
  for (uint32_t i = 0; i < f->count; i++) {
    if (f->given[i].count > longest) longest = f->given[i].count;
  }
  return longest;
}

static bool choose_shape(filling_t* f, kilni_cli_error_t* error) {
  kilni_cli_graph_launch_t* made = f->made;
  kiln_program_launch_t how;
  kiln_program_code_launch(f->code, &how);
  memcpy(made->block, how.block, sizeof(made->block));
  if (!kilni_cli_check(error,
                       kiln_program_sizes(f->program, f->sizes, made->work))) {
    return false;
  }
  bool says = kiln_program_work_dimensions(f->program) != 0;
  if (f->node->has_block || (says && f->node->has_grid)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it, or write it into the program",
                          "a `%s` for a program that has its own",
                          f->node->has_block ? "block" : "grid");
  }
  if (f->node->shared_bytes != 0 || f->node->cooperative) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it: a program declares its shared memory, and "
                          "one with a grid_barrier is launched cooperatively "
                          "by itself",
                          "`%s` for a program",
                          f->node->cooperative ? "cooperative" : "shared");
  }
  for (int i = 0; !says && i < 3; i++) {
    made->work[i] = f->node->has_grid
                        ? (uint64_t)f->node->grid[i] * made->block[i]
                    : i == 0 ? longest_of(f)
                             : 1;
  }
  kiln_program_code_grid(f->code, made->work, made->grid);
  for (int i = 0; i < 3; i++) {
    if (made->grid[i] == 0) made->grid[i] = 1;
  }
  return true;
}

static bool graph_program_make_launch(filling_t* f, kilni_cli_error_t* error) {
  kilni_cli_graph_launch_t* made = f->made;
  if (!choose_shape(f, error)) return false;
  kiln_program_launch_t how;
  kiln_program_code_launch(f->code, &how);
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  attributes.cooperative = KILN_SWITCH_ON;
  if (how.cooperative) config.attributes = &attributes;
  config.shared_bytes = how.dynamic_shared_bytes;
  memcpy(config.grid, made->grid, sizeof(config.grid));
  memcpy(config.block, made->block, sizeof(config.block));
  return kilni_cli_check(
             error, kiln_kernel_create(f->job->modules[f->node->code].module,
                                       kiln_program_code_entry(f->code),
                                       &made->kernel)) &&
         kilni_cli_check_launch(
             error, kiln_launch_create(made->kernel, &config, &made->launch));
}

// The n-th memory or number among the arguments.
static uint32_t graph_program_nth(const filling_t* f, uint32_t n,
                                  bool is_memory) {
  uint32_t i = 0;
  for (; i < f->count; i++) {
    if (f->given[i].is_memory == is_memory && n-- == 0) break;
  }
  return i;
}

static bool need_buffer(filling_t* f, uint64_t bytes, kiln_buffer_t** inout,
                        kiln_argument_t* out, kilni_cli_error_t* error) {
  if (*inout == NULL &&
      !kilni_cli_check(error, kiln_buffer_create(f->job->session.device, bytes,
                                                 NULL, inout))) {
    return false;
  }
  *out = kiln_arg_buffer(*inout);
  return true;
}

static bool graph_program_make_argument(filling_t* f,
                                        const kiln_program_parameter_t* p,
                                        kiln_argument_t* out,
                                        kilni_cli_error_t* error) {
  kiln_program_parameter_info_t info;
  bool is_memory = p->kind != KILN_PROGRAM_PARAMETER_SCALAR;
  uint32_t at = graph_program_nth(f, p->index, is_memory);
  switch (p->kind) {
    case KILN_PROGRAM_PARAMETER_LENGTH:
      *out = kiln_arg_u64(f->given[at].count);
      return true;
    case KILN_PROGRAM_PARAMETER_WORK:
      *out = kiln_arg_u32((uint32_t)f->made->work[p->index]);
      return true;
    case KILN_PROGRAM_PARAMETER_TRAP:
      return need_buffer(f, sizeof(kiln_program_trap_t), &f->made->trap, out,
                         error);
    case KILN_PROGRAM_PARAMETER_GRID:
      return need_buffer(f, MEET_BYTES, &f->made->meet, out, error);
    default:
      break;
  }
  *out = f->given[at].argument;
  if (is_memory || f->given[at].type != KILNI_CLI_TYPE_NONE) return true;
  kilni_cli_scalar_t* length = &f->lengths[at];
  (void)kiln_program_parameter(f->program, at, &info);
  if (!kilni_cli_scalar_length(f->given[at].bits, info.type_bytes, false,
                               length, error)) {
    return false;
  }
  *out = kilni_cli_scalar_argument(length, false);
  return true;
}

bool kilni_cli_graph_program(kilni_cli_graph_job_t* job, uint32_t index,
                             const kilni_cli_graph_given_t* given,
                             uint32_t count, kilni_cli_error_t* error) {
  filling_t f;
  memset(&f, 0, sizeof(f));
  f.job = job;
  f.node = &job->sketch->nodes[index];
  f.program = job->modules[f.node->code].program;
  f.code = job->modules[f.node->code].code.lowered;
  f.made = &job->launches[index];
  f.given = given;
  f.count = count;
  if (!graph_program_check_given(&f, error)) return false;
  if (f.made->launch == NULL && !graph_program_make_launch(&f, error)) {
    return false;
  }
  kiln_argument_t arguments[3 * KILNI_CLI_MAX_PARAMS];
  kiln_program_parameter_t p;
  uint32_t made = 0;
  for (; made < 3 * KILNI_CLI_MAX_PARAMS &&
         kiln_program_code_parameter(f.code, made, &p);
       made++) {
    if (!graph_program_make_argument(&f, &p, &arguments[made], error)) {
      return false;
    }
  }
  return kilni_cli_check(error,
                         kiln_launch_set_all(f.made->launch, arguments, made));
}
