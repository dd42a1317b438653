// SPDX-License-Identifier: Apache-2.0
//
// tests: spin locks, which need that a waiting thread does not starve the one
// it waits for: between blocks, between lanes of one warp, and a lock by
// tickets.
//
// other: 12.9 compute_70
//
// run: between_blocks
// grid: 40 1 1
// block: 32 1 1
// also: 10 1 1 128 1 1
// buffer: lock inout u32 1 zero 0
// buffer: shared inout u32 2 zero 0
// scalar: rounds u32 3
//
// run: between_lanes
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: locks inout u32 4 zero 0
// buffer: values inout u32 8 zero 0
//
// run: tickets
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: lock inout u32 2 zero 0
// buffer: log out u32 128
// buffer: order out u32 128
// open: order in which order threads get their tickets

// One thread a block; what the lock guards is plain memory.
extern "C" __global__ void between_blocks(unsigned* lock,
                                          volatile unsigned* shared,
                                          unsigned rounds) {
  for (unsigned n = 0; n < rounds; ++n) {
    if (threadIdx.x == 0) {
      while (atomicCAS(lock, 0u, 1u) != 0) __nanosleep(20);
      __threadfence();
      unsigned was = shared[0];
      shared[1] = shared[1] + was % 7;
      shared[0] = was + 1;
      __threadfence();
      atomicExch(lock, 0u);
    }
    __syncthreads();
  }
}

extern "C" __global__ void between_lanes(unsigned* locks,
                                         volatile unsigned* values) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* lock = &locks[i % 4];
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0u, 1u) == 0) {
      __threadfence();
      values[i % 4] += i;
      values[4 + i % 4] += 1;
      __threadfence();
      atomicExch(lock, 0u);
      done = true;
    }
  }
  // The same without a way round: the loop spins by itself.
  while (atomicCAS(lock, 0u, 1u) != 0) {
  }
  __threadfence();
  values[i % 4] ^= 0x10000u << (i & 7);
  __threadfence();
  atomicExch(lock, 0u);
}

extern "C" __global__ void tickets(unsigned* lock, volatile unsigned* log,
                                   unsigned* order) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned mine = atomicAdd(&lock[0], 1u);
  order[i] = mine;
  while (atomicAdd(&lock[1], 0u) != mine) {
  }
  __threadfence();
  log[mine] = mine == 0 ? 5 : log[mine - 1] * 5 + mine;
  __threadfence();
  atomicAdd(&lock[1], 1u);
}
