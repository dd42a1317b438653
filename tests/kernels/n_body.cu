// SPDX-License-Identifier: Apache-2.0
//
// tests: one step of n bodies, tiles of positions in shared memory; square
// roots and divisions rounded as IEEE says, so that every bit is defined.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: n_body
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// also: 1 1 1 128 1 1
// buffer: bodies in f32 512 unit 401
// buffer: speeds inout f32 384 wide 402
// scalar: count i32 128
// scalar: step f32 0.0625
extern "C" __global__ void n_body(const float4* bodies, float* speeds,
                                  int count, float step) {
  __shared__ float4 tile[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = bodies[i];
  float ax = 0;
  float ay = 0;
  float az = 0;
  for (int from = 0; from < count; from += 32) {
    __syncthreads();
    if (threadIdx.x < 32) tile[threadIdx.x] = bodies[from + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 32; ++j) {
      float dx = tile[j].x - me.x;
      float dy = tile[j].y - me.y;
      float dz = tile[j].z - me.z;
      float square = dx * dx + dy * dy + dz * dz + 0.0009765625f;
      float pull = tile[j].w / (square * sqrtf(square));
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
  }
  speeds[i * 3] += ax * step;
  speeds[i * 3 + 1] += ay * step;
  speeds[i * 3 + 2] += az * step;
}
