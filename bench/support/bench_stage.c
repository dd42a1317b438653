// SPDX-License-Identifier: Apache-2.0
//
// bench: a runtime with a device, over a driver or over a table that does
// nothing.
#include "bench_stage.h"

#include <stdio.h>
#include <string.h>

#include "bench_check.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

void bench_stage_init(bench_stage_t* stage) {
  memset(stage, 0, sizeof(*stage));
  kilni_table_cuda_table_null(&stage->stub);
}

// Where the driver's own calls are taken from: below every wrapper.
static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  bench_stage_t* stage = user;
  stage->raw = *inout_table;
  return kiln_ok();
}

bool bench_stage_open(bench_stage_t* stage, const char* device) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kilni_runtime_hooks_t hooks = {0};
  stage->allocator = bench_counting_allocator(&stage->allocations);
  options.allocator = &stage->allocator;
  hooks.wrap = keep_table;
  hooks.user = stage;
  if (device == NULL) hooks.cuda_table = &stage->stub;
  bench_expect(kilni_runtime_create_with(&options, &hooks, &stage->runtime));
  kiln_status_t status = kiln_runtime_open_device(
      stage->runtime, device != NULL ? device : "cuda:0", &stage->device);
  if (!kiln_status_is_ok(status)) {
    printf("no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(stage->runtime);
    return false;
  }
  bench_need(stage->raw.cuCtxSetCurrent(kiln_device_context(stage->device)) ==
                 KILN_CU_SUCCESS,
             "the context cannot be made current");
  return true;
}

void bench_stage_close(bench_stage_t* stage) {
  (void)stage->raw.cuCtxSetCurrent(NULL);
  kiln_device_release(stage->device);
  kiln_runtime_release(stage->runtime);
}
