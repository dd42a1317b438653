// SPDX-License-Identifier: Apache-2.0
//
// cli: fuzz target: numpy's format; what is read must be written and read the
// same.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_npy.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kilni_cli_array_t array, back;
  kilni_cli_buffer_t file = {0};
  kilni_cli_error_t error;
  if (!kilni_cli_npy_read(data, size, &array, &error)) return 0;
  if (!kilni_cli_npy_write(&array, &file, &error) ||
      !kilni_cli_npy_read(file.data, file.size, &back, &error) ||
      memcmp(&array.shape, &back.shape, sizeof(array.shape)) != 0 ||
      memcmp(array.data.data, back.data.data, array.data.size) != 0) {
    abort();
  }
  kilni_cli_array_deinit(&back);
  kilni_cli_buffer_deinit(&file);
  kilni_cli_array_deinit(&array);
  return 0;
}
