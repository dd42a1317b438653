// SPDX-License-Identifier: Apache-2.0
//
// cli: files made ready on one device and run in turns, each timed.
//
// What `kiln bench` measures: a *sample* is a number of runs in a row, with an
// event of the device before and after them; a *round* is a sample of each
// file. Nothing else happens between the samples of a round, so a pair of them
// saw the machine in the same state.
#ifndef KILN_SRC_CLI_BENCH_JOB_H_
#define KILN_SRC_CLI_BENCH_JOB_H_

#include "cli/bench_samples.h"
#include "cli/cli_error.h"
#include "cli/run_plan.h"
#include "cli/run_request.h"
#include "cli/run_session.h"
#include "kiln/library.h"
#include "kiln/pipeline.h"
#include "kiln/stream.h"

enum { KILNI_CLI_BENCH_MAX_FILES = 16 };

// How long to measure. thread-compatible
typedef struct kilni_cli_bench_limits_t {
  uint64_t budget_ns;  // of all rounds together
  double steady;       // a share of the median
  uint32_t runs;       // of a sample; 0: as many as take a while
  uint32_t warmup;     // runs before the first sample
} kilni_cli_bench_limits_t;

// One file. one-thread
typedef struct kilni_cli_bench_file_t {
  kilni_cli_request_t request;
  kilni_cli_session_t session;
  kilni_cli_plan_t plan;
  kiln_prepared_t* prepared;
  kiln_library_plan_t* entry;  // lib:NAME run whole; else `prepared` is
  kiln_binding_t bindings[KILNI_CLI_MAX_PARAMS];  // of it
  uint32_t launches;                              // of a run, of one round
  uint32_t runs;                                  // of a sample
  uint64_t bytes;               // that a run has to read and write
  uint64_t elements;            // that it works on
  uint64_t first_ns;            // of the first run, by the host's clock
  bool steady;                  // the median was, when it ended
  kilni_cli_samples_t device;   // ns of one run, by events
  kilni_cli_samples_t wall;     // from the first call to the end of the wait
  kilni_cli_samples_t enqueue;  // of the call
} kilni_cli_bench_file_t;

// All of them. one-thread
typedef struct kilni_cli_bench_t {
  kilni_cli_bench_limits_t limits;
  kilni_cli_bench_file_t* files;
  size_t count;
  bool is_any_compiled;       // CUDA C++ is among the files
  kilni_cli_buffer_t others;  // what is given, for files that are not compiled
  size_t other_count;
  kiln_event_t* start;
  kiln_event_t* end;
  bool simulated;             // the software device
  kilni_cli_samples_t floor;  // device time of a run that does nothing
  kiln_pipeline_t* nothing;
  kiln_prepared_t* nothing_prepared;
  uint32_t rounds;
  bool leave_at_once;  // a step still runs: nothing can be closed
} kilni_cli_bench_t;

// Makes a file ready; the first opens the device. Its `request` has been read.
bool kilni_cli_bench_prepare(kilni_cli_bench_t* bench, size_t index,
                             kilni_cli_error_t* error);

// Warms up, then rounds until every median is steady or the budget is out.
bool kilni_cli_bench_measure(kilni_cli_bench_t* bench,
                             kilni_cli_error_t* error);

void kilni_cli_bench_close(kilni_cli_bench_t* bench);

#endif  // KILN_SRC_CLI_BENCH_JOB_H_
