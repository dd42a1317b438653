// SPDX-License-Identifier: Apache-2.0
//
// tests: a scan in one pass: a block takes a ticket, publishes its sum, and
// looks back over the blocks before it, which may still run. It needs blocks
// that wait for blocks with a lower ticket to come to an end.
//
// other: 12.9 compute_70
//
// run: look_back
// grid: 24 1 1
// block: 128 1 1
// also: 48 1 1 64 1 1
// also: 96 1 1 32 1 1
// also: 12 1 1 256 1 1
// buffer: in in u32 3072 bits 331
// buffer: out out u64 3072
// buffer: ticket inout u32 1 zero 0
// buffer: state inout u64 96 zero 0
//
// run: chained
// grid: 32 1 1
// block: 32 1 1
// also: 16 1 1 64 1 1
// buffer: in in i32 1024 small 332
// buffer: out out i32 1024
// buffer: ticket inout u32 1 zero 0
// buffer: ready inout u32 32 zero 0
// buffer: prefix inout i32 32 zero 0
#define FULL 0xffffffffu
#define HAS_SUM 1ull
#define HAS_PREFIX 2ull

__device__ static unsigned long long warp_scan(unsigned long long x) {
  for (unsigned d = 1; d < 32; d *= 2) {
    unsigned long long y = __shfl_up_sync(FULL, x, d);
    if ((threadIdx.x & 31) >= d) x += y;
  }
  return x;
}

// A word for each ticket: what is known of it in the low bits, the value above.
extern "C" __global__ void look_back(const unsigned* in,
                                     unsigned long long* out, unsigned* ticket,
                                     unsigned long long* state) {
  __shared__ unsigned mine;
  __shared__ unsigned long long sums[32];
  __shared__ unsigned long long before;
  if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
  __syncthreads();
  unsigned i = mine * blockDim.x + threadIdx.x;
  unsigned warp = threadIdx.x / 32;
  unsigned long long x = warp_scan(in[i]);
  if ((threadIdx.x & 31) == 31) sums[warp] = x;
  __syncthreads();
  unsigned long long total = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) {
    if (w < warp) x += sums[w];
    total += sums[w];
  }
  if (threadIdx.x == 0) {
    unsigned long long sum = 0;
    volatile unsigned long long* seen = state;
    if (mine > 0) {
      seen[mine] = total << 2 | HAS_SUM;
      for (unsigned at = mine - 1;;) {
        unsigned long long word = seen[at];
        if ((word & 3) == 0) continue;
        sum += word >> 2;
        if (word & HAS_PREFIX) break;
        --at;
      }
    }
    seen[mine] = (sum + total) << 2 | HAS_PREFIX;
    before = sum;
  }
  __syncthreads();
  out[i] = x + before;
}

// The plainest chain: block after block, with a fence between value and flag.
extern "C" __global__ void chained(const int* in, int* out, unsigned* ticket,
                                   unsigned* ready, int* prefix) {
  __shared__ unsigned mine;
  __shared__ int before;
  __shared__ int values[64];
  if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
  __syncthreads();
  unsigned i = mine * blockDim.x + threadIdx.x;
  values[threadIdx.x] = in[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned t = 1; t < blockDim.x; ++t) values[t] += values[t - 1];
    if (mine > 0) {
      while (atomicAdd(&ready[mine - 1], 0u) == 0) {
      }
      __threadfence();
    }
    before = mine > 0 ? ((volatile int*)prefix)[mine - 1] : 0;
    ((volatile int*)prefix)[mine] = before + values[blockDim.x - 1];
    __threadfence();
    atomicExch(&ready[mine], 1u);
  }
  __syncthreads();
  out[i] = before + values[threadIdx.x];
}
