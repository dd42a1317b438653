// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what the files about pipelines share.
#ifndef KILN_SRC_DISPATCH_PIPELINE_INSIDE_H_
#define KILN_SRC_DISPATCH_PIPELINE_INSIDE_H_

#include "device/launch_check.h"
#include "dispatch/dispatch_inside.h"

enum {
  KILNI_PIPELINE_PARAMETERS = 256,  // that are bound
  KILNI_PIPELINE_ARGUMENTS = 520,   // of the kernel
  KILNI_GRID_BYTES = 24,            // that a grid barrier counts in
  KILNI_NO_SHIFT = 64,
};

// Where an argument of the kernel comes from. thread-compatible
typedef struct kilni_dispatch_argument_source_t {
  uint32_t kind;         // KILN_INTERFACE_*
  uint32_t of;           // a parameter that is bound; of WORK: an axis
  uint32_t bytes;        // of the argument
  uint32_t offset;       // of its value in a plan, unless it is BYTES
  const uint8_t* value;  // of BYTES; in the pipeline's `constants`
} kilni_dispatch_argument_source_t;

// A parameter that is bound. thread-compatible
typedef struct kilni_dispatch_place_t {
  kiln_pipeline_parameter_t info;
  bool is_buffer;
  bool has_own_name;  // to be freed
  bool sizes_use;     // of a scalar: counts or the work may depend on it
  uint32_t argument;  // of a scalar: which one of the kernel it is
  uint32_t
      shift;  // an element is so many bytes, if a power of two; or NO_SHIFT
  uint32_t align;  // that an address must be a multiple of
  bool written;    // of a buffer
  bool relied_on;  // the launch must not write its memory, `overlapping` or not
  uint64_t mask;   // of a scalar: the bits that it has
  // Of a buffer; `of` is a parameter that is bound.
  kiln_interface_number_t count;
} kilni_dispatch_place_t;

// What makes plans quick (pipeline_quick.c). thread-compatible
typedef struct kilni_dispatch_quick_t {
  bool possible;
  uint32_t axes;  // after which the work size is 1
  uint32_t per_block[3];
} kilni_dispatch_quick_t;

struct kiln_pipeline_t {
  kiln_dispatcher_t* dispatcher;
  atomic_uint references;
  uint32_t argument_count;
  kiln_pipeline_info_t info;
  kiln_program_t* program;    // NULL: of a kernel
  kiln_program_code_t* code;  // NULL: of a kernel
  kiln_kernel_t* kernel;
  char* label;
  kilni_dispatch_place_t* places;  // info.parameter_count
  kilni_dispatch_argument_source_t* arguments;
  kilni_dispatch_quick_t quick;
  uint8_t* constants;
  size_t constant_bytes;
  bool overlaps;  // launches may start before what is in front has ended
  bool simple;    // of a program: counts and work follow from `work` and places
  bool keeps_options;  // the code that binds memory to it cannot change its
                       // options
  uint32_t without;    // of a program: KILN_PROGRAM_WITHOUT_*
  kiln_interface_number_t work[3];
  kilni_device_launch_how_t how;  // of a cooperative one
  kiln_pipeline_trace_t trace;    // where telemetry is on
};

// What is bound to one parameter. one-thread
typedef struct kilni_dispatch_bound_t {
  uint64_t address;  // 0 of host memory that is not there yet
  uint64_t bytes;
  uint64_t value;  // elements of a buffer, bits of a scalar
  bool open;       // bytes are what there is: the pipeline may take less
  bool clears;     // it is filled with zero first
  bool uploads;
  bool downloads;
} kilni_dispatch_bound_t;

// What is not a parameter and the kernel is given all the same. one-thread
typedef struct kilni_dispatch_extras_t {
  uint64_t trap;  // addresses
  uint64_t grid;
} kilni_dispatch_extras_t;

// A dispatch that was checked. one-thread
typedef struct kilni_dispatch_plan_t {
  kiln_dispatch_options_t options;
  kiln_dispatch_plan_t shown;
  const char* label;
  bool idle;      // there is no work
  bool has_how;   // `how` is what it is launched with
  bool early;     // it may start before what is in front has ended
  bool has_host;  // host memory is bound
  kilni_dispatch_extras_t extras;
  kilni_device_launch_how_t how;
  kilni_dispatch_bound_t bound[KILNI_PIPELINE_PARAMETERS];
} kilni_dispatch_plan_t;

// An object with a label, a place for each of `parameters` and each of
// `arguments`; the caller fills them in and then calls finish.
kiln_status_t kilni_dispatch_pipeline_make(kiln_dispatcher_t* dispatcher,
                                           const char* label,
                                           uint32_t parameters,
                                           uint32_t arguments,
                                           kiln_pipeline_t** out_pipeline);
// Compares the shape with kernel and device, asks for shared memory; and sees
// where scalars go.
kiln_status_t kilni_dispatch_pipeline_finish(kiln_pipeline_t* pipeline);

// dispatch_telemetry.c: the time since `began`, counted and put into the trace;
// and the sizes of what was made. Nothing where telemetry is off.
void kilni_dispatch_trace_phase(kiln_pipeline_t* pipeline, uint32_t counter,
                                uint64_t* out_ns, uint64_t began);
void kilni_dispatch_trace_code(kiln_pipeline_t* pipeline, uint64_t ptx_bytes,
                               uint64_t code_bytes);

// Code of a pipeline's program that repeats it until a round leaves the
// parameter `flag` at zero, loaded. Of a failure the code may be there.
kiln_status_t kilni_dispatch_pipeline_repeat(kiln_pipeline_t* pipeline,
                                             uint32_t flag,
                                             kiln_program_code_t** out_code,
                                             kiln_kernel_t** out_kernel);

// Checks everything that can be checked before anything is put on a device.
// `prepares`: STATIC is allowed, and host memory is not.
kiln_status_t kilni_dispatch_plan_make(kiln_pipeline_t* pipeline,
                                       const kiln_binding_t* bindings,
                                       uint32_t count,
                                       const kiln_dispatch_options_t* options,
                                       bool prepares,
                                       kilni_dispatch_plan_t* plan);

// Sees, once for a pipeline, whether plans can be quick.
void kilni_dispatch_quick_see(kiln_pipeline_t* pipeline);
// Makes the plan of a dispatch without options, where that is ordinary; false:
// use the general path. `plan` is zero up to `how`.
bool kilni_dispatch_quick_plan(kiln_pipeline_t* pipeline,
                               const kiln_binding_t* bindings, uint32_t count,
                               kilni_dispatch_plan_t* plan);

// The launch that a plan comes to. `out_config` may refer to `out_attributes`.
void kilni_dispatch_plan_launch(const kiln_pipeline_t* pipeline,
                                const kilni_dispatch_plan_t* plan,
                                kiln_launch_config_t* out_config,
                                kiln_launch_attributes_t* out_attributes);
// The address of each argument's value in the plan, for the driver.
void kilni_dispatch_plan_arguments(const kiln_pipeline_t* pipeline,
                                   const kilni_dispatch_plan_t* plan,
                                   const void** list);
// Fills `bytes` at `address` with zero, in the order of `stream`.
kiln_status_t kilni_dispatch_clear(kiln_stream_t* stream, uint64_t address,
                                   uint64_t bytes);
// Device memory that may be used everywhere at once, with a reference; and its
// end after all work that was put on streams.
kiln_status_t kilni_dispatch_memory_allocate(kiln_dispatcher_t* dispatcher,
                                             uint64_t bytes,
                                             kiln_buffer_t** out_buffer);
kiln_status_t kilni_dispatch_memory_let_go(kiln_dispatcher_t* dispatcher,
                                           kiln_buffer_t* buffer);

#endif  // KILN_SRC_DISPATCH_PIPELINE_INSIDE_H_
