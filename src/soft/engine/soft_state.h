// SPDX-License-Identifier: Apache-2.0
//
// soft: the parts of a grid. Only soft_grid.c and the files of the engine look
// inside.
#ifndef KILN_SRC_SOFT_ENGINE_SOFT_STATE_H_
#define KILN_SRC_SOFT_ENGINE_SOFT_STATE_H_

#include <stdatomic.h>

#include "soft/code/soft_code_inside.h"
#include "soft/engine/soft_warp.h"

struct kilni_soft_grid_t {
  const kiln_host_t* host;
  kilni_soft_memory_t* memory;
  const kilni_soft_code_t* code;
  const kilni_soft_entry_t* entry;
  const kilni_soft_function_t* function;
  kilni_soft_launch_t launch;
  uint8_t* params;      // a copy
  uint8_t** constants;  // of each function; NULL where it is not reached
  uint64_t block_count;
  uint32_t threads;  // of a block
  uint32_t warp_count;
  uint32_t shared_bytes;
  uint32_t static_shared_bytes;
  uint32_t reserved_bytes;  // of reserved shared memory; 0: it is not used
  // Of a block's memory: where its parts are.
  uint64_t block_bytes;
  uint64_t warps_offset;
  uint64_t frames_offset;
  uint64_t frame_stride;
  uint64_t local_offset;
  uint64_t local_stride;  // of a lane
  uint64_t shared_offset;
  uint64_t reserved_offset;
  uint64_t stack_bytes;  // of a lane's calls
  uint64_t order_step;   // of block numbers, by the seed
  uint64_t order_start;
  uint64_t start_ns;
  uint64_t workspace;     // device address, of a cooperative grid
  uint64_t marks_offset;  // of a block's shared memory; where there are marks
  const kilni_soft_marks_t* marks;  // of device memory; NULL: none are kept
  // Memory that is freed without waiting for this kernel.
  kilni_soft_freed_t* forbidden;
  size_t forbidden_count;
  bool watched;  // there are marks, or forbidden memory
  atomic_uint_fast64_t next_block;
  atomic_uint_fast64_t executed;
  atomic_uint stop;  // KILNI_SOFT_GOES, ...
  // Of the fault: taken while it is written down; the number of its block in
  // the order of starting; when the first one came.
  atomic_uint fault_lock;
  atomic_uint_fast64_t fault_order;
  atomic_uint_fast64_t fault_ns;
  atomic_uint next_worker;
  atomic_uint fence_word;
  atomic_uint* wide_locks;  // of accesses of 16 bytes; NULL: none are needed
  atomic_uint profile_lock;
  // Of kernels that begin before the one in front has ended (soft_ahead.c).
  atomic_uint held;           // the preceding kernel has not ended
  atomic_uint followed;       // a kernel waits to begin after this one
  atomic_uint_fast64_t said;  // blocks that let others begin, or ended
  _Atomic(kilni_soft_worker_t*) aside;  // workers whose blocks all wait
  kilni_soft_profile_t* profile;        // NULL: not profiled
  kilni_soft_fault_t fault;
};

// Of `stop`. After a fault blocks that began before its own run on for a while:
// one of them may have a fault as well, and that of the block that began first
// is reported, so that the report does not depend on timing. A lane may use
// this many times the stack limit that was set: registers that a GPU would
// spill are not on it here, but its frames are larger.
enum { KILNI_SOFT_STACK_FACTOR = 64 };

enum {
  KILNI_SOFT_GOES = 0,
  KILNI_SOFT_FAULT_THERE,
  KILNI_SOFT_CANCELLED,
};
bool kilni_soft_stops(const kilni_soft_block_t* block, uint32_t stop);
static inline bool kilni_soft_is_stopped(const kilni_soft_grid_t* grid,
                                         const kilni_soft_block_t* block) {
  uint32_t stop = atomic_load_explicit(&grid->stop, memory_order_relaxed);
  return stop != KILNI_SOFT_GOES && kilni_soft_stops(block, stop);
}

// soft_block.c.
kiln_status_t kilni_soft_block_start(kilni_soft_worker_t* worker,
                                     uint64_t linear,
                                     kilni_soft_block_t** out_block);
void kilni_soft_block_free_all(kilni_soft_worker_t* worker);
// Runs every warp once; true while there is more to do.
bool kilni_soft_block_round(kilni_soft_block_t* block, bool* out_spinning);

// soft_fault.c: where a worker that was cancelled had come to.
void kilni_soft_fault_place(kilni_soft_worker_t* worker);

// soft_fault_memory.c: which memory an access meant, of `fault->address` and
// `bytes` in `space`; whether it is known, and what is wrong with the access.
void kilni_soft_fault_memory(kilni_soft_fault_t* fault, kilni_soft_run_t* run,
                             uint32_t space);
// The same where it is known: live memory, and memory that was freed.
void kilni_soft_fault_buffer(kilni_soft_fault_t* fault,
                             const kilni_soft_code_t* code,
                             const kilni_soft_alloc_t* alloc);
void kilni_soft_fault_use(kilni_soft_fault_t* fault,
                          const kilni_soft_freed_t* freed);

// soft_ahead.c.
//
// The block lets the next kernel on the stream begin, once.
void kilni_soft_block_say(kilni_soft_block_t* block);
// Lets its groups go on that waited for the kernel in front, if that has ended.
void kilni_soft_block_release(kilni_soft_block_t* block);
// Puts a worker aside whose blocks all wait; takes one, or NULL.
void kilni_soft_put_aside(kilni_soft_worker_t* worker);
kilni_soft_worker_t* kilni_soft_take_aside(kilni_soft_grid_t* grid);

// soft_profile.c.
//
// Runs the warp from `instr` as kilni_soft_run_warp does, and counts.
void kilni_soft_run_profiled(kilni_soft_run_t* run,
                             const kilni_soft_instr_t* instr);
// Adds what a worker counted to its grid's.
// soft_watch.c.
//
// Looks at the memory that `instr` is about to access, where marks are kept:
// false, after the report, if it reads what was never written.
bool kilni_soft_watch(kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
// The same of one lane.
bool kilni_soft_watch_lane(kilni_soft_run_t* run,
                           const kilni_soft_instr_t* instr, uint32_t lane,
                           uint32_t space, uint64_t address, uint32_t bytes,
                           bool store);
// A read of memory never written. one-thread
typedef struct kilni_soft_unwritten_t {
  uint32_t space;  // shared, or another
  uint32_t bytes;  // of the load
  uint64_t address;
  uint64_t first;            // the first byte that was not written
  kilni_soft_alloc_t alloc;  // but for shared memory
} kilni_soft_unwritten_t;
void kilni_soft_fault_unwritten(kilni_soft_run_t* run,
                                const kilni_soft_instr_t* instr, uint32_t lane,
                                const kilni_soft_unwritten_t* story);
// A use of memory that is freed meanwhile.
void kilni_soft_fault_freed(kilni_soft_run_t* run,
                            const kilni_soft_instr_t* instr, uint32_t lane,
                            uint64_t address, uint32_t bytes, bool store,
                            const kilni_soft_freed_t* freed);
// Where marks are kept: those of the block's shared memory.
static inline kilni_soft_marks_t kilni_soft_shared_marks(
    const kilni_soft_run_t* run) {
  const kilni_soft_grid_t* grid = run->grid;
  void* words = run->block->memory + grid->marks_offset;
  return (kilni_soft_marks_t){words, 0, grid->shared_bytes};
}

void kilni_soft_profile_merge(kilni_soft_worker_t* worker);

#endif  // KILN_SRC_SOFT_ENGINE_SOFT_STATE_H_
