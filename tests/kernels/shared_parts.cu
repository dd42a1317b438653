// SPDX-License-Identifier: Apache-2.0
//
// tests: one piece of dynamic shared memory cut into arrays of several types at
// places known at run time, beside static shared memory.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: parts
// grid: 3 1 1
// block: 96 1 1
// also: 3 1 1 32 1 1
// also: 3 1 1 64 1 1
// shared: 4096
// buffer: in in u32 288 bits 621
// buffer: out out f64 288
// scalar: size u32 96
extern "C" __global__ void parts(const unsigned* in, double* out,
                                 unsigned size) {
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ unsigned most;
  double* reals = (double*)room;
  unsigned* words = (unsigned*)(reals + size);
  unsigned short* halves = (unsigned short*)(words + size);
  unsigned char* bytes = (unsigned char*)(halves + size);
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  for (unsigned t = threadIdx.x; t < size; t += blockDim.x) {
    unsigned x = in[blockIdx.x * size + t];
    reals[t] = x * 0.5;
    words[t] = x ^ 0xffff;
    halves[t] = (unsigned short)(x >> 3);
    bytes[t] = (unsigned char)(x >> 11);
    atomicMax(&most, x);
  }
  __syncthreads();
  for (unsigned t = threadIdx.x; t < size; t += blockDim.x) {
    unsigned u = (t * 5 + 1) % size;
    out[blockIdx.x * size + t] =
        reals[u] + words[size - 1 - t] * 3.0 - halves[(t + 7) % size] -
        bytes[u / 2] * 256.0 + most;
  }
}
