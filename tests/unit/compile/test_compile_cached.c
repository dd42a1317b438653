// SPDX-License-Identifier: Apache-2.0
//
// compile: results out of a cache, over NVRTC's null provider and files of the
// test's own.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "compile/compile.h"
#include "table/nvrtc_table.h"
#include "fault_alloc.h"

static fault_alloc_t g_watch;
static kilni_base_env_t g_env;
static kiln_host_t g_host;
static kiln_compiler_t* g_compiler;
static kiln_cache_t* g_cache;
static char g_dir[] = "/tmp/kiln-compile-XXXXXX";

static void write_file(const char* name, const char* text) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", g_dir, name);
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void remove_file(const char* name) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", g_dir, name);
  (void)unlink(path);
}

// Compiles, and expects what the cache had to do with it.
static void expect(const char* source, kiln_compile_options_t* options,
                   uint32_t wanted, const char* reason) {
  options->cache = g_cache;
  kiln_compile_result_t* result = NULL;
  kiln_string_view_t text = {source, strlen(source)};
  assert_null(kiln_compiler_compile(g_compiler, text, options, &result));
  if (kiln_compile_result_cache(result) != wanted) {
    print_error("cache: %s\n", kiln_compile_result_cache_reason(result));
  }
  assert_int_equal(kiln_compile_result_cache(result), wanted);
  assert_non_null(strstr(kiln_compile_result_cache_reason(result), reason));
  kiln_code_t* code = kiln_compile_result_code(result);
  assert_non_null(strstr((const char*)kiln_code_bytes(code).data, ".version"));
  assert_int_equal(kiln_code_producer_line(code), 13000);
  kiln_compile_result_release(result);
}

static void hit(const char* source, kiln_compile_options_t* options) {
  expect(source, options, KILN_COMPILE_CACHE_HIT, "memory");
}

static void miss(const char* source, kiln_compile_options_t* options) {
  expect(source, options, KILN_COMPILE_CACHE_MISS, "");
}

static int fresh(void** state) {
  (void)state;
  kiln_cache_options_t options = kiln_cache_options_default();
  options.disk = KILN_SWITCH_OFF;
  options.allocator = &g_host.allocator;
  assert_null(kiln_cache_create(&options, &g_cache));
  return 0;
}

static int done(void** state) {
  (void)state;
  kiln_cache_release(g_cache);
  g_cache = NULL;
  return 0;
}

static const char kPlain[] = "__global__ void k() {}\n";

// ---- How often files are looked at ----

static uint32_t g_looks;
static uint32_t g_opens;

int __real_stat(const char* path, struct stat* out);
int __wrap_stat(const char* path, struct stat* out);
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);

int __wrap_stat(const char* path, struct stat* out) {
  if (strncmp(path, g_dir, strlen(g_dir)) == 0) g_looks++;
  return __real_stat(path, out);
}

int __wrap_open(const char* path, int flags, ...) {
  if (strncmp(path, g_dir, strlen(g_dir)) == 0) g_opens++;
  return __real_open(path, flags, 0600);
}

// As if they were written long ago: else their content is compared.
static void make_old(const char* name) {
  char path[256];
  struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
  snprintf(path, sizeof(path), "%s/%s", g_dir, name);
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_hit_looks_once_at_each_header(void** state) {
  (void)state;
  enum { HEADERS = 40 };
  char source[HEADERS * 32] = "";
  for (int i = 0; i < HEADERS; i++) {
    char name[32], text[64];
    snprintf(name, sizeof(name), "once%d.h", i);
    snprintf(text, sizeof(text), "#include <once%d.h>\n", (i + 1) % HEADERS);
    write_file(name, text);
    make_old(name);
    size_t used = strlen(source);
    snprintf(source + used, sizeof(source) - used, "#include <%s>\n", name);
  }
  const char* const dirs[] = {g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  miss(source, &options);
  g_looks = 0;
  g_opens = 0;
  hit(source, &options);
  assert_int_equal(g_looks, HEADERS);
  assert_int_equal(g_opens, 0);
  // By content each is opened, too.
  options.cache_verify = KILN_SWITCH_ON;
  hit(source, &options);
  assert_int_equal(g_opens, HEADERS);
}

static void everything_is_in_the_key(void** state) {
  (void)state;
  static const char* const names[] = {"k", "add<float>"};
  static const char* const defines[] = {"N=3"};
  static const char* const raw[] = {"--fmad=false"};
  static const char* const dirs[] = {"/nonexistent-a", "/nonexistent-b"};
  static const kiln_compile_file_t headers[] = {
      {"a.h", {(const uint8_t*)"//1", 3}}, {"a.h", {(const uint8_t*)"//2", 3}}};
  kiln_compile_options_t options = kiln_compile_options_default();
  miss(kPlain, &options);
  hit(kPlain, &options);
  miss("__global__ void k() { }\n", &options);
#define CHANGED(statement)  \
  do {                      \
    statement;              \
    miss(kPlain, &options); \
    hit(kPlain, &options);  \
  } while (0)
  CHANGED(options.file_name = "other.cu");
  CHANGED(options.arch = "compute_75");
  CHANGED(options.defines = defines; options.define_count = 1);
  CHANGED(options.options = raw; options.option_count = 1);
  CHANGED(options.ftz = KILN_SWITCH_ON);
  CHANGED(options.ftz = KILN_SWITCH_OFF);
  CHANGED(options.max_registers = 32);
  CHANGED(options.std = "c++17");
  CHANGED(options.include_dirs = dirs; options.include_dir_count = 1);
  CHANGED(options.include_dir_count = 2);
  CHANGED(options.headers = headers; options.header_count = 1);
  CHANGED(options.headers = headers + 1);
  CHANGED(options.name_expressions = names; options.name_expression_count = 1);
  CHANGED(options.name_expression_count = 2);
#undef CHANGED
}

static void a_hit_has_names_and_headers(void** state) {
  (void)state;
  static const char* const names[] = {"k", "add<float>"};
  write_file("named.h", "//\n");
  const char* const dirs[] = {g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.name_expressions = names;
  options.name_expression_count = 2;
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  options.cache = g_cache;
  static const char source[] = "#include <named.h>\n";
  for (int i = 0; i < 2; i++) {
    kiln_compile_result_t* result = NULL;
    kiln_string_view_t text = {source, sizeof(source) - 1};
    assert_null(kiln_compiler_compile(g_compiler, text, &options, &result));
    assert_int_equal(kiln_compile_result_cache(result),
                     i == 0 ? KILN_COMPILE_CACHE_MISS : KILN_COMPILE_CACHE_HIT);
    assert_string_equal(
        kiln_code_lowered_name(kiln_compile_result_code(result), "add<float>"),
        "add<float>");
    assert_int_equal(kiln_compile_result_header_count(result), 1);
    assert_non_null(strstr(kiln_compile_result_header(result, 0), "/named.h"));
    assert_null(kiln_compile_result_header(result, 1));
    assert_true((i == 0) == (kiln_compile_result_option_count(result) > 0));
    kiln_compile_result_release(result);
  }
}

static void a_changed_header_is_a_miss(void** state) {
  (void)state;
  const char* const dirs[] = {g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  static const char source[] = "#include <outer.h>\n";
  write_file("outer.h", "#if 0\n#include \"inner.h\"\n#endif\n");
  write_file("inner.h", "//1\n");
  miss(source, &options);
  hit(source, &options);
  // Same size, likely the same time: what was just written is read again.
  write_file("inner.h", "//2\n");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
  hit(source, &options);
  options.cache_verify = KILN_SWITCH_ON;
  hit(source, &options);
  remove_file("inner.h");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
  hit(source, &options);
  write_file("inner.h", "//1\n");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
}

// A header of that name further ahead on the path would be found first.
static void a_new_header_ahead_is_a_miss(void** state) {
  (void)state;
  char ahead[300];
  snprintf(ahead, sizeof(ahead), "%s/ahead", g_dir);
  const char* const dirs[] = {ahead, g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 2;
  static const char source[] = "#include <late.h>\n";
  write_file("late.h", "//\n");
  miss(source, &options);
  hit(source, &options);
  char made[700];
  snprintf(made, sizeof(made), "mkdir -p '%s' && : > '%s/late.h'", ahead,
           ahead);
  assert_int_equal(system(made), 0);
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
  hit(source, &options);
}

static void quotes_look_beside_the_source(void** state) {
  (void)state;
  char name[300];
  snprintf(name, sizeof(name), "%s/k.cu", g_dir);
  kiln_compile_options_t options = kiln_compile_options_default();
  options.file_name = name;
  static const char source[] = "#include \"beside.h\"\n";
  write_file("beside.h", "#include \"../up/../up/never.h\"\n");
  miss(source, &options);
  hit(source, &options);
  write_file("beside.h", "// other\n");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
  // Without the folder of the source it is not even looked for.
  options.source_include = KILN_SWITCH_OFF;
  miss(source, &options);
  write_file("beside.h", "// and other\n");
  hit(source, &options);
}

static void virtual_headers_go_first(void** state) {
  (void)state;
  static const char inside[] = "#include <later.h>\n";
  const kiln_compile_file_t headers[] = {
      {"outer2.h", {(const uint8_t*)inside, sizeof(inside) - 1}}};
  const char* const dirs[] = {g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  options.headers = headers;
  options.header_count = 1;
  static const char source[] = "#include <outer2.h>\n";
  write_file("outer2.h", "//\n");
  write_file("later.h", "//1\n");
  miss(source, &options);
  write_file("outer2.h", "// the file of that name counts for nothing\n");
  hit(source, &options);
  write_file("later.h", "//2\n");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
}

static void what_cannot_be_cached_says_why(void** state) {
  (void)state;
  static const char* const raw[] = {"-I/tmp"};
  kiln_compile_options_t options = kiln_compile_options_default();
  for (int i = 0; i < 2; i++) {
    expect("\n#include NAME_OF_NOBODY(1)\n", &options,
           KILN_COMPILE_CACHE_UNCACHEABLE,
           "macro computes: NAME_OF_NOBODY(1) (kernel.cu:2)");
  }
  // A time is that of its own compilation, wherever it stands.
  const char* const dirs[] = {g_dir};
  const char* const stamp[] = {"STAMP=__TIME__"};
  for (int i = 0; i < 2; i++) {
    expect("const char a[] = __TIME__;\n", &options,
           KILN_COMPILE_CACHE_UNCACHEABLE, "__TIME__ (kernel.cu)");
    expect("#define A __DATE__\n", &options, KILN_COMPILE_CACHE_UNCACHEABLE,
           "__DATE__");
    write_file("stamp.h", "#define STAMP __TIMESTAMP__\n");
    options.include_dirs = dirs;
    options.include_dir_count = 1;
    expect("#include \"stamp.h\"\n", &options, KILN_COMPILE_CACHE_UNCACHEABLE,
           "__TIMESTAMP__ (");
    options.defines = stamp;
    options.define_count = 1;
    expect(kPlain, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "as the time");
    options = kiln_compile_options_default();
  }
  // What only a preprocessor can read, in the source, a header or an option.
  static const char* const end[] = {"END=ME__"};
  static const char* const pair[] = {"CAT(a,b)=a##b"};
  for (int i = 0; i < 2; i++) {
    expect("?\?=include \"old.h\"\n", &options, KILN_COMPILE_CACHE_UNCACHEABLE,
           "a trigraph, ?\?= (kernel.cu)");
    expect("// why?\?/\nint a;\n", &options, KILN_COMPILE_CACHE_UNCACHEABLE,
           "a trigraph, ?\?/ (kernel.cu)");
    expect("#define CAT(a, b) a##b\nconst char a[] = CAT(__TI, ME__);\n",
           &options, KILN_COMPILE_CACHE_UNCACHEABLE, "## may make __TIME__");
    write_file("stamp.h", "#define BEGIN __DA\n#define CAT(a, b) a##b\n");
    options.include_dirs = dirs;
    options.include_dir_count = 1;
    expect("#include \"stamp.h\"\n#define END TE__\n", &options,
           KILN_COMPILE_CACHE_UNCACHEABLE, "## may make __DATE__");
    options.defines = end;
    options.define_count = 1;
    expect("#define A __TI ## END\n", &options, KILN_COMPILE_CACHE_UNCACHEABLE,
           "## may make __TIME__");
    options.defines = pair;
    expect("const char a[] = CAT(__TIME, STAMP__);\n", &options,
           KILN_COMPILE_CACHE_UNCACHEABLE, "## may make __TIMESTAMP__");
    options = kiln_compile_options_default();
  }
  // More than are examined: compiled all the same.
  enum { TOO_MANY = 65537 };
  char* many = malloc(TOO_MANY * 12 + 1);
  assert_non_null(many);
  for (size_t i = 0; i < TOO_MANY; i++) {
    memcpy(many + i * 12, "#include  N\n", 13);
  }
  expect(many, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "than are examined");
  free(many);
  options.time_file = "t.csv";
  expect(kPlain, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "times");
  options = kiln_compile_options_default();
  options.pch = KILN_SWITCH_ON;
  expect(kPlain, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "precompiled");
  options = kiln_compile_options_default();
  options.options = raw;
  options.option_count = 1;
  expect(kPlain, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "raw option");
  options = kiln_compile_options_default();
  kiln_compile_result_t* result = NULL;
  kiln_string_view_t text = {kPlain, sizeof(kPlain) - 1};
  assert_null(kiln_compiler_compile(g_compiler, text, &options, &result));
  assert_int_equal(kiln_compile_result_cache(result), KILN_COMPILE_CACHE_NONE);
  kiln_compile_result_release(result);
}

// A header that a macro names is one of those that it is ever defined as.
static void macros_name_headers(void** state) {
  (void)state;
  const char* const dirs[] = {g_dir};
  const char* const defines[] = {"PICK=two"};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  static const char source[] =
      "#include <root.h>\n#define HEADER <ROOT/PICK.h>\n#include HEADER\n";
  char sub[400];
  snprintf(sub, sizeof(sub), "mkdir -p '%s/low'", g_dir);
  assert_int_equal(system(sub), 0);
  write_file("root.h",
             "#ifndef PICK\n#define PICK one\n#endif\n#define ROOT low\n");
  write_file("low/one.h", "//1\n");
  // What a macro leads to may define more macros.
  write_file("low/two.h", "#include DEEP\n#define DEEP \"three.h\"\n");
  write_file("low/three.h", "//3\n");
  miss(source, &options);
  hit(source, &options);
  write_file("low/one.h", "//2\n");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
  // `two` is a value only where an option says so.
  write_file("low/three.h", "//4\n");
  hit(source, &options);
  options.defines = defines;
  options.define_count = 1;
  miss(source, &options);
  hit(source, &options);
  write_file("low/three.h", "//5\n");
  expect(source, &options, KILN_COMPILE_CACHE_MISS, "changed");
  // A raw option may define anything.
  static const char* const raw[] = {"-DROOT=other"};
  options.options = raw;
  options.option_count = 1;
  expect(source, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "HEADER");
}

// A header that appears is seen also where a macro asks for it; where nobody
// can say what is asked for, nothing is kept.
static void macros_ask_for_headers(void** state) {
  (void)state;
  const char* const dirs[] = {g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  static const char* const followed[] = {
      "#define HAVE __has_include(<asked.h>)\n#if HAVE\n#endif\n",
      "#define HAS(x) __has_include(x)\n#if HAS(<asked.h>)\n#endif\n",
      "#define HAS __has_include\n#if HAS(<asked.h>)\n#endif\n",
      "#define N asked\n#define HAVE __has_include(<N.h>)\n#if HAVE\n#endif\n",
      "int a = __has_include(<asked.h>);\n",
  };
  for (size_t i = 0; i < sizeof(followed) / sizeof(followed[0]); i++) {
    remove_file("asked.h");
    miss(followed[i], &options);
    hit(followed[i], &options);
    write_file("asked.h", "\n");
    expect(followed[i], &options, KILN_COMPILE_CACHE_MISS, "changed");
  }
  static const char* const unclear[] = {
      "#define HAVE __has_include(\"asked.h\")\n#if HAVE\n#endif\n",
      "#define T(x) __has_include(x)\n#define H <a.h>\n#if T(H)\n#endif\n",
      "#define HAS(x) __has_include(<x>)\n#if HAS(asked.h)\n#endif\n",
      "#define HAS(x) __has_include(x)\n#define HAVE HAS(<asked.h>)\n",
      "#define HAS __has_include\nint a = HAS(<asked.h>);\n",
  };
  for (size_t i = 0; i < sizeof(unclear) / sizeof(unclear[0]); i++) {
    expect(unclear[i], &options, KILN_COMPILE_CACHE_UNCACHEABLE,
           "__has_include");
  }
  static const char pasted[] =
      "#define ASK __has_##include\n#if ASK(<asked.h>)\n#endif\n";
  expect(pasted, &options, KILN_COMPILE_CACHE_UNCACHEABLE,
         "## may make __has_include");
  // Words of any text do not make it together.
  write_file("asks.h", "#define CAT(a, b) a##b\nint include, _;\n");
  options.defines = NULL;
  miss("#include <asks.h>\nint has;\n", &options);
  write_file("asks.h", "#define HAVE __has_include(\"asked.h\")\n");
  expect("#include <asks.h>\n#if HAVE\n#endif\n", &options,
         KILN_COMPILE_CACHE_UNCACHEABLE, "asks.h)");
  // In an option.
  static const char condition[] = "#if HAVE\n#endif\n";
  const char* define = "HAVE=__has_include(<asked.h>)";
  options.defines = &define;
  options.define_count = 1;
  remove_file("asked.h");
  miss(condition, &options);
  hit(condition, &options);
  write_file("asked.h", "\n");
  expect(condition, &options, KILN_COMPILE_CACHE_MISS, "changed");
  define = "HAS(x)=__has_include(<x>)";
  expect(condition, &options, KILN_COMPILE_CACHE_UNCACHEABLE, "an option");
}

// Headers that include each other by ever longer names come to an end.
static void circles_end(void** state) {
  (void)state;
  char sub[400];
  snprintf(sub, sizeof(sub), "mkdir -p '%s/sub'", g_dir);
  assert_int_equal(system(sub), 0);
  write_file("sub/c.h", "#include \"../sub/c.h\"\n#include \"c.h\"\n");
  const char* const dirs[] = {g_dir};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  miss("#include <sub/c.h>\n", &options);
  hit("#include <sub/c.h>\n", &options);
}

int main(void) {
  fault_alloc_init(&g_watch);
  g_host.allocator = fault_alloc_allocator(&g_watch);
  g_env.allocator = g_host.allocator;
  g_host.env = &g_env;
  g_host.process_id = kilni_base_process_id();
  kilni_base_keep_t nobody = {0};
  kiln_nvrtc_table_t table;
  kilni_table_nvrtc_table_null(&table);
  if (mkdtemp(g_dir) == NULL ||
      !kiln_status_is_ok(kilni_compile_compiler_create(&g_host, nobody, &table,
                                                       &g_compiler))) {
    return 1;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(everything_is_in_the_key, fresh, done),
      cmocka_unit_test_setup_teardown(a_hit_has_names_and_headers, fresh, done),
      cmocka_unit_test_setup_teardown(a_changed_header_is_a_miss, fresh, done),
      cmocka_unit_test_setup_teardown(a_new_header_ahead_is_a_miss, fresh,
                                      done),
      cmocka_unit_test_setup_teardown(quotes_look_beside_the_source, fresh,
                                      done),
      cmocka_unit_test_setup_teardown(virtual_headers_go_first, fresh, done),
      cmocka_unit_test_setup_teardown(what_cannot_be_cached_says_why, fresh,
                                      done),
      cmocka_unit_test_setup_teardown(macros_name_headers, fresh, done),
      cmocka_unit_test_setup_teardown(macros_ask_for_headers, fresh, done),
      cmocka_unit_test_setup_teardown(a_hit_looks_once_at_each_header, fresh,
                                      done),
      cmocka_unit_test_setup_teardown(circles_end, fresh, done),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kiln_compiler_release(g_compiler);
  char gone[64];
  snprintf(gone, sizeof(gone), "rm -rf '%s'", g_dir);
  if (system(gone) != 0) failed++;
  const char* problem = fault_alloc_problem(&g_watch);
  if (problem != NULL) printf("memory: %s\n", problem);
  return failed + (problem != NULL);
}
