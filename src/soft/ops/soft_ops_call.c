// SPDX-License-Identifier: Apache-2.0
//
// soft: calls (the work is in soft_frame.c and soft_call.c). Compiled once for
// each lane set.
#include "soft/lanes/soft_lanes.h"
#include "soft/engine/soft_warp.h"

// `aux`, the function's call; `a`, the pointer of an indirect one; `b`, the
// instructions of the block so far.
KILNI_SOFT_HANDLER(call) {
  return kilni_soft_call_direct(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(call_indirect) {
  return kilni_soft_call_pointer(kilni_soft_run(warp), instr);
}

// The same words; the function is the device's own.
KILNI_SOFT_HANDLER(vprintf) {
  return kilni_soft_vprintf(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(assertfail) {
  return kilni_soft_assertfail(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(malloc) {
  return kilni_soft_malloc(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(set_conditional) {
  return kilni_soft_set_conditional(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(free) {
  return kilni_soft_free(kilni_soft_run(warp), instr);
}
