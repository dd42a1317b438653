// SPDX-License-Identifier: Apache-2.0
//
// image: what a kernel does with its parameters: the accesses, of what the
// other files know of its registers.
#include "image/ptx_use.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

enum { MEMORIES = 4 };  // of facts after the registers'

kilni_image_ptx_fact_t* kilni_image_ptx_fact(
    const kilni_image_ptx_look_t* look,
    const kilni_image_ptx_operand_t* operand) {
  if (operand->kind != KILNI_PTX_OPERAND_REGISTER ||
      operand->component != KILNI_PTX_WHOLE ||
      look->function->registers[operand->index].vector > 1) {
    return NULL;
  }
  return &look->facts[operand->index];
}

uint32_t kilni_image_ptx_form_types(const kilni_image_ptx_form_t* form,
                                    uint32_t out[2]) {
  uint32_t count = 0;
  out[0] = out[1] = KILNI_PTX_TYPE_NONE;
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    if (!kilni_image_ptx_modifier_is_type(form->modifiers[i])) continue;
    if (count++ == 0) out[0] = form->modifiers[i];
    out[1] = form->modifiers[i];
  }
  return count;
}

bool kilni_image_ptx_form_has(const kilni_image_ptx_form_t* form,
                              uint32_t modifier) {
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    if (form->modifiers[i] == modifier) return true;
  }
  return false;
}

uint32_t kilni_image_ptx_form_space(const kilni_image_ptx_form_t* form) {
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    switch (form->modifiers[i]) {
      case KILNI_PTX_MOD_GLOBAL:
        return KILNI_PTX_SPACE_GLOBAL;
      case KILNI_PTX_MOD_SHARED:
        return KILNI_PTX_SPACE_SHARED;
      case KILNI_PTX_MOD_LOCAL:
        return KILNI_PTX_SPACE_LOCAL;
      case KILNI_PTX_MOD_PARAM:
        return KILNI_PTX_SPACE_PARAM;
      case KILNI_PTX_MOD_CONST:
        return KILNI_PTX_SPACE_CONST;
      default:
        break;
    }
  }
  return KILNI_PTX_SPACE_NONE;
}

// The base-2 logarithm of a width that accesses have; WIDTHS: of no other.
static uint32_t ptx_use_width_of(uint32_t bytes) {
  uint32_t width = 0;
  while (width < KILNI_PTX_USE_WIDTHS && (1u << width) != bytes) width++;
  return width;
}

// Where only constant places are known, nothing is of the others.
static uint8_t pitch_with(uint8_t a, uint8_t b) {
  if (a == KILNI_PTX_USE_APART) return b;
  if (b == KILNI_PTX_USE_APART) return a;
  return a > b ? a : b;
}

static void ptx_use_add_access(const kilni_image_ptx_look_t* look,
                               const kilni_image_ptx_fact_t* address,
                               uint32_t kind, uint32_t type) {
  uint32_t width = ptx_use_width_of(kilni_image_ptx_type_bytes(type));
  if (width == KILNI_PTX_USE_WIDTHS) return;
  for (uint32_t i = 0; i < look->use->param_count; i++) {
    if ((address->params >> i & 1) == 0) continue;
    kilni_image_ptx_param_use_t* param = &look->use->params[i];
    bool is_new = (param->widths[kind] >> width & 1) == 0;
    uint8_t* pitch = &param->pitch[kind][width];
    *pitch = is_new ? address->pitch : pitch_with(*pitch, address->pitch);
    param->widths[kind] = (uint8_t)(param->widths[kind] | 1u << width);
  }
}

// What a value of `type` that is loaded or stored counts as; 0: it is constant,
// and shows only its width.
static uint32_t ptx_use_kind_of(const kilni_image_ptx_look_t* look,
                                const kilni_image_ptx_operand_t* value,
                                uint32_t type, bool is_store) {
  const kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, value);
  if (fact == NULL) {
    return is_store && value->kind == KILNI_PTX_OPERAND_IMMEDIATE
               ? 0
               : KILN_IMAGE_ACCESS_BITS;
  }
  if (is_store && !fact->varies) return 0;
  uint32_t values = kilni_image_ptx_values_of(look, value->index);
  uint32_t bytes = kilni_image_ptx_type_bytes(type);
  if (kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_SIGNED) {
    return KILN_IMAGE_ACCESS_INTEGER;
  }
  if (bytes == 1 && (values & KILNI_PTX_VALUE_NUMBER) != 0) {
    return KILN_IMAGE_ACCESS_INTEGER;
  }
  // An untyped register that is written again may then have another type.
  if (fact->writes > 1 &&
      kilni_image_ptx_type_class(type) != KILNI_PTX_CLASS_FLOAT) {
    return KILN_IMAGE_ACCESS_BITS;
  }
  // Compilers load floats as floats: these words are bits of one.
  if (kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_UNSIGNED) {
    return KILN_IMAGE_ACCESS_BITS;
  }
  uint32_t wanted = bytes == 4   ? KILNI_PTX_VALUE_F32
                    : bytes == 8 ? KILNI_PTX_VALUE_F64
                                 : 0;
  return wanted != 0 && values == wanted ? KILN_IMAGE_ACCESS_FLOAT
                                         : KILN_IMAGE_ACCESS_BITS;
}

// Whether a value is a half, or two in a word. Compilers load these as integers
// of their width.
static bool ptx_use_is_half(const kilni_image_ptx_look_t* look,
                            const kilni_image_ptx_operand_t* value,
                            uint32_t type) {
  const kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, value);
  uint32_t bytes = kilni_image_ptx_type_bytes(type);
  return fact != NULL && fact->writes < 2 && (bytes == 2 || bytes == 4) &&
         kilni_image_ptx_values_of(look, value->index) == KILNI_PTX_VALUE_HALF;
}

static void add_moved(const kilni_image_ptx_look_t* look,
                      const kilni_image_ptx_fact_t* address,
                      const kilni_image_ptx_operand_t* value, uint32_t type,
                      bool is_store, bool constants) {
  uint32_t kind = ptx_use_kind_of(look, value, type, is_store);
  if ((kind == 0) != constants) return;
  if (kind == KILN_IMAGE_ACCESS_BITS && ptx_use_is_half(look, value, type)) {
    kind = KILN_IMAGE_ACCESS_FLOAT;
    type = KILNI_PTX_TYPE_F16;
  }
  ptx_use_add_access(look, address, kind == 0 ? KILN_IMAGE_ACCESS_BITS : kind,
                     type);
}

static void add_atomic(const kilni_image_ptx_look_t* look,
                       const kilni_image_ptx_form_t* form,
                       const kilni_image_ptx_fact_t* address, uint32_t type) {
  bool adds = kilni_image_ptx_form_has(form, KILNI_PTX_MOD_ADD);
  bool counts = kilni_image_ptx_form_has(form, KILNI_PTX_MOD_INC) ||
                kilni_image_ptx_form_has(form, KILNI_PTX_MOD_DEC);
  kilni_image_ptx_class_t is = kilni_image_ptx_type_class(type);
  bool is_integer =
      is == KILNI_PTX_CLASS_UNSIGNED || is == KILNI_PTX_CLASS_SIGNED;
  // The greatest of floats is often taken as that of integers.
  uint32_t kind = KILN_IMAGE_ACCESS_BITS;
  if ((adds || counts) && is_integer) kind = KILN_IMAGE_ACCESS_INTEGER;
  if (adds && (type == KILNI_PTX_TYPE_F32 || type == KILNI_PTX_TYPE_F64)) {
    kind = KILN_IMAGE_ACCESS_FLOAT;
  }
  ptx_use_add_access(look, address, kind, type);
}

// ---- Structs by value ----

static void ptx_use_add_member(const kilni_image_ptx_look_t* look,
                               const kilni_image_ptx_member_use_t* member) {
  kilni_image_ptx_use_t* use = look->use;
  for (uint32_t i = 0; i < use->member_count; i++) {
    if (memcmp(&use->members[i], member, sizeof(*member)) == 0) return;
  }
  if (use->member_count == KILNI_PTX_USE_MEMBERS) return;
  use->members[use->member_count++] = *member;
}

// A load from a parameter that is an array of bytes, as a struct is in PTX.
static void add_loaded(const kilni_image_ptx_look_t* look,
                       const kilni_image_ptx_instruction_t* ins) {
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(look->module, ins);
  const kilni_image_ptx_operand_t* ops =
      kilni_image_ptx_instruction_operands(look->module, ins);
  uint32_t first = look->function->first_parameter;
  uint32_t types[2];
  if (ins->opcode != KILNI_PTX_OP_LD || ops == NULL || ins->operand_count < 2 ||
      kilni_image_ptx_form_space(form) != KILNI_PTX_SPACE_PARAM ||
      ops[1].kind != KILNI_PTX_OPERAND_ADDRESS ||
      ops[1].base != KILNI_PTX_BASE_VARIABLE || ops[1].index < first ||
      ops[1].index - first >= look->use->param_count ||
      look->module->variables[ops[1].index].dimension_count == 0 ||
      kilni_image_ptx_form_types(form, types) == 0) {
    return;
  }
  const kilni_image_ptx_operand_t* parts =
      ops[0].kind == KILNI_PTX_OPERAND_VECTOR
          ? kilni_image_ptx_operand_children(look->module, &ops[0])
          : &ops[0];
  uint32_t count = parts == &ops[0] ? 1 : ops[0].count;
  uint32_t bytes = kilni_image_ptx_type_bytes(types[1]);
  for (uint32_t i = 0; parts != NULL && i < count; i++) {
    bool half = ptx_use_is_half(look, &parts[i], types[1]);
    kilni_image_ptx_member_use_t member = {
        ops[1].index - first, (uint32_t)ops[1].value + i * bytes,
        half ? KILN_IMAGE_ACCESS_FLOAT
             : ptx_use_kind_of(look, &parts[i], types[1], false),
        half ? 2 : bytes};
    ptx_use_add_member(look, &member);
  }
}

// A struct whose address escapes may be read in other forms.
static void find_members(const kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  kilni_image_ptx_use_t* use = look->use;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    add_loaded(look, &f->instructions[i]);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < use->member_count; i++) {
    if ((look->unknown >> use->members[i].param & 1) != 0) continue;
    use->members[kept++] = use->members[i];
  }
  use->member_count = kept;
}

// ---- The accesses ----

// The accesses of one instruction: those that only store constants, or the
// others.
static void add_accesses(const kilni_image_ptx_look_t* look,
                         const kilni_image_ptx_instruction_t* ins,
                         bool constants) {
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(look->module, ins);
  const kilni_image_ptx_operand_t* ops =
      kilni_image_ptx_instruction_operands(look->module, ins);
  bool is_load =
      ins->opcode == KILNI_PTX_OP_LD || ins->opcode == KILNI_PTX_OP_LDU;
  bool is_store = ins->opcode == KILNI_PTX_OP_ST;
  bool is_atomic =
      ins->opcode == KILNI_PTX_OP_ATOM || ins->opcode == KILNI_PTX_OP_RED;
  if (!is_load && !is_store && !is_atomic) return;
  uint32_t at = is_load || ins->opcode == KILNI_PTX_OP_ATOM ? 1 : 0;
  if (ops == NULL || ins->operand_count <= at ||
      ops[at].kind != KILNI_PTX_OPERAND_ADDRESS ||
      ops[at].base != KILNI_PTX_BASE_REGISTER) {
    return;
  }
  const kilni_image_ptx_fact_t* address = &look->facts[ops[at].index];
  uint32_t types[2];
  if (address->params == 0 || kilni_image_ptx_form_types(form, types) == 0) {
    return;
  }
  if (is_atomic) {
    if (!constants) add_atomic(look, form, address, types[1]);
    return;
  }
  const kilni_image_ptx_operand_t* value = &ops[1 - at];
  const kilni_image_ptx_operand_t* parts =
      value->kind == KILNI_PTX_OPERAND_VECTOR
          ? kilni_image_ptx_operand_children(look->module, value)
          : value;
  uint32_t count = parts == value ? 1 : value->count;
  for (uint32_t i = 0; i < count; i++) {
    add_moved(look, address, &parts[i], types[1], is_store, constants);
  }
}

static void find_accesses(const kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    add_accesses(look, &f->instructions[i], false);
  }
  // Constants are of any type: they count where nothing else is known.
  uint64_t silent = 0;
  for (uint32_t i = 0; i < look->use->param_count; i++) {
    const uint8_t* widths = look->use->params[i].widths;
    if ((widths[1] | widths[2] | widths[3]) == 0) silent |= (uint64_t)1 << i;
  }
  for (uint32_t i = 0; i < f->register_count; i++) {
    look->facts[i].params &= silent;
  }
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    add_accesses(look, &f->instructions[i], true);
  }
  for (uint32_t i = 0; i < look->use->param_count; i++) {
    if ((look->unknown >> i & 1) == 0) continue;
    memset(&look->use->params[i], 0, sizeof(look->use->params[i]));
  }
}

void kilni_image_ptx_use_writes(const kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    const kilni_image_ptx_instruction_t* ins = &f->instructions[i];
    const kilni_image_ptx_operand_t* ops =
        kilni_image_ptx_instruction_operands(look->module, ins);
    if (ops == NULL) continue;
    kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, &ops[0]);
    bool is_constant = ins->opcode == KILNI_PTX_OP_MOV &&
                       ops[1].kind == KILNI_PTX_OPERAND_IMMEDIATE;
    if (fact != NULL) {
      if (fact->writes < 2) fact->writes++;
      if (!is_constant) fact->varies = 1;
      continue;
    }
    const kilni_image_ptx_operand_t* parts =
        kilni_image_ptx_operand_children(look->module, &ops[0]);
    for (uint32_t k = 0; parts != NULL && k < ops[0].count; k++) {
      fact = kilni_image_ptx_fact(look, &parts[k]);
      if (fact == NULL) continue;
      fact->writes = 2;
      fact->varies = 1;
    }
  }
}

kiln_status_t kilni_image_ptx_use_make(const kilni_image_ptx_module_t* module,
                                       uint32_t function,
                                       kiln_allocator_t allocator,
                                       kilni_image_ptx_use_t* out) {
  memset(out, 0, sizeof(*out));
  const kilni_image_ptx_function_t* f = &module->functions[function];
  size_t count = (size_t)f->register_count + MEMORIES;
  void* facts = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, count, sizeof(kilni_image_ptx_fact_t), &facts));
  out->param_count = f->parameter_count < KILNI_PTX_USE_PARAMS
                         ? f->parameter_count
                         : KILNI_PTX_USE_PARAMS;
  kilni_image_ptx_look_t look = {module, f, facts, out, 0, 0, false, false};
  for (uint32_t i = 0; i < count; i++) {
    look.facts[i].parent = i;
    look.facts[i].pitch = KILNI_PTX_USE_APART;
  }
  kilni_image_ptx_use_writes(&look);
  kiln_status_t status = kilni_image_ptx_use_threads(&look, allocator);
  kilni_image_ptx_use_addresses(&look);
  kilni_image_ptx_use_pitches(&look);
  kilni_image_ptx_use_values(&look);
  find_accesses(&look);
  find_members(&look);
  kilni_base_free_array(allocator, facts, count,
                        sizeof(kilni_image_ptx_fact_t));
  return status;
}
