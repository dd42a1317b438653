// SPDX-License-Identifier: Apache-2.0
//
// cache: keys: no two lists of fields give the same bytes; hashes are stable.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cache_kit.h"
#include "base/str.h"
#include "cache/cache.h"
#include "kiln/cache.h"

enum { BUILDERS = 14 };

static void build(kilni_cache_key_builder_t* builder, int which) {
  static const char* const ab[] = {"a", "b"};
  static const char* const a_b[] = {"ab"};
  static const char* const empty[] = {"", ""};
  switch (which) {
    case 0:
      break;
    case 1:
      kilni_cache_key_add_text(builder, "x", kilni_base_sv("ab"));
      break;
    case 2:
      kilni_cache_key_add_text(builder, "xa", kilni_base_sv("b"));
      break;
    case 3:
      kilni_cache_key_add_bytes(builder, "x", cache_kit_bytes("ab"));
      break;
    case 4:
      kilni_cache_key_add_text(builder, "x", kilni_base_sv("a"));
      kilni_cache_key_add_text(builder, "x", kilni_base_sv("b"));
      break;
    case 5:
      kilni_cache_key_add_texts(builder, "x", ab, 2);
      break;
    case 6:
      kilni_cache_key_add_texts(builder, "x", a_b, 1);
      break;
    case 7:
      kilni_cache_key_add_texts(builder, "x", empty, 2);
      break;
    case 8:
      kilni_cache_key_add_texts(builder, "x", empty, 1);
      break;
    case 9:
      kilni_cache_key_add_texts(builder, "x", empty, 0);
      break;
    case 10:
      kilni_cache_key_add_text(builder, "x", kilni_base_sv(""));
      break;
    case 11:
      kilni_cache_key_add_u64(builder, "x", 0);
      break;
    case 12:
      kilni_cache_key_add_u64(builder, "x", UINT64_C(1) << 56);
      break;
    default:
      kilni_cache_key_add_texts(builder, "x", ab, 1);
      kilni_cache_key_add_text(builder, "x", kilni_base_sv("b"));
      break;
  }
}

static void test_fields_are_apart(void** state) {
  (void)state;
  kilni_cache_key_builder_t builders[BUILDERS];
  for (int i = 0; i < BUILDERS; i++) {
    kilni_cache_key_init(&builders[i], kiln_allocator_libc());
    build(&builders[i], i);
    assert_true(kiln_status_is_ok(kilni_cache_key_status(&builders[i])));
  }
  for (int i = 0; i < BUILDERS; i++) {
    kiln_bytes_view_t a = kilni_cache_key_view(&builders[i]);
    for (int j = 0; j < i; j++) {
      kiln_bytes_view_t b = kilni_cache_key_view(&builders[j]);
      assert_false(a.size == b.size &&
                   (a.size == 0 || memcmp(a.data, b.data, a.size) == 0));
    }
  }
  for (int i = 0; i < BUILDERS; i++) kilni_cache_key_deinit(&builders[i]);
}

static void test_fields_do_not_run_over(void** state) {
  (void)state;
  // A text that looks like the end of its field and a field behind it.
  kilni_cache_key_builder_t one, two;
  kilni_cache_key_init(&one, kiln_allocator_libc());
  kilni_cache_key_init(&two, kiln_allocator_libc());
  kilni_cache_key_add_text(&one, "a", kilni_base_sv("1"));
  kilni_cache_key_add_text(&one, "b", kilni_base_sv("2"));
  kiln_bytes_view_t view = kilni_cache_key_view(&one);
  size_t head = 1 + 4 + 1 + 8;
  kilni_cache_key_add_text(
      &two, "a",
      kilni_base_sv_make((const char*)view.data + head, view.size - head));
  kiln_bytes_view_t other = kilni_cache_key_view(&two);
  assert_true(view.size == other.size);
  assert_memory_not_equal(view.data, other.data, view.size);
  kilni_cache_key_deinit(&one);
  kilni_cache_key_deinit(&two);
}

static void test_layout_of_a_field(void** state) {
  (void)state;
  static const uint8_t wanted[] = {'u', 4, 0, 0, 0, 'a', 'r', 'c', 'h',
                                   8,   0, 0, 0, 0, 0,   0,   0,   75,
                                   1,   0, 0, 0, 0, 0,   0};
  kilni_cache_key_builder_t builder;
  kilni_cache_key_init(&builder, kiln_allocator_libc());
  kilni_cache_key_add_u64(&builder, "arch", 331);
  kiln_bytes_view_t view = kilni_cache_key_view(&builder);
  assert_int_equal(view.size, sizeof(wanted));
  assert_memory_equal(view.data, wanted, sizeof(wanted));
  kilni_cache_key_deinit(&builder);
}

// What was written is read back, field by field, and nothing else is.
static void test_read_back(void** state) {
  (void)state;
  kilni_cache_key_builder_t builder;
  kilni_cache_key_field_t field;
  kilni_cache_key_init(&builder, kiln_allocator_libc());
  kilni_cache_key_add_text(&builder, "name", kilni_base_sv("k.cu"));
  kilni_cache_key_add_u64(&builder, "line", 13000);
  kilni_cache_key_add_bytes(&builder, "empty", cache_kit_bytes(""));
  kiln_bytes_view_t view = kilni_cache_key_view(&builder);
  kilni_cache_key_reader_t reader = {view};
  assert_true(kilni_cache_key_next(&reader, &field));
  assert_true(kilni_base_sv_equal_cstr(field.name, "name"));
  assert_int_equal(field.value.size, 4);
  assert_memory_equal(field.value.data, "k.cu", 4);
  assert_true(kilni_cache_key_next(&reader, &field));
  assert_int_equal(field.number, 13000);
  assert_true(kilni_cache_key_next(&reader, &field));
  assert_int_equal(field.value.size, 0);
  assert_false(kilni_cache_key_next(&reader, &field));
  // Cut short anywhere it ends early, and never goes beyond its end.
  for (size_t size = 0; size < view.size; size++) {
    int fields = 0;
    reader.rest = (kiln_bytes_view_t){view.data, size};
    while (kilni_cache_key_next(&reader, &field)) fields++;
    assert_in_range(fields, 0, 2);
  }
  kilni_cache_key_deinit(&builder);
}

// XXH3's 128 bits of nothing and of "abc", as its authors promise them.
static void test_digest_is_stable(void** state) {
  (void)state;
  char text[KILN_CACHE_NAME_BYTES];
  kilni_cache_digest(cache_kit_bytes(""), text);
  assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
  kilni_cache_digest(cache_kit_bytes("abc"), text);
  assert_string_equal(text, "06b05ab6733a618578af5f94892f3950");
}

static void test_hash_takes_all_of_a_key(void** state) {
  (void)state;
  kiln_cache_key_t key = cache_kit_key("k");
  kilni_cache_hash_t hash = kilni_cache_key_hash(&key);
  kiln_cache_key_t others[3] = {key, key, key};
  others[0].kind = "tes";
  others[1].version = 2;
  others[2].bytes = cache_kit_bytes("j");
  for (int i = 0; i < 3; i++) {
    kilni_cache_hash_t other = kilni_cache_key_hash(&others[i]);
    assert_memory_not_equal(&hash, &other, sizeof(hash));
  }
}

static void test_kinds(void** state) {
  (void)state;
  static const char* const good[] = {"a", "ltoir", "sm_90", "x-1",
                                     "abcdefghijklmno"};
  static const char* const bad[] = {"",    "A",       "a b", "abcdefghijklmnop",
                                    "a/b", "\xc3\xa4"};
  for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
    assert_true(kilni_cache_kind_is_good(good[i]));
  }
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    kiln_cache_key_t key = cache_kit_key("k");
    key.kind = bad[i];
    kiln_status_t status = kilni_cache_check_key(&key);
    assert_non_null(kiln_status_fix(status));
    cache_kit_fails(status, KILN_STATUS_INVALID_ARGUMENT);
  }
}

static void* no_memory(void* ptr, size_t old_size, size_t new_size,
                       size_t align, void* user) {
  (void)ptr, (void)old_size, (void)new_size, (void)align, (void)user;
  return NULL;
}

static void test_failure_is_remembered(void** state) {
  (void)state;
  kilni_cache_key_builder_t builder;
  kiln_allocator_t none = {no_memory, NULL};
  kilni_cache_key_init(&builder, none);
  kilni_cache_key_add_u64(&builder, "x", 1);
  kilni_cache_key_add_u64(&builder, "y", 1);
  cache_kit_fails(kilni_cache_key_status(&builder), KILN_STATUS_OUT_OF_MEMORY);
  kilni_cache_key_deinit(&builder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields_are_apart),
      cmocka_unit_test(test_fields_do_not_run_over),
      cmocka_unit_test(test_layout_of_a_field),
      cmocka_unit_test(test_read_back),
      cmocka_unit_test(test_digest_is_stable),
      cmocka_unit_test(test_hash_takes_all_of_a_key),
      cmocka_unit_test(test_kinds),
      cmocka_unit_test(test_failure_is_remembered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
