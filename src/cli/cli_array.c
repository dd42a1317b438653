// SPDX-License-Identifier: Apache-2.0
//
// cli: element types, shapes and arrays.
#include "cli/cli_array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const kilni_cli_type_info_t kTypes[KILNI_CLI_TYPE_COUNT] = {
    {"none", 1, 'n', NULL},
#define TYPE_ROW(name, text, bytes, kind, numpy) {text, bytes, kind, numpy},
    KILNI_CLI_TYPES(TYPE_ROW)
#undef TYPE_ROW
};

const kilni_cli_type_info_t* kilni_cli_type_info(kilni_cli_type_t type) {
  return &kTypes[type < KILNI_CLI_TYPE_COUNT ? type : KILNI_CLI_TYPE_NONE];
}

kilni_cli_type_t kilni_cli_type_find(const char* text, size_t size) {
  for (int i = 1; i < KILNI_CLI_TYPE_COUNT; i++) {
    if (strlen(kTypes[i].text) == size &&
        memcmp(kTypes[i].text, text, size) == 0) {
      return (kilni_cli_type_t)i;
    }
  }
  return KILNI_CLI_TYPE_NONE;
}

const char* kilni_cli_type_names(void) {
#define TYPE_WORD(name, text, bytes, kind, numpy) " " text
  return &KILNI_CLI_TYPES(TYPE_WORD)[1];
#undef TYPE_WORD
}

bool kilni_cli_shape_finish(kilni_cli_shape_t* shape,
                            kilni_cli_error_t* error) {
  uint64_t size = kTypes[shape->type].bytes;
  uint64_t limit = KILNI_CLI_MAX_DATA_BYTES / size;
  uint64_t count = 1;
  for (uint32_t i = 0; i < shape->rank; i++) {
    if (shape->dims[i] == 0) count = 0;
  }
  for (uint32_t i = 0; i < shape->rank && count != 0; i++) {
    if (shape->dims[i] > limit / count) {
      return kilni_cli_fail(
          error, KILN_STATUS_LIMIT_EXCEEDED, "work on a part of the data",
          "a buffer of more than %" PRIu64 " bytes", KILNI_CLI_MAX_DATA_BYTES);
    }
    count *= shape->dims[i];
  }
  shape->count = count;
  shape->bytes = count * size;
  return true;
}

void kilni_cli_shape_text(const kilni_cli_shape_t* shape, char* out,
                          size_t capacity) {
  char text[256];
  int used = snprintf(text, sizeof(text), "%s[", kTypes[shape->type].text);
  for (uint32_t i = 0; i < shape->rank; i++) {
    used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%" PRIu64,
                     i == 0 ? "" : ",", shape->dims[i]);
  }
  (void)snprintf(out, capacity, "%s]", text);
}

void kilni_cli_array_deinit(kilni_cli_array_t* array) {
  kilni_cli_buffer_deinit(&array->data);
  memset(&array->shape, 0, sizeof(array->shape));
}
