// SPDX-License-Identifier: Apache-2.0
//
// examples: a program of Kiln's language inside a program in C: read, lowered,
// loaded, launched. Give a device, e.g. "soft", or none.
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, AMOUNT = 60 };
static uint8_t data[N];
static char message[4096];
static const char text[] =
    "program brighter(picture: in u8[], result: out u8[length(picture)],\n"
    "    amount: u8) work length(picture) {\n"
    "  result[global_id.x] = add_sat(picture[global_id.x], amount);\n"
    "}\n";

static void check(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  kiln_status_format(status, sizeof(message), message, NULL);
  fprintf(stderr, "%s\n", message);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

int main(int argc, char** argv) {
  (void)argc;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  check(kiln_runtime_create(NULL, &runtime));
  check(
      kiln_runtime_open_device(runtime, argc > 1 ? argv[1] : "auto", &device));
  kiln_string_view_t view = {text, sizeof(text) - 1};
  kiln_program_t* program;
  kiln_program_code_t* code;  // PTX for this device
  check(kiln_program_parse(view, NULL, NULL, &program));
  const kiln_device_info_t* info = kiln_device_info(device);
  kiln_program_lower_options_t how = kiln_program_lower_options_default();
  how.sm = info->compute_major * 10 + info->compute_minor;
  how.newest_isa = kiln_compat_line_ptx_isa(info->driver_version);
  check(kiln_program_lower(program, &how, &code));
  kiln_string_view_t ptx = kiln_program_code_text(code);
  kiln_bytes_view_t bytes = {(const uint8_t*)ptx.data, ptx.size};
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  check(kiln_module_load(device, bytes, NULL, NULL, &module));
  check(kiln_kernel_create(module, kiln_program_code_entry(code), &kernel));
  check(kiln_stream_create(device, NULL, &stream));
  kiln_buffer_t *picture, *result;
  for (int i = 0; i < N; i++) data[i] = (uint8_t)i;
  check(kiln_buffer_create(device, N, NULL, &picture));
  check(kiln_buffer_create(device, N, NULL, &result));
  check(kiln_buffer_write(picture, 0, N, data));
  // The kernel says itself what it takes, and in which order.
  const uint8_t amount = AMOUNT;
  kiln_argument_t arguments[8];
  kiln_program_parameter_t p;
  uint32_t count = 0;
  for (; kiln_program_code_parameter(code, count, &p); count++) {
    arguments[count] =
        p.kind == KILN_PROGRAM_PARAMETER_ADDRESS
            ? kiln_arg_buffer(p.index == 0 ? picture : result)
        : p.kind == KILN_PROGRAM_PARAMETER_LENGTH ? kiln_arg_u64(N)
        : p.kind == KILN_PROGRAM_PARAMETER_SCALAR ? kiln_arg_bytes(&amount, 1)
                                                  : kiln_arg_u32(N);  // work
  }
  kiln_program_launch_t shape;
  kiln_program_code_launch(code, &shape);
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = shape.block[0];
  kiln_program_code_grid(code, (const uint64_t[3]){N, 1, 1}, config.grid);
  check(kiln_kernel_launch(kernel, stream, &config, arguments, count));
  check(kiln_stream_synchronize(stream));
  check(kiln_buffer_read(result, 0, N, data));
  int wrong = 0;
  for (int i = 0; i < N; i++) {
    wrong += data[i] != (i % 256 > 255 - AMOUNT ? 255 : i % 256 + AMOUNT);
  }
  printf("%d values on \"%s\", %d wrong\n", N, kiln_device_name(device), wrong);
  kiln_buffer_release(picture), kiln_buffer_release(result);
  kiln_stream_release(stream), kiln_kernel_release(kernel);
  kiln_module_release(module), kiln_program_code_release(code);
  kiln_program_release(program);
  kiln_device_release(device), kiln_runtime_release(runtime);
  return wrong != 0;
}
