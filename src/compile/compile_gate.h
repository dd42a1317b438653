// SPDX-License-Identifier: Apache-2.0
//
// compile: how many compilations of one compiler run at one time.
#ifndef KILN_SRC_COMPILE_COMPILE_GATE_H_
#define KILN_SRC_COMPILE_COMPILE_GATE_H_

#include "base/thread.h"

// A caller that waits. one-thread
typedef struct kilni_compile_gate_place_t {
  struct kilni_compile_gate_place_t* next;
} kilni_compile_gate_place_t;

// A queue: first come, first served. The lock is held while a caller takes its
// place and while it leaves, never while it compiles. thread-safe
typedef struct kilni_compile_gate_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t moved;
  kilni_compile_gate_place_t* first;  // on the stacks of those that wait
  uint64_t used_bytes;
  uint64_t most_bytes;  // 0: no limit
  uint32_t running;
  uint32_t most_running;
  bool is_made;
} kilni_compile_gate_t;

// `most_running` 0 is one for each core.
kiln_status_t kilni_compile_gate_init(kilni_compile_gate_t* gate,
                                      uint32_t most_running,
                                      uint64_t most_bytes);
void kilni_compile_gate_deinit(kilni_compile_gate_t* gate);

// Waits until it is this caller's turn, and there is space; a single caller
// always has space. False if `cancelled` ended the wait: then there is nothing
// to leave.
bool kilni_compile_gate_enter(kilni_compile_gate_t* gate, uint64_t bytes,
                              bool (*cancelled)(void* user), void* user);
void kilni_compile_gate_leave(kilni_compile_gate_t* gate, uint64_t bytes);

#endif  // KILN_SRC_COMPILE_COMPILE_GATE_H_
