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
  kiln_code_release(result->code);
  kilni_free(allocator, result, sizeof(*result));
  kilni_keep_release(keep);
}

const char* kiln_compile_result_log(const kiln_compile_result_t* result) {
  return result != NULL && result->log != NULL ? result->log : "";
}

kiln_code_t* kiln_compile_result_code(const kiln_compile_result_t* result) {
  return result != NULL ? result->code : NULL;
}
