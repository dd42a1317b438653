// SPDX-License-Identifier: Apache-2.0
//
// soft: rows of hints about managed memory. It is the host's, and stays where
// it is: a hint is checked, kept for the whole allocation and returned by
// queries. Memory that is discarded gets a pattern, as fresh memory does.
#include <string.h>

#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static const kilni_soft_work_t kMark = {.kind = KILNI_SOFT_TASK_MARK};

enum {
  DISCARDED = 0xd1,
  // The contents of `flags` of an allocation. A place is a device's number and
  // 2, or 1 for the host, or 0 for none.
  READ_MOSTLY = 1,
  PREFERRED_SHIFT = 4,
  PREFETCHED_SHIFT = 8,
  USERS_SHIFT = 16,  // a bit for each device, then one for the host
  PLACE_MASK = 15,
  HOST_PLACE = 1,
};

static uint32_t managed_place_of(const kilni_soft_driver_t* driver,
                                 const kiln_cu_mem_location_t* at) {
  if (at->type == KILN_CU_MEM_LOCATION_TYPE_HOST) return HOST_PLACE;
  bool is_device = at->type == KILN_CU_MEM_LOCATION_TYPE_DEVICE &&
                   kilni_soft_is_device(driver, at->id);
  return is_device ? (uint32_t)at->id + 2 : 0;
}

static int managed_device_of(uint32_t place) {
  if (place == 0) return KILN_CU_DEVICE_INVALID;
  return place == HOST_PLACE ? KILN_CU_DEVICE_CPU : (int)place - 2;
}

// The managed allocation that contains all of a range.
static bool managed_find(kilni_soft_driver_t* driver, uint64_t address,
                         uint64_t bytes, kilni_soft_alloc_t* out_alloc) {
  return kilni_soft_memory_query(driver->memory, address, out_alloc) &&
         kilni_soft_alloc_is_managed(out_alloc->kind) && bytes > 0 &&
         bytes <= out_alloc->bytes - (address - out_alloc->address);
}

static void managed_keep(kilni_soft_driver_t* driver,
                         const kilni_soft_alloc_t* alloc, uint32_t shift,
                         uint32_t place) {
  uint32_t flags = alloc->flags & ~((uint32_t)PLACE_MASK << shift);
  kilni_soft_memory_set_flags(driver->memory, alloc->address,
                              flags | place << shift);
}

static kiln_cu_result_t row_prefetch(kiln_cu_deviceptr_t address, size_t bytes,
                                     kiln_cu_mem_location_t location,
                                     unsigned int flags,
                                     kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kilni_soft_alloc_t alloc;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  uint32_t place = managed_place_of(driver, &location);
  if (flags != 0 || !managed_find(driver, address, bytes, &alloc)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (place == 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_DEVICE);
  }
  result = kilni_soft_capture_refuse(driver, where, "cuMemPrefetchAsync");
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_queue_issue(driver, where, &kMark, NULL, NULL);
  }
  if (result == KILN_CU_SUCCESS) {
    managed_keep(driver, &alloc, PREFETCHED_SHIFT, place);
  }
  return kilni_soft_leave(driver, result);
}

static void managed_advise(kilni_soft_driver_t* driver,
                           const kilni_soft_alloc_t* alloc,
                           kiln_cu_mem_advice_t advice, uint32_t place) {
  uint32_t user = 1u << (USERS_SHIFT + place - 1);
  uint32_t flags = alloc->flags;
  switch (advice) {
    case KILN_CU_MEM_ADVISE_SET_READ_MOSTLY:
      flags |= READ_MOSTLY;
      break;
    case KILN_CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      flags &= ~(uint32_t)READ_MOSTLY;
      break;
    case KILN_CU_MEM_ADVISE_SET_ACCESSED_BY:
      flags |= user;
      break;
    case KILN_CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      flags &= ~user;
      break;
    default:
      managed_keep(
          driver, alloc, PREFERRED_SHIFT,
          advice == KILN_CU_MEM_ADVISE_SET_PREFERRED_LOCATION ? place : 0);
      return;
  }
  kilni_soft_memory_set_flags(driver->memory, alloc->address, flags);
}

static kiln_cu_result_t row_advise(kiln_cu_deviceptr_t address, size_t bytes,
                                   kiln_cu_mem_advice_t advice,
                                   kiln_cu_mem_location_t location) {
  kilni_soft_driver_t* driver;
  kilni_soft_alloc_t alloc;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  uint32_t place = managed_place_of(driver, &location);
  bool any = advice == KILN_CU_MEM_ADVISE_SET_READ_MOSTLY ||
             advice == KILN_CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
             advice == KILN_CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (advice < KILN_CU_MEM_ADVISE_SET_READ_MOSTLY ||
      advice > KILN_CU_MEM_ADVISE_UNSET_ACCESSED_BY ||
      !managed_find(driver, address, bytes, &alloc)) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (place == 0 && !any) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else {
    managed_advise(driver, &alloc, advice, any ? HOST_PLACE : place);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t managed_row_attribute(
    void* value, size_t space, kiln_cu_mem_range_attribute_t attribute,
    kiln_cu_deviceptr_t address, size_t bytes) {
  kilni_soft_driver_t* driver;
  kilni_soft_alloc_t alloc;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  int told = 0;
  bool good = value != NULL && managed_find(driver, address, bytes, &alloc);
  if (good && attribute == KILN_CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
    int* list = value;
    size_t most = space / sizeof(*list);
    size_t count = 0;
    good = most > 0 && space % sizeof(*list) == 0;
    for (uint32_t place = 1; place <= KILNI_SOFT_DEVICES_MOST + 1; place++) {
      if ((alloc.flags >> (USERS_SHIFT + place - 1) & 1) == 0) continue;
      if (count < most) list[count++] = managed_device_of(place);
    }
    while (good && count < most) list[count++] = KILN_CU_DEVICE_INVALID;
    return kilni_soft_leave(
        driver, good ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE);
  }
  good = good && space == sizeof(told);
  if (good && attribute == KILN_CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) {
    told = (alloc.flags & READ_MOSTLY) != 0;
  } else if (good &&
             attribute == KILN_CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) {
    told = managed_device_of(alloc.flags >> PREFERRED_SHIFT & PLACE_MASK);
  } else if (good &&
             attribute == KILN_CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) {
    told = managed_device_of(alloc.flags >> PREFETCHED_SHIFT & PLACE_MASK);
  } else {
    good = false;
  }
  if (good) memcpy(value, &told, sizeof(told));
  return kilni_soft_leave(driver,
                          good ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE);
}

// One range of a batch: its bytes are undefined from here on.
static kiln_cu_result_t managed_discard(kilni_soft_driver_t* driver,
                                        kilni_soft_stream_t* where,
                                        uint64_t address, uint64_t bytes) {
  kilni_soft_work_t work = {
      .kind = KILNI_SOFT_TASK_FILL,
      .as.fill = {
          .address = address, .count = bytes, .value = DISCARDED, .width = 1}};
  return kilni_soft_queue_issue(driver, where, &work, NULL, NULL);
}

// What a batch has beside its ranges; no locations: nothing is fetched.
typedef struct batch_t {
  kiln_cu_deviceptr_t* addresses;
  size_t* sizes;
  size_t count;
  kiln_cu_mem_location_t* locations;
  size_t* first;
  size_t location_count;
  unsigned long long flags;
} batch_t;

static kiln_cu_result_t managed_check_batch(kilni_soft_driver_t* driver,
                                            const batch_t* batch) {
  bool good = batch->addresses != NULL && batch->sizes != NULL &&
              batch->count > 0 && batch->flags == 0;
  kilni_soft_alloc_t alloc;
  for (size_t i = 0; good && i < batch->count; i++) {
    good = managed_find(driver, batch->addresses[i], batch->sizes[i], &alloc);
  }
  for (size_t i = 0; good && i < batch->location_count; i++) {
    good =
        batch->first[i] < batch->count &&
        (i == 0 ? batch->first[0] == 0 : batch->first[i] > batch->first[i - 1]);
    if (good && managed_place_of(driver, &batch->locations[i]) == 0) {
      return KILN_CU_ERROR_INVALID_DEVICE;
    }
  }
  return good ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t discard_all(kiln_cu_stream_t stream,
                                    const batch_t* batch) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  result = managed_check_batch(driver, batch);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_capture_refuse(driver, where, "cuMemDiscardBatchAsync");
  }
  size_t location = 0;
  for (size_t i = 0; result == KILN_CU_SUCCESS && i < batch->count; i++) {
    result =
        managed_discard(driver, where, batch->addresses[i], batch->sizes[i]);
    if (batch->location_count == 0 || result != KILN_CU_SUCCESS) continue;
    while (location + 1 < batch->location_count &&
           batch->first[location + 1] <= i) {
      location++;
    }
    kilni_soft_alloc_t alloc;
    if (!managed_find(driver, batch->addresses[i], batch->sizes[i], &alloc)) {
      continue;
    }
    managed_keep(driver, &alloc, PREFETCHED_SHIFT,
                 managed_place_of(driver, &batch->locations[location]));
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_discard(kiln_cu_deviceptr_t* addresses,
                                    size_t* sizes, size_t count,
                                    unsigned long long flags,
                                    kiln_cu_stream_t stream) {
  const batch_t batch = {addresses, sizes, count, NULL, NULL, 0, flags};
  return discard_all(stream, &batch);
}

static kiln_cu_result_t row_discard_prefetch(
    kiln_cu_deviceptr_t* addresses, size_t* sizes, size_t count,
    kiln_cu_mem_location_t* locations, size_t* first, size_t location_count,
    unsigned long long flags, kiln_cu_stream_t stream) {
  const batch_t batch = {addresses, sizes,          count, locations,
                         first,     location_count, flags};
  if (locations == NULL || first == NULL || location_count == 0) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return discard_all(stream, &batch);
}

void kilni_soft_fill_managed(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuMemPrefetchAsync, row_prefetch);
  KILNI_CUDA_SET(table, cuMemAdvise, row_advise);
  KILNI_CUDA_SET(table, cuMemRangeGetAttribute, managed_row_attribute);
  KILNI_CUDA_SET(table, cuMemDiscardBatchAsync, row_discard);
  KILNI_CUDA_SET(table, cuMemDiscardAndPrefetchBatchAsync,
                 row_discard_prefetch);
}
