// SPDX-License-Identifier: Apache-2.0
//
// tests: every atomic of integers in every scope: block, device and system; on
// shared and on global memory, 32 and 64 bits, signed and not.
//
// other: 12.9 compute_70
//
// run: scopes
// grid: 4 1 1
// block: 64 1 1
// also: 8 1 1 32 1 1
// also: 2 1 1 128 1 1
// buffer: in in u32 256 bits 731
// buffer: words inout u32 64 bits 732
// buffer: wide inout u64 16 bits 733
// buffer: free inout u32 4 zero 0
// buffer: free_wide inout u64 2 zero 0
//
// run: by_block
// grid: 4 1 1
// block: 64 1 1
// buffer: in in u32 256 bits 734
// buffer: words inout u32 48 bits 735
// buffer: wide inout u64 16 bits 736
typedef unsigned long long u64;

extern "C" __global__ void scopes(const unsigned* in, unsigned* w, u64* v,
                                  unsigned* free, u64* free_wide) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = in[i];
  int* s = (int*)w;
  long long* sv = (long long*)v;
  u64 y = (u64)x * 0x9e3779b97f4a7c15ull;
  atomicAdd(&w[0], x);
  atomicAdd_system(&w[1], x);
  atomicAdd(&s[2], -(int)x);
  atomicSub(&w[3], x);
  atomicSub_system(&s[4], (int)x);
  atomicMin(&s[5], (int)x);
  atomicMin_system(&w[6], x);
  atomicMax(&s[7], (int)x);
  atomicMax_system(&w[8], x);
  atomicAnd(&w[9], x | 0xffff);
  atomicAnd_system(&s[10], (int)x | 0xff);
  atomicOr(&w[11], x & 0x11111111);
  atomicOr_system(&s[12], (int)x & 0x10101);
  atomicXor(&w[13], x);
  atomicXor_system(&s[14], (int)x);
  atomicExch(&w[15], 77u);
  atomicExch_system(&s[16], -77);
  // From whatever it holds, 256 turns of a wheel of 10 bring it into range.
  atomicInc(&w[17], 9u);
  atomicDec(&w[18], 9u);
  atomicInc_system(&w[19], 0xffffffffu);
  atomicDec_system(&w[20], 0xffffffffu);
  // Only one thread can find what was there.
  if (atomicCAS(&free[0], 0u, 1000u) == 0) atomicAdd(&free[1], 1u);
  if (atomicCAS_system((int*)&free[2], 0, -5) == 0) atomicSub(&free[3], 1u);
  atomicAdd(&v[0], y);
  atomicAdd_system(&v[1], y);
  atomicMin(&v[2], y);
  atomicMin_system(&sv[3], (long long)y);
  atomicMax(&sv[4], (long long)y);
  atomicMax_system(&v[5], y);
  atomicAnd(&v[6], y | 0xffffffffull);
  atomicOr_system(&v[7], y & 0x0101010101010101ull);
  atomicXor(&v[8], y);
  atomicExch(&v[9], 0x123456789abcull);
  if (atomicCAS(&free_wide[0], 0ull, 9ull << 40) == 0) {
    atomicAdd(&free_wide[1], 1ull << 50);
  }
}

// Blocks have words of their own; the last 32 words copy what shared memory
// holds in the end.
extern "C" __global__ void by_block(const unsigned* in, unsigned* words,
                                    u64* wide) {
  __shared__ unsigned local[8];
  __shared__ u64 local_wide[4];
  unsigned b = blockIdx.x;
  unsigned t = threadIdx.x;
  if (t < 8) local[t] = t < 4 ? 0 : 0xffffffffu;
  if (t < 4) local_wide[t] = t < 2 ? 0 : ~0ull;
  __syncthreads();
  unsigned x = in[b * 64 + t];
  u64 y = (u64)x << 17 ^ x;
  unsigned* w = words + b * 4;
  atomicAdd_block(&w[0], x);
  atomicMax_block((int*)&w[1], (int)x);
  atomicXor_block(&w[2], x);
  atomicInc_block(&w[3], 0xffffffffu);
  atomicAdd_block(&local[0], x);
  atomicMax_block(&local[1], x);
  atomicOr_block(&local[2], x & 0x00ff00ffu);
  atomicInc(&local[3], 50u);
  atomicAnd_block(&local[4], x | 0xffu);
  atomicMin_block((int*)&local[5], (int)x);
  atomicSub(&local[6], x);
  atomicDec_block(&local[7], 60u);
  atomicAdd_block(&local_wide[0], y);
  atomicMax(&local_wide[1], y);
  atomicMin_block(&local_wide[2], y);
  atomicAnd(&local_wide[3], y | 0xfff);
  __syncthreads();
  if (t < 8) words[16 + b * 8 + t] = local[t];
  if (t < 4) wide[b * 4 + t] = local_wide[t];
}
