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
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "fault_alloc.h"
#include "fault_run.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

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

static void nothing(void* user) {
  (void)user;
}

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

// A graph of every kind of node that needs memory of its own.
static kiln_cu_result_t fill_graph(const kiln_cuda_table_t* cu,
                                   kiln_cu_graph_t graph, kiln_cu_function_t f,
                                   kiln_cu_deviceptr_t a) {
  uint32_t value = 5;
  void* params[] = {&a, &value};
  const kiln_cu_kernel_node_t kernel = {.function = f,
                                        .grid_x = 1,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = 1,
                                        .block_y = 1,
                                        .block_z = 1,
                                        .params = params};
  const kiln_cu_host_node_t host = {nothing, NULL};
  kiln_cu_mem_op_t write;
  memset(&write, 0, sizeof(write));
  write.value.operation = KILN_CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.value.address = a;
  const kiln_cu_mem_op_node_t values = {NULL, 1, &write, 0};
  kiln_cu_graph_t child = NULL;
  kiln_cu_graph_node_t nodes[4] = {NULL};
  kiln_cu_launch_attribute_value_t priority;
  memset(&priority, 0, sizeof(priority));
  TRY(cu->cuGraphAddKernelNode(&nodes[0], graph, NULL, 0, &kernel));
  TRY(cu->cuGraphKernelNodeSetAttribute(
      nodes[0], KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority));
  TRY(cu->cuGraphAddHostNode(&nodes[1], graph, nodes, 1, &host));
  TRY(cu->cuGraphAddBatchMemOpNode(&nodes[2], graph, nodes, 2, &values));
  TRY(cu->cuGraphCreate(&child, 0));
  TRY(cu->cuGraphAddKernelNode(&nodes[3], child, NULL, 0, &kernel));
  TRY(cu->cuGraphAddChildGraphNode(&nodes[3], graph, nodes, 3, child));
  return cu->cuGraphDestroy(child);
}

// What no clone may have.
static kiln_cu_result_t fill_choice(const kiln_cuda_table_t* cu,
                                    kiln_cu_graph_t graph, kiln_cu_function_t f,
                                    kiln_cu_deviceptr_t a) {
  uint32_t value = 5;
  void* params[] = {&a, &value};
  const kiln_cu_kernel_node_t kernel = {.function = f,
                                        .grid_x = 1,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = 1,
                                        .block_y = 1,
                                        .block_z = 1,
                                        .params = params};
  kiln_cu_graph_node_t nodes[2] = {NULL};
  kiln_cu_graph_node_params_t choice;
  memset(&choice, 0, sizeof(choice));
  choice.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  choice.of.conditional.type = KILN_CU_GRAPH_COND_TYPE_IF;
  choice.of.conditional.count = 1;
  TRY(cu->cuGraphConditionalHandleCreate(&choice.of.conditional.handle, graph,
                                         NULL, 1,
                                         KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  TRY(cu->cuGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &choice));
  return cu->cuGraphAddKernelNode(&nodes[1], choice.of.conditional.graphs[0],
                                  NULL, 0, &kernel);
}

static kiln_cu_result_t graphs(const kiln_cuda_table_t* cu) {
  kiln_cu_stream_t stream = NULL;
  kiln_cu_module_t module = NULL;
  kiln_cu_function_t f = NULL;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_t clone = NULL;
  kiln_cu_user_object_t object = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_update_t outcome;
  TRY(cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  TRY(cu->cuModuleLoadData(&module, kText));
  TRY(cu->cuModuleGetFunction(&f, module, "put"));
  TRY(cu->cuMemAlloc(&a, 64));
  TRY(cu->cuGraphCreate(&graph, 0));
  TRY(fill_graph(cu, graph, f, a));
  TRY(cu->cuUserObjectCreate(&object, NULL, nothing, 1,
                             KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  TRY(cu->cuGraphRetainUserObject(graph, object, 1,
                                  KILN_CU_GRAPH_USER_OBJECT_MOVE));
  TRY(cu->cuGraphClone(&clone, graph));
  TRY(fill_choice(cu, graph, f, a));
  kiln_cu_result_t drawn =
      cu->cuGraphDebugDotPrint(graph, "test_soft_rows.dot", 1);
  remove("test_soft_rows.dot");
  TRY(drawn);
  TRY(cu->cuGraphInstantiateWithParams(&exec, graph, &params));
  TRY(cu->cuGraphLaunch(exec, stream));
  TRY(cu->cuGraphExecUpdate(exec, graph, &outcome));
  TRY(cu->cuGraphLaunch(exec, stream));
  TRY(cu->cuStreamSynchronize(stream));
  TRY(cu->cuGraphDestroy(clone));
  TRY(cu->cuGraphDestroy(graph));
  TRY(cu->cuGraphExecDestroy(exec));
  TRY(cu->cuMemFree(a));
  return cu->cuModuleUnload(module);
}

static kiln_cu_result_t captures(const kiln_cuda_table_t* cu) {
  kiln_cu_stream_t streams[2] = {NULL, NULL};
  kiln_cu_event_t events[2] = {NULL, NULL};
  kiln_cu_module_t module = NULL;
  kiln_cu_function_t f = NULL;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t made = 0;
  kiln_cu_graph_t graph = NULL;
  const kiln_cu_graph_node_t* nodes = NULL;
  kiln_cu_capture_status_t status = 0;
  size_t count = 0;
  for (int i = 0; i < 2; i++) {
    TRY(cu->cuStreamCreate(&streams[i], KILN_CU_STREAM_NON_BLOCKING));
    TRY(cu->cuEventCreate(&events[i], KILN_CU_EVENT_DISABLE_TIMING));
  }
  TRY(cu->cuModuleLoadData(&module, kText));
  TRY(cu->cuModuleGetFunction(&f, module, "put"));
  TRY(cu->cuMemAlloc(&a, 64));
  TRY(cu->cuStreamBeginCapture(streams[0],
                               KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  TRY(launch(cu, f, streams[0], a));
  TRY(cu->cuEventRecord(events[0], streams[0]));
  TRY(cu->cuStreamWaitEvent(streams[1], events[0], 0));
  TRY(cu->cuMemsetD8Async(a, 1, 64, streams[1]));
  TRY(cu->cuMemAllocAsync(&made, 64, streams[0]));
  TRY(cu->cuMemFreeAsync(made, streams[0]));
  TRY(cu->cuStreamGetCaptureInfo(streams[0], &status, NULL, NULL, &nodes,
                                 &count));
  TRY(cu->cuEventRecord(events[1], streams[1]));
  TRY(cu->cuStreamWaitEvent(streams[0], events[1], 0));
  TRY(cu->cuLaunchHostFunc(streams[0], nothing, NULL));
  TRY(cu->cuStreamEndCapture(streams[0], &graph));
  TRY(cu->cuGraphDestroy(graph));
  TRY(cu->cuMemFree(a));
  for (int i = 0; i < 2; i++) TRY(cu->cuStreamDestroy(streams[i]));
  return cu->cuModuleUnload(module);
}

static kiln_status_t start_and_run(kiln_allocator_t allocator, void* user) {
  path_t path = *(path_t*)user;
  static kilni_base_env_t env;
  kiln_cuda_table_t cu;
  kiln_host_t host = {.allocator = allocator,
                      .env = &env,
                      .worker_count = 1,
                      .process_id = kilni_base_process_id()};
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
  if (result != KILN_CU_ERROR_OUT_OF_MEMORY) {
    assert_int_equal(result, KILN_CU_SUCCESS);
  }
  return result == KILN_CU_SUCCESS
             ? NULL
             : kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
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
SWEEP(graphs, 0)
SWEEP(captures, 0)
SWEEP(host_memory, 0)
SWEEP(peers, 0)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pools),       cmocka_unit_test(test_virtual_memory),
      cmocka_unit_test(test_libraries),   cmocka_unit_test(test_links),
      cmocka_unit_test(test_host_memory), cmocka_unit_test(test_peers),
      cmocka_unit_test(test_graphs),      cmocka_unit_test(test_captures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
