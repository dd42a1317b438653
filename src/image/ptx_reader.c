// SPDX-License-Identifier: Apache-2.0
//
// image: the PTX reader's frame: errors, tokens, arrays, module scope.
#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "image/ptx_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// The functions themselves, not their declarations for an analyzer.
#undef kilni_image_ptx_fail
#undef kilni_image_ptx_fail_limit
#undef kilni_image_ptx_fail_memory
#undef kilni_image_ptx_fail_expected

enum {
  WINDOW = 72,         // characters of a source line shown under an error
  OLDEST_MAJOR = 6,    // the PTX versions that are read
  NEWEST_MAJOR = 9,    //
  FORM_BUCKETS = 512,  // at first
  NAME_BUCKETS = 1024
};

// ---------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------

// The line around `at`, and a caret under it, as two annotations.
static kiln_status_t add_caret(const kilni_image_ptx_reader_t* reader,
                               const kilni_image_ptx_token_t* at,
                               kiln_status_t status) {
  const kilni_image_ptx_lexer_t* lexer = &reader->lexer;
  const char* first = at->start;
  while (first > lexer->begin && first[-1] != '\n' &&
         at->start - first < WINDOW / 2) {
    first--;
  }
  char text[WINDOW + 1];
  size_t size = 0;
  for (const char* c = first; c < lexer->end && size < WINDOW; c++) {
    if (*c == '\n' || *c == '\r') break;
    text[size++] = *c >= ' ' && *c <= '~' ? *c : (*c == '\t' ? ' ' : '?');
  }
  text[size] = '\0';
  char caret[WINDOW + 2];
  size_t indent = (size_t)(at->start - first);
  memset(caret, ' ', indent);
  caret[indent] = '^';
  caret[indent + 1] = '\0';
  status = KILNI_ANNOTATE(status, "| %s", text);
  return KILNI_ANNOTATE(status, "| %s", caret);
}

bool kilni_image_ptx_fail(kilni_image_ptx_reader_t* reader,
                          const kilni_image_ptx_token_t* at, const char* fix,
                          const char* format, ...) {
  if (reader->failed) return false;
  reader->failed = true;
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  kiln_status_t status = KILNI_FAIL(BAD_DATA, "%s: line %u, column %u: %s",
                                    reader->name, at->line, at->column, what);
  status = add_caret(reader, at, status);
  reader->status = kilni_base_status_with_fix(status, "%s", fix);
  return false;
}

bool kilni_image_ptx_fail_limit(kilni_image_ptx_reader_t* reader,
                                const char* limit, uint64_t value) {
  if (reader->failed) return false;
  reader->failed = true;
  kiln_status_t status = KILNI_FAIL(
      LIMIT_EXCEEDED,
      "%s: line %u, column %u: the text exceeds the limit %s of %llu",
      reader->name, reader->token.line, reader->token.column, limit,
      (unsigned long long)value);
  status = add_caret(reader, &reader->token, status);
  reader->status = kilni_base_status_with_fix(
      status, "split the module, or read it with a larger %s", limit);
  return false;
}

bool kilni_image_ptx_fail_memory(kilni_image_ptx_reader_t* reader) {
  if (reader->failed) return false;
  reader->failed = true;
  reader->status = kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  return false;
}

bool kilni_image_ptx_fail_expected(kilni_image_ptx_reader_t* reader,
                                   const char* wanted) {
  const kilni_image_ptx_token_t* token = &reader->token;
  if (token->kind == KILNI_PTX_TOKEN_END) {
    return kilni_image_ptx_fail(reader, token,
                                "the text was cut off: take the whole file",
                                "the text ends where %s belongs", wanted);
  }
  size_t size = token->text.size < 64 ? token->text.size : 64;
  return kilni_image_ptx_fail(
      reader, token, "correct the text at this place",
      "%s%.*s%s where %s belongs",
      token->kind == KILNI_PTX_TOKEN_DOT_WORD ? "\"." : "\"", (int)size,
      token->text.data, size < token->text.size ? "...\"" : "\"", wanted);
}

// ---------------------------------------------------------------------------
// Tokens
// ---------------------------------------------------------------------------

static bool ptx_reader_bad_token(kilni_image_ptx_reader_t* reader) {
  return kilni_image_ptx_fail(reader, &reader->token,
                              "correct the text at this place", "%s",
                              reader->token.problem);
}

bool kilni_image_ptx_next(kilni_image_ptx_reader_t* reader) {
  if (reader->failed) return false;
  kilni_image_ptx_lexer_next(&reader->lexer, &reader->token);
  return reader->token.kind != KILNI_PTX_TOKEN_BAD ||
         ptx_reader_bad_token(reader);
}

bool kilni_image_ptx_next_modifier(kilni_image_ptx_reader_t* reader) {
  if (reader->failed) return false;
  kilni_image_ptx_lexer_next_modifier(&reader->lexer, &reader->token);
  return reader->token.kind != KILNI_PTX_TOKEN_BAD ||
         ptx_reader_bad_token(reader);
}

bool kilni_image_ptx_is(const kilni_image_ptx_reader_t* reader,
                        uint32_t punctuation) {
  return reader->token.kind == KILNI_PTX_TOKEN_PUNCTUATION &&
         reader->token.punctuation == punctuation;
}

bool kilni_image_ptx_is_word(const kilni_image_ptx_reader_t* reader,
                             const char* word) {
  return reader->token.kind == KILNI_PTX_TOKEN_DOT_WORD &&
         kilni_base_sv_equal_cstr(reader->token.text, word);
}

bool kilni_image_ptx_expect(kilni_image_ptx_reader_t* reader,
                            uint32_t punctuation) {
  if (kilni_image_ptx_is(reader, punctuation)) {
    return kilni_image_ptx_next(reader);
  }
  char wanted[4] = {'"', (char)punctuation, '"', '\0'};
  return kilni_image_ptx_fail_expected(reader, wanted);
}

bool kilni_image_ptx_accept(kilni_image_ptx_reader_t* reader,
                            uint32_t punctuation, bool* out_there) {
  *out_there = kilni_image_ptx_is(reader, punctuation);
  return *out_there ? kilni_image_ptx_next(reader) : !reader->failed;
}

bool kilni_image_ptx_enter(kilni_image_ptx_reader_t* reader) {
  if (reader->nesting >= reader->limits.nesting) {
    return kilni_image_ptx_fail_limit(reader, "nesting",
                                      reader->limits.nesting);
  }
  reader->nesting++;
  return !reader->failed;
}

void kilni_image_ptx_leave(kilni_image_ptx_reader_t* reader) {
  reader->nesting--;
}

// ---------------------------------------------------------------------------
// Arrays
// ---------------------------------------------------------------------------

void* kilni_image_ptx_push(kilni_image_ptx_reader_t* reader,
                           kilni_image_ptx_array_t* array, uint32_t count,
                           const char* limit_name, uint64_t limit) {
  if (reader->failed) return NULL;
  uint64_t wanted = (uint64_t)array->count + count;
  if (wanted > limit || wanted >= KILNI_PTX_NONE) {
    kilni_image_ptx_fail_limit(reader, limit_name, limit);
    return NULL;
  }
  if (wanted > array->capacity) {
    kiln_status_t status =
        kilni_base_grow(reader->allocator, (size_t)wanted, array->element,
                        &array->capacity, &array->data);
    if (!kiln_status_is_ok(status)) {
      kiln_status_free(status);
      kilni_image_ptx_fail_memory(reader);
      return NULL;
    }
  }
  char* first = (char*)array->data + (size_t)array->count * array->element;
  memset(first, 0, (size_t)count * array->element);
  array->count = (uint32_t)wanted;
  return first;
}

static void free_array(kiln_allocator_t allocator,
                       kilni_image_ptx_array_t* array) {
  kilni_base_free_array(allocator, array->data, array->capacity,
                        array->element);
  memset(array, 0, sizeof(*array));
}

static void free_arena(kilni_image_ptx_arena_t* arena) {
  kilni_image_ptx_array_t* const arrays[] = {
      &arena->functions, &arena->variables,   &arena->instructions,
      &arena->operands,  &arena->forms,       &arena->modifiers,
      &arena->registers, &arena->labels,      &arena->tables,
      &arena->entries,   &arena->relocations, &arena->locations,
      &arena->files,     &arena->bytes,       &arena->text};
  kiln_allocator_t allocator = arena->allocator;
  for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
    free_array(allocator, arrays[i]);
  }
  kilni_base_free(allocator, arena, sizeof(*arena));
}

// ---------------------------------------------------------------------------
// Module scope
// ---------------------------------------------------------------------------

static bool ptx_reader_read_version(kilni_image_ptx_reader_t* reader) {
  if (!kilni_image_ptx_is_word(reader, "version")) {
    return kilni_image_ptx_fail(reader, &reader->token,
                                "give PTX text; it begins with `.version`",
                                "the text does not begin with .version");
  }
  if (!kilni_image_ptx_next(reader)) return false;
  kiln_string_view_t text = reader->token.text;
  kiln_string_view_t major_text;
  uint64_t major = 0;
  uint64_t minor = 0;
  if (reader->token.kind != KILNI_PTX_TOKEN_NUMBER ||
      !kilni_base_sv_split(&text, '.', &major_text) || text.size == 0 ||
      text.size > 3 || !kilni_base_sv_to_u64(major_text, &major) ||
      !kilni_base_sv_to_u64(text, &minor)) {
    return kilni_image_ptx_fail_expected(reader, "a version such as 8.0");
  }
  reader->arena->module.version_major = (uint32_t)major;
  reader->arena->module.version_minor = (uint32_t)minor;
  if (major >= OLDEST_MAJOR && major <= NEWEST_MAJOR) {
    return kilni_image_ptx_next(reader);
  }
  reader->failed = true;
  kiln_status_t status = KILNI_FAIL(
      UNSUPPORTED, "%s: line %u, column %u: PTX version %.*s is not read",
      reader->name, reader->token.line, reader->token.column,
      KILNI_SV(reader->token.text));
  reader->status = kilni_base_status_with_fix(
      status, "compile for a PTX version from %d.0 to %d.x", OLDEST_MAJOR,
      NEWEST_MAJOR);
  return false;
}

// "sm_90a" and the like.
static bool read_architecture(kilni_image_ptx_reader_t* reader,
                              kiln_string_view_t text) {
  kilni_image_ptx_module_t* module = &reader->arena->module;
  kiln_string_view_t number = text;
  char suffix = 0;
  if (text.size > 0 &&
      (text.data[text.size - 1] == 'a' || text.data[text.size - 1] == 'f')) {
    suffix = text.data[text.size - 1];
    number.size--;
  }
  number.data += 3;
  number.size = number.size > 3 ? number.size - 3 : 0;
  uint64_t sm = 0;
  if (number.size == 0 || number.size > 4 ||
      !kilni_base_sv_to_u64(number, &sm)) {
    return kilni_image_ptx_fail_expected(reader, "a target such as sm_90");
  }
  if (module->target_sm == 0) {
    module->target_sm = (uint32_t)sm;
    module->target_suffix = suffix;
    memcpy(module->target_text, text.data, text.size);
  }
  return true;
}

static bool read_target_word(kilni_image_ptx_reader_t* reader) {
  kilni_image_ptx_module_t* module = &reader->arena->module;
  kiln_string_view_t text = reader->token.text;
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a target such as sm_90");
  }
  if (kilni_base_sv_starts_with(text, "sm_") ||
      (kilni_base_sv_starts_with(text, "compute_") && false)) {
    if (!read_architecture(reader, text)) return false;
  } else if (kilni_base_sv_equal_cstr(text, "texmode_independent")) {
    module->texmode_independent = 1;
  } else if (kilni_base_sv_equal_cstr(text, "debug")) {
    module->debug = 1;
  } else if (kilni_base_sv_equal_cstr(text, "map_f64_to_f32")) {
    module->map_f64_to_f32 = 1;
  } else if (!kilni_base_sv_equal_cstr(text, "texmode_unified")) {
    return kilni_image_ptx_fail_expected(reader, "a target such as sm_90");
  }
  return kilni_image_ptx_next(reader);
}

static bool ptx_reader_read_target(kilni_image_ptx_reader_t* reader) {
  if (!kilni_image_ptx_is_word(reader, "target")) {
    return kilni_image_ptx_fail_expected(reader, ".target");
  }
  bool more = true;
  if (!kilni_image_ptx_next(reader)) return false;
  while (more) {
    if (!read_target_word(reader)) return false;
    if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  if (reader->arena->module.target_sm == 0) {
    return kilni_image_ptx_fail_expected(reader,
                                         "an architecture such as sm_90");
  }
  return true;
}

static bool read_address_size(kilni_image_ptx_reader_t* reader) {
  // Without the directive an address has 32 bits (PTX ISA); ptxas takes 64
  // where the target knows no other, and so does the reader.
  reader->arena->module.address_size = 64;
  if (!kilni_image_ptx_is_word(reader, "address_size")) return true;
  kilni_image_ptx_token_t at;
  if (!kilni_image_ptx_next(reader)) return false;
  at = reader->token;
  if (at.kind != KILNI_PTX_TOKEN_NUMBER ||
      at.immediate > KILNI_PTX_IMMEDIATE_U64 || at.value != 64) {
    return kilni_image_ptx_fail(reader, &at, "compile for 64-bit addresses",
                                "the address size is not 64");
  }
  return kilni_image_ptx_next(reader);
}

static bool read_linkage(kilni_image_ptx_reader_t* reader,
                         uint32_t* out_linkage) {
  static const char* const kWords[] = {"", "visible", "extern", "weak",
                                       "common"};
  *out_linkage = KILNI_PTX_LINKAGE_NONE;
  for (uint32_t i = 1; i <= KILNI_PTX_LINKAGE_COMMON; i++) {
    if (!kilni_image_ptx_is_word(reader, kWords[i])) continue;
    *out_linkage = i;
    return kilni_image_ptx_next(reader);
  }
  return true;
}

static bool read_directive(kilni_image_ptx_reader_t* reader) {
  if (reader->token.kind != KILNI_PTX_TOKEN_DOT_WORD) {
    return kilni_image_ptx_fail_expected(reader, "a directive");
  }
  if (kilni_image_ptx_is_word(reader, "file")) {
    return kilni_image_ptx_file(reader);
  }
  if (kilni_image_ptx_is_word(reader, "section")) {
    return kilni_image_ptx_section(reader);
  }
  if (kilni_image_ptx_is_word(reader, "pragma")) {
    return kilni_image_ptx_pragma(reader);
  }
  if (kilni_image_ptx_is_word(reader, "alias")) {
    reader->failed = true;
    kiln_status_t status =
        KILNI_FAIL(UNSUPPORTED, "%s: line %u, column %u: .alias is not read",
                   reader->name, reader->token.line, reader->token.column);
    reader->status =
        kilni_base_status_with_fix(status, "compile without function aliases");
    return false;
  }
  uint32_t linkage;
  if (!read_linkage(reader, &linkage)) return false;
  if (linkage != KILNI_PTX_LINKAGE_COMMON &&
      (kilni_image_ptx_is_word(reader, "entry") ||
       kilni_image_ptx_is_word(reader, "func"))) {
    return kilni_image_ptx_function(reader, linkage);
  }
  return kilni_image_ptx_declare(reader, linkage);
}

static bool ptx_reader_read_module(kilni_image_ptx_reader_t* reader) {
  if (!kilni_image_ptx_next(reader) || !ptx_reader_read_version(reader) ||
      !ptx_reader_read_target(reader) || !read_address_size(reader)) {
    return false;
  }
  while (reader->token.kind != KILNI_PTX_TOKEN_END) {
    if (!read_directive(reader)) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------
// Making and ending
// ---------------------------------------------------------------------------

static const char* ptx_reader_text_at(const kilni_image_ptx_arena_t* arena,
                                      uint32_t offset) {
  return (const char*)arena->text.data + offset;
}

static void publish_variables(const kilni_image_ptx_reader_t* reader,
                              kilni_image_ptx_arena_t* arena) {
  for (uint32_t i = 0; i < arena->variables.count; i++) {
    kilni_image_ptx_variable_t* variable =
        KILNI_PTX_AT(arena->variables, kilni_image_ptx_variable_t, i);
    variable->name =
        variable->name_id == KILNI_PTX_NONE
            ? ""
            : ptx_reader_text_at(
                  arena,
                  kilni_image_ptx_name(reader, variable->name_id)->offset);
    if (variable->byte_count > 0) {
      variable->bytes =
          (const uint8_t*)arena->bytes.data + variable->bytes_offset;
    }
  }
}

static void publish_function(const kilni_image_ptx_reader_t* reader,
                             kilni_image_ptx_arena_t* arena,
                             kilni_image_ptx_function_t* function) {
  function->name = ptx_reader_text_at(
      arena, kilni_image_ptx_name(reader, function->name_id)->offset);
  // A count of 0 leaves the pointer NULL: the array may not exist at all.
  if (function->instruction_count > 0) {
    function->instructions =
        KILNI_PTX_AT(arena->instructions, kilni_image_ptx_instruction_t,
                     function->first_instruction);
  }
  if (function->register_count > 0) {
    function->registers = KILNI_PTX_AT(
        arena->registers, kilni_image_ptx_register_t, function->first_register);
  }
  if (function->label_count > 0) {
    function->labels = KILNI_PTX_AT(arena->labels, kilni_image_ptx_label_t,
                                    function->first_label);
  }
  if (function->table_count > 0) {
    function->tables = KILNI_PTX_AT(arena->tables, kilni_image_ptx_table_t,
                                    function->first_table);
  }
}

// Turns offsets into pointers, now that nothing moves any more.
static void ptx_reader_publish(const kilni_image_ptx_reader_t* reader) {
  kilni_image_ptx_arena_t* arena = reader->arena;
  publish_variables(reader, arena);
  for (uint32_t i = 0; i < arena->functions.count; i++) {
    publish_function(
        reader, arena,
        KILNI_PTX_AT(arena->functions, kilni_image_ptx_function_t, i));
  }
  for (uint32_t i = 0; i < arena->registers.count; i++) {
    kilni_image_ptx_register_t* reg =
        KILNI_PTX_AT(arena->registers, kilni_image_ptx_register_t, i);
    reg->name = ptx_reader_text_at(
        arena, kilni_image_ptx_name(reader, reg->name_id)->offset);
  }
  for (uint32_t i = 0; i < arena->labels.count; i++) {
    kilni_image_ptx_label_t* label =
        KILNI_PTX_AT(arena->labels, kilni_image_ptx_label_t, i);
    label->name = ptx_reader_text_at(
        arena, kilni_image_ptx_name(reader, label->name_id)->offset);
  }
  for (uint32_t i = 0; i < arena->tables.count; i++) {
    kilni_image_ptx_table_t* table =
        KILNI_PTX_AT(arena->tables, kilni_image_ptx_table_t, i);
    table->name = ptx_reader_text_at(
        arena, kilni_image_ptx_name(reader, table->name_id)->offset);
  }
  for (uint32_t i = 0; i < arena->forms.count; i++) {
    kilni_image_ptx_form_t* form =
        KILNI_PTX_AT(arena->forms, kilni_image_ptx_form_t, i);
    form->text = ptx_reader_text_at(arena, form->text_offset);
    if (form->modifier_count > 0) {
      form->modifiers =
          KILNI_PTX_AT(arena->modifiers, uint16_t, form->first_modifier);
    }
  }
  for (uint32_t i = 0; i < arena->files.count; i++) {
    kilni_image_ptx_file_t* file =
        KILNI_PTX_AT(arena->files, kilni_image_ptx_file_t, i);
    file->name = ptx_reader_text_at(arena, file->name_offset);
  }
}

static void publish_arrays(kilni_image_ptx_arena_t* arena) {
  kilni_image_ptx_module_t* module = &arena->module;
  module->functions = arena->functions.data;
  module->function_count = arena->functions.count;
  module->variables = arena->variables.data;
  module->variable_count = arena->variables.count;
  module->instructions = arena->instructions.data;
  module->instruction_count = arena->instructions.count;
  module->operands = arena->operands.data;
  module->operand_count = arena->operands.count;
  module->forms = arena->forms.data;
  module->form_count = arena->forms.count;
  module->registers = arena->registers.data;
  module->register_count = arena->registers.count;
  module->labels = arena->labels.data;
  module->label_count = arena->labels.count;
  module->tables = arena->tables.data;
  module->table_count = arena->tables.count;
  module->entries = arena->entries.data;
  module->entry_count = arena->entries.count;
  module->relocations = arena->relocations.data;
  module->relocation_count = arena->relocations.count;
  module->locations = arena->locations.data;
  module->location_count = arena->locations.count;
  module->files = arena->files.data;
  module->file_count = arena->files.count;
}

static void init_elements(kilni_image_ptx_reader_t* reader) {
  kilni_image_ptx_arena_t* arena = reader->arena;
  arena->functions.element = sizeof(kilni_image_ptx_function_t);
  arena->variables.element = sizeof(kilni_image_ptx_variable_t);
  arena->instructions.element = sizeof(kilni_image_ptx_instruction_t);
  arena->operands.element = sizeof(kilni_image_ptx_operand_t);
  arena->forms.element = sizeof(kilni_image_ptx_form_t);
  arena->modifiers.element = sizeof(uint16_t);
  arena->registers.element = sizeof(kilni_image_ptx_register_t);
  arena->labels.element = sizeof(kilni_image_ptx_label_t);
  arena->tables.element = sizeof(kilni_image_ptx_table_t);
  arena->entries.element = sizeof(uint32_t);
  arena->relocations.element = sizeof(kilni_image_ptx_relocation_t);
  arena->locations.element = sizeof(kilni_image_ptx_location_t);
  arena->files.element = sizeof(kilni_image_ptx_file_t);
  arena->bytes.element = 1;
  arena->text.element = 1;
  reader->names.element = sizeof(kilni_image_ptx_name_t);
  reader->bindings.element = sizeof(kilni_image_ptx_binding_t);
  reader->ranges.element = sizeof(kilni_image_ptx_range_t);
  reader->slots.element = sizeof(uint32_t);
  reader->pending.element = sizeof(kilni_image_ptx_pending_t);
  reader->prototypes.element = sizeof(kilni_image_ptx_variable_t);
  reader->children.element = sizeof(kilni_image_ptx_operand_t);
  reader->spelling.element = 1;
  reader->rules.element = sizeof(kilni_image_ptx_rule_t);
  reader->function = KILNI_PTX_NONE;
  reader->location = KILNI_PTX_NONE;
}

static void ptx_reader_read_limits(const kilni_image_ptx_limits_t* wanted,
                                   kilni_image_ptx_limits_t* out) {
  *out = kilni_image_ptx_limits_default();
  if (wanted == NULL) return;
#define KILNI_PTX_LIMIT_COPY(name, value, text) \
  if (wanted->name != 0) out->name = wanted->name;
  KILNI_PTX_LIMITS(KILNI_PTX_LIMIT_COPY)
#undef KILNI_PTX_LIMIT_COPY
}

static bool make_buckets(kilni_image_ptx_reader_t* reader) {
  void* names = NULL;
  void* forms = NULL;
  kiln_status_t status = kilni_base_alloc_array(reader->allocator, NAME_BUCKETS,
                                                sizeof(uint32_t), &names);
  reader->buckets = names;
  if (kiln_status_is_ok(status)) {
    reader->bucket_count = NAME_BUCKETS;
    status = kilni_base_alloc_array(reader->allocator, FORM_BUCKETS,
                                    sizeof(uint32_t), &forms);
    reader->form_buckets = forms;
  }
  if (kiln_status_is_ok(status)) {
    reader->form_bucket_count = FORM_BUCKETS;
    return true;
  }
  kiln_status_free(status);
  return kilni_image_ptx_fail_memory(reader);
}

static void free_reader(kilni_image_ptx_reader_t* reader) {
  kiln_allocator_t allocator = reader->allocator;
  kilni_base_free_array(allocator, reader->buckets, reader->bucket_count,
                        sizeof(uint32_t));
  kilni_base_free_array(allocator, reader->form_buckets,
                        reader->form_bucket_count, sizeof(uint32_t));
  free_array(allocator, &reader->names);
  free_array(allocator, &reader->bindings);
  free_array(allocator, &reader->ranges);
  free_array(allocator, &reader->slots);
  free_array(allocator, &reader->pending);
  free_array(allocator, &reader->prototypes);
  free_array(allocator, &reader->children);
  free_array(allocator, &reader->spelling);
  free_array(allocator, &reader->rules);
}

kiln_status_t kilni_image_ptx_module_create(
    kiln_bytes_view_t text, const char* name,
    const kilni_image_ptx_limits_t* limits, kiln_allocator_t allocator,
    kilni_image_ptx_module_t** out_module) {
  *out_module = NULL;
  kilni_image_ptx_reader_t reader;
  memset(&reader, 0, sizeof(reader));
  reader.allocator = allocator;
  reader.name = name != NULL ? name : "PTX";
  ptx_reader_read_limits(limits, &reader.limits);
  if (text.size > reader.limits.input_bytes) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "%s: %zu bytes exceed the limit input_bytes of %llu",
                   reader.name, text.size,
                   (unsigned long long)reader.limits.input_bytes),
        "split the module");
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_image_ptx_arena_t), &block));
  reader.arena = block;
  reader.arena->allocator = allocator;
  atomic_init(&reader.arena->references, 1);
  init_elements(&reader);
  kilni_image_ptx_lexer_init(&reader.lexer, text, &reader.limits);
  if (make_buckets(&reader) && ptx_reader_read_module(&reader)) {
    publish_arrays(reader.arena);
    ptx_reader_publish(&reader);
    *out_module = &reader.arena->module;
  } else {
    free_arena(reader.arena);
  }
  free_reader(&reader);
  return reader.status;
}

// A module is its arena's first member.
static kilni_image_ptx_arena_t* ptx_reader_arena_of(
    kilni_image_ptx_module_t* module) {
  return (kilni_image_ptx_arena_t*)module;
}

void kilni_image_ptx_module_retain(kilni_image_ptx_module_t* module) {
  if (module == NULL) return;
  atomic_fetch_add_explicit(&ptx_reader_arena_of(module)->references, 1,
                            memory_order_relaxed);
}

void kilni_image_ptx_module_release(kilni_image_ptx_module_t* module) {
  if (module == NULL) return;
  kilni_image_ptx_arena_t* arena = ptx_reader_arena_of(module);
  if (atomic_fetch_sub_explicit(&arena->references, 1, memory_order_acq_rel) ==
      1) {
    free_arena(arena);
  }
}

kiln_allocator_t kilni_image_ptx_module_allocator(
    const kilni_image_ptx_module_t* module) {
  return ((const kilni_image_ptx_arena_t*)module)->allocator;
}

uint32_t kilni_image_ptx_function_find(const kilni_image_ptx_module_t* module,
                                       kiln_string_view_t name) {
  for (uint32_t i = 0; i < module->function_count; i++) {
    if (kilni_base_sv_equal_cstr(name, module->functions[i].name)) return i;
  }
  return KILNI_PTX_NONE;
}

uint32_t kilni_image_ptx_variable_find(const kilni_image_ptx_module_t* module,
                                       kiln_string_view_t name) {
  for (uint32_t i = 0; i < module->variable_count; i++) {
    const kilni_image_ptx_variable_t* variable = &module->variables[i];
    if (variable->function == KILNI_PTX_NONE && variable->name[0] != '\0' &&
        kilni_base_sv_equal_cstr(name, variable->name)) {
      return i;
    }
  }
  return KILNI_PTX_NONE;
}
