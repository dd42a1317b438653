// SPDX-License-Identifier: Apache-2.0
//
// tests: cooperative groups of part of a block: tiles of several sizes, ranks,
// shuffles and votes in them, lanes that came together in a branch, and groups
// by label.
//
// other: 12.9 compute_70
//
// run: tiles
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// also: 1 1 1 128 1 1
// buffer: in in i32 128 small 701
// buffer: out out i32 1024
//
// run: together
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: in in i32 128 small 702
// buffer: out out u32 512
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

template <unsigned Size>
__device__ static int sum_of(cg::thread_block_tile<Size> tile, int x) {
  for (unsigned d = Size / 2; d > 0; d /= 2) x += tile.shfl_xor(x, d);
  return x;
}

extern "C" __global__ void tiles(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  unsigned i = blockIdx.x * blockDim.x + block.thread_rank();
  int x = in[i];
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<8> eight = cg::tiled_partition<8>(warp);
  cg::thread_block_tile<4> four = cg::tiled_partition<4>(eight);
  int* o = out + i * 8;
  o[0] = sum_of(warp, x);
  o[1] = sum_of(eight, x) * 100 + eight.thread_rank();
  o[2] = sum_of(four, x) * 100 + four.meta_group_rank();
  o[3] = eight.shfl(x, 5);
  o[4] = eight.shfl_up(x, 2);
  o[5] = (int)eight.ballot(x > 0);
  o[6] = four.any(x > 50) * 2 + four.all(x > -50);
  block.sync();
  o[7] = (int)four.match_any(x & 3) + (int)warp.size() * 256;
}

extern "C" __global__ void together(const int* in, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  cg::thread_block_tile<32> warp =
      cg::tiled_partition<32>(cg::this_thread_block());
  int x = in[i];
  unsigned* o = out + i * 4;
  cg::coalesced_group half = cg::binary_partition(warp, x > 0);
  o[0] = half.size() * 64 + half.thread_rank();
  o[1] = (unsigned)half.shfl(x, 0);
  cg::coalesced_group same = cg::labeled_partition(warp, x & 3);
  o[2] = same.size() * 64 + same.thread_rank();
  if (x & 1) {
    // How many of the odd lanes come together is open; that the group has this
    // lane, and counts itself, is not.
    cg::coalesced_group here = cg::coalesced_threads();
    unsigned count = __popc(here.ballot(1));
    o[3] = (count == here.size()) + 2 * (here.thread_rank() < here.size()) +
           4 * (here.shfl(x, here.thread_rank()) == x);
  }
}
