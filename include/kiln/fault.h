// SPDX-License-Identifier: Apache-2.0
//
// table: what a kernel did wrong, as recorded by the software device.
//
// kiln_device_fault returns it as a record; the functions here format a record
// as text. The status of the call that detected the fault has the same text.
#ifndef KILN_FAULT_H_
#define KILN_FAULT_H_

#include "kiln/api.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// What was wrong. thread-compatible
typedef enum kiln_fault_kind_t {
  KILN_FAULT_NONE = 0,
  KILN_FAULT_OUT_OF_BOUNDS,  // an access past or before `memory`
  KILN_FAULT_NULL_POINTER,
  KILN_FAULT_ILLEGAL_ADDRESS,  // in or near no memory of the device
  KILN_FAULT_READ_ONLY,        // a store to constants or parameters
  KILN_FAULT_MISALIGNED,
  KILN_FAULT_USE_AFTER_FREE,
  KILN_FAULT_DOUBLE_FREE,    // by free() in a kernel
  KILN_FAULT_INVALID_FREE,   // free() of a pointer not from malloc()
  KILN_FAULT_UNINITIALIZED,  // a load of uninitialised memory
  KILN_FAULT_ASSERT,
  KILN_FAULT_TRAP,
  KILN_FAULT_DEADLOCK,  // every thread of a block waits for another
  KILN_FAULT_STACK_OVERFLOW,
  KILN_FAULT_ILLEGAL_INSTRUCTION,  // `cause` has the reason
  KILN_FAULT_HOST_MEMORY,          // the host had none left for the kernel
  KILN_FAULT_TIME_LIMIT,           // where the abandoned work was
  KILN_FAULT_GRAPH_LOOP,           // a loop of a graph that cannot end
  KILN_FAULT_WORK,                 // of a copy, a fill or a wait, not a kernel
  KILN_FAULT_KIND_COUNT
} kiln_fault_kind_t;

// The known reason. thread-compatible
typedef enum kiln_fault_cause_t {
  KILN_FAULT_CAUSE_NONE = 0,
  KILN_FAULT_CAUSE_HEAP_FULL,      // malloc() in a kernel had returned NULL
  KILN_FAULT_CAUSE_GRID_SYNC,      // a grid is synchronised, not cooperative
  KILN_FAULT_CAUSE_OWN_MASK,       // a lane waits by a mask that lacks it
  KILN_FAULT_CAUSE_LANES,          // lanes of a mask never come
  KILN_FAULT_CAUSE_BARRIER,        // threads of a block never come
  KILN_FAULT_CAUSE_FREED,          // before, by a call that waits
  KILN_FAULT_CAUSE_FREED_ORDERED,  // before, in the order of a stream
  KILN_FAULT_CAUSE_FREED_PENDING,  // by a stream that does not wait for this
  KILN_FAULT_CAUSE_CALL,           // a call of something that is not such a
                                   // function
  KILN_FAULT_CAUSE_BRANCH,         // an index outside a table of branches
  KILN_FAULT_CAUSE_BARRIER_NUMBER,
  KILN_FAULT_CAUSE_MBARRIER,   // a count that an mbarrier cannot have
  KILN_FAULT_CAUSE_NO_ACCESS,  // the memory exists, but not for this device
  KILN_FAULT_CAUSE_LOOP,       // of a time limit: a loop of a graph went on
  KILN_FAULT_CAUSE_WAIT,       // of one: a wait for a value in memory did
  KILN_FAULT_CAUSE_CONSTANT,   // the variable is in constant memory
  KILN_FAULT_CAUSE_FAR,        // far from all memory, in the device's range
  KILN_FAULT_CAUSE_COUNT
} kiln_fault_cause_t;

// What an access does. thread-compatible
typedef enum kiln_fault_access_t {
  KILN_FAULT_ACCESS_NONE = 0,
  KILN_FAULT_ACCESS_LOAD,
  KILN_FAULT_ACCESS_STORE,
  KILN_FAULT_ACCESS_ATOMIC
} kiln_fault_access_t;

// The memory of `buffer_bytes` and `offset`. thread-compatible
typedef enum kiln_fault_memory_t {
  KILN_FAULT_MEMORY_NONE = 0,
  KILN_FAULT_MEMORY_ALLOCATION,  // device memory
  KILN_FAULT_MEMORY_HOST,        // page-locked or managed
  KILN_FAULT_MEMORY_VARIABLE,    // of a module
  KILN_FAULT_MEMORY_HEAP_BLOCK,  // of malloc() in a kernel
  KILN_FAULT_MEMORY_SHARED,      // a block's
  KILN_FAULT_MEMORY_LOCAL,       // a thread's
  KILN_FAULT_MEMORY_PARAMETERS,  // a kernel's
  KILN_FAULT_MEMORY_COUNT
} kiln_fault_memory_t;

// One fault. thread-compatible
//
// Unknown numbers are 0 and unknown texts "". Begin with _default.
typedef struct kiln_fault_t {
  uint32_t struct_size;
  uint32_t kind;        // KILN_FAULT_*
  uint32_t cause;       // KILN_FAULT_CAUSE_*
  uint32_t access;      // KILN_FAULT_ACCESS_*
  uint32_t memory;      // KILN_FAULT_MEMORY_*
  uint32_t has_thread;  // 1: `block` and `thread` are known
  uint32_t block[3];
  uint32_t thread[3];
  uint32_t ptx_line;     // of the module's text; 1 is the first
  uint32_t source_line;  // by `.loc` in the PTX
  uint32_t call_line;    // where the source's inlined function was called
  uint32_t call_depth;   // of `function`; 0: the kernel itself
  uint64_t address;      // of the access, as the device counts
  uint64_t bytes;        // of the access
  uint64_t buffer;       // address of the intended memory
  uint64_t buffer_bytes;
  int64_t offset;  // of the access in it
  char buffer_name[128];
  char kernel[512];    // as the code has it
  char function[256];  // that the kernel called
  char source[512];    // file of `source_line`
  char call_source[512];
  char node[256];     // of the graph, name or number: "loop/step" in a body
  char detail[1536];  // further details, in lines
} kiln_fault_t;

static inline kiln_fault_t kiln_fault_default(void) {
  kiln_fault_t fault = {(uint32_t)sizeof(fault),
                        0,
                        0,
                        0,
                        0,
                        0,
                        {0, 0, 0},
                        {0, 0, 0},
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        "",
                        "",
                        "",
                        "",
                        "",
                        "",
                        ""};
  return fault;
}

// "out_of_bounds" and so on; "none" also for an unknown number. Since 0.1.
KILN_API const char* kiln_fault_kind_name(uint32_t kind);

// What the kernel did, in one line: "out-of-bounds store of 4 bytes, 0 bytes
// past p (32 bytes)". A caller that knows the name of the memory puts it into
// `buffer_name` first. At most `capacity` bytes with the NUL; `out_length`, if
// not NULL, receives the whole length without it. Since 0.1.
KILN_API void kiln_fault_message(const kiln_fault_t* fault, size_t capacity,
                                 char* buffer, size_t* out_length);

// Where that was, a line each: kernel, source and PTX line, thread, memory.
// Since 0.1.
KILN_API void kiln_fault_notes(const kiln_fault_t* fault, size_t capacity,
                               char* buffer, size_t* out_length);

// How to fix it. Since 0.1.
KILN_API void kiln_fault_fix(const kiln_fault_t* fault, size_t capacity,
                             char* buffer, size_t* out_length);

// The kernel's name in the source: "scale(float*, int)" of "_Z5scalePfi". Since
// 0.1.
KILN_API void kiln_fault_kernel(const kiln_fault_t* fault, size_t capacity,
                                char* buffer, size_t* out_length);

KILN_EXTERN_C_END

#endif  // KILN_FAULT_H_
