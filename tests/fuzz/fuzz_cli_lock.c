// SPDX-License-Identifier: Apache-2.0
//
// cli: fuzz target: lock files. What is read differs from itself in nothing,
// and is read the same after it was written.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config_lock_text.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void expect_empty(json_t* list) {
  if (list == NULL || json_array_size(list) != 0) abort();
  json_decref(list);
}

static void expect_same(const json_t* a, const json_t* b) {
  expect_empty(kilni_cli_config_lock_differences(json_object_get(a, "items"),
                                                 json_object_get(b, "items")));
  expect_empty(kilni_cli_config_lock_variables(
      json_object_get(a, "environment"), json_object_get(b, "environment")));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kilni_cli_error_t error = {0};
  json_t* lock = NULL;
  json_t* back = NULL;
  if (!kilni_cli_config_lock_parse((const char*)data, size, "fuzz", &lock,
                                   &error)) {
    if (lock != NULL || error.message[0] == 0 || error.fix[0] == 0) abort();
    return 0;
  }
  char* text = json_dumps(lock, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
  if (text == NULL ||
      !kilni_cli_config_lock_parse(text, strlen(text), "fuzz", &back, &error)) {
    abort();
  }
  expect_same(lock, back);
  free(text);
  json_decref(back);
  json_decref(lock);
  return 0;
}
