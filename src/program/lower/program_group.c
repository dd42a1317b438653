// SPDX-License-Identifier: Apache-2.0
//
// program: accesses of consecutive elements, one behind the other, as one of a
// vector.
//
// When a run of loads or stores of x[i], x[i + 1], ... is as long as a vector,
// they are taken back and written again where the last one stands: as a vector
// where the buffer's address and i are multiples of it and all elements are to
// be accessed, and one by one elsewhere. The test is the thread's own, so
// nothing is asked of who binds a buffer; where i is a multiple by the way it
// is made (4 * j), only the buffer's address is tested, for all alike.
//
// Loads are moved only from buffers that nobody writes, stores only over what
// has no effect, and neither behind a use of what was loaded.
#include <string.h>

#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum { VECTOR_BYTES = 16, MOST_LANES = 4, MOST_BETWEEN = 256 };

// What is added to what: index = root + offset.
typedef struct sum_t {
  kilni_value_t root;
  uint32_t offset;
} sum_t;

static const kilni_instruction_t* define_of(const kilni_lowering_t* w,
                                            kilni_value_t value) {
  uint32_t define = kilni_value_of(w, value)->define;
  const kilni_instruction_t* i = &w->instructions.items[define];
  bool once = define != 0 && i->define == 0 && i->guard == 0 &&
              i->form == KILNI_FORM_PLAIN;
  return once ? i : NULL;
}

static sum_t sum_of(const kilni_lowering_t* w, kilni_value_t index) {
  sum_t sum = {index, 0};
  const kilni_instruction_t* i = define_of(w, index);
  if (i != NULL && i->count == 3 && strcmp(i->name, "add.u32") == 0 &&
      kilni_value_is_const(w, i->operand[2])) {
    sum.root = i->operand[1];
    sum.offset = (uint32_t)kilni_value_of(w, i->operand[2])->bits;
  }
  return sum;
}

// How many of its lowest bits are 0, by the way it is made.
static uint32_t zeros_of(const kilni_lowering_t* w, kilni_value_t value,
                         uint32_t depth) {
  if (kilni_value_is_const(w, value)) {
    uint64_t bits = kilni_value_of(w, value)->bits;
    uint32_t zeros = 0;
    while (zeros < 8 && (bits >> zeros & 1) == 0) zeros++;
    return zeros;
  }
  const kilni_instruction_t* i = define_of(w, value);
  if (i == NULL || i->count != 3 || depth > 6) return 0;
  uint32_t a = zeros_of(w, i->operand[1], depth + 1);
  if (strcmp(i->name, "shl.b32") == 0) {
    if (!kilni_value_is_const(w, i->operand[2])) return a;
    return a + (uint32_t)kilni_value_of(w, i->operand[2])->bits;
  }
  uint32_t b = zeros_of(w, i->operand[2], depth + 1);
  if (strcmp(i->name, "add.u32") == 0 || strcmp(i->name, "sub.u32") == 0) {
    return a < b ? a : b;
  }
  return strcmp(i->name, "mul.lo.u32") == 0 ? a + b : 0;
}

static bool may_group(const kilni_lowering_t* w, const kilni_place_t* place,
                      kilni_value_t index) {
  const uint32_t off =
      KILN_PROGRAM_WITHOUT_VECTORS | KILN_PROGRAM_WITHOUT_READ_ONLY;
  return (w->off & off) == 0 && place->role != KILN_PROGRAM_ROLE_SHARED &&
         place->role != KILN_PROGRAM_ROLE_PRIVATE &&
         kilni_value_type(w, index) == T(U32) &&
         !kilni_value_is_const(w, index) && w->ir == w->program;
}

static uint32_t width_of(const kilni_place_t* place) {
  uint32_t lanes = VECTOR_BYTES / kilni_type_bytes(place->type);
  return lanes < MOST_LANES ? lanes : MOST_LANES;
}

// The run that the instruction `at` belongs to, as its last or its first one.
static kilni_group_t* take(kilni_lowering_t* w, kilni_group_t* group,
                           const kilni_place_t* place, kilni_value_t index,
                           uint32_t at) {
  sum_t sum = sum_of(w, index);
  bool next =
      group->count != 0 && group->place == place &&
      group->region == w->region &&
      at - group->instructions[0] < MOST_BETWEEN &&
      ((sum.root == group->index && sum.offset == group->count) ||
       (sum.root == group->root && sum.offset == group->offset + group->count));
  if (!next) {
    group->count = 0;
    group->place = place;
    group->region = w->region;
    group->index = index;
    group->root = sum.root;
    group->offset = sum.offset;
  }
  group->instructions[group->count++] = at;
  return group;
}

// What has an effect among those written since the run began, its own aside;
// or what uses one of `values`.
static bool is_between(const kilni_lowering_t* w, const kilni_group_t* group,
                       bool loads) {
  uint32_t own = 1;
  for (uint32_t at = group->instructions[0] + 1; at < w->instructions.count;
       at++) {
    const kilni_instruction_t* i = &w->instructions.items[at];
    if (own < group->count && at == group->instructions[own]) {
      own++;
      continue;
    }
    if (!loads && (i->flags & KILNI_INSTRUCTION_PINNED) != 0) return true;
    for (uint32_t k = 0; loads && k < i->count; k++) {
      for (uint32_t lane = 0; lane < group->count; lane++) {
        uint32_t first = group->instructions[lane];
        if (i->operand[k] == w->instructions.items[first].operand[0]) {
          return true;
        }
      }
    }
  }
  return false;
}

// Where the vector may be accessed; `old` are the accesses of its elements.
static kilni_value_t is_whole(kilni_lowering_t* w, const kilni_group_t* group,
                              const kilni_instruction_t* old) {
  uint32_t lanes = group->count;
  uint64_t bytes = (uint64_t)lanes * kilni_type_bytes(group->place->type);
  kilni_value_t low = KILNI_BIN(BIT_AND, kilni_base(w, group->place),
                                kilni_const(w, T(U64), bytes - 1));
  kilni_value_t whole = KILNI_BIN(EQ, low, kilni_const(w, T(U64), 0));
  if (1U << zeros_of(w, group->index, 0) < lanes) {
    low = KILNI_BIN(BIT_AND, group->index, kilni_u32(w, lanes - 1));
    whole = KILNI_BIN(AND, whole, KILNI_BIN(EQ, low, kilni_u32(w, 0)));
  }
  for (uint32_t k = 0; k < lanes; k++) {
    if (old[k].guard != 0 && (k == 0 || old[k].guard != old[k - 1].guard)) {
      whole = KILNI_BIN(AND, whole, old[k].guard);
    }
  }
  return whole;
}

// Takes the accesses out; they are written again.
static void take_out(kilni_lowering_t* w, const kilni_group_t* group,
                     kilni_instruction_t* old) {
  for (uint32_t k = 0; k < group->count; k++) {
    kilni_instruction_t* i = &w->instructions.items[group->instructions[k]];
    old[k] = *i;
    i->form = KILNI_FORM_NONE;
    i->flags = 0;
    i->count = 0;
    i->guard = 0;
  }
}

static kilni_value_t elsewhere(kilni_lowering_t* w, kilni_value_t guard,
                               kilni_value_t whole) {
  kilni_value_t other = kilni_unary(w, KILN_PROGRAM_UNARY_NOT, whole);
  return guard == 0 ? other : KILNI_BIN(AND, guard, other);
}

static const char* select_of(const kilni_place_t* place) {
  switch (kilni_memory_type(place)) {
    case T(U64):
    case T(I64):
      return "selp.b64";
    case T(F32):
      return "selp.f32";
    case T(F64):
      return "selp.f64";
    case KILNI_TYPE_HALF_BITS:
      return "selp.b16";
    default:
      return "selp.b32";
  }
}

void kilni_group_load(kilni_lowering_t* w, kilni_place_t* place,
                      kilni_value_t index, uint32_t at) {
  if (!may_group(w, place, index)) return;
  kilni_group_t* group = take(w, &w->loads, place, index, at);
  uint32_t lanes = width_of(place);
  if (group->count != lanes) return;
  if (is_between(w, group, true)) {
    group->count = 0;
    return;
  }
  kilni_instruction_t old[MOST_LANES];
  kilni_value_t vector[KILNI_OPERANDS_MAX], single[KILNI_OPERANDS_MAX];
  take_out(w, group, old);
  kilni_value_t whole = is_whole(w, group, old);
  for (uint32_t k = 0; k < lanes; k++) {
    vector[k] = kilni_register(w, kilni_memory_type(place));
  }
  vector[lanes] = old[0].operand[1];
  kilni_pin(w, kilni_vector_load_name(w, place, lanes), KILNI_FORM_LOAD_VECTOR,
            KILNI_INSTRUCTION_DEFINES, (uint8_t)(lanes + 1), vector, whole, 0);
  // In registers of their own, or each would wait for the vector.
  for (uint32_t k = 0; k < lanes; k++) {
    single[k] = kilni_register(w, kilni_memory_type(place));
    kilni_value_t operands[2] = {single[k], old[k].operand[1]};
    kilni_pin(w, old[k].name, KILNI_FORM_LOAD,
              KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_ZERO, 2, operands,
              elsewhere(w, old[k].guard, whole), old[k].number);
  }
  for (uint32_t k = 0; k < lanes; k++) {
    kilni_value_t operands[4] = {old[k].operand[0], vector[k], single[k],
                                 whole};
    w->values.items[operands[0]].define = 0;
    kilni_pin(w, select_of(place), KILNI_FORM_PLAIN, KILNI_INSTRUCTION_DEFINES,
              4, operands, 0, 0);
  }
  group->count = 0;
}

void kilni_group_store(kilni_lowering_t* w, kilni_place_t* place,
                       kilni_value_t index, uint32_t at) {
  if (!may_group(w, place, index)) return;
  kilni_group_t* group = take(w, &w->stores, place, index, at);
  uint32_t lanes = width_of(place);
  if (group->count != lanes) return;
  if (is_between(w, group, false)) {
    group->count = 0;
    return;
  }
  kilni_instruction_t old[MOST_LANES];
  kilni_value_t operands[KILNI_OPERANDS_MAX];
  take_out(w, group, old);
  kilni_value_t whole = is_whole(w, group, old);
  operands[0] = old[0].operand[0];
  for (uint32_t k = 0; k < lanes; k++) {
    kilni_value_t value = old[k].operand[1];
    if (kilni_value_is_const(w, value)) value = kilni_in_register(w, value);
    operands[k + 1] = value;
  }
  kilni_pin(w, kilni_vector_store_name(place, lanes), KILNI_FORM_STORE_VECTOR,
            KILNI_INSTRUCTION_PINNED, (uint8_t)(lanes + 1), operands, whole, 0);
  for (uint32_t k = 0; k < lanes; k++) {
    kilni_pin(w, old[k].name, KILNI_FORM_STORE, KILNI_INSTRUCTION_PINNED, 2,
              old[k].operand, elsewhere(w, old[k].guard, whole), 0);
  }
  group->count = 0;
}

void kilni_group_end(kilni_lowering_t* w, const kilni_place_t* place) {
  if (w->stores.place == place) w->stores.count = 0;
}
