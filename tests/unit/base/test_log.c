// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the log sink.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log_line.h"

typedef struct heard_t {
  int count;
  kiln_log_level_t level;
  char module[16];
  char line[4096];
} heard_t;

static void hear(kiln_log_level_t level, const char* module, const char* line,
                 void* user) {
  heard_t* heard = user;
  heard->count++;
  heard->level = level;
  snprintf(heard->module, sizeof(heard->module), "%s", module);
  snprintf(heard->line, sizeof(heard->line), "%s", line);
}

static void without_a_sink_it_is_silent(void** state) {
  (void)state;
  kiln_log_sink_t none = {0};
  assert_false(kilni_base_log_wants(NULL, KILN_LOG_WARNING));
  assert_false(kilni_base_log_wants(&none, KILN_LOG_WARNING));
  KILNI_LOG(&none, WARNING, "nobody %s", "hears");
}

static void a_line_arrives_whole(void** state) {
  (void)state;
  heard_t heard = {0};
  kiln_log_sink_t sink = {.fn = hear, .user = &heard};
  KILNI_LOG(&sink, WARNING, "%d of %s", 3, "these");
  assert_int_equal(heard.count, 1);
  assert_int_equal(heard.level, KILN_LOG_WARNING);
  assert_string_equal(heard.module, "test");
  assert_string_equal(heard.line, "3 of these");
}

static void the_level_decides(void** state) {
  (void)state;
  heard_t heard = {0};
  kiln_log_sink_t sink = {.fn = hear, .user = &heard};
  KILNI_LOG(&sink, INFO, "too much for the default");
  assert_int_equal(heard.count, 0);
  sink.max_level = KILN_LOG_DEBUG;
  KILNI_LOG(&sink, INFO, "in");
  KILNI_LOG(&sink, DEBUG, "in");
  KILNI_LOG(&sink, TRACE, "out");
  assert_int_equal(heard.count, 2);
}

static void a_long_line_is_cut(void** state) {
  (void)state;
  heard_t heard = {0};
  kiln_log_sink_t sink = {.fn = hear, .user = &heard};
  KILNI_LOG(&sink, WARNING, "%5000s", "x");
  assert_int_equal(strlen(heard.line), 2047);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_sink_it_is_silent),
      cmocka_unit_test(a_line_arrives_whole),
      cmocka_unit_test(the_level_decides),
      cmocka_unit_test(a_long_line_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
