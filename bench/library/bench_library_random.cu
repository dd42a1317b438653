// SPDX-License-Identifier: Apache-2.0
//
// bench: what cuRAND takes for the words of bench_library's philox.
//
//   bench_library_random [LOG]     26: 2^26 words
#include <curand.h>

#include "bench_beside_cuda.cuh"

int main(int argc, char** argv) {
  const int log = beside::log_of(argc, argv);
  const size_t count = size_t{1} << log;
  auto* out = beside::memory<unsigned>(count);
  curandGenerator_t made;
  beside::need(curandCreateGenerator(&made, CURAND_RNG_PSEUDO_PHILOX4_32_10) ==
                   CURAND_STATUS_SUCCESS,
               "curandCreateGenerator");
  const double ns = beside::spent([=] {
    beside::need(curandGenerate(made, out, count) == CURAND_STATUS_SUCCESS,
                 "curandGenerate");
  });
  beside::tell(beside::named("philox u32", log), "GB/s", count * 4 / ns,
               "curandGenerate, Philox4x32-10");
  beside::told();
  beside::need(curandDestroyGenerator(made) == CURAND_STATUS_SUCCESS,
               "curandDestroyGenerator");
  return 0;
}
