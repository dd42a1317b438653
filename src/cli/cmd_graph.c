// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln graph`: draws, runs and times a graph from its file.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_command.h"
#include "cli/cli_data.h"
#include "cli/cli_leave.h"
#include "cli/cli_report.h"
#include "cli/graph_job.h"
#include "cli/graph_report.h"
#include "cli/graph_svg.h"
#include "kiln/picture.h"

enum {
  DEFAULT_RUNS = 5,
  MAX_RUNS = 1000,
  MAX_OUTPUTS = KILNI_CLI_GRAPH_MAX_BUFFERS + 4,
};

// The request. one-thread
typedef struct wanted_t {
  const char* svg;
  const char* dot;
  const char* driver_dot;
  const char* trace;
  uint32_t driver_flags;
  uint32_t runs;
  bool draws_only;
} wanted_t;

// Everything to be written. one-thread
typedef struct results_t {
  kilni_cli_output_t outputs[MAX_OUTPUTS];
  kilni_cli_graph_written_t written[MAX_OUTPUTS];
  size_t count;
} results_t;

// ---- The request ----

static const struct {
  const char* word;
  uint32_t flag;
} kFlags[] = {
    {"verbose", KILN_GRAPH_DUMP_VERBOSE},
    {"runtime-types", KILN_GRAPH_DUMP_RUNTIME_TYPES},
    {"kernels", KILN_GRAPH_DUMP_KERNELS},
    {"copies", KILN_GRAPH_DUMP_COPIES},
    {"fills", KILN_GRAPH_DUMP_FILLS},
    {"hosts", KILN_GRAPH_DUMP_HOSTS},
    {"events", KILN_GRAPH_DUMP_EVENTS},
    {"signal-semaphores", KILN_GRAPH_DUMP_SIGNAL_SEMAPHORES},
    {"wait-semaphores", KILN_GRAPH_DUMP_WAIT_SEMAPHORES},
    {"kernel-attributes", KILN_GRAPH_DUMP_KERNEL_ATTRIBUTES},
    {"handles", KILN_GRAPH_DUMP_HANDLES},
    {"allocations", KILN_GRAPH_DUMP_ALLOCATIONS},
    {"frees", KILN_GRAPH_DUMP_FREES},
    {"memory-ops", KILN_GRAPH_DUMP_MEMORY_OPS},
    {"topology", KILN_GRAPH_DUMP_TOPOLOGY},
    {"conditionals", KILN_GRAPH_DUMP_CONDITIONALS},
};

static bool cmd_graph_read_flags(const char* text, uint32_t* out,
                                 kilni_cli_error_t* error) {
  *out = text == NULL ? KILN_GRAPH_DUMP_VERBOSE : 0;
  while (text != NULL && *text != 0) {
    size_t size = strcspn(text, ",");
    size_t i = 0;
    size_t count = sizeof(kFlags) / sizeof(kFlags[0]);
    while (i < count && (strlen(kFlags[i].word) != size ||
                         memcmp(kFlags[i].word, text, size) != 0)) {
      i++;
    }
    if (i == count) {
      return kilni_cli_fail(
          error, KILN_STATUS_INVALID_ARGUMENT,
          "write some of verbose, runtime-types, kernels, copies, fills, "
          "hosts, events, signal-semaphores, wait-semaphores, "
          "kernel-attributes, handles, allocations, frees, memory-ops, "
          "topology, conditionals",
          "--driver-flags has no \"%.*s\"", (int)size, text);
    }
    *out |= kFlags[i].flag;
    text += size + (text[size] == ',');
  }
  return true;
}

static bool read_runs(const char* text, uint32_t* out,
                      kilni_cli_error_t* error) {
  uint64_t value = DEFAULT_RUNS;
  if (text != NULL &&
      (!kilni_cli_u64_parse(text, strlen(text), &value) || value > MAX_RUNS)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write a number from 0 to 1000; 0 runs it once "
                          "without timing",
                          "--runs \"%s\" is not a number from 0 to %d", text,
                          (int)MAX_RUNS);
  }
  *out = (uint32_t)value;
  return true;
}

static bool read_wanted(wanted_t* w, const kilni_cli_call_t* call,
                        kilni_cli_error_t* error) {
  memset(w, 0, sizeof(*w));
  w->svg = kilni_cli_option_value(call, "svg");
  w->dot = kilni_cli_option_value(call, "dot");
  w->driver_dot = kilni_cli_option_value(call, "driver-dot");
  w->trace = kilni_cli_option_value(call, "trace");
  w->draws_only = kilni_cli_option_value(call, "no-run") != NULL;
  if (!cmd_graph_read_flags(kilni_cli_option_value(call, "driver-flags"),
                            &w->driver_flags, error) ||
      !read_runs(kilni_cli_option_value(call, "runs"), &w->runs, error)) {
    return false;
  }
  if (w->trace != NULL && (w->runs == 0 || w->draws_only)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "use --runs 1 or more, without --no-run",
                          "--trace needs a timed run");
  }
  const char* const paths[] = {w->svg, w->dot, w->driver_dot, w->trace};
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
    if (paths[i] != NULL && !kilni_cli_output_check(paths[i], error)) {
      return false;
    }
  }
  return w->svg == NULL || kilni_cli_svg_check(error);
}

// The files named by the call itself; the graph file names more.
static bool cmd_graph_note_files(kilni_cli_files_t* files, const char* file,
                                 const wanted_t* w, kilni_cli_error_t* error) {
  const struct {
    const char* path;
    const char* what;
  } outputs[] = {{w->svg, "--svg"},
                 {w->dot, "--dot"},
                 {w->driver_dot, "--driver-dot"},
                 {w->trace, "--trace"}};
  bool ok = kilni_cli_files_add_input(files, file, "the graph file", error);
  for (size_t i = 0; ok && i < sizeof(outputs) / sizeof(outputs[0]); i++) {
    if (outputs[i].path == NULL) continue;
    ok = kilni_cli_files_add_output(files, outputs[i].path, outputs[i].what,
                                    error);
  }
  return ok;
}

// ---- Pictures ----

static kilni_cli_buffer_t* cmd_graph_add_output(results_t* r, const char* path,
                                                const char* what,
                                                const char* buffer) {
  r->outputs[r->count].path = path;
  r->written[r->count].what = what;
  r->written[r->count].buffer = buffer;
  return &r->outputs[r->count++].content;
}

// Text from the library. one-thread
typedef struct taking_t {
  kilni_cli_buffer_t* out;
  kilni_cli_error_t* error;
} taking_t;

static bool cmd_graph_take_text(const char* text, size_t size,
                                void* user_data) {
  taking_t* taking = user_data;
  return kilni_cli_buffer_add(taking->out, text, size, taking->error);
}

static bool draw_dot(const kilni_cli_graph_job_t* job, kilni_cli_buffer_t* out,
                     kilni_cli_error_t* error) {
  taking_t taking = {out, error};
  kiln_graph_draw_options_t options = kiln_graph_draw_options_default();
  const char* slash = strrchr(job->sketch->file, '/');
  options.title = slash == NULL ? job->sketch->file : slash + 1;
  return kilni_cli_check(error, kiln_graph_draw(job->graph, &options,
                                                cmd_graph_take_text, &taking));
}

// The driver writes to a temporary path, which is read back, so that this file
// too is written together with all others or not at all.
static bool draw_driver(const kilni_cli_graph_job_t* job, const wanted_t* w,
                        kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  kilni_cli_buffer_t path = {0};
  kilni_cli_leaving_t leaving = {0};
  char suffix[40];
  (void)snprintf(suffix, sizeof(suffix), ".kiln-%ld", (long)getpid());
  bool ok = kilni_cli_buffer_add(&path, w->driver_dot, strlen(w->driver_dot),
                                 error) &&
            kilni_cli_buffer_add(&path, suffix, strlen(suffix) + 1, error);
  const char* name = (const char*)path.data;
  if (ok) {
    kilni_cli_leave_add(&leaving, name);
    ok = kilni_cli_check(
             error, kiln_graph_dump_file(job->graph, w->driver_flags, name)) &&
         kilni_cli_buffer_read(out, name, KILNI_CLI_MAX_DATA_BYTES, error);
    (void)unlink(name);
    kilni_cli_leave_forget(&leaving);
  }
  kilni_cli_buffer_deinit(&path);
  return ok;
}

static bool cmd_graph_draw(const kilni_cli_graph_job_t* job, const wanted_t* w,
                           results_t* r, kilni_cli_error_t* error) {
  kilni_cli_buffer_t dot = {0};
  bool ok = true;
  if (w->dot != NULL || w->svg != NULL) ok = draw_dot(job, &dot, error);
  if (ok && w->svg != NULL) {
    ok = kilni_cli_svg_make(&dot, cmd_graph_add_output(r, w->svg, "svg", NULL),
                            error);
  }
  if (ok && w->dot != NULL) {
    ok = kilni_cli_buffer_add(cmd_graph_add_output(r, w->dot, "dot", NULL),
                              dot.data, dot.size, error);
  }
  if (ok && w->driver_dot != NULL) {
    ok = draw_driver(job, w,
                     cmd_graph_add_output(r, w->driver_dot, "driver-dot", NULL),
                     error);
  }
  kilni_cli_buffer_deinit(&dot);
  return ok;
}

// ---- The run ----

static bool cmd_graph_collect(kilni_cli_graph_job_t* job, results_t* r,
                              kilni_cli_error_t* error) {
  for (uint32_t i = 0; i < job->sketch->buffer_count; i++) {
    if (job->data[i].out.size == 0) continue;
    const char* path = (const char*)job->data[i].out.data;
    kilni_cli_buffer_t* content = cmd_graph_add_output(
        r, path, "buffer", job->sketch->buffers[i].name.text);
    kilni_cli_array_t array;
    bool ok = kilni_cli_graph_read(job, i, &array, error) &&
              kilni_cli_data_encode(path, &array, content, error);
    kilni_cli_array_deinit(&array);
    if (!ok) return false;
  }
  return true;
}

static bool write_trace(const kilni_cli_graph_job_t* job, const wanted_t* w,
                        results_t* r, kilni_cli_error_t* error) {
  if (w->trace == NULL) return true;
  taking_t taking = {cmd_graph_add_output(r, w->trace, "trace", NULL), error};
  return kilni_cli_check(
      error, kiln_graph_trace_write(job->trace, cmd_graph_take_text, &taking));
}

static bool do_all(kilni_cli_graph_job_t* job, const wanted_t* w, results_t* r,
                   kilni_cli_error_t* error) {
  if (!kilni_cli_graph_open(job, error) || !cmd_graph_draw(job, w, r, error)) {
    return false;
  }
  if (w->draws_only) return true;
  return kilni_cli_graph_run(job, error) && cmd_graph_collect(job, r, error) &&
         (w->runs == 0 || (kilni_cli_graph_time(job, w->runs, error) &&
                           write_trace(job, w, r, error)));
}

static bool cmd_graph_report(const kilni_cli_call_t* call,
                             const kilni_cli_graph_job_t* job,
                             const results_t* r, kilni_cli_error_t* error) {
  if (call->json) {
    return kilni_cli_json_write(
        call->results,
        kilni_cli_graph_json(job, r->written, r->outputs, r->count), error);
  }
  kilni_cli_shown_t shown;
  if (kilni_cli_shown_open(&shown, call->results)) {
    kilni_cli_graph_print(shown.text, job);
  }
  kilni_cli_shown_close(&shown);
  for (size_t i = 0; i < r->count; i++) {
    kilni_cli_note("wrote %s (%zu bytes)", r->outputs[i].path,
                   r->outputs[i].content.size);
  }
  return kilni_cli_results_flush(call->results, error);
}

static bool run_job(const kilni_cli_call_t* call, kilni_cli_graph_job_t* job,
                    const wanted_t* w, results_t* r, kilni_cli_error_t* error) {
  if (!kilni_cli_graph_prepare(job, call, error)) return false;
  int hidden = kilni_cli_results_hide();
  bool ok = do_all(job, w, r, error);
  if (job->session.leave_at_once) {
    kilni_cli_results_show(hidden);
    _exit(kilni_cli_error_report(stdout, call->json, error));
  }
  (void)fflush(stderr);
  kilni_cli_results_show(hidden);
  return ok && kilni_cli_outputs_write(r->outputs, r->count, error) &&
         cmd_graph_report(call, job, r, error);
}

static bool read_request(kilni_cli_request_t* request,
                         const kilni_cli_call_t* call,
                         kilni_cli_error_t* error) {
  const char* file = call->operands[0];
  request->file = file;
  const char* seed = kilni_cli_option_value(call, "seed");
  request->has_seed = seed != NULL;
  if (seed != NULL &&
      !kilni_cli_u64_parse(seed, strlen(seed), &request->seed)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write a whole number that is not negative",
                          "--seed \"%s\" is not a number", seed);
  }
  return kilni_cli_seconds_read(kilni_cli_option_value(call, "time-limit"),
                                &request->time_limit_ns, error) &&
         kilni_cli_device_read(request, kilni_cli_option_value(call, "device"),
                               error) &&
         kilni_cli_cache_read(&request->cache, call, error);
}

static bool check_statements(const kilni_cli_sketch_t* sketch,
                             kilni_cli_error_t* error) {
  return sketch->buffer_count + sketch->code_count + sketch->node_count != 0 ||
         kilni_cli_fail(error, KILN_STATUS_BAD_DATA,
                        "declare a buffer and a node, such as `fill f = x <- "
                        "0f32`; see `kiln graph --help`",
                        "the graph file \"%s\" has no declarations",
                        sketch->file);
}

static bool run_graph(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  kilni_cli_graph_job_t job;
  kilni_cli_sketch_t sketch;
  kilni_cli_buffer_t text = {0};
  wanted_t wanted;
  memset(&job, 0, sizeof(job));
  memset(&sketch, 0, sizeof(sketch));
  job.sketch = &sketch;
  results_t* results = calloc(1, sizeof(*results));
  if (results == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the results");
  }
  const char* file = call->operands[0];
  bool ok = read_request(&job.request, call, error) &&
            kilni_cli_buffer_read_some(&text, file, KILNI_CLI_GRAPH_MAX_BYTES,
                                       error) &&
            kilni_cli_sketch_init(&sketch, file, (const char*)text.data,
                                  text.size, error) &&
            check_statements(&sketch, error) &&
            read_wanted(&wanted, call, error) &&
            cmd_graph_note_files(&job.files, file, &wanted, error) &&
            run_job(call, &job, &wanted, results, error);
  kilni_cli_outputs_deinit(results->outputs, results->count);
  free(results);
  kilni_cli_graph_close(&job);
  kilni_cli_files_deinit(&job.files);
  kilni_cli_sketch_deinit(&sketch);
  kilni_cli_buffer_deinit(&text);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"device", "auto|cuda:N|soft",
     "Where to run. auto, the default, uses cuda:0 if it works, else the "
     "software device, and reports the fallback. cuda:N is entry N of your "
     "CUDA_VISIBLE_DEVICES.",
     false, "auto cuda:0 soft"},
    {"svg", "OUT",
     "Draw the graph as SVG. Needs Graphviz's program dot on the PATH.", false,
     "file"},
    {"dot", "OUT", "Draw the graph in DOT, the language of Graphviz.", false,
     "file"},
    {"driver-dot", "OUT",
     "Write the driver's own dump of the graph, in DOT, with addresses.", false,
     "file"},
    {"driver-flags", "NAME,...",
     "What the driver's dump contains. Default: verbose, which is everything.",
     false,
     "verbose runtime-types kernels copies fills hosts events "
     "signal-semaphores wait-semaphores kernel-attributes handles allocations "
     "frees memory-ops topology conditionals"},
    {"trace", "OUT.json",
     "Write the last timed run as trace events, for ui.perfetto.dev and "
     "chrome://tracing.",
     false, "file"},
    {"runs", "N",
     "Timed runs after a first, untimed one; the median is reported. Each "
     "starts with the same buffer contents. Default: 5. 0 runs it once "
     "without timing.",
     false, NULL},
    {"no-run", NULL, "Draw the graph without running it.", false, NULL},
    {"in", "NAME=FILE",
     "Start the buffer NAME with the contents of FILE, "
     "overriding the declaration.",
     true, "file"},
    {"out", "NAME=FILE",
     "Write the buffer NAME to FILE after the first run, overriding the "
     "declaration.",
     true, "file"},
    {"define", "NAME[=VALUE]", "For CUDA C++ (.cu): a macro.", true, NULL},
    {"arch", "ARCH",
     "The architecture to compile CUDA C++ for. Default: that of the device.",
     false, NULL},
    KILNI_CLI_SOURCE_OPTIONS,
    {"time-limit", "S",
     "Give up with exit code 8 when a compilation, or then a run, takes "
     "longer than S seconds.",
     false, NULL},
    {"seed", "N",
     "Seed for every order that CUDA leaves undefined, on the software "
     "device.",
     false, NULL},
    KILNI_CLI_CACHE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};
const kilni_cli_command_t kilni_cli_command_graph = {
    "graph",
    "FILE",
    "Draw, run and time a graph of kernels, copies and fills.",
    "FILE declares code files, buffers, nodes and edges, one per line. Nodes "
    "that no edge orders run concurrently, as far as the device can. The "
    "graph is launched as one unit; the start and duration of every node are "
    "measured in separate runs, with event records around each node. A FILE "
    "that begins with `sequence` chains programs over named buffers instead: "
    "what each reads and writes orders them.\nOutput files are written "
    "completely or not at all. What a kernel prints goes to standard error.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    1,
    "file",
    "kiln graph pipeline.graph --device soft --svg pipeline.svg --trace "
    "pipeline.json",
    run_graph,
};
