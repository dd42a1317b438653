// SPDX-License-Identifier: Apache-2.0
//
// library: recipes of what works on numbers: products,
// convolutions, attention, histograms, transforms.
#include <stdio.h>

#include "base/status_make.h"
#include "kiln/program.h"
#include "library/library_inside.h"

#define GIVEN(index)  {KILNI_PLACE_GIVEN, index}
#define MEMORY(index) {KILNI_PLACE_MEMORY, index}
#define COUNT(array)  ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static uint32_t numbers_type_or(const kilni_library_make_t* make,
                                uint32_t type) {
  return make->options.type != 0 ? make->options.type : type;
}

// ---- Products ----

// Says T, a type of floats.
static kiln_status_t define_float(kilni_library_make_t* make) {
  uint32_t type = numbers_type_or(make, KILN_PROGRAM_TYPE_F32);
  if (type != KILN_PROGRAM_TYPE_F32 && type != KILN_PROGRAM_TYPE_F64 &&
      type != KILN_PROGRAM_TYPE_F16 && type != KILN_PROGRAM_TYPE_BF16) {
    return kilni_library_alien_type(make, type, "f32, f64, f16 and bf16");
  }
  kilni_library_define(make, "T", kiln_program_type_name(type));
  return kiln_ok();
}

// From which budget and architecture on a matrix_multiply_accumulate is an
// instruction (docs/reference/program-math.md).
enum { MATRIX_ULP = 32, MATRIX_MAJOR = 8 };

static bool has_matrices(const kilni_library_make_t* make) {
  uint32_t type = make->options.type;
  return (type == KILN_PROGRAM_TYPE_F16 || type == KILN_PROGRAM_TYPE_BF16) &&
         make->options.max_ulp >= MATRIX_ULP &&
         kilni_library_device(make)->compute_major >= MATRIX_MAJOR;
}

// Sums of f64 have a text of their own, as have halves on tensor cores.
kiln_status_t kilni_library_make_matmul(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_TYPE));
  bool f64 = make->options.type == KILN_PROGRAM_TYPE_F64;
  KILNI_RETURN_IF_ERROR(define_float(make));
  static const kilni_library_place_t kPlaces[] = {GIVEN(0),
                                                  GIVEN(1),
                                                  GIVEN(2),
                                                  GIVEN(3),
                                                  GIVEN(4),
                                                  GIVEN(5),
                                                  {KILNI_PLACE_WORDS, 0},
                                                  {KILNI_PLACE_WORDS, 1}};
  if (has_matrices(make)) {
    return kilni_library_add(make, "matmul_half", kPlaces, COUNT(kPlaces),
                             KILN_SWITCH_OFF);
  }
  return kilni_library_add(make, f64 ? "matmul_f64" : "matmul", kPlaces,
                           COUNT(kPlaces) - 2, KILN_SWITCH_OFF);
}

kiln_status_t kilni_library_make_convolution(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_TYPE));
  KILNI_RETURN_IF_ERROR(define_float(make));
  bool f64 = make->options.type == KILN_PROGRAM_TYPE_F64;
  kilni_library_define(make, "S", f64 ? "f64" : "f32");
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1), GIVEN(2),
                                                  GIVEN(3), GIVEN(4), GIVEN(5),
                                                  GIVEN(6), GIVEN(7), GIVEN(8)};
  return kilni_library_add(make, "convolution", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// ---- Attention ----

enum { WIDTH_MOST = 128 };

kiln_status_t kilni_library_make_attention(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(
      kilni_library_uses(make, KILNI_USES_TYPE | KILNI_USES_SEGMENT));
  uint32_t type = numbers_type_or(make, KILN_PROGRAM_TYPE_F32);
  if (type != KILN_PROGRAM_TYPE_F32 && type != KILN_PROGRAM_TYPE_F16 &&
      type != KILN_PROGRAM_TYPE_BF16) {
    return kilni_library_alien_type(make, type, "f32, f16 and bf16");
  }
  // As the text by itself.
  uint64_t width = make->options.segment != 0 ? make->options.segment : 64;
  if (width > WIDTH_MOST) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`options.segment` is %llu for \"attention\"",
                   (unsigned long long)width),
        "choose at most %u numbers a row", (unsigned)WIDTH_MOST);
  }
  char text[16];
  snprintf(text, sizeof(text), "%u", (unsigned)width);
  kilni_library_define(make, "T", kiln_program_type_name(type));
  kilni_library_define(make, "WIDTH", text);
  // So that shared memory is that of any device.
  kilni_library_define(make, "KEYS", width > 64 ? "32" : "64");
  static const kilni_library_place_t kPlaces[] = {
      GIVEN(0), GIVEN(1), GIVEN(2), GIVEN(3), GIVEN(4), GIVEN(5), GIVEN(6)};
  return kilni_library_add(make, "attention", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// ---- Histograms ----

// Most: of words in the shared memory that every device has for a block.
enum { BINS_MOST = 12288, BINS_DEFAULT = 256 };

kiln_status_t kilni_library_make_histogram(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(
      kilni_library_uses(make, KILNI_USES_TYPE | KILNI_USES_BINS));
  uint32_t type = numbers_type_or(make, KILN_PROGRAM_TYPE_U8);
  if (type != KILN_PROGRAM_TYPE_U8 && type != KILN_PROGRAM_TYPE_U16 &&
      type != KILN_PROGRAM_TYPE_U32) {
    return kilni_library_alien_type(make, type, "u8, u16 and u32");
  }
  uint64_t bins = make->options.bins != 0 ? make->options.bins : BINS_DEFAULT;
  if (bins > BINS_MOST) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`options.bins` is %llu for \"histogram\"",
                   (unsigned long long)bins),
        "choose at most %u", (unsigned)BINS_MOST);
  }
  char text[16];
  snprintf(text, sizeof(text), "%u", (unsigned)bins);
  kilni_library_define(make, "T", kiln_program_type_name(type));
  kilni_library_define(make, "BINS", text);
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1)};
  return kilni_library_add(make, "histogram", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_DEFAULT);
}

// ---- Transforms ----

enum { FFT_LOG_MOST = 24 };

static const char* power_of_two(uint32_t log) {
  static const char* const kPowers[FFT_LOG_MOST + 1] = {
      "1",       "2",       "4",       "8",       "16",     "32",     "64",
      "128",     "256",     "512",     "1024",    "2048",   "4096",   "8192",
      "16384",   "32768",   "65536",   "131072",  "262144", "524288", "1048576",
      "2097152", "4194304", "8388608", "16777216"};
  return kPowers[log];
}

static uint32_t real_bytes(const kilni_library_make_t* make) {
  return make->options.type == KILN_PROGRAM_TYPE_F64 ? 8 : 4;
}

// A launch: of 2^size of the 2^total points of a whole transform, 2^each of
// them a thread.
typedef struct transform_t {
  uint32_t size, total, each;
  bool wide;
} transform_t;

// What columns of 4,096 have to have in a block so that four of them stand side
// by side.
enum { FFT_WIDE_BYTES = 72 << 10 };

static transform_t transform_of(const kilni_library_make_t* make, uint32_t size,
                                uint32_t total) {
  const kiln_device_info_t* device = kilni_library_device(make);
  bool f32 = real_bytes(make) == 4;
  transform_t t = {size, total, size <= 4 ? 2 : size <= 6 ? 3 : 4, false};
  t.wide = f32 && size == 12 && total > size &&
           device->shared_optin_bytes >= FFT_WIDE_BYTES;
  // Of 32 where that is a pass less.
  if (t.wide || (f32 && size > 8 && (size <= 10 || size > 12))) t.each = 5;
  if (t.each > size) t.each = size;
  return t;
}

static void define_transform(kilni_library_make_t* make, const transform_t* t) {
  if (make->options.type == KILN_PROGRAM_TYPE_F64) {
    kilni_library_define(make, "T", "f64");
    kilni_library_define(make, "WORDS", "2");
  }
  kilni_library_define(make, "SIZE", power_of_two(t->size));
  kilni_library_define(make, "TOTAL", power_of_two(t->total));
  kilni_library_define(make, "RADIX", power_of_two(t->each));
}

// Roots of one for it, as the plan's memory of that number.
static kiln_status_t make_roots(kilni_library_make_t* make, uint32_t memory,
                                const transform_t* t) {
  uint64_t roots = UINT64_C(1) << t->size;
  if (t->total > t->size) {
    roots += ((UINT64_C(1) << t->each) + (UINT64_C(1) << (t->size - t->each)))
             << (t->total - t->size);
  }
  uint64_t bytes = roots * 2 * real_bytes(make);
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, bytes));
  define_transform(make, t);
  return kilni_library_once(make, "fft_roots", memory);
}

static kiln_status_t add_transform(kilni_library_make_t* make,
                                   const transform_t* t, const char* step,
                                   const kilni_library_place_t places[4]) {
  define_transform(make, t);
  kilni_library_define(make, "STEP", step);
  if (t->wide) kilni_library_define(make, "BLOCK", "512");
  return kilni_library_add(make, "fft", places, 4, KILN_SWITCH_OFF);
}

// Columns, then rows, of a matrix as square as can be; between them the
// numbers are in memory of the plan.
static kiln_status_t make_long_fft(kilni_library_make_t* make, uint32_t log) {
  enum { ROOTS, ROOTS_OF_ROWS, BETWEEN };
  uint32_t bytes = real_bytes(make);
  transform_t columns = transform_of(make, (log + 1) / 2, log);
  transform_t rows = transform_of(make, log / 2, log);
  transform_t alone = rows;
  alone.total = rows.size;
  KILNI_RETURN_IF_ERROR(make_roots(make, ROOTS, &columns));
  KILNI_RETURN_IF_ERROR(make_roots(make, ROOTS_OF_ROWS, &alone));
  KILNI_RETURN_IF_ERROR(
      kilni_library_memory(make, make->options.count * bytes));
  static const kilni_library_place_t kColumns[] = {
      GIVEN(0), MEMORY(ROOTS), {KILNI_PLACE_ALIKE, BETWEEN}, GIVEN(2)};
  KILNI_RETURN_IF_ERROR(add_transform(make, &columns, "1", kColumns));
  static const kilni_library_place_t kRows[] = {
      {KILNI_PLACE_ALIKE, BETWEEN}, MEMORY(ROOTS_OF_ROWS), GIVEN(1), GIVEN(2)};
  return add_transform(make, &rows, "2", kRows);
}

kiln_status_t kilni_library_make_fft(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_TYPE | KILNI_USES_SEGMENT | KILNI_USES_COUNT));
  uint32_t type = numbers_type_or(make, KILN_PROGRAM_TYPE_F32);
  if (type != KILN_PROGRAM_TYPE_F32 && type != KILN_PROGRAM_TYPE_F64) {
    return kilni_library_alien_type(make, type, "f32 and f64");
  }
  // What has space in a block, and what two launches of columns and rows of
  // 4,096 (f64: 2,048) come to.
  bool f64 = type == KILN_PROGRAM_TYPE_F64;
  uint32_t once = f64 ? 11 : 13, most = f64 ? 22 : FFT_LOG_MOST;
  uint64_t size = make->options.segment != 0 ? make->options.segment : 32;
  uint32_t log = 0;
  while (log < most && UINT64_C(1) << log < size) log++;
  if (UINT64_C(1) << log != size) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`options.segment` is %llu for \"fft\"",
                   (unsigned long long)size),
        "choose a power of two, up to 2^%u for this type", (unsigned)most);
  }
  if (log > once) return make_long_fft(make, log);
  transform_t whole = transform_of(make, log, log);
  KILNI_RETURN_IF_ERROR(make_roots(make, 0, &whole));
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), MEMORY(0), GIVEN(1),
                                                  GIVEN(2)};
  return add_transform(make, &whole, "0", kPlaces);
}
