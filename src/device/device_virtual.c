// SPDX-License-Identifier: Apache-2.0
//
// device: virtual memory: reserved addresses that memory is mapped to.
//
// This file keeps the driver's rules: a mapping is of the whole of what was
// created, from its beginning; addresses are released as the exact pair that
// was reserved, after the last mapping; unmapping does not wait for work that
// uses the memory, so that is waited for first. The handle of memory is
// released as soon as it is mapped: the mapping retains it.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

enum { PIECES = 256 };

struct kiln_virtual_t {
  kiln_device_t* device;
  atomic_uint references;
  kiln_cu_mem_access_t access;
  uint64_t page;
  uint64_t reserved;
  _Atomic(uint64_t) size;
  kiln_cu_deviceptr_t address;
  uint32_t piece_count;
  uint32_t unused;
  uint64_t pieces[PIECES];  // their sizes, from the beginning
};

static kiln_cu_mem_allocation_prop_t properties(const kiln_device_t* device) {
  kiln_cu_mem_allocation_prop_t prop;
  memset(&prop, 0, sizeof(prop));
  prop.type = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device->handle;
  return prop;
}

// ---- Ending ----

static void unmap(kiln_virtual_t* memory, uint64_t from, uint64_t bytes) {
  KILNI_DEVICE_END(memory->device, cuMemUnmap, memory->address + from, bytes);
}

void kiln_virtual_retain(kiln_virtual_t* memory) {
  if (memory == NULL) return;
  atomic_fetch_add_explicit(&memory->references, 1, memory_order_relaxed);
}

void kiln_virtual_release(kiln_virtual_t* memory) {
  if (memory == NULL || kilni_device_is_forked(memory->device)) return;
  if (atomic_fetch_sub_explicit(&memory->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = memory->device;
  // Work may still use the memory, and unmapping does not wait for it.
  if (memory->piece_count > 0) kilni_device_wait_end(device);
  uint64_t at = 0;
  for (uint32_t i = 0; i < memory->piece_count; i++) {
    unmap(memory, at, memory->pieces[i]);
    at += memory->pieces[i];
  }
  if (memory->address != 0) {
    KILNI_DEVICE_END(device, cuMemAddressFree, memory->address,
                     (size_t)memory->reserved);
  }
  kilni_base_free(device->host->allocator, memory, sizeof(*memory));
  kiln_device_release(device);
}

// ---- Growing ----

static kiln_status_t open_access(kiln_virtual_t* memory, uint64_t from,
                                 uint64_t bytes) {
  kiln_cu_mem_access_desc_t desc = {
      {KILN_CU_MEM_LOCATION_TYPE_DEVICE, memory->device->handle},
      memory->access};
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, memory->device, cuMemSetAccess,
                    memory->address + from, (size_t)bytes, &desc, 1);
  return status;
}

// Appends mapped memory. All or nothing.
static kiln_status_t map_piece(kiln_virtual_t* memory,
                               kiln_cu_mem_handle_t handle, uint64_t from,
                               uint64_t bytes) {
  kiln_device_t* device = memory->device;
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(
      kilni_device_scope_begin(&scope, device, KILNI_WAY_cuMemMap));
  kiln_status_t status =
      KILNI_DEVICE_CHECK(device,
                         device->table->cuMemMap(memory->address + from,
                                                 (size_t)bytes, 0, handle, 0),
                         "cuMemMap");
  bool mapped = kiln_status_is_ok(status);
  status = kilni_device_scope_leave(&scope, status);
  if (kiln_status_is_ok(status)) status = open_access(memory, from, bytes);
  if (mapped && !kiln_status_is_ok(status)) unmap(memory, from, bytes);
  return status;
}

static kiln_status_t add_piece(kiln_virtual_t* memory, uint64_t from,
                               uint64_t bytes) {
  kiln_device_t* device = memory->device;
  kiln_cu_mem_allocation_prop_t prop = properties(device);
  kiln_cu_mem_handle_t handle = 0;
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &handle, cuMemCreate, (size_t)bytes,
                      &prop, 0);
  if (kiln_status_is_ok(status)) {
    status = map_piece(memory, handle, from, bytes);
  }
  // A mapping keeps the memory; without one it goes here.
  if (handle != 0) KILNI_DEVICE_END(device, cuMemRelease, handle);
  return status;
}

static uint64_t virtual_whole_pages(const kiln_virtual_t* memory,
                                    uint64_t bytes) {
  uint64_t over = bytes % memory->page;
  return over == 0 ? bytes : bytes + (memory->page - over);
}

kiln_status_t kiln_virtual_grow(kiln_virtual_t* memory, uint64_t size_bytes) {
  KILNI_CHECK_ARGUMENT(memory != NULL, "memory");
  uint64_t size = atomic_load(&memory->size);
  if (size_bytes > memory->reserved) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(OUT_OF_RANGE,
                   "virtual memory of %llu bytes, of which addresses for %llu "
                   "are reserved",
                   (unsigned long long)size_bytes,
                   (unsigned long long)memory->reserved),
        "set `reserve_bytes` in kiln_virtual_options_t to its maximum size");
  }
  if (size_bytes <= size) return kiln_ok();
  if (memory->piece_count == PIECES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "virtual memory that was grown %d times",
                   PIECES),
        "grow by more at a time, for instance by half of its size");
  }
  uint64_t more = virtual_whole_pages(memory, size_bytes) - size;
  kiln_status_t status = add_piece(memory, size, more);
  if (!kiln_status_is_ok(status)) {
    return KILNI_ANNOTATE(
        status, "growing virtual memory of \"%s\" from %llu by %llu bytes",
        memory->device->name, (unsigned long long)size,
        (unsigned long long)more);
  }
  memory->pieces[memory->piece_count++] = more;
  atomic_store(&memory->size, size + more);
  return kiln_ok();
}

// ---- Making ----

static kiln_status_t virtual_check_can(kiln_device_t* device) {
  KILNI_RETURN_IF_ERROR(
      kilni_table_cuda_need(device->table, KILNI_CUDA_ROW_cuMemAddressReserve));
  int can = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(
      status, device, cuDeviceGetAttribute, &can,
      KILN_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
      device->handle);
  if (!kiln_status_is_ok(status) || can) return status;
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "\"%s\" has no virtual memory", device->name),
      "use buffers there, and make a larger one to grow");
}

static kiln_status_t virtual_reserve(kiln_virtual_t* memory, uint64_t bytes) {
  kiln_device_t* device = memory->device;
  kiln_cu_mem_allocation_prop_t prop = properties(device);
  size_t page = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuMemGetAllocationGranularity, &page, &prop,
                    KILN_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  KILNI_RETURN_IF_ERROR(status);
  memory->page = page > 0 ? page : 1;
  if (bytes > UINT64_MAX - memory->page) bytes = UINT64_MAX - memory->page;
  memory->reserved = virtual_whole_pages(memory, bytes);
  KILNI_DEVICE_CREATE(status, device, &memory->address, cuMemAddressReserve,
                      (size_t)memory->reserved, 0, 0, 0);
  return status;
}

static kiln_status_t virtual_fill(kiln_virtual_t* memory, uint64_t size,
                                  const kiln_virtual_options_t* given) {
  uint64_t bytes = given->reserve_bytes;
  if (bytes == 0) {
    bytes = memory->device->info.memory_bytes;
    if (bytes < size) bytes = size;
  }
  KILNI_RETURN_IF_ERROR(virtual_reserve(memory, bytes > 0 ? bytes : 1));
  return kiln_virtual_grow(memory, size);
}

kiln_status_t kiln_virtual_create(kiln_device_t* device, uint64_t size_bytes,
                                  const kiln_virtual_options_t* options,
                                  kiln_virtual_t** out_virtual) {
  KILNI_CHECK_ARGUMENT(out_virtual != NULL, "out_virtual");
  *out_virtual = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_virtual_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_virtual_options_t", sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.writable <= KILN_SWITCH_ON, "options.writable");
  KILNI_CHECK_ARGUMENT_SAYS(
      given.reserve_bytes == 0 || given.reserve_bytes >= size_bytes,
      "options.reserve_bytes", "is less than the size",
      "leave it 0, or set it to the maximum size");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(virtual_check_can(device));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_virtual_t), &block));
  kiln_virtual_t* memory = block;
  memory->device = device;
  kiln_device_retain(device);
  atomic_init(&memory->references, 1);
  atomic_init(&memory->size, 0);
  memory->access = given.writable == KILN_SWITCH_OFF
                       ? KILN_CU_MEM_ACCESS_FLAGS_PROT_READ
                       : KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  kiln_status_t status = virtual_fill(memory, size_bytes, &given);
  if (!kiln_status_is_ok(status)) {
    kiln_virtual_release(memory);
    return status;
  }
  *out_virtual = memory;
  return kiln_ok();
}

// ---- What it is ----

kiln_device_t* kiln_virtual_device(const kiln_virtual_t* memory) {
  return memory->device;
}

uint64_t kiln_virtual_address(const kiln_virtual_t* memory) {
  return memory->address;
}

uint64_t kiln_virtual_size(const kiln_virtual_t* memory) {
  return atomic_load(&memory->size);
}

uint64_t kiln_virtual_reserved(const kiln_virtual_t* memory) {
  return memory->reserved;
}

static void virtual_let_go(void* memory) {
  kiln_virtual_release(memory);
}

kiln_status_t kiln_virtual_buffer(kiln_virtual_t* memory,
                                  kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(memory != NULL, "memory");
  kiln_device_t* device = memory->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  kiln_buffer_t* buffer = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_make(device, kiln_virtual_size(memory), &buffer));
  if (buffer->size > 0) buffer->address = memory->address;
  buffer->owner.release = virtual_let_go;
  buffer->owner.user_data = memory;
  kiln_virtual_retain(memory);
  *out_buffer = buffer;
  return kiln_ok();
}
