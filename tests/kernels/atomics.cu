// SPDX-License-Identifier: Apache-2.0
//
// tests: atomics on global and shared memory, all operations, and loops on
// compare-and-swap. What depends on the order of threads is not stored.
//
// other: 12.9 compute_70
//
// run: atomics
// grid: 4 1 1
// block: 128 1 1
// buffer: in in i32 512 bits 51
// buffer: words inout u32 32 zero 0
// buffer: wide inout u64 16 zero 0
// buffer: sums inout f32 4 zero 0
// buffer: totals inout f64 4 zero 0
//
// run: shared_atomics
// grid: 3 1 1
// block: 192 1 1
// buffer: in in u32 576 bits 52
// buffer: bins inout u32 64 zero 0
// buffer: out out u32 24
extern "C" __global__ void atomics(const int* in, unsigned* words,
                                   unsigned long long* wide, float* sums,
                                   double* totals) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = in[i];
  int* s = (int*)words;
  atomicAdd(&words[0], (unsigned)x);
  atomicSub(&words[1], (unsigned)x);
  atomicMin(&s[2], x);
  atomicMax(&s[3], x);
  atomicMin(&words[4], (unsigned)x | 1);
  atomicMax(&words[5], (unsigned)x);
  atomicOr(&words[6], (unsigned)x & 0x0ff00ff0);
  atomicXor(&words[7], (unsigned)x);
  if (i == 0) words[8] = 0xffffffffu;
  __threadfence();
  atomicInc(&words[9], 99);
  atomicDec(&words[10], 49);
  atomicAdd_block(&words[11], 1u);
  atomicAdd_system(&words[12], 3u);
  // Whatever the order, the first to exchange gets 0 and the others get 7.
  unsigned old = atomicExch(&words[13], 7u);
  atomicAdd(&words[14], old);
  // A lock-free multiplication.
  unsigned seen = words[15];
  unsigned want;
  do {
    want = seen;
    seen = atomicCAS(&words[15], want, want * 3 + 1);
  } while (seen != want);
  atomicAdd(&wide[0], (unsigned long long)(unsigned)x << 20);
  atomicMin((long long*)&wide[1], (long long)x * x * (x < 0 ? -1 : 1));
  atomicMax((long long*)&wide[2], (long long)x * 5);
  atomicAnd(&wide[3], 0ull);
  atomicOr(&wide[4], 1ull << (i & 63));
  atomicXor(&wide[5], (unsigned long long)x * 0x9e3779b97f4a7c15ull);
  unsigned long long before = wide[6];
  unsigned long long now;
  do {
    now = before;
    before = atomicCAS(&wide[6], now, now + 2 * i + 1);
  } while (before != now);
  atomicExch(&wide[7], 42ull);
  // Small integers: exact in any order.
  atomicAdd(&sums[0], (float)(x & 15));
  atomicAdd(&totals[0], (double)(x & 1023));
}

extern "C" __global__ void shared_atomics(const unsigned* in, unsigned* bins,
                                          unsigned* out) {
  __shared__ unsigned local[32];
  __shared__ unsigned long long wide[2];
  __shared__ float sum;
  __shared__ int low;
  if (threadIdx.x < 32) local[threadIdx.x] = 0;
  if (threadIdx.x < 2) wide[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    sum = 0;
    low = 0x7fffffff;
  }
  __syncthreads();
  unsigned x = in[blockIdx.x * blockDim.x + threadIdx.x];
  unsigned rank = atomicAdd(&local[x & 31], 1u);
  atomicAdd(&wide[0], (unsigned long long)x);
  atomicMax(&wide[1], (unsigned long long)x << 8);
  atomicAdd(&sum, (float)(x & 7));
  atomicMin(&low, (int)x);
  unsigned seen = local[31];
  while (rank == 0 && (x & 31) == 31) {
    unsigned was = atomicCAS(&local[31], seen, seen);
    if (was == seen) break;
    seen = was;
  }
  __syncthreads();
  if (threadIdx.x < 32) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
  if (threadIdx.x == 0) {
    unsigned* o = out + blockIdx.x * 8;
    o[0] = (unsigned)wide[0];
    o[1] = (unsigned)(wide[0] >> 32);
    o[2] = (unsigned)wide[1];
    o[3] = (unsigned)(wide[1] >> 32);
    o[4] = (unsigned)sum;
    o[5] = (unsigned)low;
    atomicAnd(&bins[32], 0xffu);
    atomicExch(&bins[33], 7u);
  }
}
