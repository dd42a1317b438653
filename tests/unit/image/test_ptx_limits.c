// SPDX-License-Identifier: Apache-2.0
//
// image: every limit of the PTX reader is kept and named, and the page that
// lists them is right.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_text.h"

#define VARIABLES ".global .u8 a; .global .u8 b; .global .u8 c;"

// `at` is what the text needs; with one less it is refused.
typedef struct limit_case_t {
  const char* name;
  size_t offset;
  uint64_t at;
  const char* text;
} limit_case_t;

#define LIMIT(name, at, text) \
  {#name, offsetof(kilni_image_ptx_limits_t, name), at, text}

static const limit_case_t kCases[] = {
    LIMIT(input_bytes, 44, PTX_HEAD),
    LIMIT(identifier_bytes, 12, PTX_HEAD ".global .u8 abcdefghijkl;"),
    LIMIT(string_bytes, 5, PTX_HEAD ".file 1 \"abcde\""),
    LIMIT(identifiers, 3, PTX_HEAD VARIABLES),
    LIMIT(nesting, 3, PTX_HEAD ".entry e() { { { ret; } } }"),
    LIMIT(nesting, 4, PTX_HEAD ".const .u32 x = ((1+(2)));"),
    LIMIT(functions, 2, PTX_HEAD ".func f(); .func g();"),
    LIMIT(variables, 3, PTX_HEAD VARIABLES),
    LIMIT(parameters, 2,
          PTX_HEAD ".func f(.param .b32 a, .param .b32 b) { ret; }"),
    LIMIT(registers, 7, PTX_HEAD ".func f() { .reg .b32 r<7>; ret; }"),
    LIMIT(registers, 7,
          PTX_HEAD ".func f() { .reg .b32 r<4>; .reg .b32 s<3>; ret; }"),
    LIMIT(labels, 2, PTX_HEAD ".func f() { A: B: ret; }"),
    LIMIT(instructions, 3, PTX_HEAD ".func f() { ret; ret; ret; }"),
    LIMIT(operands, 2, PTX_HEAD ".func f() { .reg .b32 r; mov.b32 r, 1; }"),
    LIMIT(instruction_operands, 4,
          PTX_HEAD ".func f() { .reg .b32 r; mad.lo.s32 r, r, r, r; }"),
    LIMIT(vector_elements, 2,
          PTX_HEAD ".func f() { .reg .b32 r<2>; .reg .b64 q; "
                   "mov.b64 q, {r0, r1}; }"),
    LIMIT(modifiers, 3,
          PTX_HEAD ".func f() { .reg .f32 r; add.rn.ftz.f32 r, r, r; }"),
    LIMIT(forms, 2,
          PTX_HEAD ".func f() { .reg .b32 r; mov.b32 r, 1; ret; ret; }"),
    LIMIT(variable_bytes, 24, PTX_HEAD ".global .u32 x[3][2];"),
    LIMIT(initialiser_bytes, 8, PTX_HEAD ".global .u32 x[] = {1, 2};"),
    LIMIT(relocations, 2,
          PTX_HEAD ".global .u8 a; .global .u64 x[2] = {a, a};"),
    LIMIT(locations, 2, PTX_HEAD ".func f() { .loc 1 1 1 .loc 1 2 1 ret; }"),
    LIMIT(files, 2, PTX_HEAD ".file 1 \"a\" .file 2 \"b\""),
};

static void one_less_is_refused_by_name(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const limit_case_t* c = &kCases[i];
    kilni_image_ptx_limits_t limits;
    memset(&limits, 0, sizeof(limits));
    memcpy((char*)&limits + c->offset, &c->at, sizeof(c->at));
    kilni_image_ptx_module_t* module;
    kiln_bytes_view_t bytes = {(const uint8_t*)c->text, strlen(c->text)};
    kiln_status_t status = kilni_image_ptx_module_create(
        bytes, "test", &limits, kiln_allocator_libc(), &module);
    if (!kiln_status_is_ok(status)) {
      fail_msg("%s at %u: %s", c->name, (unsigned)c->at,
               kiln_status_message(status));
    }
    kilni_image_ptx_module_release(module);
    uint64_t less = c->at - 1;
    memcpy((char*)&limits + c->offset, &less, sizeof(less));
    status = ptx_refuse(c->text, &limits);
    // An identifier or string that is too long is a bad token.
    if (strstr(kiln_status_message(status), c->name) == NULL ||
        kiln_status_fix(status) == NULL) {
      fail_msg("%s: %s", c->name, kiln_status_message(status));
    }
    kiln_status_free(status);
  }
}

static void every_limit_has_a_case(void** state) {
  (void)state;
#define HAS_CASE(name_, value, text)                                \
  {                                                                 \
    bool found = false;                                             \
    for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) \
      found = found || strcmp(kCases[i].name, #name_) == 0;         \
    if (!found) fail_msg("no case for %s", #name_);                 \
  }
  KILNI_PTX_LIMITS(HAS_CASE)
}

static void a_range_of_many_registers_costs_little(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD ".func f() { .reg .b32 r<1000000>; mov.b32 r999999, 1; ret; }");
  assert_int_equal(ptx_only_function(m)->register_count, 1);
  kilni_image_ptx_module_release(m);
}

// 2 MiB of brackets must end at the limit, not at the end of the stack.
static void hostile_nesting_ends_at_the_limit(void** state) {
  (void)state;
  enum { SIZE = 2 << 20 };
  static const char* const kHeads[] = {
      PTX_HEAD ".entry e() { ",
      PTX_HEAD ".entry e() { .reg .b32 r; mov.b32 r, ",
      PTX_HEAD ".entry e() { .reg .b32 r; mov.b32 r, ",
      PTX_HEAD ".entry e() { .reg .b32 r; mov.b32 ",
      PTX_HEAD ".global .u32 x[2][2] = "};
  static const char kFills[] = "{(-{{";
  char* text = malloc(SIZE + 256);
  assert_non_null(text);
  for (size_t i = 0; i < 5; i++) {
    strcpy(text, kHeads[i]);
    size_t at = strlen(text);
    memset(text + at, kFills[i], SIZE);
    text[at + SIZE] = '\0';
    kiln_status_t status = ptx_refuse(text, NULL);
    kiln_status_free(status);
  }
  free(text);
}

static void the_reference_page_has_every_limit(void** state) {
  (void)state;
  static char page[1 << 16];
  FILE* file = fopen(KILN_SOURCE_DIR "/docs/reference/ptx-reader.md", "rb");
  assert_non_null(file);
  size_t size = fread(page, 1, sizeof(page) - 1, file);
  fclose(file);
  page[size] = '\0';
#define HAS_ROW(name_, value, text_)                                   \
  {                                                                    \
    char row[256];                                                     \
    snprintf(row, sizeof(row), "| `%s` | %llu | %s |", #name_,         \
             (unsigned long long)(value), text_);                      \
    if (strstr(page, row) == NULL) fail_msg("the page lacks %s", row); \
  }
  KILNI_PTX_LIMITS(HAS_ROW)
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_less_is_refused_by_name),
      cmocka_unit_test(every_limit_has_a_case),
      cmocka_unit_test(a_range_of_many_registers_costs_little),
      cmocka_unit_test(hostile_nesting_ends_at_the_limit),
      cmocka_unit_test(the_reference_page_has_every_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
