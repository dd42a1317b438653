// SPDX-License-Identifier: Apache-2.0
//
// compile: links from input to code, over nvJitLink's null provider and over a
// backend of the test's own, which stands for the driver's.
#define _XOPEN_SOURCE 700  // mkdtemp
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"
#include "toolkit/toolkit.h"
#include "fault_alloc.h"

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() "
    "{ ret; }\n";
static const uint8_t kLtoir[32] = {0xed, 0x43,      0x4e,
                                   0x7f, [12] = 24, [24] = 0x63};
static const uint8_t kCubin[64] = {0x7f, 'E',  'L', 'F',      2,         1,
                                   1,    0x41, 8,   [16] = 2, [18] = 190};
static const uint8_t kRelocatable[64] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8, [16] = 1, [18] = 190};

// ---- The stand-in for the driver ----

// What the backend met, and where it is to fail. one-thread
typedef struct fake_t {
  uint32_t begins;
  uint32_t ends;
  char options[1024];
  char inputs[1024];
  const char* fail_at;  // "begin", "begin with a log", "add", "finish"
  const char* output;
  char log[256];
} fake_t;

static kiln_status_t refuse(fake_t* fake, const char* log) {
  snprintf(fake->log, sizeof(fake->log), "%s", log);
  kiln_status_t status = kilni_base_status_with_native(
      KILNI_FAIL(LINK_FAILED, "cuLinkSomething"), "cuda", 218, "CUDA_ERROR");
  return kilni_base_status_with_fix(status, "read the log");
}

static bool fails(const fake_t* fake, const char* where) {
  return fake->fail_at != NULL && strcmp(fake->fail_at, where) == 0;
}

static kiln_status_t fake_begin(void* self,
                                const kilni_compile_link_plan_t* plan,
                                void** out_session) {
  fake_t* fake = self;
  *out_session = NULL;
  assert_int_equal(plan->output, KILN_CODE_FORMAT_CUBIN);
  for (uint32_t i = 0; i < plan->setting_count; i++) {
    size_t used = strlen(fake->options);
    snprintf(fake->options + used, sizeof(fake->options) - used, "%u=%llu ",
             (unsigned)plan->settings[i].key,
             (unsigned long long)plan->settings[i].value);
  }
  if (fails(fake, "begin")) return refuse(fake, "never seen");
  fake->begins++;
  *out_session = fake;
  if (fails(fake, "begin with a log")) return refuse(fake, "error : no arch\n");
  return kiln_ok();
}

static kiln_status_t fake_add(void* session,
                              const kilni_compile_link_input_t* input) {
  fake_t* fake = session;
  size_t used = strlen(fake->inputs);
  assert_int_equal(input->bytes.data[input->bytes.size], 0);
  snprintf(fake->inputs + used, sizeof(fake->inputs) - used, "%s:%s ",
           kiln_code_format_name(input->format), input->name);
  if (fails(fake, "add")) return refuse(fake, "line one\nerror   : bad PTX\n");
  return kiln_ok();
}

static kiln_status_t fake_finish(void* session,
                                 const kilni_compile_link_sink_t* sink) {
  fake_t* fake = session;
  if (fails(fake, "finish")) {
    return refuse(fake, "error   : Undefined reference to '_Z1Zv' in 'CBA'\n");
  }
  const char* out = fake->output;
  if (out != NULL) {
    return sink->put(sink->user,
                     (kiln_bytes_view_t){(const uint8_t*)out, strlen(out)});
  }
  return sink->put(sink->user, (kiln_bytes_view_t){kCubin, sizeof(kCubin)});
}

static kiln_status_t fake_log(void* session, uint32_t which,
                              kilni_base_str_t* inout_text) {
  const fake_t* fake = session;
  kilni_base_str_add_cstr(
      inout_text, which == KILN_LINK_LOG_ERROR ? fake->log : "linking\n");
  return kiln_ok();
}

static void fake_end(void* session) {
  fake_t* fake = session;
  if (fake != NULL) fake->ends++;
}

static kilni_compile_link_backend_t fake_backend(fake_t* fake, uint32_t line) {
  kilni_compile_link_backend_t backend = {KILN_LINK_BACKEND_DRIVER,
                                          line,
                                          fake,
                                          fake_begin,
                                          fake_add,
                                          fake_finish,
                                          fake_log,
                                          fake_end};
  return backend;
}

// ---- What links are made in ----

// A host, and a linker over what a test wants. one-thread
typedef struct world_t {
  fault_alloc_t watch;
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_nvjitlink_table_t table;
  kilni_compile_linker_wish_t wish;
  kilni_compile_link_backend_t backend;
  kiln_compat_driver_t driver;
  fake_t fake;
  kiln_linker_t* linker;
  uint32_t warnings;
  atomic_uint linked;  // by threads
} world_t;

static void count_warnings(kiln_log_level_t level, const char* space,
                           const char* line, void* user) {
  world_t* world = user;
  (void)line;
  if (level == KILN_LOG_WARNING && strcmp(space, "compile") == 0) {
    world->warnings++;
  }
}

static int make_world(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  kilni_table_cuda_null_reset();
  fault_alloc_init(&world.watch);
  world.host.allocator = fault_alloc_allocator(&world.watch);
  world.env.allocator = world.host.allocator;
  world.host.env = &world.env;
  world.host.process_id = kilni_base_process_id();
  world.host.log = (kiln_log_sink_t){count_warnings, &world, KILN_LOG_TRACE, 0};
  kilni_table_nvjitlink_table_null(&world.table);
  world.wish.table = &world.table;
  world.wish.arch = "sm_90";
  *state = &world;
  return 0;
}

static int end_world(void** state) {
  world_t* world = *state;
  kiln_linker_release(world->linker);
  fault_alloc_assert_clean(&world->watch);
  fault_alloc_deinit(&world->watch);
  assert_int_equal(world->fake.begins, world->fake.ends);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LINK), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  return 0;
}

static void with_driver(world_t* world, uint32_t line) {
  world->backend = fake_backend(&world->fake, line);
  world->wish.device = &world->backend;
}

static kiln_link_t* new_link(world_t* world,
                             const kiln_link_options_t* options) {
  kilni_base_keep_t nobody = {0};
  kiln_link_t* link = NULL;
  if (world->linker == NULL) {
    assert_null(kilni_compile_linker_create(&world->host, nobody, &world->wish,
                                            &world->linker));
  }
  assert_null(kiln_link_create(world->linker, options, &link));
  return link;
}

static void add_ptx(kiln_link_t* link) {
  assert_null(kiln_link_add_bytes(
      link, (kiln_bytes_view_t){(const uint8_t*)kPtx, strlen(kPtx)}, 0,
      "k.ptx"));
}

static void expect(kiln_status_t status, kiln_status_code_t code,
                   const char* word) {
  if (kiln_status_code(status) != code ||
      strstr(kiln_status_message(status), word) == NULL) {
    print_message("got %u: %s\n", (unsigned)kiln_status_code(status),
                  kiln_status_message(status));
    assert_true(false);
  }
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static bool has_reason(const kiln_link_choice_t* choice, const char* word) {
  for (uint32_t i = 0; i < kiln_link_choice_reason_count(choice); i++) {
    if (strstr(kiln_link_choice_reason(choice, i), word) != NULL) return true;
  }
  return false;
}

// ---- One link ----

// Facts 1.7: a PTX program through the linker is a link of one input.
static void test_ptx_to_cubin(void** state) {
  world_t* world = *state;
  kiln_link_t* link = new_link(world, NULL);
  assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_ERROR), "");
  assert_null(kiln_link_chosen(link));
  add_ptx(link);
  kiln_code_t* code = NULL;
  assert_null(kiln_link_finish(link, &code));
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_CUBIN);
  assert_int_equal(kiln_code_producer_line(code), 13030);
  assert_string_equal(kiln_code_arch(code), "sm_90");
  assert_string_equal(kiln_code_name(code), "linked");
  assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                   KILN_LINK_BACKEND_NVJITLINK);
  assert_int_equal(kiln_link_settings_count(kiln_link_used(link)), 1);
  assert_string_equal(kiln_link_settings_option(kiln_link_used(link), 0),
                      "-arch=sm_90");
  kiln_code_release(code);
  kiln_link_release(link);
}

static void test_outputs(void** state) {
  world_t* world = *state;
  static const uint32_t outputs[] = {KILN_CODE_FORMAT_PTX,
                                     KILN_CODE_FORMAT_LTOIR};
  for (size_t i = 0; i < 2; i++) {
    kiln_link_options_t options = kiln_link_options_default();
    options.output = outputs[i];
    options.name = "both";
    kiln_link_t* link = new_link(world, &options);
    assert_null(kiln_link_add_bytes(
        link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, NULL));
    kiln_code_t* code = NULL;
    assert_null(kiln_link_finish(link, &code));
    assert_int_equal(kiln_code_format(code), outputs[i]);
    assert_string_equal(kiln_code_name(code), "both");
    assert_true(kiln_link_choice_lto(kiln_link_chosen(link)));
    assert_string_equal(kiln_link_settings_option(kiln_link_used(link), 0),
                        "-lto");
    if (outputs[i] == KILN_CODE_FORMAT_PTX) {  // no NUL is left in the text
      kiln_bytes_view_t text = kiln_code_bytes(code);
      assert_int_equal(strlen((const char*)text.data), text.size);
    }
    kiln_code_release(code);
    kiln_link_release(link);
  }
}

// 13.2 and 13.3 brought -r for all and LTO-IR (L17).
static void test_gates(void** state) {
  world_t* world = *state;
  world->table.minor = 1;
  kiln_link_options_t options = kiln_link_options_default();
  options.output = KILN_CODE_FORMAT_RELOCATABLE;
  kiln_link_t* link = new_link(world, &options);
  kiln_code_t* code = NULL;
  assert_null(kiln_link_add_bytes(
      link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, "ir"));
  expect(
      kiln_link_finish(link, &code), KILN_STATUS_UNSUPPORTED,
      "nvJitLink 13.1 cannot make relocatable of LTO-IR: that came with 13.2");
  assert_null(code);
  kiln_link_release(link);
  options.output = KILN_CODE_FORMAT_LTOIR;
  link = new_link(world, &options);
  assert_null(kiln_link_add_bytes(
      link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, "ir"));
  expect(kiln_link_finish(link, &code), KILN_STATUS_UNSUPPORTED,
         "nvJitLink 13.1 cannot make ltoir: that came with 13.3");
  kiln_link_release(link);
  // Of what is no LTO-IR, 13.0 made it before anybody promised it.
  options.output = KILN_CODE_FORMAT_RELOCATABLE;
  link = new_link(world, &options);
  add_ptx(link);
  kiln_link_choice_t* choice = NULL;
  assert_null(kiln_link_explain(link, &choice));
  assert_int_equal(kiln_link_choice_verdict(choice),
                   KILN_COMPAT_VERDICT_UNKNOWN);
  assert_string_equal(
      kiln_link_choice_reason(choice, 0),
      "relocatable code of an nvJitLink before 13.2 is not documented");
  kiln_link_choice_release(choice);
  kiln_link_release(link);
}

static uint8_t file_data[1 << 16];

static kiln_bytes_view_t read_data(const char* name) {
  char path[512];
  (void)snprintf(path, sizeof(path),
                 KILN_SOURCE_DIR "/tests/unit/image/data/%s", name);
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(file_data, 1, sizeof(file_data), file);
  fclose(file);
  return (kiln_bytes_view_t){file_data, size};
}

// Finished machine code is for compiling anew; half of a file is not.
static void test_what_is_cut_off(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  options.arch = "sm_90a";
  options.backend = KILN_LINK_BACKEND_NVJITLINK;
  kiln_bytes_view_t bytes = read_data("nvrtc130_sm90a.cubin");
  for (int i = 0; i < 2; i++) {
    kiln_link_t* link = new_link(world, &options);
    kiln_code_t* code = NULL;
    assert_null(kiln_link_add_bytes(link, bytes, 0, "half"));
    kiln_status_t status = kiln_link_finish(link, &code);
    assert_int_equal(kiln_status_code(status),
                     i == 0 ? KILN_STATUS_UNSUPPORTED : KILN_STATUS_BAD_DATA);
    assert_non_null(
        strstr(kiln_status_fix(status), i == 0 ? "-rdc=true" : "cut off"));
    kiln_status_free(status);
    kiln_link_release(link);
    bytes.size /= 2;
  }
}

// A linker that leaves code out reports success: what is given and is not in
// what comes out is an error. The stand-in gives a cubin without kernels.
static void test_what_is_left_out(void** state) {
  world_t* world = *state;
  static const struct {
    const char* file;
  } rows[] = {{"nvrtc130_sm90a.cubin"},
              {"plain.fatbin"},
              {"host.object"},
              {"host_rdc.object"}};
  with_driver(world, 13050);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_options_t options = kiln_link_options_default();
    options.backend = KILN_LINK_BACKEND_DRIVER;
    kiln_link_t* link = new_link(world, &options);
    kiln_code_t* code = NULL;
    assert_null(
        kiln_link_add_bytes(link, read_data(rows[i].file), 0, "finished"));
    expect(kiln_link_finish(link, &code), KILN_STATUS_LINK_FAILED,
           "is not in the result");
    assert_null(code);
    kiln_link_release(link);
  }
}

// What made the code in a file is read there: nobody else tells.
static void test_lines_of_files(void** state) {
  (void)state;
  static const struct {
    const char* file;
    uint32_t line;
  } rows[] = {{"nvrtc129_sm90a.cubin", 12090}, {"nvrtc135_sm103a.cubin", 13050},
              {"relocatable.cubin", 13000},    {"host_rdc.object", 13000},
              {"archive.library", 13000},      {"nvrtc130_90a.ltoir", 13000},
              {"plain.fatbin", 13000},         {"lz4.fatbin", 13000},
              {"zstd.fatbin", 13000},          {"scrambled.fatbin", 13000}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_code_t* code = NULL;
    kiln_link_input_fact_t fact;
    assert_null(kiln_code_create(read_data(rows[i].file), NULL, &code));
    kiln_link_input_fact_of(code, &fact);
    if (fact.line != rows[i].line) print_message("%s\n", rows[i].file);
    assert_int_equal(fact.line, rows[i].line);
    kiln_code_release(code);
  }
}

// The head of LTO-IR tells its line; bytes that nobody has measured tell none,
// and what is to be installed follows from it.
static void test_lines_of_ltoir(void** state) {
  world_t* world = *state;
  static const struct {
    uint8_t bytes[6];
    uint32_t line;
  } kRows[] = {{{0x01, 0x39, 0x02, 0x33, 0x03, 0x01}, 12000},
               {{0x01, 0x39, 0x02, 0x35, 0x03, 0x01}, 12010},
               {{0x01, 0x40, 0x02, 0x5d, 0x03, 0x02}, 12090},
               {{0x01, 0x41, 0x02, 0x62, 0x03, 0x02}, 13000},
               {{0x01, 0x43, 0x02, 0x83, 0x03, 0x02}, 13050},
               {{0x01, 0x41, 0x02, 0x63, 0x03, 0x02}, 0},
               {{0x02, 0x41, 0x02, 0x62, 0x03, 0x02}, 0}};
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    uint8_t bytes[sizeof(kLtoir)];
    memcpy(bytes, kLtoir, sizeof(bytes));
    memcpy(bytes + 4, kRows[i].bytes, sizeof(kRows[i].bytes));
    kiln_code_t* code = NULL;
    kiln_link_input_fact_t fact;
    assert_null(kiln_code_create((kiln_bytes_view_t){bytes, sizeof(bytes)},
                                 NULL, &code));
    kiln_link_input_fact_of(code, &fact);
    assert_int_equal(fact.line, kRows[i].line);
    kiln_code_release(code);
  }
  with_driver(world, 13000);
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  kiln_link_t* link = new_link(world, &options);
  kiln_code_t* code = NULL;
  assert_null(
      kiln_link_add_bytes(link, read_data("nvrtc130_90a.ltoir"), 0, "ir"));
  kiln_status_t status = kiln_link_finish(link, &code);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_non_null(
      strstr(kiln_status_fix(status), "nvidia-nvjitlink>=13.0,<14.0"));
  kiln_status_free(status);
  kiln_link_release(link);
}

// However large an input is: what made its last member is found.
static void test_line_of_a_large_file(void** state) {
  (void)state;
  enum { FILLING = 65 << 20 };
  // One that tells nothing, and one that does.
  kiln_bytes_view_t silent = read_data("scrambled.fatbin");
  size_t at = silent.size + FILLING;
  uint8_t* bytes = calloc(1, at + sizeof(file_data));
  assert_non_null(bytes);
  memcpy(bytes, silent.data, silent.size);
  kiln_bytes_view_t fatbin = read_data("plain.fatbin");
  memcpy(bytes + at, fatbin.data, fatbin.size);
  kiln_bytes_view_t whole = {bytes, at + fatbin.size};
  kiln_code_t* code = NULL;
  kiln_link_input_fact_t fact;
  assert_null(kiln_code_create(whole, NULL, &code));
  kiln_link_input_fact_of(code, &fact);
  assert_int_equal(fact.line, 13000);
  kiln_code_release(code);
  free(bytes);
}

// ---- What is looked at before a link ----

static kiln_link_t* link_of(world_t* world, const char* first,
                            const char* second) {
  kiln_link_options_t options = kiln_link_options_default();
  options.arch = "sm_90";
  kiln_link_t* link = new_link(world, &options);
  assert_null(kiln_link_add_bytes(link, read_data(first), 0, "one.o"));
  if (second != NULL) {
    assert_null(kiln_link_add_bytes(link, read_data(second), 0, "two.o"));
  }
  return link;
}

static void expect_failure(kiln_link_t* link, kiln_status_code_t code,
                           const char* says) {
  kiln_code_t* made = NULL;
  expect(kiln_link_finish(link, &made), code, says);
  assert_null(made);
  kiln_link_release(link);
}

// nvJitLink keeps the first, writes to standard error and reports success;
// nvlink refuses: "Multiple definition of '_Z1gi' in ..., first defined in".
static void test_two_definitions(void** state) {
  world_t* world = *state;
  static const char* const kFiles[] = {"relocatable.cubin", "host_rdc.object",
                                       "archive.library"};
  const char* says =
      "Multiple definition of '_Z1gi' in 'two.o', first defined in 'one.o'";
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < 2; k++) {
      expect_failure(link_of(world, kFiles[k], kFiles[i]),
                     KILN_STATUS_LINK_FAILED, says);
    }
  }
  // Whoever links, and PTX as well; what one of them declares is no matter.
  with_driver(world, 13000);
  kiln_linker_release(world->linker);
  world->linker = NULL;
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  kiln_link_t* link = new_link(world, &options);
  add_ptx(link);
  add_ptx(link);
  expect_failure(link, KILN_STATUS_LINK_FAILED,
                 "Multiple definition of 'k' in 'k.ptx'");
  assert_string_equal(world->fake.inputs, "");
}

// What is said before a link is what the link says.
// nvJitLink reports success over them.
static void test_types_that_differ(void** state) {
  world_t* world = *state;
  static const char kHead[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
  static const char kTwo[] =
      ".extern .func (.param .b32 r) ff(.param .b32 a, .param .b32 b);\n"
      ".visible .entry k() { .param .b32 x; .param .b32 y; "
      "call (x), ff, (y, y); ret; }\n";
  const struct {
    const char* second;
    bool links;
  } rows[] = {
      {".visible .func (.param .b32 r) ff(.param .b32 a) { ret; }\n", false},
      {".visible .func (.param .b32 r) ff(.param .f32 a, .param .b32 b) { ret; "
       "}\n",
       false},
      {".weak .func ff(.param .b32 a, .param .b32 b) { ret; }\n", false},
      {".visible .func (.param .b32 r) ff(.param .u32 a, .param .s32 b) { ret; "
       "}\n",
       true},
      {".func (.param .b32 r) ff(.param .b32 a) { ret; }\n", true},
      {".extern .func (.param .b32 r) ff(.param .b32 a);\n", true},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char texts[2][512];
    (void)snprintf(texts[0], sizeof(texts[0]), "%s%s", kHead, kTwo);
    (void)snprintf(texts[1], sizeof(texts[1]), "%s%s", kHead, rows[i].second);
    kiln_link_t* link = new_link(world, NULL);
    for (size_t k = 0; k < 2; k++) {
      kiln_bytes_view_t text = {(const uint8_t*)texts[k], strlen(texts[k])};
      assert_null(kiln_link_add_bytes(link, text, 0, k == 0 ? "1.o" : "2.o"));
    }
    kiln_code_t* code = NULL;
    kiln_status_t status = kiln_link_finish(link, &code);
    if (rows[i].links) {
      assert_null(status);
    } else {
      expect(
          status, KILN_STATUS_LINK_FAILED,
          "Prototype doesn't match for 'ff' in '2.o', first declared in '1.o'");
      assert_null(code);
    }
    kiln_code_release(code);
    kiln_link_release(link);
  }
}

static void test_what_is_said_without_a_device(void** state) {
  world_t* world = *state;
  kiln_compat_driver_t driver = kiln_compat_driver_default();
  driver.state = KILN_COMPAT_DRIVER_KNOWN;
  driver.line = 12090;
  world->wish.driver = &driver;
  world->table.major = 13;
  world->table.minor = 0;
  for (uint32_t backend = 0; backend <= KILN_LINK_BACKEND_DRIVER; backend++) {
    kiln_link_options_t options = kiln_link_options_default();
    options.backend = backend;
    kiln_link_t* link = new_link(world, &options);
    kiln_link_choice_t* choice = NULL;
    add_ptx(link);
    assert_null(kiln_link_explain(link, &choice));
    assert_int_equal(kiln_link_choice_backend(choice), KILN_LINK_BACKEND_AUTO);
    assert_int_equal(kiln_link_choice_verdict(choice),
                     KILN_COMPAT_VERDICT_INCOMPATIBLE);
    kiln_status_t said = kiln_link_choice_status(choice);
    kiln_code_t* code = NULL;
    kiln_status_t met = kiln_link_finish(link, &code);
    assert_int_equal(kiln_status_code(met), kiln_status_code(said));
    assert_string_equal(kiln_status_message(met), kiln_status_message(said));
    if (backend != KILN_LINK_BACKEND_NVJITLINK) {
      assert_int_equal(kiln_status_code(met), KILN_STATUS_INVALID_STATE);
      assert_non_null(
          strstr(kiln_status_fix(met), "open the linker with a device"));
    }
    kiln_status_free(said);
    kiln_status_free(met);
    kiln_link_choice_release(choice);
    kiln_link_release(link);
  }
}

static void test_a_damaged_input(void** state) {
  world_t* world = *state;
  kiln_bytes_view_t bytes = read_data("host_rdc.object");
  for (size_t size = 1000; size < bytes.size; size += 1000) {
    kiln_link_t* link = new_link(world, NULL);
    add_ptx(link);
    assert_null(kiln_link_add_bytes(link, (kiln_bytes_view_t){bytes.data, size},
                                    0, "cut.o"));
    expect_failure(link, KILN_STATUS_BAD_DATA, "cut.o");
  }
}

// Linkers make an empty cubin of archives in which only the host has code.
static void test_no_device_code(void** state) {
  world_t* world = *state;
  static const char kText[] =
      "!<arch>\n"
      "readme/         0           0     0     644     6         `\nhello\n";
  kiln_bytes_view_t bytes = {(const uint8_t*)kText, sizeof(kText) - 1};
  const struct {
    size_t size;
    uint32_t count;
    const char* says;
  } rows[] = {{8, 1, "\"a.a\" contains no device code"},
              {bytes.size, 1, "\"a.a\" contains no device code"},
              {bytes.size, 2,
               "none of the 2 inputs, such as \"a.a\", contains device code"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_t* link = new_link(world, NULL);
    bytes.size = rows[i].size;
    for (uint32_t k = 0; k < rows[i].count; k++) {
      assert_null(kiln_link_add_bytes(link, bytes, 0, "a.a"));
    }
    expect_failure(link, KILN_STATUS_BAD_DATA, rows[i].says);
  }
  // Beside device code, an archive may hold none.
  kiln_link_t* link = new_link(world, NULL);
  kiln_code_t* code = NULL;
  add_ptx(link);
  assert_null(kiln_link_add_bytes(link, bytes, 0, "a.a"));
  assert_null(kiln_link_finish(link, &code));
  kiln_code_release(code);
  kiln_link_release(link);
}

// An archive of one member, which follows its head.
static kiln_bytes_view_t archive_of(const char* name, kiln_bytes_view_t member,
                                    char* space, size_t size) {
  int head = snprintf(space, size, "!<arch>\n%-16s%-12d%-6d%-6d%-8d%-10zu`\n",
                      name, 0, 0, 0, 644, member.size);
  assert_true(head == 68 && head + member.size < size);
  memcpy(space + head, member.data, member.size);
  return (kiln_bytes_view_t){(const uint8_t*)space, (size_t)head + member.size};
}

// nvJitLink looks into objects of the host only, and passes over all else.
static void test_code_by_itself_in_an_archive(void** state) {
  world_t* world = *state;
  static char text[1 << 16];
  static const uint8_t kFatbin[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16};
  static const uint8_t kBitcode[16] = {'B', 'C', 0xc0, 0xde};
  const struct {
    const char* member;
    kiln_bytes_view_t bytes;
    const char* says;  // NULL: it is left to the host
  } rows[] = {
      {"k.ltoir/", {kLtoir, sizeof(kLtoir)}, "the ltoir \"k.ltoir\" in the"},
      {"k.ptx/", {(const uint8_t*)kPtx, strlen(kPtx)}, "the ptx \"k.ptx\" in"},
      {"k.cubin/", {kCubin, sizeof(kCubin)}, "the cubin \"k.cubin\" in"},
      {"k.o/", {kRelocatable, sizeof(kRelocatable)}, "the relocatable \"k.o\""},
      {"k.fatbin/", {kFatbin, sizeof(kFatbin)}, "the fatbin \"k.fatbin\" in"},
      {"host.bc/", {kBitcode, sizeof(kBitcode)}, NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_t* link = new_link(world, NULL);
    kiln_code_t* code = NULL;
    add_ptx(link);
    assert_null(kiln_link_add_bytes(
        link, archive_of(rows[i].member, rows[i].bytes, text, sizeof(text)), 0,
        "lib.a"));
    if (rows[i].says != NULL) {
      expect_failure(link, KILN_STATUS_LINK_FAILED, rows[i].says);
      continue;
    }
    assert_null(kiln_link_finish(link, &code));
    kiln_code_release(code);
    kiln_link_release(link);
  }
}

static void test_another_architecture(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  options.arch = "sm_80";
  kiln_link_t* link = new_link(world, &options);
  assert_null(
      kiln_link_add_bytes(link, read_data("relocatable.cubin"), 0, "r.cubin"));
  expect_failure(link, KILN_STATUS_INCOMPATIBLE,
                 "\"r.cubin\" is machine code for sm_90, and the link is for "
                 "sm_80");
}

// Nor is what only containers for others hold: nvJitLink calls relocatable code
// a bad input, and leaves finished code out without a word.
static void test_containers_for_others(void** state) {
  world_t* world = *state;
  static const char* const kFiles[] = {"host_rdc.object", "host.object",
                                       "archive.library"};
  kiln_link_options_t options = kiln_link_options_default();
  options.arch = "sm_80";
  for (size_t i = 0; i < 3; i++) {
    kiln_link_t* link = new_link(world, &options);
    add_ptx(link);
    assert_null(kiln_link_add_bytes(link, read_data(kFiles[i]), 0, "one.o"));
    expect_failure(link, KILN_STATUS_INCOMPATIBLE, "sm_90");
  }
}

// nvJitLink leaves finished code out of containers and reports success, also
// where something else comes out.
static void test_finished_code_beside_another_input(void** state) {
  world_t* world = *state;
  static const char* const kFiles[] = {"host.object", "plain.fatbin",
                                       "zstd.fatbin"};
  for (size_t i = 0; i < 6; i++) {
    for (int lto = 0; lto < 2; lto++) {
      kiln_link_options_t options = kiln_link_options_default();
      options.arch = "sm_90";
      options.backend = KILN_LINK_BACKEND_NVJITLINK;
      options.lto = lto == 1 ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
      kiln_link_t* link = new_link(world, &options);
      if (i < 3) add_ptx(link);
      assert_null(
          kiln_link_add_bytes(link, read_data(kFiles[i % 3]), 0, "one.o"));
      if (i >= 3) add_ptx(link);
      expect_failure(
          link, KILN_STATUS_LINK_FAILED,
          "the kernel \"_Z1kPi\" of \"one.o\" would not be in the result");
    }
  }
}

// nvJitLink takes a name that no input has, and drops all others.
static void test_names_that_nobody_has(void** state) {
  world_t* world = *state;
  static const char* const kOne[] = {"nobody"};
  static const char* const kTwo[] = {"one,two"};
  const struct {
    uint32_t output;
    const char* const* kernels;
    const char* const* variables;
    kiln_status_code_t code;
    const char* says;
  } rows[] = {{KILN_CODE_FORMAT_PTX, kOne, NULL, KILN_STATUS_NOT_FOUND,
               "no input has the kernel \"nobody\""},
              {KILN_CODE_FORMAT_PTX, NULL, kOne, KILN_STATUS_NOT_FOUND,
               "no input has the variable \"nobody\""},
              {KILN_CODE_FORMAT_LTOIR, kOne, NULL, KILN_STATUS_UNSUPPORTED,
               "`kernels_used`"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_options_t options = kiln_link_options_default();
    options.output = rows[i].output;
    options.kernels_used = rows[i].kernels;
    options.kernels_used_count = rows[i].kernels != NULL ? 1 : 0;
    options.variables_used = rows[i].variables;
    options.variables_used_count = rows[i].variables != NULL ? 1 : 0;
    kiln_link_t* link = new_link(world, &options);
    assert_null(kiln_link_add_bytes(
        link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, "k.ltoir"));
    expect_failure(link, rows[i].code, rows[i].says);
  }
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  options.variables_used = kTwo;
  options.variables_used_count = 1;
  expect(kiln_link_create(world->linker, &options, &link),
         KILN_STATUS_INVALID_ARGUMENT, "more than one name");
  assert_null(link);
}

static void set_ftz(kiln_link_options_t* o) {
  o->ftz = KILN_SWITCH_ON;
}
static void set_registers(kiln_link_options_t* o) {
  o->max_registers = 24;
}
static void set_level(kiln_link_options_t* o) {
  o->optimization_level = KILN_LINK_LEVEL_0;
}
static void set_debug(kiln_link_options_t* o) {
  o->debug = KILN_SWITCH_ON;
}

// nvJitLink takes options that change nothing, without a word: machine code
// stays as it is, and what PTX computes stands in it.
static void test_options_that_change_nothing(void** state) {
  world_t* world = *state;
  enum { MACHINE = 1, PTX = 2, LTOIR = 4 };
  static const char* const kChanges = "has no effect on this link";
  const struct {
    void (*set)(kiln_link_options_t* options);
    uint32_t inputs;
    uint32_t output;
    const char* refused;
    const char* note;
  } rows[] = {
      {set_registers, MACHINE, 0, kChanges, NULL},
      {set_level, MACHINE, 0, kChanges, NULL},
      {set_ftz, MACHINE, 0, kChanges, NULL},
      {set_ftz, PTX, 0, kChanges, NULL},
      {set_ftz, PTX | MACHINE, 0, kChanges, NULL},
      {set_registers, LTOIR, KILN_CODE_FORMAT_PTX, kChanges, NULL},
      {set_debug, MACHINE, 0, NULL, "`debug` has no effect"},
      {set_registers, PTX | MACHINE, 0, NULL, "affects PTX and LTO-IR only"},
      {set_ftz, LTOIR | PTX, 0, NULL, "PTX stays as it was compiled"},
      {set_ftz, LTOIR | MACHINE, 0, NULL, "machine code stays"},
      {set_registers, PTX, 0, NULL, NULL},
      {set_ftz, LTOIR, 0, NULL, NULL},
      {set_level, LTOIR, KILN_CODE_FORMAT_PTX, NULL, NULL}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_options_t options = kiln_link_options_default();
    kiln_link_settings_t* settings = NULL;
    options.arch = "sm_90";
    options.output = rows[i].output;
    rows[i].set(&options);
    kiln_link_t* link = new_link(world, &options);
    if (rows[i].inputs & PTX) add_ptx(link);
    if (rows[i].inputs & LTOIR) {
      assert_null(kiln_link_add_bytes(
          link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, "k.ltoir"));
    }
    if (rows[i].inputs & MACHINE) {
      assert_null(
          kiln_link_add_bytes(link, read_data("host_rdc.object"), 0, "one.o"));
    }
    kiln_status_t status = kiln_link_settings(link, &settings);
    if (rows[i].refused != NULL) {
      expect(status, KILN_STATUS_INVALID_ARGUMENT, rows[i].refused);
      expect_failure(link, KILN_STATUS_INVALID_ARGUMENT, rows[i].refused);
      continue;
    }
    assert_null(status);
    assert_int_equal(kiln_link_settings_warning_count(settings),
                     rows[i].note != NULL ? 1 : 0);
    if (rows[i].note != NULL) {
      assert_non_null(
          strstr(kiln_link_settings_warning(settings, 0), rows[i].note));
    }
    kiln_link_settings_release(settings);
    kiln_link_release(link);
  }
}

static void test_lto_of_no_ir(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  options.lto = KILN_SWITCH_ON;
  kiln_link_t* link = new_link(world, &options);
  add_ptx(link);
  expect_failure(link, KILN_STATUS_INVALID_ARGUMENT, "no input is LTO-IR");
}

// nvJitLink leaves kernels out and reports success.
static void test_a_kernel_that_is_lost(void** state) {
  world_t* world = *state;
  expect_failure(link_of(world, "externs.cubin", NULL), KILN_STATUS_LINK_FAILED,
                 "the kernel \"_Z1kPi\" of \"one.o\" is not in the result");
}

static void test_an_error_and_success(void** state) {
  world_t* world = *state;
  with_driver(world, 13000);
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  static const struct {
    const char* log;
    bool fails;
  } kRows[] = {
      {"error   : Multiple definition of 'kb' in 'ltoPtx'\n", true},
      {"info    : 0 bytes gmem\nwarning : 0 errors\n", false},
  };
  for (size_t i = 0; i < 2; i++) {
    kiln_link_t* link = new_link(world, &options);
    kiln_code_t* code = NULL;
    add_ptx(link);
    snprintf(world->fake.log, sizeof(world->fake.log), "%s", kRows[i].log);
    kiln_status_t status = kiln_link_finish(link, &code);
    assert_int_equal(kiln_status_code(status),
                     kRows[i].fails ? KILN_STATUS_LINK_FAILED : KILN_STATUS_OK);
    assert_true(kRows[i].fails == (code == NULL));
    kiln_status_free(status);
    kiln_code_release(code);
    kiln_link_release(link);
  }
}

// What is to be done about a name that nobody defines is not what the linker's
// own number says.
static void test_a_name_that_is_missing(void** state) {
  world_t* world = *state;
  with_driver(world, 13000);
  world->fake.fail_at = "finish";
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  kiln_link_t* link = new_link(world, &options);
  kiln_code_t* code = NULL;
  add_ptx(link);
  kiln_status_t status = kiln_link_finish(link, &code);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LINK_FAILED);
  assert_non_null(
      strstr(kiln_status_fix(status), "add the input that defines it"));
  kiln_status_free(status);
  kiln_link_release(link);
}

static void test_names_go_along(void** state) {
  world_t* world = *state;
  static const kiln_code_name_t names[] = {{"add<float>", "_Z3addIfEv"},
                                           {"add<int>", "_Z3addIiEv"}};
  kiln_code_options_t made = kiln_code_options_default();
  static const char kOther[] =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry m() "
      "{ ret; }\n";
  const char* const texts[2] = {kPtx, kOther};
  kiln_code_t* inputs[2];
  for (uint32_t i = 0; i < 2; i++) {
    made.names = names;
    made.name_count = i + 1;
    assert_null(kiln_code_create(
        (kiln_bytes_view_t){(const uint8_t*)texts[i], strlen(texts[i])}, &made,
        &inputs[i]));
  }
  kiln_link_t* link = new_link(world, NULL);
  assert_null(kiln_link_add(link, inputs[0]));
  assert_null(kiln_link_add(link, inputs[1]));
  kiln_code_release(inputs[0]);
  kiln_code_release(inputs[1]);
  kiln_code_t* code = NULL;
  assert_null(kiln_link_finish(link, &code));
  kiln_link_release(link);
  assert_int_equal(kiln_code_lowered_count(code), 2);
  assert_string_equal(kiln_code_lowered_name(code, "add<int>"), "_Z3addIiEv");
  kiln_code_release(code);
}

// ---- Refused before anything is linked ----

static void test_bad_inputs(void** state) {
  world_t* world = *state;
  kiln_link_t* link = new_link(world, NULL);
  kiln_link_choice_t* choice = NULL;
  kiln_code_t* code = NULL;
  kiln_bytes_view_t noise = {(const uint8_t*)"noise", 5};
  kiln_bytes_view_t bitcode = {(const uint8_t*)"BC\xc0\xde    ", 8};
  expect(kiln_link_finish(link, &code), KILN_STATUS_INVALID_ARGUMENT,
         "without inputs");
  expect(kiln_link_explain(link, &choice), KILN_STATUS_INVALID_ARGUMENT,
         "without inputs");
  expect(kiln_link_add_bytes(link, noise, 0, "x"), KILN_STATUS_BAD_DATA, "x");
  expect(kiln_link_add_bytes(link, bitcode, 0, "x"),
         KILN_STATUS_INVALID_ARGUMENT, "no linker accepts \"x\"");
  expect(kiln_link_add_file(link, "/nonexistent/a.ptx", 0),
         KILN_STATUS_NOT_FOUND, "a.ptx");
  assert_int_equal(world->fake.begins, 0);
  kiln_link_release(link);
  kiln_link_options_t options = kiln_link_options_default();
  options.output = KILN_CODE_FORMAT_LIBRARY;
  link = NULL;
  expect(kiln_link_create(world->linker, &options, &link),
         KILN_STATUS_INVALID_ARGUMENT, "`output`");
  assert_null(link);
}

static void test_explain_is_what_happens(void** state) {
  world_t* world = *state;
  with_driver(world, 12090);
  kiln_link_t* link = new_link(world, NULL);
  add_ptx(link);
  kiln_link_choice_t* choice = NULL;
  kiln_link_settings_t* settings = NULL;
  assert_null(kiln_link_explain(link, &choice));
  assert_null(kiln_link_settings(link, &settings));
  assert_int_equal(world->fake.begins, 0);
  // nvJitLink 13.3 is of a newer major than this driver, which links itself.
  assert_int_equal(kiln_link_choice_backend(choice), KILN_LINK_BACKEND_DRIVER);
  assert_true(has_reason(choice, "the driver of CUDA 12.9"));
  assert_string_equal(kiln_link_settings_option(settings, 0),
                      "CU_JIT_TARGET=90");
  kiln_code_t* code = NULL;
  assert_null(kiln_link_finish(link, &code));
  assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                   KILN_LINK_BACKEND_DRIVER);
  assert_string_equal(world->fake.options, "9=90 ");
  assert_string_equal(world->fake.inputs, "ptx:k.ptx ");
  kiln_link_choice_release(choice);
  kiln_link_settings_release(settings);
  kiln_code_release(code);
  kiln_link_release(link);
}

// ---- The choice, by a linker (L19, L20) ----

static uint32_t backend_for(world_t* world, uint32_t driver, uint32_t nvjitlink,
                            const kiln_link_options_t* options, bool ltoir,
                            kiln_status_code_t* out_code) {
  kilni_base_keep_t nobody = {0};
  kiln_linker_t* linker = NULL;
  kiln_link_t* link = NULL;
  kiln_link_choice_t* choice = NULL;
  with_driver(world, driver);
  world->table.major = nvjitlink / 1000;
  world->table.minor = nvjitlink % 1000 / 10;
  assert_null(
      kilni_compile_linker_create(&world->host, nobody, &world->wish, &linker));
  assert_null(kiln_link_create(linker, options, &link));
  add_ptx(link);
  if (ltoir) {
    assert_null(kiln_link_add_bytes(
        link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, NULL));
  }
  assert_null(kiln_link_explain(link, &choice));
  uint32_t backend = kiln_link_choice_backend(choice);
  kiln_status_t status = kiln_link_choice_status(choice);
  *out_code = kiln_status_code(status);
  kiln_status_free(status);
  kiln_code_t* code = NULL;
  status = kiln_link_finish(link, &code);
  assert_int_equal(kiln_status_code(status), *out_code);
  kiln_status_free(status);
  kiln_code_release(code);
  kiln_link_choice_release(choice);
  kiln_link_release(link);
  kiln_linker_release(linker);
  return backend;
}

// A row of the matrix. thread-safe
typedef struct row_t {
  uint32_t driver;
  uint32_t nvjitlink;
  bool ltoir;
  uint32_t backend;
  kiln_status_code_t code;
} row_t;

static void test_rows(void** state) {
  world_t* world = *state;
  static const row_t kRows[] = {
      {0, 12090, false, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
      {0, 13000, true, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
      {0, 12020, false, KILN_LINK_BACKEND_DRIVER, KILN_STATUS_OK},
      {0, 12020, true, KILN_LINK_BACKEND_AUTO, KILN_STATUS_UNSUPPORTED},
      {12090, 12090, true, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
      {12040, 12090, true, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
      {12090, 13000, false, KILN_LINK_BACKEND_DRIVER, KILN_STATUS_OK},
      {12090, 13000, true, KILN_LINK_BACKEND_AUTO, KILN_STATUS_INCOMPATIBLE},
      {13000, 12090, false, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
      {13000, 12090, true, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
      {13000, 13030, true, KILN_LINK_BACKEND_NVJITLINK, KILN_STATUS_OK},
  };
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    kiln_status_code_t code = KILN_STATUS_OK;
    uint32_t backend = backend_for(world, kRows[i].driver, kRows[i].nvjitlink,
                                   NULL, kRows[i].ltoir, &code);
    assert_int_equal(backend, kRows[i].backend);
    assert_int_equal(code, kRows[i].code);
  }
}

static void test_wanted_backend(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  kiln_status_code_t code = KILN_STATUS_OK;
  options.backend = KILN_LINK_BACKEND_DRIVER;
  assert_int_equal(backend_for(world, 13000, 13000, &options, false, &code),
                   KILN_LINK_BACKEND_DRIVER);
  assert_int_equal(code, KILN_STATUS_OK);
  options.backend = KILN_LINK_BACKEND_NVJITLINK;
  assert_int_equal(backend_for(world, 12090, 13000, &options, false, &code),
                   KILN_LINK_BACKEND_AUTO);
  assert_int_equal(code, KILN_STATUS_INCOMPATIBLE);
}

// The software device runs no machine code.
static void test_soft(void** state) {
  world_t* world = *state;
  with_driver(world, 13000);
  world->wish.is_soft = true;
  world->fake.output = kPtx;
  kiln_link_t* link = new_link(world, NULL);
  kiln_code_t* code = NULL;
  add_ptx(link);
  assert_null(kiln_link_finish(link, &code));
  assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                   KILN_LINK_BACKEND_DRIVER);
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_PTX);
  kiln_code_release(code);
  kiln_link_release(link);
  world->table.minor = 0;  // not newer than the driver
  kiln_linker_release(world->linker);
  world->linker = NULL;
  link = new_link(world, NULL);
  assert_null(kiln_link_add_bytes(
      link, (kiln_bytes_view_t){kLtoir, sizeof(kLtoir)}, 0, NULL));
  assert_null(kiln_link_finish(link, &code));
  assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                   KILN_LINK_BACKEND_NVJITLINK);
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_PTX);
  kiln_code_release(code);
  kiln_link_release(link);
}

// It is like a driver of 13.0, and runs PTX of later tools: so it links that,
// and loads what newer linkers make.
static void test_soft_and_newer_code(void** state) {
  world_t* world = *state;
  static const char kNewer[] =
      ".version 9.5\n.target sm_75\n.address_size 64\n.visible .entry k() "
      "{ ret; }\n";
  with_driver(world, 13000);
  world->wish.is_soft = true;
  world->fake.output = kNewer;
  world->table.minor = 5;
  const struct {
    kiln_bytes_view_t bytes;
    uint32_t backend;
    uint32_t chosen;
  } rows[] = {
      {{(const uint8_t*)kNewer, sizeof(kNewer) - 1},
       KILN_LINK_BACKEND_AUTO,
       KILN_LINK_BACKEND_DRIVER},
      {{(const uint8_t*)kNewer, sizeof(kNewer) - 1},
       KILN_LINK_BACKEND_DRIVER,
       KILN_LINK_BACKEND_DRIVER},
      {{kLtoir, sizeof(kLtoir)},
       KILN_LINK_BACKEND_AUTO,
       KILN_LINK_BACKEND_NVJITLINK},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_link_options_t options = kiln_link_options_default();
    options.backend = rows[i].backend;
    options.output = KILN_CODE_FORMAT_PTX;
    kiln_link_t* link = new_link(world, &options);
    kiln_code_t* code = NULL;
    assert_null(kiln_link_add_bytes(link, rows[i].bytes, 0, "k"));
    assert_null(kiln_link_finish(link, &code));
    assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                     rows[i].chosen);
    assert_true(has_reason(kiln_link_chosen(link), "reads PTX 6.0 to 9.x"));
    assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_PTX);
    kiln_code_release(code);
    kiln_link_release(link);
  }
}

// A machine without nvJitLink (L15): said once, however many links there are.
static void test_absent_is_said_once(void** state) {
  world_t* world = *state;
  kiln_locate_options_t where = kiln_locate_options_default();
  where.system_root = "/nonexistent-root";
  where.allocator = &world->host.allocator;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &where;
  options.allocator = &world->host.allocator;
  kiln_toolkit_t* toolkit = NULL;
  assert_null(kilni_toolkit_create(&options, &world->env, &toolkit));
  world->wish.table = NULL;
  world->wish.toolkit = toolkit;
  with_driver(world, 13000);
  for (int i = 0; i < 3; i++) {
    kiln_link_t* link = new_link(world, NULL);
    kiln_code_t* code = NULL;
    add_ptx(link);
    assert_null(kiln_link_finish(link, &code));
    assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                     KILN_LINK_BACKEND_DRIVER);
    assert_true(has_reason(kiln_link_chosen(link), "there is no nvJitLink"));
    kiln_code_release(code);
    kiln_link_release(link);
  }
  assert_int_equal(world->warnings, 1);
  kiln_linker_release(world->linker);
  world->linker = NULL;
  kiln_toolkit_release(toolkit);
}

static void write_file(const char* folder, const char* name, const char* text) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void remove_file(const char* folder, const char* name) {
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  assert_int_equal(remove(path), 0);
}

// Its files say 13.0, and it does not load: the driver links.
static void test_a_copy_that_does_not_load(void** state) {
  world_t* world = *state;
  char root[] = "/tmp/kiln-link-XXXXXX";
  char lib[64];
  assert_non_null(mkdtemp(root));
  snprintf(lib, sizeof(lib), "%s/lib64", root);
  assert_int_equal(mkdir(lib, 0700), 0);
  write_file(lib, "libnvJitLink.so.13", "no library");
  write_file(root, "version.json",
             "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"13.0.2\"}}");
  const char* roots[] = {root};
  kiln_locate_options_t where = kiln_locate_options_default();
  where.system_root = "/nonexistent-root";
  where.allocator = &world->host.allocator;
  where.roots = roots;
  where.root_count = 1;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &where;
  options.allocator = &world->host.allocator;
  kiln_toolkit_t* toolkit = NULL;
  assert_null(kilni_toolkit_create(&options, &world->env, &toolkit));
  world->wish.table = NULL;
  world->wish.toolkit = toolkit;
  with_driver(world, 13000);
  kiln_link_t* link = new_link(world, NULL);
  uint32_t count = 0;
  uint32_t line = 0;
  assert_null(kiln_linker_nvjitlink_count(world->linker, &count));
  assert_int_equal(count, 1);
  assert_null(kiln_linker_nvjitlink(world->linker, 0, &line, NULL));
  assert_int_equal(line, 13000);
  expect(kiln_linker_nvjitlink(world->linker, 1, &line, NULL),
         KILN_STATUS_NOT_FOUND, "number 1");
  kiln_code_t* code = NULL;
  add_ptx(link);
  assert_null(kiln_link_finish(link, &code));
  assert_int_equal(kiln_link_choice_backend(kiln_link_chosen(link)),
                   KILN_LINK_BACKEND_DRIVER);
  assert_int_equal(world->warnings, 1);
  kiln_code_release(code);
  kiln_link_release(link);
  kiln_linker_release(world->linker);
  world->linker = NULL;
  kiln_toolkit_release(toolkit);
  remove_file(lib, "libnvJitLink.so.13");
  remove_file(root, "version.json");
  assert_int_equal(rmdir(lib), 0);
  assert_int_equal(rmdir(root), 0);
}

// L13: named, and nothing is begun.
static void test_options_of_the_driver(void** state) {
  world_t* world = *state;
  with_driver(world, 12090);
  kiln_link_options_t options = kiln_link_options_default();
  kiln_code_t* code = NULL;
  options.time = KILN_SWITCH_ON;
  kiln_link_t* link = new_link(world, &options);
  add_ptx(link);
  expect(kiln_link_finish(link, &code), KILN_STATUS_UNSUPPORTED,
         "no option `time`");
  assert_int_equal(world->fake.begins, 0);
  kiln_link_release(link);
  options.time = KILN_SWITCH_OFF;
  options.ftz = KILN_SWITCH_ON;
  link = new_link(world, &options);
  add_ptx(link);
  assert_null(kiln_link_finish(link, &code));
  assert_int_equal(kiln_link_settings_warning_count(kiln_link_used(link)), 1);
  kiln_code_release(code);
  kiln_link_release(link);
}

static void test_no_device(void** state) {
  world_t* world = *state;
  world->driver = kiln_compat_driver_default();
  world->driver.state = KILN_COMPAT_DRIVER_KNOWN;
  world->driver.line = 12090;
  world->wish.driver = &world->driver;
  kiln_link_t* link = new_link(world, NULL);
  kiln_code_t* code = NULL;
  add_ptx(link);
  expect(kiln_link_finish(link, &code), KILN_STATUS_INVALID_STATE,
         "without a device");
  kiln_link_release(link);
}

// ---- Failures and logs (L7, L8, L9) ----

static void test_failures(void** state) {
  world_t* world = *state;
  static const char* const kWhere[][3] = {
      {"begin", "cuLinkSomething", ""},
      {"begin with a log", "no arch", "error : no arch\n"},
      {"add", "bad PTX", "line one\nerror   : bad PTX\n"},
      {"finish", "Undefined reference to '_Z1Zv' in 'CBA'",
       "error   : Undefined reference to '_Z1Zv' in 'CBA'\n"},
  };
  with_driver(world, 12090);
  for (size_t i = 0; i < 4; i++) {
    world->fake.fail_at = kWhere[i][0];
    world->fake.log[0] = 0;
    kiln_link_t* link = new_link(world, NULL);
    kiln_code_t* code = NULL;
    add_ptx(link);
    kiln_status_t status = kiln_link_finish(link, &code);
    kiln_status_native_t native;
    assert_true(kiln_status_native(status, &native));
    assert_int_equal(native.number, 218);
    expect(status, KILN_STATUS_LINK_FAILED, kWhere[i][1]);
    assert_null(code);
    const char* log = kiln_link_log(link, KILN_LINK_LOG_ERROR);
    assert_string_equal(log, kWhere[i][2]);
    expect(kiln_link_finish(link, &code), KILN_STATUS_INVALID_STATE,
           "finished");
    kiln_link_close(link);
    assert_ptr_equal(kiln_link_log(link, KILN_LINK_LOG_ERROR), log);
    assert_string_equal(log, kWhere[i][2]);
    expect(kiln_link_add_file(link, "/x", 0), KILN_STATUS_INVALID_STATE,
           "closed");
    assert_non_null(kiln_link_chosen(link));
    kiln_link_release(link);
  }
}

static void test_logs(void** state) {
  world_t* world = *state;
  with_driver(world, 12090);
  kiln_link_t* link = new_link(world, NULL);
  kiln_code_t* code = NULL;
  const char* before = kiln_link_log(link, KILN_LINK_LOG_INFO);
  assert_string_equal(before, "");
  add_ptx(link);
  assert_null(kiln_link_finish(link, &code));
  assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_INFO), "linking\n");
  assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_ERROR), "");
  assert_string_equal(kiln_link_log(link, 7), "");
  assert_string_equal(before, "");
  kiln_link_close(link);
  kiln_link_close(link);
  assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_INFO), "linking\n");
  kiln_link_choice_t* choice = NULL;
  expect(kiln_link_explain(link, &choice), KILN_STATUS_INVALID_STATE, "closed");
  kiln_code_release(code);
  kiln_link_release(link);
}

// Inputs in the order given, each as what it is (facts 2.4).
static void test_order_and_kinds(void** state) {
  world_t* world = *state;
  with_driver(world, 12090);
  kiln_link_t* link = new_link(world, NULL);
  kiln_code_t* code = NULL;
  assert_null(kiln_link_add_bytes(
      link, (kiln_bytes_view_t){kRelocatable, sizeof(kRelocatable)}, 0, "r"));
  add_ptx(link);
  assert_null(kiln_link_add_bytes(
      link, (kiln_bytes_view_t){kCubin, sizeof(kCubin)}, 0, "c"));
  assert_null(kiln_link_finish(link, &code));
  assert_string_equal(world->fake.inputs, "relocatable:r ptx:k.ptx cubin:c ");
  kiln_code_release(code);
  kiln_link_release(link);
}

// One linker, several threads.
static void link_often(void* user) {
  world_t* world = user;
  for (int i = 0; i < 50; i++) {
    kiln_link_t* link = NULL;
    kiln_code_t* code = NULL;
    kiln_status_t status = kiln_link_create(world->linker, NULL, &link);
    if (kiln_status_is_ok(status)) {
      status = kiln_link_add_bytes(
          link, (kiln_bytes_view_t){(const uint8_t*)kPtx, strlen(kPtx)}, 0,
          "k.ptx");
    }
    if (kiln_status_is_ok(status)) status = kiln_link_finish(link, &code);
    if (kiln_status_is_ok(status)) {
      atomic_fetch_add(&world->linked, 1);
    }
    kiln_status_free(status);
    kiln_code_release(code);
    kiln_link_release(link);
  }
}

static void test_threads(void** state) {
  world_t* world = *state;
  kilni_base_thread_t threads[4];
  kiln_link_release(new_link(world, NULL));
  for (int i = 0; i < 4; i++) {
    assert_null(
        kilni_base_thread_start(&threads[i], "link", link_often, world));
  }
  for (int i = 0; i < 4; i++) kilni_base_thread_join(&threads[i]);
  assert_int_equal(atomic_load(&world->linked), 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_ptx_to_cubin),
      TEST(test_outputs),
      TEST(test_gates),
      TEST(test_what_is_cut_off),
      TEST(test_what_is_left_out),
      TEST(test_lines_of_files),
      TEST(test_line_of_a_large_file),
      TEST(test_two_definitions),
      TEST(test_a_damaged_input),
      TEST(test_lines_of_ltoir),
      TEST(test_types_that_differ),
      TEST(test_what_is_said_without_a_device),
      TEST(test_no_device_code),
      TEST(test_code_by_itself_in_an_archive),
      TEST(test_another_architecture),
      TEST(test_containers_for_others),
      TEST(test_finished_code_beside_another_input),
      TEST(test_names_that_nobody_has),
      TEST(test_options_that_change_nothing),
      TEST(test_lto_of_no_ir),
      TEST(test_a_kernel_that_is_lost),
      TEST(test_an_error_and_success),
      TEST(test_a_name_that_is_missing),
      TEST(test_names_go_along),
      TEST(test_bad_inputs),
      TEST(test_explain_is_what_happens),
      TEST(test_rows),
      TEST(test_wanted_backend),
      TEST(test_soft),
      TEST(test_soft_and_newer_code),
      TEST(test_absent_is_said_once),
      TEST(test_a_copy_that_does_not_load),
      TEST(test_options_of_the_driver),
      TEST(test_no_device),
      TEST(test_failures),
      TEST(test_logs),
      TEST(test_order_and_kinds),
      TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
