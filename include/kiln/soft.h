// SPDX-License-Identifier: Apache-2.0
//
// soft: what kernels did on the software device, counted on demand.
//
// Counting is off by default, and then costs nothing. While it is on kernels
// run about three times as long; what they compute and the count of
// kiln_device_executed stay the same.
#ifndef KILN_SOFT_H_
#define KILN_SOFT_H_

#include "kiln/api.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// What an instruction is for. thread-compatible
typedef enum kiln_soft_class_t {
  KILN_SOFT_CLASS_MOVE,     // registers, constants, parameters, addresses
  KILN_SOFT_CLASS_INTEGER,  // arithmetic, bits
  KILN_SOFT_CLASS_F16,      // with bf16
  KILN_SOFT_CLASS_F32,
  KILN_SOFT_CLASS_F64,
  KILN_SOFT_CLASS_CONVERT,
  KILN_SOFT_CLASS_COMPARE,
  KILN_SOFT_CLASS_LOAD,
  KILN_SOFT_CLASS_STORE,
  KILN_SOFT_CLASS_ATOMIC,   // with volatile and ordered accesses, fences
  KILN_SOFT_CLASS_CONTROL,  // branches, ends
  KILN_SOFT_CLASS_CALL,
  KILN_SOFT_CLASS_WARP,  // shuffles, votes, matches
  KILN_SOFT_CLASS_BARRIER,
  KILN_SOFT_CLASS_MATRIX,
  KILN_SOFT_CLASS_COUNT
} kiln_soft_class_t;

// Memory that an access reaches. thread-compatible
typedef enum kiln_soft_place_t {
  KILN_SOFT_PLACE_GLOBAL,  // with constant memory
  KILN_SOFT_PLACE_SHARED,
  KILN_SOFT_PLACE_LOCAL,  // a thread's own, with its parameters
  KILN_SOFT_PLACE_COUNT
} kiln_soft_place_t;

// The address pattern of a warp's access. thread-compatible
typedef enum kiln_soft_shape_t {
  KILN_SOFT_SHAPE_UNIFORM,      // one for all
  KILN_SOFT_SHAPE_CONSECUTIVE,  // one after another
  KILN_SOFT_SHAPE_STRIDED,      // equally far apart
  KILN_SOFT_SHAPE_SCATTERED,
  KILN_SOFT_SHAPE_COUNT
} kiln_soft_shape_t;

// Accesses of warps. thread-compatible
//
// `sectors` are the aligned blocks of 32 bytes that they touched, each counted
// once an access.
typedef struct kiln_soft_traffic_t {
  uint64_t accesses;
  uint64_t sectors;
} kiln_soft_traffic_t;

// What kernels did that have ended. thread-compatible
//
// Of those launched since kiln_soft_profile_start. Begin with _default.
typedef struct kiln_soft_profile_t {
  uint32_t struct_size;
  uint32_t reserved;
  // Thread-instructions; their sum is that of kiln_device_executed.
  uint64_t instructions[KILN_SOFT_CLASS_COUNT];
  // Instructions that a warp executed for one lane or more: with all lanes
  // active each would be 32 thread-instructions.
  uint64_t warp_instructions;
  uint64_t branches;  // that a warp executed
  uint64_t diverged;  // of those, the ones at which its lanes diverged
  uint64_t barriers;  // arrivals of warps
  kiln_soft_traffic_t traffic[KILN_SOFT_PLACE_COUNT][KILN_SOFT_SHAPE_COUNT];
  uint64_t blocks;  // that ended
  // From a block's start to its end. The median is exact to three per cent.
  uint64_t block_ns_least;
  uint64_t block_ns_median;
  uint64_t block_ns_most;
} kiln_soft_profile_t;

static inline kiln_soft_profile_t kiln_soft_profile_default(void) {
  kiln_soft_profile_t profile = {
      (uint32_t)sizeof(profile), 0, {0}, 0, 0, 0, 0, {{{0, 0}}}, 0, 0, 0, 0};
  return profile;
}

// Counts what kernels do that are launched from now on, from zero; of the whole
// process, since there is one software device in it. INVALID_STATE where no
// device is open. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_soft_profile_start(void);

// What was counted. INVALID_STATE where nothing is. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_soft_profile_read(kiln_soft_profile_t* out_profile);

KILN_EXTERN_C_END

#endif  // KILN_SOFT_H_
