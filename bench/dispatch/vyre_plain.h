// SPDX-License-Identifier: Apache-2.0
//
// bench: vyre's release workloads in plain C, for one thread: what the programs
// under vyre/ must give, and what their times stand beside. Compiled with -O2.
// Nothing is allocated and no input is made here.
#ifndef KILN_BENCH_DISPATCH_VYRE_PLAIN_H_
#define KILN_BENCH_DISPATCH_VYRE_PLAIN_H_

#include <stdint.h>

// Of three masks a record, by how they meet: the records that count.
uint32_t vyre_masks_all(const uint32_t* const* in, uint32_t records);
uint32_t vyre_masks_window(const uint32_t* const* in, uint32_t records);
uint32_t vyre_masks_quantified(const uint32_t* const* in, uint32_t records);
uint32_t vyre_masks_killed(const uint32_t* const* in, uint32_t records);
uint32_t vyre_metadata(const uint32_t* const* in, uint32_t records);
uint32_t vyre_compaction(const uint32_t* const* in, uint32_t records);

// Those with an output of more than a word, which is zero before the first two.
void vyre_scatter(const uint32_t* const* in, uint32_t records, uint32_t* out);
void vyre_callgraph(const uint32_t* const* in, uint32_t nodes, uint32_t* out);
void vyre_filter(const uint32_t* const* in, uint32_t records, uint32_t* out);
void vyre_routing(const uint32_t* const* in, uint32_t records, uint32_t* out);
// x, weights, scales, zeros, bias; f32 by their bits.
void vyre_linear(const uint32_t* const* in, uint32_t inputs, uint32_t outputs,
                 uint32_t* out);

#endif  // KILN_BENCH_DISPATCH_VYRE_PLAIN_H_
