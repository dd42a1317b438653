// SPDX-License-Identifier: Apache-2.0
//
// soft: building the operations of a function. A failed allocation is kept in
// `status`, so that lowering can be written without a check at each step.
#include "soft/decode/soft_lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

bool kilni_soft_lower_grow(kilni_soft_lower_t* lower, size_t wanted,
                           size_t size, size_t* capacity, void** array) {
  if (wanted <= *capacity) return true;
  kiln_status_t status =
      kilni_base_grow(lower->host->allocator, wanted, size, capacity, array);
  if (kiln_status_is_ok(status)) return true;
  if (kiln_status_is_ok(lower->status)) {
    lower->status = status;
  } else {
    kiln_status_free(status);
  }
  return false;
}

void kilni_soft_lower_deinit(kilni_soft_lower_t* lower) {
  kiln_allocator_t a = lower->host->allocator;
  kilni_base_free_array(a, lower->lows, lower->low_capacity,
                        sizeof(*lower->lows));
  kilni_base_free_array(a, lower->vregs, lower->vreg_capacity,
                        sizeof(*lower->vregs));
  kilni_base_free_array(a, lower->constants, lower->constant_capacity,
                        sizeof(*lower->constants));
  kilni_base_free_array(a, lower->constant_next, lower->constant_next_capacity,
                        sizeof(*lower->constant_next));
  kilni_base_free_array(a, lower->calls, lower->call_capacity,
                        sizeof(*lower->calls));
  kilni_base_free_array(a, lower->passes, lower->pass_capacity,
                        sizeof(*lower->passes));
  kilni_base_free_array(a, lower->targets, lower->target_capacity,
                        sizeof(*lower->targets));
  kilni_base_free_array(a, lower->shared, lower->shared_capacity,
                        sizeof(*lower->shared));
  kilni_base_free_array(a, lower->blocks, lower->block_capacity,
                        sizeof(*lower->blocks));
  kilni_base_free_array(a, lower->order, lower->order_capacity,
                        sizeof(*lower->order));
  kilni_base_free_array(a, lower->register_vregs,
                        (size_t)lower->source->register_count + 1,
                        sizeof(uint32_t));
  kilni_base_free_array(a, lower->variable_words,
                        (size_t)lower->module->variable_count + 1,
                        sizeof(uint32_t));
  kilni_base_free_array(a, lower->param_places,
                        (size_t)lower->module->variable_count + 1,
                        sizeof(uint32_t));
}

uint32_t kilni_soft_vreg_new(kilni_soft_lower_t* lower, uint32_t class_,
                             uint32_t bits) {
  if (!KILNI_SOFT_GROW(lower, vregs, lower->vreg_count + 1, vreg_capacity)) {
    return 0;
  }
  kilni_soft_vreg_t* vreg = &lower->vregs[lower->vreg_count];
  *vreg = (kilni_soft_vreg_t){.class_ = (uint8_t)class_,
                              .bits = (uint8_t)bits,
                              .constant = KILNI_SOFT_NONE,
                              .slot = KILNI_SOFT_NONE};
  return (uint32_t)lower->vreg_count++;
}

uint32_t kilni_soft_temp(kilni_soft_lower_t* lower, uint32_t class_) {
  static const uint32_t bits[] = {32, 64, 1};
  uint32_t vreg = kilni_soft_vreg_new(lower, class_, bits[class_]);
  if (kiln_status_is_ok(lower->status)) lower->vregs[vreg].is_temp = 1;
  return vreg;
}

static uint32_t constant_hash(const kilni_soft_constant_t* c) {
  uint64_t h = c->value * 0x9e3779b97f4a7c15ull;
  h ^= (uint64_t)c->index << 17 ^ (uint64_t)c->kind << 3 ^ c->wide;
  return (uint32_t)(h >> 24) & 255u;
}

static bool constant_equal(const kilni_soft_constant_t* a,
                           const kilni_soft_constant_t* b) {
  return a->value == b->value && a->index == b->index && a->kind == b->kind &&
         a->wide == b->wide && a->bytes == b->bytes &&
         a->is_signed == b->is_signed && a->to_bytes == b->to_bytes &&
         a->generic == b->generic;
}

uint32_t kilni_soft_constant(kilni_soft_lower_t* lower,
                             const kilni_soft_constant_t* constant) {
  uint32_t hash = constant_hash(constant);
  for (uint32_t i = lower->constant_heads[hash]; i;
       i = lower->constant_next[i - 1]) {
    if (constant_equal(&lower->constants[i - 1], constant)) {
      return (i - 1) | KILNI_SOFT_CONSTANT_WORD;
    }
  }
  size_t at = lower->constant_count;
  if (!KILNI_SOFT_GROW(lower, constants, at + 1, constant_capacity) ||
      !KILNI_SOFT_GROW(lower, constant_next, at + 1, constant_next_capacity)) {
    return KILNI_SOFT_CONSTANT_WORD;
  }
  lower->constants[at] = *constant;
  lower->constant_next[at] = lower->constant_heads[hash];
  lower->constant_heads[hash] = (uint32_t)at + 1;
  lower->constant_count++;
  return (uint32_t)at | KILNI_SOFT_CONSTANT_WORD;
}

uint32_t kilni_soft_value(kilni_soft_lower_t* lower, uint64_t value,
                          bool wide) {
  kilni_soft_constant_t constant = {.value = wide ? value : (uint32_t)value,
                                    .kind = KILNI_SOFT_CONSTANT_VALUE,
                                    .wide = wide};
  return kilni_soft_constant(lower, &constant);
}

kilni_soft_low_t* kilni_soft_low(kilni_soft_lower_t* lower, uint32_t op) {
  kilni_soft_low_t* low = &lower->scrap;
  if (KILNI_SOFT_GROW(lower, lows, lower->low_count + 1, low_capacity)) {
    low = &lower->lows[lower->low_count++];
  }
  memset(low, 0, sizeof(*low));
  low->op = (uint16_t)op;
  low->guard = lower->guard;
  low->line = lower->line;
  return low;
}

void kilni_soft_low_word(kilni_soft_low_t* low, uint32_t at, uint32_t word,
                         uint32_t role) {
  low->word[at] = word;
  low->role[at] = (uint8_t)role;
}

kilni_soft_low_t* kilni_soft_low_unary(kilni_soft_lower_t* lower, uint32_t op,
                                       uint32_t d, uint32_t a, uint32_t aux) {
  kilni_soft_low_t* low = kilni_soft_low(lower, op);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, d, KILNI_SOFT_ROLE_DEF);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, a, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = aux;
  return low;
}

kilni_soft_low_t* kilni_soft_low_binary(kilni_soft_lower_t* lower, uint32_t op,
                                        uint32_t d, uint32_t a, uint32_t b) {
  kilni_soft_low_t* low = kilni_soft_low_unary(lower, op, d, a, 0);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, b, KILNI_SOFT_ROLE_USE);
  return low;
}

void kilni_soft_refuse(kilni_soft_lower_t* lower, const char* format, ...) {
  if (lower->refused_count++) return;
  lower->refused_line = lower->line;
  va_list args;
  va_start(args, format);
  vsnprintf(lower->refused_text, sizeof(lower->refused_text), format, args);
  va_end(args);
}

void kilni_soft_refuse_undefined(kilni_soft_lower_t* lower, const char* what,
                                 const char* name) {
  if (lower->refused_count == 0) lower->refused_undefined = true;
  kilni_soft_refuse(lower, "the %s \"%s\" is declared but not defined", what,
                    name);
}

void kilni_soft_note_shared(kilni_soft_lower_t* lower, uint32_t variable) {
  for (size_t i = 0; i < lower->shared_count; i++) {
    if (lower->shared[i] == variable) return;
  }
  if (!KILNI_SOFT_GROW(lower, shared, lower->shared_count + 1,
                       shared_capacity)) {
    return;
  }
  lower->shared[lower->shared_count++] = variable;
}
