// SPDX-License-Identifier: Apache-2.0
//
// tests: structs as parameters of a kernel, by value: small and large, read at
// places known only at run time, copied, changed and passed on.
//
// other: 12.9 compute_75
//
// run: by_value
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// struct: small u16 6 bits 581
// struct: large u32 64 bits 582
// scalar: factor i32 3
// struct: mixed u64 3 bits 583
// buffer: out out u32 384
struct small_t {
  unsigned short v[6];
};
struct large_t {
  unsigned head[4];
  unsigned table[5][12];
};
struct mixed_t {
  unsigned char a;
  unsigned short b;
  unsigned c;
  long long d;
  signed char e[8];
};

__device__ __forceinline__ unsigned weigh(large_t all, small_t few) {
  all.table[few.v[0] % 5][few.v[1] % 12] += few.v[2];
  unsigned sum = 0;
  for (int n = 0; n < 5; ++n) sum = sum * 31 + all.table[n][(few.v[3] + n) % 12];
  return sum + all.head[few.v[4] & 3];
}

extern "C" __global__ void by_value(small_t small, large_t large, int factor,
                                    mixed_t mixed, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i * 3] = large.table[i % 5][i % 12] * factor;
  small_t own = small;
  own.v[i % 6] ^= i;
  out[i * 3 + 1] = weigh(large, own);
  out[i * 3 + 2] = mixed.a + mixed.b * 3u + mixed.c * 5u +
                   (unsigned)(mixed.d >> (i & 31)) + mixed.e[i & 7];
}
