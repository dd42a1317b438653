// SPDX-License-Identifier: Apache-2.0
//
// cli: a graph on a device: opened, run, timed, closed.
#define _POSIX_C_SOURCE 200809L
#include "cli/graph_job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli_clock.h"
#include "cli/cli_fault.h"
#include "cli/cli_progress.h"
#include "cli/graph_sequence.h"
#include "kiln/graph.h"
#include "kiln/picture.h"
#include "kiln/runtime.h"
#include "kiln/sequence.h"

// ---- Opening ----

// Once each.
static bool add_instance(kilni_cli_buffer_t* list, const char* name,
                         kilni_cli_error_t* error) {
  const char* const* names = (const char* const*)(void*)list->data;
  for (size_t i = 0; i < list->size / sizeof(name); i++) {
    if (strcmp(names[i], name) == 0) return true;
  }
  return kilni_cli_buffer_add(list, &name, sizeof(name), error);
}

// Instances of templates that nodes of the code file name, "scale<float>",
// after the expressions of --name.
static bool ask_for_instances(kilni_cli_graph_job_t* job, uint32_t code,
                              kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  kilni_cli_graph_module_t* module = &job->modules[code];
  kiln_compile_options_t* o = &module->options;
  *o = job->request.source.options;
  module->code.asked = o;
  for (uint32_t i = 0; i < o->name_expression_count; i++) {
    if (!add_instance(&module->instances, o->name_expressions[i], error)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < k->node_count; i++) {
    const kilni_cli_graph_node_t* node = &k->nodes[i];
    if (node->kind != KILNI_CLI_GRAPH_KERNEL || node->code != code ||
        node->entry.line == 0) {
      continue;
    }
    const char* name = kilni_cli_instance_of(node->entry.text);
    if (name != NULL && !add_instance(&module->instances, name, error)) {
      return false;
    }
  }
  o->name_expressions = (const char* const*)(void*)module->instances.data;
  o->name_expression_count =
      (uint32_t)(module->instances.size / sizeof(const char*));
  return true;
}

static bool load_modules(kilni_cli_graph_job_t* job, kilni_cli_error_t* error) {
  kilni_cli_session_t* s = &job->session;
  // Programs of a sequence are loaded by their pipelines.
  uint32_t count = job->sketch->is_sequence ? 0 : job->sketch->code_count;
  for (uint32_t i = 0; i < count; i++) {
    kilni_cli_graph_module_t* module = &job->modules[i];
    module->code.runtime = s->runtime;
    module->code.device = s->device;
    module->code.cache =
        job->request.cache.off ? NULL : kiln_runtime_cache(s->runtime);
    module->code.time_limit_ns = job->request.time_limit_ns;
    module->code.files = &job->files;
    bool ok = (module->code.kind != KILNI_CLI_CODE_SOURCE ||
               ask_for_instances(job, i, error)) &&
              kilni_cli_module_load(&module->code, &module->module, error);
    s->leave_at_once = s->leave_at_once || module->code.left;
    if (ok) continue;
    kilni_cli_sketch_point(job->sketch, &job->sketch->codes[i].file, error);
    return false;
  }
  return true;
}

static bool make_buffers(kilni_cli_graph_job_t* job, kilni_cli_error_t* error) {
  for (uint32_t i = 0; i < job->sketch->buffer_count; i++) {
    kilni_cli_graph_data_t* data = &job->data[i];
    // A program's atomics on small elements use the whole words around them.
    uint64_t bytes = (data->shape.bytes + 3) / 4 * 4;
    if (kilni_cli_check(error, kiln_buffer_create(job->session.device, bytes,
                                                  NULL, &data->buffer))) {
      continue;
    }
    kilni_cli_sketch_point(job->sketch, &job->sketch->buffers[i].name, error);
    return false;
  }
  return true;
}

static bool graph_job_make_exec(kilni_cli_graph_job_t* job,
                                kilni_cli_error_t* error) {
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.free_on_launch = KILN_SWITCH_ON;
  return kilni_cli_check(
      error, kiln_graph_exec_create(job->graph, &options, &job->exec));
}

static bool graph_job_make_graph(kilni_cli_graph_job_t* job,
                                 kilni_cli_error_t* error) {
  if (!job->sketch->is_sequence) {
    return kilni_cli_graph_build(job, &job->graph, error);
  }
  if (!kilni_cli_sequence_build(job, &job->replay, error)) return false;
  job->graph = kiln_replay_graph(job->replay);
  kiln_graph_retain(job->graph);
  return true;
}

static bool graph_job_launch(kilni_cli_graph_job_t* job,
                             kilni_cli_error_t* error) {
  if (!job->sketch->is_sequence) {
    return kilni_cli_check(error,
                           kiln_graph_exec_launch(job->exec, job->stream));
  }
  return kilni_cli_check(
      error, kiln_replay_run(job->replay, job->stream, &job->pending));
}

bool kilni_cli_graph_open(kilni_cli_graph_job_t* job,
                          kilni_cli_error_t* error) {
  kiln_event_options_t timing = kiln_event_options_default();
  timing.timing = KILN_SWITCH_ON;
  if (!kilni_cli_session_open(&job->session, &job->request, error) ||
      !load_modules(job, error)) {
    return false;
  }
  kiln_device_t* device = job->session.device;
  uint32_t count = job->sketch->event_count;
  job->events = calloc((size_t)count + 1, sizeof(*job->events));
  if (job->events == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the events");
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!kilni_cli_check(error,
                         kiln_event_create(device, NULL, &job->events[i]))) {
      return false;
    }
  }
  return kilni_cli_check(error,
                         kiln_stream_create(device, NULL, &job->stream)) &&
         kilni_cli_check(error,
                         kiln_event_create(device, &timing, &job->start)) &&
         kilni_cli_check(error,
                         kiln_event_create(device, &timing, &job->end)) &&
         make_buffers(job, error) && graph_job_make_graph(job, error);
}

// ---- Running ----

// Every run starts with the same contents.
static bool reset_buffers(kilni_cli_graph_job_t* job,
                          kilni_cli_error_t* error) {
  for (uint32_t i = 0; i < job->sketch->buffer_count; i++) {
    kilni_cli_graph_data_t* data = &job->data[i];
    kiln_status_t status =
        data->in.size != 0 ? kiln_buffer_write_async(data->buffer, job->stream,
                                                     0, data->array.data.size,
                                                     data->array.data.data)
                           : kiln_buffer_fill_async(data->buffer, job->stream,
                                                    0, data->shape.bytes, 0, 1);
    if (!kilni_cli_check(error, status)) return false;
  }
  for (uint32_t i = 0; i < job->sketch->node_count; i++) {
    kiln_buffer_t* both[] = {job->launches[i].trap, job->launches[i].meet};
    for (int n = 0; n < 2; n++) {
      if (both[n] != NULL &&
          !kilni_cli_check(
              error, kiln_buffer_fill_async(both[n], job->stream, 0,
                                            kiln_buffer_size(both[n]), 0, 1))) {
        return false;
      }
    }
  }
  return kilni_cli_check(error, kiln_stream_synchronize(job->stream));
}

static bool check_traps(const kilni_cli_graph_job_t* job,
                        kilni_cli_error_t* error) {
  for (uint32_t i = 0; i < job->sketch->node_count; i++) {
    const kilni_cli_name_t* name = &job->sketch->nodes[i].name;
    if (kilni_cli_trap_check(job->launches[i].trap, name->text, error)) {
      continue;
    }
    kilni_cli_sketch_point(job->sketch, name, error);
    return false;
  }
  return true;
}

static bool graph_job_name_buffer(void* user, uint64_t address, char* out_name,
                                  size_t capacity) {
  const kilni_cli_graph_job_t* job = user;
  for (uint32_t i = 0; i < job->sketch->buffer_count; i++) {
    if (job->data[i].buffer == NULL ||
        kiln_buffer_address(job->data[i].buffer) != address) {
      continue;
    }
    (void)snprintf(out_name, capacity, "%s", job->sketch->buffers[i].name.text);
    return true;
  }
  return false;
}

static void point_at_fault(kilni_cli_graph_job_t* job,
                           kilni_cli_error_t* error) {
  if (!kilni_cli_fault_tell(job->session.device, graph_job_name_buffer, job,
                            error)) {
    return;
  }
  if (error->fault.cause == KILN_FAULT_CAUSE_GRID_SYNC) {
    kilni_cli_error_fix(error,
                        "add the word cooperative to the kernel's line, or "
                        "remove the grid-wide barrier (grid.sync())");
  }
  if (error->fault.kind == KILN_FAULT_GRAPH_LOOP) {
    kilni_cli_error_fix(error,
                        "let a kernel in the braces of the `while` set its "
                        "condition to 0 (cudaGraphSetConditional)");
  }
}

static bool wait_for_it(kilni_cli_graph_job_t* job, kilni_cli_error_t* error) {
  uint64_t limit = job->request.time_limit_ns;
  uint64_t began = kilni_cli_now_ns();
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "running %s on %s", job->sketch->file,
                           job->session.device_name);
  kiln_status_t status = limit == 0 ? kiln_stream_synchronize(job->stream)
                                    : kiln_stream_wait(job->stream, limit);
  kilni_cli_progress_stop(&progress);
  if (kilni_cli_check(error, status)) {
    return check_traps(job, error) && kilni_cli_sequence_ended(job, error);
  }
  if (kilni_cli_session_overdue(
          &job->session, began, "the graph of", job->sketch->file,
          "a loop or a wait in a kernel, or a `while`, that never ends",
          error)) {
    return false;
  }
  if (error->code == KILN_STATUS_DEVICE_LOST) point_at_fault(job, error);
  return false;
}

bool kilni_cli_graph_run(kilni_cli_graph_job_t* job, kilni_cli_error_t* error) {
  if (job->exec == NULL && !job->sketch->is_sequence &&
      !graph_job_make_exec(job, error)) {
    return false;
  }
  return reset_buffers(job, error) && graph_job_launch(job, error) &&
         wait_for_it(job, error);
}

bool kilni_cli_graph_read(kilni_cli_graph_job_t* job, uint32_t index,
                          kilni_cli_array_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  out->shape = job->data[index].shape;
  size_t bytes = (size_t)out->shape.bytes;
  return kilni_cli_buffer_resize(&out->data, bytes, error) &&
         kilni_cli_check(error, kiln_buffer_read(job->data[index].buffer, 0,
                                                 bytes, out->data.data));
}

// ---- Timing ----

static int graph_job_compare(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a;
  uint64_t y = *(const uint64_t*)b;
  return x < y ? -1 : x > y ? 1 : 0;
}

static uint64_t median(uint64_t* values, uint32_t count) {
  qsort(values, count, sizeof(*values), graph_job_compare);
  return values[count / 2];
}

static bool time_plain(kilni_cli_graph_job_t* job, uint64_t* elapsed,
                       uint64_t* launched, kilni_cli_error_t* error) {
  if (!reset_buffers(job, error) ||
      !kilni_cli_check(error, kiln_event_record(job->start, job->stream))) {
    return false;
  }
  uint64_t began = kilni_cli_now_ns();
  bool ok = graph_job_launch(job, error);
  *launched = kilni_cli_now_ns() - began;
  return ok &&
         kilni_cli_check(error, kiln_event_record(job->end, job->stream)) &&
         wait_for_it(job, error) &&
         kilni_cli_check(error,
                         kiln_event_elapsed(job->start, job->end, elapsed));
}

// Columns of `runs` numbers: one for each slice's start and length.
static bool time_traced(kilni_cli_graph_job_t* job, uint32_t run, uint32_t runs,
                        uint64_t* columns, uint64_t* elapsed,
                        kilni_cli_error_t* error) {
  if (!reset_buffers(job, error) ||
      !kilni_cli_check(error,
                       kiln_graph_trace_launch(job->trace, job->stream)) ||
      !wait_for_it(job, error) ||
      !kilni_cli_check(error, kiln_graph_trace_read(job->trace))) {
    return false;
  }
  *elapsed = kiln_graph_trace_elapsed(job->trace);
  for (uint32_t i = 0; i < job->times.slice_count; i++) {
    kiln_graph_slice_t slice;
    if (!kilni_cli_check(error,
                         kiln_graph_trace_slice(job->trace, i, &slice))) {
      return false;
    }
    columns[(size_t)(2 * i) * runs + run] = slice.start_ns;
    columns[(size_t)(2 * i + 1) * runs + run] = slice.elapsed_ns;
  }
  return true;
}

static bool make_trace(kilni_cli_graph_job_t* job, kilni_cli_error_t* error) {
  // A graph of its own, as one that allocates cannot be cloned.
  kiln_graph_t* graph = NULL;
  kiln_graph_trace_options_t options = kiln_graph_trace_options_default();
  options.in_place = KILN_SWITCH_ON;
  options.free_on_launch = KILN_SWITCH_ON;
  bool ok = true;
  if (job->sketch->is_sequence) {
    ok = kilni_cli_sequence_build(job, &job->traced, error);
    if (ok) graph = kiln_replay_graph(job->traced);
    kiln_graph_retain(graph);
  } else {
    ok = kilni_cli_graph_build(job, &graph, error);
  }
  ok = ok && kilni_cli_check(
                 error, kiln_graph_trace_create(graph, &options, &job->trace));
  kiln_graph_release(graph);
  if (ok) job->times.slice_count = kiln_graph_trace_count(job->trace);
  return ok;
}

static bool time_all(kilni_cli_graph_job_t* job, uint32_t runs,
                     uint64_t* columns, kilni_cli_error_t* error) {
  kilni_cli_graph_times_t* t = &job->times;
  uint64_t* elapsed = columns + (size_t)2 * t->slice_count * runs;
  uint64_t* launched = elapsed + runs;
  for (uint32_t i = 0; i < runs; i++) {
    if (!time_plain(job, &elapsed[i], &launched[i], error)) return false;
  }
  t->elapsed_ns = median(elapsed, runs);
  t->launch_ns = median(launched, runs);
  for (uint32_t i = 0; i < runs; i++) {
    if (!time_traced(job, i, runs, columns, &elapsed[i], error)) return false;
  }
  t->traced_ns = median(elapsed, runs);
  for (uint32_t i = 0; i < t->slice_count; i++) {
    t->start_ns[i] = median(columns + (size_t)(2 * i) * runs, runs);
    t->slice_ns[i] = median(columns + (size_t)(2 * i + 1) * runs, runs);
  }
  t->runs = runs;
  return true;
}

bool kilni_cli_graph_time(kilni_cli_graph_job_t* job, uint32_t runs,
                          kilni_cli_error_t* error) {
  kilni_cli_graph_times_t* t = &job->times;
  job->is_quiet = true;
  if (!make_trace(job, error)) return false;
  t->start_ns = calloc((size_t)t->slice_count + 1, sizeof(uint64_t));
  t->slice_ns = calloc((size_t)t->slice_count + 1, sizeof(uint64_t));
  uint64_t* columns =
      calloc(((size_t)t->slice_count + 1) * 2 * runs, sizeof(uint64_t));
  bool ok = t->start_ns != NULL && t->slice_ns != NULL && columns != NULL;
  if (!ok) {
    (void)kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                         "no memory for the times of %u runs", (unsigned)runs);
  }
  ok = ok && time_all(job, runs, columns, error);
  free(columns);
  return ok;
}

// ---- Closing ----

void kilni_cli_graph_close(kilni_cli_graph_job_t* job) {
  kiln_graph_trace_release(job->trace);
  kilni_cli_sequence_close(job);
  kiln_graph_exec_release(job->exec);
  kiln_graph_release(job->graph);
  kiln_event_release(job->start);
  kiln_event_release(job->end);
  kiln_stream_release(job->stream);
  for (uint32_t i = 0; job->launches != NULL && i < job->sketch->node_count;
       i++) {
    kiln_launch_release(job->launches[i].launch);
    kiln_kernel_release(job->launches[i].kernel);
    kiln_buffer_release(job->launches[i].trap);
    kiln_buffer_release(job->launches[i].meet);
  }
  for (uint32_t i = 0; job->events != NULL && i < job->sketch->event_count;
       i++) {
    kiln_event_release(job->events[i]);
  }
  for (uint32_t i = 0; job->data != NULL && i < job->sketch->buffer_count;
       i++) {
    kilni_cli_graph_data_t* data = &job->data[i];
    kiln_buffer_release(data->buffer);
    kilni_cli_array_deinit(&data->array);
    kilni_cli_buffer_deinit(&data->in);
    kilni_cli_buffer_deinit(&data->out);
  }
  for (uint32_t i = 0; job->modules != NULL && i < job->sketch->code_count;
       i++) {
    kiln_module_release(job->modules[i].module);
    kilni_cli_code_deinit(&job->modules[i].code);
    kiln_program_release(job->modules[i].program);
    kilni_cli_buffer_deinit(&job->modules[i].path);
    kilni_cli_buffer_deinit(&job->modules[i].instances);
  }
  free(job->data);
  free(job->modules);
  free(job->launches);
  free(job->events);
  free(job->times.start_ns);
  free(job->times.slice_ns);
  if (job->session.runtime != NULL) kilni_cli_session_close(&job->session);
  kilni_cli_source_deinit(&job->request.source);
  kilni_cli_cache_deinit(&job->request.cache);
}
