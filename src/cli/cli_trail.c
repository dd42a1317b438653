// SPDX-License-Identifier: Apache-2.0
//
// cli: a search log without repetitions.
#include "cli/cli_trail.h"

#include <string.h>

static uint32_t hash_text(uint32_t hash, const char* text) {
  for (; *text != 0; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
  return hash;
}

void kilni_cli_trail_init(kilni_cli_trail_t* trail,
                          const kiln_locate_tried_t* tried, uint32_t count) {
  kilni_cli_error_t ignored;
  size_t slots = 16;
  memset(trail, 0, sizeof(*trail));
  trail->tried = tried;
  trail->count = count;
  while (slots < 2 * (size_t)count) slots *= 2;
  // Without memory each line is given as it comes.
  (void)kilni_cli_buffer_resize(&trail->seen, slots * sizeof(uint32_t),
                                &ignored);
}

// Records a line; false if it was given before.
static bool trail_is_new(kilni_cli_trail_t* trail, uint32_t index) {
  uint32_t* slots = (uint32_t*)(void*)trail->seen.data;
  size_t mask = trail->seen.size / sizeof(uint32_t) - 1;
  const kiln_locate_tried_t* line = &trail->tried[index];
  if (slots == NULL) return true;
  size_t at = hash_text(hash_text(2166136261u, line->path), line->why) & mask;
  for (; slots[at] != 0; at = (at + 1) & mask) {
    const kiln_locate_tried_t* other = &trail->tried[slots[at] - 1];
    if (strcmp(other->path, line->path) == 0 &&
        strcmp(other->why, line->why) == 0) {
      return false;
    }
  }
  slots[at] = index + 1;
  return true;
}

const kiln_locate_tried_t* kilni_cli_trail_next(kilni_cli_trail_t* trail) {
  while (trail->at < trail->count) {
    if (trail_is_new(trail, trail->at++)) return &trail->tried[trail->at - 1];
  }
  return NULL;
}

void kilni_cli_trail_deinit(kilni_cli_trail_t* trail) {
  kilni_cli_buffer_deinit(&trail->seen);
  trail->count = 0;
}
