// SPDX-License-Identifier: Apache-2.0
//
// program: programs as objects: life and tables.
#include "program/ir/program_object.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"

struct kiln_program_t {
  atomic_uint references;
  kilni_program_ir_t ir;
};

kiln_status_t kilni_program_create(kilni_program_ir_t* ir,
                                   kiln_program_t** out_program) {
  *out_program = NULL;
  void* block;
  kiln_status_t status =
      kilni_base_alloc(ir->allocator, sizeof(kiln_program_t), &block);
  if (!kiln_status_is_ok(status)) {
    kilni_program_ir_deinit(ir);
    return status;
  }
  kiln_program_t* program = block;
  atomic_init(&program->references, 1);
  program->ir = *ir;
  memset(ir, 0, sizeof(*ir));
  *out_program = program;
  return kiln_ok();
}

void kiln_program_retain(kiln_program_t* program) {
  if (program == NULL) return;
  atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
}

void kiln_program_release(kiln_program_t* program) {
  if (program == NULL || atomic_fetch_sub(&program->references, 1) != 1) return;
  kiln_allocator_t allocator = program->ir.allocator;
  kilni_program_ir_deinit(&program->ir);
  kilni_base_free(allocator, program, sizeof(*program));
}

const kilni_program_ir_t* kilni_program_ir(const kiln_program_t* program) {
  return &program->ir;
}

void kilni_program_hand_out(const char* text, size_t size, size_t capacity,
                            char* buffer, size_t* out_length) {
  if (out_length != NULL) *out_length = size;
  if (capacity == 0) return;
  size_t fits = size < capacity ? size : capacity - 1;
  if (fits != 0) memcpy(buffer, text, fits);
  buffer[fits] = 0;
}
