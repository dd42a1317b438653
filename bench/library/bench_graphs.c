// SPDX-License-Identifier: Apache-2.0
//
// bench: the library's entries on graphs and sparse matrices.
//
//   bench_graphs [DEVICE] [LOG]      cuda:0, 26: about 2^26 edges
//
// A product is in GB/s of what it must read and write, beside a copy by the
// driver in the same run; searches and components in edges of the graph a
// nanosecond. On the
// software device both stand beside plain C on one core.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_graphs_plain.h"
#include "bench_report.h"
#include "kiln/kiln.h"

enum { ROUNDS = 5, ARGUMENTS = 6 };

static bench_report_t g_report;

typedef struct world_t {
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_stream_t* stream;
  kiln_event_t* start;
  kiln_event_t* end;
  uint32_t log;
  bool soft;
  double copy;  // GB/s
  csr_graph_t graph;
  plain_graph_t plain;
  kiln_buffer_t* starts;
  kiln_buffer_t* columns;
  kiln_buffer_t* values;
  kiln_buffer_t* x;
} world_t;

// What one run is.
typedef struct job_t {
  kiln_library_plan_t* plan;
  kiln_buffer_t* copies[2];  // of a copy, which has no plan: to and from
  uint64_t bytes;
  kiln_binding_t bindings[ARGUMENTS];
  uint32_t count;
} job_t;

static void start_one(const world_t* w, const job_t* job) {
  if (job->plan == NULL) {
    bench_expect(kiln_buffer_copy_async(job->copies[0], w->stream, 0,
                                        job->copies[1], 0, job->bytes));
    return;
  }
  bench_expect(
      kiln_library_plan_run(job->plan, w->stream, job->bindings, job->count));
}

// The best of several, in nanoseconds.
static double spent(const world_t* w, const job_t* job) {
  uint64_t least = UINT64_MAX;
  start_one(w, job);
  for (int round = 0; round < ROUNDS; round++) {
    bench_expect(kiln_event_record(w->start, w->stream));
    start_one(w, job);
    bench_expect(kiln_event_record(w->end, w->stream));
    bench_expect(kiln_stream_synchronize(w->stream));
    uint64_t ns = 0;
    bench_expect(kiln_event_elapsed(w->start, w->end, &ns));
    if (ns < least) least = ns;
  }
  return (double)least;
}

static double plain_time(const world_t* w, plain_graph_run_t run) {
  uint64_t least = UINT64_MAX;
  for (int round = 0; round <= ROUNDS; round++) {
    uint64_t start = bench_time_ns();
    run(&w->plain);
    uint64_t ns = bench_time_ns() - start;
    if (ns < least) least = ns;
  }
  return (double)(least > 0 ? least : 1);
}

static kiln_buffer_t* memory(const world_t* w, uint64_t bytes,
                             const void* data) {
  kiln_buffer_t* buffer = NULL;
  bench_expect(
      kiln_buffer_create(w->device, bytes + (bytes == 0), NULL, &buffer));
  if (data != NULL) {
    bench_expect(kiln_buffer_write(buffer, 0, (size_t)bytes, data));
  }
  return buffer;
}

static void bind(job_t* job, kiln_buffer_t* buffer) {
  job->bindings[job->count++] = kiln_bind_buffer(buffer);
}

static void bench_copy(world_t* w) {
  job_t job;
  memset(&job, 0, sizeof(job));
  job.bytes = (uint64_t)w->graph.edges * 4;
  job.copies[0] = w->values;
  job.copies[1] = w->columns;
  if (!w->soft) w->copy = 2 * (double)job.bytes / spent(w, &job);
  bench_expect(
      kiln_buffer_write(w->values, 0, (size_t)job.bytes, w->plain.values));
}

static void bench_spmv(world_t* w, const char* form) {
  uint64_t rows = w->graph.count;
  job_t job;
  memset(&job, 0, sizeof(job));
  kiln_library_options_t options = kiln_library_options_default();
  options.count = rows + w->graph.edges + 1;
  bench_expect(
      kiln_library_plan_create(w->dispatcher, "spmv", &options, &job.plan));
  kiln_buffer_t* y = memory(w, rows * 4, NULL);
  bind(&job, w->starts);
  bind(&job, w->columns);
  bind(&job, w->values);
  bind(&job, w->x);
  bind(&job, y);
  double bytes = (double)w->graph.edges * 8 + (double)rows * 12;
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "spmv f32, %s 2^%u", form, (unsigned)w->log);
  double rate = bytes / spent(w, &job);
  double than = w->soft ? bytes / plain_time(w, plain_spmv) : w->copy;
  bench_report_more(&g_report, name, "GB/s", rate, w->soft ? "plain C" : "copy",
                    than);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// A search from vertex 0, or components.
static void bench_rounds(world_t* w, const char* entry, const char* form,
                         uint32_t symmetric) {
  bool searches = strcmp(entry, "bfs") == 0;
  plain_graph_run_t plain = searches ? plain_bfs : plain_components;
  job_t job;
  memset(&job, 0, sizeof(job));
  kiln_library_options_t options = kiln_library_options_default();
  options.count = (uint64_t)w->graph.count + 1;
  options.symmetric = symmetric;
  bench_expect(
      kiln_library_plan_create(w->dispatcher, entry, &options, &job.plan));
  kiln_buffer_t* result = memory(w, (uint64_t)w->graph.count * 4, NULL);
  const uint32_t source = 0;
  kiln_buffer_t* one = memory(w, 4, &source);
  bind(&job, w->starts);
  bind(&job, w->columns);
  bind(&job, searches ? one : result);
  bind(&job, searches ? result : one);
  double ns = spent(w, &job);
  uint32_t rounds = 0;
  bench_expect(kiln_library_plan_rounds(job.plan, &rounds));
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "%s%s, %s 2^%u, %u rounds", entry,
           symmetric == KILN_SWITCH_ON ? " both ways" : "", form,
           (unsigned)w->log, (unsigned)rounds);
  double edges = (double)w->graph.edges;
  bench_report_more(&g_report, name, "G edges/s", edges / ns,
                    w->soft ? "plain C" : NULL,
                    w->soft ? edges / plain_time(w, plain) : 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(result);
  kiln_buffer_release(one);
}

static void open_graph(world_t* w, uint32_t form) {
  static const uint32_t kLess[] = {9, 2, 4};
  csr_make(&w->graph, form, 1u << (w->log - kLess[form]), true);
  uint64_t rows = w->graph.count, edges = w->graph.edges;
  float* values = csr_room(edges, 4);
  float* x = csr_room(rows, 4);
  for (uint64_t e = 0; e < edges; e++) values[e] = (float)(e % 5);
  for (uint64_t i = 0; i < rows; i++) x[i] = (float)(i % 7);
  w->plain.graph = &w->graph;
  w->plain.values = values;
  w->plain.x = x;
  w->plain.y = csr_room(rows, 4);
  w->plain.levels = csr_room(rows, 4);
  w->plain.queue = csr_room(rows, 4);
  w->starts = memory(w, (rows + 1) * 4, w->graph.starts);
  w->columns = memory(w, edges * 4, w->graph.columns);
  w->values = memory(w, edges * 4, values);
  w->x = memory(w, rows * 4, x);
}

static void close_graph(world_t* w) {
  free((void*)(uintptr_t)w->plain.values);
  free((void*)(uintptr_t)w->plain.x);
  free(w->plain.y);
  free(w->plain.levels);
  free(w->plain.queue);
  csr_free(&w->graph);
  kiln_buffer_release(w->starts);
  kiln_buffer_release(w->columns);
  kiln_buffer_release(w->values);
  kiln_buffer_release(w->x);
}

static void open_world(world_t* w) {
  bench_expect(kiln_dispatcher_create(w->device, NULL, &w->dispatcher));
  bench_expect(kiln_dispatcher_stream(w->dispatcher, 0, &w->stream));
  kiln_event_options_t timed = kiln_event_options_default();
  timed.timing = KILN_SWITCH_ON;
  bench_expect(kiln_event_create(w->device, &timed, &w->start));
  bench_expect(kiln_event_create(w->device, &timed, &w->end));
  w->soft = kiln_device_info(w->device)->kind == KILN_DEVICE_KIND_SOFT;
}

static void close_world(world_t* w) {
  kiln_event_release(w->start);
  kiln_event_release(w->end);
  kiln_dispatcher_release(w->dispatcher);
  kiln_device_release(w->device);
}

int main(int argc, char** argv) {
  world_t w;
  memset(&w, 0, sizeof(w));
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  w.log = argc > 2 ? (uint32_t)atoi(argv[2]) % 30 : 26;
  if (w.log < 12) w.log = 12;
  kiln_runtime_t* runtime = NULL;
  bench_expect(kiln_runtime_create(NULL, &runtime));
  kiln_status_t status = kiln_runtime_open_device(runtime, device, &w.device);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return 77;
  }
  g_report.device = device;
  open_world(&w);
  for (uint32_t form = 0; form < CSR_FORMS; form++) {
    open_graph(&w, form);
    bench_copy(&w);
    if (form != CSR_CHAIN) bench_spmv(&w, kCsrForms[form]);
    for (uint32_t way = KILN_SWITCH_OFF; way <= KILN_SWITCH_ON; way++) {
      bench_rounds(&w, "bfs", kCsrForms[form], way);
      bench_rounds(&w, "components", kCsrForms[form], way);
    }
    close_graph(&w);
  }
  close_world(&w);
  kiln_runtime_release(runtime);
  bench_report_print(&g_report);
  return 0;
}
