// SPDX-License-Identifier: Apache-2.0
//
// device: code files that are cut short or are something else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "test_tree.h"

static kiln_status_t read_bytes(const void* data, size_t size,
                                kiln_status_t* out_doubt) {
  kilni_device_code_facts_t facts;
  kiln_bytes_view_t bytes = {data, size};
  kilni_device_code_source_t source = {bytes, "file", NULL, false};
  kiln_status_t status = kilni_device_code_facts_init(
      &facts, kiln_allocator_libc(), &source, out_doubt);
  if (kiln_status_is_ok(status)) kilni_device_code_facts_deinit(&facts);
  return status;
}

static void assert_fix(const void* data, size_t size, const char* word) {
  kiln_status_t doubt = kiln_ok();
  kiln_status_t status = read_bytes(data, size, &doubt);
  assert_non_null(strstr(kiln_status_fix(status), word));
  kiln_status_free(status);
}

static void assert_bad(const void* data, size_t size, const char* word) {
  kiln_status_t doubt = kiln_ok();
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

enum {
  FIRST_SECTION = 64 + 64,  // behind the header and section 0
  NAMES = FIRST_SECTION + 64,
  CUBIN_BYTES = 272,
};

// A cubin of a section of 16 bytes, at the end, and the names of sections.
static void make_cubin(uint8_t* data) {
  memset(data, 0, CUBIN_BYTES);
  memcpy(data, "\177ELF\2\1\1", 7);
  put(data, 16, 2, 2);    // linked
  put(data, 18, 190, 2);  // machine
  put(data, 40, 64, 8);   // section headers
  put(data, 58, 64, 2);   // size of one
  put(data, 60, 3, 2);    // how many
  put(data, 62, 2, 2);    // which holds names
  put(data, FIRST_SECTION + 4, 1, 4);
  put(data, FIRST_SECTION + 24, CUBIN_BYTES - 16, 8);
  put(data, FIRST_SECTION + 32, 16, 8);
  put(data, NAMES + 4, 3, 4);
  put(data, NAMES + 24, NAMES + 64 - 8, 8);
  put(data, NAMES + 32, 8, 8);
}

static void test_cubins(void** state) {
  (void)state;
  uint8_t data[CUBIN_BYTES];
  kiln_status_t doubt = kiln_ok();
  make_cubin(data);
  assert_null(read_bytes(data, sizeof(data), &doubt));
  assert_null(doubt);
  for (size_t cut = 4; cut < sizeof(data); cut++) {
    assert_bad(data, cut, "file: at byte");
  }
  put(data, 18, 62, 2);
  assert_bad(data, sizeof(data), "not one for CUDA");
  make_cubin(data);
  put(data, FIRST_SECTION + 32, UINT64_MAX, 8);
  assert_bad(data, sizeof(data), "would be");
  make_cubin(data);
  put(data, 40, UINT64_MAX, 8);
  assert_bad(data, sizeof(data), "no section headers");
  make_cubin(data);
  put(data, 32, UINT64_MAX, 8);
  assert_bad(data, sizeof(data), "segments");
}

// Memory that is not set has no bytes in the file, and neither has what only a
// linker will make: CUDA has section types of its own for that.
static void test_sections_without_bytes(void** state) {
  (void)state;
  static const uint32_t types[] = {8, 0x70000007, 0x7000000a, 0x70000015};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
    uint8_t data[CUBIN_BYTES];
    kiln_status_t doubt = kiln_ok();
    make_cubin(data);
    put(data, 16, 1, 2);  // not linked
    put(data, FIRST_SECTION + 4, types[i], 4);
    put(data, FIRST_SECTION + 24, CUBIN_BYTES, 8);
    put(data, FIRST_SECTION + 32, 4096, 8);
    assert_null(read_bytes(data, sizeof(data), &doubt));
    assert_null(doubt);
  }
}

// What a newer toolkit writes in its own words is a doubt, and no refusal.
static void test_unknown_attributes(void** state) {
  (void)state;
  uint8_t data[CUBIN_BYTES];
  kiln_status_t doubt = kiln_ok();
  make_cubin(data);
  memcpy(data + NAMES + 56, "\0.note", 7);
  put(data, FIRST_SECTION, 1, 4);
  put(data, FIRST_SECTION + 4, 7, 4);  // a note, longer than its section
  put(data, CUBIN_BYTES - 16, 1u << 30, 4);
  assert_null(read_bytes(data, sizeof(data), &doubt));
  assert_int_equal(kiln_status_code(doubt), KILN_STATUS_BAD_DATA);
  kiln_status_free(doubt);
}

static void test_fatbins(void** state) {
  (void)state;
  enum { ENTRY = 16, BODY = 16 + 64, BYTES = BODY + 16 };
  uint8_t data[BYTES] = {0};
  put(data, 0, 0xba55ed50, 4);
  put(data, 4, 1, 2);
  put(data, 6, 16, 2);
  put(data, 8, BYTES - 16, 8);
  put(data, ENTRY, 2, 2);
  put(data, ENTRY + 4, 64, 4);
  put(data, ENTRY + 8, 16, 8);
  kiln_status_t doubt = kiln_ok();
  assert_null(read_bytes(data, sizeof(data), &doubt));
  assert_null(doubt);
  for (size_t cut = 4; cut < sizeof(data); cut++) {
    assert_bad(data, cut, "cut off");
  }
  put(data, ENTRY + 8, 17, 8);
  assert_bad(data, sizeof(data), "cut off");
  put(data, 8, UINT64_MAX, 8);
  assert_bad(data, sizeof(data), "cut off");
  // A wrapper points at code in memory, where a driver finds it.
  memset(data, 0, sizeof(data));
  put(data, 0, 0x466243b1, 4);
  assert_null(read_bytes(data, 24, &doubt));
  assert_int_equal(kiln_status_code(doubt), KILN_STATUS_UNSUPPORTED);
  kiln_status_free(doubt);
}

static void test_what_is_nothing(void** state) {
  (void)state;
  assert_bad("", 0, "is empty");
  static const char kLtoir[8] = {(char)0xed, 0x43, 0x4e, 0x7f, 1, 0x41};
  assert_bad(kLtoir, sizeof(kLtoir), "is LTO-IR, which no device loads");
  // A cubin is for a GPU alone, and what is linked without an output is lost.
  assert_fix(kLtoir, sizeof(kLtoir), "-o OUT.cubin` for a GPU");
  assert_fix(kLtoir, sizeof(kLtoir), "--output ptx -o OUT.ptx");
  assert_bad(".version 7.0\n\0.target sm_70\n", 28, "at offset 13");
  // Text that is no PTX: a driver may know better, so the doubt is kept.
  kiln_status_t doubt = kiln_ok();
  assert_null(read_bytes("hello", 5, &doubt));
  assert_int_equal(kiln_status_code(doubt), KILN_STATUS_BAD_DATA);
  kiln_status_free(doubt);
}

static void test_the_version_of_newer_ptx(void** state) {
  (void)state;
  static const char text[] = "// new\n.version 12.7\n.target sm_200\n";
  kilni_device_code_facts_t facts;
  kiln_status_t doubt = kiln_ok();
  kiln_bytes_view_t bytes = {(const uint8_t*)text, sizeof(text) - 1};
  kilni_device_code_source_t source = {bytes, "file", NULL, false};
  assert_null(kilni_device_code_facts_init(&facts, kiln_allocator_libc(),
                                           &source, &doubt));
  assert_int_equal(facts.ptx_isa, 127);
  assert_false(facts.is_listed);
  kilni_device_code_facts_deinit(&facts);
  kiln_status_free(doubt);
}

// A cubin of seven kernels.
static kiln_bytes_view_t read_cubin(void) {
  static uint8_t data[1 << 16];
  char path[4096];
  FILE* file =
      fopen(test_tree_path(path, sizeof(path),
                           "tests/unit/image/data/nvrtc130_sm90a.cubin"),
            "rb");
  assert_non_null(file);
  kiln_bytes_view_t bytes = {data, fread(data, 1, sizeof(data), file)};
  fclose(file);
  return bytes;
}

// The kernels of a cubin, and what they take, without a driver.
static void test_kernels_of_a_cubin(void** state) {
  (void)state;
  const kiln_bytes_view_t bytes = read_cubin();
  kilni_device_code_facts_t facts;
  kiln_status_t doubt = kiln_ok();
  kilni_device_code_source_t source = {bytes, "file", NULL, false};
  assert_null(kilni_device_code_facts_init(&facts, kiln_allocator_libc(),
                                           &source, &doubt));
  assert_null(doubt);
  assert_true(facts.is_listed);
  assert_int_equal(facts.format, KILN_CODE_FORMAT_CUBIN);
  assert_true(facts.kernel_count > 1);
  for (size_t i = 0; i < facts.kernel_count; i++) {
    assert_true(facts.kernels[i].params_known);
    assert_int_equal(
        kilni_device_code_facts_find(&facts, facts.kernels[i].name), i);
  }
  kilni_device_code_facts_deinit(&facts);
}

// PTX says more of the kernels that it has, and takes none away: a cubin may be
// linked of several.
static void test_a_cubin_of_more_than_its_ptx(void** state) {
  (void)state;
  static const char text[] =
      ".version 8.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry req(.param .u64 place) { ret; }\n"
      ".visible .entry more(.param .u32 n) { ret; }\n";
  const kiln_bytes_view_t ptx = {(const uint8_t*)text, sizeof(text) - 1};
  kilni_device_code_facts_t facts;
  kiln_status_t doubt = kiln_ok();
  kilni_device_code_source_t cubin = {read_cubin(), "file", NULL, false};
  kilni_device_code_source_t more = {ptx, "file", NULL, false};
  assert_null(kilni_device_code_facts_init(&facts, kiln_allocator_libc(),
                                           &cubin, &doubt));
  assert_null(doubt);
  assert_int_equal(facts.kernel_count, 7);
  assert_null(kilni_device_code_facts_describe(&facts, &more));
  assert_true(facts.is_listed);
  assert_int_equal(facts.kernel_count, 8);
  const size_t at = kilni_device_code_facts_find(&facts, "req");
  assert_int_equal(at, 2);
  assert_string_equal(facts.kernels[at].params[0].name, "place");
  const size_t other = kilni_device_code_facts_find(&facts, "clus");
  assert_int_equal(other, 1);
  assert_true(facts.kernels[other].params_known);
  assert_int_equal(facts.kernels[other].param_count, 1);
  assert_int_equal(kilni_device_code_facts_find(&facts, "more"), 7);
  kilni_device_code_facts_deinit(&facts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cubins),
      cmocka_unit_test(test_sections_without_bytes),
      cmocka_unit_test(test_unknown_attributes),
      cmocka_unit_test(test_fatbins),
      cmocka_unit_test(test_what_is_nothing),
      cmocka_unit_test(test_the_version_of_newer_ptx),
      cmocka_unit_test(test_kernels_of_a_cubin),
      cmocka_unit_test(test_a_cubin_of_more_than_its_ptx),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
