// SPDX-License-Identifier: Apache-2.0
//
// device: code files that are cut short or are something else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"

static kiln_status_t read_bytes(const void* data, size_t size,
                                kiln_status_t* out_doubt) {
  kilni_image_t image;
  kiln_bytes_view_t bytes = {data, size};
  kiln_status_t status =
      kilni_image_init(&image, kiln_allocator_libc(), bytes, "file", out_doubt);
  if (kiln_status_is_ok(status)) kilni_image_deinit(&image);
  return status;
}

static void assert_bad(const void* data, size_t size, const char* word) {
  kiln_status_t doubt = NULL;
  kiln_status_t status = read_bytes(data, size, &doubt);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  assert_non_null(strstr(kiln_status_message(status), word));
  assert_non_null(kiln_status_fix(status));
  assert_null(doubt);
  kiln_status_free(status);
}

static void put(uint8_t* data, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) data[at + i] = (uint8_t)(value >> (8 * i));
}

// A cubin of one section of 16 bytes.
static size_t make_cubin(uint8_t* data) {
  memset(data, 0, 256);
  memcpy(data, "\177ELF\2\1\1", 7);
  put(data, 18, 190, 2);  // machine
  put(data, 40, 64, 8);   // section headers
  put(data, 58, 64, 2);   // size of one
  put(data, 60, 1, 2);    // how many
  put(data, 64 + 4, 1, 4);
  put(data, 64 + 24, 128, 8);
  put(data, 64 + 32, 16, 8);
  return 144;
}

static void test_cubins(void** state) {
  (void)state;
  uint8_t data[256];
  kiln_status_t doubt = NULL;
  size_t size = make_cubin(data);
  assert_null(read_bytes(data, size, &doubt));
  for (size_t cut = 4; cut < size; cut++) {
    assert_bad(data, cut, "end too early");
  }
  put(data, 18, 62, 2);
  assert_bad(data, size, "not one for CUDA");
  make_cubin(data);
  put(data, 64 + 32, UINT64_MAX, 8);
  assert_bad(data, size, "end too early");
  make_cubin(data);
  put(data, 40, UINT64_MAX, 8);
  assert_bad(data, size, "end too early");
}

static void test_fatbins(void** state) {
  (void)state;
  uint8_t data[64] = {0};
  put(data, 0, 0xba55ed50, 4);
  put(data, 6, 16, 2);
  put(data, 8, 48, 8);
  kiln_status_t doubt = NULL;
  assert_null(read_bytes(data, 64, &doubt));
  for (size_t cut = 4; cut < 64; cut++) assert_bad(data, cut, "end too early");
  put(data, 8, UINT64_MAX, 8);
  assert_bad(data, 64, "end too early");
}

static void test_what_is_nothing(void** state) {
  (void)state;
  assert_bad("", 0, "is empty");
  // Text that is no PTX: a driver may know better, so the doubt is kept.
  kiln_status_t doubt = NULL;
  assert_null(read_bytes("hello", 5, &doubt));
  assert_int_equal(kiln_status_code(doubt), KILN_STATUS_BAD_DATA);
  kiln_status_free(doubt);
}

static void test_the_version_of_newer_ptx(void** state) {
  (void)state;
  static const char text[] = "// new\n.version 12.7\n.target sm_200\n";
  kilni_image_t image;
  kiln_status_t doubt = NULL;
  kiln_bytes_view_t bytes = {(const uint8_t*)text, sizeof(text) - 1};
  assert_null(
      kilni_image_init(&image, kiln_allocator_libc(), bytes, "file", &doubt));
  assert_int_equal(image.version_major, 12);
  assert_int_equal(image.version_minor, 7);
  assert_false(image.params_known);
  kilni_image_deinit(&image);
  kiln_status_free(doubt);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cubins),
      cmocka_unit_test(test_fatbins),
      cmocka_unit_test(test_what_is_nothing),
      cmocka_unit_test(test_the_version_of_newer_ptx),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
