// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of PGM, PPM and PNG pictures.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_png.h"
#include "cli/cli_pnm.h"

static bool read_pnm(const char* text, size_t size, kilni_cli_array_t* a,
                     kilni_cli_error_t* error) {
  return kilni_cli_pnm_read((const uint8_t*)text, size, a, error);
}

static void pnm_is_read(void** state) {
  (void)state;
  kilni_cli_array_t a;
  kilni_cli_error_t error;
  assert_true(read_pnm("P5 2 1 255\n\x01\xff", 13, &a, &error));
  assert_int_equal(a.shape.rank, 2);
  assert_int_equal(a.shape.dims[0], 1);
  assert_int_equal(a.shape.dims[1], 2);
  assert_int_equal(a.data.data[1], 255);
  kilni_cli_array_deinit(&a);
  assert_true(read_pnm("P6\n# c\n1 1\n255\nabc", 18, &a, &error));
  assert_int_equal(a.shape.rank, 3);
  assert_memory_equal(a.data.data, "abc", 3);
  kilni_cli_array_deinit(&a);
  const char plain[] = "P2 3 1 4\n0 1#x\n 4\n";
  assert_true(read_pnm(plain, sizeof(plain) - 1, &a, &error));
  assert_int_equal(a.data.data[0], 0);
  assert_int_equal(a.data.data[1], 64);
  assert_int_equal(a.data.data[2], 255);
  kilni_cli_array_deinit(&a);
  assert_true(read_pnm("P3 1 1 255 1 2 3", 16, &a, &error));
  assert_int_equal(a.shape.dims[2], 3);
  kilni_cli_array_deinit(&a);
}

static void bad_pnm_is_refused(void** state) {
  (void)state;
  static const char* const BAD[] = {"",
                                    "P",
                                    "P1 1 1",
                                    "P7",
                                    "P5",
                                    "P5 1",
                                    "P5 1 1",
                                    "P5 1 1 255",
                                    "P5 0 1 255 ",
                                    "P5 1 1 0 a",
                                    "P5 1 1 255 ",
                                    "P5 1 1 255 ab",
                                    "P5 -1 1 255 a",
                                    "P5 65536 1 255 a",
                                    "P5 1 1 7 a",
                                    "P5 1 1 255x",
                                    "P2 1 1 255 256",
                                    "P2 1 1 255 1 2",
                                    "P2 1 1 255 x",
                                    "P2 2 2 255 1 2 3",
                                    "P6 1 1 255 ab",
                                    "P5 60000 60000 255 a"};
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_array_t a;
    kilni_cli_error_t error;
    if (read_pnm(BAD[i], strlen(BAD[i]), &a, &error)) {
      fail_msg("taken: %s", BAD[i]);
    }
    assert_true(error.code == KILN_STATUS_BAD_DATA ||
                error.code == KILN_STATUS_LIMIT_EXCEEDED);
    assert_null(a.data.data);
  }
  kilni_cli_array_t a;
  kilni_cli_error_t error;
  assert_false(read_pnm("P5 1 1 65535 ab", 15, &a, &error));
  assert_int_equal(error.code, KILN_STATUS_UNSUPPORTED);
}

static void make_picture(kilni_cli_array_t* a, uint64_t h, uint64_t w,
                         uint64_t c) {
  kilni_cli_error_t error;
  memset(a, 0, sizeof(*a));
  a->shape.type = KILNI_CLI_TYPE_U8;
  a->shape.rank = c == 1 ? 2 : 3;
  a->shape.dims[0] = h;
  a->shape.dims[1] = w;
  a->shape.dims[2] = c == 1 ? 0 : c;
  assert_true(kilni_cli_shape_finish(&a->shape, &error));
  assert_true(
      kilni_cli_buffer_resize(&a->data, (size_t)a->shape.bytes, &error));
  uint32_t x = 1;
  for (size_t i = 0; i < a->data.size; i++) {
    x = x * 1664525u + 1013904223u;
    a->data.data[i] = (uint8_t)(x >> 24);
  }
}

static void pnm_comes_back(void** state) {
  (void)state;
  for (uint64_t c = 1; c <= 3; c += 2) {
    kilni_cli_array_t a, back;
    kilni_cli_buffer_t file = {0};
    kilni_cli_error_t error;
    make_picture(&a, 5, 7, c);
    assert_true(kilni_cli_pnm_write(&a, c == 1, &file, &error));
    assert_true(kilni_cli_pnm_read(file.data, file.size, &back, &error));
    assert_memory_equal(&back.shape, &a.shape, sizeof(a.shape));
    assert_memory_equal(back.data.data, a.data.data, a.data.size);
    assert_false(kilni_cli_pnm_write(&a, c == 3, &file, &error));
    kilni_cli_buffer_deinit(&file);
    kilni_cli_array_deinit(&a);
    kilni_cli_array_deinit(&back);
  }
}

static void png_comes_back(void** state) {
  (void)state;
  for (uint64_t c = 1; c <= 4; c++) {
    kilni_cli_array_t a, back;
    kilni_cli_buffer_t file = {0};
    kilni_cli_error_t error;
    make_picture(&a, 9, 13, c);
    assert_true(kilni_cli_png_write(&a, &file, &error));
    assert_true(kilni_cli_png_read(file.data, file.size, &back, &error));
    assert_memory_equal(&back.shape, &a.shape, sizeof(a.shape));
    assert_memory_equal(back.data.data, a.data.data, a.data.size);
    kilni_cli_array_deinit(&back);
    for (size_t cut = 0; cut < file.size; cut++) {
      if (kilni_cli_png_read(file.data, cut, &back, &error)) {
        fail_msg("%zu of %zu bytes were taken", cut, file.size);
      }
      assert_int_equal(error.code, KILN_STATUS_BAD_DATA);
      assert_null(back.data.data);
    }
    kilni_cli_buffer_deinit(&file);
    kilni_cli_array_deinit(&a);
  }
}

static void a_flipped_bit_never_passes_for_the_picture(void** state) {
  (void)state;
  kilni_cli_array_t a, back;
  kilni_cli_buffer_t file = {0};
  kilni_cli_error_t error;
  make_picture(&a, 3, 3, 3);
  assert_true(kilni_cli_png_write(&a, &file, &error));
  for (size_t i = 0; i < file.size * 8; i++) {
    file.data[i / 8] ^= (uint8_t)(1 << i % 8);
    // A chunk that is not needed may be hurt; its neighbours must not change.
    if (kilni_cli_png_read(file.data, file.size, &back, &error)) {
      assert_memory_equal(&back.shape, &a.shape, sizeof(a.shape));
      assert_memory_equal(back.data.data, a.data.data, a.data.size);
    }
    kilni_cli_array_deinit(&back);
    file.data[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  kilni_cli_buffer_deinit(&file);
  kilni_cli_array_deinit(&a);
}

static void other_shapes_are_no_pictures(void** state) {
  (void)state;
  kilni_cli_array_t a;
  kilni_cli_buffer_t file = {0};
  kilni_cli_error_t error;
  make_picture(&a, 3, 3, 5);
  assert_false(kilni_cli_png_write(&a, &file, &error));
  assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
  a.shape.type = KILNI_CLI_TYPE_F32;
  assert_false(kilni_cli_png_write(&a, &file, &error));
  a.shape.type = KILNI_CLI_TYPE_U8;
  a.shape.rank = 1;
  assert_false(kilni_cli_png_write(&a, &file, &error));
  assert_int_equal(file.size, 0);
  kilni_cli_array_deinit(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pnm_is_read),
      cmocka_unit_test(bad_pnm_is_refused),
      cmocka_unit_test(pnm_comes_back),
      cmocka_unit_test(png_comes_back),
      cmocka_unit_test(a_flipped_bit_never_passes_for_the_picture),
      cmocka_unit_test(other_shapes_are_no_pictures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
