// SPDX-License-Identifier: Apache-2.0
//
// cli: a graph file that begins with `sequence`: its programs, copies and fills
// as a sequence of the library; its replay is the graph that is drawn, run and
// timed.
#include "cli/graph_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli_program.h"
#include "kiln/sequence.h"

static bool graph_sequence_check_at(const kilni_cli_graph_job_t* job,
                                    const kilni_cli_name_t* name,
                                    kiln_status_t status,
                                    kilni_cli_error_t* error) {
  if (kilni_cli_check(error, status)) return true;
  kilni_cli_sketch_point(job->sketch, name, error);
  return false;
}

// ---- Programs ----

static bool make_pipelines(kilni_cli_graph_job_t* job,
                           kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  if (job->dispatcher != NULL) return true;
  if (!kilni_cli_check(error, kiln_dispatcher_create(job->session.device, NULL,
                                                     &job->dispatcher))) {
    return false;
  }
  for (uint32_t i = 0; i < k->code_count; i++) {
    kilni_cli_graph_module_t* module = &job->modules[i];
    if (module->program == NULL) {
      return kilni_cli_sketch_fail(
          k, k->codes[i].file.line, k->codes[i].file.column,
          KILN_STATUS_UNSUPPORTED,
          "write it as a program (.kiln), or remove `sequence` and draw edges",
          error, "a sequence runs programs, and \"%s\" is not one",
          k->codes[i].file.text);
    }
    if (!graph_sequence_check_at(
            job, &k->codes[i].file,
            kiln_pipeline_create(job->dispatcher, module->program, NULL,
                                 &module->pipeline),
            error)) {
      return false;
    }
  }
  return true;
}

// ---- Arguments of a program ----

static kiln_binding_t bind_part(const kilni_cli_graph_job_t* job,
                                const kilni_cli_graph_part_t* part) {
  const kilni_cli_graph_data_t* data = &job->data[part->buffer];
  uint64_t element = kilni_cli_type_info(data->shape.type)->bytes;
  uint64_t first = part->whole ? 0 : part->first;
  uint64_t end = part->whole ? data->shape.count : part->end;
  return kiln_bind_buffer_range(data->buffer, first * element,
                                (end - first) * element);
}

static bool bind_argument(const kilni_cli_graph_job_t* job,
                          const kilni_cli_graph_argument_t* given,
                          const kiln_pipeline_parameter_t* parameter,
                          kiln_binding_t* out, kilni_cli_error_t* error) {
  bool is_memory = parameter->role != KILN_PROGRAM_ROLE_NONE;
  kilni_cli_type_t wanted = kilni_cli_program_type(parameter->type);
  kilni_cli_type_t type = wanted;
  if (given->kind == KILNI_CLI_ARGUMENT_BUFFER) {
    kilni_cli_graph_part_t whole;
    memset(&whole, 0, sizeof(whole));
    whole.buffer = given->index;
    whole.whole = true;
    type = job->data[given->index].shape.type;
    *out = bind_part(job, &whole);
  } else if (given->kind == KILNI_CLI_ARGUMENT_LENGTH) {
    *out =
        kiln_bind_scalar(parameter->type, job->data[given->index].shape.count);
  } else if (given->kind == KILNI_CLI_ARGUMENT_SCALAR) {
    type = given->scalar.type;
    *out = kiln_bind_scalar(parameter->type, given->scalar.bits);
  } else {
    type = KILNI_CLI_TYPE_NONE;
  }
  if (is_memory == (given->kind == KILNI_CLI_ARGUMENT_BUFFER) &&
      type == wanted) {
    return true;
  }
  return kilni_cli_sketch_fail(
      job->sketch, given->name.line, given->name.column,
      KILN_STATUS_INVALID_ARGUMENT,
      is_memory ? "give a buffer of that type" : "give a number of that type",
      error, "the parameter \"%s\" of the program is %s%s", parameter->name,
      kiln_program_type_name(parameter->type), is_memory ? " in memory" : "");
}

static bool graph_sequence_bind_all(const kilni_cli_graph_job_t* job,
                                    const kilni_cli_graph_node_t* node,
                                    kiln_pipeline_t* pipeline,
                                    kiln_binding_t* bindings,
                                    kilni_cli_error_t* error) {
  uint32_t count = kiln_pipeline_info(pipeline)->parameter_count;
  if (count != node->argument_count || count > KILNI_CLI_MAX_PARAMS) {
    return kilni_cli_sketch_fail(
        job->sketch, node->name.line, node->name.column,
        KILN_STATUS_INVALID_ARGUMENT,
        "give each parameter of the program, in order", error,
        "%u arguments for the %u parameters of the program \"%s\"",
        (unsigned)node->argument_count, (unsigned)count,
        kiln_pipeline_info(pipeline)->label);
  }
  for (uint32_t i = 0; i < count; i++) {
    kiln_pipeline_parameter_t parameter;
    (void)kiln_pipeline_parameter(pipeline, i, &parameter);
    if (!bind_argument(job, &job->sketch->arguments[node->argument + i],
                       &parameter, &bindings[i], error)) {
      return false;
    }
  }
  return true;
}

// ---- Steps ----

static bool add_program(kilni_cli_graph_job_t* job, kiln_sequence_t* sequence,
                        uint32_t index, kilni_cli_error_t* error) {
  const kilni_cli_graph_node_t* node = &job->sketch->nodes[index];
  kiln_pipeline_t* pipeline = job->modules[node->code].pipeline;
  kilni_cli_graph_launch_t* made = &job->launches[index];
  kiln_binding_t bindings[KILNI_CLI_MAX_PARAMS];
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  kiln_dispatch_plan_t plan;
  options.label = node->name.text;
  memcpy(options.grid, node->grid, sizeof(options.grid));
  memcpy(options.block, node->block, sizeof(options.block));
  if (node->cooperative) {
    return kilni_cli_sketch_fail(
        job->sketch, node->name.line, node->name.column,
        KILN_STATUS_INVALID_ARGUMENT,
        "omit it: a program with a grid_barrier is launched cooperatively by "
        "itself",
        error, "`cooperative` for a program");
  }
  if (node->shared_bytes != 0) {
    return kilni_cli_sketch_fail(
        job->sketch, node->name.line, node->name.column,
        KILN_STATUS_INVALID_ARGUMENT, "declare shared buffers in the program",
        error, "`shared` for a program");
  }
  if (!graph_sequence_bind_all(job, node, pipeline, bindings, error) ||
      !graph_sequence_check_at(
          job, &node->name,
          kiln_pipeline_plan(pipeline, bindings, node->argument_count, &options,
                             &plan),
          error) ||
      !graph_sequence_check_at(
          job, &node->name,
          kiln_sequence_add_dispatch(sequence, pipeline, bindings,
                                     node->argument_count, &options, NULL),
          error)) {
    return false;
  }
  memcpy(made->grid, plan.grid, sizeof(made->grid));
  memcpy(made->block, plan.block, sizeof(made->block));
  if (made->kernel != NULL) return true;
  made->kernel = kiln_pipeline_kernel(pipeline);
  kiln_kernel_retain(made->kernel);
  return true;
}

static bool graph_sequence_add_scope(kilni_cli_graph_job_t* job,
                                     kiln_sequence_t* sequence, uint32_t scope,
                                     kilni_cli_error_t* error);

static bool add_repeat(kilni_cli_graph_job_t* job, kiln_sequence_t* sequence,
                       const kilni_cli_graph_node_t* node,
                       kilni_cli_error_t* error) {
  kiln_status_t status;
  if (node->to.name.line != 0) {
    kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
    options.flag = bind_part(job, &node->to);
    options.limit = node->rounds;
    status = kiln_sequence_begin_fixpoint(sequence, &options, NULL);
  } else {
    status = kiln_sequence_begin_loop(sequence, node->rounds, NULL);
  }
  return graph_sequence_check_at(job, &node->name, status, error) &&
         graph_sequence_add_scope(job, sequence, node->body, error) &&
         graph_sequence_check_at(job, &node->name,
                                 kiln_sequence_end_body(sequence), error);
}

static bool graph_sequence_add_any(kilni_cli_graph_job_t* job,
                                   kiln_sequence_t* sequence, uint32_t index,
                                   kilni_cli_error_t* error) {
  const kilni_cli_graph_node_t* node = &job->sketch->nodes[index];
  if (node->kind == KILNI_CLI_GRAPH_KERNEL) {
    return add_program(job, sequence, index, error);
  }
  if (node->kind == KILNI_CLI_GRAPH_REPEAT) {
    return add_repeat(job, sequence, node, error);
  }
  kiln_binding_t to = bind_part(job, &node->to);
  if (node->kind == KILNI_CLI_GRAPH_COPY) {
    kiln_binding_t from = bind_part(job, &node->from);
    return graph_sequence_check_at(
        job, &node->name, kiln_sequence_add_copy(sequence, &to, &from, NULL),
        error);
  }
  uint32_t width = node->value.bytes < 4 ? node->value.bytes : 4;
  return graph_sequence_check_at(
      job, &node->name,
      kiln_sequence_add_fill(sequence, &to, (uint32_t)node->value.bits, width,
                             NULL),
      error);
}

static bool graph_sequence_add_step(kilni_cli_graph_job_t* job,
                                    kiln_sequence_t* sequence, uint32_t index,
                                    kilni_cli_error_t* error) {
  const kilni_cli_name_t* name = &job->sketch->nodes[index].name;
  uint32_t step = kiln_sequence_step_count(sequence);
  return graph_sequence_add_any(job, sequence, index, error) &&
         graph_sequence_check_at(
             job, name, kiln_sequence_set_label(sequence, step, name->text),
             error);
}

static bool graph_sequence_add_scope(kilni_cli_graph_job_t* job,
                                     kiln_sequence_t* sequence, uint32_t scope,
                                     kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  for (uint32_t i = 0; i < k->node_count; i++) {
    if (k->nodes[i].scope == scope &&
        !graph_sequence_add_step(job, sequence, i, error)) {
      return false;
    }
  }
  return true;
}

// ---- The whole ----

bool kilni_cli_sequence_build(kilni_cli_graph_job_t* job,
                              kiln_replay_t** out_replay,
                              kilni_cli_error_t* error) {
  kiln_sequence_t* sequence = NULL;
  kiln_sequence_options_t options = kiln_sequence_options_default();
  options.label = job->sketch->file;
  bool ok = make_pipelines(job, error) &&
            kilni_cli_check(error, kiln_sequence_create(job->dispatcher,
                                                        &options, &sequence)) &&
            graph_sequence_add_scope(job, sequence, 0, error) &&
            kilni_cli_check(error, kiln_sequence_finish(sequence)) &&
            kilni_cli_check(
                error, kiln_sequence_instantiate(sequence, NULL, out_replay));
  kiln_sequence_release(sequence);
  return ok;
}

bool kilni_cli_sequence_ended(kilni_cli_graph_job_t* job,
                              kilni_cli_error_t* error) {
  kiln_pending_t* pending = job->pending;
  job->pending = NULL;
  kiln_status_t status =
      pending == NULL ? NULL : kiln_pending_wait(pending, KILN_PENDING_FOREVER);
  kiln_pending_release(pending);
  return kilni_cli_check(error, status);
}

void kilni_cli_sequence_close(kilni_cli_graph_job_t* job) {
  kiln_pending_release(job->pending);
  kiln_replay_release(job->traced);
  kiln_replay_release(job->replay);
  for (uint32_t i = 0; job->modules != NULL && i < job->sketch->code_count;
       i++) {
    kiln_pipeline_release(job->modules[i].pipeline);
  }
  kiln_dispatcher_release(job->dispatcher);
}
