// SPDX-License-Identifier: Apache-2.0
//
// device: modules, kernels, and their launch.
//
// A launch is checked before it reaches the driver: the number of arguments,
// the size of each and, if the code file has the types, which are floats.
#ifndef KILN_MODULE_H_
#define KILN_MODULE_H_

#include "kiln/code.h"
#include "kiln/device.h"
#include "kiln/memory.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// Loaded device code. thread-safe
//
// Reference-counted. Retains its device.
typedef struct kiln_module_t kiln_module_t;

// A kernel of a module. thread-safe
//
// Reference-counted. Retains its module.
typedef struct kiln_kernel_t kiln_kernel_t;

// The log of the driver's compiler while it loaded a module. thread-safe
//
// Owned by the caller: kiln_load_log_release.
typedef struct kiln_load_log_t kiln_load_log_t;

// The text, several lines; "" if empty. Borrowed. Since 0.1.
KILN_API const char* kiln_load_log_text(const kiln_load_log_t* log);

// Ends the log. NULL is accepted. Since 0.1.
KILN_API void kiln_load_log_release(kiln_load_log_t* log);

// How a module is loaded. thread-compatible
typedef struct kiln_module_options_t {
  uint32_t struct_size;  // sizeof(kiln_module_options_t)
  uint32_t reserved;     // 0
  const char* name;      // its name in messages, e.g. the file. Default: "".

  // PTX that a cubin was made from, for the names and types of the kernels'
  // parameters, which machine code lacks. Code whose own bytes are loaded
  // (kiln_code_bytes) is not read again (kiln_code_image). Default: none; uses
  // the loaded code.
  kiln_code_t* described_by;
} kiln_module_options_t;

// All defaults. Since 0.1.
static inline kiln_module_options_t kiln_module_options_default(void) {
  kiln_module_options_t options = {(uint32_t)sizeof(options), 0, NULL, NULL};
  return options;
}

// Loads PTX text (a NUL at its end is not needed), a cubin or a fatbin; the
// format is detected from the bytes, which are copied. `options` may be NULL.
//
// `out_log`, if not NULL, receives the log, even if loading failed. It stays
// NULL without memory, and if the bytes are not examined: INVALID_ARGUMENT,
// INVALID_STATE after a fork, a device that was lost before.
//
//   INVALID_ARGUMENT  `device` or `out_module` is NULL, `image` has a size and
//                     no bytes, or `described_by` is not PTX
//   BAD_DATA          none of the three, or malformed: with line and column for
//                     PTX
//   INCOMPATIBLE      PTX newer than the driver, or no code for this device;
//                     both versions are named
//   UNSUPPORTED       the software device cannot execute it (first such line),
//                     or does not take this format
//   COMPILE_FAILED    the driver's compiler refused the PTX; see the log
//   DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY, OUT_OF_MEMORY
//
// The caller owns `*out_module`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_module_load(kiln_device_t* device, kiln_bytes_view_t image,
                 const kiln_module_options_t* options,
                 kiln_load_log_t** out_log, kiln_module_t** out_module);

// Makes a module of code: PTX, a cubin or a fatbin. Nothing is loaded before
// the first kernel or variable is requested; errors of loading (see
// kiln_module_load) are reported then, and the next call tries again. Retains
// `code`. `options` may be NULL; the default name is the code's.
//
// If the code has lowered names, a kernel or variable is found by its name in
// the source too: "add<float>".
//
//   INVALID_ARGUMENT  an argument is NULL, code that must be linked first
//                     (LTO-IR, an object, a library, a relocatable), or
//                     `described_by` is not PTX
//   INVALID_STATE after a fork, OUT_OF_MEMORY
//
// The caller owns `*out_module`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_module_create(
    kiln_device_t* device, kiln_code_t* code,
    const kiln_module_options_t* options, kiln_module_t** out_module);

// Loads the code now; OK if it is loaded already. The errors of
// kiln_module_load. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_module_ready(kiln_module_t* module);

// Whether the code is loaded. Since 0.1.
KILN_API bool kiln_module_is_loaded(const kiln_module_t* module);

// Adds or releases a reference. NULL is accepted. The last release unloads, in
// the device's context whatever is current, which waits for the device's work.
// A kernel retains its module: nothing in use is unloaded. Since 0.1.
KILN_API void kiln_module_retain(kiln_module_t* module);
KILN_API void kiln_module_release(kiln_module_t* module);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_module_device(const kiln_module_t* module);

// The driver's handles, for calls of a host program to the same driver: the
// module (CUmodule), and the library (CUlibrary) that kiln_module_create loads.
// NULL before it is loaded, and for a module that is not a library. Valid as
// long as the module lives. Borrowed. Since 0.1.
KILN_API void* kiln_module_handle(const kiln_module_t* module);
KILN_API void* kiln_module_library(const kiln_module_t* module);

// The kernels of the module, in the order of the file. 0 if the file's format
// does not allow listing them (a fatbin with an old driver), and if the code is
// not loaded yet. Names are borrowed; NULL for an index out of range. Since
// 0.1.
KILN_API uint32_t kiln_module_kernel_count(const kiln_module_t* module);
KILN_API const char* kiln_module_kernel_name(const kiln_module_t* module,
                                             uint32_t index);

// Finds a __device__ or __constant__ variable of the module: its device address
// and its size. Loads the code if necessary; the errors of kiln_module_load.
// NOT_FOUND names the variable. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_module_global(kiln_module_t* module,
                                                        const char* name,
                                                        uint64_t* out_address,
                                                        uint64_t* out_bytes);

// Kinds of parameters, if the file has them. PTX writes pointers and signed
// integers as unsigned ones, so an INTEGER of 8 bytes takes a buffer too.
enum {
  KILN_PARAM_KIND_UNKNOWN = 0,  // any argument of its size
  KILN_PARAM_KIND_INTEGER = 1,
  KILN_PARAM_KIND_FLOAT = 2,
  KILN_PARAM_KIND_BYTES = 3,    // a struct or array
  KILN_PARAM_KIND_POINTER = 4,  // declared as one
};

// A parameter of a kernel. thread-safe
//
// Only the library makes one; fields may be appended in later versions, so
// reach the next one by kiln_kernel_param and not by pointer arithmetic.
typedef struct kiln_kernel_param_t {
  const char* name;  // "" if the file has none
  uint32_t offset;   // bytes, in the packed parameters
  uint32_t bytes;    //
  uint32_t align;    // bytes; 0 if unknown
  uint32_t kind;     // KILN_PARAM_KIND_*
} kiln_kernel_param_t;

// Properties and requirements of a kernel. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_kernel_info_t {
  const char* name;              //
  uint32_t params_known;         // 0: unknown to the file and the driver
  uint32_t param_count;          //
  uint32_t param_bytes;          // end of the last parameter
  uint32_t registers;            // of a thread, 32 bits each
  uint32_t static_shared_bytes;  // of a block
  uint32_t local_bytes;          // of a thread
  uint32_t const_bytes;          //
  uint32_t max_threads;          // of a block
  uint32_t required_block[3];    // .reqntid; zeroes if there is none
  uint32_t reserved;
} kiln_kernel_info_t;

// Finds a kernel by name; NULL is the only kernel of the module. Loads the code
// if necessary; the errors of kiln_module_load.
//
//   NOT_FOUND         no kernel of this name; lists the existing ones
//   INVALID_ARGUMENT  `name` is NULL and the module has several, or they cannot
//                     be listed
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_kernel`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_kernel_create(
    kiln_module_t* module, const char* name, kiln_kernel_t** out_kernel);

// Wraps a driver's kernel (CUkernel, cudaKernel_t), so that it can be launched
// and queried like one of this library. Its module is never unloaded here, and
// lists nothing. `owner` may be NULL (kiln_owner_t).
//
// A kernel of a library that kiln_module_create loaded on this device keeps
// that module alive and needs no owner, so the owner is released before the
// call returns. Drivers report the library of a kernel from CUDA 12.5 on;
// before that, every kernel counts as foreign.
//
//   INVALID_ARGUMENT  `device`, `handle` or `out_kernel` is NULL; not a kernel
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_kernel`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_kernel_adopt(kiln_device_t* device, void* handle,
                  const kiln_owner_t* owner, kiln_kernel_t** out_kernel);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_kernel_retain(kiln_kernel_t* kernel);
KILN_API void kiln_kernel_release(kiln_kernel_t* kernel);

// The module it is of, and its name there. Borrowed. Since 0.1.
KILN_API kiln_module_t* kiln_kernel_module(const kiln_kernel_t* kernel);
KILN_API const char* kiln_kernel_name(const kiln_kernel_t* kernel);

// The driver's handle (CUfunction). Valid as long as the kernel lives.
// Borrowed. Since 0.1.
KILN_API void* kiln_kernel_handle(const kiln_kernel_t* kernel);

// Properties and requirements of the kernel. Does not call the driver.
// Borrowed. Since 0.1.
KILN_API const kiln_kernel_info_t* kiln_kernel_info(
    const kiln_kernel_t* kernel);

// A parameter, the first is 0. Borrowed; NULL for an index out of range.
// Since 0.1.
KILN_API const kiln_kernel_param_t* kiln_kernel_param(
    const kiln_kernel_t* kernel, uint32_t index);

// Attributes of a kernel on its module's device, for kiln_kernel_attribute.
enum {
  KILN_KERNEL_ATTRIBUTE_MAX_THREADS = 0,         // of a block
  KILN_KERNEL_ATTRIBUTE_SHARED_BYTES = 1,        // static, of a block
  KILN_KERNEL_ATTRIBUTE_CONST_BYTES = 2,         //
  KILN_KERNEL_ATTRIBUTE_LOCAL_BYTES = 3,         // of a thread
  KILN_KERNEL_ATTRIBUTE_REGISTERS = 4,           // of a thread
  KILN_KERNEL_ATTRIBUTE_PTX_VERSION = 5,         // 90 is compute_90
  KILN_KERNEL_ATTRIBUTE_BINARY_VERSION = 6,      // 90 is sm_90
  KILN_KERNEL_ATTRIBUTE_CACHE_MODE_CA = 7,       //
  KILN_KERNEL_ATTRIBUTE_MAX_DYNAMIC_SHARED = 8,  // without opting in further
  KILN_KERNEL_ATTRIBUTE_SHARED_CARVEOUT = 9,     // percent; -1: the driver's
  KILN_KERNEL_ATTRIBUTE_CLUSTER_MUST_BE_SET = 10,
  KILN_KERNEL_ATTRIBUTE_CLUSTER_WIDTH = 11,  // required; 0: none
  KILN_KERNEL_ATTRIBUTE_CLUSTER_HEIGHT = 12,
  KILN_KERNEL_ATTRIBUTE_CLUSTER_DEPTH = 13,
  KILN_KERNEL_ATTRIBUTE_CLUSTER_NON_PORTABLE = 14,
  KILN_KERNEL_ATTRIBUTE_CLUSTER_POLICY = 15,
};

// Queries one attribute. Constant attributes are queried from the driver once.
// INVALID_ARGUMENT: no such attribute; INCOMPATIBLE, DEVICE_LOST, DRIVER_ERROR.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_kernel_attribute(
    kiln_kernel_t* kernel, uint32_t attribute, int32_t* out_value);

// ---- Occupancy ----

// Dynamic shared memory of a block of `threads` threads. Must not call Kiln.
typedef size_t (*kiln_block_shared_fn_t)(int threads);

// How many blocks of `threads` threads and `dynamic_bytes` of dynamic shared
// memory fit on one multiprocessor at once; may be 0. INVALID_ARGUMENT:
// `threads` is 0. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_kernel_max_blocks(kiln_kernel_t* kernel, uint32_t threads,
                       uint64_t dynamic_bytes, uint32_t* out_blocks);

// The block size that maximises the number of concurrent threads, and the
// minimum number of blocks that fill the device. `shared_of`, if not NULL,
// returns how much dynamic shared memory a block of each size needs; else every
// block needs `dynamic_bytes`. `limit` is the maximum size; 0 is any.
// DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_kernel_best_block(kiln_kernel_t* kernel, kiln_block_shared_fn_t shared_of,
                       uint64_t dynamic_bytes, uint32_t limit,
                       uint32_t* out_blocks, uint32_t* out_threads);

// Dynamic shared memory that a block may have if `blocks` of `threads` threads
// are to run on one multiprocessor at once. INVALID_ARGUMENT: that many do not
// fit. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_kernel_available_shared(kiln_kernel_t* kernel, uint32_t blocks,
                             uint32_t threads, uint64_t* out_bytes);

// Values of kiln_argument_t.kind.
enum {
  KILN_ARGUMENT_INTEGER = 1,
  KILN_ARGUMENT_FLOAT = 2,
  KILN_ARGUMENT_BUFFER = 3,
  KILN_ARGUMENT_POINTER = 4,
  KILN_ARGUMENT_BYTES = 5,
};

// One argument of a launch: a tagged value. thread-compatible
//
// Make one with a kiln_arg_... function below. Borrows its pointer until the
// launch has returned; a buffer must live until the kernel has ended.
typedef struct kiln_argument_t {
  uint32_t kind;   // KILN_ARGUMENT_*
  uint32_t bytes;  // of the parameter that it fits
  union {
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
    const kiln_buffer_t* buffer;
    const void* data;
  } value;
} kiln_argument_t;

// An integer of 4 bytes. Integers of any signedness fit an integer parameter of
// their size. Since 0.1.
static inline kiln_argument_t kiln_arg_i32(int32_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 4;
  argument.value.i64 = 0;
  argument.value.i32 = value;
  return argument;
}

// The same without a sign. Since 0.1.
static inline kiln_argument_t kiln_arg_u32(uint32_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 4;
  argument.value.u64 = value;
  return argument;
}

// An integer of 8 bytes. Since 0.1.
static inline kiln_argument_t kiln_arg_i64(int64_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 8;
  argument.value.i64 = value;
  return argument;
}

// The same without a sign; a handle of a texture or surface. Since 0.1.
static inline kiln_argument_t kiln_arg_u64(uint64_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 8;
  argument.value.u64 = value;
  return argument;
}

// A float of 4 bytes. Since 0.1.
static inline kiln_argument_t kiln_arg_f32(float value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_FLOAT;
  argument.bytes = 4;
  argument.value.u64 = 0;
  argument.value.f32 = value;
  return argument;
}

// A float of 8 bytes. Since 0.1.
static inline kiln_argument_t kiln_arg_f64(double value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_FLOAT;
  argument.bytes = 8;
  argument.value.f64 = value;
  return argument;
}

// The address of a buffer. NULL is refused by the launch. Since 0.1.
static inline kiln_argument_t kiln_arg_buffer(const kiln_buffer_t* buffer) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_BUFFER;
  argument.bytes = 8;
  argument.value.u64 = 0;
  argument.value.buffer = buffer;
  return argument;
}

// A device address: inside a buffer, or of memory that another library
// allocated. 0 is a null pointer. Since 0.1.
static inline kiln_argument_t kiln_arg_pointer(uint64_t address) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_POINTER;
  argument.bytes = 8;
  argument.value.u64 = address;
  return argument;
}

// `bytes` bytes at `data`, for structs, and for integers of 1 and 2 bytes; fits
// every parameter of that size. Since 0.1.
static inline kiln_argument_t kiln_arg_bytes(const void* data, uint32_t bytes) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_BYTES;
  argument.bytes = bytes;
  argument.value.u64 = 0;
  argument.value.data = data;
  return argument;
}

struct kiln_launch_attributes_t;  // kiln/launch.h

// The shape of a launch. thread-compatible
typedef struct kiln_launch_config_t {
  uint32_t struct_size;   // sizeof(kiln_launch_config_t)
  uint32_t grid[3];       // blocks; 0 is 1
  uint32_t block[3];      // threads; 0 is 1
  uint32_t shared_bytes;  // dynamic shared memory of a block

  // Launch attributes: cooperative, clusters, ... Default: none.
  const struct kiln_launch_attributes_t* attributes;
} kiln_launch_config_t;

// One block of one thread. Since 0.1.
static inline kiln_launch_config_t kiln_launch_config_default(void) {
  kiln_launch_config_t config = {
      (uint32_t)sizeof(config), {0, 0, 0}, {0, 0, 0}, 0, NULL};
  return config;
}

// Puts a launch on a stream and returns; faults of the kernel are reported by
// the call that waits for it. More shared memory than a block has by default is
// requested from the driver if the device has it. For up to 32 arguments and 4
// KiB of parameters it allocates nothing and takes no lock.
//
//   INVALID_ARGUMENT  the number of arguments, the size of one, an integer for
//                     a float or vice versa (index and name of the
//                     parameter are in the message), a NULL buffer,
//                     a stream or buffer of another device, a block that
//                     differs from the kernel's required one, a grid that its
//                     required cluster does not divide, no cluster for a kernel
//                     that is launched in clusters only
//   LIMIT_EXCEEDED    a dimension, the threads of a block, shared memory, the
//                     bytes of all arguments, or more than 4,096 of them:
//                     which, how much, and the limit
//   INCOMPATIBLE, UNSUPPORTED  an attribute that the driver or the device does
//                     not know: kiln/launch.h
//   LAUNCH_FAILED     the driver refused
//   DEVICE_LOST, DRIVER_ERROR, and OUT_OF_MEMORY with more than 32 arguments
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_kernel_launch(kiln_kernel_t* kernel, kiln_stream_t* stream,
                   const kiln_launch_config_t* config,
                   const kiln_argument_t* arguments, uint32_t argument_count);

// ---- Occupancy of clusters ----

// The maximum number of blocks in a cluster of such a launch. 1 on the software
// device, where each block is a cluster by itself.
//
//   INVALID_ARGUMENT  an argument is NULL, or an invalid block size
//   UNSUPPORTED       a GPU below compute capability 9.0, which has no clusters
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_kernel_max_cluster(
    kiln_kernel_t* kernel, const kiln_launch_config_t* config,
    uint32_t* out_blocks);

// How many clusters of such a launch fit on the device at once; may be 0.
// `cluster` is the size of each in blocks, where 0 is 1. Statuses as of
// kiln_kernel_max_cluster, and
//
//   UNSUPPORTED       several blocks, on the software device
//   LAUNCH_FAILED     a cluster that is too large, or does not divide the grid
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_kernel_active_clusters(
    kiln_kernel_t* kernel, const kiln_launch_config_t* config,
    const uint32_t cluster[3], uint32_t* out_clusters);

KILN_EXTERN_C_END

#endif  // KILN_MODULE_H_
