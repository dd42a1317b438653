// SPDX-License-Identifier: Apache-2.0
//
// tests: barriers by number, with a count: producers that only arrive and
// consumers that wait, a ring of two buffers, and halves of a block that keep
// their own time.
//
// other: 12.9 compute_75
//
// run: ring
// grid: 2 1 1
// block: 64 1 1
// buffer: in in u32 512 bits 541
// buffer: out out u32 512
//
// run: halves
// grid: 2 1 1
// block: 128 1 1
// buffer: out out u32 256
__device__ static void wait_at(int number, int count) {
  asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(count) : "memory");
}
__device__ static void arrive_at(int number, int count) {
  asm volatile("bar.arrive %0, %1;" : : "r"(number), "r"(count) : "memory");
}

// Warp 0 fills, warp 1 empties: barriers 1 and 2 say full, 3 and 4 say empty.
extern "C" __global__ void ring(const unsigned* in, unsigned* out) {
  __shared__ unsigned buffer[2][32];
  unsigned lane = threadIdx.x & 31;
  unsigned base = blockIdx.x * 256;
  if (threadIdx.x < 32) {
    for (int n = 0; n < 8; ++n) {
      if (n >= 2) wait_at(3 + (n & 1), 64);
      buffer[n & 1][lane] = in[base + n * 32 + lane] * 3;
      __threadfence_block();
      arrive_at(1 + (n & 1), 64);
    }
  } else {
    for (int n = 0; n < 8; ++n) {
      wait_at(1 + (n & 1), 64);
      out[base + n * 32 + lane] = buffer[n & 1][31 - lane] + n;
      if (n < 6) arrive_at(3 + (n & 1), 64);
    }
  }
}

// The halves pass their barrier a different number of times.
extern "C" __global__ void halves(unsigned* out) {
  __shared__ unsigned s[128];
  unsigned t = threadIdx.x;
  unsigned half = t / 64;
  s[t] = t + blockIdx.x;
  unsigned value = 0;
  for (unsigned n = 0; n < 3 + half * 4; ++n) {
    wait_at(5 + half, 64);
    value = s[half * 64 + (t + n + 1) % 64];
    wait_at(5 + half, 64);
    s[t] = value + n;
  }
  __syncthreads();
  out[blockIdx.x * 128 + t] = s[127 - t] + value;
}
