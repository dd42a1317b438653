// SPDX-License-Identifier: Apache-2.0
//
// tests: what is done with the results of links, and with lists of libraries.
#include "linking_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool linking_ok(kiln_status_t status, const char* what) {
  if (kiln_status_is_ok(status)) return true;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("  %s: %s\n", what, text);
  kiln_status_free(status);
  return false;
}

bool linking_runs(kiln_runtime_t* runtime, const kiln_code_t* code) {
  int got[32] = {0};
  kiln_device_t* device = NULL;
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* buffer = NULL;
  bool done =
      linking_ok(kiln_runtime_open_device(runtime, "soft", &device), "soft") &&
      linking_ok(
          kiln_module_load(device, kiln_code_bytes(code), NULL, NULL, &module),
          "load") &&
      linking_ok(kiln_kernel_create(module, "k", &kernel), "kernel") &&
      linking_ok(kiln_stream_create(device, NULL, &stream), "stream") &&
      linking_ok(kiln_buffer_create(device, sizeof(got), NULL, &buffer),
                 "buffer");
  if (done) {
    kiln_argument_t arguments[] = {kiln_arg_buffer(buffer)};
    kiln_launch_config_t config = kiln_launch_config_default();
    config.block[0] = 32;
    done = linking_ok(kiln_kernel_launch(kernel, stream, &config, arguments, 1),
                      "launch") &&
           linking_ok(kiln_stream_synchronize(stream), "wait") &&
           linking_ok(kiln_buffer_read(buffer, 0, sizeof(got), got), "read");
  }
  for (int i = 0; i < 32 && done; i++) done = got[i] == 2 * i + 40;
  kiln_buffer_release(buffer);
  kiln_stream_release(stream);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  kiln_device_release(device);
  return done;
}

bool linking_has_kernel(const kiln_code_t* code) {
  kiln_image_t* image = NULL;
  uint32_t index = 0;
  if (!linking_ok(kiln_image_create(kiln_code_bytes(code), NULL, &image),
                  "read")) {
    return false;
  }
  kiln_status_t status = kiln_image_kernel_find(image, "k", &index);
  bool has = kiln_status_is_ok(status);
  kiln_status_free(status);
  kiln_image_release(image);
  return has;
}

size_t linking_split(const char* variable, char* copy, size_t space,
                     const char** out, size_t most) {
  const char* text = getenv(variable);
  size_t count = 0;
  out[0] = NULL;
  if (text == NULL) return 1;  // the machine's own
  snprintf(copy, space, "%s", text);
  for (char* part = strtok(copy, ":"); part != NULL && count < most;
       part = strtok(NULL, ":")) {
    out[count++] = part;
  }
  return count;
}
