// SPDX-License-Identifier: Apache-2.0
//
// library: what people have: texts and a picture of this tree.
#ifndef KILN_TESTS_UNIT_LIBRARY_LIBRARY_REAL_H_
#define KILN_TESTS_UNIT_LIBRARY_LIBRARY_REAL_H_

#include "cli/cli_png.h"
#include "library_values.h"
#include "test_tree.h"

// A file's bytes, from `at` on; how many there are.
static inline uint32_t real_file(const char* name, uint8_t* data,
                                 uint32_t most) {
  char path[1024];
  FILE* file = fopen(test_tree_path(path, sizeof(path), name), "rb");
  if (file == NULL) fail_msg("%s cannot be read", name);
  uint32_t count = (uint32_t)fread(data, 1, most, file);
  assert_true(count > 0);
  fclose(file);
  return count;
}

// ---- A text ----

enum { REAL_TEXT_MOST = 200000 };

// Pages of this tree, one behind the other, and what plain C makes of them.
// one-thread
typedef struct real_text_t {
  dispatch_kit_t kit;
  uint8_t* bytes;
  uint32_t count;
  uint32_t* lines;  // where each begins; one more, the end
  uint32_t line_count;
  uint8_t* heads;  // 1 where one begins
} real_text_t;

static inline void real_text_open(real_text_t* t) {
  static const char* const kFiles[] = {
      "README.md", "docs/reference/soft-instructions.md",
      "docs/reference/catalog.md", "docs/guide/programs.md"};
  dispatch_kit_open(&t->kit);
  t->bytes = kit_zeroes(REAL_TEXT_MOST, 1);
  t->count = 0;
  for (uint32_t i = 0; i < 4; i++) {
    t->count +=
        real_file(kFiles[i], t->bytes + t->count, REAL_TEXT_MOST - t->count);
  }
  t->lines = kit_zeroes(t->count + 1, 4);
  t->heads = kit_zeroes(t->count, 1);
  t->line_count = 0;
  for (uint32_t i = 0; i < t->count; i++) {
    t->heads[i] = i == 0 || t->bytes[i - 1] == '\n';
    if (t->heads[i] != 0) t->lines[t->line_count++] = i;
  }
  t->lines[t->line_count] = t->count;
  assert_true(t->line_count > 500);
}

static inline void real_text_close(real_text_t* t) {
  free(t->bytes);
  free(t->lines);
  free(t->heads);
  dispatch_kit_close(&t->kit);
}

static inline kiln_library_plan_t* real_plan(dispatch_kit_t* kit,
                                             const char* name, uint32_t type,
                                             uint64_t count) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.count = count;
  return kit_plan(kit, name, &options);
}

// ---- The words of a text ----

// The 8 bytes of a text from each word's first on, of which the first stands
// highest; words are parted by what is no letter.
static inline uint32_t real_words(const real_text_t* t, uint64_t* keys) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < t->count; i++) {
    bool is_letter = (t->bytes[i] | 32) >= 'a' && (t->bytes[i] | 32) <= 'z';
    bool was =
        i > 0 && (t->bytes[i - 1] | 32) >= 'a' && (t->bytes[i - 1] | 32) <= 'z';
    if (is_letter && !was) keys[count++] = 0;
    if (!is_letter || keys[count - 1] >> 56 != 0) continue;
    keys[count - 1] = keys[count - 1] << 8 | (t->bytes[i] | 32);
  }
  for (uint32_t k = 0; k < count; k++) {
    while (keys[k] >> 56 == 0) keys[k] <<= 8;
  }
  return count;
}

// ---- A picture ----

// A picture in colour and in gray. one-thread
typedef struct real_picture_t {
  dispatch_kit_t kit;
  uint32_t w, h;
  uint8_t* colours;  // red, green and blue of each pixel
  uint8_t* gray;
  float* floats;
} real_picture_t;

static inline void real_picture_open(real_picture_t* p) {
  enum { MOST = 1 << 20 };
  dispatch_kit_open(&p->kit);
  uint8_t* file = kit_zeroes(MOST, 1);
  uint32_t size = real_file("examples/pictures/cat.png", file, MOST);
  kilni_cli_array_t array;
  kilni_cli_error_t error;
  memset(&array, 0, sizeof(array));
  memset(&error, 0, sizeof(error));
  assert_true(kilni_cli_png_read(file, size, &array, &error));
  free(file);
  assert_int_equal(array.shape.rank, 3);
  p->h = (uint32_t)array.shape.dims[0];
  p->w = (uint32_t)array.shape.dims[1];
  uint32_t channels = (uint32_t)array.shape.dims[2];
  const uint8_t* bytes = array.data.data;
  p->colours = kit_zeroes((uint64_t)p->w * p->h, 3);
  p->gray = kit_zeroes((uint64_t)p->w * p->h, 1);
  p->floats = kit_zeroes((uint64_t)p->w * p->h, 4);
  for (uint32_t i = 0; i < p->w * p->h; i++) {
    uint32_t sum = 0;
    for (uint32_t c = 0; c < 3; c++) {
      p->colours[i * 3 + c] = bytes[i * channels + c];
      sum += bytes[i * channels + c];
    }
    p->gray[i] = (uint8_t)(sum / 3);
    p->floats[i] = (float)p->gray[i];
  }
  kilni_cli_array_deinit(&array);
}

static inline void real_picture_close(real_picture_t* p) {
  free(p->colours);
  free(p->gray);
  free(p->floats);
  dispatch_kit_close(&p->kit);
}

#endif  // KILN_TESTS_UNIT_LIBRARY_LIBRARY_REAL_H_
