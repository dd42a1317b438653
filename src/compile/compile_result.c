// SPDX-License-Identifier: Apache-2.0
//
// compile: what a compilation gave.
#include "base/alloc.h"
#include "base/keep.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile_inside.h"

kiln_status_t kilni_compile_result_create(const kiln_compiler_t* compiler,
                                          kiln_compile_result_t** out_result) {
  *out_result = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      compiler->host->allocator, sizeof(kiln_compile_result_t), &block));
  kiln_compile_result_t* result = block;
  result->allocator = compiler->host->allocator;
  result->line.allocator = result->allocator;
  result->headers.allocator = result->allocator;
  result->keep = compiler->keep;
  kilni_base_keep_retain(result->keep);
  atomic_init(&result->references, 1);
  *out_result = result;
  return kiln_ok();
}

void kiln_compile_result_retain(kiln_compile_result_t* result) {
  if (result == NULL) return;
  atomic_fetch_add_explicit(&result->references, 1, memory_order_relaxed);
}

void kiln_compile_result_release(kiln_compile_result_t* result) {
  if (result == NULL) return;
  if (atomic_fetch_sub_explicit(&result->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_allocator_t allocator = result->allocator;
  kilni_base_keep_t keep = result->keep;
  kilni_base_strfree(allocator, result->log);
  kilni_base_strfree(allocator, result->note);
  kilni_base_strfree(allocator, result->cache_reason);
  kilni_compile_line_deinit(&result->line);
  kilni_compile_line_deinit(&result->headers);
  kiln_code_release(result->code);
  kilni_base_free(allocator, result, sizeof(*result));
  kilni_base_keep_release(keep);
}

static const char* result_text_of(const char* text) {
  return text != NULL ? text : "";
}

const char* kiln_compile_result_log(const kiln_compile_result_t* result) {
  return result != NULL ? result_text_of(result->log) : "";
}

kiln_code_t* kiln_compile_result_code(const kiln_compile_result_t* result) {
  return result != NULL ? result->code : NULL;
}

const char* kiln_compile_result_note(const kiln_compile_result_t* result) {
  return result != NULL ? result_text_of(result->note) : "";
}

static const char* item_of(const kilni_compile_line_t* line, uint32_t index) {
  return index < line->count ? line->items[index] : NULL;
}

uint32_t kiln_compile_result_option_count(const kiln_compile_result_t* result) {
  return result != NULL ? (uint32_t)result->line.count : 0;
}

const char* kiln_compile_result_option(const kiln_compile_result_t* result,
                                       uint32_t index) {
  return result != NULL ? item_of(&result->line, index) : NULL;
}

uint32_t kiln_compile_result_header_count(const kiln_compile_result_t* result) {
  return result != NULL ? (uint32_t)result->headers.count : 0;
}

const char* kiln_compile_result_header(const kiln_compile_result_t* result,
                                       uint32_t index) {
  return result != NULL ? item_of(&result->headers, index) : NULL;
}

uint32_t kiln_compile_result_pch(const kiln_compile_result_t* result) {
  return result != NULL ? result->pch : (uint32_t)KILN_COMPILE_PCH_NONE;
}

uint32_t kiln_compile_result_cache(const kiln_compile_result_t* result) {
  return result != NULL ? result->cache : (uint32_t)KILN_COMPILE_CACHE_NONE;
}

const char* kiln_compile_result_cache_reason(
    const kiln_compile_result_t* result) {
  return result != NULL ? result_text_of(result->cache_reason) : "";
}
