// SPDX-License-Identifier: Apache-2.0
//
// library: what is found in texts: their CRC-32 and their lines, beside plain
// C.
#include "library_kit.h"

// ---- CRC-32 ----

static uint32_t plain_crc32(const uint8_t* text, uint64_t count) {
  uint32_t crc = UINT32_MAX;
  for (uint64_t i = 0; i < count; i++) {
    crc ^= text[i];
    for (int k = 0; k < 8; k++) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT32_C(0xedb88320) : 0);
    }
  }
  return ~crc;
}

static void crc32(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                  const uint8_t* text, uint32_t count, uint32_t want) {
  uint32_t have = 1;
  const kit_argument_t arguments[] = {{text, NULL, count}, {NULL, &have, 4}};
  kit_run(kit, plan, arguments, 2, NULL, 0);
  if (have != want) fail_msg("%u bytes: %x, should be %x", count, have, want);
}

// Behind the sizes: whole words and rows, and more than one tile.
static void test_crc32(void** state) {
  (void)state;
  static const uint32_t kMore[] = {4, 1026, 4095, 4096, 4097, 131072, 140001};
  enum { MORE = sizeof(kMore) / sizeof(kMore[0]), MOST = 140001 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "crc32", NULL);
  // The answer that every list of CRCs has.
  crc32(&kit, plan, (const uint8_t*)"123456789", 9, 0xcbf43926);
  uint8_t* text = kit_zeroes(MOST, 1);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < MOST; i++) text[i] = (uint8_t)kit_next(&seed);
  for (uint32_t s = 0; s < SIZES + MORE; s++) {
    uint32_t count = s < SIZES ? kSizes[s] : kMore[s - SIZES];
    crc32(&kit, plan, text, count, plain_crc32(text, count));
  }
  // Zeroes count too.
  memset(text, 0, MOST);
  crc32(&kit, plan, text, 33, plain_crc32(text, 33));
  crc32(&kit, plan, text, 34, plain_crc32(text, 34));
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// By few blocks, so that each has more than 32 rows, and in its other forms.
static void crc32_by(dispatch_kit_t* kit, const uint8_t* text, uint32_t count,
                     const kiln_program_define_t* defines, uint32_t want) {
  kiln_library_entry_t entry;
  assert_true(kiln_library_find("crc32", &entry));
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  options.defines = defines;
  options.define_count = 3;
  kiln_program_t* program = NULL;
  assert_null(kiln_program_parse(entry.text, &options, NULL, &program));
  kiln_pipeline_t* pipeline = NULL;
  assert_null(kiln_pipeline_create(kit->dispatcher, program, NULL, &pipeline));
  kiln_program_release(program);
  uint32_t have = 1;
  const kiln_binding_t bindings[] = {kiln_bind_host_in(text, count),
                                     kiln_bind_host_out(&have, 4)};
  kiln_pending_t* pending = NULL;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  kiln_pipeline_release(pipeline);
  assert_int_equal(have, want);
}

static void test_crc32_forms(void** state) {
  (void)state;
  static const kiln_program_define_t kForms[][3] = {
      {{"LOG", "8"}, {"BATCH", "32"}, {"BLOCKS", "2"}},
      {{"LOG", "7"}, {"BATCH", "16"}, {"BLOCKS", "1"}},
      {{"LOG", "10"}, {"BATCH", "8"}, {"BLOCKS", "2"}}};
  enum { COUNT = 300001 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  uint8_t* text = kit_zeroes(COUNT, 1);
  uint64_t seed = 6;
  for (uint32_t i = 0; i < COUNT; i++) text[i] = (uint8_t)kit_next(&seed);
  for (uint32_t i = 0; i < 3; i++) {
    for (uint32_t less = 0; less < 3; less++) {
      crc32_by(&kit, text, COUNT - less, kForms[i],
               plain_crc32(text, COUNT - less));
    }
  }
  free(text);
  dispatch_kit_close(&kit);
}

// ---- Lines ----

// One byte of `most` ends a line; the last one does if `ends`.
static void lines(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                  uint32_t count, uint32_t most, bool ends) {
  uint8_t* text = kit_zeroes(count, 1);
  uint32_t* want = kit_zeroes(count, 4);
  uint32_t* have = kit_zeroes(count, 4);
  uint64_t seed = count + most;
  uint32_t found = 0, told = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    text[i] = bits % most == 0 ? '\n' : (uint8_t)(bits >> 56 | 16);
    if (i + 1 == count) text[i] = ends ? '\n' : 'x';
    if (i == 0 || text[i - 1] == '\n') want[found++] = i;
  }
  const kit_argument_t arguments[] = {
      {text, NULL, count}, {NULL, have, count * UINT64_C(4)}, {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 3, NULL, 0);
  assert_int_equal(told, found);
  for (uint32_t k = 0; k < found; k++) assert_int_equal(have[k], want[k]);
  free(text);
  free(want);
  free(have);
}

static void test_lines(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = kSizes[SIZES - 1];
  kiln_library_plan_t* plan = kit_plan(&kit, "lines", &options);
  for (uint32_t s = 0; s < SIZES; s++) {
    lines(&kit, plan, kSizes[s], 40, false);
    lines(&kit, plan, kSizes[SIZES - 1 - s], 1, true);
    lines(&kit, plan, kSizes[s], 5000, true);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_crc32),
      cmocka_unit_test(test_crc32_forms),
      cmocka_unit_test(test_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
