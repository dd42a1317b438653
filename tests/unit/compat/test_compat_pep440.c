// SPDX-License-Identifier: Apache-2.0
//
// compat: versions and specifiers, as Python's `packaging` understands them.
//
// Reads what tools/pep440_cases.py recorded, or the file of the same form that
// is given as an argument.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/compat.h"
#include "test_tree.h"

static const char* cases_path;

// Undoes the escapes of a cell, in place.
static void unescape(char* text) {
  char* to = text;
  for (; *text != '\0'; text++) {
    if (*text == '\\') {
      text++;
      *to++ = *text == 't' ? '\t' : *text == 'n' ? '\n' : '\\';
    } else {
      *to++ = *text;
    }
  }
  *to = '\0';
}

static bool is_ok(kiln_status_t status) {
  bool ok = kiln_status_is_ok(status);
  if (!ok) {
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  }
  kiln_status_free(status);
  return ok;
}

static bool version_holds(char** cells) {
  char normal[256];
  bool is_pre;
  bool ok = is_ok(kiln_compat_version_normalize(cells[0], sizeof(normal),
                                                normal, NULL)) &&
            is_ok(kiln_compat_version_is_prerelease(cells[0], &is_pre));
  if (strcmp(cells[1], "-") == 0) {
    return !ok && !is_ok(kiln_compat_version_check(cells[0]));
  }
  return ok && strcmp(normal, cells[1]) == 0 && is_pre == (cells[2][0] == '1');
}

static bool order_holds(char** cells) {
  int32_t forth;
  int32_t back;
  return is_ok(kiln_compat_version_compare(cells[0], cells[1], &forth)) &&
         is_ok(kiln_compat_version_compare(cells[1], cells[0], &back)) &&
         forth == atoi(cells[2]) && back == -forth;
}

static bool spec_holds(char** cells) {
  static const uint32_t ways[] = {KILN_SWITCH_ON, KILN_SWITCH_OFF,
                                  KILN_SWITCH_DEFAULT};
  for (int i = 0; i < 3; i++) {
    bool admits;
    if (!is_ok(kiln_compat_spec_admits(cells[0], cells[1], ways[i], &admits)) ||
        admits != (cells[2 + i][0] == '1')) {
      return false;
    }
  }
  return true;
}

static bool row_holds(char kind, char** cells) {
  switch (kind) {
    case 'V':
      return version_holds(cells);
    case 'O':
      return order_holds(cells);
    case 'S':
      return spec_holds(cells);
    default: {
      bool admits;
      bool ok = is_ok(kiln_compat_spec_admits(cells[0], "1", 0, &admits));
      return ok == (cells[1][0] == '1');
    }
  }
}

static void as_packaging_says(void** state) {
  (void)state;
  FILE* file = fopen(cases_path, "r");
  assert_non_null(file);
  char line[4096];
  uint32_t rows = 0;
  uint32_t wrong = 0;
  while (fgets(line, sizeof(line), file) != NULL) {
    char shown[4096];
    memcpy(shown, line, sizeof(line));
    char none[1] = "";
    char* cells[6] = {none, none, none, none, none, none};
    char* at = line;
    at[strcspn(at, "\n")] = '\0';
    for (int i = 0; i < 6 && at != NULL; i++) {
      cells[i] = at;
      at = strchr(at, '\t');
      if (at != NULL) *at++ = '\0';
      unescape(cells[i]);
    }
    rows++;
    if (!row_holds(cells[0][0], cells + 1)) {
      wrong++;
      print_error("row %u: %s", (unsigned)rows, shown);
    }
  }
  fclose(file);
  print_message("%u rows\n", (unsigned)rows);
  assert_true(rows >= 100);
  assert_int_equal(wrong, 0);
}

int main(int argc, char** argv) {
  static char path[1024];
  cases_path = argc > 1 ? argv[1]
                        : test_tree_path(path, sizeof(path),
                                         "tests/unit/compat/pep440_cases.tsv");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_packaging_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
