// SPDX-License-Identifier: Apache-2.0
//
// runtime: the root object, from which everything else is opened.
//
// A runtime has what a process decides once: the allocator, the log sink, a
// snapshot of the environment, which driver library is taken. It starts no
// driver by itself; opening a device does.
//
//   kiln_runtime_t* runtime = NULL;
//   kiln_device_t* device = NULL;
//   kiln_status_t status = kiln_runtime_create(NULL, &runtime);
//   if (kiln_status_is_ok(status)) {
//     status = kiln_runtime_open_device(runtime, "auto", &device);
//   }
//
// After fork, every call in the child on a runtime of the parent, or on
// anything opened from it, is INVALID_STATE. A release in the child does
// nothing at all. A runtime that the child creates itself has a software device
// of its own; CUDA works in no child of a process that has used it, so start a
// child that needs a GPU with exec, or fork before the first device is opened.
#ifndef KILN_RUNTIME_H_
#define KILN_RUNTIME_H_

#include "kiln/allocator.h"
#include "kiln/cache.h"
#include "kiln/compile.h"
#include "kiln/device.h"
#include "kiln/dispatch.h"
#include "kiln/link.h"
#include "kiln/log.h"
#include "kiln/probe.h"
#include "kiln/status.h"
#include "kiln/toolkit.h"
#include "kiln/watch.h"

KILN_EXTERN_C_BEGIN

// The root. thread-safe
//
// Reference-counted. Every object opened from a runtime retains it, so it may
// be released at any time.
typedef struct kiln_runtime_t kiln_runtime_t;

// Receives what kernels print on the software device: `size` bytes, whole
// lines or parts of them, not NUL-terminated. Called from Kiln's own threads,
// also from several at once; must not call back into Kiln. (A GPU's driver
// writes to file descriptor 1 by itself.) thread-safe
typedef void (*kiln_print_fn_t)(const char* text, size_t size, void* user);

// What a runtime is made with. thread-compatible
//
// Zero in any field is its default. Strings and pointed-to structs are copied.
typedef struct kiln_runtime_options_t {
  uint32_t struct_size;  // sizeof(kiln_runtime_options_t)

  // KILN_SWITCH_*: log each call into the driver and NVRTC with arguments and
  // result, at level KILN_LOG_TRACE. Default: the variable KILN_TRACE, else
  // off. Two drivers and two compilers of a process can be traced at once.
  uint32_t trace;

  // Default: kiln_allocator_libc().
  const kiln_allocator_t* allocator;

  // Default: none.
  const kiln_log_sink_t* log;

  // Worker threads of the software device. Default: the variable
  // KILN_SOFT_WORKERS, else one for each core that the process may use.
  uint32_t soft_workers;

  // KILN_SWITCH_*: check addresses by page, as hardware does, and not by byte.
  // Default: the variable KILN_SOFT_CHECK, else by byte.
  uint32_t soft_page_check;

  // Seed for every order that CUDA leaves undefined, on the software device.
  // Default: the variable KILN_SOFT_SEED, else 0.
  uint64_t soft_seed;

  // Lane code of the software device: "auto", "plain", "avx2" or "avx512".
  // Default: the variable KILN_SOFT_LANES, else "auto".
  const char* soft_lanes;

  // The driver library: a path, or a name for the system loader. Default: the
  // variable KILN_LIBCUDA, else "libcuda.so.1".
  const char* cuda_library;

  // What kernels print on the software device. Default: it is dropped.
  kiln_print_fn_t print;
  void* print_user;

  // How components of a toolkit are found, checked and loaded; its allocator
  // and log are not read, the runtime's are taken. Default: all defaults of
  // kiln_toolkit_create.
  const kiln_toolkit_options_t* toolkit;

  // How compiled and linked code is kept, kiln_runtime_cache; its allocator and
  // log are not read, the runtime's are taken. Default: all defaults of
  // kiln_cache_create.
  const kiln_cache_options_t* cache;

  // How many software devices there are, 8 at most: "soft", "soft:1" and so on,
  // each with its own memory, addresses checked by byte. Default: the variable
  // KILN_SOFT_DEVICES, else 1.
  uint32_t soft_devices;
  uint32_t reserved;  // 0

  // Errors of programs that the software device detects, names with commas
  // between: "unwritten", "freed", or "all". "": none. Default: the variable
  // KILN_SOFT_REPORT, else none.
  const char* soft_report;

  // When its work runs: "auto", or "latest", only when something waits for it.
  // Default: the variable KILN_SOFT_ORDER, else "auto".
  const char* soft_order;
} kiln_runtime_options_t;

// All defaults. Since 0.1.
static inline kiln_runtime_options_t kiln_runtime_options_default(void) {
  kiln_runtime_options_t options = {(uint32_t)sizeof(options),
                                    0,
                                    NULL,
                                    NULL,
                                    0,
                                    0,
                                    0,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    0,
                                    0,
                                    NULL,
                                    NULL};
  return options;
}

// Makes a runtime. `options` may be NULL. Reads the environment; opens no
// library and starts no thread.
//
//   INVALID_ARGUMENT  an option out of its range, or an environment variable
//                     with an invalid value (it is named)
//   INCOMPATIBLE      options of a newer Kiln that set an unknown field
//   OUT_OF_MEMORY
//
// The caller owns `*out_runtime`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_runtime_create(
    const kiln_runtime_options_t* options, kiln_runtime_t** out_runtime);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_runtime_retain(kiln_runtime_t* runtime);
KILN_API void kiln_runtime_release(kiln_runtime_t* runtime);

// The context of the process: what the runtime itself finds and loads goes
// through it. Borrowed. Since 0.1.
KILN_API kiln_toolkit_t* kiln_runtime_toolkit(kiln_runtime_t* runtime);

// The cache of the process: pass it to a compilation or a link to cache its
// result. Nothing is cached automatically. Borrowed. Since 0.1.
KILN_API kiln_cache_t* kiln_runtime_cache(kiln_runtime_t* runtime);

// Opens a device by its label. Each call makes an object of its own, over what
// a process has once: a GPU's primary context, or the software device of that
// number, whichever runtime opens it. So objects of two runtimes share memory,
// a stream's work, and a fault: a kernel that faults on a software device
// loses it for every runtime of the process, as on a GPU.
//
//   "cuda:N"  the driver's GPU number N (N counts the GPUs that
//             CUDA_VISIBLE_DEVICES leaves visible)
//   "GPU-..." the GPU of that UUID, or of the only one that begins so;
//   "MIG-..."
//             a part of one. `kiln doctor` and `nvidia-smi -L` list them
//   "0000:3b:00.0"  the GPU at that address of the PCI bus; "3b:00.0" is in
//             domain 0
//   "soft"    the software device; "soft:N" the one of that number, where there
//             are several
//   "auto"    "cuda:0" where that works, else "soft": by this label the caller
//             allows the software device. kiln_device_note then has the reason
//             why the GPU was not taken. Kiln never takes the software device
//             otherwise.
//
//   INVALID_ARGUMENT  `label` is none of these
//   NOT_FOUND         no driver library, or no such device
//   INCOMPATIBLE      the driver is too old (or its kernel part another than
//                     its library)
//   UNSUPPORTED       this CPU does not support the requested lane code
//   DEVICE_LOST       a kernel has faulted on it in this process, on a GPU
//                     since this runtime opened one. A GPU comes back in a
//                     new process. A software device comes back in this one
//                     too: when every runtime that has opened a software
//                     device is released, with all that was opened from it,
//                     the next open begins a new one
//   DRIVER_ERROR      the driver refused; the native part has its number
//
// The caller owns `*out_device`. May take long on a GPU (creating a context
// is about 0.3 s). Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_runtime_open_device(
    kiln_runtime_t* runtime, const char* label, kiln_device_t** out_device);

// Finds and opens a compiler: NVRTC, or by its options libNVVM. `options` may
// be NULL.
//
//   NOT_FOUND     no usable one; the annotations list each place that was
//                 tried and why it was not taken
//   INCOMPATIBLE  one was named explicitly and it is older than 12.0; or the
//                 context refuses it, or its headers
//   INSUFFICIENT_METADATA  the context is strict and cannot decide
//   LIMIT_EXCEEDED  `trace` is on and two compilers are traced already
//
// The caller owns `*out_compiler`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_runtime_open_compiler(
    kiln_runtime_t* runtime, const kiln_compiler_options_t* options,
    kiln_compiler_t** out_compiler);

// Options of a linker. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_linker_options_t {
  uint32_t struct_size;  // sizeof(kiln_linker_options_t)
  uint32_t reserved;     // 0

  // The device that will load what is linked: its architecture is the default,
  // its driver is the one to check against and that may link. It is retained.
  // Default: none; nvJitLink alone links, for the driver of this machine.
  kiln_device_t* device;

  // nvJitLink: a file, or a name for the system loader. Default: every copy
  // that the runtime's context finds (kiln_runtime_toolkit).
  const char* nvjitlink;

  // The driver that will load the result, if that is another machine's. Copied.
  // Default: the device's, else the one of this machine.
  const kiln_compat_driver_t* driver;
} kiln_linker_options_t;

// All defaults. Since 0.1.
static inline kiln_linker_options_t kiln_linker_options_default(void) {
  kiln_linker_options_t options = {(uint32_t)sizeof(options), 0, NULL, NULL,
                                   NULL};
  return options;
}

// Makes a linker; it searches nothing before the first link. `options` may be
// NULL. INVALID_ARGUMENT, INVALID_STATE, OUT_OF_MEMORY. The caller owns
// `*out_linker`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_runtime_open_linker(
    kiln_runtime_t* runtime, const kiln_linker_options_t* options,
    kiln_linker_t** out_linker);

// Makes a dispatcher (kiln/dispatch.h) that keeps machine code of pipelines in
// the runtime's cache, linked for `device`; or where `options` names a cache
// and a linker, as these say. `options` may be NULL. Statuses as
// kiln_dispatcher_create, and INVALID_STATE. The caller owns `*out_dispatcher`.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_runtime_open_dispatcher(kiln_runtime_t* runtime, kiln_device_t* device,
                             const kiln_dispatcher_options_t* options,
                             kiln_dispatcher_t** out_dispatcher);

// Collects the facts about this machine: driver, GPUs, toolkits, compiler,
// software device, environment, and what is wrong with them. What is missing is
// a fact and a problem in the report, not an error. `options` may be NULL.
// OUT_OF_MEMORY, INVALID_ARGUMENT. The caller owns `*out_probe`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_runtime_probe(kiln_runtime_t* runtime, const kiln_probe_options_t* options,
                   kiln_probe_t** out_probe);

// Opens NVML (KILN_LIBNVML or the system's) and takes a first sample of what
// the GPUs do. A machine without NVML or without a GPU is not an error: there
// are 0 devices then, and kiln_watch_why has the reason. `options` may be NULL.
// INVALID_ARGUMENT, INVALID_STATE after a fork, OUT_OF_MEMORY. The caller owns
// `*out_watch`, which keeps the runtime: kiln_watch_close. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_runtime_watch(kiln_runtime_t* runtime, const kiln_watch_options_t* options,
                   kiln_watch_t** out_watch);

KILN_EXTERN_C_END

#endif  // KILN_RUNTIME_H_
