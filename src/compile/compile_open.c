// SPDX-License-Identifier: Apache-2.0
//
// compile: NVRTC or libNVVM opened: the first that the search meets and that
// works, with what belongs to it.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/keep.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile.h"
#include "compile/compile_inside.h"
#include "kiln/toolkit.h"
#include "locate/locate.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"

// An error lists at most this many places; the report has them all.
enum { MAX_LISTED = 24, MAX_DEVICE_BYTES = 64 << 20 };

// What the catalog calls the library.
static const char* open_name_of(uint32_t kind) {
  return kind == KILN_COMPILER_KIND_NVVM ? "nvvm" : "nvrtc";
}

void kiln_compiler_retain(kiln_compiler_t* compiler) {
  if (compiler == NULL) return;
  atomic_fetch_add_explicit(&compiler->references, 1, memory_order_relaxed);
}

static void compile_open_destroy(kiln_compiler_t* compiler) {
  kiln_allocator_t allocator = compiler->host->allocator;
  kilni_base_keep_t keep = compiler->keep;
  kiln_compiler_release(atomic_load(&compiler->instead));
  if (compiler->traced && compiler->kind == KILN_COMPILER_KIND_NVVM) {
    kilni_table_nvvm_trace_remove(&compiler->nvvm);
  } else if (compiler->traced) {
    kilni_table_nvrtc_trace_remove(&compiler->table);
  }
  kilni_base_dynlib_close(compiler->library);
  kiln_locate_item_release(compiler->located);
  for (uint32_t i = 0; i < compiler->unchecked_count; i++) {
    kiln_locate_item_release(compiler->unchecked[i]);
  }
  kilni_base_strfree(allocator, compiler->path);
  kilni_base_strfree(allocator, compiler->include_dir);
  kilni_base_strfree(allocator, compiler->include_dir2);
  kilni_base_strfree(allocator, compiler->device_file);
  kilni_base_file_free(allocator, compiler->device_code,
                       compiler->device_bytes);
  kilni_base_free_array(allocator, compiler->archs, compiler->arch_count,
                        sizeof(int));
  kilni_compile_gate_deinit(&compiler->gate);
  if (compiler->has_lock) kilni_base_mutex_deinit(&compiler->lock);
  kilni_base_free(allocator, compiler, sizeof(*compiler));
  kilni_base_keep_release(keep);
}

void kiln_compiler_release(kiln_compiler_t* compiler) {
  if (compiler == NULL || kilni_base_host_is_forked(compiler->host)) return;
  if (atomic_fetch_sub_explicit(&compiler->references, 1,
                                memory_order_acq_rel) == 1) {
    compile_open_destroy(compiler);
  }
}

static kiln_status_t read_archs(kiln_compiler_t* compiler) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  int count = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_NVRTC_STATUS(table, table->nvrtcGetNumSupportedArchs(&count),
                         "nvrtcGetNumSupportedArchs"));
  if (count <= 0 || count > 4096) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" reports %d architectures",
                   compiler->path, count),
        "install NVRTC again, from one CUDA toolkit");
  }
  void* archs = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      compiler->host->allocator, (size_t)count, sizeof(int), &archs));
  compiler->archs = archs;
  compiler->arch_count = (size_t)count;
  return KILNI_NVRTC_STATUS(table, table->nvrtcGetSupportedArchs(archs),
                            "nvrtcGetSupportedArchs");
}

static kiln_status_t read_ir_version(kiln_compiler_t* compiler) {
  const kiln_nvvm_table_t* table = &compiler->nvvm;
  int version[4] = {0};
  KILNI_RETURN_IF_ERROR(KILNI_NVVM_STATUS(
      table,
      table->nvvmIRVersion(&version[0], &version[1], &version[2], &version[3]),
      "nvvmIRVersion"));
  if (version[0] > 0 && version[0] < 1000 && version[1] >= 0 &&
      version[1] < 100) {
    compiler->ir_version = (uint32_t)(version[0] * 1000 + version[1] * 10);
  }
  return kiln_ok();
}

// What a library knows, once its table is filled.
static kiln_status_t open_read_known(kiln_compiler_t* compiler) {
  kiln_status_t status = compiler->kind == KILN_COMPILER_KIND_NVVM
                             ? read_ir_version(compiler)
                             : read_archs(compiler);
  if (kiln_status_is_ok(status)) {
    atomic_store_explicit(&compiler->loaded, true, memory_order_release);
  }
  return status;
}

// ---- Headers ----

static kiln_status_t default_text(kiln_compiler_t* compiler, char** text) {
  if (*text != NULL) return kiln_ok();
  return kilni_base_strdup(compiler->host->allocator, kilni_base_sv(""), text);
}

static kiln_status_t no_includes(kiln_compiler_t* compiler) {
  KILNI_RETURN_IF_ERROR(default_text(compiler, &compiler->include_dir));
  KILNI_RETURN_IF_ERROR(default_text(compiler, &compiler->include_dir2));
  return default_text(compiler, &compiler->device_file);
}

// What is named, else what the library's own root has, else what a search
// finds: a root that has it spares the search.
static kiln_status_t locate_beside(kiln_toolkit_t* toolkit,
                                   const kiln_locate_item_t* library,
                                   uint32_t kind, const char* name,
                                   kiln_locate_item_t** out_found) {
  kiln_locate_t* locate = kiln_toolkit_locate(toolkit);
  if (kiln_locate_item_root(library)[0] != 0 &&
      !kilni_locate_is_named(locate, kind, name)) {
    kiln_locate_item_t* beside = NULL;
    KILNI_RETURN_IF_ERROR(
        kiln_locate_find_beside(locate, library, kind, name, &beside));
    if (kiln_locate_item_found(beside)) {
      *out_found = beside;
      return kiln_ok();
    }
    kiln_locate_item_release(beside);
  }
  return kiln_locate_find(locate, kind, name, out_found);
}

// Takes headers, or a file, into use, which checks them against the compiler.
static kiln_status_t take_into_use(kiln_toolkit_t* toolkit,
                                   kiln_locate_item_t* located) {
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kiln_toolkit_find_located(toolkit, located, &item);
  kiln_toolkit_item_release(item);
  return status;
}

// What will not be asked for a refusal is checked when something is compiled
// with it: a result out of a cache needs no facts about headers.
static bool is_checked_later(const kiln_compiler_t* compiler) {
  return compiler->located != NULL &&
         kiln_toolkit_mode(compiler->toolkit) < KILN_COMPAT_MODE_BEST_EFFORT;
}

static kiln_status_t take_beside(kiln_compiler_t* compiler,
                                 kiln_toolkit_t* toolkit,
                                 const kiln_locate_item_t* library,
                                 uint32_t kind, const char* name,
                                 char** out_path) {
  kiln_locate_item_t* located = NULL;
  KILNI_RETURN_IF_ERROR(locate_beside(toolkit, library, kind, name, &located));
  kiln_status_t status = kiln_ok();
  if (kiln_locate_item_found(located)) {
    status = kilni_base_strdup(compiler->host->allocator,
                               kilni_base_sv(kiln_locate_item_path(located)),
                               out_path);
    if (kiln_status_is_ok(status) && is_checked_later(compiler)) {
      compiler->unchecked[compiler->unchecked_count++] = located;
      return kiln_ok();
    }
    if (kiln_status_is_ok(status)) status = take_into_use(toolkit, located);
  }
  kiln_locate_item_release(located);
  return status;
}

static kiln_status_t check_later(kiln_compiler_t* compiler) {
  while (compiler->unchecked_count != 0) {
    kiln_locate_item_t* located =
        compiler->unchecked[--compiler->unchecked_count];
    kiln_status_t status = take_into_use(compiler->toolkit, located);
    kiln_locate_item_release(located);
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

static kiln_status_t find_headers(kiln_compiler_t* compiler,
                                  kiln_toolkit_t* toolkit,
                                  const kiln_locate_item_t* library) {
  KILNI_RETURN_IF_ERROR(take_beside(compiler, toolkit, library,
                                    KILN_LOCATE_KIND_HEADER, "cudart",
                                    &compiler->include_dir));
  KILNI_RETURN_IF_ERROR(take_beside(compiler, toolkit, library,
                                    KILN_LOCATE_KIND_HEADER, "cccl",
                                    &compiler->include_dir2));
  compiler->has_cccl = compiler->include_dir2 != NULL;
  if (compiler->include_dir != NULL && compiler->include_dir2 != NULL &&
      strcmp(compiler->include_dir, compiler->include_dir2) == 0) {
    kilni_base_strfree(compiler->host->allocator, compiler->include_dir2);
    compiler->include_dir2 = NULL;
  }
  return kiln_ok();
}

static kiln_status_t find_device_library(kiln_compiler_t* compiler,
                                         kiln_toolkit_t* toolkit,
                                         const kiln_locate_item_t* library) {
  KILNI_RETURN_IF_ERROR(take_beside(compiler, toolkit, library,
                                    KILN_LOCATE_KIND_BITCODE, "device",
                                    &compiler->device_file));
  if (compiler->device_file == NULL) return kiln_ok();
  return kilni_base_file_read(compiler->host->allocator, compiler->device_file,
                              MAX_DEVICE_BYTES, &compiler->device_code,
                              &compiler->device_bytes);
}

// What goes with the library, and which one it is.
static kiln_status_t find_rest(kiln_compiler_t* compiler,
                               kiln_toolkit_t* toolkit,
                               const kiln_locate_item_t* library) {
  KILNI_RETURN_IF_ERROR(compiler->kind == KILN_COMPILER_KIND_NVVM
                            ? find_device_library(compiler, toolkit, library)
                            : find_headers(compiler, toolkit, library));
  KILNI_RETURN_IF_ERROR(no_includes(compiler));
  return kilni_compile_compiler_identify(compiler);
}

// ---- Opening ----

static kiln_status_t open_create(const kiln_host_t* host,
                                 kilni_base_keep_t keep,
                                 const kilni_compile_compiler_wish_t* wish,
                                 kiln_compiler_t** out_compiler) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(kiln_compiler_t), &block));
  kiln_compiler_t* compiler = block;
  compiler->host = host;
  compiler->keep = keep;
  compiler->kind =
      wish->kind != 0 ? wish->kind : (uint32_t)KILN_COMPILER_KIND_NVRTC;
  compiler->toolkit = wish->toolkit;
  compiler->trace = wish->trace;
  kilni_base_keep_retain(keep);
  atomic_init(&compiler->references, 1);
  atomic_init(&compiler->instead, NULL);
  atomic_init(&compiler->loaded, false);
  kiln_status_t status = kilni_base_mutex_init(&compiler->lock);
  compiler->has_lock = kiln_status_is_ok(status);
  if (kiln_status_is_ok(status)) {
    uint32_t most = wish->max_concurrent;
    // The host counted the cores already.
    if (most == 0) most = host->worker_count;
    status = kilni_compile_gate_init(&compiler->gate, most, wish->memory_bytes);
  }
  if (!kiln_status_is_ok(status)) {
    compile_open_destroy(compiler);
    return status;
  }
  *out_compiler = compiler;
  return kiln_ok();
}

static kiln_status_t open_fill_nvrtc(kiln_compiler_t* compiler,
                                     const char* path, bool trace) {
  const kiln_host_t* host = compiler->host;
  KILNI_RETURN_IF_ERROR(kilni_table_nvrtc_table_open(
      host, path, &compiler->table, &compiler->library));
  if (!trace) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_table_nvrtc_trace_install(
      &compiler->table, host->log, &compiler->table));
  compiler->traced = true;
  return kiln_ok();
}

static kiln_status_t fill_nvvm(kiln_compiler_t* compiler, const char* path,
                               bool trace) {
  const kiln_host_t* host = compiler->host;
  KILNI_RETURN_IF_ERROR(kilni_table_nvvm_table_open(host, path, &compiler->nvvm,
                                                    &compiler->library));
  if (!trace) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_table_nvvm_trace_install(
      &compiler->nvvm, host->log, &compiler->nvvm));
  compiler->traced = true;
  return kiln_ok();
}

// Fills the table from a library that is loaded, or for the loader to find.
static kiln_status_t open_table(kiln_compiler_t* compiler, const char* path,
                                bool trace) {
  KILNI_RETURN_IF_ERROR(compiler->kind == KILN_COMPILER_KIND_NVVM
                            ? fill_nvvm(compiler, path, trace)
                            : open_fill_nvrtc(compiler, path, trace));
  if (compiler->path == NULL) {
    const char* taken = kilni_base_dynlib_path(compiler->library);
    if (taken[0] == 0) taken = path;
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        compiler->host->allocator, kilni_base_sv(taken), &compiler->path));
  }
  return open_read_known(compiler);
}

static kiln_status_t open_located(kiln_compiler_t* compiler,
                                  const kilni_compile_compiler_wish_t* wish,
                                  kiln_locate_item_t* located) {
  const kiln_toolkit_library_t* library = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_toolkit_load_located(wish->toolkit, located, &library));
  KILNI_RETURN_IF_ERROR(
      open_table(compiler, kiln_toolkit_library_path(library), wish->trace));
  compiler->scope = kiln_locate_item_scope(located);
  compiler->file_line =
      kiln_toolkit_item_line(kiln_toolkit_library_item(library));
  return find_rest(compiler, wish->toolkit, located);
}

// Only the facts in its file: kilni_compile_compiler_ready loads the library.
static kiln_status_t open_lazily(kiln_compiler_t* compiler,
                                 const kilni_compile_compiler_wish_t* wish,
                                 kiln_locate_item_t* located) {
  kiln_toolkit_item_t* item = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_toolkit_find_located(wish->toolkit, located, &item));
  compiler->file_line = kiln_toolkit_item_line(item);
  kiln_toolkit_item_release(item);
  compiler->scope = kiln_locate_item_scope(located);
  compiler->located = located;
  kiln_locate_item_retain(located);
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      compiler->host->allocator, kilni_base_sv(kiln_locate_item_path(located)),
      &compiler->path));
  return find_rest(compiler, wish->toolkit, located);
}

kiln_status_t kilni_compile_compiler_load(kiln_compiler_t* compiler) {
  const kiln_toolkit_library_t* library = NULL;
  KILNI_RETURN_IF_ERROR(check_later(compiler));
  KILNI_RETURN_IF_ERROR(kiln_toolkit_load_located(compiler->toolkit,
                                                  compiler->located, &library));
  return open_table(compiler, kiln_toolkit_library_path(library),
                    compiler->trace);
}

static kiln_status_t try_located(const kiln_host_t* host,
                                 kilni_base_keep_t keep,
                                 const kilni_compile_compiler_wish_t* wish,
                                 kiln_locate_item_t* located,
                                 kiln_compiler_t** out_compiler) {
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(open_create(host, keep, wish, &compiler));
  // Without a line in its file a library must be asked.
  bool lazy = wish->lazy;
  kiln_status_t status;
  if (lazy) {
    status = open_lazily(compiler, wish, located);
    if (kiln_status_is_ok(status) && compiler->file_line == 0) {
      status = kilni_compile_compiler_load(compiler);
    }
  } else {
    status = open_located(compiler, wish, located);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  KILNI_LOG(&host->log, INFO, "using %s \"%s\" (%s)",
            kilni_compile_compiler_word(compiler), compiler->path,
            kiln_locate_scope_name(compiler->scope));
  *out_compiler = compiler;
  return kiln_ok();
}

static kiln_status_t create_over(kiln_compiler_t* compiler, const char* origin,
                                 kiln_compiler_t** out_compiler) {
  compiler->scope = KILN_LOCATE_SCOPE_OVERRIDE;
  kiln_status_t status = kilni_base_strdup(
      compiler->host->allocator, kilni_base_sv(origin), &compiler->path);
  if (kiln_status_is_ok(status)) status = no_includes(compiler);
  if (kiln_status_is_ok(status)) status = open_read_known(compiler);
  if (kiln_status_is_ok(status)) {
    status = kilni_compile_compiler_identify(compiler);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  *out_compiler = compiler;
  return kiln_ok();
}

kiln_status_t kilni_compile_compiler_create(const kiln_host_t* host,
                                            kilni_base_keep_t keep,
                                            const kiln_nvrtc_table_t* table,
                                            kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  kiln_compiler_t* compiler = NULL;
  kilni_compile_compiler_wish_t wish = {.kind = KILN_COMPILER_KIND_NVRTC};
  KILNI_RETURN_IF_ERROR(open_create(host, keep, &wish, &compiler));
  compiler->table = *table;
  return create_over(compiler, table->origin, out_compiler);
}

kiln_status_t kilni_compile_compiler_create_nvvm(
    const kiln_host_t* host, kilni_base_keep_t keep,
    const kiln_nvvm_table_t* table, kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  kiln_compiler_t* compiler = NULL;
  kilni_compile_compiler_wish_t wish = {.kind = KILN_COMPILER_KIND_NVVM};
  KILNI_RETURN_IF_ERROR(open_create(host, keep, &wish, &compiler));
  compiler->nvvm = *table;
  return create_over(compiler, table->origin, out_compiler);
}

// ---- A library that was named ----

static kiln_status_t open_try_name(const kiln_host_t* host,
                                   kilni_base_keep_t keep,
                                   const kilni_compile_compiler_wish_t* wish,
                                   kiln_compiler_t** out_compiler) {
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(open_create(host, keep, wish, &compiler));
  kiln_status_t status = open_table(compiler, wish->library, wish->trace);
  compiler->scope = KILN_LOCATE_SCOPE_OVERRIDE;
  if (kiln_status_is_ok(status)) status = no_includes(compiler);
  if (kiln_status_is_ok(status)) {
    status = kilni_compile_compiler_identify(compiler);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  *out_compiler = compiler;
  return kiln_ok();
}

// The file as found by a search that is given its path.
static kiln_status_t locate_file(const kiln_host_t* host, const char* name,
                                 const char* path,
                                 kiln_locate_item_t** out_located) {
  *out_located = NULL;
  kiln_locate_override_t only = {KILN_LOCATE_KIND_LIB, 0, name, path};
  kiln_locate_options_t options = kiln_locate_options_default();
  options.allocator = &host->allocator;
  options.overrides = &only;
  options.override_count = 1;
  kiln_locate_t* locate = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_create(&options, host->env, &locate));
  kiln_status_t status =
      kiln_locate_find(locate, KILN_LOCATE_KIND_LIB, name, out_located);
  kiln_locate_release(locate);
  return status;
}

static kiln_status_t open_named(const kiln_host_t* host, kilni_base_keep_t keep,
                                const kilni_compile_compiler_wish_t* wish,
                                kiln_compiler_t** out_compiler) {
  if (strchr(wish->library, '/') == NULL) {
    return open_try_name(host, keep, wish, out_compiler);
  }
  char* real = NULL;
  kiln_locate_item_t* located = NULL;
  const char* path = wish->library;
  kiln_status_t status = kiln_ok();
  if (path[0] != '/') {
    status = kilni_base_path_real(host->allocator, path, &real);
    path = real;
  }
  if (kiln_status_is_ok(status)) {
    status = locate_file(host, open_name_of(wish->kind), path, &located);
  }
  if (kiln_status_is_ok(status)) {
    status = try_located(host, keep, wish, located, out_compiler);
  }
  kiln_locate_item_release(located);
  kilni_base_strfree(host->allocator, real);
  return status;
}

// ---- The search ----

static kiln_status_t nothing_worked(uint32_t kind,
                                    const kiln_locate_set_t* found,
                                    kiln_status_t why) {
  bool nvvm = kind == KILN_COMPILER_KIND_NVVM;
  const kiln_locate_item_t* first = kiln_locate_set_item(found, 0);
  kiln_status_t status = KILNI_FAIL(NOT_FOUND, "no usable %s on this machine",
                                    nvvm ? "libNVVM" : "NVRTC");
  if (!kiln_status_is_ok(why)) {
    status = KILNI_ANNOTATE(status, "the last that was tried: %s",
                            kiln_status_message(why));
  }
  kiln_status_free(why);
  uint32_t count = kiln_locate_item_tried_count(first);
  for (uint32_t i = 0; i < count && i < MAX_LISTED; i++) {
    const kiln_locate_tried_t* tried = kiln_locate_item_tried(first, i);
    status =
        KILNI_ANNOTATE(status, "tried \"%s\": %s", tried->path, tried->why);
  }
  if (count > MAX_LISTED) {
    status =
        KILNI_ANNOTATE(status, "and %u more", (unsigned)(count - MAX_LISTED));
  }
  return kilni_base_status_with_fix(
      status,
      "install it: `python3 -m venv cuda && cuda/bin/pip install %s && export "
      "VIRTUAL_ENV=$PWD/cuda` (on Debian and Ubuntu after `apt-get install "
      "python3-venv`); or name the library in KILN_LOCATE_LIB_%s; PTX needs no "
      "compiler",
      nvvm ? "nvidia-nvvm" : "nvidia-cuda-nvrtc", nvvm ? "NVVM" : "NVRTC");
}

// True for what is of this process or was decided, and not of the one file.
static bool ends_search(kiln_status_t status, const kiln_locate_item_t* item) {
  switch (kiln_status_code(status)) {
    case KILN_STATUS_OUT_OF_MEMORY:
    case KILN_STATUS_LIMIT_EXCEEDED:
    case KILN_STATUS_INSUFFICIENT_METADATA:
    case KILN_STATUS_INVALID_STATE:
      return true;
    default:
      // Something that was named is taken or is an error.
      return kiln_locate_item_scope(item) == KILN_LOCATE_SCOPE_OVERRIDE;
  }
}

// Tries one copy; true if that decides the search.
static bool is_decided(const kiln_host_t* host, kilni_base_keep_t keep,
                       const kilni_compile_compiler_wish_t* wish,
                       kiln_locate_item_t* item, kiln_status_t* inout_last,
                       kiln_compiler_t** out_compiler) {
  kiln_status_free(*inout_last);
  *inout_last = try_located(host, keep, wish, item, out_compiler);
  kiln_status_t last = *inout_last;
  if (kiln_status_is_ok(last) || ends_search(last, item)) return true;
  KILNI_LOG(&host->log, INFO, "\"%s\" was not used: %s",
            kiln_locate_item_path(item), kiln_status_message(last));
  // The context checks before anything is opened: a refusal is the answer.
  return kiln_status_code(last) == KILN_STATUS_INCOMPATIBLE &&
         kiln_toolkit_mode(wish->toolkit) >= KILN_COMPAT_MODE_BEST_EFFORT;
}

// All copies but `tried`, which gave `last`.
static kiln_status_t try_all(const kiln_host_t* host, kilni_base_keep_t keep,
                             const kilni_compile_compiler_wish_t* wish,
                             const kiln_locate_set_t* found,
                             const kiln_locate_item_t* tried,
                             kiln_status_t last,
                             kiln_compiler_t** out_compiler) {
  uint32_t count = kiln_locate_set_count(found);
  for (uint32_t i = 0; i < count; i++) {
    kiln_locate_item_t* item = kiln_locate_set_item(found, i);
    if (!kiln_locate_item_found(item)) continue;
    if (tried != NULL && strcmp(kiln_locate_item_path(tried),
                                kiln_locate_item_path(item)) == 0) {
      continue;
    }
    if (is_decided(host, keep, wish, item, &last, out_compiler)) return last;
  }
  return nothing_worked(wish->kind, found, last);
}

// The first copy most often works, and then no other is looked for. Gives it
// where it does not, for the others to be tried.
static kiln_status_t open_first(const kiln_host_t* host, kilni_base_keep_t keep,
                                const kilni_compile_compiler_wish_t* wish,
                                kiln_locate_item_t** out_tried,
                                kiln_status_t* out_last,
                                kiln_compiler_t** out_compiler) {
  kiln_locate_item_t* first = NULL;
  *out_last = NULL;
  *out_tried = NULL;
  KILNI_RETURN_IF_ERROR(kiln_locate_find(kiln_toolkit_locate(wish->toolkit),
                                         KILN_LOCATE_KIND_LIB,
                                         open_name_of(wish->kind), &first));
  kiln_status_t last = kiln_ok();
  if (kiln_locate_item_found(first) &&
      is_decided(host, keep, wish, first, &last, out_compiler)) {
    kiln_locate_item_release(first);
    return last;
  }
  if (kiln_status_is_ok(last)) {
    kiln_locate_item_release(first);
    return kiln_ok();
  }
  *out_tried = first;
  *out_last = last;
  return kiln_ok();
}

kiln_status_t kilni_compile_compiler_open(
    const kiln_host_t* host, kilni_base_keep_t keep,
    const kilni_compile_compiler_wish_t* wish, kiln_locate_set_t** out_found,
    kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  if (out_found != NULL) *out_found = NULL;
  if (wish->library != NULL) {
    return open_named(host, keep, wish, out_compiler);
  }
  kiln_locate_item_t* tried = NULL;
  kiln_status_t last = kiln_ok();
  if (out_found == NULL) {
    KILNI_RETURN_IF_ERROR(
        open_first(host, keep, wish, &tried, &last, out_compiler));
    if (*out_compiler != NULL) return kiln_ok();
  }
  kiln_locate_set_t* found = NULL;
  kiln_status_t status = kiln_locate_find_all(
      kiln_toolkit_locate(wish->toolkit), KILN_LOCATE_KIND_LIB,
      open_name_of(wish->kind), &found);
  if (kiln_status_is_ok(status)) {
    status = try_all(host, keep, wish, found, tried, last, out_compiler);
  } else {
    kiln_status_free(last);
  }
  kiln_locate_item_release(tried);
  if (out_found != NULL) {
    *out_found = found;
  } else {
    kiln_locate_set_release(found);
  }
  return status;
}
