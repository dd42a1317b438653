// SPDX-License-Identifier: Apache-2.0
//
// soft: a warp with its schedule: frames, groups of lanes, the block and the
// worker that it belongs to.
//
// A warp is a value: nothing of it is on the C stack between two instructions.
// Its lanes form groups, each with an address, a frame and a mask; one runs.
// Handlers that end or park a group return what runs next, or NULL when the
// warp has to stop (`outcome` gives the reason).
#ifndef KILN_SRC_SOFT_ENGINE_SOFT_WARP_H_
#define KILN_SRC_SOFT_ENGINE_SOFT_WARP_H_

#include "soft/code/soft_function.h"
#include "soft/engine/soft_grid.h"

enum {
  KILNI_SOFT_RANGE_SITES = 256,  // entries of a worker's range cache
  KILNI_SOFT_BARRIERS = 16,      // of a block
  KILNI_SOFT_CLUSTER_BARRIER = KILNI_SOFT_BARRIERS,  // and that of its cluster
  KILNI_SOFT_QUANTUM = 1 << 14,    // backward branches before a warp yields
  KILNI_SOFT_SPIN_QUANTUM = 16,    // the same once it has synchronised
  KILNI_SOFT_RESIDENT_MAX = 4096,  // blocks of one worker
  KILNI_SOFT_FRAME_CLASSES = 24,   // free lists of frames, by power of two
};

// Plain accesses of racing kernels are races by design.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KILNI_SOFT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define KILNI_SOFT_TSAN 1
#endif
#if defined(KILNI_SOFT_TSAN)
#define KILNI_SOFT_RACY __attribute__((no_sanitize("thread")))
#else
#define KILNI_SOFT_RACY
#endif

typedef struct kilni_soft_frame_t kilni_soft_frame_t;
typedef struct kilni_soft_worker_t kilni_soft_worker_t;
typedef struct kilni_soft_block_t kilni_soft_block_t;

// The registers of one activation of a function. one-thread
struct kilni_soft_frame_t {
  uint8_t* slots;
  uint8_t* constants;
  uint32_t* pred;
  const kilni_soft_function_t* function;
  kilni_soft_frame_t* caller;        // or the next free frame
  const kilni_soft_instr_t* resume;  // in the caller
  uint32_t live;                     // lanes inside, callees included
  uint32_t depth;                    // 0: the kernel
  uint32_t local_base;               // of its local memory in the lane's
  uint32_t size_class;
};

typedef enum kilni_soft_state_t {
  KILNI_SOFT_READY = 0,
  KILNI_SOFT_COLLECTING,  // waits for lanes of `want` at the same instruction
  KILNI_SOFT_MEETING,     // bar.warp.sync: for lanes of `want` at any
  KILNI_SOFT_AT_BARRIER,  // of the block, number `want`
  KILNI_SOFT_AHEAD        // for the kernel in front on the stream
} kilni_soft_state_t;

// Lanes that are together. one-thread
typedef struct kilni_soft_group_t {
  kilni_soft_frame_t* frame;
  const kilni_soft_instr_t* pc;
  uint32_t mask;
  uint32_t want;
  uint64_t stamp;  // when it last ran
  uint32_t state;  // kilni_soft_state_t
  uint32_t reserved;
} kilni_soft_group_t;

typedef enum kilni_soft_outcome_t {
  KILNI_SOFT_RUNNING = 0,
  KILNI_SOFT_YIELDED,  // has more to run
  KILNI_SOFT_BLOCKED,  // every group waits
  KILNI_SOFT_DONE,     // every lane has ended
  KILNI_SOFT_FAULTED
} kilni_soft_outcome_t;

// A warp. one-thread
typedef struct kilni_soft_run_t {
  kilni_soft_warp_t warp;           // first: what handlers see
  const kilni_soft_instr_t* limit;  // nearest group ahead in this frame
  uint64_t steps;                   // instructions of a lane, not yet counted
  kilni_soft_frame_t* frame;        // of the running group
  uint32_t current;                 // its index
  uint32_t group_count;
  uint32_t started;  // lanes that exist
  uint32_t alive;    // lanes that have not ended
  uint32_t outcome;  // kilni_soft_outcome_t
  uint32_t spun;     // it has synchronised in this quantum
  uint32_t rotate;   // the next group to run is the one that waited longest
  uint32_t index;    // in the block
  uint64_t clock;    // of stamps
  uint8_t* local;    // local memory, lane after lane
  uint64_t local_stride;
  uint32_t local_top;  // bytes of a lane in use
  uint32_t own_local;  // `local` was grown: free it
  uint32_t arrived;    // lanes that wait for the cluster's barrier, or will
  uint32_t shuffled;   // the next group to run is the seed's choice
  uint64_t frame_bytes_used;
  kilni_soft_block_t* block;
  kilni_soft_worker_t* worker;
  kilni_soft_grid_t* grid;
  kilni_soft_frame_t root;
  kilni_soft_group_t groups[KILNI_SOFT_LANES];
} kilni_soft_run_t;

// A barrier of a block. one-thread
typedef struct kilni_soft_barrier_t {
  uint32_t arrived;   // threads
  uint32_t padding;   // lanes that the last warp of the block lacks
  uint32_t expected;  // 0: every thread that is alive
  uint32_t lanes;     // that gave a predicate
  uint32_t votes;     // that gave a true one
  uint32_t reserved;
} kilni_soft_barrier_t;

// A block that runs. one-thread
struct kilni_soft_block_t {
  kilni_soft_block_t* next;
  uint8_t* memory;  // of everything: shared, warps, frames, local
  uint8_t* shared;
  kilni_soft_run_t* warps;
  uint64_t linear;
  uint64_t order;  // of starting
  uint32_t index[3];
  uint32_t warp_count;
  uint32_t alive;  // threads
  uint32_t done;   // warps
  uint32_t rounds;
  uint32_t resident;  // its number among the blocks of its worker
  uint64_t start_ns;  // only where the grid is profiled
  uint32_t waits;     // groups of it wait for the kernel in front
  uint32_t said;      // it has let the next kernel on the stream begin
  kilni_soft_barrier_t barriers[KILNI_SOFT_BARRIERS + 1];
};

// A thread that runs blocks of a grid. one-thread
struct kilni_soft_worker_t {
  kilni_soft_grid_t* grid;
  uint32_t number;
  uint32_t generation;  // of the ranges
  uint64_t executed;
  uint64_t random;
  kilni_soft_block_t* resident;
  kilni_soft_block_t* idle;
  uint32_t resident_count;
  uint32_t looked_at;  // warps run in the loop that looks at instructions
  kilni_soft_profile_t* profile;  // NULL: nothing is counted
  kilni_soft_worker_t* next_put_aside;
  kilni_soft_frame_t* frames[KILNI_SOFT_FRAME_CLASSES];
  kilni_soft_range_t ranges[KILNI_SOFT_RANGE_SITES];
};

static inline kilni_soft_run_t* kilni_soft_run(kilni_soft_warp_t* warp) {
  return (kilni_soft_run_t*)warp;
}

// soft_ahead.c: kernels that begin before the one in front has ended.
const kilni_soft_instr_t* kilni_soft_wait_ahead(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_let_follow(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);

// A number that the seed chooses; only where there is a seed.
static inline uint32_t kilni_soft_random(kilni_soft_worker_t* worker) {
  worker->random =
      worker->random * 6364136223846793005ull + 1442695040888963407ull;
  if (!worker->random) worker->random = 1;
  return (uint32_t)(worker->random >> 33);
}

// Not the compiler's own, which is a call where the build names no CPU.
static inline uint32_t kilni_soft_popcount(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return (x * 0x01010101u) >> 24;
}

// soft_warp.c: schedule.
//
// Runs the warp until it stops; `outcome` gives the reason.
void kilni_soft_run_warp(kilni_soft_run_t* run);
// What to run next: the group that the rules choose, or NULL.
const kilni_soft_instr_t* kilni_soft_next(kilni_soft_run_t* run);
// Adds what the running group has executed to the count.
void kilni_soft_flush(kilni_soft_run_t* run);
// Parks the running group at `pc` and chooses another.
const kilni_soft_instr_t* kilni_soft_park(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* pc,
                                          kilni_soft_state_t state,
                                          uint32_t want);
// The lanes of the running group go on at `pc`, in the same frame.
const kilni_soft_instr_t* kilni_soft_jump(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* pc);
// Sets `limit` for the running group.
void kilni_soft_set_limit(kilni_soft_run_t* run);
// Ends the running group's lanes.
const kilni_soft_instr_t* kilni_soft_end_lanes(kilni_soft_run_t* run);
// True if the running group has every living lane of `want`, or has been joined
// by those that waited here; otherwise parks it and sets `*out_next`.
bool kilni_soft_collect(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                        uint32_t want, const kilni_soft_instr_t** out_next);
// The groups that wait with group `index` at other instructions of its kind are
// all that its mask names: their wait is over, and they go on. False if a lane
// is still missing. soft_collect.c.
bool kilni_soft_collect_apart(kilni_soft_run_t* run, uint32_t index);
// The running lanes whose value in slot `word` is that of the first of them.
uint32_t kilni_soft_same_lanes(const kilni_soft_warp_t* warp, uint32_t word);
// Makes a group of the running lanes that are not in `same`, to run `instr`.
void kilni_soft_part(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                     uint32_t same);
// bar.warp.sync.
const kilni_soft_instr_t* kilni_soft_meet(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* instr,
                                          uint32_t want);
// Called where lanes end or park: lets groups go on whose wait is over.
void kilni_soft_settle(kilni_soft_run_t* run);
// Notes that the warp synchronises with others: it gets short turns.
static inline void kilni_soft_spin(kilni_soft_run_t* run) {
  run->spun = 1;
  if (run->warp.budget > KILNI_SOFT_SPIN_QUANTUM) {
    run->warp.budget = KILNI_SOFT_SPIN_QUANTUM;
  }
}

// The order of the lanes of one store, which decides whose value stays where
// several store to one address. A GPU moves 128 bytes at a time (measured on an
// H200, global and shared memory, 6,500 conflicts of each width): 32 lanes of
// up to 4 bytes, 16 of 8, 8 of 16, the low lanes first; of those that go
// together the lowest one's value stays. So lane `i ^ turn` goes in the place
// of `i`, from 31 down to 0.
static inline uint32_t kilni_soft_store_turn(uint32_t bytes) {
  return bytes <= 4 ? 0 : bytes <= 8 ? 16 : 24;
}
// The bit of lane `i ^ turn` of `mask` in the place of `i`.
static inline uint32_t kilni_soft_turned(uint32_t mask, uint32_t turn) {
  if (turn == 0) return mask;
  return turn == 16 ? mask << 16 | mask >> 16 : __builtin_bswap32(mask);
}

// soft_branch.c: the turn is over; the group goes on at `pc` in the next.
const kilni_soft_instr_t* kilni_soft_expire(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* pc);
// Each lane of the group goes to its entry of `targets`.
const kilni_soft_instr_t* kilni_soft_scatter(
    kilni_soft_run_t* run, const kilni_soft_instr_t* branch,
    const kilni_soft_instr_t* const targets[KILNI_SOFT_LANES]);

// soft_frame.c: calls.
const kilni_soft_instr_t* kilni_soft_call_direct(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_call_pointer(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_return(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr);
void kilni_soft_frame_leave(kilni_soft_run_t* run, kilni_soft_frame_t* frame,
                            uint32_t mask);
// Makes `from` and `into` one frame where they are activations of the same
// call; false if they are not.
bool kilni_soft_frame_merge(kilni_soft_run_t* run, kilni_soft_frame_t* into,
                            kilni_soft_frame_t* from);
void kilni_soft_frame_free_all(kilni_soft_worker_t* worker);
// Bytes that an activation of the function takes.
uint64_t kilni_soft_frame_bytes(const kilni_soft_function_t* function);

// soft_block.c: the block's side.
const kilni_soft_instr_t* kilni_soft_barrier(kilni_soft_run_t* run,
                                             const kilni_soft_instr_t* instr);
void kilni_soft_block_settle(kilni_soft_block_t* block);
const kilni_soft_instr_t* kilni_soft_cluster_barrier(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);

// soft_access.c: where bytes are.
//
// The host address of an access by one lane; NULL after reporting a fault.
// `address` is in `space` (kilni_soft_space_t).
void* kilni_soft_access(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                        uint32_t lane, uint32_t space, uint64_t address,
                        uint32_t bytes, bool is_store);
// The same, and where marks are kept they are asked or set.
void* kilni_soft_access_watched(kilni_soft_run_t* run,
                                const kilni_soft_instr_t* instr, uint32_t lane,
                                uint32_t space, uint64_t address,
                                uint32_t bytes, bool is_store);
// A NUL-terminated text of the device, cut at `capacity`; false after a fault.
bool kilni_soft_access_text(kilni_soft_run_t* run,
                            const kilni_soft_instr_t* instr, uint32_t lane,
                            uint64_t address, size_t capacity, char* out_text);

// soft_fault.c.
//
// Ends the grid with a fault of lane `lane`; returns NULL for the handler.
const kilni_soft_instr_t* kilni_soft_fault(kilni_soft_run_t* run,
                                           const kilni_soft_instr_t* instr,
                                           kilni_soft_fault_kind_t kind,
                                           uint32_t lane);
// The same of an instruction that is wrong by `cause` (KILN_FAULT_CAUSE_*).
const kilni_soft_instr_t* kilni_soft_fault_instr(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr, uint32_t cause,
    uint32_t lane);
// Of a condition: the thread that failed it, in one line, and where, in
// another.
const kilni_soft_instr_t* kilni_soft_fault_assert(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr, uint32_t lane,
    const char* condition, const char* place);
// Of free(): what is at `address` was freed already, or malloc() never gave it.
const kilni_soft_instr_t* kilni_soft_fault_free(kilni_soft_run_t* run,
                                                const kilni_soft_instr_t* instr,
                                                uint32_t lane,
                                                uint64_t address);
void kilni_soft_fault_access(kilni_soft_run_t* run,
                             const kilni_soft_instr_t* instr,
                             kilni_soft_fault_kind_t kind, uint32_t lane,
                             uint32_t space, uint64_t address, uint32_t bytes,
                             bool is_store);
void kilni_soft_fault_deadlock(kilni_soft_block_t* block);
void kilni_soft_fault_grid(kilni_soft_grid_t* grid,
                           kilni_soft_fault_kind_t kind, const char* text);
void kilni_soft_thread_of(const kilni_soft_run_t* run, uint32_t lane,
                          uint32_t out_thread[3]);
uint32_t kilni_soft_line_of(const kilni_soft_function_t* function,
                            const kilni_soft_instr_t* instr);

// soft_call.c: functions of the device's own.
const kilni_soft_instr_t* kilni_soft_vprintf(kilni_soft_run_t* run,
                                             const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_assertfail(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_set_conditional(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_malloc(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_free(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* instr);

// soft_async.c.
const kilni_soft_instr_t* kilni_soft_copy_async(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_mbarrier(kilni_soft_run_t* run,
                                              const kilni_soft_instr_t* instr);

// soft_matrix.c: for the whole warp.
const kilni_soft_instr_t* kilni_soft_mma(kilni_soft_run_t* run,
                                         const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_wmma_load(kilni_soft_run_t* run,
                                               const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_wmma_store(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_ldmatrix(kilni_soft_run_t* run,
                                              const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_stmatrix(kilni_soft_run_t* run,
                                              const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_movmatrix(kilni_soft_run_t* run,
                                               const kilni_soft_instr_t* instr);

// soft_half_value.c: one number; what an atomic of f16 or bf16 leaves.
double kilni_soft_half_widen(bool bf16, uint16_t x);
uint16_t kilni_soft_half_narrow(bool bf16, double x);
uint16_t kilni_soft_half_combine(bool bf16, uint32_t action, uint16_t x,
                                 uint16_t y);

// soft_atomic.c.
const kilni_soft_instr_t* kilni_soft_load_sync(kilni_soft_run_t* run,
                                               const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_store_sync(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_atomic(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr);
const kilni_soft_instr_t* kilni_soft_atomic_128(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr);
void kilni_soft_fence(kilni_soft_grid_t* grid);

#endif  // KILN_SRC_SOFT_ENGINE_SOFT_WARP_H_
