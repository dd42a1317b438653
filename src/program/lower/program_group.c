// SPDX-License-Identifier: Apache-2.0
//
// program: accesses of consecutive elements, one behind the other, as one of a
// vector.
//
// When a run of loads or stores of x[i], x[i + 1], ... is as long as a vector,
// they are taken back and written again where the last one stands: as a vector
// where the buffer's address and i are multiples of it and all elements are to
// be accessed, and one by one, behind a branch, elsewhere. The test is the
// thread's own, so nothing is asked of who binds a buffer; where i is a
// multiple by the way it is made (4 * j), only the buffer's address is tested,
// for all alike, and the last element: with it all of the vector are there.
//
// Both ways write the same registers, and the branch keeps them apart: loads
// that are behind each other in one line would wait for each other.
//
// Bytes come as words, of which each byte is a field; kilni_program_group_join
// finds words that are put together of these again. Four bytes are a word,
// which grows to two and four as more come behind it.
//
// Two of 4 bytes are a vector of 8 where that costs no test: in the version for
// buffers whose addresses are multiples of it, with an index that is one by the
// way it is made, and for both alike. It grows to four as bytes do.
//
// In shared memory, whose arrays begin at multiples of a vector, this is done
// only where i is a multiple by the way it is made.
//
// Loads are moved from buffers that nobody writes, and, as stores are, over
// what has no effect. What is only computed from what was loaded is moved
// behind the vector with it (a conversion of f16, a sum); nothing else may use
// it before.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum {
  VECTOR_BYTES = 16,
  PAIR_BYTES = 8,
  MOST_LANES = 4,
  MOST_BETWEEN = 512,
  MOST_FOLLOWERS = 64,
};

// What is added to what: index = root + offset.
typedef struct sum_t {
  kilni_program_value_t root;
  uint32_t offset;
} sum_t;

static sum_t group_sum_of(const kilni_program_lowering_t* w,
                          kilni_program_value_t index) {
  sum_t sum = {index, 0};
  const kilni_program_instruction_t* i = kilni_program_define_of(w, index);
  if (i != NULL && i->count == 3 && strcmp(i->name, "add.u32") == 0 &&
      kilni_program_value_is_const(w, i->operand[2])) {
    sum.root = i->operand[1];
    sum.offset = (uint32_t)kilni_program_value_of(w, i->operand[2])->bits;
  }
  return sum;
}

// Whether a fact says that `value` is below `length` - `less`, and another one
// that this is no negative number.
static bool is_less_by(const kilni_program_lowering_t* w,
                       kilni_program_value_t value,
                       kilni_program_value_t length, uint64_t less) {
  bool below = false, enough = false;
  for (uint32_t k = 0; k < w->facts.count; k++) {
    const kilni_program_fact_t* fact = &w->facts.items[k];
    if (fact->b == length && kilni_program_value_is_const(w, fact->a)) {
      enough |= kilni_program_value_of(w, fact->a)->bits + 1 >= less;
    }
    const kilni_program_instruction_t* i = kilni_program_define_of(w, fact->b);
    if (fact->a == value && i != NULL && i->count == 3 &&
        strcmp(i->name, "sub.u32") == 0 && i->operand[1] == length &&
        kilni_program_value_is_const(w, i->operand[2])) {
      below |= kilni_program_value_of(w, i->operand[2])->bits == less;
    }
  }
  return below && enough;
}

bool kilni_program_group_below(const kilni_program_lowering_t* w,
                               kilni_program_value_t index,
                               kilni_program_value_t length,
                               kilni_program_value_t* out_root,
                               uint32_t* out_offset) {
  kilni_program_value_t root = index;
  uint64_t offset = 0;
  for (uint32_t depth = 0; depth < 4; depth++) {
    for (uint32_t k = 0; k < w->facts.count; k++) {
      const kilni_program_instruction_t* i =
          kilni_program_define_of(w, w->facts.items[k].b);
      if (w->facts.items[k].a != root || i == NULL || i->count != 3 ||
          !kilni_program_value_is_const(w, i->operand[2])) {
        continue;
      }
      uint64_t less = kilni_program_value_of(w, i->operand[2])->bits;
      if (offset > less || !is_less_by(w, root, length, less)) continue;
      *out_root = root;
      *out_offset = (uint32_t)offset;
      return true;
    }
    sum_t sum = group_sum_of(w, root);
    if (sum.root == root) return false;
    offset += sum.offset;
    root = sum.root;
  }
  return false;
}

// How many of its lowest bits are 0, by the way it is made.
static uint32_t zeros_of(const kilni_program_lowering_t* w,
                         kilni_program_value_t value, uint32_t depth) {
  if (kilni_program_value_is_const(w, value)) {
    uint64_t bits = kilni_program_value_of(w, value)->bits;
    uint32_t zeros = 0;
    while (zeros < 8 && (bits >> zeros & 1) == 0) zeros++;
    return zeros;
  }
  const kilni_program_instruction_t* i = kilni_program_define_of(w, value);
  if (i == NULL || i->count != 3 || depth > 6) return 0;
  uint32_t a = zeros_of(w, i->operand[1], depth + 1);
  if (strcmp(i->name, "shl.b32") == 0) {
    if (!kilni_program_value_is_const(w, i->operand[2])) return a;
    return a + (uint32_t)kilni_program_value_of(w, i->operand[2])->bits;
  }
  uint32_t b = zeros_of(w, i->operand[2], depth + 1);
  if (strcmp(i->name, "add.u32") == 0 || strcmp(i->name, "sub.u32") == 0) {
    return a < b ? a : b;
  }
  return strcmp(i->name, "mul.lo.u32") == 0 ? a + b : 0;
}

static bool may_group(const kilni_program_lowering_t* w,
                      const kilni_dispatch_place_t* place,
                      kilni_program_value_t index) {
  const uint32_t off =
      KILN_PROGRAM_WITHOUT_VECTORS | KILN_PROGRAM_WITHOUT_READ_ONLY;
  return (w->off & off) == 0 && w->version != KILNI_VERSION_APART &&
         place->role != KILN_PROGRAM_ROLE_PRIVATE &&
         kilni_program_value_type(w, index) == T(U32) &&
         !kilni_program_value_is_const(w, index) && w->ir == w->program;
}

static bool group_is_shared(const kilni_dispatch_place_t* place) {
  return place->role == KILN_PROGRAM_ROLE_SHARED;
}

static bool group_is_packed(const kilni_dispatch_place_t* place) {
  return place->type == T(U8);
}

// Whether the group's first element is at a multiple of a vector by the way its
// index is made.
static bool is_multiple(const kilni_program_lowering_t* w,
                        const kilni_program_group_t* group) {
  return 1U << zeros_of(w, group->index, 0) >= group->count;
}

// How many elements are a vector.
static uint32_t lanes_of(const kilni_dispatch_place_t* place) {
  uint32_t lanes = VECTOR_BYTES / kilni_program_type_bytes(place->type);
  return lanes > MOST_LANES ? MOST_LANES : lanes;
}

// Whether two elements that have come together are accessed at once; if only
// their buffer's address is not known to be a multiple of them, that is asked
// for.
static bool group_is_pair(kilni_program_lowering_t* w,
                          const kilni_program_group_t* group) {
  const kilni_dispatch_place_t* place = group->place;
  const kilni_program_instruction_t* all = w->instructions.items;
  const uint32_t* at = group->instructions;
  if (group->count != 2 ||
      kilni_program_type_bytes(place->type) * 2 != PAIR_BYTES ||
      !is_multiple(w, group) || all[at[0]].guard != all[at[1]].guard) {
    return false;
  }
  if (group_is_shared(place)) return true;
  uint32_t* wanted = &w->grouped[place->same];
  if (*wanted < PAIR_BYTES && w->may_have_versions) *wanted = PAIR_BYTES;
  return place->grouped >= PAIR_BYTES;
}

// Whether those of a run that have come together are accessed at once, or more
// have to come.
static bool is_ready(kilni_program_lowering_t* w,
                     const kilni_program_group_t* group, bool loads) {
  uint32_t count = group->count;
  if (loads && group_is_packed(group->place)) {
    return count == 4 || count == 8 || count == 16;
  }
  return count == lanes_of(group->place) || group_is_pair(w, group);
}

// Whether a pair may become four: if not, the next one is a pair of its own.
static bool may_grow(const kilni_program_lowering_t* w,
                     const kilni_program_group_t* group) {
  return group->count < lanes_of(group->place) &&
         zeros_of(w, group->index, 0) > 1;
}

// The run that the instruction `at` belongs to, as its last or its first one.
static void group_take(kilni_program_lowering_t* w,
                       kilni_program_group_t* group,
                       const kilni_dispatch_place_t* place,
                       kilni_program_value_t index,
                       kilni_program_value_t predicate, uint32_t at) {
  sum_t sum = group_sum_of(w, index);
  bool next =
      group->count != 0 && group->count < KILNI_GROUP_MOST &&
      group->place == place && group->region == w->region &&
      at - group->instructions[0] < MOST_BETWEEN &&
      ((sum.root == group->index && sum.offset == group->count) ||
       (sum.root == group->root && sum.offset == group->offset + group->count));
  if (!next) {
    group->count = group->taken = 0;
    group->place = place;
    group->region = w->region;
    group->predicate = predicate;
    group->alike = true;
    group->index = index;
    group->root = sum.root;
    group->offset = sum.offset;
    group->begin = group->end = 0;
  }
  if (group->predicate != predicate) group->alike = false;
  group->instructions[group->count++] = at;
}

static bool group_is_own(const kilni_program_group_t* group, uint32_t at) {
  if (at >= group->begin && at < group->end) return true;
  for (uint32_t k = 0; k < group->count; k++) {
    if (group->instructions[k] == at) return true;
  }
  return false;
}

// The value that the group's access `lane` loads.
static kilni_program_value_t loaded(const kilni_program_lowering_t* w,
                                    const kilni_program_group_t* group,
                                    uint32_t lane) {
  if (lane < group->taken) return group->old[lane].operand[0];
  return w->instructions.items[group->instructions[lane]].operand[0];
}

// What is computed from what a run loads, before all of it is there.
typedef struct followers_t {
  uint32_t count;
  uint32_t at[MOST_FOLLOWERS];
} followers_t;

static bool uses(const kilni_program_lowering_t* w,
                 const kilni_program_instruction_t* i,
                 kilni_program_value_t value) {
  if ((i->guard & ~(uint32_t)KILNI_NOT) == value) return true;
  for (uint32_t k = 0; k < i->count; k++) {
    if (i->operand[k] == value) return true;
  }
  if (i->form != KILNI_FORM_MATRIX) return false;
  const kilni_program_value_t* all = kilni_program_wide_of(w, i);
  for (uint32_t k = 0; k < KILNI_WIDE_OPERANDS; k++) {
    if (all[k] == value) return true;
  }
  return false;
}

static bool is_after(const kilni_program_lowering_t* w,
                     const kilni_program_group_t* group,
                     const followers_t* followers,
                     const kilni_program_instruction_t* i) {
  for (uint32_t lane = 0; lane < group->count; lane++) {
    if (uses(w, i, loaded(w, group, lane))) return true;
  }
  for (uint32_t k = 0; k < followers->count; k++) {
    const kilni_program_instruction_t* f =
        &w->instructions.items[followers->at[k]];
    if (uses(w, i, f->operand[0])) return true;
  }
  return false;
}

// Whether it may be written later on: it computes something for the region of
// the run, and nobody writes that again.
static bool may_follow(const kilni_program_lowering_t* w,
                       const kilni_program_group_t* group,
                       const kilni_program_instruction_t* i) {
  if (i->form != KILNI_FORM_PLAIN || i->flags != KILNI_INSTRUCTION_DEFINES ||
      i->define != 0) {
    return false;
  }
  const kilni_program_value_record_t* value =
      kilni_program_value_of(w, i->operand[0]);
  return value->region == group->region &&
         (value->flags & KILNI_VALUE_MOVED) == 0;
}

// Nothing is asked of shared memory at run time.
static bool group_is_simple(const kilni_program_lowering_t* w,
                            const kilni_program_group_t* group) {
  for (uint32_t k = group->taken; k < group->count; k++) {
    if (w->instructions.items[group->instructions[k]].guard != 0) return false;
  }
  return is_multiple(w, group);
}

// Whether loads can be moved to where the last one stands: what uses them
// before can follow, or there is no such thing.
static bool may_move_loads(const kilni_program_lowering_t* w,
                           const kilni_program_group_t* group,
                           followers_t* out) {
  bool pinned = false, shared = group_is_shared(group->place);
  out->count = 0;
  if (shared && !group_is_simple(w, group)) return false;
  for (uint32_t at = group->instructions[0] + 1; at < w->instructions.count;
       at++) {
    const kilni_program_instruction_t* i = &w->instructions.items[at];
    if (group_is_own(group, at) || i->form == KILNI_FORM_NONE) continue;
    pinned |= (i->flags & KILNI_INSTRUCTION_PINNED) != 0;
    if (!is_after(w, group, out, i)) continue;
    // A word that bytes were put together to is one no more.
    if (group_is_packed(group->place) || !may_follow(w, group, i) ||
        out->count == MOST_FOLLOWERS) {
      return false;
    }
    out->at[out->count++] = at;
  }
  // Nothing follows over what may jump.
  return !pinned || (out->count == 0 && !shared);
}

// Whether nothing that has an effect stands between the stores of a run.
static bool may_move_stores(const kilni_program_lowering_t* w,
                            const kilni_program_group_t* group) {
  if (group_is_shared(group->place) && !group_is_simple(w, group)) return false;
  for (uint32_t at = group->instructions[0] + 1; at < w->instructions.count;
       at++) {
    const kilni_program_instruction_t* i = &w->instructions.items[at];
    if (group_is_own(group, at)) continue;
    if ((i->flags & KILNI_INSTRUCTION_PINNED) != 0) return false;
  }
  return true;
}

static void group_drop(kilni_program_lowering_t* w, uint32_t at) {
  kilni_program_instruction_t* i = &w->instructions.items[at];
  i->form = KILNI_FORM_NONE;
  i->flags = 0;
  i->count = 0;
  i->guard = 0;
}

// Takes the accesses out, and what was written for some of them before; they
// are written again.
static void group_take_out(kilni_program_lowering_t* w,
                           kilni_program_group_t* group) {
  for (uint32_t at = group->begin; at < group->end; at++) {
    if (w->instructions.items[at].flags != 0) group_drop(w, at);
  }
  for (uint32_t k = group->taken; k < group->count; k++) {
    group->old[k] = w->instructions.items[group->instructions[k]];
    group_drop(w, group->instructions[k]);
  }
  group->taken = group->count;
}

// Writes what follows the loads again, behind them.
static void group_follow(kilni_program_lowering_t* w,
                         const followers_t* followers) {
  for (uint32_t k = 0; k < followers->count; k++) {
    kilni_program_instruction_t i = w->instructions.items[followers->at[k]];
    group_drop(w, followers->at[k]);
    w->values.items[i.operand[0]].define = 0;
    kilni_program_pin(w, i.name, i.form, i.flags, i.count, i.operand, i.guard,
                      i.number);
  }
}

// Where the accesses are done in which way.
typedef struct ways_t {
  kilni_program_value_t whole;  // as a vector; 0: always
  kilni_program_value_t apart;  // one by one; else not at all; 0: never
  bool follows;  // each address is the one before and an element more
  bool both;     // all are done in one of the two
} ways_t;

kilni_program_value_t kilni_program_group_aligned(
    kilni_program_lowering_t* w, const kilni_dispatch_place_t* place,
    uint32_t bytes) {
  kilni_program_value_t low =
      KILNI_BIN(BIT_AND, kilni_program_base(w, place),
                kilni_program_const(w, T(U64), bytes - 1));
  return KILNI_BIN(EQ, low, kilni_program_const(w, T(U64), 0));
}

static bool same_guards(const kilni_program_group_t* group) {
  for (uint32_t k = 1; k < group->count; k++) {
    if (group->old[k].guard != group->old[0].guard) return false;
  }
  return true;
}

static ways_t ways_of(kilni_program_lowering_t* w,
                      const kilni_program_group_t* group) {
  uint32_t lanes = group->count;
  uint32_t bytes = lanes * kilni_program_type_bytes(group->place->type);
  kilni_program_value_t low, whole = kilni_program_bool(w, true);
  if (!group_is_shared(group->place) && group->place->grouped < bytes) {
    whole = kilni_program_group_aligned(w, group->place, bytes);
  }
  // Some element is there: the first, if the last is none of those in front of
  // it.
  kilni_program_value_t some = group->old[0].guard;
  bool follows = is_multiple(w, group);
  if (follows && !group_is_shared(group->place)) {
    uint32_t* wanted = &w->grouped[group->place->same];
    if (*wanted < bytes) *wanted = bytes;
  } else if (!follows) {
    low = KILNI_BIN(BIT_AND, group->index, kilni_program_u32(w, lanes - 1));
    whole = KILNI_BIN(AND, whole, KILNI_BIN(EQ, low, kilni_program_u32(w, 0)));
    some = group->predicate;
  }
  // All elements are there if the last is, where nothing else is asked.
  if (!group->alike) some = 0;
  if (kilni_program_value_is(w, whole, 1) && same_guards(group)) {
    // All of them or none: there is no other way.
    ways_t all = {group->old[0].guard, 0, follows, false};
    return all;
  }
  for (uint32_t k = group->alike ? lanes - 1 : 0; k < lanes; k++) {
    kilni_program_value_t guard = group->old[k].guard;
    if (guard != 0) whole = KILNI_BIN(AND, whole, guard);
  }
  ways_t ways = {whole, kilni_program_unary(w, KILN_PROGRAM_UNARY_NOT, whole),
                 follows, some == 0};
  if (some != 0) ways.apart = KILNI_BIN(AND, some, ways.apart);
  // A guard is no constant.
  if (kilni_program_value_is(w, whole, 1)) ways.whole = ways.apart = 0;
  return ways;
}

// The address of one element, where the way for one by one has begun: there it
// costs those nothing that do not go it.
static kilni_program_value_t group_address_of(
    kilni_program_lowering_t* w, const kilni_program_group_t* group,
    const ways_t* ways, uint32_t operand, uint32_t k) {
  kilni_program_value_t first = group->old[0].operand[operand];
  if (k == 0 || !ways->follows) return group->old[k].operand[operand];
  uint64_t bytes = (uint64_t)k * kilni_program_type_bytes(group->place->type);
  bool shared = group_is_shared(group->place);
  uint8_t type = shared ? T(U32) : T(U64);
  return kilni_program_fresh(w, shared ? "add.u32" : "add.u64", type, first,
                             kilni_program_const(w, type, bytes));
}

// ---- Loads ----

// Where there is a third way, nothing is loaded there, which reads as 0.
static uint8_t load_flags(bool zero) {
  return zero ? KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_ZERO
              : KILNI_INSTRUCTION_DEFINES;
}

// Each to its own register.
static void group_load_lanes(kilni_program_lowering_t* w,
                             kilni_program_group_t* group) {
  uint32_t lanes = group->count;
  ways_t ways = ways_of(w, group);
  kilni_program_value_t vector[KILNI_OPERANDS_MAX];
  uint32_t end = kilni_program_label(w);
  // What was written before may be used by others.
  group->begin = w->instructions.count;
  for (uint32_t k = 0; k < lanes; k++) vector[k] = group->old[k].operand[0];
  vector[lanes] = group->old[0].operand[1];
  kilni_program_pin(w, kilni_program_vector_load_name(w, group->place, lanes),
                    KILNI_FORM_LOAD_VECTOR,
                    load_flags(!ways.both && ways.whole != 0),
                    (uint8_t)(lanes + 1), vector, ways.whole, 0);
  if (ways.apart == 0) return;
  kilni_program_branch(w, end, ways.apart | KILNI_NOT);
  for (uint32_t k = 0; k < lanes; k++) {
    const kilni_program_instruction_t* old = &group->old[k];
    kilni_program_value_t operands[2] = {
        old->operand[0], group_address_of(w, group, &ways, 1, k)};
    kilni_program_pin(w, old->name, KILNI_FORM_LOAD,
                      load_flags(ways.both && old->guard != 0), 2, operands,
                      old->guard, old->number);
  }
  kilni_program_place_label(w, end);
}

// One byte of a word that is put together.
static void load_byte(kilni_program_lowering_t* w,
                      const kilni_program_instruction_t* old,
                      kilni_program_value_t address, kilni_program_value_t word,
                      uint32_t at) {
  kilni_program_value_t byte[2] = {kilni_program_register(w, T(U32)), address};
  kilni_program_pin(w, old->name, KILNI_FORM_LOAD, load_flags(old->guard != 0),
                    2, byte, old->guard, old->number);
  if (at == 0) {
    kilni_program_move(w, word, byte[0]);
    return;
  }
  kilni_program_value_t all[3] = {
      word, word,
      kilni_program_fresh(w, "shl.b32", T(U32), byte[0],
                          kilni_program_u32(w, 8 * at))};
  kilni_program_pin(w, "or.b32", KILNI_FORM_PLAIN, KILNI_INSTRUCTION_DEFINES, 3,
                    all, 0, 0);
}

static void load_words(kilni_program_lowering_t* w,
                       kilni_program_group_t* group) {
  uint32_t lanes = group->count, count = lanes / 4;
  ways_t ways = ways_of(w, group);
  kilni_program_value_t vector[KILNI_OPERANDS_MAX];
  uint32_t end = kilni_program_label(w);
  for (uint32_t k = 0; k < count; k++) {
    vector[k] = kilni_program_register(w, T(U32));
  }
  // What was written before may be used by others.
  group->begin = w->instructions.count;
  vector[count] = group->old[0].operand[1];
  kilni_program_pin(w, kilni_program_word_load_name(w, group->place, count),
                    count == 1 ? KILNI_FORM_LOAD : KILNI_FORM_LOAD_VECTOR,
                    load_flags(!ways.both && ways.whole != 0),
                    (uint8_t)(count + 1), vector, ways.whole, 0);
  if (ways.apart != 0) {
    kilni_program_branch(w, end, ways.apart | KILNI_NOT);
    for (uint32_t k = 0; k < lanes; k++) {
      load_byte(w, &group->old[k], group_address_of(w, group, &ways, 1, k),
                vector[k / 4], k % 4);
    }
    kilni_program_place_label(w, end);
  }
  for (uint32_t k = 0; k < lanes; k++) {
    kilni_program_value_t field[4] = {group->old[k].operand[0], vector[k / 4],
                                      kilni_program_u32(w, k % 4 * 8),
                                      kilni_program_u32(w, 8)};
    kilni_program_pin(w, "bfe.u32", KILNI_FORM_PLAIN, KILNI_INSTRUCTION_DEFINES,
                      4, field, 0, 0);
  }
}

// A run that ends as a vector of more cannot be one: its last two are, perhaps,
// since those in front of them were.
static bool keep_last_pair(kilni_program_lowering_t* w,
                           kilni_program_group_t* group) {
  if (group->taken != 2 || group->count != 4) return false;
  group->instructions[0] = group->instructions[2];
  group->instructions[1] = group->instructions[3];
  group->count = 2;
  group->taken = 0;
  group->begin = group->end = 0;
  return group_is_pair(
      w, group);  // which grows no more: its index is another one's
}

void kilni_program_group_load(kilni_program_lowering_t* w,
                              kilni_dispatch_place_t* place,
                              kilni_program_value_t index, uint32_t at) {
  if (!may_group(w, place, index)) return;
  kilni_program_group_t* group = &w->loads;
  group_take(w, group, place, index, w->predicate, at);
  if (!is_ready(w, group, true)) return;
  followers_t followers;
  bool last = !may_move_loads(w, group, &followers);
  if (last &&
      (!keep_last_pair(w, group) || !may_move_loads(w, group, &followers))) {
    group->count = 0;
    return;
  }
  group_take_out(w, group);
  for (uint32_t k = 0; k < group->count; k++) {
    w->values.items[group->old[k].operand[0]].define = 0;
  }
  if (group_is_packed(place)) {
    load_words(w, group);
  } else {
    group_load_lanes(w, group);
  }
  group->end = w->instructions.count;
  group_follow(w, &followers);
  if (last || (!group_is_packed(place) && !may_grow(w, group))) {
    group->count = 0;
  }
}

// ---- Stores ----

static void store_apart(kilni_program_lowering_t* w,
                        const kilni_program_group_t* group,
                        const ways_t* ways) {
  uint32_t end = kilni_program_label(w);
  kilni_program_branch(w, end, ways->apart | KILNI_NOT);
  for (uint32_t k = 0; k < group->count; k++) {
    const kilni_program_instruction_t* old = &group->old[k];
    kilni_program_value_t single[2] = {group_address_of(w, group, ways, 0, k),
                                       old->operand[1]};
    kilni_program_pin(w, old->name, KILNI_FORM_STORE, KILNI_INSTRUCTION_PINNED,
                      2, single, old->guard, 0);
  }
  kilni_program_place_label(w, end);
}

static void group_store_lanes(kilni_program_lowering_t* w,
                              kilni_program_group_t* group) {
  uint32_t lanes = group->count;
  kilni_program_value_t operands[KILNI_OPERANDS_MAX];
  group_take_out(w, group);
  ways_t ways = ways_of(w, group);
  operands[0] = group->old[0].operand[0];
  for (uint32_t k = 0; k < lanes; k++) {
    kilni_program_value_t value = group->old[k].operand[1];
    if (kilni_program_value_is_const(w, value)) {
      value = kilni_program_in_register(w, value);
    }
    operands[k + 1] = value;
  }
  group->begin = w->instructions.count;
  kilni_program_pin(w, kilni_program_vector_store_name(group->place, lanes),
                    KILNI_FORM_STORE_VECTOR, KILNI_INSTRUCTION_PINNED,
                    (uint8_t)(lanes + 1), operands, ways.whole, 0);
  if (ways.apart != 0) store_apart(w, group, &ways);
  group->end = w->instructions.count;
}

void kilni_program_group_store(kilni_program_lowering_t* w,
                               kilni_dispatch_place_t* place,
                               kilni_program_value_t index,
                               kilni_program_value_t predicate, uint32_t at) {
  if (!may_group(w, place, index)) return;
  kilni_program_group_t* group = &w->stores;
  group_take(w, group, place, index, predicate, at);
  if (!is_ready(w, group, false)) return;
  bool last = !may_move_stores(w, group);
  if (last && (!keep_last_pair(w, group) || !may_move_stores(w, group))) {
    group->count = 0;
    return;
  }
  group_store_lanes(w, group);
  if (last || !may_grow(w, group)) group->count = 0;
}

void kilni_program_group_end(kilni_program_lowering_t* w,
                             const kilni_dispatch_place_t* place) {
  if (w->stores.place == place) w->stores.count = 0;
}

// ---- Words of bytes ----

// (word >> from & (2^bits - 1)) << shift
typedef struct field_t {
  kilni_program_value_t word;
  uint32_t from;
  uint32_t bits;
  uint32_t shift;
} field_t;

static bool const_operand(const kilni_program_lowering_t* w,
                          const kilni_program_instruction_t* i, uint32_t k,
                          uint32_t* out) {
  if (!kilni_program_value_is_const(w, i->operand[k])) return false;
  *out = (uint32_t)kilni_program_value_of(w, i->operand[k])->bits;
  return true;
}

static bool group_field_of(const kilni_program_lowering_t* w,
                           kilni_program_value_t value, field_t* out) {
  out->shift = 0;
  for (uint32_t depth = 0; depth < 4; depth++) {
    const kilni_program_instruction_t* i = kilni_program_define_of(w, value);
    uint32_t by = 0;
    if (i == NULL) return false;
    if (i->count == 2 && strcmp(i->name, "mov.b32") == 0) {
      value = i->operand[1];
    } else if (i->count == 3 && strcmp(i->name, "shl.b32") == 0 &&
               const_operand(w, i, 2, &by)) {
      out->shift += by;
      value = i->operand[1];
    } else {
      out->word = i->operand[1];
      return i->count == 4 && strcmp(i->name, "bfe.u32") == 0 &&
             const_operand(w, i, 2, &out->from) &&
             const_operand(w, i, 3, &out->bits) &&
             out->shift + out->bits <= 32 && out->from + out->bits <= 32;
    }
  }
  return false;
}

kilni_program_value_t kilni_program_group_join(kilni_program_lowering_t* w,
                                               kilni_program_value_t x,
                                               kilni_program_value_t y) {
  field_t low, high;
  if (!group_field_of(w, x, &low) || !group_field_of(w, y, &high)) return 0;
  if (low.shift > high.shift) {
    field_t swap = low;
    low = high, high = swap;
  }
  if (low.word != high.word || low.shift + low.bits != high.shift ||
      low.from + low.bits != high.from) {
    return 0;
  }
  uint32_t bits = low.bits + high.bits;
  if (bits == 32) return low.word;
  kilni_program_value_t out = kilni_program_pure(w, "bfe.u32", T(U32), low.word,
                                                 kilni_program_u32(w, low.from),
                                                 kilni_program_u32(w, bits));
  uint64_t most = (UINT64_C(1) << bits) - 1;
  if (w->values.items[out].most > most) w->values.items[out].most = most;
  if (low.shift == 0) return out;
  return KILNI_BIN(SHL, out, kilni_program_u32(w, low.shift));
}
