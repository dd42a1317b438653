// SPDX-License-Identifier: Apache-2.0
//
// soft: what a kernel reaches: the functions that it may call, and the shared
// variables that they name, laid out for this kernel alone.
#include "soft/code/soft_code_inside.h"

// Offsets of the .shared variables in the order in which the code names them.
static uint64_t shared_place(const kilni_soft_code_t* code,
                             const kilni_soft_function_t* const* functions,
                             uint32_t* offsets) {
  uint32_t count = code->function_count;
  uint64_t at = 0;
  for (int dynamic = 0; dynamic <= 1; dynamic++) {
    uint64_t base = at;
    for (uint32_t f = 0; f < count; f++) {
      if (!functions[f]) continue;
      for (uint32_t i = 0; i < functions[f]->shared_count; i++) {
        uint32_t index = functions[f]->shared[i];
        const kilni_soft_symbol_t* symbol = &code->symbols[index];
        if (symbol->is_dynamic != dynamic) continue;
        if (offsets[index] != KILNI_SOFT_NONE) continue;
        uint64_t align = symbol->align ? symbol->align : 1;
        uint64_t place = ((dynamic ? base : at) + align - 1) & ~(align - 1);
        offsets[index] = (uint32_t)place;
        if (!dynamic) at = place + symbol->bytes;
        if (dynamic && place > at) at = place;
      }
    }
  }
  return at;
}

// The functions that the entry can reach, as pointers by index.
void kilni_soft_reach(const kilni_soft_code_t* code, uint32_t entry,
                      const kilni_soft_function_t** reached) {
  reached[entry] = &code->functions[entry];
  for (bool again = true; again;) {
    again = false;
    for (uint32_t f = 0; f < code->function_count; f++) {
      const kilni_soft_function_t* function = reached[f];
      if (!function) continue;
      for (uint32_t i = 0; i < function->call_count; i++) {
        uint32_t callee = function->calls[i].callee;
        if (callee != KILNI_SOFT_NONE && !reached[callee]) {
          reached[callee] = &code->functions[callee];
          again = true;
        }
      }
      if (!function->uses_functions) continue;
      for (uint32_t g = 0; g < code->function_count; g++) {
        const kilni_soft_function_t* other = &code->functions[g];
        if (!other->is_entry && other->code && !reached[g]) {
          reached[g] = other;
          again = true;
        }
      }
    }
  }
}

uint32_t kilni_soft_shared_bytes(const kilni_soft_code_t* code,
                                 const kilni_soft_function_t* const* reached,
                                 uint32_t* offsets) {
  for (uint32_t i = 0; i < code->symbol_count; i++) {
    offsets[i] = KILNI_SOFT_NONE;
  }
  return (uint32_t)shared_place(code, reached, offsets);
}
