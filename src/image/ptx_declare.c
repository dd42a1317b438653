// SPDX-License-Identifier: Apache-2.0
//
// image: declarations of variables, registers and parameters.
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

enum { ALIGN_LIMIT = 1 << 20 };

static bool is_power_of_two(uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

static bool read_align(kilni_image_ptx_reader_t* reader, uint32_t* out_align) {
  kilni_image_ptx_token_t at;
  uint64_t align;
  if (!kilni_image_ptx_next(reader)) return false;
  at = reader->token;
  if (!kilni_image_ptx_count(reader, "an alignment in bytes", ALIGN_LIMIT,
                             &align)) {
    return false;
  }
  if (!is_power_of_two(align)) {
    return kilni_image_ptx_fail(reader, &at, "write a power of two",
                                "the alignment %llu is not a power of two",
                                (unsigned long long)align);
  }
  *out_align = (uint32_t)align;
  return true;
}

// .attribute(.managed), .attribute(.unified(a, b))
bool kilni_image_ptx_attribute(kilni_image_ptx_reader_t* reader,
                               kilni_image_ptx_declaration_t* out) {
  bool more = true;
  if (!kilni_image_ptx_next(reader) || !kilni_image_ptx_expect(reader, '(')) {
    return false;
  }
  while (more) {
    if (kilni_image_ptx_is_word(reader, "managed")) {
      out->managed = 1;
      if (!kilni_image_ptx_next(reader)) return false;
    } else if (kilni_image_ptx_is_word(reader, "unified")) {
      kilni_image_ptx_constant_t part;
      out->unified = 1;
      if (!kilni_image_ptx_next(reader) ||
          !kilni_image_ptx_expect(reader, '(') ||
          !kilni_image_ptx_constant(reader, &part) ||
          !kilni_image_ptx_expect(reader, ',') ||
          !kilni_image_ptx_constant(reader, &part) ||
          !kilni_image_ptx_expect(reader, ')')) {
        return false;
      }
    } else {
      return kilni_image_ptx_fail_expected(reader, "an attribute");
    }
    if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  return kilni_image_ptx_expect(reader, ')');
}

// `.ptr .space .align n` after a parameter's type.
static bool read_pointer(kilni_image_ptx_reader_t* reader,
                         kilni_image_ptx_declaration_t* out) {
  out->is_pointer = 1;
  if (!kilni_image_ptx_next(reader)) return false;
  if (reader->token.kind == KILNI_PTX_TOKEN_DOT_WORD) {
    uint32_t space = kilni_image_ptx_space_find(reader->token.text);
    if (space == KILNI_PTX_SPACE_CONST || space == KILNI_PTX_SPACE_GLOBAL ||
        space == KILNI_PTX_SPACE_LOCAL || space == KILNI_PTX_SPACE_SHARED) {
      out->pointer_space = (uint8_t)space;
      if (!kilni_image_ptx_next(reader)) return false;
    }
  }
  if (kilni_image_ptx_is_word(reader, "align")) {
    return read_align(reader, &out->pointer_align);
  }
  return true;
}

static bool ptx_declare_read_vector(kilni_image_ptx_reader_t* reader,
                                    kilni_image_ptx_declaration_t* out) {
  static const char* const kWords[] = {"v2", "v4"};
  out->vector = 1;
  for (uint32_t i = 0; i < 2; i++) {
    if (!kilni_image_ptx_is_word(reader, kWords[i])) continue;
    out->vector = (uint8_t)(2u << i);
    return kilni_image_ptx_next(reader);
  }
  return true;
}

static bool is_variable_type(uint32_t type) {
  switch (type) {
    case KILNI_PTX_TYPE_NONE:
    case KILNI_PTX_TYPE_TF32:
      return false;
    default:
      break;
  }
  switch (kilni_image_ptx_type_class(type)) {
    case KILNI_PTX_CLASS_PACKED:
      return type == KILNI_PTX_TYPE_F16X2 || type == KILNI_PTX_TYPE_BF16X2;
    case KILNI_PTX_CLASS_PREDICATE:
    case KILNI_PTX_CLASS_OPAQUE:
      return true;
    default:
      return kilni_image_ptx_type_bits(type) >= 8 && type < KILNI_PTX_MOD_E4M3;
  }
}

// [.attribute] [.align] [.vN] .type [.ptr ...], in any order that ptxas takes.
static bool ptx_declare_read_type(kilni_image_ptx_reader_t* reader,
                                  kilni_image_ptx_declaration_t* out) {
  for (;;) {
    if (kilni_image_ptx_is_word(reader, "attribute")) {
      if (!kilni_image_ptx_attribute(reader, out)) return false;
    } else if (kilni_image_ptx_is_word(reader, "align")) {
      if (!read_align(reader, &out->align)) return false;
    } else {
      break;
    }
  }
  if (!ptx_declare_read_vector(reader, out)) return false;
  if (reader->token.kind != KILNI_PTX_TOKEN_DOT_WORD) {
    return kilni_image_ptx_fail_expected(reader, "a type such as .b32");
  }
  uint32_t type = kilni_image_ptx_type_find(reader->token.text);
  if (!is_variable_type(type)) {
    return kilni_image_ptx_fail_expected(reader, "a type such as .b32");
  }
  out->type = (uint8_t)type;
  if (type == KILNI_PTX_TYPE_PRED && out->space != KILNI_PTX_SPACE_REG) {
    return kilni_image_ptx_fail(reader, &reader->token, "declare it as .reg",
                                "a predicate can only be a register");
  }
  if (!kilni_image_ptx_next(reader)) return false;
  if (kilni_image_ptx_is_word(reader, "ptr")) {
    if (out->space != KILNI_PTX_SPACE_PARAM) {
      return kilni_image_ptx_fail_expected(reader, "a name");
    }
    return read_pointer(reader, out);
  }
  return true;
}

static bool read_dimension(kilni_image_ptx_reader_t* reader,
                           kilni_image_ptx_variable_t* variable) {
  kilni_image_ptx_token_t at = reader->token;
  uint32_t index = variable->dimension_count;
  if (index == KILNI_PTX_MAX_DIMENSIONS) {
    return kilni_image_ptx_fail_limit(reader, "dimensions",
                                      KILNI_PTX_MAX_DIMENSIONS);
  }
  if (!kilni_image_ptx_next(reader)) return false;
  uint64_t count = 0;
  if (!kilni_image_ptx_is(reader, ']') &&
      !kilni_image_ptx_count(reader, "an array dimension", UINT32_MAX,
                             &count)) {
    return false;
  }
  variable->dimensions[index] = count;
  variable->dimension_count++;
  if (count == 0) {
    if (index > 0) {
      return kilni_image_ptx_fail(reader, &at, "write the dimension",
                                  "only the first dimension may be left out");
    }
    variable->unsized = 1;
  }
  return kilni_image_ptx_expect(reader, ']');
}

static bool set_size(kilni_image_ptx_reader_t* reader,
                     const kilni_image_ptx_token_t* at,
                     kilni_image_ptx_variable_t* variable) {
  uint64_t size =
      (uint64_t)kilni_image_ptx_type_bytes(variable->type) * variable->vector;
  for (uint32_t i = 0; i < variable->dimension_count; i++) {
    if (i == 0 && variable->unsized) {
      size = 0;
      break;
    }
    uint64_t count = variable->dimensions[i];
    if (count > reader->limits.variable_bytes / size) {
      reader->token = *at;
      return kilni_image_ptx_fail_limit(reader, "variable_bytes",
                                        reader->limits.variable_bytes);
    }
    size *= count;
  }
  variable->size_bytes = size;
  return true;
}

static void fill_variable(const kilni_image_ptx_declaration_t* declaration,
                          const kilni_image_ptx_token_t* at, uint32_t function,
                          uint32_t name, kilni_image_ptx_variable_t* out) {
  memset(out, 0, sizeof(*out));
  out->name_id = name;
  out->function = function;
  out->space = declaration->space;
  out->linkage = declaration->linkage;
  out->type = declaration->type;
  out->vector = declaration->vector;
  uint32_t natural =
      kilni_image_ptx_type_bytes(declaration->type) * declaration->vector;
  out->align = declaration->align != 0 ? declaration->align : natural;
  out->line = at->line;
  out->column = at->column;
  out->is_pointer = declaration->is_pointer;
  out->pointer_space = declaration->pointer_space;
  out->pointer_align = declaration->pointer_align;
  out->managed = declaration->managed;
  out->unified = declaration->unified;
  out->register_index = KILNI_PTX_NONE;
}

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

static bool ptx_declare_take_name(kilni_image_ptx_reader_t* reader,
                                  uint32_t* out_name) {
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER ||
      kilni_base_sv_equal_cstr(reader->token.text, "_")) {
    return kilni_image_ptx_fail_expected(reader, "a name");
  }
  return kilni_image_ptx_intern(reader, reader->token.text, out_name) &&
         kilni_image_ptx_next(reader);
}

// `<n>` after a name, if present.
static bool ptx_declare_read_range(kilni_image_ptx_reader_t* reader,
                                   bool* out_there, uint32_t* out_count) {
  uint64_t count = 0;
  if (!kilni_image_ptx_accept(reader, '<', out_there)) return false;
  if (!*out_there) return true;
  if (!kilni_image_ptx_count(reader, "a number of registers", UINT32_MAX,
                             &count)) {
    return false;
  }
  if (count > reader->limits.registers) {
    return kilni_image_ptx_fail_limit(reader, "registers",
                                      reader->limits.registers);
  }
  *out_count = (uint32_t)count;
  return kilni_image_ptx_expect(reader, '>');
}

static bool declare_registers(
    kilni_image_ptx_reader_t* reader,
    const kilni_image_ptx_declaration_t* declaration) {
  bool more = true;
  while (more) {
    kilni_image_ptx_token_t at = reader->token;
    uint32_t name;
    uint32_t count = 0;
    bool is_range;
    if (!ptx_declare_take_name(reader, &name) ||
        !ptx_declare_read_range(reader, &is_range, &count)) {
      return false;
    }
    if (is_range) {
      if (!kilni_image_ptx_bind_range(reader, &at, name, count,
                                      declaration->type, declaration->vector)) {
        return false;
      }
    } else {
      kilni_image_ptx_binding_t* binding;
      if (!kilni_image_ptx_bind(reader, &at, name, KILNI_PTX_SYMBOL_REGISTER,
                                KILNI_PTX_NONE, &binding)) {
        return false;
      }
      binding->type = declaration->type;
      binding->vector = declaration->vector;
    }
    if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  return kilni_image_ptx_expect(reader, ';');
}

static bool same_variable(const kilni_image_ptx_variable_t* a,
                          const kilni_image_ptx_variable_t* b) {
  if (a->space != b->space || a->type != b->type || a->vector != b->vector ||
      a->dimension_count != b->dimension_count) {
    return false;
  }
  for (uint32_t i = 0; i < a->dimension_count; i++) {
    bool open = i == 0 && (a->unsized || b->unsized);
    if (!open && a->dimensions[i] != b->dimensions[i]) return false;
  }
  return true;
}

// A module-scope name that exists already: an .extern declaration meets its
// definition, or it is a mistake. `slot` is the record to keep.
static bool merge_global(kilni_image_ptx_reader_t* reader,
                         const kilni_image_ptx_token_t* at,
                         const kilni_image_ptx_variable_t* fresh,
                         uint32_t index) {
  kilni_image_ptx_variable_t* known =
      KILNI_PTX_AT(reader->arena->variables, kilni_image_ptx_variable_t, index);
  bool known_extern = known->linkage == KILNI_PTX_LINKAGE_EXTERN;
  bool fresh_extern = fresh->linkage == KILNI_PTX_LINKAGE_EXTERN;
  if (!known_extern && !fresh_extern) {
    return kilni_image_ptx_fail(reader, at, "rename one of the two",
                                "\"%.*s\" is defined twice, first in line %u",
                                KILNI_SV(at->text), known->line);
  }
  if (!same_variable(known, fresh)) {
    return kilni_image_ptx_fail(
        reader, at, "declare it the same way both times",
        "\"%.*s\" differs from its declaration in line %u", KILNI_SV(at->text),
        known->line);
  }
  if (known_extern && !fresh_extern &&
      fresh->linkage == KILNI_PTX_LINKAGE_NONE) {
    return kilni_image_ptx_fail(reader, at, "define it as .visible",
                                "\"%.*s\" was declared .extern in line %u",
                                KILNI_SV(at->text), known->line);
  }
  if (!fresh_extern) *known = *fresh;
  return true;
}

static bool add_global(kilni_image_ptx_reader_t* reader,
                       const kilni_image_ptx_token_t* at,
                       const kilni_image_ptx_variable_t* fresh) {
  kilni_image_ptx_name_t* name = kilni_image_ptx_name(reader, fresh->name_id);
  if (name->global_kind == KILNI_PTX_SYMBOL_VARIABLE) {
    return merge_global(reader, at, fresh, name->global_index);
  }
  if (name->global_kind != KILNI_PTX_SYMBOL_NONE) {
    return kilni_image_ptx_fail(reader, at, "rename one of the two",
                                "\"%.*s\" is already a function",
                                KILNI_SV(at->text));
  }
  kilni_image_ptx_variable_t* variable =
      kilni_image_ptx_push(reader, &reader->arena->variables, 1, "variables",
                           reader->limits.variables);
  if (variable == NULL) return false;
  *variable = *fresh;
  name->global_kind = KILNI_PTX_SYMBOL_VARIABLE;
  name->global_index = reader->arena->variables.count - 1;
  return true;
}

static bool add_local(kilni_image_ptx_reader_t* reader,
                      const kilni_image_ptx_token_t* at,
                      const kilni_image_ptx_variable_t* fresh) {
  kilni_image_ptx_variable_t* variable =
      kilni_image_ptx_push(reader, &reader->arena->variables, 1, "variables",
                           reader->limits.variables);
  if (variable == NULL) return false;
  *variable = *fresh;
  return kilni_image_ptx_bind(reader, at, fresh->name_id,
                              KILNI_PTX_SYMBOL_VARIABLE,
                              reader->arena->variables.count - 1, NULL);
}

static bool check_space(kilni_image_ptx_reader_t* reader,
                        const kilni_image_ptx_token_t* at,
                        const kilni_image_ptx_declaration_t* declaration) {
  uint32_t space = declaration->space;
  bool inside = reader->function != KILNI_PTX_NONE;
  if (!inside &&
      (space == KILNI_PTX_SPACE_REG || space == KILNI_PTX_SPACE_LOCAL ||
       space == KILNI_PTX_SPACE_PARAM)) {
    return kilni_image_ptx_fail(reader, at, "move it into a function",
                                ".%s variables belong in a function",
                                kilni_image_ptx_space_text(space));
  }
  return true;
}

static bool ptx_declare_check_complete(
    kilni_image_ptx_reader_t* reader, const kilni_image_ptx_token_t* at,
    const kilni_image_ptx_variable_t* variable) {
  if (!variable->unsized || variable->linkage == KILNI_PTX_LINKAGE_EXTERN) {
    return true;
  }
  return kilni_image_ptx_fail(reader, at, "write its size or make it .extern",
                              "the array \"%.*s\" has no size",
                              KILNI_SV(at->text));
}

static bool ptx_declare_read_value(kilni_image_ptx_reader_t* reader,
                                   const kilni_image_ptx_token_t* at,
                                   kilni_image_ptx_variable_t* variable) {
  bool there;
  if (!kilni_image_ptx_accept(reader, '=', &there)) return false;
  if (!there) return true;
  if ((variable->space != KILNI_PTX_SPACE_GLOBAL &&
       variable->space != KILNI_PTX_SPACE_CONST) ||
      variable->linkage == KILNI_PTX_LINKAGE_EXTERN) {
    return kilni_image_ptx_fail(reader, at, "drop the initial value",
                                "\"%.*s\" cannot have an initial value",
                                KILNI_SV(at->text));
  }
  return kilni_image_ptx_initialiser(reader, variable);
}

static bool ptx_declare_add_variable(
    kilni_image_ptx_reader_t* reader,
    const kilni_image_ptx_declaration_t* declaration,
    const kilni_image_ptx_token_t* at, kilni_image_ptx_variable_t* variable) {
  if (!ptx_declare_read_value(reader, at, variable) ||
      !ptx_declare_check_complete(reader, at, variable)) {
    return false;
  }
  variable->declared_only = declaration->linkage == KILNI_PTX_LINKAGE_EXTERN;
  return reader->function == KILNI_PTX_NONE ? add_global(reader, at, variable)
                                            : add_local(reader, at, variable);
}

// name<n> declares n variables name0, name1, ...
static bool add_range(kilni_image_ptx_reader_t* reader,
                      const kilni_image_ptx_declaration_t* declaration,
                      const kilni_image_ptx_token_t* at,
                      const kilni_image_ptx_variable_t* model, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    kilni_image_ptx_variable_t variable = *model;
    kilni_base_str_t text;
    kilni_base_str_init(&text, reader->allocator,
                        reader->limits.identifier_bytes);
    kilni_base_str_addf(&text, "%.*s%u", KILNI_SV(at->text), i);
    kiln_status_t status = kilni_base_str_status(&text);
    bool ok = kiln_status_is_ok(status);
    if (!ok) {
      kiln_status_free(status);
      kilni_image_ptx_fail_memory(reader);
    }
    kilni_image_ptx_token_t name = *at;
    name.text = kilni_base_sv_make(text.data, text.size);
    ok = ok && kilni_image_ptx_intern(reader, name.text, &variable.name_id) &&
         ptx_declare_add_variable(reader, declaration, &name, &variable);
    kilni_base_str_deinit(&text);
    if (!ok) return false;
  }
  return true;
}

static bool declare_one(kilni_image_ptx_reader_t* reader,
                        const kilni_image_ptx_declaration_t* declaration) {
  kilni_image_ptx_token_t at = reader->token;
  kilni_image_ptx_variable_t variable;
  uint32_t name;
  uint32_t count = 0;
  bool is_range;
  if (!ptx_declare_take_name(reader, &name) ||
      !ptx_declare_read_range(reader, &is_range, &count)) {
    return false;
  }
  fill_variable(declaration, &at, reader->function, name, &variable);
  while (kilni_image_ptx_is(reader, '[')) {
    if (!read_dimension(reader, &variable)) return false;
  }
  if (!set_size(reader, &at, &variable)) return false;
  if (is_range) {
    if (count > reader->limits.parameters) {
      return kilni_image_ptx_fail_limit(reader, "parameters",
                                        reader->limits.parameters);
    }
    return add_range(reader, declaration, &at, &variable, count);
  }
  return ptx_declare_add_variable(reader, declaration, &at, &variable);
}

bool kilni_image_ptx_declare(kilni_image_ptx_reader_t* reader,
                             uint32_t linkage) {
  kilni_image_ptx_token_t at = reader->token;
  kilni_image_ptx_declaration_t declaration;
  memset(&declaration, 0, sizeof(declaration));
  declaration.linkage = (uint8_t)linkage;
  if (kilni_image_ptx_is_word(reader, "align") &&
      !read_align(reader, &declaration.align)) {
    return false;
  }
  if (reader->token.kind == KILNI_PTX_TOKEN_DOT_WORD) {
    declaration.space = (uint8_t)kilni_image_ptx_space_find(reader->token.text);
  }
  if (declaration.space == KILNI_PTX_SPACE_NONE) {
    return kilni_image_ptx_fail_expected(
        reader, "a directive or a state space such as .global");
  }
  if (!check_space(reader, &at, &declaration) ||
      !kilni_image_ptx_next(reader) ||
      !ptx_declare_read_type(reader, &declaration)) {
    return false;
  }
  if (declaration.space == KILNI_PTX_SPACE_REG) {
    return declare_registers(reader, &declaration);
  }
  bool more = true;
  while (more) {
    if (!declare_one(reader, &declaration) ||
        !kilni_image_ptx_accept(reader, ',', &more)) {
      return false;
    }
  }
  return kilni_image_ptx_expect(reader, ';');
}

// ---------------------------------------------------------------------------
// Parameters
// ---------------------------------------------------------------------------

static bool parameter_name(kilni_image_ptx_reader_t* reader, bool prototype,
                           uint32_t* out_name) {
  *out_name = KILNI_PTX_NONE;
  bool sink = reader->token.kind == KILNI_PTX_TOKEN_IDENTIFIER &&
              kilni_base_sv_equal_cstr(reader->token.text, "_");
  if (prototype && sink) return kilni_image_ptx_next(reader);
  return ptx_declare_take_name(reader, out_name);
}

static bool check_parameter(kilni_image_ptx_reader_t* reader,
                            const kilni_image_ptx_token_t* at, bool entry,
                            const kilni_image_ptx_variable_t* variable) {
  if (variable->space != KILNI_PTX_SPACE_PARAM &&
      (entry || variable->space != KILNI_PTX_SPACE_REG)) {
    return kilni_image_ptx_fail(reader, at, "declare it as .param",
                                "a parameter must be a .param");
  }
  if (variable->space == KILNI_PTX_SPACE_REG && variable->dimension_count > 0) {
    return kilni_image_ptx_fail(reader, at, "declare it as .param",
                                "a register cannot be an array");
  }
  if (variable->unsized && entry) {
    return kilni_image_ptx_fail(reader, at, "write its size",
                                "a kernel's parameter must have a size");
  }
  return true;
}

// Binds the parameter's name in the function's scope.
static bool bind_parameter(kilni_image_ptx_reader_t* reader,
                           const kilni_image_ptx_token_t* at, uint32_t index) {
  kilni_image_ptx_variable_t* variable =
      KILNI_PTX_AT(reader->arena->variables, kilni_image_ptx_variable_t, index);
  if (variable->name_id == KILNI_PTX_NONE) return true;
  if (variable->space != KILNI_PTX_SPACE_REG) {
    return kilni_image_ptx_bind(reader, at, variable->name_id,
                                KILNI_PTX_SYMBOL_VARIABLE, index, NULL);
  }
  return kilni_image_ptx_new_register(reader, variable->name_id, variable->type,
                                      variable->vector, at->line,
                                      &variable->register_index) &&
         kilni_image_ptx_bind(reader, at, variable->name_id,
                              KILNI_PTX_SYMBOL_REGISTER,
                              variable->register_index, NULL);
}

static bool ptx_declare_read_parameter(kilni_image_ptx_reader_t* reader,
                                       bool entry,
                                       kilni_image_ptx_array_t* variables) {
  bool prototype = variables != &reader->arena->variables;
  kilni_image_ptx_declaration_t declaration;
  memset(&declaration, 0, sizeof(declaration));
  kilni_image_ptx_token_t at = reader->token;
  if (kilni_image_ptx_is_word(reader, "align") &&
      !read_align(reader, &declaration.align)) {
    return false;
  }
  if (reader->token.kind == KILNI_PTX_TOKEN_DOT_WORD) {
    declaration.space = (uint8_t)kilni_image_ptx_space_find(reader->token.text);
  }
  if (declaration.space == KILNI_PTX_SPACE_NONE) {
    return kilni_image_ptx_fail_expected(reader,
                                         "a parameter such as .param .b32 a");
  }
  kilni_image_ptx_variable_t variable;
  uint32_t name;
  if (!kilni_image_ptx_next(reader) ||
      !ptx_declare_read_type(reader, &declaration)) {
    return false;
  }
  at = reader->token;
  if (!parameter_name(reader, prototype, &name)) return false;
  fill_variable(&declaration, &at, reader->function, name, &variable);
  while (kilni_image_ptx_is(reader, '[')) {
    if (!read_dimension(reader, &variable)) return false;
  }
  if (!set_size(reader, &at, &variable) ||
      !check_parameter(reader, &at, entry, &variable)) {
    return false;
  }
  kilni_image_ptx_variable_t* slot = kilni_image_ptx_push(
      reader, variables, 1, "variables", reader->limits.variables);
  if (slot == NULL) return false;
  *slot = variable;
  return prototype || bind_parameter(reader, &at, variables->count - 1);
}

bool kilni_image_ptx_parameters(kilni_image_ptx_reader_t* reader, bool entry,
                                kilni_image_ptx_array_t* variables,
                                uint32_t* out_first, uint32_t* out_count) {
  *out_first = variables->count;
  *out_count = 0;
  bool more = true;
  if (!kilni_image_ptx_expect(reader, '(')) return false;
  if (kilni_image_ptx_is(reader, ')')) more = false;
  while (more) {
    if (*out_count == reader->limits.parameters) {
      return kilni_image_ptx_fail_limit(reader, "parameters",
                                        reader->limits.parameters);
    }
    if (!ptx_declare_read_parameter(reader, entry, variables)) return false;
    ++*out_count;
    if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  return kilni_image_ptx_expect(reader, ')');
}
