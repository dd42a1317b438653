// SPDX-License-Identifier: Apache-2.0
//
// tests: a barrier of the whole grid in a cooperative launch: steps of a
// relaxation over all blocks, each step reading what others wrote.
//
// other: 12.9 compute_70
//
// run: relax
// grid: 8 1 1
// block: 64 1 1
// also: 4 1 1 128 1 1
// also: 40 1 1 32 1 1
// cooperative: yes
// buffer: cells inout u32 512 bits 721
// buffer: other inout u32 512 zero 0
// scalar: count u32 512
// scalar: steps u32 12
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void relax(unsigned* cells, unsigned* other,
                                 unsigned count, unsigned steps) {
  cg::grid_group grid = cg::this_grid();
  unsigned* from = cells;
  unsigned* to = other;
  for (unsigned s = 0; s < steps; ++s) {
    for (unsigned i = (unsigned)grid.thread_rank(); i < count;
         i += (unsigned)grid.size()) {
      unsigned left = ((volatile unsigned*)from)[i == 0 ? count - 1 : i - 1];
      unsigned right = ((volatile unsigned*)from)[i + 1 == count ? 0 : i + 1];
      to[i] = (left ^ right) * 3 + from[i];
    }
    grid.sync();
    unsigned* t = from;
    from = to;
    to = t;
  }
}
