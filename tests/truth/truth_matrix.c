// SPDX-License-Identifier: Apache-2.0
//
// truth: kernels for what a warp's lanes hold together: mma, wmma, ldmatrix,
// stmatrix and movmatrix.
//
// The elements are small numbers, so that every sum is exact in whatever order
// and width a GPU adds: what is asked is where elements lie, and what types
// they are. All results of a lane are folded into one number.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "soft/decode/soft_forms.h"
#include "truth_form.h"

static const truth_layout_t layout_fold = {32, 15, 1, 224};

static void append(truth_entry_t* entry, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(truth_entry_t* entry, const char* format, ...) {
  const size_t at = strlen(entry->body);
  va_list list;
  va_start(list, format);
  (void)vsnprintf(entry->body + at, sizeof(entry->body) - at, format, list);
  va_end(list);
}

// A type of elements: how its words are made of any, and its size.
// thread-compatible
typedef struct element_t {
  const char* name;
  uint32_t bits;
  const char* make;  // of %m14
} element_t;

static const element_t elements[] = {
    {"f16", 16,
     "lop3.b32 %m14,%m14,0xf000f,0x64006400,0xea;\nsub.f16x2 %m14,%m14,%m12;"
     "\n"},
    {"bf16", 16,
     "lop3.b32 %m14,%m14,0xf000f,0x43004300,0xea;\nsub.bf16x2 %m14,%m14,"
     "%m13;\n"},
    {"tf32", 32,
     "and.b32 %m14,%m14,15;\nsub.s32 %m14,%m14,8;\ncvt.rn.f32.s32 %m14,%m14;"
     "\n"},
    {"f32", 32,
     "and.b32 %m14,%m14,15;\nsub.s32 %m14,%m14,8;\ncvt.rn.f32.s32 %m14,%m14;"
     "\n"},
    {"f64", 64, "and.b32 %m14,%m14,15;\nsub.s32 %m14,%m14,8;\n"},
    {"s8", 8, ""},
    {"u8", 8, ""},
    {"s32", 32, ""},
    {"e4m3", 8, "lop3.b32 %m14,%m14,0x83838383,0x40404040,0xea;\n"},
    {"e5m2", 8, "lop3.b32 %m14,%m14,0x83838383,0x40404040,0xea;\n"},
};

static const element_t* element_named(const char* name, size_t size) {
  for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
    if (strlen(elements[i].name) == size &&
        memcmp(elements[i].name, name, size) == 0) {
      return &elements[i];
    }
  }
  return NULL;
}

// What a form of mma or wmma says. one-thread
typedef struct product_t {
  uint32_t m, n, k;
  const element_t* type[4];  // d, a, b, c
  const char* layout[2];     // of a and b
} product_t;

static bool product_of(const char* form, product_t* out) {
  truth_words_t w;
  uint32_t types = 0, layouts = 0;
  truth_words_of(form, &w);
  memset(out, 0, sizeof(*out));
  for (uint32_t i = 0; i < w.count; i++) {
    const element_t* type = element_named(w.at[i], w.size[i]);
    if (type != NULL && types < 4) out->type[types++] = type;
    if (w.size[i] == 3 && layouts < 2 &&
        (memcmp(w.at[i], "row", 3) == 0 || memcmp(w.at[i], "col", 3) == 0)) {
      out->layout[layouts++] = w.at[i][0] == 'r' ? "row" : "col";
    }
    if (w.at[i][0] == 'm' && w.size[i] > 4 && w.at[i][1] != 'm') {
      (void)sscanf(w.at[i], "m%un%uk%u", &out->m, &out->n, &out->k);
    }
  }
  if (types == 2) {  // wmma of f16 names those of d and c alone
    out->type[3] = out->type[1];
    out->type[1] = out->type[2] = element_named("f16", 3);
  }
  return out->m != 0 && (types == 2 || types == 4) && layouts == 2;
}

static truth_entry_t* add_fold(truth_list_t* list, const char* name) {
  truth_entry_t* entry = truth_list_add(list, name, "matrix");
  if (entry == NULL) return NULL;
  entry->layout = layout_fold;
  entry->result = TRUTH_U32;
  entry->sources[0] = entry->sources[1] = entry->sources[2] = TRUTH_U32;
  append(entry,
         ".reg .b32 %%m<64>;\n.reg .b64 %%q<32>;\nmov.u32 %%r5,0;\n"
         "mov.u32 %%m12,0x64086408;\nmov.u32 %%m13,0x43084308;\n");
  return entry;
}

// %m14 becomes word `number` of what a lane has of a type.
static void put_word(truth_entry_t* entry, const element_t* type,
                     uint32_t number) {
  append(entry, "mad.lo.u32 %%m14,%%r%u,%u,%%r%u;\nxor.b32 %%m14,%%m14,%%r3;\n",
         number % 2 + 1, 2654435761u * (number + 1) | 1u, 2 - number % 2);
  append(entry, "%s", type->make);
}

static uint32_t registers_of(const element_t* type, uint32_t elements_all) {
  const uint32_t each = type->bits < 32 ? 32 / type->bits : 1;
  return elements_all / 32 / each;
}

// ---- mma ----

static void put_list(truth_entry_t* entry, char letter, uint32_t first,
                     uint32_t count) {
  append(entry, "{");
  for (uint32_t i = 0; i < count; i++) {
    append(entry, "%s%%%c%u", i ? "," : "", letter, first + i);
  }
  append(entry, "}");
}

static void put_fold(truth_entry_t* entry, char letter, uint32_t first,
                     uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (letter == 'q') {
      append(entry,
             "mov.b64 {%%m14,%%m15},%%q%u;\nmad.lo.u32 %%r5,%%r5,31,%%m15;\n"
             "mad.lo.u32 %%r5,%%r5,31,%%m14;\n",
             first + i);
    } else {
      append(entry, "mad.lo.u32 %%r5,%%r5,31,%%m%u;\n", first + i);
    }
  }
}

static bool add_mma(truth_list_t* list, const char* form) {
  product_t p;
  if (!product_of(form, &p)) return true;
  truth_entry_t* entry = add_fold(list, form);
  if (entry == NULL) return false;
  const uint32_t all[4] = {p.m * p.n, p.m * p.k, p.k * p.n, p.m * p.n};
  uint32_t first[4], count[4], at = 16, wide = 0, number = 0;
  for (uint32_t i = 0; i < 4; i++) {
    count[i] = registers_of(p.type[i], all[i]);
    uint32_t* next = p.type[i]->bits == 64 ? &wide : &at;
    first[i] = *next;
    *next += count[i];
    for (uint32_t r = 0; i > 0 && r < count[i]; r++) {
      put_word(entry, p.type[i], number++);
      if (p.type[i]->bits == 64) {
        append(entry, "cvt.rn.f64.s32 %%q%u,%%m14;\n", first[i] + r);
      } else {
        append(entry, "mov.b32 %%m%u,%%m14;\n", first[i] + r);
      }
    }
  }
  append(entry, "%s ", form);
  for (uint32_t i = 0; i < 4; i++) {
    put_list(entry, p.type[i]->bits == 64 ? 'q' : 'm', first[i], count[i]);
    append(entry, i < 3 ? "," : ";\n");
  }
  put_fold(entry, p.type[0]->bits == 64 ? 'q' : 'm', first[0], count[0]);
  return true;
}

// ---- wmma ----

enum { WARP_BYTES = 4096, PART_BYTES = 1024 };

// 1 KiB of shared memory for each of a, b, c and d, for each warp. %q0 and
// %q1 are the warp's part and the lane's share of a KiB in it.
static void put_memory(truth_entry_t* entry) {
  append(entry,
         ".shared .align 32 .b8 parts[%u];\nmov.u64 %%q0,parts;\n"
         "shr.u32 %%m14,%%r12,5;\nmad.wide.u32 %%q0,%%m14,%u,%%q0;\n"
         "and.b32 %%m15,%%r12,31;\nmad.wide.u32 %%q1,%%m15,32,%%q0;\n",
         8u * WARP_BYTES, (unsigned)WARP_BYTES);
}

static void put_elements(truth_entry_t* entry, const element_t* type,
                         uint32_t part) {
  for (uint32_t i = 0; i < (type->bits == 64 ? 2u : 4u); i++) {
    put_word(entry, type, part * 4 + i);
    if (type->bits == 64) {
      append(entry,
             "cvt.rn.f64.s32 %%q4,%%m14;\nst.shared.b64 [%%q1+%u],%%q4;\n"
             "st.shared.b64 [%%q1+%u],%%q4;\n",
             part * PART_BYTES + i * 16, part * PART_BYTES + i * 16 + 8);
    } else {
      append(entry,
             "st.shared.b32 [%%q1+%u],%%m14;\nst.shared.b32 [%%q1+%u],%%m14;"
             "\n",
             part * PART_BYTES + i * 8, part * PART_BYTES + i * 8 + 4);
    }
  }
}

// A fragment's registers: those of f16 sources are eight at every shape.
static uint32_t fragment_of(const product_t* p, uint32_t i) {
  const uint32_t all[4] = {p->m * p->n, p->m * p->k, p->k * p->n, p->m * p->n};
  if ((i == 1 || i == 2) && strcmp(p->type[i]->name, "f16") == 0) return 8;
  return registers_of(p->type[i], all[i]);
}

static void put_cover(truth_entry_t* entry, const char* form) {
  const size_t at = strlen(entry->covers);
  (void)snprintf(entry->covers + at, sizeof(entry->covers) - at, "%s%s",
                 at ? " " : "", form);
}

// `name` is "load.a" and so on.
static void put_wmma_memory(truth_entry_t* entry, const product_t* p,
                            uint32_t i, const char* name, const char* layout,
                            const char* space, uint32_t first) {
  char form[TRUTH_NAME_BYTES];
  const bool stores = name[0] == 's';
  const char letter = p->type[i]->bits == 64 ? 'q' : 'm';
  (void)snprintf(form, sizeof(form), "wmma.%s.sync.aligned.%s.m%un%uk%u%s.%s",
                 name, layout, p->m, p->n, p->k, space, p->type[i]->name);
  put_cover(entry, form);
  append(entry, "add.u64 %%q2,%%q0,%u;\n",
         (i == 0 ? 3u : i - 1) * (unsigned)PART_BYTES);
  if (space[0] == '\0') append(entry, "cvta.shared.u64 %%q2,%%q2;\n");
  append(entry, "%s ", form);
  if (stores) append(entry, "[%%q2],");
  put_list(entry, letter, first, fragment_of(p, i));
  append(entry, stores ? ";\n" : ",[%%q2];\n");
}

static bool add_wmma(truth_list_t* list, const char* form, uint32_t turn) {
  static const char* const spaces[] = {"", ".shared", ".shared::cta"};
  static const char* const loads[] = {"store.d", "load.a", "load.b", "load.c"};
  product_t p;
  if (!product_of(form, &p)) return true;
  truth_entry_t* entry = add_fold(list, form);
  if (entry == NULL) return false;
  put_cover(entry, form);
  put_memory(entry);
  for (uint32_t i = 1; i < 4; i++) put_elements(entry, p.type[i], i - 1);
  append(entry, "bar.warp.sync 0xffffffff;\n");
  uint32_t first[4];
  uint32_t at = 16, wide = 8;
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t* next = p.type[i]->bits == 64 ? &wide : &at;
    first[i] = *next;
    *next += fragment_of(&p, i);
  }
  for (uint32_t i = 1; i < 4; i++) {
    put_wmma_memory(entry, &p, i, loads[i],
                    i < 3      ? p.layout[i - 1]
                    : turn & 1 ? "col"
                               : "row",
                    spaces[(turn + i) % 3], first[i]);
  }
  append(entry, "%s ", form);
  for (uint32_t i = 0; i < 4; i++) {
    put_list(entry, p.type[i]->bits == 64 ? 'q' : 'm', first[i],
             fragment_of(&p, i));
    append(entry, i < 3 ? "," : ";\n");
  }
  put_wmma_memory(entry, &p, 0, loads[0], turn & 2 ? "col" : "row",
                  spaces[turn % 3], first[0]);
  append(entry, "bar.warp.sync 0xffffffff;\n");
  const uint32_t words = p.m * p.n * p.type[0]->bits / 32 / 32;
  append(entry, "mad.wide.u32 %%q2,%%m15,%u,%%q0;\n", words * 4);
  for (uint32_t i = 0; i < words; i++) {
    append(entry,
           "ld.shared.b32 %%m14,[%%q2+%u];\nmad.lo.u32 %%r5,%%r5,31,%%m14;\n",
           3 * PART_BYTES + i * 4);
  }
  return true;
}

// ---- Rows of eight ----

static bool add_rows(truth_list_t* list, const char* form) {
  const uint32_t count = strstr(form, ".x4") ? 4 : strstr(form, ".x2") ? 2 : 1;
  const bool loads = form[0] == 'l';
  truth_entry_t* entry = add_fold(list, form);
  if (entry == NULL) return false;
  put_memory(entry);
  append(entry, "mad.wide.u32 %%q2,%%m15,16,%%q0;\n");
  // Addresses that go up by more than a row, and not in order.
  append(entry, "xor.b32 %%m16,%%m15,5;\nmad.wide.u32 %%q3,%%m16,48,%%q0;\n");
  for (uint32_t i = 0; i < 12 && loads; i++) {
    put_word(entry, &elements[7], i);
    append(entry,
           "mad.wide.u32 %%q4,%%m15,48,%%q0;\n"
           "st.shared.b32 [%%q4+%u],%%m14;\n",
           i * 4);
  }
  for (uint32_t i = 0; i < count && !loads; i++) {
    put_word(entry, &elements[7], i);
    append(entry, "mov.b32 %%m%u,%%m14;\n", 20 + i);
  }
  append(entry, "bar.warp.sync 0xffffffff;\n%s ", form);
  if (!loads) append(entry, "[%%q3],");
  put_list(entry, 'm', 20, count);
  append(entry, loads ? ",[%%q3];\n" : ";\n");
  append(entry, "bar.warp.sync 0xffffffff;\n");
  if (loads) {
    put_fold(entry, 'm', 20, count);
    return true;
  }
  // The lanes that gave an address look at what came there.
  append(entry, "setp.ge.u32 %%p1,%%m15,%u;\n@%%p1 bra LEAVE;\n", count * 8);
  for (uint32_t i = 0; i < 4; i++) {
    append(entry,
           "ld.shared.b32 %%m14,[%%q3+%u];\nmad.lo.u32 %%r5,%%r5,31,%%m14;\n",
           i * 4);
  }
  append(entry, "LEAVE:\n");
  return true;
}

static bool add_turn(truth_list_t* list, const char* form) {
  truth_entry_t* entry = add_fold(list, form);
  if (entry == NULL) return false;
  append(entry, "%s %%r5,%%r1;\n", form);
  return true;
}

bool truth_matrix_extra(truth_list_t* list) {
  kilni_soft_op_t op;
  const char* form;
  uint32_t turn = 0;
  for (size_t i = 0; (form = kilni_soft_form_at(i, &op)) != NULL; i++) {
    bool done = true;
    if (strcmp(kilni_soft_op_family(op), "matrix") != 0) continue;
    if (strncmp(form, "mma.", 4) == 0) {
      done = add_mma(list, form);
    } else if (strncmp(form, "wmma.mma.", 9) == 0) {
      done = add_wmma(list, form, turn++);
    } else if (strncmp(form, "ldmatrix", 8) == 0 ||
               strncmp(form, "stmatrix", 8) == 0) {
      done = add_rows(list, form);
    } else if (strncmp(form, "movmatrix", 9) == 0) {
      done = add_turn(list, form);
    }
    if (!done) return false;
  }
  return true;
}
