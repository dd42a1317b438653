// SPDX-License-Identifier: Apache-2.0
//
// contract: kernels that fail, and what they print. Each case runs in a process
// of its own, since the error never leaves the context.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"
#include "table/cuda_table.h"

// From here on every call on the context gives `result`.
static void expect_sticky(contract_t* t, kiln_cu_result_t result) {
  kiln_cu_deviceptr_t address = 0;
  kiln_cu_stream_t stream = NULL;
  CHECK(t->cu->cuCtxSynchronize() == result);
  CHECK(t->cu->cuMemAlloc(&address, 4) == result);
  CHECK(t->cu->cuStreamCreate(&stream, 0) == result);
  CHECK(t->cu->cuStreamSynchronize(NULL) == result);
  // Questions about the device still have their answers.
  int value = 0;
  OK(t->cu->cuDeviceGetAttribute(&value, KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE,
                                 t->device));
  kiln_cu_context_t context = NULL;
  OK(t->cu->cuCtxGetCurrent(&context));
  CHECK(context == t->context);
}

static void illegal_address(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t bad = 64;
  void* params[] = {&bad};
  OK(contract_one(t, module, "stray", NULL, params));
  IS(ILLEGAL_ADDRESS, t->cu->cuCtxSynchronize());
  expect_sticky(t, KILN_CU_ERROR_ILLEGAL_ADDRESS);
}

static void illegal_address_by_copy(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t good = 0;
  kiln_cu_deviceptr_t bad = 64;
  uint32_t word = 0;
  OK(t->cu->cuMemAlloc(&good, 4));
  void* params[] = {&bad};
  OK(contract_one(t, module, "stray", NULL, params));
  // The next call that waits reports it.
  IS(ILLEGAL_ADDRESS, t->cu->cuMemcpyDtoH(&word, good, 4));
  expect_sticky(t, KILN_CU_ERROR_ILLEGAL_ADDRESS);
}

static void misaligned_address(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t good = 0;
  OK(t->cu->cuMemAlloc(&good, 64));
  kiln_cu_deviceptr_t odd = good + 2;
  void* params[] = {&odd};
  OK(contract_one(t, module, "stray", NULL, params));
  IS(MISALIGNED_ADDRESS, t->cu->cuCtxSynchronize());
  expect_sticky(t, KILN_CU_ERROR_MISALIGNED_ADDRESS);
}

static void trap(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  OK(contract_one(t, module, "trapped", NULL, NULL));
  kiln_cu_result_t result = t->cu->cuCtxSynchronize();
  CHECK(result == KILN_CU_ERROR_LAUNCH_FAILED ||
        result == KILN_CU_ERROR_ILLEGAL_INSTRUCTION);
  expect_sticky(t, result);
}

static void device_assert(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  OK(contract_one(t, module, "asserted", NULL, NULL));
  IS(ASSERT, t->cu->cuCtxSynchronize());
  expect_sticky(t, KILN_CU_ERROR_ASSERT);
}

static void note(void* user) {
  *(int*)user = 1;
}

static void nothing_runs_behind(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t bad = 64;
  int called = 0;
  void* params[] = {&bad};
  OK(t->cu->cuStreamCreate(&stream, 0));
  OK(contract_one(t, module, "stray", stream, params));
  kiln_cu_result_t result = t->cu->cuLaunchHostFunc(stream, note, &called);
  CHECK(result == KILN_CU_SUCCESS || result == KILN_CU_ERROR_ILLEGAL_ADDRESS);
  IS(ILLEGAL_ADDRESS, t->cu->cuStreamSynchronize(stream));
  CHECK(called == 0);
}

static void printing(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  FILE* file = tmpfile();
  CHECK(file != NULL);
  fflush(stdout);
  int saved = dup(STDOUT_FILENO);
  CHECK(saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
  uint32_t value = 42;
  void* params[] = {&value};
  kiln_cu_result_t launched = contract_one(t, module, "say", NULL, params);
  kiln_cu_result_t waited = t->cu->cuCtxSynchronize();
  fflush(stdout);
  CHECK(dup2(saved, STDOUT_FILENO) >= 0);
  OK(launched);
  OK(waited);
  char text[64] = "";
  rewind(file);
  size_t length = fread(text, 1, sizeof(text) - 1, file);
  text[length] = '\0';
  fclose(file);
  close(saved);
  CHECK(strcmp(text, "value 42\n") == 0);
  OK(t->cu->cuModuleUnload(module));
}

static const contract_case_t kCases[] = {
    {"illegal_address", illegal_address, CONTRACT_CHILD},
    {"illegal_address_by_copy", illegal_address_by_copy, CONTRACT_CHILD},
    {"misaligned_address", misaligned_address, CONTRACT_CHILD},
    {"trap", trap, CONTRACT_CHILD},
    {"device_assert", device_assert, CONTRACT_CHILD},
    {"nothing_runs_behind", nothing_runs_behind, CONTRACT_CHILD},
    {"printing", printing, CONTRACT_CHILD},
};
CONTRACT_GROUP(contract_fault, kCases);
