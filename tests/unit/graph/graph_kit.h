// SPDX-License-Identifier: Apache-2.0
//
// graph: a device with what graphs are made of, over the null provider behind a
// fault wrapper, or over the software device.
#ifndef KILN_TESTS_UNIT_GRAPH_GRAPH_KIT_H_
#define KILN_TESTS_UNIT_GRAPH_GRAPH_KIT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "fault_alloc.h"
#include "graph/graph.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "says.h"

static const char kGraphPtx[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    // x[0] = x[0] * a + b
    ".visible .entry step(.param .u64 x, .param .u32 a, .param .u32 b) {\n"
    ".reg .b64 %d<3>;\n.reg .b32 %r<5>;\n"
    "ld.param.u64 %d1, [x];\ncvta.to.global.u64 %d2, %d1;\n"
    "ld.param.u32 %r1, [a];\nld.param.u32 %r2, [b];\n"
    "ld.global.u32 %r3, [%d2];\nmad.lo.u32 %r4, %r3, %r1, %r2;\n"
    "st.global.u32 [%d2], %r4;\nret;\n}\n"
    ".visible .entry none() {\nret;\n}\n";

// One-thread.
typedef struct graph_kit_t {
  bool soft;
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_allocator_t own;
  kiln_cuda_table_t null_table;
  kiln_cuda_table_t table;  // wrapped
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_module_t* module;
  kiln_kernel_t* step;
  kiln_kernel_t* none;
  kiln_buffer_t* buffer;
  kiln_launch_t* launch;  // step(buffer, 1, 1)
  int told;
  uint32_t abandoned;  // streams that must never be touched again
  bool lost;           // a lost device's handles are left alone
  void (*tweak)(kiln_cuda_table_t* table);  // before the fault wrapper
} graph_kit_t;

static inline kiln_status_t graph_kit_wrap(void* user,
                                           kiln_cuda_table_t* table) {
  graph_kit_t* kit = user;
  if (kit->tweak != NULL) kit->tweak(table);
  kiln_status_t status = kilni_table_cuda_fault_install(table, table);
  kit->table = *table;
  return status;
}

static inline void graph_kit_unwrap(void* user,
                                    const kiln_cuda_table_t* table) {
  (void)user;
  kilni_table_cuda_fault_remove(table);
}

static inline void graph_kit_told(void* user) {
  ++*(int*)user;
}

static inline kiln_owner_t graph_kit_owner(int* count) {
  kiln_owner_t owner = {graph_kit_told, count};
  return owner;
}

static inline void graph_kit_fill_launch(graph_kit_t* kit) {
  assert_null(kiln_launch_create(kit->step, NULL, &kit->launch));
  const kiln_argument_t arguments[] = {kiln_arg_buffer(kit->buffer),
                                       kiln_arg_u32(1), kiln_arg_u32(1)};
  assert_null(kiln_launch_set_all(kit->launch, arguments, 3));
}

static inline void graph_kit_open_with(
    graph_kit_t* kit, bool soft, void (*tweak)(kiln_cuda_table_t* table)) {
  memset(kit, 0, sizeof(*kit));
  kit->soft = soft;
  kit->tweak = tweak;
  fault_alloc_init(&kit->watch);
  kit->allocator = fault_alloc_allocator(&kit->watch);
  kit->own = kiln_allocator_libc();
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&kit->null_table);
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &kit->null_table;
  hooks.wrap = graph_kit_wrap;
  hooks.unwrap = graph_kit_unwrap;
  hooks.user = kit;
  hooks.soft_allocator = &kit->own;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &kit->allocator;
  options.soft_workers = 1;
  assert_null(kilni_runtime_create_with(&options, &hooks, &kit->runtime));
  assert_null(kiln_runtime_open_device(kit->runtime, soft ? "soft" : "cuda:0",
                                       &kit->device));
  assert_null(kiln_stream_create(kit->device, NULL, &kit->stream));
  kiln_bytes_view_t ptx = {(const uint8_t*)kGraphPtx, sizeof(kGraphPtx) - 1};
  assert_null(kiln_module_load(kit->device, ptx, NULL, NULL, &kit->module));
  assert_null(kiln_kernel_create(kit->module, "step", &kit->step));
  assert_null(kiln_kernel_create(kit->module, "none", &kit->none));
  assert_null(kiln_buffer_create(kit->device, 4096, NULL, &kit->buffer));
  graph_kit_fill_launch(kit);
}

static inline void graph_kit_open(graph_kit_t* kit, bool soft) {
  graph_kit_open_with(kit, soft, NULL);
}

// Everything goes, and nothing may be left.
static inline void graph_kit_close(graph_kit_t* kit) {
  kilni_device_late_t* late = atomic_load(&kit->device->late);
  if (late != NULL) kilni_device_late_settle(late);
  kiln_launch_release(kit->launch);
  kiln_buffer_release(kit->buffer);
  kiln_kernel_release(kit->step);
  kiln_kernel_release(kit->none);
  kiln_module_release(kit->module);
  kiln_stream_release(kit->stream);
  kiln_device_release(kit->device);
  kiln_runtime_release(kit->runtime);
  if (!kit->soft && !kit->lost) {
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE),
                     kit->abandoned);
    assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  }
  fault_alloc_assert_clean(&kit->watch);
  fault_alloc_deinit(&kit->watch);
}

// An event whose owner counts in `*told`.
static inline kiln_event_t* graph_kit_event(graph_kit_t* kit, int* told) {
  static uintptr_t next = 0x5000;
  kiln_owner_t owner = graph_kit_owner(told);
  kiln_event_t* event = NULL;
  next += 16;
  assert_null(kiln_event_adopt(kit->device, (void*)next, &owner, &event));
  return event;
}

static inline kiln_graph_node_t* graph_kit_add(kiln_graph_t* graph,
                                               kiln_graph_node_t* after,
                                               kiln_graph_work_t work) {
  kiln_graph_node_t* node = NULL;
  assert_null(
      kiln_graph_add(graph, &after, after == NULL ? 0 : 1, &work, &node));
  assert_non_null(node);
  return node;
}

#endif  // KILN_TESTS_UNIT_GRAPH_GRAPH_KIT_H_
