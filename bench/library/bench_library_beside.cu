// SPDX-License-Identifier: Apache-2.0
//
// bench: what NVIDIA's own libraries take for the jobs of bench_library: CUB,
// Thrust, cuBLAS and cuFFT, measured in the same way. bench_library.py compiles
// it by nvcc where there is one, runs it beside bench_library and sets the rows
// against each other; its names are the ones there.
//
//   bench_library_beside [LOG]     26: 2^26 elements
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cufft.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>

#include "bench_beside_cuda.cuh"

namespace {

using beside::copied;
using beside::memory;
using beside::need;
using beside::spent;
using beside::tell;

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
  uint32_t* order;  // the same, less than `count` each
  uint8_t* flags;
  uint32_t* out;
  uint32_t* other;
  uint32_t* total;
};

std::string named(const world_t& w, const char* what) {
  return beside::named(what, w.log);
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
  tell(named(w, "read"), "GB/s", best, "a kernel by hand");
}

void bench_reduce(const world_t& w) {
  auto* in = reinterpret_cast<float*>(w.numbers);
  auto* out = reinterpret_cast<float*>(w.total);
  const int n = static_cast<int>(w.count);
  tell(named(w, "fold f32"), "GB/s", w.count * 4 / spent_cub([=](void* t,
      size_t& b) { return cub::DeviceReduce::Sum(t, b, in, out, n); }),
       "cub::DeviceReduce");
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
         }),
         "cub::DeviceSegmentedReduce");
    need(cudaFree(starts), "cudaFree");
  }
}

// Two elements are of one segment unless the second one is a head.
struct same_segment_t {
  __host__ __device__ bool operator()(uint8_t, uint8_t head) const {
    return head == 0;
  }
};

void bench_scan(const world_t& w) {
  const int n = static_cast<int>(w.count);
  tell(named(w, "scan u32"), "GB/s", w.count * 8 / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceScan::ExclusiveSum(t, b, w.numbers, w.out, n);
  }), "cub::DeviceScan");
  auto* in = reinterpret_cast<float*>(w.numbers);
  auto* out = reinterpret_cast<float*>(w.out);
  tell(named(w, "scan f32, in order"), "GB/s", w.count * 8 / spent_cub([=](
      void* t, size_t& b) {
    return cub::DeviceScan::ExclusiveSum(t, b, in, out, n);
  }), "cub::DeviceScan, in any order");
  tell(named(w, "scan_segments u32"), "GB/s", w.count * 9 / spent_cub([=](
      void* t, size_t& b) {
    return cub::DeviceScan::InclusiveSumByKey(t, b, w.flags, w.numbers, w.out,
                                              n, same_segment_t{});
  }), "cub::DeviceScan by key");
}

// The text is the bytes of the numbers.
struct begins_line_t {
  const uint8_t* text;
  __host__ __device__ bool operator()(uint32_t at) const {
    return at == 0 || text[at - 1] == '\n';
  }
};

void bench_select(const world_t& w) {
  const int n = static_cast<int>(w.count);
  tell(named(w, "compact u32, half kept"), "GB/s",
       w.count * 7 / spent_cub([=](void* t, size_t& b) {
         return cub::DeviceSelect::Flagged(t, b, w.numbers, w.flags, w.out,
                                           w.total, n);
       }),
       "cub::DeviceSelect");
  const thrust::counting_iterator<uint32_t> places(0);
  tell(named(w, "unique u32, all different"), "GB/s",
       w.count * 12 / spent_cub([=](void* t, size_t& b) {
         return cub::DeviceSelect::UniqueByKey(t, b, w.numbers, places, w.out,
                                               w.other, w.total, n);
       }),
       "cub::DeviceSelect, places as values");
  tell(named(w, "runs u32, all different"), "GB/s",
       w.count * 12 / spent_cub([=](void* t, size_t& b) {
         return cub::DeviceRunLengthEncode::Encode(t, b, w.numbers, w.out,
                                                   w.other, w.total, n);
       }),
       "cub::DeviceRunLengthEncode");
  const begins_line_t begins = {reinterpret_cast<uint8_t*>(w.numbers)};
  tell(named(w, "lines, of 256 bytes"), "GB/s",
       w.count / spent_cub([=](void* t, size_t& b) {
         return cub::DeviceSelect::If(t, b, places, w.out, w.total, n, begins);
       }),
       "cub::DeviceSelect of places");
}

struct less_t {
  __host__ __device__ bool operator()(uint32_t a, uint32_t b) const {
    return a < b;
  }
};

void bench_sort(const world_t& w) {
  const int n = static_cast<int>(w.count / 2);
  const std::string size = " 2^" + std::to_string(w.log - 1);
  tell("sort keys u32" + size, "G items/s", n / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceRadixSort::SortKeys(t, b, w.numbers, w.out, n);
  }), "cub::DeviceRadixSort");
  tell("sort pairs u32" + size, "G items/s", n / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceRadixSort::SortPairs(t, b, w.numbers, w.out,
                                           w.numbers + n, w.out + n, n);
  }), "cub::DeviceRadixSort");
  tell("merge_sort keys u32" + size, "G items/s", n / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceMergeSort::StableSortKeysCopy(t, b, w.numbers, w.out, n,
                                                    less_t{});
  }), "cub::DeviceMergeSort");
  tell("merge_sort pairs u32" + size, "G items/s", n / spent_cub([=](void* t,
      size_t& b) {
    return cub::DeviceMergeSort::SortPairsCopy(t, b, w.numbers, w.numbers + n,
                                               w.out, w.out + n, n, less_t{});
  }), "cub::DeviceMergeSort");
}

// Elements by places in no order: of each nothing but itself is near. Of
// places in order: a copy.
void bench_moves(const world_t& w) {
  const auto here = thrust::cuda::par_nosync;
  std::vector<uint32_t> list(w.count);
  for (size_t i = 0; i < w.count; i++) list[i] = static_cast<uint32_t>(i);
  uint32_t* in_order = copied(list);
  const struct { const char* name; uint32_t* places; } orders[] = {
      {"any order", w.order}, {"in order", in_order}};
  for (const auto& order : orders) {
    uint32_t* places = order.places;
    tell(named(w, (std::string("gather f32, ") + order.name).c_str()), "GB/s",
         w.count * 12 / spent([=] {
           thrust::gather(here, places, places + w.count, w.numbers, w.out);
         }),
         "thrust::gather");
    tell(named(w, (std::string("scatter f32, ") + order.name).c_str()), "GB/s",
         w.count * 12 / spent([=] {
           thrust::scatter(here, w.numbers, w.numbers + w.count, places, w.out);
         }),
         "thrust::scatter");
  }
  need(cudaFree(in_order), "cudaFree");
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
    }), "cub::DeviceHistogram");
  }
}

void good(cublasStatus_t status, const char* what) {
  need(status == CUBLAS_STATUS_SUCCESS, what);
}

// What a product is made of. `wide`: sums of f64. `fast`: the name of a row of
// ours with a budget, or none.
struct product_t {
  const char* name;
  const char* fast;
  cudaDataType_t type;
  cublasComputeType_t how;
  bool wide;
  const char* said;
};

template <typename T>
void bench_product(cublasHandle_t blas, int n, const product_t& kind) {
  const size_t count = static_cast<size_t>(n) * n;
  auto* a = beside::numbers<T>(count);
  auto* b = beside::numbers<T>(count);
  auto* c = memory<T>(count);
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const void* alpha = kind.wide ? static_cast<const void*>(&wide_one) : &one;
  const void* beta = kind.wide ? static_cast<const void*>(&wide_zero) : &zero;
  const double ns = spent([&] {
    good(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, alpha, a,
                      kind.type, n, b, kind.type, n, beta, c, kind.type, n,
                      kind.how, CUBLAS_GEMM_DEFAULT),
         "cublasGemmEx");
  });
  for (const char* name : {kind.name, kind.fast}) {
    if (name == nullptr) continue;
    tell(std::string("matmul ") + name + " of " + std::to_string(n), "GFLOP/s",
         2.0 * n * n * n / ns, std::string("cublasGemmEx, ") + kind.said);
  }
  for (T* place : {a, b, c}) need(cudaFree(place), "cudaFree");
}

// The numbers as a square matrix, or one twice as wide.
void bench_transpose(cublasHandle_t blas, const world_t& w) {
  const int height = 1 << w.log / 2, width = 1 << (w.log - w.log / 2);
  const float one = 1, zero = 0;
  auto* in = reinterpret_cast<float*>(w.numbers);
  auto* out = reinterpret_cast<float*>(w.out);
  tell(named(w, "transpose f32"), "GB/s", w.count * 8 / spent([&] {
    good(cublasSgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, height, width, &one, in,
                     width, &zero, out, height, out, height),
         "cublasSgeam");
  }), "cublasSgeam");
}

void bench_matrices(const world_t& w) {
  constexpr int kRows = 4096;
  cublasHandle_t blas;
  good(cublasCreate(&blas), "cublasCreate");
  bench_product<float>(blas, kRows, {"f32", nullptr, CUDA_R_32F, CUBLAS_COMPUTE_32F,
                                     false, "f32 without tensor cores"});
  bench_product<float>(blas, kRows, {"f32 as tf32", nullptr, CUDA_R_32F,
                                     CUBLAS_COMPUTE_32F_FAST_TF32, false,
                                     "tensor cores"});
  bench_product<__half>(blas, kRows, {"f16", "f16 to 32 ULP", CUDA_R_16F,
                                      CUBLAS_COMPUTE_32F, false, "tensor cores, sums of f32"});
  bench_product<double>(blas, kRows, {"f64", nullptr, CUDA_R_64F, CUBLAS_COMPUTE_64F,
                                      true, "tensor cores of f64"});
  bench_transpose(blas, w);
  good(cublasDestroy(blas), "cublasDestroy");
}

// As many at once as there are in a quarter of the numbers.
void bench_transform(const world_t& w, int log) {
  if (w.log - 2 < log) return;
  const int n = 1 << log, batch = 1 << (w.log - 2 - log);
  cufftHandle plan;
  auto* x = reinterpret_cast<cufftComplex*>(
      beside::numbers<float>(static_cast<size_t>(n) * batch * 2));
  auto* y = memory<cufftComplex>(static_cast<size_t>(n) * batch);
  need(cufftPlan1d(&plan, n, CUFFT_C2C, batch) == CUFFT_SUCCESS, "cufftPlan1d");
  const double ns = spent([&] {
    need(cufftExecC2C(plan, x, y, CUFFT_FORWARD) == CUFFT_SUCCESS,
         "cufftExecC2C");
  });
  tell("fft f32 of " + std::to_string(n) + ", " + std::to_string(batch) +
           " at once", "GB/s", 16.0 * n * batch / ns, "cufftExecC2C");
  need(cufftDestroy(plan) == CUFFT_SUCCESS, "cufftDestroy");
  need(cudaFree(x), "cudaFree");
  need(cudaFree(y), "cudaFree");
}

world_t opened(int log) {
  world_t w = {};
  w.log = log;
  w.count = size_t{1} << log;
  std::vector<uint32_t> numbers(w.count), order(w.count);
  std::vector<uint8_t> flags(w.count);
  uint64_t seed = 1;
  for (size_t i = 0; i < w.count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    numbers[i] = static_cast<uint32_t>(seed >> 32);
    flags[i] = static_cast<uint8_t>(seed >> 63);
    order[i] = numbers[i] >> (32 - log);
  }
  w.numbers = copied(numbers);
  w.order = copied(order);
  w.flags = copied(flags);
  w.out = memory<uint32_t>(w.count);
  w.other = memory<uint32_t>(w.count);
  w.total = memory<uint32_t>(256);
  return w;
}

}  // namespace

int main(int argc, char** argv) {
  const world_t w = opened(beside::log_of(argc, argv));
  bench_read(w);
  bench_reduce(w);
  bench_scan(w);
  bench_select(w);
  bench_sort(w);
  bench_moves(w);
  bench_histogram(w);
  bench_matrices(w);
  for (const int log : {10, 12, 20}) bench_transform(w, log);
  beside::told();
  return 0;
}
