// SPDX-License-Identifier: Apache-2.0
//
// tests: arrays in local memory with computed indices, constant memory, and
// tables of addresses.
//
// other: 13.5 compute_80
//
// run: local_arrays
// grid: 2 1 1
// block: 64 1 1
// buffer: in in u8 128 bits 71
// buffer: out out u32 128
// scalar: rounds u32 40
//
// run: tables
// grid: 1 1 1
// block: 96 1 1
// buffer: in in u32 96 bits 72
// buffer: out out i64 96
struct row {
  short key;
  long long weight;
  unsigned char tag[5];
};

__constant__ unsigned primes[16] = {2,  3,  5,  7,  11, 13, 17, 19,
                                    23, 29, 31, 37, 41, 43, 47, 53};
__constant__ row rows[3] = {{-5, 1000000007LL, {1, 2, 3, 4, 5}},
                            {7, -42, {9, 8, 7, 6, 5}},
                            {300, 1LL << 40, {0, 255, 128, 127, 1}}};
__device__ int left[6] = {1, -2, 3, -4, 5, -6};
__device__ int right[6] = {10, 20, 30, 40, 50, 60};
__device__ int* halves[3] = {left, right + 2, left + 3};
__device__ const char* words[4] = {"kiln", "warp", "", "block of threads"};

extern "C" __global__ void local_arrays(const unsigned char* in, unsigned* out,
                                        unsigned rounds) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned stack[24];
  unsigned short counts[8];
  for (int k = 0; k < 24; ++k) stack[k] = k * in[i];
  for (int k = 0; k < 8; ++k) counts[k] = 0;
  unsigned at = in[i] % 24;
  for (unsigned r = 0; r < rounds; ++r) {
    unsigned next = (stack[at] + primes[r & 15]) % 24;
    stack[at] ^= stack[next] + r;
    counts[stack[at] & 7] += 1;
    at = next;
  }
  unsigned sum = 0;
  for (int k = 0; k < 24; ++k) sum = sum * 33 + stack[k];
  for (int k = 0; k < 8; ++k) sum = sum * 17 + counts[k];
  out[i] = sum;
}

extern "C" __global__ void tables(const unsigned* in, long long* out) {
  unsigned x = in[threadIdx.x];
  const row& r = rows[x % 3];
  long long sum = r.weight + r.key + r.tag[x % 5];
  sum += halves[x % 3][(x >> 8) % 3];
  const char* w = words[(x >> 4) & 3];
  for (; *w; ++w) sum = sum * 131 + *w;
  out[threadIdx.x] = sum;
}
