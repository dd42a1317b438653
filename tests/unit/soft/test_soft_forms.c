// SPDX-License-Identifier: Apache-2.0
//
// soft: what the reader and the decoder take, against what ptxas takes, of
// every combination of qualifiers (ptxas_forms.txt holds ptxas's verdicts).
//
// What ptxas refuses is refused, with its line and a Fix. What ptxas takes runs
// or is UNSUPPORTED, and then listed in that file with the reason. With
// arguments (a word of a spelling) prints the differences among such spellings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/thread.h"
#include "soft/code/soft_code.h"
#include "test_tree.h"

enum {
  TEXT_BYTES = 1 << 20,
  FORM_BYTES = 256,
  BRACES = 16,
  SPARES = 64,
  SHOWN = 40
};

#ifdef KILNI_SANITIZED
enum { STRIDE = 32 };  // every spelling takes a long time there
#else
enum { STRIDE = 1 };
#endif

// What ptxas takes and is not executed here. one-thread
typedef struct spare_t {
  char pattern[FORM_BYTES];
  size_t used;
} spare_t;

// One `form` of the file. one-thread
typedef struct family_t {
  const char* pattern;
  size_t pattern_size;
  const char* operands;
  size_t operands_size;
  const char* verdicts;  // where its lines begin
} family_t;

static struct {
  kiln_host_t host;
  kilni_base_env_t env;
  kilni_soft_memory_t* memory;
  spare_t spares[SPARES];
  size_t spare_count;
  size_t asked;
  size_t differing;
  const char* only;
} suite;

// ---- Spellings ----

// The registers of a type; NULL for a word that is no type.
static const char* registers_of(const char* word, size_t size) {
  static const struct {
    const char* type;
    const char* registers;
  } rows[] = {{"pred", "p"},  {"b128", "q"},   {"f32", "f"},   {"f64", "fd"},
              {"b64", "rd"},  {"u64", "rd"},   {"s64", "rd"},  {"b8", "h"},
              {"u8", "h"},    {"s8", "h"},     {"b16", "h"},   {"u16", "h"},
              {"s16", "h"},   {"f16", "h"},    {"bf16", "h"},  {"e4m3x2", "h"},
              {"b32", "r"},   {"e5m2x2", "h"}, {"u32", "r"},   {"s32", "r"},
              {"f16x2", "r"}, {"bf16x2", "r"}, {"u16x2", "r"}, {"s16x2", "r"},
              {"tf32", "r"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (strlen(rows[i].type) == size && !memcmp(rows[i].type, word, size)) {
      return rows[i].registers;
    }
  }
  return NULL;
}

// What a form's words say of its operands. one-thread
typedef struct words_t {
  const char* first;  // registers
  const char* last;
  uint32_t count;
  bool is_param;
} words_t;

static words_t read_words(const char* form) {
  words_t out = {"r", "r", 1, false};
  uint32_t types = 0;
  for (const char* at = strchr(form, '.'); at != NULL;) {
    const char* word = at + 1;
    at = strchr(word, '.');
    size_t size = at ? (size_t)(at - word) : strlen(word);
    const char* registers = registers_of(word, size);
    if (registers != NULL) {
      out.first = types++ ? out.last : registers;
      out.last = registers;
    }
    if (size == 2 && word[0] == 'v' && strchr("248", word[1])) {
      out.count = (uint32_t)(word[1] - '0');
    }
    if (size >= 5 && !memcmp(word, "param", 5)) out.is_param = true;
  }
  return out;
}

static void put(char* out, const char* text) {
  strncat(out, text, FORM_BYTES - strlen(out) - 1);
}

static void put_registers(char* out, const char* registers, uint32_t start,
                          uint32_t count) {
  char one[32];
  if (count > 1) put(out, "{");
  for (uint32_t i = 0; i < count; i++) {
    snprintf(one, sizeof(one), "%s%%%s%u", i ? "," : "", registers, start + i);
    put(out, one);
  }
  if (count > 1) put(out, "}");
}

// The instruction: tools/record_ptxas.py has the same in Python.
static void spell(const char* form, const family_t* family, char* out) {
  words_t words = read_words(form);
  snprintf(out, FORM_BYTES, "%s ", form);
  for (size_t i = 0; i < family->operands_size; i++) {
    char c = family->operands[i];
    if (c != '$') {
      char text[2] = {c, 0};
      put(out, text);
      continue;
    }
    switch (family->operands[++i]) {
      case 'd':
        put_registers(out, words.last, 1, words.count);
        break;
      case 'b':
        put_registers(out, words.last, 2, words.count);
        break;
      case 'c':
        put_registers(out, words.last, 3, words.count);
        break;
      case 't':
        put_registers(out, words.first, 1, words.count);
        break;
      default:
        put(out, !words.is_param           ? "[%rd1]"
                 : !strncmp(form, "st", 2) ? "[cpa]"
                                           : "[pa]");
    }
  }
}

// ---- Asking ----

enum { REFUSED, TAKEN, UNSUPPORTED };

static int judge_status(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return TAKEN;
  int verdict = kiln_status_code(status) == KILN_STATUS_UNSUPPORTED
                    ? UNSUPPORTED
                    : REFUSED;
  assert_non_null(kiln_status_fix(status));
  assert_non_null(strstr(kiln_status_message(status), "line 10"));
  kiln_status_free(status);
  return verdict;
}

static int ask(const char* instruction) {
  static const char head[] =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .align 16 .b8 pa[64])\n{\n"
      ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>;\n"
      ".reg .b64 %rd<20>;\n.reg .f32 %f<20>; .reg .f64 %fd<20>; "
      ".reg .b128 %q<9>;\n.param .align 16 .b8 cpa[64];\n";
  char text[sizeof(head) + FORM_BYTES + 16];
  int size = snprintf(text, sizeof(text), "%s%s\nret;\n}\n", head, instruction);
  kilni_image_ptx_module_t* module;
  kiln_status_t status = kilni_image_ptx_module_create(
      (kiln_bytes_view_t){(const uint8_t*)text, (size_t)size}, "form", NULL,
      suite.host.allocator, &module);
  if (!kiln_status_is_ok(status)) return judge_status(status);
  kilni_soft_code_t* code;
  status = kilni_soft_code_create(&suite.host, module, &kilni_soft_lanes_plain,
                                  suite.memory, &code);
  kilni_image_ptx_module_release(module);
  int verdict = judge_status(status);
  kilni_soft_code_destroy(code);
  return verdict;
}

// `*` stands for any characters.
static bool fits(const char* pattern, const char* text) {
  if (*pattern == 0) return *text == 0;
  if (*pattern == '*') {
    return fits(pattern + 1, text) || (*text && fits(pattern, text + 1));
  }
  return *text && (*pattern == *text || *pattern == '?') &&
         fits(pattern + 1, text + 1);
}

static bool is_spare(const char* form) {
  for (size_t i = 0; i < suite.spare_count; i++) {
    if (fits(suite.spares[i].pattern, form)) {
      suite.spares[i].used++;
      return true;
    }
  }
  return false;
}

static void compare(const char* form, const family_t* family, bool taken) {
  char instruction[FORM_BYTES];
  spell(form, family, instruction);
  if (suite.only && !strstr(instruction, suite.only)) return;
  int verdict = ask(instruction);
  suite.asked++;
  const char* fault = NULL;
  if (!taken && verdict == TAKEN) fault = "ptxas refuses it";
  if (taken && verdict == REFUSED) fault = "ptxas takes it";
  if (taken && verdict == UNSUPPORTED && !is_spare(form)) {
    fault = "ptxas takes it, and no reason is listed";
  }
  if (fault == NULL) return;
  if (suite.only || suite.differing < SHOWN) {
    print_message("%s: %s\n", instruction, fault);
  }
  suite.differing++;
}

// ---- The file ----

// The verdicts of a family, one after another. one-thread
typedef struct verdicts_t {
  const char* at;
  char digit;
  uint32_t repeats;
  uint32_t bit;
} verdicts_t;

static char next_char(verdicts_t* v) {
  while (*v->at == '\n' || (v->at[0] == '=' && v->at[1] == ' ')) {
    v->at += *v->at == '\n' ? 1 : 2;
  }
  return *v->at++;
}

static bool next_verdict(verdicts_t* v) {
  if (v->bit == 0 && v->repeats > 0) {
    v->repeats--;
    v->bit = 4;
  }
  if (v->bit == 0) {
    v->digit = next_char(v);
    v->bit = 4;
    verdicts_t ahead = *v;
    if (next_char(&ahead) == '*') {
      *v = ahead;
      uint32_t times = 0;
      for (char c; (c = next_char(v)) != '.';) {
        times = times * 10 + (uint32_t)(c - '0');
      }
      v->repeats = times - 1;
    }
  }
  const char* digits = "0123456789abcdef";
  const char* place = v->digit ? strchr(digits, v->digit) : NULL;
  assert_non_null(place);
  v->bit--;
  return (place - digits) >> v->bit & 1;
}

// Goes through the spellings, the last brace fastest.
static void walk(const family_t* family, verdicts_t* verdicts, const char* at,
                 char* form, size_t size) {
  const char* end = family->pattern + family->pattern_size;
  while (at < end && *at != '{') form[size++] = *at++;
  if (at == end) {
    form[size] = 0;
    bool taken = next_verdict(verdicts);
    static size_t turn;
    if (++turn % STRIDE == 0) compare(form, family, taken);
    return;
  }
  const char* close = memchr(at, '}', (size_t)(end - at));
  assert_non_null(close);
  for (const char* choice = at + 1; choice <= close;) {
    const char* stop = choice;
    while (*stop != ',' && stop != close) stop++;
    memcpy(form + size, choice, (size_t)(stop - choice));
    walk(family, verdicts, close + 1, form, size + (size_t)(stop - choice));
    choice = stop + 1;
  }
}

static void read_spare(const char* line, size_t size) {
  const char* why = memchr(line, '#', size);
  assert_non_null(why);
  assert_true(suite.spare_count < SPARES);
  spare_t* spare = &suite.spares[suite.spare_count++];
  snprintf(spare->pattern, sizeof(spare->pattern), "%.*s",
           (int)(why - line - 1), line);
}

static void read_form(const char* line, size_t size, const char* next) {
  const char* bar = memchr(line, '|', size);
  assert_non_null(bar);
  char form[FORM_BYTES];
  family_t family = {line, (size_t)(bar - line) - 1, bar + 2,
                     size - (size_t)(bar - line) - 2, next};
  verdicts_t verdicts = {.at = next};
  walk(&family, &verdicts, family.pattern, form, 0);
}

static void test_forms(void** state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof(path), "%s/tests/unit/soft/ptxas_forms.txt",
           test_tree());
  uint8_t* text;
  size_t size;
  assert_true(kiln_status_is_ok(kilni_base_file_read(
      suite.host.allocator, path, TEXT_BYTES, &text, &size)));
  const char* end = (const char*)text + size;
  for (const char* line = (const char*)text; line < end;) {
    const char* stop = memchr(line, '\n', (size_t)(end - line));
    assert_non_null(stop);
    size_t length = (size_t)(stop - line);
    if (length > 6 && !memcmp(line, "spare ", 6)) {
      read_spare(line + 6, length - 6);
    } else if (length > 5 && !memcmp(line, "form ", 5)) {
      read_form(line + 5, length - 5, stop + 1);
    }
    line = stop + 1;
  }
  kilni_base_file_free(suite.host.allocator, text, size);
  print_message("%zu spellings asked, %zu differ\n", suite.asked,
                suite.differing);
  assert_int_equal(suite.differing, 0);
  assert_true(suite.only || suite.asked > 40000 / STRIDE);
}

// A reason that no spelling needs is out of date.
static void test_spares(void** state) {
  (void)state;
  if (suite.only || STRIDE > 1) {
    print_message("not every spelling was asked\n");
    skip();
  }
  for (size_t i = 0; i < suite.spare_count; i++) {
    if (suite.spares[i].used == 0) {
      fail_msg("no spelling is left out by \"%s\"", suite.spares[i].pattern);
    }
  }
}

int main(int argc, char** argv) {
  suite.only = argc > 1 ? argv[1] : NULL;
  suite.host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                             .env = &suite.env,
                             .worker_count = 1,
                             .process_id = kilni_base_process_id()};
  kiln_status_t status =
      kilni_soft_memory_create(&suite.host, true, &suite.memory);
  if (!kiln_status_is_ok(status)) return 2;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                     cmocka_unit_test(test_spares)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kilni_soft_memory_destroy(suite.memory);
  return failed;
}
