// SPDX-License-Identifier: Apache-2.0
//
// compile: how many compilations of one compiler run at one time.
#include "compile/compile_gate.h"

#include <string.h>

// How often a waiting caller asks whether it is to give up.
static const uint64_t kAskNs = 20000000;

kiln_status_t kilni_compile_gate_init(kilni_compile_gate_t* gate,
                                      uint32_t most_running,
                                      uint64_t most_bytes) {
  memset(gate, 0, sizeof(*gate));
  gate->most_running =
      most_running != 0 ? most_running : kilni_base_core_count();
  gate->most_bytes = most_bytes;
  kiln_status_t status = kilni_base_mutex_init(&gate->lock);
  if (!kiln_status_is_ok(status)) return status;
  status = kilni_base_cond_init(&gate->moved);
  if (!kiln_status_is_ok(status)) {
    kilni_base_mutex_deinit(&gate->lock);
    return status;
  }
  gate->is_made = true;
  return kiln_ok();
}

void kilni_compile_gate_deinit(kilni_compile_gate_t* gate) {
  if (!gate->is_made) return;
  kilni_base_cond_deinit(&gate->moved);
  kilni_base_mutex_deinit(&gate->lock);
  gate->is_made = false;
}

static bool gate_has_space(const kilni_compile_gate_t* gate, uint64_t bytes) {
  if (gate->running == 0) return true;
  if (gate->running >= gate->most_running) return false;
  if (gate->most_bytes == 0) return true;
  return gate->used_bytes <= gate->most_bytes &&
         bytes <= gate->most_bytes - gate->used_bytes;
}

static void gate_join(kilni_compile_gate_t* gate,
                      kilni_compile_gate_place_t* place) {
  kilni_compile_gate_place_t** at = &gate->first;
  while (*at != NULL) at = &(*at)->next;
  place->next = NULL;
  *at = place;
}

static void step_out(kilni_compile_gate_t* gate,
                     const kilni_compile_gate_place_t* place) {
  kilni_compile_gate_place_t** at = &gate->first;
  while (*at != place) at = &(*at)->next;
  *at = place->next;
  kilni_base_cond_broadcast(&gate->moved);
}

bool kilni_compile_gate_enter(kilni_compile_gate_t* gate, uint64_t bytes,
                              bool (*cancelled)(void* user), void* user) {
  kilni_compile_gate_place_t place;
  bool gave_up = false;
  kilni_base_mutex_lock(&gate->lock);
  gate_join(gate, &place);
  while (!gave_up && (gate->first != &place || !gate_has_space(gate, bytes))) {
    if (cancelled == NULL) {
      kilni_base_cond_wait(&gate->moved, &gate->lock);
      continue;
    }
    (void)kilni_base_cond_wait_until(&gate->moved, &gate->lock,
                                     kilni_base_time_ns() + kAskNs);
    kilni_base_mutex_unlock(&gate->lock);
    gave_up = cancelled(user);
    kilni_base_mutex_lock(&gate->lock);
  }
  if (!gave_up) {
    gate->running++;
    gate->used_bytes += bytes;
  }
  step_out(gate, &place);
  kilni_base_mutex_unlock(&gate->lock);
  return !gave_up;
}

void kilni_compile_gate_leave(kilni_compile_gate_t* gate, uint64_t bytes) {
  kilni_base_mutex_lock(&gate->lock);
  gate->running--;
  gate->used_bytes -= bytes;
  kilni_base_cond_broadcast(&gate->moved);
  kilni_base_mutex_unlock(&gate->lock);
}
