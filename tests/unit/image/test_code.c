// SPDX-License-Identifier: Apache-2.0
//
// image: device code as one type, and how its format is seen.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "image/image.h"
#include "kiln/code.h"

static kiln_bytes_view_t view(const void* data, size_t size) {
  kiln_bytes_view_t bytes = {data, size};
  return bytes;
}

// The first 20 bytes of an ELF file of a type and a machine.
static kiln_bytes_view_t elf(uint8_t* space, uint8_t type, uint8_t machine) {
  memset(space, 0, 20);
  memcpy(space, "\177ELF\2\1\1", 7);
  space[16] = type;
  space[18] = machine;
  return view(space, 20);
}

static void formats_are_seen_from_the_first_bytes(void** state) {
  (void)state;
  uint8_t space[20];
  static const struct {
    uint8_t type;
    uint8_t machine;
    uint32_t format;
  } kElf[] = {
      {2, 190, KILN_CODE_FORMAT_CUBIN},  {1, 190, KILN_CODE_FORMAT_RELOCATABLE},
      {1, 62, KILN_CODE_FORMAT_OBJECT},  {1, 183, KILN_CODE_FORMAT_OBJECT},
      {2, 62, KILN_CODE_FORMAT_UNKNOWN}, {3, 62, KILN_CODE_FORMAT_UNKNOWN},
  };
  for (size_t i = 0; i < sizeof(kElf) / sizeof(kElf[0]); i++) {
    kiln_bytes_view_t bytes = elf(space, kElf[i].type, kElf[i].machine);
    assert_int_equal(kiln_code_format_of(bytes), kElf[i].format);
    bytes.size = 19;
    assert_int_equal(kiln_code_format_of(bytes), KILN_CODE_FORMAT_UNKNOWN);
  }
  static const struct {
    const char* text;
    uint32_t format;
  } kTexts[] = {
      {".version 9.0\n", KILN_CODE_FORMAT_PTX},
      {"/* a */ // b\n\t.version 9.0\n", KILN_CODE_FORMAT_PTX},
      {".version", KILN_CODE_FORMAT_UNKNOWN},
      {"/* .version 9.0", KILN_CODE_FORMAT_UNKNOWN},
      {"\xed\x43\x4e\x7f", KILN_CODE_FORMAT_LTOIR},
      {"!<arch>\n", KILN_CODE_FORMAT_LIBRARY},
      {"!<thin>\n", KILN_CODE_FORMAT_UNKNOWN},
      {"BC\xc0\xde", KILN_CODE_FORMAT_NVVM},
      {"; ModuleID = 'a'\ntarget triple = \"nvptx64\"", KILN_CODE_FORMAT_NVVM},
      {"; nothing else", KILN_CODE_FORMAT_UNKNOWN},
      {"__global__ void k() {}", KILN_CODE_FORMAT_UNKNOWN},
      {"", KILN_CODE_FORMAT_UNKNOWN},
  };
  for (size_t i = 0; i < sizeof(kTexts) / sizeof(kTexts[0]); i++) {
    assert_int_equal(
        kiln_code_format_of(view(kTexts[i].text, strlen(kTexts[i].text))),
        kTexts[i].format);
  }
  assert_int_equal(kiln_code_format_of(view(NULL, 0)),
                   KILN_CODE_FORMAT_UNKNOWN);
  assert_string_equal(kiln_code_format_name(KILN_CODE_FORMAT_NVVM), "nvvm");
  assert_string_equal(kiln_code_format_name(KILN_CODE_FORMAT_NVVM + 1),
                      "unknown");
}

static kiln_code_options_t full_options(void) {
  static const kiln_code_name_t kNames[] = {{"add<int>", "_Z3addIiEvPT_"},
                                            {"add<float>", "_Z3addIfEvPT_"}};
  kiln_code_options_t options = kiln_code_options_default();
  options.name = "add.cu";
  options.arch = "compute_75";
  options.names = kNames;
  options.name_count = 2;
  options.producer_line = 13000;
  return options;
}

static void code_holds_copies_of_everything(void** state) {
  (void)state;
  char text[] = ".version 9.0\n";
  kiln_code_options_t options = full_options();
  kiln_code_t* code = NULL;
  assert_null(kiln_code_create(view(text, 13), &options, &code));
  memset(text, 'x', sizeof(text));
  kiln_code_retain(code);
  kiln_code_release(code);
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_PTX);
  assert_int_equal(kiln_code_bytes(code).size, 13);
  // With its NUL, as the driver wants PTX.
  assert_string_equal((const char*)kiln_code_bytes(code).data,
                      ".version 9.0\n");
  assert_string_equal(kiln_code_name(code), "add.cu");
  assert_string_equal(kiln_code_arch(code), "compute_75");
  assert_int_equal(kiln_code_producer_line(code), 13000);
  assert_int_equal(kiln_code_lowered_count(code), 2);
  assert_string_equal(kiln_code_lowered(code, 0)->expression, "add<int>");
  assert_null(kiln_code_lowered(code, 2));
  assert_string_equal(kiln_code_lowered_name(code, "add<float>"),
                      "_Z3addIfEvPT_");
  assert_null(kiln_code_lowered_name(code, "add<double>"));
  kiln_code_release(code);
}

static void expect(kiln_status_t status, kiln_status_code_t code) {
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static void what_is_no_code_is_refused(void** state) {
  kiln_code_t* code = (kiln_code_t*)state;  // to be made NULL
  expect(kiln_code_create(view("hello", 5), NULL, &code), KILN_STATUS_BAD_DATA);
  assert_null(code);
  // A NUL ends PTX; those at its end may be more than one.
  expect(kiln_code_create(view(".version 9.0\n\0x\0", 16), NULL, &code),
         KILN_STATUS_BAD_DATA);
  assert_null(code);
  assert_null(kiln_code_create(view(".version 9.0\n\0\0", 15), NULL, &code));
  kiln_code_release(code);
  code = NULL;
  kiln_code_options_t options = kiln_code_options_default();
  options.format = KILN_CODE_FORMAT_PTX;
  uint8_t space[20];
  expect(kiln_code_create(elf(space, 2, 190), &options, &code),
         KILN_STATUS_INVALID_ARGUMENT);
  options.format = KILN_CODE_FORMAT_NVVM + 1;
  expect(kiln_code_create(view("hello", 5), &options, &code),
         KILN_STATUS_INVALID_ARGUMENT);
  options = kiln_code_options_default();
  options.names = full_options().names;
  options.name_count = 65537;
  expect(kiln_code_create(view(".version 9.0\n", 13), &options, &code),
         KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(kiln_code_create(view(NULL, 0), NULL, &code));
  assert_null(code);
}

// A relocatable cubin may be called a cubin; the bytes win.
static void the_bytes_say_what_a_cubin_is(void** state) {
  (void)state;
  uint8_t space[20];
  kiln_code_options_t options = kiln_code_options_default();
  options.format = KILN_CODE_FORMAT_CUBIN;
  kiln_code_t* code = NULL;
  assert_null(kiln_code_create(elf(space, 1, 190), &options, &code));
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_RELOCATABLE);
  kiln_code_release(code);
  // What cannot be seen is believed.
  options.format = KILN_CODE_FORMAT_LTOIR;
  assert_null(kiln_code_create(view("bytes", 5), &options, &code));
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_LTOIR);
  kiln_code_release(code);
}

// What is no input is named by its header, where it has one.
static void elf_files_of_other_kinds_are_named(void** state) {
  (void)state;
  uint8_t space[20];
  static const struct {
    size_t size;
    const char* says;
  } kRows[] = {{20, "(64 bits, little-endian, machine 62 (x86-64))"},
               {19, "(64 bits, little-endian)"},
               {5, "does not begin like any format"}};
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    kiln_bytes_view_t bytes = elf(space, 2, 62);
    kiln_code_t* code = NULL;
    bytes.size = kRows[i].size;
    kiln_status_t status = kiln_code_create(bytes, NULL, &code);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
    assert_non_null(strstr(kiln_status_message(status), kRows[i].says));
    assert_non_null(kiln_status_fix(status));
    assert_null(code);
    kiln_status_free(status);
  }
}

// Whatever it is given as: nobody could read its members.
static void a_thin_archive_is_named(void** state) {
  (void)state;
  static const uint32_t kFormats[] = {0, KILN_CODE_FORMAT_LIBRARY,
                                      KILN_CODE_FORMAT_PTX};
  static const char kText[] =
      "!<thin>\n"
      "k.o/            0           0     0     644     6         `\n";
  kiln_bytes_view_t bytes = view(kText, sizeof(kText) - 1);
  for (size_t i = 0; i < sizeof(kFormats) / sizeof(kFormats[0]); i++) {
    kiln_code_options_t options = kiln_code_options_default();
    kiln_code_t* code = NULL;
    options.format = kFormats[i];
    kiln_status_t status = kiln_code_create(bytes, &options, &code);
    assert_non_null(strstr(kiln_status_message(status), "thin archive"));
    expect(status, KILN_STATUS_BAD_DATA);
    assert_null(code);
  }
  kiln_image_t* image = NULL;
  kiln_status_t status = kiln_image_create(bytes, NULL, &image);
  assert_non_null(strstr(kiln_status_message(status), "thin archive"));
  expect(status, KILN_STATUS_BAD_DATA);
  assert_null(image);
}

static const char kKernel[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 x) { ret; }\n";

static void what_it_says_is_read_once_and_stays(void** state) {
  (void)state;
  kiln_code_t* code = NULL;
  kiln_image_t* images[2] = {NULL, NULL};
  assert_null(
      kiln_code_create(view(kKernel, sizeof(kKernel) - 1), NULL, &code));
  assert_null(kilni_image_code_seen(code));
  assert_null(kiln_code_image(code, &images[0]));
  assert_null(kiln_code_image(code, &images[1]));
  assert_ptr_equal(images[0], images[1]);
  kiln_image_release(images[1]);
  kilni_image_ptx_module_t* tree = kilni_image_ptx_share(images[0]);
  kiln_code_release(code);
  // Each outlives what it came from.
  assert_string_equal(kiln_image_kernel(images[0], 0)->name, "add");
  kiln_image_release(images[0]);
  assert_string_equal(tree->functions[0].name, "add");
  kilni_image_ptx_module_release(tree);
}

// Of what cannot be read nothing stays, and each call says why.
static void what_cannot_be_read_is_said_each_time(void** state) {
  (void)state;
  static const char kBad[] = ".version 8.0\n.target sm_75\n.entry\n";
  kiln_code_options_t options = full_options();
  kiln_code_t* code = NULL;
  assert_null(kiln_code_create(view(kBad, sizeof(kBad) - 1), &options, &code));
  for (int i = 0; i < 2; i++) {
    kiln_image_t* image = (kiln_image_t*)state;
    kiln_status_t status = kiln_code_image(code, &image);
    assert_non_null(strstr(kiln_status_message(status), "add.cu"));
    expect(status, KILN_STATUS_BAD_DATA);
    assert_null(image);
    assert_null(kilni_image_code_seen(code));
  }
  kiln_code_release(code);
  kiln_image_t* image = (kiln_image_t*)state;
  expect(kiln_code_image(NULL, &image), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(image);
}

static kiln_status_t read_with_faults(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_code_options_t options = kiln_code_options_default();
  options.allocator = &allocator;
  kiln_code_t* code = NULL;
  kiln_image_t* image = NULL;
  kiln_status_t status =
      kiln_code_create(view(kKernel, sizeof(kKernel) - 1), &options, &code);
  if (!kiln_status_is_ok(status)) return status;
  status = kiln_code_image(code, &image);
  assert_true((image != NULL) == kiln_status_is_ok(status));
  // A second call finds what the first one left, all of it or nothing.
  if (image != NULL) {
    kiln_image_t* again = NULL;
    assert_null(kiln_code_image(code, &again));
    assert_ptr_equal(again, image);
    kiln_image_release(again);
  }
  kiln_code_release(code);
  kiln_image_release(image);
  return status;
}

static void without_memory_it_says_so(void** state) {
  (void)state;
  assert_true(fault_run_allocations(read_with_faults, NULL, 0) > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats_are_seen_from_the_first_bytes),
      cmocka_unit_test(elf_files_of_other_kinds_are_named),
      cmocka_unit_test(a_thin_archive_is_named),
      cmocka_unit_test(code_holds_copies_of_everything),
      cmocka_unit_test(what_is_no_code_is_refused),
      cmocka_unit_test(the_bytes_say_what_a_cubin_is),
      cmocka_unit_test(what_it_says_is_read_once_and_stays),
      cmocka_unit_test(what_cannot_be_read_is_said_each_time),
      cmocka_unit_test(without_memory_it_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
