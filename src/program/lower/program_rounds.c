// SPDX-License-Identifier: Apache-2.0
//
// program: a kernel that repeats its program until a round changes nothing.
//
// As many blocks as run at once go through the blocks of the work (`item`), and
// meet behind each round. Where all that the program ever does is raise its
// flag, each thread keeps it in a register and the block's barrier votes; else
// it is a word of the block's shared memory. A block by itself goes on from
// there. Others tell all whether anything changed, with the same addition that
// says that they have come, to one of three words that take turns. What is read
// from a word when the last block has come stays there until all have read it:
// every block sees the same, and no second barrier among them is needed.
//
//   bits 0 to 23   blocks that have come
//   bits 24 to 47  of them: those that changed something
//   bits 48 to 63  of them: those in which a thread has trapped
//
// The word of round r is set to zero in round r + 2, by the first block before
// it comes to that round's end: all have read it then, because all have come to
// the end of round r + 1; and nobody adds to it before that end is reached. The
// last block to leave sets all of them to zero, for the next launch.
#include <string.h>

#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum {
  WORD_BYTES = 8,
  LAST_WORD = 16,
  LEFT = 24,
  COME_BITS = 24,
  CHANGED_BITS = 24,
};

#define ONE_CHANGED (UINT64_C(1) << COME_BITS)
#define ONE_TRAPPED (UINT64_C(1) << (COME_BITS + CHANGED_BITS))

// ---- What can be a flag ----

// Whether an expression needs more of the flag than that it is written.
static bool reads_flag(const kilni_program_ir_t* ir,
                       const kilni_program_expr_record_t* e, uint32_t flag) {
  if (e->op == KILNI_EXPR_LOAD) return e->a == flag;
  if (e->op == KILNI_EXPR_ATOMIC && e->a == flag) {
    uint32_t op = KILNI_ATOMIC_OP(e->extra);
    return op != KILN_PROGRAM_ATOMIC_STORE && op != KILN_PROGRAM_ATOMIC_OR &&
           op != KILN_PROGRAM_ATOMIC_MAX && op != KILN_PROGRAM_ATOMIC_ADD &&
           op != KILN_PROGRAM_ATOMIC_EXCHANGE;
  }
  if (e->op != KILNI_EXPR_CALL) return false;
  for (uint32_t k = 0; k < e->c; k++) {
    if (ir->operands.items[e->b + k] == (flag | KILNI_PARAMETER_BUFFER)) {
      return true;
    }
  }
  return false;
}

// Whether a statement keeps what an atomic found there, or copies the flag.
static bool keeps_flag(const kilni_program_ir_t* ir,
                       const kilni_program_statement_record_t* s,
                       uint32_t flag) {
  const kilni_program_expr_record_t* e = NULL;
  switch (s->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      e = &ir->exprs.items[s->b];
      return e->op == KILNI_EXPR_ATOMIC && e->a == flag;
    case KILNI_STATEMENT_ASYNC_COPY:
      return (s->a & 0xffff) == flag || s->a >> 16 == flag;
    default:
      return false;
  }
}

// Which expressions a statement evaluates: what stands in the tables and in no
// statement is nobody's. NULL without memory.
static uint8_t* find_used(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  uint8_t* used = kilni_program_arena_get(&w->arena, ir->exprs.count);
  uint32_t exprs[KILNI_IR_MAX_CALL];
  if (used == NULL) return NULL;
  memset(used, 0, ir->exprs.count);
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    uint32_t count =
        kilni_program_ir_statement_exprs(&ir->statements.items[i], exprs);
    for (uint32_t k = 0; k < count; k++) used[exprs[k]] = 1;
  }
  for (bool changed = true; changed;) {
    changed = false;
    // Operands mostly stand before what takes them.
    for (uint32_t i = ir->exprs.count - 1; i > 0; i--) {
      uint32_t count =
          used[i] == 1 ? kilni_program_ir_operands(ir, i, exprs) : 0;
      for (uint32_t k = 0; k < count; k++) {
        changed = changed || used[exprs[k]] == 0;
        used[exprs[k]] |= 1;
      }
    }
  }
  return used;
}

// A program that reads its flag, or has its blocks wait for each other, is one
// that only several launches can repeat.
static bool can_repeat(kilni_program_lowering_t* w, uint32_t flag) {
  const kilni_program_ir_t* ir = w->program;
  const char* name = kilni_program_ir_name(ir, ir->buffers.items[flag].name);
  const uint8_t* used = find_used(w);
  if (used == NULL) {
    kilni_program_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
    return false;
  }
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    if (used[i] == 0 || !reads_flag(ir, &ir->exprs.items[i], flag)) continue;
    kilni_program_lower_fail(
        w, KILN_STATUS_UNSUPPORTED,
        "cannot be repeated by one kernel, because it reads its "
        "flag",
        name);
    return false;
  }
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    if (s->op == KILNI_STATEMENT_GRID_BARRIER) {
      kilni_program_lower_fail(
          w, KILN_STATUS_UNSUPPORTED,
          "cannot be repeated by one kernel, because it has a "
          "grid barrier",
          "");
      return false;
    }
    if (!keeps_flag(ir, s, flag)) continue;
    kilni_program_lower_fail(
        w, KILN_STATUS_UNSUPPORTED,
        "cannot be repeated by one kernel, because it reads its "
        "flag",
        name);
    return false;
  }
  return true;
}

static bool is_literal(const kilni_program_ir_t* ir, uint32_t expr, bool zero) {
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  return e->op == KILNI_EXPR_LITERAL &&
         (kilni_program_ir_literal_bits(e) == 0) == zero;
}

// Whether an atomic on the flag only ever raises it.
static bool raises_flag(const kilni_program_ir_t* ir,
                        const kilni_program_expr_record_t* e) {
  const uint32_t* operands = ir->operands.items + e->b;
  uint32_t op = KILNI_ATOMIC_OP(e->extra);
  if (!is_literal(ir, operands[0], true)) return false;
  return op == KILN_PROGRAM_ATOMIC_OR || op == KILN_PROGRAM_ATOMIC_MAX ||
         ((op == KILN_PROGRAM_ATOMIC_STORE ||
           op == KILN_PROGRAM_ATOMIC_EXCHANGE) &&
          is_literal(ir, operands[1], false));
}

// Whether threads can keep the flag to themselves until they vote: nobody takes
// back what another one said, as a store of 0 or a sum that wraps might.
static bool is_only_raised(const kilni_program_ir_t* ir, uint32_t flag) {
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    if (e->op == KILNI_EXPR_ATOMIC && e->a == flag && !raises_flag(ir, e)) {
      return false;
    }
  }
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    if (s->op == KILNI_STATEMENT_STORE && s->a == flag &&
        !(is_literal(ir, s->b, true) && is_literal(ir, s->c, false))) {
      return false;
    }
  }
  return true;
}

uint32_t kilni_program_rounds_flag(kilni_program_lowering_t* w,
                                   uint32_t parameter) {
  const kilni_program_ir_t* ir = w->program;
  uint32_t record = 0;
  if (parameter < ir->order_count) {
    record = ir->operands.items[ir->order + parameter];
  }
  uint32_t flag = record & ~KILNI_PARAMETER_BUFFER;
  const kilni_program_buffer_record_t* buffer = &ir->buffers.items[flag];
  if ((record & KILNI_PARAMETER_BUFFER) == 0 || buffer->type != T(U32) ||
      (buffer->role != KILN_PROGRAM_ROLE_OUT &&
       buffer->role != KILN_PROGRAM_ROLE_INOUT &&
       buffer->role != KILN_PROGRAM_ROLE_RESIDENT)) {
    kilni_program_lower_fail(w, KILN_STATUS_INVALID_ARGUMENT,
                             "has no parameter there that can be its flag", "");
    return 0;
  }
  if (!can_repeat(w, flag)) return 0;
  w->rounds.votes = is_only_raised(ir, flag);
  return flag;
}

void kilni_program_rounds_place(kilni_program_lowering_t* w) {
  kilni_dispatch_place_t* place = &w->places[w->rounds.flag];
  w->rounds.address = place->number;
  w->rounds.told = kilni_program_register(w, T(BOOL));
  w->rounds.trapped = kilni_program_register(w, T(BOOL));
  w->rounds.tell = w->shared_bytes;
  if (!w->rounds.votes) w->shared_bytes += 16;
  place->role = KILN_PROGRAM_ROLE_SHARED;
  place->number = w->rounds.tell;
  place->count = 1;
}

bool kilni_program_rounds_tell(kilni_program_lowering_t* w,
                               const kilni_dispatch_place_t* place,
                               kilni_program_value_t value,
                               kilni_program_value_t guard) {
  if (!w->rounds.votes || place != &w->places[w->rounds.flag]) return false;
  kilni_program_value_t told = KILNI_BIN(NE, value, kilni_program_u32(w, 0));
  if (guard != 0) told = KILNI_BIN(AND, told, guard);
  if (!kilni_program_value_is_const(w, told)) {
    told = kilni_program_fresh(w, "or.pred", T(BOOL), w->rounds.told, told);
  } else if (kilni_program_value_of(w, told)->bits == 0) {
    return true;
  }
  kilni_program_move(w, w->rounds.told, told);
  return true;
}

// ---- Instructions ----

static kilni_program_value_t rounds_load(kilni_program_lowering_t* w,
                                         const char* name, uint8_t type,
                                         kilni_program_value_t address) {
  kilni_program_value_t operands[2] = {kilni_program_register(w, type),
                                       address};
  kilni_program_pin(w, name, KILNI_FORM_LOAD,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 2,
                    operands, 0, 0);
  return operands[0];
}

static void rounds_store(kilni_program_lowering_t* w, const char* name,
                         kilni_program_value_t address,
                         kilni_program_value_t value) {
  kilni_program_value_t operands[2] = {address, value};
  kilni_program_pin(w, name, KILNI_FORM_STORE, KILNI_INSTRUCTION_PINNED, 2,
                    operands, 0, 0);
}

static kilni_program_value_t u64(kilni_program_lowering_t* w, uint64_t number) {
  return kilni_program_const(w, T(U64), number);
}

// A branch of the code for threads with `condition`.
static uint32_t begin_if(kilni_program_lowering_t* w,
                         kilni_program_value_t condition) {
  uint32_t skip = kilni_program_label(w);
  kilni_program_branch(w, skip, condition | KILNI_NOT);
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  return skip;
}

static void end_if(kilni_program_lowering_t* w, uint32_t skip) {
  kilni_program_region_end(w);
  kilni_program_place_label(w, skip);
}

static kilni_program_value_t rounds_special(kilni_program_lowering_t* w,
                                            const char* name) {
  kilni_program_instruction_t instruction = {0};
  instruction.name = name;
  instruction.form = KILNI_FORM_SPECIAL;
  instruction.count = 1;
  return kilni_program_pure_form(w, &instruction, T(U32));
}

// ---- The blocks of the work ----

// What the kernel knows from its start on.
typedef struct repeat_t {
  uint32_t axes;
  kilni_program_value_t mine, all;  // u32: this block, and how many there are
  kilni_program_value_t first[3], step[3];
  kilni_program_value_t some;    // bool: there is work for this block
  kilni_program_value_t leader;  // bool: the thread that speaks for its block
  kilni_program_value_t meet;    // u64: where blocks meet
  // Registers.
  kilni_program_value_t round;  // u32: that are done
  kilni_program_value_t word;   // u64: where this round's blocks are counted
  kilni_program_value_t changed,
      trapped;  // bool: in this round; the leader knows
} repeat_t;

// `number` of a run of blocks, along each axis.
static void rounds_divide(kilni_program_lowering_t* w, const repeat_t* r,
                          kilni_program_value_t number,
                          kilni_program_value_t out[3]) {
  for (uint32_t axis = 0; axis < 3; axis++) out[axis] = kilni_program_u32(w, 0);
  for (uint32_t axis = 0; axis < r->axes; axis++) {
    kilni_program_value_t count = w->rounds.counts[axis];
    bool last = axis + 1 == r->axes;
    out[axis] = last ? number : KILNI_BIN(REM, number, count);
    if (!last) number = KILNI_BIN(DIV, number, count);
  }
}

static void count_blocks(kilni_program_lowering_t* w, repeat_t* r) {
  kilni_program_value_t zero = kilni_program_u32(w, 0),
                        one = kilni_program_u32(w, 1);
  kilni_program_value_t some = kilni_program_bool(w, true);
  r->axes = 1;
  for (uint32_t axis = 0; axis < 3; axis++) {
    bool has = w->work[axis] != 0;
    kilni_program_value_t work = kilni_program_lower_work(w, axis),
                          size = kilni_program_u32(w, w->block[axis]);
    kilni_program_value_t rest =
        KILNI_BIN(NE, KILNI_BIN(REM, work, size), zero);
    kilni_program_value_t count = KILNI_BIN(DIV, work, size);
    count = KILNI_BIN(ADD, count, kilni_program_select(w, rest, one, zero));
    w->rounds.counts[axis] = count;
    some = KILNI_BIN(AND, some, KILNI_BIN(NE, count, zero));
    if (has && !(kilni_program_value_is(w, count, 1))) r->axes = axis + 1;
  }
  r->mine = rounds_special(w, "%ctaid.x");
  r->all = rounds_special(w, "%nctaid.x");
  rounds_divide(w, r, r->mine, r->first);
  rounds_divide(w, r, r->all, r->step);
  uint32_t last = r->axes - 1;
  kilni_program_value_t inside =
      KILNI_BIN(LT, r->first[last], w->rounds.counts[last]);
  r->some = KILNI_BIN(AND, some, inside);
}

// The next block of the work for this block: `again`, unless there is none.
static void advance(kilni_program_lowering_t* w, const repeat_t* r,
                    uint32_t again, uint32_t done) {
  kilni_program_value_t next[3] = {0}, carry = 0;
  uint32_t last = r->axes - 1;
  for (uint32_t axis = 0; axis <= last; axis++) {
    kilni_program_value_t at = w->rounds.block[axis], step = r->step[axis];
    if (carry != 0) {
      carry = kilni_program_select(w, carry, kilni_program_u32(w, 1),
                                   kilni_program_u32(w, 0));
      step = KILNI_BIN(ADD, step, carry);
    }
    if (axis == last) {
      kilni_program_value_t rest = KILNI_BIN(SUB, w->rounds.counts[axis], at);
      kilni_program_branch(w, done, KILNI_BIN(LE, rest, step));
      next[axis] = KILNI_BIN(ADD, at, step);
    } else {
      // No sum is more than the count, whatever that is.
      kilni_program_value_t space =
          KILNI_BIN(SUB, w->rounds.counts[axis], step);
      carry = KILNI_BIN(GE, at, space);
      kilni_program_value_t back = KILNI_BIN(SUB, at, space);
      next[axis] =
          kilni_program_select(w, carry, back, KILNI_BIN(ADD, at, step));
    }
  }
  for (uint32_t axis = 0; axis <= last; axis++) {
    kilni_program_move(w, w->rounds.block[axis], next[axis]);
  }
  kilni_program_branch(w, again, 0);
}

// All blocks of the work that are this block's.
static void do_round(kilni_program_lowering_t* w, const repeat_t* r,
                     const kilni_program_survey_t* survey,
                     void (*item)(kilni_program_lowering_t* w)) {
  uint32_t done = kilni_program_label(w), again = kilni_program_label(w),
           outer = w->region;
  kilni_program_branch(w, done, r->some | KILNI_NOT);
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  uint32_t inner = w->region;
  for (uint32_t axis = 0; axis < 3; axis++) {
    kilni_program_value_t at = kilni_program_u32(w, 0);
    if (axis < r->axes) {
      at = kilni_program_register(w, T(U32));
      w->values.items[at].flags |= KILNI_VALUE_UNIFORM;
      w->region = outer;
      kilni_program_move(w, at, r->first[axis]);
      w->region = inner;
    }
    w->rounds.block[axis] = at;
  }
  kilni_program_place_label(w, again);
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  w->dead = 0;
  w->together = w->keeps_live;
  item(w);
  w->dead = 0;
  kilni_program_region_end(w);
  kilni_program_place_label(w, w->end);
  w->epoch++;
  if (w->leaves != NULL) kilni_program_pin_text(w, "cp.async.wait_all");
  // What a block shares is used again.
  if (w->clear_bytes != 0 || survey->copies) {
    kilni_program_pin_text(w, "bar.sync 0");
  }
  advance(w, r, again, done);
  kilni_program_region_end(w);
  for (uint32_t axis = 0; axis < 3; axis++) w->rounds.block[axis] = 0;
  kilni_program_place_label(w, done);
}

// ---- Meeting ----

static kilni_program_value_t vote(kilni_program_lowering_t* w,
                                  kilni_program_value_t mine) {
  kilni_program_value_t operands[2] = {kilni_program_u32(w, 0), mine};
  return kilni_program_pin_value(w, "bar.red.or.pred", T(BOOL), 2, operands, 0);
}

// What the block's threads have said in shared memory: its leader speaks for
// them all.
static void read_told(kilni_program_lowering_t* w, const repeat_t* r) {
  kilni_program_value_t at = kilni_program_shared_address(w, w->rounds.tell);
  kilni_program_value_t zero = kilni_program_u32(w, 0);
  kilni_program_pin_text(w, "bar.sync 0");
  uint32_t skip = begin_if(w, r->leader);
  kilni_program_value_t changed = rounds_load(w, "ld.shared.u32", T(U32), at);
  rounds_store(w, "st.shared.u32", at, zero);
  kilni_program_move(
      w, w->rounds.told,
      kilni_program_fresh(w, "setp.ne.u32", T(BOOL), changed, zero));
  end_if(w, skip);
}

// What this block adds: that it has come, and with what.
static kilni_program_value_t own_word(kilni_program_lowering_t* w,
                                      const repeat_t* r,
                                      const kilni_program_survey_t* survey) {
  kilni_program_value_t word =
      kilni_program_select(w, r->changed, u64(w, ONE_CHANGED + 1), u64(w, 1));
  if (!survey->traps) return word;
  kilni_program_value_t more =
      kilni_program_select(w, r->trapped, u64(w, ONE_TRAPPED), u64(w, 0));
  return kilni_program_fresh(w, "add.u64", T(U64), word, more);
}

// Until all blocks have come.
static kilni_program_value_t wait_for_all(kilni_program_lowering_t* w,
                                          const repeat_t* r) {
  kilni_program_value_t seen = kilni_program_register(w, T(U64));
  uint32_t again = kilni_program_label(w);
  kilni_program_value_t all = kilni_program_cast(w, T(U64), r->all);
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  kilni_program_place_label(w, again);
  kilni_program_value_t word =
      rounds_load(w, "ld.acquire.gpu.global.u64", T(U64), r->word);
  kilni_program_value_t mask = u64(w, (UINT64_C(1) << COME_BITS) - 1);
  kilni_program_value_t come =
      kilni_program_fresh(w, "and.b64", T(U64), word, mask);
  kilni_program_move(w, seen, word);
  kilni_program_branch(
      w, again, kilni_program_fresh(w, "setp.ne.u64", T(BOOL), come, all));
  kilni_program_region_end(w);
  return seen;
}

// The leader of one of several blocks comes to the end of a round; true for it
// if there is another one.
static kilni_program_value_t meet_others(kilni_program_lowering_t* w,
                                         const repeat_t* r,
                                         const kilni_program_survey_t* survey) {
  kilni_program_value_t more = kilni_program_register(w, T(BOOL));
  kilni_program_move(w, more, kilni_program_bool(w, false));
  uint32_t skip = begin_if(w, r->leader);
  kilni_program_value_t last = KILNI_BIN(ADD, r->meet, u64(w, LAST_WORD));
  kilni_program_value_t at_last =
      kilni_program_fresh(w, "setp.eq.u64", T(BOOL), r->word, last);
  kilni_program_value_t next =
      kilni_program_fresh(w, "add.u64", T(U64), r->word, u64(w, WORD_BYTES));
  next = kilni_program_select(w, at_last, r->meet, next);
  uint32_t others =
      begin_if(w, KILNI_BIN(EQ, r->mine, kilni_program_u32(w, 0)));
  rounds_store(w, "st.global.u64", next, u64(w, 0));
  end_if(w, others);
  rounds_store(w, "red.release.gpu.global.add.u64", r->word,
               own_word(w, r, survey));
  kilni_program_value_t seen = wait_for_all(w, r);
  kilni_program_move(w, r->word, next);
  // Something changed and nobody trapped.
  kilni_program_value_t above =
      kilni_program_fresh(w, "sub.u64", T(U64), seen, u64(w, ONE_CHANGED));
  kilni_program_value_t below = u64(w, ONE_TRAPPED - ONE_CHANGED);
  kilni_program_move(
      w, more, kilni_program_fresh(w, "setp.lt.u64", T(BOOL), above, below));
  kilni_program_move(w, r->changed,
                     kilni_program_fresh(w, "setp.ge.u64", T(BOOL), seen,
                                         u64(w, ONE_CHANGED)));
  if (survey->traps) {
    kilni_program_move(w, r->trapped,
                       kilni_program_fresh(w, "setp.ge.u64", T(BOOL), seen,
                                           u64(w, ONE_TRAPPED)));
  }
  end_if(w, skip);
  return more;
}

// The end of a round: true for all if there is another one.
static kilni_program_value_t rounds_meet(kilni_program_lowering_t* w,
                                         const repeat_t* r,
                                         const kilni_program_survey_t* survey) {
  kilni_program_value_t more = kilni_program_register(w, T(BOOL));
  if (!w->rounds.votes) read_told(w, r);
  kilni_program_value_t any = vote(w, w->rounds.told);
  kilni_program_move(w, r->changed, any);
  if (survey->traps) {
    kilni_program_value_t trapped = vote(w, w->rounds.trapped);
    kilni_program_move(w, r->trapped, trapped);
    trapped = kilni_program_fresh(w, "not.pred", T(BOOL), trapped, 0);
    any = kilni_program_fresh(w, "and.pred", T(BOOL), any, trapped);
  }
  kilni_program_move(w, more, any);
  w->epoch++;
  uint32_t alone = begin_if(w, KILNI_BIN(NE, r->all, kilni_program_u32(w, 1)));
  kilni_program_move(w, more, vote(w, meet_others(w, r, survey)));
  end_if(w, alone);
  return more;
}

// ---- The end ----

// What the host is told, by the first block.
static void tell_host(kilni_program_lowering_t* w, const repeat_t* r,
                      kilni_program_value_t round,
                      kilni_program_value_t changed,
                      kilni_program_value_t trapped) {
  uint32_t others =
      begin_if(w, KILNI_BIN(EQ, r->mine, kilni_program_u32(w, 0)));
  kilni_program_value_t told = kilni_program_pointer(w, w->rounds.record);
  kilni_program_value_t flag = kilni_program_pointer(w, w->rounds.address);
  kilni_program_value_t end = kilni_program_select(
      w, changed, kilni_program_u32(w, KILN_PROGRAM_ROUNDS_LIMIT),
      kilni_program_u32(w, KILN_PROGRAM_ROUNDS_SETTLED));
  end = kilni_program_select(
      w, trapped, kilni_program_u32(w, KILN_PROGRAM_ROUNDS_TRAPPED), end);
  rounds_store(w, "st.global.u32", flag,
               kilni_program_select(w, changed, kilni_program_u32(w, 1),
                                    kilni_program_u32(w, 0)));
  rounds_store(w, "st.global.u32", told, round);
  rounds_store(w, "st.global.u32", KILNI_BIN(ADD, told, u64(w, 4)), end);
  end_if(w, others);
}

// The last block that leaves sets all words to zero.
static void rounds_leave(kilni_program_lowering_t* w, const repeat_t* r) {
  uint32_t alone = begin_if(w, KILNI_BIN(NE, r->all, kilni_program_u32(w, 1)));
  kilni_program_value_t left = KILNI_BIN(ADD, r->meet, u64(w, LEFT));
  kilni_program_value_t operands[3] = {kilni_program_register(w, T(U64)), left,
                                       u64(w, 1)};
  kilni_program_pin(w, "atom.acq_rel.gpu.global.add.u64", KILNI_FORM_ATOM,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 3,
                    operands, 0, 0);
  kilni_program_value_t before = kilni_program_cast(w, T(U64), r->all);
  before = KILNI_BIN(SUB, before, u64(w, 1));
  uint32_t others = begin_if(
      w, kilni_program_fresh(w, "setp.eq.u64", T(BOOL), operands[0], before));
  for (uint32_t at = 0; at <= LEFT; at += WORD_BYTES) {
    rounds_store(w, "st.global.u64", KILNI_BIN(ADD, r->meet, u64(w, at)),
                 u64(w, 0));
  }
  end_if(w, others);
  end_if(w, alone);
}

static void rounds_finish(kilni_program_lowering_t* w, const repeat_t* r,
                          const kilni_program_survey_t* survey) {
  kilni_program_value_t round = kilni_program_register(w, T(U32));
  kilni_program_value_t changed = kilni_program_register(w, T(BOOL));
  kilni_program_value_t trapped = kilni_program_bool(w, false);
  kilni_program_move(w, round, r->round);
  kilni_program_move(w, changed, r->changed);
  if (survey->traps) {
    trapped = kilni_program_register(w, T(BOOL));
    kilni_program_move(w, trapped, r->trapped);
  }
  uint32_t skip = begin_if(w, r->leader);
  changed = KILNI_BIN(OR, changed, trapped);
  tell_host(w, r, round, changed, trapped);
  rounds_leave(w, r);
  end_if(w, skip);
  kilni_program_pin_text(w, "ret");
}

static void rounds_begin(kilni_program_lowering_t* w, repeat_t* r) {
  w->rounds.meet =
      kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_MEET, 0, T(U64));
  w->rounds.record =
      kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_ROUNDS, 0, T(U64));
  w->rounds.limit =
      kilni_program_parameter(w, KILN_PROGRAM_PARAMETER_LIMIT, 0, T(U32));
  r->leader =
      KILNI_BIN(EQ, kilni_program_local_index(w), kilni_program_u32(w, 0));
  r->meet = kilni_program_pointer(w, w->rounds.meet);
  count_blocks(w, r);
  if (w->rounds.votes) return;
  kilni_program_value_t told = kilni_program_shared_address(w, w->rounds.tell);
  uint32_t skip = begin_if(w, r->leader);
  rounds_store(w, "st.shared.u32", told, kilni_program_u32(w, 0));
  end_if(w, skip);
  kilni_program_pin_text(w, "bar.sync 0");
}

static kilni_program_value_t read_limit(kilni_program_lowering_t* w) {
  kilni_program_instruction_t read = {0};
  read.name = "ld.param.u32";
  read.form = KILNI_FORM_PARAM;
  read.count = 1;
  read.number = w->rounds.limit;
  return kilni_program_pure_form(w, &read, T(U32));
}

void kilni_program_rounds_body(kilni_program_lowering_t* w,
                               const kilni_program_survey_t* survey,
                               void (*item)(kilni_program_lowering_t* w)) {
  repeat_t r = {0};
  rounds_begin(w, &r);
  kilni_program_value_t limit = read_limit(w);
  uint32_t again = kilni_program_label(w), outer = w->region;
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  uint32_t inner = w->region;
  r.round = kilni_program_register(w, T(U32));
  r.word = kilni_program_register(w, T(U64));
  r.changed = kilni_program_register(w, T(BOOL));
  r.trapped = kilni_program_register(w, T(BOOL));
  w->region = outer;
  kilni_program_move(w, r.round, kilni_program_u32(w, 0));
  kilni_program_move(w, r.word, r.meet);
  kilni_program_move(w, r.changed, kilni_program_bool(w, false));
  kilni_program_move(w, r.trapped, kilni_program_bool(w, false));
  kilni_program_move(w, w->rounds.trapped, kilni_program_bool(w, false));
  w->region = inner;
  kilni_program_place_label(w, again);
  kilni_program_move(w, w->rounds.told, kilni_program_bool(w, false));
  do_round(w, &r, survey, item);
  if (w->failed != KILN_STATUS_OK) return;
  kilni_program_value_t more = rounds_meet(w, &r, survey);
  kilni_program_move(w, r.round,
                     kilni_program_fresh(w, "add.u32", T(U32), r.round,
                                         kilni_program_u32(w, 1)));
  kilni_program_value_t allowed =
      kilni_program_fresh(w, "setp.lt.u32", T(BOOL), r.round, limit);
  more = kilni_program_fresh(w, "and.pred", T(BOOL), more, allowed);
  kilni_program_branch(w, again, more);
  kilni_program_region_end(w);
  rounds_finish(w, &r, survey);
}
