// SPDX-License-Identifier: Apache-2.0
//
// program: the state that the files of the text reader share in one reading.
//
// Anything that could not be read has index 0, and whatever holds it is not
// made either: an error is told once, where it is. `panic` is set while the
// text itself is not understood, until the next statement; nothing is told and
// nothing is taken meanwhile.
#ifndef KILN_SRC_PROGRAM_TEXT_PROGRAM_READER_H_
#define KILN_SRC_PROGRAM_TEXT_PROGRAM_READER_H_

#include "kiln/program.h"
#include "program/ir/program_ir.h"
#include "program/ir/program_names.h"
#include "program/text/program_lexer.h"

enum {
  KILNI_TEXT_MAX_BYTES = 4 << 20,
  KILNI_TEXT_MAX_NESTING = KILNI_IR_MAX_NESTING,  // of statements
  // Of parentheses, calls and signs in front: what is printed of the deepest
  // expression has two for each of its levels.
  KILNI_TEXT_MAX_DEPTH = 2 * KILNI_IR_MAX_DEPTH + 2,
  KILNI_TEXT_MAX_NAME = KILNI_IR_MAX_NAME,
  KILNI_TEXT_MAX_LIST = KILNI_IR_MAX_CALL,
  KILNI_TEXT_MAX_PARAMETERS = KILNI_IR_MAX_PARAMETERS,
};

// What a name stands for.
typedef enum kilni_program_symbol_kind_t {
  KILNI_SYMBOL_NONE,
  // Declared by the text. `index` is the record.
  KILNI_SYMBOL_VARIABLE,
  KILNI_SYMBOL_BUFFER,
  KILNI_SYMBOL_SCALAR,
  KILNI_SYMBOL_FUNCTION,
  KILNI_SYMBOL_CONST,   // an expression
  KILNI_SYMBOL_TYPE,    // KILN_PROGRAM_TYPE_*
  KILNI_SYMBOL_BROKEN,  // its declaration was not understood
  // Words of the language. `index` is the operator.
  KILNI_SYMBOL_KEYWORD,    // KILNI_KEYWORD_*
  KILNI_SYMBOL_TYPE_WORD,  // KILN_PROGRAM_TYPE_*
  KILNI_SYMBOL_UNARY,
  KILNI_SYMBOL_BINARY,
  KILNI_SYMBOL_ATOMIC,
  KILNI_SYMBOL_SUBGROUP,
  KILNI_SYMBOL_ID,
  KILNI_SYMBOL_BITCAST,   // KILN_PROGRAM_TYPE_*
  KILNI_SYMBOL_INFINITY,  // KILN_PROGRAM_TYPE_*
  KILNI_SYMBOL_NAN,       // KILN_PROGRAM_TYPE_*
  KILNI_SYMBOL_BOOL,      // 0, 1
  KILNI_SYMBOL_SELECT,
  KILNI_SYMBOL_FMA,
  KILNI_SYMBOL_LENGTH,  // the type of its result
} kilni_program_symbol_kind_t;

#define KILNI_KEYWORD_ENUM(NAME, spelling) KILNI_KEYWORD_##NAME,
enum { KILNI_KEYWORDS(KILNI_KEYWORD_ENUM) KILNI_KEYWORD_COUNT };

typedef struct kilni_program_symbol_t {
  kiln_string_view_t name;
  uint32_t hash;
  uint32_t next;  // in its bucket
  uint32_t kind;  // KILNI_SYMBOL_*
  uint32_t index;
} kilni_program_symbol_t;

enum { KILNI_SYMBOL_BUCKETS = 1024 };

// All names that mean something here, the innermost last.
typedef struct kilni_program_symbols_t {
  kilni_program_symbol_t* items;
  size_t count;
  size_t capacity;
  uint32_t buckets[KILNI_SYMBOL_BUCKETS];
} kilni_program_symbols_t;

// Offsets in the text of the records of one table, by index.
typedef struct kilni_program_places_t {
  uint32_t* items;
  size_t capacity;
} kilni_program_places_t;

typedef struct kilni_program_reader_t {
  kilni_program_ir_t* ir;
  kiln_allocator_t allocator;
  kiln_program_report_t* report;
  kiln_string_view_t text;
  kilni_program_lexer_t lexer;
  kilni_program_token_t token;  // the next one
  uint32_t end;                 // of the last one
  kilni_program_symbols_t symbols;
  // By KILNI_IR_*; in the place of the program itself: how deep each
  // expression is.
  kilni_program_places_t places[KILNI_IR_KIND_COUNT];
  const kiln_program_define_t* defines;
  uint32_t define_count;
  uint64_t defines_used;  // bit i: that define found its name
  uint32_t nesting;       // of statements
  uint32_t depth;         // of an expression
  uint16_t function;      // whose body is read; 0: the program's
  uint8_t result_type;    // of that function
  uint32_t told;          // errors before the statement that is read
  const char* in_define;  // the name of the define that is read, or NULL
  bool panic;
  bool stopped;  // too many errors, or a limit
} kilni_program_reader_t;

// ---- program_reader.c: errors, tokens, places ----

// Tells an error at an offset: `rule` 0 for the text itself. No panic by it.
void kilni_program_reader_error(kilni_program_reader_t* reader, uint32_t at,
                                uint32_t rule, const char* fix,
                                const char* format, ...) KILN_PRINTF(5, 6);
void kilni_program_reader_note(kilni_program_reader_t* reader, uint32_t at,
                               uint32_t rule, const char* detail);
// "expected X, found Y" at the next token; panics.
void kilni_program_reader_expected(kilni_program_reader_t* reader,
                                   const char* what, const char* fix);
// Goes to the next token.
void kilni_program_reader_next(kilni_program_reader_t* reader);
bool kilni_program_reader_is_sign(const kilni_program_reader_t* reader,
                                  uint32_t sign);
// Whether these signs stand directly in front of the next token.
bool kilni_program_reader_is_behind(const kilni_program_reader_t* reader,
                                    const char* signs);
bool kilni_program_reader_is_word(const kilni_program_reader_t* reader,
                                  const char* word);
// True and past it where the next token is that.
bool kilni_program_reader_take_sign(kilni_program_reader_t* reader,
                                    uint32_t sign);
bool kilni_program_reader_take_word(kilni_program_reader_t* reader,
                                    const char* word);
// The same, or an error that expects it.
bool kilni_program_reader_need_sign(kilni_program_reader_t* reader,
                                    uint32_t sign);
// A new name that is declared here: no word of the language, and not visible
// yet. The token is taken either way.
bool kilni_program_reader_need_new_name(kilni_program_reader_t* reader,
                                        const char* of_what,
                                        kiln_string_view_t* out_name);
// One level more of statements, or of an expression; false, with an error,
// where that is one too many.
bool kilni_program_reader_nest(kilni_program_reader_t* reader);
bool kilni_program_reader_enter(kilni_program_reader_t* reader);
// From here on a statement or declaration is read.
void kilni_program_reader_begin(kilni_program_reader_t* reader);
// Goes behind the statement that was not understood, and calms the panic.
void kilni_program_reader_recover(kilni_program_reader_t* reader);

// Remembers, and gives, where record `index` of a table stands.
void kilni_program_reader_place(kilni_program_reader_t* reader, uint32_t kind,
                                uint32_t index, uint32_t at);
uint32_t kilni_program_reader_placed(const kilni_program_reader_t* reader,
                                     uint32_t kind, uint32_t index);

// ---- program_symbols.c: names ----

// Fills in the words of the language.
kiln_status_t kilni_program_symbols_init(kilni_program_reader_t* reader);
void kilni_program_symbols_deinit(kilni_program_reader_t* reader);
// NULL where the name means nothing.
const kilni_program_symbol_t* kilni_program_symbols_find(
    const kilni_program_reader_t* reader, kiln_string_view_t name);
void kilni_program_symbols_add(kilni_program_reader_t* reader,
                               kiln_string_view_t name, uint32_t kind,
                               uint32_t index);
// Forgets the names behind the first `count`.
void kilni_program_symbols_cut(kilni_program_reader_t* reader, size_t count);
// Whether a word of the language is spelled like that.
bool kilni_program_symbol_is_word(uint32_t kind);

// ---- program_hints.c: what to write in the place of what was found ----

// NULL where there is nothing to say. For a sign: the next token is not it. For
// a name: the next token stands behind it.
const char* kilni_program_hint_sign(const kilni_program_reader_t* reader,
                                    uint32_t wanted);
const char* kilni_program_hint_value(const kilni_program_reader_t* reader);
const char* kilni_program_hint_statement(const kilni_program_reader_t* reader);
const char* kilni_program_hint_type(kiln_string_view_t found);
const char* kilni_program_hint_file(kiln_string_view_t found);
// A word of the language where a value should be.
const char* kilni_program_hint_word(kiln_string_view_t found);
const char* kilni_program_hint_name(const kilni_program_reader_t* reader,
                                    kiln_string_view_t found, char text[120]);

// ---- program_expression.c ----

// Reads an expression. The result may be a literal, or made of such, that has
// no type yet (kilni_program_reader_settle). 0 after an error.
uint32_t kilni_program_reader_expression(kilni_program_reader_t* reader);
// Gives `expr` the type where it has none yet: `type`, or for NONE its own
// choice (u32, i32 with a minus, f32 with a point). The same index, or 0.
uint32_t kilni_program_reader_settle(kilni_program_reader_t* reader,
                                     uint32_t expr, uint32_t type);
// Whether it has no type yet and a number with a point in it.
bool kilni_program_reader_has_point(kilni_program_reader_t* reader,
                                    uint32_t expr);
// Reads an expression and settles it.
uint32_t kilni_program_reader_typed(kilni_program_reader_t* reader,
                                    uint32_t type);
// An expression of constants, reduced to a literal; 0 after an error.
uint32_t kilni_program_reader_constant(kilni_program_reader_t* reader,
                                       uint32_t type);
uint64_t kilni_program_reader_literal(const kilni_program_reader_t* reader,
                                      uint32_t expr);

// Adds an expression that stands at an offset.
uint32_t kilni_program_reader_add(kilni_program_reader_t* reader, uint32_t at,
                                  kilni_program_expr_record_t record);
// A binary operator with operands whose types are settled as they go together.
uint32_t kilni_program_reader_binary(kilni_program_reader_t* reader,
                                     uint32_t at, uint32_t op, uint32_t left,
                                     uint32_t right);

uint32_t kilni_program_reader_unary(kilni_program_reader_t* reader, uint32_t at,
                                    uint32_t op, uint32_t operand);
// Of two operands of one type: one without takes the other's. False after an
// error.
bool kilni_program_reader_together(kilni_program_reader_t* reader,
                                   uint32_t* left, uint32_t* right);

// ---- program_words.c: names and calls in expressions ----

// An expression that begins with the name that is the next token.
uint32_t kilni_program_reader_name(kilni_program_reader_t* reader);
// A type: a word or an alias; NONE after an error.
uint32_t kilni_program_reader_type(kilni_program_reader_t* reader);
// The name of a buffer; 0 after an error.
uint32_t kilni_program_reader_buffer(kilni_program_reader_t* reader);

// ---- program_statement.c ----

// A body in braces; its first statement, 0 for an empty one. Arrays may stand
// at its head where `arrays`.
uint32_t kilni_program_reader_body(kilni_program_reader_t* reader, bool arrays);

// ---- program_declare.c ----

// The whole file.
void kilni_program_reader_file(kilni_program_reader_t* reader);

#endif  // KILN_SRC_PROGRAM_TEXT_PROGRAM_READER_H_
