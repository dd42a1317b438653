// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about what one device may do with another's memory.
//
// Every pair of devices can. Access is of a context and to a context: it ends
// with either, and a kernel without it meets an illegal address. Copies need
// none, and neither does memory of the host. Pools and mappings define
// themselves which devices may use them (soft_pool.c, soft_virtual.c).
#include "soft/driver/soft_driver.h"
#include "table/cuda_table.h"

static kiln_cu_result_t row_can_access(int* can, kiln_cu_device_t device,
                                       kiln_cu_device_t peer) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (can == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (!kilni_soft_is_device(driver, device) ||
             !kilni_soft_is_device(driver, peer)) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else {
    *can = device != peer;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t peer_row_attribute(int* value,
                                           kiln_cu_p2p_attribute_t attribute,
                                           kiln_cu_device_t source,
                                           kiln_cu_device_t target) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  bool known =
      attribute >= KILN_CU_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
      attribute <= KILN_CU_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;
  if (value == NULL || !known) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (!kilni_soft_is_device(driver, source) ||
             !kilni_soft_is_device(driver, target) || source == target) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else {
    *value = attribute == KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attribute == KILN_CU_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
  }
  return kilni_soft_leave(driver, result);
}

// Enters a row of the current context about its access to `peer`.
static kiln_cu_result_t enter_access(kiln_cu_context_t peer, bool good,
                                     kilni_soft_driver_t** out_driver,
                                     kilni_soft_context_t** out_peer) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, out_driver);
  *out_peer = NULL;
  if (result != KILN_CU_SUCCESS) return result;
  if (!good) return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
  *out_peer = kilni_soft_handle_get(&(*out_driver)->handles,
                                    KILNI_SOFT_KIND_CONTEXT, (uintptr_t)peer);
  if (*out_peer == NULL) {
    return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_CONTEXT);
  }
  // As driver 580 returns for the context itself.
  if (*out_peer == kilni_soft_current(*out_driver)) {
    return kilni_soft_leave(*out_driver, KILN_CU_ERROR_PEER_ACCESS_UNSUPPORTED);
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t row_enable(kiln_cu_context_t peer, unsigned int flags) {
  kilni_soft_driver_t* driver;
  kilni_soft_context_t* other = NULL;
  kiln_cu_result_t result = enter_access(peer, flags == 0, &driver, &other);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_memory_t* memory = kilni_soft_current(driver)->memory;
  if (kilni_soft_memory_is_peer(memory, other->device)) {
    result = KILN_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  } else {
    kilni_soft_memory_set_peer(memory, other->device, true);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_disable(kiln_cu_context_t peer) {
  kilni_soft_driver_t* driver;
  kilni_soft_context_t* other = NULL;
  kiln_cu_result_t result = enter_access(peer, true, &driver, &other);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_memory_t* memory = kilni_soft_current(driver)->memory;
  if (!kilni_soft_memory_is_peer(memory, other->device)) {
    result = KILN_CU_ERROR_PEER_ACCESS_NOT_ENABLED;
  } else {
    kilni_soft_memory_set_peer(memory, other->device, false);
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_peer(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuDeviceCanAccessPeer, row_can_access);
  KILNI_CUDA_SET(table, cuDeviceGetP2PAttribute, peer_row_attribute);
  KILNI_CUDA_SET(table, cuCtxEnablePeerAccess, row_enable);
  KILNI_CUDA_SET(table, cuCtxDisablePeerAccess, row_disable);
}
