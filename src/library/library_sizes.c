// SPDX-License-Identifier: Apache-2.0
//
// library: how many elements each parameter of a plan has, as its programs say.
#include <string.h>

#include "base/status_make.h"
#include "kiln/library.h"
#include "kiln/program.h"
#include "library/library_inside.h"

// What a step's own parameters have, by what is known of the plan's.
static void read_sizes(const kiln_library_plan_t* plan,
                       const kilni_library_step_t* step,
                       const kiln_program_size_t* known,
                       kiln_program_size_t* out_sizes) {
  kiln_program_parameter_info_t p;
  for (uint32_t i = 0; i < step->place_count; i++) {
    kiln_program_size_t* out = &out_sizes[i];
    const kilni_library_place_t* place = &step->places[i];
    memset(out, 0, sizeof(*out));
    out->count = KILN_PROGRAM_COUNT_UNKNOWN;
    if (!kiln_program_parameter(step->program, i, &p)) continue;
    if (place->kind == KILNI_PLACE_GIVEN) *out = known[place->index];
    if (place->kind == KILNI_PLACE_VALUE) out->bits = place->index;
    // What the program counts itself need not be said.
    if (p.is_counted != 0) continue;
    if (place->kind == KILNI_PLACE_NOTHING) out->count = 0;
    if (place->kind == KILNI_PLACE_ALIKE) out->count = known[0].count;
    if (place->kind == KILNI_PLACE_MEMORY) {
      out->count =
          kiln_buffer_size(plan->memories[place->index]) / p.type_bytes;
    }
    if (place->kind == KILNI_PLACE_WORDS &&
        known[place->index].count != KILN_PROGRAM_COUNT_UNKNOWN) {
      out->count = known[place->index].count / 4;
    }
  }
}

kiln_status_t kiln_library_plan_sizes(const kiln_library_plan_t* plan,
                                      kiln_program_size_t* inout_sizes) {
  KILNI_CHECK_ARGUMENT(plan != NULL, "plan");
  KILNI_CHECK_ARGUMENT(inout_sizes != NULL, "inout_sizes");
  kiln_program_size_t known[KILNI_LIBRARY_PARAMETERS];
  size_t bytes = plan->parameter_count * sizeof(known[0]);
  memcpy(known, inout_sizes, bytes);
  for (uint32_t s = 0; s < plan->step_count; s++) {
    const kilni_library_step_t* step = &plan->steps[s];
    kiln_program_size_t sizes[KILNI_LIBRARY_PLACES];
    uint64_t work[3];
    read_sizes(plan, step, known, sizes);
    kiln_status_t status = kiln_program_sizes(step->program, sizes, work);
    if (!kiln_status_is_ok(status)) {
      return KILNI_ANNOTATE(status, "sizes for the library's \"%s\"",
                            plan->name);
    }
    for (uint32_t i = 0; i < step->place_count; i++) {
      if (step->places[i].kind == KILNI_PLACE_GIVEN) {
        known[step->places[i].index].count = sizes[i].count;
      }
    }
  }
  memcpy(inout_sizes, known, bytes);
  return kiln_ok();
}
