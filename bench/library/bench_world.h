// SPDX-License-Identifier: Apache-2.0
//
// bench: what the benches of the library share: a device from the command line,
// jobs on it, how long they take, and how long plain C takes.
#ifndef KILN_BENCH_LIBRARY_BENCH_WORLD_H_
#define KILN_BENCH_LIBRARY_BENCH_WORLD_H_

#include <stdbool.h>
#include <stdint.h>

#include "bench_report.h"
#include "kiln/kiln.h"

enum {
  BENCH_ROUNDS = 5,      // of which the best one counts
  BENCH_RUNS = 10,       // of a round, one behind the other
  BENCH_ARGUMENTS = 12,  // of a job, at most
  BENCH_WORLD_LOG = 26,  // of the size, where the command line says nothing
  BENCH_SMALL_LOG = 20,  // below which a round is one run
  BENCH_SKIPPED = 77,    // exit code where there is no device
};

// A device, and what times runs on it. one-thread
typedef struct bench_world_t {
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_stream_t* stream;
  kiln_event_t* start;
  kiln_event_t* end;
  uint32_t log;   // of the size
  uint32_t runs;  // of a round
  bool soft;
  bench_report_t* report;
} bench_world_t;

// What one run is: a plan's, a pipeline's, or a copy's. one-thread
typedef struct bench_job_t {
  kiln_library_plan_t* plan;
  kiln_pipeline_t* pipeline;
  kiln_buffer_t* copies_to;
  kiln_buffer_t* copies_from;
  uint64_t bytes;  // of a copy
  kiln_binding_t bindings[BENCH_ARGUMENTS];
  uint32_t count;
} bench_job_t;

// All of a bench on a world that is open.
typedef void (*bench_world_run_t)(bench_world_t* world);
// A run in plain C.
typedef void (*bench_plain_run_t)(void* context);

// What main() of such a bench is: `PROGRAM [DEVICE [LOG]]`, with a LOG from
// `least` to `most`. The exit code.
int bench_world_main(int argc, char** argv, uint32_t least, uint32_t most,
                     bench_world_run_t run);

// Memory of the device, of zero bytes as well; `data`: what it starts with, or
// NULL.
kiln_buffer_t* bench_world_memory(const bench_world_t* world, uint64_t bytes,
                                  const void* data);
// Of an entry's plan, without bindings.
bench_job_t bench_world_job(const bench_world_t* world, const char* entry,
                            const kiln_library_options_t* options);
void bench_job_bind(bench_job_t* job, kiln_buffer_t* buffer);

// Nanoseconds of one of `runs` runs one behind the other, of the best round.
double bench_world_spent(const bench_world_t* world, const bench_job_t* job,
                         uint32_t runs);
// Nanoseconds of the best of as many rounds, at least 1.
double bench_plain_spent(bench_plain_run_t run, void* context);

#endif  // KILN_BENCH_LIBRARY_BENCH_WORLD_H_
