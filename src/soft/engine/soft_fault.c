// SPDX-License-Identifier: Apache-2.0
//
// soft: the first fault of a grid, and the story that its report tells.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "soft/engine/soft_state.h"

static const char* const fault_texts[] = {
    [KILNI_SOFT_FAULT_NONE] = "no fault",
    [KILNI_SOFT_FAULT_ILLEGAL_ADDRESS] = "illegal address",
    [KILNI_SOFT_FAULT_MISALIGNED] = "misaligned address",
    [KILNI_SOFT_FAULT_TRAP] = "trap",
    [KILNI_SOFT_FAULT_ASSERT] = "assertion",
    [KILNI_SOFT_FAULT_DEADLOCK] = "deadlock",
    [KILNI_SOFT_FAULT_STACK] = "stack overflow",
    [KILNI_SOFT_FAULT_ILLEGAL_INSTRUCTION] = "illegal instruction",
    [KILNI_SOFT_FAULT_OUT_OF_MEMORY] = "out of host memory",
    [KILNI_SOFT_FAULT_CANCELLED] = "cancelled",
    [KILNI_SOFT_FAULT_UNWRITTEN] = "memory never written",
};

static void add(kilni_soft_fault_t* fault, const char* format, ...)
    KILN_PRINTF(2, 3);
static void add(kilni_soft_fault_t* fault, const char* format, ...) {
  size_t used = strlen(fault->report);
  va_list args;
  va_start(args, format);
  vsnprintf(fault->report + used, sizeof(fault->report) - used, format, args);
  va_end(args);
}

// The fault to fill in, or NULL when the grid already has one. That one is
// whole then: a worker that went on while another thread still wrote it down
// would take its own block, stopped by a fault, for one that has ended.
static kilni_soft_fault_t* claim(kilni_soft_grid_t* grid) {
  if (!atomic_exchange(&grid->fault_claimed, 1u)) return &grid->fault;
  while (!atomic_load(&grid->stop)) kilni_thread_yield();
  return NULL;
}

static void publish(kilni_soft_grid_t* grid) {
  atomic_store(&grid->stop, 1u);
}

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

// What is the same in every fault of a lane.
static void fill_place(kilni_soft_fault_t* fault, const kilni_soft_run_t* run,
                       const kilni_soft_instr_t* instr,
                       kilni_soft_fault_kind_t kind, uint32_t lane) {
  fault->kind = kind;
  fault->line = kilni_soft_line_of(run->frame->function, instr);
  kilni_soft_thread_of(run, lane, fault->thread);
  memcpy(fault->block, run->block->index, sizeof(fault->block));
}

static void tell_place(kilni_soft_fault_t* fault, const kilni_soft_run_t* run) {
  add(fault, "  in kernel \"%s\"", run->grid->entry->name);
  if (run->frame->depth) {
    add(fault, ", function \"%s\" (call depth %" PRIu32 ")",
        run->frame->function->name, run->frame->depth);
  }
  add(fault, ", PTX line %" PRIu32 "\n", fault->line);
  add(fault,
      "  thread (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ") of block (%" PRIu32
      ", %" PRIu32 ", %" PRIu32 ")\n",
      fault->thread[0], fault->thread[1], fault->thread[2], fault->block[0],
      fault->block[1], fault->block[2]);
}

const kilni_soft_instr_t* kilni_soft_fault(kilni_soft_run_t* run,
                                           const kilni_soft_instr_t* instr,
                                           kilni_soft_fault_kind_t kind,
                                           uint32_t lane) {
  kilni_soft_flush(run);
  run->outcome = KILNI_SOFT_FAULTED;
  kilni_soft_fault_t* fault = claim(run->grid);
  if (!fault) return NULL;
  fill_place(fault, run, instr, kind, lane);
  add(fault, "%s\n", fault_texts[kind]);
  tell_place(fault, run);
  if (kind == KILNI_SOFT_FAULT_STACK) {
    add(fault, "  a call would exceed the stack of %" PRIu64 " bytes\n",
        run->grid->stack_bytes);
  }
  publish(run->grid);
  return NULL;
}

static const char* space_name(uint32_t space) {
  static const char* const names[] = {"",        "global ", "const ",
                                      "shared ", "local ",  "param "};
  return space < sizeof(names) / sizeof(names[0]) ? names[space] : "";
}

static void tell_freed(kilni_soft_fault_t* fault, const kilni_soft_grid_t* grid,
                       uint64_t address, const kilni_soft_freed_t* freed) {
  char text[400];
  kilni_soft_freed_text(freed, address, text, sizeof(text));
  add(fault,
      "  use after free: the kernel is work %" PRIu64 " on stream 0x%" PRIx64
      "\n%s",
      grid->launch.work, grid->launch.stream, text);
}

static void tell_nearest(kilni_soft_fault_t* fault, kilni_soft_grid_t* grid,
                         uint64_t address) {
  kilni_soft_alloc_t near;
  kilni_soft_freed_t freed;
  if (!kilni_soft_memory_query(grid->memory, address, &near) &&
      kilni_soft_memory_freed(grid->memory, address, &freed)) {
    tell_freed(fault, grid, address, &freed);
    return;
  }
  if (!kilni_soft_memory_nearest(grid->memory, address, &near)) {
    add(fault, "  no allocation lies below it\n");
    return;
  }
  uint64_t end = near.address + near.bytes;
  if (address < end) {
    add(fault,
        "  %" PRIu64 " bytes before the end of a %" PRIu64
        "-byte allocation at 0x%" PRIx64 "%s\n",
        end - address, near.bytes, near.address,
        near.kind == KILNI_SOFT_ALLOC_CONSTANT ? ", which is read-only" : "");
  } else {
    add(fault,
        "  %" PRIu64 " bytes behind a %" PRIu64 "-byte allocation at 0x%" PRIx64
        "\n",
        address - end, near.bytes, near.address);
  }
}

static void tell_memory(kilni_soft_fault_t* fault, kilni_soft_run_t* run,
                        uint32_t space, uint64_t address) {
  if (space == KILNI_SOFT_SPACE_GENERIC) {
    if (address - KILNI_SOFT_SHARED_BASE < KILNI_SOFT_SHARED_BYTES) {
      space = KILNI_SOFT_SPACE_SHARED;
    } else if (address - KILNI_SOFT_LOCAL_BASE < KILNI_SOFT_LOCAL_BYTES) {
      space = KILNI_SOFT_SPACE_LOCAL;
    }
  }
  if (space == KILNI_SOFT_SPACE_SHARED) {
    add(fault, "  the block has %" PRIu32 " bytes of shared memory\n",
        run->grid->shared_bytes);
  } else if (space == KILNI_SOFT_SPACE_LOCAL) {
    add(fault, "  the thread has %" PRIu32 " bytes of local memory here\n",
        run->local_top);
  } else {
    tell_nearest(fault, run->grid, address);
  }
}

void kilni_soft_fault_access(kilni_soft_run_t* run,
                             const kilni_soft_instr_t* instr,
                             kilni_soft_fault_kind_t kind, uint32_t lane,
                             uint32_t space, uint64_t address, uint32_t bytes,
                             bool is_store) {
  kilni_soft_flush(run);
  run->outcome = KILNI_SOFT_FAULTED;
  kilni_soft_fault_t* fault = claim(run->grid);
  if (!fault) return;
  fill_place(fault, run, instr, kind, lane);
  fault->address = address;
  fault->bytes = bytes;
  fault->is_store = is_store;
  add(fault, "%s: %s of %" PRIu32 " bytes at %saddress 0x%" PRIx64 "\n",
      fault_texts[kind], is_store ? "store" : "load", bytes, space_name(space),
      address);
  tell_place(fault, run);
  if (kind == KILNI_SOFT_FAULT_MISALIGNED) {
    add(fault, "  the address is no multiple of %" PRIu32 "\n", bytes);
  } else {
    tell_memory(fault, run, space, address);
  }
  publish(run->grid);
}

void kilni_soft_fault_unwritten(kilni_soft_run_t* run,
                                const kilni_soft_instr_t* instr, uint32_t lane,
                                const kilni_soft_unwritten_t* story) {
  kilni_soft_flush(run);
  run->outcome = KILNI_SOFT_FAULTED;
  kilni_soft_fault_t* fault = claim(run->grid);
  if (!fault) return;
  fill_place(fault, run, instr, KILNI_SOFT_FAULT_UNWRITTEN, lane);
  fault->address = story->address;
  fault->bytes = story->bytes;
  add(fault, "%s: load of %" PRIu32 " bytes at %saddress 0x%" PRIx64 "\n",
      fault_texts[fault->kind], story->bytes, space_name(story->space),
      story->address);
  tell_place(fault, run);
  if (story->space == KILNI_SOFT_SPACE_SHARED) {
    add(fault,
        "  byte %" PRIu64 " of the %" PRIu32
        " of shared memory: nothing of the block has written it\n"
        "  Fix: store to it first, with a barrier between where another "
        "thread does\n",
        story->first, run->grid->shared_bytes);
  } else {
    add(fault,
        "  byte %" PRIu64 " of a %" PRIu64 "-byte allocation at 0x%" PRIx64
        ": no kernel, copy or fill has written it\n"
        "  Fix: fill the memory first, or wait for who writes it\n",
        story->first - story->alloc.address, story->alloc.bytes,
        story->alloc.address);
  }
  publish(run->grid);
}

void kilni_soft_fault_freed(kilni_soft_run_t* run,
                            const kilni_soft_instr_t* instr, uint32_t lane,
                            uint64_t address, uint32_t bytes, bool store,
                            const kilni_soft_freed_t* freed) {
  kilni_soft_flush(run);
  run->outcome = KILNI_SOFT_FAULTED;
  kilni_soft_fault_t* fault = claim(run->grid);
  if (!fault) return;
  fill_place(fault, run, instr, KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, lane);
  fault->address = address;
  fault->bytes = bytes;
  fault->is_store = store;
  add(fault, "%s: %s of %" PRIu32 " bytes at global address 0x%" PRIx64 "\n",
      fault_texts[fault->kind], store ? "store" : "load", bytes, address);
  tell_place(fault, run);
  tell_freed(fault, run->grid, address, freed);
  publish(run->grid);
}

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

static void tell_waiting(kilni_soft_fault_t* fault, kilni_soft_run_t* run,
                         const kilni_soft_group_t* g) {
  uint32_t first[3];
  kilni_soft_thread_of(run, (uint32_t)__builtin_ctz(g->mask), first);
  add(fault,
      "  %" PRIu32 " thread%s from (%" PRIu32 ", %" PRIu32 ", %" PRIu32
      ") wait",
      kilni_soft_popcount(g->mask), g->mask & (g->mask - 1) ? "s" : "",
      first[0], first[1], first[2]);
  if (g->state == KILNI_SOFT_AHEAD) {
    add(fault, " for the kernel in front");
  } else if (g->state == KILNI_SOFT_AT_BARRIER &&
             g->want == KILNI_SOFT_CLUSTER_BARRIER) {
    add(fault, " at the barrier of the cluster");
  } else if (g->state == KILNI_SOFT_AT_BARRIER) {
    add(fault, " at barrier %" PRIu32, g->want);
  } else {
    add(fault, " at %s of mask 0x%08" PRIx32 " for lanes 0x%08" PRIx32,
        collective_name(g->pc), g->want, g->want & run->alive & ~g->mask);
  }
  add(fault, ", PTX line %" PRIu32 "\n",
      kilni_soft_line_of(g->frame->function, g->pc));
}

void kilni_soft_fault_deadlock(kilni_soft_block_t* block) {
  kilni_soft_grid_t* grid = block->warps[0].grid;
  kilni_soft_fault_t* fault = claim(grid);
  if (!fault) return;
  fault->kind = KILNI_SOFT_FAULT_DEADLOCK;
  memcpy(fault->block, block->index, sizeof(fault->block));
  add(fault, "deadlock: every thread of a block waits for another\n");
  add(fault,
      "  in kernel \"%s\", block (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")\n",
      grid->entry->name, block->index[0], block->index[1], block->index[2]);
  for (uint32_t w = 0; w < block->warp_count; w++) {
    kilni_soft_run_t* run = &block->warps[w];
    for (uint32_t i = 0; i < run->group_count; i++) {
      const kilni_soft_group_t* g = &run->groups[i];
      if (!fault->line) {
        fault->line = kilni_soft_line_of(g->frame->function, g->pc);
        kilni_soft_thread_of(run, (uint32_t)__builtin_ctz(g->mask),
                             fault->thread);
      }
      tell_waiting(fault, run, g);
    }
  }
  publish(grid);
}

static void fault_whole(kilni_soft_grid_t* grid, kilni_soft_fault_kind_t kind,
                        const char* text) {
  grid->fault.kind = kind;
  add(&grid->fault, "%s\n  in kernel \"%s\"\n", text, grid->entry->name);
  publish(grid);
}

void kilni_soft_fault_grid(kilni_soft_grid_t* grid,
                           kilni_soft_fault_kind_t kind, const char* text) {
  if (claim(grid)) fault_whole(grid, kind, text);
}

// Waits for nobody: who cancels may hold a lock and runs no block.
void kilni_soft_grid_cancel(kilni_soft_grid_t* grid) {
  if (atomic_exchange(&grid->fault_claimed, 1u)) return;
  fault_whole(grid, KILNI_SOFT_FAULT_CANCELLED, "the kernel was cancelled");
}
