// SPDX-License-Identifier: Apache-2.0
//
// image: machine code and the files it comes in.
//
// That the facts are right is for inspect_truth.py, which compares them with
// cuobjdump's; here is what a caller may rely on whatever is in a file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "image/image.h"
#include "image_check.h"

#define DATA KILN_SOURCE_DIR "/tests/unit/image/data/"

static kiln_bytes_view_t read_data(const char* name) {
  char path[1024];
  (void)snprintf(path, sizeof(path), DATA "%s", name);
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long size = ftell(file);
  assert_true(size > 0);
  rewind(file);
  uint8_t* bytes = malloc((size_t)size);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
  (void)fclose(file);
  return (kiln_bytes_view_t){bytes, (size_t)size};
}

// Owned by the caller and const only to readers.
static uint8_t* owned(kiln_bytes_view_t bytes) {
  uint8_t* data = NULL;
  memcpy(&data, &bytes.data, sizeof(data));
  return data;
}

static kiln_image_t* read_image(const char* name) {
  kiln_bytes_view_t bytes = read_data(name);
  kiln_image_t* image = NULL;
  kiln_status_t status = kiln_image_create(bytes, NULL, &image);
  assert_true(kiln_status_is_ok(status));
  // Nothing of the bytes is kept.
  memset(owned(bytes), 0xa5, bytes.size);
  free(owned(bytes));
  assert_null(image_check(image));
  return image;
}

// ---------------------------------------------------------------------------
// What is told
// ---------------------------------------------------------------------------

static void a_cubin_tells_its_kernels(void** state) {
  (void)state;
  kiln_image_t* image = read_image("nvrtc130_sm90a.cubin");
  assert_int_equal(kiln_image_format(image), KILN_CODE_FORMAT_CUBIN);
  assert_int_equal(kiln_image_member_count(image), 1);
  const kiln_image_member_t* member = kiln_image_member(image, 0);
  assert_string_equal(member->target, "sm_90a");
  assert_string_equal(kiln_image_target(image, 0), "sm_90a");
  assert_int_equal(member->producer_line, 13000);
  assert_non_null(strstr(member->producer, "release 13.0"));
  assert_string_equal(member->options, "-arch sm_90a");
  assert_int_equal(member->debug, 0);
  uint32_t index = 0;
  assert_null(kiln_image_kernel_find(image, "plain", &index));
  const kiln_image_kernel_t* kernel = kiln_image_kernel(image, index);
  assert_int_equal(kernel->param_count, 4);
  assert_int_equal(kernel->params_known, 1);
  assert_int_equal(kernel->param_bytes, 48);
  assert_int_equal(kernel->parameter_offset, 0x210);
  static const uint32_t kParams[4][2] = {{0, 8}, {8, 4}, {12, 1}, {16, 32}};
  for (uint32_t i = 0; i < 4; i++) {
    const kiln_image_param_t* param = kiln_image_kernel_param(image, index, i);
    assert_int_equal(param->offset, kParams[i][0]);
    assert_int_equal(param->bytes, kParams[i][1]);
    assert_int_equal(param->align, 0);
    assert_int_equal(param->kind, KILN_IMAGE_PARAM_UNKNOWN);
  }
  assert_null(kiln_image_kernel_find(image, "shared", &index));
  kernel = kiln_image_kernel(image, index);
  // 64 floats and 9 doubles; the system's own is told apart.
  assert_int_equal(kernel->static_shared_bytes, 328);
  assert_int_equal(kernel->reserved_shared_bytes, 1024);
  assert_int_equal(kernel->maximum_block[0], 128);
  assert_null(kiln_image_kernel_find(image, "clus", &index));
  assert_int_equal(kiln_image_kernel(image, index)->required_cluster[0], 2);
  assert_int_equal(kiln_image_kernel(image, index)->explicit_cluster, 1);
  kiln_image_release(image);
}

// nvJitLink leaves the section out and keeps the symbol.
static void a_symbol_tells_what_the_system_takes(void** state) {
  (void)state;
  static const char kSection[] = ".nv.shared.reserved.0";
  kiln_bytes_view_t bytes = read_data("nvrtc130_sm90a.cubin");
  uint8_t* data = owned(bytes);
  uint32_t renamed = 0;
  for (size_t i = 0; i + sizeof(kSection) <= bytes.size; i++) {
    if (memcmp(data + i, kSection, sizeof(kSection)) != 0) continue;
    data[i + 1] = 'x';
    renamed++;
  }
  assert_true(renamed > 0);
  kiln_image_t* image = NULL;
  assert_true(kiln_status_is_ok(kiln_image_create(bytes, NULL, &image)));
  free(data);
  uint32_t index = 0;
  assert_null(kiln_image_kernel_find(image, "shared", &index));
  const kiln_image_kernel_t* kernel = kiln_image_kernel(image, index);
  assert_int_equal(kernel->static_shared_bytes, 328);
  assert_int_equal(kernel->reserved_shared_bytes, 1024);
  kiln_image_release(image);
}

static void symbols_are_told(void** state) {
  (void)state;
  kiln_image_t* image = read_image("externs.cubin");
  assert_int_equal(kiln_image_format(image), KILN_CODE_FORMAT_RELOCATABLE);
  static const struct {
    const char* name;
    uint32_t bytes;
    uint32_t kind;
    uint32_t defined;
  } kSymbols[] = {{"mc", 12, KILN_IMAGE_SYMBOL_CONSTANT, 1},
                  {"mg", 4, KILN_IMAGE_SYMBOL_VARIABLE, 1},
                  {"ec", 16, KILN_IMAGE_SYMBOL_CONSTANT, 0},
                  {"ed", 4, KILN_IMAGE_SYMBOL_VARIABLE, 0}};
  assert_int_equal(kiln_image_symbol_count(image), 4);
  for (uint32_t i = 0; i < 4; i++) {
    const kiln_image_symbol_t* symbol = kiln_image_symbol(image, i);
    assert_string_equal(symbol->name, kSymbols[i].name);
    assert_int_equal(symbol->bytes, kSymbols[i].bytes);
    assert_int_equal(symbol->kind, kSymbols[i].kind);
    assert_int_equal(symbol->defined, kSymbols[i].defined);
    assert_int_equal(symbol->exported, 1);
  }
  kiln_image_release(image);
}

static void members_share_their_kernels(void** state) {
  (void)state;
  kiln_image_t* image = read_image("plain.fatbin");
  assert_int_equal(kiln_image_format(image), KILN_CODE_FORMAT_FATBIN);
  assert_int_equal(kiln_image_member_count(image), 3);
  assert_int_equal(kiln_image_target_count(image), 2);
  assert_int_equal(kiln_image_kernel_count(image), 1);
  assert_string_equal(kiln_image_kernel(image, 0)->targets, "sm_80, sm_90");
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(kiln_image_member(image, i)->kernel_count, 1);
    assert_string_equal(kiln_image_member_kernel(image, i, 0)->targets,
                        kiln_image_member(image, i)->target);
  }
  assert_int_equal(kiln_image_member(image, 2)->ptx_version, 9000);
  assert_null(kiln_image_member_kernel(image, 3, 0));
  assert_null(kiln_image_member_param(image, 3, 0, 0));
  assert_null(kilni_image_ptx(image));
  kiln_image_release(image);
}

static void packed_is_as_good_as_plain(void** state) {
  (void)state;
  static const char* const kNames[] = {"lz4.fatbin", "zstd.fatbin"};
  kiln_image_t* plain = read_image("plain.fatbin");
  for (uint32_t k = 0; k < 2; k++) {
    kiln_image_t* image = read_image(kNames[k]);
    if (kiln_image_member(image, 0)->unread != NULL) {
      // Built without the library: listed all the same.
      assert_string_equal(kiln_image_member(image, 0)->target, "sm_80");
      kiln_image_release(image);
      continue;
    }
    assert_int_equal(kiln_image_member_count(image), 3);
    for (uint32_t i = 0; i < 3; i++) {
      const kiln_image_member_t* a = kiln_image_member(plain, i);
      const kiln_image_member_t* b = kiln_image_member(image, i);
      assert_int_equal(b->packing, k == 0 ? KILN_IMAGE_PACKING_LZ4
                                          : KILN_IMAGE_PACKING_ZSTD);
      assert_true(b->bytes < a->bytes);
      assert_string_equal(a->target, b->target);
      assert_int_equal(kiln_image_member_kernel(plain, i, 0)->registers,
                       kiln_image_member_kernel(image, i, 0)->registers);
    }
    kiln_image_release(image);
  }
  kiln_image_release(plain);
}

static void what_is_not_read_is_listed(void** state) {
  (void)state;
  kiln_image_t* image = read_image("scrambled.fatbin");
  const kiln_image_member_t* member = kiln_image_member(image, 0);
  assert_int_equal(member->format, KILN_CODE_FORMAT_LTOIR);
  assert_non_null(strstr(member->unread, "scrambled"));
  assert_non_null(strstr(member->options, "-fmad=1"));
  kiln_image_release(image);
  // An entry of a kind that nobody knows.
  kiln_bytes_view_t bytes = read_data("plain.fatbin");
  owned(bytes)[16] = 77;
  assert_null(kiln_image_create(bytes, NULL, &image));
  assert_int_equal(kiln_image_member_count(image), 3);
  assert_string_equal(kiln_image_member(image, 0)->unread,
                      "an entry of kind 77");
  assert_null(image_check(image));
  kiln_image_release(image);
  free(owned(bytes));
}

static void ir_tells_its_target(void** state) {
  (void)state;
  static const struct {
    const char* name;
    const char* target;
    uint32_t version;
  } kFiles[] = {{"nvrtc129_90a.ltoir", "compute_90a", 2093},
                {"nvrtc130_90a.ltoir", "compute_90a", 2098},
                {"nvrtc135_90a.ltoir", "compute_90a", 2131},
                {"nvrtc130_100.ltoir", "compute_100", 2098}};
  for (size_t i = 0; i < sizeof(kFiles) / sizeof(kFiles[0]); i++) {
    kiln_image_t* image = read_image(kFiles[i].name);
    assert_int_equal(kiln_image_format(image), KILN_CODE_FORMAT_LTOIR);
    assert_string_equal(kiln_image_target(image, 0), kFiles[i].target);
    assert_int_equal(kiln_image_member(image, 0)->ir_version,
                     kFiles[i].version);
    kiln_image_release(image);
  }
  static const char kText[] =
      "; text\ntarget triple = \"nvptx64-nvidia-cuda\"\n"
      "!nvvmir.version = !{!7}\n!7 = !{i32 2, i32 0, i32 3, i32 2}\n";
  kiln_bytes_view_t bytes = {(const uint8_t*)kText, sizeof(kText) - 1};
  kiln_image_t* image = NULL;
  assert_null(kiln_image_create(bytes, NULL, &image));
  assert_string_equal(kiln_image_member(image, 0)->triple,
                      "nvptx64-nvidia-cuda");
  assert_int_equal(kiln_image_member(image, 0)->ir_version, 2000);
  kiln_image_release(image);
}

// ---------------------------------------------------------------------------
// Archives, made here
// ---------------------------------------------------------------------------

static size_t add_member(char* out, const char* name, const char* body,
                         size_t size) {
  int head = sprintf(out, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0,
                     0644, size);
  memcpy(out + head, body, size);
  size_t all = (size_t)head + size;
  if (size % 2) out[all++] = '\n';
  return all;
}

#define PTX(name)                                               \
  ".version 8.0\n.target sm_80\n.address_size 64\n.entry " name \
  "() { ret; "                                                  \
  "}\n"

static void archives_are_read_by_every_kind_of_name(void** state) {
  (void)state;
  char text[4096] = "!<arch>\n";
  size_t size = 8;
  static const char kNames[] = "a_rather_long_name.ptx/\n";
  size += add_member(text + size, "/", "\0\0\0\0", 4);
  size += add_member(text + size, "//", kNames, sizeof(kNames) - 1);
  size += add_member(text + size, "short.ptx/", PTX("a"), strlen(PTX("a")));
  size += add_member(text + size, "/0", PTX("bc"), strlen(PTX("bc")));
  size += add_member(text + size, "notes.txt/", "hello", 5);
  static const char kBsd[] = "bsd name.ptx\0\0\0\0" PTX("d");
  size += add_member(text + size, "#1/16", kBsd, sizeof(kBsd) - 1);
  kiln_bytes_view_t bytes = {(const uint8_t*)text, size};
  kiln_image_t* image = NULL;
  assert_null(kiln_image_create(bytes, NULL, &image));
  assert_null(image_check(image));
  assert_int_equal(kiln_image_format(image), KILN_CODE_FORMAT_LIBRARY);
  assert_int_equal(kiln_image_member_count(image), 3);
  static const char* const kOrigins[] = {"short.ptx", "a_rather_long_name.ptx",
                                         "bsd name.ptx"};
  static const char* const kKernels[] = {"a", "bc", "d"};
  for (uint32_t i = 0; i < 3; i++) {
    const kiln_image_member_t* member = kiln_image_member(image, i);
    assert_string_equal(member->origin, kOrigins[i]);
    assert_string_equal(kiln_image_kernel(image, i)->name, kKernels[i]);
    assert_memory_equal(text + member->offset, ".version", 8);
  }
  kiln_image_release(image);
}

// What a name holds goes into messages, and those are one line.
static void a_name_breaks_no_message(void** state) {
  (void)state;
  char text[512] = "!<arch>\n";
  static const char kBitcode[20] = {'\xde', '\xc0', 0x17, 0x0b, 0, 0, 0, 0, 99};
  size_t size = 8 + add_member(text + 8, "a\nb\033c/", kBitcode, 20);
  kiln_bytes_view_t bytes = {(const uint8_t*)text, size};
  kiln_image_t* image = NULL;
  kiln_status_t status = kiln_image_create(bytes, NULL, &image);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  assert_non_null(strstr(kiln_status_message(status), "(a?b?c): at byte 76: "));
  assert_null(strchr(kiln_status_message(status), '\n'));
  kiln_status_free(status);
}

static void archives_in_archives_end(void** state) {
  (void)state;
  char inner[8192] = "!<arch>\n";
  size_t size = 8;
  for (int i = 0; i < 10; i++) {
    char outer[8192] = "!<arch>\n";
    size_t whole = 8 + add_member(outer + 8, "in.a/", inner, size);
    memcpy(inner, outer, whole);
    size = whole;
  }
  kiln_bytes_view_t bytes = {(const uint8_t*)inner, size};
  kiln_image_t* image = NULL;
  kiln_status_t status = kiln_image_create(bytes, NULL, &image);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  assert_non_null(strstr(kiln_status_message(status), "containers"));
  kiln_status_free(status);
}

// ---------------------------------------------------------------------------
// Damage
// ---------------------------------------------------------------------------

static const char* const kDamaged[] = {"externs.cubin",   "relocatable.cubin",
                                       "lz4.fatbin",      "zstd.fatbin",
                                       "suffix.fatbin",   "host.object",
                                       "archive.library", "nvrtc130_90a.ltoir"};
enum { DAMAGED = sizeof(kDamaged) / sizeof(kDamaged[0]) };

// Cut anywhere, a file is an error at a byte, or one that ends early where it
// may.
static void a_cut_file_is_no_surprise(void** state) {
  (void)state;
  for (size_t f = 0; f < DAMAGED; f++) {
    kiln_bytes_view_t bytes = read_data(kDamaged[f]);
    for (size_t cut = 0; cut < bytes.size; cut += 1 + cut / 512) {
      // In a block of its own size, so that a sanitizer sees a step too far.
      uint8_t* copy = malloc(cut + 1);
      assert_non_null(copy);
      memcpy(copy, bytes.data, cut);
      kiln_bytes_view_t part = {copy, cut};
      const char* wrong = image_check_bytes(part);
      if (wrong != NULL) print_error("%s at %zu\n", kDamaged[f], cut);
      assert_null(wrong);
      free(copy);
    }
    free(owned(bytes));
  }
}

static void a_wrong_byte_is_no_surprise(void** state) {
  (void)state;
  static const uint8_t kWrong[] = {0x00, 0xff, 0x80, 0x01};
  for (size_t f = 0; f < DAMAGED; f++) {
    kiln_bytes_view_t bytes = read_data(kDamaged[f]);
    uint8_t* data = owned(bytes);
    for (size_t i = 0; i < bytes.size; i += 1 + i / 256) {
      uint8_t was = data[i];
      data[i] = kWrong[i % sizeof(kWrong)];
      const char* wrong = image_check_bytes(bytes);
      if (wrong != NULL) print_error("%s at %zu\n", kDamaged[f], i);
      assert_null(wrong);
      data[i] = was;
    }
    free(data);
  }
}

// Built without the library that it needs.
static bool is_left_packed(kiln_bytes_view_t bytes) {
  kiln_image_t* image = NULL;
  assert_null(kiln_image_create(bytes, NULL, &image));
  const char* unread = kiln_image_member(image, 0)->unread;
  bool packed = unread != NULL && strstr(unread, "unpack") != NULL;
  kiln_image_release(image);
  return packed;
}

static void errors_say_where(void** state) {
  (void)state;
  static const struct {
    const char* name;
    size_t at;
    uint8_t byte;
    const char* message;
  } kErrors[] = {
      {"plain.fatbin", 27, 0xff, "at byte 16: an entry of"},
      {"plain.fatbin", 20, 0x01, "at byte 16: an entry's header of 1 bytes"},
      {"externs.cubin", 40 + 7, 0x7f, "at byte 40: no section headers"},
      {"zstd.fatbin", 80, 0x00, "at byte 80: 794 bytes of zstd that cannot"},
      {"zstd.fatbin", 16 + 0x38, 0x29, "at byte 80: 794 bytes of zstd that"},
      {"zstd.fatbin", 100, 0x77, "at byte 80: 794 bytes of Zstandard"},
      {"lz4.fatbin", 16 + 0x3b, 0x01, "at byte 80: 1168 bytes of lz4 that"},
      {"archive.library", 8 + 58, 'x', "at byte 8: no member"},
  };
  for (size_t i = 0; i < sizeof(kErrors) / sizeof(kErrors[0]); i++) {
    kiln_bytes_view_t bytes = read_data(kErrors[i].name);
    if (is_left_packed(bytes)) {
      free(owned(bytes));
      continue;
    }
    owned(bytes)[kErrors[i].at] = kErrors[i].byte;
    kiln_image_t* image = NULL;
    kiln_image_options_t options = kiln_image_options_default();
    options.name = "the file";
    kiln_status_t status = kiln_image_create(bytes, &options, &image);
    assert_null(image);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
    assert_non_null(strstr(kiln_status_message(status), "the file: "));
    if (strstr(kiln_status_message(status), kErrors[i].message) == NULL) {
      fail_msg("%s", kiln_status_message(status));
    }
    kiln_status_free(status);
    free(owned(bytes));
  }
}

static kiln_status_t make(kiln_allocator_t allocator, void* user) {
  const kiln_bytes_view_t* bytes = user;
  kiln_image_options_t options = kiln_image_options_default();
  options.allocator = &allocator;
  kiln_image_t* image = (kiln_image_t*)&image;
  kiln_status_t status = kiln_image_create(*bytes, &options, &image);
  assert_true(kiln_status_is_ok(status) == (image != NULL));
  kiln_image_release(image);
  return status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  static const char* const kNames[] = {"nvrtc130_sm90a.cubin", "lz4.fatbin",
                                       "archive.library", "scrambled.fatbin",
                                       "nvrtc130_90a.ltoir"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    kiln_bytes_view_t bytes = read_data(kNames[i]);
    assert_true(fault_run_allocations(make, &bytes, 0) > 3);
    free(owned(bytes));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cubin_tells_its_kernels),
      cmocka_unit_test(a_symbol_tells_what_the_system_takes),
      cmocka_unit_test(symbols_are_told),
      cmocka_unit_test(members_share_their_kernels),
      cmocka_unit_test(packed_is_as_good_as_plain),
      cmocka_unit_test(what_is_not_read_is_listed),
      cmocka_unit_test(ir_tells_its_target),
      cmocka_unit_test(archives_are_read_by_every_kind_of_name),
      cmocka_unit_test(a_name_breaks_no_message),
      cmocka_unit_test(archives_in_archives_end),
      cmocka_unit_test(a_cut_file_is_no_surprise),
      cmocka_unit_test(a_wrong_byte_is_no_surprise),
      cmocka_unit_test(errors_say_where),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
