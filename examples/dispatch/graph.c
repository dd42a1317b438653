// SPDX-License-Identifier: Apache-2.0
//
// examples: a graph made by hand: a fill, two kernels that run side by side,
// and one that waits for both; launched often, with an argument that changes.
// Give a device, e.g. "soft", or none.
#include "example_check.h"

enum { N = 4096, RUNS = 3 };
static uint32_t got[N];
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    // x[first + i] += value
    ".visible .entry add(.param .u64 x, .param .u32 first,\n"
    "                    .param .u32 value)\n{\n"
    "  .reg .b32 %r<8>;\n  .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [x];\n  ld.param.u32 %r1, [value];\n"
    "  ld.param.u32 %r7, [first];\n  cvta.to.global.u64 %rd2, %rd1;\n"
    "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n"
    "  mov.u32 %r4, %tid.x;\n  mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "  add.u32 %r5, %r5, %r7;\n"
    "  mul.wide.u32 %rd3, %r5, 4;\n  add.s64 %rd2, %rd2, %rd3;\n"
    "  ld.global.u32 %r6, [%rd2];\n  add.u32 %r6, %r6, %r1;\n"
    "  st.global.u32 [%rd2], %r6;\n  ret;\n}\n";

enum { VALUE = 2 };  // the index of that parameter

// A launch of `add` on `count` elements from `first` on.
static kiln_launch_t* prepare(kiln_kernel_t* kernel, kiln_buffer_t* buffer,
                              uint32_t first, uint32_t count, uint32_t value) {
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer), kiln_arg_u32(first),
                                 kiln_arg_u32(value)};
  kiln_launch_t* launch;
  config.block[0] = 256;
  config.grid[0] = count / 256;
  check(kiln_launch_create(kernel, &config, &launch));
  check(kiln_launch_set_all(launch, arguments, 3));
  return launch;
}

int main(int argc, char** argv) {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  kiln_buffer_t* buffer;
  const char* label = argc > 1 ? argv[1] : "auto";
  kiln_bytes_view_t code = {(const uint8_t*)ptx, sizeof(ptx) - 1};
  check(kiln_runtime_create(NULL, &runtime));
  check(kiln_runtime_open_device(runtime, label, &device));
  check(kiln_module_load(device, code, NULL, NULL, &module));
  check(kiln_kernel_create(module, "add", &kernel));
  check(kiln_stream_create(device, NULL, &stream));
  check(kiln_buffer_create(device, sizeof(got), NULL, &buffer));

  kiln_launch_t* left = prepare(kernel, buffer, 0, N / 2, 1);
  kiln_launch_t* right = prepare(kernel, buffer, N / 2, N / 2, 2);
  kiln_launch_t* all = prepare(kernel, buffer, 0, N, 10);
  const kiln_graph_work_t zero = kiln_graph_work_fill(buffer, 0, N, 0, 4);
  const kiln_graph_work_t work[] = {kiln_graph_work_launch(left),
                                    kiln_graph_work_launch(right),
                                    kiln_graph_work_launch(all)};
  kiln_graph_t* graph;
  kiln_graph_node_t *filled, *halves[2], *last;
  check(kiln_graph_create(device, &graph));
  check(kiln_graph_add(graph, NULL, 0, &zero, &filled));
  check(kiln_graph_add(graph, &filled, 1, &work[0], &halves[0]));
  check(kiln_graph_add(graph, &filled, 1, &work[1], &halves[1]));
  check(kiln_graph_add(graph, halves, 2, &work[2], &last));

  kiln_graph_exec_t* exec;
  int wrong = 0;
  check(kiln_graph_exec_create(graph, NULL, &exec));
  for (uint32_t run = 0; run < RUNS; run++) {
    // The node's argument for the launches to come.
    check(kiln_launch_set(all, VALUE, kiln_arg_u32(10 * (run + 1))));
    check(kiln_graph_exec_set(exec, last, &work[2]));
    check(kiln_graph_exec_launch(exec, stream));
    check(kiln_stream_synchronize(stream));
    check(kiln_buffer_read(buffer, 0, sizeof(got), got));
    for (uint32_t i = 0; i < N; i++) {
      wrong += got[i] != (i < N / 2 ? 1 : 2) + 10 * (run + 1);
    }
  }
  printf("%d launches of 4 nodes on \"%s\", %d wrong\n", RUNS,
         kiln_device_name(device), wrong);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  kiln_launch_release(left);
  kiln_launch_release(right);
  kiln_launch_release(all);
  kiln_buffer_release(buffer);
  kiln_stream_release(stream);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return wrong != 0;
}
