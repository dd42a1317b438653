// SPDX-License-Identifier: Apache-2.0
//
// tests: words on the device, and what they are compared with.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

static int failures;
static int checks;

static void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  printf("FAILED: %s: error %d\n", what, (int)error);
  exit(1);
}

// Words on the device.
template <class T>
struct words {
  T* data = nullptr;
  size_t count;
  explicit words(size_t n) : count(n) {
    must(cudaMalloc((void**)&data, std::max<size_t>(n, 1) * sizeof(T)),
         "cudaMalloc");
    must(cudaMemsetAsync(data, 0, std::max<size_t>(n, 1) * sizeof(T), 0),
         "cudaMemset");
  }
  explicit words(const std::vector<T>& from) : words(from.size()) {
    if (count == 0) return;
    must(cudaMemcpyAsync(data, from.data(), count * sizeof(T),
                         cudaMemcpyHostToDevice, 0),
         "copy in");
    must(cudaStreamSynchronize(0), "copy in");
  }
  words(const words&) = delete;
  ~words() { cudaFree(data); }
  std::vector<T> read(size_t n) const {
    std::vector<T> out(n);
    if (n > 0) {
      must(cudaMemcpyAsync(out.data(), data, n * sizeof(T),
                           cudaMemcpyDeviceToHost, 0),
           "copy out");
    }
    must(cudaStreamSynchronize(0), "copy out");
    return out;
  }
  std::vector<T> read() const { return read(count); }
};

template <class T>
static void equal(const char* what, size_t n, const std::vector<T>& got,
                  const std::vector<T>& wanted) {
  checks++;
  if (got == wanted) return;
  size_t at = 0;
  while (at < got.size() && at < wanted.size() && got[at] == wanted[at]) at++;
  printf("FAILED: %s of %zu: %zu words, not %zu; the first at %zu\n", what, n,
         got.size(), wanted.size(), at);
  failures++;
}

struct is_odd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};
struct greatest {
  __host__ __device__ int operator()(int a, int b) const {
    return a < b ? b : a;
  }
};
struct less {
  __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

typedef std::vector<int> ints;

static ints some(size_t n, uint32_t seed, int below) {
  ints out(n);
  for (int& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = (int)((seed >> 8) % (uint32_t)below);
  }
  return out;
}
