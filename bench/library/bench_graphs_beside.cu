// SPDX-License-Identifier: Apache-2.0
//
// bench: what cuSPARSE takes for the products of bench_graphs, of the same
// matrices.
//
//   bench_graphs_beside [LOG]     26: about 2^26 numbers
#include <cusparse.h>

#include "bench_beside_cuda.cuh"
#include "csr_graph.h"

namespace {

using beside::need;

void sparse(cusparseStatus_t status, const char* what) {
  if (status != CUSPARSE_STATUS_SUCCESS) {
    std::fprintf(stderr, "%s\n", cusparseGetErrorString(status));
  }
  need(status == CUSPARSE_STATUS_SUCCESS, what);
}

// A matrix and both vectors.
struct product_t {
  cusparseHandle_t handle;
  cusparseSpMatDescr_t matrix;
  cusparseDnVecDescr_t x;
  cusparseDnVecDescr_t y;
};

// Nanoseconds, by what has looked at the matrix before.
double spent(const product_t& p, cusparseSpMVAlg_t how) {
  const float one = 1, zero = 0;
  size_t bytes = 0;
  sparse(cusparseSpMV_bufferSize(p.handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                 &one, p.matrix, p.x, &zero, p.y, CUDA_R_32F,
                                 how, &bytes),
         "cusparseSpMV_bufferSize");
  auto* scratch = beside::memory<uint8_t>(bytes + 1);
  sparse(cusparseSpMV_preprocess(p.handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                 &one, p.matrix, p.x, &zero, p.y, CUDA_R_32F,
                                 how, scratch),
         "cusparseSpMV_preprocess");
  const double ns = beside::spent([&] {
    sparse(cusparseSpMV(p.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                        p.matrix, p.x, &zero, p.y, CUDA_R_32F, how, scratch),
           "cusparseSpMV");
  });
  need(cudaFree(scratch), "cudaFree");
  return ns;
}

void bench_spmv(cusparseHandle_t handle, uint32_t form, uint32_t rows,
                int log) {
  csr_graph_t graph;
  csr_make(&graph, form, rows, true);
  std::vector<float> values(graph.edges), x(rows);
  for (size_t e = 0; e < values.size(); e++) values[e] = float(e % 5);
  for (size_t i = 0; i < x.size(); i++) x[i] = float(i % 7);
  uint32_t* starts = beside::copied(graph.starts, size_t{rows} + 1);
  uint32_t* columns = beside::copied(graph.columns, graph.edges);
  float* numbers = beside::copied(values);
  float* in = beside::copied(x);
  float* out = beside::memory<float>(rows);
  product_t p = {};
  p.handle = handle;
  sparse(cusparseCreateCsr(&p.matrix, rows, rows, graph.edges, starts, columns,
                           numbers, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
         "cusparseCreateCsr");
  sparse(cusparseCreateDnVec(&p.x, rows, in, CUDA_R_32F), "x");
  sparse(cusparseCreateDnVec(&p.y, rows, out, CUDA_R_32F), "y");
  const double bytes = 8.0 * graph.edges + 12.0 * rows;
  const double first = spent(p, CUSPARSE_SPMV_CSR_ALG1);
  const double second = spent(p, CUSPARSE_SPMV_CSR_ALG2);
  const std::string name =
      beside::named((std::string("spmv f32, ") + kCsrForms[form]).c_str(), log);
  const char* const looked = ", behind cusparseSpMV_preprocess";
  beside::tell(name, "GB/s", bytes / (first < second ? first : second),
               std::string(first < second ? "CSR_ALG1" : "CSR_ALG2") + looked);
  beside::tell(name + ", ALG1", "GB/s", bytes / first,
               std::string("CSR_ALG1") + looked);
  beside::tell(name + ", ALG2", "GB/s", bytes / second,
               std::string("CSR_ALG2") + looked + ", the same bits each time");
  sparse(cusparseDestroySpMat(p.matrix), "cusparseDestroySpMat");
  sparse(cusparseDestroyDnVec(p.x), "cusparseDestroyDnVec");
  sparse(cusparseDestroyDnVec(p.y), "cusparseDestroyDnVec");
  for (void* place : {static_cast<void*>(starts), static_cast<void*>(columns),
                      static_cast<void*>(numbers), static_cast<void*>(in),
                      static_cast<void*>(out)}) {
    need(cudaFree(place), "cudaFree");
  }
  csr_free(&graph);
}

}  // namespace

int main(int argc, char** argv) {
  int log = beside::log_of(argc, argv);
  if (log < 12) log = 12;
  cusparseHandle_t handle;
  sparse(cusparseCreate(&handle), "cusparseCreate");
  bench_spmv(handle, CSR_GRID, 1u << (log - 2), log);
  bench_spmv(handle, CSR_RMAT, 1u << (log - 4), log);
  beside::told();
  sparse(cusparseDestroy(handle), "cusparseDestroy");
  return 0;
}
