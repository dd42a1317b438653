// SPDX-License-Identifier: Apache-2.0
//
// compile: what a compilation gave.
#include "base/alloc.h"
#include "base/str.h"
#include "compile/compile_inside.h"

kiln_status_t kilni_compile_result_create(const kiln_compiler_t* compiler,
                                          kiln_compile_result_t** out_result) {
  *out_result = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc(compiler->host->allocator,
                                    sizeof(kiln_compile_result_t), &block));
  kiln_compile_result_t* result = block;
  result->allocator = compiler->host->allocator;
  result->keep = compiler->keep;
  kilni_keep_retain(result->keep);
  atomic_init(&result->references, 1);
  *out_result = result;
  return NULL;
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
  kilni_keep_t keep = result->keep;
  kilni_strfree(allocator, result->log);
  if (result->code != NULL) {
    kilni_free(allocator, result->code, result->code_size + 1);
  }
  for (size_t i = 0; i < result->lowered_count; i++) {
    kilni_strfree(allocator, result->lowered[i]);
  }
  kilni_free_array(allocator, result->lowered, result->lowered_count,
                   sizeof(char*));
  kilni_free(allocator, result, sizeof(*result));
  kilni_keep_release(keep);
}

const char* kiln_compile_result_log(const kiln_compile_result_t* result) {
  return result != NULL && result->log != NULL ? result->log : "";
}

kiln_bytes_view_t kiln_compile_result_code(
    const kiln_compile_result_t* result) {
  kiln_bytes_view_t view = {NULL, 0};
  if (result != NULL && result->code != NULL) {
    view.data = result->code;
    view.size = result->code_size;
  }
  return view;
}

uint32_t kiln_compile_result_format(const kiln_compile_result_t* result) {
  return result ? result->format : 0;
}

const char* kiln_compile_result_arch(const kiln_compile_result_t* result) {
  return result ? result->arch : "";
}

const char* kiln_compile_result_lowered_name(
    const kiln_compile_result_t* result, uint32_t index) {
  if (result == NULL || index >= result->lowered_count) return NULL;
  return result->lowered[index];
}
