// SPDX-License-Identifier: Apache-2.0
//
// tests: references of the kernels that sort, scan, count and search.
#include <stdlib.h>
#include <string.h>

#include "kernel_reference.h"

// Insertion: stable, and nothing like what the kernels do.
static void sort_pairs(uint32_t* keys, uint32_t* values, size_t count) {
  for (size_t i = 1; i < count; i++) {
    uint32_t key = keys[i];
    uint32_t value = values[i];
    size_t at = i;
    for (; at > 0 && keys[at - 1] > key; at--) {
      keys[at] = keys[at - 1];
      values[at] = values[at - 1];
    }
    keys[at] = key;
    values[at] = value;
  }
}

static void radix_sort(kernel_case_t* c) {
  uint32_t* keys = kernel_out(c, "keys");
  uint32_t* values = kernel_out(c, "values");
  uint32_t size = kernel_u32(c, "size");
  for (uint32_t b = 0; b < 2; b++) {
    sort_pairs(keys + b * size, values + b * size, size);
  }
}

static int by_i32(const void* a, const void* b) {
  int32_t x = *(const int32_t*)a;
  int32_t y = *(const int32_t*)b;
  return (x > y) - (x < y);
}

static int by_i16(const void* a, const void* b) {
  return *(const int16_t*)a - *(const int16_t*)b;
}

static int by_f32(const void* a, const void* b) {
  float x = *(const float*)a;
  float y = *(const float*)b;
  return (x > y) - (x < y);
}

static void bitonic(kernel_case_t* c) {
  int32_t* data = kernel_out(c, "data");
  qsort(data, 256, 4, by_i32);
  qsort(data + 256, 256, 4, by_i32);
}

// The last steps have (lane & 32) == 0 in every lane: all warps go up.
static void bitonic_warp(kernel_case_t* c) {
  float* data = kernel_out(c, "data");
  for (int w = 0; w < 8; w++) qsort(data + w * 32, 32, 4, by_f32);
}

static void network(kernel_case_t* c) {
  int16_t* data = kernel_out(c, "data");
  for (int set = 0; set < 64; set++) qsort(data + set * 16, 16, 2, by_i16);
}

// ---- look_back.cu ----

static void look_back(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint64_t* out = kernel_out(c, "out");
  uint64_t* state = kernel_out(c, "state");
  uint64_t sum = 0;
  for (uint32_t i = 0; i < kernel_count(c, "in"); i++) {
    sum += in[i];
    out[i] = sum;
    // In the end every block has published its prefix.
    state[i / kernel_block_size(c)] = sum << 2 | 2;
  }
  *(uint32_t*)kernel_out(c, "ticket") = kernel_blocks(c);
}

static void chained(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  int32_t* out = kernel_out(c, "out");
  int32_t* prefix = kernel_out(c, "prefix");
  uint32_t* ready = kernel_out(c, "ready");
  int32_t sum = 0;
  for (uint32_t i = 0; i < kernel_count(c, "in"); i++) {
    sum += in[i];
    out[i] = sum;
    prefix[i / kernel_block_size(c)] = sum;
    ready[i / kernel_block_size(c)] = 1;
  }
  *(uint32_t*)kernel_out(c, "ticket") = kernel_blocks(c);
}

// ---- compact.cu ----

static void in_order(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  int32_t* out = kernel_out(c, "out");
  uint32_t* counts = kernel_out(c, "counts");
  for (uint32_t i = 0; i < 1024; i++) {
    if (in[i] > 0) out[i / 256 * 256 + counts[i / 256]++] = in[i];
  }
}

static void any_order(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  uint32_t* count = kernel_out(c, "count");
  for (uint32_t i = 0; i < kernel_count(c, "in"); i++) {
    *count += in[i] % 3 == 0;
  }
}

static const char* judge_any_order(const kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  const int32_t* got = kernel_got(c, "out");
  size_t size = kernel_count(c, "in");
  int32_t* kept = calloc(size, 4);
  int32_t* sorted = malloc(size * 4);
  size_t count = 0;
  for (size_t i = 0; i < size; i++) {
    if (in[i] % 3 == 0) kept[count++] = in[i];
  }
  memcpy(sorted, got, size * 4);
  qsort(kept, count, 4, by_i32);
  qsort(sorted, count, 4, by_i32);
  // Behind those that were kept nothing is written.
  bool same = memcmp(kept, sorted, size * 4) == 0;
  free(kept);
  free(sorted);
  return same ? NULL : "out is not the kept numbers in some order";
}

// ---- histogram.cu ----

static void histogram(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint32_t* bins = kernel_out(c, "bins");
  for (uint32_t i = 0; i < kernel_u32(c, "size"); i++) {
    bins[(uint32_t)in[i] * in[i] / 256]++;
  }
}

static void by_lane(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* bins = kernel_out(c, "bins");
  for (uint32_t i = 0; i < 1024; i++) bins[in[i] % 16]++;
}

// ---- segmented_scan.cu, prefix_extremes.cu ----

static void segmented(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  const uint8_t* flags = kernel_in(c, "flags");
  int32_t* out = kernel_out(c, "out");
  int32_t sum = 0;
  for (uint32_t i = 0; i < 512; i++) {
    bool anew = i % kernel_block_size(c) == 0 || flags[i] < 40;
    sum = anew ? in[i] : sum + in[i];
    out[i] = sum;
  }
}

static void extremes(kernel_case_t* c) {
  const int64_t* in = kernel_in(c, "in");
  int64_t* low = kernel_out(c, "low");
  int64_t* high = kernel_out(c, "high");
  for (uint32_t i = 0; i < 384; i++) {
    bool anew = i % kernel_block_size(c) == 0;
    low[i] = anew || in[i] < low[i - 1] ? in[i] : low[i - 1];
    high[i] = anew || in[i] > high[i - 1] ? in[i] : high[i - 1];
  }
}

static uint32_t sign_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits >> 31;
}

static bool below(float a, float b) {
  return a < b || (a == b && sign_of(a) > sign_of(b));
}

static void float_extremes(kernel_case_t* c) {
  const float* in = kernel_in(c, "in");
  float* low = kernel_out(c, "low");
  float* high = kernel_out(c, "high");
  for (uint32_t i = 0; i < 288; i++) {
    float x = i % 7 == 3 ? 0.0f : i % 7 == 5 ? -0.0f : in[i];
    bool anew = i % 32 == 0;
    low[i] = anew || below(x, low[i - 1]) ? x : low[i - 1];
    high[i] = anew || below(high[i - 1], x) ? x : high[i - 1];
  }
}

// ---- bfs.cu: by relaxation until nothing changes ----

static void bfs(kernel_case_t* c) {
  const uint32_t* edges = kernel_in(c, "edges");
  int32_t* levels = kernel_out(c, "levels");
  uint32_t nodes = kernel_u32(c, "nodes");
  for (uint32_t b = 0; b < kernel_blocks(c); b++) {
    int32_t* level = levels + b * nodes;
    for (uint32_t n = 0; n < nodes; n++) level[n] = -1;
    level[b] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t e = 0; e < nodes * 2; e++) {
        int32_t from = level[e / 2];
        int32_t* to = &level[edges[e] % nodes];
        if (from < 0 || (*to >= 0 && *to <= from + 1)) continue;
        *to = from + 1;
        changed = true;
      }
    }
  }
}

// ---- spmv.cu ----

static void by_warp(kernel_case_t* c) {
  const uint8_t* lengths = kernel_in(c, "lengths");
  const uint32_t* columns = kernel_in(c, "columns");
  const float* values = kernel_in(c, "values");
  const float* x = kernel_in(c, "x");
  float* y = kernel_out(c, "y");
  uint32_t e = 0;
  for (uint32_t r = 0; r < 64; r++) {
    for (uint32_t n = 0; n < lengths[r] % 64u; n++, e++) {
      y[r] += values[e] * x[columns[e] % 128];
    }
  }
}

static void by_thread(kernel_case_t* c) {
  const uint8_t* lengths = kernel_in(c, "lengths");
  const uint32_t* columns = kernel_in(c, "columns");
  const double* values = kernel_in(c, "values");
  const double* x = kernel_in(c, "x");
  double* y = kernel_out(c, "y");
  uint32_t e = 0;
  for (uint32_t r = 0; r < 64; r++) {
    for (uint32_t n = 0; n < lengths[r] % 64u; n++, e++) {
      y[r] += values[e] * x[columns[e] % 128];
    }
  }
}

const kernel_reference_t kernel_references_sort[] = {
    {"radix_sort.radix_sort", radix_sort, NULL},
    {"bitonic_sort.bitonic", bitonic, NULL},
    {"bitonic_sort.bitonic_warp", bitonic_warp, NULL},
    {"sort_network.network", network, NULL},
    {"look_back.look_back", look_back, NULL},
    {"look_back.chained", chained, NULL},
    {"compact.in_order", in_order, NULL},
    {"compact.any_order", any_order, judge_any_order},
    {"histogram.histogram", histogram, NULL},
    {"histogram.by_lane", by_lane, NULL},
    {"segmented_scan.segmented", segmented, NULL},
    {"prefix_extremes.extremes", extremes, NULL},
    {"prefix_extremes.float_extremes", float_extremes, NULL},
    {"bfs.bfs", bfs, NULL},
    {"spmv.by_warp", by_warp, NULL},
    {"spmv.by_thread", by_thread, NULL},
    {NULL, NULL, NULL},
};
