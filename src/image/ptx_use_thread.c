// SPDX-License-Identifier: Apache-2.0
//
// image: in how many dimensions a kernel counts its threads and blocks.
//
// A thread's rank in its block, tid.x + ntid.x * (tid.y + ntid.y * tid.z), is a
// number of one dimension: a block of one gives the same ranks as any other
// with so many threads. What y and z are used for beside that counts. The same
// goes for blocks in a grid.
#include "image/ptx_use.h"

static uint32_t size_of(const kilni_ptx_look_t* look,
                        const kilni_ptx_operand_t* operand) {
  const kilni_ptx_fact_t* fact = kilni_ptx_fact(look, operand);
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

static uint32_t product_of(uint32_t a, uint32_t b) {
  uint32_t low = a < b ? a : b;
  uint32_t high = a < b ? b : a;
  bool is_pair =
      low % KILNI_PTX_SIZE_GRID == KILNI_PTX_SIZE_X && high == low + 1;
  return is_pair ? high + 1 : KILNI_PTX_SIZE_NONE;
}

static uint32_t places_of(const kilni_ptx_look_t* look,
                          const kilni_ptx_operand_t* operand) {
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

static void count(kilni_ptx_look_t* look, uint32_t places) {
  look->counted = (uint8_t)(look->counted | places);
}

// What remains of places that are multiplied by something.
static uint32_t scale(kilni_ptx_look_t* look, uint32_t places, uint32_t size) {
  uint32_t shift = size > KILNI_PTX_SIZE_GRID ? KILNI_PTX_PLACE_BLOCK : 0;
  uint32_t mine = places >> shift & KILNI_PTX_PLACE_ALL;
  uint32_t by = size % KILNI_PTX_SIZE_GRID;
  if (places == 0) return 0;
  if ((mine << shift) != places || by == 0) {
    count(look, places);
    return 0;
  }
  if (by == KILNI_PTX_SIZE_X && (mine & KILNI_PTX_PLACE_Z) == 0) return 0;
  if (by == KILNI_PTX_SIZE_Y && mine == KILNI_PTX_PLACE_Z) {
    return (uint32_t)KILNI_PTX_PLACE_ZY << shift;
  }
  if (by == KILNI_PTX_SIZE_XY && mine == KILNI_PTX_PLACE_Z) return 0;
  count(look, places);
  return 0;
}

static uint32_t multiply(kilni_ptx_look_t* look, const kilni_ptx_operand_t* a,
                         const kilni_ptx_operand_t* b) {
  return scale(look, places_of(look, a), size_of(look, b)) |
         scale(look, places_of(look, b), size_of(look, a));
}

static void put(kilni_ptx_look_t* look, const kilni_ptx_operand_t* to,
                uint32_t places, uint32_t size) {
  kilni_ptx_fact_t* fact = kilni_ptx_fact(look, to);
  if (fact == NULL) {
    count(look, places);
    return;
  }
  if (fact->writes != 1) size = KILNI_PTX_SIZE_NONE;
  if ((places & ~(uint32_t)fact->places) != 0 || fact->size != size) {
    look->changed = true;
  }
  fact->places = (uint8_t)(fact->places | places);
  fact->size = (uint8_t)size;
}

// All that goes into an instruction counts, and what comes out is no more.
static void count_all(kilni_ptx_look_t* look, const kilni_ptx_operand_t* ops,
                      uint32_t operand_count, uint32_t depth) {
  for (uint32_t i = 0; i < operand_count; i++) {
    count(look, places_of(look, &ops[i]));
    if (ops[i].kind == KILNI_PTX_OPERAND_ADDRESS &&
        ops[i].base == KILNI_PTX_BASE_REGISTER) {
      count(look, look->facts[ops[i].index].places);
    }
    const kilni_ptx_operand_t* children =
        kilni_ptx_operand_children(look->module, &ops[i]);
    if (children != NULL && depth != 0) {
      count_all(look, children, ops[i].count, depth - 1);
    }
  }
}

static bool is_widened(const kilni_ptx_form_t* form) {
  uint32_t types[2];
  return kilni_ptx_form_types(form, types) == 2 &&
         kilni_ptx_type_class(types[0]) != KILNI_PTX_CLASS_FLOAT &&
         kilni_ptx_type_bytes(types[0]) >= 4 &&
         kilni_ptx_type_bytes(types[1]) >= 4;
}

static void follow(kilni_ptx_look_t* look, const kilni_ptx_instruction_t* ins,
                   const kilni_ptx_operand_t* ops) {
  enum { DEPTH = 4 };
  const kilni_ptx_form_t* form = kilni_ptx_instruction_form(look->module, ins);
  bool is_low = !kilni_ptx_form_has(form, KILNI_PTX_MOD_HI);
  bool is_copy = ins->opcode == KILNI_PTX_OP_MOV ||
                 (ins->opcode == KILNI_PTX_OP_CVT && is_widened(form));
  if (is_copy) {
    put(look, &ops[0], places_of(look, &ops[1]), size_of(look, &ops[1]));
  } else if (ins->opcode == KILNI_PTX_OP_ADD) {
    put(look, &ops[0], places_of(look, &ops[1]) | places_of(look, &ops[2]), 0);
  } else if (ins->opcode == KILNI_PTX_OP_MUL && is_low) {
    uint32_t size = product_of(size_of(look, &ops[1]), size_of(look, &ops[2]));
    put(look, &ops[0], multiply(look, &ops[1], &ops[2]), size);
  } else if (ins->opcode == KILNI_PTX_OP_MAD && is_low) {
    uint32_t places = multiply(look, &ops[1], &ops[2]);
    put(look, &ops[0], places | places_of(look, &ops[3]), 0);
  } else {
    count_all(look, ops, ins->operand_count, DEPTH);
  }
}

static void note_read(kilni_ptx_look_t* look,
                      const kilni_ptx_operand_t* operand) {
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
static void note_reads(kilni_ptx_look_t* look,
                       const kilni_ptx_function_t* function) {
  if (function->instruction_count == 0) return;
  const kilni_ptx_instruction_t* first = &function->instructions[0];
  const kilni_ptx_instruction_t* last =
      &function->instructions[function->instruction_count - 1];
  uint32_t at = 0;
  if (function->first_instruction != 0) {
    const kilni_ptx_instruction_t* before = first - 1;
    at = before->first_operand + before->operand_count;
  }
  uint32_t end = last->first_operand + last->operand_count;
  for (; at < end; at++) note_read(look, &look->module->operands[at]);
}

static bool has_calls(const kilni_ptx_function_t* f) {
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    if (f->instructions[i].opcode == KILNI_PTX_OP_CALL) return true;
  }
  return false;
}

// What is called may be any function, and what it reads is not followed.
static uint32_t places_of_functions(kilni_ptx_look_t* look) {
  for (uint32_t i = 0; i < look->module->function_count; i++) {
    const kilni_ptx_function_t* f = &look->module->functions[i];
    if (!f->is_entry && f->is_defined) note_reads(look, f);
  }
  const kiln_image_threads_t* threads = &look->use->threads;
  return (threads->tid | threads->ctaid) >> 1;  // y and z
}

static void sweep(kilni_ptx_look_t* look) {
  const kilni_ptx_function_t* f = look->function;
  look->changed = false;
  look->counted = 0;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    const kilni_ptx_operand_t* ops =
        kilni_ptx_instruction_operands(look->module, &f->instructions[i]);
    if (ops != NULL) follow(look, &f->instructions[i], ops);
  }
}

void kilni_ptx_use_threads(kilni_ptx_look_t* look) {
  kiln_image_threads_t* threads = &look->use->threads;
  uint32_t called = has_calls(look->function) ? places_of_functions(look) : 0;
  note_reads(look, look->function);
  // The last sweep is one that finds nothing new, and what it counts counts:
  // before, a size that is not known yet makes a product count too early.
  look->changed = true;
  for (uint32_t i = 0; i < KILNI_PTX_USE_SWEEPS && look->changed; i++) {
    sweep(look);
  }
  uint32_t counted =
      called | look->counted | look->counted >> KILNI_PTX_PLACE_BLOCK;
  if (look->changed) counted = (threads->tid | threads->ctaid) >> 1;
  threads->dimensions = 1;
  if ((counted & KILNI_PTX_PLACE_Y) != 0) threads->dimensions = 2;
  if ((counted & (KILNI_PTX_PLACE_Z | KILNI_PTX_PLACE_ZY)) != 0) {
    threads->dimensions = 3;
  }
}
