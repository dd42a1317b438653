// SPDX-License-Identifier: Apache-2.0
//
// cli: fuzz target: values, shapes, assignments and GPU lists of the command
// line.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_literal.h"
#include "cli/cli_visible.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char text[512];
  if (size >= sizeof(text)) return 0;
  if (size != 0) memcpy(text, data, size);
  text[size] = 0;
  kilni_cli_error_t error;
  kilni_cli_value_t value;
  kilni_cli_spec_t spec;
  uint32_t dims[3];
  size_t name_size;
  const char* rest;
  char visible[KILNI_CLI_VISIBLE_MAX];
  if (kilni_cli_value_parse(text, &value, &error) && !value.is_length &&
      value.scalar.bytes < 8 && value.scalar.bits >> (value.scalar.bytes * 8)) {
    abort();
  }
  // Without a type of its own, as a number of a program.
  kilni_cli_scalar_t scalar;
  for (int type = KILNI_CLI_TYPE_BOOL; type <= KILNI_CLI_TYPE_F64; type++) {
    if (kilni_cli_value_parse_as(text, (kilni_cli_type_t)type, &scalar,
                                 &error) &&
        (kilni_cli_value_is_typed(text) ||
         scalar.type != (kilni_cli_type_t)type)) {
      abort();
    }
  }
  if (kilni_cli_spec_parse(text, &spec, &error) &&
      (spec.path_size > strlen(text) || spec.shape.rank > KILNI_CLI_MAX_RANK)) {
    abort();
  }
  (void)kilni_cli_dims_parse("grid", text, dims, &error);
  if (kilni_cli_split_assignment("in", text, &name_size, &rest, &error)) {
    (void)kilni_cli_spec_parse(rest, &spec, &error);
  }
  kilni_cli_buffer_t bytes = {0};
  if (kilni_cli_struct_parse(text, &bytes, &error) &&
      (bytes.size == 0 || bytes.size > KILNI_CLI_MAX_STRUCT_BYTES)) {
    abort();
  }
  kilni_cli_buffer_deinit(&bytes);
  (void)kilni_cli_visible_compose(text, 1, visible, &error);
  return 0;
}
