// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the kernels of one thread that keep count of a fixpoint's rounds.
//
// What they read and write is written and read by other kernels of the same
// stream or graph, and by the host.
#include <string.h>

#include "base/status_make.h"
#include "dispatch/sequence_fixpoint.h"
#include "kiln/module.h"

// kiln_fixpoint_begin: no round is done; the WHILE node goes on.
// kiln_fixpoint_round: one round more is done. The last one is reported to the
// host (rounds, end: KILN_PROGRAM_ROUNDS_*) and ends the WHILE node; else the
// flag is zero again.
static const char kWhile[] =
    ".version 6.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle,\n"
    "  .param .b32 value);\n"
    ".visible .entry kiln_fixpoint_begin(.param .u64 handle,\n"
    "  .param .u64 flag, .param .u64 state)\n"
    "{\n"
    "  .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d1, [handle];\n"
    "  ld.param.u64 %d2, [flag];\n"
    "  ld.param.u64 %d3, [state];\n"
    "  cvta.to.global.u64 %d2, %d2;\n"
    "  cvta.to.global.u64 %d3, %d3;\n"
    "  st.global.u32 [%d2], 0;\n"
    "  st.global.u32 [%d3], 0;\n"
    "  {\n"
    "  .param .b64 a0;\n"
    "  .param .b32 a1;\n"
    "  st.param.b64 [a0], %d1;\n"
    "  st.param.b32 [a1], 1;\n"
    "  call.uni cudaGraphSetConditional, (a0, a1);\n"
    "  }\n"
    "  ret;\n"
    "}\n"
    ".visible .entry kiln_fixpoint_round(.param .u64 handle,\n"
    "  .param .u64 flag, .param .u64 state, .param .u64 told,\n"
    "  .param .u64 traps, .param .u32 count, .param .u32 limit)\n"
    "{\n"
    "  .reg .pred %p<8>;\n"
    "  .reg .b32 %r<8>;\n"
    "  .reg .b64 %d<8>;\n"
    "  ld.param.u64 %d2, [flag];\n"
    "  ld.param.u64 %d3, [state];\n"
    "  cvta.to.global.u64 %d2, %d2;\n"
    "  cvta.to.global.u64 %d3, %d3;\n"
    "  ld.global.u32 %r1, [%d2];\n"
    "  ld.global.u32 %r2, [%d3];\n"
    "  add.u32 %r2, %r2, 1;\n"
    "  st.global.u32 [%d3], %r2;\n"
    // A trap is reported whatever the flag is.
    "  ld.param.u64 %d4, [traps];\n"
    "  ld.param.u32 %r3, [count];\n"
    "  cvta.to.global.u64 %d4, %d4;\n"
    "  mov.u32 %r4, 3;\n"
    "NEXT:\n"
    "  setp.eq.u32 %p1, %r3, 0;\n"
    "  @%p1 bra NONE;\n"
    "  ld.global.u64 %d5, [%d4];\n"
    "  cvta.to.global.u64 %d5, %d5;\n"
    "  ld.volatile.global.u32 %r5, [%d5];\n"
    "  setp.ne.u32 %p2, %r5, 0;\n"
    "  @%p2 bra LAST;\n"
    "  add.u64 %d4, %d4, 8;\n"
    "  sub.u32 %r3, %r3, 1;\n"
    "  bra NEXT;\n"
    "NONE:\n"
    "  mov.u32 %r4, 1;\n"
    "  setp.eq.u32 %p3, %r1, 0;\n"
    "  @%p3 bra LAST;\n"
    "  mov.u32 %r4, 2;\n"
    "  ld.param.u32 %r6, [limit];\n"
    "  setp.ge.u32 %p4, %r2, %r6;\n"
    "  @%p4 bra LAST;\n"
    "  st.global.u32 [%d2], 0;\n"
    "  ret;\n"
    "LAST:\n"
    "  ld.param.u64 %d6, [told];\n"
    "  cvta.to.global.u64 %d6, %d6;\n"
    "  st.global.u32 [%d6], %r2;\n"
    "  st.global.u32 [%d6+4], %r4;\n"
    "  ld.param.u64 %d1, [handle];\n"
    "  {\n"
    "  .param .b64 a0;\n"
    "  .param .b32 a1;\n"
    "  st.param.b64 [a0], %d1;\n"
    "  st.param.b32 [a1], 0;\n"
    "  call.uni cudaGraphSetConditional, (a0, a1);\n"
    "  }\n"
    "  ret;\n"
    "}\n";

// kiln_fixpoint_tell: reports to the host which round is done and the flag, in
// one word; zero again if another round may follow.
static const char kPoll[] =
    ".version 6.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry kiln_fixpoint_tell(.param .u64 flag, .param .u64 told,\n"
    "  .param .u32 round, .param .u32 more)\n"
    "{\n"
    "  .reg .pred %p<4>;\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .b64 %d<6>;\n"
    "  ld.param.u64 %d1, [flag];\n"
    "  ld.param.u64 %d2, [told];\n"
    "  cvta.to.global.u64 %d1, %d1;\n"
    "  cvta.to.global.u64 %d2, %d2;\n"
    "  ld.global.u32 %r1, [%d1];\n"
    "  ld.param.u32 %r2, [round];\n"
    "  ld.param.u32 %r3, [more];\n"
    "  setp.ne.u32 %p1, %r1, 0;\n"
    "  selp.u32 %r4, 1, 0, %p1;\n"
    "  setp.ne.and.u32 %p2, %r3, 0, %p1;\n"
    "  @%p2 st.global.u32 [%d1], 0;\n"
    "  mov.b64 %d3, {%r2, %r4};\n"
    // All that the round has written is there when the host sees this.
    "  st.release.sys.global.u64 [%d2], %d3;\n"
    "  ret;\n"
    "}\n";

static kiln_status_t sequence_fixpoint_code_load(kiln_dispatcher_t* dispatcher,
                                                 const char* text,
                                                 const char* entry,
                                                 kiln_kernel_t** out_kernel) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kiln_module_options_t options = kiln_module_options_default();
  kiln_module_t* module = NULL;
  options.name = "fixpoint";
  KILNI_RETURN_IF_ERROR(
      kiln_module_load(dispatcher->device, bytes, &options, NULL, &module));
  kiln_status_t status = kiln_kernel_create(module, entry, out_kernel);
  kiln_module_release(module);
  return status;
}

kiln_status_t kilni_dispatch_fixpoint_kernel(kiln_dispatcher_t* dispatcher,
                                             uint32_t which,
                                             kiln_launch_t** out_launch) {
  static const char* const kEntries[] = {
      "kiln_fixpoint_begin", "kiln_fixpoint_round", "kiln_fixpoint_tell"};
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_kernel_t* kernel = NULL;
  *out_launch = NULL;
  KILNI_RETURN_IF_ERROR(sequence_fixpoint_code_load(
      dispatcher, which == KILNI_FIXPOINT_TELL ? kPoll : kWhile,
      kEntries[which], &kernel));
  kiln_status_t status = kiln_launch_create(kernel, &config, out_launch);
  kiln_kernel_release(kernel);
  return status;
}
