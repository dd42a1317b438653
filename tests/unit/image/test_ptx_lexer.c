// SPDX-License-Identifier: Apache-2.0
//
// image: tokens of PTX text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image/ptx_lexer.h"
#include "image/ptx_reader.h"

static kilni_image_ptx_lexer_t lexer_on(const char* text) {
  kilni_image_ptx_limits_t limits = kilni_image_ptx_limits_default();
  kilni_image_ptx_lexer_t lexer;
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kilni_image_ptx_lexer_init(&lexer, bytes, &limits);
  return lexer;
}

static kilni_image_ptx_token_t first_of(const char* text) {
  kilni_image_ptx_lexer_t lexer = lexer_on(text);
  kilni_image_ptx_token_t token;
  kilni_image_ptx_lexer_next(&lexer, &token);
  return token;
}

static void integers_have_value_and_sign(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint64_t value;
    uint32_t immediate;
  } kCases[] = {
      {"0", 0, KILNI_PTX_IMMEDIATE_S64},
      {"42", 42, KILNI_PTX_IMMEDIATE_S64},
      {"0x1F", 31, KILNI_PTX_IMMEDIATE_S64},
      {"0X1fU", 31, KILNI_PTX_IMMEDIATE_U64},
      {"017", 15, KILNI_PTX_IMMEDIATE_S64},
      {"0b101", 5, KILNI_PTX_IMMEDIATE_S64},
      {"7U", 7, KILNI_PTX_IMMEDIATE_U64},
      {"9223372036854775807", INT64_MAX, KILNI_PTX_IMMEDIATE_S64},
      {"9223372036854775808", UINT64_C(1) << 63, KILNI_PTX_IMMEDIATE_U64},
      {"18446744073709551615", UINT64_MAX, KILNI_PTX_IMMEDIATE_U64},
      {"0f3F800000", 0x3f800000, KILNI_PTX_IMMEDIATE_F32},
      {"0d3ff0000000000000", UINT64_C(0x3ff0000000000000),
       KILNI_PTX_IMMEDIATE_F64},
      {"1.5", UINT64_C(0x3ff8000000000000), KILNI_PTX_IMMEDIATE_F64},
      {".5", UINT64_C(0x3fe0000000000000), KILNI_PTX_IMMEDIATE_F64},
      {"2.", UINT64_C(0x4000000000000000), KILNI_PTX_IMMEDIATE_F64},
      {"15e-1", UINT64_C(0x3ff8000000000000), KILNI_PTX_IMMEDIATE_F64},
      {"0.1", UINT64_C(0x3fb999999999999a), KILNI_PTX_IMMEDIATE_F64},
      {"4.9e-324", 1, KILNI_PTX_IMMEDIATE_F64},
      {"1e-99999999999", 0, KILNI_PTX_IMMEDIATE_F64},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    kilni_image_ptx_token_t token = first_of(kCases[i].text);
    if (token.kind != KILNI_PTX_TOKEN_NUMBER ||
        token.value != kCases[i].value ||
        token.immediate != kCases[i].immediate) {
      fail_msg("%s", kCases[i].text);
    }
    assert_int_equal(token.text.size, strlen(kCases[i].text));
  }
}

static void malformed_tokens_are_bad(void** state) {
  (void)state;
  static const char* const kCases[] = {
      "18446744073709551616",
      "0x",
      "0b2",
      "09",
      "12ab",
      "0f3F80",
      "0f3F8000000",
      "0d3FF",
      "1e400",
      "1e",
      "1.5x",
      "\"open",
      "\"line\n\"",
      "/* open",
      "`",
      "'a'",
      "\\",
      "\x80",
      "\x01",
      "0x10000000000000000",
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    kilni_image_ptx_token_t token = first_of(kCases[i]);
    if (token.kind != KILNI_PTX_TOKEN_BAD) fail_msg("%s", kCases[i]);
    assert_non_null(token.problem);
  }
}

static void words_and_punctuation(void** state) {
  (void)state;
  kilni_image_ptx_lexer_t lexer = lexer_on(
      "%r1 $L_2 _ a.b .L1::no_allocate<<>=||/*c*/ // d\n  \"s\\\"t\" @!");
  static const struct {
    uint32_t kind;
    const char* text;
    uint32_t line;
    uint32_t column;
  } kTokens[] = {
      {KILNI_PTX_TOKEN_IDENTIFIER, "%r1", 1, 1},
      {KILNI_PTX_TOKEN_IDENTIFIER, "$L_2", 1, 5},
      {KILNI_PTX_TOKEN_IDENTIFIER, "_", 1, 10},
      {KILNI_PTX_TOKEN_IDENTIFIER, "a", 1, 12},
      {KILNI_PTX_TOKEN_DOT_WORD, "b", 1, 13},
      {KILNI_PTX_TOKEN_DOT_WORD, "L1::no_allocate", 1, 16},
      {KILNI_PTX_TOKEN_PUNCTUATION, "<<", 1, 32},
      {KILNI_PTX_TOKEN_PUNCTUATION, ">=", 1, 34},
      {KILNI_PTX_TOKEN_PUNCTUATION, "||", 1, 36},
      {KILNI_PTX_TOKEN_STRING, "s\\\"t", 2, 3},
      {KILNI_PTX_TOKEN_PUNCTUATION, "@", 2, 10},
      {KILNI_PTX_TOKEN_PUNCTUATION, "!", 2, 11},
      {KILNI_PTX_TOKEN_END, "", 2, 12},
  };
  for (size_t i = 0; i < sizeof(kTokens) / sizeof(kTokens[0]); i++) {
    kilni_image_ptx_token_t token;
    kilni_image_ptx_lexer_next(&lexer, &token);
    assert_int_equal(token.kind, kTokens[i].kind);
    assert_int_equal(token.text.size, strlen(kTokens[i].text));
    if (token.text.size > 0) {
      assert_memory_equal(token.text.data, kTokens[i].text, token.text.size);
    }
    assert_int_equal(token.line, kTokens[i].line);
    assert_int_equal(token.column, kTokens[i].column);
  }
}

static void a_digit_may_begin_a_modifier(void** state) {
  (void)state;
  kilni_image_ptx_lexer_t lexer = lexer_on(".1d .16x64b .5");
  kilni_image_ptx_token_t token;
  kilni_image_ptx_lexer_next_modifier(&lexer, &token);
  assert_int_equal(token.kind, KILNI_PTX_TOKEN_DOT_WORD);
  kilni_image_ptx_lexer_next_modifier(&lexer, &token);
  assert_int_equal(token.kind, KILNI_PTX_TOKEN_DOT_WORD);
  kilni_image_ptx_lexer_next(&lexer, &token);
  assert_int_equal(token.kind, KILNI_PTX_TOKEN_NUMBER);
}

static void one_terminating_nul_is_ignored(void** state) {
  (void)state;
  kilni_image_ptx_limits_t limits = kilni_image_ptx_limits_default();
  kilni_image_ptx_lexer_t lexer;
  kilni_image_ptx_token_t token;
  kiln_bytes_view_t one = {(const uint8_t*)"a\0\0", 2};
  kilni_image_ptx_lexer_init(&lexer, one, &limits);
  kilni_image_ptx_lexer_next(&lexer, &token);
  kilni_image_ptx_lexer_next(&lexer, &token);
  assert_int_equal(token.kind, KILNI_PTX_TOKEN_END);
  kiln_bytes_view_t two = {(const uint8_t*)"a\0\0", 3};
  kilni_image_ptx_lexer_init(&lexer, two, &limits);
  kilni_image_ptx_lexer_next(&lexer, &token);
  kilni_image_ptx_lexer_next(&lexer, &token);
  assert_int_equal(token.kind, KILNI_PTX_TOKEN_BAD);
}

static void braces_are_skipped_whole(void** state) {
  (void)state;
  kilni_image_ptx_lexer_t lexer = lexer_on("{ .b8 1 { \"}\" } } x");
  kilni_image_ptx_token_t token;
  kilni_image_ptx_lexer_next(&lexer, &token);
  assert_true(kilni_image_ptx_lexer_skip_braces(&lexer));
  kilni_image_ptx_lexer_next(&lexer, &token);
  assert_int_equal(token.kind, KILNI_PTX_TOKEN_IDENTIFIER);
  lexer = lexer_on("{ { }");
  kilni_image_ptx_lexer_next(&lexer, &token);
  assert_false(kilni_image_ptx_lexer_skip_braces(&lexer));
}

// Every character behind a letter: only these belong to the word.
static void what_an_identifier_goes_on_with(void** state) {
  (void)state;
  static const char kGoesOn[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$";
  for (int c = 1; c < 256; c++) {
    char text[4] = {'a', (char)c, ' ', 0};
    kiln_bytes_view_t bytes = {(const uint8_t*)text, 3};
    kilni_image_ptx_limits_t limits = kilni_image_ptx_limits_default();
    kilni_image_ptx_lexer_t lexer;
    kilni_image_ptx_token_t token;
    kilni_image_ptx_lexer_init(&lexer, bytes, &limits);
    kilni_image_ptx_lexer_next(&lexer, &token);
    assert_int_equal(token.kind, KILNI_PTX_TOKEN_IDENTIFIER);
    assert_int_equal(token.text.size, strchr(kGoesOn, c) != NULL ? 2 : 1);
  }
}

// The look-up relies on the order of the list.
static void every_word_is_found_by_its_text(void** state) {
  (void)state;
  for (uint32_t i = 1; i < KILNI_PTX_MODIFIER_COUNT; i++) {
    if (i == KILNI_PTX_MODIFIER_TYPES_END) continue;
    const char* text = kilni_image_ptx_modifier_text(i);
    kiln_string_view_t view = {text, strlen(text)};
    assert_int_equal(kilni_image_ptx_modifier_find(view), i);
  }
  for (uint32_t i = 0; i < KILNI_PTX_OPCODE_COUNT; i++) {
    const char* text = kilni_image_ptx_opcode_text(i);
    kiln_string_view_t view = {text, strlen(text)};
    assert_int_equal(kilni_image_ptx_opcode_find(view), i);
  }
  static const char* const kNone[] = {"0",      "zzz", "global2",
                                      "Global", "~",   "?"};
  for (size_t i = 0; i < sizeof(kNone) / sizeof(kNone[0]); i++) {
    kiln_string_view_t view = {kNone[i], strlen(kNone[i])};
    assert_int_equal(kilni_image_ptx_modifier_find(view), KILNI_PTX_MOD_NONE);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_have_value_and_sign),
      cmocka_unit_test(malformed_tokens_are_bad),
      cmocka_unit_test(words_and_punctuation),
      cmocka_unit_test(a_digit_may_begin_a_modifier),
      cmocka_unit_test(one_terminating_nul_is_ignored),
      cmocka_unit_test(braces_are_skipped_whole),
      cmocka_unit_test(what_an_identifier_goes_on_with),
      cmocka_unit_test(every_word_is_found_by_its_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
