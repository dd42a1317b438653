// SPDX-License-Identifier: Apache-2.0
//
// runtime: GPUs by UUID and by address, over a made-up driver with three.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "says.h"

enum { GPUS = 3 };

static kiln_cu_result_t see_count(int* count) {
  *count = GPUS;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t see_device(kiln_cu_device_t* device, int ordinal) {
  *device = ordinal;
  return KILN_CU_SUCCESS;
}

// ab000000-..., ab000001-..., ab000002-...
static kiln_cu_result_t see_uuid(kiln_cu_uuid_t* uuid,
                                 kiln_cu_device_t device) {
  memset(uuid, 0, sizeof(*uuid));
  uuid->bytes[0] = (char)0xab;
  uuid->bytes[3] = (char)device;
  uuid->bytes[15] = 0x7f;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t see_address(char* text, int space,
                                    kiln_cu_device_t device) {
  snprintf(text, (size_t)space, "%04X:%02X:00.0", device == 2 ? 1 : 0,
           0x3a + device);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t see_attribute(int* value,
                                      kiln_cu_device_attribute_t attribute,
                                      kiln_cu_device_t device) {
  (void)device;
  if (attribute == KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE) {
    *value = 32;
    return KILN_CU_SUCCESS;
  }
  return KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_runtime_t* open_runtime(kiln_cuda_table_t* table) {
  kiln_runtime_t* runtime = NULL;
  kilni_runtime_hooks_t hooks = {0};
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(table);
  KILNI_CUDA_SET(table, cuDeviceGetCount, see_count);
  KILNI_CUDA_SET(table, cuDeviceGet, see_device);
  KILNI_CUDA_SET(table, cuDeviceGetUuid, see_uuid);
  KILNI_CUDA_SET(table, cuDeviceGetPCIBusId, see_address);
  KILNI_CUDA_SET(table, cuDeviceGetAttribute, see_attribute);
  hooks.cuda_table = table;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &runtime));
  return runtime;
}

static void test_names_that_are_known(void** state) {
  (void)state;
  static const struct {
    const char* label;
    uint32_t ordinal;
  } cases[] = {
      {"GPU-ab000001-0000-0000-0000-00000000007f", 1},
      {"GPU-AB000002", 2},
      {"MIG-ab000000-0000-0000-0000-00000000007f", 0},
      {"0000:3b:00.0", 1},
      {"3B:00", 1},
      {"00000001:3C:00.0", 2},
      {"cuda:2", 2},
  };
  kiln_cuda_table_t table;
  kiln_runtime_t* runtime = open_runtime(&table);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    kiln_device_t* device = NULL;
    assert_null(kiln_runtime_open_device(runtime, cases[i].label, &device));
    assert_int_equal(kiln_device_info(device)->ordinal, cases[i].ordinal);
    kiln_device_release(device);
  }
  kiln_runtime_release(runtime);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
}

static void test_names_that_are_not(void** state) {
  (void)state;
  static const struct {
    const char* label;
    kiln_status_code_t code;
    const char* word;
  } cases[] = {
      {"GPU-ab", KILN_STATUS_INVALID_ARGUMENT, "3 GPUs begin with \"GPU-ab\""},
      {"GPU-cd", KILN_STATUS_NOT_FOUND, "the driver shows 3"},
      {"GPU-ab000001-0000-0000-0000-00000000007f00", KILN_STATUS_NOT_FOUND,
       "no GPU is called"},
      {"3c:00.0", KILN_STATUS_NOT_FOUND, "\"3c:00.0\""},
      {"0000:3b:00.1", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
      {"GPU-", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
      {"GPU-xyz", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
      {"3b", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
      {"3b:", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
      {"0:0:0:0", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
      {"100000000:3b:00.0", KILN_STATUS_INVALID_ARGUMENT, "no device"},
      {"", KILN_STATUS_INVALID_ARGUMENT, "no device is called"},
  };
  kiln_cuda_table_t table;
  kiln_runtime_t* runtime = open_runtime(&table);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    kiln_device_t* device = (kiln_device_t*)runtime;
    assert_says(kiln_runtime_open_device(runtime, cases[i].label, &device),
                cases[i].code, cases[i].word);
    assert_null(device);
  }
  kiln_runtime_release(runtime);
}

// What a driver does not know is 0, and on the sheet it is not known.
static void test_attributes(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kiln_runtime_t* runtime = open_runtime(&table);
  kiln_device_t* device = NULL;
  kiln_probe_t* probe = NULL;
  int32_t value = 1;
  assert_null(kiln_runtime_open_device(runtime, "cuda:0", &device));
  assert_null(kiln_device_attribute(device, 10, &value));
  assert_int_equal(value, 32);
  assert_null(kiln_device_attribute(device, 9999, &value));
  assert_int_equal(value, 0);
  kiln_device_release(device);
  assert_null(kiln_runtime_probe(runtime, NULL, &probe));
  assert_int_equal(kiln_probe_device_count(probe), GPUS);
  const kiln_probe_device_t* d = kiln_probe_device(probe, 2);
  assert_string_equal(d->uuid, "GPU-ab000002-0000-0000-0000-00000000007f");
  assert_string_equal(d->address, "0001:3C:00.0");
  uint32_t known = 0;
  for (uint32_t i = 0; i < kiln_probe_attribute_count(); i++) {
    known += d->known[i];
    assert_non_null(kiln_probe_attribute_unit(i));
    assert_true(kiln_probe_attribute_since(i) >= 11070);
    if (i > 0) {
      assert_true(kiln_probe_attribute_number(i) >
                  kiln_probe_attribute_number(i - 1));
    }
    if (strcmp(kiln_probe_attribute_name(i), "WARP_SIZE") != 0) continue;
    assert_int_equal(d->attributes[i], 32);
  }
  assert_int_equal(known, 1);
  assert_null(kiln_probe_attribute_name(kiln_probe_attribute_count()));
  kiln_probe_release(probe);
  kiln_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_that_are_known),
      cmocka_unit_test(test_names_that_are_not),
      cmocka_unit_test(test_attributes),
  };
  return cmocka_run_group_tests_name("runtime: names", tests, NULL, NULL);
}
