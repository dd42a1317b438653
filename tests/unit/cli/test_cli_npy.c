// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of numpy's format.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_npy.h"

// A header of version 1 or 2 around `text`, then `payload` zero bytes.
static size_t make(uint8_t* out, int version, const char* text,
                   size_t payload) {
  size_t n = strlen(text);
  size_t at = version == 1 ? 10 : 12;
  memcpy(out, "\x93NUMPY", 6);
  out[6] = (uint8_t)version;
  out[7] = 0;
  out[8] = (uint8_t)n;
  out[9] = (uint8_t)(n >> 8);
  if (version > 1) out[10] = out[11] = 0;
  memcpy(out + at, text, n);
  memset(out + at + n, 0, payload);
  return at + n + payload;
}

static bool read_text(const char* text, size_t payload, kilni_cli_array_t* a,
                      kilni_cli_error_t* error) {
  uint8_t bytes[1024];
  return kilni_cli_npy_read(bytes, make(bytes, 1, text, payload), a, error);
}

static void arrays_are_read(void** state) {
  (void)state;
  kilni_cli_array_t a;
  kilni_cli_error_t error;
  uint8_t bytes[256];
  size_t n = make(bytes, 1,
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), "
                  "}   \n",
                  24);
  bytes[n - 1] = 7;
  assert_true(kilni_cli_npy_read(bytes, n, &a, &error));
  assert_int_equal(a.shape.type, KILNI_CLI_TYPE_F32);
  assert_int_equal(a.shape.rank, 2);
  assert_int_equal(a.shape.dims[1], 3);
  assert_int_equal(a.data.size, 24);
  assert_int_equal(a.data.data[23], 7);
  kilni_cli_array_deinit(&a);
  // Any order, double quotes, no space, no trailing comma, a scalar.
  assert_true(
      read_text("{\"shape\":(),\"descr\":\"|u1\",\"fortran_order\":True}", 1,
                &a, &error));
  assert_int_equal(a.shape.rank, 0);
  kilni_cli_array_deinit(&a);
  assert_true(read_text("{'descr':'|b1','fortran_order':False,'shape':(5,)}", 5,
                        &a, &error));
  assert_int_equal(a.shape.type, KILNI_CLI_TYPE_BOOL);
  kilni_cli_array_deinit(&a);
  for (int version = 2; version <= 3; version++) {
    n = make(bytes, version,
             "{'descr':'<i8','fortran_order':False,'shape':(1,)}", 8);
    assert_true(kilni_cli_npy_read(bytes, n, &a, &error));
    kilni_cli_array_deinit(&a);
  }
}

static void bad_headers_are_refused(void** state) {
  (void)state;
  static const char* const BAD[] = {
      "",
      "{",
      "{}",
      "{'descr':'<f4','fortran_order':False,'shape':(1,)",
      "{'descr':'<f4','fortran_order':False,'shape':(1,)}x",
      "{'descr':'<f4','fortran_order':Maybe,'shape':(1,)}",
      "{'descr':'<f4','fortran_order':False,'shape':(1,}",
      "{'descr':'<f4','fortran_order':False,'shape':1}",
      "{'descr':'<f4','fortran_order':False,'shape':(-1,)}",
      "{'descr':'<f4','fortran_order':False,'shape':(1,),'shape':(1,)}",
      "{'descr':'<f4','fortran_order':False,'x':(1,)}",
      "{'descr':'<f4','fortran_order':False}",
      "{'descr':'<f4','fortran_order':False,'shape",
      "{'descr' '<f4','fortran_order':False,'shape':(1,)}",
      "{'descr':'<f4','fortran_order':False,'shape':(99999999999999999999,)}",
  };
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_array_t a;
    kilni_cli_error_t error;
    if (read_text(BAD[i], 4, &a, &error)) fail_msg("taken: %s", BAD[i]);
    assert_int_equal(error.code, KILN_STATUS_BAD_DATA);
    assert_null(a.data.data);
  }
}

static void what_numpy_has_and_we_do_not_is_unsupported(void** state) {
  (void)state;
  static const char* const BAD[] = {
      "{'descr':'>f4','fortran_order':False,'shape':(1,)}",
      "{'descr':'<c8','fortran_order':False,'shape':(1,)}",
      "{'descr':'|O','fortran_order':False,'shape':(1,)}",
      "{'descr':[('a','<f4')],'fortran_order':False,'shape':(1,)}",
      "{'descr':'<f4','fortran_order':True,'shape':(1,1)}",
  };
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_array_t a;
    kilni_cli_error_t error;
    assert_false(read_text(BAD[i], 4, &a, &error));
    assert_int_equal(error.code, KILN_STATUS_UNSUPPORTED);
    assert_true(error.fix[0] != 0);
  }
}

static void every_cut_is_refused(void** state) {
  (void)state;
  uint8_t bytes[256];
  size_t n = make(bytes, 1,
                  "{'descr':'<f4','fortran_order':False,'shape':(2,3),}\n", 24);
  for (size_t cut = 0; cut < n; cut++) {
    kilni_cli_array_t a;
    kilni_cli_error_t error;
    assert_false(kilni_cli_npy_read(bytes, cut, &a, &error));
    assert_int_equal(error.code, KILN_STATUS_BAD_DATA);
  }
  kilni_cli_array_t a;
  kilni_cli_error_t error;
  bytes[n] = 0;
  assert_false(kilni_cli_npy_read(bytes, n + 1, &a, &error));
}

static void what_is_written_is_read_back(void** state) {
  (void)state;
  for (int type = 1; type < KILNI_CLI_TYPE_COUNT; type++) {
    for (uint32_t rank = 0; rank <= KILNI_CLI_MAX_RANK; rank++) {
      kilni_cli_error_t error;
      kilni_cli_array_t in = {0}, back;
      kilni_cli_buffer_t file = {0};
      in.shape.type = (kilni_cli_type_t)type;
      in.shape.rank = rank;
      for (uint32_t i = 0; i < rank; i++) in.shape.dims[i] = 1 + i % 2;
      assert_true(kilni_cli_shape_finish(&in.shape, &error));
      assert_true(
          kilni_cli_buffer_resize(&in.data, (size_t)in.shape.bytes, &error));
      for (size_t i = 0; i < in.data.size; i++) in.data.data[i] = (uint8_t)i;
      bool ok = kilni_cli_npy_write(&in, &file, &error);
      assert_int_equal(ok, type != KILNI_CLI_TYPE_BF16);
      if (ok) {
        assert_int_equal((file.size - in.data.size) % 64, 0);
        assert_true(kilni_cli_npy_read(file.data, file.size, &back, &error));
        assert_memory_equal(&back.shape, &in.shape, sizeof(in.shape));
        assert_memory_equal(back.data.data, in.data.data, in.data.size);
        kilni_cli_array_deinit(&back);
      } else {
        assert_int_equal(error.code, KILN_STATUS_UNSUPPORTED);
      }
      kilni_cli_buffer_deinit(&file);
      kilni_cli_array_deinit(&in);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_are_read),
      cmocka_unit_test(bad_headers_are_refused),
      cmocka_unit_test(what_numpy_has_and_we_do_not_is_unsupported),
      cmocka_unit_test(every_cut_is_refused),
      cmocka_unit_test(what_is_written_is_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
