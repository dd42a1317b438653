// SPDX-License-Identifier: Apache-2.0
//
// contract: green contexts: a part of a device's multiprocessors as a context
// over the memory and the code of the primary one.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

// Not there before CUDA 12.4 and 12.5: nothing to ask then.
static bool has_parts(const contract_t* t) {
  return kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuGreenCtxCreate) &&
         kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuGreenCtxStreamCreate);
}

static kiln_cu_dev_resource_t all_of(contract_t* t) {
  kiln_cu_dev_resource_t all;
  memset(&all, 0, sizeof(all));
  OK(t->cu->cuDeviceGetDevResource(t->device, &all,
                                   KILN_CU_DEV_RESOURCE_TYPE_SM));
  CHECK(all.of.sm.count > 0);
  return all;
}

// The first part of a split into the smallest.
static kiln_cu_green_context_t make_part(contract_t* t) {
  kiln_cu_dev_resource_t all = all_of(t);
  kiln_cu_dev_resource_t part;
  kiln_cu_dev_resource_t rest;
  kiln_cu_resource_desc_t desc = NULL;
  kiln_cu_green_context_t green = NULL;
  unsigned int count = 0;
  OK(t->cu->cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 1));
  CHECK(count > 0);
  count = 1;
  memset(&part, 0, sizeof(part));
  memset(&rest, 0, sizeof(rest));
  OK(t->cu->cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 1));
  CHECK(count == 1);
  CHECK(part.of.sm.count >= 1);
  CHECK(part.of.sm.count + rest.of.sm.count == all.of.sm.count);
  OK(t->cu->cuDevResourceGenerateDesc(&desc, &part, 1));
  CHECK(desc != NULL);
  OK(t->cu->cuGreenCtxCreate(&green, desc, t->device,
                             KILN_CU_GREEN_CTX_DEFAULT_STREAM));
  CHECK(green != NULL);
  return green;
}

// Asks only what needs no answer, for the null provider too.
static void green_life(contract_t* t) {
  if (!has_parts(t)) return;
  kiln_cu_green_context_t green = make_part(t);
  kiln_cu_context_t context = NULL;
  kiln_cu_context_t current = NULL;
  kiln_cu_stream_t stream = NULL;
  OK(t->cu->cuCtxFromGreenCtx(&context, green));
  CHECK(context != NULL);
  CHECK(context != t->context);
  OK(t->cu->cuGreenCtxStreamCreate(&stream, green, KILN_CU_STREAM_NON_BLOCKING,
                                   0));
  OK(t->cu->cuCtxGetCurrent(&current));
  CHECK(current == t->context);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuGreenCtxDestroy(green));
}

// A stream of a part knows its context, which knows what it was made of.
static void green_context(contract_t* t) {
  if (!has_parts(t)) return;
  kiln_cu_green_context_t green = make_part(t);
  kiln_cu_context_t context = NULL;
  kiln_cu_context_t of_stream = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_dev_resource_t part;
  memset(&part, 0, sizeof(part));
  OK(t->cu->cuCtxFromGreenCtx(&context, green));
  OK(t->cu->cuGreenCtxGetDevResource(green, &part,
                                     KILN_CU_DEV_RESOURCE_TYPE_SM));
  CHECK(part.of.sm.count < all_of(t).of.sm.count);
  OK(t->cu->cuGreenCtxStreamCreate(&stream, green, KILN_CU_STREAM_NON_BLOCKING,
                                   0));
  OK(t->cu->cuStreamGetCtx(stream, &of_stream));
  CHECK(of_stream == context);
  OK(t->cu->cuStreamDestroy(stream));
  // Made in the context as it is current, for drivers before 12.5.
  OK(t->cu->cuCtxSetCurrent(context));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuCtxSetCurrent(t->context));
  OK(t->cu->cuStreamGetCtx(stream, &of_stream));
  CHECK(of_stream == context);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuGreenCtxDestroy(green));
}

// Memory and kernels of the primary context are used in the part.
static void green_launch(contract_t* t) {
  if (!has_parts(t)) return;
  kiln_cu_green_context_t green = make_part(t);
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t at = 0;
  uint32_t value = 77;
  uint32_t back = 0;
  void* params[] = {&at, &value};
  OK(t->cu->cuMemAlloc(&at, 256));
  OK(t->cu->cuMemsetD8(at, 0, 256));
  OK(t->cu->cuCtxSynchronize());
  OK(t->cu->cuGreenCtxStreamCreate(&stream, green, KILN_CU_STREAM_NON_BLOCKING,
                                   0));
  OK(contract_one(t, module, "put", stream, params));
  OK(t->cu->cuStreamSynchronize(stream));
  OK(t->cu->cuMemcpyDtoH(&back, at, sizeof(back)));
  CHECK(back == 77);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemFree(at));
  OK(t->cu->cuModuleUnload(module));
  OK(t->cu->cuGreenCtxDestroy(green));
}

static void green_arguments(contract_t* t) {
  if (!has_parts(t)) return;
  kiln_cu_dev_resource_t all = all_of(t);
  kiln_cu_green_context_t green = make_part(t);
  kiln_cu_stream_t stream = NULL;
  unsigned int count = 0;
  IS(INVALID_RESOURCE_CONFIGURATION,
     t->cu->cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0,
                                        all.of.sm.count + 1));
  IS(INVALID_VALUE, t->cu->cuGreenCtxStreamCreate(&stream, green, 0, 0));
  OK(t->cu->cuGreenCtxDestroy(green));
}

static const contract_case_t kCases[] = {
    {"green_life", green_life, CONTRACT_PLAIN},
    {"green_context", green_context, CONTRACT_PLAIN},
    {"green_launch", green_launch, CONTRACT_PLAIN},
    {"green_arguments", green_arguments, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_green, kCases);
