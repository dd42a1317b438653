// SPDX-License-Identifier: Apache-2.0
//
// soft: the rows that a plain launch does not go over, with every allocation of
// the software device failing: pools, virtual memory, libraries, links, host
// memory, host functions. Each call is done or says OUT_OF_MEMORY, nothing
// leaks, and whatever was made before goes with the context.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "fault_alloc.h"
#include "fault_run.h"
#include "soft/soft.h"

enum { PAGE = 2 << 20 };

static const char kText[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .u32 step = 3;\n"
    ".visible .entry put(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
    "st.global.u32 [%rd1], %r1;\nret;\n}\n";

#define TRY(call)                                         \
  do {                                                    \
    kiln_cu_result_t try_result = (call);                 \
    if (try_result != KILN_CU_SUCCESS) return try_result; \
  } while (0)

typedef kiln_cu_result_t (*path_t)(const kiln_cuda_table_t* cu);

static kiln_cu_result_t launch(const kiln_cuda_table_t* cu,
                               kiln_cu_function_t f, kiln_cu_stream_t stream,
                               kiln_cu_deviceptr_t address) {
  uint32_t value = 5;
  void* params[] = {&address, &value};
  return cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static kiln_cu_result_t pools(const kiln_cuda_table_t* cu) {
  kiln_cu_mempool_props_t props;
  memset(&props, 0, sizeof(props));
  props.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  TRY(cu->cuStreamCreateWithPriority(&stream, 1, -1));
  TRY(cu->cuMemPoolCreate(&pool, &props));
  TRY(cu->cuMemAllocFromPoolAsync(&a, 4096, pool, stream));
  TRY(cu->cuMemAllocAsync(&b, 4096, stream));
  TRY(cu->cuMemsetD8Async(a, 1, 4096, stream));
  TRY(cu->cuMemcpyDtoDAsync(b, a, 4096, stream));
  TRY(cu->cuMemFreeAsync(a, stream));
  TRY(cu->cuMemPoolDestroy(pool));
  TRY(cu->cuMemFreeAsync(b, stream));
  TRY(cu->cuStreamDestroy(stream));
  return cu->cuCtxSynchronize();
}

static kiln_cu_result_t virtual_memory(const kiln_cuda_table_t* cu) {
  kiln_cu_mem_allocation_prop_t prop;
  kiln_cu_mem_access_desc_t desc;
  memset(&prop, 0, sizeof(prop));
  memset(&desc, 0, sizeof(desc));
  prop.type = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  desc.location = prop.location;
  desc.flags = KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  kiln_cu_deviceptr_t at = 0;
  kiln_cu_mem_handle_t handle = 0;
  TRY(cu->cuMemAddressReserve(&at, 2 * PAGE, 0, 0, 0));
  kiln_cu_result_t result = cu->cuMemCreate(&handle, PAGE, &prop, 0);
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuMemMap(at, PAGE, 0, handle, 0);
    (void)cu->cuMemRelease(handle);
    if (result == KILN_CU_SUCCESS) {
      result = cu->cuMemSetAccess(at, PAGE, &desc, 1);
      if (result == KILN_CU_SUCCESS) result = cu->cuMemsetD32(at, 7, 16);
      (void)cu->cuMemUnmap(at, PAGE);
    }
  }
  (void)cu->cuMemAddressFree(at, 2 * PAGE);
  return result;
}

static kiln_cu_result_t libraries(const kiln_cuda_table_t* cu) {
  kiln_cu_library_t library = NULL;
  kiln_cu_kernel_t kernel = NULL;
  kiln_cu_function_t f = NULL;
  kiln_cu_module_t module = NULL;
  kiln_cu_deviceptr_t address = 0;
  size_t bytes = 0;
  TRY(cu->cuLibraryLoadData(&library, kText, NULL, NULL, 0, NULL, NULL, 0));
  TRY(cu->cuLibraryGetKernel(&kernel, library, "put"));
  TRY(cu->cuKernelGetFunction(&f, kernel));
  TRY(cu->cuLibraryGetModule(&module, library));
  TRY(cu->cuLibraryGetGlobal(&address, &bytes, library, "step"));
  TRY(launch(cu, f, NULL, address));
  TRY(cu->cuCtxSynchronize());
  return cu->cuLibraryUnload(library);
}

static kiln_cu_result_t links(const kiln_cuda_table_t* cu) {
  kiln_cu_link_state_t link = NULL;
  void* code = NULL;
  size_t bytes = 0;
  kiln_cu_module_t module = NULL;
  TRY(cu->cuLinkCreate(0, NULL, NULL, &link));
  kiln_cu_result_t result =
      cu->cuLinkAddData(link, KILN_CU_JIT_INPUT_PTX, (void*)(uintptr_t)kText,
                        sizeof(kText), "text", 0, NULL, NULL);
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuLinkComplete(link, &code, &bytes);
  }
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuModuleLoadDataEx(&module, code, 0, NULL, NULL);
  }
  kiln_cu_result_t end = cu->cuLinkDestroy(link);
  TRY(result);
  TRY(end);
  return cu->cuModuleUnload(module);
}

static void nothing(void* user) {
  (void)user;
}

static kiln_cu_result_t host_memory(const kiln_cuda_table_t* cu) {
  static uint8_t own[8192];
  void* page = (void*)(((uintptr_t)own + 4095) & ~(uintptr_t)4095);
  void* pinned = NULL;
  kiln_cu_deviceptr_t managed = 0;
  TRY(cu->cuMemHostAlloc(&pinned, 4096, 0));
  TRY(cu->cuMemAllocManaged(&managed, 4096, 1));
  kiln_cu_result_t result = cu->cuMemHostRegister(page, 4096, 0);
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuLaunchHostFunc(NULL, nothing, NULL);
    if (result == KILN_CU_SUCCESS) result = cu->cuCtxSynchronize();
    (void)cu->cuMemHostUnregister(page);
  }
  TRY(result);
  TRY(cu->cuMemFree(managed));
  return cu->cuMemFreeHost(pinned);
}

static kiln_cu_result_t peers(const kiln_cuda_table_t* cu) {
  kiln_cu_context_t context[2] = {NULL, NULL};
  kiln_cu_deviceptr_t near = 0;
  kiln_cu_deviceptr_t far = 0;
  TRY(cu->cuCtxGetCurrent(&context[0]));
  TRY(cu->cuMemAlloc(&near, 4096));
  TRY(cu->cuDevicePrimaryCtxRetain(&context[1], 1));
  kiln_cu_result_t result = cu->cuCtxEnablePeerAccess(context[1], 0);
  (void)cu->cuCtxSetCurrent(context[1]);
  if (result == KILN_CU_SUCCESS) result = cu->cuMemAlloc(&far, 4096);
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuMemcpyPeer(far, context[1], near, context[0], 4096);
  }
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuMemcpyPeerAsync(near, context[0], far, context[1], 4096,
                                   KILN_CU_STREAM_PER_THREAD);
  }
  (void)cu->cuDevicePrimaryCtxRelease(1);
  (void)cu->cuCtxSetCurrent(context[0]);
  return result;
}

static kiln_status_t start_and_run(kiln_allocator_t allocator, void* user) {
  path_t path = *(path_t*)user;
  static kilni_env_t env;
  kiln_cuda_table_t cu;
  kiln_host_t host = {.allocator = allocator,
                      .env = &env,
                      .worker_count = 1,
                      .process_id = kilni_process_id()};
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .worker_count = 1,
                                  .seed = 1,
                                  .device_count = 2};
  kiln_status_t status = kilni_soft_start(&host, &options, &cu);
  if (!kiln_status_is_ok(status)) return status;
  kiln_cu_context_t context = NULL;
  kiln_cu_result_t result = cu.cuInit(0);
  if (result == KILN_CU_SUCCESS) {
    result = cu.cuDevicePrimaryCtxRetain(&context, 0);
  }
  if (result == KILN_CU_SUCCESS) result = cu.cuCtxSetCurrent(context);
  if (result == KILN_CU_SUCCESS) result = path(&cu);
  kilni_soft_stop();
  assert_true(result == KILN_CU_SUCCESS ||
              result == KILN_CU_ERROR_OUT_OF_MEMORY);
  return result == KILN_CU_SUCCESS
             ? NULL
             : kilni_status_bare(KILN_STATUS_OUT_OF_MEMORY);
}

static void sweep(path_t path, uint32_t flags) {
  uint64_t points = fault_run_allocations(start_and_run, &path, flags);
  print_message("%llu allocations\n", (unsigned long long)points);
  assert_true(points > 5);
}

#define SWEEP(name, flags)                \
  static void test_##name(void** state) { \
    (void)state;                          \
    sweep(name, flags);                   \
  }
SWEEP(pools, 0)
SWEEP(virtual_memory, 0)
SWEEP(libraries, 0)
// A link that is done is done, also where no line of its log could be kept.
SWEEP(links, FAULT_RUN_MAY_PASS)
SWEEP(host_memory, 0)
SWEEP(peers, 0)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pools),       cmocka_unit_test(test_virtual_memory),
      cmocka_unit_test(test_libraries),   cmocka_unit_test(test_links),
      cmocka_unit_test(test_host_memory), cmocka_unit_test(test_peers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
