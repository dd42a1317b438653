// SPDX-License-Identifier: Apache-2.0
//
// soft: where the lanes of an instruction access memory, for code that looks at
// it before it runs: the counts and the watch. Handlers find that out by faster
// methods of their own.
#ifndef KILN_SRC_SOFT_ENGINE_SOFT_ADDRESS_H_
#define KILN_SRC_SOFT_ENGINE_SOFT_ADDRESS_H_

#include "soft/code/soft_engine.h"

// An access of a warp. one-thread
typedef struct kilni_soft_address_t {
  uint32_t space;  // kilni_soft_space_t
  uint32_t bytes;  // of a lane
  uint64_t lane[KILNI_SOFT_LANES];
} kilni_soft_address_t;

// Where the lanes of `exec` access memory; false if the instruction does not.
// Not known of matrices and asynchronous copies.
bool kilni_soft_address_find(const kilni_soft_warp_t* warp,
                             const kilni_soft_instr_t* instr, uint32_t exec,
                             kilni_soft_address_t* access);

#endif  // KILN_SRC_SOFT_ENGINE_SOFT_ADDRESS_H_
