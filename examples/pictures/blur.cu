// SPDX-License-Identifier: Apache-2.0
//
// examples: Gaussian blur of a gray picture, through shared memory.
//
//   0 gray     in   u8[h,w]
//   1 blurred  out  u8[h,w]
//   2 width
//   3 height
//
// A block of 16 by 16 threads loads its tile with two pixels around it, then
// weighs 5 by 5 of them by the binomial row 1 4 6 4 1 in both directions. Over
// the picture's edge the nearest pixel counts.
#define TILE   16
#define RADIUS 2
#define SIDE   (TILE + 2 * RADIUS)

static __device__ int clamp(int value, int most) {
  return value < 0 ? 0 : value > most ? most : value;
}

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    blur(const unsigned char *gray, unsigned char *blurred, int width,
         int height) {
  __shared__ int tile[SIDE][SIDE];
  __shared__ int rows[SIDE][TILE];
  int left = (int)blockIdx.x * TILE - RADIUS;
  int top = (int)blockIdx.y * TILE - RADIUS;
  int me = (int)threadIdx.y * TILE + (int)threadIdx.x;
  for (int i = me; i < SIDE * SIDE; i += TILE * TILE) {
    int x = clamp(left + i % SIDE, width - 1);
    int y = clamp(top + i / SIDE, height - 1);
    tile[i / SIDE][i % SIDE] = gray[y * width + x];
  }
  __syncthreads();
  for (int i = me; i < SIDE * TILE; i += TILE * TILE) {
    const int *t = &tile[i / TILE][i % TILE];
    rows[i / TILE][i % TILE] = t[0] + 4 * t[1] + 6 * t[2] + 4 * t[3] + t[4];
  }
  __syncthreads();
  int x = (int)blockIdx.x * TILE + (int)threadIdx.x;
  int y = (int)blockIdx.y * TILE + (int)threadIdx.y;
  if (x >= width || y >= height) return;
  int c = (int)threadIdx.x;
  int r = (int)threadIdx.y;
  int sum = rows[r][c] + 4 * rows[r + 1][c] + 6 * rows[r + 2][c] +
            4 * rows[r + 3][c] + rows[r + 4][c];
  blurred[y * width + x] = (unsigned char)((sum + 128) >> 8);
}
