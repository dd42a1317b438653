// SPDX-License-Identifier: Apache-2.0
//
// soft: several devices in one process: what each has of its own, who may use
// whose memory, copies and events between them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

enum { BYTES = 4096, PAGE = 2 << 20 };

// Stores to the first address what the second holds, plus 1.
static const char kText[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry next(.param .u64 p, .param .u64 q)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
    "ld.global.u32 %r1, [%rd2]; add.u32 %r1, %r1, 1;\n"
    "st.global.u32 [%rd1], %r1;\nret;\n}\n";

// Two devices, with what is made on each. one-thread
typedef struct world_t {
  kiln_host_t host;
  kiln_cuda_table_t cu;
  kiln_cu_context_t context[2];
  kiln_cu_stream_t stream[2];
  kiln_cu_function_t next[2];
} world_t;

#define OK(call)         assert_int_equal((call), KILN_CU_SUCCESS)
#define SAYS(code, call) assert_int_equal((call), KILN_CU_ERROR_##code)

static kiln_status_t start(world_t* world, uint32_t devices,
                           uint32_t page_check) {
  memset(world, 0, sizeof(*world));
  static kilni_base_env_t env;
  world->host.allocator = kiln_allocator_libc();
  world->host.env = &env;
  world->host.process_id = kilni_base_process_id();
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .worker_count = 2,
                                  .device_count = devices,
                                  .page_check = page_check};
  return kilni_soft_start(&world->host, &options, &world->cu);
}

// The primary context of a device, current, with a stream and the kernel.
static void begin(world_t* world, int device) {
  const kiln_cuda_table_t* cu = &world->cu;
  kiln_cu_module_t module = NULL;
  OK(cu->cuDevicePrimaryCtxRetain(&world->context[device], device));
  OK(cu->cuCtxSetCurrent(world->context[device]));
  OK(cu->cuStreamCreate(&world->stream[device], KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuModuleLoadData(&module, kText));
  OK(cu->cuModuleGetFunction(&world->next[device], module, "next"));
}

static int set_up(void** state) {
  static world_t world;
  if (!kiln_status_is_ok(start(&world, 2, 0))) return -1;
  OK(world.cu.cuInit(0));
  begin(&world, 0);
  begin(&world, 1);
  *state = &world;
  return 0;
}

static int tear_down(void** state) {
  world_t* world = *state;
  OK(world->cu.cuCtxSetCurrent(NULL));
  (void)world->cu.cuDevicePrimaryCtxRelease(0);
  (void)world->cu.cuDevicePrimaryCtxRelease(1);
  kilni_soft_stop();
  return 0;
}

static void use(world_t* world, int device) {
  OK(world->cu.cuCtxSetCurrent(world->context[device]));
}

// Ends a context with a fault, and begins anew.
static void renew(world_t* world, int device) {
  OK(world->cu.cuDevicePrimaryCtxRelease(device));
  begin(world, device);
}

static kiln_cu_deviceptr_t take(world_t* world, int device, uint32_t value) {
  kiln_cu_deviceptr_t address = 0;
  use(world, device);
  OK(world->cu.cuMemAlloc(&address, BYTES));
  OK(world->cu.cuMemsetD32(address, value, BYTES / 4));
  OK(world->cu.cuCtxSynchronize());
  return address;
}

// What the kernel does on a device: `to` becomes `from` plus 1.
static kiln_cu_result_t run(world_t* world, int device, kiln_cu_deviceptr_t to,
                            kiln_cu_deviceptr_t from) {
  void* params[] = {&to, &from};
  use(world, device);
  OK(world->cu.cuLaunchKernel(world->next[device], 1, 1, 1, 1, 1, 1, 0,
                              world->stream[device], params, NULL));
  return world->cu.cuStreamSynchronize(world->stream[device]);
}

static void holds(world_t* world, kiln_cu_deviceptr_t address,
                  uint32_t wanted) {
  uint32_t value = 0;
  OK(world->cu.cuMemcpyDtoH(&value, address, sizeof(value)));
  assert_int_equal(value, wanted);
}

// ---- What each has ----

static void test_facts(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  int count = 0;
  int value = -1;
  kiln_cu_uuid_t uuid[2];
  char bus[2][16];
  OK(cu->cuDeviceGetCount(&count));
  assert_int_equal(count, 2);
  for (int i = 0; i < 2; i++) {
    kiln_cu_device_t device = -1;
    OK(cu->cuDeviceGet(&device, i));
    assert_int_equal(device, i);
    OK(cu->cuDeviceGetUuid(&uuid[i], device));
    OK(cu->cuDeviceGetPCIBusId(bus[i], sizeof(bus[i]), device));
    OK(cu->cuDeviceGetAttribute(&value, KILN_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
                                device));
    assert_int_equal(value, i);
    use(world, i);
    OK(cu->cuCtxGetDevice(&device));
    assert_int_equal(device, i);
    OK(cu->cuStreamCreate(&world->stream[i], 0));
    kiln_cu_context_t of = NULL;
    OK(cu->cuStreamGetCtx(world->stream[i], &of));
    assert_ptr_equal(of, world->context[i]);
  }
  assert_string_equal(bus[0], "0000:00:00.0");
  assert_string_equal(bus[1], "0000:00:01.0");
  assert_memory_not_equal(&uuid[0], &uuid[1], sizeof(uuid[0]));
  assert_ptr_not_equal(world->context[0], world->context[1]);
  SAYS(INVALID_DEVICE, cu->cuDeviceGet(&count, 2));
  SAYS(INVALID_DEVICE, cu->cuDevicePrimaryCtxRelease(2));
  SAYS(INVALID_DEVICE, cu->cuDeviceGetName(bus[0], sizeof(bus[0]), -1));
}

static size_t free_bytes(world_t* world, int device) {
  size_t available = 0;
  size_t total = 0;
  use(world, device);
  OK(world->cu.cuMemGetInfo(&available, &total));
  return available;
}

static void test_memory_is_counted_apart(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  size_t before[2] = {free_bytes(world, 0), free_bytes(world, 1)};
  kiln_cu_deviceptr_t a = take(world, 1, 0);
  assert_int_equal(free_bytes(world, 0), before[0]);
  assert_int_equal(free_bytes(world, 1), before[1] - BYTES);
  int ordinal = -1;
  kiln_cu_context_t of = NULL;
  OK(cu->cuPointerGetAttribute(&ordinal,
                               KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
  OK(cu->cuPointerGetAttribute(&of, KILN_CU_POINTER_ATTRIBUTE_CONTEXT, a));
  assert_int_equal(ordinal, 1);
  assert_ptr_equal(of, world->context[1]);
  // A free names memory of any device, whichever is current.
  use(world, 0);
  OK(cu->cuMemFree(a));
  assert_int_equal(free_bytes(world, 1), before[1]);
}

// What a context has ends with it, and nothing of the other's.
static void test_a_context_ends_alone(void** state) {
  world_t* world = *state;
  kiln_cu_deviceptr_t mine = take(world, 0, 3);
  kiln_cu_deviceptr_t gone = take(world, 1, 4);
  renew(world, 1);
  uint32_t value = 0;
  holds(world, mine, 3);
  SAYS(INVALID_VALUE, world->cu.cuMemcpyDtoH(&value, gone, sizeof(value)));
  use(world, 0);
  OK(run(world, 0, mine, mine));
  holds(world, mine, 4);
}

// ---- Access ----

static void test_kernels_need_access(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  kiln_cu_deviceptr_t far = take(world, 0, 7);
  SAYS(ILLEGAL_ADDRESS, run(world, 1, far, far));
  // The fault is the context's own.
  SAYS(ILLEGAL_ADDRESS, cu->cuCtxSynchronize());
  use(world, 0);
  OK(cu->cuCtxSynchronize());
  holds(world, far, 7);
  renew(world, 1);
  OK(cu->cuCtxEnablePeerAccess(world->context[0], 0));
  OK(run(world, 1, far, far));
  holds(world, far, 8);
  // It is one way only.
  kiln_cu_deviceptr_t near = take(world, 1, 9);
  OK(run(world, 1, near, far));
  holds(world, near, 9);
  use(world, 1);
  OK(cu->cuCtxDisablePeerAccess(world->context[0]));
  SAYS(ILLEGAL_ADDRESS, run(world, 1, near, far));
  SAYS(ILLEGAL_ADDRESS, run(world, 0, far, near));
}

static void test_access_is_asked(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  int value = -1;
  OK(cu->cuDeviceCanAccessPeer(&value, 0, 1));
  assert_int_equal(value, 1);
  OK(cu->cuDeviceCanAccessPeer(&value, 1, 1));
  assert_int_equal(value, 0);
  SAYS(INVALID_DEVICE, cu->cuDeviceCanAccessPeer(&value, 0, 2));
  OK(cu->cuDeviceGetP2PAttribute(&value, KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                 0, 1));
  assert_int_equal(value, 1);
  OK(cu->cuDeviceGetP2PAttribute(
      &value, KILN_CU_P2P_ATTRIBUTE_ARRAY_ACCESS_SUPPORTED, 0, 1));
  assert_int_equal(value, 0);
  SAYS(INVALID_DEVICE,
       cu->cuDeviceGetP2PAttribute(
           &value, KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
  SAYS(INVALID_VALUE, cu->cuDeviceGetP2PAttribute(&value, 99, 0, 1));
  use(world, 0);
  SAYS(INVALID_VALUE, cu->cuCtxEnablePeerAccess(world->context[1], 1));
  SAYS(PEER_ACCESS_UNSUPPORTED,
       cu->cuCtxEnablePeerAccess(world->context[0], 0));
  SAYS(INVALID_CONTEXT, cu->cuCtxEnablePeerAccess(NULL, 0));
  SAYS(PEER_ACCESS_NOT_ENABLED, cu->cuCtxDisablePeerAccess(world->context[1]));
  OK(cu->cuCtxEnablePeerAccess(world->context[1], 0));
  SAYS(PEER_ACCESS_ALREADY_ENABLED,
       cu->cuCtxEnablePeerAccess(world->context[1], 0));
  OK(cu->cuCtxDisablePeerAccess(world->context[1]));
}

// Access ends with the context that it is to, and with the one that has it.
static void test_access_ends(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  use(world, 0);
  OK(cu->cuCtxEnablePeerAccess(world->context[1], 0));
  use(world, 1);
  OK(cu->cuCtxEnablePeerAccess(world->context[0], 0));
  renew(world, 1);
  SAYS(PEER_ACCESS_NOT_ENABLED, cu->cuCtxDisablePeerAccess(world->context[0]));
  use(world, 0);
  SAYS(PEER_ACCESS_NOT_ENABLED, cu->cuCtxDisablePeerAccess(world->context[1]));
}

static void allow(world_t* world, kiln_cu_mempool_t pool, unsigned int flags) {
  kiln_cu_mem_access_desc_t desc = {{KILN_CU_MEM_LOCATION_TYPE_DEVICE, 1},
                                    flags};
  OK(world->cu.cuMemPoolSetAccess(pool, &desc, 1));
  kiln_cu_mem_access_t now = 99;
  OK(world->cu.cuMemPoolGetAccess(&now, pool, &desc.location));
  assert_int_equal(now, flags);
}

// Of a pool, access is the pool's own affair.
static void test_pools(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_deviceptr_t far = 0;
  (void)take(world, 1, 0);
  use(world, 0);
  OK(cu->cuDeviceGetMemPool(&pool, 0));
  OK(cu->cuMemAllocAsync(&far, BYTES, world->stream[0]));
  OK(cu->cuMemsetD32Async(far, 20, 1, world->stream[0]));
  OK(cu->cuStreamSynchronize(world->stream[0]));
  use(world, 1);
  OK(cu->cuCtxEnablePeerAccess(world->context[0], 0));
  SAYS(ILLEGAL_ADDRESS, run(world, 1, far, far));
  renew(world, 1);
  kiln_cu_deviceptr_t near = take(world, 1, 0);
  allow(world, pool, KILN_CU_MEM_ACCESS_FLAGS_PROT_READ);
  OK(run(world, 1, near, far));
  holds(world, near, 21);
  allow(world, pool, KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(run(world, 1, far, far));
  holds(world, far, 21);
  allow(world, pool, KILN_CU_MEM_ACCESS_FLAGS_PROT_READ);
  SAYS(ILLEGAL_ADDRESS, run(world, 1, far, far));
  allow(world, pool, KILN_CU_MEM_ACCESS_FLAGS_PROT_NONE);
  kiln_cu_mem_access_desc_t own = {{KILN_CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0};
  SAYS(INVALID_VALUE, cu->cuMemPoolSetAccess(pool, &own, 1));
  own.location.id = 2;
  own.flags = KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SAYS(INVALID_VALUE, cu->cuMemPoolSetAccess(pool, &own, 1));
}

static void test_mappings(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  kiln_cu_mem_allocation_prop_t prop;
  memset(&prop, 0, sizeof(prop));
  prop.type = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 1;
  kiln_cu_mem_access_desc_t access[2] = {
      {{KILN_CU_MEM_LOCATION_TYPE_DEVICE, 0},
       KILN_CU_MEM_ACCESS_FLAGS_PROT_READ},
      {{KILN_CU_MEM_LOCATION_TYPE_DEVICE, 1},
       KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  kiln_cu_deviceptr_t at = 0;
  kiln_cu_mem_handle_t handle = 0;
  size_t before = free_bytes(world, 1);
  OK(cu->cuMemAddressReserve(&at, PAGE, 0, 0, 0));
  OK(cu->cuMemCreate(&handle, PAGE, &prop, 0));
  assert_int_equal(free_bytes(world, 1), before - PAGE);
  OK(cu->cuMemMap(at, PAGE, 0, handle, 0));
  OK(cu->cuMemSetAccess(at, PAGE, access, 2));
  unsigned long long flags = 99;
  OK(cu->cuMemGetAccess(&flags, &access[0].location, at));
  assert_int_equal(flags, KILN_CU_MEM_ACCESS_FLAGS_PROT_READ);
  kiln_cu_deviceptr_t near = take(world, 0, 0);
  OK(run(world, 1, at, at));
  OK(run(world, 0, near, at));
  holds(world, near, 2);
  SAYS(ILLEGAL_ADDRESS, run(world, 0, at, near));
  OK(cu->cuMemUnmap(at, PAGE));
  OK(cu->cuMemRelease(handle));
  OK(cu->cuMemAddressFree(at, PAGE));
  assert_int_equal(free_bytes(world, 1), before);
}

// Host memory is everybody's.
static void test_host_memory(void** state) {
  world_t* world = *state;
  void* host = NULL;
  use(world, 0);
  OK(world->cu.cuMemHostAlloc(&host, BYTES, KILN_CU_MEMHOSTALLOC_PORTABLE));
  uint32_t* value = host;
  *value = 5;
  OK(run(world, 1, (uintptr_t)host, (uintptr_t)host));
  assert_int_equal(*value, 6);
  use(world, 0);
  OK(world->cu.cuMemFreeHost(host));
}

// ---- Copies ----

// They need no access.
static void test_copies(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  kiln_cu_context_t* context = world->context;
  kiln_cu_deviceptr_t a = take(world, 0, 11);
  kiln_cu_deviceptr_t b = take(world, 1, 12);
  use(world, 0);
  OK(cu->cuMemcpyDtoD(b, a, 4));
  OK(cu->cuCtxSynchronize());
  holds(world, b, 11);
  OK(cu->cuMemcpyPeer(a, context[0], b + 4, context[1], 4));
  holds(world, a, 12);
  OK(cu->cuMemsetD32Async(a, 30, 1, world->stream[0]));
  OK(cu->cuMemcpyPeerAsync(b, context[1], a, context[0], 4, world->stream[0]));
  OK(cu->cuStreamSynchronize(world->stream[0]));
  holds(world, b, 30);
  SAYS(INVALID_CONTEXT, cu->cuMemcpyPeer(b, NULL, a, context[0], 4));
  SAYS(INVALID_CONTEXT,
       cu->cuMemcpyPeerAsync(b, context[1], a, NULL, 4, world->stream[0]));
  SAYS(INVALID_VALUE, cu->cuMemcpyPeer(b, context[1], 64, context[0], 4));
}

// ---- Order ----

// A host function that waits until it is let go. thread-safe
typedef struct gate_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  bool open;
} gate_t;

static void wait_at(void* user) {
  gate_t* gate = user;
  kilni_base_mutex_lock(&gate->lock);
  while (!gate->open) kilni_base_cond_wait(&gate->changed, &gate->lock);
  kilni_base_mutex_unlock(&gate->lock);
}

static void open_gate(gate_t* gate) {
  kilni_base_mutex_lock(&gate->lock);
  gate->open = true;
  kilni_base_cond_broadcast(&gate->changed);
  kilni_base_mutex_unlock(&gate->lock);
}

static void init_gate(gate_t* gate) {
  memset(gate, 0, sizeof(*gate));
  assert_true(kiln_status_is_ok(kilni_base_mutex_init(&gate->lock)));
  assert_true(kiln_status_is_ok(kilni_base_cond_init(&gate->changed)));
}

static void deinit_gate(gate_t* gate) {
  kilni_base_cond_deinit(&gate->changed);
  kilni_base_mutex_deinit(&gate->lock);
}

// Work of the one goes on while everything of the other is waited for, the
// legacy default streams too.
static void test_devices_do_not_wait(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  gate_t gate;
  init_gate(&gate);
  kiln_cu_deviceptr_t a = take(world, 0, 1);
  use(world, 1);
  OK(cu->cuLaunchHostFunc(KILN_CU_STREAM_LEGACY, wait_at, &gate));
  SAYS(NOT_READY, cu->cuStreamQuery(KILN_CU_STREAM_LEGACY));
  use(world, 0);
  OK(cu->cuMemsetD32Async(a, 2, 1, KILN_CU_STREAM_LEGACY));
  OK(cu->cuCtxSynchronize());
  OK(cu->cuStreamQuery(KILN_CU_STREAM_LEGACY));
  holds(world, a, 2);
  open_gate(&gate);
  use(world, 1);
  OK(cu->cuCtxSynchronize());
  deinit_gate(&gate);
}

static void test_events(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  gate_t gate;
  init_gate(&gate);
  kiln_cu_event_t first = NULL;
  kiln_cu_event_t second = NULL;
  kiln_cu_deviceptr_t a = take(world, 0, 1);
  kiln_cu_deviceptr_t b = take(world, 1, 2);
  use(world, 0);
  OK(cu->cuEventCreate(&first, 0));
  OK(cu->cuLaunchHostFunc(world->stream[0], wait_at, &gate));
  OK(cu->cuMemsetD32Async(a, 40, 1, world->stream[0]));
  OK(cu->cuEventRecord(first, world->stream[0]));
  SAYS(INVALID_HANDLE, cu->cuEventRecord(first, world->stream[1]));
  // A wait crosses devices.
  use(world, 1);
  OK(cu->cuStreamWaitEvent(world->stream[1], first, 0));
  OK(cu->cuMemcpyPeerAsync(b, world->context[1], a, world->context[0], 4,
                           world->stream[1]));
  OK(cu->cuEventCreate(&second, 0));
  OK(cu->cuEventRecord(second, world->stream[1]));
  SAYS(NOT_READY, cu->cuEventQuery(second));
  open_gate(&gate);
  OK(cu->cuEventSynchronize(second));
  holds(world, b, 40);
  float ms = 0;
  SAYS(INVALID_HANDLE, cu->cuEventElapsedTime(&ms, first, second));
  OK(cu->cuEventDestroy(first));
  OK(cu->cuEventDestroy(second));
  deinit_gate(&gate);
}

// Handles of one context are none of the other's.
static void test_handles_stay_apart(void** state) {
  world_t* world = *state;
  const kiln_cuda_table_t* cu = &world->cu;
  kiln_cu_deviceptr_t a = take(world, 0, 1);
  void* params[] = {&a, &a};
  SAYS(INVALID_HANDLE, cu->cuLaunchKernel(world->next[1], 1, 1, 1, 1, 1, 1, 0,
                                          world->stream[0], params, NULL));
  // Each has a per-thread stream of its own.
  kiln_cu_context_t of = NULL;
  for (int i = 1; i >= 0; i--) {
    use(world, i);
    OK(cu->cuStreamGetCtx(KILN_CU_STREAM_PER_THREAD, &of));
    assert_ptr_equal(of, world->context[i]);
  }
}

// ---- How many ----

static void expect(kiln_status_t status, kiln_status_code_t code) {
  assert_int_equal(kiln_status_code(status), code);
  kiln_status_free(status);
}

static void test_how_many(void** state) {
  (void)state;
  world_t world;
  expect(start(&world, 9, 0), KILN_STATUS_LIMIT_EXCEEDED);
  expect(start(&world, 2, KILN_SWITCH_ON), KILN_STATUS_INVALID_ARGUMENT);
  expect(start(&world, 8, 0), KILN_STATUS_OK);
  world_t other;
  expect(start(&other, 2, 0), KILN_STATUS_INVALID_STATE);
  expect(start(&other, 0, 0), KILN_STATUS_OK);
  int count = 0;
  OK(other.cu.cuInit(0));
  OK(other.cu.cuDeviceGetCount(&count));
  assert_int_equal(count, 8);
  kilni_soft_stop();
  kilni_soft_stop();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(test_facts),
      CASE(test_memory_is_counted_apart),
      CASE(test_a_context_ends_alone),
      CASE(test_kernels_need_access),
      CASE(test_access_is_asked),
      CASE(test_access_ends),
      CASE(test_pools),
      CASE(test_mappings),
      CASE(test_host_memory),
      CASE(test_copies),
      CASE(test_devices_do_not_wait),
      CASE(test_events),
      CASE(test_handles_stay_apart),
      cmocka_unit_test(test_how_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
