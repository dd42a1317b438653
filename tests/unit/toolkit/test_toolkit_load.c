// SPDX-License-Identifier: Apache-2.0
//
// toolkit: loading, in synthetic trees of real libraries.
//
// What is loaded stays in a process, so each case runs in a child of its own.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "base/thread.h"
#include "locate_world.h"
#include "toolkit/toolkit.h"

// In a child: cmocka's own asserts would come back here twice.
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                       \
    }                                                                 \
  } while (0)

static void in_child(world_t* world, void (*body)(world_t* world)) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    body(world);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

// ---- A context and its log ----

static char g_log[16384];

static void on_log(kiln_log_level_t level, const char* space, const char* line,
                   void* user) {
  (void)space;
  (void)user;
  if (level != KILN_LOG_WARNING) return;
  size_t at = strlen(g_log);
  snprintf(g_log + at, sizeof(g_log) - at, "%s\n", line);
}

static void put(const world_t* world, const char* name, const char* piece) {
  uint8_t* data = NULL;
  size_t size = 0;
  CHECK(kiln_status_is_ok(kilni_base_file_read(kiln_allocator_libc(), piece,
                                               16 << 20, &data, &size)));
  world_write(world, name, data, size);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
}

// cuBLAS as wheels bring it: two libraries and a RECORD, whose version says the
// line by the table of exact pins.
static void put_cublas13(const world_t* world, const char* site) {
  char name[256];
  snprintf(name, sizeof(name), "%s/nvidia/cu13/lib/libcublas.so.13", site);
  put(world, name, PIECE_CUBLAS13);
  snprintf(name, sizeof(name), "%s/nvidia/cu13/lib/libcublasLt.so.13", site);
  put(world, name, PIECE_CUBLASLT13);
  snprintf(name, sizeof(name), "%s/nvidia_cublas-13.1.0.3.dist-info/RECORD",
           site);
  world_text(world, name,
             "nvidia/cu13/lib/libcublas.so.13,,\n"
             "nvidia/cu13/lib/libcublasLt.so.13,,\n");
}

// A context over the sites `a` and `b` of the world, without a driver.
static kiln_toolkit_t* context(world_t* world, uint32_t mode,
                               const char* ctk_version) {
  static const char* sites[2];
  static kiln_log_sink_t sink = {on_log, NULL, 0, 0};
  static kiln_compat_driver_t none;
  none = kiln_compat_driver_default();
  none.state = KILN_COMPAT_DRIVER_NONE;
  sites[0] = world_path(world, "a");
  sites[1] = world_path(world, "b");
  world->options.sites = sites;
  world->options.site_count = 2;
  world->options.loaded = KILN_SWITCH_ON;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &world->options;
  options.mode = mode;
  options.ctk_version = ctk_version;
  options.driver = &none;
  options.log = &sink;
  kiln_toolkit_t* toolkit = NULL;
  CHECK(
      kiln_status_is_ok(kilni_toolkit_create(&options, &world->env, &toolkit)));
  return toolkit;
}

typedef struct mapped_t {
  const char* soname;
  int count;
} mapped_t;

static bool count_object(const kilni_base_dynlib_mapped_t* object, void* user) {
  mapped_t* mapped = user;
  if (strcmp(object->soname, mapped->soname) == 0) mapped->count++;
  return true;
}

static int mapped(const char* soname) {
  mapped_t wanted = {soname, 0};
  kilni_base_dynlib_each_mapped(count_object, &wanted);
  return wanted.count;
}

static const kiln_toolkit_library_t* load(kiln_toolkit_t* toolkit,
                                          const char* name) {
  const kiln_toolkit_library_t* library = NULL;
  kiln_status_t status = kiln_toolkit_load(toolkit, name, &library);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "%s\n", kiln_status_message(status));
  }
  CHECK(kiln_status_is_ok(status));
  CHECK(library != NULL);
  return library;
}

static int call(const kiln_toolkit_library_t* library, const char* name) {
  int (*function)(void) = NULL;
  void* symbol = kiln_toolkit_library_symbol(library, name);
  CHECK(symbol != NULL);
  memcpy(&function, &symbol, sizeof(function));
  return function();
}

// ---- Cases ----

static void needs_body(world_t* world) {
  put_cublas13(world, "a");
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_STRICT, NULL);
  const kiln_toolkit_library_t* blas = load(toolkit, "cublas");
  CHECK(strcmp(kiln_toolkit_library_path(blas),
               world_path(world, "a/nvidia/cu13/lib/libcublas.so.13")) == 0);
  CHECK(kiln_toolkit_library_before_count(blas) == 1);
  CHECK(strcmp(kiln_toolkit_library_before(blas, 0),
               world_path(world, "a/nvidia/cu13/lib/libcublasLt.so.13")) == 0);
  CHECK(kiln_toolkit_library_before(blas, 1) == NULL);
  CHECK(!kiln_toolkit_library_was_loaded(blas));
  CHECK(kiln_toolkit_library_user_count(blas) == 0);
  CHECK(kiln_toolkit_library_handle(blas) != NULL);
  CHECK(kiln_toolkit_library_symbol(blas, "kiln_fake_nothing") == NULL);
  CHECK(call(blas, "kiln_fake_blas") == 2);
  CHECK(load(toolkit, "cublas") == blas);
  // What it needs is a library of the context too, and no stranger's.
  CHECK(!kiln_toolkit_library_was_loaded(load(toolkit, "cublasLt")));
  CHECK(mapped("libcublas.so.13") == 1 && mapped("libcublasLt.so.13") == 1);
  kiln_toolkit_release(toolkit);
  CHECK(mapped("libcublas.so.13") == 1);  // nobody closes it
}

static void what_it_needs_comes_first(void** state) {
  in_child(*state, needs_body);
}

// Asserts that what came before a library are the files `names`, in order.
static void check_before(const world_t* world, kiln_toolkit_t* toolkit,
                         const char* name, const char* const* names) {
  const kiln_toolkit_library_t* library = load(toolkit, name);
  uint32_t count = 0;
  for (; names[count] != NULL; count++) {
    char path[256];
    snprintf(path, sizeof(path), "a/nvidia/cu13/lib/%s", names[count]);
    const char* before = kiln_toolkit_library_before(library, count);
    CHECK(before != NULL && strcmp(before, world_path(world, path)) == 0);
  }
  CHECK(kiln_toolkit_library_before_count(library) == count);
}

static void before_body(world_t* world) {
  put_cublas13(world, "a");
  put(world, "a/nvidia/cu13/lib/libnvJitLink.so.13", PIECE_NVJITLINK13);
  put(world, "a/nvidia/cu13/lib/libcusparse.so.12", PIECE_CUSPARSE12);
  put(world, "a/nvidia/cu13/lib/libcusolver.so.12", PIECE_CUSOLVER12);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_OFF, NULL);
  CHECK(load(toolkit, "cusolver") != NULL);
  // What was opened for others of the same load is none of its business.
  static const char* const solver[] = {"libnvJitLink.so.13",
                                       "libcusparse.so.12", "libcublasLt.so.13",
                                       "libcublas.so.13", NULL};
  check_before(world, toolkit, "cusolver", solver);
  check_before(world, toolkit, "cublas",
               (const char* const[]){"libcublasLt.so.13", NULL});
  check_before(world, toolkit, "cusparse",
               (const char* const[]){"libnvJitLink.so.13", NULL});
  check_before(world, toolkit, "cublasLt", (const char* const[]){NULL});
  check_before(world, toolkit, "nvJitLink", (const char* const[]){NULL});
  kiln_toolkit_release(toolkit);
}

static void each_has_its_own_needs_before_it(void** state) {
  in_child(*state, before_body);
}

static void librt_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libcufile.so.0", PIECE_CUFILE_LOST);
  put(world, "a/nvidia/cu13/lib/libcufft.so.12", PIECE_CUFFT_LOST);
  put(world, "c/librt.so.1", PIECE_LIBRT);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_OFF, NULL);
  const kiln_toolkit_library_t* library = NULL;
  kilni_base_dynlib_t* librt = NULL;
  CHECK(kiln_status_is_ok(kilni_base_dynlib_open(
      kiln_allocator_libc(), world_path(world, "c/librt.so.1"), &librt)));
  // It is there, but local to who opened it, so that the loader cannot use it.
  kilni_base_dynlib_t* lost = NULL;
  kiln_status_t status = kilni_base_dynlib_open(
      kiln_allocator_libc(),
      world_path(world, "a/nvidia/cu13/lib/libcufile.so.0"), &lost);
  CHECK(!kiln_status_is_ok(status) && lost == NULL);
  CHECK(strstr(kiln_status_message(status), "kiln_fake_shm_open") != NULL);
  kiln_status_free(status);
  // Only a library that is known to need the cure gets it.
  status = kiln_toolkit_load(toolkit, "cufft", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_NOT_FOUND && library == NULL);
  CHECK(strstr(kiln_status_message(status), "kiln_fake_shm_open") != NULL);
  kiln_status_free(status);
  CHECK(call(load(toolkit, "cufile"), "kiln_fake_cufile") == 2);
  kiln_toolkit_release(toolkit);
  kilni_base_dynlib_close(librt);
}

static void a_function_that_librt_has(void** state) {
  in_child(*state, librt_body);
}

static void librt_fails_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libcufile.so.0", PIECE_CUFILE_LOST);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_OFF, NULL);
  const kiln_toolkit_library_t* library = NULL;
  kiln_status_t status = kiln_toolkit_load(toolkit, "cufile", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_NOT_FOUND && library == NULL);
  CHECK(strstr(kiln_status_message(status), "kiln_fake_shm_open") != NULL);
  kiln_status_free(status);
  kiln_toolkit_release(toolkit);
}

// The system's librt has no such function: the first error stands.
static void a_cure_that_does_not_help(void** state) {
  in_child(*state, librt_fails_body);
}

static void missing_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libcublas.so.13", PIECE_CUBLAS13);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_WARN, NULL);
  const kiln_toolkit_library_t* library = NULL;
  kiln_status_t status = kiln_toolkit_load(toolkit, "cublas", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_NOT_FOUND);
  CHECK(library == NULL);
  CHECK(strstr(kiln_status_message(status), "libcublasLt.so.13") != NULL);
  CHECK(kiln_status_fix(status) != NULL);
  kiln_status_free(status);
  CHECK(mapped("libcublas.so.13") == 0);
  status = kiln_toolkit_load(toolkit, "cusparse", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  status = kiln_toolkit_load(toolkit, "cublass", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  world_put(world, "a/nvidia/cu13/lib/libcufft.so.12");
  status = kiln_toolkit_load(toolkit, "cufft", &library);  // not found yet
  CHECK(!kiln_status_is_ok(status) && library == NULL);
  kiln_status_free(status);
  kiln_toolkit_release(toolkit);
}

static void something_is_missing(void** state) {
  in_child(*state, missing_body);
}

static void refused_body(world_t* world) {
  put_cublas13(world, "a");
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_STRICT, "<13");
  const kiln_toolkit_library_t* library = NULL;
  kiln_status_t status = kiln_toolkit_load(toolkit, "cublas", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_INCOMPATIBLE);
  CHECK(library == NULL);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  CHECK(strstr(text, "nothing was loaded") != NULL);
  kiln_status_free(status);
  CHECK(mapped("libcublas.so.13") == 0 && mapped("libcublasLt.so.13") == 0);
  kiln_toolkit_release(toolkit);
  // In `warn` it is a line in the log.
  toolkit = context(world, KILN_COMPAT_MODE_WARN, "<13");
  g_log[0] = 0;
  CHECK(load(toolkit, "cublas") != NULL);
  CHECK(strstr(g_log, "<13") != NULL);
  kiln_toolkit_release(toolkit);
}

static void a_refusal_leaves_nothing_behind(void** state) {
  in_child(*state, refused_body);
}

static void own_root_body(world_t* world) {
  // A search alone would take the linker of `a`.
  put(world, "a/nvidia/cu13/lib/libcublasLt.so.13", PIECE_CUBLASLT13);
  put(world, "b/nvidia/cu13/lib/libcublas.so.13", PIECE_CUBLAS13);
  put(world, "b/nvidia/cu13/lib/libcublasLt.so.13", PIECE_CUBLASLT13);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_OFF, NULL);
  const kiln_toolkit_library_t* blas = load(toolkit, "cublas");
  CHECK(strcmp(kiln_toolkit_library_before(blas, 0),
               world_path(world, "b/nvidia/cu13/lib/libcublasLt.so.13")) == 0);
  kiln_toolkit_release(toolkit);
}

static void a_set_stays_one_set(void** state) {
  in_child(*state, own_root_body);
}

static void major_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libcublasLt.so.13", PIECE_CUBLASLT13);
  put(world, "a/nvidia/cublas/lib/libcublas.so.12", PIECE_CUBLAS12);
  put(world, "a/nvidia/cublas/lib/libcublasLt.so.12", PIECE_CUBLASLT12);
  world_text(world, "a/nvidia_cublas_cu12-12.9.1.4.dist-info/RECORD",
             "nvidia/cublas/lib/libcublas.so.12,,\n"
             "nvidia/cublas/lib/libcublasLt.so.12,,\n");
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_STRICT, NULL);
  const kiln_toolkit_library_t* blas = load(toolkit, "cublas");
  CHECK(strstr(kiln_toolkit_library_before(blas, 0), ".so.12") != NULL);
  CHECK(call(blas, "kiln_fake_blas12") == 2);
  CHECK(mapped("libcublasLt.so.13") == 0);
  kiln_toolkit_release(toolkit);
}

static void the_file_that_is_asked_for(void** state) {
  in_child(*state, major_body);
}

static void builtins_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libnvrtc.so.13", PIECE_NVRTC13);
  kilni_base_dynlib_t* plain = NULL;
  put(world, "c/libnvrtc.so.13", PIECE_NVRTC13);
  CHECK(kiln_status_is_ok(kilni_base_dynlib_open(
      kiln_allocator_libc(), world_path(world, "c/libnvrtc.so.13"), &plain)));
  // The fault that the workaround is for.
  int (*compile)(void) = NULL;
  void* symbol = kilni_base_dynlib_symbol(plain, "kiln_fake_compile");
  memcpy(&compile, &symbol, sizeof(compile));
  CHECK(compile() == 0);
  kilni_base_dynlib_close(plain);
  put(world, "a/nvidia/cu13/lib/libnvrtc-builtins.so.13.9", PIECE_BUILTINS);
  world->options.forbid_scopes =
      KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_LOADED);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_STRICT, NULL);
  g_log[0] = 0;
  const kiln_toolkit_library_t* nvrtc = load(toolkit, "nvrtc");
  CHECK(kiln_toolkit_library_before_count(nvrtc) == 1);
  CHECK(call(nvrtc, "kiln_fake_compile") == 1);
  // The other copy is told.
  CHECK(strstr(g_log, "two copies") != NULL);
  kiln_toolkit_item_t* item = kiln_toolkit_library_item(nvrtc);
  CHECK(kiln_toolkit_item_line(item) == 13090);
  bool heard = false;
  for (uint32_t i = 0; i < kiln_toolkit_item_evidence_count(item); i++) {
    heard |=
        kiln_toolkit_item_evidence(item, i)->source == KILN_COMPAT_SOURCE_CALL;
  }
  CHECK(heard);
  kiln_toolkit_release(toolkit);
}

static void a_sibling_that_it_cannot_find(void** state) {
  in_child(*state, builtins_body);
}

static void stranger_body(world_t* world) {
  // Somebody else has a copy, and a program that was linked with it.
  put(world, "c/libcublasLt.so.13", PIECE_CUBLASLT13);
  put(world, "c/libcublas.so.13", PIECE_CUBLAS13);
  put(world, "a/nvidia/cu13/lib/libcublasLt.so.13", PIECE_CUBLASLT13);
  kilni_base_dynlib_t* lt = NULL;
  kilni_base_dynlib_t* blas = NULL;
  CHECK(kiln_status_is_ok(kilni_base_dynlib_open(
      kiln_allocator_libc(), world_path(world, "c/libcublasLt.so.13"), &lt)));
  CHECK(kiln_status_is_ok(kilni_base_dynlib_open(
      kiln_allocator_libc(), world_path(world, "c/libcublas.so.13"), &blas)));
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_WARN, NULL);
  const kiln_toolkit_library_t* library = load(toolkit, "cublasLt");
  CHECK(kiln_toolkit_library_was_loaded(library));
  CHECK(strcmp(kiln_toolkit_library_path(library),
               world_path(world, "c/libcublasLt.so.13")) == 0);
  CHECK(kiln_toolkit_library_user_count(library) == 1);
  CHECK(strcmp(kiln_toolkit_library_user(library, 0),
               world_path(world, "c/libcublas.so.13")) == 0);
  CHECK(kiln_toolkit_library_user(library, 1) == NULL);
  kiln_toolkit_release(toolkit);
  kilni_base_dynlib_close(blas);
  kilni_base_dynlib_close(lt);
}

static void what_somebody_else_loaded(void** state) {
  in_child(*state, stranger_body);
}

static void odd_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libnvrtc.so.13", PIECE_NVRTC_ODD);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_WARN, NULL);
  g_log[0] = 0;
  CHECK(load(toolkit, "nvrtc") != NULL);
  CHECK(strstr(g_log, "nvrtcVersion") != NULL);
  CHECK(strstr(g_log, "13.0") != NULL && strstr(g_log, "13.2") != NULL);
  kiln_toolkit_release(toolkit);
}

static void a_library_that_says_otherwise(void** state) {
  in_child(*state, odd_body);
}

// Unloaded, what libNVVM's line reads; loaded, what it says itself.
static void nvvm_body(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libnvvm.so.4", PIECE_NVVM4);
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_OFF, NULL);
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status =
      kiln_toolkit_find(toolkit, KILN_LOCATE_KIND_LIB, "nvvm", &item);
  CHECK(kiln_status_is_ok(status));
  CHECK(kiln_toolkit_item_line(item) == 13000);
  CHECK(kiln_toolkit_item_fact(item)->nvvm_ir == 2000);
  kiln_toolkit_item_release(item);
  const kiln_toolkit_library_t* library = load(toolkit, "nvvm");
  CHECK(library != NULL);
  const kiln_toolkit_item_t* loaded = kiln_toolkit_library_item(library);
  CHECK(kiln_toolkit_item_fact(loaded)->nvvm_ir == 3004);
  CHECK(kiln_toolkit_item_line(loaded) == 13000);
  kiln_toolkit_release(toolkit);
}

static void the_ir_of_libnvvm(void** state) {
  in_child(*state, nvvm_body);
}

static void broken_body(world_t* world) {
  world_text(world, "a/nvidia/cu13/lib/libnvrtc.so.13", "no library");
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_OFF, NULL);
  const kiln_toolkit_library_t* library = NULL;
  kiln_status_t status = kiln_toolkit_load(toolkit, "nvrtc", &library);
  CHECK(kiln_status_code(status) == KILN_STATUS_NOT_FOUND && library == NULL);
  CHECK(strstr(kiln_status_message(status), "libnvrtc.so.13") != NULL);
  kiln_status_free(status);
  // It is mended, and after a refresh found.
  put(world, "a/nvidia/cu13/lib/libnvrtc.so.13", PIECE_NVRTC13);
  kiln_toolkit_refresh(toolkit);
  const kiln_toolkit_library_t* nvrtc = load(toolkit, "nvrtc");
  kiln_toolkit_reset(toolkit);
  CHECK(load(toolkit, "nvrtc") == nvrtc);
  kiln_toolkit_release(toolkit);
}

static void a_file_that_is_no_library(void** state) {
  in_child(*state, broken_body);
}

// ---- Threads ----

enum { THREADS = 8 };

typedef struct worker_t {
  kilni_base_thread_t thread;
  kiln_toolkit_t* toolkit;
  const kiln_toolkit_library_t* got;
  atomic_bool* go;
} worker_t;

static void work(void* user) {
  worker_t* worker = user;
  while (!atomic_load(worker->go)) {
  }
  worker->got = load(worker->toolkit, "cublas");
  kiln_toolkit_item_t* item = NULL;
  CHECK(kiln_status_is_ok(kiln_toolkit_find(
      worker->toolkit, KILN_LOCATE_KIND_LIB, "cublasLt", &item)));
  kiln_toolkit_item_release(item);
}

static void threads_body(world_t* world) {
  put_cublas13(world, "a");
  kiln_toolkit_t* toolkit = context(world, KILN_COMPAT_MODE_STRICT, NULL);
  atomic_bool go;
  atomic_init(&go, false);
  worker_t workers[THREADS];
  memset(workers, 0, sizeof(workers));
  for (int i = 0; i < THREADS; i++) {
    workers[i].toolkit = toolkit;
    workers[i].go = &go;
    CHECK(kiln_status_is_ok(kilni_base_thread_start(&workers[i].thread, "load",
                                                    work, &workers[i])));
  }
  atomic_store(&go, true);
  for (int i = 0; i < THREADS; i++) kilni_base_thread_join(&workers[i].thread);
  for (int i = 0; i < THREADS; i++) CHECK(workers[i].got == workers[0].got);
  kiln_toolkit_release(toolkit);
}

static void one_handle_for_all_threads(void** state) {
  in_child(*state, threads_body);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_it_needs_comes_first),
      TEST(each_has_its_own_needs_before_it),
      TEST(a_function_that_librt_has),
      TEST(a_cure_that_does_not_help),
      TEST(something_is_missing),
      TEST(a_refusal_leaves_nothing_behind),
      TEST(a_set_stays_one_set),
      TEST(the_file_that_is_asked_for),
      TEST(a_sibling_that_it_cannot_find),
      TEST(what_somebody_else_loaded),
      TEST(a_library_that_says_otherwise),
      TEST(the_ir_of_libnvvm),
      TEST(a_file_that_is_no_library),
      TEST(one_handle_for_all_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
