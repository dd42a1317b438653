// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as the canonical form of a program. What reads is written as
// the same bytes, and its text is the same program.
#include <stdlib.h>
#include <string.h>

#include "kiln/program.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void check_bytes(const kiln_program_t* program, const uint8_t* data,
                        size_t size) {
  size_t own;
  require(kiln_status_is_ok(kiln_program_canonical(program, 0, NULL, &own)));
  require(own == size);
  uint8_t* bytes = malloc(own);
  require(bytes != NULL);
  require(kiln_status_is_ok(kiln_program_canonical(program, own, bytes, NULL)));
  require(memcmp(bytes, data, size) == 0);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_program_t* program;
  kiln_status_t status = kiln_program_read_canonical(
      (kiln_bytes_view_t){data, size}, NULL, &program);
  if (!kiln_status_is_ok(status)) {
    require(kiln_status_code(status) == KILN_STATUS_BAD_DATA ||
            kiln_status_code(status) == KILN_STATUS_LIMIT_EXCEEDED);
    require(kiln_status_fix(status) != NULL);
    kiln_status_free(status);
    return 0;
  }
  check_bytes(program, data, size);
  size_t length;
  require(kiln_status_is_ok(kiln_program_print(program, 0, NULL, &length)));
  char* text = malloc(length + 1);
  require(text != NULL);
  require(
      kiln_status_is_ok(kiln_program_print(program, length + 1, text, NULL)));
  kiln_program_t* again;
  kiln_string_view_t view = {text, length};
  require(kiln_status_is_ok(kiln_program_parse(view, NULL, NULL, &again)));
  check_bytes(again, data, size);
  free(text);
  kiln_program_release(program);
  kiln_program_release(again);
  return 0;
}
