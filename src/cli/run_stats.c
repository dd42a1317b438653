// SPDX-License-Identifier: Apache-2.0
//
// cli: what a kernel did on the software device, as JSON and as lines.
#include "cli/run_stats.h"

#include <inttypes.h>

#include "cli/cli_report.h"

static const char* const kClassNames[] = {
    "move",  "integer", "f16",     "f32",  "f64",  "convert", "compare", "load",
    "store", "atomic",  "control", "call", "warp", "barrier", "matrix"};
static const char* const kPlaceNames[] = {"global", "shared", "local"};
static const char* const kShapeNames[] = {"uniform", "consecutive", "strided",
                                          "scattered"};

_Static_assert(sizeof(kClassNames) / sizeof(kClassNames[0]) ==
                   KILN_SOFT_CLASS_COUNT,
               "a name for each class");

static uint64_t total_of(const kiln_soft_profile_t* profile) {
  uint64_t total = 0;
  for (int i = 0; i < KILN_SOFT_CLASS_COUNT; i++) {
    total += profile->instructions[i];
  }
  return total;
}

// The share of a warp's 32 lanes that were active; 1 where nothing ran.
static double active_share(const kiln_soft_profile_t* profile) {
  if (profile->warp_instructions == 0) return 1.0;
  return (double)total_of(profile) / 32.0 / (double)profile->warp_instructions;
}

static json_t* memory_json(const kiln_soft_profile_t* profile) {
  json_t* memory = json_object();
  for (int p = 0; p < KILN_SOFT_PLACE_COUNT; p++) {
    json_t* place = json_object();
    for (int s = 0; s < KILN_SOFT_SHAPE_COUNT; s++) {
      const kiln_soft_traffic_t* traffic = &profile->traffic[p][s];
      (void)json_object_set_new(
          place, kShapeNames[s],
          json_pack("{s:I,s:I}", "accesses", (json_int_t)traffic->accesses,
                    "sectors", (json_int_t)traffic->sectors));
    }
    (void)json_object_set_new(memory, kPlaceNames[p], place);
  }
  return memory;
}

json_t* kilni_cli_stats_json(const kiln_soft_profile_t* profile) {
  json_t* classes = json_object();
  for (int i = 0; i < KILN_SOFT_CLASS_COUNT; i++) {
    (void)json_object_set_new(
        classes, kClassNames[i],
        json_integer((json_int_t)profile->instructions[i]));
  }
  return json_pack(
      "{s:o,s:I,s:f,s:{s:I,s:I},s:o,s:I,s:{s:I,s:I,s:I,s:I}}", "instructions",
      classes, "warp_instructions", (json_int_t)profile->warp_instructions,
      "active_lanes", active_share(profile), "branches", "executed",
      (json_int_t)profile->branches, "diverged", (json_int_t)profile->diverged,
      "memory", memory_json(profile), "barriers", (json_int_t)profile->barriers,
      "blocks", "count", (json_int_t)profile->blocks, "least_ns",
      (json_int_t)profile->block_ns_least, "median_ns",
      (json_int_t)profile->block_ns_median, "most_ns",
      (json_int_t)profile->block_ns_most);
}

static double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

void kilni_cli_stats_note(const kiln_soft_profile_t* profile) {
  uint64_t total = total_of(profile);
  for (int i = 0; i < KILN_SOFT_CLASS_COUNT; i++) {
    if (profile->instructions[i] == 0) continue;
    kilni_cli_note("  %-8s %5.1f %%  %" PRIu64, kClassNames[i],
                   percent(profile->instructions[i], total),
                   profile->instructions[i]);
  }
  kilni_cli_note("%" PRIu64 " warp instructions, %.1f %% of lanes active",
                 profile->warp_instructions, 100.0 * active_share(profile));
  kilni_cli_note("%" PRIu64 " branch%s, divergent at %" PRIu64,
                 profile->branches, profile->branches == 1 ? "" : "es",
                 profile->diverged);
  for (int p = 0; p < KILN_SOFT_PLACE_COUNT; p++) {
    for (int s = 0; s < KILN_SOFT_SHAPE_COUNT; s++) {
      const kiln_soft_traffic_t* traffic = &profile->traffic[p][s];
      if (traffic->accesses == 0) continue;
      kilni_cli_note("%s memory, %s: %" PRIu64 " accesses of warps, %" PRIu64
                     " sectors of 32 bytes",
                     kPlaceNames[p], kShapeNames[s], traffic->accesses,
                     traffic->sectors);
    }
  }
  kilni_cli_note("%" PRIu64 " arrivals of warps at barriers",
                 profile->barriers);
  kilni_cli_note("%" PRIu64
                 " block%s: minimum %.3g us, median %.3g us, maximum %.3g us",
                 profile->blocks, profile->blocks == 1 ? "" : "s",
                 (double)profile->block_ns_least * 1e-3,
                 (double)profile->block_ns_median * 1e-3,
                 (double)profile->block_ns_most * 1e-3);
}
