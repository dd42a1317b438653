// SPDX-License-Identifier: Apache-2.0
//
// program: atomics: the instruction where there is one that means the same,
// else an exchange of the aligned word that is tried until nothing came
// between.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME
#define A(NAME) KILN_PROGRAM_ATOMIC_##NAME

typedef struct atomic_t {
  kilni_dispatch_place_t* place;
  uint32_t op;
  uint32_t ordering;
  uint8_t type;
  bool shared;
  const char* scope;
  kilni_program_value_t index;
  kilni_program_value_t expected;
  kilni_program_value_t value;
  kilni_program_value_t address;
  kilni_program_value_t guard;  // 0: in range
} atomic_t;

// ---- Names ----

static const char* atomic_join(kilni_program_lowering_t* w,
                               const char* const* parts, uint32_t count) {
  size_t size = 1;
  for (uint32_t i = 0; i < count; i++) size += strlen(parts[i]);
  char* text = kilni_program_arena_get(&w->arena, size);
  if (text == NULL) return "";
  char* at = text;
  for (uint32_t i = 0; i < count; i++) {
    size_t length = strlen(parts[i]);
    memcpy(at, parts[i], length);
    at += length;
  }
  *at = 0;
  return text;
}

// head.ordering.scope.space.tail
static const char* atomic_name_of(kilni_program_lowering_t* w,
                                  const atomic_t* a, const char* head,
                                  const char* ordering, const char* tail) {
  const char* parts[] = {head, ordering, a->scope,
                         a->shared ? ".shared." : ".global.", tail};
  return atomic_join(w, parts, 5);
}

// Of a read and write; a load takes the half that acquires, a store the other.
static const char* ordering_of(const atomic_t* a) {
  bool load = a->op == A(LOAD), store = a->op == A(STORE);
  switch (a->ordering) {
    case KILN_PROGRAM_ORDERING_ACQUIRE:
      return store ? ".relaxed" : ".acquire";
    case KILN_PROGRAM_ORDERING_RELEASE:
      return load ? ".relaxed" : ".release";
    case KILN_PROGRAM_ORDERING_ACQ_REL:
    case KILN_PROGRAM_ORDERING_SEQ_CST:
      return load ? ".acquire" : store ? ".release" : ".acq_rel";
    default:
      return ".relaxed";
  }
}

static void fence(kilni_program_lowering_t* w, const atomic_t* a) {
  bool load = a->op == A(LOAD), store = a->op == A(STORE);
  bool half = (load && a->ordering == KILN_PROGRAM_ORDERING_RELEASE) ||
              (store && a->ordering == KILN_PROGRAM_ORDERING_ACQUIRE);
  const char* kind = NULL;
  if (a->ordering == KILN_PROGRAM_ORDERING_SEQ_CST) kind = "fence.sc";
  if (half) kind = "fence.acq_rel";
  if (kind == NULL) return;
  const char* parts[] = {kind, a->scope};
  kilni_program_pin_text(w, atomic_join(w, parts, 2));
}

// ---- What is computed ----

static kilni_program_value_t atomic_computed(kilni_program_lowering_t* w,
                                             const atomic_t* a,
                                             kilni_program_value_t old) {
  switch (a->op) {
    case A(ADD):
      return KILNI_BIN(ADD, old, a->value);
    case A(SUB):
      return KILNI_BIN(SUB, old, a->value);
    case A(MIN):
      return KILNI_BIN(MIN, old, a->value);
    case A(MAX):
      return KILNI_BIN(MAX, old, a->value);
    case A(AND):
      return KILNI_BIN(BIT_AND, old, a->value);
    case A(OR):
      return KILNI_BIN(BIT_OR, old, a->value);
    case A(XOR):
      return KILNI_BIN(BIT_XOR, old, a->value);
    case A(NAND):
      return kilni_program_unary(w, KILN_PROGRAM_UNARY_BIT_NOT,
                                 KILNI_BIN(BIT_AND, old, a->value));
    default:
      return a->value;
  }
}

// ---- One instruction ----

static const char* integer_tail(uint32_t op, uint8_t type) {
  static const char* const kTails[][4] = {
      [A(EXCHANGE)] = {"exch.b32", "exch.b32", "exch.b64", "exch.b64"},
      [A(COMPARE_EXCHANGE)] = {"cas.b32", "cas.b32", "cas.b64", "cas.b64"},
      [A(ADD)] = {"add.u32", "add.u32", "add.u64", "add.u64"},
      [A(SUB)] = {"add.u32", "add.u32", "add.u64", "add.u64"},
      [A(MIN)] = {"min.u32", "min.s32", "min.u64", "min.s64"},
      [A(MAX)] = {"max.u32", "max.s32", "max.u64", "max.s64"},
      [A(AND)] = {"and.b32", "and.b32", "and.b64", "and.b64"},
      [A(OR)] = {"or.b32", "or.b32", "or.b64", "or.b64"},
      [A(XOR)] = {"xor.b32", "xor.b32", "xor.b64", "xor.b64"},
  };
  if (op >= sizeof(kTails) / sizeof(kTails[0])) return NULL;
  uint32_t column = kilni_program_type_bytes(type) == 8 ? 2 : 0;
  if (kilni_program_type_class(type) == KILNI_CLASS_SIGNED) column++;
  return kTails[op][column];
}

// The tail of the instruction for an atomic; NULL where none means the same.
// atom.add.f32 in global memory flushes subnormals.
static const char* native_tail(const atomic_t* a) {
  if (kilni_program_type_bytes(a->type) < 4) return NULL;
  bool real = kilni_program_type_class(a->type) == KILNI_CLASS_FLOAT;
  if (!real) return integer_tail(a->op, a->type);
  bool bits = a->op == A(EXCHANGE) || a->op == A(COMPARE_EXCHANGE);
  if (bits) {
    return integer_tail(
        a->op, kilni_program_type_bytes(a->type) == 8 ? T(U64) : T(U32));
  }
  bool sum = a->op == A(ADD) || a->op == A(SUB);
  return a->type == T(F64) && sum ? "add.f64" : NULL;
}

static kilni_program_value_t native(kilni_program_lowering_t* w,
                                    const atomic_t* a, const char* tail) {
  bool bits = a->op == A(EXCHANGE) || a->op == A(COMPARE_EXCHANGE);
  kilni_program_value_t value = a->value;
  if (a->op == A(SUB)) {
    value = kilni_program_unary(w, KILN_PROGRAM_UNARY_NEGATE, value);
  }
  if (bits) value = kilni_program_to_bits(w, value);
  uint8_t type = kilni_program_value_type(w, value);
  kilni_program_value_t operands[4] = {kilni_program_register(w, type),
                                       a->address, value, 0};
  uint8_t count = 3;
  if (a->op == A(COMPARE_EXCHANGE)) {
    operands[2] = kilni_program_to_bits(w, a->expected);
    operands[3] = value;
    count = 4;
  }
  uint8_t flags = KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED;
  if (a->guard != 0) flags |= KILNI_INSTRUCTION_ZERO;
  kilni_program_pin(w, atomic_name_of(w, a, "atom", ordering_of(a), tail),
                    KILNI_FORM_ATOM, flags, count, operands, a->guard, 0);
  return bits ? kilni_program_from_bits(w, a->type, operands[0]) : operands[0];
}

static const char* bits_tail(uint8_t type) {
  switch (kilni_program_type_bytes(type)) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    default:
      return "u64";
  }
}

static kilni_program_value_t atomic_load(kilni_program_lowering_t* w,
                                         const atomic_t* a) {
  bool wide = kilni_program_type_bytes(a->type) == 8;
  uint8_t bits_type = wide ? T(U64) : T(U32);
  kilni_program_value_t operands[2] = {kilni_program_register(w, bits_type),
                                       a->address};
  uint8_t flags = KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED;
  if (a->guard != 0) flags |= KILNI_INSTRUCTION_ZERO;
  kilni_program_pin(
      w, atomic_name_of(w, a, "ld", ordering_of(a), bits_tail(a->type)),
      KILNI_FORM_LOAD, flags, 2, operands, a->guard, 0);
  return kilni_program_from_bits(w, a->type, operands[0]);
}

static void atomic_store(kilni_program_lowering_t* w, const atomic_t* a) {
  kilni_program_value_t operands[2] = {a->address,
                                       kilni_program_to_bits(w, a->value)};
  kilni_program_pin(
      w, atomic_name_of(w, a, "st", ordering_of(a), bits_tail(a->type)),
      KILNI_FORM_STORE, KILNI_INSTRUCTION_PINNED, 2, operands, a->guard, 0);
}

// ---- A loop ----

typedef struct word_t {
  uint8_t type;  // U32 or U64
  kilni_program_value_t address;
  kilni_program_value_t shift;  // of the element in the word; 0: it is the word
  uint32_t mask;
} word_t;

static word_t atomic_word_of(kilni_program_lowering_t* w, const atomic_t* a) {
  uint32_t bytes = kilni_program_type_bytes(a->type);
  word_t word = {bytes == 8 ? T(U64) : T(U32), a->address, 0, 0};
  if (bytes >= 4) return word;
  uint8_t type = kilni_program_value_type(w, a->address);
  word.mask = bytes == 1 ? 0xff : 0xffff;
  word.address = KILNI_BIN(BIT_AND, a->address,
                           kilni_program_const(w, type, ~UINT64_C(3)));
  kilni_program_value_t low = kilni_program_cast(w, T(U32), a->address);
  low = KILNI_BIN(BIT_AND, low, kilni_program_u32(w, 3));
  word.shift = KILNI_BIN(SHL, low, kilni_program_u32(w, 3));
  return word;
}

static kilni_program_value_t atomic_put(kilni_program_lowering_t* w,
                                        const word_t* word,
                                        kilni_program_value_t whole,
                                        kilni_program_value_t bits) {
  if (word->shift == 0) return bits;
  kilni_program_value_t mask = kilni_program_u32(w, word->mask);
  mask = kilni_program_pure(w, "shl.b32", T(U32), mask, word->shift, 0);
  mask = KILNI_BIN(BIT_XOR, mask, kilni_program_u32(w, UINT32_MAX));
  bits = kilni_program_pure(w, "shl.b32", T(U32), bits, word->shift, 0);
  return KILNI_BIN(BIT_OR, KILNI_BIN(BIT_AND, whole, mask), bits);
}

static kilni_program_value_t atomic_get(kilni_program_lowering_t* w,
                                        const word_t* word,
                                        kilni_program_value_t whole) {
  if (word->shift == 0) return whole;
  kilni_program_value_t bits =
      kilni_program_pure(w, "shr.u32", T(U32), whole, word->shift, 0);
  return KILNI_BIN(BIT_AND, bits, kilni_program_u32(w, word->mask));
}

// The loop itself; the element's bits before.
static kilni_program_value_t exchange(kilni_program_lowering_t* w,
                                      const atomic_t* a, const word_t* word) {
  bool wide = word->type == T(U64);
  uint32_t again = kilni_program_label(w), done = kilni_program_label(w),
           outer = w->region;
  kilni_program_value_t first[2] = {kilni_program_register(w, word->type),
                                    word->address};
  kilni_program_pin(
      w, atomic_name_of(w, a, "ld", ".relaxed", wide ? "u64" : "u32"),
      KILNI_FORM_LOAD, KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 2,
      first, 0, 0);
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  kilni_program_value_t now = kilni_program_register(w, word->type);
  uint32_t inner = w->region;
  w->region = outer;
  kilni_program_move(w, now, first[0]);
  w->region = inner;
  kilni_program_place_label(w, again);
  kilni_program_value_t bits = atomic_get(w, word, now);
  if (a->op == A(COMPARE_EXCHANGE)) {
    kilni_program_value_t expected = kilni_program_to_bits(w, a->expected),
                          have = bits;
    // Any byte but 0 is true.
    if (a->type == T(BOOL)) {
      have = KILNI_BIN(MIN, bits, kilni_program_u32(w, 1));
    }
    kilni_program_branch(w, done, KILNI_BIN(NE, have, expected));
  }
  kilni_program_value_t old = kilni_program_from_bits(w, a->type, bits);
  kilni_program_value_t next =
      kilni_program_to_bits(w, atomic_computed(w, a, old));
  kilni_program_value_t operands[4] = {kilni_program_register(w, word->type),
                                       word->address, now,
                                       atomic_put(w, word, now, next)};
  const char* tail = wide ? "cas.b64" : "cas.b32";
  kilni_program_pin(
      w, atomic_name_of(w, a, "atom", ordering_of(a), tail), KILNI_FORM_ATOM,
      KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED, 4, operands, 0, 0);
  kilni_program_value_t same = kilni_program_fresh(
      w, wide ? "setp.eq.u64" : "setp.eq.u32", T(BOOL), operands[0], now);
  kilni_program_branch(w, done, same);
  kilni_program_move(w, now, operands[0]);
  kilni_program_branch(w, again, 0);
  kilni_program_region_end(w);
  kilni_program_place_label(w, done);
  return bits;
}

static kilni_program_value_t by_exchange(kilni_program_lowering_t* w,
                                         const atomic_t* a) {
  word_t word = atomic_word_of(w, a);
  kilni_program_value_t result = kilni_program_register(w, word.type);
  kilni_program_move(w, result, kilni_program_const(w, word.type, 0));
  uint32_t end = kilni_program_label(w);
  kilni_program_value_t group = kilni_program_apart(w);
  if (a->guard != 0) kilni_program_branch(w, end, a->guard | KILNI_NOT);
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  kilni_program_move(w, result, exchange(w, a, &word));
  kilni_program_region_end(w);
  kilni_program_place_label(w, end);
  kilni_program_meet_again(w, group);
  return kilni_program_from_bits(w, a->type, result);
}

// A thread's own array: nobody comes between.
static kilni_program_value_t alone(kilni_program_lowering_t* w, uint32_t buffer,
                                   const atomic_t* a) {
  kilni_program_value_t old = kilni_program_load(w, buffer, a->index);
  if (a->op == A(LOAD)) return old;
  kilni_program_value_t next = atomic_computed(w, a, old);
  if (a->op == A(COMPARE_EXCHANGE)) {
    kilni_program_value_t same =
        KILNI_BIN(EQ, kilni_program_to_bits(w, old),
                  kilni_program_to_bits(w, a->expected));
    next = kilni_program_select(w, same, next, old);
  }
  kilni_program_store(w, buffer, a->index, next, 0);
  return old;
}

bool kilni_program_atomic_waits(const kilni_program_ir_t* ir,
                                const kilni_program_expr_record_t* expr) {
  atomic_t a;
  memset(&a, 0, sizeof(a));
  a.op = KILNI_ATOMIC_OP(expr->extra);
  a.type = ir->buffers.items[expr->a].type;
  if (a.op == A(LOAD)) return false;
  if (a.op == A(STORE) && kilni_program_type_bytes(a.type) >= 4) return false;
  return native_tail(&a) == NULL;
}

kilni_program_value_t kilni_program_atomic(
    kilni_program_lowering_t* w, const kilni_program_expr_record_t* expr) {
  static const char* const kScopes[] = {".cta", ".gpu", ".sys"};
  const uint32_t* operands = w->ir->operands.items + expr->b;
  atomic_t a;
  memset(&a, 0, sizeof(a));
  a.place = kilni_program_place(w, expr->a);
  a.op = KILNI_ATOMIC_OP(expr->extra);
  a.ordering = KILNI_ATOMIC_ORDERING(expr->extra);
  a.type = a.place->type;
  a.shared = a.place->role == KILN_PROGRAM_ROLE_SHARED;
  a.scope = a.shared ? ".cta" : kScopes[KILNI_ATOMIC_SCOPE(expr->extra) % 3];
  a.index = kilni_program_expr(w, operands[0]);
  uint32_t values = kilni_program_atomic_values(a.op);
  if (values == 2) a.expected = kilni_program_expr(w, operands[1]);
  if (values != 0) a.value = kilni_program_expr(w, operands[values]);
  if (a.place->role == KILN_PROGRAM_ROLE_PRIVATE) return alone(w, expr->a, &a);
  fence(w, &a);
  if (kilni_program_rounds_tell(w, a.place, a.value, 0)) return 0;
  kilni_program_cover_load(w, a.place, a.index);
  a.guard = kilni_program_in_range(w, a.place, a.index);
  if (a.guard != 0 && kilni_program_value_is_const(w, a.guard)) {
    if (kilni_program_value_of(w, a.guard)->bits == 0) {
      return kilni_program_const(w, a.type, 0);
    }
    a.guard = 0;
  }
  a.address = kilni_program_address(w, a.place, a.index);
  w->epoch++;
  const char* tail = native_tail(&a);
  if (a.op == A(LOAD)) return atomic_load(w, &a);
  if (a.op == A(STORE) && kilni_program_type_bytes(a.type) >= 4) {
    atomic_store(w, &a);
    return 0;
  }
  return tail != NULL ? native(w, &a, tail) : by_exchange(w, &a);
}
