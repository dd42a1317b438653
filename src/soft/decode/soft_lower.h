// SPDX-License-Identifier: Apache-2.0
//
// soft: a function between its syntax tree and its decoded form: a list of
// operations over any number of virtual registers.
//
// Made by soft_decode*.c, put in order by soft_flow.c, combined by
// soft_combine.c, given slots by soft_slots.c, written out by soft_emit.c.
#ifndef KILN_SRC_SOFT_DECODE_SOFT_LOWER_H_
#define KILN_SRC_SOFT_DECODE_SOFT_LOWER_H_

#include "soft/code/soft_code_inside.h"

// What a word of an operation is.
typedef enum kilni_soft_role_t {
  KILNI_SOFT_ROLE_RAW = 0,
  KILNI_SOFT_ROLE_USE,       // a slot that is read: register or constant
  KILNI_SOFT_ROLE_DEF,       // a slot that is written
  KILNI_SOFT_ROLE_BOTH,      // read, then written
  KILNI_SOFT_ROLE_USE_PRED,  // a predicate that is read, perhaps negated
  KILNI_SOFT_ROLE_DEF_PRED
} kilni_soft_role_t;

typedef enum kilni_soft_low_kind_t {
  KILNI_SOFT_LOW_PLAIN = 0,
  KILNI_SOFT_LOW_BRANCH,  // to `target`, or on
  KILNI_SOFT_LOW_TABLE,   // brx: to one of `targets`
  KILNI_SOFT_LOW_END,     // control does not come out of it
  KILNI_SOFT_LOW_NOTHING  // counts, and nothing else
} kilni_soft_low_kind_t;

// A slot word with this bit is a constant.
#define KILNI_SOFT_CONSTANT_WORD 0x80000000u

enum {
  KILNI_SOFT_WORD_D,
  KILNI_SOFT_WORD_A,
  KILNI_SOFT_WORD_B,
  KILNI_SOFT_WORD_C,
  KILNI_SOFT_WORD_AUX,
  KILNI_SOFT_WORDS
};

// One operation. one-thread
typedef struct kilni_soft_low_t {
  uint32_t word[KILNI_SOFT_WORDS];
  uint8_t role[KILNI_SOFT_WORDS];
  uint8_t kind;  // kilni_soft_low_kind_t
  uint16_t op;
  uint8_t class_;    // kiln_soft_class_t of the PTX instruction it represents
  uint8_t guarded;   // represents one that a `count` before it counts
  uint32_t guard;    // predicate word, KILNI_SOFT_NONE
  uint32_t line;     //
  uint32_t counts;   // PTX instructions that it represents
  uint32_t target;   // an operation; after soft_flow.c a block
  uint32_t address;  // KILNI_SOFT_ADDRESS_*, joined to word C
} kilni_soft_low_t;

typedef enum kilni_soft_class_t {
  KILNI_SOFT_CLASS_32 = 0,
  KILNI_SOFT_CLASS_64,
  KILNI_SOFT_CLASS_PRED
} kilni_soft_class_t;

// A virtual register. one-thread
typedef struct kilni_soft_vreg_t {
  uint8_t class_;     // kilni_soft_class_t
  uint8_t is_fixed;   // a parameter word: it has a place of its own
  uint8_t is_temp;    // never lives outside one PTX instruction
  uint8_t bits;       // as declared
  uint32_t defs;      // operations that write it
  uint32_t constant;  // constant word that it always is, or KILNI_SOFT_NONE
  uint32_t slot;      // its place, in units of its class
} kilni_soft_vreg_t;

// A stretch of operations that control enters at the top. one-thread
typedef struct kilni_soft_flow_block_t {
  uint32_t first;  // operations [first, last)
  uint32_t last;
  uint32_t branch;  // block of the last operation's target, or NONE
  uint32_t fall;    // block that control falls into, or NONE
  uint32_t jumped;  // it is reached other than by falling into it
  uint32_t place;   // its number in the new order; NONE: unreachable
} kilni_soft_flow_block_t;

// A function being lowered. one-thread
typedef struct kilni_soft_lower_t {
  const kiln_host_t* host;
  const kilni_image_ptx_module_t* module;
  const kilni_image_ptx_function_t* source;
  kilni_soft_code_t* code;
  kilni_soft_function_t* out;
  const uint32_t* param_offsets;  // of entry parameters, by variable
  kiln_status_t status;           // the first failure

  kilni_soft_low_t* lows;
  size_t low_count, low_capacity;
  kilni_soft_vreg_t* vregs;
  size_t vreg_count, vreg_capacity;
  kilni_soft_constant_t* constants;
  size_t constant_count, constant_capacity;
  uint32_t* constant_next;
  size_t constant_next_capacity;
  uint32_t constant_heads[256];
  kilni_soft_call_t* calls;
  size_t call_count, call_capacity;
  kilni_soft_pass_t* passes;  // `slot` is a vreg until it is written out
  size_t pass_count, pass_capacity;
  uint32_t* targets;  // of brx: labels, then operations, then blocks
  size_t target_count, target_capacity;
  uint32_t* shared;
  size_t shared_count, shared_capacity;
  kilni_soft_flow_block_t* blocks;
  size_t block_count, block_capacity;
  uint32_t* order;  // blocks in their new order
  size_t order_count, order_capacity;

  uint32_t* register_vregs;  // first vreg of each register
  uint32_t* variable_words;  // first word of each .param variable, or
                             // the offset of a .local one
  uint32_t* param_places;    // of each .param variable whose address is taken,
                             // where in local memory it is; else NONE
  uint32_t first_variable;   // the variables in the map above:
  uint32_t variable_count;   // parameters, returns and body
  uint32_t fixed_words;      // parameter words so far
  uint32_t frame_words;      // bytes of slots before the parameter words

  // Of the instruction being lowered.
  uint32_t guard;
  uint32_t line;
  uint32_t count_low;    // the `count` operation that may be extended
  uint32_t count_guard;  //

  kilni_soft_low_t scrap;  // written to when memory is exhausted

  // What the engine does not execute.
  uint32_t refused_count;
  uint32_t refused_line;
  bool refused_undefined;  // it is defined in no file that was given
  char refused_text[256];
} kilni_soft_lower_t;

// soft_lower.c: building.
uint32_t kilni_soft_vreg_new(kilni_soft_lower_t* lower, uint32_t class_,
                             uint32_t bits);
uint32_t kilni_soft_temp(kilni_soft_lower_t* lower, uint32_t class_);
// A constant's word.
uint32_t kilni_soft_constant(kilni_soft_lower_t* lower,
                             const kilni_soft_constant_t* constant);
uint32_t kilni_soft_value(kilni_soft_lower_t* lower, uint64_t value, bool wide);
// A new operation under the current guard; never NULL (a scrap one on failure).
kilni_soft_low_t* kilni_soft_low(kilni_soft_lower_t* lower, uint32_t op);
void kilni_soft_low_word(kilni_soft_low_t* low, uint32_t at, uint32_t word,
                         uint32_t role);
// d, a, b: common shapes.
kilni_soft_low_t* kilni_soft_low_unary(kilni_soft_lower_t* lower, uint32_t op,
                                       uint32_t d, uint32_t a, uint32_t aux);
kilni_soft_low_t* kilni_soft_low_binary(kilni_soft_lower_t* lower, uint32_t op,
                                        uint32_t d, uint32_t a, uint32_t b);
void kilni_soft_refuse(kilni_soft_lower_t* lower, const char* format, ...)
    KILN_PRINTF(2, 3);
// The same of a function or variable that only is declared.
void kilni_soft_refuse_undefined(kilni_soft_lower_t* lower, const char* what,
                                 const char* name);
void kilni_soft_note_shared(kilni_soft_lower_t* lower, uint32_t variable);
bool kilni_soft_lower_grow(kilni_soft_lower_t* lower, size_t wanted,
                           size_t size, size_t* capacity, void** array);
void kilni_soft_lower_deinit(kilni_soft_lower_t* lower);

#define KILNI_SOFT_GROW(lower, array, count, capacity)             \
  kilni_soft_lower_grow((lower), (count), sizeof(*(lower)->array), \
                        &(lower)->capacity, (void**)(void*)&(lower)->array)

// soft_operand.c: operands of the tree as words.
uint32_t kilni_soft_use(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand, bool wide,
                        uint32_t type);
uint32_t kilni_soft_use_pred(kilni_soft_lower_t* lower,
                             const kilni_image_ptx_operand_t* operand);
uint32_t kilni_soft_def_pred(kilni_soft_lower_t* lower,
                             const kilni_image_ptx_operand_t* operand);
// The register to write a result of `wide` lanes to; where the operand's own
// does not fit, a temporary that `_done` then converts.
uint32_t kilni_soft_def(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand, bool wide);
void kilni_soft_def_done(kilni_soft_lower_t* lower,
                         const kilni_image_ptx_operand_t* operand,
                         uint32_t word, bool wide, bool is_signed);
uint32_t kilni_soft_register_bits(const kilni_soft_lower_t* lower,
                                  const kilni_image_ptx_operand_t* operand);
// The address of a variable plus bytes, as a 64-bit word.
uint32_t kilni_soft_variable_address(kilni_soft_lower_t* lower, uint32_t index,
                                     uint64_t offset, bool generic);
void kilni_soft_special(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand, uint32_t d,
                        bool wide);

// The halves of a 128-bit register; false if `operand` is none.
bool kilni_soft_halves(const kilni_soft_lower_t* lower,
                       const kilni_image_ptx_operand_t* operand,
                       kilni_image_ptx_operand_t out_halves[2]);
// An address as one 64-bit word; false after refusing it.
bool kilni_soft_address(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* address,
                        uint32_t space, uint32_t* out_word);
// The first of a `d|p` pair, and the second if there is one.
const kilni_image_ptx_operand_t* kilni_soft_split(
    const kilni_soft_lower_t* lower, const kilni_image_ptx_operand_t* operand,
    const kilni_image_ptx_operand_t** out_second);

// soft_decode*.c: instructions, by kind. Each lowers one instruction.
typedef struct kilni_soft_source_t {
  const kilni_image_ptx_instruction_t* ins;
  const kilni_image_ptx_form_t* form;
  const kilni_image_ptx_operand_t* operands;
  uint32_t count;
} kilni_soft_source_t;
bool kilni_soft_form_has(const kilni_image_ptx_form_t* form, uint32_t modifier);
uint32_t kilni_soft_form_type(const kilni_image_ptx_form_t* form,
                              uint32_t number);
void kilni_soft_decode_memory(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source);
void kilni_soft_decode_atomic(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source);
void kilni_soft_decode_move(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source);
void kilni_soft_decode_cvta(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source);
void kilni_soft_decode_compare(kilni_soft_lower_t* lower,
                               const kilni_soft_source_t* source);
void kilni_soft_decode_table(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source);
// What a compare does with its result: joined to `c` by a boolean operation
// (KILNI_PTX_MOD_NONE: not), written to p or to p|q.
uint32_t kilni_soft_boolean(kilni_soft_lower_t* lower, uint32_t modifier,
                            uint32_t a, uint32_t b);
void kilni_soft_write_compare(kilni_soft_lower_t* lower,
                              const kilni_image_ptx_operand_t* d, uint32_t t,
                              uint32_t boolean, uint32_t c);
void kilni_soft_write_preds(kilni_soft_lower_t* lower,
                            const kilni_image_ptx_operand_t* d, uint32_t yes,
                            uint32_t no);
// Gives `word` to the destination, extended as the form's type requires.
void kilni_soft_def_finish(kilni_soft_lower_t* lower,
                           const kilni_soft_source_t* source, uint32_t word,
                           bool wide);
bool kilni_soft_form_is_half(const kilni_image_ptx_form_t* form);
void kilni_soft_decode_half(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source);
void kilni_soft_decode_async(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source);
void kilni_soft_decode_matrix(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source);
void kilni_soft_decode_other(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source);
void kilni_soft_decode_video(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source);
void kilni_soft_decode_warp(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source);
void kilni_soft_decode_barrier(kilni_soft_lower_t* lower,
                               const kilni_soft_source_t* source);
void kilni_soft_decode_call(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source);
void kilni_soft_decode_return(kilni_soft_lower_t* lower);
void kilni_soft_decode_prologue(kilni_soft_lower_t* lower);
// Parameter words: `offset` bytes into a .param variable.
void kilni_soft_param_put(kilni_soft_lower_t* lower, uint32_t variable,
                          uint64_t offset, uint32_t bytes, uint32_t value);
uint32_t kilni_soft_param_get(kilni_soft_lower_t* lower, uint32_t variable,
                              uint64_t offset, uint32_t bytes);
uint32_t kilni_soft_variable_words(kilni_soft_lower_t* lower,
                                   uint32_t variable);
// Copies a parameter whose address is taken to its place in local memory.
void kilni_soft_param_to_local(kilni_soft_lower_t* lower, uint32_t variable);

// soft_decode.c: the whole of a function.
kiln_status_t kilni_soft_decode_function(kilni_soft_lower_t* lower);
// soft_flow.c: blocks and their order.
kiln_status_t kilni_soft_flow(kilni_soft_lower_t* lower);
// soft_combine.c: two operations as one.
kiln_status_t kilni_soft_combine(kilni_soft_lower_t* lower);
// soft_slots.c: places of virtual registers.
kiln_status_t kilni_soft_slots(kilni_soft_lower_t* lower);
// soft_emit.c: the decoded function.
kiln_status_t kilni_soft_emit(kilni_soft_lower_t* lower);
void kilni_soft_function_deinit(kiln_allocator_t allocator,
                                kilni_soft_function_t* function);

#endif  // KILN_SRC_SOFT_DECODE_SOFT_LOWER_H_
