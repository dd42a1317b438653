// SPDX-License-Identifier: Apache-2.0
//
// soft: a launched kernel: blocks handed out to worker threads, warps run to
// their end, the first fault kept.
//
// The driver front makes a grid, lets any number of worker threads call `work`
// on it, and destroys it when the last has come back.
#ifndef KILN_SRC_SOFT_ENGINE_SOFT_GRID_H_
#define KILN_SRC_SOFT_ENGINE_SOFT_GRID_H_

#include "kiln/fault.h"
#include "soft/code/soft_code.h"
#include "soft/engine/soft_profile.h"

enum { KILNI_SOFT_DETAIL_BYTES = 1024 };

// What ended a kernel early: what the driver makes a result of.
// thread-compatible
typedef enum kilni_soft_fault_kind_t {
  KILNI_SOFT_FAULT_NONE = 0,
  KILNI_SOFT_FAULT_ILLEGAL_ADDRESS,
  KILNI_SOFT_FAULT_MISALIGNED,
  KILNI_SOFT_FAULT_TRAP,
  KILNI_SOFT_FAULT_ASSERT,
  KILNI_SOFT_FAULT_DEADLOCK,             // every thread waits for another
  KILNI_SOFT_FAULT_STACK,                // calls deeper than the limit
  KILNI_SOFT_FAULT_ILLEGAL_INSTRUCTION,  // e.g. a call of no function
  KILNI_SOFT_FAULT_OUT_OF_MEMORY,        // the host has none for warps
  KILNI_SOFT_FAULT_CANCELLED,
  KILNI_SOFT_FAULT_UNWRITTEN,  // a load of uninitialised memory
} kilni_soft_fault_kind_t;

// The fault of a grid: of those there are, that of the block that began first.
// Names are the module's, and as long there. thread-compatible
typedef struct kilni_soft_fault_t {
  kilni_soft_fault_kind_t kind;
  uint32_t what;    // KILN_FAULT_*
  uint32_t cause;   // KILN_FAULT_CAUSE_*
  uint32_t memory;  // KILN_FAULT_MEMORY_*
  uint32_t line;    // of the PTX
  uint32_t has_thread;
  uint32_t thread[3];
  uint32_t block[3];
  uint64_t address;  // device address, where there is one
  uint32_t bytes;    // of the access
  uint32_t is_store;
  uint32_t is_atomic;
  uint32_t depth;   // of calls
  uint64_t buffer;  // what the access meant: its address,
  uint64_t buffer_bytes;
  int64_t offset;    // and the access in it
  const char* name;  // of that memory; NULL where it has none
  const char* kernel;
  const char* function;  // NULL: the kernel itself
  const char* source;    // file; NULL: not known
  const char* call_source;
  uint32_t source_line;
  uint32_t call_line;
  char detail[KILNI_SOFT_DETAIL_BYTES];  // further lines
} kilni_soft_fault_t;

// Returns that as a record of kiln/soft.h, whose `struct_size` is set.
void kilni_soft_fault_tell(const kilni_soft_fault_t* fault,
                           kiln_fault_t* out_fault);

// A running kernel. thread-safe
typedef struct kilni_soft_grid_t kilni_soft_grid_t;

// What to run. thread-compatible
typedef struct kilni_soft_launch_t {
  const kilni_soft_entry_t* entry;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t stack_bytes;  // local memory of a thread for calls (limit)
  uint32_t cooperative;  // all blocks are resident at once; 0 or 1
  uint32_t profiled;     // count what it does (soft_profile.h); 0 or 1
  const void* params;    // packed, entry->param_bytes; copied
  uint64_t seed;         // of every order that CUDA leaves open
  // Of kernels that may begin before the preceding one on the stream has ended,
  // and of the kernels before such, under a seed. `released` is called once,
  // when all blocks have let the next kernel begin, or ended; `pause` is called
  // between turns after that, and may run others meanwhile. NULL: neither.
  void (*released)(kilni_soft_grid_t* grid, void* user);
  void (*pause)(kilni_soft_grid_t* grid, void* user);
  void* ahead_user;
  uint32_t held;  // 1: griddepcontrol.wait waits for the one in front
  uint32_t reserved;
  uint64_t stream;  // for reports: its handle, and
  uint64_t work;    // the launch's number among everything issued
  // Receives what kernels print, whole lines or parts, from any worker.
  void (*print)(const char* text, size_t size, void* user);
  void* print_user;
} kilni_soft_launch_t;

kiln_status_t kilni_soft_grid_create(const kiln_host_t* host,
                                     kilni_soft_memory_t* memory,
                                     const kilni_soft_launch_t* launch,
                                     kilni_soft_grid_t** out_grid);
void kilni_soft_grid_destroy(kilni_soft_grid_t* grid);

// Before anybody works on it: memory that the kernel may not use, since it is
// freed without waiting for it. The list is copied.
kiln_status_t kilni_soft_grid_forbid(kilni_soft_grid_t* grid,
                                     const kilni_soft_freed_t* list,
                                     size_t count);

// Bytes of the host that a block of a grid takes. thread-compatible
typedef struct kilni_soft_footprint_t {
  uint64_t state;   // warps and registers, those of one call of each function
  uint64_t local;   // the threads' own, arguments of calls with it, and
  uint64_t shared;  // the block's: as the kernel asks for them
} kilni_soft_footprint_t;

void kilni_soft_grid_footprint(const kilni_soft_grid_t* grid,
                               kilni_soft_footprint_t* out_footprint);

// Runs blocks until none is left to start and its own are done, or all wait for
// the preceding kernel (they are then put aside for the next worker), or the
// grid has a fault or is cancelled. Sets and restores the floating-point
// control register. Several threads call it at once. Allocates once when it
// starts.
void kilni_soft_grid_work(kilni_soft_grid_t* grid);

// For one of `inside` workers that has started no block yet: how many more
// would find one.
uint64_t kilni_soft_grid_space(const kilni_soft_grid_t* grid, uint64_t inside);

// True while a further worker would find a block to start.
bool kilni_soft_grid_wants_work(kilni_soft_grid_t* grid);

// The kernel before a held grid has ended: its waits are over.
void kilni_soft_grid_let_go(kilni_soft_grid_t* grid);
// A kernel waits to begin after it.
void kilni_soft_grid_follow(kilni_soft_grid_t* grid);
// No worker is inside, and blocks of it wait for what is in front.
bool kilni_soft_grid_is_aside(kilni_soft_grid_t* grid);

// Makes every worker return soon (a fault of kind CANCELLED, which reports
// where threads were).
void kilni_soft_grid_cancel(kilni_soft_grid_t* grid);

// Valid when no worker is inside: the fault (kind NONE if there is none) and
// the thread-instructions executed.
const kilni_soft_fault_t* kilni_soft_grid_fault(const kilni_soft_grid_t* grid);
uint64_t kilni_soft_grid_executed(const kilni_soft_grid_t* grid);
// What a profiled grid did; NULL for others.
const kilni_soft_profile_t* kilni_soft_grid_profile(
    const kilni_soft_grid_t* grid);

#endif  // KILN_SRC_SOFT_ENGINE_SOFT_GRID_H_
