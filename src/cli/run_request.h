// SPDX-License-Identifier: Apache-2.0
//
// cli: the request of `kiln run`.
#ifndef KILN_SRC_CLI_RUN_REQUEST_H_
#define KILN_SRC_CLI_RUN_REQUEST_H_

#include "cli/cli_array.h"
#include "cli/cli_cache.h"
#include "cli/cli_command.h"
#include "cli/cli_files.h"
#include "cli/cli_literal.h"
#include "cli/source_options.h"
#include "kiln/library.h"
#include "kiln/program.h"

// One of --in, --out, --inout, --arg, --expect and --buffer. one-thread
typedef struct kilni_cli_binding_t {
  bool is_in;       // its file is read
  bool is_out;      // its file is written
  bool is_arg;      // a scalar
  bool is_expect;   // --expect: its file has the expected contents
  bool is_unnamed;  // an output that goes nowhere
  bool is_made;     // --buffer: its content is generated, and it is read and
                    // written
  const char* option;
  const char* parameter;  // P, parameter_size characters
  size_t parameter_size;
  kilni_cli_spec_t spec;
  kilni_cli_value_t value;
  bool is_bytes;            // --arg of bytes, which are those of `array`
  const char* members;      // the same, as they were written; NULL: of a file
  const char* untyped;      // a number whose type the program declares, or NULL
  bool is_default;          // a default number
  bool is_open;             // the same, and its source is missing
  const char* content;      // of a sample, from kiln_library_default
  const char* extents;      // its shape; of a number the extent that it is
  kilni_cli_buffer_t path;  // NUL-terminated
  kilni_cli_array_t array;  // of --in, --inout and --expect, once read
} kilni_cli_binding_t;

typedef enum kilni_cli_device_kind_t {
  KILNI_CLI_DEVICE_AUTO = 0,
  KILNI_CLI_DEVICE_CUDA,
  KILNI_CLI_DEVICE_SOFT,
  KILNI_CLI_DEVICE_NAMED  // by UUID or address of the PCI bus
} kilni_cli_device_kind_t;

typedef enum kilni_cli_code_kind_t {
  KILNI_CLI_CODE_PTX = 0,
  KILNI_CLI_CODE_CUBIN,
  KILNI_CLI_CODE_SOURCE,
  KILNI_CLI_CODE_LTOIR,
  KILNI_CLI_CODE_PROGRAM
} kilni_cli_code_kind_t;

// NAME of lib:NAME, a program of the library; NULL for a file.
const char* kilni_cli_library_name(const char* file);

// The format of --telemetry.
typedef enum kilni_cli_telemetry_t {
  KILNI_CLI_TELEMETRY_NONE = 0,
  KILNI_CLI_TELEMETRY_JSON,
  KILNI_CLI_TELEMETRY_PROMETHEUS
} kilni_cli_telemetry_t;

// The kind of a file to run, by its name. UNSUPPORTED includes an alternative.
bool kilni_cli_code_kind_of(const char* file, kilni_cli_code_kind_t* out_kind,
                            kilni_cli_error_t* error);

// All options of one call, checked for themselves. one-thread
typedef struct kilni_cli_request_t {
  const char* file;
  const kilni_cli_given_t* given;  // all options of the call
  size_t given_count;
  kilni_cli_code_kind_t code_kind;
  const char* entry;          // NULL: the only one
  kilni_cli_source_t source;  // how a .cu is compiled
  kilni_cli_device_kind_t device_kind;
  uint32_t ordinal;    // of KILNI_CLI_DEVICE_CUDA
  const char* label;   // of KILNI_CLI_DEVICE_NAMED
  const char* report;  // NULL: the variable's
  const char* order;   // NULL: the variable's
  bool cooperative;    // the blocks may wait for each other
  bool has_grid;
  bool has_block;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint64_t time_limit_ns;  // 0: none
  double tolerance;        // of --expect
  uint64_t seed;
  bool has_seed;
  bool stats;
  kilni_cli_telemetry_t telemetry;
  uint32_t max_ulp;  // of a program; 0: strict
  kilni_cli_cache_t cache;
  kilni_cli_buffer_t storage;
  kilni_cli_binding_t* bindings;  // in storage
  size_t binding_count;
  kilni_cli_files_t files;  // what is read and written
  kiln_program_t* program;  // of a .kiln file, else NULL
  bool whole;               // lib:NAME with all its launches, as `options` say
  bool maybe_whole;         // or may be; its inputs are read as the program's
  bool defines_option;      // --define has the name of an option of plans
  bool takes_defaults;      // of lib:NAME, for what is not given
  bool takes_samples;       // and its inputs
  bool makes_outputs;       // unnamed ones are made, with the defined length
  kiln_library_options_t options;
  uint64_t work[3];  // what it has to do
} kilni_cli_request_t;

// Reads the options; opens no file. Ended by deinit, also after a failure.
bool kilni_cli_request_init(kilni_cli_request_t* out,
                            const kilni_cli_call_t* call,
                            kilni_cli_error_t* error);
void kilni_cli_request_deinit(kilni_cli_request_t* request);

// `entry` if it is an instance of a template, "add<float>", for which the
// compiler makes code only on request; else NULL.
const char* kilni_cli_instance_of(const char* entry);

// Reads the value of --device; NULL is "auto".
bool kilni_cli_device_read(kilni_cli_request_t* out, const char* text,
                           kilni_cli_error_t* error);

// Reads the value of --time-limit in seconds; NULL is 0, no limit.
bool kilni_cli_seconds_read(const char* text, uint64_t* out_ns,
                            kilni_cli_error_t* error);

// Reads --max-ulp; 0 where it is not given.
bool kilni_cli_ulp_read(const kilni_cli_call_t* call, uint32_t* out,
                        kilni_cli_error_t* error);

// False, with the error, if an option is given that only programs have.
bool kilni_cli_program_only(const kilni_cli_call_t* call, const char* option,
                            kilni_cli_error_t* error);

// Adds an empty binding; `name` is borrowed. NULL with the error.
kilni_cli_binding_t* kilni_cli_request_add(kilni_cli_request_t* request,
                                           const char* name,
                                           kilni_cli_error_t* error);

// Adds an unnamed output, without a shape; `name` is borrowed.
bool kilni_cli_request_add_output(kilni_cli_request_t* request,
                                  const char* name, kilni_cli_error_t* error);

// Whether a parameter is bound, by its name or by its position.
bool kilni_cli_request_has(const kilni_cli_request_t* request, uint32_t index,
                           const char* name);

// Reads the files of --in and --inout and checks that those of --out and
// --inout can be written.
bool kilni_cli_request_read(kilni_cli_request_t* request,
                            kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_REQUEST_H_
