// SPDX-License-Identifier: Apache-2.0
//
// tests: match and redux of part of a warp: lanes with one key find each other
// and reduce among themselves, in code that other lanes do not run.
//
// other: 13.5 compute_80
//
// run: by_key
// grid: 2 1 1
// block: 128 1 1
// also: 8 1 1 32 1 1
// buffer: keys in u32 256 bits 551
// buffer: values in i32 256 small 552
// buffer: out out i32 1280
// buffer: totals inout i32 8 zero 0
extern "C" __global__ void by_key(const unsigned* keys, const int* values,
                                  int* out, int* totals) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  unsigned key = keys[i] & 7;
  int value = values[i];
  unsigned same = __match_any_sync(0xffffffffu, key);
  int sum = __reduce_add_sync(same, value);
  if (lane == __ffs(same) - 1) atomicAdd(&totals[key], sum);
  int* o = out + i * 5;
  o[0] = sum;
  if (key & 1) {
    unsigned odd = __ballot_sync(0xffffffffu & same, 1);
    o[1] = __reduce_min_sync(odd, value);
    o[2] = (int)__reduce_xor_sync(odd, keys[i]);
  } else {
    o[1] = __reduce_max_sync(same, value);
    o[2] = (int)__reduce_or_sync(same, keys[i] >> 8);
  }
  int all = 0;
  o[3] = (int)__match_all_sync(same, key, &all) + all;
  o[4] = __popc(same & ((1u << lane) - 1));
}
