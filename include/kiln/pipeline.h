// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pipelines: code that is ready to run, with its parameters.
//
// A pipeline is made once, from a program or from any kernel with a
// description of its parameters, and dispatched any number of times: nothing is
// hashed, compiled or looked up then.
//
//   kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y),
//                                kiln_bind_f32(2.0f)};
//   kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL);
//
// Repeated dispatches with the same bindings can be prepared: a prepared
// dispatch is checked once, and a run of it costs little more than the driver's
// call.
#ifndef KILN_PIPELINE_H_
#define KILN_PIPELINE_H_

#include <string.h>

#include "kiln/api.h"
#include "kiln/dispatch.h"
#include "kiln/launch.h"
#include "kiln/memory.h"
#include "kiln/module.h"
#include "kiln/program.h"
#include "kiln/program_code.h"
#include "kiln/resident.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// Loaded code, with its parameters. thread-safe
//
// Reference-counted and never changed. Retains its dispatcher, its program and
// its kernel.
typedef struct kiln_pipeline_t kiln_pipeline_t;

// ---- From a program ----

// How a pipeline is made from a program. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_pipeline_options_t {
  uint32_t struct_size;  // sizeof(kiln_pipeline_options_t)

  // The maximum error of f32 functions, in ULP: a property of the pipeline.
  // Default: strict.
  uint32_t max_ulp;

  // KILN_SWITCH_*: buffers of one dispatch may overlap, one of them written.
  // The code is slower. Default: off, and such a dispatch is refused. Even with
  // it, a dispatch is refused if its threads might not reach a barrier, a
  // subgroup operation or a copy together: if control flow depends on an `in`
  // or `uniform` buffer, that buffer must not be written.
  uint32_t overlapping;

  // KILN_PROGRAM_WITHOUT_*: parts of the lowering to skip.
  uint32_t without;

  // Its name in messages and telemetry. Copied. Default: the program's name.
  const char* label;

  // KILN_SWITCH_*: code that itself waits for earlier work on the stream
  // (kiln_program_lower_options_t.waits), so that its launches may overlap that
  // (kiln_dispatch_options_t.overlap). UNSUPPORTED if the device lacks it.
  // Default: on if supported (compute capability 9.0, CUDA 11.8), except with a
  // grid barrier.
  uint32_t overlap;
  uint32_t reserved;  // 0
} kiln_pipeline_options_t;

// All defaults. Since 0.1.
static inline kiln_pipeline_options_t kiln_pipeline_options_default(void) {
  kiln_pipeline_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, NULL, 0, 0};
  return options;
}

// Lowers `program` for the dispatcher's device and loads it, its machine code
// from the dispatcher's cache if present. `options` may be NULL.
//
//   UNSUPPORTED       the device, or PTX of a version that its driver reads,
//                     lacks what the program uses; a grid barrier where
//                     there are no cooperative launches
//   LIMIT_EXCEEDED    a block or its shared memory is more than the device has;
//                     those of kiln_program_lower
//   INVALID_ARGUMENT, INCOMPATIBLE, DEVICE_LOST, DRIVER_ERROR,
//   DEVICE_OUT_OF_MEMORY, OUT_OF_MEMORY
//
// The caller owns `*out_pipeline`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_create(
    kiln_dispatcher_t* dispatcher, kiln_program_t* program,
    const kiln_pipeline_options_t* options, kiln_pipeline_t** out_pipeline);

// ---- From any kernel ----

// Kinds of kernel parameters.
enum {
  KILN_INTERFACE_BUFFER = 1,  // u64: the address of the bound memory
  KILN_INTERFACE_SCALAR = 2,  // the bound value
  KILN_INTERFACE_LENGTH = 3,  // the elements of the buffer `of`
  KILN_INTERFACE_WORK = 4,    // the work size along axis `of`
  KILN_INTERFACE_BYTES = 5,   // `value_bytes` at `value`, always the same
  KILN_INTERFACE_TRAP = 6,    // u64: of a zeroed kiln_program_trap_t
  KILN_INTERFACE_GRID = 7,    // u64: of 24 zero bytes of device memory, which
                              // the kernel leaves zero
};

// Sources of a number.
enum {
  KILN_INTERFACE_BY_CALLER = 0,  // the binding, or the dispatch's options
  KILN_INTERFACE_BY_VALUE = 1,   // `value`
  KILN_INTERFACE_BY_BUFFER = 2,  // the elements of the buffer `of`
  KILN_INTERFACE_BY_SCALAR = 3,  // the integer bound to the scalar `of`
};

// A number that a dispatch needs. thread-compatible
typedef struct kiln_interface_number_t {
  uint32_t from;   // KILN_INTERFACE_BY_*
  uint32_t of;     // a parameter of the kernel, by its position
  uint64_t value;  //
} kiln_interface_number_t;

// One parameter of the kernel. thread-compatible
typedef struct kiln_interface_parameter_t {
  const char* name;  // of a buffer and a scalar. NULL: "p" and its position
  uint32_t kind;     // KILN_INTERFACE_*

  // KILN_PROGRAM_TYPE_*: of an element, a scalar, a length or a work size (U32
  // or U64). NONE for elements that are structs.
  uint32_t type;
  uint32_t element_bytes;  // of a struct; 0 otherwise
  uint32_t role;           // KILN_PROGRAM_ROLE_* of a buffer: IN, OUT, INOUT
  uint32_t of;  // of LENGTH: the buffer's position; of WORK: the axis

  // KILN_SWITCH_*: every run writes every element of this OUT buffer, so it
  // need not be cleared. Default: off.
  uint32_t writes_all;
  kiln_interface_number_t count;  // of a buffer: how many elements it has
  const void* value;              // of BYTES; copied
  uint32_t value_bytes;
  uint32_t reserved;  // 0
} kiln_interface_parameter_t;

// The parameters of a kernel and its launch. thread-compatible
//
// Zero in any field is its default. Everything is copied.
typedef struct kiln_interface_t {
  uint32_t struct_size;  // sizeof(kiln_interface_t)
  uint32_t parameter_count;

  // Each parameter of the kernel, in order.
  const kiln_interface_parameter_t* parameters;

  // The work size; an axis of 0 BY_VALUE is 1. All BY_CALLER: each dispatch
  // gives its work size or its grid.
  kiln_interface_number_t work[3];

  // Default: the kernel's .reqntid, else 256,1,1.
  uint32_t block[3];

  // How much work a thread does, along each axis: the grid has that factor
  // fewer threads. Default: 1,1,1.
  uint32_t work_per_thread[3];

  uint32_t shared_bytes;  // dynamic shared memory of a block

  // KILN_SWITCH_*: its blocks wait for each other: every launch is a
  // cooperative one. Default: off.
  uint32_t grid_barrier;

  // KILN_SWITCH_*: every thread executes griddepcontrol.wait, before its first
  // access to memory and before its end, and no ld.global.nc reads what another
  // dispatch writes; so that its launches may overlap earlier work, if a
  // dispatch requests it. Default: off.
  uint32_t waits;

  // KILN_SWITCH_*: buffers of one dispatch may overlap, one of them written.
  // Default: off, and such a dispatch is refused.
  uint32_t overlapping;

  const char* label;  // its name in messages. Default: the kernel's name
} kiln_interface_t;

// No parameters, no work. Since 0.1.
static inline kiln_interface_t kiln_interface_default(void) {
  kiln_interface_t interface;
  memset(&interface, 0, sizeof(interface));
  interface.struct_size = (uint32_t)sizeof(interface);
  return interface;
}

// A pipeline of a kernel that was loaded from any code (kiln/module.h), on the
// dispatcher's device. Number and sizes of the parameters are compared with
// those from the file or the driver.
//
//   INVALID_ARGUMENT  a description that contradicts itself or the kernel, a
//                     kernel of another device; the message names the parameter
//   LIMIT_EXCEEDED    a block or its shared memory is more than the kernel or
//                     the device has; more than 256 parameters that are
//                     bound, or 520 in all
//   UNSUPPORTED       a grid barrier where there are no cooperative launches; a
//                     kernel that is launched in clusters and leaves their
//                     size to each launch
//   INCOMPATIBLE, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_pipeline`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_create_kernel(
    kiln_dispatcher_t* dispatcher, kiln_kernel_t* kernel,
    const kiln_interface_t* interface, kiln_pipeline_t** out_pipeline);

// Adds or releases a reference. NULL is accepted. Code of running dispatches
// stays loaded. Since 0.1.
KILN_API void kiln_pipeline_retain(kiln_pipeline_t* pipeline);
KILN_API void kiln_pipeline_release(kiln_pipeline_t* pipeline);

// ---- Properties ----

// Properties of a pipeline. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_pipeline_info_t {
  const char* label;
  uint32_t parameter_count;  // that are bound
  uint32_t block[3];         // threads
  uint32_t work_per_thread[3];
  uint32_t work_dimensions;       // 0: each dispatch gives its work size
  uint32_t static_shared_bytes;   // of a block
  uint32_t dynamic_shared_bytes;  // of a block
  uint32_t registers;             // of a thread
  uint32_t max_ulp;               // 0: strict, and of a kernel
  uint32_t cooperative;           // 1: every launch is a cooperative one
  uint32_t grid_barrier;          // 1: its code has a grid barrier
  uint32_t traps;                 // 1: its code can trap, and reports it to the
                                  // host
  uint32_t overlapping;           // 1: buffers may overlap
  uint32_t waits;                 // 1: its launches may overlap others
  uint32_t from_cache;            // 1: machine code came from the cache
} kiln_pipeline_info_t;

// Borrowed. Since 0.1.
KILN_API const kiln_pipeline_info_t* kiln_pipeline_info(
    const kiln_pipeline_t* pipeline);

// One parameter to bind. thread-compatible
//
// Borrowed from its pipeline. Only the library fills one; fields may be
// appended in later versions.
typedef struct kiln_pipeline_parameter_t {
  const char* name;
  uint32_t type;        // KILN_PROGRAM_TYPE_*; NONE: elements are structs
  uint32_t type_bytes;  // of a value or one element
  uint32_t role;        // KILN_PROGRAM_ROLE_*; NONE for a scalar
  uint32_t is_counted;  // 1: the pipeline determines its element count
  uint32_t writes_all;  // 1: of OUT: every element is written by every run
} kiln_pipeline_parameter_t;

// One parameter: the program's in the order of its declaration, or the
// interface's buffers and scalars in order; false, with all zero, out of range.
// Since 0.1.
KILN_API bool kiln_pipeline_parameter(const kiln_pipeline_t* pipeline,
                                      uint32_t index,
                                      kiln_pipeline_parameter_t* out_parameter);

// The parameter of that name; false, with 0, if there is none. Since 0.1.
KILN_API bool kiln_pipeline_find_parameter(const kiln_pipeline_t* pipeline,
                                           const char* name,
                                           uint32_t* out_index);

// Borrowed; the code is NULL for a kernel's pipeline. Since 0.1.
KILN_API kiln_dispatcher_t* kiln_pipeline_dispatcher(
    const kiln_pipeline_t* pipeline);
KILN_API kiln_kernel_t* kiln_pipeline_kernel(const kiln_pipeline_t* pipeline);
KILN_API kiln_program_code_t* kiln_pipeline_code(
    const kiln_pipeline_t* pipeline);

// ---- Bindings ----

// Kinds of bindings.
enum {
  KILN_BINDING_NONE = 0,
  KILN_BINDING_RESIDENT = 1,    // bytes of a resident buffer
  KILN_BINDING_BUFFER = 2,      // bytes of a kiln_buffer_t
  KILN_BINDING_POINTER = 3,     // a device address, which is not checked
  KILN_BINDING_HOST_IN = 4,     // host memory that is copied to the device
  KILN_BINDING_HOST_OUT = 5,    // from it
  KILN_BINDING_HOST_INOUT = 6,  // to it and back
  KILN_BINDING_STATIC = 7,      // bytes, uploaded once: prepared dispatches
  KILN_BINDING_SCALAR = 8,      // a value
};

// The argument for a parameter. thread-compatible
//
// Make one with a kiln_bind_... function below. It owns nothing: buffers, and
// host memory, must live until the work is done; a resident buffer that is
// freed meanwhile is freed after it.
typedef struct kiln_binding_t {
  uint32_t kind;  // KILN_BINDING_*
  uint32_t type;  // of SCALAR: KILN_PROGRAM_TYPE_*
  union {
    kiln_resident_t resident;
    kiln_buffer_t* buffer;
    uint64_t address;
    const void* in;  // HOST_IN, STATIC
    void* out;       // HOST_OUT, HOST_INOUT
    uint64_t bits;   // of SCALAR, the rest zero
  } value;
  uint64_t offset;  // bytes, of RESIDENT and BUFFER
  uint64_t bytes;   // of RESIDENT and BUFFER: 0 is the rest from `offset` on:
                    // as many elements as the pipeline determines, else all
                    // whole elements
} kiln_binding_t;

// All of a resident buffer, or a part of it. Since 0.1.
static inline kiln_binding_t kiln_bind_resident_range(kiln_resident_t resident,
                                                      uint64_t offset,
                                                      uint64_t bytes) {
  kiln_binding_t binding;
  memset(&binding, 0, sizeof(binding));
  binding.kind = KILN_BINDING_RESIDENT;
  binding.value.resident = resident;
  binding.offset = offset;
  binding.bytes = bytes;
  return binding;
}
static inline kiln_binding_t kiln_bind_resident(kiln_resident_t resident) {
  return kiln_bind_resident_range(resident, 0, 0);
}

// All of a buffer, or a part of it. Since 0.1.
static inline kiln_binding_t kiln_bind_buffer_range(kiln_buffer_t* buffer,
                                                    uint64_t offset,
                                                    uint64_t bytes) {
  kiln_binding_t binding;
  memset(&binding, 0, sizeof(binding));
  binding.kind = KILN_BINDING_BUFFER;
  binding.value.buffer = buffer;
  binding.offset = offset;
  binding.bytes = bytes;
  return binding;
}
static inline kiln_binding_t kiln_bind_buffer(kiln_buffer_t* buffer) {
  return kiln_bind_buffer_range(buffer, 0, 0);
}

// `bytes` bytes of device memory at `address`; 0 and 0 are an empty buffer.
// Since 0.1.
static inline kiln_binding_t kiln_bind_pointer(uint64_t address,
                                               uint64_t bytes) {
  kiln_binding_t binding;
  memset(&binding, 0, sizeof(binding));
  binding.kind = KILN_BINDING_POINTER;
  binding.value.address = address;
  binding.bytes = bytes;
  return binding;
}

// Host memory. Memory to read may be changed when the dispatch call has
// returned, unless it is pinned; results are valid when the pending is done.
// Since 0.1.
static inline kiln_binding_t kiln_bind_host_in(const void* data,
                                               uint64_t bytes) {
  kiln_binding_t binding;
  memset(&binding, 0, sizeof(binding));
  binding.kind = KILN_BINDING_HOST_IN;
  binding.value.in = data;
  binding.bytes = bytes;
  return binding;
}
static inline kiln_binding_t kiln_bind_host_out(void* data, uint64_t bytes) {
  kiln_binding_t binding;
  memset(&binding, 0, sizeof(binding));
  binding.kind = KILN_BINDING_HOST_OUT;
  binding.value.out = data;
  binding.bytes = bytes;
  return binding;
}
static inline kiln_binding_t kiln_bind_host_inout(void* data, uint64_t bytes) {
  kiln_binding_t binding = kiln_bind_host_out(data, bytes);
  binding.kind = KILN_BINDING_HOST_INOUT;
  return binding;
}

// Bytes that are uploaded once, when the prepared dispatch is made; for
// parameters that are read. Since 0.1.
static inline kiln_binding_t kiln_bind_static(const void* data,
                                              uint64_t bytes) {
  kiln_binding_t binding = kiln_bind_host_in(data, bytes);
  binding.kind = KILN_BINDING_STATIC;
  return binding;
}

// A value: its type, and its bits. Since 0.1.
static inline kiln_binding_t kiln_bind_scalar(uint32_t type, uint64_t bits) {
  kiln_binding_t binding;
  memset(&binding, 0, sizeof(binding));
  binding.kind = KILN_BINDING_SCALAR;
  binding.type = type;
  binding.value.bits = bits;
  return binding;
}
static inline kiln_binding_t kiln_bind_u32(uint32_t value) {
  return kiln_bind_scalar(KILN_PROGRAM_TYPE_U32, value);
}
static inline kiln_binding_t kiln_bind_i32(int32_t value) {
  return kiln_bind_scalar(KILN_PROGRAM_TYPE_I32, (uint32_t)value);
}
static inline kiln_binding_t kiln_bind_u64(uint64_t value) {
  return kiln_bind_scalar(KILN_PROGRAM_TYPE_U64, value);
}
static inline kiln_binding_t kiln_bind_i64(int64_t value) {
  return kiln_bind_scalar(KILN_PROGRAM_TYPE_I64, (uint64_t)value);
}
static inline kiln_binding_t kiln_bind_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return kiln_bind_scalar(KILN_PROGRAM_TYPE_F32, bits);
}
static inline kiln_binding_t kiln_bind_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return kiln_bind_scalar(KILN_PROGRAM_TYPE_F64, bits);
}

// ---- Dispatching ----

// For `max_ulp`: a strict pipeline.
#define KILN_DISPATCH_STRICT UINT32_MAX

// Values of `speculation` and `persistent`.
enum {
  KILN_DISPATCH_AUTO = 0,
  KILN_DISPATCH_OFF = 1,
  KILN_DISPATCH_FORCE = 2,  // UNSUPPORTED: not available
};

// How a pipeline is dispatched. thread-compatible
//
// Zero in any field is its default. Every field is applied or refused by name;
// none is ignored.
typedef struct kiln_dispatch_options_t {
  uint32_t struct_size;  // sizeof(kiln_dispatch_options_t)

  // The value that the pipeline must have been made with: any other is
  // INVALID_ARGUMENT. KILN_DISPATCH_STRICT for a strict one. Default: any.
  uint32_t max_ulp;

  // The name of this dispatch in messages, profiler ranges and telemetry.
  // Borrowed as long as the call, or the prepared dispatch, lives. Default: the
  // pipeline's label.
  const char* label;

  // A profile to compile for. UNSUPPORTED: make another pipeline. Default:
  // none.
  const char* profile;

  // If it is not done within this time after the call, waiting or querying
  // returns DEVICE_LOST (kiln_pending_query), and the software device stops it,
  // as described for kiln_stream_wait. Default: no limit.
  uint64_t timeout_ns;

  // More bytes than this to copy to host memory are LIMIT_EXCEEDED, before
  // anything is launched. Default: no limit.
  uint64_t max_output_bytes;

  // The work size, for a pipeline that leaves it to its dispatches. For any
  // other it is INVALID_ARGUMENT. 0 is 1.
  uint64_t work[3];

  // Blocks. If the work size is known they must be enough for it. Default: as
  // many as the work needs.
  uint32_t grid[3];

  // Threads of a block. A program's are in its code: others are UNSUPPORTED.
  // Default: the pipeline's.
  uint32_t block[3];

  // How often it is launched, one after another. Outputs are cleared, and host
  // memory is copied, once. Default: 1.
  uint32_t iterations;

  // KILN_SWITCH_*: a cooperative launch, UNSUPPORTED if the device lacks them,
  // and LIMIT_EXCEEDED if not all blocks fit at once. Default: only if the code
  // has a grid barrier; off is then INVALID_ARGUMENT.
  uint32_t cooperative;

  uint32_t speculation;  // KILN_DISPATCH_*; FORCE is UNSUPPORTED
  uint32_t persistent;   // KILN_DISPATCH_*; FORCE is UNSUPPORTED

  // KILN_SWITCH_*: fill OUT buffers with zero first: of those that are bound,
  // the bytes that the pipeline takes. Default: only those that the code might
  // not write completely; off if the caller knows that they are written.
  uint32_t clear_outputs;

  // KILN_SWITCH_*: the launch may start before the previous kernel on the
  // stream has ended, and itself waits for it (programmatic stream
  // serialization). UNSUPPORTED if code or device do not support it, and with a
  // grid barrier. With on, the caller guarantees that the previous kernel waits
  // for its own predecessors: a dispatch of Kiln does, and any kernel launched
  // without the attribute. Default: on for programs whose code waits, on the
  // dispatcher's own streams until the stream is exposed
  // (kiln_dispatcher_stream).
  uint32_t overlap;

  // KILN_SWITCH_*: measure the time (kiln_pending_times). Default: off.
  uint32_t timed;

  // Of the blocks, in the range of kiln_device_priorities. Default: the
  // stream's.
  int32_t priority;
  uint32_t reserved;  // 0
  uint32_t wait_count;

  // Events that the work waits for, and one that is recorded after it.
  kiln_event_t* const* waits;
  kiln_event_t* record;
} kiln_dispatch_options_t;

// All defaults. Since 0.1.
static inline kiln_dispatch_options_t kiln_dispatch_options_default(void) {
  kiln_dispatch_options_t options;
  memset(&options, 0, sizeof(options));
  options.struct_size = (uint32_t)sizeof(options);
  return options;
}

// A planned dispatch. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_dispatch_plan_t {
  uint64_t work[3];
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;    // of a block, static and dynamic
  uint32_t cooperative;     // 1: a cooperative launch
  uint64_t upload_bytes;    // host to device
  uint64_t download_bytes;  // device to host
  uint64_t device_bytes;    // of device memory allocated for it
  uint64_t cleared_bytes;   // of outputs that are filled with zero
} kiln_dispatch_plan_t;

// Checks a dispatch and reports what it would do; the statuses are those of
// kiln_pipeline_dispatch, before anything is put on a device. `bindings` are as
// there. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_plan(
    kiln_pipeline_t* pipeline, const kiln_binding_t* bindings,
    uint32_t binding_count, const kiln_dispatch_options_t* options,
    kiln_dispatch_plan_t* out_plan);

// Puts the work on `stream` (NULL: the dispatcher's first) and returns; later
// errors are reported by the pending. One binding for each parameter, in order.
// `options` and `out_pending` may be NULL; without a pending a trap is not
// reported, and host memory that is written is valid when the stream is
// synchronised.
//
//   INVALID_ARGUMENT  the number of bindings; a scalar for a buffer, another
//                     type, an address that is not a multiple of the element's
//                     size, bytes that are not whole elements or not as many as
//                     the pipeline requires; a resident buffer that was freed
//                     or is another dispatcher's; a buffer or stream of another
//                     device; host memory that is only read for a parameter
//                     that is written; overlapping buffers, one of them
//                     written (see `overlapping`). The
//                     message names the parameter
//   OUT_OF_RANGE      a range outside of its buffer; a work size that is too
//                     large
//   LIMIT_EXCEEDED    a grid over the device's, blocks that cannot run at once,
//                     `max_output_bytes`, a priority out of its range
//   UNSUPPORTED       an option, by its name
//   INVALID_STATE     on a stream that is captured: host memory, a pending,
//                     code that can trap (prepare it); the message names it
//   LAUNCH_FAILED, DEVICE_OUT_OF_MEMORY, DEVICE_LOST, DRIVER_ERROR,
//   OUT_OF_MEMORY
//
// Checked before anything is put on the stream. Without host memory, a pending
// and a grid barrier, code that cannot trap allocates nothing.
// The caller owns `*out_pending`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_dispatch(
    kiln_pipeline_t* pipeline, kiln_stream_t* stream,
    const kiln_binding_t* bindings, uint32_t binding_count,
    const kiln_dispatch_options_t* options, kiln_pending_t** out_pending);

// Many dispatches of one pipeline. thread-compatible
typedef struct kiln_dispatch_batch_t {
  uint32_t struct_size;    // sizeof(kiln_dispatch_batch_t)
  uint32_t binding_count;  // of one dispatch

  // `count` times `binding_count` of them, one dispatch after another.
  const kiln_binding_t* bindings;
  uint32_t count;

  // How many own streams they are spread over. Default: all; 1 is in order.
  uint32_t streams;
} kiln_dispatch_batch_t;

// No dispatches. Since 0.1.
static inline kiln_dispatch_batch_t kiln_dispatch_batch_default(void) {
  kiln_dispatch_batch_t batch = {(uint32_t)sizeof(batch), 0, NULL, 0, 0};
  return batch;
}

// Dispatches each of a batch, spread over the dispatcher's streams: after all
// work already on `stream`, in any order among themselves, and before later
// work on `stream`. No two of them may write the same memory, or one write what
// another reads; this is not checked. All are checked individually before the
// first is put on a device; the message names the number. `out_pending` covers
// all of them, and reports the first trap. Statuses as dispatch; `timed` is
// UNSUPPORTED. The caller owns `*out_pending`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_dispatch_batch(
    kiln_pipeline_t* pipeline, kiln_stream_t* stream,
    const kiln_dispatch_batch_t* batch, const kiln_dispatch_options_t* options,
    kiln_pending_t** out_pending);

// ---- Prepared dispatches ----

// A dispatch that was checked once. thread-compatible
//
// Reference-counted. Retains its pipeline and its buffers. Threads may run one
// at once while none changes it, unless its code has a grid barrier: its runs
// then share a counter, and are ordered one after another.
typedef struct kiln_prepared_t kiln_prepared_t;

// Checks and plans a dispatch, and uploads STATIC bindings. Host memory is
// refused (UNSUPPORTED): only a dispatch copies it. Of the options `waits`,
// `record`, `timed`, `timeout_ns` and `iterations` are UNSUPPORTED, because
// they belong to one run. Other statuses as dispatch. The caller owns
// `*out_prepared`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_prepare(
    kiln_pipeline_t* pipeline, const kiln_binding_t* bindings,
    uint32_t binding_count, const kiln_dispatch_options_t* options,
    kiln_prepared_t** out_prepared);

// Adds or releases a reference. NULL is accepted. The last release frees its
// own resources after its last run. Since 0.1.
KILN_API void kiln_prepared_retain(kiln_prepared_t* prepared);
KILN_API void kiln_prepared_release(kiln_prepared_t* prepared);

// Puts it on `stream` (NULL: the dispatcher's first). No hash, no allocation,
// no lock; one call of the driver, and one more for each output that is
// cleared.
//
//   INVALID_STATE  a resident buffer of it was freed; a run of it has trapped,
//                  which kiln_prepared_check reports
//   INVALID_ARGUMENT  a stream of another device
//   LAUNCH_FAILED, DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_prepared_run(kiln_prepared_t* prepared, kiln_stream_t* stream);

// Binds another buffer, or sets another value, which are checked as by a
// dispatch, together with all other bindings: of two resident buffers that were
// freed neither can be replaced alone, and another dispatch must be prepared.
// Sizes and grid follow. On failure nothing has changed. Runs already on
// streams keep their bindings. Statuses as of prepare. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_prepared_rebind(
    kiln_prepared_t* prepared, uint32_t index, const kiln_binding_t* binding);
KILN_API KILN_MUST_USE kiln_status_t kiln_prepared_set_scalar(
    kiln_prepared_t* prepared, uint32_t index, uint64_t bits);

// Reports whether a run has trapped: LAUNCH_FAILED with tag, address, block and
// thread, once; further runs are then possible again. Call it when the runs are
// done: synchronise their streams first. `out_trap` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_prepared_check(kiln_prepared_t* prepared, kiln_trap_t* out_trap);

// Its plan, and its pipeline. Borrowed. Since 0.1.
KILN_API void kiln_prepared_plan(const kiln_prepared_t* prepared,
                                 kiln_dispatch_plan_t* out_plan);
KILN_API kiln_pipeline_t* kiln_prepared_pipeline(
    const kiln_prepared_t* prepared);

// Its launch, for graphs (kiln/graph.h): it may be added to one and run
// separately, but must be changed only through the prepared dispatch. Clears of
// outputs are not part of it. Borrowed. Since 0.1.
KILN_API kiln_launch_t* kiln_prepared_launch(const kiln_prepared_t* prepared);

KILN_EXTERN_C_END

#endif  // KILN_PIPELINE_H_
