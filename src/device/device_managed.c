// SPDX-License-Identifier: Apache-2.0
//
// device: hints about managed memory, and its discarding.
#include <string.h>

#include "base/status_make.h"
#include "device/device_scope.h"
#include "kiln/managed.h"

static kiln_status_t managed_check(const kiln_buffer_t* buffer,
                                   const kiln_stream_t* stream, uint64_t offset,
                                   uint64_t bytes, const kiln_device_t* place) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_check(buffer, stream, offset, bytes, "a hint"));
  if (place != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_device_check_driver(buffer->device, place, "the place"));
  }
  if (buffer->kind == KILN_MEMORY_MANAGED) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a hint about memory of \"%s\" that is not managed",
                 buffer->device->name),
      "make the buffer with KILN_MEMORY_MANAGED");
}

static kiln_cu_mem_location_t location_of(const kiln_device_t* place) {
  kiln_cu_mem_location_t location = {KILN_CU_MEM_LOCATION_TYPE_HOST, 0};
  if (place != NULL) {
    location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = place->whole->handle;
  }
  return location;
}

kiln_status_t kiln_managed_prefetch(kiln_buffer_t* buffer,
                                    kiln_stream_t* stream, uint64_t offset,
                                    uint64_t bytes, kiln_device_t* to) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(managed_check(buffer, stream, offset, bytes, to));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      buffer->device->table, KILNI_CUDA_ROW_cuMemPrefetchAsync));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemPrefetchAsync,
                    buffer->address + offset, bytes, location_of(to), 0,
                    stream->handle);
  return status;
}

kiln_status_t kiln_managed_discard(kiln_buffer_t* buffer, kiln_stream_t* stream,
                                   uint64_t offset, uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(managed_check(buffer, stream, offset, bytes, NULL));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      buffer->device->table, KILNI_CUDA_ROW_cuMemDiscardBatchAsync));
  if (bytes == 0) return kiln_ok();
  kiln_cu_deviceptr_t address = buffer->address + offset;
  size_t size = bytes;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemDiscardBatchAsync, &address, &size, 1,
                    0, stream->handle);
  return status;
}

kiln_status_t kiln_managed_discard_prefetch(kiln_buffer_t* buffer,
                                            kiln_stream_t* stream,
                                            uint64_t offset, uint64_t bytes,
                                            kiln_device_t* to) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(managed_check(buffer, stream, offset, bytes, to));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      buffer->device->table, KILNI_CUDA_ROW_cuMemDiscardAndPrefetchBatchAsync));
  if (bytes == 0) return kiln_ok();
  kiln_cu_deviceptr_t address = buffer->address + offset;
  size_t size = bytes;
  kiln_cu_mem_location_t location = location_of(to);
  size_t first = 0;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemDiscardAndPrefetchBatchAsync, &address,
                    &size, 1, &location, &first, 1, 0, stream->handle);
  return status;
}

kiln_status_t kiln_managed_advise(kiln_buffer_t* buffer, uint64_t offset,
                                  uint64_t bytes, uint32_t advice, bool on,
                                  kiln_device_t* place) {
  static const kiln_cu_mem_advice_t said[][2] = {
      {KILN_CU_MEM_ADVISE_UNSET_READ_MOSTLY,
       KILN_CU_MEM_ADVISE_SET_READ_MOSTLY},
      {KILN_CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,
       KILN_CU_MEM_ADVISE_SET_PREFERRED_LOCATION},
      {KILN_CU_MEM_ADVISE_UNSET_ACCESSED_BY,
       KILN_CU_MEM_ADVISE_SET_ACCESSED_BY}};
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(
      advice >= KILN_ADVICE_READ_MOSTLY && advice <= KILN_ADVICE_USED_BY,
      "advice");
  KILNI_RETURN_IF_ERROR(managed_check(buffer, NULL, offset, bytes, place));
  KILNI_RETURN_IF_ERROR(
      kilni_table_cuda_need(buffer->device->table, KILNI_CUDA_ROW_cuMemAdvise));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  KILNI_DEVICE_CALL(
      status, buffer->device, cuMemAdvise, buffer->address + offset, bytes,
      said[advice - KILN_ADVICE_READ_MOSTLY][on ? 1 : 0], location_of(place));
  return status;
}

static kiln_status_t managed_ask(kiln_buffer_t* buffer, uint64_t offset,
                                 uint64_t bytes,
                                 kiln_cu_mem_range_attribute_t attribute,
                                 int32_t* out_value) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, buffer->device, cuMemRangeGetAttribute, out_value,
                    sizeof(*out_value), attribute, buffer->address + offset,
                    bytes);
  return status;
}

kiln_status_t kiln_managed_query(kiln_buffer_t* buffer, uint64_t offset,
                                 uint64_t bytes,
                                 kiln_managed_info_t* out_info) {
  KILNI_CHECK_ARGUMENT(out_info != NULL, "out_info");
  memset(out_info, 0, sizeof(*out_info));
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_RETURN_IF_ERROR(managed_check(buffer, NULL, offset, bytes, NULL));
  KILNI_CHECK_ARGUMENT(bytes != 0, "bytes");
  int32_t read_mostly = 0;
  int32_t preferred = 0;
  int32_t prefetched = 0;
  KILNI_RETURN_IF_ERROR(managed_ask(buffer, offset, bytes,
                                    KILN_CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                    &read_mostly));
  KILNI_RETURN_IF_ERROR(
      managed_ask(buffer, offset, bytes,
                  KILN_CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, &preferred));
  KILNI_RETURN_IF_ERROR(managed_ask(
      buffer, offset, bytes, KILN_CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
      &prefetched));
  out_info->read_mostly = read_mostly != 0;
  out_info->preferred = preferred;
  out_info->prefetched = prefetched;
  return kiln_ok();
}
