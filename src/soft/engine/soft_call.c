// SPDX-License-Identifier: Apache-2.0
//
// soft: the functions that a device supplies: vprintf, __assertfail, malloc and
// free.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "soft/code/soft_engine.h"
#include "soft/code/soft_function.h"
#include "soft/engine/soft_print.h"
#include "soft/engine/soft_state.h"
#include "soft/engine/soft_warp.h"
#include "soft/memory/soft_memory.h"

enum { TEXT_BYTES = 8192, NAME_BYTES = 512 };

// An argument of a call, as the lane passes it.
static uint64_t argument(const kilni_soft_run_t* run,
                         const kilni_soft_instr_t* instr, uint32_t index,
                         uint32_t lane) {
  const kilni_soft_function_t* function = run->frame->function;
  const kilni_soft_call_t* call = &function->calls[instr->aux];
  if (index >= call->param_count) return 0;
  const kilni_soft_pass_t* pass =
      &function->passes[call->first_pass + call->return_count + index];
  const uint8_t* slots = run->frame->slots + pass->slot + 4u * lane;
  uint32_t words[2] = {0, 0};
  memcpy(&words[0], slots, 4);
  if (pass->bytes > 4) memcpy(&words[1], slots + KILNI_SOFT_SLOT32_BYTES, 4);
  return words[0] | (uint64_t)words[1] << 32;
}

// What printing asks memory for. one-thread
typedef struct reader_t {
  kilni_soft_run_t* run;
  const kilni_soft_instr_t* instr;
  uint32_t lane;
} reader_t;

static KILNI_SOFT_RACY bool read_device(uint64_t address, void* out,
                                        size_t bytes, void* user) {
  const reader_t* reader = user;
  uint8_t* to = out;
  for (size_t i = 0; i < bytes; i++) {
    const uint8_t* host =
        kilni_soft_access(reader->run, reader->instr, reader->lane,
                          KILNI_SOFT_SPACE_GENERIC, address + i, 1, false);
    if (!host) return false;
    to[i] = *host;
  }
  return true;
}

static void put_result(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                       uint32_t lane, uint64_t value) {
  const kilni_soft_function_t* function = run->frame->function;
  const kilni_soft_call_t* call = &function->calls[instr->aux];
  if (!call->return_count) return;
  const kilni_soft_pass_t* pass = &function->passes[call->first_pass];
  uint8_t* slots = run->frame->slots + pass->slot + 4u * lane;
  uint32_t words[2] = {(uint32_t)value, (uint32_t)(value >> 32)};
  memcpy(slots, &words[0], 4);
  if (pass->bytes > 4) memcpy(slots + KILNI_SOFT_SLOT32_BYTES, &words[1], 4);
}

const kilni_soft_instr_t* kilni_soft_vprintf(kilni_soft_run_t* run,
                                             const kilni_soft_instr_t* instr) {
  const kilni_soft_launch_t* launch = &run->grid->launch;
  char text[TEXT_BYTES];
  run->steps += instr->b;
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    reader_t reader = {run, instr, lane};
    kilni_soft_print_t print;
    if (kilni_soft_print_format(
            read_device, &reader, argument(run, instr, 0, lane),
            argument(run, instr, 1, lane), text, sizeof(text), &print) != 0) {
      if (run->outcome != KILNI_SOFT_FAULTED) {
        kilni_soft_fault_access(run, instr, KILNI_SOFT_FAULT_ILLEGAL_ADDRESS,
                                lane, KILNI_SOFT_SPACE_GENERIC, print.address,
                                1, false);
      }
      return NULL;
    }
    put_result(run, instr, lane, (uint32_t)print.returned);
    if (launch->print && print.size) {
      launch->print(text, print.size, launch->print_user);
    }
  }
  return instr + 1;
}

// __assertfail(message, file, line, function, charSize)
const kilni_soft_instr_t* kilni_soft_assertfail(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  const kilni_soft_launch_t* launch = &run->grid->launch;
  const uint32_t* block = run->block->index;
  char condition[NAME_BYTES] = "";
  char place[2 * NAME_BYTES + 32] = "";
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    char parts[3][NAME_BYTES];
    static const uint32_t which[3] = {0, 1, 3};
    for (int i = 0; i < 3; i++) {
      uint64_t address = argument(run, instr, which[i], lane);
      if (!kilni_soft_access_text(run, instr, lane, address, NAME_BYTES,
                                  parts[i])) {
        return NULL;
      }
    }
    if (left == run->warp.mask) {  // the lane that the report names
      memcpy(condition, parts[0], sizeof(condition));
      snprintf(place, sizeof(place), "%s:%" PRIu32 ", in %s", parts[1],
               (uint32_t)argument(run, instr, 2, lane), parts[2]);
    }
    uint32_t t[3];
    kilni_soft_thread_of(run, lane, t);
    char text[2048];
    int size =
        snprintf(text, sizeof(text),
                 "%s:%" PRIu32 ": %s: block: [%" PRIu32 ",%" PRIu32 ",%" PRIu32
                 "], thread: [%" PRIu32 ",%" PRIu32 ",%" PRIu32
                 "] Assertion `%s` failed.\n",
                 parts[1], (uint32_t)argument(run, instr, 2, lane), parts[2],
                 block[0], block[1], block[2], t[0], t[1], t[2], parts[0]);
    if (size > 0 && launch->print) {
      launch->print(text, (size_t)size, launch->print_user);
    }
  }
  return kilni_soft_fault_assert(
      run, instr, (uint32_t)__builtin_ctz(run->warp.mask), condition, place);
}

// A block of memory that lives until it is freed, also after the kernel; 0
// where the heap is exhausted, or 0 bytes were requested.
const kilni_soft_instr_t* kilni_soft_malloc(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr) {
  run->steps += instr->b;
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t address = 0;
    uint64_t bytes = argument(run, instr, 0, lane);
    kilni_soft_heap_alloc(run->grid->memory, bytes, &address);
    put_result(run, instr, lane, address);
  }
  return instr + 1;
}

const kilni_soft_instr_t* kilni_soft_free(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* instr) {
  run->steps += instr->b;
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t address = argument(run, instr, 0, lane);
    if (address == 0) continue;
    if (!kilni_soft_heap_free(run->grid->memory, address)) {
      return kilni_soft_fault_free(run, instr, lane, address);
    }
  }
  // What was freed must be found anew.
  memset(run->worker->ranges, 0, sizeof(run->worker->ranges));
  return instr + 1;
}

// cudaGraphSetConditional(handle, value): the handle is where the value is.
KILNI_SOFT_RACY const kilni_soft_instr_t* kilni_soft_set_conditional(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  run->steps += instr->b;
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t handle = argument(run, instr, 0, lane);
    uint32_t value = (uint32_t)argument(run, instr, 1, lane);
    uint8_t* host = kilni_soft_access(
        run, instr, lane, KILNI_SOFT_SPACE_GENERIC, handle, 4, true);
    if (host == NULL) return NULL;
    __atomic_store_n((uint32_t*)(void*)host, value, __ATOMIC_RELAXED);
  }
  return instr + 1;
}
