// SPDX-License-Identifier: Apache-2.0
//
// program: who a thread is, and what threads do together: barriers, copies,
// traps.
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

// ---- Ids ----

static kilni_program_value_t meet_special(kilni_program_lowering_t* w,
                                          const char* const names[3],
                                          uint32_t axis, uint64_t most,
                                          bool uniform) {
  kilni_program_instruction_t instruction = {0};
  instruction.name = names[axis];
  instruction.form = KILNI_FORM_SPECIAL;
  instruction.count = 1;
  kilni_program_value_t out = kilni_program_pure_form(w, &instruction, T(U32));
  kilni_program_value_record_t* record = &w->values.items[out];
  if (most < record->most) record->most = most;
  if (!uniform) record->flags &= (uint8_t)~KILNI_VALUE_UNIFORM;
  return out;
}

static kilni_program_value_t local_id(kilni_program_lowering_t* w,
                                      uint32_t axis) {
  static const char* const kNames[3] = {"%tid.x", "%tid.y", "%tid.z"};
  if (w->block[axis] == 1) return kilni_program_u32(w, 0);
  return meet_special(w, kNames, axis, w->block[axis] - 1, false);
}

static kilni_program_value_t block_id(kilni_program_lowering_t* w,
                                      uint32_t axis) {
  static const char* const kNames[3] = {"%ctaid.x", "%ctaid.y", "%ctaid.z"};
  if (w->rounds.block[axis] != 0) return w->rounds.block[axis];
  return meet_special(w, kNames, axis, UINT32_MAX, true);
}

static kilni_program_value_t block_count(kilni_program_lowering_t* w,
                                         uint32_t axis) {
  static const char* const kNames[3] = {"%nctaid.x", "%nctaid.y", "%nctaid.z"};
  if (w->rounds.flag != 0) return w->rounds.counts[axis];
  return meet_special(w, kNames, axis, UINT32_MAX, true);
}

kilni_program_value_t kilni_program_local_index(kilni_program_lowering_t* w) {
  kilni_program_value_t out = local_id(w, 0);
  uint32_t size = w->block[0];
  for (uint32_t axis = 1; axis < 3; axis++) {
    kilni_program_value_t step =
        KILNI_BIN(MUL, local_id(w, axis), kilni_program_u32(w, size));
    out = KILNI_BIN(ADD, out, step);
    size *= w->block[axis];
  }
  return out;
}

kilni_program_value_t kilni_program_lower_work(kilni_program_lowering_t* w,
                                               uint32_t axis) {
  if (w->work[axis] != 0) return w->work[axis];
  return kilni_program_u32(w, 1);
}

kilni_program_value_t kilni_program_id(kilni_program_lowering_t* w, uint32_t id,
                                       uint32_t axis) {
  kilni_program_value_t index;
  if (axis > 2) axis = 2;
  switch (id) {
    case KILN_PROGRAM_ID_GLOBAL_ID:
      if (axis == 0 && w->elements.id != 0) return w->elements.id;
      index = KILNI_BIN(MUL, block_id(w, axis),
                        kilni_program_u32(w, w->block[axis]));
      return KILNI_BIN(ADD, index, local_id(w, axis));
    case KILN_PROGRAM_ID_LOCAL_ID:
      return local_id(w, axis);
    case KILN_PROGRAM_ID_BLOCK_ID:
      return block_id(w, axis);
    case KILN_PROGRAM_ID_BLOCK_SIZE:
      return kilni_program_u32(w, w->block[axis]);
    case KILN_PROGRAM_ID_BLOCK_COUNT:
      return block_count(w, axis);
    case KILN_PROGRAM_ID_WORK_SIZE:
      return kilni_program_lower_work(w, axis);
    case KILN_PROGRAM_ID_LOCAL_INDEX:
      return kilni_program_local_index(w);
    case KILN_PROGRAM_ID_LANE:
      return KILNI_BIN(BIT_AND, kilni_program_local_index(w),
                       kilni_program_u32(w, 31));
    default:
      return KILNI_BIN(SHR, kilni_program_local_index(w),
                       kilni_program_u32(w, 5));
  }
}

// ---- Barriers ----

void kilni_program_barrier(kilni_program_lowering_t* w) {
  kilni_program_pin_text(w, "bar.sync 0");
  kilni_program_cover_barrier(w);
  w->epoch++;
}

// Of all lanes: those that have ended are not waited for.
void kilni_program_subgroup_barrier(kilni_program_lowering_t* w) {
  kilni_program_pin_text(w, "bar.warp.sync 0xffffffff");
  w->epoch++;
}

static kilni_program_value_t meet_at(kilni_program_lowering_t* w,
                                     kilni_program_value_t base,
                                     uint32_t offset) {
  return KILNI_BIN(
      ADD, base,
      kilni_program_const(w, kilni_program_value_type(w, base), offset));
}

kilni_program_value_t kilni_program_pointer(kilni_program_lowering_t* w,
                                            uint32_t number) {
  kilni_program_instruction_t instruction = {0};
  instruction.name = "ld.param.u64";
  instruction.form = KILNI_FORM_PARAM;
  instruction.count = 1;
  instruction.number = number;
  kilni_program_value_t out = kilni_program_pure_form(w, &instruction, T(U64));
  return kilni_program_pure(w, "cvta.to.global.u64", T(U64), out, 0, 0);
}

static kilni_program_value_t meet_read_word(kilni_program_lowering_t* w,
                                            const char* name,
                                            kilni_program_value_t address) {
  kilni_program_value_t operands[2] = {kilni_program_register(w, T(U64)),
                                       address};
  kilni_program_pin(w, name, KILNI_FORM_LOAD,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 2,
                    operands, 0, 0);
  return operands[0];
}

static void write_word(kilni_program_lowering_t* w, const char* name,
                       kilni_program_value_t address,
                       kilni_program_value_t value,
                       kilni_program_value_t guard) {
  kilni_program_value_t operands[2] = {address, value};
  // Known only where the block's one thread is its first one.
  if (guard != 0 && kilni_program_value_is_const(w, guard)) guard = 0;
  kilni_program_pin(w, name, KILNI_FORM_STORE, KILNI_INSTRUCTION_PINNED, 2,
                    operands, guard, 0);
}

static kilni_program_value_t meet_add_word(kilni_program_lowering_t* w,
                                           const char* name,
                                           kilni_program_value_t address,
                                           kilni_program_value_t value) {
  kilni_program_value_t operands[3] = {kilni_program_register(w, T(U64)),
                                       address, value};
  kilni_program_pin(w, name, KILNI_FORM_ATOM,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 3,
                    operands, 0, 0);
  return operands[0];
}

// Three counts of 64 bits: how often blocks came to a grid barrier, how many
// blocks have left for good, and how many barriers those had passed before.
// A barrier is passed for the g-th time when every block has come g times or
// has left: arrived + left * g - passed by those that left >= blocks * g. The
// last block to leave sets all three back to zero for the next launch.
enum { GRID_ARRIVED = 0, GRID_LEFT = 8, GRID_PASSED = 16 };

static kilni_program_value_t all_blocks(kilni_program_lowering_t* w) {
  kilni_program_value_t count =
      kilni_program_cast(w, T(U64), block_count(w, 0));
  for (uint32_t axis = 1; axis < 3; axis++) {
    kilni_program_value_t more =
        kilni_program_cast(w, T(U64), block_count(w, axis));
    count = KILNI_BIN(MUL, count, more);
  }
  return count;
}

static kilni_program_value_t is_leader(kilni_program_lowering_t* w) {
  return KILNI_BIN(EQ, kilni_program_local_index(w), kilni_program_u32(w, 0));
}

static void wait_for_grid(kilni_program_lowering_t* w,
                          kilni_program_value_t record) {
  kilni_program_pin_text(w, "fence.acq_rel.gpu");
  meet_add_word(w, "atom.release.gpu.global.add.u64",
                meet_at(w, record, GRID_ARRIVED),
                kilni_program_const(w, T(U64), 1));
  kilni_program_value_t passed = w->grid_passed;
  kilni_program_value_t wanted =
      kilni_program_fresh(w, "mul.lo.u64", T(U64), passed, all_blocks(w));
  uint32_t again = kilni_program_label(w), done = kilni_program_label(w);
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  kilni_program_place_label(w, again);
  // Who has left is read before how many barriers those had passed, which is
  // written first: what is read can only be too little.
  const char* load = "ld.acquire.gpu.global.u64";
  kilni_program_value_t left =
      meet_read_word(w, load, meet_at(w, record, GRID_LEFT));
  kilni_program_value_t before =
      meet_read_word(w, load, meet_at(w, record, GRID_PASSED));
  kilni_program_value_t arrived =
      meet_read_word(w, load, meet_at(w, record, GRID_ARRIVED));
  kilni_program_value_t have =
      kilni_program_fresh(w, "mul.lo.u64", T(U64), left, passed);
  have = kilni_program_fresh(w, "add.u64", T(U64), have, arrived);
  kilni_program_value_t need =
      kilni_program_fresh(w, "add.u64", T(U64), wanted, before);
  kilni_program_branch(
      w, done, kilni_program_fresh(w, "setp.ge.u64", T(BOOL), have, need));
  kilni_program_branch(w, again, 0);
  kilni_program_region_end(w);
  kilni_program_place_label(w, done);
}

void kilni_program_grid_barrier(kilni_program_lowering_t* w) {
  if (w->keeps_live) {
    // A block whose threads have all returned leaves.
    kilni_program_value_t operands[2] = {kilni_program_u32(w, 0), w->live};
    kilni_program_value_t any =
        kilni_program_pin_value(w, "bar.red.or.pred", T(BOOL), 2, operands, 0);
    kilni_program_branch(w, w->end, any | KILNI_NOT);
  } else {
    kilni_program_pin_text(w, "bar.sync 0");
  }
  kilni_program_value_t next = kilni_program_fresh(
      w, "add.u64", T(U64), w->grid_passed, kilni_program_const(w, T(U64), 1));
  kilni_program_move(w, w->grid_passed, next);
  kilni_program_value_t record =
      kilni_program_pointer(w, w->grid_parameter - 1);
  uint32_t skip = kilni_program_label(w);
  kilni_program_branch(w, skip, is_leader(w) | KILNI_NOT);
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  wait_for_grid(w, record);
  kilni_program_region_end(w);
  kilni_program_place_label(w, skip);
  kilni_program_pin_text(w, "bar.sync 0");
  w->epoch++;
}

// What a leaving block needs is there on each way to where it leaves: a value
// that is first met behind a jump to it would not be. What is made of these, it
// makes itself, whoever else has made it in between.
void kilni_program_grid_begin(kilni_program_lowering_t* w) {
  (void)is_leader(w);
  (void)kilni_program_pointer(w, w->grid_parameter - 1);
  (void)all_blocks(w);
}

void kilni_program_grid_leave(kilni_program_lowering_t* w) {
  static const char add[] = "add.u64";
  uint32_t skip = kilni_program_label(w);
  kilni_program_value_t leader = is_leader(w), all = all_blocks(w);
  kilni_program_value_t words[3] = {
      kilni_program_pointer(w, w->grid_parameter - 1)};
  kilni_program_branch(w, skip, leader | KILNI_NOT);
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  for (uint32_t k = 1; k < 3; k++) {
    words[k] = kilni_program_fresh(w, add, T(U64), words[0],
                                   kilni_program_const(w, T(U64), 8 * k));
  }
  meet_add_word(w, "atom.relaxed.gpu.global.add.u64", words[GRID_PASSED / 8],
                w->grid_passed);
  kilni_program_value_t one = kilni_program_const(w, T(U64), 1);
  kilni_program_value_t before = meet_add_word(
      w, "atom.acq_rel.gpu.global.add.u64", words[GRID_LEFT / 8], one);
  kilni_program_value_t last = kilni_program_fresh(w, add, T(U64), before, one);
  last = kilni_program_fresh(w, "setp.eq.u64", T(BOOL), last, all);
  for (uint32_t k = 0; k < 3; k++) {
    write_word(w, "st.global.u64", words[k], kilni_program_const(w, T(U64), 0),
               last);
  }
  kilni_program_region_end(w);
  kilni_program_place_label(w, skip);
}

// ---- Copies by the block ----

typedef struct copy_t {
  kilni_dispatch_place_t* to;
  kilni_dispatch_place_t* from;
  kilni_program_value_t to_index, from_index,
      count;  // u64; the count as an i64
} copy_t;

static bool meet_is_uniform(const kilni_program_lowering_t* w,
                            kilni_program_value_t x) {
  return (kilni_program_value_of(w, x)->flags & KILNI_VALUE_UNIFORM) != 0;
}

// What those threads say that have not returned, for all; a count of 0 where
// there are none.
static void tell_all(kilni_program_lowering_t* w, copy_t* copy) {
  kilni_program_value_t base = kilni_program_shared_address(w, w->tell_offset);
  kilni_program_pin_text(w, "bar.sync 0");
  write_word(w, "st.shared.u64", meet_at(w, base, 16),
             kilni_program_const(w, T(U64), 0), is_leader(w));
  kilni_program_pin_text(w, "bar.sync 0");
  kilni_program_value_t* fields[3] = {&copy->to_index, &copy->from_index,
                                      &copy->count};
  for (uint32_t i = 0; i < 3; i++) {
    write_word(w, "st.shared.u64", meet_at(w, base, 8 * i), *fields[i],
               w->live);
  }
  kilni_program_pin_text(w, "bar.sync 0");
  for (uint32_t i = 0; i < 3; i++) {
    *fields[i] = meet_read_word(w, "ld.shared.u64", meet_at(w, base, 8 * i));
  }
}

static void copy_one(kilni_program_lowering_t* w, const copy_t* copy,
                     kilni_program_value_t i) {
  static const char* const kLoads[2][4] = {
      {"ld.global.u8", "ld.global.u16", "ld.global.u32", "ld.global.u64"},
      {"ld.shared.u8", "ld.shared.u16", "ld.shared.u32", "ld.shared.u64"}};
  static const char* const kStores[2][4] = {
      {"st.global.u8", "st.global.u16", "st.global.u32", "st.global.u64"},
      {"st.shared.u8", "st.shared.u16", "st.shared.u32", "st.shared.u64"}};
  uint32_t bytes = kilni_program_type_bytes(copy->to->type);
  uint32_t column = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  bool to_shared = copy->to->role == KILN_PROGRAM_ROLE_SHARED;
  bool from_shared = copy->from->role == KILN_PROGRAM_ROLE_SHARED;
  kilni_program_value_t to_index = KILNI_BIN(ADD, copy->to_index, i);
  kilni_program_value_t from_index = KILNI_BIN(ADD, copy->from_index, i);
  kilni_program_value_t to = kilni_program_address(w, copy->to, to_index);
  kilni_program_value_t from = kilni_program_address(w, copy->from, from_index);
  kilni_program_value_t to_in = kilni_program_in_range(w, copy->to, to_index);
  kilni_program_value_t from_in =
      kilni_program_in_range(w, copy->from, from_index);
  bool wide = bytes == 8;
  uint8_t type = wide ? T(U64) : T(U32);
  if (to_shared && !from_shared && w->sm >= 80 && bytes >= 4) {
    if (w->need_sm < 80) w->need_sm = 80;
    if (w->need_isa < 70) w->need_isa = 70;
    kilni_program_value_t both =
        kilni_program_fresh(w, "and.pred", T(BOOL), to_in, from_in);
    kilni_program_value_t operands[2] = {to, from};
    kilni_program_pin(w, "cp.async.ca.shared.global", KILNI_FORM_COPY,
                      KILNI_INSTRUCTION_PINNED, 2, operands, both, bytes);
    kilni_program_value_t outside =
        kilni_program_unary(w, KILN_PROGRAM_UNARY_NOT, from_in);
    outside = kilni_program_fresh(w, "and.pred", T(BOOL), to_in, outside);
    write_word(w, kStores[1][column], to, kilni_program_const(w, type, 0),
               outside);
    return;
  }
  kilni_program_value_t operands[2] = {kilni_program_register(w, type), from};
  kilni_program_pin(w, kLoads[from_shared][column], KILNI_FORM_LOAD,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED |
                        KILNI_INSTRUCTION_ZERO,
                    2, operands, from_in, 0);
  write_word(w, kStores[to_shared][column], to, operands[0], to_in);
}

// No more elements than there are from `to_index` to the end of the buffer, as
// signed numbers: a count that is negative, or far too large, ends.
static kilni_program_value_t limited_count(kilni_program_lowering_t* w,
                                           const copy_t* copy) {
  kilni_program_value_t space = kilni_program_length(w, copy->to, T(U64));
  space = KILNI_BIN(SUB, space, copy->to_index);
  return KILNI_BIN(MIN, kilni_program_retype(w, T(I64), copy->count),
                   kilni_program_retype(w, T(I64), space));
}

void kilni_program_async_copy(
    kilni_program_lowering_t* w,
    const kilni_program_statement_record_t* statement) {
  copy_t copy;
  copy.to = kilni_program_place(w, statement->a & 0xffff);
  copy.from = kilni_program_place(w, statement->a >> 16);
  kilni_program_cover_load(w, copy.from, 0);
  copy.to_index = kilni_program_index64(w, kilni_program_expr(w, statement->b));
  copy.from_index =
      kilni_program_index64(w, kilni_program_expr(w, statement->c));
  copy.count = kilni_program_index64(w, kilni_program_expr(w, statement->d));
  bool uniform = meet_is_uniform(w, copy.to_index) &&
                 meet_is_uniform(w, copy.from_index) &&
                 meet_is_uniform(w, copy.count);
  if (w->keeps_live && !uniform) tell_all(w, &copy);
  if (w->keeps_live && uniform) {
    // Nobody copies where all have returned.
    kilni_program_value_t operands[2] = {kilni_program_u32(w, 0), w->live};
    kilni_program_value_t any =
        kilni_program_pin_value(w, "bar.red.or.pred", T(BOOL), 2, operands, 0);
    copy.count = kilni_program_select(w, any, copy.count,
                                      kilni_program_const(w, T(U64), 0));
  }
  kilni_program_value_t count = limited_count(w, &copy);
  // No range here: facts are of threads that have not returned.
  uint32_t again = kilni_program_label(w), done = kilni_program_label(w),
           outer = w->region;
  kilni_program_value_t first =
      kilni_program_cast(w, T(U64), kilni_program_local_index(w));
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  kilni_program_value_t i = kilni_program_register(w, T(U64));
  uint32_t inner = w->region;
  w->region = outer;
  kilni_program_move(w, i, first);
  w->region = inner;
  kilni_program_place_label(w, again);
  kilni_program_branch(
      w, done, kilni_program_fresh(w, "setp.ge.s64", T(BOOL), i, count));
  uint32_t off = w->off;
  w->off |= KILN_PROGRAM_WITHOUT_RANGES;
  copy_one(w, &copy, i);
  w->off = off;
  kilni_program_value_t step = kilni_program_const(w, T(U64), w->threads);
  kilni_program_move(w, i, kilni_program_fresh(w, "add.u64", T(U64), i, step));
  kilni_program_branch(w, again, 0);
  kilni_program_region_end(w);
  kilni_program_place_label(w, done);
  // Counted, whether or not it copies: all threads come here.
  if (w->copy_groups && kilni_program_copy_is_group(w, statement)) {
    if (w->need_sm < 80) w->need_sm = 80;
    if (w->need_isa < 70) w->need_isa = 70;
    kilni_program_pin_text(w, "cp.async.commit_group");
  }
  w->epoch++;
}

void kilni_program_async_wait(kilni_program_lowering_t* w, uint32_t statement) {
  const char* wait = kilni_program_copies_wait(w, statement);
  if (wait != NULL) {
    if (w->need_sm < 80) w->need_sm = 80;
    if (w->need_isa < 70) w->need_isa = 70;
    kilni_program_pin_text(w, wait);
  }
  kilni_program_barrier(w);
}

// ---- Traps ----

// The record: u32 set, u32 tag, u64 address, u32 block[3], u32 thread[3].
void kilni_program_trap(kilni_program_lowering_t* w, kilni_program_value_t tag,
                        kilni_program_value_t address) {
  kilni_program_value_t record =
      kilni_program_pointer(w, w->trap_parameter - 1);
  kilni_program_value_t operands[4] = {kilni_program_register(w, T(U32)),
                                       record, kilni_program_u32(w, 0),
                                       kilni_program_u32(w, 1)};
  kilni_program_pin(w, "atom.relaxed.sys.global.cas.b32", KILNI_FORM_ATOM,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 4,
                    operands, 0, 0);
  kilni_program_value_t first = kilni_program_fresh(
      w, "setp.eq.u32", T(BOOL), operands[0], kilni_program_u32(w, 0));
  write_word(w, "st.global.u32", meet_at(w, record, 4), tag, first);
  write_word(w, "st.global.u64", meet_at(w, record, 8), address, first);
  for (uint32_t axis = 0; axis < 3; axis++) {
    write_word(w, "st.global.u32", meet_at(w, record, 16 + 4 * axis),
               block_id(w, axis), first);
    write_word(w, "st.global.u32", meet_at(w, record, 28 + 4 * axis),
               local_id(w, axis), first);
  }
  if (w->rounds.flag != 0) {
    kilni_program_move(w, w->rounds.trapped, kilni_program_bool(w, true));
  }
  kilni_program_return(w);
}
