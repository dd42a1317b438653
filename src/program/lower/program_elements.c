// SPDX-License-Identifier: Apache-2.0
//
// program: several elements a thread, and vectors of them.
//
// A program that does something to each element by itself is bound by memory,
// and one element a thread does not keep enough of it under way. So a thread
// does `chunks` runs of `lanes` consecutive elements: the body is written once
// for each, and an access of a buffer at the thread's own index becomes one of
// a vector: loads where the first element asks for them, stores behind the
// last one. That is done where all elements exist and all addresses are
// multiples of a vector; everywhere else, a loop does one at a time.
//
// No thread can tell: programs whose threads meet, have a number in their
// block, or do anything atomic are left alone, and a buffer that is written is
// accessed in vectors only where each element is its own thread's.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"
#include "program/math/program_math.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

// ---- Which programs ----

enum {
  MOST_EXPRS = 400,  // in all copies of the body
  CALL_EXPRS = 40,   // what a function of the library counts for
  VECTOR_BYTES = 16,
  MAX_LANES = 4,
};

static bool is_power(uint32_t x) {
  return x != 0 && (x & (x - 1)) == 0;
}

static bool may_have_several(const kilni_program_lowering_t* w,
                             const kilni_program_survey_t* survey) {
  const uint32_t off =
      KILN_PROGRAM_WITHOUT_VECTORS | KILN_PROGRAM_WITHOUT_READ_ONLY;
  const kilni_program_ir_t* ir = w->program;
  if ((w->off & off) != 0 || w->wanted == 1 || survey->level != 0 ||
      survey->barriers || survey->lanes || survey->copies || survey->grid ||
      survey->traps || survey->returns) {
    return false;
  }
  if (ir->work[0] == 0 || ir->work[1] != 0 || ir->work[2] != 0 ||
      !is_power(w->block[0]) || w->block[1] != 1 || w->block[2] != 1) {
    return false;
  }
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    uint32_t op = ir->statements.items[i].op;
    if (op == KILNI_STATEMENT_FOR || op == KILNI_STATEMENT_WHILE) return false;
  }
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    if (ir->buffers.items[i].role == KILN_PROGRAM_ROLE_SHARED) return false;
  }
  return true;
}

// How much the body comes to, roughly; UINT32_MAX where a thread could tell
// that it is not alone with its element.
static uint32_t cost_of(const kilni_program_ir_t* ir) {
  uint32_t cost = ir->exprs.count + ir->statements.count;
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    uint32_t id = e->extra & 0xffU;
    uint8_t type = kilni_program_type_computed(e->type);
    if (e->op == KILNI_EXPR_ATOMIC) return UINT32_MAX;
    if (e->op == KILNI_EXPR_ID && id != KILN_PROGRAM_ID_GLOBAL_ID &&
        id != KILN_PROGRAM_ID_WORK_SIZE) {
      return UINT32_MAX;
    }
    if (e->op == KILNI_EXPR_CALL ||
        (e->op == KILNI_EXPR_UNARY &&
         kilni_program_math_unary(e->extra, type)) ||
        (e->op == KILNI_EXPR_BINARY &&
         kilni_program_math_binary(e->extra, type))) {
      cost += CALL_EXPRS;
    }
  }
  return cost;
}

// ---- Which buffers ----

typedef struct access_t {
  uint32_t own;     // loads and stores at the thread's own index
  uint32_t others;  // at any other
  uint32_t stores;
  uint32_t outermost;  // of the stores
} access_t;

static bool elements_is_own(const kilni_program_ir_t* ir,
                            const uint8_t* variables, uint32_t expr) {
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  if (e->op == KILNI_EXPR_VARIABLE) return variables[e->a] != 0;
  return e->op == KILNI_EXPR_ID && e->extra == KILN_PROGRAM_ID_GLOBAL_ID;
}

static void count_accesses(const kilni_program_ir_t* ir, uint8_t* variables,
                           access_t* accesses) {
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    if (s->op == KILNI_STATEMENT_LET && elements_is_own(ir, variables, s->b)) {
      variables[s->a] = 1;
    }
  }
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    if (e->op != KILNI_EXPR_LOAD) continue;
    access_t* access = &accesses[e->a];
    *(elements_is_own(ir, variables, e->b) ? &access->own : &access->others) +=
        1;
  }
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    if (s->op != KILNI_STATEMENT_STORE) continue;
    access_t* access = &accesses[s->a];
    *(elements_is_own(ir, variables, s->b) ? &access->own : &access->others) +=
        1;
    access->stores++;
  }
  for (uint32_t i = ir->body; i != 0; i = ir->statements.items[i].next) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    if (s->op == KILNI_STATEMENT_STORE) accesses[s->a].outermost++;
  }
}

// Marks the buffers whose elements may come as vectors; the size of the
// widest element, 0: there are none.
static uint32_t mark_buffers(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  size_t bytes = ir->buffers.count * sizeof(access_t);
  access_t* accesses = kilni_program_arena_get(&w->arena, bytes);
  uint8_t* variables =
      kilni_program_arena_get(&w->arena, ir->variables.count + 1);
  if (accesses == NULL || variables == NULL) return 0;
  memset(accesses, 0, bytes);
  memset(variables, 0, ir->variables.count + 1);
  count_accesses(ir, variables, accesses);
  uint32_t widest = 0;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    kilni_dispatch_place_t* place = &w->places[i];
    const access_t* access = &accesses[i];
    if (ir->buffers.items[i].function != 0 || access->own == 0 ||
        place->role == KILN_PROGRAM_ROLE_PRIVATE) {
      continue;
    }
    if (place->written &&
        (access->others != 0 || access->stores != 1 || access->outermost != 1 ||
         kilni_program_is_passed_on(ir, i))) {
      continue;
    }
    place->vectors = 1;
    uint32_t size = kilni_program_type_bytes(place->type);
    if (size > widest) widest = size;
  }
  return widest;
}

void kilni_program_elements_choose(kilni_program_lowering_t* w,
                                   const kilni_program_survey_t* survey) {
  kilni_program_elements_t* e = &w->elements;
  e->lanes = e->chunks = e->count = 1;
  if (!may_have_several(w, survey)) return;
  uint32_t cost = cost_of(w->program);
  if (cost > MOST_EXPRS / 2) return;
  uint32_t widest = mark_buffers(w);
  if (widest == 0) return;
  uint32_t lanes = VECTOR_BYTES / widest, chunks = 1;
  if (lanes > MAX_LANES) {
    chunks = lanes / MAX_LANES;
    lanes = MAX_LANES;
  }
  if (w->wanted != 0) {
    if (lanes > w->wanted) lanes = w->wanted;
    chunks = w->wanted / lanes;
  } else {
    while (chunks > 1 && cost * lanes * chunks > MOST_EXPRS) chunks /= 2;
    while (lanes > 1 && cost * lanes > MOST_EXPRS) lanes /= 2;
  }
  if (lanes == 1) return;
  e->lanes = lanes;
  e->chunks = chunks;
  e->count = lanes * chunks;
  e->alignment = widest * lanes;
}

// ---- Vectors ----

// How many elements of a buffer are in one.
static uint32_t elements_width_of(const kilni_program_lowering_t* w,
                                  const kilni_dispatch_place_t* place) {
  uint32_t most = VECTOR_BYTES / kilni_program_type_bytes(place->type);
  return w->elements.lanes < most ? w->elements.lanes : most;
}

static kilni_program_value_t elements_address_of(kilni_program_lowering_t* w,
                                                 kilni_dispatch_place_t* place,
                                                 uint32_t element) {
  uint32_t lane = element % w->elements.lanes;
  kilni_program_value_t address =
      kilni_program_address(w, place, w->elements.ids[element - lane]);
  uint64_t offset = (uint64_t)lane * kilni_program_type_bytes(place->type);
  return KILNI_BIN(ADD, address, kilni_program_const(w, T(U64), offset));
}

static kilni_program_value_t* new_values(kilni_program_lowering_t* w) {
  size_t bytes = KILNI_MAX_ELEMENTS * sizeof(kilni_program_value_t);
  kilni_program_value_t* values = kilni_program_arena_get(&w->arena, bytes);
  if (values != NULL) memset(values, 0, bytes);
  return values;
}

static void load_all(kilni_program_lowering_t* w,
                     kilni_dispatch_place_t* place) {
  place->loaded = new_values(w);
  if (place->loaded == NULL) return;
  uint32_t width = elements_width_of(w, place);
  for (uint32_t at = 0; at < w->elements.count; at += width) {
    kilni_program_value_t operands[KILNI_OPERANDS_MAX];
    operands[width] = elements_address_of(w, place, at);
    for (uint32_t i = 0; i < width; i++) {
      operands[i] = kilni_program_register(w, kilni_program_memory_type(place));
    }
    kilni_program_pin(w, kilni_program_vector_load_name(w, place, width),
                      KILNI_FORM_LOAD_VECTOR, KILNI_INSTRUCTION_DEFINES,
                      (uint8_t)(width + 1), operands, 0, 0);
    for (uint32_t i = 0; i < width; i++) {
      place->loaded[at + i] =
          kilni_program_from_memory(w, place->type, operands[i]);
    }
  }
}

kilni_program_value_t kilni_program_elements_load(kilni_program_lowering_t* w,
                                                  kilni_dispatch_place_t* place,
                                                  kilni_program_value_t index) {
  const kilni_program_elements_t* e = &w->elements;
  if (e->region == 0 || place->vectors == 0 || index != e->id) return 0;
  if (place->stored != NULL && place->stored[e->at] != 0) {
    return place->stored[e->at];
  }
  if (place->loaded == NULL) {
    if (w->region != e->region || w->predicate != 0 ||
        kilni_program_in_range(w, place, index) != 0) {
      return 0;
    }
    load_all(w, place);
    if (place->loaded == NULL) return 0;
  }
  return place->loaded[e->at];
}

bool kilni_program_elements_store(kilni_program_lowering_t* w,
                                  kilni_dispatch_place_t* place,
                                  kilni_program_value_t index,
                                  kilni_program_value_t value) {
  const kilni_program_elements_t* e = &w->elements;
  if (e->region == 0 || place->vectors == 0 || index != e->id ||
      w->region != e->region) {
    return false;
  }
  if (place->stored == NULL) place->stored = new_values(w);
  if (place->stored == NULL) return false;
  place->stored[e->at] = value;
  return true;
}

static void store_all(kilni_program_lowering_t* w,
                      kilni_dispatch_place_t* place) {
  uint32_t width = elements_width_of(w, place);
  for (uint32_t at = 0; at < w->elements.count; at += width) {
    kilni_program_value_t operands[KILNI_OPERANDS_MAX];
    operands[0] = elements_address_of(w, place, at);
    for (uint32_t i = 0; i < width; i++) {
      kilni_program_value_t value =
          kilni_program_to_memory(w, place->type, place->stored[at + i]);
      // A vector is of registers.
      if (kilni_program_value_is_const(w, value)) {
        value = kilni_program_in_register(w, value);
      }
      operands[i + 1] = value;
    }
    kilni_program_pin(w, kilni_program_vector_store_name(place, width),
                      KILNI_FORM_STORE_VECTOR, KILNI_INSTRUCTION_PINNED,
                      (uint8_t)(width + 1), operands, 0, 0);
  }
}

// ---- The body ----

static void body_for(kilni_program_lowering_t* w, kilni_program_value_t id) {
  uint32_t mark = w->changes.count;
  w->elements.id = id;
  w->stamp++;
  kilni_program_fact_add(w, id, w->work[0]);
  uint64_t most = kilni_program_value_of(w, w->work[0])->most;
  if (most != 0 && (w->off & KILN_PROGRAM_WITHOUT_RANGES) == 0 &&
      kilni_program_value_of(w, id)->most > most - 1) {
    w->values.items[id].most = most - 1;
  }
  kilni_program_private_clear(w, 0);
  kilni_program_list(w, w->program->body);
  kilni_program_unbind(w, mark);
}

// Where all addresses are multiples of a vector.
static kilni_program_value_t are_aligned(kilni_program_lowering_t* w) {
  kilni_program_value_t all = kilni_program_const(w, T(U64), 0);
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    kilni_dispatch_place_t* place = &w->places[i];
    if (place->vectors) {
      all = KILNI_BIN(BIT_OR, all, kilni_program_base(w, place));
    }
  }
  uint64_t mask = w->elements.alignment - 1U;
  all = KILNI_BIN(BIT_AND, all, kilni_program_const(w, T(U64), mask));
  return KILNI_BIN(EQ, all, kilni_program_const(w, T(U64), 0));
}

static void elements_together(kilni_program_lowering_t* w) {
  kilni_program_elements_t* e = &w->elements;
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  e->region = w->region;
  for (e->at = 0; e->at < e->count; e->at++) body_for(w, e->ids[e->at]);
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    kilni_dispatch_place_t* place = &w->places[i];
    if (place->stored != NULL && w->failed == KILN_STATUS_OK) {
      store_all(w, place);
    }
  }
  e->region = 0;
  kilni_program_pin_text(w, "ret");
  kilni_program_region_end(w);
}

static void elements_one_by_one(kilni_program_lowering_t* w) {
  const kilni_program_elements_t* e = &w->elements;
  kilni_program_value_t n = kilni_program_register(w, T(U32));
  kilni_program_move(w, n, kilni_program_u32(w, 0));
  uint32_t again = kilni_program_label(w);
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  w->values.items[n].region = w->region;
  kilni_program_place_label(w, again);
  kilni_program_value_t lanes = kilni_program_u32(w, e->lanes), id = n;
  if (e->chunks != 1) {
    id = KILNI_BIN(DIV, n, lanes);
    id = KILNI_BIN(MUL, id, kilni_program_u32(w, e->lanes * w->block[0]));
    id = KILNI_BIN(ADD, id, KILNI_BIN(REM, n, lanes));
  }
  id = KILNI_BIN(ADD, e->ids[0], id);
  kilni_program_branch(w, w->end, KILNI_BIN(LT, id, w->work[0]) | KILNI_NOT);
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  body_for(w, id);
  kilni_program_region_end(w);
  kilni_program_value_t next =
      kilni_program_fresh(w, "add.u32", T(U32), n, kilni_program_u32(w, 1));
  kilni_program_move(w, n, next);
  kilni_program_value_t more = kilni_program_fresh(
      w, "setp.lt.u32", T(BOOL), next, kilni_program_u32(w, e->count));
  kilni_program_branch(w, again, more);
  kilni_program_region_end(w);
}

void kilni_program_elements_body(kilni_program_lowering_t* w) {
  kilni_program_elements_t* e = &w->elements;
  uint32_t run = w->block[0] * e->lanes;
  kilni_program_value_t first =
      kilni_program_id(w, KILN_PROGRAM_ID_BLOCK_ID, 0);
  first = KILNI_BIN(MUL, first, kilni_program_u32(w, run * e->chunks));
  kilni_program_value_t own = kilni_program_id(w, KILN_PROGRAM_ID_LOCAL_ID, 0);
  own = KILNI_BIN(MUL, own, kilni_program_u32(w, e->lanes));
  first = KILNI_BIN(ADD, first, own);
  for (uint32_t i = 0; i < e->count; i++) {
    uint32_t offset = i / e->lanes * run + i % e->lanes;
    e->ids[i] = KILNI_BIN(ADD, first, kilni_program_u32(w, offset));
  }
  kilni_program_value_t all = KILNI_BIN(LT, e->ids[e->count - 1], w->work[0]);
  all = KILNI_BIN(AND, all, are_aligned(w));
  uint32_t slow = kilni_program_label(w);
  kilni_program_branch(w, slow, all | KILNI_NOT);
  elements_together(w);
  kilni_program_place_label(w, slow);
  elements_one_by_one(w);
  e->id = 0;
}
