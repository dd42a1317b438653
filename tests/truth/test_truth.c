// SPDX-License-Identifier: Apache-2.0
//
// truth: is a wrong answer found, and is a file what was written?
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "truth_book.h"
#include "truth_check.h"

static truth_list_t list;

static int make_list(void** state) {
  (void)state;
  return truth_list_make(&list) ? 0 : -1;
}

static int free_list(void** state) {
  (void)state;
  truth_list_free(&list);
  return 0;
}

static const truth_entry_t* entry_of(const char* name) {
  for (size_t i = 0; i < list.count; i++) {
    if (strcmp(list.entries[i].name, name) == 0) return &list.entries[i];
  }
  fail_msg("no entry %s", name);
  return NULL;
}

// All kinds at all places, of this generator. A change here is a new
// TRUTH_GENERATOR, and everything has to be recorded again.
static void inputs_are_those_of_the_generator(void** state) {
  (void)state;
  uint64_t sum = TRUTH_GENERATOR;
  for (uint32_t kind = TRUTH_PRED; kind < TRUTH_KINDS; kind++) {
    for (uint32_t place = 0; place < TRUTH_PLACES; place++) {
      for (uint32_t i = 0; i < 40000; i++) {
        const uint64_t value = truth_input((truth_kind_t)kind,
                                           (truth_place_t)place, i * 7 % 36000);
        sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
      }
    }
  }
  assert_int_equal(sum, 0x40783082caa50616);
}

static void sixteen_bits_are_all_asked(void** state) {
  (void)state;
  static uint8_t seen[65536];
  const truth_kind_t kinds[] = {TRUTH_U16, TRUTH_F16, TRUTH_BF16};
  for (uint32_t k = 0; k < 3; k++) {
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < 65536; i++) {
      seen[truth_input(kinds[k], TRUTH_ONLY, i)] = 1;
    }
    for (uint32_t i = 0; i < 65536; i++) assert_int_equal(seen[i], 1);
  }
}

static bool is_nan32(uint64_t bits) {
  return (bits & 0x7fffffff) > 0x7f800000;
}

// Both operands are every special number beside every other.
static void pairs_of_edges_are_all_asked(void** state) {
  (void)state;
  const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                              0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff,
                              0x3f800000, 0xbf800001, 0x4f000000, 0x7f800001};
  for (uint32_t a = 0; a < 12; a++) {
    for (uint32_t b = 0; b < 12; b++) {
      bool found = false;
      for (uint32_t i = TRUTH_RAW; i < TRUTH_RAW + TRUTH_PAIRS && !found; i++) {
        found = truth_input(TRUTH_F32, TRUTH_FIRST, i) == special[a] &&
                truth_input(TRUTH_F32, TRUTH_SECOND, i) == special[b];
      }
      assert_true(found);
    }
  }
  uint32_t nans = 0;
  for (uint32_t i = 0; i < TRUTH_RAW; i++) {
    nans += is_nan32(truth_input(TRUTH_F32, TRUTH_ONLY, i));
  }
  assert_in_range(nans, 4, 64);
}

static void blocks_cover_a_layout(void** state) {
  (void)state;
  for (size_t e = 0; e < list.count; e += 17) {
    const truth_layout_t* layout = &list.entries[e].layout;
    uint32_t next = 0;
    for (uint32_t b = 0; b < truth_layout_blocks(layout); b++) {
      uint32_t first, count;
      truth_layout_block(layout, b, &first, &count);
      assert_int_equal(first, next);
      // What may be left out is whole blocks of threads.
      if (layout->fine > 16 || layout->coarse > 1) {
        assert_int_equal(count % 256, 0);
      }
      next += count;
    }
    assert_int_equal(next, truth_layout_inputs(layout));
    assert_int_equal(next % 256, 0);
    assert_in_range(truth_layout_blocks(layout), 2, TRUTH_BLOCKS);
  }
}

static void no_kernel_is_cut_short(void** state) {
  (void)state;
  for (size_t e = 0; e < list.count; e++) {
    const truth_entry_t* entry = &list.entries[e];
    assert_in_range(strlen(entry->body), 1, TRUTH_BODY_BYTES - 2);
    assert_in_range(strlen(entry->name), 1, TRUTH_NAME_BYTES - 2);
    assert_in_range(strlen(entry->covers), 0, TRUTH_COVERS_BYTES - 2);
  }
}

static void plans_take_every_nth(void** state) {
  (void)state;
  const truth_entry_t* entry = entry_of("add.u32");
  bool seen[TRUTH_BLOCKS] = {false};
  truth_plan_t plan;
  for (uint32_t phase = 0; phase < 5; phase++) {
    truth_plan_make(&entry->layout, (truth_wish_t){5, phase}, &plan);
    assert_int_equal(plan.blocks[0], 0);
    for (uint32_t i = 1; i < plan.count; i++) {
      assert_false(seen[plan.blocks[i]]);
      seen[plan.blocks[i]] = true;
    }
  }
  for (uint32_t b = 1; b < truth_layout_blocks(&entry->layout); b++) {
    assert_true(seen[b]);
  }
  truth_plan_make(&entry->layout, (truth_wish_t){0, 0}, &plan);
  assert_int_equal(plan.count, 1);
  truth_plan_make(&entry->layout, (truth_wish_t){1, 0}, &plan);
  assert_int_equal(plan.inputs, truth_layout_inputs(&entry->layout));
}

static void a_digest_sees_every_bit(void** state) {
  (void)state;
  uint8_t bytes[72];
  for (uint32_t i = 0; i < 72; i++) bytes[i] = (uint8_t)(i * 37);
  const uint64_t before = truth_digest(bytes, sizeof(bytes));
  for (uint32_t bit = 0; bit < 72 * 8; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_true(truth_digest(bytes, sizeof(bytes)) != before);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  assert_true(truth_digest(bytes, 64) != truth_digest(bytes, 32));
  assert_int_equal(truth_digest(bytes, sizeof(bytes)), before);
}

static void one_wrong_bit_is_found(void** state) {
  (void)state;
  const truth_entry_t* entry = entry_of("add.u32");
  uint32_t truth[256], answers[256];
  truth_plan_t plan;
  truth_finding_t finding;
  truth_plan_make(&entry->layout, (truth_wish_t){0, 0}, &plan);
  for (uint32_t i = 0; i < 256; i++) truth[i] = answers[i] = i * 77;
  memset(&finding, 0, sizeof(finding));
  truth_compare(entry, &plan, 0, 256, (uint8_t*)truth, (uint8_t*)answers, NULL,
                &finding);
  assert_int_equal(finding.different, 0);
  assert_int_equal(finding.compared, 256);
  answers[200] ^= 0x80000000u;
  truth_compare(entry, &plan, 0, 256, (uint8_t*)truth, (uint8_t*)answers, NULL,
                &finding);
  assert_int_equal(finding.different, 1);
}

static uint64_t apart(const char* name, uint32_t a, uint32_t b) {
  const truth_entry_t* entry = entry_of(name);
  truth_plan_t plan;
  truth_finding_t finding;
  memset(&finding, 0, sizeof(finding));
  truth_plan_make(&entry->layout, (truth_wish_t){0, 0}, &plan);
  truth_compare(entry, &plan, 0, 1, (uint8_t*)&a, (uint8_t*)&b, NULL, &finding);
  return finding.different;
}

// Also of approximations, and of a NaN another NaN.
static void floats_may_not_be_apart(void** state) {
  (void)state;
  const char* const forms[] = {"add.f32",        "rcp.approx.f32",
                               "sin.approx.f32", "tanh.approx.f32",
                               "div.full.f32",   "ex2.approx.ftz.f32"};
  for (uint32_t i = 0; i < 6; i++) {
    assert_int_equal(apart(forms[i], 0x3f800000, 0x3f800000), 0);
    assert_int_equal(apart(forms[i], 0x3f800000, 0x3f800001), 1);
    assert_int_equal(apart(forms[i], 0x7fffffff, 0x7fc00000), 1);
    assert_int_equal(apart(forms[i], 0x00000000, 0x80000000), 1);
  }
}

static void distances_are_counted(void** state) {
  (void)state;
  const truth_entry_t* entry = entry_of("rcp.approx.f32");
  const uint32_t truth[] = {0x3f800000, 0x3f800000, 0x80000001,
                            0x7fffffff, 0x3f800000, 0x3f800000};
  const uint32_t answers[] = {0x3f800000, 0x3f800001, 0x00000001,
                              0x7fc00000, 0x3f800100, 0x7fffffff};
  truth_plan_t plan;
  truth_finding_t finding;
  truth_plan_make(&entry->layout, (truth_wish_t){0, 0}, &plan);
  memset(&finding, 0, sizeof(finding));
  truth_compare(entry, &plan, 0, 6, (const uint8_t*)truth,
                (const uint8_t*)answers, NULL, &finding);
  const uint64_t apart_by[TRUTH_BUCKETS] = {1, 1, 1, 0, 0, 0, 1, 2};
  assert_memory_equal(finding.apart, apart_by, sizeof(apart_by));
  assert_int_equal(finding.different, 5);
  assert_int_equal(finding.greatest, 256);
}

static uint8_t* answers_of(const truth_entry_t* entry, uint32_t seed) {
  const size_t bytes = (size_t)truth_layout_inputs(&entry->layout) *
                       entry->outs * truth_kind_bytes(entry->result);
  uint8_t* answers = malloc(bytes);
  assert_non_null(answers);
  for (size_t i = 0; i < bytes; i++) answers[i] = (uint8_t)(i * seed >> 3);
  return answers;
}

static void fill_book(truth_book_t* book) {
  const char* const names[] = {"add.u32", "add.s32", "popc.b64", "abs.s16"};
  memset(book, 0, sizeof(*book));
  (void)snprintf(book->device, sizeof(book->device), "a device");
  (void)snprintf(book->driver, sizeof(book->driver), "1.2 (CUDA 13.0)");
  (void)snprintf(book->date, sizeof(book->date), "2026-01-02");
  book->generator = TRUTH_GENERATOR;
  for (uint32_t i = 0; i < 4; i++) {
    const truth_entry_t* entry = entry_of(names[i]);
    uint8_t* answers = answers_of(entry, i < 2 ? 3 : 5);
    assert_true(truth_book_add(book, entry, answers));
    free(answers);
  }
  assert_int_equal(book->stream_count, 3);  // the first two are alike
}

static void a_book_is_read_as_written(void** state) {
  (void)state;
  char folder[] = "truthXXXXXX";
  char path[64];
  truth_book_t book, back;
  fill_book(&book);
  assert_non_null(mkdtemp(folder));
  assert_true(truth_book_write(&book, folder));
  memset(&back, 0, sizeof(back));
  assert_true(truth_book_read(&back, folder));
  assert_string_equal(back.device, "a device");
  assert_string_equal(back.driver, "1.2 (CUDA 13.0)");
  assert_string_equal(back.date, "2026-01-02");
  assert_int_equal(back.row_count, 4);
  for (uint32_t i = 0; i < 4; i++) {
    const truth_entry_t* entry = entry_of(book.rows[i].name);
    const truth_stream_t* a = &book.streams[book.rows[i].stream];
    const truth_stream_t* b = truth_book_find(&back, entry);
    assert_non_null(b);
    assert_memory_equal(a->raw, b->raw, (size_t)a->layout.raw * a->width);
    assert_memory_equal(a->digests, b->digests,
                        (a->layout.fine + a->layout.coarse) * 8);
  }
  assert_null(truth_book_find(&back, entry_of("sub.u32")));
  truth_book_free(&back);
  truth_book_free(&book);
  (void)snprintf(path, sizeof(path), "%s/bits.truth", folder);
  FILE* file = fopen(path, "ab");
  assert_non_null(file);
  (void)fputc(0, file);
  (void)fclose(file);
  assert_false(truth_book_read(&back, folder));  // one byte too many
  truth_book_free(&back);
  (void)remove(path);
  (void)snprintf(path, sizeof(path), "%s/integer.truth", folder);
  (void)remove(path);
  assert_int_equal(remove(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_are_those_of_the_generator),
      cmocka_unit_test(sixteen_bits_are_all_asked),
      cmocka_unit_test(pairs_of_edges_are_all_asked),
      cmocka_unit_test(blocks_cover_a_layout),
      cmocka_unit_test(no_kernel_is_cut_short),
      cmocka_unit_test(plans_take_every_nth),
      cmocka_unit_test(a_digest_sees_every_bit),
      cmocka_unit_test(one_wrong_bit_is_found),
      cmocka_unit_test(floats_may_not_be_apart),
      cmocka_unit_test(distances_are_counted),
      cmocka_unit_test(a_book_is_read_as_written),
  };
  return cmocka_run_group_tests(tests, make_list, free_list);
}
