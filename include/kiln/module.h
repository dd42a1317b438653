// SPDX-License-Identifier: Apache-2.0
//
// device: modules, kernels, and their launch.
//
// A launch is checked before the driver sees it: how many arguments there are,
// how many bytes each has, and, where the code file says so, which are floats.
#ifndef KILN_MODULE_H_
#define KILN_MODULE_H_

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

// What the driver's compiler said while it loaded a module. thread-safe
//
// Owned by the caller: kiln_load_log_release.
typedef struct kiln_load_log_t kiln_load_log_t;

// The text, several lines; "" where nothing was said. Borrowed. Since 0.1.
KILN_API const char* kiln_load_log_text(const kiln_load_log_t* log);

// Ends the log. NULL is accepted. Since 0.1.
KILN_API void kiln_load_log_release(kiln_load_log_t* log);

// How a module is loaded. thread-compatible
typedef struct kiln_module_options_t {
  uint32_t struct_size;  // sizeof(kiln_module_options_t)
  uint32_t reserved;     // 0
  const char* name;      // what messages call it, e.g. the file. Default: "".
} kiln_module_options_t;

// All defaults. Since 0.1.
static inline kiln_module_options_t kiln_module_options_default(void) {
  kiln_module_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// Loads PTX text (a NUL at its end is not needed), a cubin or a fatbin; which
// one it is, is seen from the bytes, and those are copied. `options` may be
// NULL.
//
// `out_log`, if not NULL, receives the log, also when loading failed. It stays
// NULL without memory, and where the bytes are not looked at: INVALID_ARGUMENT,
// INVALID_STATE after a fork, a device that was lost before.
//
//   INVALID_ARGUMENT  `device` or `out_module` is NULL, or `image` has a size
//                     and no bytes
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

// One reference more, one less. NULL is accepted. The last release unloads,
// which waits for the device's work. Since 0.1.
KILN_API void kiln_module_retain(kiln_module_t* module);
KILN_API void kiln_module_release(kiln_module_t* module);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_module_device(const kiln_module_t* module);

// The kernels of the module, in the order of the file. 0 where the file's
// format (a fatbin, a cubin with an old driver) does not let them be listed.
// Names are borrowed; NULL for an index out of range. Since 0.1.
KILN_API uint32_t kiln_module_kernel_count(const kiln_module_t* module);
KILN_API const char* kiln_module_kernel_name(const kiln_module_t* module,
                                             uint32_t index);

// Address and size of a __device__ or __constant__ variable of the module.
// NOT_FOUND names it. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_module_global(kiln_module_t* module,
                                                        const char* name,
                                                        uint64_t* out_address,
                                                        uint64_t* out_bytes);

// What a parameter is, where the file says so. PTX writes pointers and signed
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
  const char* name;  // "" where the file has none
  uint32_t offset;   // bytes, in the packed parameters
  uint32_t bytes;    //
  uint32_t align;    // bytes; 0 where it is not known
  uint32_t kind;     // KILN_PARAM_KIND_*
} kiln_kernel_param_t;

// What a kernel is and needs. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_kernel_info_t {
  const char* name;              //
  uint32_t params_known;         // 0: neither the file nor the driver tells
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

// Finds a kernel by name; NULL is the only kernel of the module.
//
//   NOT_FOUND         none of this name; those there are, are listed
//   INVALID_ARGUMENT  `name` is NULL and the module has several, or they cannot
//                     be listed
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_kernel`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_kernel_create(
    kiln_module_t* module, const char* name, kiln_kernel_t** out_kernel);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_kernel_retain(kiln_kernel_t* kernel);
KILN_API void kiln_kernel_release(kiln_kernel_t* kernel);

// Borrowed. Since 0.1.
KILN_API kiln_module_t* kiln_kernel_module(const kiln_kernel_t* kernel);
KILN_API const char* kiln_kernel_name(const kiln_kernel_t* kernel);
KILN_API const kiln_kernel_info_t* kiln_kernel_info(
    const kiln_kernel_t* kernel);

// Borrowed; NULL for an index out of range. Since 0.1.
KILN_API const kiln_kernel_param_t* kiln_kernel_param(
    const kiln_kernel_t* kernel, uint32_t index);

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
// Make one with a kiln_arg_... function below. Borrows what it points at until
// the launch has returned; a buffer must live until the kernel has ended.
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

// Values. Integers of any signedness fit an integer parameter of their size.
// Since 0.1.
static inline kiln_argument_t kiln_arg_i32(int32_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 4;
  argument.value.i64 = 0;
  argument.value.i32 = value;
  return argument;
}

// Since 0.1.
static inline kiln_argument_t kiln_arg_u32(uint32_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 4;
  argument.value.u64 = value;
  return argument;
}

// Since 0.1.
static inline kiln_argument_t kiln_arg_i64(int64_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 8;
  argument.value.i64 = value;
  return argument;
}

// Since 0.1.
static inline kiln_argument_t kiln_arg_u64(uint64_t value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_INTEGER;
  argument.bytes = 8;
  argument.value.u64 = value;
  return argument;
}

// Since 0.1.
static inline kiln_argument_t kiln_arg_f32(float value) {
  kiln_argument_t argument;
  argument.kind = KILN_ARGUMENT_FLOAT;
  argument.bytes = 4;
  argument.value.u64 = 0;
  argument.value.f32 = value;
  return argument;
}

// Since 0.1.
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

// The shape of a launch. thread-compatible
typedef struct kiln_launch_config_t {
  uint32_t struct_size;   // sizeof(kiln_launch_config_t)
  uint32_t grid[3];       // blocks; 0 is 1
  uint32_t block[3];      // threads; 0 is 1
  uint32_t shared_bytes;  // dynamic shared memory of a block
} kiln_launch_config_t;

// One block of one thread. Since 0.1.
static inline kiln_launch_config_t kiln_launch_config_default(void) {
  kiln_launch_config_t config = {
      (uint32_t)sizeof(config), {0, 0, 0}, {0, 0, 0}, 0};
  return config;
}

// Puts a launch on a stream and returns; what the kernel does wrong is
// reported by the call that waits for it. More shared memory than a block has
// by default is asked of the driver where the device has it. For up to 32
// arguments and 4 KiB of parameters it allocates nothing and takes no lock.
//
//   INVALID_ARGUMENT  the number of arguments, the size of one, an integer for
//                     a float or the other way round (index and name of the
//                     parameter are in the message), a NULL buffer,
//                     a stream or buffer of another device, a block that
//                     differs from the kernel's required one
//   LIMIT_EXCEEDED    a dimension, the threads of a block, shared memory, or
//                     more than 4,096 arguments: which, how much, and how much
//                     there may be
//   LAUNCH_FAILED     the driver refused
//   DEVICE_LOST, DRIVER_ERROR, and OUT_OF_MEMORY with more than 32 arguments
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_kernel_launch(kiln_kernel_t* kernel, kiln_stream_t* stream,
                   const kiln_launch_config_t* config,
                   const kiln_argument_t* arguments, uint32_t argument_count);

KILN_EXTERN_C_END

#endif  // KILN_MODULE_H_
