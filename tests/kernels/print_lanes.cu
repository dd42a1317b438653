// SPDX-License-Identifier: Apache-2.0
//
// tests: printf from some lanes, from loops that run for different times, from
// a called function, and with vectors of arguments of every width.
//
// other: 12.9 compute_70
//
// run: print_lanes
// grid: 2 1 1
// block: 40 1 1
// buffer: in in i32 80 small 611
// buffer: out out i32 80
// prints: 93
extern "C" int printf(const char*, ...);

__device__ __noinline__ int report(const char* what, long long value) {
  return printf("%s is %lld\n", what, value);
}

extern "C" __global__ void print_lanes(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lines = 0;
  if (threadIdx.x % 8 == 3) {
    lines += report(in[i] < 0 ? "below" : "above", in[i]) == 2;
  }
  for (int n = 0; n < i % 5; ++n) {
    if (i % 10 < 5) {
      printf("turn %d of %d: %c %u %x\n", n, i, 'a' + n, 7u << n, i * n);
      ++lines;
    }
  }
  if (i == 17) {
    printf("%d %lld %f %g %s %c %p\n", -1, -2LL, 3.5, (double)2.25f, "four",
           '5', (void*)0x6000);
    ++lines;
  }
  if (threadIdx.x == 39) {
    printf("last\n");
    ++lines;
  }
  out[i] = lines;
}
