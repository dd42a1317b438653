// SPDX-License-Identifier: Apache-2.0
//
// support: is a PTX syntax tree what its header promises?
#include "ptx_check.h"

#include <string.h>

#define CHECK(condition)                 \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

static bool spans(uint32_t first, uint32_t count, uint32_t total) {
  return first <= total && count <= total - first;
}

static const char* check_operand(const kilni_image_ptx_module_t* m,
                                 const kilni_image_ptx_function_t* f,
                                 uint32_t index) {
  const kilni_image_ptx_operand_t* o = &m->operands[index];
  CHECK(o->count == 0 || spans(o->first, o->count, m->operand_count));
  // Children lie in front of their parent, so a walk always ends.
  CHECK(o->count == 0 || o->first + o->count <= index);
  switch (o->kind) {
    case KILNI_PTX_OPERAND_REGISTER:
      CHECK(o->index < f->register_count);
      CHECK(o->component == KILNI_PTX_WHOLE ||
            o->component < f->registers[o->index].vector);
      break;
    case KILNI_PTX_OPERAND_SPECIAL:
      CHECK(o->index < KILNI_PTX_SREG_COUNT);
      CHECK(o->component == KILNI_PTX_WHOLE ||
            o->component < kilni_image_ptx_sreg_components(o->index));
      break;
    case KILNI_PTX_OPERAND_VARIABLE:
      CHECK(o->index < m->variable_count);
      break;
    case KILNI_PTX_OPERAND_FUNCTION:
      CHECK(o->index < m->function_count);
      break;
    case KILNI_PTX_OPERAND_ADDRESS:
      if (o->base == KILNI_PTX_BASE_REGISTER) {
        CHECK(o->index < f->register_count);
      } else if (o->base == KILNI_PTX_BASE_VARIABLE) {
        CHECK(o->index < m->variable_count);
      } else if (o->base == KILNI_PTX_BASE_FUNCTION) {
        CHECK(o->index < m->function_count);
      } else {
        CHECK(o->base == KILNI_PTX_BASE_NONE);
      }
      break;
    case KILNI_PTX_OPERAND_VECTOR:
      CHECK(o->count > 0);
      break;
    case KILNI_PTX_OPERAND_PAIR:
      CHECK(o->count == 2);
      break;
    case KILNI_PTX_OPERAND_LABEL:
      CHECK(o->index < f->label_count);
      break;
    case KILNI_PTX_OPERAND_TABLE:
      CHECK(o->index < f->table_count);
      break;
    default:
      CHECK(o->kind <= KILNI_PTX_OPERAND_LIST);
      break;
  }
  return NULL;
}

static const char* check_instruction(const kilni_image_ptx_module_t* m,
                                     const kilni_image_ptx_function_t* f,
                                     const kilni_image_ptx_instruction_t* i,
                                     uint32_t* inout_operand) {
  CHECK(i->form < m->form_count);
  CHECK(i->opcode == m->forms[i->form].opcode);
  CHECK(i->opcode < KILNI_PTX_OPCODE_COUNT);
  CHECK(spans(i->first_operand, i->operand_count, m->operand_count));
  CHECK(i->line > 0 && i->column > 0);
  CHECK(i->location == KILNI_PTX_NONE || i->location < m->location_count);
  if (i->guard == KILNI_PTX_GUARD_NONE) {
    CHECK(i->guard_register == KILNI_PTX_NONE);
  } else {
    CHECK(i->guard_register < f->register_count);
    CHECK(f->registers[i->guard_register].type == KILNI_PTX_TYPE_PRED);
  }
  if (i->opcode == KILNI_PTX_OP_CALL) {
    const kilni_image_ptx_operand_t* o =
        kilni_image_ptx_instruction_operands(m, i);
    CHECK(i->operand_count == 4);
    CHECK(o[0].kind == KILNI_PTX_OPERAND_LIST);
    CHECK(o[1].kind == KILNI_PTX_OPERAND_FUNCTION ||
          o[1].kind == KILNI_PTX_OPERAND_REGISTER);
    CHECK(o[2].kind == KILNI_PTX_OPERAND_LIST);
    CHECK(o[3].kind == KILNI_PTX_OPERAND_NONE ||
          o[3].kind == KILNI_PTX_OPERAND_TABLE);
  }
  // Operands of a function are one stretch, in the order of instructions.
  CHECK(i->first_operand >= *inout_operand);
  for (; *inout_operand < i->first_operand + i->operand_count;
       ++*inout_operand) {
    const char* problem = check_operand(m, f, *inout_operand);
    if (problem != NULL) return problem;
  }
  return NULL;
}

static const char* check_table(const kilni_image_ptx_module_t* m,
                               const kilni_image_ptx_function_t* f,
                               const kilni_image_ptx_table_t* t) {
  CHECK(t->name != NULL && t->name[0] != '\0');
  if (t->kind == KILNI_PTX_TABLE_PROTOTYPE) {
    CHECK(spans(t->first_return, t->return_count, m->variable_count));
    CHECK(spans(t->first_parameter, t->parameter_count, m->variable_count));
    return NULL;
  }
  CHECK(t->count > 0 && spans(t->first, t->count, m->entry_count));
  for (uint32_t i = 0; i < t->count; i++) {
    uint32_t entry = m->entries[t->first + i];
    CHECK(entry < (t->kind == KILNI_PTX_TABLE_BRANCH_TARGETS
                       ? f->label_count
                       : m->function_count));
  }
  return NULL;
}

static const char* check_function(const kilni_image_ptx_module_t* m,
                                  const kilni_image_ptx_function_t* f,
                                  uint32_t index, uint32_t* inout_operand) {
  CHECK(f->name != NULL && f->name[0] != '\0');
  CHECK(spans(f->first_return, f->return_count, m->variable_count));
  CHECK(spans(f->first_parameter, f->parameter_count, m->variable_count));
  CHECK(f->is_defined || f->instruction_count == 0);
  if (!f->is_defined) return NULL;
  for (uint32_t i = 0; i < f->parameter_count; i++) {
    CHECK(m->variables[f->first_parameter + i].function == index);
  }
  CHECK(spans(f->first_variable, f->variable_count, m->variable_count));
  for (uint32_t i = 0; i < f->variable_count; i++) {
    const kilni_image_ptx_variable_t* v = &m->variables[f->first_variable + i];
    CHECK(v->function == index && v->space != KILNI_PTX_SPACE_REG);
  }
  CHECK(
      spans(f->first_instruction, f->instruction_count, m->instruction_count));
  CHECK(spans(f->first_register, f->register_count, m->register_count));
  CHECK(spans(f->first_label, f->label_count, m->label_count));
  CHECK(spans(f->first_table, f->table_count, m->table_count));
  for (uint32_t i = 0; i < f->register_count; i++) {
    CHECK(f->registers[i].name != NULL && f->registers[i].name[0] != '\0');
    CHECK(kilni_image_ptx_type_bits(f->registers[i].type) > 0);
  }
  for (uint32_t i = 0; i < f->label_count; i++) {
    CHECK(f->labels[i].instruction <= f->instruction_count);
  }
  for (uint32_t i = 0; i < f->table_count; i++) {
    const char* problem = check_table(m, f, &f->tables[i]);
    if (problem != NULL) return problem;
  }
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    const char* problem =
        check_instruction(m, f, &f->instructions[i], inout_operand);
    if (problem != NULL) return problem;
  }
  return NULL;
}

static const char* check_variable(const kilni_image_ptx_module_t* m,
                                  const kilni_image_ptx_variable_t* v) {
  CHECK(v->name != NULL);
  CHECK(v->function == KILNI_PTX_NONE || v->function < m->function_count);
  CHECK(v->align != 0 && (v->align & (v->align - 1)) == 0);
  CHECK(v->byte_count <= v->size_bytes);
  CHECK((v->byte_count > 0) == (v->bytes != NULL));
  uint64_t sum = 0;
  for (uint64_t i = 0; i < v->byte_count; i++) sum += v->bytes[i];
  CHECK(sum <= 255 * v->byte_count);  // reads them all
  CHECK(spans(v->first_relocation, v->relocation_count, m->relocation_count));
  for (uint32_t i = 0; i < v->relocation_count; i++) {
    const kilni_image_ptx_relocation_t* r =
        &m->relocations[v->first_relocation + i];
    CHECK(r->offset <= v->size_bytes && r->size <= v->size_bytes - r->offset);
    CHECK(r->index < (r->kind == KILNI_PTX_RELOC_VARIABLE ? m->variable_count
                                                          : m->function_count));
  }
  return NULL;
}

static const char* check_form(const kilni_image_ptx_form_t* form) {
  CHECK(form->text != NULL);
  const char* word = kilni_image_ptx_opcode_text(form->opcode);
  size_t at = strlen(word);
  CHECK(strncmp(form->text, word, at) == 0);
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    word = kilni_image_ptx_modifier_text(form->modifiers[i]);
    CHECK(form->text[at] == '.');
    CHECK(strncmp(form->text + at + 1, word, strlen(word)) == 0);
    at += 1 + strlen(word);
  }
  CHECK(form->text[at] == '\0');
  return NULL;
}

const char* ptx_check(const kilni_image_ptx_module_t* module) {
  const char* problem = NULL;
  for (uint32_t i = 0; i < module->form_count && problem == NULL; i++) {
    problem = check_form(&module->forms[i]);
  }
  for (uint32_t i = 0; i < module->variable_count && problem == NULL; i++) {
    problem = check_variable(module, &module->variables[i]);
  }
  // Bodies stand in the arrays in the order of the text, functions in that of
  // their first mention.
  for (uint32_t i = 0; i < module->function_count && problem == NULL; i++) {
    const kilni_image_ptx_function_t* f = &module->functions[i];
    uint32_t operand = 0;
    if (f->instruction_count > 0 && f->first_instruction > 0) {
      const kilni_image_ptx_instruction_t* before =
          &module->instructions[f->first_instruction - 1];
      operand = before->first_operand + before->operand_count;
    }
    problem = check_function(module, f, i, &operand);
  }
  return problem;
}
