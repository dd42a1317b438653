// SPDX-License-Identifier: Apache-2.0
//
// program: instructions as PTX text. What nobody uses is left out; registers
// get their numbers here.
#include <string.h>

#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

// ---- What is used ----

typedef struct use_t {
  kilni_program_lowering_t* w;
  uint32_t* stack;
  uint32_t count;
} use_t;

static void use(use_t* u, uint32_t index) {
  kilni_program_instruction_t* i = &u->w->instructions.items[index];
  if ((i->flags & KILNI_INSTRUCTION_USED) != 0) return;
  i->flags |= KILNI_INSTRUCTION_USED;
  u->stack[u->count++] = index;
}

static void use_value(use_t* u, kilni_program_value_t value) {
  value &= ~(uint32_t)KILNI_NOT;
  uint32_t define = u->w->values.items[value].define;
  for (; define != 0; define = u->w->instructions.items[define].define) {
    use(u, define);
  }
}

static bool ptx_mark_used(kilni_program_lowering_t* w) {
  use_t u = {w, NULL, 0};
  u.stack = kilni_program_arena_get(&w->arena,
                                    w->instructions.count * sizeof(uint32_t));
  if (u.stack == NULL) return false;
  bool all = (w->off & KILN_PROGRAM_WITHOUT_DROPPING) != 0;
  for (uint32_t i = 1; i < w->instructions.count; i++) {
    if (all || (w->instructions.items[i].flags & KILNI_INSTRUCTION_PINNED)) {
      use(&u, i);
    }
  }
  while (u.count != 0) {
    const kilni_program_instruction_t* i =
        &w->instructions.items[u.stack[--u.count]];
    uint32_t first = i->form == KILNI_FORM_LOAD_VECTOR      ? i->count - 1U
                     : i->flags & KILNI_INSTRUCTION_DEFINES ? 1
                                                            : 0;
    for (uint32_t k = first; k < i->count; k++) use_value(&u, i->operand[k]);
    if (i->form == KILNI_FORM_MATRIX) {
      const kilni_program_value_t* wide = kilni_program_wide_of(w, i);
      for (uint32_t k = KILNI_WIDE_WRITTEN; k < KILNI_WIDE_OPERANDS; k++) {
        use_value(&u, wide[k]);
      }
    }
    use_value(&u, i->guard);
  }
  return true;
}

// ---- Text ----

enum { CLASS_P, CLASS_R, CLASS_D, CLASS_F, CLASS_G, CLASS_H, CLASSES };

typedef struct text_t {
  kilni_program_lowering_t* w;
  char* data;
  size_t size;
  size_t capacity;
  uint32_t registers[CLASSES];
} text_t;

static bool space(text_t* t, size_t more) {
  if (t->data != NULL && t->capacity - t->size >= more) return true;
  size_t capacity = 2 * t->capacity + more;
  char* data = kilni_program_arena_get(&t->w->arena, capacity);
  if (data == NULL) return false;
  if (t->size != 0) memcpy(data, t->data, t->size);
  t->data = data;
  t->capacity = capacity;
  return true;
}

static void ptx_put(text_t* t, const char* text) {
  size_t length = strlen(text);
  memcpy(t->data + t->size, text, length);
  t->size += length;
}

static void ptx_put_char(text_t* t, char c) {
  t->data[t->size++] = c;
}

static void ptx_put_number(text_t* t, uint64_t number) {
  char digits[20];
  uint32_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count != 0) ptx_put_char(t, digits[--count]);
}

// A register's: most have three digits at most.
static char* ptx_put_name(char* to, uint32_t name) {
  uint32_t tens = name / 10U, hundreds = name / 100U;
  if (hundreds != 0) *to++ = (char)('0' + hundreds);
  if (tens != 0) *to++ = (char)('0' + (tens - hundreds * 10U));
  *to++ = (char)('0' + (name - tens * 10U));
  return to;
}

static void put_hex(text_t* t, uint64_t number, uint32_t digits) {
  for (uint32_t i = digits; i != 0; i--) {
    ptx_put_char(t, "0123456789abcdef"[number >> (4 * (i - 1)) & 15]);
  }
}

static uint32_t ptx_class_of(uint8_t type) {
  if (type == KILNI_TYPE_HALF_BITS) return CLASS_H;
  switch (kilni_program_type_computed(type)) {
    case T(BOOL):
      return CLASS_P;
    case T(U64):
    case T(I64):
      return CLASS_D;
    case T(F32):
      return CLASS_F;
    case T(F64):
      return CLASS_G;
    default:
      return CLASS_R;
  }
}

static const char* const kPrefixes[CLASSES] = {"%p", "%r",  "%rd",
                                               "%f", "%fd", "%h"};

static void put_const(text_t* t, const kilni_program_value_record_t* value) {
  uint64_t bits = value->bits;
  switch (value->type) {
    case T(F16):
    case T(BF16):
      bits = kilni_program_fold_widen(value->type, bits);
      ptx_put(t, "0f");
      put_hex(t, bits, 8);
      return;
    case T(F32):
      ptx_put(t, "0f");
      put_hex(t, bits, 8);
      return;
    case T(F64):
      ptx_put(t, "0d");
      put_hex(t, bits, 16);
      return;
    case T(I8):
    case T(I16):
      kilni_program_fold_cast(value->type, T(I32), bits, true, &bits);
      break;
    default:
      break;
  }
  if (bits < 100000) {
    ptx_put_number(t, bits);
    return;
  }
  ptx_put(t, "0x");
  put_hex(t, bits, bits > UINT32_MAX ? 16 : 8);
}

// A register that only renames another one which is written once.
static kilni_program_value_t origin_of(const kilni_program_lowering_t* w,
                                       kilni_program_value_t value) {
  for (;;) {
    const kilni_program_value_record_t* v = &w->values.items[value];
    const kilni_program_instruction_t* i = &w->instructions.items[v->define];
    if (v->define == 0 || i->define != 0 || i->guard != 0 || i->count != 2 ||
        i->form != KILNI_FORM_PLAIN || strncmp(i->name, "mov.", 4) != 0 ||
        (w->off & KILN_PROGRAM_WITHOUT_DROPPING) != 0) {
      return value;
    }
    const kilni_program_value_record_t* from = &w->values.items[i->operand[1]];
    if (from->define == 0 || w->instructions.items[from->define].define != 0 ||
        ptx_class_of(from->type) != ptx_class_of(v->type)) {
      return value;
    }
    value = i->operand[1];
  }
}

static void put_value(text_t* t, kilni_program_value_t value) {
  kilni_program_lowering_t* w = t->w;
  value &= ~(uint32_t)KILNI_NOT;
  if (kilni_program_value_is_const(w, value)) {
    put_const(t, &w->values.items[value]);
    return;
  }
  kilni_program_value_record_t* record = &w->values.items[value];
  uint32_t class_ = ptx_class_of(record->type);
  if (record->name == 0) {
    kilni_program_value_t origin = origin_of(w, value);  // of the same class
    kilni_program_value_record_t* first = &w->values.items[origin];
    if (first->name == 0) first->name = ++t->registers[class_];
    record->name = first->name;
  }
  char* to = t->data + t->size;
  for (const char* prefix = kPrefixes[class_]; *prefix != 0; prefix++) {
    *to++ = *prefix;
  }
  if (record->name < 1000U) {
    t->size = (size_t)(ptx_put_name(to, record->name) - t->data);
  } else {
    t->size = (size_t)(to - t->data);
    ptx_put_number(t, record->name);
  }
}

static void put_address(text_t* t, kilni_program_value_t value) {
  ptx_put_char(t, '[');
  put_value(t, value);
  ptx_put_char(t, ']');
}

static void put_vector(text_t* t, const kilni_program_value_t* values,
                       uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    ptx_put(t, k == 0 ? "{" : ", ");
    put_value(t, values[k]);
  }
  ptx_put_char(t, '}');
}

// name {d}, {a}, {b}, {c}
static void put_matrix(text_t* t, const kilni_program_value_t* all) {
  ptx_put_char(t, ' ');
  put_vector(t, all, KILNI_WIDE_WRITTEN);
  ptx_put(t, ", ");
  put_vector(t, all + 4, 4);
  ptx_put(t, ", ");
  put_vector(t, all + 8, 2);
  ptx_put(t, ", ");
  put_vector(t, all + 10, 4);
}

static void put_form(text_t* t, const kilni_program_instruction_t* i) {
  ptx_put(t, i->form == KILNI_FORM_SPECIAL ? "mov.u32" : i->name);
  if (i->count != 0) ptx_put_char(t, ' ');
  switch (i->form) {
    case KILNI_FORM_PLAIN:
      for (uint32_t k = 0; k < i->count; k++) {
        if (k != 0) ptx_put(t, ", ");
        put_value(t, i->operand[k]);
      }
      break;
    case KILNI_FORM_STORE:
      put_address(t, i->operand[0]);
      ptx_put(t, ", ");
      put_value(t, i->operand[1]);
      break;
    case KILNI_FORM_LOAD_VECTOR:
      put_vector(t, i->operand, i->count - 1U);
      ptx_put(t, ", ");
      put_address(t, i->operand[i->count - 1]);
      break;
    case KILNI_FORM_STORE_VECTOR:
      put_address(t, i->operand[0]);
      ptx_put(t, ", ");
      put_vector(t, i->operand + 1, i->count - 1U);
      break;
    case KILNI_FORM_PACK:
      put_value(t, i->operand[0]);
      ptx_put(t, ", ");
      put_vector(t, i->operand + 1, 2);
      break;
    case KILNI_FORM_MATRIX:
      put_matrix(t, kilni_program_wide_of(t->w, i));
      break;
    case KILNI_FORM_COPY:
      put_address(t, i->operand[0]);
      ptx_put(t, ", ");
      put_address(t, i->operand[1]);
      ptx_put(t, ", ");
      ptx_put_number(t, i->number);
      break;
    case KILNI_FORM_LOAD:
    case KILNI_FORM_ATOM:
      put_value(t, i->operand[0]);
      ptx_put(t, ", ");
      put_address(t, i->operand[1]);
      for (uint32_t k = 2; k < i->count; k++) {
        ptx_put(t, ", ");
        put_value(t, i->operand[k]);
      }
      break;
    case KILNI_FORM_PARAM:
      put_value(t, i->operand[0]);
      ptx_put(t, ", [p");
      ptx_put_number(t, i->number);
      ptx_put_char(t, ']');
      break;
    case KILNI_FORM_SHARED:
      put_value(t, i->operand[0]);
      ptx_put(t, ", kiln_shared+");
      ptx_put_number(t, i->number);
      break;
    case KILNI_FORM_LOCAL:
      put_value(t, i->operand[0]);
      ptx_put(t, ", kiln_private_");
      ptx_put_number(t, i->number);
      break;
    default:  // SPECIAL
      put_value(t, i->operand[0]);
      ptx_put(t, ", ");
      ptx_put(t, i->name);
      break;
  }
  ptx_put(t, ";\n");
}

static void put_zero(text_t* t, kilni_program_value_t value) {
  static const char* const kZeroes[CLASSES] = {"setp.ne.u32 ", "mov.b32 ",
                                               "mov.b64 ",     "mov.f32 ",
                                               "mov.f64 ",     "mov.b16 "};
  static const char* const kNumbers[CLASSES] = {
      "0, 0", "0", "0", "0f00000000", "0d0000000000000000", "0"};
  uint32_t class_ = ptx_class_of(t->w->values.items[value].type);
  ptx_put_char(t, '\t');
  ptx_put(t, kZeroes[class_]);
  put_value(t, value);
  ptx_put(t, ", ");
  ptx_put(t, kNumbers[class_]);
  ptx_put(t, ";\n");
}

enum { INSTRUCTION_TEXT = 320 };  // more than any one comes to

static bool put_instruction(text_t* t, const kilni_program_instruction_t* i) {
  size_t name = strlen(i->name);
  if (!space(t, INSTRUCTION_TEXT + name)) return false;
  if (i->form == KILNI_FORM_LABEL) {
    ptx_put(t, "L");
    ptx_put_number(t, i->number);
    ptx_put(t, ":\n");
    return true;
  }
  if ((i->flags & KILNI_INSTRUCTION_ZERO) != 0) {
    bool vector = i->form == KILNI_FORM_LOAD_VECTOR;
    for (uint32_t k = 0; k < (vector ? i->count - 1U : 1U); k++) {
      put_zero(t, i->operand[k]);
    }
  }
  ptx_put_char(t, '\t');
  if (i->guard != 0) {
    ptx_put(t, (i->guard & KILNI_NOT) != 0 ? "@!" : "@");
    put_value(t, i->guard);
    ptx_put_char(t, ' ');
  }
  if (i->form == KILNI_FORM_BRANCH) {
    ptx_put(t, "bra L");
    ptx_put_number(t, i->number);
    ptx_put(t, ";\n");
    return true;
  }
  put_form(t, i);
  return true;
}

static bool ptx_is_renamed(const kilni_program_lowering_t* w,
                           const kilni_program_instruction_t* i) {
  return i->form == KILNI_FORM_PLAIN &&
         (i->flags & KILNI_INSTRUCTION_DEFINES) != 0 &&
         origin_of(w, i->operand[0]) != i->operand[0];
}

static bool put_body(text_t* t) {
  const kilni_program_lowering_t* w = t->w;
  for (uint32_t at = w->regions.items[1].first; at != 0;
       at = w->instructions.items[at].next) {
    const kilni_program_instruction_t* i = &w->instructions.items[at];
    if ((i->flags & KILNI_INSTRUCTION_USED) == 0 ||
        i->form == KILNI_FORM_NONE || ptx_is_renamed(w, i)) {
      continue;
    }
    if (!put_instruction(t, i)) return false;
  }
  return true;
}

// ---- The head ----

static const char* parameter_type(uint8_t type) {
  switch (type) {
    case T(BOOL):
    case T(U8):
    case T(I8):
      return ".u8";
    case T(U16):
    case T(I16):
    case T(F16):
    case T(BF16):
      return ".u16";
    case T(U64):
    case T(I64):
      return ".u64";
    case T(F32):
      return ".f32";
    case T(F64):
      return ".f64";
    default:
      return ".u32";
  }
}

static void put_registers(text_t* t, const text_t* body) {
  static const char* const kTypes[CLASSES] = {".pred", ".b32", ".b64",
                                              ".f32",  ".f64", ".b16"};
  for (uint32_t class_ = 0; class_ < CLASSES; class_++) {
    if (body->registers[class_] == 0) continue;
    ptx_put(t, "\t.reg ");
    ptx_put(t, kTypes[class_]);
    ptx_put_char(t, ' ');
    ptx_put(t, kPrefixes[class_]);
    ptx_put_char(t, '<');
    ptx_put_number(t, body->registers[class_] + 1U);
    ptx_put(t, ">;\n");
  }
}

static void put_arrays(text_t* t) {
  const kilni_program_lowering_t* w = t->w;
  for (uint32_t i = 0; i < w->private_count; i++) {
    if (w->private_bytes[i] == 0) continue;
    ptx_put(t, "\t.local .align 8 .b8 kiln_private_");
    ptx_put_number(t, i);
    ptx_put_char(t, '[');
    ptx_put_number(t, w->private_bytes[i]);
    ptx_put(t, "];\n");
  }
  if (w->shared_bytes == 0 || w->shared_bytes > KILNI_STATIC_SHARED) return;
  ptx_put(t, "\t.shared .align 16 .b8 kiln_shared[");
  ptx_put_number(t, w->shared_bytes);
  ptx_put(t, "];\n");
}

static void ptx_put_head(text_t* t, const char* entry) {
  const kilni_program_lowering_t* w = t->w;
  ptx_put(t, ".version ");
  ptx_put_number(t, w->need_isa / 10);
  ptx_put_char(t, '.');
  ptx_put_number(t, w->need_isa % 10);
  ptx_put(t, "\n.target sm_");
  ptx_put_number(t, w->need_sm);
  ptx_put(t, "\n.address_size 64\n\n");
  if (w->shared_bytes > KILNI_STATIC_SHARED) {
    ptx_put(t, ".extern .shared .align 16 .b8 kiln_shared[];\n\n");
  }
  ptx_put(t, ".visible .entry ");
  ptx_put(t, entry);
  ptx_put_char(t, '(');
  for (uint32_t i = 0; i < w->parameter_count; i++) {
    ptx_put(t, i == 0 ? "\n\t.param " : ",\n\t.param ");
    ptx_put(t, parameter_type((uint8_t)w->parameters[i].type));
    ptx_put(t, " p");
    ptx_put_number(t, i);
  }
  ptx_put(t, ")\n.reqntid ");
  ptx_put_number(t, w->block[0]);
  ptx_put(t, ", ");
  ptx_put_number(t, w->block[1]);
  ptx_put(t, ", ");
  ptx_put_number(t, w->block[2]);
  ptx_put(t, "\n{\n");
}

char* kilni_program_ptx_write(kilni_program_lowering_t* w, const char* entry,
                              size_t* out_size) {
  if (!ptx_mark_used(w)) return NULL;
  text_t body = {w, NULL, 0, 0, {0}}, text = body;
  if (!space(&body, 4096 + 24 * (size_t)w->instructions.count) ||
      !put_body(&body)) {
    return NULL;
  }
  size_t head = 1024 + 40 * (size_t)w->parameter_count +
                64 * (size_t)w->private_count + strlen(entry);
  if (!space(&text, head + body.size + 16)) return NULL;
  ptx_put_head(&text, entry);
  put_registers(&text, &body);
  put_arrays(&text);
  memcpy(text.data + text.size, body.data, body.size);
  text.size += body.size;
  ptx_put(&text, "}\n");
  text.data[text.size] = 0;
  *out_size = text.size;
  return text.data;
}
