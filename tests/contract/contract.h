// SPDX-License-Identifier: Apache-2.0
//
// contract: what every provider of the CUDA driver table must do.
//
// Cases are written against `const kiln_cuda_table_t*` alone and assert only
// what NVIDIA's driver guarantees; contract_main runs them over one provider,
// and contract_expect.inc says which cases a provider fails or cannot run, and
// why.
#ifndef KILN_TESTS_CONTRACT_CONTRACT_H_
#define KILN_TESTS_CONTRACT_CONTRACT_H_

#include <setjmp.h>

#include "kiln/status.h"
#include "table/cuda_abi.h"
#include "table/table.h"

// A running case. one-thread
typedef struct contract_t {
  const kiln_cuda_table_t* cu;
  kiln_cu_device_t device;
  kiln_cu_context_t context;  // current when a case begins
  jmp_buf failed;
  char message[512];
} contract_t;

typedef enum contract_flags_t {
  CONTRACT_PLAIN = 0,
  CONTRACT_CHILD = 1,    // leaves the process in no state for another case
  CONTRACT_NO_INIT = 2,  // runs before cuInit (and so in a child)
  CONTRACT_TWO = 4,      // wants two devices
} contract_flags_t;

// A case. thread-safe
typedef struct contract_case_t {
  const char* name;
  void (*run)(contract_t* t);
  uint32_t flags;  // CONTRACT_*
} contract_case_t;

// The cases of one file.
typedef struct contract_group_t {
  const contract_case_t* cases;
  size_t count;
} contract_group_t;

extern const contract_group_t contract_device;
extern const contract_group_t contract_memory;
extern const contract_group_t contract_memory_pool;
extern const contract_group_t contract_memory_virtual;
extern const contract_group_t contract_green;
extern const contract_group_t contract_texture;
extern const contract_group_t contract_peer;
extern const contract_group_t contract_stream;
extern const contract_group_t contract_capture;
extern const contract_group_t contract_graph;
extern const contract_group_t contract_graph_launch;
extern const contract_group_t contract_module;
extern const contract_group_t contract_link;
extern const contract_group_t contract_launch;
extern const contract_group_t contract_fault;

#define CONTRACT_GROUP(name, cases) \
  const contract_group_t name = {cases, sizeof(cases) / sizeof(*(cases))}

// Ends the case as failed.
_Noreturn void contract_fail(contract_t* t, const char* file, int line,
                             const char* format, ...) KILN_PRINTF(4, 5);
// Fails unless `result` is one of the two.
void contract_result(contract_t* t, const char* file, int line,
                     const char* call, kiln_cu_result_t result,
                     kiln_cu_result_t wanted, kiln_cu_result_t or_this);

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      contract_fail(t, __FILE__, __LINE__, "does not hold: %s", #condition); \
    }                                                                        \
  } while (0)

#define OK(call)                                                         \
  contract_result(t, __FILE__, __LINE__, #call, (call), KILN_CU_SUCCESS, \
                  KILN_CU_SUCCESS)
#define IS(error, call)                                                        \
  contract_result(t, __FILE__, __LINE__, #call, (call), KILN_CU_ERROR_##error, \
                  KILN_CU_ERROR_##error)
#define IS_EITHER(error, other, call)                                          \
  contract_result(t, __FILE__, __LINE__, #call, (call), KILN_CU_ERROR_##error, \
                  KILN_CU_ERROR_##other)

// The kernels that cases use (contract_ptx.c).
extern const char* const contract_ptx;
// The module of contract_ptx, to be unloaded by the case.
kiln_cu_module_t contract_load(contract_t* t);
kiln_cu_function_t contract_function(contract_t* t, kiln_cu_module_t module,
                                     const char* name);
// Launches one thread of a kernel.
kiln_cu_result_t contract_one(contract_t* t, kiln_cu_module_t module,
                              const char* name, kiln_cu_stream_t stream,
                              void** params);
// slow_put(address, value): stores after a while.
void contract_slow_put(contract_t* t, kiln_cu_module_t module,
                       kiln_cu_stream_t stream, kiln_cu_deviceptr_t address,
                       uint32_t value);

#endif  // KILN_TESTS_CONTRACT_CONTRACT_H_
