// SPDX-License-Identifier: Apache-2.0
//
// cli: graph files: text in, a tree out.
//
// The grammar is on the page docs/cli/graph.md. Names are resolved, cycles and
// duplicate edges are found, and every error points at its line and column.
// Pure: opens no file and queries no device.
#ifndef KILN_SRC_CLI_GRAPH_SKETCH_H_
#define KILN_SRC_CLI_GRAPH_SKETCH_H_

#include "cli/cli_literal.h"

// No node, no scope.
#define KILNI_CLI_GRAPH_NONE UINT32_MAX

// Limits of a graph file.
#define KILNI_CLI_GRAPH_MAX_BYTES ((size_t)1 << 20)
enum {
  KILNI_CLI_GRAPH_MAX_CODES = 64,
  KILNI_CLI_GRAPH_MAX_BUFFERS = 256,
  KILNI_CLI_GRAPH_MAX_CONDITIONS = 256,
  KILNI_CLI_GRAPH_MAX_EVENTS = 256,
  KILNI_CLI_GRAPH_MAX_NODES = 4096,
  KILNI_CLI_GRAPH_MAX_ALL_NODES = 65536,  // named graphs as often as used
  KILNI_CLI_GRAPH_MAX_SCOPES = 1024,
  KILNI_CLI_GRAPH_MAX_EDGES = 32768,
  KILNI_CLI_GRAPH_MAX_ARGUMENTS = 32768,
  KILNI_CLI_GRAPH_MAX_DEPTH = 16,
  KILNI_CLI_GRAPH_MAX_NAME = 63,
};

// A name or a file's name, and its place in the text. Borrowed.
// thread-compatible
typedef struct kilni_cli_name_t {
  const char* text;  // NUL-terminated
  uint32_t line;     // from 1; 0: was not given
  uint32_t column;   // from 1
} kilni_cli_name_t;

// `code`. thread-compatible
typedef struct kilni_cli_graph_code_t {
  kilni_cli_name_t name;
  kilni_cli_name_t file;
} kilni_cli_graph_code_t;

// `buffer`. thread-compatible
typedef struct kilni_cli_graph_buffer_t {
  kilni_cli_name_t name;
  kilni_cli_name_t in;      // line 0: starts at zero
  kilni_cli_name_t out;     // line 0: goes nowhere
  kilni_cli_shape_t shape;  // its type NONE: what `in` has
} kilni_cli_graph_buffer_t;

// `condition`. thread-compatible
typedef struct kilni_cli_graph_condition_t {
  kilni_cli_name_t name;
  uint32_t scope;
  bool has_first;
  uint32_t first;
  uint32_t user;  // the node that obeys it
} kilni_cli_graph_condition_t;

// `event`. thread-compatible
typedef struct kilni_cli_graph_event_t {
  kilni_cli_name_t name;
} kilni_cli_graph_event_t;

typedef enum kilni_cli_argument_kind_t {
  KILNI_CLI_ARGUMENT_BUFFER = 0,
  KILNI_CLI_ARGUMENT_MEMORY,  // of an `allocate` node
  KILNI_CLI_ARGUMENT_CONDITION,
  KILNI_CLI_ARGUMENT_LENGTH,  // of a buffer
  KILNI_CLI_ARGUMENT_SCALAR
} kilni_cli_argument_kind_t;

// One argument of a kernel. thread-compatible
typedef struct kilni_cli_graph_argument_t {
  kilni_cli_argument_kind_t kind;
  uint32_t index;  // of the buffer, node, condition
  kilni_cli_scalar_t scalar;
  kilni_cli_name_t name;  // as it was written
} kilni_cli_graph_argument_t;

// Elements of a buffer. thread-compatible
typedef struct kilni_cli_graph_part_t {
  uint32_t buffer;
  bool whole;
  uint64_t first;
  uint64_t end;  // the one after the last
  kilni_cli_name_t name;
} kilni_cli_graph_part_t;

typedef enum kilni_cli_graph_kind_t {
  KILNI_CLI_GRAPH_KERNEL = 0,
  KILNI_CLI_GRAPH_COPY,
  KILNI_CLI_GRAPH_FILL,
  KILNI_CLI_GRAPH_EMPTY,
  KILNI_CLI_GRAPH_ALLOCATE,
  KILNI_CLI_GRAPH_FREE,
  KILNI_CLI_GRAPH_CHILD,
  KILNI_CLI_GRAPH_HOST,
  KILNI_CLI_GRAPH_RECORD,
  KILNI_CLI_GRAPH_WAIT,
  KILNI_CLI_GRAPH_IF,
  KILNI_CLI_GRAPH_WHILE,
  KILNI_CLI_GRAPH_SWITCH,
  KILNI_CLI_GRAPH_REPEAT,  // of a sequence
  KILNI_CLI_GRAPH_KINDS
} kilni_cli_graph_kind_t;

// The word that declares one.
const char* kilni_cli_graph_kind_word(kilni_cli_graph_kind_t kind);

// A node; what is not of its kind is 0. thread-compatible
typedef struct kilni_cli_graph_node_t {
  kilni_cli_graph_kind_t kind;
  kilni_cli_name_t name;
  uint32_t scope;

  // A kernel.
  uint32_t code;
  kilni_cli_name_t entry;  // line 0: the file's only one
  uint32_t argument;       // the first
  uint32_t argument_count;
  bool has_grid;
  bool has_block;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  bool cooperative;

  kilni_cli_graph_part_t to;    // of a copy and a fill; the flag of a `repeat`
  kilni_cli_graph_part_t from;  // of a copy
  kilni_cli_scalar_t value;     // of a fill
  kilni_cli_shape_t shape;      // of an allocation
  kilni_cli_name_t text;        // of a host function
  uint32_t other;               // `free`: the allocation; `record`, `wait`: the
                                // event; others: the condition
  uint32_t rounds;              // of a `repeat`
  uint32_t body;                // `child`, ...: the first scope inside
  uint32_t body_count;
} kilni_cli_graph_node_t;

// An edge, by numbers of nodes. thread-compatible
typedef struct kilni_cli_graph_edge_t {
  uint32_t from;
  uint32_t to;
  kilni_cli_name_t at;  // the name of `to` where it was drawn
} kilni_cli_graph_edge_t;

// Braces: the whole file (0), a named graph, a body. Bodies of one node follow
// one another by `next`. thread-compatible
typedef struct kilni_cli_graph_scope_t {
  kilni_cli_name_t name;  // of a named graph
  uint32_t parent;        // the enclosing scope; NONE: none
  uint32_t next;          // body of the same node
  bool is_named;
  uint32_t nodes;  // with those inside, each as often as it is used
} kilni_cli_graph_scope_t;

// A graph file, read. one-thread
typedef struct kilni_cli_sketch_t {
  kilni_cli_graph_code_t* codes;
  kilni_cli_graph_buffer_t* buffers;
  kilni_cli_graph_condition_t* conditions;
  kilni_cli_graph_event_t* events;
  kilni_cli_graph_node_t* nodes;  // as they were declared
  kilni_cli_graph_edge_t* edges;
  kilni_cli_graph_argument_t* arguments;
  kilni_cli_graph_scope_t* scopes;
  uint32_t code_count;
  uint32_t buffer_count;
  uint32_t condition_count;
  uint32_t event_count;
  uint32_t node_count;
  uint32_t edge_count;
  uint32_t argument_count;
  uint32_t scope_count;
  bool is_sequence;  // its nodes are ordered by what they read and write
  const char* file;  // borrowed; for messages
  const char* text;  // borrowed
  size_t size;
  char* names;  // that everything borrows
} kilni_cli_sketch_t;

// Reads `size` bytes of text, which must outlive the sketch, as the name `file`
// must. BAD_DATA with line, column and a caret; LIMIT_EXCEEDED. Ended by
// deinit, also after a failure.
bool kilni_cli_sketch_init(kilni_cli_sketch_t* out, const char* file,
                           const char* text, size_t size,
                           kilni_cli_error_t* error);
void kilni_cli_sketch_deinit(kilni_cli_sketch_t* sketch);

// Fills `error` with what is wrong at a place in the text: "FILE:LINE:COLUMN:
// ...", the line, and a caret under it. Returns false.
bool kilni_cli_sketch_fail(const kilni_cli_sketch_t* sketch, uint32_t line,
                           uint32_t column, kiln_status_code_t code,
                           const char* fix, kilni_cli_error_t* error,
                           const char* format, ...) KILN_PRINTF(7, 8);

// Puts the place of `name` before the message of an existing error.
void kilni_cli_sketch_point(const kilni_cli_sketch_t* sketch,
                            const kilni_cli_name_t* name,
                            kilni_cli_error_t* error);

// An analyzer reads one file at a time: these are always false.
#ifdef __clang_analyzer__
#define kilni_cli_sketch_fail(...) (kilni_cli_sketch_fail(__VA_ARGS__), false)
#endif

#endif  // KILN_SRC_CLI_GRAPH_SKETCH_H_
