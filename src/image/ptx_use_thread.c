// SPDX-License-Identifier: Apache-2.0
//
// image: in how many dimensions a kernel counts its threads and blocks.
//
// A thread's rank in its block, tid.x + ntid.x * (tid.y + ntid.y * tid.z), is a
// number of one dimension: a block of one gives the same ranks as any other
// with so many threads. Nor does it count what is printed, and whether y and z
// are 0, as of the one thread that does what is done once: alone or in an OR of
// all three. What they are used for beside that counts. The same goes for
// blocks in a grid.
#include "base/status_make.h"
#include "image/ptx_use.h"

enum { DEPTH = 4 };  // of brackets in one operand, at the most

static uint32_t ptx_use_thread_size_of(
    const kilni_image_ptx_look_t* look,
    const kilni_image_ptx_operand_t* operand) {
  const kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, operand);
  if (fact != NULL) return fact->size;
  if (operand->kind != KILNI_PTX_OPERAND_SPECIAL || operand->component > 1) {
    return KILNI_PTX_SIZE_NONE;
  }
  uint32_t size = operand->component == 0 ? KILNI_PTX_SIZE_X : KILNI_PTX_SIZE_Y;
  if (operand->index == KILNI_PTX_SREG_NTID) return size;
  if (operand->index == KILNI_PTX_SREG_NCTAID) {
    return size + KILNI_PTX_SIZE_GRID;
  }
  return KILNI_PTX_SIZE_NONE;
}

static uint32_t ptx_use_thread_product_of(uint32_t a, uint32_t b) {
  uint32_t low = a < b ? a : b;
  uint32_t high = a < b ? b : a;
  bool is_pair =
      low % KILNI_PTX_SIZE_GRID == KILNI_PTX_SIZE_X && high == low + 1;
  return is_pair ? high + 1 : KILNI_PTX_SIZE_NONE;
}

static uint32_t ptx_use_thread_places_of(
    const kilni_image_ptx_look_t* look,
    const kilni_image_ptx_operand_t* operand) {
  if (operand->kind == KILNI_PTX_OPERAND_REGISTER) {
    return look->facts[operand->index].places;
  }
  if (operand->kind != KILNI_PTX_OPERAND_SPECIAL) return 0;
  uint32_t places = operand->component == 1   ? KILNI_PTX_PLACE_Y
                    : operand->component == 2 ? KILNI_PTX_PLACE_Z
                                              : 0;
  if (operand->component == KILNI_PTX_WHOLE) {
    places = KILNI_PTX_PLACE_Y | KILNI_PTX_PLACE_Z;
  }
  if (operand->index == KILNI_PTX_SREG_TID) return places;
  if (operand->index == KILNI_PTX_SREG_CTAID) {
    return places << KILNI_PTX_PLACE_BLOCK;
  }
  return 0;
}

static void ptx_use_thread_count(kilni_image_ptx_look_t* look,
                                 uint32_t places) {
  look->counted = (uint8_t)(look->counted | places);
}

static uint32_t mixed_of(const kilni_image_ptx_look_t* look,
                         const kilni_image_ptx_operand_t* operand) {
  return operand->kind == KILNI_PTX_OPERAND_REGISTER
             ? look->facts[operand->index].mixed
             : 0;
}

// What remains of places that are multiplied by something.
static uint32_t ptx_use_thread_scale(kilni_image_ptx_look_t* look,
                                     uint32_t places, uint32_t size) {
  uint32_t shift = size > KILNI_PTX_SIZE_GRID ? KILNI_PTX_PLACE_BLOCK : 0;
  uint32_t mine = places >> shift & KILNI_PTX_PLACE_ALL;
  uint32_t by = size % KILNI_PTX_SIZE_GRID;
  if (places == 0) return 0;
  if ((mine << shift) != places || by == 0) {
    ptx_use_thread_count(look, places);
    return 0;
  }
  if (by == KILNI_PTX_SIZE_X && (mine & KILNI_PTX_PLACE_Z) == 0) return 0;
  if (by == KILNI_PTX_SIZE_Y && mine == KILNI_PTX_PLACE_Z) {
    return (uint32_t)KILNI_PTX_PLACE_ZY << shift;
  }
  if (by == KILNI_PTX_SIZE_XY && mine == KILNI_PTX_PLACE_Z) return 0;
  ptx_use_thread_count(look, places);
  return 0;
}

static uint32_t ptx_use_thread_multiply(kilni_image_ptx_look_t* look,
                                        const kilni_image_ptx_operand_t* a,
                                        const kilni_image_ptx_operand_t* b) {
  return ptx_use_thread_scale(look, ptx_use_thread_places_of(look, a),
                              ptx_use_thread_size_of(look, b)) |
         ptx_use_thread_scale(look, ptx_use_thread_places_of(look, b),
                              ptx_use_thread_size_of(look, a));
}

static void ptx_use_thread_put(kilni_image_ptx_look_t* look,
                               const kilni_image_ptx_operand_t* to,
                               uint32_t places, uint32_t size) {
  kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, to);
  if (fact == NULL) {
    ptx_use_thread_count(look, places);
    return;
  }
  if (fact->writes != 1) size = KILNI_PTX_SIZE_NONE;
  if ((places & ~(uint32_t)fact->places) != 0 || fact->size != size) {
    look->changed = true;
  }
  fact->places = (uint8_t)(fact->places | places);
  fact->size = (uint8_t)size;
}

// Of a mixture nothing but whether it is 0 is of one dimension.
static void put_mixed(kilni_image_ptx_look_t* look,
                      const kilni_image_ptx_operand_t* to, uint32_t mixed) {
  kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, to);
  if (mixed == 0) return;
  if (fact == NULL) {
    ptx_use_thread_count(look, mixed);
    return;
  }
  if ((mixed & ~(uint32_t)fact->mixed) != 0) look->changed = true;
  fact->mixed = (uint8_t)(fact->mixed | mixed);
}

// All inputs of an instruction count, and its result depends on nothing else.
static void count_all(kilni_image_ptx_look_t* look,
                      const kilni_image_ptx_operand_t* ops,
                      uint32_t operand_count, uint32_t depth) {
  for (uint32_t i = 0; i < operand_count; i++) {
    ptx_use_thread_count(look, ptx_use_thread_places_of(look, &ops[i]) |
                                   mixed_of(look, &ops[i]));
    if (ops[i].kind == KILNI_PTX_OPERAND_ADDRESS &&
        ops[i].base == KILNI_PTX_BASE_REGISTER) {
      const kilni_image_ptx_fact_t* fact = &look->facts[ops[i].index];
      ptx_use_thread_count(look, (uint32_t)fact->places | fact->mixed);
    }
    const kilni_image_ptx_operand_t* children =
        kilni_image_ptx_operand_children(look->module, &ops[i]);
    if (children != NULL && depth != 0) {
      count_all(look, children, ops[i].count, depth - 1);
    }
  }
}

static bool is_widened(const kilni_image_ptx_form_t* form) {
  uint32_t types[2];
  return kilni_image_ptx_form_types(form, types) == 2 &&
         kilni_image_ptx_type_class(types[0]) != KILNI_PTX_CLASS_FLOAT &&
         kilni_image_ptx_type_bytes(types[0]) >= 4 &&
         kilni_image_ptx_type_bytes(types[1]) >= 4;
}

// Whether an instruction asks only if a whole number is 0.
static bool asks_for_zero(const kilni_image_ptx_instruction_t* ins,
                          const kilni_image_ptx_form_t* form,
                          const kilni_image_ptx_operand_t* ops) {
  uint32_t types[2];
  return ins->opcode == KILNI_PTX_OP_SETP && ins->operand_count > 2 &&
         (kilni_image_ptx_form_has(form, KILNI_PTX_MOD_EQ) ||
          kilni_image_ptx_form_has(form, KILNI_PTX_MOD_NE)) &&
         kilni_image_ptx_form_types(form, types) == 1 &&
         kilni_image_ptx_type_class(types[0]) != KILNI_PTX_CLASS_FLOAT &&
         ops[2].kind == KILNI_PTX_OPERAND_IMMEDIATE && ops[2].value == 0;
}

// What a mixture goes into counts, but where it stays one.
static void count_mixed(kilni_image_ptx_look_t* look,
                        const kilni_image_ptx_operand_t* ops,
                        uint32_t operand_count) {
  for (uint32_t i = 1; i < operand_count; i++) {
    ptx_use_thread_count(look, mixed_of(look, &ops[i]));
  }
}

// Steps that keep a mixture, and those that count nothing; false for others.
static bool follow_quietly(kilni_image_ptx_look_t* look,
                           const kilni_image_ptx_instruction_t* ins,
                           const kilni_image_ptx_form_t* form,
                           const kilni_image_ptx_operand_t* ops) {
  if (ins->opcode == KILNI_PTX_OP_MOV ||
      (ins->opcode == KILNI_PTX_OP_CVT && is_widened(form))) {
    ptx_use_thread_put(look, &ops[0], ptx_use_thread_places_of(look, &ops[1]),
                       ptx_use_thread_size_of(look, &ops[1]));
    put_mixed(look, &ops[0], mixed_of(look, &ops[1]));
    return true;
  }
  if (ins->opcode == KILNI_PTX_OP_OR) {
    for (uint32_t i = 1; i < 3; i++) {
      put_mixed(
          look, &ops[0],
          ptx_use_thread_places_of(look, &ops[i]) | mixed_of(look, &ops[i]));
    }
    return true;
  }
  if (look->only_printed && ins->opcode == KILNI_PTX_OP_ST &&
      kilni_image_ptx_form_space(form) == KILNI_PTX_SPACE_LOCAL) {
    count_all(look, ops, 1, DEPTH);
    return true;
  }
  return asks_for_zero(ins, form, ops);
}

static void ptx_use_thread_follow(kilni_image_ptx_look_t* look,
                                  const kilni_image_ptx_instruction_t* ins,
                                  const kilni_image_ptx_operand_t* ops) {
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(look->module, ins);
  bool is_low = !kilni_image_ptx_form_has(form, KILNI_PTX_MOD_HI);
  if (follow_quietly(look, ins, form, ops)) return;
  count_mixed(look, ops, ins->operand_count);
  if (ins->opcode == KILNI_PTX_OP_ADD) {
    ptx_use_thread_put(look, &ops[0],
                       ptx_use_thread_places_of(look, &ops[1]) |
                           ptx_use_thread_places_of(look, &ops[2]),
                       0);
  } else if (ins->opcode == KILNI_PTX_OP_MUL && is_low) {
    uint32_t size =
        ptx_use_thread_product_of(ptx_use_thread_size_of(look, &ops[1]),
                                  ptx_use_thread_size_of(look, &ops[2]));
    ptx_use_thread_put(look, &ops[0],
                       ptx_use_thread_multiply(look, &ops[1], &ops[2]), size);
  } else if (ins->opcode == KILNI_PTX_OP_MAD && is_low) {
    uint32_t places = ptx_use_thread_multiply(look, &ops[1], &ops[2]);
    ptx_use_thread_put(look, &ops[0],
                       places | ptx_use_thread_places_of(look, &ops[3]), 0);
  } else {
    count_all(look, ops, ins->operand_count, DEPTH);
  }
}

static void sweep(kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  look->changed = false;
  look->counted = 0;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    const kilni_image_ptx_operand_t* ops =
        kilni_image_ptx_instruction_operands(look->module, &f->instructions[i]);
    if (ops != NULL) ptx_use_thread_follow(look, &f->instructions[i], ops);
  }
}

// The last dimension of which something counts.
static uint32_t last_of(uint32_t places) {
  return (places & (KILNI_PTX_PLACE_Z | KILNI_PTX_PLACE_ZY)) != 0 ? 3
         : (places & KILNI_PTX_PLACE_Y) != 0                      ? 2
                                                                  : 1;
}

// y and z of all places that are read.
static uint32_t places_read(const kiln_image_threads_t* threads) {
  return threads->tid >> 1 | threads->ctaid >> 1 << KILNI_PTX_PLACE_BLOCK;
}

uint32_t kilni_image_ptx_use_places(kilni_image_ptx_look_t* look) {
  kilni_image_ptx_use_note_reads(look);
  look->only_printed = kilni_image_ptx_use_only_prints(look);
  // The last sweep is one that finds nothing new, and what it counts counts:
  // before, a size that is not known yet makes a product count too early.
  look->changed = true;
  for (uint32_t i = 0; i < KILNI_PTX_USE_SWEEPS && look->changed; i++) {
    sweep(look);
  }
  return look->changed ? places_read(&look->use->threads) : look->counted;
}

kiln_status_t kilni_image_ptx_use_threads(kilni_image_ptx_look_t* look,
                                          kiln_allocator_t allocator) {
  kiln_image_threads_t* threads = &look->use->threads;
  uint32_t counted = 0;
  KILNI_RETURN_IF_ERROR(kilni_image_ptx_use_calls(look, allocator, &counted));
  counted |= kilni_image_ptx_use_places(look);
  threads->tid_dimensions = last_of(counted & KILNI_PTX_PLACE_ALL);
  threads->ctaid_dimensions = last_of(counted >> KILNI_PTX_PLACE_BLOCK);
  threads->dimensions = threads->tid_dimensions > threads->ctaid_dimensions
                            ? threads->tid_dimensions
                            : threads->ctaid_dimensions;
  return kiln_ok();
}
