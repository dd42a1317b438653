// SPDX-License-Identifier: Apache-2.0
//
// program: loads, stores, lengths; every access is in range or does nothing.
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

kilni_dispatch_place_t* kilni_program_place(kilni_program_lowering_t* w,
                                            uint32_t buffer) {
  kilni_dispatch_place_t* place = &w->places[buffer];
  return &w->places[place->same];
}

static bool is_global(const kilni_dispatch_place_t* place) {
  return place->role != KILN_PROGRAM_ROLE_SHARED &&
         place->role != KILN_PROGRAM_ROLE_PRIVATE;
}

static kilni_program_value_t parameter(kilni_program_lowering_t* w,
                                       uint32_t number) {
  kilni_program_instruction_t instruction = {0};
  instruction.name = "ld.param.u64";
  instruction.form = KILNI_FORM_PARAM;
  instruction.count = 1;
  instruction.number = number;
  uint32_t floor = w->floor;
  kilni_program_value_t out = kilni_program_pure_form(w, &instruction, T(U64));
  w->floor = floor;
  return out;
}

kilni_program_value_t kilni_program_base(kilni_program_lowering_t* w,
                                         const kilni_dispatch_place_t* place) {
  return parameter(w, place->number);
}

// ---- Lengths ----

kilni_program_value_t kilni_program_length(kilni_program_lowering_t* w,
                                           kilni_dispatch_place_t* place,
                                           uint8_t type) {
  if (place->count != 0) return kilni_program_const(w, type, place->count);
  const kilni_program_buffer_record_t* buffer =
      &w->program->buffers.items[place->same];
  uint32_t count = buffer->count;
  if (count != 0 && (w->off & KILN_PROGRAM_WITHOUT_RANGES) == 0) {
    // What is bound has as many elements as was declared.
    const kilni_program_expr_record_t* expr = &w->program->exprs.items[count];
    if (expr->op == KILNI_EXPR_LENGTH) {
      return kilni_program_length(w, kilni_program_place(w, expr->a), type);
    }
    if (expr->op == KILNI_EXPR_SCALAR && expr->type == T(U32)) {
      return kilni_program_cast(w, type, w->scalars[expr->a]);
    }
  }
  kilni_program_value_t length = parameter(w, place->number + 1);
  if (type == T(U64)) {
    if (place->length32) w->values.items[length].most = UINT32_MAX;
    return length;
  }
  return kilni_program_cast(w, type, length);
}

// ---- Ranges ----

kilni_program_value_t kilni_program_index64(kilni_program_lowering_t* w,
                                            kilni_program_value_t index) {
  uint8_t type = kilni_program_value_type(w, index);
  bool is_signed = kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
  kilni_program_value_t wide =
      kilni_program_cast(w, is_signed ? T(I64) : T(U64), index);
  return kilni_program_retype(w, T(U64), wide);
}

// Whether a buffer has less than 2^32 elements: it says so, or what its count
// is made of does.
static bool has_length32(const kilni_program_lowering_t* w,
                         const kilni_dispatch_place_t* place) {
  if (place->length32 != 0) return true;
  uint32_t count = w->program->buffers.items[place->same].count;
  if (count == 0) return false;
  const kilni_program_expr_record_t* e = &w->program->exprs.items[count];
  return e->type == T(U32);
}

// An index that is certainly not negative, or any below a count that is small
// enough, compares in 32 bits.
static bool is_short(kilni_program_lowering_t* w,
                     const kilni_dispatch_place_t* place,
                     kilni_program_value_t index) {
  uint8_t type = kilni_program_value_type(w, index);
  if (kilni_program_type_bytes(type) == 8) return false;
  bool length =
      place->count != 0 ? place->count <= UINT32_MAX : has_length32(w, place);
  if (kilni_program_type_class(type) == KILNI_CLASS_UNSIGNED) return length;
  if (place->count != 0 && place->count <= INT32_MAX) return true;
  return length && kilni_program_value_of(w, index)->most <= INT32_MAX;
}

// True if the facts say so; `out_region` is where they hold.
static bool known_below(kilni_program_lowering_t* w, kilni_program_value_t a,
                        kilni_program_value_t b, uint64_t count,
                        uint32_t* out_region) {
  for (uint32_t i = w->facts.count; i > 0; i--) {
    const kilni_program_fact_t* fact = &w->facts.items[i - 1];
    if (fact->a != a) continue;
    if (fact->b == b ||
        (count != 0 && kilni_program_value_of(w, fact->b)->most <= count)) {
      *out_region = fact->region;
      return true;
    }
  }
  return false;
}

// As kilni_program_in_range; `out_region` is the outermost one in which the
// answer holds, 0 where that is everywhere.
static kilni_program_value_t in_range(kilni_program_lowering_t* w,
                                      kilni_dispatch_place_t* place,
                                      kilni_program_value_t index,
                                      uint32_t* out_region) {
  *out_region = 0;
  uint64_t most = kilni_program_value_of(w, index)->most;
  bool ranges = (w->off & KILN_PROGRAM_WITHOUT_RANGES) == 0;
  if (ranges && place->count != 0 && most < place->count) return 0;
  if (is_short(w, place, index)) {
    kilni_program_value_t length = kilni_program_length(w, place, T(U32));
    kilni_program_value_t i = index;
    if (kilni_program_value_type(w, i) != T(U32)) {
      i = kilni_program_cast(w, T(U32), i);
    }
    if (ranges && known_below(w, i, length, place->count, out_region)) return 0;
    if (ranges && known_below(w, index, length, place->count, out_region)) {
      return 0;
    }
    kilni_program_value_t root;
    uint32_t offset;
    if (ranges && kilni_program_group_below(w, i, length, &root, &offset)) {
      *out_region = w->region;
      return 0;
    }
    return KILNI_BIN(LT, i, length);
  }
  kilni_program_value_t length = kilni_program_length(w, place, T(U64));
  kilni_program_value_t i = kilni_program_index64(w, index);
  if (ranges && known_below(w, i, length, place->count, out_region)) return 0;
  return KILNI_BIN(LT, i, length);
}

kilni_program_value_t kilni_program_in_range(kilni_program_lowering_t* w,
                                             kilni_dispatch_place_t* place,
                                             kilni_program_value_t index) {
  uint32_t region;
  return in_range(w, place, index, &region);
}

// ---- Addresses ----

static kilni_program_value_t symbol(kilni_program_lowering_t* w, uint8_t form,
                                    const char* name, uint8_t type,
                                    uint32_t number) {
  kilni_program_instruction_t instruction = {0};
  instruction.name = name;
  instruction.form = form;
  instruction.count = 1;
  instruction.number = number;
  return kilni_program_pure_form(w, &instruction, type);
}

kilni_program_value_t kilni_program_shared_address(kilni_program_lowering_t* w,
                                                   uint32_t offset) {
  return symbol(w, KILNI_FORM_SHARED, "mov.u32", T(U32), offset);
}

static kilni_program_value_t offset64(kilni_program_lowering_t* w,
                                      kilni_program_value_t index,
                                      uint32_t size) {
  uint8_t type = kilni_program_value_type(w, index);
  if (kilni_program_value_is_const(w, index) ||
      kilni_program_type_bytes(type) == 8) {
    kilni_program_value_t i = kilni_program_index64(w, index);
    return KILNI_BIN(MUL, i, kilni_program_const(w, T(U64), size));
  }
  bool is_signed = kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
  if (size == 1) return kilni_program_index64(w, index);
  return kilni_program_pure(w, is_signed ? "mul.wide.s32" : "mul.wide.u32",
                            T(U64), index, kilni_program_u32(w, size), 0);
}

// Where an index is a value and a constant that do not wrap, the address may be
// that value's and a constant too; `*index` becomes the value.
static bool has_known_offset(kilni_program_lowering_t* w,
                             kilni_dispatch_place_t* place,
                             kilni_program_value_t* index,
                             uint32_t* out_offset) {
  if (!is_global(place) || w->facts.count == 0 ||
      (w->off & KILN_PROGRAM_WITHOUT_RANGES) != 0 ||
      kilni_program_value_type(w, *index) != T(U32) ||
      !is_short(w, place, *index)) {
    return false;
  }
  kilni_program_value_t length = kilni_program_length(w, place, T(U32));
  return kilni_program_group_below(w, *index, length, index, out_offset) &&
         *out_offset != 0;
}

kilni_program_value_t kilni_program_address(kilni_program_lowering_t* w,
                                            kilni_dispatch_place_t* place,
                                            kilni_program_value_t index) {
  uint32_t size = kilni_program_type_bytes(place->type);
  if (place->role == KILN_PROGRAM_ROLE_SHARED) {
    kilni_program_value_t base = kilni_program_shared_address(w, place->number);
    kilni_program_value_t i = kilni_program_cast(w, T(U32), index);
    i = KILNI_BIN(MUL, i, kilni_program_u32(w, size));
    return KILNI_BIN(ADD, base, i);
  }
  kilni_program_value_t base;
  uint32_t offset = 0;
  if (has_known_offset(w, place, &index, &offset)) {
    base = kilni_program_address(w, place, index);
    uint64_t bytes = (uint64_t)offset * size;
    return KILNI_BIN(ADD, base, kilni_program_const(w, T(U64), bytes));
  }
  if (place->role == KILN_PROGRAM_ROLE_PRIVATE) {
    base = symbol(w, KILNI_FORM_LOCAL, "mov.u64", T(U64), place->number);
  } else {
    base = parameter(w, place->number);
    base = kilni_program_pure(w, "cvta.to.global.u64", T(U64), base, 0, 0);
  }
  return KILNI_BIN(ADD, base, offset64(w, index, size));
}

// ---- Loads and stores ----

enum { SPACE_GLOBAL, SPACE_READ_ONLY, SPACE_SHARED, SPACE_PRIVATE, SPACES };

typedef struct memory_form_t {
  uint8_t type;  // of the register
  const char* load[SPACES];
  const char* store[SPACES];
  // Of 2 and 4 elements: global and read only, and then shared.
  const char* vectors[2][3];
  const char* vector_stores[2][3];
} memory_form_t;

#define VECTORS(v, t) \
  {"ld.global." v "." t, "ld.global.nc." v "." t, "ld.shared." v "." t}
#define VECTOR_STORES(v, t) {"st.global." v "." t, "", "st.shared." v "." t}
#define FORM(register_type, t)                                              \
  {                                                                         \
    register_type,                                                          \
        {"ld.global." t, "ld.global.nc." t, "ld.shared." t, "ld.local." t}, \
        {"st.global." t, "", "st.shared." t, "st.local." t},                \
        {VECTORS("v2", t), VECTORS("v4", t)}, {                             \
      VECTOR_STORES("v2", t), VECTOR_STORES("v4", t)                        \
    }                                                                       \
  }

static const memory_form_t kForms[KILNI_TYPE_COUNT] = {
    [T(BOOL)] = FORM(T(U32), "u8"),
    [T(U8)] = FORM(T(U8), "u8"),
    [T(I8)] = FORM(T(I8), "s8"),
    [T(U16)] = FORM(T(U16), "u16"),
    [T(I16)] = FORM(T(I16), "s16"),
    [T(U32)] = FORM(T(U32), "u32"),
    [T(I32)] = FORM(T(I32), "u32"),
    [T(U64)] = FORM(T(U64), "u64"),
    [T(I64)] = FORM(T(I64), "u64"),
    [T(F16)] = FORM(KILNI_TYPE_HALF_BITS, "b16"),
    [T(BF16)] = FORM(T(U32), "u16"),
    [T(F32)] = FORM(T(F32), "f32"),
    [T(F64)] = FORM(T(F64), "f64"),
};

static uint32_t access_space_of(const kilni_dispatch_place_t* place) {
  if (place->role == KILN_PROGRAM_ROLE_SHARED) return SPACE_SHARED;
  if (place->role == KILN_PROGRAM_ROLE_PRIVATE) return SPACE_PRIVATE;
  return SPACE_GLOBAL;
}

kilni_program_value_t kilni_program_from_memory(kilni_program_lowering_t* w,
                                                uint8_t type,
                                                kilni_program_value_t x) {
  switch (type) {
    case T(BOOL):
      w->values.items[x].most = 255;
      return KILNI_BIN(NE, x, kilni_program_u32(w, 0));
    case T(BF16):
      return kilni_program_from_bits(w, type, x);
    case T(F16):
      return kilni_program_pure(w, "cvt.f32.f16", type, x, 0, 0);
    default:
      return x;
  }
}

// Nobody writes it once the program's own accesses have begun.
static bool read_only(const kilni_program_lowering_t* w,
                      const kilni_dispatch_place_t* place) {
  return is_global(place) && place->written == 0 &&
         (w->off & KILN_PROGRAM_WITHOUT_READ_ONLY) == 0;
}

// ld.global.nc asks more: that nobody writes it as long as the kernel runs,
// which may be before what is in front of it has ended.
static bool never_written(const kilni_program_lowering_t* w,
                          const kilni_dispatch_place_t* place) {
  return read_only(w, place) && !w->waits;
}

const char* kilni_program_vector_load_name(const kilni_program_lowering_t* w,
                                           const kilni_dispatch_place_t* place,
                                           uint32_t lanes) {
  uint32_t space =
      never_written(w, place) ? SPACE_READ_ONLY : access_space_of(place);
  return kForms[place->type].vectors[lanes == 4][space];
}

const char* kilni_program_vector_store_name(const kilni_dispatch_place_t* place,
                                            uint32_t lanes) {
  return kForms[place->type].vector_stores[lanes == 4][access_space_of(place)];
}

const char* kilni_program_word_load_name(const kilni_program_lowering_t* w,
                                         const kilni_dispatch_place_t* place,
                                         uint32_t words) {
  const memory_form_t* form = &kForms[T(U32)];
  uint32_t space =
      never_written(w, place) ? SPACE_READ_ONLY : access_space_of(place);
  return words == 1 ? form->load[space] : form->vectors[words == 4][space];
}

uint8_t kilni_program_memory_type(const kilni_dispatch_place_t* place) {
  return kForms[place->type].type;
}

kilni_program_value_t kilni_program_load(kilni_program_lowering_t* w,
                                         uint32_t buffer,
                                         kilni_program_value_t index) {
  kilni_dispatch_place_t* place = kilni_program_place(w, buffer);
  const memory_form_t* form = &kForms[place->type];
  uint8_t type = place->type;
  if (place->first != 0) {
    uint64_t i = kilni_program_value_of(w, index)->bits;
    if (place->first == UINT32_MAX || !kilni_program_value_is_const(w, index)) {
      place->first = UINT32_MAX;  // to be lowered again, as memory
      return kilni_program_const(w, type, 0);
    }
    if (i >= place->count) return kilni_program_const(w, type, 0);
    return w->bindings[place->first + (uint32_t)i];
  }
  kilni_program_value_t element = kilni_program_elements_load(w, place, index);
  if (element != 0) return element;
  kilni_program_cover_load(w, place, index);
  uint32_t region;
  kilni_program_value_t guard = in_range(w, place, index, &region);
  if (guard != 0 && kilni_program_value_is_const(w, guard)) {
    if (kilni_program_value_of(w, guard)->bits == 0) {
      return kilni_program_const(w, type, 0);
    }
    guard = 0;
  }
  // What is in range may be so only where the predicate holds; and what is far
  // away is not asked for in vain.
  if (w->predicate != 0 && (region != 0 || guard != 0 || is_global(place))) {
    guard = guard == 0 ? w->predicate : KILNI_BIN(AND, guard, w->predicate);
  }
  bool pure = read_only(w, place);
  kilni_program_instruction_t load = {0};
  load.name = form->load[never_written(w, place) ? SPACE_READ_ONLY
                                                 : access_space_of(place)];
  load.form = KILNI_FORM_LOAD;
  load.count = 2;
  load.operand[1] = kilni_program_address(w, place, index);
  load.guard = guard;
  if (guard != 0) load.flags = KILNI_INSTRUCTION_ZERO;
  // What others may write is read where it stands, and again behind whatever
  // may write it.
  uint32_t floor = w->floor;
  if (!pure) {
    load.number = w->epoch;
    w->floor = w->region;
  } else if (w->regions.items[region].depth > w->regions.items[floor].depth) {
    w->floor = region;
  }
  uint32_t before = w->instructions.count;
  kilni_program_value_t out = kilni_program_pure_form(w, &load, form->type);
  w->floor = floor;
  if (!pure) kilni_program_group_end(w, place);
  if ((pure || place->role == KILN_PROGRAM_ROLE_SHARED) &&
      w->instructions.count == before + 1 &&
      w->values.items[out].region == w->region) {
    kilni_program_group_load(w, place, index, before);
  }
  if (!pure) {
    w->values.items[out].flags &= (uint8_t)~KILNI_VALUE_UNIFORM;
  }
  return kilni_program_from_memory(w, type, out);
}

kilni_program_value_t kilni_program_to_memory(kilni_program_lowering_t* w,
                                              uint8_t type,
                                              kilni_program_value_t x) {
  switch (type) {
    case T(BOOL):
      return kilni_program_cast(w, T(U32), x);
    case T(BF16):
      return kilni_program_to_bits(w, x);
    case T(F16):
      if (kilni_program_value_is_const(w, x)) {
        uint32_t wide =
            kilni_program_fold_widen(type, kilni_program_value_of(w, x)->bits);
        x = kilni_program_const(w, T(F32), wide);
      }
      return kilni_program_pure(w, "cvt.rn.f16.f32", KILNI_TYPE_HALF_BITS, x, 0,
                                0);
    default:
      return x;
  }
}

// `guard`: a bool, or 0.
void kilni_program_store(kilni_program_lowering_t* w, uint32_t buffer,
                         kilni_program_value_t index,
                         kilni_program_value_t value,
                         kilni_program_value_t guard) {
  kilni_dispatch_place_t* place = kilni_program_place(w, buffer);
  if (place->first != 0) {
    if (place->first == UINT32_MAX || !kilni_program_value_is_const(w, index)) {
      place->first = UINT32_MAX;
      return;
    }
    uint64_t i = kilni_program_value_of(w, index)->bits;
    if (i >= place->count) return;
    uint32_t variable = place->first + (uint32_t)i;
    if (w->predicate != 0) {
      value =
          kilni_program_select(w, w->predicate, value, w->bindings[variable]);
    }
    kilni_program_bind(w, variable, value);
    return;
  }
  if (w->predicate != 0) guard = w->predicate;
  if (kilni_program_rounds_tell(w, place, value, guard)) return;
  kilni_program_value_t range = kilni_program_in_range(w, place, index);
  if (range != 0 && kilni_program_value_is_const(w, range)) {
    if (kilni_program_value_of(w, range)->bits == 0) return;
    range = 0;
  }
  if (range == 0 && guard == 0 &&
      kilni_program_elements_store(w, place, index, value)) {
    return;
  }
  kilni_program_cover_store(w, place, index, guard);
  kilni_program_value_t operands[2] = {
      kilni_program_address(w, place, index),
      kilni_program_to_memory(w, place->type, value)};
  if (range == 0) {
    range = guard;
  } else if (guard != 0) {
    range = kilni_program_fresh(w, "and.pred", T(BOOL), range, guard);
  }
  uint32_t at = kilni_program_pin(
      w, kForms[place->type].store[access_space_of(place)], KILNI_FORM_STORE,
      KILNI_INSTRUCTION_PINNED, 2, operands, range, 0);
  if (at != 0) kilni_program_group_store(w, place, index, guard, at);
  w->epoch++;
}

// ---- Arrays that start at zero ----

// Zeroes `bytes` at `base` in steps, from `first` on, `lanes` words at once.
static void access_clear(kilni_program_lowering_t* w, const char* store,
                         kilni_program_value_t base,
                         kilni_program_value_t first, uint32_t step,
                         uint32_t bytes, uint32_t lanes) {
  uint8_t type = kilni_program_value_type(w, base);
  uint32_t again = kilni_program_label(w), end = kilni_program_label(w);
  kilni_program_value_t at = kilni_program_register(w, T(U32));
  kilni_program_value_t zero =
      kilni_program_in_register(w, kilni_program_u32(w, 0));
  kilni_program_move(w, at, first);
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  kilni_program_place_label(w, again);
  kilni_program_value_t limit = kilni_program_u32(w, bytes);
  kilni_program_value_t done =
      kilni_program_fresh(w, "setp.ge.u32", T(BOOL), at, limit);
  kilni_program_branch(w, end, done);
  kilni_program_value_t offset = at;
  if (type == T(U64)) {
    offset = kilni_program_fresh(w, "cvt.u64.u32", type, at, 0);
  }
  const char* add = type == T(U64) ? "add.u64" : "add.u32";
  kilni_program_value_t operands[KILNI_OPERANDS_MAX] = {
      kilni_program_fresh(w, add, type, base, offset), zero, zero, zero, zero};
  kilni_program_pin(
      w, store, lanes == 1 ? KILNI_FORM_STORE : KILNI_FORM_STORE_VECTOR,
      KILNI_INSTRUCTION_PINNED, (uint8_t)(lanes + 1), operands, 0, 0);
  kilni_program_value_t next =
      kilni_program_fresh(w, "add.u32", T(U32), at, kilni_program_u32(w, step));
  kilni_program_move(w, at, next);
  kilni_program_branch(w, again, 0);
  kilni_program_region_end(w);
  kilni_program_place_label(w, end);
}

void kilni_program_private_clear(kilni_program_lowering_t* w,
                                 uint32_t function) {
  const kilni_program_ir_t* ir = w->program;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[i];
    if (buffer->role != KILN_PROGRAM_ROLE_PRIVATE ||
        buffer->function != function) {
      continue;
    }
    kilni_dispatch_place_t* place = &w->places[i];
    if (place->same != i) continue;
    if (place->first != 0) {
      for (uint64_t k = 0; k < place->count && place->first != UINT32_MAX;
           k++) {
        kilni_program_bind(w, place->first + (uint32_t)k,
                           kilni_program_const(w, place->type, 0));
      }
      continue;
    }
    uint32_t bytes = w->private_bytes[place->number];
    kilni_program_value_t base =
        symbol(w, KILNI_FORM_LOCAL, "mov.u64", T(U64), place->number);
    if (bytes <= 64) {
      for (uint32_t at = 0; at < bytes; at += 4) {
        kilni_program_value_t operands[2] = {
            KILNI_BIN(ADD, base, kilni_program_const(w, T(U64), at)),
            kilni_program_u32(w, 0)};
        kilni_program_pin(w, "st.local.u32", KILNI_FORM_STORE,
                          KILNI_INSTRUCTION_PINNED, 2, operands, 0, 0);
      }
    } else {
      access_clear(w, "st.local.u32", base, kilni_program_u32(w, 0), 4, bytes,
                   1);
    }
    w->epoch++;
  }
}

// A shared array has 16 bytes alignment, and space up to the next one.
enum { CLEAR_BYTES = 16, CLEAR_ROUNDS = 4 };

static void clear_shared(kilni_program_lowering_t* w,
                         const kilni_dispatch_place_t* place,
                         kilni_program_value_t local) {
  static const char kStore[] = "st.shared.v4.u32";
  uint64_t size = place->count * kilni_program_type_bytes(place->type);
  uint32_t pieces = (uint32_t)((size + CLEAR_BYTES - 1) / CLEAR_BYTES);
  uint32_t rounds = (pieces + w->threads - 1) / w->threads;
  kilni_program_value_t base = kilni_program_shared_address(w, place->number);
  kilni_program_value_t first =
      KILNI_BIN(MUL, local, kilni_program_u32(w, CLEAR_BYTES));
  if (rounds > CLEAR_ROUNDS) {
    access_clear(w, kStore, base, first, CLEAR_BYTES * w->threads,
                 pieces * CLEAR_BYTES, 4);
    return;
  }
  kilni_program_value_t zero =
      kilni_program_in_register(w, kilni_program_u32(w, 0));
  kilni_program_value_t at = KILNI_BIN(ADD, base, first);
  for (uint32_t i = 0; i < rounds; i++) {
    uint32_t done = i * w->threads;
    kilni_program_value_t guard = 0;
    if (pieces - done < w->threads) {
      guard = KILNI_BIN(LT, local, kilni_program_u32(w, pieces - done));
    }
    kilni_program_value_t operands[KILNI_OPERANDS_MAX] = {
        KILNI_BIN(ADD, at, kilni_program_u32(w, done * CLEAR_BYTES)), zero,
        zero, zero, zero};
    kilni_program_pin(w, kStore, KILNI_FORM_STORE_VECTOR,
                      KILNI_INSTRUCTION_PINNED, 5, operands, guard, 0);
  }
}

void kilni_program_shared_clear(kilni_program_lowering_t* w) {
  if (w->clear_bytes == 0) return;
  kilni_program_value_t local = kilni_program_local_index(w);
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    kilni_dispatch_place_t* place = &w->places[i];
    if (w->program->buffers.items[i].role != KILN_PROGRAM_ROLE_SHARED ||
        place->count == 0) {
      continue;
    }
    place->clear = w->instructions.count;
    clear_shared(w, place, local);
    place->clear_end = w->instructions.count;
  }
  w->clear_barrier = kilni_program_pin(w, "bar.sync 0", KILNI_FORM_PLAIN,
                                       KILNI_INSTRUCTION_PINNED, 0, NULL, 0, 0);
  w->epoch++;
}

void kilni_program_shared_keep(kilni_program_lowering_t* w) {
  w->clear_bytes = 0;
  for (uint32_t i = 1; i < w->program->buffers.count; i++) {
    kilni_dispatch_place_t* place = &w->places[i];
    if (place->clear == 0) continue;
    if (place->pays != 0) {
      uint64_t size = place->count * kilni_program_type_bytes(place->type);
      w->clear_bytes += (uint32_t)size;
      continue;
    }
    for (uint32_t at = place->clear; at < place->clear_end; at++) {
      w->instructions.items[at].flags &= (uint8_t)~KILNI_INSTRUCTION_PINNED;
    }
  }
  if (w->clear_bytes == 0 && w->clear_barrier != 0) {
    w->instructions.items[w->clear_barrier].flags &=
        (uint8_t)~KILNI_INSTRUCTION_PINNED;
  }
}
