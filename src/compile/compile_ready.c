// SPDX-License-Identifier: Apache-2.0
//
// compile: what a compiler is, and its library loaded when it is needed.
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "base/status_make.h"
#include "cache/cache.h"
#include "compile/compile.h"
#include "compile/compile_identity.h"
#include "compile/compile_inside.h"
#include "kiln/locate.h"

// The one that works: another where the first could not be loaded.
static const kiln_compiler_t* actual(const kiln_compiler_t* compiler) {
  const kiln_compiler_t* other = atomic_load_explicit(
      &((kiln_compiler_t*)(uintptr_t)compiler)->instead, memory_order_acquire);
  return other != NULL ? other : compiler;
}

const char* kilni_compile_compiler_word(const kiln_compiler_t* compiler) {
  return compiler->kind == KILN_COMPILER_KIND_NVVM ? "libNVVM" : "NVRTC";
}

uint32_t kiln_compiler_kind(const kiln_compiler_t* compiler) {
  return compiler->kind;
}

bool kiln_compiler_is_loaded(const kiln_compiler_t* compiler) {
  kiln_compiler_t* at = (kiln_compiler_t*)(uintptr_t)actual(compiler);
  return atomic_load_explicit(&at->loaded, memory_order_acquire);
}

uint32_t kiln_compiler_version(const kiln_compiler_t* compiler) {
  const kiln_compiler_t* at = actual(compiler);
  if (at->kind == KILN_COMPILER_KIND_NVVM || !kiln_compiler_is_loaded(at)) {
    return at->file_line;
  }
  return (uint32_t)(at->table.major * 1000 + at->table.minor * 10);
}

const char* kiln_compiler_path(const kiln_compiler_t* compiler) {
  return actual(compiler)->path;
}

const char* kiln_compiler_include_dir(const kiln_compiler_t* compiler) {
  return actual(compiler)->include_dir;
}

const char* kiln_compiler_device_library(const kiln_compiler_t* compiler) {
  return actual(compiler)->device_file;
}

uint32_t kilni_compile_compiler_scope(const kiln_compiler_t* compiler) {
  return actual(compiler)->scope;
}

bool kiln_compiler_has_arch(kiln_compiler_t* compiler, uint32_t arch) {
  kiln_compiler_t* ready = NULL;
  kiln_status_t status = kilni_compile_compiler_ready(compiler, &ready);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return false;
  }
  for (size_t i = 0; i < ready->arch_count; i++) {
    if ((uint32_t)ready->archs[i] == arch) return true;
  }
  return false;
}

uint32_t kiln_compiler_ir_version(kiln_compiler_t* compiler) {
  kiln_compiler_t* ready = NULL;
  kiln_status_t status = kilni_compile_compiler_ready(compiler, &ready);
  bool ok = kiln_status_is_ok(status);
  kiln_status_free(status);
  return ok ? ready->ir_version : 0;
}

// ---- Loading ----

// Another copy, where the first that the search met does not work.
static kiln_status_t take_another(kiln_compiler_t* compiler,
                                  kiln_status_t why) {
  if (kiln_status_code(why) == KILN_STATUS_OUT_OF_MEMORY ||
      compiler->scope == KILN_LOCATE_SCOPE_OVERRIDE) {
    return why;
  }
  KILNI_LOG(&compiler->host->log, INFO, "\"%s\" was not used: %s",
            compiler->path, kiln_status_message(why));
  kiln_status_free(why);
  kilni_compile_compiler_wish_t wish = {
      .toolkit = compiler->toolkit,
      .trace = compiler->trace,
      .kind = compiler->kind,
      .max_concurrent = compiler->gate.most_running,
      .memory_bytes = compiler->gate.most_bytes};
  kiln_compiler_t* other = NULL;
  KILNI_RETURN_IF_ERROR(kilni_compile_compiler_open(
      compiler->host, compiler->keep, &wish, NULL, &other));
  atomic_store_explicit(&compiler->instead, other, memory_order_release);
  return kiln_ok();
}

kiln_status_t kilni_compile_compiler_ready(kiln_compiler_t* compiler,
                                           kiln_compiler_t** out_ready) {
  *out_ready = NULL;
  kiln_status_t status = kiln_ok();
  if (!kiln_compiler_is_loaded(compiler)) {
    kilni_base_mutex_lock(&compiler->lock);
    if (!kiln_compiler_is_loaded(compiler)) {
      status = kilni_compile_compiler_load(compiler);
      if (!kiln_status_is_ok(status)) status = take_another(compiler, status);
    }
    kilni_base_mutex_unlock(&compiler->lock);
  }
  if (!kiln_status_is_ok(status)) return status;
  *out_ready = (kiln_compiler_t*)(uintptr_t)actual(compiler);
  return kiln_ok();
}

// ---- Identity ----

kiln_status_t kilni_compile_compiler_identify(kiln_compiler_t* compiler) {
  char text[KILNI_IDENTITY_BYTES];
  if (compiler->library == NULL && compiler->located == NULL) {
    // A table of the caller's, which has no file.
    snprintf(text, sizeof(text), "table");
  } else {
    KILNI_RETURN_IF_ERROR(kilni_compile_identity_of_file(
        compiler->host->allocator, compiler->path, text));
  }
  char device[KILN_CACHE_NAME_BYTES] = "";
  if (compiler->device_bytes != 0) {
    kilni_cache_digest(
        (kiln_bytes_view_t){compiler->device_code, compiler->device_bytes},
        device);
  }
  if (text[0] == 0) {
    compiler->identity[0] = 0;
    return kiln_ok();
  }
  snprintf(compiler->identity, sizeof(compiler->identity), "%s %s %s",
           kilni_compile_compiler_word(compiler), text, device);
  return kiln_ok();
}
