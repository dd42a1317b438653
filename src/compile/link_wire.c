// SPDX-License-Identifier: Apache-2.0
//
// compile: numbers and texts as bytes between two processes.
#include "compile/link_wire.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

static kiln_status_t link_wire_add(kilni_compile_wire_out_t* out,
                                   const void* data, size_t size) {
  void* block = out->data;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(out->allocator, out->size + size, 1,
                                        &out->capacity, &block));
  out->data = block;
  if (size != 0) memcpy(out->data + out->size, data, size);
  out->size += size;
  return kiln_ok();
}

// Both processes run on one machine, of one build.
kiln_status_t kilni_compile_wire_put(kilni_compile_wire_out_t* out,
                                     uint64_t number) {
  return link_wire_add(out, &number, sizeof(number));
}

kiln_status_t kilni_compile_wire_put_bytes(kilni_compile_wire_out_t* out,
                                           kiln_bytes_view_t bytes) {
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(out, bytes.size));
  KILNI_RETURN_IF_ERROR(link_wire_add(out, bytes.data, bytes.size));
  return link_wire_add(out, "", 1);
}

kiln_status_t kilni_compile_wire_put_text(kilni_compile_wire_out_t* out,
                                          const char* text) {
  if (text == NULL) text = "";
  return kilni_compile_wire_put_bytes(
      out, (kiln_bytes_view_t){(const uint8_t*)text, strlen(text)});
}

void kilni_compile_wire_free(kilni_compile_wire_out_t* out) {
  kilni_base_free_array(out->allocator, out->data, out->capacity, 1);
  out->data = NULL;
  out->size = 0;
  out->capacity = 0;
}

static const uint8_t* link_wire_take(kilni_compile_wire_in_t* in,
                                     uint64_t size) {
  if (in->failed || size > in->size - in->at) {
    in->failed = true;
    return NULL;
  }
  const uint8_t* data = in->data + in->at;
  in->at += (size_t)size;
  return data;
}

uint64_t kilni_compile_wire_get(kilni_compile_wire_in_t* in) {
  uint64_t number = 0;
  const uint8_t* data = link_wire_take(in, sizeof(number));
  if (data != NULL) memcpy(&number, data, sizeof(number));
  return number;
}

kiln_bytes_view_t kilni_compile_wire_get_bytes(kilni_compile_wire_in_t* in) {
  kiln_bytes_view_t none = {(const uint8_t*)"", 0};
  uint64_t size = kilni_compile_wire_get(in);
  const uint8_t* data = link_wire_take(in, size);
  const uint8_t* end = link_wire_take(in, 1);
  if (data == NULL || end == NULL || *end != 0) {
    in->failed = true;
    return none;
  }
  return (kiln_bytes_view_t){data, (size_t)size};
}

const char* kilni_compile_wire_get_text(kilni_compile_wire_in_t* in) {
  return (const char*)kilni_compile_wire_get_bytes(in).data;
}
