// SPDX-License-Identifier: Apache-2.0
//
// truth: kernels for forms whose operands the operation list does not
// describe: memory, atomics, what lanes do together; and for what the decoder
// makes of several operations.
//
// Registers and addresses as truth_form.c loads them: sources in %[hrdp]1..4,
// their addresses in %d10..%d13, the address of the results in %d20, the index
// in %r9, the thread in %r12. %[hrdp]5..8 are stored afterwards.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "truth_form.h"

static const truth_layout_t layout_small = {256, 16, 0, 0};
static const truth_layout_t layout_pairs = {256, 64, 126, 8192};

static void append(truth_entry_t* entry, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(truth_entry_t* entry, const char* format, ...) {
  const size_t at = strlen(entry->body);
  va_list list;
  va_start(list, format);
  (void)vsnprintf(entry->body + at, sizeof(entry->body) - at, format, list);
  va_end(list);
}

static void sources_are(truth_entry_t* entry, truth_kind_t a, truth_kind_t b,
                        truth_kind_t c) {
  entry->sources[0] = a;
  entry->sources[1] = b;
  entry->sources[2] = c;
}

// ---- Loads and stores ----

// one-thread
typedef struct access_t {
  const char* space;  // "" is generic
  uint32_t bits;      // of an element
  uint32_t count;     // of elements
  bool read_only;
} access_t;

static bool access_of(const truth_words_t* w, access_t* out) {
  static const char* const spaces[] = {"global", "shared", "local", "const"};
  memset(out, 0, sizeof(*out));
  out->space = "";
  out->count = truth_words_have(w, "v4")   ? 4
               : truth_words_have(w, "v2") ? 2
                                           : 1;
  out->read_only = truth_words_have(w, "nc");
  for (uint32_t i = 0; i < 4; i++) {
    if (truth_words_have(w, spaces[i])) out->space = spaces[i];
  }
  if (truth_words_have(w, "param") || w->type_count != 1) return false;
  out->bits = w->type_bits[0];
  // What ptxas refuses no GPU can be asked.
  const bool local = strcmp(out->space, "local") == 0;
  if (out->read_only && strcmp(out->space, "const") == 0) return false;
  if (local && truth_words_have(w, "volatile")) return false;
  return out->bits * out->count <= 128;
}

// Narrow elements are loaded into wide registers, to see them extended.
static void registers_of(const access_t* access, truth_entry_t* entry) {
  entry->outs = access->count;
  entry->result = TRUTH_U32;
  if (access->bits == 64 || (access->count == 1 && access->bits < 32)) {
    entry->result = TRUTH_U64;
  }
}

static void list_registers(truth_entry_t* entry, char letter, uint32_t first,
                           uint32_t count) {
  if (count == 1) {
    append(entry, "%%%c%u", letter, first);
    return;
  }
  append(entry, "{");
  for (uint32_t i = 0; i < count; i++) {
    append(entry, "%s%%%c%u", i ? "," : "", letter, first + i);
  }
  append(entry, "}");
}

// Leaves in %d14 the address of 16 bytes that only this thread has, in
// `space`, and what the name of that space puts in front of it.
static void put_cell(truth_entry_t* entry, const char* space) {
  if (strcmp(space, "shared") == 0) {
    append(entry,
           ".shared .align 16 .b8 cell[4096];\nmov.u64 %%d15,cell;\n"
           "mad.wide.u32 %%d14,%%r12,16,%%d15;\n");
  } else if (strcmp(space, "local") == 0) {
    append(entry, ".local .align 16 .b8 cell[16];\nmov.u64 %%d14,cell;\n");
  } else if (strcmp(space, "const") == 0) {
    append(entry,
           "cvt.u32.u64 %%r14,%%d1;\nand.b32 %%r14,%%r14,15;\n"
           "mov.u64 %%d15,tc;\nmad.wide.u32 %%d14,%%r14,16,%%d15;\n");
  } else {
    append(entry, "and.b64 %%d14,%%d10,-16;\n");
  }
}

static bool add_load(truth_list_t* list, const char* form,
                     const truth_words_t* w) {
  access_t access;
  if (!access_of(w, &access)) return true;
  truth_entry_t* entry = truth_list_add(list, form, "memory");
  if (entry == NULL) return false;
  entry->layout = layout_small;
  sources_are(entry, TRUTH_U64, TRUTH_U64, TRUTH_NONE);
  registers_of(&access, entry);
  put_cell(entry, access.space);
  if (strcmp(access.space, "shared") == 0 ||
      strcmp(access.space, "local") == 0) {
    append(entry, "st.%s.v2.b64 [%%d14],{%%d1,%%d2};\n", access.space);
  }
  append(entry, "%s ", form);
  list_registers(entry, truth_kind_letter(entry->result), 5, access.count);
  append(entry, ",[%%d14];\n");
  return true;
}

static bool add_store(truth_list_t* list, const char* form,
                      const truth_words_t* w) {
  access_t access;
  if (!access_of(w, &access)) return true;
  truth_entry_t* entry = truth_list_add(list, form, "memory");
  if (entry == NULL) return false;
  const bool own =
      strcmp(access.space, "shared") == 0 || strcmp(access.space, "local") == 0;
  entry->layout = layout_small;
  entry->result = TRUTH_U64;
  entry->outs = 2;
  sources_are(entry, TRUTH_U64, TRUTH_U64, TRUTH_NONE);
  if (own) {
    put_cell(entry, access.space);
  } else {
    append(entry, "mov.u64 %%d14,%%d20;\n");
  }
  const char* space = own ? access.space : "global";
  append(entry,
         "mov.u64 %%d15,0;\nst.%s.v2.b64 [%%d14],{%%d15,%%d15};\n"
         "mov.b64 {%%r1,%%r2},%%d1;\nmov.b64 {%%r3,%%r4},%%d2;\n",
         space);
  const bool wide =
      access.bits == 64 || (access.count == 1 && access.bits < 32);
  append(entry, "%s [%%d14],", form);
  list_registers(entry, wide ? 'd' : 'r', 1, access.count);
  append(entry, ";\nld.%s.v2.b64 {%%d5,%%d6},[%%d14];\n", space);
  return true;
}

// ---- Atomics ----

// Elements of global memory; both sources go round through them.
static bool add_vector_atomic(truth_list_t* list, const char* form,
                              const truth_words_t* w) {
  const truth_kind_t kind = w->types[w->type_count - 1];
  const uint32_t count = truth_words_have(w, "v4") ? 4 : 2;
  const bool gives = w->size[0] == 4;
  truth_entry_t* entry = truth_list_add(list, form, "atomic");
  if (entry == NULL) return false;
  const char letter = truth_kind_letter(kind);
  const uint32_t bytes = truth_kind_bytes(kind);
  entry->layout = layout_small;
  entry->result = kind;
  entry->outs = count;
  sources_are(entry, kind, kind, TRUTH_NONE);
  for (uint32_t i = 0; i < count; i++) {
    append(entry, "st.global.b%u [%%d20+%u],%%%c%u;\n", bytes * 8, i * bytes,
           letter, 1 + (i & 1));
  }
  append(entry, "%s ", form);
  if (gives) {
    list_registers(entry, letter, 5, count);
    append(entry, ",");
  }
  append(entry, "[%%d20],{");
  for (uint32_t i = 0; i < count; i++) {
    append(entry, "%s%%%c%u", i ? "," : "", letter, 2 - (i & 1));
  }
  append(entry, "};\n");
  for (uint32_t i = 0; i < count && !gives; i++) {
    append(entry, "ld.global.b%u %%%c%u,[%%d20+%u];\n", bytes * 8, letter,
           5 + i, i * bytes);
  }
  return true;
}

// What was there and what is there now, of 128 bits.
static bool add_wide_atomic(truth_list_t* list, const char* form,
                            const truth_words_t* w) {
  const bool shared = truth_words_have(w, "shared");
  const char* space = shared ? "shared" : "global";
  truth_entry_t* entry = truth_list_add(list, form, "atomic");
  if (entry == NULL) return false;
  entry->layout = layout_small;
  entry->result = TRUTH_U64;
  entry->outs = 4;
  sources_are(entry, TRUTH_U64, TRUTH_U64, TRUTH_NONE);
  if (shared) {
    put_cell(entry, space);
  } else {
    append(entry, "mov.u64 %%d14,%%d20;\n");
  }
  append(entry,
         ".reg .b128 %%q<4>;\nst.%s.v2.b64 [%%d14],{%%d1,%%d2};\n"
         "mov.b128 %%q1,{%%d1,%%d1};\nmov.b128 %%q2,{%%d2,%%d1};\n"
         "%s %%q3,[%%d14],%%q1%s;\nmov.b128 {%%d5,%%d6},%%q3;\n"
         "ld.%s.v2.b64 {%%d7,%%d8},[%%d14];\n",
         space, form, truth_words_have(w, "cas") ? ",%q2" : "", space);
  return true;
}

static bool add_atomic(truth_list_t* list, const char* form,
                       const truth_words_t* w) {
  if (w->size[0] == 3 &&
      (truth_words_have(w, "acquire") || truth_words_have(w, "acq_rel"))) {
    return true;  // ptxas refuses them
  }
  if (truth_words_have(w, "b128")) return add_wide_atomic(list, form, w);
  if (w->type_count == 0) return true;
  if (truth_words_have(w, "v2") || truth_words_have(w, "v4")) {
    return add_vector_atomic(list, form, w);
  }
  if (truth_words_have(w, "v8")) return true;
  const truth_kind_t kind = w->types[w->type_count - 1];
  const bool swaps = truth_words_have(w, "cas");
  const bool gives = w->size[0] == 4;
  const bool shared = truth_words_have(w, "shared");
  const char* space = shared ? "shared" : "global";
  const uint32_t bytes = truth_kind_bytes(kind);
  if (kind == TRUTH_NONE || w->type_bits[w->type_count - 1] < 16) return true;
  truth_entry_t* entry = truth_list_add(list, form, "atomic");
  if (entry == NULL) return false;
  const char letter = truth_kind_letter(kind);
  entry->layout = layout_small;
  entry->result = kind;
  entry->outs = gives ? 2 : 1;
  sources_are(entry, kind, kind, swaps ? kind : TRUTH_NONE);
  if (shared) {
    put_cell(entry, space);
  } else {
    append(entry, "add.u64 %%d14,%%d20,%u;\n", gives ? bytes : 0);
  }
  append(entry, "st.%s.b%u [%%d14],%%%c1;\n%s ", space, bytes * 8, letter,
         form);
  if (gives) append(entry, "%%%c5,", letter);
  append(entry, "[%%d14],%%%c2", letter);
  if (swaps) append(entry, ",%%%c3", letter);
  append(entry, ";\nld.%s.b%u %%%c%u,[%%d14];\n", space, bytes * 8, letter,
         gives ? 6 : 5);
  return true;
}

// ---- Addresses ----

static bool add_cvta(truth_list_t* list, const char* form,
                     const truth_words_t* w) {
  access_t access;
  if (!access_of(w, &access)) return true;
  const bool to = truth_words_have(w, "to");
  truth_entry_t* entry = truth_list_add(list, form, "memory");
  if (entry == NULL) return false;
  entry->layout = layout_small;
  entry->result = TRUTH_U64;
  sources_are(entry, TRUTH_U64, TRUTH_U64, TRUTH_NONE);
  put_cell(entry, access.space);
  if (access.space[0] == 's' || access.space[0] == 'l') {
    append(entry, "st.%s.v2.b64 [%%d14],{%%d1,%%d2};\n", access.space);
  }
  // Through the generic address and, for `.to`, back.
  if (to) append(entry, "cvta.%s.u64 %%d14,%%d14;\n", access.space);
  append(entry, "%s %%d15,%%d14;\n", form);
  if (to) {
    append(entry, "ld.%s.b64 %%d5,[%%d15];\n", access.space);
  } else {
    append(entry, "ld.b64 %%d5,[%%d15];\n");
  }
  return true;
}

static bool add_isspacep(truth_list_t* list, const char* form,
                         const truth_words_t* w) {
  if (truth_words_have(w, "param")) return true;
  // On the software device constant variables lie in global memory.
  if (truth_words_have(w, "global")) return true;
  truth_entry_t* entry = truth_list_add(list, form, "memory");
  if (entry == NULL) return false;
  entry->layout = layout_small;
  entry->result = TRUTH_PRED;
  sources_are(entry, TRUTH_U32, TRUTH_NONE, TRUTH_NONE);
  append(entry,
         ".shared .align 16 .b8 sc[16];\n.local .align 16 .b8 lc[16];\n"
         "and.b32 %%r14,%%r1,3;\nmov.u64 %%d14,sc;\n"
         "cvta.shared.u64 %%d14,%%d14;\nmov.u64 %%d15,lc;\n"
         "cvta.local.u64 %%d15,%%d15;\nsetp.eq.u32 %%p1,%%r14,1;\n"
         "selp.b64 %%d14,%%d15,%%d14,%%p1;\nmov.u64 %%d15,tc;\n"
         "cvta.const.u64 %%d15,%%d15;\nsetp.eq.u32 %%p1,%%r14,2;\n"
         "selp.b64 %%d14,%%d15,%%d14,%%p1;\nsetp.eq.u32 %%p1,%%r14,3;\n"
         "selp.b64 %%d14,%%d20,%%d14,%%p1;\n%s %%p5,%%d14;\n",
         form);
  return true;
}

// ---- Warps ----

// In front of a collective of some lanes: those that the warp's first element
// has a bit for; the others go on with what %r5, %r6 and %p5 had before.
static void open_partial(truth_entry_t* entry) {
  append(entry,
         "and.b32 %%r14,%%r9,0xffffffe0;\nld.param.u64 %%d9,[s1];\n"
         "mad.wide.u32 %%d14,%%r14,4,%%d9;\nld.global.b32 %%r13,[%%d14];\n"
         "and.b32 %%r14,%%r9,31;\nmov.u32 %%r15,1;\n"
         "shl.b32 %%r15,%%r15,%%r14;\nand.b32 %%r15,%%r15,%%r13;\n"
         "setp.eq.u32 %%p9,%%r15,0;\nmov.u32 %%r5,0;\nmov.u32 %%r6,0;\n"
         "setp.ne.u32 %%p5,0,0;\n@%%p9 bra LEAVE;\n");
}

static truth_entry_t* add_warp(truth_list_t* list, const char* form,
                               bool partial) {
  char name[TRUTH_NAME_BYTES];
  (void)snprintf(name, sizeof(name), "%s%s", form, partial ? " partial" : "");
  truth_entry_t* entry = truth_list_add(list, name, "warp");
  if (entry == NULL) return NULL;
  entry->layout = layout_small;
  entry->result = TRUTH_U32;
  sources_are(entry, TRUTH_U32, TRUTH_U32, TRUTH_NONE);
  if (partial) {
    open_partial(entry);
  } else {
    append(entry, "mov.u32 %%r13,0xffffffff;\n");
  }
  return entry;
}

static void close_partial(truth_entry_t* entry) {
  append(entry, "LEAVE:\n");
}

static bool add_shfl(truth_list_t* list, const char* form) {
  truth_entry_t* entry = add_warp(list, form, false);
  if (entry == NULL) return false;
  sources_are(entry, TRUTH_U32, TRUTH_SHIFT, TRUTH_SHIFT);
  entry->outs = 2;
  append(entry, "%s %%r5|%%p6,%%r1,%%r2,%%r3,%%r13;\nselp.u32 %%r6,1,0,%%p6;\n",
         form);
  if (strstr(form, ".idx") == NULL) return true;
  // What a lane reads from one that is not there is open: left out.
  entry = add_warp(list, form, true);
  if (entry == NULL) return false;
  append(entry,
         "%s %%r5,%%r1,%%r2,31,%%r13;\nand.b32 %%r14,%%r2,31;\n"
         "shr.u32 %%r14,%%r13,%%r14;\nand.b32 %%r14,%%r14,1;\n"
         "setp.eq.u32 %%p1,%%r14,0;\nselp.b32 %%r5,0,%%r5,%%p1;\n",
         form);
  close_partial(entry);
  return true;
}

static bool add_vote(truth_list_t* list, const char* form,
                     const truth_words_t* w) {
  for (uint32_t partial = 0; partial < 2; partial++) {
    truth_entry_t* entry = add_warp(list, form, partial);
    if (entry == NULL) return false;
    // Half of the warps agree.
    append(entry,
           "and.b32 %%r14,%%r2,1;\nshr.u32 %%r15,%%r9,5;\n"
           "and.b32 %%r15,%%r15,3;\nadd.u32 %%r14,%%r14,%%r15;\n"
           "and.b32 %%r14,%%r14,2;\nsetp.ne.u32 %%p1,%%r14,0;\n");
    if (truth_words_have(w, "ballot")) {
      append(entry, "%s %%r5,%%p1,%%r13;\n", form);
    } else {
      append(entry, "%s %%p5,%%p1,%%r13;\nselp.u32 %%r5,1,0,%%p5;\n", form);
    }
    if (partial) close_partial(entry);
  }
  return true;
}

static bool add_match(truth_list_t* list, const char* form,
                      const truth_words_t* w) {
  const bool all = truth_words_have(w, "all");
  const bool wide = w->type_bits[0] == 64;
  for (uint32_t partial = 0; partial < 2; partial++) {
    truth_entry_t* entry = add_warp(list, form, partial);
    if (entry == NULL) return false;
    entry->outs = all ? 2 : 1;
    // Few values, so that lanes match; one in a quarter of the warps.
    append(entry,
           "shr.u32 %%r14,%%r9,5;\nand.b32 %%r14,%%r14,3;\n"
           "and.b32 %%r14,%%r14,%%r2;\n");
    if (wide) append(entry, "mov.b64 %%d15,{%%r14,%%r14};\n");
    append(entry, "%s %%r5%s,%s,%%r13;\n", form, all ? "|%p6" : "",
           wide ? "%d15" : "%r14");
    if (all) append(entry, "selp.u32 %%r6,1,0,%%p6;\n");
    if (partial) close_partial(entry);
  }
  return true;
}

static bool add_redux(truth_list_t* list, const char* form,
                      const truth_words_t* w) {
  if (w->types[0] != TRUTH_U32) return true;
  for (uint32_t partial = 0; partial < 2; partial++) {
    truth_entry_t* entry = add_warp(list, form, partial);
    if (entry == NULL) return false;
    append(entry, "%s %%r5,%%r2,%%r13;\n", form);
    if (partial) close_partial(entry);
  }
  return true;
}

static bool add_barrier(truth_list_t* list, const char* form,
                        const truth_words_t* w) {
  if (!truth_words_have(w, "red")) return true;
  truth_entry_t* entry = add_warp(list, form, false);
  if (entry == NULL) return false;
  append(entry,
         "and.b32 %%r14,%%r2,1;\nshr.u32 %%r15,%%r9,8;\n"
         "and.b32 %%r15,%%r15,3;\nadd.u32 %%r14,%%r14,%%r15;\n"
         "and.b32 %%r14,%%r14,2;\nsetp.ne.u32 %%p1,%%r14,0;\n");
  if (truth_words_have(w, "popc")) {
    append(entry, "%s %%r5,0,%%p1;\n", form);
  } else {
    append(entry, "%s %%p5,0,%%p1;\nselp.u32 %%r5,1,0,%%p5;\n", form);
  }
  return true;
}

static bool add_elect(truth_list_t* list, const char* form) {
  for (uint32_t partial = 0; partial < 2; partial++) {
    truth_entry_t* entry = add_warp(list, form, partial);
    if (entry == NULL) return false;
    entry->outs = 2;
    append(entry, "%s %%r5|%%p6,%%r13;\nselp.u32 %%r6,1,0,%%p6;\n", form);
    if (partial) close_partial(entry);
  }
  return true;
}

// A copy into shared memory, and what is there when all copies are done.
static bool add_async(truth_list_t* list, const char* form,
                      const truth_words_t* w) {
  if (!truth_words_have(w, "ca") && !truth_words_have(w, "cg")) return true;
  truth_entry_t* entry = truth_list_add(list, form, "memory");
  if (entry == NULL) return false;
  const bool all = truth_words_have(w, "cg");
  entry->layout = layout_small;
  entry->result = TRUTH_U64;
  entry->outs = 2;
  sources_are(entry, TRUTH_U64, TRUTH_U64, TRUTH_NONE);
  put_cell(entry, "shared");
  append(entry,
         "and.b64 %%d15,%%d10,-16;\nst.shared.v2.b64 [%%d14],{%%d2,%%d2};\n"
         "%s [%%d14],[%%d15],%u;\ncp.async.commit_group;\n"
         "cp.async.wait_group 0;\nld.shared.v2.b64 {%%d5,%%d6},[%%d14];\n",
         form, all ? 16 : 8);
  return true;
}

static bool add_activemask(truth_list_t* list, const char* form) {
  truth_entry_t* entry = add_warp(list, form, false);
  if (entry == NULL) return false;
  append(entry, "%s %%r5;\n", form);
  return true;
}

bool truth_special_add(truth_list_t* list, const char* form) {
  truth_words_t w;
  char first[16] = "";
  truth_words_of(form, &w);
  if (w.size[0] < sizeof(first)) memcpy(first, w.at[0], w.size[0]);
  if (strcmp(first, "ld") == 0) return add_load(list, form, &w);
  if (strcmp(first, "st") == 0) return add_store(list, form, &w);
  if (strcmp(first, "atom") == 0) return add_atomic(list, form, &w);
  if (strcmp(first, "red") == 0) return add_atomic(list, form, &w);
  if (strcmp(first, "cvta") == 0) return add_cvta(list, form, &w);
  if (strcmp(first, "isspacep") == 0) return add_isspacep(list, form, &w);
  if (strcmp(first, "shfl") == 0) return add_shfl(list, form);
  if (strcmp(first, "vote") == 0) return add_vote(list, form, &w);
  if (strcmp(first, "match") == 0) return add_match(list, form, &w);
  if (strcmp(first, "redux") == 0) return add_redux(list, form, &w);
  if (strcmp(first, "elect") == 0) return add_elect(list, form);
  if (strcmp(first, "cp") == 0) return add_async(list, form, &w);
  if (strcmp(first, "activemask") == 0) return add_activemask(list, form);
  if (strcmp(first, "bar") == 0 || strcmp(first, "barrier") == 0) {
    return add_barrier(list, form, &w);
  }
  return truth_text_add(list, form);
}

// ---- What is no form by itself ----

static bool add_setp(truth_list_t* list) {
  static const char* const compares[] = {"lt", "ne"};
  static const char* const booleans[] = {"and", "or", "xor"};
  static const struct {
    const char* type;
    truth_kind_t kind;
  } of[] = {{"s32", TRUTH_U32},
            {"u64", TRUTH_U64},
            {"f32", TRUTH_F32},
            {"f64", TRUTH_F64}};
  for (uint32_t i = 0; i < 24; i++) {
    char name[TRUTH_NAME_BYTES];
    const uint32_t t = i / 6;
    (void)snprintf(name, sizeof(name), "setp.%s.%s.%s", compares[i & 1],
                   booleans[i / 2 % 3], of[t].type);
    truth_entry_t* entry = truth_list_add(list, name, "compare");
    if (entry == NULL) return false;
    const char letter = truth_kind_letter(of[t].kind);
    entry->layout = layout_small;
    entry->result = TRUTH_PRED;
    entry->outs = 2;
    sources_are(entry, of[t].kind, of[t].kind, TRUTH_PRED);
    append(entry, "%s %%p5|%%p6,%%%c1,%%%c2,%s%%p3;\n", name, letter, letter,
           t & 1 ? "!" : "");
    (void)snprintf(name, sizeof(name), "set.%s.%s.u32.%s", compares[i & 1],
                   booleans[i / 2 % 3], of[t].type);
    entry = truth_list_add(list, name, "compare");
    if (entry == NULL) return false;
    entry->layout = layout_small;
    entry->result = TRUTH_U32;
    sources_are(entry, of[t].kind, of[t].kind, TRUTH_PRED);
    append(entry, "%s %%r5,%%%c1,%%%c2,%%p3;\n", name, letter, letter);
  }
  return true;
}

static bool add_text(truth_list_t* list, const char* name, const char* family,
                     truth_kind_t a, truth_kind_t b, truth_kind_t result,
                     uint32_t outs, const char* body) {
  truth_entry_t* entry = truth_list_add(list, name, family);
  if (entry == NULL) return false;
  entry->layout = layout_small;
  entry->result = result;
  entry->outs = outs;
  sources_are(entry, a, b, TRUTH_NONE);
  append(entry, "%s", body);
  return true;
}

static bool add_moves(truth_list_t* list) {
  return add_text(list, "mov.b32 {h,h}", "bits", TRUTH_U16, TRUTH_U16,
                  TRUTH_U32, 1, "mov.b32 %r5,{%h1,%h2};\n") &&
         add_text(list, "mov.b32 h,h", "bits", TRUTH_U32, TRUTH_U32, TRUTH_U16,
                  2, "mov.b32 {%h5,%h6},%r1;\n") &&
         add_text(list, "mov.b64 {r,r}", "bits", TRUTH_U32, TRUTH_U32,
                  TRUTH_U64, 1, "mov.b64 %d5,{%r1,%r2};\n") &&
         add_text(list, "mov.b64 r,r", "bits", TRUTH_U64, TRUTH_U32, TRUTH_U32,
                  2, "mov.b64 {%r5,%r6},%d1;\n") &&
         add_text(list, "mov.b64 {h,h,h,h}", "bits", TRUTH_U16, TRUTH_U16,
                  TRUTH_U64, 1, "mov.b64 %d5,{%h1,%h2,%h2,%h1};\n") &&
         add_text(list, "mov.b64 h,h,h,h", "bits", TRUTH_U64, TRUTH_U32,
                  TRUTH_U16, 4, "mov.b64 {%h5,%h6,%h7,%h8},%d1;\n");
}

// All 256 tables, 16 to a kernel, one answer of each 16.
static bool add_tables(truth_list_t* list) {
  for (uint32_t high = 0; high < 16; high++) {
    char name[TRUTH_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "lop3.b32 0x%x0..f", high);
    truth_entry_t* entry = truth_list_add(list, name, "bits");
    if (entry == NULL) return false;
    entry->layout = layout_small;
    entry->result = TRUTH_U32;
    sources_are(entry, TRUTH_U32, TRUTH_U32, TRUTH_U32);
    append(entry, "mov.u32 %%r5,0;\n");
    for (uint32_t low = 0; low < 16; low++) {
      append(entry,
             "lop3.b32 %%r14,%%r1,%%r2,%%r3,0x%x;\n"
             "mad.lo.u32 %%r5,%%r5,31,%%r14;\n",
             high * 16 + low);
    }
  }
  return true;
}

// A chain over three words, and a product of two words by two.
static bool add_chains(truth_list_t* list) {
  return add_text(list, "add.cc.u32 chain", "integer", TRUTH_U64, TRUTH_U64,
                  TRUTH_U32, 3,
                  "mov.b64 {%r1,%r2},%d1;\nmov.b64 {%r3,%r4},%d2;\n"
                  "add.cc.u32 %r5,%r1,%r3;\naddc.cc.u32 %r6,%r2,%r4;\n"
                  "addc.u32 %r7,%r1,%r4;\n") &&
         add_text(list, "sub.cc.u32 chain", "integer", TRUTH_U64, TRUTH_U64,
                  TRUTH_U32, 3,
                  "mov.b64 {%r1,%r2},%d1;\nmov.b64 {%r3,%r4},%d2;\n"
                  "sub.cc.u32 %r5,%r1,%r3;\nsubc.cc.u32 %r6,%r2,%r4;\n"
                  "subc.u32 %r7,%r1,%r4;\n") &&
         add_text(list, "subc.u32 after add.cc", "integer", TRUTH_U64,
                  TRUTH_U64, TRUTH_U32, 2,
                  "mov.b64 {%r1,%r2},%d1;\nmov.b64 {%r3,%r4},%d2;\n"
                  "add.cc.u32 %r5,%r1,%r3;\nsubc.u32 %r6,%r2,%r4;\n") &&
         add_text(list, "addc.u32 after sub.cc", "integer", TRUTH_U64,
                  TRUTH_U64, TRUTH_U32, 2,
                  "mov.b64 {%r1,%r2},%d1;\nmov.b64 {%r3,%r4},%d2;\n"
                  "sub.cc.u32 %r5,%r1,%r3;\naddc.u32 %r6,%r2,%r4;\n") &&
         add_text(list, "madc.hi.cc.u32 after sub.cc", "integer", TRUTH_U64,
                  TRUTH_U64, TRUTH_U32, 2,
                  "mov.b64 {%r1,%r2},%d1;\nmov.b64 {%r3,%r4},%d2;\n"
                  "sub.cc.u32 %r5,%r1,%r3;\n"
                  "madc.hi.cc.u32 %r5,%r2,%r4,%r1;\nsubc.u32 %r6,%r3,%r2;\n") &&
         add_text(list, "mad.lo.cc.u32 chain", "integer", TRUTH_U64, TRUTH_U64,
                  TRUTH_U32, 4,
                  "mov.b64 {%r1,%r2},%d1;\nmov.b64 {%r3,%r4},%d2;\n"
                  "mul.lo.u32 %r5,%r1,%r3;\nmul.hi.u32 %r6,%r1,%r3;\n"
                  "mad.lo.cc.u32 %r6,%r2,%r3,%r6;\n"
                  "madc.hi.u32 %r7,%r2,%r3,0;\n"
                  "mad.lo.cc.u32 %r6,%r1,%r4,%r6;\n"
                  "madc.hi.cc.u32 %r7,%r1,%r4,%r7;\naddc.u32 %r8,0,0;\n"
                  "mad.lo.cc.u32 %r7,%r2,%r4,%r7;\n"
                  "madc.hi.u32 %r8,%r2,%r4,%r8;\n");
}

// 256 threads at one cell: what it holds afterwards does not depend on order.
static bool add_crowds(truth_list_t* list) {
  static const char* const ops[] = {"add.u32", "min.s32", "max.u32", "and.b32",
                                    "or.b32",  "xor.b32", "inc.u32", "dec.u32"};
  for (uint32_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
    char name[TRUTH_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "red.shared.%s crowd", ops[i]);
    truth_entry_t* entry = truth_list_add(list, name, "atomic");
    if (entry == NULL) return false;
    entry->layout = layout_small;
    entry->result = TRUTH_U32;
    sources_are(entry, TRUTH_U32, TRUTH_NONE, TRUTH_NONE);
    append(entry,
           ".shared .align 4 .b32 cell;\nsetp.eq.u32 %%p1,%%r12,0;\n"
           "@%%p1 st.shared.u32 [cell],%%r1;\nbar.sync 0;\n"
           "red.shared.%s [cell],%s;\nbar.sync 0;\n"
           "ld.shared.u32 %%r5,[cell];\n",
           ops[i], i >= 6 ? "100" : "%r1");
  }
  return true;
}

bool truth_special_extra(truth_list_t* list) {
  const size_t before = list->count;
  if (!add_setp(list) || !add_moves(list) || !add_tables(list) ||
      !add_chains(list) || !add_crowds(list)) {
    return false;
  }
  // Kept apart from the forms' own entries: nothing else has many inputs here.
  for (size_t i = before; i < list->count; i++) {
    if (strncmp(list->entries[i].family, "integer", 7) == 0) {
      list->entries[i].layout = layout_pairs;
    }
  }
  return true;
}
