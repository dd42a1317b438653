// SPDX-License-Identifier: Apache-2.0
//
// image: the state of one parse, shared by the reader's files.
//
// A step returns false once something is wrong; the reader then has the error
// and every step above returns false at once.
#ifndef KILN_SRC_IMAGE_PTX_READER_H_
#define KILN_SRC_IMAGE_PTX_READER_H_

#include <stdatomic.h>

#include "image/ptx_lexer.h"

// An array that grows. one-thread
typedef struct kilni_image_ptx_array_t {
  void* data;
  size_t capacity;
  uint32_t count;
  uint32_t element;  // bytes
} kilni_image_ptx_array_t;

// Everything a module owns; `module` is its public face. one-thread
typedef struct kilni_image_ptx_arena_t {
  kilni_image_ptx_module_t module;
  kiln_allocator_t allocator;
  atomic_uint references;
  kilni_image_ptx_array_t functions;
  kilni_image_ptx_array_t variables;
  kilni_image_ptx_array_t instructions;
  kilni_image_ptx_array_t operands;
  kilni_image_ptx_array_t forms;
  kilni_image_ptx_array_t modifiers;
  kilni_image_ptx_array_t registers;
  kilni_image_ptx_array_t labels;
  kilni_image_ptx_array_t tables;
  kilni_image_ptx_array_t entries;
  kilni_image_ptx_array_t relocations;
  kilni_image_ptx_array_t locations;
  kilni_image_ptx_array_t files;
  kilni_image_ptx_array_t bytes;  // of initialisers
  kilni_image_ptx_array_t
      text;  // of names, spellings and files, NUL-terminated
} kilni_image_ptx_arena_t;

typedef enum kilni_image_ptx_symbol_kind_t {
  KILNI_PTX_SYMBOL_NONE = 0,
  KILNI_PTX_SYMBOL_FUNCTION,
  KILNI_PTX_SYMBOL_VARIABLE,
  KILNI_PTX_SYMBOL_REGISTER,
  KILNI_PTX_SYMBOL_LABEL,
  KILNI_PTX_SYMBOL_TABLE
} kilni_image_ptx_symbol_kind_t;

// A distinct identifier. one-thread
typedef struct kilni_image_ptx_name_t {
  uint32_t offset;  // in the arena's text
  uint32_t size;
  uint32_t hash;
  uint32_t global_kind;  // of module scope
  uint32_t global_index;
  uint32_t binding;  // innermost local binding, or NONE
  uint32_t range;    // innermost `name<n>`, or NONE
} kilni_image_ptx_name_t;

// A local name in force. one-thread
typedef struct kilni_image_ptx_binding_t {
  uint32_t name;
  uint32_t kind;  // kilni_image_ptx_symbol_kind_t
  uint32_t index;
  uint32_t depth;
  uint32_t previous;
  uint8_t type;  // REGISTER: index is NONE until it is used
  uint8_t vector;
  uint16_t reserved;
  uint32_t line;
} kilni_image_ptx_binding_t;

// A `.reg .b32 %r<n>` in force. one-thread
typedef struct kilni_image_ptx_range_t {
  uint32_t name;
  uint32_t count;
  uint32_t first_slot;
  uint32_t depth;
  uint32_t previous;
  uint8_t type;
  uint8_t vector;
  uint16_t reserved;
  uint32_t line;
} kilni_image_ptx_range_t;

// A label used before it is known. one-thread
typedef struct kilni_image_ptx_pending_t {
  uint32_t name;
  uint32_t is_entry;  // in a table: index of an entry; else of an operand
  uint32_t index;
  uint32_t line;
  uint32_t column;
  uint32_t reserved;
  const char* start;
} kilni_image_ptx_pending_t;

// A constant expression's value. thread-compatible
typedef struct kilni_image_ptx_constant_t {
  uint64_t value;
  uint32_t immediate;  // kilni_image_ptx_immediate_t
  uint32_t reserved;
} kilni_image_ptx_constant_t;

// One parse. one-thread
typedef struct kilni_image_ptx_reader_t {
  kilni_image_ptx_lexer_t lexer;
  kilni_image_ptx_token_t token;  // the current one; the lexer is past it
  kilni_image_ptx_limits_t limits;
  kilni_image_ptx_arena_t* arena;
  kiln_allocator_t allocator;
  const char* name;
  kiln_status_t status;
  bool failed;

  kilni_image_ptx_array_t names;
  uint32_t* buckets;  // name index + 1; 0 is free
  size_t bucket_count;
  uint32_t* form_buckets;  // form index + 1
  size_t form_bucket_count;

  // Of the function at hand.
  kilni_image_ptx_array_t bindings;
  kilni_image_ptx_array_t ranges;
  kilni_image_ptx_array_t slots;  // register index + 1 of ranges' members
  kilni_image_ptx_array_t pending;
  kilni_image_ptx_array_t prototypes;  // variables, moved after the body's
  kilni_image_ptx_array_t children;    // operands of open brackets
  kilni_image_ptx_array_t spelling;    // the mnemonic being read
  kilni_image_ptx_array_t rules;       // of the forms
  uint32_t function;                   // NONE at module scope
  uint32_t depth;                      // scopes open
  uint32_t nesting;                    // brackets and operators open
  uint32_t location;                   // the last .loc
  uint32_t first_register;             // of the function
  uint32_t first_label;
  uint32_t first_table;
  uint32_t first_instruction;
  uint32_t reserved;
} kilni_image_ptx_reader_t;

// --- words (ptx_words.c) ---
uint32_t kilni_image_ptx_opcode_least(uint32_t opcode);
uint32_t kilni_image_ptx_opcode_most(uint32_t opcode);
uint32_t kilni_image_ptx_opcode_find(kiln_string_view_t text);
uint32_t kilni_image_ptx_modifier_find(kiln_string_view_t text);
uint32_t kilni_image_ptx_type_find(kiln_string_view_t text);
uint32_t kilni_image_ptx_space_find(kiln_string_view_t text);
uint32_t kilni_image_ptx_sreg_find(kiln_string_view_t text,
                                   uint64_t* out_number);

// --- what operands must be (ptx_rules.c, ptx_types.c, ptx_address.c) ---
// What the operands of one spelling must be. thread-compatible
typedef struct kilni_image_ptx_rule_t {
  const char* shapes;  // of ptx_rules.inc; NULL: not judged
  uint8_t types[2];    // kilni_image_ptx_type_t, as written
  uint8_t vector;      // 2, 4 or 8 of `.v2` and so on, else 1
  uint8_t space;       // kilni_image_ptx_space_t; NONE is generic
  uint8_t hint;        // 1: `.L2::cache_hint`, which takes one operand more
  uint8_t exact;       // 1: no register may be wider than its type
  uint16_t reserved;
} kilni_image_ptx_rule_t;

// Where an operand begins. thread-compatible
typedef struct kilni_image_ptx_place_t {
  const char* start;
  uint32_t line;
  uint32_t column;
} kilni_image_ptx_place_t;

// The operands of one instruction, being judged. one-thread
typedef struct kilni_image_ptx_judge_t {
  kilni_image_ptx_reader_t* reader;
  const kilni_image_ptx_rule_t* rule;
  const kilni_image_ptx_operand_t* operands;
  const kilni_image_ptx_place_t* places;
  uint32_t opcode;
  uint32_t count;
} kilni_image_ptx_judge_t;

// Fails at `at` where the spelling names a type or a space that the
// instruction does not work on.
bool kilni_image_ptx_rule_find(kilni_image_ptx_reader_t* reader,
                               const kilni_image_ptx_token_t* at,
                               uint32_t opcode, const uint16_t* modifiers,
                               uint32_t count,
                               kilni_image_ptx_rule_t* out_rule);
// Fails at `at` where modifiers of the spelling do not go together.
bool kilni_image_ptx_qualifiers_check(kilni_image_ptx_reader_t* reader,
                                      const kilni_image_ptx_token_t* at,
                                      uint32_t opcode,
                                      const uint16_t* modifiers,
                                      uint32_t count);
// Fails at the first operand that is not what the rule wants.
bool kilni_image_ptx_check_operands(const kilni_image_ptx_judge_t* judge);
bool kilni_image_ptx_check_address(const kilni_image_ptx_judge_t* judge,
                                   uint32_t index, bool is_written);
// "operand n of "x" must be <wanted>, and is <found>"; false.
bool kilni_image_ptx_fail_operand(const kilni_image_ptx_judge_t* judge,
                                  uint32_t index, const char* fix,
                                  const char* wanted, const char* found);
const kilni_image_ptx_register_t* kilni_image_ptx_register(
    const kilni_image_ptx_reader_t* reader,
    const kilni_image_ptx_operand_t* operand);
const kilni_image_ptx_variable_t* kilni_image_ptx_variable(
    const kilni_image_ptx_reader_t* reader,
    const kilni_image_ptx_operand_t* operand);

// --- errors, tokens, arrays (ptx_reader.c) ---
bool kilni_image_ptx_fail(kilni_image_ptx_reader_t* reader,
                          const kilni_image_ptx_token_t* at, const char* fix,
                          const char* format, ...) KILN_PRINTF(4, 5);
bool kilni_image_ptx_fail_limit(kilni_image_ptx_reader_t* reader,
                                const char* limit, uint64_t value);
bool kilni_image_ptx_fail_memory(kilni_image_ptx_reader_t* reader);
// "unexpected X, where Y belongs" at the current token.
bool kilni_image_ptx_fail_expected(kilni_image_ptx_reader_t* reader,
                                   const char* wanted);
bool kilni_image_ptx_next(kilni_image_ptx_reader_t* reader);
bool kilni_image_ptx_next_modifier(kilni_image_ptx_reader_t* reader);
bool kilni_image_ptx_is(const kilni_image_ptx_reader_t* reader,
                        uint32_t punctuation);
bool kilni_image_ptx_is_word(const kilni_image_ptx_reader_t* reader,
                             const char* word);
bool kilni_image_ptx_expect(kilni_image_ptx_reader_t* reader,
                            uint32_t punctuation);
// Consumes the punctuation if it is there.
bool kilni_image_ptx_accept(kilni_image_ptx_reader_t* reader,
                            uint32_t punctuation, bool* out_there);
// Appends `count` zeroed elements; NULL after an error.
void* kilni_image_ptx_push(kilni_image_ptx_reader_t* reader,
                           kilni_image_ptx_array_t* array, uint32_t count,
                           const char* limit_name, uint64_t limit);
bool kilni_image_ptx_enter(
    kilni_image_ptx_reader_t* reader);  // one nesting deeper
void kilni_image_ptx_leave(kilni_image_ptx_reader_t* reader);

// --- names and scopes (ptx_scope.c) ---
#define KILNI_PTX_AT(array, type, index) (&((type*)(array).data)[index])
// FNV-1a, its upper bits folded into those that choose a bucket.
uint32_t kilni_image_ptx_hash(kiln_string_view_t text);
bool kilni_image_ptx_intern(kilni_image_ptx_reader_t* reader,
                            kiln_string_view_t text, uint32_t* out_name);
kilni_image_ptx_name_t* kilni_image_ptx_name(
    const kilni_image_ptx_reader_t* reader, uint32_t name);
bool kilni_image_ptx_add_text(kilni_image_ptx_reader_t* reader,
                              kiln_string_view_t text, uint32_t* out_offset);
const char* kilni_image_ptx_text(const kilni_image_ptx_reader_t* reader,
                                 uint32_t offset);
// Declares a local name at the current depth; fails on a duplicate.
bool kilni_image_ptx_bind(kilni_image_ptx_reader_t* reader,
                          const kilni_image_ptx_token_t* at, uint32_t name,
                          uint32_t kind, uint32_t index,
                          kilni_image_ptx_binding_t** out_binding);
bool kilni_image_ptx_bind_range(kilni_image_ptx_reader_t* reader,
                                const kilni_image_ptx_token_t* at,
                                uint32_t name, uint32_t count, uint32_t type,
                                uint32_t vector);
// What an identifier means here; kind NONE if nothing.
bool kilni_image_ptx_resolve(kilni_image_ptx_reader_t* reader,
                             kiln_string_view_t text, uint32_t* out_kind,
                             uint32_t* out_index);
bool kilni_image_ptx_new_register(kilni_image_ptx_reader_t* reader,
                                  uint32_t name, uint32_t type, uint32_t vector,
                                  uint32_t line, uint32_t* out_index);
bool kilni_image_ptx_scope_open(kilni_image_ptx_reader_t* reader,
                                uint32_t* out_mark);
bool kilni_image_ptx_scope_close(kilni_image_ptx_reader_t* reader,
                                 uint32_t mark);
bool kilni_image_ptx_pend(kilni_image_ptx_reader_t* reader,
                          const kilni_image_ptx_token_t* at, uint32_t name,
                          bool is_entry, uint32_t index);

// --- constants (ptx_constant.c) ---
bool kilni_image_ptx_constant(kilni_image_ptx_reader_t* reader,
                              kilni_image_ptx_constant_t* out);
// An integer from 0 to `most`.
bool kilni_image_ptx_count(kilni_image_ptx_reader_t* reader, const char* what,
                           uint64_t most, uint64_t* out_value);

// --- declarations (ptx_declare.c, ptx_initialise.c) ---
typedef struct kilni_image_ptx_declaration_t {
  uint8_t space;
  uint8_t type;
  uint8_t vector;
  uint8_t linkage;
  uint8_t managed;
  uint8_t unified;
  uint8_t is_pointer;
  uint8_t pointer_space;
  uint32_t pointer_align;
  uint32_t align;  // 0 where not written
} kilni_image_ptx_declaration_t;

// `.space [.align n] [.vN] .type names ;` with the current token on its first
// word; `linkage` was written before it.
bool kilni_image_ptx_declare(kilni_image_ptx_reader_t* reader,
                             uint32_t linkage);
// ( .param .u32 a, ... ): appended to `variables`; the token is '('.
bool kilni_image_ptx_parameters(kilni_image_ptx_reader_t* reader, bool entry,
                                kilni_image_ptx_array_t* variables,
                                uint32_t* out_first, uint32_t* out_count);
bool kilni_image_ptx_attribute(kilni_image_ptx_reader_t* reader,
                               kilni_image_ptx_declaration_t* out);
bool kilni_image_ptx_initialiser(kilni_image_ptx_reader_t* reader,
                                 kilni_image_ptx_variable_t* variable);

// --- functions and instructions (ptx_function.c, ptx_instruction.c) ---
bool kilni_image_ptx_function(kilni_image_ptx_reader_t* reader,
                              uint32_t linkage);
// `mnemonic` was read; the token after it was lexed as a modifier.
bool kilni_image_ptx_instruction(kilni_image_ptx_reader_t* reader,
                                 const kilni_image_ptx_token_t* mnemonic);
// The token is '@'.
bool kilni_image_ptx_guarded(kilni_image_ptx_reader_t* reader);

// --- operands (ptx_operand.c) ---
void kilni_image_ptx_operand_init(kilni_image_ptx_operand_t* out,
                                  uint32_t kind);
bool kilni_image_ptx_operand(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                             kilni_image_ptx_operand_t* out);
// `(a, b)` of a call.
bool kilni_image_ptx_list(kilni_image_ptx_reader_t* reader,
                          kilni_image_ptx_operand_t* out);
bool kilni_image_ptx_file(kilni_image_ptx_reader_t* reader);
bool kilni_image_ptx_pragma(kilni_image_ptx_reader_t* reader);
bool kilni_image_ptx_section(kilni_image_ptx_reader_t* reader);

// An analyzer reads one file at a time: these are always false.
#ifdef __clang_analyzer__
#define kilni_image_ptx_fail(...) (kilni_image_ptx_fail(__VA_ARGS__), false)
#define kilni_image_ptx_fail_limit(...) \
  (kilni_image_ptx_fail_limit(__VA_ARGS__), false)
#define kilni_image_ptx_fail_memory(...) \
  (kilni_image_ptx_fail_memory(__VA_ARGS__), false)
#define kilni_image_ptx_fail_expected(...) \
  (kilni_image_ptx_fail_expected(__VA_ARGS__), false)
#define kilni_image_ptx_fail_operand(...) \
  (kilni_image_ptx_fail_operand(__VA_ARGS__), false)
#endif

#endif  // KILN_SRC_IMAGE_PTX_READER_H_
