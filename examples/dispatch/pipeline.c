// SPDX-License-Identifier: Apache-2.0
//
// examples: a pipeline: a program that is checked and loaded once and then
// dispatched by parameter, here straight from and to host memory. Give a
// device, e.g. "soft", or none.
#include "example_check.h"

enum { N = 1000 };
static float x[N], y[N];
static const char text[] =
    "program saxpy(a: f32, x: in f32[], y: inout f32[length(x)])\n"
    "    work length(x) {\n"
    "  y[global_id.x] = fma(a, x[global_id.x], y[global_id.x]);\n"
    "}\n";

int main(int argc, char** argv) {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  kiln_program_t* program;
  kiln_pipeline_t* saxpy;
  const char* label = argc > 1 ? argv[1] : "auto";
  check(kiln_runtime_create(NULL, &runtime));
  check(kiln_runtime_open_device(runtime, label, &device));
  check(kiln_dispatcher_create(device, NULL, &dispatcher));

  kiln_string_view_t view = {text, sizeof(text) - 1};
  check(kiln_program_parse(view, NULL, NULL, &program));
  check(kiln_pipeline_create(dispatcher, program, NULL, &saxpy));

  // One binding for each parameter, in their order. Lengths and the number of
  // threads follow from what is bound.
  const kiln_binding_t bindings[] = {
      kiln_bind_f32(2),
      kiln_bind_host_in(x, sizeof(x)),
      kiln_bind_host_inout(y, sizeof(y)),
  };
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  // The pending is done when the results are in `y`.
  kiln_pending_t* pending;
  check(kiln_pipeline_dispatch(saxpy, NULL, bindings, 3, NULL, &pending));
  check(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);

  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += y[i] != 2 * (float)i + 1;
  printf("%d values on \"%s\", %d wrong\n", N, kiln_device_name(device), wrong);
  kiln_pipeline_release(saxpy);
  kiln_program_release(program);
  kiln_dispatcher_release(dispatcher);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return wrong != 0;
}
