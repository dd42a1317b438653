// SPDX-License-Identifier: Apache-2.0
//
// library: where the tokens of a JSON text begin, beside plain C.
#include "library_kit.h"
#include "plain_bytes.h"
#include "test_tree.h"

enum { MOST = 1000003 / KIT_LESS };

// Two runs: what the first leaves in the plan's memory is nothing to the
// second.
static void index_of(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     const uint8_t* text, uint32_t count) {
  uint32_t* want = kit_zeroes(count, 4);
  uint32_t* have = kit_zeroes(count, 4);
  uint32_t open = 0, told[2] = {7, 7};
  uint32_t found = plain_bytes_json(text, count, want, &open);
  const kit_argument_t arguments[] = {
      {text, NULL, count}, {NULL, have, count * UINT64_C(4)}, {NULL, told, 8}};
  for (int again = 0; again < 2; again++) {
    kit_run(kit, plan, arguments, 3, NULL, 0);
    if (told[0] != found || told[1] != open) {
      fail_msg("%u bytes: %u tokens, %u; should be %u, %u", count, told[0],
               told[1], found, open);
    }
    for (uint32_t k = 0; k < found; k++) {
      if (have[k] == want[k]) continue;
      fail_msg("%u bytes: token %u of %u at %u, should be %u", count, k, found,
               have[k], want[k]);
    }
  }
  free(want);
  free(have);
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = MOST;
  return kit_plan(kit, "json_index", &options);
}

static void test_generated(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint8_t* text = kit_zeroes(MOST, 1);
  plain_bytes_write_json(text, MOST, 1);
  index_of(&kit, plan, text, MOST);
  for (uint32_t s = 0; s < SIZES; s++) {
    index_of(&kit, plan, text, kSizes[s]);
    // From the middle of something, which makes strings of what is between.
    index_of(&kit, plan, text + 13 + s, kSizes[s]);
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Bytes that mean something, in any order: quotes behind all numbers of
// backslashes, at all places of words, threads, rows and tiles.
static void test_awkward(void** state) {
  (void)state;
  static const char kBytes[] = "\\\\\\\\\"\"{}[]:,  \n\ta1-\x01\x7f\xff\xa2";
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint8_t* text = kit_zeroes(MOST, 1);
  uint64_t seed = 9;
  for (uint32_t i = 0; i < MOST; i++) {
    text[i] = (uint8_t)kBytes[kit_next(&seed) % (sizeof(kBytes) - 1)];
  }
  index_of(&kit, plan, text, MOST);
  for (uint32_t s = 0; s < SIZES; s++) {
    index_of(&kit, plan, text, kSizes[s]);
  }
  for (uint32_t from = 1; from < 40; from++) {
    index_of(&kit, plan, text + from, 1000 + 31 * from);
  }
  // Quotes are rare, so that tiles are inside of strings from end to end.
  for (uint32_t i = 0; i < MOST; i++) {
    if (text[i] == '"' && kit_next(&seed) % 9000 != 0) text[i] = ',';
  }
  index_of(&kit, plan, text, MOST);
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Rows of backslashes that are longer than threads, rows and tiles.
static void test_backslashes(void** state) {
  (void)state;
  static const uint32_t kRows[] = {31,    32,    33,    1023,  1024,
                                   16383, 16384, 16385, 32800, 70001};
  enum { ROWS = sizeof(kRows) / sizeof(kRows[0]), ALL = 100003 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint8_t* text = kit_zeroes(ALL, 1);
  for (uint32_t r = 0; r < ROWS; r++) {
    for (uint32_t shift = 0; shift < 3; shift++) {
      memset(text, '\\', ALL);
      for (uint32_t i = shift; i < ALL; i += kRows[r] + 1) text[i] = '"';
      index_of(&kit, plan, text, ALL / KIT_LESS);
    }
  }
  static const char kSame[] = "\\\" {a";
  for (uint32_t k = 0; k < 5; k++) {
    memset(text, kSame[k], ALL);
    index_of(&kit, plan, text, ALL / KIT_LESS);
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void test_files(void** state) {
  (void)state;
  static const char* const kFiles[] = {"tests/kernels/recorded.json",
                                       "CMakePresets.json", "README.md",
                                       "examples/pictures/cat.png"};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint8_t* text = kit_zeroes(MOST, 1);
  for (uint32_t i = 0; i < 4; i++) {
    char path[1024];
    FILE* file = fopen(test_tree_path(path, sizeof(path), kFiles[i]), "rb");
    assert_non_null(file);
    uint32_t count = (uint32_t)fread(text, 1, MOST, file);
    assert_true(count > 0);
    fclose(file);
    index_of(&kit, plan, text, count);
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_generated),
      cmocka_unit_test(test_awkward),
      cmocka_unit_test(test_backslashes),
      cmocka_unit_test(test_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
