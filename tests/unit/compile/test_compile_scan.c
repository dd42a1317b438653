// SPDX-License-Identifier: Apache-2.0
//
// compile: what a source includes, and the bytes that are kept of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile_files.h"
#include "compile/compile_scan.h"

// What was found: "q:a.h a:b.h c:NAME d:NAME=value"; a value that is not plain
// is "?". one-thread
typedef struct list_t {
  char text[512];
} list_t;

static bool note(void* user, const kilni_compile_scan_found_t* found) {
  list_t* list = user;
  size_t used = strlen(list->text);
  // What anybody has is seen below.
  if (found->kind == KILNI_SCAN_PIECE && found->name.size < 2) return true;
  if (found->kind == KILNI_SCAN_WORD) return true;
  snprintf(list->text + used, sizeof(list->text) - used, "%s%c%s:%.*s",
           used ? " " : "", " qacdtp#?!*"[found->kind],
           found -> next ? "n" : "", (int)found->name.size, found->name.data);
  if (found->kind != KILNI_SCAN_DEFINE) return true;
  bool plain = found->value.data != NULL;
  used = strlen(list->text);
  snprintf(list->text + used, sizeof(list->text) - used, "=%.*s",
           plain ? (int)found->value.size : 1, plain ? found->value.data : "?");
  return true;
}

static void every_form_is_seen(void** state) {
  (void)state;
  static const struct {
    const char* source;
    const char* found;
  } rows[] = {
      {"", ""},
      {"#include \"a.h\"\n#include <b/c.h>\n", "q:a.h a:b/c.h"},
      {"#include \"a.h\"", "q:a.h"},
      {"  # /* x */ include /* y */ \"a.h\" // z\n", "q:a.h"},
      {"/* a\n b */ #include \"a.h\"\n", "q:a.h"},
      {"%:include <a.h>\n", "a:a.h"},
      {"#inc\\\nlude \\\r\n\"a.h\"\n", "q:a.h"},
      {"int x; #include \"no.h\"\n", "p:include"},
      {"// #include \"no.h\"\n// \\\n#include \"no.h\"\n", ""},
      {"/* #include \"no.h\" */\n", ""},
      {"const char* s = \"\\\"\\n#include <no>\";\n", ""},
      {"auto s = R\"x(\n#include \"no.h\"\n)y\" )x\";\n#include \"a.h\"\n",
       "q:a.h"},
      {"auto s = u8R\"(\n#include \"no.h\"\n)\";\n", ""},
      // A raw string without an end hides nothing.
      {"#if 0\nR\"x(\n#endif\n#include \"a.h\"\n", "q:a.h"},
      // Both sides of a condition.
      {"#if A\n#include \"a.h\"\n#else\n#include \"b.h\"\n#endif\n",
       "q:a.h q:b.h"},
      {"#ifdef A\n#error don't\n#include \"a.h\"\n#endif\n", "q:a.h"},
      {"int n = 1'000'000; char c = '\"';\n#include \"a.h\"\n", "q:a.h"},
      {"#if __has_include(<a.h>) && !__has_include(\"b.h\")\n#endif\n",
       "a:a.h q:b.h"},
      {"#elif defined(__has_include) && __has_include ( <a.h> )\n", "a:a.h"},
      {"#if HAS(<a.h>)\n", "a:a.h"},
      {"#if (1 < 2) && (3 > 2)\n", ""},
      {"#ifdef __has_include\n#elif defined __has_include\n#endif\n", ""},
      {"#define HAS(x) __has_include(x)\n", "!:HAS"},
      {"#define HAS(...) (__has_include ( __VA_ARGS__ ))\n", "*:__has_include"},
      {"#define HAS __has_include // x\n", "!:HAS d:HAS=?"},
      {"#define HAS(x) __has_include\n", "*:__has_include"},
      {"#define HAS(x, y) __has_include(x)\n", "*:__has_include"},
      {"#define HAS(x) __has_include(<x>)\n", "*:__has_include"},
      {"#define HAS(x) __has_include(<y.h>)\n", "c:<y.h>"},
      {"#define HAS(x) __has_include_next(x)\n", "*:__has_include_next"},
      {"#define HAVE __has_include(<y.h>) && 1\n", "c:<y.h> d:HAVE=?"},
      {"#define HAVE __has_include(\"y.h\")\n", "*:__has_include d:HAVE=?"},
      {"#define HAVE __has_include(NAME)\n", "*:__has_include d:HAVE=?"},
      {"#define A\nint a = __has_include(\"y.h\");\n", "d:A= q:y.h"},
      {"#if CALL(__has_include, <a.h>)\n", "*:__has_include"},
      {"#define CALL(a) a##include(<a.h>)\n#if CALL(__has_)\n",
       "#:## p:include p:__has_"},
      {"#if __has_include(NAME)\n", "c:NAME"},
      {"#if __has_include( NAME /* ) */ ) && 1\n", "c:NAME /* ) */"},
      {"#include_next <a.h>\n#if __has_include_next(<b.h>)\n", "an:a.h an:b.h"},
      {"#include NAME\n", "c:NAME"},
      {"#include\n", ""},
      {"#include \"\"\n", "c:\"\""},
      {"#pragma once\n#define X \"a\n#include \"b.h\"\n", "d:X=? q:b.h"},
      {"#define A <b/c-2.h> // why\n#define B \"d e.h\" /* x */\n",
       "d:A=<b/c-2.h> d:B=\"d e.h\""},
      {"#define A\n#define B(x) <b.h>\n#define C (1)\n#define D x y\n",
       "d:A= d:C=? d:D=?"},
      {"#define A a/* */b\n#define B a \\\n b\n#define C a\\\nb\n",
       "d:A=? d:B=? d:C=ab"},
      // What stands for a time, but for comments and texts.
      {"char a[] = __DATE__ __TIME__;\n", "t:__DATE__ t:__TIME__"},
      {"#define S __TIMESTAMP__\n", "t:__TIMESTAMP__ d:S=__TIMESTAMP__"},
      {"#define S(x) x __TI\\\nME__\n", "t:__TIME__"},
      {"// __TIME__\n/* __DATE__ */ char a[] = \"__TIME__\", __TIME__x;\n", ""},
      {"#include NAME // x\n#include /* y */ A B\n", "c:NAME // x c:A B"},
      // What ## may put together, and what an old dialect reads otherwise.
      {"#define CAT(a, b) a##b\nchar a[] = CAT(__TI, ME__);\n",
       "#:## p:__TI p:ME__"},
      {"#define A _ %:%: _TIME ## __\n", "#:## p:_TIME p:__ d:A=?"},
      {"// ## \nchar a[] = \"##\" \"TIME\"; // ME__\n", ""},
      {"?\?=include \"a.h\"\n", "?:?\?= p:include"},
      {"// why?\?/\n#include \"a.h\"\n", "?:?\?/ q:a.h"},
      {"int a = b ? c : d; // ?? ?=\n", ""},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    list_t list = {""};
    kiln_string_view_t text = {rows[i].source, strlen(rows[i].source)};
    assert_null(
        kilni_compile_scan_text(kiln_allocator_libc(), text, note, &list));
    if (strcmp(list.text, rows[i].found) != 0) {
      print_error("row %u: %s\n", (unsigned)i, rows[i].source);
    }
    assert_string_equal(list.text, rows[i].found);
  }
}

static kilni_compile_scan_pieces_t pieces(const char* words) {
  kilni_compile_scan_pieces_t set = {0};
  kiln_string_view_t rest = kilni_base_sv(words);
  kiln_string_view_t word;
  while (kilni_base_sv_split(&rest, ' ', &word)) {
    kilni_compile_scan_add_piece(&set, NULL, word);
  }
  return set;
}

static void pieces_make_a_name_or_none(void** state) {
  (void)state;
  static const struct {
    const char* words;
    const char* whole;
  } rows[] = {{"__TI ME__", "__TIME__"}, {"_ DATE", "__DATE__"},
              {"_ T I M E", "__TIME__"}, {"__TIME STAMP__", "__TIMESTAMP__"},
              {"__TI M__", NULL},        {"TI ME __T", NULL},
              {"__T ME__", NULL},        {"T _ A", NULL}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kilni_compile_scan_pieces_t set = pieces(rows[i].words);
    kilni_compile_scan_pieces_t none = {0};
    const char* whole = kilni_compile_scan_whole(&set, &none);
    if (rows[i].whole == NULL) {
      assert_null(whole);
    } else {
      assert_non_null(whole);
      assert_string_equal(whole, rows[i].whole);
    }
  }
  kilni_compile_scan_pieces_t strong = {0}, weak = {0};
  kilni_compile_scan_add_piece(&strong, &weak, kilni_base_sv("__"));
  kilni_compile_scan_add_piece(&strong, &weak, kilni_base_sv("TIME"));
  kilni_compile_scan_pieces_t none = {0};
  assert_null(kilni_compile_scan_whole(&strong, &none));
  assert_string_equal(kilni_compile_scan_whole(&strong, &weak), "__TIME__");
}

// What is computed knows its line, continued ones and comments counted.
static bool note_line(void* user, const kilni_compile_scan_found_t* found) {
  uint32_t* line = user;
  if (found->kind == KILNI_SCAN_COMPUTED) *line = found->line;
  return true;
}

static void a_macro_knows_its_line(void** state) {
  (void)state;
  static const char source[] =
      "// one \\\r\n two\n/* three\n four */\n#define X a\\\nb\n"
      "#include NAME\n";
  uint32_t line = 0;
  kiln_string_view_t text = {source, sizeof(source) - 1};
  assert_null(
      kilni_compile_scan_text(kiln_allocator_libc(), text, note_line, &line));
  assert_int_equal(line, 7);
}

static void write_one(kilni_base_str_t* out) {
  static const char* const names[] = {"add<int>", "_Z3addIiEvv"};
  char path[] = "/a/b.h";
  kilni_compile_file_dep_t dep = {path,  KILNI_FILE_PRESENT, 0, 7, 8, -9,
                                  "0123"};
  kilni_compile_files_t files = {
      kiln_allocator_libc(), &dep, 1, 1, NULL, 0, 0, NULL, NULL, NULL};
  kilni_compile_kept_t kept = {KILN_CODE_FORMAT_PTX,
                               13000,
                               {"a log", 5},
                               {"", 0},
                               {"sm_90", 5},
                               names,
                               1,
                               &files};
  kilni_base_str_init(out, kiln_allocator_libc(), 1 << 20);
  kilni_compile_kept_write(out, &kept);
  assert_null(kilni_base_str_status(out));
}

static bool read_one(kiln_bytes_view_t bytes) {
  kilni_compile_kept_reader_t reader;
  kiln_code_name_t name;
  kilni_compile_file_dep_t dep;
  if (!kilni_compile_kept_open(&reader, bytes)) return false;
  for (uint32_t i = 0; i < reader.name_count; i++) {
    if (!kilni_compile_kept_name(&reader, &name)) return false;
  }
  for (uint32_t i = 0; i < reader.file_count; i++) {
    if (!kilni_compile_kept_file(&reader, &dep)) return false;
  }
  return true;
}

static void what_is_kept_comes_back(void** state) {
  (void)state;
  kilni_base_str_t text;
  write_one(&text);
  kiln_bytes_view_t bytes = {(const uint8_t*)text.data, text.size};
  kilni_compile_kept_reader_t reader;
  kiln_code_name_t name;
  kilni_compile_file_dep_t dep;
  assert_true(kilni_compile_kept_open(&reader, bytes));
  assert_int_equal(reader.line, 13000);
  assert_string_equal(reader.log.data, "a log");
  assert_string_equal(reader.arch.data, "sm_90");
  assert_int_equal(reader.name_count, 1);
  assert_true(kilni_compile_kept_name(&reader, &name));
  assert_string_equal(name.lowered, "_Z3addIiEvv");
  assert_true(kilni_compile_kept_file(&reader, &dep));
  assert_string_equal(dep.path, "/a/b.h");
  assert_int_equal(dep.modified_ns, -9);
  assert_string_equal(dep.digest, "0123");
  assert_false(kilni_compile_kept_file(&reader, &dep));
  kilni_base_str_deinit(&text);
}

static void what_is_cut_short_is_refused(void** state) {
  (void)state;
  kilni_base_str_t text;
  write_one(&text);
  for (size_t size = 0; size < text.size; size++) {
    kiln_bytes_view_t bytes = {(const uint8_t*)text.data, size};
    assert_false(read_one(bytes));
  }
  kilni_base_str_deinit(&text);
}

static bool count_found(void* user, const kilni_compile_scan_found_t* found) {
  uint32_t* count = user;
  *count += found->kind == KILNI_SCAN_QUOTE;
  return true;
}

// Each raw string without an end is looked for to the end of the text: a few
// are, and a million of them are refused instead of taking hours.
static void raw_strings_without_an_end(void** state) {
  (void)state;
  static char text[6 << 20];
  size_t size = 0;
  while (size + 8 < sizeof(text)) {
    memcpy(text + size, "R\"(\n", 4);
    size += 4;
  }
  uint32_t count = 0;
  kiln_status_t status = kilni_compile_scan_text(
      kiln_allocator_libc(), (kiln_string_view_t){text, size}, count_found,
      &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  size = 0;
  for (int i = 0; i < 64; i++, size += 4) memcpy(text + size, "R\"(\n", 4);
  memcpy(text + size, "#include \"a.h\"\n", 15);
  assert_null(kilni_compile_scan_text(kiln_allocator_libc(),
                                      (kiln_string_view_t){text, size + 15},
                                      count_found, &count));
  assert_int_equal(count, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_is_seen),
      cmocka_unit_test(pieces_make_a_name_or_none),
      cmocka_unit_test(raw_strings_without_an_end),
      cmocka_unit_test(a_macro_knows_its_line),
      cmocka_unit_test(what_is_kept_comes_back),
      cmocka_unit_test(what_is_cut_short_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
