// SPDX-License-Identifier: Apache-2.0
//
// image: what the functions read that a kernel calls, and what it only prints.
//
// Each function is examined by itself: its arguments and results count.
// Functions that no call reaches show nothing of the kernel.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "image/ptx_use.h"

static void note_read(kilni_image_ptx_look_t* look,
                      const kilni_image_ptx_operand_t* operand) {
  kiln_image_threads_t* threads = &look->use->threads;
  if (operand->kind != KILNI_PTX_OPERAND_SPECIAL) return;
  uint32_t bits = operand->component == KILNI_PTX_WHOLE
                      ? 7
                      : (1u << operand->component & 7);
  switch (operand->index) {
    case KILNI_PTX_SREG_TID:
      threads->tid |= bits;
      break;
    case KILNI_PTX_SREG_NTID:
      threads->ntid |= bits;
      break;
    case KILNI_PTX_SREG_CTAID:
      threads->ctaid |= bits;
      break;
    case KILNI_PTX_SREG_NCTAID:
      threads->nctaid |= bits;
      break;
    default:
      break;
  }
}

// What a function reads, by all operands: they are one stretch.
void kilni_image_ptx_use_note_reads(kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* function = look->function;
  if (function->instruction_count == 0) return;
  const kilni_image_ptx_instruction_t* first = &function->instructions[0];
  const kilni_image_ptx_instruction_t* last =
      &function->instructions[function->instruction_count - 1];
  uint32_t at = 0;
  if (function->first_instruction != 0) {
    const kilni_image_ptx_instruction_t* before = first - 1;
    at = before->first_operand + before->operand_count;
  }
  uint32_t end = last->first_operand + last->operand_count;
  for (; at < end; at++) note_read(look, &look->module->operands[at]);
}

// Functions that are found to be called, in the order of the finding.
// one-thread
typedef struct calls_t {
  const kilni_image_ptx_module_t* module;
  uint32_t* found;
  uint8_t* is_found;
  uint32_t count;
  bool is_any;  // a call goes by an address: to any function
} calls_t;

static void ptx_use_call_find(calls_t* calls, uint32_t function) {
  const kilni_image_ptx_function_t* f = &calls->module->functions[function];
  if (calls->is_found[function] != 0 || f->is_entry || !f->is_defined) return;
  calls->is_found[function] = 1;
  calls->found[calls->count++] = function;
}

static void find_called(calls_t* calls, const kilni_image_ptx_function_t* f) {
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    if (f->instructions[i].opcode != KILNI_PTX_OP_CALL) continue;
    const kilni_image_ptx_operand_t* ops = kilni_image_ptx_instruction_operands(
        calls->module, &f->instructions[i]);
    if (ops == NULL) continue;
    if (ops[1].kind == KILNI_PTX_OPERAND_FUNCTION) {
      ptx_use_call_find(calls, ops[1].index);
      continue;
    }
    calls->is_any = true;
  }
}

static void ptx_use_call_find_any(calls_t* calls) {
  for (uint32_t i = 0; i < calls->module->function_count; i++) {
    ptx_use_call_find(calls, i);
  }
}

// A look at one function for the sake of the kernel that calls it.
static kiln_status_t ptx_use_call_look_at(
    const kilni_image_ptx_look_t* kernel,
    const kilni_image_ptx_function_t* function, kiln_allocator_t allocator,
    uint32_t* inout_counted) {
  kilni_image_ptx_look_t look = {
      .module = kernel->module, .function = function, .use = kernel->use};
  size_t count = (size_t)function->register_count + 1;
  void* facts = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, count, sizeof(kilni_image_ptx_fact_t), &facts));
  look.facts = facts;
  kilni_image_ptx_use_writes(&look);
  *inout_counted |= kilni_image_ptx_use_places(&look);
  kilni_base_free_array(allocator, facts, count,
                        sizeof(kilni_image_ptx_fact_t));
  return kiln_ok();
}

kiln_status_t kilni_image_ptx_use_calls(kilni_image_ptx_look_t* look,
                                        kiln_allocator_t allocator,
                                        uint32_t* inout_counted) {
  uint32_t count = look->module->function_count;
  void* found = NULL;
  void* is_found = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, count, sizeof(uint32_t), &found));
  kiln_status_t status =
      kilni_base_alloc_array(allocator, count, sizeof(uint8_t), &is_found);
  if (kiln_status_is_ok(status)) {
    calls_t calls = {look->module, found, is_found, 0, false};
    find_called(&calls, look->function);
    if (calls.is_any) ptx_use_call_find_any(&calls);
    for (uint32_t i = 0; i < calls.count && kiln_status_is_ok(status); i++) {
      const kilni_image_ptx_function_t* f =
          &look->module->functions[calls.found[i]];
      status = ptx_use_call_look_at(look, f, allocator, inout_counted);
      if (calls.is_any) continue;
      find_called(&calls, f);
      if (calls.is_any) ptx_use_call_find_any(&calls);
    }
  }
  kilni_base_free_array(allocator, is_found, count, sizeof(uint8_t));
  kilni_base_free_array(allocator, found, count, sizeof(uint32_t));
  return status;
}

// Whether an instruction may read .local memory, or let others do so. A store
// of an address is nothing by itself: a load that is not of a space follows.
static bool may_read_local(const kilni_image_ptx_look_t* look,
                           const kilni_image_ptx_instruction_t* ins) {
  const kilni_image_ptx_operand_t* ops =
      kilni_image_ptx_instruction_operands(look->module, ins);
  if (ops == NULL || ins->opcode == KILNI_PTX_OP_ST) return false;
  if (ins->opcode == KILNI_PTX_OP_CALL) {
    const kilni_image_ptx_function_t* functions = look->module->functions;
    return ops[1].kind != KILNI_PTX_OPERAND_FUNCTION ||
           functions[ops[1].index].is_defined ||
           strcmp(functions[ops[1].index].name, "vprintf") != 0;
  }
  uint32_t space = kilni_image_ptx_form_space(
      kilni_image_ptx_instruction_form(look->module, ins));
  if (space != KILNI_PTX_SPACE_NONE && space != KILNI_PTX_SPACE_LOCAL) {
    return false;
  }
  for (uint32_t i = 0; i < ins->operand_count; i++) {
    if (ops[i].kind == KILNI_PTX_OPERAND_ADDRESS) return true;
  }
  return false;
}

bool kilni_image_ptx_use_only_prints(const kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    if (may_read_local(look, &f->instructions[i])) return false;
  }
  return true;
}
