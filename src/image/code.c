// SPDX-License-Identifier: Apache-2.0
//
// image: device code as one immutable block: bytes, format and names.
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/demangle.h"
#include "base/options.h"
#include "base/status_make.h"
#include "image/image.h"
#include "image/image_elf.h"
#include "image/image_inside.h"

enum { MAX_NAMES = 65536 };
static const uint64_t kMaxBytes = (uint64_t)4 << 30;

// One allocation: this, the names, the bytes and their NUL, then the texts.
struct kiln_code_t {
  atomic_uint references;
  uint32_t format;
  uint32_t producer_line;
  uint32_t name_count;
  kiln_allocator_t allocator;
  kilni_base_keep_t keep;
  // What it says of itself, once somebody has asked.
  _Atomic(kiln_image_t*) image;
  size_t block_bytes;
  kiln_bytes_view_t bytes;
  const char* name;
  const char* arch;
  kiln_code_name_t names[];
};

static const char* or_else(const char* text, const char* otherwise) {
  return text != NULL ? text : otherwise;
}

// ---- Checks ----

static kiln_status_t code_check_given(kiln_bytes_view_t bytes,
                                      const kiln_code_options_t* options) {
  KILNI_CHECK_ARGUMENT_SAYS(bytes.data != NULL && bytes.size > 0, "bytes",
                            "are none", "pass code of one byte or more");
  KILNI_CHECK_ARGUMENT(options->names != NULL || options->name_count == 0,
                       "names");
  if (bytes.size > kMaxBytes || options->name_count > MAX_NAMES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" has %zu bytes and %u names",
                   or_else(options->name, "code"), bytes.size,
                   (unsigned)options->name_count),
        "code may have 4 GiB and %d names", MAX_NAMES);
  }
  for (uint32_t i = 0; i < options->name_count; i++) {
    KILNI_CHECK_ARGUMENT_SAYS(options->names[i].expression != NULL &&
                                  options->names[i].lowered != NULL,
                              "names", "has one that is NULL",
                              "set `expression` and `lowered` of each");
  }
  return kiln_ok();
}

// A relocatable cubin may be called a cubin: the driver's linker knows only
// that word.
static bool may_be(uint32_t wanted, uint32_t seen) {
  return wanted == seen || seen == KILN_CODE_FORMAT_UNKNOWN ||
         (wanted == KILN_CODE_FORMAT_CUBIN &&
          seen == KILN_CODE_FORMAT_RELOCATABLE);
}

// Programs and shared libraries of a host are not inputs, and the error for an
// unreadable ELF file quotes its header.
static kiln_status_t no_format(kiln_bytes_view_t bytes, const char* name) {
  enum { IDENT_BYTES = 6 };
  kilni_image_part_t part = {bytes.data, bytes.size, 0, name};
  if (bytes.size >= IDENT_BYTES && memcmp(bytes.data, "\177ELF", 4) == 0) {
    char kind[KILNI_IMAGE_ELF_KIND_BYTES];
    kilni_image_elf_kind(&part, kind);
    return kilni_base_status_with_fix(
        KILNI_FAIL(BAD_DATA,
                   "\"%s\" is an ELF file (%s), and neither an object nor "
                   "device code",
                   name, kind),
        "give the object files that it was linked from, made for a 64-bit "
        "little-endian machine (`nvcc -c`)");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "\"%s\" does not begin like any format of device code", name),
      "give PTX, a cubin, a fatbin, LTO-IR, an object file, an archive of "
      "those, or NVVM IR; source is compiled first (`kiln compile`)");
}

kiln_status_t kilni_image_code_check_text(kiln_bytes_view_t bytes,
                                          const char* name) {
  size_t end = bytes.size;
  while (end > 0 && bytes.data[end - 1] == 0) end--;
  const uint8_t* nul = end > 0 ? memchr(bytes.data, 0, end) : NULL;
  if (nul == NULL) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "\"%s\" is PTX with a NUL byte at offset %zu: the text after "
                 "it would be ignored",
                 name, (size_t)(nul - bytes.data)),
      "remove that byte: `tr -d '\\000'` makes a copy without");
}

kiln_status_t kilni_image_code_check_thin(kiln_bytes_view_t bytes,
                                          const char* name) {
  enum { MAGIC_BYTES = 8 };
  if (bytes.size < MAGIC_BYTES ||
      memcmp(bytes.data, "!<thin>\n", MAGIC_BYTES) != 0) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "\"%s\" is a thin archive: it names its members and does not "
                 "contain them",
                 name),
      "give the members (`ar t '%s'` lists them), or an archive that contains "
      "them (`ar rcs`, without T)",
      name);
}

static kiln_status_t decide_format(kiln_bytes_view_t bytes,
                                   const kiln_code_options_t* options,
                                   uint32_t* out_format) {
  const char* name = or_else(options->name, "code");
  uint32_t seen = kiln_code_format_of(bytes);
  uint32_t wanted = options->format;
  KILNI_RETURN_IF_ERROR(kilni_image_code_check_thin(bytes, name));
  if (wanted > KILN_CODE_FORMAT_NVVM ||
      (wanted != KILN_CODE_FORMAT_UNKNOWN && !may_be(wanted, seen))) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is given as %s and begins like %s",
                   name, kiln_code_format_name(wanted),
                   kiln_code_format_name(seen)),
        "give it as %s (a command goes by the end of the file's name), or "
        "leave `format` 0: it is then read from the bytes",
        kiln_code_format_name(seen));
  }
  *out_format = seen != KILN_CODE_FORMAT_UNKNOWN ? seen : wanted;
  if (*out_format == KILN_CODE_FORMAT_PTX) {
    return kilni_image_code_check_text(bytes, name);
  }
  if (*out_format != KILN_CODE_FORMAT_UNKNOWN) return kiln_ok();
  return no_format(bytes, name);
}

// ---- The block ----

static size_t code_text_bytes(const char* text) {
  return strlen(text) + 1;
}

// The limits above keep the sum far below SIZE_MAX.
static size_t block_size(const kiln_code_t* code,
                         const kiln_code_options_t* options) {
  size_t sum = sizeof(*code) + options->name_count * sizeof(kiln_code_name_t);
  sum += code->bytes.size + 1 + code_text_bytes(code->name) +
         code_text_bytes(code->arch);
  for (uint32_t i = 0; i < options->name_count; i++) {
    sum += code_text_bytes(options->names[i].expression) +
           code_text_bytes(options->names[i].lowered);
  }
  return sum;
}

static const char* code_put_text(char** inout_at, const char* text) {
  size_t size = code_text_bytes(text);
  char* copy = *inout_at;
  memcpy(copy, text, size);
  *inout_at += size;
  return copy;
}

static void code_fill(kiln_code_t* code, const kiln_code_t* given,
                      const kiln_code_options_t* options) {
  char* at = (char*)&code->names[options->name_count];
  memcpy(at, given->bytes.data, given->bytes.size);
  code->bytes.data = (const uint8_t*)at;
  at += given->bytes.size;
  *at++ = 0;
  code->name = code_put_text(&at, given->name);
  code->arch = code_put_text(&at, given->arch);
  for (uint32_t i = 0; i < options->name_count; i++) {
    code->names[i].expression =
        code_put_text(&at, options->names[i].expression);
    code->names[i].lowered = code_put_text(&at, options->names[i].lowered);
  }
}

kiln_status_t kilni_image_code_create(kiln_bytes_view_t bytes,
                                      const kiln_code_options_t* options,
                                      kilni_base_keep_t keep,
                                      kiln_code_t** out_code) {
  *out_code = NULL;
  KILNI_RETURN_IF_ERROR(code_check_given(bytes, options));
  kiln_code_t given = {0};
  KILNI_RETURN_IF_ERROR(decide_format(bytes, options, &given.format));
  given.bytes = bytes;
  given.name = or_else(options->name, "code");
  given.arch = or_else(options->arch, "");
  given.producer_line = options->producer_line;
  given.name_count = options->name_count;
  given.allocator =
      options->allocator ? *options->allocator : kiln_allocator_libc();
  given.keep = keep;
  given.block_bytes = block_size(&given, options);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(given.allocator, given.block_bytes, &block));
  kiln_code_t* code = block;
  memcpy(code, &given, sizeof(given));
  atomic_init(&code->references, 1);
  atomic_init(&code->image, NULL);
  code_fill(code, &given, options);
  kilni_base_keep_retain(keep);
  *out_code = code;
  return kiln_ok();
}

kiln_status_t kiln_code_create(kiln_bytes_view_t bytes,
                               const kiln_code_options_t* options,
                               kiln_code_t** out_code) {
  KILNI_CHECK_ARGUMENT(out_code != NULL, "out_code");
  *out_code = NULL;
  kiln_code_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_code_options_t",
                                                sizeof(given), &given));
  kilni_base_keep_t nobody = {NULL, NULL, NULL};
  return kilni_image_code_create(bytes, &given, nobody, out_code);
}

void kiln_code_retain(kiln_code_t* code) {
  if (code == NULL) return;
  atomic_fetch_add_explicit(&code->references, 1, memory_order_relaxed);
}

void kiln_code_release(kiln_code_t* code) {
  if (code == NULL) return;
  if (atomic_fetch_sub_explicit(&code->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kilni_base_keep_t keep = code->keep;
  kiln_image_release(atomic_load_explicit(&code->image, memory_order_acquire));
  kilni_base_free(code->allocator, code, code->block_bytes);
  kilni_base_keep_release(keep);
}

// ---- What is in it ----

kiln_image_t* kilni_image_code_seen(const kiln_code_t* code) {
  kiln_image_t* image =
      atomic_load_explicit(&code->image, memory_order_acquire);
  kiln_image_retain(image);
  return image;
}

// No lock: of two threads that read at once, the second one's is discarded.
kiln_status_t kilni_image_code_read(kiln_code_t* code, const char* name,
                                    kiln_image_t** out_image) {
  *out_image = kilni_image_code_seen(code);
  if (*out_image != NULL) return kiln_ok();
  kiln_image_t* image = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_create(code->bytes, name, code->allocator,
                                           code->keep, &image));
  kiln_image_t* other = NULL;
  if (atomic_compare_exchange_strong_explicit(&code->image, &other, image,
                                              memory_order_acq_rel,
                                              memory_order_acquire)) {
    other = image;
  } else {
    kiln_image_release(image);
  }
  kiln_image_retain(other);
  *out_image = other;
  return kiln_ok();
}

kiln_status_t kiln_code_image(kiln_code_t* code, kiln_image_t** out_image) {
  KILNI_CHECK_ARGUMENT(out_image != NULL, "out_image");
  *out_image = NULL;
  KILNI_CHECK_ARGUMENT(code != NULL, "code");
  return kilni_image_code_read(code, code->name, out_image);
}

// ---- What it reports ----

uint32_t kiln_code_format(const kiln_code_t* code) {
  return code != NULL ? code->format : KILN_CODE_FORMAT_UNKNOWN;
}

kiln_bytes_view_t kiln_code_bytes(const kiln_code_t* code) {
  kiln_bytes_view_t nothing = {NULL, 0};
  return code != NULL ? code->bytes : nothing;
}

const char* kiln_code_name(const kiln_code_t* code) {
  return code != NULL ? code->name : "";
}

const char* kiln_code_arch(const kiln_code_t* code) {
  return code != NULL ? code->arch : "";
}

uint32_t kiln_code_producer_line(const kiln_code_t* code) {
  return code != NULL ? code->producer_line : 0;
}

uint32_t kiln_code_lowered_count(const kiln_code_t* code) {
  return code != NULL ? code->name_count : 0;
}

const kiln_code_name_t* kiln_code_lowered(const kiln_code_t* code,
                                          uint32_t index) {
  if (code == NULL || index >= code->name_count) return NULL;
  return &code->names[index];
}

const char* kiln_code_lowered_name(const kiln_code_t* code,
                                   const char* expression) {
  if (code == NULL || expression == NULL) return NULL;
  for (uint32_t i = 0; i < code->name_count; i++) {
    if (strcmp(code->names[i].expression, expression) == 0) {
      return code->names[i].lowered;
    }
  }
  return NULL;
}

bool kiln_code_demangle(const char* name, uint32_t parameters, size_t capacity,
                        char* out) {
  return kilni_base_demangle(name, parameters != KILN_SWITCH_OFF, capacity,
                             out);
}
