// SPDX-License-Identifier: Apache-2.0
//
// tests: votes, match, reductions in hardware and the active mask.
//
// other: 13.5 compute_80
//
// run: votes
// grid: 2 1 1
// block: 64 1 1
// buffer: in in i32 128 small 41
// buffer: out out u32 2048
#define FULL 0xffffffffu

extern "C" __global__ void votes(const int* in, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  int x = in[i];
  unsigned* o = out + i * 16;
  o[0] = __ballot_sync(FULL, x > 0);
  o[1] = __any_sync(FULL, x == 77);
  o[2] = __all_sync(FULL, x < 101);
  o[3] = __match_any_sync(FULL, x & 7);
  int same;
  o[4] = __match_all_sync(FULL, x < 1000, &same);
  o[4] += same;
  o[5] = __match_all_sync(FULL, x, &same);
  o[5] += same * 2;
  o[6] = __match_any_sync(FULL, (unsigned long long)(x & 3) << 40);
  o[7] = __reduce_add_sync(FULL, x);
  o[8] = __reduce_min_sync(FULL, x);
  o[9] = __reduce_max_sync(FULL, (unsigned)x);
  o[10] = __reduce_and_sync(FULL, (unsigned)x | lane);
  o[11] = __reduce_or_sync(FULL, (unsigned)x & 0xf0u);
  o[12] = __reduce_xor_sync(FULL, (unsigned)x * 2654435761u);
  if (lane < 11) {
    // The mask is named, so that it does not matter how lanes are scheduled.
    o[13] = __ballot_sync(0x7ffu, x & 1);
    o[14] = __reduce_add_sync(0x7ffu, 1u << lane);
    __syncwarp(0x7ffu);
  } else {
    o[13] = __ballot_sync(~0x7ffu, x & 2);
    o[14] = __match_any_sync(~0x7ffu, lane / 4);
    __syncwarp(~0x7ffu);
  }
  __syncwarp();
  // All that is defined of the active mask: it holds the lane itself.
  o[15] = (__activemask() >> lane) & 1;
}
