// SPDX-License-Identifier: Apache-2.0
//
// truth: kernels for the video instructions and cvt.pack. Types that differ in
// nothing else share a kernel, whose answers are folded into one number: a
// form of these has few words to tell, and there are a thousand.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

// An entry of three words whose body starts with nothing folded.
static truth_entry_t* add_fold(truth_list_t* list, const char* name,
                               const char* family, const char* covers) {
  truth_entry_t* entry = truth_list_add(list, name, family);
  if (entry == NULL) return NULL;
  entry->layout = layout_fold;
  entry->result = TRUTH_U32;
  for (uint32_t i = 0; i < 3; i++) entry->sources[i] = TRUTH_U32;
  (void)snprintf(entry->covers, sizeof(entry->covers), "%s", covers);
  append(entry, "mov.u32 %%r5,0;\n");
  return entry;
}

static void put_form(truth_entry_t* entry, const char* form,
                     const char* operands) {
  append(entry, "%s %%r14%s;\nmad.lo.u32 %%r5,%%r5,31,%%r14;\n", form,
         operands);
}

static const char* const types[] = {"u32", "s32"};

// `head`.D.A.B`tail` for both types of a and b; D is none where it is empty.
static bool add_types(truth_list_t* list, const char* family, const char* head,
                      const char* d, const char* tail) {
  char name[TRUTH_NAME_BYTES], form[TRUTH_NAME_BYTES];
  (void)snprintf(name, sizeof(name), "%s%s.*.*%s", head, d, tail);
  truth_entry_t* entry = add_fold(list, name, family, name);
  if (entry == NULL) return false;
  for (uint32_t i = 0; i < 4; i++) {
    (void)snprintf(form, sizeof(form), "%s%s.%s.%s%s", head, d, types[i & 1],
                   types[i >> 1], tail);
    put_form(entry, form, ",%r1,%r2,%r3");
  }
  return true;
}

static bool add_one_number(truth_list_t* list) {
  static const char* const heads[] = {"vadd", "vsub", "vabsdiff", "vmin",
                                      "vmax"};
  static const char* const tails[] = {
      "", ".sat", ".add", ".min", ".max", ".sat.add", ".sat.min", ".sat.max"};
  static const char* const compares[] = {".eq", ".ne", ".lt",
                                         ".le", ".gt", ".ge"};
  static const char* const seconds[] = {"", ".add", ".min", ".max"};
  bool done = true;
  for (uint32_t i = 0; done && i < 5 * 8 * 2; i++) {
    char d[8];
    (void)snprintf(d, sizeof(d), ".%s", types[i & 1]);
    done = add_types(list, "video", heads[i / 16], d, tails[i / 2 % 8]);
  }
  for (uint32_t i = 0; done && i < 6 * 4; i++) {
    char tail[16];
    (void)snprintf(tail, sizeof(tail), "%s%s", compares[i / 4], seconds[i % 4]);
    done = add_types(list, "video", "vset", "", tail);
  }
  return done;
}

static bool add_shifts(truth_list_t* list) {
  static const char* const modes[] = {".clamp", ".wrap", ".sat.clamp",
                                      ".sat.wrap"};
  static const char* const seconds[] = {"", ".add", ".min", ".max"};
  for (uint32_t i = 0; i < 2 * 2 * 4 * 4; i++) {
    char name[TRUTH_NAME_BYTES], form[TRUTH_NAME_BYTES];
    const char* head = i & 1 ? "vshr" : "vshl";
    const char* d = types[i >> 1 & 1];
    (void)snprintf(name, sizeof(name), "%s.%s.*.u32%s%s", head, d,
                   modes[i >> 2 & 3], seconds[i >> 4]);
    truth_entry_t* entry = add_fold(list, name, "video", name);
    if (entry == NULL) return false;
    entry->sources[1] = TRUTH_SHIFT;
    for (uint32_t a = 0; a < 2; a++) {
      (void)snprintf(form, sizeof(form), "%s.%s.%s.u32%s%s", head, d, types[a],
                     modes[i >> 2 & 3], seconds[i >> 4]);
      put_form(entry, form, ",%r1,%r2,%r3");
    }
  }
  return true;
}

static bool add_products(truth_list_t* list) {
  static const char* const scales[] = {"", ".shr7", ".shr15"};
  static const char* const operands[] = {",-%r1,%r2,%r3", ",%r1,-%r2,%r3",
                                         ",%r1,%r2,-%r3", ",-%r1,-%r2,%r3"};
  bool done = true;
  for (uint32_t i = 0; done && i < 2 * 2 * 2 * 3; i++) {
    char d[8], tail[24], name[TRUTH_NAME_BYTES], form[TRUTH_NAME_BYTES];
    const char* sat = i & 2 ? ".sat" : "";
    const char* scale = scales[i >> 3];
    (void)snprintf(d, sizeof(d), ".%s", types[i & 1]);
    (void)snprintf(tail, sizeof(tail), "%s%s%s", i & 4 ? ".po" : "", sat,
                   scale);
    done = add_types(list, "video", "vmad", d, tail);
    if (i & 5) continue;
    (void)snprintf(name, sizeof(name), "vmad negated%s%s", sat, scale);
    truth_entry_t* entry = add_fold(list, name, "video", "");
    if (entry == NULL) return false;
    for (uint32_t k = 0; k < 16; k++) {
      (void)snprintf(form, sizeof(form), "vmad.s32.%s.%s%s%s", types[k & 1],
                     types[k >> 1 & 1], sat, scale);
      put_form(entry, form, operands[k >> 2]);
    }
  }
  return done;
}

static bool add_parts(truth_list_t* list) {
  static const char* const heads[] = {"vadd", "vsub", "vabsdiff",
                                      "vmin", "vmax", "vavrg"};
  static const char* const tails[] = {"", ".sat", ".add"};
  static const char* const compares[] = {".eq", ".ne", ".lt",
                                         ".le", ".gt", ".ge"};
  bool done = true;
  for (uint32_t i = 0; done && i < 2 * 6 * 2 * 3; i++) {
    char head[16], d[8];
    (void)snprintf(head, sizeof(head), "%s%u", heads[i / 2 % 6], i & 1 ? 4 : 2);
    (void)snprintf(d, sizeof(d), ".%s", types[i / 12 % 2]);
    done = add_types(list, "video", head, d, tails[i / 24]);
  }
  for (uint32_t i = 0; done && i < 2 * 6 * 2; i++) {
    char tail[16];
    (void)snprintf(tail, sizeof(tail), "%s%s", compares[i / 2 % 6],
                   i / 12 ? ".add" : "");
    done = add_types(list, "video", i & 1 ? "vset4" : "vset2", "", tail);
  }
  return done;
}

// Which parts the operands are: %r14`d`,%r1`a`,%r2`b`,%r3.
static bool add_selected(truth_list_t* list, const char* form,
                         const char* const* d, const char* const* a,
                         uint32_t count) {
  char name[TRUTH_NAME_BYTES], operands[64];
  (void)snprintf(name, sizeof(name), "%s selected", form);
  truth_entry_t* entry = add_fold(list, name, "video", "");
  if (entry == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    // What %r14 held before does not matter.
    (void)snprintf(operands, sizeof(operands), "%s,%%r1%s,%%r2%s,%%r3", d[i],
                   a[i], a[(i * 3 + 1) % count]);
    put_form(entry, form, operands);
  }
  return true;
}

static bool add_selectors(truth_list_t* list) {
  static const char* const ones[] = {".b0", ".b1", ".b2", ".b3",
                                     ".h0", ".h1", ".b0"};
  static const char* const masks[] = {".b0",  ".b1",   ".b10",  ".b2",
                                      ".b20", ".b21",  ".b210", ".b3",
                                      ".b30", ".b310", ".b32",  ".b3210"};
  static const char* const fours[] = {".b7654", ".b0000", ".b3210", ".b0724",
                                      ".b5163", ".b7777", ".b1234", ".b4567",
                                      ".b0246", ".b6420", ".b2222", ".b7070"};
  static const char* const halves[] = {".h0", ".h1", ".h10", ".h10"};
  static const char* const twos[] = {".h32", ".h10", ".h13", ".h00"};
  static const char* const forms[] = {
      "vadd.s32.u32.s32",         "vsub.u32.s32.u32.sat",
      "vabsdiff.s32.s32.s32.sat", "vmin.s32.u32.s32",
      "vmax.u32.s32.s32.sat",     "vset.s32.u32.lt",
      "vshl.u32.s32.u32.wrap",    "vshr.s32.u32.u32.sat.clamp"};
  static const char* const four_forms[] = {
      "vadd4.s32.u32.s32.sat", "vabsdiff4.u32.u32.u32.add",
      "vavrg4.s32.s32.u32", "vset4.u32.s32.ge", "vset4.s32.u32.ne.add"};
  static const char* const two_forms[] = {
      "vsub2.u32.s32.u32.sat", "vavrg2.s32.s32.u32.add", "vset2.u32.u32.le",
      "vmax2.s32.s32.s32"};
  bool done = true;
  for (size_t i = 0; done && i < sizeof(forms) / sizeof(forms[0]); i++) {
    done = add_selected(list, forms[i], ones, ones, 7);
  }
  for (size_t i = 0; done && i < sizeof(four_forms) / sizeof(four_forms[0]);
       i++) {
    done = add_selected(list, four_forms[i], masks, fours, 12);
  }
  for (size_t i = 0; done && i < sizeof(two_forms) / sizeof(two_forms[0]);
       i++) {
    done = add_selected(list, two_forms[i], halves, twos, 4);
  }
  return done;
}

static bool add_packs(truth_list_t* list) {
  static const char* const narrow[] = {"u16", "s16", "u8", "s8",
                                       "u4",  "s4",  "u2", "s2"};
  for (uint32_t i = 0; i < 8; i++) {
    char name[TRUTH_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "cvt.pack.sat.%s.s32%s", narrow[i],
                   i < 2 ? "" : ".b32");
    truth_entry_t* entry = add_fold(list, name, "pack", name);
    if (entry == NULL) return false;
    entry->layout = (truth_layout_t){256, 16, 0, 0};
    append(entry, "%s %%r5,%%r1,%%r2%s;\n", name, i < 2 ? "" : ",%r3");
    // Clamped as it is, then as what is nearer.
    append(entry,
           "shr.s32 %%r1,%%r1,24;\nshr.s32 %%r2,%%r2,24;\n"
           "%s %%r14,%%r1,%%r2%s;\nmad.lo.u32 %%r5,%%r5,31,%%r14;\n",
           name, i < 2 ? "" : ",%r3");
  }
  return true;
}

bool truth_packed_extra(truth_list_t* list) {
  return add_one_number(list) && add_shifts(list) && add_products(list) &&
         add_parts(list) && add_selectors(list) && add_packs(list);
}
