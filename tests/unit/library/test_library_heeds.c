// SPDX-License-Identifier: Apache-2.0
//
// library: softmax and attention on what people have: what follows each byte of
// a text, words and the words in front of them, rows and parts of a picture;
// beside plain C in doubles.
#include "library_attend.h"
#include "library_real.h"

static const uint32_t kFloats[] = {KILN_PROGRAM_TYPE_F32, KILN_PROGRAM_TYPE_F16,
                                   KILN_PROGRAM_TYPE_BF16};

static void take_shares(dispatch_kit_t* kit, uint32_t type, const void* x,
                        void* y, uint32_t width, uint32_t rows) {
  uint64_t bytes = (uint64_t)width * rows * program_type_bytes((uint8_t)type);
  const kit_argument_t arguments[] = {{x, NULL, bytes}, {NULL, y, bytes}};
  const kiln_binding_t scalar = kiln_bind_u32(width);
  kiln_library_plan_t* plan = real_plan(kit, "softmax", type, 0);
  kit_run(kit, plan, arguments, 2, &scalar, 1);
  kiln_library_plan_release(plan);
}

// A row as plain C has it, as near as test_library_norms wants it.
static void check_shares(uint32_t type, const void* x, const void* y,
                         uint32_t width, uint32_t row) {
  uint64_t first = (uint64_t)row * width;
  double top = -(double)INFINITY, sum = 0;
  for (uint32_t j = 0; j < width; j++) {
    top = fmax(top, typed_get(type, x, first + j));
  }
  for (uint32_t j = 0; j < width; j++) {
    sum += exp(typed_get(type, x, first + j) - top);
  }
  for (uint32_t j = 0; j < width; j++) {
    double want = exp(typed_get(type, x, first + j) - top) / sum;
    double have = typed_get(type, y, first + j);
    double most = (4e-6 + typed_half_unit(type)) * want + 0x1p-26;
    if (type == KILN_PROGRAM_TYPE_F16) most += 0x1p-25;
    if (fabs(have - want) <= most) continue;
    fail_msg("%s: [%u, %u] is %.9g, should be %.9g",
             kiln_program_type_name(type), row, j, have, want);
  }
}

// The shares of logarithms of counts are the counts' own: how likely each byte
// is behind each other one. Behind a byte that never occurs there is nothing
// but -infinity, and so no share.
static void test_followers(void** state) {
  (void)state;
  enum { BYTES = 256 };
  real_text_t t;
  real_text_open(&t);
  uint32_t* counts = kit_zeroes(BYTES * BYTES, 4);
  float* x = kit_zeroes(BYTES * BYTES, 4);
  float* y = kit_zeroes(BYTES * BYTES, 4);
  for (uint32_t i = 1; i < t.count; i++) {
    counts[t.bytes[i - 1] * BYTES + t.bytes[i]]++;
  }
  for (uint32_t i = 0; i < BYTES * BYTES; i++) {
    x[i] = counts[i] == 0 ? -INFINITY : logf((float)counts[i]);
  }
  take_shares(&t.kit, KILN_PROGRAM_TYPE_F32, x, y, BYTES, BYTES);
  uint32_t found = 0;
  for (uint32_t row = 0; row < BYTES; row++) {
    const uint32_t* often = counts + row * BYTES;
    double all = 0;
    for (uint32_t j = 0; j < BYTES; j++) all += often[j];
    if (all > 0) check_shares(KILN_PROGRAM_TYPE_F32, x, y, BYTES, row);
    found += all > 0;
    for (uint32_t j = 0; j < BYTES; j++) {
      double have = (double)y[row * BYTES + j];
      if (all == 0) assert_true(isnan(have));
      if (all == 0) continue;
      // The logarithm is rounded as well.
      assert_true(fabs(have - often[j] / all) <= 8e-6 * often[j] / all);
    }
  }
  assert_true(found > 90 && found < BYTES);
  free(counts);
  free(x);
  free(y);
  real_text_close(&t);
}

// Rows of a picture, which have no whole number of four pixels.
static void test_light(void** state) {
  (void)state;
  real_picture_t p;
  real_picture_open(&p);
  assert_int_not_equal(p.w % 4, 0);
  for (uint32_t k = 0; k < 3; k++) {
    uint32_t type = kFloats[k];
    void* x = kit_zeroes((uint64_t)p.w * p.h, 4);
    void* y = kit_zeroes((uint64_t)p.w * p.h, 4);
    for (uint32_t i = 0; i < p.w * p.h; i++) {
      typed_set(type, x, i, (p.gray[i] - 128) / 16.0);
    }
    take_shares(&p.kit, type, x, y, p.w, p.h);
    for (uint32_t row = 0; row < p.h; row++) {
      check_shares(type, x, y, p.w, row);
    }
    free(x);
    free(y);
  }
  real_picture_close(&p);
}

// ---- Attention ----

static attend_case_t make_case(const attend_shape_t* s) {
  uint64_t ours = attend_rows(s, s->queries), theirs = attend_rows(s, s->keys);
  attend_case_t c = {*s, kit_zeroes(ours, 4), kit_zeroes(theirs, 4),
                     kit_zeroes(theirs, 4), kit_zeroes(ours, 4)};
  return c;
}

static void run_case(dispatch_kit_t* kit, attend_case_t* c) {
  kiln_library_plan_t* plan = attend_plan(kit, &c->shape, 0);
  attend_run(kit, plan, c);
  attend_expect(c, 40);
  kiln_library_plan_release(plan);
}

// As long as `length`; a row of zeroes stays one.
static void set_row(uint32_t type, void* rows, uint64_t first, uint32_t width,
                    const double* values, double length) {
  double squares = 0;
  for (uint32_t d = 0; d < width; d++) squares += values[d] * values[d];
  double factor = squares > 0 ? length / sqrt(squares) : 0;
  for (uint32_t d = 0; d < width; d++) {
    typed_set(type, rows, first + d, values[d] * factor);
  }
}

// How often each letter is in a word, or each pair of them by a number of it.
static void count_letters(uint64_t word, bool pairs, uint32_t width,
                          double* out) {
  memset(out, 0, width * sizeof(*out));
  for (; word != 0; word <<= 8) {
    uint32_t letter = (uint32_t)(word >> 56) - 'a';
    uint32_t next = (uint32_t)(word >> 48 & 255);
    if (pairs && next == 0) break;
    out[pairs ? (letter * 7 + next - 'a') % width : letter]++;
  }
}

// Each word heeds those in front of it that look like it, by their letters and
// by pairs of them, and gets what stood behind those: how a text goes on.
static void test_words(void** state) {
  (void)state;
  enum { HEADS = 2, WORDS = 200 / KIT_LESS, WIDTH = 32 };
  real_text_t t;
  real_text_open(&t);
  uint64_t* words = kit_zeroes(t.count, 8);
  assert_true(real_words(&t, words) > WORDS);
  for (uint32_t k = 0; k < 3; k++) {
    const attend_shape_t shape = {HEADS, WORDS, WORDS, WIDTH, kFloats[k], true};
    attend_case_t c = make_case(&shape);
    double letters[WIDTH];
    for (uint32_t i = 0; i < HEADS * WORDS; i++) {
      const uint64_t* word = &words[i % WORDS];
      uint64_t first = (uint64_t)i * WIDTH;
      count_letters(*word, i >= WORDS, WIDTH, letters);
      set_row(shape.type, c.q, first, WIDTH, letters, 6);
      set_row(shape.type, c.k, first, WIDTH, letters, 6);
      count_letters(word[1], false, WIDTH, letters);
      for (uint32_t d = 0; d < WIDTH; d++) {
        typed_set(shape.type, c.v, first + d, letters[d]);
      }
    }
    run_case(&t.kit, &c);
    // The first word sees itself alone.
    for (uint32_t d = 0; d < WIDTH; d++) {
      assert_true(typed_get(shape.type, c.y, d) ==
                  typed_get(shape.type, c.v, d));
    }
    attend_free(&c);
  }
  free(words);
  real_text_close(&t);
}

// Parts of a picture, each the average of those that look like it, which takes
// noise away (Buades, Coll and Morel, "A non-local algorithm for image
// denoising", 2005): none is lighter or darker than all of them were.
static void test_parts(void** state) {
  (void)state;
  enum { SIDE = 8, WIDTH = SIDE * SIDE, STEP = KIT_LESS > 1 ? 48 : 24 };
  real_picture_t p;
  real_picture_open(&p);
  uint32_t across = p.w / STEP, parts = across * (p.h / STEP);
  for (uint32_t k = 0; k < 2; k++) {
    const attend_shape_t shape = {1, parts, parts, WIDTH, kFloats[k], false};
    attend_case_t c = make_case(&shape);
    for (uint32_t i = 0; i < parts * WIDTH; i++) {
      uint32_t part = i / WIDTH, at = i % WIDTH;
      uint32_t row = part / across * STEP + at / SIDE;
      uint32_t column = part % across * STEP + at % SIDE;
      double light = p.gray[row * p.w + column] / 256.0;
      typed_set(shape.type, c.q, i, 2 * light - 1);
      typed_set(shape.type, c.k, i, 2 * light - 1);
      typed_set(shape.type, c.v, i, light);
    }
    run_case(&p.kit, &c);
    for (uint32_t i = 0; i < parts * WIDTH; i++) {
      double light = typed_get(shape.type, c.y, i);
      assert_true(light > 0 && light < 1);
    }
    attend_free(&c);
  }
  real_picture_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_followers),
      cmocka_unit_test(test_light),
      cmocka_unit_test(test_words),
      cmocka_unit_test(test_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
