// SPDX-License-Identifier: Apache-2.0
//
// tests: seven points of a volume: planes in shared memory with a rim, the
// plane above and below in registers, along the third axis.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: stencil
// grid: 2 2 1
// block: 8 8 1
// also: 1 1 1 16 16 1
// also: 4 2 1 4 8 1
// buffer: in in f32 3072 wide 451
// buffer: out out f32 3072
// scalar: nx i32 16
// scalar: ny i32 16
// scalar: nz i32 12
extern "C" __global__ void stencil(const float* in, float* out, int nx, int ny,
                                   int nz) {
  __shared__ float plane[18][18];
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int sx = threadIdx.x + 1;
  int sy = threadIdx.y + 1;
  float below = 0;
  float here = in[y * nx + x];
  for (int z = 0; z < nz; ++z) {
    float above = z + 1 < nz ? in[((z + 1) * ny + y) * nx + x] : 0.0f;
    const float* row = in + (z * ny + y) * nx;
    __syncthreads();
    plane[sy][sx] = here;
    if (threadIdx.x == 0) plane[sy][0] = x > 0 ? row[x - 1] : 0.0f;
    if (threadIdx.x == blockDim.x - 1) {
      plane[sy][sx + 1] = x + 1 < nx ? row[x + 1] : 0.0f;
    }
    if (threadIdx.y == 0) plane[0][sx] = y > 0 ? row[x - nx] : 0.0f;
    if (threadIdx.y == blockDim.y - 1) {
      plane[sy + 1][sx] = y + 1 < ny ? row[x + nx] : 0.0f;
    }
    __syncthreads();
    float sides = plane[sy][sx - 1] + plane[sy][sx + 1];
    float ends = plane[sy - 1][sx] + plane[sy + 1][sx];
    out[(z * ny + y) * nx + x] =
        here * 0.4f + (sides + ends + (below + above)) * 0.1f;
    below = here;
    here = above;
  }
}
