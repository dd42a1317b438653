// SPDX-License-Identifier: Apache-2.0
//
// cli: shared by the reader's two files; not included elsewhere.
#ifndef KILN_SRC_CLI_GRAPH_SKETCH_INSIDE_H_
#define KILN_SRC_CLI_GRAPH_SKETCH_INSIDE_H_

#include "cli/graph_sketch.h"

typedef enum kilni_cli_token_kind_t {
  KILNI_CLI_TOKEN_END = 0,
  KILNI_CLI_TOKEN_LINE,
  KILNI_CLI_TOKEN_NAME,
  KILNI_CLI_TOKEN_NUMBER,
  KILNI_CLI_TOKEN_STRING,
  KILNI_CLI_TOKEN_ARROW,  // ->
  KILNI_CLI_TOKEN_INTO,   // <-
  KILNI_CLI_TOKEN_DOTS,   // ..
  KILNI_CLI_TOKEN_SIGN    // one character
} kilni_cli_token_kind_t;

// A part of the text. one-thread
typedef struct kilni_cli_token_t {
  kilni_cli_token_kind_t kind;
  const char* at;
  size_t size;
  uint32_t line;
  uint32_t column;
} kilni_cli_token_t;

typedef enum kilni_cli_symbol_kind_t {
  KILNI_CLI_SYMBOL_CODE = 0,
  KILNI_CLI_SYMBOL_BUFFER,
  KILNI_CLI_SYMBOL_EVENT,
  KILNI_CLI_SYMBOL_GRAPH,
  KILNI_CLI_SYMBOL_CONDITION,
  KILNI_CLI_SYMBOL_NODE
} kilni_cli_symbol_kind_t;

// A name that was declared. one-thread
typedef struct kilni_cli_symbol_t {
  const char* text;  // NULL: free
  uint32_t scope;
  uint32_t index;
  kilni_cli_symbol_kind_t kind;
  uint32_t line;
} kilni_cli_symbol_t;

// The reader's state. one-thread
typedef struct kilni_cli_sketcher_t {
  kilni_cli_sketch_t* sketch;
  kilni_cli_error_t* error;
  const char* at;  // after `token`
  const char* end;
  const char* counted;  // the characters before it are counted
  uint32_t column;      // of `counted`
  const char* looked;   // where the next word begins, as far as was read ahead
  bool looked_on;       // whether it continues the line before
  uint32_t line;
  uint32_t nesting;         // parentheses and brackets: lines do not end inside
  kilni_cli_token_t token;  // the next one
  kilni_cli_symbol_t* symbols;
  size_t symbol_space;  // a power of two
  size_t symbol_count;
  size_t names_used;
  kilni_cli_graph_edge_t* list;  // nodes of the edges that are being read
  uint32_t list_count;
  uint32_t reserved;
  const char* usage;  // of the statement that is being read
} kilni_cli_sketcher_t;

// ---- Tokens and errors (graph_sketch.c) ----

bool kilni_cli_sketcher_next(kilni_cli_sketcher_t* s);
// Is the next token this sign, or this word?
bool kilni_cli_sketcher_sees(const kilni_cli_sketcher_t* s, char sign);
bool kilni_cli_sketcher_sees_word(const kilni_cli_sketcher_t* s,
                                  const char* word);
// They must be present.
bool kilni_cli_sketcher_expect(kilni_cli_sketcher_t* s, char sign);
bool kilni_cli_sketcher_expect_kind(kilni_cli_sketcher_t* s,
                                    kilni_cli_token_kind_t kind,
                                    const char* what);
bool kilni_cli_sketcher_name(kilni_cli_sketcher_t* s, const char* what,
                             kilni_cli_name_t* out);
bool kilni_cli_sketcher_string(kilni_cli_sketcher_t* s, const char* what,
                               kilni_cli_name_t* out);
// The next token as it is written.
bool kilni_cli_sketcher_word(kilni_cli_sketcher_t* s, kilni_cli_name_t* out);
bool kilni_cli_sketcher_number(kilni_cli_sketcher_t* s, const char* what,
                               uint64_t least, uint64_t most, uint64_t* out);
// "expected `what`, not ...", with the statement's form.
bool kilni_cli_sketcher_unexpected(kilni_cli_sketcher_t* s, const char* what);
bool kilni_cli_sketcher_fail_at(kilni_cli_sketcher_t* s,
                                const kilni_cli_name_t* name, const char* fix,
                                const char* format, ...) KILN_PRINTF(4, 5);
// Space for one element more.
bool kilni_cli_sketcher_grow(kilni_cli_sketcher_t* s, void** array,
                             uint32_t count, uint32_t most, size_t size,
                             const char* what);

// ---- Names (graph_sketch.c) ----

// What a name means in `scope`, or NULL.
const kilni_cli_symbol_t* kilni_cli_sketcher_find(const kilni_cli_sketcher_t* s,
                                                  const char* text,
                                                  uint32_t scope);
// The name must not be visible in that scope.
bool kilni_cli_sketcher_is_new(kilni_cli_sketcher_t* s,
                               const kilni_cli_name_t* name, uint32_t scope);
bool kilni_cli_sketcher_declare(kilni_cli_sketcher_t* s,
                                const kilni_cli_name_t* name, uint32_t scope,
                                kilni_cli_symbol_kind_t kind, uint32_t index);
// The index of what the name must mean.
bool kilni_cli_sketcher_resolve(kilni_cli_sketcher_t* s,
                                const kilni_cli_name_t* name, uint32_t scope,
                                kilni_cli_symbol_kind_t kind,
                                uint32_t* out_index);

// ---- Statements (graph_sketch_read.c) ----

// Everything up to the end, or to the closing brace.
bool kilni_cli_sketcher_block(kilni_cli_sketcher_t* s, uint32_t scope,
                              uint32_t depth);

// An analyzer reads one file at a time: these are always false.
#ifdef __clang_analyzer__
#define kilni_cli_sketcher_fail_at(...) \
  (kilni_cli_sketcher_fail_at(__VA_ARGS__), false)
#define kilni_cli_sketcher_unexpected(...) \
  (kilni_cli_sketcher_unexpected(__VA_ARGS__), false)
#endif

#endif  // KILN_SRC_CLI_GRAPH_SKETCH_INSIDE_H_
