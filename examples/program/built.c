// SPDX-License-Identifier: Apache-2.0
//
// examples: a program built by calls, where the kernel is not known beforehand:
// y = a + b x + c x^2 + ... of the numbers given. Prints it, and what it makes
// of 0 to 9.
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 10 };
static float y[N];
static char text[4096];

static void check(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  kiln_status_format(status, sizeof(text), text, NULL);
  fprintf(stderr, "%s\n", text);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

// No call between the first and the last can fail: finish tells what went
// wrong.
static kiln_program_t* build(int count, char** factors) {
  kiln_program_builder_t* b;
  kiln_program_t* program;
  check(kiln_program_builder_create("polynomial", NULL, &b));
  uint32_t out = kiln_program_builder_buffer(b, "y", KILN_PROGRAM_ROLE_OUT,
                                             KILN_PROGRAM_TYPE_F32);
  kiln_program_builder_work(b, kiln_program_builder_length(b, out), 0, 0);
  kiln_expr_t i = kiln_program_builder_let(
      b, "i", kiln_program_builder_id(b, KILN_PROGRAM_ID_GLOBAL_ID, 0));
  kiln_expr_t x = kiln_program_builder_let(
      b, "x", kiln_program_builder_cast(b, KILN_PROGRAM_TYPE_F32, i));
  kiln_expr_t sum = kiln_program_builder_f32(b, 0);
  while (count-- > 0) {
    float factor = strtof(factors[count], NULL);
    kiln_expr_t f = kiln_program_builder_f32(b, factor);
    sum = kiln_program_builder_fma(b, sum, x, f);
  }
  kiln_program_builder_store(b, out, i, sum);
  check(kiln_program_builder_finish(b, NULL, &program));
  kiln_program_builder_release(b);
  return program;
}

int main(int argc, char** argv) {
  kiln_program_t* program = build(argc - 1, argv + 1);
  check(kiln_program_print(program, sizeof(text), text, NULL));
  fputs(text, stdout);
  kiln_program_code_t* code;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  kiln_buffer_t* buffer;
  check(kiln_program_lower(program, NULL, &code));
  kiln_string_view_t ptx = kiln_program_code_text(code);
  kiln_bytes_view_t bytes = {(const uint8_t*)ptx.data, ptx.size};
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  check(kiln_runtime_create(NULL, &runtime));
  check(kiln_runtime_open_device(runtime, "auto", &device));
  check(kiln_module_load(device, bytes, NULL, NULL, &module));
  check(kiln_kernel_create(module, kiln_program_code_entry(code), &kernel));
  check(kiln_stream_create(device, NULL, &stream));
  check(kiln_buffer_create(device, sizeof(y), NULL, &buffer));
  // Of one buffer: its address, how long it is, and the work size.
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer), kiln_arg_u64(N),
                                 kiln_arg_u32(N)};
  kiln_program_launch_t shape;
  kiln_program_code_launch(code, &shape);
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = shape.block[0];
  kiln_program_code_grid(code, (const uint64_t[3]){N, 1, 1}, config.grid);
  check(kiln_kernel_launch(kernel, stream, &config, arguments,
                           kiln_program_code_parameter_count(code)));
  check(kiln_stream_synchronize(stream));
  check(kiln_buffer_read(buffer, 0, sizeof(y), y));
  for (int i = 0; i < N; i++) printf("%g ", (double)y[i]);
  kiln_buffer_release(buffer), kiln_stream_release(stream);
  kiln_kernel_release(kernel), kiln_module_release(module);
  kiln_device_release(device), kiln_runtime_release(runtime);
  kiln_program_code_release(code), kiln_program_release(program);
  return 0;
}
