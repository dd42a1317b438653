// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pipelines: code that is ready to run, with what it takes.
//
// A pipeline is made once, from a program or from any kernel with a
// description of its parameters, and dispatched any number of times: nothing is
// hashed, compiled or looked up then.
//
//   kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y),
//                                kiln_bind_f32(2.0f)};
//   kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL);
//
// What is dispatched with the same bindings again and again is prepared: a
// prepared dispatch is checked once, and a run of it is little more than the
// driver's own call.
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

// Code that is loaded, with what it takes. thread-safe
//
// Reference-counted and never changed. Retains its dispatcher, its program and
// its kernel.
typedef struct kiln_pipeline_t kiln_pipeline_t;

// ---- From a program ----

// How a pipeline is made of a program. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_pipeline_options_t {
  uint32_t struct_size;  // sizeof(kiln_pipeline_options_t)

  // The error that f32 functions may have, in ULP: part of what the pipeline
  // is. Default: strict.
  uint32_t max_ulp;

  // KILN_SWITCH_*: buffers of one dispatch may overlap, one of them written.
  // The code is slower. Default: off, and such a dispatch is refused. Also with
  // it one is refused whose threads might not come to a barrier, a subgroup
  // operation or a copy together: where it hangs on what is read in an `in` or
  // `uniform` buffer, that one must not be written.
  uint32_t overlapping;

  // KILN_PROGRAM_WITHOUT_*: parts of the lowering that are left out.
  uint32_t without;

  // What messages and telemetry call it. Copied. Default: the program's name.
  const char* label;

  // KILN_SWITCH_*: code that waits itself for what is in front of it on the
  // stream (kiln_program_lower_options_t.waits), so that its launches may
  // overlap that (kiln_dispatch_options_t.overlap). UNSUPPORTED where the
  // device has none of it. Default: on where it has (compute capability 9.0,
  // CUDA 11.8), but for a grid barrier.
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
// from the dispatcher's cache where that has it. `options` may be NULL.
//
//   UNSUPPORTED       the device, or PTX of a version that its driver reads,
//                     has not what the program uses; a grid barrier where
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

// What a parameter of a kernel is.
enum {
  KILN_INTERFACE_BUFFER = 1,  // u64: the address of what is bound
  KILN_INTERFACE_SCALAR = 2,  // the value that is bound
  KILN_INTERFACE_LENGTH = 3,  // the elements of the buffer `of`
  KILN_INTERFACE_WORK = 4,    // the work size along axis `of`
  KILN_INTERFACE_BYTES = 5,   // `value_bytes` at `value`, always the same
  KILN_INTERFACE_TRAP = 6,    // u64: of a zeroed kiln_program_trap_t
  KILN_INTERFACE_GRID = 7,    // u64: of 24 zero bytes of device memory, which
                              // the kernel leaves zero
};

// Where a number comes from.
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

  // KILN_SWITCH_*: every run writes every element of this OUT buffer, so that
  // it is not cleared before. Default: off.
  uint32_t writes_all;
  kiln_interface_number_t count;  // of a buffer: how many elements it has
  const void* value;              // of BYTES; copied
  uint32_t value_bytes;
  uint32_t reserved;  // 0
} kiln_interface_parameter_t;

// What a kernel takes and how it is launched. thread-compatible
//
// Zero in any field is its default. Everything is copied.
typedef struct kiln_interface_t {
  uint32_t struct_size;  // sizeof(kiln_interface_t)
  uint32_t parameter_count;

  // Each parameter of the kernel, in its order.
  const kiln_interface_parameter_t* parameters;

  // The work size; an axis of 0 BY_VALUE is 1. All BY_CALLER: each dispatch
  // says its work size or its grid.
  kiln_interface_number_t work[3];

  // Default: the kernel's .reqntid, else 256,1,1.
  uint32_t block[3];

  // How much work a thread does, along each axis: the grid has as many threads
  // less. Default: 1,1,1.
  uint32_t work_per_thread[3];

  uint32_t shared_bytes;  // dynamic shared memory of a block

  // KILN_SWITCH_*: its blocks wait for each other: every launch is a
  // cooperative one. Default: off.
  uint32_t grid_barrier;

  // KILN_SWITCH_*: every thread executes griddepcontrol.wait, before its first
  // access to memory and before its end, and no ld.global.nc reads what another
  // dispatch writes; so that its launches may overlap what is in front of them,
  // where a dispatch asks for it. Default: off.
  uint32_t waits;

  // KILN_SWITCH_*: buffers of one dispatch may overlap, one of them written.
  // Default: off, and such a dispatch is refused.
  uint32_t overlapping;

  const char* label;  // what messages call it. Default: the kernel's name
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
// what the file or the driver tells.
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

// One reference more, one less. NULL is accepted. Code of dispatches under way
// stays loaded. Since 0.1.
KILN_API void kiln_pipeline_retain(kiln_pipeline_t* pipeline);
KILN_API void kiln_pipeline_release(kiln_pipeline_t* pipeline);

// ---- What it is ----

// What a pipeline is. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_pipeline_info_t {
  const char* label;
  uint32_t parameter_count;  // that are bound
  uint32_t block[3];         // threads
  uint32_t work_per_thread[3];
  uint32_t work_dimensions;       // 0: each dispatch says its work size
  uint32_t static_shared_bytes;   // of a block
  uint32_t dynamic_shared_bytes;  // of a block
  uint32_t registers;             // of a thread
  uint32_t max_ulp;               // 0: strict, and of a kernel
  uint32_t cooperative;           // 1: every launch is a cooperative one
  uint32_t grid_barrier;          // 1: its code has a grid barrier
  uint32_t traps;                 // 1: its code can trap, and tells the host
  uint32_t overlapping;           // 1: buffers may overlap
  uint32_t waits;                 // 1: its launches may overlap others
  uint32_t from_cache;            // 1: machine code came from the cache
} kiln_pipeline_info_t;

// Borrowed. Since 0.1.
KILN_API const kiln_pipeline_info_t* kiln_pipeline_info(
    const kiln_pipeline_t* pipeline);

// What is bound to a pipeline at one position. thread-compatible
//
// Borrowed from its pipeline. Only the library fills one; fields may be
// appended in later versions.
typedef struct kiln_pipeline_parameter_t {
  const char* name;
  uint32_t type;        // KILN_PROGRAM_TYPE_*; NONE: elements are structs
  uint32_t type_bytes;  // of a value or one element
  uint32_t role;        // KILN_PROGRAM_ROLE_*; NONE for a scalar
  uint32_t is_counted;  // 1: the pipeline says how many elements it has
  uint32_t writes_all;  // 1: of OUT: every element is written by every run
} kiln_pipeline_parameter_t;

// One parameter: the program's in the order of its declaration, or the
// interface's buffers and scalars in theirs; false, with all zero, out of
// range. Since 0.1.
KILN_API bool kiln_pipeline_parameter(const kiln_pipeline_t* pipeline,
                                      uint32_t index,
                                      kiln_pipeline_parameter_t* out_parameter);

// The parameter of that name; false, with 0, if there is none. Since 0.1.
KILN_API bool kiln_pipeline_find_parameter(const kiln_pipeline_t* pipeline,
                                           const char* name,
                                           uint32_t* out_index);

// Borrowed; the code is NULL of a kernel's pipeline. Since 0.1.
KILN_API kiln_dispatcher_t* kiln_pipeline_dispatcher(
    const kiln_pipeline_t* pipeline);
KILN_API kiln_kernel_t* kiln_pipeline_kernel(const kiln_pipeline_t* pipeline);
KILN_API kiln_program_code_t* kiln_pipeline_code(
    const kiln_pipeline_t* pipeline);

// ---- Bindings ----

// What a binding is.
enum {
  KILN_BINDING_NONE = 0,
  KILN_BINDING_RESIDENT = 1,    // bytes of a resident buffer
  KILN_BINDING_BUFFER = 2,      // bytes of a kiln_buffer_t
  KILN_BINDING_POINTER = 3,     // a device address, which nobody can check
  KILN_BINDING_HOST_IN = 4,     // host memory that is copied to the device
  KILN_BINDING_HOST_OUT = 5,    // from it
  KILN_BINDING_HOST_INOUT = 6,  // to it and back
  KILN_BINDING_STATIC = 7,      // bytes, uploaded once: prepared dispatches
  KILN_BINDING_SCALAR = 8,      // a value
};

// What a parameter is given. thread-compatible
//
// Make one with a kiln_bind_... function below. It owns nothing: buffers, and
// host memory, must live until the work is done; a resident buffer that is
// freed meanwhile is freed behind it.
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
  uint64_t bytes;   // of RESIDENT and BUFFER: 0 is what there is behind
                    // `offset`, of which the pipeline takes what it says;
                    // where it says nothing, all, in whole elements
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

// Host memory. What is read may be changed when the call that dispatches has
// returned, unless it is pinned; what is written is there when the pending is
// done. Since 0.1.
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

// For `max_ulp`: a pipeline that is strict.
#define KILN_DISPATCH_STRICT UINT32_MAX

// Values of `speculation` and `persistent`.
enum {
  KILN_DISPATCH_AUTO = 0,
  KILN_DISPATCH_OFF = 1,
  KILN_DISPATCH_FORCE = 2,  // UNSUPPORTED: there is no such thing here
};

// How a pipeline is dispatched. thread-compatible
//
// Zero in any field is its default. Every field is applied or refused by its
// name; none is ignored.
typedef struct kiln_dispatch_options_t {
  uint32_t struct_size;  // sizeof(kiln_dispatch_options_t)

  // What the pipeline must have been made with: another one is
  // INVALID_ARGUMENT. KILN_DISPATCH_STRICT for a strict one. Default: any.
  uint32_t max_ulp;

  // What messages, ranges of a profiler and telemetry call this dispatch.
  // Borrowed as long as the call, or the prepared dispatch, lives. Default: the
  // pipeline's label.
  const char* label;

  // A profile to compile for. UNSUPPORTED: make another pipeline. Default:
  // none.
  const char* profile;

  // When it is not done so long after the call, whoever waits for it or asks is
  // told DEVICE_LOST (kiln_pending_query), and the software device stops it, as
  // kiln_stream_wait says. Default: no limit.
  uint64_t timeout_ns;

  // More bytes than that to be copied to host memory are LIMIT_EXCEEDED, before
  // anything is launched. Default: no limit.
  uint64_t max_output_bytes;

  // The work size, of a pipeline that leaves it to its dispatches. Of another
  // one it is INVALID_ARGUMENT. 0 is 1.
  uint64_t work[3];

  // Blocks. Of a pipeline whose work size is known they must be enough for it.
  // Default: as many as the work needs.
  uint32_t grid[3];

  // Threads of a block. A program's are in its code: others are UNSUPPORTED.
  // Default: the pipeline's.
  uint32_t block[3];

  // How often it is launched, each behind the one before. Outputs are cleared,
  // and host memory is copied, once. Default: 1.
  uint32_t iterations;

  // KILN_SWITCH_*: a cooperative launch, UNSUPPORTED where the device has none,
  // and LIMIT_EXCEEDED where not all blocks run at once. Default: only if the
  // code has a grid barrier; off is then INVALID_ARGUMENT.
  uint32_t cooperative;

  uint32_t speculation;  // KILN_DISPATCH_*; FORCE is UNSUPPORTED
  uint32_t persistent;   // KILN_DISPATCH_*; FORCE is UNSUPPORTED

  // KILN_SWITCH_*: fill OUT buffers with zero first: of those that are bound,
  // the bytes that the pipeline takes. Default: those alone that the code may
  // not write completely; off is for a caller who knows better.
  uint32_t clear_outputs;

  // KILN_SWITCH_*: the launch may start before the kernel in front of it on the
  // stream has ended, and waits for it itself (programmatic stream
  // serialization). UNSUPPORTED where code or device do not, and with a grid
  // barrier. On is the caller's word that the kernel in front of it waits for
  // what is in front of itself: a dispatch of Kiln does, and any kernel that
  // was launched without the attribute. Default: on for programs whose code
  // waits, on the dispatcher's own streams as long as nobody was given the
  // stream (kiln_dispatcher_stream).
  uint32_t overlap;

  // KILN_SWITCH_*: take the time (kiln_pending_times). Default: off.
  uint32_t timed;

  // Of the blocks, in the range of kiln_device_priorities. Default: the
  // stream's.
  int32_t priority;
  uint32_t reserved;  // 0
  uint32_t wait_count;

  // Events that the work waits for, and one that is recorded behind it.
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

// What a dispatch would do. thread-compatible
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
  uint64_t device_bytes;    // of device memory that is taken for it
  uint64_t cleared_bytes;   // of outputs that are filled with zero
} kiln_dispatch_plan_t;

// Checks a dispatch and tells what it would do; the statuses are those of
// kiln_pipeline_dispatch, before anything is put on a device. `bindings` are as
// there. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_plan(
    kiln_pipeline_t* pipeline, const kiln_binding_t* bindings,
    uint32_t binding_count, const kiln_dispatch_options_t* options,
    kiln_dispatch_plan_t* out_plan);

// Puts the work on `stream` (NULL: the dispatcher's first) and returns; what
// goes wrong there is told by the pending. One binding for each parameter, in
// their order. `options` and `out_pending` may be NULL; without a pending a
// trap is told to nobody, and host memory that is written is there when the
// stream is synchronised.
//
//   INVALID_ARGUMENT  the number of bindings; a scalar for a buffer, another
//                     type, an address that is not a multiple of the element's
//                     size, bytes that are no whole elements or not as many as
//                     the pipeline says; a resident buffer that was freed or is
//                     another dispatcher's; a buffer or stream of another
//                     device; host memory that is only read for a parameter
//                     that is written; overlapping buffers, one of them
//                     written (`overlapping` says when that may be). The
//                     message names the parameter
//   OUT_OF_RANGE      a range outside of its buffer; a work size that is too
//                     large
//   LIMIT_EXCEEDED    a grid over the device's, blocks that cannot run at once,
//                     `max_output_bytes`, a priority out of its range
//   UNSUPPORTED       an option, by its name
//   INVALID_STATE     on a stream that is captured: host memory, a pending,
//                     code that can trap (prepare it); the message says which
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

  // `count` times `binding_count` of them, one dispatch behind the other.
  const kiln_binding_t* bindings;
  uint32_t count;

  // How many own streams they are spread over. Default: all there are; 1 is in
  // order.
  uint32_t streams;
} kiln_dispatch_batch_t;

// No dispatches. Since 0.1.
static inline kiln_dispatch_batch_t kiln_dispatch_batch_default(void) {
  kiln_dispatch_batch_t batch = {(uint32_t)sizeof(batch), 0, NULL, 0, 0};
  return batch;
}

// Dispatches each of a batch, spread over the dispatcher's streams: behind all
// that is on `stream` by now, in any order among themselves, and before what
// comes on `stream` later. No two of them may write the same memory, or one
// what another reads; that is not checked. All are checked, each by itself,
// before the first is put on a device; the message names the number.
// `out_pending` is of all of them, and tells the first trap. Statuses as
// dispatch; `timed` is UNSUPPORTED. The caller owns `*out_pending`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_dispatch_batch(
    kiln_pipeline_t* pipeline, kiln_stream_t* stream,
    const kiln_dispatch_batch_t* batch, const kiln_dispatch_options_t* options,
    kiln_pending_t** out_pending);

// ---- Prepared dispatches ----

// A dispatch that was checked once. thread-compatible
//
// Reference-counted. Retains its pipeline and its buffers. Threads may run one
// at once while none changes it, unless its code has a grid barrier: its runs
// then share a counter, and are ordered behind each other.
typedef struct kiln_prepared_t kiln_prepared_t;

// Checks and plans a dispatch, and uploads what is STATIC. Host memory is
// refused (UNSUPPORTED): it is copied by a dispatch. Of the options `waits`,
// `record`, `timed`, `timeout_ns` and `iterations` are UNSUPPORTED, because
// they are of one run. Other statuses as dispatch. The caller owns
// `*out_prepared`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_prepare(
    kiln_pipeline_t* pipeline, const kiln_binding_t* bindings,
    uint32_t binding_count, const kiln_dispatch_options_t* options,
    kiln_prepared_t** out_prepared);

// One reference more, one less. NULL is accepted. The last release ends what is
// its own behind its last run. Since 0.1.
KILN_API void kiln_prepared_retain(kiln_prepared_t* prepared);
KILN_API void kiln_prepared_release(kiln_prepared_t* prepared);

// Puts it on `stream` (NULL: the dispatcher's first). No hash, no allocation,
// no lock; one call of the driver, and one more for each output that is
// cleared.
//
//   INVALID_STATE  a resident buffer of it was freed; a run of it has trapped,
//                  which kiln_prepared_check tells
//   INVALID_ARGUMENT  a stream of another device
//   LAUNCH_FAILED, DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_prepared_run(kiln_prepared_t* prepared, kiln_stream_t* stream);

// Binds another buffer, or gives another value, which are checked as by a
// dispatch, together with all that stays bound: of two resident buffers that
// were freed neither can be replaced alone, and another dispatch has to be
// prepared. Sizes and grid follow. On failure nothing has changed. Runs that
// are on streams keep what they were given. Statuses as of prepare. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_prepared_rebind(
    kiln_prepared_t* prepared, uint32_t index, const kiln_binding_t* binding);
KILN_API KILN_MUST_USE kiln_status_t kiln_prepared_set_scalar(
    kiln_prepared_t* prepared, uint32_t index, uint64_t bits);

// Tells whether a run has trapped: LAUNCH_FAILED with tag, address, block and
// thread, once; further runs are then possible again. For when the runs are
// done: synchronise their streams first. `out_trap` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_prepared_check(kiln_prepared_t* prepared, kiln_trap_t* out_trap);

// What it does, and its pipeline. Borrowed. Since 0.1.
KILN_API void kiln_prepared_plan(const kiln_prepared_t* prepared,
                                 kiln_dispatch_plan_t* out_plan);
KILN_API kiln_pipeline_t* kiln_prepared_pipeline(
    const kiln_prepared_t* prepared);

// Its launch, for graphs (kiln/graph.h): it may be added to one, run by others,
// and must not be changed but through the prepared dispatch. Clears of outputs
// are not part of it. Borrowed. Since 0.1.
KILN_API kiln_launch_t* kiln_prepared_launch(const kiln_prepared_t* prepared);

KILN_EXTERN_C_END

#endif  // KILN_PIPELINE_H_
