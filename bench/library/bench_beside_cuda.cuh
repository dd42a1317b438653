// SPDX-License-Identifier: Apache-2.0
//
// bench: what the programs of other libraries share that are set beside Kiln's
// (bench_*_beside.cu, bench_library_random.cu): checks, memory, the same timing
// as in bench_world.h, and rows that bench_library.py reads.
#ifndef KILN_BENCH_LIBRARY_BENCH_BESIDE_CUDA_CUH_
#define KILN_BENCH_LIBRARY_BENCH_BESIDE_CUDA_CUH_

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace beside {

constexpr int kRounds = 5;
constexpr int kRuns = 10;

inline void need(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s failed\n", what);
  std::exit(1);
}

inline void need(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  }
  need(error == cudaSuccess, what);
}

// Device memory of zeroes.
template <typename T>
T* memory(size_t count) {
  void* made = nullptr;
  need(cudaMalloc(&made, count * sizeof(T)), "cudaMalloc");
  need(cudaMemset(made, 0, count * sizeof(T)), "cudaMemset");
  return static_cast<T*>(made);
}

template <typename T>
T* copied(const T* values, size_t count) {
  T* made = memory<T>(count);
  need(cudaMemcpy(made, values, count * sizeof(T), cudaMemcpyHostToDevice),
       "cudaMemcpy");
  return made;
}

template <typename T>
T* copied(const std::vector<T>& values) {
  return copied(values.data(), values.size());
}

template <typename T>
__global__ void write_numbers(T* to, size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  const auto bits = static_cast<int32_t>((z ^ z >> 31) >> 32);
  to[i] = static_cast<T>(static_cast<float>(bits) * 0x1p-31f);
}

// Device memory of numbers from -1 to 1: zeroes cost less power, and so are
// faster.
template <typename T>
T* numbers(size_t count) {
  T* made = memory<T>(count);
  write_numbers<<<static_cast<unsigned>((count + 255) / 256), 256>>>(made,
                                                                     count);
  need(cudaDeviceSynchronize(), "write_numbers");
  return made;
}

// The best of several rounds, in nanoseconds for one run.
inline double spent(const std::function<void()>& run, int runs = kRuns) {
  cudaEvent_t start, end;
  need(cudaEventCreate(&start), "cudaEventCreate");
  need(cudaEventCreate(&end), "cudaEventCreate");
  run();
  float least = 1e30f;
  for (int round = 0; round < kRounds; round++) {
    need(cudaEventRecord(start), "cudaEventRecord");
    for (int i = 0; i < runs; i++) run();
    need(cudaEventRecord(end), "cudaEventRecord");
    need(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    need(cudaEventElapsedTime(&ms, start, end), "cudaEventElapsedTime");
    if (ms < least) least = ms;
  }
  need(cudaGetLastError(), "a launch");
  need(cudaEventDestroy(start), "cudaEventDestroy");
  need(cudaEventDestroy(end), "cudaEventDestroy");
  return static_cast<double>(least) * 1e6 / runs;
}

inline bool g_first = true;

// A row; `how`: by what of the library.
inline void tell(const std::string& name, const char* unit, double value,
                 const std::string& how) {
  std::printf("%s{\"name\":\"%s\",\"unit\":\"%s\",\"value\":%.6g,"
              "\"how\":\"%s\"}",
              g_first ? "{\"device\":\"cuda:0\",\"benches\":[" : ",",
              name.c_str(), unit, value, how.c_str());
  g_first = false;
}

// Behind the last row.
inline void told() { std::printf("]}\n"); }

inline std::string named(const char* what, int log) {
  return std::string(what) + " 2^" + std::to_string(log);
}

// 26, or what the command line says.
inline int log_of(int argc, char** argv) {
  const int log = argc > 1 ? std::atoi(argv[1]) : 26;
  need(log >= 10 && log <= 28, "a LOG from 10 to 28");
  return log;
}

}  // namespace beside

#endif  // KILN_BENCH_LIBRARY_BENCH_BESIDE_CUDA_CUH_
