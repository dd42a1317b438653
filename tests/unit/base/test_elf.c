// SPDX-License-Identifier: Apache-2.0
//
// base: the reader of ELF files, over files made byte by byte.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf.h"
#include "elf_make.h"
#include "fault_run.h"
#include "base/status_make.h"

static elf_plan_t full_plan(void) {
  elf_plan_t plan = {
      .soname = "libnvJitLink.so.13",
      .rpath = "$ORIGIN/../lib",
      .runpath = "$ORIGIN",
      .needed = {"libc.so.6", "libdl.so.2"},
      .defined = {"nvJitLinkVersion", "__nvJitLinkCreate_13_0",
                  "__nvJitLinkCreate_13_5"},
      .undefined = {"malloc", "__nvJitLinkOther_12_9"},
      .rodata = "Cuda compilation tools, release 13.5, V13.5.37\n",
      .rodata_offset = 1000,
      .version = "libnvJitLink.so.13",
      .needed_version = "GLIBC_2.17",
      .has_build_id = true,
  };
  for (uint8_t i = 0; i < 20; i++) plan.build_id[i] = (uint8_t)(0xf0 + i);
  return plan;
}

static kilni_base_elf_t* open_made(const elf_made_t* made) {
  kiln_bytes_view_t bytes = {made->data, made->size};
  kilni_base_elf_t* elf = NULL;
  assert_null(
      kilni_base_elf_open_bytes(kiln_allocator_libc(), bytes, "x.so", &elf));
  assert_non_null(elf);
  return elf;
}

// Counts symbols and keeps the names of the last of each sort.
typedef struct seen_t {
  unsigned defined, undefined;
  char last_defined[64], last_undefined[64];
  unsigned stop_after;  // 0: never
} seen_t;

static bool on_symbol(const kilni_base_elf_symbol_t* symbol, void* user) {
  seen_t* seen = user;
  char* last = symbol->defined ? seen->last_defined : seen->last_undefined;
  snprintf(last, 64, "%.*s", (int)symbol->name.size, symbol->name.data);
  seen->defined += symbol->defined;
  seen->undefined += !symbol->defined;
  return seen->defined + seen->undefined != seen->stop_after;
}

static bool on_version(const char* name, const char* library, void* user) {
  char* text = user;
  size_t size = strlen(text);
  snprintf(text + size, 256 - size, "%s@%s ", name, library);
  return true;
}

static void check_all(bool narrow, bool gnu_hash) {
  elf_plan_t plan = full_plan();
  plan.narrow = narrow;
  plan.gnu_hash = gnu_hash;
  plan.machine = narrow ? 3 : KILNI_ELF_AARCH64;
  elf_made_t made = elf_make(&plan);
  kilni_base_elf_t* elf = open_made(&made);
  assert_int_equal(kilni_base_elf_bits(elf), narrow ? 32 : 64);
  assert_int_equal(kilni_base_elf_machine(elf), plan.machine);
  assert_int_equal(kilni_base_elf_file_bytes(elf), made.size);
  assert_true(kilni_base_elf_is_dynamic(elf));
  assert_string_equal(kilni_base_elf_soname(elf), "libnvJitLink.so.13");
  assert_string_equal(kilni_base_elf_rpath(elf), "$ORIGIN/../lib");
  assert_string_equal(kilni_base_elf_runpath(elf), "$ORIGIN");
  assert_int_equal(kilni_base_elf_needed_count(elf), 2);
  assert_string_equal(kilni_base_elf_needed(elf, 0), "libc.so.6");
  assert_string_equal(kilni_base_elf_needed(elf, 1), "libdl.so.2");
  assert_null(kilni_base_elf_needed(elf, 2));
  char id[2 * KILNI_ELF_MAX_BUILD_ID + 1];
  assert_null(kilni_base_elf_build_id(elf, id));
  assert_string_equal(id, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff00010203");
  seen_t seen = {0};
  assert_null(
      kilni_base_elf_symbols_each(elf, "__nvJitLink", on_symbol, &seen));
  assert_int_equal(seen.defined, 2);
  assert_int_equal(seen.undefined, 1);
  assert_string_equal(seen.last_defined, "__nvJitLinkCreate_13_5");
  assert_string_equal(seen.last_undefined, "__nvJitLinkOther_12_9");
  char versions[256] = "";
  assert_null(kilni_base_elf_versions_each(elf, on_version, versions));
  assert_string_equal(versions,
                      "libnvJitLink.so.13@libnvJitLink.so.13 "
                      "GLIBC_2.17@libc.so.6 ");
  char text[128];
  assert_null(kilni_base_elf_text_find(elf, ".rodata", "Cuda compilation tools",
                                       1 << 20, sizeof(text), text));
  assert_string_equal(text, "Cuda compilation tools, release 13.5, V13.5.37");
  kilni_base_elf_close(elf);
  free(made.data);
}

static void test_a_library(void** state) {
  (void)state;
  check_all(false, false);
  check_all(false, true);
  check_all(true, false);
  check_all(true, true);
}

static void test_what_is_left_out(void** state) {
  (void)state;
  elf_plan_t plan = {.gnu_hash = true};
  elf_made_t made = elf_make(&plan);
  kilni_base_elf_t* elf = open_made(&made);
  assert_null(kilni_base_elf_soname(elf));
  assert_null(kilni_base_elf_rpath(elf));
  assert_null(kilni_base_elf_runpath(elf));
  assert_int_equal(kilni_base_elf_needed_count(elf), 0);
  char id[2 * KILNI_ELF_MAX_BUILD_ID + 1];
  assert_null(kilni_base_elf_build_id(elf, id));
  assert_string_equal(id, "");
  seen_t seen = {0};
  assert_null(kilni_base_elf_symbols_each(elf, "", on_symbol, &seen));
  assert_int_equal(seen.defined, 0);
  char text[16];
  assert_null(
      kilni_base_elf_text_find(elf, ".rodata", "x", 99, sizeof(text), text));
  assert_string_equal(text, "");
  assert_null(
      kilni_base_elf_text_find(elf, ".none", "x", 99, sizeof(text), text));
  assert_string_equal(text, "");
  kilni_base_elf_close(elf);
  kilni_base_elf_close(NULL);
  free(made.data);
}

static void test_a_visit_can_end_early(void** state) {
  (void)state;
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  kilni_base_elf_t* elf = open_made(&made);
  seen_t seen = {.stop_after = 2};
  assert_null(kilni_base_elf_symbols_each(elf, "", on_symbol, &seen));
  assert_int_equal(seen.defined + seen.undefined, 2);
  kilni_base_elf_close(elf);
  free(made.data);
}

// A text is found wherever it lies in its section, also across two pieces of
// the scan, and only within the limit.
static void test_text_in_a_large_section(void** state) {
  (void)state;
  static const long starts[] = {0, 1, -20, -3, -1, 5};
  for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
    elf_plan_t plan = full_plan();
    size_t at = (size_t)((i < 2 ? 0 : KILNI_ELF_SCAN_BYTES) + starts[i]);
    plan.rodata_offset = at;
    elf_made_t made = elf_make(&plan);
    kilni_base_elf_t* elf = open_made(&made);
    char text[128];
    const char* needle = "Cuda compilation tools, release ";
    assert_null(kilni_base_elf_text_find(elf, ".rodata", needle, 1 << 20,
                                         sizeof(text), text));
    assert_string_equal(text, "Cuda compilation tools, release 13.5, V13.5.37");
    uint64_t just = at + strlen(needle);
    assert_null(kilni_base_elf_text_find(elf, ".rodata", needle, just - 1,
                                         sizeof(text), text));
    assert_string_equal(text, "");
    assert_null(kilni_base_elf_text_find(elf, ".rodata", needle, just,
                                         sizeof(text), text));
    assert_int_equal(strncmp(text, needle, 32), 0);
    char small[8];
    assert_null(kilni_base_elf_text_find(elf, ".rodata", needle, just,
                                         sizeof(small), small));
    assert_string_equal(small, "Cuda co");
    kilni_base_elf_close(elf);
    free(made.data);
  }
}

// ---- Broken files ----

// Uses all of a file that may be broken: every call ends, and an error is one
// of those that are promised.
static kiln_status_code_t use(const uint8_t* data, size_t size) {
  kiln_bytes_view_t bytes = {data, size};
  kilni_base_elf_t* elf;
  kiln_status_t status =
      kilni_base_elf_open_bytes(kiln_allocator_libc(), bytes, "x.so", &elf);
  kiln_status_code_t first = kiln_status_code(status);
  assert_int_equal(kiln_status_is_ok(status), elf != NULL);
  if (elf != NULL) {
    char id[2 * KILNI_ELF_MAX_BUILD_ID + 1];
    char text[64];
    char versions[256] = "";
    seen_t seen = {0};
    kiln_status_t each[4];
    each[0] = kilni_base_elf_build_id(elf, id);
    each[1] = kilni_base_elf_symbols_each(elf, "", on_symbol, &seen);
    each[2] = kilni_base_elf_versions_each(elf, on_version, versions);
    each[3] =
        kilni_base_elf_text_find(elf, ".rodata", "Cuda", 1 << 20, 64, text);
    for (size_t i = 0; i < 4; i++) {
      kiln_status_code_t code = kiln_status_code(each[i]);
      assert_true(code == KILN_STATUS_OK || code == KILN_STATUS_BAD_DATA ||
                  code == KILN_STATUS_LIMIT_EXCEEDED);
      if (code != KILN_STATUS_OK) assert_non_null(kiln_status_fix(each[i]));
      if (first == KILN_STATUS_OK) first = code;
      kiln_status_free(each[i]);
    }
  }
  kiln_status_free(status);
  kilni_base_elf_close(elf);
  return first;
}

static void test_every_shorter_file(void** state) {
  (void)state;
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  assert_int_equal(use(made.data, made.size), KILN_STATUS_OK);
  assert_int_equal(use(made.data, 0), KILN_STATUS_UNSUPPORTED);
  assert_int_equal(use(made.data, 3), KILN_STATUS_UNSUPPORTED);
  for (size_t size = 4; size < made.size; size += size < 512 ? 1 : 37) {
    // A copy of exact size, so that a sanitizer sees a read beyond it.
    uint8_t* copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, made.data, size);
    kiln_status_code_t code = use(copy, size);
    assert_true(code == KILN_STATUS_BAD_DATA || code == KILN_STATUS_OK);
    // Its section headers lie last.
    if (size <= made.sections) assert_int_equal(code, KILN_STATUS_BAD_DATA);
    free(copy);
  }
  free(made.data);
}

static void test_every_damaged_byte(void** state) {
  (void)state;
  static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  for (int narrow = 0; narrow < 2; narrow++) {
    elf_plan_t plan = full_plan();
    plan.narrow = narrow == 1;
    plan.gnu_hash = narrow == 0;
    elf_made_t made = elf_make(&plan);
    size_t rodata = made.strings + 400;
    for (size_t at = 0; at < made.size; at++) {
      if (at == rodata) at = made.sections;  // texts say nothing
      uint8_t kept = made.data[at];
      for (size_t i = 0; i < sizeof(values); i++) {
        made.data[at] = values[i];
        (void)use(made.data, made.size);
      }
      made.data[at] = kept;
    }
    free(made.data);
  }
}

// Sets a field of the 64-bit file and expects a refusal that names the file.
static void refuse(size_t where, size_t bytes, uint64_t value,
                   kiln_status_code_t code, const char* words) {
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  for (size_t i = 0; i < bytes; i++) {
    made.data[where + i] = (uint8_t)(value >> (8 * i));
  }
  kiln_bytes_view_t bytes_view = {made.data, made.size};
  kilni_base_elf_t* elf;
  kiln_status_t status = kilni_base_elf_open_bytes(
      kiln_allocator_libc(), bytes_view, "/lib/x.so", &elf);
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(strstr(kiln_status_message(status), "/lib/x.so"));
  assert_non_null(strstr(kiln_status_message(status), words));
  assert_non_null(kiln_status_fix(status));
  assert_null(elf);
  kiln_status_free(status);
  free(made.data);
}

static void test_refusals(void** state) {
  (void)state;
  refuse(5, 1, 2, KILN_STATUS_UNSUPPORTED, "another byte order");
  refuse(4, 1, 3, KILN_STATUS_BAD_DATA, "neither 32 nor 64");
  refuse(16, 2, 4, KILN_STATUS_BAD_DATA, "neither a library nor a program");
  refuse(56, 2, 0xffff, KILN_STATUS_LIMIT_EXCEEDED, "program headers");
  refuse(54, 2, 8, KILN_STATUS_BAD_DATA, "program headers have no size");
  refuse(32, 8, UINT64_MAX - 8, KILN_STATUS_BAD_DATA, "past its end");
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  // The first entry of .dynamic is a needed library.
  refuse(made.dynamic + 8, 8, 1 << 20, KILN_STATUS_BAD_DATA,
         "past its string table");
  free(made.data);
}

// A .dynamic without an end, longer than any: reading stops at a limit.
static void test_an_endless_dynamic(void** state) {
  (void)state;
  size_t size = (size_t)(KILNI_ELF_MAX_DYNAMIC + 100) * 16 + 4096;
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  uint8_t* data = malloc(size);
  assert_non_null(data);
  memset(data, 0x15, size);  // DT_DEBUG and the like
  memcpy(data, made.data, 4096);
  uint64_t bytes = size - 4096;
  uint64_t at = 4096;
  memcpy(data + made.segments + 56 + 8, &at, 8);
  memcpy(data + made.segments + 56 + 32, &bytes, 8);
  assert_int_equal(use(data, size), KILN_STATUS_LIMIT_EXCEEDED);
  free(data);
  free(made.data);
}

// ---- Files ----

static char* temp_path(char* path) {
  strcpy(path, "/tmp/kiln-elf-XXXXXX");
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  return path;
}

static void test_a_file(void** state) {
  (void)state;
  char path[32];
  temp_path(path);
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(made.data, 1, made.size, file), made.size);
  fclose(file);
  // A library of a hundred gigabytes, nearly all of it a hole.
  assert_int_equal(truncate(path, (off_t)100 << 30), 0);
  kilni_base_elf_t* elf;
  assert_null(kilni_base_elf_open(kiln_allocator_libc(), path, &elf));
  assert_string_equal(kilni_base_elf_soname(elf), "libnvJitLink.so.13");
  assert_int_equal(kilni_base_elf_file_bytes(elf), (uint64_t)100 << 30);
  char text[128];
  assert_null(kilni_base_elf_text_find(elf, ".rodata", "Cuda ", 1 << 20,
                                       sizeof(text), text));
  assert_string_equal(text, "Cuda compilation tools, release 13.5, V13.5.37");
  // It shrinks while it is open: an error, no fault.
  assert_int_equal(truncate(path, 100), 0);
  seen_t seen = {0};
  (void)seen;
  kiln_status_t status = kilni_base_elf_text_find(elf, ".rodata", "Cuda ",
                                                  1 << 20, sizeof(text), text);
  assert_true(kiln_status_is_ok(status) ||
              kiln_status_code(status) == KILN_STATUS_BAD_DATA);
  kiln_status_free(status);
  kilni_base_elf_close(elf);
  unlink(path);
  free(made.data);
  status = kilni_base_elf_open(kiln_allocator_libc(), path, &elf);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_null(elf);
  kiln_status_free(status);
}

// A pipe without a writer in a library's place must not be waited for.
static void test_no_ordinary_file(void** state) {
  (void)state;
  char path[32];
  temp_path(path);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  kilni_base_elf_t* elf;
  kiln_status_t status = kilni_base_elf_open(kiln_allocator_libc(), path, &elf);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  assert_non_null(strstr(kiln_status_message(status), "not a regular file"));
  kiln_status_free(status);
  unlink(path);
  status = kilni_base_elf_open(kiln_allocator_libc(), "/tmp", &elf);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  kiln_status_free(status);
}

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  const elf_made_t* made = user;
  kiln_bytes_view_t bytes = {made->data, made->size};
  kilni_base_elf_t* elf;
  KILNI_RETURN_IF_ERROR(kilni_base_elf_open_bytes(allocator, bytes, "x", &elf));
  seen_t seen = {0};
  char text[64];
  char versions[256] = "";
  kiln_status_t status =
      kilni_base_elf_symbols_each(elf, "_", on_symbol, &seen);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_elf_versions_each(elf, on_version, versions);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_base_elf_text_find(elf, ".rodata", "Cuda", 4096, 64, text);
  }
  if (kiln_status_is_ok(status)) {
    char id[2 * KILNI_ELF_MAX_BUILD_ID + 1];
    status = kilni_base_elf_build_id(elf, id);
  }
  kilni_base_elf_close(elf);
  return status;
}

static void test_memory_may_run_out(void** state) {
  (void)state;
  elf_plan_t plan = full_plan();
  elf_made_t made = elf_make(&plan);
  assert_true(fault_run_allocations(open_body, &made, 0) > 10);
  free(made.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_library),
      cmocka_unit_test(test_what_is_left_out),
      cmocka_unit_test(test_a_visit_can_end_early),
      cmocka_unit_test(test_text_in_a_large_section),
      cmocka_unit_test(test_every_shorter_file),
      cmocka_unit_test(test_every_damaged_byte),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_an_endless_dynamic),
      cmocka_unit_test(test_a_file),
      cmocka_unit_test(test_no_ordinary_file),
      cmocka_unit_test(test_memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
