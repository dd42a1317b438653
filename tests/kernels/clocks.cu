// SPDX-License-Identifier: Apache-2.0
//
// tests: the clocks: each goes up, the timer of the whole device too, while a
// thread computes or sleeps. What they read is the device's.
//
// other: 12.9 compute_75
//
// run: clocks
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 32 1 1
// buffer: facts out u32 128
// buffer: read out u64 128
// open: read the time is the device's
extern "C" __global__ void clocks(unsigned* facts, unsigned long long* read) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  long long first = clock64();
  unsigned low = (unsigned)clock();
  unsigned long long begin;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  unsigned x = i;
  for (int n = 0; n < 100; ++n) x = x * 1664525u + 1013904223u;
  __nanosleep(x & 63);
  unsigned long long end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
  unsigned later = (unsigned)clock();
  long long last = clock64();
  facts[i] = (last > first) | (end >= begin) << 1 |
             (later - low < 0x80000000u) << 2 | (begin != 0) << 3;
  read[i] = (unsigned long long)(last - first);
}
