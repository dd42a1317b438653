// SPDX-License-Identifier: Apache-2.0
//
// examples: from a kernel to its result. Give a device, e.g. "soft", or none.
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include "scale_kernel.h"

enum { N = 100000 };
static float x[N];
static char text[4096];

static void check(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  kiln_status_format(status, sizeof(text), text, NULL);
  fprintf(stderr, "%s\n", text);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

int main(int argc, char** argv) {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  check(kiln_runtime_create(NULL, &runtime));
  check(kiln_runtime_open_device(runtime, argv[1] ? argv[1] : "auto", &device));
  kiln_compiler_t* nvrtc;  // where there is none, the PTX is taken as shipped
  kiln_compile_result_t* result = NULL;
  kiln_status_free(kiln_runtime_open_compiler(runtime, NULL, &nvrtc));
  kiln_bytes_view_t code = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_string_view_t source = {kCuda, sizeof(kCuda) - 1};
  if (nvrtc) check(kiln_compiler_compile(nvrtc, source, NULL, &result));
  if (nvrtc) code = kiln_code_bytes(kiln_compile_result_code(result));
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  kiln_buffer_t* buffer;
  check(kiln_module_load(device, code, NULL, NULL, &module));
  check(kiln_kernel_create(module, "scale", &kernel));
  check(kiln_stream_create(device, NULL, &stream));
  check(kiln_buffer_create(device, sizeof(x), NULL, &buffer));
  for (int i = 0; i < N; i++) x[i] = (float)i;
  check(kiln_buffer_write(buffer, 0, sizeof(x), x));
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer), kiln_arg_f32(2),
                                 kiln_arg_i32(N)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 256, config.grid[0] = (N + 255) / 256;
  check(kiln_kernel_launch(kernel, stream, &config, arguments, 3));
  check(kiln_stream_synchronize(stream));
  check(kiln_buffer_read(buffer, 0, sizeof(x), x));
  printf("%s kernel on \"%s\" %s\n", nvrtc ? "compiled" : "shipped",
         kiln_device_name(device), kiln_device_note(device));
  int wrong = argc > 2;
  for (int i = 0; i < N; i++) wrong += x[i] != 2 * (float)i;
  printf("%d values, %d wrong\n", N, wrong);
  kiln_buffer_release(buffer), kiln_stream_release(stream);
  kiln_kernel_release(kernel), kiln_module_release(module);
  kiln_compile_result_release(result), kiln_compiler_release(nvrtc);
  kiln_device_release(device), kiln_runtime_release(runtime);
  return wrong != 0;
}
