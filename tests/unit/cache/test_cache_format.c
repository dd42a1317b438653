// SPDX-License-Identifier: Apache-2.0
//
// cache: the format: what is not whole and unharmed is found out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache_kit.h"
#include "kiln/cache.h"

enum { IMAGE_BYTES = 1024 };

static uint32_t check(const uint8_t* image, size_t size, const char** out_why) {
  kilni_cache_layout_t layout;
  uint32_t state = kilni_cache_head_read(image, size, size, &layout, out_why);
  if (state != KILN_CACHE_STATE_GOOD) return state;
  return kilni_cache_image_check(image, &layout, out_why);
}

static size_t build(uint8_t* image) {
  kiln_cache_key_t key = cache_kit_key("the key");
  kiln_bytes_view_t metadata = cache_kit_bytes("about it");
  kiln_bytes_view_t payload = cache_kit_bytes("0123456789");
  kilni_cache_layout_t layout;
  cache_kit_ok(kilni_cache_layout_make(&key, metadata, payload, 77, &layout));
  assert_true(layout.total <= IMAGE_BYTES);
  memset(image, 0, IMAGE_BYTES);
  kilni_cache_image_write(&layout, &key, metadata, payload, image);
  return layout.total;
}

static void test_round_trip(void** state) {
  (void)state;
  uint8_t image[IMAGE_BYTES];
  size_t size = build(image);
  kilni_cache_layout_t layout;
  const char* why = NULL;
  assert_int_equal(kilni_cache_head_read(image, size, size, &layout, &why),
                   KILN_CACHE_STATE_GOOD);
  assert_string_equal(why, "");
  assert_int_equal(kilni_cache_image_check(image, &layout, &why),
                   KILN_CACHE_STATE_GOOD);
  assert_string_equal(layout.kind, "test");
  assert_int_equal(layout.version, 1);
  assert_int_equal(layout.created_s, 77);
  assert_int_equal(layout.payload_at % KILNI_CACHE_PAYLOAD_ALIGN, 0);
  assert_memory_equal(image + layout.key_at, "the key", 7);
  assert_memory_equal(image + layout.metadata_at, "about it", 8);
  assert_memory_equal(image + layout.payload_at, "0123456789", 10);
}

static void test_every_bit_counts(void** state) {
  (void)state;
  uint8_t image[IMAGE_BYTES];
  const char* why;
  size_t size = build(image);
  for (size_t bit = 0; bit < size * 8; bit++) {
    image[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    if (check(image, size, &why) == KILN_CACHE_STATE_GOOD) {
      fail_msg("bit %zu of byte %zu can be anything", bit % 8, bit / 8);
    }
    assert_true(strlen(why) > 0);
    image[bit / 8] ^= (uint8_t)(1u << (bit % 8));
  }
  assert_int_equal(check(image, size, &why), KILN_CACHE_STATE_GOOD);
}

static void test_every_length_but_one_is_corrupt(void** state) {
  (void)state;
  uint8_t image[IMAGE_BYTES];
  const char* why;
  size_t size = build(image);
  for (size_t length = 0; length <= IMAGE_BYTES; length++) {
    // On the heap, so that a read behind the end is seen.
    uint8_t* copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, image, length);
    assert_int_equal(check(copy, length, &why), length == size
                                                    ? KILN_CACHE_STATE_GOOD
                                                    : KILN_CACHE_STATE_CORRUPT);
    free(copy);
  }
}

static void set_u32(uint8_t* at, uint32_t value) {
  memcpy(at, &value, sizeof(value));
}

static void set_u64(uint8_t* at, uint64_t value) {
  memcpy(at, &value, sizeof(value));
}

static void test_foreign(void** state) {
  (void)state;
  uint8_t image[IMAGE_BYTES];
  const char* why;
  size_t size = build(image);
  set_u32(image + 8, UINT32_C(0x04030201));
  assert_int_equal(check(image, size, &why), KILN_CACHE_STATE_FOREIGN);
  assert_non_null(strstr(why, "byte order"));
  size = build(image);
  set_u32(image + 12, 2);
  assert_int_equal(check(image, size, &why), KILN_CACHE_STATE_FOREIGN);
  assert_non_null(strstr(why, "version"));
}

// Lengths that would overflow or not fit anywhere never reach an allocation.
static void test_great_lengths(void** state) {
  (void)state;
  static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 63,
                                     UINT64_C(1) << 63, UINT64_C(1) << 40,
                                     KILN_CACHE_MAX_PAYLOAD_BYTES + 1};
  uint8_t image[IMAGE_BYTES];
  const char* why;
  for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
    for (size_t at = 48; at <= 64; at += 8) {
      size_t size = build(image);
      set_u64(image + at, lengths[i]);
      assert_int_equal(check(image, size, &why), KILN_CACHE_STATE_CORRUPT);
    }
  }
}

static void test_hash_alone_is_not_enough(void** state) {
  (void)state;
  uint8_t image[IMAGE_BYTES];
  const char* why;
  size_t size = build(image);
  kilni_cache_layout_t layout;
  (void)kilni_cache_head_read(image, size, size, &layout, &why);
  // Another key, and the hash of the whole made right again.
  image[layout.key_at] ^= 1;
  kilni_cache_hash_t hash = kilni_cache_hash(image, layout.hash_at);
  memcpy(image + layout.hash_at, &hash, sizeof(hash));
  assert_int_equal(check(image, size, &why), KILN_CACHE_STATE_CORRUPT);
  assert_non_null(strstr(why, "key"));
}

static void test_limits(void** state) {
  (void)state;
  kilni_cache_layout_t layout;
  kiln_cache_key_t key = cache_kit_key("k");
  kiln_bytes_view_t none = {NULL, 0};
  kiln_bytes_view_t large = {(const uint8_t*)"", 0};
  large.size = (size_t)KILN_CACHE_MAX_PAYLOAD_BYTES + 1;
  kiln_status_t status = kilni_cache_layout_make(&key, none, large, 0, &layout);
  assert_non_null(kiln_status_fix(status));
  cache_kit_fails(status, KILN_STATUS_LIMIT_EXCEEDED);
  large.size = (size_t)KILN_CACHE_MAX_METADATA_BYTES + 1;
  cache_kit_fails(kilni_cache_layout_make(&key, large, none, 0, &layout),
                  KILN_STATUS_LIMIT_EXCEEDED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_every_bit_counts),
      cmocka_unit_test(test_every_length_but_one_is_corrupt),
      cmocka_unit_test(test_foreign),
      cmocka_unit_test(test_great_lengths),
      cmocka_unit_test(test_hash_alone_is_not_enough),
      cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
