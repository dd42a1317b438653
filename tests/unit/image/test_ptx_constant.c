// SPDX-License-Identifier: Apache-2.0
//
// image: constant expressions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_text.h"

typedef struct constant_case_t {
  const char* text;
  uint64_t value;
  uint32_t immediate;
} constant_case_t;

#define S64(text, value) {text, (uint64_t)(value), KILNI_PTX_IMMEDIATE_S64}
#define U64(text, value) {text, (uint64_t)(value), KILNI_PTX_IMMEDIATE_U64}

static const constant_case_t kCases[] = {
    S64("1+2*3", 7),
    S64("(1+2)*3", 9),
    S64("10-3-2", 5),
    S64("-5/2", -2),
    S64("-5 % 3", -2),
    S64("7 % -4", 3),
    S64("1<<4|1", 17),
    S64("6&3^1", 3),
    S64("1|2^3&1", 3),
    S64("-8>>1", -4),
    S64("1<<64", 0),
    S64("-1>>99", -1),
    S64("~0", -1),
    S64("!0", 1),
    S64("!7", 0),
    S64("-(-3)", 3),
    S64("+3", 3),
    S64("1?2:3", 2),
    S64("0?2:1?4:5", 4),
    S64("1<2", 1),
    S64("-1<1", 1),
    S64("2>=3", 0),
    S64("3==3", 1),
    S64("3!=3", 0),
    S64("1&&0", 0),
    S64("1||0", 1),
    S64("1+1==2&&4>3", 1),
    S64("0x7fffffffffffffff+1", INT64_MIN),
    S64("(-0x7fffffffffffffff-1)/-1", INT64_MIN),
    S64("(-0x7fffffffffffffff-1) % -1", 0),
    S64("WARP_SZ*2", 64),
    S64("(.s64)5U", 5),
    S64("-1<1U", 0),
    U64("5U", 5),
    U64("-1+0U", UINT64_MAX),
    U64("0xffffffffffffffff/2", INT64_MAX),
    U64("0xffffffffffffffff>>4", UINT64_C(0x0fffffffffffffff)),
    U64("(.u64)-1", UINT64_MAX),
    {"1.5+2.0*2.0", UINT64_C(0x4016000000000000), KILNI_PTX_IMMEDIATE_F64},
    {"-1.5", UINT64_C(0xbff8000000000000), KILNI_PTX_IMMEDIATE_F64},
    {"1.0/4.0", UINT64_C(0x3fd0000000000000), KILNI_PTX_IMMEDIATE_F64},
};

static void worth_what_c_would_say(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    char text[1024];
    snprintf(text, sizeof(text), "%smov.b64 %%rd1, %s;\nret;\n}",
             PTX_KERNEL_HEAD, kCases[i].text);
    kilni_image_ptx_module_t* m = ptx_read(text);
    const kilni_image_ptx_operand_t* o = ptx_operand(m, 0, 1);
    if (o->kind != KILNI_PTX_OPERAND_IMMEDIATE || o->value != kCases[i].value ||
        o->immediate != kCases[i].immediate) {
      fail_msg("%s is %llx of kind %u", kCases[i].text,
               (unsigned long long)o->value, o->immediate);
    }
    kilni_image_ptx_module_release(m);
  }
}

static void senseless_ones_are_refused(void** state) {
  (void)state;
  static const char* const kBad[] = {
      "1/0",
      "1 % 0",
      "1?2",
      "1?:2",
      "(1",
      "1)",
      "1+",
      "*2",
      "1.0&2.0",
      "1+1.0",
      "~1.0",
      "!1.0",
      "0f3F800000+0f3F800000",
      "-0f3F800000",
      "1.0?2:3",
      "1 2",
      "(.u32)5",
      "(.s64)1.0",
      "1 % 0U",
  };
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); i++) {
    char text[1024];
    snprintf(text, sizeof(text), "%smov.b64 %%rd1, %s;\nret;\n}",
             PTX_KERNEL_HEAD, kBad[i]);
    kiln_status_t status = ptx_refuse(text, NULL);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
    kiln_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(worth_what_c_would_say),
      cmocka_unit_test(senseless_ones_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
