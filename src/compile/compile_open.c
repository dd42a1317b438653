// SPDX-License-Identifier: Apache-2.0
//
// compile: NVRTC opened: the first that the search meets and that works, with
// the headers that belong to it.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log_line.h"
#include "base/str.h"
#include "compile/compile_inside.h"
#include "locate/locate.h"

// An error lists at most this many places; the report has them all.
enum { MAX_LISTED = 24 };

void kiln_compiler_retain(kiln_compiler_t* compiler) {
  if (compiler == NULL) return;
  atomic_fetch_add_explicit(&compiler->references, 1, memory_order_relaxed);
}

static void destroy(kiln_compiler_t* compiler) {
  kiln_allocator_t allocator = compiler->host->allocator;
  kilni_keep_t keep = compiler->keep;
  if (compiler->traced) kilni_nvrtc_trace_remove(&compiler->table);
  kilni_dynlib_close(compiler->library);
  kilni_strfree(allocator, compiler->path);
  kilni_strfree(allocator, compiler->include_dir);
  kilni_strfree(allocator, compiler->include_dir2);
  kilni_free_array(allocator, compiler->archs, compiler->arch_count,
                   sizeof(int));
  kilni_free(allocator, compiler, sizeof(*compiler));
  kilni_keep_release(keep);
}

void kiln_compiler_release(kiln_compiler_t* compiler) {
  if (compiler == NULL || kilni_host_is_forked(compiler->host)) return;
  if (atomic_fetch_sub_explicit(&compiler->references, 1,
                                memory_order_acq_rel) == 1) {
    destroy(compiler);
  }
}

uint32_t kiln_compiler_version(const kiln_compiler_t* compiler) {
  return (uint32_t)(compiler->table.major * 1000 + compiler->table.minor * 10);
}

const char* kiln_compiler_path(const kiln_compiler_t* compiler) {
  return compiler->path;
}

const char* kiln_compiler_include_dir(const kiln_compiler_t* compiler) {
  return compiler->include_dir;
}

uint32_t kilni_compiler_scope(const kiln_compiler_t* compiler) {
  return compiler->scope;
}

bool kiln_compiler_has_arch(const kiln_compiler_t* compiler, uint32_t arch) {
  for (size_t i = 0; i < compiler->arch_count; i++) {
    if ((uint32_t)compiler->archs[i] == arch) return true;
  }
  return false;
}

static kiln_status_t read_archs(kiln_compiler_t* compiler) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  int count = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_NVRTC_STATUS(table, table->nvrtcGetNumSupportedArchs(&count),
                         "nvrtcGetNumSupportedArchs"));
  if (count <= 0 || count > 4096) {
    return kilni_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" says it knows %d architectures",
                   compiler->path, count),
        "install NVRTC again, from one CUDA toolkit");
  }
  void* archs = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(compiler->host->allocator,
                                          (size_t)count, sizeof(int), &archs));
  compiler->archs = archs;
  compiler->arch_count = (size_t)count;
  return KILNI_NVRTC_STATUS(table, table->nvrtcGetSupportedArchs(archs),
                            "nvrtcGetSupportedArchs");
}

// ---- Headers ----

static kiln_status_t no_includes(kiln_compiler_t* compiler) {
  kiln_allocator_t allocator = compiler->host->allocator;
  if (compiler->include_dir == NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_strdup(allocator, kilni_sv(""), &compiler->include_dir));
  }
  if (compiler->include_dir2 != NULL) return NULL;
  return kilni_strdup(allocator, kilni_sv(""), &compiler->include_dir2);
}

// The headers of the library's own root, else those that a search finds.
static kiln_status_t locate_headers(kiln_toolkit_t* toolkit,
                                    const kiln_locate_item_t* library,
                                    const char* name,
                                    kiln_locate_item_t** out_found) {
  kiln_locate_t* locate = kiln_toolkit_locate(toolkit);
  KILNI_RETURN_IF_ERROR(
      kiln_locate_find(locate, KILN_LOCATE_KIND_HEADER, name, out_found));
  if (kiln_locate_item_scope(*out_found) == KILN_LOCATE_SCOPE_OVERRIDE ||
      kiln_locate_item_root(library)[0] == 0) {
    return NULL;
  }
  kiln_locate_item_t* beside = NULL;
  kiln_status_t status = kiln_locate_find_beside(
      locate, library, KILN_LOCATE_KIND_HEADER, name, &beside);
  if (kiln_status_is_ok(status) && kiln_locate_item_found(beside)) {
    kiln_locate_item_release(*out_found);
    *out_found = beside;
    return NULL;
  }
  kiln_locate_item_release(beside);
  if (kiln_status_is_ok(status)) return NULL;
  kiln_locate_item_release(*out_found);
  *out_found = NULL;
  return status;
}

// Takes a folder of headers into use, which checks it against the compiler.
static kiln_status_t take_headers(kiln_compiler_t* compiler,
                                  kiln_toolkit_t* toolkit,
                                  const kiln_locate_item_t* library,
                                  const char* name, char** out_dir) {
  kiln_locate_item_t* located = NULL;
  KILNI_RETURN_IF_ERROR(locate_headers(toolkit, library, name, &located));
  kiln_status_t status = NULL;
  kiln_toolkit_item_t* item = NULL;
  if (kiln_locate_item_found(located)) {
    status = kiln_toolkit_find_located(toolkit, located, &item);
    if (kiln_status_is_ok(status)) {
      status = kilni_strdup(compiler->host->allocator,
                            kilni_sv(kiln_locate_item_path(located)), out_dir);
    }
    kiln_toolkit_item_release(item);
  }
  kiln_locate_item_release(located);
  return status;
}

static kiln_status_t find_includes(kiln_compiler_t* compiler,
                                   kiln_toolkit_t* toolkit,
                                   const kiln_locate_item_t* library) {
  KILNI_RETURN_IF_ERROR(take_headers(compiler, toolkit, library, "cudart",
                                     &compiler->include_dir));
  KILNI_RETURN_IF_ERROR(take_headers(compiler, toolkit, library, "cccl",
                                     &compiler->include_dir2));
  if (compiler->include_dir != NULL && compiler->include_dir2 != NULL &&
      strcmp(compiler->include_dir, compiler->include_dir2) == 0) {
    kilni_strfree(compiler->host->allocator, compiler->include_dir2);
    compiler->include_dir2 = NULL;
  }
  return no_includes(compiler);
}

// ---- Opening ----

static kiln_status_t create(const kiln_host_t* host, kilni_keep_t keep,
                            kiln_compiler_t** out_compiler) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(host->allocator, sizeof(kiln_compiler_t), &block));
  kiln_compiler_t* compiler = block;
  compiler->host = host;
  compiler->keep = keep;
  kilni_keep_retain(keep);
  atomic_init(&compiler->references, 1);
  *out_compiler = compiler;
  return NULL;
}

// Fills the table from a library that is loaded, or for the loader to find.
static kiln_status_t open_table(kiln_compiler_t* compiler, const char* path,
                                bool trace) {
  const kiln_host_t* host = compiler->host;
  KILNI_RETURN_IF_ERROR(
      kilni_nvrtc_table_open(host, path, &compiler->table, &compiler->library));
  if (trace) {
    KILNI_RETURN_IF_ERROR(kilni_nvrtc_trace_install(&compiler->table, host->log,
                                                    &compiler->table));
    compiler->traced = true;
  }
  const char* taken = kilni_dynlib_path(compiler->library);
  if (taken[0] == 0) taken = path;
  KILNI_RETURN_IF_ERROR(
      kilni_strdup(host->allocator, kilni_sv(taken), &compiler->path));
  return read_archs(compiler);
}

static kiln_status_t open_located(kiln_compiler_t* compiler,
                                  const kilni_compiler_wish_t* wish,
                                  kiln_locate_item_t* located) {
  const kiln_toolkit_library_t* library = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_toolkit_load_located(wish->toolkit, located, &library));
  KILNI_RETURN_IF_ERROR(
      open_table(compiler, kiln_toolkit_library_path(library), wish->trace));
  compiler->scope = kiln_locate_item_scope(located);
  return find_includes(compiler, wish->toolkit, located);
}

static kiln_status_t try_located(const kiln_host_t* host, kilni_keep_t keep,
                                 const kilni_compiler_wish_t* wish,
                                 kiln_locate_item_t* located,
                                 kiln_compiler_t** out_compiler) {
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(create(host, keep, &compiler));
  kiln_status_t status = open_located(compiler, wish, located);
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  KILNI_LOG(&host->log, INFO, "took NVRTC \"%s\" (%s)", compiler->path,
            kiln_locate_scope_name(compiler->scope));
  *out_compiler = compiler;
  return NULL;
}

kiln_status_t kilni_compiler_create(const kiln_host_t* host, kilni_keep_t keep,
                                    const kiln_nvrtc_table_t* table,
                                    kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(create(host, keep, &compiler));
  compiler->table = *table;
  compiler->scope = KILN_LOCATE_SCOPE_OVERRIDE;
  kiln_status_t status =
      kilni_strdup(host->allocator, kilni_sv(table->origin), &compiler->path);
  if (kiln_status_is_ok(status)) status = no_includes(compiler);
  if (kiln_status_is_ok(status)) status = read_archs(compiler);
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  *out_compiler = compiler;
  return NULL;
}

// ---- A library that was named ----

static kiln_status_t try_name(const kiln_host_t* host, kilni_keep_t keep,
                              const kilni_compiler_wish_t* wish,
                              kiln_compiler_t** out_compiler) {
  kiln_compiler_t* compiler = NULL;
  KILNI_RETURN_IF_ERROR(create(host, keep, &compiler));
  kiln_status_t status = open_table(compiler, wish->library, wish->trace);
  compiler->scope = KILN_LOCATE_SCOPE_OVERRIDE;
  if (kiln_status_is_ok(status)) status = no_includes(compiler);
  if (!kiln_status_is_ok(status)) {
    kiln_compiler_release(compiler);
    return status;
  }
  *out_compiler = compiler;
  return NULL;
}

// The file as a search finds it that is told to take it.
static kiln_status_t locate_file(const kiln_host_t* host, const char* path,
                                 kiln_locate_item_t** out_located) {
  *out_located = NULL;
  kiln_locate_override_t only = {KILN_LOCATE_KIND_LIB, 0, "nvrtc", path};
  kiln_locate_options_t options = kiln_locate_options_default();
  options.allocator = &host->allocator;
  options.overrides = &only;
  options.override_count = 1;
  kiln_locate_t* locate = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_create(&options, host->env, &locate));
  kiln_status_t status =
      kiln_locate_find(locate, KILN_LOCATE_KIND_LIB, "nvrtc", out_located);
  kiln_locate_release(locate);
  return status;
}

static kiln_status_t open_named(const kiln_host_t* host, kilni_keep_t keep,
                                const kilni_compiler_wish_t* wish,
                                kiln_compiler_t** out_compiler) {
  if (strchr(wish->library, '/') == NULL) {
    return try_name(host, keep, wish, out_compiler);
  }
  char* real = NULL;
  kiln_locate_item_t* located = NULL;
  const char* path = wish->library;
  kiln_status_t status = NULL;
  if (path[0] != '/') {
    status = kilni_path_real(host->allocator, path, &real);
    path = real;
  }
  if (kiln_status_is_ok(status)) status = locate_file(host, path, &located);
  if (kiln_status_is_ok(status)) {
    status = try_located(host, keep, wish, located, out_compiler);
  }
  kiln_locate_item_release(located);
  kilni_strfree(host->allocator, real);
  return status;
}

// ---- The search ----

static kiln_status_t nothing_worked(const kiln_locate_set_t* found,
                                    kiln_status_t why) {
  const kiln_locate_item_t* first = kiln_locate_set_item(found, 0);
  kiln_status_t status =
      KILNI_FAIL(NOT_FOUND, "no usable NVRTC on this machine");
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
  return kilni_status_with_fix(
      status,
      "install it, e.g. with `pip install nvidia-cuda-nvrtc`, or name the "
      "library in KILN_LOCATE_LIB_NVRTC; PTX needs no compiler");
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

static kiln_status_t try_all(const kiln_host_t* host, kilni_keep_t keep,
                             const kilni_compiler_wish_t* wish,
                             const kiln_locate_set_t* found,
                             kiln_compiler_t** out_compiler) {
  kiln_status_t last = NULL;
  uint32_t count = kiln_locate_set_count(found);
  for (uint32_t i = 0; i < count; i++) {
    kiln_locate_item_t* item = kiln_locate_set_item(found, i);
    if (!kiln_locate_item_found(item)) continue;
    kiln_status_free(last);
    last = try_located(host, keep, wish, item, out_compiler);
    if (kiln_status_is_ok(last) || ends_search(last, item)) return last;
    KILNI_LOG(&host->log, INFO, "NVRTC \"%s\" was not taken: %s",
              kiln_locate_item_path(item), kiln_status_message(last));
    // The context checks before anything is opened: a refusal is the answer.
    if (kiln_status_code(last) == KILN_STATUS_INCOMPATIBLE &&
        kiln_toolkit_mode(wish->toolkit) >= KILN_COMPAT_MODE_BEST_EFFORT) {
      return last;
    }
  }
  return nothing_worked(found, last);
}

kiln_status_t kilni_compiler_open(const kiln_host_t* host, kilni_keep_t keep,
                                  const kilni_compiler_wish_t* wish,
                                  kiln_locate_set_t** out_found,
                                  kiln_compiler_t** out_compiler) {
  *out_compiler = NULL;
  if (out_found != NULL) *out_found = NULL;
  if (wish->library != NULL) {
    return open_named(host, keep, wish, out_compiler);
  }
  kiln_locate_set_t* found = NULL;
  KILNI_RETURN_IF_ERROR(kiln_locate_find_all(kiln_toolkit_locate(wish->toolkit),
                                             KILN_LOCATE_KIND_LIB, "nvrtc",
                                             &found));
  kiln_status_t status = try_all(host, keep, wish, found, out_compiler);
  if (out_found != NULL) {
    *out_found = found;
  } else {
    kiln_locate_set_release(found);
  }
  return status;
}
