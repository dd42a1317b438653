// SPDX-License-Identifier: Apache-2.0
//
// cli: fuzz target: PGM, PPM and PNG pictures.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_png.h"
#include "cli/cli_pnm.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check_pnm(const kilni_cli_array_t* array) {
  kilni_cli_array_t back;
  kilni_cli_buffer_t file = {0};
  kilni_cli_error_t error;
  if (!kilni_cli_pnm_write(array, array->shape.rank == 2, &file, &error) ||
      !kilni_cli_pnm_read(file.data, file.size, &back, &error) ||
      memcmp(&array->shape, &back.shape, sizeof(back.shape)) != 0 ||
      memcmp(array->data.data, back.data.data, back.data.size) != 0) {
    abort();
  }
  kilni_cli_array_deinit(&back);
  kilni_cli_buffer_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kilni_cli_array_t array;
  kilni_cli_error_t error;
  if (kilni_cli_pnm_read(data, size, &array, &error)) {
    check_pnm(&array);
    kilni_cli_array_deinit(&array);
  }
  if (kilni_cli_png_read(data, size, &array, &error)) {
    kilni_cli_array_deinit(&array);
  }
  return 0;
}
