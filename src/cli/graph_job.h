// SPDX-License-Identifier: Apache-2.0
//
// cli: a graph file made into a graph on a device, run and timed.
//
// The steps of `kiln graph` in order: prepare (files), open, build, run, time.
// Each may fail; close is called once, whatever happened.
#ifndef KILN_SRC_CLI_GRAPH_JOB_H_
#define KILN_SRC_CLI_GRAPH_JOB_H_

#include "cli/cli_files.h"
#include "cli/graph_sketch.h"
#include "cli/run_session.h"
#include "kiln/graph.h"
#include "kiln/picture.h"
#include "kiln/sequence.h"

// A buffer of the file. one-thread
typedef struct kilni_cli_graph_data_t {
  kilni_cli_buffer_t in;    // its file's path; empty: none
  kilni_cli_buffer_t out;   //
  kilni_cli_array_t array;  // the contents of `in`
  kilni_cli_shape_t shape;
  kiln_buffer_t* buffer;
} kilni_cli_graph_data_t;

// A code file of it. one-thread
typedef struct kilni_cli_graph_module_t {
  kilni_cli_buffer_t path;
  kilni_cli_code_t code;
  kiln_compile_options_t options;  // of CUDA C++
  kilni_cli_buffer_t instances;    // of templates, for the compiler
  kiln_program_t* program;         // of a .kiln file; NULL: other code
  kiln_module_t* module;
  kiln_pipeline_t* pipeline;  // of a program in a sequence
} kilni_cli_graph_module_t;

// A kernel node's launch. one-thread
typedef struct kilni_cli_graph_launch_t {
  kiln_kernel_t* kernel;
  kiln_launch_t* launch;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t work[3];      // of a program
  kiln_buffer_t* trap;   // what its first trap wrote
  kiln_buffer_t* meet;   // what its grid barriers count in
  const char* text;      // of a host function
  const bool* is_quiet;  // it prints nothing any more
} kilni_cli_graph_launch_t;

// An argument of a program's node as it was given. thread-compatible
typedef struct kilni_cli_graph_given_t {
  kiln_argument_t argument;
  kilni_cli_type_t type;
  bool is_memory;
  uint64_t count;  // of memory: elements
  uint64_t bits;   // of a number
} kilni_cli_graph_given_t;

// What one run took. thread-compatible
typedef struct kilni_cli_graph_times_t {
  uint32_t runs;         // 0: nothing is timed
  uint64_t elapsed_ns;   // from launch to end, median
  uint64_t launch_ns;    // of the call that launches, median
  uint64_t traced_ns;    // from launch to end with the records, median
  uint32_t slice_count;  //
  uint64_t* start_ns;    // of each slice, median
  uint64_t* slice_ns;    //
} kilni_cli_graph_times_t;

// What is open. one-thread
typedef struct kilni_cli_graph_job_t {
  const kilni_cli_sketch_t* sketch;
  kilni_cli_files_t files;             // what is read and written
  kilni_cli_request_t request;         // device, cache, seed, time limit
  kilni_cli_session_t session;         // its device alone
  kilni_cli_graph_data_t* data;        // as the sketch's buffers
  kilni_cli_graph_module_t* modules;   // as its code files
  kilni_cli_graph_launch_t* launches;  // as its nodes
  kiln_event_t** events;               // as its events
  bool is_quiet;                       // host functions print nothing any more
  kiln_stream_t* stream;
  kiln_event_t* start;
  kiln_event_t* end;
  kiln_graph_t* graph;
  kiln_graph_exec_t* exec;
  // Of a sequence.
  kiln_dispatcher_t* dispatcher;
  kiln_replay_t* replay;
  kiln_replay_t* traced;    // whose graph has the records
  kiln_pending_t* pending;  // of the current run
  kiln_graph_trace_t* trace;
  kilni_cli_graph_times_t times;
} kilni_cli_graph_job_t;

// Resolves each --in and --out, reads the initial contents of buffers, and
// checks what can be checked without a device. `job->files` has the files that
// only the call names.
bool kilni_cli_graph_prepare(kilni_cli_graph_job_t* job,
                             const kilni_cli_call_t* call,
                             kilni_cli_error_t* error);

// Whether the u8 of a buffer are raw bytes of any type: no file of it declares
// them numbers, as a picture and a .npy array do.
bool kilni_cli_graph_is_of_bytes(const kilni_cli_graph_data_t* data);

// Opens the device, loads the code, makes the buffers and the graph.
bool kilni_cli_graph_open(kilni_cli_graph_job_t* job, kilni_cli_error_t* error);

// Builds the graph of the sketch anew. The caller owns `*out_graph`.
bool kilni_cli_graph_build(kilni_cli_graph_job_t* job, kiln_graph_t** out_graph,
                           kilni_cli_error_t* error);

// The launch of a node that runs a program, by its arguments: its shape, and
// all arguments of the kernel.
bool kilni_cli_graph_program(kilni_cli_graph_job_t* job, uint32_t index,
                             const kilni_cli_graph_given_t* given,
                             uint32_t count, kilni_cli_error_t* error);

// Launches it once and waits.
bool kilni_cli_graph_run(kilni_cli_graph_job_t* job, kilni_cli_error_t* error);

// Launches it `runs` times as it is and `runs` times with records around its
// nodes, each from the same contents of the buffers.
bool kilni_cli_graph_time(kilni_cli_graph_job_t* job, uint32_t runs,
                          kilni_cli_error_t* error);

// Reads a buffer that has a file into `out`.
bool kilni_cli_graph_read(kilni_cli_graph_job_t* job, uint32_t index,
                          kilni_cli_array_t* out, kilni_cli_error_t* error);

void kilni_cli_graph_close(kilni_cli_graph_job_t* job);

#endif  // KILN_SRC_CLI_GRAPH_JOB_H_
