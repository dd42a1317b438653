// SPDX-License-Identifier: Apache-2.0
//
// image: what a linker may be given, and which names it then sees defined.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/status_make.h"
#include "fault_run.h"
#include "image/image.h"

enum { MAX_FILE_BYTES = 1 << 16 };

// A file of tests/unit/image/data, which may be changed. one-thread
typedef struct file_t {
  uint8_t data[MAX_FILE_BYTES];
  size_t size;
  uint32_t format;
} file_t;

static file_t file;
static file_t other;

static void read_file(file_t* out, const char* name) {
  char path[512];
  (void)snprintf(path, sizeof(path),
                 KILN_SOURCE_DIR "/tests/unit/image/data/%s", name);
  FILE* stream = fopen(path, "rb");
  assert_non_null(stream);
  out->size = fread(out->data, 1, sizeof(out->data), stream);
  (void)fclose(stream);
  out->format = kiln_code_format_of((kiln_bytes_view_t){out->data, out->size});
}

static void read_relocatable(void) {
  read_file(&file, "relocatable.cubin");
}

static kiln_status_t check_as(const file_t* given, uint32_t format,
                              const kilni_image_link_visit_t* visit) {
  static const kilni_image_link_visit_t kNobody;
  return kilni_image_check_link((kiln_bytes_view_t){given->data, given->size},
                                format, "given.o", kiln_allocator_libc(),
                                visit != NULL ? visit : &kNobody);
}

static kiln_status_t check(const file_t* given) {
  return check_as(given, given->format, NULL);
}

// BAD_DATA that names the file, says this, and says what to do.
static void expect_bad(kiln_status_t status, const char* what) {
  if (kiln_status_code(status) != KILN_STATUS_BAD_DATA ||
      strstr(kiln_status_message(status), what) == NULL) {
    print_message("wanted \"%s\", got %u: %s\n", what,
                  (unsigned)kiln_status_code(status),
                  kiln_status_message(status));
    fail();
  }
  assert_non_null(strstr(kiln_status_message(status), "given.o"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

// ---- Where things are in a cubin ----

static uint64_t number(const file_t* in, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | in->data[at + i];
  return value;
}

static void put(file_t* in, size_t at, size_t bytes, uint64_t value) {
  for (size_t i = 0; i < bytes; i++) {
    in->data[at + i] = (uint8_t)(value >> (8 * i));
  }
}

// Where the header of a section is, by the beginning of its name.
static size_t header_of(const file_t* in, const char* name) {
  size_t table = (size_t)number(in, 40, 8);
  size_t count = (size_t)number(in, 60, 2);
  size_t names = table + 64 * (size_t)number(in, 62, 2);
  size_t texts = (size_t)number(in, names + 24, 8);
  for (size_t i = 1; i < count; i++) {
    size_t at = table + 64 * i;
    const char* text = (const char*)in->data + texts + number(in, at, 4);
    if (strncmp(text, name, strlen(name)) == 0) return at;
  }
  fail_msg("there is no section %s", name);
  return 0;
}

static size_t bytes_of(const file_t* in, const char* name) {
  return (size_t)number(in, header_of(in, name) + 24, 8);
}

// A wrong number in a section of `file`, and what is said of it. thread-safe
typedef struct field_t {
  const char* section;
  size_t at;  // in its header; from 64 on in its bytes
  size_t bytes;
  uint64_t value;
  const char* says;
} field_t;

static void break_field(const field_t* field) {
  size_t at = field->at < 64 ? header_of(&file, field->section) + field->at
                             : bytes_of(&file, field->section) + field->at - 64;
  put(&file, at, field->bytes, field->value);
}

// ---- Files that are whole ----

static void whole_files_pass(void** state) {
  (void)state;
  static const char* const kNames[] = {
      "relocatable.cubin",   "externs.cubin",         "nvrtc130_sm90a.cubin",
      "nvrtc129_sm50.cubin", "nvrtc135_sm103a.cubin", "host_rdc.object",
      "host.object",         "archive.library",       "plain.fatbin",
      "lz4.fatbin",          "zstd.fatbin",           "scrambled.fatbin",
      "suffix.fatbin",       "nvrtc130_90a.ltoir",    "nvrtc135_90a.ltoir"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    read_file(&file, kNames[i]);
    kiln_status_t status = check(&file);
    if (!kiln_status_is_ok(status)) {
      print_message("%s: %s\n", kNames[i], kiln_status_message(status));
    }
    assert_null(status);
  }
}

// ---- Files that are not ----

// Wherever a file is cut off, that is said: its table of sections is its end.
static void a_cut_file_is_refused(void** state) {
  (void)state;
  static const char* const kNames[] = {"relocatable.cubin", "host_rdc.object",
                                       "plain.fatbin", "archive.library"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    read_file(&other, kNames[i]);
    for (size_t size = 24; size + 8 < other.size; size += 61) {
      file.size = size;
      file.format = other.format;
      memcpy(file.data, other.data, size);
      kiln_status_t status = check(&file);
      if (kiln_status_is_ok(status)) {
        print_message("%s, cut to %zu of %zu\n", kNames[i], size, other.size);
      }
      assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
      kiln_status_free(status);
    }
  }
}

// Each was a crash of nvJitLink 13.0, or a link without the code.
static void each_index_is_checked(void** state) {
  (void)state;
  static const field_t kRows[] = {
      {".symtab", 56, 8, 25, "has entries of bytes: 25"},
      {".symtab", 40, 4, 1000, "belongs to section 1000"},
      {".symtab", 44, 4, 100000, "has fewer symbols than 100000"},
      {".symtab", 32, 8, 25, "has part of an entry at its end"},
      {".symtab", 64 + 24, 4, 1 << 20, "a name at 1048576"},
      {".symtab", 64 + 24 + 6, 2, 0x700, "is in section 1792"},
      {".symtab", 64 + 24 + 4, 1, 0x56, "is of type 86"},
      {".strtab", 4, 4, 1, "cannot be of type 1"},
      {".shstrtab", 4, 4, 7, "cannot be of type 7"},
      {".text.", 24, 8, 1 << 20, "would be"},
      {".text.", 44, 4, 0xffff, "is the code of symbol 65535"},
      {".text.", 48, 8, 0xff00, "is aligned to 65280"},
      {".text.", 48, 8, 0, "is aligned to 0"},
      {".text.", 48, 8, 1 << 30, "is aligned to 1073741824"},
      {".nv.info", 44, 4, 86, "belongs to code in section 86"},
      {".nv.info", 64, 1, 9, "an attribute of form 9"},
      {".nv.info", 64 + 2, 2, 0xfff0, "is cut off"},
      {".nv.info", 64 + 4, 4, 5000, "an attribute of symbol 5000"},
      {".nv.callgraph", 64, 4, 5000, "a call names symbol 5000"},
      {".nv.callgraph", 4, 4, 0x70000011, "cannot be of type"},
      {".rela.", 44, 4, 900, "section 900"},
      {".debug_frame", 4, 4, 0x58, "relocates section"},
      {".symtab", 64 + 24 + 4, 1, 0xf2, "is of type 242"},
      {".rela.", 64, 8, 1 << 30, "a relocation at byte 1073741824"},
      {".rela.", 64 + 8, 4, 0x6000000, "a relocation of kind 100663296"},
      {".rela.", 64 + 12, 4, 5000, "names symbol 5000"},
  };
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    read_relocatable();
    break_field(&kRows[i]);
    expect_bad(check(&file), kRows[i].says);
  }
}

static void each_field_of_the_head_is_checked(void** state) {
  (void)state;
  static const struct {
    size_t at;
    size_t bytes;
    uint64_t value;
    const char* says;
  } kRows[] = {{16, 2, 255, "an ELF file of type 255"},
               {4, 1, 1, "32 bits, little-endian, machine 190 (CUDA)"},
               {40, 8, UINT64_MAX - 8, "no section headers"},
               {54, 2, 255, "segment headers of 255 bytes"},
               {58, 2, 65, "the file ends within its"},
               {60, 2, 0xff00, "the file ends within its"},
               {60, 2, 0, "there are section headers, but their number is 0"},
               {60, 2, 3, "no section contains the symbols"},
               {62, 2, 0x700, "was to contain the names"}};
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    read_relocatable();
    put(&file, kRows[i].at, kRows[i].bytes, kRows[i].value);
    expect_bad(check(&file), kRows[i].says);
  }
}

// What a linker that may crash may be given; `expected` is what it must keep.
// one-thread
typedef struct doubted_t {
  kiln_status_t doubt;
  char expected[1024];
} doubted_t;

static kiln_status_t note_expected(void* user, const char* name) {
  doubted_t* doubted = user;
  size_t used = strlen(doubted->expected);
  (void)snprintf(doubted->expected + used, sizeof(doubted->expected) - used,
                 "%s ", name);
  return kiln_ok();
}

static kiln_status_t check_doubted(const file_t* given, doubted_t* out) {
  memset(out, 0, sizeof(*out));
  kilni_image_link_visit_t visit = {
      .user = out, .expect = note_expected, .inout_doubt = &out->doubt};
  return check_as(given, given->format, &visit);
}

// Of each, nvJitLink 13.0 and nvlink link some with every name, and some end
// the process.
static void damage_that_may_be_harmless_is_a_doubt(void** state) {
  (void)state;
  static const field_t kRows[] = {
      {".symtab", 56, 8, 25, "has entries of bytes: 25"},
      {".symtab", 44, 4, 100000, "has fewer symbols than 100000"},
      {".symtab", 64 + 24, 4, 1 << 20, "a name at 1048576"},
      {".symtab", 64 + 24 + 6, 2, 0x700, "is in section 1792"},
      {".shstrtab", 4, 4, 7, "cannot be of type 7"},
      {".text.", 44, 4, 0xffff, "is the code of symbol 65535"},
      {".text.", 48, 8, 0xff00, "is aligned to 65280"},
      {".text.", 48, 8, (uint64_t)0x33 << 40 | 128, "is aligned to"},
      {".text.", 0, 4, 1 << 20, "a name at 1048576"},
      {".nv.info", 64, 1, 9, "an attribute of form 9"},
      {".nv.info", 64 + 2, 2, 0xfff0, "is cut off"},
      {".nv.info", 64 + 4, 4, 5000, "an attribute of symbol 5000"},
      {".nv.callgraph", 64, 4, 5000, "a call names symbol 5000"},
      {".rela.", 32, 8, 25, "has part of an entry at its end"},
      {".rela.", 64 + 8, 4, 0x6000000, "a relocation of kind 100663296"},
  };
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    read_relocatable();
    doubted_t whole;
    assert_null(check_doubted(&file, &whole));
    assert_null(whole.doubt);
    assert_string_not_equal(whole.expected, "");
    break_field(&kRows[i]);
    doubted_t doubted;
    assert_null(check_doubted(&file, &doubted));
    expect_bad(doubted.doubt, kRows[i].says);
    assert_string_equal(doubted.expected, whole.expected);
  }
}

// What hides names, or has a linker read or write far outside, is no doubt.
static void damage_that_does_harm_is_an_error(void** state) {
  (void)state;
  static const field_t kRows[] = {
      {".symtab", 40, 4, 1000, "would be in section 1000"},
      {".symtab", 4, 4, 7, "no section contains the symbols"},
      {".strtab", 24, 8, 1 << 20, "would be"},
      {".text.", 24, 8, 1 << 20, "would be"},
      {".text.", 48, 8, 1 << 30, "is aligned to 1073741824"},
      {".debug_frame", 4, 4, 0x58, "relocates section"},
      {".rela.", 64 + 12, 4, 5000, "names symbol 5000"},
  };
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    read_relocatable();
    break_field(&kRows[i]);
    doubted_t doubted;
    expect_bad(check_doubted(&file, &doubted), kRows[i].says);
    kiln_status_free(doubted.doubt);
  }
}

// The name of a symbol that other files see: without it nobody could say
// whether it came through.
static void a_shared_name_that_cannot_be_read_is_an_error(void** state) {
  (void)state;
  read_file(&file, "externs.cubin");
  size_t symbols = bytes_of(&file, ".symtab");
  size_t size = (size_t)number(&file, header_of(&file, ".symtab") + 32, 8);
  size_t found = 0;
  for (size_t at = symbols + 24; at < symbols + size; at += 24) {
    bool is_global = number(&file, at + 4, 1) >> 4 == 1;
    bool is_here = number(&file, at + 6, 2) != 0;
    uint64_t was = number(&file, at, 4);
    put(&file, at, 4, 1 << 20);
    doubted_t doubted;
    kiln_status_t status = check_doubted(&file, &doubted);
    if (is_global && is_here) {
      expect_bad(status, "a name at 1048576");
      found++;
    } else {
      assert_null(status);
      expect_bad(doubted.doubt, "a name at 1048576");
      doubted.doubt = NULL;
    }
    kiln_status_free(doubted.doubt);
    put(&file, at, 4, was);
  }
  assert_true(found > 0);
}

static void names_of_a_cubin_are_told(void** state) {
  (void)state;
  read_relocatable();
  doubted_t given;
  assert_null(check_doubted(&file, &given));
  doubted_t came = {0};
  kiln_bytes_view_t bytes = {file.data, file.size};
  kilni_image_link_visit_t visit = {.user = &came, .expect = note_expected};
  assert_null(kilni_image_cubin_names(bytes, "given.o", &visit));
  assert_string_equal(came.expected, given.expected);
  bytes.size = 100;
  expect_bad(kilni_image_cubin_names(bytes, "given.o", &visit),
             "no section headers");
}

static kiln_status_t ignore(void* user, const char* name, bool is_kernel) {
  (void)user;
  (void)name;
  (void)is_kernel;
  return kiln_ok();
}

static void functions_of_one_file_alone_are_told(void** state) {
  (void)state;
  static const char kText[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".entry own() { ret; }\n.visible .func f() { ret; }\n"
      ".weak .func w() { ret; }\n.func g() { ret; }\n.extern .func e();\n"
      ".global .b32 y;\n";
  memcpy(file.data, kText, sizeof(kText) - 1);
  file.size = sizeof(kText) - 1;
  file.format = KILN_CODE_FORMAT_PTX;
  doubted_t own = {0};
  kilni_image_link_visit_t visit = {
      .user = &own, .define = ignore, .own = note_expected};
  assert_null(check_as(&file, file.format, &visit));
  assert_string_equal(own.expected, "own g ");
}

static void an_object_needs_device_code(void** state) {
  (void)state;
  read_file(&file, "host_rdc.object");
  static const char kName[] = "__nv_relfatbin";
  for (size_t i = 0; i + sizeof(kName) < file.size; i++) {
    if (memcmp(file.data + i, kName, sizeof(kName)) == 0) file.data[i] = 'x';
  }
  expect_bad(check(&file), "an object without device code");
}

// Packs `file` into an archive, as its only member.
static void put_into_archive(const char* member) {
  static const char kMagic[] = "!<arch>\n";
  char head[61];
  (void)snprintf(head, sizeof(head), "%-16s%-32s%-10zu`\n", member, "0",
                 file.size);
  size_t before = sizeof(kMagic) - 1 + sizeof(head) - 1;
  assert_true(file.size <= sizeof(file.data) - before);
  memmove(file.data + before, file.data, file.size);
  memcpy(file.data, kMagic, sizeof(kMagic) - 1);
  memcpy(file.data + sizeof(kMagic) - 1, head, sizeof(head) - 1);
  file.size += before;
  file.format = KILN_CODE_FORMAT_LIBRARY;
}

// Linkers leave a member of another width out without a word, so the names of
// its device code would be missing; what its header says is reported.
static void an_object_of_another_kind_is_named(void** state) {
  (void)state;
  static const struct {
    size_t at;
    size_t bytes;
    uint64_t value;
    const char* says;
  } kRows[] = {
      {4, 1, 1, "32 bits, little-endian, machine 62 (x86-64)"},
      {4, 1, 9, "class 9, little-endian, machine 62 (x86-64)"},
      {5, 1, 2, "64 bits, big-endian, machine 15872"},
      {5, 1, 0, "64 bits, byte order 0, machine 62 (x86-64)"},
      {4, 2, 0x301, "32 bits, byte order 3, machine 62 (x86-64)"},
  };
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    for (size_t archived = 0; archived < 2; archived++) {
      read_file(&file, "host_rdc.object");
      put(&file, kRows[i].at, kRows[i].bytes, kRows[i].value);
      if (archived != 0) put_into_archive("sum.o/");
      expect_bad(check(&file), kRows[i].says);
      kiln_status_t status = check(&file);
      assert_true((strstr(kiln_status_message(status), "given.o(sum.o)") !=
                   NULL) == (archived != 0));
      assert_non_null(strstr(kiln_status_fix(status), "64-bit"));
      kiln_status_free(status);
      // A linker that has a process of its own says nothing either.
      doubted_t doubted;
      expect_bad(check_doubted(&file, &doubted), kRows[i].says);
      assert_null(doubted.doubt);
    }
  }
}

// Of a host's own objects a device linker takes nothing, whatever they are; an
// object for another machine holds device code like any.
static void objects_of_other_hosts_may_be_in_an_archive(void** state) {
  (void)state;
  enum { AARCH64 = 183 };
  read_file(&file, "host_rdc.object");
  put(&file, 18, 2, AARCH64);
  assert_null(check(&file));
  read_file(&file, "host_rdc.object");
  for (size_t i = 0; i + 4 <= file.size; i++) {
    if (number(&file, i, 4) == 0xba55ed50) file.data[i] = 0;
  }
  put(&file, 4, 1, 1);
  put_into_archive("host.o/");
  assert_null(check(&file));
  // By itself it is no input.
  read_file(&file, "host.object");
  put(&file, 4, 1, 1);
  expect_bad(check(&file), "32 bits, little-endian, machine 62 (x86-64)");
}

// Which other section one belongs to is the host's linker's affair; where its
// bytes are is not.
static void sections_of_a_host_object(void** state) {
  (void)state;
  static const char* const kNames[] = {".text", ".nvFatBinSegment",
                                       "__nv_relfatbin"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    read_file(&file, "host_rdc.object");
    put(&file, header_of(&file, kNames[i]) + 40, 4, 0xffff);
    assert_null(check(&file));
    put(&file, header_of(&file, kNames[i]) + 24, 8, (uint64_t)1 << 40);
    expect_bad(check(&file), "would be");
  }
  // nvlink finds no device code in either.
  read_file(&file, "host_rdc.object");
  put(&file, (size_t)number(&file, 40, 8) + 24, 8, (uint64_t)1 << 40);
  expect_bad(check(&file), "would be");
  read_file(&file, "host_rdc.object");
  put(&file, 32, 8, (uint64_t)1 << 40);
  expect_bad(check(&file), "within its segments");
}

static void bytes_must_be_what_they_are_said_to_be(void** state) {
  (void)state;
  read_relocatable();
  file.data[0] = 'x';
  expect_bad(check_as(&file, KILN_CODE_FORMAT_CUBIN, NULL),
             "no cubin begins here");
  read_file(&file, "plain.fatbin");
  expect_bad(check_as(&file, KILN_CODE_FORMAT_LTOIR, NULL),
             "no ltoir begins here");
}

// ---- Names ----

// The names that a file defines, with "*" behind a kernel's. one-thread
typedef struct names_t {
  char text[1024];
  bool fails;
} names_t;

static kiln_status_t note(void* user, const char* name, bool is_kernel) {
  names_t* names = user;
  if (names->fails) return KILNI_FAIL(OUT_OF_MEMORY, "no more");
  size_t used = strlen(names->text);
  (void)snprintf(names->text + used, sizeof(names->text) - used, "%s%s ", name,
                 is_kernel ? "*" : "");
  return kiln_ok();
}

static void expect_names(const file_t* given, uint32_t sm, const char* wanted) {
  names_t names = {0};
  kilni_image_link_visit_t visit = {.sm = sm, .user = &names, .define = note};
  assert_null(check_as(given, given->format, &visit));
  assert_string_equal(names.text, wanted);
}

static void strong_names_are_told(void** state) {
  (void)state;
  read_file(&file, "externs.cubin");
  expect_names(&file, 75, "_Z1kPi* mc mg ");
  // A linked cubin defines nothing that another could.
  read_file(&file, "nvrtc130_sm90a.cubin");
  expect_names(&file, 90, "");
  names_t names = {.fails = true};
  kilni_image_link_visit_t visit = {.sm = 75, .user = &names, .define = note};
  read_file(&file, "externs.cubin");
  kiln_status_t status = check_as(&file, file.format, &visit);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
  kiln_status_free(status);
}

static kiln_status_t note_kept(void* user, const char* name, uint32_t kind) {
  names_t* names = user;
  size_t used = strlen(names->text);
  (void)snprintf(names->text + used, sizeof(names->text) - used, "%s:%u ", name,
                 (unsigned)kind);
  return kiln_ok();
}

static kiln_status_t note_misfit(void* user, const char* from,
                                 const char* targets) {
  names_t* names = user;
  (void)snprintf(names->text, sizeof(names->text), "%s: %s", from, targets);
  return KILNI_FAIL(INCOMPATIBLE, "no");
}

static void expect_kept(uint32_t sm, const char* wanted) {
  names_t names = {0};
  kilni_image_link_visit_t visit = {.sm = sm, .user = &names};
  visit.keep = note_kept;
  assert_null(check_as(&file, file.format, &visit));
  assert_string_equal(names.text, wanted);
}

// Kernels that linkers leave out, or that others may define: finished ones,
// those of PTX that are weak or its own.
static void what_may_be_left_out_is_told(void** state) {
  (void)state;
  static const char* const kFinished[] = {"host.object", "plain.fatbin",
                                          "lz4.fatbin", "zstd.fatbin"};
  for (size_t i = 0; i < sizeof(kFinished) / sizeof(kFinished[0]); i++) {
    read_file(&file, kFinished[i]);
    expect_kept(90, "_Z1kPi:1 ");
  }
  read_file(&file, "host_rdc.object");
  expect_kept(90, "");
  static const char kText[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k() { ret; }\n.weak .entry w() { ret; }\n"
      ".entry own() { ret; }\n.weak .func f() { ret; }\n";
  memcpy(file.data, kText, sizeof(kText) - 1);
  file.size = sizeof(kText) - 1;
  file.format = KILN_CODE_FORMAT_PTX;
  names_t names = {0};
  kilni_image_link_visit_t visit = {.sm = 80, .user = &names, .define = note};
  visit.keep = note_kept;
  assert_null(check_as(&file, file.format, &visit));
  assert_string_equal(names.text, "k* w:0 own:0 ");
}

// A container with nothing for the architecture says what it is for.
static void what_suits_nobody_is_told(void** state) {
  (void)state;
  static const struct {
    const char* file;
    uint32_t sm;
    const char* says;
  } rows[] = {{"host.object", 80, "sm_90, compute_90"},
              {"host_rdc.object", 80, "sm_90, compute_90"},
              {"archive.library", 80, "sm_90, compute_90"},
              {"plain.fatbin", 75, "sm_80, sm_90, compute_90"},
              {"plain.fatbin", 86, NULL},
              {"plain.fatbin", 100, NULL},
              {"host.object", 90, NULL},
              {"host.object", 0, NULL}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    names_t names = {0};
    kilni_image_link_visit_t visit = {.sm = rows[i].sm, .user = &names};
    visit.misfit = note_misfit;
    read_file(&file, rows[i].file);
    kiln_status_t status = check_as(&file, file.format, &visit);
    bool told = kiln_status_code(status) == KILN_STATUS_INCOMPATIBLE;
    kiln_status_free(status);
    assert_true(told == (rows[i].says != NULL));
    if (told) assert_non_null(strstr(names.text, rows[i].says));
  }
}

// As nvJitLink 13.0 and nvlink have it: .visible is strong, and what is weak,
// common, external or private to its module is not.
static void names_of_ptx_are_told(void** state) {
  (void)state;
  static const char kText[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k() { ret; }\n.entry own() { ret; }\n"
      ".visible .func f() { ret; }\n.weak .func w() { ret; }\n"
      ".func g() { ret; }\n.extern .func e();\n"
      ".visible .global .b32 v;\n.common .global .b32 c;\n"
      ".weak .global .b32 x;\n.global .b32 y;\n.extern .global .b32 z;\n";
  memcpy(file.data, kText, sizeof(kText) - 1);
  file.size = sizeof(kText) - 1;
  file.format = KILN_CODE_FORMAT_PTX;
  expect_names(&file, 80, "k* f v ");
  // Wrong text is for its compiler to say.
  file.size -= 20;
  expect_names(&file, 80, "");
}

static kiln_status_t ignore_defined(void* user, const char* name,
                                    bool is_kernel) {
  (void)user;
  (void)name;
  (void)is_kernel;
  return kiln_ok();
}

static kiln_status_t note_type(void* user, const char* name, const char* type) {
  names_t* names = user;
  size_t used = strlen(names->text);
  (void)snprintf(names->text + used, sizeof(names->text) - used, "%s%s ", name,
                 type);
  return kiln_ok();
}

// As ptxas 13.0 has them in .nv.prototype.
static void types_of_functions_are_told(void** state) {
  (void)state;
  names_t names = {0};
  kilni_image_link_visit_t visit = {.user = &names, .prototype = note_type};
  read_relocatable();
  assert_null(check_as(&file, file.format, &visit));
  assert_string_equal(names.text, "_Z1gi#ii _Z5otheri#ii ");
  static const char kText[] =
      ".version 8.3\n.target sm_90\n.address_size 64\n"
      ".extern .func (.param .b32 r) used(.param .b64 a, .param .f32 b);\n"
      ".extern .func (.param .b32 r) named(.param .b16 a);\n"
      ".extern .func idle(.param .b64 a);\n"
      ".func (.param .b32 r) own(.param .b32 a) { ret; }\n"
      ".weak .func (.param .align 8 .b8 r[16]) w(.param .f64 a, .param .b8 b,\n"
      "  .param .align 4 .b8 c[]) { ret; }\n"
      ".visible .func f(.reg .u32 a, .param .b128 b) { .reg .b64 %r;\n"
      "  .param .b32 x; .param .b64 y; .param .f32 z;\n"
      "  mov.u64 %r, named; call (x), used, (y, z); ret; }\n"
      ".visible .entry k(.param .b32 a) { ret; }\n";
  memcpy(file.data, kText, sizeof(kText) - 1);
  file.size = sizeof(kText) - 1;
  file.format = KILN_CODE_FORMAT_PTX;
  names_t ptx = {0};
  kilni_image_link_visit_t both = {
      .user = &ptx, .prototype = note_type, .define = ignore_defined};
  assert_null(check_as(&file, file.format, &both));
  assert_string_equal(ptx.text, "used#ilf named#ih w#b16dbb0 f#vix ");
}

// Where the address of a function is taken, the call graph has its type beside
// it, and not the index of a symbol. taken.cubin is of
//   extern "C" __device__ int f0(int x 10), f1(int x 9), f2(int x 8);
//   extern "C" __global__ void k(void** p) { p[0] = (void*)f0; ... }
static void types_of_taken_functions_are_told(void** state) {
  (void)state;
  names_t names = {0};
  kilni_image_link_visit_t visit = {.user = &names, .prototype = note_type};
  read_file(&file, "../link_data/taken.cubin");
  assert_null(check_as(&file, file.format, &visit));
  assert_string_equal(names.text, "f0#iiiiiiiiiii f1#iiiiiiiiii f2#iiiiiiiii ");
}

static kiln_status_t check_faulted(kiln_allocator_t allocator, void* user) {
  const file_t* given = user;
  static const kilni_image_link_visit_t kNobody;
  return kilni_image_check_link((kiln_bytes_view_t){given->data, given->size},
                                given->format, "given.o", allocator, &kNobody);
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  read_file(&file, "lz4.fatbin");
  assert_true(fault_run_allocations(check_faulted, &file, 0) > 0);
}

// Every byte of a cubin may be wrong: the answer is one of the two, and no
// read is out of bounds, which the sanitizers see.
static void a_wrong_byte_is_no_surprise(void** state) {
  (void)state;
  static const uint8_t kValues[] = {0, 1, 0x7f, 0xff};
  read_relocatable();
  for (size_t i = 0; i < file.size; i++) {
    uint8_t was = file.data[i];
    for (size_t k = 0; k < sizeof(kValues); k++) {
      uint8_t* copy = malloc(file.size);
      assert_non_null(copy);
      memcpy(copy, file.data, file.size);
      copy[i] = kValues[k];
      static const kilni_image_link_visit_t kNobody;
      kiln_status_t status = kilni_image_check_link(
          (kiln_bytes_view_t){copy, file.size}, file.format, "given.o",
          kiln_allocator_libc(), &kNobody);
      assert_true(kiln_status_is_ok(status) ||
                  kiln_status_code(status) == KILN_STATUS_BAD_DATA);
      kiln_status_free(status);
      kiln_status_t doubt = NULL;
      const kilni_image_link_visit_t doubts = {.inout_doubt = &doubt};
      status = kilni_image_check_link((kiln_bytes_view_t){copy, file.size},
                                      file.format, "given.o",
                                      kiln_allocator_libc(), &doubts);
      assert_true(kiln_status_is_ok(status) ||
                  kiln_status_code(status) == KILN_STATUS_BAD_DATA);
      kiln_status_free(status);
      kiln_status_free(doubt);
      free(copy);
    }
    file.data[i] = was;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_files_pass),
      cmocka_unit_test(a_cut_file_is_refused),
      cmocka_unit_test(each_index_is_checked),
      cmocka_unit_test(each_field_of_the_head_is_checked),
      cmocka_unit_test(damage_that_may_be_harmless_is_a_doubt),
      cmocka_unit_test(damage_that_does_harm_is_an_error),
      cmocka_unit_test(a_shared_name_that_cannot_be_read_is_an_error),
      cmocka_unit_test(names_of_a_cubin_are_told),
      cmocka_unit_test(functions_of_one_file_alone_are_told),
      cmocka_unit_test(an_object_needs_device_code),
      cmocka_unit_test(an_object_of_another_kind_is_named),
      cmocka_unit_test(objects_of_other_hosts_may_be_in_an_archive),
      cmocka_unit_test(sections_of_a_host_object),
      cmocka_unit_test(bytes_must_be_what_they_are_said_to_be),
      cmocka_unit_test(strong_names_are_told),
      cmocka_unit_test(what_may_be_left_out_is_told),
      cmocka_unit_test(what_suits_nobody_is_told),
      cmocka_unit_test(names_of_ptx_are_told),
      cmocka_unit_test(types_of_functions_are_told),
      cmocka_unit_test(types_of_taken_functions_are_told),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(a_wrong_byte_is_no_surprise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
