// SPDX-License-Identifier: Apache-2.0
//
// tests: a Fourier transform of 64 points, radix 2 in shared memory, its roots
// of unity a table in constant memory; and one over a prime field, which is
// exact.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: fft
// grid: 4 1 1
// block: 32 1 1
// also: 4 1 1 16 1 1
// buffer: data inout f32 512 unit 461
//
// run: field
// grid: 2 1 1
// block: 128 1 1
// also: 2 1 1 32 1 1
// buffer: data inout u32 512 bits 462
__constant__ float2 roots[32] = {
    {1.000000000f, 0.000000000f}, {0.995184727f, -0.098017140f},
    {0.980785280f, -0.195090322f}, {0.956940336f, -0.290284677f},
    {0.923879533f, -0.382683432f}, {0.881921264f, -0.471396737f},
    {0.831469612f, -0.555570233f}, {0.773010453f, -0.634393284f},
    {0.707106781f, -0.707106781f}, {0.634393284f, -0.773010453f},
    {0.555570233f, -0.831469612f}, {0.471396737f, -0.881921264f},
    {0.382683432f, -0.923879533f}, {0.290284677f, -0.956940336f},
    {0.195090322f, -0.980785280f}, {0.098017140f, -0.995184727f},
    {0.000000000f, -1.000000000f}, {-0.098017140f, -0.995184727f},
    {-0.195090322f, -0.980785280f}, {-0.290284677f, -0.956940336f},
    {-0.382683432f, -0.923879533f}, {-0.471396737f, -0.881921264f},
    {-0.555570233f, -0.831469612f}, {-0.634393284f, -0.773010453f},
    {-0.707106781f, -0.707106781f}, {-0.773010453f, -0.634393284f},
    {-0.831469612f, -0.555570233f}, {-0.881921264f, -0.471396737f},
    {-0.923879533f, -0.382683432f}, {-0.956940336f, -0.290284677f},
    {-0.980785280f, -0.195090322f}, {-0.995184727f, -0.098017140f}};

// Place of point i when its bits are read backwards.
__device__ static unsigned mirror(unsigned i, int bits) {
  return __brev(i) >> (32 - bits);
}

extern "C" __global__ void fft(float2* data) {
  __shared__ float2 s[64];
  float2* mine = data + blockIdx.x * 64;
  for (unsigned i = threadIdx.x; i < 64; i += blockDim.x) {
    s[mirror(i, 6)] = mine[i];
  }
  for (unsigned half = 1; half < 64; half *= 2) {
    __syncthreads();
    for (unsigned k = threadIdx.x; k < 32; k += blockDim.x) {
      unsigned in = k % half;
      unsigned at = k / half * half * 2 + in;
      float2 w = roots[in * (32 / half)];
      float2 a = s[at];
      float2 b = s[at + half];
      float re = b.x * w.x - b.y * w.y;
      float im = b.x * w.y + b.y * w.x;
      s[at] = make_float2(a.x + re, a.y + im);
      s[at + half] = make_float2(a.x - re, a.y - im);
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 64; i += blockDim.x) mine[i] = s[i];
}

#define PRIME 998244353u  // 119 * 2^23 + 1; 3 generates its units

__device__ static unsigned times(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b % PRIME);
}

__device__ static unsigned power(unsigned base, unsigned exponent) {
  unsigned result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent & 1) result = times(result, base);
    base = times(base, base);
  }
  return result;
}

extern "C" __global__ void field(unsigned* data) {
  __shared__ unsigned s[256];
  unsigned* mine = data + blockIdx.x * 256;
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
    s[mirror(i, 8)] = mine[i] % PRIME;
  }
  for (unsigned half = 1; half < 256; half *= 2) {
    __syncthreads();
    for (unsigned k = threadIdx.x; k < 128; k += blockDim.x) {
      unsigned in = k % half;
      unsigned at = k / half * half * 2 + in;
      unsigned a = s[at];
      unsigned b = times(s[at + half], power(3, (PRIME - 1) / 2 / half * in));
      s[at] = (a + b) % PRIME;
      s[at + half] = (a + PRIME - b) % PRIME;
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = s[i];
}
