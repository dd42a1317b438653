// SPDX-License-Identifier: Apache-2.0
//
// program: which shared arrays need not be zeroed: those of which every
// element that is read was written before, across a barrier.
//
// A block is small and its threads' numbers are known, so nothing is proved by
// algebra: the index of a store is computed for each thread, as far as it is
// made of the thread's own ids and constants, and the elements are marked. A
// barrier in the region of the stores makes them *covered* there: all threads
// of the block have come by. A load is good if the elements that it may read
// are covered in a region that is still open. One load that is not, or that
// cannot be told, and the array is zeroed.
//
// This is for programs whose threads all stay to the end; where one may return
// or have no work, all arrays are zeroed.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum {
  MOST_ELEMENTS = 1 << 16,  // of an array that is looked at
  MOST_DEPTH = 24,          // of what an index is made of

};

#define UNKNOWN UINT32_MAX

// Elements of an array that a region's threads have written.
struct kilni_program_cover_t {
  kilni_program_cover_t* next;
  uint32_t region;
  uint32_t passed;  // a barrier came behind
  uint32_t missing;
  uint32_t reserved;
  uint64_t bits[];
};

// ---- A value in each thread ----

typedef enum op_t {
  OP_NONE,
  OP_MOVE,
  OP_NOT,
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_SHL,
  OP_SHR,
  OP_SHR_SIGNED,
  OP_AND,
  OP_OR,
  OP_XOR,
  OP_EQ,
  OP_NE,
  OP_LT,
  OP_LE,
  OP_GT,
  OP_GE,
  OP_LT_SIGNED,
  OP_LE_SIGNED,
  OP_GT_SIGNED,
  OP_GE_SIGNED,
} op_t;

static op_t cover_op_of(const char* name) {
  static const struct {
    const char* name;
    op_t op;
  } kOps[] = {
      {"add.u32", OP_ADD},
      {"add.s32", OP_ADD},
      {"sub.u32", OP_SUB},
      {"sub.s32", OP_SUB},
      {"mul.lo.u32", OP_MUL},
      {"mul.lo.s32", OP_MUL},
      {"shl.b32", OP_SHL},
      {"shr.u32", OP_SHR},
      {"shr.s32", OP_SHR_SIGNED},
      {"and.b32", OP_AND},
      {"or.b32", OP_OR},
      {"xor.b32", OP_XOR},
      {"mov.b32", OP_MOVE},
      {"mov.pred", OP_MOVE},
      {"and.pred", OP_AND},
      {"or.pred", OP_OR},
      {"xor.pred", OP_XOR},
      {"not.pred", OP_NOT},
      {"setp.eq.u32", OP_EQ},
      {"setp.ne.u32", OP_NE},
      {"setp.eq.s32", OP_EQ},
      {"setp.ne.s32", OP_NE},
      {"setp.lt.u32", OP_LT},
      {"setp.le.u32", OP_LE},
      {"setp.gt.u32", OP_GT},
      {"setp.ge.u32", OP_GE},
      {"setp.lt.s32", OP_LT_SIGNED},
      {"setp.le.s32", OP_LE_SIGNED},
      {"setp.gt.s32", OP_GT_SIGNED},
      {"setp.ge.s32", OP_GE_SIGNED},
  };
  for (size_t i = 0; i < sizeof(kOps) / sizeof(kOps[0]); i++) {
    if (strcmp(kOps[i].name, name) == 0) return kOps[i].op;
  }
  return OP_NONE;
}

static void cover_compute(op_t op, uint32_t count, uint32_t* out,
                          const uint32_t* a, const uint32_t* b) {
#define EACH(expression)                 \
  for (uint32_t i = 0; i < count; i++) { \
    uint32_t x = a[i], y = b[i];         \
    (void)y;                             \
    out[i] = (uint32_t)(expression);     \
  }                                      \
  break
  switch (op) {
    case OP_MOVE:
      EACH(x);
    case OP_NOT:
      EACH(x ^ 1U);
    case OP_ADD:
      EACH(x + y);
    case OP_SUB:
      EACH(x - y);
    case OP_MUL:
      EACH(x * y);
    case OP_SHL:
      EACH(y > 31 ? 0 : x << (y & 31U));
    case OP_SHR:
      EACH(y > 31 ? 0 : x >> (y & 31U));
    case OP_SHR_SIGNED:
      EACH((x >> (y > 31 ? 31 : y)) |
           ((0U - (x >> 31)) & ~(UINT32_MAX >> (y > 31 ? 31 : y))));
    case OP_AND:
      EACH(x & y);
    case OP_OR:
      EACH(x | y);
    case OP_XOR:
      EACH(x ^ y);
    case OP_EQ:
      EACH(x == y);
    case OP_NE:
      EACH(x != y);
    case OP_LT:
      EACH(x < y);
    case OP_LE:
      EACH(x <= y);
    case OP_GT:
      EACH(x > y);
    case OP_GE:
      EACH(x >= y);
    // Signed ones: as unsigned ones with the sign turned.
    case OP_LT_SIGNED:
      EACH((x ^ 0x80000000U) < (y ^ 0x80000000U));
    case OP_LE_SIGNED:
      EACH((x ^ 0x80000000U) <= (y ^ 0x80000000U));
    case OP_GT_SIGNED:
      EACH((x ^ 0x80000000U) > (y ^ 0x80000000U));
    default:
      EACH((x ^ 0x80000000U) >= (y ^ 0x80000000U));
  }
#undef EACH
}

static void fill_ids(const kilni_program_lowering_t* w, const char* name,
                     uint32_t* out) {
  uint32_t axis = (uint32_t)(name[5] - 'x');
  uint32_t before = axis == 0 ? 1 : w->block[0] * (axis == 2 ? w->block[1] : 1);
  for (uint32_t i = 0; i < w->threads; i++) {
    out[i] = i / before % w->block[axis];
  }
}

static uint32_t* new_threads(kilni_program_lowering_t* w) {
  return kilni_program_arena_get(&w->arena, w->threads * sizeof(uint32_t));
}

// What a value of 32 bits or a bool is in each thread of a block; NULL: not
// known, or not the same in all blocks.
static const uint32_t* in_threads(kilni_program_lowering_t* w,
                                  kilni_program_value_t value, uint32_t depth);

static uint32_t* cover_find(kilni_program_lowering_t* w,
                            kilni_program_value_t value, uint32_t depth) {
  const kilni_program_value_record_t* record = kilni_program_value_of(w, value);
  if (kilni_program_type_bytes(record->type) > 4 || depth > MOST_DEPTH) {
    return NULL;
  }
  if ((record->flags & KILNI_VALUE_CONST) != 0) {
    uint64_t bits = record->bits;
    kilni_program_fold_cast(record->type, T(U32), bits, false, &bits);
    uint32_t* out = new_threads(w);
    for (uint32_t i = 0; out != NULL && i < w->threads; i++) {
      out[i] = (uint32_t)bits;
    }
    return out;
  }
  // What meets at a loop's head is written again at its end.
  if ((record->flags & KILNI_VALUE_MOVED) != 0) return NULL;
  if (record->define == 0) return NULL;
  kilni_program_instruction_t define = w->instructions.items[record->define];
  if (define.define != 0 || define.guard != 0) return NULL;
  if (define.form == KILNI_FORM_SPECIAL) {
    if (strncmp(define.name, "%tid.", 5) != 0) return NULL;
    uint32_t* out = new_threads(w);
    if (out != NULL) fill_ids(w, define.name, out);
    return out;
  }
  if (define.form != KILNI_FORM_PLAIN || define.count < 2) return NULL;
  op_t op = cover_op_of(define.name);
  if (op == OP_NONE || define.count != (op <= OP_NOT ? 2 : 3)) return NULL;
  const uint32_t* a = in_threads(w, define.operand[1], depth + 1);
  const uint32_t* b = a;
  if (a != NULL && define.count == 3) {
    b = in_threads(w, define.operand[2], depth + 1);
  }
  if (a == NULL || b == NULL) return NULL;
  uint32_t* out = new_threads(w);
  if (out != NULL) cover_compute(op, w->threads, out, a, b);
  return out;
}

static const uint32_t* in_threads(kilni_program_lowering_t* w,
                                  kilni_program_value_t value, uint32_t depth) {
  uint32_t at = w->values.items[value].threads;
  if (at == UNKNOWN) return NULL;
  if (at != 0) return w->threads_of.items[at];
  uint32_t* found = cover_find(w, value, depth);
  if (found != NULL &&
      !kilni_program_arena_grow(
          &w->arena, (void**)&w->threads_of.items, &w->threads_of.capacity,
          w->threads_of.count + 2, sizeof(w->threads_of.items[0]))) {
    found = NULL;
  }
  if (found == NULL) {
    w->values.items[value].threads = UNKNOWN;
    return NULL;
  }
  if (w->threads_of.count == 0) w->threads_of.count = 1;
  w->values.items[value].threads = w->threads_of.count;
  w->threads_of.items[w->threads_of.count++] = found;
  return found;
}

// ---- Stores and barriers ----

static bool is_looked_at(const kilni_program_lowering_t* w,
                         const kilni_dispatch_place_t* place) {
  return w->covers && place->role == KILN_PROGRAM_ROLE_SHARED &&
         place->pays == 0 && place->count <= MOST_ELEMENTS;
}

static kilni_program_cover_t* cover_in(kilni_program_lowering_t* w,
                                       kilni_dispatch_place_t* place,
                                       uint32_t region) {
  for (kilni_program_cover_t* c = place->cover; c != NULL; c = c->next) {
    if (c->region == region && c->passed == 0) return c;
  }
  size_t bytes = sizeof(kilni_program_cover_t) + (place->count + 63) / 64 * 8;
  kilni_program_cover_t* cover = kilni_program_arena_get(&w->arena, bytes);
  if (cover == NULL) return NULL;
  memset(cover, 0, bytes);
  cover->region = region;
  cover->missing = (uint32_t)place->count;
  cover->next = place->cover;
  place->cover = cover;
  return cover;
}

enum { MOST_CONDITIONS = 8 };

void kilni_program_cover_store(kilni_program_lowering_t* w,
                               kilni_dispatch_place_t* place,
                               kilni_program_value_t index,
                               kilni_program_value_t guard) {
  if (!is_looked_at(w, place)) return;
  const uint32_t* at = in_threads(w, index, 0);
  if (at == NULL) return;
  // The threads that store: those for which all conditions hold, as far out
  // as they can be told.
  const uint32_t* conditions[MOST_CONDITIONS];
  uint32_t turned[MOST_CONDITIONS];
  uint32_t count = 0, region = w->region;
  if (guard != 0) {
    conditions[count] = in_threads(w, guard, 0);
    turned[count] = 0;
    if (conditions[count++] == NULL) return;
  }
  while (count < MOST_CONDITIONS && w->regions.items[region].condition != 0) {
    kilni_program_value_t c = w->regions.items[region].condition;
    const uint32_t* values = in_threads(w, c & ~(uint32_t)KILNI_NOT, 0);
    if (values == NULL) break;
    conditions[count] = values;
    turned[count++] = (c & KILNI_NOT) != 0;
    region = w->regions.items[region].parent;
  }
  kilni_program_cover_t* cover = cover_in(w, place, region);
  if (cover == NULL) return;
  uint32_t missing = cover->missing, limit = (uint32_t)place->count;
  uint64_t* bits = cover->bits;
  for (uint32_t i = 0; i < w->threads; i++) {
    uint32_t element = at[i];
    if (element >= limit) continue;
    uint64_t bit = UINT64_C(1) << element % 64;
    for (uint32_t k = 0; k < count; k++) {
      if (conditions[k][i] == turned[k]) bit = 0;
    }
    uint64_t before = bits[element / 64];
    bits[element / 64] = before | bit;
    missing -= (~before & bit) != 0;
  }
  cover->missing = missing;
}

void kilni_program_cover_barrier(kilni_program_lowering_t* w) {
  if (!w->covers) return;
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    kilni_program_cover_t* c = w->places[i].cover;
    for (; c != NULL; c = c->next) {
      if (c->region == w->region) c->passed = 1;
    }
  }
}

// ---- Loads ----

static bool cover_holds(const kilni_program_lowering_t* w,
                        const kilni_program_cover_t* cover) {
  return cover->passed != 0 && w->regions.items[cover->region].open;
}

// Whether what all threads read is in `cover`; beyond the end is no element.
static bool cover_has_all(const kilni_program_cover_t* cover, uint32_t limit,
                          const uint32_t* at, uint32_t threads) {
  for (uint32_t i = 0; i < threads; i++) {
    uint32_t element = at[i];
    if (element < limit &&
        (cover->bits[element / 64] >> element % 64 & 1) == 0) {
      return false;
    }
  }
  return true;
}

static bool is_good(kilni_program_lowering_t* w,
                    const kilni_dispatch_place_t* place,
                    kilni_program_value_t index) {
  const kilni_program_cover_t* c;
  for (c = place->cover; c != NULL; c = c->next) {
    if (c->missing == 0 && cover_holds(w, c)) return true;
  }
  if (place->cover == NULL || index == 0) return false;
  const uint32_t* at = in_threads(w, index, 0);
  if (at == NULL) return false;
  uint32_t threads = kilni_program_value_is_const(w, index) ? 1 : w->threads;
  for (c = place->cover; c != NULL; c = c->next) {
    if (cover_holds(w, c) &&
        cover_has_all(c, (uint32_t)place->count, at, threads)) {
      return true;
    }
  }
  return false;
}

void kilni_program_cover_load(kilni_program_lowering_t* w,
                              kilni_dispatch_place_t* place,
                              kilni_program_value_t index) {
  if (place->role != KILN_PROGRAM_ROLE_SHARED || place->pays != 0) return;
  if (!is_looked_at(w, place) || !is_good(w, place, index)) place->pays = 1;
}
