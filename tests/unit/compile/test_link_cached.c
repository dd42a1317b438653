// SPDX-License-Identifier: Apache-2.0
//
// compile: links out of a cache, over nvJitLink's null provider and over a
// backend of the test's own, which stands for the driver's.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "table/nvjitlink_table.h"
#include "fault_alloc.h"

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() "
    "{ ret; }\n";
static const uint8_t kCubin[64] = {0x7f, 'E',  'L', 'F',      2,         1,
                                   1,    0x41, 8,   [16] = 2, [18] = 190};

// ---- The stand-in for the driver ----

// How often it linked, and whether it fails. one-thread
typedef struct fake_t {
  uint32_t links;
  bool fails;
} fake_t;

static kiln_status_t fake_begin(void* self,
                                const kilni_compile_link_plan_t* plan,
                                void** out_session) {
  (void)plan;
  *out_session = self;
  return kiln_ok();
}

static kiln_status_t fake_add(void* session,
                              const kilni_compile_link_input_t* input) {
  (void)session, (void)input;
  return kiln_ok();
}

static kiln_status_t fake_finish(void* session,
                                 const kilni_compile_link_sink_t* sink) {
  fake_t* fake = session;
  fake->links++;
  if (fake->fails) {
    return kilni_base_status_with_fix(KILNI_FAIL(LINK_FAILED, "no"),
                                      "read the log");
  }
  return sink->put(sink->user, (kiln_bytes_view_t){kCubin, sizeof(kCubin)});
}

static kiln_status_t fake_log(void* session, uint32_t which,
                              kilni_base_str_t* inout_text) {
  const fake_t* fake = session;
  if (fake->links == 0) return kiln_ok();
  kilni_base_str_add_cstr(
      inout_text, which == KILN_LINK_LOG_ERROR ? "a warning\n" : "linked it\n");
  return kiln_ok();
}

static void fake_end(void* session) {
  (void)session;
}

// ---- What links are made in ----

// A host, a cache in memory, and a linker. one-thread
typedef struct world_t {
  fault_alloc_t watch;
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_nvjitlink_table_t table;
  kilni_compile_linker_wish_t wish;
  kilni_compile_link_backend_t backend;
  fake_t fake;
  kiln_linker_t* linker;
  kiln_cache_t* cache;
} world_t;

static int make_world(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  fault_alloc_init(&world.watch);
  world.host.allocator = fault_alloc_allocator(&world.watch);
  world.env.allocator = world.host.allocator;
  world.host.env = &world.env;
  world.host.process_id = kilni_base_process_id();
  world.wish.arch = "sm_90";
  kiln_cache_options_t options = kiln_cache_options_default();
  options.disk = KILN_SWITCH_OFF;
  options.allocator = &world.host.allocator;
  assert_null(kiln_cache_create(&options, &world.cache));
  *state = &world;
  return 0;
}

static int end_world(void** state) {
  world_t* world = *state;
  kiln_linker_release(world->linker);
  kiln_cache_release(world->cache);
  fault_alloc_assert_clean(&world->watch);
  fault_alloc_deinit(&world->watch);
  return 0;
}

static void open_linker(world_t* world) {
  kilni_base_keep_t nobody = {0};
  kiln_linker_release(world->linker);
  world->linker = NULL;
  assert_null(kilni_compile_linker_create(&world->host, nobody, &world->wish,
                                          &world->linker));
}

static void with_nvjitlink(world_t* world) {
  kilni_table_nvjitlink_table_null(&world->table);
  world->wish.table = &world->table;
  open_linker(world);
}

// `file` is what the driver is known by.
static void with_driver(world_t* world, const char* file) {
  world->backend = (kilni_compile_link_backend_t){KILN_LINK_BACKEND_DRIVER,
                                                  13000,
                                                  &world->fake,
                                                  fake_begin,
                                                  fake_add,
                                                  fake_finish,
                                                  fake_log,
                                                  fake_end};
  world->wish.device = &world->backend;
  world->wish.device_library = file;
  open_linker(world);
}

static kiln_status_t link_text(world_t* world, kiln_link_options_t* options,
                               const char* text, const char* name,
                               kiln_link_t** out_link, kiln_code_t** out_code) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  options->cache = world->cache;
  *out_code = NULL;
  *out_link = NULL;
  KILNI_RETURN_IF_ERROR(kiln_link_create(world->linker, options, out_link));
  KILNI_RETURN_IF_ERROR(kiln_link_add_bytes(*out_link, bytes, 0, name));
  return kiln_link_finish(*out_link, out_code);
}

static void expect(world_t* world, kiln_link_options_t* options,
                   const char* text, const char* name, uint32_t wanted,
                   const char* reason) {
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  assert_null(link_text(world, options, text, name, &link, &code));
  assert_int_equal(kiln_link_cache(link), wanted);
  assert_non_null(strstr(kiln_link_cache_reason(link), reason));
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_CUBIN);
  assert_true(kiln_code_bytes(code).size > 0);
  assert_string_equal(kiln_code_arch(code),
                      options->arch != NULL ? options->arch : "sm_90");
  assert_non_null(kiln_link_chosen(link));
  assert_non_null(kiln_link_used(link));
  kiln_code_release(code);
  kiln_link_release(link);
}

static void hit(world_t* world, kiln_link_options_t* options) {
  expect(world, options, kPtx, "k.ptx", KILN_LINK_CACHE_HIT, "memory");
}

static void miss(world_t* world, kiln_link_options_t* options) {
  expect(world, options, kPtx, "k.ptx", KILN_LINK_CACHE_MISS, "not present");
}

static void everything_is_in_the_key(void** state) {
  world_t* world = *state;
  static const char* const words[] = {"k"};
  static const char other[] = ".version 8.1\n.target sm_75\n.address_size 64\n";
  kiln_link_options_t options = kiln_link_options_default();
  with_nvjitlink(world);
  miss(world, &options);
  hit(world, &options);
  expect(world, &options, other, "k.ptx", KILN_LINK_CACHE_MISS, "");
  expect(world, &options, kPtx, "other.ptx", KILN_LINK_CACHE_MISS, "");
#define CHANGED(statement) \
  do {                     \
    statement;             \
    miss(world, &options); \
    hit(world, &options);  \
  } while (0)
  CHANGED(options.name = "named");
  CHANGED(options.arch = "sm_80");
  CHANGED(options.max_registers = 32);
  CHANGED(options.debug = KILN_SWITCH_ON);
  CHANGED(options.optimization_level = KILN_LINK_LEVEL_1);
  CHANGED(options.optimization_level = KILN_LINK_LEVEL_2);
  CHANGED(options.ptxas_options = words; options.ptxas_options_count = 1);
  CHANGED(options.extra = words; options.extra_count = 1);
#undef CHANGED
}

static void who_links_is_in_the_key(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  with_driver(world, KILN_SOURCE_DIR "/LICENSE");
  miss(world, &options);
  hit(world, &options);
  assert_int_equal(world->fake.links, 1);
  // The same driver somewhere else, and another.
  open_linker(world);
  hit(world, &options);
  with_driver(world, KILN_SOURCE_DIR "/README.md");
  miss(world, &options);
  // Which one it is nobody can tell.
  with_driver(world, NULL);
  for (int i = 0; i < 2; i++) {
    expect(world, &options, kPtx, "k.ptx", KILN_LINK_CACHE_UNCACHEABLE,
           "cannot be determined");
  }
  with_driver(world, "/nonexistent/libcuda.so.1");
  expect(world, &options, kPtx, "k.ptx", KILN_LINK_CACHE_UNCACHEABLE,
         "cannot be determined");
}

static void logs_are_kept(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  with_driver(world, KILN_SOURCE_DIR "/LICENSE");
  for (int i = 0; i < 2; i++) {
    kiln_link_t* link = NULL;
    kiln_code_t* code = NULL;
    assert_null(link_text(world, &options, kPtx, "k.ptx", &link, &code));
    assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_INFO), "linked it\n");
    assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_ERROR),
                        "a warning\n");
    assert_int_equal(kiln_code_producer_line(code), 13000);
    assert_string_equal(kiln_link_settings_option(kiln_link_used(link), 0),
                        "CU_JIT_TARGET=90");
    // Once is all: finished is finished, from a cache too.
    kiln_code_t* again = NULL;
    kiln_status_t status = kiln_link_finish(link, &again);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_STATE);
    kiln_status_free(status);
    kiln_code_release(code);
    kiln_link_release(link);
  }
  assert_int_equal(world->fake.links, 1);
}

static void a_failure_is_not_kept(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  with_driver(world, KILN_SOURCE_DIR "/LICENSE");
  world->fake.fails = true;
  for (uint32_t i = 1; i <= 2; i++) {
    kiln_link_t* link = NULL;
    kiln_code_t* code = NULL;
    kiln_status_t status =
        link_text(world, &options, kPtx, "k.ptx", &link, &code);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_LINK_FAILED);
    assert_null(code);
    assert_string_equal(kiln_link_log(link, KILN_LINK_LOG_ERROR),
                        "a warning\n");
    assert_int_equal(world->fake.links, i);
    kiln_status_free(status);
    kiln_link_release(link);
  }
  world->fake.fails = false;
  miss(world, &options);
}

static void options_that_name_files(void** state) {
  world_t* world = *state;
  static const char* const extra[] = {"--options-file=x"};
  kiln_link_options_t options = kiln_link_options_default();
  with_nvjitlink(world);
  options.ptxas_options = extra;
  options.ptxas_options_count = 1;
  expect(world, &options, kPtx, "k.ptx", KILN_LINK_CACHE_UNCACHEABLE,
         "names files");
}

static void without_a_cache_there_is_none(void** state) {
  world_t* world = *state;
  kiln_compile_entry_t entry;
  kiln_string_view_t changed;
  kiln_link_options_t options = kiln_link_options_default();
  with_nvjitlink(world);
  miss(world, &options);
  kiln_link_t* link = NULL;
  assert_null(kiln_link_create(world->linker, NULL, &link));
  assert_int_equal(kiln_link_cache(link), KILN_LINK_CACHE_NONE);
  assert_string_equal(kiln_link_cache_reason(link), "");
  assert_int_equal(kiln_link_cache(NULL), KILN_LINK_CACHE_NONE);
  kiln_link_release(link);
  assert_false(kiln_compile_entry_read(NULL, &entry));
  assert_false(kiln_compile_entry_holds(NULL, NULL, &changed));
}

// A cache that another process could have opened: nothing in memory yet.
static void open_cache(world_t* world, const char* folder) {
  kiln_cache_release(world->cache);
  kiln_cache_options_t options = kiln_cache_options_default();
  options.directory = folder;
  options.allocator = &world->host.allocator;
  assert_null(kiln_cache_create(&options, &world->cache));
}

// Calls `visit` for each entry of the folder; how many there are.
static int each_entry(const char* folder, void (*visit)(const char* path)) {
  int count = 0;
  DIR* list = opendir(folder);
  assert_non_null(list);
  for (struct dirent* one; (one = readdir(list)) != NULL;) {
    char path[512];
    if (one->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", folder, one->d_name);
    visit(path);
    count++;
  }
  closedir(list);
  return count;
}

static void damage(const char* path) {
  FILE* file = fopen(path, "r+b");
  assert_non_null(file);
  // Of an entry the last bytes are the code's; other files are too short.
  if (fseek(file, -20, SEEK_END) == 0) {
    int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
  }
  assert_int_equal(fclose(file), 0);
}

static void delete(const char* path) {
  assert_int_equal(unlink(path), 0);
}

// What one process linked another one has from the disk, unless the entry is
// damaged: then it links again, and mends it.
static void another_process_has_it(void** state) {
  world_t* world = *state;
  char folder[] = "/tmp/kiln-links-XXXXXX";
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  assert_non_null(mkdtemp(folder));
  with_driver(world, KILN_SOURCE_DIR "/LICENSE");
  open_cache(world, folder);
  miss(world, &options);
  open_cache(world, folder);
  expect(world, &options, kPtx, "k.ptx", KILN_LINK_CACHE_HIT, "disk");
  hit(world, &options);
  assert_int_equal(world->fake.links, 1);
  open_cache(world, folder);
  assert_true(each_entry(folder, damage) > 0);
  expect(world, &options, kPtx, "k.ptx", KILN_LINK_CACHE_MISS, "");
  assert_int_equal(world->fake.links, 2);
  open_cache(world, folder);
  expect(world, &options, kPtx, "k.ptx", KILN_LINK_CACHE_HIT, "disk");
  assert_int_equal(world->fake.links, 2);
  kiln_cache_release(world->cache);
  world->cache = NULL;
  (void)each_entry(folder, delete);
  assert_int_equal(rmdir(folder), 0);
}

// Each allocation fails once: an error or the code, and nothing left behind.
static void no_memory(void** state) {
  world_t* world = *state;
  kiln_link_options_t options = kiln_link_options_default();
  with_nvjitlink(world);
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t at = 1;; at++) {
      kiln_link_t* link = NULL;
      kiln_code_t* code = NULL;
      // The first pass makes it, the second finds it.
      if (pass == 0) assert_null(kiln_cache_clear(world->cache, NULL));
      fault_alloc_arm(&world->watch, at, false);
      kiln_status_t status =
          link_text(world, &options, kPtx, "k.ptx", &link, &code);
      uint64_t met = fault_alloc_disarm(&world->watch);
      assert_true(kiln_status_is_ok(status) == (code != NULL));
      assert_true(kiln_status_is_ok(status) ||
                  kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY);
      kiln_status_free(status);
      kiln_code_release(code);
      kiln_link_release(link);
      if (met < at) break;
    }
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)
  const struct CMUnitTest tests[] = {
      TEST(everything_is_in_the_key),
      TEST(who_links_is_in_the_key),
      TEST(logs_are_kept),
      TEST(a_failure_is_not_kept),
      TEST(options_that_name_files),
      TEST(without_a_cache_there_is_none),
      TEST(another_process_has_it),
      TEST(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
