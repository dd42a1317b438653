// SPDX-License-Identifier: Apache-2.0
//
// test: PTX text run on the software device's engine, without a driver.
//
// A kit holds one device memory, one lane set and one module at a time. It
// asserts what a test takes for granted, so tests read as what they show.
#ifndef KILN_TESTS_SUPPORT_SOFT_KIT_H_
#define KILN_TESTS_SUPPORT_SOFT_KIT_H_

#include "soft/engine/soft_grid.h"

enum { SOFT_KIT_WORKERS_MAX = 8, SOFT_KIT_TEXT_BYTES = 65536 };

// one-thread
typedef struct soft_kit_t {
  kiln_host_t host;
  kilni_soft_memory_t* memory;
  const kilni_soft_lane_set_t* lanes;
  kilni_image_ptx_module_t* module;
  kilni_soft_code_t* code;
  uint32_t workers;
  uint32_t stack_bytes;
  uint32_t cooperative;  // launches are, where not 0
  uint32_t profiled;     // launches are, where not 0
  uint64_t seed;
  uint64_t cancel_after_ns;  // 0: never
  // Of the last launch:
  kilni_soft_fault_t fault;
  char report[4096];  // of it: what it says, in lines
  uint64_t executed;
  kiln_soft_profile_t profile;
  size_t text_size;
  char text[SOFT_KIT_TEXT_BYTES];
} soft_kit_t;

// A way to run every test: a lane set this machine has, and a worker count.
typedef struct soft_kit_way_t {
  const char* lanes;
  uint32_t workers;
  uint64_t seed;
} soft_kit_way_t;

// The ways, one after another; false after the last.
bool soft_kit_way(uint32_t index, soft_kit_way_t* out_way);

// What follows is run once in every way, with the kit open.
#define SOFT_KIT_EVERY_WAY(kit)                                        \
  soft_kit_way_t way_;                                                 \
  for (uint32_t w_ = 0;                                                \
       soft_kit_way(w_, &way_) && (soft_kit_open((kit), &way_), true); \
       w_++, soft_kit_close(kit))

#define SOFT_KIT_HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"
// A kernel `k` of one buffer. The index of the thread in the grid is in %r1,
// the address of its word of `out` in %rd1, the address of the first word in
// %rd3, %tid.x in %r4. Behind SOFT_KIT_HEAD the body starts on line
// SOFT_KIT_BODY_LINE.
#define SOFT_KIT_KERNEL(body)                                   \
  ".visible .entry k(.param .u64 out)\n{\n"                     \
  ".reg .pred %p<20>;\n.reg .b16 %rs<20>;\n.reg .b32 %r<60>;\n" \
  ".reg .b64 %rd<40>;\n.reg .f32 %f<20>;\n"                     \
  "ld.param.u64 %rd2, [out];\ncvta.to.global.u64 %rd3, %rd2;\n" \
  "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"             \
  "mov.u32 %r4, %tid.x;\nmad.lo.s32 %r1, %r2, %r3, %r4;\n"      \
  "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd1, %rd3, %rd4;\n" body "}\n"
enum { SOFT_KIT_BODY_LINE = 19 };

void soft_kit_open(soft_kit_t* kit, const soft_kit_way_t* way);
// The same with an allocator for all that the engine takes.
void soft_kit_open_with(soft_kit_t* kit, const soft_kit_way_t* way,
                        kiln_allocator_t allocator);
void soft_kit_close(soft_kit_t* kit);

// Loads a module; asserts that it is accepted.
void soft_kit_load(soft_kit_t* kit, const char* ptx);
// The same without the assertion.
kiln_status_t soft_kit_try(soft_kit_t* kit, const char* ptx);

// A buffer with a copy of `data` (zeroes where that is NULL).
uint64_t soft_kit_buffer(soft_kit_t* kit, const void* data, uint64_t bytes);
void soft_kit_read(soft_kit_t* kit, uint64_t address, void* out,
                   uint64_t bytes);
void soft_kit_global(soft_kit_t* kit, const char* name, uint64_t* out_address,
                     uint64_t* out_bytes);

// Runs a grid to its end. `params` are the packed parameters.
kilni_soft_fault_kind_t soft_kit_launch(soft_kit_t* kit, const char* entry,
                                        const uint32_t grid[3],
                                        const uint32_t block[3],
                                        uint32_t shared, const void* params,
                                        size_t param_bytes);
// One-dimensional, and every parameter an 8-byte number; asserts no fault.
void soft_kit_run(soft_kit_t* kit, const char* entry, uint32_t grid,
                  uint32_t block, uint32_t count, const uint64_t* params);

// Loads `ptx` and runs its `k` on a fresh buffer, which `out` receives
// afterwards; `out_address`, unless NULL, where it was.
kilni_soft_fault_kind_t soft_kit_words(soft_kit_t* kit, const char* ptx,
                                       uint32_t grid, uint32_t block,
                                       uint32_t* out, uint32_t count,
                                       uint64_t* out_address);
// The same; a fault fails the test with its report.
void soft_kit_must_words(soft_kit_t* kit, const char* ptx, uint32_t grid,
                         uint32_t block, uint32_t* out, uint32_t count);

#endif  // KILN_TESTS_SUPPORT_SOFT_KIT_H_
