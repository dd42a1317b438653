// SPDX-License-Identifier: Apache-2.0
//
// program: from a program's tables to a code object: buffers, parameters and
// modes first, then one walk over the statements, then the text.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"
#include "program/math/program_math.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum { MOST_VERSION_EXPRS = 3000 };  // of a body that is written twice

enum {
  MIN_SM = 70,
  DEFAULT_SM = 75,
  MIN_ISA = 60,
  MAX_PARAMETER_BYTES = 4096,
  MAX_SHARED_BYTES = 227 * 1024,
  MAX_SCALARS = 128,  // elements of a private array kept in variables
  WAIT_SM = 90,       // griddepcontrol
  WAIT_ISA = 78,
};

struct kiln_program_code_t {
  atomic_uint references;
  uint32_t parameter_count;
  kiln_allocator_t allocator;
  size_t size;  // of this block
  size_t text_size;
  const char* text;
  const char* entry;
  const char* zeroed;  // names, one behind the other; "" behind the last
  const kiln_program_parameter_t* parameters;
  kiln_program_launch_t launch;
};

// ---- Buffers ----

bool kilni_program_is_passed_on(const kilni_program_ir_t* ir, uint32_t buffer) {
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    if (e->op == KILNI_EXPR_ATOMIC && e->a == buffer) return true;
    if (e->op != KILNI_EXPR_CALL) continue;
    uint32_t first = ir->functions.items[e->a].parameters;
    for (uint32_t k = 0; k < e->c; k++) {
      uint32_t outer = ir->operands.items[e->b + k];
      if ((ir->operands.items[first + k] & KILNI_PARAMETER_BUFFER) != 0 &&
          (outer & ~KILNI_PARAMETER_BUFFER) == buffer) {
        return true;
      }
    }
  }
  return false;
}

static const char kTooMuchShared[] =
    "needs more than 232448 bytes of shared memory";

static void place_shared(kilni_program_lowering_t* w,
                         kilni_dispatch_place_t* place, uint64_t* bytes) {
  uint64_t size = place->count * kilni_program_type_bytes(place->type);
  place->number = (uint32_t)*bytes;
  *bytes += (size + 15) / 16 * 16;
  if (*bytes > MAX_SHARED_BYTES) {
    *bytes = 0;
    kilni_program_lower_fail(w, KILN_STATUS_LIMIT_EXCEEDED, kTooMuchShared, "");
  }
}

static void place_private(kilni_program_lowering_t* w, uint32_t buffer,
                          uint32_t* variables) {
  kilni_dispatch_place_t* place = &w->places[buffer];
  place->number = w->private_count++;
  uint64_t size = place->count * kilni_program_type_bytes(place->type);
  bool scalars = place->first != UINT32_MAX && place->count <= MAX_SCALARS &&
                 (w->off & KILN_PROGRAM_WITHOUT_SCALARS) == 0 &&
                 !kilni_program_is_passed_on(w->program, buffer);
  place->first = 0;
  w->private_bytes[place->number] = 0;
  if (scalars) {
    place->first = *variables;
    *variables += (uint32_t)place->count;
  } else {
    w->private_bytes[place->number] = (uint32_t)((size + 7) / 8 * 8);
  }
}

static bool is_parameter(const kilni_program_buffer_record_t* buffer) {
  return buffer->function == 0 && buffer->role != KILN_PROGRAM_ROLE_SHARED &&
         buffer->role != KILN_PROGRAM_ROLE_PRIVATE;
}

uint32_t kilni_program_parameter(kilni_program_lowering_t* w, uint32_t kind,
                                 uint32_t index, uint8_t type) {
  uint32_t bytes = kilni_program_type_bytes(type);
  uint32_t end = (w->parameter_bytes + bytes - 1) / bytes * bytes + bytes;
  if (end > MAX_PARAMETER_BYTES) {
    kilni_program_lower_fail(
        w, KILN_STATUS_LIMIT_EXCEEDED,
        "has more parameters than the 4096 bytes of a kernel", "");
    return 0;
  }
  w->parameter_bytes = end;
  kiln_program_parameter_t parameter = {kind, index, type, 0};
  w->parameters[w->parameter_count] = parameter;
  return w->parameter_count++;
}

// Fills in the places; `variables` is the first free binding.
static void place_buffers(kilni_program_lowering_t* w, uint32_t* variables) {
  const kilni_program_ir_t* ir = w->program;
  uint64_t shared = 0;
  uint32_t index = 0;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[i];
    kilni_dispatch_place_t* place = &w->places[i];
    uint32_t first = place->first;
    memset(place, 0, sizeof(*place));
    place->first = first;
    place->role = buffer->role;
    place->type = buffer->type;
    place->same = i;
    if (buffer->count != 0) {
      const kilni_program_expr_record_t* e = &ir->exprs.items[buffer->count];
      if (e->op == KILNI_EXPR_LITERAL) {
        place->count = kilni_program_ir_literal_bits(e);
      }
    }
    if (is_parameter(buffer)) {
      place->number = kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_ADDRESS,
                                              index, T(U64));
      kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_LENGTH, index++,
                              T(U64));
    } else if (buffer->role == KILN_PROGRAM_ROLE_SHARED) {
      place_shared(w, place, &shared);
    } else if (buffer->role == KILN_PROGRAM_ROLE_PRIVATE) {
      place_private(w, i, variables);
    }
  }
  w->shared_bytes = w->clear_bytes = (uint32_t)shared;
}

// ---- Scalars and work ----

static kilni_program_value_t lower_read_scalar(kilni_program_lowering_t* w,
                                               uint32_t number, uint8_t type) {
  static const char* const kNames[KILNI_TYPE_COUNT] = {
      [T(BOOL)] = "ld.param.u8",  [T(U8)] = "ld.param.u8",
      [T(I8)] = "ld.param.s8",    [T(U16)] = "ld.param.u16",
      [T(I16)] = "ld.param.s16",  [T(U32)] = "ld.param.u32",
      [T(I32)] = "ld.param.u32",  [T(U64)] = "ld.param.u64",
      [T(I64)] = "ld.param.u64",  [T(F16)] = "ld.param.b16",
      [T(BF16)] = "ld.param.u16", [T(F32)] = "ld.param.f32",
      [T(F64)] = "ld.param.f64"};
  kilni_program_instruction_t load = {0};
  load.name = kNames[type];
  load.form = KILNI_FORM_PARAM;
  load.count = 1;
  load.number = number;
  uint8_t into = type;
  if (type == T(BOOL) || type == T(BF16)) into = T(U32);
  if (type == T(F16)) into = KILNI_TYPE_HALF_BITS;
  kilni_program_value_t x = kilni_program_pure_form(w, &load, into);
  if (type == T(F16)) {
    return kilni_program_pure(w, "cvt.f32.f16", type, x, 0, 0);
  }
  return into == type ? x : kilni_program_from_bits(w, type, x);
}

static void read_scalars(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  for (uint32_t i = 1; i < ir->scalars.count; i++) {
    uint8_t type = ir->scalars.items[i].type;
    uint32_t number =
        kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_SCALAR, i - 1, type);
    w->scalars[i] = lower_read_scalar(w, number, type);
  }
}

static bool uses_work_size(const kilni_program_ir_t* ir, uint32_t axis) {
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    if (e->op == KILNI_EXPR_ID && (e->extra >> 8) == axis &&
        (e->extra & 0xffU) == KILN_PROGRAM_ID_WORK_SIZE) {
      return true;
    }
  }
  return false;
}

// The value of an expression of literals.
static bool lower_is_known(const kilni_program_ir_t* ir, uint32_t expr,
                           uint64_t* out) {
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  uint64_t a, b;
  *out = 0;
  if (e->op == KILNI_EXPR_LITERAL) {
    *out = kilni_program_ir_literal_bits(e);
    return true;
  }
  return e->op == KILNI_EXPR_BINARY && lower_is_known(ir, e->a, &a) &&
         lower_is_known(ir, e->b, &b) &&
         kilni_program_type_is_integer(e->type) &&
         kilni_program_fold_binary(e->extra, e->type, a, b, false, out);
}

// Whether a work size is something times a multiple of the block's size; then
// every block is full.
static bool fills_blocks(const kilni_program_lowering_t* w, uint32_t axis) {
  const kilni_program_ir_t* ir = w->program;
  const kilni_program_expr_record_t* e = &ir->exprs.items[ir->work[axis]];
  uint32_t size = w->block[axis];
  // Of a power of two also where the product wraps.
  if (ir->work[axis] == 0 || e->op != KILNI_EXPR_BINARY ||
      e->extra != KILN_PROGRAM_BINARY_MUL || (size & (size - 1)) != 0) {
    return false;
  }
  for (uint32_t side = 0; side < 2; side++) {
    uint64_t factor;
    if (lower_is_known(ir, side ? e->b : e->a, &factor) && factor % size == 0) {
      return true;
    }
  }
  return false;
}

static void read_work(kilni_program_lowering_t* w, uint32_t axis) {
  const kilni_program_ir_t* ir = w->program;
  const kilni_program_expr_record_t* e = &ir->exprs.items[ir->work[axis]];
  bool said = ir->work[0] != 0;
  if (ir->work[axis] == 0 && said) {
    w->work[axis] = kilni_program_u32(w, 1);
  } else if (said && e->op == KILNI_EXPR_LITERAL) {
    w->work[axis] =
        kilni_program_u32(w, (uint32_t)kilni_program_ir_literal_bits(e));
  } else if (said && e->op == KILNI_EXPR_LENGTH && e->type == T(U32)) {
    w->work[axis] =
        kilni_program_length(w, kilni_program_place(w, e->a), T(U32));
  } else if (said && e->op == KILNI_EXPR_SCALAR && e->type == T(U32)) {
    w->work[axis] = w->scalars[e->a];
  } else if ((w->block[axis] > 1 && !fills_blocks(w, axis)) ||
             uses_work_size(ir, axis) || (axis == 0 && w->elements.count > 1) ||
             (w->rounds.flag != 0 && (!said || ir->work[axis] != 0))) {
    uint32_t number =
        kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_WORK, axis, T(U32));
    w->work[axis] = lower_read_scalar(w, number, T(U32));
  }
}

// Whether blocks may hold threads beyond the work size.
static bool lower_is_over(const kilni_program_lowering_t* w, uint32_t axis) {
  if (w->block[axis] == 1 || fills_blocks(w, axis)) return false;
  kilni_program_value_t work = w->work[axis];
  return !kilni_program_value_is_const(w, work) ||
         // No side of a block is 0.
         // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
         kilni_program_value_of(w, work)->bits % w->block[axis] != 0;
}

// True for a thread that has work along `axis`.
static kilni_program_value_t lower_has_work(kilni_program_lowering_t* w,
                                            uint32_t axis) {
  uint32_t size = w->block[axis];
  kilni_program_value_t id =
      kilni_program_id(w, KILN_PROGRAM_ID_GLOBAL_ID, axis);
  kilni_program_value_t work = w->work[axis];
  if ((size & (size - 1)) == 0) return KILNI_BIN(LT, id, work);
  // An id beyond the work size may have wrapped; what is left of it has not.
  kilni_program_value_t first =
      kilni_program_id(w, KILN_PROGRAM_ID_BLOCK_ID, axis);
  first = KILNI_BIN(MUL, first, kilni_program_u32(w, size));
  kilni_program_value_t rest = KILNI_BIN(SUB, work, first);
  return KILNI_BIN(LT, kilni_program_id(w, KILN_PROGRAM_ID_LOCAL_ID, axis),
                   rest);
}

static void leave_idle(kilni_program_lowering_t* w) {
  kilni_program_value_t all = kilni_program_bool(w, true);
  for (uint32_t axis = 0; axis < 3; axis++) {
    if (lower_is_over(w, axis)) {
      all = KILNI_BIN(AND, all, lower_has_work(w, axis));
    }
  }
  if (w->keeps_live) {
    w->live = kilni_program_register(w, T(BOOL));
    kilni_program_move(w, w->live, all);
    return;
  }
  if (!kilni_program_value_is_const(w, all) && w->rounds.flag != 0) {
    kilni_program_branch(w, w->end, all | KILNI_NOT);
  } else if (!kilni_program_value_is_const(w, all)) {
    kilni_program_pin(w, "ret", KILNI_FORM_PLAIN, KILNI_INSTRUCTION_PINNED, 0,
                      NULL, all | KILNI_NOT, 0);
  }
  for (uint32_t axis = 0; axis < 3; axis++) {
    if (w->work[axis] == 0) continue;
    kilni_program_value_t id =
        kilni_program_id(w, KILN_PROGRAM_ID_GLOBAL_ID, axis);
    kilni_program_fact_add(w, id, w->work[axis]);
    uint64_t most = kilni_program_value_of(w, w->work[axis])->most;
    if (most != 0 && (w->off & KILN_PROGRAM_WITHOUT_RANGES) == 0 &&
        kilni_program_value_of(w, id)->most > most - 1) {
      w->values.items[id].most = most - 1;
    }
  }
}

// ---- The walk ----

static void choose_block(kilni_program_lowering_t* w) {
  static const uint32_t kDefaults[4][3] = {
      {256, 1, 1}, {256, 1, 1}, {16, 16, 1}, {8, 8, 8}};
  const kilni_program_ir_t* ir = w->program;
  uint32_t axes = 0;
  while (axes < 3 && ir->work[axes] != 0) axes++;
  for (uint32_t i = 0; i < 3; i++) {
    w->block[i] = ir->block[0] == 0   ? kDefaults[axes][i]
                  : ir->block[i] == 0 ? 1
                                      : ir->block[i];
  }
  w->threads = w->block[0] * w->block[1] * w->block[2];
}

// Before the first access to global memory, and before any thread may end: one
// that ended without a wait would let what comes behind this launch go on while
// what is in front of it still runs. Whoever comes behind may start then: it is
// at most one launch ahead, and takes no place that blocks of this one want.
static void wait_in_front(kilni_program_lowering_t* w) {
  if (!w->waits) return;
  kilni_program_pin_text(w, "griddepcontrol.wait");
  kilni_program_pin_text(w, "griddepcontrol.launch_dependents");
  if (w->need_sm < WAIT_SM) w->need_sm = WAIT_SM;
  if (w->need_isa < WAIT_ISA) w->need_isa = WAIT_ISA;
}

// ---- Two versions ----

static bool may_have_versions(const kilni_program_lowering_t* w,
                              const kilni_program_survey_t* survey) {
  return w->rounds.flag == 0 && w->elements.count <= 1 && !survey->grid &&
         !survey->copies && w->program->exprs.count < MOST_VERSION_EXPRS;
}

// Whether some buffer's accesses would be vectors without a test of their own,
// if the body were written twice: which is asked for then.
static bool wants_versions(kilni_program_lowering_t* w) {
  if (w->versions != 0 || !w->may_have_versions) return false;
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    if (w->grouped[i] != 0) w->versions = 1;
  }
  return w->versions != 0;
}

static void one_version(kilni_program_lowering_t* w, uint32_t version) {
  uint32_t mark = w->changes.count;
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  w->version = version;
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    bool whole = version == KILNI_VERSION_WHOLE;
    w->places[i].grouped = whole ? w->grouped[i] : 0;
  }
  kilni_program_list(w, w->program->body);
  w->dead = 0;
  kilni_program_region_end(w);
  kilni_program_unbind(w, mark);
}

static void two_versions(kilni_program_lowering_t* w) {
  kilni_program_value_t whole = kilni_program_bool(w, true);
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    if (w->grouped[i] == 0) continue;
    kilni_program_value_t one =
        kilni_program_group_aligned(w, &w->places[i], w->grouped[i]);
    whole = KILNI_BIN(AND, whole, one);
  }
  uint32_t apart = kilni_program_label(w);
  kilni_program_branch(w, apart, whole | KILNI_NOT);
  one_version(w, KILNI_VERSION_WHOLE);
  kilni_program_branch(w, w->end, 0);
  kilni_program_place_label(w, apart);
  one_version(w, KILNI_VERSION_APART);
}

// What one block of the work does.
static void block_body(kilni_program_lowering_t* w) {
  kilni_program_shared_clear(w);
  if (w->rounds.flag == 0) wait_in_front(w);
  leave_idle(w);
  kilni_program_private_clear(w, 0);
  if (w->versions) {
    two_versions(w);
  } else {
    kilni_program_list(w, w->program->body);
  }
}

static void lower_walk(kilni_program_lowering_t* w) {
  kilni_program_survey_t survey = kilni_program_survey(w);
  if (survey.copies) kilni_program_copies_survey(w);
  kilni_program_together_survey(w);
  choose_block(w);
  if (w->rounds.flag != 0) kilni_program_rounds_place(w);
  kilni_program_elements_choose(w, &survey);
  w->may_have_versions = may_have_versions(w, &survey);
  read_scalars(w);
  bool over = false;
  for (uint32_t axis = 0; axis < 3; axis++) {
    read_work(w, axis);
    over = over || lower_is_over(w, axis);
  }
  if (survey.traps) {
    w->trap_parameter =
        1 + kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_TRAP, 0, T(U64));
  }
  if (survey.grid) {
    w->grid_parameter =
        1 + kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_GRID, 0, T(U64));
    w->grid_passed = kilni_program_register(w, T(U64));
    kilni_program_move(w, w->grid_passed, kilni_program_const(w, T(U64), 0));
    kilni_program_grid_begin(w);
  }
  bool ends = over || survey.returns || survey.traps;
  // In rounds, threads that are through wait for the others of their block.
  w->keeps_live = ends && (survey.lanes || survey.copies || survey.grid ||
                           (w->rounds.flag != 0 && survey.barriers));
  w->together = w->keeps_live;
  kilni_program_here_begin(w, ends);
  if (w->keeps_live && survey.copies) {
    w->tell_offset = w->shared_bytes;
    w->shared_bytes += 32;
  }
  w->end = kilni_program_label(w);
  if (w->failed != KILN_STATUS_OK) return;
  if (w->rounds.flag != 0) {
    wait_in_front(w);
    kilni_program_rounds_body(w, &survey, block_body);
    return;
  }
  if (w->elements.count > 1) {
    wait_in_front(w);
    kilni_program_elements_body(w);
  } else {
    const uint32_t off =
        KILN_PROGRAM_WITHOUT_COVERING | KILN_PROGRAM_WITHOUT_DROPPING;
    w->covers = !ends && (w->off & off) == 0;
    block_body(w);
    if (w->failed == KILN_STATUS_OK) kilni_program_shared_keep(w);
  }
  kilni_program_place_label(w, w->end);
  if (survey.grid) kilni_program_grid_leave(w);
  kilni_program_pin_text(w, "ret");
}

// Memory for what has a size from the start.
static bool lower_set_up(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  uint32_t variables = ir->variables.count + 1;
  uint32_t elements = 0;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    if (ir->buffers.items[i].role == KILN_PROGRAM_ROLE_PRIVATE) {
      elements += MAX_SCALARS;
    }
  }
  w->binding_count = variables + elements + w->library.variables.count;
  w->library_base = variables + elements;
#define ZEROED(field, count)                                   \
  do {                                                         \
    size_t bytes_ = ((size_t)(count) + 1) * sizeof(*w->field); \
    w->field = kilni_program_arena_get(&w->arena, bytes_);     \
    if (w->field == NULL) return false;                        \
    memset(w->field, 0, bytes_);                               \
  } while (0)
  ZEROED(bindings, w->binding_count);
  ZEROED(marks, w->binding_count);
  ZEROED(places, ir->buffers.count);
  ZEROED(grouped, ir->buffers.count);
  ZEROED(private_bytes, ir->buffers.count);
  ZEROED(scalars, ir->scalars.count);
  ZEROED(levels, ir->statements.count);
  ZEROED(function_levels, ir->functions.count);
  ZEROED(function_returns, ir->functions.count);
  ZEROED(memo, ir->exprs.count);
  ZEROED(calls, ir->exprs.count);
  ZEROED(parameters, 2 * ir->buffers.count + ir->scalars.count + 12);
#undef ZEROED
  return true;
}

static bool has_new_memory(const kilni_program_lowering_t* w) {
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    if (w->places[i].first == UINT32_MAX) return true;
  }
  return false;
}

// Forgets all but which private arrays are kept in memory, and what two
// versions are chosen by.
static void start_again(kilni_program_lowering_t* w) {
  kilni_program_lowering_t fresh;
  const uint32_t* grouped = w->versions != 0 ? w->grouped : NULL;
  memset(&fresh, 0, sizeof(fresh));
  const kilni_program_ir_t* ir = w->program;
  kilni_dispatch_place_t* before = w->places;
  fresh.arena = w->arena;
  fresh.program = fresh.ir = ir;
  fresh.library = w->library;
  fresh.sm = w->sm;
  fresh.max_isa = w->max_isa;
  fresh.max_ulp = w->max_ulp;
  fresh.off = w->off;
  fresh.wanted = w->wanted;
  fresh.rounds.flag = w->rounds.flag;
  fresh.rounds.votes = w->rounds.votes;
  fresh.waits = w->waits;
  fresh.versions = w->versions;
  fresh.floats = w->floats;
  fresh.need_sm = MIN_SM;
  fresh.need_isa = MIN_ISA;
  fresh.floor = 1;
  fresh.stamp = 1;
  *w = fresh;
  if (!lower_set_up(w) || !kilni_program_values_init(w)) {
    kilni_program_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
    return;
  }
  for (uint32_t i = 1; grouped != NULL && i < ir->buffers.count; i++) {
    w->grouped[i] = grouped[i];
  }
  for (uint32_t i = 1; before != NULL && i < ir->buffers.count; i++) {
    if (before[i].role == KILN_PROGRAM_ROLE_PRIVATE &&
        (before[i].first == 0 || before[i].first == UINT32_MAX)) {
      w->places[i].first = UINT32_MAX;
    }
  }
}

// ---- The code object ----

// The lowest PTX version that knows an architecture.
static uint32_t isa_of(uint32_t sm) {
  return sm >= 80 ? 70 : 60;
}

static kiln_status_t failure(const kilni_program_lowering_t* w) {
  if (w->failed == KILN_STATUS_OUT_OF_MEMORY) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  const char* program = kilni_program_ir_name(w->program, w->program->name);
  const char* quote = w->failed_name[0] != 0 ? "\"" : "";
  kiln_status_t status = kilni_base_status_make(
      (kiln_status_code_t)w->failed, KILNI_MODULE, __FILE__, __LINE__,
      "program \"%s\" %s%s%s%s%s", program, w->failed_what,
      quote[0] != 0 ? ": " : "", quote, w->failed_name, quote);
  const char* fix = "report this program; it should not have been accepted";
  if (w->failed_what == kTooMuchShared) {
    fix = "use smaller shared arrays, or private ones";
  } else if (w->failed == KILN_STATUS_LIMIT_EXCEEDED) {
    fix = "divide it into several programs";
  } else if (w->failed == KILN_STATUS_UNSUPPORTED) {
    fix = "write what it needs with other operators, or give a newer target";
  }
  return kilni_base_status_with_fix(status, "%s", fix);
}

// An array that has no name is called as kiln_program_print calls it.
static const char* name_of_array(const kilni_program_ir_t* ir, uint32_t buffer,
                                 char text[16]) {
  const char* name = kilni_program_ir_name(ir, ir->buffers.items[buffer].name);
  if (name[0] != 0) return name;
  snprintf(text, 16, "_b%u", buffer);
  return text;
}

// The names of the shared arrays that are zeroed; how many bytes they come to.
// `out`: NULL, or where they go.
static size_t name_zeroed(const kilni_program_lowering_t* w, char* out) {
  size_t size = 1;
  if (out != NULL) *out = 0;
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    if (w->places[i].pays == 0) continue;
    char text[16];
    const char* name = name_of_array(w->program, i, text);
    size_t bytes = strlen(name) + 1;
    if (out != NULL) {
      memcpy(out + size - 1, name, bytes);
      out[size - 1 + bytes] = 0;
    }
    size += bytes;
  }
  return size;
}

static void describe_launch(const kilni_program_lowering_t* w,
                            kiln_program_launch_t* launch) {
  memcpy(launch->block, w->block, sizeof(launch->block));
  launch->elements = w->elements.count;
  launch->sm = w->need_sm;
  launch->isa = w->need_isa;
  launch->cooperative = w->grid_parameter != 0 || w->rounds.flag != 0;
  launch->waits = w->waits;
  if (w->shared_bytes <= KILNI_STATIC_SHARED) {
    launch->static_shared_bytes = w->shared_bytes;
  } else {
    launch->dynamic_shared_bytes = w->shared_bytes;
  }
  launch->zeroed_shared_bytes = w->clear_bytes;
  for (uint32_t i = 0; i < w->private_count; i++) {
    launch->private_bytes += w->private_bytes[i];
  }
}

static kiln_status_t lower_make_code(kilni_program_lowering_t* w,
                                     kiln_allocator_t allocator,
                                     kiln_program_code_t** out_code) {
  const char* name = kilni_program_ir_name(w->program, w->program->name);
  size_t name_size = strlen(name);
  char* entry = kilni_program_arena_get(&w->arena, name_size + 6);
  size_t text_size = 0;
  char* text = NULL;
  if (entry != NULL) {
    memcpy(entry, "kiln_", 5);
    memcpy(entry + 5, name, name_size + 1);
    text = kilni_program_ptx_write(w, entry, &text_size);
  }
  if (text == NULL) return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  size_t parameters = w->parameter_count * sizeof(kiln_program_parameter_t);
  size_t size = sizeof(kiln_program_code_t) + parameters + name_size + 6 +
                text_size + 1 + name_zeroed(w, NULL);
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, size, &memory));
  kiln_program_code_t* code = memory;
  memset(code, 0, sizeof(*code));
  atomic_init(&code->references, 1);
  code->allocator = allocator;
  code->size = size;
  char* at = (char*)(code + 1);
  memcpy(at, w->parameters, parameters);
  code->parameters = (const kiln_program_parameter_t*)(const void*)at;
  code->parameter_count = w->parameter_count;
  at += parameters;
  memcpy(at, entry, name_size + 6);
  code->entry = at;
  at += name_size + 6;
  memcpy(at, text, text_size + 1);
  code->text = at;
  code->text_size = text_size;
  at += text_size + 1;
  name_zeroed(w, at);
  code->zeroed = at;
  describe_launch(w, &code->launch);
  *out_code = code;
  return kiln_ok();
}

static kiln_status_t check_waits(const kilni_program_ir_t* ir,
                                 const kiln_program_lower_options_t* options) {
  KILNI_CHECK_ARGUMENT(options->waits <= KILN_SWITCH_ON, "options.waits");
  if (options->waits != KILN_SWITCH_ON || options->sm >= WAIT_SM) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          UNSUPPORTED,
          "`waits` for program \"%s\" and sm_%u: griddepcontrol is there "
          "since sm_90",
          kilni_program_ir_name(ir, ir->name), options->sm),
      "lower it for sm_90 or newer, or leave `waits` away");
}

static kiln_status_t check_isa(const kilni_program_lowering_t* w) {
  if (w->max_isa == 0 || w->need_isa <= w->max_isa) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "program \"%s\" needs PTX %u.%u and the driver loads %u.%u",
                 kilni_program_ir_name(w->program, w->program->name),
                 w->need_isa / 10, w->need_isa % 10, w->max_isa / 10,
                 w->max_isa % 10),
      "use a newer driver, or lower it for sm_75");
}

static kiln_status_t program_lower_lower(kilni_program_lowering_t* w,
                                         kiln_allocator_t allocator,
                                         kiln_program_code_t** out_code) {
  uint32_t attempts = 0;
  do {
    start_again(w);
    uint32_t variables = w->program->variables.count + 1;
    if (w->failed == KILN_STATUS_OK) place_buffers(w, &variables);
    if (w->failed == KILN_STATUS_OK) lower_walk(w);
    attempts++;
  } while (w->failed == KILN_STATUS_OK && attempts < 1000 &&
           (has_new_memory(w) || wants_versions(w)));
  if (w->arena.failed != 0) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  if (w->failed != KILN_STATUS_OK) return failure(w);
  if (w->need_isa < isa_of(w->need_sm)) w->need_isa = isa_of(w->need_sm);
  KILNI_RETURN_IF_ERROR(check_isa(w));
  return lower_make_code(w, allocator, out_code);
}

// How much memory a lowering takes, as a rule: then there is one block of it.
static size_t guess_bytes(const kilni_program_ir_t* ir,
                          const kilni_program_ir_t* library) {
  enum { MOST_CALLS = 32, CALL_BYTES = 64 * 1024 };
  size_t calls = 0;
  for (uint32_t i = 1; i < ir->exprs.count && calls < MOST_CALLS; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    bool small = e->type == T(F16) || e->type == T(BF16);
    uint8_t type = small ? T(F32) : e->type;
    calls += (e->op == KILNI_EXPR_UNARY &&
              kilni_program_math_unary(e->extra, type)) ||
             (e->op == KILNI_EXPR_BINARY &&
              kilni_program_math_binary(e->extra, type));
  }
  size_t bytes = 32 * 1024 + (size_t)ir->exprs.count * 700 +
                 (size_t)ir->statements.count * 400 +
                 (size_t)library->variables.count * 2 * sizeof(uint32_t);
  if (calls != 0) bytes += library->exprs.count * sizeof(uint64_t);
  return bytes + calls * CALL_BYTES;
}

static kiln_status_t lower_ir(const kilni_program_ir_t* ir,
                              const kiln_program_lower_options_t* given,
                              kiln_program_code_t** out_code) {
  kiln_program_lower_options_t options;
  *out_code = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      given, "kiln_program_lower_options_t", sizeof(options), &options));
  if (options.elements > KILNI_MAX_ELEMENTS ||
      (options.elements & (options.elements - 1)) != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a thread cannot do %u elements",
                   options.elements),
        "ask for 1, 2, 4, 8 or 16, or 0 for what suits the program");
  }
  if (options.sm == 0) options.sm = DEFAULT_SM;
  if (options.sm < MIN_SM) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "programs cannot be lowered for sm_%u",
                   options.sm),
        "lower it for sm_70 or newer");
  }
  KILNI_RETURN_IF_ERROR(check_waits(ir, &options));
  kiln_allocator_t allocator =
      options.allocator != NULL ? *options.allocator : kiln_allocator_libc();
  kilni_program_lowering_t w;
  memset(&w, 0, sizeof(w));
  kilni_program_math_view(&w.library);
  kilni_program_arena_init(&w.arena, allocator, guess_bytes(ir, &w.library));
  w.program = ir;
  w.sm = options.sm;
  w.max_isa = options.newest_isa;
  w.max_ulp = options.max_ulp;
  w.off = options.without;
  w.wanted = options.elements;
  w.waits = options.waits == KILN_SWITCH_ON;
  w.floats = kilni_program_fold_floats();
  kiln_status_t status = kiln_ok();
  if (options.rounds != 0) {
    w.wanted = 1;
    w.rounds.flag = kilni_program_rounds_flag(&w, options.rounds - 1);
    if (w.rounds.flag == 0) {
      status = kilni_base_status_with_fix(
          failure(&w), "%s",
          w.failed == KILN_STATUS_UNSUPPORTED
              ? "launch it once for each round"
              : "name a buffer of u32 that the program writes");
    }
  }
  if (kiln_status_is_ok(status)) {
    status = program_lower_lower(&w, allocator, out_code);
  }
  kilni_program_arena_deinit(&w.arena);
  return status;
}

kiln_status_t kiln_program_lower(const kiln_program_t* program,
                                 const kiln_program_lower_options_t* options,
                                 kiln_program_code_t** out_code) {
  KILNI_CHECK_ARGUMENT(out_code != NULL, "out_code");
  *out_code = NULL;
  KILNI_CHECK_ARGUMENT(program != NULL, "program");
  return lower_ir(kilni_program_ir(program), options, out_code);
}

void kiln_program_code_retain(kiln_program_code_t* code) {
  if (code == NULL) return;
  atomic_fetch_add_explicit(&code->references, 1, memory_order_relaxed);
}

void kiln_program_code_release(kiln_program_code_t* code) {
  if (code == NULL || atomic_fetch_sub_explicit(&code->references, 1,
                                                memory_order_acq_rel) != 1) {
    return;
  }
  kilni_base_free(code->allocator, code, code->size);
}

kiln_string_view_t kiln_program_code_text(const kiln_program_code_t* code) {
  kiln_string_view_t view = {code->text, code->text_size};
  return view;
}

const char* kiln_program_code_entry(const kiln_program_code_t* code) {
  return code->entry;
}

void kiln_program_code_launch(const kiln_program_code_t* code,
                              kiln_program_launch_t* out_launch) {
  *out_launch = code->launch;
}

const char* kiln_program_code_zeroed(const kiln_program_code_t* code,
                                     uint32_t index) {
  const char* name = code->zeroed;
  for (; *name != 0 && index != 0; index--) name += strlen(name) + 1;
  return *name != 0 ? name : NULL;
}

void kiln_program_code_grid(const kiln_program_code_t* code,
                            const uint64_t work[3], uint32_t out_grid[3]) {
  for (uint32_t axis = 0; axis < 3; axis++) {
    uint64_t each = code->launch.block[axis];
    if (axis == 0) each *= code->launch.elements;
    uint64_t blocks = work[axis] / each + (work[axis] % each != 0);
    out_grid[axis] = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks;
  }
}

uint32_t kiln_program_code_parameter_count(const kiln_program_code_t* code) {
  return code->parameter_count;
}

bool kiln_program_code_parameter(const kiln_program_code_t* code,
                                 uint32_t index,
                                 kiln_program_parameter_t* out_parameter) {
  memset(out_parameter, 0, sizeof(*out_parameter));
  if (index >= code->parameter_count) return false;
  *out_parameter = code->parameters[index];
  return true;
}
