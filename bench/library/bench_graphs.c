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
#include "bench_world.h"
#include "kiln/kiln.h"

typedef struct world_t {
  bench_world_t base;
  double copy;  // GB/s
  csr_graph_t graph;
  plain_graph_t plain;
  kiln_buffer_t* starts;
  kiln_buffer_t* columns;
  kiln_buffer_t* values;
  kiln_buffer_t* x;
} world_t;

// A run in plain C, of what. one-thread
typedef struct plain_job_t {
  plain_graph_run_t run;
  const plain_graph_t* given;
} plain_job_t;

static void run_plain(void* context) {
  const plain_job_t* job = context;
  job->run(job->given);
}

static double plain_time(const world_t* w, plain_graph_run_t run) {
  plain_job_t job = {run, &w->plain};
  return bench_plain_spent(run_plain, &job);
}

static kiln_buffer_t* memory(const world_t* w, uint64_t bytes,
                             const void* data) {
  return bench_world_memory(&w->base, bytes, data);
}

static void bench_copy(world_t* w) {
  bench_job_t job;
  memset(&job, 0, sizeof(job));
  job.bytes = (uint64_t)w->graph.edges * 4;
  job.copies_to = w->values;
  job.copies_from = w->columns;
  if (!w->base.soft) {
    double ns = bench_world_spent(&w->base, &job, w->base.runs);
    w->copy = 2 * (double)job.bytes / ns;
  }
  bench_expect(
      kiln_buffer_write(w->values, 0, (size_t)job.bytes, w->plain.values));
}

static void bench_spmv(world_t* w, const char* form) {
  uint64_t rows = w->graph.count;
  kiln_library_options_t options = kiln_library_options_default();
  options.count = rows + w->graph.edges + 1;
  bench_job_t job = bench_world_job(&w->base, "spmv", &options);
  kiln_buffer_t* y = memory(w, rows * 4, NULL);
  bench_job_bind(&job, w->starts);
  bench_job_bind(&job, w->columns);
  bench_job_bind(&job, w->values);
  bench_job_bind(&job, w->x);
  bench_job_bind(&job, y);
  double bytes = (double)w->graph.edges * 8 + (double)rows * 12;
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "spmv f32, %s 2^%u", form,
           (unsigned)w->base.log);
  double rate = bytes / bench_world_spent(&w->base, &job, w->base.runs);
  double than = w->base.soft ? bytes / plain_time(w, plain_spmv) : w->copy;
  bench_report_more(w->base.report, name, "GB/s", rate,
                    w->base.soft ? "plain C" : "copy", than);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// A search from vertex 0, or components.
static void bench_rounds(world_t* w, const char* entry, const char* form,
                         uint32_t symmetric) {
  bool searches = strcmp(entry, "bfs") == 0;
  plain_graph_run_t plain = searches ? plain_bfs : plain_components;
  kiln_library_options_t options = kiln_library_options_default();
  options.count = (uint64_t)w->graph.count + 1;
  options.symmetric = symmetric;
  bench_job_t job = bench_world_job(&w->base, entry, &options);
  kiln_buffer_t* result = memory(w, (uint64_t)w->graph.count * 4, NULL);
  const uint32_t source = 0;
  kiln_buffer_t* one = memory(w, 4, &source);
  bench_job_bind(&job, w->starts);
  bench_job_bind(&job, w->columns);
  bench_job_bind(&job, searches ? one : result);
  bench_job_bind(&job, searches ? result : one);
  double ns = bench_world_spent(&w->base, &job, 1);
  uint32_t rounds = 0;
  bench_expect(kiln_library_plan_rounds(job.plan, &rounds));
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "%s%s, %s 2^%u, %u rounds", entry,
           symmetric == KILN_SWITCH_ON ? " both ways" : "", form,
           (unsigned)w->base.log, (unsigned)rounds);
  double edges = (double)w->graph.edges;
  bench_report_more(w->base.report, name, "G edges/s", edges / ns,
                    w->base.soft ? "plain C" : NULL,
                    w->base.soft ? edges / plain_time(w, plain) : 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(result);
  kiln_buffer_release(one);
}

static void open_graph(world_t* w, uint32_t form) {
  static const uint32_t kLess[] = {9, 2, 4};
  csr_make(&w->graph, form, 1u << (w->base.log - kLess[form]), true);
  uint64_t rows = w->graph.count, edges = w->graph.edges;
  float* values = csr_space(edges, 4);
  float* x = csr_space(rows, 4);
  for (uint64_t e = 0; e < edges; e++) values[e] = (float)(e % 5);
  for (uint64_t i = 0; i < rows; i++) x[i] = (float)(i % 7);
  w->plain.graph = &w->graph;
  w->plain.values = values;
  w->plain.x = x;
  w->plain.y = csr_space(rows, 4);
  w->plain.levels = csr_space(rows, 4);
  w->plain.queue = csr_space(rows, 4);
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

static void run_all(bench_world_t* base) {
  world_t w;
  memset(&w, 0, sizeof(w));
  w.base = *base;
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
}

int main(int argc, char** argv) {
  return bench_world_main(argc, argv, 12, 28, run_all);
}
