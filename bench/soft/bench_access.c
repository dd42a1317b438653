// SPDX-License-Identifier: Apache-2.0
//
// bench: loads and stores of the software device by width, by how a warp's
// addresses lie and by which lanes execute, on one core.
//
//   bench_access [--lanes NAME]
//
// Each case repeats one load and one store of every thread 256 times. The unit
// is nanoseconds for such a pair of one warp, with the loop around it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/thread.h"
#include "bench_report.h"
#include "soft/engine/soft_grid.h"

enum { LOOPS = 256, BLOCKS = 16, BLOCK = 256, REPEATS = 5, BYTES = 1 << 20 };

// Registers of a case: rd1, the thread's own 16 bytes of a buffer; rd2, the
// buffer with the thread's number of bytes added; r4, the number.
typedef struct case_t {
  const char* name;
  const char* body;
} case_t;

static const case_t cases[] = {
    {"next_u8", "ld.global.u8 %r5, [%rd2];\nst.global.u8 [%rd2+65536], %r5;\n"},
    {"next_u16",
     "ld.global.u16 %rs5, [%rd3];\nst.global.u16 [%rd3+65536], %rs5;\n"},
    {"next_u32",
     "ld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd4+65536], %r5;\n"},
    {"index_u32",
     "mul.wide.u32 %rd5, %r4, 4;\nadd.s64 %rd6, %rd9, %rd5;\n"
     "ld.global.u32 %r5, [%rd6];\nmul.wide.u32 %rd7, %r4, 4;\n"
     "add.s64 %rd8, %rd9, %rd7;\nst.global.u32 [%rd8+65536], %r5;\n"},
    {"next_v4_u32",
     "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd1];\n"
     "st.global.v4.u32 [%rd1+262144], {%r5, %r6, %r7, %r8};\n"},
    {"next_v2_u64",
     "ld.global.v2.u64 {%rd5, %rd6}, [%rd1];\n"
     "st.global.v2.u64 [%rd1+262144], {%rd5, %rd6};\n"},
    {"some_u32",
     "@%p2 ld.global.u32 %r5, [%rd4];\n@%p2 st.global.u32 [%rd4+65536], "
     "%r5;\n"},
    {"strided_u32",
     "ld.global.u32 %r5, [%rd1];\nst.global.u32 [%rd1+262144], %r5;\n"},
    {"same_u32",
     "ld.global.u32 %r5, [%rd9];\nst.global.u32 [%rd9+65536], %r5;\n"},
    {"local_u32", "ld.local.u32 %r5, [mine+4];\nst.local.u32 [mine+8], %r5;\n"},
    {"local_v4_u32",
     "ld.local.v4.u32 {%r5, %r6, %r7, %r8}, [mine+16];\n"
     "st.local.v4.u32 [mine+32], {%r5, %r6, %r7, %r8};\n"},
    {"local_generic_u64",
     "ld.u64 %rd5, [%rd10+16];\nst.u64 [%rd10+32], %rd5;\n"},
};

static const char head[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n"
    ".reg .b16 %rs<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"
    ".local .align 16 .b8 mine[64];\n"
    "ld.param.u64 %rd9, [p];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "cvt.u64.u32 %rd5, %r4;\nadd.s64 %rd2, %rd9, %rd5;\n"
    "shl.b64 %rd6, %rd5, 1;\nadd.s64 %rd3, %rd9, %rd6;\n"
    "shl.b64 %rd6, %rd5, 2;\nadd.s64 %rd4, %rd9, %rd6;\n"
    "shl.b64 %rd6, %rd5, 4;\nadd.s64 %rd1, %rd9, %rd6;\n"
    "mov.u64 %rd11, mine;\ncvta.local.u64 %rd10, %rd11;\n"
    "and.b32 %r6, %r3, 7;\nsetp.lt.u32 %p2, %r6, 6;\n"
    "mov.u32 %r10, 0;\nLOOP:\n";
static const char tail[] =
    "add.u32 %r10, %r10, 1;\nsetp.lt.u32 %p1, %r10, 256;\n@%p1 bra LOOP;\n"
    "ret;\n}\n";

static void check(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  fprintf(stderr, "%s\n", text);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

static uint64_t run_once(const kiln_host_t* host, kilni_soft_memory_t* memory,
                         const kilni_soft_code_t* code, uint64_t buffer) {
  kilni_soft_launch_t launch = {.entry = kilni_soft_code_find(code, "k"),
                                .grid = {BLOCKS, 1, 1},
                                .block = {BLOCK, 1, 1},
                                .stack_bytes = 1024,
                                .params = &buffer};
  kilni_soft_grid_t* grid;
  check(kilni_soft_grid_create(host, memory, &launch, &grid));
  uint64_t start = bench_time_ns();
  kilni_soft_grid_work(grid);
  uint64_t spent = bench_time_ns() - start;
  const kilni_soft_fault_t* fault = kilni_soft_grid_fault(grid);
  if (fault->kind != KILNI_SOFT_FAULT_NONE) {
    fprintf(stderr, "kernel \"%s\" failed at PTX line %u\n", fault->kernel,
            (unsigned)fault->line);
    exit(8);
  }
  kilni_soft_grid_destroy(grid);
  return spent;
}

static double bench_case(const kiln_host_t* host, const case_t* c,
                         const kilni_soft_lane_set_t* lanes) {
  static char text[8192];
  int size = snprintf(text, sizeof(text), "%s%s%s", head, c->body, tail);
  kilni_image_ptx_module_t* module;
  kilni_soft_memory_t* memory;
  kilni_soft_code_t* code;
  uint64_t buffer;
  check(kilni_image_ptx_module_create(
      (kiln_bytes_view_t){(const uint8_t*)text, (size_t)size}, c->name, NULL,
      host->allocator, &module));
  check(kilni_soft_memory_create(host, true, &memory));
  check(kilni_soft_code_create(host, module, lanes, memory, &code));
  check(
      kilni_soft_memory_alloc(memory, BYTES, KILNI_SOFT_ALLOC_DEVICE, &buffer));
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < REPEATS; i++) {
    uint64_t spent = run_once(host, memory, code, buffer);
    if (spent < best) best = spent;
  }
  kilni_soft_code_destroy(code);
  kilni_image_ptx_module_release(module);
  kilni_soft_memory_destroy(memory);
  return (double)best / (LOOPS * BLOCKS * (BLOCK / 32));
}

int main(int argc, char** argv) {
  const char* only = NULL;
  if (argc == 3 && strcmp(argv[1], "--lanes") == 0) only = argv[2];
  static bench_report_t report = {.device = "soft"};
  kilni_base_env_t env;
  check(kilni_base_env_init(&env, kiln_allocator_libc()));
  kiln_host_t host = {.allocator = kiln_allocator_libc(),
                      .env = &env,
                      .worker_count = 1,
                      .process_id = kilni_base_process_id()};
  static const char* const sets[] = {"plain", "avx2", "avx512"};
  for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
    const kilni_soft_lane_set_t* lanes = kilni_soft_lanes_choose(sets[s]);
    if (!lanes || (only && strcmp(only, sets[s]) != 0)) continue;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
      char name[BENCH_NAME_BYTES];
      snprintf(name, sizeof(name), "%s/%s", cases[i].name, sets[s]);
      bench_report_less(&report, name, "ns",
                        bench_case(&host, &cases[i], lanes), NULL, 0);
    }
  }
  bench_report_print(&report);
  kilni_base_env_deinit(&env);
  return 0;
}
