// SPDX-License-Identifier: Apache-2.0
//
// program: the lowering from inside: values, instructions and regions.
//
// A program is lowered in one pass over its tables. Each expression becomes a
// *value*: a constant, or a register that is written once. An operation on
// values that was seen before is that value again (common subexpressions), one
// on constants is a constant, and one whose operands all stand outside of a
// loop is written in front of it (invariant code), because instructions are
// kept in a list for each *region* (the kernel, a branch, a loop's body) until
// the region ends. That is allowed for what is pure only; everything else is
// *pinned*: written where it stands, once for each time it is met.
//
// Variables hold values; where control flow meets, a value written from both
// sides (a *meeting*) takes their place. What is never used is left out when
// the text is written (program_ptx.c).
#ifndef KILN_SRC_PROGRAM_LOWER_PROGRAM_LOWERING_H_
#define KILN_SRC_PROGRAM_LOWER_PROGRAM_LOWERING_H_

#include "kiln/program.h"
#include "kiln/program_code.h"
#include "program/ir/program_ir.h"

// Types beside KILN_PROGRAM_TYPE_*.
enum { KILNI_TYPE_HALF_BITS = 32 };  // a register of 16 bits

// Memory that is given back all at once. one-thread
typedef struct kilni_program_arena_block_t kilni_program_arena_block_t;
typedef struct kilni_program_arena_t {
  kiln_allocator_t allocator;
  kilni_program_arena_block_t* blocks;
  char* next;
  char* end;
  uint32_t block_count;
  uint32_t failed;
} kilni_program_arena_t;

// `first`: bytes that are probably enough.
void kilni_program_arena_init(kilni_program_arena_t* arena,
                              kiln_allocator_t allocator, size_t first);
void kilni_program_arena_deinit(kilni_program_arena_t* arena);
// Aligned to 16, not cleared. NULL without memory, which is remembered.
void* kilni_program_arena_get(kilni_program_arena_t* arena, size_t bytes);
// Space for `wanted` items; false without memory.
bool kilni_program_arena_grow(kilni_program_arena_t* arena, void** items,
                              uint32_t* capacity, uint32_t wanted, size_t size);

typedef uint32_t kilni_program_value_t;  // 0: none

enum {
  KILNI_VALUE_CONST = 1,    // `bits` is its value
  KILNI_VALUE_UNIFORM = 2,  // the same in all threads of a block, also in those
                            // that have returned
  KILNI_VALUE_MOVED = 4,    // written where control flow meets, maybe again
};

// What is known of a value.
typedef struct kilni_program_value_record_t {
  uint8_t type;
  uint8_t flags;
  uint16_t reserved;
  uint32_t region;   // where it is written
  uint32_t define;   // its first instruction
  uint32_t name;     // its register's number, when the text is written
  uint32_t chain;    // next of its hash
  uint32_t threads;  // see program_cover.c
  uint64_t bits;     // of a constant, as its type has them
  uint64_t most;     // of integers: it is in [0, most]; for a signed one that
                     // may be negative ~0
} kilni_program_value_record_t;

enum {
  KILNI_FORM_PLAIN = 0,  // name a, b, c, d, e
  KILNI_FORM_LOAD,       // name a, [b]
  KILNI_FORM_STORE,      // name [a], b
  KILNI_FORM_ATOM,       // name a, [b], c, d
  KILNI_FORM_PARAM,      // name a, [parameter `number`]
  KILNI_FORM_SHARED,     // name a, shared memory + `number`
  KILNI_FORM_LOCAL,      // name a, private array `number`
  KILNI_FORM_BRANCH,     // bra label `number`
  KILNI_FORM_LABEL,
  KILNI_FORM_SPECIAL,       // mov.u32 a, name
  KILNI_FORM_COPY,          // name [a], [b], number
  KILNI_FORM_LOAD_VECTOR,   // name {a, ...}, [z]: all but the last are written
  KILNI_FORM_NONE,          // taken out
  KILNI_FORM_STORE_VECTOR,  // name [a], {b, ...}
  KILNI_FORM_PACK,          // name a, {b, c}
  KILNI_FORM_MATRIX,        // name {d}, {a}, {b}, {c}: `wide` from `number` on
};

enum {
  KILNI_INSTRUCTION_DEFINES = 1,  // operand[0] is written
  KILNI_INSTRUCTION_PINNED = 2,   // has an effect
  KILNI_INSTRUCTION_ZERO = 4,     // operand[0] is 0 where the guard is false
  KILNI_INSTRUCTION_USED = 8,     // reached when the unused are left out
  KILNI_INSTRUCTION_MOVES = 16,   // into a register that may be moved to again
};

// Of a MATRIX: those written, and all of them: 4 of d, 4 words of a, 2 of b, 4
// that are added to.
enum { KILNI_WIDE_WRITTEN = 4, KILNI_WIDE_OPERANDS = 14 };

enum { KILNI_NOT = 0x40000000U };  // of a guard: where it is false
enum { KILNI_OPERANDS_MAX = 5 };

typedef struct kilni_program_instruction_t {
  const char* name;
  kilni_program_value_t operand[KILNI_OPERANDS_MAX];
  kilni_program_value_t guard;  // 0: none; may have KILNI_NOT
  uint32_t next;
  uint32_t define;  // the next one that writes the same value
  uint32_t number;
  uint8_t form;
  uint8_t flags;
  uint8_t count;  // of operands
  uint8_t reserved;
} kilni_program_instruction_t;

enum { KILNI_REGION_BRANCH = 1, KILNI_REGION_LOOP = 2 };

typedef struct kilni_program_region_t {
  uint32_t parent;
  uint32_t depth;
  uint32_t first, last;  // instructions so far
  uint8_t kind;
  uint8_t open;
  uint16_t reserved;
  uint32_t facts;                   // how many there were when it began
  kilni_program_value_t condition;  // who comes here of those outside; may have
                                    // KILNI_NOT; 0: not told
} kilni_program_region_t;

// a < b, both as numbers that are not negative. In an open region.
typedef struct kilni_program_fact_t {
  kilni_program_value_t a;
  kilni_program_value_t b;
  uint32_t region;
} kilni_program_fact_t;

// A variable's binding before it was changed.
typedef struct kilni_program_change_t {
  uint32_t variable;
  kilni_program_value_t before;
} kilni_program_change_t;

typedef struct kilni_program_cover_t kilni_program_cover_t;

// A buffer of the kernel, or what a function's parameter stands for.
typedef struct kilni_dispatch_place_t {
  uint8_t role;
  uint8_t type;
  uint8_t written;   // anything in the program writes it
  uint8_t length32;  // less than 2^32 elements
  uint32_t same;     // a function's parameter: which buffer; else itself
  uint32_t number;   // shared: offset in bytes; private: which array
  uint32_t first;    // a private array kept in variables: the first of them
  uint64_t count;    // fixed count; 0: not fixed
  // Where a thread does several elements: its accesses by the thread's own
  // index may be vectors; the values of all elements once they are loaded, and
  // those that are to be stored.
  uint32_t vectors;  // 0 or 1
  uint32_t grouped;  // its address is known to be a multiple of that
  kilni_program_value_t* loaded;
  kilni_program_value_t* stored;
  // Of a shared array: what is surely written; and whether it has to be zeroed,
  // by the instructions [clear, clear_end).
  kilni_program_cover_t* cover;
  uint32_t pays;
  uint32_t clear, clear_end;
} kilni_dispatch_place_t;

// A loop or an inlined function that statements may leave.
typedef struct kilni_device_scope_t {
  struct kilni_device_scope_t* outer;
  uint32_t leave;  // label of break, or of a function's end
  uint32_t again;  // label of continue
  uint32_t meet_count;
  const uint32_t* variables;  // that meet at `again` and `leave`
  const kilni_program_value_t* meetings;
  kilni_program_value_t result;  // of a function
  uint8_t is_function;
  uint8_t left;  // something jumps to `leave`
  uint8_t reserved[2];
} kilni_device_scope_t;

// Where each thread does several elements along axis 0: `chunks` runs of
// `lanes` consecutive ones, the runs of a block's threads side by side.
enum { KILNI_MAX_ELEMENTS = 16 };

typedef struct kilni_program_elements_t {
  uint32_t lanes;
  uint32_t chunks;
  uint32_t count;            // lanes * chunks; 1: a thread does one element
  uint32_t region;           // where elements are done together; 0: not there
  uint32_t at;               // which one is being written
  uint32_t alignment;        // of addresses, where they are done together
  kilni_program_value_t id;  // its id along axis 0; 0: by the thread
  kilni_program_value_t ids[KILNI_MAX_ELEMENTS];
} kilni_program_elements_t;

// A run of accesses of consecutive elements, one behind the other.
enum { KILNI_GROUP_MOST = 16 };

typedef struct kilni_program_group_t {
  const kilni_dispatch_place_t* place;
  uint32_t count;
  uint32_t region;
  kilni_program_value_t predicate;  // of the first; 0: none
  bool alike;                       // it is that of all
  kilni_program_value_t index;      // of the first
  kilni_program_value_t root;       // index = root + offset
  uint32_t offset;
  uint32_t taken;       // how many were taken out
  uint32_t begin, end;  // instructions that stand for these
  uint32_t instructions[KILNI_GROUP_MOST];
  kilni_program_instruction_t old[KILNI_GROUP_MOST];  // as they were
} kilni_program_group_t;

// Where a kernel repeats its program until nothing changes (program_rounds.c).
typedef struct kilni_program_rounds_t {
  uint32_t flag;     // the buffer that says so; 0: the program is run once
  uint32_t address;  // parameter: of the flag
  uint32_t meet, record, limit;  // parameters
  bool votes;                    // threads keep the flag until the round ends
  uint32_t tell;                 // else: in shared memory
  kilni_program_value_t told, trapped;  // registers, bool: this thread did
  kilni_program_value_t counts[3];  // blocks that the work has, along each axis
  kilni_program_value_t block[3];   // which of them is done; 0: no such thing
} kilni_program_rounds_t;

// A body whose consecutive accesses are vectors is written twice, and one test
// of the buffers' addresses chooses: where all are multiples of a vector, no
// access asks again; elsewhere there are no vectors.
enum { KILNI_VERSION_ONLY = 0, KILNI_VERSION_WHOLE, KILNI_VERSION_APART };

enum { KILNI_HASH_SIZE = 512 };

// More shared memory than this is asked for at the launch.
enum { KILNI_STATIC_SHARED = 48 * 1024 };

// A lowering. one-thread
typedef struct kilni_program_lowering_t {
  kilni_program_arena_t arena;
  const kilni_program_ir_t* program;
  kilni_program_ir_t library;    // strict math
  const kilni_program_ir_t* ir;  // the one that is walked: one of these two
  uint32_t variable_base;        // of its variables in `bindings`
  uint32_t library_base;
  uint32_t sm;
  uint32_t max_isa;
  uint32_t max_ulp;
  uint32_t off;     // KILNI_LOWER_* that are not done
  uint32_t failed;  // a kiln_status_code_t
  const char* failed_what;
  const char* failed_name;

  KILNI_IR_TABLE(kilni_program_value_record_t) values;
  KILNI_IR_TABLE(kilni_program_instruction_t) instructions;
  KILNI_IR_TABLE(kilni_program_value_t)
  wide;  // operands that a record has no space for
  KILNI_IR_TABLE(kilni_program_region_t) regions;
  KILNI_IR_TABLE(kilni_program_fact_t) facts;
  KILNI_IR_TABLE(kilni_program_change_t) changes;
  uint32_t* hash;   // KILNI_HASH_SIZE heads of chains
  uint32_t region;  // where code is written
  uint32_t floor;   // no code goes further out
  uint32_t labels;
  uint32_t epoch;  // of memory: counts what may have written it

  kilni_program_value_t* bindings;  // of variables
  uint32_t binding_count;
  kilni_dispatch_place_t* places;  // by buffer
  kilni_program_value_t* scalars;
  uint8_t* levels;  // by statement: what meets in it
  uint8_t* function_levels;
  uint8_t* function_returns;  // how many of them: 0, 1 at the end, 2 otherwise
  uint64_t* memo;             // by expression: stamp << 32 | value
  uint64_t* library_memo;     // the same for the library's; NULL until used
  uint8_t* calls;             // by expression: it holds a call
  uint32_t* marks;            // by binding, for kilni_program_assigned
  uint32_t mark;
  uint32_t stamp;
  uint32_t call_depth;

  uint32_t block[3];
  uint32_t threads;  // of a block
  uint32_t wanted;   // elements a thread; 0: to be chosen
  bool waits;        // for what is in front of it on the stream
  kilni_program_elements_t elements;
  kilni_program_group_t loads, stores;
  uint32_t* grouped;  // by buffer: of what its address should be a multiple
  uint32_t versions;  // 1: the body is written twice, by these addresses
  uint32_t version;   // KILNI_VERSION_*
  bool may_have_versions;
  kilni_program_value_t work[3];  // u32; 0: not yet read
  kilni_program_value_t live;     // where threads that have returned go along
  kilni_program_value_t
      predicate;  // where memory may be touched; 0: everywhere
  kilni_device_scope_t* scope;
  uint32_t leave;        // label: where a thread goes that has returned
  uint32_t end;          // label: of the program
  uint32_t tell_offset;  // in shared memory, for what a block is told
  uint8_t together;      // all threads come here, dead ones too
  uint8_t keeps_live;    // `live` is in use
  uint8_t dead;          // nothing comes here
  uint8_t floats;        // the host's rounding is the default one
  uint8_t copy_groups;   // some wait leaves copies under way
  uint8_t reserved[3];
  uint8_t* leaves;  // program_copies.c; NULL: no copy goes on beside
  uint8_t* traits;  // program_together.c, by statement; NULL: no atomics
  uint8_t* expr_traits;
  uint8_t* function_traits;
  kilni_program_value_t
      here;  // u32: the lanes that are here; 0: it is not known
  kilni_program_value_t
      grid_passed;  // how many grid barriers this thread has passed
  kilni_program_rounds_t rounds;

  uint32_t shared_bytes;
  uint32_t clear_bytes;    // of them
  uint32_t clear_barrier;  // instruction: the barrier behind the zeroing
  uint32_t covers;         // 1: what need not be zeroed is looked for
  KILNI_IR_TABLE(uint32_t*) threads_of;
  uint32_t private_count;
  uint32_t* private_bytes;  // by private array in memory
  uint32_t need_sm;
  uint32_t need_isa;
  uint32_t parameter_count;
  uint32_t parameter_bytes;
  kiln_program_parameter_t* parameters;
  uint32_t trap_parameter;  // 1 + which parameter; 0: none
  uint32_t grid_parameter;
} kilni_program_lowering_t;

// ---- program_values.c ----

static inline const kilni_program_value_record_t* kilni_program_value_of(
    const kilni_program_lowering_t* w, kilni_program_value_t value) {
  return &w->values.items[value & ~(uint32_t)KILNI_NOT];
}
static inline uint8_t kilni_program_value_type(
    const kilni_program_lowering_t* w, kilni_program_value_t value) {
  return w->values.items[value].type;
}
static inline bool kilni_program_value_is_const(
    const kilni_program_lowering_t* w, kilni_program_value_t value) {
  return (w->values.items[value].flags & KILNI_VALUE_CONST) != 0;
}
// What a value is, where it never becomes anything else: what a loop carries
// is moved into its register again further on, where this cannot see it yet.
// NULL: there is no such, or it is guarded.
const kilni_program_instruction_t* kilni_program_define_of(
    const kilni_program_lowering_t* w, kilni_program_value_t value);
static inline bool kilni_program_value_is(const kilni_program_lowering_t* w,
                                          kilni_program_value_t value,
                                          uint64_t bits) {
  return kilni_program_value_is_const(w, value) &&
         w->values.items[value].bits == bits;
}

// Remembers the first failure; `name` is quoted in its message.
void kilni_program_lower_fail(kilni_program_lowering_t* w,
                              kiln_status_code_t code, const char* what,
                              const char* name);
bool kilni_program_values_init(kilni_program_lowering_t* w);

// The greatest value of an unsigned type, ~0 for a signed one.
uint64_t kilni_program_type_most(uint8_t type);
// The type in which a type's values are computed: 32 or 64 bits.
uint8_t kilni_program_type_computed(uint8_t type);

// `bits` as the type has them in memory.
kilni_program_value_t kilni_program_const(kilni_program_lowering_t* w,
                                          uint8_t type, uint64_t bits);
static inline kilni_program_value_t kilni_program_u32(
    kilni_program_lowering_t* w, uint32_t number) {
  return kilni_program_const(w, KILN_PROGRAM_TYPE_U32, number);
}
static inline kilni_program_value_t kilni_program_bool(
    kilni_program_lowering_t* w, bool yes) {
  return kilni_program_const(w, KILN_PROGRAM_TYPE_BOOL, yes);
}
// A new register, written nowhere yet, in the region that is open.
kilni_program_value_t kilni_program_register(kilni_program_lowering_t* w,
                                             uint8_t type);

// A pure operation; shared and moved outwards.
kilni_program_value_t kilni_program_pure(kilni_program_lowering_t* w,
                                         const char* name, uint8_t type,
                                         kilni_program_value_t a,
                                         kilni_program_value_t b,
                                         kilni_program_value_t c);
// A constant in a register.
kilni_program_value_t kilni_program_in_register(kilni_program_lowering_t* w,
                                                kilni_program_value_t x);
kilni_program_value_t kilni_program_pure_form(
    kilni_program_lowering_t* w, const kilni_program_instruction_t* instruction,
    uint8_t type);
// An instruction where it stands; `flags` say whether it has an effect.
uint32_t kilni_program_pin(kilni_program_lowering_t* w, const char* name,
                           uint8_t form, uint8_t flags, uint8_t count,
                           const kilni_program_value_t* operands,
                           kilni_program_value_t guard, uint32_t number);
kilni_program_value_t kilni_program_pin_value(
    kilni_program_lowering_t* w, const char* name, uint8_t type, uint8_t count,
    const kilni_program_value_t* operands, kilni_program_value_t guard);
// The same for what has no effect, but does not give the same value each time.
kilni_program_value_t kilni_program_fresh(kilni_program_lowering_t* w,
                                          const char* name, uint8_t type,
                                          kilni_program_value_t a,
                                          kilni_program_value_t b);
// An instruction of KILNI_WIDE_OPERANDS operands, with an effect: the first
// KILNI_WIDE_WRITTEN are registers that it writes.
void kilni_program_pin_wide(
    kilni_program_lowering_t* w, const char* name,
    const kilni_program_value_t operands[KILNI_WIDE_OPERANDS]);
// The operands of a MATRIX.
static inline const kilni_program_value_t* kilni_program_wide_of(
    const kilni_program_lowering_t* w,
    const kilni_program_instruction_t* instruction) {
  return w->wide.items + instruction->number;
}
void kilni_program_pin_text(kilni_program_lowering_t* w, const char* name);
// Writes `from` to the register `to`.
void kilni_program_move(kilni_program_lowering_t* w, kilni_program_value_t to,
                        kilni_program_value_t from);
static inline uint32_t kilni_program_label(kilni_program_lowering_t* w) {
  return ++w->labels;
}
void kilni_program_place_label(kilni_program_lowering_t* w, uint32_t label);
void kilni_program_branch(kilni_program_lowering_t* w, uint32_t label,
                          kilni_program_value_t guard);

uint32_t kilni_program_region_begin(kilni_program_lowering_t* w, uint8_t kind);
// Its code goes where the outer region's stands.
void kilni_program_region_end(kilni_program_lowering_t* w);

void kilni_program_bind(kilni_program_lowering_t* w, uint32_t variable,
                        kilni_program_value_t value);
// Undoes the bindings behind the first `mark` ones.
void kilni_program_unbind(kilni_program_lowering_t* w, uint32_t mark);
void kilni_program_fact_add(kilni_program_lowering_t* w,
                            kilni_program_value_t a, kilni_program_value_t b);

// ---- program_fold.c: the meaning of operators on constants ----

bool kilni_program_fold_unary(uint32_t op, uint8_t type, uint64_t x,
                              bool floats, uint64_t* out);
bool kilni_program_fold_binary(uint32_t op, uint8_t type, uint64_t x,
                               uint64_t y, bool floats, uint64_t* out);
bool kilni_program_fold_fma(uint8_t type, uint64_t x, uint64_t y, uint64_t z,
                            bool floats, uint64_t* out);
bool kilni_program_fold_cast(uint8_t from, uint8_t to, uint64_t x, bool floats,
                             uint64_t* out);
uint64_t kilni_program_fold_bitcast(uint8_t from, uint8_t to, uint64_t x);
// Whether the host computes as programs do: to the nearest, with subnormals.
bool kilni_program_fold_floats(void);
// A number of a small float as f32's bits, and back (f64 to f16 or bf16).
uint32_t kilni_program_fold_widen(uint8_t type, uint64_t bits);

// ---- program_operate.c, program_divide.c, program_cast.c ----

kilni_program_value_t kilni_program_unary(kilni_program_lowering_t* w,
                                          uint32_t op, kilni_program_value_t x);
// Operands of one type but for shifts.
kilni_program_value_t kilni_program_binary(kilni_program_lowering_t* w,
                                           uint32_t op, kilni_program_value_t x,
                                           kilni_program_value_t y);
kilni_program_value_t kilni_program_divide(kilni_program_lowering_t* w,
                                           uint32_t op, uint8_t type,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y);
kilni_program_value_t kilni_program_select(kilni_program_lowering_t* w,
                                           kilni_program_value_t c,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y);
kilni_program_value_t kilni_program_fma(kilni_program_lowering_t* w,
                                        kilni_program_value_t x,
                                        kilni_program_value_t y,
                                        kilni_program_value_t z);
kilni_program_value_t kilni_program_cast(kilni_program_lowering_t* w,
                                         uint8_t type, kilni_program_value_t x);
kilni_program_value_t kilni_program_bitcast(kilni_program_lowering_t* w,
                                            uint8_t type,
                                            kilni_program_value_t x);
// The bits of any value as u32 or u64, NaNs as they are, and back.
kilni_program_value_t kilni_program_to_bits(kilni_program_lowering_t* w,
                                            kilni_program_value_t x);
kilni_program_value_t kilni_program_from_bits(kilni_program_lowering_t* w,
                                              uint8_t type,
                                              kilni_program_value_t bits);
// A computed value (32 or 64 bits) as one of `type`: wrapped, or rounded.
kilni_program_value_t kilni_program_narrow(kilni_program_lowering_t* w,
                                           uint8_t type,
                                           kilni_program_value_t x);
// The same register as a value of another type that is computed alike.
kilni_program_value_t kilni_program_retype(kilni_program_lowering_t* w,
                                           uint8_t type,
                                           kilni_program_value_t x);
// x op const, in u32 arithmetic and so on.
#define KILNI_BIN(op, x, y) \
  kilni_program_binary(w, KILN_PROGRAM_BINARY_##op, (x), (y))

// ---- program_access.c ----

// An index as u64: sign- or zero-extended.
kilni_program_value_t kilni_program_index64(kilni_program_lowering_t* w,
                                            kilni_program_value_t index);
// Whether `index` is in range: 0 if it surely is, else a bool.
kilni_program_value_t kilni_program_in_range(kilni_program_lowering_t* w,
                                             kilni_dispatch_place_t* place,
                                             kilni_program_value_t index);
// The address of an element, in its space.
kilni_program_value_t kilni_program_address(kilni_program_lowering_t* w,
                                            kilni_dispatch_place_t* place,
                                            kilni_program_value_t index);
kilni_dispatch_place_t* kilni_program_place(kilni_program_lowering_t* w,
                                            uint32_t buffer);
// The address of a buffer as it was given.
kilni_program_value_t kilni_program_base(kilni_program_lowering_t* w,
                                         const kilni_dispatch_place_t* place);
kilni_program_value_t kilni_program_length(kilni_program_lowering_t* w,
                                           kilni_dispatch_place_t* place,
                                           uint8_t type);
kilni_program_value_t kilni_program_load(kilni_program_lowering_t* w,
                                         uint32_t buffer,
                                         kilni_program_value_t index);
void kilni_program_store(kilni_program_lowering_t* w, uint32_t buffer,
                         kilni_program_value_t index,
                         kilni_program_value_t value,
                         kilni_program_value_t guard);
// The names of vector instructions of 2 or 4 elements, the type of their
// registers, and values as memory has them.
const char* kilni_program_vector_load_name(const kilni_program_lowering_t* w,
                                           const kilni_dispatch_place_t* place,
                                           uint32_t lanes);
const char* kilni_program_vector_store_name(const kilni_dispatch_place_t* place,
                                            uint32_t lanes);
// The same for 1, 2 or 4 words of bytes.
const char* kilni_program_word_load_name(const kilni_program_lowering_t* w,
                                         const kilni_dispatch_place_t* place,
                                         uint32_t words);
uint8_t kilni_program_memory_type(const kilni_dispatch_place_t* place);
kilni_program_value_t kilni_program_from_memory(kilni_program_lowering_t* w,
                                                uint8_t type,
                                                kilni_program_value_t x);
kilni_program_value_t kilni_program_to_memory(kilni_program_lowering_t* w,
                                              uint8_t type,
                                              kilni_program_value_t x);
kilni_program_value_t kilni_program_shared_address(kilni_program_lowering_t* w,
                                                   uint32_t offset);
void kilni_program_private_clear(kilni_program_lowering_t* w,
                                 uint32_t function);
// Zeroes all shared arrays; behind the body, the zeroing of those that did not
// need it is taken back.
void kilni_program_shared_clear(kilni_program_lowering_t* w);
void kilni_program_shared_keep(kilni_program_lowering_t* w);

enum { KILNI_LEVEL_NONE = 0, KILNI_LEVEL_LANES = 1, KILNI_LEVEL_BLOCK = 2 };

typedef struct kilni_program_survey_t {
  uint8_t level;  // KILNI_LEVEL_*
  uint8_t barriers;
  uint8_t lanes;
  uint8_t copies;
  uint8_t grid;
  uint8_t traps;
  uint8_t returns;
  uint8_t reserved;
} kilni_program_survey_t;

// ---- program_elements.c: several elements a thread ----

// Decides how many; behind kilni_program_survey and the choice of the block.
void kilni_program_elements_choose(kilni_program_lowering_t* w,
                                   const kilni_program_survey_t* survey);
// The whole body for all elements of a thread.
void kilni_program_elements_body(kilni_program_lowering_t* w);
// An element of the thread's own from a vector; 0: not one.
kilni_program_value_t kilni_program_elements_load(kilni_program_lowering_t* w,
                                                  kilni_dispatch_place_t* place,
                                                  kilni_program_value_t index);
// Whether the store is kept, to be part of a vector.
bool kilni_program_elements_store(kilni_program_lowering_t* w,
                                  kilni_dispatch_place_t* place,
                                  kilni_program_value_t index,
                                  kilni_program_value_t value);

// ---- program_group.c: consecutive accesses ----

// The instruction `at` is a load from a buffer that nobody writes, or a store.
void kilni_program_group_load(kilni_program_lowering_t* w,
                              kilni_dispatch_place_t* place,
                              kilni_program_value_t index, uint32_t at);
void kilni_program_group_store(kilni_program_lowering_t* w,
                               kilni_dispatch_place_t* place,
                               kilni_program_value_t index,
                               kilni_program_value_t predicate, uint32_t at);
// Something else happens to a buffer.
void kilni_program_group_end(kilni_program_lowering_t* w,
                             const kilni_dispatch_place_t* place);
// Whether facts say that index < length, where index is a value and a constant
// more: value < length - n and n <= length, and the constant is n at most.
bool kilni_program_group_below(const kilni_program_lowering_t* w,
                               kilni_program_value_t index,
                               kilni_program_value_t length,
                               kilni_program_value_t* out_root,
                               uint32_t* out_offset);
// Whether a buffer's address is a multiple of `bytes`.
kilni_program_value_t kilni_program_group_aligned(
    kilni_program_lowering_t* w, const kilni_dispatch_place_t* place,
    uint32_t bytes);
// x | y where both are fields of one word, side by side; 0 if they are not.
kilni_program_value_t kilni_program_group_join(kilni_program_lowering_t* w,
                                               kilni_program_value_t x,
                                               kilni_program_value_t y);

// ---- program_cover.c: shared arrays that need no zeroing ----

// A store, a barrier of the block and a load (or whatever else reads), as they
// are written. `guard`: 0, or where it is stored; `index` 0: any.
void kilni_program_cover_store(kilni_program_lowering_t* w,
                               kilni_dispatch_place_t* place,
                               kilni_program_value_t index,
                               kilni_program_value_t guard);
void kilni_program_cover_barrier(kilni_program_lowering_t* w);
void kilni_program_cover_load(kilni_program_lowering_t* w,
                              kilni_dispatch_place_t* place,
                              kilni_program_value_t index);

// ---- program_atomic.c, program_lanes.c ----

// Whether it is a loop of compare-and-exchange.
bool kilni_program_atomic_waits(const kilni_program_ir_t* ir,
                                const kilni_program_expr_record_t* expr);
kilni_program_value_t kilni_program_atomic(
    kilni_program_lowering_t* w, const kilni_program_expr_record_t* expr);
kilni_program_value_t kilni_program_subgroup(
    kilni_program_lowering_t* w, const kilni_program_expr_record_t* expr);
// The lanes that there are, as a mask.
kilni_program_value_t kilni_program_lanes(kilni_program_lowering_t* w);
// x, or `neutral` in a thread that has returned.
kilni_program_value_t kilni_program_masked(kilni_program_lowering_t* w,
                                           kilni_program_value_t x,
                                           kilni_program_value_t neutral);
// What that lane holds; 0 for one that is not there.
kilni_program_value_t kilni_program_of_lane(kilni_program_lowering_t* w,
                                            kilni_program_value_t x,
                                            kilni_program_value_t lane);

// ---- program_matrix.c ----

void kilni_program_matrix(kilni_program_lowering_t* w,
                          const kilni_program_statement_record_t* statement);

// ---- program_flow.c ----

kilni_program_value_t kilni_program_expr(kilni_program_lowering_t* w,
                                         uint32_t expr);
void kilni_program_list(kilni_program_lowering_t* w, uint32_t statement);
// Ends the thread.
void kilni_program_return(kilni_program_lowering_t* w);

// ---- program_survey.c: what is known before ----

// Fills levels and function_levels, and which buffers are written.
kilni_program_survey_t kilni_program_survey(kilni_program_lowering_t* w);
bool kilni_program_expr_waits_for_live(const kilni_program_lowering_t* w,
                                       uint32_t expr);
// Variables assigned in a list, each once, into `out`; how many.
uint32_t kilni_program_assigned(kilni_program_lowering_t* w,
                                const uint32_t* lists, uint32_t count,
                                uint32_t** out);

// ---- program_copies.c: copies that go on beside ----

// Whether an async_copy of the program may be made of cp.async.
bool kilni_program_copy_is_group(const kilni_program_lowering_t* w,
                                 const kilni_program_statement_record_t* s);
// Behind kilni_program_survey: fills `leaves` and `copy_groups`.
void kilni_program_copies_survey(kilni_program_lowering_t* w);
// The instruction that an async_wait needs beside its barrier; NULL: none.
const char* kilni_program_copies_wait(const kilni_program_lowering_t* w,
                                      uint32_t statement);

// ---- program_together.c: threads that were driven apart ----

// Behind kilni_program_survey.
void kilni_program_together_survey(kilni_program_lowering_t* w);
// In front of the body, where threads may end before others (`ends`).
void kilni_program_here_begin(kilni_program_lowering_t* w, bool ends);
// In front of a branch on `c`: who goes where; 0 where nobody asks.
typedef struct kilni_program_here_t {
  kilni_program_value_t body;
  kilni_program_value_t other;
  kilni_program_value_t behind;
} kilni_program_here_t;
kilni_program_here_t kilni_program_here_if(kilni_program_lowering_t* w,
                                           kilni_program_value_t c,
                                           uint32_t index);
// Behind another statement: whether it is known yet.
void kilni_program_here_behind(kilni_program_lowering_t* w, uint32_t index);
// Who goes into a statement that those do that have not returned.
kilni_program_value_t kilni_program_here_live(kilni_program_lowering_t* w,
                                              uint32_t index);
// In front of a loop: what is `here` in it. At its head _round, at its end
// _again.
kilni_program_value_t kilni_program_here_loop(kilni_program_lowering_t* w,
                                              uint32_t list);
void kilni_program_here_round(kilni_program_lowering_t* w,
                              kilni_program_value_t c);
void kilni_program_here_again(kilni_program_lowering_t* w,
                              kilni_program_value_t here, uint32_t list);
// Those who come here together, for kilni_program_meet_again.
kilni_program_value_t kilni_program_apart(kilni_program_lowering_t* w);
// The same in front of a statement, if it may drive them apart; 0 if not.
kilni_program_value_t kilni_program_statement_apart(kilni_program_lowering_t* w,
                                                    uint32_t index);
void kilni_program_meet_again(kilni_program_lowering_t* w,
                              kilni_program_value_t group);

// ---- program_avoid.c: what ptxas gets wrong ----

// The operands of a `min` or `max`; of a comparison for (in)equality.
void kilni_program_avoid_minus(kilni_program_lowering_t* w,
                               kilni_program_value_t* x,
                               kilni_program_value_t* y);
void kilni_program_avoid_clamp(kilni_program_lowering_t* w,
                               kilni_program_value_t* x,
                               kilni_program_value_t* y);
// Another way to x - y, to select(c, x, y), to a cast; 0: there is no need.
kilni_program_value_t kilni_program_avoid_difference(
    kilni_program_lowering_t* w, kilni_program_value_t x,
    kilni_program_value_t y);
kilni_program_value_t kilni_program_avoid_choice(kilni_program_lowering_t* w,
                                                 kilni_program_value_t c,
                                                 kilni_program_value_t x,
                                                 kilni_program_value_t y);
kilni_program_value_t kilni_program_avoid_conversion(
    kilni_program_lowering_t* w, uint8_t type, kilni_program_value_t x);

// ---- program_meet.c: what threads do together ----

void kilni_program_barrier(kilni_program_lowering_t* w);
void kilni_program_grid_barrier(kilni_program_lowering_t* w);
void kilni_program_subgroup_barrier(kilni_program_lowering_t* w);
// Before anything of a program with grid barriers; behind all of it.
void kilni_program_grid_begin(kilni_program_lowering_t* w);
void kilni_program_grid_leave(kilni_program_lowering_t* w);
void kilni_program_async_copy(
    kilni_program_lowering_t* w,
    const kilni_program_statement_record_t* statement);
void kilni_program_async_wait(kilni_program_lowering_t* w, uint32_t statement);
void kilni_program_trap(kilni_program_lowering_t* w, kilni_program_value_t tag,
                        kilni_program_value_t address);
// A parameter that is an address in global memory.
kilni_program_value_t kilni_program_pointer(kilni_program_lowering_t* w,
                                            uint32_t number);
kilni_program_value_t kilni_program_local_index(kilni_program_lowering_t* w);
kilni_program_value_t kilni_program_id(kilni_program_lowering_t* w, uint32_t id,
                                       uint32_t axis);
// The work size of an axis, u32.
kilni_program_value_t kilni_program_lower_work(kilni_program_lowering_t* w,
                                               uint32_t axis);

// ---- program_rounds.c: a kernel that repeats its program ----

// Whether this parameter of the program can be its flag: the buffer's index, or
// 0 after a failure that is remembered.
uint32_t kilni_program_rounds_flag(kilni_program_lowering_t* w,
                                   uint32_t parameter);
// Where blocks keep the flag.
void kilni_program_rounds_place(kilni_program_lowering_t* w);
// A thread writes `value` to the flag, where `guard` holds or is 0; false if
// this is no flag that a thread keeps to itself.
bool kilni_program_rounds_tell(kilni_program_lowering_t* w,
                               const kilni_dispatch_place_t* place,
                               kilni_program_value_t value,
                               kilni_program_value_t guard);
// All rounds; `item` writes what a block does in one of them. Threads that are
// through go to `end`.
void kilni_program_rounds_body(kilni_program_lowering_t* w,
                               const kilni_program_survey_t* survey,
                               void (*item)(kilni_program_lowering_t* w));

// ---- program_ptx.c ----

// Marks what is used and writes the text into the arena. NULL on failure.
char* kilni_program_ptx_write(kilni_program_lowering_t* w, const char* entry,
                              size_t* out_size);

// ---- program_lower.c ----

// Adds a parameter of the kernel: which one it is.
uint32_t kilni_program_parameter(kilni_program_lowering_t* w, uint32_t kind,
                                 uint32_t index, uint8_t type);

// Whether anything but loads and stores of the program is done to a buffer: it
// is an argument, or atomics work on it.
bool kilni_program_is_passed_on(const kilni_program_ir_t* ir, uint32_t buffer);

#endif  // KILN_SRC_PROGRAM_LOWER_PROGRAM_LOWERING_H_
