// SPDX-License-Identifier: Apache-2.0
//
// library: all places of many patterns in a text, and the tables of their
// automaton, beside comparing all of them everywhere.
#include "library_kit.h"
#include "plain_bytes.h"
#include "test_tree.h"

enum { MOST = 100003, MATCHES = 300000, PATTERNS = 300 };

// Patterns, and their automaton. one-thread
typedef struct set_t {
  plain_bytes_pattern_t plain[PATTERNS];
  kiln_string_view_t views[PATTERNS];
  uint32_t count;
  kiln_library_patterns_t* made;
  kiln_library_patterns_tables_t tables;
} set_t;

static void add(set_t* set, const void* bytes, size_t size) {
  set->plain[set->count].bytes = bytes;
  set->plain[set->count].size = size;
  set->views[set->count].data = bytes;
  set->views[set->count++].size = size;
}

static void add_text(set_t* set, const char* text) {
  add(set, text, strlen(text));
}

static void finish(set_t* set) {
  assert_null(
      kiln_library_patterns_create(set->views, set->count, NULL, &set->made));
  kiln_library_patterns_tables(set->made, &set->tables);
}

static void search(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                   const set_t* set, const uint8_t* text, uint32_t count,
                   uint32_t most) {
  const kiln_library_patterns_tables_t* t = &set->tables;
  uint32_t* want[2] = {kit_zeroes(most, 4), kit_zeroes(most, 4)};
  uint32_t* have[2] = {kit_zeroes(most, 4), kit_zeroes(most, 4)};
  uint32_t told = 7;
  uint32_t found = plain_bytes_match(text, count, set->plain, set->count,
                                     want[0], want[1], most);
  const kit_argument_t arguments[] = {{text, NULL, count},
                                      {t->kinds, NULL, 256},
                                      {t->next, NULL, t->next_count * 4},
                                      {t->ends, NULL, t->end_count * 4},
                                      {t->patterns, NULL, t->pattern_count * 4},
                                      {NULL, have[0], most * UINT64_C(4)},
                                      {NULL, have[1], most * UINT64_C(4)},
                                      {NULL, &told, 4}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(t->longest),
                                    kiln_bind_u32(t->quiet)};
  kit_run(kit, plan, arguments, 8, scalars, 2);
  if (told != found) fail_msg("%u bytes: %u, should be %u", count, told, found);
  for (uint32_t k = 0; k < found && k < most; k++) {
    if (have[0][k] == want[0][k] && have[1][k] == want[1][k]) continue;
    fail_msg("%u bytes: match %u of %u is %u at %u, should be %u at %u", count,
             k, found, have[1][k], have[0][k], want[1][k], want[0][k]);
  }
  for (int i = 0; i < 2; i++) {
    free(want[i]);
    free(have[i]);
  }
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = MOST;
  return kit_plan(kit, "aho_corasick", &options);
}

static uint32_t read_file(const char* name, uint8_t* text) {
  char path[1024];
  FILE* file = fopen(test_tree_path(path, sizeof(path), name), "rb");
  assert_non_null(file);
  uint32_t count = (uint32_t)fread(text, 1, MOST, file);
  assert_true(count > 0);
  fclose(file);
  return count;
}

// Words in texts, one in the other, one twice; and chunks of a picture.
static void test_files(void** state) {
  (void)state;
  static const char* const kWords[] = {
      "the", "he",   "then",    "kernel",     "device",   "a",
      "\n",  "Kiln", "program", "IDAT",       "IEND",     "IHDR",
      "PNG", "the",  "e\n",     "kernels of", "\x89PNG\r"};
  static const char* const kFiles[] = {"README.md", "docs/guide/programs.md",
                                       "examples/pictures/cat.png",
                                       "tests/kernels/recorded.json"};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  set_t set = {.count = 0};
  for (size_t i = 0; i < sizeof(kWords) / sizeof(kWords[0]); i++) {
    add_text(&set, kWords[i]);
  }
  add(&set, "\0\0\0\x0dIHDR\0", 9);
  finish(&set);
  uint8_t* text = kit_zeroes(MOST, 1);
  for (uint32_t f = 0; f < 4; f++) {
    uint32_t count = read_file(kFiles[f], text);
    search(&kit, plan, &set, text, count, MATCHES);
    search(&kit, plan, &set, text, count, 3);
  }
  read_file("README.md", text);
  for (uint32_t s = 0; s < SIZES; s++) {
    search(&kit, plan, &set, text, kSizes[s] < 4000 ? kSizes[s] : 4000,
           MATCHES);
  }
  free(text);
  kiln_library_patterns_release(set.made);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Two letters, so that everything is the beginning of something; patterns that
// reach over several threads' bytes.
static void test_awkward(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint8_t* text = kit_zeroes(MOST, 1);
  uint64_t seed = 4;
  for (uint32_t i = 0; i < MOST; i++) text[i] = "ab"[kit_next(&seed) & 1];
  memset(text + 5000, 'a', 700);
  set_t set = {.count = 0};
  for (uint32_t i = 0; i < 100; i++) {
    uint64_t bits = kit_next(&seed);
    add(&set, text + bits % 5000, 3 + (bits >> 32) % 20);
  }
  add(&set, text + 4900, 300);
  add(&set, text + 5000, 400);
  add(&set, text + 5000, 1);
  finish(&set);
  for (uint32_t s = 0; s < SIZES; s++) {
    search(&kit, plan, &set, text, kSizes[s], MATCHES);
  }
  search(&kit, plan, &set, text + 4801, 1203, MATCHES);
  free(text);
  kiln_library_patterns_release(set.made);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Every byte is a pattern, and none is.
static void test_bytes(void** state) {
  (void)state;
  uint8_t bytes[256], text[1025];
  uint64_t seed = 6;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  set_t set = {.count = 0}, none = {.count = 0};
  for (uint32_t i = 0; i < 256; i++) {
    bytes[i] = (uint8_t)i;
    add(&set, &bytes[i], 1);
  }
  for (uint32_t i = 0; i < 1025; i++) text[i] = (uint8_t)kit_next(&seed);
  finish(&set);
  finish(&none);
  assert_int_equal(set.tables.next_count, 257 * 256);
  assert_int_equal(none.tables.next_count, 1);
  assert_int_equal(none.tables.longest, 0);
  search(&kit, plan, &set, text, 1025, MATCHES);
  search(&kit, plan, &none, text, 1025, MATCHES);
  kiln_library_patterns_release(set.made);
  kiln_library_patterns_release(none.made);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// One byte again and again, which ends something everywhere, and zeroes, which
// are what stands behind a text. As many states as have a table of their own,
// and one more.
static void test_dense(void** state) {
  (void)state;
  static const char kRun[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint8_t long_one[300];
  for (uint32_t i = 0; i < 300; i++) long_one[i] = (uint8_t)(i % 251);
  uint8_t* text = kit_zeroes(MOST, 1);
  // With "x" and "x\0" there are two states more, and the first one.
  for (uint32_t more = 251; more <= 255; more++) {
    for (uint32_t each = 1; each <= 3; each++) {
      set_t set = {.count = 0};
      add(&set, "x", 1);
      add(&set, "x\0", 2);
      if (each == 2) add(&set, kRun, 40);
      if (each == 3) add(&set, "x", 1);
      add(&set, long_one, more);
      finish(&set);
      uint64_t seed = more;
      for (uint32_t i = 0; i < 3000; i++) {
        uint64_t odds = kit_next(&seed) % 9;
        text[i] = odds < each * 2 ? 'x' : (uint8_t)(odds == 8 ? 0 : odds);
      }
      for (uint32_t count = 2000; count < 2040; count += each) {
        // Now and then it is the only one of its thread.
        if (count % 2 == 0) memset(text + count - 100, 'q', 99);
        text[count - 1] = 'x';
        search(&kit, plan, &set, text + count % 5, count - count % 5, MATCHES);
      }
      kiln_library_patterns_release(set.made);
    }
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Tables of any numbers: no access outside, and it comes to an end.
static void test_broken(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit);
  uint32_t numbers[64], told = 0, out[16];
  uint8_t kinds[256], text[500];
  uint64_t seed = 8;
  for (uint32_t round = 0; round < 50; round++) {
    for (uint32_t i = 0; i < 64; i++) {
      uint64_t bits = kit_next(&seed);
      numbers[i] = (uint32_t)(bits % 3 == 0 ? bits >> 40 : bits >> 58);
    }
    for (uint32_t i = 0; i < 500; i++) text[i] = (uint8_t)kit_next(&seed);
    for (uint32_t i = 0; i < 256; i++) kinds[i] = (uint8_t)kit_next(&seed);
    const kit_argument_t arguments[] = {
        {text, NULL, 500},         {kinds, NULL, 256},
        {numbers, NULL, 64 * 4},   {numbers + 7, NULL, 20 * 4},
        {numbers + 30, NULL, 120}, {NULL, out, 64},
        {NULL, out, 64},           {NULL, &told, 4}};
    const kiln_binding_t scalars[] = {kiln_bind_u32(numbers[3]),
                                      kiln_bind_u32(numbers[4])};
    kit_run(&kit, plan, arguments, 8, scalars, 2);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void refuse(const kiln_string_view_t* views, uint32_t count,
                   kiln_status_code_t code, const char* says_what) {
  kiln_library_patterns_t* made = NULL;
  kiln_status_t status =
      kiln_library_patterns_create(views, count, NULL, &made);
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(strstr(kiln_status_message(status), says_what));
  assert_null(made);
  kiln_status_free(status);
}

static void test_refused(void** state) {
  (void)state;
  enum { LONG = 1 << 23 };
  char* bytes = kit_zeroes(LONG, 1);
  for (uint32_t i = 0; i < LONG; i++) bytes[i] = (char)(i % 8);
  const kiln_string_view_t views[] = {{"a", 1}, {"", 0}};
  refuse(views, 2, KILN_STATUS_INVALID_ARGUMENT, "pattern 1 is empty");
  refuse(NULL, 1, KILN_STATUS_INVALID_ARGUMENT, "patterns");
  const kiln_string_view_t large[] = {{bytes, LONG}};
  refuse(large, 1, KILN_STATUS_LIMIT_EXCEEDED, "entries");
  // One byte a thousand times, at each of many states.
  enum { MANY = 1025, DEEP = 1 << 15 };
  memset(bytes, 'a', DEEP);
  kiln_string_view_t many[MANY];
  for (uint32_t i = 0; i < MANY; i++) {
    many[i].data = bytes;
    many[i].size = i == 0 ? DEEP : 1;
  }
  refuse(many, MANY, KILN_STATUS_LIMIT_EXCEEDED, "pairs");
  free(bytes);
  kiln_library_patterns_tables_t tables;
  kiln_library_patterns_tables(NULL, &tables);
  assert_null(tables.next);
  kiln_library_patterns_retain(NULL);
  kiln_library_patterns_release(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files),  cmocka_unit_test(test_awkward),
      cmocka_unit_test(test_bytes),  cmocka_unit_test(test_dense),
      cmocka_unit_test(test_broken), cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
