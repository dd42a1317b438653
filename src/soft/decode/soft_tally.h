// SPDX-License-Identifier: Apache-2.0
//
// soft: the tallies of a function while it is written out.
#ifndef KILN_SRC_SOFT_DECODE_SOFT_TALLY_H_
#define KILN_SRC_SOFT_DECODE_SOFT_TALLY_H_

#include "soft/decode/soft_lower.h"

// Those of the code so far; from `open` on they belong to no instruction yet.
// one-thread
typedef struct kilni_soft_tallies_t {
  kilni_soft_tally_t* all;
  size_t capacity;
  uint32_t count;
  uint32_t open;
} kilni_soft_tallies_t;

// Gives the operation `first`, which represents a PTX instruction, the class of
// what was made from that.
void kilni_soft_tally_name(kilni_soft_lower_t* lower, size_t first);

kiln_status_t kilni_soft_tally_init(kilni_soft_lower_t* lower,
                                    size_t instructions,
                                    kilni_soft_tallies_t* out_tallies);
void kilni_soft_tally_deinit(kilni_soft_lower_t* lower,
                             kilni_soft_tallies_t* tallies);
void kilni_soft_tally_add(kilni_soft_tallies_t* tallies, uint32_t class_,
                          uint32_t count);
void kilni_soft_tally_guarded(kilni_soft_tallies_t* tallies,
                              const kilni_soft_lower_t* lower, uint32_t at,
                              uint32_t last);

#endif  // KILN_SRC_SOFT_DECODE_SOFT_TALLY_H_
