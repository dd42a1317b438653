// SPDX-License-Identifier: Apache-2.0
//
// truth: from the forms that the software device knows to kernels that ask
// each of them.
#define _POSIX_C_SOURCE 200809L

#include "truth_form.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/decode/soft_forms.h"

// ---- Layouts ----

static const truth_layout_t layout_pairs = {256, 64, 84, 12288};
// Of halves, which are many.
static const truth_layout_t layout_half = {256, 64, 63, 16384};
static const truth_layout_t layout_half_sixteen = {256, 3, 63, 1024};
static const truth_layout_t layout_sixteen = {256, 255, 0, 0};
static const truth_layout_t layout_approx_sixteen = {2048, 248, 0, 0};
static const truth_layout_t layout_approx = {2048, 57, 126, 8192};

uint32_t truth_layout_inputs(const truth_layout_t* layout) {
  return layout->raw + layout->fine * TRUTH_FINE +
         layout->coarse * layout->each;
}

uint32_t truth_layout_blocks(const truth_layout_t* layout) {
  return 1 + layout->fine + layout->coarse;
}

void truth_layout_block(const truth_layout_t* layout, uint32_t block,
                        uint32_t* out_first, uint32_t* out_count) {
  if (block == 0) {
    *out_first = 0;
    *out_count = layout->raw;
  } else if (block <= layout->fine) {
    *out_first = layout->raw + (block - 1) * TRUTH_FINE;
    *out_count = TRUTH_FINE;
  } else {
    *out_first = layout->raw + layout->fine * TRUTH_FINE +
                 (block - 1 - layout->fine) * layout->each;
    *out_count = layout->each;
  }
}

// ---- Words ----

static const struct {
  const char* text;
  truth_kind_t kind;
  uint32_t bits;
} types[] = {
    {"u8", TRUTH_U32, 8},       {"s8", TRUTH_U32, 8},
    {"b8", TRUTH_U32, 8},       {"u16", TRUTH_U16, 16},
    {"s16", TRUTH_U16, 16},     {"b16", TRUTH_U16, 16},
    {"u32", TRUTH_U32, 32},     {"s32", TRUTH_U32, 32},
    {"b32", TRUTH_U32, 32},     {"u64", TRUTH_U64, 64},
    {"s64", TRUTH_U64, 64},     {"b64", TRUTH_U64, 64},
    {"f16", TRUTH_F16, 16},     {"bf16", TRUTH_BF16, 16},
    {"f32", TRUTH_F32, 32},     {"f64", TRUTH_F64, 64},
    {"f16x2", TRUTH_F16X2, 32}, {"bf16x2", TRUTH_BF16X2, 32},
    {"u16x2", TRUTH_U16X2, 32}, {"s16x2", TRUTH_U16X2, 32},
    {"pred", TRUTH_PRED, 1},    {"tf32", TRUTH_F32, 32},
    {"e4m3x2", TRUTH_U16, 16},  {"e5m2x2", TRUTH_U16, 16},
};

static uint32_t type_index(const char* word, size_t size) {
  for (uint32_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
    if (strlen(types[i].text) == size &&
        memcmp(types[i].text, word, size) == 0) {
      return i;
    }
  }
  return UINT32_MAX;
}

truth_kind_t truth_kind_of(const char* word, size_t size) {
  const uint32_t i = type_index(word, size);
  return i == UINT32_MAX ? TRUTH_NONE : types[i].kind;
}

void truth_words_of(const char* form, truth_words_t* out_words) {
  truth_words_t* w = out_words;
  memset(w, 0, sizeof(*w));
  while (*form && w->count < 16) {
    const size_t size = strcspn(form, ".");
    w->at[w->count] = form;
    w->size[w->count++] = (uint32_t)size;
    const uint32_t type = type_index(form, size);
    if (type != UINT32_MAX && w->type_count < 6 && w->count > 1) {
      w->type_bits[w->type_count] = types[type].bits;
      w->types[w->type_count++] = types[type].kind;
    }
    form += size;
    if (*form == '.') form++;
  }
}

bool truth_words_have(const truth_words_t* words, const char* word) {
  const size_t size = strlen(word);
  for (uint32_t i = 0; i < words->count; i++) {
    if (words->size[i] == size && memcmp(words->at[i], word, size) == 0) {
      return true;
    }
  }
  return false;
}

char truth_kind_letter(truth_kind_t kind) {
  if (kind == TRUTH_PRED) return 'p';
  const uint32_t bytes = truth_kind_bytes(kind);
  return bytes == 2 ? 'h' : bytes == 4 ? 'r' : 'd';
}

// ---- The list ----

truth_entry_t* truth_list_add(truth_list_t* list, const char* name,
                              const char* family) {
  if (list->count == list->capacity) {
    const size_t capacity = list->capacity ? list->capacity * 2 : 512;
    truth_entry_t* more =
        realloc(list->entries, capacity * sizeof(list->entries[0]));
    if (more == NULL) return NULL;
    list->entries = more;
    list->capacity = capacity;
  }
  truth_entry_t* entry = &list->entries[list->count++];
  memset(entry, 0, sizeof(*entry));
  (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
  (void)snprintf(entry->family, sizeof(entry->family), "%s", family);
  entry->outs = 1;
  entry->layout = layout_pairs;
  return entry;
}

void truth_list_free(truth_list_t* list) {
  free(list->entries);
  memset(list, 0, sizeof(*list));
}

bool truth_entry_asks(const truth_entry_t* entry, const char* form) {
  char pattern[TRUTH_COVERS_BYTES];
  if (entry->name[0] != form[0]) return false;
  if (entry->covers[0] == '\0') {
    const size_t size = strlen(form);
    return strncmp(entry->name, form, size) == 0 &&
           (entry->name[size] == '\0' || entry->name[size] == ' ');
  }
  for (const char* at = entry->covers; *at;) {
    const size_t size = strcspn(at, " ");
    (void)snprintf(pattern, sizeof(pattern), "%.*s", (int)size, at);
    if (fnmatch(pattern, form, 0) == 0) return true;
    at += size;
    if (*at) at++;
  }
  return false;
}

bool truth_list_has(const truth_list_t* list, const char* form) {
  for (size_t i = 0; i < list->count; i++) {
    if (truth_entry_asks(&list->entries[i], form)) return true;
  }
  return false;
}

// ---- Operands from the form's text ----

static bool opens(const truth_words_t* w, const char* word) {
  return w->size[0] == strlen(word) && memcmp(w->at[0], word, w->size[0]) == 0;
}

static truth_kind_t doubled(truth_kind_t kind) {
  return kind == TRUTH_U16 ? TRUTH_U32 : TRUTH_U64;
}

// What the operands of a form are: [0] the result, then the sources.
static void kinds_of(const truth_words_t* w, truth_kind_t kinds[5]) {
  static const char* const counts[] = {"popc", "clz", "bfind"};
  const truth_kind_t first = w->types[0];
  const truth_kind_t last = w->types[w->type_count ? w->type_count - 1 : 0];
  for (uint32_t i = 0; i < 5; i++) kinds[i] = first;
  if (opens(w, "cvt") || opens(w, "set")) {
    for (uint32_t i = 1; i < 5; i++) kinds[i] = last;
  } else if (opens(w, "setp") || opens(w, "testp")) {
    kinds[0] = TRUTH_PRED;
  } else if (opens(w, "slct")) {
    kinds[3] = last;
  } else if (opens(w, "selp")) {
    kinds[3] = TRUTH_PRED;
  } else if ((opens(w, "mul") || opens(w, "mad")) &&
             truth_words_have(w, "wide")) {
    kinds[0] = kinds[3] = doubled(first);
  } else if (opens(w, "bfe") || opens(w, "fns")) {
    kinds[2] = kinds[3] = TRUTH_SHIFT;
  } else if (opens(w, "bfi")) {
    kinds[3] = kinds[4] = TRUTH_SHIFT;
  } else if (opens(w, "shl") || opens(w, "shr") || opens(w, "szext")) {
    kinds[2] = TRUTH_SHIFT;
  } else if (opens(w, "shf")) {
    kinds[3] = TRUTH_SHIFT;
  } else if (opens(w, "bmsk")) {
    kinds[1] = kinds[2] = TRUTH_SHIFT;
  }
  for (uint32_t i = 0; i < 3; i++) {
    if (opens(w, counts[i])) kinds[0] = TRUTH_U32;
  }
}

static bool is_pair(truth_kind_t kind) {
  return kind == TRUTH_U16X2 || kind == TRUTH_F16X2 || kind == TRUTH_BF16X2;
}

static bool is_half(truth_kind_t kind) {
  return kind == TRUTH_F16 || kind == TRUTH_BF16 || kind == TRUTH_F16X2 ||
         kind == TRUTH_BF16X2;
}

static bool letter_fits(char letter, truth_kind_t kind) {
  if (letter == 'p') return kind == TRUTH_PRED;
  if (kind == TRUTH_NONE || kind == TRUTH_PRED) return false;
  return (letter == 'x') == (truth_kind_bytes(kind) == 8);
}

static void append(truth_entry_t* entry, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(truth_entry_t* entry, const char* format, ...) {
  const size_t at = strlen(entry->body);
  va_list list;
  va_start(list, format);
  (void)vsnprintf(entry->body + at, sizeof(entry->body) - at, format, list);
  va_end(list);
}

// Sets the carry flag from the predicate in `place`, runs the form, and gives
// the flag as a second result.
static void carry_body(truth_entry_t* entry, const char* form, bool wide,
                       uint32_t sources) {
  const bool borrow = strncmp(form, "sub", 3) == 0;
  const bool takes = form[3] == 'c';
  const bool gives = strstr(form, ".cc.") != NULL;
  const char letter = wide ? 'd' : 'r';
  if (takes) {
    entry->sources[sources] = TRUTH_PRED;
    append(entry, "selp.b32 %%r15,1,0,%%p%u;\n", sources + 1);
    append(entry, borrow ? "sub.cc.u32 %%r14,0,%%r15;\n"
                         : "add.cc.u32 %%r14,%%r15,0xffffffff;\n");
  }
  append(entry, "%s %%%c5", form, letter);
  for (uint32_t i = 1; i <= sources; i++) append(entry, ",%%%c%u", letter, i);
  append(entry, ";\n");
  if (!gives) return;
  entry->outs = 2;
  append(entry, "%s.u32 %%r6,0,0;\n", borrow ? "subc" : "addc");
  if (wide) append(entry, "cvt.u64.u32 %%d6,%%r6;\n");
}

static void exact_body(truth_entry_t* entry, const char* form,
                       const char* letters, const char* immediate) {
  append(entry, "%s %%%c5", form, truth_kind_letter(entry->result));
  for (uint32_t i = 0; letters[i] && letters[i] != '-'; i++) {
    if (letters[i] == 'i') {
      append(entry, ",%s", immediate);
    } else {
      append(entry, ",%%%c%u", truth_kind_letter(entry->sources[i]), i + 1);
    }
  }
  append(entry, ";\n");
}

// Where several sources are NaNs, which one comes out depends on the order that
// ptxas gives them: here the second, else the third, made quiet, stands for
// all.
static void put_last_nan(truth_entry_t* entry, uint32_t sources) {
  for (uint32_t i = 1; i <= sources; i++) {
    append(entry, "testp.notanumber.f64 %%p%u,%%d%u;\n", i, i);
  }
  append(entry, "and.pred %%p9,%%p1,%%p2;\nmov.b64 %%d14,%%d2;\n");
  if (sources == 3) {
    append(entry,
           "or.pred %%p1,%%p1,%%p2;\nand.pred %%p1,%%p1,%%p3;\n"
           "or.pred %%p9,%%p9,%%p1;\nselp.b64 %%d14,%%d2,%%d3,%%p2;\n");
  }
  append(entry,
         "testp.notanumber.f64 %%p10,%%d5;\nand.pred %%p9,%%p9,%%p10;\n"
         "or.b64 %%d14,%%d14,0x8000000000000;\n"
         "selp.b64 %%d5,%%d14,%%d5,%%p9;\n");
}

static bool chooses_nan(const truth_entry_t* entry, const truth_words_t* w) {
  return entry->result == TRUTH_F64 && entry->sources[1] == TRUTH_F64 &&
         (opens(w, "add") || opens(w, "sub") || opens(w, "mul") ||
          opens(w, "fma") || opens(w, "mad") || opens(w, "min") ||
          opens(w, "max"));
}

// Approximations have more raw answers, to find out from what the unit is.
static void widen_layout(truth_entry_t* entry) {
  if (strstr(entry->name, ".approx") != NULL ||
      strstr(entry->name, ".full") != NULL) {
    entry->layout = layout_approx;
  }
}

static const char* family_of(const char* op_family, const truth_words_t* w) {
  static const char* const names[][2] = {
      {"int", "integer"},  {"divide", "integer"},  {"carry", "integer"},
      {"field", "bits"},   {"bits", "bits"},       {"move", "bits"},
      {"float", "f32"},    {"float_root", "f32"},  {"float_order", "f32"},
      {"double", "f64"},   {"convert", "cvt_int"}, {"to_int", "cvt"},
      {"to_float", "cvt"}, {"float_float", "cvt"}, {"compare", "compare"},
      {"set", "compare"},  {"approx", "approx"},
  };
  if (truth_words_have(w, "approx") || truth_words_have(w, "full")) {
    return "approx";
  }
  if (truth_words_have(w, "oob")) return "oob";
  for (uint32_t i = 0; i < w->type_count; i++) {
    if (!is_half(w->types[i])) continue;
    if (opens(w, "cvt")) return "half_cvt";
    if (opens(w, "set") || opens(w, "setp")) return "half_compare";
    return "half";
  }
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(names[i][0], op_family) == 0) return names[i][1];
  }
  return "more";
}

static bool is_sixteen(const truth_entry_t* entry) {
  return entry->sources[1] == TRUTH_NONE && entry->sources[0] != TRUTH_PRED &&
         truth_kind_bytes(entry->sources[0]) == 2;
}

// The entries of a form whose operands the signature describes.
static bool add_form(truth_list_t* list, const char* form,
                     const char* signature, const char* op_family) {
  static const char* const tables[] = {"0x80", "0xfe", "0x96", "0xe8",
                                       "0xca", "0xd8", "0x1b", "0x3c",
                                       "0x00", "0xff", "0x6a", "0x47"};
  truth_words_t w;
  truth_kind_t kinds[5];
  truth_words_of(form, &w);
  const char* letters = strchr(signature, ':') + 1;
  kinds_of(&w, kinds);
  if (!letter_fits(signature[0], kinds[0])) return true;
  const bool has_table = strchr(letters, 'i') != NULL;
  for (size_t t = 0; t < (has_table ? sizeof(tables) / sizeof(tables[0]) : 1);
       t++) {
    char name[TRUTH_NAME_BYTES];
    (void)snprintf(name, sizeof(name), has_table ? "%s %s" : "%s", form,
                   tables[t]);
    truth_entry_t* entry = truth_list_add(list, name, family_of(op_family, &w));
    if (entry == NULL) return false;
    entry->result = kinds[0];
    uint32_t sources = 0;
    for (uint32_t i = 0; letters[i] && letters[i] != '-'; i++) {
      if (letters[i] == 'i') continue;
      if (!letter_fits(letters[i], kinds[i + 1])) {
        list->count--;
        return true;
      }
      entry->sources[sources++] = kinds[i + 1];
    }
    if (strcmp(op_family, "carry") == 0) {
      carry_body(entry, form, signature[0] == 'x', sources);
    } else {
      exact_body(entry, form, letters, tables[t]);
    }
    if (chooses_nan(entry, &w)) put_last_nan(entry, sources);
    widen_layout(entry);
    if (is_sixteen(entry)) entry->layout = layout_sixteen;
  }
  return true;
}

// How many sources an operation has.
static uint32_t sources_of(const truth_words_t* w) {
  static const char* const one[] = {"neg", "abs",   "ex2", "tanh", "rcp", "lg2",
                                    "sin", "rsqrt", "cos", "sqrt", "not"};
  static const char* const two[] = {"add", "sub", "mul", "min",
                                    "max", "div", "set", "setp",
                                    "and", "or",  "xor", "copysign"};
  for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
    if (opens(w, one[i])) return 1;
  }
  for (size_t i = 0; i < sizeof(two) / sizeof(two[0]); i++) {
    if (opens(w, two[i])) return 2;
  }
  if (opens(w, "fma") || opens(w, "mad")) return 3;
  if (!opens(w, "cvt") || w->type_count < 2) return 0;
  // Two numbers are packed into one register.
  const bool packs = is_pair(w->types[0]) || truth_words_have(w, "e4m3x2") ||
                     truth_words_have(w, "e5m2x2");
  return packs && w->types[w->type_count - 1] == TRUTH_F32 ? 2 : 1;
}

bool truth_text_add(truth_list_t* list, const char* form) {
  truth_words_t w;
  truth_kind_t kinds[5];
  truth_words_of(form, &w);
  const uint32_t sources = sources_of(&w);
  // cvt.pack: truth_packed.c.
  if (sources == 0 || w.type_count == 0 || truth_words_have(&w, "pack")) {
    return true;
  }
  kinds_of(&w, kinds);
  truth_entry_t* entry = truth_list_add(list, form, family_of("", &w));
  if (entry == NULL) return false;
  entry->result = kinds[0];
  for (uint32_t i = 0; i < sources; i++) entry->sources[i] = kinds[i + 1];
  if (kinds[0] == TRUTH_PRED && is_pair(kinds[1])) {
    entry->outs = 2;
    append(entry, "%s %%p5|%%p6,%%r1,%%r2;\n", form);
  } else {
    exact_body(entry, form, &"www"[3 - sources], NULL);
  }
  entry->layout = layout_half;
  if (is_sixteen(entry)) entry->layout = layout_half_sixteen;
  widen_layout(entry);
  if (is_sixteen(entry) && entry->layout.raw > 256) {
    entry->layout = layout_approx_sixteen;
  }
  return true;
}

bool truth_list_make(truth_list_t* out_list) {
  memset(out_list, 0, sizeof(*out_list));
  kilni_soft_op_t op;
  const char* form;
  for (size_t i = 0; (form = kilni_soft_form_at(i, &op)) != NULL; i++) {
    const char* signature = kilni_soft_op_signature(op);
    const bool done = signature[0] == '*' ? truth_special_add(out_list, form)
                                          : add_form(out_list, form, signature,
                                                     kilni_soft_op_family(op));
    if (!done) {
      truth_list_free(out_list);
      return false;
    }
  }
  if (truth_special_extra(out_list) && truth_packed_extra(out_list) &&
      truth_matrix_extra(out_list)) {
    return true;
  }
  truth_list_free(out_list);
  return false;
}

// ---- Kernels ----

// one-thread
typedef struct text_t {
  char* data;
  size_t size;
  size_t capacity;
} text_t;

static void put(text_t* text, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(text_t* text, const char* format, ...) {
  va_list list;
  if (text->capacity - text->size < 8192) {
    text->capacity = text->capacity ? text->capacity * 2 : 65536;
    char* more = realloc(text->data, text->capacity);
    if (more == NULL) free(text->data);
    text->data = more;
  }
  if (text->data == NULL) {
    text->size = text->capacity = 0;
    return;
  }
  va_start(list, format);
  text->size += (size_t)vsnprintf(text->data + text->size,
                                  text->capacity - text->size, format, list);
  va_end(list);
}

static void put_loads(text_t* text, const truth_entry_t* entry) {
  for (uint32_t i = 0; i < TRUTH_SOURCES; i++) {
    const truth_kind_t kind = entry->sources[i];
    if (kind == TRUTH_NONE) break;
    const uint32_t bytes = truth_kind_bytes(kind);
    put(text, "ld.param.u64 %%d9,[s%u];\nmad.wide.u32 %%d%u,%%r9,%u,%%d9;\n",
        i + 1, i + 10, bytes);
    if (kind == TRUTH_PRED) {
      put(text, "ld.global.u8 %%r15,[%%d%u];\nsetp.ne.u32 %%p%u,%%r15,0;\n",
          i + 10, i + 1);
    } else {
      put(text, "ld.global.b%u %%%c%u,[%%d%u];\n", bytes * 8,
          truth_kind_letter(kind), i + 1, i + 10);
    }
  }
}

static void put_stores(text_t* text, const truth_entry_t* entry) {
  const uint32_t bytes = truth_kind_bytes(entry->result);
  for (uint32_t i = 0; i < entry->outs; i++) {
    if (entry->result == TRUTH_PRED) {
      put(text, "selp.b32 %%r15,1,0,%%p%u;\nst.global.u8 [%%d20+%u],%%r15;\n",
          i + 5, i);
    } else {
      put(text, "st.global.b%u [%%d20+%u],%%%c%u;\n", bytes * 8, i * bytes,
          truth_kind_letter(entry->result), i + 5);
    }
  }
}

char* truth_module_text(const truth_list_t* list, const size_t* which,
                        size_t count) {
  text_t text = {NULL, 0, 0};
  put(&text,
      ".version 8.6\n.target sm_90\n.address_size 64\n"
      ".const .align 16 .b8 tc[256] = {");
  for (uint32_t i = 0; i < 256; i++) {
    put(&text, "%s%u", i ? "," : "", (i * 167 + 13) & 255);
  }
  put(&text, "};\n");
  for (size_t i = 0; i < count; i++) {
    const truth_entry_t* entry = &list->entries[which[i]];
    put(&text,
        ".visible .entry t%zu(.param .u64 s1,.param .u64 s2,.param .u64 s3,"
        ".param .u64 s4,.param .u64 to)\n{\n.reg .pred %%p<16>;\n"
        ".reg .b16 %%h<16>;\n.reg .b32 %%r<32>;\n.reg .b64 %%d<32>;\n"
        "mov.u32 %%r10,%%ctaid.x;\nmov.u32 %%r11,%%ntid.x;\n"
        "mov.u32 %%r12,%%tid.x;\nmad.lo.u32 %%r9,%%r10,%%r11,%%r12;\n"
        "ld.param.u64 %%d9,[to];\nmad.wide.u32 %%d20,%%r9,%u,%%d9;\n",
        which[i], truth_kind_bytes(entry->result) * entry->outs);
    put_loads(&text, entry);
    put(&text, "{\n%s}\n", entry->body);
    put_stores(&text, entry);
    put(&text, "ret;\n}\n");
  }
  return text.data;
}
