// SPDX-License-Identifier: Apache-2.0
//
// contract: what passes between devices. Cases that want two are skipped where
// there is one.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

enum { BYTES = 4096 };

static void peer_arguments(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  int value = -1;
  int count = 0;
  OK(cu->cuDeviceGetCount(&count));
  OK(cu->cuDeviceCanAccessPeer(&value, t->device, t->device));
  CHECK(value == 0);
  IS(INVALID_DEVICE, cu->cuDeviceCanAccessPeer(&value, t->device, count));
  IS(INVALID_DEVICE, cu->cuDeviceCanAccessPeer(&value, -1, t->device));
  IS(INVALID_VALUE, cu->cuDeviceCanAccessPeer(NULL, t->device, t->device));
  IS(INVALID_DEVICE,
     cu->cuDeviceGetP2PAttribute(&value, KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                 t->device, t->device));
  IS(INVALID_CONTEXT, cu->cuCtxEnablePeerAccess(NULL, 0));
  IS(PEER_ACCESS_UNSUPPORTED, cu->cuCtxEnablePeerAccess(t->context, 0));
}

// A context's copies within itself.
static void peer_copy_here(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  uint32_t value = 0;
  OK(cu->cuMemAlloc(&a, BYTES));
  OK(cu->cuMemAlloc(&b, BYTES));
  OK(cu->cuMemsetD32(a, 7, BYTES / 4));
  OK(cu->cuMemsetD32(b, 8, BYTES / 4));
  OK(cu->cuMemcpyPeer(b, t->context, a, t->context, 4));
  OK(cu->cuMemcpyDtoH(&value, b, 4));
  CHECK(value == 7);
  OK(cu->cuMemcpyPeerAsync(a, t->context, b + 4, t->context, 4,
                           KILN_CU_STREAM_LEGACY));
  OK(cu->cuMemcpyDtoH(&value, a, 4));
  CHECK(value == 8);
  OK(cu->cuMemcpyPeer(b, t->context, a, t->context, 0));
  OK(cu->cuMemFree(a));
  OK(cu->cuMemFree(b));
}

// ---- Two devices ----

// The second device, with its context current. one-thread
typedef struct second_t {
  kiln_cu_device_t device;
  kiln_cu_context_t context;
  kiln_cu_stream_t stream;
  kiln_cu_deviceptr_t near;  // its own
  kiln_cu_deviceptr_t far;   // of the first
} second_t;

static void begin(contract_t* t, second_t* second) {
  const kiln_cuda_table_t* cu = t->cu;
  memset(second, 0, sizeof(*second));
  OK(cu->cuDeviceGet(&second->device, 1));
  OK(cu->cuMemAlloc(&second->far, BYTES));
  OK(cu->cuMemsetD32(second->far, 41, BYTES / 4));
  OK(cu->cuCtxSynchronize());
  OK(cu->cuDevicePrimaryCtxRetain(&second->context, second->device));
  OK(cu->cuCtxSetCurrent(second->context));
  OK(cu->cuStreamCreate(&second->stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuMemAlloc(&second->near, BYTES));
  OK(cu->cuMemsetD32(second->near, 0, BYTES / 4));
  OK(cu->cuCtxSynchronize());
}

static void end(contract_t* t, second_t* second) {
  OK(t->cu->cuStreamDestroy(second->stream));
  OK(t->cu->cuMemFree(second->near));
  OK(t->cu->cuCtxSetCurrent(t->context));
  OK(t->cu->cuMemFree(second->far));
  OK(t->cu->cuDevicePrimaryCtxRelease(second->device));
}

static uint32_t read_word(contract_t* t, kiln_cu_deviceptr_t address) {
  uint32_t value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, address, sizeof(value)));
  return value;
}

static void peer_two_copies(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  second_t second;
  begin(t, &second);
  OK(cu->cuMemcpyPeer(second.near, second.context, second.far, t->context, 4));
  CHECK(read_word(t, second.near) == 41);
  OK(cu->cuMemsetD32Async(second.near, 42, 1, second.stream));
  OK(cu->cuMemcpyPeerAsync(second.far, t->context, second.near, second.context,
                           4, second.stream));
  OK(cu->cuStreamSynchronize(second.stream));
  CHECK(read_word(t, second.far) == 42);
  // An address says whose it is.
  OK(cu->cuMemcpyDtoD(second.near + 4, second.far, 4));
  CHECK(read_word(t, second.near + 4) == 42);
  end(t, &second);
}

static void peer_two_access(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  second_t second;
  begin(t, &second);
  int can = 0;
  OK(cu->cuDeviceCanAccessPeer(&can, second.device, t->device));
  if (can == 0) {
    IS(PEER_ACCESS_UNSUPPORTED, cu->cuCtxEnablePeerAccess(t->context, 0));
    end(t, &second);
    return;
  }
  OK(cu->cuDeviceGetP2PAttribute(&can, KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                 second.device, t->device));
  CHECK(can == 1);
  IS(PEER_ACCESS_NOT_ENABLED, cu->cuCtxDisablePeerAccess(t->context));
  IS(INVALID_VALUE, cu->cuCtxEnablePeerAccess(t->context, 1));
  OK(cu->cuCtxEnablePeerAccess(t->context, 0));
  IS(PEER_ACCESS_ALREADY_ENABLED, cu->cuCtxEnablePeerAccess(t->context, 0));
  kiln_cu_module_t module = contract_load(t);
  uint32_t value = 51;
  void* params[] = {&second.far, &value};
  OK(contract_one(t, module, "put", second.stream, params));
  OK(cu->cuStreamSynchronize(second.stream));
  CHECK(read_word(t, second.far) == 51);
  OK(cu->cuCtxDisablePeerAccess(t->context));
  OK(cu->cuModuleUnload(module));
  end(t, &second);
}

// The fault stays with the context that it happened in.
static void peer_two_stray(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  second_t second;
  begin(t, &second);
  kiln_cu_module_t module = contract_load(t);
  uint32_t value = 51;
  void* params[] = {&second.far, &value};
  OK(contract_one(t, module, "put", second.stream, params));
  IS(ILLEGAL_ADDRESS, cu->cuStreamSynchronize(second.stream));
  IS(ILLEGAL_ADDRESS, cu->cuCtxSynchronize());
}

static void peer_two_events(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  second_t second;
  begin(t, &second);
  kiln_cu_event_t near = NULL;
  kiln_cu_event_t far = NULL;
  kiln_cu_stream_t stream = NULL;
  OK(cu->cuEventCreate(&near, 0));
  OK(cu->cuEventRecord(near, second.stream));
  OK(cu->cuCtxSetCurrent(t->context));
  OK(cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuEventCreate(&far, 0));
  IS(INVALID_HANDLE, cu->cuEventRecord(near, stream));
  OK(cu->cuStreamWaitEvent(stream, near, 0));
  OK(cu->cuEventRecord(far, stream));
  OK(cu->cuEventSynchronize(far));
  OK(cu->cuEventSynchronize(near));
  float ms = 0;
  IS(INVALID_HANDLE, cu->cuEventElapsedTime(&ms, near, far));
  OK(cu->cuEventDestroy(near));
  OK(cu->cuEventDestroy(far));
  OK(cu->cuStreamDestroy(stream));
  OK(cu->cuCtxSetCurrent(second.context));
  end(t, &second);
}

static const contract_case_t kCases[] = {
    {"peer_arguments", peer_arguments, CONTRACT_PLAIN},
    {"peer_copy_here", peer_copy_here, CONTRACT_PLAIN},
    {"peer_two_copies", peer_two_copies, CONTRACT_TWO},
    {"peer_two_access", peer_two_access, CONTRACT_TWO},
    {"peer_two_stray", peer_two_stray, CONTRACT_TWO | CONTRACT_CHILD},
    {"peer_two_events", peer_two_events, CONTRACT_TWO},
};
CONTRACT_GROUP(contract_peer, kCases);
