// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as the text of a program. What reads prints, and what was
// printed reads as the same program and prints as the same bytes.
#include <stdlib.h>
#include <string.h>

#include "kiln/program.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static char* print(const kiln_program_t* program, size_t* out_size) {
  require(kiln_status_is_ok(kiln_program_print(program, 0, NULL, out_size)));
  char* text = malloc(*out_size + 1);
  require(text != NULL);
  require(kiln_status_is_ok(
      kiln_program_print(program, *out_size + 1, text, NULL)));
  return text;
}

static void check_refusal(const kiln_program_report_t* report,
                          kiln_status_t status, size_t size) {
  require(kiln_status_code(status) == KILN_STATUS_COMPILE_FAILED ||
          kiln_status_code(status) == KILN_STATUS_LIMIT_EXCEEDED);
  kiln_program_problem_t problem;
  for (uint32_t i = 0; kiln_program_report_problem(report, i, &problem); i++) {
    require(problem.line >= 1 && problem.column >= 1);
    require(problem.column <= size + 1 && problem.message[0] != 0);
    require(problem.fix[0] != 0);
  }
  kiln_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_string_view_t text = {(const char*)data, size};
  kiln_status_t status = kiln_program_parse(text, NULL, &report, &program);
  if (!kiln_status_is_ok(status)) {
    check_refusal(report, status, size);
    kiln_program_report_release(report);
    return 0;
  }
  size_t once_size, twice_size;
  char* once = print(program, &once_size);
  kiln_program_t* again;
  kiln_string_view_t printed = {once, once_size};
  status = kiln_program_parse(printed, NULL, NULL, &again);
  require(kiln_status_is_ok(status));
  char* twice = print(again, &twice_size);
  require(once_size == twice_size && memcmp(once, twice, once_size) == 0);
  char first[KILN_PROGRAM_HASH_BYTES], second[KILN_PROGRAM_HASH_BYTES];
  require(kiln_status_is_ok(kiln_program_hash(program, first)));
  require(kiln_status_is_ok(kiln_program_hash(again, second)));
  require(strcmp(first, second) == 0);
  free(once);
  free(twice);
  kiln_program_release(program);
  kiln_program_release(again);
  kiln_program_report_release(report);
  return 0;
}
