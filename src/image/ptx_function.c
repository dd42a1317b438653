// SPDX-License-Identifier: Apache-2.0
//
// image: PTX functions: headers, directives, bodies and debug marks.
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

static kilni_image_ptx_function_t* function_at(
    const kilni_image_ptx_reader_t* reader, uint32_t index) {
  return KILNI_PTX_AT(reader->arena->functions, kilni_image_ptx_function_t,
                      index);
}

// ---------------------------------------------------------------------------
// Directives that say nothing about what is computed
// ---------------------------------------------------------------------------

bool kilni_image_ptx_pragma(kilni_image_ptx_reader_t* reader) {
  bool more = true;
  if (!kilni_image_ptx_next(reader)) return false;
  while (more) {
    if (reader->token.kind != KILNI_PTX_TOKEN_STRING) {
      return kilni_image_ptx_fail_expected(reader, "a string");
    }
    if (!kilni_image_ptx_next(reader) ||
        !kilni_image_ptx_accept(reader, ',', &more)) {
      return false;
    }
  }
  return kilni_image_ptx_expect(reader, ';');
}

bool kilni_image_ptx_section(kilni_image_ptx_reader_t* reader) {
  kilni_image_ptx_token_t at = reader->token;
  if (!kilni_image_ptx_next(reader)) return false;
  if (reader->token.kind != KILNI_PTX_TOKEN_DOT_WORD &&
      reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a section's name");
  }
  if (!kilni_image_ptx_next(reader)) return false;
  if (!kilni_image_ptx_is(reader, '{')) {
    return kilni_image_ptx_fail_expected(reader, "\"{\"");
  }
  if (!kilni_image_ptx_lexer_skip_braces(&reader->lexer)) {
    return kilni_image_ptx_fail(reader, &at,
                                "the text was cut off: take the whole file",
                                "a section that never ends");
  }
  return kilni_image_ptx_next(reader);
}

bool kilni_image_ptx_file(kilni_image_ptx_reader_t* reader) {
  uint64_t number;
  uint64_t ignored;
  if (!kilni_image_ptx_next(reader) ||
      !kilni_image_ptx_count(reader, "a file's number", UINT32_MAX, &number)) {
    return false;
  }
  if (reader->token.kind != KILNI_PTX_TOKEN_STRING) {
    return kilni_image_ptx_fail_expected(reader, "a file's name");
  }
  uint32_t offset;
  if (!kilni_image_ptx_add_text(reader, reader->token.text, &offset)) {
    return false;
  }
  kilni_image_ptx_file_t* file = kilni_image_ptx_push(
      reader, &reader->arena->files, 1, "files", reader->limits.files);
  if (file == NULL) return false;
  file->number = (uint32_t)number;
  file->name_offset = offset;
  if (!kilni_image_ptx_next(reader)) return false;
  bool more;
  if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  if (!more) return true;
  return kilni_image_ptx_count(reader, "a time stamp", UINT64_MAX, &ignored) &&
         kilni_image_ptx_expect(reader, ',') &&
         kilni_image_ptx_count(reader, "a file's size", UINT64_MAX, &ignored);
}

// function_name LABEL [+ n], inlined_at file line column
static bool read_inlined(kilni_image_ptx_reader_t* reader) {
  uint64_t file;
  uint64_t line;
  uint64_t ignored;
  bool there;
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "function_name or inlined_at");
  }
  bool is_name = kilni_base_sv_equal_cstr(reader->token.text, "function_name");
  if (!kilni_image_ptx_next(reader)) return false;
  if (is_name) {
    if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER &&
        reader->token.kind != KILNI_PTX_TOKEN_DOT_WORD) {
      return kilni_image_ptx_fail_expected(reader, "a label");
    }
    if (!kilni_image_ptx_next(reader) ||
        !kilni_image_ptx_accept(reader, '+', &there)) {
      return false;
    }
    return !there ||
           kilni_image_ptx_count(reader, "an offset", UINT64_MAX, &ignored);
  }
  if (!kilni_image_ptx_count(reader, "a file's number", UINT32_MAX, &file) ||
      !kilni_image_ptx_count(reader, "a line", UINT32_MAX, &line) ||
      !kilni_image_ptx_count(reader, "a column", UINT32_MAX, &ignored)) {
    return false;
  }
  kilni_image_ptx_location_t* locations = reader->arena->locations.data;
  locations[reader->location].inlined_file = (uint32_t)file;
  locations[reader->location].inlined_line = (uint32_t)line;
  return true;
}

static bool read_loc(kilni_image_ptx_reader_t* reader) {
  uint64_t file;
  uint64_t line;
  uint64_t column;
  if (!kilni_image_ptx_next(reader) ||
      !kilni_image_ptx_count(reader, "a file's number", UINT32_MAX, &file) ||
      !kilni_image_ptx_count(reader, "a line", UINT32_MAX, &line) ||
      !kilni_image_ptx_count(reader, "a column", UINT32_MAX, &column)) {
    return false;
  }
  kilni_image_ptx_location_t* location =
      kilni_image_ptx_push(reader, &reader->arena->locations, 1, "locations",
                           reader->limits.locations);
  if (location == NULL) return false;
  location->file = (uint32_t)file;
  location->line = (uint32_t)line;
  location->column = (uint32_t)column;
  location->inlined_file = 0;
  location->inlined_line = 0;
  reader->location = reader->arena->locations.count - 1;
  bool more;
  if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  while (more) {
    if (!read_inlined(reader) || !kilni_image_ptx_accept(reader, ',', &more)) {
      return false;
    }
  }
  return true;
}

// ---------------------------------------------------------------------------
// Performance directives
// ---------------------------------------------------------------------------

// One to three positive numbers.
static bool read_triple(kilni_image_ptx_reader_t* reader, uint32_t out[3]) {
  out[1] = out[2] = 1;
  bool more = true;
  if (!kilni_image_ptx_next(reader)) return false;
  for (uint32_t i = 0; i < 3 && more; i++) {
    kilni_image_ptx_token_t at = reader->token;
    uint64_t value;
    if (!kilni_image_ptx_count(reader, "a size", INT32_MAX, &value)) {
      return false;
    }
    if (value == 0) {
      return kilni_image_ptx_fail(reader, &at, "write a number above 0",
                                  "a size of 0 has no meaning here");
    }
    out[i] = (uint32_t)value;
    more = false;
    if (i < 2 && !kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  return true;
}

static bool ptx_function_read_number(kilni_image_ptx_reader_t* reader,
                                     uint32_t* out) {
  uint64_t value;
  if (!kilni_image_ptx_next(reader) ||
      !kilni_image_ptx_count(reader, "a number", INT32_MAX, &value)) {
    return false;
  }
  *out = (uint32_t)value;
  return true;
}

static bool read_flag(kilni_image_ptx_reader_t* reader, uint8_t* out) {
  *out = 1;
  return kilni_image_ptx_next(reader);
}

// Reads one directive if there is one.
static bool read_performance(kilni_image_ptx_reader_t* reader,
                             kilni_image_ptx_function_t* function,
                             bool* out_there) {
  *out_there = true;
  uint32_t ignored;
  uint8_t flag;
  if (kilni_image_ptx_is_word(reader, "maxntid")) {
    return read_triple(reader, function->maxntid);
  }
  if (kilni_image_ptx_is_word(reader, "reqntid")) {
    return read_triple(reader, function->reqntid);
  }
  if (kilni_image_ptx_is_word(reader, "reqnctapercluster")) {
    return read_triple(reader, function->reqnctapercluster);
  }
  if (kilni_image_ptx_is_word(reader, "maxclusterrank")) {
    return ptx_function_read_number(reader, &function->maxclusterrank);
  }
  if (kilni_image_ptx_is_word(reader, "minnctapersm")) {
    return ptx_function_read_number(reader, &function->minnctapersm);
  }
  if (kilni_image_ptx_is_word(reader, "maxnctapersm")) {
    return ptx_function_read_number(reader, &function->maxnctapersm);
  }
  if (kilni_image_ptx_is_word(reader, "maxnreg")) {
    return ptx_function_read_number(reader, &function->maxnreg);
  }
  if (kilni_image_ptx_is_word(reader, "abi_preserve") ||
      kilni_image_ptx_is_word(reader, "abi_preserve_control")) {
    return ptx_function_read_number(reader, &ignored);
  }
  if (kilni_image_ptx_is_word(reader, "explicitcluster")) {
    return read_flag(reader, &function->explicit_cluster);
  }
  if (kilni_image_ptx_is_word(reader, "blocksareclusters")) {
    return read_flag(reader, &function->blocks_are_clusters);
  }
  if (kilni_image_ptx_is_word(reader, "noreturn")) {
    return read_flag(reader, &function->noreturn);
  }
  if (kilni_image_ptx_is_word(reader, "pragma")) {
    return kilni_image_ptx_pragma(reader);
  }
  if (kilni_image_ptx_is_word(reader, "language")) {
    return read_flag(reader, &flag);
  }
  *out_there = false;
  return true;
}

static bool read_performances(kilni_image_ptx_reader_t* reader,
                              kilni_image_ptx_function_t* function) {
  bool more = true;
  kilni_image_ptx_token_t at = reader->token;
  while (more) {
    if (!read_performance(reader, function, &more)) return false;
  }
  if (function->maxntid[0] != 0 && function->reqntid[0] != 0) {
    return kilni_image_ptx_fail(reader, &at, "drop one of the two",
                                ".maxntid and .reqntid exclude each other");
  }
  if (function->noreturn && function->is_entry) {
    return kilni_image_ptx_fail(reader, &at, "drop .noreturn",
                                "a kernel cannot be .noreturn");
  }
  return true;
}

// ---------------------------------------------------------------------------
// Tables behind a label
// ---------------------------------------------------------------------------

static bool add_table(kilni_image_ptx_reader_t* reader,
                      const kilni_image_ptx_token_t* at, uint32_t name,
                      const kilni_image_ptx_table_t* fresh) {
  kilni_image_ptx_table_t* table = kilni_image_ptx_push(
      reader, &reader->arena->tables, 1, "labels", reader->limits.labels);
  if (table == NULL) return false;
  *table = *fresh;
  table->name_id = name;
  table->line = at->line;
  return kilni_image_ptx_bind(
      reader, at, name, KILNI_PTX_SYMBOL_TABLE,
      reader->arena->tables.count - 1 - reader->first_table, NULL);
}

static bool ptx_function_read_entry(kilni_image_ptx_reader_t* reader,
                                    uint32_t kind) {
  kilni_image_ptx_token_t at = reader->token;
  if (at.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a name");
  }
  uint32_t* entry = kilni_image_ptx_push(reader, &reader->arena->entries, 1,
                                         "operands", reader->limits.operands);
  if (entry == NULL) return false;
  if (kind == KILNI_PTX_TABLE_BRANCH_TARGETS) {
    uint32_t name;
    return kilni_image_ptx_intern(reader, at.text, &name) &&
           kilni_image_ptx_pend(reader, &at, name, true,
                                reader->arena->entries.count - 1) &&
           kilni_image_ptx_next(reader);
  }
  uint32_t symbol;
  if (!kilni_image_ptx_resolve(reader, at.text, &symbol, entry)) return false;
  if (symbol != KILNI_PTX_SYMBOL_FUNCTION) {
    return kilni_image_ptx_fail(
        reader, &at, "declare the function before its use",
        "\"%.*s\" is not a function", KILNI_SV(at.text));
  }
  return kilni_image_ptx_next(reader);
}

static bool read_targets(kilni_image_ptx_reader_t* reader,
                         const kilni_image_ptx_token_t* at, uint32_t name,
                         uint32_t kind) {
  kilni_image_ptx_table_t table;
  memset(&table, 0, sizeof(table));
  table.kind = kind;
  table.first = reader->arena->entries.count;
  bool more = true;
  if (!kilni_image_ptx_next(reader)) return false;
  while (more) {
    if (!ptx_function_read_entry(reader, kind) ||
        !kilni_image_ptx_accept(reader, ',', &more)) {
      return false;
    }
  }
  table.count = reader->arena->entries.count - table.first;
  return kilni_image_ptx_expect(reader, ';') &&
         add_table(reader, at, name, &table);
}

// .callprototype (ret) _ (params) .noreturn ;
static bool read_prototype(kilni_image_ptx_reader_t* reader,
                           const kilni_image_ptx_token_t* at, uint32_t name) {
  kilni_image_ptx_table_t table;
  memset(&table, 0, sizeof(table));
  table.kind = KILNI_PTX_TABLE_PROTOTYPE;
  if (!kilni_image_ptx_next(reader)) return false;
  if (kilni_image_ptx_is(reader, '(') &&
      !kilni_image_ptx_parameters(reader, false, &reader->prototypes,
                                  &table.first_return, &table.return_count)) {
    return false;
  }
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "\"_\"");
  }
  if (!kilni_image_ptx_next(reader)) return false;
  table.first_parameter = reader->prototypes.count;
  if (kilni_image_ptx_is(reader, '(') &&
      !kilni_image_ptx_parameters(reader, false, &reader->prototypes,
                                  &table.first_parameter,
                                  &table.parameter_count)) {
    return false;
  }
  uint32_t ignored;
  while (reader->token.kind == KILNI_PTX_TOKEN_DOT_WORD) {
    if (kilni_image_ptx_is_word(reader, "noreturn")) {
      if (!read_flag(reader, &table.noreturn)) return false;
    } else if (kilni_image_ptx_is_word(reader, "abi_preserve") ||
               kilni_image_ptx_is_word(reader, "abi_preserve_control")) {
      if (!ptx_function_read_number(reader, &ignored)) return false;
    } else {
      return kilni_image_ptx_fail_expected(reader, "\";\"");
    }
  }
  return kilni_image_ptx_expect(reader, ';') &&
         add_table(reader, at, name, &table);
}

// The token is the one after `name:`.
static bool read_label(kilni_image_ptx_reader_t* reader,
                       const kilni_image_ptx_token_t* at) {
  uint32_t name;
  if (!kilni_image_ptx_intern(reader, at->text, &name)) return false;
  if (kilni_image_ptx_is_word(reader, "branchtargets")) {
    return read_targets(reader, at, name, KILNI_PTX_TABLE_BRANCH_TARGETS);
  }
  if (kilni_image_ptx_is_word(reader, "calltargets")) {
    return read_targets(reader, at, name, KILNI_PTX_TABLE_CALL_TARGETS);
  }
  if (kilni_image_ptx_is_word(reader, "callprototype")) {
    return read_prototype(reader, at, name);
  }
  uint32_t count = reader->arena->labels.count - reader->first_label;
  if (count >= reader->limits.labels) {
    return kilni_image_ptx_fail_limit(reader, "labels", reader->limits.labels);
  }
  kilni_image_ptx_label_t* label = kilni_image_ptx_push(
      reader, &reader->arena->labels, 1, "operands", reader->limits.operands);
  if (label == NULL) return false;
  label->name_id = name;
  label->line = at->line;
  label->instruction =
      reader->arena->instructions.count - reader->first_instruction;
  return kilni_image_ptx_bind(reader, at, name, KILNI_PTX_SYMBOL_LABEL, count,
                              NULL);
}

// ---------------------------------------------------------------------------
// Bodies
// ---------------------------------------------------------------------------

static bool ptx_function_read_word(kilni_image_ptx_reader_t* reader) {
  kilni_image_ptx_token_t at = reader->token;
  // The colon decides between a label and a mnemonic; what follows a mnemonic
  // is lexed as modifiers.
  if (!kilni_image_ptx_next_modifier(reader)) return false;
  if (kilni_image_ptx_is(reader, ':')) {
    return kilni_image_ptx_next(reader) && read_label(reader, &at);
  }
  return kilni_image_ptx_instruction(reader, &at);
}

static bool ptx_function_read_statement(kilni_image_ptx_reader_t* reader) {
  switch (reader->token.kind) {
    case KILNI_PTX_TOKEN_IDENTIFIER:
      return ptx_function_read_word(reader);
    case KILNI_PTX_TOKEN_DOT_WORD:
      if (kilni_image_ptx_is_word(reader, "loc")) return read_loc(reader);
      if (kilni_image_ptx_is_word(reader, "pragma")) {
        return kilni_image_ptx_pragma(reader);
      }
      if (kilni_image_ptx_is_word(reader, "file")) {
        return kilni_image_ptx_file(reader);
      }
      return kilni_image_ptx_declare(reader, KILNI_PTX_LINKAGE_NONE);
    default:
      break;
  }
  if (kilni_image_ptx_is(reader, '@')) return kilni_image_ptx_guarded(reader);
  return kilni_image_ptx_fail_expected(reader, "an instruction");
}

// Scopes are counted, not recursed into: `marks` is their stack.
static bool read_statements(kilni_image_ptx_reader_t* reader) {
  enum { SCOPES = 256 };
  uint32_t marks[SCOPES];
  uint32_t open = 0;
  for (;;) {
    if (kilni_image_ptx_is(reader, '{')) {
      if (open == SCOPES) {
        return kilni_image_ptx_fail_limit(reader, "nesting", SCOPES);
      }
      if (!kilni_image_ptx_scope_open(reader, &marks[open++]) ||
          !kilni_image_ptx_next(reader)) {
        return false;
      }
    } else if (kilni_image_ptx_is(reader, '}')) {
      if (open == 0) return true;
      if (!kilni_image_ptx_scope_close(reader, marks[--open]) ||
          !kilni_image_ptx_next(reader)) {
        return false;
      }
    } else if (reader->token.kind == KILNI_PTX_TOKEN_END) {
      return kilni_image_ptx_fail_expected(reader, "\"}\"");
    } else if (!ptx_function_read_statement(reader)) {
      return false;
    }
  }
}

// Prototypes' parameters go after the variables of the body.
static bool move_prototypes(kilni_image_ptx_reader_t* reader) {
  uint32_t count = reader->prototypes.count;
  uint32_t first = reader->arena->variables.count;
  if (count == 0) return true;
  kilni_image_ptx_variable_t* slots =
      kilni_image_ptx_push(reader, &reader->arena->variables, count,
                           "variables", reader->limits.variables);
  if (slots == NULL) return false;
  memcpy(slots, reader->prototypes.data, count * sizeof(*slots));
  reader->prototypes.count = 0;
  for (uint32_t i = reader->first_table; i < reader->arena->tables.count; i++) {
    kilni_image_ptx_table_t* table =
        KILNI_PTX_AT(reader->arena->tables, kilni_image_ptx_table_t, i);
    if (table->kind != KILNI_PTX_TABLE_PROTOTYPE) continue;
    table->first_return += first;
    table->first_parameter += first;
  }
  return true;
}

static bool ptx_function_read_body(kilni_image_ptx_reader_t* reader,
                                   uint32_t index, uint32_t first_register) {
  kilni_image_ptx_arena_t* arena = reader->arena;
  uint32_t first_variable = arena->variables.count;
  reader->first_label = arena->labels.count;
  reader->first_table = arena->tables.count;
  reader->first_instruction = arena->instructions.count;
  reader->location = KILNI_PTX_NONE;
  if (!kilni_image_ptx_next(reader) || !read_statements(reader)) return false;
  kilni_image_ptx_function_t* function = function_at(reader, index);
  function->is_defined = 1;
  function->first_variable = first_variable;
  function->variable_count = arena->variables.count - first_variable;
  function->first_instruction = reader->first_instruction;
  function->instruction_count =
      arena->instructions.count - reader->first_instruction;
  function->first_register = first_register;
  function->first_label = reader->first_label;
  function->label_count = arena->labels.count - reader->first_label;
  function->first_table = reader->first_table;
  function->table_count = arena->tables.count - reader->first_table;
  function->register_count = arena->registers.count - first_register;
  return move_prototypes(reader) && kilni_image_ptx_next(reader);
}

// ---------------------------------------------------------------------------
// Headers
// ---------------------------------------------------------------------------

static bool same_parameters(const kilni_image_ptx_reader_t* reader,
                            uint32_t first_a, uint32_t first_b,
                            uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const kilni_image_ptx_variable_t* a = KILNI_PTX_AT(
        reader->arena->variables, kilni_image_ptx_variable_t, first_a + i);
    const kilni_image_ptx_variable_t* b = KILNI_PTX_AT(
        reader->arena->variables, kilni_image_ptx_variable_t, first_b + i);
    if (kilni_image_ptx_type_bits(a->type) !=
            kilni_image_ptx_type_bits(b->type) ||
        a->size_bytes != b->size_bytes || a->space != b->space) {
      return false;
    }
  }
  return true;
}

// A name that is known already: a declaration, or a mistake.
static bool check_known(kilni_image_ptx_reader_t* reader,
                        const kilni_image_ptx_token_t* at,
                        const kilni_image_ptx_function_t* known,
                        const kilni_image_ptx_function_t* fresh,
                        bool has_body) {
  if (has_body && known->is_defined) {
    return kilni_image_ptx_fail(reader, at, "rename one of the two",
                                "\"%.*s\" is defined twice, first in line %u",
                                KILNI_SV(at->text), known->line);
  }
  if (known->is_entry != fresh->is_entry ||
      known->return_count != fresh->return_count ||
      known->parameter_count != fresh->parameter_count ||
      !same_parameters(reader, known->first_return, fresh->first_return,
                       fresh->return_count) ||
      !same_parameters(reader, known->first_parameter, fresh->first_parameter,
                       fresh->parameter_count)) {
    return kilni_image_ptx_fail(
        reader, at, "declare it the same way both times",
        "\"%.*s\" differs from its declaration in line %u", KILNI_SV(at->text),
        known->line);
  }
  if (has_body && known->linkage == KILNI_PTX_LINKAGE_EXTERN) {
    return kilni_image_ptx_fail(reader, at, "drop .extern from the declaration",
                                "\"%.*s\" was declared .extern in line %u",
                                KILNI_SV(at->text), known->line);
  }
  return true;
}

// Enters the function's record, or finds the one that its declaration made.
static bool settle_function(kilni_image_ptx_reader_t* reader,
                            const kilni_image_ptx_token_t* at,
                            const kilni_image_ptx_function_t* fresh,
                            bool has_body, uint32_t* out_index) {
  kilni_image_ptx_name_t* name = kilni_image_ptx_name(reader, fresh->name_id);
  *out_index = name->global_index;
  if (name->global_kind == KILNI_PTX_SYMBOL_VARIABLE) {
    return kilni_image_ptx_fail(reader, at, "rename one of the two",
                                "\"%.*s\" is already a variable",
                                KILNI_SV(at->text));
  }
  if (name->global_kind == KILNI_PTX_SYMBOL_FUNCTION) {
    kilni_image_ptx_function_t* known = function_at(reader, *out_index);
    if (!check_known(reader, at, known, fresh, has_body)) return false;
    if (has_body) *known = *fresh;
    return true;
  }
  kilni_image_ptx_function_t* function =
      kilni_image_ptx_push(reader, &reader->arena->functions, 1, "functions",
                           reader->limits.functions);
  if (function == NULL) return false;
  *function = *fresh;
  name->global_kind = KILNI_PTX_SYMBOL_FUNCTION;
  name->global_index = reader->arena->functions.count - 1;
  *out_index = name->global_index;
  return true;
}

// `(.param .b32 r) name (.param .b32 a)`, starting at the token after .entry or
// .func.
static bool ptx_function_read_header(kilni_image_ptx_reader_t* reader,
                                     kilni_image_ptx_function_t* function,
                                     kilni_image_ptx_token_t* out_at) {
  kilni_image_ptx_array_t* variables = &reader->arena->variables;
  if (kilni_image_ptx_is_word(reader, "attribute")) {
    kilni_image_ptx_declaration_t ignored;
    memset(&ignored, 0, sizeof(ignored));
    if (!kilni_image_ptx_attribute(reader, &ignored)) return false;
  }
  if (!function->is_entry && kilni_image_ptx_is(reader, '(') &&
      !kilni_image_ptx_parameters(reader, false, variables,
                                  &function->first_return,
                                  &function->return_count)) {
    return false;
  }
  *out_at = reader->token;
  if (out_at->kind != KILNI_PTX_TOKEN_IDENTIFIER ||
      kilni_base_sv_equal_cstr(out_at->text, "_")) {
    return kilni_image_ptx_fail_expected(reader, "a function's name");
  }
  function->line = out_at->line;
  function->column = out_at->column;
  if (!kilni_image_ptx_intern(reader, out_at->text, &function->name_id) ||
      !kilni_image_ptx_next(reader)) {
    return false;
  }
  function->first_parameter = variables->count;
  if (kilni_image_ptx_is(reader, '(') &&
      !kilni_image_ptx_parameters(reader, function->is_entry, variables,
                                  &function->first_parameter,
                                  &function->parameter_count)) {
    return false;
  }
  return read_performances(reader, function);
}

// Parameters were read before their function had a record.
static void own_parameters(kilni_image_ptx_reader_t* reader, uint32_t first,
                           uint32_t function) {
  for (uint32_t i = first; i < reader->arena->variables.count; i++) {
    KILNI_PTX_AT(reader->arena->variables, kilni_image_ptx_variable_t, i)
        ->function = function;
  }
}

bool kilni_image_ptx_function(kilni_image_ptx_reader_t* reader,
                              uint32_t linkage) {
  kilni_image_ptx_function_t fresh;
  memset(&fresh, 0, sizeof(fresh));
  fresh.linkage = (uint8_t)linkage;
  fresh.is_entry = kilni_image_ptx_is_word(reader, "entry");
  uint32_t first_register = reader->arena->registers.count;
  uint32_t first_variable = reader->arena->variables.count;
  uint32_t mark;
  uint32_t index;
  kilni_image_ptx_token_t at;
  // It is not known yet which function the parameters belong to.
  reader->function = reader->arena->functions.count;
  reader->first_register = first_register;
  if (!kilni_image_ptx_next(reader) ||
      !kilni_image_ptx_scope_open(reader, &mark) ||
      !ptx_function_read_header(reader, &fresh, &at)) {
    return false;
  }
  bool has_body = kilni_image_ptx_is(reader, '{');
  if (has_body && linkage == KILNI_PTX_LINKAGE_EXTERN) {
    return kilni_image_ptx_fail(reader, &at, "define it as .visible",
                                "\"%.*s\" is .extern and has a body",
                                KILNI_SV(at.text));
  }
  if (!settle_function(reader, &at, &fresh, has_body, &index)) return false;
  own_parameters(reader, first_variable, index);
  reader->function = index;
  if (has_body) {
    if (!ptx_function_read_body(reader, index, first_register)) return false;
  } else if (!kilni_image_ptx_expect(reader, ';')) {
    return false;
  }
  reader->function = KILNI_PTX_NONE;
  return kilni_image_ptx_scope_close(reader, mark);
}
