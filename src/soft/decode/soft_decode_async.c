// SPDX-License-Identifier: Apache-2.0
//
// soft: cp.async and mbarrier.
//
// A copy is done when it is issued, which PTX allows: it does not specify when
// a copy ends before it is waited for. So groups need no state.
#include "soft/code/soft_async.h"
#include "soft/decode/soft_lower.h"

static void decode_async_refuse_form(kilni_soft_lower_t* lower,
                                     const kilni_soft_source_t* source) {
  kilni_soft_refuse(lower, "%s", source->form->text);
}

static bool decode_async_has(const kilni_soft_source_t* source,
                             uint32_t modifier) {
  return kilni_soft_form_has(source->form, modifier);
}

static bool has_shared(const kilni_soft_source_t* source) {
  return decode_async_has(source, KILNI_PTX_MOD_SHARED) ||
         decode_async_has(source, KILNI_PTX_MOD_SHARED_CTA) ||
         decode_async_has(source, KILNI_PTX_MOD_SHARED_CLUSTER);
}

static uint32_t decode_async_space_of(const kilni_soft_source_t* source) {
  return has_shared(source) ? KILNI_SOFT_SPACE_SHARED
                            : KILNI_SOFT_SPACE_GENERIC;
}

// Whether a spelling names shared memory, and then global.
static bool goes_to_shared(const kilni_soft_source_t* source) {
  const kilni_image_ptx_form_t* form = source->form;
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    if (form->modifiers[i] == KILNI_PTX_MOD_GLOBAL) return false;
    if (form->modifiers[i] == KILNI_PTX_MOD_SHARED ||
        form->modifiers[i] == KILNI_PTX_MOD_SHARED_CTA) {
      return decode_async_has(source, KILNI_PTX_MOD_GLOBAL);
    }
  }
  return false;
}

// Past the first level of the cache only whole sectors go.
static bool size_fits(const kilni_soft_source_t* source,
                      const kilni_image_ptx_operand_t* size) {
  if (size->kind != KILNI_PTX_OPERAND_IMMEDIATE) return false;
  if (size->value == 16) return true;
  return (size->value == 4 || size->value == 8) &&
         !decode_async_has(source, KILNI_PTX_MOD_CG);
}

// [dst], [src], cp-size{, src-size | ignore-src}{, policy}
static void decode_copy(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  uint32_t count =
      source->count -
      (decode_async_has(source, KILNI_PTX_MOD_L2_CACHE_HINT) ? 1u : 0u);
  uint32_t to;
  uint32_t from;
  if (count < 3 || count > 4 || !goes_to_shared(source) ||
      !size_fits(source, &operands[2])) {
    decode_async_refuse_form(lower, source);
    return;
  }
  if (!kilni_soft_address(lower, &operands[0], KILNI_SOFT_SPACE_SHARED, &to) ||
      !kilni_soft_address(lower, &operands[1], KILNI_SOFT_SPACE_GLOBAL,
                          &from)) {
    return;
  }
  uint32_t flags = (uint32_t)operands[2].value;
  uint32_t size = KILNI_SOFT_NONE;
  uint32_t ignore = 0;
  if (count == 4) {
    bool is_pred = operands[3].kind == KILNI_PTX_OPERAND_REGISTER &&
                   kilni_soft_register_bits(lower, &operands[3]) == 1;
    if (is_pred) {
      ignore = kilni_soft_use_pred(lower, &operands[3]);
      flags |= KILNI_SOFT_COPY_HAS_IGNORE;
    } else {
      size = kilni_soft_use(lower, &operands[3], false, 0);
      flags |= KILNI_SOFT_COPY_HAS_SIZE;
    }
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_cp_async);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, to, KILNI_SOFT_ROLE_USE);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, from, KILNI_SOFT_ROLE_USE);
  kilni_soft_low_word(
      low, KILNI_SOFT_WORD_C, size,
      size == KILNI_SOFT_NONE ? KILNI_SOFT_ROLE_RAW : KILNI_SOFT_ROLE_USE);
  if (flags & KILNI_SOFT_COPY_HAS_IGNORE) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D, ignore,
                        KILNI_SOFT_ROLE_USE_PRED);
  }
  low->word[KILNI_SOFT_WORD_AUX] = flags;
}

// What an mbarrier operation is made of. one-thread
typedef struct mbarrier_t {
  uint32_t flags;
  const kilni_image_ptx_operand_t* result;   // NULL: none
  const kilni_image_ptx_operand_t* address;  // NULL: none
  const kilni_image_ptx_operand_t* value;    // NULL: none
  bool result_is_pred;
  bool result_is_wide;
  bool value_is_wide;
} mbarrier_t;

static void emit_mbarrier(kilni_soft_lower_t* lower,
                          const kilni_soft_source_t* source, mbarrier_t* m) {
  uint32_t base = 0;
  uint32_t value = 0;
  uint32_t d = 0;
  uint32_t space = decode_async_space_of(source);
  if (space == KILNI_SOFT_SPACE_GENERIC) {
    m->flags |= KILNI_SOFT_MBARRIER_GENERIC;
  }
  if (m->address && !kilni_soft_address(lower, m->address, space, &base)) {
    return;
  }
  if (m->value) {
    value = kilni_soft_use(lower, m->value, m->value_is_wide, 0);
    m->flags |= KILNI_SOFT_MBARRIER_HAS_VALUE;
  }
  if (m->result && m->result->kind == KILNI_PTX_OPERAND_SINK) m->result = NULL;
  if (m->result) {
    m->flags |= KILNI_SOFT_MBARRIER_HAS_RESULT;
    d = m->result_is_pred ? kilni_soft_def_pred(lower, m->result)
                          : kilni_soft_def(lower, m->result, m->result_is_wide);
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_mbarrier);
  if (m->result) {
    kilni_soft_low_word(
        low, KILNI_SOFT_WORD_D, d,
        m->result_is_pred ? KILNI_SOFT_ROLE_DEF_PRED : KILNI_SOFT_ROLE_DEF);
  }
  if (m->address) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  }
  if (m->value) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_B, value, KILNI_SOFT_ROLE_USE);
  }
  low->word[KILNI_SOFT_WORD_AUX] = m->flags;
  if (m->result && !m->result_is_pred) {
    kilni_soft_def_done(lower, m->result, d, m->result_is_wide, false);
  }
}

// state, [addr]{, count}; the count is what is expected with .expect_tx.
static bool read_arrive(const kilni_soft_source_t* source, mbarrier_t* m) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  bool tx = decode_async_has(source, KILNI_PTX_MOD_EXPECT_TX);
  if (tx) m->flags |= KILNI_SOFT_MBARRIER_WITH_TX;
  m->result = &operands[0];
  m->result_is_wide = true;
  m->address = &operands[1];
  if (source->count == 3) m->value = &operands[2];
  // Another block's barrier returns no state.
  if (decode_async_has(source, KILNI_PTX_MOD_SHARED_CLUSTER) &&
      operands[0].kind != KILNI_PTX_OPERAND_SINK) {
    return false;
  }
  return source->count >= (tx ? 3u : 2u) && source->count <= 3;
}

// p, [addr], state or parity{, time}
static bool decode_async_read_wait(const kilni_soft_lower_t* lower,
                                   const kilni_soft_source_t* source,
                                   mbarrier_t* m) {
  bool parity = decode_async_has(source, KILNI_PTX_MOD_PARITY);
  bool tries = decode_async_has(source, KILNI_PTX_MOD_TRY_WAIT);
  m->flags |=
      parity ? KILNI_SOFT_MBARRIER_TEST_PARITY : KILNI_SOFT_MBARRIER_TEST;
  if (tries) m->flags |= KILNI_SOFT_MBARRIER_TRY;
  m->result = &source->operands[0];
  m->result_is_pred = true;
  m->address = &source->operands[1];
  m->value = &source->operands[2];
  m->value_is_wide = !parity;
  if (source->count < 3) return false;
  if (m->value->kind == KILNI_PTX_OPERAND_REGISTER &&
      kilni_soft_register_bits(lower, m->value) != (parity ? 32 : 64)) {
    return false;
  }
  return source->count <= (tries ? 4u : 3u);
}

static bool read_mbarrier(const kilni_soft_lower_t* lower,
                          const kilni_soft_source_t* source, mbarrier_t* m) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  if (decode_async_has(source, KILNI_PTX_MOD_ARRIVE)) {
    m->flags = KILNI_SOFT_MBARRIER_ARRIVE;
    return read_arrive(source, m);
  }
  if (decode_async_has(source, KILNI_PTX_MOD_ARRIVE_DROP)) {
    m->flags = KILNI_SOFT_MBARRIER_ARRIVE_DROP;
    return read_arrive(source, m);
  }
  if (decode_async_has(source, KILNI_PTX_MOD_TEST_WAIT) ||
      decode_async_has(source, KILNI_PTX_MOD_TRY_WAIT)) {
    return decode_async_read_wait(lower, source, m);
  }
  if (decode_async_has(source, KILNI_PTX_MOD_PENDING_COUNT)) {
    m->flags = KILNI_SOFT_MBARRIER_PENDING;
    m->result = &operands[0];
    m->value = &operands[1];
    m->value_is_wide = true;
    return source->count == 2;
  }
  m->address = &operands[0];
  if (decode_async_has(source, KILNI_PTX_MOD_INVAL)) {
    m->flags = KILNI_SOFT_MBARRIER_INVAL;
    return source->count == 1;
  }
  m->value = &operands[1];
  if (source->count != 2) return false;
  if (decode_async_has(source, KILNI_PTX_MOD_INIT)) {
    m->flags = KILNI_SOFT_MBARRIER_INIT;
  } else if (decode_async_has(source, KILNI_PTX_MOD_EXPECT_TX)) {
    m->flags = KILNI_SOFT_MBARRIER_EXPECT_TX;
  } else if (decode_async_has(source, KILNI_PTX_MOD_COMPLETE_TX)) {
    m->flags = KILNI_SOFT_MBARRIER_COMPLETE_TX;
  } else {
    return false;
  }
  return true;
}

static void decode_async_nothing(kilni_soft_lower_t* lower) {
  kilni_soft_low(lower, 0)->kind = KILNI_SOFT_LOW_NOTHING;
}

void kilni_soft_decode_async(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source) {
  mbarrier_t m = {0};
  if (source->ins->opcode == KILNI_PTX_OP_MBARRIER) {
    if (read_mbarrier(lower, source, &m)) {
      emit_mbarrier(lower, source, &m);
    } else {
      decode_async_refuse_form(lower, source);
    }
    return;
  }
  bool bulk = decode_async_has(source, KILNI_PTX_MOD_BULK) ||
              decode_async_has(source, KILNI_PTX_MOD_TENSOR) ||
              !decode_async_has(source, KILNI_PTX_MOD_ASYNC);
  if (bulk) {
    decode_async_refuse_form(lower, source);
  } else if (decode_async_has(source, KILNI_PTX_MOD_COMMIT_GROUP) ||
             decode_async_has(source, KILNI_PTX_MOD_WAIT_GROUP) ||
             decode_async_has(source, KILNI_PTX_MOD_WAIT_ALL)) {
    uint32_t count = decode_async_has(source, KILNI_PTX_MOD_WAIT_GROUP) ? 1 : 0;
    if (source->count == count) {
      decode_async_nothing(lower);
    } else {
      decode_async_refuse_form(lower, source);
    }
  } else if (!decode_async_has(source, KILNI_PTX_MOD_MBARRIER)) {
    decode_copy(lower, source);
  } else if (source->count != 1) {
    decode_async_refuse_form(lower, source);
  } else if (!decode_async_has(source, KILNI_PTX_MOD_NOINC)) {
    decode_async_nothing(
        lower);  // counted up when it is issued, and down at once
  } else {
    m.flags = KILNI_SOFT_MBARRIER_COPIES;
    m.address = &source->operands[0];
    emit_mbarrier(lower, source, &m);
  }
}
