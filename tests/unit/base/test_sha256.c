// SPDX-License-Identifier: Apache-2.0
//
// base: SHA-256 against the examples of FIPS 180 and NIST's test vectors.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/sha256.h"

static void expect(const void* data, size_t size, size_t repeat, size_t part,
                   const char* wanted) {
  kilni_base_sha256_t hash;
  uint8_t digest[KILNI_SHA256_BYTES];
  char text[2 * KILNI_SHA256_BYTES + 1];
  kilni_base_sha256_init(&hash);
  for (size_t i = 0; i < repeat; i++) {
    for (size_t at = 0; at < size; at += part) {
      size_t rest = size - at;
      kilni_base_sha256_add(&hash, (const char*)data + at,
                            rest < part ? rest : part);
    }
  }
  kilni_base_sha256_finish(&hash, digest);
  for (int i = 0; i < KILNI_SHA256_BYTES; i++) {
    snprintf(text + 2 * i, 3, "%02x", digest[i]);
  }
  assert_string_equal(text, wanted);
}

static void the_published_examples(void** state) {
  (void)state;
  static const struct {
    const char* text;
    size_t repeat;
    const char* digest;
  } rows[] = {
      {"", 1,
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", 1,
       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmno"
       "pjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
       1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {"aaaaaaaaaa", 100000,
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {"\xd3", 1,
       "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
      {"\x11\xaf", 1,
       "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    static const size_t parts[] = {1, 7, 63, 64, 65, 1000};
    for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
      expect(rows[i].text, strlen(rows[i].text), rows[i].repeat, parts[j],
             rows[i].digest);
    }
  }
}

// The ends of blocks, where the padding has space or needs another.
static void every_length_around_a_block(void** state) {
  (void)state;
  static const struct {
    size_t size;
    const char* digest;
  } rows[] = {
      {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
      {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"}};
  char text[65];
  memset(text, 'a', sizeof(text));
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    expect(text, rows[i].size, 1, 64, rows[i].digest);
  }
}

static void as_a_record_has_it(void** state) {
  (void)state;
  kilni_base_sha256_t hash;
  uint8_t digest[KILNI_SHA256_BYTES];
  char text[KILNI_SHA256_TEXT_BYTES];
  kilni_base_sha256_init(&hash);
  kilni_base_sha256_finish(&hash, digest);
  kilni_base_sha256_text(digest, text);
  assert_string_equal(text, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_published_examples),
      cmocka_unit_test(every_length_around_a_block),
      cmocka_unit_test(as_a_record_has_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
