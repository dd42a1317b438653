// SPDX-License-Identifier: Apache-2.0
//
// tests: reductions and scans of cooperative groups: sums, extremes and bits,
// over tiles and over a group by label; of 64-bit integers and of floats that
// are exact in any order.
//
// other: 13.5 compute_80
//
// run: reduce
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: in in i32 128 small 711
// buffer: out out i32 1024
// buffer: wide out i64 128
//
// run: scans
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: in in i32 128 small 712
// buffer: out out i32 384
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void reduce(const int* in, int* out, long long* wide) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<16> half = cg::tiled_partition<16>(block);
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = in[i];
  int* o = out + i * 8;
  o[0] = cg::reduce(warp, x, cg::plus<int>());
  o[1] = cg::reduce(half, x, cg::less<int>());
  o[2] = cg::reduce(half, x, cg::greater<int>());
  o[3] = (int)cg::reduce(warp, (unsigned)x, cg::bit_and<unsigned>());
  o[4] = (int)cg::reduce(half, (unsigned)x, cg::bit_xor<unsigned>());
  o[5] = (int)cg::reduce(half, (float)x, cg::plus<float>());
  cg::coalesced_group same = cg::labeled_partition(warp, (unsigned)x & 1);
  o[6] = cg::reduce(same, x, cg::plus<int>());
  o[7] = cg::reduce(half, x, [](int a, int b) { return a > b ? a : b; });
  wide[i] = cg::reduce(warp, (long long)x << 33, cg::plus<long long>());
}

extern "C" __global__ void scans(const int* in, int* out) {
  cg::thread_block_tile<32> warp =
      cg::tiled_partition<32>(cg::this_thread_block());
  cg::thread_block_tile<8> eight = cg::tiled_partition<8>(warp);
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i * 3] = cg::inclusive_scan(warp, in[i], cg::plus<int>());
  out[i * 3 + 1] = cg::exclusive_scan(eight, in[i], cg::plus<int>());
  out[i * 3 + 2] = cg::inclusive_scan(eight, in[i], cg::greater<int>());
}
