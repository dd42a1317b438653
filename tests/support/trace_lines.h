// SPDX-License-Identifier: Apache-2.0
//
// tests: what the tables' trace wrappers log, kept as text, and null tables
// that start anew for each test.
//
// Included behind cmocka.h, once a program.
#ifndef KILN_TESTS_TRACE_LINES_H
#define KILN_TESTS_TRACE_LINES_H

#include <stdio.h>
#include <string.h>

#include "table/cuda_table.h"

// What was logged, one line behind the other. one-thread
typedef struct log_t {
  char text[4096];
} log_t;

static void collect(kiln_log_level_t level, const char* module,
                    const char* line, void* user) {
  log_t* log = user;
  assert_int_equal(level, KILN_LOG_TRACE);
  assert_string_equal(module, "table");
  size_t used = strlen(log->text);
  snprintf(log->text + used, sizeof(log->text) - used, "%s\n", line);
}

static int fresh(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  return 0;
}

#endif
