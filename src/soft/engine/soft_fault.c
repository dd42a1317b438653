// SPDX-License-Identifier: Apache-2.0
//
// soft: the fault of a grid: where it was, what it did.
//
// Several blocks may fault at once on several workers. That of the block that
// began first is kept, so that one worker and many report the same: after the
// first fault, blocks that began before its own run on for a while.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "soft/engine/soft_state.h"

enum {
  // How long earlier blocks run on: they may wait for the one that has ended.
  AFTER_FAULT_NS = 200 * 1000 * 1000,
  LINE_BYTES = 160,  // of space that a line more needs
  PLACES = 4,        // of threads that a cancelled kernel reports
  WHOLE = 0,         // the order of faults outside any block
};

static void fault_add(kilni_soft_fault_t* fault, const char* format, ...)
    KILN_PRINTF(2, 3);
static void fault_add(kilni_soft_fault_t* fault, const char* format, ...) {
  size_t used = strlen(fault->detail);
  va_list args;
  va_start(args, format);
  vsnprintf(fault->detail + used, sizeof(fault->detail) - used, format, args);
  va_end(args);
}

static bool fault_has_space(const kilni_soft_fault_t* fault) {
  return strlen(fault->detail) + LINE_BYTES < sizeof(fault->detail);
}

// ---- Which fault is kept ----

static void fault_lock(kilni_soft_grid_t* grid) {
  while (atomic_exchange(&grid->fault_lock, 1u)) kilni_base_thread_yield();
}

static void fault_unlock(kilni_soft_grid_t* grid) {
  atomic_store(&grid->fault_lock, 0u);
}

// The fault to fill in, until `fault_publish`, or NULL where one is there of a
// block that began earlier, or the kernel is cancelled.
static kilni_soft_fault_t* claim(kilni_soft_grid_t* grid, uint64_t order) {
  fault_lock(grid);
  bool first = atomic_load(&grid->stop) == KILNI_SOFT_GOES;
  if (atomic_load(&grid->stop) == KILNI_SOFT_CANCELLED ||
      (!first && order >= atomic_load(&grid->fault_order))) {
    fault_unlock(grid);
    return NULL;
  }
  if (first) atomic_store(&grid->fault_ns, kilni_base_time_ns());
  atomic_store(&grid->fault_order, order);
  memset(&grid->fault, 0, sizeof(grid->fault));
  grid->fault.kernel = grid->entry->name;
  return &grid->fault;
}

static void fault_publish(kilni_soft_grid_t* grid) {
  unsigned none = KILNI_SOFT_GOES;
  atomic_compare_exchange_strong(&grid->stop, &none, KILNI_SOFT_FAULT_THERE);
  fault_unlock(grid);
}

bool kilni_soft_stops(const kilni_soft_block_t* block, uint32_t stop) {
  kilni_soft_grid_t* grid = block->warps[0].grid;
  return stop == KILNI_SOFT_CANCELLED ||
         block->order >= atomic_load(&grid->fault_order) ||
         kilni_base_time_ns() - atomic_load(&grid->fault_ns) > AFTER_FAULT_NS;
}

// ---- Where ----

uint32_t kilni_soft_line_of(const kilni_soft_function_t* function,
                            const kilni_soft_instr_t* instr) {
  ptrdiff_t at = instr - function->code;
  if (at < 0 || (uint64_t)at >= function->instr_count) return 0;
  return function->lines[at];
}

void kilni_soft_thread_of(const kilni_soft_run_t* run, uint32_t lane,
                          uint32_t out_thread[3]) {
  const uint32_t* block = run->grid->launch.block;
  uint32_t t = run->index * KILNI_SOFT_LANES + lane;
  out_thread[0] = t % block[0];
  t /= block[0];
  out_thread[1] = t % block[1];
  out_thread[2] = t / block[1];
}

static void fill_lines(kilni_soft_fault_t* fault, const kilni_soft_grid_t* grid,
                       uint32_t line) {
  const kilni_soft_code_t* code = grid->code;
  const kilni_soft_line_t* found = kilni_soft_lines_find(code, line);
  fault->line = line;
  if (!found) return;
  fault->source = code->files[found->file];
  fault->source_line = found->line;
  if (found->call_file == KILNI_SOFT_NONE) return;
  fault->call_source = code->files[found->call_file];
  fault->call_line = found->call_line;
}

// ", x.cu:5, PTX line 31".
static void fault_add_lines(kilni_soft_fault_t* fault,
                            const kilni_soft_grid_t* grid, uint32_t line) {
  const kilni_soft_line_t* found = kilni_soft_lines_find(grid->code, line);
  if (found) {
    const char* file = grid->code->files[found->file];
    const char* slash = strrchr(file, '/');
    fault_add(fault, ", %.80s:%" PRIu32, slash ? slash + 1 : file, found->line);
  }
  fault_add(fault, ", PTX line %" PRIu32 "\n", line);
}

// What is the same in every fault of a lane.
static void fill_place(kilni_soft_fault_t* fault, const kilni_soft_run_t* run,
                       const kilni_soft_frame_t* frame,
                       const kilni_soft_instr_t* instr, uint32_t lane) {
  fill_lines(fault, run->grid, kilni_soft_line_of(frame->function, instr));
  kilni_soft_thread_of(run, lane, fault->thread);
  memcpy(fault->block, run->block->index, sizeof(fault->block));
  fault->has_thread = 1;
  fault->depth = frame->depth;
  if (frame->depth) fault->function = frame->function->name;
}

// Begins the fault of a lane; NULL where another one is kept.
static kilni_soft_fault_t* fault_begin(kilni_soft_run_t* run,
                                       const kilni_soft_instr_t* instr,
                                       kilni_soft_fault_kind_t kind,
                                       uint32_t what, uint32_t lane) {
  kilni_soft_flush(run);
  run->outcome = KILNI_SOFT_FAULTED;
  kilni_soft_fault_t* fault = claim(run->grid, run->block->order);
  if (!fault) return NULL;
  fault->kind = kind;
  fault->what = what;
  fill_place(fault, run, run->frame, instr, lane);
  return fault;
}

// ---- Faults of a lane ----

// Whether the kernel synchronises its grid, which traps unless it was launched
// cooperatively.
static bool wants_cooperation(const kilni_soft_grid_t* grid) {
  if (grid->launch.cooperative) return false;
  for (uint32_t f = 0; f < grid->code->function_count; f++) {
    const kilni_soft_function_t* function = &grid->code->functions[f];
    for (uint32_t i = 0; grid->constants[f] && i < function->constant_count;
         i++) {
      if (function->constants[i].kind == KILNI_SOFT_CONSTANT_WORKSPACE) {
        return true;
      }
    }
  }
  return false;
}

static uint32_t what_of(kilni_soft_fault_kind_t kind) {
  switch (kind) {
    case KILNI_SOFT_FAULT_TRAP:
      return KILN_FAULT_TRAP;
    case KILNI_SOFT_FAULT_STACK:
      return KILN_FAULT_STACK_OVERFLOW;
    case KILNI_SOFT_FAULT_OUT_OF_MEMORY:
      return KILN_FAULT_HOST_MEMORY;
    default:
      return KILN_FAULT_ILLEGAL_INSTRUCTION;
  }
}

const kilni_soft_instr_t* kilni_soft_fault(kilni_soft_run_t* run,
                                           const kilni_soft_instr_t* instr,
                                           kilni_soft_fault_kind_t kind,
                                           uint32_t lane) {
  kilni_soft_fault_t* fault =
      fault_begin(run, instr, kind, what_of(kind), lane);
  if (!fault) return NULL;
  if (kind == KILNI_SOFT_FAULT_TRAP && wants_cooperation(run->grid)) {
    fault->cause = KILN_FAULT_CAUSE_GRID_SYNC;
  }
  if (kind == KILNI_SOFT_FAULT_STACK) {
    fault_add(fault,
              "stack overflow: a call would exceed %" PRIu64
              " bytes, %d times the limit",
              run->grid->stack_bytes * KILNI_SOFT_STACK_FACTOR,
              KILNI_SOFT_STACK_FACTOR);
  }
  if (kind == KILNI_SOFT_FAULT_OUT_OF_MEMORY) {
    fault_add(fault, "the host has no memory for the registers of a call");
  }
  fault_publish(run->grid);
  return NULL;
}

const kilni_soft_instr_t* kilni_soft_fault_instr(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr, uint32_t cause,
    uint32_t lane) {
  kilni_soft_fault_t* fault =
      fault_begin(run, instr, KILNI_SOFT_FAULT_ILLEGAL_INSTRUCTION,
                  KILN_FAULT_ILLEGAL_INSTRUCTION, lane);
  if (!fault) return NULL;
  fault->cause = cause;
  fault_publish(run->grid);
  return NULL;
}

const kilni_soft_instr_t* kilni_soft_fault_assert(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr, uint32_t lane,
    const char* condition, const char* place) {
  kilni_soft_fault_t* fault =
      fault_begin(run, instr, KILNI_SOFT_FAULT_ASSERT, KILN_FAULT_ASSERT, lane);
  if (!fault) return NULL;
  fault_add(fault, "assertion `%.400s` failed\n", condition);
  if (fault->source_line == 0) fault_add(fault, "asserted at %.400s\n", place);
  fault_publish(run->grid);
  return NULL;
}

static void fill_access(kilni_soft_fault_t* fault,
                        const kilni_soft_instr_t* instr, uint64_t address,
                        uint32_t bytes, bool is_store) {
  fault->address = address;
  fault->bytes = bytes;
  fault->is_store = is_store;
  fault->is_atomic =
      instr->op == KILNI_SOFT_OP_atom || instr->op == KILNI_SOFT_OP_atom_b128;
}

void kilni_soft_fault_access(kilni_soft_run_t* run,
                             const kilni_soft_instr_t* instr,
                             kilni_soft_fault_kind_t kind, uint32_t lane,
                             uint32_t space, uint64_t address, uint32_t bytes,
                             bool is_store) {
  kilni_soft_fault_t* fault =
      fault_begin(run, instr, kind, KILN_FAULT_OUT_OF_BOUNDS, lane);
  if (!fault) return;
  fill_access(fault, instr, address, bytes, is_store);
  if (kind == KILNI_SOFT_FAULT_MISALIGNED) fault->what = KILN_FAULT_MISALIGNED;
  kilni_soft_fault_memory(fault, run, space);
  fault_publish(run->grid);
}

const kilni_soft_instr_t* kilni_soft_fault_free(kilni_soft_run_t* run,
                                                const kilni_soft_instr_t* instr,
                                                uint32_t lane,
                                                uint64_t address) {
  kilni_soft_memory_t* memory = run->grid->memory;
  kilni_soft_freed_t freed;
  kilni_soft_alloc_t alloc;
  kilni_soft_fault_t* fault =
      fault_begin(run, instr, KILNI_SOFT_FAULT_ILLEGAL_ADDRESS,
                  KILN_FAULT_INVALID_FREE, lane);
  if (!fault) return NULL;
  fault->address = address;
  if (kilni_soft_memory_query(memory, address, &alloc)) {
    kilni_soft_fault_buffer(fault, run->grid->code, &alloc);
  } else if (kilni_soft_memory_freed(memory, address, &freed) &&
             freed.kind == KILNI_SOFT_ALLOC_HEAP && freed.address == address) {
    fault->what = KILN_FAULT_DOUBLE_FREE;
    fault->memory = KILN_FAULT_MEMORY_HEAP_BLOCK;
    fault->buffer = freed.address;
    fault->buffer_bytes = freed.bytes;
  }
  fault_publish(run->grid);
  return NULL;
}

void kilni_soft_fault_unwritten(kilni_soft_run_t* run,
                                const kilni_soft_instr_t* instr, uint32_t lane,
                                const kilni_soft_unwritten_t* story) {
  kilni_soft_fault_t* fault = fault_begin(
      run, instr, KILNI_SOFT_FAULT_UNWRITTEN, KILN_FAULT_UNINITIALIZED, lane);
  if (!fault) return;
  fill_access(fault, instr, story->address, story->bytes, false);
  if (story->space == KILNI_SOFT_SPACE_SHARED) {
    fault->memory = KILN_FAULT_MEMORY_SHARED;
    fault->buffer_bytes = run->grid->shared_bytes;
    fault->offset = (int64_t)story->first;
    fault_add(fault, "no thread of the block has written it\n");
  } else {
    kilni_soft_fault_buffer(fault, run->grid->code, &story->alloc);
    fault->offset = (int64_t)(story->first - story->alloc.address);
    fault_add(fault, "no kernel, copy or fill has written it\n");
  }
  fault_publish(run->grid);
}

void kilni_soft_fault_freed(kilni_soft_run_t* run,
                            const kilni_soft_instr_t* instr, uint32_t lane,
                            uint64_t address, uint32_t bytes, bool store,
                            const kilni_soft_freed_t* freed) {
  const kilni_soft_launch_t* launch = &run->grid->launch;
  kilni_soft_fault_t* fault =
      fault_begin(run, instr, KILNI_SOFT_FAULT_ILLEGAL_ADDRESS,
                  KILN_FAULT_OUT_OF_BOUNDS, lane);
  if (!fault) return;
  fill_access(fault, instr, address, bytes, store);
  kilni_soft_fault_use(fault, freed);
  fault_add(fault, "\nthe kernel is work %" PRIu64 " on stream 0x%" PRIx64 "\n",
            launch->work, launch->stream);
  fault_publish(run->grid);
}

// ---- Deadlocks ----

// What lanes wait for each other at; those of one name and mask would meet.
static const char* collective_name(const kilni_soft_instr_t* instr) {
  static const char* const shuffles[] = {"shfl.sync.up", "shfl.sync.down",
                                         "shfl.sync.bfly", "shfl.sync.idx"};
  static const char* const votes[] = {"vote.sync.all", "vote.sync.any",
                                      "vote.sync.uni", "vote.sync.ballot"};
  switch (instr->op) {
    case KILNI_SOFT_OP_shfl:
      return shuffles[instr->aux & 3u];
    case KILNI_SOFT_OP_vote:
      return votes[instr->aux & 3u];
    case KILNI_SOFT_OP_match:
      return instr->aux & 1u ? "match.all.sync" : "match.any.sync";
    case KILNI_SOFT_OP_redux:
      return "redux.sync";
    case KILNI_SOFT_OP_elect:
      return "elect.sync";
    case KILNI_SOFT_OP_mma:
    case KILNI_SOFT_OP_wmma_load:
    case KILNI_SOFT_OP_wmma_store:
    case KILNI_SOFT_OP_ldmatrix:
    case KILNI_SOFT_OP_stmatrix:
    case KILNI_SOFT_OP_movmatrix:
      return "an operation on matrices";
    default:
      return "bar.warp.sync";
  }
}

static void tell_waiting(kilni_soft_fault_t* fault, const kilni_soft_run_t* run,
                         const kilni_soft_group_t* g) {
  uint32_t first[3];
  kilni_soft_thread_of(run, (uint32_t)__builtin_ctz(g->mask), first);
  bool many = (g->mask & (g->mask - 1)) != 0;
  fault_add(fault,
            "%" PRIu32 " thread%s from (%" PRIu32 ", %" PRIu32 ", %" PRIu32
            ") %s",
            kilni_soft_popcount(g->mask), many ? "s" : "", first[0], first[1],
            first[2], many ? "wait" : "waits");
  if (g->state == KILNI_SOFT_AHEAD) {
    fault_add(fault, " for the kernel before it");
  } else if (g->state == KILNI_SOFT_AT_BARRIER &&
             g->want == KILNI_SOFT_CLUSTER_BARRIER) {
    fault_add(fault, " at the barrier of the cluster");
  } else if (g->state == KILNI_SOFT_AT_BARRIER) {
    fault_add(fault, " at barrier %" PRIu32, g->want);
  } else {
    fault_add(fault, " at %s of mask 0x%08" PRIx32 " for lanes 0x%08" PRIx32,
              collective_name(g->pc), g->want, g->want & run->alive & ~g->mask);
  }
  fault_add_lines(fault, run->grid,
                  kilni_soft_line_of(g->frame->function, g->pc));
}

static bool is_collective(const kilni_soft_group_t* g) {
  return g->state == KILNI_SOFT_COLLECTING || g->state == KILNI_SOFT_MEETING;
}

// How well a group's wait explains the reason: the greater the better.
static uint32_t cause_of(const kilni_soft_group_t* g) {
  if (!is_collective(g)) return KILN_FAULT_CAUSE_BARRIER;
  return (g->mask & ~g->want) != 0 ? KILN_FAULT_CAUSE_OWN_MASK
                                   : KILN_FAULT_CAUSE_LANES;
}

static uint32_t fault_rank_of(uint32_t cause) {
  return cause == KILN_FAULT_CAUSE_OWN_MASK ? 3
         : cause == KILN_FAULT_CAUSE_LANES  ? 2
         : cause == KILN_FAULT_CAUSE_NONE   ? 0
                                            : 1;
}

static void tell_deadlock(kilni_soft_fault_t* fault,
                          const kilni_soft_block_t* block) {
  uint32_t left = 0;
  for (uint32_t w = 0; w < block->warp_count; w++) {
    const kilni_soft_run_t* run = &block->warps[w];
    for (uint32_t i = 0; i < run->group_count; i++) {
      const kilni_soft_group_t* g = &run->groups[i];
      uint32_t cause = cause_of(g);
      if (fault_rank_of(cause) > fault_rank_of(fault->cause)) {
        fault->cause = cause;
        fill_place(fault, run, g->frame, g->pc,
                   (uint32_t)__builtin_ctz(g->mask));
      }
      if (fault_has_space(fault)) {
        tell_waiting(fault, run, g);
      } else {
        left += kilni_soft_popcount(g->mask);
      }
    }
  }
  if (left != 0) fault_add(fault, "and %" PRIu32 " threads more wait\n", left);
}

// The lanes that wait by a mask that lacks them.
static void tell_own_mask(kilni_soft_fault_t* fault,
                          const kilni_soft_block_t* block) {
  for (uint32_t w = 0; w < block->warp_count; w++) {
    const kilni_soft_run_t* run = &block->warps[w];
    for (uint32_t i = 0; i < run->group_count; i++) {
      const kilni_soft_group_t* g = &run->groups[i];
      if (cause_of(g) != KILN_FAULT_CAUSE_OWN_MASK) continue;
      fault_add(fault,
                "the cause: lanes 0x%08" PRIx32 " of warp %" PRIu32
                " are not in the mask 0x%08" PRIx32 " that they give\n",
                g->mask & ~g->want, w, g->want);
      return;
    }
  }
}

void kilni_soft_fault_deadlock(kilni_soft_block_t* block) {
  kilni_soft_grid_t* grid = block->warps[0].grid;
  kilni_soft_fault_t* fault = claim(grid, block->order);
  if (!fault) return;
  fault->kind = KILNI_SOFT_FAULT_DEADLOCK;
  fault->what = KILN_FAULT_DEADLOCK;
  memcpy(fault->block, block->index, sizeof(fault->block));
  tell_own_mask(fault, block);
  tell_deadlock(fault, block);
  fault_publish(grid);
}

// ---- Faults of a whole grid ----

void kilni_soft_fault_grid(kilni_soft_grid_t* grid,
                           kilni_soft_fault_kind_t kind, const char* text) {
  kilni_soft_fault_t* fault = claim(grid, WHOLE);
  if (!fault) return;
  fault->kind = kind;
  fault->what = KILN_FAULT_HOST_MEMORY;
  fault_add(fault, "%s\n", text);
  fault_publish(grid);
}

// Does not wait: the cancelling thread may hold a lock and runs no block.
void kilni_soft_grid_cancel(kilni_soft_grid_t* grid) {
  atomic_store(&grid->stop, KILNI_SOFT_CANCELLED);
}

// The block that began first of those on a worker.
static const kilni_soft_block_t* first_block(
    const kilni_soft_worker_t* worker) {
  const kilni_soft_block_t* first = worker->resident;
  for (const kilni_soft_block_t* b = first; b != NULL; b = b->next) {
    if (b->order < first->order) first = b;
  }
  return first;
}

static void tell_places(kilni_soft_fault_t* fault,
                        const kilni_soft_block_t* block) {
  uint32_t told = 0;
  for (uint32_t w = 0; w < block->warp_count && told < PLACES; w++) {
    const kilni_soft_run_t* run = &block->warps[w];
    if (run->outcome == KILNI_SOFT_DONE) continue;
    for (uint32_t i = 0; i < run->group_count && told < PLACES; i++) {
      const kilni_soft_group_t* g = &run->groups[i];
      if (g->mask == 0) continue;
      uint32_t lane = (uint32_t)__builtin_ctz(g->mask);
      if (told++ == 0) {
        fill_place(fault, run, g->frame, g->pc, lane);
        continue;
      }
      uint32_t t[3];
      kilni_soft_thread_of(run, lane, t);
      fault_add(fault,
                "thread (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ") of this block",
                t[0], t[1], t[2]);
      fault_add_lines(fault, run->grid,
                      kilni_soft_line_of(g->frame->function, g->pc));
    }
  }
}

void kilni_soft_fault_place(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  const kilni_soft_block_t* block = first_block(worker);
  fault_lock(grid);
  kilni_soft_fault_t* fault = &grid->fault;
  bool fault_there =
      fault->kind != KILNI_SOFT_FAULT_NONE &&
      (fault->kind != KILNI_SOFT_FAULT_CANCELLED || fault->has_thread);
  if (block != NULL &&
      (!fault_there || (fault->kind == KILNI_SOFT_FAULT_CANCELLED &&
                        block->order < atomic_load(&grid->fault_order)))) {
    memset(fault, 0, sizeof(*fault));
    fault->kind = KILNI_SOFT_FAULT_CANCELLED;
    fault->what = KILN_FAULT_TIME_LIMIT;
    fault->kernel = grid->entry->name;
    atomic_store(&grid->fault_order, block->order);
    tell_places(fault, block);
  }
  fault_unlock(grid);
}

// ---- As a record ----

static void fault_copy_text(char* out, size_t capacity, const char* text) {
  (void)snprintf(out, capacity, "%s", text != NULL ? text : "");
}

void kilni_soft_fault_tell(const kilni_soft_fault_t* fault,
                           kiln_fault_t* out_fault) {
  kiln_fault_t* out = out_fault;
  out->kind = fault->what;
  out->cause = fault->cause;
  out->memory = fault->memory;
  if (fault->bytes != 0) {
    out->access = fault->is_atomic  ? KILN_FAULT_ACCESS_ATOMIC
                  : fault->is_store ? KILN_FAULT_ACCESS_STORE
                                    : KILN_FAULT_ACCESS_LOAD;
  }
  out->has_thread = fault->has_thread;
  memcpy(out->block, fault->block, sizeof(out->block));
  memcpy(out->thread, fault->thread, sizeof(out->thread));
  out->ptx_line = fault->line;
  out->source_line = fault->source_line;
  out->call_line = fault->call_line;
  out->call_depth = fault->depth;
  out->address = fault->address;
  out->bytes = fault->bytes;
  out->buffer = fault->buffer;
  out->buffer_bytes = fault->buffer_bytes;
  out->offset = fault->offset;
  fault_copy_text(out->buffer_name, sizeof(out->buffer_name), fault->name);
  fault_copy_text(out->kernel, sizeof(out->kernel), fault->kernel);
  fault_copy_text(out->function, sizeof(out->function), fault->function);
  fault_copy_text(out->source, sizeof(out->source), fault->source);
  fault_copy_text(out->call_source, sizeof(out->call_source),
                  fault->call_source);
  fault_copy_text(out->detail, sizeof(out->detail), fault->detail);
}
