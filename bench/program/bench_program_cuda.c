// SPDX-License-Identifier: Apache-2.0
//
// bench: the kernels of bench_program in CUDA C++, in several ways of writing
// them.
#include "bench_program_cuda.h"

#include <stdio.h>
#include <string.h>

#define ELEMENTWISE(kernel)                                                    \
  {kernel, "plain", 1, 1, 256, 1, 0}, {kernel, "plain", 1, 1, 128, 1, 0},      \
      {kernel, "plain", 1, 1, 512, 1, 0}, {kernel, "plain", 1, 1, 1024, 1, 0}, \
      {kernel, "2 elements", 2, 1, 256, 1, 0},                                 \
      {kernel, "4 elements", 4, 1, 256, 1, 0},                                 \
      {kernel, "8 elements", 8, 1, 256, 1, 0},                                 \
      {kernel, "float4", 1, 4, 128, 1, 0},                                     \
      {kernel, "float4", 1, 4, 256, 1, 0},                                     \
      {kernel, "float4", 1, 4, 512, 1, 0},                                     \
      {kernel, "2 of float4", 2, 4, 128, 1, 0},                                \
      {kernel, "2 of float4", 2, 4, 256, 1, 0},                                \
      {kernel, "4 of float4", 4, 4, 256, 1, 0}

const cuda_way_t kCudaWays[] = {
    ELEMENTWISE("map"),
    ELEMENTWISE("saxpy"),
    {"reduce", "16 elements", 16, 1, 256, 1, 0},
    {"reduce", "8 elements", 8, 1, 256, 1, 0},
    {"reduce", "2 of float4", 2, 4, 256, 1, 0},
    {"reduce", "4 of float4", 4, 4, 256, 1, 0},
    {"reduce", "8 of float4", 8, 4, 256, 1, 0},
    {"reduce", "4 of float4", 4, 4, 512, 1, 0},
    {"transpose", "rows of 32 x 8", 4, 1, 32, 8, 32},
    {"transpose", "rows of 32 x 4", 8, 1, 32, 4, 32},
    {"transpose", "rows of 32 x 16", 2, 1, 32, 16, 32},
    {"transpose", "rows of 32 x 32", 1, 1, 32, 32, 32},
    {"transpose", "rows of 64 x 4", 16, 1, 64, 4, 64},
    {"transpose", "rows of 64 x 8", 8, 1, 64, 8, 64},
    {"transpose", "float4, 64 x 64", 4, 4, 16, 16, 64},
    {"transpose", "float4, 32 x 32", 1, 4, 8, 32, 32},
    {"transpose", "float4, 32 x 32", 2, 4, 8, 16, 32},
};
const size_t kCudaWayCount = sizeof(kCudaWays) / sizeof(kCudaWays[0]);

#define HEAD                                                      \
  "extern \"C\" __global__ void k(const float* __restrict__ x,\n" \
  "    unsigned long long nx, float* __restrict__ y,\n"           \
  "    unsigned long long ny"

static const char kTypes[] =
    "#if VECTOR == 4\n"
    "typedef float4 T;\n"
    "#define EACH(a, b, F) make_float4(F(a.x, b.x), F(a.y, b.y), \\\n"
    "                                  F(a.z, b.z), F(a.w, b.w))\n"
    "#else\n"
    "typedef float T;\n"
    "#define EACH(a, b, F) F(a, b)\n"
    "#endif\n";

#define LOOP                                                            \
  "  unsigned first = blockIdx.x * ITEMS * blockDim.x + threadIdx.x;\n" \
  "  const T* from = (const T*)x; T* to = (T*)y; T v[ITEMS];\n"         \
  "  unsigned n = (unsigned)((nx < ny ? nx : ny) / VECTOR);\n"          \
  "  _Pragma(\"unroll\") for (unsigned k = 0; k < ITEMS; k++) {\n"      \
  "    unsigned i = first + k * blockDim.x;\n"                          \
  "    if (i < n) v[k] = from[i]; }\n"                                  \
  "  _Pragma(\"unroll\") for (unsigned k = 0; k < ITEMS; k++) {\n"      \
  "    unsigned i = first + k * blockDim.x;\n"

static const char kMap[] =
    HEAD ") {\n" LOOP
         "#define F(p, q) (((p) * 3.0f + 2.0f) * (q) + 1.0f)\n"
         "    if (i < n) to[i] = EACH(v[k], v[k], F); } }\n";

static const char kSaxpy[] =
    HEAD ", float a) {\n" LOOP
         "#define F(p, q) fmaf(a, (p), (q))\n"
         "    if (i < n) { T w = to[i]; to[i] = EACH(v[k], w, F); } } }\n";

static const char kReduce[] = HEAD
    ") {\n"
    "  __shared__ float parts[32];\n"
    "  unsigned first = blockIdx.x * ITEMS * blockDim.x + threadIdx.x;\n"
    "  const T* from = (const T*)x; float sum = 0;\n"
    "  unsigned n = (unsigned)(nx / VECTOR);\n"
    "  _Pragma(\"unroll\") for (unsigned k = 0; k < ITEMS; k++) {\n"
    "    unsigned i = first + k * blockDim.x;\n"
    "    if (i < n) { T v = from[i];\n"
    "#if VECTOR == 4\n"
    "      sum += (v.x + v.y) + (v.z + v.w);\n"
    "#else\n"
    "      sum += v;\n"
    "#endif\n"
    "    } }\n"
    "  for (unsigned d = 16; d != 0; d /= 2)\n"
    "    sum += __shfl_xor_sync(0xffffffffu, sum, d);\n"
    "  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x == 0) { float t = 0;\n"
    "    for (unsigned k = 0; k < blockDim.x / 32; k++) t += parts[k];\n"
    "    if (blockIdx.x < ny) y[blockIdx.x] = t; } }\n";

static const char kTranspose[] = HEAD
    ", unsigned w, unsigned h) {\n"
    "  __shared__ float tile[TILE][TILE + 1];\n"
    "  unsigned left = blockIdx.x * TILE, top = blockIdx.y * TILE;\n"
    "  unsigned i = threadIdx.x * VECTOR, j = threadIdx.y;\n"
    "  _Pragma(\"unroll\") for (unsigned k = 0; k < ITEMS; k++) {\n"
    "    unsigned r = j + k * (TILE / ITEMS);\n"
    "    if (left + i < w && top + r < h) {\n"
    "      T v = *(const T*)(x + (top + r) * w + left + i);\n"
    "#if VECTOR == 4\n"
    "      tile[r][i] = v.x; tile[r][i + 1] = v.y;\n"
    "      tile[r][i + 2] = v.z; tile[r][i + 3] = v.w;\n"
    "#else\n"
    "      tile[r][i] = v;\n"
    "#endif\n"
    "    } }\n"
    "  __syncthreads();\n"
    "  _Pragma(\"unroll\") for (unsigned k = 0; k < ITEMS; k++) {\n"
    "    unsigned r = j + k * (TILE / ITEMS);\n"
    "    if (top + i < h && left + r < w) {\n"
    "#if VECTOR == 4\n"
    "      T v = make_float4(tile[i][r], tile[i + 1][r], tile[i + 2][r],\n"
    "                        tile[i + 3][r]);\n"
    "#else\n"
    "      T v = tile[i][r];\n"
    "#endif\n"
    "      *(T*)(y + (left + r) * h + top + i) = v; } } }\n";

const cuda_way_t* cuda_way_plain(const char* kernel) {
  for (size_t i = 0; i < kCudaWayCount; i++) {
    if (strcmp(kCudaWays[i].kernel, kernel) == 0) return &kCudaWays[i];
  }
  return NULL;
}

void cuda_way_source(const cuda_way_t* way, char out[CUDA_SOURCE_BYTES]) {
  const char* body = strcmp(way->kernel, "map") == 0      ? kMap
                     : strcmp(way->kernel, "saxpy") == 0  ? kSaxpy
                     : strcmp(way->kernel, "reduce") == 0 ? kReduce
                                                          : kTranspose;
  snprintf(out, CUDA_SOURCE_BYTES,
           "#define VECTOR %u\n#define ITEMS %u\n#define TILE %u\n%s%s",
           way->vector, way->items, way->tile, kTypes, body);
}

void cuda_way_grid(const cuda_way_t* way, uint64_t count, uint32_t width,
                   uint32_t height, uint32_t out_grid[3]) {
  out_grid[1] = out_grid[2] = 1;
  if (way->tile != 0) {
    out_grid[0] = (width + way->tile - 1) / way->tile;
    out_grid[1] = (height + way->tile - 1) / way->tile;
    return;
  }
  uint64_t each = (uint64_t)way->items * way->vector * way->block_x;
  out_grid[0] = (uint32_t)((count + each - 1) / each);
}
