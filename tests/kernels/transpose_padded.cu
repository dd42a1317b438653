// SPDX-License-Identifier: Apache-2.0
//
// tests: a transpose of a matrix that fits no tile, with a column of padding
// in shared memory; of words and, four at a time, of bytes.
//
// other: 13.5 compute_80
//
// run: transpose
// grid: 3 4 1
// block: 32 8 1
// also: 3 4 1 32 32 1
// also: 3 4 1 32 1 1
// buffer: in in u64 9494 bits 441
// buffer: out out u64 9494
// scalar: width i32 94
// scalar: height i32 101
//
// run: transpose_bytes
// grid: 4 4 1
// block: 8 8 1
// buffer: in in u8 16384 bits 442
// buffer: out out u8 16384
// scalar: side i32 128
extern "C" __global__ void transpose(const unsigned long long* in,
                                     unsigned long long* out, int width,
                                     int height) {
  __shared__ unsigned long long tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += blockDim.y) {
    int y = blockIdx.y * 32 + j;
    if (x < width && y < height) tile[j][threadIdx.x] = in[y * width + x];
  }
  __syncthreads();
  int y = blockIdx.y * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += blockDim.y) {
    int column = blockIdx.x * 32 + j;
    if (column < width && y < height) {
      out[column * height + y] = tile[threadIdx.x][j];
    }
  }
}

// Each thread turns four by four bytes round in registers.
extern "C" __global__ void transpose_bytes(const unsigned char* in,
                                           unsigned char* out, int side) {
  int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  int y = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
  unsigned r[4];
  for (int i = 0; i < 4; ++i) {
    r[i] = *(const unsigned*)&in[(y + i) * side + x];
  }
  unsigned ab = __byte_perm(r[0], r[1], 0x5140);
  unsigned cd = __byte_perm(r[2], r[3], 0x5140);
  unsigned ef = __byte_perm(r[0], r[1], 0x7362);
  unsigned gh = __byte_perm(r[2], r[3], 0x7362);
  *(unsigned*)&out[x * side + y] = __byte_perm(ab, cd, 0x5410);
  *(unsigned*)&out[(x + 1) * side + y] = __byte_perm(ab, cd, 0x7632);
  *(unsigned*)&out[(x + 2) * side + y] = __byte_perm(ef, gh, 0x5410);
  *(unsigned*)&out[(x + 3) * side + y] = __byte_perm(ef, gh, 0x7632);
}
