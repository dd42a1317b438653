// SPDX-License-Identifier: Apache-2.0
//
// dispatch: a dispatcher on the software device, under an allocator that
// watches, and programs to make pipelines of.
#ifndef KILN_TESTS_UNIT_DISPATCH_DISPATCH_KIT_H_
#define KILN_TESTS_UNIT_DISPATCH_DISPATCH_KIT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "fault_alloc.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/table.h"
#include "says.h"

// y = a x + y, elementwise.
static const char kSaxpy[] =
    "program saxpy(a: f32, x: in f32[], y: inout f32[length(x)])\n"
    "  work length(x)\n"
    "{ let i = global_id.x; y[i] = fma(a, x[i], y[i]); }\n";

// Writes the even elements alone; the others are zero, as outputs begin.
static const char kEven[] =
    "program even(n: u32, y: out u32[n]) work n\n"
    "{ let i = global_id.x; if i % 2u32 == 0u32 { y[i] = i + 1u32; } }\n";

// z = x + y of four buffers, one of them a uniform.
static const char kFour[] =
    "program four(x: in u32[], y: in u32[length(x)], k: uniform u32[1],\n"
    "             z: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; z[i] = x[i] + y[i] * k[0]; }\n";

// Traps where an element is 7: with tag 3 and the element's index.
static const char kTrapping[] =
    "program trapping(x: in u32[], y: out u32[length(x)]) work length(x)\n"
    "{ let i = global_id.x; if x[i] == 7u32 { trap(3, u64(i)); }\n"
    "  y[i] = x[i]; }\n";

// Every thread sees what all blocks have written.
static const char kMeeting[] =
    "program meeting(x: inout u32[], y: out u32[length(x)])\n"
    "  work length(x) block 32\n"
    "{ let i = global_id.x; x[i] = i; grid_barrier;\n"
    "  y[i] = x[length(x) - 1u32 - i]; }\n";

// Its work size is said by each dispatch.
static const char kOpen[] =
    "program open(y: inout u32[]) block 32\n"
    "{ let i = global_id.x; y[i] = y[i] + 1u32; }\n";

// x = x * 2 + 1, forever dependent on itself.
static const char kStep[] =
    "program step(x: inout u32[]) work length(x)\n"
    "{ let i = global_id.x; x[i] = x[i] * 2u32 + 1u32; }\n";

// One-thread.
typedef struct dispatch_kit_t {
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_allocator_t own;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
} dispatch_kit_t;

// `order`: of the software device's work; NULL is its default. `seed`: of the
// order of its threads. `wrap`: the driver's table, may be NULL.
static inline void dispatch_kit_open_wrapped(
    dispatch_kit_t* kit, const kiln_dispatcher_options_t* options,
    const char* order, uint64_t seed,
    kiln_status_t (*wrap)(void* user, kiln_cuda_table_t* inout_table)) {
  memset(kit, 0, sizeof(*kit));
  fault_alloc_init(&kit->watch);
  kit->allocator = fault_alloc_allocator(&kit->watch);
  kit->own = kiln_allocator_libc();
  kilni_runtime_hooks_t hooks = {0};
  hooks.soft_allocator = &kit->own;
  hooks.wrap = wrap;
  kiln_runtime_options_t runtime = kiln_runtime_options_default();
  runtime.allocator = &kit->allocator;
  runtime.soft_order = order;
  runtime.soft_seed = seed;
  assert_null(kilni_runtime_create_with(&runtime, &hooks, &kit->runtime));
  assert_null(kiln_runtime_open_device(kit->runtime, "soft", &kit->device));
  assert_null(kiln_dispatcher_create(kit->device, options, &kit->dispatcher));
}

static inline void dispatch_kit_open_by(
    dispatch_kit_t* kit, const kiln_dispatcher_options_t* options,
    const char* order, uint64_t seed) {
  dispatch_kit_open_wrapped(kit, options, order, seed, NULL);
}

static inline void dispatch_kit_open_in(
    dispatch_kit_t* kit, const kiln_dispatcher_options_t* options,
    const char* order) {
  dispatch_kit_open_by(kit, options, order, 0);
}

static inline void dispatch_kit_open_with(
    dispatch_kit_t* kit, const kiln_dispatcher_options_t* options) {
  dispatch_kit_open_in(kit, options, NULL);
}

static inline void dispatch_kit_open(dispatch_kit_t* kit) {
  dispatch_kit_open_with(kit, NULL);
}

// What graphs hold is let go by a thread, behind their launches.
static inline void dispatch_kit_settle(dispatch_kit_t* kit) {
  kilni_device_late_t* late = atomic_load(&kit->device->late);
  if (late == NULL) return;
  kiln_status_free(kiln_device_synchronize(kit->device));
  kilni_device_late_settle(late);
}

static inline void dispatch_kit_close(dispatch_kit_t* kit) {
  kiln_dispatcher_release(kit->dispatcher);
  dispatch_kit_settle(kit);
  kiln_device_release(kit->device);
  kiln_runtime_release(kit->runtime);
  fault_alloc_assert_clean(&kit->watch);
  fault_alloc_deinit(&kit->watch);
}

static inline kiln_program_t* dispatch_kit_program(const char* text) {
  kiln_program_t* program = NULL;
  kiln_program_report_t* report = NULL;
  kiln_string_view_t view = {text, strlen(text)};
  kiln_status_t status = kiln_program_parse(view, NULL, &report, &program);
  if (status != NULL) fail_msg("%s", kiln_program_report_text(report));
  kiln_program_report_release(report);
  return program;
}

static inline kiln_pipeline_t* dispatch_kit_pipeline(
    dispatch_kit_t* kit, const char* text,
    const kiln_pipeline_options_t* options) {
  kiln_pipeline_t* pipeline = NULL;
  kiln_program_t* program = dispatch_kit_program(text);
  assert_null(
      kiln_pipeline_create(kit->dispatcher, program, options, &pipeline));
  kiln_program_release(program);
  return pipeline;
}

// A resident buffer with these bytes in it; `data` NULL leaves them undefined.
static inline kiln_resident_t dispatch_kit_resident(dispatch_kit_t* kit,
                                                    uint64_t bytes,
                                                    const void* data) {
  kiln_resident_t resident;
  assert_null(kiln_resident_allocate(kit->dispatcher, bytes, &resident));
  if (data != NULL) {
    assert_null(
        kiln_resident_upload(kit->dispatcher, NULL, resident, 0, bytes, data));
  }
  return resident;
}

static inline void dispatch_kit_fetch(dispatch_kit_t* kit,
                                      kiln_resident_t resident, uint64_t bytes,
                                      void* out) {
  assert_null(
      kiln_resident_download(kit->dispatcher, NULL, resident, 0, bytes, out));
}

#endif  // KILN_TESTS_UNIT_DISPATCH_DISPATCH_KIT_H_
