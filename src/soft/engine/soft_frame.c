// SPDX-License-Identifier: Apache-2.0
//
// soft: activations of functions: calls, returns, and lanes of one call that
// came to it apart and are put together again.
//
// Frames are as large as their function needs, live in free lists of the
// worker by size, and may end in any order, since lanes return when they like.
#include <string.h>

#include "base/alloc.h"
#include "soft/code/soft_code.h"
#include "soft/code/soft_code_inside.h"
#include "soft/code/soft_engine.h"
#include "soft/code/soft_function.h"
#include "soft/engine/soft_state.h"
#include "soft/engine/soft_warp.h"

enum {
  CALL_COST = 64,  // bytes of stack that a call takes besides its locals
  FRAME_ALIGN = 64,
};

static uint64_t frame_round(uint64_t bytes) {
  return (bytes + FRAME_ALIGN - 1) & ~(uint64_t)(FRAME_ALIGN - 1);
}

// The list that frames of the function come from: blocks of 1 KiB, 2, 4 ...
static uint32_t frame_class_of(const kilni_soft_function_t* function) {
  uint64_t bytes = frame_round(sizeof(kilni_soft_frame_t)) +
                   frame_round((uint64_t)function->pred_count * 4) +
                   function->frame_bytes;
  uint32_t size_class = 0;
  while ((1024ull << size_class) < bytes) size_class++;
  return size_class;
}

uint64_t kilni_soft_frame_bytes(const kilni_soft_function_t* function) {
  return 1024ull << frame_class_of(function);
}

static kilni_soft_frame_t* frame_take(kilni_soft_worker_t* worker,
                                      const kilni_soft_function_t* function) {
  uint64_t head = frame_round(sizeof(kilni_soft_frame_t));
  uint64_t preds = frame_round((uint64_t)function->pred_count * 4);
  uint32_t size_class = frame_class_of(function);
  if (size_class >= KILNI_SOFT_FRAME_CLASSES) return NULL;
  kilni_soft_frame_t* frame = worker->frames[size_class];
  if (frame) {
    worker->frames[size_class] = frame->caller;
  } else {
    void* memory;
    kiln_status_t status =
        kilni_base_alloc_aligned(worker->grid->host->allocator,
                                 1024ull << size_class, FRAME_ALIGN, &memory);
    if (!kiln_status_is_ok(status)) {
      kiln_status_free(status);
      return NULL;
    }
    frame = memory;
  }
  frame->size_class = size_class;
  frame->function = function;
  frame->pred = (uint32_t*)(void*)((uint8_t*)frame + head);
  frame->slots = (uint8_t*)frame + head + preds;
  frame->pred[0] = KILNI_SOFT_FULL_MASK;
  return frame;
}

void kilni_soft_frame_free_all(kilni_soft_worker_t* worker) {
  for (uint32_t i = 0; i < KILNI_SOFT_FRAME_CLASSES; i++) {
    kilni_soft_frame_t* frame = worker->frames[i];
    while (frame) {
      kilni_soft_frame_t* next = frame->caller;
      kilni_base_free_aligned(worker->grid->host->allocator, frame,
                              1024ull << i, FRAME_ALIGN);
      frame = next;
    }
    worker->frames[i] = NULL;
  }
}

static void frame_give(kilni_soft_worker_t* worker, kilni_soft_frame_t* frame) {
  frame->caller = worker->frames[frame->size_class];
  worker->frames[frame->size_class] = frame;
}

void kilni_soft_frame_leave(kilni_soft_run_t* run, kilni_soft_frame_t* frame,
                            uint32_t mask) {
  frame->live &= ~mask;
  if (frame->live == 0 && frame->depth) frame_give(run->worker, frame);
}

static void copy_word(uint8_t* to, const uint8_t* from, uint32_t mask) {
  if (mask == KILNI_SOFT_FULL_MASK) {
    memcpy(to, from, KILNI_SOFT_SLOT32_BYTES);
    return;
  }
  for (; mask; mask &= mask - 1) {
    size_t at = 4u * (unsigned)__builtin_ctz(mask);
    memcpy(to + at, from + at, 4);
  }
}

static void copy_words(uint8_t* to, const uint8_t* from, uint32_t bytes,
                       uint32_t mask) {
  for (uint32_t at = 0; at < bytes; at += 4) {
    copy_word(to + 32ull * at, from + 32ull * at, mask);
  }
}

// Space for `bytes` of local memory in each lane.
static bool local_reserve(kilni_soft_run_t* run, uint64_t bytes) {
  if (bytes <= run->local_stride) return true;
  kiln_allocator_t allocator = run->grid->host->allocator;
  uint64_t stride = run->local_stride * 2;
  if (stride < bytes) stride = bytes;
  stride = frame_round(stride);
  void* memory;
  kiln_status_t status = kilni_base_alloc_aligned(
      allocator, stride * KILNI_SOFT_LANES, FRAME_ALIGN, &memory);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return false;
  }
  for (uint32_t lane = 0; run->local_stride && lane < KILNI_SOFT_LANES;
       lane++) {
    memcpy((uint8_t*)memory + lane * stride,
           run->local + lane * run->local_stride, run->local_stride);
  }
  if (run->own_local) {
    kilni_base_free_aligned(allocator, run->local,
                            run->local_stride * KILNI_SOFT_LANES, FRAME_ALIGN);
  }
  run->local = memory;
  run->local_stride = stride;
  run->own_local = 1;
  return true;
}

static const kilni_soft_instr_t* enter_call(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr,
                                            const kilni_soft_call_t* call,
                                            uint32_t index) {
  const kilni_soft_function_t* callee = &run->grid->code->functions[index];
  kilni_soft_frame_t* caller = run->frame;
  uint32_t first = (uint32_t)__builtin_ctz(run->warp.mask);
  uint32_t base = (run->local_top + 15u) & ~15u;
  uint64_t used = (uint64_t)base + callee->local_bytes +
                  (uint64_t)(caller->depth + 1) * CALL_COST;
  if (used > run->grid->stack_bytes * KILNI_SOFT_STACK_FACTOR) {
    return kilni_soft_fault(run, instr, KILNI_SOFT_FAULT_STACK, first);
  }
  kilni_soft_frame_t* frame = NULL;
  if (local_reserve(run, (uint64_t)base + callee->local_bytes)) {
    frame = frame_take(run->worker, callee);
  }
  if (!frame) {
    return kilni_soft_fault(run, instr, KILNI_SOFT_FAULT_OUT_OF_MEMORY, first);
  }
  frame->constants = run->grid->constants[index];
  frame->caller = caller;
  frame->resume = instr + 1;
  frame->live = run->warp.mask;
  frame->depth = caller->depth + 1;
  frame->local_base = base;
  const kilni_soft_pass_t* pass =
      caller->function->passes + call->first_pass + call->return_count;
  const kilni_soft_pass_t* formal = callee->formals + callee->formal_returns;
  for (uint32_t i = 0; i < call->param_count; i++) {
    copy_words(frame->slots + formal[i].slot, caller->slots + pass[i].slot,
               formal[i].bytes, KILNI_SOFT_FULL_MASK);
  }
  run->steps += instr->b;
  run->groups[run->current].frame = frame;
  // Recursion takes time without a branch backward.
  if (--run->warp.budget <= 0) return kilni_soft_expire(run, callee->code);
  return kilni_soft_park(run, callee->code, KILNI_SOFT_READY, 0);
}

const kilni_soft_instr_t* kilni_soft_call_direct(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  const kilni_soft_call_t* call = &run->frame->function->calls[instr->aux];
  return enter_call(run, instr, call, call->callee);
}

// Whether a function takes and returns what the call passes.
static bool call_fits(const kilni_soft_function_t* caller,
                      const kilni_soft_call_t* call,
                      const kilni_soft_function_t* callee) {
  if (callee->is_entry || callee->code == NULL ||
      call->return_count != callee->formal_returns ||
      call->param_count != callee->formal_params) {
    return false;
  }
  uint32_t count = call->return_count + call->param_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t here = caller->passes[call->first_pass + i].bytes;
    if ((here + 3) / 4 != (callee->formals[i].bytes + 3) / 4) return false;
  }
  return true;
}

// The lanes of one target call it; the others come back to the call.
const kilni_soft_instr_t* kilni_soft_call_pointer(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  const uint64_t* pointers = kilni_soft_slot(&run->warp, instr->a);
  const kilni_soft_function_t* caller = run->frame->function;
  const kilni_soft_call_t* call = &caller->calls[instr->aux];
  uint32_t first = (uint32_t)__builtin_ctz(run->warp.mask);
  uint64_t pointer = pointers[first];
  uint64_t at =
      (pointer - KILNI_SOFT_FUNCTION_BASE) / KILNI_SOFT_FUNCTION_STRIDE;
  const kilni_soft_code_t* code = run->grid->code;
  if (pointer % KILNI_SOFT_FUNCTION_STRIDE || at >= code->function_count ||
      !call_fits(caller, call, &code->functions[at])) {
    return kilni_soft_fault_instr(run, instr, KILN_FAULT_CAUSE_CALL, first);
  }
  uint32_t same = 0;
  for (uint32_t lane = 0; lane < KILNI_SOFT_LANES; lane++) {
    if (pointers[lane] == pointer) same |= 1u << lane;
  }
  same &= run->warp.mask;
  kilni_soft_part(run, instr, same);
  return enter_call(run, instr, call, (uint32_t)at);
}

const kilni_soft_instr_t* kilni_soft_return(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr) {
  run->steps += instr->aux;
  kilni_soft_frame_t* frame = run->frame;
  if (frame->depth == 0) return kilni_soft_end_lanes(run);
  kilni_soft_frame_t* caller = frame->caller;
  const kilni_soft_instr_t* resume = frame->resume;
  const kilni_soft_function_t* from = caller->function;
  const kilni_soft_call_t* call = &from->calls[resume[-1].aux];
  for (uint32_t i = 0; i < call->return_count; i++) {
    copy_words(caller->slots + from->passes[call->first_pass + i].slot,
               frame->slots + frame->function->formals[i].slot,
               frame->function->formals[i].bytes, run->warp.mask);
  }
  kilni_soft_frame_leave(run, frame, run->warp.mask);
  run->groups[run->current].frame = caller;
  return kilni_soft_park(run, resume, KILNI_SOFT_READY, 0);
}

static bool same_calls(const kilni_soft_frame_t* a,
                       const kilni_soft_frame_t* b) {
  while (a != b) {
    if (a->function != b->function || a->depth != b->depth || !a->depth ||
        a->resume != b->resume) {
      return false;
    }
    a = a->caller;
    b = b->caller;
  }
  return true;
}

static void move_lanes(kilni_soft_frame_t* into,
                       const kilni_soft_frame_t* from) {
  const kilni_soft_function_t* function = into->function;
  uint32_t mask = from->live;
  for (uint32_t at = 0; at < function->frame_bytes;) {
    bool wide = at >= function->wide_begin && at < function->wide_end;
    if (!wide) {
      copy_word(into->slots + at, from->slots + at, mask);
      at += KILNI_SOFT_SLOT32_BYTES;
      continue;
    }
    for (uint32_t m = mask; m; m &= m - 1) {
      size_t lane = 8u * (unsigned)__builtin_ctz(m);
      memcpy(into->slots + at + lane, from->slots + at + lane, 8);
    }
    at += KILNI_SOFT_SLOT64_BYTES;
  }
  for (uint32_t i = 1; i < function->pred_count; i++) {
    into->pred[i] = (into->pred[i] & ~mask) | (from->pred[i] & mask);
  }
  into->live |= mask;
}

// Everything that points at `from` points at `into`.
static void replace_frame(kilni_soft_run_t* run, kilni_soft_frame_t* into,
                          const kilni_soft_frame_t* from) {
  for (uint32_t i = 0; i < run->group_count; i++) {
    kilni_soft_group_t* g = &run->groups[i];
    if (g->frame == from) g->frame = into;
    for (kilni_soft_frame_t* f = g->frame; f && f->depth; f = f->caller) {
      if (f->caller == from) f->caller = into;
    }
  }
}

bool kilni_soft_frame_merge(kilni_soft_run_t* run, kilni_soft_frame_t* into,
                            kilni_soft_frame_t* from) {
  if (!same_calls(into, from)) return false;
  while (into != from) {
    kilni_soft_frame_t* next_into = into->caller;
    kilni_soft_frame_t* next_from = from->caller;
    move_lanes(into, from);
    replace_frame(run, into, from);
    frame_give(run->worker, from);
    into = next_into;
    from = next_from;
  }
  return true;
}
