// SPDX-License-Identifier: Apache-2.0
//
// cli: graph files: statements.
#include <string.h>

#include "cli/graph_sketch_inside.h"

#define MAX_DIM ((uint64_t)UINT32_MAX)

// ---- Parts of statements ----

// TYPE[N,...]. Without brackets, where that is allowed, `count` is 0.
static bool graph_sketch_read_read_shape(kilni_cli_sketcher_t* s,
                                         bool needs_extents,
                                         kilni_cli_shape_t* out) {
  kilni_cli_name_t name;
  const kilni_cli_token_t* t = &s->token;
  memset(out, 0, sizeof(*out));
  if (t->kind != KILNI_CLI_TOKEN_NAME) {
    return kilni_cli_sketcher_unexpected(s, "a type");
  }
  if (!kilni_cli_sketcher_word(s, &name)) return false;
  out->type = kilni_cli_type_find(name.text, strlen(name.text));
  if (out->type == KILNI_CLI_TYPE_NONE) {
    return kilni_cli_sketcher_fail_at(s, &name, kilni_cli_type_names(),
                                      "\"%s\" is not a type", name.text);
  }
  if (!needs_extents && !kilni_cli_sketcher_sees(s, '[')) return true;
  if (!kilni_cli_sketcher_expect(s, '[')) return false;
  do {
    uint64_t dim;
    if (out->rank != 0 && !kilni_cli_sketcher_expect(s, ',')) return false;
    if (out->rank == KILNI_CLI_MAX_RANK) {
      return kilni_cli_sketcher_fail_at(s, &name, "join some of them",
                                        "more than %d extents",
                                        KILNI_CLI_MAX_RANK);
    }
    if (!kilni_cli_sketcher_number(s, "an extent", 1, KILNI_CLI_MAX_DATA_BYTES,
                                   &dim)) {
      return false;
    }
    out->dims[out->rank++] = dim;
  } while (kilni_cli_sketcher_sees(s, ','));
  if (!kilni_cli_sketcher_expect(s, ']')) return false;
  if (kilni_cli_shape_finish(out, s->error)) return true;
  kilni_cli_sketch_point(s->sketch, &name, s->error);
  return false;
}

// X,Y,Z.
static bool read_dims(kilni_cli_sketcher_t* s, const char* what,
                      uint32_t out[3]) {
  out[1] = 1;
  out[2] = 1;
  for (int i = 0; i < 3; i++) {
    uint64_t value;
    if (i != 0) {
      if (!kilni_cli_sketcher_sees(s, ',')) return true;
      if (!kilni_cli_sketcher_next(s)) return false;
    }
    if (!kilni_cli_sketcher_number(s, what, 1, MAX_DIM, &value)) return false;
    out[i] = (uint32_t)value;
  }
  return true;
}

// BUFFER or BUFFER[FIRST..BEHIND].
static bool graph_sketch_read_read_part(kilni_cli_sketcher_t* s, uint32_t scope,
                                        kilni_cli_graph_part_t* out) {
  if (!kilni_cli_sketcher_name(s, "a buffer", &out->name) ||
      !kilni_cli_sketcher_resolve(s, &out->name, scope, KILNI_CLI_SYMBOL_BUFFER,
                                  &out->buffer)) {
    return false;
  }
  out->whole = !kilni_cli_sketcher_sees(s, '[');
  if (out->whole) return true;
  return kilni_cli_sketcher_expect(s, '[') &&
         kilni_cli_sketcher_number(s, "the first element", 0,
                                   KILNI_CLI_MAX_DATA_BYTES, &out->first) &&
         kilni_cli_sketcher_expect_kind(s, KILNI_CLI_TOKEN_DOTS, "`..`") &&
         kilni_cli_sketcher_number(s, "the element after the last",
                                   out->first + 1, KILNI_CLI_MAX_DATA_BYTES,
                                   &out->end) &&
         kilni_cli_sketcher_expect(s, ']');
}

// A typed number, true or false.
static bool graph_sketch_read_read_scalar(kilni_cli_sketcher_t* s,
                                          const kilni_cli_name_t* name,
                                          kilni_cli_scalar_t* out) {
  kilni_cli_value_t value;
  if (kilni_cli_value_parse(name->text, &value, s->error) && !value.is_length) {
    *out = value.scalar;
    return true;
  }
  kilni_cli_sketch_point(s->sketch, name, s->error);
  return false;
}

// ---- Declarations ----

static bool graph_sketch_read_read_code(kilni_cli_sketcher_t* s,
                                        uint32_t scope) {
  kilni_cli_sketch_t* k = s->sketch;
  s->usage = "`code NAME = \"FILE\"`";
  kilni_cli_graph_code_t code;
  memset(&code, 0, sizeof(code));
  if (!kilni_cli_sketcher_name(s, "a name for the code", &code.name) ||
      !kilni_cli_sketcher_expect(s, '=') ||
      !kilni_cli_sketcher_string(s, "a file's name in quotes", &code.file) ||
      !kilni_cli_sketcher_grow(s, (void**)&k->codes, k->code_count,
                               KILNI_CLI_GRAPH_MAX_CODES, sizeof(code),
                               "code files") ||
      !kilni_cli_sketcher_declare(s, &code.name, scope, KILNI_CLI_SYMBOL_CODE,
                                  k->code_count)) {
    return false;
  }
  k->codes[k->code_count++] = code;
  return true;
}

static bool read_files(kilni_cli_sketcher_t* s,
                       kilni_cli_graph_buffer_t* buffer) {
  for (;;) {
    bool is_in = kilni_cli_sketcher_sees_word(s, "in");
    if (!is_in && !kilni_cli_sketcher_sees_word(s, "out")) return true;
    kilni_cli_name_t* file = is_in ? &buffer->in : &buffer->out;
    if (file->line != 0) {
      return kilni_cli_sketcher_unexpected(s, "no second file");
    }
    if (!kilni_cli_sketcher_next(s) ||
        !kilni_cli_sketcher_string(s, "a file's name in quotes", file)) {
      return false;
    }
  }
}

static bool graph_sketch_read_read_buffer(kilni_cli_sketcher_t* s,
                                          uint32_t scope) {
  kilni_cli_sketch_t* k = s->sketch;
  s->usage = "`buffer NAME : TYPE[N,...] in \"FILE\" out \"FILE\"`";
  kilni_cli_graph_buffer_t buffer;
  memset(&buffer, 0, sizeof(buffer));
  if (!kilni_cli_sketcher_name(s, "a name for the buffer", &buffer.name)) {
    return false;
  }
  bool typed = kilni_cli_sketcher_sees(s, ':');
  if (typed && (!kilni_cli_sketcher_next(s) ||
                !graph_sketch_read_read_shape(s, false, &buffer.shape))) {
    return false;
  }
  if (!read_files(s, &buffer)) return false;
  if (buffer.shape.count == 0 && buffer.in.line == 0) {
    return kilni_cli_sketcher_fail_at(
        s, &buffer.name,
        "write its type and extents (NAME : f32[1024]), or the file that it "
        "starts as (NAME in \"FILE\")",
        "the size of the buffer \"%s\" is unknown", buffer.name.text);
  }
  if (!kilni_cli_sketcher_grow(s, (void**)&k->buffers, k->buffer_count,
                               KILNI_CLI_GRAPH_MAX_BUFFERS, sizeof(buffer),
                               "buffers") ||
      !kilni_cli_sketcher_declare(s, &buffer.name, scope,
                                  KILNI_CLI_SYMBOL_BUFFER, k->buffer_count)) {
    return false;
  }
  k->buffers[k->buffer_count++] = buffer;
  return true;
}

static bool graph_sketch_read_read_condition(kilni_cli_sketcher_t* s,
                                             uint32_t scope) {
  kilni_cli_sketch_t* k = s->sketch;
  s->usage = "`condition NAME`, or `condition NAME = N`";
  kilni_cli_graph_condition_t condition;
  memset(&condition, 0, sizeof(condition));
  condition.scope = scope;
  condition.user = KILNI_CLI_GRAPH_NONE;
  if (!kilni_cli_sketcher_name(s, "a name for the condition",
                               &condition.name)) {
    return false;
  }
  condition.has_first = kilni_cli_sketcher_sees(s, '=');
  uint64_t first = 0;
  if (condition.has_first &&
      (!kilni_cli_sketcher_next(s) ||
       !kilni_cli_sketcher_number(s, "the value that each launch starts with",
                                  0, UINT32_MAX, &first))) {
    return false;
  }
  condition.first = (uint32_t)first;
  if (!kilni_cli_sketcher_grow(s, (void**)&k->conditions, k->condition_count,
                               KILNI_CLI_GRAPH_MAX_CONDITIONS,
                               sizeof(condition), "conditions") ||
      !kilni_cli_sketcher_declare(s, &condition.name, scope,
                                  KILNI_CLI_SYMBOL_CONDITION,
                                  k->condition_count)) {
    return false;
  }
  k->conditions[k->condition_count++] = condition;
  return true;
}

static bool graph_sketch_read_read_event(kilni_cli_sketcher_t* s,
                                         uint32_t scope) {
  kilni_cli_sketch_t* k = s->sketch;
  s->usage = "`event NAME`";
  kilni_cli_graph_event_t event;
  memset(&event, 0, sizeof(event));
  if (!kilni_cli_sketcher_name(s, "a name for the event", &event.name) ||
      !kilni_cli_sketcher_grow(s, (void**)&k->events, k->event_count,
                               KILNI_CLI_GRAPH_MAX_EVENTS, sizeof(event),
                               "events") ||
      !kilni_cli_sketcher_declare(s, &event.name, scope, KILNI_CLI_SYMBOL_EVENT,
                                  k->event_count)) {
    return false;
  }
  k->events[k->event_count++] = event;
  return true;
}

// ---- Nodes ----

static bool graph_sketch_read_add_node(kilni_cli_sketcher_t* s,
                                       kilni_cli_graph_node_t* node,
                                       uint32_t* out_index) {
  kilni_cli_sketch_t* k = s->sketch;
  if (!kilni_cli_sketcher_grow(s, (void**)&k->nodes, k->node_count,
                               KILNI_CLI_GRAPH_MAX_NODES, sizeof(*node),
                               "nodes") ||
      !kilni_cli_sketcher_declare(s, &node->name, node->scope,
                                  KILNI_CLI_SYMBOL_NODE, k->node_count)) {
    return false;
  }
  *out_index = k->node_count;
  k->nodes[k->node_count++] = *node;
  k->scopes[node->scope].nodes++;
  return true;
}

// What a name among arguments means.
static bool read_argument_name(kilni_cli_sketcher_t* s, uint32_t scope,
                               kilni_cli_graph_argument_t* out) {
  const kilni_cli_symbol_t* symbol =
      kilni_cli_sketcher_find(s, out->name.text, scope);
  if (symbol == NULL) {
    kilni_cli_value_t value;
    out->kind = KILNI_CLI_ARGUMENT_SCALAR;
    if (kilni_cli_value_parse(out->name.text, &value, s->error) &&
        !value.is_length) {
      out->scalar = value.scalar;
      return true;
    }
    return kilni_cli_sketcher_fail_at(
        s, &out->name,
        "give a buffer, memory or a condition that is declared above, len(P), "
        "or a number with its type, such as 2.5f32",
        "there is no \"%s\" that a kernel can take", out->name.text);
  }
  out->index = symbol->index;
  if (symbol->kind == KILNI_CLI_SYMBOL_BUFFER) {
    out->kind = KILNI_CLI_ARGUMENT_BUFFER;
  } else if (symbol->kind == KILNI_CLI_SYMBOL_CONDITION) {
    out->kind = KILNI_CLI_ARGUMENT_CONDITION;
  } else if (symbol->kind == KILNI_CLI_SYMBOL_NODE &&
             s->sketch->nodes[symbol->index].kind == KILNI_CLI_GRAPH_ALLOCATE) {
    out->kind = KILNI_CLI_ARGUMENT_MEMORY;
  } else {
    return kilni_cli_sketcher_fail_at(
        s, &out->name, "give a buffer, memory, a condition or a number",
        "\"%s\" is not something that a kernel can take", out->name.text);
  }
  return true;
}

static bool graph_sketch_read_read_argument(kilni_cli_sketcher_t* s,
                                            uint32_t scope) {
  kilni_cli_sketch_t* k = s->sketch;
  kilni_cli_graph_argument_t argument;
  memset(&argument, 0, sizeof(argument));
  if (kilni_cli_sketcher_sees_word(s, "len")) {
    argument.kind = KILNI_CLI_ARGUMENT_LENGTH;
    if (!kilni_cli_sketcher_next(s) || !kilni_cli_sketcher_expect(s, '(') ||
        !kilni_cli_sketcher_name(s, "a buffer", &argument.name) ||
        !kilni_cli_sketcher_resolve(s, &argument.name, scope,
                                    KILNI_CLI_SYMBOL_BUFFER, &argument.index) ||
        !kilni_cli_sketcher_expect(s, ')')) {
      return false;
    }
  } else if (s->token.kind == KILNI_CLI_TOKEN_NUMBER) {
    argument.kind = KILNI_CLI_ARGUMENT_SCALAR;
    if (!kilni_cli_sketcher_word(s, &argument.name) ||
        !graph_sketch_read_read_scalar(s, &argument.name, &argument.scalar)) {
      return false;
    }
  } else if (s->token.kind == KILNI_CLI_TOKEN_NAME) {
    if (!kilni_cli_sketcher_word(s, &argument.name) ||
        !read_argument_name(s, scope, &argument)) {
      return false;
    }
  } else {
    return kilni_cli_sketcher_unexpected(s, "an argument");
  }
  if (!kilni_cli_sketcher_grow(s, (void**)&k->arguments, k->argument_count,
                               KILNI_CLI_GRAPH_MAX_ARGUMENTS, sizeof(argument),
                               "arguments")) {
    return false;
  }
  k->arguments[k->argument_count++] = argument;
  return true;
}

static bool read_shape_words(kilni_cli_sketcher_t* s,
                             kilni_cli_graph_node_t* node) {
  bool has_shared = false;
  for (;;) {
    bool grid = kilni_cli_sketcher_sees_word(s, "grid");
    bool block = kilni_cli_sketcher_sees_word(s, "block");
    bool shared = kilni_cli_sketcher_sees_word(s, "shared");
    bool together = kilni_cli_sketcher_sees_word(s, "cooperative");
    if (!grid && !block && !shared && !together) return true;
    if ((grid && node->has_grid) || (block && node->has_block) ||
        (shared && has_shared) || (together && node->cooperative)) {
      return kilni_cli_sketcher_unexpected(s, "each of these once");
    }
    if (!kilni_cli_sketcher_next(s)) return false;
    node->cooperative = node->cooperative || together;
    if (together) continue;
    uint64_t bytes = 0;
    bool ok = grid    ? read_dims(s, "a number of blocks", node->grid)
              : block ? read_dims(s, "a number of threads", node->block)
                      : kilni_cli_sketcher_number(s, "a number of bytes", 0,
                                                  UINT32_MAX, &bytes);
    if (!ok) return false;
    node->has_grid = node->has_grid || grid;
    node->has_block = node->has_block || block;
    has_shared = has_shared || shared;
    if (shared) node->shared_bytes = (uint32_t)bytes;
  }
}

static bool read_kernel(kilni_cli_sketcher_t* s, kilni_cli_graph_node_t* node) {
  kilni_cli_name_t code;
  s->usage =
      "`kernel NAME = CODE.KERNEL(ARGUMENT, ...) grid X,Y,Z block X,Y,Z shared "
      "BYTES cooperative`";
  if (!kilni_cli_sketcher_expect(s, '=') ||
      !kilni_cli_sketcher_name(s, "a code file", &code) ||
      !kilni_cli_sketcher_resolve(s, &code, node->scope, KILNI_CLI_SYMBOL_CODE,
                                  &node->code)) {
    return false;
  }
  if (kilni_cli_sketcher_sees(s, '.')) {
    if (!kilni_cli_sketcher_next(s)) return false;
    bool ok = s->token.kind == KILNI_CLI_TOKEN_STRING
                  ? kilni_cli_sketcher_string(s, "a kernel", &node->entry)
              : s->token.kind == KILNI_CLI_TOKEN_NAME
                  ? kilni_cli_sketcher_word(s, &node->entry)
                  : kilni_cli_sketcher_unexpected(s, "a kernel's name");
    if (!ok) return false;
  }
  if (!kilni_cli_sketcher_expect(s, '(')) return false;
  node->argument = s->sketch->argument_count;
  while (!kilni_cli_sketcher_sees(s, ')')) {
    if (s->sketch->argument_count != node->argument &&
        !kilni_cli_sketcher_expect(s, ',')) {
      return false;
    }
    if (!graph_sketch_read_read_argument(s, node->scope)) return false;
  }
  node->argument_count = s->sketch->argument_count - node->argument;
  return kilni_cli_sketcher_expect(s, ')') && read_shape_words(s, node);
}

static bool graph_sketch_read_read_copy(kilni_cli_sketcher_t* s,
                                        kilni_cli_graph_node_t* node) {
  s->usage =
      "`copy NAME = BUFFER <- BUFFER`, each as a whole or BUFFER[10..20]";
  return kilni_cli_sketcher_expect(s, '=') &&
         graph_sketch_read_read_part(s, node->scope, &node->to) &&
         kilni_cli_sketcher_expect_kind(s, KILNI_CLI_TOKEN_INTO, "`<-`") &&
         graph_sketch_read_read_part(s, node->scope, &node->from);
}

static bool read_fill(kilni_cli_sketcher_t* s, kilni_cli_graph_node_t* node) {
  kilni_cli_name_t value;
  s->usage = "`fill NAME = BUFFER <- 0f32`, a whole or BUFFER[10..20]";
  if (!kilni_cli_sketcher_expect(s, '=') ||
      !graph_sketch_read_read_part(s, node->scope, &node->to) ||
      !kilni_cli_sketcher_expect_kind(s, KILNI_CLI_TOKEN_INTO, "`<-`")) {
    return false;
  }
  if (s->token.kind != KILNI_CLI_TOKEN_NUMBER &&
      s->token.kind != KILNI_CLI_TOKEN_NAME) {
    return kilni_cli_sketcher_unexpected(s, "a number with its type");
  }
  return kilni_cli_sketcher_word(s, &value) &&
         graph_sketch_read_read_scalar(s, &value, &node->value);
}

// The driver takes these nodes at the top of a graph only.
static bool check_top(kilni_cli_sketcher_t* s,
                      const kilni_cli_graph_node_t* node) {
  return node->scope == 0 ||
         kilni_cli_sketcher_fail_at(
             s, &node->name,
             "put it before and after the node, or take a buffer",
             "`%s` is not allowed inside another node",
             kilni_cli_graph_kind_word(node->kind));
}

static bool read_allocate(kilni_cli_sketcher_t* s,
                          kilni_cli_graph_node_t* node) {
  s->usage = "`allocate NAME : TYPE[N,...]`";
  return check_top(s, node) && kilni_cli_sketcher_expect(s, ':') &&
         graph_sketch_read_read_shape(s, true, &node->shape);
}

static bool check_freed(kilni_cli_sketcher_t* s,
                        const kilni_cli_graph_node_t* node,
                        const kilni_cli_name_t* memory) {
  for (uint32_t i = 0; i < s->sketch->node_count; i++) {
    const kilni_cli_graph_node_t* other = &s->sketch->nodes[i];
    if (other->kind == KILNI_CLI_GRAPH_FREE && other->other == node->other) {
      return kilni_cli_sketcher_fail_at(
          s, memory, "free memory once", "\"%s\" is freed in line %u already",
          memory->text, (unsigned)other->name.line);
    }
  }
  return true;
}

static bool graph_sketch_read_read_free(kilni_cli_sketcher_t* s,
                                        kilni_cli_graph_node_t* node) {
  kilni_cli_name_t memory;
  s->usage = "`free NAME = MEMORY`, which an `allocate` above has made";
  if (!check_top(s, node) || !kilni_cli_sketcher_expect(s, '=') ||
      !kilni_cli_sketcher_name(s, "the memory's name", &memory) ||
      !kilni_cli_sketcher_resolve(s, &memory, node->scope,
                                  KILNI_CLI_SYMBOL_NODE, &node->other)) {
    return false;
  }
  if (s->sketch->nodes[node->other].kind != KILNI_CLI_GRAPH_ALLOCATE) {
    return kilni_cli_sketcher_fail_at(s, &memory, "name an `allocate` node",
                                      "the node \"%s\" allocates nothing",
                                      memory.text);
  }
  return check_freed(s, node, &memory);
}

// Conditional bodies may not contain host functions or events.
static bool graph_sketch_read_check_body(kilni_cli_sketcher_t* s,
                                         const kilni_cli_graph_node_t* node) {
  const kilni_cli_graph_scope_t* scopes = s->sketch->scopes;
  return node->scope == 0 || scopes[node->scope].is_named ||
         kilni_cli_sketcher_fail_at(
             s, &node->name, "put it before or after the node",
             "`%s` is not allowed inside `if`, `while` and `switch`",
             kilni_cli_graph_kind_word(node->kind));
}

static bool graph_sketch_read_read_host(kilni_cli_sketcher_t* s,
                                        kilni_cli_graph_node_t* node) {
  s->usage = "`host NAME = \"TEXT\"`";
  return graph_sketch_read_check_body(s, node) &&
         kilni_cli_sketcher_expect(s, '=') &&
         kilni_cli_sketcher_string(s, "a text in quotes", &node->text);
}

static bool read_on_event(kilni_cli_sketcher_t* s,
                          kilni_cli_graph_node_t* node) {
  kilni_cli_name_t event;
  s->usage = node->kind == KILNI_CLI_GRAPH_RECORD ? "`record NAME = EVENT`"
                                                  : "`wait NAME = EVENT`";
  return graph_sketch_read_check_body(s, node) &&
         kilni_cli_sketcher_expect(s, '=') &&
         kilni_cli_sketcher_name(s, "an event", &event) &&
         kilni_cli_sketcher_resolve(s, &event, node->scope,
                                    KILNI_CLI_SYMBOL_EVENT, &node->other);
}

// ---- Nested graphs ----

static bool graph_sketch_read_add_scope(kilni_cli_sketcher_t* s,
                                        uint32_t parent, uint32_t* out_scope) {
  kilni_cli_sketch_t* k = s->sketch;
  if (!kilni_cli_sketcher_grow(s, (void**)&k->scopes, k->scope_count,
                               KILNI_CLI_GRAPH_MAX_SCOPES, sizeof(*k->scopes),
                               "graphs")) {
    return false;
  }
  kilni_cli_graph_scope_t* scope = &k->scopes[k->scope_count];
  memset(scope, 0, sizeof(*scope));
  scope->name.text = "";
  scope->parent = parent;
  scope->next = KILNI_CLI_GRAPH_NONE;
  *out_scope = k->scope_count++;
  return true;
}

// The contents of a scope count for the enclosing one too.
static bool count_nodes(kilni_cli_sketcher_t* s, const kilni_cli_name_t* name,
                        uint32_t scope, uint32_t inside) {
  kilni_cli_graph_scope_t* around = &s->sketch->scopes[scope];
  around->nodes += s->sketch->scopes[inside].nodes;
  return around->nodes <= KILNI_CLI_GRAPH_MAX_ALL_NODES ||
         kilni_cli_sketch_fail(s->sketch, name->line, name->column,
                               KILN_STATUS_LIMIT_EXCEEDED,
                               "use named graphs less often", s->error,
                               "more than %d nodes, with those inside of nodes",
                               KILNI_CLI_GRAPH_MAX_ALL_NODES);
}

static bool read_braces(kilni_cli_sketcher_t* s, uint32_t scope,
                        uint32_t depth) {
  if (depth == KILNI_CLI_GRAPH_MAX_DEPTH) {
    return kilni_cli_sketch_fail(
        s->sketch, s->token.line, s->token.column, KILN_STATUS_LIMIT_EXCEEDED,
        "name a graph and take it as a child", s->error,
        "braces nested more than %d deep", KILNI_CLI_GRAPH_MAX_DEPTH);
  }
  return kilni_cli_sketcher_expect(s, '{') &&
         kilni_cli_sketcher_block(s, scope, depth + 1) &&
         kilni_cli_sketcher_expect(s, '}');
}

static bool read_graph(kilni_cli_sketcher_t* s, uint32_t scope,
                       uint32_t depth) {
  kilni_cli_name_t name;
  uint32_t inside;
  s->usage = "`graph NAME {`, nodes and edges, `}`";
  if (!kilni_cli_sketcher_name(s, "a name for the graph", &name) ||
      !kilni_cli_sketcher_is_new(s, &name, scope) ||
      !graph_sketch_read_add_scope(s, KILNI_CLI_GRAPH_NONE, &inside)) {
    return false;
  }
  s->sketch->scopes[inside].name = name;
  s->sketch->scopes[inside].is_named = true;
  // Declared after its braces, so that it cannot be inside of itself.
  return read_braces(s, inside, depth) &&
         kilni_cli_sketcher_declare(s, &name, scope, KILNI_CLI_SYMBOL_GRAPH,
                                    inside);
}

static bool graph_sketch_read_read_child(kilni_cli_sketcher_t* s,
                                         kilni_cli_graph_node_t* node) {
  kilni_cli_name_t graph;
  s->usage = "`child NAME = GRAPH`, which `graph GRAPH { ... }` has declared";
  if (!kilni_cli_sketcher_expect(s, '=') ||
      !kilni_cli_sketcher_name(s, "a graph", &graph) ||
      !kilni_cli_sketcher_resolve(s, &graph, node->scope,
                                  KILNI_CLI_SYMBOL_GRAPH, &node->body)) {
    return false;
  }
  node->body_count = 1;
  return count_nodes(s, &node->name, node->scope, node->body);
}

static bool is_in_named(const kilni_cli_sketch_t* k, uint32_t scope) {
  for (; scope != KILNI_CLI_GRAPH_NONE; scope = k->scopes[scope].parent) {
    if (k->scopes[scope].is_named) return true;
  }
  return false;
}

static bool graph_sketch_read_take_condition(kilni_cli_sketcher_t* s,
                                             kilni_cli_graph_node_t* node) {
  kilni_cli_name_t name;
  if (is_in_named(s->sketch, node->scope)) {
    return kilni_cli_sketcher_fail_at(
        s, &node->name, "write its nodes where they are used",
        "`%s` is not allowed inside a named graph",
        kilni_cli_graph_kind_word(node->kind));
  }
  if (!kilni_cli_sketcher_expect(s, '=') ||
      !kilni_cli_sketcher_name(s, "a condition", &name) ||
      !kilni_cli_sketcher_resolve(s, &name, node->scope,
                                  KILNI_CLI_SYMBOL_CONDITION, &node->other)) {
    return false;
  }
  kilni_cli_graph_condition_t* condition = &s->sketch->conditions[node->other];
  if (condition->scope != node->scope) {
    return kilni_cli_sketcher_fail_at(
        s, &name, "declare a condition of its own in these braces",
        "the condition \"%s\" of line %u is of other braces", name.text,
        (unsigned)condition->name.line);
  }
  if (condition->user != KILNI_CLI_GRAPH_NONE) {
    return kilni_cli_sketcher_fail_at(
        s, &name, "declare a condition for each node",
        "the condition \"%s\" has a node already", name.text);
  }
  condition->user = s->sketch->node_count;  // that this one will be
  return true;
}

static bool graph_sketch_read_read_body(kilni_cli_sketcher_t* s,
                                        kilni_cli_graph_node_t* node,
                                        uint32_t* inout_last, uint32_t depth) {
  uint32_t scope;
  if (!graph_sketch_read_add_scope(s, node->scope, &scope)) return false;
  if (node->body_count++ == 0) {
    node->body = scope;
  } else {
    s->sketch->scopes[*inout_last].next = scope;
  }
  *inout_last = scope;
  return read_braces(s, scope, depth) &&
         count_nodes(s, &node->name, node->scope, scope);
}

// The node comes into the list before what is inside of it.
static bool read_choice(kilni_cli_sketcher_t* s, kilni_cli_graph_node_t* node,
                        uint32_t depth) {
  static const char* const USAGES[] = {
      "`if NAME = CONDITION { ... }`, with or without `else { ... }`",
      "`while NAME = CONDITION { ... }`",
      "`switch NAME = CONDITION { ... } { ... }`, a body for each number"};
  const char* usage = USAGES[node->kind - KILNI_CLI_GRAPH_IF];
  s->usage = usage;
  uint32_t index;
  uint32_t last = 0;
  if (!graph_sketch_read_take_condition(s, node) ||
      !graph_sketch_read_add_node(s, node, &index) ||
      !graph_sketch_read_read_body(s, node, &last, depth)) {
    return false;
  }
  s->usage = usage;
  if (node->kind == KILNI_CLI_GRAPH_IF &&
      kilni_cli_sketcher_sees_word(s, "else")) {
    if (!kilni_cli_sketcher_next(s) ||
        !graph_sketch_read_read_body(s, node, &last, depth)) {
      return false;
    }
  }
  while (node->kind == KILNI_CLI_GRAPH_SWITCH &&
         kilni_cli_sketcher_sees(s, '{')) {
    if (!graph_sketch_read_read_body(s, node, &last, depth)) return false;
  }
  s->sketch->nodes[index].body = node->body;
  s->sketch->nodes[index].body_count = node->body_count;
  return true;
}

// ---- Sequences ----

static bool read_sequence(kilni_cli_sketcher_t* s) {
  s->usage = "`sequence`, before all nodes";
  if (s->sketch->node_count != 0 || s->sketch->is_sequence) {
    return kilni_cli_sketch_fail(
        s->sketch, s->token.line, s->token.column, KILN_STATUS_BAD_DATA,
        "write it once, as the first statement", s->error,
        "`sequence` after a node, or a second time");
  }
  s->sketch->is_sequence = true;
  return kilni_cli_sketcher_next(s);
}

// What is allowed in a sequence, and what only there.
static bool graph_sketch_read_check_kind(kilni_cli_sketcher_t* s,
                                         kilni_cli_graph_kind_t kind) {
  bool in_both = kind == KILNI_CLI_GRAPH_KERNEL ||
                 kind == KILNI_CLI_GRAPH_COPY || kind == KILNI_CLI_GRAPH_FILL;
  if (in_both || (kind == KILNI_CLI_GRAPH_REPEAT) == s->sketch->is_sequence) {
    return true;
  }
  return kilni_cli_sketch_fail(
      s->sketch, s->token.line, s->token.column, KILN_STATUS_BAD_DATA,
      s->sketch->is_sequence
          ? "a sequence has kernel, copy, fill and repeat; remove `sequence` "
            "to draw a graph"
          : "begin the file with a line `sequence`; in a graph, `while` "
            "repeats",
      s->error, "`%s` in a %s", kilni_cli_graph_kind_word(kind),
      s->sketch->is_sequence ? "sequence" : "graph that is not a sequence");
}

static bool read_repeat(kilni_cli_sketcher_t* s, kilni_cli_graph_node_t* node,
                        uint32_t depth) {
  uint64_t rounds;
  uint32_t index;
  uint32_t last = 0;
  s->usage =
      "`repeat NAME = N { ... }`, or `repeat NAME = N while FLAG { ... }`";
  if (!kilni_cli_sketcher_expect(s, '=') ||
      !kilni_cli_sketcher_number(s, "a number of rounds", 1, UINT32_MAX,
                                 &rounds)) {
    return false;
  }
  node->rounds = (uint32_t)rounds;
  if (kilni_cli_sketcher_sees_word(s, "while") &&
      (!kilni_cli_sketcher_next(s) ||
       !graph_sketch_read_read_part(s, node->scope, &node->to))) {
    return false;
  }
  if (!graph_sketch_read_add_node(s, node, &index) ||
      !graph_sketch_read_read_body(s, node, &last, depth)) {
    return false;
  }
  s->sketch->nodes[index].body = node->body;
  s->sketch->nodes[index].body_count = node->body_count;
  if (s->sketch->scopes[node->body].nodes != 0) return true;
  return kilni_cli_sketcher_fail_at(s, &node->name, "write what is repeated",
                                    "the braces of \"%s\" are empty",
                                    node->name.text);
}

static bool read_node(kilni_cli_sketcher_t* s, kilni_cli_graph_kind_t kind,
                      uint32_t scope, uint32_t depth) {
  kilni_cli_graph_node_t node;
  uint32_t index;
  memset(&node, 0, sizeof(node));
  node.kind = kind;
  node.scope = scope;
  s->usage = "a name after the node's kind";
  if (!kilni_cli_sketcher_name(s, "a name for the node", &node.name) ||
      !kilni_cli_sketcher_is_new(s, &node.name, scope)) {
    return false;
  }
  if (kind == KILNI_CLI_GRAPH_REPEAT) return read_repeat(s, &node, depth);
  if (kind >= KILNI_CLI_GRAPH_IF) return read_choice(s, &node, depth);
  bool ok = true;
  if (kind == KILNI_CLI_GRAPH_KERNEL) ok = read_kernel(s, &node);
  if (kind == KILNI_CLI_GRAPH_COPY) ok = graph_sketch_read_read_copy(s, &node);
  if (kind == KILNI_CLI_GRAPH_FILL) ok = read_fill(s, &node);
  if (kind == KILNI_CLI_GRAPH_EMPTY) s->usage = "`empty NAME`";
  if (kind == KILNI_CLI_GRAPH_ALLOCATE) ok = read_allocate(s, &node);
  if (kind == KILNI_CLI_GRAPH_FREE) ok = graph_sketch_read_read_free(s, &node);
  if (kind == KILNI_CLI_GRAPH_CHILD) {
    ok = graph_sketch_read_read_child(s, &node);
  }
  if (kind == KILNI_CLI_GRAPH_HOST) ok = graph_sketch_read_read_host(s, &node);
  if (kind == KILNI_CLI_GRAPH_RECORD || kind == KILNI_CLI_GRAPH_WAIT) {
    ok = read_on_event(s, &node);
  }
  return ok && graph_sketch_read_add_node(s, &node, &index);
}

// ---- Edges ----

// NAME, NAME, ...: to the end of the list of this statement.
static bool graph_sketch_read_read_list(kilni_cli_sketcher_t* s,
                                        uint32_t scope) {
  for (;;) {
    kilni_cli_graph_edge_t edge;
    memset(&edge, 0, sizeof(edge));
    if (!kilni_cli_sketcher_name(s, "a node", &edge.at) ||
        !kilni_cli_sketcher_resolve(s, &edge.at, scope, KILNI_CLI_SYMBOL_NODE,
                                    &edge.to)) {
      return false;
    }
    if (s->sketch->nodes[edge.to].scope != scope) {
      return kilni_cli_sketcher_fail_at(
          s, &edge.at, "edges join nodes of the same braces",
          "the node \"%s\" is in other braces", edge.at.text);
    }
    if (!kilni_cli_sketcher_grow(s, (void**)&s->list, s->list_count,
                                 KILNI_CLI_GRAPH_MAX_EDGES, sizeof(edge),
                                 "nodes in one chain of edges")) {
      return false;
    }
    s->list[s->list_count++] = edge;
    if (!kilni_cli_sketcher_sees(s, ',')) return true;
    if (!kilni_cli_sketcher_next(s)) return false;
  }
}

// From each node of one part of the list to each of the next one.
static bool graph_sketch_read_join(kilni_cli_sketcher_t* s, uint32_t first,
                                   uint32_t middle) {
  kilni_cli_sketch_t* k = s->sketch;
  for (uint32_t from = first; from < middle; from++) {
    for (uint32_t to = middle; to < s->list_count; to++) {
      kilni_cli_graph_edge_t edge = s->list[to];
      edge.from = s->list[from].to;
      if (edge.from == edge.to) {
        return kilni_cli_sketcher_fail_at(
            s, &edge.at, "join it with another node",
            "an edge from \"%s\" to itself", edge.at.text);
      }
      if (!kilni_cli_sketcher_grow(s, (void**)&k->edges, k->edge_count,
                                   KILNI_CLI_GRAPH_MAX_EDGES, sizeof(edge),
                                   "edges")) {
        return false;
      }
      k->edges[k->edge_count++] = edge;
    }
  }
  return true;
}

static bool graph_sketch_read_read_edges(kilni_cli_sketcher_t* s,
                                         uint32_t scope) {
  s->usage =
      "an edge (`NAME -> NAME`, or lists: `A, B -> C`), or a "
      "declaration such as `kernel NAME = ...`";
  s->list_count = 0;
  uint32_t first = 0;
  if (s->sketch->is_sequence) {
    return kilni_cli_sketch_fail(
        s->sketch, s->token.line, s->token.column, KILN_STATUS_BAD_DATA,
        "omit the edge: what a step reads and writes determines what it waits "
        "for",
        s->error, "an edge in a sequence");
  }
  if (!graph_sketch_read_read_list(s, scope)) return false;
  do {
    uint32_t middle = s->list_count;
    if (!kilni_cli_sketcher_expect_kind(s, KILNI_CLI_TOKEN_ARROW, "`->`") ||
        !graph_sketch_read_read_list(s, scope) ||
        !graph_sketch_read_join(s, first, middle)) {
      return false;
    }
    first = middle;
  } while (s->token.kind == KILNI_CLI_TOKEN_ARROW);
  return true;
}

// ---- Blocks ----

// The files and buffers of a graph are declared once, at the top level.
static bool check_global(kilni_cli_sketcher_t* s, uint32_t scope,
                         const char* word) {
  if (scope == 0) return true;
  return kilni_cli_sketch_fail(s->sketch, s->token.line, s->token.column,
                               KILN_STATUS_BAD_DATA,
                               "write it before and outside of all braces",
                               s->error, "`%s` is inside braces", word);
}

// A name after a name is what a declaration begins with.
static bool graph_sketch_read_is_declaration(const kilni_cli_sketcher_t* s) {
  const char* at = s->at;
  while (at < s->end && (*at == ' ' || *at == '\t')) at++;
  return at < s->end && ((*at >= 'a' && *at <= 'z') ||
                         (*at >= 'A' && *at <= 'Z') || *at == '_');
}

static bool graph_sketch_read_fail_unknown(kilni_cli_sketcher_t* s) {
  kilni_cli_name_t word;
  return kilni_cli_sketcher_word(s, &word) &&
         kilni_cli_sketcher_fail_at(
             s, &word,
             "begin with sequence, code, buffer, event, graph, condition, "
             "kernel, copy, fill, empty, allocate, free, child, host, record, "
             "wait, if, while, switch or repeat, or write an edge: A -> B",
             "`%s` is not a statement", word.text);
}

static bool graph_sketch_read_read_statement(kilni_cli_sketcher_t* s,
                                             uint32_t scope, uint32_t depth) {
  s->usage =
      "a declaration such as `kernel NAME = ...`, or an edge such as "
      "`A -> B`";
  if (s->token.kind != KILNI_CLI_TOKEN_NAME) {
    return kilni_cli_sketcher_unexpected(s, "a statement");
  }
  for (int kind = 0; kind < KILNI_CLI_GRAPH_KINDS; kind++) {
    const char* word = kilni_cli_graph_kind_word((kilni_cli_graph_kind_t)kind);
    if (kilni_cli_sketcher_sees_word(s, word)) {
      return graph_sketch_read_check_kind(s, (kilni_cli_graph_kind_t)kind) &&
             kilni_cli_sketcher_next(s) &&
             read_node(s, (kilni_cli_graph_kind_t)kind, scope, depth);
    }
  }
  if (kilni_cli_sketcher_sees_word(s, "sequence")) {
    return check_global(s, scope, "sequence") && read_sequence(s);
  }
  if (kilni_cli_sketcher_sees_word(s, "code")) {
    return check_global(s, scope, "code") && kilni_cli_sketcher_next(s) &&
           graph_sketch_read_read_code(s, scope);
  }
  if (kilni_cli_sketcher_sees_word(s, "buffer")) {
    return check_global(s, scope, "buffer") && kilni_cli_sketcher_next(s) &&
           graph_sketch_read_read_buffer(s, scope);
  }
  if (kilni_cli_sketcher_sees_word(s, "event")) {
    return check_global(s, scope, "event") && kilni_cli_sketcher_next(s) &&
           graph_sketch_read_read_event(s, scope);
  }
  if (kilni_cli_sketcher_sees_word(s, "graph")) {
    return check_global(s, scope, "graph") && kilni_cli_sketcher_next(s) &&
           read_graph(s, scope, depth);
  }
  if (kilni_cli_sketcher_sees_word(s, "condition")) {
    return kilni_cli_sketcher_next(s) &&
           graph_sketch_read_read_condition(s, scope);
  }
  if (graph_sketch_read_is_declaration(s)) {
    return graph_sketch_read_fail_unknown(s);
  }
  return graph_sketch_read_read_edges(s, scope);
}

bool kilni_cli_sketcher_block(kilni_cli_sketcher_t* s, uint32_t scope,
                              uint32_t depth) {
  const char* around = s->usage;
  for (;;) {
    while (s->token.kind == KILNI_CLI_TOKEN_LINE) {
      if (!kilni_cli_sketcher_next(s)) return false;
    }
    if (s->token.kind == KILNI_CLI_TOKEN_END) return true;
    if (kilni_cli_sketcher_sees(s, '}') && depth != 0) {
      s->usage = around;
      return true;
    }
    if (!graph_sketch_read_read_statement(s, scope, depth)) return false;
    if (s->token.kind == KILNI_CLI_TOKEN_END ||
        (kilni_cli_sketcher_sees(s, '}') && depth != 0)) {
      continue;
    }
    if (!kilni_cli_sketcher_expect_kind(s, KILNI_CLI_TOKEN_LINE,
                                        "the end of the line")) {
      return false;
    }
  }
}
