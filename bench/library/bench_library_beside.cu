// SPDX-License-Identifier: Apache-2.0
//
// bench: what NVIDIA's own libraries take for the jobs of bench_library: CUB,
// cuBLAS and cuFFT, measured in the same way. bench_library.py compiles it by
// nvcc where there is one, runs it beside bench_library and sets the rows
// against each other; its names are the ones there.
//
//   bench_library_beside [LOG]     26: 2^26 elements
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cufft.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 5;
constexpr int kRuns = 10;

void need(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "bench_library_beside: %s failed\n", what);
  std::exit(1);
}

void need(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  }
  need(error == cudaSuccess, what);
}

// Device memory that is filled with numbers, flags or nothing.
template <typename T>
T* memory(size_t count) {
  void* made = nullptr;
  need(cudaMalloc(&made, count * sizeof(T)), "cudaMalloc");
  need(cudaMemset(made, 0, count * sizeof(T)), "cudaMemset");
  return static_cast<T*>(made);
}

template <typename T>
T* copied(const std::vector<T>& values) {
  T* made = memory<T>(values.size());
  need(cudaMemcpy(made, values.data(), values.size() * sizeof(T),
                  cudaMemcpyHostToDevice),
       "cudaMemcpy");
  return made;
}

// The best of several rounds, in nanoseconds for one run.
double spent(const std::function<void()>& run) {
  cudaEvent_t start, end;
  need(cudaEventCreate(&start), "cudaEventCreate");
  need(cudaEventCreate(&end), "cudaEventCreate");
  run();
  float least = 1e30f;
  for (int round = 0; round < kRounds; round++) {
    need(cudaEventRecord(start), "cudaEventRecord");
    for (int i = 0; i < kRuns; i++) run();
    need(cudaEventRecord(end), "cudaEventRecord");
    need(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    need(cudaEventElapsedTime(&ms, start, end), "cudaEventElapsedTime");
    if (ms < least) least = ms;
  }
  need(cudaGetLastError(), "a launch");
  return static_cast<double>(least) * 1e6 / kRuns;
}

bool g_first = true;

void tell(const std::string& name, const char* unit, double value) {
  std::printf("%s{\"name\":\"%s\",\"unit\":\"%s\",\"value\":%.6g}",
              g_first ? "" : ",", name.c_str(), unit, value);
  g_first = false;
}

// A call of CUB: once for how much memory it wants, then with it.
using cub_call_t = std::function<cudaError_t(void*, size_t&)>;

double spent_cub(const cub_call_t& call) {
  size_t bytes = 0;
  need(call(nullptr, bytes), "CUB");
  void* scratch = nullptr;
  need(cudaMalloc(&scratch, bytes + 1), "cudaMalloc");
  const double ns = spent([&] { need(call(scratch, bytes), "CUB"); });
  need(cudaFree(scratch), "cudaFree");
  return ns;
}

// The numbers of bench_library.
struct world_t {
  int log;
  size_t count;
  uint32_t* numbers;
  uint8_t* flags;
  uint32_t* out;
  uint32_t* other;
  uint32_t* total;
};

std::string named(const world_t& w, const char* what) {
  return std::string(what) + " 2^" + std::to_string(w.log);
}

__global__ void read_all(const uint4* in, size_t count, uint32_t* out) {
  uint32_t all = 0;
  const size_t step = size_t{4} * gridDim.x * blockDim.x;
  const size_t lane = size_t{4} * blockIdx.x * blockDim.x + threadIdx.x;
  for (size_t i = lane; i + 3 * blockDim.x < count; i += step) {
    uint4 four[4];
    for (int k = 0; k < 4; k++) four[k] = in[i + k * blockDim.x];
    for (const uint4& v : four) all |= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (all == 0x12345678) *out = all;  // so that the loads are not dropped
}

// How fast the numbers can be read at all.
void bench_read(const world_t& w) {
  double best = 0;
  for (const int blocks : {4, 8, 16}) {
    const double ns = spent([&] {
      read_all<<<132 * blocks, 256>>>(reinterpret_cast<uint4*>(w.numbers),
                                      w.count / 4, w.total);
    });
    if (w.count * 4 / ns > best) best = w.count * 4 / ns;
  }
  tell(named(w, "read"), "GB/s", best);
}

void bench_reduce(const world_t& w) {
  auto* in = reinterpret_cast<float*>(w.numbers);
  auto* out = reinterpret_cast<float*>(w.total);
  const int n = static_cast<int>(w.count);
  tell(named(w, "fold f32"), "GB/s", w.count * 4 / spent_cub([=](void* t,
      size_t& b) { return cub::DeviceReduce::Sum(t, b, in, out, n); }));
  for (int size : {32, 1024, 65536}) {
    const int segments = n / size;
    if (segments == 0) continue;
    std::vector<uint32_t> list(segments + 1);
    for (int s = 0; s <= segments; s++) list[s] = uint32_t(s) * size;
    uint32_t* starts = copied(list);
    auto* sums = reinterpret_cast<float*>(w.out);
    tell(named(w, ("segments f32 of " + std::to_string(size)).c_str()), "GB/s",
         w.count * 4 / spent_cub([=](void* t, size_t& b) {
           return cub::DeviceSegmentedReduce::Sum(t, b, in, sums, segments,
                                                  starts, starts + 1);
         }));
    need(cudaFree(starts), "cudaFree");
  }
}

void bench_scan(const world_t& w) {
  const int n = static_cast<int>(w.count);
  tell(named(w, "scan u32"), "GB/s", w.count * 8 / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceScan::ExclusiveSum(t, b, w.numbers, w.out, n);
  }));
}

void bench_select(const world_t& w) {
  const int n = static_cast<int>(w.count);
  tell(named(w, "compact u32, half kept"), "GB/s",
       w.count * 7 / spent_cub([=](void* t, size_t& b) {
         return cub::DeviceSelect::Flagged(t, b, w.numbers, w.flags, w.out,
                                           w.total, n);
       }));
  tell(named(w, "runs u32, all different"), "GB/s",
       w.count * 12 / spent_cub([=](void* t, size_t& b) {
         return cub::DeviceRunLengthEncode::Encode(t, b, w.numbers, w.out,
                                                   w.other, w.total, n);
       }));
}

void bench_sort(const world_t& w) {
  const int n = static_cast<int>(w.count / 2);
  const std::string size = " 2^" + std::to_string(w.log - 1);
  tell("sort keys u32" + size, "G items/s", n / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceRadixSort::SortKeys(t, b, w.numbers, w.out, n);
  }));
  tell("sort pairs u32" + size, "G items/s", n / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceRadixSort::SortPairs(t, b, w.numbers, w.out,
                                           w.numbers + n, w.out + n, n);
  }));
}

// The bytes of the numbers: as they are, and all the same.
void bench_histogram(const world_t& w) {
  const auto bytes = static_cast<int64_t>(w.count * 4);
  auto* counts = reinterpret_cast<unsigned*>(w.other);
  const uint8_t* places[] = {reinterpret_cast<uint8_t*>(w.numbers),
                             reinterpret_cast<uint8_t*>(w.out)};
  const char* const names[] = {"histogram u8 of 256 bins",
                               "histogram u8 of 256 bins, one value"};
  need(cudaMemset(w.out, 0, w.count * 4), "cudaMemset");
  for (int i = 0; i < 2; i++) {
    const uint8_t* in = places[i];
    tell(named(w, names[i]), "GB/s", bytes / spent_cub([=](void* t, size_t& b) {
      return cub::DeviceHistogram::HistogramEven(t, b, in, counts, 257, 0, 256,
                                                 bytes);
    }));
  }
}

void bench_product(int n) {
  cublasHandle_t blas;
  need(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
  const size_t count = static_cast<size_t>(n) * n;
  const double flops = 2.0 * n * n * n;
  const float one = 1, zero = 0;
  auto* a = memory<float>(count);
  auto* b = memory<float>(count);
  auto* c = memory<float>(count);
  const struct { const char* name; cudaDataType_t type; cublasComputeType_t how;
  } kinds[] = {{"f32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
               {"f32 as tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
               {"f16", CUDA_R_16F, CUBLAS_COMPUTE_32F}};
  for (const auto& kind : kinds) {
    const double ns = spent([&] {
      need(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a,
                        kind.type, n, b, kind.type, n, &zero, c, kind.type, n,
                        kind.how, CUBLAS_GEMM_DEFAULT) ==
               CUBLAS_STATUS_SUCCESS, "cublasGemmEx");
    });
    tell(std::string("matmul ") + kind.name + " of " + std::to_string(n),
         "GFLOP/s", flops / ns);
  }
  need(cudaFree(a), "cudaFree");
  need(cudaFree(b), "cudaFree");
  need(cudaFree(c), "cudaFree");
  need(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS, "cublasDestroy");
}

void bench_transform(int n, int batch) {
  cufftHandle plan;
  auto* x = memory<cufftComplex>(static_cast<size_t>(n) * batch);
  auto* y = memory<cufftComplex>(static_cast<size_t>(n) * batch);
  need(cufftPlan1d(&plan, n, CUFFT_C2C, batch) == CUFFT_SUCCESS, "cufftPlan1d");
  const double ns = spent([&] {
    need(cufftExecC2C(plan, x, y, CUFFT_FORWARD) == CUFFT_SUCCESS,
         "cufftExecC2C");
  });
  tell("fft f32 of " + std::to_string(n) + ", " + std::to_string(batch) +
           " at once", "GB/s", 16.0 * n * batch / ns);
  need(cufftDestroy(plan) == CUFFT_SUCCESS, "cufftDestroy");
  need(cudaFree(x), "cudaFree");
  need(cudaFree(y), "cudaFree");
}

world_t opened(int log) {
  world_t w = {};
  w.log = log;
  w.count = size_t{1} << log;
  std::vector<uint32_t> numbers(w.count);
  std::vector<uint8_t> flags(w.count);
  uint64_t seed = 1;
  for (size_t i = 0; i < w.count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    numbers[i] = static_cast<uint32_t>(seed >> 32);
    flags[i] = static_cast<uint8_t>(seed >> 63);
  }
  w.numbers = copied(numbers);
  w.flags = copied(flags);
  w.out = memory<uint32_t>(w.count);
  w.other = memory<uint32_t>(w.count);
  w.total = memory<uint32_t>(256);
  return w;
}

}  // namespace

int main(int argc, char** argv) {
  const int log = argc > 1 ? std::atoi(argv[1]) : 26;
  need(log >= 10 && log <= 28, "a LOG from 10 to 28");
  const world_t w = opened(log);
  std::printf("{\"device\":\"cuda:0\",\"benches\":[");
  bench_read(w);
  bench_reduce(w);
  bench_scan(w);
  bench_select(w);
  bench_sort(w);
  bench_histogram(w);
  bench_product(4096);
  bench_transform(1 << 20, 16);
  bench_transform(1 << 10, 1 << 14);
  std::printf("]}\n");
  return 0;
}
