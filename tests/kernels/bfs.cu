// SPDX-License-Identifier: Apache-2.0
//
// tests: breadth-first search: a level a turn, a queue in shared memory that
// atomics fill, until a barrier says that nothing was found.
//
// other: 12.9 compute_70
//
// run: bfs
// grid: 4 1 1
// block: 128 1 1
// also: 4 1 1 32 1 1
// also: 4 1 1 500 1 1
// buffer: edges in u32 1024 bits 381
// buffer: levels out i32 2048
// scalar: nodes u32 512
#define MOST 512

// Node n leads to two others; block b starts at node b.
extern "C" __global__ void bfs(const unsigned* edges, int* levels,
                               unsigned nodes) {
  __shared__ int level[MOST];
  __shared__ unsigned queue[2][MOST];
  __shared__ unsigned length[2];
  for (unsigned n = threadIdx.x; n < nodes; n += blockDim.x) level[n] = -1;
  __syncthreads();
  if (threadIdx.x == 0) {
    level[blockIdx.x] = 0;
    queue[0][0] = blockIdx.x;
    length[0] = 1;
  }
  int depth = 0;
  __syncthreads();
  while (length[depth & 1] != 0) {
    unsigned now = depth & 1;
    unsigned next = 1 - now;
    __syncthreads();
    if (threadIdx.x == 0) length[next] = 0;
    __syncthreads();
    for (unsigned q = threadIdx.x; q < length[now]; q += blockDim.x) {
      unsigned node = queue[now][q];
      for (unsigned e = 0; e < 2; ++e) {
        unsigned to = edges[node * 2 + e] % nodes;
        if (atomicCAS(&level[to], -1, depth + 1) == -1) {
          queue[next][atomicAdd(&length[next], 1u)] = to;
        }
      }
    }
    ++depth;
    __syncthreads();
  }
  for (unsigned n = threadIdx.x; n < nodes; n += blockDim.x) {
    levels[blockIdx.x * nodes + n] = level[n];
  }
}
