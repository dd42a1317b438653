// SPDX-License-Identifier: Apache-2.0
//
// tests: structs as parameters and results of functions that are called, not
// inlined, and that index them at places known only at run time.
//
// other: 12.9 compute_70
//
// run: structs
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: in in u32 512 bits 801
// buffer: out out u32 512
struct four {
  unsigned v[4];
};
struct table {
  unsigned rows[16][4];
  unsigned short order[4];
};

// The table is too large to be copied: its address is taken where it lies.
__device__ __noinline__ four shuffled(four x, table t) {
  four result;
  for (int n = 0; n < 4; ++n) {
    t.order[x.v[n] & 3] += n;
    result.v[n] = x.v[t.order[n] & 3] + t.rows[x.v[0] & 15][n];
  }
  return result;
}

extern "C" __global__ void structs(const uint4* in, uint4* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 w = in[i];
  four x = {{w.x, w.y, w.z, w.w}};
  table t;
  for (int n = 0; n < 64; ++n) t.rows[n / 4][n % 4] = x.v[n % 4] >> n / 3;
  for (int n = 0; n < 4; ++n) t.order[n] = (unsigned short)(x.v[n] >> 7);
  four y = shuffled(x, t);
  four z = shuffled(y, t);
  out[i] = make_uint4(y.v[0] ^ z.v[3], y.v[1] + z.v[2], z.v[1], z.v[0]);
}
