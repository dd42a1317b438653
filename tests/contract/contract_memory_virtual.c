// SPDX-License-Identifier: Apache-2.0
//
// contract: virtual memory: reserved addresses, memory, and mappings.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

static kiln_cu_mem_allocation_prop_t properties(const contract_t* t) {
  kiln_cu_mem_allocation_prop_t prop;
  memset(&prop, 0, sizeof(prop));
  prop.type = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = t->device;
  return prop;
}

static size_t page_of(contract_t* t) {
  kiln_cu_mem_allocation_prop_t prop = properties(t);
  size_t page = 0;
  OK(t->cu->cuMemGetAllocationGranularity(
      &page, &prop, KILN_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  CHECK(page > 0 && (page & (page - 1)) == 0);
  return page;
}

static void allow(contract_t* t, kiln_cu_deviceptr_t address, size_t bytes) {
  kiln_cu_mem_access_desc_t desc;
  memset(&desc, 0, sizeof(desc));
  desc.location = properties(t).location;
  desc.flags = KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(t->cu->cuMemSetAccess(address, bytes, &desc, 1));
}

// Asks only what needs no answer, for the null provider too.
static void virtual_life(contract_t* t) {
  kiln_cu_mem_allocation_prop_t prop = properties(t);
  kiln_cu_deviceptr_t at = 0;
  kiln_cu_mem_handle_t handle = 0;
  size_t page = page_of(t);
  OK(t->cu->cuMemAddressReserve(&at, 4 * page, 0, 0, 0));
  OK(t->cu->cuMemCreate(&handle, page, &prop, 0));
  CHECK(at != 0 && handle != 0);
  OK(t->cu->cuMemMap(at, page, 0, handle, 0));
  OK(t->cu->cuMemRelease(handle));
  OK(t->cu->cuMemUnmap(at, page));
  OK(t->cu->cuMemAddressFree(at, 4 * page));
}

// Memory of two pieces is one range for copies, fills and kernels.
static void virtual_memory(contract_t* t) {
  kiln_cu_mem_allocation_prop_t prop = properties(t);
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t at = 0;
  size_t page = page_of(t);
  uint32_t back[4] = {0};
  OK(t->cu->cuMemAddressReserve(&at, 3 * page, 0, 0, 0));
  CHECK(at % page == 0);
  for (size_t i = 0; i < 2; i++) {
    kiln_cu_mem_handle_t handle = 0;
    OK(t->cu->cuMemCreate(&handle, page, &prop, 0));
    OK(t->cu->cuMemMap(at + i * page, page, 0, handle, 0));
    OK(t->cu->cuMemRelease(handle));  // the mapping keeps it
    allow(t, at + i * page, page);
  }
  OK(t->cu->cuMemsetD32(at, 0x11223344u, 2 * page / 4));
  uint32_t value = 77;
  kiln_cu_deviceptr_t last = at + 2 * page - 4;
  void* params[] = {&last, &value};
  OK(contract_one(t, module, "put", NULL, params));
  OK(t->cu->cuCtxSynchronize());
  // Over the border, and the last word.
  OK(t->cu->cuMemcpyDtoH(back, at + page - 8, sizeof(back)));
  CHECK(back[0] == 0x11223344u && back[3] == 0x11223344u);
  OK(t->cu->cuMemcpyDtoH(back, last, 4));
  CHECK(back[0] == 77);
  unsigned long long flags = 0;
  OK(t->cu->cuMemGetAccess(&flags, &prop.location, at + page));
  CHECK(flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(t->cu->cuMemUnmap(at, 2 * page));  // two whole mappings
  OK(t->cu->cuMemAddressFree(at, 3 * page));
  OK(t->cu->cuModuleUnload(module));
}

// Memory keeps what is in it when it is mapped elsewhere, and twice it is one.
static void virtual_again(contract_t* t) {
  kiln_cu_mem_allocation_prop_t prop = properties(t);
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  kiln_cu_mem_handle_t handle = 0;
  size_t page = page_of(t);
  uint32_t word = 5;
  uint32_t back = 0;
  OK(t->cu->cuMemAddressReserve(&a, page, 0, 0, 0));
  OK(t->cu->cuMemAddressReserve(&b, page, 0, 0, 0));
  CHECK(a != b);
  OK(t->cu->cuMemCreate(&handle, page, &prop, 0));
  OK(t->cu->cuMemMap(a, page, 0, handle, 0));
  allow(t, a, page);
  OK(t->cu->cuMemcpyHtoD(a + 64, &word, sizeof(word)));
  OK(t->cu->cuCtxSynchronize());
  OK(t->cu->cuMemMap(b, page, 0, handle, 0));
  allow(t, b, page);
  OK(t->cu->cuMemcpyDtoH(&back, b + 64, sizeof(back)));
  CHECK(back == 5);
  OK(t->cu->cuMemUnmap(a, page));
  OK(t->cu->cuMemcpyDtoH(&back, b + 64, sizeof(back)));
  CHECK(back == 5);
  OK(t->cu->cuMemUnmap(b, page));
  OK(t->cu->cuMemMap(a, page, 0, handle, 0));
  allow(t, a, page);
  back = 0;
  OK(t->cu->cuMemcpyDtoH(&back, a + 64, sizeof(back)));
  CHECK(back == 5);
  OK(t->cu->cuMemUnmap(a, page));
  OK(t->cu->cuMemRelease(handle));
  OK(t->cu->cuMemAddressFree(a, page));
  OK(t->cu->cuMemAddressFree(b, page));
}

static void virtual_arguments(contract_t* t) {
  kiln_cu_mem_allocation_prop_t prop = properties(t);
  kiln_cu_deviceptr_t at = 0;
  kiln_cu_mem_handle_t handle = 0;
  size_t page = page_of(t);
  IS(INVALID_VALUE, t->cu->cuMemAddressReserve(&at, 0, 0, 0, 0));
  IS(INVALID_VALUE, t->cu->cuMemCreate(&handle, page / 2, &prop, 0));
  IS(INVALID_VALUE, t->cu->cuMemCreate(&handle, page, NULL, 0));
  OK(t->cu->cuMemAddressReserve(&at, 2 * page, 0, 0, 0));
  OK(t->cu->cuMemCreate(&handle, page, &prop, 0));
  // The whole of it, from its beginning, into addresses that are free.
  IS(NOT_SUPPORTED, t->cu->cuMemMap(at, page, page, handle, 0));
  OK(t->cu->cuMemMap(at, page, 0, handle, 0));
  IS(INVALID_VALUE, t->cu->cuMemMap(at, page, 0, handle, 0));
  IS(INVALID_VALUE, t->cu->cuMemSetAccess(at, page, NULL, 0));
  OK(t->cu->cuMemUnmap(at, page));
  OK(t->cu->cuMemRelease(handle));
  // The exact pair.
  IS(INVALID_VALUE, t->cu->cuMemAddressFree(at, page));
  OK(t->cu->cuMemAddressFree(at, 2 * page));
  IS(INVALID_VALUE, t->cu->cuMemAddressFree(at, 2 * page));
}

static const contract_case_t kCases[] = {
    {"virtual_life", virtual_life, CONTRACT_PLAIN},
    {"virtual_memory", virtual_memory, CONTRACT_PLAIN},
    {"virtual_again", virtual_again, CONTRACT_PLAIN},
    {"virtual_arguments", virtual_arguments, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_memory_virtual, kCases);
